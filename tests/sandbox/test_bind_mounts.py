# SPDX-License-Identifier: ISC
"""What the operator denies is a file, and not a path: another mount that shows it shows it to no sandbox."""
import ctypes
import os
import subprocess

import pytest
from conftest import Shell, as_test_user
from integration_conftest import ROOT
from policies import READ_ALL, managed, path, uri, workspace_write

CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 1 << 18

pytestmark = pytest.mark.skipif(not ROOT, reason="BIND MOUNTS ARE NOT TESTED: this needs root")


def alone():
    """In mounts of its own."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) < 0 or libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) < 0:
        raise OSError(ctypes.get_errno(), "mounts of its own")


# What is mounted where, and how the secret is called there.
MOUNTS = {"the directory": [("a/secret", "m", "m/key")], "its parent": [("a", "m", "m/secret/key")],
          "a file of it": [("a/secret/key", "f", "f")], "something below": [("a/secret/deep", "m", "m/key")],
          "with a name that is escaped": [("a/secret", "an other", "an other/key")],
          "twice": [("a", "m", "m/secret/key"), ("m/secret", "n", "n/key")]}


@pytest.fixture
def server(configured, place, user):
    as_test_user(user, "mkdir -p a/secret/deep m n 'an other' ws; echo open > a/o; touch f; echo secret > a/secret/key; "
                       "echo secret > a/secret/deep/key", place)

    def go(denied, *mounts):
        s = configured(f"[listener main]\naddress = ws://127.0.0.1:0\nallow-unauthenticated = a\n[identity a]\n"
                       f"user = {user.pw_name}\n[sandbox]\ndeny-read = {place}/{denied}\n", preexec_fn=alone)
        for source, target, *_ in mounts:
            subprocess.run(["nsenter", "-m", "-t", str(s.pid), "mount", "--bind", place / source, place / target], check=True)
        return s
    return go


@pytest.mark.parametrize("how", MOUNTS)
def test_another_mount(server, place, how):
    s = server("a/secret", *MOUNTS[how])
    names = [m[2] for m in MOUNTS[how]]
    for box in (Shell(s.ready(), p, place) for p in (
            workspace_write(place), managed(READ_ALL, *(path(place / n, "read") for n in names), roots=[place]))):
        for name in names:
            assert box(f"cat '{name}' 2> /dev/null; echo tried") == "tried\n"
            m = box.client.request("fs/readFile", {"path": uri(place / name), "sandbox": box.sandbox})
            assert "error" in m, m
    assert box("cat a/o") == "open\n"


def test_one_file(server, place):
    s = server("a/secret/key", ("a", "m"), ("a/secret/key", "f"))
    box = Shell(s.ready(), workspace_write(place), place)
    assert box("cat m/secret/key f 2> /dev/null; cat m/o m/secret/deep/key") == "open\nsecret\n"


def test_a_mount_that_is_covered(server, place):
    """Where another one lies over it, it is not seen, and nothing is denied."""
    s = server("a/secret", ("a/secret", "m"), ("ws", "m"))
    box = Shell(s.ready(), workspace_write(place), place)
    assert box("echo new > m/key && cat ws/key") == "new\n"


def test_by_a_link(server, place, user):
    as_test_user(user, "ln -s a/secret l", place)
    s = server("l", ("a", "m"))
    box = Shell(s.ready(), workspace_write(place), place)
    assert box("cat m/secret/key l/key 2> /dev/null; cat m/o") == "open\n"


def test_in_a_directory_that_its_user_may_not_search(server, place):
    hidden = place / "hidden"
    hidden.mkdir()
    (hidden / "secret").mkdir()
    (hidden / "secret/key").write_text("secret")
    (hidden / "other").write_text("open\n")
    os.chmod(hidden, 0o700)
    os.chown(hidden, 0, 0)
    s = server("hidden/secret", ("hidden/secret", "m"), ("hidden/other", "f"))
    box = Shell(s.ready(), workspace_write(place), place)
    assert box("cat m/key 2> /dev/null; cat f") == "open\n"
