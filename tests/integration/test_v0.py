# SPDX-License-Identifier: ISC
"""exec-server.v0 beside the current protocol (doc/protocol.md section 16)."""
import base64
import os
import time

import pytest
from conftest import pids_with, poll
from execd_client import b64


def params(argv, **extra):
    return {"argv": argv, "cwd": "/tmp", "env": {"PATH": "/usr/bin:/bin"}, "tty": False, **extra}


def start(client, script, **extra):
    return client.call("command/exec", params(["/bin/sh", "-c", script], **extra))["sessionId"]


def events(client, id):
    return [m for m in client.messages if "method" in m and m["params"].get("sessionId") == id]


def output(client, id, stream="stdout"):
    return b"".join(base64.b64decode(m["params"]["chunk"]) for m in events(client, id)
                    if m["method"] == "command/exec/outputDelta" and m["params"]["stream"] == stream)


def exited(client, id):
    def find():
        return [m for m in events(client, id) if m["method"] == "command/exec/exited"]
    return client.wait(find, what=f"exit of {id}")[0]["params"]


def write(client, id, data, call="call"):
    return getattr(client, call)("command/exec/write", {"sessionId": id, "chunk": b64(data)})


def terminate(client, id):
    return client.call("command/exec/terminate", {"sessionId": id})["running"]


def marker():
    return f"3000.{os.getpid()}{time.monotonic_ns() % 10**9}"


def test_initialize_says_the_version(server):
    assert server.connect().initialize()["protocolVersion"] == "exec-server.v0"


def test_output_and_exit(client):
    a, b = start(client, "echo hi; echo err >&2; exit 3"), start(client, "kill -9 $$")
    assert a != b
    assert exited(client, a) == {"sessionId": a, "exitCode": 3}
    assert exited(client, b) == {"sessionId": b, "exitCode": 137}
    assert (output(client, a), output(client, a, "stderr")) == (b"hi\n", b"err\n")
    assert {m["method"] for m in events(client, a)} == {"command/exec/outputDelta", "command/exec/exited"}
    assert set(events(client, a)[0]["params"]) == {"sessionId", "stream", "chunk"}


def test_a_terminal(client):
    a = start(client, "stty size -echo; echo ready; read x; echo got $x; exit 4", tty=True)
    client.wait(lambda: b"ready" in output(client, a), what="ready")
    assert write(client, a, "line\n") == {"accepted": True}
    assert exited(client, a)["exitCode"] == 4
    assert output(client, a) == b"24 80\r\nready\r\ngot line\r\n"
    assert write(client, a, "x", "error") == (-32600, f"stdin is closed for session {a}")


def test_errors(client):
    assert client.error("command/exec", params([])) == (-32602, "argv must not be empty")
    assert client.error("command/exec", params(["x"], cwd="tmp")) == (-32602, "cwd must be an absolute path")
    assert client.error("command/exec", params(["/nonexistent"])) == \
        (-32603, "No such file or directory (os error 2)")
    assert write(client, "nope", "x", "error") == (-32600, "unknown session id nope")
    assert terminate(client, "nope") is False
    a = start(client, "sleep 100")
    assert write(client, a, "x", "error") == (-32600, f"stdin is closed for session {a}")
    assert terminate(client, a) is True
    assert exited(client, a)["exitCode"] == 137
    assert terminate(client, a) is False


def test_writes_without_ids_are_never_taken_for_repetitions(client, directory):
    """More than the queue holds, all of the same bytes."""
    a = start(client, f"stty raw -echo; echo ready; while [ ! -e {directory}/go ]; do sleep 0.1; done; "
                      "head -c 1638400 | wc -c", tty=True)
    client.wait(lambda: b"ready" in output(client, a), what="ready")
    ids = [client.post("command/exec/write", {"sessionId": a, "chunk": b64(b"a" * 8192)}) for _ in range(200)]
    assert client.call("environment/status") == {"status": "ready"}
    assert not any(m.get("id") == ids[-1] for m in client.messages)
    (directory / "go").touch()
    exited(client, a)
    assert b"1638400" in output(client, a)
    assert all(client.answer(i)["result"] == {"accepted": True} for i in ids)


def test_both_dialects_keep_apart(client):
    client.sh("session-1", "sleep 100")
    a = start(client, "sleep 100")
    assert a != "session-1"
    assert write(client, "session-1", "x", "error") == (-32600, "unknown session id session-1")
    assert client.write(a, "x") == {"status": "unknownProcess"}
    assert client.error("process/read", {"processId": a}) == (-32600, f"unknown process id {a}")
    assert [p["processId"] for p in client.call("process/list")["processes"]] == ["session-1"]
    assert "result" in client.start(a, ["true"])
    assert terminate(client, "session-1") is False and terminate(client, a) is True
    exited(client, a)
    assert not client.events("session-1")
    client.terminate("session-1")


def test_they_die_with_their_connection_and_the_others_do_not(spawn):
    s = spawn()
    c = s.ready()
    n, m = marker(), marker()
    a = start(c, f"echo ready; sleep {n}; echo late")
    c.wait(lambda: output(c, a), what="output")
    c.sh("p", f"sleep {m}")
    poll(lambda: pids_with(n), what="the sleep")
    c.drop()
    poll(lambda: not pids_with(n), what="nobody")
    c = s.ready(resumeSessionId=c.session_id)
    assert write(c, a, "x", "error") == (-32600, f"unknown session id {a}")
    assert c.call("process/wait", {"processId": "p", "timeoutMs": 0})["running"] is True
    b = start(c, "echo new")
    exited(c, b)
    assert b != a and events(c, a) == []
    c.terminate("p")


@pytest.mark.parametrize("signal", ["", "trap '' HUP TERM INT;"])
def test_they_die_at_the_end_of_input(stdio, signal):
    c = stdio().ready()
    n = marker()
    a = start(c, f"{signal} echo ready; sleep {n}; sleep {n}")
    c.wait(lambda: output(c, a), what="output")
    assert c.close() == 0
    poll(lambda: not pids_with(n), what="nobody")


def test_a_client_that_does_not_read_stops_its_command(server, directory):
    c = server.ready()
    c.pause()
    c.post("command/exec", params(["/bin/sh", "-c", f"head -c 60000000 /dev/zero; : > {directory}/done"]), id=77)
    other = server.ready()
    for i in range(20):
        other.run(f"p{i}", ["/bin/echo", "fine"])
    assert not (directory / "done").exists()
    c.resume()
    a = c.answer(77)["result"]["sessionId"]
    exited(c, a)
    c.wait(lambda: len(output(c, a)) == 60000000, 60, "all of it")
