# SPDX-License-Identifier: ISC
"""Root's execd executes its next version: the process, its children and all connections stay; one that cannot is not executed."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import pytest
from conftest import BUILD, ROOT, Configured, assert_nothing_left, child_rows, children_named, is_alive, kill, poll, runs
from test_broker import ALL, COUNT, replaced, resume, text, whole

PROGRAMS = ("daemon/root/execd", "daemon/broker/execd-broker", "daemon/frontend/execd-frontend", "runner/execd-runner",
            "runner/execd-files", "runner/http/execd-http", "runner/netproxy/execd-netproxy", "daemon/keys/execd-keys",
            "daemon/child/execd-child")
GOES_ON = "re-exec: this version goes on"


@pytest.fixture
def installed(directory):
    """The programs in a directory of the test's own, which may be replaced there."""
    place = directory / "installed"
    for p in PROGRAMS:
        (place / p).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(BUILD / p, place / p)
    return place


class Installed(Configured):
    def __init__(self, place, mode, user, path, content):
        self.place = place
        super().__init__(mode, user, path, content)
        self.wait_log(": serving")
        self.fronts = 1

    @property
    def execd(self):
        return self.place / "daemon/root/execd"

    def install(self, program, content=None, mode=0o755):
        """As a package does: a new file takes the name of the old one."""
        new = self.place / f"{program}.new"
        new.write_bytes(content if content is not None else (BUILD / program).read_bytes())
        new.chmod(mode)
        new.rename(self.place / program)

    def reexec(self, wait=GOES_ON):
        n = self.log.count(wait)
        self.child.send_signal(signal.SIGUSR2)
        poll(lambda: self.log.count(wait) > n, 15, wait)


@pytest.fixture
def server(installed, mode, user, directory, monkeypatch):
    monkeypatch.setattr("conftest.EXECD", installed / "daemon/root/execd")
    started = []

    def go(more="", **kwargs):
        s = Installed(installed, mode, user, directory / "execd.conf", text(user, directory, more, **kwargs))
        started.append(s)
        return s

    yield go
    for s in started:
        if s.child.poll() is None:
            s.stop()
    assert_nothing_left(user)


def opened(pid):
    """Descriptors of a process, and which of them a program that it executes would have."""
    found = {}
    for f in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir():
        flags = int(re.search(r"flags:\t(\d+)", f.read_text())[1], 8)
        found[int(f.name)] = bool(flags & os.O_CLOEXEC)
    return found


def test_nobody_notices(server):
    """The connections stay, the commands go on, and there is another program behind the same pid."""
    s = server()
    clients = [s.connect(token="t").ready() for _ in range(4)]
    for c in clients:
        c.sh("p", COUNT)
    broker, front, runners = s.broker, s.frontend(), [s.runner(c) for c in clients]
    s.install("daemon/root/execd")
    assert not ROOT or not runs(s.pid, s.execd)
    for _ in range(5):
        s.reexec()
    assert runs(s.pid, s.execd)
    for c in clients:
        assert whole(c) == (ALL, 0)
    assert s.broker == broker and s.frontend() == front and all(is_alive(r) for r in runners)
    assert pathlib.Path(f"/proc/{s.pid}/comm").read_text() == "execd\n"
    assert s.connect(token="t").ready().run("x", ["/bin/echo", "new"]).stdout == "new\n"
    kill(broker)
    for c in clients:
        c.wait_closed()
    replaced(s, broker)
    for c in clients:
        assert whole(resume(s, c)) == (ALL, 0)
    runner = int(re.findall(r"adopted, of a, runner (\d+)", s.log)[-1])
    s.stop()
    assert not is_alive(runner)


@pytest.mark.skipif(not ROOT, reason="WHAT IS LEFT OPEN IS NOT SEEN: only root may look into processes that hide")
def test_nothing_is_left_open(server):
    """Neither for the next version, nor for the commands and brokers that it starts."""
    s = server()
    c = s.connect(token="t").ready()
    c.sh("p", "sleep 1000")
    s.reexec()
    before = opened(s.pid)
    for _ in range(10):
        s.reexec()
    after = opened(s.pid)
    # One may come and go, as with a runner that is just started; ten re-execs would leave ten.
    assert abs(len(after) - len(before)) < 5, (before, after)
    assert [fd for fd, closed in after.items() if not closed] == [0, 1, 2]
    environment = pathlib.Path(f"/proc/{s.broker}/environ").read_bytes()
    kill(s.broker)
    c.wait_closed()
    poll(lambda: len(re.findall(r"front-end \d+: serving", s.log)) == 2, what="another front-end")
    assert b"EXECD_STATE" not in pathlib.Path(f"/proc/{s.broker}/environ").read_bytes() + environment


def test_a_program_that_was_moved_away(server):
    """What is installed under the name counts, wherever the program that runs has gone."""
    s = server()
    s.execd.rename(s.execd.with_suffix(".old"))
    s.install("daemon/root/execd")
    s.reexec()
    assert runs(s.pid, s.execd)
    broker = s.broker
    kill(broker)
    replaced(s, broker)


def fake(what):
    """A program that is not execd (fake_execd.c)."""
    return (BUILD / "tests/integration/fake_execd").read_bytes() + what


@pytest.mark.parametrize("content, mode, why", [
    (None, 0o644, "the installed execd exited with status 1"),
    (b"7", 0o755, "the installed execd exited with status 7"),
    (b"0", 0o755, "the installed execd exited with status 0"),
    (b"k", 0o755, "the installed execd was killed by signal 9"),
    (b"no program\n", 0o755, "the installed execd exited with status 1"),
    (b"", 0o755, "the installed execd exited with status 1"),
    (b"s", 0o755, "re-exec: no answer in 5 s: killing it"),
], ids=["mode", "status", "true", "signal", "format", "empty", "slow"])
def test_one_that_cannot_start(server, content, mode, why):
    """The old one goes on, says why, and serves meanwhile. The next try may be better."""
    s = server()
    c = s.connect(token="t").ready()
    c.sh("p", COUNT)
    s.install("daemon/root/execd", fake(content) if content in (b"7", b"0", b"k", b"s") else content, mode)
    s.child.send_signal(signal.SIGUSR2)
    if content == b"s":
        assert s.connect(token="t").ready().run("x", ["/bin/echo", "meanwhile"]).stdout == "meanwhile\n"
        s.child.send_signal(signal.SIGUSR2)
        s.wait_log("re-exec: not now, it is under way")
    s.wait_log(why)
    s.wait_log("; this execd goes on")
    assert whole(c) == (ALL, 0) and GOES_ON not in s.log
    s.install("daemon/root/execd")
    s.reexec()
    assert c.run("x", ["/bin/echo", "fine"]).stdout == "fine\n"


def test_one_that_is_not_there(server):
    s = server()
    s.execd.unlink()
    s.reexec("re-exec: the installed execd; this execd goes on: No such file or directory")
    s.install("daemon/root/execd")
    for p in "daemon/broker/execd-broker", "runner/execd-runner":
        (s.place / p).rename(s.place / "away")
        s.reexec("the installed execd exited with status 1; this execd goes on")
        assert f"{s.place}/{p}: No such file or directory" in s.log
        (s.place / "away").rename(s.place / p)
    s.reexec()


SEALS = 15      # seal, shrink, grow, write


def check(content, seals=SEALS):
    """What `execd --check-state` says of a state."""
    fd = os.memfd_create("state", os.MFD_ALLOW_SEALING)
    os.write(fd, content)
    if seals:
        import fcntl
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    r = subprocess.run([BUILD / "daemon/root/execd", "--check-state"], stderr=subprocess.PIPE, text=True, timeout=20,
                       stdin=subprocess.DEVNULL, preexec_fn=lambda: os.dup2(fd, 3), pass_fds=(3,))
    os.close(fd)
    return r


MAGIC = b"execd's state".ljust(16, b"\0")


@pytest.mark.parametrize("content, why", [
    (MAGIC + b"\x04" + (0).to_bytes(4, "little"), "the state has version 0, and this execd reads versions"),
    (MAGIC + b"\x04" + (999).to_bytes(4, "little"), "the state has version 999, and this execd reads versions"),
    (MAGIC + b"\x08" + bytes(8), "the state cannot be read"),
    (MAGIC, "the state cannot be read"),
    (b"", "the state cannot be read"),
    (b"x" * 100, "the state cannot be read"),
])
def test_a_state_that_is_none(content, why):
    r = check(content)
    assert r.returncode == 1 and why in r.stderr, r


def test_a_state_that_can_change():
    r = check(MAGIC + b"\x04" + (999).to_bytes(4, "little"), seals=0)
    assert r.returncode == 1 and "the state cannot be read" in r.stderr, r


def test_runners_that_end_meanwhile(server):
    """A child that dies at that very moment is a zombie that the next version finds."""
    s = server()
    for _ in range(8):
        c = s.connect(token="t").ready()
        c.sh("p", "sleep 1000")
        runner = s.runner(c)
        n = s.log.count(GOES_ON)
        s.child.send_signal(signal.SIGUSR2)
        kill(runner)
        closed = c.wait_closed()
        assert closed["code"] == 1011 and "runner killed by signal 9" in closed["reason"], closed
        poll(lambda n=n: s.log.count(GOES_ON) > n, what="the next version")
    assert poll(lambda: not [p for p, _, state in child_rows(s.pid) if state == "Z"], what="no zombie")


def test_a_broker_that_ends_meanwhile(server):
    s = server()
    c = s.connect(token="t").ready()
    c.sh("p", COUNT)
    for _ in range(3):
        old, n = s.broker, s.log.count(GOES_ON)
        s.child.send_signal(signal.SIGUSR2)
        kill(old)
        replaced(s, old)
        poll(lambda n=n: s.log.count(GOES_ON) > n, what="the next version")
    assert whole(resume(s, c)) == (ALL, 0)


def test_signals_that_come_meanwhile(server):
    """None is lost: it stays pending over the execve."""
    s = server()
    s.child.send_signal(signal.SIGUSR2)
    s.child.send_signal(signal.SIGTERM)
    assert s.child.wait(15) == 0, s.log


def test_one_after_the_other(server):
    """Brokers and runners are of the version that is installed when the broker begins."""
    s = server()
    c = s.connect(token="t").ready()
    assert runs(s.runner(c), s.place / "runner/execd-runner")
    for p in PROGRAMS:
        s.install(p)
    s.reexec()
    d = s.connect(token="t").ready()
    e = s.connect(token="t").ready()
    assert not ROOT or not any(runs(s.runner(x), s.place / "runner/execd-runner") for x in (d, e)), "of the broker's version"
    broker = s.broker
    kill(broker)
    c.wait_closed()
    replaced(s, broker)
    n = s.connect(token="t").ready()
    assert runs(s.runner(n), s.place / "runner/execd-runner")
    assert runs(s.broker, s.place / "daemon/broker/execd-broker")
    assert resume(s, c).run("x", ["/bin/echo", "fine"]).stdout == "fine\n"


def test_the_log_is_whole(server, mode):
    """With a reader that stops: what waits to be written is carried over."""
    s = server()
    n = s.log.count(GOES_ON)
    os.set_blocking(s.child.stderr.fileno(), False)
    s.reexec()
    assert s.log.count(GOES_ON) == n + 1 and children_named(s.pid, "execd-broker") == [s.broker]
    c = s.connect(token="t").ready()
    kill(s.runner(c))
    s.wait_log("runner killed by signal 9")


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
