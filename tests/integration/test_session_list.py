# SPDX-License-Identifier: ISC
"""session/list: the sessions of a client's own identity (execd-protocol(7))."""
import os
import signal

import pytest
from conftest import digest, kill, poll

HOUR = 3600 * 1000


@pytest.fixture
def two(configured, user):
    """An execd with two identities of one user."""
    return configured("[listener main]\naddress = ws://127.0.0.1:0\n" + "".join(
        f"[identity {i}]\nuser = {user.pw_name}\nsandbox-allow-unsandboxed = yes\ntoken-sha256 = {digest(i)}\n" for i in "ab"))


def listed(c):
    """All pages."""
    found, after = {}, None
    while True:
        r = c.call("session/list", {"after": after})
        assert not r["incomplete"] and len(r["sessions"]) <= 64
        found |= {x["sessionId"]: x for x in r["sessions"]}
        after = r["next"]
        if after is None:
            return found


def test_what_is_said(two):
    s = two
    c, kept, left = (s.connect(token="a").ready() for _ in range(3))
    kept.call("session/keep", {"keepMs": HOUR, "whileRunning": True})
    kept.sh("p", "sleep 600")
    for x in kept, left:
        x.drop()
        s.wait_log(f"session {x.session_id[:8]}: detached")
    other, watcher = s.connect(token="b").ready(), s.connect(token="a").ready(watchSessionId=c.session_id)
    mine = listed(c)
    assert list(mine) == [c.session_id, kept.session_id, left.session_id], "in the order of their beginning"
    me = mine[c.session_id]
    assert me == {**me, "state": "attached", "peer": f"websocket 127.0.0.1:{c.sock.getsockname()[1]}", "detachedMs": None,
                  "endsInMs": None, "keepMs": None, "whileRunning": False, "commands": None, "watchers": 1}
    it = mine[kept.session_id]
    assert it == {**it, "state": "detached", "keepMs": HOUR, "whileRunning": True}
    assert 23 * HOUR < it["endsInMs"] <= 24 * HOUR and it["detachedMs"] <= it["ageMs"]
    assert mine[left.session_id]["endsInMs"] <= 300000 and mine[left.session_id]["keepMs"] is None
    assert set(listed(watcher)) == set(mine) and list(listed(other)) == [other.session_id]
    assert c.error("session/list", {"after": -1})[0] == -32602
    again = s.connect(token="a").ready(resumeSessionId=kept.session_id)
    again.call("session/end")
    again.wait_closed()
    poll(lambda: kept.session_id not in listed(c), what="end of a session")


def test_more_than_one_page(two):
    s = two
    all = [s.connect(token="a").ready().session_id for _ in range(67)]
    c = s.connect(token="a").ready()
    assert len(c.call("session/list")["sessions"]) == 64
    assert list(listed(c)) == [*all, c.session_id]


def test_whoever_has_not_answered_is_missed(two):
    """After a broker died: it does not seem that a session is gone."""
    s = two
    stopped = s.connect(token="a").ready()
    runner, old = s.runner(stopped), s.broker
    os.kill(runner, signal.SIGSTOP)
    try:
        kill(old)
        poll(lambda: s.broker != old, what="another broker")
        c = poll(lambda: ready(s), what="a server that serves")
        r = c.call("session/list")
        assert r["incomplete"] and [x["sessionId"] for x in r["sessions"]] == [c.session_id]
    finally:
        os.kill(runner, signal.SIGCONT)
    s.wait_log(f"session {stopped.session_id[:8]}: adopted")
    assert set(listed(c)) == {c.session_id, stopped.session_id}


def ready(s):
    try:
        return s.connect(token="a").ready()
    except OSError:
        return None


def test_a_broker_that_dies_before_it_answers(two):
    s = two
    c = s.connect(token="a").ready()
    old = s.broker
    os.kill(old, signal.SIGSTOP)
    c.post("session/list")
    kill(old)
    s.wait_log(f"session {c.session_id[:8]}: adopted")
    b = poll(lambda: resumed(s, c), what="resume")
    assert list(listed(b)) == [c.session_id]
    assert list(listed(b)) == [c.session_id]


def resumed(s, c):
    b = s.connect(token="a")
    m = b.request("initialize", {"clientName": "x", "resumeSessionId": c.session_id})
    b.notify("initialized")
    return "result" in m and b
