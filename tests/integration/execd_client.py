# SPDX-License-Identifier: ISC
"""A client of the exec-server protocol for tests: WebSocket or stdio, raw enough
to break rules, pause reading and drop the connection. Nothing here sleeps to
synchronise: wait() wakes at every message.
"""
import base64
import json
import os
import socket
import struct
import subprocess
import threading
import time
from urllib.parse import urlsplit

# How long a test waits for what should come at once; an emulated processor takes its time.
TIMEOUT = int(os.environ.get("EXECD_PATIENCE_S", 30))


def patience(seconds):
    """Of a test that has its own: as much more as of the others."""
    return seconds if seconds == TIMEOUT else seconds * TIMEOUT / 30


def b64(data):
    return base64.b64encode(data.encode() if isinstance(data, str) else data).decode()


class Closed(Exception):
    pass


class Client:
    """What both transports share: messages by arrival, requests, processes."""

    def __init__(self):
        self.messages = []
        self.closed = None        # a dict once the connection is over
        self.changed = threading.Condition()
        self.next_id = 1
        self.session_id = None
        self.writes = 0
        self.on_message = None

    def _received(self, text):
        with self.changed:
            self.messages.append(json.loads(text))
            self.changed.notify_all()

    def _ended(self, **how):
        with self.changed:
            if self.closed is None:
                self.closed = how
            self.changed.notify_all()

    def wait(self, probe, timeout=TIMEOUT, what="a condition", even_if_closed=False):
        """The first truthy value of probe(), asked again at every message."""
        end = time.monotonic() + patience(timeout)
        with self.changed:
            while True:
                value = probe()
                if value:
                    return value
                if self.closed is not None and not even_if_closed:
                    raise Closed(f"closed ({self.closed}) while waiting for {what}")
                left = end - time.monotonic()
                if left <= 0 or not self.changed.wait(left):
                    value = probe()
                    if value:
                        return value
                    raise TimeoutError(f"no {what} within {timeout} s; last messages: "
                                       f"{str(self.messages[-3:])[:600]}")

    def wait_closed(self, timeout=TIMEOUT):
        return self.wait(lambda: self.closed, timeout, "the end", even_if_closed=True)

    def send(self, message):
        self.send_text(json.dumps(message).encode())

    def notify(self, method, params=None):
        self.send({"method": method} if params is None else {"method": method, "params": params})

    def post(self, method, params=None, id=None):
        """Sends a request without waiting. Returns its id."""
        if id is None:
            id = self.next_id
            self.next_id += 1
        message = {"id": id, "method": method}
        if params is not None:
            message["params"] = params
        self.send(message)
        return id

    def answer(self, id, timeout=TIMEOUT):
        def find():
            return next((m for m in self.messages if m.get("id") == id and "method" not in m), None)
        return self.wait(find, timeout, f"answer to {id!r}")

    def request(self, method, params=None, timeout=TIMEOUT, id=None):
        return self.answer(self.post(method, params, id), timeout)

    def call(self, method, params=None, timeout=TIMEOUT):
        m = self.request(method, params, timeout)
        assert "result" in m, f"{method}: {m}"
        return m["result"]

    def error(self, method, params=None, timeout=TIMEOUT):
        m = self.request(method, params, timeout)
        assert "error" in m, f"{method}: {str(m)[:300]}"
        return m["error"]["code"], m["error"]["message"]

    def initialize(self, **params):
        r = self.call("initialize", {"clientName": "test", **params})
        self.session_id = r["sessionId"]
        return r

    def ready(self, **params):
        self.initialize(**params)
        self.notify("initialized")
        return self

    # processes

    def start(self, id, argv, **extra):
        return self.request("process/start", start_params(id, argv, **extra))

    def sh(self, id, script, **extra):
        m = self.start(id, ["/bin/sh", "-c", script], **extra)
        assert "result" in m, m
        return m["result"]

    def run(self, id, argv, timeout=TIMEOUT, **extra):
        m = self.start(id, argv, **extra)
        assert "result" in m, m
        return self.finished(id, timeout)

    def run_sh(self, id, script, timeout=TIMEOUT, **extra):
        return self.run(id, ["/bin/sh", "-c", script], timeout, **extra)

    def write(self, id, data, write_id=None):
        self.writes += 1
        return self.call("process/write", {"processId": id, "chunk": b64(data),
                                           "writeId": write_id or f"w{self.writes}"})

    def events(self, id, method=None):
        return [m for m in self.messages if m.get("params", {}) and "method" in m
                and m["params"].get("processId") == id and (method is None or m["method"] == method)]

    def output(self, id, stream=None):
        chunks = sorted((m["params"] for m in self.events(id, "process/output")
                         if stream is None or m["params"]["stream"] == stream), key=lambda p: p["seq"])
        return b"".join(base64.b64decode(p["chunk"]) for p in chunks)

    def wait_output(self, id, needle, timeout=TIMEOUT):
        needle = needle.encode() if isinstance(needle, str) else needle
        return self.wait(lambda: needle in self.output(id) and self.output(id), timeout, f"{needle!r} from {id}")

    def exited(self, id, timeout=TIMEOUT):
        return self.wait(lambda: self.events(id, "process/exited"), timeout, f"exit of {id}")[0]["params"]

    def finished(self, id, timeout=TIMEOUT):
        self.wait(lambda: self.events(id, "process/closed"), timeout, f"close of {id}")
        return Finished(self, id)

    def terminate(self, id):
        return self.call("process/terminate", {"processId": id})["running"]


class Finished:
    def __init__(self, client, id):
        self.events = [m for m in client.events(id) if m["method"].startswith("process/")]
        self.seqs = [m["params"]["seq"] for m in self.events]
        self.code = next(m["params"]["exitCode"] for m in self.events if m["method"] == "process/exited")
        self.stdout = client.output(id, "stdout").decode("latin1")
        self.stderr = client.output(id, "stderr").decode("latin1")
        self.pty = client.output(id, "pty").decode("latin1")


def start_params(id, argv, **extra):
    return {"processId": id, "argv": argv, "cwd": "file:///tmp", "env": {"PATH": "/usr/bin:/bin"},
            "tty": False, **extra}


def dial(url, tls=None, source=None, before=b""):
    """A socket to ws://, wss:// (tls: an ssl.SSLContext) or unix:/path. `before`
    is sent before everything else."""
    if url.startswith("unix:"):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(TIMEOUT)
        s.connect(url[len("unix:"):])
    else:
        at = urlsplit(url)
        s = socket.create_connection((at.hostname, at.port), timeout=TIMEOUT,
                                     source_address=(source, 0) if source else None)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        s.sendall(before)
        if tls:
            s = tls.wrap_socket(s, server_hostname=at.hostname)
    s.settimeout(None)
    return s


class WebSocket(Client):
    answers_pings = False

    def __init__(self, url, headers="", handshake=True, tls=None, token=None, source=None, before=b"", path="/"):
        super().__init__()
        self.sock = dial(url, tls, source, before)
        if token:
            headers += f"Authorization: Bearer {token}\r\n"
        self.frames = []          # every frame: (opcode, payload)
        self.sending = threading.Lock()
        self.reader = None
        self.reading = threading.Event()
        self.reading.set()
        if handshake:
            self.sock.sendall(upgrade(headers, path))
            head = b""
            while b"\r\n\r\n" not in head:
                piece = self.sock.recv(1)
                if not piece:
                    raise Closed(head.decode("latin1"))
                head += piece
            if b" 101 " not in head.split(b"\r\n")[0]:
                raise Closed(head.decode("latin1"))
            self.reader = threading.Thread(target=self._read, daemon=True)
            self.reader.start()

    def _exactly(self, n):
        data = bytearray()
        while len(data) < n:
            self.reading.wait()
            piece = self.sock.recv(min(n - len(data), 1 << 20))
            if not piece:
                raise EOFError
            data += piece
        return bytes(data)

    def _read(self):
        code, reason, parts = 1006, "", []
        try:
            while True:
                op, size = self._exactly(2)
                assert op & 0x70 == 0 and size < 128, "reserved bits or a mask from the server"
                if size == 126:
                    size, = struct.unpack(">H", self._exactly(2))
                elif size == 127:
                    size, = struct.unpack(">Q", self._exactly(8))
                data = self._exactly(size)
                self.frames.append((op & 15, data))
                if op & 15 == 1 or (op & 15 == 0 and parts):
                    assert not parts or op & 15 == 0, "a message inside another one"
                    parts.append(data)
                    if op & 0x80:
                        data, parts = b"".join(parts), []
                        self._received(data)
                elif op & 15 == 8:
                    code = struct.unpack(">H", data[:2])[0] if len(data) >= 2 else 1005
                    reason = data[2:].decode()
                elif op & 15 == 9 and self.answers_pings:
                    self.frame(10, data)
                with self.changed:
                    self.changed.notify_all()
        except (EOFError, OSError):
            pass
        self._ended(code=code, reason=reason)

    def send_text(self, data):
        self.frame(1, data)

    def frame(self, opcode, data=b"", fin=True, mask=True, rsv=0):
        with self.sending:
            self.sock.sendall(frame(opcode, data, fin, mask, rsv))

    def close(self):
        """A closing handshake; returns the code the server answered."""
        if self.closed is None:
            try:
                self.frame(8, struct.pack(">H", 1000))
            except OSError:
                pass
        self.wait_closed()
        self.sock.close()
        return self.closed["code"]

    def drop(self):
        """Gone without a word."""
        if self.sock.fileno() < 0:
            return
        self.reading.set()
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        # TLS reads from the descriptor's number, which may soon be another's.
        if self.reader:
            self.reader.join(TIMEOUT)
        self.sock.close()

    def pause(self):
        self.reading.clear()

    def resume(self):
        self.reading.set()


def frame(opcode, data=b"", fin=True, mask=True, rsv=0):
    n = len(data)
    head = bytes([(0x80 if fin else 0) | rsv << 4 | opcode])
    bit = 0x80 if mask else 0
    if n < 126:
        head += bytes([bit | n])
    elif n < 65536:
        head += bytes([bit | 126]) + struct.pack(">H", n)
    else:
        head += bytes([bit | 127]) + struct.pack(">Q", n)
    if not mask:
        return head + data
    key = os.urandom(4)
    whole = (key * (n // 4 + 1))[:n]
    body = (int.from_bytes(data, "little") ^ int.from_bytes(whole, "little")).to_bytes(n, "little")
    return head + key + body


def upgrade(headers="", path="/", method="GET", http="HTTP/1.1"):
    return (f"{method} {path} {http}\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{headers}\r\n").encode()


class Stdio(Client):
    def __init__(self, argv, **kwargs):
        super().__init__()
        self.child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, **kwargs)
        self.stderr = b""
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._read_errors, daemon=True).start()

    def _read(self):
        for line in self.child.stdout:
            self._received(line)
        self._ended(code=self.child.wait())

    def _read_errors(self):
        self.stderr = self.child.stderr.read()

    def send_text(self, data):
        self.send_bytes(data + b"\n")

    def send_bytes(self, data):
        self.child.stdin.write(data)
        self.child.stdin.flush()

    def close(self):
        """End of input; returns the exit code."""
        try:
            self.child.stdin.close()
        except OSError:
            pass
        return self.wait_closed()["code"]
