#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""Clients that say anything, in pieces of any size, over ws and wss, and reset
their connections at any moment, while pings and deadlines are as short as they
can be. The front-end lives, and serves.
"""
import json
import pathlib
import random
import socket
import struct
import sys
import tempfile
import threading
import time

from torture import Clock, alone, arguments, modes, test_user
from execd_client import frame, start_params, upgrade
from kills import TOKEN, Server
from test_ends import tcp

CLIENTS = 16
LIMITS = """[limits]
ping-interval = 5ms
pong-deadline = 300ms
detached-ttl = 50ms
pre-auth-deadline = 1s
max-message-bytes = 1M
"""


def request(id, method, params):
    return frame(1, json.dumps({"id": id, "method": method, "params": params}).encode())


def start(id, argv, **extra):
    return request(id, "process/start", start_params(f"x{id}", argv, **extra))


HEAD = upgrade(f"Authorization: Bearer {TOKEN}\r\n") + request(0, "initialize", {"clientName": "x"})
WORDS = [frame(1, b'{"method":"initialized"}'), start(1, ["/bin/cat", "/dev/zero"]), start(2, ["/bin/echo"], tty=True),
         start(3, ["/bin/sh", "-c", "yes & yes >&2"]), frame(9, b"p"), frame(10), frame(8), frame(8, b"\x03\xe8"),
         frame(1, b"{}"), frame(1, b"[" * 100000), frame(1, b'"', fin=False), frame(0, b"x" * 70000, fin=False),
         frame(2, b"\xff" * 100), request(4, "fs/readFile", {"path": "file:///bin/sh"}) * 20]


class Chaos:
    def __init__(self, server, context, seconds, seed, over=lambda: False):
        self.over = over
        self.server, self.context = server, context
        self.end = time.monotonic() + seconds
        self.connections = 0
        self.lock = threading.Lock()
        threads = [threading.Thread(target=self.work, args=(random.Random(f"{seed} {i}"),)) for i in range(CLIENTS)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    def work(self, chance):
        while time.monotonic() < self.end and not self.over():
            sock = tcp(chance.choice(self.server.urls))
            try:
                if f":{sock.getpeername()[1]}" in self.server.urls[1] and chance.random() < 0.9:
                    sock = self.context.wrap_socket(sock, server_hostname="127.0.0.1")
                self.talk(sock, chance)
            except OSError:
                pass
            # A handshake that failed has closed it.
            if chance.random() < 0.6 and sock.fileno() >= 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.close()
            with self.lock:
                self.connections += 1

    def talk(self, sock, chance):
        sock.settimeout(0.3)
        data = HEAD + b"".join(chance.choices(WORDS, k=chance.randrange(7))) + chance.randbytes(chance.choice((0, 20)))
        if chance.random() < 0.3:
            data = data[:chance.randrange(len(data))]
        while data:
            n = chance.choice((1, 7, 100, 5000, 1 << 20))
            sock.sendall(data[:n])
            data = data[n:]
            if chance.random() < 0.1:
                sock.recv(chance.choice((1, 1000, 1 << 18)))
        for _ in range(chance.randrange(4)):
            sock.recv(1 << 16)


def chaos(mode, user, seconds, seed):
    """Returns a line of figures."""
    clock = Clock()
    with tempfile.TemporaryDirectory(prefix="execd-chaos-") as d:
        directory = pathlib.Path(d)
        directory.chmod(0o777)
        server = Server(mode, user, directory, LIMITS)
        s = server.s
        frontend = s.frontend()
        count = Chaos(s, server.authority.client(), seconds, seed).connections
        assert s.frontend() == frontend, s.log[-2000:]
        c = s.connect(token=TOKEN).ready()
        assert c.run("p", ["/bin/echo", "fine"]).stdout == "fine\n"
        s.stop()
    return f"{mode}: {count} connections; {clock}"


def main():
    alone()
    a = arguments(__doc__.splitlines()[0])
    for mode in modes():
        print(chaos(mode, test_user(), max(300 * a.scale, 3), a.seed), flush=True)


if __name__ == "__main__":
    sys.exit(main())
