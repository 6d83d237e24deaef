// SPDX-License-Identifier: ISC
/** What a server sends piece by piece, for whoever iterates, until it ends or fails. */
import type { Connection, Listener } from './connection.js'
import { Signal } from './connection.js'
import type { ExecdError } from './errors.js'
import type { Json } from './values.js'

export abstract class Stream<T> implements Listener, AsyncIterableIterator<T> {
	protected queue: T[] = []
	protected done = false
	protected error?: ExecdError
	protected changed = new Signal()

	constructor(protected readonly connection: Connection, protected id: string | number) {}

	abstract event(method: string, params: Json): void

	lost(): void {}

	resumed(): void {}

	failed(error: ExecdError): void {
		this.finish(error)
	}

	protected finish(error?: ExecdError): void {
		if (!this.done) {
			this.done = true
			this.error = error
		}
		this.connection.listeners.delete(this.id)
		this.changed.fire()
	}

	close(): void {
		this.finish()
	}

	[Symbol.asyncIterator](): this {
		return this
	}

	async next(): Promise<IteratorResult<T, undefined>> {
		while (this.queue.length === 0) {
			if (this.error) throw this.error
			if (this.done) return { done: true, value: undefined }
			await this.connection.wait(this.changed)
		}
		return { done: false, value: this.queue.shift() as T }
	}

	/** `break` in a loop closes it. */
	async return(): Promise<IteratorResult<T, undefined>> {
		this.close()
		return { done: true, value: undefined }
	}
}
