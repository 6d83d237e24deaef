# SPDX-License-Identifier: ISC
"""The client for asyncio.

	async with execd.aio.connect() as box:
	    r = await box.run("make check", cwd="/srv/work", sandbox="workspace-write")
"""
from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from .config import find_server
from .connection import Connection, Options
from .errors import CommandFailed, ExecdError, ProtocolError, StdinClosed
from .files import Files, PathLike
from .forward import Forward
from .http import BODY_MAX, HttpResponse, HttpStream, check_request, request
from .paths import from_uri, to_uri
from .process import Process, Result, check_process, collect
from .sandbox import check_sandbox, context
from .values import (check, check_bytes, check_env, check_range, check_text, check_texts, member, milliseconds, optional)
from .watch import Watch

Command = str | Sequence[str]
Sandbox = str | Mapping[str, Any] | None
Headers = Mapping[str, str] | Iterable[tuple[str, str]] | None

OUTPUT_MAX = 64 << 20     # bytes that run() returns, unless told otherwise
LISTED_MAX = 100_000      # sessions or processes
TERMINAL = (24, 80)


class Box:
    """A session on a server."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._kept = False
        self.files = Files(connection, self.home, None)

    # --- what it is ---

    @property
    def session_id(self) -> str:
        assert self._connection.session is not None
        return self._connection.session

    @property
    def info(self) -> dict[str, Any]:
        """environmentInfo of the server."""
        return self._connection.info

    @property
    def home(self) -> str:
        uri = self._connection.info.get("userHomeDir")
        return from_uri(uri) if isinstance(uri, str) else "/"

    @property
    def resumes(self) -> int:
        """How often the connection was lost and resumed."""
        return self._connection.resumes

    @property
    def over(self) -> bool:
        """Whether the client was closed, or its session is lost."""
        return self._connection.error is not None

    def can(self, capability: str) -> bool:
        check("capability", capability, str)
        return self._connection.can(capability)

    # --- commands ---

    def _start_params(self, command: Command, cwd: PathLike | None, env: Mapping[str, str] | None, inherit: str,
                      stdin: bool, tty: bool | tuple[int, int], term: str, sandbox: Sandbox, network: bool,
                      allow_hosts: Sequence[str] | None, timeout: float | None) -> dict[str, Any]:
        """Checks all of it."""
        if isinstance(command, str):
            command = ["/bin/sh", "-c", command]
        argv = check_texts("command", command)
        if not argv or not argv[0]:
            raise ValueError("command: it is empty")
        uri = to_uri(self.home if cwd is None else cwd, self.home)
        variables = {} if env is None else check_env(env)
        if inherit not in ("core", "all", "none"):
            raise ValueError(f"inherit: {inherit!r} is neither core nor all nor none")
        check("stdin", stdin, bool)
        check("tty", tty, bool, tuple)
        check("network", network, bool)
        check_text("term", term)
        check_sandbox(sandbox, network)
        params: dict[str, Any] = {"argv": argv, "cwd": uri, "env": variables, "tty": bool(tty), "pipeStdin": stdin}
        if inherit != "none":
            params["envPolicy"] = {"inherit": inherit, "ignoreDefaultExcludes": True, "exclude": [], "set": {},
                                   "includeOnly": []}
        if tty:
            variables.setdefault("TERM", term)
            rows, cols = TERMINAL if isinstance(tty, bool) else tty
            check_range("rows", rows, 1, 65535)
            check_range("cols", cols, 1, 65535)
            if (rows, cols) != TERMINAL:
                self._connection.need("processResize", "a terminal of another size")
                params |= {"rows": rows, "cols": cols}
        if timeout is not None:
            params["timeoutMs"] = milliseconds("timeout", timeout)
            self._connection.need("processTimeout", "timeout")
        if sandbox is not None:
            params["sandbox"] = context(sandbox, uri, network)
        if allow_hosts is not None:
            params["network"] = {"allow": check_texts("allow_hosts", allow_hosts)}
            self._connection.need("processNetwork", "allow_hosts")
        return params

    async def start(self, command: Command, *, cwd: PathLike | None = None, env: Mapping[str, str] | None = None,
                    inherit: str = "core", stdin: bool = False, tty: bool | tuple[int, int] = False, term: str = "xterm",
                    sandbox: Sandbox = None, network: bool = False, allow_hosts: Sequence[str] | None = None,
                    timeout: float | None = None, wait_output: bool = False) -> Process:
        """Starts a command. A string is for /bin/sh; a list is the program and its arguments. `tty` may be (rows, cols).
        While there is no connection the server retains the newest of its output, 1 MiB unless told otherwise; OutputLost
        says what fell out. With wait_output the command waits in place of that, and while nobody reads."""
        params = self._start_params(command, cwd, env, inherit, stdin, tty, term, sandbox, network, allow_hosts, timeout)
        check("wait_output", wait_output, bool)
        pulls = wait_output and self._connection.can("processRetentionWait")
        process = Process(self._connection, self._connection.new_id(), pulls)
        params["processId"] = process.id
        if self._connection.can("processStartId"):
            params["startId"] = process.id
        if pulls:
            params["retention"] = {"wait": True}
        await process.start("process/start", params)
        if sandbox is not None and process.sandbox_type == "none":
            await process.terminate()
            raise ProtocolError("the server reports no sandbox, and one was asked for: the command was killed")
        return process

    async def run(self, command: Command, *, input: bytes | str | None = None, check: bool = False,
                  cwd: PathLike | None = None, env: Mapping[str, str] | None = None, inherit: str = "core",
                  tty: bool | tuple[int, int] = False, term: str = "xterm", sandbox: Sandbox = None, network: bool = False,
                  allow_hosts: Sequence[str] | None = None, timeout: float | None = None, wait_output: bool = False,
                  max_output: int = OUTPUT_MAX) -> Result:
        """Runs a command to its end. With `check` any other exit code than 0 is CommandFailed."""
        if not isinstance(check, bool):
            raise TypeError(f"check: expected bool, not {type(check).__name__}")
        check_range("max_output", max_output, 0, 1 << 62)
        data = None if input is None else check_bytes("input", input)
        if data is not None:
            self._connection.need("processCloseStdin", "input")
        process = await self.start(
            command, cwd=cwd, env=env, inherit=inherit, stdin=data is not None, tty=tty, term=term, sandbox=sandbox,
            network=network, allow_hosts=allow_hosts, timeout=timeout, wait_output=wait_output)
        try:
            if data is None:
                result = await collect(process, max_output)
            else:
                result = await self._collect_with_input(process, data, max_output)
        finally:
            if not process.closed:  # it was cancelled, or wrote too much
                self._connection.tell("process/terminate", {"processId": process.id})
        if check and result.exit_code != 0:
            raise CommandFailed(result)
        return result

    async def _collect_with_input(self, process: Process, data: bytes, max_output: int) -> Result:
        async def feed() -> None:
            with contextlib.suppress(StdinClosed):  # as `yes | head -1` has it
                await process.write(data)
                await process.close_stdin()

        feeding = asyncio.create_task(feed())
        try:
            result = await collect(process, max_output)
            if feeding.done():
                feeding.result()
            return result
        finally:
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)

    async def attach(self, process_id: str, *, wait_output: bool = False) -> Process:
        """A command of this session that an earlier client started: all that is retained of its output, and what follows.
        `wait_output` is what start() was told."""
        check_text("process_id", process_id)
        check("wait_output", wait_output, bool)
        process = Process(self._connection, process_id, wait_output and self._connection.can("processRetentionWait"))
        process.attach()
        return process

    async def processes(self) -> list[dict[str, Any]]:
        """What the session has, as process/list says it."""
        self._connection.need("processList", "processes()")
        return await self._pages("process/list", "processes")

    async def _pages(self, method: str, name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        after = -1
        while True:
            said = await self._connection.call(method, {} if after < 0 else {"after": after})
            found += member(said, name, list)
            following = optional(said, "next", int, -1)
            if following < 0:
                return found
            if following <= after or len(found) > LISTED_MAX:
                raise ProtocolError(f"the server's {method} does not end")
            after = following

    # --- files, ports, HTTP, changes ---

    def sandboxed(self, sandbox: str | Mapping[str, Any], cwd: PathLike | None = None) -> Files:
        """The files as a command in this sandbox would see them. `cwd` is the workspace."""
        if sandbox is None:
            raise TypeError("sandbox: expected str or a mapping, not NoneType")
        check_sandbox(sandbox, False)
        uri = to_uri(self.home if cwd is None else cwd, self.home)
        return Files(self._connection, self.home, context(sandbox, uri, False))

    async def open_port(self, port: int, of: Process | str | None = None) -> Process:
        """A byte stream to a port on the loopback of the command `of`, or of the server's host: write() sends, what comes
        is its output, and it exits with 0 when the other side has hung up."""
        check_range("port", port, 1, 65535)
        params: dict[str, Any] = {"port": port}
        if of is not None:
            params["of"] = check_process("of", of)
        self._connection.need("processForward", "open_port()")
        process = Process(self._connection, self._connection.new_id(), False)
        await process.start("process/forward", {**params, "processId": process.id})
        return process

    async def forward(self, port: int, *, local_port: int = 0, of: Process | str | None = None) -> Forward:
        """Listens on a port of 127.0.0.1 here (0: any; see .port), and connects whoever comes to that port there."""
        check_range("port", port, 1, 65535)
        check_range("local_port", local_port, 0, 65535)
        if of is not None:
            check_process("of", of)
        self._connection.need("processForward", "forward()")
        forward = Forward(lambda: self.open_port(port, of))
        await forward.open(local_port)
        return forward

    async def http(self, method: str, url: str, *, headers: Headers = None, body: bytes | str | None = None,
                   timeout: float | None = None, follow: bool = True, max_bytes: int = BODY_MAX) -> HttpResponse:
        """A request that the server makes. Every status is a response."""
        params = check_request(method, url, headers, body, timeout, follow)
        check_range("max_bytes", max_bytes, 0, 1 << 62)
        return await request(self._connection, params, max_bytes)

    async def http_stream(self, method: str, url: str, *, headers: Headers = None, body: bytes | str | None = None,
                          timeout: float | None = None, follow: bool = True) -> HttpStream:
        """Likewise, and the body comes in pieces."""
        params = check_request(method, url, headers, body, timeout, follow)
        stream = HttpStream(self._connection)
        await stream.open(params)
        return stream

    async def watch(self, path: PathLike) -> Watch:
        """Changes of a file, or of a directory and the names in it."""
        uri = to_uri(path, self.home)
        self._connection.need("fsWatch", "watch()")
        watch = Watch(self._connection, from_uri(uri), {"path": uri})
        await watch.open()
        return watch

    # --- the session ---

    async def keep(self, seconds: float, while_running: bool = False) -> dict[str, Any]:
        """Asks that the session is kept for so long without a client; while_running also as long as a command runs. Returns
        what was granted. Then close() leaves it there. 0 without while_running ends it."""
        check("while_running", while_running, bool)
        check("seconds", seconds, int, float)
        ms = 0 if seconds == 0 else milliseconds("seconds", seconds)
        self._connection.need("sessionKeep", "keep()")
        granted = await self._connection.call("session/keep", {"keepMs": ms, "whileRunning": while_running})
        self._kept = ms > 0 or while_running
        return granted

    async def sessions(self) -> list[dict[str, Any]]:
        """The sessions of this identity, as session/list says them."""
        self._connection.need("sessionList", "sessions()")
        return await self._pages("session/list", "sessions")

    async def end(self) -> None:
        """Ends the session and everything in it, and closes the client."""
        self._connection.need("sessionEnd", "end()")
        self._connection.ended = True
        try:
            await self._connection.call("session/end", {})
        finally:
            await self._connection.close()

    async def detach(self) -> None:
        """Closes the client. The server keeps the session until its own timeout, or as keep() asked."""
        await self._connection.close()

    async def close(self) -> None:
        """Ends the session if it is this client's own and not kept, and else leaves it."""
        own = self._connection.options.session is None and not self._kept
        if own and self._connection.error is None and self._connection.can("sessionEnd"):
            with contextlib.suppress(ExecdError):
                await self.end()
        await self._connection.close()

    async def __aenter__(self) -> Box:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


class _Connecting:
    """What connect() returns: `await` it, or use it with `async with`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._box: Box | None = None

    async def _open(self) -> Box:
        await self._connection.open()
        return Box(self._connection)

    def __await__(self) -> Generator[Any, None, Box]:
        return self._open().__await__()

    async def __aenter__(self) -> Box:
        self._box = await self._open()
        return self._box

    async def __aexit__(self, *error: object) -> None:
        if self._box is not None:
            await self._box.close()


def connect(url: str | None = None, token: str | None = None, *, environment: str | None = None,
            token_file: PathLike | None = None, ca: PathLike | None = None, certificate: PathLike | None = None,
            key: PathLike | None = None, session: str | None = None, watch: bool = False, take_over: bool = False,
            client_name: str = "execd-python", connect_timeout: float | None = None, initialize_timeout: float | None = None,
            resume_timeout: float | None = None, silence_timeout: float | None = None) -> _Connecting:
    """Connects to a server: that of `url`, or of `environment`, or the one that execctl(1) would use. `session` resumes a
    session, `take_over` takes it from another client, and `watch` only looks at it. Times are in seconds."""
    for name, text in (("url", url), ("token", token), ("environment", environment), ("session", session)):
        check_text(name, text, none=True)
    check_text("client_name", client_name)
    check("watch", watch, bool)
    check("take_over", take_over, bool)
    if url is not None and environment is not None:
        raise ValueError("url and environment exclude each other")
    if token is not None and token_file is not None:
        raise ValueError("token and token_file exclude each other")
    if session is None and (watch or take_over):
        raise ValueError("watch and take_over need session")
    times = {"connect_timeout": connect_timeout, "initialize_timeout": initialize_timeout,
             "silence_timeout": silence_timeout, "resume_timeout": resume_timeout}
    times = {n: milliseconds(n, t) / 1000 for n, t in times.items() if t is not None}
    files = {n: os.fspath(f) for n, f in (("ca", ca), ("certificate", certificate), ("key", key)) if f is not None}
    server = find_server(url, environment, token, None if token_file is None else os.fspath(token_file))
    resume = times.pop("resume_timeout", None)
    server = replace(server, **files, **times)
    return _Connecting(Connection(server, Options(client_name, session, watch, take_over, resume)))
