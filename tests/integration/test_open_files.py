# SPDX-License-Identifier: ISC
"""The limit of open files: execd's own programs raise theirs, commands have the one that execd was started with."""
import os
import resource

import pytest

from conftest import ROOT, Server, command, digest

SOFT = 128  # a session with a few dozen commands takes more


@pytest.fixture
def narrow(mode, user):
    """An execd that was started with few descriptors, as shells and systemd do, and may raise them."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]

    class Narrow(Server):
        def __init__(self):
            argv = ["prlimit", f"--nofile={SOFT}:{hard}", *command(mode, user, ["--listen", "ws://127.0.0.1:0"])]
            self._start(mode, argv, None)

    s = Narrow()
    yield s
    s.stop()


def test_many_sessions(narrow):
    for _ in range(SOFT):
        narrow.ready()


def test_many_commands(narrow):
    c = narrow.ready()
    for n in range(SOFT):
        c.start(f"p{n}", ["sleep", "600"])
    assert c.run("last", ["true"]).code == 0


def test_commands_have_the_old_limit(narrow):
    c = narrow.ready()
    assert c.run_sh("limit", "ulimit -Sn").stdout == f"{SOFT}\n"


TOKENS = "a" * 40, "b" * 40


def test_an_identity_with_fewer_than_the_monitor_has(configured, user):
    """Its limit is its sessions', and not in the way of their start."""
    identity = "[identity {name}]\nuser = {user}\ntoken-sha256 = {digest}\n"
    s = configured("[listener a]\naddress = ws://127.0.0.1:0\n" +
                   identity.format(name="many", user=user.pw_name, digest=digest(TOKENS[0])) +
                   identity.format(name="few", user=user.pw_name, digest=digest(TOKENS[1])) +
                   "max-open-files = 60\nsandbox-max-profile = full\nsandbox-allow-unsandboxed = yes\n")
    for _ in range(60):
        s.connect(token=TOKENS[0]).ready()
    assert not ROOT or len(os.listdir(f"/proc/{s.pid}/fd")) > 60     # it hides from others
    c = s.connect(token=TOKENS[1]).ready()
    assert c.run_sh("limit", "ulimit -n").stdout == "60\n"
