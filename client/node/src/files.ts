// SPDX-License-Identifier: ISC
/** Files of the server: whole, in blocks, and trees. A transfer that is cut goes on at its byte. */
import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import * as fs from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Connection } from './connection.js'
import { AnswerLost, ExecdError, FileChanged, LimitExceeded, NotFound, ProtocolError } from './errors.js'
import { fromUri, pathBytes, pathOf, toUri } from './paths.js'
import type { Bytes, Json } from './values.js'
import {
	check, checkBytes, checkOptions, checkRange, checkText, fromBase64, member, optional,
} from './values.js'

const BLOCK = 1 << 20 // bytes, the most that servers take
const WINDOW = 4 // blocks under way
const WHOLE_MAX = 1 << 20 // bytes that are written with one request
const READ_MAX = 512 << 20 // bytes that read() returns, unless told otherwise
const ENTRIES_MAX = 1_000_000 // of a directory
const ATTEMPTS = 20 // of one block, each on another connection
const DEPTH_MAX = 256 // of a tree

/** Times are in milliseconds since 1970; `createdMs` is 0 if it is not known. `mode` and `target` are there where the server
 * announces fsDetails. */
export interface Metadata {
	isDir: boolean
	isFile: boolean
	isSymlink: boolean
	size: number
	createdMs: number
	modifiedMs: number
	mode?: number
	target?: string
}

/** Of a directory. Where the server does not announce fsDetails only the first three are known. */
export interface Entry {
	name: string
	isDir: boolean
	isFile: boolean
	isSymlink: boolean
	size?: number
	modifiedMs?: number
	mode?: number
	target?: string
}

export interface WalkOptions {
	maxDepth?: number
	maxDirectories?: number
	maxEntries?: number
	follow?: boolean
	pruneHidden?: boolean
}

/** `kind` is file or directory. */
export interface Walk {
	entries: { path: string; kind: string }[]
	errors: { path: string; message: string }[]
	truncated: boolean
}

export type Blocks = Iterable<Bytes> | AsyncIterable<Bytes>

function metadata(said: Json): Metadata {
	return {
		isDir: member(said, 'isDirectory', 'boolean'), isFile: member(said, 'isFile', 'boolean'),
		isSymlink: member(said, 'isSymlink', 'boolean'), size: member(said, 'size', 'number'),
		createdMs: member(said, 'createdAtMs', 'number'), modifiedMs: member(said, 'modifiedAtMs', 'number'),
		mode: optional(said, 'mode', 'number'), target: optional(said, 'linkTarget', 'string') || undefined,
	}
}

function entry(said: unknown): Entry {
	let name = member(said, 'fileName', 'string')
	const path = optional(said, 'path', 'string')
	// Every byte of the name.
	if (path !== undefined) name = fromUri(path).replace(/^.*\//s, '')
	if (name === '' || name === '.' || name === '..' || /[/\0]/.test(name))
		throw new ProtocolError(`the server's directory has an entry ${JSON.stringify(name.slice(0, 80))}`)
	return {
		name, isDir: member(said, 'isDirectory', 'boolean'), isFile: member(said, 'isFile', 'boolean'),
		isSymlink: optional(said, 'isSymlink', 'boolean') ?? false, size: optional(said, 'size', 'number'),
		modifiedMs: optional(said, 'modifiedAtMs', 'number'), mode: optional(said, 'mode', 'number'),
		target: optional(said, 'linkTarget', 'string') || undefined,
	}
}

/** A path that is not absolute begins at the home directory there. Every request is made under `sandbox`, if there is one. */
export class Files {
	constructor(
		private readonly connection: Connection, private readonly home: string, private readonly sandbox?: Json) {}

	private uri(path: unknown): string {
		return toUri(path, this.home)
	}

	private call(method: string, params: Json): Promise<Json> {
		return this.connection.call(`fs/${method}`, this.sandbox ? { ...params, sandbox: this.sandbox } : params)
	}

	private get details(): Json {
		return this.connection.can('fsDetails') ? { details: true } : {}
	}

	// --- names ---

	async stat(path: string): Promise<Metadata> {
		return metadata(await this.call('getMetadata', { path: this.uri(path), ...this.details }))
	}

	async exists(path: string): Promise<boolean> {
		try {
			await this.stat(path)
			return true
		} catch (e) {
			if (e instanceof NotFound) return false
			throw e
		}
	}

	/** In the order of the names. */
	async listdir(path = '.'): Promise<Entry[]> {
		const said = await this.call('readDirectory', { path: this.uri(path), ...this.details })
		const entries = member(said, 'entries', 'array')
		if (entries.length > ENTRIES_MAX)
			throw new LimitExceeded(`the directory has more than ${ENTRIES_MAX} entries`, ENTRIES_MAX)
		return entries.map(entry).sort((a, b) => (a.name < b.name ? -1 : 1))
	}

	async walk(path: string, options: WalkOptions = {}): Promise<Walk> {
		checkOptions('walk', options, ['maxDepth', 'maxDirectories', 'maxEntries', 'follow', 'pruneHidden'])
		const { maxDepth = 64, maxDirectories = 10000, maxEntries = 50000, follow = false, pruneHidden = false } = options
		checkRange('maxDepth', maxDepth, 0, 64)
		checkRange('maxDirectories', maxDirectories, 1, 10000)
		checkRange('maxEntries', maxEntries, 1, 50000)
		check('follow', follow, 'boolean')
		check('pruneHidden', pruneHidden, 'boolean')
		const said = await this.call('walk', { path: this.uri(path), options: {
			maxDepth, maxDirectories, maxEntries, followDirectorySymlinks: follow, pruneHiddenDirectories: pruneHidden,
		} })
		const entries = member(said, 'entries', 'array')
		if (entries.length > maxEntries)
			throw new ProtocolError("the server's walk has more entries than were asked for")
		return {
			entries: entries.map((e) => ({ path: fromUri(member(e, 'path', 'string')), kind: member(e, 'kind', 'string') })),
			errors: member(said, 'errors', 'array').map(
				(e) => ({ path: fromUri(member(e, 'path', 'string')), message: member(e, 'message', 'string') })),
			truncated: member(said, 'truncated', 'boolean'),
		}
	}

	async canonicalize(path: string): Promise<string> {
		return fromUri(member(await this.call('canonicalize', { path: this.uri(path) }), 'path', 'string'))
	}

	/** With `parents` a directory that is there is no error. */
	async mkdir(path: string, { parents = true } = {}): Promise<void> {
		check('parents', parents, 'boolean')
		await this.call('createDirectory', { path: this.uri(path), recursive: parents })
	}

	/** A link is removed itself. */
	async remove(path: string, { recursive = false, missingOk = false } = {}): Promise<void> {
		check('recursive', recursive, 'boolean')
		check('missingOk', missingOk, 'boolean')
		await this.call('remove', { path: this.uri(path), recursive, force: missingOk })
	}

	/** Both are on the server. */
	async copy(source: string, target: string, { recursive = false } = {}): Promise<void> {
		check('recursive', recursive, 'boolean')
		await this.call('copy', { sourcePath: this.uri(source), destinationPath: this.uri(target), recursive })
	}

	async move(source: string, target: string, { overwrite = false } = {}): Promise<void> {
		check('overwrite', overwrite, 'boolean')
		const params = { sourcePath: this.uri(source), destinationPath: this.uri(target), overwrite }
		this.connection.need('fsMove', 'move()')
		await this.call('move', params)
	}

	async chmod(path: string, mode: number): Promise<void> {
		checkRange('mode', mode, 0, 0o7777)
		this.connection.need('fsChmod', 'chmod()')
		await this.call('chmod', { path: this.uri(path), mode })
	}

	/** Makes the link `path`, whose text is `target`. */
	async symlink(path: string, target: string): Promise<void> {
		checkText('target', target)
		this.connection.need('fsSymlink', 'symlink()')
		await this.call('symlink', { path: this.uri(path), target })
	}

	async setModified(path: string, ms: number): Promise<void> {
		checkRange('ms', ms, 0, 253402300799999)
		this.connection.need('fsSetTimes', 'setModified()')
		await this.call('setTimes', { path: this.uri(path), modifiedAtMs: ms })
	}

	// --- blocks ---

	private async open(path: string, mode: string, more: Json = {}): Promise<[string, Json]> {
		const handleId = `node-${this.connection.number()}`
		return [handleId, await this.call('open', { handleId, path, mode, ...more })]
	}

	private close(handleId: string): void {
		this.connection.tell('fs/close', { handleId })
	}

	/** The file in pieces. After a cut it goes on where it was, or throws FileChanged. */
	async *readBlocks(path: string): AsyncGenerator<Buffer, void, undefined> {
		const uri = this.uri(path)
		let before: Metadata | undefined
		let attempts = 0
		for (let at = 0; ; ) {
			let handle: string | undefined
			try {
				const now = await this.stat(path)
				if (before && (before.size !== now.size || before.modifiedMs !== now.modifiedMs))
					throw new FileChanged(`${path}: it changed while it was read, and the connection was lost meanwhile`)
				before = now;
				[handle] = await this.open(uri, 'read')
				const waiting: Promise<unknown>[] = []
				for (let asked = at; ; ) {
					// Most files end in the first block.
					for (const window = at === 0 && now.size < BLOCK ? 1 : WINDOW; waiting.length < window; asked += BLOCK)
						waiting.push(this.connection.request('fs/readBlock', { handleId: handle, offset: asked, len: BLOCK }))
					const said = await waiting.shift()
					const data = fromBase64(member(said, 'chunk', 'string'))
					const eof = member(said, 'eof', 'boolean')
					if (data.length > BLOCK || (data.length < BLOCK && !eof))
						throw new ProtocolError("the server's block is not as long as it was asked for")
					attempts = 0
					at += data.length
					if (data.length) yield data
					if (eof) return
				}
			} catch (e) {
				// A helper that ended takes its handles along; the connection may be there all the time.
				const mayRepeat = e instanceof AnswerLost || (e instanceof NotFound && handle !== undefined)
				if (!mayRepeat || ++attempts > ATTEMPTS) throw e
			} finally {
				if (handle !== undefined) this.close(handle)
			}
		}
	}

	/** Creates or replaces the file, and returns its size. After a cut it goes on at the last byte that the server has
	 * confirmed, where it announces fsOpenAppend; any other one is AnswerLost. */
	async writeBlocks(path: string, blocks: Blocks): Promise<number> {
		const source = pieces(blocks)
		const uri = this.uri(path)
		let [handle] = await this.open(uri, 'replace')
		let done = 0, sent = 0
		const waiting: { answer: Promise<unknown>; data: Buffer }[] = []
		const send = (offset: number, data: Buffer) => this.connection.request(
			'fs/writeBlock', { handleId: handle, offset, chunk: data.toString('base64') })

		/** Opens it again. Blocks without an answer may have been written, and are written again. */
		const again = async () => {
			const [id, said] = await this.open(uri, 'replace', { append: true })
			handle = id
			const size = member(said, 'size', 'number')
			if (size < done || size > sent)
				throw new FileChanged(`${path}: it has ${size} bytes now, and ${done} were confirmed: another one writes it`)
			let at = done
			for (const block of waiting) {
				block.answer = send(at, block.data)
				at += block.data.length
			}
		}

		/** Waits for the oldest block. */
		const confirm = async () => {
			for (let attempts = 1; ; attempts++) {
				try {
					member({ answer: await waiting[0].answer }, 'answer', 'object')
					done += waiting.shift()!.data.length
					return
				} catch (e) {
					const mayRepeat = e instanceof AnswerLost || e instanceof NotFound
					if (!mayRepeat || attempts > ATTEMPTS || !this.connection.can('fsOpenAppend')) throw e
				}
				await again()
			}
		}

		try {
			for await (const data of source) {
				waiting.push({ answer: send(sent, data), data })
				sent += data.length
				if (waiting.length >= WINDOW) await confirm()
			}
			while (waiting.length) await confirm()
		} finally {
			this.close(handle)
		}
		return sent
	}

	// --- whole ---

	async read(path: string, { maxBytes = READ_MAX } = {}): Promise<Buffer> {
		checkRange('maxBytes', maxBytes, 0, Number.MAX_SAFE_INTEGER)
		const parts: Buffer[] = []
		let size = 0
		for await (const data of this.readBlocks(path)) {
			size += data.length
			if (size > maxBytes)
				throw new LimitExceeded(`${path}: it has more than maxBytes = ${maxBytes} bytes`, maxBytes)
			parts.push(data)
		}
		return Buffer.concat(parts)
	}

	/** Throws TypeError if it is not UTF-8. */
	async readText(path: string, options: { maxBytes?: number } = {}): Promise<string> {
		return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(await this.read(path, options))
	}

	/** Creates the file, or replaces its content and keeps its mode and owner. It is not atomic. */
	async write(path: string, data: Bytes): Promise<void> {
		const bytes = checkBytes('data', data)
		if (bytes.length <= WHOLE_MAX)
			await this.call('writeFile', { path: this.uri(path), dataBase64: bytes.toString('base64') })
		else await this.writeBlocks(path, [bytes])
	}

	// --- trees ---

	/** Copies a file, or a directory and all that is in it, to the path `remote`, and returns how many files. Links in a
	 * directory are copied as links. What is neither is refused. */
	async upload(local: string, remote: string): Promise<number> {
		this.uri(remote)
		const isDir = (await fs.stat(pathBytes(local))).isDirectory()
		return isDir ? this.uploadTree(local, remote, 0) : this.uploadFile(local, remote)
	}

	private async uploadFile(here: string, there: string): Promise<number> {
		const file = await openRegular(here)
		try {
			const { mode } = await file.stat()
			await this.writeBlocks(there, blocksOf(file))
			if (this.connection.can('fsChmod')) await this.chmod(there, mode & 0o777)
		} finally {
			await file.close()
		}
		return 1
	}

	private async uploadTree(here: string, there: string, depth: number): Promise<number> {
		checkDepth(depth, there)
		await this.mkdir(there)
		let count = 0
		for (const bytes of (await fs.readdir(pathBytes(here), { encoding: 'buffer' })).sort(Buffer.compare)) {
			const name = pathOf(bytes)
			const one = `${here}/${name}`, other = `${there}/${name}`
			const st = await fs.lstat(pathBytes(one))
			if (st.isDirectory()) count += await this.uploadTree(one, other, depth + 1)
			else if (st.isSymbolicLink()) {
				await this.remove(other, { missingOk: true })
				await this.symlink(other, (await fs.readlink(pathBytes(one))).toString())
				count++
			} else count += await this.uploadFile(one, other)
		}
		return count
	}

	/** Copies a file, or a directory and all that is in it, to the path `local`, and returns how many files. A file gets its
	 * name when it is complete. Links in a directory are copied as links where the server tells them. */
	async download(remote: string, local: string): Promise<number> {
		const what = await this.stat(remote)
		return what.isDir ? this.downloadTree(remote, local, 0) : this.downloadFile(remote, local, what.mode)
	}

	private async downloadFile(there: string, here: string, mode = 0o644): Promise<number> {
		const unfinished = pathBytes(`${dirname(here)}/.execd-${randomBytes(8).toString('hex')}`)
		const file = await fs.open(unfinished, 'wx', 0o600)
		try {
			try {
				for await (const data of this.readBlocks(there)) await file.writeFile(data)
				await file.chmod(mode & 0o777)
			} finally {
				await file.close()
			}
			await fs.rename(unfinished, pathBytes(here))
		} catch (e) {
			await fs.rm(unfinished, { force: true })
			throw e
		}
		return 1
	}

	/** The server says the names and what they are, so nothing here follows a link. */
	private async downloadTree(there: string, here: string, depth: number): Promise<number> {
		checkDepth(depth, there)
		if (!(await lstatOf(here))?.isDirectory()) await fs.mkdir(pathBytes(here))
		let count = 0
		for (const e of await this.listdir(there)) {
			const one = `${here}/${e.name}`, other = `${there}/${e.name}`
			if (e.isSymlink && e.target !== undefined) {
				if (e.target.includes('\0')) throw new ProtocolError(`the server's link ${other} has no text`)
				if ((await lstatOf(one))?.isSymbolicLink()) await fs.unlink(pathBytes(one))
				await fs.symlink(e.target, pathBytes(one))
				count++
			} else if (e.isDir) count += await this.downloadTree(other, one, depth + 1)
			else if (e.isFile) count += await this.downloadFile(other, one, e.mode)
			else throw new ExecdError(`${other}: it is neither a file nor a directory`)
		}
		return count
	}
}

function checkDepth(depth: number, path: string): void {
	if (depth > DEPTH_MAX)
		throw new LimitExceeded(`${path}: directories lie more than ${DEPTH_MAX} deep in each other`, DEPTH_MAX)
}

async function lstatOf(path: string) {
	try {
		return await fs.lstat(pathBytes(path))
	} catch (e) {
		if ((e as NodeJS.ErrnoException).code === 'ENOENT') return undefined
		throw e
	}
}

/** Never waits for a FIFO, and opens no device. */
async function openRegular(path: string): Promise<FileHandle> {
	const file = await fs.open(pathBytes(path), constants.O_RDONLY | constants.O_NONBLOCK)
	if ((await file.stat()).isFile()) return file
	await file.close()
	throw new ExecdError(`${path}: it is not a file`)
}

async function* blocksOf(file: FileHandle): AsyncGenerator<Buffer> {
	for (;;) {
		const { bytesRead, buffer } = await file.read(Buffer.alloc(BLOCK), 0, BLOCK, null)
		if (!bytesRead) return
		yield buffer.subarray(0, bytesRead)
	}
}

/** In pieces that a server takes. What is no iterable is a TypeError at once. */
function pieces(blocks: Blocks): AsyncGenerator<Buffer> {
	const isIterable = typeof blocks === 'object' && blocks !== null && !(blocks instanceof Uint8Array) &&
		(Symbol.iterator in blocks || Symbol.asyncIterator in blocks)
	if (!isIterable) throw new TypeError('blocks: expected an iterable of Uint8Array')
	return (async function* () {
		for await (const block of blocks) {
			const data = checkBytes('blocks', block)
			for (let at = 0; at < data.length; at += BLOCK) yield data.subarray(at, at + BLOCK)
		}
	})()
}
