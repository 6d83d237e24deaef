# SPDX-License-Identifier: ISC
"""What a server sends piece by piece, for whoever iterates, until it ends or fails."""
from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

from .connection import Connection, Listener
from .errors import ExecdError

T = TypeVar("T")
Self = TypeVar("Self", bound="Stream")  # type: ignore[type-arg]


class Stream(Listener, Generic[T]):
    def __init__(self, connection: Connection, id: str | int) -> None:
        self._connection, self._id = connection, id
        self._queue: deque[T] = deque()
        self._done = False
        self._error: ExecdError | None = None
        self._changed = asyncio.Event()

    def failed(self, error: ExecdError) -> None:
        self._finish(error)

    def _finish(self, error: ExecdError | None) -> None:
        if not self._done:
            self._done, self._error = True, error
        self._connection.listeners.pop(self._id, None)
        self._changed.set()

    def close(self) -> None:
        self._finish(None)

    def __aiter__(self: Self) -> Self:
        return self

    async def __anext__(self) -> T:
        while not self._queue:
            if self._error is not None:
                raise self._error
            if self._done:
                raise StopAsyncIteration
            await self._connection.wait(self._changed)
        return self._queue.popleft()

    async def __aenter__(self: Self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        self.close()
