# SPDX-License-Identifier: ISC
"""The cases of the Autobahn test suite, sections 1 to 7 and 9, against the running
server, by their numbers there: over ws and wss, with and without a session, in one
piece and one byte at a time. execd answers JSON-RPC and echoes nothing but the id
of a request, so what a case would have echoed travels as an id. Its codec passes
the same cases cut at every byte in tests/unit/test_websocket.c.
"""
import codecs
import itertools
import pathlib
import struct
import tempfile

import pytest
from conftest import Configured
from execd_client import frame
from test_tls import Authority, identity, listener

TEXT, BINARY, MORE, CLOSE, PING, PONG = 1, 2, 0, 8, 9, 10
KOSME = "κόσμε".encode()
LENGTHS = (0, 125, 126, 127, 128, 65535, 65536)


def ask(id):
    """A request that is answered with this id."""
    id = id.encode() if isinstance(id, str) else id
    return b'{"id":"' + id + b'","method":"x"}'


class Case:
    """Frames, and what comes of them: ids that are answered (-1: a malformed
    message), pongs, and the code that the connection is closed with, if it is."""

    def __init__(self, name, frames, answers=(), pongs=(), close=None):
        self.name, self.frames = name, list(frames)
        self.answers, self.pongs, self.close = list(answers), list(pongs), close

    def bytes(self):
        return b"".join(f if isinstance(f, bytes) else frame(*f) for f in self.frames)


def fragments(data, *sizes):
    """The fragments of a text message; the last takes the rest."""
    at, parts = 0, []
    for size in sizes:
        parts.append(data[at:at + size])
        at += size
    parts.append(data[at:])
    return [(TEXT if i == 0 else MORE, part, i == len(parts) - 1) for i, part in enumerate(parts)]


def octets(data):
    return fragments(data, *[1] * (len(data) - 1))


def framing():
    for i, n in enumerate(LENGTHS):
        stars = "*" * (n - len(ask("")))
        for section, opcode in ((1, TEXT), (2, BINARY)):
            yield Case(f"1.{section}.{i + 1}", [(opcode, ask(stars) if n else b"")], [stars if n else -1])
    yield Case("1.2 bytes", [(BINARY, b"\xfe" * 125)], [-1])


def pings():
    for name, payload in [("2.1", b""), ("2.2", b"Hello, world!"), ("2.3", b"\0\xff\xfe\xfd\xfc\xfb\0\xff"),
                          ("2.4", b"\xfe" * 125)]:
        yield Case(name, [(PING, payload)], pongs=[payload])
    yield Case("2.5", [(PING, b"\xfe" * 126)], close=1002)
    yield Case("2.7", [(PONG, b"")])
    yield Case("2.8", [(PONG, b"unsolicited pong payload")])
    yield Case("2.9", [(PONG, b"unsolicited pong payload"), (PING, b"ping payload")], pongs=[b"ping payload"])
    ten = [b"payload-%d" % i for i in range(10)]
    yield Case("2.10", [(PING, payload) for payload in ten], pongs=ten)


def reserved_bits():
    for number, rsv, frames, answers in [
            ("3.1", 1, [(TEXT, ask("a"))], []), ("3.2", 2, [(TEXT, ask("b")), (PING, b"")], ["a"]),
            ("3.3", 3, [(TEXT, ask("b")), (PING, b"")], ["a"]), ("3.4", 4, [(TEXT, ask("b")), (PING, b"")], ["a"]),
            ("3.5", 5, [(BINARY, b"\0\xff\xfe\xfd\xfc\xfb\0\xff")], []), ("3.6", 6, [(PING, b"Hello, world!")], []),
            ("3.7", 7, [(CLOSE, b"")], [])]:
        (opcode, payload), *rest = frames
        before = [(TEXT, ask(a)) for a in answers]
        yield Case(number, [*before, (opcode, payload, True, True, rsv), *rest], answers, close=1002)


def reserved_opcodes():
    for section, first in ((1, 3), (2, 11)):
        for i in range(5):
            payload = b"reserved opcode payload" if i in (1, 3) else b""
            before = [(TEXT, ask("a"))] if i >= 2 else []
            yield Case(f"4.{section}.{i + 1}", [*before, (first + i, payload), (PING, b"")], ["a"] * len(before),
                       close=1002)


def fragmentation():
    one, two = ask("fragment")[:9], ask("fragment")[9:]
    begin, end = (TEXT, one, False), (MORE, two)
    yield Case("5.1", [(PING, b"fragment1", False), (MORE, b"fragment2")], close=1002)
    yield Case("5.2", [(PONG, b"fragment1", False), (MORE, b"fragment2")], close=1002)
    yield Case("5.3", [begin, end], ["fragment"])
    yield Case("5.6", [begin, (PING, b"ping payload"), end], ["fragment"], [b"ping payload"])
    yield Case("5.9", [(MORE, b"non-continuation payload"), (TEXT, ask("a"))], close=1002)
    yield Case("5.12", [(MORE, b"non-continuation payload", False), (TEXT, ask("a"))], close=1002)
    yield Case("5.15", [begin, end, (MORE, b"fragment3", False), (TEXT, b"fragment4")], ["fragment"], close=1002)
    yield Case("5.16", [(MORE, b"fragment1", False), begin, end] * 2, close=1002)
    yield Case("5.17", [(MORE, b"fragment1"), begin, end] * 2, close=1002)
    yield Case("5.18", [begin, (TEXT, two)], close=1002)
    five = fragments(ask("fragment"), 5, 5, 5, 5)
    yield Case("5.19", [*five[:2], (PING, b"1"), *five[2:4], (PING, b"2"), five[4]], ["fragment"], [b"1", b"2"])
    yield Case("5 empty", [(TEXT, b"", False), (MORE, b"", False), *[(MORE, *f[1:]) for f in five]], ["fragment"])
    yield Case("5 close inside", [begin, (CLOSE, b"\x03\xe8")], close=1000)


# Section 6, after Markus Kuhn's UTF-8 decoder test: number, then one string per case.
LONELY = [b"".join(bytes([c]) + b" " for c in range(first, last)) for first, last in
          ((0xc0, 0xe0), (0xe0, 0xf0), (0xf0, 0xf8), (0xf8, 0xfc), (0xfc, 0xfe))]
CUT_SHORT = [b"\xc0", b"\xe0\x80", b"\xf0\x80\x80", b"\xf8\x80\x80\x80", b"\xfc\x80\x80\x80\x80", b"\xdf", b"\xef\xbf",
             b"\xf7\xbf\xbf", b"\xfb\xbf\xbf\xbf", b"\xfd\xbf\xbf\xbf\xbf"]
STRINGS = {
    "6.5": [b"", KOSME, KOSME + b"\xf0\x90\x80\x80" + b"edited"],
    "6.6": [KOSME[:n] for n in range(1, len(KOSME) + 1)],
    "6.7": [b"\0", b"\xc2\x80", b"\xe0\xa0\x80", b"\xf0\x90\x80\x80"],
    "6.8": [b"\xf8\x88\x80\x80\x80", b"\xfc\x84\x80\x80\x80\x80"],
    "6.9": [b"\x7f", b"\xdf\xbf", b"\xef\xbf\xbf", b"\xf4\x8f\xbf\xbf"],
    "6.10": [b"\xf7\xbf\xbf\xbf", b"\xfb\xbf\xbf\xbf\xbf", b"\xfd\xbf\xbf\xbf\xbf\xbf"],
    "6.11": [b"\xed\x9f\xbf", b"\xee\x80\x80", b"\xef\xbf\xbd", b"\xf4\x8f\xbf\xbf", b"\xf4\x90\x80\x80"],
    "6.12": [b"\x80", b"\xbf", *[(b"\x80\xbf" * 4)[:n] for n in range(2, 8)], bytes(range(0x80, 0xc0))],
    "6.13": LONELY,
    "6.14": CUT_SHORT,
    "6.15": [b"".join(CUT_SHORT)],
    "6.16": [b"\xfe", b"\xff", b"\xfe\xfe\xff\xff"],
    "6.17": [b"\xc0\xaf", b"\xe0\x80\xaf", b"\xf0\x80\x80\xaf", b"\xf8\x80\x80\x80\xaf", b"\xfc\x80\x80\x80\x80\xaf"],
    "6.18": [b"\xc1\xbf", b"\xe0\x9f\xbf", b"\xf0\x8f\xbf\xbf", b"\xf8\x87\xbf\xbf\xbf", b"\xfc\x83\xbf\xbf\xbf\xbf"],
    "6.19": [b"\xc0\x80", b"\xe0\x80\x80", b"\xf0\x80\x80\x80", b"\xf8\x80\x80\x80\x80", b"\xfc\x80\x80\x80\x80\x80"],
    "6.20": [b"\xed\xa0\x80", b"\xed\xad\xbf", b"\xed\xae\x80", b"\xed\xaf\xbf", b"\xed\xb0\x80", b"\xed\xbe\x80",
             b"\xed\xbf\xbf"],
    "6.21": [a + b for a in (b"\xed\xa0\x80", b"\xed\xad\xbf", b"\xed\xae\x80", b"\xed\xaf\xbf")
             for b in (b"\xed\xb0\x80", b"\xed\xbf\xbf")],
    "6.22": [chr(plane << 16 | low).encode() for plane in range(17) for low in (0xfffe, 0xffff)],
    "6.23": [chr(c).encode() for c in range(0xfff9, 0x10000)],
}


def is_utf8(data):
    try:
        data.decode()
        return True
    except UnicodeDecodeError:
        return False


def breaks_at_once(data):
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data)
        return False
    except UnicodeDecodeError:
        return True


def utf8_text():
    yield Case("6.1.1", [(TEXT, b"")], [-1])
    yield Case("6.1.2", [(TEXT, b"", False), (MORE, b"", False), (MORE, b"")], [-1])
    yield Case("6.1.3", [(TEXT, b"", False), (MORE, ask("middle frame payload"), False), (MORE, b"")],
               ["middle frame payload"])
    hello = "Hello-µ@ßöäüàá-UTF-8!!"
    yield Case("6.2.1", [(TEXT, ask(hello))], [hello])
    yield Case("6.2.2", fragments(ask(hello), 20), [hello])
    yield Case("6.2.3", octets(ask(hello)), [hello])
    yield Case("6.2.4", octets(ask(KOSME)), [KOSME.decode()])
    yield Case("6.3.1", [(TEXT, ask(KOSME + b"\xed\xa0\x80edited"))], close=1007)
    yield Case("6.3.2", octets(ask(KOSME + b"\xed\xa0\x80edited")), close=1007)
    # What can still become well-formed goes into one connection, with the rest.
    good = [s for strings in STRINGS.values() for s in strings if is_utf8(s) and b"\0" not in s]
    yield Case("6 good", [(TEXT, ask(s)) for s in good], [s.decode() for s in good])
    yield Case("6 good octets", itertools.chain.from_iterable(octets(ask(s)) for s in good), [s.decode() for s in good])
    yield Case("6 raw", [(TEXT, s) for s in good], [-1] * len(good))
    yield Case("6.7.1", [(TEXT, ask(b"\0"))], [-1])
    for number, strings in STRINGS.items():
        for i, s in enumerate(strings):
            if not is_utf8(s):
                yield Case(f"{number}.{i + 1}", [(TEXT, s)], close=1007)


def utf8_at_once():
    """6.4: the message is not over, its frame is not over, and that is enough."""
    for number, strings in STRINGS.items():
        for i, s in enumerate(strings):
            if breaks_at_once(s):
                unended = frame(TEXT, s + b"a" * 100, False)
                yield Case(f"{number}.{i + 1}", [unended[:-100]], close=1007)
    yield Case("6.4.1", [(TEXT, KOSME + b"\xf4", False), (MORE, b"\x90", False)], close=1007)
    yield Case("6.4.3", [(TEXT, KOSME, False), frame(MORE, b"\xf4\x90\x80\x80edited", True)[:-8]], close=1007)


def closing():
    def close(code, reason=b""):
        return CLOSE, struct.pack(">H", code) + reason

    yield Case("7.1.1", [(TEXT, ask("a")), close(1000)], ["a"], close=1000)
    yield Case("7.1.2", [close(1000), close(1000)], close=1000)
    yield Case("7.1.3", [close(1000), (PING, b"")], close=1000)
    yield Case("7.1.4", [close(1000), (TEXT, ask("a"))], close=1000)
    yield Case("7.1.5", [(TEXT, b"fragment1", False), close(1000), (MORE, b"fragment2")], close=1000)
    yield Case("7.1.6", [(TEXT, ask("BAsd7&jh23" * 26000)), close(1000), (PING, b"")], ["BAsd7&jh23" * 26000],
               close=1000)
    yield Case("7.3.1", [(CLOSE, b"")], close=1005)
    yield Case("7.3.2", [(CLOSE, b"\x03")], close=1002)
    yield Case("7.3.3", [close(1000)], close=1000)
    yield Case("7.3.4", [close(1000, b"Hello World!")], close=1000)
    yield Case("7.3.5", [close(1000, b"*" * 123)], close=1000)
    yield Case("7.3.6", [close(1000, b"*" * 124)], close=1002)
    yield Case("7.5.1", [close(1000, KOSME + b"\xed\xa0\x80edited")], close=1007)
    for i, code in enumerate([1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999]):
        yield Case(f"7.7.{i + 1}", [close(code)], close=code)
    for i, code in enumerate([0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999, 5000, 65535]):
        yield Case(f"7.9.{i + 1}", [close(code)], close=1002)


SECTIONS = [framing, pings, reserved_bits, reserved_opcodes, fragmentation, utf8_text, utf8_at_once, closing]


@pytest.fixture(scope="module")
def listening(user):
    """One execd with both kinds of listener: its mode changes nothing here."""
    with tempfile.TemporaryDirectory(prefix="execd-test-") as d:
        where = pathlib.Path(d)
        where.chmod(0o777)
        authority = Authority(where)
        base = authority.issue("server", group=user.pw_gid)
        plain = "[listener plain]\naddress = ws://127.0.0.1:0\n"
        s = Configured("user", user, where / "execd.conf", listener(base) + plain + identity(user))
        s.tls = authority.client()
        yield s
        s.stop()
    assert "killed by signal" not in s.log and "exited with status" not in s.log, s.log


class Clients:
    """Connections of one kind. Those with a session share one: it outlives them."""

    def __init__(self, server, scheme, attached):
        self.server, self.attached, self.session = server, attached, None
        self.url = next(u for u in server.urls if u.startswith(scheme + ":"))
        self.tls = server.tls if scheme == "wss" else None

    def connect(self):
        c = self.server.connect(self.url, tls=self.tls, token="t")
        if not self.attached:
            return c
        params = {"clientName": "test", **({"resumeSessionId": self.session} if self.session else {})}
        # The one before may still be on its way out.
        while (m := c.request("initialize", params)).get("error", {}).get("code") == -32010:
            pass
        self.session = m["result"]["sessionId"]
        c.notify("initialized")
        return c


def send(c, data, step):
    """What a server that closed does not take is no failure: why it closed is looked at."""
    try:
        for at in range(0, len(data), step):
            c.sock.sendall(data[at:at + step])
    except OSError:
        pass


def check(clients, case, step):
    c = clients.connect()
    before = len(c.messages)
    data = case.bytes() + (b"" if case.close else frame(TEXT, ask("the end")))
    send(c, data, step if step != 1 or len(data) < 5000 else 997)
    if case.close:
        assert c.wait_closed()["code"] == case.close, (case.name, c.closed)
    else:
        c.answer("the end")
        case.answers.append("the end")
    answers = [m["id"] for m in c.messages[before:]]
    pongs = [payload for opcode, payload in c.frames if opcode == PONG]
    c.drop()
    clients.server.clients.remove(c)
    # A session's answers under way when its connection closes are lost.
    assert answers == (case.answers[:len(answers)] if case.close and clients.attached else case.answers), case.name
    # Of several pings the last is answered, of the others some (RFC 6455 5.5.3).
    assert pongs[-1:] == case.pongs[-1:] and set(pongs) <= set(case.pongs), case.name


@pytest.mark.parametrize("cases", SECTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("scheme", ["ws", "wss"])
@pytest.mark.parametrize("attached", [False, True], ids=["new", "attached"])
@pytest.mark.parametrize("step", [1 << 20, 1], ids=["whole", "octets"])
def test_section(listening, scheme, attached, step, cases):
    clients = Clients(listening, scheme, attached)
    for case in cases():
        check(clients, case, step)


def message(size):
    head, tail = b'{"id":"big","method":"x","params":"', b'"}'
    return head + b"*" * (size - len(head) - len(tail)) + tail


def limits():
    """9: sizes, fragment sizes, and many messages. The limits themselves are in test_limits.py."""
    for kib in (64, 256, 1024, 4096):
        yield Case(f"9.1 {kib} KiB", [(TEXT, message(kib << 10))], ["big"])
        yield Case(f"9.2 {kib} KiB", [(BINARY, message(kib << 10))], ["big"])
    for size in (64, 1024, 65536):
        text = message(1 << 20)
        yield Case(f"9.3 {size}", fragments(text, *[size] * ((1 << 20) // size - 1)), ["big"])
    for size in (16, 256, 4096):
        yield Case(f"9.7 {size}", [(TEXT, ask("*" * size))] * 1000, ["*" * size] * 1000)


@pytest.mark.parametrize("scheme", ["ws", "wss"])
@pytest.mark.parametrize("attached", [False, True], ids=["new", "attached"])
def test_sizes(listening, scheme, attached):
    clients = Clients(listening, scheme, attached)
    for case in limits():
        check(clients, case, 1 << 20)


@pytest.mark.parametrize("scheme", ["ws", "wss"])
@pytest.mark.parametrize("step", [128, 2048])
def test_a_large_message_in_small_pieces(listening, scheme, step):
    """9.5, 9.6."""
    check(Clients(listening, scheme, True), Case("9.5", [(TEXT, message(256 << 10))], ["big"]), step)
