# SPDX-License-Identifier: ISC
"""UNIX sockets of a sandbox's own: its programs find each other with the network of the host as with none, and neither
reaches a socket outside, nor leaves one where a program outside looks for its own.
"""
import os
import shutil
import socket
import subprocess

import pytest
from conftest import Shell, as_test_user, direct, poll
from integration_conftest import as_user
from policies import READ_ALL, managed, path, special, workspace_write

NETWORKS = ("enabled", "restricted")


@pytest.fixture(params=NETWORKS)
def shell(request, session, place):
    return Shell(session, workspace_write(place, network=request.param), place)


@pytest.fixture
def enabled(session, place):
    return Shell(session, workspace_write(place, network="enabled"), place)


def python(text, file="p.py"):
    head = """
import array, ctypes, errno, os, signal, socket, struct, sys, threading, time
def tried(what, call):
    try:
        call(); print(what, "done")
    except OSError as e: print(what, errno.errorcode[e.errno])
def bind(name, kind=socket.SOCK_STREAM):
    s = socket.socket(socket.AF_UNIX, kind); s.bind(name); s.listen(); return s
def connect(name, kind=socket.SOCK_STREAM):
    s = socket.socket(socket.AF_UNIX, kind); s.connect(name); return s
"""
    return f"cat >{file} <<'END'{head}{text}\nEND\n/usr/bin/python3 {file}"


def needs(program):
    return pytest.mark.skipif(not shutil.which(program, path="/usr/bin:/bin:/usr/sbin:/usr/local/bin"),
                              reason=f"NOT TESTED: {program} is not installed")


# --- honest work ---------------------------------------------------------------

def test_they_are_as_the_kernel_makes_them(shell):
    """The name as it was given, the mode by the umask, and the kernel's errors."""
    assert shell(python("""
os.mkdir("d"); os.symlink("d", "way"); os.mkdir("cwd"); os.umask(0o027)
for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
    for name in ("s", "./s", "way/s", "d/../s", os.getcwd() + "/s", os.environ["TMPDIR"] + "/s", "/dev/shm/s", "x" * 107):
        s = bind(name, kind)
        assert s.getsockname() == name and os.stat(name).st_mode & 0o777 == 0o750, name
        c = connect(name, kind); d, _ = s.accept(); c.send(b"hi"); assert d.recv(9) == b"hi" and c.getpeername() == name
        cred = struct.unpack("3i", d.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        assert cred[1:] == (os.getuid(), os.getgid()), cred
        tried("again", lambda: bind(name, kind)); s.close(); tried("stale", lambda: connect(name, kind)); os.unlink(name)
early = socket.socket(socket.AF_UNIX); early.bind("early"); tried("before it listens", lambda: connect("early"))
tried("other kind", lambda: connect("early", socket.SOCK_SEQPACKET)); early.listen(); connect("early")
tried("twice", lambda: early.bind("other")); tried("missing", lambda: bind("none/s")); tried("file", lambda: bind("p.py/s"))
tried("read-only", lambda: bind("/etc/s")); tried("protected", lambda: bind(".git/s"))
os.chdir("cwd"); up = bind("../up"); os.chdir(".."); connect("up")
os.rename("up", "moved"); os.link("moved", "linked"); connect("moved"); connect("linked")
""")).splitlines() == ["again EADDRINUSE", "stale ECONNREFUSED"] * 16 + [
        "before it listens ECONNREFUSED", "other kind EPROTOTYPE", "twice EINVAL", "missing ENOENT", "file ENOTDIR",
        "read-only EROFS", "protected EROFS"]


def test_commands_of_one_policy_share_them(session, shell, place):
    id = shell.start(python('s = bind("s"); print("ready", flush=True); s.accept()[0].send(b"from another command")', "server.py"))
    session.wait_output(id, b"ready")
    assert shell(python('print(connect("s").recv(99))', "client.py")) == "b'from another command'\n"
    assert session.finished(id).code == 0


def test_what_others_left_is_stale(user, shell, place):
    """Nobody listens on it any more, whoever made it: ECONNREFUSED, as programs expect that look whether one runs."""
    as_test_user(user, "/usr/bin/python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"left\")'", place)
    assert shell(python('tried("left", lambda: connect("left"))')) == "left ECONNREFUSED\n"


def test_pairs_of_datagrams(shell):
    """Each is made as a pair that keeps the borders of messages, and that no address leads out of."""
    assert shell(python("""
for flags in (0, socket.SOCK_NONBLOCK, socket.SOCK_CLOEXEC):
    fds = (ctypes.c_int * 2)()
    assert ctypes.CDLL(None).socketpair(socket.AF_UNIX, socket.SOCK_DGRAM | flags, 0, fds) == 0
    a, b = (socket.socket(fileno=fd) for fd in fds)
    a.send(b"one"); a.send(b"two"); assert (b.recv(99), b.recv(99)) == (b"one", b"two")
    print(bool(flags & socket.SOCK_NONBLOCK) == (not os.get_blocking(fds[0])), os.get_inheritable(fds[0]) == (flags != socket.SOCK_CLOEXEC))
    a.close(); assert b.recv(9) == b""
tried("raw", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_RAW))
libc = ctypes.CDLL(None, use_errno=True)
for domain, kind, to in ((1, socket.SOCK_DGRAM, None), (1, socket.SOCK_DGRAM | 1 << 20, fds), (2, socket.SOCK_DGRAM, fds)):
    print(libc.socketpair(domain, kind, 0, to), errno.errorcode[ctypes.get_errno()])
""")).splitlines() == ["True True"] * 3 + ["raw EPERM", "-1 EFAULT", "-1 EINVAL", "-1 EPERM"]


def test_a_datagram_socket_alone(shell):
    """Who looks for a syslog is told that there is none, and not that there are no sockets: dnsmasq would end."""
    assert shell(python("""
libc = ctypes.CDLL(None, use_errno=True)
for flags in (0, socket.SOCK_NONBLOCK, socket.SOCK_CLOEXEC):
    s = socket.socket(fileno=libc.socket(socket.AF_UNIX, socket.SOCK_DGRAM | flags, 0))
    print(s.type == socket.SOCK_SEQPACKET, os.get_blocking(s.fileno()) == (flags != socket.SOCK_NONBLOCK), os.get_inheritable(s.fileno()) == (flags != socket.SOCK_CLOEXEC))
tried("log", lambda: s.connect("/dev/log")); tried("send", lambda: s.sendto(b"x", "/dev/log"))
print(libc.socket(socket.AF_UNIX, socket.SOCK_DGRAM | 1 << 20, 0), errno.errorcode[ctypes.get_errno()])
soft = __import__("resource").getrlimit(7); __import__("resource").setrlimit(7, (s.fileno() + 1, soft[1]))
tried("full", lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
""")).splitlines() == ["True True True"] * 3 + ["log ENOENT", "send ENOTCONN", "-1 EINVAL", "full EMFILE"]


SIGNALS = """
libc = ctypes.CDLL(None, use_errno=True)
tcp = socket.create_server(("127.0.0.1", 0), backlog=4096); unix = bind("s"); tcp.setblocking(False); unix.setblocking(False)
def inet(port): return struct.pack("=H", 2) + struct.pack("!H4s8x", port, bytes((127, 0, 0, 1)))
def local(name): return struct.pack("=H", 1) + name.encode() + bytes(1)
def answer(result): return 0 if result == 0 else errno.errorcode[ctypes.get_errno()]
def call(f, s, a):
    with s: return answer(f(s.fileno(), a, len(a)))
def connect_to(server, s, a):
    got = [call(libc.connect, s, a)]
    try:
        while True: server.accept()[0].close(); got.append(1)
    except BlockingIOError: return got
def pair():
    before = len(os.listdir("/proc/self/fd")); fds = (ctypes.c_int * 2)()
    got = answer(libc.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM, 0, fds)), len(os.listdir("/proc/self/fd")) - before
    for fd in set(fds): os.close(fd)
    return got
os.mkdir("d"); seen = set()
libc.signal(signal.SIGALRM, ctypes.cast(libc.getpid, ctypes.c_void_p)) # SA_RESTART, and a handler that does nothing
signal.setitimer(signal.ITIMER_REAL, 0.00005, 0.00005)
for i in range(200):
    seen.add(("bind", call(libc.bind, socket.socket(socket.AF_UNIX), local("n%d" % i))))
    seen.add(("bind", call(libc.bind, socket.socket(), inet(0))))
    seen.add(("connect", *connect_to(unix, socket.socket(socket.AF_UNIX), local("s"))))
    seen.add(("connect", *connect_to(tcp, socket.socket(), inet(tcp.getsockname()[1]))))
    if PAIRS: seen.add(("pair", *pair()))
    seen.add(("chmod", answer(libc.chmod(b"d", 0o2700 + i % 8))))
signal.setitimer(signal.ITIMER_REAL, 0)
print(sorted(seen))
"""


def test_a_signal_in_the_middle(shell):
    """Calls that a signal each 50 us interrupts come to an end, and what is carried out for one is carried out once."""
    assert shell(python(SIGNALS.replace("PAIRS", "True")), timeout=60) == "[('bind', 0), ('chmod', 0), ('connect', 0, 1), ('pair', 0, 2)]\n"


# A socket that takes no connection more, of either family, and one that is to connect to it.
FULL = """
libc = ctypes.CDLL(None, use_errno=True)
signal.signal(signal.SIGUSR1, lambda *_: None)
def full(family):
    s = socket.socket(family); s.bind("full" if family == socket.AF_UNIX else ("127.0.0.1", 0)); s.listen(0); filled = []
    while True:
        c = socket.socket(family); c.settimeout(0.2); filled.append(c)
        try: c.connect(s.getsockname())
        except OSError: return s, filled
def address(s):
    name = s.getsockname()
    return struct.pack("=H", 1) + name.encode() + bytes(1) if s.family == socket.AF_UNIX else \
        struct.pack("=H", 2) + struct.pack("!H4s8x", name[1], bytes((127, 0, 0, 1)))
def blocking(c, a): return 0 if libc.connect(c.fileno(), a, len(a)) == 0 else errno.errorcode[ctypes.get_errno()]
connects = {"x86_64": "42", "aarch64": "203"}[os.uname().machine]
def await_waiting(pid):
    while not any(open(f"/proc/{pid}/task/{t}/syscall").read().split()[0] == connects for t in os.listdir(f"/proc/{pid}/task")): time.sleep(0.01)
"""


def test_who_waits_hears_signals(shell):
    """A handler that ends the call, one after which it goes on, a stop, and an end with and without a core: as without a sandbox."""
    assert shell(python(FULL + """
for family in (socket.AF_UNIX, socket.AF_INET):
    s, filled = full(family); a = address(s)
    def child(prepare, threads=False):
        pid = os.fork()
        if pid: await_waiting(pid); return pid
        c = socket.socket(family); prepare(c)
        def call():
            got = blocking(c, a); print(got, flush=True); os._exit(0)
        if threads: threading.Thread(target=call).start(); time.sleep(99)
        call()
    def restart(c): signal.siginterrupt(signal.SIGUSR1, False)
    def timed(c): restart(c); c.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("=qq", 99, 0))
    for prepare in (lambda c: None, timed):
        pid = child(prepare); os.kill(pid, signal.SIGUSR1); os.waitpid(pid, 0)
    for number in (signal.SIGTERM, signal.SIGQUIT, signal.SIGKILL):
        pid = child(lambda c: None); os.kill(pid, number); print(os.WTERMSIG(os.waitpid(pid, 0)[1]) == number, flush=True)
    on = [child(restart), child(lambda c: None, True)]
    for pid in on:
        os.kill(pid, signal.SIGSTOP); print(os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1]), flush=True); os.kill(pid, signal.SIGCONT)
    for _ in range(9): os.kill(on[0], signal.SIGUSR1); await_waiting(on[0])
    s.settimeout(30)
    for c in filled: c.close()
    threading.Thread(target=lambda: [s.accept() for _ in range(99)], daemon=True).start()
    for pid in on: os.waitpid(pid, 0)
    s.close()
    print("-", flush=True)
"""), timeout=60).splitlines() == ["EINTR", "EINTR", "True", "True", "True", "True", "True", "0", "0", "-"] * 2


def test_who_waits_hears_no_signal_of_the_first_thread(shell):
    """A signal of a process is its first thread's, also while that one cannot take it. The proxy looks for signals all the
    time in which another call waits for its end."""
    clone = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
    assert shell(python(FULL + f"clone = {clone}" + """
for number in (signal.SIGUSR1, signal.SIGSTOP):
    s, filled = full(socket.AF_UNIX); a = address(s); me = os.getpid(); r, w = os.pipe()
    t = threading.Thread(target=lambda: print(blocking(socket.socket(socket.AF_UNIX), a), flush=True)); t.start(); await_waiting(me)
    if os.fork() == 0:
        while open(f"/proc/{me}/task/{me}/syscall").read().split()[0] != str(clone): time.sleep(0.01)
        os.kill(me, number)
        c = socket.socket(socket.AF_UNIX); c.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("=qq", 0, 300000))
        print(blocking(c, a), flush=True); os.kill(me, signal.SIGCONT); os.write(w, b"x"); os._exit(0)
    if libc.syscall(clone, 0x4000 | signal.SIGCHLD, 0, 0, 0, 0) == 0:   # CLONE_VFORK: until the child ends, only death is heard
        os.read(r, 1); os._exit(0)
    for c in filled: c.close()
    threading.Thread(target=lambda s: [s.accept() for _ in range(99)], args=(s,), daemon=True).start()
    t.join(); os.unlink("full"); os.wait(); os.wait()
"""), timeout=60) == "EAGAIN\n0\nEAGAIN\n0\n"


def test_who_waits_is_told_when_its_time_is_over(shell):
    """SO_SNDTIMEO, as the kernel answers it."""
    assert shell(python(FULL + """
for family in (socket.AF_UNIX, socket.AF_INET):
    s, filled = full(family); c = socket.socket(family)
    c.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("=qq", 0, 100000)); print(blocking(c, address(s)))
""")) == "EAGAIN\nEINPROGRESS\n"


def test_many_wait_at_once(shell):
    """More than a thread pool has: each waits for its own server, and none is told to try again."""
    assert shell(python("""
for family in (socket.AF_INET, socket.AF_UNIX):
    s = socket.socket(family); s.bind("many" if family == socket.AF_UNIX else ("127.0.0.1", 0)); s.listen(1); done = []
    def one():
        c = socket.socket(family); c.connect(s.getsockname()); done.append(1)
    threads = [threading.Thread(target=one, daemon=True) for _ in range(300)]
    for t in threads: t.start()
    def accept(s):
        while True: s.accept()
    threading.Thread(target=accept, args=(s,), daemon=True).start()
    for t in threads: t.join()
    print(len(done))
"""), timeout=100) == "300\n300\n"


# As many as wait at once of one process (1024); one more says that it may not.
FILL = FULL + """
threading.stack_size(65536); s, filled = full(socket.AF_UNIX); c = socket.socket(socket.AF_UNIX); a = address(s); told = []
def fill(more):
    for _ in range(1024 + more): threading.Thread(target=lambda: told.append(blocking(c, a)), daemon=True).start()
    while not told: time.sleep(0.01)
"""


def test_one_process_leaves_room_for_others(session, shell):
    """Each has so many calls that wait, and is told when it has them; other commands of the policy go on."""
    id = shell.start(python(FILL + 'fill(1); print(*told, flush=True); sys.stdin.read(); print(*told)', "fill.py"), pipeStdin=True)
    session.wait_output(id, b"ENOBUFS", timeout=60)
    assert shell(python("""
s = socket.socket(socket.AF_UNIX); s.bind("o"); s.listen(1); done = []
threads = [threading.Thread(target=lambda: done.append(connect("o")), daemon=True) for _ in range(20)]
for t in threads: t.start()
for t in threads: s.accept()
for t in threads: t.join()
print(len(done))
"""), timeout=60) == "20\n"
    session.call("process/closeStdin", {"processId": id})
    assert session.finished(id).stdout == "ENOBUFS\nENOBUFS\n"


@pytest.mark.nightly
def test_many_processes_reach_the_limit_of_all(session, enabled):
    """Of one policy 4096 calls wait. Who would wait besides is told so, and who need not is served; with the attack that ends."""
    id = enabled.start(python(FILL + """
for _ in range(4):
    if os.fork() == 0: fill(1); print("full", flush=True); time.sleep(999)
time.sleep(999)
""", "fill.py"))
    session.wait_output(id, b"full\n" * 4, timeout=90)
    script = "rm full; " + python(FULL + """
s, filled = full(socket.AF_UNIX); a = address(s); pid = os.fork()
if pid == 0: print(blocking(socket.socket(socket.AF_UNIX), a), flush=True); os._exit(0)
if sys.stdin.read(): await_waiting(pid); s.accept()
os.waitpid(pid, 0)
""")
    assert enabled(script + " </dev/null") == "ENOBUFS\n"
    session.call("process/terminate", {"processId": id})
    session.finished(id)
    assert enabled(script + " <<<accept") == "0\n"


HOME = "mkdir -p h; export HOME=$PWD/h\n"
MULTIPROCESSING = """
import asyncio, multiprocessing as m
async def main():
    async def serve(r, w): w.write(await r.readline()); await w.drain(); w.close()
    server = await asyncio.start_unix_server(serve, "asyncio")
    r, w = await asyncio.open_unix_connection("asyncio"); w.write(b"asyncio\\n"); print((await r.readline()).decode().strip())
    server.close()
if __name__ == "__main__":
    with m.get_context("forkserver").Pool(2) as pool: print(pool.map(abs, [-1, 2]))
    with m.Manager() as g: print(g.list([3]))
    asyncio.run(main())
"""
XVFB = "xvfb-run -a sh -c 'ls /tmp/.X11-unix; xdpyinfo 2>/dev/null | grep -c screen; :'"
PROGRAMS = {
    "python3": (python(MULTIPROCESSING), "[1, 2]\n[3]\nasyncio\n"),
    "tmux": ("tmux new -d -s t 'sleep 100' && tmux ls && tmux kill-server", "t: 1 windows"),
    "ssh-agent": ("eval $(ssh-agent) >/dev/null; ssh-add -l; ssh-agent -k >/dev/null", "The agent has no identities."),
    "gpg-agent": ("export GNUPGHOME=$HOME/g; mkdir -m 700 $GNUPGHOME; gpg -q --batch --passphrase '' --quick-gen-key t 2>&1; "
                  "echo x | gpg -q --batch -s -a | head -1; gpgconf --kill all", "-----BEGIN PGP MESSAGE-----"),
    "postgres": ("p=$(dirname $(readlink -f $(command -v postgres))); $p/initdb -D pg -A trust >/dev/null && "
                 "$p/pg_ctl -D pg -w -l log -o \"-k $PWD -h ''\" start >/dev/null && $p/psql -h $PWD -d postgres -Atc 'select 42'; "
                 "$p/pg_ctl -D pg -m fast stop >/dev/null", "42"),
    "redis-server": ("redis-server --port 0 --unixsocket $PWD/r >/dev/null & until redis-cli -s r ping 2>/dev/null; do sleep .1; done; "
                     "redis-cli -s r shutdown nosave", "PONG"),
    "socat": ("socat UNIX-LISTEN:l EXEC:cat & until [ -S l ]; do sleep .1; done; echo through | socat - UNIX-CONNECT:l", "through"),
    "screen": ("export SCREENDIR=$HOME/s; mkdir -m 700 $SCREENDIR; screen -dmS x sleep 99; until screen -ls; do sleep .1; done | grep There; screen -S x -X quit", "There is a screen on"),
    "xvfb-run": (XVFB, "X"),
    "node": ("node -e 'const n = require(\"net\"); const s = n.createServer(c => c.end(\"over it\")).listen(\"n\", () => "
             "n.connect(\"n\").on(\"data\", d => { console.log(String(d)); s.close() }))'", "over it"),
    "chromium": ("echo '<b>made</b>' >x.html; chromium --headless --no-sandbox --disable-gpu --dump-dom file://$PWD/x.html 2>/dev/null", "<html>"),
}


@pytest.mark.parametrize("program", [pytest.param(p, marks=needs(p)) for p in PROGRAMS])
def test_programs(shell, program):
    script, says = PROGRAMS[program]
    out = shell("PATH=/usr/sbin:/usr/local/bin:$PATH\n" + HOME + script, timeout=90)
    assert out.startswith(says), out


def test_where_they_are_made(session, place):
    """A request that has such a variable keeps it."""
    said = "echo $TMPDIR $TMUX_TMPDIR; stat -c %a $TMPDIR"
    for network in NETWORKS:
        policy = workspace_write(place, network=network)
        assert Shell(session, policy, place)(said) == "/dev/tmp /dev/tmp\n1777\n"
        assert Shell(session, policy, place, {"TMPDIR": str(place)})(said).split()[:2] == [str(place), "/dev/tmp"]
        assert Shell(session, policy, place, {"TMPDIR": "/tmp", "TMUX_TMPDIR": "/tmp"})(said).split()[:2] == ["/tmp", "/tmp"]
    # What one policy puts there another one does not see; what is put there can be executed.
    Shell(session, policy, place)("printf '#!/bin/sh\\necho ran\\n' >$TMPDIR/f; chmod +x $TMPDIR/f; $TMPDIR/f")
    assert Shell(session, managed(READ_ALL, path(place, "write")), place)("ls $TMPDIR") == ""
    r = session.run(Shell(session, None, place).id(), ["/bin/sh", "-c", "echo ${TMPDIR-none}"])
    assert r.stdout == "none\n", "without a sandbox nothing is added"


# --- nothing outside is reached ------------------------------------------------

SERVE = """
import os, socket, sys, threading
sockets = {}
for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
    for name in ("host.%d" % kind, "\\0execd-test-%d-%d" % (kind, os.getpid())):
        s = socket.socket(socket.AF_UNIX, kind); s.bind(name); s.listen(99); sockets[name] = s
        if name[0] != "\\0": os.chmod(name, 0o777)
d = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); d.bind("host.datagram"); os.chmod("host.datagram", 0o777)
def serve(s):
    while True:
        s.accept(); print("BREACH", flush=True)
def receive():
    while True: print("BREACH", d.recv(99), flush=True)
for s in sockets.values(): threading.Thread(target=serve, args=(s,), daemon=True).start()
threading.Thread(target=receive, daemon=True).start()
print(os.getpid(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def host(user, place):
    """Programs of the same user outside: whoever they accept is a breach."""
    child = subprocess.Popen(as_user(user, ["/usr/bin/python3", "-c", SERVE]), cwd=place, text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.number = int(child.stdout.readline())
    yield child
    out, _ = child.communicate("")
    assert out == "", out


def test_no_socket_of_the_host(shell, host):
    """By whatever name, link or descriptor; also one that takes the place of an own one."""
    out = shell(python("""
for n in ("1", "5"):
    kind = socket.SOCK_STREAM if n == "1" else socket.SOCK_SEQPACKET
    own = bind("own" + n, kind); connect("own" + n, kind)
    os.symlink("host." + n, "link" + n); os.mkdir("d" + n); os.link("host." + n, "hard" + n)
    os.rename("own" + n, "gone" + n); os.rename("hard" + n, "own" + n); os.link("host." + n, "d" + n + "/hard")
    fd = os.open("host." + n, os.O_PATH)
    for name in ("host." + n, "link" + n, "own" + n, "d" + n + "/hard", "d" + n + "/../host." + n, os.getcwd() + "/host." + n,
                 "/proc/self/cwd/host." + n, "/proc/self/fd/%d" % fd, "/proc/self/root" + os.getcwd() + "/host." + n):
        for either in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET): tried("path", lambda: connect(name, either))
    tried("bind", lambda: bind("host." + n, kind)); connect("gone" + n, kind)
tried("datagram", lambda: connect("host.datagram"))
c = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); c.bind("own.datagram")
for s in (*socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM), c, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)):
    tried("pair", lambda: s.connect("host.datagram"))
    try: s.sendto(b"x", "host.datagram")
    except OSError: pass
    try: s.sendmsg([b"x"], [], 0, "host.datagram")
    except OSError: pass
"""))
    answers = {line.rsplit(" ", 1)[0]: set() for line in out.splitlines()}
    for line in out.splitlines():
        answers[line.rsplit(" ", 1)[0]].add(line.split()[-1])
    assert answers.pop("path") <= {"EPERM", "EACCES", "ELOOP", "ENOENT"} and out.count("path ") == 36, out
    # A pair is connected already.
    assert answers == {"bind": {"EADDRINUSE"}, "datagram": {"EPERM"}, "pair": {"EPERM"}}, out


def test_no_abstract_name(enabled, host):
    """They are the host's: none is bound, and none connected to."""
    out = enabled(python(f"""
for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
    tried("host", lambda: connect("\\0execd-test-%d-{host.number}" % kind, kind))
    tried("nobody's", lambda: connect("\\0execd-own-{host.number}", kind))
    tried("own", lambda: bind("\\0execd-own-{host.number}", kind))
    tried("any", lambda: socket.socket(socket.AF_UNIX, kind).bind(""))
"""))
    assert out.splitlines() == ["host EPERM", "nobody's ECONNREFUSED", "own EPERM", "any EPERM"] * 2


def test_an_abstract_name_of_credentials_serves_nobody(session, enabled, place):
    """The kernel gives one to a socket that passes credentials when it connects (unix(7))."""
    id = enabled.start(python("""
s = socket.socket(socket.AF_UNIX); s.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
silent = socket.socket(socket.AF_UNIX); silent.bind("silent"); tried("silent", lambda: s.connect("silent"))
s.settimeout(0); s.listen(); open("name", "wb").write(s.getsockname()); print("ready", flush=True)
sys.stdin.read(); tried("accept", s.accept)
"""), pipeStdin=True)
    session.wait_output(id, b"ready")
    name = (place / "name").read_bytes()
    assert name[:1] == b"\0"
    with socket.socket(socket.AF_UNIX) as s, pytest.raises(ConnectionRefusedError):
        s.connect(name)
    session.call("process/closeStdin", {"processId": id})
    assert "accept EAGAIN" in session.finished(id).stdout


def test_a_connection_with_credentials_is_kept(shell):
    """Whoever connects it once more is told so, and it goes on."""
    assert shell(python("""
server = bind("s"); s = socket.socket(socket.AF_UNIX); s.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
s.connect("s"); other = bind("o"); tried("again", lambda: s.connect("o")); d, _ = server.accept()
s.send(b"to"); d.send(b"fro"); print(d.recv(9), s.recv(9))
""")) == "again EISCONN\nb'to' b'fro'\n"


def test_another_sandbox_is_outside(server, session, enabled, place):
    """Its sockets are no more this one's than the host's: another policy, another session, and what has ended."""
    server_id = enabled.start(python('s = bind("s"); print("ready", flush=True); sys.stdin.read()', "server.py"), pipeStdin=True)
    session.wait_output(server_id, b"ready")
    other = server.ready()
    other.server = server
    client = python('tried("it", lambda: connect("s"))', "client.py")
    assert enabled(client) == "it done\n"
    for box in (Shell(session, managed(READ_ALL, path(place, "write"), network="enabled"), place),
                Shell(session, workspace_write(place), place),
                Shell(other, workspace_write(place, network="enabled"), place)):
        assert box(client) == "it EPERM\n"
    session.call("process/terminate", {"processId": server_id})
    session.finished(server_id)
    for box in (enabled, Shell(other, workspace_write(place, network="enabled"), place)):
        assert box(client) == "it ECONNREFUSED\n"
    other.drop()


def test_names_that_change_meanwhile(enabled, host):
    """Address, link, file and descriptor are exchanged while the proxy looks: what was judged is what is connected or bound."""
    out = enabled(python(f"""
libc = ctypes.CDLL(None, use_errno=True)
own = bind("own"); own.settimeout(0)
def address(name): return struct.pack("=H108s", 1, name if isinstance(name, bytes) else name.encode())
texts = [address(n) for n in ("own", "host.1", "way", b"\\0execd-test-1-{host.number}", "here/own")]
names = [address(n) for n in ("made", b"\\0execd-race-{host.number}", "here/made", "/tmp/execd-race-{host.number}")]
to, name = (ctypes.create_string_buffer(a[0]) for a in (texts, names))
os.mkdir("mine"); os.link("own", "mine/own"); os.mkdir("theirs"); os.link("host.1", "theirs/own")
stop = False
def change():
    n = 0
    while not stop: n += 1; ctypes.memmove(to, texts[n % 5], 110); ctypes.memmove(name, names[n % 4], 110)
def rename():
    while not stop:
        for file, place in (("own", "mine"), ("host.1", "theirs"), ("host.1", "/tmp")):
            os.symlink(file, "way.new"); os.rename("way.new", "way")
            os.symlink(place, "here.new"); os.rename("here.new", "here")
victim = socket.socket(socket.AF_UNIX).detach()
def replace():
    while not stop:
        for family in (socket.AF_UNIX, socket.AF_INET):
            with socket.socket(family) as s: os.dup2(s.fileno(), victim)
threads = [threading.Thread(target=f) for f in (change, rename, replace)]
for t in threads: t.start()
end = time.monotonic() + 4; good = bound = 0
while time.monotonic() < end:
    good += libc.connect(victim, to, 110) == 0
    with socket.socket(socket.AF_UNIX) as s:
        if libc.bind(s.fileno(), name, 110) == 0:
            bound += 1
            if s.getsockname()[:1] in (b"", b"\\0") or "execd-race" in str(s.getsockname()): print("BREACH", s.getsockname())
    for file in ("made", "mine/made", "theirs/made", "/tmp/made", "/tmp/execd-race-{host.number}"):
        try:
            if file[0] == "/" and not os.path.islink(file) and os.path.lexists(file): print("BREACH", file)
            os.unlink(file)
        except OSError: pass
    try:
        while True: own.accept()
    except OSError: pass
stop = True
for t in threads: t.join()
print(good > 0, bound > 0)
"""), timeout=60)
    assert out == "True True\n"
    assert not os.path.lexists(f"/tmp/execd-race-{host.number}")


def test_what_was_bound_is_what_counts(enabled, host):
    """The name of a socket becomes that of a host's socket as soon as it is bound."""
    assert enabled(python("""
stop = False
def swap():
    while not stop:
        try: os.unlink("s"); os.link("host.1", "s")
        except OSError: pass
t = threading.Thread(target=swap); t.start(); reached = 0
for _ in range(1500):
    try: bind("s")
    except OSError: pass
    try: connect("s"); reached += 1
    except OSError: pass
    try: os.unlink("s")
    except OSError: pass
stop = True; t.join(); print("end")
"""), timeout=60) == "end\n"


def test_what_is_handed_in(user, session, enabled, host, place):
    """Sockets that a program outside gives away: none of them is connected to, or bound as, what no own one could be."""
    id = enabled.start(python("""
os.umask(0); s = bind("give"); print("ready", flush=True); c, _ = s.accept()
fds = array.array("i", c.recvmsg(1, 64)[1][0][2])
datagram, stream = (socket.socket(fileno=fd) for fd in fds)
tried("datagram to host", lambda: datagram.connect("host.datagram")); tried("datagram named", lambda: datagram.bind("d"))
tried("stream to host", lambda: stream.connect("host.1")); tried("stream abstract", lambda: stream.bind("\\0execd-given"))
"""))
    session.wait_output(id, b"ready")
    as_test_user(user, """/usr/bin/python3 -c '
import array, socket
c = socket.socket(socket.AF_UNIX); c.connect("give")
s = [socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), socket.socket(socket.AF_UNIX)]
c.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [x.fileno() for x in s]))])'""", place)
    assert session.finished(id).stdout.splitlines()[1:] == [
        "datagram to host EPERM", "datagram named EPERM", "stream to host EPERM", "stream abstract EPERM"]


# --- nothing is left where programs outside look -------------------------------

def leads_nowhere(user, name):
    """What is there is a link, and neither the user nor a program of his finds anything behind it."""
    assert os.path.islink(name) and not os.path.exists(name)
    r = direct(user, ["/usr/bin/python3", "-c", f"import socket; socket.socket(socket.AF_UNIX).connect('{name}')"], "/")
    assert r.returncode != 0 and b"FileNotFoundError" in r.stderr, r


@pytest.mark.parametrize("network", NETWORKS)
def test_none_in_the_hosts_tmp(user, session, network, place, tmp_name):
    """Neither made, linked, renamed nor carried in with its directory; in a workspace that lies there they are. With the
    network of the host one is made in /dev/tmp, and the name is a link to it."""
    inside = f"/tmp/{tmp_name}"
    out = Shell(session, workspace_write(place, network=network), place)(python(f"""
keep = [bind("s"), bind(os.environ["TMPDIR"] + "/s")]
os.mkdir("d"); keep.append(bind("d/default")); os.symlink("/tmp", "t"); os.mkdir("{inside}")
def make(name): keep.append(bind(name)); keep.append(connect(name))
tried("made", lambda: make("{inside}/made")); tried("by a link", lambda: make("t/{tmp_name}/linked"))
os.chdir("{inside}"); tried("relative", lambda: make("relative")); os.chdir("{place}")
for name in ("s", os.environ["TMPDIR"] + "/s", "d"): tried("renamed", lambda: os.rename(name, "{inside}/default"))
for name in ("s", os.environ["TMPDIR"] + "/s"): tried("linked", lambda: os.link(name, "{inside}/default"))
"""))
    here = "done" if network == "enabled" else "EACCES"
    assert dict(line.rsplit(" ", 1) for line in out.splitlines()) == {
        "made": here, "by a link": here, "relative": here, "renamed": "EXDEV", "linked": "EXDEV"}, out
    assert sorted(os.listdir(inside)) == (["linked", "made", "relative"] if network == "enabled" else [])
    for name in os.listdir(inside):
        leads_nowhere(user, f"{inside}/{name}")


def test_a_name_in_tmp_is_as_a_socket_would_be(user, session, enabled, place, tmp_name):
    """Its mode, its errors, and what a JVM does: another name of it. It is this sandbox's, and no other's."""
    as_test_user(user, f"mkdir /tmp/{tmp_name}", "/")
    script = python(f"""
os.chdir("/tmp/{tmp_name}"); os.umask(0o027)
s = bind("s"); print(oct(os.stat("s").st_mode & 0o777)); connect("s"); tried("again", lambda: bind("s"))
os.chmod("s", 0o600); os.chown("s", os.geteuid(), os.getegid()); os.rename("s", "t"); c = connect("/tmp/{tmp_name}/t")
s.accept(); s.accept()[0].send(b"hi"); print(c.recv(9)); tried("bound", lambda: s.bind("u")); s.close(); tried("stale", lambda: connect("t"))
tried("taken", lambda: bind("t")); os.unlink("t"); kept = bind("t"); tried("missing", lambda: bind("none/s"))
print(sorted(os.listdir()), flush=True); sys.stdin.read()
""", f"{place}/p.py")
    id = enabled.start(script, pipeStdin=True)
    session.wait_output(id, b"['t']")
    other = Shell(session, workspace_write(place, network="enabled", more=[path("/usr", "read"), path("/srv", "deny")]), place)
    assert other(python(f'tried("of another", lambda: connect("/tmp/{tmp_name}/t"))', "q.py")) == "of another ENOENT\n"
    leads_nowhere(user, f"/tmp/{tmp_name}/t")
    session.call("process/closeStdin", {"processId": id})
    assert session.finished(id).stdout.splitlines() == [
        "0o750", "again EADDRINUSE", "b'hi'", "bound EINVAL", "stale ECONNREFUSED", "taken EADDRINUSE", "missing ENOENT", "['t']"]


def test_who_takes_the_place_of_a_name_in_tmp(user, session, enabled, tmp_name):
    """A program outside that makes its socket there is a stranger."""
    as_test_user(user, f"mkdir /tmp/{tmp_name}", "/")
    id = enabled.start(python(f"""
os.chdir("/tmp/{tmp_name}"); own = bind("s"); connect("s"); print("up", flush=True); sys.stdin.readline()
tried("theirs", lambda: connect("s"))
"""), pipeStdin=True)
    session.wait_output(id, b"up")
    theirs = subprocess.Popen(as_user(user, ["/usr/bin/python3", "-c", "import os, socket; os.unlink('s'); s = socket.socket(socket.AF_UNIX); "
                                             "s.bind('s'); s.listen(); print('up', flush=True); input()"]),
                              cwd=f"/tmp/{tmp_name}", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert theirs.stdout.readline() == "up\n"
    session.write(id, "\n")
    assert session.finished(id).stdout == "up\ntheirs EPERM\n"
    theirs.communicate("\n")


def test_none_from_a_workspace_in_tmp(user, session, tmp_name):
    """There a workspace is a place of its own: nothing is renamed or linked out of it, nor is it itself."""
    work = f"/tmp/{tmp_name}/work"
    as_test_user(user, f"mkdir -p {work}", "/")
    for network, beside in zip(NETWORKS, ("beside it done", "beside it EACCES")):
        box = Shell(session, workspace_write(work, network=network), work)
        assert box(python("""
os.mkdir("d"); keep = [bind("s"), bind("d/default")]; connect("s")
tried("renamed", lambda: os.rename("s", "../s")); tried("linked", lambda: os.link("s", "../s"))
tried("with its directory", lambda: os.rename("d", "../d")); tried("the workspace", lambda: os.rename("../work", "../other"))
tried("beside it", lambda: keep.append(bind("../s"))); os.unlink("s"); os.unlink("d/default"); os.rmdir("d")
""")).splitlines() == ["renamed EXDEV", "linked EXDEV", "with its directory EXDEV", "the workspace EBUSY", beside]
        if os.path.lexists(f"{work}/../s"):
            leads_nowhere(user, f"/tmp/{tmp_name}/s")
            os.unlink(f"/tmp/{tmp_name}/s")


def test_a_host_socket_in_tmp_stays_where_it_is(user, shell, tmp_name):
    """A command may remove what its user has there; it makes no other name of it."""
    as_test_user(user, f"mkdir /tmp/{tmp_name}; cd /tmp/{tmp_name}; "
                 "/usr/bin/python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"old\")'", "/")
    assert shell(python(f"""
os.chdir("/tmp/{tmp_name}"); os.mkdir("d")
tried("renamed", lambda: os.rename("old", "new")); tried("moved", lambda: os.rename("old", "d/new")); tried("linked", lambda: os.link("old", "new"))
""")).splitlines() == ["renamed EACCES", "moved EACCES", "linked EACCES"]


def test_tmpdir_of_the_host(spawn, user, place):
    """The session's TMPDIR is such a place, too."""
    as_test_user(user, "mkdir temporary work", place)
    server = spawn(env={**os.environ, "TMPDIR": f"{place}/temporary"})
    client = server.ready()
    box = Shell(client, workspace_write(place / "work"), place / "work", {"TMPDIR": f"{place}/temporary"})
    if server.mode == "root":
        pytest.skip("ONLY SINGLE-USER MODE IS TESTED: root's sessions have no TMPDIR of execd's environment")
    assert box(python("""
open(os.environ["TMPDIR"] + "/f", "w").close(); tried("made", lambda: bind(os.environ["TMPDIR"] + "/s"))
s = bind("s"); tried("linked", lambda: os.link("s", os.environ["TMPDIR"] + "/s"))
""")).splitlines() == ["made EACCES", "linked EXDEV"]
    client.drop()


@needs("tmux")
def test_the_users_own_tmux(user, shell, tmp_name):
    """Measured once: a command took the place of the user's server, whose next `tmux attach` then did what it said."""
    inside = f"/tmp/{tmp_name}"
    as_test_user(user, f"mkdir -m 700 {inside}", "/")
    r = shell.run(f"TMUX_TMPDIR={inside} tmux new -d -s stolen 'sleep 99'; tmux new -d -s own 'sleep 99'; tmux ls")
    assert r.stdout.startswith("own:"), (r.stdout, r.stderr)
    out = direct(user, ["/usr/bin/tmux", "ls"], "/", {"TMUX_TMPDIR": inside})
    assert out.returncode == 1 and b"stolen" not in out.stdout + out.stderr
    # And the other way: the server of the user is not reached.
    as_test_user(user, f"TMUX_TMPDIR={inside} tmux new -d -s mine 'sleep 99'", "/")
    try:
        r = shell.run(f"TMUX_TMPDIR={inside} tmux ls")
        assert r.code != 0 and "mine" not in r.stdout
    finally:
        as_test_user(user, f"TMUX_TMPDIR={inside} tmux kill-server", "/")


def test_x_servers_have_a_place_of_their_own(session, enabled, shell):
    assert shell(python("""
if not os.path.isdir("/tmp/.X11-unix"): print("none")
else:
    s = bind("/tmp/.X11-unix/X%d" % os.getpid()); connect("/tmp/.X11-unix/X%d" % os.getpid()); print(len(os.listdir("/tmp/.X11-unix")))
""")) in ("1\n", "none\n")
    assert enabled("ls -A /tmp/.X11-unix | grep -v ^X; stat -fc %T /tmp/.X11-unix") == "tmpfs\n"
    assert not any(n.startswith("X") and not os.path.exists("/tmp/.X11-unix/" + n) for n in os.listdir("/tmp/.X11-unix"))


def test_a_private_tmp_is_its_own(configured, user, place):
    """There sockets are made in /tmp itself."""
    server = configured(f"[listener l]\naddress = ws://127.0.0.1:0\nallow-unauthenticated = x\n[identity x]\n"
                        f"user = {user.pw_name}\nsandbox-tmp = private\n")
    client = server.ready()
    for network in NETWORKS:
        assert Shell(client, workspace_write(place, network=network), place)(
            python('s = bind("/tmp/s"); connect("/tmp/s"); print(os.listdir("/tmp")); os.unlink("/tmp/s")')) == "['s']\n"
        if shutil.which("dbus-run-session"):
            assert "org.freedesktop.DBus" in Shell(client, workspace_write(place, network=network), place)("dbus-run-session -- " + LIST_NAMES)
    client.drop()


LIST_NAMES = "dbus-send --session --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.ListNames"


@needs("dbus-run-session")
def test_what_wants_tmp_itself(session, enabled, place):
    """It works with the network of the host, and says why with none."""
    assert "org.freedesktop.DBus" in enabled("dbus-run-session -- " + LIST_NAMES)
    shell = Shell(session, workspace_write(place), place)
    r = shell.run("dbus-run-session -- true")
    assert r.code != 0 and 'Failed to bind socket "/tmp/dbus-' in r.stderr and "Permission denied" in r.stderr and r.denied, r.stderr
    assert "org.freedesktop.DBus" in shell("""sed "s,unix:tmpdir=/tmp,unix:tmpdir=$TMPDIR," /usr/share/dbus-1/session.conf >c.conf
dbus-run-session --config-file=$PWD/c.conf -- """ + LIST_NAMES)


def test_the_socket_of_execd_ctl_is_hidden(user, server, shell):
    """An ordinary user's is in his home, which is read-only here."""
    if server.mode == "root":
        pytest.skip("ONLY SINGLE-USER MODE IS TESTED: root's socket is below /run")
    place = f"{user.pw_dir}/.local/state/execd"
    assert f"ctl.{server.pid}" in direct(user, ["ls", place], "/").stdout.decode()
    assert shell(f"ls -A {place}; ls -A {user.pw_dir}/.local/state") == "execd\n"


@pytest.fixture
def tmp_name(user):
    """A name in the host's /tmp that is gone afterwards."""
    name = f"execd-own-{os.getpid()}"
    yield name
    as_test_user(user, f"rm -rf /tmp/{name}", "/")
