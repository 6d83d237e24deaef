# SPDX-License-Identifier: ISC
"""Writes traces/VERSION.json anew: what the CLI of one version sends in two short sessions, and the shape of each answer.

    CODEX_VERSION=0.171.0 EXECD_BUILD=$PWD/build python3 -m pytest tests/codex/record_traces.py

tests/integration/test_traces.py replays them without npm and without the CLI. No machine is in them: directories, ids and
what the client says of itself are placeholders.
"""
import json
import pathlib
import shutil

import pytest

from test_codex import (clean, configured, directory, log, mode, program, server, spawn, start, user,  # noqa: F401
                        wire)
from driver import BYPASS, VERSION
from trace_shape import Places, TRACES, recorded

# One session without a sandbox, one in it.
SESSIONS = {"bypass": BYPASS, "workspace-write": ("--sandbox", "workspace-write")}


@pytest.fixture
def form():
    return "flags"


def session(codex, directory, user):
    (directory / "edited.txt").write_text("old\n")
    shutil.chown(directory / "edited.txt", user.pw_uid, user.pw_gid)
    ran = codex.run("echo out; echo err >&2; cat missing; exit 3")
    assert ran.end() and ran.code == 3
    ran = codex.run("echo ready; read line; echo got:$line; exit 5", tty=True, yield_time_ms=250)
    ran.until("ready")
    ran.write("text\n")
    ran.end()
    assert "Success" in codex.patch("*** Begin Patch\n*** Update File: edited.txt\n@@\n-old\n+new\n"
                                    "*** Add File: added.txt\n+a line\n*** End Patch\n")
    codex.finish()


@pytest.mark.parametrize("mode", ["user"], indirect=True, scope="session")
def test_record(start, wire, directory, user, tmp_path):
    (directory / ".git").mkdir()
    (directory / "AGENTS.md").write_text("Be brief.\n")
    sessions = {}
    for name, flags in SESSIONS.items():
        before = len(wire.messages)
        codex = start(url=wire.url, flags=flags)
        session(codex, directory, user)
        (directory / "added.txt").unlink()
        places = Places(DIR=directory, CLIENT=tmp_path, HOME=pathlib.Path(user.pw_dir))
        sessions[name] = recorded(wire.messages[before:], places)
    TRACES.mkdir(exist_ok=True)
    lines = (f"{json.dumps(name)}: [\n" + ",\n".join(map(json.dumps, frames)) + "\n]" for name, frames in sessions.items())
    (TRACES / f"{VERSION}.json").write_text("{" + ",\n".join(lines) + "}\n")
