// SPDX-License-Identifier: ISC
/**
 * What messages travel on: a WebSocket over TCP, TLS or a UNIX socket, or the lines of a command. One object is one
 * connection. The program that answers is not trusted.
 */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import * as http from 'node:http'
import * as net from 'node:net'
import * as tls from 'node:tls'
import WebSocket from 'ws'
import type { Endpoint, Server } from './config.js'
import { tlsContext } from './config.js'
import {
	AuthenticationFailed, CertificateRefused, ExecdError, LimitExceeded, ProtocolError, Unreachable,
} from './errors.js'
import { printable } from './values.js'

export const MESSAGE_MAX = 64 << 20 // bytes of a message of the server
const FRAGMENTS_MAX = 65536 // of one message, which Debian 12's ws does not count
const BODY_SHOWN = 200 // bytes of the body of a refusal
const COOKIE_MAX = 255
const CLOSE_GRACE_MS = 2000 // until a connection or a command that was asked to end is ended

/** The server is not there now. `passes`: it may be there soon. `gone`: a proxy has no server for the session. */
export class Refusal extends Unreachable {
	constructor(message: string, readonly passes = false, readonly gone = false) {
		super(message)
		this.name = 'Unreachable'
	}
}

/** Sends and receives whole messages. `ended` is resolved at the end of the connection, and `why` and `fault` say more. */
export abstract class Transport {
	readonly canResume: boolean = true
	readonly ended: Promise<void>
	cookie?: string
	closeCode = 0
	closeReason = ''
	why = 'the connection was closed'
	fault?: ExecdError // what the server did against the rules
	protected isOver = false
	private onEnd!: () => void
	private waiting: string[] = []
	private receive?: (text: string) => void

	constructor() {
		this.ended = new Promise((resolve) => {
			this.onEnd = resolve
		})
	}

	/** Who gets the messages from now on. Nothing is lost before the first one is set. */
	set onMessage(receive: (text: string) => void) {
		this.receive = receive
		for (const text of this.waiting.splice(0)) this.take(text)
	}

	protected take(text: string): void {
		if (this.isOver || this.fault) return
		if (!this.receive) {
			this.waiting.push(text)
			return
		}
		try {
			this.receive(text)
		} catch (e) {
			this.end(e instanceof ExecdError ? e : new ProtocolError(`the client failed: ${e}`, { cause: e }))
		}
	}

	/** The connection is over, for this fault if there is one. */
	protected end(fault?: ExecdError): void {
		this.fault ??= fault
		this.isOver = true
		this.onEnd()
		this.abort()
	}

	abstract send(message: string): void
	/** Asks for a sign of life. */
	abstract ping(): void
	/** Bytes that were received. */
	abstract received(): number
	abstract unsent(): number
	/** While it is paused nothing is read. */
	abstract pause(paused: boolean): void
	abstract close(): Promise<void>
	/** Ends the connection at once. */
	abstract abort(): void
}

// --- a WebSocket ---

class Socket extends Transport {
	constructor(private readonly ws: WebSocket, private readonly socket: net.Socket) {
		super()
		ws.on('message', (data: Buffer) => this.take(data.toString()))
		ws.on('error', (e: NodeJS.ErrnoException) => this.end(faultOf(e) ?? this.because(e)))
		ws.on('close', (code: number, reason: Buffer) => {
			if (code !== 1006 && !this.isOver) {
				this.closeCode = code
				this.closeReason = printable(reason.toString())
				this.why = `the server closed the connection with code ${code}: ${this.closeReason}`.replace(/: $/, '')
			}
			this.end()
		})
	}

	private because(e: Error): undefined {
		this.why = e.message
		return undefined
	}

	send(message: string): void {
		if (this.ws.readyState === WebSocket.OPEN) this.ws.send(message, () => {})
	}

	ping(): void {
		if (this.ws.readyState === WebSocket.OPEN) this.ws.ping(undefined, undefined, () => {})
	}

	received(): number {
		return this.socket.bytesRead
	}

	unsent(): number {
		return this.ws.bufferedAmount
	}

	pause(paused: boolean): void {
		if (this.isOver || this.ws.isPaused === paused) return
		if (paused) this.ws.pause()
		else this.ws.resume()
	}

	async close(): Promise<void> {
		this.isOver = true
		this.pause(false)
		this.ws.close(1000)
		const timer = setTimeout(() => this.abort(), CLOSE_GRACE_MS)
		await this.ended
		clearTimeout(timer)
	}

	abort(): void {
		this.ws.terminate()
	}
}

/** What an error of ws says about the server, or nothing if the connection was only lost. */
function faultOf(e: NodeJS.ErrnoException): ExecdError | undefined {
	if (e.code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH')
		return new LimitExceeded(`the server sent a message of more than ${MESSAGE_MAX} bytes`, MESSAGE_MAX)
	if (e.code === 'WS_ERR_TOO_MANY_BUFFERED_PARTS')
		return new LimitExceeded(`the server sent a message of more than ${FRAGMENTS_MAX} fragments`, FRAGMENTS_MAX)
	return e.code?.startsWith('WS_ERR_')
		? new ProtocolError(`the server broke the rules of WebSocket: ${printable(e.message)}`) : undefined
}

const certificateErrors = /^(CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|ERR_TLS_CERT_|ERROR_IN_CERT|INVALID_CA|HOSTNAME_MISMATCH)/

/** The connection below the WebSocket. */
function dial(at: Endpoint, server: Server, stop: AbortSignal): Promise<net.Socket> {
	const socket = at.kind === 'unix' ? net.connect({ path: at.address })
		: at.kind === 'ws' ? net.connect({ host: at.host, port: at.port })
		: tls.connect({
			host: at.host, port: at.port, secureContext: tlsContext(server), servername: net.isIP(at.host) ? '' : at.host,
		})
	return new Promise((resolve, reject) => {
		const onAbort = () => socket.destroy(stop.reason)
		stop.addEventListener('abort', onAbort, { once: true })
		socket.once(at.kind === 'wss' ? 'secureConnect' : 'connect', () => {
			stop.removeEventListener('abort', onAbort)
			socket.removeAllListeners('error')
			socket.setNoDelay?.(true)
			resolve(socket)
		})
		socket.on('error', (e: NodeJS.ErrnoException) => reject(dialError(e, at, server)))
	})
}

function dialError(e: NodeJS.ErrnoException, at: Endpoint, server: Server): ExecdError {
	if (e instanceof ExecdError) return e
	// Of several addresses node has one error with those of all.
	const one = e instanceof AggregateError ? (e.errors.find((o) => o.code === 'ECONNREFUSED') ?? e.errors[0]) : e
	if (certificateErrors.test(one.code ?? ''))
		return new CertificateRefused(`${server.url}: the server's certificate is refused: ${one.message}`, { cause: e })
	if (/alert/i.test(one.message) && at.kind === 'wss' && /certificate/i.test(one.message))
		return new AuthenticationFailed(`${server.url}: TLS handshake: ${printable(one.message)}`, { cause: e })
	return new Refusal(`${server.url}: connect: ${printable(one.message)}`, one.code === 'ECONNREFUSED')
}

/** The statuses of servers and of the proxies in front of them. */
function refused(response: http.IncomingMessage, body: string, server: Server, pinned: boolean): ExecdError {
	const status = response.statusCode ?? 0
	const said = `(HTTP status ${status}${body ? ': ' : ''}${body})`
	if ([401, 403, 407].includes(status)) {
		const text = server.token !== undefined ? 'the server does not accept the token'
			: 'the server requires a token, and none was given'
		return new AuthenticationFailed(`${server.url}: ${text} ${said}`)
	}
	if (status === 429 || status >= 500) {
		const gone = status === 503 && pinned && response.headers['retry-after'] === undefined
		return new Refusal(`${server.url}: the server is not available ${said}`, status === 429 || status === 503, gone)
	}
	return new ProtocolError(`${server.url}: this is not an exec-server ${said}`)
}

function upgradeError(e: NodeJS.ErrnoException & { rawPacket?: Buffer }, server: Server): ExecdError {
	const hint = /^ws:/i.test(server.url) ? ' (if there is TLS, its address begins with wss://)' : ''
	if (e instanceof ExecdError) return e
	if (e.rawPacket?.[0] === 0x15 && e.rawPacket[1] === 3)
		return new ProtocolError(`${server.url}: the server speaks TLS; its address begins with wss://`)
	if (e.code?.startsWith('HPE_')) return new ProtocolError(`${server.url}: the server does not speak HTTP: ${e.message}`)
	// A server that wants another certificate says so only now (TLS 1.3).
	if (/alert/i.test(e.message)) return new AuthenticationFailed(`${server.url}: ${printable(e.message)}`, { cause: e })
	if (e.code === undefined && !/socket hang up/.test(e.message))
		return new ProtocolError(`${server.url}: the upgrade to WebSocket was answered wrongly: ${printable(e.message)}`)
	return new Refusal(`${server.url}: the connection was closed instead of upgraded${hint}: ${printable(e.message)}`)
}

const pair = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+=("[!#-+\--:<-[\]-~]*"|[!#-+\--:<-[\]-~]*)$/

function cookieOf(response: http.IncomingMessage): string | undefined {
	return (response.headers['set-cookie'] ?? []).map((value) => value.split(';')[0].trim())
		.find((value) => value.length <= COOKIE_MAX && pair.test(value))
}

async function openWebSocket(
	at: Endpoint, server: Server, cookie: string | undefined, pinned: boolean, stop: AbortSignal,
): Promise<Transport> {
	const socket = await dial(at, server, stop)
	const headers: Record<string, string> = {}
	if (server.token !== undefined) headers.Authorization = `Bearer ${server.token}`
	if (cookie !== undefined) headers.Cookie = cookie
	const agent = new http.Agent()
	Object.assign(agent, { createConnection: () => socket })
	const options = { agent, headers, maxPayload: MESSAGE_MAX, maxFragments: FRAGMENTS_MAX, perMessageDeflate: false }
	const ws = new WebSocket(at.request, options as WebSocket.ClientOptions)
	const link = new Socket(ws, socket)
	link.cookie = cookie
	return new Promise((resolve, reject) => {
		stop.addEventListener('abort', () => {
			reject(stop.reason)
			socket.destroy()
		}, { once: true })
		ws.once('upgrade', (response) => {
			link.cookie = cookieOf(response) ?? cookie
		})
		ws.once('unexpected-response', (_request, response) => {
			let body = ''
			const tell = () => {
				reject(refused(response, printable(body, BODY_SHOWN), server, pinned || at.request.includes('?')))
				socket.destroy()
			}
			response.setEncoding('latin1')
			response.on('data', (more: string) => {
				body = (body + more).slice(0, BODY_SHOWN)
			})
			response.on('close', tell).on('end', tell)
		})
		ws.once('open', () => resolve(link))
		ws.once('error', (e) => reject(upgradeError(e, server)))
	})
}

// --- lines ---

/** stdio: a command that is an exec-server. It ends with the connection. */
class Lines extends Transport {
	readonly canResume = false
	private rest: Buffer[] = []
	private size = 0
	private count = 0

	constructor(private readonly child: ChildProcess) {
		super()
		this.why = 'the command ended'
		child.stdin!.on('error', () => {}) // its output tells the end
		child.stdout!.on('data', (data: Buffer) => this.split(data))
		child.stdout!.on('end', () => this.end())
		child.on('error', (e) => {
			this.why = e.message
			this.end()
		})
	}

	private split(data: Buffer): void {
		this.count += data.length
		for (let from = 0, at: number; from < data.length; from = at + 1) {
			at = data.indexOf(10, from)
			if (at < 0) at = data.length
			this.rest.push(data.subarray(from, at))
			this.size += at - from
			if (this.size > MESSAGE_MAX) {
				this.end(new LimitExceeded(`the server sent a line of more than ${MESSAGE_MAX} bytes`, MESSAGE_MAX))
				return
			}
			if (at === data.length) return
			const line = Buffer.concat(this.rest.splice(0)).toString()
			this.size = 0
			if (line.trim()) this.take(line)
		}
	}

	send(message: string): void {
		if (this.child.stdin!.writable) this.child.stdin!.write(`${message}\n`)
	}

	ping(): void {}

	received(): number {
		return this.count
	}

	unsent(): number {
		return this.child.stdin!.writableLength
	}

	pause(paused: boolean): void {
		if (paused) this.child.stdout!.pause()
		else this.child.stdout!.resume()
	}

	async close(): Promise<void> {
		this.isOver = true
		if (this.child.exitCode !== null || this.child.signalCode !== null || this.child.pid === undefined) return
		const over = new Promise((resolve) => this.child.once('exit', resolve))
		this.pause(false)
		this.child.stdin!.end()
		const timer = setTimeout(() => this.abort(), CLOSE_GRACE_MS)
		await over
		clearTimeout(timer)
	}

	abort(): void {
		// A group that has ended is no error.
		try {
			if (this.child.pid !== undefined && this.child.exitCode === null) process.kill(-this.child.pid, 'SIGKILL')
		} catch {
			return
		}
	}
}

function openLines(at: Endpoint): Transport {
	return new Lines(spawn('/bin/sh', ['-c', at.address], { stdio: ['pipe', 'pipe', 'inherit'], detached: true }))
}

/** Connects, within the server's connectTimeoutMs. */
export async function openTransport(
	at: Endpoint, server: Server, cookie: string | undefined, pinned: boolean, stop: AbortSignal,
): Promise<Transport> {
	if (at.kind === 'stdio') return openLines(at)
	const both = new AbortController()
	const onStop = () => both.abort(stop.reason)
	const timer = setTimeout(() => both.abort(
		new Refusal(`${server.url}: no connection within ${server.connectTimeoutMs} ms`)), server.connectTimeoutMs)
	stop.addEventListener('abort', onStop, { once: true })
	try {
		return await openWebSocket(at, server, cookie, pinned, both.signal)
	} finally {
		clearTimeout(timer)
		stop.removeEventListener('abort', onStop)
	}
}
