"""A session that has run nothing has no control group of its own (version 1, nothing of it limited): it gets one with
the first request that may start a process, and that waits for it."""
import os
import pathlib
import resource
import socket
import struct

import pytest
from conftest import ROOT, RUNNER, poll
from test_ceiling import policy, start, work  # noqa: F401
from test_doors import ORDERS, Program, configure, sandbox, string, u32, watch
from test_groups import elsewhere, groups, in_force  # noqa: F401
from test_v0 import params as command

GROUP, GROUP_REPORT = 48, 59
ONLY_MEMORY = """
for at in $(awk '$3 == "cgroup2" || $3 == "cgroup" && $4 !~ /memory/ { print $2 }' /proc/self/mounts); do umount "$at"; done
exec "$@"
"""
EXEC = "process/list"
pytestmark = pytest.mark.skipif(not ROOT, reason="CONTROL GROUPS ARE NOT TESTED: this needs root")


@pytest.fixture
def as_root(mode):
    if mode != "root":
        pytest.skip("control groups are root's to make")
    if "" in groups(os.getpid()) and "pids" not in groups(os.getpid()):
        pytest.skip("LATE GROUPS ARE NOT TESTED: version 2 has them from the beginning")


def has_own(server, c):
    """The hierarchies in which its runner is in a group of the session's."""
    at = groups(server.runner(c))
    return {name for name in ("pids", "memory") if at.get(name, "").endswith(c.session_id)}


def test_none_before_the_first_process(start, as_root, user):
    c = start("allow-unsandboxed = yes\n")
    server = start.server
    runner = server.runner(c)
    at = in_force("pids", runner)
    assert at.name == f"idle-{user.pw_uid}" and at.parent.name == f"execd-{server.pid}"
    assert (at / "pids.max").read_text() == f"{4096 + 10000}\n"
    c.call("environment/info")
    c.call("environment/status")
    assert has_own(server, c) == set() and not (at.parent / c.session_id).exists()
    assert c.run("x", ["/bin/echo", "in"]).stdout == "in\n"
    assert has_own(server, c) == {"pids", "memory"}
    assert (in_force("pids", runner) / "pids.max").read_text() == "4096\n"
    assert str(runner) not in (at / "tasks").read_text().split()


@pytest.mark.parametrize("method, params", [
    (EXEC, {}), ("fs/getMetadata", {"path": "file:///"}), ("process/read", {"processId": "nobody"}),
    ("http/request", {"method": "GET", "url": "http://127.0.0.1:1/", "requestId": "r"}),
    ("command/exec", command(["/bin/true"]))])
def test_with_the_first_of_each_kind(start, as_root, method, params):
    c = start("allow-unsandboxed = yes\n")
    c.request(method, params)
    assert has_own(start.server, c) == {"pids", "memory"}


def test_none_for_what_does_not_decode(start, as_root):
    c = start("allow-unsandboxed = yes\n")
    assert c.error("process/start", {"processId": 5})[0] == -32602
    assert c.error("process/nothing", {})[0] == -32601
    assert has_own(start.server, c) == set()


@pytest.mark.parametrize("limit", ["session-processes = 33", "session-memory = 900M", "session-cpu = 30%"])
def test_what_the_operator_limits_is_limited_from_the_beginning(start, as_root, limit):
    c = start("allow-unsandboxed = yes\n", limit + "\n")
    assert has_own(start.server, c) == {"pids", "memory"}
    assert c.run("x", ["/bin/echo", "in"]).stdout == "in\n"


def test_many_at_once(start, as_root, work):
    """Each in a group below the session's, of which there is one."""
    c = start("allow-unsandboxed = yes\nmax-profile = managed\n")
    others = [start.server.connect(token="t").ready() for _ in range(8)]
    for each in (c, *others):
        for i in range(10):
            each.post("process/start", {"processId": f"p{i}", "argv": ["/bin/cat", "/proc/self/cgroup"], "tty": False,
                                        "cwd": f"file://{work}", "env": {"PATH": "/usr/bin:/bin"},
                                        **({"sandbox": policy(work)} if i % 3 == 0 else {})})
    for each in (c, *others):
        for i in range(10):
            out = each.finished(f"p{i}").stdout
            assert i % 3 == 0 or f"/{each.session_id}/command-" in out, out
        assert has_own(start.server, each) == {"pids", "memory"}


def test_a_resumed_session_keeps_it(start, as_root):
    c = start("allow-unsandboxed = yes\n")
    c.call(EXEC, {})
    c.drop()
    again = start.server.connect(token="t")
    poll(lambda: "result" in again.request("initialize", {"clientName": "t", "resumeSessionId": c.session_id}),
         what="resume")
    again.notify("initialized")
    assert again.run("x", ["/bin/echo", "in"]).stdout == "in\n"


def runners(server):
    """The spare one, which nobody has asked for yet, among them."""
    found = pathlib.Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    return [pathlib.Path(f"/proc/{p}/comm").read_text() for p in found].count("execd-runner\n")


def test_not_where_no_group_counts_processes(elsewhere, as_root):  # noqa: F811
    """What memory alone is counted by is there from the beginning, and idle runners are in no group."""
    s = elsewhere(ONLY_MEMORY)
    c = s.connect(token="t").ready()
    assert has_own(s, c) == {"memory"}
    assert c.run("x", ["/bin/echo", "in"]).stdout == "in\n"


def test_one_that_cannot_be_made(start, as_root):
    """The monitor has no descriptor for it: a typed error, a line in the log, and the next request tries again."""
    c = start("allow-unsandboxed = yes\n")
    server = start.server
    had = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    poll(lambda: runners(server) == 2, what="the spare runner, which takes some")
    taken = set(map(int, os.listdir(f"/proc/{server.pid}/fd")))
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (min(set(range(len(taken) + 1)) - taken), had[1]))
    try:
        m = c.request("process/start", {"processId": "x", "argv": ["/bin/true"], "tty": False, "cwd": "file:///",
                                        "env": {}})
        assert m["error"] == {"code": -32603,
                              "message": "this session cannot start anything: Too many open files"}, m
        server.wait_log(f"session {c.session_id[:8]}: making the session's control group: Too many open files")
    finally:
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, had)
    assert c.run("x", ["/bin/echo", "in"]).stdout == "in\n"
    assert has_own(server, c) == {"pids", "memory"}


# --- the runner's door ---------------------------------------------------


def group(error=0, cgroups=0):
    return u32(GROUP) + u32(error) + bytes([cgroups])


class Waiting:
    """A runner that asks for its group."""

    def __init__(self):
        self.program = p = Program(RUNNER)
        p.send(configure(later=1), 1)
        p.send(sandbox())
        self.channel = p.attach()
        self.channel.settimeout(20)
        self.say(b'{"id":1,"method":"initialize","params":{"clientName":"x"}}')
        assert b'"sessionId":"0123"' in self.hear()
        self.say(b'{"method":"initialized"}')
        self.ask(2)

    def say(self, text):
        self.channel.sendall(u32(len(text)) + text)

    def ask(self, id):
        self.say(b'{"id":%d,"method":"process/list","params":{}}' % id)
        assert self.program.control.recv(100) == u32(GROUP_REPORT)

    def hear(self):
        def exactly(n):
            data = b""
            while len(data) < n:
                piece = self.channel.recv(n - len(data))
                assert piece, "hung up"
                data += piece
            return data
        return exactly(struct.unpack("<I", exactly(4))[0])


def test_the_answer_is_waited_for():
    w = Waiting()
    w.program.send(group(error=24))
    assert b"this session cannot start anything: Too many open files" in w.hear()
    w.ask(3)
    w.program.send(group())
    assert b'"result"' in w.hear()
    w.say(b'{"id":4,"method":"process/list","params":{}}')
    assert b'"id":4' in w.hear(), "not asked again"
    w.program.control.shutdown(socket.SHUT_WR)
    assert w.program.end()[0] == 0


def test_orders_meanwhile_have_their_turn_after_it():
    w = Waiting()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        w.program.control.sendmsg([watch()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", theirs.fileno()))])
        theirs.close()
        w.program.send(group())
        assert b'"result"' in w.hear()
        text = b'{"id":1,"method":"initialize","params":{"clientName":"x"}}'
        ours.settimeout(20)
        ours.sendall(u32(len(text)) + text)
        assert b'"sessionId":"0123"' in ours.recv(10000)
    w.program.control.shutdown(socket.SHUT_WR)
    assert w.program.end()[0] == 0


def test_the_end_meanwhile():
    w = Waiting()
    w.program.send(*ORDERS["TERMINATE"])
    w.program.send(group())
    status, log = w.program.end()
    assert status == 0 and "impossible" not in log, log


@pytest.mark.parametrize("message, fds", [
    (group(cgroups=1), 0), (group(cgroups=1), 2), (group(cgroups=16), 1), (group(error=4096), 0), (group(), 1),
    (group()[:-1], 0), (group() + b"x", 0)])
def test_impossible_answers(message, fds):
    w = Waiting()
    w.program.send(message, fds)
    status, log = w.program.end()
    assert status == 1 and "impossible order from the monitor: RUNNER_ORDER_GROUP" in log, log


def test_the_monitor_goes_while_it_waits():
    w = Waiting()
    w.program.control.close()
    assert "the monitor is gone" in w.program.end()[1]
