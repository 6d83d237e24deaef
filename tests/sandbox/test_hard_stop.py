"""A hard stop, as of the power: every program of a server ends at once, and what it made on the disk is swept
at the next start."""
import os
import pathlib
import signal

import pytest
from integration_conftest import ROOT, poll

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
        os.kill(pid, signal.SIGKILL)
    server.child.wait(10)
    for c in server.clients:
        c.drop()


def run_under_masks(server, place, sandbox=None):
    client = server.ready()
    client.server = server
    shell = Shell(client, sandbox or workspace_write(place), place)
    client.wait_output(shell.start("echo up; exec sleep 1000"), "up")


def lists_of(server):
    return sorted(p.name for p in server.lists.iterdir())


def test_masks_are_swept_at_the_next_start(start, place):
    s = start()
    run_under_masks(s, place)
    assert sorted(os.listdir(place)) == PROTECTED
    stop_hard(s)
    assert sorted(os.listdir(place)) == PROTECTED and len(lists_of(s)) == 1
    s = start()
    poll(lambda: not os.listdir(place), what="end of the masks")
    poll(lambda: all(p.stat().st_size == 0 for p in s.lists.iterdir()), what="end of the list")


def test_a_mask_of_a_file_is_swept(start, place):
    """The mask of a missing name that the policy denies."""
    box = managed(path("/", "read"), path(place, "write"), path(place / "secret", "deny"))
    s = start()
    run_under_masks(s, place, box)
    assert (place / "secret").is_file()
    stop_hard(s)
    assert (place / "secret").is_file()
    start()
    poll(lambda: not os.listdir(place), what="end of the masks")


def test_what_somebody_changed_stays(start, place, user):
    """Filled, replaced with the same mode and time, replaced by a link, moved away; only what is as it was goes."""
    s = start()
    run_under_masks(s, place)
    stop_hard(s)
    as_test_user(user, """
        chmod 755 .git; echo x > .git/x; touch -d @1.000000001 .git; chmod 555 .git
        mv .aws moved; mkdir -m 555 .aws; touch -r moved .aws; mkdir elsewhere; cp -a moved elsewhere/.aws
        rmdir .codex; ln -s elsewhere .codex
    """, place)
    s = start()
    poll(lambda: not (place / ".agents").exists(), what="end of the mask that nobody touched")
    poll(lambda: all(p.stat().st_size == 0 for p in s.lists.iterdir()), what="end of the sweep")
    assert (place / ".git/x").read_text() == "x\n"
    assert all((place / n).is_dir() for n in (".aws", "moved", "elsewhere/.aws")) and (place / ".codex").is_symlink()
    assert f"{place}/.git is not as a stop left it" in s.log and f"{place}/.aws is not as a stop left it" in s.log


def test_a_server_that_lives_keeps_its_masks(start, place):
    """Another one starts beside it: its list is locked, and so are its masks."""
    a = start()
    run_under_masks(a, place)
    name = lists_of(a)
    b = start()
    b.ready().run("x", ["/bin/true"])
    assert sorted(os.listdir(place)) == PROTECTED and set(lists_of(a)) > set(name)
    b.stop()
    assert sorted(os.listdir(place)) == PROTECTED and lists_of(a) == name
    stop_hard(a)
    start()
    poll(lambda: not os.listdir(place), what="end of the masks")


def test_a_clean_stop_leaves_no_list(start, place):
    s = start()
    run_under_masks(s, place)
    assert len(lists_of(s)) == 1
    s.stop()
    assert lists_of(s) == [] and os.listdir(place) == []


def test_a_list_is_written_once_for_each_policy(start, place):
    """The masks of each command are made anew, and need no new line."""
    s = start()
    client = s.ready()
    client.server = s
    shell = Shell(client, workspace_write(place), place)
    sizes = []
    for _ in range(3):
        shell("true")
        poll(lambda: not os.listdir(place), what="end of the masks")
        sizes.append([p.stat().st_size for p in s.lists.iterdir()])
    text = next(s.lists.iterdir()).read_bytes()
    assert sizes[0] == sizes[1] == sizes[2] and len(sizes[0]) == 1
    assert sorted(text.split(b"\0")[1:-1]) == [os.fsencode(place / n) for n in PROTECTED]


def test_nobody_else_can_write_the_lists(start, place, mode, user):
    s = start()
    run_under_masks(s, place)
    for p in (s.lists, *s.lists.iterdir()):
        st = p.stat()
        assert st.st_uid == (0 if mode == "root" else user.pw_uid) and st.st_mode & 0o077 == 0, p
    s.lists.chmod(0o777)
    other = start()
    other.wait_log("no directory for the lists of masks")
    s.lists.chmod(0o700)
