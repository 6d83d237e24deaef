# SPDX-License-Identifier: ISC
"""Signals that were sent by mistake end no program of execd, and commands have the defaults."""
import os
import pathlib
import signal

import conftest
import pytest
from conftest import child_rows, digest
from execd_client import b64

MISTAKES = [signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF, signal.SIGIO, signal.SIGPWR, signal.SIGSTKFLT, signal.SIGXFSZ,
            signal.SIGXCPU, signal.SIGPIPE]


def name(pid):
    return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()


def descendants(pid):
    for p, _, _ in child_rows(pid):
        yield p
        yield from descendants(p)


def dispositions(text):
    return {k: v for k, _, v in (line.partition(":\t") for line in text.splitlines()) if k in ("SigIgn", "SigCgt", "SigBlk")}


@pytest.fixture
def busy(spawn):
    """A session with a command, a file helper, and a helper for HTTP."""
    s = spawn()
    c = s.connect().ready()
    c.start("sleeps", ["/bin/sleep", "1000"])
    c.call("fs/readFile", {"path": "file:///etc/hostname"})
    c.request("http/request", {"method": "GET", "requestId": "1", "url": "http://127.0.0.1:1/"})
    return s, c


def test_no_signal_that_nobody_means_ends_a_program(busy):
    s, c = busy
    ours = [p for p in (s.pid, *descendants(s.pid)) if name(p).startswith("execd")]
    assert {name(p) for p in ours} >= {"execd", "execd-broker", "execd-frontend", "execd-runner", "execd-files"}, ours
    for pid in ours:
        for sig in MISTAKES:
            os.kill(pid, sig)
    c.run("after", ["/bin/true"])
    c.call("fs/readFile", {"path": "file:///etc/hostname"})
    s.connect().ready()
    assert "ended by signal" not in s.log and "killed by signal" not in s.log
    assert [p for p in ours if not os.path.exists(f"/proc/{p}")] == []


@pytest.mark.parametrize("sandbox", [None, {"permissions": {"type": "managed", "file_system": {"type": "restricted", "entries": [
    {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"}]}, "network": "restricted"},
    "cwd": "file:///tmp", "workspaceRoots": ["file:///tmp"], "windowsSandboxLevel": "disabled"}], ids=["plain", "sandboxed"])
def test_a_command_has_the_defaults(client, sandbox, sandboxes):
    more = {"sandbox": sandbox} if sandbox else {}
    got = dispositions(client.run("d", ["/bin/cat", "/proc/self/status"], **more).stdout)
    assert len(got) == 3 and {int(v, 16) for v in got.values()} == {0}, got


def test_what_exceeds_a_size_is_an_error(configured, user, directory, monkeypatch):
    """RLIMIT_FSIZE of who started execd holds for what the client writes and for the audit log; nobody dies of it."""
    monkeypatch.setattr(conftest, "WRAP", [*conftest.WRAP, "prlimit", "--fsize=65536"])
    s = configured("\n".join(["[listener main]", "address = ws://127.0.0.1:0", "[identity a]", f"user = {user.pw_name}",
                              "sandbox-allow-unsandboxed = yes", f"token-sha256 = {digest('tok-a')}", "[audit]",
                              f"file = {directory}/audit", "files = all", "required = no", ""]))
    c = s.connect(token="tok-a").ready()
    big = {"path": f"file://{directory}/big", "dataBase64": b64("x" * 100000)}
    assert "os error 27" in c.error("fs/writeFile", big)[1]
    small = {"path": f"file://{directory}/small", "dataBase64": b64("x")}
    for _ in range(400):
        c.call("fs/writeFile", small)
    s.wait_log(f"audit log {directory}/audit: ")
    c.run("after", ["/bin/true"])
    assert "ended by signal" not in s.log and "killed by signal" not in s.log, s.log
