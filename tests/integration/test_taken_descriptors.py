# SPDX-License-Identifier: ISC
"""Processes of a session's user want the descriptors of its runner: its control channel, and its log, which is root's.
Between execve(2) and the moment in which a program has hidden itself, the kernel would give them."""
import contextlib
import ctypes
import fcntl
import json
import os
import pathlib
import re
import select
import signal
import socket
import subprocess
import sys
import threading

import pytest
from conftest import EXECD, ROOT, WRAP, as_user, children_named, is_alive, kill, poll
from execd_client import WebSocket
from test_hangs import lingering

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "torture"))
from torture import Tree  # noqa: E402

ROUNDS = 30

CONF = """
[listener l]
address = ws://127.0.0.1:0
allow-unauthenticated = someone
[identity someone]
user = {user}
sandbox-allow-unsandboxed = yes
"""

# A user may stop what runs as him. So the attacker sees a runner in slices, from its first moment on.
ATTACKER = """
import ctypes, json, os, signal, sys
execd = int(sys.argv[1])
call = ctypes.CDLL(None, use_errno=True).syscall
seen, runners, taken = set(), 0, []
def descriptors(pid):
    pidfd = call(434, pid, 0)
    try:
        return [fd for fd in (2, 3) if pidfd >= 0 and call(438, pidfd, fd, 0) >= 0]
    finally:
        os.close(pidfd) if pidfd >= 0 else None
def ran(pid):
    with open(f"/proc/{pid}/schedstat") as f:
        return f.read().split()[0]
def attack(pid):
    waits = 0
    for _ in range(int(sys.argv[2])):
        try:
            before = ran(pid)
            os.kill(pid, signal.SIGCONT)
            for _ in range(100):
                if ran(pid) != before:
                    break
            else:
                waits += 1
                if waits > 20:
                    break
            os.kill(pid, signal.SIGSTOP)
        except (ProcessLookupError, FileNotFoundError):
            return False
        except PermissionError:
            continue  # still root
        got = descriptors(pid)
        if got:
            taken.append([pid, got])
            break
    try:
        os.kill(pid, signal.SIGCONT)
    except OSError:
        pass
    return True
os.write(1, b"ready\\n")
os.set_blocking(0, False)
while True:
    try:
        if os.read(0, 1) == b"":
            break
    except BlockingIOError:
        pass
    for pid in map(int, open(f"/proc/{execd}/task/{execd}/children").read().split()):
        if pid not in seen:
            seen.add(pid)
            runners += attack(pid)
            os.write(1, b"%d\\n" % runners)
print(json.dumps([runners, taken]))
"""


@pytest.fixture
def server_of_its_own(spawn):
    return spawn()


@contextlib.contextmanager
def attacking(execd, user, slices):
    argv = as_user(user, [sys.executable, "-c", ATTACKER, str(execd), str(slices)])
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.seen = lambda: int(child.stdout.readline())
    child.taken = lambda: json.loads(child.communicate(timeout=60)[0].splitlines()[-1])[1]
    assert child.stdout.readline() == b"ready\n"
    yield child
    child.kill()
    child.wait()


@pytest.fixture
def attacker(server_of_its_own, user):
    with attacking(server_of_its_own.pid, user, 400) as child:
        yield child


def test_nothing_of_a_runner_is_taken(server_of_its_own, attacker, mode):
    if mode != "root":
        pytest.skip("an ordinary user's execd has nothing that its user may not have")
    for _ in range(ROUNDS):
        c = WebSocket(server_of_its_own.url)
        c.ready()
        c.drop()
        attacker.seen()     # of one that came meanwhile
    assert attacker.taken() == []


def test_nothing_of_a_front_end_is_taken(user, mode):
    """Of an ordinary user's execd, whose programs he may not read: it makes a user namespace while it starts."""
    if not ROOT or mode != "user":
        pytest.skip("who owns the programs may look into them")
    with Tree() as tree:
        for program in tree.path.rglob("execd*"):
            program.chmod(0o711)
        s = tree.serve("user", user)
        with attacking(s.pid, user, 4000) as attacker:
            for _ in range(4):
                kill(s.frontend())
                attacker.seen()
                poll(lambda: is_alive(s.frontend()), what="another front-end")
            s.ready().drop()
            assert attacker.taken() == []
        s.stop()


def test_a_program_that_others_may_read_is_a_warning(server, mode):
    """Of the build tree, they may. One line names all of them."""
    if mode != "root":
        pytest.skip("what an ordinary user starts is his")
    said = "others may read programs whose mode should be 0711: "
    server.wait_log(said)
    line, = [line for line in server.log.splitlines() if said in line]
    assert {os.path.basename(path) for path in line.partition(said)[2].split(", ")} >= {
        "execd-frontend", "execd-runner", "execd-files", "execd-http", "execd-keys", "execd-broker", "execd-netproxy", "execd-child"}


# --- what descriptor 2 of a child is worth to whoever has it all the same (fs.suid_dumpable = 1, a build tree) ---

GETFD = ctypes.CDLL(None, use_errno=True).syscall
FORGED = "session forged: opened for root"


def take(pid, fd):
    """The test takes it by its own right: whoever could take it gets no more than this."""
    pidfd = os.pidfd_open(pid)
    try:
        taken = GETFD(438, pidfd, fd, 0)
        assert taken >= 0, os.strerror(ctypes.get_errno())
        return taken
    finally:
        os.close(pidfd)


class Logged:
    """An execd whose log is this file, or this end of a pipe."""

    def __init__(self, mode, user, directory, kind):
        conf = directory / "execd.conf"
        conf.write_text(CONF.format(user=user.pw_name))
        self.path = directory / "log"
        self.path.touch()
        self.ours, theirs = (-1, os.open(self.path, os.O_WRONLY)) if kind == "file" else os.pipe()
        argv = [*WRAP, str(EXECD), "-c", str(conf)]
        self.child = subprocess.Popen(argv if mode == "root" else as_user(user, argv), stdout=subprocess.PIPE, stderr=theirs)
        os.close(theirs)
        self.url = self.child.stdout.readline().decode().strip()
        self.said = []
        if kind == "pipe":
            self.reader = threading.Thread(target=self.read, daemon=True)
            self.reader.start()

    def read(self):
        while piece := os.read(self.ours, 1 << 16):
            self.said.append(piece.decode(errors="replace"))

    def log(self):
        return self.path.read_text(errors="replace") + "".join(self.said)

    def wait(self, text, seen=0):
        poll(lambda: text in self.log()[seen:], what=text)


@pytest.fixture(params=["file", "pipe"])
def logged(mode, user, directory, request):
    if not ROOT:
        pytest.skip("who may take no descriptor has none")
    s = Logged(mode, user, directory, request.param)
    yield s
    s.child.kill()
    s.child.wait()


def abuse(fd):
    """Everything that a descriptor of somebody else's log can be good for."""
    with contextlib.suppress(OSError):
        os.ftruncate(fd, 0)
    with contextlib.suppress(OSError):
        os.lseek(fd, 0, os.SEEK_SET)
    for line in (f"execd[1]: {FORGED}\n", f"<3>execd-broker[7]: {FORGED}\n", f"x\nexecd-broker[7]: {FORGED}\r\n\x1b[2J\n"):
        os.write(fd, line.encode())
    # Root's writes would wait from now on.
    fcntl.fcntl(fd, fcntl.F_SETFL, 0)
    fcntl.fcntl(fd, fcntl.F_SETFL, os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        for _ in range(500):
            os.write(fd, b"flood\n")
    fcntl.fcntl(fd, fcntl.F_SETFL, 0)


def children(s, c):
    """Of each kind one whose log is not its own affair: the runner, a helper of its, the front-end."""
    runner = children_named(s.child.pid, "execd-runner")[0]
    url = f"http://127.0.0.1:{c.sock.getpeername()[1]}/"
    c.request("http/request", {"method": "GET", "url": url})
    helper = poll(lambda: children_named(runner, "execd-http"), what="execd-http")[0]
    return runner, helper, children_named(s.child.pid, "execd-frontend")[0]


def test_descriptor_2_of_a_child_is_worth_nothing(logged):
    c = WebSocket(logged.url)
    c.ready()
    logged.wait("opened for")
    before = logged.log()
    taken = [take(pid, 2) for pid in children(logged, c)]
    for fd in taken:
        abuse(fd)
    for fd in taken:
        with contextlib.suppress(OSError), socket.socket(fileno=fd) as s:
            s.shutdown(socket.SHUT_RDWR)
    # Nothing is gone, nobody waits, and every further word has its author.
    seen = len(before)
    logged.child.send_signal(signal.SIGHUP)
    logged.wait("reload: nothing changed", seen)
    other = WebSocket(logged.url)
    assert other.ready().run("x", ["/bin/echo", "works"]).stdout == "works\n"
    logged.wait("opened for", seen)
    log = logged.log()
    assert log.startswith(before) and "\x1b" not in log and "\0" not in log
    forged = [line for line in log.splitlines() if FORGED in line]
    assert len(forged) >= 3
    assert all(re.match(r"execd-(runner|frontend)\[(session )?\w+\]: (execd|x)", line) for line in forged), forged
    other.drop()
    c.drop()
    logged.child.terminate()
    assert logged.child.wait(15) == 0


# A pipe may be so full that this word is one of those that are counted.
CUT = "too many lines: later ones wait, or are lost|[0-9]+ lines were lost"


def write_on(fd, stop):
    """A flood of whole lines, as fast as they are taken."""
    while stop not in select.select([stop], [fd], [])[0]:
        with contextlib.suppress(BlockingIOError):
            os.write(fd, b"flood\n" * 600)


def test_a_flood_of_a_session_is_cut(logged):
    """Its log rests after 64 KiB; its session and the others go on, and root hears the others."""
    c = WebSocket(logged.url)
    c.ready()
    logged.wait("opened for")
    taken = take(children_named(logged.child.pid, "execd-runner")[0], 2)
    os.set_blocking(taken, False)
    stop, stops = os.pipe()
    writer = threading.Thread(target=write_on, args=(taken, stop))
    writer.start()
    try:
        poll(lambda: re.search(CUT, logged.log()), what="a word about it")
        for _ in range(5):
            seen, other = len(logged.log()), WebSocket(logged.url)
            assert other.ready().run("x", ["/bin/echo", "works"]).stdout == "works\n"
            logged.wait(f"session {other.session_id[:8]}: opened", seen)
            other.drop()
        assert c.run("x", ["/bin/echo", "on"]).stdout == "on\n"
    finally:
        os.close(stops)
        writer.join()
        os.close(stop)
    assert len(logged.log()) < (len(re.findall(CUT, logged.log())) + 1) * (128 << 10)
    # Whoever ends it ends nothing else.
    with socket.socket(fileno=taken) as s:
        s.shutdown(socket.SHUT_RDWR)
    assert c.run("y", ["/bin/echo", "on"]).stdout == "on\n" and c.closed is None


def test_a_descriptor_in_a_log_stops_nobody(logged):
    """Neither that it is sent nor that its log is closed: it would block for a minute whoever closes it."""
    c = WebSocket(logged.url)
    c.ready()
    runner = children_named(logged.child.pid, "execd-runner")[0]
    with socket.socket(fileno=take(runner, 2)) as log:
        given, sink = lingering()
        socket.send_fds(log, [b"x\n"], [given.fileno()])
        given.close()
    logged.wait("no more is read: it sent a descriptor")
    other = WebSocket(logged.url)
    assert other.ready().run("x", ["/bin/echo", "works"]).stdout == "works\n"
    other.drop()
    c.drop()
    logged.child.terminate()
    assert logged.child.wait(15) == 0
    sink.close()


def test_the_next_version_reads_on(logged):
    c = WebSocket(logged.url)
    c.ready()
    runner = children_named(logged.child.pid, "execd-runner")[0]
    fd = take(runner, 2)
    for i in range(3):
        seen = len(logged.log())
        os.write(fd, f"<3>word {i}\n".encode())
        logged.child.send_signal(signal.SIGUSR2)
        logged.wait("re-exec: this version goes on", seen)
        logged.wait(f"]: word {i}\n", seen)
        assert re.search(rf"(?m)^execd-runner\[session \w{{7}}\]: word {i}$", logged.log())
    os.close(fd)
    c.drop()
