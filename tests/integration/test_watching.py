# SPDX-License-Identifier: ISC
"""A second connection that watches a session (doc/protocol.md section 17)."""
import base64

import pytest
from conftest import is_alive, kill, poll
from execd_client import b64, start_params


def watch(s, client):
    w = s.connect()
    r = w.initialize(watchSessionId=client.session_id)
    assert (r["sessionId"], r["watching"]) == (client.session_id, True)
    w.notify("initialized")
    return w


def test_a_watcher_is_told_and_may_ask(server):
    c = server.ready()
    c.sh("a", "echo before; read x; echo err >&2; exit 3", pipeStdin=True)
    c.wait_output("a", "before")
    w = watch(server, c)
    assert base64.b64decode(w.call("process/read", {"processId": "a"})["chunks"][0]["chunk"]) == b"before\n"
    waiting = w.post("process/wait", {"processId": "a"})
    assert w.call("process/snapshot", {"processId": "a"})["running"] is True
    assert [p["processId"] for p in w.call("process/list")["processes"]] == ["a"]
    assert w.call("environment/status") == {"status": "ready"}
    c.write("a", "\n")
    assert (c.finished("a").code, w.finished("a").code, w.finished("a").stderr) == (3, 3, "err\n")
    assert w.answer(waiting)["result"]["exitCode"] == 3
    mine, theirs = c.events("a"), w.events("a")
    assert mine[-len(theirs):] == theirs
    assert c.run("b", ["/bin/echo", "x"]).stdout == w.finished("b").stdout == "x\n"
    w.drop()
    assert c.run("d", ["/bin/echo", "x"]).stdout == "x\n"


CHANGES = {
    "process/start": start_params("z", ["/bin/true"]),
    "process/write": {"processId": "a", "chunk": b64("x"), "writeId": "w"},
    "process/closeStdin": {"processId": "a"},
    "process/resize": {"processId": "a", "rows": 1, "cols": 1},
    "process/signal": {"processId": "a", "signal": "interrupt"},
    "process/terminate": {"processId": "a"},
    "command/exec": {"argv": ["/bin/true"], "cwd": "/", "env": {}, "tty": False},
    "command/exec/write": {"sessionId": "session-1", "chunk": ""},
    "command/exec/terminate": {"sessionId": "session-1"},
    "fs/readFile": {"path": "file:///etc/passwd"},
    "fs/writeFile": {"path": "file:///tmp/execd-never", "dataBase64": ""},
    "fs/watch": {"watchId": 1, "path": "file:///tmp"},
    "fs/unwatch": {"watchId": 1},
    "fs/watchMissing": {"watchId": 1, "missing": []},
    "http/request": {"method": "GET", "url": "http://127.0.0.1:1/", "requestId": "r"},
}


def test_a_watcher_changes_nothing(server):
    c = server.ready()
    c.sh("a", "read x", tty=True)
    w = watch(server, c)
    for method, params in CHANGES.items():
        assert w.error(method, params) == \
            (-32600, f"a connection that watches a session may not use {method}")
    assert w.error("process/terminate", {}) == (-32602, "missing field `processId`")
    assert w.error("initialize", {"clientName": "x"}) == \
        (-32600, "initialize may only be sent once per connection")
    assert [p["processId"] for p in c.call("process/list")["processes"]] == ["a"]
    assert c.call("process/wait", {"processId": "a", "timeoutMs": 0})["running"] is True
    assert c.terminate("a") is True


def test_the_handshake_of_a_watcher(server):
    c = server.ready()
    w = server.connect()
    for id in ("", "x" * 100, "a\0b", "00000000-0000-4000-8000-000000000000"):
        assert w.error("initialize", {"clientName": "w", "watchSessionId": id}) == \
            (-32600, f"unknown session id {id}")
    assert w.error("initialize", {"clientName": "w", "watchSessionId": "a", "resumeSessionId": "b"}) == \
        (-32602, "resumeSessionId and watchSessionId exclude each other")
    w.initialize(watchSessionId=c.session_id)
    assert w.error("process/list") == (-32600, "client must send initialized before using exec methods")
    w.notify("initialized")
    assert w.call("process/list")["processes"] == []


def test_sixteen_may_watch(server):
    c = server.ready()
    watchers = [watch(server, c) for _ in range(16)]
    last = server.connect()
    assert last.error("initialize", {"clientName": "w", "watchSessionId": c.session_id}) == \
        (-32603, "at most 16 connections may watch a session")
    watchers.pop().drop()

    def again():
        return "result" in last.request("initialize", {"clientName": "w", "watchSessionId": c.session_id})

    poll(again, what="room")
    c.run("a", ["/bin/echo", "x"])
    assert [w.finished("a").stdout for w in watchers] == ["x\n"] * 15


def test_a_watcher_that_does_not_read_stops_nobody(server):
    c = server.ready()
    w = watch(server, c)
    w.pause()
    r = c.run_sh("a", "head -c 60000000 /dev/zero; echo end", timeout=60)
    assert len(r.stdout) == 60000004
    w.resume()
    w.wait(lambda: any(m.get("method") == "session/lagged" for m in w.messages), 60, "session/lagged")
    s = w.call("process/snapshot", {"processId": "a"})
    assert s["bytesWritten"] == 60000004 and base64.b64decode(s["stdout"]).endswith(b"end\n")
    c.run("b", ["/bin/echo", "x"])
    assert w.finished("b").stdout == "x\n", "and is told again"
    assert len(w.output("a")) < 60000004


def test_a_watcher_that_breaks_the_protocol_is_alone_with_it(server):
    c = server.ready()
    w = watch(server, c)
    w.notify("nonsense")
    assert w.wait_closed()["code"] == 1008
    assert c.run("a", ["/bin/echo", "x"]).stdout == "x\n"


def test_watching_a_detached_session_does_not_keep_it(spawn):
    s = spawn("--detached-ttl", "1s")
    c = s.ready()
    c.sh("a", "echo ready; while :; do sleep 0.1; done")
    c.wait_output("a", "ready")
    c.drop()
    s.wait_log("detached")
    w = watch(s, c)
    assert w.call("process/snapshot", {"processId": "a"})["running"] is True
    again = s.ready(resumeSessionId=c.session_id)
    assert again.call("process/wait", {"processId": "a", "timeoutMs": 0})["running"] is True
    again.drop()
    assert w.wait_closed()["code"] == 1011


def test_the_end_of_the_runner_is_told_to_all(spawn):
    s = spawn()
    c = s.ready()
    w, w2 = watch(s, c), watch(s, c)
    w.post("process/wait", {"processId": "nope"})
    runner = s.runner(c)
    kill(runner)
    for client in (c, w, w2):
        end = client.wait_closed()
        assert end["code"] == 1011 and "killed by signal 9" in end["reason"], end
    assert s.ready().call("environment/status") == {"status": "ready"}
    assert not is_alive(runner)


def test_watching_again_after_the_front_end_died(spawn):
    s = spawn()
    c = s.ready()
    watch(s, c)
    c.sh("a", "read x; echo $x", pipeStdin=True)
    old = s.frontend()
    kill(old)
    c.wait_closed()
    poll(lambda: s.frontend() != old, what="another front-end")
    w = watch(s, c)
    again = s.ready(resumeSessionId=c.session_id)
    again.write("a", "line\n")
    assert w.finished("a").stdout == "line\n"
    assert [watch(s, c) for _ in range(15)], "none of the old ones counts"


def test_waits_of_a_watcher_are_its_own(server):
    c = server.ready()
    c.sh("a", "read x", pipeStdin=True)
    w, other = watch(server, c), watch(server, c)
    lost = w.post("process/wait", {"processId": "a"})
    kept = other.post("process/wait", {"processId": "a"})
    mine = c.post("process/wait", {"processId": "a"})
    w.call("environment/status")
    w.drop()
    c.call("process/closeStdin", {"processId": "a"})
    assert other.answer(kept)["result"]["exitCode"] == c.answer(mine)["result"]["exitCode"] == 1
    assert not any(m.get("id") == lost for m in w.messages)


@pytest.mark.parametrize("n", [1, 3])
def test_watching_and_resuming_do_not_meet(server, n):
    c = server.ready()
    watchers = [watch(server, c) for _ in range(n)]
    second = server.connect()
    assert second.error("initialize", {"clientName": "x", "resumeSessionId": c.session_id})[0] == -32010
    c.sh("a", "read x; echo $x", pipeStdin=True)
    c.drop()

    def resumed():
        return "result" in second.request("initialize", {"clientName": "x", "resumeSessionId": c.session_id})

    poll(resumed, what="resuming")
    second.notify("initialized")
    second.write("a", "line\n")
    for client in (second, *watchers):
        assert client.finished("a").stdout == "line\n"
