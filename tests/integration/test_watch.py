# SPDX-License-Identifier: ISC
"""fs/watchMissing and fs/missingChanged (doc/protocol.md section 13.4), as
measured on the peer."""
import os
import shutil

import pytest


@pytest.fixture
def watch(client, directory):
    """watch(id, *missing, present=None): what "watching" says."""
    def call(id, *missing, present=None):
        params = {"watchId": id, "missing": [f"file://{directory}/{m}" for m in missing]}
        if present:
            params["present"] = f"file://{directory}/{present}"
        return client.call("fs/watchMissing", params)["watching"]
    call.client = client
    call.directory = directory
    return call


def told(client):
    """The ids told so far; a round trip makes sure that nothing is under way."""
    client.call("environment/status")
    return [m["params"]["watchId"] for m in client.messages if m.get("method") == "fs/missingChanged"]


def wait_told(client, ids):
    client.wait(lambda: told_now(client) == ids, what=f"news of {ids}")
    assert told(client) == ids


def told_now(client):
    return [m["params"]["watchId"] for m in client.messages if m.get("method") == "fs/missingChanged"]


def touch(path):
    open(path, "w").close()
    os.chmod(path, 0o666)


APPEARANCES = {
    "created": lambda d: touch(d / "a"),
    "renamed": lambda d: (touch(d / "b"), os.rename(d / "b", d / "a")),
    "linked": lambda d: os.symlink("/nonexistent", d / "a"),
    "directory": lambda d: os.mkdir(d / "a"),
}


@pytest.mark.parametrize("how", APPEARANCES)
def test_tells_once_when_it_appears(watch, how):
    d = watch.directory
    assert watch(7, "a", "other")
    touch(d / "unrelated")
    assert told(watch.client) == []
    APPEARANCES[how](d)
    wait_told(watch.client, [7])
    touch(d / "other")
    assert told(watch.client) == [7]


def test_the_first_missing_directory_is_news(watch):
    assert watch(1, "x/y/z")
    os.mkdir(watch.directory / "x")
    wait_told(watch.client, [1])
    assert watch(2, "x/y/z")


def test_a_directory_on_the_way_goes(watch):
    d = watch.directory
    os.makedirs(d / "p/q")
    assert watch(1, "p/q/f")
    os.rename(d / "p", d / "elsewhere")
    wait_told(watch.client, [1])


@pytest.mark.parametrize("change", [
    lambda p: os.remove(p), lambda p: open(p, "w").write("x"), lambda p: os.rename(p, f"{p}2")])
def test_what_is_present_changes(watch, change):
    touch(watch.directory / "p")
    assert watch(4, "m", present="p")
    change(watch.directory / "p")
    wait_told(watch.client, [4])
    touch(watch.directory / "m")
    assert told(watch.client) == [4]


def test_nothing_to_watch_is_said(watch):
    d = watch.directory
    touch(d / "there")
    os.mkdir(d / "real")
    os.symlink("real", d / "link")
    assert not watch(1)
    assert not watch(2, "there")
    assert not watch(3, "m", "there")
    assert not watch(4, "there/f"), "below a file"
    assert not watch(5, "link/f"), "behind a link, which may change unseen"
    assert not watch(6, present="there")
    assert not watch(7, "m", present="none")
    assert not watch(8, *(f"n{i}" for i in range(1025)))
    assert watch(9, *(f"n{i}" for i in range(1024)))
    c = watch.client
    assert not c.call("fs/watchMissing", {"watchId": 1, "missing": ["file://host/x"]})["watching"]


def test_a_new_watch_replaces_the_old(watch):
    assert watch(1, "a") and watch(2, "b")
    touch(watch.directory / "a")
    assert told(watch.client) == []
    touch(watch.directory / "b")
    wait_told(watch.client, [2])
    assert watch(3, "c") and not watch(4)
    touch(watch.directory / "c")
    assert told(watch.client) == [2]


def test_a_watch_ends_with_its_connection(spawn, directory):
    s = spawn()
    first = s.ready()
    assert first.call("fs/watchMissing", {"watchId": 1, "missing": [f"file://{directory}/a"]})["watching"]
    first.drop()
    s.wait_log("detached")
    second = s.ready(resumeSessionId=first.session_id)
    touch(directory / "a")
    assert told(second) == []


def test_a_removed_tree(watch):
    os.makedirs(watch.directory / "k/l")
    assert watch(1, "k/l/m/f")
    shutil.rmtree(watch.directory / "k")
    wait_told(watch.client, [1])
