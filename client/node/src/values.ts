// SPDX-License-Identifier: ISC
/** Checks of values. What a program gives is checked before anything is sent, and what a server says before it is used. */
import { ProtocolError } from './errors.js'

export type Json = Record<string, unknown>
export type Bytes = Uint8Array | string

interface Kinds {
	string: string
	number: number
	boolean: boolean
	array: unknown[]
	object: Json
}

function kindOf(value: unknown): string {
	if (value === null) return 'null'
	return Array.isArray(value) ? 'array' : typeof value
}

// --- of the program ---

export function check(name: string, value: unknown, ...kinds: string[]): void {
	if (!kinds.includes(kindOf(value)))
		throw new TypeError(`${name}: expected ${kinds.join(' or ')}, not ${kindOf(value)}`)
}

/** An option whose name is misspelt would be missing in silence. */
export function checkOptions(what: string, given: unknown, known: readonly string[]): void {
	check(`${what} options`, given, 'object')
	for (const name of Object.keys(given as object))
		if (!known.includes(name)) throw new TypeError(`${what}: there is no option ${name}`)
}

/** A string that JSON and a system call can carry. */
export function checkText(name: string, value: unknown): string {
	check(name, value, 'string')
	const text = value as string
	if (text.includes('\0')) throw new RangeError(`${name}: a NUL byte inside`)
	if (/\p{Surrogate}/u.test(text)) throw new RangeError(`${name}: JSON carries only UTF-8`)
	return text
}

export function checkRange(name: string, value: unknown, low: number, high: number): void {
	check(name, value, 'number')
	if (!Number.isInteger(value) || (value as number) < low || (value as number) > high)
		throw new RangeError(`${name}: ${value} is no integer between ${low} and ${high}`)
}

export function checkTexts(name: string, value: unknown): string[] {
	check(name, value, 'array')
	return (value as unknown[]).map((v) => checkText(name, v))
}

export function checkEnv(value: unknown): Record<string, string> {
	check('env', value, 'object')
	for (const [k, v] of Object.entries(value as object)) {
		checkText('env', k)
		checkText(`env.${k}`, v)
		if (!k || k.includes('=')) throw new RangeError(`env: ${JSON.stringify(k)} is no name of a variable`)
	}
	return { ...(value as Record<string, string>) }
}

/** A time of at least one millisecond, so that a short one does not mean none. */
export function checkMs(name: string, value: unknown): number {
	check(name, value, 'number')
	if (!((value as number) > 0 && (value as number) < 1e15)) throw new RangeError(`${name}: ${value} is no time`)
	return Math.max(1, Math.round(value as number))
}

/** Text is sent as UTF-8. */
export function checkBytes(name: string, value: unknown): Buffer {
	if (typeof value === 'string') return Buffer.from(value)
	if (!(value instanceof Uint8Array)) throw new TypeError(`${name}: expected string or Uint8Array, not ${kindOf(value)}`)
	return Buffer.from(value.buffer, value.byteOffset, value.byteLength)
}

// --- of the server ---

/** The member of an object, which must be of this kind. Numbers are integers. */
export function member<K extends keyof Kinds>(value: unknown, name: string, kind: K): Kinds[K] {
	const found = kindOf(value) === 'object' && Object.hasOwn(value as object, name) ? (value as Json)[name] : undefined
	if (kindOf(found) !== kind || (kind === 'number' && !Number.isInteger(found)))
		throw new ProtocolError(`the server's ${name} is ${kindOf(found)}, and not ${kind}`)
	return found as Kinds[K]
}

/** Likewise, or undefined where it is absent or null. */
export function optional<K extends keyof Kinds>(value: unknown, name: string, kind: K): Kinds[K] | undefined {
	const found = kindOf(value) === 'object' ? (value as Json)[name] : undefined
	return found === undefined || found === null ? undefined : member(value, name, kind)
}

/** Buffer.from() takes everything for base64. */
export function fromBase64(text: string): Buffer {
	const data = Buffer.from(text, 'base64')
	if (text.length % 4 !== 0 || data.toString('base64') !== text)
		throw new ProtocolError('the server sent base64 that is none')
	return data
}

/** A stranger's text, for an error of ours. */
export function printable(text: string, limit = 200): string {
	return text.slice(0, limit).replace(/[^\P{C} ]|[\u2028\u2029]/gu, '?').trim()
}
