# SPDX-License-Identifier: ISC
"""A hard stop, as of the power: every program of a server ends at once, and what it made on the disk is removed
when its user comes again."""
import contextlib
import ctypes
import fcntl
import os
import pathlib
import select
import signal

import pytest
from integration_conftest import ROOT, is_alive, poll

from conftest import Shell, as_test_user, children
from execd_client import TIMEOUT, start_params
from policies import managed, path, uri, workspace_write

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
        s.lists = state / "placeholders" / str(user.pw_uid) if mode == "root" else state / "execd/placeholders"
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
    # Whoever still exits has the lock of the list, so the next session would leave the list to it.
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


def come_again(start):
    """A new server, and a session of the user."""
    s = start()
    s.client = s.ready()
    s.client.server = s
    poll(lambda: not lists_of(s), what="end of the lists")
    return s


def test_placeholders_are_removed_when_the_user_comes_again(start, place):
    s = start()
    run_under_placeholders(s, place)
    assert sorted(os.listdir(place)) == PROTECTED
    stop_hard(s)
    assert sorted(os.listdir(place)) == PROTECTED and len(lists_of(s)) == 1
    come_again(start)
    assert os.listdir(place) == []


def test_a_placeholder_of_a_file_is_removed(start, place):
    """The placeholder of a missing name that the policy denies."""
    box = managed(path("/", "read"), path(place, "write"), path(place / "secret", "deny"))
    s = start()
    run_under_placeholders(s, place, box)
    assert (place / "secret").is_file()
    stop_hard(s)
    assert (place / "secret").is_file()
    come_again(start)
    assert os.listdir(place) == []


def test_what_somebody_changed_stays(start, place, user):
    """Filled, replaced by one that looks the same, replaced by a link, moved away; only what is as it was goes."""
    s = start()
    run_under_placeholders(s, place)
    stop_hard(s)
    as_test_user(user, """
        echo x > .git/x
        mv .aws moved; mkdir .aws; touch -r moved .aws; mkdir elsewhere; cp -a moved elsewhere/.aws
        rmdir .codex; ln -s elsewhere .codex
    """, place)
    come_again(start)
    assert not (place / ".agents").exists(), "nobody touched it"
    assert (place / ".git/x").read_text() == "x\n"
    assert all((place / n).is_dir() for n in (".aws", "moved", "elsewhere/.aws")) and (place / ".codex").is_symlink()


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
        mkdir there; mv w/.git there/.git; ln -s ../there/.git w/.git
        ln w/secret second; ln w/other full; echo kept > full
        mv w there/w; ln -s there/w w
    """, place)
    come_again(start)
    assert sorted(os.listdir(place / "there/w")) == sorted([*PROTECTED, "other", "secret"])
    assert (place / "there/.git").is_dir() and (place / "full").read_text() == "kept\n"


def test_hard_links_after_a_stop(start, place, user):
    """Whoever linked to a placeholder has changed it: both names stay."""
    box = managed(path("/", "read"), path(place, "write"), path(place / "empty", "deny"), path(place / "full", "deny"))
    s = start()
    run_under_placeholders(s, place, box)
    stop_hard(s)
    as_test_user(user, "ln empty a; ln full b; echo kept > b; touch -d @1 b", place)
    come_again(start)
    assert sorted(os.listdir(place)) == ["a", "b", "empty", "full"] and (place / "full").read_text() == "kept\n"


@pytest.mark.parametrize("script", ["rmdir .git; ln -s elsewhere .git", "rmdir .git; cp -r elsewhere .git",
                                    "cp -r elsewhere/* .git", "cp -r elsewhere/* .git; touch -d @1 .git"])
def test_a_name_that_changed_in_between_is_protected(start, place, user, script):
    """Placeholders of the server before, something else of the user's by now, and the same policy on the next server."""
    as_test_user(user, "mkdir -p elsewhere/hooks; echo real > elsewhere/config", place)
    s = start()
    run_under_placeholders(s, place)
    stop_hard(s)
    as_test_user(user, script, place)
    s = come_again(start)
    client = s.client
    shell = Shell(client, workspace_write(place), place)
    m = client.start(shell.id(), ["/bin/sh", "-c", "echo x > .git/config; echo x > .git/hooks/x; mv .git g; :"],
                     **shell.params())
    if "result" in m:
        client.finished(m["result"]["processId"])
    else:
        assert m["error"]["code"] == -32602, m
    for at in ("elsewhere", ".git"):
        assert (place / at / "config").read_text() == "real\n" and os.listdir(place / at / "hooks") == []


def opened(path):
    """Returns a function that waits until somebody opens the file once more."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.inotify_init1(0)
    assert fd >= 0 and libc.inotify_add_watch(fd, os.fsencode(path), 0x20) >= 0    # IN_OPEN
    return lambda: select.select([fd], [], [], TIMEOUT)[0] and os.read(fd, 4096)


def test_a_list_that_its_last_user_holds_for_longer(start, place):
    """He may be stopped while he removes it: who comes meanwhile waits for him."""
    s = start()
    a, b = s.ready(), s.ready()
    id = Shell(a, workspace_write(place), place).start("echo up; exec sleep 1000")
    a.wait_output(id, "up")
    name, = lists_of(s)
    a.terminate(id)
    a.finished(id)
    poll(lambda: not lists_of(s), what="end of the list")
    held = os.open(s.lists / name, os.O_RDWR | os.O_CREAT, 0o600)
    os.fchown(held, *os.stat(s.lists)[4:6])
    fcntl.flock(held, fcntl.LOCK_EX)
    wait = opened(s.lists / name)
    b.post("process/start", start_params("p", ["/bin/echo", "fine"], cwd=uri(place), sandbox=workspace_write(place)))
    for _ in range(20):
        assert wait(), s.log
    (s.lists / name).unlink()
    os.close(held)
    assert b.finished("p").stdout == "fine\n"


def test_a_server_that_lives_keeps_its_placeholders(start, place):
    """Two servers of one user in one workspace: whoever ends last removes them, also what the other one made."""
    a = start()
    run_under_placeholders(a, place)
    b = start()
    client = b.ready()
    client.server = b
    shell = Shell(client, workspace_write(place), place)
    assert shell("mkdir .git/x 2> /dev/null; rmdir .git 2> /dev/null; echo tried") == "tried\n"
    assert sorted(os.listdir(place)) == PROTECTED and len(lists_of(a)) == 1
    id = shell.start("echo up; read x; mkdir .git/x .aws/x; rmdir .git; echo tried", pipeStdin=True)
    client.wait_output(id, "up")
    a.stop()
    assert sorted(os.listdir(place)) == PROTECTED
    client.write(id, "\n")
    r = client.finished(id)
    assert r.stdout == "up\ntried\n" and os.listdir(place) == [] and lists_of(b) == []


def test_two_servers_and_a_hard_stop(start, place):
    """The server that is left removes what the killed one made, with its own last command."""
    a, b = start(), start()
    run_under_placeholders(a, place)
    client = b.ready()
    client.server = b
    shell = Shell(client, workspace_write(place), place)
    id = shell.start("echo up; read x; mkdir .git/x; echo tried", pipeStdin=True)
    client.wait_output(id, "up")
    stop_hard(a)
    assert sorted(os.listdir(place)) == PROTECTED
    client.write(id, "\n")
    assert client.finished(id).stdout == "up\ntried\n" and os.listdir(place) == []


def test_a_clean_stop_leaves_no_list(start, place):
    s = start()
    run_under_placeholders(s, place)
    assert len(lists_of(s)) == 1
    s.stop()
    assert lists_of(s) == [] and os.listdir(place) == []


def test_nobody_else_reaches_the_lists(start, place, mode, user, directory):
    s = start()
    run_under_placeholders(s, place)
    st = s.lists.stat()
    assert st.st_uid == user.pw_uid and st.st_mode & 0o077 == 0
    if mode == "root":   # not even the user's own programs
        st = s.lists.parent.stat()
        assert st.st_uid == 0 and st.st_mode & 0o077 == 0


@pytest.mark.parametrize("script", ["ls {lists}", "touch {lists}/x", "flock -n {lists}/* true"])
def test_no_sandbox_reaches_the_lists(start, place, script):
    """Also with a policy that names their directory."""
    s = start()
    client = s.ready()
    client.server = s
    box = managed(path("/", "read"), path(place, "write"), path(s.lists, "write"))
    r = Shell(client, box, place).run(script.format(lists=s.lists))
    assert r.code != 0 and len(lists_of(s)) <= 1, r
