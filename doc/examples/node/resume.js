// SPDX-License-Identifier: ISC
// Starts a command, goes away, and comes back to it as another client would on another day.
import { connect } from 'execd-client'

const first = await connect()
await first.keep(600_000, { whileRunning: true }) // ten minutes more than the command
const { id } = await first.start('for i in 1 2 3; do echo line $i; sleep 0.1; done; exit 4')
await first.detach()

const box = await connect({ session: first.sessionId })
const child = await box.attach(id)
for await (const { data } of child) process.stdout.write(data)
console.log('it ended with', (await child.wait()).exitCode)
await box.end()
