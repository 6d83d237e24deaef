# SPDX-License-Identifier: ISC
"""The real Codex CLI with `execctl relay` as its program: a session over a network that is cut, which codex does not
notice, and a server that an ask: program names.
"""
import json

from test_codex import (BUILD, clean, directory, gate, log, mode, program, spawn, start, user)  # noqa: F401
from execctl import Proxy

RELAY = 'default = "there"\n\n[[environments]]\nid = "there"\nprogram = {}\nargs = {}\n'


def begin(start, url):
    return start(environments=RELAY.format(json.dumps(str(BUILD / "client/execctl")), json.dumps(["--url", url, "relay"])))


def test_cut(start, spawn, gate):
    proxy = Proxy(spawn().url)
    codex = begin(start, proxy.url)
    ran = codex.run("exec 3<gate; seq 1 200; read x <&3; seq 201 400; read x <&3; seq 401 600; exit 6", yield_time_ms=250)
    ran.until("200")
    proxy.cut()
    gate()
    ran.until("400")
    proxy.cut()
    gate()
    assert ran.end() == [str(n) for n in range(1, 601)] and ran.code == 6 and proxy.cuts == 2
    after = codex.run("echo still here")
    assert after.end() == ["still", "here"] and after.code == 0
    codex.finish()
    proxy.close()


def test_patch_by_a_lease(start, spawn, directory):
    (directory / "edited.txt").write_text("old\n")
    (directory / "edited.txt").chmod(0o666)
    codex = begin(start, "ask:printf '{\"url\": \"%s\"}\\n' " + spawn().url + "; cat > /dev/null")
    output = codex.patch("*** Begin Patch\n*** Update File: edited.txt\n@@\n-old\n+new\n*** End Patch\n")
    assert "Success" in output and (directory / "edited.txt").read_text() == "new\n", output
    codex.finish()
