# SPDX-License-Identifier: ISC
"""execd-netproxy, the way out of a sandbox whose network is a list of hosts, from both of its sides."""
import json
import os
import select
import signal
import socket
import ssl
import struct
import threading

import pytest

from conftest import poll
from netproxy_program import NetProxy, origin, read_all, read_until  # noqa: F401


@pytest.fixture
def proxy(request):
    started = []

    def start(rules, **options):
        started.append(NetProxy(rules, **options))
        return started[-1]

    yield start
    for p in started:
        p.stop()


def body(answer):
    return answer.partition(b"\r\n\r\n")[2]


def test_a_listed_host_is_reached(proxy, origin):
    o = origin()
    p = proxy(["alocalhost"])
    answer = p.http(f"GET http://localhost:{o.port}/a?b HTTP/1.1\nHost: localhost:{o.port}\nX-A: 1\n"
                    "Proxy-Connection: keep-alive\nConnection: x-b\nX-B: 2\nProxy-Authorization: Basic eA==")
    assert answer == b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nconnection: close\r\n\r\nhi"
    assert o.seen == [f"GET /a?b HTTP/1.1\r\nHost: localhost:{o.port}\r\nX-A: 1\r\nconnection: close\r\n\r\n".encode()]
    e = p.event()
    assert (e["allowed"], e["reason"], e["rule"], e["method"], e["host"], e["port"]) == \
        (True, "listed", "localhost", "GET", "localhost", o.port)


@pytest.mark.parametrize("rules,uri,source,reason,rule", [
    ([], "http://a.example/", "list", "not listed", ""),
    (["aa.example", "da.example"], "http://a.example/", "list", "denied", "a.example"),
    (["aa.example"], "http://b.a.example/", "list", "not listed", ""),
    (["a*"], "http://127.0.0.1/", "list", "not listed", ""),
    (["a*"], "http://localhost/", "list", "private", "*"),
    (["a*"], "http://169.254.169.254/", "list", "not listed", ""),
    (["a*"], "http://[::ffff:127.0.0.1]/", "list", "not listed", ""),
    (["a*"], "http://0.0.0.0/", "list", "not listed", ""),
    (["a*", "Ab.example"], "http://a.example/", "operator", "not listed", ""),
    (["a*", "Da.example"], "http://a.example/", "operator", "denied", "a.example"),
    (["a127.0.0.1", "A*"], "http://127.0.0.1/", "operator", "not listed", ""),
    (["alocalhost", "A*"], "http://localhost/", "operator", "private", "localhost"),
    (["ab\u00fccher.example", "d*.b\u00fccher.example"], "http://x.xn--bcher-kva.example/", "list", "denied",
     "*.xn--bcher-kva.example"),
    (["a*", "d\u2024"], "http://a.example/", "list", "bad list", ""),
])
def test_what_is_refused_is_told(proxy, rules, uri, source, reason, rule):
    p = proxy(rules)
    answer = p.http(f"GET {uri} HTTP/1.1")
    head, _, said = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 403 Forbidden\r\n") and b"x-proxy-error: blocked-by-" in head
    e = p.event()
    assert (e["allowed"], e["source"], e["reason"], e["rule"]) == (False, source, reason, rule)
    told = json.loads(said)
    assert (told["host"], told["port"], told["rule"]) == (e["host"], e["port"], rule or None)
    assert told["decision"] == "deny" and told["message"]


@pytest.mark.parametrize("head", [
    "GET / HTTP/1.1\nHost: localhost",
    "GET https://localhost/ HTTP/1.1",
    "GET ftp://localhost/ HTTP/1.1",
    "GET http://a@localhost/ HTTP/1.1",
    "GET http://localhost:80@b.example/ HTTP/1.1",
    "GET http://localhost/#a HTTP/1.1",
    "GET http:///a HTTP/1.1",
    "GET http://127.1/ HTTP/1.1",
    "GET http://2130706433/ HTTP/1.1",
    "GET http://0x7f000001/ HTTP/1.1",
    "GET http://0177.0.0.1/ HTTP/1.1",
    "GET http://localhost/ HTTP/1.1\nHost: b.example",
    "GET http://localhost/ HTTP/1.1\nHost: localhost\nHost: localhost",
    "GET http://localhost/ HTTP/1.1\nHost: localhost:81",
    "GET http://localhost/ HTTP/1.1\nX: a\n b",
    "GET http://localhost/ HTTP/1.1\nX : a",
    "GET http://localhost/ HTTP/2.0",
    "GET  http://localhost/ HTTP/1.1",
    "POST http://localhost/ HTTP/1.1\nContent-Length: 1\nContent-Length: 2",
    "POST http://localhost/ HTTP/1.1\nContent-Length: 1\nTransfer-Encoding: chunked",
    "POST http://localhost/ HTTP/1.1\nTransfer-Encoding: gzip, chunked",
    "POST http://localhost/ HTTP/1.1\nContent-Length: +1",
    "CONNECT localhost HTTP/1.1",
    "CONNECT a@localhost:443 HTTP/1.1",
    "CONNECT http://localhost:443 HTTP/1.1",
    "CONNECT localhost:443 HTTP/1.1\nHost: b.example:443",
    "CONNECT localhost:99999 HTTP/1.1",
    "CONNECT 127.1:443 HTTP/1.1",
    "SSH-2.0-x",
    "GET http://localhost/" + "a" * 70000 + " HTTP/1.1",
])
def test_a_request_that_can_be_read_in_two_ways_is_refused(proxy, head):
    p = proxy(["alocalhost", "ab.example", "a127.0.0.1"])
    assert p.http(head).startswith(b"HTTP/1.1 400 Bad Request\r\n")


@pytest.mark.parametrize("method,length,data", [
    ("GET", "", b""), ("GET", "\nContent-Length: 0", b""), ("POST", "\nContent-Length: 70000", b"x" * 70000)])
def test_nothing_behind_the_first_request_is_a_request(proxy, origin, method, length, data):
    """The second one, for a host that is not listed, goes nowhere and is not answered."""
    o = origin(hold=True)
    p = proxy(["alocalhost"])
    second = b"GET http://b.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n"
    answer = p.http(f"{method} http://localhost:{o.port}/ HTTP/1.1{length}", data + second)
    assert answer.count(b"HTTP/1.1") == 1 and body(answer) == b"hi"
    assert p.event()["host"] == "localhost"
    o.stop()
    assert o.seen[0].count(b"HTTP/1.1") == 1 and body(o.seen[0]) == data
    p.http("GET http://c.example/ HTTP/1.1")
    assert p.event()["host"] == "c.example"


SECOND = b"GET / HTTP/1.1\r\nHost: b.example\r\n\r\n"


@pytest.mark.parametrize("size", [1, 7, 100000])
@pytest.mark.parametrize("chunks", [
    b"0\r\n\r\n", b"5\r\nhello\r\n0\r\n\r\n", b"3;a=b\r\n\r\n0\r\n00a\r\n0123456789\r\n0\r\nx: y\r\nz: 0\r\n\r\n",
    b"%x\r\n%b\r\n0;e\r\n\r\n" % (3000, b"0\r\n\r\n" * 600)], ids=["empty", "one", "trailer", "long"])
def test_nothing_behind_a_chunked_body_is_a_request(proxy, origin, chunks, size):
    """The body is passed on as it is, and what comes behind it goes nowhere, however both are cut."""
    def answer(request, data):
        while not data.endswith(chunks) and (more := request.recv(1 << 16)):
            data += more
        o.seen.append(data)
        request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")

    o = origin(answer, hold=True)
    p = proxy(["alocalhost"])
    with p.connect() as s:
        s.sendall(f"POST http://localhost:{o.port}/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(chunks + SECOND), size):
            s.sendall((chunks + SECOND)[at:at + size])
        got = read_all(s)
    assert got.count(b"HTTP/1.1") == 1 and body(got) == b"hi"
    o.stop()
    assert body(o.seen[1]) == chunks and not any(b"b.example" in seen for seen in o.seen)


def test_a_large_chunked_body(proxy, origin):
    data = b"".join(b"%x\r\n%b\r\n" % (n, os.urandom(n)) for n in [1, 65536, 300000, 5] * 5) + b"0\r\n\r\n"

    def answer(request, seen):
        while len(body(seen)) < len(data) and (more := request.recv(1 << 16)):
            seen += more
        request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" + (b"ok" if body(seen) == data else b"no"))

    o = origin(answer)
    p = proxy(["alocalhost"])
    assert body(p.http(f"POST http://localhost:{o.port}/ HTTP/1.1\nTransfer-Encoding: chunked", data + SECOND)) == b"ok"


@pytest.mark.parametrize("chunks", [
    b"0\n\n", b"5\nhello\n0\r\n\r\n", b"0x5\r\nhello\r\n", b"+5\r\nhello\r\n", b" 5\r\nhello\r\n", b"\r\n", b"5\r\nhelloX",
    b"5;a\nb\r\nhello\r\n", b"0\r\nx: y\n\r\n", b"0\r\nx\ry\r\n\r\n", b"1" * 17 + b"\r\n", b"0;" + b"x" * 70000])
def test_chunks_that_can_be_read_in_two_ways(proxy, origin, chunks):
    """The connection ends there, and nothing of what follows goes to the host."""
    o = origin(answer=b"", hold=True)
    p = proxy(["alocalhost"])
    try:
        p.http(f"POST http://localhost:{o.port}/ HTTP/1.1\nTransfer-Encoding: chunked", chunks + SECOND)
    except ConnectionError:
        pass  # reset while it still sends
    o.stop()
    assert not any(b"b.example" in seen for seen in o.seen)


UPGRADE = "GET http://localhost:%d/ HTTP/1.1\nConnection: upgrade\nUpgrade: %s"


@pytest.mark.parametrize("protocol", ["websocket", "h2c", "websocket, h2c", "websocket\nUpgrade: h2c"])
def test_nothing_behind_a_change_of_the_protocol_that_is_not_made(proxy, origin, protocol):
    """A server that answers as ever sees no second request, and of h2c it does not even hear."""
    o = origin(hold=True)
    p = proxy(["alocalhost"])
    answer = p.http(UPGRADE % (o.port, protocol), SECOND)
    assert answer.count(b"HTTP/1.1") == 1 and body(answer) == b"hi"
    o.stop()
    assert b"b.example" not in o.seen[0] and (b"websocket" in o.seen[0]) == (protocol == "websocket")
    assert b"h2c" not in o.seen[0]


def test_what_follows_waits_until_the_protocol_is_another_one(proxy, origin):
    seen = []

    def answer(request, data):
        seen.append(data)
        request.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nframe")

    o = origin(answer, hold=True)
    p = proxy(["alocalhost"])
    with p.connect() as s:
        s.sendall((UPGRADE % (o.port, "websocket")).replace("\n", "\r\n").encode() + b"\r\n\r\nearly")
        assert read_until(s, b"frame").startswith(b"HTTP/1.1 101")
        s.sendall(b"late")
        s.shutdown(socket.SHUT_WR)
        assert read_all(s) == b""
    assert body(seen[0]) == b"" and body(o.seen[0]) == b"earlylate"


def test_a_protocol_that_nobody_asked_for(proxy, origin):
    o = origin(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", hold=True)
    p = proxy(["alocalhost"])
    assert p.http(f"GET http://localhost:{o.port}/ HTTP/1.1").startswith(b"HTTP/1.1 502")


def test_a_tunnel_goes_to_listed_ports(proxy, origin):
    """A client's pattern without a port is for every port, unless the operator's narrows it."""
    o = origin(hold=True, answer=b"banner")
    p = proxy(["alocalhost", f"a127.0.0.1:{o.port}", "ab.example:5000", "Alocalhost", "A127.0.0.1:*", "Ab.example:*"])
    s, head = p.tunnel(f"localhost:{o.port}")
    e = p.event()
    assert head.startswith(b"HTTP/1.1 403") and (e["reason"], e["source"]) == ("port closed", "operator")
    assert b"or 80 and 443 where the operator names none. Rule: localhost" in read_all(s)
    s, head = p.tunnel("b.example:443")
    e = p.event()
    assert head.startswith(b"HTTP/1.1 403") and (e["reason"], e["source"]) == ("port closed", "list")
    for operators in ["A127.0.0.1:*"], []:
        p = proxy(["a127.0.0.1", *operators])
        s, head = p.tunnel(f"127.0.0.1:{o.port}")
        assert head.startswith(b"HTTP/1.1 200") and p.event()["rule"] == "127.0.0.1"
        s.sendall(b"hello")
        assert read_until(s, b"banner") == b"banner"
        s.shutdown(socket.SHUT_WR)
        assert read_all(s) == b""


@pytest.mark.parametrize("name,passes", [("localhost", True), (None, True), ("b.example", False)])
def test_tls_asks_for_the_name_of_the_tunnel(proxy, origin, name, passes):
    o = origin(hold=True, answer=b"")
    p = proxy([f"alocalhost:{o.port}"])
    s, head = p.tunnel(f"localhost:{o.port}")
    assert head.startswith(b"HTTP/1.1 200") and p.event()["allowed"]
    context = ssl.create_default_context()
    context.check_hostname = False
    out = ssl.MemoryBIO()
    try:
        context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name).do_handshake()
    except ssl.SSLWantReadError:
        pass
    hello = out.read()
    for at in range(0, len(hello), 100):  # also in pieces
        s.sendall(hello[at:at + 100])
    if passes:
        s.shutdown(socket.SHUT_WR)
        assert read_all(s) == b"" and o.seen == [hello]
    else:
        assert p.event()["reason"] == "other name"
        assert read_all(s) == b"<reset>" and not any(o.seen)


def socks(p, host, port, command=1, methods=b"\x00"):
    s = p.connect()
    s.sendall(bytes([5, len(methods)]) + methods)
    assert s.recv(2) == b"\x05\x00"
    name = host.encode()
    s.sendall(bytes([5, command, 0, 3, len(name)]) + name + struct.pack(">H", port))
    return s, s.recv(10)


@pytest.fixture(params=["connect", "socks5", "socks5 by address"])
def tunnel(request, proxy, origin, tmp_path):
    """tunnel(answer): a tunnel of the parameter's kind to port 80 of one.example, and that host."""
    if os.geteuid() != 0:
        pytest.skip("needs root: a server at port 80")
    hosts = tmp_path / "hosts"
    hosts.write_text("127.77.0.80 one.example\n")

    def make(*args, **options):
        o = origin(*args, hold=True, address="127.77.0.80", port=80, **options)
        p = proxy(["aone.example", "a127.77.0.80"], files={"/etc/hosts": hosts})
        if request.param == "connect":
            s, reply = p.tunnel("one.example:80")
            assert reply.startswith(b"HTTP/1.1 200")
        else:
            s, reply = socks(p, "one.example" if request.param == "socks5" else "127.77.0.80", 80)
            assert reply[:2] == b"\5\0"
        return s, o

    return make


def said(seen):
    return b"".join(seen)


@pytest.mark.parametrize("size", [1, 100000])
@pytest.mark.parametrize("first,sent", [
    (b"GET /a HTTP/1.1\r\nHost: one.example\r\n\r\n", b""),
    (b"POST /a HTTP/1.1\r\nHost: ONE.example:80\r\nContent-Length: 5\r\n\r\nhello", b"hello"),
    (b"POST /a HTTP/1.1\r\nHost: one.example\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
     b"5\r\nhello\r\n0\r\n\r\n"),
    (b"GET /a HTTP/1.1\r\nHost: one.example\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n", b""),
    (b"GET /a HTTP/1.1\r\nHost: one.example\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n", b""),
    (b"HEAD /a HTTP/1.0\r\n\r\n", b"")], ids=["get", "length", "chunked", "websocket", "h2c", "head"])
def test_a_tunnel_to_port_80_carries_one_request(tunnel, first, sent, size):
    """Nothing of what comes behind it goes to the host, however both are cut."""
    def answer(request, data):
        while not data.endswith(b"\r\n\r\n" + sent) and (more := request.recv(1 << 16)):
            data += more
        o.seen.append(data)
        request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" + b"hi" * (b"HEAD" not in data))

    s, o = tunnel(answer)
    with s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(first + SECOND), size):
            s.sendall((first + SECOND)[at:at + size])
        got = read_all(s)
    assert got.count(b"HTTP/1.1") == 1 and b"connection: close" in got and body(got) == b"hi" * (b"HEAD" not in first)
    o.stop()
    assert body(o.seen[1]) == sent and b"b.example" not in said(o.seen) and b"h2c" not in said(o.seen)


@pytest.mark.parametrize("says", [
    b"GET http://one.example/ HTTP/1.1\r\nHost: one.example\r\n\r\n", b"CONNECT b.example:443 HTTP/1.1\r\n\r\n",
    b"CONNECT / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"SSH-2.0-x\r\n\r\n", b"GET /a\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: one.example\r\nHost: b.example\r\n\r\n", b"GET / HTTP/1.1\nHost: one.example\n\n\r\n\r\n",
    b"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", b"\x16\x03\x01" * 30000],
    ids=["absolute", "connect", "connect path", "h2", "ssh", "http 0.9", "two hosts", "line feeds", "two lengths", "tls"])
def test_what_is_no_request_goes_nowhere_from_a_tunnel_to_port_80(tunnel, says):
    s, o = tunnel()
    with s:
        try:
            s.sendall(says)
        except ConnectionError:
            pass
        assert read_all(s).startswith(b"HTTP/1.1 400")
    o.stop()
    assert not said(o.seen)


def test_the_host_of_a_request_is_that_of_its_tunnel_to_port_80(tunnel, request):
    """Whoever asks for an address can mean any of its names."""
    by_address = "address" in request.node.name
    s, o = tunnel()
    with s:
        s.sendall(SECOND)
        assert read_all(s).startswith(b"HTTP/1.1 200" if by_address else b"HTTP/1.1 400")
    o.stop()
    assert (SECOND[:-2] in said(o.seen)) == by_address


def test_websocket_through_a_tunnel_to_port_80(tunnel):
    def answer(request, data):
        request.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nframe")

    s, o = tunnel(answer)
    with s:
        s.sendall(b"GET /a HTTP/1.1\r\nHost: one.example\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
        assert read_until(s, b"frame").startswith(b"HTTP/1.1 101")
        s.sendall(b"late")
        s.shutdown(socket.SHUT_WR)
        assert read_all(s) == b""
    assert body(o.seen[0]) == b"late"


def test_a_server_at_port_80_that_speaks_first(proxy):
    """It is no HTTP, and the command is told, where it would wait as long as the server."""
    if os.geteuid() != 0:
        pytest.skip("needs root: a server at port 80")
    with socket.create_server(("127.77.0.80", 80)) as listener:
        p = proxy(["a127.77.0.80"])
        s, reply = p.tunnel("127.77.0.80:80")
        up, _ = listener.accept()
        up.sendall(b"SSH-2.0-x\r\n")
        assert reply.startswith(b"HTTP/1.1 200") and b"speaks first" in read_all(s)
        up.close()


def test_who_leaves_a_tunnel_to_port_80_before_its_request_is_whole(tunnel):
    for part in b"", b"GET / HTTP/1.1\r\nHost: ":
        s, o = tunnel()
        with s:
            s.sendall(part)
            s.shutdown(socket.SHUT_WR)
            assert read_all(s) in (b"", b"<reset>")
        o.stop()
        assert not said(o.seen)


def test_socks5(proxy, origin):
    o = origin(hold=True, answer=b"banner")
    p = proxy([f"alocalhost:{o.port}"])
    s, reply = socks(p, "LOCALHOST", o.port, methods=b"\x02\x00")
    assert reply[:2] == b"\x05\x00" and p.event()["protocol"] == "socks5_tcp"
    s.sendall(b"x")
    assert read_until(s, b"banner") == b"banner"
    s, reply = socks(p, "b.example", 443)
    assert reply[:2] == b"\x05\x02" and p.event()["reason"] == "not listed"
    s, reply = socks(p, "localhost", o.port, command=3)
    assert reply[:2] == b"\x05\x07"
    e = p.event()
    assert (e["protocol"], e["reason"]) == ("socks5_udp", "no udp")
    s, reply = socks(p, "localhost", o.port, command=2)
    assert reply[:2] == b"\x05\x07"
    s, reply = socks(p, "127.1", o.port)
    assert reply[:2] == b"\x05\x08"
    with p.connect() as s:
        s.sendall(b"\x05\x01\x02")
        assert s.recv(2) == b"\x05\xff"
    with p.connect() as s:  # SOCKS4
        s.sendall(b"\x04\x01\x00\x50\x7f\x00\x00\x01x\x00\r\n\r\n")
        assert read_all(s).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize("allowed", [True, False])
def test_the_client_is_asked(proxy, origin, allowed):
    o = origin()
    p = proxy(["a127.0.0.9", "rlocalhost"], asks=True)
    result = []
    t = threading.Thread(target=lambda: result.append(p.http(f"GET http://localhost:{o.port}/ HTTP/1.1")))
    t.start()
    ask = p.event()
    assert (ask["type"], ask["host"], ask["port"]) == ("ask", "localhost", o.port)
    assert not o.seen
    p.answer(ask, allowed)
    t.join()
    e = p.event()
    assert (e["allowed"], e["source"]) == (allowed, "client")
    assert result[0].startswith(b"HTTP/1.1 200" if allowed else b"HTTP/1.1 403")


def test_who_allows_does_not_open_private_addresses(proxy):
    p = proxy([], asks=True)
    t = threading.Thread(target=lambda: p.http("GET http://localhost/ HTTP/1.1"))
    t.start()
    p.answer(p.event(), True)
    assert p.event()["reason"] == "private"
    t.join()


def test_limited_mode_only_reads(proxy, origin):
    o = origin()
    p = proxy([f"alocalhost:{o.port}"], limited=True)
    assert p.http(f"GET http://localhost:{o.port}/ HTTP/1.1").startswith(b"HTTP/1.1 200")
    assert p.event()["allowed"]
    answer = p.http(f"POST http://localhost:{o.port}/ HTTP/1.1\nContent-Length: 1", b"x")
    assert b"blocked-by-method-policy" in answer and p.event()["reason"] == "bad method"
    s, head = p.tunnel(f"localhost:{o.port}")
    assert head.startswith(b"HTTP/1.1 403") and p.event()["reason"] == "no tunnels"
    for more in "Connection: upgrade\nUpgrade: websocket", "Transfer-Encoding: chunked":
        answer = p.http(f"GET http://localhost:{o.port}/ HTTP/1.1\n{more}")
        assert answer.startswith(b"HTTP/1.1 403") and p.event()["reason"] == "no tunnels"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: lays files over /etc/hosts")
def test_a_name_is_worth_its_address(proxy, tmp_path, origin):
    """A listed name that leads to this host, and one with a public address beside a private one."""
    o = origin()
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 evil.example two.example\n203.0.113.1 two.example\n::1 six.example\n"
                     "127.0.0.1 named.example\n")
    p = proxy(["aevil.example", "asix.example", "anamed.example", "a127.0.0.1"], files={"/etc/hosts": hosts})
    assert p.http(f"GET http://named.example:{o.port}/ HTTP/1.1").startswith(b"HTTP/1.1 200")
    assert p.event()["allowed"]
    p.open(2, ["aevil.example", "asix.example", "atwo.example"])
    for name in "evil", "six":
        assert b"not_allowed_local" in p.http(f"GET http://{name}.example:{o.port}/ HTTP/1.1")
        assert p.event()["reason"] == "private"
    answer = p.http(f"GET http://two.example:{o.port}/ HTTP/1.1")
    assert not answer.startswith(b"HTTP/1.1 200") and len(o.seen) == 1


@pytest.mark.parametrize("side,source", [("d", "list"), ("D", "operator")])
@pytest.mark.parametrize("denial", ["127.0.0.1", "127.0.0.1:*", "127.0.0.1:PORT", "::ffff:127.0.0.1"])
def test_a_name_that_leads_to_a_denied_address(proxy, origin, side, source, denial):
    """A denial of an address holds for each name that leads there, on both sides; one of another port does not."""
    o = origin()
    denial = denial.replace("PORT", str(o.port))
    p = proxy(["alocalhost:*", "Alocalhost:*", f"{side}{denial}", f"{side}[::1]"])
    for ask in f"GET http://localhost:{o.port}/ HTTP/1.1", f"CONNECT localhost:{o.port} HTTP/1.1":
        assert p.http(ask).startswith(b"HTTP/1.1 403")
        e = p.event()
        assert (e["allowed"], e["source"], e["reason"]) == (False, source, "denied") and e["rule"]
    p.open(2, ["alocalhost:*", "Alocalhost:*", f"{side}127.0.0.1:1", f"{side}[::1]"])
    assert p.http(f"GET http://localhost:{o.port}/ HTTP/1.1").startswith(b"HTTP/1.1 200") and len(o.seen) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a name server at port 53")
def test_a_name_is_resolved_once(proxy, tmp_path):
    """A server of names that says a public address first and this host afterwards finds nobody to ask twice."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.77.0.1", 53))
    asked = []

    def answer():
        while True:
            query, client = server.recvfrom(512)
            if not query:
                return
            kind = struct.unpack(">H", query[-4:-2])[0]
            asked.append(kind)
            address = bytes([127, 0, 0, 1]) if asked.count(1) > 1 else bytes([203, 0, 113, 1])
            count = 1 if kind == 1 else 0
            reply = query[:2] + b"\x81\x80" + query[4:6] + struct.pack(">HHH", count, 0, 0)
            end = query.index(b"\0", 12) + 5
            reply += query[12:end] + (b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 0, 4) + address) * count
            server.sendto(reply, client)

    threading.Thread(target=answer, daemon=True).start()
    resolv = tmp_path / "resolv.conf"
    resolv.write_text("nameserver 127.77.0.1\nsearch evil.example\n")
    p = proxy(["arebind.example"], files={"/etc/resolv.conf": resolv})
    with p.connect() as s:
        s.sendall(b"GET http://rebind.example:9/ HTTP/1.1\r\n\r\n")
        # It connects to the first address, or is told that there is no way to it; never to the second.
        assert not read_all(s).startswith(b"HTTP/1.1 200")
    assert asked.count(1) == 1
    stop = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    stop.sendto(b"", ("127.77.0.1", 53))


def test_a_host_that_does_not_answer_with_http(proxy, origin):
    p = proxy(["alocalhost"])
    for answer in b"SSH-2.0-x\r\n\r\n", b"", b"HTTP/1.1 200 OK\r\nX : a\r\n\r\n", b"HTTP/1.1 200 OK\r\n":
        o = origin(answer)
        assert p.http(f"GET http://localhost:{o.port}/ HTTP/1.1").startswith(b"HTTP/1.1 502"), answer
        assert p.event()["allowed"]
    closed = socket.create_server(("127.0.0.1", 0))
    port = closed.getsockname()[1]
    closed.close()
    answer = p.http(f"GET http://localhost:{port}/ HTTP/1.1")
    assert answer.startswith(b"HTTP/1.1 502") and b"localhost: Connection refused" in answer


def test_what_is_cut_does_not_look_whole(proxy, origin):
    o = origin(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhi")
    p = proxy(["alocalhost"])
    assert p.http(f"GET http://localhost:{o.port}/ HTTP/1.1").endswith(b"<reset>")


def test_a_cut_answer_for_a_client_that_has_ended(proxy, origin):
    """Both sides have ended when the connection is reset."""
    seen = threading.Event()

    def talk(s, data):
        while s.recv(1 << 16):
            pass
        s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhi")
        seen.set()

    p = proxy(["alocalhost"])
    for encoding in "", "Transfer-Encoding: chunked\r\n":
        o = origin(talk)
        with p.connect() as s:
            s.sendall(f"GET http://localhost:{o.port}/ HTTP/1.1\r\n{encoding}\r\n".encode())
            assert p.event()["allowed"]
            s.shutdown(socket.SHUT_WR)
            assert read_all(s).endswith(b"<reset>") and seen.is_set()
    assert p.http("GET http://c.example/ HTTP/1.1").startswith(b"HTTP/1.1 403")


@pytest.mark.parametrize("answer,end", [
    (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\nhi", b"connection: close\r\n\r\nhi"),
    (b"HTTP/1.1 204 No\r\nConnection: keep-alive\r\n\r\n", b"connection: close\r\n\r\n"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", b"2\r\nhi\r\n0\r\n\r\n"),
    (b"HTTP/1.0 200\r\n\r\nhi", b"hi"),
])
def test_answers_pass(proxy, origin, answer, end):
    o = origin(answer)
    p = proxy(["alocalhost"])
    assert p.http(f"GET http://localhost:{o.port}/ HTTP/1.1").endswith(end)


def test_websocket_passes(proxy, origin):
    def talk(s, head):
        assert b"Upgrade: websocket" in head and b"connection: upgrade" in head
        s.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nfirst")
        s.sendall(s.recv(100).upper())

    o = origin(talk)
    p = proxy(["alocalhost"])
    s = p.connect()
    s.sendall(f"GET http://localhost:{o.port}/ HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n".encode())
    assert read_until(s, b"first").startswith(b"HTTP/1.1 101 ")
    s.sendall(b"echo")
    assert read_all(s) == b"ECHO"


def test_large_bodies_both_ways(proxy, origin):
    size = 20 << 20

    def talk(s, data):
        left = size - len(body(data))
        while left > 0:
            left -= len(s.recv(1 << 16))
        s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        s.sendall(bytes(size))

    o = origin(talk)
    p = proxy(["alocalhost"])
    answer = p.http(f"POST http://localhost:{o.port}/ HTTP/1.1\nContent-Length: {size}", bytes(size))
    assert len(body(answer)) == size


def test_a_side_that_does_not_read_holds_the_other_back(proxy, origin):
    """The program keeps a limited part of it in memory."""
    started = threading.Event()

    def flood(s, data):
        s.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        s.settimeout(2)
        try:
            for _ in range(1000):
                s.sendall(bytes(1 << 18))
        except TimeoutError:
            started.set()

    o = origin(flood)
    p = proxy(["alocalhost"])
    s = p.connect()
    s.sendall(f"GET http://localhost:{o.port}/ HTTP/1.1\r\n\r\n".encode())
    assert started.wait(60), "the host was never held back"
    with open(f"/proc/{p.child.pid}/statm", encoding="ascii") as f:
        assert int(f.read().split()[1]) * 4096 < 32 << 20
    s.close()


def test_connections_are_limited(proxy, origin):
    o = origin()
    p = proxy(["alocalhost"], connections=3)
    held = [p.connect() for _ in range(3)]
    for s in held:
        s.sendall(b"G")
    answers = [p.http(f"GET http://localhost:{o.port}/ HTTP/1.1") for _ in range(5)]
    assert all(a.startswith(b"HTTP/1.1 503") and b"network-max-connections" in a for a in answers)
    assert p.event()["reason"] == "too many"
    for s in held:
        s.close()
    while not p.http(f"GET http://localhost:{o.port}/ HTTP/1.1").startswith(b"HTTP/1.1 200"):
        pass
    assert p.event()["allowed"], "too many was told more than once"


def test_bytes_are_limited(proxy, origin):
    o = origin(b"HTTP/1.1 200 OK\r\n\r\n" + bytes(100000))
    p = proxy(["alocalhost"], most_bytes=1000)
    assert p.http(f"GET http://localhost:{o.port}/ HTTP/1.1").endswith(b"<reset>")
    assert p.event()["allowed"] and p.event()["reason"] == "too much"
    assert b"network-max-bytes" in p.http(f"GET http://localhost:{o.port}/ HTTP/1.1")


def is_refused(address):
    try:
        socket.create_connection(address).close()
    except ConnectionRefusedError:
        return True
    return False


def test_a_closed_list_resets_its_connections(proxy, origin):
    o = origin(hold=True, answer=b"banner")
    p = proxy([f"alocalhost:{o.port}"])
    first = p.address
    s, _ = p.tunnel(f"localhost:{o.port}")
    s.sendall(b"x")
    read_until(s, b"banner")
    p.open(2, [f"alocalhost:{o.port}"])
    p.close_list(1)
    assert read_all(s) == b"<reset>"
    # Its connections go before its port does.
    poll(lambda: is_refused(first), what="closed port")
    assert p.tunnel(f"localhost:{o.port}")[1].startswith(b"HTTP/1.1 200")


def test_a_runner_that_does_not_read(proxy, origin):
    """What is told waits, and nobody is let in meanwhile; nothing is lost."""
    p = proxy([])
    several = []
    for _ in range(2000):
        s = socket.socket()
        s.settimeout(.5)
        s.connect(p.address)
        s.sendall(b"GET http://a.example/ HTTP/1.1\r\n\r\n")
        try:
            s.recv(10)
        except TimeoutError:
            several.append(s)
            break
        s.close()
    else:
        pytest.fail("everybody was let in")
    count = 0
    while select.select([p.runner], [], [], 1)[0]:
        assert p.event()["host"] == "a.example"
        count += 1
    assert several[0].recv(10) == b"HTTP/1.1 4"
    assert count > 10


def test_bad_messages_end_the_program(proxy):
    p = proxy([])
    p.runner.send(b"\x09")
    assert p.child.wait(20) == 1


def test_the_end_of_the_runner_is_its_end(proxy):
    p = proxy([])
    p.runner.shutdown(socket.SHUT_RDWR)
    assert p.child.wait(20) == 0


def test_it_can_be_killed(proxy, origin):
    o = origin(hold=True, answer=b"banner")
    p = proxy([f"alocalhost:{o.port}"])
    s, _ = p.tunnel(f"localhost:{o.port}")
    s.sendall(b"x")
    read_until(s, b"banner")
    p.child.send_signal(signal.SIGKILL)
    assert read_all(s) in (b"", b"<reset>")  # at once, and nothing that looks like more of the banner
    p.child.wait(20)
    with pytest.raises(ConnectionRefusedError):
        p.connect()
