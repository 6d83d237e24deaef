# SPDX-License-Identifier: ISC
"""Who uses a placeholder is on a list that others do not reach: nothing that they do to it on the disk, and no end of a
program, leaves it behind, takes it away too early, or holds anybody up."""
import fcntl
import os
import signal
import subprocess
import threading

import pytest
from conftest import ROOT, Shell, as_test_user
from policies import PROTECTED, managed, path, workspace_write

# Tries to get rid of a placeholder, and to put something there: nothing may work.
ATTACK = "for n in .git .agents .codex .aws; do mkdir $n/x; rmdir $n; mv $n y; touch $n/z; done 2> /dev/null; " \
         "ls -A .git .agents .codex .aws | grep -c '[xyz]$'; :"


def protected(where):
    return sorted(n for n in os.listdir(where) if n in PROTECTED)


def shell(client, place, *more):
    return Shell(client, managed(path("/", "read"), path(place, "write"), *more, roots=[place]), place)


def test_nothing_is_left_when_the_end_is_told(session, place):
    box = Shell(session, workspace_write(place), place)
    for _ in range(10):
        assert box("echo x") == "x\n"
        assert os.listdir(place) == []
        assert session.request("fs/readDirectory", {"path": f"file://{place}"})["result"]["entries"] == []


@pytest.mark.parametrize("kind", ["flock", "fcntl", "lease"])
def test_locks_of_others_hold_nobody_up(server, place, user, kind):
    """A second session starts beside them, and what is left last goes all the same."""
    os.chmod(place, 0o755)
    a, b = server.ready(), server.ready()
    one = shell(a, place, path(place / "secret", "deny")).start("echo up; exec sleep 1000")
    a.wait_output(one, "up")
    fd = os.open(place / ("secret" if kind != "flock" else ".git"), os.O_RDONLY if kind != "fcntl" else os.O_RDWR)
    if kind == "flock":
        fcntl.flock(fd, fcntl.LOCK_EX)
    elif kind == "fcntl":
        fcntl.lockf(fd, fcntl.LOCK_EX)
    else:
        signal.signal(signal.SIGIO, signal.SIG_IGN)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    other = shell(b, place, path(place / "secret", "deny"))
    assert other("echo x") == "x\n"
    assert sorted(os.listdir(place)) == sorted([*PROTECTED, "secret"]), "the first one uses them"
    a.terminate(one)
    a.finished(one)
    assert os.listdir(place) == []
    os.close(fd)
    a.drop()
    b.drop()


@pytest.mark.parametrize("script", ["git init -q .", "mkdir -p .aws && echo k > .aws/credentials"])
def test_the_user_may_make_them_meanwhile(session, place, user, script):
    """As if nothing were there, and what is made so stays. The command does not see it."""
    box = Shell(session, workspace_write(place), place)
    id = box.start("echo up; read x; ls -A .git .aws | grep -v :", pipeStdin=True)
    session.wait_output(id, "up")
    as_test_user(user, script, place)
    session.write(id, "\n")
    assert session.finished(id).stdout.split() == ["up"]
    made = ".git/HEAD" if "git" in script else ".aws/credentials"
    assert (place / made).exists() and len(os.listdir(place)) == 1


@pytest.mark.parametrize("script", ["rmdir .git; mkdir .git", "mv .git moved; mkdir .git", "rmdir .git; ln -s /etc .git",
                                    "rmdir .git; echo x > .git", "rmdir .git; mkdir .git; echo x > .git/config"])
def test_what_takes_its_place_stays(session, place, user, script):
    """Not the inode that was made: nobody's but the user's. The same for the moved one, which has lost its name."""
    box = Shell(session, workspace_write(place), place)
    id = box.start("echo up; read x", pipeStdin=True)
    session.wait_output(id, "up")
    as_test_user(user, script, place)
    before = os.lstat(place / ".git")
    session.write(id, "\n")
    session.finished(id)
    assert os.lstat(place / ".git").st_ino == before.st_ino
    assert sorted(os.listdir(place)) == ([".git", "moved"] if "moved" in script else [".git"])


def test_a_folder_that_its_owner_closed(session, place, user):
    """Its owner could open it again, so the names are held there, too, and its mode is what it was."""
    as_test_user(user, "chmod 555 .", place)
    box = Shell(session, workspace_write(place), place)
    assert box("chmod 755 . && mkdir .git/x 2> /dev/null; mv .git y 2> /dev/null; chmod 555 .; echo $?") == "0\n"
    assert os.listdir(place) == [] and place.stat().st_mode & 0o777 == 0o555


def test_sessions_that_start_and_end_at_once(server, place):
    """Each command is protected as long as it runs, whoever has made its placeholders."""
    wrong = []

    def work(client):
        box = Shell(client, workspace_write(place), place)
        for _ in range(15):
            out = box(ATTACK, timeout=30)
            if out != "0\n":
                wrong.append(out)

    clients = [server.ready() for _ in range(3)]
    threads = [threading.Thread(target=work, args=(c,)) for c in clients]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == [] and os.listdir(place) == []
    for c in clients:
        c.drop()


def test_a_killed_runner_leaves_what_others_use(spawn, place):
    """The last of the others removes all of it, also what only the killed one used."""
    server = spawn()
    a, b = server.ready(), server.ready()
    one = shell(a, place, path(place / "own", "deny")).start("echo up; exec sleep 1000")
    a.wait_output(one, "up")
    two = Shell(b, workspace_write(place), place)
    id = two.start("echo up; read x; " + ATTACK, pipeStdin=True)
    b.wait_output(id, "up")
    os.kill(server.runner(a), signal.SIGKILL)
    a.wait_closed()
    assert protected(place) == sorted(PROTECTED)
    b.write(id, "\n")
    assert b.finished(id).stdout == "up\n0\n"
    assert os.listdir(place) == []


@pytest.mark.parametrize("end", ["terminate", "exit", "kill -9 $$", "setsid sleep 1000 & exit"])
def test_nothing_is_left_after_any_end(session, place, end):
    box = Shell(session, workspace_write(place), place)
    id = box.start("echo up; read x; " + end, pipeStdin=True)
    session.wait_output(id, "up")
    if end == "terminate":
        session.terminate(id)
    else:
        session.write(id, "\n")
    session.finished(id)
    assert os.listdir(place) == []


def test_two_commands_at_once(session, place):
    """The placeholders go with the second, whether it was started in the same view or in another."""
    for more in [[], [path(place / "secret", "deny")]]:
        first = shell(session, place).start("echo up; read x", pipeStdin=True)
        second = shell(session, place, *more).start("echo up; read x; " + ATTACK, pipeStdin=True)
        for id in (first, second):
            session.wait_output(id, "up")
        session.write(first, "\n")
        session.finished(first)
        assert protected(place) == sorted(PROTECTED)
        session.write(second, "\n")
        assert session.finished(second).stdout == "up\n0\n"
        assert os.listdir(place) == []


def names(client, where, sandbox):
    """What fs/ methods show of a directory."""
    more = {} if sandbox is None else {"sandbox": {**sandbox, "cwd": f"file://{where}"}}
    listed = [{e["fileName"] for e in client.request("fs/readDirectory", {"path": f"file://{where}", **o, **more})["result"]["entries"]}
              for o in ({}, {"details": True})]
    walked = client.request("fs/walk", {"path": f"file://{where}", "options": {
        "maxDepth": 0, "maxDirectories": 100, "maxEntries": 100, "followDirectorySymlinks": False, "pruneHiddenDirectories": False}, **more})
    paths = {e["path"].rsplit("/", 1)[1] for e in walked["result"]["entries"]}
    there = {n for n in [*PROTECTED, "own", "secret"]
             if "result" in client.request("fs/getMetadata", {"path": f"file://{where}/{n}", **more})}
    assert paths == listed[0] == listed[1] and there == paths
    return paths


def test_file_methods_do_not_show_them(server, place, user):
    """Neither to whoever has no policy, nor to the same, nor to one that may only read, of any session of the user."""
    a, b = server.ready(), server.ready()
    as_test_user(user, "mkdir own", place)
    box = shell(a, place, path(place / "secret", "deny"))
    id = box.start("echo up; read x", pipeStdin=True)
    a.wait_output(id, "up")
    assert protected(place) == sorted(PROTECTED) and (place / "secret").exists()
    for client in (a, b):
        for policy in (None, box.sandbox, workspace_write(place), managed(path("/", "read"), roots=[place])):
            assert names(client, place, policy) == {"own"}, policy
    as_test_user(user, "touch .git/x; rmdir .aws; mkdir .aws", place)   # the user's own now
    for policy in (None, managed(path("/", "read"), roots=[place])):
        assert names(b, place, policy) == {".aws", ".git", "own"}
    a.write(id, "\n")
    a.finished(id)
    assert sorted(os.listdir(place)) == [".aws", ".git", "own"]
    a.drop()
    b.drop()


@pytest.mark.parametrize("meanwhile", [False, True])
def test_file_methods_make_nothing_there(session, place, user, meanwhile):
    """One file helper serves all of them, and commands of its policy come and go."""
    box = shell(session, place, path(place / "secret", "deny"))
    more = {"sandbox": {**box.sandbox, "cwd": f"file://{place}"}}
    as_test_user(user, "mkdir own; echo x > own/f", place)

    def call(method, name, **params):
        return session.request(method, {"path": f"file://{place}/{name}", **params, **more})

    assert "result" in call("fs/writeFile", "first", dataBase64="eA==")
    for n in [*PROTECTED, "secret"]:
        id = box.start("echo up; read x", pipeStdin=True) if meanwhile else None
        if meanwhile:
            session.wait_output(id, "up")
        call("fs/chmod", n, mode=0o777)
        for method, name, params in [
                ("fs/writeFile", n, {"dataBase64": "eA=="}), ("fs/writeFile", f"{n}/x", {"dataBase64": "eA=="}),
                ("fs/createDirectory", f"{n}/x", {"recursive": True}), ("fs/remove", n, {"recursive": True, "force": False}),
                ("fs/symlink", f"{n}/l", {"target": "/etc"}), ("fs/open", f"{n}/h", {"handleId": n, "mode": "replace"})]:
            answer = call(method, name, **params)
            assert "error" in answer, (n, method, answer)
        for method in ("fs/copy", "fs/move"):
            answer = session.request(method, {"sourcePath": f"file://{place}/own/f", "destinationPath": f"file://{place}/{n}/f",
                                              "recursive": True, **more})
            assert "error" in answer, (n, method)
        if meanwhile:
            session.write(id, "\n")
            session.finished(id)
        assert sorted(os.listdir(place)) == ["first", "own"], n


LINKED = "mkdir -p real/deep; echo kept > real/f; ln -s real .agents; ln -s .git/../deeper/link .codex; mkdir .git deeper; " \
         "mkdir other; ln -s ../other deeper/link"


def test_a_protected_name_that_is_a_link(session, place, user):
    """A command uses the workspace; the link stays as it is, and what it leads to is protected."""
    as_test_user(user, LINKED, place)
    box = Shell(session, workspace_write(place), place)
    assert box("echo x > f; cat f .agents/f") == "x\nkept\n"
    box("rm .agents; mv .agents y; ln -sfn other .agents; mv -T other .agents; rm -r real; mv real r; mv deeper d; "
        "rm deeper/link; ln -sfn ../real deeper/link; for f in .agents/f .agents/x real/f real/deep/x .codex/x other/x; do "
        "echo bad > $f; done; touch -h .agents; :")
    assert os.readlink(place / ".agents") == "real" and os.readlink(place / "deeper/link") == "../other"
    assert (place / "real/f").read_text() == "kept\n" and sorted(os.listdir(place / "real")) == ["deep", "f"]
    assert os.listdir(place / "real/deep") == os.listdir(place / "other") == []


def test_a_link_that_is_replaced_outside(session, place, user):
    """The next command finds what is there then, and may not write to it."""
    as_test_user(user, "mkdir real; ln -s real .agents", place)
    box = Shell(session, workspace_write(place), place)
    for n, script in enumerate(["rm .agents; mkdir .agents", "rmdir .agents; ln -s real .agents", "mkdir two; ln -sfn two .agents"]):
        as_test_user(user, script, place)
        assert box("(echo bad > .agents/x) 2> /dev/null; (rm -r .agents) 2> /dev/null; echo tried") == "tried\n"
        assert (place / ".agents").is_dir() and os.listdir(place / ".agents") == [], n


def test_a_full_disk_is_named(spawn, place):
    """As -32602 with the name and what the disk said."""
    if not ROOT:
        pytest.skip("NOT TESTED: only root mounts a small disk")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,nr_inodes=2,mode=777", "none", place], check=True)
    try:
        (place / "full").touch()
        client = spawn().ready()
        box = Shell(client, workspace_write(place), place)
        error = client.start(box.id(), ["/bin/true"], **box.params())["error"]
        assert error["code"] == -32602 and f"making {place}/." in error["message"], error
        assert "No space left on device" in error["message"], error
        client.drop()
    finally:
        subprocess.run(["umount", "-l", place], check=True)
