# SPDX-License-Identifier: ISC
"""A sandboxed command with network access does not reach execd's own port, set up
as scripts/quickstart does it, with a token below ~/.config/execd, or open.
"""
import hashlib
import os
import pathlib
import secrets
import socket

import pytest
from conftest import Shell, as_test_user, direct
from policies import workspace_write
from test_environments import come

PYTHON = "/usr/bin/python3 -c '%s'"
UPGRADE = ("import socket\ns = socket.create_connection((\"127.0.0.1\", %d))\n"
           "s.sendall(b\"GET / HTTP/1.1\\r\\nHost: h\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n\"\n"
           "  b\"Sec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\\r\\n%s\\r\\n\")\n"
           "print(s.makefile().readline())")


@pytest.fixture
def token(user):
    """A file as the quickstart makes it, of the user that commands run as."""
    file = pathlib.Path(user.pw_dir, f".config/execd/test-{os.getpid()}.token")
    text = secrets.token_hex(32)
    as_test_user(user, f"umask 077; mkdir -p {file.parent}; printf %s {text} >{file}", "/")
    yield file, text
    as_test_user(user, f"rm {file}", "/")


def status(port, header=""):
    return PYTHON % (UPGRADE % (port, header))


def test_the_own_port_is_no_way_out(spawn, user, place, token):
    file, text = token
    server = spawn("--ws-auth", "capability-token", "--ws-token-sha256", hashlib.sha256(text.encode()).hexdigest())
    port = int(server.url.rsplit(":", 1)[1])
    client = server.connect(token=text).ready()
    shell = Shell(client, workspace_write(place, network="enabled"), place)
    assert "PermissionError" in shell.run(status(port)).stderr
    r = shell.run(f"cat {file}")
    assert r.code == 1 and text not in r.stdout + r.stderr
    assert shell(f"ls -A {file.parent} 2>/dev/null || true") == ""
    # The user himself gets in with what is in that file.
    assert direct(user, ["cat", str(file)], "/").stdout.decode() == text
    shown = f"Authorization: Bearer {text}\\\\r\\\\n".replace("\\\\", "\\")
    assert b"101" in direct(user, ["/bin/sh", "-c", status(port, shown)], "/").stdout


# --- a listener that lets in whoever connects ---------------------------------

def script(text, *args):
    return f"cat >p.py <<'END'\nimport ctypes, errno, select, socket, struct, sys, threading\n{text}\nEND\n" \
           f"/usr/bin/python3 p.py {' '.join(map(str, args))}"


@pytest.fixture
def open_server(spawn):
    return spawn("--allow-unauthenticated", listen="ws://0.0.0.0:0")


@pytest.fixture
def shell(open_server, place):
    return Shell(open_server.ready(), workspace_write(place, network="enabled"), place)


def port_of(server):
    return int(server.url.rsplit(":", 1)[1])


EVERY_WAY = """
port = int(sys.argv[1])
names = ["127.0.0.1", "127.9.8.7", "0.0.0.0", "localhost"]
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
try:
    udp.connect(("192.0.2.77", 9)); names.append(udp.getsockname()[0])
except OSError: pass
seen = set()
for name in names:
    for family, host in ((socket.AF_INET, name), (socket.AF_INET6, "::ffff:" + socket.gethostbyname(name))):
        for wait in (None, 0, 5):
            s = socket.socket(family); s.settimeout(wait)
            seen.add(errno.errorcode[s.connect_ex((host, port))])
        for send in ("sendto", "sendmsg"):
            s = socket.socket(family)
            try:
                if send == "sendto": s.sendto(b"GET", socket.MSG_FASTOPEN, (host, port))
                else: s.sendmsg([b"GET"], [], socket.MSG_FASTOPEN, (host, port))
                seen.add("SENT")
            except OSError as e: seen.add(errno.errorcode[e.errno])
s = socket.socket(); s.setsockopt(socket.IPPROTO_TCP, 30, 1)   # TCP_FASTOPEN_CONNECT
seen.add(errno.errorcode[s.connect_ex(("127.0.0.1", port))])
print(*sorted(seen))
"""


def test_no_address_leads_to_an_open_port(open_server, shell, user):
    port = port_of(open_server)
    assert shell(script(EVERY_WAY, port)).split() == ["EACCES", "ENOTSUP"]
    # The same user outside connects to it.
    assert b"101" in direct(user, ["/bin/sh", "-c", status(port)], "/").stdout


def test_ipv6(spawn, place):
    if not socket.has_ipv6 or not os.path.exists("/proc/net/if_inet6"):
        pytest.skip("NOT TESTED: this host has no IPv6")
    server = spawn("--allow-unauthenticated", listen="ws://[::1]:0")
    shell = Shell(server.ready(), workspace_write(place, network="enabled"), place)
    assert shell(script("""
for host in ("::1", "::"):
    print(errno.errorcode[socket.socket(socket.AF_INET6).connect_ex((host, int(sys.argv[1])))])
""", port_of(server))).split() == ["EACCES"] * 2


def test_the_same_port_of_another_host_is_open(open_server, shell):
    """Whether that host is there or not: execd does not refuse it."""
    assert shell(script("""
s = socket.socket(); s.settimeout(0)
print(errno.errorcode[s.connect_ex(("192.0.2.77", int(sys.argv[1])))])
""", port_of(open_server))) in ("EINPROGRESS\n", "ENETUNREACH\n", "EHOSTUNREACH\n")


CHANGING = """
own, other, rounds = int(sys.argv[1]), int(sys.argv[2]), 4000
libc = ctypes.CDLL(None, use_errno=True)
address = ctypes.create_string_buffer(struct.pack("=H", socket.AF_INET) + struct.pack("!H", other) + bytes((127, 0, 0, 1)) + bytes(8), 16)
over = False
def change():
    while not over:
        address[2:4] = struct.pack("!H", own); address[2:4] = struct.pack("!H", other)
t = threading.Thread(target=change); t.start()
good = bad = 0
for _ in range(rounds):
    s = socket.socket()
    if libc.connect(s.fileno(), address, 16) == 0:
        if s.getpeername()[1] == own: bad += 1
        else: good += 1
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)); s.close()
over = True; t.join()
print("bad", bad, "both" if 0 < good < rounds else "one side only")
"""


def test_an_address_that_changes_meanwhile(open_server, shell):
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as other:
        got = shell(script(CHANGING, port_of(open_server), other.getsockname()[1]), timeout=90)
    assert got == "bad 0 both\n"


def test_other_ports_of_the_host_serve_as_ever(shell):
    """The proxy's connections behave as the kernel's: errors, waiting, time limits, and many at once."""
    with socket.create_server(("127.0.0.1", 0), backlog=512) as server:
        assert shell(script("""
port = int(sys.argv[1])
s = socket.create_connection(("127.0.0.1", port)); print(s.getpeername()[1] == port)
s = socket.socket(); s.setblocking(False); print(errno.errorcode.get(s.connect_ex(("127.0.0.1", port)), "at once"))
select.select([], [s], []); print(s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
print(errno.errorcode[socket.socket().connect_ex(("127.0.0.1", 1))])
done = []
threads = [threading.Thread(target=lambda: done.append(socket.create_connection(("localhost", port)))) for _ in range(200)]
for t in threads: t.start()
for t in threads: t.join()
print(len(done))
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(("127.0.0.1", 0))
v = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); v.connect(u.getsockname()); v.send(b"x"); print(u.recv(9))
""", server.getsockname()[1]), timeout=60).splitlines() in (
            ["True", way, "0", "ECONNREFUSED", "200", "b'x'"] for way in ("EINPROGRESS", "at once"))


def test_a_connection_ends_with_its_time_limit(shell):
    """SO_SNDTIMEO: no answer comes, because the queue is full."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        assert shell(script("""
full, s = [], None
while True:
    s = socket.socket(); s.setblocking(False); s.connect_ex(("127.0.0.1", int(sys.argv[1]))); full.append(s)
    if not select.select([], [s], [], .3)[1]: break
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 200000))
print(errno.errorcode[s.connect_ex(("127.0.0.1", int(sys.argv[1])))])
""", server.getsockname()[1]), timeout=60) == "EINPROGRESS\n"


def test_a_listener_without_authentication_is_told(spawn, user):
    server = spawn()
    server.wait_log("no authentication: whoever connects starts commands as")


@pytest.mark.parametrize("who", ["allow-unauthenticated = x", "auth = peer-user"])
def test_where_nothing_guards_it_the_log_says_so(configured, user, place, who):
    """Calls of 32 bits have no proxy."""
    server = configured(f"[listener l]\naddress = ws://127.0.0.1:0\n{who}\n[identity x]\n"
                        f"user = {user.pw_name}\nsandbox-allow-32bit = yes\npeer-user = {user.pw_name}\n")
    shell = Shell(come(server, user.pw_name).ready(), workspace_write(place, network="enabled"), place)
    assert "101" in shell(status(port_of(server)))
    server.wait_log("nothing here keeps a command with a network from execd's own port")
