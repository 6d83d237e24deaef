// SPDX-License-Identifier: ISC
// The loop of an agent: a model asks for tools, and they act on the server, in a sandbox. node agent_loop.js DIRECTORY
//
// The model here is a list of what it says; a real one gets the results and answers with the next call.
import { connect, LimitExceeded, ServerError } from 'execd-client'

const script = [
	['write', { path: 'sum.py', text: 'print(sum([1, 2, 3]))\n' }],
	['run', { command: 'python3 sum.py' }],
	['run', { command: 'touch /etc/passwd' }], // the sandbox refuses it
	['run', { command: 'sleep 1000', timeoutMs: 200 }],
	['read', { path: 'missing' }],
]

/** What a tool answers. An error of the server is an answer, too; a lost session ends the loop. */
async function act(box, directory, tool, given) {
	const files = box.sandboxed('workspace-write', directory)
	try {
		if (tool === 'write') {
			await files.write(`${directory}/${given.path}`, given.text)
			return { ok: true }
		}
		if (tool === 'read') return { text: await files.readText(`${directory}/${given.path}`, { maxBytes: 100_000 }) }
		const { timeoutMs = 60_000 } = given
		const r = await box.run(given.command, { cwd: directory, sandbox: 'workspace-write', timeoutMs })
		return { exitCode: r.exitCode, stdout: r.stdout.slice(-4000), denied: r.sandboxDenied, timedOut: r.timedOut }
	} catch (e) {
		if (!(e instanceof ServerError || e instanceof LimitExceeded)) throw e
		return { error: e.message, class: e.name }
	}
}

const box = await connect()
for (const [tool, given] of script) console.log(tool, JSON.stringify(await act(box, process.argv[2], tool, given)))
await box.close()
