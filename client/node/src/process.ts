// SPDX-License-Identifier: ISC
/**
 * A command on the server: its output in order and every byte once, its input, its signals and its end.
 *
 * The server pushes events with numbers, and what is missing after a resume is read then. With waitOutput (a server with
 * processRetentionWait) all output is asked for: the command waits while nobody reads, however long, and nothing is lost.
 */
import type { Connection, Listener } from './connection.js'
import { Signal } from './connection.js'
import {
	ExecdError, InvalidParams, LimitExceeded, OutputLost, OutputUnread, ProcessLost, ProtocolError, ServerError, StdinClosed,
} from './errors.js'
import type { Bytes, Json } from './values.js'
import { checkBytes, checkMs, checkRange, checkText, fromBase64, member, optional } from './values.js'

const READ_MAX = 1 << 20 // bytes of output that one answer may have, about
const ASKED_MAX = 1 << 20 // bytes that wait here until more is asked for
const PUSHED_MAX = 8 << 20 // bytes that wait here until nothing more is read from the connection
const QUEUED_MAX = 64 << 20 // bytes that may wait here at all
const HELD_MAX = 64 << 20 // bytes that came before what is missing
const NO_NEWS_MAX = 1000 // answers in a row that say nothing
const WRITE_BYTES = 256 << 10 // of one process/write
const WRITES_MAX = 8 // under way
const EVENT_BYTES = 200 // what an event costs besides its output
const FOREVER_MS = Number.MAX_SAFE_INTEGER

const streams: Record<string, Output['stream']> = { stdout: 'stdout', stderr: 'stderr', pty: 'terminal' }

/** A piece of output. */
export interface Output {
	stream: 'stdout' | 'stderr' | 'terminal'
	data: Buffer
}

/** How a command ended. `exitCode` is its status, or 128+n for signal n. `details` is all that the server says. */
export interface Exit {
	exitCode: number
	sandboxDenied: boolean
	timedOut: boolean
	oomKilled: boolean
	signal?: string
	killedBy?: string
	limit?: string
	forksDenied: number
	networkDenied: unknown[]
	details: Json
}

export interface Result extends Exit {}

/** What run() returns. The texts are the bytes as UTF-8, with U+FFFD for what is none. */
export class Result {
	constructor(how: Exit, readonly stdoutBytes: Buffer, readonly stderrBytes: Buffer, readonly sandboxType: string) {
		Object.assign(this, how)
	}

	get stdout(): string {
		return this.stdoutBytes.toString()
	}

	get stderr(): string {
		return this.stderrBytes.toString()
	}
}

function exitOf(said: Json): Exit {
	return {
		exitCode: member(said, 'exitCode', 'number'), sandboxDenied: optional(said, 'sandboxDenied', 'boolean') ?? false,
		timedOut: optional(said, 'timedOut', 'boolean') ?? false, oomKilled: optional(said, 'oomKilled', 'boolean') ?? false,
		signal: optional(said, 'signal', 'string') || undefined, killedBy: optional(said, 'killedBy', 'string') || undefined,
		limit: optional(said, 'limit', 'string') || undefined, forksDenied: optional(said, 'forksDenied', 'number') ?? 0,
		networkDenied: optional(said, 'networkDenied', 'array') ?? [], details: said,
	}
}

function outputOf(said: unknown): Output {
	const name = member(said, 'stream', 'string')
	if (!Object.hasOwn(streams, name)) throw new ProtocolError("the server's output has no known stream")
	return { stream: streams[name], data: fromBase64(member(said, 'chunk', 'string')) }
}

const sizeOf = (params: Json) => (typeof params.chunk === 'string' ? params.chunk.length : 0) + EVENT_BYTES

/** An asynchronous iterator of its output. OutputLost is thrown at the place where output is missing, and next() may go on
 * behind it. */
export class Process implements Listener, AsyncIterableIterator<Output> {
	sandboxType = 'unknown'
	sandbox: Json = {} // what the server says of it
	exit?: Exit
	closed = false
	private started?: Promise<unknown>
	private starting = false
	private error?: Error
	private queue: (Output | OutputLost)[] = []
	private queued = 0
	private readers = 0
	private last = 0 // the number of the last event that was handed out
	private bytes = 0 // of output until then, also what was lost
	private held = new Map<number, [string, Json]>()
	private heldBytes = 0
	private reading?: object
	private changed = new Signal()
	private writing: Promise<unknown> = Promise.resolve()

	/** `signal` kills the command. */
	constructor(
		private readonly connection: Connection, readonly id: string, private readonly pulls: boolean,
		private readonly signal?: AbortSignal,
	) {
		connection.listeners.set(id, this)
		signal?.addEventListener('abort', this.onAbort, { once: true })
	}

	private readonly onAbort = () => {
		this.connection.tell('process/terminate', { processId: this.id })
		this.end(this.signal!.reason)
	}

	// --- starting ---

	/** A command that waits for its reader is asked for its output with the same breath. */
	async start(method: string, params: Json): Promise<Json> {
		this.started = this.connection.request(method, params, this.signal)
		this.starting = true
		if (this.pulls) this.read()
		try {
			const result = member({ result: await this.started }, 'result', 'object')
			this.sandboxType = (optional(result, 'sandboxType', 'string') ?? 'unknown').slice(0, 64)
			this.sandbox = optional(result, 'sandbox', 'object') ?? {}
			return result
		} catch (e) {
			this.end(e as ExecdError)
			throw e
		} finally {
			this.starting = false
		}
	}

	attach(): void {
		this.read()
	}

	// --- what the server says ---

	event(method: string, params: Json): void {
		if (this.pulls || this.closed || this.error) return // what is asked for says the same
		const seq = member(params, 'seq', 'number')
		if (seq <= this.last) return
		if (seq > this.last + 1 || this.reading) {
			this.hold(seq, method, params)
			this.read()
		} else this.handOut(seq, method, params)
	}

	/** What is held is in what will be read. A read that is under way is sent again. */
	lost(): void {
		this.held.clear()
		this.heldBytes = 0
	}

	resumed(): void {
		if (!this.closed && !this.error) this.read()
	}

	failed(error: ExecdError): void {
		if (!this.closed) this.end(error)
	}

	private hold(seq: number, method: string, params: Json): void {
		if (!this.held.has(seq)) {
			this.held.set(seq, [method, params])
			this.heldBytes += sizeOf(params)
		}
		if (this.heldBytes > HELD_MAX)
			this.end(new LimitExceeded(`more than ${HELD_MAX} bytes of output came before the output that is missing`, HELD_MAX))
	}

	private handOut(seq: number, method: string, params: Json): void {
		if (method === 'process/output') this.put(outputOf(params))
		else if (method === 'process/exited') this.putExit(exitOf(params))
		else this.close()
		this.last = seq
	}

	private put(output: Output): void {
		this.bytes += output.data.length
		if (!output.data.length) return
		this.queue.push(output)
		this.queued += output.data.length + EVENT_BYTES
		if (this.queued > QUEUED_MAX)
			this.end(new LimitExceeded(`more than ${QUEUED_MAX} bytes of output wait for somebody to read them`, QUEUED_MAX))
		else if (!this.pulls && this.queued > PUSHED_MAX) this.connection.crowd(this, true)
		this.changed.fire()
	}

	private putExit(how: Exit): void {
		this.exit ??= how
		this.changed.fire()
	}

	private close(): void {
		if (!this.exit) throw new ProtocolError('the server closed a process that has not exited')
		this.closed = true
		this.forget()
	}

	private end(error: Error): void {
		this.error ??= error
		this.forget()
	}

	private forget(): void {
		this.connection.listeners.delete(this.id)
		this.signal?.removeEventListener('abort', this.onAbort)
		this.connection.crowd(this, false)
		this.held.clear()
		this.changed.fire()
	}

	// --- what is read ---

	/** One reader at a time. It says itself when it is over, so that the next event need not wait for it. */
	private read(): void {
		if (this.reading) return
		const me = {}
		this.reading = me
		const over = () => {
			if (this.reading === me) this.reading = undefined
		}
		const work = this.pulls ? this.pull() : this.catchUp()
		work.then(over, (e) => {
			over()
			this.end(e instanceof ExecdError ? e : new ProcessLost(`the client failed: ${e}`, { cause: e }))
		})
	}

	private async ask(wait: boolean): Promise<Json> {
		const params: Json = { processId: this.id, afterSeq: this.last }
		if (wait) params.waitMs = FOREVER_MS
		if (this.connection.can('processOutputGaps')) params.maxBytes = READ_MAX
		for (;;) {
			const { starting } = this
			try {
				return await this.connection.call('process/read', params)
			} catch (e) {
				if (!(e instanceof ServerError)) throw e
				if (!starting)
					throw new ProcessLost(`the server does not know the command any more: ${e.message}`, { cause: e })
			}
			await this.started // an error of its own says more
		}
	}

	private async pull(): Promise<void> {
		for (let silent = 0; !this.closed && !this.error; ) {
			if (this.queued >= ASKED_MAX) {
				await this.changed.wait()
				continue
			}
			const { last, exit } = this
			await this.takeResult(await this.ask(true))
			silent = last === this.last && exit === this.exit ? silent + 1 : 0
			if (silent > NO_NEWS_MAX)
				throw new ProtocolError('the server answers process/read without news again and again')
		}
	}

	/** Reads until nothing is missing below what is held. */
	private async catchUp(): Promise<void> {
		for (let silent = 0; !this.closed && !this.error; ) {
			const { last } = this
			const more = await this.takeResult(await this.ask(false))
			this.handOutHeld()
			if (!more && this.held.size === 0) {
				this.reading = undefined // at once: the next event does not wait for it
				return
			}
			silent = last === this.last ? silent + 1 : 0
			if (silent > NO_NEWS_MAX)
				throw new ProtocolError('the server does not say what is missing before its own events')
		}
	}

	private handOutHeld(): void {
		for (let next; !this.closed && (next = this.held.get(this.last + 1)); ) {
			this.held.delete(this.last + 1)
			this.heldBytes -= sizeOf(next[1])
			this.handOut(this.last + 1, ...next)
		}
		for (const [seq, [, params]] of this.held)
			if (seq <= this.last) {
				this.held.delete(seq)
				this.heldBytes -= sizeOf(params)
			}
	}

	/** Returns whether the server has more than this answer. */
	private async takeResult(result: Json): Promise<boolean> {
		const next = member(result, 'nextSeq', 'number')
		const exited = optional(result, 'exited', 'boolean') ?? false
		const chunks = this.chunks(member(result, 'chunks', 'array'), next)
		const size = chunks.reduce((sum, [, o]) => sum + o.data.length, 0)
		const more = this.connection.can('processOutputGaps') && size >= READ_MAX / 2
		let { gap, after } = this.gap(result, chunks, next)
		for (const [seq, output] of chunks) {
			if (gap && seq > after) {
				this.putGap(gap)
				gap = undefined
			}
			this.put(output)
			this.last = seq
		}
		if (gap) this.putGap(gap)
		this.last = Math.max(this.last, next - 1)
		if (exited && !this.exit) this.putExit(await this.exitDetails(result))
		if (optional(result, 'closed', 'boolean') && !more && !this.error) this.close()
		return more
	}

	/** Those that are new, in their order. */
	private chunks(said: unknown[], next: number): [number, Output][] {
		const chunks: [number, Output][] = []
		let before = this.last
		for (const c of said) {
			const seq = member(c, 'seq', 'number')
			if (seq <= this.last) continue
			if (seq <= before || seq >= next)
				throw new ProtocolError("the server's answer to process/read has chunks out of order")
			before = seq
			chunks.push([seq, outputOf(c)])
		}
		return chunks
	}

	/** What the server no longer retains, and the number that it comes behind. */
	private gap(result: Json, chunks: [number, Output][], next: number): { gap?: OutputLost; after: number } {
		if (this.connection.can('processOutputGaps')) {
			const said = optional(result, 'gap', 'object')
			if (!said) return { after: 0 }
			const after = member(said, 'afterSeq', 'number')
			// What is in front of the gap is in this answer.
			const here = chunks.reduce((sum, [seq, o]) => sum + (seq <= after ? o.data.length : 0), 0)
			const lost = member(said, 'endBytes', 'number') - this.bytes - here
			return { gap: lost > 0 ? new OutputLost(lost) : undefined, after }
		}
		// The numbers that are neither in chunks nor used by the end.
		const exited = !this.exit && optional(result, 'exited', 'boolean')
		const missing = next - 1 - this.last - chunks.length - (exited ? 1 : 0) -
			(optional(result, 'closed', 'boolean') ? 1 : 0)
		return { gap: missing > 0 ? new OutputLost(undefined, missing) : undefined, after: 0 }
	}

	private putGap(gap: OutputLost): void {
		this.bytes += gap.bytes ?? 0
		this.queue.push(gap)
		this.changed.fire()
	}

	/** process/read says neither the signal nor whether the deadline ended it. */
	private async exitDetails(result: Json): Promise<Exit> {
		const how = exitOf(result)
		if (how.exitCode === 0 || !this.connection.can('processExitDetails')) return how
		try {
			const said = await this.connection.call('process/wait', { processId: this.id, timeoutMs: 0 })
			const known = Object.entries(said).filter(([, value]) => value !== null)
			return exitOf({ ...result, ...Object.fromEntries(known) })
		} catch (e) {
			if (!(e instanceof ServerError)) throw e
			return how
		}
	}

	// --- what the program reads ---

	[Symbol.asyncIterator](): this {
		return this
	}

	async next(): Promise<IteratorResult<Output, undefined>> {
		this.readers++
		try {
			while (!this.queue.length) {
				if (this.error) throw this.error
				if (this.closed) return { done: true, value: undefined }
				await this.connection.wait(this.changed)
			}
			return { done: false, value: this.shift() }
		} finally {
			this.readers--
		}
	}

	private shift(): Output {
		const first = this.queue.shift()!
		if (first instanceof OutputLost) throw first
		this.queued -= first.data.length + EVENT_BYTES
		if (this.queued < PUSHED_MAX / 2) this.connection.crowd(this, false)
		this.changed.fire() // there may be room for more
		return first
	}

	/** Waits for the end of the command. Its output waits for whoever reads it; where that is so much that the command stops,
	 * OutputUnread is thrown in place of a wait that would not end. */
	async wait(): Promise<Exit> {
		while (!this.exit) {
			if (this.error) throw this.error
			if (!this.readers && this.queued >= (this.pulls ? ASKED_MAX : PUSHED_MAX))
				throw new OutputUnread(`${this.queued} bytes of output wait, and nobody reads them: the command cannot go on`)
			await this.connection.wait(this.changed)
		}
		return this.exit
	}

	// --- what the program says ---

	/** Returns when the server has all of it. Each byte arrives once. */
	write(data: Bytes): Promise<void> {
		const bytes = checkBytes('data', data)
		const work = this.writing.then(() => this.writeAll(bytes))
		this.writing = work.catch(() => {})
		return work
	}

	private async writeAll(bytes: Buffer): Promise<void> {
		const waiting: Promise<unknown>[] = []
		for (let at = 0; at < bytes.length; at += WRITE_BYTES) {
			if (waiting.length >= WRITES_MAX) await this.written(waiting)
			waiting.push(this.connection.request('process/write', {
				processId: this.id, chunk: bytes.toString('base64', at, at + WRITE_BYTES), writeId: this.connection.newId(),
			}))
		}
		while (waiting.length) await this.written(waiting)
	}

	private async written(waiting: Promise<unknown>[]): Promise<void> {
		const status = member(await waiting.shift(), 'status', 'string')
		if (status === 'stdinClosed') throw new StdinClosed('the command reads no more input')
		if (status !== 'accepted') throw new ProcessLost(`the server did not take the input: ${status.slice(0, 40)}`)
	}

	/** The command finds the end of its input behind all that was written. */
	async closeStdin(): Promise<void> {
		this.connection.need('processCloseStdin', 'closeStdin()')
		await this.writing
		await this.connection.call('process/closeStdin', { processId: this.id })
	}

	async resize(rows: number, cols: number): Promise<void> {
		checkRange('rows', rows, 1, 65535)
		checkRange('cols', cols, 1, 65535)
		this.connection.need('processResize', 'resize()')
		await this.connection.call('process/resize', { processId: this.id, rows, cols })
	}

	/** Sends a signal ("TERM", "INT", ...) to the process, its group or its tree. */
	async kill(name: string, target: 'process' | 'group' | 'tree' = 'group'): Promise<void> {
		const signal = checkText('name', name).toUpperCase().replace(/^SIG/, '')
		if (!['process', 'group', 'tree'].includes(target))
			throw new RangeError(`target: ${JSON.stringify(target)} is neither process nor group nor tree`)
		if (signal === 'INT' && target === 'group') {
			await this.connection.call('process/signal', { processId: this.id, signal: 'interrupt' })
			return
		}
		this.connection.need('processSignalTarget', `kill(${JSON.stringify(signal)})`)
		try {
			await this.connection.call('process/signal', { processId: this.id, signal, target })
		} catch (e) {
			throw e instanceof InvalidParams ? new RangeError(`kill: ${e.message}`) : e
		}
	}

	/** SIGKILL to all that the command has started; with `graceMs` first SIGTERM, and so much time. */
	async terminate(graceMs?: number): Promise<void> {
		const params: Json = { processId: this.id }
		if (graceMs !== undefined) {
			Object.assign(params, { mode: 'graceful', timeoutMs: checkMs('graceMs', graceMs) })
			this.connection.need('processTerminateGraceful', 'terminate(graceMs)')
		}
		await this.connection.call('process/terminate', params)
	}

	/** What the server says of it now (process/wait): rusage, bytesWritten and more. */
	async details(): Promise<Json> {
		this.connection.need('processWait', 'details()')
		return this.connection.call('process/wait', { processId: this.id, timeoutMs: 0 })
	}
}

function sum(a?: number, b?: number): number | undefined {
	return a === undefined || b === undefined ? undefined : a + b
}

/** All of its output, at most `limit` bytes. What is missing in it is told at the end, with the rest. */
export async function collect(process: Process, limit: number): Promise<Result> {
	const parts: { stdout: Buffer[]; stderr: Buffer[] } = { stdout: [], stderr: [] }
	let size = 0
	let gap: OutputLost | undefined
	for (;;) {
		try {
			const { done, value } = await process.next()
			if (done) break
			size += value.data.length
			if (size > limit) throw new LimitExceeded(`the command wrote more than maxOutput = ${limit} bytes`, limit)
			parts[value.stream === 'stderr' ? 'stderr' : 'stdout'].push(value.data)
		} catch (e) {
			if (!(e instanceof OutputLost)) throw e
			gap = gap ? new OutputLost(sum(gap.bytes, e.bytes), sum(gap.events, e.events)) : e
		}
	}
	const result = new Result(
		process.exit!, Buffer.concat(parts.stdout), Buffer.concat(parts.stderr), process.sandboxType)
	if (gap) throw new OutputLost(gap.bytes, gap.events, result)
	return result
}

export function processId(name: string, value: unknown): string {
	return value instanceof Process ? value.id : checkText(name, value)
}
