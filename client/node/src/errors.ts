// SPDX-License-Identifier: ISC
/**
 * What can go wrong, each with a class of its own. Wrong types and values of the program are TypeError and RangeError, and
 * are thrown before anything is sent.
 */
import type { Result } from './process.js'

/** The base of all others. */
export class ExecdError extends Error {
	constructor(message: string, options?: { cause?: unknown }) {
		super(message)
		this.name = new.target.name
		if (options?.cause !== undefined)
			Object.defineProperty(this, 'cause', { value: options.cause, configurable: true, writable: true })
	}
}

/** No server is named, or the URL, environments.conf or a file that it names is wrong. */
export class ConfigError extends ExecdError {}

/** There is no connection to the server, or it does not answer in time. */
export class Unreachable extends ExecdError {}

/** The server's certificate is not to be trusted. */
export class CertificateRefused extends ExecdError {}

/** The server does not accept the token or the client's certificate. */
export class AuthenticationFailed extends ExecdError {}

/** The peer is no exec-server, or says what none may say. */
export class ProtocolError extends ExecdError {}

/** Something is larger than a limit of this client. `limit` is its value. */
export class LimitExceeded extends ExecdError {
	constructor(message: string, readonly limit: number) {
		super(message)
	}
}

/** The connection was lost and not resumed. What became of the commands is not known. */
export class ConnectionLost extends ExecdError {}

/** The connection was lost before the answer came, and the request may not be repeated. Whether it was done is not known.
 * The session goes on. */
export class AnswerLost extends ConnectionLost {}

/** The server does not know the session any more. */
export class SessionLost extends ConnectionLost {}

/** Another client took the session over. */
export class SessionTaken extends ConnectionLost {}

/** Another client has the session. connect({takeOver: true}) takes it. */
export class SessionAttached extends ExecdError {}

/** The server cannot do that. `capability` is the name that it does not announce. */
export class MissingCapability extends ExecdError {
	constructor(readonly capability: string, what: string) {
		super(`${what} needs a server that announces ${capability}`)
	}
}

/** What became of the command is not known. */
export class ProcessLost extends ExecdError {}

/** The command reads no more input. */
export class StdinClosed extends ExecdError {}

/** Output is missing here: the server did not retain it while there was no connection. `bytes` is undefined if the server
 * does not say how much it was, and `events` are its pieces. Reading may go on behind it. One of run() has the result. */
export class OutputLost extends ExecdError {
	constructor(readonly bytes?: number, readonly events?: number, readonly result?: Result) {
		const size = bytes !== undefined ? `${bytes} bytes` : `${events} pieces`
		super(`${size} of output fell out of what the server retains while there was no connection`)
	}
}

/** The command waits, because nobody reads its output, and somebody waits for its end. */
export class OutputUnread extends ExecdError {}

/** The file became another one while it was read, and the connection was lost meanwhile. */
export class FileChanged extends ExecdError {}

/** run() with `check`: the command did not end with 0. `result` is all of it. */
export class CommandFailed extends ExecdError {
	constructor(readonly result: Result) {
		super(`the command ended with ${result.exitCode}: ${result.stderr.slice(-2000).trim()}`.replace(/: $/, ''))
	}
}

/**
 * The server's error. `message` is its text, behind what it is about where that is no more than an errno; `code`, `kind` and `method` say more. `key`, `value` and `place` name the
 * operator's limit that refused the request ("tasks-max", "64", "identity ci"), and `limit` is a limit that the text gives as
 * a number. `errno` is that of the operating system.
 */
export class ServerError extends ExecdError {
	readonly kind?: string
	readonly key?: string
	readonly value?: string
	readonly place?: string
	readonly limit?: number
	readonly errno?: number

	constructor(readonly method: string, readonly code: number, message: string, readonly data?: unknown, about = '') {
		super(about && /^[^:]{1,80} \(os error \d{1,6}\)$/.test(message) ? `${about}: ${message}` : message)
		this.kind = kindOf(data)
		;[this.key, this.value, this.place] = findKey(message)
		const limit = /limit is (\d{1,20})\b/.exec(message) ?? /^(\d{1,20})$/.exec(this.value ?? '')
		this.limit = limit ? Number(limit[1]) : undefined
		const errno = /\(os error (\d{1,6})\)/.exec(message)
		this.errno = errno ? Number(errno[1]) : undefined
	}
}

/** -32600: the state does not allow it, a file may not be used so, or a limit is reached. */
export class Refused extends ServerError {}

/** -32602: a value is not allowed. */
export class InvalidParams extends ServerError {}

/** The sandbox exceeds what the operator permits, or cannot be enforced there. Nothing ran. */
export class SandboxRefused extends InvalidParams {}

/** -32601: the server does not have this method. */
export class UnknownMethod extends ServerError {}

/** -32603: `errno` says more. */
export class OperatingSystemError extends ServerError {}

/** The program cannot be executed: `kind` is spawnNotFound, spawnPermissionDenied or spawnFailed. */
export class StartFailed extends OperatingSystemError {}

/** -32004: no such file. */
export class NotFound extends ServerError {}

const classes: Record<number, typeof ServerError> = {
	[-32600]: Refused, [-32601]: UnknownMethod, [-32602]: InvalidParams, [-32603]: OperatingSystemError, [-32004]: NotFound,
}

function kindOf(data: unknown): string | undefined {
	const kind = typeof data === 'object' && data !== null ? (data as { kind?: unknown }).kind : undefined
	return typeof kind === 'string' ? kind : undefined
}

/** The key of a limit, its value and its place, as "max-kept-sessions = 4 of [limits]" and "(limited by
 * sandbox-max-profile in identity ci; ...)" have them. */
function findKey(text: string): [string?, string?, string?] {
	let found = /\b([a-z][a-z0-9-]{1,60}) = (\S{1,60}) of (\[[^\]\n]{1,80}\]|identity [^\s;)]{1,80})/.exec(text)
	found ??= /limited by ([a-z][a-z0-9-]{1,60})(?: = (\S{1,60}))? in ([^;)\n]{1,80})/.exec(text)
	return found ? [found[1], found[2], found[3]] : []
}

/** The error of the class that fits. */
export function serverError(method: string, code: number, text: string, data: unknown, about?: string): ServerError {
	const kind = kindOf(data)
	let cls = classes[code] ?? ServerError
	if (code === -32602 && (kind === 'sandboxPreparation' || kind === 'sandboxUnavailable' || text.startsWith('sandbox ')))
		cls = SandboxRefused
	else if (code === -32603 && method === 'process/start' && kind?.startsWith('spawn'))
		cls = StartFailed
	return new cls(method, code, text, data, about)
}
