# SPDX-License-Identifier: ISC
"""The real Codex CLI with `[features] network_proxy`: its commands have a list of hosts in place of the network."""
import socket

import pytest

from test_codex import (clean, configured, directory, log, mode, program, server, spawn, start, user, wire)  # noqa: F401
from test_codex import assert_no_refusal
from driver import VERSION
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


def config(more="", /, **domains):
    lines = "".join(f'"{name}" = "{what}"\n' for name, what in domains.items())
    return {"keys": 'default_permissions = "dev"', "features": "network_proxy = true",
            "tables": '[permissions.dev.filesystem]\n":root" = "read"\n\n[permissions.dev.network]\nenabled = true\n'
                      f'mode = "full"\n{more}\n[permissions.dev.network.domains]\n{lines}'}


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


REVIEWED = ("--approve-for-me", "-c", "sandbox_workspace_write.network_access=true")
REQUIREMENTS = "[experimental_network]\nenabled = true\nallow_local_binding = true\n"


@pytest.mark.parametrize("outcome", ["allow", "deny"])
def test_codex_is_asked(start, wire, origin, outcome):
    """Where an administrator of Codex's machine manages the network, and Codex reviews what it approves, execd asks it
    for a host that is not listed. Codex asks its model, and execd does what it says."""
    codex = start(url=wire.url, flags=REVIEWED, requirements=REQUIREMENTS, config={
        "tables": '[features.network_proxy]\nenabled = true\n[features.network_proxy.domains]\n"c.example" = "allow"\n'})
    codex.model.outcome = outcome
    # Loopback is not asked of a proxy, unless the variable is gone.
    said = codex.call("exec_command", cmd=f"env -u no_proxy -u NO_PROXY {ASK} http://127.0.0.1:{origin.port}/")
    # After a no, Codex ends the command and tells its model why.
    assert ("\nOutput:\nhi" if outcome == "allow" else "The test says so.") in said
    codex.finish()
    assert len(codex.model.reviews) == 1 and "127.0.0.1" in str(codex.model.reviews[0]["input"])
    (_, params, _), = wire.requests("process/start")
    assert params["networkProxy"]["policyDecisionTimeoutMs"] > 0
    asked, = [m for _, who, m in wire.messages if who == "server" and m.get("method") == "network/policyRequest"]
    assert asked["params"]["request"] == {"protocol": "http", "host": "127.0.0.1", "port": origin.port}
    told, = [m["params"] for _, who, m in wire.messages if who == "server" and m.get("method") == "network/policyDecision"]
    assert (told["decision"], told["decidedBy"]) == (outcome, "client")
    assert len(origin.seen) == (outcome == "allow")
    assert_no_refusal(wire)


TALK = """/usr/bin/python3 -c 'import socket, sys
for host in sys.argv[2:]:
    try:
        with socket.create_connection((host, int(sys.argv[1])), 20) as s:
            s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
            print(s.makefile().read().split()[-1])
    except OSError as e:
        print(type(e).__name__)
' """


@pytest.mark.skipif(int(VERSION.split(".")[1]) < 171, reason="transparent_tcp came with 0.171")
def test_transparent_tcp(start, wire):
    """Programs that know no proxy: codex refuses each command unless the server has the capability."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("TRANSPARENT TCP IS NOT TESTED: this host has no address but loopback")
        address = s.getsockname()[0]
    origin = Origin(address=address)
    try:
        codex = start(url=wire.url, flags=(), config=config("transparent_tcp = true\nallow_local_binding = true\n",
                                                            **{address: "allow"}))
        codex.first()
        (_, _, answer), = wire.requests("initialize")
        if "networkProxyTransparentTcp" not in answer["result"]["environmentInfo"]["capabilities"]:
            pytest.skip("TRANSPARENT TCP IS NOT TESTED: this host has no nf_tables")
        ran = codex.run(TALK + f"{origin.port} {address} none.example")
        assert (ran.end(), ran.code) == (["hi", "ConnectionResetError"], 0), ran.output
        codex.finish()
    finally:
        origin.stop()
    (_, params, _), = wire.requests("process/start")
    assert params["networkProxy"]["proxy"]["transparentTcp"] is True
    assert_no_refusal(wire)
