// SPDX-License-Identifier: ISC
// Runs a command in a sandbox: node run.js DIRECTORY COMMAND
import { connect } from 'execd-client'

const [directory, command] = process.argv.slice(2)
const box = await connect()
const r = await box.run(command, { cwd: directory, sandbox: 'workspace-write' })
process.stdout.write(r.stdoutBytes)
process.stderr.write(r.stderrBytes)
await box.close()
process.exitCode = r.exitCode
