# SPDX-License-Identifier: ISC
"""execd ctl: the operator sees sessions, ends them, drains and reloads (execd-ctl(8))."""
import contextlib
import gzip
import json
import os
import pty
import re
import signal
import socket
import subprocess
import termios
import threading
import time

import pytest
from conftest import EXECD, ROOT, as_user, change_users, digest, is_alive, kill, pids_with, poll, stopped
from execctl import Execctl
from execd_client import Closed
from test_audit import configuration, events

KEYS = {"id", "number", "identity", "user", "token", "peer", "state", "ageMs", "detachedMs", "keepMs", "keepLeftMs", "commands", "watchers", "runner",
        "cpuMs", "memoryBytes", "processes"}


def path_of(s, user):
    return f"/run/execd/ctl.{s.pid}" if s.mode == "root" else f"{user.pw_dir}/.local/state/execd/ctl.{s.pid}"


class Ctl:
    """Runs execd ctl as whoever runs that execd."""

    def __init__(self, s, user, path=None):
        self.s, self.user, self.path = s, user, path or path_of(s, user)

    def argv(self, *args, uid=None):
        argv = [str(EXECD), "ctl", "--socket", self.path, *args]
        return argv if uid is None and self.s.mode == "root" else as_user(uid or self.user, argv)

    def __call__(self, *args, code=0, uid=None):
        r = subprocess.run(self.argv(*args, uid=uid), capture_output=True, text=True, timeout=30)
        assert r.returncode == code, r
        return r.stdout if code == 0 else r.stderr

    def json(self, *args):
        return json.loads(self("--json", *args))["result"]

    def sessions(self):
        return self.json("list")["sessions"]

    def raw(self, data, timeout=20):
        """What comes for these bytes until the end."""
        with self.connect(timeout) as sock:
            with contextlib.suppress(BrokenPipeError):
                sock.sendall(data)
            got = b""
            with contextlib.suppress(ConnectionResetError):
                while piece := sock.recv(65536):
                    got += piece
        return got

    def connect(self, timeout=20):
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(timeout)
        sock.connect(self.path)
        return sock

    def error(self, data):
        return json.loads(self.raw(data))["error"]


@pytest.fixture
def audited(configured, user, directory):
    """An execd that keeps a record, and its ctl."""
    def start():
        log = directory / "audit.jsonl"
        text = configuration(user, log).replace("detached-ttl = 200ms", "detached-ttl = 1h")
        s = configured(text)
        return s, Ctl(s, user), log

    return start


def commands_of(log):
    return [e for e in events(log) if e["event"] == "ctl-command"]


# --- list, show ------------------------------------------------------------


def test_sessions_are_shown(audited, user):
    s, ctl, log = audited()
    assert ctl.sessions() == [] and len(ctl("list").splitlines()) == 1
    c, idle = s.connect(token="tok-a").ready(), s.connect(token="tok-a").ready()
    watcher = s.connect(token="tok-a").ready(watchSessionId=c.session_id)
    c.sh("busy", "echo up; x=0; while :; do x=$((x + 1)); done")
    c.wait_output("busy", "up")
    idle.drop()
    s.wait_log(f"session {idle.session_id[:8]}: detached")
    both = {x["id"]: x for x in ctl.sessions()}
    assert set(both) == {c.session_id[:8], idle.session_id[:8]}
    mine, other = both[c.session_id[:8]], both[idle.session_id[:8]]
    assert set(mine) == set(other) == KEYS | {"answers"} and mine["answers"] and other["answers"]
    assert (mine["identity"], mine["user"], mine["state"], mine["commands"], mine["watchers"]) == (
        "a", user.pw_name, "attached", 1, 1)
    assert (other["state"], other["commands"], mine["detachedMs"]) == ("detached", 0, None)
    assert other["detachedMs"] <= other["ageMs"] and mine["runner"] == s.runner(c)
    assert mine["peer"].startswith("websocket 127.0.0.1:") and mine["number"] != other["number"]
    counted = ctl.json("status")["controllers"]
    assert mine["processes"] >= 2 if "pids" in counted else mine["processes"] is None
    assert mine["memoryBytes"] > 0 if "memory" in counted else mine["memoryBytes"] is None
    if mine["cpuMs"] is not None:       # without a group that counts it, it is not known
        poll(lambda: ctl.json("show", c.session_id[:8])["cpuMs"] >= 300, what="time that the command took")
        assert ctl.json("show", idle.session_id[:8])["cpuMs"] < 300
    text = ctl("list")
    assert all(word in text for word in (c.session_id[:8], "attached", "detached", "websocket"))
    shown = ctl.json("show", f"session-{mine['number']}")
    assert set(shown) == KEYS | {"endsInMs", "adopted", "processIds", "processIdsCut", "running", "runningCut"}
    assert shown["id"] == mine["id"] and shown["processIds"] == ["busy"] and shown["adopted"] is False
    seen = text + ctl("show", c.session_id[:8]) + ctl("--json", "list") + ctl("--json", "show", c.session_id[:8])
    assert c.session_id not in seen and c.session_id[9:] not in seen, "an id that could be resumed is shown"
    assert [e["command"] for e in commands_of(log)][:2] == ["list", "list"]
    assert all(e["uid"] == (0 if s.mode == "root" else user.pw_uid) and e["result"] == "done" for e in commands_of(log))
    watcher.drop()


def test_a_runner_says_whose_it_is(spawn, user):
    """In ps(1), which every user sees: a number, which leads to the session, and nothing that could resume it."""
    s = spawn()
    clients = [s.ready() for _ in range(2)]
    for x in Ctl(s, user).sessions():
        with open(f"/proc/{x['runner']}/cmdline") as f:
            assert f.read() == f"execd-runner: session {x['number']} of {x['identity']}\0"
        with open(f"/proc/{x['runner']}/comm") as f:
            assert f.read() == "execd-runner\n"
    titles = subprocess.run(["ps", "-eo", "args="], capture_output=True, text=True).stdout
    assert not any(c.session_id[:8] in titles for c in clients)


def test_what_is_not_kept_is_not_known(spawn, user):
    """Without a record and without counters runners report no commands: that is said, and not zero."""
    s = spawn()
    c = s.ready()
    assert Ctl(s, user).sessions()[0]["commands"] is None
    assert re.search(rf"^{c.session_id[:8]} .* +- ", Ctl(s, user)("list"), re.M)


def test_more_sessions_than_are_told_at_once(spawn, user):
    s = spawn()
    all = [s.ready() for _ in range(70)]
    assert {x["id"] for x in Ctl(s, user).sessions()} == {c.session_id[:8] for c in all}


# --- show, with what runs ----------------------------------------------------


def test_what_runs_is_shown(spawn, user, directory):
    """Also without an audit log, and by a broker that did not start it; escaped, and without secrets."""
    s = spawn()
    c, ctl = s.ready(), Ctl(s, user)
    c.start("\x1b[2Jred", ["/bin/sh", "-c", "echo up; read x; echo \x1b[31m", "--token=hunter2hunter2"], pipeStdin=True)
    c.wait_output("\x1b[2Jred", "up")
    for adopted in (False, True):
        (one,) = ctl.json("show", c.session_id[:8])["running"]
        assert set(one) == {"process", "pid", "ageMs", "command", "commandCut"} and one["process"] == "\x1b[2Jred"
        assert "echo up; read x" in one["command"] and "hunter2" not in one["command"] and one["commandCut"] is False
        text = ctl("show", c.session_id[:8])
        assert re.search(r"^ +\d+ .*\\x1b\[2Jred +/bin/sh -c 'echo up; read x; echo \\x1b\[31m'", text, re.M), text
        assert "\x1b" not in text
        if not adopted:
            kill(s.broker)
            c.wait_closed()
            s.wait_log("adopted, of")
            assert len(ctl.sessions()) == 1
    assert ctl.json("show", c.session_id[:8])["adopted"] is True


def test_what_runs_is_cut(spawn, user):
    s = spawn()
    c, ctl = s.ready(), Ctl(s, user)
    for i in range(33):
        c.start(f"p{i}", ["/bin/sh", "-c", "sleep 1000", "x" * (600 if i == 0 else 1)])
    shown = ctl.json("show", c.session_id[:8])
    assert [r["process"] for r in shown["running"]] == [f"p{i}" for i in range(32)] and shown["runningCut"] is True
    assert [r["commandCut"] for r in shown["running"]] == [True] + [False] * 31


def test_a_runner_that_does_not_say_what_runs(spawn, user):
    """The rest is shown all the same, and the next question is answered."""
    s = spawn()
    c, ctl = s.ready(), Ctl(s, user)
    runner = s.runner(c)
    with stopped(runner):
        for _ in range(2):
            assert ctl.json("show", c.session_id[:8])["running"] is None
    poll(lambda: ctl.json("show", c.session_id[:8])["running"] == [], what="its answer")
    c.run("x", ["/bin/true"])


# --- top ---------------------------------------------------------------------


def test_who_uses_most_is_first(spawn, user):
    s = spawn()
    ctl = Ctl(s, user)
    idle, busy = s.ready(), s.ready()
    busy.sh("busy", "echo up; while :; do :; done")
    busy.wait_output("busy", "up")
    if ctl.sessions()[0]["cpuMs"] is None:
        pytest.skip("WHO USES MOST IS NOT TESTED: no control group counts processor time here")
    poll(lambda: max(x["cpuMs"] for x in ctl.sessions()) > 500, what="its use")
    lines = ctl("top").splitlines()
    assert lines[0].split()[:2] == ["ID", "NUMBER"] and [line.split()[0] for line in lines[1:]] == [
        busy.session_id[:8], idle.session_id[:8]]
    assert {x["id"] for x in ctl.json("top")["sessions"]} == {busy.session_id[:8], idle.session_id[:8]}


def in_terminal(argv, until, keys):
    """What it writes to a terminal, whose settings come back; `until` says when to type."""
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    p = subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs)
    got = b""
    while not until(got):
        got += os.read(ours, 65536)
    os.write(ours, keys)
    code = p.wait(30)
    assert termios.tcgetattr(theirs) == before
    os.close(theirs)
    with contextlib.suppress(OSError):
        while piece := os.read(ours, 65536):
            got += piece
    os.close(ours)
    return code, got


def test_top_in_a_terminal(audited):
    """Again and again, which is one record; q ends."""
    s, ctl, log = audited()
    c = s.connect(token="tok-a").ready()
    code, got = in_terminal(ctl.argv("top"), lambda got: got.count(b"q ends") == 2, b"q")
    assert code == 0 and got.count(c.session_id[:8].encode()) == 2
    assert [e["command"] for e in commands_of(log)] == ["top"]


@pytest.mark.parametrize("command", ["list", "top", "show", "usage"])
def test_another_execd_does_not_draw(command, directory, mode):
    """Whoever answers at a socket says what he likes, and the terminal obeys none of it."""
    evil = "a\x1b[2J\u009b31m\u202e"
    session = {"id": evil, "number": 1, "identity": evil, "state": evil, "peer": evil, "token": evil, "commands": evil, "processes": evil,
               "cpuMs": 1, "running": [{"process": evil, "pid": evil, "command": evil}]}
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(f"{directory}/ctl")
    os.chmod(f"{directory}/ctl", 0o666)
    listening.listen()

    def answer():
        sock, _ = listening.accept()
        sock.recv(4096)
        result = session if command == "show" else {"sessions": [session], "auditFile": evil}
        sock.sendall(json.dumps({"result": result}, ensure_ascii=False).encode() + b"\n")
        sock.close()
    thread = threading.Thread(target=answer)
    thread.start()
    r = subprocess.run([EXECD, "ctl", "--socket", f"{directory}/ctl", command, *(["0000"] if command == "show" else [])], capture_output=True,
                       text=True, timeout=30)
    thread.join()
    said = r.stdout + r.stderr
    assert r.returncode == (command == "usage") and "a\\x1b[2J" in said and not set(said) & set("\x1b\u009b\u202e"), r


# --- usage -------------------------------------------------------------------


def usage_of(identity, result):
    return next(x for x in result["identities"] if x["identity"] == identity)


def test_what_was_used(audited, user):
    s, ctl, log = audited()
    c = s.connect(token="tok-a").ready()
    c.run_sh("a", "ulimit -t 1; while :; do :; done")
    c.run("b", ["/bin/true"])
    with pytest.raises(Closed, match="401"):
        s.connect(token="wrong")
    r = ctl.json("usage")
    mine = usage_of("a", r)
    assert (mine["sessions"], mine["commands"], mine["refused"], mine["denied"]) == (1, 2, 0, 0), r
    assert mine["cpuMs"] >= 500 and mine["memoryBytes"] > 100_000 and (r["files"], r["lost"], r["unreadable"]) == (1, 0, 0)
    assert usage_of(None, r)["refused"] == 1
    assert re.search(r"^a +1 +2 +[\d.]+s +[\d.]+M +0 +0$", ctl("usage", "--since", "1h"), re.M), ctl("usage")
    assert ctl.json("usage", "--since", "2999-01-01T00:00:00Z")["identities"] == []


def record(time, event, identity="a", **more):
    return json.dumps({"time": time, "event": event, "identity": identity, **more}).replace('": ', '":') + "\n"


def usage(path, *args, code=0):
    r = subprocess.run([EXECD, "ctl", "--json", "usage", "--file", path, *args], capture_output=True, text=True, timeout=30)
    assert r.returncode == code, r
    return json.loads(r.stdout)["result"] if r.stdout else None, r.stderr


def test_rotated_files_are_read(directory, mode):
    """Plain and packed ones, by number and by date; what is older than asked, what is torn, and what was lost."""
    log = directory / "audit.jsonl"
    log.write_text(record("2026-11-21T12:00:00.000Z", "process-exited", userMs=1, systemMs=2, maxRssBytes=7, sandboxDenied=True) +
                   record("2026-11-21T12:00:00.000Z", "network-denied") + record("2026-11-21T12:00:00.000Z", "records-lost", lost=4) +
                   '{"time":"2026-11-21T12:00:00.000Z","ev\n' + "x" * 200_000 + "\n\0\0\n" + record("2026-11-21T12:00:00.000Z", "session-refused"))
    (directory / "audit.jsonl.1").write_text(record("2026-11-20T12:00:00.000Z", "session-opened") * 3)
    for name in ("audit.jsonl.2.gz", "audit.jsonl-20261119.gz"):
        (directory / name).write_bytes(gzip.compress(b"".join(record(f"2026-11-1{d}T12:00:00.000Z", "process-started").encode()
                                                             for d in (8, 9))))
    (directory / "audit.jsonlx").write_text("no file of this log\n")
    all, _ = usage(log, "--since", "2000-01-01T00:00:00Z")
    assert all == {"since": "2000-01-01T00:00:00Z", "files": 4, "unreadable": 3, "lost": 4, "identities": [
        {"identity": "a", "sessions": 3, "commands": 4, "cpuMs": 3, "memoryBytes": 7, "refused": 1, "denied": 2}]}
    later, _ = usage(log, "--since", "2026-11-19T12:00:00Z")
    assert (usage_of("a", later)["commands"], usage_of("a", later)["sessions"]) == (2, 3)
    os.utime(directory / "audit.jsonl.1", (0, 0))
    assert usage_of("a", usage(log, "--since", "2026-11-19T12:00:00Z")[0])["sessions"] == 0


def test_more_identities_than_are_told(directory, mode):
    log = directory / "audit.jsonl"
    log.write_text("".join(record("2026-11-21T12:00:00.000Z", "session-opened", f"i{i}") for i in range(5000)))
    r, _ = usage(log, "--since", "2026-01-01T00:00:00Z")
    assert len(r["identities"]) == 4096 and usage_of("(others)", r)["sessions"] == 905


def test_what_usage_cannot_read(directory, mode):
    log = directory / "audit.jsonl"
    assert "No such file" in usage(log, code=1)[1]
    log.write_text("")
    (directory / "audit.jsonl.2.gz").write_bytes(b"no gzip")
    (directory / "audit.jsonl.3.zst").write_bytes(b"")
    (directory / "audit.jsonl.4").symlink_to("/etc/passwd")
    _, said = usage(log, code=1)
    assert ".2.gz: gzip(1) does not unpack it" in said and ".3.zst: neither a plain file" in said and ".4: Too many levels" in said
    assert "--since 3x: neither a time" in usage(log, "--since", "3x", code=2)[1]


def test_usage_of_an_execd_without_a_file(spawn, user):
    assert "keeps no audit log in a file" in Ctl(spawn(), user)("usage", code=1)


# --- kill ------------------------------------------------------------------


def test_one_that_streams_is_ended(audited, user, directory):
    s, ctl, log = audited()
    c, other = s.connect(token="tok-a").ready(), s.connect(token="tok-a").ready()
    watcher = s.connect(token="tok-a").ready(watchSessionId=c.session_id)
    c.sh("p", f"echo {directory.name} up; while :; do echo x; done")
    c.wait_output("p", "up")
    uid = 0 if s.mode == "root" else user.pw_uid
    said = f"ended by the operator (uid {uid}): too loud \N{LATIN SMALL LETTER E WITH ACUTE}"
    ctl("kill", c.session_id[:8], "--reason", "too loud \N{LATIN SMALL LETTER E WITH ACUTE}")
    for who in (c, watcher):
        closed = who.wait_closed()
        assert (closed["code"], closed["reason"]) == (1011, f"session ended: {said}")
    poll(lambda: not pids_with(f"{directory.name} up"), what="end of its command")
    assert s.connect(token="tok-a").error("initialize", {"clientName": "x", "resumeSessionId": c.session_id}) == (
        -32600, f"unknown session id {c.session_id}: {said}")
    poll(lambda: any(e["event"] == "session-ended" for e in events(log)), what="its end on record")
    end = next(e for e in events(log) if e["event"] == "session-ended")
    assert (end["session"], end["reason"]) == (c.session_id[:8], said)
    record = commands_of(log)[-1]
    assert (record["command"], record["target"], record["uid"], record["result"]) == ("kill", c.session_id[:8], uid, "done")
    assert record["reason"] == "too loud \N{LATIN SMALL LETTER E WITH ACUTE}"
    assert other.run("x", ["/bin/echo", "in"]).stdout == "in\n"


def test_a_reason_longer_than_a_close_frame(spawn, user):
    """It is cut between characters there, and whole for who comes back."""
    s = spawn()
    for hand_over in (True, False):
        c = s.ready()
        who = s.connect().ready(watchSessionId=c.session_id) if not hand_over else c
        Ctl(s, user)("kill", c.session_id[:8], "--reason", "\N{EURO SIGN}" * 66)
        closed = who.wait_closed()
        assert closed["code"] == 1011 and re.fullmatch(r"session ended: ended by the operator \(uid \d+\): \u20ac+", closed["reason"])
        assert 120 < len(closed["reason"].encode()) <= 123
        assert s.connect().error("initialize", {"clientName": "x", "resumeSessionId": c.session_id})[1].endswith("\u20ac" * 66)


def test_one_that_is_detached_is_ended(audited):
    """Who comes back is told."""
    s, ctl, log = audited()
    c = s.connect(token="tok-a").ready()
    runner = s.runner(c)
    c.sh("p", "sleep 1000")
    c.drop()
    s.wait_log("detached")
    ctl("kill", c.session_id[:6], "--reason", "nobody came")
    poll(lambda: not is_alive(runner), what="end of the runner")
    code, text = s.connect(token="tok-a").error("initialize", {"clientName": "x", "resumeSessionId": c.session_id})
    assert code == -32600 and text.startswith(f"unknown session id {c.session_id}: ended by the operator (uid ")
    assert text.endswith("): nobody came")


def test_execctl_says_who_and_why(spawn, user, directory):
    s = spawn()
    ctl = Ctl(s, user)
    done = []
    run = threading.Thread(target=lambda: done.append(Execctl(directory, s.url)(
        "run", "sh", "-c", f"echo up >{directory}/up; sleep 1000")))
    run.start()
    poll((directory / "up").exists, what="its command")
    ctl("kill", ctl.sessions()[0]["id"], "--reason", "maintenance")
    run.join(20)
    assert done[0].code == 254 and "ended by the operator (uid" in done[0].err and "maintenance" in done[0].err


def test_a_name_that_names_no_session(audited):
    s, ctl, log = audited()
    c = s.connect(token="tok-a").ready()
    assert "there is no session `00000000-x`" in ctl("kill", "00000000-x", "--reason", "x", code=1)
    assert "there is no session `session-99`" in ctl("show", "session-99", code=1)
    assert "at least 4 characters" in ctl("show", c.session_id[:3], code=2)
    assert "reason: `kill` needs one" in ctl("kill", c.session_id[:8], code=2)
    assert "reason: `show` takes none" in ctl("show", c.session_id[:8], "--reason", "x", code=2)
    assert "session: `show` needs one" in ctl("show", code=2)
    assert "a command is missing" in ctl(code=2) and "none of list, show" in ctl("stop", code=2)
    assert "a control character at byte 1" in ctl("kill", c.session_id[:8], "--reason", "a\x1b[2J", code=2)
    assert "1 to 200 bytes" in ctl("kill", c.session_id[:8], "--reason", "x" * 201, code=2)
    assert c.run("x", ["/bin/echo", "in"]).stdout == "in\n", "and none is ended"
    assert {e["result"] for e in commands_of(log)} == {"noSuchSession", "badRequest"}


# --- drain -----------------------------------------------------------------


def test_drain_and_back(configured, user, directory):
    from test_listeners import get
    log = directory / "audit.jsonl"
    s = configured(configuration(user, log).replace("detached-ttl = 200ms", "detached-ttl = 1h").replace(
        "[identity", f"[listener op]\naddress = unix:{directory}/op\noperate = yes\n[identity", 1))
    ctl, op = Ctl(s, user), f"unix:{directory}/op"
    c = s.connect(token="tok-a").ready()
    c.sh("p", "echo up; read x; echo got $x", pipeStdin=True)
    c.wait_output("p", "up")
    assert ctl.json("drain") == {"changed": True, "state": "drained", "sessions": 1, "noticeMs": None}
    assert ctl.json("drain")["changed"] is False
    refused = (-32603, "the server takes no new sessions: it is drained by its operator")

    def is_drained():
        assert s.connect(token="tok-a").error("initialize", {"clientName": "x"}) == refused
        poll(lambda: get(s.url, "/readyz")[0] == 503, what="503")
        assert get(op, "/healthz") == get(op, "/readyz") == (503, "drained by the operator\n")
        assert get(op, "/livez") == (200, "ok\n") and get(s.url, "/livez")[0] == 404
        assert ctl.json("status")["state"] == "drained"

    is_drained()
    c.drop()
    s.wait_log("detached")
    c = s.connect(token="tok-a").ready(resumeSessionId=c.session_id)
    kill(s.broker)
    c.wait_closed()
    s.wait_log("no new sessions: execd was drained by uid")
    poll(lambda: "front-end" not in ctl.json("status")["health"], what="front-end of the next broker")
    is_drained()
    c = s.connect(token="tok-a").ready(resumeSessionId=c.session_id)
    c.write("p", "in\n")
    assert c.finished("p").stdout == "got in\n"
    assert ctl.json("undrain") == {"changed": True, "state": "serving"}
    assert s.connect(token="tok-a").ready().run("x", ["/bin/echo", "in"]).stdout == "in\n"
    poll(lambda: get(s.url, "/readyz")[0] == get(op, "/healthz")[0] == 200, what="200")
    assert ctl.json("undrain")["changed"] is False
    assert [e["command"] for e in commands_of(log) if "drain" in e["command"]] == ["drain", "drain", "undrain", "undrain"]


@pytest.mark.parametrize("undone", [False, True])
def test_a_drain_waits_for_the_last_session(audited, undone):
    s, ctl, log = audited()
    c = s.connect(token="tok-a").ready()
    waits = subprocess.Popen(ctl.argv("drain", "--wait"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    poll(lambda: [r["command"] for r in events(log) if r["event"] == "ctl-command"][:2] == ["drain", "status"],
         what="its first question")
    assert waits.poll() is None
    ctl("undrain") if undone else ctl("kill", c.session_id[:8], "--reason", "x")
    out, err = waits.communicate(timeout=30)
    assert (waits.returncode, err) == ((1, "execd ctl: the drain was undone\n") if undone else (0, "")), (out, err)
    assert "--wait is for drain" in ctl("list", "--wait", code=2)


def test_what_stops_cannot_be_undrained(configured, user, directory):
    s = configured(configuration(user, directory / "audit").replace("[limits]", "[limits]\ndrain-timeout = 1h"))
    ctl, c = Ctl(s, user), s.connect(token="tok-a").ready()
    s.child.send_signal(signal.SIGTERM)
    s.wait_log("no new sessions")
    assert ctl.json("status")["state"] == "stopping"
    assert "cannot be undone" in ctl("undrain", code=1)
    c.drop()


# --- status, reload --------------------------------------------------------


def test_status(audited):
    s, ctl, _ = audited()
    s.connect(token="tok-a").ready()
    r = ctl.json("status")
    assert set(r) == {"state", "drainedBy", "noticeMs", "health", "version", "configuration", "programs", "sessions", "listeners",
                      "controllers", "locked", "auditFailing", "auditFile"}
    assert (r["state"], r["health"], r["listeners"], r["auditFailing"]) == ("serving", "ok", [s.url], False)
    assert r["programs"] == {"execd": s.pid, "execd-broker": s.broker, "execd-frontend": s.frontend(), "execd-keys": []}
    assert r["sessions"] == {"attached": 1, "detached": 0, "ending": 0, "max": 10000,
                             "kept": 0, "maxKept": 2500}
    assert "state: serving\n" in ctl("status")


def test_reload_says_what_changed_and_what_is_wrong(audited):
    s, ctl, log = audited()
    good = s.path.read_text()
    assert ctl("reload") == "reload: nothing changed\n"
    s.path.write_text(good.replace("[limits]", "[limits]\nmax-sessions = 3"))
    assert ctl("reload") == "reload: [limits] max-sessions: 3, was 10000\n"
    s.path.write_text(good + "max-sesions = 4\n")
    line = len(good.splitlines()) + 1
    told = ctl("reload", code=3)
    assert f"{s.path}:{line}: " in told and "max-sesions" in told and "the configuration stays as it was" in told
    assert ctl.json("status")["sessions"]["max"] == 3
    assert [e["result"] for e in commands_of(log) if e["command"] == "reload"] == ["asked"] * 3


def test_two_reloads_at_once(audited):
    """Nobody hears that a file is well which only the other one's broker has read."""
    s, ctl, log = audited()
    with stopped(s.pid):
        first = subprocess.Popen(ctl.argv("reload"), stdout=subprocess.PIPE, text=True)
        poll(lambda: [e for e in commands_of(log) if e["command"] == "reload"], what="the first one's record")
        s.path.write_text(s.path.read_text() + "max-sesions = 4\n")
        assert "another reload is under way" in ctl("reload", code=1)
    assert first.wait(30) == 3
    assert "max-sesions" in ctl("reload", code=3)


def two(user, listener="", rest=""):
    return ("[listener main]\naddress = ws://127.0.0.1:0\n" + listener + "".join(
        f"[identity {n}]\nuser = {user.pw_name}\nsandbox-allow-unsandboxed = yes\ntoken-sha256 = {digest('tok-' + n)}\n" for n in "ab") + rest)


def test_the_last_refusals_are_explained(configured, user):
    """Without an audit log, too: who, when, which listener, identity and token, why, and for how long."""
    s = configured(two(user, "identities = a\n", f"[token laptop]\nidentity = b\nsha256 = {digest('lap')}\n"
                       "[limits]\nexempt = none\nmax-sessions = 1\npenalty-authentication = 1s\npenalty-threshold = 80s\n"))
    ctl = Ctl(s, user)
    assert ctl.json("explain") == {"refusals": []}
    for token in ("wrong", "lap"):
        with pytest.raises(Closed, match="401"):
            s.connect(token=token)
    s.connect(token="tok-a").ready()
    with pytest.raises(AssertionError, match="limit of 1 sessions reached"):
        s.connect(token="tok-a").ready()
    wrong, barred, full = ctl.json("explain")["refusals"]
    assert wrong["reason"] == "invalid websocket bearer token" and wrong["listener"] == "main" and "127.0.0.1" in wrong["peer"], wrong
    assert (barred["identity"], barred["token"], barred["reason"]) == ("b", "laptop", "the client is not known here"), barred
    assert full["identity"] == "a" and "sessions" in full["reason"], full
    lines = ctl("explain").splitlines()
    assert lines[0].split()[0] == "TIME" and re.search(r" main +b +laptop .* the client is not known here$", lines[2]), lines
    for _ in range(79):
        with pytest.raises(Closed, match="401"):
            s.connect(token="wrong")
    last = poll(lambda: (x := ctl.json("explain")["refusals"])[-1]["reason"].startswith("too many") and x, what="the penalty")
    assert len(last) == 64 and re.fullmatch(r"too many failures from there, refused for 8\d s", last[-1]["reason"]), last[-1]


def test_without_a_file_there_is_nothing_to_reload(spawn, user):
    assert "there is no configuration to reload" in Ctl(spawn(), user)("reload", code=1)


# --- who may ask -----------------------------------------------------------


@pytest.fixture
def stranger():
    if not ROOT:
        pytest.skip("NO OTHER USER IS TESTED: this needs root")
    import pwd
    name = f"execd-o{os.getpid()}"
    change_users("useradd", "-m", name)
    yield pwd.getpwnam(name)
    change_users("userdel", "-r", name)


@pytest.fixture
def group(stranger):
    name = f"execd-g{os.getpid()}"
    change_users("groupadd", name)
    yield name
    change_users("groupdel", name)


def test_others_are_refused(audited, stranger):
    """By the file; and where somebody opened it, by the broker, which records it."""
    s, ctl, log = audited()
    assert "Permission denied" in ctl("list", uid=stranger, code=4)
    if s.mode == "user":
        assert os.stat(os.path.dirname(ctl.path)).st_mode & 0o077 == 0
        os.chmod(os.path.dirname(ctl.path), 0o755)
    os.chmod(ctl.path, 0o666)
    for command in ("list", "drain", "reload"):
        assert "only root and members of ctl-group may ask" in ctl(command, uid=stranger, code=4)
    assert commands_of(log) == [] and ctl.json("status")["state"] == "serving"
    refused = [e for e in events(log) if e["event"] == "ctl-refused"]
    assert len(refused) == 3 and {e["uid"] for e in refused} == {stranger.pw_uid}
    os.chmod(os.path.dirname(ctl.path), 0o755 if s.mode == "root" else 0o700)


ASK = """import contextlib, socket, sys
try:
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    with contextlib.suppress(BrokenPipeError):
        s.sendall(b'{"command":"drain"}' + bytes([10]))
    print(s.recv(1000))
except OSError as e:
    print(e.strerror)
"""


@pytest.mark.parametrize("how", ["plain", "sandboxed", "orphaned"])
def test_a_command_of_a_session_may_not_ask(configured, user, directory, how, mode, sandboxes):
    """Of an ordinary user's execd it is a process of the same user, also where a sandbox shows it the socket."""
    s = configured(configuration(user, directory / "audit") + f"[control]\nctl-socket = {directory}/ctl\n"
                   "[sandbox]\nunix-sockets = allow\n")
    ctl, c = Ctl(s, user, f"{directory}/ctl"), s.connect(token="tok-a").ready()
    argv = ["/usr/bin/python3", "-c", ASK, ctl.path]
    if how == "orphaned":
        argv = ["/bin/sh", "-c", '(setsid sh -c \'sleep 0.3; "$@"\' sh "$@" & ); sleep 3', "sh", *argv]
    everything = {"permissions": {"type": "managed", "file_system": {"type": "restricted", "entries": [
        {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"}]}, "network": "enabled"},
        "cwd": "file:///tmp", "workspaceRoots": ["file:///tmp"], "windowsSandboxLevel": "disabled"}
    r = c.run("x", argv, **({"sandbox": everything} if how == "sandboxed" else {}))
    said = r.stdout + r.stderr
    assert ("Permission denied" if mode == "root" else "notPermitted") in said, said
    assert ctl.json("status")["state"] == "serving"


def test_members_of_the_group_may_ask(configured, user, directory, group, stranger, mode):
    """Also by a group that is not their first; after a reload that takes it back they may not."""
    if mode == "user":
        pytest.skip("NO GROUP IS TESTED HERE: an ordinary user's execd cannot give its socket to a group of others")
    log = directory / "audit.jsonl"
    text = configuration(user, log)
    s = configured(text + f"[control]\nctl-group = {group}\nctl-socket = {directory}/ctl\n")
    ctl = Ctl(s, user, f"{directory}/ctl")
    assert oct(os.stat(ctl.path).st_mode)[-3:] == "660"
    ctl("list", uid=stranger, code=4)
    subprocess.run(["usermod", "-a", "-G", group, stranger.pw_name], check=True)
    assert len(ctl("list", uid=stranger).splitlines()) == 1
    assert commands_of(log)[-1]["uid"] == stranger.pw_uid
    s.reload(text + f"[control]\nctl-socket = {directory}/ctl\n", "[control] ctl-group: unset")
    ctl("list", uid=stranger, code=4)
    s.reload(text + "[control]\nctl-socket = none\n", "[control] ctl-socket")
    poll(lambda: not os.path.exists(ctl.path), what="end of the socket")


def test_a_member_keeps_nobody_out(configured, user, directory, group, stranger, mode):
    """Requests that do not end take all places; root's ctl gets one all the same, and the member hears why."""
    if mode == "user":
        pytest.skip("NO GROUP IS TESTED HERE: an ordinary user's execd cannot give its socket to a group of others")
    subprocess.run(["usermod", "-a", "-G", group, stranger.pw_name], check=True)
    s = configured(configuration(user, directory / "audit.jsonl") + f"[control]\nctl-group = {group}\nctl-socket = {directory}/ctl\n")
    ctl = Ctl(s, user, f"{directory}/ctl")
    program = f"""import socket
half = [socket.socket(socket.AF_UNIX) for _ in range(8)]
for s in half:
    s.connect({ctl.path!r}); s.sendall(b'{{"command":')
print("up", flush=True)
print(half[0].recv(1000).decode(), flush=True)
input()"""
    p = subprocess.Popen(as_user(stranger, ["/usr/bin/python3", "-c", program]), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert p.stdout.readline() == "up\n"
        assert ctl.sessions() == []
        assert json.loads(p.stdout.readline())["error"] == {
            "code": "busy", "message": "another user came, and you have the most places"}
    finally:
        p.kill()
        p.communicate()


@pytest.mark.parametrize("section, told", [
    ("ctl-socket = here", "`here` is neither none nor an absolute path"),
    ("ctl-socket = /" + "x" * 107, "at most 107 characters"),
    ("ctl-group = no-such-group-here", "ctl-group: there is no group `no-such-group-here`"),
    ("ctl-socket = none\nctl-group = root", "ctl-group: there is no ctl-socket to permit"),
    ("ctl-sockets = /x", "unknown key `ctl-sockets`")])
def test_bad_configuration(user, directory, section, told):
    path = directory / "execd.conf"
    path.write_text(configuration(user, directory / "audit") + f"[control]\n{section}\n")
    r = subprocess.run([EXECD, "-t", "-c", path], capture_output=True, text=True, timeout=20)
    assert r.returncode == 3 and f"{path}:" in r.stderr and told in r.stderr, r


def test_a_socket_that_cannot_be_made(user, directory, mode):
    """What was asked for in words is a reason not to start."""
    path = directory / "execd.conf"
    path.write_text(configuration(user, directory / "audit") + f"[control]\nctl-socket = {directory}/no/ctl\n")
    argv = [str(EXECD), "-c", str(path)]
    r = subprocess.run(argv if mode == "root" else as_user(user, argv), capture_output=True, text=True, timeout=20)
    assert r.returncode == 1 and f"unix:{directory}/no/ctl: No such file or directory" in r.stderr, r


# --- several execds ----------------------------------------------------------


def test_several_never_collide(user, directory, spawn, mode):
    if mode == "root":
        pytest.skip("ONLY SINGLE-USER MODE IS TESTED: other tests' execds have their sockets in /run/execd, too")
    runtime = directory / "runtime"
    runtime.mkdir(mode=0o700)
    if ROOT:
        os.chown(runtime, user.pw_uid, user.pw_gid)
    env = {**os.environ, "XDG_RUNTIME_DIR": str(runtime)}

    def ctl(*args):
        return subprocess.run(as_user(user, [str(EXECD), "ctl", *args]), env=env, capture_output=True, text=True, timeout=30)

    a = spawn(env=env)
    assert ctl("status").stdout.startswith("state: serving\n")
    b = spawn(env=env)
    r = ctl("status")
    assert r.returncode == 1 and all(f"{runtime}/execd/ctl.{s.pid}" in r.stderr for s in (a, b)), r
    assert f"execd {b.pid}," in ctl("--socket", f"{runtime}/execd/ctl.{b.pid}", "status").stdout
    kill(a.pid)
    a.child.wait(10)
    assert f"execd {b.pid}," in ctl("status").stdout, "one that is gone counts nothing"
    spawn(env=env)
    assert not (runtime / f"execd/ctl.{a.pid}").exists(), "and its socket goes with the next start"


def test_an_ordinary_users_is_not_in_tmp(user, directory, spawn, mode):
    """There a command of a sandbox could have made one for `execd ctl` to find."""
    if mode == "root":
        pytest.skip("ONLY SINGLE-USER MODE IS TESTED: root's socket is in /run/execd")
    env = {k: v for k, v in os.environ.items() if k != "XDG_RUNTIME_DIR"}
    before = set(os.listdir("/tmp"))
    s = spawn(env=env)
    place = os.path.dirname(path_of(s, user))
    assert place == f"{user.pw_dir}/.local/state/execd" and os.stat(place).st_mode & 0o7777 == 0o700
    assert os.stat(path_of(s, user)).st_mode & 0o7777 == 0o600
    assert not [n for n in set(os.listdir("/tmp")) - before if n == f"execd-{user.pw_uid}"]
    r = subprocess.run(as_user(user, [str(EXECD), "ctl", "status"]), env=env, capture_output=True, text=True, timeout=30)
    # Of several of this user none is asked, and all are named.
    assert r.stdout.startswith("state: serving\n") or path_of(s, user) in r.stderr, r


def test_none_at_all(user, directory):
    env = {**os.environ, "XDG_RUNTIME_DIR": str(directory)}
    r = subprocess.run([EXECD, "ctl", "--socket", directory / "none", "list"], env=env, capture_output=True, text=True)
    assert r.returncode == 1 and "none: No such file or directory" in r.stderr


# --- peers that are not what they should be -----------------------------------


def test_bad_requests(audited):
    s, ctl, log = audited()
    assert ctl.error(b"list\n")["code"] == "badRequest"
    assert ctl.error(b'{"command":"list","more":1}\n')["message"] == "unknown key `more`"
    assert ctl.error(b'{"command":7}\n')["message"] == "command: a string of 1 to 31 bytes is expected"
    assert ctl.error(b'["list"]\n')["message"] == "a request is an object"
    assert ctl.error(b'{"command":"li\\u0000st"}\n')["message"] == "command: a control character at byte 2"
    assert ctl.error(b"[" * 4000 + b"\n")["code"] == "badRequest"
    assert ctl.error(b"\xff\n")["code"] == "badRequest"
    assert ctl.error(b"x" * 5000) == {"code": "tooLarge", "message": "a request is one line of at most 4096 bytes"}
    assert ctl.raw(b'{"command":"list"}')[:0] == b"" and ctl.sessions() == []
    assert {e["result"] for e in commands_of(log)} == {"badRequest", "done"}


def test_who_is_slow_holds_nobody_up(spawn, user):
    s = spawn()
    ctl, c = Ctl(s, user), s.ready()
    slow = [ctl.connect() for _ in range(8)]
    for sock in slow:
        sock.sendall(b'{"command":')
    began = time.monotonic()
    assert ctl.error(b'{"command":"list"}\n') == {"code": "busy", "message": "8 others are being answered"}
    assert c.run("x", ["/bin/echo", "in"]).stdout == "in\n"
    for sock in slow:
        assert sock.recv(1) == b""
        sock.close()
    assert 3 < time.monotonic() - began < 12
    assert len(ctl.sessions()) == 1


def test_who_hangs_up_or_does_not_read(spawn, user):
    s = spawn()
    ctl = Ctl(s, user)
    all = [s.ready() for _ in range(40)]
    for _ in range(50):
        with ctl.connect() as sock, contextlib.suppress(BrokenPipeError):
            sock.sendall(b'{"command":"list"}\n')
    for _ in range(50):
        ctl.connect().close()
    poll(lambda: subprocess.run(ctl.argv("status"), capture_output=True).returncode == 0, what="a place")
    with ctl.connect() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        sock.sendall(b'{"command":"list"}\n')
        sock.shutdown(socket.SHUT_WR)
        assert len(ctl.sessions()) == 40
        got = b""
        while piece := sock.recv(100):
            got += piece
    assert len(json.loads(got)["result"]["sessions"]) == 40
    assert all[0].run("x", ["/bin/echo", "in"]).stdout == "in\n"


def test_two_at_once(spawn, user):
    """Of two who end the same session one does, and the other hears that it ends already."""
    s = spawn()
    ctl, c = Ctl(s, user), s.ready()
    c.sh("p", "trap '' TERM; echo up; while :; do sleep 0.1; done")
    c.wait_output("p", "up")
    argv = ctl.argv("kill", c.session_id[:8], "--reason", "x")
    both = [subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    out = [p.communicate(timeout=20) for p in both]
    assert sorted(p.returncode for p in both) == [0, 1]
    assert any("is ending: ended by the operator" in err or "there is no session" in err for _, err in out), out


# --- a broker that ends, or hangs ------------------------------------------------


def test_a_broker_that_ends_in_the_middle(spawn, user):
    """Who waits in front of the door is answered by the next one; who was let in hears the end."""
    s = spawn()
    ctl = Ctl(s, user)
    inside = ctl.connect()
    inside.sendall(b'{"command":')
    ctl("status")       # who comes later is served: the first was let in
    broker = s.broker
    os.kill(broker, signal.SIGSTOP)
    waiting = ctl.connect()
    waiting.sendall(b'{"command":"status"}\n')
    kill(broker)
    assert inside.recv(1) == b""
    assert json.loads(waiting.makefile().read())["result"]["state"] == "serving"


@pytest.mark.parametrize("says, told", [(b"", "the broker ended before it answered"), (b'{"result":{', "ended before"),
                                        (b"hello\n", "no answer of execd's")])
def test_an_answer_that_is_none(directory, says, told):
    path = directory / "ctl"
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(path))
        door.listen()
        child = subprocess.Popen([EXECD, "ctl", "--socket", path, "list"], stderr=subprocess.PIPE, text=True)
        peer = door.accept()[0]
        peer.recv(100)
        peer.sendall(says)
        peer.close()
        assert told in child.communicate(timeout=10)[1] and child.returncode == 1


def test_a_broker_that_hangs(directory):
    path = directory / "ctl"
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(path))
        door.listen()
        r = subprocess.run([EXECD, "ctl", "--socket", path, "list"], capture_output=True, text=True, timeout=40)
    assert r.returncode == 1 and "the broker does not answer" in r.stderr
