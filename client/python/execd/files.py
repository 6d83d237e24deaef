# SPDX-License-Identifier: ISC
"""Files of the server: whole, in blocks, and trees. A transfer that is cut goes on at its byte."""
from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import tempfile
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from .connection import Connection
from .errors import AnswerLost, ExecdError, FileChanged, LimitExceeded, NotFound, ProtocolError, ServerError
from .paths import from_uri, to_uri
from .values import check, check_bytes, check_range, check_text, from_base64, member, optional, to_base64

PathLike = str | os.PathLike[str]

BLOCK = 1 << 20            # bytes, the most that servers take
WINDOW = 4                 # blocks under way
WHOLE_MAX = 1 << 20        # bytes that are written with one request
READ_MAX = 512 << 20       # bytes that read() returns, unless told otherwise
ENTRIES_MAX = 1_000_000    # of a directory
ATTEMPTS = 20              # of one block, each on another connection
DEPTH_MAX = 256            # of a tree


@dataclass(frozen=True)
class Metadata:
    """Times are in seconds since 1970; `created` is 0 if it is not known. `mode` and `target` are None where the server
    does not announce fsDetails."""

    is_dir: bool
    is_file: bool
    is_symlink: bool
    size: int
    created: float
    modified: float
    mode: int | None = None
    target: str | None = None


@dataclass(frozen=True)
class Entry:
    """Of a directory. Where the server does not announce fsDetails only the first three are known."""

    name: str
    is_dir: bool
    is_file: bool
    is_symlink: bool = False
    size: int | None = None
    modified: float | None = None
    mode: int | None = None
    target: str | None = None


@dataclass(frozen=True)
class Walk:
    """`entries` are (path, kind), where kind is file or directory, and `errors` are (path, text)."""

    entries: list[tuple[str, str]]
    errors: list[tuple[str, str]]
    truncated: bool


def _metadata(said: dict[str, Any]) -> Metadata:
    return Metadata(
        is_dir=member(said, "isDirectory", bool), is_file=member(said, "isFile", bool),
        is_symlink=member(said, "isSymlink", bool), size=member(said, "size", int),
        created=member(said, "createdAtMs", int) / 1000, modified=member(said, "modifiedAtMs", int) / 1000,
        mode=said.get("mode") if isinstance(said.get("mode"), int) else None,
        target=optional(said, "linkTarget", str, "") or None)


def _entry(said: Any) -> Entry:
    name = member(said, "fileName", str)
    if "path" in said:  # every byte of the name
        name = from_uri(member(said, "path", str)).rpartition("/")[2]
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise ProtocolError(f"the server's directory has an entry {name[:80]!r}")
    modified = said.get("modifiedAtMs")
    return Entry(
        name=name, is_dir=member(said, "isDirectory", bool), is_file=member(said, "isFile", bool),
        is_symlink=optional(said, "isSymlink", bool, False), size=said.get("size") if isinstance(said.get("size"), int) else None,
        modified=modified / 1000 if isinstance(modified, int) else None,
        mode=said.get("mode") if isinstance(said.get("mode"), int) else None,
        target=optional(said, "linkTarget", str, "") or None)


class Files:
    """A path that is not absolute begins at the home directory there. Every request is made under `sandbox`, if there is
    one."""

    def __init__(self, connection: Connection, home: str, sandbox: Mapping[str, Any] | None) -> None:
        self._connection, self._home, self._sandbox = connection, home, sandbox

    def _params(self, **more: Any) -> dict[str, Any]:
        return more if self._sandbox is None else {**more, "sandbox": self._sandbox}

    def _uri(self, path: PathLike) -> str:
        return to_uri(path, self._home)

    async def _call(self, method: str, **params: Any) -> dict[str, Any]:
        return await self._connection.call(f"fs/{method}", self._params(**params))

    # --- names ---

    async def stat(self, path: PathLike) -> Metadata:
        more = {"details": True} if self._connection.can("fsDetails") else {}
        return _metadata(await self._call("getMetadata", path=self._uri(path), **more))

    async def exists(self, path: PathLike) -> bool:
        try:
            await self.stat(path)
        except NotFound:
            return False
        return True

    async def listdir(self, path: PathLike = ".") -> list[Entry]:
        """In the order of the names."""
        more = {"details": True} if self._connection.can("fsDetails") else {}
        said = member(await self._call("readDirectory", path=self._uri(path), **more), "entries", list)
        if len(said) > ENTRIES_MAX:
            raise LimitExceeded(f"the directory has more than {ENTRIES_MAX} entries", ENTRIES_MAX)
        return sorted(map(_entry, said), key=lambda e: e.name)

    async def walk(self, path: PathLike, max_depth: int = 64, max_directories: int = 10000, max_entries: int = 50000,
                   follow: bool = False, prune_hidden: bool = False) -> Walk:
        check_range("max_depth", max_depth, 0, 64)
        check_range("max_directories", max_directories, 1, 10000)
        check_range("max_entries", max_entries, 1, 50000)
        check("follow", follow, bool)
        check("prune_hidden", prune_hidden, bool)
        said = await self._call("walk", path=self._uri(path), options={
            "maxDepth": max_depth, "maxDirectories": max_directories, "maxEntries": max_entries,
            "followDirectorySymlinks": follow, "pruneHiddenDirectories": prune_hidden})
        entries, errors = member(said, "entries", list), member(said, "errors", list)
        if len(entries) > max_entries:
            raise ProtocolError("the server's walk has more entries than were asked for")
        return Walk([(from_uri(member(e, "path", str)), member(e, "kind", str)) for e in entries],
                    [(from_uri(member(e, "path", str)), member(e, "message", str)) for e in errors],
                    member(said, "truncated", bool))

    async def canonicalize(self, path: PathLike) -> str:
        return from_uri(member(await self._call("canonicalize", path=self._uri(path)), "path", str))

    async def mkdir(self, path: PathLike, parents: bool = True) -> None:
        """With `parents` a directory that is there is no error."""
        check("parents", parents, bool)
        await self._call("createDirectory", path=self._uri(path), recursive=parents)

    async def remove(self, path: PathLike, recursive: bool = False, missing_ok: bool = False) -> None:
        """A link is removed itself."""
        check("recursive", recursive, bool)
        check("missing_ok", missing_ok, bool)
        await self._call("remove", path=self._uri(path), recursive=recursive, force=missing_ok)

    async def copy(self, source: PathLike, target: PathLike, recursive: bool = False) -> None:
        """Both are on the server."""
        check("recursive", recursive, bool)
        await self._call("copy", sourcePath=self._uri(source), destinationPath=self._uri(target), recursive=recursive)

    async def move(self, source: PathLike, target: PathLike, overwrite: bool = False) -> None:
        check("overwrite", overwrite, bool)
        params = {"sourcePath": self._uri(source), "destinationPath": self._uri(target), "overwrite": overwrite}
        self._connection.need("fsMove", "move()")
        await self._call("move", **params)

    async def chmod(self, path: PathLike, mode: int) -> None:
        check_range("mode", mode, 0, 0o7777)
        self._connection.need("fsChmod", "chmod()")
        await self._call("chmod", path=self._uri(path), mode=mode)

    async def symlink(self, path: PathLike, target: str) -> None:
        """Makes the link `path`, whose text is `target`."""
        check_text("target", target)
        self._connection.need("fsSymlink", "symlink()")
        await self._call("symlink", path=self._uri(path), target=target)

    async def set_modified(self, path: PathLike, seconds: float) -> None:
        check("seconds", seconds, int, float)
        ms = int(seconds * 1000)
        check_range("seconds", ms, 0, 253402300799999)
        self._connection.need("fsSetTimes", "set_modified()")
        await self._call("setTimes", path=self._uri(path), modifiedAtMs=ms)

    # --- blocks ---

    async def _open(self, path: str, mode: str, **more: Any) -> tuple[str, dict[str, Any]]:
        handle = f"py-{self._connection.number()}"
        return handle, await self._call("open", handleId=handle, path=path, mode=mode, **more)

    def _close(self, handle: str) -> None:
        self._connection.tell("fs/close", {"handleId": handle})

    async def read_blocks(self, path: PathLike) -> AsyncIterator[bytes]:
        """The file in pieces. After a cut it goes on where it was, or raises FileChanged."""
        uri, at, attempts = self._uri(path), 0, 0
        before: tuple[int, float] | None = None
        while True:
            handle = None
            waiting: deque[asyncio.Future[Any]] = deque()
            try:
                now = await self.stat(path)
                if before not in (None, (now.size, now.modified)):
                    raise FileChanged(f"{path}: it changed while it was read, and the connection was lost meanwhile")
                before = now.size, now.modified
                handle, _ = await self._open(uri, "read")
                asked = at
                while True:
                    # Most files end in the first block.
                    while len(waiting) < (1 if at == 0 and now.size < BLOCK else WINDOW):
                        waiting.append(self._connection.request(
                            "fs/readBlock", {"handleId": handle, "offset": asked, "len": BLOCK}))
                        asked += BLOCK
                    said = await waiting.popleft()
                    data = from_base64(member(said, "chunk", str))
                    eof = member(said, "eof", bool)
                    if len(data) > BLOCK or (len(data) < BLOCK and not eof):
                        raise ProtocolError("the server's block is not as long as it was asked for")
                    attempts = 0
                    at += len(data)
                    if data:
                        yield data
                    if eof:
                        return
            except (AnswerLost, NotFound) as e:
                # A helper that ended takes its handles along; the connection may be there all the time.
                if handle is None and isinstance(e, NotFound):
                    raise
                attempts += 1
                if attempts > ATTEMPTS:
                    raise
            finally:
                if handle is not None:
                    self._close(handle)

    async def write_blocks(self, path: PathLike, blocks: Iterable[bytes] | AsyncIterable[bytes]) -> int:
        """Creates or replaces the file, and returns its size. After a cut it goes on at the last byte that the server has
        confirmed, where it announces fsOpenAppend; any other one is AnswerLost."""
        uri = self._uri(path)
        handle, _ = await self._open(uri, "replace")
        done = sent = attempts = 0
        waiting: deque[tuple[asyncio.Future[Any], bytes]] = deque()

        def send(at: int, data: bytes) -> asyncio.Future[Any]:
            return self._connection.request("fs/writeBlock", {"handleId": handle, "offset": at, "chunk": to_base64(data)})

        async def confirm() -> None:
            """Waits for the oldest block. Blocks without an answer may have been written, and are written again."""
            nonlocal handle, done, attempts
            while True:
                try:
                    member({"answer": await waiting[0][0]}, "answer", dict)
                    done += len(waiting.popleft()[1])
                    attempts = 0
                    return
                except (AnswerLost, NotFound):
                    attempts += 1
                    if attempts > ATTEMPTS or not self._connection.can("fsOpenAppend"):
                        raise
                with contextlib.suppress(AnswerLost):
                    handle, said = await self._open(uri, "replace", append=True)
                    size = member(said, "size", int)
                    if not done <= size <= sent:
                        raise FileChanged(f"{path}: it has {size} bytes now, and {done} were confirmed: another one writes it")
                    at = done
                    for i, (_, data) in enumerate(list(waiting)):
                        waiting[i] = send(at, data), data
                        at += len(data)

        try:
            async for data in _pieces(blocks):
                waiting.append((send(sent, data), data))
                sent += len(data)
                if len(waiting) >= WINDOW:
                    await confirm()
            while waiting:
                await confirm()
        finally:
            self._close(handle)
        return sent

    # --- whole ---

    async def read(self, path: PathLike, max_bytes: int = READ_MAX) -> bytes:
        check_range("max_bytes", max_bytes, 0, 1 << 62)
        parts, size = [], 0
        async for data in self.read_blocks(path):
            size += len(data)
            if size > max_bytes:
                raise LimitExceeded(f"{path}: it has more than max_bytes = {max_bytes} bytes", max_bytes)
            parts.append(data)
        return b"".join(parts)

    async def read_text(self, path: PathLike, encoding: str = "utf-8", max_bytes: int = READ_MAX) -> str:
        return (await self.read(path, max_bytes)).decode(encoding)

    async def write(self, path: PathLike, data: bytes | str) -> None:
        """Creates the file, or replaces its content and keeps its mode and owner. It is not atomic."""
        content = check_bytes("data", data)
        if len(content) <= WHOLE_MAX:
            await self._call("writeFile", path=self._uri(path), dataBase64=to_base64(content))
        else:
            await self.write_blocks(path, (content[at:at + BLOCK] for at in range(0, len(content), BLOCK)))

    # --- trees ---

    async def upload(self, local: PathLike, remote: PathLike) -> int:
        """Copies a file, or a directory and all that is in it, to the path `remote`, and returns how many files. Links in
        a directory are copied as links. What is neither is refused."""
        here, there = Path(local), os.fspath(remote)
        self._uri(there)
        if stat.S_ISDIR(here.stat().st_mode):
            return await self._upload_tree(here, there, 0)
        return await self._upload_file(here, there)

    async def _upload_file(self, here: Path, there: str) -> int:
        with _open_regular(here) as f:
            mode = stat.S_IMODE(os.fstat(f.fileno()).st_mode)
            await self.write_blocks(there, iter(lambda: f.read(BLOCK), b""))
        if self._connection.can("fsChmod"):
            await self.chmod(there, mode & 0o777)
        return 1

    async def _upload_tree(self, here: Path, there: str, depth: int) -> int:
        _check_depth(depth, there)
        await self.mkdir(there)
        count = 0
        for name in sorted(os.listdir(here)):
            one, other = here / name, f"{there}/{name}"
            mode = one.lstat().st_mode
            if stat.S_ISDIR(mode):
                count += await self._upload_tree(one, other, depth + 1)
            elif stat.S_ISLNK(mode):
                await self.remove(other, missing_ok=True)
                await self.symlink(other, os.readlink(one))
                count += 1
            else:
                count += await self._upload_file(one, other)
        return count

    async def download(self, remote: PathLike, local: PathLike) -> int:
        """Copies a file, or a directory and all that is in it, to the path `local`, and returns how many files. A file
        gets its name when it is complete. Links in a directory are copied as links where the server tells them."""
        there, here = os.fspath(remote), Path(local)
        what = await self.stat(there)
        if what.is_dir:
            return await self._download_tree(there, here, 0)
        return await self._download_file(there, here, what.mode)

    async def _download_file(self, there: str, here: Path, mode: int | None) -> int:
        fd, name = tempfile.mkstemp(prefix=".execd-", dir=here.parent)
        try:
            with open(fd, "wb") as f:
                async for data in self.read_blocks(there):
                    f.write(data)
                os.fchmod(f.fileno(), 0o644 if mode is None else mode & 0o777)
            os.replace(name, here)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)
            raise
        return 1

    async def _download_tree(self, there: str, here: Path, depth: int) -> int:
        """The server says the names and what they are, so nothing here follows a link."""
        _check_depth(depth, there)
        if here.is_symlink() or not here.is_dir():
            here.mkdir()
        count = 0
        for e in await self.listdir(there):
            one, other = here / e.name, f"{there}/{e.name}"
            if e.is_symlink and e.target is not None:
                _check_target(there, e)
                if one.is_symlink():
                    one.unlink()
                one.symlink_to(e.target)
                count += 1
            elif e.is_dir:
                count += await self._download_tree(other, one, depth + 1)
            elif e.is_file:
                count += await self._download_file(other, one, e.mode)
            else:
                raise ExecdError(f"{other}: it is neither a file nor a directory")
        return count


def _check_depth(depth: int, path: str) -> None:
    if depth > DEPTH_MAX:
        raise LimitExceeded(f"{path}: directories lie more than {DEPTH_MAX} deep in each other", DEPTH_MAX)


def _check_target(there: str, e: Entry) -> None:
    if e.target is None or "\0" in e.target:
        raise ProtocolError(f"the server's link {there}/{e.name} has no text")


def _open_regular(path: Path) -> BinaryIO:
    """Never waits for a FIFO, and opens no device."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise ExecdError(f"{path}: it is not a file")
    return open(fd, "rb")


async def _pieces(blocks: Iterable[bytes] | AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """In pieces that a server takes."""
    if isinstance(blocks, (str, bytes, bytearray)) or not isinstance(blocks, (AsyncIterable, Iterable)):
        raise TypeError(f"blocks: expected an iterable of bytes, not {type(blocks).__name__}")
    if isinstance(blocks, AsyncIterable):
        async for block in blocks:
            data = check_bytes("blocks", block)
            for at in range(0, len(data), BLOCK):
                yield data[at:at + BLOCK]
        return
    for block in blocks:
        data = check_bytes("blocks", block)
        for at in range(0, len(data), BLOCK):
            yield data[at:at + BLOCK]
