# SPDX-License-Identifier: ISC
"""What patterns match is looked for beside the session's loop: whatever else the session is asked, it answers
meanwhile. The process that looks is held by a file system that does not answer, so nothing depends on how long it takes."""
import os
import pathlib
import signal

import pytest
from execd_client import start_params
from integration_conftest import ROOT, poll
from test_slow_start import FileSystem

from conftest import Shell, as_test_user, children, name
from policies import glob, uri, workspace_write


@pytest.fixture
def gate(place):
    if not ROOT or not os.access("/dev/fuse", os.W_OK):
        pytest.skip("WHO LOOKS FOR PATTERNS IS NOT HELD: this needs root and /dev/fuse")
    f = FileSystem(place / "slow")
    yield f
    f.stop()


@pytest.fixture
def one(gate, spawn, place, user):
    """A session, and a shell under a policy with a pattern, which looks at a file system that the test holds."""
    server = spawn()
    client = server.ready()
    client.server = server
    server.wait_log(f"session {client.session_id[:8]}: opened")
    as_test_user(user, "echo secret > a.env; mkdir d; echo secret > d/b.env; echo open > f", place)
    shell = Shell(client, workspace_write(place, more=[glob("**/*.env")]), place)
    shell.gate = gate
    assert shell.run("cat a.env d/b.env f").stdout == "open\n"
    shell.runner = server.runner(client)
    yield shell
    client.drop()


def looker(shell):
    return poll(lambda: [p for p in children(shell.runner) if name(p) == "execd-build"], what="a process that looks")[0]


class Stopped:
    def __init__(self, shell):
        self.gate = shell.gate

    def __enter__(self):
        self.gate.goes()

    def __exit__(self, *_):
        self.gate.returns()


def has_answer(client, id):
    return any(m.get("id") == id and "method" not in m for m in client.messages)


def send_start(shell, script, **extra):
    id = shell.id()
    return id, shell.client.post("process/start", start_params(id, ["/bin/sh", "-c", script], **shell.params(**extra)))


def test_others_are_answered_while_a_start_looks(one):
    client = one.client
    free = Shell(client, None, one.cwd)
    before = free.start("echo up; read x; echo $x", pipeStdin=True)
    client.wait_output(before, "up")
    with Stopped(one):
        id, start = send_start(one, "cat a.env; echo done")
        looker(one)
        client.write(before, "more\n")
        assert client.finished(before).stdout == "up\nmore\n"
        m = client.request("fs/readFile", {"path": uri(one.cwd / "f")})
        assert "result" in m, m
        listed = client.request("process/list", {})
        assert "result" in listed and id not in str(listed)
        assert not has_answer(client, start)
    assert "result" in client.answer(start)
    r = client.finished(id)
    assert r.stdout == "done\n"


def test_what_follows_a_start_waits_for_it(one):
    """A request for a process that is about to be finds it; a later start that looks for nothing is carried out."""
    client = one.client
    with Stopped(one):
        id, start = send_start(one, "echo first >> order; read x; echo $x", pipeStdin=True)
        write = client.post("process/write", {"processId": id, "chunk": "eAo=", "writeId": "w1"})
        free = Shell(client, None, one.cwd)
        second, later = send_start(free, "echo second >> order")
        assert "result" in client.answer(later)
        client.finished(second)
        assert not any(has_answer(client, n) for n in (start, write))
    assert all("result" in client.answer(n) for n in (start, write))
    assert client.finished(id).stdout == "x\n"
    assert (one.cwd / "order").read_text().split() == ["second", "first"]


def test_what_follows_a_start_keeps_its_order(one, user):
    """Also when a later start still looks: what came for the first process before it is held, and is not overtaken."""
    client = one.client
    as_test_user(user, "seq 4000 | sed 's,^,trees/,' | xargs mkdir -p", one.cwd)
    with Stopped(one):
        id, start = send_start(one, "cat", pipeStdin=True)
        second, later = send_start(one, "true")
        first = client.post("process/write", {"processId": id, "chunk": "MQo=", "writeId": "w1"})
        assert "result" in client.request("fs/getMetadata", {"path": uri(one.cwd)})
    assert "result" in client.answer(start)
    more = [client.post("process/write", {"processId": id, "chunk": "Mgo=", "writeId": f"more{n}"}) for n in range(3)]
    more.append(client.post("process/closeStdin", {"processId": id}))
    assert all("result" in client.answer(n) for n in (first, later, *more))
    assert client.finished(id).stdout == "1\n2\n2\n2\n"
    client.finished(second)


def test_a_request_of_files_waits_alone(one):
    client = one.client
    free = Shell(client, None, one.cwd)
    with Stopped(one):
        read = client.post("fs/readFile", {"path": uri(one.cwd / "a.env"), "sandbox": one.sandbox})
        after = client.post("fs/readFile", {"path": uri(one.cwd / "f")})
        assert free("echo served") == "served\n"
        assert not has_answer(client, read) and not has_answer(client, after)
    assert "error" in client.answer(read) and "result" in client.answer(after)


def test_a_search_that_dies_refuses_and_the_next_works(one):
    client = one.client
    with Stopped(one):
        id, start = send_start(one, "true")
        os.kill(looker(one), signal.SIGKILL)
        m = client.answer(start)
    assert m["error"]["code"] == -32602 and "cannot be enforced" in m["error"]["message"], m
    assert one.run("cat a.env; echo again").stdout == "again\n"


@pytest.mark.nightly
def test_a_file_system_that_never_answers_refuses(one):
    """Those who look there, and nobody else: also when more wait than may look at the same time."""
    with Stopped(one):
        there = [send_start(one, "true")[1] for _ in range(6)]
        read = one.client.post("fs/readFile", {"path": uri(one.cwd / "a.env"), "sandbox": one.sandbox})
        elsewhere = Shell(one.client, workspace_write(one.cwd / "d", more=[glob("**/*.env")]), one.cwd / "d")
        assert elsewhere.run("cat b.env; echo on", timeout=60).stdout == "on\n"
        for request in (*there, read):
            error = one.client.answer(request, 60)["error"]
            assert error["code"] == -32602 and "a file system below what its policy names does not answer" in error["message"], error
    assert one.run("cat a.env; echo again").stdout == "again\n"


def test_a_connection_that_is_ended_meanwhile(one):
    """For a fault of the client: what still looks is not carried out; the session goes on."""
    client = one.client
    with Stopped(one):
        send_start(one, "echo ran > ran")
        pid = looker(one)
        client.send({"id": 1, "result": {}})
        client.wait_closed()
        poll(lambda: not pathlib.Path(f"/proc/{pid}").exists(), what="end of the search")
    again = client.server.ready(resumeSessionId=client.session_id)
    again.server = client.server
    shell = Shell(again, one.sandbox, one.cwd)
    assert shell.run("cat a.env; echo on; cat ran").stdout == "on\n"
    again.drop()


def test_a_connection_that_ends_meanwhile(one):
    """Nobody is there to hear of it; the start is carried out."""
    client = one.client
    with Stopped(one):
        send_start(one, "cat a.env > ran; echo ran >> ran")
        looker(one)
        client.drop()
    poll(lambda: (one.cwd / "ran").exists() and (one.cwd / "ran").read_text() == "ran\n", what="command")


def test_a_refusal_of_the_search_reaches_the_client(one, user, place):
    as_test_user(user, "mkdir many && cd many && seq 8200 | sed 's/$/.env/' | xargs touch", place)
    code, message = one.refusal()
    assert code == -32602 and "sandbox patterns match more than 8192 paths" in message
    as_test_user(user, "rm -r many", place)
    assert one.run("cat a.env; echo on").stdout == "on\n"
