# SPDX-License-Identifier: ISC
"""execctl cp, ls, cat: every byte and every name, or a sentence that says why
not."""
import contextlib
import json
import os
import select
import signal
import socket
import stat
import subprocess
import time

import pytest
from conftest import ROOT, children_named, poll
from execctl import Execctl


@pytest.fixture
def there(directory):
    """Where the server's user may write."""
    d = directory / "there"
    d.mkdir()
    d.chmod(0o777)
    return d


@pytest.fixture
def ctl(server, directory):
    return Execctl(directory, server.url)


@pytest.mark.parametrize("size", [0, 1, 1000, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20, 9_000_001])
def test_every_size_both_ways(ctl, directory, there, size):
    data = os.urandom(size)
    (directory / "a").write_bytes(data)
    ctl.ok("cp", directory / "a", f":{there}/b")
    assert (there / "b").read_bytes() == data
    ctl.ok("cp", f":{there}/b", directory / "c")
    assert (directory / "c").read_bytes() == data
    assert ctl.ok("cat", there / "b") == data


def test_where_a_copy_goes(ctl, directory, there):
    (directory / "a").write_text("a")
    (directory / "b").write_text("b")
    ctl.ok("cp", "a", "b", f":{there}", cwd=directory)
    assert (there / "a").read_text() + (there / "b").read_text() == "ab"
    ctl.ok("cp", f":{there}/a", ".", cwd=there.parent)
    # Over one that is there, and longer.
    (there / "a").write_text("longer than before")
    (there / "a").chmod(0o666)
    ctl.ok("cp", "a", f":{there}/a", cwd=directory)
    assert (there / "a").read_text() == "a"
    r = ctl("cp", "a", "b", f":{there}/nowhere", cwd=directory)
    assert r.code == 255 and "not a directory" in r.err
    # A colon in a name of ours, and one that looks like an option.
    (directory / "x:y").write_text("colon")
    (directory / "-dash").write_text("dash")
    ctl.ok("cp", "--", "./x:y", "-dash", f":{there}", cwd=directory)
    assert (there / "x:y").read_text() + (there / "-dash").read_text() == "colondash"


def make_tree(root):
    (root / "empty").mkdir(parents=True)
    (root / "deep/er/still").mkdir(parents=True)
    for i in range(60):
        (root / "deep" / f"f{i}").write_bytes(os.urandom(i * 100))
    (root / "deep/er/still/a name with\nnewline").write_text("x")
    (root / ".hidden").write_text("hidden")
    (root / "program").write_text("#!/bin/sh\necho ran\n")
    (root / "program").chmod(0o755)
    (root / "link").symlink_to("program")


def contents(root):
    return {str(p.relative_to(root)): p.read_bytes() if p.is_file() else None for p in root.rglob("*")}


def test_trees_both_ways(ctl, directory, there):
    make_tree(directory / "tree")
    ctl.ok("cp", "-r", directory / "tree", f":{there}")
    assert contents(there / "tree") == contents(directory / "tree")
    if ctl.can("fsChmod"):
        assert ctl.ok("run", there / "tree/program") == b"ran\n"
    ctl.ok("cp", "-r", f":{there}/tree/", directory / "back")
    assert contents(directory / "back") == contents(directory / "tree")
    # Into one that is there.
    ctl.ok("cp", "-r", f":{there}/tree", directory / "back")
    assert contents(directory / "back/tree") == contents(directory / "tree")
    r = ctl("cp", directory / "tree", f":{there}/x")
    assert r.code == 125 and "-r copies directories" in r.err


def test_what_is_no_file_is_skipped_aloud(ctl, directory, there):
    tree = directory / "tree"
    tree.mkdir()
    (tree / "file").write_text("x")
    os.mkfifo(tree / "fifo")
    (tree / "dangling").symlink_to("nowhere")
    (tree / "up").symlink_to("..")
    r = ctl("cp", "-r", tree, f":{there}")
    assert r.code == 125 and "fifo: skipped" in r.err
    assert (there / "tree/file").read_text() == "x"
    if ctl.can("fsSymlink"):
        assert os.readlink(there / "tree/dangling") == "nowhere" and os.readlink(there / "tree/up") == ".."
    else:
        assert "dangling: skipped" in r.err and "up: skipped" in r.err
    tree.chmod(0o755)
    r = ctl("cp", "-r", f":{tree}", directory / "back")
    assert r.code == 125 and "fifo: skipped" in r.err
    if ctl.can("fsDetails"):
        assert os.readlink(directory / "back/dangling") == "nowhere" and os.readlink(directory / "back/up") == ".."
    else:
        assert "up: skipped: a link to a directory" in r.err
    assert (directory / "back/file").read_text() == "x"


def test_what_may_not_be_read_or_written(ctl, directory, there):
    (directory / "a").write_text("a")
    r = ctl("cp", directory / "a", ":/nonexistent/a")
    assert r.code == 125 and "No such file" in r.err
    r = ctl("cp", directory / "a", ":/proc/a")
    assert r.code == 125
    r = ctl("cp", ":/no/such", directory / "b")
    assert r.code == 125 and "No such file" in r.err and not (directory / "b").exists()
    r = ctl("cp", directory / "no", f":{there}/no")
    assert r.code == 125 and "No such file" in r.err
    if not ROOT:
        (directory / "a").chmod(0)
        assert ctl("cp", directory / "a", f":{there}/a").code == 125


@pytest.mark.skipif(not ROOT, reason="A FULL DISK IS NOT TESTED: mounting one needs root")
def test_a_full_disk(ctl, directory, there):
    (directory / "big").write_bytes(os.urandom(6 << 20))
    small = directory / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=777", "none", str(small)], check=True)
    try:
        r = ctl("cp", f":{directory}/big", small / "big")
        assert r.code == 125 and "No space left" in r.err
        assert os.listdir(small) == []
        r = ctl("cp", "-r", f":{directory}/there", f":{directory}/big", small)
        assert r.code == 125 and "No space left" in r.err
    finally:
        subprocess.run(["umount", str(small)], check=True)


@pytest.mark.skipif(not ROOT, reason="A FULL DISK IS NOT TESTED: mounting one needs root")
def test_a_full_disk_of_the_server(spawn, directory):
    (directory / "big").write_bytes(os.urandom(6 << 20))
    small = directory / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=777", "none", str(small)], check=True)
    try:
        # Mounted before the server starts: its sessions have a namespace.
        r = Execctl(directory, spawn().url)("cp", directory / "big", f":{small}/big")
        assert r.code == 125 and "No space left" in r.err and os.listdir(small) == []
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_json_and_summary(ctl, directory, there):
    (directory / "a").write_text("12345")
    assert json.loads(ctl.ok("--json", "cp", directory / "a", f":{there}/b")) == \
        {"files": 1, "bytes": 5, "failed": 0, "skipped": 0}


def test_ls(ctl, directory, there):
    (there / "b").write_text("12345")
    (there / "a").mkdir()
    (there / ".c").write_text("")
    (there / "l").symlink_to("b")
    assert ctl.ok("ls", there) == b"a/\nb\nl\n"
    assert ctl.ok("ls", "-a", there) == b".c\na/\nb\nl\n"
    lines = ctl.ok("ls", "-l", there).decode().splitlines()
    assert lines[0][0] == "d" and lines[1].split()[:2] == ["-", "5"] and lines[2][0] == "l"
    assert ctl.ok("ls", there / "b").decode().strip().endswith("b")
    entries = [json.loads(x) for x in ctl.ok("--json", "ls", "-l", there).splitlines()]
    assert [(e["name"], e["isDirectory"]) for e in entries] == [("a", True), ("b", False), ("l", False)]
    assert entries[1]["size"] == 5
    r = ctl("ls", there, "/no/such")
    assert r.code == 125 and b"a/\n" in r.out and "/no/such" in r.err


def test_paths_as_cp_takes_them(ctl, directory, there):
    """:PATH and NAME:PATH; one server for all of them, and ./a:b is a path."""
    (there / "f").write_text("in")
    (there / "a:b").write_text("with a colon")
    assert ctl.ok("ls", f":{there}") == b"a:b\nf\n"
    assert ctl.ok("cat", f":{there}/f", f"{there}/f") == b"inin"
    assert ctl.ok("cat", f"{there}/a:b") == b"with a colon"
    named = Execctl(directory, None)
    named.ok("environments", "add", "box", ctl.url)
    assert named.ok("cat", f"box:{there}/f") == b"in"
    assert named.ok("ls", f"box:{there}") == b"a:b\nf\n"
    r = named("cat", f"box:{there}/f", f"other:{there}/f")
    assert r.code == 255 and "is on another server" in r.err, r
    r = named("cat", f"nobody:{there}/f")
    assert r.code == 255 and "nobody" in r.err, r


def test_cat_to_a_reader_that_goes(ctl, directory, there):
    (there / "big").write_bytes(b"x" * (20 << 20))
    p = ctl.popen("cat", there / "big")
    assert p.stdout.read(10) == b"x" * 10
    p.stdout.close()
    assert p.wait(20) == 141 and b"Broken pipe" in p.stderr.read()
    assert len(ctl.ok("cat", there / "big", there / "big")) == 40 << 20


def test_a_hostile_server_writes_nowhere_else(directory):
    """Names with slashes, dot-dot, and names that steer terminals."""
    import asyncio
    import threading
    import websockets

    async def serve(ws):
        async for text in ws:
            m = json.loads(text)
            if "id" not in m:
                continue
            method = m["method"]
            if method == "initialize":
                result = {"sessionId": "s", "environmentInfo": {"shell": {"name": "sh", "path": "/bin/sh"}}}
            elif method == "fs/getMetadata":
                result = {"isDirectory": m["params"]["path"].endswith("/d"), "isFile": True, "isSymlink": False,
                          "size": 1, "createdAtMs": 0, "modifiedAtMs": 0}
            elif method == "fs/readDirectory":
                names = ["../escaped", "..", ".", "a/b", "/tmp/escaped", "", "fine", "\x1b[31mred"]
                result = {"entries": [{"fileName": n, "isDirectory": False, "isFile": True} for n in names]}
            elif method == "fs/readBlock":
                result = {"chunk": "eA==", "eof": True}
            else:
                result = {}
            await ws.send(json.dumps({"id": m["id"], "result": result}))

    ready = threading.Event()
    state = {}

    async def main():
        state["loop"], state["stop"] = asyncio.get_running_loop(), asyncio.Event()
        async with websockets.serve(serve, "127.0.0.1", 0) as s:
            state["port"] = s.sockets[0].getsockname()[1]
            ready.set()
            await state["stop"].wait()

    t = threading.Thread(target=lambda: asyncio.run(main()))
    t.start()
    ready.wait(10)
    inside = directory / "inside"
    inside.mkdir()
    r = Execctl(directory, f"ws://127.0.0.1:{state['port']}")("cp", "-r", ":/x/d", inside)
    state["loop"].call_soon_threadsafe(state["stop"].set)
    t.join(10)
    assert r.code == 125 and r.err.count("an invalid name") == 6, r
    assert "\x1b" not in r.err
    assert sorted(p.name for p in (inside / "d").iterdir()) == ["\x1b[31mred", "fine"]
    assert sorted(p.name for p in inside.iterdir()) == ["d"]
    assert not (directory / "escaped").exists() and not os.path.exists("/tmp/escaped")


def test_modes_are_those_of_a_new_file(ctl, directory, there):
    (there / "a").write_text("a")
    os.umask(0o022)
    ctl.ok("cp", f":{there}/a", directory / "b")
    assert stat.S_IMODE((directory / "b").stat().st_mode) == 0o644


def left_over(where):
    return [n for n in os.listdir(where) if n.startswith(".execctl-")]


@pytest.mark.parametrize("way", ["up", "down"])
def test_an_interruption_leaves_the_old_file_or_the_new_one(ctl, directory, user, way):
    """At any moment: never a mixture, never a part of it, and nothing beside it."""
    old, new = b"o" * (1 << 20), os.urandom(24 << 20)
    source, target = directory / "source", directory / "target"
    source.write_bytes(new)
    arguments = [str(source), f":{target}"] if way == "up" else [f":{source}", str(target)]
    complete = 0
    for moment in range(20):
        target.write_bytes(old)
        target.chmod(0o666)
        p = ctl.popen("cp", *arguments)
        time.sleep(moment * 0.008)      # no event: any moment is as good as another
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=20)
        assert p.returncode in (0, 130, -signal.SIGINT), (moment, p.returncode, err)
        found = target.read_bytes()
        assert found in (old, new), f"{len(found)} bytes, {err}"
        assert p.returncode != 0 or found == new
        complete += found == new
        poll(lambda: not left_over(directory), what=f"end of {left_over(directory)}")
    assert complete < 20, "no interruption came in time"


def test_an_interruption_that_the_server_does_not_answer(spawn, directory, there):
    """What was not removed is not said to be: its name is."""
    s = spawn()
    (directory / "big").write_bytes(os.urandom(1 << 20) * 300)
    p = Execctl(directory, s.url).popen("cp", directory / "big", f":{there}/big")
    poll(lambda: p.poll() is not None or left_over(there), what="the beginning of the file")
    assert p.poll() is None, p.communicate()
    runners = children_named(s.pid, "execd-runner")
    for pid in runners:
        os.kill(pid, signal.SIGSTOP)
    try:
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=20)
        name, = left_over(there)
    finally:
        for pid in runners:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    assert p.returncode == 130 and f":{there}/{name} may be left there, incomplete" in err.decode(), err
    assert b"removed" not in err and b"interrupted" in err, err


def test_a_replaced_file_keeps_its_mode_and_its_link(ctl, directory, user):
    source, target, link = directory / "source", directory / "target", directory / "link"
    source.write_bytes(b"new")
    source.chmod(0o644)
    target.write_bytes(b"old")
    os.chown(target, user.pw_uid, user.pw_gid) if ROOT else None
    target.chmod(0o600)
    link.symlink_to(target)
    assert ctl("cp", source, f":{link}").code == 0
    assert link.is_symlink() and target.read_bytes() == b"new" and target.stat().st_mode & 0o777 == 0o600
    assert ctl("cp", source, f":{directory}/fresh").code == 0
    assert (directory / "fresh").read_bytes() == b"new" and left_over(directory) == []


def kinds(*paths):
    return [stat.S_IFMT(os.lstat(p).st_mode) for p in paths]


@pytest.fixture
def special(directory):
    """A FIFO, a link to it, a socket, a link to nothing, and as root a device that anybody may write to."""
    d = directory / "special"
    d.mkdir()
    d.chmod(0o777)
    os.mkfifo(d / "fifo")
    (d / "fifo").chmod(0o666)
    (d / "link").symlink_to("fifo")
    socket.socket(socket.AF_UNIX).bind(str(d / "socket"))
    (d / "dangling").symlink_to("nowhere")
    if ROOT:
        os.mknod(d / "full", 0o666 | stat.S_IFCHR, os.makedev(1, 7))
        (d / "full").chmod(0o666)
        (d / "to-full").symlink_to("full")
    return d


def test_what_is_no_file_is_never_replaced_there(ctl, directory, special):
    (directory / "a").write_text("a")
    paths = sorted(special.iterdir())
    before = kinds(*paths)
    for p in paths:
        r = ctl("cp", directory / "a", f":{p}")
        said = "a link that leads nowhere" if p.name == "dangling" else "it is a FIFO, a device or a socket"
        assert r.code == 125 and said in r.err and "in place" not in r.err, r
    # In a tree, too. A link that leads nowhere is replaced there, as one that leads elsewhere.
    (directory / "tree").mkdir()
    for p in paths:
        (directory / "tree" / p.name).write_text("new")
    r = ctl("cp", "-r", f"{directory}/tree/.", f":{special}")
    assert r.code == 125 and r.err.count("it is a FIFO, a device or a socket") == len(paths) - 1, r
    before[[p.name for p in paths].index("dangling")] = stat.S_IFREG
    assert kinds(*paths) == before and not (special / "nowhere").exists()
    assert left_over(special) == []


def test_what_is_no_file_is_never_replaced_here(ctl, directory, special):
    (directory / "a").write_text("a")
    paths = sorted(special.iterdir())
    before = kinds(*paths)
    said = {"fifo": "no program reads from it", "link": "no program reads from it", "socket": "no program reads from it",
            "dangling": "a link that leads nowhere", "full": "No space left", "to-full": "No space left"}
    for p in paths:
        r = ctl("cp", f":{directory}/a", p)
        assert r.code == 125 and said[p.name] in r.err, r
    assert kinds(*paths) == before and not (special / "nowhere").exists()
    (directory / "tree").mkdir()
    for p in paths:
        (directory / "tree" / p.name).write_text("new")
    r = ctl("cp", "-r", f":{directory}/tree/.", special)
    assert r.code == 125 and r.err.count("it is a FIFO, a device or a socket") == len(paths) - 1, r
    before[[p.name for p in paths].index("dangling")] = stat.S_IFREG
    assert kinds(*paths) == before and left_over(special) == []


def test_into_a_pipe_that_is_read_slowly(ctl, directory, special):
    """More than a pipe holds, into a FIFO and into a link to a pipe that has no name."""
    data = os.urandom(9_000_001)
    (directory / "big").write_bytes(data)
    (directory / "out").symlink_to("/proc/self/fd/1")
    p = ctl.popen("cp", f":{directory}/big", directory / "out")
    out, err = p.communicate(timeout=30)
    assert p.returncode == 0 and out == data, err
    with open(os.open(special / "fifo", os.O_RDONLY | os.O_NONBLOCK), "rb") as f:
        os.set_blocking(f.fileno(), True)
        p = ctl.popen("cp", f":{directory}/big", special / "link")
        assert select.select([f], [], [], 30)[0] and p.poll() is None
        assert f.read() == data
        assert p.wait(30) == 0 and stat.S_ISFIFO(os.stat(special / "fifo").st_mode)


def test_a_file_without_a_name_is_written_into(ctl, directory):
    (directory / "a").write_text("new")
    with open(directory / "gone", "w+") as f:
        f.write("longer than before")
        f.flush()
        (directory / "gone").unlink()
        ctl.ok("cp", f":{directory}/a", f"/proc/self/fd/{f.fileno()}", pass_fds=[f.fileno()])
        f.seek(0)
        assert f.read() == "new" and not (directory / "gone").exists()
