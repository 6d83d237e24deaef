# SPDX-License-Identifier: ISC
"""A restricted network is a loopback of the sandbox's own: honest work with
servers on 127.0.0.1, ::1 and UNIX sockets, and nothing that leads out of it.
"""
import os
import shutil
import socket
import subprocess

import pytest
from conftest import Shell, children, name, poll
from integration_conftest import as_user
from policies import READ_ALL, managed, path, workspace_write


@pytest.fixture
def shell(session, place):
    return Shell(session, workspace_write(place), place)


def python(text, file="p.py"):
    """A script that holds both kinds of quotes."""
    return f"cat >{file} <<'END'\nimport errno, os, socket, struct, sys, threading, time\n{text}\nEND\n/usr/bin/python3 {file}"


def needs(program):
    return pytest.mark.skipif(not shutil.which(program, path="/usr/bin:/bin"),
                              reason=f"NOT TESTED: {program} is not installed")


# --- honest work ---------------------------------------------------------------

def test_tcp_and_udp(shell):
    assert shell(python("""
for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    for wait in (None, 5):
        server = socket.socket(family)
        server.bind((host, 0)); server.listen()
        client = socket.socket(family); client.settimeout(wait); client.connect(server.getsockname()[:2])
        there, _ = server.accept()
        client.sendall(b"over " + host.encode()); client.shutdown(socket.SHUT_WR)
        print(there.makefile().read(), client.getblocking())
a, b, c = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(3))
a.bind(("127.0.0.1", 0)); b.sendto(b"datagram", a.getsockname()); print(a.recv(99))
c.connect(a.getsockname()); c.send(b"connected"); print(a.recv(99))
s = socket.socket()
try: s.connect(("127.0.0.1", 1))
except ConnectionRefusedError: print("refused")
""")).splitlines() == ["over 127.0.0.1 True"] * 2 + ["over ::1 True"] * 2 + ["b'datagram'", "b'connected'", "refused"]


def test_unix(shell):
    assert shell(python("""
for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
    for name in ("made", os.environ["TMPDIR"] + "/made", os.getcwd() + "/made", "\\0abstract"):
        s = socket.socket(socket.AF_UNIX, kind); s.bind(name); s.listen()
        c = socket.socket(socket.AF_UNIX, kind); c.connect(name)
        d, _ = s.accept(); c.send(b"hi"); print(d.recv(99), c.getpeername() == s.getsockname())
        cred = struct.unpack("3i", d.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        assert cred[1:] == (os.getuid(), os.getgid()), cred
        if name[0] != "\\0": os.unlink(name)
os.mkdir("d"); os.symlink("d/s", "link"); s = socket.socket(socket.AF_UNIX); s.bind("d/s"); s.listen()
for name in ("link", "d/../d/s"): socket.socket(socket.AF_UNIX).connect(name)
for name, error in (("none", FileNotFoundError), ("p.py", ConnectionRefusedError), ("d", ConnectionRefusedError)):
    try: socket.socket(socket.AF_UNIX).connect(name)
    except error: print(error.__name__)
""")).splitlines() == ["b'hi' True"] * 8 + ["FileNotFoundError"] + ["ConnectionRefusedError"] * 2


def test_a_connection_waits_for_its_server(shell):
    """As long as its queue is full, and no longer; a signal interrupts."""
    assert shell(python("""
import signal
unix = socket.socket(socket.AF_UNIX); unix.bind("s"); unix.listen(0)
tcp = socket.socket(); tcp.bind(("127.0.0.1", 0)); tcp.listen(0)
for server in (unix, tcp):
    first = []
    while True:   # until its queue is full
        c = socket.socket(server.family); c.setblocking(False)
        e = c.connect_ex(server.getsockname())
        if e == errno.EAGAIN or (e == errno.EINPROGRESS and len(first) > 2): break
        first.append(c)
    c.close()
    # Handshakes that came before may still be under way (tcpi_unacked: how many wait).
    while server is tcp and not struct.unpack_from("I", tcp.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104), 24)[0]:
        time.sleep(0.01)
    waits = socket.socket(server.family); done = []
    t = threading.Thread(target=lambda: done.append(waits.connect(server.getsockname()))); t.start()
    t.join(0.3); assert not done
    taken = []
    def accept(server=server):
        while True: taken.append(server.accept())
    threading.Thread(target=accept, daemon=True).start()
    t.join(30); print(done, waits.getblocking())
def late(*_): raise InterruptedError
signal.signal(signal.SIGALRM, late)
nobody = socket.socket(socket.AF_UNIX); nobody.bind("n"); nobody.listen(0)
while True:
    c = socket.socket(socket.AF_UNIX); c.setblocking(False)
    if c.connect_ex("n") == errno.EAGAIN: break
    first.append(c)
signal.setitimer(signal.ITIMER_REAL, 0.2)
try: socket.socket(socket.AF_UNIX).connect("n")
except InterruptedError: print("interrupted")
"""), timeout=60).splitlines() == ["[None] True"] * 2 + ["interrupted"]


HTTP = {
    "python": "/usr/bin/python3 -u -m http.server --bind 127.0.0.1 0 2>/dev/null >port & "
              "until grep -q port port; do sleep 0.1; done; p=$(grep -o 'port [0-9]*' port | cut -c6-)",
    "node": "node -e 'const s = require(\"http\").createServer((q, a) => a.end(\"f\")).listen(0, \"127.0.0.1\", "
            "() => console.log(\"port \" + s.address().port))' >port & "
            "until grep -q port port; do sleep 0.1; done; p=$(grep -o 'port [0-9]*' port | cut -c6-)",
}


@pytest.mark.parametrize("which", HTTP)
def test_a_web_server(shell, which):
    if which == "node" and not shutil.which("node", path="/usr/bin:/bin"):
        pytest.skip("NOT TESTED: node is not installed")
    assert shell(f"echo f >f; {HTTP[which]}; /usr/bin/python3 -c 'import sys, urllib.request as u; "
                 "print(u.urlopen(f\"http://127.0.0.1:{sys.argv[1]}/f\").read())' $p; kill %1").startswith("b'f")


def test_multiprocessing(shell):
    """Its fork server and its managers are UNIX sockets, abstract and with a path."""
    assert shell(python("""
import multiprocessing as m
def square(n): return n * n
if __name__ == "__main__":
    m.set_start_method("forkserver")
    with m.Pool(2) as pool: print(pool.map(square, range(5)))
    with m.Manager() as manager:
        d = manager.dict(); p = m.Process(target=d.update, args=({"k": 1},)); p.start(); p.join(); print(dict(d))
"""), timeout=60) == "[0, 1, 4, 9, 16]\n{'k': 1}\n"


HOME = "mkdir -p h; export HOME=$PWD/h TMPDIR=$PWD/h\n"


@needs("tmux")
def test_tmux(shell):
    assert shell(HOME + "export TMUX_TMPDIR=$HOME; tmux new -d -s t 'sleep 100' && tmux ls && tmux kill-server").startswith("t:")


@needs("gpg-agent")
def test_gpg_agent(shell):
    assert "BEGIN PGP MESSAGE" in shell(
        HOME + "export GNUPGHOME=$HOME/g; mkdir -m 700 $GNUPGHOME; "
        "gpg -q --batch --passphrase '' --quick-gen-key t 2>&1 && echo x | gpg -q --batch -s -a && "
        "gpg-connect-agent 'getinfo pid' /bye && gpgconf --kill all", timeout=90)


@needs("ssh-agent")
def test_ssh_agent(shell):
    assert "agent has no identities" in shell("eval $(ssh-agent -a $PWD/a) >/dev/null; ssh-add -l; kill $SSH_AGENT_PID")


SERVER = python("""
s = socket.socket(); s.bind(("127.0.0.1", 4321)); s.listen(); print("ready", flush=True)
c, _ = s.accept(); c.sendall(b"from another command")
""", "server.py")
CLIENT = python("print(socket.create_connection((\"127.0.0.1\", 4321)).recv(99))", "client.py")


def test_commands_of_one_policy_share_it(session, shell, place):
    server = shell.start(SERVER)
    poll(lambda: shell.run("grep -q 10E1 /proc/net/tcp").code == 0, what="a server that listens")
    assert shell(CLIENT) == "b'from another command'\n"
    assert session.finished(server).code == 0


def test_nobody_else_does(session, server, shell, place):
    """Neither another policy of the session, nor another session, nor a command without a sandbox."""
    running = shell.start(SERVER)
    poll(lambda: shell.run("grep -q 10E1 /proc/net/tcp").code == 0, what="a server that listens")
    other = server.ready()
    other.server = server
    for box in (Shell(session, managed(READ_ALL, path(place, "write")), place),
                Shell(other, workspace_write(place), place)):
        assert box("grep -c 10E1 /proc/net/tcp || true").split() == ["0"]
        assert "ConnectionRefusedError" in box.run(CLIENT).stderr
    for family, at in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        assert socket.socket(family).connect_ex((at, 4321)) != 0
    session.call("process/terminate", {"processId": running})
    session.finished(running)
    other.drop()


def test_the_answer_says_it(session, place):
    for network, said in (("restricted", {"loopback": True, "unixSockets": "own"}),
                          ("enabled", {"loopback": False, "unixSockets": "own"})):
        box = Shell(session, workspace_write(place, network=network), place)
        m = session.start(id := box.id(), ["/bin/true"], **box.params())
        session.finished(id)
        enforced = m["result"]["sandbox"]["enforced"]
        assert {k: enforced[k] for k in said} == said, enforced


# --- attacks -------------------------------------------------------------------

def attempt(text):
    """What each line of calls answers: a word, or the name of the error."""
    return python("""
def tried(what, call):
    try:
        call(); print(what, "BREACH")
    except OSError as e: print(what, errno.errorcode[e.errno])
""" + text)


def test_no_address_outside(shell):
    """They are refused, and the client can see that it was the sandbox."""
    r = shell.run(attempt("""
for host in ("1.1.1.1", "10.0.0.1", "169.254.169.254", "192.168.1.1", "8.8.8.8"):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        tried(host, lambda: socket.socket(socket.AF_INET, kind).connect((host, 53)))
    tried(host, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", (host, 53)))
for host in ("2606:4700::1111", "fe80::1", "fd00::1", "::ffff:1.1.1.1"):
    tried(host, lambda: socket.socket(socket.AF_INET6).connect((host, 53)))
tried("multicast", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("224.0.0.1", 53)))
tried("fast open", lambda: socket.socket().sendto(b"x", 0x20000000, ("1.1.1.1", 53)))
socket.create_connection(("1.1.1.1", 53))
"""))
    answers = [line.split()[-1] for line in r.stdout.splitlines()]
    # fe80::1 needs an interface to be asked for at all.
    assert len(answers) == 21 and set(answers) <= {"EACCES", "EINVAL", "ENETUNREACH"}, r.stdout
    assert answers.count("EACCES") >= 19, r.stdout
    assert r.code == 1 and r.denied is True, r.stderr


@pytest.fixture
def host(user, place):
    """Programs of the same user outside: whoever they accept is a breach."""
    script = """
import os, socket, sys, threading
unix = socket.socket(socket.AF_UNIX); unix.bind("host.sock"); os.chmod("host.sock", 0o777)
abstract = socket.socket(socket.AF_UNIX); abstract.bind("\\0execd-test-%d" % os.getpid())
tcp = socket.socket(); tcp.bind(("127.0.0.1", 0))
def serve(s):
    while True:
        s.accept(); print("BREACH", flush=True)
for s in (unix, abstract, tcp):
    s.listen(99); threading.Thread(target=serve, args=(s,), daemon=True).start()
print(os.getpid(), tcp.getsockname()[1], flush=True)
sys.stdin.read()
"""
    child = subprocess.Popen(as_user(user, ["/usr/bin/python3", "-c", script]), cwd=place, text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.at = child.stdout.readline().split()
    yield child
    out, _ = child.communicate("")
    assert out == "", out


def test_nothing_of_the_host(shell, host, server):
    pid, port = host.at
    own = server.url.rsplit(":", 1)[1]
    r = shell.run(attempt(f"""
for port in ({port}, {own}):
    for at in ("127.0.0.1", "127.0.0.2", "0.0.0.0"):
        tried("port", lambda: socket.socket().connect((at, port)))
    tried("port", lambda: socket.socket(socket.AF_INET6).connect(("::1", port)))
    tried("port", lambda: socket.socket(socket.AF_INET6).connect(("::ffff:127.0.0.1", port)))
tried("abstract", lambda: socket.socket(socket.AF_UNIX).connect("\\0execd-test-{pid}"))
os.symlink("host.sock", "link"); os.mkdir("d"); os.rename("host.sock", "d/host.sock"); os.link("d/host.sock", "hard")
names = ["d/host.sock", "link", "hard", os.getcwd() + "/hard", "d/../hard", "/proc/self/cwd/hard"]
fd = os.open("hard", os.O_PATH); names += ["/proc/self/fd/%d" % fd, "/proc/%d/fd/%d" % (os.getpid(), fd)]
for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
    for name in names:
        tried("path", lambda: socket.socket(socket.AF_UNIX, kind).connect(name))
"""))
    lines = [line.split() for line in r.stdout.splitlines()]
    assert len(lines) == 10 + 1 + 16, (r.stdout, r.stderr)
    for what, answer in lines:
        assert answer in {"port": ("ECONNREFUSED", "EADDRNOTAVAIL"), "abstract": ("ECONNREFUSED",),
                          "path": ("EPERM", "EACCES", "ELOOP", "ENOENT")}[what], r.stdout


def test_what_leads_out_is_no_kind_of_socket(shell):
    out = shell(attempt("""
kinds = {"packet": (17, 3, 0), "packet datagram": (17, 2, 0), "raw": (2, 3, 1), "raw6": (10, 3, 58), "vsock": (40, 1, 0),
         "alg": (38, 5, 0), "bluetooth": (31, 5, 0), "xdp": (44, 3, 0), "tipc": (30, 5, 0), "key": (15, 3, 2),
         "unix raw": (1, 3, 0)}
for what, kind in kinds.items(): tried(what.replace(" ", "-"), lambda: socket.socket(*kind))
tried("pair", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_RAW))
for protocol in range(1, 32): tried("netlink", lambda: socket.socket(16, 3, protocol))
"""))
    assert {line.split()[1] for line in out.splitlines()} == {"EPERM"}, out


def test_its_namespace_cannot_be_changed(shell):
    """Routing netlink answers questions about the loopback, and takes no orders."""
    out = shell(python("""
def order(type, body):
    s = socket.socket(16, 3, 0)
    s.send(struct.pack("=IHHII", 16 + len(body), type, 5, 1, 0) + body)
    return errno.errorcode[-struct.unpack("=i", s.recv(999)[16:20])[0]]
print(order(16, struct.pack("=BBHiII", 0, 0, 0, 1, 0, 1)),           # lo down
      order(24, struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 254, 3, 0, 1, 0)),
      order(25, struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 254, 3, 0, 8, 0)))
print([n for _, n in socket.if_nameindex()])
import fcntl
try: fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh14x", b"lo", 0))
except OSError as e: print(errno.errorcode[e.errno])
for name in ("ip_forward", "ip_unprivileged_port_start"):
    try: open("/proc/sys/net/ipv4/" + name, "w").write("1")
    except OSError as e: print(errno.errorcode[e.errno])
"""))
    assert out.splitlines()[:3] == ["EPERM EPERM EPERM", "['lo']", "EPERM"], out
    assert set(out.split()[-2:]) <= {"EROFS", "EACCES", "ENOENT"}, out


def test_proc_net_is_its_own(shell, host):
    pid, port = host.at
    out = shell("cat /proc/net/tcp /proc/net/tcp6 /proc/net/udp /proc/net/unix /proc/self/net/tcp /proc/net/route; "
                "cat /proc/net/dev; cat /proc/1/net/tcp 2>/dev/null; :")
    assert f":{int(port):04X}" not in out and "execd-test" not in out and "sock" not in out.split("lo:")[0].lower().replace("sockets", ""), out
    assert [line.split(":")[0].strip() for line in out.splitlines() if line.count(":") == 1 and "lo" in line] == ["lo"], out


def test_an_address_that_changes(shell, host):
    """While the proxy looks, a thread changes the address, the name and the socket: what was judged is connected."""
    out = shell(python("""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
own = socket.socket(socket.AF_UNIX); own.bind("own"); own.listen(4096)
tcp = socket.socket(); tcp.bind(("127.0.0.1", 0)); tcp.listen(4096)
def address(path): return struct.pack("=H108s", 1, path.encode())
here = ctypes.create_string_buffer(address("own"))
texts = [address("own"), address("host.sock"), address("way"), struct.pack("=H", 2) + struct.pack("!H4s", tcp.getsockname()[1], bytes([127, 0, 0, 1])) + bytes(102)]
stop = False
def change():
    n = 0
    while not stop: n += 1; ctypes.memmove(here, texts[n % 4], 110)
def rename():
    while not stop:
        for to in ("own", "host.sock"):
            os.symlink(to, "way.new"); os.rename("way.new", "way")
victim = socket.socket(socket.AF_UNIX).detach()
def replace():
    while not stop:
        for family in (socket.AF_UNIX, socket.AF_INET):
            with socket.socket(family) as s: os.dup2(s.fileno(), victim)
threads = [threading.Thread(target=f) for f in (change, rename, replace)]
for t in threads: t.start()
end = time.monotonic() + 3; good = 0
while time.monotonic() < end: good += libc.connect(victim, here, 110) == 0
stop = True
for t in threads: t.join()
print(good)
"""), timeout=60)
    assert int(out) > 0


def test_a_socket_that_was_handed_in(user, shell, host, place):
    """A process outside gives one of its own: it cannot be connected inside."""
    _, port = host.at
    id = shell.start(attempt(f"""
import array
s = socket.socket(socket.AF_UNIX); s.bind("give"); os.chmod("give", 0o777); s.listen(); c, _ = s.accept()
_, [(_, _, data)], _, _ = c.recvmsg(1, 64)
for fd in array.array("i", data):
    tried("socket", lambda: socket.socket(fileno=fd).connect(("127.0.0.1", {port})))
"""))
    poll(lambda: (place / "give").exists() and subprocess.run(as_user(user, ["/usr/bin/python3", "-c", """
import array, socket
c = socket.socket(socket.AF_UNIX); c.connect("give")
s = [socket.socket(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)]
c.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [x.fileno() for x in s]))])
"""]), cwd=place, stderr=subprocess.DEVNULL).returncode == 0, what="who gives")
    assert shell.client.finished(id).stdout == "socket EPERM\n" * 2


def test_who_waits_may_be_killed(shell):
    """And others are served."""
    shell(python("""
s = socket.socket(socket.AF_UNIX); s.bind("s"); s.listen(0)
for _ in range(100):
    if os.fork() == 0:
        while True: socket.socket(socket.AF_UNIX).connect("s")
time.sleep(0.3)
"""))
    assert shell(python("""
s = socket.create_server(("127.0.0.1", 0))
for _ in range(50): socket.create_connection(s.getsockname()); s.accept()
print("served")
""")) == "served\n"


def test_the_proxy_may_be_killed(server, place):
    """Its calls fail, and the next command has another one."""
    c = server.ready()
    c.server = server
    server.wait_log(f"session {c.session_id[:8]}: opened")
    runner, box = server.runner(c), Shell(c, workspace_write(place), place)
    id = box.start(python("""
s = socket.create_server(("127.0.0.1", 0)); print("ready", flush=True); sys.stdin.read()
try: socket.create_connection(s.getsockname())
except OSError as e: print(errno.errorcode[e.errno])
"""), pipeStdin=True)
    c.wait_output(id, b"ready")
    proxy, = (p for p in children(runner) if name(p) == "execd-calls")
    os.kill(proxy, 9)
    poll(lambda: proxy not in children(runner), what="end of the proxy")
    c.call("process/closeStdin", {"processId": id})
    assert "ENOSYS" in c.finished(id).stdout
    assert box(python("s = socket.create_server((\"127.0.0.1\", 0)); socket.create_connection(s.getsockname()); print(1)")) == "1\n"
    c.drop()
