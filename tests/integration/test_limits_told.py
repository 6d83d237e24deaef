# SPDX-License-Identifier: ISC
"""What a sandboxed command is held to, and what the answer to its start says about that, are the same thing: where
the session's control group or a watch holds a limit, no resource limit of each process holds another one."""
import re
import subprocess

import pytest
from conftest import EXECD, as_user
from test_ceiling import policy, start, work  # noqa: F401

# Each limit in the answer, its row in /proc/self/limits.
KINDS = {"processes": "Max processes", "memoryBytes": "Max data size"}


def limits(text):
    return {m[1].strip(): m[2] for m in re.finditer(r"^(Max [a-z ]+?)\s{2,}(\S+)", text, re.M)}


SET = "command-tasks-max = 4000\ncommand-memory-max = 16G\n"


def start_one(client, work):
    m = client.start("told", ["/bin/cat", "/proc/self/limits"], cwd=f"file://{work}", sandbox=policy(work))
    enforced = m["result"]["sandbox"]["enforced"]
    return enforced, limits(client.finished("told").stdout)


@pytest.fixture
def limited(start):
    return start(identity=SET)


@pytest.fixture
def told(limited, work):
    return start_one(limited, work)


def outside(client):
    return limits(client.run("plain", ["/bin/cat", "/proc/self/limits"]).stdout)


def test_each_limit_holds_by_the_means_that_the_answer_names(limited, told):
    enforced, held = told
    assert (enforced["limits"]["processes"], enforced["limits"]["memoryBytes"]) == (4000, 16 << 30)
    plain = outside(limited)
    for name, row in KINDS.items():
        assert not (name in enforced["controlGroupLimits"] and name in enforced["watchedLimits"]), name
        if name in enforced["controlGroupLimits"] + enforced["watchedLimits"]:
            assert held[row] == plain[row], f"{name}: a group or a watch holds it, and a resource limit besides"
        else:
            assert held[row] == str(enforced["limits"][name]), f"{name}: nothing holds it"


def test_a_limit_that_nobody_set_is_none(client, sandboxes, work):
    enforced, held = start_one(client, work)
    assert (enforced["limits"]["processes"], enforced["limits"]["memoryBytes"]) == (None, None)
    assert enforced["controlGroupLimits"] == enforced["watchedLimits"] == []
    plain = outside(client)
    for row in KINDS.values():
        assert held[row] == plain[row], row


def test_the_doctor_says_the_same(told, user, mode):
    """What holds memory: a group, or a watch. The doctor of root speaks of root's commands."""
    argv = [str(EXECD), "doctor"]
    argv = [*argv, "--user", user.pw_name] if mode == "root" else as_user(user, argv)
    out = subprocess.run(argv, capture_output=True, text=True, timeout=60).stdout
    line, = re.findall(r"^(.*a limit on the memory of a command.*)$", out, re.M)
    enforced, _ = told
    assert ("a watch kills" in line) == ("memoryBytes" in enforced["watchedLimits"]), line
    assert line.startswith("ok ") == ("memoryBytes" in enforced["controlGroupLimits"]), line


def test_address_space_is_not_memory(limited, work):
    """What a sanitizer, or a language with a large heap, does at its start."""
    r = limited.run("big", ["/usr/bin/python3", "-c", "import mmap; print(len([mmap.mmap(-1, 1 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) for _ in range(8)]))"],
                   cwd=f"file://{work}", sandbox=policy(work))
    assert (r.code, r.stdout) == (0, "8\n"), r.stderr


def groups_hold(told, name):
    if name not in told[0]["controlGroupLimits"]:
        pytest.skip(f"NOT TESTED: no control group counts {name} here")


def test_commands_of_one_user_share_no_count_of_processes(start, limited, told, work):
    groups_hold(told, "processes")
    client, other = limited, start.server.connect(token="t").ready()
    script = "for i in $(seq 300); do sleep 1000 & done && echo all started; wait"
    for c, id in (client, "a"), (other, "b"):
        c.sh(id, script, cwd=f"file://{work}", sandbox=policy(work))
    for c, id in (client, "a"), (other, "b"):
        c.wait_output(id, "all started")
        assert c.output(id, "stderr") == b""
        c.terminate(id)
        c.finished(id)
    other.drop()
