# SPDX-License-Identifier: ISC
"""A double of the OpenAI Agents SDK's sandbox interface, as far as a provider meets it: what its base classes ask of a
provider, in the order in which they ask. install() puts it where `import agents.sandbox` looks."""
import abc
import sys
import types
from pathlib import Path, PurePosixPath


class Model:
    """What pydantic does for the classes of the SDK, with the annotations of all bases."""

    def __init__(self, **values):
        names = [n for c in type(self).__mro__ for n in getattr(c, "__annotations__", {})]
        unknown = set(values) - set(names)
        assert not unknown, unknown
        for n in dict.fromkeys(names):
            if n in values:
                setattr(self, n, values[n])
            else:
                assert hasattr(type(self), n), f"{n} is missing"

    def model_dump(self, mode="json"):
        names = dict.fromkeys(n for c in type(self).__mro__ for n in getattr(c, "__annotations__", {}))
        return {n: v.model_dump() if isinstance(v := getattr(self, n), Model) else v for n in names}

    def model_copy(self, update):
        copy = object.__new__(type(self))
        copy.__dict__ = {**self.__dict__, **update}
        return copy


class Environment:
    def __init__(self, **values):
        self.values = values

    async def resolve(self):
        return self.values


class Manifest(Model):
    root: str = "/workspace"
    entries: dict = {}
    environment: Environment = Environment()
    extra_path_grants: tuple = ()


class SandboxSessionState(Model):
    type: str
    snapshot: object
    manifest: Manifest
    exposed_ports: tuple = ()
    workspace_root_ready: bool = False


class BaseSandboxClientOptions(Model):
    type: str


class ExecResult:
    def __init__(self, *, stdout, stderr, exit_code):
        self.stdout, self.stderr, self.exit_code = stdout, stderr, exit_code

    def ok(self):
        return self.exit_code == 0


class ExposedPortEndpoint(Model):
    host: str
    port: int
    tls: bool = False


class SandboxError(Exception):
    def __init__(self, **about):
        super().__init__(str(about))
        self.about = about


ERRORS = ("ExecTimeoutError", "ExecTransportError", "ExposedPortUnavailableError", "InvalidManifestPathError",
          "WorkspaceArchiveReadError", "WorkspaceArchiveWriteError", "WorkspaceReadNotFoundError")


class BaseSandboxSession(abc.ABC):
    preserved = False

    async def start(self):
        await self._prepare_backend_workspace()
        if self.preserved and (await self.exec("test", "-d", self.state.manifest.root, shell=False)).ok():
            return
        for name, text in self.state.manifest.entries.items():
            import io
            await self.write(Path(name), io.BytesIO(text))

    async def exec(self, *command, timeout=None, shell=True, user=None):
        argv = [str(c) for c in command]
        return await self._exec_internal(*(["sh", "-lc", " ".join(argv)] if shell else argv), timeout=timeout)

    async def resolve_exposed_port(self, port):
        assert port in self.state.exposed_ports
        return await self._resolve_exposed_port(port)

    def normalize_path(self, path, *, for_write=False):
        root = PurePosixPath(self.state.manifest.root)
        parts = []
        for part in (root / path).parts:
            parts = parts[:-1] if part == ".." else [*parts, part]
        wanted = PurePosixPath(*parts)
        if not wanted.is_relative_to(root):
            raise sys.modules["agents.sandbox.errors"].InvalidManifestPathError(rel=str(path), reason="escape_root")
        return Path(wanted)

    def _persist_workspace_skip_relpaths(self):
        return {Path("skipped")}

    def _set_start_state_preserved(self, workspace, *, system=None):
        self.preserved = workspace

    async def aclose(self):
        self.persisted = await self.persist_workspace()
        await self._shutdown_backend()

    async def _prepare_backend_workspace(self): ...
    async def _shutdown_backend(self): ...
    @abc.abstractmethod
    async def _exec_internal(self, *command, timeout=None): ...
    @abc.abstractmethod
    async def read(self, path, *, user=None): ...
    @abc.abstractmethod
    async def write(self, path, data, *, user=None): ...
    @abc.abstractmethod
    async def running(self): ...
    @abc.abstractmethod
    async def persist_workspace(self): ...
    @abc.abstractmethod
    async def hydrate_workspace(self, data): ...


class SandboxSession:
    """Asks the inner one, as the wrapper of the SDK does."""

    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self._inner, name)


class BaseSandboxClient(abc.ABC):
    def __class_getitem__(cls, options):
        return cls

    def _wrap_session(self, inner):
        return SandboxSession(inner)

    @abc.abstractmethod
    async def create(self, *, snapshot=None, manifest=None, options): ...
    @abc.abstractmethod
    async def delete(self, session): ...
    @abc.abstractmethod
    async def resume(self, state): ...
    @abc.abstractmethod
    def deserialize_session_state(self, payload): ...


def resolve_snapshot(spec, snapshot_id):
    return spec or f"none of {snapshot_id}"


def install(monkeypatch):
    errors = {n: type(n, (SandboxError,), {}) for n in ERRORS}
    modules = {
        "agents": {}, "agents.sandbox": {}, "agents.sandbox.session": {}, "agents.sandbox.errors": errors,
        "agents.sandbox.manifest": {"Manifest": Manifest}, "agents.sandbox.snapshot": {"resolve_snapshot": resolve_snapshot},
        "agents.sandbox.types": {"ExecResult": ExecResult, "ExposedPortEndpoint": ExposedPortEndpoint},
        "agents.sandbox.session.base_sandbox_session": {"BaseSandboxSession": BaseSandboxSession},
        "agents.sandbox.session.sandbox_client": {"BaseSandboxClient": BaseSandboxClient,
                                                  "BaseSandboxClientOptions": BaseSandboxClientOptions},
        "agents.sandbox.session.sandbox_session_state": {"SandboxSessionState": SandboxSessionState}}
    for name, members in modules.items():
        module = types.ModuleType(name)
        module.__dict__.update(members)
        module.__path__ = []
        monkeypatch.setitem(sys.modules, name, module)
    return types.SimpleNamespace(**errors)
