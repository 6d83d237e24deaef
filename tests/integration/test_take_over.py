# SPDX-License-Identifier: ISC
"""A session that is attached is taken over by another connection of its identity (execd-protocol(7))."""
import base64

import pytest
from conftest import digest, kill, poll
from test_audit import events
from test_silent import network  # noqa: F401


def taken(c):
    return next((m["params"] for m in c.messages if m.get("method") == "session/takenOver"), None)


@pytest.fixture(params=["yes", "no"])
def two(request, configured, user, directory):
    """An execd with two identities, whose clients are handed over or not."""
    return configured(
        f"[listener main]\naddress = ws://127.0.0.1:0\nhand-over = {request.param}\n"
        f"[identity a]\nuser = {user.pw_name}\nsandbox-allow-unsandboxed = yes\ntoken-sha256 = {digest('a')}\n"
        f"[identity b]\nuser = {user.pw_name}\nsandbox-allow-unsandboxed = yes\ntoken-sha256 = {digest('b')}\n"
        f"[audit]\nfile = {directory}/audit.jsonl\n")


def test_it_is_taken_over(two, directory):
    s = two
    a = s.connect(token="a").ready()
    a.start("p", ["/bin/cat"], pipeStdin=True)
    a.write("p", "one\n")
    a.wait_output("p", "one\n")
    b = s.connect(token="a")
    assert b.error("initialize", {"clientName": "x", "resumeSessionId": a.session_id})[0] == -32010
    assert b.error("initialize", {"clientName": "x", "takeOver": True}) == (-32602, "takeOver needs resumeSessionId")
    b.ready(resumeSessionId=a.session_id, takeOver=True)
    end = a.wait_closed()
    assert (end["code"], end["reason"]) == (1001, "the session was resumed elsewhere")
    here = f"websocket 127.0.0.1:{b.sock.getsockname()[1]}"
    assert taken(a) == {"by": here}
    b.write("p", "two\n", "second")
    b.wait_output("p", "two\n")
    chunks = b.call("process/read", {"processId": "p", "afterSeq": 0})["chunks"]
    assert b"".join(base64.b64decode(x["chunk"]) for x in chunks) == b"one\ntwo\n"
    there = next(e["reason"] for e in events(directory / "audit.jsonl") if e["event"] == "session-resumed")
    assert there.startswith("taken over from websocket 127.0.0.1:") and there != f"taken over from {here}"
    # The loser may have it back: it is one identity's.
    again = s.connect(token="a").ready(resumeSessionId=a.session_id, takeOver=True)
    b.wait_closed()
    again.terminate("p")
    again.drop()
    s.wait_log(f"session {a.session_id[:8]}: detached")


def test_not_by_another_identity(two):
    s = two
    a, other = s.connect(token="a").ready(), s.connect(token="b")
    assert other.error("initialize", {"clientName": "x", "resumeSessionId": a.session_id, "takeOver": True}) == (
        -32600, f"unknown session id {a.session_id}")
    assert a.call("environment/status") == {"status": "ready"} and taken(a) is None


def test_one_that_is_free_is_resumed(two):
    s = two
    a = s.connect(token="a").ready()
    a.drop()
    s.wait_log(f"session {a.session_id[:8]}: detached")
    b = s.connect(token="a").ready(resumeSessionId=a.session_id, takeOver=True)
    assert b.call("environment/status") == {"status": "ready"}


def test_from_a_client_that_reads_nothing(two):
    """It is closed all the same, and a watcher stays."""
    s = two
    a = s.connect(token="a").ready()
    watcher = s.connect(token="a").ready(watchSessionId=a.session_id)
    a.pause()
    a.post("process/start", {"processId": "p", "argv": ["/bin/sh", "-c", "yes & sleep 600"], "cwd": "file:///", "env": {},
                             "tty": False})
    watcher.wait(lambda: watcher.output("p"), what="output")
    b = s.connect(token="a").ready(resumeSessionId=a.session_id, takeOver=True)
    b.terminate("p")
    a.resume()
    a.wait_closed()
    assert watcher.call("environment/status") == {"status": "ready"}
    assert b.call("environment/status") == {"status": "ready"}


def test_nobody_is_lost_in_between(two):
    """Ten take it from each other; the last has it."""
    s = two
    a = s.connect(token="a").ready()
    a.start("p", ["/bin/cat"], pipeStdin=True)
    others = [s.connect(token="a") for _ in range(10)]
    for c in others:
        c.post("initialize", {"clientName": "x", "resumeSessionId": a.session_id, "takeOver": True}, id="i")
    for c in others:
        c.answer("i")
    a.wait_closed()
    last = [c for c in others if not c.closed and not taken(c)]
    assert last
    b = s.connect(token="a").ready(resumeSessionId=a.session_id, takeOver=True)
    for c in others:
        c.wait_closed()
    b.write("p", "still\n", "second")
    b.wait_output("p", "still\n")
    b.terminate("p")


def test_a_connection_of_the_front_end_before(two):
    """A front-end counts its connections from one. The session's former one is not who has the same number now."""
    s = two
    a = s.connect(token="a").ready()
    for _ in range(2):
        front = s.frontend()
        kill(front)
        a.wait_closed()
        poll(lambda front=front: s.frontend() != front, what="another front-end")
        a = s.connect(token="a").ready(resumeSessionId=a.session_id)
    a.drop()
    poll(lambda: s.log.count(f"session {a.session_id[:8]}: detached") == 3, what="line of the log")
    assert s.connect(token="a").ready(resumeSessionId=a.session_id).run("x", ["/bin/echo", "x"]).stdout == "x\n"
    assert "]: broker: " not in s.log


@pytest.fixture(params=["yes", "no"])
def vanished(request, network, configured, user):  # noqa: F811
    """A session whose client is gone without a packet, and how to connect."""
    s = configured(
        f"[listener main]\naddress = ws://{network.server}:0\nhand-over = {request.param}\n"
        f"[identity a]\nuser = {user.pw_name}\nsandbox-allow-unsandboxed = yes\ntoken-sha256 = {digest('a')}\n")

    def connect():
        with network.inside():
            return s.connect(token="a")

    a = connect().ready()
    network.cut()
    return s, a, connect


def test_while_another_one_waits_for_a_sign_of_life(vanished):
    """Who takes it over need not wait, and who waited does not get it."""
    s, a, connect = vanished
    asks, takes = connect(), connect()
    asks.post("initialize", {"clientName": "x", "resumeSessionId": a.session_id}, id="i")
    takes.ready(resumeSessionId=a.session_id, takeOver=True)
    assert asks.answer("i")["error"]["code"] == -32010
    assert takes.call("environment/status") == {"status": "ready"} and takes.closed is None
    asks.ready(resumeSessionId=a.session_id, takeOver=True)
    assert takes.wait_closed()["code"] == 1001
    asks.call("session/end")
