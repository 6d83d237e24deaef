# SPDX-License-Identifier: ISC
"""The real Codex CLI with `[features] network_proxy`: its commands have a list of hosts in place of the network."""
import pytest

from test_codex import (clean, configured, directory, log, mode, program, server, spawn, start, user, wire)  # noqa: F401
from test_codex import assert_no_refusal
from netproxy_program import Origin

ASK = ("/usr/bin/python3 -c 'import sys, urllib.request\n"
       "for url in sys.argv[1:]:\n"
       "    try:\n        print(urllib.request.urlopen(url, timeout=20).read().decode(), flush=True)\n"
       "    except Exception as e:\n        print(getattr(e, \"code\", type(e).__name__), flush=True)' ")


@pytest.fixture(params=["flags"])
def form(request):
    return request.param


@pytest.fixture
def origin():
    o = Origin()
    yield o
    o.stop()


def config(**domains):
    lines = "".join(f'"{name}" = "{what}"\n' for name, what in domains.items())
    return {"keys": 'default_permissions = "dev"', "features": "network_proxy = true",
            "tables": '[permissions.dev.filesystem]\n":root" = "read"\n\n[permissions.dev.network]\nenabled = true\n'
                      f'mode = "full"\n\n[permissions.dev.network.domains]\n{lines}'}


def test_domains(start, wire, origin):
    """What is listed answers, what is not does not, and what is denied does not; codex gives each command a list."""
    codex = start(url=wire.url, flags=(), config=config(**{"127.0.0.1": "allow", "denied.example": "deny"}))
    ran = codex.run(ASK + f"http://127.0.0.1:{origin.port}/ http://denied.example/ http://b.example/")
    assert (ran.end(), ran.code) == (["hi", "403", "403"], 0), ran.output
    codex.finish()
    (_, params, answer), = wire.requests("process/start")
    assert params["networkProxy"]["proxy"]["enabled"] and params["enforceManagedNetwork"]
    assert answer["result"]["sandbox"]["enforced"]["network"] == "listed"
    told = [m["params"] for _, who, m in wire.messages if who == "server" and m.get("method") == "network/policyDecision"]
    assert [(d["host"], d["decision"], d["reason"]) for d in told] == [
        ("127.0.0.1", "allow", "allow"), ("denied.example", "deny", "denied"), ("b.example", "deny", "not_allowed")]
    assert len(origin.seen) == 1
    assert_no_refusal(wire)
