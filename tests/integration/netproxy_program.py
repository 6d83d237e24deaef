# SPDX-License-Identifier: ISC
"""execd-netproxy by itself: a test plays its runner, its commands and the hosts they ask for."""
import ctypes
import os
import select
import signal
import socket
import socketserver
import struct
import subprocess
import threading

import pytest
from conftest import BUILD, sanitizer_said

PROGRAM = BUILD / "runner/netproxy/execd-netproxy"
PROTOCOLS = ("http", "https_connect", "socks5_tcp", "socks5_udp", "direct_tcp", "dns")
SOURCES = ("list", "client", "mode", "operator", "limit")
REASONS = ("listed", "denied", "not listed", "port closed", "private", "bad method", "no tunnels", "other name",
           "no udp", "too many", "too much", "bad list", "too many names", "not started", "own port")


def text(data, at):
    n, = struct.unpack_from("<I", data, at)
    return data[at + 4:at + 4 + n].decode(), at + 4 + n


def target(data, at):
    protocol, port = struct.unpack_from("<BI", data, at)
    host, at = text(data, at + 5)
    return {"protocol": PROTOCOLS[protocol], "port": port, "host": host}, at


def decode(data):
    number, = struct.unpack_from("<I", data, 1)
    if data[0] == 5:
        ask, = struct.unpack_from("<I", data, 5)
        return {"type": "ask", "list": number, "ask": ask, **target(data, 9)[0]}
    if data[0] == 6:
        name, nports = struct.unpack_from("<II", data, 5)
        return {"type": "name", "list": number, "name": name, "ports": struct.unpack_from(f"<{nports}I", data, 13)}
    assert data[0] == 4, data
    where, at = target(data, 5)
    allowed, source, reason, port = struct.unpack_from("<BBBI", data, at)
    method, at = text(data, at + 7)
    rule, at = text(data, at)
    assert at == len(data)
    return {"type": "decided", "list": number, **where, "allowed": bool(allowed), "source": SOURCES[source],
            "reason": REASONS[reason], "client_port": port, "method": method, "rule": rule}


class NetProxy:
    """The program with one list; `files` are laid over the system's in a mount namespace of its own (root only)."""

    def __init__(self, rules, connections=100, most_bytes=0, asks=False, limited=False, local=False, files=None, own=()):
        self.runner, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.runner.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)

        ports = os.memfd_create("own ports")
        os.write(ports, struct.pack("=16H", *own, *[0] * (16 - len(own))))

        def before_exec():
            if files:
                lay_over(files)
            os.dup2(ports, 100)
            os.dup2(end.fileno(), 3)
            os.dup2(100, 4)

        self.child = subprocess.Popen([PROGRAM], preexec_fn=before_exec, close_fds=False, stderr=subprocess.PIPE, text=True)
        end.close()
        os.close(ports)
        self.open(1, rules, connections, most_bytes, asks, limited, local)

    def open(self, number, rules, connections=100, most_bytes=0, asks=False, limited=False, local=False, resolver=None,
             redirected=None, names=0):
        if any("localhost" in rule for rule in rules):
            socket.getaddrinfo("localhost", None)  # where nobody knows it, a test ends here, and does not wait
        listener = socket.create_server(("127.0.0.1", 0))
        self.address = listener.getsockname()
        lines = "".join(rule + "\n" for rule in rules).encode()
        at, = struct.unpack(">I", socket.inet_aton(resolver.getsockname()[0] if resolver else "0.0.0.0"))
        message = struct.pack("<BIIQBBBBIII", 1, number, connections, most_bytes, asks, limited, local, redirected is not None,
                              at, names, len(lines)) + lines
        fds = [s.fileno() for s in (listener, resolver, redirected) if s]
        socket.send_fds(self.runner, [message], fds)
        listener.close()
        return self.address

    def close_list(self, number):
        self.runner.send(struct.pack("<BI", 2, number))

    def answer(self, ask, allowed):
        self.runner.send(struct.pack("<BIIB", 3, ask["list"], ask["ask"], allowed))

    def named(self, asked, address, listeners=(), over=False, full=False):
        """The answer to a `name`; the listeners are closed here."""
        number, = struct.unpack(">I", socket.inet_aton(address))
        message = struct.pack("<BIIIBB", 7, asked["list"], asked["name"], number, over, full)
        socket.send_fds(self.runner, [message], [s.fileno() for s in listeners])
        for s in listeners:
            s.close()

    def event(self, timeout=20):
        ready, _, _ = select.select([self.runner], [], [], timeout)
        assert ready, "execd-netproxy tells nothing"
        data = self.runner.recv(1 << 16)
        assert data, f"execd-netproxy ended: {self.child.stderr.read()}"
        return decode(data)

    def connect(self):
        s = socket.create_connection(self.address, timeout=20)
        return s

    def http(self, head, body=b""):
        """One request; returns the whole answer."""
        with self.connect() as s:
            s.sendall(head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body)
            return read_all(s)

    def tunnel(self, where):
        s = self.connect()
        s.sendall(f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n\r\n".encode())
        head = read_until(s, b"\r\n\r\n")
        return s, head

    def stop(self):
        """It ends by itself, or because a test has killed it."""
        self.runner.close()
        code, said = self.child.wait(20), self.child.stderr.read()
        self.child.stderr.close()
        assert code >= 0 or code == -signal.SIGKILL, (code, said)
        assert not sanitizer_said(said), said


def lay_over(files):
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.unshare(0x20000) == 0
    assert libc.mount(b"none", b"/", None, 0x4000 | 0x40000, None) == 0  # MS_REC | MS_PRIVATE
    for path, source in files.items():
        assert libc.mount(os.fsencode(source), os.fsencode(path), None, 0x1000, None) == 0  # MS_BIND


def read_all(s):
    data = b""
    while True:
        try:
            more = s.recv(1 << 16)
        except ConnectionResetError:
            return data + b"<reset>"
        if not more:
            return data
        data += more


def read_until(s, end):
    data = b""
    while not data.endswith(end):
        more = s.recv(1)
        if not more:
            return data
        data += more
    return data


class Origin(socketserver.ThreadingTCPServer):
    """A host of the world on loopback: keeps what it reads of each connection, and answers with `answer`."""
    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, answer=b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nKeep-Alive: x\r\n\r\nhi", hold=False, address="127.0.0.1", port=0):
        self.answer, self.hold, self.seen = answer, hold, []
        super().__init__((address, port), None)
        self.port = self.server_address[1]
        threading.Thread(target=self.serve_forever, args=(.02,), daemon=True).start()

    def finish_request(self, request, client_address):
        data = request.recv(1 << 16)
        self.seen.append(data)
        if callable(self.answer):
            self.answer(request, data)
        else:
            request.sendall(self.answer)
        while self.hold and (more := request.recv(1 << 16)):
            self.seen[-1] += more

    def handle_error(self, request, client_address):
        pass

    def stop(self):
        self.shutdown()
        self.server_close()


@pytest.fixture
def origin():
    """Starts hosts of the world: origin(answer)."""
    started = []

    def start(*args, **options):
        started.append(Origin(*args, **options))
        return started[-1]

    yield start
    for o in started:
        o.stop()
