# SPDX-License-Identifier: ISC
"""`transparentTcp` (doc/sandbox.md B5): programs that know no proxy reach what is listed on every port, by name and by
address, and nothing else. The hosts of these tests are in a network namespace of their own, with execd."""
import contextlib
import ctypes
import os
import shutil
import socket
import subprocess
import sys
import threading

import pytest

from conftest import BUILD, EXECD, ROOT, Server, as_user, children_named, digest, kill, need_sandbox, poll
from landlock_only import numbered
from test_network_lists import PYTHON, decisions, launch
from test_network_names import HIDDEN, POLICY, end

CLONE_NEWNET = 0x40000000
# Public addresses, which these hosts have here: db.example, secret.example and execd's own machine; and a private one.
DB, SECRET, OWN, INNER = "93.184.216.34", "93.184.216.35", "93.184.216.36", "10.9.8.7"
HOSTS = f"127.0.0.1 localhost\n{DB} db.example\n{SECRET} secret.example\n127.0.0.1 rebound.example\n" \
        f"{INNER} inner.example\n{OWN} own.example\n"
PLACE = """ip link set lo up
for a in {addresses}; do ip address add $a/32 dev lo; done
mount --bind {hosts} /etc/hosts
exec "$@"
"""
PROGRAM = r'''
import json, os, socket, struct, subprocess, sys
SERVER = [line.split()[1] for line in open("/etc/resolv.conf") if line.startswith("nameserver")][0]
def tell(x):
    print(json.dumps(x), flush=True)
def wait():
    tell("waiting")
    sys.stdin.readline()
def talk(host, port, say=b"hello\n", source=None):
    """What a plain program does; the other side speaks first."""
    try:
        with socket.create_connection((host, port), 20, source) as s:
            greeting = s.recv(100)   # a reset is seen here, and before it getpeername(2) knows of none
            peer = s.getpeername()
            s.sendall(say)
            return [greeting.decode(), s.recv(100).decode(), peer[1]]
    except OSError as e:
        return e.strerror or str(e)
def name(n, kind=1, tcp=False):
    """(code, address) of a look-up by hand."""
    labels = b"".join(bytes([len(x)]) + x for x in n.encode().split(b"."))
    q = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", kind, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM) as s:
        s.settimeout(20)
        s.connect((SERVER, 53))
        s.sendall(struct.pack(">H", len(q)) + q if tcp else q)
        data = s.recv(600)
        if tcp:
            n, = struct.unpack_from(">H", data)
            data = data[2:]
            assert n == len(data)
        return [data[3] & 15, socket.inet_ntoa(data[-4:]) if data[7] else None]
'''


class Place(Server):
    """An execd in a network namespace in which the hosts are."""

    def __init__(self, mode, user, directory, keys=()):
        hosts, conf = directory / "hosts", directory / "execd.conf"
        hosts.write_text(HOSTS)
        conf.write_text("\n".join(["[listener a]", f"address = unix:{directory}/socket", "[listener b]",
                                   f"address = ws://{OWN}:7000", "[identity one]", f"user = {user.pw_name}",
                                   f"token-sha256 = {digest('one')}", *keys, ""]))
        conf.chmod(0o644)
        script = PLACE.format(addresses=" ".join((DB, SECRET, OWN, INNER)), hosts=hosts)
        argv = [str(EXECD), "-c", str(conf)]
        self._start(mode, ["unshare", "--net", "--mount", "--propagation", "private", "sh", "-ec", script, "sh",
                           *(argv if mode == "root" else as_user(user, argv))], None, listeners=2)
        self.hosts = []

    def ready(self):
        return self.connect(token="one").ready()

    def host(self, address, port):
        h = Host(self.pid, address, port)
        self.hosts.append(h)
        return h

    def stop(self):
        for h in self.hosts:
            h.listener.close()
        super().stop()


class Host:
    """Greets whoever connects and says again what it hears."""

    def __init__(self, pid, address, port):
        made = []

        def make():
            libc = ctypes.CDLL(None, use_errno=True)
            fd = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
            assert libc.setns(fd, CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
            os.close(fd)
            made.append(socket.create_server((address, port)))

        maker = threading.Thread(target=make)  # which alone enters
        maker.start()
        maker.join()
        self.listener, = made
        self.port = self.listener.getsockname()[1]
        self.seen = 0
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                s, _ = self.listener.accept()
            except OSError:
                return
            self.seen += 1
            threading.Thread(target=self.speak, args=(s,), daemon=True).start()

    def speak(self, s):
        with s, contextlib.suppress(ConnectionError):
            s.sendall(b"welcome")
            while data := s.recv(1 << 16):
                s.sendall(data.upper())


def host_redirects():
    """Whether the kernel has what it takes, by the test of that part alone."""
    program = BUILD / "tests/unit/test_redirect"
    return program.exists() and "[  SKIPPED ]" not in subprocess.run([program], capture_output=True, text=True).stderr


@pytest.fixture
def places(mode, user, directory):
    """Starts an execd whose identity has these keys: places(*keys)."""
    started = []

    def start(*keys):
        if not ROOT:
            pytest.skip("this needs root, to make networks")
        need_sandbox(mode, user)
        if not host_redirects():
            pytest.skip("TRANSPARENT TCP IS NOT TESTED: this host has no nf_tables")
        started.append(Place(mode, user, directory, keys))
        return started[-1]

    yield start
    for s in started:
        s.stop()


@pytest.fixture
def place(places):
    return places()


def listed(*allow, deny=(), **proxy):
    return launch({**{h: "allow" for h in allow}, **{h: "deny" for h in deny}}, transparentTcp=True, **proxy)


def start(c, pid, program, how, sandbox=HIDDEN, **more):
    m = c.start(pid, [PYTHON, "-c", PROGRAM + program], sandbox=sandbox, **how, **more)
    assert "result" in m, m
    return m["result"]


def test_it_is_announced(place):
    """Also to later sessions, which do not try it themselves."""
    for _ in range(3):
        assert place.ready().call("environment/info")["capabilities"]["networkProxyTransparentTcp"] is True


# socket(AF_NETLINK, _, NETLINK_NETFILTER) answers EPROTONOSUPPORT, as without nf_tables.
WITHOUT = r'''
import ctypes, os, struct, sys
rows = ((0x20, 0, 0, 0), (0x15, 0, 5, 41), (0x20, 0, 0, 16), (0x15, 0, 3, 16), (0x20, 0, 0, 32), (0x15, 0, 1, 12),
        (0x06, 0, 0, 0x00050000 | 93), (0x06, 0, 0, 0x7fff0000))
code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *r) for r in rows))
program = ctypes.create_string_buffer(struct.pack("@HP", len(rows), ctypes.addressof(code)))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
'''


class Without(Server):
    def __init__(self, user):
        self._start("user", as_user(user, [sys.executable, "-c", WITHOUT, str(EXECD), "--listen", "ws://127.0.0.1:0"]), None)


@numbered
def test_a_kernel_without_it(mode, user):
    """The capability is missing, and a start that wants it is refused. Other lists are as they were."""
    if mode != "user":
        pytest.skip("once is enough")
    need_sandbox(mode, user)
    s = Without(user)
    try:
        c = s.ready()
        capabilities = c.call("environment/info")["capabilities"]
        assert "networkProxyTransparentTcp" not in capabilities and capabilities["networkProxyLaunch"] is True
        m = c.start("p", ["/bin/true"], sandbox=POLICY, **listed("a.example"))
        assert m["error"]["code"] == -32602 and m["error"]["message"] == \
            "sandbox intent cannot be enforced on this executor: transparent TCP (nf_tables)", m
        assert "result" in c.start("q", ["/bin/true"], sandbox=POLICY, **launch({"a.example": "allow"}))
        assert c.finished("q").code == 0
    finally:
        s.stop()


def test_by_name_on_every_port(place):
    """What is listed is reached; the rest is reset, and told with its port."""
    c, db, secret = place.ready(), place.host(DB, 5432), place.host(SECRET, 5432)
    start(c, "p", 'tell(talk("db.example", 5432))\ntell(talk("secret.example", 5432))\ntell(talk("none.example", 22))',
          listed("db.example"))
    said, ended = end(c, "p")
    assert said == [["welcome", "HELLO\n", 5432], "Connection reset by peer", "Connection reset by peer"]
    assert (db.seen, secret.seen) == (1, 0)
    assert [(d["host"], d["port"], d["reason"]) for d in ended["networkDenied"]] == \
        [("secret.example", 5432, "not_allowed"), ("none.example", 22, "not_allowed")]
    assert [(d["protocol"], d["direct"], d["decision"], d["host"], d["port"]) for d in decisions(c, "p")] == [
        ("socks5_tcp", "direct_tcp", "allow", "db.example", 5432), ("socks5_tcp", "direct_tcp", "deny", "secret.example", 5432),
        ("socks5_tcp", "direct_tcp", "deny", "none.example", 22)]


def test_by_address(place):
    """An address that no name stands for is judged as one. One of IPv6 is refused at once, also one that is listed."""
    c, db, secret = place.ready(), place.host(DB, 5432), place.host(SECRET, 5432)
    start(c, "p", f'tell(talk("{DB}", 5432))\ntell(talk("::ffff:{DB}", 5432))\ntell(talk("{SECRET}", 5432))\ntell(talk("{INNER}", 80))\n'
          'tell(talk("169.254.169.254", 80))\ntell([talk(a, 80) for a in ("2001:db8::1", "64:ff9b::5db8:d822", "::1")])',
          listed(DB, "db.example", "2001:db8::1"))
    said, ended = end(c, "p")
    reset = "Connection reset by peer"
    assert said == [["welcome", "HELLO\n", 5432]] * 2 + [reset] * 3 + [["Permission denied"] * 2 + ["Connection refused"]]
    assert (db.seen, secret.seen) == (2, 0)
    assert [d["host"] for d in ended["networkDenied"]] == [SECRET, INNER, "169.254.169.254"]


def denied(ended):
    return [(d["host"], d["port"], d["reason"]) for d in ended["networkDenied"]]


def test_whose_an_address_is(place):
    """Commands of one sandbox share a network; a decision about an address is told of the command that meant it."""
    c = place.ready()
    for pid, port in ("p", 81), ("q", 82):
        start(c, pid, f'wait()\ntell(talk("{SECRET}", {port}))', listed("db.example"), pipeStdin=True)
    for pid in "pq":
        c.wait_output(pid, "waiting")
    for pid in "qp":
        c.write(pid, b"\n")
    assert denied(end(c, "p")[1]) == [(SECRET, 81, "not_allowed")]
    assert denied(end(c, "q")[1]) == [(SECRET, 82, "not_allowed")]


def test_the_resolver(place):
    """Each name has one address, which nobody was asked for; other records of it are empty. By UDP and by TCP."""
    c = place.ready()
    start(c, "p", '''
tell([name("db.example"), name("DB.Example"), name("none.example"), name("db.example", tcp=True), name("new.example", tcp=True)])
tell([name("db.example", kind, tcp) for kind in (28, 16, 15, 12, 65, 255) for tcp in (False, True)])
tell([name(n) for n in ("a b.example", "x" * 63 + ".example", "1.2.3.4", "localhost", "a.localhost")])
''', listed("db.example"))
    (names, others, odd), _ = end(c, "p")
    block = names[0][1].rpartition(".")[0]
    assert block.startswith("198.18.") and names == [[0, f"{block}.{n}"] for n in (2, 2, 3, 2, 4)]
    assert others == [[0, None]] * 12
    assert odd == [[3, None], [0, f"{block}.5"], [3, None], [0, "127.0.0.1"], [0, "127.0.0.1"]]


HOSTILE = r'''
def raw(data, end=False):
    """What a look-up by TCP of these bytes brings."""
    with socket.socket() as s:
        s.settimeout(60)
        s.connect((SERVER, 53))
        s.sendall(data)
        if end:
            s.shutdown(socket.SHUT_WR)
        try:
            return len(s.recv(4096))
        except OSError as e:
            return e.strerror
q = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + b"\1a\7example\0\0\1\0\1"
both = struct.pack(">H", len(q)) + q
tell([raw(b"\xff\xff" + q), raw(b"\0\0"), raw(b"\0\5hello"), raw(b"\0\x0c" + b"\xff" * 12), raw(both[:9], True)])
with socket.socket() as s:   # several on one connection, in pieces
    s.connect((SERVER, 53))
    for byte in both * 3:
        s.sendall(bytes([byte]))
    f, ids = s.makefile("rb"), []
    for _ in range(3):
        n, = struct.unpack(">H", f.read(2))
        ids.append(f.read(n)[-4:].hex())
tell(len(set(ids)))
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.connect((SERVER, 53))
    for data in b"", b"x", b"\xff" * 600, q[:-1], q[:12] + b"\xc0\x0c\0\1\0\1", q[:12] + b"\x3f" * 200:
        s.send(data)
tell(name("a.example")[0])
'''


def test_packets_that_are_none(place):
    c = place.ready()
    start(c, "p", HOSTILE, listed("db.example"))
    assert end(c, "p")[0] == [["Connection reset by peer"] * 4 + [0], 1, 0]


def test_a_command_has_names_for_so_many(place):
    """Then a look-up fails, which is told; what has an address keeps it."""
    c, db = place.ready(), place.host(DB, 22)
    start(c, "p", '''
got = [name(f"n{i}.example") for i in range(252)]
tell([len(set(map(tuple, got))), {g[0] for g in got} == {0}, name("db.example"), name("n7.example") == got[7]])
''' + f'tell(talk("{DB}", 22))', listed(DB))
    said, ended = end(c, "p")
    assert said == [[252, True, [2, None], True], ["welcome", "HELLO\n", 22]]
    assert denied(ended) == [("db.example", 0, "too_many_names")] and db.seen == 1


def test_a_name_keeps_its_address_over_a_restart(place):
    """An address never becomes another name's. One that is known no more leads nowhere."""
    c, db = place.ready(), place.host(DB, 22)
    start(c, "p", '''
tell([name("db.example")[1], name("secret.example")[1]])
wait()
tell([name("new.example")[1], name("db.example")[1]])
tell([talk(SERVER[:-1] + "2", 22), talk("db.example", 22)])
''', listed("db.example"), pipeStdin=True)
    c.wait_output("p", "waiting")
    proxy, = children_named(place.runner(c), "execd-netproxy")
    kill(int(proxy))
    poll(lambda: not children_named(place.runner(c), "execd-netproxy"), what="end of execd-netproxy")
    c.write("p", b"\n")
    (first, _, again, talked), ended = end(c, "p")
    assert [a.rpartition(".")[2] for a in first + again] == ["2", "3", "4", "5"]
    assert talked == ["Connection reset by peer", ["welcome", "HELLO\n", 22]]
    assert db.seen == 1 and denied(ended) == [(first[0], 22, "not_allowed")]


def test_its_loopback_stays_its_own(place):
    """What is not TCP to elsewhere is as with any list, and servers of the sandbox are reached as before."""
    c, outside = place.ready(), place.host("127.0.0.1", 5432)
    start(c, "server", '''
servers = [socket.create_server(at) for at in (("127.0.0.1", 5433), ("0.0.0.0", 5434), ("127.0.0.53", 2222))]
wait()
for s in servers:
    s.accept()[0].sendall(b"inside")
''', listed("db.example"), pipeStdin=True)
    c.wait_output("server", "waiting")
    start(c, "p", '''
def udp(host, port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.sendto(b"x", (host, port))
            return "sent"
        except OSError as e:
            return e.strerror
for at in ("127.0.0.1", 5433), ("127.0.0.9", 5434), ("127.0.0.53", 2222):
    tell(socket.create_connection(at, 20).getpeername()[1])
tell(talk("127.0.0.1", 5432))
tell([udp("%s", 53), udp("8.8.8.8", 53), udp("127.0.0.1", 9)])
''' % DB, listed("db.example"))
    said, _ = end(c, "p")
    c.write("server", b"\n")
    end(c, "server")
    assert said == [5433, 5434, 2222, "Connection refused", ["Permission denied", "Permission denied", "sent"]]
    assert outside.seen == 0


def test_a_name_that_leads_inside(place):
    """Rebinding: a listed name leads neither to the host's loopback, whatever the client permits, nor to a private
    address that is not listed itself, nor to what is denied by address, nor to execd."""
    c = place.ready()
    hosts = place.host("127.0.0.1", 8080), place.host(INNER, 8080), place.host(DB, 8080)
    talks = ["rebound.example", "inner.example", "db.example", "own.example"]
    program = "".join(f'tell(talk("{n}", {7000 if n == "own.example" else 8080}))\n' for n in talks)
    start(c, "p", program, listed("*.example", OWN, deny=[DB]))
    said, ended = end(c, "p")
    assert said == ["Connection reset by peer"] * 4
    assert denied(ended) == [("rebound.example", 8080, "not_allowed_local"), ("inner.example", 8080, "not_allowed_local"),
                             ("db.example", 8080, "denied"), ("own.example", 7000, "own_port")]
    start(c, "q", program + f'tell(talk("{OWN}", 7000))\ntell(talk("localhost", 8080))',
          listed("*.example", "localhost", "127.0.0.1", OWN, deny=[DB], allowLocalBinding=True))
    said, ended = end(c, "q")
    assert said[1] == ["welcome", "HELLO\n", 8080] and said[5] == "Connection refused"
    assert denied(ended) == [("rebound.example", 8080, "not_allowed_local"), ("db.example", 8080, "denied"),
                             ("own.example", 7000, "own_port"), (OWN, 7000, "own_port")]
    assert [h.seen for h in hosts] == [0, 1, 0]


ATTACK = r'''
listener = SERVER[:-1] + "1"
other = SERVER.split(".")
other = ".".join([*other[:2], str(int(other[2]) ^ 1), "1"])
def attempt(what):
    try:
        return what()
    except OSError as e:
        return e.strerror
def bind(address, port):
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        s.bind((address, port))
        return "bound"
def fast(host):
    with socket.socket() as s:
        s.sendto(b"x", 0x20000000, (host, 22))
        return s.recv(10).decode()
def marked(option, value):
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, option, value)
        return "set"
tell(talk(listener, 1))                                   # the listener itself
tell([attempt(lambda: bind(a, 1)) for a in (listener, "0.0.0.0", "198.18.0.1")])
tell(talk(HOST, 22, source=(other, 0)))                   # from a block of nobody
tell([talk(HOST, 22, source=("127.0.0.1", 0)), talk("db.example", 22, source=("127.0.0.1", 0))])  # from no block
tell([attempt(lambda: fast(HOST)), attempt(lambda: marked(36, 7))])
tell(attempt(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12) and "made"))
tell(attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 6)))
port = socket.create_connection((HOST, 22), 20)           # the same port again, to somebody else
mine = port.getsockname()
port.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
port.close()
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(mine)
s.settimeout(20)
tell(attempt(lambda: (s.connect((listener, 1)), s.recv(20).decode())[1]))
'''


def test_who_knows_of_the_redirect(place):
    """The listener, sources and destinations are what the command says, so they give nothing that the list does not."""
    c, db, secret = place.ready(), place.host(DB, 22), place.host(SECRET, 22)
    start(c, "p", f"HOST = {SECRET!r}\n" + ATTACK.replace("port = socket.create_connection((HOST", f"port = socket.create_connection(({DB!r}"),
          listed(DB))
    said, _ = end(c, "p")
    reset = "Connection reset by peer"
    assert said[0] == reset and said[1] == ["Permission denied"] * 3
    assert said[2] in ("Connection refused", reset) and said[3] == ["Permission denied", "Connection refused"]
    assert said[4][0] != "welcome" and said[4][1] == "Operation not permitted"
    assert said[5] == "Operation not permitted" and said[6] == "Operation not permitted"
    assert said[7] != "welcome" and secret.seen == 0


def test_what_the_operator_permits(places):
    """His lists are a ceiling: a pattern without a port opens those of any tunnel, and a denial holds for addresses."""
    place = places(f"network-allow = *.example {DB}:22", f"network-deny = {SECRET}")
    c, db, secret = place.ready(), place.host(DB, 22), place.host(SECRET, 80)
    start(c, "p", f'tell([talk("{DB}", 22), talk("db.example", 22), talk("secret.example", 80), talk("{INNER}", 80)])',
          listed("*", INNER, allowLocalBinding=True))
    (said,), ended = end(c, "p")
    reset = "Connection reset by peer"
    assert said == [["welcome", "HELLO\n", 22], reset, reset, reset] and (db.seen, secret.seen) == (1, 0)
    assert denied(ended) == [("db.example", 22, "port_not_allowed"), ("secret.example", 80, "denied"),
                             (INNER, 80, "not_allowed")]
    assert {d["decidedBy"] for d in decisions(c, "p") if d["decision"] == "deny"} == {"operator"}


def test_a_flood_is_the_commands_own(places):
    """Beyond the limit of connections they are reset, which is told once; another session is served meanwhile."""
    place = places("network-max-connections = 8")
    c, d, db = place.ready(), place.ready(), place.host(DB, 22)
    start(c, "p", f'''
kept = []
for i in range(300):
    s = socket.socket()
    s.setblocking(False)
    s.connect_ex(("{DB}", 22))
    kept.append(s)
wait()
''', listed(DB), pipeStdin=True)
    c.wait_output("p", "waiting")
    start(d, "q", f'tell(talk("{DB}", 22))', listed(DB))
    assert end(d, "q")[0] == [["welcome", "HELLO\n", 22]]
    c.write("p", b"\n")
    _, ended = end(c, "p")
    assert denied(ended) == [(DB, 22, "too_many_connections")] and db.seen <= 9


def test_mode_limited(place):
    c, db = place.ready(), place.host(DB, 80)
    start(c, "p", f'tell(talk("{DB}", 80))', listed(DB, mode="limited"))
    said, ended = end(c, "p")
    assert said == ["Connection reset by peer"] and denied(ended) == [(DB, 80, "mitm_required")] and not db.seen


def test_what_is_refused(place):
    c = place.ready()

    def error(how, sandbox=HIDDEN):
        m = c.start("p", ["/bin/true"], sandbox=sandbox, **how)
        return m["error"]["code"], m["error"]["message"]

    assert error(listed("a", enableSocks5=False)) == \
        (-32602, "invalid network proxy config: transparent_tcp requires an enabled managed SOCKS5 proxy")
    assert error(listed("a"), None) == (-32602, "transparent TCP requires a managed Linux sandbox")
    code, message = error({"enforceManagedNetwork": True, "networkProxy": {
        **listed("a")["networkProxy"], "proxy": {**listed("a")["networkProxy"]["proxy"], "transparentTcp": 1}}})
    assert code == -32602 and "expected a boolean" in message


@pytest.mark.parametrize("argv", [["curl", "-sSN", "--noproxy", "*", "-m", "20", "telnet://{}:22"], ["nc", "-w", "20", "{}", "22"],
                                  ["bash", "-c", "exec 3<>/dev/tcp/{}/22; head -c 7 <&3"]])
def test_other_programs(place, argv):
    if shutil.which(argv[0]) is None:
        pytest.skip(f"no {argv[0]}")
    c, db, secret = place.ready(), place.host(DB, 22), place.host(SECRET, 22)
    for pid, name in ("name", "db.example"), ("address", DB), ("no", "secret.example"):
        c.start(pid, [a.format(name) for a in argv], sandbox=HIDDEN, pipeStdin=True, **listed(DB, "db.example"))
    for pid in "name", "address":
        c.wait_output(pid, "welcome")
    assert "welcome" not in c.finished("no").stdout and secret.seen == 0 and db.seen == 2
    for pid in "name", "address":
        c.call("process/terminate", {"processId": pid})
        c.finished(pid)
