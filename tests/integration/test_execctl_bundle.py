# SPDX-License-Identifier: ISC
"""execctl cp of many small files: as one stream, and no difference to be seen but the time."""
import asyncio
import base64
import io
import json
import os
import pathlib
import re
import signal
import stat
import subprocess
import tarfile
import threading

import pytest
import websockets
from conftest import ROOT, more_rounds, poll
from execctl import Execctl, Proxy
from test_execctl_trees import facts

MANY = 100


@pytest.fixture
def ctl(server, directory):
    return Execctl(directory, server.url)


@pytest.fixture
def here(directory):
    (directory / "here").mkdir()
    return directory / "here"


@pytest.fixture
def there(directory):
    d = directory / "there"
    d.mkdir()
    d.chmod(0o777)
    return d


def make_many(root, n=MANY):
    for i in range(n):
        d = root / f"d{i % 7}" / f"e{i % 3}"
        d.mkdir(parents=True, exist_ok=True)
        (d / f"f{i}").write_bytes(os.urandom(i * 37 % 5000))


def content(root):
    """By name, in bytes: the text of a link, the content of a file, None for a directory."""
    return {n: (link, data) for n, (link, data, _) in facts(root).items()}


def streamed(ctl, *arguments, code=0):
    """Copies, and is sure that it went as one stream."""
    r = ctl("--verbose", "cp", *arguments)
    assert r.code == code and "stream" in r.err, r
    assert "file by file" not in r.err and "did not come" not in r.err, r
    return r


def left(root):
    return [p for p in root.rglob("*") if p.name.startswith(".execctl-")]


@pytest.mark.parametrize("way", ["up", "down"])
def test_a_new_tree(ctl, here, there, way):
    """Every kind of name: long, with a newline, not UTF-8, like an option, of a depth; links of all kinds."""
    tree = here / "tree"
    make_many(tree)
    (tree / "empty").mkdir()
    (tree / ("l" * 255)).write_text("long")
    (tree / ("x" * 200) / ("y" * 200)).mkdir(parents=True)
    (tree / ("x" * 200) / ("y" * 200) / "-z\n").write_text("odd")
    (tree / "ü").write_text("utf-8")
    with open(os.fsencode(tree) + b"/\xff\xfe", "wb") as f:
        f.write(b"raw")
    deep = tree / "/".join(["deep"] * 60)
    deep.mkdir(parents=True)
    (deep / "f").write_text("deep")
    (tree / "d0" / "up").symlink_to("..")
    (tree / "d0" / "absolute").symlink_to("/")
    (tree / "dangling").symlink_to("/".join(["n" * 200] * 3))
    if way == "up":     # JSON has no such text
        os.symlink(b"\xff", os.fsencode(tree) + b"/raw link")
    (tree / "to-file").symlink_to("d0/e0/f0")
    (tree / "large").write_bytes(os.urandom((1 << 20) + 1))
    (tree / "almost").write_bytes(os.urandom(1 << 20))
    want = content(tree)
    want[b"to-file"] = (None, (tree / "d0/e0/f0").read_bytes())
    r = streamed(ctl, "-r", *((tree, f":{there}") if way == "up" else (f":{tree}", there)))
    assert content(there / "tree") == want and left(there) == [], r
    assert (there / "tree").stat().st_uid == (there / "tree/d0/e0/f0").stat().st_uid


@pytest.mark.parametrize("way", ["up", "down"])
@pytest.mark.parametrize("options", ["-r", "-rp"])
def test_modes_and_times_are_those_of_the_other_way(ctl, here, there, user, options, way):
    """The same tree with one file too few for a stream, by name, mode, and with -p time."""
    trees = here / "many", here / "few"
    for tree in trees:
        tree.mkdir()
        if tree.name == "many":
            make_many(tree / "more")
        for name, mode, ms in (("program", 0o755, 1_000_000_000_123), ("closed", 0o400, 1_500_000_000_000),
                               ("group", 0o644, 1)):
            (tree / name).write_text(name)
            (tree / name).chmod(mode)
            os.utime(tree / name, ns=(ms * 1_000_000,) * 2)
        (tree / "sub/inner").mkdir(parents=True)
        (tree / "private").mkdir(mode=0o700)
        (tree / "sub/inner/f").write_text("f")
        (tree / "link").symlink_to("sub")
        for name, ms in (("sub/inner", 1_200_000_000_001), ("sub", 1_300_000_000_999)):
            os.utime(tree / name, ns=(ms * 1_000_000,) * 2)
        for p in tree / "private", tree / "sub/inner/f", tree:
            os.utime(p, ns=(1_400_000_000_000_000_000,) * 2)
    if way == "down" and ROOT:
        subprocess.run(["chown", "-R", user.pw_name, here], check=True)
    for tree in trees:
        ctl.ok("cp", options, *((tree, f":{there}") if way == "up" else (f":{tree}", there)))
    found = [facts(there / t.name, times=options == "-rp") for t in trees]
    assert {n: v for n, v in found[0].items() if not n.startswith(b"more")} == found[1]


def test_a_tree_over_another(ctl, here, there):
    """What is there stays, and is replaced in its own directories; modes and other names, too."""
    tree = here / "tree"
    make_many(tree)
    (tree / "link").symlink_to("d0")
    streamed(ctl, "-r", tree, f":{there}")
    own = there / "tree"
    os.link(own / "d0/e0/f0", there / "other name")
    (own / "d1/e1/f1").chmod(0o600)
    (own / "d2/keep").write_text("not of the tree")
    for p in own / "d3", own / "d4/e1":
        subprocess.run(["rm", "-r", p], check=True)
    os.mkfifo(own / "d5/fifo")
    for i in range(MANY):
        next(tree.glob(f"d*/e*/f{i}")).write_text(f"changed {i}")
    (tree / "d5/fifo").write_text("no file there")
    (tree / "d6/new/deep").mkdir(parents=True)
    (tree / "d6/new/deep/f").write_text("new")
    (tree / "link").unlink()
    (tree / "link").symlink_to("d1")
    r = streamed(ctl, "-r", f"{tree}/.", f":{own}", code=125)
    assert "fifo" in r.err and "is a FIFO" in r.err and r.err.count("failed") == 1, r
    want = content(tree)
    want[b"d5/fifo"] = (None, None)
    found = content(own)
    assert found.pop(b"d2/keep") == (None, b"not of the tree") and found == want
    assert (there / "other name").read_text() == "changed 0"
    assert stat.S_IMODE((own / "d1/e1/f1").stat().st_mode) == 0o600 and left(there) == []


def test_a_tree_over_another_here(ctl, here, there):
    """Here each file is replaced by itself; what is there stays, and links lead nothing elsewhere."""
    tree = there / "tree"
    make_many(tree)
    streamed(ctl, "-r", f":{tree}", here)
    own = here / "tree"
    os.link(own / "d0/e0/f0", here / "other name")
    (own / "d1/e1/f1").chmod(0o600)
    (own / "d2/keep").write_text("not of the tree")
    subprocess.run(["rm", "-r", own / "d3"], check=True)
    (own / "d4/e1/f4").unlink()
    (own / "d4/e1/f4").symlink_to(here / "elsewhere")
    os.mkfifo(own / "d5/fifo")
    (own / "d6/directory").mkdir()
    for i in range(MANY):
        next(tree.glob(f"d*/e*/f{i}")).write_text(f"changed {i}")
    (tree / "d5/fifo").write_text("no file here")
    (tree / "d6/directory").write_text("no file here")
    r = streamed(ctl, "-r", f":{tree}/.", own, code=125)
    assert r.err.count("is a FIFO") == 1 and r.err.count("d6/directory: to ") == 1 and "2 failed" in r.err, r
    want = content(tree)
    want[b"d5/fifo"] = want[b"d6/directory"] = (None, None)
    found = content(own)
    assert found.pop(b"d2/keep") == (None, b"not of the tree") and found == want
    assert (here / "other name").read_text() == "changed 0" and not (here / "elsewhere").exists()
    assert stat.S_IMODE((own / "d1/e1/f1").stat().st_mode) == 0o600 and left(here) == []


@pytest.mark.skipif(not ROOT, reason="NOT TESTED: here the server's user can read what we make")
def test_what_the_server_cannot_read_is_told_once(ctl, here, there):
    tree = there / "tree"
    make_many(tree)
    for name in "f7", "f8":
        path = next(tree.glob(f"d*/e*/{name}"))
        path.chmod(0o600)
    os.mkfifo(tree / "fifo")
    with open(tree / "sparse", "wb") as f:
        f.seek(900_000)
        f.write(b"end")
    os.setxattr(tree / "sparse", "user.note", b"x")
    r = ctl("--verbose", "cp", "-rp", f":{tree}", here)
    assert r.code == 125 and r.err.count("Permission denied (os error 13)") == 2 and "2 failed, 1 skipped, 1 attributes" in r.err, r
    assert r.err.count("fifo: skipped: neither a file nor a directory") == 1
    assert len(list((here / "tree").glob("d*/e*/f*"))) == MANY - 2 and left(here) == []
    assert (here / "tree/sparse").read_bytes() == (tree / "sparse").read_bytes()
    assert (here / "tree/sparse").stat().st_blocks * 512 < 100_000


def test_directories_that_nobody_may_write_to(ctl, here, there):
    tree = here / "tree"
    make_many(tree / "closed")
    (tree / "closed").chmod(0o555)
    (there / "old").mkdir()
    (there / "old").chmod(0o777)
    try:
        streamed(ctl, "-r", f"{tree}/closed", f":{there}/new")
        streamed(ctl, "-r", f"{tree}/.", f":{there}/old")
        for p in there / "new", there / "old/closed":
            assert content(p) == content(tree / "closed") and stat.S_IMODE(p.stat().st_mode) == 0o555
        assert left(there) == []
    finally:
        (tree / "closed").chmod(0o755)


def test_what_does_not_fit_is_told_as_before(ctl, here, there):
    """Holes stay holes; what is no file, attributes, set-id bits, what cannot be read, and too deep a tree are told."""
    tree = here / "tree"
    make_many(tree)
    with open(tree / "sparse", "wb") as f:
        f.seek(900_000)
        f.write(b"end")
    os.mkfifo(tree / "fifo")
    (tree / "noted").write_text("noted")
    os.setxattr(tree / "noted", "user.note", b"x")
    (tree / "set-id").write_text("x")
    (tree / "set-id").chmod(0o4755)
    at = os.open(tree, os.O_RDONLY)
    for i in range(20):
        os.mkdir("n" * 250, dir_fd=at)
        at, old = os.open("n" * 250, os.O_RDONLY, dir_fd=at), at
        os.close(old)
    os.close(at)
    r = streamed(ctl, "-rp", tree, f":{there}", code=125)
    assert r.err.count("fifo: skipped: neither a file nor a directory") == 1, r
    assert r.err.count("noted: not kept: its access control list or extended attributes") == 1
    assert r.err.count("set-id: not kept: the set-id and sticky bits") == 1
    assert "File name too long" in r.err and re.search(r" [1-9] failed, 1 skipped, 2 attributes not kept", r.err), r
    sparse = (there / "tree/sparse").stat()
    assert sparse.st_size == 900_003 and sparse.st_blocks * 512 < 100_000
    assert (there / "tree/sparse").read_bytes() == (tree / "sparse").read_bytes() and left(there) == []
    assert (there / "tree/noted").read_text() == "noted" and len(list((there / "tree").glob("d*/e*/f*"))) == MANY
    subprocess.run(["rm", "-r", tree], check=True)


@pytest.fixture
def proxy(server):
    p = Proxy(server.url)
    yield p
    p.close()


def test_a_stream_survives_cuts(proxy, directory, here, there):
    ctl = Execctl(directory, proxy.url)
    n = more_rounds(1500, 10000)
    make_many(here / "tree", n)
    (here / "tree/link").symlink_to("d0")
    size = sum(p.stat().st_size for p in here.rglob("f*"))
    (here / "tree").chmod(0o755)
    for target, up in (there / "new", True), (there / "new", True), (there / "back", False), (there / "back", False):
        start = proxy.up + proxy.down
        proxy.cut_at = [start + size * k // 4 for k in (1, 2, 3)]
        cuts = proxy.cuts
        streamed(ctl, "-r", *((f"{here}/tree/.", f":{target}") if up else (f":{here}/tree/.", target)))
        assert proxy.cuts == cuts + 3
        assert content(target) == content(here / "tree") and left(there) == []


def test_a_cut_loses_nothing_however_little_is_kept(configured, directory, user, here):
    """While the connection is away tar there waits."""
    s = configured(f"[listener main]\naddress = ws://127.0.0.1:0\nallow-unauthenticated = any\n"
                   f"[identity any]\nuser = {user.pw_name}\nsandbox-allow-unsandboxed = yes\n"
                   f"[limits]\nretention = 64K\n")
    make_many(here / "tree", 1500)
    size = sum(p.stat().st_size for p in here.rglob("f*"))
    p = Proxy(s.url)
    try:
        p.cut_at = [size * k // 5 for k in (1, 2, 3, 4)]
        streamed(Execctl(directory, p.url), "-r", f":{here}/tree", directory / "back")
        assert p.cuts == 4
    finally:
        p.close()
    assert content(directory / "back") == content(here / "tree") and left(directory) == []


def test_a_connection_that_is_lost_for_good(proxy, directory, here, there):
    ctl = Execctl(directory, proxy.url)
    make_many(here / "tree", 3000)
    p = ctl.popen("--resume-timeout", "300ms", "cp", "-r", here / "tree", f":{there}")
    proxy.wait(lambda: proxy.up > 1 << 20, what="bytes")
    proxy.refusing = True
    proxy.cut()
    out, err = p.communicate(timeout=60)
    assert p.returncode == 254 and b"may be left there, incomplete" in err and b"could not be resumed" in err, err
    assert err.count(b"\n") < 6 and not (there / "tree").exists()


def fake(directory, answer, *arguments):
    """Runs execctl against a server that sends what answer(method, params, id) returns: pairs of an id and a result."""
    ready, state = threading.Event(), {}

    async def serve(ws):
        async for text in ws:
            m = json.loads(text)
            if "id" in m:
                result = answer(m["method"], m.get("params"), m["id"])
                for id, r in result:
                    await ws.send(json.dumps({"id": id, "result": r}))

    async def main():
        state["loop"], state["stop"] = asyncio.get_running_loop(), asyncio.Event()
        async with websockets.serve(serve, "127.0.0.1", 0) as s:
            state["port"] = s.sockets[0].getsockname()[1]
            ready.set()
            await state["stop"].wait()

    t = threading.Thread(target=lambda: asyncio.run(main()))
    t.start()
    assert ready.wait(10)
    try:
        return Execctl(directory, f"ws://127.0.0.1:{state['port']}")(*arguments)
    finally:
        state["loop"].call_soon_threadsafe(state["stop"].set)
        t.join(10)


def entry(name, file):
    return {"fileName": name, "path": f"file:///x/d/{name}", "isDirectory": not file, "isFile": file, "isSymlink": False,
            "size": 1, "modifiedAtMs": 0, "mode": 0o755, "linkTarget": None}


def archive(*members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as t:
        for name, type, data in members:
            m = tarfile.TarInfo(name)
            m.type, m.size, m.linkname = type, len(data), "/etc"
            t.addfile(m, io.BytesIO(data))
    return out.getvalue()


@pytest.mark.parametrize("bad", [
    archive(("../escaped", tarfile.REGTYPE, b"bad")), archive(("/tmp/escaped", tarfile.REGTYPE, b"bad")),
    archive(("./f0/../../escaped", tarfile.REGTYPE, b"bad")), archive(("./f3", tarfile.SYMTYPE, b"")),
    archive(("./f3", tarfile.CHRTYPE, b"")), archive(("./f2", tarfile.REGTYPE, b"bad"), ("./f2", tarfile.REGTYPE, b"bad")),
    archive(("./f5", tarfile.REGTYPE, b"bad"), ("./f4", tarfile.REGTYPE, b"bad")), archive(("n" * 9000, b"0", b"bad")),
    b"no archive" * 200, archive(("./f9", tarfile.REGTYPE, b"b" * 5000))[:2000], b""])
def test_a_hostile_stream_makes_nothing_but_what_was_asked_for(directory, here, bad):
    names = [f"f{i}" for i in range(40)]
    can = {"fsDetails": True, "processCloseStdin": True, "processRetentionWait": True}

    def answer(method, params, id):
        if method == "initialize":
            return [(id, {"sessionId": "s", "environmentInfo": {"shell": {"name": "sh", "path": "/bin/sh"},
                                                                "capabilities": can}})]
        if method == "fs/getMetadata":
            return [(id, {**entry("d", params["path"].rpartition("/")[2] in names), "createdAtMs": 0})]
        if method == "fs/readDirectory":
            return [(id, {"entries": [entry(n, True) for n in names]})]
        if method == "process/start":
            return [(id, {"processId": params["processId"], "sandboxType": "none"})]
        if method == "process/read":
            chunk = base64.b64encode(archive(("./f0", tarfile.REGTYPE, b"x"))[:1024] + bad).decode()
            return [(id, {"chunks": [{"seq": 1, "stream": "stdout", "chunk": chunk}], "nextSeq": 4, "exited": True,
                          "exitCode": 0, "closed": True, "failure": None, "sandboxDenied": False})]
        return [(id, {"chunk": "eA==", "eof": True} if method == "fs/readBlock" else
                 {"status": "accepted"} if method == "process/write" else {"running": False})]

    r = fake(directory, answer, "--verbose", "cp", "-r", ":/x/d", here)
    assert sorted(p.name for p in (here / "d").iterdir()) == sorted(names) and r.code == 0, r
    assert all(stat.S_ISREG(p.lstat().st_mode) and p.read_bytes() in (b"x", b"bad") for p in (here / "d").iterdir())
    assert os.listdir(here) == ["d"] and not (directory / "escaped").exists() and not os.path.exists("/tmp/escaped")


def test_lists_are_asked_for_ahead(directory, here):
    """The server answers for no directory before it was asked for all: it may be far away."""
    names, held = [f"d{i}" for i in range(8)], []

    def answer(method, params, id):
        if method == "initialize":
            return [(id, {"sessionId": "s", "environmentInfo": {"shell": {"name": "sh", "path": "/bin/sh"}}})]
        if method == "fs/getMetadata":
            return [(id, {**entry("d", False), "createdAtMs": 0})]
        if method == "fs/readDirectory" and params["path"].endswith("/x/d"):
            return [(id, {"entries": [entry(n, False) for n in names]})]
        if method == "fs/readDirectory":
            held.append(id)
            return [(i, {"entries": [entry("f", True)]}) for i in held] if len(held) == len(names) else []
        return [(id, {"chunk": "eA==", "eof": True} if method == "fs/readBlock" else {})]

    r = fake(directory, answer, "cp", "-r", ":/x/d", here)
    assert r.code == 0 and [(here / f"d/{n}/f").read_text() for n in names] == ["x"] * 8, r


def test_an_interruption_leaves_nothing(ctl, here, there):
    make_many(here / "tree", 5000)
    p = ctl.popen("cp", "-r", here / "tree", f":{there}")
    poll(lambda: list(there.rglob("f*")), what="the first file")
    p.send_signal(signal.SIGINT)
    _, err = p.communicate(timeout=20)
    assert p.returncode == 130, err
    poll(lambda: not left(there), what="end of what was incomplete")
    assert not (there / "tree").exists()


def test_an_interruption_here_leaves_nothing(proxy, directory, here, there):
    ctl = Execctl(directory, proxy.url)
    make_many(there / "tree", 5000)
    p = ctl.popen("cp", "-r", f":{there}/tree", here)
    poll(lambda: list(here.rglob("f*")), what="the first file")
    p.send_signal(signal.SIGINT)
    _, err = p.communicate(timeout=20)
    assert p.returncode == 130 and left(here) == [], err
    for f in here.rglob("f*"):
        assert f.read_bytes() == (there / f.relative_to(here)).read_bytes()


@pytest.mark.parametrize("way", ["up", "down"])
def test_files_that_change_meanwhile(ctl, here, there, way):
    """Some grow, some shrink, some vanish: each is copied as it was at one moment, or named; the others are."""
    tree = here / "tree"
    make_many(tree, 2000)
    (tree / "changing").mkdir()
    for i in range(200):
        (tree / "changing" / f"{i}").write_bytes(b"%09d\n" % i * 400)
    script = """import os, sys
while True:
    for i in range(200):
        p = sys.argv[1] + f"/{i}"
        if i % 3 == 0:
            with open(p, "ab") as f: f.write(b"%09d\\n" % i * 50)
        elif i % 3 == 1:
            os.truncate(p, max(0, os.stat(p).st_size - 500))
        elif os.path.exists(p):
            os.unlink(p)
    print(flush=True)
"""
    changing = subprocess.Popen(["python3", "-c", script, tree / "changing"], stdout=subprocess.PIPE)
    try:
        changing.stdout.readline()
        r = ctl("--verbose", "cp", "-r", *((tree, f":{there}") if way == "up" else (f":{tree}", there)))
    finally:
        changing.kill()
        changing.wait()
    assert r.code in (0, 125) and "file by file" not in r.err, r
    assert all("changing/" in line for line in r.err.splitlines() if ": No such file" in line or "shorter" in line), r
    for p in (there / "tree/changing").iterdir():
        data = p.read_bytes()
        # A read may see a part of a write that it meets, but nothing else, and no zeros.
        assert data == (b"%09d\n" % int(p.name) * (len(data) // 10 + 1))[:len(data)], p
    same = content(there / "tree")
    assert all(same[n] == v for n, v in content(tree).items() if not n.startswith(b"changing/")) and left(there) == []


@pytest.mark.parametrize("why", ["no tar", "another tar", "tar fails", "too slow"])
def test_where_no_stream_is_possible(configured, directory, user, here, there, why):
    """Then it goes file by file, and says so to whoever asks."""
    bin = directory / "bin"
    bin.mkdir()
    if why != "no tar":
        said = {"another tar": "echo bsdtar 3", "tar fails": 'case $1 in --version) echo "tar (GNU tar) 1" ;; '
                '*) head -c 100000 >/dev/null; echo no room >&2; exit 2 ;; esac', "too slow":
                    'case $1 in --version) echo "tar (GNU tar) 1" ;; *) while read -r line; do :; done; kill -STOP $$ ;; esac'}[why]
        (bin / "tar").write_text(f"#!/bin/sh\n{said}\n")
        (bin / "tar").chmod(0o755)
    for name in "sh", "head":
        (bin / name).symlink_to(f"/usr/bin/{name}")
    deadline = "command-deadline = 200ms\n" if why == "too slow" else ""
    s = configured(f"[listener main]\naddress = ws://127.0.0.1:0\nallow-unauthenticated = any\n"
                   f"[identity any]\nuser = {user.pw_name}\nenvironment = PATH={bin}\n{deadline}")
    ctl = Execctl(directory, s.url)
    make_many(here / "tree")
    r = ctl("--verbose", "cp", "-r", here / "tree", f":{there}")
    assert r.code == 0 and "not as one stream, but file by file: " in r.err, r
    assert {"no tar": "there is no GNU tar", "another tar": "there is no GNU tar", "tar fails": "no room",
            "too slow": "command-deadline"}[why] in r.err
    assert content(there / "tree") == content(here / "tree") and left(there) == []
    r = ctl("--verbose", "cp", "-r", f":{here}/tree", there / "back")
    assert r.code == 0 and "not as one stream, but file by file: " in r.err, r
    assert content(there / "back") == content(here / "tree") and left(there) == []


@pytest.mark.skipif(not ROOT, reason="A FULL DISK IS NOT TESTED: mounting one needs root")
def test_a_full_disk(ctl, directory, here):
    small = directory / "small"
    small.mkdir()
    make_many(here / "tree", 1000)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=777", "none", str(small)], check=True)
    try:
        r = ctl("cp", "-r", here / "tree", f":{small}")
        assert r.code == 125 and "No space left" in r.err and left(small) == [], r
        subprocess.run(["rm", "-r", small / "tree"], check=True)
        r = ctl("cp", "-r", f":{here}/tree", small)
        assert r.code == 125 and r.err.count("No space left") == 1 and left(small) == [], r
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_under_a_profile(configured, directory, user, here, there, sandboxes):
    s = configured(f"[listener main]\naddress = ws://127.0.0.1:0\nallow-unauthenticated = any\n"
                   f"[identity any]\nuser = {user.pw_name}\n[sandbox]\nmax-profile = workspace-write\n")
    ctl = Execctl(directory, s.url)
    make_many(here / "tree")
    streamed(ctl, "-r", "-s", "workspace-write", "-C", there, here / "tree", f":{there}")
    assert content(there / "tree") == content(here / "tree")
    outside = pathlib.Path(user.pw_dir)
    r = ctl("cp", "-r", "-s", "workspace-write", "-C", there, here / "tree", f":{outside}/execd-test-outside")
    assert r.code == 125 and not (outside / "execd-test-outside").exists(), r
    *errors, all_ = map(json.loads, ctl("--json", "cp", "-r", "-s", "read-only", "-C", there, here / "tree", f":{there}/x").out.splitlines())
    assert all_["files"] == 0 and len(errors) == all_["failed"] and "Read-only file system" in errors[0]["error"]
