# SPDX-License-Identifier: ISC
"""execctl run -L: a port here leads to the loopback of the command."""
import hashlib
import os
import re
import socket
import threading

import pytest
from execctl import Execctl

PORT = 4321
# Answers each connection with its own bytes, once it has all of them.
SERVER = """
import socket, threading
s = socket.create_server(("127.0.0.1", %d)); print("ready", flush=True)
def serve(c):
    data = b""
    while more := c.recv(65536): data += more
    c.sendall(data); c.close()
while True: threading.Thread(target=serve, args=(s.accept()[0],)).start()
"""


@pytest.fixture
def ctl(server, directory):
    return Execctl(directory, server.url)


@pytest.fixture
def running(ctl, sandboxes, directory):
    """A server in a sandbox, and the port here that leads to it."""
    p = ctl.popen("run", "-s", "workspace-write", "-C", directory, "-L", f"0:{PORT}", "--",
                  "/usr/bin/python3", "-uc", SERVER % PORT)
    told = p.stderr.readline().decode()
    assert p.stdout.readline() == b"ready\n"
    yield int(re.fullmatch(rf"execctl: 127.0.0.1:(\d+) leads to port {PORT}\n", told)[1])
    p.terminate()
    p.communicate(timeout=30)


def ask(port, data):
    c = socket.create_connection(("127.0.0.1", port))
    c.settimeout(60)
    c.sendall(data)
    c.shutdown(socket.SHUT_WR)
    got = b""
    while more := c.recv(65536):
        got += more
    c.close()
    return got


def test_every_byte_comes_back(running):
    data = os.urandom(3_000_000)
    assert hashlib.sha256(ask(running, data)).digest() == hashlib.sha256(data).digest()


def test_many_at_once(running):
    """More than there may be open at once: the others wait."""
    got, threads = [], []
    for n in range(50):
        threads.append(threading.Thread(target=lambda n=n: got.append(ask(running, b"%d" % n * 1000) == b"%d" % n * 1000)))
        threads[-1].start()
    for t in threads:
        t.join(120)
    assert got == [True] * 50


def test_nobody_listens(ctl, sandboxes, directory):
    p = ctl.popen("run", "-s", "workspace-write", "-C", directory, "-L", "0:localhost:9", "--", "/bin/sh", "-c", "echo ready; exec sleep 100")
    port = int(re.search(rb"127.0.0.1:(\d+) leads", p.stderr.readline())[1])
    assert p.stdout.readline() == b"ready\n"
    assert ask(port, b"") == b""
    assert b"Connection refused" in p.stderr.readline()
    p.terminate()
    p.communicate(timeout=30)
    assert socket.socket().connect_ex(("127.0.0.1", port)) != 0


@pytest.mark.parametrize("given, words", [("x", "is not PORT, PORT:PORT or PORT:localhost:PORT"), ("1:", "is not PORT"), ("1:0", "is not PORT"),
                                          ("65536", "is not PORT"), ("-1", "is not PORT"), ("1:2:3", "is not PORT"),
                                          ("1:db:2", "no other host is reached"), ("1:localhost", "is not PORT")])
def test_what_is_no_port(ctl, given, words):
    r = ctl("run", f"--forward={given}", "true")
    assert r.code == 255 and words in r.err


def test_a_port_that_is_taken(ctl):
    s = socket.create_server(("127.0.0.1", 0))
    r = ctl("run", "-L", f"{s.getsockname()[1]}:1", "true")
    assert r.code == 125 and "Address already in use" in r.err
    assert ctl("run", "-d", "-L", "0:1", "true").code == 255
