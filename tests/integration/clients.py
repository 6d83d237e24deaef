# SPDX-License-Identifier: ISC
"""What the tests of the clients for Python and for Node have in common: commands, a server that lies, a web server."""
import base64
import contextlib
import hashlib
import json
import os
import random
import re
import signal
import socket
import threading

import pytest
from execctl import Proxy

# Writes numbered lines to both streams, waits at each hundred for a file, and ends with 5.
LINES = ("i=0; while [ $i -lt {n} ]; do echo line $i; echo e$i >&2; i=$((i+1)); "
         "[ $((i % 100)) != 0 ] || until [ -e {d}/$i ]; do sleep 0.05; done; done; exit 5")


@pytest.fixture(autouse=True)
def own_environment(monkeypatch, directory):
    """Nothing of the one who runs the tests."""
    for name in ("EXECD_URL", "CODEX_EXEC_SERVER_URL", "EXECD_TOKEN", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("EXECD_ENVIRONMENTS", str(directory / "environments.conf"))


@pytest.fixture
def proxy(server):
    p = Proxy(server.url)
    yield p
    p.close()


@pytest.fixture
def web():
    """Answers every request with 300 000 bytes, or with what was sent."""
    import http.server

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = self.rfile.read(int(self.headers.get("content-length", 0))) or b"x" * 300_000
            self.send_response(418)
            self.send_header("x-name", self.headers.get("x-name", "none"))
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, *args):
            pass

    s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=s.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{s.server_port}/"
    s.shutdown()
    s.server_close()


def write(path, text, mode=0o600):
    path.write_text(text)
    path.chmod(mode)
    return path


# What is refused, by the same sentence as execctl's: the file of environments, its mode, the variables, the arguments.
REFUSED = [
    ("nonsense\n", 0o600, {}, {}), ("[a]\nurl = ws://x\nkey = 3\n", 0o600, {}, {}), ("[a]\nca = /x\n", 0o600, {}, {}),
    ("url = ws://x\n", 0o600, {}, {}), ("[a]\nurl = ws://x\nconnect-timeout = 3 s\n", 0o600, {}, {}),
    ("[a]\nurl = ws://x\nconnect-timeout = 0ms\n", 0o600, {}, {}),
    ("default = a\n[a]\nurl = ws://x\n", 0o666, {}, {}), ("[a]\nurl = ws://x\n", 0o600, {}, {"environment": "b"}),
    ("", 0o600, {}, {}), ("", 0o600, {"EXECD_URL": "None"}, {}), ("", 0o600, {"CODEX_EXEC_SERVER_URL": "none"}, {}),
    ("default = a\n[a]\nurl = ws://127.0.0.1:1\ntoken-file = DIR/open\n", 0o600, {}, {}),
    ("default = a\n[a]\nurl = ws://127.0.0.1:1\ntoken-file = DIR/empty\n", 0o600, {}, {}),
    ("default = a\n[a]\nurl = ws://127.0.0.1:1\ntoken-file = DIR/long\n", 0o600, {}, {}),
    ("default = a\n[a]\nurl = ws://127.0.0.1:1\ntoken-file = DIR/missing\n", 0o600, {}, {}),
    ("", 0o600, {"EXECD_TOKEN": "a b"}, {"url": "ws://127.0.0.1:1"}),
    *(("", 0o600, {}, {"url": url}) for url in (
        "http://x", "x", "ws://", "ws://a:0", "ws://a:b", "ws://a:65536", "ws://u@a", "ws://a#b", "unix:", "stdio: ",
        "ws://a/" + "x" * 4100))]


def make_tree(top):
    (top / "a/b c").mkdir(parents=True)
    (top / "a/big").write_bytes(random.Random(2).randbytes(3 << 20))
    (top / "a/b c/empty").touch()
    (top / "a/b c/run").write_text("#!/bin/sh\n")
    (top / "a/b c/run").chmod(0o755)
    (top / "a/link").symlink_to("b c/run")
    (top / "a/dangling").symlink_to("nowhere")


def tree(top):
    return {str(p.relative_to(top)): os.readlink(p) if p.is_symlink() else p.is_dir() or (p.read_bytes(), p.stat().st_mode & 0o777)
            for p in top.rglob("*")}


# Says its port, and answers each connection with its own bytes once it has all of them.
ECHO = ("import socket,threading\ns=socket.create_server(('127.0.0.1',0)); print(s.getsockname()[1],flush=True)\n"
        "def serve(c):\n  d=b''\n  while m:=c.recv(65536): d+=m\n  c.sendall(d); c.close()\n"
        "while True: threading.Thread(target=serve,args=(s.accept()[0],)).start()")


def expected(n):
    return "".join(f"line {i}\n" for i in range(n)).encode(), "".join(f"e{i}\n" for i in range(n)).encode()


def cut_somewhere(rng, proxy, server, limit, stop):
    """At random moments: in the middle of a message, or by the end of the front-end."""
    while not stop.wait(rng.uniform(0.01, 0.12)) and limit > 0:
        limit -= 1
        if server is not None and rng.random() < 0.3:
            with contextlib.suppress(ProcessLookupError):
                os.kill(server.frontend(), signal.SIGKILL)
        elif rng.random() < 0.5:
            proxy.cut_at = [proxy.up + proxy.down + rng.randrange(1, 60000)]
        else:
            proxy.cut()


class Liar:
    """A server of the test's own: it answers initialize, and then does what `lie` does with each request."""

    def __init__(self, lie, capabilities=()):
        self.lie, self.capabilities = lie, capabilities
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"ws://127.0.0.1:{self.listener.getsockname()[1]}"
        self.connections = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                c, _ = self.listener.accept()
                self.connections.append(c)
                threading.Thread(target=self._serve, args=(c,), daemon=True).start()

    def _serve(self, c):
        with contextlib.suppress(OSError, ValueError):
            f = c.makefile("rb")
            head = b"".join(iter(f.readline, b"\r\n")).decode()
            key = re.search(r"(?i)sec-websocket-key: (\S+)", head)[1]
            accept = base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
            c.sendall(f"HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
                      .encode())
            while message := self._receive(f):
                m = json.loads(message)
                if m["method"] == "initialize":
                    self.send(c, id=m["id"], result={"sessionId": "s", "environmentInfo": {
                        "userHomeDir": "file:///", "capabilities": {n: True for n in self.capabilities}}})
                elif "id" in m:
                    self.lie(self, c, m)

    @staticmethod
    def _receive(f):
        head = f.read(2)
        if len(head) < 2:
            return b""
        size = head[1] & 127
        size = int.from_bytes(f.read({126: 2, 127: 8}.get(size, 0)), "big") or size
        mask, data = f.read(4), f.read(size)
        return bytes(b ^ mask[i % 4] for i, b in enumerate(data)) if head[0] & 15 == 1 else Liar._receive(f)

    @staticmethod
    def frame(data, first=0x81):
        size = bytes([len(data)]) if len(data) < 126 else b"\x7e" + len(data).to_bytes(2, "big") if len(data) < 65536 \
            else b"\x7f" + len(data).to_bytes(8, "big")
        return bytes([first]) + size + data

    def send(self, c, **message):
        c.sendall(self.frame(json.dumps(message).encode()))

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for c in self.connections:
            with contextlib.suppress(OSError):
                c.shutdown(socket.SHUT_RDWR)
            c.close()


def start_and(then):
    """Answers a start as it should be, and then lies."""
    def lie(s, c, m):
        if m["method"] == "process/start":
            s.send(c, id=m["id"], result={"processId": m["params"]["processId"], "sandboxType": "none"})
            then(s, c, m["params"]["processId"])
        elif m["method"] != "process/read":
            s.send(c, id=m["id"], result={})
    return lie


def out(s, c, p, seq, **more):
    s.send(c, method="process/output", params={"processId": p, "seq": seq, "stream": "stdout", "chunk": "eA==", **more})


def read_answers(**result):
    def lie(s, c, m):
        if m["method"] == "process/read":
            s.send(c, id=m["id"], result={"chunks": [], "nextSeq": 1, "exited": False, "closed": False, **result})
        else:
            start_and(lambda s, c, p: None)(s, c, m)
    return lie


LIES = {
    "another id": lambda s, c, m: s.send(c, id=m["id"] + 1000, result={}),
    "an id of another kind": lambda s, c, m: s.send(c, id=str(m["id"]), result={}),
    "an answer twice": start_and(lambda s, c, p: [s.send(c, id=1, result={}) for _ in range(2)]),
    "neither result nor error": lambda s, c, m: s.send(c, id=m["id"]),
    "both": lambda s, c, m: s.send(c, id=m["id"], result={}, error={"code": 1, "message": "x"}),
    "an error without text": lambda s, c, m: s.send(c, id=m["id"], error={"code": 1}),
    "a result that is a list": lambda s, c, m: s.send(c, id=m["id"], result=[]),
    "output of an unknown process": start_and(lambda s, c, p: out(s, c, "other", 1)),
    "output of a process to come": start_and(lambda s, c, p: out(s, c, p.split("-")[0] + "-99999", 1)),
    "changes of an unknown watch": start_and(lambda s, c, p: s.send(c, method="fs/changed", params={
        "watchId": 99999, "changes": [], "overflow": False, "ended": False})),
    "a stream of nobody": start_and(lambda s, c, p: s.send(c, method="http/request/bodyDelta", params={
        "requestId": "x", "seq": 1, "deltaBase64": "", "done": True, "error": None})),
    "no base64": start_and(lambda s, c, p: out(s, c, p, 1, chunk="!")),
    "no stream": start_and(lambda s, c, p: out(s, c, p, 1, stream="x")),
    "a number that is none": start_and(lambda s, c, p: out(s, c, p, "1")),
    "closed before exited": start_and(lambda s, c, p: s.send(c, method="process/closed", params={"processId": p, "seq": 1})),
    "no JSON": lambda s, c, m: c.sendall(s.frame(b"{")),
    "a list": lambda s, c, m: c.sendall(s.frame(b"[1]")),
    "deep JSON": lambda s, c, m: c.sendall(s.frame(b"[" * 1_000_000)),
    "an endless number": lambda s, c, m: c.sendall(s.frame(b'{"id":' + b"1" * 100_000 + b"}")),
    "no UTF-8": lambda s, c, m: c.sendall(s.frame(b'{"id":"\xff"}')),
    "a masked frame": lambda s, c, m: c.sendall(b"\x81\x82\0\0\0\0{}"),
    "a reserved bit": lambda s, c, m: c.sendall(s.frame(b"{}", 0xc1)),
    "a huge frame": lambda s, c, m: c.sendall(b"\x81\x7f" + (1 << 40).to_bytes(8, "big")),
    "endless fragments": lambda s, c, m: [c.sendall(s.frame(b"x", 1))] + [c.sendall(s.frame(b"", 0) * 1000) for _ in range(100)],
    "fragments without an end": lambda s, c, m: [c.sendall(s.frame(b"x", 1))] + [
        c.sendall(s.frame(bytes(1 << 20), 0)) for _ in range(65)],
    "nextSeq of nothing": (read_answers(nextSeq="x"), "asked"),
    "chunks out of order": (read_answers(nextSeq=9, chunks=[{"seq": n, "stream": "stdout", "chunk": "eA=="} for n in (3, 2)]),
                            "asked"),
    "chunks beyond nextSeq": (read_answers(nextSeq=2, chunks=[{"seq": 3, "stream": "stdout", "chunk": "eA=="}]), "asked"),
    "no news for ever": (read_answers(), "asked"),
    "exited without a code": (read_answers(nextSeq=2, exited=True), "asked"),
}


def ends(s, c, p, seq, code=0):
    s.send(c, method="process/exited", params={"processId": p, "seq": seq, "exitCode": code, "sandboxDenied": False})
    s.send(c, method="process/closed", params={"processId": p, "seq": seq + 1})


META = {"isDirectory": False, "isFile": True, "isSymlink": False, "size": 1, "createdAtMs": 0, "modifiedAtMs": 0}


def answers(**results):
    """A server whose answers to these methods are wrong, and all others right."""
    def lie(s, c, m):
        right = {"fs/getMetadata": META, "fs/open": {"handleId": m["params"].get("handleId")}}
        s.send(c, id=m["id"], result={**right, **results}.get(m["method"], {}))
    return lie


def entry(name):
    return answers(**{"fs/readDirectory": {"entries": [{"fileName": name, "isDirectory": False, "isFile": True}]},
                      "fs/getMetadata": {**META, "isDirectory": True}})


def block(size, eof):
    return answers(**{"fs/readBlock": {"chunk": base64.b64encode(bytes(size)).decode(), "eof": eof}})


FILE_LIES = {
    "a name above": entry("../x"),
    "a name below": entry("a/b"),
    "no name": entry(""),
    "itself": entry("."),
    "a longer block": block((1 << 20) + 1, False),
    "a short block": block(10, False),
    "blocks without an end": block(1 << 20, False),
    "no block": answers(**{"fs/readBlock": {"eof": True}}),
    "no size": answers(**{"fs/getMetadata": {**META, "size": "1"}}),
    "another path": answers(**{"fs/canonicalize": {"path": "http://x"}}),
    "too long a walk": answers(**{"fs/walk": {"entries": [{"path": "file:///f", "kind": "file"}] * 3, "errors": [], "truncated": False}}),
    "a list without an end": answers(**{"process/list": {"processes": [], "next": 1}}),
    "a status that is none": answers(**{"http/request": {"status": "200", "headers": []}}),
}
