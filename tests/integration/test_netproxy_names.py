# SPDX-License-Identifier: ISC
"""The way for programs that know no proxy: a test plays the runner of execd-netproxy, and a command that asks its resolver
and connects to what stands for a name."""
import os
import random
import re
import select
import contextlib
import socket
import ssl
import struct

import pytest

from conftest import SANITIZED
from netproxy_program import NetProxy, origin, read_all, read_until  # noqa: F401

A, AAAA, TXT = 1, 28, 16
OK, BAD_FORMAT, FAILED, NO_NAME, UNSUPPORTED = range(5)


def question(name, kind=A, number=0x1234):
    labels = b"".join(bytes([len(x)]) + x for x in name.encode().split(b"."))
    return struct.pack(">HHHHHH", number, 0x100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", kind, 1)


def read_answer(data):
    """(code, address or None)"""
    flags, _, answers = struct.unpack_from(">HHH", data, 2)
    assert flags & 0x8080 == 0x8080 and answers in (0, 1)
    return flags & 15, socket.inet_ntoa(data[-4:]) if answers else None


class Names(NetProxy):
    """A list with a resolver. Names get addresses of 127.66.0.0/16, which a test can have without a namespace."""

    def __init__(self, rules, files=None, own=(), **options):
        super().__init__([], files=files, own=own)
        self.close_list(1)
        self.resolver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.resolver.bind(("127.0.0.1", 0))
        self.where = self.resolver.getsockname()
        self.names = 0
        self.open(2, rules, resolver=self.resolver, **options)
        self.resolver.close()

    def send(self, data):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.settimeout(20)
        s.connect(self.where)
        s.send(data)
        return s

    def ask(self, name, kind=A):
        with self.send(question(name, kind)) as s:
            return read_answer(s.recv(600))

    def ask_again(self, name):
        """As programs do: a question is lost while there is no room for it. The runner reads meanwhile."""
        with self.send(question(name)) as s:
            for _ in range(200):
                ready = select.select([s, self.runner], [], [], .1)[0]
                if s in ready:
                    return read_answer(s.recv(600))
                if ready:
                    self.event()
                else:
                    s.send(question(name))
        raise AssertionError("it answers no more")

    def look_up(self, name, ports=None):
        """A name that is new: plays the runner, too. Returns its address, and the ports it was asked for."""
        with self.send(question(name)) as s:
            asked = self.event()
            assert asked["type"] == "name"
            self.names += 1
            address = f"127.66.0.{self.names}"
            self.named(asked, address, [socket.create_server((address, ports[i] if ports else 0))
                                        for i in range(len(asked["ports"]))])
            assert read_answer(s.recv(600)) == (OK, address)
            return address, asked["ports"]


@pytest.fixture
def names(request):
    started = []

    def start(rules, **options):
        started.append(Names(rules, **options))
        return started[-1]

    yield start
    for p in started:
        p.stop()


def test_a_name_leads_to_its_host(names, origin):
    """Its address stands for it as long as the list is open. The bytes of the connection are the command's own."""
    o = origin(answer=b"banner", hold=True)
    p = names([f"alocalhost:{o.port}"])
    address, ports = p.look_up("LocalHost", [o.port])
    assert ports == (o.port,)
    assert p.ask("localhost") == (OK, address) and p.ask("localhost", AAAA) == (OK, None)
    with socket.create_connection((address, o.port), 20) as s:
        e = p.event()
        assert (e["protocol"], e["allowed"], e["host"], e["port"], e["rule"]) == \
            ("direct_tcp", True, "localhost", o.port, f"localhost:{o.port}")
        s.sendall(b"hello")
        assert read_until(s, b"banner") == b"banner"
        s.shutdown(socket.SHUT_WR)
        assert read_all(s) == b"" and o.seen == [b"hello"]


def test_a_name_does_not_lead_to_a_port_of_execd(names, origin):
    """Its address is there, and who connects to it is reset when the name was resolved."""
    o = origin()
    p = names([f"alocalhost:{o.port}"], own=[o.port])
    address, _ = p.look_up("localhost", [o.port])
    with contextlib.suppress(ConnectionResetError):     # it may come before connect(2) has returned
        with socket.create_connection((address, o.port), 20) as s:
            assert read_all(s) == b"<reset>"
    e = p.event()
    assert (e["protocol"], e["allowed"], e["source"], e["reason"]) == ("direct_tcp", False, "operator", "own port")
    assert not o.seen


def test_the_server_may_speak_first(names, origin):
    o = origin(answer=lambda request, data: None)
    o.finish_request = lambda request, client: (request.sendall(b"SSH-2.0-x\r\n"), request.recv(100))
    p = names([f"alocalhost:{o.port}"])
    address, _ = p.look_up("localhost", [o.port])
    with socket.create_connection((address, o.port), 20) as s:
        assert read_until(s, b"\n") == b"SSH-2.0-x\r\n"


@pytest.mark.parametrize("rules,name,source,reason,rule", [
    (["aa.example"], "b.example", "list", "not listed", ""),
    (["aa.example"], "x.a.example", "list", "not listed", ""),
    (["a*", "da.example"], "A.example", "list", "denied", "a.example"),
    (["a*", "Ab.example"], "a.example", "operator", "not listed", ""),
    (["aa.example", "Aa.example:5000"], "a.example", "operator", "port closed", ""),
    (["aa.example", "d\u2024"], "a.example", "list", "bad list", ""),
])
def test_what_is_refused_is_told(names, rules, name, source, reason, rule):
    """Both look-ups of a program that wants every kind of address are one denial; the next one is another."""
    p = names(rules)
    for _ in range(2):
        assert p.ask(name) == p.ask(name, AAAA) == (NO_NAME, None)
        e = p.event()
        assert (e["protocol"], e["allowed"], e["host"], e["port"]) == ("dns", False, name.lower(), 0)
        assert (e["source"], e["reason"]) == (source, reason)
        assert not select.select([p.runner], [], [], 0)[0]


def test_records_of_every_kind_are_refused(names):
    """What a look-up for a record of text would carry stays here, and is told."""
    p = names(["aa.example"])
    for kind in TXT, 15, 33, 65, 255:
        assert p.ask(f"secret{kind}.other.example", kind) == (NO_NAME, None)
        assert p.event()["host"] == f"secret{kind}.other.example"


@pytest.mark.parametrize("name", ["127.0.0.1", "a..example", "a b.example", "x" * 64])
def test_what_is_no_host_has_no_address(names, name):
    p = names(["a*", "a127.0.0.1"])
    if ".." in name or len(name) > 63:
        data = question("a.example")[:12] + bytes([len(name) & 255]) + name.encode() + b"\0\0\1\0\1"
    else:
        data = question(name)
    with p.send(data) as s:
        assert read_answer(s.recv(600))[1] is None
    assert p.look_up("a.example")


def test_records_of_other_kinds_are_empty(names):
    p = names(["aa.example"])
    assert [p.ask("a.example", kind) for kind in (AAAA, TXT, 12, 15, 33, 65, 255)] == [(OK, None)] * 7


def test_two_ask_while_the_runner_is_asked(names):
    """The runner is asked once, and both get the answer."""
    p = names(["aa.example"])
    first, second = p.send(question("a.example", number=1)), p.send(question("a.example", number=2))
    asked = p.event()
    assert asked["ports"] == (22, 80, 443)
    p.named(asked, "127.66.1.1", [socket.create_server(("127.66.1.1", 0)) for _ in asked["ports"]])
    for s, number in (first, 1), (second, 2):
        data = s.recv(600)
        assert struct.unpack_from(">H", data)[0] == number and read_answer(data) == (OK, "127.66.1.1")


def test_look_ups_that_wait_have_an_end(names):
    """64 of a list, whatever names they are for; programs ask again."""
    p = names(["a*.example"])
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(20)
    s.connect(p.where)
    for number in range(100):
        s.send(question("a.example", number=number))
    asked = p.event()
    assert p.ask("a.example", AAAA) == (OK, None)  # all before it were read
    p.named(asked, "127.66.3.1", [socket.create_server(("127.66.3.1", 0)) for _ in asked["ports"]])
    answered = [struct.unpack_from(">H", s.recv(600))[0] for _ in range(64)]
    s.send(question("a.example", number=1000))
    assert [*answered, struct.unpack_from(">H", s.recv(600))[0]] == [*range(64), 1000]
    s.close()


def test_the_runner_has_no_address(names):
    """A failure is one name's. After the last address names are refused without asking, and known ones stay."""
    p = names(["a*.example"])
    address, _ = p.look_up("a.example")
    for flags in {}, {"over": True, "full": True}:
        with p.send(question("b.example")) as s:
            p.named(p.event(), "0.0.0.0", **flags)
            assert read_answer(s.recv(600)) == (FAILED, None)
    e = p.event()
    assert (e["host"], e["source"], e["reason"]) == ("b.example", "limit", "too many names")
    assert p.ask("c.example") == (FAILED, None) and p.event()["host"] == "c.example"
    assert p.ask("a.example") == (OK, address)


def free_port():
    with socket.create_server(("127.66.0.1", 0)) as s:
        return s.getsockname()[1]


def is_reset(s):
    if s is None:
        return True
    with s:
        return read_all(s) == b"<reset>"


def connect(address, port):
    """None: it was reset before connect(2) had returned."""
    try:
        return socket.create_connection((address, port), 20)
    except ConnectionResetError:
        return None


def test_a_connection_is_judged_as_a_tunnel_is(names, origin):
    """The client is asked, limits hold, and who may not connect sees a reset."""
    o = origin(answer=b"", hold=True)
    p = names([], asks=True, connections=1, local=True)
    address, ports = p.look_up("localhost", [0, o.port, 0])
    assert ports == (22, 80, 443)
    for allowed in False, True:
        s = connect(address, o.port)
        asked = p.event()
        assert (asked["type"], asked["protocol"], asked["host"], asked["port"]) == ("ask", "direct_tcp", "localhost", 80)
        if not allowed:
            p.answer(asked, False)
            e = p.event()
            assert (e["allowed"], e["source"]) == (False, "client") and is_reset(s)
    with s:
        other = connect(address, o.port)
        e = p.event()
        assert (e["allowed"], e["reason"]) == (False, "too many") and is_reset(other)


def test_limited_mode_has_no_tunnels(names):
    p = names(["alocalhost"], limited=True)
    port = free_port()
    address, _ = p.look_up("localhost", [0, port, 0])
    s = connect(address, port)
    assert p.event()["reason"] == "no tunnels" and is_reset(s)


def test_tls_asks_for_the_name_that_was_looked_up(names, origin):
    o = origin(answer=b"", hold=True)
    p = names([f"alocalhost:{o.port}"])
    address, _ = p.look_up("localhost", [o.port])
    out = ssl.MemoryBIO()
    context = ssl.create_default_context()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), out, server_hostname="b.example").do_handshake()
    with socket.create_connection((address, o.port), 20) as s:
        assert p.event()["allowed"]
        s.sendall(out.read())
        assert p.event()["reason"] == "other name" and read_all(s) == b"<reset>" and not any(o.seen)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: lays files over /etc/hosts")
def test_a_name_of_this_host_or_its_network_leads_nowhere(names, origin, tmp_path):
    """Its address is judged when it is connected to, so what it leads to later does not matter."""
    o = origin()
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 rebind.example\n169.254.169.254 meta.example\n::1 six.example\n")
    p = names(["a*.example"], files={"/etc/hosts": hosts})
    for name in "rebind.example", "meta.example", "six.example":
        port = free_port()
        address, _ = p.look_up(name, [0, port, 0])
        s = connect(address, port)
        assert p.event()["reason"] == "private" and is_reset(s)
    assert not o.seen


def test_a_closed_list_answers_no_more(names):
    p = names(["aa.example"])
    waiting = p.send(question("a.example"))
    asked = p.event()
    p.close_list(2)
    p.open(3, [])
    p.http("GET http://a.example/ HTTP/1.1")  # the list before this one is closed now
    assert p.event()["list"] == 3
    p.named(asked, "127.66.2.1", [socket.create_server(("127.66.2.1", 0)) for _ in asked["ports"]])
    p.http("GET http://a.example/ HTTP/1.1")
    assert p.event()["list"] == 3
    for s in waiting, p.send(question("b.example")):
        with pytest.raises(ConnectionRefusedError):
            s.send(b"x")
            s.recv(600)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.66.2.1", 1), 20)


def rss_kib(pid):
    if SANITIZED:  # which keeps what is freed
        return 0
    return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{pid}/status").read())[1])


def test_bytes_of_any_kind(names):
    """100 000 packets that are no questions, or have broken ones: it answers the next one, and needs no memory."""
    p = names(["aa.example"])
    address, _ = p.look_up("a.example")
    rng = random.Random(25)
    whole = question("a.example")
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect(p.where)
    before = rss_kib(p.child.pid)
    for i in range(100000):
        if i % 3 == 0:
            data = rng.randbytes(rng.randrange(64))
        elif i % 3 == 1:
            data = bytearray(whole)
            data[rng.choice((4, 5, 12, 14, 22))] = 0xc0 | rng.randrange(64)
        else:
            data = whole[:2] + b"\1\0\0\1\0\0\0\0\0\0" + rng.randbytes(rng.randrange(300))
        s.send(data)
    s.close()
    assert p.ask_again("a.example") == (OK, address)
    assert rss_kib(p.child.pid) - before < 1024


# What 150 000 messages would take is about three times that.
KEPT_KIB = 4096


def test_who_asks_faster_than_the_runner_reads(names):
    """While the runner does not read, nothing more is answered, and nothing piles up."""
    p = names([])
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect(p.where)
    before = rss_kib(p.child.pid)
    for i in range(150000):
        s.send(question(f"n{i}.example"))
    s.close()
    assert rss_kib(p.child.pid) - before < KEPT_KIB
    told = 0
    while select.select([p.runner], [], [], .5)[0]:
        told += p.event()["reason"] == "not listed"
    assert 0 < told < 150000
    assert p.ask_again("end.example") == (NO_NAME, None)
    assert rss_kib(p.child.pid) - before < KEPT_KIB
