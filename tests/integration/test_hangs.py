# SPDX-License-Identifier: ISC
"""Who hangs is replaced: each program is stopped, and clients that come then are served within a bounded time."""
import array
import contextlib
import os
import pathlib
import signal
import socket
import struct
import time

import pytest
from certificates import fingerprint
from conftest import is_alive, poll
from execd_client import Closed
from test_client_certificates import world  # noqa: F401
from test_sessions_unit import server as with_sessions, sessions  # noqa: F401
from test_tls import authority, secure  # noqa: F401

BOUND = 25      # seconds; five to ask, ten to answer, and a new program


def child(pid, name):
    """The oldest child of that name."""
    def find():
        found = []
        for p in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            with contextlib.suppress(OSError):
                if pathlib.Path(f"/proc/{p}/comm").read_text() == name + "\n" and is_alive(p):
                    found.append(int(p))
        return found and found[0]

    return poll(find, what=name)


def wait_served(connect, bound):
    """How long until a new client has run a command."""
    began = time.monotonic()
    while time.monotonic() < began + bound:
        with contextlib.suppress(Closed, OSError, TimeoutError):
            c = connect()
            assert c.run("x", ["/bin/echo", "in"]).stdout == "in\n"
            c.drop()
            return time.monotonic() - began
    raise AssertionError(f"nobody is served within {bound} s")


def test_a_front_end_that_hangs(spawn):
    s = spawn()
    c = s.ready()
    c.sh("x", "sleep 1000")
    old = s.frontend()
    os.kill(old, signal.SIGSTOP)
    s.wait_log(f"front-end {old}: does not answer: killing it", BOUND)
    s.wait_log(f"front-end {old}: killed by signal 9")
    c.wait_closed()
    assert wait_served(s.ready, 5)
    again = s.connect().ready(resumeSessionId=c.session_id)
    assert again.terminate("x") is True


def test_a_key_process_that_hangs(secure, authority):
    """Handshakes wait for it in the front-end: all of them together once, and for two seconds."""
    s = secure()
    s.connect(tls=authority.client(), token="t").ready()
    keys = child(s.pid, "execd-keys")
    os.kill(keys, signal.SIGSTOP)
    took = wait_served(lambda: s.connect(tls=authority.client(), token="t").ready(), BOUND)
    s.wait_log(f"key process {keys}: does not answer: killing it")
    assert took < 8, f"clients waited {took:.1f} s"
    poll(lambda: child(s.pid, "execd-keys") != keys, what="another one")


def test_a_certificate_process_that_hangs(world):
    bob = world.issue("bob")
    s = world.start(f"certificate-sha256 = {fingerprint(bob)}\n")
    s.connect(tls=world.client(bob)).ready()
    old = child(s.pid, "execd-certs")
    os.kill(old, signal.SIGSTOP)
    took = wait_served(lambda: s.connect(tls=world.client(bob)).ready(), BOUND)
    s.wait_log(f"certificate process {old}: does not answer: killing it")
    assert took < 8, f"clients waited {took:.1f} s"


def test_a_broker_that_hangs(spawn):
    """Root asks it, and replaces it; the sessions go on."""
    s = spawn()
    c = s.ready()
    c.sh("x", "sleep 1000")
    old = s.broker
    os.kill(old, signal.SIGSTOP)
    s.wait_log(f"broker {old} does not answer: killing it", BOUND)
    c.wait_closed()
    poll(lambda: s.broker != old, what="another one")
    assert wait_served(s.ready, 5)
    again = s.connect().ready(resumeSessionId=c.session_id)
    assert again.terminate("x") is True


def test_root_that_hangs(sessions, with_sessions):
    """The broker waits for no answer for ever, nor do the two that the keeper tries after it; what they had goes on when
    root does."""
    s = with_sessions()
    c = s.connect(token="t").ready()
    c.sh("x", "sleep 1000")
    os.kill(sessions.pid, signal.SIGSTOP)
    try:
        with contextlib.suppress(Closed):   # it asks for a spare runner by itself, too
            s.connect(token="t").ready()
        assert s.child.wait(3 * BOUND) == 1
        assert "root's execd" in s.log
    finally:
        os.kill(sessions.pid, signal.SIGCONT)
    again = with_sessions()
    assert again.connect(token="t").ready(resumeSessionId=c.session_id).terminate("x") is True


def lingering():
    """A socket that blocks whoever closes it last for a minute, and what it is connected to."""
    sink = socket.create_server(("127.0.0.1", 0))
    s = socket.create_connection(sink.getsockname())
    s.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            s.send(b"x" * 65536)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 60))
    return s, sink


def kernel_refuses_rights():
    a, b = socket.socketpair()
    with a, b:
        try:
            b.setsockopt(socket.SOL_SOCKET, 83, 0)      # SO_PASSRIGHTS
        except OSError:
            return False
        return True


def test_no_client_of_a_unix_socket_stops_the_front_end_with_a_descriptor(spawn, directory):
    if not kernel_refuses_rights():
        pytest.skip("NOT TESTED: this kernel (before 6.16) lets clients send descriptors; who hangs of it is replaced")
    path = directory / "socket"
    s = spawn(listen=f"unix:{path}")
    s.ready()
    given, sink = lingering()
    with socket.socket(socket.AF_UNIX) as c:
        c.connect(str(path))
        with pytest.raises(PermissionError):
            c.sendmsg([b"GET / HTTP/1.1\r\n"],
                      [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [given.fileno()]))])
        sink.close()        # it is ours to close, and nobody waits for anybody any more
        given.close()
        assert wait_served(s.ready, 5) < 2
