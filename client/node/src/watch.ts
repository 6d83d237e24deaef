// SPDX-License-Identifier: ISC
/**
 * Changes of files (fs/watch). A watch ends with its connection; after a resume it is made again, and a change of kind `lost`
 * says that others may have been missed.
 */
import type { Connection } from './connection.js'
import { ExecdError } from './errors.js'
import { fromUri } from './paths.js'
import { Stream } from './stream.js'
import type { Json } from './values.js'
import { member, optional } from './values.js'

const QUEUED_MAX = 10000 // changes that nobody reads; then they are `lost`

/** `kind` is created, removed, modified or attributes; or lost, with the path that is watched: look at all of it. */
export interface Change {
	kind: string
	path: string
}

/** An asynchronous iterator of changes, which ends when the path names something else or nothing. */
export class Watch extends Stream<Change> {
	constructor(connection: Connection, readonly path: string, private readonly uri: string) {
		super(connection, connection.number())
	}

	async open(): Promise<void> {
		this.connection.listeners.set(this.id, this)
		try {
			await this.connection.call('fs/watch', { path: this.uri, watchId: this.id })
		} catch (e) {
			this.finish(e as ExecdError)
			throw e
		}
	}

	event(_method: string, params: Json): void {
		for (const c of member(params, 'changes', 'array'))
			this.put({ kind: member(c, 'kind', 'string').slice(0, 40), path: fromUri(member(c, 'path', 'string')) })
		if (optional(params, 'overflow', 'boolean')) this.put({ kind: 'lost', path: this.path })
		if (optional(params, 'ended', 'boolean')) this.finish()
	}

	private put(change: Change): void {
		if (this.queue.length >= QUEUED_MAX) this.queue = [{ kind: 'lost', path: this.path }]
		else this.queue.push(change)
		this.changed.fire()
	}

	resumed(): void {
		this.connection.listeners.delete(this.id)
		this.id = this.connection.number()
		// open() tells its error to whoever iterates.
		this.open().then(() => this.put({ kind: 'lost', path: this.path }), () => {})
	}

	close(): void {
		if (!this.done) this.connection.tell('fs/unwatch', { watchId: this.id })
		this.finish()
	}
}
