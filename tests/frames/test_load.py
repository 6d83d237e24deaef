# SPDX-License-Identifier: ISC
"""Runners of Windows that are killed, and many of them; Wine's processes are Linux's, so nothing is left is seen in /proc."""
import concurrent.futures
import os
import time

import pytest
from cases import CHILD, SPAWN
from targets import Six, only_windows, processes, spawn_payload, text

pytestmark = only_windows
DRIVERS = 4


def of(prefix, *names):
    return [p for p in processes(prefix) if p[0] in names]


def gone_after(prefix, most, *names):
    """How many seconds it took until no process of these names is left."""
    since = time.monotonic()
    while left := of(prefix, *names):
        assert time.monotonic() < since + most, left
        time.sleep(0.002)
    return time.monotonic() - since


def handles(prefix):
    """The descriptors of the one wineserver: what leaks there is a handle of nobody."""
    server = of(prefix, "wineserver", "wineserver64")[0][1]
    return len(os.listdir(f"/proc/{server}/fd"))


def one(start, say, **spawn):
    r = start("windows", "--network-is-blocked")
    # See test_a_console.
    line = f"echo {say}" + (">CON" if spawn.get("tty") else "")
    r.send(6, SPAWN, spawn_payload("windows", Six(["cmd", "/c", line], **spawn)))
    messages = r.all(time.monotonic() + 60)
    assert say in text(messages, "stdout") and messages[-1]["payload"].get("exit_code") == 0, messages
    r.child.wait(60)


def test_a_killed_runner_takes_its_tree(start, prefix):
    r = start("windows", "--network-is-blocked")
    # cmd, and the child that it starts.
    command = spawn_payload("windows", Six([CHILD, "sleep", "1000000"]))["command"][0]
    r.send(6, SPAWN, spawn_payload("windows", Six(["cmd", "/c", f"{command} sleep 1000000"])))
    until = time.monotonic() + 60
    while "ready" not in text([m := r.receive(until)], "stdout"):
        assert m["type"] != "error", m
    [(_, runner)] = of(prefix, "execd-runner.ex")
    assert of(prefix, "child.exe") and of(prefix, "cmd.exe")
    os.kill(runner, 9)
    assert gone_after(prefix, 10, "child.exe", "cmd.exe", "execd-runner.ex") < 0.1


def settled(prefix):
    gone_after(prefix, 20, "execd-runner.ex", "parent.exe", "cmd.exe", "conhost.exe", "child.exe")
    return handles(prefix), len(processes(prefix))


@pytest.mark.parametrize("sessions, tty", [pytest.param(100, False, id="100-sessions"), pytest.param(40, True, id="40-ttys")])
@pytest.mark.nightly
def test_nothing_is_left(start, prefix, sessions, tty):
    for n in range(3):
        one(start, f"warm{n}", tty=tty, stdin_open=tty)
    before = settled(prefix)
    for n in range(sessions):
        one(start, f"say{n}", tty=tty, stdin_open=tty)
    after = settled(prefix)
    assert after[0] <= before[0] + 2 and after[1] <= before[1], (before, after)


@pytest.mark.nightly
def test_four_drivers(start):
    with concurrent.futures.ThreadPoolExecutor(DRIVERS) as drivers:
        list(drivers.map(lambda n: one(start, f"say{n}"), range(200)))


@pytest.mark.nightly
def test_a_cut_length(start):
    for n in range(200):
        r = start("windows")
        r.raw(b"\x05")
        r.child.stdin.close()
        messages = r.all(time.monotonic() + 30)
        assert "the input ends inside a frame" in messages[-1]["payload"]["message"], n
        assert r.child.wait(10) == 1, n
