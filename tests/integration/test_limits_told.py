# SPDX-License-Identifier: ISC
"""What a sandboxed command is held to, and what the answer to its start says about that, are the same thing: where
the session's control group holds a limit, no resource limit of each process holds another one."""
import pathlib
import re
import subprocess

import pytest
from conftest import EXECD, as_user, doctor_lines, pids_with, poll
from test_ceiling import policy, start, work  # noqa: F401
from test_groups import in_force, limit

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


def test_each_limit_holds_by_the_means_that_the_answer_names(limited, told, user, mode):
    enforced, held = told
    # A smaller one holds for all sessions together, where a group holds it.
    of_all = memory_of_host(everybody(user, mode)) if "memoryBytes" in enforced["controlGroupLimits"] else 16 << 30
    assert (enforced["limits"]["processes"], enforced["limits"]["memoryBytes"]) == (4000, min(16 << 30, of_all))
    plain = outside(limited)
    for name, row in KINDS.items():
        if name in enforced["controlGroupLimits"]:
            assert held[row] == plain[row], f"{name}: a group holds it, and a resource limit besides"
        else:
            assert held[row] == str(enforced["limits"][name]), f"{name}: nothing holds it"


def test_a_limit_that_nobody_set_is_none(client, sandboxes, work, user, mode):
    """But for all sessions together, where a group holds it."""
    of_everybody = everybody(user, mode)
    tasks = int(re.search(r"(?m)^tasks-max = (\d+)$", of_everybody)[1])
    enforced, held = start_one(client, work)
    for name, of_all in ("processes", tasks), ("memoryBytes", memory_of_host(of_everybody)):
        assert enforced["limits"][name] == (of_all if name in enforced["controlGroupLimits"] else None), name
    plain = outside(client)
    for row in KINDS.values():
        assert held[row] == plain[row], row


def everybody(user, mode):
    """The limits of all sessions together, which nobody set."""
    argv = [str(EXECD), "-T", "--listen", "ws://127.0.0.1:0"]
    argv = [*argv, "--user", user.pw_name, "--allow-unauthenticated"] if mode == "root" else as_user(user, argv)
    return subprocess.run(argv, capture_output=True, text=True, timeout=20).stdout.split("[limits]\n")[1]


def memory_of_host(text):
    number, unit = re.search(r"(?m)^memory-max = (\d+)([MG])$", text).groups()
    return int(number) << {"M": 20, "G": 30}[unit]


@pytest.mark.parametrize("keys, processes, memory", [
    ("tasks-max = 500\nmemory-max = 900M\n", 500, 900 << 20),
    ("tasks-max = 500\nmemory-max = 900M\ncommand-tasks-max = 60\ncommand-memory-max = 2G\n", 60, 900 << 20),
    ("command-tasks-max = 70\ncommand-memory-max = 800M\n", 70, 800 << 20)])
def test_its_own_group_has_the_smallest_limit_above(start, work, mode, keys, processes, memory):
    """Programs that look how much they may take see no other group."""
    if mode == "user":
        pytest.skip("control groups are root's")
    c = start("allow-unsandboxed = yes\nmax-profile = managed\n", keys)
    for id, extra in ("plain", {}), ("held", {"sandbox": policy(work)}):
        m = c.start(id, ["/bin/sleep", "1000"], cwd=f"file://{work}", **extra)
        if extra:
            said = m["result"]["sandbox"]["enforced"]["limits"]
            assert (said["processes"], said["memoryBytes"]) == (processes, memory)
        assert own_group(start.server, c) == (processes, memory), id
        c.terminate(id)
        c.finished(id)


def own_group(server, client):
    """What the group of the only command has."""
    at = re.search(r"/execd[-\d]*/sessions/identity-\d+/session-\d+", pathlib.Path(f"/proc/{server.runner(client)}/cgroup").read_text())[0]
    pid = poll(lambda: [p for p in pids_with("sleep") if f"{at}/command-" in pathlib.Path(f"/proc/{p}/cgroup").read_text()],
               what="command")[0]
    return tuple(limit(name, in_force(name, pid)) for name in ("pids", "memory"))



def test_the_doctor_says_the_same(told, user, mode):
    """What holds memory: a group, or a resource limit. The doctor of root speaks of root's commands."""
    line, = [x for x in doctor_lines(mode, user) if "a limit on the memory of a command" in x]
    enforced, _ = told
    assert ("RLIMIT_DATA holds" in line) == ("memoryBytes" not in enforced["controlGroupLimits"]), line
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
