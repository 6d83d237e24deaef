# SPDX-License-Identifier: ISC
"""Credentials of the websocket listener (doc/protocol.md section 1.5)."""
import base64
import hashlib
import hmac
import json
import os
import socket
import subprocess
import time
from urllib.parse import urlsplit

import pytest
from conftest import command
from execd_client import WebSocket, upgrade

KEY = b"k" * 32


def part(data):
    data = data if isinstance(data, bytes) else json.dumps(data).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def jwt(key=KEY, header=None, **claims):
    signed = part(header or {"alg": "HS256", "typ": "JWT"}) + b"." + part(claims)
    return (signed + b"." + part(hmac.new(key, signed, "sha256").digest())).decode()


@pytest.fixture
def secret(directory, mode):
    def write(content, name="secret", mode=0o644):
        path = directory / name
        path.write_bytes(content)
        os.chmod(path, mode)
        return str(path)
    return write


def status(server, *authorization, path="/"):
    """Status and body of an upgrade with these Authorization headers."""
    at = urlsplit(server.url)
    with socket.create_connection((at.hostname, at.port), timeout=10) as s:
        s.sendall(upgrade("".join(f"Authorization: {a}\r\n" for a in authorization), path=path))
        data = b""
        while b"\r\n\r\n" not in data:
            data += s.recv(4096)
        head, body = data.split(b"\r\n\r\n", 1)
        if b" 401 " in head:
            assert b"content-type: text/plain; charset=utf-8" in head
            while piece := s.recv(4096):
                body += piece
        return int(head.split()[1]), body.decode() if b" 101 " not in head else ""


WRONG = (401, "invalid websocket bearer token")
HEADER = (401, "invalid authorization header")


@pytest.mark.parametrize("how", ["file", "digest"])
def test_capability_token(spawn, secret, how):
    # A flag's file may be readable: it is the peer's flag, but the log says so.
    flags = (["--ws-token-file", secret(b" \ttok123\r\n")] if how == "file" else
             ["--ws-token-sha256", hashlib.sha256(b"tok123").hexdigest().upper()])
    s = spawn("--ws-auth", "capability-token", *flags)
    for good in ("Bearer tok123", "bearer tok123", "BEARER    tok123  "):
        assert status(s, good) == (101, ""), good
    for bad in ("Bearer tok1234", "Bearer tok12", "Bearer TOK123", "Bearer tok123 x"):
        assert status(s, bad) == WRONG, bad
    for bad in ("Basic dG9rMTIz", "tok123", "Bearer", "Bearer ", "Bearer\ttok123", ""):
        assert status(s, bad) == HEADER, bad
    assert status(s) == (401, "missing websocket bearer token")
    assert status(s, path="/?token=tok123")[0] == 401
    assert status(s, "Bearer tok123", "Bearer no")[0] == 400, "two of them"
    assert status(s, "Bearer tok123", "Bearer tok123")[0] == 400
    for length in (8191, 8192, 9000, 16000):
        assert status(s, "Bearer " + "x" * length) == WRONG, length
    assert status(s, "Bearer " + "x" * 17000)[0] == 431
    if how == "file":
        s.wait_log("others can read (mode 0644): chmod 600")
    c = WebSocket(s.url, headers="Authorization: Bearer tok123\r\n").ready()
    assert c.run("a", ["/bin/echo", "in"]).stdout == "in\n"
    s.wait_log("refused: invalid websocket bearer token")
    assert "tok123" not in s.log, "credentials are never logged"
    c.drop()


def test_signed_token(spawn, secret):
    s = spawn("--ws-auth", "signed-bearer-token", "--ws-shared-secret-file", secret(KEY + b"\n"),
              "--ws-issuer", "me", "--ws-audience", "you")
    soon = int(time.time()) + 60
    assert status(s, "Bearer " + jwt(exp=soon, iss="me", aud=["x", "you"])) == (101, "")
    for body, token in [
        ("invalid websocket jwt", jwt(b"x" * 32, exp=soon, iss="me", aud="you")),
        ("invalid websocket jwt", jwt(header={"alg": "none"}, exp=soon, iss="me", aud="you")),
        ("invalid websocket jwt", "not.a.jwt"),
        ("expired websocket jwt", jwt(exp=soon - 100, iss="me", aud="you")),
        ("websocket jwt is not valid yet", jwt(exp=soon, nbf=soon, iss="me", aud="you")),
        ("websocket jwt issuer mismatch", jwt(exp=soon, aud="you")),
        ("websocket jwt audience mismatch", jwt(exp=soon, iss="me", aud="others")),
    ]:
        assert status(s, "Bearer " + token) == (401, body)


def test_skew(spawn, secret):
    s = spawn("--ws-auth", "signed-bearer-token", "--ws-shared-secret-file", secret(KEY),
              "--ws-max-clock-skew-seconds", "0")
    now = int(time.time())
    assert status(s, "Bearer " + jwt(exp=now - 2)) == (401, "expired websocket jwt")
    assert status(s, "Bearer " + jwt(exp=now + 60))[0] == 101


def test_a_session_is_not_resumed_without_a_token(spawn, secret):
    s = spawn("--ws-auth", "capability-token", "--ws-token-file", secret(b"tok"))
    c = WebSocket(s.url, headers="Authorization: Bearer tok\r\n").ready()
    c.drop()
    assert status(s, "Bearer other") == WRONG


SHA = "a" * 64


@pytest.mark.parametrize("flags, words", [
    (["--ws-auth", "capability-token"], "`--ws-token-file` or `--ws-token-sha256` is required"),
    (["--ws-auth", "signed-bearer-token"], "`--ws-shared-secret-file` is required"),
    (["--ws-auth", "bogus"], "`bogus` is neither"),
    (["--ws-token-sha256", SHA], "websocket auth flags require"),
    (["--ws-issuer", "x"], "websocket auth flags require"),
    (["--ws-auth", "capability-token", "--ws-token-sha256", "abcd"], "must be a 64-character hex SHA-256 digest"),
    (["--ws-auth", "capability-token", "--ws-token-sha256", SHA + "a"], "must be a 64-character hex SHA-256 digest"),
    (["--ws-auth", "capability-token", "--ws-token-sha256", SHA, "--ws-token-file", "/x"], "mutually exclusive"),
    (["--ws-auth", "signed-bearer-token", "--ws-token-sha256", SHA], "not `signed-bearer-token`"),
    (["--ws-auth", "capability-token", "--ws-token-sha256", SHA, "--ws-issuer", "x"], "not `capability-token`"),
    (["--ws-auth", "signed-bearer-token", "--ws-shared-secret-file", "/x", "--ws-max-clock-skew-seconds", "-1"],
     "is not a number of seconds"),
    (["--ws-auth", "capability-token", "--ws-token-file", "/none/such"],
     "failed to read websocket auth secret /none/such: No such file or directory"),
    (["--ws-auth", "capability-token", "--ws-token-file", "EMPTY"], "must not be empty"),
    (["--ws-auth", "capability-token", "--ws-token-file", "OPEN"], "can be written by everybody"),
    (["--ws-auth", "capability-token", "--ws-token-file", "LONG"], "is longer than 65536 bytes"),
    (["--ws-auth", "signed-bearer-token", "--ws-shared-secret-file", "SHORT"], "must be at least 32 bytes"),
    (["--ws-auth", "capability-token", "--ws-token-sha256", SHA, "--listen", "stdio"],
     "WebSocket auth requires a WebSocket listener, not stdio"),
])
def test_flags_that_do_not_fit(mode, user, secret, flags, words):
    files = {"EMPTY": (b" \n", 0o644), "OPEN": (b"x", 0o666), "LONG": (b"x" * 65537, 0o644), "SHORT": (b"x" * 31, 0o644)}
    flags = [secret(files[f][0], f, files[f][1]) if f in files else f for f in flags]
    if "--listen" not in flags:
        flags += ["--listen", "ws://127.0.0.1:0"]
    r = subprocess.run(command(mode, user, flags), capture_output=True, text=True, timeout=20)
    assert r.returncode in (2, 3) and words in r.stderr and r.stdout == "", (r.returncode, r.stderr)


def test_a_long_token(spawn, secret):
    """As long as a request may hold: it is the right one like any other."""
    token = b"t" * 16000
    s = spawn("--ws-auth", "capability-token", "--ws-token-file", secret(token))
    assert status(s, "Bearer " + token.decode()) == (101, "")
    assert status(s, "Bearer " + token.decode()[1:]) == WRONG


def test_another_address_needs_no_further_word(mode, user, secret):
    """With a credential asked for, --allow-unauthenticated is not needed."""
    argv = [a for a in command(mode, user, ["--listen", "ws://0.0.0.0:0", "--ws-auth", "capability-token",
                                            "--ws-token-sha256", SHA]) if a != "--allow-unauthenticated"]
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout.readline().startswith(b"ws://0.0.0.0:")
    child.terminate()
    assert b"plain text there: use wss://" in child.communicate(timeout=10)[1]
    assert child.returncode == 0
