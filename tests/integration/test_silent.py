# SPDX-License-Identifier: ISC
"""A connection that is lost without a packet that says so: whoever comes back for its session gets it, and a client that
lives keeps it, however little it says."""
import base64
import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import pytest
from conftest import ROOT, digest, kill, more_rounds, poll
from execctl import EXECCTL, Execctl
from execd_client import b64
from lossy_network import LossyNetwork
from test_proxy_protocol import haproxy  # noqa: F401
from test_tls import Authority

ATTACHED = "session {} is already attached to another connection"
SILENT = "the session was resumed elsewhere: this client gave no sign of life"


@pytest.fixture
def network():
    if not ROOT:
        pytest.skip("SILENT CONNECTIONS ARE NOT TESTED: a network namespace needs root")
    try:
        n = LossyNetwork()
    except (OSError, subprocess.CalledProcessError) as e:
        pytest.skip(f"SILENT CONNECTIONS ARE NOT TESTED: no network namespace here: {e}")
    yield n
    n.close()


def configuration(user, address, listener="", limits=""):
    return (f"[listener a]\naddress = {address}\n{listener}"
            f"[identity one]\nuser = {user.pw_name}\nsandbox-allow-unsandboxed = yes\ntoken-sha256 = {digest('t')}\n"
            f"[identity two]\nuser = {user.pw_name}\nsandbox-allow-unsandboxed = yes\ntoken-sha256 = {digest('u')}\n"
            f"[limits]\n{limits}")


WAYS = ["handed-over", "relayed", "wss", "haproxy", "haproxy-relayed", "haproxy-wss"]


class Way:
    """A server, and how a client in the network reaches it."""

    def __init__(self, request, network, user, directory, way):
        listener, scheme, self.tls, self.ca = "", "ws", None, None
        if "relayed" in way:
            listener += "hand-over = no\n"
        if "wss" in way:
            authority = Authority(directory)
            base = authority.issue("server", group=user.pw_gid, address=network.server)
            self.ca = authority.cert
            listener += f"certificate = {base}.pem\ncertificate-key = {base}.key\n"
            scheme, self.tls = "wss", authority.client()
        if "haproxy" in way:
            listener += "trusted-proxy = 127.0.0.9\n"
        host = "127.0.0.1" if "haproxy" in way else network.server
        self.network = network
        self.server = request.getfixturevalue("configured")(configuration(user, f"{scheme}://{host}:0", listener))
        self.url = self.server.url
        if "haproxy" in way:
            at = request.getfixturevalue("haproxy")(self.server, host=network.server)
            self.url = f"{scheme}://{at}"

    def connect(self, token="t", source=None):
        with self.network.inside():
            return self.server.connect(url=self.url, token=token, tls=self.tls, source=source)


@pytest.fixture(params=WAYS)
def way(request, network, user, directory, mode):
    return Way(request, network, user, directory, request.param)


def ask(c, session):
    return c.request("initialize", {"clientName": "x", "resumeSessionId": session})


def resume(way, session):
    """As clients do: again while the old connection is said to be there. Who does so at most five seconds after the first
    try is in time."""
    c = way.connect()
    begin, tries = time.monotonic(), 0
    while (m := ask(c, session)).get("error", {}).get("code") == -32010:
        tries += 1
        assert time.monotonic() < begin + 5, f"{tries} tries"
        assert m["error"]["message"] == ATTACHED.format(session)
    assert m.get("result", {}).get("sessionId") == session, m
    c.notify("initialized")
    return c


def everything(c, id, old):
    """All that the process wrote: what the old connection had of it, and what is read behind that."""
    seen = {m["params"]["seq"]: base64.b64decode(m["params"]["chunk"]) for m in old.events(id, "process/output")}
    end = c.wait(lambda: c.events(id, "process/closed"), what="the end")[0]["params"]["seq"]
    r = c.call("process/read", {"processId": id, "afterSeq": max(seen, default=0), "maxBytes": None, "waitMs": 0})
    for chunk in r["chunks"]:
        assert chunk["seq"] not in seen
        seen[chunk["seq"]] = base64.b64decode(chunk["chunk"])
    assert sorted(seen) == list(range(1, end - 1)), "each once"
    return b"".join(seen[n] for n in sorted(seen))


TICKS = "i=0; while [ $i -lt 50 ]; do i=$((i+1)); echo tick $i; sleep .1; done"
TICKED = b"".join(b"tick %d\n" % (i + 1) for i in range(50))


def test_a_quiet_connection(way, directory):
    c = way.connect().ready()
    c.sh("p", f"echo ready; until [ -e {directory}/go ]; do sleep .1; done; echo over")
    c.wait_output("p", "ready\n")
    way.network.cut()
    again = resume(way, c.session_id)
    (directory / "go").touch()
    assert everything(again, "p", c) == b"ready\nover\n"
    # The loser learns why, when it is there again.
    way.network.mend()
    if "haproxy" not in way.url:
        assert c.wait_closed() == {"code": 1001, "reason": SILENT}


@pytest.mark.nightly
def test_a_connection_that_talks(way):
    c = way.connect().ready()
    c.sh("p", TICKS)
    c.wait_output("p", "tick 3\n")
    way.network.cut()
    again = resume(way, c.session_id)
    assert everything(again, "p", c) == TICKED
    assert b"tick 50" not in c.output("p")


def acknowledged(sock):
    """tcpi_bytes_acked of struct tcp_info."""
    return struct.unpack_from("<Q", sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256), 120)[0]


def post_apart(c, method, params):
    """A message that takes long to send. Its connection may be lost meanwhile."""
    def post():
        with contextlib.suppress(OSError):
            c.post(method, params)

    threading.Thread(target=post, daemon=True).start()


@pytest.fixture
def there(directory):
    (directory / "there").mkdir()
    (directory / "there").chmod(0o777)
    return directory / "there/big"


def put(there, data):
    return {"path": f"file://{there}", "dataBase64": b64(data)}


def test_in_the_middle_of_an_upload(way, there):
    """Half a message has come, and the rest never does."""
    data = os.urandom(8 << 20)
    way.network.slow(up="4mbit")
    c = way.connect().ready()
    post_apart(c, "fs/writeFile", put(there, data))
    poll(lambda: acknowledged(c.sock) > 1 << 20, what="a megabyte")
    way.network.cut()
    again = resume(way, c.session_id)
    assert not there.exists()
    way.network.slow(up="1gbit")
    assert "result" in again.request("fs/writeFile", put(there, data))
    assert there.read_bytes() == data


@pytest.mark.nightly
def test_in_the_middle_of_a_download(way, directory):
    """More waits than a proxy and all kernels hold."""
    way.network.slow(down="8mbit")
    c = way.connect().ready()
    c.sh("p", f"head -c 40000000 /dev/zero; touch {directory}/over")
    c.wait(lambda: len(c.frames) > 100, what="output")
    way.network.cut()
    again = resume(way, c.session_id)
    way.network.slow(down="1gbit")
    again.exited("p")
    assert (directory / "over").exists()


# --- execctl -----------------------------------------------------------------------------


@pytest.fixture
def ctl(way, directory):
    """In the client's network, and quick to find that it is lost."""
    options = ["--silence-timeout", "2s", *(["--ca", way.ca] if way.tls else [])]
    ctl = Execctl(directory, way.url, EXECD_TOKEN="t")
    return lambda *args: subprocess.Popen(way.network.argv([EXECCTL, *options, *args]), env=ctl.env, stdin=subprocess.DEVNULL,
                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.nightly
@pytest.mark.parametrize("way", ["handed-over", "wss", "haproxy"], indirect=True)
@pytest.mark.parametrize("script, output", [
    ("echo tick 1; until [ -e $go ]; do sleep .1; done; echo over", b"tick 1\nover\n"), (TICKS, TICKED)])
def test_execctl_goes_on(way, ctl, directory, script, output):
    p = ctl("run", "sh", "-c", f"go={directory}/go; {script}; exit 7")
    out = p.stdout.readline()
    assert out == b"tick 1\n", p.stderr.read()
    way.network.cut()
    way.server.wait_log(": resumed, ", unless="not resumed within")
    (directory / "go").touch()
    more, err = p.communicate(timeout=60)
    assert (p.returncode, out + more) == (7, output), err


@pytest.mark.nightly
@pytest.mark.parametrize("way", ["handed-over", "wss", "haproxy"], indirect=True)
@pytest.mark.parametrize("up", [True, False])
def test_execctl_copies_on(way, ctl, there, directory, up):
    """The file goes on where it was cut, and is whole."""
    data = os.urandom(3 << 20)
    mine, own = directory / "mine", directory / "own"
    (mine if up else own).write_bytes(data)
    own.exists() and own.chmod(0o644)
    way.network.slow(up="8mbit", down="8mbit")
    p = ctl("cp", mine, f":{there}") if up else ctl("cp", f":{own}", mine)
    poll(lambda: carried(way.network) > 1 << 20, what="a megabyte")
    way.network.cut()
    out, err = p.communicate(timeout=60)
    assert p.returncode == 0, err
    assert (there if up else mine).read_bytes() == data
    assert ": resumed, " in way.server.log


def carried(network):
    """Bytes in the larger direction."""
    at = "/sys/class/net/" + network.devices[0] + "/statistics/"
    return max(int(open(at + n).read()) for n in ("rx_bytes", "tx_bytes"))


# --- who is there keeps it ---------------------------------------------------------------


@pytest.mark.nightly
@pytest.mark.parametrize("way", ["handed-over", "relayed", "haproxy"], indirect=True)
def test_a_slow_upload_keeps_its_session(way, there):
    data = os.urandom(1 << 20)
    other = way.connect()
    c = way.connect().ready()
    c.answers_pings = True      # behind the message, as everybody does
    way.network.slow(up="1mbit")
    post_apart(c, "fs/writeFile", put(there, data))
    tries = 0
    while not any("id" in m and m["id"] == 2 for m in c.messages):
        r = ask(other, c.session_id)
        assert r.get("error") == {"code": -32010, "message": ATTACHED.format(c.session_id)}, (tries, r, way.server.log)
        tries += 1
    assert tries > 1 and c.closed is None and there.read_bytes() == data


CLIENT = """
import sys; sys.path.insert(0, {path!r})
from execd_client import WebSocket
c = WebSocket({url!r}).ready()
c.sh("p", {script!r})
c.wait_output("p", "begin\\n")
print(c.session_id, flush=True)
c.finished("p", 300)
print(len(c.output("p")), c.closed, flush=True)
"""


@pytest.mark.parametrize("hand_over", ["yes", "no"])
@pytest.mark.parametrize("waits", [False, True])
def test_a_client_that_is_stopped_is_never_robbed(configured, user, directory, hand_over, waits):
    """Its kernel answers for it: also while output waits for it, and for much longer than the deadline of pings."""
    mib = 64 if waits else 0
    script = (f"echo begin; head -c {mib << 20} /dev/zero | tr '\\0' x; touch {directory}/written; "
              f"until [ -e {directory}/go ]; do sleep .1; done")
    s = configured(f"[listener a]\naddress = ws://127.0.0.1:0\nhand-over = {hand_over}\nallow-unauthenticated = one\n"
                   f"[identity one]\nuser = {user.pw_name}\nsandbox-allow-unsandboxed = yes\n"
                   "[limits]\nping-interval = 100ms\npong-deadline = 300ms\n")
    p = subprocess.Popen([sys.executable, "-c", CLIENT.format(path=os.path.dirname(__file__), url=s.url, script=script)],
                         stdout=subprocess.PIPE, text=True)
    try:
        session = p.stdout.readline().strip()
        p.send_signal(signal.SIGSTOP)
        other = s.connect()
        begin = time.monotonic()
        while time.monotonic() < begin + more_rounds(5, 60):
            assert ask(other, session).get("error") == {"code": -32010, "message": ATTACHED.format(session)}, s.log
        assert (directory / "written").exists() != waits, "its output waits"
        p.send_signal(signal.SIGCONT)
        (directory / "go").touch()
        assert p.stdout.readline() == f"{len('begin') + 1 + (mib << 20)} None\n"
    finally:
        p.kill()
        p.wait()
    assert "no pong" not in s.log


def test_another_identity_asks_nobody(network, configured, user):
    """It is not even told that there is such a session, and the client that has it notices nothing."""
    s = configured(configuration(user, "ws://127.0.0.1:0"))
    c = s.connect(token="t").ready()
    assert ask(s.connect(token="u"), c.session_id)["error"]["message"] == f"unknown session id {c.session_id}"
    assert ask(s.connect(token="t"), c.session_id)["error"]["code"] == -32010
    c.call("environment/status")
    assert [opcode for opcode, _ in c.frames].count(9) == 1, "one ping, for the second"


@pytest.mark.parametrize("way", ["handed-over", "relayed"], indirect=True)
def test_one_newcomer_at_a_time(way):
    c = way.connect().ready()
    way.network.cut()
    both = [way.connect(), way.connect()]
    for newcomer in both:
        newcomer.post("initialize", {"clientName": "x", "resumeSessionId": c.session_id}, id=7)
    results = [newcomer.answer(7) for newcomer in both]
    assert sorted(r.get("error", {}).get("code", 0) for r in results) == [-32010, 0], results


@pytest.mark.parametrize("way", ["handed-over", "relayed"], indirect=True)
def test_a_newcomer_that_leaves(way):
    c = way.connect().ready()
    way.network.cut()
    newcomer = way.connect()
    newcomer.post("initialize", {"clientName": "x", "resumeSessionId": c.session_id})
    newcomer.drop()
    resume(way, c.session_id)


def test_a_runner_that_is_stopped_counts_as_alive(configured, user):
    s = configured(configuration(user, "ws://127.0.0.1:0"))
    c = s.connect(token="t").ready()
    runner = s.runner(c)
    kill(runner, signal.SIGSTOP)
    try:
        assert ask(s.connect(token="t"), c.session_id)["error"]["code"] == -32010
    finally:
        kill(runner, signal.SIGCONT)
    assert c.run("p", ["/bin/echo", "in"]).stdout == "in\n"


# --- the deadline of pings ---------------------------------------------------------------

SOON = "ping-interval = 200ms\npong-deadline = 1s\n"


@pytest.mark.nightly
@pytest.mark.parametrize("hand_over", ["yes", "no"])
def test_a_slow_client_is_never_cut(network, configured, user, hand_over):
    s = configured(configuration(user, f"ws://{network.server}:0", f"hand-over = {hand_over}\n", SOON))
    network.slow(down="200kbit")
    with network.inside():
        c = s.connect(token="t")
    c.ready()
    assert len(c.run("p", ["/usr/bin/head", "-c", "150000", "/dev/zero"], timeout=120).stdout) == 150000
    assert c.closed is None and "no pong" not in s.log


@pytest.mark.parametrize("hand_over", ["yes", "no"])
def test_a_dead_one_is_found_while_output_waits(network, configured, user, hand_over):
    s = configured(configuration(user, f"ws://{network.server}:0", f"hand-over = {hand_over}\n", SOON))
    with network.inside():
        c = s.connect(token="t")
    c.ready()
    c.sh("p", "yes")
    c.wait_output("p", "y\ny\n")
    network.cut()
    s.wait_log("no pong within 1000 ms")
    s.wait_log("detached")
