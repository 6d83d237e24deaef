// SPDX-License-Identifier: ISC
/** A port here that leads to a port on the loopback of a command, or of the server's host. A connection through it goes on
 * after a cut. */
import { once } from 'node:events'
import * as net from 'node:net'
import { ExecdError } from './errors.js'
import type { Process } from './process.js'

const LINKS_MAX = 32 // connections at once; others wait

/** `port` is the one here, on 127.0.0.1. `error` is why the last connection failed, if one did. */
export class Forward {
	port = 0
	error?: ExecdError
	private readonly server = net.createServer({ allowHalfOpen: true, pauseOnConnect: true })
	private readonly links = new Set<net.Socket>()
	private readonly waiting: net.Socket[] = []

	constructor(private readonly dial: () => Promise<Process>) {
		this.server.on('connection', (socket) => {
			socket.on('error', () => {}) // whoever came has gone, and its streams end
			socket.setNoDelay(true)
			this.waiting.push(socket)
			this.take()
		})
	}

	async open(port: number): Promise<void> {
		this.server.listen(port, '127.0.0.1')
		await once(this.server, 'listening')
		this.port = (this.server.address() as net.AddressInfo).port
	}

	private take(): void {
		while (this.links.size < LINKS_MAX && this.waiting.length) void this.serve(this.waiting.shift()!)
	}

	private async serve(socket: net.Socket): Promise<void> {
		this.links.add(socket)
		try {
			await this.copy(socket)
		} catch (e) {
			if (e instanceof ExecdError) this.error = e
		} finally {
			socket.destroy()
			this.links.delete(socket)
			this.take()
		}
	}

	private async copy(socket: net.Socket): Promise<void> {
		const process = await this.dial()
		void this.send(process, socket)
		try {
			for await (const { stream, data } of process)
				if (stream === 'stdout' && !socket.write(data) && !socket.destroyed)
					await Promise.race([once(socket, 'drain'), once(socket, 'close')])
			socket.end()
			if (!socket.destroyed && !socket.writableFinished)
				await Promise.race([once(socket, 'finish'), once(socket, 'close')])
		} finally {
			if (!process.closed) await process.terminate().catch(() => {})
		}
	}

	/** What comes here goes there, and its end. A lost connection is told by the other direction. */
	private async send(process: Process, socket: net.Socket): Promise<void> {
		try {
			for await (const data of socket.iterator({ destroyOnReturn: false })) await process.write(data as Buffer)
			await process.closeStdin()
		} catch {
			if (!process.closed) await process.terminate().catch(() => {})
		}
	}

	async close(): Promise<void> {
		this.server.close()
		for (const socket of [...this.waiting.splice(0), ...this.links]) socket.destroy()
	}
}
