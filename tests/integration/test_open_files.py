"""The limit of open files: execd's own programs raise theirs, commands have the one that execd was started with."""
import resource

import pytest

from conftest import Server, command

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
