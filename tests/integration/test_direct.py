# SPDX-License-Identifier: ISC
"""A runner that is handed its client: the client's own socket comes with the
first message on the session channel, WebSocket goes over it, and the channel
is left for reports (channel_direct.h). Here we are the front-end, hostile
where it can be, and the client."""
import array
import json
import os
import pathlib
import select
import socket
import struct
import threading

import pytest
from conftest import RUNNER
from execd_client import frame
from test_userns import COMMANDS, HELPERS, Program, configure, u32

CLIENT = 91
ANSWERED, COUNTED, ENDED = 0, 1, 2
INITIALIZE = b'{"id":1,"method":"initialize","params":{"clientName":"x"}}'
INITIALIZED = b'{"method":"initialized","params":{}}'


def handing(initialize=INITIALIZE, kept=b"", first=None, length=None):
    """What the front-end sends: the message, and what its client sent behind it."""
    body = u32(len(initialize) if first is None else first) + initialize + kept
    return u32(len(body) if length is None else length) + body


class Direct:
    def __init__(self, configuration=None, family=socket.AF_UNIX, hand=True, kept=b""):
        self.program = Program(RUNNER)
        self.program.send(*(COMMANDS["CONFIGURE"] if configuration is None else (configuration, HELPERS)))
        self.program.send(*COMMANDS["SANDBOX"])
        self.generation = 0
        self.attach()
        if hand:
            self.hand(handing(kept=kept))

    def attach(self):
        self.generation += 1
        self.channel = self.program.attach(self.generation)
        self.channel.settimeout(20)
        self.client, self.theirs = socket.socketpair()
        self.client.settimeout(20)

    def hand(self, message, fds=None, client=True):
        fds = [self.theirs.fileno()] if fds is None else fds
        self.channel.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
        if client:
            self.theirs.close()

    @staticmethod
    def exactly(sock, n):
        data = b""
        while len(data) < n:
            piece = sock.recv(n - len(data))
            if not piece:
                raise EOFError(data)
            data += piece
        return data

    def frame(self):
        """(opcode, payload) of the runner's next frame."""
        op, size = self.exactly(self.client, 2)
        assert op & 0xf0 == 0x80 and size < 128
        if size == 126:
            size, = struct.unpack(">H", self.exactly(self.client, 2))
            assert size >= 126
        elif size == 127:
            size, = struct.unpack(">Q", self.exactly(self.client, 8))
            assert size >= 1 << 16
        return op & 15, self.exactly(self.client, size)

    def answer(self):
        opcode, payload = self.frame()
        assert opcode == 1
        return json.loads(payload)

    def report(self):
        """event, received, sent, code, reason"""
        packet = self.exactly(self.channel, struct.unpack("<I", self.exactly(self.channel, 4))[0])
        kind, event, received, sent, code, n = struct.unpack_from("<IBQQII", packet)
        assert kind == CLIENT and len(packet) == 29 + n
        return event, received, sent, code, packet[29:].decode()

    def send(self, message):
        self.client.sendall(frame(1, message if isinstance(message, bytes) else json.dumps(message).encode()))

    def ready(self):
        assert self.answer()["id"] == 1 and self.report()[0] == ANSWERED
        self.send(INITIALIZED)
        return self

    def ended(self):
        while (report := self.report())[0] != ENDED:
            assert report[0] == COUNTED
        return report

    def broken(self):
        """The runner gives the channel up; what was the client's goes too."""
        for sock in (self.channel, self.client):
            try:
                assert sock.recv(1) == b""
            except ConnectionResetError:
                pass        # with what it did not read

    def stands_still(self):
        """It waits, and does not look for what it can do again and again."""
        def used():
            fields = pathlib.Path(f"/proc/{self.program.child.pid}/stat").read_text().rsplit(")", 1)[1].split()
            return int(fields[11]) + int(fields[12])

        before = used()
        # Nothing will come.
        assert select.select([self.program.control], [], [], .4)[0] == []
        assert used() - before < .2 * os.sysconf("SC_CLK_TCK")

    def still_works(self):
        self.attach()
        self.hand(handing())
        self.ready().end()

    def end(self):
        self.program.control.close()
        status, log = self.program.end()
        assert status == 0, log
        return log


def test_the_client_is_answered_directly_and_counted():
    d = Direct()
    assert d.answer()["id"] == 1
    event, received, sent, code, reason = d.report()
    assert (event, received, sent, code, reason) == (ANSWERED, 0, 0, 0, "")
    d.send({"id": 2, "method": "process/list"})
    d.send(INITIALIZED)
    d.client.sendall(frame(9, b"ping"))
    assert d.answer()["id"] == 2 and d.frame() == (10, b"ping")
    d.client.close()
    event, received, sent, code, reason = d.ended()
    assert received > 60 and sent > 50 and (code, reason) == (0, "")
    assert d.channel.recv(1) == b""
    d.end()


@pytest.mark.parametrize("cut", [0, 1, 2, 7, 30, None])
def test_what_was_sent_behind_initialize_comes_along(cut):
    """Whole frames and the beginning of one; the rest comes by the socket."""
    text = frame(1, INITIALIZED) + b"".join(
        frame(1, json.dumps({"id": n, "method": "process/read", "params": {"processId": "x" * n}}).encode())
        for n in (2, 200, 70000))
    at = len(text) if cut is None else cut
    d = Direct(kept=text[:at])
    d.client.sendall(text[at:])
    assert [d.answer()["id"] for _ in range(4)] == [1, 2, 200, 70000]
    d.end()


@pytest.mark.parametrize("sizes", [[1], [125, 126, 127], [65535, 65536, 3], [1 << 20, 200 << 10, 5 << 20]])
@pytest.mark.parametrize("fragment", [0, 1000, 300 << 10])
def test_messages_of_all_sizes_in_both_directions(sizes, fragment):
    """The id of a request comes back, so that it is as long as it is."""
    d = Direct().ready()
    failed = []

    def ask():
        for n in sizes:
            text = b'{"id":"' + b"i" * n + b'","method":"x"}'
            step = fragment or len(text)
            for at in range(0, len(text), step):
                d.client.sendall(frame(1 if at == 0 else 0, text[at:at + step], at + step >= len(text)))

    asking = threading.Thread(target=ask)
    asking.start()
    for n in sizes:
        failed += [] if d.answer()["id"] == "i" * n else [n]
    asking.join()
    assert not failed
    d.end()


@pytest.mark.parametrize("bytes_, code, reason", [
    (frame(8, struct.pack(">H", 4001) + b"bye"), 4001, ""), (frame(8), 1005, ""),
    (frame(1, b"\xff"), 1007, "text is not UTF-8"), (frame(1, b"x", mask=False), 1002, "frame is not masked"),
    (b"\x81\xff" + struct.pack(">Q", (64 << 20) + 1) + b"mask", 1009, "frame or message is too long"),
    (frame(3), 1002, "reserved opcode")])
def test_how_the_client_ends_it_is_for_the_front_end_to_answer(bytes_, code, reason):
    d = Direct().ready()
    keep = d.client.dup()
    d.send({"id": 2, "method": "process/list"})
    d.client.sendall(bytes_)
    assert d.answer()["id"] == 2
    assert d.ended()[3:] == (code, reason)
    assert d.client.recv(1) == b"", "the runner has let go"
    keep.close()
    d.still_works()


@pytest.mark.parametrize("how", ["client", "channel", "replaced"])
def test_the_front_end_may_keep_what_the_runner_lets_go(how):
    """An end that nobody closes is no news after the first time."""
    d = Direct(hand=False)
    kept = d.theirs.dup()
    d.hand(handing())
    d.ready()
    if how == "client":
        d.client.close()
        d.ended()
    elif how == "channel":
        d.channel.close()
    channel, client = d.channel, d.client
    if how == "replaced":
        d.attach()
    while d.program.control.recv(1 << 16)[:4] != u32(41):
        pass    # until it reports that it is detached
    kept.shutdown(socket.SHUT_RDWR)
    d.stands_still()
    for sock in kept, channel, client:
        sock.close()
    d.still_works()


def test_a_request_is_carried_out_though_its_client_is_gone(tmp_path):
    d = Direct().ready()
    path = tmp_path / "file"
    d.send({"id": 2, "method": "fs/writeFile", "params": {"path": f"file://{path}", "dataBase64": "aGk="}})
    d.client.sendall(frame(8, struct.pack(">H", 1000)))
    assert d.ended()[3] == 1000
    assert d.channel.recv(1) == b"", "when it is done"
    assert path.read_bytes() == b"hi"
    d.end()


@pytest.mark.parametrize("how", ["close frame", "gone"])
def test_also_behind_an_answer_that_nobody_reads(tmp_path, how):
    d = Direct().ready()
    path, long = tmp_path / "file", tmp_path / "long"
    long.write_bytes(bytes(30 << 20))
    d.send({"id": 2, "method": "fs/readFile", "params": {"path": f"file://{long}"}})
    assert d.client.recv(2) == b"\x01\x7f", "it is under way"
    d.send({"id": 3, "method": "fs/writeFile", "params": {"path": f"file://{path}", "dataBase64": "aGk="}})
    if how == "gone":
        d.client.close()
    else:
        d.client.sendall(frame(8, struct.pack(">H", 1000)))
    assert d.ended()[3] == (1000 if how == "close frame" else 0)
    assert d.channel.recv(1) == b"", "when it is done"
    assert path.read_bytes() == b"hi"
    assert "failed" not in d.end()


# --- the front-end wants it back ------------------------------------------------------


def flood(d):
    """A command that writes without end, to a client that does not read."""
    d.send({"id": 2, "method": "process/start", "params": {
        "processId": "p", "argv": ["/bin/sh", "-c", "while :; do echo 0123456789; done"], "cwd": "file:///", "env": {},
        "tty": False}})
    assert select.select([d.client], [], [], 20)[0]


def test_a_client_that_is_wanted_back_comes_back():
    d = Direct().ready()
    d.send({"id": 2, "method": "process/list"})
    assert d.answer()["id"] == 2
    d.channel.shutdown(socket.SHUT_WR)
    assert d.ended()[3:] == (0, "")
    assert d.client.recv(1) == b""
    d.still_works()


def test_a_client_that_does_not_read_comes_back_cut_off():
    d = Direct().ready()
    flood(d)
    d.channel.shutdown(socket.SHUT_WR)
    assert d.ended()[3] == 0
    while d.client.recv(1 << 20):
        pass
    d.still_works()


def test_a_front_end_that_dies_takes_its_client_along():
    d = Direct().ready()
    flood(d)
    d.channel.close()
    try:
        while d.client.recv(1 << 20):
            pass
    except ConnectionResetError:
        pass
    d.still_works()


# --- time ---------------------------------------------------------------------------


def timed(ping, pong):
    return configure()[:-8] + u32(ping) + u32(pong)


def test_a_silent_client_is_given_up():
    d = Direct(timed(20, 150)).ready()
    assert d.frame() == (9, b"")
    assert d.ended()[3:] == (0, "no pong within 150 ms")
    d.end()


def test_one_that_answers_pings_is_not():
    d = Direct(timed(20, 150)).ready()
    for _ in range(20):
        assert d.frame() == (9, b"")
        d.client.sendall(frame(10))
    d.send({"id": 2, "method": "process/list"})
    while (got := d.frame())[0] == 9:
        d.client.sendall(frame(10))
    assert json.loads(got[1])["id"] == 2
    d.end()


# --- a hostile front-end --------------------------------------------------------------


def regular_file():
    return os.open("/dev/null", os.O_RDWR)


def listening():
    s = socket.create_server(("127.0.0.1", 0))
    return s.detach()


def datagram():
    return socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).detach()


@pytest.mark.parametrize("make", [regular_file, listening, datagram])
def test_what_is_no_connection_is_refused(make):
    d = Direct(hand=False)
    fd = make()
    d.hand(handing(), [fd])
    os.close(fd)
    d.broken()
    d.still_works()


@pytest.mark.parametrize("message", [
    handing(first=0), handing(first=1 << 31), handing(first=len(INITIALIZE) + 1), u32(1) + b"x", u32(4) + u32(0),
    u32(0), u32(0xffffffff), u32((64 << 20) + 1), handing() + b"x", handing() + handing()])
def test_a_bad_beginning_is_refused(message):
    d = Direct(hand=False)
    d.hand(message)
    d.broken()
    d.still_works()


@pytest.mark.parametrize("count", [2, 4, 200])
def test_there_is_one_client(count):
    d = Direct(hand=False)
    d.hand(handing(), [d.theirs.fileno()] * count)
    d.broken()
    d.still_works()


def test_nothing_follows_on_the_channel():
    d = Direct().ready()
    d.channel.sendall(u32(1) + b" ")
    d.broken()
    d.still_works()


def test_a_client_that_comes_later_is_nobody():
    """Only the first message brings one; the session goes on as it began."""
    d = Direct(hand=False)
    d.channel.sendall(u32(len(INITIALIZE)) + INITIALIZE)
    size, = struct.unpack("<I", d.exactly(d.channel, 4))
    assert json.loads(d.exactly(d.channel, size))["id"] == 1
    text = json.dumps({"id": 2, "method": "process/list"}).encode()
    d.hand(u32(len(text)) + text)
    size, = struct.unpack("<I", d.exactly(d.channel, 4))
    assert json.loads(d.exactly(d.channel, size))["id"] == 2
    assert d.client.recv(1) == b"", "closed where it arrived"
    d.end()
