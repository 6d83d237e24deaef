# SPDX-License-Identifier: ISC
"""The fs/ methods against trees that lie, change, deny and never end
(doc/protocol.md section 10): a result or a typed error, in bounded time and memory,
and nothing happens to what lies outside of the tree that was named.
"""
import base64
import contextlib
import itertools
import os
import pathlib
import pwd
import re
import subprocess
import sys
import tempfile
import time

import pytest
from conftest import ROOT, SANITIZED, USER, children_named, more_rounds
from execd_client import WebSocket, b64
from test_files import NOT_FOUND, error, fs, result, uri  # noqa: F401
from test_limits import rss_kib

WALK = {"maxDepth": 64, "maxDirectories": 10000, "maxEntries": 50000, "followDirectorySymlinks": False}
DENIED = (-32600, "Permission denied (os error 13)")
EXISTS = (-32603, "File exists (os error 17)")
LOOP = (-32603, "Too many levels of symbolic links (os error 40)")
TOO_LONG = (-32603, "File name too long (os error 36)")
NO_SPACE = (-32603, "No space left on device (os error 28)")
READ_ONLY = (-32603, "Read-only file system (os error 30)")
TOO_LARGE = (-32600, "file is too large to read: limit is 536870912 bytes")

need_root = pytest.mark.skipif(not ROOT, reason="MOUNTS ARE NOT TESTED: this needs root")


def answered(m):
    """A result or one of the errors that section 3 knows."""
    if "result" in m:
        return m["result"]
    code, message = error(m)
    if not (code == -32600 and re.fullmatch(r"path `.*` is not a file|fs/copy only supports .*", message)):
        assert re.fullmatch(r"[A-Z][\w, /-]+ \(os error \d+\)", message), (code, message)
        assert code == {"1": -32600, "2": -32004, "13": -32600, "22": -32600}.get(
            re.search(r"(\d+)\)$", message)[1], -32603), (code, message)
    return None


def alive(c):
    assert c.call("environment/status") == {"status": "ready"}


def opened(path):
    """The user's own, to read and write; without following."""
    owner = pwd.getpwnam(USER) if ROOT else pwd.getpwuid(os.getuid())
    for top, _, names in os.walk(path):
        os.chown(top, owner.pw_uid, owner.pw_gid)
        os.chmod(top, 0o777)
        for name in names:
            if not os.path.islink(f"{top}/{name}"):
                os.chown(f"{top}/{name}", owner.pw_uid, owner.pw_gid)
                os.chmod(f"{top}/{name}", 0o666)


def copy(fs, a, b, recursive=True, timeout=20):
    return fs.client.request("fs/copy", {"sourcePath": uri(fs.directory / a), "destinationPath": uri(fs.directory / b),
                                         "recursive": recursive}, timeout)


@contextlib.contextmanager
def busy(source, *argv):
    """A child that runs Python source over and over; child.so_far() tells how often until now, and child.rounds in the
    end."""
    progress = tempfile.TemporaryFile()
    script = ("import ctypes, os, signal, sys\n"
              "on = True\n"
              "def end(*_):\n    global on\n    on = False\n"
              "signal.signal(signal.SIGTERM, end)\n"
              "rounds = 0\n"
              "libc = ctypes.CDLL(None)\n"
              "def swap(a, b):\n    return libc.renameat2(-100, a, -100, b, 2) == 0\n"
              "print(flush=True)\n"
              f"while on:\n    {source}\n    rounds += 1\n    os.pwrite({progress.fileno()}, b'%d' % rounds, 0)\n"
              "print(rounds)\n")
    child = subprocess.Popen([sys.executable, "-c", script, *map(str, argv)], stdout=subprocess.PIPE,
                             pass_fds=[progress.fileno()])
    child.so_far = lambda: int(os.pread(progress.fileno(), 20, 0) or 0)
    try:
        assert child.stdout.readline() == b"\n"
        yield child
    finally:
        child.terminate()
        out = child.stdout.read()
        assert child.wait(20) == 0
        child.rounds = int(out)


# 1. What is swapped meanwhile.

# Every round has a tree of its own under r<N>; "now" names it.
NAMES = [f"{i:02}" for i in range(8)]
SWAP = """[swap(b"now/tree/" + n, b"now/other-" + n) for n in (b"inner", b"fifo", b"link", b"dir")]"""


def make_victim(d):
    (d / "victim/sub").mkdir(parents=True)
    for name in [*NAMES, "only-in-victim", "sub/x"]:
        (d / "victim" / name).write_text("precious " + name)
    opened(d / "victim")
    (d / "elsewhere").write_text("elsewhere")
    os.chmod(d / "elsewhere", 0o666)


def snapshot(top):
    return sorted((str(p), p.lstat().st_mode, p.read_bytes() if p.is_file() else b"") for p in top.rglob("*"))


def make_round(d, n):
    r = d / f"r{n}"
    (r / "tree/inner/sub").mkdir(parents=True)
    for name in [*NAMES, "sub/x"]:
        (r / "tree/inner" / name).write_text("ours")
    for name in ("fifo", "link", "dir"):
        (r / "tree" / name).write_text("ours")
    os.symlink(d / "victim", r / "other-inner")
    os.symlink(d / "elsewhere", r / "other-link")
    (r / "other-dir").mkdir()
    opened(r)
    os.mkfifo(r / "other-fifo")
    os.chmod(r / "other-fifo", 0o666)
    os.symlink(f"r{n}", d / "next")
    os.rename(d / "next", d / "now")
    return r


def of_round(c, method, r, n):
    def call(method, path, **params):
        return answered(c.request("fs/" + method, {"path": uri(r / path), **params}))

    def between(a, b):
        return answered(c.request("fs/copy", {"sourcePath": uri(a), "destinationPath": uri(b), "recursive": True}))

    tree = r / "tree"
    each = [f"tree/{name}" for name in ("inner", "fifo", "link", "dir")]
    if method == "remove":
        call("remove", "tree")
    elif method == "copy from":
        between(tree, r / "copy")
        for p in (r / "copy").rglob("*"):
            assert p.is_symlink() or not p.is_file() or p.read_text() in ("", "ours"), p
    elif method == "copy to":
        between(r.parent / "source", tree)
    elif method == "copy file":
        for name in each[1:]:
            between(r / name, r / "copied")
            answered(c.request("fs/remove", {"path": uri(r / "copied")}))
            between(r.parent / "file", r / name)
    elif method == "walk":
        for e in (call("walk", "tree", options=WALK) or {"entries": []})["entries"]:
            assert not e["path"].endswith("only-in-victim"), e
    elif method == "createDirectory":
        for name in each[1:]:
            call("createDirectory", name + "/a/b")
            call("createDirectory", name + "/c", recursive=False)
    elif method == "writeFile":
        for name in each[1:]:
            call("writeFile", name, dataBase64=b64("ours"))
    elif method == "open":
        for mode in ("read", "replace"):
            for name in each:
                if call("open", name, handleId="h", mode=mode):
                    answered(c.request("fs/readBlock", {"handleId": "h", "offset": 0, "len": 10}))
                    c.request("fs/writeBlock", {"handleId": "h", "offset": 0, "chunk": b64("ours")})
                c.call("fs/close", {"handleId": "h"})
    else:
        for name in ["tree", *each]:
            call(method, name)


@pytest.mark.parametrize("method, rounds", [
    ("remove", 60), ("copy from", 50), ("copy to", 50), ("copy file", 20), ("walk", 50), ("createDirectory", 30),
    ("writeFile", 40), ("open", 20), ("readFile", 40), ("getMetadata", 40), ("canonicalize", 40), ("readDirectory", 40),
])
def test_nobody_leads_a_method_out_of_its_tree(client, directory, method, rounds):
    make_victim(directory)
    (directory / "source/inner/sub").mkdir(parents=True)
    (directory / "file").write_text("ours")
    for name in ["sub/x", *NAMES]:
        (directory / "source/inner" / name).write_text("ours")
    opened(directory)
    before = snapshot(directory / "victim")
    make_round(directory, "first")
    with busy(f"os.chdir(sys.argv[1]); {SWAP}", directory) as swapper:
        for n in range(100 * rounds):
            of_round(client, method, make_round(directory, n), n)
            # A busy machine may let the other side wait for all of these.
            if n + 1 >= more_rounds(rounds // 3, rounds) and swapper.so_far() > rounds // 3:
                break
    assert swapper.rounds > rounds // 3, "nothing was swapped"
    assert snapshot(directory / "victim") == before
    alive(client)


def test_an_inner_link_of_the_destination_is_not_followed(fs):
    d = fs.directory
    make_victim(d)
    before = snapshot(d / "victim")
    for name, target, inner in (("to-dir", d / "victim", "x/00"), ("to-file", d / "victim/00", "x"),
                                ("dangling", d / "victim/new", "x"), ("to-none", d / "victim/new", "x/00")):
        (d / name / "from" / inner).parent.mkdir(parents=True)
        (d / name / "from" / inner).write_text("overwritten")
        (d / name / "to").mkdir()
        os.symlink(target, d / name / "to/x")
        opened(d / name)
        assert error(copy(fs, f"{name}/from", f"{name}/to")) == EXISTS, name
        # The path that was named is the kernel's to resolve.
        os.symlink("to", d / name / "link")
        assert error(copy(fs, f"{name}/from", f"{name}/link")) == EXISTS, name
    assert snapshot(d / "victim") == before


@need_root
def test_a_copy_never_walks_into_itself_by_a_mount_either(spawn, directory):
    d = directory
    (d / "tree/in").mkdir(parents=True)
    (d / "tree/in/f").write_text("x")
    (d / "again").mkdir()
    opened(d)
    with mounted(d / "again", "--bind", str(d / "tree")):
        fs = calls(spawn, d)
        for target in ("again", "again/in", "again/in/new"):
            code, message = error(copy(fs, "tree", target))
            assert message.endswith("to itself or one of its descendants"), message
    assert (d / "tree/in/f").read_text() == "x"


# 2. Full and read-only file systems. A server sees the mounts that were there
# before it.

def calls(spawn, directory):
    c = spawn().ready()

    def call(method, path, **params):
        return c.request("fs/" + method, {"path": uri(directory / path), **params})
    call.client, call.directory = c, directory
    return call


@contextlib.contextmanager
def mounted(path, *args):
    subprocess.run(["mount", *args, str(path)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


@need_root
def test_a_full_disk(spawn, directory):
    d = directory
    (d / "big").write_bytes(os.urandom(2 << 20))
    (d / "full").mkdir()
    (d / "tree").mkdir()
    os.link(d / "big", d / "tree/big")
    opened(d)
    with mounted(d / "full", "-t", "tmpfs", "-o", "size=1m,mode=777,nr_inodes=6", "execd-test"):
        fs = calls(spawn, d)
        assert error(fs("writeFile", "full/a", dataBase64=b64(bytes(2 << 20)))) == NO_SPACE
        assert error(copy(fs, "big", "full/a")) == NO_SPACE
        assert error(copy(fs, "tree", "full/tree")) == NO_SPACE
        assert result(fs("remove", "full/tree")) == {}
        assert result(fs("open", "full/a", handleId="h", mode="replace")) == {"handleId": "h"}
        block = {"handleId": "h", "chunk": b64(b"x" * (1 << 20))}
        assert result(fs.client.request("fs/writeBlock", {**block, "offset": 0})) == {}
        assert error(fs.client.request("fs/writeBlock", {**block, "offset": 1 << 20})) == NO_SPACE
        assert result(fs.client.request("fs/close", {"handleId": "h"})) == {}
        made = [result(fs("createDirectory", f"full/d{i}")) for i in range(4)]
        assert made == [{}] * 4
        for recursive in (False, True):
            assert error(fs("createDirectory", "full/more", recursive=recursive)) == NO_SPACE
        assert error(fs("writeFile", "full/more", dataBase64="")) == NO_SPACE
        # What was there is there, and there is a way out.
        assert len(os.listdir(d / "full")) == 5
        for name in os.listdir(d / "full"):
            assert result(fs("remove", f"full/{name}")) == {}
        assert result(fs("writeFile", "full/a", dataBase64=b64("fits"))) == {}


@need_root
def test_a_disk_that_is_read_only(spawn, directory):
    d = directory
    (d / "ro").mkdir()
    (d / "f").write_text("x")
    (d / "tree").mkdir()
    (d / "tree/f").write_text("x")
    opened(d)
    with mounted(d / "ro", "-t", "tmpfs", "-o", "mode=777", "execd-test"):
        (d / "ro/dir/sub").mkdir(parents=True)
        (d / "ro/dir/f").write_text("kept")
        (d / "ro/file").write_text("kept")
        opened(d / "ro")
        subprocess.run(["mount", "-o", "remount,ro", d / "ro"], check=True)
        before = snapshot(d / "ro")
        fs = calls(spawn, d)
        for name in ("file", "new"):
            assert error(fs("writeFile", "ro/" + name, dataBase64=b64("y"))) == READ_ONLY
            assert error(fs("open", "ro/" + name, handleId="h", mode="replace")) == READ_ONLY
            assert error(copy(fs, "f", "ro/" + name)) == READ_ONLY
        for params in ({}, {"recursive": False}):
            assert error(fs("createDirectory", "ro/new", **params)) == READ_ONLY
        assert error(fs("createDirectory", "ro/new/below")) == READ_ONLY
        assert result(fs("createDirectory", "ro/dir")) == {}
        for name, params in (("file", {}), ("dir", {}), ("dir/sub", {"recursive": False})):
            assert error(fs("remove", "ro/" + name, **params)) == READ_ONLY
        assert result(fs("remove", "ro/none")) == {}
        assert error(copy(fs, "tree", "ro/new")) == READ_ONLY
        assert error(copy(fs, "tree", "ro/dir")) == READ_ONLY
        os.symlink("f", d / "link")
        assert error(copy(fs, "link", "ro/new")) == READ_ONLY
        assert snapshot(d / "ro") == before
        assert result(copy(fs, "ro/dir", "out")) == {}
        assert (d / "out/f").read_text() == "kept"


# 3. What may not be looked at.

def denied_tree(fs, user, mode, count=1):
    """a and z as they should be, and m in between, the user's own."""
    top = fs.directory / "tree"
    for name in "amz":
        (top / name).mkdir(parents=True)
        for i in range(count if name == "m" else 1):
            if i == 0:
                os.mknod(f"{top}/{name}/0", 0o666)
            else:
                os.link(f"{top}/{name}/0", f"{top}/{name}/{i}")
    for p in (top, *(top / name for name in "amz")):
        os.chown(p, user.pw_uid, user.pw_gid)
    os.chmod(top / "m", mode)
    return top


@pytest.mark.parametrize("inner", [0, 0o444, 0o111])
def test_a_directory_that_denies(fs, user, inner):
    top = denied_tree(fs, user, inner)
    try:
        w = result(fs("walk", "tree", options=WALK))
        below = "/0" if inner == 0o444 else ""
        assert w["errors"] == [{"path": f"{uri(top)}/m{below}", "message": DENIED[1]}] and not w["truncated"]
        assert [e["path"][-4:] for e in w["entries"]] == ["ee/a", "ee/m", "ee/z", "/a/0", "/z/0"]
        assert error(copy(fs, "tree", "new")) == DENIED
        assert error(fs("remove", "tree")) == DENIED
        assert error(fs("remove", "tree/m", force=True)) == DENIED
        assert not ROOT or len(os.listdir(top / "m")) == 1
        os.chmod(top / "m", 0o755)
        assert (top / "m/0").exists()
        assert result(copy(fs, "tree/m", "new/m")) == {} and result(fs("remove", "tree")) == {}
        assert not top.exists()
    finally:
        if top.exists():
            os.chmod(top / "m", 0o755)


def test_an_empty_directory_that_denies_is_no_obstacle(fs, user):
    """Read it may be, and searched not; that there is nothing in it is enough."""
    top = denied_tree(fs, user, 0o444, 0)
    os.mkdir(top / "b", 0o755)
    opened(top / "b")
    os.chmod(top / "b", 0o444)
    assert result(copy(fs, "tree", "copy")) == {}
    assert sorted(os.listdir(fs.directory / "copy")) == ["a", "b", "m", "z"]
    os.chmod(top / "m", 0)
    assert result(fs("remove", "tree")) == {} and not top.exists()


def test_the_errors_of_a_walk_are_bounded(fs, user):
    """Entries that cannot be stat'ed count for no limit of the client's."""
    top = denied_tree(fs, user, 0o444, 50_100)
    try:
        w = result(fs("walk", "tree", options={**WALK, "maxEntries": 5}))
        assert len(w["entries"]) <= 5 and len(w["errors"]) == 50_000 and w["truncated"]
    finally:
        os.chmod(top / "m", 0o755)


def test_the_paths_of_a_walk_are_bounded(fs):
    """25000 names below 4 KiB of path would be an answer of 100 MB and more."""
    name, d = "%" * 250, os.open(fs.directory, os.O_RDONLY)
    for _ in range(15):
        os.mkdir(name, 0o777, dir_fd=d)
        d, old = os.open(name, os.O_RDONLY, dir_fd=d), d
        os.close(old)
    os.mknod("00000", 0o644, dir_fd=d)
    for i in range(1, 10_000):
        os.link("00000", f"{i:05}", src_dir_fd=d, dst_dir_fd=d)
    os.close(d)
    w = result(fs("walk", "", options=WALK, ))
    assert w["truncated"] and 4000 < len(w["entries"]) < 9000


# 4. Sizes.

def test_a_huge_sparse_file_block_by_block(fs):
    size = 4 << 30
    (fs.directory / "big").touch()
    os.chmod(fs.directory / "big", 0o666)
    os.truncate(fs.directory / "big", size)
    c = fs.client
    assert error(fs("readFile", "big")) == TOO_LARGE
    assert result(fs("getMetadata", "big"))["size"] == size
    result(fs("open", "big", handleId="h"))
    assert c.call("fs/readBlock", {"handleId": "h", "offset": size - 1, "len": 2}) == {"chunk": "AA==", "eof": True}
    for offset in (size, 2**63 - 1, 2**63, 2**64 - 1):
        assert c.call("fs/readBlock", {"handleId": "h", "offset": offset, "len": 1 << 20}) == {"chunk": "", "eof": True}
    os.truncate(fs.directory / "big", (512 << 20) + 1)
    assert error(fs("readFile", "big")) == TOO_LARGE


@pytest.mark.parametrize("source", [
    "os.truncate(sys.argv[1], 0); os.truncate(sys.argv[1], 2 << 20)",
    "os.truncate(sys.argv[1], 3); os.truncate(sys.argv[1], 1 << 20); os.truncate(sys.argv[1], (1 << 20) + 70000)",
    "f = os.open(sys.argv[1], os.O_WRONLY | (os.O_TRUNC if rounds % 64 == 0 else os.O_APPEND)); "
    "os.write(f, bytes(65536)); os.close(f)",
], ids=["shrinks", "around the limit", "grows"])
def test_a_file_that_changes_while_it_is_read(fs, source):
    path = fs.directory / "f"
    path.touch()
    os.chmod(path, 0o666)
    lengths, turns = set(), itertools.count()
    with busy(source, path) as changer:
        end = time.monotonic() + 20
        while len(lengths) < 3 or next(turns) < 12:
            assert time.monotonic() < end, lengths
            data = base64.b64decode(result(fs("readFile", "f"))["dataBase64"], validate=True)
            assert data.count(0) == len(data) <= 4 << 20
            lengths.add(len(data))
            assert answered(copy(fs, "f", "copy")) == {}
            assert (fs.directory / "copy").stat().st_size <= 4 << 20
    assert changer.rounds > 10
    alive(fs.client)


def test_what_was_cut_off_is_not_made_up_for(fs):
    """Files in /sys claim a page and have less."""
    name = next(n for n in ("/sys/kernel/mm/transparent_hugepage/enabled", "/sys/kernel/uevent_seqnum",
                            "/sys/devices/system/cpu/online") if os.access(n, os.R_OK))
    content = pathlib.Path(name).read_bytes()
    assert result(copy(fs, name, "copy")) == {}
    assert (fs.directory / "copy").read_bytes() == content


class Discarding(WebSocket):
    """Reads what is large without keeping it. It comes in fragments."""
    large = 0
    begun = False
    zeros = 0
    on_piece = None

    def _exactly(self, n):
        if n < 1 << 20:
            return super()._exactly(n)
        left = n
        while left > 0:
            piece = self.sock.recv(min(left, 1 << 20))
            if not piece:
                raise EOFError
            left -= len(piece)
            self.zeros += piece.count(b"A")
            self.on_piece(self.large + n - left)
        self.large += n
        first, self.begun = not self.begun, True
        return b'{"id":"large","result":{}}' if first else b""


def measured(s, c):
    return {"frontend": s.frontend(), "runner": s.runner(c), "helper": int(children_named(s.runner(c), "execd-files")[0])}


def connect_discarding(s):
    c = Discarding(s.url)
    s.clients.append(c)
    return c.ready()


@pytest.mark.parametrize("kind", ["400 MiB", "without a size"])
def test_a_large_answer_costs_no_memory(spawn, directory, kind):
    s = spawn()
    c = connect_discarding(s)
    size = 400 << 20
    path = directory / "big"
    path.touch()
    os.truncate(path, size)
    os.chmod(path, 0o644)
    c.call("fs/getMetadata", {"path": uri(path)})
    pids = measured(s, c)
    before = {k: rss_kib(p) for k, p in pids.items()}
    most, at = dict(before), [0]

    def sample(done):
        if done >= at[0]:
            at[0] += 8 << 20
            for k, p in pids.items():
                most[k] = max(most[k], rss_kib(p))

    c.on_piece = sample
    if kind == "400 MiB":
        c.post("fs/readFile", {"path": uri(path)}, id="large")
        c.answer("large", 60)
        assert c.large > size * 4 // 3 and c.zeros - (size + 2) // 3 * 4 in range(-2, 3)
    else:
        # The map of a process's pages goes on for 256 GiB and says 0.
        # (No exec: the map would end with what it shows.)
        c.sh("p", "echo $$; sleep 1000; :")
        pid = int(c.wait_output("p", "\n"))
        c.post("fs/readFile", {"path": f"file:///proc/{pid}/pagemap"}, id="large")
        end = time.monotonic() + 60
        while not any(m.get("id") == "large" for m in c.messages):
            sample(at[0])
            assert time.monotonic() < end
            with c.changed:
                c.changed.wait(0.02)
        assert error(c.answer("large")) == TOO_LARGE
    # A sanitizer keeps 256 MiB of what was freed.
    bound = (64 + (256 if SANITIZED else 0)) << 10
    for k, p in pids.items():
        peak = int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{p}/status").read_text())[1])
        assert max(peak, most[k]) - before[k] < bound, (k, before, most, peak)


# 5. Depth and length.

def build_deep(top, name, depth):
    d = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=d)
        d, old = os.open(name, os.O_RDONLY, dir_fd=d), d
        os.fchmod(d, 0o777)
        os.close(old)
    f = os.open("leaf", os.O_WRONLY | os.O_CREAT, 0o666, dir_fd=d)
    os.write(f, b"leaf")
    os.fchmod(f, 0o666)
    os.close(f)
    os.close(d)


def depth_of(top, name):
    d, n = os.open(top, os.O_RDONLY), 0
    while True:
        try:
            d, old = os.open(name, os.O_RDONLY, dir_fd=d), d
        except FileNotFoundError:
            break
        os.close(old)
        n += 1
    leaf = os.listdir(d)
    os.close(d)
    return n, leaf


@pytest.mark.parametrize("name", ["d", pytest.param("ü" * 127 + "n", marks=pytest.mark.nightly)], ids=["short", "255 bytes"])
def test_a_very_deep_tree(fs, name):
    d, depth = fs.directory, 2000
    (d / "deep").mkdir()
    os.chmod(d / "deep", 0o777)
    build_deep(d / "deep", name, depth)
    try:
        w = result(fs("walk", "deep", options=WALK))
        assert len(w["entries"]) == 65 and w["errors"] == [] and not w["truncated"]
        assert result(copy(fs, "deep", "copy", timeout=60)) == {}
        assert depth_of(d / "copy", name) == (depth, ["leaf"])
        for top in ("copy", "deep"):
            assert result(fs("remove", top)) == {} and not (d / top).exists()
        alive(fs.client)
    finally:
        subprocess.run(["rm", "-rf", d / "deep", d / "copy"], check=True)


@pytest.mark.parametrize("path", ["n" * 256, "n" * 256 + "/x", "d/" * 2100 + "x", "/a" * 500_000],
                         ids=["name", "parent", "path", "megabyte"])
def test_names_that_are_too_long(fs, path):
    path = path.lstrip("/")
    for method, params in [("readFile", {}), ("writeFile", {"dataBase64": ""}), ("createDirectory", {}),
                           ("createDirectory", {"recursive": False}), ("getMetadata", {}), ("canonicalize", {}),
                           ("readDirectory", {}), ("walk", {"options": WALK}), ("remove", {}),
                           ("open", {"handleId": "h"}), ("open", {"handleId": "h", "mode": "replace"})]:
        assert error(fs(method, path, **params)) == TOO_LONG, method
    for target, content in (("f", "x"), ("dir/f", "x")):
        (fs.directory / target).parent.mkdir(exist_ok=True)
        (fs.directory / target).write_text(content)
    opened(fs.directory)
    os.symlink("f", fs.directory / "l")
    assert error(copy(fs, path, "g")) == TOO_LONG
    for source in ("f", "dir", "l"):
        assert error(copy(fs, source, path)) == TOO_LONG
    assert sorted(os.listdir(fs.directory)) == ["dir", "f", "l"]


def test_a_name_of_255_bytes_is_fine(fs):
    name = "n" * 255
    assert result(fs("createDirectory", name)) == {}
    assert result(fs("writeFile", f"{name}/{name}", dataBase64=b64("x"))) == {}
    assert result(copy(fs, name, "copy")) == {}
    assert os.listdir(fs.directory / "copy") == [name]


def test_dots_behind_an_escaped_slash_are_resolved_in_the_text(fs):
    """Q14: such a URI names another place; which one nothing on the disk decides."""
    (fs.directory / "a/b").mkdir(parents=True)
    (fs.directory / "a/f").write_text("x")
    os.symlink("/", fs.directory / "a/link")
    opened(fs.directory)
    m = fs.client.request("fs/getMetadata", {"path": uri(fs.directory / "a/link") + "%2F..%2Ff"})
    assert m["result"]["isFile"], "beside the link, not beside its target"
    for end in ("b%2F.", "none%2F..%2Fb"):
        assert "result" in fs.client.request("fs/getMetadata", {"path": uri(fs.directory / "a") + "/" + end})


# 6. /proc.

@pytest.mark.parametrize("name", ["self/mem", "kmsg", "1/environ", "1/mem", "kcore", "self/environ", "{me}/environ",
                                  "{me}/mem", "{me}/fd", "{me}/root/x", "sys/kernel/core_pattern", "self/attr/current"])
def test_files_of_proc_that_are_nobodys_business(fs, name):
    path = "/proc/" + name.format(me=os.getpid())
    foreign = ROOT and not name.startswith("self/attr")
    for method, params in [("readFile", {}), ("writeFile", {"dataBase64": b64("x")}), ("remove", {"force": False}),
                           ("createDirectory", {}), ("getMetadata", {}), ("canonicalize", {}), ("readDirectory", {}),
                           ("walk", {"options": {**WALK, "maxDepth": 1}})]:
        got = answered(fs(method, path, **params))
        if method in ("writeFile", "remove") and foreign:
            assert got is None, (method, path)
    if foreign and "core_pattern" not in name:
        assert answered(fs("readFile", path)) is None
        assert answered(copy(fs, path, "copy")) is None
    for mode in ("read", "replace"):
        if answered(fs("open", path, handleId="h", mode=mode)):
            answered(fs.client.request("fs/readBlock", {"handleId": "h", "offset": 0, "len": 100}))
            fs.client.call("fs/close", {"handleId": "h"})
    alive(fs.client)


def test_proc_while_processes_come_and_go(fs):
    with busy("os.posix_spawn('/bin/true', ['true'], {}); os.wait()") as comers:
        for depth in (1, 2, 3) * 4:
            w = result(fs("walk", "/proc", options={**WALK, "maxDepth": depth, "maxDirectories": 300}))
            assert len(w["entries"]) > 100
            assert all(re.fullmatch(r"[A-Z].* \(os error \d+\)", e["message"]) for e in w["errors"])
            assert len(result(fs("readDirectory", "/proc"))["entries"]) > 20
            w = result(fs("walk", "/proc", options={**WALK, "maxDepth": 1, "maxDirectories": 50,
                                                     "followDirectorySymlinks": True}))
            assert len(w["entries"]) > 100
    assert comers.rounds > 10
    alive(fs.client)


# 7. Links.

def make_links(d):
    os.symlink("two", d / "one")
    os.symlink("one", d / "two")
    os.symlink("self", d / "self")
    os.symlink("none", d / "dangling")
    os.symlink("below/../up/x", d / "deep")
    for i in range(60):
        os.symlink(f"chain{i + 1}", d / f"chain{i}")


@pytest.mark.parametrize("name, bad", [("one", LOOP), ("self", LOOP), ("chain0", LOOP), ("dangling", NOT_FOUND),
                                       ("deep", NOT_FOUND)])
def test_links_that_lead_nowhere(fs, name, bad):
    d = fs.directory
    make_links(d)
    for method, params in [("readFile", {}), ("canonicalize", {}), ("readDirectory", {}), ("getMetadata", {}),
                           ("open", {"handleId": "h"})]:
        assert error(fs(method, name, **params)) == bad, method
    for method, params in [("readFile", {}), ("canonicalize", {}), ("readDirectory", {}), ("getMetadata", {}),
                           ("open", {"handleId": "h"}), ("open", {"handleId": "h", "mode": "replace"}),
                           ("writeFile", {"dataBase64": ""}), ("createDirectory", {"recursive": False}),
                           ("walk", {"options": WALK}), ("remove", {"force": False})]:
        assert error(fs(method, name + "/x", **params)) == bad, method
    # Nothing can be made where a link is that leads nowhere.
    assert error(fs("createDirectory", name, recursive=False)) == EXISTS
    assert error(fs("createDirectory", name)) == EXISTS
    if bad == LOOP or name == "deep":
        assert error(fs("writeFile", name, dataBase64="")) == bad
        assert error(fs("open", name, handleId="h", mode="replace")) == bad
        assert error(copy(fs, "/etc/passwd", name)) == bad
    nothing = {"entries": [], "errors": [], "truncated": False}
    assert result(fs("walk", name, options=WALK)) == nothing
    assert result(copy(fs, name, "copy")) == {} and os.readlink(d / "copy") == os.readlink(d / name)
    assert result(fs("remove", name)) == {} and not os.path.lexists(d / name)
    # What cannot be stat'ed is left out.
    listed = result(fs("readDirectory", ""))
    assert listed == {"entries": []}
    for follow in (False, True):
        assert result(fs("walk", "", options={**WALK, "followDirectorySymlinks": follow})) == nothing


def test_a_tree_of_loops_is_walked_once(fs):
    d = fs.directory
    for a in "xyz":
        (d / a).mkdir()
        for b in "xyz":
            os.symlink(f"../{b}", d / a / f"to-{b}")
        os.symlink("..", d / a / "up")
        os.symlink(".", d / a / "here")
    opened(d)
    w = result(fs("walk", "", options={**WALK, "followDirectorySymlinks": True}))
    assert len(w["entries"]) == 3 + 3 * 5 and not w["truncated"] and not w["errors"]
    assert result(copy(fs, "x", "copy")) == {} and os.readlink(d / "copy/up") == ".."
    for name in os.listdir(d):
        assert result(fs("remove", name)) == {}
    assert os.listdir(d) == []


# 8. Many at once.

def test_hundreds_at_once_are_answered_in_order(fs):
    c, d = fs.client, fs.directory
    expected = []

    def post(method, check, **params):
        n = len(expected)
        expected.append((method, check))
        c.post("fs/" + method, params, id=f"n{n}")

    for i in range(60):
        top, f = uri(d / f"t{i}"), uri(d / f"t{i}/f")
        data = b64(os.urandom(i * 1000))
        post("getMetadata", NOT_FOUND, path=top)
        post("createDirectory", {}, path=top)
        post("writeFile", {}, path=f, dataBase64=data)
        post("readFile", {"dataBase64": data}, path=f)
        post("open", {"handleId": f"h{i}"}, path=f, handleId=f"h{i}", mode="replace")
        post("writeBlock", {}, handleId=f"h{i}", offset=1, chunk=b64("xy"))
        post("close", {}, handleId=f"h{i}")
        post("open", {"handleId": "r"}, path=f, handleId="r")
        post("readBlock", {"chunk": b64(b"\0xy"), "eof": True}, handleId="r", offset=0, len=4)
        post("close", {}, handleId="r")
        post("canonicalize", {"path": f}, path=f)
        post("copy", {}, sourcePath=top, destinationPath=top + "-copy", recursive=True)
        post("readDirectory", {"entries": [{"fileName": "f", "isDirectory": False, "isFile": True}]},
             path=top + "-copy")
        post("walk", {"entries": [{"path": top + "-copy/f", "kind": "file"}], "errors": [], "truncated": False},
             path=top + "-copy", options=WALK)
        post("remove", {}, path=top)
        post("remove", NOT_FOUND, path=top, force=False)
        post("remove", {}, path=top + "-copy")
    c.answer(f"n{len(expected) - 1}", 60)
    answers = [m for m in c.messages if str(m.get("id", "")).startswith("n")]
    assert [m["id"] for m in answers] == [f"n{i}" for i in range(len(expected))]
    for m, (method, check) in zip(answers, expected):
        assert (error(m) if isinstance(check, tuple) else result(m)) == check, method
    assert os.listdir(d) == []
