# SPDX-License-Identifier: ISC
"""Many reloads: nothing of a configuration that is not in force any more piles up."""
import os
import threading

import pytest
from conftest import ROOT, digest, poll
from execd_client import Closed, WebSocket, upgrade

SESSIONS = 12


RELOADING = {"code": 1001, "reason": "the server is reloading: resume the session"}


def text(user, n, hand_over="yes"):
    return (f"# {n}\n[listener main]\naddress = ws://127.0.0.1:0\nhand-over = {hand_over}\n[limits]\nping-interval = {n + 30}s\n"
            f"[identity a]\nuser = {user.pw_name}\ntoken-sha256 = {digest('t')}\n")


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def test_descriptors_do_not_pile_up(configured, user, mode):
    """Sessions of each generation go on, and nothing else of its time is left."""
    if not ROOT:
        pytest.skip("DESCRIPTORS ARE NOT COUNTED: this needs root")
    s = configured(text(user, 0))
    clients = [s.connect(token="t").ready()]
    first = descriptors(s.broker)
    for n in range(1, SESSIONS):
        s.reload(text(user, n), "reload: ")
        clients[-1].wait_closed()
        clients.append(s.connect(token="t").ready())
    # A control channel for each session, and what comes once; another namespace each would be twice that.
    assert descriptors(s.broker) <= first + SESSIONS + 6, os.listdir(f"/proc/{s.broker}/fd")
    for i, c in enumerate(clients):
        if i < SESSIONS - 1:
            c = s.connect(token="t").ready(resumeSessionId=c.session_id)
        assert c.run("x", ["/bin/echo", str(i)]).stdout == f"{i}\n"


@pytest.mark.parametrize("hand_over", ["yes", "no"])
def test_clients_are_told_to_resume(configured, user, mode, hand_over):
    s = configured(text(user, 0, hand_over))
    c = s.connect(token="t").ready()
    c.start("cat", ["/bin/cat"], pipeStdin=True)
    w = s.connect(token="t")
    w.call("initialize", {"clientName": "w", "watchSessionId": c.session_id})
    s.reload(text(user, 1, hand_over), "reload: ")
    assert c.wait_closed() == w.wait_closed() == RELOADING
    c = s.connect(token="t").ready(resumeSessionId=c.session_id)
    c.write("cat", "still\n")
    c.wait_output("cat", "still")


@pytest.mark.parametrize("hand_over", ["yes", "no"])
@pytest.mark.parametrize("part", ["connected", "in its request", "upgraded"])
def test_who_is_on_the_way_in_gets_a_session(configured, user, mode, part, hand_over):
    """The broker that leaves serves whom its front-end has accepted, and then tells that client, too."""
    s = configured(text(user, 0, hand_over))
    first = s.connect(token="t").ready()
    request = upgrade("Authorization: Bearer t\r\n")
    late = WebSocket(s.url, handshake=False) if part != "upgraded" else s.connect(token="t")
    if part == "in its request":
        late.sock.sendall(request[:40])
    s.connect(token="t").ready()    # after the front-end has accepted that one
    s.reload(text(user, 1, hand_over), "")
    assert first.wait_closed() == RELOADING
    if part != "upgraded":
        late.sock.sendall(request[40 if part == "in its request" else 0:])
        head = b""
        while b"\r\n\r\n" not in head:
            head += (piece := late.sock.recv(1))
            assert piece, head
        assert b" 101 " in head, head
        late.reader = threading.Thread(target=late._read, daemon=True)
        late.reader.start()
    late.initialize()
    assert late.wait_closed() == RELOADING
    late = s.connect(token="t").ready(resumeSessionId=late.session_id)
    assert late.run("x", ["/bin/echo", "here"]).stdout == "here\n"


def test_who_comes_during_a_reload_waits(configured, user, mode):
    """Of clients that come all the time none hears an error."""
    s = configured(text(user, 0))
    over, came, failed = threading.Event(), [], []

    def come():
        while not over.is_set():
            try:
                c = s.connect(token="t")
                c.initialize()
                came.append(c)
                c.drop()
            except (Closed, OSError, AssertionError) as e:
                failed.append(repr(e))

    clients = [threading.Thread(target=come) for _ in range(4)]
    for t in clients:
        t.start()
    for n in range(1, 8):
        before = len(came)
        s.reload(text(user, n), f"ping-interval: {n + 30}s")
        poll(lambda: len(came) > before + 4, what="clients")    # noqa: B023
    over.set()
    for t in clients:
        t.join()
    assert failed == []


def test_who_came_before_a_reload_and_asks_after_it(configured, user, mode):
    """Is told to come again, and not forgotten."""
    s = configured(text(user, 0))
    early = [s.connect(token="t") for _ in range(3)]
    s.reload(text(user, 1), "reload: ")
    for c in early:
        c.wait_closed()
    s.connect(token="t").ready()


def test_many_reloads_in_a_row(configured, user, mode):
    if not ROOT:
        pytest.skip("DESCRIPTORS ARE NOT COUNTED: this needs root")
    s = configured(text(user, 0))
    s.connect(token="t").ready()
    before = descriptors(s.broker), descriptors(s.pid), descriptors(s.frontend())
    for n in range(1, 100):
        s.reload(text(user, n), "reload: ")
    s.connect(token="t").ready()
    after = descriptors(s.broker), descriptors(s.pid), descriptors(s.frontend())
    # A session, a spare runner, and what the first of them brought; each reload that left one would leave 99.
    assert all(n <= m + 10 for n, m in zip(after, before)), (before, after)
