# SPDX-License-Identifier: ISC
"""The ends of what there is: a peer that is slow on purpose in every phase, or
gone without a word; no processes; a clock that jumps."""
import os
import pathlib
import pwd
import socket
import subprocess
import time
from urllib.parse import urlsplit

import conftest
import pytest
from conftest import BUILD, MIB, ROOT, SANITIZED, Configured, Server, change_users, command, digest, end, need_mode, poll
from execd_client import frame, upgrade
from test_limits import rss_kib
from test_tls import Authority, listener

DEADLINE_S = 1
TOKEN = "e" * 40


def drip(sock, data, pause=0.05):
    """Byte by byte, until the server has enough of it. Returns the seconds."""
    began = time.monotonic()
    try:
        for i in range(len(data)):
            sock.sendall(data[i:i + 1])
            sock.settimeout(pause)
            try:
                if not sock.recv(4096):
                    break
            except socket.timeout:
                pass
    except OSError:
        pass
    return time.monotonic() - began


def tcp(url):
    at = urlsplit(url)
    return socket.create_connection((at.hostname, at.port), timeout=20)


def is_ended(sock):
    sock.settimeout(20)
    try:
        while sock.recv(65536):
            pass
    except ConnectionResetError:
        pass
    return True


HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
INITIALIZE = frame(1, b'{"id":1,"method":"initialize","params":{"clientName":"' + b"x" * 2000 + b'"}}')
# What comes at once, and what comes byte by byte: nothing, where it is empty.
PHASES = {"connected": (b"", b""), "head": (b"", upgrade("X: " + "y" * 4000 + "\r\n")), "upgraded": (upgrade(), b""),
          "in a message": (upgrade() + INITIALIZE[:100], INITIALIZE[100:])}


@pytest.mark.parametrize("phase", PHASES)
def test_slow_on_purpose_before_a_session(spawn, phase):
    """Every byte may be in time, the whole must be: the deadline does not move."""
    s = spawn("--pre-auth-deadline", f"{DEADLINE_S}s")
    other = s.ready()
    first, slowly = PHASES[phase]
    began = time.monotonic()
    with tcp(s.url) as sock:
        sock.sendall(first)
        drip(sock, slowly)
        assert is_ended(sock)
    assert DEADLINE_S * 0.9 < time.monotonic() - began < DEADLINE_S + 15
    assert other.run("p", ["/bin/echo", "fine"]).stdout == "fine\n"


@pytest.mark.parametrize("first", [b"", HELLO])
def test_slow_on_purpose_in_tls(configured, directory, user, mode, first):
    base = Authority(directory).issue("server", group=user.pw_gid)
    s = configured(f"{listener(base)}[limits]\npre-auth-deadline = {DEADLINE_S}s\n[identity one]\n"
                   f"user = {user.pw_name}\ntoken-sha256 = {digest(TOKEN)}\n")
    with tcp(s.url) as sock:
        sock.sendall(first)
        took = drip(sock, b"\0" * 400)
        assert is_ended(sock) and took < DEADLINE_S + 15


def test_slow_within_a_message_of_a_session(spawn):
    """A client that has a session may be as slow as it likes; it holds nobody up."""
    s = spawn("--pre-auth-deadline", f"{DEADLINE_S}s")
    c, other = s.ready(), s.ready()
    text = frame(1, b'{"id":77,"method":"environment/status"}')
    for i in range(len(text)):
        c.sock.sendall(text[i:i + 1])
        assert other.call("environment/status") == {"status": "ready"}
    assert c.answer(77)["result"] == {"status": "ready"}


def slow_readers(s, count):
    """So many clients ask for output and read none of it; others do not notice."""
    other = s.ready()
    before = rss_kib(s.frontend())
    start = frame(1, (b'{"id":2,"method":"process/start","params":{"processId":"p","argv":["/bin/cat","/dev/zero"],'
                      b'"cwd":"file:///","env":{},"tty":false}}'))
    socks = []
    for _ in range(count):
        sock = tcp(s.url)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.sendall(upgrade() + frame(1, b'{"id":1,"method":"initialize","params":{"clientName":"x"}}') +
                     frame(1, b'{"method":"initialized"}') + start)
        socks.append(sock)
    for i in range(10):
        assert other.run(f"p{i}", ["/bin/echo", "fine"], timeout=60).stdout == "fine\n"
    grown = rss_kib(s.frontend()) - before
    assert grown < count * 512 + 8 * MIB, f"{grown} KiB for {count} clients that do not read"
    for sock in socks:
        sock.close()
    return grown


def test_clients_that_do_not_read(spawn):
    slow_readers(spawn(), 60)


@pytest.fixture
def counted(user, monkeypatch):
    """Whose processes are those of this test: the kernel counts all of a user, but for each user namespace anew."""
    if not ROOT:
        own = ["unshare", "--user", "--map-current-user"]
        if subprocess.run([*own, "true"], capture_output=True).returncode != 0:
            pytest.skip("NO LIMIT OF PROCESSES IS TESTED: this host has no user namespaces for this user")
        monkeypatch.setattr(conftest, "WRAP", [*own, *conftest.WRAP])
        yield user
        return
    name = f"{user.pw_name}c"
    change_users("useradd", "-m", "-s", "/bin/bash", name)
    yield pwd.getpwnam(name)
    change_users("userdel", "-r", name)


@pytest.fixture
def forty(counted, mode, directory, monkeypatch):
    """A server whose user may have 40 processes, by his group or by RLIMIT_NPROC."""
    if mode == "user":
        monkeypatch.setattr(conftest, "WRAP", [*conftest.WRAP, "prlimit", "--nproc=40"])
    limit = "tasks-max = 40\n" if mode == "root" else ""
    s = Configured(mode, counted, directory / "execd.conf",
                   f"[listener a]\naddress = ws://127.0.0.1:0\n[identity one]\nuser = {counted.pw_name}\n"
                   f"token-sha256 = {digest(TOKEN)}\n{limit}sandbox-max-profile = full\n"
                   "sandbox-allow-unsandboxed = yes\n")
    yield s
    end(s)


def test_no_process_left(forty):
    """A start is refused in words, the session goes on."""
    c = forty.connect(token=TOKEN).ready()
    n = 0
    while "result" in (m := c.start(f"p{n}", ["/bin/sleep", "1000"])):
        n += 1
        assert n <= 40
    assert n > 20, "others count"
    assert "Resource temporarily unavailable" in m["error"]["message"], m
    for i in range(n):
        c.terminate(f"p{i}")
    poll(lambda: "result" in c.start("after", ["/bin/true"]), what="room")


# --- a peer that is gone without a word ------------------------------------


class Network:
    """A network namespace with one cable to us, which can be pulled."""

    made = 0

    def __init__(self):
        # The last one's cable, and its addresses, may not be gone yet.
        Network.made += 1
        self.cable = os.urandom(4).hex()
        self.name = f"execd{self.cable}"
        self.net = f"10.{200 + Network.made % 50}.{os.getpid() % 250}"
        self.ip("netns", "add", self.name)
        self.ip("link", "add", f"ex{self.cable}a", "type", "veth", "peer", f"ex{self.cable}b", "netns", self.name)
        self.ip("addr", "add", f"{self.net}.1/24", "dev", f"ex{self.cable}a")
        self.ip("link", "set", f"ex{self.cable}a", "up")
        self.ip("-n", self.name, "addr", "add", f"{self.net}.2/24", "dev", f"ex{self.cable}b")
        self.ip("-n", self.name, "link", "set", f"ex{self.cable}b", "up")

    def ip(self, *args):
        subprocess.run(["ip", *args], check=True, capture_output=True)

    def pull(self):
        self.ip("-n", self.name, "link", "set", f"ex{self.cable}b", "down")

    def remove(self):
        self.ip("netns", "del", self.name)


@pytest.fixture
def network():
    if not ROOT:
        pytest.skip("HALF-OPEN PEERS ARE NOT TESTED: a network namespace needs root")
    try:
        n = Network()
    except (OSError, subprocess.CalledProcessError) as e:
        pytest.skip(f"HALF-OPEN PEERS ARE NOT TESTED: no network namespace here: {e}")
    yield n
    n.remove()


CLIENT = """
import sys; sys.path.insert(0, {path!r})
from execd_client import WebSocket
c = WebSocket({url!r}).ready()
c.sh("p", "while sleep 0.1; do echo x; done")
print(c.session_id, flush=True)
sys.stdin.read()
"""


def test_a_cable_that_is_pulled(spawn, network, configured, user, mode, directory):
    """No packet tells of it. The pong that does not come does, and the session
    waits to be resumed."""
    s = configured(f"[listener a]\naddress = ws://{network.net}.1:0\nallow-unauthenticated = one\n"
                   f"[identity one]\nuser = {user.pw_name}\nsandbox-max-profile = full\n"
                   "sandbox-allow-unsandboxed = yes\n[limits]\nping-interval = 200ms\npong-deadline = 1s\n")
    p = subprocess.Popen(["ip", "netns", "exec", network.name, "/usr/bin/python3", "-c",
                          CLIENT.format(path=str(pathlib.Path(__file__).parent), url=s.url)],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        session = p.stdout.readline().strip()
        assert session, s.log
        network.pull()
        s.wait_log("no pong within 1000 ms", 20)
        s.wait_log("detached")
        c = s.connect()
        c.initialize(resumeSessionId=session)
        c.notify("initialized")
        c.wait_output("p", "x")
    finally:
        p.kill()
        p.wait()


# --- the time --------------------------------------------------------------


@pytest.mark.skipif(SANITIZED, reason="CLOCK JUMPS ARE NOT TESTED: the sanitizer comes first of all libraries")
def test_a_clock_that_jumps(mode, user, directory):
    """Ten years ahead and back: no deadline is due for it, none is put off."""
    need_mode(mode)
    ahead = directory / "ahead"
    argv = command(mode, user, ["--listen", "ws://127.0.0.1:0", "--detached-ttl", "2s"])
    preload = {"LD_PRELOAD": str(BUILD / "tests/torture/libclock.so"), "CLOCK_JUMP": str(ahead)}
    if mode == "user" and ROOT:
        argv[argv.index("env") + 1:argv.index("env") + 1] = [f"{k}={v}" for k, v in preload.items()]
    s = Jumping(mode, argv, {**os.environ, **({} if mode == "user" and ROOT else preload)})
    try:
        c, other = s.ready(), s.ready()
        c.drop()
        s.wait_log("detached")
        ahead.touch()
        again = s.connect()
        again.initialize(resumeSessionId=c.session_id)
        assert other.call("environment/status") == {"status": "ready"}
        other.drop()
        s.wait_log(f"session {other.session_id[:8]}: detached")
        began = time.monotonic()
        ahead.unlink()
        s.wait_log(f"session {other.session_id[:8]}: not resumed within 2000 ms", 30)
        assert time.monotonic() - began > 1
    finally:
        s.stop()


class Jumping(Server):
    def __init__(self, mode, argv, env):
        self._start(mode, argv, env)
