// SPDX-License-Identifier: ISC
/**
 * A command of execd-mcp: it runs on while nobody asks for its output, of which the newest is held. Each byte is handed out
 * once.
 */
import { StringDecoder } from 'node:string_decoder'
import { setTimeout as sleep } from 'node:timers/promises'
import { Signal } from './connection.js'
import { OutputLost } from './errors.js'
import type { Exit, Process } from './process.js'

const HELD_MAX = 1 << 20 // characters that wait for their reader; then the oldest fall out

/** What is new of a command. */
export interface News {
	id: string
	running: boolean
	stdout: string
	stderr: string
	/** Whether there is more that did not fit. */
	more: boolean
	/** Bytes of output that fell out, or were lost, before what is here. */
	droppedBytes: number
	exitCode?: number
	signal?: string
	timedOut?: boolean
	sandboxDenied?: boolean
	killedBy?: string
}

interface Piece {
	stream: 'stdout' | 'stderr'
	text: string
}

export class Command {
	bytes = 0 // of output so far
	over = false
	error?: Error
	private exit?: Exit
	private pieces: Piece[] = []
	private held = 0
	private dropped = 0
	private readonly changed = new Signal()
	private readonly decoders = { stdout: new StringDecoder('utf8'), stderr: new StringDecoder('utf8') }

	constructor(readonly process: Process) {
		void this.drain()
	}

	private async drain(): Promise<void> {
		for (let more = true; more; ) {
			try {
				const { done, value } = await this.process.next()
				if (done) more = false
				else this.put(value.stream === 'stderr' ? 'stderr' : 'stdout', value.data)
			} catch (e) {
				if (e instanceof OutputLost) this.dropped += e.bytes ?? 0
				else {
					this.error = e as Error
					more = false
				}
			}
		}
		for (const stream of ['stdout', 'stderr'] as const) this.hold(stream, this.decoders[stream].end())
		this.exit = this.process.exit
		this.over = true
		this.changed.fire()
	}

	private put(stream: Piece['stream'], data: Buffer): void {
		this.bytes += data.length
		this.hold(stream, this.decoders[stream].write(data))
		this.changed.fire()
	}

	private hold(stream: Piece['stream'], text: string): void {
		if (!text) return
		this.pieces.push({ stream, text })
		this.held += text.length
		while (this.held > HELD_MAX && this.pieces.length > 1) {
			const { text: oldest } = this.pieces.shift()!
			this.held -= oldest.length
			this.dropped += Buffer.byteLength(oldest)
		}
	}

	/** Until it is over, or `ready` says so, or the time is. `progress` is called at each piece of output. */
	async wait(ms: number, ready: () => boolean, stop: AbortSignal, progress?: () => void): Promise<void> {
		const end = new AbortController()
		const onStop = () => end.abort()
		const time = sleep(ms, true, { signal: end.signal }).catch(() => true)
		stop.addEventListener('abort', onStop, { once: true })
		try {
			while (!this.over && !ready() && !stop.aborted) {
				if (this.bytes > 0) progress?.()
				if (await Promise.race([this.changed.wait().then(() => false), time])) break
			}
		} finally {
			stop.removeEventListener('abort', onStop)
			end.abort()
		}
		stop.throwIfAborted()
	}

	get hasNews(): boolean {
		return this.held > 0 || this.over
	}

	/** Everything was handed out, and nothing comes any more. */
	get isDone(): boolean {
		return this.over && this.held === 0
	}

	/** At most so many characters of what nobody was told yet. */
	take(max: number): News {
		const news: News = { id: this.process.id, running: !this.over, stdout: '', stderr: '', more: false, droppedBytes: this.dropped }
		this.dropped = 0
		while (this.pieces.length && max > 0) {
			const piece = this.pieces[0]
			const text = piece.text.slice(0, max)
			news[piece.stream] += text
			max -= text.length
			this.held -= text.length
			if (text.length === piece.text.length) this.pieces.shift()
			else piece.text = piece.text.slice(text.length)
		}
		news.more = this.held > 0
		if (this.error && !news.more) throw this.error
		if (!this.exit) return news
		const { exitCode, signal, timedOut, sandboxDenied, killedBy } = this.exit
		return { ...news, exitCode, signal, timedOut, sandboxDenied, killedBy }
	}
}
