# SPDX-License-Identifier: ISC
"""Which server: URLs, the variables that name one, environments.conf and tokens, all as execctl(1) has them."""
from __future__ import annotations

import os
import re
import ssl
import stat
import warnings
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from .errors import ConfigError

URL_MAX = 4096
FILE_MAX = 1 << 20
TOKEN_FILE_MAX = 16384
TOKEN_MAX = 8192
# Where the package's execd lets the members of its group in.
LOCAL_SOCKET = "/run/execd/execd.sock"

_TEXTS = {"url": "url", "token-file": "token_file", "ca": "ca", "certificate": "certificate", "certificate-key": "key",
          "server-key": "server_key"}
_TIMES = {"connect-timeout": "connect_timeout", "initialize-timeout": "initialize_timeout",
          "silence-timeout": "silence_timeout"}


@dataclass
class Server:
    """A server, and how to come to it. Times are in seconds."""

    url: str = ""
    name: str | None = None
    token_file: str | None = None
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    server_key: str | None = None
    connect_timeout: float = 10.0
    initialize_timeout: float = 10.0
    silence_timeout: float = 15.0
    token: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Endpoint:
    """A URL in its parts. `address` is the path of a UNIX socket or the command of stdio:, `request` what the upgrade asks
    for."""

    kind: str
    address: str = ""
    host: str = ""
    port: int = 0
    request: str = ""


# --- URLs ---------------------------------------------------------------------


def parse_url(url: str) -> Endpoint:
    def wrong(why: str) -> ConfigError:
        return ConfigError(f"URL `{url[:200]}': {why}")

    scheme, colon, rest = url.partition(":")
    scheme = scheme.lower()
    if len(url) > URL_MAX:
        raise wrong("it is longer than 4096 bytes")
    if scheme == "ask":
        raise wrong("a lease is execctl's: stdio:execctl --url 'ask:...' relay reaches its server")
    if scheme == "unix" and rest.removeprefix("//"):
        return Endpoint("unix", address=rest.removeprefix("//"), request="ws://localhost/")
    if scheme == "stdio" and rest.strip():
        return Endpoint("stdio", address=rest)
    if scheme in ("unix", "stdio") and colon:
        raise wrong("the path of the socket is missing" if scheme == "unix" else "the command is missing")
    if scheme not in ("ws", "wss") or not rest.startswith("//"):
        raise wrong("it does not begin with ws://, wss://, unix: or stdio:")
    if any(c <= " " or c == "\x7f" for c in url) or not url.isascii():
        raise wrong("blanks, control characters or letters beyond ASCII inside")
    try:
        at = urlsplit(url)
        port = at.port
    except ValueError:
        raise wrong("the port is not a number from 1 to 65535") from None
    if "@" in at.netloc:
        raise wrong("a URL must not contain a user or a password; the token has its own option")
    if "#" in url:
        raise wrong("a fragment has no meaning here")
    if not at.hostname:
        raise wrong("the host is missing")
    if port == 0 or at.netloc.endswith(":"):
        raise wrong("the port is not a number from 1 to 65535")
    return Endpoint(scheme, host=at.hostname, port=port or (443 if scheme == "wss" else 80), request=url)


def is_local(at: Endpoint) -> bool:
    return at.kind in ("unix", "stdio") or at.host in ("localhost", "::1") or at.host.startswith("127.")


# --- the file of environments -------------------------------------------------


def environments_file() -> str | None:
    file, config, home = (os.environ.get(n, "") for n in ("EXECD_ENVIRONMENTS", "XDG_CONFIG_HOME", "HOME"))
    if file:
        return file
    if config.startswith("/"):
        return f"{config}/execd/environments.conf"
    return f"{home}/.config/execd/environments.conf" if home.startswith("/") else None


def _read_environments(path: str) -> str:
    """Refuses a file that others can write: they could choose where commands go."""
    try:
        with open(path, "rb") as f:
            st = os.fstat(f.fileno())
            text = f.read(FILE_MAX + 1)
    except FileNotFoundError:
        return ""
    except OSError as e:
        raise ConfigError(f"{path}: {e.strerror}") from e
    if st.st_uid not in (0, os.geteuid()) or st.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ConfigError(f"{path}: others can write to it (mode {stat.S_IMODE(st.st_mode):04o}, owner {st.st_uid})")
    if len(text) > FILE_MAX:
        raise ConfigError(f"{path}: longer than {FILE_MAX} bytes")
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: it is not UTF-8") from None


def _seconds(key: str, value: str) -> float:
    found = re.fullmatch(r"(\d{1,9})(ms|s)", value, re.ASCII)
    ms = int(found[1]) * (1000 if found[2] == "s" else 1) if found else 0
    if not 1 <= ms <= 86400000:
        raise ConfigError(f"{key}: `{value}' is not a duration like 10s or 500ms")
    return ms / 1000


def _take_key(server: Server, key: str, value: str) -> None:
    if key in _TEXTS:
        setattr(server, _TEXTS[key], value)
    elif key in _TIMES:
        setattr(server, _TIMES[key], _seconds(key, value))
    else:
        raise ConfigError(f"unknown key `{key}'")


def read_environments() -> tuple[list[Server], str | None]:
    """All environments of the file in order, and the name of the default. A file that is not there counts as empty."""
    path = environments_file()
    found: list[Server] = []
    default = None
    for number, line in enumerate(_read_environments(path).splitlines() if path else [], 1):
        text = re.sub(r"\s;.*$", "", line).rstrip()
        if not text.strip() or text.lstrip()[0] in "#;":
            continue
        try:
            if section := re.fullmatch(r"\[([^]]*)\]", text):
                found.append(Server(name=section[1]))
            elif not (pair := re.fullmatch(r"([^\s=:][^=:]*?)\s*[=:]\s*(.*)", text)):
                raise ConfigError("neither KEY = VALUE nor [NAME]")
            elif found:
                _take_key(found[-1], pair[1], pair[2])
            elif pair[1] == "default":
                default = pair[2]
            else:
                raise ConfigError(f"unknown key `{pair[1]}'")
        except ConfigError as e:
            raise ConfigError(f"{path}:{number}: {e}") from None
    for server in found:
        if not server.url:
            raise ConfigError(f"{path}: environment `{server.name}' has no url")
    return found, default


# --- tokens -------------------------------------------------------------------


def read_token(path: str) -> str:
    """Follows ssh's rule for private keys: a token of this user that others can read lets them in."""
    try:
        with open(path, "rb") as f:
            st = os.fstat(f.fileno())
            text = f.read(TOKEN_FILE_MAX + 1)
    except OSError as e:
        raise ConfigError(f"token file {path}: {e.strerror}") from e
    if stat.S_ISREG(st.st_mode) and st.st_uid == os.getuid() and st.st_mode & 0o077:
        mode = stat.S_IMODE(st.st_mode)
        raise ConfigError(f"token file {path}: mode {mode:04o} lets others read it; chmod 600 it")
    if len(text) > TOKEN_FILE_MAX:
        raise ConfigError(f"token file {path}: longer than {TOKEN_FILE_MAX} bytes")
    token = text.strip(bytes(range(33)))
    if not token:
        raise ConfigError(f"token file {path}: it is empty")
    return token.decode("latin-1")


def check_token(token: str) -> str:
    """It becomes part of a header, so it is one line without blanks (RFC 6750 section 2.1)."""
    if not re.fullmatch(r"[!-~]{1,%d}" % TOKEN_MAX, token, re.ASCII):
        raise ConfigError(f"the token is empty, over {TOKEN_MAX} bytes, or has blanks or control characters inside")
    return token


def _token_for_url(url: str) -> str | None:
    if "EXECD_TOKEN" in os.environ:
        return os.environ["EXECD_TOKEN"]
    file = next((e.token_file for e in read_environments()[0] if e.url == url and e.token_file), None)
    return read_token(file) if file else None


# --- finding one --------------------------------------------------------------


def _from_variable() -> str | None:
    for name in ("EXECD_URL", "CODEX_EXEC_SERVER_URL"):
        url = os.environ.get(name)
        if url and url.lower() == "none":
            raise ConfigError(f"{name}=none: no server is to be used")
        if url:
            return url
    return None


def _from_file(name: str | None) -> Server:
    environments, default = read_environments()
    wanted = default if name is None else name
    for server in environments:
        if wanted is not None and server.name == wanted:
            return server
    if name is not None:
        raise ConfigError(f"there is no environment `{name}'")
    if os.access(LOCAL_SOCKET, os.W_OK):
        return Server(url=f"unix:{LOCAL_SOCKET}")
    if default is None and len(environments) == 1:
        return environments[0]
    raise ConfigError("no server is named: neither by url or environment, nor by EXECD_URL, nor by a default environment, and "
                      f"there is no {LOCAL_SOCKET} for this user")


def find_server(url: str | None, environment: str | None, token: str | None, token_file: str | None) -> Server:
    """The first that is given: the URL, the environment's name, EXECD_URL, CODEX_EXEC_SERVER_URL, the default of the file.
    What the program gives as token comes before every other."""
    given = url
    if url is None and environment is None:
        url = _from_variable()
    server = Server(url=url) if url is not None else _from_file(environment)
    if token is None and token_file is not None:
        token = read_token(token_file)
    if token is None and (given is not None or url is not None):
        token = _token_for_url(server.url)
    elif token is None:
        token = read_token(server.token_file) if server.token_file else os.environ.get("EXECD_TOKEN")
    at = parse_url(server.url)
    if server.server_key is not None and server.ca is None and at.kind == "wss":
        raise ConfigError(f"environment `{server.name}': only execctl compares a server-key; for this client `ca' names the "
                          "certificate or its authority")
    server.token = None if token is None else check_token(token)
    if server.token is not None and at.kind == "ws" and not is_local(at):
        warnings.warn(f"the token goes to {at.host} over ws://, and everybody on the way can read it", stacklevel=2)
    return server


def tls_context(server: Server) -> ssl.SSLContext:
    """TLS 1.2 or 1.3, with the authorities of `ca`, or those of the system."""
    try:
        context = ssl.create_default_context(cafile=server.ca)
    except (OSError, ssl.SSLError) as e:
        raise ConfigError(f"certificates of authorities, {server.ca}: {e}") from e
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if server.certificate is not None:
        try:
            context.load_cert_chain(server.certificate, server.key, password="")
        except (OSError, ssl.SSLError) as e:
            raise ConfigError(f"client certificate {server.certificate}, key {server.key or server.certificate}: {e}") from e
    return context
