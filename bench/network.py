# SPDX-License-Identifier: ISC
"""What a list of hosts costs: a command that reads from a host on loopback through its proxy, beside the same program that
reads without one, and starts of commands with and without a network of their own."""
import base64
import json
import socket
import statistics
import struct
import subprocess
import threading
import time
from urllib.parse import urlsplit

import servers

MB = 1e6
PIECE = bytes(1 << 20)

# Prints the seconds to the first byte of each small request, and those of a large one after its first byte.
READER = r'''
import json, socket, sys, time
proxy, target, small, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
if proxy == "env":
    import os
    proxy = os.environ["http_proxy"].split("//")[1]
room = bytearray(1 << 20)
def read(n):
    begin = time.monotonic()
    host, port = proxy.rsplit(":", 1)
    s = socket.create_connection((host, int(port)))
    s.sendall(b"GET http://%s/%d HTTP/1.1\r\nHost: %s\r\n\r\n" % (target.encode(), n, target.encode()))
    head = s.recv(4096)
    first = time.monotonic()
    while b"\r\n\r\n" not in head:
        head += s.recv(4096)
    left = n - len(head.split(b"\r\n\r\n", 1)[1])
    while left > 0:
        more = s.recv_into(room)
        assert more, head
        left -= more
    return first - begin, time.monotonic() - first
firsts = [read(1)[0] for _ in range(small)]
print(json.dumps({"first": sorted(firsts)[small // 2], "seconds": read(size)[1]}))
'''


class Origin(threading.Thread):
    """A host on loopback: GET /N gets N bytes. It is the same for both sides."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.at = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.start()

    def run(self):
        while True:
            try:
                s, _ = self.listener.accept()
            except OSError:
                return
            with s:
                try:
                    self.answer(s)
                except OSError:
                    pass

    @staticmethod
    def answer(s):
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head = s.recv(1 << 16)
        left = int(head.split()[1].rsplit(b"/", 1)[1])
        s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % left)
        while left > 0:
            left -= s.send(PIECE[:left])

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Client:
    """The smallest client that starts commands and sees their end."""

    def __init__(self, url):
        at = urlsplit(url)
        self.s = socket.create_connection((at.hostname, at.port), 60)
        self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.s.sendall((f"GET / HTTP/1.1\r\nHost: {at.netloc}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n").encode())
        self.f = self.s.makefile("rb")
        while self.f.readline().strip():
            pass
        self.last = 0
        self.call("initialize", {"clientName": "bench"})
        self.send({"method": "initialized"})

    def send(self, message):
        text = json.dumps(message).encode()
        head = struct.pack(">BBH", 0x81, 0xfe, len(text)) if len(text) > 125 else bytes([0x81, 0x80 | len(text)])
        self.s.sendall(head + bytes(4) + text)

    def message(self):
        text = b""
        while True:
            head = self.f.read(2)
            if len(head) < 2:
                raise servers.LoadFailed("the server dropped the connection")
            n = head[1] & 127
            n = n if n < 126 else int.from_bytes(self.f.read(2 if n == 126 else 8), "big")
            data = self.f.read(n)
            if head[0] & 15 > 2:
                continue
            text += data
            if head[0] & 128:
                return json.loads(text)

    def call(self, method, params):
        self.last += 1
        self.send({"id": self.last, "method": method, "params": params})
        while (m := self.message()).get("id") != self.last or "method" in m:
            pass
        if "error" in m:
            raise servers.LoadFailed(f"{method}: {m['error']}")
        return m["result"]

    def run(self, id, argv, **more):
        """What the command wrote on standard output."""
        self.call("process/start", {"processId": id, "argv": argv, "cwd": "file:///tmp", "env": {"PATH": "/usr/bin:/bin"},
                                    "tty": False, **more})
        out, code = b"", None
        while True:
            m = self.message()
            p = m.get("params", {})
            if p.get("processId") != id:
                continue
            if m["method"] == "process/output":
                out += base64.b64decode(p["chunk"])
            elif m["method"] == "process/exited":
                code = p["exitCode"]
            elif m["method"] == "process/closed":
                if code != 0:
                    raise servers.LoadFailed(f"the command ended with {code}: {out[-500:]}")
                return out

    def close(self):
        self.s.close()


def policy(network):
    return {"sandbox": {"permissions": {"type": "managed", "network": network, "file_system": {
        "type": "restricted", "entries": [{"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"}]}},
        "windowsSandboxLevel": "disabled"}}


def listed(*hosts):
    """A list as the Codex client sends it, which both sides take."""
    return {**policy("enabled"), "enforceManagedNetwork": True, "networkProxy": {
        "proxy": {"enabled": True, "enableSocks5": True, "enableSocks5Udp": True, "allowUpstreamProxy": True,
                  "dangerouslyAllowAllUnixSockets": False, "mode": "full", "domains": dict.fromkeys(hosts, "allow"),
                  "unixSockets": None, "allowLocalBinding": False},
        "auditMetadata": {}, "environmentId": None, "executionId": None}}


def stream(bench, start, quick):
    """Through the proxy, and the same reader without one right before."""
    small, size = (20, 64 << 20) if quick else (200, 512 << 20)
    argv = ["/usr/bin/python3", "-c", READER]
    server, origin = start(bench), Origin()
    try:
        direct = json.loads(subprocess.run(bench.as_user([*argv, origin.at, origin.at, str(small), str(size)]),
                                           stdout=subprocess.PIPE, check=True).stdout)
        client = Client(server.url)
        proxied = json.loads(client.run("p", [*argv, "env", origin.at, str(small), str(size)], **listed("127.0.0.1")))
        client.close()
    finally:
        origin.stop()
        server.stop()
    return {"rate": size / MB / proxied["seconds"], "share": direct["seconds"] / proxied["seconds"],
            "first": (proxied["first"] - direct["first"]) * 1e3}


def starts(bench, start, quick):
    """Medians of starts one after the other, in turn: the network of the host, none, and a list."""
    kinds = {"host": policy("enabled"), "none": policy("restricted"), "list": listed("a.example")}
    took = {name: [] for name in kinds}
    server = start(bench)
    try:
        client = Client(server.url)
        for i in range(3 + (5 if quick else 40)):
            for name, more in kinds.items():
                begin = time.monotonic()
                client.run(f"{name}{i}", ["/bin/true"], **more)
                if i >= 3:
                    took[name].append(time.monotonic() - begin)
        client.close()
    finally:
        server.stop()
    p50 = {name: statistics.median(values) for name, values in took.items()}
    return {"list": p50["list"] * 1e6, "loopback": p50["none"] / p50["host"], "listed": p50["list"] / p50["host"]}
