# SPDX-License-Identifier: ISC
"""Who dies, and what happens (doc/design.md section 2)."""
import base64
import os
import signal
import time

import pytest
from conftest import PATIENCE_S, is_alive, kill, pids_with, poll
from execd_client import WebSocket
from test_session import DAEMONS


def numbered(c, id, count):
    c.sh(id, f"i=0; while [ $i -lt {count} ]; do i=$((i+1)); echo line $i; [ $((i % 50)) -ne 0 ] || sleep 0.005; done; exit 9")


class Follower:
    """Follows a process over any number of connections, as the real client
    does: notifications while attached, process/read after its last seq when it
    comes back."""

    def __init__(self, server):
        self.server = server
        self.client = server.ready()
        self.session = self.client.session_id
        self.seen = {}
        self.code = None

    def take(self):
        for m in list(self.client.messages):
            p = m.get("params") or {}
            if m.get("method") == "process/output":
                self.note(p["seq"], base64.b64decode(p["chunk"]))
            elif m.get("method") == "process/exited":
                self.note(p["seq"], b"")
                self.code = p["exitCode"]
            elif m.get("method") == "process/closed":
                self.note(p["seq"], b"")
                return True
        return False

    def note(self, seq, data):
        assert self.seen.setdefault(seq, data) == data, f"two different events {seq}"

    def resume(self):
        """Returns True when the process is closed."""
        def attempt():
            try:
                c = WebSocket(self.server.url)
                m = c.request("initialize", {"clientName": "f", "resumeSessionId": self.session})
            except (OSError, Exception) as e:
                assert "assert" not in str(e)
                return None
            if "result" in m:
                return c
            assert m["error"]["code"] == -32010, m
            c.drop()

        self.take()
        self.client = poll(attempt, what="resume")
        self.server.clients.append(self.client)
        self.client.notify("initialized")
        # All before the first gap was seen; the rest is asked for.
        last = 0
        while last + 1 in self.seen:
            last += 1
        r = self.client.call("process/read", {"processId": "p", "afterSeq": last})
        for chunk in r["chunks"]:
            self.note(chunk["seq"], base64.b64decode(chunk["chunk"]))
        if r["exited"]:
            self.code = r["exitCode"]
        return r["closed"]

    def text(self):
        return b"".join(self.seen[s] for s in sorted(self.seen)).decode()


def test_frontend_killed_twenty_times_under_load(spawn):
    """Commands keep running; another front-end listens soon (within a second on
    an idle machine: scripts/torture kills); every byte arrives once."""
    s = spawn()
    count = 40000
    followers = [Follower(s) for _ in range(4)]
    for f in followers:
        numbered(f.client, "p", count)
    echo = s.ready()
    echo.start("cat", ["/bin/cat"], pipeStdin=True)
    slowest = 0
    for i in range(20):
        for f in followers:
            f.client.wait(lambda: len(f.client.messages) > 3 or f.code is not None)
        old = s.frontend()
        began = time.monotonic()
        kill(old)
        s.wait_log(f"front-end {old}: killed by signal 9")
        poll(lambda: s.frontend() != old, what="another front-end")
        WebSocket(s.url).drop()
        slowest = max(slowest, time.monotonic() - began)
        for f in followers:
            f.client.wait_closed()
            f.done = f.resume()
    assert slowest < PATIENCE_S / 6, f"a front-end took {slowest} s to come back"
    for f in followers:
        if not f.done:
            f.client.wait(lambda: f.take(), timeout=4 * PATIENCE_S, what="the end of the lines")
        assert f.text() == "".join(f"line {i}\n" for i in range(1, count + 1))
        assert f.code == 9
    again = WebSocket(s.url)
    again.initialize(resumeSessionId=echo.session_id)
    again.notify("initialized")
    again.write("cat", "still here\n")
    again.wait_output("cat", "still here\n")
    again.drop()


def test_a_killed_runner_takes_its_session_and_nothing_else(spawn):
    s = spawn()
    victim, other = s.ready(), s.ready()
    marker = f"44{os.getpid()}.{s.mode == 'root':d}"
    victim.sh("p", DAEMONS.format(marker))
    victim.sh("tty", DAEMONS.format(marker), tty=True)
    victim.wait_output("p", "up")
    victim.wait_output("tty", "up")
    poll(lambda: len(pids_with(marker)) >= 6, what="the daemons")
    other.start("cat", ["/bin/cat"], pipeStdin=True)
    kill(s.runner(victim))
    closed = victim.wait_closed()
    assert closed["code"] == 1011 and "runner killed by signal 9" in closed["reason"]
    poll(lambda: not pids_with(marker), what="end of the session's processes")
    other.write("cat", "fine\n")
    other.wait_output("cat", "fine\n")
    again = s.connect()
    assert again.error("initialize", {"clientName": "x", "resumeSessionId": victim.session_id})[0] == -32600


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGSEGV])
def test_a_killed_monitor_leaves_nothing(spawn, sig):
    s = spawn()
    c = s.ready()
    marker = f"45{os.getpid()}.{s.mode == 'root':d}{sig:d}"
    c.sh("p", DAEMONS.format(marker))
    c.wait_output("p", "up")
    poll(lambda: len(pids_with(marker)) >= 3, what="the daemons")
    frontend, runner = s.frontend(), s.runner(c)
    kill(s.pid, sig)
    s.child.wait(10)
    poll(lambda: not is_alive(frontend) and not is_alive(runner), what="end of the programs")
    poll(lambda: not pids_with(marker), what="end of the commands")


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_monitor_ends_stubborn_commands(spawn, sig):
    s = spawn()
    c = s.ready()
    marker = f"46{os.getpid()}.{s.mode == 'root':d}{sig:d}"
    c.sh("p", DAEMONS.format(marker))
    c.wait_output("p", "up")
    s.child.send_signal(sig)
    assert s.child.wait(10) == 0
    assert c.wait_closed()["code"] in (1001, 1011)
    poll(lambda: not pids_with(marker), what="end of the commands")


def test_the_client_hears_of_a_runner_that_dies_at_its_start(spawn):
    s = spawn()
    c = s.connect()
    c.initialize()
    kill(s.runner(c))
    assert c.wait_closed()["code"] == 1011


def test_a_client_that_is_gone_when_it_is_pinged(configured, user):
    """The reset and the time of the ping come in one turn of the front-end."""
    s = configured(f"[listener a]\naddress = ws://127.0.0.1:0\nallow-unauthenticated = one\n[identity one]\n"
                   f"user = {user.pw_name}\nsandbox-allow-unsandboxed = yes\n[limits]\nping-interval = 20ms\n")
    frontend = s.frontend()
    for _ in range(5):
        clients = [s.ready() for _ in range(20)]
        os.kill(frontend, signal.SIGSTOP)
        for c in clients:
            c.drop()
        # Not a wait for something: the pings' time passes.
        time.sleep(0.05)
        os.kill(frontend, signal.SIGCONT)
        assert s.ready().run("p", ["/bin/echo", "fine"]).stdout == "fine\n"
    assert s.frontend() == frontend, s.log
