# SPDX-License-Identifier: ISC
"""Hostile or slow clients: bounded, and alone with their trouble (sections 6, 14)."""
import asyncio
import base64
import contextlib
import json
import os
import pathlib
import socket
import threading
import time
from urllib.parse import urlsplit

import pytest
import websockets
from conftest import MIB, SANITIZED, poll, stat_of, stopped
from execd_client import Closed, WebSocket, b64, dial, frame, upgrade


def rss_kib(pid, which="VmRSS"):
    """What it holds, or with VmHWM held at most."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(which):
            return int(line.split()[1])
    raise ProcessLookupError(pid)


def test_a_client_that_does_not_read_stops_its_command(spawn, directory):
    s = spawn()
    c = s.ready()
    other = s.ready()
    c.pause()
    before = rss_kib(s.frontend()), rss_kib(s.runner(c))
    c.sock.sendall(frame(1, ('{"id":500,"method":"process/start","params":{"processId":"a","argv":["/bin/sh","-c",'
                             f'"head -c 60000000 /dev/zero; : > {directory}/done; exit 3"],'
                             '"cwd":"file:///tmp","env":{"PATH":"/bin"},"tty":false}}').encode()))
    # Other commands come and go meanwhile; this one cannot.
    for i in range(20):
        assert other.run(f"p{i}", ["/bin/echo", "fine"]).stdout == "fine\n"
    assert not (directory / "done").exists()
    after = rss_kib(s.frontend()), rss_kib(s.runner(c))
    assert after[0] - before[0] < 8 * MIB and after[1] - before[1] < 8 * MIB, (before, after)
    c.resume()
    r = c.finished("a", 60)
    assert (len(r.stdout), r.code) == (60000000, 3)


def test_twenty_thousand_pipelined_requests(server):
    """Q13: never stop writing because of reading."""
    c = server.ready()
    n = 20000
    data = b"".join(frame(1, b'{"id":%d,"method":"nope"}' % (100000 + i)) for i in range(n))
    threading.Thread(target=c.sock.sendall, args=(data,), daemon=True).start()
    c.wait(lambda: len(c.messages) >= n + 1, 60)
    assert [m["id"] for m in c.messages[1:]] == list(range(100000, 100000 + n))


def test_asking_without_listening_is_bounded(spawn):
    s = spawn()
    c = s.ready()
    c.pause()
    sent = 0
    c.sock.settimeout(2)
    piece = b"".join(frame(1, b'{"id":1,"method":"' + b"x" * 1000 + b'"}') for _ in range(100))
    with pytest.raises(socket.timeout):
        while sent < 400 << 20:
            c.sock.sendall(piece)
            sent += len(piece)
    assert rss_kib(s.frontend()) < 64 * MIB and rss_kib(s.runner(c)) < 64 * MIB


@pytest.mark.parametrize("method", ["process/read", "process/snapshot"])
def test_large_answers_without_listening_are_bounded(spawn, method):
    """Each answer is 1.4 MiB; two thousand requests come in one piece."""
    s = spawn()
    c = s.ready()
    c.run_sh("a", "head -c 2000000 /dev/zero")
    c.pause()
    request = '{"id":%d,"method":"' + method + '","params":{"processId":"a"}}'
    piece = b"".join(frame(1, (request % (i + 1000)).encode()) for i in range(2000))
    threading.Thread(target=c.sock.sendall, args=(piece,), daemon=True).start()
    runner = s.runner(c)
    other = s.ready()
    for i in range(20):
        other.run(f"p{i}", ["/bin/echo", "fine"])
        assert rss_kib(runner) < 32 * MIB
    c.resume()

    def answers():
        return [m["id"] for m in c.messages if m.get("id", 0) >= 1000]

    c.wait(lambda: len(answers()) >= 100, 60, "answers")
    assert answers()[:100] == list(range(1000, 1100))


def test_a_ping_flood_without_reading_is_bounded(spawn):
    s = spawn()
    c = s.connect()
    c.pause()
    piece = b"".join(frame(9, b"p" * 125) for _ in range(2000))
    for _ in range(400):
        c.sock.sendall(piece)
    assert rss_kib(s.frontend()) < 32 * MIB
    c.resume()
    c.ready()


def body(n):
    head, tail = b'{"id":1000,"method":"nope","params":"', b'"}'
    return head + b"x" * (n - len(head) - len(tail)) + tail


def test_a_frame_may_be_as_long_as_a_message(spawn):
    # A slow machine takes longer than ten seconds to mask so much.
    s = spawn("--pre-auth-deadline", "5m")
    a = s.ready()
    a.frame(1, body(40 << 20))
    assert a.answer(1000)["error"]["code"] == -32601
    b = s.ready()
    try:
        b.frame(1, body((64 << 20) + 1))
    except OSError:
        pass
    assert b.wait_closed()["code"] in (1009, 1006)


@pytest.mark.parametrize("hand_over", ["yes", "no"])
def test_long_answers_go_in_fragments(configured, user, directory, hand_over):
    """Clients of Codex drop the connection at a frame of over 16 MiB, and take fragments."""
    s = configured(f"[listener a]\naddress = ws://127.0.0.1:0\nhand-over = {hand_over}\nallow-unauthenticated = one\n"
                   f"[identity one]\nuser = {user.pw_name}\nsandbox-allow-unsandboxed = yes\n[limits]\nretention = 32M\n")
    c = s.ready()

    def check(text):
        """Of the answer that came last: each fragment has 4 MiB but the last."""
        sizes = [len(data) for op, data in c.frames if op in (0, 1)]
        rest = sizes[sizes.index(4 << 20):]
        assert sum(rest) >= len(text) and set(rest[:-1]) == {4 << 20} and rest[-1] <= 4 << 20, rest
        c.frames.clear()

    data = os.urandom(15 << 20)     # 20 MiB in base64; the file helper's answer is passed on
    (directory / "large").write_bytes(data)
    (directory / "large").chmod(0o644)
    r = c.call("fs/readFile", {"path": f"file://{directory}/large"})
    assert base64.b64decode(r["dataBase64"]) == data
    check(r["dataBase64"])
    (directory / "whole").write_bytes(data[:11 << 20])  # below the limit
    (directory / "whole").chmod(0o644)
    assert base64.b64decode(c.call("fs/readFile", {"path": f"file://{directory}/whole"})["dataBase64"]) == data[:11 << 20]
    assert [len(d) > 14 << 20 for op, d in c.frames if op in (0, 1) and len(d) > 1 << 20] == [True]
    c.frames.clear()
    # The runner's own answer.
    c.start("p", ["/bin/cat", str(directory / "large")])
    c.finished("p", timeout=60)
    c.frames.clear()
    chunks = c.call("process/read", {"processId": "p", "afterSeq": None, "maxBytes": 32 << 20})["chunks"]
    assert b"".join(base64.b64decode(x["chunk"]) for x in chunks) == data
    check("".join(x["chunk"] for x in chunks))
    assert c.run("after", ["/bin/echo", "fine"]).stdout == "fine\n"

    async def with_a_library():
        async with websockets.connect(s.urls[0], max_size=None) as ws:
            for id, method, params in (0, "initialize", {"clientName": "x"}), (None, "initialized", {}), \
                    (1, "fs/readFile", {"path": f"file://{directory}/large"}):
                await ws.send(json.dumps({"method": method, "params": params, **({} if id is None else {"id": id})}))
            while (m := json.loads(await ws.recv())).get("id") != 1:
                pass
            return base64.b64decode(m["result"]["dataBase64"])

    assert asyncio.run(with_a_library()) == data


def test_fragmented_messages_have_a_limit_too(spawn):
    # A slow machine takes longer than ten seconds to mask so much.
    s = spawn("--pre-auth-deadline", "5m")
    piece = 8 << 20
    for attached in (True, False):
        a = s.ready() if attached else s.connect()
        text = body(64 << 20)
        for at in range(0, len(text), piece):
            a.frame(1 if at == 0 else 0, text[at:at + piece], fin=at + piece == len(text))
        assert a.answer(1000, 60)["error"]["code"] == -32601
        try:
            for at in range(0, len(text), piece):
                a.frame(1 if at == 0 else 0, text[at:at + piece], fin=False)
            a.frame(0, b"x")
        except OSError:
            pass
        assert a.wait_closed(60)["code"] in (1009, 1006)


def cpu_s(pid):
    utime, stime = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    return (int(utime) + int(stime)) / os.sysconf("SC_CLK_TCK")


MUCH = {"values": b"[]," * 5000000, "strings": b'"x",' * 4000000, "escapes": b'"' + b"\\n" * 7000000 + b'",'}


@pytest.mark.parametrize("what", MUCH)
def test_much_to_parse_before_a_session(spawn, what):
    """The one front-end does not work for it while others wait."""
    s = spawn()
    c = s.connect()
    grown, spent = rss_kib(s.frontend()), cpu_s(s.frontend())
    c.frame(1, b'{"id":77,"method":"environment/info","params":[' + MUCH[what] + b'0]}')
    m = c.answer(-1, 60)["error"]
    assert m["code"] == -32600 and m["message"].endswith("too long before initialize")
    assert cpu_s(s.frontend()) - spent < (5 if SANITIZED else 0.5)
    assert rss_kib(s.frontend()) - grown < 40 * MIB
    assert c.ready().run("p", ["/bin/echo", "fine"]).stdout == "fine\n"


def test_much_that_waits_before_a_session(configured, user):
    """Many large messages that do not end: together they have a limit, and
    those who say no more than they need do not notice."""
    s = configured(f"[listener a]\naddress = ws://127.0.0.1:0\nallow-unauthenticated = one\n[identity one]\n"
                   f"user = {user.pw_name}\nsandbox-allow-unsandboxed = yes\n"
                   "[limits]\nmax-message-bytes = 4M\npre-auth-deadline = 1m\n")
    grown = rss_kib(s.frontend())
    some = [s.connect() for _ in range(20)]
    for c in some:
        c.frame(1, b"x" * (3 << 20), fin=False)
    poll(lambda: sum(c.closed is not None for c in some) >= 15, 30, "end of those beyond the limit")
    assert all("too much waits" in c.closed["reason"] for c in some if c.closed)
    assert s.ready().run("p", ["/bin/echo", "fine"]).stdout == "fine\n"
    # A buffer that grows is twice as large.
    assert rss_kib(s.frontend()) - grown < 40 * MIB
    for c in some:
        c.drop()
    c = s.connect()
    # A sanitizer gives none back.
    poll(lambda: SANITIZED or rss_kib(s.frontend()) - grown < 10 * MIB, what="memory given back")
    for _ in range(10):
        c.frame(1, body(4 << 20))
        assert c.answer(1000)["error"]["code"] == -32601
        c.messages.clear()


def test_two_hundred_connections(server):
    clients = [server.ready() for _ in range(200)]
    for i, c in enumerate(clients):
        c.start("same", ["/bin/echo", str(i)])
    for i, c in enumerate(clients):
        assert c.finished("same").stdout == f"{i}\n"
        c.drop()


def test_half_a_head_and_a_silent_client_end_at_the_deadline(spawn):
    s = spawn("--pre-auth-deadline", "500ms")
    at = urlsplit(s.url)
    with socket.create_connection((at.hostname, at.port), timeout=10) as half:
        half.sendall(upgrade()[:-10])
        assert half.recv(100) == b""
    c = s.connect()
    assert c.wait_closed()["code"] == 1008
    d = s.ready()
    c2 = s.connect()
    c2.wait_closed()            # its deadline passes, that of the ready one does not count
    assert d.call("environment/status") == {"status": "ready"}


def all_is_read(url):
    """Has the server read what its clients sent, and accepted them (proc_net(5))?"""
    local = "0100007F:{:04X}".format(urlsplit(url).port)
    rows = (line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines())
    return all(row[4].endswith(":00000000") for row in rows if row[1] == local)


def test_who_has_a_session_in_time_keeps_it(spawn):
    """The front-end reads that the session has begun after its timer: the report of the runner is behind the input of
    so many others that one epoll_wait(2) does not return it."""
    s = spawn("--pre-auth-deadline", "2s")
    frontend, others = s.frontend(), []

    def passes_on():
        poll(lambda: all_is_read(s.url) and stat_of(frontend)[1] == "S", what="what was sent is passed on")

    with contextlib.ExitStack() as held:
        for _ in range(40):     # one by one: libevent asks for 32 events at once, and for more if there were so many
            others.append(held.enter_context(dial(s.url)))
            others[-1].sendall(b"G")
            passes_on()
        c, late = s.connect(), time.monotonic() + 2
        with stopped(s.broker):
            c.post("initialize", {"clientName": "x"}, id=1)
            passes_on()
            held.enter_context(stopped(frontend))
            for other in others:
                other.sendall(b"E")
        assert c.answer(1)["result"]["sessionId"]
        poll(lambda: time.monotonic() > late, what="the deadline")
    c.notify("initialized")
    assert c.run("x", ["/bin/echo", "in"]).stdout == "in\n" and c.closed is None


def test_the_connection_limit_is_said(spawn):
    s = spawn("--max-connections", "5")
    clients = [s.ready() for _ in range(5)]
    with pytest.raises(Closed, match="503"):
        WebSocket(s.url)
    clients[0].drop()
    poll(lambda: try_connect(s), what="room")
    assert clients[1].call("environment/status") == {"status": "ready"}


def try_connect(s):
    try:
        WebSocket(s.url).drop()
        return True
    except Closed:
        return False


def test_small_messages_do_not_wait_for_acknowledgements(client):
    """Q16: with Nagle's algorithm 40 round trips take 40 delayed acks, over a
    second; a round trip through a pipe takes a fraction of that of a fork. The
    best of three, for a busy host may stop anybody for a moment."""
    client.start("a", ["/bin/cat"], pipeStdin=True)
    client.write("a", "warm\n")
    client.wait_output("a", "warm\n")
    began = time.monotonic()
    for i in range(40):
        client.run(f"t{i}", ["/bin/true"])
    forks = time.monotonic() - began
    trips = []
    for n in range(3):
        began = time.monotonic()
        for i in range(40):
            client.write("a", f"{n}.{i}\n")
            client.wait_output("a", f"\n{n}.{i}\n")
        trips.append(time.monotonic() - began)
    assert min(trips) < forks * 2 + 0.5, trips


def test_a_process_that_reads_nothing_hurts_nobody(server):
    c, other = server.ready(), server.ready()
    c.sh("a", "sleep 100", pipeStdin=True)
    chunk = b64(b"a" * 65536)
    for i in range(1200):       # more than may wait: refused in words
        c.post("process/write", {"processId": "a", "chunk": chunk, "writeId": f"w{i}"}, id=f"w{i}")
    m = c.answer("w1199")
    assert "too much unread standard input" in m["error"]["message"]
    assert other.run("b", ["/bin/echo", "fine"]).stdout == "fine\n"
    assert c.terminate("a") is True


def test_many_processes_in_one_session(client):
    for i in range(150):
        client.post("process/start", {"processId": f"p{i}", "argv": ["/bin/cat"], "cwd": "file:///",
                                      "env": {}, "tty": i % 10 == 0, "pipeStdin": True})
    for i in range(150):
        client.write(f"p{i}", f"{i}\n")
    for i in range(150):
        client.wait_output(f"p{i}", f"{i}")
        assert client.terminate(f"p{i}") is True
