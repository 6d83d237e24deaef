# SPDX-License-Identifier: ISC
"""A drain ends no session before its time, whatever becomes of the broker meanwhile."""
import signal

import pytest
from conftest import is_alive, kill, poll
from execd_client import WebSocket
from test_broker import ALL, COUNT, replaced, resume, server, text, whole  # noqa: F401
from test_config import basic, ready
from test_ctl import Ctl
from test_reexec import installed  # noqa: F401
from test_reexec import server as installed_server  # noqa: F401

HOUR = "[limits]\ndrain-timeout = 1h\n"
GOES_ON = "signal 15 came to an earlier broker, and the drain goes on"


def refused(s):
    code, message = s.connect(token="t").error("initialize", {"clientName": "x"})
    return code == -32603 and "shutting down" in message


def killed(s, directory, user):
    kill(s.broker)


def reloaded(s, directory, user):
    s.reload(text(user, directory, HOUR.replace("1h", "2h")), "drain-timeout: 2h")


def killed_after_reexec(s, directory, user):
    s.child.send_signal(signal.SIGUSR2)
    s.wait_log("re-exec: this version goes on")
    kill(s.broker)


@pytest.mark.parametrize("what", [killed, reloaded, killed_after_reexec])
def test_a_drain_goes_on(server, user, directory, what):  # noqa: F811
    """With another broker, as often as that happens; a second SIGTERM ends it."""
    s = server(HOUR)
    c = s.connect(token="t").ready()
    c.sh("p", COUNT)
    runner = s.runner(c)
    s.child.send_signal(signal.SIGTERM)
    s.wait_log("no new sessions; 1 may go on for 3600000 ms")
    for _ in range(2):
        old = s.broker
        what(s, directory, user)
        c.wait_closed()
        replaced(s, old)
        c = resume(s, c)
        assert refused(s)
        what = killed
    s.wait_log(GOES_ON)
    assert whole(c) == (ALL, 0) and is_alive(runner)
    s.child.send_signal(signal.SIGTERM)
    assert s.child.wait(15) == 0 and not is_alive(runner)


def test_the_notice_goes_on(server):  # noqa: F811
    s = server(HOUR + "drain-notice = 1h\n")
    c = s.connect(token="t").ready()
    s.child.send_signal(signal.SIGTERM)
    s.wait_log("new sessions are opened for another 3600000 ms")
    old = s.broker
    kill(old)
    c.wait_closed()
    replaced(s, old)
    s.wait_log(GOES_ON)
    assert s.connect(token="t").ready().run("x", ["/bin/echo", "new"]).stdout == "new\n"
    s.child.send_signal(signal.SIGTERM)
    s.wait_log("no new sessions; 2 may go on for 3600000 ms")
    old = s.broker
    kill(old)
    replaced(s, old)
    assert refused(s)
    resume(s, c)
    s.child.send_signal(signal.SIGTERM)
    assert s.child.wait(15) == 0


def test_it_ends_when_its_time_is_over(server):  # noqa: F811
    """The time is that of the first broker."""
    s = server("[limits]\ndrain-timeout = 3s\n")
    c = s.connect(token="t").ready()
    c.sh("p", "sleep 1000")
    s.child.send_signal(signal.SIGTERM)
    s.wait_log("no new sessions; 1 may go on for 3000 ms")
    kill(s.broker)
    s.wait_log(GOES_ON)
    assert s.child.wait(15) == 0
    assert "drained: 1 sessions are ended" in s.log


def test_it_ends_with_the_last_session(server):  # noqa: F811
    s = server(HOUR + "detached-ttl = 1h\n")
    c = s.connect(token="t").ready()
    c.sh("p", "sleep 1000")
    s.child.send_signal(signal.SIGTERM)
    s.wait_log("no new sessions")
    old = s.broker
    kill(old)
    c.wait_closed()
    replaced(s, old)
    resume(s, c).call("session/end", {})
    assert s.child.wait(15) == 0


def test_a_broker_that_did_not_hear_it(server):  # noqa: F811
    """It hung when SIGTERM came, and its sessions have their time all the same."""
    s = server(HOUR)
    c = s.connect(token="t").ready()
    c.sh("p", COUNT)
    old = s.broker
    kill(old, signal.SIGSTOP)
    s.child.send_signal(signal.SIGTERM)
    poll(lambda: 1 << 14 & pending(old), what="SIGTERM at the broker")
    kill(old)
    c.wait_closed()
    replaced(s, old)
    s.wait_log("no new sessions; 1 may go on for 3600000 ms")
    assert whole(resume(s, c)) == (ALL, 0)
    s.child.send_signal(signal.SIGTERM)
    assert s.child.wait(15) == 0


def pending(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1], 16) for line in f if line.startswith("ShdPnd"))


def test_without_a_broker(server):  # noqa: F811
    """SIGTERM waits for the next one, and a second one does not."""
    s = server(HOUR)
    c = s.connect(token="t").ready()
    c.sh("p", COUNT)
    s.child.send_signal(signal.SIGSTOP)
    old = s.broker
    kill(old)
    s.child.send_signal(signal.SIGTERM)
    s.child.send_signal(signal.SIGCONT)
    c.wait_closed()
    replaced(s, old)
    s.wait_log("no new sessions; 1 may go on for 3600000 ms")
    assert whole(resume(s, c)) == (ALL, 0)
    s.child.send_signal(signal.SIGTERM)
    assert s.child.wait(15) == 0


def test_without_a_broker_that_could_come(installed_server):  # noqa: F811
    """There is nobody who could drain: one SIGTERM is enough."""
    s = installed_server(HOUR)
    c = s.connect(token="t").ready()
    s.child.send_signal(signal.SIGSTOP)
    old = s.broker
    kill(old)
    c.wait_closed()
    # The same file, which root has open, too.
    poll(lambda: "Z" in state(old), what="its end")
    (s.place / "daemon/broker/execd-broker").write_bytes(b"no program")
    s.child.send_signal(signal.SIGTERM)
    s.child.send_signal(signal.SIGCONT)
    assert s.child.wait(15) == 0
    s.wait_log("signal 15: stopping")


def state(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(line for line in f if line.startswith("State:"))


@pytest.mark.parametrize("how", ["ctl", "SIGUSR1"])
def test_a_notice_before_the_operators_drain(configured, user, how):
    """A balancer is told at once, and what it sends until it has read that is served; also by the next broker."""
    s = configured(basic(user, rest="[limits]\ndrain-notice = 1h\n"))
    ctl = Ctl(s, user)

    def new():
        return s.connect(token="tok-a").ready().run("x", ["/bin/echo", "new"]).stdout

    if how == "ctl":
        r = ctl.json("drain")
        assert r["state"] == "drained" and 3590_000 < r["noticeMs"] <= 3600_000
    else:
        s.child.send_signal(signal.SIGUSR1)
    s.wait_log("new sessions are opened for another 3600000 ms")
    poll(lambda: b"503" in ready(s)[0], what="/readyz to say it")
    assert new() == "new\n"
    s.fronts = 1
    old = s.broker
    kill(old)
    replaced(s, old)
    assert b"503" in ready(s)[0] and new() == "new\n"
    assert ctl.json("status")["noticeMs"] > 3500_000 and ctl.json("drain")["changed"] is False
    assert ctl.json("undrain")["changed"] is True
    assert ctl.json("status")["noticeMs"] is None
    poll(lambda: b"200" in ready(s)[0], what="/readyz to say it")
    assert new() == "new\n"
    stopped(s)


def stopped(s):
    """At once, without a notice."""
    s.child.send_signal(signal.SIGINT)
    assert s.child.wait(15) == 0


def test_the_operators_notice_ends(configured, user):
    s = configured(basic(user, rest="[limits]\ndrain-notice = 200ms\n"))
    s.connect(token="tok-a").ready()
    s.child.send_signal(signal.SIGUSR1)
    s.wait_log("no new sessions; 1 go on")
    code, message = s.connect(token="tok-a").error("initialize", {"clientName": "x"})
    assert code == -32603 and "drained by its operator" in message
    stopped(s)


def test_a_stop_in_the_operators_notice(configured, user):
    """The balancer was told: there is no second notice, and none that is longer."""
    s = configured(basic(user, rest="[limits]\ndrain-notice = 1h\ndrain-timeout = 1h\n"))
    ctl, c = Ctl(s, user), s.connect(token="tok-a").ready()
    s.child.send_signal(signal.SIGUSR1)
    s.wait_log("drained by uid")
    left = ctl.json("status")["noticeMs"]
    s.child.send_signal(signal.SIGTERM)
    s.wait_log("signal 15: new sessions are opened for another 3")
    assert 0 < ctl.json("status")["noticeMs"] <= left
    assert c.run("x", ["/bin/echo", "still"]).stdout == "still\n"
    s.child.send_signal(signal.SIGTERM)
    s.wait_log("signal 15: no new sessions")
    stopped(s)


def test_a_stop_after_the_operators_drain(configured, user):
    s = configured(basic(user, rest="[limits]\ndrain-notice = 200ms\ndrain-timeout = 1h\n"))
    s.connect(token="tok-a").ready()
    s.child.send_signal(signal.SIGUSR1)
    s.wait_log("no new sessions; 1 go on")
    s.child.send_signal(signal.SIGTERM)
    s.wait_log("signal 15: no new sessions")
    assert "signal 15: new sessions" not in s.log
    stopped(s)


def test_a_stop_in_the_middle_of_a_reload(server, user, directory):  # noqa: F811
    """The broker that leaves does not drain any more, and the next one hears of it."""
    s = server(HOUR)
    c = s.connect(token="t").ready()
    c.sh("p", COUNT)
    idle = WebSocket(s.url, handshake=False)    # so the broker does not leave at once
    s.connect(token="t").ready()                # after the front-end has accepted that one
    old = s.broker
    s.reload(text(user, directory, HOUR.replace("1h", "2h")), "")
    assert "reloading" in c.wait_closed()["reason"]
    s.child.send_signal(signal.SIGTERM)
    replaced(s, old)
    s.wait_log("no new sessions; 2 may go on for 7200000 ms")
    assert whole(resume(s, c)) == (ALL, 0)
    idle.drop()
    s.child.send_signal(signal.SIGTERM)
    assert s.child.wait(15) == 0
