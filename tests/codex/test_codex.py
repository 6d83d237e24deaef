"""The real Codex CLI against execd, with a model that the test plays (scripts/test --with-codex).

Every scenario is one `codex exec`; what the model was sent and said, what codex printed, what passed between codex
and execd and what execd logged are in $EXECD_BUILD/codex-log/, a directory for each test.
"""
import base64
import json
import os
import pathlib
import shutil
import struct
import sys
import zlib

import pytest

sys.path[:0] = [os.path.dirname(__file__), os.path.join(os.path.dirname(__file__), "../integration")]
from conftest import (BUILD, EXECD, ROOT, as_user, assert_nothing_left, directory, kill,  # noqa: E402,F401
                      mode, spawn, user)
from driver import BYPASS, Codex, codex_program  # noqa: E402
from wire import Wire  # noqa: E402


@pytest.fixture(scope="session")
def program():
    return codex_program()


@pytest.fixture(autouse=True)
def clean(user):
    """Set up before everything that is started, so looked at after all of it was stopped."""
    yield
    assert_nothing_left(user)


@pytest.fixture
def log(request):
    path = BUILD / "codex-log" / request.node.name.replace("[", "-").rstrip("]")
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


@pytest.fixture
def server(spawn, log):
    s = spawn()
    yield s
    (log / "execd.log").write_text(s.log)


@pytest.fixture
def wire(server, log):
    w = Wire(server.url, log / "wire.jsonl")
    yield w
    w.stop()


@pytest.fixture
def start(program, tmp_path, log, directory):
    """Starts codex in the workspace: start(url=..., flags=...)."""
    started = []

    def begin(**options):
        c = Codex(program, tmp_path, log, directory, **options)
        started.append(c)
        return c

    yield begin
    for c in started:
        c.stop()


@pytest.fixture
def codex(start, wire):
    return start(url=wire.url)


@pytest.fixture
def gate(directory):
    """Lets a command go on: it reads lines from the fifo `gate`, gate() writes one."""
    path = directory / "gate"
    os.mkfifo(path)
    os.chmod(path, 0o666)
    fd = os.open(path, os.O_RDWR)
    yield lambda: os.write(fd, b"\n")
    os.close(fd)


def until_exit(codex, ran):
    """Polls a session to its end as a model does. Returns all output and the exit code."""
    output = ran.output
    while ran.session is not None:
        ran = codex.write(ran.session, "")
        output += ran.output
    return output, ran.code


def only_missing_files(wire):
    """Codex looks for files that need not exist; nothing else may be refused."""
    return [e for e in wire.errors() if e[1] != -32004] == []


def test_tools(codex):
    """The tools that the scenarios use are offered, so a new Codex that renames one fails here."""
    tools = {t.get("name"): t for t in codex.first()["tools"]}
    assert {"exec_command", "write_stdin", "apply_patch", "view_image"} <= set(tools)
    assert {"cmd", "tty", "yield_time_ms"} <= set(tools["exec_command"]["parameters"]["properties"])
    assert {"session_id", "chars"} <= set(tools["write_stdin"]["parameters"]["properties"])
    assert tools["apply_patch"]["type"] == "custom"
    codex.finish()


def test_command(codex, wire, user, directory):
    ran = codex.run(cmd="echo to stdout; echo to stderr >&2; id -u; pwd; echo x >made; exit 3")
    assert ran.code == 3, ran.text
    for line in "to stdout", "to stderr", str(user.pw_uid), str(directory):
        assert line in ran.output.splitlines(), ran.text
    assert (directory / "made").read_text() == "x\n"
    assert (directory / "made").stat().st_uid == user.pw_uid
    codex.finish()
    assert only_missing_files(wire), wire.errors()
