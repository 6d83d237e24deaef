# SPDX-License-Identifier: ISC
"""Fewer descriptors than the configured connections and sessions need: as many are served as fit, the next one is told
why not, and whoever is served notices nothing."""
import os
import pathlib
import resource
import signal
import subprocess

import pytest
from conftest import ROOT, Configured, as_user, digest, poll
from execd_client import Closed
from test_ceiling import policy

DESCRIPTORS = 210
CONNECTIONS = (DESCRIPTORS - 64) // 2   # of the front-end
SESSIONS = (DESCRIPTORS - 96) // 2      # of the broker


@pytest.fixture
def short(mode, user, directory):
    made = []

    def start(more=""):
        text = (f"[listener main]\naddress = ws://127.0.0.1:0\n{more}[identity a]\nuser = {user.pw_name}\n"
                f"sandbox-allow-unsandboxed = yes\ntoken-sha256 = {digest('t')}\n")
        made.append(Configured(mode, user, directory / "execd.conf", text, preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))))
        return made[-1]

    yield start
    for s in made:
        s.stop()


def fill(server):
    """As many sessions as there are descriptors for."""
    clients = [server.connect(token="t").ready() for _ in range(SESSIONS)]
    late = server.connect(token="t")
    assert late.request("initialize", {"clientName": "x"})["error"] == {
        "code": -32603, "message": f"execd has descriptors for {SESSIONS} sessions only"}
    late.close()
    return clients


def descriptors(pid):
    return len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir()))


def test_as_many_sessions_as_there_are_descriptors_for(short):
    s = short()
    clients = fill(s)
    for c in clients:
        assert c.run("x", ["/bin/echo", "in"]).stdout == "in\n"
    # Each way in which a session ends makes room for another one.
    closed, dropped, killed, ended = clients[-4:]
    assert closed.close() == 1000
    dropped.drop()
    os.kill(s.runner(killed), signal.SIGKILL)
    assert killed.wait_closed() == {"code": 1011, "reason": "session ended: runner killed by signal 9"}
    ended.call("session/end")
    assert ended.wait_closed()["code"] == 1000
    again = [poll(lambda: try_ready(s, resumeSessionId=id), what="room") for id in (closed.session_id, dropped.session_id)]
    again += [poll(lambda: try_ready(s), what="room") for _ in range(2)]
    for c in again:
        assert c.run("y", ["/bin/echo", "in"]).stdout == "in\n"


def try_ready(server, **params):
    try:
        return server.connect(token="t").ready(**params)
    except (Closed, OSError, AssertionError):
        return None


def test_the_last_of_them_go(short):
    """One of a stopped runner too, and the others with the server's last word."""
    s = short()
    clients = fill(s)
    while len(clients) > 10:
        clients[0].call("session/end")
        assert clients.pop(0).wait_closed()["code"] == 1000
    stuck = clients.pop()
    runner = s.runner(stuck)
    os.kill(runner, signal.SIGSTOP)
    stuck.drop()
    try:
        assert poll(lambda: try_ready(s), what="room").run("x", ["/bin/echo", "in"]).stdout == "in\n"
    finally:
        os.kill(runner, signal.SIGCONT)
    os.kill(s.pid, signal.SIGTERM)
    for c in clients:
        assert c.wait_closed() == {"code": 1011, "reason": "session ended: the server is stopping"}


def test_all_of_them_drop(short):
    """And come back: as often as it happens."""
    s = short()
    clients = fill(s)
    for c in clients:       # where places are scarce, only sessions that ran something are kept
        c.run("w", ["/bin/true"])
    first = descriptors(s.frontend()) if ROOT else 0    # it hides from others
    for _ in range(3):
        ids = [c.session_id for c in clients]
        for c in clients:
            c.drop()
        clients = [poll(lambda: try_ready(s, resumeSessionId=id), what="resumed") for id in ids]
    for c in clients:
        assert c.run("x", ["/bin/echo", "in"]).stdout == "in\n"
    assert not ROOT or descriptors(s.frontend()) <= first + 2


def test_lists_of_what_sandboxes_made(short, user, directory, sandboxes):
    """The broker keeps one for each session, and has a descriptor for each."""
    s = short()
    clients = fill(s)
    works = [directory / str(i) for i in range(SESSIONS)]
    for c, work in zip(clients, works):
        work.mkdir()
        os.chown(work, user.pw_uid, user.pw_gid) if ROOT else None
        m = c.start("x", ["/bin/sleep", "1000"], cwd=f"file://{work}", sandbox=policy(work, ("roots", "write")))
        assert "result" in m, m
    poll(lambda: all((work / ".git").exists() for work in works), what="placeholders")
    for i in range(0, SESSIONS, 5):
        os.kill(s.runner(clients[i]), signal.SIGKILL)
    poll(lambda: not any((works[i] / ".git").exists() for i in range(0, SESSIONS, 5)), what="an end of the placeholders")
    assert clients[1].run("y", ["/bin/echo", "in"]).stdout == "in\n" and (works[1] / ".git").exists()


@pytest.mark.parametrize("more", ["", "hand-over = no\n"])
def test_one_connection_too_many(short, more):
    s = short(more)
    clients = [s.connect(token="t") for _ in range(CONNECTIONS)]
    with pytest.raises(Closed, match="503"):
        s.connect(token="t")
    poll(lambda: f"refused, limit of {CONNECTIONS} connections reached" in s.log)
    assert clients[-1].ready().run("x", ["/bin/echo", "in"]).stdout == "in\n"
    clients[0].drop()
    assert poll(lambda: try_ready(s), what="room").run("x", ["/bin/echo", "in"]).stdout == "in\n"


# Keeps 400 descriptors on their way between two sockets.
HOLD = """import array, socket, sys
a, b = socket.socketpair()
for _ in range(2):
    a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * 200))])
print("held", flush=True)
sys.stdin.read()
"""


def test_descriptors_of_others_on_their_way(mode, user, directory):
    """The kernel counts them for the user, and compares with the limit of the program that sends one."""
    if mode == "root":
        pytest.skip("NOT TESTED: the front-end's user has no other programs")
    text = ("[listener main]\naddress = ws://127.0.0.1:0\n[limits]\nmax-connections = 50\n[identity a]\n"
            f"user = {user.pw_name}\nsandbox-allow-unsandboxed = yes\ntoken-sha256 = {digest('t')}\n")
    argv = ["/usr/bin/python3", "-c", HOLD]
    with subprocess.Popen(as_user(user, argv), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        s = Configured(mode, user, directory / "execd.conf", text)
        try:
            assert holder.stdout.readline() == b"held\n"
            assert s.connect(token="t").ready().run("x", ["/bin/echo", "in"]).stdout == "in\n"
        finally:
            holder.stdin.close()
            s.stop()
