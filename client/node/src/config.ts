// SPDX-License-Identifier: ISC
/** Which server: URLs, the variables that name one, environments.conf and tokens, all as execctl(1) has them. */
import { accessSync, closeSync, constants, existsSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs'
import type { Stats } from 'node:fs'
import * as tls from 'node:tls'
import { ConfigError } from './errors.js'

const URL_MAX = 4096
const FILE_MAX = 1 << 20
const TOKEN_FILE_MAX = 16384
const TOKEN_MAX = 8192
/** Where the package's execd lets the members of its group in. */
const LOCAL_SOCKET = '/run/execd/execd.sock'

const texts: Record<string, keyof Server> = {
	'url': 'url', 'token-file': 'tokenFile', 'ca': 'ca', 'certificate': 'certificate', 'certificate-key': 'key',
	'server-key': 'serverKey',
}
const times: Record<string, keyof Server> = {
	'connect-timeout': 'connectTimeoutMs', 'initialize-timeout': 'initializeTimeoutMs', 'silence-timeout': 'silenceTimeoutMs',
}

/** A server, and how to come to it. */
export interface Server {
	url: string
	name?: string
	tokenFile?: string
	ca?: string
	certificate?: string
	key?: string
	serverKey?: string
	connectTimeoutMs: number
	initializeTimeoutMs: number
	silenceTimeoutMs: number
	token?: string
}

/** A URL in its parts. `address` is the path of a UNIX socket or the command of stdio:, `request` what the upgrade asks for,
 * always as ws: because the connection is made before. */
export interface Endpoint {
	kind: 'ws' | 'wss' | 'unix' | 'stdio'
	address: string
	host: string
	port: number
	request: string
}

function serverOf(url: string, name?: string): Server {
	return { url, name, connectTimeoutMs: 10000, initializeTimeoutMs: 10000, silenceTimeoutMs: 15000 }
}

function reasonOf(e: unknown): string {
	return e instanceof Error ? e.message.replace(/^E[A-Z0-9]+: /, '').replace(/, \w+( '.*')?$/, '') : String(e)
}

// --- URLs ---

export function parseUrl(url: string): Endpoint {
	const wrong = (why: string) => new ConfigError(`URL \`${url.slice(0, 200)}': ${why}`)
	const [, name, rest] = /^([^:]*):(.*)$/s.exec(url) ?? []
	const kind = name?.toLowerCase()
	if (url.length > URL_MAX) throw wrong('it is longer than 4096 bytes')
	if (kind === 'ask') throw wrong("a lease is execctl's: stdio:execctl --url 'ask:...' relay reaches its server")
	if (kind === 'unix') {
		const address = rest.replace(/^\/\//, '')
		if (!address) throw wrong('the path of the socket is missing')
		return { kind, address, host: '', port: 0, request: 'ws://localhost/' }
	}
	if (kind === 'stdio') {
		if (!rest.trim()) throw wrong('the command is missing')
		return { kind, address: rest, host: '', port: 0, request: '' }
	}
	if ((kind !== 'ws' && kind !== 'wss') || !rest.startsWith('//'))
		throw wrong('it does not begin with ws://, wss://, unix: or stdio:')
	if (!/^[!-~]*$/.test(url)) throw wrong('blanks, control characters or letters beyond ASCII inside')
	return webSocketEndpoint(kind, rest, wrong)
}

function webSocketEndpoint(kind: 'ws' | 'wss', rest: string, wrong: (why: string) => ConfigError): Endpoint {
	const at = /^\/\/([^/?#]*)/.exec(rest)![1]
	const parts = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/.exec(at)
	if (at.includes('@')) throw wrong('a URL must not contain a user or a password; the token has its own option')
	if (rest.includes('#')) throw wrong('a fragment has no meaning here')
	if (!parts || !parts[1] || parts[1] === '[]') throw wrong('the host is missing')
	const port = parts[2] === undefined ? (kind === 'wss' ? 443 : 80) : /^\d{1,5}$/.test(parts[2]) ? Number(parts[2]) : 0
	if (port < 1 || port > 65535) throw wrong('the port is not a number from 1 to 65535')
	return { kind, address: '', host: parts[1].replace(/^\[|\]$/g, ''), port, request: `ws:${rest}` }
}

export function isLocal(at: Endpoint): boolean {
	return at.kind === 'unix' || at.kind === 'stdio' || /^(localhost|::1|127\..*)$/.test(at.host)
}

// --- the file of environments ---

function environmentsFile(): string | undefined {
	const { EXECD_ENVIRONMENTS: file, XDG_CONFIG_HOME: config, HOME: home } = process.env
	if (file) return file
	if (config?.startsWith('/')) return `${config}/execd/environments.conf`
	return home?.startsWith('/') ? `${home}/.config/execd/environments.conf` : undefined
}

/** At most `limit` + 1 bytes, and what the open file is. */
function readStart(path: string, limit: number): [Buffer, Stats] {
	const fd = openSync(path, 'r')
	try {
		const data = Buffer.alloc(limit + 1)
		let size = 0
		for (let n = -1; n !== 0 && size < data.length; size += n) n = readSync(fd, data, size, data.length - size, null)
		return [data.subarray(0, size), fstatSync(fd)]
	} finally {
		closeSync(fd)
	}
}

const octal = (mode: number) => (mode & 0o7777).toString(8).padStart(4, '0')

/** Refuses a file that others can write: they could choose where commands go. */
function readEnvironmentsText(path: string): string {
	let data: Buffer, st: Stats
	try {
		[data, st] = readStart(path, FILE_MAX)
	} catch (e) {
		if ((e as NodeJS.ErrnoException).code === 'ENOENT') return ''
		throw new ConfigError(`${path}: ${reasonOf(e)}`, { cause: e })
	}
	if ((st.uid !== 0 && st.uid !== process.geteuid!()) || st.mode & 0o022)
		throw new ConfigError(`${path}: others can write to it (mode ${octal(st.mode)}, owner ${st.uid})`)
	if (data.length > FILE_MAX) throw new ConfigError(`${path}: longer than ${FILE_MAX} bytes`)
	try {
		return new TextDecoder('utf-8', { fatal: true }).decode(data)
	} catch {
		throw new ConfigError(`${path}: it is not UTF-8`)
	}
}

function duration(key: string, value: string): number {
	const found = /^(\d{1,9})(ms|s)$/.exec(value)
	const ms = found ? Number(found[1]) * (found[2] === 's' ? 1000 : 1) : 0
	if (ms < 1 || ms > 86400000) throw new ConfigError(`${key}: \`${value}' is not a duration like 10s or 500ms`)
	return ms
}

function takeKey(server: Server, key: string, value: string): void {
	if (Object.hasOwn(texts, key)) Object.assign(server, { [texts[key]]: value })
	else if (Object.hasOwn(times, key)) Object.assign(server, { [times[key]]: duration(key, value) })
	else throw new ConfigError(`unknown key \`${key}'`)
}

/** All environments of the file in order, and the name of the default. A file that is not there counts as empty. */
export function readEnvironments(): { found: Server[]; fallback?: string } {
	const path = environmentsFile()
	const found: Server[] = []
	let fallback: string | undefined
	const take = (text: string) => {
		const section = /^\[([^\]]*)\]$/.exec(text)
		const pair = /^([^\s=:][^=:]*?)\s*[=:]\s*(.*)$/.exec(text)
		if (section) found.push(serverOf('', section[1]))
		else if (!pair) throw new ConfigError('neither KEY = VALUE nor [NAME]')
		else if (found.length) takeKey(found[found.length - 1], pair[1], pair[2])
		else if (pair[1] === 'default') fallback = pair[2]
		else throw new ConfigError(`unknown key \`${pair[1]}'`)
	}
	const lines = path === undefined ? [] : readEnvironmentsText(path).split(/\r?\n/)
	lines.forEach((line, i) => {
		const text = line.replace(/\s;.*$/, '').trimEnd()
		if (!text || /^\s*[#;]/.test(text)) return
		try {
			take(text)
		} catch (e) {
			throw new ConfigError(`${path}:${i + 1}: ${(e as Error).message}`)
		}
	})
	for (const server of found)
		if (!server.url) throw new ConfigError(`${path}: environment \`${server.name}' has no url`)
	return { found, fallback }
}

// --- tokens ---

/** Follows ssh's rule for private keys: a token of this user that others can read lets them in. */
export function readToken(path: string): string {
	let data: Buffer, st: Stats
	try {
		[data, st] = readStart(path, TOKEN_FILE_MAX)
	} catch (e) {
		throw new ConfigError(`token file ${path}: ${reasonOf(e)}`, { cause: e })
	}
	if (st.isFile() && st.uid === process.getuid!() && st.mode & 0o077)
		throw new ConfigError(`token file ${path}: mode ${octal(st.mode)} lets others read it; chmod 600 it`)
	if (data.length > TOKEN_FILE_MAX) throw new ConfigError(`token file ${path}: longer than ${TOKEN_FILE_MAX} bytes`)
	const token = data.toString('latin1').replace(/^[\0- ]+|[\0- ]+$/g, '')
	if (!token) throw new ConfigError(`token file ${path}: it is empty`)
	return token
}

/** It becomes part of a header, so it is one line without blanks (RFC 6750 section 2.1). */
function checkToken(token: string): string {
	if (token.length > TOKEN_MAX || !/^[!-~]+$/.test(token))
		throw new ConfigError(`the token is empty, over ${TOKEN_MAX} bytes, or has blanks or control characters inside`)
	return token
}

function tokenForUrl(url: string): string | undefined {
	if (process.env.EXECD_TOKEN !== undefined) return process.env.EXECD_TOKEN
	const file = readEnvironments().found.find((e) => e.url === url && e.tokenFile)?.tokenFile
	return file === undefined ? undefined : readToken(file)
}

// --- finding one ---

function fromVariable(): string | undefined {
	for (const name of ['EXECD_URL', 'CODEX_EXEC_SERVER_URL']) {
		const url = process.env[name]
		if (url?.toLowerCase() === 'none') throw new ConfigError(`${name}=none: no server is to be used`)
		if (url) return url
	}
	return undefined
}

function mayWrite(path: string): boolean {
	try {
		accessSync(path, constants.W_OK)
		return true
	} catch {
		return false
	}
}

function fromFile(name?: string): Server {
	const { found, fallback } = readEnvironments()
	const wanted = name ?? fallback
	const server = wanted === undefined ? undefined : found.find((e) => e.name === wanted)
	if (server) return server
	if (name !== undefined) throw new ConfigError(`there is no environment \`${name}'`)
	if (mayWrite(LOCAL_SOCKET)) return serverOf(`unix:${LOCAL_SOCKET}`)
	if (fallback === undefined && found.length === 1) return found[0]
	throw new ConfigError('no server is named: neither by url or environment, nor by EXECD_URL, nor by a default environment, and ' +
		`there is no ${LOCAL_SOCKET} for this user`)
}

/** The first that is given: the URL, the environment's name, EXECD_URL, CODEX_EXEC_SERVER_URL, the default of the file. What
 * the program gives as token comes before every other. */
export function findServer(url?: string, environment?: string, token?: string, tokenFile?: string): Server {
	const named = url ?? (environment === undefined ? fromVariable() : undefined)
	const server = named === undefined ? fromFile(environment) : serverOf(named)
	const at = parseUrl(server.url)
	if (server.serverKey !== undefined && server.ca === undefined && at.kind === 'wss')
		throw new ConfigError(`environment \`${server.name}': only execctl compares a server-key; for this client \`ca' names the ` +
			'certificate or its authority')
	if (token === undefined && tokenFile !== undefined) token = readToken(tokenFile)
	if (token === undefined && named !== undefined) token = tokenForUrl(server.url)
	else if (token === undefined) token = server.tokenFile ? readToken(server.tokenFile) : process.env.EXECD_TOKEN
	server.token = token === undefined ? undefined : checkToken(token)
	if (server.token !== undefined && at.kind === 'ws' && !isLocal(at))
		process.emitWarning(`the token goes to ${at.host} over ws://, and everybody on the way can read it`, 'ExecdWarning')
	return server
}

// The authorities of the system, on Debian and on Fedora. Node has its own otherwise.
const systemAuthorities = ['/etc/ssl/certs/ca-certificates.crt', '/etc/pki/tls/certs/ca-bundle.crt']

/** TLS 1.2 or 1.3, with the authorities of `ca`, or those of the system. */
export function tlsContext(server: Server): tls.SecureContext {
	const options: tls.SecureContextOptions = { minVersion: 'TLSv1.2' }
	const authorities = server.ca ?? (process.env.NODE_EXTRA_CA_CERTS ? undefined : systemAuthorities.find((f) => existsSync(f)))
	try {
		if (authorities !== undefined) options.ca = readFileSync(authorities)
		tls.createSecureContext(options)
	} catch (e) {
		throw new ConfigError(`certificates of authorities, ${authorities}: ${reasonOf(e)}`, { cause: e })
	}
	try {
		if (server.certificate !== undefined) {
			options.cert = readFileSync(server.certificate)
			options.key = readFileSync(server.key ?? server.certificate)
		}
		return tls.createSecureContext(options)
	} catch (e) {
		throw new ConfigError(
			`client certificate ${server.certificate}, key ${server.key ?? server.certificate}: ${reasonOf(e)}`, { cause: e })
	}
}
