# SPDX-License-Identifier: ISC
"""A host where execd is half there: /run takes nothing more, or a program is missing. The log and doctor say which, and
what holds instead."""
import json
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from conftest import BUILD, EXECD, PATIENCE_S, ROOT, RUNNER, Server, as_user, command, need_mode

IN_FULL_RUN = ["unshare", "-m", "--propagation", "private", "sh", "-c",
               'mount -t tmpfs -o size=4k,nr_inodes=1 x /run && exec "$@"', "sh"]


@pytest.mark.skipif(not ROOT, reason="A FULL /run IS NOT TESTED: a mount needs root")
def test_a_full_run(user):
    need_mode("root")
    s = Server.__new__(Server)
    s._start("root", [*IN_FULL_RUN, *command("root", user, ["--listen", "ws://127.0.0.1:0"])], None)
    try:
        s.wait_log("/run/execd: No space left on device\n")
        s.wait_log("there is no `execd ctl`, and sessions open: /run/execd")
        assert s.ready().run("x", ["/bin/echo", "in"]).stdout == "in\n"
    finally:
        s.stop()
    out = subprocess.run([*IN_FULL_RUN, EXECD, "doctor"], capture_output=True, text=True, timeout=60).stdout
    line, = re.findall("(?m)^.*a place for the socket of `execd ctl`.*$", out)
    assert line.startswith("without ") and "No space left on device; sessions open, and nobody can list" in line, line


@pytest.mark.skipif(not ROOT, reason="A HOST WITHOUT localhost IS NOT TESTED: a mount needs root")
def test_a_host_that_does_not_know_localhost(directory):
    """Neither a server nor its client needs it. Tests that do fail in plain words, and wait for nothing."""
    need_mode("root")
    mounts = ""
    for name, text in ("hosts", "127.0.0.1 host\n"), ("resolv.conf", ""), ("nsswitch.conf", "hosts: files dns\n"):
        (directory / name).write_text(text)
        mounts += f"mount --bind {directory}/{name} /etc/{name} && "
    cases = [pathlib.Path(__file__).with_name(f"test_{name}") for name in (
        "execctl_tls.py::test_the_authority_is_named[root]", "execctl_tls.py::test_a_name_instead_of_an_address[root]",
        "netproxy_names.py::test_a_name_leads_to_its_host")]
    r = subprocess.run(["unshare", "-m", "--propagation", "private", "sh", "-c", mounts + 'exec "$@"', "sh",
                        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *cases],
                       capture_output=True, text=True, timeout=2 * PATIENCE_S)
    assert "2 failed, 1 passed" in r.stdout and len(re.findall(
        "(?m)^E .*Temporary failure in name resolution", r.stdout)) == 2, r


PROGRAMS = {p.name: p for p in (BUILD / "daemon/broker/execd-broker", BUILD / "daemon/frontend/execd-frontend", RUNNER,
                                BUILD / "daemon/keys/execd-keys", BUILD / "runner/http/execd-http",
                                BUILD / "runner/execd-files", BUILD / "runner/netproxy/execd-netproxy",
                                BUILD / "daemon/child/execd-child")}


@pytest.fixture
def prefix(directory):
    libexec = directory / re.search('LIBEXECDIR "(.*)"', (BUILD / "daemon/shared/program_paths.h").read_text())[1]
    libexec.mkdir(parents=True)
    (directory / "sbin").mkdir()
    shutil.copy(EXECD, directory / "sbin/execd")
    for p in PROGRAMS.values():
        shutil.copy(p, libexec)
    return libexec


@pytest.mark.parametrize("missing", PROGRAMS)
def test_a_program_that_is_missing(prefix, user, missing):
    """Neither a start nor doctor goes on without it, but for the one that only lists of hosts need."""
    (prefix / missing).unlink()
    execd = prefix
    while not (execd / "sbin").is_dir():
        execd = execd.parent
    execd = pathlib.Path(execd / "sbin/execd")
    flags = ["--user", user.pw_name] if ROOT else []
    doctor = subprocess.run([execd, "doctor", *flags], capture_output=True, text=True, timeout=60)
    if missing == "execd-netproxy":
        assert "\nwithout  lists of hosts (execd-netproxy): No such file or directory; commands with a list" in doctor.stdout
        return
    start = subprocess.run([execd, "--listen", "ws://127.0.0.1:0", "--allow-unauthenticated", *flags],
                           capture_output=True, text=True, timeout=60)
    for r in start, doctor:
        assert r.returncode != 0 and f"{prefix}/{missing}: No such file or directory" in r.stderr, r


def test_the_library_is_where_the_linker_looks():
    """meson would choose lib64 on a Debian without dpkg-dev."""
    options = json.loads((BUILD / "meson-info/intro-buildoptions.json").read_text())
    assert [o["value"] for o in options if o["name"] == "libdir"] == ["lib"]


def test_quickstart(mode, user, directory):
    """Its recipe for Codex over stdio is for who can follow it: root's execd refuses that."""
    if shutil.which("ninja", path="/usr/bin:/bin") is None:
        pytest.skip("QUICKSTART IS NOT TESTED: it builds with ninja")
    for name in ("scripts", "build/client", "build/daemon/root", "home"):
        (directory / "tree" / name).mkdir(parents=True)
    tree = directory / "tree"
    shutil.copy(pathlib.Path(__file__).parents[2] / "scripts/quickstart", tree / "scripts")
    (tree / "scripts/deps").write_text("#!/bin/sh\n")
    (tree / "scripts/deps").chmod(0o755)
    (tree / "build/build.ninja").write_text("build all: phony\n")
    for program in ("client/execctl", "daemon/root/execd"):
        (tree / "build" / program).symlink_to(BUILD / program)
    argv = ["env", f"HOME={tree}/home", f"SUDO_USER={user.pw_name}", tree / "scripts/quickstart"]
    if mode == "user":
        subprocess.run(["chown", "-R", f"{user.pw_uid}:{user.pw_gid}", tree], check=True)
        argv = as_user(user, argv)
    try:
        out = subprocess.run([*argv, "--port", "0"], capture_output=True, text=True, timeout=60)
    finally:
        stopped = subprocess.run([*argv, "--stop"], capture_output=True, text=True, timeout=60)
    assert out.returncode == 0 and f"hello from {user.pw_name} on" in out.stdout, out
    assert ('"--listen", "stdio"' in out.stdout) == (mode == "user"), out.stdout
    assert stopped.stdout == "execd is stopped.\n", stopped
