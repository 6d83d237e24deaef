# SPDX-License-Identifier: ISC
"""How processes are brought to their end: signals by name, graceful ends,
deadlines; and what is told of it (doc/protocol.md section 17)."""
import os
import pathlib
import re
import time

import pytest
from conftest import ROOT, digest, pids_with, poll


def wait(client, id, **params):
    return client.call("process/wait", {"processId": id, **params})


def send(client, id, name, target):
    return client.call("process/signal", {"processId": id, "signal": name, "target": target})["delivered"]


def marker(n):
    """A number of seconds to sleep that no other process of this machine has."""
    return f"{1000 + n}.{os.getpid()}{time.monotonic_ns() % 10**9}"


FAMILY = """
trap 'echo leader' USR1
(trap 'echo member; exit' USR1; echo ready; while :; do sleep 0.1; done) &
setsid sh -c 'trap "echo other; exit" USR1; echo ready; while :; do sleep 0.1; done' &
while :; do sleep 0.1; done"""


@pytest.mark.parametrize("target, heard", [
    ("process", {"leader"}), ("group", {"leader", "member"}), ("tree", {"leader", "member", "other"})])
def test_signal_targets(client, target, heard):
    client.sh("a", FAMILY)
    client.wait(lambda: client.output("a").count(b"ready") == 2, what="two readies")
    assert send(client, "a", "USR1", target)

    def words():
        return set(client.output("a").decode().split()) & {"leader", "member", "other"}

    client.wait(lambda: words() >= heard, what=f"{heard}")
    assert words() == heard
    assert send(client, "a", "KILL", "tree")
    assert client.finished("a").code == 137


def test_signals_by_name(client):
    for name, number in (("HUP", 1), ("INT", 2), ("QUIT", 3), ("TERM", 15), ("USR2", 12), ("PWR", 30)):
        client.start(name, ["/bin/sleep", "100"])
        assert send(client, name, name, "process")
        assert client.finished(name).code == 128 + number
        assert wait(client, name)["signal"] == name
        assert not send(client, name, name, "group")
    client.start("s", ["/bin/sh", "-c", "echo ready; read x; echo $x"], pipeStdin=True)
    client.wait_output("s", "ready")
    assert send(client, "s", "STOP", "group")
    client.write("s", "line\n")
    assert wait(client, "s", timeoutMs=100)["running"]
    assert client.output("s") == b"ready\n"
    assert send(client, "s", "CONT", "group")
    assert client.finished("s").stdout == "ready\nline\n"


def test_signal_errors(client):
    assert client.error("process/signal", {"processId": "nope", "signal": "TERM", "target": "group"}) == \
        (-32600, "unknown process id nope")
    assert client.error("process/signal", {"processId": "nope", "signal": "TERM"}) == \
        (-32602, "unknown variant `TERM`, expected `interrupt`")


def test_tree_of_a_leader_that_ended(client):
    """It left a member that holds the output, which can still be reached."""
    client.sh("a", "sleep 1000 & echo started")
    client.exited("a")
    assert send(client, "a", "TERM", "group")
    assert client.finished("a").code == 0


def test_a_killed_tree_does_not_fork_away(client):
    """Generations that come and go while one of them is killed."""
    n = marker(1)
    client.sh("a", f"f() {{ (sleep {n} & sleep 0.02; f) & sleep 0.03; exit; }}; setsid sh -c 'sleep {n} & wait' & "
                   "echo ready; (f) & wait; while :; do sleep 1; done")
    client.wait_output("a", "ready")
    poll(lambda: len(pids_with(n)) > 20, what="many generations")
    assert send(client, "a", "KILL", "tree")
    client.exited("a")
    poll(lambda: not pids_with(n), what="nobody")


def terminate(client, id, **params):
    return client.call("process/terminate", {"processId": id, "mode": "graceful", **params})["running"]


def test_graceful_end(client):
    client.sh("a", 'trap "echo bye; exit 7" TERM; echo ready; while :; do sleep 0.1; done')
    client.wait_output("a", "ready")
    assert terminate(client, "a", timeoutMs=60000)
    r = client.finished("a")
    assert (r.stdout, r.code) == ("ready\nbye\n", 7)
    assert not terminate(client, "a")
    assert not terminate(client, "nope")


def test_graceful_end_of_who_does_not_listen(client):
    client.sh("a", 'trap "echo asked" TERM; echo ready; while :; do sleep 0.1; done')
    client.wait_output("a", "ready")
    assert terminate(client, "a", timeoutMs=2000)
    r = client.finished("a")
    assert (r.stdout, r.code) == ("ready\nasked\n", 137)
    r = wait(client, "a")
    assert (r["signal"], r["timedOut"]) == ("KILL", False)


def test_graceful_end_of_the_stopped_and_of_who_has_a_terminal(client):
    client.sh("a", "echo ready; kill -STOP $$; echo went on")
    client.wait_output("a", "ready")
    assert terminate(client, "a", timeoutMs=60000)
    assert client.finished("a").code == 143
    script = 'trap "" TERM; trap "echo hangup; exit 5" HUP; echo ready; while :; do sleep 0.1; done'
    client.sh("tty", script, tty=True)
    client.sh("pipe", script)
    for id in ("tty", "pipe"):
        client.wait_output(id, "ready")
        assert terminate(client, id, timeoutMs=60000 if id == "tty" else 300)
    assert client.finished("tty").code == 5 and client.finished("tty").pty.endswith("hangup\r\n")
    assert client.finished("pipe").code == 137


@pytest.mark.parametrize("redirect", ["", ">/dev/null 2>&1"])
def test_graceful_end_leaves_nobody(client, redirect):
    """Who holds the output keeps it open until the grace is over; who does not
    is killed then, too."""
    n = marker(2)
    client.sh("a", f'trap "exit 3" TERM; (trap "" TERM; sleep {n}; sleep {n}) {redirect} & echo ready; wait')
    client.wait_output("a", "ready")
    poll(lambda: pids_with(n), what="the sleep")
    assert terminate(client, "a", timeoutMs=300)
    assert client.finished("a").code == 3
    poll(lambda: not pids_with(n), what="nobody")


def test_deadline(client):
    n = marker(3)
    client.sh("a", f"setsid sleep {n} & echo out; wait", timeoutMs=2000)
    r = client.finished("a")
    assert (r.stdout, r.code) == ("out\n", 137)
    assert r.events[-2]["params"]["timedOut"] is True
    r = wait(client, "a")
    assert (r["timedOut"], r["signal"]) == (True, "KILL")
    poll(lambda: not pids_with(n), what="nobody")
    assert client.run("b", ["sleep", "100"], timeoutMs=0).code == 137


def test_no_deadline_is_met_early(client):
    for extra in ({}, {"timeoutMs": 60000}, {"timeoutMs": 2**64 - 1}, {"timeoutMs": None}):
        id = f"a{extra}"
        r = client.run_sh(id, "exit 3", **extra)
        assert r.code == 3 and "timedOut" not in r.events[-2]["params"]
        assert wait(client, id)["timedOut"] is False


def test_a_deadline_counts_for_what_was_left_behind(client):
    n = marker(4)
    client.sh("a", f"sleep {n} & exit 5", timeoutMs=300)
    r = client.finished("a")
    assert r.code == 5 and "timedOut" not in r.events[-2]["params"]
    poll(lambda: not pids_with(n), what="nobody")


def test_a_deadline_goes_on_while_nobody_is_attached(spawn):
    s = spawn()
    c = s.ready()
    n = marker(5)
    c.start("a", ["/bin/sleep", n], timeoutMs=400)
    c.drop()
    s.wait_log("detached")
    poll(lambda: not pids_with(n), what="nobody")
    c = s.ready(resumeSessionId=c.session_id)
    r = wait(c, "a")
    assert (r["timedOut"], r["exitCode"]) == (True, 137)


READ_ONLY = {"windowsSandboxLevel": "disabled", "permissions": {
    "type": "managed", "network": "restricted", "file_system": {"type": "restricted", "entries": [
        {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"}]}}}


def test_ends_of_sandboxed_commands(client):
    """The same from outside, where their pids are others."""
    for i, end in enumerate((
            lambda: send(client, "a0", "TERM", "tree"), lambda: send(client, "a1", "KILL", "tree"),
            lambda: terminate(client, "a2", timeoutMs=60000), lambda: client.terminate("a3"), None)):
        n = marker(10 + i)
        client.sh(f"a{i}", f"setsid sleep {n} & sleep {n} & echo ready; wait", sandbox=READ_ONLY,
                  **({} if end else {"timeoutMs": 500}))
        if end:
            client.wait_output(f"a{i}", "ready")
            poll(lambda: len(pids_with(n)) > 2, what="all of them")
            assert end()
        client.finished(f"a{i}")
        poll(lambda: not pids_with(n), what="nobody")
    assert wait(client, "a4")["timedOut"] is True
    client.sh("tty", "stty size; read x; stty size", sandbox=READ_ONLY, tty=True, rows=3, cols=7, term="dumb")
    client.wait_output("tty", "3 7")
    assert client.call("process/resize", {"processId": "tty", "rows": 9, "cols": 9}) == {}
    client.write("tty", "\n")
    assert client.finished("tty").pty.endswith("9 9\r\n")


def test_exit_details(client):
    client.sh("a", "head -c 100000 /dev/zero; echo err >&2; i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; exit 4")
    r = wait(client, "a")
    usage = r.pop("rusage")
    assert r == {"running": False, "exitCode": 4, "closed": True, "sandboxDenied": False, "signal": None,
                 "core": False, "timedOut": False, "oomKilled": False, "killedBy": None,
                 "bytesWritten": 100004, "bytesDropped": 0}
    assert usage["userMs"] + usage["systemMs"] > 0 and usage["maxRssBytes"] > 1 << 19
    client.sh("b", "read x", pipeStdin=True)
    r = wait(client, "b", timeoutMs=0)
    assert (r["running"], r["exitCode"], r["rusage"], r["signal"]) == (True, None, None, None)
    client.terminate("b")
    r = wait(client, "b")
    assert (r["signal"], r["killedBy"]) == ("KILL", "client")


def test_bytes_dropped(client):
    client.run_sh("a", "head -c 3000000 /dev/zero")
    r = wait(client, "a")
    kept = client.call("process/read", {"processId": "a"})["chunks"]
    assert r["bytesWritten"] == 3000000
    assert r["bytesDropped"] == 3000000 - sum(len(c["chunk"]) * 3 // 4 - c["chunk"].count("=") for c in kept)


def memory_cgroup():
    """A new cgroup with 128 MiB of memory, or None."""
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for base, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
            if (controllers == "memory") != base.endswith("memory") or controllers not in ("", "memory"):
                continue
            group = pathlib.Path(f"{base}{path}/execd-test-{os.getpid()}")
            try:
                group.mkdir()
                (group / limit).write_text(str(128 << 20))
                return group
            except OSError:
                if group.exists():
                    group.rmdir()
    return None


@pytest.mark.skipif(not ROOT, reason="MEMORY LIMITS ARE NOT TESTED: this needs root")
def test_killed_for_want_of_memory(configured, user, mode):
    """By its own group, or, where execd makes none, by the one that it was started in."""
    group = memory_cgroup()
    if group is None:
        pytest.skip("MEMORY LIMITS ARE NOT TESTED: no memory cgroup can be made here")
    limit = "command-memory-max = 128M\n" if mode == "root" else ""
    s = configured(f"[listener a]\naddress = ws://127.0.0.1:0\n[identity one]\nuser = {user.pw_name}\n"
                   f"token-sha256 = {digest('t' * 40)}\n{limit}")
    try:
        (group / "cgroup.procs").write_text(str(s.pid))
        c = s.connect(token="t" * 40).ready()
        c.sh("killed", "kill -9 $$")
        assert wait(c, "killed")["oomKilled"] is False
        c.sh("survivor", "sleep 100")
        c.start("hog", ["/usr/bin/python3", "-c", "bytearray(1 << 30)"])
        r = wait(c, "hog")
        assert (r["oomKilled"], r["signal"], r["exitCode"]) == (True, "KILL", 137)
        c.terminate("survivor")
        assert wait(c, "survivor")["oomKilled"] is False, "it was killed by us"
    finally:
        s.stop()
        poll(lambda: not (group / "cgroup.procs").read_text(), what="an empty cgroup")
        group.rmdir()


@pytest.mark.parametrize("how", ["terminate", "signal", "deadline"])
def test_an_end_without_a_descriptor_left(configured, user, mode, how):
    """A client that has taken every descriptor of its runner cannot keep what
    it started from being killed."""
    s = configured(f"[listener a]\naddress = ws://127.0.0.1:0\n[identity one]\nuser = {user.pw_name}\n"
                   f"token-sha256 = {digest('t' * 40)}\nmax-open-files = 80\nsandbox-max-profile = full\n"
                   "sandbox-allow-unsandboxed = yes\n")
    c = s.connect(token="t" * 40).ready()
    n = marker(5)
    left = f"setsid sleep {n} & sleep {n} & echo ready; wait"
    c.sh("a", left, **({"timeoutMs": 1500} if how == "deadline" else {}))
    c.wait_output("a", "ready")
    taken = 0
    for kind in ({"pipeStdin": True}, {}, {"tty": True}):
        while "result" in c.start(f"p{taken}", ["/bin/sleep", "1000"], **kind):
            taken += 1
    assert taken > 3
    # Those take one more each: the process that answers.
    c.request("fs/readFile", {"path": "file:///etc/hostname"})
    c.request("http/request", {"requestId": "q", "method": "GET", "url": "http://127.0.0.1:1/", "headers": []})
    if how == "signal":
        assert send(c, "a", "KILL", "tree")
    elif how == "terminate":
        assert c.terminate("a")
    assert c.finished("a").code == 137
    if mode == "root" or how != "terminate":
        poll(lambda: not pids_with(n), what="nobody")
    assert not re.search("kill.*: Too many", s.log)
