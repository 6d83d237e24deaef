#!/usr/bin/env node
// SPDX-License-Identifier: ISC
/** execd-mcp: a server of the Model Context Protocol on stdio, whose tools act on an execd (doc/mcp.md). */
import { parseArgs } from 'node:util'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { connect } from './box.js'
import type { Settings } from './tools.js'
import { addTools } from './tools.js'

const usage = `usage: execd-mcp [--url URL | --environment NAME] [--token-file FILE] [--ca FILE] [--cwd DIRECTORY]
                 [--sandbox read-only|workspace-write|none] [--network] [--session ID] [--keep SECONDS]
`

function fail(text: string): never {
	process.stderr.write(`execd-mcp: ${text}\n`)
	process.exit(2)
}

function settings(): Settings {
	const text = { type: 'string' } as const
	const { values } = parseArgs({ options: {
		url: text, environment: text, 'token-file': text, ca: text, cwd: text, sandbox: { ...text, default: 'workspace-write' },
		network: { type: 'boolean', default: false }, session: text, keep: text, help: { type: 'boolean', short: 'h' },
	} })
	if (values.help) {
		process.stdout.write(usage)
		process.exit(0)
	}
	const { sandbox, cwd, network = false } = values
	if (sandbox !== 'read-only' && sandbox !== 'workspace-write' && sandbox !== 'none')
		throw new RangeError(`--sandbox: ${sandbox} is neither read-only nor workspace-write nor none`)
	if (sandbox === 'none' && network) throw new RangeError('--network: it means nothing without a sandbox')
	const keep = values.keep === undefined ? undefined : Number(values.keep)
	if (keep !== undefined && !(keep > 0)) throw new RangeError(`--keep: ${values.keep} is no number of seconds`)
	const given = {
		url: values.url, environment: values.environment, tokenFile: values['token-file'], ca: values.ca,
		session: values.session,
	}
	const options = Object.fromEntries(Object.entries(given).filter(([, v]) => v !== undefined))
	return { cwd, network, sandbox: sandbox === 'none' ? undefined : sandbox, connect: async () => {
		const box = await connect({ ...options, clientName: 'execd-mcp' })
		delete options.session // when that one is lost, another one begins
		if (keep !== undefined) await box.keep(keep * 1000, { whileRunning: true })
		process.stderr.write(`execd-mcp: session ${box.sessionId}\n`)
		return box
	} }
}

let chosen: Settings
try {
	chosen = settings()
} catch (e) {
	fail(`${(e as Error).message}\n${usage}`.trimEnd())
}
const server = new McpServer({ name: 'execd-mcp', version: '0.2.0' })
const close = addTools(server, chosen)
let closing = false

/** The client has gone: what runs ends with the session, unless it is kept. */
async function end(): Promise<void> {
	if (closing) return
	closing = true
	await close()
	await server.close()
	process.exit(0)
}

process.stdin.once('end', () => void end())
process.stdout.once('error', () => void end())
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => void end())
await server.connect(new StdioServerTransport())
