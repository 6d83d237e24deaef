# SPDX-License-Identifier: ISC
"""A command on the server: its output in order and every byte once, its input, its signals and its end.

The server pushes events with numbers, and what is missing after a resume is read then. With wait_output (a server with
processRetentionWait) all output is asked for: the command waits while nobody reads, however long, and nothing is lost."""
from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from .connection import Connection, Listener
from .errors import (ExecdError, InvalidParams, LimitExceeded, OutputLost, OutputUnread, ProcessLost, ProtocolError, ServerError,
                     StdinClosed)
from .values import check, check_bytes, check_range, check_text, from_base64, member, milliseconds, optional, to_base64

READ_MAX = 1 << 20        # bytes of output that one answer may have, about
ASKED_MAX = 1 << 20       # bytes that wait here until more is asked for
PUSHED_MAX = 8 << 20      # bytes that wait here until nothing more is read from the connection
QUEUED_MAX = 64 << 20     # bytes that may wait here at all
HELD_MAX = 64 << 20       # bytes that came before what is missing
NO_NEWS_MAX = 1000        # answers in a row that say nothing
WRITE_BYTES = 256 << 10   # of one process/write
WRITES_MAX = 8            # under way
EVENT_BYTES = 200         # what an event costs besides its output
FOREVER_MS = (1 << 64) - 1

_STREAMS = {"stdout": "stdout", "stderr": "stderr", "pty": "terminal"}


@dataclass(frozen=True)
class Output:
    """A piece of output. `stream` is stdout, stderr or terminal."""

    stream: str
    data: bytes


@dataclass(frozen=True)
class Exit:
    """How a command ended. `exit_code` is its status, or 128+n for signal n. `details` is all that the server says."""

    exit_code: int
    sandbox_denied: bool = False
    timed_out: bool = False
    oom_killed: bool = False
    signal: str | None = None
    killed_by: str | None = None
    limit: str | None = None
    forks_denied: int = 0
    network_denied: list[dict[str, Any]] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Result(Exit):
    """What run() returns. The texts are the bytes as UTF-8, with U+FFFD for what is none."""

    stdout_bytes: bytes = b""
    stderr_bytes: bytes = b""
    sandbox_type: str = "none"

    @property
    def stdout(self) -> str:
        return self.stdout_bytes.decode(errors="replace")

    @property
    def stderr(self) -> str:
        return self.stderr_bytes.decode(errors="replace")


def _exit_of(said: dict[str, Any]) -> Exit:
    return Exit(
        exit_code=member(said, "exitCode", int), sandbox_denied=optional(said, "sandboxDenied", bool, False),
        timed_out=optional(said, "timedOut", bool, False), oom_killed=optional(said, "oomKilled", bool, False),
        signal=optional(said, "signal", str, "") or None, killed_by=optional(said, "killedBy", str, "") or None,
        limit=optional(said, "limit", str, "") or None, forks_denied=optional(said, "forksDenied", int, 0),
        network_denied=optional(said, "networkDenied", list, []), details=said)


def _output_of(said: Any) -> Output:
    stream = _STREAMS.get(member(said, "stream", str))
    if stream is None:
        raise ProtocolError("the server's output has no known stream")
    return Output(stream, from_base64(member(said, "chunk", str)))


class Process(Listener):
    """An asynchronous iterator of its output. OutputLost is raised at the place where output is missing, and the
    iteration may go on behind it."""

    def __init__(self, connection: Connection, process_id: str, pulls: bool) -> None:
        self.id = process_id
        self.sandbox_type = "unknown"
        self.sandbox: dict[str, Any] = {}  # what the server says of it
        self.exit: Exit | None = None
        self.closed = False
        self._connection = connection
        self._pulls = pulls
        self._started: asyncio.Future[Any] | None = None
        self._error: ExecdError | None = None
        self._queue: deque[Output | OutputLost] = deque()
        self._queued = 0
        self._readers = 0
        self._last = 0           # the number of the last event that was handed out
        self._bytes = 0          # of output until then, also what was lost
        self._held: dict[int, tuple[str, dict[str, Any]]] = {}
        self._held_bytes = 0
        self._reader: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._writing = asyncio.Lock()
        connection.listeners[process_id] = self

    # --- starting ---

    async def start(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """A command that waits for its reader is asked for its output with the same breath."""
        self._started = self._connection.request(method, params)
        if self._pulls:
            self._read()
        try:
            result = await self._started
            if not isinstance(result, dict):
                raise ProtocolError(f"the server's result of {method} is no object")
        except asyncio.CancelledError:
            self._connection.tell("process/terminate", {"processId": self.id})
            self._end(ProcessLost("its start was cancelled"))
            raise
        except ExecdError as e:
            self._end(e)
            raise
        self.sandbox_type = optional(result, "sandboxType", str, "unknown")[:64]
        self.sandbox = optional(result, "sandbox", dict, {})
        return result

    def attach(self) -> None:
        self._read()

    # --- what the server says ---

    def event(self, method: str, params: dict[str, Any]) -> None:
        if self._pulls or self.closed or self._error is not None:
            return  # what is asked for says the same
        seq = member(params, "seq", int)
        if seq <= self._last:
            return
        if seq > self._last + 1 or self._reader is not None:
            self._hold(seq, method, params)
            self._read()
        else:
            self._hand_out(seq, method, params)

    def lost(self) -> None:
        """What is held is in what will be read. A read that is under way is sent again."""
        self._held.clear()
        self._held_bytes = 0

    def resumed(self) -> None:
        if not self.closed and self._error is None:
            self._read()

    def failed(self, error: ExecdError) -> None:
        if not self.closed:
            self._end(error)

    def _hold(self, seq: int, method: str, params: dict[str, Any]) -> None:
        if seq not in self._held:
            self._held[seq] = (method, params)
            self._held_bytes += len(params.get("chunk") or "") + EVENT_BYTES
        if self._held_bytes > HELD_MAX:
            self._end(LimitExceeded(f"more than {HELD_MAX} bytes of output came before the output that is missing", HELD_MAX))

    def _hand_out(self, seq: int, method: str, params: dict[str, Any]) -> None:
        if method == "process/output":
            self._put(_output_of(params))
        elif method == "process/exited":
            self._put_exit(_exit_of(params))
        else:
            self._close()
        self._last = seq

    def _put(self, output: Output) -> None:
        self._bytes += len(output.data)
        if not output.data:
            return
        self._queue.append(output)
        self._queued += len(output.data) + EVENT_BYTES
        if self._queued > QUEUED_MAX:
            self._end(LimitExceeded(f"more than {QUEUED_MAX} bytes of output wait for somebody to read them", QUEUED_MAX))
        elif not self._pulls and self._queued > PUSHED_MAX:
            self._connection.crowd(self, True)
        self._changed.set()

    def _put_exit(self, how: Exit) -> None:
        if self.exit is None:
            self.exit = how
            self._changed.set()

    def _close(self) -> None:
        if self.exit is None:
            raise ProtocolError("the server closed a process that has not exited")
        self.closed = True
        self._forget()

    def _end(self, error: ExecdError) -> None:
        if self._error is None:
            self._error = error
        self._forget()

    def _forget(self) -> None:
        self._connection.listeners.pop(self.id, None)
        self._connection.crowd(self, False)
        self._held.clear()
        self._changed.set()

    # --- what is read ---

    def _read(self) -> None:
        if self._reader is None:
            self._reader = asyncio.create_task(self._pull() if self._pulls else self._catch_up())
            self._reader.add_done_callback(self._read_ended)

    def _read_ended(self, task: asyncio.Task[None]) -> None:
        if self._reader is task:
            self._reader = None
        if not task.cancelled() and (error := task.exception()) is not None:
            self._end(error if isinstance(error, ExecdError) else ProcessLost(f"the client failed: {error!r}"))

    async def _ask(self, wait: bool) -> dict[str, Any]:
        params: dict[str, Any] = {"processId": self.id, "afterSeq": self._last}
        if wait:
            params["waitMs"] = FOREVER_MS
        if self._connection.can("processOutputGaps"):
            params["maxBytes"] = READ_MAX
        while True:
            starting = self._started is not None and not self._started.done()
            try:
                return await self._connection.call("process/read", params)
            except ServerError as e:
                if not starting:
                    raise ProcessLost(f"the server does not know the command any more: {e.text}") from e
            if self._started is not None:
                await self._started  # an error of its own says more

    async def _pull(self) -> None:
        silent = 0
        while not self.closed and self._error is None:
            if self._queued >= ASKED_MAX:
                self._changed.clear()
                await self._changed.wait()
                continue
            before = self._last, self.exit
            await self._take_result(await self._ask(wait=True))
            silent = silent + 1 if before == (self._last, self.exit) else 0
            if silent > NO_NEWS_MAX:
                raise ProtocolError("the server answers process/read without news again and again")

    async def _catch_up(self) -> None:
        """Reads until nothing is missing below what is held."""
        silent = 0
        while not self.closed and self._error is None:
            before = self._last
            more = await self._take_result(await self._ask(wait=False))
            while not self.closed and self._last + 1 in self._held:
                method, params = self._held.pop(self._last + 1)
                self._held_bytes -= len(params.get("chunk") or "") + EVENT_BYTES
                self._hand_out(self._last + 1, method, params)
            for seq in [s for s in self._held if s <= self._last]:
                del self._held[seq]
            if not more and not self._held:
                self._reader = None  # at once: the next event does not wait for it
                return
            silent = silent + 1 if before == self._last else 0
            if silent > NO_NEWS_MAX:
                raise ProtocolError("the server does not say what is missing before its own events")

    async def _take_result(self, result: dict[str, Any]) -> bool:
        """Returns whether the server has more than this answer."""
        following = member(result, "nextSeq", int)
        exited = optional(result, "exited", bool, False)
        chunks = self._chunks(member(result, "chunks", list), following)
        more = self._connection.can("processOutputGaps") and sum(len(o.data) for _, o in chunks) >= READ_MAX // 2
        gap, after = self._gap(result, [seq for seq, _ in chunks], following)
        for seq, output in chunks:
            if gap is not None and seq > after:
                self._put_gap(gap)
                gap = None
            self._put(output)
            self._last = seq
        if gap is not None:
            self._put_gap(gap)
        self._last = max(self._last, following - 1)
        if exited and self.exit is None:
            self._put_exit(await self._exit(result))
        if optional(result, "closed", bool, False) and not more and self._error is None:
            self._close()
        return more

    def _chunks(self, said: list[Any], following: int) -> list[tuple[int, Output]]:
        """Those that are new, in their order."""
        chunks = []
        before = self._last
        for c in said:
            seq = member(c, "seq", int)
            if seq <= self._last:
                continue
            if seq <= before or seq >= following:
                raise ProtocolError("the server's answer to process/read has chunks out of order")
            before = seq
            chunks.append((seq, _output_of(c)))
        return chunks

    def _gap(self, result: dict[str, Any], seqs: list[int], following: int) -> tuple[OutputLost | None, int]:
        """What the server no longer retains, and the number that it comes behind."""
        if self._connection.can("processOutputGaps"):
            said = optional(result, "gap", dict, {})
            if not said:
                return None, 0
            lost = member(said, "endBytes", int) - self._bytes
            after = member(said, "afterSeq", int)
            # What is in front of the gap is in this answer.
            lost -= sum(len(_output_of(c).data) for c in result["chunks"] if self._last < member(c, "seq", int) <= after)
            return (OutputLost(lost, None) if lost > 0 else None), after
        # The numbers that are neither in chunks nor used by the end.
        known = len(seqs) + (self.exit is None and optional(result, "exited", bool, False))
        known += optional(result, "closed", bool, False)
        missing = following - 1 - self._last - known
        return (OutputLost(None, missing) if missing > 0 else None), 0

    def _put_gap(self, gap: OutputLost) -> None:
        self._bytes += gap.bytes or 0
        self._queue.append(gap)
        self._changed.set()

    async def _exit(self, result: dict[str, Any]) -> Exit:
        """process/read says neither the signal nor whether the deadline ended it."""
        how = _exit_of(result)
        if how.exit_code == 0 or not self._connection.can("processExitDetails"):
            return how
        with contextlib.suppress(ServerError):
            said = await self._connection.call("process/wait", {"processId": self.id, "timeoutMs": 0})
            return _exit_of({**result, **{k: v for k, v in said.items() if v is not None}})
        return how

    # --- what the program reads ---

    async def _change(self) -> None:
        await self._connection.wait(self._changed)

    def __aiter__(self) -> Process:
        return self

    async def __anext__(self) -> Output:
        self._readers += 1
        try:
            while not self._queue:
                if self._error is not None:
                    raise self._error
                if self.closed:
                    raise StopAsyncIteration
                await self._change()
            return self._next()
        finally:
            self._readers -= 1

    def _next(self) -> Output:
        first = self._queue.popleft()
        if isinstance(first, OutputLost):
            raise first
        self._queued -= len(first.data) + EVENT_BYTES
        if self._queued < PUSHED_MAX // 2:
            self._connection.crowd(self, False)
        if self._queued < ASKED_MAX <= self._queued + len(first.data) + EVENT_BYTES:
            self._changed.set()
        return first

    async def wait(self) -> Exit:
        """Waits for the end of the command. Its output waits for whoever reads it; where that is so much that the command
        stops, OutputUnread is raised in place of a wait that would not end."""
        while self.exit is None:
            if self._error is not None:
                raise self._error
            if not self._readers and self._queued >= (ASKED_MAX if self._pulls else PUSHED_MAX):
                raise OutputUnread(f"{self._queued} bytes of output wait, and nobody reads them: the command cannot go on")
            await self._change()
        return self.exit

    # --- what the program says ---

    async def write(self, data: bytes | str) -> None:
        """Returns when the server has all of it. Each byte arrives once."""
        view = memoryview(check_bytes("data", data))
        async with self._writing:
            waiting: deque[asyncio.Future[Any]] = deque()
            for at in range(0, len(view), WRITE_BYTES):
                if len(waiting) >= WRITES_MAX:
                    await self._written(waiting)
                waiting.append(self._connection.request("process/write", {
                    "processId": self.id, "chunk": to_base64(view[at:at + WRITE_BYTES].tobytes()),
                    "writeId": self._connection.new_id()}))
            while waiting:
                await self._written(waiting)

    async def _written(self, waiting: deque[asyncio.Future[Any]]) -> None:
        status = member(await waiting.popleft(), "status", str)
        if status == "stdinClosed":
            raise StdinClosed("the command reads no more input")
        if status != "accepted":
            raise ProcessLost(f"the server did not take the input: {status[:40]}")

    async def close_stdin(self) -> None:
        """The command finds the end of its input behind all that was written."""
        self._connection.need("processCloseStdin", "close_stdin()")
        await self._connection.call("process/closeStdin", {"processId": self.id})

    async def resize(self, rows: int, cols: int) -> None:
        check_range("rows", rows, 1, 65535)
        check_range("cols", cols, 1, 65535)
        self._connection.need("processResize", "resize()")
        await self._connection.call("process/resize", {"processId": self.id, "rows": rows, "cols": cols})

    async def signal(self, name: str, target: str = "group") -> None:
        """Sends a signal ("TERM", "INT", ...) to the `process`, its `group` or its `tree`."""
        check_text("name", name)
        name = name.upper().removeprefix("SIG")
        if target not in ("process", "group", "tree"):
            raise ValueError(f"target: {target!r} is neither process nor group nor tree")
        if name == "INT" and target == "group":
            await self._connection.call("process/signal", {"processId": self.id, "signal": "interrupt"})
            return
        self._connection.need("processSignalTarget", f"signal({name!r})")
        try:
            await self._connection.call("process/signal", {"processId": self.id, "signal": name, "target": target})
        except InvalidParams as e:
            raise ValueError(f"signal: {e.text}") from e

    async def terminate(self, grace: float | None = None) -> None:
        """SIGKILL to all that the command has started; with `grace` first SIGTERM, and so many seconds."""
        params: dict[str, Any] = {"processId": self.id}
        if grace is not None:
            ms = milliseconds("grace", grace)
            self._connection.need("processTerminateGraceful", "terminate(grace=)")
            params |= {"mode": "graceful", "timeoutMs": ms}
        await self._connection.call("process/terminate", params)

    async def details(self) -> dict[str, Any]:
        """What the server says of it now (process/wait): rusage, bytesWritten and more."""
        self._connection.need("processWait", "details()")
        return await self._connection.call("process/wait", {"processId": self.id, "timeoutMs": 0})


async def collect(process: Process, limit: int) -> Result:
    """All of its output, at most `limit` bytes. What is missing in it is told at the end, with the rest."""
    parts: dict[str, list[bytes]] = {"stdout": [], "stderr": []}
    size = 0
    gap: OutputLost | None = None
    while True:
        try:
            async for output in process:
                size += len(output.data)
                if size > limit:
                    raise LimitExceeded(f"the command wrote more than max_output = {limit} bytes", limit)
                parts["stderr" if output.stream == "stderr" else "stdout"].append(output.data)
            break
        except OutputLost as e:
            both = [None if gap is None else gap.bytes, e.bytes]
            gap = e if gap is None else OutputLost(
                None if None in both else sum(b or 0 for b in both), (gap.events or 0) + (e.events or 0))
    how = process.exit
    assert how is not None
    result = Result(**{n: getattr(how, n) for n in Exit.__dataclass_fields__}, stdout_bytes=b"".join(parts["stdout"]),
                    stderr_bytes=b"".join(parts["stderr"]), sandbox_type=process.sandbox_type)
    if gap is not None:
        raise OutputLost(gap.bytes, gap.events, result)
    return result


def check_process(name: str, value: Any) -> str:
    check(name, value, Process, str)
    return value.id if isinstance(value, Process) else str(value)
