# SPDX-License-Identifier: ISC
"""Signals that were sent by mistake end no program of execd, and commands have the defaults."""
import contextlib
import os
import pathlib
import re
import signal

import conftest
import pytest
from conftest import child_rows, digest, poll
from execd_client import b64

# Nobody means them; SIGHUP, SIGUSR1 and SIGUSR2 mean something to a few programs. 32 and 33 are the C library's own.
MISTAKES = [signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF, signal.SIGIO, signal.SIGPWR, signal.SIGSTKFLT, signal.SIGXFSZ,
            signal.SIGXCPU, signal.SIGPIPE, signal.SIGTTIN, signal.SIGTTOU, signal.SIGURG, signal.SIGWINCH, signal.SIGCHLD,
            signal.SIGCONT, *range(34, 65)]
MEANT = {signal.SIGHUP: ("execd", "execd-broker"), signal.SIGUSR1: ("execd", "execd-broker"), signal.SIGUSR2: ("execd",)}


def name(pid):
    return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()


def descendants(pid):
    for p, _, _ in child_rows(pid):
        yield p
        yield from descendants(p)


def dispositions(text):
    return {k: v for k, _, v in (line.partition(":\t") for line in text.splitlines()) if k in ("SigIgn", "SigCgt", "SigBlk")}


SANDBOX = {"permissions": {"type": "managed", "file_system": {"type": "restricted", "entries": [
    {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"}]}, "network": "restricted"},
    "cwd": "file:///tmp", "workspaceRoots": ["file:///tmp"], "windowsSandboxLevel": "disabled"}
IN = {"sandbox": SANDBOX}
LISTED = {"sandbox": {**SANDBOX, "permissions": {**SANDBOX["permissions"], "network": "enabled"}},
          "network": {"allow": ["example.com"], "deny": []}}


ALL = {"execd", "execd-broker", "execd-frontend", "execd-runner", "execd-files", "execd-sandbox", "execd-http", "execd-netproxy",
       "execd-calls", "execd-init"}

USES_PROXY = 'at=${http_proxy#*//} at=${at%/}; [ "$at" ] && exec 3<>/dev/tcp/${at%:*}/${at#*:}; sleep 1000'


@pytest.fixture
def busy(spawn, sandboxes):
    """A session with commands, a file helper, helpers for HTTP and for sandboxes, a listener of calls, and a proxy."""
    s = spawn()
    c = s.connect().ready()
    for id, more in ("plain", {}), ("sandboxed", IN), ("listed", LISTED):
        assert "result" in c.start(id, ["/bin/bash", "-c", USES_PROXY], **more)
    c.call("fs/readFile", {"path": "file:///etc/hostname"})
    c.request("http/request", {"method": "GET", "requestId": "1", "url": "http://127.0.0.1:1/"})
    return s, c


def test_no_signal_that_nobody_means_ends_a_program(busy):
    s, c = busy

    def programs():
        with contextlib.suppress(FileNotFoundError):
            return {p: name(p) for p in (s.pid, *descendants(s.pid)) if name(p).startswith("execd")}
        return {}

    # The proxy comes when it is used.
    poll(lambda: ALL <= {*programs().values()}, what=f"{ALL} of {s.log}")
    ours = programs()
    for pid, who in ours.items():
        for sig in [*MISTAKES, *(sig for sig, whose in MEANT.items() if who not in whose)]:
            assert os.path.exists(f"/proc/{pid}"), (who, pid, sig)
            os.kill(pid, sig)
            assert not re.search(r"State:\t[TZ]", status(pid)), (who, sig)
    assert c.run("after", ["/bin/echo", "plain"]).stdout == "plain\n"
    assert c.run("after, sandboxed", ["/bin/echo", "in"], **IN).stdout == "in\n"
    c.call("fs/readFile", {"path": "file:///etc/hostname"})
    s.connect().ready()
    assert "ended by signal" not in s.log and "killed by signal" not in s.log
    assert [who for pid, who in ours.items() if not os.path.exists(f"/proc/{pid}")] == []


def status(pid):
    return pathlib.Path(f"/proc/{pid}/status").read_text()


@pytest.mark.parametrize("tty", [False, True], ids=["pipes", "tty"])
@pytest.mark.parametrize("more", [{}, IN, LISTED], ids=["plain", "sandboxed", "listed"])
def test_a_command_has_the_defaults(client, more, sandboxes, tty):
    assert "result" in client.start("d", ["/bin/cat", "/proc/self/status"], tty=tty, **more)
    client.finished("d")
    got = dispositions(client.output("d").decode().replace("\r", ""))
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
