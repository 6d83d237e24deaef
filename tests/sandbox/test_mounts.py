# SPDX-License-Identifier: ISC
"""Mounts of the host that come and go while a session is there: the next command of a policy sees what is there now, and
no view keeps what was unmounted."""
import ctypes
import os
import subprocess

import pytest
from integration_conftest import ROOT, is_alive, poll
from test_slow_start import FileSystem

from conftest import Shell, as_test_user, children, name
from policies import READ_ALL, managed, path, uri, workspace_write

pytestmark = pytest.mark.skipif(not ROOT or not os.access("/dev/fuse", os.W_OK),
                                reason="MOUNTS OF THE HOST ARE NOT TESTED: this needs root and /dev/fuse")


def mount(*args):
    subprocess.run(["mount", *args], check=True)


@pytest.fixture
def shared(place):
    """A place whose mounts reach the sessions, as all do where systemd runs."""
    mount("--bind", place, place)
    mount("--make-shared", place)
    yield place
    subprocess.run(["umount", "-R", "-l", place], check=True)


@pytest.fixture
def one(spawn, shared, user):
    as_test_user(user, "mkdir m ws; echo below > m/f", shared)
    client = spawn().ready()
    yield Shell(client, managed(READ_ALL, path(shared / "ws", "write")), shared / "ws")
    client.drop()


def mounted(place):
    mount("-t", "tmpfs", "later", place)
    (place / "f").write_text("later\n")
    (place / "f").chmod(0o644)


def test_a_later_mount_is_seen_by_the_next_command(one, shared):
    assert one("cat ../m/f") == "below\n"
    mounted(shared / "m")
    assert one("cat ../m/f") == "later\n"
    assert "result" in one.client.request("fs/writeFile", {"path": uri(one.cwd / "f"), "dataBase64": "", "sandbox": one.sandbox})
    subprocess.run(["umount", shared / "m"], check=True)
    assert one("cat ../m/f; ls") == "below\nf\n"


def test_who_is_in_a_view_keeps_it(one, shared):
    """And whoever comes then is with him: his servers are reached."""
    serve = ("import socket; s = socket.create_server(('127.0.0.1', 4242)); print('up', flush=True); "
             "c, _ = s.accept(); c.sendall(b'hello'); c.close(); input()")
    server = one.start(f"cat ../m/f; exec python3 -c \"{serve}\"", pipeStdin=True)
    one.client.wait_output(server, "up")
    mounted(shared / "m")
    assert one("exec 3<>/dev/tcp/127.0.0.1/4242; head -c 5 <&3; cat ../m/f") == "hellobelow\n"
    one.client.write(server, b"\n")
    assert one.client.finished(server).stdout == "below\nup\n"
    poll(lambda: one("cat ../m/f") == "later\n", what="a new view")


@pytest.mark.parametrize("kind", ["command", "request"])
def test_no_view_keeps_what_was_unmounted(spawn, shared, user, kind):
    """The server of a file system ends when nobody has it any more."""
    fuse = FileSystem(shared / "slow")
    try:
        client = spawn().ready()
        box = Shell(client, workspace_write(shared), shared)
        id = box.start("read x; echo $x", pipeStdin=True)
        if kind == "request":
            ask = {"path": uri(shared), "sandbox": box.sandbox}
            assert "result" in client.request("fs/getMetadata", ask)
        assert ctypes.CDLL(None).umount2(os.fsencode(fuse.path), 0) == 0
        assert fuse.server.poll() is None, "who runs keeps it"
        client.write(id, b"on\n")
        assert client.finished(id).stdout == "on\n"
        fuse.server.wait(10)
        client.drop()
    finally:
        fuse.server.kill()
        fuse.server.wait()


def test_what_nobody_gets_to_changes_no_view(spawn, shared, user):
    (shared / "closed").mkdir(mode=0o700)
    (shared / "closed/m").mkdir()
    server = spawn()
    client = server.ready()
    client.server = server
    server.wait_log(f"session {client.session_id[:8]}: opened")
    box = Shell(client, workspace_write(shared), shared)
    box("echo kept > $TMPDIR/f 2> /dev/null || echo kept > /dev/shm/f")
    before = [p for p in children(server.runner(client)) if name(p) == "execd-sandbox"]
    mount("-t", "tmpfs", "beside", shared / "closed/m")
    box("true")
    assert all(map(is_alive, before)) and len(before) == 1
    assert [p for p in children(server.runner(client)) if name(p) == "execd-sandbox"] == before
    client.drop()
