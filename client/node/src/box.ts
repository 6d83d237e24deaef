// SPDX-License-Identifier: ISC
/** The surface: a session on a server. */
import { findServer } from './config.js'
import { Connection } from './connection.js'
import { CommandFailed, ExecdError, ProtocolError, StdinClosed } from './errors.js'
import { Files } from './files.js'
import { Forward } from './forward.js'
import type { HttpOptions, HttpResponse } from './http.js'
import { checkRequest, HttpStream, request } from './http.js'
import { fromUri, toUri } from './paths.js'
import type { Result } from './process.js'
import { collect, Process, processId } from './process.js'
import type { Sandbox } from './sandbox.js'
import { checkSandbox, context } from './sandbox.js'
import type { Bytes, Json } from './values.js'
import {
	check, checkBytes, checkEnv, checkMs, checkOptions, checkRange, checkText, checkTexts, member, optional,
} from './values.js'
import { Watch } from './watch.js'

const OUTPUT_MAX = 64 << 20 // bytes that run() returns, unless told otherwise
const LISTED_MAX = 100_000 // sessions or processes
const terminal = { rows: 24, cols: 80 }

/** A string is for /bin/sh; a list is the program and its arguments. */
export type Command = string | string[]

export interface StartOptions {
	/** The home directory unless given. */
	cwd?: string
	env?: Record<string, string>
	/** What is taken of the server's environment: core unless given. */
	inherit?: 'core' | 'all' | 'none'
	/** Whether it has input. run() says so by `input`. */
	stdin?: boolean
	tty?: boolean | { rows: number; cols: number }
	term?: string
	sandbox?: Sandbox
	/** Whether a command in a profile has the network. */
	network?: boolean
	allowHosts?: string[]
	timeoutMs?: number
	/** The command waits in place of losing output while there is no connection, and while nobody reads. */
	waitOutput?: boolean
	/** Kills the command; whoever waits for it gets the reason. */
	signal?: AbortSignal
}

export interface RunOptions extends Omit<StartOptions, 'stdin'> {
	input?: Bytes
	/** Any other exit code than 0 is CommandFailed. */
	check?: boolean
	/** Bytes of output that it may have. */
	maxOutput?: number
}

const startOptions = ['cwd', 'env', 'inherit', 'stdin', 'tty', 'term', 'sandbox', 'network', 'allowHosts', 'timeoutMs',
	'waitOutput', 'signal']

export interface ConnectOptions {
	url?: string
	token?: string
	/** A name in environments.conf. */
	environment?: string
	tokenFile?: string
	ca?: string
	certificate?: string
	key?: string
	/** Resumes a session by its id. */
	session?: string
	/** Only looks at the session. */
	watch?: boolean
	/** Takes the session from another client. */
	takeOver?: boolean
	clientName?: string
	connectTimeoutMs?: number
	initializeTimeoutMs?: number
	resumeTimeoutMs?: number
	silenceTimeoutMs?: number
}

const textOptions = ['token', 'environment', 'tokenFile', 'ca', 'certificate', 'key', 'session'] as const
const timeOptions = ['connectTimeoutMs', 'initializeTimeoutMs', 'resumeTimeoutMs', 'silenceTimeoutMs'] as const

/** Connects to a server: that of `url`, or of `environment`, or the one that execctl(1) would use. */
export async function connect(url?: string | ConnectOptions, options?: ConnectOptions): Promise<Box> {
	const given: ConnectOptions = typeof url === 'object' ? url : { ...options, ...(url === undefined ? {} : { url }) }
	checkOptions('connect', given,
		['url', 'watch', 'takeOver', 'clientName', ...textOptions, ...timeOptions])
	for (const name of ['url', ...textOptions] as const) if (given[name] !== undefined) checkText(name, given[name])
	const { watch = false, takeOver = false, clientName = 'execd-node' } = given
	checkText('clientName', clientName)
	check('watch', watch, 'boolean')
	check('takeOver', takeOver, 'boolean')
	if (given.url !== undefined && given.environment !== undefined)
		throw new RangeError('url and environment exclude each other')
	if (given.token !== undefined && given.tokenFile !== undefined)
		throw new RangeError('token and tokenFile exclude each other')
	if (given.session === undefined && (watch || takeOver)) throw new RangeError('watch and takeOver need session')
	const times: Record<string, number> = {}
	for (const name of timeOptions) if (given[name] !== undefined) times[name] = checkMs(name, given[name])
	const { resumeTimeoutMs, ...serverTimes } = times
	const server = findServer(given.url, given.environment, given.token, given.tokenFile)
	for (const name of ['ca', 'certificate', 'key'] as const) server[name] = given[name] ?? server[name]
	const connection = new Connection(
		Object.assign(server, serverTimes), { clientName, session: given.session, watch, takeOver, resumeTimeoutMs })
	await connection.open()
	return new Box(connection)
}

/** A session on a server. */
export class Box {
	readonly files: Files
	private kept = false

	constructor(private readonly connection: Connection) {
		this.files = new Files(connection, this.home)
	}

	// --- what it is ---

	get sessionId(): string {
		return this.connection.session!
	}

	/** environmentInfo of the server. */
	get info(): Json {
		return this.connection.info
	}

	get home(): string {
		const uri = this.connection.info.userHomeDir
		return typeof uri === 'string' ? fromUri(uri) : '/'
	}

	/** How often the connection was lost and resumed. */
	get resumes(): number {
		return this.connection.resumes
	}

	/** Whether the client was closed, or its session is lost. */
	get over(): boolean {
		return this.connection.error !== undefined
	}

	can(capability: string): boolean {
		check('capability', capability, 'string')
		return this.connection.can(capability)
	}

	// --- commands ---

	/** Checks all of it. */
	private startParams(command: Command, options: StartOptions): Json {
		checkOptions('start', options, startOptions)
		const { inherit = 'core', stdin = false, tty = false, term = 'xterm', sandbox, network = false, signal } = options
		const argv = typeof command === 'string' ? ['/bin/sh', '-c', checkText('command', command)]
			: checkTexts('command', command)
		if (!argv.length || !argv[0]) throw new RangeError('command: it is empty')
		const cwd = toUri(options.cwd ?? this.home, this.home)
		const env = options.env === undefined ? {} : checkEnv(options.env)
		if (!['core', 'all', 'none'].includes(inherit))
			throw new RangeError(`inherit: ${JSON.stringify(inherit)} is neither core nor all nor none`)
		check('stdin', stdin, 'boolean')
		check('tty', tty, 'boolean', 'object')
		check('network', network, 'boolean')
		checkText('term', term)
		checkSandbox(sandbox, network)
		if (signal !== undefined && !(signal instanceof AbortSignal)) throw new TypeError('signal: expected AbortSignal')
		const params: Json = { argv, cwd, env, tty: tty !== false, pipeStdin: stdin }
		if (inherit !== 'none')
			params.envPolicy = { inherit, ignoreDefaultExcludes: true, exclude: [], set: {}, includeOnly: [] }
		if (tty) {
			env.TERM ??= term
			this.addSize(params, tty === true ? terminal : tty)
		}
		if (options.timeoutMs !== undefined) {
			params.timeoutMs = checkMs('timeoutMs', options.timeoutMs)
			this.connection.need('processTimeout', 'timeoutMs')
		}
		if (sandbox !== undefined) params.sandbox = context(sandbox, cwd, network)
		if (options.allowHosts !== undefined) {
			params.network = { allow: checkTexts('allowHosts', options.allowHosts) }
			this.connection.need('processNetwork', 'allowHosts')
		}
		return params
	}

	private addSize(params: Json, { rows, cols }: { rows: number; cols: number }): void {
		checkRange('rows', rows, 1, 65535)
		checkRange('cols', cols, 1, 65535)
		if (rows === terminal.rows && cols === terminal.cols) return
		this.connection.need('processResize', 'a terminal of another size')
		Object.assign(params, { rows, cols })
	}

	/** Starts a command. While there is no connection the server retains the newest of its output, 1 MiB unless told
	 * otherwise; OutputLost says what fell out. With waitOutput nothing does. */
	async start(command: Command, options: StartOptions = {}): Promise<Process> {
		const params = this.startParams(command, options)
		const { waitOutput = false, signal } = options
		check('waitOutput', waitOutput, 'boolean')
		signal?.throwIfAborted()
		const pulls = waitOutput && this.connection.can('processRetentionWait')
		const process = new Process(this.connection, this.connection.newId(), pulls, signal)
		params.processId = process.id
		if (this.connection.can('processStartId')) params.startId = process.id
		if (pulls) params.retention = { wait: true }
		await process.start('process/start', params)
		if (options.sandbox !== undefined && process.sandboxType === 'none') {
			await process.terminate()
			throw new ProtocolError('the server reports no sandbox, and one was asked for: the command was killed')
		}
		return process
	}

	/** Runs a command to its end. */
	async run(command: Command, options: RunOptions = {}): Promise<Result> {
		checkOptions('run', options, [...startOptions.filter((n) => n !== 'stdin'), 'input', 'check', 'maxOutput'])
		const { input, check: checks = false, maxOutput = OUTPUT_MAX, ...more } = options
		check('check', checks, 'boolean')
		checkRange('maxOutput', maxOutput, 0, Number.MAX_SAFE_INTEGER)
		const data = input === undefined ? undefined : checkBytes('input', input)
		if (data) this.connection.need('processCloseStdin', 'input')
		const process = await this.start(command, { ...more, stdin: data !== undefined })
		try {
			const feeding = data && this.feed(process, data)
			const result = await collect(process, maxOutput)
			await feeding
			if (checks && result.exitCode !== 0) throw new CommandFailed(result)
			return result
		} finally {
			// It wrote too much, or its input could not be given.
			if (!process.closed) this.connection.tell('process/terminate', { processId: process.id })
		}
	}

	/** A command that reads no more is no error, as `yes | head -1` has it; nor is one that has ended. */
	private feed(process: Process, data: Buffer): Promise<void> {
		const work = process.write(data).then(() => process.closeStdin())
		const quiet = work.catch((e) => {
			if (!(e instanceof StdinClosed) && !process.closed) throw e
		})
		quiet.catch(() => {}) // collect() may have failed first
		return quiet
	}

	/** A command of this session that an earlier client started: all that is retained of its output, and what follows.
	 * `waitOutput` is what start() was told. */
	async attach(id: string, { waitOutput = false } = {}): Promise<Process> {
		checkText('id', id)
		check('waitOutput', waitOutput, 'boolean')
		const process = new Process(this.connection, id, waitOutput && this.connection.can('processRetentionWait'))
		process.attach()
		return process
	}

	/** What the session has, as process/list says it. */
	async processes(): Promise<Json[]> {
		this.connection.need('processList', 'processes()')
		return this.pages('process/list', 'processes')
	}

	private async pages(method: string, name: string): Promise<Json[]> {
		const found: unknown[] = []
		for (let after = -1; ; ) {
			const said = await this.connection.call(method, after < 0 ? {} : { after })
			found.push(...member(said, name, 'array'))
			const next = optional(said, 'next', 'number')
			if (next === undefined) return found as Json[]
			if (next <= after || found.length > LISTED_MAX) throw new ProtocolError(`the server's ${method} does not end`)
			after = next
		}
	}

	// --- files, ports, HTTP, changes ---

	/** The files as a command in this sandbox would see them. `cwd` is the workspace. */
	sandboxed(sandbox: Sandbox, cwd?: string): Files {
		check('sandbox', sandbox, 'string', 'object')
		checkSandbox(sandbox, false)
		return new Files(this.connection, this.home, context(sandbox, toUri(cwd ?? this.home, this.home), false))
	}

	/** A byte stream to a port on the loopback of the command `of`, or of the server's host: write() sends, what comes is its
	 * output, and it exits with 0 when the other side has hung up. */
	async openPort(port: number, { of }: { of?: Process | string } = {}): Promise<Process> {
		checkRange('port', port, 1, 65535)
		const params: Json = of === undefined ? { port } : { port, of: processId('of', of) }
		this.connection.need('processForward', 'openPort()')
		const process = new Process(this.connection, this.connection.newId(), false)
		await process.start('process/forward', { ...params, processId: process.id })
		return process
	}

	/** Listens on a port of 127.0.0.1 here (0: any; see .port), and connects whoever comes to that port there. */
	async forward(port: number, { localPort = 0, of }: { localPort?: number; of?: Process | string } = {}): Promise<Forward> {
		checkRange('port', port, 1, 65535)
		checkRange('localPort', localPort, 0, 65535)
		if (of !== undefined) processId('of', of)
		this.connection.need('processForward', 'forward()')
		const forward = new Forward(() => this.openPort(port, { of }))
		await forward.open(localPort)
		return forward
	}

	/** A request that the server makes. Every status is a response. */
	async http(method: string, url: string, options: HttpOptions = {}): Promise<HttpResponse> {
		return request(this.connection, checkRequest(method, url, options), options.maxBytes)
	}

	/** Likewise, and the body comes in pieces. */
	async httpStream(method: string, url: string, options: Omit<HttpOptions, 'maxBytes'> = {}): Promise<HttpStream> {
		const stream = new HttpStream(this.connection)
		await stream.open(checkRequest(method, url, options))
		return stream
	}

	/** Changes of a file, or of a directory and the names in it. */
	async watch(path: string): Promise<Watch> {
		const uri = toUri(path, this.home)
		this.connection.need('fsWatch', 'watch()')
		const watch = new Watch(this.connection, fromUri(uri), uri)
		await watch.open()
		return watch
	}

	// --- the session ---

	/** Asks that the session is kept for so long without a client; whileRunning also as long as a command runs. Returns what
	 * was granted. Then close() leaves it there. 0 without whileRunning ends it. */
	async keep(ms: number, { whileRunning = false } = {}): Promise<Json> {
		check('whileRunning', whileRunning, 'boolean')
		const keepMs = ms === 0 ? 0 : checkMs('ms', ms)
		this.connection.need('sessionKeep', 'keep()')
		const granted = await this.connection.call('session/keep', { keepMs, whileRunning })
		this.kept = keepMs > 0 || whileRunning
		return granted
	}

	/** The sessions of this identity, as session/list says them. */
	async sessions(): Promise<Json[]> {
		this.connection.need('sessionList', 'sessions()')
		return this.pages('session/list', 'sessions')
	}

	/** Ends the session and everything in it, and closes the client. */
	async end(): Promise<void> {
		this.connection.need('sessionEnd', 'end()')
		this.connection.ended = true
		try {
			await this.connection.call('session/end', {})
		} finally {
			await this.connection.close()
		}
	}

	/** Closes the client. The server keeps the session until its own timeout, or as keep() asked. */
	async detach(): Promise<void> {
		await this.connection.close()
	}

	/** Ends the session if it is this client's own and not kept, and else leaves it. */
	async close(): Promise<void> {
		const own = this.connection.options.session === undefined && !this.kept
		if (own && !this.over && this.connection.can('sessionEnd'))
			await this.end().catch((e) => {
				if (!(e instanceof ExecdError)) throw e // a lost session has ended
			})
		await this.connection.close()
	}
}
