# SPDX-License-Identifier: ISC
"""process/forward: a byte stream to a loopback port of a sandbox or of the session."""
import os
import socket
import struct
import subprocess

import pytest
from conftest import BUILD, Shell, poll
from policies import workspace_write
from test_audit import configuration, events
from test_config import digest
from test_session import resume

ECHO = """cat >server.py <<'END'
import socket, sys, threading
family, at = (socket.AF_INET6, "::1") if "6" in sys.argv[1:] else (socket.AF_INET, "127.0.0.1")
s = socket.socket(family); s.bind((at, 0)); s.listen(); print(s.getsockname()[1], flush=True)
def serve(c):
    while data := c.recv(65536): c.sendall(data)
    c.close()
while True: threading.Thread(target=serve, args=(s.accept()[0],)).start()
END
exec /usr/bin/python3 server.py """


def serve(box, more=""):
    """The id of a command that echoes, and its port."""
    id = box.start(ECHO + more)
    return id, int(box.client.wait_output(id, b"\n"))


@pytest.fixture
def box(session, place):
    return Shell(session, workspace_write(place), place)


@pytest.fixture
def echo(box):
    id, port = serve(box)
    yield id, port
    box.client.terminate(id)
    box.client.finished(id)


def forward(client, id, port, **more):
    return client.call("process/forward", {"processId": id, "port": port, **more})


def test_bytes_and_ends_pass(session, box, echo):
    """Both ways, as they are, with the end of each."""
    of, port = echo
    id = box.id()
    assert forward(session, id, port, of=of) == {"processId": id, "host": "127.0.0.1", "network": "sandbox"}
    data = os.urandom(300_000)
    for at in range(0, len(data), 100_000):
        session.write(id, data[at:at + 100_000])
    session.wait(lambda: len(session.output(id)) == len(data), what="what comes back")
    session.call("process/closeStdin", {"processId": id})
    r = session.finished(id)
    assert session.output(id, "stdout") == data and (r.code, r.stderr) == (0, "")


def test_the_other_address(session, box):
    of, port = serve(box, "6")
    for more in ({}, {"host": "::1"}):
        id = box.id()
        assert forward(session, id, port, of=of, **more)["host"] == "::1"
        session.terminate(id)
        session.finished(id)
    code, message = session.error("process/forward", {"processId": box.id(), "port": port, "of": of, "host": "127.0.0.1"})
    assert (code, message) == (-32603, "Connection refused (os error 111)")
    session.terminate(of)
    session.finished(of)


def test_a_server_that_hangs_up(session, box):
    of = box.start("/usr/bin/python3 -c 'import socket; s = socket.create_server((\"127.0.0.1\", 0)); "
                   "print(s.getsockname()[1], flush=True); c, _ = s.accept(); c.sendall(b\"bye\"); c.close()'")
    id = box.id()
    forward(session, id, int(session.wait_output(of, b"\n")), of=of)
    session.wait_output(id, b"bye")
    session.finished(of)
    assert session.finished(id).stdout == "bye"


def test_the_port_of_another_network(session, box, echo):
    """The same number on the host and in another sandbox is another port."""
    of, port = echo
    host = socket.create_server(("127.0.0.1", 0))
    number = host.getsockname()[1]
    assert session.error("process/forward", {"processId": box.id(), "port": number, "of": of})[0] == -32603
    id = box.id()
    assert forward(session, id, number)["network"] == "host"
    c, _ = host.accept()
    c.sendall(b"from the host")
    session.wait_output(id, b"from the host")
    session.terminate(id)
    session.finished(id)
    if number != port:
        assert session.error("process/forward", {"processId": box.id(), "port": port})[0] == -32603


def test_it_is_a_process_of_the_session(session, box, echo):
    of, port = echo
    id = box.id()
    forward(session, id, port, of=of)
    listed = {p["processId"]: p for p in session.call("process/list")["processes"]}
    assert listed[id]["argv"] == ["execd-forward", f"sandbox:127.0.0.1:{port}"], listed[id]
    assert session.error("process/forward", {"processId": id, "port": port, "of": of}) == \
        (-32600, f"process {id} already exists")
    session.terminate(id)
    session.finished(id)
    assert session.error("process/forward", {"processId": box.id(), "port": port, "of": "none"})[0] == -32600


def test_a_sandbox_that_has_ended(session, box):
    of = box.start("exit 0")
    session.finished(of)
    code, message = session.error("process/forward", {"processId": box.id(), "port": 80, "of": of})
    assert code == -32600 and "has ended, and what it served" in message


def test_it_survives_the_connection(server, place):
    """Like every process: a client that resumes has every byte once."""
    c = server.ready()
    c.server = server
    box = Shell(c, workspace_write(place), place)
    of, port = serve(box)
    forward(c, "f", port, of=of)
    c.write("f", b"before ")
    c.wait_output("f", b"before ")
    c.drop()
    d = resume(server, c.session_id)
    d.notify("initialized")
    d.write("f", b"after", "after")
    d.wait_output("f", b"after")
    assert d.call("process/read", {"processId": "f", "afterSeq": 0})["chunks"]
    d.call("process/closeStdin", {"processId": "f"})
    d.finished("f")
    d.call("session/end")


def test_watchers_have_none(server, session, box, echo):
    of, port = echo
    w = server.connect().ready(watchSessionId=session.session_id)
    code, _ = w.error("process/forward", {"processId": "w", "port": port, "of": of})
    assert code == -32600
    w.drop()


@pytest.mark.parametrize("keys, word", [("sandbox-allow-unsandboxed = no", "unsandboxed"),
                                        ("sandbox-allow-unsandboxed = yes\nsandbox-allow-network = no", "network")])
def test_the_ceiling_of_the_operator(configured, user, place, keys, word):
    """The host's loopback takes what an unsandboxed command takes; that of a sandbox does not."""
    s = configured(f"[listener main]\naddress = ws://127.0.0.1:0\n[identity a]\nuser = {user.pw_name}\n"
                   f"token-sha256 = {digest('t')}\n{keys}\n")
    c = s.connect(token="t").ready()
    c.server = s
    box = Shell(c, workspace_write(place), place)
    of, port = serve(box)
    forward(c, "f", port, of=of)
    host = socket.create_server(("127.0.0.1", 0))
    code, message = c.error("process/forward", {"processId": "h", "port": host.getsockname()[1]})
    assert code == -32602 and f"exceeds this executor's limit: {word}" in message
    host.settimeout(0)
    with pytest.raises(BlockingIOError):
        host.accept()


def test_it_is_on_record(configured, user, directory, place):
    log = directory / "audit.log"
    s = configured(configuration(user, log))
    c = s.connect(token="tok-a").ready()
    c.server = s
    box = Shell(c, workspace_write(place), place)
    of, port = serve(box)
    forward(c, "f", port, of=of)
    c.terminate("f")
    c.finished("f")
    c.call("session/end")
    poll(lambda: any(f"execd-forward sandbox:127.0.0.1:{port}" in str(e) for e in events(log)), what="its record")


def test_a_client_that_does_not_read(session, box, place):
    """The server is held back, and nothing grows."""
    of = box.start("/usr/bin/python3 -c 'import socket; s = socket.create_server((\"127.0.0.1\", 0)); "
                   "print(s.getsockname()[1], flush=True); c, _ = s.accept(); c.settimeout(3)\nn = 0\n"
                   "try:\n while n < 1 << 30: n += c.send(bytes(65536))\nexcept TimeoutError: open(\"held\", \"w\").write(str(n))'")
    port = int(session.wait_output(of, b"\n"))
    session.pause()
    session.post("process/forward", {"processId": (id := box.id()), "port": port, "of": of})
    poll(lambda: (place / "held").exists() and (place / "held").read_text(), what="a server that is held", timeout=60)
    session.resume()
    session.finished(of)
    session.wait(lambda: session.events(id, "process/exited"), what="the end of the connection")
    assert int((place / "held").read_text()) < 64 << 20


def test_what_breaks_is_said():
    """By the process that copies: it is not killed for saying it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = socket.create_connection(listener.getsockname())
        theirs, _ = listener.accept()
        p = subprocess.Popen([BUILD / "runner/execd-runner", "--forward"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, preexec_fn=lambda: os.dup2(ours.fileno(), 3), pass_fds=[3])
        ours.close()
        theirs.sendall(b"x")
        assert p.stdout.read(1) == b"x"
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        theirs.close()
        assert p.communicate(timeout=30) == (b"", b"the connection: Connection reset by peer\n") and p.returncode == 1
