# SPDX-License-Identifier: ISC
"""What can go wrong, each with a class of its own. Wrong types and values of the program are TypeError and ValueError,
and are raised before anything is sent."""
from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .process import Result


class ExecdError(Exception):
    """The base of all others."""


class ConfigError(ExecdError):
    """No server is named, or the URL, environments.conf or a file that it names is wrong."""


class Unreachable(ExecdError):
    """There is no connection to the server, or it does not answer in time."""


class CertificateRefused(ExecdError):
    """The server's certificate is not to be trusted."""


class AuthenticationFailed(ExecdError):
    """The server does not accept the token or the client's certificate."""


class ProtocolError(ExecdError):
    """The peer is no exec-server, or says what none may say."""


class LimitExceeded(ExecdError):
    """Something is larger than a limit of this client. `limit` is its value."""

    def __init__(self, text: str, limit: int) -> None:
        super().__init__(text)
        self.limit = limit


class ConnectionLost(ExecdError):
    """The connection was lost and not resumed. What became of the commands is not known."""


class AnswerLost(ConnectionLost):
    """The connection was lost before the answer came, and the request may not be repeated. Whether it was done is not
    known. The session goes on."""


class SessionLost(ConnectionLost):
    """The server does not know the session any more."""


class SessionTaken(ConnectionLost):
    """Another client took the session over."""


class SessionAttached(ExecdError):
    """Another client has the session. connect(take_over=True) takes it."""


class MissingCapability(ExecdError):
    """The server cannot do that. `capability` is the name that it does not announce."""

    def __init__(self, capability: str, what: str) -> None:
        super().__init__(f"{what} needs a server that announces {capability}")
        self.capability = capability


class ProcessLost(ExecdError):
    """What became of the command is not known."""


class StdinClosed(ExecdError):
    """The command reads no more input."""


class OutputLost(ExecdError):
    """Output is missing here: the server did not retain it while there was no connection. `bytes` is None if the server does
    not say how much it was, and `events` are its pieces. Reading may go on behind it. An OutputLost of run() has the result."""

    def __init__(self, bytes: int | None, events: int | None, result: Result | None = None) -> None:
        size = f"{bytes} bytes" if bytes is not None else f"{events} pieces"
        super().__init__(f"{size} of output fell out of what the server retains while there was no connection")
        self.bytes, self.events, self.result = bytes, events, result


class OutputUnread(ExecdError):
    """The command waits, because nobody reads its output, and somebody waits for its end."""


class FileChanged(ExecdError):
    """The file became another one while it was read, and the connection was lost meanwhile."""


class CommandFailed(ExecdError):
    """run(check=True): the command did not end with 0. `result` is all of it."""

    def __init__(self, result: Result) -> None:
        super().__init__(f"the command ended with {result.exit_code}: {result.stderr[-2000:].strip()}".rstrip(": "))
        self.result = result


class ServerError(ExecdError):
    """The server's error. str() is its text, behind what it is about where that is no more than an errno; `code`, `kind` and `method` say more. `key`, `value` and `place` name the
    operator's limit that refused the request ("tasks-max", "64", "identity ci"), and `limit` is a limit that the text
    gives as a number; None where there is none. `errno` is that of the operating system."""

    def __init__(self, method: str, code: int, text: str, data: Any = None, about: str = "") -> None:
        super().__init__(f"{about}: {text}" if about and re.fullmatch(r"[^:]{1,80} \(os error \d{1,6}\)", text) else text)
        self.method, self.code, self.text, self.data = method, code, text, data
        kind = data.get("kind") if isinstance(data, dict) else None
        self.kind = kind if isinstance(kind, str) else None
        self.key, self.value, self.place = _find_key(text)
        found = re.search(r"limit is (\d{1,20})\b", text) or re.fullmatch(r"(\d{1,20})", self.value or "")
        self.limit = int(found[1]) if found else None
        found = re.search(r"\(os error (\d{1,6})\)", text)
        self.errno = int(found[1]) if found else None


class Refused(ServerError):
    """-32600: the state does not allow it, a file may not be used so, or a limit is reached."""


class InvalidParams(ServerError):
    """-32602: a value is not allowed."""


class SandboxRefused(InvalidParams):
    """The sandbox exceeds what the operator permits, or cannot be enforced there. Nothing ran."""


class UnknownMethod(ServerError):
    """-32601: the server does not have this method."""


class OperatingSystemError(ServerError):
    """-32603: `errno` says more."""


class StartFailed(OperatingSystemError):
    """The program cannot be executed: `kind` is spawnNotFound, spawnPermissionDenied or spawnFailed."""


class NotFound(ServerError):
    """-32004: no such file."""


_CLASSES: dict[int, type[ServerError]] = {
    -32600: Refused, -32601: UnknownMethod, -32602: InvalidParams, -32603: OperatingSystemError, -32004: NotFound}


def _find_key(text: str) -> tuple[str | None, str | None, str | None]:
    """The key of a limit, its value and its place, as "max-kept-sessions = 4 of [limits]" and "(limited by
    sandbox-max-profile in identity ci; ...)" have them."""
    found = re.search(r"\b([a-z][a-z0-9-]{1,60}) = (\S{1,60}) of (\[[^]\n]{1,80}\]|identity [^\s;)]{1,80})", text)
    if found:
        return found[1], found[2], found[3]
    found = re.search(r"limited by ([a-z][a-z0-9-]{1,60})(?: = (\S{1,60}))? in ([^;)\n]{1,80})", text)
    return (found[1], found[2], found[3]) if found else (None, None, None)


def server_error(method: str, code: int, text: str, data: Any, about: str = "") -> ServerError:
    """The error of the class that fits."""
    kind = data.get("kind") if isinstance(data, dict) else None
    cls = _CLASSES.get(code, ServerError)
    if code == -32602 and (kind in ("sandboxPreparation", "sandboxUnavailable") or text.startswith("sandbox ")):
        cls = SandboxRefused
    elif code == -32603 and method == "process/start" and isinstance(kind, str) and kind.startswith("spawn"):
        cls = StartFailed
    return cls(method, code, text, data, about)
