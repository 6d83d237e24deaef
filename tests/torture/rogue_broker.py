#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""A compromised broker: two million orders that it may give, in any order, and a million that are anything at all. What is
not in the table is its end; root's memory, descriptors and children stay as they were."""
import os
import pathlib
import random
import socket
import sys
import tempfile

from torture import SANITIZED, Clock, arguments, descriptors, in_words, poll, rss_kib
from test_sessions_unit import LIST, NAMESPACE, Rogue, Sessions, field, kept, pieces, place, program, said, start, u32

IN_ONE_LIFE = 64    # arbitrary messages; most lives end with the first
FIRST, LAST = 68, 116   # types of messages that there are, and some beside them


class Held:
    """What root has, when it has seen a few lives."""

    def __init__(self, pid):
        self.pid, self.rss, self.fds = pid, rss_kib(pid), descriptors(pid)
        self.children = self.count()

    def count(self):
        return len(pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split())

    def check(self):
        grown = rss_kib(self.pid) - self.rss
        assert grown < (64 if SANITIZED else 1) << 10, f"root grew by {grown} KiB from {self.rss}"
        poll(lambda: self.count() <= self.children, 30, "end of root's children")
        poll(lambda: descriptors(self.pid) <= self.fds, 30, f"end of root's descriptors, {self.fds} at first")
        return f"root: {self.rss} KiB {grown:+d}, {in_words(self.fds)}, {self.children} children"


def answered(r, data, *fds):
    r.send(data, *fds)
    assert r.s.recv(8192), data


def start_and_end(r):
    """A runner, which is killed, and whose end is heard."""
    r.send(start())
    hear_end(r)


def run_and_end(r, kind):
    """Another program, likewise."""
    r.send(program(kind))
    hear_end(r)


def hear_end(r):
    fds, answer = receive(r.s)
    if answer[8:12] != u32(0):
        return          # too many in this second
    for fd in fds:
        os.close(fd)
    end_program(r, int.from_bytes(answer[76:80], "little"))


def end_program(r, pid):
    r.send(said(78, u32(pid)))
    while (event := r.mine.recv(8192))[:12] != said(79, u32(pid)):
        assert event == said(93), event
        r.send(said(92))
    r.send(said(80, u32(pid)))


def receive(s):
    data, fds, _, _ = socket.recv_fds(s, 8192, 32)
    return fds, data


# What it may ask, and how often.
PERMITTED = [
    (200, lambda r: Rogue.send(r, said(84))),                                   # ENDING
    (1, lambda r: Rogue.send(r, pieces(LIST)[0])),                              # of a user's list
    (200, lambda r: answered(r, said(82, u32(random.randrange(1 << 32))))),          # NEXT
    (200, lambda r: Rogue.send(r, said(78, u32(random.randrange(1 << 32))))),        # KILL whom it has not
    (100, lambda r: Rogue.send(r, said(88, u32(1)))),                          # SERVING
    (100, lambda r: Rogue.send(r, said(110))),                                  # RELOAD
    (1, lambda r: run_and_end(r, NAMESPACE)),
    (1, start_and_end),
]


def permitted(sessions, messages, seed):
    """Returns a line of figures."""
    random.seed(seed)
    r = Rogue(sessions).seal()
    weights, orders = zip(*PERMITTED)
    held = None
    for i, order in enumerate(random.choices(orders, weights, k=messages)):
        if i == messages // 10:
            held = Held(sessions.pid)
        if i % 100 == 0:
            r.answer_pings()
        order(r)
    answered(r, kept())
    figures = held.check()
    r.s.close()
    return f"{messages} permitted; {figures}"


def anything():
    """A type that there may be, and bytes; or bytes."""
    if random.random() < .1:
        return random.randbytes(random.randrange(200))
    body = random.choice([b"", u32(random.randrange(4)), field(b"x", 256), random.randbytes(random.randrange(300)),
                          place()[8:], start()[8:], u32(0) + field(b"session-1", 64)])
    return said(random.randrange(FIRST, LAST), body)


def life(sessions):
    """How many messages it took to be its end."""
    state = random.choice(["new", "listing", "serving", "serving"])
    r = Rogue(sessions, begin=state != "new")
    if state == "serving":
        r.seal()
    sent, fd = 0, os.open("/dev/null", os.O_RDONLY)
    try:
        while sent < IN_ONE_LIFE:
            r.send(anything(), *[fd] * random.choice([0, 0, 0, 1, 1, 2, 5]))
            sent += 1
    except OSError:
        pass
    finally:
        os.close(fd)
        r.s.close()
    return sent


def end_kept(r):
    """The runners of all good starts were kept for this broker."""
    pids = []
    while not pids or pids[-1]:
        r.send(said(82, u32(len(pids))))
        fds, answer = receive(r.s)
        for fd in fds:
            os.close(fd)
        pids.append(int.from_bytes(answer[8:12], "little"))
    for pid in pids[:-1]:
        end_program(r, pid)


def arbitrary(sessions, messages, seed):
    """Returns a line of figures."""
    random.seed(seed)
    sent = lives = 0
    held = None
    while sent < messages:
        if held is None and sent >= messages // 10:
            held = Held(sessions.pid)
        sent += life(sessions)
        lives += 1
    r = Rogue(sessions).seal()
    end_kept(r)
    r.s.close()
    return f"{sent} arbitrary in {lives} lives; {held.check()}"


def main():
    a = arguments(__doc__.splitlines()[0])
    if os.getuid() != 0:
        print("rogue_broker: SKIPPED: two users are needed, so it is root's")
        return
    with tempfile.TemporaryDirectory(prefix="execd-rogue-") as d:
        directory = pathlib.Path(d)
        directory.chmod(0o755)
        sessions = Sessions(directory)
        try:
            clock = Clock()
            print(permitted(sessions, max(int(2000000 * a.scale), 1000), a.seed), clock, flush=True)
            clock = Clock()
            print(arbitrary(sessions, max(int(1000000 * a.scale), 1000), a.seed), clock, flush=True)
        finally:
            sessions.close()


if __name__ == "__main__":
    sys.exit(main())
