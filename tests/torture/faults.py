#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""Faults: the n-th call of one kind fails, once, in one program, through a
short session; a run for each n. It must come to nothing worse than one error
in words: no crash, no hang, no descriptor lost, and the next session as good
as ever.
"""
import base64
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from torture import BUILD, EXECD, ROOT, Clock, Tree, TreeServer, alone, arguments, as_user, children, descriptors, poll, \
    test_user
from execd_client import Closed, WebSocket
from test_ceiling import policy

KINDS = ["alloc", "read", "write", "open", "fork", "mmap", "socket", "pipe", "epoll", "dup"]
# "+sandbox": the session has a command and a file in one, too.
PROGRAMS = ["execd", "execd-frontend", "execd-runner", "execd-runner+sandbox", "execd-files", "execd-files+sandbox", "execd-http", "execctl"]
FAULTS = BUILD / "tests/torture/libfaults.so"
CRASHES = [s for s in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)]
HANG_S = 90
FILE = b"what a file holds\n" * 1000


class Refused(Exception):
    """An error in words."""


def want(m):
    if "error" in m:
        assert m["error"]["message"], m
        raise Refused(m["error"])
    return m["result"]


def session(url, path, http, sandboxed):
    """What a client does in a moment; or Refused, or Closed."""
    c = WebSocket(url)
    try:
        c.session_id = want(c.request("initialize", {"clientName": "f"}))["sessionId"]
        c.notify("initialized")
        want(c.start("p", ["/bin/sh", "-c", "cat; echo hello"], pipeStdin=True))
        want(c.request("process/write", {"processId": "p", "chunk": "eA==", "writeId": "1"}))
        want(c.request("process/closeStdin", {"processId": "p"}))
        f = c.finished("p")
        if (f.stdout, f.code) != ("xhello\n", 0):
            raise Refused(f"{f.stdout!r} {f.code} {f.events}")
        want(c.start("t", ["/bin/echo", "tty"], tty=True))
        # EIO is how a terminal ends: a fault there cannot be told from it.
        assert c.finished("t").pty in ("tty\r\n", "")
        assert base64.b64decode(want(c.request("fs/readFile", {"path": f"file://{path}"}))["dataBase64"]) == FILE
        if sandboxed:
            view = policy(path.parent)
            want(c.start("s", ["/bin/echo", "inside"], sandbox=view))
            f = c.finished("s")
            if (f.stdout, f.code) != ("inside\n", 0):
                raise Refused(f"{f.stdout!r} {f.code} {f.events}")
            want(c.request("fs/readFile", {"path": f"file://{path}", "sandbox": view}))
        if http:
            m = c.request("http/request", {"requestId": "r", "method": "GET", "url": "http://127.0.0.1:1/"})
            assert "error" in m, m
        if c.close() not in (1000, 1005):
            raise Closed(c.closed)
    finally:
        c.drop()


def attempt(url, path, http=False, sandboxed=False):
    """None, or what went wrong in words. Too long is a failure of the test."""
    try:
        session(url, path, http, sandboxed)
    except (Refused, Closed, ConnectionError, EOFError) as e:
        return str(e)


class Bench:
    """execd with a fault in one of its programs."""

    def __init__(self, program, mode, user):
        self.sandboxed = program.endswith("+sandbox")
        program = program.removesuffix("+sandbox")
        self.program, self.mode, self.user = program, mode, user
        self.tree = Tree(**{} if program in ("execd", "execctl") else
                         {program.replace("-", "_"): BUILD / "tests/torture/preload"})
        self.file = self.tree.path / "file"
        self.file.write_bytes(FILE)
        self.file.chmod(0o644)

    def environment(self, kind, at):
        trace = {"FAULT_TRACE": "1"} if "FAULT_TRACE" in os.environ else {}
        return {"LD_PRELOAD": str(FAULTS), "FAULT_KIND": kind, "FAULT_AT": str(at), **trace}

    def start(self, kind, at):
        """A server, or None: execd said why not."""
        env = None
        if self.program == "execd":
            env = {**os.environ, **self.environment(kind, at)}
        elif self.program != "execctl":
            text = "".join(f"{k}={v}\n" for k, v in self.environment(kind, at).items())
            self.tree.file(self.program, "environment").write_text(text)
        argv = [str(self.tree.path / "daemon/root/execd"), "--listen", "ws://127.0.0.1:0"]
        if self.mode == "root":
            argv += ["--user", self.user.pw_name, "--allow-unauthenticated"]
        else:
            argv = as_user(self.user, argv)
        if self.mode != "root" and ROOT and env:
            # Not into the program that changes the user.
            argv[argv.index("env") + 1:argv.index("env") + 1] = [f"{k}={env[k]}" for k in self.environment(kind, at)]
            env = None
        return FaultyServer.start(self.mode, argv, env)

    def execctl(self, s, kind, at):
        """Returns whether the fault was delivered."""
        p = subprocess.run([str(BUILD / "client/execctl"), "--url", s.url, "run", "echo", "hello"], timeout=60,
                           env={**os.environ, **self.environment(kind, at)}, capture_output=True, text=True)
        assert p.returncode >= 0 and p.returncode - 128 not in CRASHES, p
        assert (p.returncode == 0) == (p.stdout == "hello\n"), p
        said = p.stderr.replace("faults: delivered\n", "")
        # Without memory, or with a failing standard error, words may be few.
        assert p.returncode == 0 or said or kind == "write", p
        return "faults: delivered" in p.stderr

    def run(self, kind, at):
        """Returns whether the fault was delivered, and what the client heard."""
        s = self.start(kind, at)
        if isinstance(s, str):
            return True, s
        try:
            heard = None
            if self.program == "execctl":
                delivered = self.execctl(s, kind, at)
            else:
                heard = attempt(s.url, self.file, self.program == "execd-http", self.sandboxed)
                delivered = None
                if self.program != "execd":
                    # Once: the next of it is as it should be.
                    self.tree.file(self.program, "environment").write_text("")
            if s.child.poll() is None:
                # One that died is replaced; then all is as ever.
                end = time.monotonic() + 30
                while again := attempt(s.url, self.file):
                    if s.child.poll() is not None:
                        break
                    assert time.monotonic() < end, f"{again}\n{s.log}"
                    time.sleep(0.2)
        finally:
            ended = s.child.poll()
            if ended is None:
                s.end(self.program == "execd")
        if ended is not None:
            assert ended in (1, 2, 3, 4, 5), f"execd ended with {ended}: {s.log}"
            assert self.program == "execd", s.log
            s.wait_end()
        self.check(s)
        return "faults: delivered" in s.log if delivered is None else delivered, heard or ended

    def check(self, s):
        for sig in CRASHES:
            assert f"signal {int(sig)}" not in s.log, s.log
        # A report that the broker could not read is missing, and its runner is killed for that.
        log = s.log.replace("its runner ended a channel without a report: killing it", "")
        assert self.program == "execd" or "killing it" not in log, s.log
        poll(lambda: not self.left(), timeout=30, what=f"end of {self.left()}")

    def kill(self):
        """Those that hang."""
        for pid in self.left():
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                pass

    def left(self):
        found = []
        for p in pathlib.Path("/proc").iterdir():
            try:
                if p.name.isdigit() and os.readlink(p / "exe").startswith(str(self.tree.path)):
                    found.append(p.name)
            except OSError:
                pass
        return found


class FaultyServer(TreeServer):
    @classmethod
    def start(cls, mode, argv, env):
        """It, or the last words of one that did not start."""
        s = cls.__new__(cls)
        try:
            s._start(mode, argv, env)
            return s
        except AssertionError:
            code = s.child.wait(60)
            # Out of memory, getpwnam(3) of glibc 2.36 reads through a null pointer.
            assert code in (1, 2, 3, 4, 5) or code == -11 and env and env.get("FAULT_KIND") == "alloc", (code, s.log)
            poll(lambda: code < 0 or s.log.replace("faults: delivered\n", ""), what="last words")
            return s.log

    def end(self, may_fail):
        """After the last session of it. It may fail at that, too."""
        poll(lambda: len(children(self.pid)) <= 64, what="children")
        self.child.terminate()
        code = self.child.wait(15)
        assert code == 0 or may_fail and code in (1, 2, 3, 4, 5), f"execd ended with {code}: {self.log}"

    def wait_end(self):
        self.child.wait(15)


def hang(*_):
    raise TimeoutError(f"it hangs, for {HANG_S} s")


def one(program, kind, mode, user, n):
    """One run. Returns whether there was an n-th call, whether it ended in
    words, and what of it must not be."""
    bench = Bench(program, mode, user)
    with bench.tree:
        before = signal.signal(signal.SIGALRM, hang)
        signal.alarm(HANG_S)
        try:
            delivered, heard = bench.run(kind, n)
        except Exception as e:
            return True, False, f"{program} {kind} {n} ({mode}): {e}"[:3000]
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)
            bench.kill()
    return delivered, heard is not None, None


def series(program, kind, mode, user, stride, first=1):
    """One run for each n until no n-th call is made. Returns figures, and what
    must not be."""
    runs = errors = 0
    found = []
    n = first
    while True:
        delivered, in_words, wrong = one(program, kind, mode, user, n)
        if not delivered:
            return runs, errors, n, found
        if wrong:
            print(wrong, flush=True)
            found.append(f"{kind} {n}")
        runs += 1
        errors += in_words
        n += stride


def main():
    alone()
    a = arguments(__doc__.splitlines()[0], only="PROGRAM:KIND:FIRST, no more than that; each may be left out")
    mode = "root" if ROOT else "user"
    stride = max(int(1 / a.scale), 1)
    program, kind, first, *_ = (a.only or "").split(":") + [""] * 3
    bad = 0
    for p in [program] if program else PROGRAMS:
        for k in [kind] if kind else KINDS:
            clock = Clock()
            runs, errors, n, found = series(p, k, mode, test_user(), stride, int(first or 1))
            bad += len(found)
            print(f"{p} {k}: {runs} runs, {errors} ended in words, fewer than {n} calls, wrong: "
                  f"{', '.join(found) or 'none'}; {clock}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
