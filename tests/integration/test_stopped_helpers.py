# SPDX-License-Identifier: ISC
"""A helper that a signal stopped is replaced: what it owes fails with a typed error, and nobody else waits for it."""
import base64
import os
import signal
import time

import pytest
from conftest import ROOT, children_named, is_alive, poll
from test_files import uri
from test_http import ask, fetch, origin  # noqa: F401

BOUND = 30      # seconds: two looks, five apart, and what a busy machine needs besides
FILES = {"code": -32603, "message": "the file helper of this session was stopped by a signal, and is replaced"}
HTTP = {"code": -32603, "message": "execd-http of this session was stopped by a signal, and is replaced"}


@pytest.fixture
def place(directory, user):
    if ROOT:
        os.chown(directory, user.pw_uid, user.pw_gid)
    return directory


def stop(server, client, name):
    """Stops the session's helper of that name. Its pid."""
    pid, = poll(lambda: children_named(server.runner(client), name), what=name)
    os.kill(pid, signal.SIGSTOP)
    return pid


def check_nobody_waits(client, number):
    began = time.monotonic()
    assert client.run(f"beside{number}", ["/bin/echo", "in"]).stdout == "in\n"
    assert "result" in client.request("environment/status")
    assert time.monotonic() - began < 5


def test_a_file_helper(spawn, place):
    """Requests before and after it was stopped, a pipelined upload and a handle: each ends with an answer."""
    s = spawn()
    c = s.ready()
    there = {"path": uri(place)}
    c.call("fs/open", {"handleId": "h", "path": uri(place / "f"), "mode": "replace"})
    old = stop(s, c, "execd-files")
    block = base64.b64encode(b"x" * 65536).decode()
    owed = [c.post("fs/writeBlock", {"handleId": "h", "offset": i << 16, "chunk": block}) for i in range(8)]
    owed += [c.post("fs/getMetadata", there), c.post("fs/close", {"handleId": "h"})]
    began = time.monotonic()
    assert "result" in c.request("environment/status") and time.monotonic() - began < 5
    assert [c.answer(id, BOUND).get("error") for id in owed] == [FILES] * len(owed)
    poll(lambda: not is_alive(old), what="the end of the stopped one")
    assert c.call("fs/getMetadata", there)["isDirectory"] is True
    gone = c.error("fs/writeBlock", {"handleId": "h", "offset": 0, "chunk": block})
    assert gone == (-32004, "unknown file handle `h`: the file helper that had it open was stopped by a signal, and is replaced")
    c.call("fs/open", {"handleId": "h", "path": uri(place / "f"), "mode": "replace"})
    check_nobody_waits(c, 2)


def test_a_file_helper_that_dies_while_nothing_is_asked(spawn, place):
    """The log says of what, and who uses a handle learns that it is gone, until it is closed or opened again."""
    s = spawn()
    c = s.ready()
    opened = {"path": uri(place / "f"), "mode": "replace"}
    for id in "h", "k":
        c.call("fs/open", {"handleId": id, **opened})
    pid, = children_named(s.runner(c), "execd-files")
    os.kill(pid, signal.SIGTERM)
    poll(lambda: "the file helper ended unexpectedly\n" in s.log and "the file helper ended by signal 15\n" in s.log, what="a line in the log")
    for id in "h", "k":
        assert c.error("fs/writeBlock", {"handleId": id, "offset": 0, "chunk": "YQ=="}) == (
            -32004, f"unknown file handle `{id}`: the file helper that had it open ended unexpectedly")
    c.call("fs/close", {"handleId": "k"})
    assert c.error("fs/readBlock", {"handleId": "k", "offset": 0, "len": 1}) == (-32004, "unknown file handle `k`")
    c.call("fs/open", {"handleId": "h", **opened})
    c.call("fs/writeBlock", {"handleId": "h", "offset": 0, "chunk": "YQ=="})
    c.call("fs/close", {"handleId": "h"})
    assert c.error("fs/writeBlock", {"handleId": "h", "offset": 0, "chunk": "YQ=="}) == (-32004, "unknown file handle `h`")
    assert (place / "f").read_text() == "a"


def test_lost_handles_do_not_fill_the_list(spawn, place):
    """As many as may be open, lost again and again."""
    s = spawn()
    c = s.ready()
    (place / "f").write_text("x")
    for i in range(3):
        for n in range(128):
            c.call("fs/open", {"handleId": f"{i}.{n}", "path": uri(place / "f")})
        kill, = children_named(s.runner(c), "execd-files")
        os.kill(kill, signal.SIGKILL)
        poll(lambda: s.log.count("ended unexpectedly") == i + 1, what="a line in the log")  # noqa: B023
    c.call("fs/open", {"handleId": "h", "path": uri(place / "f")})
    assert c.call("fs/readBlock", {"handleId": "h", "offset": 0, "len": 9})["chunk"] == "eA=="


def test_a_file_helper_that_is_stopped_while_nothing_is_asked(spawn, place):
    """It may stay so, until it is asked."""
    s = spawn()
    c = s.ready()
    c.call("fs/getMetadata", {"path": uri(place)})
    stop(s, c, "execd-files")
    time.sleep(1)
    assert c.request("fs/getMetadata", {"path": uri(place)}, BOUND)["error"] == FILES
    assert "result" in c.request("fs/getMetadata", {"path": uri(place)})


def test_a_file_helper_that_is_stopped_for_a_moment(spawn, place):
    """No answer is lost: only two looks in a row find a stopped one."""
    s = spawn()
    c = s.ready()
    c.call("fs/getMetadata", {"path": uri(place)})
    pid = stop(s, c, "execd-files")
    id = c.post("fs/getMetadata", {"path": uri(place)})
    time.sleep(3)
    os.kill(pid, signal.SIGCONT)
    assert c.answer(id)["result"]["isDirectory"] is True
    assert is_alive(pid)


def test_execd_http(spawn, origin):  # noqa: F811
    s = spawn()
    c = s.ready()
    fetch(c, origin.url("/echo"))
    old = stop(s, c, "execd-http")
    id = ask(c, origin.url("/echo"))
    check_nobody_waits(c, 1)
    assert c.answer(id, BOUND)["error"] == HTTP
    poll(lambda: not is_alive(old), what="the end of the stopped one")
    assert fetch(c, origin.url("/echo"))["status"] == 200


def test_execd_http_in_the_middle_of_a_stream(spawn, origin):  # noqa: F811
    """Half a stream cannot be taken back: its connection ends, and the session goes on."""
    s = spawn()
    c = s.ready()
    fetch(c, origin.url("/wait"), streamResponse=True)
    stop(s, c, "execd-http")
    assert c.wait_closed(BOUND)["code"] == 1011
    again = s.ready(resumeSessionId=c.session_id)
    assert fetch(again, origin.url("/echo"))["status"] == 200


def test_an_origin_that_takes_long(spawn, origin):  # noqa: F811
    """Longer than a stopped helper is given: execd-http waits, and is left alone."""
    s = spawn()
    c = s.ready()
    id = ask(c, origin.url("/wait"))
    pid, = poll(lambda: children_named(s.runner(c), "execd-http"), what="execd-http")
    time.sleep(12)
    assert is_alive(pid)
    origin.go_on.set()
    assert base64.b64decode(c.answer(id)["result"]["bodyBase64"]) == b"hello"
