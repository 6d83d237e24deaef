# SPDX-License-Identifier: ISC
"""session/end: a client that needs its session no more (execd-protocol(7))."""
import pytest
from conftest import is_alive, poll
from execctl import Execctl
from execd_client import Closed


def test_it_ends_with_all_that_is_in_it(spawn):
    s = spawn()
    c = s.ready()
    assert s.connect().initialize()["environmentInfo"]["capabilities"]["sessionEnd"] is True
    runner = s.runner(c)
    c.sh("polite", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.1; done")
    c.sh("stubborn", "trap '' TERM HUP; echo up; setsid sleep 1000")
    c.wait_output("polite", "up"), c.wait_output("stubborn", "up")
    assert c.call("session/end") == {}
    closed = c.wait_closed()
    assert (closed["code"], closed["reason"]) == (1000, "the session was ended")
    assert "bye" in c.output("polite").decode()
    poll(lambda: not is_alive(runner), what="end of the runner")
    s.wait_log(f"session {c.session_id[:8]}: its client ends it")
    s.wait_log(f"session {c.session_id[:8]}: ended")
    again = s.connect()
    assert again.error("initialize", {"clientName": "x", "resumeSessionId": c.session_id}) == (
        -32600, f"unknown session id {c.session_id}")
    assert again.ready().run("x", ["/bin/echo", "in"]).stdout == "in\n"


def test_what_came_before_is_answered(spawn):
    """Requests in one piece: what stands in front of the end is carried out."""
    s = spawn()
    c = s.ready()
    for i in range(100):
        c.post("environment/status", id=f"e{i}")
    c.post("session/end", id="end")
    c.wait_closed()
    assert [m["id"] for m in c.messages if str(m.get("id")).startswith("e")] == [f"e{i}" for i in range(100)] + ["end"]


def test_twice_and_when(spawn):
    s = spawn()
    c = s.connect()
    assert c.error("session/end") == (-32600, "client must call initialize before using session methods")
    c.initialize()
    assert c.error("session/end") == (-32600, "client must send initialized before using session methods")
    c.notify("initialized")
    assert c.error("session/end", {"now": True})[0] == -32602
    watcher = s.ready(watchSessionId=c.session_id)
    assert watcher.error("session/end")[1] == "a connection that watches a session may not use session/end"
    c.post("session/end"), c.post("session/end")
    assert c.wait_closed()["code"] == 1000
    assert watcher.wait_closed()["code"] == 1000
    with pytest.raises(Closed):
        watcher.call("environment/status")


def test_on_record(configured, user, directory):
    from test_audit import configuration, events
    log = directory / "audit.jsonl"
    s = configured(configuration(user, log))
    c = s.connect(token="tok-a").ready()
    c.call("session/end")
    poll(lambda: "session-ended" in log.read_text(), what="its end")
    assert events(log)[-1]["reason"] == "its client ended it"


def test_over_stdio(stdio):
    c = stdio().ready()
    assert c.call("session/end") == {}
    assert c.wait_closed()["code"] == 0


def test_execctl_leaves_nothing(spawn, directory):
    s = spawn()
    ctl = Execctl(directory, s.url)
    assert ctl.ok("run", "echo", "in") == b"in\n"
    assert ctl("run", "sh", "-c", "exit 3").code == 3
    assert ctl("run", "/no/such").code == 127
    ctl.ok("ls", "/")
    # execctl does not wait for what the server says of it.
    poll(lambda: s.log.count("its client ends it") == s.log.count(": ended") == 4, what="their ends")
    assert "not resumed" not in s.log


def test_execctl_leaves_what_it_was_told_to(spawn, directory):
    s = spawn()
    ctl = Execctl(directory, s.url)
    session = ctl.ok("run", "--detach", "sh", "-c", "sleep 0.2; echo later").decode().strip()
    assert "its client ends it" not in s.log
    assert b"later" in ctl.ok("attach", session)
