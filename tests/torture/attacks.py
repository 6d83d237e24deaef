#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""Sandboxed commands that take what the kernel counts for their user, look for ways out and stop what they can, between
clients that say anything and reloads. Nobody gets out, and honest sessions work all the time.
"""
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from torture import Clock, alone, arguments, modes, test_user
from chaos import Chaos
from conftest import sanitizer_said
from kills import TOKEN, Server

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "sandbox"))
from policies import READ_ALL, managed, uri, workspace_write  # noqa: E402

ATTACKERS, HONEST = 6, 2
FELL = re.compile(r"(front-end|broker|key process)[^\n]*(killing it|killed by signal|exited with status)[^\n]*")
# Each program has its time to answer, and on a machine that is busy with something else it may need longer.
LATE = re.compile(r"(does not (answer|begin|leave|read its control channel)|cannot be told to leave): killing it")
KILLED = re.compile(r"killed by signal 9|exited with status 1\b")
# How many times as long as by itself a little work takes.
MEASURE = """
import time
while True:
    began, used = time.monotonic(), time.thread_time()
    while time.thread_time() < used + 0.02: pass
    print((time.monotonic() - began) / 0.02, flush=True)
    time.sleep(0.5)
"""
SLOW, SLOW_S = 20, 60
LIMITS = """{bombs}
[limits]
ping-interval = 1s
pong-deadline = 60s
detached-ttl = 50ms
pre-auth-deadline = 60s
max-message-bytes = 1M
drain-timeout = 0s
"""
BOMBS = "command-tasks-max = 200\ncommand-memory-max = 512M\n"
CALLS = """
import ctypes, os, resource, select, signal, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def is_out(what):
    print("OUT:", what, flush=True)
"""
# What each tries for a second or two. Whoever got through says OUT.
ATTACKS = {
    "epoll": "fds = [os.pipe()[0] for _ in range(400)]\n"
             "while True:\n    e = select.epoll()\n    for fd in fds: e.register(fd)\n    fds.append(e.fileno()); keep = globals().setdefault('k', []); keep.append(e)\n",
    "inotify": "while libc.inotify_init1(0) >= 0: pass\ntime.sleep(1)\n",
    "watches": "fd = libc.inotify_init1(0)\nfor at, *_ in os.walk('/usr'): libc.inotify_add_watch(fd, at.encode(), 0x100)\ntime.sleep(1)\n",
    "signals": "signal.pthread_sigmask(signal.SIG_BLOCK, [40])\nwhile libc.sigqueue(os.getpid(), 40, None) == 0: pass\ntime.sleep(1)\n",
    "in flight": "import array\na, b = socket.socketpair()\nf = array.array('i', [a.fileno()] * 250).tobytes()\na.setblocking(False)\n"
                 "while True: a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, f)])\n",
    "its init": "buf = ctypes.create_string_buffer(struct.pack('QQ', 0, 0) * 8)\n"
                "for n, *args in ((302, 1, 7, buf, 0), (142, 1, buf), (141, 0, 1, 19), (251, 1, 1, 0)):\n"
                "    if libc.syscall(n, *args) >= 0: is_out(f'{n} of init')\n",
    "take descriptors": "for p in range(1, 400):\n    fd = libc.syscall(434, p, 0)\n    for n in range(8):\n"
                        "        if p != os.getpid() and fd >= 0 and libc.syscall(438, fd, n, 0) >= 0: is_out(f'descriptor {n} of {p}')\n",
    "own port": "for host in ('127.0.0.1', '0.0.0.0', '::1', '::ffff:127.0.0.1', 'localhost'):\n    for port in PORTS:\n"
                "        try: socket.create_connection((host, port), 2).close(); is_out(f'{host}:{port}')\n        except OSError: pass\n",
    "stop all": "for p in range(2, 400):\n    for s in (19, 9):\n        try:\n            if p != os.getpid(): os.kill(p, s)\n        except OSError: pass\n"
                "try: os.kill(os.getppid(), 19)\nexcept OSError: pass\n",
    "waiting calls": "s = socket.socket(socket.AF_UNIX); p = os.getcwd() + f'/s{os.getpid()}'; s.bind(p); s.listen(0)\n"
                     "for _ in range(60):\n    if os.fork() == 0:\n        signal.alarm(2)\n        while True: socket.socket(socket.AF_UNIX).connect(p)\ntime.sleep(2)\n",
    "links": "for _ in range(2000):\n    n = os.getcwd() + f'/l{os.getpid()}'\n    os.symlink('/etc/shadow', n); os.rename(n, os.getcwd() + '/x')\n"
             "    os.mkdir(n); os.rmdir(n)\n",
    "fill": "with open(os.getcwd() + f'/f{os.getpid()}', 'wb') as f:\n    for _ in range(64): f.write(bytes(1 << 20))\nos.unlink(f.name)\n",
}
BOMBED = {
    "forks": "while True:\n    try: os.fork()\n    except OSError: time.sleep(0.1)\n",
    "memory": "b = []\nwhile True: b.append(bytearray(1 << 24))\n",
}


class Machine:
    """Says how slow it is: only then may something be late."""

    def __init__(self):
        self.child = subprocess.Popen([sys.executable, "-c", MEASURE], stdout=subprocess.PIPE, text=True)
        self.slowest, self.slow_at = 0, -SLOW_S
        threading.Thread(target=self.follow, daemon=True).start()

    def follow(self):
        for line in self.child.stdout:
            self.slowest = max(self.slowest, float(line))
            if float(line) >= SLOW:
                self.slow_at = time.monotonic()

    def was_slow(self):
        return time.monotonic() - self.slow_at < SLOW_S


class Attacks:
    def __init__(self, server, place, seconds, seed, bombs):
        self.server, self.place, self.bombs = server, place, bombs
        self.end = time.monotonic() + seconds
        self.counts, self.wrong, self.reloading = {}, [], False
        self.machine, self.read, self.late = Machine(), 0, 0
        self.lock = threading.Lock()
        ports = [int(u.rpartition(":")[2]) for u in server.s.urls]
        self.head = f"{CALLS}\nPORTS = {ports}\n"
        self.ports = ports
        works = [self.attack] * ATTACKERS + [self.honest] * HONEST + [self.operate, self.read_log]
        self.threads = [threading.Thread(target=self.guarded, args=(w, random.Random(f"{seed} {i}"))) for i, w in enumerate(works)]

    def guarded(self, work, chance):
        while time.monotonic() < self.end and not self.wrong:
            began = self.frontends()
            try:
                what = work(chance)
            except Exception as e:      # noqa: BLE001: whatever an honest thread meets is the finding
                what = f"{work.__name__} {type(e).__name__}"
                # Another front-end: the connections of the one before end, and could be resumed.
                replaced = self.reloading or self.frontends() != began
                if isinstance(e, AssertionError) if work == self.operate else \
                        work == self.honest and not replaced and not self.machine.was_slow():
                    self.wrong.append(f"{work.__name__}: {e!r:.2000}")
            if what:
                self.count(what)

    def count(self, what):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + 1

    def frontends(self):
        return len(re.findall(r"front-end \d+: serving", self.server.s.log))

    def read_log(self, chance):
        """Nobody fell. Who was late where the machine was is counted."""
        time.sleep(1)
        log = self.server.s.log
        text = log[self.read:log.rfind("\n") + 1]
        self.read += len(text)
        for line in FELL.finditer(text):
            if LATE.search(line[0]) and self.machine.was_slow():
                self.late += 1
                self.count("late")
            elif self.late > 0 and KILLED.search(line[0]):
                self.late -= 1
            else:
                self.wrong.append(text[max(0, line.start() - 3000):line.end() + 1000])

    def policy(self, chance):
        return chance.choice((managed(READ_ALL), workspace_write(self.place), workspace_write(self.place, network="enabled"),
                              managed(READ_ALL, network="enabled")))

    def attack(self, chance):
        """By a sandboxed command, or by what a client asks for."""
        what = chance.choice([*ATTACKS, *(BOMBED if self.bombs else ()), "forward", "http", "ends", "end by itself"])
        c = self.server.s.connect(token=TOKEN).ready()
        try:
            if what == "forward":
                m = c.request("process/forward", {"streamId": 1, "port": chance.choice(self.ports)})
                out = "OUT: forwarded" if "result" in m else ""
            elif what == "http":
                m = c.request("http/request", {"requestId": "r", "method": "GET", "url": f"http://127.0.0.1:{self.ports[0]}/healthz"})
                out = f"OUT: {m}" if "result" in m and m["result"].get("status") else ""
            else:
                code = self.head + {**ATTACKS, **BOMBED}.get(what, "time.sleep(1)\n")
                c.start("x", ["/usr/bin/python3", "-c", code], cwd=uri(self.place), sandbox=self.policy(chance))
                if what == "ends":
                    return what     # in the middle
                time.sleep(chance.random() * 3)
                out = c.output("x").decode(errors="replace")
                c.request("process/terminate", {"processId": "x"})
            # An attack that is not carried out says nothing.
            if "OUT:" in out or "SyntaxError" in out or "NameError" in out:
                self.wrong.append(f"{what}: {out[:2000]}")
        finally:
            c.drop()
            self.server.s.clients.remove(c)
        return what

    def honest(self, chance):
        """A session of the same identity, in a sandbox and without."""
        c = self.server.s.connect(token=TOKEN).ready()
        try:
            for n in range(5):
                more = {"cwd": uri(self.place), "sandbox": workspace_write(self.place)} if chance.random() < 0.8 else {}
                assert c.run(f"h{n}", ["/bin/echo", "fine"], timeout=90, **more).stdout == "fine\n"
        finally:
            c.drop()
            self.server.s.clients.remove(c)
        return "honest"

    def operate(self, chance):
        """Requests to `execd ctl` that do not end, reloads, and a runner that stops for a while."""
        time.sleep(0.5)
        s = self.server.s
        if chance.random() < 0.5:
            half = [socket.socket(socket.AF_UNIX) for _ in range(12)]
            for sock in half:
                sock.connect(self.server.ctl)
                sock.send(b'{"command":')
            half[0].send(json.dumps("list").encode() + b"}\n")
            for sock in half:
                sock.close()
            return "half-open ctl"
        if chance.random() < 0.1:
            self.reloading = True
            said = len(s.log)
            s.child.send_signal(signal.SIGHUP)
            waited = time.monotonic()
            # The front-end of the new broker serves: whoever lost a connection by this began before.
            while not re.search(r"reload: nothing changed(?s:.*)front-end \d+: serving", s.log[said:]) and not self.wrong:
                assert time.monotonic() < waited + 120 or self.machine.was_slow(), f"no reload: {s.log[said:]}"
                time.sleep(0.1)
            self.reloading = False
            return "reload"
        runners = re.findall(r"opened .* runner (\d+)", s.log[-20000:])
        pid = int(chance.choice(runners)) if runners else 0
        try:
            if pid and pathlib.Path(f"/proc/{pid}/comm").read_text().startswith("execd-runner"):
                os.kill(pid, signal.SIGSTOP)
                time.sleep(0.3)
                os.kill(pid, signal.SIGCONT)
        except (OSError, ProcessLookupError):
            pass
        return "stopped runner"


def attacks(mode, user, seconds, seed):
    """Returns a line of figures."""
    clock = Clock()
    with tempfile.TemporaryDirectory(prefix="execd-attacks-", dir="/var/tmp") as d:
        directory = pathlib.Path(d)
        directory.chmod(0o777)
        place = directory / "place"
        place.mkdir()
        if os.geteuid() == 0:
            os.chown(place, user.pw_uid, user.pw_gid)
        bombs = mode == "root"
        server = Server(mode, user, directory, LIMITS.format(bombs=BOMBS if bombs else "") +
                        f"[control]\nctl-socket = {directory}/ctl\n")
        server.ctl = f"{directory}/ctl"
        s = server.s
        a = Attacks(server, place, seconds, seed, bombs)
        for t in a.threads:
            t.start()
        noise = Chaos(s, server.authority.client(), seconds, seed, lambda: a.wrong)
        for t in a.threads:
            t.join()
        assert not (said := sanitizer_said(s.log)), said
        a.read_log(None)
        a.machine.child.kill()
        assert not a.wrong, "\n".join(a.wrong) + s.log[-5000:]
        c = s.connect(token=TOKEN).ready()
        assert c.run("p", ["/bin/echo", "fine"]).stdout == "fine\n"
        s.stop()
    counts = ", ".join(f"{n} {what}" for what, n in sorted(a.counts.items()))
    return f"{mode}: {noise.connections} connections; {counts}; at times {a.machine.slowest:.0f} times as slow; {clock}"


def main():
    alone()
    a = arguments(__doc__.splitlines()[0])
    for mode in modes():
        print(attacks(mode, test_user(), max(1800 * a.scale, 10), a.seed), flush=True)


if __name__ == "__main__":
    sys.exit(main())
