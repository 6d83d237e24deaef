# SPDX-License-Identifier: ISC
"""Control groups of an ordinary user: those that were delegated to him hold his commands as root's would."""
import errno
import itertools
import os
import re
import subprocess

import pytest
from conftest import EXECD, ROOT, Server, as_user, is_alive, missing_layers, pids_with, poll
from test_ceiling import policy
from test_groups import HIERARCHIES, NO_VERSION_1, groups, marked, mounts

pytestmark = pytest.mark.skipif(not ROOT, reason="DELEGATED GROUPS ARE NOT TESTED: to delegate them takes root")
numbers = itertools.count()
JOIN = 'for file in $JOINS; do echo $$ > "$file"; done'
EXEC = 'exec "$@"\n'
HANDED = ("cgroup.procs", "tasks", "cgroup.subtree_control")


@pytest.fixture(autouse=True)
def once(mode):
    if mode != "user":
        pytest.skip("of an ordinary user's execd")


def removed(at):
    """What has ended is in its group until it is reaped."""
    try:
        at.rmdir()
    except OSError as e:
        assert e.errno == errno.EBUSY, e
        return False
    return True


@pytest.fixture
def delegated(user):
    """Starts the user's execd in groups that are his, as a systemd unit with Delegate=yes does."""
    started, made = [], []

    def make(hierarchies, script=EXEC):
        name = f"execd-test-{os.getpid()}-{next(numbers)}"
        places = [mounts()[h] / groups(os.getpid())[h].lstrip("/") / name for h in hierarchies]
        for at in places:
            at.mkdir()
            made.append(at)
            for file in (at, *(at / f for f in HANDED if (at / f).exists())):
                os.chown(file, user.pw_uid, user.pw_gid)
        joins = " ".join(str(at / "cgroup.procs") for at in places)
        s = Server.__new__(Server)
        s._start("user", ["unshare", "-m", "--propagation", "private", "sh", "-c", script.replace(EXEC, f"{JOIN}\n{EXEC}"), "sh",
                          *as_user(user, [str(EXECD), "--listen", "ws://127.0.0.1:0"])], {**os.environ, "JOINS": joins})
        started.append(s)
        return s, name

    yield make
    for s in started:
        s.stop()
    for at in made:
        assert not [x for x in at.iterdir() if x.is_dir()], "what execd made goes with it"
        poll(lambda: removed(at), what=f"the end of all in {at}")


def check_ends(client, id, pids, marker):
    """Also who has left the command's session and parent."""
    m = client.request("process/terminate", {"processId": id})
    assert m["result"]["running"] is True, m
    poll(lambda: not any(is_alive(p) for p in pids), what="end of all of it")
    assert not pids_with(marker)


def leave(client, id, work, **extra):
    """The marker is in no shell's arguments: those who start the daemon end at once."""
    marker = marked(id)
    m = client.start(id, ["/bin/sh", "-c", "(setsid sh -c 'sleep $MARKER & exit' &); sleep $MARKER; :"],
                     env={"PATH": "/usr/bin:/bin", "MARKER": marker}, cwd=f"file://{work}", **extra)
    assert "result" in m, m
    return m["result"], poll(lambda: len(p := pids_with(marker)) == 2 and p, what="daemon and command"), marker


def start_both(client, user, work):
    yield "plain", {}
    if not missing_layers("user", user):
        yield "held", {"sandbox": policy(work)}


@pytest.fixture
def work(directory, user):
    at = directory / "work"
    at.mkdir()
    os.chown(at, user.pw_uid, user.pw_gid)
    return at


def test_version_1(delegated, user, work):
    there = [h for h in HIERARCHIES if h in mounts() and h in groups(os.getpid())]
    if "pids" not in there:
        pytest.skip("VERSION 1 IS NOT TESTED: no such hierarchy counts processes here")
    s, name = delegated(there)
    c = s.connect().ready()
    runner = groups(s.runner(c))
    # Nobody limits processor time: no group for it.
    assert all(re.search(f"/{name}$" if h == "cpu" else rf"/{name}/execd/sessions/identity-1/session-\d+$", runner[h])
               for h in there), runner
    for id, extra in start_both(c, user, work):
        result, pids, marker = leave(c, id, work, **extra)
        for pid in pids:
            assert re.fullmatch(re.escape(runner["pids"]) + r"/command-\d+", groups(pid)["pids"]), groups(pid)
        if extra:
            assert "processes" in result["sandbox"]["enforced"]["controlGroupLimits"], result
        check_ends(c, id, pids, marker)
    assert "none is delegated" not in s.log


LEFT = """for file in $JOINS; do
    at=${file%/*}
    mkdir -p "$at/execd/x" "$at/execd-1/sessions/session-1"
    echo LEFT > "$at/execd/x/cgroup.procs"
    chown -R USER "$at/execd" "$at/execd-1"
done
"""


def test_what_a_killed_execd_left(delegated, user):
    """Its group is the next one's, which removes what is in it; but not a group that still has a process."""
    there = [h for h in HIERARCHIES if h in mounts() and h in groups(os.getpid())]
    if "pids" not in there:
        pytest.skip("VERSION 1 IS NOT TESTED: no such hierarchy counts processes here")
    left = subprocess.Popen(["sleep", "1000"])
    try:
        s, name = delegated(there, LEFT.replace("LEFT", str(left.pid)).replace("USER", user.pw_name) + EXEC)
        runner = groups(s.runner(s.connect().ready()))
        assert runner["pids"].endswith(f"/{name}/execd-1/sessions/identity-1/session-1"), runner
        places = [mounts()[h] / groups(os.getpid())[h].lstrip("/") / name for h in there]
        assert not any((at / "execd-1/sessions/session-1").exists() for at in places)
    finally:
        left.kill()
        left.wait()
        for at in places:
            poll(lambda at=at: removed(at / "execd/x") and removed(at / "execd"), what="end of what was left")


def test_version_2(delegated, user, work):
    if "" not in mounts():
        pytest.skip("VERSION 2 IS NOT TESTED: no such hierarchy is mounted here")
    s, name = delegated([""], NO_VERSION_1)
    c = s.connect().ready()
    runner = groups(s.runner(c))[""]
    assert re.search(rf"/{name}/execd/sessions/identity-1/session-\d+/runner$", runner), runner
    for id, extra in start_both(c, user, work):
        _, pids, marker = leave(c, id, work, **extra)
        for pid in pids:
            assert re.fullmatch(re.escape(runner.removesuffix("runner")) + r"command-\d+", groups(pid)[""]), groups(pid)
        check_ends(c, id, pids, marker)


def test_only_what_is_his(delegated, user, work):
    """Of the hierarchies one is his: it counts, and the others are no obstacle."""
    if "memory" not in mounts() or "pids" not in mounts():
        pytest.skip("NOT TESTED: this host has no version 1 hierarchies")
    s, name = delegated(["pids"])
    c = s.connect().ready()
    runner = groups(s.runner(c))
    assert re.search(rf"/{name}/execd/sessions/identity-1/session-\d+$", runner["pids"]), runner
    assert runner["memory"] == groups(os.getpid())["memory"]
    s.wait_log("control groups: none here counts memory; ")
    _, pids, marker = leave(c, "plain", work)
    check_ends(c, "plain", pids, marker)


def test_none(delegated, work):
    s, _ = delegated([])
    s.wait_log("control groups: none is delegated to this user; resource limits hold sandboxed commands to "
               "command-tasks-max and command-memory-max")
    assert s.connect().ready().run("x", ["/bin/echo", "in"]).stdout == "in\n"


def test_the_doctor_agrees(user):
    """He is told that he has none, not that root would."""
    out = subprocess.run(as_user(user, [str(EXECD), "doctor"]), capture_output=True, text=True, timeout=60).stdout
    assert re.search(r"^without +control groups, where doctor was started: .*Delegate=yes", out, re.M), out


# A mount that shows the group `place` without its last character, and no other one.
BESIDE = JOIN + """
place=$(dirname "$JOINS"); beside=${place%?}
mkdir "$beside" && mount --bind "$beside" "$AT" && umount -l "$MOUNT" || exit 1
JOINS=
""" + EXEC


def test_a_group_beside_the_one_that_is_mounted(delegated, directory, monkeypatch):
    """/ab is not below /a: what is called b beside the mount of /a is none of its groups."""
    if "pids" not in mounts():
        pytest.skip("NOT TESTED: this host has no version 1 hierarchy that counts processes")
    at = directory / "at"
    others = [directory / f"at{i}" for i in range(10)]
    for d in at, *others:
        d.mkdir()
        d.chmod(0o777)
    own = mounts()["pids"] / groups(os.getpid())["pids"].lstrip("/")
    monkeypatch.setenv("AT", str(at))
    monkeypatch.setenv("MOUNT", str(mounts()["pids"]))
    s, name = delegated(["pids"], BESIDE)
    try:
        s.connect().ready()
        assert "none is delegated" in s.log
        assert not any(list(d.iterdir()) for d in others), "no directory of others is a group"
    finally:
        s.stop()
        (own / name[:-1]).rmdir()
