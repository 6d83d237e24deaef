# SPDX-License-Identifier: ISC
"""Servers for the tests: the real programs out of the build tree, in the modes
they have. Everything started here is stopped by its pid.
"""
import contextlib
import functools
import hashlib
import os
import pathlib
import pwd
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time

import pytest

sys.path.insert(0, os.path.dirname(__file__))
from execd_client import TIMEOUT as PATIENCE_S, Stdio, WebSocket, patience  # noqa: E402

BUILD = pathlib.Path(os.environ.get("EXECD_BUILD", "build")).resolve()
EXECD = BUILD / "daemon/root/execd"
RUNNER = BUILD / "runner/execd-runner"
# Words in front of the broker, and of a runner that a test starts itself: scripts/torture has valgrind here.
WRAP = os.environ.get("EXECD_WRAP", "").split()
ROOT = os.geteuid() == 0
# A login gives root a directory that the users of the tests cannot enter.
if ROOT:
    os.environ.pop("XDG_RUNTIME_DIR", None)
# A sanitizer keeps freed memory for a while: bounds on memory are wider then.
SANITIZED = "EXECD_SANITIZED 1" in (BUILD / "config.h").read_text()
VERSION = (BUILD / "config.h").read_text().split('EXECD_VERSION "')[1].split('"')[0]
MIB = (4 if SANITIZED else 1) << 10  # KiB, for comparison with rss_kib()
# Set by scripts/torture: nothing is left out for want of time.
TORTURE = bool(os.environ.get("EXECD_TORTURE"))
# To look for leaks costs a program as much as all else from its start to its end. The units
# and the fuzz targets do it always, these tests in scripts/torture.
if SANITIZED and not TORTURE:
    os.environ.setdefault("ASAN_OPTIONS", "detect_leaks=0")
USER = f"execd-t{os.getpid()}"  # of this run: others may test here too


@pytest.fixture(scope="session")
def user():
    """The ordinary user that commands run as."""
    if not ROOT:
        yield pwd.getpwuid(os.getuid())
        return
    made = subprocess.run(["id", USER], capture_output=True).returncode != 0
    if made:
        change_users("useradd", "-m", "-s", "/bin/bash", USER)
    yield pwd.getpwnam(USER)
    if made:
        change_users("userdel", "-r", USER)


def change_users(*argv):
    """Who else changes them holds a lock for a moment: status 1. A process that
    ends may still be there: status 8."""
    r = poll(lambda: (r := subprocess.run(argv, capture_output=True)).returncode not in (1, 8) and r, what=argv[0])
    assert r.returncode == 0, (argv, r)


def sanitizer_said(log):
    """What a sanitizer found in any of the programs. Most are replaced when they end, and no client notices it."""
    at = re.search(r"ERROR: \w+Sanitizer|runtime error: ", log)
    return log[max(0, at.start() - 200):at.start() + 4000] if at else ""


# Where systemd keeps the groups of version 2, that of a login is not execd's alone. The process stays the same one.
SCOPE = (["/usr/bin/systemd-run", "--quiet", "--scope", "-p", "Delegate=yes", "--"]
         if ROOT and os.path.exists("/run/systemd/system") and os.path.exists("/sys/fs/cgroup/cgroup.controllers") else [])


class Server:
    """A running execd and the clients of it."""

    def __init__(self, mode, user, flags, listen, env):
        self._start(mode, command(mode, user, ["--listen", listen, *flags]), env)

    def _start(self, mode, argv, env, listeners=1, **popen):
        self.mode = mode
        self.clients = []
        self.child = subprocess.Popen([*(SCOPE if mode == "root" else []), *argv], stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, env=env, **popen)
        self._log, self._rest = "", b""
        self.logged = threading.Condition()
        os.set_blocking(self.child.stderr.fileno(), False)
        threading.Thread(target=self._follow_log, daemon=True).start()
        lines = [self.child.stdout.readline().decode() for _ in range(listeners)]
        for line in lines:
            assert re.fullmatch(r"((wss?|tcp)://\S+:\d+|unix:/\S+)\n", line), f"{line!r}: {self.log}"
        self.urls = [line.strip() for line in lines]
        self.url = self.urls[0]
        self.pid = self.child.pid

    @property
    def log(self):
        """All that was logged until now: what the pipe holds is read first, so
        that a line written before an answer is there when the answer is."""
        with self.logged:
            self._read_log()
            return self._log

    def _read_log(self):
        """Takes whole lines off the pipe; returns whether more may come."""
        try:
            while piece := os.read(self.child.stderr.fileno(), 1 << 16):
                *lines, self._rest = (self._rest + piece).split(b"\n")
                self._log += "".join(line.decode(errors="replace") + "\n" for line in lines)
        except BlockingIOError:
            return True
        self._log, self._rest = self._log + self._rest.decode(errors="replace"), b""
        return False

    def _follow_log(self):
        more, readable = True, select.poll()
        readable.register(self.child.stderr, select.POLLIN)
        while more:
            readable.poll()
            with self.logged:
                more = self._read_log()
                self.logged.notify_all()

    def wait_log(self, text, timeout=PATIENCE_S, unless=None):
        """`unless` is a pattern of what ends the waiting in vain."""
        def is_over():
            return text in self.log or (unless and re.search(unless, self.log[-100000:]))

        with self.logged:
            assert self.logged.wait_for(is_over, timeout) and text in self.log, f"{text!r} not in {self.log[-20000:]}"

    def connect(self, url=None, **kwargs):
        c = WebSocket(url or self.url, **kwargs)
        self.clients.append(c)
        return c

    def ready(self, **params):
        return self.connect().ready(**params)

    def frontend(self):
        """The front-end's pid, from the newest log line that names it."""
        return int(re.findall(r"front-end (\d+): serving", self.log)[-1])

    @property
    def broker(self):
        """Its pid: the only child of that name. s.pid is root's execd."""
        return int(poll(lambda: children_named(self.pid, "execd-broker"), what="broker")[0])

    def runner(self, client):
        opened = rf"session {client.session_id[:8]}: opened .* runner (\d+)"
        return int(poll(lambda: re.search(opened, self.log), what="line in the log")[1])

    def stop(self):
        for c in self.clients:
            c.drop()
        if self.child.poll() is None:
            self.child.terminate()
        code = self.child.wait(PATIENCE_S)
        assert code == 0, f"execd ended with {code}: {self.log[-2000:]}"
        assert not (said := sanitizer_said(self.log)), said


class Configured(Server):
    """An execd with a configuration file, which a test may change."""

    def __init__(self, mode, user, path, text, flags=(), env=None, **popen):
        self.path = path
        path.write_text(text)
        argv = [*WRAP, str(EXECD), "-c", str(path), *flags]
        self._start(mode, argv if mode == "root" else as_user(user, argv), env,
                    text.count("[listener "), **popen)

    def reload(self, text, wait="reload:"):
        """Changes the file and waits until the log says this."""
        seen = len(self.log)
        self.path.write_text(text)
        self.child.send_signal(signal.SIGHUP)
        with self.logged:
            assert self.logged.wait_for(lambda: wait in self.log[seen:], PATIENCE_S), self.log[seen:]
        return self.log[seen:]


def channel_version(channel):
    """Of the channel that a program other than ours speaks in a test."""
    header = pathlib.Path(__file__).parents[2] / "protocol/ipc/control_version.h"
    return int(re.search(rf"#define {channel}_VERSION\s+(\d+)", header.read_text())[1])


def frontend_version():
    return channel_version("FRONTEND")


def digest(token):
    return hashlib.sha256(token.encode()).hexdigest()


def command(mode, user, args):
    argv = [*WRAP, str(EXECD), *args]
    if mode == "root":
        return argv + ["--user", user.pw_name, "--allow-unauthenticated"]
    return as_user(user, argv)


def as_user(user, argv):
    if not ROOT:
        return argv
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--init-groups",
            "env", f"HOME={user.pw_dir}", *argv]


@functools.cache
def missing_layers(mode, user):
    """What execd doctor finds missing on this host, for commands of the test user."""
    return [line for line in doctor_lines(mode, user) if line.startswith("MISSING")]


def doctor_lines(mode, user):
    """What execd doctor says where this mode's servers are started."""
    argv = [str(EXECD), "doctor"]
    argv = [*SCOPE, *argv, "--user", user.pw_name] if mode == "root" else as_user(user, argv)
    return subprocess.run(argv, capture_output=True, text=True, timeout=60).stdout.splitlines()


def need_sandbox(mode, user):
    missing = missing_layers(mode, user)
    if missing:
        pytest.skip("SANDBOXES ARE NOT TESTED, this host lacks what they take: " + "; ".join(missing))


@pytest.fixture(scope="session")
def sandboxes(mode, user):
    """For tests that need a host which can enforce a sandbox."""
    need_sandbox(mode, user)


def need_mode(mode):
    if mode == "root" and not ROOT:
        pytest.skip("ROOT MODE IS NOT TESTED: this needs root")
    if mode == "root" and WRAP:
        pytest.skip(f"ROOT MODE IS NOT TESTED: {WRAP[0]} makes no namespaces")


# Each mode is a run of its own, and many files ask what the mode does not change:
# the client, the network's side, the protocol. Of these root runs root mode, an
# ordinary user runs single-user mode, and EXECD_TORTURE=1 runs both.
ONE_SIDE = re.compile(r"test_(execctl_\w+|python_client|node_client|mcp|agent|ask|ci|relay|bad_input|handshake|websocket|tls|client_certificates|"
                      r"certificate_files|proxy_protocol|listeners|jwks|scanners|path_map|tty|v0|report|control|"
                      r"files|files_change|uploads|large_files|http|limits|watch|watches|pieces|capabilities|"
                      r"environment_config|roots|metrics|health|operators|audit_records|audit_sinks|"
                      r"log_blocked|config|versions|handoff|few_descriptors|starving|work|sources|reloads|"
                      r"network_keys|netproxy|silent|slow_start|hung_files|expiry|traces)")
# A sanitizer makes everything slow. There both modes are seen where they differ.
BOTH_MODES = ("test_process", "test_session", "test_stdio", "test_works")


def is_one_side(stem):
    if SANITIZED:
        return stem not in BOTH_MODES
    return ONE_SIDE.fullmatch(stem) is not None


def more_rounds(short, long):
    """How often a test repeats what depends on chance: `long` in scripts/torture."""
    return long if TORTURE else short


def pytest_configure(config):
    config.addinivalue_line("markers", "one_side: as ONE_SIDE, for one test of a file")
    config.addinivalue_line("markers", "nightly: takes long and rarely fails; only scripts/torture runs it")


ALL_LEFT_OUT = pytest.StashKey[bool]()


def is_nightly(item):
    return not TORTURE and item.get_closest_marker("nightly") is not None


def is_other_mode(item):
    return (ROOT and not WRAP and not TORTURE and hasattr(item, "callspec") and
            item.callspec.params.get("mode") == "user" and
            (is_one_side(item.path.stem) or item.get_closest_marker("one_side") is not None))


def pytest_collection_modifyitems(config, items):
    left_out = [i for i in items if is_nightly(i) or is_other_mode(i)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [i for i in items if i not in left_out]
        config.stash[ALL_LEFT_OUT] = not items


def pytest_sessionfinish(session, exitstatus):
    """A file whose cases are all left to scripts/torture has not failed."""
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and session.config.stash.get(ALL_LEFT_OUT, False):
        session.exitstatus = pytest.ExitCode.OK


def pytest_terminal_summary(terminalreporter):
    left_out = terminalreporter.stats.get("deselected", [])
    if any(is_other_mode(i) for i in left_out):
        terminalreporter.write_line("SINGLE-USER MODE IS NOT TESTED HERE: an ordinary user and scripts/torture do that")
    nightly = sum(map(is_nightly, left_out))
    if nightly:
        terminalreporter.write_line(f"LEFT TO scripts/torture suites: {nightly} cases that take long")


@pytest.fixture(params=["user", "root"], scope="session")
def mode(request):
    need_mode(request.param)
    return request.param


@pytest.fixture(scope="session")
def server(mode, user):
    """One execd for all tests of a mode. No test may make its front-end die."""
    s = Server(mode, user, [], "ws://127.0.0.1:0", None)
    yield s
    s.stop()
    assert "killed by signal" not in s.log and "exited with status" not in s.log, s.log
    assert_nothing_left(user)


def end(s):
    """Stops a server of a test, which may have ended it."""
    if s.child.poll() is None:
        s.stop()
    assert not (said := sanitizer_said(s.log)), said


@pytest.fixture
def spawn(mode, user):
    """Starts an execd of the test's own: spawn(*flags)."""
    started = []

    def start(*flags, listen="ws://127.0.0.1:0", env=None):
        s = Server(mode, user, list(flags), listen, env)
        started.append(s)
        return s

    yield start
    for s in started:
        end(s)


@pytest.fixture
def configured(mode, user, directory):
    """Starts an execd with this configuration: configured(text, *flags)."""
    started = []

    def start(text, *flags, **more):
        s = Configured(mode, user, directory / f"execd-{len(started)}.conf", text, flags, **more)
        started.append(s)
        return s

    yield start
    for s in started:
        end(s)


@pytest.fixture
def client(server):
    c = server.ready()
    yield c
    c.drop()


@pytest.fixture
def stdio(mode, user):
    started = []

    def start(*flags):
        argv = [*WRAP, str(EXECD), "--listen", "stdio", *flags]
        if mode == "root":
            argv += ["--user", user.pw_name]
        else:
            argv = as_user(user, argv)
        c = Stdio(argv)
        started.append(c)
        return c

    yield start
    for c in started:
        c.close()


@pytest.fixture
def directory():
    """A directory that the test user may use."""
    with tempfile.TemporaryDirectory(prefix="execd-test-", ignore_cleanup_errors=True) as d:
        os.chmod(d, 0o777)
        yield pathlib.Path(d)


def poll(probe, timeout=PATIENCE_S, what="a condition"):
    """For what has no event: a pid that goes, a file that comes."""
    end, pause_s = time.monotonic() + patience(timeout), 0.01
    while not (value := probe()):
        assert time.monotonic() < end, f"no {what} within {timeout} s"
        time.sleep(pause_s)
        pause_s = min(1.2 * pause_s, 0.1)
    return value


def lines_of(path):
    """Of a file that is written: the last line may be there in part, as far as a page goes."""
    return path.read_text().rpartition("\n")[0].splitlines()


def stat_of(pid):
    """Name, state, parent and time of its start in ticks (proc(5)), or None if it is gone."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    name, rest = text[text.index("(") + 1:].rsplit(")", 1)
    state, parent, *more = rest.split()
    return name, state, int(parent), int(more[17])


def child_rows(pid):
    """(pid, name, state) of each child, the oldest first (pids begin again at the largest), also of those that nobody has
    waited for."""
    rows = [(int(p), stat_of(p)) for p in os.listdir("/proc") if p.isdigit()]
    mine = [(row[3], p, row[0], row[1]) for p, row in rows if row is not None and row[2] == pid]
    return [row[1:] for row in sorted(mine)]


def children_named(pid, name):
    """Pids of the living children of that process with that name."""
    return [p for p, its_name, state in child_rows(pid) if its_name == name and state != "Z"]


def runs(pid, program):
    """Is that file the process's program? Only root may look into the processes of execd, which hide; to others it seems so."""
    return not ROOT or os.stat(f"/proc/{pid}/exe").st_ino == os.stat(program).st_ino


def is_alive(pid):
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] != "Z"


def pids_with(marker):
    """Host pids of live processes whose command line holds the marker."""
    found = []
    for p in pathlib.Path("/proc").iterdir():
        if not p.name.isdigit():
            continue
        try:
            text = (p / "cmdline").read_bytes()
        except OSError:
            continue
        if marker.encode() in text and is_alive(p.name):
            found.append(int(p.name))
    return found


def assert_nothing_left(user):
    if not ROOT or user.pw_uid == 0:
        return

    def left():
        out = subprocess.run(["ps", "-u", str(user.pw_uid), "-o", "pid=,stat=,args="],
                             capture_output=True, text=True).stdout
        return [line for line in out.splitlines() if line.split()[1][0] != "Z"]

    poll(lambda: not left(), what=f"end of {left()}")


def kill(pid, sig=signal.SIGKILL):
    os.kill(pid, sig)


@contextlib.contextmanager
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    poll(lambda: stat_of(pid)[1] == "T", what=f"{pid} stopped")
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
