# SPDX-License-Identifier: ISC
"""A process that is STARTING (runner/rpc/starting.c): what its start waits for, and what waits for it meanwhile. A stopped
file helper holds a request that changes a file, and so the start behind it."""
import os
import signal

import pytest
from conftest import ROOT, children_named, is_alive, pids_with, poll
from execd_client import b64, start_params
from test_files import uri
from test_watching import watch


class Gate:
    """The file helper of a session: shut, it serves nothing."""

    def __init__(self, server, client, directory):
        self.client, self.path = client, directory / "written"
        client.call("fs/getMetadata", {"path": uri(directory)})
        self.helper, = poll(lambda: children_named(server.runner(client), "execd-files"), what="a file helper")
        os.kill(self.helper, signal.SIGSTOP)

    def write(self):
        return self.client.post("fs/writeFile", {"path": uri(self.path), "dataBase64": b64("what was written\n")})

    def open(self):
        os.kill(self.helper, signal.SIGCONT)


@pytest.fixture
def held(spawn, directory, user):
    """A client and its gate, which is shut."""
    if ROOT:
        os.chown(directory, user.pw_uid, user.pw_gid)
    server = spawn()
    client = server.ready()
    client.server = server
    return client, Gate(server, client, directory)


def post_start(client, id, argv, **extra):
    return client.post("process/start", start_params(id, argv, **extra))


def assert_unanswered(client, *ids):
    """Of what was sent before: everything else is answered."""
    client.call("process/list", {})
    assert not any(m.get("id") in ids for m in client.messages)


def test_it_finds_what_was_written_before_it(held):
    client, gate = held
    write = gate.write()
    start = post_start(client, "a", ["/bin/cat", str(gate.path)])
    assert client.call("process/list", {})["processes"] == []
    assert_unanswered(client, write, start)
    gate.open()
    assert "result" in client.answer(write) and "result" in client.answer(start)
    assert client.finished("a").stdout == "what was written\n"


def test_what_only_reads_holds_nothing(held):
    client, gate = held
    read = client.post("fs/getMetadata", {"path": uri(gate.path.parent)})
    assert client.run("a", ["/bin/echo", "x"]).stdout == "x\n"
    assert_unanswered(client, read)
    gate.open()
    assert "result" in client.answer(read)


def test_requests_for_it_wait_in_their_order(held):
    client, gate = held
    client.sh("other", "read x; echo $x", pipeStdin=True)
    gate.write()
    sent = [
        post_start(client, "a", ["/bin/sh", "-c", "stty size; read x; echo got-$x; read x; read x"], tty=True, rows=3, cols=9),
        client.post("process/resize", {"processId": "a", "rows": 5, "cols": 7}),
        client.post("process/write", {"processId": "a", "chunk": b64("one\n"), "writeId": "1"}),
        client.post("process/write", {"processId": "a", "chunk": b64("one\n"), "writeId": "1"}),
        client.post("process/read", {"processId": "a", "waitMs": 60000}),
        post_start(client, "a", ["/bin/true"]),
        client.post("process/signal", {"processId": "a", "signal": "KILL", "target": "tree"}),
        client.post("process/wait", {"processId": "a", "timeoutMs": 60000}),
        client.post("process/terminate", {"processId": "a"}),
        client.post("process/terminate", {"processId": "none"}),
    ]
    assert client.answer(sent.pop())["result"] == {"running": False}
    client.write("other", "meanwhile\n")
    assert client.finished("other").stdout == "meanwhile\n"
    assert_unanswered(client, *sent)
    gate.open()
    answers = [client.answer(id) for id in sent]
    assert answers[0]["result"]["processId"] == "a" and answers[1]["result"] == {}
    assert answers[2]["result"] == answers[3]["result"] == {"status": "accepted"}
    assert answers[5]["error"]["message"] == "process a already exists"
    assert answers[6]["result"] == {"delivered": True} and answers[7]["result"]["signal"] == "KILL"
    came = [m["id"] for m in client.messages if m.get("id") in sent]
    quick = [sent[i] for i in (0, 1, 2, 3, 5, 6)]
    assert [id for id in came if id in quick] == quick


def test_what_waits_for_a_start_that_fails(held):
    client, gate = held
    gate.write()
    start = post_start(client, "a", ["/none"])
    write = client.post("process/write", {"processId": "a", "chunk": b64("x"), "writeId": "1"})
    again = post_start(client, "a", ["/bin/echo", "second"])
    resize = client.post("process/resize", {"processId": "a", "rows": 5, "cols": 7})
    gate.open()
    assert client.answer(start)["error"]["data"] == {"kind": "spawnNotFound"}
    assert client.answer(write)["result"] == {"status": "unknownProcess"}
    assert "result" in client.answer(again)
    assert client.answer(resize)["error"]["message"] == "process a has no terminal"
    assert client.finished("a").stdout == "second\n"


def test_the_first_dialect(held):
    client, gate = held
    gate.write()
    start = client.post("command/exec", {"argv": ["/bin/sh", "-c", "read x; echo $x"], "cwd": "/tmp", "tty": True,
                                         "env": {"PATH": "/usr/bin:/bin"}})
    write = client.post("command/exec/write", {"sessionId": "session-1", "chunk": b64("x\n")})
    end = client.post("command/exec/terminate", {"sessionId": "session-1"})
    assert_unanswered(client, start, write, end)
    gate.open()
    assert client.answer(start)["result"] == {"sessionId": "session-1"}
    assert client.answer(write)["result"] == {"accepted": True}
    assert "result" in client.answer(end)


def test_a_connection_that_watches(held):
    client, gate = held
    gate.write()
    start = post_start(client, "a", ["/bin/cat"], pipeStdin=True)
    watchers = [watch(client.server, client) for _ in range(2)]
    asked = [w.post("process/snapshot", {"processId": "a"}) for w in watchers]
    for w, id in zip(watchers, asked):
        assert_unanswered(w, id)
    watchers[0].drop()
    assert_unanswered(client, start)
    gate.open()
    assert watchers[1].answer(asked[1])["result"]["running"] is True
    assert client.call("process/terminate", {"processId": "a"}) == {"running": True}


def test_a_forward_to_what_is_starting(held):
    client, gate = held
    gate.write()
    start = post_start(client, "a", ["/bin/cat"], pipeStdin=True)
    forward = client.post("process/forward", {"processId": "f", "of": "a", "port": 1})
    assert_unanswered(client, start, forward)
    gate.open()
    assert "result" in client.answer(start)
    assert "unknown process id" not in client.answer(forward)["error"]["message"]


@pytest.mark.parametrize("how", ["drop", "end"])
def test_nothing_is_left_of_it(held, how):
    """Its connection, or its session, ends before it begins."""
    client, gate = held
    gate.write()
    marker = f"starting-{os.getpid()}-{how}"
    post_start(client, "a", ["/bin/sh", "-c", f"sleep 1000 # {marker}"])
    client.post("process/write", {"processId": "a", "chunk": b64("x"), "writeId": "1"})
    runner = client.server.runner(client)
    w = watch(client.server, client)
    asked = w.post("process/snapshot", {"processId": "a"})
    assert_unanswered(w, asked)
    if how == "drop":
        client.drop()
        again = client.server.ready(resumeSessionId=client.session_id)
        assert w.answer(asked)["error"]["message"] == "unknown process id a"
        assert again.call("process/list", {})["processes"] == []
        assert again.run("a", ["/bin/echo", "x"]).stdout == "x\n"
    else:
        client.post("session/end", {})
        client.wait_closed()
        poll(lambda: not is_alive(runner), what="end of the runner")
    assert not pids_with(marker)


@pytest.mark.parametrize("number", [50, pytest.param(1000, marks=pytest.mark.nightly)])
def test_many_at_once(held, number):
    client, gate = held
    gate.write()
    ids = [f"p{i}" for i in range(number)]
    sent = []
    for id in ids:
        sent += [post_start(client, id, ["/bin/cat"], pipeStdin=True),
                 client.post("process/write", {"processId": id, "chunk": b64(id), "writeId": "1"}),
                 client.post("process/terminate", {"processId": id})]
    assert_unanswered(client, *sent)
    gate.open()
    assert all("result" in client.answer(id) for id in sent)
    for id in ids:
        client.finished(id)


def test_more_than_may_wait(held):
    client, gate = held
    gate.write()
    start = post_start(client, "a", ["/bin/cat"], pipeStdin=True)
    sent = [client.post("process/terminate", {"processId": "a"}) for _ in range(4096)]
    message = "at most 4096 requests may wait for a start"
    assert client.answer(sent.pop())["error"] == {"code": -32600, "message": message}
    assert_unanswered(client, start, *sent)
    gate.open()
    assert all("result" in client.answer(id) for id in sent)
