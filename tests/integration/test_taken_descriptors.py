# SPDX-License-Identifier: ISC
"""Processes of a session's user want the descriptors of its runner: its control channel, and its log, which is root's.
Between execve(2) and the moment in which a program has hidden itself, the kernel would give them."""
import json
import os
import subprocess
import sys

import pytest
from conftest import as_user
from execd_client import WebSocket

ROUNDS = 60

# A user may stop what runs as him. So the attacker sees a runner in slices, from its first moment on.
ATTACKER = """
import ctypes, json, os, signal, sys
execd = int(sys.argv[1])
call = ctypes.CDLL(None, use_errno=True).syscall
seen, runners, taken = set(), 0, []
def descriptors(pid):
    pidfd = call(434, pid, 0)
    try:
        return [fd for fd in (2, 3) if pidfd >= 0 and call(438, pidfd, fd, 0) >= 0]
    finally:
        os.close(pidfd) if pidfd >= 0 else None
def attack(pid):
    for _ in range(400):
        try:
            os.kill(pid, signal.SIGSTOP)
        except ProcessLookupError:
            return False
        except PermissionError:
            continue  # still root
        got = descriptors(pid)
        os.kill(pid, signal.SIGCONT)
        if got:
            taken.append([pid, got])
            return True
    return True
os.write(1, b"ready\\n")
os.set_blocking(0, False)
while True:
    try:
        if os.read(0, 1) == b"":
            break
    except BlockingIOError:
        pass
    for pid in map(int, open(f"/proc/{execd}/task/{execd}/children").read().split()):
        if pid not in seen:
            seen.add(pid)
            runners += attack(pid)
print(json.dumps([runners, taken]))
"""


@pytest.fixture
def server_of_its_own(spawn):
    return spawn()


@pytest.fixture
def attacker(server_of_its_own, user):
    child = subprocess.Popen(as_user(user, [sys.executable, "-c", ATTACKER, str(server_of_its_own.pid)]), stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"ready\n"
    yield child
    child.kill()
    child.wait()


def test_nothing_of_a_runner_is_taken(server_of_its_own, attacker, mode):
    if mode != "root":
        pytest.skip("an ordinary user's execd has nothing that its user may not have")
    for _ in range(ROUNDS):
        c = WebSocket(server_of_its_own.url)
        c.ready()
        c.drop()
    out, _ = attacker.communicate(timeout=60)
    runners, taken = json.loads(out)
    assert runners >= ROUNDS / 2
    assert taken == []


def test_a_program_that_others_may_read_is_a_warning(server, mode):
    """Of the build tree, they may."""
    if mode != "root":
        pytest.skip("what an ordinary user starts is his")
    server.wait_log("/execd-runner: others may read it, its mode should be 0711\n")
