# SPDX-License-Identifier: ISC
"""The first connection of execctl, tried again where nothing has started: what may
pass is tried within --connect-timeout, and nothing else is tried twice."""
import base64
import hashlib
import json
import signal
import socket
import threading

import pytest
from conftest import digest
from execctl import Execctl, Proxy
from execd_client import frame

BUSY = b"HTTP/1.1 503 Busy\r\nretry-after: 1\r\n\r\n"
MANY = b"HTTP/1.1 429 Too Many\r\n\r\n"
ENDING = "the server is shutting down"
DRAINED = "the server takes no new sessions: it is drained by its operator"


class Moody(Proxy):
    """Answers the first connections itself: with bytes, or an error of initialize."""

    def __init__(self, url, *moods):
        self.moods = list(moods)
        super().__init__(url)

    def _serve(self, client):
        with self.changed:
            mood = self.moods.pop(0) if self.moods else None
        if mood is None:
            return super()._serve(client)
        with client:
            head = client.recv(4096)
            if isinstance(mood, bytes):
                client.sendall(mood)
                return None
            key = head.split(b"Sec-WebSocket-Key: ")[1].split(b"\r\n")[0]
            accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
            client.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                           b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n")
            client.recv(4096)
            error = {"id": 0, "error": {"code": -32603, "message": mood}}
            client.sendall(frame(1, json.dumps(error).encode(), mask=False))
            client.recv(4096)


@pytest.mark.parametrize("moods", [[BUSY], [MANY], [ENDING], [DRAINED], [BUSY, ENDING, BUSY]])
def test_what_may_pass_is_tried_again(server, directory, moods):
    proxy = Moody(server.url, *moods)
    r = Execctl(directory, proxy.url)("run", "echo", "in")
    assert r.code == 0 and r.out == b"in\n", r
    assert proxy.accepted == len(moods) + 1
    proxy.close()


@pytest.mark.parametrize("mood, code, text", [
    (b"HTTP/1.1 401 No\r\n\r\n", 255, "requires a token"), (b"HTTP/1.1 404 Not Found\r\n\r\n", 125, "not an exec-server"),
    (b"HTTP/1.1 502 Bad Gateway\r\n\r\n", 125, "not available"), (b"", 125, "closed instead of upgraded"),
    ("limit of 1 sessions of a reached", 125, "limit of 1 sessions"),
    ("the server takes no new sessions, or what it is", 125, "or what it is")])
def test_nothing_else_is(server, directory, mood, code, text):
    proxy = Moody(server.url, mood)
    r = Execctl(directory, proxy.url)("run", "echo", "in")
    assert r.code == code and text in r.err and proxy.accepted == 1, (r, proxy.accepted)
    proxy.close()


def test_within_the_timeout(server, directory):
    proxy = Moody(server.url, *[BUSY] * 100)
    r = Execctl(directory, proxy.url)("--connect-timeout", "1s", "run", "echo", "in")
    assert r.code == 125 and "not available (HTTP status 503" in r.err, r
    assert 2 <= proxy.accepted <= 10
    assert r.err.count("trying again") == 1, r
    assert "trying again" not in Execctl(directory, proxy.url)("-q", "--connect-timeout", "300ms", "run", "echo", "in").err
    proxy.close()


def test_a_server_that_is_being_started(mode, user, directory, spawn):
    """Nobody listens there yet."""
    with socket.create_server(("127.0.0.1", 0)) as s:
        url = f"ws://127.0.0.1:{s.getsockname()[1]}"
    done = []
    ctl = threading.Thread(target=lambda: done.append(Execctl(directory, url)("--connect-timeout", "30s", "run", "echo", "in")))
    ctl.start()
    ctl.join(.3)
    assert ctl.is_alive(), done
    spawn(listen=url)
    ctl.join(40)
    assert done[0].code == 0 and done[0].out == b"in\n", done


def test_a_start_is_never_tried_again(server, directory):
    """The connection is lost when the session is there: from then on it is resumed."""
    proxy = Moody(server.url, BUSY)
    r = Execctl(directory, proxy.url)("run", "sh", "-c", f"echo x >> {directory}/ran; chmod 666 {directory}/ran")
    assert r.code == 0 and (directory / "ran").read_text() == "x\n", r
    proxy.close()


def test_the_server_that_ends_says_what_the_client_knows(configured, user, directory):
    """Its words are compared, for the code of the error is that of many others."""
    s = configured(f"[listener main]\naddress = ws://127.0.0.1:0\n[limits]\ndrain-timeout = 1h\n[identity a]\nuser = {user.pw_name}\n"
                   f"token-sha256 = {digest('t')}\n")
    c = s.connect(token="t").ready()
    s.child.send_signal(signal.SIGTERM)
    s.wait_log("no new sessions")
    proxy = Proxy(s.url)
    r = Execctl(directory, proxy.url, EXECD_TOKEN="t")("--connect-timeout", "1s", "run", "echo", "in")
    assert r.code == 125 and ENDING in r.err and "trying again" in r.err and proxy.accepted >= 2, (r, proxy.accepted)
    proxy.close()
    c.drop()
    s.child.send_signal(signal.SIGTERM)
    assert s.child.wait(15) == 0
