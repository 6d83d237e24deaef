# SPDX-License-Identifier: ISC
"""What execd keeps secret is in no process of an ordinary user, at no moment:
a program of the sessions' user looks into, and stops, everything that is ever
his while sessions start."""
import os
import pathlib
import pwd
import re
import signal
import subprocess
import sys
import time

import pytest
from certificates import EC, openssl
from conftest import BUILD, ROOT, SANITIZED, as_user, children_named, need_mode, poll
from test_auth import jwt

KEY = b"secret-of-the-signed-tokens-0123456789abcdef"
OTHER_USER = "nobody"
IDENTITIES = 16         # each one's first session takes all steps
BROKERS = 20            # that are raced with

# Runs as the sessions' user. The newest number of a process is in /proc/loadavg; signals to the next ones find a
# process of ours within microseconds. Each one is stopped, read if it lets us, and let go (or left stopped).
SPY = r"""
import os, pathlib, re, signal, sys, time
marks = [bytes.fromhex(m) for m in sys.argv[2].split(",")]
leave = sys.argv[1] == "leave"
parent = sys.argv[3]
stopped, read, found, others = set(), set(), set(), set()

def newest():
    with open("/proc/loadavg") as f:
        return int(f.read().split()[-1])

def stop(pid):
    try:
        os.kill(pid, signal.SIGSTOP)
    except (ProcessLookupError, PermissionError):
        return False
    return True

def let_go(pid):
    try:
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        pass

# The broker's user has programs of other servers, too.
def is_meant(pid):
    try:
        return parent == "any" or open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1] == parent
    except OSError:
        return False

def look(pid):
    if not is_meant(pid):
        others.add(pid)
        return
    stopped.add(pid)
    try:
        maps = open(f"/proc/{pid}/maps").read()
        memory = open(f"/proc/{pid}/mem", "rb", 0)
    except OSError:
        return
    for line in maps.splitlines():
        m = re.match(r"(\w+)-(\w+) rw", line)
        if not m:
            continue
        start, end = int(m[1], 16), int(m[2], 16)
        try:
            memory.seek(start)
            piece = memory.read(min(end - start, 64 << 20))
        except (OSError, ValueError):
            continue
        read.add(pid)
        if any(mark in piece for mark in marks):
            found.add(pid)

own = os.getpid()
os.set_blocking(0, False)
print("ready", flush=True)
while True:
    last = newest()
    for pid in range(max(last - 4, 1), last + 12):
        if pid != own and pid not in stopped | others and stop(pid):
            look(pid)
            if not leave:
                let_go(pid)
    try:
        if os.read(0, 1) == b"":
            break
    except BlockingIOError:
        pass
for pid in stopped:
    let_go(pid)
print(len(stopped), len(read), len(found), flush=True)
"""


class Spy:
    """Of everything that is his at some moment: how many were stopped, how many let themselves be read, and in how
    many a secret was found."""

    def __init__(self, user, *marks, leave=False, parent="any"):
        argv = [sys.executable, "-c", SPY, "leave" if leave else "go on", ",".join(m.hex() for m in marks), str(parent)]
        self.child = subprocess.Popen(as_user(user, argv), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.child.stdout.readline() == b"ready\n"

    def stop(self):
        out, _ = self.child.communicate(timeout=60)
        self.stopped, self.read, self.found = map(int, out.split())
        return self


@pytest.fixture
def spy(user):
    started = []

    def start(*marks, user=user, **more):
        started.append(Spy(user, *marks, **more))
        return started[-1]

    yield start
    for s in started:
        if s.child.poll() is None:
            s.child.kill()
            s.child.wait()




def settings(directory, user, more="", owner=None):
    secret = directory / "jwt"
    secret.write_bytes(KEY)
    secret.chmod(0o600)
    if owner is not None:
        os.chown(secret, owner.pw_uid, owner.pw_gid)
    text = f"[listener main]\naddress = ws://127.0.0.1:0\n[signed-tokens]\nsecret-file = {secret}\n"
    text += f"[identity other]\nuser = {OTHER_USER}\ntoken-subject = other\n" if user else ""
    for i in range(IDENTITIES if user else 0):
        text += f"[identity a{i}]\nuser = {user.pw_name}\ntoken-subject = a{i}\nsandbox-allow-unsandboxed = yes\n"
    return text + more


def token(name):
    return jwt(KEY, exp=int(time.time()) + 600, sub=name)


def test_no_process_of_a_user_ever_holds_a_secret(configured, user, mode, directory, spy):
    need_mode("root")
    if mode == "user":
        pytest.skip("in single-user mode everything is this user's: no process of it lets itself be read, see below")
    s = configured(settings(directory, user))
    watching = spy(KEY)
    for i in range(IDENTITIES):
        c = s.connect(token=token(f"a{i}")).ready()
        c.run("x", ["/bin/true"])
    seen = watching.stop()
    assert seen.stopped >= IDENTITIES, "it saw nothing"
    assert seen.found == 0, f"{seen.found} of {seen.stopped} processes of the user held the secret"
    assert "no user namespace for" not in s.log, s.log


def test_nor_while_programs_are_replaced(configured, user, mode, directory, spy):
    """A reload starts another broker or asks the old one, a re-exec replaces root: neither gives a user a process
    with a secret, and whoever holds one stays closed to everybody."""
    need_mode("root")
    if mode == "user":
        pytest.skip("in single-user mode everything is this user's: no process of it lets itself be read, see below")
    text = settings(directory, user)
    s = configured(text)
    s.connect(token=token("a0")).ready()
    watching = spy(KEY)
    for i in range(1, 4):
        s.reload(text + f"[limits]\nmax-connections = {1000 + i}\n")
        s.connect(token=token(f"a{i}")).ready().run("x", ["/bin/true"])
        n = s.log.count("re-exec: this version goes on")
        s.child.send_signal(signal.SIGUSR2)
        poll(lambda n=n: s.log.count("re-exec: this version goes on") > n, what="the next root")
        s.connect(token=token(f"a{i + 4}")).ready().run("x", ["/bin/true"])
        for pid in {s.pid, s.frontend(), *children_named(s.pid, "execd-broker")}:
            assert_hidden(pid)
        # A runner that has just been executed has nothing yet but its user's, and hides itself first.
        for pid in children_named(s.pid, "execd-runner"):
            poll(lambda pid=pid: is_hidden(pid), what="hidden runner")
    seen = watching.stop()
    assert seen.stopped >= 6, "it saw nothing"
    assert seen.found == 0, f"{seen.found} of {seen.stopped} processes of the user held the secret"


def test_no_broker_lets_its_own_user_look_into_it(configured, user, mode, directory, spy):
    """Not even one that has just begun: a process of the broker's user races with each new one."""
    need_mode("root")
    if mode == "user":
        pytest.skip("in single-user mode everything is this user's")
    text = settings(directory, user)
    s = configured(text)
    s.wait_log(": serving")
    watching = spy(KEY, user=pwd.getpwnam("_execd-broker"), parent=s.pid)
    for i in range(BROKERS):
        s.reload(text + f"[limits]\nmax-connections = {1000 + i}\n")
    seen = watching.stop()
    assert seen.stopped >= BROKERS // 4, "it saw nothing"
    assert seen.read == 0, f"{seen.read} of {seen.stopped} brokers could be read"


def test_who_stops_all_that_is_his_stops_nobody_else(configured, user, mode, directory, spy):
    need_mode("root")
    if mode == "user":
        pytest.skip("there is one user")
    s = configured(settings(directory, user))
    s.connect(token=token("other")).ready()
    spy(KEY, leave=True)
    slowest = 0
    for i in range(IDENTITIES // 2):
        s.connect(token=token(f"a{i}")).post("initialize", {"clientName": "x"})
        began = time.monotonic()
        c = s.connect(token=token("other")).ready()
        slowest = max(slowest, time.monotonic() - began)
        c.drop()
    assert slowest < 2, f"another user waited {slowest:.1f} s"


def test_units_allow_no_core():
    assert "\nLimitCORE=0\n" in (BUILD / "contrib/systemd/execd.service").read_text()


# Runs as an unprivileged user: everything of /proc that it may read, and every name in places that all users see.
SEARCH = r"""
import os, sys
marks = [m.encode() for m in sys.argv[1:]]

def look(text, where):
    if any(m in text for m in marks):
        print(where, flush=True)

def look_at_file(path):
    try:
        with open(path, "rb") as f:
            look(f.read(1 << 20), path)
        look(os.fsencode(os.readlink(path)), path)
    except OSError:
        pass

own = str(os.getpid())
for pid in os.listdir("/proc"):
    if pid.isdigit() and pid != own:
        for name in ("cmdline", "comm", "environ", "cgroup", "stat", "status", "mountinfo", "maps", "wchan", "exe",
                     "cwd", "root", "sched", "autogroup", "net/unix"):
            look_at_file(f"/proc/{pid}/{name}")
for name in ("mounts", "locks", "net/unix", "net/tcp", "keys", "key-users", "cgroups", "sysvipc/shm", "timer_list"):
    look_at_file("/proc/" + name)
for top in ("/sys/fs/cgroup", "/tmp", "/var/tmp", "/run", "/dev", "/var/log", "/proc/net"):
    for at, directories, files in os.walk(top):
        for name in directories + files:
            look(os.fsencode(name), os.path.join(at, name))
print("looked", flush=True)
"""


def test_no_other_user_learns_the_id_of_a_session(server, user, mode):
    need_mode("root")
    c = server.ready()
    c.sh("x", "sleep 1000")
    argv = [sys.executable, "-c", SEARCH, c.session_id, c.session_id[:8]]
    other = pwd.getpwnam(OTHER_USER)
    found = subprocess.run(as_user(other, argv), capture_output=True, text=True, timeout=60)
    assert found.stdout == "looked\n", found
    c.terminate("x")
    c.drop()


def is_hidden(pid):
    """Also when it has ended: spare runners do at a reload."""
    try:
        return os.stat(f"/proc/{pid}/environ").st_uid == 0
    except FileNotFoundError:
        return True


def assert_hidden(pid):
    assert os.stat(f"/proc/{pid}/environ").st_uid == 0, "processes of the same user may look into it"
    limits = pathlib.Path(f"/proc/{pid}/limits").read_text()
    assert re.search(r"Max core file size\s+0 ", limits), limits


def test_programs_that_hold_secrets_are_not_dumpable(configured, user, mode, directory):
    if not ROOT:
        pytest.skip("WHO MAY LOOK IS NOT TESTED: this needs root")
    s = configured(settings(directory, None, f"[identity x]\nuser = {user.pw_name}\ntoken-subject = x\n",
                            user if mode == "user" else None))
    s.wait_log(": serving")
    for pid in s.pid, s.broker, s.frontend():
        assert_hidden(pid)


def memory(pid):
    pieces = []
    with open(f"/proc/{pid}/mem", "rb", 0) as f:
        for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
            m = re.match(r"(\w+)-(\w+) rw", line)
            if m and "[v" not in line:
                f.seek(int(m[1], 16))
                pieces.append(f.read(int(m[2], 16) - int(m[1], 16)))
    return pieces


def key_process(s, mode):
    pid, = poll(lambda: children_named(s.pid, "execd-keys"), what="key process")
    text = poll(lambda: "\nSeccomp:\t2\n" in (t := pathlib.Path(f"/proc/{pid}/status").read_text()) and t, what="its filter")
    if mode == "root":
        uid = pwd.getpwnam("_execd").pw_uid
        assert re.search(r"^Uid:\t(.*)$", text, re.M)[1].split() == [str(uid)] * 4
        assert re.search(r"^Groups:\s*$", text, re.M) and re.search(r"^CapBnd:\t0+$", text, re.M)
    return pid


def test_the_monitor_forgets_a_key_that_it_has_checked(configured, user, mode, directory):
    if not ROOT:
        pytest.skip("MEMORY IS NOT SEARCHED: this needs root")
    if SANITIZED:
        pytest.skip("a sanitizer keeps freed memory, and has terabytes of its own")
    key, cert = directory / "key.pem", directory / "cert.pem"
    openssl("req", "-new", *EC, "-nodes", "-x509", "-keyout", key, "-out", cert, "-subj", "/CN=localhost")
    for path in key, cert, directory:
        os.chown(path, *((0, 0) if mode == "root" else (user.pw_uid, user.pw_gid)))
    key.chmod(0o600)
    text = openssl("ec", "-in", key, "-text", "-noout").decode()
    scalar = bytes.fromhex(re.search(r"priv:([\s:0-9a-f]+)pub:", text)[1].replace(":", "").replace("\n", "").replace(" ", ""))
    der = openssl("pkcs8", "-topk8", "-nocrypt", "-in", key, "-outform", "DER")
    pem = key.read_bytes().splitlines()[1]
    s = configured("[listener main]\naddress = wss://127.0.0.1:0\nallow-unauthenticated = x\n"
                   f"certificate = {cert}\ncertificate-key = {key}\n[identity x]\nuser = {user.pw_name}\n")
    s.wait_log(": serving")
    assert_hidden(key_process(s, mode))
    for what, mark in (("number", scalar[-32:]), ("DER", der[-60:]), ("PEM", pem)):
        assert not any(mark in piece for piece in memory(s.broker) + memory(s.pid)), f"the key's {what} is in the broker's memory"
