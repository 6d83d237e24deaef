# SPDX-License-Identifier: ISC
"""HAProxy in front of several hosts, as contrib/haproxy has it: what is kept when
something dies, who goes where, and who waits. scripts/torture runs the larger
numbers."""
import concurrent.futures
import json
import re
import time

import pytest
from conftest import more_rounds, poll
from execd_client import Closed
from fleet import BALANCERS, HOSTS, URGENT


def together(n, work):
    """work(0), work(1), ... at once; in this network, as threads begin where their creator is."""
    with concurrent.futures.ThreadPoolExecutor(n) as pool:
        return list(pool.map(work, range(n)))


def host_of(client):
    client.asked = getattr(client, "asked", 0) + 1
    return client.run(f"where-{id(client)}-{client.asked}", ["/bin/hostname"]).stdout.strip()


def records(host, event):
    return [r for r in map(json.loads, host.audit().read_text().splitlines()) if r["event"] == event]


def wait_detached(fleet, n):
    """The hosts, too, have seen n connections end. Who resumes sooner is told that somebody has the session."""
    poll(lambda: sum(len(records(h, "session-detached")) for h in fleet.hosts.values()) >= n, what=f"{n} ends")


class Runs:
    """Commands of execctl that count, each line once, until they are told to end."""

    SCRIPT = "i=0; until [ -e {go} ]; do echo $i; i=$((i + 1)); sleep 0.5; done; echo last $i; exit 7"

    def __init__(self, fleet, n, go, *options, **more):
        ctl = fleet.execctl(**more)
        self.go = go
        self.all = [ctl.popen(*options, "run", "sh", "-c", self.SCRIPT.format(go=go)) for _ in range(n)]
        self.first = [p.stdout.readline() for p in self.all]
        assert self.first == [b"0\n"] * n, self.all[0].stderr.read()

    def end(self):
        """All of them ended well, and no line is missing or there twice. Returns how many."""
        self.go.touch()
        for p in self.all:
            out, err = p.stdout.read(), p.stderr.read()
            assert p.wait(60) == 7, err
            lines = out.decode().splitlines()
            assert lines == [*map(str, range(1, len(lines))), f"last {len(lines)}"], err
        return len(self.all)


def test_resume_after_a_common_cut(fleet, directory):
    """All sessions of 60: half by the cookie of execctl, half by ?k= as any client has it."""
    fleet.start("a", "b", "c")
    lb, half = fleet.balance(), more_rounds(12, 30)
    runs = Runs(fleet, half, directory / "go")
    clients = together(half, lambda i: fleet.connect(f"job-{i}"))
    homes = [host_of(c) for c in clients]
    # A host that says it is busy gets fewer (agent-check), on a busy machine none.
    assert len(set(homes)) > 1, "leastconn"
    lb.cut()
    wait_detached(fleet, 2 * half)
    again = together(half, lambda i: fleet.connect(f"job-{i}", resumeSessionId=clients[i].session_id))
    assert [host_of(c) for c in again] == homes
    assert runs.end() + len(again) == 2 * half


def test_a_balancer_is_killed(fleet, directory):
    """Two of them know each other's table: who was at one goes on at the other. Nothing is lost or doubled."""
    fleet.start("a", "b", "c")
    lb1, lb2 = fleet.balance("lb1"), fleet.balance("lb2")
    runs = Runs(fleet, 10, directory / "go")
    clients = together(20, lambda i: fleet.connect(f"job-{i}"))
    homes = [host_of(c) for c in clients]
    poll(lambda: "used:20" in lb2.ask("show table hosts"), what="the table at the other one")
    lb1.kill()
    wait_detached(fleet, 30)
    again = together(20, lambda i: fleet.connect(f"job-{i}", url=fleet.url("lb2"), resumeSessionId=clients[i].session_id))
    assert [host_of(c) for c in again] == homes
    lb1.start()
    lb1.wait_state(a="UP", b="UP", c="UP")
    # The one that began anew learned from the other one.
    poll(lambda: "used:20" in lb1.ask("show table hosts"), what="the table again")
    assert runs.end() == 10


def test_one_host_more_and_one_drained(fleet, directory):
    """All sessions of 90 are kept, and new ones are only where they may be."""
    fleet.start("a", "b")
    lb, half = fleet.balance(), more_rounds(15, 45)
    runs = Runs(fleet, half, directory / "go")
    clients = together(half, lambda i: fleet.connect(f"job-{i}"))
    homes = [host_of(c) for c in clients]
    assert set(homes) == {"a", "b"}
    fleet.start("c")
    fleet.hosts["a"].ctl("drain")
    lb.wait_state(a="DRAIN", b="UP", c="UP")
    lb.cut()
    wait_detached(fleet, 2 * half)
    again = together(half, lambda i: fleet.connect(f"job-{i}", resumeSessionId=clients[i].session_id))
    assert [host_of(c) for c in again] == homes
    new = together(12, lambda i: host_of(fleet.connect()))
    assert "c" in new and "a" not in new
    assert runs.end() + len(again) == 2 * half
    fleet.hosts["a"].ctl("undrain")
    lb.wait_state(a="UP")


@pytest.mark.parametrize("how", ["killed", "cable"])
def test_a_host_dies(fleet, net, directory, how):
    """What ran there is over in less than 3 s, with 254; what runs elsewhere goes on. The first one is timed: on a
    busy machine the others wait for the processor."""
    fleet.start("a", "b")
    fleet.balance()
    runs = Runs(fleet, 6, directory / "go")
    sessions = {name: h.sessions() for name, h in fleet.hosts.items()}
    assert sum(sessions.values()) == 6 and all(sessions.values())
    idle = [fleet.execctl().popen("run", "sh", "-c", "hostname; exec sleep 1000") for _ in range(4)]
    idle = [p for p in idle if p.stdout.readline() == b"a\n"]
    assert idle
    began = time.monotonic()
    if how == "killed":
        fleet.hosts["a"].power_off()
    else:
        net.cable("a", False)
    try:
        poll(lambda: any(p.poll() is not None for p in runs.all + idle), what="the end of one")
        took = time.monotonic() - began
        over = poll(lambda: len(done := [p for p in runs.all if p.poll() is not None]) == sessions["a"] and done,
                    what="the end of those on a")
        for p in over + idle:
            assert p.wait(10) == 254, p.stderr.read()
        assert took < 3, took
        text = over[0].stderr.read().decode()
        assert re.search(r"unknown session id \S+ \(host b\)|is gone, says the proxy", text), text
    finally:
        net.cable("a", True)
    runs.all = [p for p in runs.all if p not in over]
    assert runs.end() == sessions["b"]


def test_the_last_host_dies(fleet):
    """No other host can say that it does not know the session. The proxy says that there is none."""
    fleet.start("a")
    fleet.balance()
    p = fleet.execctl().popen("run", "sh", "-c", "echo up; exec sleep 1000")
    assert p.stdout.readline() == b"up\n"
    began = time.monotonic()
    fleet.hosts["a"].power_off()
    assert p.wait(30) == 254
    assert time.monotonic() - began < 3
    assert "is gone, says the proxy in front of it" in p.stderr.read().decode()


def test_a_stranger_with_wrong_tokens(fleet):
    """Up to 1 000 of them lock out who sends them, and nobody else: no host, and none of up to 200 honest clients."""
    fleet.start("a", "b", "c")
    lb = fleet.balance()

    def wrong(i):
        try:
            fleet.connect(token=f"wrong-{i}", source="10.89.1.66")
            return "in"
        except Closed as e:
            return str(e).split(" ", 2)[1]
        except OSError:
            return "reset"

    def honest(i):
        return fleet.connect(source=f"10.89.1.{100 + i % 100}").run("x", ["/bin/echo", "in"]).stdout

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        strange = pool.map(wrong, range(more_rounds(200, 1000)))
        for i in range(0, more_rounds(40, 200), 20):
            with concurrent.futures.ThreadPoolExecutor(4) as others:
                assert list(others.map(honest, range(i, i + 20))) == ["in\n"] * 20
            while fleet.clients:
                fleet.clients.pop().drop()
        strange = list(strange)
    assert "in" not in strange and "401" in strange and "503" in strange
    assert strange.count("401") < 100, "locked out after a few"
    assert {n: s["chkdown"] for n, s in lb.servers().items()} == {n: "0" for n in HOSTS}, "a host was taken for down"


@pytest.mark.parametrize("port", [8443, 8444])
def test_the_audit_log_has_the_clients_address(fleet, port):
    """TLS may end at the proxy, or pass through it."""
    a, = fleet.start("a")
    fleet.balance()
    c = fleet.connect(url=fleet.url(port=port), source="10.89.1.77")
    assert host_of(c) == "a"
    client, proxy = c.sock.getsockname(), BALANCERS["lb1"]
    opened = records(a, "session-opened")[-1]
    assert opened["peer"] == f"websocket {client[0]}:{client[1]}" and opened["proxy"].startswith(f"websocket {proxy}:")
    c.drop()
    wait_detached(fleet, 1)
    again = fleet.connect(url=fleet.url(port=port), source="10.89.1.77", resumeSessionId=c.session_id)
    assert host_of(again) == "a"


def test_passed_tls_comes_back_to_its_host(fleet):
    fleet.start("a", "b", "c")
    fleet.balance()
    url = fleet.url(port=8444)
    clients = together(12, lambda i: fleet.connect(url=url, source=f"10.89.1.{50 + i}"))
    homes = [host_of(c) for c in clients]
    assert set(homes) == set(HOSTS)
    for c in clients:
        c.drop()
    wait_detached(fleet, 12)
    again = together(12, lambda i: fleet.connect(url=url, source=f"10.89.1.{50 + i}", resumeSessionId=clients[i].session_id))
    assert [host_of(c) for c in again] == homes


def test_drain_under_load(fleet):
    """A host is drained while jobs begin and end: none of up to 100 fails."""
    fleet.start("a", "b")
    lb = fleet.balance()
    ctl, jobs = fleet.execctl(), more_rounds(60, 100)
    where = []

    def job(i):
        r = ctl("run", "sh", "-c", "hostname; sleep 0.1")
        where.append(r.out)
        if len(where) == 20:
            fleet.hosts["a"].ctl("drain")
        return r.code

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        codes = list(pool.map(job, range(jobs)))
    assert codes == [0] * jobs
    assert {b"a\n", b"b\n"} == set(where) and set(where[-15:]) == {b"b\n"}
    lb.wait_state(a="DRAIN", b="UP")


def test_the_queue(fleet, directory):
    """Where all places are taken jobs wait, in order; an urgent one goes before all that wait."""
    fleet.start("a")
    lb = fleet.balance()
    lb.ask("set maxconn server hosts/a 1")
    holder = fleet.execctl().popen("run", "sh", "-c", f"echo up; until [ -e {directory}/go ]; do sleep 0.1; done")
    assert holder.stdout.readline() == b"up\n"
    jobs = []
    for name, token in ("first", None), ("second", None), ("third", None), ("urgent", URGENT):
        ctl = fleet.execctl(**({"token": token} if token else {}))
        jobs.append(ctl.popen("--connect-timeout", "60s", "run", "sh", "-c", f"echo {name} >>{directory}/order"))
        poll(lambda: int(lb.servers()["a"]["qcur"]) + waiting(lb) == len(jobs), what="one more that waits")
    (directory / "go").touch()
    assert [p.wait(60) for p in [holder, *jobs]] == [0] * 5
    assert (directory / "order").read_text().split() == ["urgent", "first", "second", "third"]


def waiting(lb):
    """How many wait in the backend's own queue."""
    row = next(line.split(",") for line in lb.ask("show stat").splitlines() if line.startswith("hosts,BACKEND"))
    return int(row[2])
