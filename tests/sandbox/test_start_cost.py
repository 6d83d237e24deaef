# SPDX-License-Identifier: ISC
"""What a sandboxed start costs: system calls of the runner, which do not depend on how busy the machine is. And that
what patterns match is as the tree is.
"""
import pathlib
import re
import shutil
import subprocess

import pytest
from conftest import ROOT, Shell, as_test_user
from policies import glob, uri, workspace_write
from test_fail_closed import Tracer, is_traceable

MANY = 1000
SLACK = 10


def plant(user, place, n):
    """Directories with a file each."""
    as_test_user(user, f"mkdir d && cd d && for i in $(seq {n}); do echo $((i % 50))/$i; done | xargs mkdir -p && "
                       "for i in */*; do : > $i/f; done", place)


@pytest.fixture
def count(server, user, directory):
    """The system calls of the runner during one start, by name."""
    if not ROOT or not shutil.which("strace") or not is_traceable():
        pytest.skip("COSTS ARE NOT TESTED: root must be able to strace a runner")
    client = server.ready()
    client.server = server
    server.wait_log(f"session {client.session_id[:8]}: opened")

    def counted(shell, work):
        tracer = Tracer(server.runner(client), directory, "-c", "-U", "name,calls")
        work(shell)
        text = tracer.stop()
        return {m[1]: int(m[2]) for m in re.finditer(r"(?m)^ *(\w+) +(\d+)\s*$", text)}

    counted.client = client
    yield counted
    client.drop()


def start(shell):
    shell("true")


def metadata(shell):
    m = shell.client.request("fs/getMetadata", {"path": uri(shell.cwd), "sandbox": shell.sandbox})
    assert "result" in m, m


@pytest.mark.parametrize("work", [start, metadata])
def test_without_a_pattern_the_tree_does_not_count(count, user, place, work):
    """The same system calls in a workspace with 10 directories and with many, but for what of the start before ends
    meanwhile: the least of a few starts, and a difference that is nothing beside the number of directories.
    """
    found = []
    for n in (10, MANY):
        where = place / f"w{n}"
        as_test_user(user, f"mkdir {where} && cd {where} && for i in $(seq {n}); do echo $((i % 50))/$i; done | "
                           "xargs mkdir -p", place)
        shell = Shell(count.client, workspace_write(where), where)
        shell("true")
        found.append(min((count(shell, work) for _ in range(3)), key=looks))
    assert found[0] and abs(looks(found[0]) - looks(found[1])) <= SLACK, found
    assert abs(sum(found[0].values()) - sum(found[1].values())) <= sum(found[0].values()) // 5 + SLACK, found


LOOKS = ("newfstatat", "lstat", "stat", "openat", "getdents64")


def looks(counts):
    return sum(counts.get(c, 0) for c in LOOKS)


def test_a_pattern_looks_once_at_each_directory(count, user, place):
    """Open, type, names, the end of names: of the runner and the process that it starts for that, together."""
    plant(user, place, MANY)
    as_test_user(user, "touch d/7/7/x.env", place)
    shell = Shell(count.client, workspace_write(place, more=[glob("**/*.env")]), place)
    shell("true")
    for work in start, metadata:
        counts = min((count(shell, work) for _ in range(2)), key=looks)
        assert 4 * MANY < looks(counts) < 4 * MANY + 600, (work, counts)


def test_what_a_pattern_matches_is_never_older_than_the_tree(session, user, place):
    """Each change of the tree counts at the next start: a new name, one moved here, one replaced, one gone."""
    plant(user, place, 60)
    shell = Shell(session, workspace_write(place, more=[glob("**/*.env")]), place)
    env = place / "d/7/7/new.env"

    def seen(path):
        return shell.run(f"cat {path}").stdout

    shell("true")
    for script, denied in (("echo secret > new.env", "d/7/7/new.env"), ("mv new.env ../57/it.env", "d/7/57/it.env"),
                           ("mkdir sub && echo secret > sub/x.env", "d/7/7/sub/x.env"),
                           ("mv sub ../../8/8/moved", "d/8/8/moved/x.env"),
                           ("rm f && mkdir -p f && echo secret > f/y.env", "d/7/7/f/y.env")):
        as_test_user(user, script, place / "d/7/7")
        assert (place / denied).read_text() == "secret\n" and seen(denied) == "", (script, denied)
    as_test_user(user, "mv f/y.env f/y.txt", place / "d/7/7")
    assert seen("d/7/7/f/y.txt") == "secret\n"
    assert not env.exists()
