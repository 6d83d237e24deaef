# SPDX-License-Identifier: ISC
"""What the proxy of a list of hosts keeps for itself, in sessions with one policy: only root may read it."""
import pathlib
import re

import pytest
from conftest import ROOT, SANITIZED, children_named, poll
from netproxy_program import origin  # noqa: F401
from test_network_lists import CLIENT, POLICY, PYTHON, end, own

# Of each execd-netproxy, in KiB: what is its own, and its part of what several share.
MOST_KIB = 1024
# malloc keeps what 256 connections at once took, however many there were one after the other.
AFTER_MANY_KIB = 5 * 1024


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


@pytest.mark.skipif(not ROOT, reason="CHILDREN OF A HIDDEN PROCESS ARE NOT SEEN: this needs root")
def test_it_ends_when_no_command_has_a_list(spawn, origin):
    s, o = spawn(), origin()
    at = f"127.0.0.1:{o.port}"
    c = s.ready()
    c.run("p", [PYTHON, "-c", CLIENT, f"get=http://{at}/"], sandbox=POLICY, **own(at))
    assert len(proxies(s)) == 1
    poll(lambda: not proxies(s), what="end of execd-netproxy")
    # The next one starts it again.
    c.run("q", [PYTHON, "-c", CLIENT, f"get=http://{at}/"], sandbox=POLICY, **own(at))
    assert len(proxies(s)) == 1


# Opens connections in rounds of 300, which is more than are served at once. Some are silent, some have a request that is denied, some are cut within one.
MANY = """
import os, resource, select, socket, sys
port, total = int(os.environ["http_proxy"].rsplit(":", 1)[1]), int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_NOFILE, (700, 700))
words = b"", b"GET http://denied.example/ HTTP/1.1\\r\\nHost: denied.example\\r\\n\\r\\n", b"CONNECT denied", b"\\x05\\x01"
made = 0
for r in range(total // 300):
    held = []
    for i in range(300):
        s = socket.create_connection(("127.0.0.1", port)); held.append(s); made += 1
        try: s.send(words[i % 4])
        except OSError: pass
    if r % 10 == 0:
        for s in held:
            s.settimeout(5)
            try: s.shutdown(socket.SHUT_WR); s.recv(1)
            except OSError: pass
    for s in held: s.close()
print("made", made)
"""


@pytest.mark.skipif(not ROOT, reason="MEMORY OF A HIDDEN PROCESS IS NOT READ: this needs root")
@pytest.mark.skipif(SANITIZED, reason="MEMORY IS NOT MEASURED: a sanitizer has its own")
@pytest.mark.parametrize("total", [3000, pytest.param(100200, marks=pytest.mark.nightly)])
def test_very_many_connections(spawn, origin, total):
    """Of one command. Memory does not grow with their number, and the same proxy serves whoever asks next."""
    s, o = spawn(), origin()
    at = f"127.0.0.1:{o.port}"
    c = s.ready()
    # It stays, so that the proxy has a list all the time.
    m = c.start("first", [PYTHON, "-c", CLIENT, f"get=http://{at}/", "wait"], sandbox=POLICY, pipeStdin=True, **own(at))
    assert "result" in m, m
    c.wait_output("first", "waiting")
    pid, = proxies(s)
    before = pss_kib(pid)
    f = c.run("many", [PYTHON, "-c", MANY, str(total)], sandbox=POLICY, timeout=300, **own(at))
    assert f.stdout == f"made {total}\n", f.stdout + f.stderr
    ended = c.call("process/wait", {"processId": "many"})
    assert {d["reason"] for d in ended["networkDenied"]} >= {"not_allowed", "too_many_connections"}, ended["networkDenied"]
    assert "result" in c.start("next", [PYTHON, "-c", CLIENT, f"get=http://{at}/"], sandbox=POLICY, **own(at))
    assert end(c, "next")[0][0][0] == 200
    assert proxies(s) == [pid]
    after = pss_kib(pid)
    print(f"KiB of PSS of execd-netproxy: {before} before {total} connections, {after} after")
    assert after <= AFTER_MANY_KIB
    assert len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir())) < 40
