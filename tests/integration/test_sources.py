# SPDX-License-Identifier: ISC
"""Hostile sources: caps and penalties for each, and nobody else (execd.conf(5)).
Every address of 127.0.0.0/8 is a source of its own here."""
import os
import pathlib
import re
import resource
import signal
import socket
import subprocess
import time
from urllib.parse import urlsplit

import pytest
from conftest import ROOT, digest, poll, stopped
from execd_client import Closed, dial, frame, upgrade


def configuration(user, limits):
    return (f"[listener main]\naddress = ws://127.0.0.1:0\n[identity a]\nuser = {user.pw_name}\nsandbox-allow-unsandboxed = yes\n"
            f"token-sha256 = {digest('t')}\n[limits]\nexempt = none\n{limits}")


def first_line(server, data, source):
    s = dial(server.url, source=source)
    try:
        s.sendall(data)
        head = b""
        while b"\r\n\r\n" not in head and (piece := s.recv(4096)):
            head += piece
    except ConnectionResetError:
        pass    # refused before it was heard
    finally:
        s.close()
    return head.decode()


WRONG = upgrade("Authorization: Bearer no\r\n")


def test_failures_add_up_and_go_away(configured, user):
    s = configured(configuration(user, "penalty-authentication = 1s\npenalty-threshold = 2500ms\n"))
    for _ in range(3):
        assert " 401 " in first_line(s, WRONG, "127.0.0.2")
    s.wait_log("too many failures from there")
    head = first_line(s, WRONG, "127.0.0.2")
    assert " 503 " in head and "retry-after: " in head
    assert 1 <= int(head.split("retry-after: ")[1].split()[0]) <= 3
    with pytest.raises((Closed, OSError)):
        s.connect(token="t", source="127.0.0.2")
    c = s.connect(token="t", source="127.0.0.3").ready()        # others notice nothing
    assert c.run("x", ["/bin/echo", "in"]).stdout == "in\n"
    poll(lambda: " 401 " in first_line(s, WRONG, "127.0.0.2"), what="end of the penalty")
    assert s.log.count("too many failures") >= 1


def test_what_is_not_http_costs_too(configured, user):
    s = configured(configuration(user, "penalty-protocol = 10s\n"))
    for _ in range(2):
        assert " 400 " in first_line(s, b"\x16\x03\x01 rubbish\r\n\r\n", "127.0.0.2")
    assert " 503 " in first_line(s, upgrade(), "127.0.0.2")
    s.connect(token="t", source="127.0.0.3").ready()


def test_silence_costs_too(configured, user):
    s = configured(configuration(user, "penalty-deadline = 1m\npre-auth-deadline = 300ms\n"))
    assert first_line(s, b"GET ", "127.0.0.2") == ""
    assert " 503 " in first_line(s, upgrade(), "127.0.0.2")
    s.connect(token="t", source="127.0.0.3").ready()


def test_a_slow_server_costs_nothing(configured, user):
    """The client sent its initialize in time: the server is late, and says so."""
    s = configured(configuration(user, "penalty-deadline = 1m\npre-auth-deadline = 500ms\n"))
    c = s.connect(token="t", source="127.0.0.2")
    with stopped(s.broker):
        c.post("initialize", {"clientName": "x"})
        c.wait_closed()
    s.wait_log("its session did not begin within 500 ms")
    assert "not ready within" not in s.log
    assert s.connect(token="t", source="127.0.0.2").ready().run("x", ["/bin/echo", "in"]).stdout == "in\n"


def test_a_runner_that_crashes_costs_its_client(configured, user, mode):
    """By a fault; one that is killed costs nothing."""
    if mode == "root":
        pytest.skip("A CRASH IS NOT TESTED AS ROOT: no signal but SIGKILL ends the first process of a namespace")
    s = configured(configuration(user, ""))
    for sig in (signal.SIGKILL, signal.SIGABRT):
        c = s.connect(token="t", source="127.0.0.2").ready()
        s.wait_log(f"session {c.session_id[:8]}: opened")
        os.kill(s.runner(c), sig)
        assert c.wait_closed()["code"] == 1011
        s.wait_log(f"killed by signal {int(sig)}")
    s.wait_log("too many failures from there")
    assert " 503 " in first_line(s, upgrade(), "127.0.0.2")
    s.connect(token="t", source="127.0.0.3").ready()


def test_an_exempt_source(configured, user):
    s = configured(configuration(user, "").replace("exempt = none", "exempt = 127.0.0.2"))
    for _ in range(10):
        assert " 401 " in first_line(s, WRONG, "127.0.0.2")
    for _ in range(4):
        assert " 401 " in first_line(s, WRONG, "127.0.0.3")
    assert " 503 " in first_line(s, WRONG, "127.0.0.3")


def test_no_penalties_at_all(configured, user):
    s = configured(configuration(user, "penalty-max = none\n"))
    for _ in range(20):
        assert " 401 " in first_line(s, WRONG, "127.0.0.2")


def test_connections_of_one_source(configured, user):
    s = configured(configuration(user, "max-connections-per-source = 3\n"))
    held = [s.connect(token="t", source="127.0.0.2").ready() for _ in range(3)]
    assert " 503 " in first_line(s, upgrade(), "127.0.0.2")
    s.connect(token="t", source="127.0.0.3").ready()
    held[0].drop()
    poll(lambda: " 401 " in first_line(s, WRONG, "127.0.0.2"), what="room")


def test_a_reload_changes_the_caps(configured, user):
    s = configured(configuration(user, "max-connections-per-source = 1\n"))
    s.connect(token="t", source="127.0.0.2").ready()
    assert " 503 " in first_line(s, upgrade(), "127.0.0.2")
    s.reload(configuration(user, "max-connections-per-source = 2\n"), "max-connections-per-source: 2, was 1")
    poll(lambda: " 401 " in first_line(s, upgrade(), "127.0.0.2"), what="the new cap")


def test_a_flood_of_failures_does_not_fill_the_log(configured, user):
    """So many lines of a source and kind, and another source's are still there."""
    s = configured(configuration(user, "penalty-max = none\n"))
    for _ in range(30):
        assert " 401 " in first_line(s, WRONG, "127.0.0.2")
        assert " 400 " in first_line(s, b"\x16\x03\x01 rubbish\r\n\r\n", "127.0.0.2")
    assert " 401 " in first_line(s, WRONG, "127.0.0.3")
    assert " 401 " in first_line(s, upgrade(), "127.0.0.2")
    s.wait_log("refused: missing websocket bearer token")
    poll(lambda: len(re.findall("websocket 127.0.0.2:.*: not HTTP", s.log)) >= 10, what="the front-end's lines")
    lines = s.log.splitlines()
    for what in ("websocket 127.0.0.2:.*refused: invalid", "websocket 127.0.0.2:.*: not HTTP"):
        n = len([line for line in lines if re.search(what, line)])
        told = [int(x) for x in re.findall(r"websocket 127.0.0.2: (\d+) lines like the next one were left out", s.log)]
        assert 10 <= n <= 30 - sum(told), (n, told)
    assert [line for line in lines if "websocket 127.0.0.3:" in line and "refused: invalid" in line]


SILENT = "max-unauthenticated = 4\npre-auth-deadline = 20s\n"


def test_one_source_does_not_take_every_place(configured, user):
    """It holds all that it may, says nothing, and keeps nobody else waiting."""
    s = configured(configuration(user, SILENT))
    silent = [dial(s.url, source="127.0.0.2") for _ in range(6)]
    for i in (3, 4, 5):
        assert s.connect(token="t", source=f"127.0.0.{i}").ready().run("x", ["/bin/echo", "in"]).stdout == "in\n"
    # Of its own the third waits, and comes in when the first leaves.
    silent[2].sendall(upgrade("Authorization: Bearer t\r\n"))
    silent[2].settimeout(0.1)
    with pytest.raises(TimeoutError):
        silent[2].recv(100)
    silent[0].close()
    silent[2].settimeout(20)
    assert silent[2].recv(100).startswith(b"HTTP/1.1 101 ")
    for x in silent:
        x.close()


def test_too_many_wait(configured, user):
    """With the queue full the oldest of the source with the most is told to come again."""
    s = configured(configuration(user, SILENT))
    silent = [dial(s.url, source="127.0.0.2") for _ in range(6)]    # two are in, four wait
    s.connect(token="t", source="127.0.0.3").ready()
    silent.append(dial(s.url, source="127.0.0.2"))
    head = silent[2].recv(200).decode()
    assert " 503 " in head and "retry-after: 1" in head, head
    s.wait_log("limit of 4 connections without a credential reached")
    s.connect(token="t", source="127.0.0.3").ready()
    for x in silent:
        x.close()


def test_waiting_in_vain(configured, user):
    """No longer than the pre-auth deadline."""
    s = configured(configuration(user, "max-unauthenticated = 1\npre-auth-deadline = 500ms\n"))
    came = [dial(s.url, source=f"127.0.0.{i}") for i in (2, 3, 4)]
    # None says anything. As the first is over one of the others may have its turn, not both.
    heads = [c.recv(200)[:12] for c in came]
    assert heads[0] == b"" and set(heads) == {b"", b"HTTP/1.1 503"}, heads
    s.connect(token="t", source="127.0.0.4").ready()
    for c in came:
        c.close()


def test_a_reload_while_some_wait(configured, user):
    s = configured(configuration(user, SILENT))
    waiting = [dial(s.url, source="127.0.0.2") for _ in range(4)]
    s.reload(configuration(user, SILENT.replace("= 4", "= 40")), "max-unauthenticated: 40, was 4")
    s.wait_log("serving", timeout=10)
    silent = waiting + [dial(s.url, source="127.0.0.2") for _ in range(8)]
    silent[-1].sendall(upgrade("Authorization: Bearer t\r\n"))
    assert silent[-1].recv(100).startswith(b"HTTP/1.1 101 ")
    for x in silent:
        x.close()


def test_a_client_that_answers_no_ping(configured, user, directory):
    """On a unix socket nobody else answers for it: with TCP its kernel does (test_silent.py)."""
    os.chmod(directory, 0o777)
    s = configured(configuration(user, "ping-interval = 100ms\npong-deadline = 500ms\n").replace(
        "ws://127.0.0.1:0", f"unix:{directory}/s"))
    c, quiet = s.connect(token="t").ready(), s.connect(token="t").ready()
    poll(lambda: len([f for f in quiet.frames if f[0] == 9]) >= 2, what="pings")
    # c answers; quiet, whose client does not, is not heard of any more.
    end = time.monotonic() + 10
    while quiet.closed is None and time.monotonic() < end:
        c.frame(10, b"")
        c.call("environment/status")
        quiet_closed = quiet.closed
    assert quiet.closed is not None and c.closed is None, quiet_closed
    s.wait_log("no pong within 500 ms")
    s.connect(token="t").ready(resumeSessionId=quiet.session_id)


def test_honest_clients_among_rubbish(configured, user):
    """A source that sends rubbish as fast as it can, and honest ones."""
    import threading
    s = configured(configuration(user, ""))
    stop = threading.Event()
    count = [0]

    def flood(source):
        at = urlsplit(s.url)
        while not stop.is_set():
            try:
                with socket.create_connection((at.hostname, at.port), timeout=10, source_address=(source, 0)) as x:
                    x.sendall(os.urandom(40) + b"\r\n\r\n")
                    x.recv(100)
                count[0] += 1
            except OSError:
                pass

    threads = [threading.Thread(target=flood, args=(f"127.0.1.{i}",), daemon=True) for i in range(1, 5)]
    for t in threads:
        t.start()
    try:
        poll(lambda: count[0] > 200, what="rubbish")
        for i in range(40):
            c = s.connect(token="t", source=f"127.0.2.{i + 1}").ready()
            assert c.run("x", ["/bin/echo", str(i)]).stdout == f"{i}\n"
            c.drop()
    finally:
        stop.set()
        for t in threads:
            t.join(20)
    s.wait_log("too many failures from there")


def test_failures_hide_no_penalty(configured, user):
    """Twelve sources fail as fast as they can: more lines than the log takes in a second, and yet
    each penalty is told."""
    s = configured(configuration(user, ""))
    sources = [f"127.0.3.{i}" for i in range(1, 13)]
    at = urlsplit(s.url)
    left = set(sources)
    end = time.monotonic() + 60
    while left:
        assert time.monotonic() < end, f"never refused: {sorted(left)}"
        for source in sorted(left):
            with socket.create_connection((at.hostname, at.port), timeout=10, source_address=(source, 0)) as x:
                x.sendall(b"rubbish\r\n\r\n")
                if x.recv(100).startswith(b"HTTP/1.1 503"):
                    left.remove(source)
    told = poll(lambda: (found := re.findall(r"(127\.0\.3\.\d+):\d+: too many failures from there", s.log))
                and len(found) >= len(sources) and found, what="penalties")
    assert sorted(told) == sorted(sources)


def test_descriptors_run_out_and_come_back(mode, user, directory):
    """Whoever finds no descriptor hears 503, and the server goes on."""
    from conftest import Configured
    s = Configured(mode, user, directory / "execd.conf", configuration(user, "max-connections = 10000\n"),
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200)))
    held = []
    try:
        held = [dial(s.url) for _ in range(80)]
        s.wait_log("refused, limit of")
        assert held[-1].recv(100).startswith(b"HTTP/1.1 503")
        for h in held:
            h.close()
        c = poll(lambda: try_ready(s), what="descriptors")
        assert c.run("x", ["/bin/echo", "in"]).stdout == "in\n"
    finally:
        s.stop()


def limit_descriptors(pid, n):
    """As its own user: another may not, not even root without a capability for it."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    uid, gid = (re.search(rf"^{who}:\t(\d+)", status, re.M)[1] for who in ("Uid", "Gid"))
    own = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups"] if ROOT else []
    subprocess.run([*own, "prlimit", f"--pid={pid}", f"--nofile={n}:"], check=True, timeout=20)


def test_accept_without_a_descriptor(configured, user):
    """What the front-end believes to have is gone: the reserve one tells whoever comes, and all is well after."""
    s = configured(configuration(user, "max-connections = 10000\n"))
    s.wait_log(": serving")
    c, pid = s.connect(token="t").ready(), s.frontend()
    limit_descriptors(pid, 40)
    held = [dial(s.url) for _ in range(60)]
    s.wait_log("accept: Too many open files")
    for _ in range(3):
        assert first_line(s, b"", "127.0.0.1").startswith("HTTP/1.1 503")
    assert held[-1].recv(100).startswith(b"HTTP/1.1 503")
    assert c.run("x", ["/bin/echo", "in"]).stdout == "in\n"
    for h in held:
        h.close()
    assert poll(lambda: try_ready(s), what="descriptors").run("x", ["/bin/echo", "in"]).stdout == "in\n"
    assert c.run("y", ["/bin/echo", "in"]).stdout == "in\n" and s.frontend() == pid


def try_ready(s):
    try:
        return s.connect(token="t").ready()
    except (Closed, OSError):
        return None
