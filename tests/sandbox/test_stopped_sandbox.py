# SPDX-License-Identifier: ISC
"""A sandbox that a signal stops or kills: nobody waits for it, what runs in it goes on, and no command runs twice."""
import os
import shutil
import signal
import subprocess
import time

import pytest
from conftest import BUILD, ROOT, Shell, children, is_alive, name, poll, runs
from policies import READ_ALL, UNAVAILABLE, UNENFORCEABLE, managed, path, uri
from test_fail_closed import Tracer, is_traceable

BOUND = 8       # seconds, on a busy machine; a sandbox that is stuck may take 20


@pytest.fixture
def world(spawn, place, user):
    s = spawn()
    c = s.ready()
    c.server = s
    return s, c, Shell(c, managed(READ_ALL, path(place, "write")), place)


def child(server, client, called):
    def find():
        found = [p for p in children(server.runner(client)) if name(p) == called]
        return len(found) == 1 and found[0]     # a child of it has its name, for a moment

    return poll(find, what=called)


def sandbox_of(server, client):
    return child(server, client, "execd-sandbox")


def test_a_sandbox_that_makes_its_namespace_has_a_program_of_its_own(world, mode):
    """AppArmor knows it by that (contrib/apparmor), and it does nothing else."""
    s, c, shell = world
    shell("true")
    single = BUILD / "runner/execd-sandbox"
    assert runs(sandbox_of(s, c), BUILD / "runner/execd-files" if mode == "root" else single)
    for argv in ["--user-namespace", "1:1"], ["--stdio"], ["--files"], []:
        assert subprocess.run([single, *argv], stdin=subprocess.DEVNULL, timeout=20).returncode == 2


def test_a_command_in_a_sandbox_that_is_stopped(world, place):
    s, c, shell = world
    before = shell.start("echo began > began; read line; echo $line", pipeStdin=True)
    poll(lambda: (place / "began").exists(), what="the first command")
    old = sandbox_of(s, c)
    os.kill(old, signal.SIGSTOP)
    began = time.monotonic()
    id = c.post("process/start", {"processId": "second", "argv": ["/bin/sh", "-c", "echo in >> second"],
                                  "cwd": uri(place), "env": shell.env, "sandbox": shell.sandbox,
                                  "tty": False, "pipeStdin": False, "arg0": None})
    beside = c.post("environment/status")
    assert "result" in c.answer(beside)
    assert c.answer(id).get("result", {}).get("sandboxType") == "linuxSeccomp", c.answer(id)
    assert time.monotonic() - began < BOUND
    assert c.finished("second").code == 0 and (place / "second").read_text() == "in\n"
    s.wait_log("a sandbox was stopped by a signal: killing it")
    poll(lambda: not is_alive(old), what="the end of the stopped one")
    c.write(before, b"on\n")
    assert c.finished(before).stdout == "on\n", "what ran in it goes on"


def test_a_file_request_in_a_sandbox_that_is_stopped(world, place):
    s, c, shell = world
    shell("true")
    os.kill(sandbox_of(s, c), signal.SIGSTOP)
    began = time.monotonic()
    m = c.request("fs/writeFile", {"path": uri(place / "f"), "dataBase64": "eA==", "sandbox": shell.sandbox})
    assert "result" in m and (place / "f").read_text() == "x", m
    assert time.monotonic() - began < BOUND


def test_a_file_helper_of_a_sandbox_that_is_stopped(world, place):
    """It is replaced as the session's own is."""
    s, c, shell = world
    ask = {"path": uri(place), "sandbox": shell.sandbox}
    assert "result" in c.request("fs/getMetadata", ask)
    os.kill(child(s, c, "execd-files"), signal.SIGSTOP)
    owed = c.post("fs/getMetadata", ask)
    later = c.post("fs/getMetadata", {"path": uri(place)})      # waits for its turn, and gets it
    assert shell("echo in") == "in\n"
    assert "was stopped by a signal" in c.answer(owed, 30)["error"]["message"]
    assert "result" in c.answer(later)
    assert "result" in c.request("fs/getMetadata", ask)


def test_what_a_command_asks_for_outlives_its_sandbox(world, place):
    """Who carries out its calls serves it as long as it runs, and ends with it."""
    s, c, shell = world
    calls = ("import os, socket; input(); s = socket.create_server(('127.0.0.1', 0)); "
             "socket.create_connection(s.getsockname()); os.mkdir('d'); os.chmod('d', 0o2755); print('served')")
    id = shell.start(f"exec python3 -c \"{calls}\"", pipeStdin=True)
    proxy = child(s, c, "execd-calls")
    old = sandbox_of(s, c)
    os.kill(old, signal.SIGKILL)
    poll(lambda: not is_alive(old), what="the end of the sandbox")
    c.write(id, b"\n")
    r = c.finished(id)
    assert r.stdout == "served\n", r.stderr
    poll(lambda: not is_alive(proxy), what="the end of the proxy")


def test_a_sandbox_that_dies_after_it_started_a_command(world, place):
    """Whether the command ran is unknown, so the start fails; it is not tried in another sandbox."""
    if not ROOT or not shutil.which("strace") or not is_traceable():
        pytest.skip("NOT TESTED: this needs root, strace, and a host that lets root trace")
    s, c, shell = world
    shell("true")
    tracer = Tracer(sandbox_of(s, c), place.parent, "-e", "trace=sendmsg", "-e", "inject=sendmsg:signal=KILL:when=1")
    try:
        refused = shell.refusal("echo ran >> ran; sleep 1000")
    finally:
        tracer.stop()
        tracer.log.unlink()
    assert refused == (-32602, UNENFORCEABLE)
    assert shell("echo again") == "again\n"
    # It may have ended between opening the file and writing to it.
    assert not (place / "ran").exists() or (place / "ran").read_text() in ("", "ran\n")
    poll(lambda: all(name(p) in ("execd-sandbox", "execd-calls") for p in children(s.runner(c))),
         what="the end of what was started")


def test_a_sandbox_that_is_stopped_within_an_order(world, place):
    """The order is larger than the socket holds, and only its beginning was read (recvmsg): nobody waits for the rest."""
    if not ROOT or not shutil.which("strace") or not is_traceable():
        pytest.skip("NOT TESTED: this needs root, strace, and a host that lets root trace")
    s, c, shell = world
    shell("true")
    old = sandbox_of(s, c)
    tracer = Tracer(old, place.parent, "-e", "trace=recvfrom", "-e", "inject=recvfrom:signal=STOP:when=1")
    try:
        began = time.monotonic()
        id = c.post("process/start", {"processId": "large", "argv": ["/bin/sh", "-c", "echo in >> large", *["x" * 100000] * 18],
                                      "cwd": uri(place), "env": shell.env, "sandbox": shell.sandbox,
                                      "tty": False, "pipeStdin": False, "arg0": None})
        beside = c.post("environment/status")
        assert "result" in c.answer(beside)
        assert time.monotonic() - began < BOUND
        answer = c.answer(id)
    finally:
        tracer.stop()
        tracer.log.unlink()
    if "result" in answer:
        assert c.finished("large").code == 0 and (place / "large").read_text() == "in\n"
    else:       # it had read all of it already, so nobody knows, and nothing is tried twice
        assert answer["error"] == UNAVAILABLE and not (place / "large").exists()
    s.wait_log("a sandbox was stopped by a signal: killing it")
    poll(lambda: not is_alive(old), what="the end of the stopped one")
