# SPDX-License-Identifier: ISC
"""The broker is replaced: whatever ends it, sessions go on, root keeps what the next one needs, and clients resume."""
import base64
import json
import os
import pathlib
import pwd
import re
import signal
import subprocess
import time

import pytest
from conftest import BUILD, PATIENCE_S, SANITIZED, children_named, digest, is_alive, kill, lines_of, pids_with, poll
from execctl import Execctl
from execd_client import Closed

# It takes its time, until whole() wants all of it. It starts few programs, which is what takes long in an emulated machine.
COUNT = ("go=; trap go=1 WINCH; i=0; while [ $i -lt 400 ]; do i=$((i + 1)); echo $i; "
         "[ $((i % 4)) -ne 0 ] || [ $go ] || sleep 0.02; done; echo over")
ALL = b"".join(b"%d\n" % i for i in range(1, 401)) + b"over\n"


def text(user, directory, more="", audit=True, port=0):
    record = f"[audit]\nfile = {directory}/audit\n" if audit else ""
    return (f"[listener main]\naddress = ws://127.0.0.1:{port}\n[identity a]\nuser = {user.pw_name}\n"
            f"token-sha256 = {digest('t')}\nsandbox-allow-unsandboxed = yes\n{record}{more}")


def replaced(s, old, patience=PATIENCE_S):
    """The pid of the broker after that one, which serves."""
    new = poll(lambda: (b := s.broker) != old and b, patience, what="another broker")
    poll(lambda: len(re.findall(r"front-end \d+: serving", s.log)) > s.fronts, what="another front-end")
    s.fronts = len(re.findall(r"front-end \d+: serving", s.log))
    return new


@pytest.fixture
def server(configured, user, directory):
    def go(more="", **kwargs):
        s = configured(text(user, directory, more, **kwargs))
        s.wait_log(": serving")
        s.fronts = 1
        return s
    return go


def resume(s, c):
    """The next client of that session. The front-end may be new, and the runner may not have answered it yet."""
    def attempt():
        try:
            again = s.connect(token="t")
            m = again.request("initialize", {"clientName": "test", "resumeSessionId": c.session_id})
        except (Closed, OSError):
            return None
        if m.get("error", {}).get("code") == -32010:    # clients try again
            return None
        again.session_id = m["result"]["sessionId"]
        again.notify("initialized")
        return again

    return poll(attempt, what="resumption")


def whole(c, process="p"):
    """Its output from the beginning, when it is over. To ask for all of it again and again would keep it from its end."""
    seen = [0]
    # Nobody who is not there yet for it, or any more, is hurt by this signal.
    c.request("process/signal", {"processId": process, "signal": "WINCH", "target": "process"})

    def is_over():
        r = c.call("process/read", {"processId": process, "afterSeq": seen[0], "waitMs": 1000})
        seen[0] = max([seen[0], *(x["seq"] for x in r["chunks"])])
        return r["closed"]

    poll(is_over, what="end of the command")
    r = c.call("process/read", {"processId": process, "afterSeq": 0, "waitMs": 0})
    return joined(r), r["exitCode"]


def joined(r):
    return b"".join(base64.b64decode(x["chunk"]) for x in r["chunks"])


def so_far(c, process):
    return joined(c.call("process/read", {"processId": process, "afterSeq": 0, "waitMs": 0}))


# A sanitizer would report the other signal as a fault of the program.
@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGABRT if SANITIZED else signal.SIGSEGV])
def test_every_byte_once(server, sig):
    s = server()
    clients = [s.connect(token="t").ready() for _ in range(4)]
    for c in clients:
        c.sh("p", COUNT)
        c.wait_output("p", "3\n")
    port, runners = s.url, [s.runner(c) for c in clients]
    old = s.broker
    kill(old, sig)
    for c in clients:
        c.wait_closed()
    replaced(s, old)
    for c in clients:
        assert whole(resume(s, c)) == (ALL, 0)
    assert s.url == port and all(is_alive(r) for r in runners)
    assert s.connect(token="t").ready().run("x", ["/bin/echo", "new"]).stdout == "new\n"


def test_again_and_again(server):
    s = server()
    c = s.connect(token="t").ready()
    c.start("cat", ["/bin/cat"], pipeStdin=True)
    for n in range(6):
        old = s.broker
        kill(old)
        c.wait_closed()
        replaced(s, old)
        c = resume(s, c)
        c.write("cat", f"line {n}\n", f"write {n}")
        poll(lambda c=c, n=n: f"line {n}\n".encode() in so_far(c, "cat"), what="answer")


def test_detached_sessions_and_their_time(server):
    """One that nobody is attached to is kept as well, and ends when its time is over."""
    s = server("[limits]\ndetached-ttl = 3s\n")
    c, gone = s.connect(token="t").ready(), s.connect(token="t").ready()
    for x in c, gone:
        x.sh("p", "sleep 1000")
    runner = s.runner(gone)
    for x in c, gone:
        x.drop()
    s.wait_log("detached")
    old = s.broker
    kill(old)
    replaced(s, old)
    again = resume(s, c)
    poll(lambda: not is_alive(runner), what="end of the session that nobody came back to")
    assert again.terminate("p") is True


def test_a_watcher_comes_back(server):
    s = server()
    c = s.connect(token="t").ready()
    c.sh("p", COUNT)
    w = s.connect(token="t")
    w.call("initialize", {"clientName": "w", "watchSessionId": c.session_id})
    old = s.broker
    kill(old)
    for x in c, w:
        x.wait_closed()
    replaced(s, old)
    c = resume(s, c)
    w = s.connect(token="t")
    w.call("initialize", {"clientName": "w", "watchSessionId": c.session_id})
    assert whole(c) == (ALL, 0)


def test_the_record_has_no_hole(server, directory):
    """What ran before has its end on record, and who took the session over."""
    s = server()
    c = s.connect(token="t").ready()
    c.sh("p", "read line; exit 7", pipeStdin=True)
    record = directory / "audit"
    poll(lambda: any("process-started" in line for line in lines_of(record)), what="the start")
    old = s.broker
    kill(old)
    c.wait_closed()
    replaced(s, old)
    c = resume(s, c)
    c.write("p", "go\n", "another")

    def events():
        return [json.loads(line) for line in lines_of(record)]
    ended = poll(lambda: [e for e in events() if e["event"] == "process-exited"], what="the end")
    assert ended[0]["process"] == "p" and ended[0]["code"] == 7
    assert [e["event"] for e in events() if e.get("session") == c.session_id[:8]].count("session-adopted") == 1
    assert [e["event"] for e in events()].count("process-started") == 1


def test_a_killed_runner_of_an_adopted_session(server, directory):
    s = server()
    c = s.connect(token="t").ready()
    c.sh("p", "sleep 1000")
    old = s.broker
    kill(old)
    c.wait_closed()
    replaced(s, old)
    c = resume(s, c)
    kill(int(re.findall(r"adopted, of a, runner (\d+)", s.log)[-1]))
    assert c.wait_closed()["code"] == 1011
    poll(lambda: any('"process-exited"' in line for line in lines_of(directory / "audit")), what="the end of its command")


def test_a_runner_that_does_not_answer(server):
    """Nobody waits for it for long, and it is there when it goes on."""
    s = server()
    c, other = s.connect(token="t").ready(), s.connect(token="t").ready()
    c.sh("p", "sleep 1000")
    runner = s.runner(c)
    old = s.broker
    os.kill(runner, signal.SIGSTOP)
    try:
        kill(old)
        other.wait_closed()
        replaced(s, old)
        assert resume(s, other).run("x", ["/bin/echo", "fine"]).stdout == "fine\n"
        with pytest.raises((Closed, AssertionError)):
            s.connect(token="t").ready(resumeSessionId=c.session_id)
    finally:
        os.kill(runner, signal.SIGCONT)
    s.wait_log(f"session {c.session_id[:8]}: adopted")
    assert resume(s, c).terminate("p") is True


def test_two_brokers_ask_one_runner(server):
    """The first of them leaves before the runner answers, so the second reads both answers."""
    s = server()
    c = s.connect(token="t").ready()
    c.sh("p", COUNT)
    c.wait_output("p", "1\n")
    runner = s.runner(c)
    os.kill(runner, signal.SIGSTOP)
    for _ in range(2):
        old = s.broker
        os.kill(s.pid, signal.SIGHUP)
        replaced(s, old)
    os.kill(runner, signal.SIGCONT)
    c = resume(s, c)
    assert whole(c) == (ALL, 0)
    assert "impossible" not in s.log


def test_a_file_that_became_wrong(server):
    """A broker that goes on for a dead one has what that has read, whatever became of it."""
    s = server()
    c = s.connect(token="t").ready()
    c.sh("p", "sleep 1000")
    old = s.broker
    s.path.write_text("rubbish\n")
    kill(old)
    c.wait_closed()
    replaced(s, old)
    assert resume(s, c).terminate("p") is True


def test_a_reload_is_a_new_broker(server):
    """Its sessions are the same; who asks for a wrong one has the old one."""
    s = server()
    c = s.connect(token="t").ready()
    c.sh("p", COUNT)
    runner, old, good = s.runner(c), s.broker, s.path.read_text()
    log = s.reload(good + "rubbish\n", "the configuration stays as it was")
    assert f"{s.path}:{len(good.splitlines()) + 1}: " in log and s.broker == old
    s.path.write_text(good + "[limits]\nmax-sessions = 7\n")
    s.child.send_signal(signal.SIGHUP)
    c.wait_closed()
    replaced(s, old)
    s.wait_log("reload: [limits]")
    assert is_alive(runner) and whole(resume(s, c)) == (ALL, 0)


SILENT = "session {} has not answered yet since execd began anew"


def test_a_session_that_does_not_answer_the_next_broker_yet(server):
    """It is not unknown: its clients are told to come again."""
    s = server()
    c = s.connect(token="t").ready()
    c.sh("p", COUNT)
    runner, old = s.runner(c), s.broker
    os.kill(runner, signal.SIGSTOP)
    s.child.send_signal(signal.SIGHUP)
    c.wait_closed()
    replaced(s, old)
    again = s.connect(token="t")
    for field in "resumeSessionId", "watchSessionId":
        assert again.error("initialize", {"clientName": "x", field: c.session_id}) == (-32010, SILENT.format(c.session_id))
    other = c.session_id[:-1] + ("0" if c.session_id[-1] != "0" else "1")
    assert again.error("initialize", {"clientName": "x", "resumeSessionId": other}) == (-32600, f"unknown session id {other}")
    os.kill(runner, signal.SIGCONT)
    s.wait_log("adopted")
    assert whole(again.ready(resumeSessionId=c.session_id)) == (ALL, 0)


def test_execctl_comes_again_to_such_a_session(server, directory):
    s = server()
    ctl = Execctl(directory, s.url, EXECD_TOKEN="t")
    p = ctl.popen("run", "sh", "-c", f"echo one; until [ -e {directory}/go ]; do sleep 0.1; done; echo two; exit 3")
    assert p.stdout.readline() == b"one\n"
    runner, old = int(re.findall(r"opened .* runner (\d+)", s.log)[-1]), s.broker
    os.kill(runner, signal.SIGSTOP)
    s.child.send_signal(signal.SIGHUP)
    replaced(s, old)
    poll(lambda: "its runner has not answered yet" in (directory / "audit").read_text(), what="a refusal")
    os.kill(runner, signal.SIGCONT)
    (directory / "go").touch()
    out, err = p.communicate(timeout=PATIENCE_S)
    assert (out, p.returncode) == (b"two\n", 3), err


def test_no_two_sessions_share_a_control_group(server, user):
    """Numbers that the broker before gave out while the next one read its configuration, which is long here, are not given
    out again. Of the sessions that it made meanwhile only the last is there when the next one takes over."""
    many = "".join(f"[identity b{i}]\nuser = {user.pw_name}\ntoken-sha256 = {digest(str(i))}\n" for i in range(1000 if SANITIZED else 4000))
    s = server(many)
    old = s.broker
    os.kill(s.pid, signal.SIGHUP)
    poll(lambda: len(children_named(s.pid, "execd-broker")) == 2, what="a fresh broker")
    for _ in range(10):
        c = s.connect(token="t").ready()
        c.request("session/end")
    last = s.connect(token="t").ready()
    assert s.broker == old and last, "it took over too soon"
    replaced(s, old, 4 * PATIENCE_S)
    more = [s.connect(token="t").ready() for _ in range(20)]
    groups = [pathlib.Path(f"/proc/{r}/cgroup").read_text() for r in children_named(s.pid, "execd-runner")]
    # A login has a group `session-1.scope'.
    named = [m[0] for g in groups if (m := re.search(r"session-\d+(?=[/\n])", g))]
    assert len(set(named)) == len(named) and more, sorted(named)


def test_many_reloads_at_once(server):
    s = server()
    c = s.connect(token="t").ready()
    old = s.broker
    for _ in range(20):
        s.child.send_signal(signal.SIGHUP)
    c.wait_closed()
    replaced(s, old)
    assert resume(s, c).run("x", ["/bin/echo", "in"]).stdout == "in\n"


def test_the_broker_is_no_root(server, user):
    s = server()
    text = pathlib.Path(f"/proc/{s.broker}/status").read_text()
    caps = re.findall(r"(?m)^Cap(?:Inh|Prm|Eff|Amb):\t(\w+)$", text)
    assert len(caps) == 4 and not any(int(c, 16) for c in caps), text
    uid = pwd.getpwnam("_execd-broker").pw_uid if s.mode == "root" else user.pw_uid
    assert re.search(r"(?m)^Uid:\t(.*)$", text)[1].split() == [str(uid)] * 4
    if s.mode == "root":
        assert "NoNewPrivs:\t1" in text and not re.search(r"(?m)^Groups:\t *[0-9]", text)


def test_an_identity_that_is_gone(server):
    """Its session has nobody who may resume it, and says so."""
    s = server()
    c = s.connect(token="t").ready()
    runner = s.runner(c)
    s.reload(s.path.read_text().replace("[identity a]", "[identity c]"), "[identity a] is gone: ending it")
    poll(lambda: not is_alive(runner), what="end of the session")


def test_the_end_comes_from_the_next_broker(server):
    s = server()
    c = s.connect(token="t").ready()
    c.sh("p", "sleep 1000")
    old = s.broker
    kill(old)
    c.wait_closed()
    replaced(s, old)
    runner = int(re.findall(r"adopted, of a, runner (\d+)", s.log)[-1])
    s.stop()
    assert not is_alive(runner)


DEEP = """if [ "$1" = 0 ]; then exec sleep 1000; fi; sh -c "$0" "$0" $(($1 - 1)) "$2"; :"""


def test_the_end_reaches_what_was_left_behind(server):
    """The next broker has not heard of the runner, so execd kills it. Then its shells are execd's, one after the other."""
    s = server()
    c = s.connect(token="t").ready()
    marker = f"deep-{os.getpid()}"
    c.start("p", ["/bin/sh", "-c", DEEP, DEEP, "40", marker])
    left = poll(lambda: len(p := pids_with(marker)) >= 40 and p, what="all shells")
    os.kill(s.runner(c), signal.SIGSTOP)
    old = s.broker
    kill(old)
    replaced(s, old)
    s.stop()
    assert not [p for p in left if is_alive(p)]


@pytest.mark.parametrize("moment", range(10))
def test_a_signal_while_a_broker_begins(server, moment):
    """It may die of the signal before it can take it, and nobody forgets that everything is to end."""
    s = server()
    kill(s.broker)
    s.wait_log("broker: killed by signal 9")
    time.sleep(moment * 0.004)      # no event: any moment is as good as another
    s.child.terminate()
    assert s.child.wait(PATIENCE_S) == 0


def test_stdio_has_one_broker(stdio):
    """Its client cannot come again: it is told at once."""
    c = stdio()
    c.ready()
    kill(poll(lambda: children_named(c.child.pid, "execd-broker"), what="broker")[0])
    assert c.child.wait(15) == 1


@pytest.mark.skipif(SANITIZED, reason="LINES ARE NOT COUNTED: a sanitizer links its own")
def test_root_can_be_read_in_a_sitting():
    """Every file that is linked into the program that is root, from its own symbols."""
    out = subprocess.run(["nm", "-l", str(BUILD / "daemon/root/execd")], capture_output=True, text=True).stdout
    # A cache of the compiler may name the tree that it compiled the same file in.
    here = pathlib.Path(__file__).parents[2]
    files = {str(here / m.rpartition("/../")[2]) for m in re.findall(r"\t(\S+\.c):\d+$", out, re.M)}
    files = {m for m in files if "/glibc" not in m and os.path.exists(m)}
    assert any(f.endswith("root/broker_commands.c") for f in files)
    total = sum(len(pathlib.Path(f).read_text().splitlines()) for f in files)
    # The aim is 3500 (doc/design.md); this is what it is, and it only falls. It rose once, by the rules of control
    # groups version 2 (cgroup_claim.c), without which no session opened on a stock Debian, and by the descriptor
    # that names a broker of another unit, without which one that hangs was not killed, by
    # weights, and by the groups of identities, whose limits are root's. Then by the program of the broker that
    # served, by the reasons why there are no groups, by the check of the audit log's file, and by users who have fewer
    # groups than when the configuration was read.
    # And by the programs that served before, which are kept until those of the next broker are ready,
    # by the capability that hides a runner, and by the warning about programs that others may read.
    # And by what a session's user may make of groups.
    # And by the child that opens what may hang, and by the logs of the children, which were root's own log before.
    # What execd-child does is not in it: it is executed for one task, and neither hears anybody nor keeps anything.
    assert total <= 5334, (total, sorted(files))
    linked = subprocess.run(["ldd", str(BUILD / "daemon/root/execd")], capture_output=True, text=True).stdout
    assert set(re.findall(r"^\t(\S+)", linked, re.M)) <= {"linux-vdso.so.1", "libc.so.6", "/lib64/ld-linux-x86-64.so.2",
                                                         "/lib/ld-linux-aarch64.so.1"}, linked
