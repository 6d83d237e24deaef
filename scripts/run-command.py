#!/usr/bin/python3
"""Runs one command through an exec-server: run-command.py ws://HOST:PORT ARGV...

The smallest useful client: WebSocket over a socket, three requests, and the
notifications until the command is closed. Exits with the command's code.
"""
import base64
import json
import os
import socket
import struct
import sys
from urllib.parse import urlsplit


class Connection:
    def __init__(self, url):
        at = urlsplit(url)
        self.sock = socket.create_connection((at.hostname, at.port))
        key = base64.b64encode(os.urandom(16)).decode()
        self.sock.sendall((
            f"GET / HTTP/1.1\r\nHost: {at.netloc}\r\nConnection: Upgrade\r\n"
            f"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Key: {key}\r\n\r\n").encode())
        self.file = self.sock.makefile("rb")
        status = self.file.readline().decode()
        if " 101 " not in status:
            sys.exit(f"run-command: {url}: {status.strip()}")
        while self.file.readline().strip():
            pass

    def send(self, message):
        data = json.dumps(message).encode()
        mask = os.urandom(4)
        size = len(data)
        head = (bytes([0x81, 0x80 | size]) if size < 126 else
                b"\x81\xfe" + struct.pack(">H", size) if size < 65536 else
                b"\x81\xff" + struct.pack(">Q", size))
        body = bytes(b ^ mask[i % 4] for i, b in enumerate(data))
        self.sock.sendall(head + mask + body)

    def receive(self):
        while True:
            op, size = self.file.read(2)
            if size == 126:
                size, = struct.unpack(">H", self.file.read(2))
            elif size == 127:
                size, = struct.unpack(">Q", self.file.read(8))
            data = self.file.read(size)
            if op & 15 == 1:
                return json.loads(data)
            if op & 15 == 8:
                sys.exit("run-command: the server closed the connection: "
                         + data[2:].decode(errors="replace"))


def main():
    c = Connection(sys.argv[1])
    c.send({"id": 1, "method": "initialize", "params": {"clientName": "run-command"}})
    c.send({"method": "initialized"})
    c.send({"id": 2, "method": "process/start", "params": {
        "processId": "1", "argv": sys.argv[2:], "cwd": "file:///",
        "env": {"PATH": "/usr/local/bin:/usr/bin:/bin"}, "tty": False}})
    code = 125
    while True:
        m = c.receive()
        if "error" in m:
            sys.exit(f"run-command: {m['error']['message']}")
        params = m.get("params", {})
        if m.get("method") == "process/output":
            out = sys.stderr if params["stream"] == "stderr" else sys.stdout
            out.buffer.write(base64.b64decode(params["chunk"]))
            out.flush()
        elif m.get("method") == "process/exited":
            code = params["exitCode"]
        elif m.get("method") == "process/closed":
            sys.exit(code)


main()
