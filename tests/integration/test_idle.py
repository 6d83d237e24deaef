# SPDX-License-Identifier: ISC
"""--exit-when-idle: execd stops when there was no session for so long, and never
before who is at its door has had a turn.
"""
import re
import socket
import subprocess
import time

import pytest
from conftest import EXECD, PATIENCE_S, kill

LINE = "no session for"


def assert_stopped(s):
    assert s.child.wait(PATIENCE_S) == 0, s.log
    assert LINE in s.log and "stopped" in s.log


def test_without_any_session(spawn):
    begin = time.monotonic()
    s = spawn("--exit-when-idle", "1s")
    assert_stopped(s)
    assert time.monotonic() - begin >= 1


def test_a_session_holds_it_attached_and_detached(spawn):
    s = spawn("--exit-when-idle", "300ms", "--detached-ttl", "1500ms")
    c = s.ready()
    with pytest.raises(subprocess.TimeoutExpired):
        s.child.wait(1.2)
    begin = time.monotonic()
    c.drop()
    assert_stopped(s)
    assert time.monotonic() - begin >= 1.7, "it did not wait for the detached session, and then for the time"
    assert s.log.index("ended") < s.log.index(LINE)


def test_the_time_begins_anew(spawn):
    s = spawn("--exit-when-idle", "1s")
    with pytest.raises(subprocess.TimeoutExpired):
        s.child.wait(.6)
    c = s.ready()
    begin = time.monotonic()
    c.request("session/end", {})
    c.drop()
    assert_stopped(s)
    assert time.monotonic() - begin >= 1


def test_an_admission_is_waited_for(spawn):
    """A client that has connected and sends its request late is served."""
    s = spawn("--exit-when-idle", "200ms")
    host, port = re.fullmatch(r"ws://(.*):(\d+)", s.url).groups()
    waiting = socket.create_connection((host, int(port)))
    with pytest.raises(subprocess.TimeoutExpired):
        s.child.wait(1.5)
    c = s.connect()  # upgraded, and it has not said initialize
    waiting.close()
    with pytest.raises(subprocess.TimeoutExpired):
        s.child.wait(1.5)
    c.ready()
    assert c.run("p", ["echo", "in"]).stdout == "in\n"
    c.request("session/end", {})
    c.drop()
    assert_stopped(s)


def test_who_is_silent_is_waited_for_until_its_deadline(spawn):
    s = spawn("--exit-when-idle", "200ms", "--pre-auth-deadline", "700ms")
    host, port = re.fullmatch(r"ws://(.*):(\d+)", s.url).groups()
    with socket.create_connection((host, int(port))):
        assert_stopped(s)


def test_a_new_front_end_is_asked(spawn):
    s = spawn("--exit-when-idle", "1500ms")
    kill(s.frontend())
    s.wait_log("serving", unless=None)
    assert_stopped(s)


def test_in_a_file_and_reloaded(configured, user):
    text = (f"[listener main]\naddress = ws://127.0.0.1:0\n[identity a]\nuser = {user.pw_name}\ntoken-sha256 = {'0' * 64}\n"
            "[limits]\nexit-when-idle = {}\n")
    s = configured(text.format("none"))
    s.reload(text.format("200ms"), wait="exit-when-idle")
    assert_stopped(s)


def test_a_value_that_is_none(directory, user, mode):
    (directory / "c").write_text(f"[listener main]\naddress = ws://127.0.0.1:0\n[identity a]\nuser = {user.pw_name}\n"
                                 f"token-sha256 = {'0' * 64}\n[limits]\nexit-when-idle = 5x\n")
    r = subprocess.run([EXECD, "-t", "-c", directory / "c"], capture_output=True, text=True)
    assert r.returncode == 3 and "exit-when-idle" in r.stderr and "`5x` is not a duration" in r.stderr, r
    r = subprocess.run([EXECD, "--exit-when-idle", "soon"], capture_output=True, text=True)
    assert r.returncode == 2 and "--exit-when-idle: `soon` is not a duration" in r.stderr, r
