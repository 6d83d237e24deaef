# SPDX-License-Identifier: ISC
"""Clients that the front-end hands over (handoff.c): to a runner that may be
anybody's. Here we are its monitor, the runner and the client; and then, with
the real ones, who has the client's connection."""
import array
import os
import pathlib
import select
import signal
import socket
import struct
import threading

import pytest
from conftest import BUILD, ROOT, SANITIZED, digest, poll
from execd_client import Closed, WebSocket, frame
from test_direct import ANSWERED, CLIENT, COUNTED, ENDED, INITIALIZE, INITIALIZED
from test_userns import FRONTEND, Program, frontend_configuration, listener, string, u32, u64

READY, AUTHENTICATE, OPEN, CLOSE, STOP = 10, 12, 14, 18, 9
DETACHED = 0


def client_report(event, received=0, sent=0, code=0, reason=b""):
    packet = u32(CLIENT) + bytes([event]) + u64(received) + u64(sent) + u32(code) + string(reason)
    return u32(len(packet)) + packet


class Handed:
    """A front-end, and a client that has said initialize."""

    def __init__(self, hand_over=1, behind=b"", before=(), opens=True):
        self.program = Program(*before, FRONTEND)
        self.control = self.program.control
        self.control.settimeout(20)
        listening = socket.create_server(("127.0.0.1", 0))
        self.program.send(frontend_configuration(1))
        self.give(listener(hand_over=hand_over), listening)
        self.expect(READY)
        granting = threading.Thread(target=self.grant)
        granting.start()
        self.url = f"ws://127.0.0.1:{listening.getsockname()[1]}"
        self.client = WebSocket(self.url)
        granting.join()
        self.client.sock.sendall(frame(1, INITIALIZE) + behind)
        if opens:
            self.take_open()

    def take_open(self):
        packet, fds, _, _ = socket.recv_fds(self.control, 1 << 16, 4)
        assert packet[:4] == u32(OPEN) and len(fds) == 1, packet
        self.conn = packet[4:8]
        self.channel = socket.socket(fileno=fds[0])
        self.channel.settimeout(20)

    def give(self, message, sock):
        self.control.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [sock.fileno()]))])
        sock.close() if sock.family == socket.AF_UNIX else None

    def expect(self, type):
        packet = self.control.recv(1 << 16)
        assert packet[:4] == u32(type), packet
        return packet

    def grant(self):
        conn = self.expect(AUTHENTICATE)[4:8]
        self.control.send(u32(AUTHENTICATE + 1) + conn + b"\0" + bytes(16))

    def refuse(self, result=4, reason=b"that is why"):
        """There is no session: the channel goes back."""
        message = u32(OPEN + 1) + self.conn + bytes([result]) + string(reason) + string(b"")
        rights = array.array("i", [self.channel.fileno()])
        self.control.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        self.channel.close()

    def take(self):
        """initialize, what came behind it, and the client's socket."""
        data, fds, _, _ = socket.recv_fds(self.channel, 1 << 20, 4)
        length, first = struct.unpack_from("<II", data)
        while len(data) < 4 + length:
            data += self.channel.recv(4 + length - len(data))
        assert length == len(data) - 4 and len(fds) == 1
        return data[8:8 + first], data[8 + first:], socket.socket(fileno=fds[0])

    def report(self, *what, **more):
        self.channel.sendall(client_report(*what, **more))

    def closed(self, end=DETACHED, reason=b""):
        """The front-end asks why the channel ended."""
        self.expect(CLOSE)
        self.control.send(u32(CLOSE + 1) + self.conn + bytes([end]) + string(reason))

    def end(self):
        self.control.close()
        return self.program.end()


@pytest.fixture
def handed():
    made = []

    def make(*args, **kwargs):
        made.append(Handed(*args, **kwargs))
        return made[-1]

    yield make
    for h in made:
        status, log = h.end()
        assert status == 0, log


def test_initialize_and_all_behind_it_go_with_the_client(handed):
    behind = frame(1, INITIALIZED) + frame(9, b"ping") + frame(1, b"x" * 50000)[:40000]
    h = handed(behind=behind)
    initialize, kept, client = h.take()
    client.settimeout(20)
    while len(kept) < len(behind):
        kept += client.recv(1 << 16)
    assert initialize == INITIALIZE and kept == behind
    client.sendall(frame(1, b'{"id":1,"result":{}}', mask=False))
    assert h.client.answer(1)["result"] == {}


def test_without_hand_over_it_is_relayed(handed):
    h = handed(0)
    data, fds, _, _ = socket.recv_fds(h.channel, 1 << 20, 4)
    assert data == u32(len(INITIALIZE)) + INITIALIZE and fds == []
    text = b'{"id":1,"result":{}}'
    h.channel.sendall(u32(len(text)) + text)
    assert h.client.answer(1)["result"] == {}
    h.client.notify("initialized")
    assert b'"initialized"' in h.channel.recv(1 << 16)


def test_what_came_behind_waits_until_it_is_answered(handed):
    """Relayed: there may be no session, and then it is not the runner's."""
    h = handed(0, behind=frame(1, INITIALIZED) + frame(9, b"ping"))
    assert h.channel.recv(1 << 16) == u32(len(INITIALIZE)) + INITIALIZE
    h.channel.settimeout(.1)
    with pytest.raises(TimeoutError):
        h.channel.recv(1)
    h.channel.settimeout(20)
    text = b'{"id":1,"result":{}}'
    h.channel.sendall(u32(len(text)) + text)
    assert h.channel.recv(1 << 16) == u32(len(INITIALIZED)) + INITIALIZED
    assert h.client.answer(1)["result"] == {}


# --- there is no session --------------------------------------------------------------

BEFORE = b'{"id":9,"method":"process/list","params":{}}'


@pytest.mark.parametrize("hand_over", [1, 0])
def test_there_is_none_and_then_there_is(handed, hand_over):
    """What came behind initialize is answered here, then, and the next initialize has a channel of its own."""
    h = handed(hand_over, behind=frame(1, BEFORE))
    h.refuse()
    assert h.client.answer(1)["error"] == {"code": -32603, "message": "that is why"}
    assert "initialize before using exec methods" in h.client.answer(9)["error"]["message"]
    h.client.messages.clear()
    h.client.sock.sendall(frame(1, INITIALIZE))
    h.take_open()
    if hand_over:
        assert h.take()[0] == INITIALIZE
        h.report(ANSWERED)
    else:
        text = b'{"id":1,"result":{}}'
        h.channel.sendall(u32(len(text)) + text)
        assert h.client.answer(1)["result"] == {}


@pytest.mark.parametrize("hand_over", [1, 0])
@pytest.mark.parametrize("end", ["close", "shut down"])
def test_there_is_none_for_a_client_that_left(handed, hand_over, end):
    h = handed(hand_over)
    h.client.sock.shutdown(socket.SHUT_RDWR if end == "close" else socket.SHUT_WR)
    h.refuse()
    h.closed()
    if end == "shut down":
        assert h.client.wait_closed()["code"] == 1006
        assert h.client.answer(1)["error"]["message"] == "that is why"


@pytest.mark.parametrize("hand_over", [1, 0])
def test_there_is_none_and_the_server_stops(handed, hand_over):
    h = handed(hand_over)
    h.control.send(u32(STOP))
    if hand_over:
        h.take()[2].close()
        assert h.channel.recv(1) == b""
    h.refuse()
    h.closed()
    h.client.wait_closed()
    assert h.client.closed == {"code": 1001, "reason": "the server is stopping"}
    if hand_over:
        assert h.client.answer(1)["error"]["message"] == "that is why"


def test_one_that_is_refused_too_late_is_nobodys(handed):
    h = handed()
    h.take()[2].close()
    kept = os.dup(h.channel.fileno())
    h.client.drop()
    h.closed()
    h.channel.close()
    h.channel = socket.socket(fileno=kept)
    h.refuse()


@pytest.mark.parametrize("bad", [
    lambda h: u32(OPEN + 1) + h.conn + b"\0" + string(b""), lambda h: u32(OPEN + 1) + h.conn + b"\6" + string(b"x"),
    lambda h: u32(OPEN + 1) + h.conn + b"\4" + string(b"x" * 256)], ids=["none", "unknown", "long"])
def test_what_no_monitor_says(bad):
    h = Handed()
    rights = array.array("i", [h.channel.fileno()])
    h.control.sendmsg([bad(h)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    status, log = h.end()
    assert status != 0 and "impossible message from the broker" in log


@pytest.mark.skipif(SANITIZED, reason="FAULTS ARE NOT TESTED: the sanitizer wants the same functions for itself")
def test_no_descriptor_for_a_channel():
    """The answer says so, and the connection ends. Its client is accepted with the first call, and none behind it."""
    faults = BUILD / "tests/torture/libfaults.so"
    h = Handed(before=("env", f"LD_PRELOAD={faults}", "FAULT_KIND=socket", "FAULT_AT=3"), opens=False)
    error = h.client.answer(1)["error"]
    assert error["code"] == -32603 and error["message"].startswith("session channel: "), error
    h.conn = h.expect(CLOSE)[4:8]
    h.control.send(u32(CLOSE + 1) + h.conn + bytes([DETACHED]) + string(b""))
    h.client.wait_closed()
    assert h.client.closed["code"] == 1011 and h.client.closed["reason"] == error["message"]
    assert h.end()[0] == 0


# --- the end --------------------------------------------------------------------------


@pytest.mark.parametrize("code, seen", [(1000, 1000), (1005, 1005), (1007, 1007), (4999, 4999)])
@pytest.mark.parametrize("cut", [1 << 20, 1])
def test_the_front_end_has_the_last_word(handed, code, seen, cut):
    h = handed()
    _, _, client = h.take()
    reports = client_report(ANSWERED) + client_report(COUNTED, 5, 6) + client_report(ENDED, 1, 1, code, b"that is why")
    client.close()
    for at in range(0, len(reports), cut):
        h.channel.sendall(reports[at:at + cut])
    h.closed()
    h.client.wait_closed()
    assert h.client.closed == {"code": seen, "reason": "" if seen == 1005 else "that is why"}


def test_a_client_that_is_gone_is_gone(handed):
    """Though the runner still holds its socket."""
    h = handed()
    _, _, client = h.take()
    h.report(ANSWERED)
    h.report(ENDED)
    h.closed()
    assert h.client.wait_closed()["code"] == 1006
    with pytest.raises(OSError):
        client.sendall(b"\x81\x01x")
        client.sendall(b"\x81\x01x")


@pytest.mark.parametrize("bad", [
    client_report(3), client_report(255), client_report(ENDED, code=999), client_report(ENDED, code=1006),
    client_report(ENDED, code=65536 + 1000), client_report(ENDED, code=1000, reason=b"\xff"),
    client_report(COUNTED, received=(1 << 48) + 1), client_report(COUNTED, sent=(1 << 64) - 1),
    client_report(ENDED, reason=b"x" * 124), client_report(ENDED)[:-1] + b"\1", u32(0), u32(1 << 31), u32(0xffffffff),
    u32(32 * 1024 + 1), u32(4) + u32(CLIENT), u32(4) + u32(10), u32(3) + b"abc",
    u32(len(client_report(ENDED)) - 3) + client_report(ENDED)[4:] + b"x"], ids=lambda b: b[:16].hex())
@pytest.mark.parametrize("answered", [False, True], ids=["starting", "attached"])
def test_a_runner_that_lies_loses_its_client(handed, bad, answered):
    h = handed()
    _, _, client = h.take()
    if answered:
        h.report(ANSWERED)
    h.channel.sendall(bad)
    h.closed()
    assert h.client.wait_closed()["code"] == 1001
    assert h.channel.recv(1) == b""
    client.close()
    h.control.close()
    log = h.program.child.communicate(timeout=20)[1]
    assert "impossible report of the runner" in log


def test_a_runner_that_dies_before_it_answers(handed):
    h = handed()
    h.take()[2].close()
    h.channel.close()
    h.closed(3, b"killed by signal 9")
    assert h.client.answer(1)["error"] == {
        "code": -32603, "message": "the session could not be started: killed by signal 9"}
    assert h.client.wait_closed()["code"] == 1011


def test_when_the_server_stops_it_is_asked_for_its_client(handed):
    h = handed()
    _, _, client = h.take()
    h.report(ANSWERED)
    h.control.send(u32(STOP))
    assert h.channel.recv(1) == b""
    client.sendall(frame(1, b'{"method":"last"}', mask=False))
    client.close()
    h.report(ENDED)
    h.closed()
    h.client.wait_closed()
    assert h.client.closed == {"code": 1001, "reason": "the server is stopping"}
    assert h.client.messages[-1]["method"] == "last"


@pytest.mark.parametrize("handed", [()], ids=[""], indirect=True)
def test_a_monitor_that_has_hung_up_already(handed):
    """The front-end has something to say to it, and tells its clients none the less."""
    h = handed()
    h.take()
    h.report(ANSWERED)
    granting = threading.Thread(target=h.grant)
    granting.start()
    another = WebSocket(h.url)
    granting.join()
    os.kill(h.program.child.pid, signal.SIGSTOP)
    another.drop()
    h.control.send(u32(STOP))
    h.control.close()
    os.kill(h.program.child.pid, signal.SIGCONT)
    h.client.wait_closed()
    assert h.client.closed == {"code": 1001, "reason": "the server is stopping"}


@pytest.mark.parametrize("answered", ["never", "before", "after"])
def test_one_that_does_not_let_go_keeps_nothing(handed, answered):
    h = handed()
    _, _, client = h.take()
    if answered == "before":
        h.report(ANSWERED)
    h.control.send(u32(STOP))
    if answered == "after":
        assert h.channel.recv(1) == b"", "it is asked for"
        h.report(ANSWERED)
    h.closed()
    assert h.client.wait_closed()["code"] == 1006
    assert client.recv(1) == b""


def test_a_client_that_hung_up_and_does_not_read_is_not_kept(handed):
    """Its session ends while the last message to it cannot be written."""
    h = handed()
    _, _, client = h.take()
    h.report(ANSWERED)
    h.client.reading.clear()
    client.setblocking(False)
    # Buffers of a fixed size stay full.
    client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    h.client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)

    def send(data):
        try:
            return client.send(data)
        except BlockingIOError:
            return 0
        except BrokenPipeError:
            return -1

    h.client.sock.shutdown(socket.SHUT_WR)
    while send(bytes(65535)) > 0 or send(b"x") > 0 or select.select([], [client], [], .3)[1]:
        pass
    h.channel.close()
    h.closed()
    poll(lambda: send(b"x") == -1, what="the end of the connection")


@pytest.mark.parametrize("end", ["close", "drop"])
def test_a_client_that_leaves_a_runner_that_stands_still(handed, end):
    """Nobody else notices. What it had said may still be read, while it is."""
    h = handed()
    _, _, client = h.take()
    h.report(ANSWERED)
    h.client.sock.sendall(b"x" * 25)
    if end == "drop":
        h.client.drop()
        h.closed()
        assert h.channel.recv(1) == b""
        return
    h.client.sock.shutdown(socket.SHUT_WR)
    h.control.settimeout(.1)
    for _ in range(25):
        with pytest.raises(TimeoutError):
            h.control.recv(1 << 16)
        assert client.recv(1) == b"x"
    h.control.settimeout(20)
    h.closed()
    assert h.client.wait_closed()["code"] == 1006 and h.channel.recv(1) == b""


# --- the real ones --------------------------------------------------------------------


def configuration(user, address, more=""):
    return (f"[listener main]\naddress = {address}\n{more}[identity a]\nuser = {user.pw_name}\n"
            f"sandbox-allow-unsandboxed = yes\ntoken-sha256 = {digest('t')}\n")


def sockets(pid):
    found = set()
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        target = os.readlink(fd)
        if target.startswith("socket:"):
            found.add(target)
    return found


ADDRESSES = ["ws://127.0.0.1:0", "unix:{directory}/s"]


@pytest.mark.skipif(not ROOT, reason="looks at descriptors of other users' programs: needs root")
@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("more, shared", [("", 1), ("hand-over = yes\n", 1), ("hand-over = no\n", 0)])
def test_who_has_the_connection(configured, user, directory, address, more, shared):
    s = configured(configuration(user, address.format(directory=directory), more))
    c = s.connect(token="t").ready()
    # Before, its front-end's end of the session channel is all there is of it.
    poll(lambda: len(sockets(s.runner(c)) & sockets(s.frontend())) == shared, what="as many sockets of both")
    assert c.run("x", ["/bin/echo", "in"]).stdout == "in\n"


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_front_end_that_stands_still_is_in_nobodys_way(configured, user, directory, address):
    s = configured(configuration(user, address.format(directory=directory)))
    c = s.connect(token="t").ready()
    c.run("before", ["/bin/true"])
    os.kill(s.frontend(), signal.SIGSTOP)
    try:
        assert c.run("x", ["/bin/echo", "in"]).stdout == "in\n"
    finally:
        os.kill(s.frontend(), signal.SIGCONT)
    assert c.close() == 1000


def test_a_watching_connection_is_relayed(configured, user):
    """It is the front-end's: the session's client alone goes to the runner."""
    s = configured(configuration(user, "ws://127.0.0.1:0"))
    c = s.connect(token="t").ready()
    w = s.connect(token="t")
    w.call("initialize", {"clientName": "w", "watchSessionId": c.session_id})
    w.notify("initialized")
    os.kill(s.frontend(), signal.SIGSTOP)
    try:
        assert c.run("x", ["/bin/echo", "in"]).stdout == "in\n"
        assert w.events("x") == []
    finally:
        os.kill(s.frontend(), signal.SIGCONT)
    poll(lambda: w.events("x"), what="what the watching connection is told")
