# SPDX-License-Identifier: ISC
"""execctl behind a proxy that has several hosts: it finds the session's host again,
and gives up quickly where that host is gone, or is silent."""
import os
import re
import select
import socket
import threading
import time

import pytest
from conftest import poll
from execctl import Execctl, Proxy

GONE = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n"
LATER = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n"
COOKIE = "execd=a.1; path=/; HttpOnly"


def head_of(s):
    head = b""
    while b"\r\n\r\n" not in head:
        piece = s.recv(1)
        if not piece:
            raise OSError("ended")
        head += piece
    return head


class Sticky(Proxy):
    """Writes down the head of each request, and adds a cookie to the answer. The test may have it answer itself."""

    def __init__(self, url, cookie=COOKIE):
        self.heads, self.cookie, self.says = [], cookie, None
        super().__init__(url)

    def _forward(self, client, server):
        head = head_of(client)
        with self.changed:
            self.heads.append(head.decode())
            self.changed.notify_all()
        if self.says is not None:
            client.sendall(self.says)
            return
        server.sendall(head)
        answer = head_of(server)
        if self.cookie:
            answer = answer[:-2] + f"Set-Cookie: {self.cookie}\r\n\r\n".encode()
        client.sendall(answer)
        super()._forward(client, server)

    def cookies(self):
        return [(re.findall(r"(?m)^Cookie: (.*)\r$", h) or [None])[0] for h in self.heads]


@pytest.fixture
def sticky(server):
    started = []

    def start(**more):
        p = Sticky(server.url, **more)
        started.append(p)
        return p

    yield start
    for p in started:
        p.close()


def begin(ctl, directory, *options):
    p = ctl.popen(*options, "run", "sh", "-c",
                  f"echo one; until [ -e {directory}/go ]; do sleep 0.1; done; echo two; exit 3")
    assert p.stdout.readline() == b"one\n", p.stderr.read()
    return p


def end(p, directory):
    (directory / "go").touch()
    assert (p.stdout.read(), p.wait(30)) == (b"two\n", 3), p.stderr.read()


def test_the_cookie_goes_with_each_resume(sticky, directory):
    proxy = sticky()
    p = begin(Execctl(directory, proxy.url), directory)
    for n in 2, 3:
        proxy.cut()
        proxy.wait(lambda: len(proxy.heads) == n, what="another connection")  # noqa: B023
        poll(lambda: proxy.pairs, what="a connection")
    end(p, directory)
    assert proxy.cookies() == [None, "execd=a.1", "execd=a.1"]


@pytest.mark.parametrize("cookie", [None, "execd=" + "x" * 250, "execd", "execd=a\x01"])
def test_what_is_no_cookie_is_not_kept(sticky, directory, cookie):
    proxy = sticky(cookie=cookie)
    p = begin(Execctl(directory, proxy.url), directory)
    proxy.cut()
    proxy.wait(lambda: len(proxy.heads) == 2, what="another connection")
    end(p, directory)
    assert proxy.cookies() == [None, None]


def test_a_cookie_of_a_host_without_the_session_is_not_kept(sticky, directory):
    """The proxy sends the client elsewhere, and that connection is cut before it is known."""
    proxy = sticky()
    p = begin(Execctl(directory, proxy.url), directory)
    proxy.cookie = "execd=b"
    proxy.swallowing = True     # the upgrade is answered, and initialize is not
    proxy.cut()
    down = proxy.down
    proxy.wait(lambda: len(proxy.heads) == 2 and proxy.down > down, what="another connection")
    proxy.cookie = "execd=c"
    proxy.swallowing = False
    proxy.cut()
    proxy.wait(lambda: len(proxy.heads) == 3, what="another connection")
    end(p, directory)
    assert proxy.cookies() == [None, "execd=a.1", "execd=a.1"]


def test_attach_finds_the_host_again(sticky, directory):
    """Another execctl, with the record of the first one."""
    proxy = sticky()
    ctl = Execctl(directory, proxy.url)
    script = f"echo one; until [ -e {directory}/go ]; do sleep 0.1; done; echo two; exit 3"
    session = ctl.ok("run", "-d", "sh", "-c", script).decode().split()[0]
    before = len(proxy.heads)
    (directory / "go").touch()
    r = Execctl(directory, None)("attach", session)
    assert (r.code, r.out) == (3, b"one\ntwo\n"), r
    assert proxy.cookies()[before:] == ["execd=a.1"]
    # Another URL gets nothing of it.
    other = sticky(cookie=None)
    Execctl(directory, None)("-u", other.url, "attach", session, "-p", "x")
    assert other.cookies() == [None]


def lose(proxy, p, says):
    proxy.says = says
    began = time.monotonic()
    proxy.cut()
    code = p.wait(60)
    return code, time.monotonic() - began, p.stderr.read().decode()


def test_a_host_that_is_gone(sticky, directory):
    proxy = sticky()
    p = begin(Execctl(directory, proxy.url), directory)
    code, took, err = lose(proxy, p, GONE)
    assert code == 254 and "is gone, says the proxy in front of it" in err and "HTTP status 503" in err
    assert 1.4 < took < 3


def test_a_host_that_is_gone_is_known_by_the_query(sticky, directory):
    proxy = sticky(cookie=None)
    p = begin(Execctl(directory, proxy.url + "/?k=1"), directory)
    code, took, err = lose(proxy, p, GONE)
    assert code == 254 and took < 3, err
    assert proxy.heads[-1].startswith("GET /?k=1 HTTP/1.1\r\n")


@pytest.mark.parametrize("says, cookie", [(LATER, COOKIE), (GONE, None), (b"HTTP/1.1 502 x\r\n\r\n", COOKIE), (b"", COOKIE)])
def test_what_does_not_say_that_the_host_is_gone(sticky, directory, says, cookie):
    """It may come back, so it is tried for longer than a host that is gone."""
    proxy = sticky(cookie=cookie)
    p = begin(Execctl(directory, proxy.url), directory)
    proxy.says = says
    seen = len(proxy.heads)
    proxy.cut()
    began = time.monotonic()
    proxy.wait(lambda: len(proxy.heads) > seen + 3 and time.monotonic() > began + 2.2, what="more attempts")
    proxy.says = None
    end(p, directory)


def test_a_proxy_that_says_it_for_a_moment(sticky, directory):
    """As while execd is restarted there; each loss counts anew."""
    proxy = sticky()
    p = begin(Execctl(directory, proxy.url), directory)
    for _ in range(2):
        seen = len(proxy.heads)
        proxy.says = GONE
        proxy.cut()
        proxy.wait(lambda: len(proxy.heads) >= seen + 3, what="three attempts")  # noqa: B023
        down, proxy.says = proxy.down, None
        proxy.wait(lambda: proxy.down > down, what="an answer to initialize")  # noqa: B023
    end(p, directory)


def test_a_proxy_that_is_restarted(sticky, directory):
    """Nobody listens: that is no word about the host."""
    proxy = sticky()
    p = begin(Execctl(directory, proxy.url), directory)
    address = proxy.listener.getsockname()
    proxy.over = True
    proxy.listener.shutdown(socket.SHUT_RDWR)
    proxy.listener.close()
    proxy.cut()
    line = p.stderr.readline().decode()
    assert "the connection is lost" in line
    time.sleep(2.5)     # longer than a host that is gone would have
    assert p.poll() is None
    again = sticky()
    again.close()
    again.over = False
    again.listener = socket.create_server(address)
    threading.Thread(target=again._accept, daemon=True).start()
    end(p, directory)
    assert again.cookies()[-1] == "execd=a.1"


def test_silence_is_a_loss(sticky, directory):
    """Nothing comes any more, and nothing says so."""
    proxy = sticky()
    p = begin(Execctl(directory, proxy.url), directory, "--silence-timeout", "1s")
    began = time.monotonic()
    proxy.swallowing = True
    proxy.wait(lambda: len(proxy.heads) == 2, what="another connection")
    assert .9 < time.monotonic() - began < 3
    proxy.swallowing = False
    proxy.cut()
    end(p, directory)


@pytest.mark.nightly
def test_silence_of_fifteen_seconds_unless_told(sticky, directory):
    proxy = sticky()
    p = begin(Execctl(directory, proxy.url), directory)
    began = time.monotonic()
    proxy.swallowing = True
    proxy.wait(lambda: len(proxy.heads) == 2, 25, what="another connection")
    assert 14 < time.monotonic() - began < 18
    proxy.swallowing = False
    proxy.cut()
    end(p, directory)


def test_silence_of_the_environment(sticky, directory):
    proxy = sticky()
    path = directory / "environments.conf"
    path.write_text(f"[there]\nurl = {proxy.url}\nsilence-timeout = 1s\n")
    path.chmod(0o600)
    p = begin(Execctl(directory, None), directory, "-e", "there")
    proxy.swallowing = True
    proxy.wait(lambda: len(proxy.heads) == 2, 10, what="another connection")
    proxy.swallowing = False
    proxy.cut()
    end(p, directory)


class Batches(Proxy):
    """Passes on together what the server says within a moment."""

    def _forward(self, client, server):
        while True:
            ready = select.select([client, server], [], [])[0]
            if server in ready:
                time.sleep(.3)
                said = server.recv(65536)
                client.sendall(said)
                self._count(len(said), False)
            if client in ready:
                data = client.recv(65536)
                if not data:
                    return
                server.sendall(data)


def test_a_session_that_it_ended_is_not_resumed(server, directory):
    """The end of the connection comes with the answer to session/end."""
    proxy = Batches(server.url)
    r = Execctl(directory, proxy.url)("-v", "run", "true")
    assert r.code == 0 and "lost:" not in r.err and proxy.accepted == 1, (r, proxy.accepted)
    proxy.close()


class Slow(Proxy):
    """Takes what the client sends at a trickle, and says nothing meanwhile."""
    trickle = False

    def __init__(self, url, path=None):
        super().__init__(url, path=path)
        # Connections have it from the listener. It is little, so that what waits is at the client.
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 128 << 10)

    def _count(self, n, up):
        if self.trickle and up:
            time.sleep(n / (1 << 20))
        super()._count(n, up)


def test_a_slow_upload_is_no_silence(server, directory):
    """Six seconds of bytes that the server's side takes, and its answer is behind them."""
    proxy = Slow(server.url)
    proxy.trickle = True
    ctl = Execctl(directory, proxy.url)
    (directory / "big").write_bytes(os.urandom(6 << 20))
    began = time.monotonic()
    r = ctl("--silence-timeout", "3s", "cp", directory / "big", f":{directory}/copy")
    assert r.code == 0 and time.monotonic() - began > 4, (r, proxy.accepted, server.log[-1500:])
    assert (directory / "copy").read_bytes() == (directory / "big").read_bytes()
    assert proxy.accepted == 1, "no connection was given up"
    proxy.close()


class Late(Slow):
    """Passes an upload on at a trickle, and gives no answer before its last byte was taken some time ago."""
    trickle = True
    after = 2.8
    size = 6 << 20      # so much is taken then

    def _forward(self, client, server):
        held, taken = b"", time.monotonic()
        while True:
            for s in select.select([client, server], [], [], .05)[0]:
                data = s.recv(65536)
                if not data:
                    return
                if s is client:
                    server.sendall(data)
                    taken = taken if self.up > self.size else time.monotonic()
                else:
                    held += data
                self._count(len(data), s is client)
            if held and (self.up < 1 << 20 or (self.up > self.size and time.monotonic() > taken + self.after)):
                client.sendall(held)
                held = b""


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_silence_begins_with_the_last_byte_that_was_taken(server, directory, kind):
    """Eight seconds of bytes without an answer, and then a silence that is shorter than the timeout."""
    proxy = Late(server.url, path=directory / "socket" if kind == "unix" else None)
    ctl = Execctl(directory, proxy.url)
    (directory / "big").write_bytes(os.urandom(5 << 20))
    began = time.monotonic()
    r = ctl("--silence-timeout", "4s", "cp", directory / "big", f":{directory}/copy")
    assert r.code == 0 and time.monotonic() - began > 8, (r, proxy.accepted, server.log[-1500:])
    assert (directory / "copy").read_bytes() == (directory / "big").read_bytes()
    assert proxy.accepted == 1, "no connection was given up"
    proxy.close()
