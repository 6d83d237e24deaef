# SPDX-License-Identifier: ISC
"""The real Codex CLI loses its network during a command, and the server is not told: packets of the old connection are
lost in both directions, and new connections get through."""
import pytest
from test_codex import (Codex, Wire, clean, configured, directory, log, mode, program, spawn, user)  # noqa: E402,F401
from test_silent import network  # noqa: E402,F401
from wire import hang_up  # noqa: E402

TICKS = "i=0; while [ $i -lt 20 ]; do i=$((i+1)); echo tick$i; sleep .4; done; echo END"


@pytest.fixture(params=["yes", "no"])
def server(request, configured, network, user):
    return configured(f"[listener a]\naddress = ws://{network.server}:0\nhand-over = {request.param}\n"
                      f"allow-unauthenticated = one\n[identity one]\nuser = {user.pw_name}\nsandbox-allow-unsandboxed = yes\n")


@pytest.mark.parametrize("cmd, words", [
    (TICKS, [f"tick{i + 1}" for i in range(20)] + ["END"]), ("echo tick1; sleep 8; echo END", ["tick1", "END"])])
def test_the_command_goes_on(server, network, program, tmp_path, log, directory, cmd, words):
    with network.inside():
        wire = Wire(server.url, log / "wire.jsonl")
        codex = Codex(program, tmp_path, log, directory, url=wire.url)
    try:
        ran = codex.run(cmd, yield_time_ms=1000)
        network.cut()
        hang_up(wire.sockets[0])     # the CLI's side: it notices at once
        assert ran.end() == words
        assert ran.code == 0 and codex.run("echo after").end() == ["after"]
        codex.finish()
        answers = [a.get("error", {}).get("code", "ok") for _, _, a in wire.requests("initialize") if a]
        assert set(answers) <= {"ok", -32010} and answers.count("ok") == 2, answers
    finally:
        codex.stop()
        wire.stop()
        (log / "execd.log").write_text(server.log)
