# SPDX-License-Identifier: ISC
"""fs/watch, fs/unwatch and fs/changed (doc/protocol.md section 17)."""
import os

import pytest
from refusals import UNENFORCEABLE


@pytest.fixture
def watch(client, directory):
    def call(id, name="", call="call"):
        path = f"file://{directory}/{name}".rstrip("/")
        return getattr(client, call)("fs/watch", {"watchId": id, "path": path})
    call.client = client
    call.directory = directory
    return call


def told(client, id):
    return [m["params"] for m in client.messages
            if m.get("method") == "fs/changed" and m["params"]["watchId"] == id]


def changes(client, id):
    return [(c["kind"], c["path"].rsplit("/", 1)[1]) for p in told(client, id) for c in p["changes"]]


def wait_changes(client, id, *expected):
    """All of them, in this order; what lies between is of no matter here."""
    def found():
        rest = iter(changes(client, id))
        return all(any(c == e for c in rest) for e in expected)
    client.wait(found, what=f"{expected}, only {changes(client, id)}")


def test_changes_of_a_directory(watch):
    c, d = watch.client, watch.directory
    assert watch(7) == {}
    (d / "f").write_text("x")
    wait_changes(c, 7, ("created", "f"), ("modified", "f"))
    os.chmod(d / "f", 0o600)
    wait_changes(c, 7, ("attributes", "f"))
    os.rename(d / "f", d / "g")
    wait_changes(c, 7, ("removed", "f"), ("created", "g"))
    os.remove(d / "g")
    wait_changes(c, 7, ("removed", "g"))
    os.mkdir(d / "ü %")
    wait_changes(c, 7, ("created", "%C3%BC%20%25"))
    assert told(c, 7)[0]["changes"][0]["path"] == f"file://{d}/f"
    assert not any(p["overflow"] or p["ended"] for p in told(c, 7))


def test_changes_of_a_file_and_its_end(watch):
    c, d = watch.client, watch.directory
    (d / "f").write_text("x")
    (d / "other").write_text("x")
    assert watch(1, "f") == {}
    (d / "other").write_text("y")
    (d / "f").write_text("y")
    wait_changes(c, 1, ("modified", "f"))
    os.remove(d / "f")
    wait_changes(c, 1, ("removed", "f"))
    assert [p["ended"] for p in told(c, 1)][-1] is True
    assert ("modified", "other") not in changes(c, 1)
    (d / "f").write_text("z")
    assert watch(1, "f") == {}, "the id is free again"


@pytest.mark.parametrize("end", [lambda p: os.rename(p, f"{p}2"), os.rmdir])
def test_a_directory_that_goes_ends_its_watch_once(watch, end):
    c, d = watch.client, watch.directory
    os.mkdir(d / "sub")
    assert watch(1, "sub") == {}
    end(d / "sub")
    c.wait(lambda: told(c, 1) and told(c, 1)[-1]["ended"], what="the end")
    os.makedirs(d / "sub", exist_ok=True)
    (d / "sub/f").write_text("x")
    assert watch(2, "sub") == {}
    (d / "sub/g").write_text("x")
    wait_changes(c, 2, ("created", "g"))
    assert [p["ended"] for p in told(c, 1)].count(True) == 1


def test_unwatch(watch):
    c, d = watch.client, watch.directory
    assert watch(1) == {}
    assert c.call("fs/unwatch", {"watchId": 1}) == {}
    assert c.call("fs/unwatch", {"watchId": 1}) == {}
    (d / "f").write_text("x")
    assert watch(2) == {}
    (d / "g").write_text("x")
    wait_changes(c, 2, ("created", "g"))
    assert told(c, 1) == []


def test_errors(watch):
    c, d = watch.client, watch.directory
    assert watch(1, "none", "error") == (-32004, "No such file or directory (os error 2)")
    (d / "f").write_text("x")
    assert watch(1, "f/x", "error") == (-32603, "Not a directory (os error 20)")
    assert watch(1) == {}
    assert watch(1, "f", "error") == (-32600, "watch 1 already exists")
    os.symlink(".", d / "link")
    assert watch(2, "link", "error") == (-32600, "watch 1 watches the same already")
    assert c.error("fs/watch", {"watchId": 3, "path": "file://host/x"}) == \
        (-32600, "'file://host/x' is invalid on 'linux'")
    restricted = {"windowsSandboxLevel": "disabled", "permissions": {
        "type": "managed", "network": "restricted", "file_system": {"type": "restricted", "entries": []}}}
    assert c.error("fs/watch", {"watchId": 3, "path": f"file://{d}", "sandbox": restricted}) == \
        (-32602, UNENFORCEABLE)
    c.start("secret", ["/bin/mkdir", "-m", "0", f"{d}/closed"])
    c.finished("secret")
    assert watch(4, "closed", "error") == (-32600, "Permission denied (os error 13)")


def test_a_connection_has_128(watch):
    for i in range(129):
        os.mkdir(watch.directory / str(i))
    for i in range(128):
        assert watch(i, str(i)) == {}
    assert watch(128, "128", "error") == (-32600, "at most 128 watches may be open per connection")
    assert watch.client.call("fs/unwatch", {"watchId": 7}) == {}
    assert watch(128, "128") == {}
    (watch.directory / "128/x").write_text("")
    wait_changes(watch.client, 128, ("created", "x"))


def test_watches_end_with_their_connection(spawn, directory):
    s = spawn()
    first = s.ready()
    assert first.call("fs/watch", {"watchId": 1, "path": f"file://{directory}"}) == {}
    first.drop()
    s.wait_log("detached")
    second = s.ready(resumeSessionId=first.session_id)
    assert second.call("fs/watch", {"watchId": 1, "path": f"file://{directory}"}) == {}
    (directory / "f").touch()
    wait_changes(second, 1, ("created", "f"))
    assert changes(second, 1).count(("created", "f")) == 1


def test_a_client_that_does_not_read_learns_that_it_missed_some(watch):
    """More than the kernel keeps is made while nobody reads."""
    c, d = watch.client, watch.directory
    limit = int(open("/proc/sys/fs/inotify/max_queued_events").read())
    names = [d / ("n" * 200), d / ("m" * 200)]
    for name in names:
        name.touch()
    assert watch(1) == {}
    c.pause()
    for i in range(20000 + 2 * limit):
        os.chmod(names[i % 2], 0o600)       # two in turn: no two events are one
    c.resume()
    c.wait(lambda: any(p["overflow"] for p in told(c, 1)), what="the overflow")
    assert len(changes(c, 1)) < 20000 + 2 * limit
    (d / "again").write_text("")
    wait_changes(c, 1, ("created", "again"))
