# SPDX-License-Identifier: ISC
"""Commands that know no proxy, with a list of hosts: names that are listed resolve and are reached, by programs that use
plain sockets; everything else of the network stays as it is (doc/sandbox.md B5)."""
import json

import pytest

from conftest import children_named, kill, poll
from netproxy_program import origin  # noqa: F401
from test_network_lists import POLICY, PYTHON, client, decisions, own  # noqa: F401

# Names are looked up on the host by /etc/hosts, which has `localhost`, and in the sandbox by its resolver alone.
def without(path):
    return {**POLICY, "permissions": {**POLICY["permissions"], "file_system": {"type": "restricted", "entries": [
        *POLICY["permissions"]["file_system"]["entries"],
        {"path": {"type": "path", "path": f"file://{path}"}, "access": "none"}]}}}


HIDDEN = without("/etc/hosts")
PROGRAM = r'''
import json, os, socket, struct, subprocess, sys
for name in list(os.environ):
    if "proxy" in name.lower():
        del os.environ[name]
try:
    SERVER = [line.split()[1] for line in open("/etc/resolv.conf") if line.startswith("nameserver")]
except OSError:
    SERVER = []
def tell(x):
    print(json.dumps(x), flush=True)
def wait():
    tell("waiting")
    sys.stdin.readline()
def get(name, port):
    """What a plain program does."""
    try:
        with socket.create_connection((name, port), 20) as s:
            s.sendall(b"GET / HTTP/1.0\r\n\r\n")
            return s.makefile("rb").read().decode()[-2:]
    except socket.gaierror as e:
        return socket.EAI_NONAME == e.errno and "no such name" or str(e)
    except OSError as e:
        return e.strerror
def getent(base, name):
    r = subprocess.run(["/usr/bin/getent", base, name], capture_output=True, text=True)
    return r.returncode, r.stdout.split()[:1]
def ask(name, kind=1):
    """(code, address) of a look-up by hand."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(20)
        s.connect((SERVER[0], 53))
        labels = b"".join(bytes([len(x)]) + x for x in name.encode().split(b"."))
        s.send(struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", kind, 1))
        data = s.recv(600)
        return data[3] & 15, socket.inet_ntoa(data[-4:]) if data[7] else None
def listen(address, port, kind=socket.SOCK_STREAM):
    s = socket.socket(socket.AF_INET, kind)
    try:
        s.bind((address, port))
        if kind == socket.SOCK_STREAM:
            s.listen()
    except OSError as e:
        return e.strerror
    KEPT.append(s)
    return "bound"
KEPT = []
'''


def start(c, pid, program, *allow, sandbox=HIDDEN, **more):
    m = c.start(pid, [PYTHON, "-c", PROGRAM + program], sandbox=sandbox, **(own(*allow) if allow else {}), **more)
    assert "result" in m, m
    return m["result"]


def end(c, pid):
    f = c.finished(pid)
    assert f.code == 0, f.stdout + f.stderr
    return [json.loads(line) for line in f.stdout.splitlines()], c.call("process/wait", {"processId": pid})


def test_a_program_that_knows_no_proxy(client, origin):
    """It reaches what is listed, by name, and is told of nothing else; the denials are reported."""
    o = origin()
    started = start(client, "p", f'''
tell(get("localhost", {o.port}))
tell([x[4][0] for x in socket.getaddrinfo("localhost", {o.port}, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)])
tell(getent("hosts", "localhost"))
tell(getent("ahosts", "localhost"))
tell(get("localhost", {o.port}))
tell(get("other.example", {o.port}))
tell(getent("hosts", "x.other.example"))
tell(get("192.0.2.1", {o.port}))
tell(open("/etc/resolv.conf").read())
''', f"localhost:{o.port}")
    assert started["sandbox"]["enforced"]["names"] is True
    said, ended = end(client, "p")
    address = said[1][0]
    assert said[:5] == ["hi", [address], [0, [address]], [0, [address]], "hi"] and address.startswith("198.18.")
    assert said[5:8] == ["no such name", [2, []], "Permission denied"]
    assert f"nameserver {address.rpartition('.')[0]}.1\n" in said[8]
    assert len(o.seen) == 2
    assert [(d["host"], d["port"], d["reason"]) for d in ended["networkDenied"]] == \
        [("other.example", 0, "not_allowed"), ("x.other.example", 0, "not_allowed")]
    told = decisions(client, "p")
    assert {(d["protocol"], d["direct"], d["decision"]) for d in told} == \
        {("socks5_tcp", "direct_tcp", "allow"), ("socks5_tcp", "dns", "deny")}
    assert {d["port"] for d in told if d["direct"] == "direct_tcp"} == {o.port}


def test_a_policy_without_a_resolver(client, origin):
    """Where its file may not be read, there is nothing to mount over. The answer to the start says so."""
    o = origin()
    started = start(client, "p", f'tell(SERVER)\ntell(get("localhost", {o.port}))', f"localhost:{o.port}",
                    sandbox=without("/etc/resolv.conf"))
    assert started["sandbox"]["enforced"]["names"] is False and started["sandbox"]["enforced"]["network"] == "listed"
    said, ended = end(client, "p")
    assert said[0] == [] and said[1] != "hi" and not o.seen


def test_its_own_loopback_stays_its_own(client, origin):
    """Every address of 127.0.0.0/8 and every port: what could be bound without a list can be bound with one, also those
    on which names are served, and the other way round."""
    o = origin()
    binds = [("127.0.0.1", port) for port in (53, 80, 443, 8080, o.port)] + [("127.0.0.53", 53), ("127.0.0.53", 8053)]
    program = f'''
if SERVER and SERVER[0].startswith("198.18."):
    tell(get("localhost", {o.port}))
else:
    tell("hi")
tell([listen(a, p, k) for a, p in {binds} for k in (socket.SOCK_STREAM, socket.SOCK_DGRAM)])
tell(listen("0.0.0.0", 8081))
'''
    start(client, "with", program, f"localhost:{o.port}")
    start(client, "without", program, sandbox={**POLICY, "permissions": {**POLICY["permissions"], "network": "restricted"}})
    said, _ = end(client, "with")
    assert said == end(client, "without")[0] and said[1][-1] == "bound" and said[2] == "bound"


def test_a_port_that_the_command_took_itself(client, origin):
    """On all addresses: then names with that port have none. The next name is fine."""
    o = origin()
    start(client, "p", f'''
tell(listen("0.0.0.0", {o.port}))
tell(ask("localhost"))
KEPT.pop().close()
tell(get("localhost", {o.port}))
''', f"localhost:{o.port}")
    assert end(client, "p")[0] == ["bound", [2, None], "hi"]


def test_each_command_has_its_own(client, origin):
    """Commands of one list share a sandbox. A denial is told of the one that met it, and the end of one is not the end of
    another's names."""
    o = origin()
    program = f'''
wait()
tell([SERVER, get("localhost", {o.port}), get(sys.argv[-1], 80)])
wait()
tell(get("localhost", {o.port}))
'''
    for pid in "a", "b":
        m = client.start(pid, [PYTHON, "-c", PROGRAM + program, f"{pid}.example"], sandbox=HIDDEN, pipeStdin=True,
                         **own(f"localhost:{o.port}"))
        assert "result" in m, m
    servers = []
    for pid in "a", "b":
        client.write(pid, b"\n")
        client.write(pid, b"\n")
        said, ended = end(client, pid)
        servers += said[1][0]
        assert said[1][1:] == ["hi", "no such name"] and said[3] == "hi"
        assert [d["host"] for d in ended["networkDenied"]] == [f"{pid}.example"]
    assert len(set(servers)) == 2


def test_a_table_has_an_end(client):
    """Of names and their addresses: 128. What is one more is told, and those before stay."""
    start(client, "p", '''
first = [ask(f"n{i}.example") for i in range(140)]
tell(len({address for code, address in first[:128] if code == 0}))
tell(first[128:])
tell(ask("n0.example") == first[0] and ask("N127.example") == first[127])
''', "*.example")
    said, ended = end(client, "p")
    assert said == [128, [[2, None]] * 12, True]
    assert {(d["reason"], d["port"]) for d in ended["networkDenied"]} == {("too_many_names", 0)}
    assert [d["host"] for d in ended["networkDenied"]] == [f"n{i}.example" for i in range(128, 140)]


def test_an_address_is_never_anothers(client, origin, server):
    """After execd-netproxy was killed and came back, a name has another address, and the old ones lead nowhere."""
    o = origin()
    start(client, "p", f'''
old = ask("localhost")[1]
wait()
tell(get(old, {o.port}))
tell(ask("b.example")[1] != old)
tell(get("localhost", {o.port}))
''', f"localhost:{o.port}", "b.example", pipeStdin=True)
    client.wait_output("p", "waiting")
    runner = server.runner(client)
    old, = children_named(runner, "execd-netproxy")
    kill(old)
    poll(lambda: not children_named(runner, "execd-netproxy"), what="its end")  # the next look-up starts another one
    client.write("p", b"\n")
    assert end(client, "p")[0][1:] == ["Connection refused", True, "hi"]
