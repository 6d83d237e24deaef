"""The template of an identity's runners: what it takes for an order, what its
copies are, and that sessions go on when it is killed."""
import array
import os
import pathlib
import socket
import struct

import pytest
from conftest import ROOT, RUNNER, is_alive, kill, poll
from test_doors import ORDERS, Program, u32
from test_spare import spare

START, STARTED = 82, 83


def start(isolated=0, uid=None, joins=0):
    return (u32(START) + bytes([isolated]) + u32(os.getuid() if uid is None else uid) + u32(os.getgid()) +
            bytes([joins]))


class Template(Program):
    def __init__(self):
        super().__init__(RUNNER, "--template")

    def runner(self, message=None):
        """Another one: its pid, and our end of its control channel."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.sendmsg([message or start()],
                             [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [theirs.fileno()]))])
        theirs.close()
        kind, pid, error = struct.unpack("<III", self.control.recv(100))
        assert kind == STARTED and error == 0
        return pid, ours


def initialize(control):
    for name in "CONFIGURE", "SANDBOX":
        null = os.open("/dev/null", os.O_RDWR)
        message, fds = ORDERS[name]
        control.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [null] * fds))] if fds else [])
        os.close(null)
    ours, theirs = socket.socketpair()
    control.sendmsg([ORDERS["ATTACH"][0]], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [theirs.fileno()]))])
    theirs.close()
    text = b'{"id":1,"method":"initialize","params":{"clientName":"x"}}'
    ours.sendall(u32(len(text)) + text)
    assert b'"sessionId":"0123"' in ours.recv(2000)
    return ours


def test_its_copies_are_runners_and_our_children():
    t = Template()
    pids = []
    for _ in range(3):
        pid, control = t.runner()
        channel = initialize(control)
        assert pathlib.Path(f"/proc/{pid}/comm").read_text() == "execd-runner\n"
        assert os.getsid(pid) == pid
        pids.append((pid, control, channel))
    assert pathlib.Path(f"/proc/{t.child.pid}/comm").read_text() == "execd-template\n"
    for pid, control, channel in pids:
        control.close()
        assert channel.recv(1) == b""
        assert os.waitpid(pid, 0) == (pid, 0), "a child of whoever ordered it"
    t.control.shutdown(socket.SHUT_WR)
    assert t.end()[0] == 0


@pytest.mark.parametrize("message, fds", [
    (b"", 1), (b"\x52", 1), (u32(999), 1), (u32(30), 1), (start(), 0), (start(), 2), (start() + b"x", 1),
    (start()[:-1], 1), (start(isolated=2), 1), (start(joins=1), 1), (start(joins=16), 2),
    (start() + b"x" * 30000, 1)])
def test_impossible_orders_end_it(message, fds):
    t = Template()
    t.send(message, fds)
    if not message:
        t.control.close()
        assert t.child.wait(20) == 0
        return
    status, log = t.end()
    assert status == 1 and "impossible order" in log, (status, log)


def template_of(server):
    for child in pathlib.Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split():
        try:
            if pathlib.Path(f"/proc/{child}/comm").read_text() == "execd-template\n":
                return int(child)
        except OSError:
            pass  # it is gone
    return None


def test_sessions_outlive_it_and_the_next_gets_another(spawn):
    s = spawn()
    first = s.ready()
    s.wait_log("opened for")
    spare(s)  # or it is killed while it makes that
    template = template_of(s)
    kill(template)
    s.wait_log("a template of runners ended")
    assert poll(lambda: not is_alive(template))
    first.run_sh("p", "echo still here")
    assert first.output("p") == b"still here\n"
    second = s.ready()
    second.run_sh("p", "echo and here")
    assert second.output("p") == b"and here\n"
    poll(lambda: template_of(s) not in (None, template), what="another template, for a spare runner")


def test_a_session_has_nothing_of_its_template(spawn, user, mode):
    s = spawn()
    s.ready()
    runner = s.runner(s.clients[-1])
    status = dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{runner}/status").read_text().splitlines())
    assert set(status["Uid"].split()) == {str(user.pw_uid)} and int(status["CapPrm"], 16) == 0
    template = template_of(s)
    if ROOT:
        fds = [os.readlink(f"/proc/{runner}/fd/{fd}") for fd in os.listdir(f"/proc/{runner}/fd")]
        assert os.readlink(f"/proc/{template}/fd/3") not in fds
    assert pathlib.Path(f"/proc/{template}/status").read_text().count("\nThreads:\t1\n") == 1
    everything = {"inherit": "all", "ignoreDefaultExcludes": True, "exclude": [], "set": {}, "includeOnly": []}
    assert "LD_BIND_NOW" not in s.clients[-1].run_sh("p", "env", envPolicy=everything).stdout
    s.stop()
    assert poll(lambda: not is_alive(template)) and poll(lambda: not is_alive(runner))
    if not ROOT:
        pytest.skip("A RUNNER'S DESCRIPTORS WERE NOT LOOKED AT: this needs root")
