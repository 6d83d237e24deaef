// SPDX-License-Identifier: ISC
/**
 * Paths of the server, which are file: URIs on the wire. A byte that is not UTF-8 is one of the characters U+DC80 to U+DCFF
 * in a path, as Python has it, so that every name comes and goes unchanged.
 */
import { ProtocolError } from './errors.js'
import { check } from './values.js'

const URI_MAX = 1 << 16 // bytes of a URI that the server sends

/** The bytes of a path, here and there. */
export function pathBytes(path: string): Buffer {
	const parts = path.split(/([\udc80-\udcff])/u)
	if (parts.some((p, i) => i % 2 === 0 && /\p{Cs}/u.test(p))) throw new RangeError('path: half of a character inside')
	return Buffer.concat(parts.map((p, i) => (i % 2 ? Buffer.of(p.charCodeAt(0) & 0xff) : Buffer.from(p))))
}

export function pathOf(bytes: Buffer): string {
	const text = bytes.toString()
	if (!text.includes('\ufffd')) return text
	let path = ''
	for (let at = 0; at < bytes.length; ) {
		const size = characterSize(bytes, at)
		path += size ? bytes.toString('utf8', at, at + size) : String.fromCharCode(0xdc00 | bytes[at])
		at += size || 1
	}
	return path
}

/** How many bytes the character at this place has, or 0 if there is none. */
function characterSize(bytes: Buffer, at: number): number {
	for (let size = 1; size <= 4 && at + size <= bytes.length; size++) {
		const text = bytes.toString('utf8', at, at + size)
		if (Buffer.from(text).equals(bytes.subarray(at, at + size))) return size
	}
	return 0
}

/** A path that is not absolute begins at `home`. */
export function toUri(path: unknown, home: string): string {
	check('path', path, 'string')
	let text = path as string
	if (text.includes('\0')) throw new RangeError('path: a NUL byte inside')
	if (!text) throw new RangeError('path: it is empty')
	if (!text.startsWith('/')) text = `${home.replace(/\/+$/, '')}/${text}`
	// What stands for itself in a path (RFC 3986 section 3.3).
	const quoted = pathBytes(text).toString('latin1').replace(/[^\w/\-.~!$&'()*+,;=:@[\]|^]/g,
		(c) => `%${c.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`)
	return `file://${quoted}`
}

export function fromUri(uri: string): string {
	if (!uri.startsWith('file:///') || uri.length > URI_MAX)
		throw new ProtocolError(`the server's path ${JSON.stringify(uri.slice(0, 200))} is no file: URI`)
	const bytes = Buffer.from(uri.slice('file://'.length)).toString('latin1')
		.replace(/%([0-9A-Fa-f]{2})/g, (_, hex) => String.fromCharCode(parseInt(hex, 16)))
	return pathOf(Buffer.from(bytes, 'latin1'))
}
