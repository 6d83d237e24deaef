# SPDX-License-Identifier: ISC
"""/livez, /healthz and /readyz tell the truth: each program is stopped in turn, and the front-end says so by itself."""
import os
import signal
import socket
import time

import pytest
from conftest import digest, poll, stopped
from execd_client import start_params
from test_ctl import Ctl
from test_hangs import BOUND, child
from test_listeners import get
from test_metrics import Scraper
from test_spare import spares
from test_tls import Authority

WELL = (200, "ok\n")


@pytest.fixture
def operated(configured, user, directory):
    """An execd with TLS, the operator's listener, and a plain one."""
    def start(**more):
        base = Authority(directory).issue("server", group=user.pw_gid)
        s = configured(f"[listener tls]\naddress = wss://127.0.0.1:0\ncertificate = {base}.pem\ncertificate-key = {base}.key\n"
                       "[listener plain]\naddress = ws://127.0.0.1:0\n"
                       f"[listener op]\naddress = unix:{directory}/op\noperate = yes\n"
                       f"[identity a]\nuser = {user.pw_name}\ntoken-sha256 = {digest('t')}\nsandbox-allow-unsandboxed = yes\n", **more)
        return s, s.urls[1], f"unix:{directory}/op"

    return start


def head(url, path):
    from execd_client import dial
    with dial(url) as s:
        s.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        data = b""
        while piece := s.recv(65536):
            data += piece
    return data.decode().split("\r\n\r\n", 1)[0].lower()


def test_all_is_well(operated):
    s, plain, op = operated()
    assert get(op, "/livez") == get(op, "/healthz") == get(op, "/readyz") == WELL
    assert get(plain, "/readyz") == (200, "") and get(plain, "/livez")[0] == get(plain, "/healthz")[0] == 404
    assert get(op, "/livez", "HEAD") == (200, "") and get(op, "/livez", "POST")[0] == 404


def test_a_broker_that_hangs(operated):
    """The front-end says so within ten seconds, and root ends it within sixteen; sessions go on."""
    s, plain, op = operated()
    c = s.connect(plain, token="t").ready()
    broker, began = s.broker, time.monotonic()
    os.kill(broker, signal.SIGSTOP)
    poll(lambda: get(op, "/healthz") == (503, "the broker does not answer\n"), 10, "a word about it")
    assert get(op, "/readyz")[0] == get(plain, "/readyz")[0] == 503 and get(plain, "/readyz")[1] == ""
    assert get(op, "/livez") == WELL
    for url in (op, plain):
        assert "\r\nretry-after: " in head(url, "/readyz")
    poll(lambda: s.broker != broker, BOUND, "another broker")
    assert time.monotonic() - began < BOUND
    poll(lambda: get(op, "/healthz") == WELL and get(plain, "/readyz")[0] == 200, what="health")
    c.wait_closed()
    again = s.connect(plain, token="t").ready(resumeSessionId=c.session_id)
    assert again.run("x", ["/bin/echo", "in"]).stdout == "in\n"


def test_a_key_process_that_hangs_is_noticed_without_a_client(operated):
    s, plain, op = operated()
    keys = child(s.pid, "execd-keys")
    os.kill(keys, signal.SIGSTOP)
    s.wait_log(f"key process {keys}: does not answer: killing it", 10)
    poll(lambda: child(s.pid, "execd-keys") != keys, what="another one")
    poll(lambda: get(op, "/healthz") == WELL, what="health")


def test_a_key_process_that_is_gone(operated):
    """One that dies again and again is started again each second; until then that is said."""
    s, plain, op = operated()
    told = set()
    for _ in range(2):
        os.kill(child(s.pid, "execd-keys"), signal.SIGKILL)
        s.wait_log("TLS handshakes fail until there is another")
        told.add(get(op, "/healthz"))
    assert (503, "the key process does not answer\n") in told
    poll(lambda: get(op, "/healthz") == WELL, what="health")


def test_a_front_end_that_hangs(operated):
    """Nobody is there to say so; who asks is answered by the next one."""
    s, plain, op = operated()
    os.kill(s.frontend(), signal.SIGSTOP)
    began = time.monotonic()
    assert get(op, "/healthz") == WELL
    assert time.monotonic() - began < 12


def ask_to_come_in(url, token):
    """A handshake that waits for the broker's word."""
    from execd_client import dial, upgrade
    sock = dial(url)
    sock.settimeout(20)
    sock.sendall(upgrade(f"Authorization: Bearer {token}\r\n"))
    return sock


def test_credentials_wait_for_a_broker_that_hangs_and_nobody_else_does(operated):
    """More of them than its socket holds: the front-end goes on, says that the broker hangs, and sends them later."""
    s, plain, op = operated()
    c = s.connect(plain, token="t").ready()
    c.sh("p", "i=0; while :; do i=$((i + 1)); echo $i; sleep 0.1; done")
    c.wait_output("p", "3")
    broker = s.broker
    os.kill(broker, signal.SIGSTOP)
    began = time.monotonic()
    waiting = [ask_to_come_in(plain, "t") for _ in range(40)]
    # 256 wait beside what the socket holds; whoever comes then is told to come again.
    large = [ask_to_come_in(plain, "x" * 8000) for _ in range(400)]
    seen = c.output("p")
    poll(lambda: get(op, "/livez") == WELL, 3, "an answer")
    assert large[-1].recv(100).startswith(b"HTTP/1.1 503 ")
    poll(lambda: len(c.output("p")) > len(seen), 5, "output of a session that there is")
    assert c.call("environment/status") == {"status": "ready"}
    assert time.monotonic() - began < 10, "too slow: root ends a broker that hangs"
    os.kill(broker, signal.SIGCONT)
    assert all(sock.recv(100).startswith(b"HTTP/1.1 101 ") for sock in waiting)
    answers = {sock.recv(100).split(b"\r\n")[0] for sock in large[:-1]}
    assert answers == {b"HTTP/1.1 401 Unauthorized", b"HTTP/1.1 503 Service Unavailable"}
    assert s.broker == broker and s.connect(plain, token="t").ready().run("x", ["/bin/echo", "in"]).stdout == "in\n"
    for sock in waiting + large:
        sock.close()


def test_a_root_that_is_stopped(operated, user):
    """No session opens then, which a balancer sees; those that there are go on, and a new one is told why."""
    s, plain, op = operated()
    c, broker = s.connect(plain, token="t").ready(), s.broker
    # A broker that has just asked root for a spare runner ends when no answer comes. This one answers, so it has it.
    poll(lambda: spares(s) or s.connect(plain, token="t").ready().drop(), what="spare")
    Ctl(s, user).json("status")
    with stopped(s.pid):
        poll(lambda: get(op, "/healthz") == (503, "root's execd does not answer\n"), 10, "a word about it")
        assert get(op, "/readyz")[0] == get(plain, "/readyz")[0] == 503 and get(op, "/livez") == WELL
        assert Ctl(s, user).json("status")["health"] == "root's execd does not answer"
        assert c.run("x", ["/bin/echo", "in"]).stdout == "in\n"
        # A spare runner may be there for one.
        told = [s.connect(plain, token="t").request("initialize", {"clientName": "x"}) for _ in range(2)]
        assert "Connection timed out" in told[1]["error"]["message"], told
        assert s.broker == broker
    poll(lambda: get(op, "/healthz") == WELL and get(plain, "/readyz")[0] == 200, what="health")
    # That the account could not be asked about holds for ten seconds.
    poll(lambda: "result" in s.connect(plain, token="t").request("initialize", {"clientName": "x"}), what="a session")


STOP = ["/bin/sh", "-c", "kill -STOP $PPID"]


@pytest.fixture
def watchdog():
    """The socket of systemd, and how often it was told that all is well."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(f"\0execd-test-watchdog-{os.getpid()}")
        sock.settimeout(20)

        def fed():
            while sock.recv(4096) != b"WATCHDOG=1":
                continue
            return True

        fed.environment = {**os.environ, "NOTIFY_SOCKET": f"@execd-test-watchdog-{os.getpid()}", "WATCHDOG_USEC": "2000000"}
        yield fed


def test_who_stops_his_own_runner_makes_nobody_ill(operated, user, mode, watchdog):
    """It is shown, and changes nothing: not /livez, not /readyz, not the watchdog, not another session."""
    s, plain, op = operated(env=watchdog.environment)
    c, other = (s.connect(plain, token="t").ready() for _ in range(2))
    ctl, runner = Ctl(s, user), s.runner(c)

    def silent():
        return {x["id"]: not x["answers"] for x in ctl.sessions()}

    assert not any(silent().values()) and Scraper(op)("execd_silent_runners") == 0
    if mode == "user":
        c.post("process/start", start_params("stop", STOP))
    else:       # It is the first process of its namespace, and its own commands stop it in vain.
        assert c.run("stop", STOP).code == 0
        os.kill(runner, signal.SIGSTOP)
    poll(lambda: "State:\tT" in open(f"/proc/{runner}/status").read(), what="the stop")
    try:
        assert silent() == {c.session_id[:8]: True, other.session_id[:8]: False}
        assert "its runner does not answer" in ctl("list")
        assert poll(lambda: Scraper(op)("execd_silent_runners"), what="the metric") == 1
        for _ in range(3):
            assert watchdog()
        assert get(op, "/livez") == get(op, "/healthz") == get(op, "/readyz") == WELL
        assert other.run("x", ["/bin/echo", "in"]).stdout == "in\n"
        assert s.connect(plain, token="t").ready().run("x", ["/bin/echo", "in"]).stdout == "in\n"
    finally:
        os.kill(runner, signal.SIGCONT)
    poll(lambda: not any(silent().values()), what="its answer")
    assert c.run("x", ["/bin/echo", "in"]).stdout == "in\n"
