# SPDX-License-Identifier: ISC
"""fs/move, fs/chmod, fs/symlink, fs/setTimes, and details of files (doc/protocol.md section 17)."""
import os
import stat

import pytest
from conftest import poll

GONE = (-32004, "No such file or directory (os error 2)")


def own(client, directory, script):
    """Makes files as the session's user."""
    r = client.run_sh(script, f"cd {directory}; {script}")
    assert r.code == 0, r.stderr


def move(client, directory, source, destination, call="call", **extra):
    return getattr(client, call)("fs/move", {"sourcePath": f"file://{directory}/{source}",
                                            "destinationPath": f"file://{directory}/{destination}", **extra})


def test_move(client, directory):
    own(client, directory, "echo a > a; mkdir -p d/sub; ln -s nowhere l")
    assert move(client, directory, "a", "b") == {}
    assert not (directory / "a").exists() and (directory / "b").read_text() == "a\n"
    assert move(client, directory, "d", "e") == {} and (directory / "e/sub").is_dir()
    assert move(client, directory, "l", "m") == {} and os.readlink(directory / "m") == "nowhere"


def test_move_replaces_only_when_told(client, directory):
    own(client, directory, "echo a > a; echo b > b; mkdir d full; echo x > full/x; ln -s b link")
    exists = (-32603, "File exists (os error 17)")
    for destination in ("b", "d", "full", "link"):
        assert move(client, directory, "a", destination, "error") == exists
    assert (directory / "b").read_text() == "b\n"
    assert move(client, directory, "a", "link", overwrite=True) == {}
    assert (directory / "b").read_text() == "b\n" and (directory / "link").read_text() == "a\n"
    assert move(client, directory, "link", "d", "error", overwrite=True) == (-32603, "Is a directory (os error 21)")
    assert move(client, directory, "d", "full", "error", overwrite=True) == \
        (-32603, "Directory not empty (os error 39)")


def test_move_replaces_no_special_file(client, directory):
    own(client, directory, "echo a > a; mkfifo f; ln -s f l")
    assert move(client, directory, "a", "f", "error", overwrite=True) == \
        (-32600, f"path `{directory}/f` is not a file")
    assert stat.S_ISFIFO((directory / "f").stat().st_mode) and (directory / "a").read_text() == "a\n"
    # A link is itself replaced, and not what it leads to.
    assert move(client, directory, "a", "l", overwrite=True) == {} and stat.S_ISFIFO((directory / "f").stat().st_mode)


def test_move_keeps_what_it_replaces(client, directory):
    own(client, directory, "echo new > a; chmod 600 a; echo old > b; chmod 4640 b; ln b c")
    assert move(client, directory, "a", "b", "error", keepAttributes=True) == (-32603, "File exists (os error 17)")
    inode = (directory / "b").stat().st_ino
    assert move(client, directory, "a", "b", overwrite=True, keepAttributes=True) == {}
    assert not (directory / "a").exists() and (directory / "b").stat().st_ino == inode
    assert (directory / "c").read_text() == "new\n" and stat.S_IMODE((directory / "c").stat().st_mode) == 0o640
    # Without other names it is renamed, with the mode of the old file or the one that is asked for; and in place of
    # a link or of nothing as without.
    own(client, directory, "rm c; echo newer > a; ln -s b l; ln -s nowhere dangling; echo x > d; echo y > e")
    assert move(client, directory, "a", "b", overwrite=True, keepAttributes=True, mode=0o604) == {}
    st = (directory / "b").stat()
    assert (st.st_ino != inode, stat.S_IMODE(st.st_mode)) == (True, 0o604)
    assert move(client, directory, "d", "l", overwrite=True, keepAttributes=True) == {}
    assert (directory / "l").read_text() == "x\n" and (directory / "b").read_text() == "newer\n"
    assert move(client, directory, "e", "none", overwrite=True, keepAttributes=True, mode=0o600) == {}
    assert stat.S_IMODE((directory / "none").stat().st_mode) == 0o600
    own(client, directory, "echo a > a; mkfifo f; mkdir sub")
    assert move(client, directory, "a", "f", "error", overwrite=True, keepAttributes=True)[0] == -32600
    assert move(client, directory, "a", "sub", "error", overwrite=True, keepAttributes=True) == \
        (-32603, "Is a directory (os error 21)")
    assert move(client, directory, "gone", "b", "error", overwrite=True, keepAttributes=True) == GONE


def test_move_says_what_it_could_not_keep(client, directory):
    own(client, directory, "echo new > a; echo old > b; chmod 400 b; ln b c")
    assert move(client, directory, "a", "b", overwrite=True, keepAttributes=True) == {"notKept": "its hard links"}
    assert (directory / "b").read_text() == "new\n" and (directory / "c").read_text() == "old\n"


def test_move_errors(client, directory):
    own(client, directory, "mkdir d; echo f > f")
    assert move(client, directory, "none", "x", "error") == GONE
    assert move(client, directory, "f", "none/x", "error") == GONE
    assert move(client, directory, "d", "d/e", "error") == (-32600, "Invalid argument (os error 22)")
    assert move(client, directory, "f", "f/x", "error") == (-32603, "Not a directory (os error 20)")
    assert client.error("fs/move", {"sourcePath": f"file://{directory}/f", "destinationPath": "file://host/x"}) == \
        (-32600, "'file://host/x' is invalid on 'linux'")
    if os.stat("/dev/shm").st_dev != directory.stat().st_dev:
        code, text = client.error("fs/move", {"sourcePath": f"file://{directory}/f",
                                              "destinationPath": f"file:///dev/shm/execd-{os.getpid()}"})
        assert (code, text) == (-32603, "Invalid cross-device link (os error 18)")
    assert (directory / "f").read_text() == "f\n"


def test_chmod(client, directory):
    own(client, directory, "echo a > a; mkdir d; ln -s a l; ln -s nowhere dangling")
    for name, mode in (("a", 0o640), ("d", 0o1755), ("l", 0o600)):
        assert client.call("fs/chmod", {"path": f"file://{directory}/{name}", "mode": mode}) == {}
        assert stat.S_IMODE((directory / name).stat().st_mode) == mode
    assert client.error("fs/chmod", {"path": f"file://{directory}/dangling", "mode": 0}) == GONE
    assert client.error("fs/chmod", {"path": "file:///etc/passwd", "mode": 0o600}) == \
        (-32600, "Operation not permitted (os error 1)")
    assert client.error("fs/chmod", {"path": f"file://{directory}/a", "mode": 0o10000}) == \
        (-32602, "mode must be between 0 and 4095")


def test_symlink(client, directory):
    for i, target in enumerate(("nowhere", "../up/%41", "/abs path", "ü" * 100, "x" * 4095)):
        assert client.call("fs/symlink", {"path": f"file://{directory}/l{i}", "target": target}) == {}
        assert os.readlink(directory / f"l{i}") == target
    params = {"path": f"file://{directory}/l0", "target": "other"}
    assert client.error("fs/symlink", params) == (-32603, "File exists (os error 17)")
    assert client.error("fs/symlink", {**params, "path": f"file://{directory}/none/x"}) == GONE
    assert client.error("fs/symlink", {**params, "target": "x" * 4096}) == (-32603, "File name too long (os error 36)")
    assert os.readlink(directory / "l0") == "nowhere"


def test_set_times(client, directory):
    own(client, directory, "echo a > a; ln -s a l; mkdir d; ln -s nowhere dangling")
    for name, ms in (("a", 1), ("l", 1700000000123), ("d", 0), ("a", 4102444800000)):
        before = (directory / name).stat().st_atime_ns
        assert client.call("fs/setTimes", {"path": f"file://{directory}/{name}", "modifiedAtMs": ms}) == {}
        st = (directory / name).stat()
        assert st.st_mtime_ns == ms * 1000000 and st.st_atime_ns == before
    # A file system that cannot keep a time keeps another one: that is told.
    m = client.request("fs/setTimes", {"path": f"file://{directory}/a", "modifiedAtMs": 253402300799000})
    kept = (directory / "a").stat().st_mtime_ns == 253402300799000 * 1000000
    assert m.get("result") == {} if kept else m["error"]["message"] == "Numerical result out of range (os error 34)"
    assert client.error("fs/setTimes", {"path": f"file://{directory}/dangling", "modifiedAtMs": 0}) == GONE
    assert client.error("fs/setTimes", {"path": "file:///etc/passwd", "modifiedAtMs": 1}) == \
        (-32600, "Operation not permitted (os error 1)")
    assert client.error("fs/setTimes", {"path": f"file://{directory}/a", "modifiedAtMs": 253402300800000}) == \
        (-32602, "modifiedAtMs must be between 0 and 253402300799999")


PEERS = {"isDirectory", "isFile", "isSymlink", "size", "createdAtMs", "modifiedAtMs"}


def test_details(client, directory):
    own(client, directory, r"""echo a > a; chmod 4750 a; ln -s a l; ln -s nowhere dangling; mkdir -m 1700 d
                               ln -s "$(printf 'x\377')" raw; : > "$(printf 'n\376')" """)
    at = f"file://{directory}"
    # Nobody else sees more than from the peer.
    assert client.call("fs/getMetadata", {"path": f"{at}/a"}).keys() == PEERS
    assert client.call("fs/getMetadata", {"path": f"{at}/a", "details": None}).keys() == PEERS
    assert client.error("fs/getMetadata", {"path": f"{at}/dangling"}) == GONE
    plain = client.call("fs/readDirectory", {"path": at})["entries"]
    assert all(e.keys() == {"fileName", "isDirectory", "isFile"} for e in plain)
    assert sorted(e["fileName"] for e in plain) == ["a", "d", "l", "n\ufffd"]
    one = {n: client.call("fs/getMetadata", {"path": f"{at}/{n}", "details": True})
           for n in ("a", "l", "dangling", "d")}
    assert [one[n]["mode"] for n in ("a", "l", "d")] == [0o4750, 0o4750, 0o1700]
    assert [one[n]["linkTarget"] for n in one] == [None, "a", "nowhere", None]
    assert (one["dangling"]["isSymlink"], one["dangling"]["isFile"]) == (True, False)
    assert client.error("fs/getMetadata", {"path": f"{at}/none", "details": True}) == GONE
    detailed = client.call("fs/readDirectory", {"path": at, "details": True})["entries"]
    every = {e["path"].rpartition("/")[2]: e for e in detailed}
    assert sorted(every) == ["a", "d", "dangling", "l", "n%FE", "raw"]
    assert every["n%FE"]["fileName"] == "n\ufffd" and every["n%FE"]["size"] == 0
    assert [every[n]["isSymlink"] for n in ("a", "l", "dangling", "raw")] == [False, True, True, True]
    assert [every[n]["linkTarget"] for n in ("a", "l", "dangling", "raw")] == [None, "a", "nowhere", None]
    assert every["a"]["mode"] == 0o4750 and every["l"]["isFile"] and not every["dangling"]["isFile"]
    assert every["a"]["modifiedAtMs"] == (directory / "a").stat().st_mtime_ns // 1000000
    root = client.call("fs/readDirectory", {"path": "file:///", "details": True})["entries"]
    assert "file:///etc" in [e["path"] for e in root]


METHODS = [
    ("fs/setTimes", {"path": "f", "modifiedAtMs": 5}),
    ("fs/move", {"sourcePath": "f", "destinationPath": "g"}), ("fs/chmod", {"path": "f", "mode": 0o600}),
    ("fs/symlink", {"path": "l", "target": "f"})]


def under(directory, params, access=None):
    """Below the directory, under a policy that knows it with that access."""
    entries = [{"path": {"type": "path", "path": f"file://{directory}"}, "access": access}] if access else []
    return {**{k: f"file://{directory}/{v}" if k.lower().endswith("path") else v for k, v in params.items()},
            "sandbox": {"windowsSandboxLevel": "disabled", "permissions": {
                "type": "managed", "network": "restricted",
                "file_system": {"type": "restricted", "entries": entries}}}}


@pytest.mark.parametrize("method, params", METHODS)
def test_a_policy_counts(client, directory, method, params):
    own(client, directory, "echo f > f")
    before = (directory / "f").stat()
    assert client.error(method, under(directory, params)) == GONE
    assert client.error(method, under(directory, params, "read"))[1].endswith("(os error 30)")
    assert sorted(os.listdir(directory)) == ["f"] and (directory / "f").stat() == before
    assert client.call(method, under(directory, params, "write")) == {}
    after = (directory / "f").stat() if (directory / "f").exists() else None
    assert after != before or sorted(os.listdir(directory)) != ["f"]


def test_a_move_does_not_leave_its_policy(client, directory):
    own(client, directory, "mkdir in out; echo f > in/f; echo o > out/o")
    for source, destination in (("in/f", "out/f"), ("out/o", "in/o")):
        params = {"sourcePath": f"file://{directory}/{source}", "destinationPath": f"file://{directory}/{destination}",
                  "sandbox": under(directory / "in", {}, "write")["sandbox"]}
        assert client.error("fs/move", params)[0] in (-32004, -32603)
    # The placeholders of the policy's protected names stay a moment.
    poll(lambda: (os.listdir(directory / "in"), os.listdir(directory / "out")) == (["f"], ["o"]))
