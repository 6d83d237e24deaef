// SPDX-License-Identifier: ISC
/** The tools of execd-mcp. The profile of all of them is fixed by whoever starts it, and no argument of a tool changes it. */
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { z } from 'zod'
import type { Box, StartOptions } from './box.js'
import type { News } from './command.js'
import { Command } from './command.js'
import { ExecdError } from './errors.js'
import type { Files } from './files.js'
import { toUri } from './paths.js'
import type { Sandbox } from './sandbox.js'
import { context } from './sandbox.js'

const COMMANDS_MAX = 256 // that run, or have output that nobody read
const CALLS_MAX = 64 // at once
const WAIT_MS = 30_000 // that a call waits unless told otherwise: less than clients do
const WAIT_MAX_MS = 3_600_000
const OUTPUT_CHARACTERS = 65536 // of one answer
const READ_MAX = 16 << 20 // bytes of a file that is read or edited
const LIST_MAX = 10_000 // names of one answer
const LINE_MAX = 1000 // characters of a line that search found
const PROGRESS_MS = 500 // between two notifications

export interface Settings {
	connect(): Promise<Box>
	/** The workspace; the home directory of the server unless given. */
	cwd?: string
	/** undefined: none, as the operator permits. */
	sandbox?: 'read-only' | 'workspace-write'
	network: boolean
}

interface Extra {
	signal: AbortSignal
	_meta?: { progressToken?: string | number }
	sendNotification(n: { method: 'notifications/progress'; params: {
		progressToken: string | number; progress: number; message?: string } }): Promise<void>
}

const news = {
	id: z.string(), running: z.boolean(), stdout: z.string(), stderr: z.string(), more: z.boolean(), droppedBytes: z.number(),
	exitCode: z.number().optional(), signal: z.string().optional(), timedOut: z.boolean().optional(),
	sandboxDenied: z.boolean().optional(), killedBy: z.string().optional(),
}
const waitMs = z.number().int().min(0).max(WAIT_MAX_MS).default(WAIT_MS).describe('How long the call waits, in milliseconds')
const id = z.string().describe('The id that run answered')
const path = z.string().describe('A path of the server; one that is not absolute begins at the workspace')

/** A session, and its commands. When it is lost the next call begins another one. */
class Host {
	private session?: Promise<Box>
	private commands = new Map<string, Command>()
	calls = 0

	constructor(private readonly settings: Settings) {}

	async box(): Promise<Box> {
		const before = await this.session?.catch(() => undefined)
		if (before && !before.over) return before
		if (before) this.commands.clear()
		this.session = this.settings.connect()
		return this.session
	}

	cwd(box: Box): string {
		const given = this.settings.cwd ?? box.home
		return given.startsWith('/') ? given : `${box.home}/${given}`
	}

	path(box: Box, name: string): string {
		return name.startsWith('/') ? name : name === '.' ? this.cwd(box) : `${this.cwd(box)}/${name}`
	}

	/** The workspace of the profile is that of whoever started this program, wherever a command runs. */
	private profile(box: Box, network: boolean): Sandbox | undefined {
		const { sandbox } = this.settings
		return sandbox && context(sandbox, toUri(this.cwd(box), box.home), network)
	}

	files(box: Box): Files {
		const profile = this.profile(box, false)
		return profile ? box.sandboxed(profile) : box.files
	}

	async start(box: Box, argv: string | string[], options: StartOptions): Promise<Command> {
		const cwd = options.cwd === undefined ? this.cwd(box) : this.path(box, options.cwd)
		const sandbox = this.profile(box, this.settings.network)
		return new Command(await box.start(argv, { ...options, cwd, ...(sandbox ? { sandbox } : {}) }))
	}

	async keep(command: Command): Promise<Command> {
		if (this.commands.size >= COMMANDS_MAX) {
			await command.process.terminate()
			throw new ExecdError(`${COMMANDS_MAX} commands run or have output that was not read: the command was killed`)
		}
		this.commands.set(command.process.id, command)
		return command
	}

	/** One of this program, or of a session that it resumed. */
	async find(name: string): Promise<Command> {
		const box = await this.box()
		const known = this.commands.get(name)
		if (known) return known
		const there = box.can('processList') ? await box.processes() : []
		if (!there.some((p) => p.processId === name)) throw new ExecdError(`there is no command ${JSON.stringify(name)}`)
		return this.keep(new Command(await box.attach(name)))
	}

	/** What is new. A command of which everything was told is forgotten. */
	tell(command: Command): News {
		const said = command.take(OUTPUT_CHARACTERS)
		if (command.isDone) this.commands.delete(command.process.id)
		return said
	}

	async close(): Promise<void> {
		await (await this.session?.catch(() => undefined))?.close()
	}
}

function progressOf(command: Command, extra: Extra): (() => void) | undefined {
	const token = extra._meta?.progressToken
	if (token === undefined) return undefined
	let last = -Infinity
	return () => {
		if (performance.now() < last + PROGRESS_MS) return
		last = performance.now()
		const params = { progressToken: token, progress: command.bytes, message: `${command.bytes} bytes of output` }
		extra.sendNotification({ method: 'notifications/progress', params }).catch(() => {}) // the client has gone
	}
}

type Answer = { content: { type: 'text'; text: string }[]; structuredContent?: Record<string, unknown>; isError?: boolean }

const plain = (value: object): Record<string, unknown> =>
	Object.fromEntries(Object.entries(value).filter(([, v]) => v !== undefined))

/** Registers all tools; returns what ends the session. */
export function addTools(server: McpServer, settings: Settings): () => Promise<void> {
	const host = new Host(settings)

	/** An error of the server or of the arguments is the tool's answer. */
	const tool = <Shape extends z.ZodRawShape>(
		name: string, description: string, inputSchema: Shape, outputSchema: z.ZodRawShape, readOnly: boolean,
		work: (given: z.infer<z.ZodObject<Shape>>, extra: Extra) => Promise<object>,
	) => {
		const answer = async (given: unknown, extra: unknown): Promise<Answer> => {
			if (host.calls >= CALLS_MAX)
				return { content: [{ type: 'text', text: `more than ${CALLS_MAX} calls at once` }], isError: true }
			host.calls++
			try {
				const said = plain(await work(given as z.infer<z.ZodObject<Shape>>, extra as Extra))
				return { content: [{ type: 'text', text: JSON.stringify(said) }], structuredContent: said }
			} catch (e) {
				if (!(e instanceof ExecdError || e instanceof TypeError || e instanceof RangeError)) throw e
				return { content: [{ type: 'text', text: `${e.name}: ${e.message}` }], isError: true }
			} finally {
				host.calls--
			}
		}
		const about = { description, inputSchema, outputSchema, annotations: { readOnlyHint: readOnly } }
		server.registerTool(name, about as never, answer as never)
	}

	tool('run', 'Runs a shell command. If it ends in time, the answer has its exitCode and output. Otherwise it runs on, and ' +
		'output, wait and kill take its id.', {
		command: z.string().describe('For /bin/sh'), cwd: path.optional(), input: z.string().optional(),
		env: z.record(z.string(), z.string()).optional(),
		timeoutMs: z.number().int().min(1).optional().describe('After this time it is killed'), waitMs,
	}, news, false, async ({ command: script, cwd, input, env, timeoutMs, waitMs: ms }, extra) => {
		const box = await host.box()
		extra.signal.throwIfAborted()
		const options = plain({ cwd, env, timeoutMs, stdin: input !== undefined, signal: extra.signal }) as StartOptions
		const command = await host.keep(await host.start(box, script, options))
		if (input !== undefined) // a command that reads no more is no error
			void command.process.write(input).then(() => command.process.closeStdin()).catch(() => {})
		await command.wait(ms, () => false, extra.signal, progressOf(command, extra))
		return host.tell(command)
	})

	tool('output', 'Waits for new output of a command, and answers it. Each byte is answered once.', { id, waitMs }, news, true,
		async ({ id: name, waitMs: ms }, extra) => {
			const command = await host.find(name)
			await command.wait(ms, () => command.hasNews, extra.signal, progressOf(command, extra))
			return host.tell(command)
		})

	tool('wait', 'Waits for the end of a command, and answers its output so far.', { id, waitMs }, news, true,
		async ({ id: name, waitMs: ms }, extra) => {
			const command = await host.find(name)
			await command.wait(ms, () => false, extra.signal, progressOf(command, extra))
			return host.tell(command)
		})

	tool('kill', 'Kills a command and all that it started, or sends it a signal.', {
		id, signal: z.string().optional().describe('Such as INT or TERM'),
	}, { id: z.string() }, false, async ({ id: name, signal }) => {
		const { process } = await host.find(name)
		await (signal === undefined ? process.terminate() : process.kill(signal))
		return { id: name }
	})

	tool('read', 'Reads a file of text, or some of its lines.', {
		path, firstLine: z.number().int().min(1).default(1), lines: z.number().int().min(1).max(100_000).default(2000),
	}, { text: z.string(), totalLines: z.number() }, true, async ({ path: name, firstLine, lines }) => {
		const box = await host.box()
		const all = (await host.files(box).readText(host.path(box, name), { maxBytes: READ_MAX })).split(/(?<=\n)/)
		return { text: all.slice(firstLine - 1, firstLine - 1 + lines).join(''), totalLines: all[0] === '' ? 0 : all.length }
	})

	tool('write', 'Creates a file, or replaces its content.', { path, text: z.string() }, { bytes: z.number() }, false,
		async ({ path: name, text }) => {
			const box = await host.box()
			await host.files(box).write(host.path(box, name), text)
			return { bytes: Buffer.byteLength(text) }
		})

	tool('edit', 'Replaces a text in a file. It must be there exactly once, unless all is true.', {
		path, old: z.string().min(1), new: z.string(), all: z.boolean().default(false),
	}, { replaced: z.number() }, false, async ({ path: name, old, new: text, all }) => {
		const box = await host.box()
		const files = host.files(box), file = host.path(box, name)
		const parts = (await files.readText(file, { maxBytes: READ_MAX })).split(old)
		const count = parts.length - 1
		if (count === 0 || (count > 1 && !all)) throw new RangeError(`old: it is there ${count} times, and nothing was changed`)
		await files.write(file, parts.join(text))
		return { replaced: count }
	})

	tool('list', 'Lists a directory.', { path: path.default('.') }, {
		entries: z.array(z.object({ name: z.string(), kind: z.string(), size: z.number().optional() })), more: z.boolean(),
	}, true, async ({ path: name }) => {
		const box = await host.box()
		const all = await host.files(box).listdir(host.path(box, name))
		const entries = all.slice(0, LIST_MAX).map((e) => plain({
			name: e.name, size: e.size, kind: e.isSymlink ? 'link' : e.isDir ? 'directory' : e.isFile ? 'file' : 'other',
		}))
		return { entries, more: all.length > LIST_MAX }
	})

	tool('search', 'Searches files of text below a path for an extended regular expression (grep -E).', {
		pattern: z.string().min(1), path: path.default('.'),
		glob: z.string().optional().describe('Only files whose name matches, such as *.c'),
		maxMatches: z.number().int().min(1).max(1000).default(100),
	}, {
		matches: z.array(z.object({ path: z.string(), line: z.number(), text: z.string() })), more: z.boolean(),
	}, true, async ({ pattern, path: name, glob, maxMatches }, extra) => {
		const box = await host.box()
		const only = glob === undefined ? [] : [`--include=${glob}`]
		const argv = ['grep', '-rnIZE', ...only, '-e', pattern, '--', host.path(box, name)]
		const grep = await host.start(box, argv, { signal: extra.signal, env: { LC_ALL: 'C.UTF-8' } })
		return searchOf(grep, maxMatches, extra.signal)
	})

	return () => host.close()
}

/** The lines of grep: the name, a NUL byte, the number, a colon and the text. */
async function searchOf(grep: Command, max: number, stop: AbortSignal): Promise<object> {
	const matches: { path: string; line: number; text: string }[] = []
	let rest = '', errors = ''
	for (let over = false; !over && matches.length <= max; ) {
		await grep.wait(WAIT_MAX_MS, () => grep.hasNews, stop)
		const said = grep.take(Infinity)
		over = !said.running
		errors = (errors + said.stderr).slice(0, 2000)
		const lines = (rest + said.stdout).split('\n')
		rest = lines.pop()!.slice(0, 1 << 20)
		for (const line of lines) {
			const found = /^([^\0]*)\0(\d+):(.*)$/s.exec(line)
			if (found) matches.push({ path: found[1], line: Number(found[2]), text: found[3].slice(0, LINE_MAX) })
		}
		// 1 says that there is none, and 2 may be a file that cannot be read.
		if (over && said.exitCode! > 1 && !matches.length) throw new ExecdError(`grep: ${errors.trim()}`)
	}
	if (!grep.over) await grep.process.terminate()
	return { matches: matches.slice(0, max), more: matches.length > max }
}
