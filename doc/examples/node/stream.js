// SPDX-License-Identifier: ISC
// Writes output as it comes, answers a question of the command, and tells how it ended.
import { connect } from 'execd-client'

const box = await connect()
const command = 'echo working; echo a warning >&2; read answer; echo the answer was $answer; exit 3'
const child = await box.start(command, { stdin: true })
for await (const { stream, data } of child) {
	process.stdout.write(`${stream} ${data}`)
	if (data.toString().endsWith('working\n')) await child.write('yes\n')
}
const { exitCode } = await child.wait()
console.log('it ended with', exitCode)
await box.close()
process.exitCode = exitCode
