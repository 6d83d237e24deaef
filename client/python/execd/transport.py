# SPDX-License-Identifier: ISC
"""What messages travel on: a WebSocket over TCP, TLS or a UNIX socket, or the lines of a command. One object is one
connection. The program that answers is not trusted."""
from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import ssl
import time
from typing import Any

import websockets.client
from websockets.exceptions import PayloadTooBig
from websockets.frames import Opcode
from websockets.uri import parse_uri

from .config import Endpoint, Server, tls_context
from .errors import AuthenticationFailed, CertificateRefused, ExecdError, LimitExceeded, ProtocolError, Unreachable

# The names are those of websockets 11 and of 10.
ClientProtocol: Any = getattr(websockets.client, "ClientProtocol", None) or getattr(websockets.client, "ClientConnection")

MESSAGE_MAX = 64 << 20  # bytes of a message of the server
FRAGMENTS_MAX = 65536   # of one message
PONGS_MAX = 1 << 20     # bytes that wait for a server that asks and does not read
BODY_SHOWN = 200        # bytes of the body of a refusal
COOKIE_MAX = 255
READ_BYTES = 1 << 18
CHILD_GRACE_S = 2.0     # from the end of its input to SIGKILL

_PAIR = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+=(?:\"[!#-+\--:<-\[\]-~]*\"|[!#-+\--:<-\[\]-~]*)", re.ASCII)


class Refusal(Unreachable):
    """The server is not there now. `passes`: it may be there soon. `gone`: a proxy has no server for the session."""

    def __init__(self, text: str, passes: bool = False, gone: bool = False) -> None:
        super().__init__(text)
        self.passes, self.gone = passes, gone


def printable(text: str, limit: int = BODY_SHOWN) -> str:
    """A stranger's text, for an error of ours."""
    return "".join(c if c.isprintable() else "?" for c in text[:limit]).strip()


class Transport:
    """Sends and receives whole messages."""

    can_resume = True
    cookie: str | None = None
    why = "the connection was closed"  # once receive() returned None
    close_code = 0
    close_reason = ""

    def __init__(self) -> None:
        self.heard = time.monotonic()
        self._closing: asyncio.Task[None] | None = None

    def send(self, message: bytes) -> None:
        raise NotImplementedError

    async def drain(self) -> None:
        """Waits while much is unsent. A lost connection is told by receive()."""

    async def receive(self) -> list[bytes] | None:
        """The next messages, which may be none; None at the end of the connection."""
        raise NotImplementedError

    def ping(self) -> None:
        """Asks for a sign of life."""

    def unsent(self) -> int:
        return 0

    async def _close(self) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        """May be called again, and by somebody else, while it closes."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    def abort(self) -> None:
        """Ends the connection at once, and with it receive()."""


class WebSocket(Transport):
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, protocol: Any) -> None:
        super().__init__()
        self._reader, self._writer, self._protocol = reader, writer, protocol
        self._pieces: list[bytes] = []
        self._over = False

    def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            if data and not self._writer.is_closing():
                self._writer.write(data)

    def send(self, message: bytes) -> None:
        # A connection that is being closed takes nothing more; receive() tells its end.
        if self._protocol.state.name == "OPEN":
            self._protocol.send_text(message)
            self._flush()

    def ping(self) -> None:
        if self._protocol.state.name == "OPEN":
            self._protocol.send_ping(b"")
            self._flush()

    async def drain(self) -> None:
        with contextlib.suppress(OSError):
            await self._writer.drain()

    def unsent(self) -> int:
        transport: asyncio.WriteTransport = self._writer.transport
        return transport.get_write_buffer_size()

    async def receive(self) -> list[bytes] | None:
        try:
            data = await self._reader.read(READ_BYTES)
        except (OSError, ssl.SSLError) as e:
            self.why = e.strerror or str(e)
            data = b""
        if not data:
            return None
        self.heard = time.monotonic()
        self._protocol.receive_data(data)
        messages = []
        for frame in self._protocol.events_received():
            message = self._take(frame)
            if message is not None:
                messages.append(message)
        self._check()
        self._flush()
        if self.unsent() > PONGS_MAX:
            await self.drain()
        return messages or (None if self.close_code else messages)

    def _take(self, frame: Any) -> bytes | None:
        if frame.opcode is Opcode.CLOSE:
            close = self._protocol.close_rcvd
            self.close_code, self.close_reason = close.code, printable(close.reason)
            self.why = f"the server closed the connection with code {close.code}: {self.close_reason}".rstrip(": ")
        if frame.opcode not in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
            return None
        self._pieces.append(frame.data)
        if len(self._pieces) > FRAGMENTS_MAX:
            raise LimitExceeded(f"the server sent a message of more than {FRAGMENTS_MAX} fragments", FRAGMENTS_MAX)
        if not frame.fin:
            return None
        message = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        return message

    def _check(self) -> None:
        """What the server did against the rules of WebSocket."""
        fault = self._protocol.parser_exc
        if isinstance(fault, PayloadTooBig):
            raise LimitExceeded(f"the server sent a message of more than {MESSAGE_MAX} bytes", MESSAGE_MAX)
        if fault is not None and not isinstance(fault, EOFError):
            raise ProtocolError(f"the server broke the rules of WebSocket: {printable(str(fault))}")

    async def _close(self) -> None:
        if self._protocol.state.name == "OPEN":
            self._protocol.send_close(1000)
            self._flush()
        self._writer.close()
        with contextlib.suppress(OSError, ssl.SSLError, asyncio.TimeoutError):
            await asyncio.wait_for(self._writer.wait_closed(), CHILD_GRACE_S)
            self._over = True
        self.abort()

    def abort(self) -> None:
        if not self._over:
            self._writer.transport.abort()
        self._over = True


async def _dial(at: Endpoint, server: Server) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    try:
        if at.kind == "unix":
            return await asyncio.open_unix_connection(at.address)
        if at.kind == "ws":
            return await asyncio.open_connection(at.host, at.port)
        return await asyncio.open_connection(at.host, at.port, ssl=tls_context(server), server_hostname=at.host)
    except ssl.SSLCertVerificationError as e:
        raise CertificateRefused(f"{server.url}: the server's certificate is refused: {e.verify_message}") from e
    except (ssl.SSLError, ConnectionResetError) as e:
        step = "TLS handshake" if at.kind == "wss" else "connect"
        raise Refusal(f"{server.url}: {step}: {e.strerror or e}") from e
    except OSError as e:
        # Of several addresses asyncio has one error with the texts of all.
        passes = isinstance(e, ConnectionRefusedError) or "[Errno 111]" in str(e)
        raise Refusal(f"{server.url}: connect: {e.strerror or e}", passes=passes) from e


def _refused(response: Any, server: Server, pinned: bool) -> ExecdError:
    """The statuses of servers and of the proxies in front of them."""
    status = response.status_code
    body = printable((response.body or b"").decode(errors="replace"))
    said = f"(HTTP status {status}{': ' if body else ''}{body})"
    if status in (401, 403, 407):
        text = "the server does not accept the token" if server.token else "the server requires a token, and none was given"
        return AuthenticationFailed(f"{server.url}: {text} {said}")
    if status == 429 or status >= 500:
        gone = status == 503 and pinned and "Retry-After" not in response.headers
        return Refusal(f"{server.url}: the server is not available {said}", passes=status in (429, 503), gone=gone)
    return ProtocolError(f"{server.url}: this is not an exec-server {said}")


async def _upgrade_answer(protocol: Any, reader: asyncio.StreamReader, server: Server) -> Any:
    hint = " (if there is TLS, its address begins with wss://)" if server.url.lower().startswith("ws:") else ""
    closed = f"{server.url}: the connection was closed instead of upgraded{hint}"
    first = True
    while True:
        try:
            data = await reader.read(READ_BYTES)
        except (OSError, ssl.SSLError) as e:
            # A server that wants another certificate says so only now (TLS 1.3).
            cls = AuthenticationFailed if isinstance(e, ssl.SSLError) and "ALERT" in str(e).upper() else Refusal
            raise cls(f"{closed}: {e.strerror or e}") from e
        if first and data.startswith(b"\x15\x03"):
            raise ProtocolError(f"{server.url}: the server speaks TLS; its address begins with wss://")
        if first and data and not b"HTTP/1.1"[:len(data)] == data[:8]:
            raise ProtocolError(f"{server.url}: the server does not speak HTTP")
        first = False
        try:
            protocol.receive_data(data) if data else protocol.receive_eof()
        except Exception as e:  # which one depends on the version of websockets
            if not data:
                raise Refusal(closed) from e
            raise ProtocolError(f"{server.url}: the server does not speak HTTP: {printable(str(e))}") from e
        events = protocol.events_received()
        if events:
            if len(events) > 1:
                raise ProtocolError(f"{server.url}: the server sent messages before initialize")
            return events[0]
        if not data:
            raise Refusal(closed)
        if protocol.handshake_exc is not None:
            raise ProtocolError(f"{server.url}: the server does not speak HTTP: {printable(str(protocol.handshake_exc))}")


def _cookie_of(response: Any) -> str | None:
    for value in response.headers.get_all("Set-Cookie"):
        pair = value.partition(";")[0].strip()
        if len(pair) <= COOKIE_MAX and _PAIR.fullmatch(pair):
            return str(pair)
    return None


async def _open_websocket(at: Endpoint, server: Server, cookie: str | None, pinned: bool) -> Transport:
    reader, writer = await _dial(at, server)
    try:
        protocol = ClientProtocol(parse_uri(at.request), max_size=MESSAGE_MAX)
        request = protocol.connect()
        if server.token is not None:
            request.headers["Authorization"] = f"Bearer {server.token}"
        if cookie is not None:
            request.headers["Cookie"] = cookie
        protocol.send_request(request)
        writer.write(b"".join(protocol.data_to_send()))
        response = await _upgrade_answer(protocol, reader, server)
        if response.status_code != 101:
            raise _refused(response, server, pinned or "?" in at.request)
        if protocol.handshake_exc is not None:
            raise ProtocolError(f"{server.url}: the upgrade to WebSocket was answered wrongly: "
                                f"{printable(str(protocol.handshake_exc))}")
        link = WebSocket(reader, writer, protocol)
        link.cookie = _cookie_of(response) or cookie
        return link
    except BaseException:
        writer.transport.abort()
        raise


class Lines(Transport):
    """stdio: a command that is an exec-server. It ends with the connection."""

    can_resume = False
    why = "the command ended"

    def __init__(self, child: asyncio.subprocess.Process) -> None:
        super().__init__()
        assert child.stdin is not None and child.stdout is not None
        self._child, self._in, self._out = child, child.stdin, child.stdout
        self._rest = bytearray()

    def send(self, message: bytes) -> None:
        if not self._in.is_closing():
            self._in.write(message + b"\n")

    async def drain(self) -> None:
        with contextlib.suppress(OSError):
            await self._in.drain()

    async def receive(self) -> list[bytes] | None:
        data = await self._out.read(READ_BYTES)
        if not data:
            return None
        self.heard = time.monotonic()
        self._rest += data
        if b"\n" not in data:
            if len(self._rest) > MESSAGE_MAX:
                raise LimitExceeded(f"the server sent a line of more than {MESSAGE_MAX} bytes", MESSAGE_MAX)
            return []
        *lines, rest = bytes(self._rest).split(b"\n")
        self._rest = bytearray(rest)
        return [line for line in lines if line.strip()]

    async def _close(self) -> None:
        self._in.close()
        try:
            await asyncio.wait_for(self._child.wait(), CHILD_GRACE_S)
        except asyncio.TimeoutError:
            self.abort()
            await self._child.wait()

    def abort(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)


async def _open_lines(at: Endpoint) -> Transport:
    child = await asyncio.create_subprocess_exec(
        "/bin/sh", "-c", at.address, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, start_new_session=True)
    return Lines(child)


async def open_transport(at: Endpoint, server: Server, cookie: str | None, pinned: bool) -> Transport:
    """Connects, within the server's connect_timeout."""
    if at.kind == "stdio":
        return await _open_lines(at)
    try:
        return await asyncio.wait_for(_open_websocket(at, server, cookie, pinned), server.connect_timeout)
    except asyncio.TimeoutError:
        raise Refusal(f"{server.url}: no connection within {server.connect_timeout:g} s") from None
