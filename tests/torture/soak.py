#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""Soak: a hundred thousand commands, ten thousand sessions, as many resumes.
Then memory, descriptors, processes, control groups, mounts and files are what
they were when the first hundredth was done.
"""
import glob
import os
import pathlib
import re
import sys
import threading

from torture import Clock, arguments, children, descriptors, in_words, modes, poll, rss_kib, test_user
from conftest import SANITIZED, Server
from execd_client import WebSocket

CLIENTS = 4
GROWTH_KIB = 64 << 10 if SANITIZED else 2048     # the allocator of a sanitizer keeps what was freed
COMMANDS = 10       # of a session
BESIDE = 2          # children that are no session's: broker, spare runner


def groups_of(pid):
    """Control groups of that execd's sessions."""
    at = next(m[1] for c in children(pid)
              if (m := re.search(r":(/[^:\n]*)/sessions/", pathlib.Path(f"/proc/{c}/cgroup").read_text())))
    return [d for place in ("", "/*") for own in glob.glob(f"/sys/fs/cgroup{place}{at}")
            for d, _, _ in os.walk(own) if d != own]


class Account:
    """What execd and the host hold."""

    def __init__(self, s):
        self.fds = {"root": descriptors(s.pid), "broker": descriptors(s.broker), "front-end": descriptors(s.frontend())}
        self.rss = {"root": rss_kib(s.pid), "broker": rss_kib(s.broker), "front-end": rss_kib(s.frontend())}
        self.children = len(children(s.pid))
        self.groups = len(groups_of(s.pid))
        self.mounts = len(pathlib.Path("/proc/self/mounts").read_text().splitlines())
        self.files = len(glob.glob("/run/*execd*"))

    def differs(self, base):
        """What is more than it was, in words."""
        found = [f"{who}: {n} descriptors, {base.fds[who]} before" for who, n in self.fds.items()
                 if n is not None and n > base.fds[who]]
        found += [f"{who}: {n} KiB, {base.rss[who]} before" for who, n in self.rss.items()
                  if n > base.rss[who] + GROWTH_KIB]
        for what in ("children", "groups", "mounts", "files"):
            if getattr(self, what) > getattr(base, what):
                found.append(f"{getattr(self, what)} {what}, {getattr(base, what)} before")
        return found

    def __str__(self):
        held = "; ".join(f"{who}: {n} KiB, {in_words(self.fds[who])}" for who, n in self.rss.items())
        return f"{held}; {self.children} children, {self.groups} control groups, {self.mounts} mounts"


class Soaking:
    def __init__(self, server, sessions):
        self.server, self.left = server, sessions
        self.lock = threading.Lock()
        self.commands = self.resumes = 0
        self.error = None

    def session(self):
        c = WebSocket(self.server.url).ready()
        for i in range(COMMANDS):
            if i == COMMANDS // 2:
                c.drop()
                id, c = c.session_id, None

                def resume():
                    again = WebSocket(self.server.url)
                    m = again.request("initialize", {"clientName": "soak", "resumeSessionId": id})
                    if "result" in m:
                        return again
                    again.drop()

                c = poll(resume, what="resume")
                c.session_id = id
                c.notify("initialized")
            f = c.run(f"p{i}", ["/bin/echo", str(i)], tty=i == 3)
            assert (f.stdout + f.pty).strip() == str(i) and f.code == 0
        c.close()
        with self.lock:
            self.commands += COMMANDS
            self.resumes += 1

    def work(self):
        try:
            while not self.error:
                with self.lock:
                    if self.left == 0:
                        return
                    self.left -= 1
                self.session()
        except BaseException as e:
            self.error = e

    def run(self):
        threads = [threading.Thread(target=self.work) for _ in range(CLIENTS)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        if self.error:
            raise self.error


def soak(mode, user, sessions):
    """Returns a line of figures."""
    clock = Clock()
    s = Server(mode, user, ["--detached-ttl", "1s"], "ws://127.0.0.1:0", None)
    try:
        first = Soaking(s, max(sessions // 100, 20))
        first.run()
        poll(lambda: len(children(s.pid)) == BESIDE, 30, "end of the sessions")
        base = Account(s)
        rest = Soaking(s, sessions)
        rest.run()
        poll(lambda: len(children(s.pid)) == BESIDE, 30, "end of the sessions")
        poll(lambda: not Account(s).differs(base), 10, f"return to {base}; now: {Account(s).differs(base)}")
        after = Account(s)
    finally:
        s.stop()
    return (f"{mode}: {rest.commands} commands, {sessions} sessions, {rest.resumes} resumes; before: {base}; "
            f"after: {after}; {clock}")


def main():
    a = arguments(__doc__.splitlines()[0])
    for mode in modes():
        print(soak(mode, test_user(), max(int(10000 * a.scale), 20)), flush=True)


if __name__ == "__main__":
    sys.exit(main())
