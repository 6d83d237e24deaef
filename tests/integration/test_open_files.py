# SPDX-License-Identifier: ISC
"""The limit of open files: execd's own programs raise theirs, commands have the one that execd was started with."""
import errno
import os
import resource

import pytest

from conftest import ROOT, Server, command, digest
from test_ceiling import policy, work  # noqa: F401

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


def test_a_command_has_less_than_half_of_its_runner(narrow, sandboxes, work):
    c = narrow.ready()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    most = hard // 2 - 1
    assert c.run_sh("plain", "ulimit -Sn; ulimit -Hn").stdout == f"{SOFT}\n{most}\n"
    m = c.start("held", ["/bin/sh", "-c", "ulimit -Sn; ulimit -Hn"], cwd=f"file://{work}", sandbox=policy(work))
    held = min(most, 16384)
    assert m["result"]["sandbox"]["enforced"]["limits"]["openFiles"] == held
    assert c.finished("held").stdout == f"{SOFT}\n{held}\n"


FILL = """
import array, resource, socket, time
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
pairs = []
try:
    while True:
        pairs.append(socket.socketpair())
        for i in range(100):
            pairs[-1][0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * 250))])
except OSError as e:
    print(e.errno, flush=True)
time.sleep(1000)
"""


def test_descriptors_on_their_way_keep_nobody_from_starting(narrow, sandboxes, work):
    """The kernel counts them for each user: a command that has as many under way as it may is no obstacle to its runner."""
    c = narrow.ready()
    c.start("full", ["/usr/bin/python3", "-c", FILL], cwd=f"file://{work}")
    c.wait_output("full", f"{errno.ETOOMANYREFS}\n")
    for n in range(2):
        m = c.start(f"held{n}", ["/bin/echo", "in"], cwd=f"file://{work}", sandbox=policy(work))
        assert "result" in m, m
        assert c.finished(f"held{n}").stdout == "in\n"
    c.terminate("full")


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
