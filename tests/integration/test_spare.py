# SPDX-License-Identifier: ISC
"""Spare runners: the next session of an identity finds its runner made. It is a session's like any other, nobody counts
it before, and it does not stay when what it was told is not so any more."""
import itertools
import os
import pathlib
import signal
import subprocess

import pytest
from conftest import Server, command, digest, is_alive, kill, poll

TOKEN = "a token of the test's"
numbers = itertools.count()


def spares(s):
    """Pids of runners that are no session's. What makes a user namespace is none, and no child that such a one left."""
    found = []
    for pid in pathlib.Path(f"/proc/{s.pid}/task/{s.pid}/children").read_text().split():
        try:
            name = pathlib.Path(f"/proc/{pid}/comm").read_text()
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
            leads = os.getsid(int(pid)) == int(pid)
        except OSError:
            continue
        if name == "execd-runner\n" and words.startswith(b"execd-runner: session") and leads and is_alive(pid) and f"runner {pid}\n" not in s.log:
            found.append(int(pid))
    return found


def spare(s):
    return poll(lambda: spares(s), what="spare")[0]


def gone(s, pid):
    poll(lambda: not pathlib.Path(f"/proc/{pid}").exists(), what="end of the spare")


@pytest.fixture
def start(configured, user, mode):
    def go(identity="", rest=""):
        return configured(text(user, identity, rest))

    return go


def text(user, identity="", rest=""):
    return (f"[listener a]\naddress = ws://127.0.0.1:0\n[identity a]\nuser = {user.pw_name}\n"
            f"token-sha256 = {digest(TOKEN)}\n{identity}[sandbox]\nallow-unsandboxed = yes\n{rest}")


def ready(s):
    c = s.connect(token=TOKEN).ready()
    s.wait_log(f"session {c.session_id[:8]}: opened")
    return c


def taken(s, meanwhile=lambda: None):
    """A session in the runner that waited for it. What another test mounts on this machine drops each spare, and the
    next one comes with the next session: then it is tried again."""
    def attempt():
        waiting = spares(s)
        if waiting:
            meanwhile()
        c = ready(s)
        return s.runner(c) in waiting and c

    return poll(attempt, what="session in the runner that waited")


def run(c, line):
    return c.run_sh(f"p{next(numbers)}", line, envPolicy={
        "inherit": "all", "ignoreDefaultExcludes": True, "exclude": [], "set": {}, "includeOnly": []})


def test_the_next_session_has_it(start, mode, user):
    s = start("environment = COLOUR=blue\nmax-open-files = 333\numask = 027\n")
    assert spares(s) == [], "nobody was there"
    seen = [run(c, "echo $COLOUR; ulimit -n; umask; id; pwd").stdout for c in (ready(s), taken(s), taken(s))]
    assert seen[0] == seen[1] == seen[2] and seen[0].startswith("blue\n333\n0027\n"), seen
    def mounts(c):
        return run(c, "wc -l < /proc/mounts").stdout

    poll(lambda: mounts(taken(s)) == mounts(s.connect(token=TOKEN).ready()), what="equal mounts")
    before = poll(lambda: spares(s) or ready(s).drop(), what="spare")
    s.stop()
    assert not any(map(is_alive, before)) and "spare" not in s.log, s.log


def test_it_is_no_session(start, directory, mode):
    log = directory / "audit"
    s = start("max-sessions = 2\n", f"[audit]\nfile = {log}\n" if mode == "root" else "")
    first = ready(s)
    spare(s)
    second = ready(s)
    assert s.connect(token=TOKEN).request(
        "initialize", {"clientName": "x"})["error"]["message"].count("limit of 2 sessions")
    assert spares(s) == [], "there is no place for another"
    for c in first, second:
        assert run(c, "echo here").stdout == "here\n"
    if mode == "root":
        assert log.read_text().count('"session-opened"') == 2
    assert s.log.count("opened for") == 2


def test_it_begins_at_home_as_it_is_now(start, directory, mode):
    if mode != "root":
        pytest.skip("ONLY ROOT'S SESSIONS BEGIN AT HOME")
    home = directory / "home"
    home.mkdir(mode=0o755)
    s = start(f"home = {home}\n")
    ready(s)

    def another_home():
        home.rename(directory / f"old{next(numbers)}")
        home.mkdir(mode=0o755)

    c = taken(s, another_home)
    assert os.readlink(f"/proc/{s.runner(c)}/cwd") == str(home)


def test_one_that_dies_is_not_used(start):
    s = start()
    for _ in range(2):
        ready(s)
        pid = spare(s)
        kill(pid)
        gone(s, pid)
        c = ready(s)
        assert s.runner(c) != pid and run(c, "echo here").stdout == "here\n"
        assert s.log.count(f"runner {pid}") == 0
    assert "killed by signal" not in s.log, s.log
    poll(lambda: s.log.count("a spare runner for a ended") == 2, what="word of both")


def test_a_reload_ends_it(start, user):
    s = start()
    ready(s)
    pid = spare(s)
    s.reload(text(user, "environment = COLOUR=red\n"))
    gone(s, pid)
    assert spares(s) == [], "the next comes with the next session"
    c = ready(s)
    assert run(c, "echo $COLOUR").stdout == "red\n"
    assert s.runner(c) != pid


def test_it_ends_when_no_session_may_come(start, mode):
    s = start(rest="[limits]\ndrain-timeout = 20s\n")
    c = ready(s)
    pid = spare(s)
    s.child.send_signal(signal.SIGTERM)
    gone(s, pid)
    assert run(c, "echo still here").stdout == "still here\n"
    assert spares(s) == []


def test_its_end_is_no_error(start, mode):
    """It is hung up before root, which is stopped here, kills it; and that is no line in the log."""
    s = start()
    ready(s)
    pid = spare(s)
    os.kill(s.pid, signal.SIGSTOP)
    try:
        os.kill(s.broker, signal.SIGUSR1)
        poll(lambda: not is_alive(pid), what="end of the spare")
    finally:
        os.kill(s.pid, signal.SIGCONT)
    gone(s, pid)
    assert "the broker is gone" not in s.log


def test_nothing_of_it_outlives_a_killed_monitor(start):
    s = start()
    ready(s)
    pid = spare(s)
    kill(s.pid)
    s.child.wait(10)
    poll(lambda: not is_alive(pid), what="end of the spare")


def test_mounts_are_seen(user, mode, directory):
    """Its copy of the mounts is not older than the session."""
    if mode != "root":
        pytest.skip("ONLY ROOT'S SESSIONS HAVE A COPY OF THE MOUNTS")
    s = Server.__new__(Server)
    s._start(mode, ["unshare", "--mount", "--propagation", "private", *command(mode, user, ["--listen", "ws://127.0.0.1:0"])],
             None)
    try:
        ready(s)
        pid = spare(s)
        disk = directory / "disk"
        disk.mkdir()
        subprocess.run(["nsenter", "-t", str(s.pid), "-m", "mount", "-t", "tmpfs", "none", str(disk)], check=True)
        gone(s, pid)
        subprocess.run(["nsenter", "-t", str(s.pid), "-m", "sh", "-c", f"echo new > {disk}/file"], check=True)
        assert run(ready(s), f"cat {disk}/file").stdout == "new\n"
    finally:
        s.stop()
