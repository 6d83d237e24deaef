# SPDX-License-Identifier: ISC
"""A host where execd is half there: /run takes nothing more, or a program is missing. The log and doctor say which, and
what holds instead."""
import pathlib
import re
import shutil
import subprocess

import pytest
from conftest import BUILD, EXECD, ROOT, RUNNER, Server, command, need_mode

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


PROGRAMS = {p.name: p for p in (BUILD / "daemon/broker/execd-broker", BUILD / "daemon/frontend/execd-frontend", RUNNER,
                                BUILD / "daemon/keys/execd-keys", BUILD / "runner/http/execd-http",
                                BUILD / "runner/execd-files", BUILD / "runner/netproxy/execd-netproxy")}


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
