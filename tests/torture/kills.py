#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""The kill matrix: under load, each program is killed, crashed or stopped for
five seconds. After each time everything is back within its time, nothing is
lost, nothing comes twice, and nothing is left running that should not be.
"""
import os
import pathlib
import random
import re
import signal
import sys
import tempfile
import time

from torture import Clock, alone, arguments, descriptors, modes, poll, test_user
from conftest import Configured, children_named, digest, is_alive, pids_with
from execd_client import dial
from load import Load
from soak import groups_of
from test_tls import Authority, listener

TOKEN = "kills" * 8
STOPPED_S = 5
CONFIGURATION = """
[listener main]
address = ws://127.0.0.1:0
{tls}
[identity one]
user = {user}
token-sha256 = {digest}
sandbox-max-profile = full
sandbox-allow-unsandboxed = yes
"""


class Server:
    """execd with a plain and a TLS listener, and more lines of configuration."""

    def __init__(self, mode, user, directory, more=""):
        self.authority = Authority(directory)
        base = self.authority.issue("server", group=user.pw_gid)
        text = CONFIGURATION.format(tls=listener(base), user=user.pw_name, digest=digest(TOKEN)) + more
        self.s = Configured(mode, user, directory / "execd.conf", text)
        self.s.token = TOKEN

    def keys(self):
        """The key process's pid."""
        found = children_named(self.s.pid, "execd-keys")
        return found[0] if found else None

    def handshake(self):
        try:
            dial(self.s.urls[1], tls=self.authority.client()).close()
            return True
        except OSError:
            return False


class Matrix:
    def __init__(self, server, load, seed, patience):
        self.server, self.s, self.load = server, server.s, load
        self.random = random.Random(seed)
        self.patience = patience    # of the times in doc/design.md, so many
        self.slowest = {}
        self.killed_runners = 0

    def timed(self, what, limit, probe):
        began = time.monotonic()
        poll(probe, 60, what)
        took = time.monotonic() - began
        self.slowest[what] = max(self.slowest.get(what, 0), took)
        assert took < limit * self.patience, f"{what} took {took:.2f} s"

    def stop_for_a_while(self, pid):
        os.kill(pid, signal.SIGSTOP)
        # Not a wait for something: this is how long it is stopped.
        time.sleep(STOPPED_S)
        os.kill(pid, signal.SIGCONT)

    def frontend(self, sig):
        old = self.s.frontend()
        if sig == signal.SIGSTOP:
            self.stop_for_a_while(old)
            self.timed("an answer of a front-end that goes on", 2, self.answers)
            assert self.s.frontend() == old
            return
        os.kill(old, sig)
        self.timed("another front-end", 1, lambda: self.s.frontend() != old)
        assert not is_alive(old)

    def answers(self):
        try:
            dial(self.s.url).close()
            return True
        except OSError:
            return False

    def runner(self, sig):
        w = self.random.choice([w for w in self.load.workers if w.session])
        session, gone, marker = w.session, w.gone, f"of {w.number}.{w.rounds}"
        pid = int(re.search(rf"session {session[:8]}: opened .* runner (\d+)", self.s.log)[1])
        if sig == signal.SIGSTOP:
            rounds = w.rounds
            self.stop_for_a_while(pid)
            poll(lambda: w.rounds > rounds or w.error, 60, "work after a stop")
            assert w.gone == gone
            return
        # The first process of a pid namespace minds no other signal from outside.
        os.kill(pid, signal.SIGKILL if self.s.mode == "root" else sig)
        self.killed_runners += 1
        self.timed("the end of a killed runner's session", 5, lambda: w.gone > gone or w.error)
        self.timed("the end of its processes", 5, lambda: not pids_with(marker) or w.session)
        # With its number, another session may be at the same marker already.

    def keys(self, sig):
        old = self.server.keys()
        if sig == signal.SIGSTOP:
            self.stop_for_a_while(old)
        else:
            os.kill(old, sig)
        self.timed("a TLS handshake again", 2, self.server.handshake)

    def step(self, n):
        sig = (signal.SIGKILL, signal.SIGSEGV, signal.SIGSTOP)[0 if n % 4 < 2 else n % 4 - 1]
        (self.frontend, self.runner, self.runner, self.keys)[n // 4 % 4](sig)
        self.load.check()


def survivors(mode, user, kills, sessions, seed, patience):
    """Kills of what the broker replaces. Returns a line of figures."""
    clock = Clock()
    with tempfile.TemporaryDirectory(prefix="execd-kills-") as d:
        directory = pathlib.Path(d)
        directory.chmod(0o777)
        server = Server(mode, user, directory)
        s = server.s
        held = descriptors(s.broker)
        load = Load(s, sessions, directory, seed)
        matrix = Matrix(server, load, seed, patience)
        for n in range(kills):
            matrix.step(n)
        load.end()
        gone = load.sum("gone")
        assert gone == matrix.killed_runners, f"{gone} sessions ended, {matrix.killed_runners} runners were killed"
        resumes, rounds = load.sum("resumes"), load.sum("rounds")
        s.stop()
        poll(lambda: not pids_with(f"{d}/"), what="end of the processes")
    times = ", ".join(f"{what} {t:.2f} s" for what, t in matrix.slowest.items())
    return (f"{mode}: {kills} kills, {sessions} sessions, {rounds} rounds of work, {resumes} resumes, {gone} sessions "
            f"ended as their runners were; slowest: {times}; broker had {held} descriptors; {clock}")


def monitors(mode, user, kills, sessions, seed):
    """The broker dies, and with it everything. Returns a line of figures."""
    clock = Clock()
    slowest = 0
    for n in range(kills):
        with tempfile.TemporaryDirectory(prefix="execd-kills-") as d:
            directory = pathlib.Path(d)
            directory.chmod(0o777)
            server = Server(mode, user, directory)
            s = server.s
            load = Load(s, sessions, directory, seed + n)
            programs = [s.frontend(), server.keys(), *(int(p) for p in re.findall(r"runner (\d+)\n", s.log))]
            for w in load.workers:
                w.stop()
            os.kill(s.pid, (signal.SIGKILL, signal.SIGSEGV)[n % 2])
            began = time.monotonic()
            s.child.wait(10)
            poll(lambda: not any(is_alive(p) for p in programs), what="end of the programs")
            poll(lambda: not any(pids_with(f"of {w.number}.{w.rounds}") for w in load.workers), what="end of commands")
            slowest = max(slowest, time.monotonic() - began)
            left = s.pid
    if mode == "root":
        # The groups it could not remove are the next one's to remove.
        with tempfile.TemporaryDirectory(prefix="execd-kills-") as d:
            directory = pathlib.Path(d)
            directory.chmod(0o777)
            server = Server(mode, user, directory)
            assert not groups_of(left), groups_of(left)
            server.s.stop()
    return f"{mode}: {kills} monitors killed, all ended within {slowest:.2f} s; {clock}"


def main():
    alone()
    a = arguments(__doc__.splitlines()[0])
    for mode in modes():
        kills = max(int(180 * a.scale), 16)
        sessions = max(int(50 * min(a.scale, 1)), 3)
        print(survivors(mode, test_user(), kills, sessions, a.seed, 3), flush=True)
        print(monitors(mode, test_user(), max(int(20 * a.scale), 2), min(sessions, 5), a.seed), flush=True)


if __name__ == "__main__":
    sys.exit(main())
