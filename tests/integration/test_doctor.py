# SPDX-License-Identifier: ISC
"""execd doctor: it tries every layer, and says what to change where one is missing."""
import json
import os
import re
import shutil
import subprocess

import pytest
from conftest import BUILD, EXECD, ROOT, RUNNER, SANITIZED, as_user
from test_reexec import installed  # noqa: F401

NEEDED = ["user namespace", "view of the file system", "pid namespace and its /proc",
          "network namespace", "ipc namespace", "uts namespace", "cgroup namespace", "system-call filter (seccomp)", "a command in a sandbox"]


def doctor(user, *before):
    argv = [str(EXECD), "doctor"]
    r = subprocess.run([*before, *(as_user(user, argv) if user else argv)], capture_output=True, text=True, timeout=60)
    words, *lines = r.stdout.splitlines()
    # Of a build, which nobody installed.
    said = [x for x in r.stderr.splitlines() if "its mode should be 0711" not in x]
    assert words.startswith("What execd, started as ") and said == []
    return lines, r.returncode


def test_a_line_per_layer_and_a_code_that_agrees(user):
    lines, code = doctor(user)
    missing = [x for x in lines if x.startswith("MISSING")]
    for layer in NEEDED:
        assert [x for x in lines if layer in x] != [], layer
    assert code == (5 if missing else 0)
    assert all("; " in x for x in lines if not x.startswith(("ok", " "))), "what to change is said"


def test_maps_are_named(user, directory):
    maps = ["--path-map", f"c:/work={directory}", "--path-map", "Z: = /nonexistent"]
    r = subprocess.run(as_user(user, [str(EXECD), "doctor", *maps]), capture_output=True, text=True, timeout=60)
    assert r.stdout.splitlines()[-2:] == [
        rf"ok       path-map: C:\work is {directory}",
        "without  path-map: Z: is /nonexistent: No such file or directory; make that directory, or change the map"]
    r = subprocess.run([str(EXECD), "doctor", "--path-map", "C:"], capture_output=True, text=True, timeout=60)
    assert r.returncode == 2 and "--path-map: `C:` is not CLIENT-PATH = /PATH" in r.stderr


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
        assert len(line) == 1 and (line[0].startswith("ok ") or "without a " in line[0]), lines
    assert len([x for x in lines if "openat2" in x]) == 1, lines


GROUPS = ["control groups", "a limit on the processes of a command", "a limit on the memory of a command",
          "a limit on the processor time of a command"]


def test_a_running_execd_is_asked(user, directory, spawn, mode):
    """Its groups are those of its unit; the shell of who calls doctor has others."""
    if mode == "root":
        pytest.skip("ONLY SINGLE-USER MODE IS TESTED: other tests' execds have their sockets in /run/execd, too")
    runtime = directory / "runtime"
    runtime.mkdir(mode=0o700)
    if os.geteuid() == 0:
        os.chown(runtime, user.pw_uid, user.pw_gid)
    env = {**os.environ, "XDG_RUNTIME_DIR": str(runtime)}

    def run(*args):
        return subprocess.run(as_user(user, [str(EXECD), *args]), env=env, capture_output=True, text=True, timeout=60)

    def places(text):
        return {x.split(":")[0].split(", ", 1)[1] for x in text.splitlines() for g in GROUPS if re.match(rf"(ok|without) +{g}[,:]", x)}

    assert places(run("doctor").stdout) == {"where doctor was started"}
    a = spawn(env=env)
    text = run("doctor").stdout
    assert f"An execd runs here ({runtime}/execd/ctl.{a.pid}), and was asked" in text
    assert places(text) == {"in the execd that runs here"}
    there = json.loads(run("ctl", "--json", "status").stdout)["result"]["controllers"]
    assert ("ok       a limit on the memory of a command, in" in text) == ("memory" in there)
    spawn(env=env)
    text = run("doctor").stdout
    assert "was not asked about the groups of its sessions: others run here, too" in text
    assert places(text) == {"where doctor was started"}


@pytest.mark.skipif(os.geteuid() != 0, reason="SKIPPED: needs root to unmount /sys/fs/cgroup")
@pytest.mark.parametrize("then, why", [
    (":", "no control groups are mounted here"),
    ("mount -t cgroup2 x $1 && mount -o remount,bind,ro $1", "the control groups are mounted read-only")])
def test_why_there_are_no_groups(directory, then, why):
    lines, code = doctor(None, "unshare", "-m", "sh", "-c", f'umount -R /sys/fs/cgroup; {then}; mount -t tmpfs x /run; shift; exec "$@"', "sh", str(directory))
    line, = [x for x in lines if re.match("(ok|without|MISSING) +control groups", x)]
    assert line.startswith("without") and f"; {why}; " in line, line
    assert code == 0


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("strace") or SANITIZED,
                    reason="SKIPPED: needs root, strace and no leak detector, which cannot be traced")
def test_why_there_is_no_landlock():
    """A kernel without it, one with it switched off, and one that fails some other way."""
    for error, words in (("ENOSYS", "Linux 5.13 or newer"), ("EOPNOTSUPP", "lsm="), ("ENOMEM", "no sandbox starts")):
        lines, code = doctor(None, "strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=landlock_create_ruleset",
                             "-e", f"inject=landlock_create_ruleset:error={error}")
        line = [x for x in lines if " Landlock" in x and x[0] != " "]
        assert len(line) == 1 and line[0].startswith("without") and words in line[0], lines


STRACE = ["strace", "-f", "-qq", "-o", "/dev/null"]


def injected(call, error, *more):
    return doctor(None, *STRACE, "-e", f"trace={call}", "-e", f"inject={call}:error={error}", *more)


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("strace") or SANITIZED,
                    reason="SKIPPED: needs root, strace and no leak detector, which cannot be traced")
def test_each_step_has_its_row():
    lines, code = injected("keyctl", "EPERM")
    assert [x for x in lines if x.startswith("without  a keyring of its own: Operation not permitted; ")], lines
    assert [x for x in lines if x.startswith("ok       a command in a sandbox")] and code == 0, "it does without"
    lines, code = injected("unshare", "ENOSPC")
    for kind in ("net", "ipc", "uts", "cgroup"):
        assert [x for x in lines if x.startswith("MISSING") and f"; sysctl user.max_{kind}_namespaces=" in x], (kind, lines)
    assert code == 5


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("strace") or SANITIZED,
                    reason="SKIPPED: needs root, strace and no leak detector, which cannot be traced")
def test_a_command_that_fails_says_why():
    """Where every layer is there and the whole is not, the words of the runner stand above the line."""
    lines, code = injected("pivot_root", "EPERM")
    at = next(i for i, x in enumerate(lines) if x.startswith("MISSING  a command in a sandbox"))
    assert code == 5 and lines[at - 1].startswith("         "), lines
    assert "Operation not permitted" in "".join(x for x in lines[:at] if x.startswith("  ")), lines
    # What is advised exists.
    flags = {w for x in lines for w in x.split() if w.startswith("--")}
    known = subprocess.run([str(EXECD), "--help"], capture_output=True, text=True).stdout
    assert all(f in known for f in flags - {"--security-opt", "--user", "--scope"}), flags


@pytest.mark.parametrize("sbin", ["sbin", "bin"])
def test_an_installed_execd_finds_its_programs(directory, sbin):
    """/usr/sbin may be a link to bin."""
    libexec = re.search('LIBEXECDIR "(.*)"', (BUILD / "daemon/shared/program_paths.h").read_text())[1]
    at = directory / "usr"
    for path, program in [(f"{sbin}/execd", EXECD), *((f"{libexec}/{p.name}", p) for p in (
            BUILD / "daemon/broker/execd-broker", BUILD / "daemon/frontend/execd-frontend", BUILD / "daemon/keys/execd-keys", RUNNER,
            BUILD / "runner/execd-files", BUILD / "runner/http/execd-http", BUILD / "runner/netproxy/execd-netproxy",
            BUILD / "daemon/child/execd-child"))]:
        (at / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(program, at / path)
        (at / path).chmod(0o711)
    if sbin == "bin":
        (at / "sbin").symlink_to("bin")
    r = subprocess.run([at / "sbin/execd", "doctor"], capture_output=True, text=True, timeout=60)
    assert r.stdout.startswith("What execd, started as ") and r.stderr == "", r


def test_wrong_arguments():
    for args in (["--user"], ["x"], ["--user", "a", "b"]):
        r = subprocess.run([str(EXECD), "doctor", *args], capture_output=True, text=True)
        assert r.returncode == 2 and "usage: execd doctor" in r.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="SKIPPED: needs root to lay a directory over /etc")
def test_names_need_a_file_of_the_resolver(directory):
    """What a sandbox mounts its own over. Without it the line says what is lost."""
    script = f'cp -a /etc/passwd /etc/group /etc/ld.so.cache {directory}; mount --bind {directory} /etc; exec {EXECD} doctor'
    r = subprocess.run(["/usr/bin/unshare", "-m", "/bin/sh", "-c", script], capture_output=True, text=True, timeout=60)
    line, = [x for x in r.stdout.splitlines() if "names for programs that know no proxy" in x]
    assert line.startswith("without") and "an /etc/resolv.conf" in line and "reach nothing" in line, r.stdout + r.stderr


BROKER, FRONT = "daemon/broker/execd-broker", "daemon/frontend/execd-frontend"


def test_doctor_names_a_program_of_another_version(installed, user):  # noqa: F811
    """As after half an upgrade, or half an installation."""
    def said(whose=None):
        argv = [str(installed / "daemon/root/execd"), "doctor"]
        r = subprocess.run(as_user(whose, argv) if whose else argv, capture_output=True, text=True, timeout=60)
        return sorted(x.partition("the same version of all programs")[2] for x in r.stdout.splitlines()
                      if "the same version of all programs" in x)

    def install(program, content, mode=0o755):
        (installed / program).unlink()
        (installed / program).write_bytes(content)
        (installed / program).chmod(mode)

    mine = re.search(rb"\0execd-version ([^\0]+)\0", (BUILD / FRONT).read_bytes())[1]
    now = mine.decode()
    other = "9" + now[1:]
    assert said() == [f", {now}"]
    expected = []
    for program in (FRONT, "daemon/root/execd", "runner/netproxy/execd-netproxy"):
        content = (BUILD / program).read_bytes()
        assert content.count(b"\0execd-version " + mine + b"\0") == 1
        install(program, content.replace(b"execd-version " + mine, b"execd-version " + other.encode()))
        expected.append(f": {installed / program} is of {other}, and execd-broker of {now}; install all of them again")
        assert said() == sorted(expected)
    install(FRONT, (BUILD / FRONT).read_bytes().replace(b"execd-version ", b"in former times"), 0o711)
    assert f": {installed / FRONT} is of an unknown version, and execd-broker of {now}" in "".join(said())
    if ROOT:  # an ordinary user of a package
        assert said(user) == [f": {installed / FRONT}: Permission denied; as root `execd doctor` compares them"]


@pytest.mark.skipif(SANITIZED, reason="SKIPPED: a sanitizer has its own strings")
def test_doctor_says_that_another_version_runs(installed, mode, user, directory, spawn, monkeypatch):  # noqa: F811
    """As between the two halves of an upgrade."""
    if mode == "root":
        pytest.skip("ONLY SINGLE-USER MODE IS TESTED: other tests' execds have their sockets in /run/execd, too")
    monkeypatch.setattr("conftest.EXECD", installed / "daemon/root/execd")
    runtime = directory / "runtime"
    runtime.mkdir(mode=0o700)
    os.chown(runtime, user.pw_uid, user.pw_gid)
    env = {**os.environ, "XDG_RUNTIME_DIR": str(runtime)}

    def said():
        r = subprocess.run(as_user(user, [str(installed / "daemon/root/execd"), "doctor"]), env=env, capture_output=True,
                           text=True, timeout=60)
        assert "and was asked about the groups" in r.stdout
        return re.findall("(?m)^without  version (.*) in the execd that runs here,", r.stdout)

    current = (BUILD / BROKER).read_bytes()
    now = re.search(rb"\0execd-version ([^\0]+)\0", current)[1]
    (installed / BROKER).write_bytes(current.replace(now + b"\0", b"9" + now[1:] + b"\0"))
    spawn(env=env)
    assert said() == []
    (installed / BROKER).unlink()
    (installed / BROKER).write_bytes(current)
    (installed / BROKER).chmod(0o755)
    assert said() == [now.decode()]
