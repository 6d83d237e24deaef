"""execd doctor: it tries every layer, and says what to change where one is missing."""
import os
import subprocess

import pytest
from conftest import EXECD, as_user

NEEDED = ["user namespace", "view of the file system", "pid namespace and its /proc",
          "network, ipc, uts and cgroup namespaces", "system-call filter (seccomp)", "a command in a sandbox"]


def doctor(user, *before):
    argv = [str(EXECD), "doctor"]
    r = subprocess.run([*before, *(as_user(user, argv) if user else argv)], capture_output=True, text=True, timeout=60)
    words, *lines = r.stdout.splitlines()
    assert words.startswith("What execd, started as ") and r.stderr == ""
    return lines, r.returncode


def test_a_line_per_layer_and_a_code_that_agrees(user):
    lines, code = doctor(user)
    missing = [x for x in lines if x.startswith("MISSING")]
    for layer in NEEDED:
        assert [x for x in lines if layer in x] != [], layer
    assert code == (5 if missing else 0)
    assert all("; " in x for x in lines if not x.startswith("ok")), "what to change is said"


@pytest.mark.skipif(os.geteuid() != 0, reason="SKIPPED: needs root to make a mount namespace")
def test_in_a_chroot_nothing_is_promised(directory):
    """A user namespace cannot be made there, so nothing that needs one is ok."""
    enter = f'mount --rbind / {directory} && exec chroot {directory} "$@"'
    lines, code = doctor(None, "unshare", "-m", "--propagation", "private", "sh", "-c", enter, "sh")
    assert code == 5
    assert [x for x in lines if x.startswith("MISSING  user namespace: Operation not permitted; run execd as root")]
    assert [x for x in lines if x.startswith("MISSING  a command in a sandbox")]


def test_wrong_arguments():
    for args in (["--user"], ["x"], ["--user", "a", "b"]):
        r = subprocess.run([str(EXECD), "doctor", *args], capture_output=True, text=True)
        assert r.returncode == 2 and "usage: execd doctor" in r.stderr
