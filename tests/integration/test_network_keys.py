# SPDX-License-Identifier: ISC
"""What the operator says of networks: his lists of hosts narrow what clients ask, a policy with a network is held to them,
and every decision is counted and on record (execd.conf(5), network-allow)."""
import json
import os
import re

import pytest
from conftest import digest, lines_of, poll
from execctl import Execctl
from test_config import basic, check
from test_metrics import Scraper
from test_network_lists import CLIENT, POLICY, PYTHON, end, launch, origin, own, run, start  # noqa: F401

DISABLED = {"permissions": {"type": "disabled"}, "windowsSandboxLevel": "disabled"}
EXTERNAL = {"permissions": {"type": "external", "network": "enabled"}, "windowsSandboxLevel": "disabled"}


@pytest.fixture
def held(configured, user, directory):
    """An execd whose identity `one` has these keys; it writes an audit log, and serves metrics."""
    def begin(*keys, sandbox=(), env=None, **identities):
        lines = ["[listener a]", "address = ws://127.0.0.1:0", "[listener op]", f"address = unix:{directory}/op",
                 "operate = yes", "[audit]", f"file = {directory}/audit", *(["[sandbox]", *sandbox] if sandbox else [])]
        for name, of in {"one": keys, **identities}.items():
            lines += [f"[identity {name}]", f"user = {user.pw_name}", f"token-sha256 = {digest(name)}", *of]
        return configured("\n".join([*lines, ""]), env=env)
    return begin


def session(s, identity="one"):
    return s.connect(token=identity).ready()


def access(result):
    return result["sandbox"]["enforced"]["network"]


def denied(ended):
    return [(d["host"], d["port"], d["rule"], d["reason"]) for d in ended["networkDenied"]]


def test_a_list_of_a_client_is_narrowed(held, origin):
    """Only what both lists allow is reached; a denial of the operator wins over everything."""
    a, b = origin(), origin()
    at, bt = f"127.0.0.1:{a.port}", f"127.0.0.1:{b.port}"
    c = session(held(f"network-allow = 127.0.0.1:{a.port} *.example", "network-deny = bad.example"))
    got, ended = run(c, "p", f"get=http://{at}/", f"get=http://{bt}/", "get=http://bad.example/",
                     **own(at, bt, "**.example"))
    assert [g[0] for g in got] == [200, 403, 403] and not b.seen
    assert denied(ended) == [("127.0.0.1", b.port, f"127.0.0.1:{a.port}", "port_not_allowed"),
                             ("bad.example", 80, "bad.example", "denied")]
    told = [m["params"] for m in c.events("p", "network/policyDecision")]
    assert [d["decidedBy"] for d in told] == ["list", "operator", "operator"]
    # What the operator allows is not open to a client that did not ask for it.
    got, ended = run(c, "q", f"get=http://{at}/", **own(bt))
    assert got[0][0] == 403


def test_a_network_is_held_to_the_lists(held, origin):
    """A policy with a network gets a namespace of its own: nothing is reached but what is listed, and not past the proxy."""
    o, other = origin(), origin()
    s = held(f"network-allow = 127.0.0.1:{o.port} *.example")
    execd = s.urls[0].rsplit(":", 1)[1]
    c = session(s)
    got, ended = run(c, "p", f"get=http://127.0.0.1:{o.port}/", f"connect=127.0.0.1:{o.port}", f"socks=127.0.0.1:{o.port}",
                     f"direct=127.0.0.1:{o.port}", f"direct=127.0.0.1:{execd}", "direct=192.0.2.1:80",
                     f"get=http://127.0.0.1:{execd}/readyz", f"get=http://127.0.0.1:{other.port}/", "get=http://1.1.1.1/")
    assert [got[0][0], got[1][0], got[2][1]] == [200, 200, 0]
    assert got[3:6] == ["Connection refused", "Connection refused", "Permission denied"]
    assert [g[0] for g in got[6:]] == [403, 403, 403] and len(o.seen) == 3 and not other.seen
    assert access(start(c, "q", "env")) == "public"
    assert access(start(c, "r", "env", **own("a.example"))) == "listed"


@pytest.mark.parametrize("sandbox,identities", [
    ((), {"one": ([], "enabled"), "host": (["network-host = yes"], "enabled"), "none": (["network-allow = none"], "enabled"),
          "own": (["network-host = no"], "public"), "deny": (["network-deny = a.example"], "public")}),
    (["network-allow = a.example"], {"one": ([], "public"), "host": (["network-host = yes"], "enabled")}),
    (["network-host = yes"], {"one": (["network-allow = b.example"], "public")}),
])
def test_which_network_it_is(held, sandbox, identities):
    """The host's unless the operator says something, as with the reference; and the answer tells."""
    s = held(sandbox=sandbox, **{name: keys for name, (keys, _) in identities.items()})
    for name, (_, network) in identities.items():
        c = session(s, name)
        assert access(start(c, "p", "env")) == network, name
        assert ("http_proxy" in end(c, "p")[0][0]) == (network == "public"), name


def test_public_addresses_are_all_but_those_of_the_host(held, origin):
    o = origin()
    c = session(held("network-host = no"))
    got, ended = run(c, "p", f"get=http://127.0.0.1:{o.port}/", f"get=http://localhost:{o.port}/",
                     "get=http://169.254.169.254/latest/meta-data", f"socks=127.0.0.1:{o.port}", "get=http://10.0.0.1/")
    assert [g[0] for g in got] == [403, 403, 403, "socks5h", 403] and not o.seen
    assert {d["reason"] for d in ended["networkDenied"]} == {"not_allowed", "not_allowed_local"}


@pytest.mark.parametrize("key", ["network-host = no", "network-deny = bad.example"])
def test_a_list_of_a_client_opens_nothing_private(held, origin, key):
    """An operator who gives no network of the host has the last word, though he lists nothing himself."""
    o = origin()
    c = session(held(key))
    hosts = ["127.0.0.1", "localhost", "127.0.0.2", "10.0.0.1", "169.254.169.254"]
    for pid, how in [("p", own(*(f"{h}:*" for h in hosts))),
                     ("q", launch({f"{h}:*": "allow" for h in hosts}, allowLocalBinding=True))]:
        got, ended = run(c, pid, *(f"get=http://{h}:{o.port}/" for h in hosts), f"connect=127.0.0.1:{o.port}",
                         f"socks=localhost:{o.port}", **how)
        assert [g[0] for g in got[:-1]] == [403] * 6 and got[-1] == ["socks5h", 2] and not o.seen, got
        assert {d["reason"] for d in ended["networkDenied"]} == {"not_allowed", "not_allowed_local"}
        told = [m["params"]["decidedBy"] for m in c.events(pid, "network/policyDecision")]
        assert set(told) == {"operator"}, told


def test_a_denial_of_the_operator_holds_for_each_address(held, origin):
    """Also for one that a name leads to: of a command, and of http/request."""
    o = origin()
    c = session(held("network-allow = localhost:* 127.0.0.1:*", "network-deny = 127.0.0.1 ::1"))
    got, ended = run(c, "p", f"get=http://localhost:{o.port}/", f"connect=localhost:{o.port}", **own("localhost:*"))
    assert [g[0] for g in got] == [403, 403] and not o.seen
    assert {d["reason"] for d in ended["networkDenied"]} == {"denied"}
    code, message = fetch_error(c, f"http://localhost:{o.port}/")
    assert code == -32603 and "denied (limited by network-deny, rule " in message and not o.seen, message


def test_no_request_goes_around(held, origin):
    """Without a policy, or as `disabled`: refused, with the key that says so. http/request is held to the lists."""
    o = origin()
    keys = {"one": "network-allow = a.example", "two": "network-deny = a.example", "three": "network-host = no"}
    s = held(**{name: [key] for name, key in keys.items()})
    for name, key in keys.items():
        c = session(s, name)
        by = f"limited by {key.split()[0]} in [identity {name}]"
        for more in {}, {"sandbox": DISABLED}, {"sandbox": EXTERNAL}:
            message = c.start("p", ["/bin/true"], **more)["error"]["message"]
            assert f"({by}; use a policy" in message, message
        code, message = fetch_error(c, f"http://127.0.0.1:{o.port}/")
        assert (code, message) == (-32602, f"127.0.0.1:{o.port} exceeds what the operator permits: not_allowed "
                                   "(limited by network-allow)") and not o.seen


def asking(url, *headers, **more):
    return {"requestId": "r", "method": "GET", "url": url, "headers": [dict(name=n, value=v) for n, v in headers], **more}


def fetch_error(c, url, *headers, **more):
    return c.error("http/request", asking(url, *headers, **more))


def fetch(c, url, *headers, **more):
    return c.call("http/request", asking(url, *headers, **more))["status"]


def test_requests_are_held_to_the_lists(held, origin):
    """http/request reaches what a command with a network reaches: each redirect and each address is judged."""
    o, other = origin(), origin()
    here = f"127.0.0.1:{o.port}"
    to_other, to_named = (origin(f"HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n".encode())
                          for to in (f"http://127.0.0.1:{other.port}/", "//bad.example/"))
    s = held(f"network-allow = {here} 127.0.0.1:{to_other.port} 127.0.0.1:{to_named.port} *.example",
             "network-deny = bad.example")
    c = session(s)
    assert fetch(c, f"http://{here}/") == 200
    assert fetch(c, f"http://{here}/", ("Host", here)) == 200
    for url, why in [(f"http://127.0.0.1:{other.port}/", f"port_not_allowed (limited by network-allow, rule {here})"),
                     ("http://bad.example/", "denied (limited by network-deny, rule bad.example)"),
                     ("http://BAD.example./", "denied (limited by network-deny, rule bad.example)"),
                     ("http://x.test/", "not_allowed (limited by network-allow)"),
                     ("https://169.254.169.254/", "not_allowed (limited by network-allow)"),
                     (f"http://2130706433:{other.port}/", "port_not_allowed"), ("http://[::1]/", "not_allowed")]:
        code, message = fetch_error(c, url)
        assert code == -32602 and f" exceeds what the operator permits: {why}" in message, (url, message)
    code, message = fetch_error(c, f"http://127.0.0.1:{to_other.port}/")
    assert code == -32603 and f"http/request failed: 127.0.0.1:{other.port} exceeds" in message, message
    code, message = fetch_error(c, f"http://127.0.0.1:{to_named.port}/")
    assert code == -32603 and "http/request failed: bad.example:80 exceeds" in message, message
    assert "names another host" in fetch_error(c, f"http://{here}/", ("Host", "bad.example"))[1]
    assert fetch(c, f"http://127.0.0.1:{to_other.port}/", redirectPolicy="stop") == 302
    assert len(o.seen) == 2 and not other.seen


def test_requests_lead_to_no_private_address(held, origin):
    """A name that is permitted and leads to loopback, nor to a proxy of the environment, which would look names up.
    What tells the rules cannot be sent in a header."""
    o = origin()
    c = session(held("network-host = no", env={**os.environ, "http_proxy": f"http://127.0.0.1:{o.port}"}))
    code, message = fetch_error(c, f"http://localhost:{o.port}/")
    assert (code, message) == (-32603, f"http/request failed: localhost:{o.port} exceeds what the operator permits: "
                               "not_allowed_local (limited by network-allow)") and not o.seen
    header = {"name": "a", "value": "", "valueEnvVar": "EXECD_HTTP_RULES"}
    assert "requires executor environment variable" in c.error(
        "http/request", {**asking("http://a.example/"), "headers": [header]})[1]


def test_the_operator_may_permit_it(held, origin):
    """Then lists bind sandboxed commands alone, and the log says what clients may do."""
    o = origin()
    c = session(held("network-deny = a.example", "sandbox-allow-unsandboxed = yes"))
    m = c.start("p", [PYTHON, "-c", CLIENT, f"direct=127.0.0.1:{o.port}"])
    assert "sandbox" not in m["result"] or m["result"]["sandbox"]["enforced"] is None
    assert end(c, "p")[0] == ["connected"]
    assert access(start(c, "q", "env")) == "public"


def test_the_record_of_a_start_names_the_network(held, directory):
    """As the answer to the start does."""
    s = held(host=["network-host = yes"], own=["network-host = no"])
    for name, pid, more, network in [("host", "a", {}, "enabled"), ("host", "b", own("a.example"), "listed"),
                                     ("own", "c", {}, "public"), ("own", "d", own("a.example"), "listed")]:
        c = session(s, name)
        assert access(start(c, pid, "env", **more)) == network
        record = poll(lambda: [e for e in map(json.loads, lines_of(directory / "audit"))
                               if e["event"] == "process-started" and e["process"] == pid], what="the record")
        assert record[0]["enforced"]["network"] == network and record[0]["asked"]["network"] == "enabled"


def test_limits_of_a_command(held, origin):
    """Connections at once, and bytes of all of them, both ways together."""
    big = origin(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100000)
    at = f"127.0.0.1:{big.port}"
    c = session(held("network-max-connections = 2", "network-max-bytes = 64K"))
    script = ("import os, socket\nport = int(os.environ['http_proxy'].rsplit(':', 1)[1])\n"
              "idle = [socket.create_connection(('127.0.0.1', port)) for _ in range(2)]\n"
              "for s in idle: s.sendall(b'GET')\n"
              "s = socket.create_connection(('127.0.0.1', port))\ns.sendall(b'GET http://x/ HTTP/1.1\\r\\n\\r\\n')\n"
              "print(s.recv(12))")
    f = c.run("p", [PYTHON, "-c", script], sandbox=POLICY, **own(at))
    assert "200" not in f.stdout, f.stdout + f.stderr
    ended = c.call("process/wait", {"processId": "p"})
    assert [d["reason"] for d in ended["networkDenied"]] == ["too_many_connections"]
    script = (f"import os, socket\nport = int(os.environ['http_proxy'].rsplit(':', 1)[1])\n"
              "s = socket.create_connection(('127.0.0.1', port))\n"
              f"s.sendall(b'GET http://{at}/ HTTP/1.1\\r\\nHost: {at}\\r\\n\\r\\n')\nn = 0\n"
              "try:\n    while b := s.recv(9999): n += len(b)\nexcept ConnectionResetError: pass\nprint(n)")
    f = c.run("q", [PYTHON, "-c", script], sandbox=POLICY, **own(at))
    assert f.code == 0 and int(f.stdout) < 100000, f.stdout + f.stderr
    ended = c.call("process/wait", {"processId": "q"})
    assert [d["reason"] for d in ended["networkDenied"]] == ["too_many_bytes"]


def test_decisions_are_counted_and_on_record(held, origin, directory):
    """Each different one once with the command; all of them in the metrics. A command cannot fill the disk."""
    o = origin()
    at = f"127.0.0.1:{o.port}"
    s = held(f"network-allow = {at} *.example")
    c = session(s)
    script = ("import os, socket, sys\nport = int(os.environ['http_proxy'].rsplit(':', 1)[1])\nfor url in sys.argv[1:]:\n"
              "    s = socket.create_connection(('127.0.0.1', port))\n"
              "    s.sendall(b'GET %s HTTP/1.1\\r\\n\\r\\n' % url.encode())\n    s.recv(99)")
    urls = [f"http://{at}/"] * 3 + ["http://x.test/"] * 4 + ["http://y.example:8/"]
    assert c.run("p", [PYTHON, "-c", script, *urls], sandbox=POLICY, **own(at)).code == 0

    def found():
        return [e for e in map(json.loads, lines_of(directory / "audit")) if e["event"].startswith("network-")]

    poll(lambda: len(found()) == 3, what="three records")
    first, second, third = ({k: e.get(k) for k in ("event", "process", "host", "port", "protocol", "decidedBy", "reason",
                                                   "rule", "identity")} for e in found())
    assert first == {"event": "network-allowed", "process": "p", "host": "127.0.0.1", "port": o.port, "protocol": "http",
                     "decidedBy": "list", "reason": "allow", "rule": at, "identity": "one"}
    assert second == {**first, "event": "network-denied", "host": "x.test", "port": 80, "decidedBy": "operator",
                      "reason": "not_allowed", "rule": None}
    assert third == {**second, "host": "y.example", "port": 8, "decidedBy": "list"}
    metric = Scraper(s.urls[1])
    assert metric("execd_network_decisions_total", '{decision="allow"}') == 3
    assert metric("execd_network_decisions_total", '{decision="deny"}') == 5
    many = [f"http://h{i}.test/" for i in range(150)]
    assert c.run("q", [PYTHON, "-c", script, *many, "http://last.test/"], sandbox=POLICY, **own(at)).code == 0
    poll(lambda: metric("execd_network_decisions_total", '{decision="deny"}') == 156, what="all of them")
    assert len(found()) < 150


def test_decisions_about_requests_are_counted_and_on_record(held, origin, directory):
    """As those about commands are, without a process: what is refused, where it leads, and what it reached."""
    # Without that word a connection is used again that ends meanwhile, and another one is asked for.
    close = b"Connection: close\r\n"
    o, other = origin(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" + close + b"\r\nhi"), origin()
    at = f"127.0.0.1:{o.port}"
    to_other = origin(f"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{other.port}/\r\nContent-Length: 0\r\n".encode() + close + b"\r\n")
    s = held(f"network-allow = {at} 127.0.0.1:{to_other.port} *.example", "network-deny = bad.example",
             public=["network-host = no"], free=["sandbox-allow-unsandboxed = yes"])
    c = session(s)
    assert [fetch(c, f"http://{at}/") for _ in range(3)] == [200] * 3
    assert fetch(c, f"http://{at}/", streamResponse=True) == 200
    for _ in range(4):
        fetch_error(c, "https://x.test/")
    fetch_error(c, "http://bad.example/")
    fetch_error(c, f"http://127.0.0.1:{to_other.port}/")
    fetch_error(c, f"http://{at}/", ("Host", "bad.example"))
    fetch_error(session(s, "public"), f"http://localhost:{o.port}/")
    assert fetch(session(s, "free"), f"http://{at}/") == 200    # held to nothing, so nothing is decided

    def found():
        return [e for e in map(json.loads, lines_of(directory / "audit")) if e["event"].startswith("network-")]

    poll(lambda: len(found()) == 7, what="seven records")
    assert all(e["protocol"] == "http_request" and "process" not in e for e in found())
    assert [e["identity"] for e in found()] == ["one"] * 6 + ["public"]
    assert [(e["event"][8:], e["host"], e["port"], e["decidedBy"], e["reason"]) for e in found()] == [
        ("allowed", "127.0.0.1", o.port, "list", "allow"),
        ("denied", "x.test", 443, "operator", "not_allowed"),
        ("denied", "bad.example", 80, "operator", "denied"),
        ("allowed", "127.0.0.1", to_other.port, "list", "allow"),
        ("denied", "127.0.0.1", other.port, "operator", "port_not_allowed"),
        ("denied", "127.0.0.1", o.port, "list", "other_server_name"),
        ("denied", "localhost", o.port, "operator", "not_allowed_local")]
    assert found()[2]["rule"] == "bad.example"
    metric = Scraper(s.urls[1])
    assert metric("execd_network_decisions_total", '{decision="allow"}') == 5
    assert metric("execd_network_decisions_total", '{decision="deny"}') == 8
    for i in range(60):
        fetch_error(c, f"http://h{i}.test/")
    poll(lambda: metric("execd_network_decisions_total", '{decision="deny"}') == 68, what="all of them")
    assert len(found()) < 67


BAD = [
    ("network-allow = http://a.example/", "network-allow: unsupported domain pattern syntax: http://a.example/"),
    ("network-allow = a.example:0", "network-allow: unsupported domain pattern syntax: a.example:0"),
    ("network-allow = 10.0.0.0/8", "network-allow: unsupported domain pattern syntax: 10.0.0.0/8"),
    ("network-allow = none a.example", "network-allow: `none` stands alone"),
    ("network-deny = *", "network-deny: * denies everything"),
    ("network-deny = b\u00fccher.example", "is not ASCII: write its xn-- form"),
    ("network-max-connections = 0", "network-max-connections: `0` is not a number from 1 to 65535"),
    ("network-max-bytes = 0", "network-max-bytes: `0` is not a number of bytes"),
    ("network-deny = a.example\nnetwork-host = yes", "network-host = yes: a policy with a network would not be held to"),
    ("network-allow =" + "".join(f"\n\t{'a' * 60}{i}.example" for i in range(40)), "network-allow: 2"),
]


@pytest.mark.parametrize("keys,why", BAD)
def test_what_is_no_key(mode, user, directory, keys, why):
    path = directory / "execd.conf"
    path.write_text(basic(user, identity=keys + "\n"))
    code, _, err = check(mode, user, path, "-t")
    assert code != 0 and re.search(rf"{re.escape(str(path))}:\d+: ", err) and why in err, err


def test_keys_are_shown(mode, user, directory):
    """As they are read, for the identity and for [sandbox]."""
    path = directory / "execd.conf"
    keys = ("network-allow = *.debian.org\n\tregistry.example:443\nnetwork-deny = bad.debian.org\n"
            "network-max-connections = 20\nnetwork-max-bytes = 1G\n")
    path.write_text(basic(user, identity=keys))
    code, out, _ = check(mode, user, path, "-T")
    assert code == 0 and keys in out and "\nnetwork-host = yes\nnetwork-max-connections = 256\n" in out, out
    assert "a policy with a network reaches public addresses through execd-netproxy, those of network-allow" in \
        check(mode, user, path, "-t")[2]
    path.write_text(out)
    assert check(mode, user, path, "-T")[1] == out


def test_the_client_is_told(server):
    """The three capabilities stand for what works."""
    c = server.ready()
    names = "networkProxyLaunch", "networkProxyReviewDomains", "processNetwork"
    assert [c.call("environment/info")["capabilities"].get(name) for name in names] == [True, True, True]
    c.drop()


# --- execctl ------------------------------------------------------------------

FETCH = ("import sys, urllib.request\nfor u in sys.argv[1:]:\n    try: print(urllib.request.urlopen(u).read().decode())\n"
         "    except Exception as e: print(e)")


@pytest.mark.parametrize("sandbox", [(), ("-s", "workspace-write")])
def test_execctl(server, directory, origin, sandbox):
    """A list with a profile and without; what is denied is said on standard error, with the rule."""
    o, other = origin(), origin()
    ctl = Execctl(directory, server.url)
    where = ("-C", directory) if sandbox else ()
    r = ctl("run", *sandbox, *where, "--allow-host", f"127.0.0.1:{o.port}", "--allow-host", "*.example", PYTHON, "-c", FETCH,
            f"http://127.0.0.1:{o.port}/", f"http://127.0.0.1:{other.port}/", "http://a.test/")
    assert r.code == 0 and r.out.decode().splitlines()[0] == "hi" and r.out.count(b"403") == 2, r
    assert f"the command may not reach 127.0.0.1:{other.port}: port_not_allowed, by the rule 127.0.0.1:{o.port}" in r.err, r
    assert "the command may not reach a.test:80: not_allowed\n" in r.err and not other.seen, r


@pytest.mark.parametrize("args,code,why", [
    (("--network", "-s", "read-only", "--allow-host", "a.example"), 255, "--network is all of it"),
    (("--allow-host", "a b"), 125, "unsupported domain pattern syntax: a b"),
])
def test_execctl_refuses(server, directory, args, code, why):
    r = Execctl(directory, server.url)("run", *args, "/bin/true")
    assert r.code == code and why in r.err, r
