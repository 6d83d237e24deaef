// SPDX-License-Identifier: ISC
/**
 * A client of execd, and of every other exec-server (`codex exec-server`). doc/node.md has the whole surface.
 *
 *	import { connect } from 'execd-client'
 *
 *	const box = await connect()
 *	const r = await box.run('make check', { cwd: '/srv/work', sandbox: 'workspace-write' })
 *	console.log(r.stdout, r.stderr, r.exitCode)
 *	await box.close()
 */
export { Box, connect } from './box.js'
export type { Command, ConnectOptions, RunOptions, StartOptions } from './box.js'
export * from './errors.js'
export { Files } from './files.js'
export type { Blocks, Entry, Metadata, Walk, WalkOptions } from './files.js'
export { Forward } from './forward.js'
export { HttpResponse, HttpStream } from './http.js'
export type { HttpOptions } from './http.js'
export { Process, Result } from './process.js'
export type { Exit, Output } from './process.js'
export type { Sandbox } from './sandbox.js'
export { Watch } from './watch.js'
export type { Change } from './watch.js'
