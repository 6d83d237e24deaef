# SPDX-License-Identifier: ISC
"""Runners of Windows that are killed, and many of them; Wine's processes are Linux's, so nothing is left is seen in /proc."""
import concurrent.futures
import contextlib
import os
import signal
import time

import pytest
from cases import CHILD, SPAWN
from targets import Six, only_windows, processes, spawn_payload, text

pytestmark = only_windows
DRIVERS = 4


# What Wine starts and ends by itself at any time.
WINES_OWN = {"wineserver", "wineserver64", "wineboot.exe", "explorer.exe", "services.exe", "svchost.exe", "plugplay.exe",
             "winedevice.exe", "rpcss.exe"}
PROGRAMS = ("execd-runner.exe", "parent.exe", "execd-launch.exe", "child.exe", "cmd.exe", "conhost.exe")


def of(prefix, *names):
    return [p for p in processes(prefix) if p[0] in names]


def others(prefix):
    """Everything that runs and is not Wine's own."""
    return [p for p in processes(prefix) if p[0] not in WINES_OWN]


def gone_after(prefix, most, *names):
    """How many seconds it took until no process of these names is left; without names: none at all."""
    since = time.monotonic()
    while left := of(prefix, *names) if names else others(prefix):
        assert time.monotonic() < since + most, left
        time.sleep(0.002)
    return time.monotonic() - since


def settled(prefix):
    """What is left when all that was started has ended: descriptors of our programs, which the wineserver closes a little
    later, and processes."""
    gone_after(prefix, 20)
    until = time.monotonic() + 20
    while (left := sum(d.endswith(PROGRAMS) for d in descriptors(prefix))) and time.monotonic() < until:
        time.sleep(0.01)
    return left, len(others(prefix))


def descriptors(prefix):
    """What the one wineserver has open."""
    [server] = [pid for name, pid in processes(prefix) if name.startswith("wineserver")]
    links = []
    for fd in os.listdir(f"/proc/{server}/fd"):
        with contextlib.suppress(FileNotFoundError):
            links.append(os.readlink(f"/proc/{server}/fd/{fd}"))
    return links


def one(start, say, **spawn):
    r = start("windows", "--network-is-blocked")
    # See test_a_console.
    line = f"echo {say}" + (">CON" if spawn.get("tty") else "")
    r.send(6, SPAWN, spawn_payload("windows", Six(["cmd", "/c", line], **spawn)))
    messages = r.all(time.monotonic() + 60)
    assert say in text(messages, "stdout") and messages[-1]["payload"].get("exit_code") == 0, messages
    assert r.ended()[0] == 0


# As Linux has their names, of 15 bytes.
TREE = {"parent.exe", "execd-runner.ex", "conhost.exe", "cmd.exe", "child.exe"}


def kill(start, prefix, tty):
    """How long it takes until nothing is left of a runner that was killed, with cmd, the child that it starts, and a conhost."""
    r = start("windows", "--network-is-blocked")
    command = spawn_payload("windows", Six([CHILD, "sleep", "1000000"]))["command"][0]
    r.send(6, SPAWN, spawn_payload("windows", Six(["cmd", "/c", f"{command} sleep 1000000"], tty=tty, stdin_open=tty)))
    until = time.monotonic() + 60
    while set(running := dict(others(prefix))) != TREE:
        assert time.monotonic() < until, running
    os.kill(running["execd-runner.ex"], signal.SIGKILL)
    return gone_after(prefix, 10, *TREE - {"parent.exe"})


@pytest.mark.parametrize("tty", [False, True], ids=["pipes", "tty"])
def test_a_killed_runner_takes_its_tree(start, prefix, tty):
    """Within 100 ms, which a busy host may miss, but not each time."""
    assert min(kill(start, prefix, tty) for _ in range(3)) < 0.1


@pytest.mark.parametrize("sessions, tty", [pytest.param(100, False, id="100-sessions"), pytest.param(40, True, id="40-ttys")])
@pytest.mark.nightly
def test_nothing_is_left(start, prefix, sessions, tty):
    one(start, "warm", tty=tty, stdin_open=tty)
    before = settled(prefix), len(descriptors(prefix))
    for n in range(sessions):
        one(start, f"say{n}", tty=tty, stdin_open=tty)
    after = settled(prefix), len(descriptors(prefix))
    # What a session leaves it would leave each time; what Wine does by itself is some dozens.
    assert before[0] == after[0] == (0, 0) and after[1] < before[1] + sessions, (before, after)


@pytest.mark.nightly
def test_four_drivers(start, prefix):
    with concurrent.futures.ThreadPoolExecutor(DRIVERS) as drivers:
        list(drivers.map(lambda n: one(start, f"say{n}"), range(200)))
    gone_after(prefix, 20)


@pytest.mark.nightly
def test_a_cut_length(start):
    for n in range(200):
        r = start("windows")
        r.raw(b"\x05")
        r.child.stdin.close()
        messages = r.all(time.monotonic() + 30)
        assert "the input ends inside a frame" in messages[-1]["payload"]["message"], n
        assert r.ended()[0] == 1, n
