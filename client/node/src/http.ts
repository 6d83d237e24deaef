// SPDX-License-Identifier: ISC
/** Requests of HTTP that the server makes. They end with their connection: what was still coming is AnswerLost. */
import type { Connection } from './connection.js'
import { AnswerLost, ExecdError, LimitExceeded, OperatingSystemError, ProtocolError } from './errors.js'
import { Stream } from './stream.js'
import type { Bytes, Json } from './values.js'
import { check, checkBytes, checkMs, checkOptions, checkRange, checkText, fromBase64, member, optional } from './values.js'

const BODY_MAX = 64 << 20 // bytes of http(), unless told otherwise
const QUEUED_MAX = 64 << 20 // bytes of a stream that nobody reads
const PAUSE_MAX = 8 << 20 // bytes of a stream until nothing more is read from the connection
const HEADERS_MAX = 10000

export interface HttpOptions {
	headers?: Record<string, string> | [string, string][]
	body?: Bytes
	timeoutMs?: number
	/** Whether redirects are followed: true unless given. */
	follow?: boolean
	/** Of the body, which is LimitExceeded beyond it. */
	maxBytes?: number
}

/** Names of headers are in lower case, and repeated ones stay repeated. */
export class HttpResponse {
	constructor(readonly status: number, readonly headers: [string, string][], readonly body: Buffer) {}

	get text(): string {
		return this.body.toString()
	}

	/** The first of this name. */
	header(name: string): string | undefined {
		return this.headers.find(([n]) => n === name.toLowerCase())?.[1]
	}
}

export function checkRequest(method: unknown, url: unknown, options: HttpOptions): Json {
	checkOptions('http', options, ['headers', 'body', 'timeoutMs', 'follow', 'maxBytes'])
	const { headers, body, timeoutMs, follow = true, maxBytes = BODY_MAX } = options
	check('follow', follow, 'boolean')
	checkRange('maxBytes', maxBytes, 0, Number.MAX_SAFE_INTEGER)
	const params: Json = {
		method: checkText('method', method), url: checkText('url', url), redirectPolicy: follow ? 'follow' : 'stop',
		streamResponse: true,
	}
	if (headers !== undefined) {
		check('headers', headers, 'object', 'array')
		const pairs = Array.isArray(headers) ? headers : Object.entries(headers)
		params.headers = pairs.map((pair) => {
			check('headers', pair, 'array')
			return { name: checkText('headers', pair[0]), value: checkText('headers', pair[1]) }
		})
	}
	if (body !== undefined) params.bodyBase64 = checkBytes('body', body).toString('base64')
	if (timeoutMs !== undefined) params.timeoutMs = checkMs('timeoutMs', timeoutMs)
	return params
}

/** An asynchronous iterator of the body. */
export class HttpStream extends Stream<Buffer> {
	status = 0
	headers: [string, string][] = []
	private seq = 0
	private queued = 0

	constructor(connection: Connection) {
		super(connection, connection.newId())
	}

	async open(params: Json): Promise<void> {
		this.connection.listeners.set(this.id, this)
		try {
			const said = await this.connection.call('http/request', { ...params, requestId: this.id })
			this.status = member(said, 'status', 'number')
			const headers = member(said, 'headers', 'array')
			if (headers.length > HEADERS_MAX)
				throw new LimitExceeded(`the response has more than ${HEADERS_MAX} headers`, HEADERS_MAX)
			this.headers = headers.map((h) => [member(h, 'name', 'string'), member(h, 'value', 'string')])
		} catch (e) {
			this.close()
			throw e
		}
	}

	event(_method: string, params: Json): void {
		if (member(params, 'seq', 'number') !== this.seq + 1)
			throw new ProtocolError("the server's http/request/bodyDelta is out of order")
		this.seq++
		const data = fromBase64(member(params, 'deltaBase64', 'string'))
		if (data.length) this.queue.push(data)
		this.queued += data.length
		if (this.queued > QUEUED_MAX)
			this.finish(new LimitExceeded(`more than ${QUEUED_MAX} bytes of the body wait for somebody to read them`, QUEUED_MAX))
		else if (member(params, 'done', 'boolean')) {
			const text = optional(params, 'error', 'string')
			this.finish(text ? new OperatingSystemError('http/request', -32603, text) : undefined)
		} else if (this.queued > PAUSE_MAX) this.connection.crowd(this, true)
		this.changed.fire()
	}

	lost(): void {
		this.finish(new AnswerLost('http/request: the connection was lost before the end of the body'))
	}

	protected finish(error?: ExecdError): void {
		super.finish(error)
		this.connection.crowd(this, false)
	}

	/** What still comes is dropped; a server knows no way to be told so. */
	close(): void {
		this.finish()
		this.queue = []
	}

	async next(): Promise<IteratorResult<Buffer, undefined>> {
		const result = await super.next()
		this.queued -= result.value?.length ?? 0
		if (this.queued < PAUSE_MAX / 2) this.connection.crowd(this, false)
		return result
	}
}

/** A whole response. It comes as a stream, because a body in one message has no limit. */
export async function request(connection: Connection, params: Json, maxBytes = BODY_MAX): Promise<HttpResponse> {
	const stream = new HttpStream(connection)
	await stream.open(params)
	const parts: Buffer[] = []
	let size = 0
	for await (const data of stream) {
		size += data.length
		if (size > maxBytes) throw new LimitExceeded(`the body has more than maxBytes = ${maxBytes} bytes`, maxBytes)
		parts.push(data)
	}
	return new HttpResponse(stream.status, stream.headers, Buffer.concat(parts))
}
