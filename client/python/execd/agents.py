# SPDX-License-Identifier: ISC
"""A sandbox client of the OpenAI Agents SDK (openai-agents), whose sandboxes are workspaces on an execd.

	client = ExecdSandboxClient()
	session = await client.create(options=ExecdSandboxClientOptions(environment="build"))
	config = RunConfig(sandbox=SandboxRunConfig(client=client, session=session))

Every command and every file request is made in the sandbox profile of the options; the model cannot change it. A session
outlives the connection, and, for `keep` seconds, the program: resume() finds it again. The interface of the SDK is that of
its releases 0.14 to 0.24 (BaseSandboxClient and BaseSandboxSession); this module needs it, and no other one does."""
from __future__ import annotations

import io
import posixpath
import uuid
from pathlib import Path
from typing import Any, Literal

from agents.sandbox.errors import (ExecTimeoutError, ExecTransportError, ExposedPortUnavailableError,
                                   InvalidManifestPathError, WorkspaceArchiveReadError, WorkspaceArchiveWriteError,
                                   WorkspaceReadNotFoundError)
from agents.sandbox.manifest import Manifest
from agents.sandbox.session.base_sandbox_session import BaseSandboxSession
from agents.sandbox.session.sandbox_client import BaseSandboxClient, BaseSandboxClientOptions
from agents.sandbox.session.sandbox_session_state import SandboxSessionState
from agents.sandbox.snapshot import resolve_snapshot
from agents.sandbox.types import ExecResult, ExposedPortEndpoint

from . import aio
from .errors import ExecdError, NotFound, SessionLost, StartFailed
from .files import Files
from .forward import Forward
from .paths import to_uri
from .sandbox import context

ARCHIVE_MAX = 512 << 20  # bytes of a workspace
NOT_FOUND, NOT_EXECUTABLE = 127, 126  # as a shell has them


class ExecdSandboxClientOptions(BaseSandboxClientOptions):
    """Which server, as connect() has it, and what its commands may do. `sandbox=None` is for a server that is a sandbox
    itself. Ports are reached where commands have the network of the server (`network`, or no profile)."""

    type: Literal["execd"] = "execd"
    url: str | None = None
    environment: str | None = None
    token_file: str | None = None
    ca: str | None = None
    sandbox: str | None = "workspace-write"
    network: bool = False
    allow_hosts: tuple[str, ...] | None = None
    exposed_ports: tuple[int, ...] = ()
    keep: float = 600


class ExecdSandboxSessionState(SandboxSessionState):
    """What resume() needs. A token is never in it."""

    type: Literal["execd"] = "execd"
    execd_session: str
    options: ExecdSandboxClientOptions
    owns_root: bool = False


class ExecdSandboxSession(BaseSandboxSession):
    """One workspace: the root of the manifest, on the server."""

    state: ExecdSandboxSessionState

    def __init__(self, state: ExecdSandboxSessionState, box: aio.Box) -> None:
        self.state = state
        self.box = box
        self._forwards: dict[int, Forward] = {}

    @property
    def _root(self) -> str:
        return str(self.state.manifest.root)

    def _files(self, workspace: str | None = None) -> Files:
        profile = self.state.options.sandbox
        return self.box.files if profile is None else self.box.sandboxed(profile, workspace or self._root)

    async def _prepare_backend_workspace(self) -> None:
        """A directory of a sandbox must be there before the sandbox."""
        await self._files(posixpath.dirname(self._root)).mkdir(self._root)

    # --- commands ---

    async def _exec_internal(self, *command: str | Path, timeout: float | None = None) -> ExecResult:
        argv = [str(c) for c in command]
        options = self.state.options
        resolved = await self.state.manifest.environment.resolve()
        try:
            r = await self.box.run(
                argv, cwd=self._root, sandbox=options.sandbox, network=options.network, allow_hosts=options.allow_hosts,
                env={k: v for k, v in resolved.items() if v is not None}, timeout=timeout, wait_output=True)
        except StartFailed as e:
            code = NOT_FOUND if e.kind == "spawnNotFound" else NOT_EXECUTABLE
            return ExecResult(stdout=b"", stderr=f"{argv[0]}: {e}\n".encode(), exit_code=code)
        except ExecdError as e:
            raise ExecTransportError(command=tuple(argv), context={"error": str(e)}, cause=e) from e
        if r.timed_out:
            raise ExecTimeoutError(command=tuple(argv), timeout_s=timeout)
        return ExecResult(stdout=r.stdout_bytes, stderr=r.stderr_bytes, exit_code=r.exit_code)

    async def running(self) -> bool:
        return not self.box.over

    # --- files ---

    async def _validate_path_access(self, path: Path | str, *, for_write: bool = False) -> Path:
        """Refuses what leads out of the workspace by a link. What may be written is the server's to refuse in any case."""
        wanted: Path = self.normalize_path(path, for_write=for_write)
        real, files = str(wanted), self._files()
        rest: list[str] = []
        while True:
            try:
                real = posixpath.join(await files.canonicalize(real), *reversed(rest))
                break
            except NotFound:
                if real == "/":
                    raise
                real, name = posixpath.split(real)
                rest.append(name)
        roots = [self._root, *(grant.path for grant in self.state.manifest.extra_path_grants)]
        for root in roots:
            top = await files.canonicalize(root)
            if real == top or real.startswith(top.rstrip("/") + "/"):
                return wanted
        raise InvalidManifestPathError(rel=str(path), reason="escape_root", context={"resolved_path": real})

    async def read(self, path: Path, *, user: Any = None) -> io.IOBase:
        self._refuse_user(user)
        where = await self._validate_path_access(path)
        try:
            return io.BytesIO(await self._files().read(str(where)))
        except NotFound as e:
            raise WorkspaceReadNotFoundError(path=path, cause=e) from e
        except ExecdError as e:
            raise WorkspaceArchiveReadError(path=path, cause=e) from e

    async def write(self, path: Path, data: io.IOBase, *, user: Any = None) -> None:
        self._refuse_user(user)
        content: bytes = data.read()
        where = await self._validate_path_access(path, for_write=True)
        try:
            await self._files().mkdir(str(where.parent))
            await self._files().write(str(where), content)
        except ExecdError as e:
            raise WorkspaceArchiveWriteError(path=path, cause=e) from e

    @staticmethod
    def _refuse_user(user: Any) -> None:
        if user is not None:
            raise NotImplementedError("execd: a session's commands and files are those of its identity's user")

    # --- the workspace as a whole ---

    async def _tar(self, *args: str, input: bytes | None = None) -> bytes:
        """Not the model's, so it may write what the profile guards in a workspace: .git and the like."""
        uri = to_uri(self._root, "/")
        sandbox = None if self.state.options.sandbox is None else context("workspace-write", uri, False, guarded="write")
        r = await self.box.run(["tar", "-C", self._root, *args], cwd=self._root, sandbox=sandbox, input=input,
                               wait_output=True, max_output=ARCHIVE_MAX, check=True)
        return r.stdout_bytes

    async def persist_workspace(self) -> io.IOBase:
        skipped = [f"--exclude=./{p.as_posix()}" for p in self._persist_workspace_skip_relpaths()]
        try:
            return io.BytesIO(await self._tar("--anchored", "--no-wildcards", *skipped, "-cf", "-", "."))
        except ExecdError as e:
            raise WorkspaceArchiveReadError(path=Path(self._root), cause=e) from e

    async def hydrate_workspace(self, data: io.IOBase) -> None:
        """The server unpacks it, in the sandbox, so that no name and no link in it leads out of the workspace."""
        content: bytes = data.read()
        try:
            if content:
                await self._tar("-xf", "-", input=content)
        except ExecdError as e:
            raise WorkspaceArchiveWriteError(path=Path(self._root), cause=e) from e

    # --- ports ---

    async def _resolve_exposed_port(self, port: int) -> ExposedPortEndpoint:
        try:
            if port not in self._forwards:
                self._forwards[port] = await self.box.forward(port)
        except ExecdError as e:
            raise ExposedPortUnavailableError(port=port, exposed_ports=self.state.exposed_ports, reason="backend_unavailable",
                                              context={"backend": "execd", "error": str(e)}, cause=e) from e
        return ExposedPortEndpoint(host="127.0.0.1", port=self._forwards[port].port)

    async def _shutdown_backend(self) -> None:
        """Ports here are closed. The session stays for delete(), which comes next, or for resume()."""
        for forward in self._forwards.values():
            await forward.close()
        self._forwards.clear()


class ExecdSandboxClient(BaseSandboxClient[ExecdSandboxClientOptions]):
    backend_id = "execd"
    supports_default_options = True

    async def _connect(self, options: ExecdSandboxClientOptions, session: str | None = None) -> aio.Box:
        box = await aio.connect(options.url, environment=options.environment, token_file=options.token_file, ca=options.ca,
                                client_name="openai-agents", session=session, take_over=session is not None)
        if box.can("sessionKeep"):
            await box.keep(options.keep, while_running=True)
        return box

    async def create(self, *, snapshot: Any = None, manifest: Manifest | None = None,
                     options: ExecdSandboxClientOptions | None = None) -> Any:
        options = options or ExecdSandboxClientOptions()
        manifest = manifest or Manifest()
        box = await self._connect(options)
        # The SDK's own root is one of a container, which no user of a machine may make.
        owns_root = manifest.root == Manifest().root
        if owns_root:
            manifest = manifest.model_copy(update={"root": f"{box.home.rstrip('/')}/.execd-agents-{uuid.uuid4().hex}"})
        state = ExecdSandboxSessionState(
            snapshot=resolve_snapshot(snapshot, box.session_id), manifest=manifest, exposed_ports=options.exposed_ports,
            execd_session=box.session_id, options=options, owns_root=owns_root)
        return self._wrap_session(ExecdSandboxSession(state, box))

    async def resume(self, state: SandboxSessionState) -> Any:
        """The same session, if the server still has it; else a new one in the same directory."""
        if not isinstance(state, ExecdSandboxSessionState):
            raise TypeError(f"state: expected ExecdSandboxSessionState, not {type(state).__name__}")
        try:
            box = await self._connect(state.options, state.execd_session)
        except SessionLost:
            box = await self._connect(state.options)
            state = state.model_copy(update={"execd_session": box.session_id})
        inner = ExecdSandboxSession(state, box)
        inner._set_start_state_preserved(True)
        return self._wrap_session(inner)

    async def delete(self, session: Any) -> Any:
        """Ends the session and everything in it, and removes a workspace that create() made."""
        inner = getattr(session, "_inner", session)
        if not isinstance(inner, ExecdSandboxSession):
            raise TypeError(f"session: expected one of this client, not {type(inner).__name__}")
        await inner._shutdown_backend()
        try:
            if inner.state.owns_root and not inner.box.over:
                await inner._files(posixpath.dirname(inner._root)).remove(inner._root, recursive=True, missing_ok=True)
        finally:
            if inner.box.can("sessionEnd") and not inner.box.over:
                await inner.box.end()
            await inner.box.close()
        return session

    def deserialize_session_state(self, payload: dict[str, object]) -> SandboxSessionState:
        # Newer releases take away what must not come from a file.
        checked = getattr(self, "_deserialize_session_state_payload", None)
        return checked(payload, ExecdSandboxSessionState) if checked else ExecdSandboxSessionState.model_validate(payload)
