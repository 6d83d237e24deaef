// SPDX-License-Identifier: ISC
/**
 * One session on a server: requests and their answers, and the connection, which is lost and resumed.
 *
 * A request that may be repeated is sent again on the next connection; any other one that had no answer yet fails with
 * AnswerLost. What processes had not heard they read after a resume (process.ts), so no byte is missing and none comes twice.
 */
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Endpoint, Server } from './config.js'
import { parseUrl } from './config.js'
import {
	AnswerLost, AuthenticationFailed, ConnectionLost, ExecdError, LimitExceeded, MissingCapability, ProtocolError, Refused,
	ServerError, serverError, SessionAttached, SessionLost, SessionTaken, Unreachable,
} from './errors.js'
import { fromUri } from './paths.js'
import type { Transport } from './transport.js'
import { openTransport, Refusal } from './transport.js'
import type { Json } from './values.js'
import { member, optional, printable } from './values.js'

const SEND_MAX = 16 << 20 // bytes of a request: servers take no larger frame
const ID_MAX = 256 // characters of a session's id
const TEXT_MAX = 1 << 16 // characters of an error's text
const RETRY_FIRST_MS = 100
const RETRY_MAX_MS = 1000
const ATTACHED_RETRY_MS = 100 // the server still sees the old connection
const GONE_MS = 1500 // for so long a proxy may say that it has no host for the session
const RESUME_MS = 75_000 // codex exec-server keeps a session for 80 s
const RESUME_MAX_MS = 86_400_000 // a server cannot make its client try for longer
const ATTACHED = -32010
// What a server that is about to end, or takes nobody, answers to initialize. Behind its address there will be another.
const passing = ['the server is shutting down', 'the server takes no new sessions: it is drained by its operator']

/** Doing these twice has the effect of doing them once, as protocol/rpc/methods.def says. The ids of this client protect
 * starts. */
export const again: ReadonlySet<string> = new Set([
	'process/start', 'process/forward', 'process/write',
	'environment/info', 'environment/status', 'process/read', 'process/terminate', 'process/closeStdin', 'process/resize',
	'process/arrived',
	'process/wait', 'process/snapshot', 'fs/watchMissing', 'fs/open', 'fs/readBlock', 'fs/readFile', 'fs/writeFile',
	'fs/getMetadata', 'fs/canonicalize', 'fs/readDirectory', 'fs/walk', 'environmentConfig/read', 'capabilities/discoverV2',
	'capabilityRoots/discoverV1'])

/** Whom notifications of one id belong to. */
export interface Listener {
	event(method: string, params: Json): void
	/** The connection was lost. */
	lost(): void
	/** The session is there again. */
	resumed(): void
	/** The connection is over. */
	failed(error: ExecdError): void
}

// The member that says whom a notification belongs to.
const keys: Record<string, string> = {
	'process/output': 'processId', 'process/exited': 'processId', 'process/closed': 'processId',
	'http/request/bodyDelta': 'requestId', 'fs/changed': 'watchId',
}

interface Call {
	id: number
	method: string
	message: string
	about: string
	inFlight: boolean
	sent: number
	dropped: boolean // nobody waits for its answer any more
	resolve(result: unknown): void
	reject(error: Error): void
}

/** What an error of the operating system is about: a file, or a program and its directory. */
function about(params: Json): string {
	const { argv, cwd, path = params.sourcePath } = params
	const isPath = (uri: unknown): uri is string => typeof uri === 'string' && uri.startsWith('file:///')
	if (Array.isArray(argv) && isPath(cwd)) return printable(`${argv[0]} in ${fromUri(cwd)}`)
	return isPath(path) ? printable(fromUri(path)) : ''
}

export interface ConnectionOptions {
	clientName: string
	session?: string
	watch: boolean
	takeOver: boolean
	resumeTimeoutMs?: number
}

/** The program may not be there any more to ask how it ended: of several requests the first error is enough. */
function handled<T>(answer: Promise<T>): Promise<T> {
	answer.catch(() => {})
	return answer
}

const rejected = (error: Error) => handled(Promise.reject<unknown>(error))

/** Waits of several for the same event. */
export class Signal {
	private waiting: (() => void)[] = []

	fire(): void {
		for (const resolve of this.waiting.splice(0)) resolve()
	}

	wait(): Promise<void> {
		return new Promise((resolve) => this.waiting.push(resolve))
	}
}

export class Connection {
	readonly at: Endpoint
	readonly nonce = randomBytes(8).toString('hex')
	readonly listeners = new Map<unknown, Listener>()
	session?: string
	info: Json = {}
	error?: ExecdError // why it is over
	resumes = 0
	ended = false // session/end was sent
	private count = 0
	private calls = new Map<number, Call>()
	private link?: Transport
	private cookie?: string
	private takenBy?: string
	private attached?: SessionAttached
	private detachedTtlMs = 0
	private stop = new AbortController()
	private crowded = new Set<unknown>()
	private waiting = 0

	constructor(readonly server: Server, readonly options: ConnectionOptions) {
		this.at = parseUrl(server.url)
		this.session = options.session
	}

	// --- what the program asks ---

	can(capability: string): boolean {
		const { capabilities } = this.info
		return typeof capabilities === 'object' && capabilities !== null && (capabilities as Json)[capability] === true
	}

	need(capability: string, what: string): void {
		if (!this.can(capability)) throw new MissingCapability(capability, what)
	}

	number(): number {
		return ++this.count
	}

	/** Unique also among the clients that meet in one session. */
	newId(): string {
		return `${this.nonce}-${this.number()}`
	}

	/** Sends a request, now or when the session is there again. One that is aborted before is not sent. */
	request(method: string, params: Json, signal?: AbortSignal): Promise<unknown> {
		if (this.error) return rejected(this.error)
		const id = this.number()
		const message = JSON.stringify({ id, method, params })
		if (message.length > SEND_MAX || Buffer.byteLength(message) > SEND_MAX)
			return rejected(new LimitExceeded(`${method}: the request is longer than ${SEND_MAX} bytes`, SEND_MAX))
		let call!: Call
		const answer = new Promise<unknown>((resolve, reject) => {
			call = { id, method, message, about: about(params), inFlight: false, sent: 0, dropped: false, resolve, reject }
		})
		this.calls.set(id, call)
		if (signal) this.dropAt(signal, call, answer)
		this.pauseOrNot() // somebody waits for an answer
		if (this.link) this.send(call)
		return handled(answer)
	}

	/** An answer that comes nevertheless is not told. */
	private dropAt(signal: AbortSignal, call: Call, answer: Promise<unknown>): void {
		const onAbort = () => {
			call.dropped = true
			if (!call.inFlight) this.calls.delete(call.id)
			call.reject(signal.reason)
		}
		const done = () => signal.removeEventListener('abort', onAbort)
		signal.addEventListener('abort', onAbort)
		answer.then(done, done)
	}

	async call(method: string, params: Json): Promise<Json> {
		const result = await this.request(method, params)
		return member({ [`result of ${method}`]: result }, `result of ${method}`, 'object')
	}

	/** Sends a request whose answer nobody waits for. */
	tell(method: string, params: Json): void {
		if (!this.error) void this.request(method, params)
	}

	/** While somebody is crowded nothing is read, unless somebody waits for what may come. */
	crowd(who: unknown, crowded: boolean): void {
		if (crowded) this.crowded.add(who)
		else this.crowded.delete(who)
		this.pauseOrNot()
	}

	/** Waits for a signal that a message brings. */
	async wait(signal: Signal): Promise<void> {
		this.waiting++
		this.pauseOrNot()
		await signal.wait()
		this.waiting--
		this.pauseOrNot()
	}

	private isPaused(): boolean {
		return this.crowded.size > 0 && this.calls.size === 0 && this.waiting === 0
	}

	private pauseOrNot(): void {
		this.link?.pause(this.isPaused())
	}

	private send(call: Call): void {
		call.inFlight = true
		call.sent++
		this.link!.send(call.message)
		if (!again.has(call.method)) call.message = ''
	}

	// --- the first connection ---

	/** Within connectTimeoutMs it is tried again where the server is away; nothing has started then. */
	async open(): Promise<void> {
		const deadline = performance.now() + this.server.connectTimeoutMs
		for (let delay = RETRY_FIRST_MS; ; delay = Math.min(2 * delay, RETRY_MAX_MS)) {
			try {
				this.link = await this.connect(true)
				break
			} catch (e) {
				if (!(e instanceof Refusal)) throw e
				if (!e.passes || performance.now() + delay >= deadline) throw new Unreachable(e.message, { cause: e })
			}
			await sleep(delay)
		}
		void this.run(this.link)
	}

	private async connect(first: boolean): Promise<Transport> {
		const pinned = this.session !== undefined && this.cookie !== undefined
		const cookie = this.session === undefined ? undefined : this.cookie
		const link = await openTransport(this.at, this.server, cookie, pinned, this.stop.signal)
		try {
			await this.initialize(link, first)
		} catch (e) {
			link.abort()
			throw first && this.attached && e instanceof Refusal ? this.attached : e
		}
		this.cookie = link.cookie
		return link
	}

	/** Sends initialize, again while another connection has the session, and waits for its answer. */
	private initialize(link: Transport, first: boolean): Promise<void> {
		const params: Json = { clientName: this.options.clientName }
		if (this.session !== undefined) params[this.options.watch ? 'watchSessionId' : 'resumeSessionId'] = this.session
		// Two that take it from each other would never end.
		if (this.options.takeOver && first) params.takeOver = true
		const ask = () => link.send(JSON.stringify({ id: 0, method: 'initialize', params }))
		return new Promise((resolve, reject) => {
			const ms = this.server.initializeTimeoutMs
			const timer = setTimeout(() => reject(
				new Refusal(`${this.server.url}: initialize: no answer within ${ms} ms`)), ms)
			const onStop = () => reject(this.error)
			this.stop.signal.addEventListener('abort', onStop, { once: true })
			const over = (then: () => void) => {
				clearTimeout(timer)
				this.stop.signal.removeEventListener('abort', onStop)
				then()
			}
			void link.ended.then(() => over(() => reject(this.endOfInitialize(link))))
			link.onMessage = (text) => {
				const message = this.parse(text)
				// Notifications of a resumed session may come before it; processes read what they missed anyway.
				if ('method' in message) return
				if (message.id !== 0 && message.id !== -1)
					throw new ProtocolError(`${this.server.url}: the server answered what was not asked`)
				if ('error' in message) {
					const error = this.errorOf('initialize', message)
					if (error.code !== ATTACHED) over(() => reject(this.refused(error)))
					else this.askAgain(error, ask)
					return
				}
				this.takeSession(member(message, 'result', 'object'))
				link.send('{"method":"initialized"}')
				link.onMessage = (more) => this.take(link, this.parse(more))
				over(resolve)
			}
			ask()
		})
	}

	/** The server may still see the connection that was lost. */
	private askAgain(error: ServerError, ask: () => void): void {
		this.attached = new SessionAttached(error.message)
		setTimeout(ask, ATTACHED_RETRY_MS)
	}

	private endOfInitialize(link: Transport): ExecdError {
		const text = `${this.server.url}: ${link.why}`
		if (link.fault) return link.fault
		if (link.closeCode === 1008 && link.closeReason === 'expired websocket jwt') return new AuthenticationFailed(text)
		return new Refusal(text)
	}

	private refused(error: ServerError): ExecdError {
		const text = `${this.server.url}: initialize: ${error.message}`
		if (passing.includes(error.message)) return new Refusal(text, true)
		return this.session !== undefined && error instanceof Refused ? new SessionLost(text) : error
	}

	private takeSession(result: Json): void {
		const session = member(result, 'sessionId', 'string')
		if (this.options.watch && result.watching !== true) throw new MissingCapability('sessionWatch', 'watch')
		if (!session || session.length > ID_MAX)
			throw new ProtocolError('the answer to initialize names no session: this is not an exec-server')
		if (this.session !== undefined && this.session !== session)
			throw new ProtocolError('the server resumed another session')
		this.session = session
		this.info = optional(result, 'environmentInfo', 'object') ?? {}
		this.detachedTtlMs = Math.max(0, optional(result, 'detachedTtl', 'number') ?? 0)
	}

	// --- its life ---

	private async run(link: Transport): Promise<void> {
		try {
			for (;;) {
				const looking = new AbortController()
				if (link.canResume) this.lookForLife(link, looking.signal).catch(() => {})
				await link.ended
				looking.abort()
				if (this.error) return
				if (link.fault) throw link.fault
				this.lose(link)
				link = await this.resume(link.why)
			}
		} catch (e) {
			// A fault of this client, too: nobody may wait for ever.
			this.fail(e instanceof ExecdError ? e : new ConnectionLost(`the client failed: ${e}`, { cause: e }))
		}
	}

	/** After half of the silence timeout the server is asked, and after all of it the connection counts as lost, unless the
	 * network still takes what is sent. */
	private async lookForLife(link: Transport, stop: AbortSignal): Promise<void> {
		const half = this.server.silenceTimeoutMs / 2
		let received = link.received()
		let heard = performance.now()
		for (let asked = false, unsent = 0; ; ) {
			await sleep(half, undefined, { signal: stop, ref: false })
			const paused = this.isPaused() // nothing is read, so this is no silence
			if (link.received() !== received || paused) {
				received = link.received()
				heard = performance.now()
				asked = false
				continue
			}
			if (asked && link.unsent() >= unsent) {
				link.why = `the server sent nothing for ${((performance.now() - heard) / 1000).toFixed(1)} s`
				link.abort()
				return
			}
			asked = true
			unsent = link.unsent()
			link.ping()
		}
	}

	private lose(link: Transport): void {
		this.link = undefined
		const unknown = 'the connection was lost before the answer; whether it was done is unknown'
		for (const call of [...this.calls.values()]) {
			if (call.inFlight && (call.dropped || !again.has(call.method))) {
				this.calls.delete(call.id)
				call.reject(new AnswerLost(`${call.method}: ${unknown}: ${link.why}`))
			}
			call.inFlight = false
		}
		for (const listener of [...this.listeners.values()]) listener.lost()
		const text = `${this.server.url}: ${link.why}`
		if (this.ended || !link.canResume) throw new ConnectionLost(text)
		if (this.takenBy !== undefined)
			throw new SessionTaken(`the session was taken over by another client, ${this.takenBy}`)
		if (link.closeCode === 1011 && link.closeReason.startsWith('session ended: ')) throw new SessionLost(text)
	}

	resumeTimeoutMs(): number {
		return this.options.resumeTimeoutMs ?? Math.max(RESUME_MS, Math.min(this.detachedTtlMs, RESUME_MAX_MS))
	}

	private async resume(why: string): Promise<Transport> {
		const link = await this.reconnect(why)
		if (this.error) {
			link.abort()
			throw this.error
		}
		this.link = link
		this.resumes++
		for (const call of [...this.calls.values()]) this.send(call)
		for (const listener of [...this.listeners.values()]) listener.resumed()
		this.pauseOrNot()
		return link
	}

	private async reconnect(why: string): Promise<Transport> {
		const lost = performance.now()
		let gone: number | undefined
		for (let delay = RETRY_FIRST_MS; ; delay = Math.min(2 * delay, RETRY_MAX_MS)) {
			try {
				return await this.connect(false)
			} catch (e) {
				if (!(e instanceof Unreachable)) throw e
				why = e.message
				const now = performance.now()
				gone = e instanceof Refusal && e.gone ? (gone ?? now) : undefined
				if (gone !== undefined && now >= gone + GONE_MS)
					throw new SessionLost(`the host of the session is gone, says the proxy in front of it: ${why}`, { cause: e })
				const ms = this.resumeTimeoutMs()
				if (now >= lost + ms)
					throw new ConnectionLost(
						`the connection was lost and could not be resumed within ${ms} ms: ${why}`, { cause: e })
			}
			await sleep(delay, undefined, { signal: this.stop.signal })
		}
	}

	/** It is over. */
	private fail(error: ExecdError): void {
		if (this.error) return
		this.error = error
		this.stop.abort(error)
		this.link?.abort()
		for (const call of this.calls.values()) call.reject(error)
		this.calls.clear()
		for (const listener of [...this.listeners.values()]) listener.failed(error)
	}

	/** Leaves the session, which the server keeps until its own timeout. */
	async close(): Promise<void> {
		const { link } = this
		this.link = undefined
		this.fail(new ConnectionLost('the client was closed'))
		await link?.close()
	}

	// --- messages ---

	private parse(text: string): Json {
		let message: unknown
		try {
			message = JSON.parse(text)
		} catch (e) {
			throw new ProtocolError(`${this.server.url}: the server sent what is no message: ` +
				`${JSON.stringify(printable(text))} (${printable((e as Error).message)})`)
		}
		return member({ message }, 'message', 'object')
	}

	private take(link: Transport, message: Json): void {
		if (this.error) return
		if (!('method' in message)) this.answer(message)
		else if ('id' in message) this.refuse(link, message)
		else this.notification(member(message, 'method', 'string'), optional(message, 'params', 'object') ?? {})
		this.pauseOrNot()
	}

	/** What a server asks its client. An error is a no to network/policyRequest. */
	private refuse(link: Transport, request: Json): void {
		const error = { code: -32601, message: 'this client answers no requests' }
		link.send(JSON.stringify({ id: request.id, error }))
	}

	private errorOf(method: string, message: Json, about?: string): ServerError {
		const error = member(message, 'error', 'object')
		const text = member(error, 'message', 'string').slice(0, TEXT_MAX)
		return serverError(method, member(error, 'code', 'number'), text, error.data, about)
	}

	private answer(message: Json): void {
		const { id } = message
		const at = this.server.url
		if (id === -1 && 'error' in message)
			throw new ProtocolError(`${at}: the server could not read a message: ${this.errorOf('', message).message}`)
		const call = this.calls.get(id as number)
		if (!call?.inFlight)
			throw new ProtocolError(`${at}: the server answered ${printable(String(id), 40)}, which was not asked`)
		if ('result' in message === 'error' in message)
			throw new ProtocolError(`${at}: the answer to ${call.method} is neither a result nor an error`)
		const error = 'error' in message ? this.errorOf(call.method, message, call.about) : undefined
		this.calls.delete(call.id)
		const starts = call.method === 'process/start' || call.method === 'process/forward'
		if (!error) call.resolve(message.result)
		// An earlier one has arrived; the id has this client's nonce.
		else if (call.sent > 1 && starts && error.message.includes('already exists')) call.resolve({})
		else call.reject(error)
	}

	private notification(method: string, params: Json): void {
		if (method === 'session/takenOver') this.takenBy = printable(optional(params, 'by', 'string') ?? '')
		if (method === 'session/lagged') for (const listener of [...this.listeners.values()]) listener.resumed()
		if (!Object.hasOwn(keys, method)) return
		const key = params[keys[method]]
		const owner = this.listeners.get(key)
		if (owner) owner.event(method, params)
		else if (this.options.session === undefined && !this.wasOurs(key))
			throw new ProtocolError(
				`${this.server.url}: ${method} of ${printable(String(key), 40)}, which this client does not know`)
	}

	/** Whether this client once had it. In a session of its own there is nothing else. */
	private wasOurs(key: unknown): boolean {
		const number = typeof key === 'string' && key.startsWith(`${this.nonce}-`) && /^\d{1,16}$/.test(key.slice(17))
			? Number(key.slice(17)) : key
		return Number.isInteger(number) && (number as number) > 0 && (number as number) <= this.count
	}
}
