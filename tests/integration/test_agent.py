# SPDX-License-Identifier: ISC
"""`serve = agent` (execd.conf(5)): one line for a proxy's agent check, which is
true, comes at once, and costs nobody anything."""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
from urllib.parse import urlsplit

import pytest
from conftest import PATIENCE_S, digest, poll
from execd_client import dial
from test_config import check
from test_ctl import Ctl

HAPROXY = shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin:/usr/bin")


def configuration(user, limits="", agent=""):
    return (f"[listener main]\naddress = ws://127.0.0.1:0\n[listener agent]\naddress = tcp://127.0.0.1:0\n"
            f"serve = agent\n{agent}[identity a]\nuser = {user.pw_name}\nsandbox-allow-unsandboxed = yes\n"
            f"token-sha256 = {digest('t')}\n[limits]\nexempt = none\n{limits}")


def ask(server, send=b""):
    with dial(server.urls[1]) as s:
        s.settimeout(PATIENCE_S)
        s.sendall(send)
        return b"".join(iter(lambda: s.recv(100), b"")).decode()


def room(server):
    """The percentage, or None."""
    m = re.fullmatch(r"ready up (\d+)%\n", ask(server))
    return m and int(m[1])


def test_room_is_that_for_sessions(configured, user):
    s = configured(configuration(user, "max-sessions = 4\n"))
    assert re.fullmatch(r"tcp://127\.0\.0\.1:\d+", s.urls[1])
    # The pressure of this host may say less.
    assert 1 <= room(s) <= 100
    held = [s.connect(token="t").ready() for _ in range(3)]
    poll(lambda: 1 <= room(s) <= 25, what="a quarter")
    held.append(s.connect(token="t").ready())
    poll(lambda: room(s) == 0, what="no room")
    # One that never started anything makes room at once when it is detached.
    held[0].run("x", ["/bin/true"])
    held[0].drop()
    s.wait_log(f"session {held[0].session_id[:8]}: detached")
    assert room(s) == 0, "a detached session has its place"


def test_drain(configured, user):
    s = configured(configuration(user))
    ctl = Ctl(s, user)
    ctl("drain")
    poll(lambda: ask(s) == "drain\n", what="drain")
    ctl("undrain")
    poll(lambda: room(s), what="room")


def test_a_stop_is_a_drain(configured, user):
    s = configured(configuration(user, "drain-timeout = 1m\n"))
    c = s.connect(token="t").ready()
    os.kill(s.pid, signal.SIGTERM)
    poll(lambda: ask(s) == "drain\n", what="drain")
    assert c.run("x", ["/bin/echo", "in"]).stdout == "in\n"


def test_a_broker_that_hangs(configured, user):
    """It is replaced, and its sessions go on: nobody new is sent, and those who resume still are."""
    s = configured(configuration(user))
    poll(lambda: room(s), what="room")
    broker = s.broker
    os.kill(broker, signal.SIGSTOP)
    seen = set()
    poll(lambda: seen.add(ask(s)) or "ready up 0%\n" in seen, what="no room")
    poll(lambda: seen.add(ask(s)) or (s.broker != broker and room(s)), what="room again")
    assert "down\n" not in seen


@pytest.mark.nightly
def test_a_broker_that_nobody_replaces(configured, user):
    s = configured(configuration(user))
    broker = s.broker
    for pid in s.pid, broker:
        os.kill(pid, signal.SIGSTOP)
    try:
        poll(lambda: ask(s) == "down\n", what="down")
    finally:
        for pid in broker, s.pid:
            os.kill(pid, signal.SIGCONT)
    poll(lambda: room(s), what="room again")


def test_nobody_is_admitted_or_penalised(configured, user):
    """At all limits, and for those who were caught: the line comes."""
    s = configured(configuration(user, "max-connections = 1\nmax-connections-per-source = 1\npenalty-protocol = 1m\n"))
    held = [s.connect(token="t").ready()]
    for _ in range(100):
        assert ask(s, b"no line at all " * 100 + b"\n").endswith("%\n")
    assert "too many failures" not in s.log
    assert held[0].run("x", ["/bin/echo", "in"]).stdout == "in\n"


def open_sockets(url):
    """The server's connections at that address, while a program has them open: others may not look into its /proc."""
    address, inode, port = 1, 9, f"{urlsplit(url).port:04X}"
    rows = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(r[address].endswith(f":{port}") and r[inode] != "0" for r in rows) - 1  # it listens, too


def test_silent_ones_cost_sixteen_descriptors(configured, user):
    """They do not close, and send what nobody reads."""
    s = configured(configuration(user))
    silent = [dial(s.urls[1]) for _ in range(100)]
    for c in silent:
        c.settimeout(PATIENCE_S)
        assert c.recv(100).endswith(b"%\n")
    poll(lambda: open_sockets(s.urls[1]) <= 16, what="end of the oldest")
    assert silent and ask(s).startswith("ready up ")
    s.connect(token="t").ready()


def test_reload_to_and_fro(configured, user):
    s = configured(configuration(user))
    port = urlsplit(s.urls[1]).port
    s.reload(configuration(user, "max-sessions = 10\n"))
    assert room(s) and urlsplit(s.urls[1]).port == port
    text = configuration(user)
    s.reload(text[:text.index("[listener agent]")] + text[text.index("[identity"):])
    with pytest.raises(OSError):
        ask(s)


def test_what_the_configuration_refuses(mode, user, directory):
    path = directory / "execd.conf"
    for old, new, why in [
            ("tcp://", "ws://", "serve = agent needs the address tcp://IP:PORT"),
            ("serve = agent", "operate = no", "tcp://IP:PORT is for serve = agent"),
            ("serve = agent", "serve = agents", "is neither sessions nor agent"),
            ("serve = agent", "serve = agent\ntrusted-proxy = 10.0.0.1", "may have no key about them"),
            ("serve = agent", "serve = agent\nidentities = a", "may have no key about them")]:
        path.write_text(configuration(user).replace(old, new))
        code, _, err = check(mode, user, path, "-t")
        assert code == 3 and why in err, (new, code, err)
    path.write_text(configuration(user).replace("tcp://127.0.0.1:0", "tcp://0.0.0.0:0"))
    code, _, err = check(mode, user, path, "-t")
    assert code == 0 and "plain text" not in err, err


def test_no_flag_makes_one(mode, user):
    from conftest import command
    r = subprocess.run(command(mode, user, ["--listen", "tcp://127.0.0.1:0"]), capture_output=True, text=True)
    assert r.returncode == 2 and "unsupported --listen URL" in r.stderr


# --- the real one ---------------------------------------------------------------------

HAPROXY_CONF = """
global
    log stderr local0 warning
    stats socket {socket} mode 600 level admin
defaults
    mode tcp
    timeout connect 5s
    timeout client 1m
    timeout server 1m
frontend clients
    bind unix@{socket}.clients
    default_backend execd
backend execd
    server a 127.0.0.1:{execd} weight 100 check agent-check agent-port {agent} agent-inter 100ms agent-send "a\\n"
"""


def test_haproxy(configured, user, directory):
    if HAPROXY is None:
        pytest.skip("HAPROXY IS NOT TESTED: the package haproxy is missing")
    s = configured(configuration(user, "max-sessions = 4\n"))
    path, at = directory / "haproxy.cfg", directory / "stats"
    path.write_text(HAPROXY_CONF.format(socket=at, execd=urlsplit(s.url).port, agent=urlsplit(s.urls[1]).port))
    child = subprocess.Popen([HAPROXY, "-db", "-f", str(path)], stdout=subprocess.DEVNULL)

    def seen():
        with socket.socket(socket.AF_UNIX) as c:
            try:
                c.connect(str(at))
            except OSError:
                return {}
            c.sendall(b"show stat\n")
            head, *rows = b"".join(iter(lambda: c.recv(65536), b"")).decode().splitlines()
        return next(dict(zip(head.split(","), r.split(","))) for r in rows if r.startswith("execd,a,"))

    def state():
        row = seen()
        return (row["status"], int(row["weight"])) if row else ("", -1)

    try:
        poll(lambda: state()[0] == "UP" and 1 <= state()[1] <= 100, what="a host that is up")
        held = [s.connect(token="t").ready() for _ in range(3)]
        poll(lambda: 1 <= state()[1] <= 25, what="a weight of a quarter")
        ctl = Ctl(s, user)
        ctl("drain")
        poll(lambda: state()[0].startswith("DRAIN"), what="drain")
        ctl("undrain")
        poll(lambda: state()[0] == "UP", what="a host that is up again")
        held.append(s.connect(token="t").ready())
        poll(lambda: state()[1] == 0, what="a weight of nothing")
    finally:
        child.kill()
        child.wait()
