# SPDX-License-Identifier: ISC
"""Changes of files (fs/watch). A watch ends with its connection; after a resume it is made again, and a change of kind
`lost` says that others may have been missed."""
from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from .connection import Connection
from .errors import ExecdError
from .paths import from_uri
from .stream import Stream
from .values import member, optional

QUEUED_MAX = 10000  # changes that nobody reads; then they are `lost`


@dataclass(frozen=True)
class Change:
    """`kind` is created, removed, modified or attributes; or lost, with the path that is watched: look at all of it."""

    kind: str
    path: str


class Watch(Stream[Change]):
    """An asynchronous iterator of changes, which ends when the path names something else or nothing."""

    def __init__(self, connection: Connection, path: str, params: dict[str, Any]) -> None:
        super().__init__(connection, connection.number())
        self.path, self._params = path, params
        self._again: asyncio.Task[None] | None = None

    async def open(self) -> None:
        self._connection.listeners[self._id] = self
        try:
            await self._connection.call("fs/watch", {**self._params, "watchId": self._id})
        except ExecdError as e:
            self._finish(e)
            raise

    def event(self, method: str, params: dict[str, Any]) -> None:
        for c in member(params, "changes", list):
            self._put(Change(member(c, "kind", str)[:40], from_uri(member(c, "path", str))))
        if optional(params, "overflow", bool, False):
            self._put(Change("lost", self.path))
        if optional(params, "ended", bool, False):
            self._finish(None)

    def _put(self, change: Change) -> None:
        if len(self._queue) >= QUEUED_MAX:
            self._queue.clear()
            change = Change("lost", self.path)
        self._queue.append(change)
        self._changed.set()

    def resumed(self) -> None:
        self._again = asyncio.create_task(self._watch_again())

    async def _watch_again(self) -> None:
        self._connection.listeners.pop(self._id, None)
        self._id = self._connection.number()
        try:
            await self.open()
            self._put(Change("lost", self.path))
        except ExecdError:
            pass  # open() has told it

    def close(self) -> None:
        if not self._done:
            self._connection.tell("fs/unwatch", {"watchId": self._id})
        self._finish(None)
