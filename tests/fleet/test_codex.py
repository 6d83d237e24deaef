# SPDX-License-Identifier: ISC
"""The unmodified Codex CLI behind HAProxy, as contrib/haproxy has it. It keeps no cookie, so ?k= in its URL leads it
back to the host of its session. The model is the test (tests/codex/driver.py).

What codex printed and what the model was asked is in $EXECD_BUILD/codex-log/.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from conftest import BUILD, poll
from fleet import TOKEN

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "codex"))
import driver  # noqa: E402


@pytest.fixture(scope="session")
def program(net):
    """Nothing is installed here: scripts/test --with-codex did that."""
    found = os.environ.get("CODEX_BIN")
    if not found:
        pytest.skip("CODEX BEHIND HAPROXY IS NOT TESTED: CODEX_BIN does not name the Codex CLI (scripts/test --with-codex)")
    return found


@pytest.fixture
def gate(directory):
    """Lets a command go on: it reads lines from the fifo `gate`, gate() writes one."""
    path = directory / "gate"
    os.mkfifo(path)
    path.chmod(0o666)
    fd = os.open(path, os.O_RDWR)
    yield lambda: os.write(fd, b"\n")
    os.close(fd)


@pytest.fixture
def start(fleet, program, tmp_path, directory, request):
    """Starts codex with a word of its own in the URL: start("job-1"), start("job-2", "lb2")."""
    started = []

    def begin(key, balancer="lb1"):
        home, log = tmp_path / key, BUILD / "codex-log" / f"fleet-{request.node.name}-{key}"
        home.mkdir()
        shutil.rmtree(log, ignore_errors=True)
        log.mkdir(parents=True)
        there = (f'default = "there"\ninclude_local = false\n\n[[environments]]\nid = "there"\n'
                 f'url = "{fleet.url(balancer)}/?k={key}"\nauth_bearer_token = "{TOKEN}"\n')
        c = driver.Codex(program, home, log, directory, environments=there,
                         env={"SSL_CERT_FILE": str(fleet.files.ca)})
        started.append(c)
        return c

    yield begin
    for c in started:
        c.stop()


def records(host, event):
    return [r for r in map(json.loads, host.audit().read_text().splitlines()) if r["event"] == event]


def resumed(fleet):
    return {name: len(records(h, "session-resumed")) for name, h in fleet.hosts.items()}


COUNT = "exec 3<gate; hostname; seq 1 200; read x <&3; seq 201 400; read x <&3; seq 401 600; exit 6"


def counted(ran, home):
    return ran.end() == [home, *map(str, range(1, 601))] and ran.code == 6


def test_cut_twice_and_drained(fleet, start, gate):
    """All connections end twice, and the host is drained meanwhile. Codex misses no line, and stays where it is."""
    fleet.start("a", "b", "c")
    lb = fleet.balance()
    codex = start("job-1")
    ran = codex.run(COUNT, yield_time_ms=250)
    ran.until("200")
    home = ran.output.split()[0]
    assert sum(h.sessions() for h in fleet.hosts.values()) == fleet.hosts[home].sessions() == 1
    for cuts, last in (1, "400"), (2, "600"):
        lb.cut()
        gate()
        poll(lambda n=cuts: resumed(fleet) == {**dict.fromkeys(fleet.hosts, 0), home: n}, what="resumed on its host")
        if last == "400":
            ran.until(last)
            fleet.hosts[home].ctl("drain")
            lb.wait_state(**{home: "DRAIN"})
    assert counted(ran, home) and codex.run("hostname").end() == [home]
    codex.finish()


def test_a_balancer_dies(fleet, start, gate):
    """The balancer is killed and is back with an empty table. The other one knows the word, and tells it."""
    fleet.start("a", "b", "c")
    lb1, lb2 = fleet.balance("lb1"), fleet.balance("lb2")
    codex = start("job-2")
    ran = codex.run(COUNT, yield_time_ms=250)
    ran.until("200")
    home = ran.output.split()[0]
    poll(lambda: "used:1" in lb2.ask("show table hosts"), what="the table at the other one")
    lb1.kill()
    gate()
    lb1.start()
    poll(lambda: resumed(fleet)[home] == 1, what="resumed on its host")
    gate()
    assert counted(ran, home) and sum(resumed(fleet).values()) == 1
    codex.finish()
