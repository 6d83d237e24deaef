# SPDX-License-Identifier: ISC
"""What the proxy of a list of hosts keeps for itself, in sessions with one policy: only root may read it."""
import pathlib
import re

import pytest
from conftest import ROOT, SANITIZED, children_named
from netproxy_program import origin  # noqa: F401
from test_network_lists import CLIENT, POLICY, PYTHON, end, own

# Of each execd-netproxy, in KiB: what is its own, and its part of what several share.
MOST_KIB = 1024


def pss_kib(pid):
    return int(re.search(r"^Pss:\s+(\d+)", pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M)[1])


def proxies(s):
    return [p for runner in children_named(s.pid, "execd-runner") for p in children_named(runner, "execd-netproxy")]


@pytest.mark.skipif(not ROOT, reason="MEMORY OF A HIDDEN PROCESS IS NOT READ: this needs root")
@pytest.mark.skipif(SANITIZED, reason="MEMORY IS NOT MEASURED: a sanitizer has its own")
@pytest.mark.parametrize("sessions", [10, pytest.param(200, marks=pytest.mark.nightly)])
def test_sessions_with_one_policy(spawn, origin, sessions):
    """Each has a command with the list. Without a connection or a look-up there is no proxy at all."""
    s, o = spawn(), origin()
    at = f"127.0.0.1:{o.port}"
    s.ready()
    assert not proxies(s)
    clients = [s.ready() for _ in range(sessions)]
    for c in clients:
        m = c.start("p", [PYTHON, "-c", CLIENT, "wait", f"get=http://{at}/", "wait"], sandbox=POLICY, pipeStdin=True, **own(at))
        assert "result" in m, m
        c.wait_output("p", "waiting")
    assert not proxies(s)
    for c in clients:
        c.write("p", "\n")
        c.wait_output("p", '"hi"')
    pids = proxies(s)
    assert len(pids) == sessions
    idle = sorted(map(pss_kib, pids))
    m = clients[0].start("used", [PYTHON, "-c", CLIENT, *[f"get=http://{at}/"] * 20], sandbox=POLICY, **own(at))
    assert "result" in m, m
    assert [got[0] for got in end(clients[0], "used")[0]] == [200] * 20
    used = sorted(map(pss_kib, pids))
    print(f"KiB of PSS of each of {sessions} execd-netproxy: {idle[0]} to {idle[-1]}; one of them used more: {used[0]} to {used[-1]}")
    assert used[-1] <= MOST_KIB and idle[-1] <= MOST_KIB
