# SPDX-License-Identifier: ISC
"""A port of execd is reached by nothing that connects for a command or a client: not by connect(2), not through
execd-netproxy, not by http/request and not by process/forward; whoever the listener lets in, whatever address or name
leads there, and also where it came with a reload."""
import json
import os
import socket

import pytest
from conftest import configured, digest  # noqa: F401
from test_environments import come, environment, listener
from test_listeners import activate, identity
from test_network_lists import POLICY, PYTHON, end, launch, own, run, start
from execd_client import WebSocket
from netproxy_program import origin  # noqa: F401


def own_address():
    """An address of an interface other than lo, or None."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.77", 9))
        except OSError:
            return None
        return s.getsockname()[0]


def ways(port):
    """Each way to write this host, and another port of it."""
    names = ["127.0.0.1", "127.9.8.7", "0.0.0.0", "localhost", "[::ffff:127.0.0.1]", "[::ffff:0.0.0.0]"]
    if os.path.exists("/proc/net/if_inet6"):
        names += ["[::1]", "[::]"]
    if own_address():
        names += [own_address(), f"[::ffff:{own_address()}]"]
    return [f"{name}:{port}" for name in names]


def port_of(server):
    return int(server.url.rsplit(":", 1)[1])


@pytest.fixture(params=["open", "token", "peer-user"])
def execd(request, spawn, configured, user):  # noqa: F811
    """A listener that lets in whoever connects, one that wants a token, and one that lets in the command's user; a
    client of it."""
    if request.param == "peer-user":
        s = configured(listener() + environment("a", user, user.pw_name))
        s.client = come(s, user.pw_name).ready()
        return s
    how = {"open": ["--allow-unauthenticated"],
           "token": ["--ws-auth", "capability-token", "--ws-token-sha256", digest("t")]}[request.param]
    s = spawn(*how, listen="ws://0.0.0.0:0")
    s.client = s.connect(token="t" if request.param == "token" else None).ready()
    return s


CONNECT = "import errno, socket, sys\nfor a in sys.argv[1:]:\n" \
          "    name, _, port = a.rpartition(':')\n    name = name.strip('[]')\n" \
          "    s = socket.socket(socket.AF_INET6 if ':' in name else socket.AF_INET)\n" \
          "    print(errno.errorcode.get(s.connect_ex((name, int(port))), 'connected'))"


def connects(client, pid, where, **more):
    m = client.start(pid, [PYTHON, "-c", CONNECT, *where], **{"sandbox": POLICY, **more})
    assert "result" in m, m
    return client.finished(pid).stdout.split()


def test_connect(execd, origin):
    """By a command with the network of the host; another port is open to it."""
    where = ways(port_of(execd))
    assert connects(execd.client, "p", where) == ["EACCES"] * len(where)
    assert connects(execd.client, "q", ["127.0.0.1:%d" % origin().port]) == ["connected"]


@pytest.mark.parametrize("local", [False, True])
def test_netproxy(execd, origin, local):
    """By HTTP, CONNECT and SOCKS5, with a list that has the address, and with one that has every private address."""
    o, port = origin(), port_of(execd)
    where = ways(port)
    hosts = sorted({w.rsplit(":", 1)[0] for w in where})
    how = launch({f"{h}:*": "allow" for h in hosts}, allowLocalBinding=local)
    does = [f"{way}={'http://%s/' % w if way == 'get' else w}" for w in where for way in ("get", "connect", "socks")
            if not (way == "socks" and w.startswith("["))]
    got, ended = run(execd.client, "p", *does, f"get=http://127.0.0.1:{o.port}/", f"socks=localhost:{o.port}", **how)
    assert got[-2][:2] == [200, "hi"] and got[-1][1] == 0 and len(o.seen) == 2
    assert {g[1] if g[0] == "socks5h" else g[0] for g in got[:-2]} == {2, 403}, list(zip(does, got))
    assert {d["reason"] for d in ended["networkDenied"]} == {"own_port"}, ended
    told = [m["params"] for m in execd.client.events("p", "network/policyDecision") if m["params"]["decision"] == "deny"]
    assert len(told) == len(does) and {d["decidedBy"] for d in told} == {"operator"}


def test_netproxy_by_address_in_socks(execd):
    """SOCKS5 with an address in binary, of both families."""
    port = port_of(execd)
    script = ("import os, socket, struct\nproxy = int(os.environ['http_proxy'].rsplit(':', 1)[1])\nfor kind, family, a in ("
              "(1, 2, '127.0.0.1'), (1, 2, '0.0.0.0'), (4, 10, '::ffff:127.0.0.1'), (4, 10, '::1'), (4, 10, '::')):\n"
              "    s = socket.create_connection(('127.0.0.1', proxy), 20); s.sendall(b'\\5\\1\\0'); s.recv(2)\n"
              "    s.sendall(bytes([5, 1, 0, kind]) + socket.inet_pton(family, a) + struct.pack('>H', %d))\n"
              "    print(s.recv(10)[1])" % port)
    m = execd.client.start("p", [PYTHON, "-c", script], sandbox=POLICY, **launch(
        {f"{h}:*": "allow" for h in ("127.0.0.1", "0.0.0.0", "[::1]", "[::]")}, allowLocalBinding=True))
    assert "result" in m, m
    assert execd.client.finished("p").stdout.split() == ["2"] * 5


def ask(client, url, **more):
    return client.error("http/request", {"requestId": "r", "method": "GET", "url": url, "headers": [], **more})


def test_http_request(execd, origin):
    """Each address, and each redirect."""
    o, port = origin(), port_of(execd)
    for where in ways(port):
        code, message = ask(execd.client, f"http://{where}/")
        assert code == -32603 and f":{port} leads to a port of execd itself" in message, (where, message)
    for where in ("127.0.0.1", "localhost", "0.0.0.0"):
        to = origin(f"HTTP/1.1 302 Found\r\nLocation: http://{where}:{port}/\r\nContent-Length: 0\r\n\r\n".encode())
        code, message = ask(execd.client, f"http://127.0.0.1:{to.port}/")
        assert "leads to a port of execd itself" in message and len(to.seen) == 1
    got = execd.client.call("http/request", {"requestId": "r", "method": "GET", "headers": [],
                                             "url": f"http://127.0.0.1:{o.port}/"})
    assert got["status"] == 200


def test_http_request_by_a_proxy(configured, user):  # noqa: F811
    """A proxy of the environment that is execd."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    s = configured(f"[listener l]\naddress = ws://127.0.0.1:{port}\n" +
                   identity(user, f"environment = http_proxy=http://127.0.0.1:{port}\n"))
    assert "leads to a port of execd itself" in ask(s.connect(token="t").ready(), "http://a.example/")[1]


@pytest.mark.parametrize("host", [None, "127.0.0.1", "::1"])
def test_forward(execd, origin, host):
    o, port = origin(), port_of(execd)
    more = {} if host is None else {"host": host}
    code, message = execd.client.error("process/forward", {"processId": "f", "port": port, **more})
    assert (code, message) == (-32602, f"port {port} of this host is a port of execd itself")
    if host != "::1":
        execd.client.call("process/forward", {"processId": "g", "port": o.port, **more})


def test_a_socket_of_systemd(mode, user, directory):
    """It is execd's own as one that execd has bound."""
    (directory / "execd.conf").write_text("[listener x]\naddress = systemd:x\n" + identity(user))
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
        child = activate(mode, user, [s], ["x"], ["-c", str(directory / "execd.conf")])
    try:
        assert child.stdout.readline() == f"ws://127.0.0.1:{port}\n"
        c = WebSocket(f"ws://127.0.0.1:{port}", token="t").ready()
        everywhere(c, port)
        c.drop()
    finally:
        child.terminate()
        assert child.wait(15) == 0, child.stderr.read()


numbers = iter(range(1 << 30))


def everywhere(c, port, own_port=True):
    """What each way says of one port."""
    a, b, f = (f"e{next(numbers)}" for _ in range(3))
    assert (connects(c, a, [f"127.0.0.1:{port}"]) == ["EACCES"]) == own_port
    got, _ = run(c, b, f"get=http://127.0.0.1:{port}/", **own(f"127.0.0.1:{port}"))
    assert (got[0][0] == 403) == own_port
    m = c.request("http/request", {"requestId": b, "method": "GET", "headers": [], "url": f"http://127.0.0.1:{port}/"})
    assert ("leads to a port of execd itself" in json.dumps(m)) == own_port
    m = c.request("process/forward", {"processId": f, "port": port})
    assert ("is a port of execd itself" in json.dumps(m)) == own_port


def test_a_reload_reaches_running_sessions(configured, user):  # noqa: F811
    """A command that runs, its sandbox, and the helpers that run: all refuse the new port, and no longer one that
    execd gave up."""
    with socket.create_server(("127.0.0.1", 0)) as new, socket.create_server(("127.0.0.1", 0)) as gone:
        soon, old = new.getsockname()[1], gone.getsockname()[1]
    who = identity(user)
    text = "[listener main]\naddress = ws://127.0.0.1:0\n"
    s = configured(text + f"[listener old]\naddress = ws://127.0.0.1:{old}\n" + who)
    c = s.connect(token="t").ready()
    # All of them run, and are used before.
    waiting = ("import os, socket, sys\nport = int(sys.argv[1])\nprint('begun', flush=True)\n"
               "for line in sys.stdin:\n    s = socket.socket(); s.settimeout(20)\n    print(s.connect_ex(('127.0.0.1', int(line))), flush=True)")
    m = c.start("p", [PYTHON, "-u", "-c", waiting, "0"], sandbox=POLICY, pipeStdin=True)
    assert "result" in m, m
    c.wait_output("p", b"begun\n")
    for port, is_own in (old, True), (soon, False):
        everywhere(c, port, is_own)
    start(c, "l", "wait", f"get=http://127.0.0.1:{soon}/", pipeStdin=True, **own(f"127.0.0.1:{soon}"))
    s.reload(text + f"[listener new]\naddress = ws://127.0.0.1:{soon}\n" + who)
    c.wait_closed()
    c = s.connect(token="t").ready(resumeSessionId=c.session_id)
    c.write("p", f"{soon}\n{old}\n".encode())
    c.write("l", b"\n")
    c.call("process/closeStdin", {"processId": "p"})
    assert c.finished("p").stdout.split() == ["13", "111"]
    assert end(c, "l")[0][0][0] == 403
    for port, is_own in (soon, True), (old, False), (port_of(s), True):
        everywhere(c, port, is_own)


def test_where_no_listener_has_a_port(configured, user, directory):  # noqa: F811
    """Then one of a reload is out of reach, too."""
    with socket.create_server(("127.0.0.1", 0)) as new:
        port = new.getsockname()[1]
    text = f"[listener path]\naddress = unix:{directory}/sock\nmode = 0666\n" + identity(user)
    s = configured(text)
    c = s.connect(f"unix:{directory}/sock", token="t").ready()
    assert connects(c, "p", [f"127.0.0.1:{port}"]) == ["ECONNREFUSED"]
    s.reload(text + f"[listener new]\naddress = ws://127.0.0.1:{port}\n")
    c.wait_closed()
    c = s.connect(f"unix:{directory}/sock", token="t").ready(resumeSessionId=c.session_id)
    assert connects(c, "q", [f"127.0.0.1:{port}"]) == ["EACCES"]
