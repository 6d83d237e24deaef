# SPDX-License-Identifier: ISC
"""The PROXY protocol, version 2 (trusted-proxy in execd.conf(5)): whose header is
believed, what becomes of its client, and what a proxy or a stranger can do with
one. 127.0.0.9 is the trusted proxy; every other address of 127.0.0.0/8 is a
stranger."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from urllib.parse import urlsplit

import pytest
from conftest import PATIENCE_S, digest, poll
from execctl import Execctl
from execd_client import Closed, dial, upgrade
from test_ctl import Ctl
from test_listeners import get
from test_sources import WRONG
from test_tls import Authority

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
PROXY = "127.0.0.9"
LOCAL = SIGNATURE + b"\x20\0\0\0"


def header(address="203.0.113.7", port=50000, more=b"", command=1, family=None, length=None, version=2):
    v6 = ":" in address
    body = socket.inet_pton(socket.AF_INET6 if v6 else socket.AF_INET, address)
    body += bytes(len(body)) + port.to_bytes(2, "big") + b"\0\x50" + more
    return (SIGNATURE + bytes([version << 4 | command, family if family is not None else 0x21 if v6 else 0x11]) +
            (len(body) if length is None else length).to_bytes(2, "big") + body)


def configuration(user, limits="", listener="", rest="", address="ws://127.0.0.1:0"):
    return (f"[listener main]\naddress = {address}\ntrusted-proxy = {PROXY} ::1\n{listener}"
            f"[identity a]\nuser = {user.pw_name}\nsandbox-allow-unsandboxed = yes\ntoken-sha256 = {digest('t')}\n"
            f"[limits]\nexempt = none\n{limits}{rest}")


def knock(server, data=b"", source=PROXY, url=None):
    s = dial(url or server.url, source=source, before=data)
    s.settimeout(PATIENCE_S)
    return s


def answer(server, data, source=PROXY, url=None):
    """All that comes back; b"" if the connection is closed without a word."""
    s = knock(server, b"", source, url)
    got = b""
    try:
        s.sendall(data)
        while piece := s.recv(4096):
            got += piece
    except (ConnectionResetError, BrokenPipeError):
        pass
    finally:
        s.close()
    return got


def events(log, name):
    return [e for e in map(json.loads, log.read_text().splitlines()) if e["event"] == name]


@pytest.mark.parametrize("address, peer", [("203.0.113.7", "websocket 203.0.113.7:50000"),
                                           ("2001:db8::7", "websocket [2001:db8::7]:50000")])
@pytest.mark.parametrize("hand_over", ["yes", "no"])
def test_its_client_is_who_is_seen(configured, user, directory, address, peer, hand_over):
    log = directory / "audit.jsonl"
    s = configured(configuration(user, listener=f"hand-over = {hand_over}\n", rest=f"[audit]\nfile = {log}\n"))
    c = s.connect(token="t", source=PROXY, before=header(address, more=b"\x04\0\1\0")).ready()
    assert c.run("x", ["/bin/echo", "in"]).stdout == "in\n"
    assert [x["peer"] for x in Ctl(s, user).sessions()] == [peer]
    with pytest.raises(Closed):
        s.connect(token="no", source=PROXY, before=header(address))
    for name in ("granted", "session-opened", "refused"):
        event, = events(log, name)
        assert event["peer"] == peer and re.fullmatch(rf"websocket {PROXY}:\d+", event["proxy"]), event
    assert events(log, "process-started")[0]["peer"] == peer
    s.wait_log(f"opened for a, {peer}")


def test_without_a_proxy_nothing_is_said_of_one(configured, user, directory):
    log = directory / "audit.jsonl"
    s = configured(configuration(user, rest=f"[audit]\nfile = {log}\n"))
    s.connect(token="t", source="127.0.0.2").ready()
    assert "proxy" not in log.read_text()


def test_header_and_request_in_one_segment_or_in_many(configured, user):
    s = configured(configuration(user))
    assert b" 401 " in answer(s, header() + WRONG)
    c = knock(s)
    for byte in header() + WRONG:
        c.sendall(bytes([byte]))
    assert b" 401 " in c.recv(4096)


def test_penalties_are_the_clients(configured, user):
    s = configured(configuration(user, "penalty-authentication = 10s\n"))
    for _ in range(5):
        reply = answer(s, header("203.0.113.7") + WRONG)
    assert b" 503 " in reply
    s.wait_log("websocket 203.0.113.7:50000: too many failures from there")
    assert b" 401 " in answer(s, header("203.0.113.8") + WRONG)
    s.connect(token="t", source=PROXY, before=header("203.0.113.8")).ready()
    # A client has the same penalty when it comes without the proxy.
    assert b" 401 " in answer(s, header("127.0.0.3") + WRONG)
    for _ in range(5):
        reply = answer(s, WRONG, source="127.0.0.3")
    assert b" 503 " in reply and b" 503 " in answer(s, header("127.0.0.3") + WRONG)


def test_the_cap_of_a_source_is_not_the_cap_of_the_proxy(configured, user):
    s = configured(configuration(user, "max-connections-per-source = 3\n"))
    held = [s.connect(token="t", source=PROXY, before=header(f"203.0.113.{i}")).ready() for i in range(10)]
    held += [s.connect(token="t", source=PROXY, before=header("203.0.113.0")).ready() for _ in range(2)]
    assert b" 503 " in answer(s, header("203.0.113.0") + upgrade())
    assert all(c.run("x", ["/bin/echo", "in"]).stdout == "in\n" for c in held)


def test_all_connections_have_a_limit(configured, user):
    s = configured(configuration(user, "max-connections = 3\n"))
    owing = [knock(s) for _ in range(3)]
    poll(lambda: b" 503 " in answer(s, header() + upgrade()), what="the limit")
    owing[0].close()
    poll(lambda: b" 401 " in answer(s, header() + WRONG), what="room")


def test_a_health_check_has_no_cap_and_no_penalty(configured, user):
    s = configured(configuration(user, "penalty-authentication = 1m\nmax-connections-per-source = 2\n"))
    for _ in range(8):
        assert b" 401 " in answer(s, LOCAL + WRONG)
    held = [knock(s, LOCAL + b"GET ") for _ in range(8)]
    c = s.connect(token="t", source=PROXY, before=LOCAL).ready()
    assert c.run("x", ["/bin/echo", "in"]).stdout == "in\n"
    assert "too many failures" not in s.log and held
    before = s.log
    assert answer_nothing(s, LOCAL) == answer_nothing(s, b"") == b""
    assert "trusted proxy, closed" not in s.log[len(before):]


def answer_nothing(server, data):
    """It looks whether the port is open, and goes."""
    with knock(server, data) as c:
        c.shutdown(socket.SHUT_WR)
        return c.recv(100)


BAD = {
    "no header": (upgrade(), "not a PROXY v2 header"),
    "version 1": (b"PROXY TCP4 203.0.113.7 127.0.0.1 50000 80\r\n", "not a PROXY v2 header"),
    "another version": (header(version=3), "its version is not 2"),
    "wrong command": (header(command=2), "its command is neither LOCAL nor PROXY"),
    "AF_UNIX": (SIGNATURE + b"\x21\x31\0\xd8" + b"/a".ljust(216, b"\0"), "its client has no address"),
    "no family": (SIGNATURE + b"\x21\0\0\0", "its client has no address"),
    "datagrams": (header(family=0x12), "its client has no address"),
    "too short": (header(length=11), "it is too short for its addresses"),
    "too long": (header(more=bytes(509)), "it is longer than 536 bytes"),
    "by far": (header(length=65535), "it is longer than 536 bytes"),
    "half": (header()[:20], "it ended within its PROXY header"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_no_header_closes(configured, user, what):
    s = configured(configuration(user, listener="operate = yes\n"))
    data, why = BAD[what]
    with knock(s) as c:
        c.sendall(data)
        try:
            c.shutdown(socket.SHUT_WR)
            assert c.recv(100) == b""
        except OSError:
            pass    # it was closed already
    s.wait_log(f"a trusted proxy, closed: {why}")
    text = get(s.url, "/metrics")[1]
    assert 'execd_connections_failed_total{step="proxy"} 1\n' in text
    # The proxy's other clients do not notice.
    assert b" 401 " in answer(s, header() + WRONG)


def test_the_longest_header(configured, user):
    s = configured(configuration(user))
    assert b" 401 " in answer(s, header(more=bytes(508)) + WRONG)


def test_the_log_does_not_fill(configured, user):
    s = configured(configuration(user))
    for _ in range(100):
        assert answer(s, upgrade()) == b""
    s.wait_log("a trusted proxy, closed")
    assert s.log.count("a trusted proxy, closed") <= 20


def test_a_header_that_drips(configured, user):
    """One byte at a time, past the deadline. The deadline is that of the whole header."""
    s = configured(configuration(user, "pre-auth-deadline = 1s\npenalty-deadline = 1m\n"))
    c = knock(s)
    began, closed = time.monotonic(), False
    for byte in header(more=bytes(400)):
        c.settimeout(.05)
        try:
            c.sendall(bytes([byte]))
            closed = c.recv(1) == b""
        except TimeoutError:
            continue
        except OSError:
            closed = True
        break
    assert closed and .9 < time.monotonic() - began < 15
    s.wait_log("no PROXY header within the pre-auth deadline")
    assert b" 401 " in answer(s, header() + WRONG), "no penalty for the proxy"


def test_those_that_owe_a_header_are_few(configured, user):
    """The oldest of them goes."""
    s = configured(configuration(user, "max-unauthenticated = 5\n"))
    owing = [knock(s) for _ in range(5)]
    assert b" 401 " in answer(s, header() + WRONG), "who brings it at once waits behind none"
    owing.append(knock(s))
    assert owing[0].recv(1) == b""
    s.wait_log("more than max-unauthenticated connections owe a header")
    owing[1].sendall(header() + WRONG)
    assert b" 401 " in owing[1].recv(4096)


def test_a_strangers_header_is_rubbish(configured, user):
    """It costs who sends it, and not who it names."""
    s = configured(configuration(user, "penalty-protocol = 10s\n"))
    for _ in range(2):
        assert b" 400 " in answer(s, header("203.0.113.7") + WRONG, source="127.0.0.2")
    assert b" 503 " in answer(s, upgrade(), source="127.0.0.2")
    assert b" 401 " in answer(s, header("203.0.113.7") + WRONG)


def test_a_listener_believes_its_own_proxies_alone(configured, user):
    s = configured(configuration(user).replace(
        "[identity", "[listener other]\naddress = ws://127.0.0.1:0\n[identity"))
    assert b" 400 " in answer(s, header() + WRONG, url=s.urls[1])
    assert b" 401 " in answer(s, header() + WRONG)


def test_tls_comes_behind_the_header(configured, user, directory):
    ca = Authority(directory)
    base = ca.issue("server", group=user.pw_gid)
    s = configured(configuration(
        user, listener=f"certificate = {base}.pem\ncertificate-key = {base}.key\n", address="wss://127.0.0.1:0"))
    c = s.connect(tls=ca.client(), token="t", source=PROXY, before=header()).ready()
    assert c.run("x", ["/bin/echo", "in"]).stdout == "in\n"
    s.wait_log("opened for a, websocket 203.0.113.7:50000")
    s.connect(tls=ca.client(), token="t", source="127.0.0.2").ready()
    assert answer(s, WRONG) == b""
    s.wait_log("not a PROXY v2 header")


def test_reload_and_stop_with_headers_owed(configured, user):
    s = configured(configuration(user))
    owing = knock(s)
    owing.sendall(header()[:10])
    s.reload(configuration(user, "pre-auth-deadline = 20s\n"))
    os.kill(s.pid, signal.SIGTERM)
    assert owing.recv(1) == b""
    assert s.child.wait(30) == 0


def test_what_the_configuration_refuses(mode, user, directory):
    from test_config import check
    path = directory / "execd.conf"
    for value, why in [("10.0.0.0/33", "is not a prefix of 0 to 32 bits"), ("proxy.example", "is not an address"),
                       ("0.0.0.0/0", "would believe whoever connects"), ("::/0", "would believe whoever connects"),
                       ("::/80", "would believe whoever connects"), ("10.0.0.1 " * 17, "more than 16 address ranges")]:
        path.write_text(configuration(user).replace(f"{PROXY} ::1", value))
        code, _, err = check(mode, user, path, "-t")
        assert code == 3 and why in err, (value, code, err)
    path.write_text(configuration(user, address=f"unix:{directory}/s"))
    assert "trusted-proxy is for TCP" in check(mode, user, path, "-t")[2]
    path.write_text(configuration(user))
    code, _, err = check(mode, user, path, "-t")
    assert code == 0 and f"what connects from {PROXY}/32 ::1/128 is a trusted proxy" in err


# --- the real one ---------------------------------------------------------------------

HAPROXY = shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin:/usr/bin")

HAPROXY_CONF = """
global
    log stderr local0 warning
defaults
    mode tcp
    timeout connect 5s
    timeout client 1m
    timeout server 1m
frontend clients
    bind {host}:{port} {bind}
    default_backend execd
backend execd
    source 127.0.0.9
    server a 127.0.0.1:{execd} send-proxy-v2 check inter 200ms {server}
"""


@pytest.fixture
def haproxy(directory):
    if HAPROXY is None:
        pytest.skip("HAPROXY IS NOT TESTED: the package haproxy is missing")
    started = []

    def start(execd, bind="", server="", host="127.0.0.1", port=0):
        with socket.create_server((host, port)) as s:
            port = s.getsockname()[1]
        path = directory / "haproxy.cfg"
        path.write_text(HAPROXY_CONF.format(host=host, port=port, bind=bind, server=server, execd=urlsplit(execd.url).port))
        started.append(subprocess.Popen([HAPROXY, "-db", "-f", str(path)], stdout=subprocess.DEVNULL))

        def answers():
            try:
                return socket.create_connection((host, port), 1).close() or True
            except OSError:
                return False

        poll(answers, what="haproxy")
        return f"{host}:{port}"

    def stop():
        for child in started:
            child.kill()
            child.wait()

    start.stop = stop
    yield start
    stop()


def check_through(s, url, log, tls=None):
    c = s.connect(url=url, token="t", tls=tls, source="127.0.0.77").ready()
    assert c.run("x", ["/bin/echo", "in"]).stdout == "in\n"
    port = c.sock.getsockname()[1]
    opened = events(log, "session-opened")[-1]
    assert opened["peer"] == f"websocket 127.0.0.77:{port}" and opened["proxy"].startswith(f"websocket {PROXY}:")
    again = s.connect(url=url, token="t", tls=tls, source="127.0.0.78")
    c.drop()
    poll(lambda: "result" in again.request(
        "initialize", {"clientName": "x", "resumeSessionId": c.session_id}), what="the session, resumed")


def test_haproxy(configured, user, directory, haproxy):
    log = directory / "audit.jsonl"
    s = configured(configuration(user, "penalty-authentication = 1m\nmax-connections-per-source = 4\n",
                                 rest=f"[audit]\nfile = {log}\n"))
    at = haproxy(s)
    check_through(s, f"ws://{at}", log)
    for _ in range(12):     # one stranger, and wrong tokens
        with dial(f"ws://{at}", source="127.0.0.66", before=WRONG) as c:
            reply = c.recv(4096)
    assert b" 503 " in reply
    for i in range(20):     # the others are served
        s.connect(url=f"ws://{at}", token="t", source=f"127.0.0.{100 + i}").ready()
    assert "trusted proxy, closed" not in s.log, "checks are no errors"


def test_haproxy_dies(configured, user, directory, haproxy):
    """A command outlives it, and execctl goes on through the next one."""
    s = configured(configuration(user))
    at = haproxy(s)
    p = Execctl(directory, f"ws://{at}", EXECD_TOKEN="t").popen(
        "run", "sh", "-c", f"echo before; until [ -e {directory}/go ]; do sleep .1; done; echo over; exit 7")
    assert p.stdout.readline() == b"before\n", p.stderr.read()
    haproxy.stop()
    s.wait_log(": detached")
    (directory / "go").touch()
    assert haproxy(s, port=int(at.rpartition(":")[2])) == at
    out, err = p.communicate(timeout=4 * PATIENCE_S)
    assert (out, p.returncode) == (b"over\n", 7), err


def test_haproxy_passes_tls_on(configured, user, directory, haproxy):
    log, ca = directory / "audit.jsonl", Authority(directory)
    base = ca.issue("server", group=user.pw_gid)
    s = configured(configuration(
        user, listener=f"certificate = {base}.pem\ncertificate-key = {base}.key\n", address="wss://127.0.0.1:0",
        rest=f"[audit]\nfile = {log}\n"))
    check_through(s, f"wss://{haproxy(s)}", log, ca.client())
    knock(s, LOCAL).close()
    s.connect(tls=ca.client(), token="t", source=PROXY, before=header()).ready()
    assert not re.search(rf"websocket {PROXY}:\d+: TLS: ", s.log), "checks are no errors"


def test_haproxy_ends_tls(configured, user, directory, haproxy):
    log, ca = directory / "audit.jsonl", Authority(directory)
    base, both = ca.issue("server", group=user.pw_gid), directory / "both.pem"
    both.write_bytes(open(f"{base}.pem", "rb").read() + open(f"{base}.key", "rb").read())
    s = configured(configuration(user, rest=f"[audit]\nfile = {log}\n"))
    check_through(s, f"wss://{haproxy(s, bind=f'ssl crt {both}')}", log, ca.client())
