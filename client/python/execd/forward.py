# SPDX-License-Identifier: ISC
"""A port here that leads to a port on the loopback of a command, or of the server's host. A connection through it goes on
after a cut."""
from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from .errors import ExecdError
from .process import Process

LINKS_MAX = 32  # connections at once; others wait
READ_BYTES = 32768


class Forward:
    """`port` is the one here, on 127.0.0.1. `error` is why the last connection failed, if one did."""

    def __init__(self, dial: Callable[[], Awaitable[Process]]) -> None:
        self.port = 0
        self.error: ExecdError | None = None
        self._dial = dial
        self._server: asyncio.Server | None = None
        self._free = asyncio.Semaphore(LINKS_MAX)
        self._links: set[asyncio.Task[None]] = set()

    async def open(self, port: int) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._links.add(task)
        try:
            async with self._free:
                await self._serve(reader, writer)
        except asyncio.CancelledError:
            pass  # close() did that
        except ExecdError as e:
            self.error = e
        except OSError:
            pass  # whoever came has gone
        finally:
            self._links.discard(task)
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        process = await self._dial()
        up = asyncio.create_task(self._send(process, reader))
        try:
            async for output in process:
                if output.stream == "stdout":
                    writer.write(output.data)
                    await writer.drain()
            with contextlib.suppress(OSError):
                writer.close()
                await writer.wait_closed()
        finally:
            up.cancel()
            await asyncio.gather(up, return_exceptions=True)
            if not process.closed:
                with contextlib.suppress(ExecdError):
                    await process.terminate()

    async def _send(self, process: Process, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(ExecdError, OSError):
            while data := await reader.read(READ_BYTES):
                await process.write(data)
            await process.close_stdin()

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        links = list(self._links)
        for task in links:
            task.cancel()
        await asyncio.gather(*links, return_exceptions=True)

    async def __aenter__(self) -> Forward:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()
