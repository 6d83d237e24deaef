# SPDX-License-Identifier: ISC
"""Commands whose network is a list of hosts: what they reach through the proxy, what they do not reach past it, whom
execd asks, and what it tells of it (doc/protocol.md section 13.7)."""
import json
import re
import shutil
import signal
import subprocess
import threading

import pytest

from conftest import BUILD, MIB, as_user, children_named, is_alive, kill, poll
from execctl import Execctl, Proxy
from netproxy_program import origin  # noqa: F401
from test_limits import rss_kib
from test_reexec import installed  # noqa: F401
from test_relay import Relay
from test_session import resume

PYTHON = "/usr/bin/python3"
# What a program does that knows its variables. Prints one line of JSON for each of its arguments.
CLIENT = r'''
import http.client, json, os, socket, struct, sys, urllib.parse
def proxy(name):
    u = urllib.parse.urlsplit(os.environ[name])
    return u.scheme, u.hostname, u.port
def get(url):
    _, host, port = proxy("http_proxy")
    c = http.client.HTTPConnection(host, port, timeout=20)
    c.request("GET", url)
    r = c.getresponse()
    return r.status, r.read().decode(), r.getheader("x-proxy-error")
def connect(where):
    _, host, port = proxy("HTTPS_PROXY")
    s = socket.create_connection((host, port), 20)
    s.sendall(f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n\r\n".encode())
    f = s.makefile("rb")
    status = int(f.readline().split()[1])
    while f.readline() not in (b"\r\n", b""):
        pass
    if status != 200:
        return status, f.read().decode()
    s.sendall(b"GET / HTTP/1.0\r\n\r\n")
    return status, f.read().decode()
def socks(where):
    scheme, host, port = proxy("ALL_PROXY")
    name, _, to = where.rpartition(":")
    s = socket.create_connection((host, port), 20)
    s.sendall(b"\5\1\0")
    assert s.recv(2) == b"\5\0"
    s.sendall(b"\5\1\0\3" + bytes([len(name)]) + name.encode() + struct.pack(">H", int(to)))
    code = s.recv(10)[1]
    if code:
        return scheme, code
    s.sendall(b"GET / HTTP/1.0\r\n\r\n")
    return scheme, code, s.makefile("rb").read().decode()
def direct(where):
    name, _, port = where.rpartition(":")
    try:
        socket.create_connection((name, int(port)), 20).close()
        return "connected"
    except OSError as e:
        return e.strerror or str(e)
def drip(url):
    _, host, port = proxy("http_proxy")
    s = socket.create_connection((host, port), 60)
    s.sendall(f"GET {url} HTTP/1.1\r\nHost: {urllib.parse.urlsplit(url).netloc}\r\n\r\n".encode())
    f = s.makefile("rb")
    while f.readline() not in (b"\r\n", b""):
        pass
    print("begun", f.read(1).decode(), flush=True)
    try:
        return "ended", f.read().decode()
    except ConnectionResetError:
        return "reset"
for a in sys.argv[1:]:
    how, _, what = a.partition("=")
    if how == "wait":
        print("waiting", flush=True)
        sys.stdin.readline()
        continue
    print(json.dumps(globals()[how](what) if what else {k: os.environ.get(k) for k in os.environ}), flush=True)
'''
POLICY = {"permissions": {"type": "managed", "network": "enabled", "file_system": {
    "type": "restricted", "entries": [{"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"}]}},
    "windowsSandboxLevel": "disabled"}
SAID = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nKeep-Alive: x\r\n\r\nhi"


@pytest.fixture
def client(server):
    c = server.ready()
    yield c
    c.drop()


def launch(domains, timeout_ms=None, **proxy):
    """`networkProxy` as the Codex client sends it."""
    return {"enforceManagedNetwork": True, "networkProxy": {
        "proxy": {"enabled": True, "enableSocks5": True, "enableSocks5Udp": True, "allowUpstreamProxy": True,
                  "dangerouslyAllowAllUnixSockets": False, "mode": "full", "domains": domains, "unixSockets": None,
                  "allowLocalBinding": False, **proxy},
        "auditMetadata": {}, "environmentId": None, "executionId": None,
        **({} if timeout_ms is None else {"policyDecisionTimeoutMs": timeout_ms})}}


def own(*allow, deny=()):
    return {"network": {"allow": list(allow), "deny": list(deny)}}


def start(c, pid, *does, **more):
    """Starts the program above under a policy that only reads."""
    m = c.start(pid, [PYTHON, "-c", CLIENT, *does], **{"sandbox": POLICY, **more})
    assert "result" in m, m
    return m["result"]


def end(c, pid):
    """What it printed, line by line, and how it ended."""
    f = c.finished(pid)
    assert f.code == 0, f.stdout + f.stderr
    lines = [json.loads(line) for line in f.stdout.splitlines() if line[0] in '["{']
    return lines, c.call("process/wait", {"processId": pid})


def run(c, pid, *does, **more):
    start(c, pid, *does, **more)
    return end(c, pid)


def decisions(c, pid):
    return [m["params"] for m in c.events(pid, "network/policyDecision")]


@pytest.mark.parametrize("form", ["own", "peer"])
def test_what_is_listed_is_reached(client, origin, form):
    """By HTTP, CONNECT and SOCKS5, as the variables say. The rest is refused, told, and reported with the end."""
    o = origin()
    at, other = f"127.0.0.1:{o.port}", f"127.0.0.2:{o.port}"
    how = own(at, deny=["denied.example"]) if form == "own" else launch({at: "allow", "denied.example": "deny"})
    got, ended = run(client, "p", f"get=http://{at}/a", f"connect={at}", f"socks={at}", f"get=http://{other}/",
                     f"connect={other}", f"socks={other}", "get=http://denied.example/", **how)
    assert got[:3] == [[200, "hi", None], [200, SAID], ["socks5h", 0, SAID]]
    assert got[3][0] == 403 and json.loads(got[3][1])["reason"] == "not_allowed"
    assert got[4][0] == 403 and got[5] == ["socks5h", 2]
    assert got[6][2] == "blocked-by-denylist"
    assert len(o.seen) == 3
    assert ended["networkDenied"] == [
        {"host": "127.0.0.2", "port": o.port, "rule": None, "reason": "not_allowed"},
        {"host": "denied.example", "port": 80, "rule": "denied.example", "reason": "denied"}]
    assert "networkDeniedMore" not in ended
    assert client.exited("p")["networkDenied"] == ended["networkDenied"]
    assert client.call("process/read", {"processId": "p"})["networkDenied"] == ended["networkDenied"]
    told = decisions(client, "p")
    assert [(d["protocol"], d["decision"], d["reason"], d["host"]) for d in told] == [
        ("http", "allow", "allow", "127.0.0.1"), ("https_connect", "allow", "allow", "127.0.0.1"),
        ("socks5_tcp", "allow", "allow", "127.0.0.1"), ("http", "deny", "not_allowed", "127.0.0.2"),
        ("https_connect", "deny", "not_allowed", "127.0.0.2"), ("socks5_tcp", "deny", "not_allowed", "127.0.0.2"),
        ("http", "deny", "denied", "denied.example")]
    assert {d["source"] for d in told} == {"baseline_policy"} and {d["scope"] for d in told} == {"domain"}
    assert (told[0]["method"], told[0]["rule"], told[0]["policyOverride"]) == ("GET", at, False)
    assert "method" not in told[2]
    assert re.fullmatch(r"127\.0\.0\.1:\d+", told[0]["client"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", told[0]["timestamp"])


def test_nothing_goes_past_the_proxy(server, client, origin):
    """Not to what is listed, not to execd's own port; names are not resolved inside."""
    o = origin()
    execd = server.url.rsplit(":", 1)[1]
    got, _ = run(client, "p", f"direct=127.0.0.1:{o.port}", f"direct=127.0.0.1:{execd}", "direct=192.0.2.1:80",
                 f"direct=a.example:{o.port}", f"get=http://127.0.0.1:{execd}/healthz", **own(f"127.0.0.1:{o.port}"))
    assert got[:3] == ["Connection refused", "Connection refused", "Permission denied"]
    assert got[3] != "connected" and got[4][0] == 403
    assert not o.seen


def test_without_a_policy_files_are_free(client, origin, directory):
    """A list alone takes nothing but the network away."""
    o = origin()
    m = client.start("p", ["/bin/sh", "-c", f'echo x >{directory}/f && exec {PYTHON} -c "$0" "$@"', CLIENT,
                           f"get=http://127.0.0.1:{o.port}/", f"direct=127.0.0.1:{o.port}"], **own(f"127.0.0.1:{o.port}"))
    assert m["result"]["sandbox"]["asked"] is None, m
    enforced = m["result"]["sandbox"]["enforced"]
    assert (enforced["network"], enforced["fileSystem"]) == ("listed", "unrestricted")
    got, _ = end(client, "p")
    assert got == [[200, "hi", None], "Connection refused"] and (directory / "f").read_text() == "x\n"


def test_variables(client):
    got, _ = run(client, "p", "env", **launch({}), env={"HTTP_PROXY": "http://elsewhere", "X": "y"})
    port = got[0]["HTTP_PROXY"].rsplit(":", 1)[1]
    http, socks = f"http://127.0.0.1:{port}", f"socks5h://127.0.0.1:{port}"
    assert got[0] | {"https_proxy": http, "npm_config_https_proxy": http, "PIP_PROXY": http, "all_proxy": socks,
                     "NO_PROXY": "localhost,127.0.0.1,::1", "CODEX_NETWORK_PROXY_ACTIVE": "1", "X": "y"} == got[0]
    got, _ = run(client, "q", "env", **launch({}, enableSocks5=False, allowLocalBinding=True))
    assert got[0]["ALL_PROXY"].startswith("http://") and got[0]["no_proxy"].startswith("localhost,127.0.0.1,")
    got, _ = run(client, "r", "env")
    assert "http_proxy" not in got[0]


OWN_SERVER = """import http.server, threading, urllib.request
s = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=s.serve_forever).start()
for host in "127.0.0.1", "localhost":
    with urllib.request.urlopen("http://%s:%d/" % (host, s.server_port)) as r:
        r.read()
        print(r.status)
s.shutdown()"""


@pytest.mark.parametrize("allow", [["a.example"], ["*:*"]])
def test_a_server_of_ones_own(client, allow):
    """Programs that know proxies reach it past the proxy."""
    m = client.start("p", [PYTHON, "-c", OWN_SERVER], **own(*allow))
    assert "result" in m, m
    f = client.finished("p")
    assert (f.stdout, f.code) == ("200\n200\n", 0), f.stderr


BAD = "invalid network proxy config: "
ENFORCE = "sandbox intent cannot be enforced on this executor: "
RESTRICTED = {**POLICY, "permissions": {**POLICY["permissions"], "network": "restricted"}}


@pytest.mark.parametrize("more,message", [
    (launch({}, enabled=False), BAD + "executor-local network proxy launch requires an enabled proxy"),
    (launch({"a/b": "allow"}), BAD + "unsupported domain pattern syntax: a/b"),
    (launch({"*": "deny"}), BAD + "* denies everything: name hosts, or *.example.com or **.example.com"),
    (launch({"a": "maybe"}), "unknown variant `maybe`, expected `allow` or `deny`"),
    (own("a b"), "network: unsupported domain pattern syntax: a b"),
    ({**own(), **launch({})}, "network and networkProxy exclude each other"),
    ({"enforceManagedNetwork": True}, ENFORCE + "managed network"),
    (launch({}, unixSockets={"/run/x": "allow"}), ENFORCE + "UNIX sockets of the host beside a list of hosts"),
    (launch({}, dangerouslyAllowAllUnixSockets=True), ENFORCE + "UNIX sockets of the host beside a list of hosts"),
    ({**own("a"), "sandbox": RESTRICTED}, ENFORCE + "a list of hosts needs a policy with network `enabled`"),
])
def test_what_is_refused(client, more, message):
    m = client.start("p", ["/bin/true"], **{"sandbox": POLICY, **more})
    kind = {"data": {"kind": "sandboxUnavailable"}} if message.startswith(ENFORCE) else {}
    assert m.get("error") == {"code": -32602, "message": message, **kind}


def test_limited_mode_is_told_twice(client, origin):
    """Of the host, and of the mode, as the reference does; denied is one thing."""
    o = origin()
    at = f"127.0.0.1:{o.port}"
    got, ended = run(client, "p", f"get=http://{at}/", f"connect={at}", **launch({at: "allow"}, mode="limited"))
    assert [g[0] for g in got] == [200, 403] and len(o.seen) == 1
    assert [(d["scope"], d["decision"], d["source"], d["reason"], d["protocol"]) for d in decisions(client, "p")] == [
        ("domain", "allow", "baseline_policy", "allow", "http"),
        ("domain", "allow", "baseline_policy", "allow", "https_connect"),
        ("non_domain", "deny", "mode_guard", "mitm_required", "https_connect")]
    assert len(ended["networkDenied"]) == 1


def question(c, after=0):
    """The id and the params of what execd asks."""
    m = c.wait(lambda: [m for m in c.messages if m.get("method") == "network/policyRequest" and m["id"] > after],
               what="question")[0]
    return m["id"], m["params"]


def word(text):
    return {"result": {"decision": {"type": text}}}


def test_the_client_is_asked(client, origin):
    """Yes opens what is under review. No, an error and nonsense do not, and nobody else is asked meanwhile."""
    o = origin()
    at = f"127.0.0.1:{o.port}"
    last = 0
    for pid, answer in ("yes", word("allow")), ("no", word("deny")), ("error", {"error": {"code": 1, "message": "x"}}), \
            ("odd", {"result": {"decision": "allow"}}), ("null", {"result": None}):
        start(client, pid, f"get=http://{at}/", **launch({}, 60000, reviewDomains=[at]))
        last, asked = question(client, last)
        assert asked == {"processId": pid, "request": {"protocol": "http", "host": "127.0.0.1", "port": o.port}}
        assert len(o.seen) == (pid != "yes")
        client.send({"id": last, **answer})
        got, ended = end(client, pid)
        told, = decisions(client, pid)
        assert got[0][0] == (200 if pid == "yes" else 403)
        assert (told["source"], told["policyOverride"]) == ("decider", pid == "yes")
        assert ("networkDenied" in ended) == (pid != "yes")
        client.send({"id": last, **word("allow")})  # a second answer changes nothing, and ends nothing
    assert client.call("environment/status")["status"] == "ready"


def test_yes_does_not_open_private_addresses(client, origin):
    o = origin()
    start(client, "p", f"get=http://localhost:{o.port}/", **launch({}, 60000))
    client.send({"id": question(client)[0], **word("allow")})
    got, ended = end(client, "p")
    assert got[0][0] == 403 and ended["networkDenied"][0]["reason"] == "not_allowed_local" and not o.seen


def test_silence_denies(client, origin):
    o = origin()
    start(client, "p", f"get=http://127.0.0.1:{o.port}/", **launch({}, 50))
    asked, _ = question(client)
    got, _ = end(client, "p")
    assert got[0][0] == 403 and decisions(client, "p")[0]["source"] == "decider"
    client.send({"id": asked, **word("allow")})  # too late
    assert client.call("environment/status")["status"] == "ready"


def test_an_answer_that_nobody_asked_for(client):
    client.send({"id": 1, **word("allow")})
    client.wait_closed()


def test_a_client_that_goes_denies(server, client, origin):
    """Also with a list that was open before: the command and its list outlive the connection."""
    o = origin()
    at = f"127.0.0.1:{o.port}"
    start(client, "p", f"get=http://{at}/", "wait", f"get=http://{at}/a", pipeStdin=True,
          **launch({}, 60000, reviewDomains=[at]))
    question(client)
    client.drop()
    again = resume(server, client.session_id)
    again.notify("initialized")
    seen = again.call("process/read", {"processId": "p", "afterSeq": 0, "waitMs": 20000})
    assert seen["chunks"], seen
    again.write("p", "\n")
    client_id, _ = question(again)
    again.send({"id": client_id, **word("allow")})
    again.finished("p")
    assert o.seen and b"GET /a " in o.seen[0] and len(o.seen) == 1
    assert decisions(again, "p")[-1]["decision"] == "allow"
    assert again.call("process/wait", {"processId": "p"})["networkDenied"][0]["host"] == "127.0.0.1"
    again.drop()


def test_who_watches_is_told_and_not_asked(server, client, origin):
    o = origin()
    at = f"127.0.0.1:{o.port}"
    w, reads = (server.ready(watchSessionId=client.session_id) for _ in range(2))
    start(client, "p", f"get=http://{at}/", **launch({}, 60000, reviewDomains=[at]))
    asked, _ = question(client)
    w.send({"id": asked, **word("allow")})
    w.wait_closed()
    assert not o.seen
    client.send({"id": asked, **word("deny")})
    assert end(client, "p")[0][0][0] == 403
    reads.finished("p")
    assert [d["source"] for d in decisions(reads, "p")] == ["decider"]
    assert not [m for m in reads.messages if m.get("method") == "network/policyRequest"]
    reads.drop()


def test_the_client_of_a_relay_is_asked(server, directory, origin):
    """As if it was connected itself; also after a cut, where what was pending is a no."""
    o = origin()
    at = f"127.0.0.1:{o.port}"
    proxy = Proxy(server.url)
    c = Relay(directory, proxy.url).ready()
    start(c, "yes", f"get=http://{at}/", **launch({}, 60000, reviewDomains=[at]))
    first, asked = question(c)
    assert asked == {"processId": "yes", "request": {"protocol": "http", "host": "127.0.0.1", "port": o.port}}
    c.send({"id": first, **word("allow")})
    assert end(c, "yes")[0][0][0] == 200
    start(c, "no", f"get=http://{at}/", **launch({}, 60000, reviewDomains=[at]))
    cut, _ = question(c, first)
    proxy.cut()
    assert end(c, "no")[0][0][0] == 403
    c.send({"id": cut, **word("allow")})
    start(c, "again", f"get=http://{at}/", **launch({}, 60000, reviewDomains=[at]))
    last, _ = question(c, cut)
    c.send({"id": last, "error": {"code": -32601, "message": "no"}})
    assert end(c, "again")[0][0][0] == 403 and len(o.seen) == 1
    c.send({"id": last + 1, **word("allow")})
    assert c.child.wait(20) == 125
    c.close()
    proxy.close()


def test_a_client_that_answers_no_requests(server, client, directory, origin):
    """libexecd-client says so, which denies, and the connection goes on."""
    o = origin()
    at = f"127.0.0.1:{o.port}"
    wait = ["/bin/sh", "-c", f"until [ -e {directory}/go ]; do sleep 0.1; done; exec \"$@\"", "-"]
    m = client.start("p", [*wait, PYTHON, "-c", CLIENT, f"get=http://{at}/"], sandbox=POLICY,
                     **launch({}, 60000, reviewDomains=[at]))
    assert "result" in m, m
    client.drop()
    p = Execctl(directory, server.url).popen("attach", "--process", "p", client.session_id)
    server.wait_log("resumed")
    (directory / "go").touch()
    out, err = p.communicate(timeout=60)
    assert p.returncode == 0 and b"403" in out and not o.seen, (out, err)


def test_siblings(client, origin):
    """Commands with one list share its network; those with another have a network of their own."""
    a, b = origin(), origin()
    at, bt = f"127.0.0.1:{a.port}", f"127.0.0.1:{b.port}"
    first = start(client, "a", "env", "wait", f"get=http://{at}/", pipeStdin=True, **own(at))
    assert first["sandbox"]["enforced"]["network"] == "listed"
    client.wait_output("a", "waiting")
    port = json.loads(client.output("a").splitlines()[0])["http_proxy"].rsplit(":", 1)[1]
    got, _ = run(client, "b", f"direct=127.0.0.1:{port}", f"get=http://{bt}/", f"get=http://{at}/", **own(bt))
    assert got[0] == "Connection refused" and got[1][0] == 200 and got[2][0] == 403
    got, ended = run(client, "c", f"direct=127.0.0.1:{port}", f"get=http://{bt}/", **own(at))
    assert got[0] == "connected" and got[1][0] == 403
    # What was denied to one is not the other's.
    client.write("a", "\n")
    got, other = end(client, "a")
    assert got[1][0] == 200 and "networkDenied" not in other and ended["networkDenied"][0]["port"] == b.port


def test_many_denials_are_counted(client):
    script = ("import os, socket\nport = int(os.environ['http_proxy'].rsplit(':', 1)[1])\nfor i in range(40):\n"
              "    s = socket.create_connection(('127.0.0.1', port))\n"
              "    s.sendall(b'GET http://h%d.example/ HTTP/1.1\\r\\n\\r\\n' % i)\n    assert b'403' in s.recv(99)")
    f = client.run("p", [PYTHON, "-c", script], sandbox=POLICY, **own())
    assert f.code == 0, f.stderr
    ended = client.call("process/wait", {"processId": "p"})
    assert len(ended["networkDenied"]) == 32 and ended["networkDeniedMore"] == 8
    assert client.exited("p")["networkDeniedMore"] == 8


def test_the_helper_is_killed(spawn, origin):
    """In flight: the command sees a reset, the session lives, and the lists that are open work again."""
    going = threading.Event()

    def drip(s, head):
        s.sendall(b"HTTP/1.1 200 OK\r\n\r\n0")
        going.wait(30)

    s = spawn()
    c = s.ready()
    runner = s.runner(c)
    o, slow = origin(), origin(drip)
    at, slowly = f"127.0.0.1:{o.port}", f"127.0.0.1:{slow.port}"
    assert not children_named(runner, "execd-netproxy")  # nobody has used a list
    start(c, "p", f"drip=http://{slowly}/", f"get=http://{at}/", "wait", f"get=http://{at}/", pipeStdin=True, **own(at, slowly))
    c.wait_output("p", "begun 0")
    first, = children_named(runner, "execd-netproxy")
    kill(first)
    c.wait_output("p", "waiting")
    second, = poll(lambda: children_named(runner, "execd-netproxy"), what="another one")
    kill(second)  # soon again: the next one comes after a pause
    poll(lambda: not is_alive(second), what="its end")
    c.write("p", "\n")
    got, _ = end(c, "p")
    going.set()
    assert got == ["reset", [200, "hi", None], [200, "hi", None]]
    poll(lambda: s.log.count("execd-netproxy ended unexpectedly") == 2, what="both lines")
    assert "sandbox" in start(c, "q", "env", **own(at)) and end(c, "q")


@pytest.mark.nightly
def test_the_helper_is_stopped(spawn, origin):
    s = spawn()
    c = s.ready()
    o = origin()
    at = f"127.0.0.1:{o.port}"
    start(c, "p", f"get=http://{at}/", "wait", f"get=http://{at}/", pipeStdin=True, **own(at))
    c.wait_output("p", "waiting")
    helper, = children_named(s.runner(c), "execd-netproxy")
    kill(helper, signal.SIGSTOP)
    c.write("p", "\n")
    got, _ = end(c, "p")
    assert got == [[200, "hi", None]] * 2
    s.wait_log("execd-netproxy was stopped by a signal, and is replaced")


@pytest.mark.parametrize("more,enforced", [("", "listed"), ("over-limit = clamp\nallow-network = no\n", "restricted")])
def test_the_operator_permits_no_network(configured, user, origin, more, enforced):
    """A list is no way around: cut down, the command has no network, and no proxy."""
    s = configured(f"[listener a]\naddress = ws://127.0.0.1:0\nallow-unauthenticated = one\n[identity one]\n"
                   f"user = {user.pw_name}\n[sandbox]\n{more}")
    c = s.ready()
    o = origin()
    at = f"127.0.0.1:{o.port}"
    assert start(c, "p", "env", **own(at))["sandbox"]["enforced"]["network"] == enforced
    assert ("http_proxy" in end(c, "p")[0][0]) == (enforced == "listed")


@pytest.fixture
def with_netproxy(installed, monkeypatch):
    """An installation that has another program for execd-netproxy."""
    def put(program):
        shutil.copy(program, installed / "runner/netproxy/execd-netproxy")
        monkeypatch.setattr("conftest.EXECD", installed / "daemon/root/execd")
        return installed
    return put


@pytest.fixture
def hostile(with_netproxy):
    """One that asks without an end and reads nothing."""
    return with_netproxy(BUILD / "tests/integration/fake_netproxy")


# The reset may come before connect(2) has returned.
KNOCK = ("import os, socket, urllib.parse; u = urllib.parse.urlsplit(os.environ['http_proxy'])\n"
         "try:\n    s = socket.create_connection((u.hostname, u.port), 60)\n"
         "    s.sendall(b'GET http://a.example/ HTTP/1.1\\r\\nHost: a.example\\r\\n\\r\\n')\n    print(s.recv(99))\n"
         "except OSError as e:\n    print(type(e).__name__, u.port)")


def test_one_that_does_not_start(with_netproxy, spawn):
    """The command that waits for it is reset, and told why; the session and its other commands go on."""
    with_netproxy("/bin/false")
    s = spawn()
    c = s.ready()
    f = c.run("p", [PYTHON, "-c", KNOCK], sandbox=POLICY, **own("a.example"))
    said, port = f.stdout.split()
    assert said == "ConnectionResetError"
    told = {"host": "127.0.0.1", "port": int(port), "rule": None, "reason": "proxy_not_started"}
    assert c.call("process/wait", {"processId": "p"})["networkDenied"] == [told]
    assert [(d["reason"], d["decidedBy"]) for d in decisions(c, "p")] == [("proxy_not_started", "limit")]
    s.wait_log("execd-netproxy ended unexpectedly")
    assert c.run("q", ["/bin/echo", "fine"], sandbox=POLICY, **own("a.example")).stdout == "fine\n"
    # The pauses before the next start grow, and nobody waits for their end: eight would take two minutes.
    knocks = [c.run(f"p{i}", [PYTHON, "-c", KNOCK], sandbox=POLICY, **own("a.example")) for i in range(8)]
    assert all("ConnectionResetError" in k.stdout for k in knocks)


def test_one_that_reads_no_answer_is_replaced(hostile, spawn):
    """What waits for it has a limit, and the session serves."""
    s = spawn()
    c = s.ready()
    runner = s.runner(c)
    before = rss_kib(runner)
    c.start("p", [PYTHON, "-c", KNOCK], sandbox=POLICY, **own("a.example"))
    s.wait_log("execd-netproxy reads nothing, and is replaced")
    assert rss_kib(runner, "VmHWM") - before < 8 * MIB
    assert c.run("q", ["/bin/echo", "fine"]).stdout == "fine\n"
    c.call("process/terminate", {"processId": "p"})


@pytest.mark.nightly
def test_doctor_waits_for_no_proxy_that_hangs(hostile, mode, user):
    if mode == "root":
        pytest.skip("once is enough")
    out = subprocess.run(as_user(user, [str(hostile / "daemon/root/execd"), "doctor"]), capture_output=True, text=True).stdout
    assert re.search(r"without +lists of hosts .*: Connection timed out; ", out), out
