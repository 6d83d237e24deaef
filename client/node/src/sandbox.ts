// SPDX-License-Identifier: ISC
/** The sandbox profiles that execctl knows by name, and the context that a request carries (doc/sandbox.md section A3). */
import type { Json } from './values.js'
import { check } from './values.js'

/** The name of a profile, or a whole context of execd-protocol(7). */
export type Sandbox = 'read-only' | 'workspace-write' | Json

// The directories of a workspace that configure tools.
const guarded = ['.git', '.agents', '.codex', '.aws']

function entry(kind: string, access: string, subpath?: string): Json {
	return { path: { type: 'special', value: subpath === undefined ? { kind } : { kind, subpath } }, access }
}

export function checkSandbox(sandbox: unknown, network: boolean): void {
	if (sandbox !== undefined) check('sandbox', sandbox, 'string', 'object')
	if (typeof sandbox !== 'string') {
		if (network) throw new RangeError('network: it means nothing without a profile in sandbox')
	} else if (sandbox !== 'read-only' && sandbox !== 'workspace-write')
		throw new RangeError(`sandbox: ${JSON.stringify(sandbox)} is neither read-only nor workspace-write`)
}

/** `cwd` is the URI of the workspace. */
export function context(sandbox: Sandbox, cwd: string, network: boolean): Json {
	if (typeof sandbox !== 'string') return { ...sandbox }
	const entries = [entry('root', 'read')]
	if (sandbox === 'workspace-write') {
		entries.push(...['project_roots', 'slash_tmp', 'tmpdir'].map((kind) => entry(kind, 'write')))
		entries.push(...guarded.map((name) => entry('project_roots', 'read', name)))
	}
	const permissions = {
		type: 'managed', network: network ? 'enabled' : 'restricted', file_system: { type: 'restricted', entries },
	}
	return { permissions, cwd, workspaceRoots: [cwd], windowsSandboxLevel: 'disabled' }
}
