#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""A compromised front-end for test_isolation.py: holds the real control
channel and says what no front-end says, one case per life."""
import array
import contextlib
import json
import os
import pathlib
import signal
import socket
import struct
import sys
import time

VERSION = int((pathlib.Path(__file__).parents[2] / "version").read_text())
READY, AUTHENTICATE, OPEN, RESUME, CLOSE, DONE, WATCH = 10, 12, 14, 16, 18, 20, 22


def u32(n):
    return struct.pack("<I", n)


def string(s):
    return u32(len(s)) + s


def ready():
    return u32(READY) + u32(VERSION) + bytes([1, 1, 1, 1])


def authenticate(conn, listener=0, kind=0, verdict=None):
    return (u32(AUTHENTICATE) + u32(conn) + u32(listener) + bytes([kind, verdict is not None]) +
            (verdict or b"\0" * 44 + string(b"") + b"\0" * 32) +
            string(b"websocket 1.2.3.4:5") + string(b"") * 4)


def granted(s, conn):
    s.send(authenticate(conn))
    answer = s.recv(16384)
    return answer[9:25]


def serving(s, *messages):
    s.send(ready())
    for m in messages:
        s.send(m)


kept = []


def ask(s, message):
    """With one end of a session channel; the other one."""
    ours, theirs = socket.socketpair()
    kept.append(ours)
    s.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [theirs.fileno()]))])
    return ours


def asking(s, message, *before):
    serving(s, *before)
    ask(s, message)


def open_twice(s):
    serving(s)
    grant = granted(s, 1)
    for _ in range(2):
        ask(s, u32(OPEN) + u32(1) + grant)


def open_session(s, conn):
    """Returns the session's id and the grant."""
    grant = granted(s, conn)
    channel = ask(s, u32(OPEN) + u32(conn) + grant)
    text = b'{"id":1,"method":"initialize","params":{"clientName":"f"}}'
    channel.sendall(u32(len(text)) + text)
    answer = channel.recv(16384)
    return json.loads(answer[4:])["result"]["sessionId"].encode(), grant


def open_with(s, fds):
    """Something else than one end of a channel."""
    serving(s)
    grant = granted(s, 1)
    s.sendmsg([u32(OPEN) + u32(1) + grant], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])


def watch(conn, grant, id):
    return u32(WATCH) + u32(conn) + grant + string(id)


def watch_twice(s):
    serving(s)
    id, _ = open_session(s, 1)
    grant = granted(s, 2)
    for _ in range(2):
        ask(s, watch(2, grant, id))


def watch_with_the_grant_of_the_attached(s):
    serving(s)
    id, grant = open_session(s, 1)
    ask(s, watch(1, grant, id))


def watch_and_close_twice(s):
    serving(s)
    id, _ = open_session(s, 1)
    ask(s, watch(2, granted(s, 2), id))
    for _ in range(2):
        s.send(u32(CLOSE) + u32(2) + b"\0")


def with_descriptor(s):
    s.sendmsg([ready()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [2]))])


def authenticate_with_descriptor(s):
    serving(s)
    s.sendmsg([authenticate(1)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [3]))])


def lingering(n=1):
    """Sockets that block whoever closes them last for a minute: the test never reads what is sent there."""
    sink = pathlib.Path(__file__).parents[2] / "sink"
    found = []
    for _ in range(n):
        s = socket.create_connection(("127.0.0.1", int(sink.read_text())))
        s.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                s.send(b"x" * 65536)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 60))
        found.append(s)
    return found


def bring(s, message, n=1):
    given = lingering(n)
    s.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [g.fileno() for g in given]))])
    for g in given:
        os.close(g.detach())


def bring_fuse(s, message):
    """A file that who is no Python program closes in vain (fuse_file.py), or on a host without FUSE another one."""
    path = pathlib.Path(__file__).parents[2] / "fuse"
    if not path.exists():
        return bring(s, message)
    with open(path, "r+b", 0) as file:
        s.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [file.fileno()]))])


def broker_pid():
    """Root's execd is the parent, and the broker its child that has not ended."""
    for pid in pathlib.Path(f"/proc/{os.getppid()}/task/{os.getppid()}/children").read_text().split():
        # Another one may be gone by now.
        with contextlib.suppress(OSError):
            name, state = pathlib.Path(f"/proc/{pid}/stat").read_text().split("(", 1)[1].rsplit(")", 1)
            if name == "execd-broker" and state.split()[0] != "Z":
                return int(pid)
    raise ProcessLookupError("no broker")


def unread(s, *messages):
    """Those that nobody reads, because of the one before them."""
    serving(s)
    broker = broker_pid()
    os.kill(broker, signal.SIGSTOP)
    s.send(u32(999))
    for m in messages:
        bring(s, m)
    os.kill(broker, signal.SIGCONT)


# One that never became READY counts against the program; so each of them
# stands between two that did.
EARLY = [
    lambda s: s.send(authenticate(1)),                       # before READY
    lambda s: s.send(u32(999)),                              # unknown type
    lambda s: s.send(watch(1, b"\0" * 16, b"x")),            # before READY
    lambda s: s.send(u32(1)),                                # an event, not a request
    lambda s: s.send(b"\x0a"),                               # too short
    lambda s: s.send(ready() + b"x"),                        # leftover bytes
    lambda s: s.send(u32(READY) + u32(1) + bytes([1, 1, 2, 1])),      # a bool that is none
    lambda s: s.send(ready() + b"y" * 30000),                # oversize
    with_descriptor,
]
SERVING = [
    lambda s: serving(s, ready()),                           # READY twice
    lambda s: serving(s, authenticate(1, listener=9)),
    lambda s: serving(s, authenticate(1, kind=9)),
    lambda s: serving(s, authenticate(1), authenticate(1)),  # a connection twice
    lambda s: asking(s, u32(OPEN) + u32(1) + b"\0" * 16),    # no grant at all
    lambda s: asking(s, u32(OPEN) + u32(1) + b"\1" * 16, authenticate(1)),
    lambda s: asking(s, u32(RESUME) + u32(7) + b"\0" * 16 + string(b"x")),
    lambda s: (serving(s), s.send(u32(OPEN) + u32(1) + granted(s, 1))),
    lambda s: serving(s, u32(CLOSE) + u32(1) + b"\0"),
    lambda s: serving(s, u32(DONE)),                         # there is no stdio
    lambda s: serving(s, u32(8)),                            # alive, and nobody asked
    lambda s: serving(s, u32(6) + b"\x02"),                  # a helper that there is not
    lambda s: open_with(s, [2]),
    lambda s: open_with(s, [s.fileno()]),                    # packets
    lambda s: open_with(s, [socket.socket().detach()]),
    lambda s: open_with(s, [end.detach() for end in socket.socketpair()]),
    open_twice,
    authenticate_with_descriptor,                            # of a TCP listener
    lambda s: asking(s, watch(7, b"\0" * 16, b"x")),
    lambda s: asking(s, watch(1, b"\1" * 16, b"x"), authenticate(1)),
    watch_twice,
    watch_with_the_grant_of_the_attached,
    watch_and_close_twice,
    lambda s: serving(s, b""),                               # reads like the end
    lambda s: (serving(s), bring(s, authenticate(1))),
    lambda s: (serving(s), bring(s, u32(CLOSE) + u32(1) + b"\0", 3)),
    lambda s: (serving(s), bring(s, u32(999) + b"x" * 30000, 2)),
    lambda s: (grant := granted((serving(s), s)[1], 1)) and bring(s, u32(OPEN) + u32(1) + grant),
    lambda s: unread(s, u32(999), u32(999)),
    lambda s: unread(s, b""),
    lambda s: (serving(s), bring_fuse(s, authenticate(1))),
    lambda s: (grant := granted((serving(s), s)[1], 1)) and bring_fuse(s, u32(OPEN) + u32(1) + grant),
]
CASES = [case for pair in zip(SERVING, EARLY) for case in pair] + SERVING[len(EARLY):]


def main():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, fileno=3)
    s.setblocking(True)
    s.recv(16384)               # CONFIGURE
    s.recv(16384)               # LISTENER
    counter = pathlib.Path(__file__).parents[2] / "case"
    case = int(counter.read_text())
    counter.write_text(str(case + 1))
    if case >= len(CASES):
        s.send(ready())
        # A certificate that nobody verified: the broker finds its seal wrong.
        s.send(authenticate(1, verdict=u32(0) + struct.pack("<Q", time.monotonic_ns() // 1000000) + b"\1" * 32 +
                            string(b"CN=admin") + b"\1" * 32))
        assert s.recv(16384)[:4] == u32(AUTHENTICATE + 1)
        print(f"fake: done {len(CASES)}", file=sys.stderr, flush=True)
    else:
        CASES[case](s)
    while s.recv(16384):    # until the broker ends it
        pass
    while case < len(CASES):
        signal.pause()      # the broker's SIGKILL
    os._exit(0)


main()
