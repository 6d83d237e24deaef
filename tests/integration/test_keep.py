# SPDX-License-Identifier: ISC
"""Kept sessions: what a client asks to be kept without it, and what the operator permits (execd-protocol(7))."""
import base64
import os
import pathlib
import signal

import pytest
from conftest import ROOT, kill, pids_with, poll
from test_audit import events
from test_config import check
from test_ctl import Ctl
from test_listeners import get
from test_metrics import lint
from test_session import resume

HOUR = 3600 * 1000


def text(user, limits="", identity="", more=""):
    return (f"[listener main]\naddress = ws://127.0.0.1:0\nallow-unauthenticated = a\noperate = yes\n"
            f"[identity a]\nuser = {user.pw_name}\nsandbox-allow-unsandboxed = yes\n{identity}\n"
            f"[limits]\ndetached-ttl = 100ms\nclosed-ttl = 100ms\n{limits}\n{more}")


@pytest.fixture
def kept(configured, user):
    """An execd whose sessions end soon without a client, and its ctl."""
    def start(*args, **more):
        s = configured(text(user, *args, **more))
        return s, Ctl(s, user)

    return start


def until_ended(s, client):
    """Returns when a session that nobody keeps has come and gone, so that its time is over."""
    client.drop()
    s.wait_log(f"session {client.session_id[:8]}: not resumed within")


def row_of(ctl, client):
    return next((x for x in ctl.sessions() if x["id"] == client.session_id[:8]), None)


def test_a_kept_session_waits_for_its_client(kept):
    s, ctl = kept()
    c = s.ready()
    assert c.call("session/keep", {"keepMs": HOUR}) == {"keepMs": HOUR, "whileRunning": False, "maxMs": 24 * HOUR}
    assert c.call("environment/info")["capabilities"]["sessionKeep"] is True
    assert row_of(ctl, c)["keepMs"] == HOUR and row_of(ctl, c)["keepLeftMs"] is None
    assert ctl.json("status")["sessions"]["kept"] == 1
    c.run_sh("p", "echo kept")
    c.drop()
    s.wait_log(f"session {c.session_id[:8]}: detached")
    other = s.ready()
    other.run_sh("p", "true")
    poll(lambda: "error" in other.request("process/read", {"processId": "p"}), what="end of closed-ttl")
    until_ended(s, other)
    assert HOUR - 60000 < row_of(ctl, c)["keepLeftMs"] <= HOUR
    again = resume(s, c.session_id)
    again.notify("initialized")
    chunks = again.call("process/read", {"processId": "p", "afterSeq": 0})["chunks"]
    assert b"".join(base64.b64decode(x["chunk"]) for x in chunks) == b"kept\n", "what it did is kept with it"
    poll(lambda: "error" in again.request("process/read", {"processId": "p"}), what="end of closed-ttl with a client")
    assert again.call("session/keep", {"keepMs": 0})["maxMs"] == 0
    assert row_of(ctl, c)["keepMs"] is None and ctl.json("status")["sessions"]["kept"] == 0
    until_ended(s, again)


def test_a_background_server_lives_on(kept):
    """As long as the session that is kept, and not longer."""
    marker = f"6{os.getpid()}.5"
    s, _ = kept()
    c = s.ready(sessionKeep={"keepMs": HOUR})
    c.start("p", ["/bin/bash", "-c", f"nohup sleep {marker} >/dev/null 2>&1 &"])
    c.finished("p")
    assert c.terminate("p") is False
    c.drop()
    s.wait_log(f"session {c.session_id[:8]}: detached")
    until_ended(s, s.ready())
    again = resume(s, c.session_id)
    again.notify("initialized")
    assert len(pids_with(marker)) == 1
    again.call("session/end")
    poll(lambda: not pids_with(marker), what="end of the server")


def test_a_resumed_session_says_what_it_has(kept):
    s, _ = kept()
    c = s.connect()
    keep = {"keepMs": 5000, "whileRunning": True, "maxMs": 24 * HOUR}
    assert c.initialize(sessionKeep={"keepMs": 5000, "whileRunning": True})["sessionKeep"] == keep
    c.drop()
    s.wait_log(f"session {c.session_id[:8]}: detached")
    again = s.connect()
    assert again.initialize(resumeSessionId=c.session_id)["sessionKeep"] == keep
    assert "sessionKeep" not in s.connect().initialize()


def test_its_time_is_over(kept):
    s, ctl = kept()
    c = s.ready(sessionKeep={"keepMs": 300})
    c.drop()
    s.wait_log(f"session {c.session_id[:8]}: kept for 0 s without a client, ending it")
    assert s.connect().error("initialize", {"clientName": "x", "resumeSessionId": c.session_id}) == (
        -32600, f"unknown session id {c.session_id}: kept for 0 s without a client")
    poll(lambda: ctl.json("status")["sessions"]["kept"] == 0, what="place of a kept session")


def test_as_long_as_its_command_runs(kept, directory):
    """And this long after its end, which nobody sees."""
    s, ctl = kept()
    c = s.ready()
    assert c.call("session/keep", {"keepMs": 400, "whileRunning": True})["maxMs"] == 24 * HOUR
    c.sh("p", f"until [ -e {directory}/go ]; do sleep 0.05; done")
    assert row_of(ctl, c)["keepMs"] == 24 * HOUR
    c.drop()
    until_ended(s, s.ready(sessionKeep={"keepMs": 0}))
    assert row_of(ctl, c)["keepLeftMs"] > 23 * HOUR
    (directory / "go").touch()
    s.wait_log(f"session {c.session_id[:8]}: kept for")


def test_a_command_that_ended_before(kept):
    s, ctl = kept()
    c = s.ready(sessionKeep={"keepMs": HOUR, "whileRunning": True})
    c.run_sh("p", "true")
    poll(lambda: row_of(ctl, c)["keepMs"] == HOUR, what="report of the command's end")
    c.drop()
    s.wait_log(f"session {c.session_id[:8]}: detached")
    assert row_of(ctl, c)["keepLeftMs"] <= HOUR


def test_at_the_limit_nobody_is_thrown_out(kept, user):
    s, ctl = kept("max-kept-sessions = 1\nmax-sessions = 3")
    first, second = s.ready(sessionKeep={"keepMs": HOUR}), s.ready()
    first.drop()
    s.wait_log(f"session {first.session_id[:8]}: detached")
    refused = (-32600, "1 sessions are kept, and no more can be: max-kept-sessions = 1 of [limits]")
    assert second.error("session/keep", {"keepMs": HOUR}) == refused
    third = s.connect()
    answer = third.initialize(sessionKeep={"keepMs": HOUR})
    assert answer["sessionKeep"] == {"error": {"code": refused[0], "message": refused[1]}}
    # No place is left: it is one of the sessions. And nothing was started in it, but it stays.
    assert s.connect().error("initialize", {"clientName": "x"}) == (-32603, "limit of 3 sessions reached")
    again = resume(s, first.session_id)
    again.notify("initialized")
    assert again.call("session/keep", {"keepMs": 2 * HOUR})["keepMs"] == 2 * HOUR, "it has its place"
    again.call("session/keep", {"keepMs": 0})
    assert second.call("session/keep", {"keepMs": HOUR})["keepMs"] == HOUR
    second.call("session/end")
    second.wait_closed()
    poll(lambda: ctl.json("status")["sessions"]["kept"] == 0, what="place of the session that ended")
    assert again.call("session/keep", {"keepMs": 1})["keepMs"] == 100, "never less than any other session"


def test_no_identity_keeps_all(configured, user):
    """It may have more than its part while more places are free than it holds."""
    s = configured(f"[listener a]\naddress = ws://127.0.0.1:0\nallow-unauthenticated = a\n"
                   f"[listener b]\naddress = ws://127.0.0.1:0\nallow-unauthenticated = b\n"
                   f"[limits]\nmax-kept-sessions = 4\n"
                   + "".join(f"[identity {x}]\nuser = {user.pw_name}\nsandbox-allow-unsandboxed = yes\n" for x in "abc"))
    first, _, third = [s.connect(s.urls[0]).ready() for _ in range(3)]
    for c in first, _:
        c.call("session/keep", {"keepMs": HOUR})
    refused = (-32600, "2 sessions of a are kept, its share: max-kept-sessions = 4 of [limits]")
    assert third.error("session/keep", {"keepMs": HOUR}) == refused
    others = [s.connect(s.urls[1]).ready() for _ in range(2)]
    assert others[0].call("session/keep", {"keepMs": HOUR})["keepMs"] == HOUR
    assert others[1].error("session/keep", {"keepMs": HOUR})[1].startswith("1 sessions of b are kept, its share")
    assert first.call("session/keep", {"keepMs": 2 * HOUR})["keepMs"] == 2 * HOUR, "it has its place"
    first.call("session/keep", {"keepMs": 0})
    assert others[1].call("session/keep", {"keepMs": HOUR})["keepMs"] == HOUR


@pytest.mark.parametrize("limit, places", [("", 2500), ("max-sessions = 10", 3), ("max-kept-sessions = 7", 7),
                                           ("max-kept-sessions = none", 0)])
def test_how_many(kept, limit, places):
    s, ctl = kept(limit)
    assert ctl.json("status")["sessions"]["maxKept"] == places


def test_the_values_in_force_are_shown(mode, user, directory):
    path = directory / "execd.conf"
    path.write_text(text(user, "max-sessions = 10"))
    code, out, err = check(mode, user, path, "-T")
    assert code == 0 and "\nmax-kept-sessions = 3\n" in out and "\nmax-detached-ttl = 24h\n" in out, out + err


def test_how_long(kept, spawn, mode):
    s, _ = kept("", "max-detached-ttl = 2h")
    c = s.ready()
    assert c.call("session/keep", {"keepMs": 2**64 - 1}) == {"keepMs": 2 * HOUR, "whileRunning": False, "maxMs": 2 * HOUR}
    hours = 24 if mode == "root" else 1
    assert spawn().ready().call("session/keep", {"keepMs": 30 * HOUR})["maxMs"] == hours * HOUR
    s, _ = kept("", "max-detached-ttl = none")
    c = s.ready()
    assert c.error("session/keep", {"keepMs": 1}) == (
        -32600, "no session is kept: max-detached-ttl = none of identity a")


def test_not_beyond_the_session_deadline(kept):
    s, _ = kept("", "session-deadline = 2h")
    answer = s.ready().call("session/keep", {"keepMs": 3 * HOUR})
    assert HOUR < answer["keepMs"] == answer["maxMs"] <= 2 * HOUR


def test_params(kept):
    s, _ = kept()
    c = s.connect()
    for keep in ({"keepMs": -1}, {}, {"keepMs": 1, "whileRunning": 1}, 5):
        assert c.error("initialize", {"clientName": "x", "sessionKeep": keep})[0] == -32602, keep
    c.ready()
    assert c.error("initialize", {"clientName": "x", "watchSessionId": c.session_id, "sessionKeep": {"keepMs": 1}}) == (
        -32602, "watchSessionId and sessionKeep exclude each other")
    assert c.error("session/keep", {})[0] == -32602
    watcher = s.ready(watchSessionId=c.session_id)
    assert watcher.error("session/keep", {"keepMs": 1})[1] == "a connection that watches a session may not use session/keep"


def test_it_is_on_record(kept, user, directory):
    log = directory / "audit.jsonl"
    s, ctl = kept("max-kept-sessions = 1", more=f"[audit]\nfile = {log}")
    c, other = s.ready(), s.ready()
    c.call("session/keep", {"keepMs": HOUR})
    other.error("session/keep", {"keepMs": HOUR})
    c.call("session/keep", {"keepMs": 0})
    found = [(e["event"], e["session"], e["reason"]) for e in events(log) if "kept" in e["event"]]
    assert found == [("session-kept", c.session_id[:8], "for 3600 s, at most 86400 s"),
                     ("session-not-kept", other.session_id[:8],
                      "1 sessions are kept, and no more can be: max-kept-sessions = 1 of [limits]"),
                     ("session-kept", c.session_id[:8], "no longer than others")]
    c.call("session/keep", {"keepMs": HOUR})
    assert lint(get(s.url, "/metrics")[1])["execd_kept_sessions"]["samples"]["execd_kept_sessions", ""] == 1
    assert "1h00m" in ctl("list")


@pytest.mark.parametrize("how", ["reload", "death"])
def test_the_next_broker_ends_nothing_earlier(kept, user, directory, how):
    """A reload lowers every limit. What was said before is true."""
    s, ctl = kept("max-kept-sessions = 2")
    waits, runs = s.ready(sessionKeep={"keepMs": 4 * HOUR}), s.ready(sessionKeep={"keepMs": 400, "whileRunning": True})
    runs.sh("p", f"until [ -e {directory}/go ]; do sleep 0.05; done")
    for c in waits, runs:
        c.drop()
        s.wait_log(f"session {c.session_id[:8]}: detached")
    before = row_of(ctl, waits)["keepLeftMs"]
    if how == "reload":
        s.reload(text(user, "max-kept-sessions = 1", "max-detached-ttl = 1s"), "adopted")
    else:
        old = s.broker
        kill(old)
        poll(lambda: s.broker != old, what="another broker")
    for c in waits, runs:
        s.wait_log(f"session {c.session_id[:8]}: adopted")
    left = poll(lambda: row_of(ctl, waits), what="ctl of the next broker")["keepLeftMs"]
    assert 4 * HOUR - 60000 < left <= before, "its time did not begin again"
    assert row_of(ctl, runs)["keepLeftMs"] > 23 * HOUR
    again = resume(s, waits.session_id)
    again.notify("initialized")
    if how == "reload":
        assert ctl.json("status")["sessions"]["kept"] == 2 and ctl.json("status")["sessions"]["maxKept"] == 1
        assert s.ready().error("session/keep", {"keepMs": HOUR})[1].startswith("2 sessions are kept")
        assert again.call("session/keep", {"keepMs": HOUR})["maxMs"] == 1000, "a new question gets a new answer"
    (directory / "go").touch()
    s.wait_log(f"session {runs.session_id[:8]}: kept for")


def syscall(pid):
    """What a process waits in. Only root may look into a runner."""
    return pathlib.Path(f"/proc/{pid}/syscall").read_text().split()[0]


@pytest.mark.skipif(not ROOT, reason="WHO ASKS A BROKER THAT DIES IS NOT TESTED: this needs root")
def test_a_broker_that_dies_before_it_answers(kept):
    """The next one is asked."""
    s, ctl = kept()
    c = s.ready()
    runner, old = s.runner(c), s.broker
    idle = poll(lambda: (now := syscall(runner)) != "running" and now, what="a runner that waits for its client")
    os.kill(old, signal.SIGSTOP)
    c.post("session/keep", {"keepMs": HOUR})
    poll(lambda: syscall(runner) not in (idle, "running"), what="a runner that waits for the broker")
    kill(old)
    poll(lambda: s.broker != old, what="another broker")
    s.wait_log(f"session {c.session_id[:8]}: adopted")
    s.wait_log(f"session {c.session_id[:8]}: kept without a client: for 3600 s")
    again = resume(s, c.session_id)
    again.notify("initialized")
    assert again.call("session/keep", {"keepMs": 2 * HOUR})["keepMs"] == 2 * HOUR
    assert again.call("environment/status") == {"status": "ready"}


def test_stdio_keeps_nothing(stdio):
    c = stdio()
    answer = c.initialize(sessionKeep={"keepMs": HOUR})
    assert answer["sessionKeep"]["error"]["message"] == "this server ends with its client"
