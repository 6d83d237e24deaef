# SPDX-License-Identifier: ISC
"""UNIX sockets of a sandbox's own: none is left where a program outside looks for its own."""
import os
import shutil

import pytest
from conftest import Shell, as_test_user, direct
from policies import READ_ALL, managed, path, workspace_write

NETWORKS = ("restricted",)


@pytest.fixture(params=NETWORKS)
def shell(request, session, place):
    return Shell(session, workspace_write(place, network=request.param), place)


@pytest.fixture
def enabled(session, place):
    return Shell(session, workspace_write(place, network="enabled"), place)


def python(text, file="p.py"):
    head = """
import array, ctypes, errno, os, signal, socket, struct, sys, threading, time
def tried(what, call):
    try:
        call(); print(what, "done")
    except OSError as e: print(what, errno.errorcode[e.errno])
def bind(name, kind=socket.SOCK_STREAM):
    s = socket.socket(socket.AF_UNIX, kind); s.bind(name); s.listen(); return s
def connect(name, kind=socket.SOCK_STREAM):
    s = socket.socket(socket.AF_UNIX, kind); s.connect(name); return s
"""
    return f"cat >{file} <<'END'{head}{text}\nEND\n/usr/bin/python3 {file}"


def needs(program):
    return pytest.mark.skipif(not shutil.which(program, path="/usr/bin:/bin:/usr/sbin:/usr/local/bin"),
                              reason=f"NOT TESTED: {program} is not installed")


def test_where_they_are_made(session, place):
    """A request that has such a variable keeps it."""
    said = "echo $TMPDIR $TMUX_TMPDIR; stat -c %a $TMPDIR"
    for network in NETWORKS:
        policy = workspace_write(place, network=network)
        assert Shell(session, policy, place)(said) == "/dev/tmp /dev/tmp\n1777\n"
        assert Shell(session, policy, place, {"TMPDIR": str(place)})(said).split()[:2] == [str(place), "/dev/tmp"]
        assert Shell(session, policy, place, {"TMPDIR": "/tmp", "TMUX_TMPDIR": "/tmp"})(said).split()[:2] == ["/tmp", "/tmp"]
    # What one policy puts there another one does not see; what is put there can be executed.
    Shell(session, policy, place)("printf '#!/bin/sh\\necho ran\\n' >$TMPDIR/f; chmod +x $TMPDIR/f; $TMPDIR/f")
    assert Shell(session, managed(READ_ALL, path(place, "write")), place)("ls $TMPDIR") == ""
    r = session.run(Shell(session, None, place).id(), ["/bin/sh", "-c", "echo ${TMPDIR-none}"])
    assert r.stdout == "none\n", "without a sandbox nothing is added"


# --- nothing is left where programs outside look -------------------------------

def test_none_in_the_hosts_tmp(user, session, shell, place, tmp_name):
    """Neither made, linked, renamed nor carried in with its directory; in a workspace that lies there they are."""
    inside = f"/tmp/{tmp_name}"
    out = shell(python(f"""
keep = [bind("s"), bind(os.environ["TMPDIR"] + "/s")]
os.mkdir("d"); keep.append(bind("d/default")); os.symlink("/tmp", "t"); os.mkdir("{inside}")
tried("made", lambda: bind("{inside}/default")); tried("by a link", lambda: bind("t/{tmp_name}/default"))
os.chdir("{inside}"); tried("relative", lambda: bind("default")); os.chdir("{place}")
for name in ("s", os.environ["TMPDIR"] + "/s", "d"): tried("renamed", lambda: os.rename(name, "{inside}/default"))
for name in ("s", os.environ["TMPDIR"] + "/s"): tried("linked", lambda: os.link(name, "{inside}/default"))
print(os.listdir("{inside}"))
"""))
    answers = dict(line.split(" E") for line in out.splitlines()[:-1])
    assert answers == {"made": "ACCES", "by a link": "ACCES", "relative": "ACCES", "renamed": "XDEV", "linked": "XDEV"}, out
    assert out.splitlines()[-1] == "[]" and os.listdir(inside) == []


def test_none_from_a_workspace_in_tmp(user, session, tmp_name):
    """There a workspace is a place of its own: nothing is renamed or linked out of it, nor is it itself."""
    work = f"/tmp/{tmp_name}/work"
    as_test_user(user, f"mkdir -p {work}", "/")
    for network in NETWORKS:
        box = Shell(session, workspace_write(work, network=network), work)
        assert box(python("""
os.mkdir("d"); keep = [bind("s"), bind("d/default")]; connect("s")
tried("renamed", lambda: os.rename("s", "../s")); tried("linked", lambda: os.link("s", "../s"))
tried("with its directory", lambda: os.rename("d", "../d")); tried("the workspace", lambda: os.rename("../work", "../other"))
tried("beside it", lambda: bind("../s")); os.unlink("s"); os.unlink("d/default"); os.rmdir("d")
""")).splitlines() == ["renamed EXDEV", "linked EXDEV", "with its directory EXDEV", "the workspace EBUSY", "beside it EACCES"]


def test_a_host_socket_in_tmp_stays_where_it_is(user, shell, tmp_name):
    """A command may remove what its user has there; it makes no other name of it."""
    as_test_user(user, f"mkdir /tmp/{tmp_name}; cd /tmp/{tmp_name}; "
                 "/usr/bin/python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"old\")'", "/")
    assert shell(python(f"""
os.chdir("/tmp/{tmp_name}"); os.mkdir("d")
tried("renamed", lambda: os.rename("old", "new")); tried("moved", lambda: os.rename("old", "d/new")); tried("linked", lambda: os.link("old", "new"))
""")).splitlines() == ["renamed EACCES", "moved EACCES", "linked EACCES"]


def test_tmpdir_of_the_host(spawn, user, place):
    """The session's TMPDIR is such a place, too."""
    as_test_user(user, "mkdir temporary work", place)
    server = spawn(env={**os.environ, "TMPDIR": f"{place}/temporary"})
    client = server.ready()
    box = Shell(client, workspace_write(place / "work"), place / "work", {"TMPDIR": f"{place}/temporary"})
    if server.mode == "root":
        pytest.skip("ONLY SINGLE-USER MODE IS TESTED: root's sessions have no TMPDIR of execd's environment")
    assert box(python("""
open(os.environ["TMPDIR"] + "/f", "w").close(); tried("made", lambda: bind(os.environ["TMPDIR"] + "/s"))
s = bind("s"); tried("linked", lambda: os.link("s", os.environ["TMPDIR"] + "/s"))
""")).splitlines() == ["made EACCES", "linked EXDEV"]
    client.drop()


@needs("tmux")
def test_the_users_own_tmux(user, shell, tmp_name):
    """Measured once: a command took the place of the user's server, whose next `tmux attach` then did what it said."""
    inside = f"/tmp/{tmp_name}"
    as_test_user(user, f"mkdir -m 700 {inside}", "/")
    r = shell.run(f"TMUX_TMPDIR={inside} tmux new -d -s stolen 'sleep 99'; tmux new -d -s own 'sleep 99'; tmux ls")
    assert r.stdout.startswith("own:"), (r.stdout, r.stderr)
    out = direct(user, ["/usr/bin/tmux", "ls"], "/", {"TMUX_TMPDIR": inside})
    assert out.returncode == 1 and b"stolen" not in out.stdout + out.stderr
    # And the other way: the server of the user is not reached.
    as_test_user(user, f"TMUX_TMPDIR={inside} tmux new -d -s mine 'sleep 99'", "/")
    try:
        r = shell.run(f"TMUX_TMPDIR={inside} tmux ls")
        assert r.code != 0 and "mine" not in r.stdout
    finally:
        as_test_user(user, f"TMUX_TMPDIR={inside} tmux kill-server", "/")


def test_x_servers_have_a_place_of_their_own(session, enabled, shell):
    assert shell(python("""
if not os.path.isdir("/tmp/.X11-unix"): print("none")
else:
    s = bind("/tmp/.X11-unix/X%d" % os.getpid()); connect("/tmp/.X11-unix/X%d" % os.getpid()); print(len(os.listdir("/tmp/.X11-unix")))
""")) in ("1\n", "none\n")
    assert enabled("ls -A /tmp/.X11-unix | grep -v ^X; stat -fc %T /tmp/.X11-unix") == "tmpfs\n"
    assert not any(n.startswith("X") and not os.path.exists("/tmp/.X11-unix/" + n) for n in os.listdir("/tmp/.X11-unix"))


def test_a_private_tmp_is_its_own(configured, user, place):
    """There sockets are made in /tmp itself."""
    server = configured(f"[listener l]\naddress = ws://127.0.0.1:0\nallow-unauthenticated = x\n[identity x]\n"
                        f"user = {user.pw_name}\nsandbox-tmp = private\n")
    client = server.ready()
    for network in NETWORKS:
        assert Shell(client, workspace_write(place, network=network), place)(
            python('s = bind("/tmp/s"); connect("/tmp/s"); print(os.listdir("/tmp"))')) == "['s']\n"
    client.drop()


def test_the_socket_of_execd_ctl_is_hidden(user, server, shell):
    """An ordinary user's is in his home, which is read-only here."""
    if server.mode == "root":
        pytest.skip("ONLY SINGLE-USER MODE IS TESTED: root's socket is below /run")
    place = f"{user.pw_dir}/.local/state/execd"
    assert f"ctl.{server.pid}" in direct(user, ["ls", place], "/").stdout.decode()
    assert shell(f"ls -A {place}; ls -A {user.pw_dir}/.local/state") == "execd\n"


@pytest.fixture
def tmp_name(user):
    """A name in the host's /tmp that is gone afterwards."""
    name = f"execd-own-{os.getpid()}"
    yield name
    as_test_user(user, f"rm -rf /tmp/{name}", "/")
