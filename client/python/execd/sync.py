# SPDX-License-Identifier: ISC
"""The client for programs without asyncio: the same client, whose event loop runs in a thread of its own."""
from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from . import aio, files, forward, http, process, watch
from .aio import OUTPUT_MAX, Command, Headers, Sandbox
from .errors import ConnectionLost
from .files import READ_MAX, Entry, Metadata, PathLike, Walk
from .http import BODY_MAX, HttpResponse
from .process import Exit, Output, Result
from .watch import Change

T = TypeVar("T")


class _Loop:
    """The thread of one client."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="execd", daemon=True)
        self._thread.start()

    def __call__(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop.is_closed():
            work.close()
            raise ConnectionLost("the client was closed")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # ^C
            raise

    def close(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


async def _next(source: AsyncIterator[T]) -> T | None:
    try:
        return await source.__anext__()
    except StopAsyncIteration:
        return None


class Process:
    """An iterator of its output. execd.aio has the words."""

    def __init__(self, loop: _Loop, inner: process.Process) -> None:
        self._run, self._inner = loop, inner
        self.id, self.sandbox_type, self.sandbox = inner.id, inner.sandbox_type, inner.sandbox

    @property
    def exit(self) -> Exit | None:
        return self._inner.exit

    def __iter__(self) -> Process:
        return self

    def __next__(self) -> Output:
        output = self._run(_next(self._inner))
        if output is None:
            raise StopIteration
        return output

    def wait(self) -> Exit:
        return self._run(self._inner.wait())

    def write(self, data: bytes | str) -> None:
        self._run(self._inner.write(data))

    def close_stdin(self) -> None:
        self._run(self._inner.close_stdin())

    def resize(self, rows: int, cols: int) -> None:
        self._run(self._inner.resize(rows, cols))

    def signal(self, name: str, target: str = "group") -> None:
        self._run(self._inner.signal(name, target))

    def terminate(self, grace: float | None = None) -> None:
        self._run(self._inner.terminate(grace))

    def details(self) -> dict[str, Any]:
        return self._run(self._inner.details())


class HttpStream:
    """An iterator of the body."""

    def __init__(self, loop: _Loop, inner: http.HttpStream) -> None:
        self._run, self._inner = loop, inner
        self.status, self.headers = inner.status, inner.headers

    def __iter__(self) -> HttpStream:
        return self

    def __next__(self) -> bytes:
        data = self._run(_next(self._inner))
        if data is None:
            raise StopIteration
        return data

    def close(self) -> None:
        self._run(self._inner.__aexit__())

    def __enter__(self) -> HttpStream:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Watch:
    """An iterator of changes."""

    def __init__(self, loop: _Loop, inner: watch.Watch) -> None:
        self._run, self._inner = loop, inner
        self.path = inner.path

    def __iter__(self) -> Watch:
        return self

    def __next__(self) -> Change:
        change = self._run(_next(self._inner))
        if change is None:
            raise StopIteration
        return change

    def close(self) -> None:
        self._run(self._inner.__aexit__())

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Forward:
    """A port here, which leads there until it is closed."""

    def __init__(self, loop: _Loop, inner: forward.Forward) -> None:
        self._run, self._inner = loop, inner
        self.port = inner.port

    @property
    def error(self) -> Exception | None:
        return self._inner.error

    def close(self) -> None:
        self._run(self._inner.close())

    def __enter__(self) -> Forward:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Files:
    """The files of the server."""

    def __init__(self, loop: _Loop, inner: files.Files) -> None:
        self._run, self._inner = loop, inner

    def stat(self, path: PathLike) -> Metadata:
        return self._run(self._inner.stat(path))

    def exists(self, path: PathLike) -> bool:
        return self._run(self._inner.exists(path))

    def listdir(self, path: PathLike = ".") -> list[Entry]:
        return self._run(self._inner.listdir(path))

    def walk(self, path: PathLike, max_depth: int = 64, max_directories: int = 10000, max_entries: int = 50000,
             follow: bool = False, prune_hidden: bool = False) -> Walk:
        return self._run(self._inner.walk(path, max_depth, max_directories, max_entries, follow, prune_hidden))

    def canonicalize(self, path: PathLike) -> str:
        return self._run(self._inner.canonicalize(path))

    def mkdir(self, path: PathLike, parents: bool = True) -> None:
        self._run(self._inner.mkdir(path, parents))

    def remove(self, path: PathLike, recursive: bool = False, missing_ok: bool = False) -> None:
        self._run(self._inner.remove(path, recursive, missing_ok))

    def copy(self, source: PathLike, target: PathLike, recursive: bool = False) -> None:
        self._run(self._inner.copy(source, target, recursive))

    def move(self, source: PathLike, target: PathLike, overwrite: bool = False) -> None:
        self._run(self._inner.move(source, target, overwrite))

    def chmod(self, path: PathLike, mode: int) -> None:
        self._run(self._inner.chmod(path, mode))

    def symlink(self, path: PathLike, target: str) -> None:
        self._run(self._inner.symlink(path, target))

    def set_modified(self, path: PathLike, seconds: float) -> None:
        self._run(self._inner.set_modified(path, seconds))

    def read_blocks(self, path: PathLike) -> Iterator[bytes]:
        inner = self._inner.read_blocks(path)
        try:
            while (data := self._run(_next(inner))) is not None:
                yield data
        finally:
            self._run(inner.aclose())  # type: ignore[attr-defined]

    def write_blocks(self, path: PathLike, blocks: Iterable[bytes]) -> int:
        return self._run(self._inner.write_blocks(path, blocks))

    def read(self, path: PathLike, max_bytes: int = READ_MAX) -> bytes:
        return self._run(self._inner.read(path, max_bytes))

    def read_text(self, path: PathLike, encoding: str = "utf-8", max_bytes: int = READ_MAX) -> str:
        return self._run(self._inner.read_text(path, encoding, max_bytes))

    def write(self, path: PathLike, data: bytes | str) -> None:
        self._run(self._inner.write(path, data))

    def upload(self, local: PathLike, remote: PathLike) -> int:
        return self._run(self._inner.upload(local, remote))

    def download(self, remote: PathLike, local: PathLike) -> int:
        return self._run(self._inner.download(remote, local))


class Box:
    """A session on a server. Its methods may be called from several threads."""

    def __init__(self, loop: _Loop, inner: aio.Box) -> None:
        self._run, self._inner = loop, inner
        self.files = Files(loop, inner.files)

    @property
    def session_id(self) -> str:
        return self._inner.session_id

    @property
    def info(self) -> dict[str, Any]:
        return self._inner.info

    @property
    def home(self) -> str:
        return self._inner.home

    @property
    def resumes(self) -> int:
        return self._inner.resumes

    def can(self, capability: str) -> bool:
        return self._inner.can(capability)

    def start(self, command: Command, *, cwd: PathLike | None = None, env: Mapping[str, str] | None = None,
              inherit: str = "core", stdin: bool = False, tty: bool | tuple[int, int] = False, term: str = "xterm",
              sandbox: Sandbox = None, network: bool = False, allow_hosts: Sequence[str] | None = None,
              timeout: float | None = None, wait_output: bool = False) -> Process:
        return Process(self._run, self._run(self._inner.start(
            command, cwd=cwd, env=env, inherit=inherit, stdin=stdin, tty=tty, term=term, sandbox=sandbox, network=network,
            allow_hosts=allow_hosts, timeout=timeout, wait_output=wait_output)))

    def run(self, command: Command, *, input: bytes | str | None = None, check: bool = False, cwd: PathLike | None = None,
            env: Mapping[str, str] | None = None, inherit: str = "core", tty: bool | tuple[int, int] = False,
            term: str = "xterm", sandbox: Sandbox = None, network: bool = False, allow_hosts: Sequence[str] | None = None,
            timeout: float | None = None, wait_output: bool = False, max_output: int = OUTPUT_MAX) -> Result:
        return self._run(self._inner.run(
            command, input=input, check=check, cwd=cwd, env=env, inherit=inherit, tty=tty, term=term, sandbox=sandbox,
            network=network, allow_hosts=allow_hosts, timeout=timeout, wait_output=wait_output, max_output=max_output))

    def attach(self, process_id: str, *, wait_output: bool = False) -> Process:
        return Process(self._run, self._run(self._inner.attach(process_id, wait_output=wait_output)))

    def processes(self) -> list[dict[str, Any]]:
        return self._run(self._inner.processes())

    def sandboxed(self, sandbox: str | Mapping[str, Any], cwd: PathLike | None = None) -> Files:
        return Files(self._run, self._inner.sandboxed(sandbox, cwd))

    def open_port(self, port: int, of: Process | str | None = None) -> Process:
        return Process(self._run, self._run(self._inner.open_port(port, of._inner if isinstance(of, Process) else of)))

    def forward(self, port: int, *, local_port: int = 0, of: Process | str | None = None) -> Forward:
        return Forward(self._run, self._run(self._inner.forward(
            port, local_port=local_port, of=of._inner if isinstance(of, Process) else of)))

    def http(self, method: str, url: str, *, headers: Headers = None, body: bytes | str | None = None,
             timeout: float | None = None, follow: bool = True, max_bytes: int = BODY_MAX) -> HttpResponse:
        return self._run(self._inner.http(method, url, headers=headers, body=body, timeout=timeout, follow=follow,
                                          max_bytes=max_bytes))

    def http_stream(self, method: str, url: str, *, headers: Headers = None, body: bytes | str | None = None,
                    timeout: float | None = None, follow: bool = True) -> HttpStream:
        return HttpStream(self._run, self._run(self._inner.http_stream(
            method, url, headers=headers, body=body, timeout=timeout, follow=follow)))

    def watch(self, path: PathLike) -> Watch:
        return Watch(self._run, self._run(self._inner.watch(path)))

    def keep(self, seconds: float, while_running: bool = False) -> dict[str, Any]:
        return self._run(self._inner.keep(seconds, while_running))

    def sessions(self) -> list[dict[str, Any]]:
        return self._run(self._inner.sessions())

    def _leave(self, how: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            self._run(how())
        finally:
            if self._inner.over:
                self._run.close()

    def end(self) -> None:
        self._leave(self._inner.end)

    def detach(self) -> None:
        self._leave(self._inner.detach)

    def close(self) -> None:
        """May be called again, also after end() and detach()."""
        if not self._run._loop.is_closed():
            self._leave(self._inner.close)

    def __enter__(self) -> Box:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def connect(url: str | None = None, token: str | None = None, *, environment: str | None = None,
            token_file: PathLike | None = None, ca: PathLike | None = None, certificate: PathLike | None = None,
            key: PathLike | None = None, session: str | None = None, watch: bool = False, take_over: bool = False,
            client_name: str = "execd-python", connect_timeout: float | None = None, initialize_timeout: float | None = None,
            resume_timeout: float | None = None, silence_timeout: float | None = None) -> Box:
    """Connects to a server: that of `url`, or of `environment`, or the one that execctl(1) would use. `session` resumes a
    session, `take_over` takes it from another client, and `watch` only looks at it. Times are in seconds."""
    connecting = aio.connect(
        url, token, environment=environment, token_file=token_file, ca=ca, certificate=certificate, key=key, session=session,
        watch=watch, take_over=take_over, client_name=client_name, connect_timeout=connect_timeout,
        initialize_timeout=initialize_timeout, resume_timeout=resume_timeout, silence_timeout=silence_timeout)

    async def opened() -> aio.Box:
        return await connecting

    loop = _Loop()
    try:
        return Box(loop, loop(opened()))
    except BaseException:
        loop.close()
        raise
