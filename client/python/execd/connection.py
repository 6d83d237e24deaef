# SPDX-License-Identifier: ISC
"""One session on a server: requests and their answers, and the connection, which is lost and resumed.

A request that may be repeated is sent again on the next connection; any other one that had no answer yet fails with
AnswerLost. What processes had not heard they read after a resume (process.py), so no byte is missing and none comes
twice."""
from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import time
from dataclasses import dataclass
from typing import Any

from .config import Server, parse_url
from .errors import (AnswerLost, AuthenticationFailed, ConnectionLost, ExecdError, LimitExceeded, MissingCapability,
                     ProtocolError, Refused, ServerError, SessionAttached, SessionLost, SessionTaken, Unreachable, server_error)
from .paths import from_uri
from .transport import Refusal, Transport, open_transport, printable
from .values import member, optional

SEND_MAX = 16 << 20      # bytes of a request: servers take no larger frame
ID_MAX = 256             # characters of a session's id
TEXT_MAX = 1 << 16       # characters of an error's text
RETRY_FIRST_S = 0.1
RETRY_MAX_S = 1.0
ATTACHED_RETRY_S = 0.1   # the server still sees the old connection
GONE_S = 1.5             # for so long a proxy may say that it has no host for the session
RESUME_S = 75.0          # codex exec-server keeps a session for 80 s
RESUME_MAX_S = 86400.0   # a server cannot make its client try for longer
ATTACHED = -32010
# What a server that is about to end, or takes nobody, answers to initialize. Behind its address there will be another.
PASSING = ("the server is shutting down", "the server takes no new sessions: it is drained by its operator")

# Doing these twice has the effect of doing them once, as protocol/rpc/methods.def says. The ids of this client protect
# starts.
AGAIN = frozenset((
    "process/start", "process/forward", "process/write",
    "environment/info", "environment/status", "process/read", "process/terminate", "process/closeStdin", "process/resize",
    "process/arrived",
    "process/wait", "process/snapshot", "fs/watchMissing", "fs/open", "fs/readBlock", "fs/readFile", "fs/writeFile", "fs/getMetadata",
    "fs/canonicalize", "fs/readDirectory", "fs/walk", "environmentConfig/read", "capabilities/discoverV2",
    "capabilityRoots/discoverV1"))


class Listener:
    """Whom notifications of one id belong to."""

    def event(self, method: str, params: dict[str, Any]) -> None:
        """A notification."""

    def lost(self) -> None:
        """The connection was lost."""

    def resumed(self) -> None:
        """The session is there again."""

    def failed(self, error: ExecdError) -> None:
        """The connection is over."""


# The member that says whom a notification belongs to.
_KEYS = {"process/output": "processId", "process/exited": "processId", "process/closed": "processId",
         "http/request/bodyDelta": "requestId", "fs/changed": "watchId"}


@dataclass(eq=False)
class _Call:
    id: int
    method: str
    message: bytes
    answer: asyncio.Future[Any]
    about: str = ""
    in_flight: bool = False
    sent: int = 0


def _about(params: dict[str, Any]) -> str:
    """What an error of the operating system is about: a file, or a program and its directory."""
    argv, cwd, path = params.get("argv"), params.get("cwd"), params.get("path", params.get("sourcePath"))
    if argv and isinstance(argv, list) and isinstance(cwd, str) and cwd.startswith("file:///"):
        return printable(f"{argv[0]} in {from_uri(cwd)}")
    return printable(from_uri(path)) if isinstance(path, str) and path.startswith("file:///") else ""


@dataclass
class Options:
    client_name: str = "execd-python"
    session: str | None = None
    watch: bool = False
    take_over: bool = False
    resume_timeout: float | None = None


class Connection:
    def __init__(self, server: Server, options: Options) -> None:
        self.server, self.options = server, options
        self.at = parse_url(server.url)
        self.session = options.session
        self.info: dict[str, Any] = {}
        self.initialized: dict[str, Any] = {}
        self.error: ExecdError | None = None  # why it is over
        self.resumes = 0
        self.ended = False  # session/end was sent
        self.listeners: dict[object, Listener] = {}
        self.nonce = secrets.token_hex(8)
        self._count = 0
        self._calls: dict[int, _Call] = {}
        self._link: Transport | None = None
        self._cookie: str | None = None
        self._taken_by: str | None = None
        self._attached: SessionAttached | None = None
        self._detached_ttl = 0.0
        self._task: asyncio.Task[None] | None = None
        self._room = asyncio.Event()
        self._crowded: set[object] = set()
        self._waiting = 0

    # --- what the program asks ---

    def can(self, capability: str) -> bool:
        capabilities = self.info.get("capabilities")
        return isinstance(capabilities, dict) and capabilities.get(capability) is True

    def need(self, capability: str, what: str) -> None:
        if not self.can(capability):
            raise MissingCapability(capability, what)

    def number(self) -> int:
        self._count += 1
        return self._count

    def new_id(self) -> str:
        """Unique also among the clients that meet in one session."""
        return f"{self.nonce}-{self.number()}"

    def request(self, method: str, params: dict[str, Any]) -> asyncio.Future[Any]:
        """Sends a request, now or when the session is there again. The future gets the result or an ExecdError. A future
        that is cancelled does not take the request back."""
        if self.error is not None:
            raise self.error
        number = self.number()
        message = json.dumps({"id": number, "method": method, "params": params}, separators=(",", ":")).encode()
        if len(message) > SEND_MAX:
            raise LimitExceeded(f"{method}: the request is longer than {SEND_MAX} bytes", SEND_MAX)
        call = _Call(number, method, message, asyncio.get_running_loop().create_future(), _about(params))
        # The program may not be there any more to ask how it ended.
        call.answer.add_done_callback(lambda f: f.cancelled() or f.exception())
        self._calls[number] = call
        self._room.set()  # somebody waits for an answer
        if self._link is not None:
            self._send(call)
        return call.answer

    async def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        answer = self.request(method, params)
        if self._link is not None:
            await self._link.drain()
        result = await answer
        if not isinstance(result, dict):
            raise ProtocolError(f"the server's result of {method} is {type(result).__name__}, and not an object")
        return result

    def tell(self, method: str, params: dict[str, Any]) -> None:
        """Sends a request whose answer nobody waits for."""
        if self.error is None:
            self.request(method, params)

    def crowd(self, who: object, crowded: bool) -> None:
        """While somebody is crowded nothing is read, unless somebody waits for what may come."""
        if crowded:
            self._crowded.add(who)
        elif who in self._crowded:
            self._crowded.discard(who)
            self._room.set()

    async def wait(self, event: asyncio.Event) -> None:
        """Waits for an event that a message brings."""
        event.clear()
        self._waiting += 1
        self._room.set()
        try:
            await event.wait()
        finally:
            self._waiting -= 1

    def _is_paused(self) -> bool:
        return bool(self._crowded) and not self._calls and self._waiting == 0

    def _send(self, call: _Call) -> None:
        assert self._link is not None
        call.in_flight = True
        call.sent += 1
        self._link.send(call.message)
        if call.method not in AGAIN:
            call.message = b""

    # --- the first connection ---

    async def open(self) -> None:
        """Within connect_timeout it is tried again where the server is away; nothing has started then."""
        deadline = time.monotonic() + self.server.connect_timeout
        delay = RETRY_FIRST_S
        while True:
            try:
                self._link = await self._connect(first=True)
                break
            except Refusal as e:
                if not e.passes or time.monotonic() + delay >= deadline:
                    raise Unreachable(str(e)) from e
            await asyncio.sleep(delay)
            delay = min(2 * delay, RETRY_MAX_S)
        self._task = asyncio.create_task(self._run())

    async def _connect(self, first: bool) -> Transport:
        pinned = self.session is not None and self._cookie is not None
        link = await open_transport(self.at, self.server, self._cookie if self.session else None, pinned)
        try:
            await asyncio.wait_for(self._initialize(link, first), self.server.initialize_timeout)
        except BaseException as e:
            link.abort()
            await link.close()
            if not isinstance(e, asyncio.TimeoutError):
                raise
            if first and self._attached is not None:
                raise self._attached from None
            raise Refusal(f"{self.server.url}: initialize: no answer within {self.server.initialize_timeout:g} s") from None
        self._cookie = link.cookie
        return link

    async def _initialize(self, link: Transport, first: bool) -> None:
        params: dict[str, Any] = {"clientName": self.options.client_name}
        if self.session is not None:
            params["watchSessionId" if self.options.watch else "resumeSessionId"] = self.session
        if self.options.take_over and first:  # two that take it from each other would never end
            params["takeOver"] = True
        while True:
            link.send(json.dumps({"id": 0, "method": "initialize", "params": params}).encode())
            answer = await self._first_answer(link)
            if "error" not in answer:
                break
            error = self._error_of("initialize", answer)
            if error.code != ATTACHED:
                raise self._refused(error)
            # The server may still see the connection that was lost.
            self._attached = SessionAttached(error.text)
            await asyncio.sleep(ATTACHED_RETRY_S)
        self._take_session(member(answer, "result", dict))
        link.send(b'{"method":"initialized"}')

    async def _first_answer(self, link: Transport) -> dict[str, Any]:
        """Notifications of a resumed session may come before it; processes read what they missed anyway."""
        while True:
            messages = await link.receive()
            if messages is None:
                if link.close_code == 1008 and link.close_reason == "expired websocket jwt":
                    raise AuthenticationFailed(f"{self.server.url}: {link.why}")
                raise Refusal(f"{self.server.url}: {link.why}")
            answers = [m for m in map(self._parse, messages) if "method" not in m]
            if len(answers) > 1 or (answers and answers[0].get("id") not in (0, -1)):
                raise ProtocolError(f"{self.server.url}: the server answered what was not asked")
            if answers:
                return answers[0]

    def _refused(self, error: ServerError) -> ExecdError:
        text = f"{self.server.url}: initialize: {error.text}"
        if error.text in PASSING:
            return Refusal(text, passes=True)
        return SessionLost(text) if self.session is not None and isinstance(error, Refused) else error

    def _take_session(self, result: dict[str, Any]) -> None:
        session = member(result, "sessionId", str)
        if self.options.watch and result.get("watching") is not True:
            raise MissingCapability("sessionWatch", "watch=True")
        if not session or len(session) > ID_MAX:
            raise ProtocolError("the answer to initialize names no session: this is not an exec-server")
        if self.session not in (None, session):
            raise ProtocolError("the server resumed another session")
        self.session, self.initialized = session, result
        self.info = optional(result, "environmentInfo", dict, {})
        self._detached_ttl = max(0.0, optional(result, "detachedTtl", int, 0) / 1000)

    # --- its life ---

    async def _run(self) -> None:
        try:
            while True:
                assert self._link is not None
                link = self._link
                why = await self._serve(link)
                link.abort()
                await link.close()
                self._lose(link, why)
                await self._resume(why)
        except ExecdError as e:
            self._fail(e)
        except Exception as e:  # a fault of this client: nobody may wait for ever
            self._fail(ConnectionLost(f"the client failed: {type(e).__name__}: {e}"))
            raise

    async def _serve(self, link: Transport) -> str:
        """Takes messages until the connection ends; returns why it did. Cancelled, it leaves the connection as it is."""
        look = asyncio.create_task(self._look_for_life(link)) if link.can_resume else None
        try:
            while (messages := await link.receive()) is not None:
                for text in messages:
                    self._take(self._parse(text))
                while self._is_paused():
                    self._room.clear()
                    await self._room.wait()
                    link.heard = time.monotonic()
            return link.why
        except (ProtocolError, LimitExceeded):
            link.abort()
            raise
        finally:
            if look is not None:
                look.cancel()

    async def _look_for_life(self, link: Transport) -> None:
        """After half of the silence timeout the server is asked, and after all of it the connection counts as lost, unless
        the network still takes what is sent."""
        half = self.server.silence_timeout / 2
        asked, unsent = 0.0, 0
        while True:
            await asyncio.sleep(max(0.01, half - (time.monotonic() - max(link.heard, asked))))
            now = time.monotonic()
            if now - max(link.heard, asked) < half:
                continue
            if self._is_paused():
                asked = now  # nothing is read, so this is no silence
                continue
            if asked > link.heard and link.unsent() >= unsent:
                link.why = f"the server sent nothing for {now - link.heard:.1f} s"
                link.abort()
                return
            asked, unsent = now, link.unsent()
            link.ping()

    def _lose(self, link: Transport, why: str) -> None:
        self._link = None
        for call in list(self._calls.values()):
            if not call.in_flight:
                continue
            call.in_flight = False
            if call.answer.done():
                del self._calls[call.id]
            elif call.method not in AGAIN:
                del self._calls[call.id]
                call.answer.set_exception(AnswerLost(
                    f"{call.method}: the connection was lost before the answer; whether it was done is unknown: {why}"))
        for listener in list(self.listeners.values()):
            listener.lost()
        text = f"{self.server.url}: {why}"
        if self.ended or not link.can_resume:
            raise ConnectionLost(text)
        if self._taken_by is not None:
            raise SessionTaken(f"the session was taken over by another client, {self._taken_by}")
        if link.close_code == 1011 and link.close_reason.startswith("session ended: "):
            raise SessionLost(text)

    def resume_timeout(self) -> float:
        if self.options.resume_timeout is not None:
            return self.options.resume_timeout
        return max(RESUME_S, min(self._detached_ttl, RESUME_MAX_S))

    async def _resume(self, why: str) -> None:
        lost = time.monotonic()
        gone: float | None = None
        delay = RETRY_FIRST_S
        while True:
            try:
                self._link = await self._connect(first=False)
                break
            except (Unreachable, OSError) as e:
                why = str(e)
                now = time.monotonic()
                gone = (gone or now) if isinstance(e, Refusal) and e.gone else None
                if gone is not None and now >= gone + GONE_S:
                    raise SessionLost(f"the host of the session is gone, says the proxy in front of it: {why}") from e
                if now >= lost + self.resume_timeout():
                    raise ConnectionLost(f"the connection was lost and could not be resumed within "
                                         f"{self.resume_timeout():g} s: {why}") from e
            await asyncio.sleep(delay)
            delay = min(2 * delay, RETRY_MAX_S)
        self.resumes += 1
        for call in list(self._calls.values()):
            if call.answer.done():  # nobody wants it any more
                del self._calls[call.id]
            else:
                self._send(call)
        for listener in list(self.listeners.values()):
            listener.resumed()

    def _fail(self, error: ExecdError) -> None:
        """It is over."""
        if self.error is not None:
            return
        self.error = error
        if self._link is not None:
            self._link.abort()
        for call in self._calls.values():
            if not call.answer.done():
                call.answer.set_exception(error)
        self._calls.clear()
        for listener in list(self.listeners.values()):
            listener.failed(error)

    async def close(self) -> None:
        """Leaves the session, which the server keeps until its own timeout."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        link, self._link = self._link, None
        self._fail(ConnectionLost("the client was closed"))
        if link is not None:
            await link.close()

    # --- messages ---

    def _parse(self, text: bytes) -> dict[str, Any]:
        try:
            message = json.loads(text)
        except (ValueError, RecursionError) as e:
            shown = printable(text[:200].decode(errors="replace"))
            raise ProtocolError(f"{self.server.url}: the server sent what is no message: {shown!r} ({e})") from None
        if not isinstance(message, dict):
            raise ProtocolError(f"{self.server.url}: the server sent {type(message).__name__}, and not an object")
        return message

    def _take(self, message: dict[str, Any]) -> None:
        if "method" not in message:
            self._answer(message)
        elif "id" in message:
            self._refuse(message)
        else:
            self._notification(member(message, "method", str), optional(message, "params", dict, {}))

    def _refuse(self, request: dict[str, Any]) -> None:
        """What a server asks its client. An error is a no to network/policyRequest."""
        if self._link is not None:
            error = {"code": -32601, "message": "this client answers no requests"}
            self._link.send(json.dumps({"id": request["id"], "error": error}).encode())

    def _error_of(self, method: str, message: dict[str, Any], about: str = "") -> ServerError:
        error = member(message, "error", dict)
        return server_error(method, member(error, "code", int), member(error, "message", str)[:TEXT_MAX], error.get("data"), about)

    def _answer(self, message: dict[str, Any]) -> None:
        number = message.get("id")
        if number == -1 and "error" in message:
            raise ProtocolError(f"{self.server.url}: the server could not read a message: "
                                f"{self._error_of('', message).text}")
        call = self._calls.get(number) if isinstance(number, int) and not isinstance(number, bool) else None
        if call is None or not call.in_flight:
            raise ProtocolError(f"{self.server.url}: the server answered {str(number)[:40]!r}, which was not asked")
        if ("result" in message) == ("error" in message):
            raise ProtocolError(f"{self.server.url}: the answer to {call.method} is neither a result nor an error")
        error = self._error_of(call.method, message, call.about) if "error" in message else None
        del self._calls[call.id]
        if call.answer.done():
            return
        if error is None:
            call.answer.set_result(message["result"])
        elif call.sent > 1 and call.method in ("process/start", "process/forward") and "already exists" in error.text:
            call.answer.set_result({})  # an earlier one has arrived; the id has this client's nonce
        else:
            call.answer.set_exception(error)

    def _notification(self, method: str, params: dict[str, Any]) -> None:
        if method == "session/takenOver":
            self._taken_by = printable(optional(params, "by", str, ""))
        elif method == "session/lagged":
            for listener in list(self.listeners.values()):
                listener.resumed()
        name = _KEYS.get(method)
        if name is None:
            return
        key = params.get(name)
        owner = self.listeners.get(key) if isinstance(key, (str, int)) else None
        if owner is not None:
            owner.event(method, params)
        elif self.options.session is None and not self._was_ours(key):
            raise ProtocolError(f"{self.server.url}: {method} of {str(key)[:40]!r}, which this client does not know")

    def _was_ours(self, key: Any) -> bool:
        """Whether this client once had it. In a session of its own there is nothing else."""
        if isinstance(key, str) and key.startswith(f"{self.nonce}-"):
            key = int(key[17:]) if key[17:].isascii() and key[17:].isdigit() and len(key) < 40 else None
        elif isinstance(key, str):
            return False
        return isinstance(key, int) and 0 < key <= self._count
