"""fs/move, fs/chmod, fs/symlink (PROTOCOL.md section 17)."""
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


METHODS = [
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
    assert sorted(os.listdir(directory)) != ["f"] or stat.S_IMODE((directory / "f").stat().st_mode) == 0o600


def test_a_move_does_not_leave_its_policy(client, directory):
    own(client, directory, "mkdir in out; echo f > in/f; echo o > out/o")
    for source, destination in (("in/f", "out/f"), ("out/o", "in/o")):
        params = {"sourcePath": f"file://{directory}/{source}", "destinationPath": f"file://{directory}/{destination}",
                  "sandbox": under(directory / "in", {}, "write")["sandbox"]}
        assert client.error("fs/move", params)[0] in (-32004, -32603)
    # The masks of the policy's protected names stay a moment.
    poll(lambda: (os.listdir(directory / "in"), os.listdir(directory / "out")) == (["f"], ["o"]))
