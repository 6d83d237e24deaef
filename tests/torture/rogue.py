#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""Compromised programs: a front-end, then a runner, that hold the real
descriptors and say a million arbitrary things and a million good ones out of
order. What is not in the tables is their end; the broker's memory and
descriptors stay as they were, and so does the honest session beside them.
"""
import os
import re
import signal
import sys

from torture import (BUILD, SANITIZED, Clock, Tree, arguments, children, descriptors, in_words, modes, poll, rss_kib,
                     test_user)
from conftest import children_named  # noqa: E402
from execd_client import dial, frame, upgrade

MESSAGES = 1000     # in a life
GIVEN_UP = r"rogue: (?!life|done|runner).*"


class Held:
    """A process's memory and descriptors, when it has seen a few lives."""

    def __init__(self, pid):
        self.pid, self.rss, self.fds = pid, rss_kib(pid), descriptors(pid)

    def check(self, what):
        grown = rss_kib(self.pid) - self.rss
        # The allocator of a sanitizer keeps what was freed.
        assert grown < (64 if SANITIZED else 2) << 10, f"{what} grew by {grown} KiB from {self.rss}"
        # The next front-end may be half way through its start, and a spare runner there now that was not.
        if self.fds is not None:
            poll(lambda: descriptors(self.pid) <= self.fds + 2,
                 what=f"end of {what}'s descriptors, {self.fds} at first")
        return f"{what}: {self.rss} KiB {grown:+d}, {in_words(self.fds)}"


def frontend(mode, user, scale, seed):
    """Returns a line of figures."""
    lives = max(int(1000 * scale), 8)
    clock = Clock()
    with Tree(execd_frontend=BUILD / "tests/torture/rogue_frontend") as tree:
        for name in ("life", "honest"):
            tree.file("execd-frontend", name)
        tree.file("execd-frontend", "settings").write_text(f"{seed} {lives} {MESSAGES}")
        tree.file("execd-frontend", "life").write_text("0")
        s = tree.serve(mode, user, "--detached-ttl", "3s")
        try:
            s.wait_log(f"rogue: life {lives // 4}:", 3600, unless=GIVEN_UP)
            held = Held(s.broker)
            s.wait_log("rogue: done", 3600, unless=GIVEN_UP)
            figures = held.check("broker")
            # Those that were lied about end, too.
            poll(lambda: len(children(s.pid)) <= 3, 30, "end of all but the broker, a front-end and a spare")
        finally:
            s.stop()
    killed = len(re.findall(r"front-end \d+: .*: killing it", s.log))
    # One may be gone before it is killed.
    assert killed >= lives - 1, f"{killed} of {lives} front-ends were killed"
    assert s.log.count("killed by signal 9") >= lives
    assert s.log.count("rogue: ") == lives + 1, re.findall("rogue: .*", s.log)[-3:]
    sent = sum(int(n) for n in re.findall(r"rogue: life \d+: (\d+) messages", s.log))
    return f"front-end, {mode}: {lives} lives, {sent} permitted, {lives * MESSAGES} arbitrary; {figures}; {clock}"


def suffer(s):
    """A client whose session's runner is the rogue. Returns the bytes that
    came; the connection must end, and with a close frame that says why."""
    with dial(s.url) as sock:
        sock.settimeout(20)
        sock.sendall(upgrade())
        while b"\r\n\r\n" not in (head := sock.recv(4096)):
            pass
        assert b" 101 " in head, head
        sock.sendall(frame(1, b'{"id":1,"method":"initialize","params":{"clientName":"x"}}'))
        total, last = 0, b""
        while piece := sock.recv(1 << 20):
            total += len(piece)
            last = (last + piece)[-130:]
    return total, last


def end_spare(s, client):
    """The next session's runner is an honest one that waits already."""
    def spare():
        return [p for p in children_named(s.pid, "execd-runner") if p != s.runner(client)]

    os.kill(poll(spare, 30, "spare runner")[0], signal.SIGKILL)
    s.wait_log("a spare runner for ", 30)


CONFIGURATION = """\
[listener main]
address = ws://127.0.0.1:0
allow-unauthenticated = main
hand-over = {hand_over}
[identity main]
user = {user}
sandbox-allow-unsandboxed = yes
[limits]
detached-ttl = 1s
"""


def serve(tree, mode, user, hand_over):
    conf = tree.path / "execd.conf"
    conf.write_text(CONFIGURATION.format(hand_over=hand_over, user=user.pw_name))
    conf.chmod(0o644)
    return tree.serve_configured(mode, user, conf)


def runner(mode, user, scale, seed, hand_over):
    """Returns a line of figures. Of its ends some take the broker two seconds
    to believe: fewer lives, and longer ones."""
    lives, messages = max(int(250 * scale), 8), 4 * MESSAGES
    clock = Clock()
    with Tree(execd_runner=BUILD / "tests/torture/rogue_runner") as tree:
        settings = tree.file("execd-runner", "settings")
        tree.file("execd-runner", "life").write_text("0")
        s = serve(tree, mode, user, hand_over)
        try:
            honest = s.ready()
            honest.start("h", ["/bin/cat"], pipeStdin=True)
            end_spare(s, honest)
            settings.write_text(f"{seed} {lives} {messages}")
            told = came = 0
            for life in range(lives):
                total, last = suffer(s)
                came += total
                told += b"session ended: runner killed by signal 9" in last
                honest.write("h", f"line {life}\n")
                honest.wait_output("h", f"line {life}\n")
                if life == lives // 4:
                    held = [(Held(s.broker), "broker"), (Held(s.pid), "root"), (Held(s.frontend()), "front-end")]
            figures = "; ".join(h.check(what) for h, what in held)
            assert honest.output("h") == b"".join(b"line %d\n" % i for i in range(lives))
        finally:
            settings.write_text("")
            s.stop()
    assert s.log.count("rogue: runner") == lives
    # Others were told that the session was detached, as the rogue had said, or
    # were cut off within a frame.
    assert told > lives // 10, f"{told} of {lives} clients were told why"
    assert "front-end" not in re.sub(r"front-end \d+: serving", "", re.sub(r"execd-frontend\[.*", "", s.log)), s.log
    return (f"runner, {mode}, hand-over = {hand_over}: {lives} lives, {lives * messages} reports and as many frames "
            f"({came >> 20} MiB), {told} clients told why; {figures}; {clock}")


def main():
    a = arguments(__doc__.splitlines()[0])
    for mode in modes():
        print(frontend(mode, test_user(), a.scale, a.seed), flush=True)
        for hand_over in "yes", "no":
            print(runner(mode, test_user(), a.scale, a.seed, hand_over), flush=True)


if __name__ == "__main__":
    sys.exit(main())
