# SPDX-License-Identifier: ISC
"""The fs/ methods on ordinary trees (doc/protocol.md section 10)."""
import base64
import os
import socket
import time
from urllib.parse import quote_from_bytes, unquote_to_bytes

import pytest
from execd_client import b64

NOT_FOUND = (-32004, "No such file or directory (os error 2)")


def uri(path):
    return "file://" + quote_from_bytes(os.fsencode(path), safe="/~")


@pytest.fixture
def fs(client, directory, user):
    """call(method, name or path, **params) in an empty directory of the user."""
    def call(method, path, **params):
        return client.request("fs/" + method, {"path": uri(directory / path), **params})
    call.client = client
    call.directory = directory
    return call


def result(answer):
    assert "result" in answer, answer
    return answer["result"]


def error(answer):
    assert "error" in answer, str(answer)[:300]
    return answer["error"]["code"], answer["error"]["message"]


def put(fs, name, data):
    (fs.directory / name).write_bytes(data)
    os.chmod(fs.directory / name, 0o666)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4096, (1 << 20) - 1, (1 << 20) + 1, 5_000_000])
def test_a_file_comes_back_as_it_was_written(fs, size):
    data = os.urandom(size)
    assert result(fs("writeFile", "f", dataBase64=b64(data))) == {}
    assert (fs.directory / "f").read_bytes() == data
    assert base64.b64decode(result(fs("readFile", "f"))["dataBase64"]) == data


def test_names_with_every_byte(fs):
    for b in range(1, 256):
        if b in (0x2e, 0x2f):
            continue
        name = b"n" + bytes([b])
        path = os.fsencode(fs.directory) + b"/" + name
        assert result(fs("writeFile", os.fsdecode(name), dataBase64=b64(bytes([b])))) == {}
        assert open(path, "rb").read() == bytes([b])
    listed = result(fs("readDirectory", ""))["entries"]
    walked = result(fs("walk", "", options={"maxDepth": 0, "maxDirectories": 1, "maxEntries": 300,
                                            "followDirectorySymlinks": False}))["entries"]
    assert len(listed) == len(walked) == 253
    for entry in walked:
        answer = fs.client.request("fs/readFile", {"path": entry["path"]})
        assert base64.b64decode(result(answer)["dataBase64"]) == unquote_to_bytes(entry["path"])[-1:]


def make_special(fs):
    d = fs.directory
    os.mkfifo(d / "fifo")
    os.symlink("fifo", d / "to-fifo")
    (d / "dir").mkdir()
    s = socket.socket(socket.AF_UNIX)
    s.bind(str(d / "socket"))
    s.close()
    for name in ("fifo", "dir", "socket"):
        os.chmod(d / name, 0o777)


@pytest.mark.parametrize("name", ["fifo", "to-fifo", "dir", "socket", "/dev/zero", "/dev/tty"])
@pytest.mark.parametrize("method, params", [
    ("readFile", {}),
    ("open", {"handleId": "h"}),
    ("open", {"handleId": "h", "mode": "replace"}),
    ("writeFile", {"dataBase64": "aGkK"}),
])
def test_what_is_no_file_is_refused_at_once(fs, name, method, params):
    make_special(fs)
    if (method, name) == ("writeFile", "/dev/zero"):
        # A device that takes bytes is written, as the peer does.
        assert result(fs(method, name, **params)) == {}
        return
    code, message = error(fs(method, name, **params))
    path = fs.directory / name
    if message == f"path `{path}` is not a file":
        assert code == -32600
    else:
        assert (code, message) in ((-32603, "Is a directory (os error 21)"),
                                   (-32603, "No such device or address (os error 6)"))
    assert result(fs.client.request("environment/status")) == {"status": "ready"}


def test_proc_files_are_read_to_their_end(fs):
    assert base64.b64decode(result(fs("readFile", "/proc/self/status"))["dataBase64"]).startswith(b"Name:\texecd-files")


@pytest.mark.parametrize("text, detail", [
    ("!", "Invalid symbol 33, offset 0."),
    ("aGk", "Invalid padding"),
    ("aGl=", "Invalid last symbol 108, offset 2."),
])
def test_bad_base64_leaves_the_file(fs, text, detail):
    put(fs, "f", b"before")
    assert error(fs("writeFile", "f", dataBase64=text)) == (
        -32600, f"fs/writeFile requires valid base64 dataBase64: {detail}")
    assert (fs.directory / "f").read_bytes() == b"before"


def test_not_found_is_its_own_code(fs):
    walk = {"maxDepth": 0, "maxDirectories": 1, "maxEntries": 1, "followDirectorySymlinks": False}
    for method, params in [("readFile", {}), ("getMetadata", {}), ("canonicalize", {}), ("readDirectory", {}),
                           ("walk", {"options": walk}), ("remove", {"force": False}), ("open", {"handleId": "h"})]:
        assert error(fs(method, "none", **params)) == NOT_FOUND, method
    assert error(fs("writeFile", "none/f", dataBase64="")) == NOT_FOUND
    assert error(fs("createDirectory", "none/d", recursive=False)) == NOT_FOUND
    assert result(fs("remove", "none")) == {}


def test_permissions(fs, mode):
    """The file system says what the session's user may, not execd's."""
    put(fs, "f", b"x")
    os.chmod(fs.directory / "f", 0)
    refused = (-32600, "Permission denied (os error 13)")
    assert error(fs("readFile", "f")) == refused
    assert error(fs("readFile", "/root/x")) == refused
    assert error(fs("writeFile", "/etc/execd-test", dataBase64="")) == refused
    assert error(fs("remove", "/etc/passwd")) == refused
    assert error(fs("createDirectory", "/etc/execd-test")) == refused


def test_metadata(fs):
    put(fs, "f", b"12345")
    os.utime(fs.directory / "f", ns=(0, -1_500_000))
    os.symlink("f", fs.directory / "link")
    m = result(fs("getMetadata", "link"))
    born = m.pop("createdAtMs")
    assert m == {"isDirectory": False, "isFile": True, "isSymlink": True, "size": 5, "modifiedAtMs": -2}
    assert born == 0 or abs(born / 1000 - time.time()) < 60


def test_a_copy_is_not_set_id(fs):
    put(fs, "f", b"x")
    os.chmod(fs.directory / "f", 0o6755)
    assert result(fs.client.request("fs/copy", {"sourcePath": uri(fs.directory / "f"),
                                                "destinationPath": uri(fs.directory / "g"), "recursive": False})) == {}
    assert (fs.directory / "g").stat().st_mode & 0o7777 == 0o755


def test_walk_from_a_link(fs):
    """A link to a directory is entered where links are followed, and is nothing to list where they are not."""
    result(fs("createDirectory", "top/in"))
    os.symlink("top", fs.directory / "link")
    os.symlink("nowhere", fs.directory / "dangling")

    def walk(name, follow):
        return fs("walk", name, options={"maxDepth": 9, "maxDirectories": 9, "maxEntries": 9,
                                         "followDirectorySymlinks": follow})

    assert [e["path"] for e in result(walk("link", True))["entries"]] == [uri(fs.directory / "link/in")]
    assert result(walk("link", False)) == {"entries": [], "errors": [], "truncated": False}
    assert error(walk("dangling", True)) == NOT_FOUND
    assert result(walk("dangling", False))["entries"] == []


def test_copy(fs):
    def copy(a, b, recursive=False):
        return fs.client.request("fs/copy", {"sourcePath": uri(fs.directory / a),
                                             "destinationPath": uri(fs.directory / b), "recursive": recursive})
    put(fs, "f", b"x" * 100_000)
    os.chmod(fs.directory / "f", 0o754)
    os.symlink("f", fs.directory / "same")
    for target in ("f", "same"):        # Q2: onto itself
        assert result(copy("f", target)) == {}
        assert (fs.directory / "f").stat().st_size == 100_000
    assert result(copy("f", "g")) == {}
    assert (fs.directory / "g").stat().st_mode & 0o777 == 0o754
    assert result(copy("same", "l")) == {} and os.readlink(fs.directory / "l") == "f"
    assert error(copy("same", "l")) == (-32603, "File exists (os error 17)")
    assert error(copy("/dev/null", "n"))[1] == "fs/copy only supports regular files, directories, and symlinks"
    result(fs("createDirectory", "d/e"))
    assert error(copy("d", "x")) == (-32600, "fs/copy requires recursive: true when sourcePath is a directory")
    os.symlink("d", fs.directory / "to-d")
    for inside in ("d", "d/e", "d/new", "to-d/new"):
        assert error(copy("d", inside, True)) == (
            -32600, "fs/copy cannot copy a directory to itself or one of its descendants")
    result(fs("writeFile", "d/e/f", dataBase64=b64(b"deep")))
    os.mkfifo(fs.directory / "d/fifo")
    assert result(copy("d", "new/parents", True)) == {}
    assert (fs.directory / "new/parents/e/f").read_bytes() == b"deep"
    assert os.listdir(fs.directory / "new/parents") == ["e"]


def test_a_sparse_file_stays_sparse_and_is_not_read(fs):
    put(fs, "big", b"")
    os.truncate(fs.directory / "big", 4 << 30)
    assert error(fs("readFile", "big")) == (-32600, "file is too large to read: limit is 536870912 bytes")
    result(fs.client.request("fs/copy", {"sourcePath": uri(fs.directory / "big"),
                                         "destinationPath": uri(fs.directory / "copy"), "recursive": False}, 60))
    st = (fs.directory / "copy").stat()
    assert st.st_size == 4 << 30 and st.st_blocks < 100


def test_remove_does_not_follow(fs):
    outside = fs.directory / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    result(fs("createDirectory", "tree/a/b"))
    for name in ("tree/link", "tree/a/link"):
        os.symlink(outside, fs.directory / name)
    assert error(fs("remove", "tree", recursive=False)) == (-32603, "Directory not empty (os error 39)")
    assert result(fs("remove", "tree")) == {}
    assert sorted(os.listdir(fs.directory)) == ["outside"] and os.listdir(outside) == ["precious"]


def test_a_directory_with_very_many_entries(fs):
    d = fs.directory / "many"
    d.mkdir()
    os.chmod(d, 0o777)
    os.mknod(d / "000000")
    for i in range(1, 60_000):  # a name is made faster than a file; ext4 takes 65000
        os.link(d / "000000", d / f"{i:06}")
    entries = result(fs("readDirectory", "many"))["entries"]
    assert len({e["fileName"] for e in entries}) == 60_000
    options = {"maxDepth": 1, "maxDirectories": 10, "maxEntries": 50000, "followDirectorySymlinks": False}
    walked = result(fs("walk", "many", options=options))
    assert walked["truncated"] and [e["path"][-6:] for e in walked["entries"]] == [f"{i:06}" for i in range(50000)]


def test_handles(fs):
    c = fs.client
    put(fs, "f", bytes(range(256)) * 100)
    assert result(fs("open", "f", handleId="h")) == {"handleId": "h"}
    assert error(fs("open", "f", handleId="h")) == (-32600, "file handle `h` already exists")
    read = c.call("fs/readBlock", {"handleId": "h", "offset": 25_590, "len": 10})
    assert read == {"chunk": b64(bytes(range(246, 256))), "eof": False}
    assert c.call("fs/readBlock", {"handleId": "h", "offset": 30_000, "len": 1}) == {"chunk": "", "eof": True}
    assert c.call("fs/close", {"handleId": "h"}) == {}
    assert c.error("fs/readBlock", {"handleId": "h", "offset": 0, "len": 1}) == (-32004, "unknown file handle `h`")
    result(fs("open", "w", handleId="", mode="replace"))
    assert c.call("fs/writeBlock", {"handleId": "", "offset": 5, "chunk": b64(b"end")}) == {}
    assert (fs.directory / "w").read_bytes() == b"\0" * 5 + b"end"


def test_a_file_that_is_continued(fs):
    c = fs.client
    put(fs, "f", b"begun")
    more = {"mode": "replace", "append": True}
    assert result(fs("open", "f", handleId="h", **more)) == {"handleId": "h", "size": 5}
    assert c.call("fs/writeBlock", {"handleId": "h", "offset": 3, "chunk": b64(b"inning")}) == {}
    assert (fs.directory / "f").read_bytes() == b"beginning"
    assert error(fs("open", "none", handleId="n", **more))[0] == -32004 and not (fs.directory / "none").exists()
    assert error(fs("open", "f", handleId="n", append=True)) == (-32602, "append needs mode `replace`")


def test_handles_end_with_their_connection(spawn, directory):
    s = spawn()
    (directory / "f").write_bytes(b"abc")
    os.chmod(directory / "f", 0o666)
    first = s.ready()
    for i in range(128):
        first.call("fs/open", {"handleId": str(i), "path": uri(directory / "f")})
    assert first.error("fs/open", {"handleId": "more", "path": uri(directory / "f")}) == (
        -32600, "at most 128 file handles may be open per connection")
    first.drop()
    s.wait_log("detached")
    second = s.ready(resumeSessionId=first.session_id)
    for i in range(128):
        assert second.error("fs/readBlock", {"handleId": str(i), "offset": 0, "len": 1})[0] == -32004
    second.call("fs/open", {"handleId": "0", "path": uri(directory / "f")})


def test_in_order_among_themselves_and_in_nobodys_way(fs):
    """A large read runs beside the session; what is asked behind it in fs/ is
    answered behind it."""
    put(fs, "large", b"")
    os.truncate(fs.directory / "large", 200 << 20)
    c = fs.client
    c.post("fs/readFile", {"path": uri(fs.directory / "large")}, id="read")
    c.post("fs/remove", {"path": uri(fs.directory / "large")}, id="remove")
    c.post("fs/getMetadata", {"path": uri(fs.directory / "large")}, id="gone")
    c.post("environment/status", id="status")
    c.start("beside", ["/bin/true"])
    assert c.answer("gone", 60)["error"]["code"] == -32004
    assert len(result(c.answer("read", 60))["dataBase64"]) == ((200 << 20) + 2) // 3 * 4
    order = [m["id"] for m in c.messages if m.get("id") in ("read", "remove", "gone", "status")]
    assert order.index("read") < order.index("remove") < order.index("gone")


def test_a_killed_helper_is_an_error_and_the_next_request_has_another(spawn, directory, mode):
    s = spawn()
    c = s.ready()
    (directory / "f").write_bytes(b"abc")
    c.call("fs/getMetadata", {"path": uri(directory / "f")})
    c.run_sh("kill", "for p in /proc/[0-9]*; do "
             "tr '\\0' ' ' <$p/cmdline | grep -q 'execd-files --files' && kill -9 ${p#/proc/}; done; true")
    for _ in range(2):
        m = c.request("fs/getMetadata", {"path": uri(directory / "f")})
        if "result" in m:
            break
        assert m["error"]["code"] == -32603
    assert "result" in c.request("fs/getMetadata", {"path": uri(directory / "f")})


@pytest.mark.parametrize("sandbox, answer", [
    ({"permissions": {"type": "disabled"}, "windowsSandboxLevel": "disabled"}, None),
    ({"permissions": {"type": "external", "network": "restricted"}, "windowsSandboxLevel": "disabled"}, None),
    ({"permissions": {"type": "managed", "file_system": {"type": "restricted", "entries": []},
                      "network": "restricted"}, "windowsSandboxLevel": "disabled"}, -32004),
    ({"permissions": {"type": "nonsense"}, "windowsSandboxLevel": "disabled"}, -32602),
    ({"permissions": {"type": "disabled"}}, -32602),
])
def test_a_restriction_is_never_ignored(fs, sandbox, answer):
    put(fs, "f", b"abc")
    m = fs("readFile", "f", sandbox=sandbox)
    assert ("result" in m) if answer is None else (error(m)[0] == answer)
