# SPDX-License-Identifier: ISC
"""A hard stop, as of the power: every program of a server ends at once, and what it made on the disk is swept
at the next start."""
import contextlib
import os
import pathlib
import pwd
import signal

import pytest
from integration_conftest import ROOT, is_alive, poll

from conftest import Shell, as_test_user, children
from policies import managed, path, workspace_write

PROTECTED = [".agents", ".aws", ".codex", ".git"]


@pytest.fixture
def start(spawn, directory, mode, user):
    """Servers that keep their lists in one directory of the test's own."""
    state = directory / "state"
    state.mkdir()
    if ROOT and mode == "user":
        os.chown(state, user.pw_uid, user.pw_gid)
    name = "STATE_DIRECTORY" if mode == "root" else "XDG_STATE_HOME"

    def start_one():
        s = spawn(env={**os.environ, name: str(state)})
        s.lists = (state if mode == "root" else state / "execd") / "masks"
        return s

    return start_one


def stop_hard(server):
    """All of them are stopped before the first is killed, so that none sees another's end."""
    stopped, todo = [], [server.pid]
    while todo:
        pid = todo.pop()
        os.kill(pid, signal.SIGSTOP)
        poll(lambda: pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "TZ", what="stop")
        stopped.append(pid)
        todo += children(pid)
    for pid in stopped:
        with contextlib.suppress(ProcessLookupError):   # it went with the first of its namespace
            os.kill(pid, signal.SIGKILL)
    server.child.wait(10)
    # Whoever still exits has the lock of the list, so the next start would leave the list to it.
    poll(lambda: not any(map(is_alive, stopped)), what="the end of all")
    for c in server.clients:
        c.drop()


def run_under_placeholders(server, place, sandbox=None):
    client = server.ready()
    client.server = server
    shell = Shell(client, sandbox or workspace_write(place), place)
    client.wait_output(shell.start("echo up; exec sleep 1000"), "up")


def lists_of(server):
    return sorted(p.name for p in server.lists.iterdir())


def test_placeholders_are_removed_at_the_next_start(start, place):
    s = start()
    run_under_placeholders(s, place)
    assert sorted(os.listdir(place)) == PROTECTED
    stop_hard(s)
    assert sorted(os.listdir(place)) == PROTECTED and len(lists_of(s)) == 1
    s = start()
    poll(lambda: not os.listdir(place), what="end of the placeholders")
    poll(lambda: all(p.stat().st_size == 0 for p in s.lists.iterdir()), what="end of the list")


def test_a_placeholder_of_a_file_is_removed(start, place):
    """The placeholder of a missing name that the policy denies."""
    box = managed(path("/", "read"), path(place, "write"), path(place / "secret", "deny"))
    s = start()
    run_under_placeholders(s, place, box)
    assert (place / "secret").is_file()
    stop_hard(s)
    assert (place / "secret").is_file()
    start()
    poll(lambda: not os.listdir(place), what="end of the placeholders")


def test_what_somebody_changed_stays(start, place, user):
    """Filled, replaced with the same mode and time, replaced by a link, moved away; only what is as it was goes."""
    s = start()
    run_under_placeholders(s, place)
    stop_hard(s)
    as_test_user(user, """
        chmod 755 .git; echo x > .git/x; touch -d @1.000000001 .git; chmod 555 .git
        mv .aws moved; mkdir -m 555 .aws; touch -r moved .aws; mkdir elsewhere; cp -a moved elsewhere/.aws
        rmdir .codex; ln -s elsewhere .codex
    """, place)
    s = start()
    poll(lambda: not (place / ".agents").exists(), what="end of the placeholder that nobody touched")
    poll(lambda: all(p.stat().st_size == 0 for p in s.lists.iterdir()), what="end of the cleanup")
    assert (place / ".git/x").read_text() == "x\n"
    assert all((place / n).is_dir() for n in (".aws", "moved", "elsewhere/.aws")) and (place / ".codex").is_symlink()
    assert f"{place}/.git has changed since the stop" in s.log and f"{place}/.aws has changed since the stop" in s.log


def test_links_after_a_stop(start, place, user):
    """The next start follows none, neither in the place of a placeholder nor on the way to it; and the policy is no other."""
    work = place / "w"
    as_test_user(user, "mkdir w", place)
    box = managed(path("/", "read"), path(work, "write"), path(work / "secret", "deny"), path(work / "other", "deny"),
                  roots=[work])
    s = start()
    run_under_placeholders(s, work, box)
    stop_hard(s)
    assert {"secret", "other"} < set(os.listdir(work))
    as_test_user(user, """
        mkdir there; chmod 755 w/.git; mv w/.git there/.git; chmod 555 there/.git; ln -s ../there/.git w/.git
        ln w/secret second; ln w/other full; echo kept > full
        mv w there/w; ln -s there/w w
    """, place)
    s = start()
    poll(lambda: all(p.stat().st_size == 0 for p in s.lists.iterdir()), what="end of the cleanup")
    assert sorted(os.listdir(place / "there/w")) == sorted([*PROTECTED, "other", "secret"])
    assert (place / "there/.git").is_dir() and (place / "full").read_text() == "kept\n"


def test_hard_links_after_a_stop(start, place, user):
    """The name goes, and what somebody linked to it stays; with content, both do."""
    box = managed(path("/", "read"), path(place, "write"), path(place / "empty", "deny"), path(place / "full", "deny"))
    s = start()
    run_under_placeholders(s, place, box)
    stop_hard(s)
    as_test_user(user, "ln empty a; ln full b; echo kept > b; touch -d @1 b", place)
    s = start()
    poll(lambda: all(p.stat().st_size == 0 for p in s.lists.iterdir()), what="end of the cleanup")
    assert sorted(os.listdir(place)) == ["a", "b", "full"] and (place / "full").read_text() == "kept\n"


@pytest.mark.parametrize("script", ["rmdir .git; ln -s elsewhere .git", "rmdir .git; cp -r elsewhere .git",
                                    "chmod 755 .git; cp -r elsewhere/* .git; chmod 555 .git; touch -d @1 .git"])
def test_a_name_that_changed_in_between_is_protected(start, place, user, script):
    """Placeholders of the server before, something else of the user's by now, and the same policy on the next server."""
    as_test_user(user, "mkdir -p elsewhere/hooks; echo real > elsewhere/config", place)
    s = start()
    run_under_placeholders(s, place)
    stop_hard(s)
    as_test_user(user, script, place)
    s = start()
    poll(lambda: all(p.stat().st_size == 0 for p in s.lists.iterdir()), what="end of the cleanup")
    client = s.ready()
    client.server = s
    shell = Shell(client, workspace_write(place), place)
    m = client.start(shell.id(), ["/bin/sh", "-c", "echo x > .git/config; echo x > .git/hooks/x; mv .git g; :"],
                     **shell.params())
    if "result" in m:
        client.finished(m["result"]["processId"])
    else:
        assert m["error"]["code"] == -32602, m
    for at in ("elsewhere", ".git"):
        assert (place / at / "config").read_text() == "real\n" and os.listdir(place / at / "hooks") == []


def test_a_server_that_lives_keeps_its_placeholders(start, place):
    """Another one starts beside it: its list is locked, and so are its placeholders."""
    a = start()
    run_under_placeholders(a, place)
    name = lists_of(a)
    b = start()
    b.ready().run("x", ["/bin/true"])
    assert sorted(os.listdir(place)) == PROTECTED and set(lists_of(a)) > set(name)
    b.stop()
    assert sorted(os.listdir(place)) == PROTECTED and lists_of(a) == name
    stop_hard(a)
    start()
    poll(lambda: not os.listdir(place), what="end of the placeholders")


def test_a_clean_stop_leaves_no_list(start, place):
    s = start()
    run_under_placeholders(s, place)
    assert len(lists_of(s)) == 1
    s.stop()
    assert lists_of(s) == [] and os.listdir(place) == []


def test_a_list_is_written_once_for_each_policy(start, place):
    """The placeholders of each command are made anew, and need no new line."""
    s = start()
    client = s.ready()
    client.server = s
    shell = Shell(client, workspace_write(place), place)
    sizes = []
    for _ in range(3):
        shell("true")
        poll(lambda: not os.listdir(place), what="end of the placeholders")
        sizes.append([p.stat().st_size for p in s.lists.iterdir()])
    text = next(s.lists.iterdir()).read_bytes()
    assert sizes[0] == sizes[1] == sizes[2] and len(sizes[0]) == 1
    assert sorted(text.split(b"\0")[1:-1]) == [os.fsencode(place / n) for n in PROTECTED]


def test_nobody_else_can_write_the_lists(start, place, mode, user):
    s = start()
    run_under_placeholders(s, place)
    for p in (s.lists, *s.lists.iterdir()):
        st = p.stat()
        owner = pwd.getpwnam("_execd-broker") if mode == "root" else user
        assert st.st_uid == owner.pw_uid and st.st_mode & 0o077 == 0, p
    s.lists.chmod(0o777)
    other = start()
    other.wait_log("no directory for the lists of placeholders")
    s.lists.chmod(0o700)
