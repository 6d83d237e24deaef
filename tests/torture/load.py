# SPDX-License-Identifier: ISC
"""Sessions under load, each knowing what it must have heard: output by number,
echoes of its input, a terminal, files. Attached, dropped and resumed at any
moment; then nothing may be lost, nothing come twice."""
import base64
import hashlib
import random
import threading
import time

from torture import poll
from execd_client import Closed, WebSocket, b64

LINES = 400
SCRIPT = ("i=0; while [ $i -lt {} ]; do i=$((i+1)); echo line $i of {}; "
          "[ $((i % 20)) -ne 0 ] || sleep 0.05; done; exit 7")


class Gone(Exception):
    """The session ended, and its client was told why."""


class Worker:
    """One session, and a thread that is its client."""

    def __init__(self, server, number, directory, seed):
        self.server, self.number = server, number
        self.random = random.Random(seed * 1000 + number)
        self.file = directory / f"load-{number}"
        self.client = None
        self.session = None
        self.stopping = False
        self.error = None
        self.gone = 0           # sessions that were ended under it
        self.resumes = self.rounds = 0
        self.slowest = 0        # resume after a lost connection, in seconds
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    # what is expected, per process: every event by its number

    def take(self):
        """Notes what this connection was told since."""
        c = self.client
        with c.changed:
            new, self.at = c.messages[self.at:], len(c.messages)
        for m in new:
            p = m.get("params") or {}
            if "seq" in p:
                self.note(p["processId"], p["seq"], base64.b64decode(p.get("chunk", "")), m["method"])
                if m["method"] == "process/exited":
                    self.code[p["processId"]] = p["exitCode"]

    def note(self, id, seq, data, method):
        event = (data, method if method != "process/output" else "")
        assert self.seen[id].setdefault(seq, event) == event, f"two different events {seq} of {id}"
        if method == "process/closed":
            self.closed.add(id)

    def connect(self):
        """Attaches, and asks for what it missed; or raises Gone."""
        began = time.monotonic()

        def attempt():
            c = None
            try:
                c = WebSocket(self.server.url, token=self.server.token)
                params = {"resumeSessionId": self.session} if self.session else {}
                m = c.request("initialize", {"clientName": "load", **params})
            except (OSError, Closed, EOFError):
                if c:
                    c.drop()
                return None
            if "result" in m:
                return c, m["result"]["sessionId"]
            c.drop()
            if "unknown session" in m["error"]["message"]:
                raise Gone
            return None

        self.client, self.session = poll(attempt, 30, "a connection")
        self.at = 0
        self.client.notify("initialized")
        self.slowest = max(self.slowest, time.monotonic() - began)

    def catch_up(self):
        for id in self.seen:
            last = 0
            while last + 1 in self.seen[id]:
                last += 1
            m = self.client.request("process/read", {"processId": id, "afterSeq": last})
            if "error" in m and id == self.starting:
                continue        # its start was what got lost
            r = m["result"]
            for chunk in r["chunks"]:
                self.note(id, chunk["seq"], base64.b64decode(chunk["chunk"]), "process/output")
            if r["exited"]:
                self.code[id] = r["exitCode"]
            if r["closed"]:
                self.closed.add(id)

    def do(self, step):
        """One step, over as many connections as it takes."""
        while True:
            try:
                if self.client is None or self.client.closed:
                    again = self.session is not None
                    if self.client:
                        self.take()
                        self.client.drop()
                    self.connect()
                    if again:
                        self.resumes += 1
                        self.catch_up()
                return step()
            except (Closed, OSError, EOFError):
                continue

    # a round of work

    def start(self, id, argv, **extra):
        def step():
            m = self.client.start(id, argv, startId=f"{self.rounds}-{id}", **extra)
            assert "result" in m, m
        self.seen[id] = {}
        self.starting = id
        self.do(step)
        self.starting = None

    def finish(self, id):
        def step():
            self.take()
            if id in self.closed:
                return
            self.client.wait(lambda: len(self.client.messages) > self.at or self.client.closed, 60,
                             f"the end of {id}")
            self.take()
        while id not in self.closed:
            self.do(step)
        seqs = sorted(self.seen[id])
        assert seqs[0] == 1 and seqs[-1] - len(seqs) in (0, 1, 2), f"{id}: a gap in {seqs}"
        return b"".join(self.seen[id][s][0] for s in seqs), self.code[id]

    def round(self):
        self.seen, self.closed, self.code = {}, set(), {}
        a, b, t = (f"{x}{self.rounds}" for x in "abt")
        marker = f"{self.number}.{self.rounds}"
        self.start(a, ["/bin/sh", "-c", SCRIPT.format(LINES, marker)])
        self.start(b, ["/bin/cat"], pipeStdin=True)
        self.start(t, ["/bin/sh", "-c", f"stty -echo; echo tty {marker}; sleep 0.3; echo end"], tty=True)
        text = b""
        for i in range(20):
            piece = self.random.randbytes(self.random.randrange(1, 3000))
            text += piece
            self.do(lambda: self.client.call("process/write", {
                "processId": b, "chunk": b64(piece), "writeId": f"{self.rounds}-{i}"}))
        data = self.random.randbytes(200000)
        self.do(lambda: self.client.call("fs/writeFile", {"path": f"file://{self.file}", "dataBase64": b64(data)}))
        read = self.do(lambda: self.client.call("fs/readFile", {"path": f"file://{self.file}"}))
        assert hashlib.sha256(base64.b64decode(read["dataBase64"])).digest() == hashlib.sha256(data).digest()
        self.do(lambda: self.client.call("process/closeStdin", {"processId": b}))
        assert self.finish(a) == (b"".join(b"line %d of %s\n" % (i, marker.encode())
                                           for i in range(1, LINES + 1)), 7), f"output of {a}"
        assert self.finish(b) == (text, 0), f"echo of {b}"
        assert self.finish(t) == (f"tty {marker}\r\nend\r\n".encode(), 0), f"terminal {t}"

    def work(self):
        try:
            while not self.stopping:
                try:
                    self.round()
                except Gone:
                    self.gone += 1
                    self.session = self.client = None
                self.rounds += 1
            if self.client:
                self.client.close()
        except BaseException as e:
            self.error = e

    def stop(self):
        self.stopping = True

    def join(self):
        self.thread.join(120)
        assert not self.thread.is_alive(), f"session {self.number} hangs"
        if self.error:
            raise AssertionError(f"session {self.number}: {self.error!r}") from self.error


class Load:
    worker = Worker

    def __init__(self, server, sessions, directory, seed):
        self.workers = [self.worker(server, i, directory, seed) for i in range(sessions)]
        poll(lambda: all(w.session for w in self.workers), 60, "all sessions")

    def check(self):
        for w in self.workers:
            if w.error:
                w.join()

    def sum(self, what):
        return sum(getattr(w, what) for w in self.workers)

    def slowest(self):
        return max(w.slowest for w in self.workers)

    def end(self):
        for w in self.workers:
            w.stop()
        for w in self.workers:
            w.join()
