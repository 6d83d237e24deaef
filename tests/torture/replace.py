#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""Replacement under load: the broker is killed and reloaded, root's execd executes its next version, and each program is
stopped, beside sessions with commands that stream, detached sessions, watchers and open HTTP exchanges. Every byte comes
once, every session is there at the end, and a new client is served in time after each.
"""
import base64
import os
import pathlib
import random
import signal
import socket
import sys
import tempfile
import threading
import time

from torture import Clock, alone, arguments, modes, poll, test_user
from conftest import Configured, children_named, digest, pids_with
from execd_client import Closed

TOKEN = "replace" * 6
SERVED_S = 2        # after a death, for a new client
STOPPED_S = 12      # after a stop: the time that a program has to answer, and that
GOES_ON = "re-exec: this version goes on"
MARKER = f"replace-{os.getpid()}"
COUNT = f": {MARKER}; i=0; while :; do i=$((i + 1)); echo $i; sleep 1; done"
CONFIGURATION = """
[listener main]
address = ws://127.0.0.1:0
[limits]
detached-ttl = 2h
[identity one]
user = {user}
token-sha256 = {digest}
sandbox-allow-unsandboxed = yes
"""


class Origin(threading.Thread):
    """Answers each request with a head and half a body, and no more."""

    def __init__(self):
        super().__init__(daemon=True)
        self.s = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.open = []
        self.start()

    def run(self):
        while True:
            c = self.s.accept()[0]
            c.recv(4096)
            c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            self.open.append(c)


class One:
    """A session that counts, and whoever is attached to it."""

    def __init__(self, server, kind, origin):
        self.s, self.kind, self.origin = server, kind, origin
        self.c = server.connect(token=TOKEN).ready()
        self.id = self.c.session_id
        self.c.sh("p", COUNT)
        self.watcher = None
        self.again()
        if kind == "detached":
            self.c.drop()

    def again(self):
        """What ends with its connection."""
        if self.kind == "http":
            url = "http://127.0.0.1:%d/" % self.origin.s.getsockname()[1]
            self.c.post("http/request", {"method": "GET", "url": url, "requestId": f"r{time.monotonic()}", "streamResponse": True})
        if self.kind == "watched":
            self.watcher = self.s.connect(token=TOKEN)
            self.watcher.call("initialize", {"clientName": "w", "watchSessionId": self.id})

    def attached(self):
        """Attaches again if its connection is over. True: there is one that answers."""
        if self.kind == "detached":
            return True
        try:
            if self.c.closed is not None:
                self.c.sock.close()
                self.c = self.s.connect(token=TOKEN).ready(resumeSessionId=self.id)
                self.again()
            return True
        except (Closed, OSError):
            return False

    def counted(self):
        """All that its command wrote, from the beginning."""
        said, after = b"", 0
        while True:
            r = self.c.call("process/read", {"processId": "p", "afterSeq": after, "waitMs": 0}, 30)
            if not r["chunks"]:
                return said
            assert r["chunks"][0]["seq"] == after + 1, (self.id, r["chunks"][0]["seq"], after)
            after = r["chunks"][-1]["seq"]
            said += b"".join(base64.b64decode(x["chunk"]) for x in r["chunks"])

    def check(self):
        said = self.counted()
        n = said.count(b"\n")
        assert n > 0 and said == b"".join(b"%d\n" % i for i in range(1, n + 1)), (self.id, said[-200:])
        return n


class Torment:
    def __init__(self, mode, user, directory, sessions):
        self.s = Configured(mode, user, directory / "execd.conf", CONFIGURATION.format(user=user.pw_name, digest=digest(TOKEN)))
        self.s.clients = self       # None of them is kept: there are thousands.
        self.origin = Origin()
        self.s.wait_log(": serving")
        kinds = ["attached"] * 6 + ["detached", "detached", "watched", "http"]
        self.all = [One(self.s, kinds[i % len(kinds)], self.origin) for i in range(sessions)]
        self.slowest = {}

    def append(self, client):
        pass

    def __iter__(self):
        return iter(())

    def serves(self):
        """A new client, with a command."""
        try:
            c = self.s.connect(token=TOKEN)
        except (Closed, OSError):
            return False
        try:
            c.next_id = 1
            c.call("initialize", {"clientName": "new"}, 2)
            c.notify("initialized")
            return c.run("x", ["/bin/echo", "in"], 2).stdout == "in\n" and c.request("session/end", {}, 2)
        except (Closed, OSError, TimeoutError):
            return False
        finally:
            c.drop()

    def timed(self, what, limit, began):
        poll(self.serves, 60, f"new client after {what}")
        took = time.monotonic() - began
        self.slowest[what] = max(self.slowest.get(what, 0), took)
        assert took < limit, f"a new client after {what}: {took:.2f} s"
        for one in self.all:
            poll(one.attached, 30, "another connection to a session")

    def kill_broker(self, patience):
        old = self.s.broker
        began = time.monotonic()
        os.kill(old, signal.SIGKILL)
        poll(lambda: self.now("execd-broker") not in (None, old), 30, "another broker")
        self.timed("kill -9 of the broker", SERVED_S * patience, began)

    def now(self, name):
        found = children_named(self.s.pid, name)
        return found[0] if found else None

    def reload(self, patience):
        n = self.s.log.count("reload: ")
        began = time.monotonic()
        os.kill(self.s.pid, signal.SIGHUP)
        poll(lambda: self.s.log.count("reload: ") > n, 30, "reload")
        self.timed("SIGHUP", SERVED_S * patience, began)

    def reexec(self, patience):
        n = self.s.log.count(GOES_ON)
        began = time.monotonic()
        os.kill(self.s.pid, signal.SIGUSR2)
        poll(lambda: self.s.log.count(GOES_ON) > n, 10, GOES_ON)
        self.timed("re-exec of root", SERVED_S * patience, began)

    def stop(self, name, pid, patience):
        """One that is stopped for good counts as dead in time."""
        began = time.monotonic()
        os.kill(pid, signal.SIGSTOP)
        self.timed(f"SIGSTOP of {name}", STOPPED_S * patience, began)
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass

    def stop_root(self, patience):
        """Nobody watches it: what it does waits until it goes on."""
        os.kill(self.s.pid, signal.SIGSTOP)
        time.sleep(3)           # so long it is stopped
        began = time.monotonic()
        os.kill(self.s.pid, signal.SIGCONT)
        self.timed("SIGCONT of root", SERVED_S * patience, began)

    def stop_one(self, n, patience):
        if n % 4 == 0:
            self.stop("the broker", self.s.broker, patience)
        elif n % 4 == 1:
            self.stop("the front-end", self.s.frontend(), patience)
        elif n % 4 == 2:
            runner = random.choice(children_named(self.s.pid, "execd-runner"))
            self.stop("a runner", runner, patience)
        else:
            self.stop_root(patience)

    def end(self):
        """How many lines came, each once."""
        for one in self.all:
            if one.kind == "detached":
                one.c = self.s.connect(token=TOKEN).ready(resumeSessionId=one.id)
        lines = sum(one.check() for one in self.all)
        for one in self.all:
            one.c.drop()
            if one.watcher:
                one.watcher.drop()
        return lines


def replace(mode, user, sessions, kills, reloads, reexecs, stops, seed, patience=1):
    """Returns a line of figures."""
    clock = Clock()
    random.seed(seed)
    with tempfile.TemporaryDirectory(prefix="execd-replace-") as d:
        directory = pathlib.Path(d)
        directory.chmod(0o777)
        t = Torment(mode, user, directory, sessions)
        root = t.s.pid
        steps = [t.kill_broker] * kills + [t.reload] * reloads + [t.reexec] * reexecs
        steps += [lambda p, n=n: t.stop_one(n, p) for n in range(stops)]
        random.shuffle(steps)
        for step in steps:
            step(patience)
        assert t.s.pid == root and t.s.child.poll() is None
        lines = t.end()
        began = time.monotonic()
        t.s.child.kill()
        t.s.child.wait(10)
        poll(lambda: not pids_with(MARKER), 1 * patience, "end of the commands of a root that was killed")
        took = time.monotonic() - began
    slowest = ", ".join(f"{what} {s:.2f} s" for what, s in sorted(t.slowest.items()))
    return (f"{mode}: {sessions} sessions, {kills} kills of the broker, {reloads} reloads, {reexecs} re-execs, {stops} stops; "
            f"{lines} lines, each once; a new client was served at the latest after {slowest}; nothing alive {took:.2f} s after "
            f"kill -9 of root; {clock}")


def main():
    alone()
    a = arguments(__doc__.splitlines()[0], mode="root or user; both")
    for mode in [a.mode] if a.mode else modes():
        n = max(int(100 * a.scale), 2)
        print(replace(mode, test_user(), max(int(200 * min(a.scale * 2, 1)), 10), n, n, max(n // 5, 2), max(n // 5, 4), a.seed),
              flush=True)


if __name__ == "__main__":
    sys.exit(main())
