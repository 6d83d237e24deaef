# SPDX-License-Identifier: ISC
"""Where the log goes: nobody reads it, and everything serves on, and the log tells later how many lines are missing;
the journal reads it, and each line has its tag once."""
import contextlib
import fcntl
import os
import re
import signal
import socket
import subprocess

import pytest
from conftest import EXECD, ROOT, WRAP, as_user, children_named, poll
from execd_client import WebSocket
from test_listeners import get

CONF = """
[listener l]
address = ws://127.0.0.1:0
allow-unauthenticated = someone
[identity someone]
user = {user}
sandbox-allow-unsandboxed = yes
[limits]
detached-ttl = 0s
penalty-threshold = 1h
penalty-max = 2h
"""

LOST = r"execd-broker\[\d+\]: (\d+) lines were lost: nobody read the log\n"


def fill(fd):
    """Until it takes nothing more. The flags of the open file are as before."""
    os.set_blocking(fd, False)
    with contextlib.suppress(BlockingIOError):
        while os.write(fd, b"." * 512):
            pass
    os.set_blocking(fd, True)


def torn(lines):
    return [line for line in lines if not re.match(r"execd(-\w+)?\[\w+( \w+)?\]: \S", line)]


class Unread:
    """An execd whose log is full from the beginning."""

    def __init__(self, mode, user, path, kind):
        path.write_text(CONF.format(user=user.pw_name) + f"[listener op]\naddress = unix:{path.parent}/op\noperate = yes\n")
        self.op = f"unix:{path.parent}/op"
        if kind == "pipe":
            self.ours, self.theirs = os.pipe()
        else:
            self.pair = socket.socketpair()
            self.ours, self.theirs = (s.fileno() for s in self.pair)
        fill(self.theirs)
        argv = [*WRAP, str(EXECD), "-c", str(path)]
        self.child = subprocess.Popen(argv if mode == "root" else as_user(user, argv),
                                      stdout=subprocess.PIPE, stderr=self.theirs)
        self.url = self.child.stdout.readline().decode().strip()
        os.set_blocking(self.ours, False)
        self.log = ""

    def read_log(self):
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(self.ours, 1 << 16):
                self.log += piece.decode()
        return self.log

    def session(self):
        c = WebSocket(self.url)
        try:
            assert c.ready().run("x", ["/bin/echo", "works"]).stdout == "works\n"
        finally:
            c.drop()


@pytest.fixture(params=["pipe", "socket"])
def unread(mode, user, directory, request):
    s = Unread(mode, user, directory / "execd.conf", request.param)
    yield s
    s.child.kill()
    s.child.wait()


def frontend_of(pid):
    """Of the broker of that execd; 0 between two of them."""
    found = children_named(pid, "execd-frontend")
    return found[0] if found else 0


def test_a_log_that_nobody_reads_stops_nobody(unread):
    for _ in range(5):
        unread.session()
    # The broker and a new front-end as well.
    old = frontend_of(unread.child.pid)
    os.kill(old, signal.SIGKILL)
    poll(lambda: frontend_of(unread.child.pid) not in (0, old), what="another front-end")
    for _ in range(250):
        unread.session()
    # Another broker, and another front-end: the connections of the old one end.
    old = frontend_of(unread.child.pid)
    unread.child.send_signal(signal.SIGHUP)
    poll(lambda: frontend_of(unread.child.pid) not in (0, old), what="the next broker's front-end")
    for _ in range(250):
        unread.session()
    # What a shell shares with us has not changed for the shell.
    assert fcntl.fcntl(unread.theirs, fcntl.F_GETFL) & os.O_NONBLOCK == 0
    # Now it flows again, without another event.
    lost = poll(lambda: re.search(LOST, unread.read_log()), what="count of what is missing")
    assert int(lost[1]) > 10
    # What was kept comes first, whole, and the newest lines after it.
    seen = len(unread.log)
    unread.child.send_signal(signal.SIGHUP)
    poll(lambda: "reload: nothing changed" in unread.read_log()[seen:], what="the newest line")
    lines = unread.log.lstrip(".").splitlines()
    assert torn(lines) == []
    unread.child.terminate()
    assert unread.child.wait(15) == 0
    assert "stopped" in unread.read_log()


def test_what_a_leaving_broker_could_not_say(unread):
    """The next one, which has hardly anything to say itself, counts it."""
    def metric():
        return int(re.search(r'execd_log_lines_lost_total\{program="execd-broker"\} (\d+)', get(unread.op, "/metrics")[1])[1])

    assert metric() == 0
    for _ in range(100):
        unread.session()
    before = metric()
    assert before > 50
    old = frontend_of(unread.child.pid)
    unread.child.send_signal(signal.SIGHUP)
    poll(lambda: frontend_of(unread.child.pid) not in (0, old), what="the next broker's front-end")
    lost = poll(lambda: re.search(LOST, unread.read_log()), what="count of what is missing")
    assert int(lost[1]) > 50, lost[0]
    assert metric() >= before


@pytest.mark.skipif(not ROOT, reason="mounts a small disk")
def test_a_full_disk_tears_no_line(mode, user, directory):
    disk = directory / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=777", "none", str(disk)], check=True)
    path = directory / "execd.conf"
    path.write_text(CONF.format(user=user.pw_name))
    argv = [*WRAP, str(EXECD), "-c", str(path)]
    log = disk / "log"
    child = None
    try:
        (disk / "ballast").write_bytes(bytes(52 << 10))
        with open(log, "ab") as theirs:
            child = subprocess.Popen(argv if mode == "root" else as_user(user, argv), stdout=subprocess.PIPE, stderr=theirs)
        url = child.stdout.readline().decode().strip()
        full = 0
        while full < 300:
            before = log.stat().st_size
            c = WebSocket(url)
            assert c.ready().run("x", ["/bin/echo", "works"]).stdout == "works\n"
            c.drop()
            full += log.stat().st_size == before
        # What a full disk took of a line is removed a moment later.
        poll(lambda: torn(log.read_text().splitlines()) == [], what="whole lines")
        (disk / "ballast").unlink()
        lost = poll(lambda: re.search(LOST, log.read_text()), what="count of what is missing")
        assert int(lost[1]) > 10
        child.terminate()
        assert child.wait(15) == 0
        assert torn(log.read_text().splitlines()) == [] and "stopped" in log.read_text()
    finally:
        if child:
            child.kill()
            child.wait()
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_the_journal_s_lines_have_their_tag_once(mode, user, directory):
    """The journal names the unit's first program and its pid itself; others name themselves."""
    path = directory / "execd.conf"
    path.write_text(CONF.format(user=user.pw_name))
    ours, theirs = socket.socketpair()
    st = os.fstat(theirs.fileno())
    argv = [*WRAP, str(EXECD), "-c", str(path)]
    child = subprocess.Popen(argv if mode == "root" else as_user(user, argv), stdout=subprocess.PIPE, stderr=theirs,
                             env={**os.environ, "JOURNAL_STREAM": f"{st.st_dev}:{st.st_ino}"})
    theirs.close()
    c = WebSocket(child.stdout.readline().decode().strip())
    c.ready()
    s = socket.create_connection(c.sock.getpeername())
    s.sendall(b"GET / HTTP/1.1\r\nbad header\r\n\r\n")
    assert s.recv(100).startswith(b"HTTP/1.1 400")
    child.terminate()
    assert child.wait(15) == 0
    log = b"".join(iter(lambda: ours.recv(1 << 16), b"")).decode()
    assert re.search(r"^<6>session \w+: opened for", log, re.M), log
    assert re.search(r"^<4>execd-frontend\[\d+\]: ", log, re.M), log
    assert "execd-broker[" not in log


def test_what_is_not_the_journal_s_socket_has_no_prefix(spawn):
    s = spawn(env={**os.environ, "JOURNAL_STREAM": "1:2"})
    s.ready()
    assert re.search(r"^execd-broker\[\d+\]: session \w+: opened for", s.log, re.M), s.log
