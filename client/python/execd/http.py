# SPDX-License-Identifier: ISC
"""Requests of HTTP that the server makes. They end with their connection: what was still coming is AnswerLost."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .connection import Connection
from .errors import AnswerLost, ExecdError, LimitExceeded, OperatingSystemError, ProtocolError
from .stream import Stream
from .values import check, check_bytes, check_text, from_base64, member, milliseconds, optional, to_base64

BODY_MAX = 64 << 20    # bytes of http(), unless told otherwise
QUEUED_MAX = 64 << 20  # bytes of a stream that nobody reads
PAUSE_MAX = 8 << 20    # bytes of a stream until nothing more is read from the connection
HEADERS_MAX = 10000


@dataclass(frozen=True)
class HttpResponse:
    """Names of headers are in lower case, and repeated ones stay repeated."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes = field(default=b"", repr=False)

    @property
    def text(self) -> str:
        return self.body.decode(errors="replace")

    def header(self, name: str) -> str | None:
        """The first of this name."""
        return next((v for n, v in self.headers if n == name.lower()), None)


def check_request(method: Any, url: Any, headers: Any, body: Any, timeout: Any, follow: Any) -> dict[str, Any]:
    check_text("method", method)
    check_text("url", url)
    check("follow", follow, bool)
    params: dict[str, Any] = {"method": method, "url": url, "redirectPolicy": "follow" if follow else "stop",
                              "streamResponse": True}
    if headers is not None:
        pairs = list(headers.items() if isinstance(headers, Mapping) else headers)
        for name, value in pairs:
            check_text("headers", name)
            check_text("headers", value)
        params["headers"] = [{"name": n, "value": v} for n, v in pairs]
    if body is not None:
        params["bodyBase64"] = to_base64(check_bytes("body", body))
    if timeout is not None:
        params["timeoutMs"] = milliseconds("timeout", timeout)
    return params


class HttpStream(Stream[bytes]):
    """An asynchronous iterator of the body."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection, connection.new_id())
        self.status = 0
        self.headers: list[tuple[str, str]] = []
        self._seq = 0
        self._queued = 0

    async def open(self, params: dict[str, Any]) -> None:
        self._connection.listeners[self._id] = self
        try:
            said = await self._connection.call("http/request", {**params, "requestId": self._id})
            self.status = member(said, "status", int)
            headers = member(said, "headers", list)
            if len(headers) > HEADERS_MAX:
                raise LimitExceeded(f"the response has more than {HEADERS_MAX} headers", HEADERS_MAX)
            self.headers = [(member(h, "name", str), member(h, "value", str)) for h in headers]
        except BaseException:
            self.close()
            raise

    def event(self, method: str, params: dict[str, Any]) -> None:
        seq = member(params, "seq", int)
        if seq != self._seq + 1:
            raise ProtocolError("the server's http/request/bodyDelta is out of order")
        self._seq = seq
        data = from_base64(member(params, "deltaBase64", str))
        if data:
            self._queue.append(data)
            self._queued += len(data)
        if self._queued > QUEUED_MAX:
            self._finish(LimitExceeded(f"more than {QUEUED_MAX} bytes of the body wait for somebody to read them", QUEUED_MAX))
        elif member(params, "done", bool):
            text = optional(params, "error", str, "")
            self._finish(OperatingSystemError("http/request", -32603, text) if text else None)
        elif self._queued > PAUSE_MAX:
            self._connection.crowd(self, True)
        self._changed.set()

    def lost(self) -> None:
        self._finish(AnswerLost("http/request: the connection was lost before the end of the body"))

    def _finish(self, error: ExecdError | None) -> None:
        super()._finish(error)
        self._connection.crowd(self, False)

    def close(self) -> None:
        """What still comes is dropped; a server knows no way to be told so."""
        self._finish(None)
        self._queue.clear()

    async def __anext__(self) -> bytes:
        data = await super().__anext__()
        self._queued -= len(data)
        if self._queued < PAUSE_MAX // 2:
            self._connection.crowd(self, False)
        return data


async def request(connection: Connection, params: dict[str, Any], max_bytes: int) -> HttpResponse:
    """A whole response. It comes as a stream, because a body in one message has no limit."""
    stream = HttpStream(connection)
    await stream.open(params)
    parts, size = [], 0
    async with stream:
        async for data in stream:
            size += len(data)
            if size > max_bytes:
                raise LimitExceeded(f"the body has more than max_bytes = {max_bytes} bytes", max_bytes)
            parts.append(data)
    return HttpResponse(stream.status, stream.headers, b"".join(parts))
