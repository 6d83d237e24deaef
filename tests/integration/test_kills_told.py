# SPDX-License-Identifier: ISC
"""A limit that acts is told where the person looks: a line on standard error before exited, members of exited and of
process/read, execctl, the log. Who reads a bare 137 looks for a bug in the program."""
import contextlib
import os
import pathlib
import subprocess

import pytest
from conftest import BUILD, as_user
from test_ceiling import policy, start, work  # noqa: F401
from test_signals import descendants

EXECCTL = BUILD / "client/execctl"
HOG = ["/usr/bin/python3", "-c", "x = bytearray(300 << 20); print(len(x))"]
FORKS = ["/usr/bin/python3", "-c", "import os, sys, time\nn = 0\nfor i in range(60):\n    try:\n        if os.fork() == 0:\n"
         "            time.sleep(1); os._exit(0)\n    except BlockingIOError:\n        n += 1\nprint(n, 'refused')"]


def held(client, name):
    """Whether a control group holds it here, as the answer to a start says."""
    m = client.start(f"held-{name}", ["/bin/true"], cwd="file:///tmp", sandbox=policy("/tmp"))
    client.finished(f"held-{name}")
    return name in m["result"]["sandbox"]["enforced"]["controlGroupLimits"]


@pytest.fixture
def limited(start):
    c = start("allow-unsandboxed = yes\nmax-profile = managed\n", "command-memory-max = 64M\ncommand-tasks-max = 20\n")
    if not held(c, "memoryBytes") or not held(c, "processes"):
        pytest.skip("KILLS ARE NOT TOLD: no control group here holds memory and processes")
    return c


def exited(client, id):
    return next(m["params"] for m in client.events(id) if m["method"] == "process/exited")


@pytest.mark.parametrize("how", ["plain", "sandboxed", "tty"])
def test_memory(limited, start, work, how):
    extra = {"sandbox": policy(work)} if how == "sandboxed" else {"tty": True} if how == "tty" else {}
    r = limited.run("hog", HOG, cwd=f"file://{work}", **extra)
    line = "execd: killed: command-memory-max = 64M of identity a"
    assert r.code == (137 if how != "tty" else r.code) and line in (r.pty if how == "tty" else r.stderr), (r.code, r.stderr, r.pty)
    e = exited(limited, "hog")
    assert e["oomKilled"] is True and e["killedBy"] == "memory" and e["limit"] == "command-memory-max = 64M of identity a", e
    before = [m["method"] for m in limited.events("hog")]
    assert before.index("process/output") < before.index("process/exited"), "it comes before"
    read = limited.call("process/read", {"processId": "hog", "afterSeq": 0})
    assert read["oomKilled"] is True and read["killedBy"] == "memory" and read["failure"] is None, read
    start.server.wait_log("process hog: killed: command-memory-max = 64M of identity a")


def test_tasks(limited, work):
    """Told, though the command ends by itself."""
    r = limited.run("forks", FORKS, cwd=f"file://{work}")
    refused = int(r.stdout.split()[0])
    assert r.code == 0 and refused > 0
    assert f"execd: limit: command-tasks-max = 20 of identity a: {refused} forks were refused\n" in r.stderr, r.stderr
    assert exited(limited, "forks")["forksDenied"] == refused


def test_who_met_no_limit_hears_nothing(limited, work):
    r = limited.run("small", ["/bin/echo", "in"], cwd=f"file://{work}")
    assert (r.stdout, r.stderr) == ("in\n", "")
    e = exited(limited, "small")
    assert not {"oomKilled", "killedBy", "limit", "forksDenied"} & set(e), e
    limited.sh("killed", "kill -9 $$")
    assert limited.finished("killed").stderr == "" and "killedBy" not in exited(limited, "killed")


def test_the_smallest_limit_above_is_named(start, work, mode):
    if mode != "root":
        pytest.skip("THE IDENTITY'S LIMIT IS NOT TESTED: only root's execd has the groups for it here")
    c = start("allow-unsandboxed = yes\nmax-profile = managed\n[limits]\ntasks-max = 3000\n",
              "memory-max = 96M\ntasks-max = 900\ncommand-tasks-max = 40\n")
    if not held(c, "memoryBytes"):
        pytest.skip("KILLS ARE NOT TOLD: no control group here holds memory")
    r = c.run("hog", HOG, cwd=f"file://{work}")
    assert "execd: killed: memory-max = 96M of identity a\n" in r.stderr, r.stderr


def test_execctl_says_it_once(limited, start, user):
    env = {**os.environ, "EXECD_TOKEN": "t"}
    r = subprocess.run(as_user(user, [str(EXECCTL), "run", "--url", start.server.url, "--", *HOG]), env=env,
                       capture_output=True, text=True, timeout=60)
    assert r.returncode == 137 and r.stderr.count("killed") == 1 and "command-memory-max = 64M" in r.stderr, r


@pytest.mark.parametrize("sandboxed", [False, True])
def test_processor_time_is_of_commands(start, work, sandboxed):
    """Not of the session's own programs, which read files and start commands for as long as it lives."""
    c = start("allow-unsandboxed = yes\nmax-profile = managed\n", "max-cpu-time = 7s\n")
    extra = {"sandbox": policy(work)} if sandboxed else {}
    r = c.run("limits", ["/bin/sh", "-c", "ulimit -St; ulimit -Ht"], cwd=f"file://{work}", **extra)
    assert r.stdout == "7\n8\n", r
    c.call("fs/getMetadata", {"path": f"file://{work}", **extra})
    runner = start.server.runner(c)
    seen = 0
    for pid in [runner, *descendants(runner)]:
        # The init of a command, or the sandbox's own child, may be ending.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            limit = pathlib.Path(f"/proc/{pid}/limits").read_text().splitlines()[1]
            assert limit.split()[3:5] == ["unlimited", "unlimited"], limit
            seen += 1
    assert seen >= 2


def test_processor_time(start, work):
    c = start("allow-unsandboxed = yes\nmax-profile = managed\n", "max-cpu-time = 1s\n")
    r = c.run("spin", ["/bin/sh", "-c", "while :; do :; done"], cwd=f"file://{work}")
    assert "execd: killed: max-cpu-time of identity a\n" in r.stderr and exited(c, "spin")["killedBy"] == "max-cpu-time"
