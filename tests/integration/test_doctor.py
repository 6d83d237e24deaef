"""execd doctor: it tries every layer, and says what to change where one is missing."""
import os
import shutil
import subprocess

import pytest
from conftest import EXECD, SANITIZED, as_user

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


def test_each_limit_has_its_line(user):
    lines, _ = doctor(None if os.geteuid() == 0 else user)
    for what in ("processes", "memory", "processor time"):
        line = [x for x in lines if f"a limit on the {what} of a command" in x]
        assert len(line) == 1 and (line[0].startswith("ok ") or "until a " in line[0]), lines
    assert len([x for x in lines if "openat2" in x]) == 1, lines


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("strace") or SANITIZED,
                    reason="SKIPPED: needs root, strace and no leak detector, which cannot be traced")
def test_why_there_is_no_landlock():
    """A kernel without it, one with it switched off, and one that fails some other way."""
    for error, words in (("ENOSYS", "Linux 5.13 or newer"), ("EOPNOTSUPP", "lsm="), ("ENOMEM", "no sandbox starts")):
        lines, code = doctor(None, "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=landlock_create_ruleset",
                             "-e", f"inject=landlock_create_ruleset:error={error}")
        line = [x for x in lines if " Landlock" in x]
        assert len(line) == 1 and line[0].startswith("without") and words in line[0], lines


def test_wrong_arguments():
    for args in (["--user"], ["x"], ["--user", "a", "b"]):
        r = subprocess.run([str(EXECD), "doctor", *args], capture_output=True, text=True)
        assert r.returncode == 2 and "usage: execd doctor" in r.stderr
