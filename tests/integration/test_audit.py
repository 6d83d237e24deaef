# SPDX-License-Identifier: ISC
"""The audit log: every connection, session and end, and no run without it
where it is required (execd.conf(5), [audit])."""
import json
import os
import re
import shlex
import signal
import stat
import subprocess

import pytest
from conftest import EXECD, ROOT, as_user, digest, lines_of, poll
from execd_client import Closed
from test_listeners import get


def configuration(user, log, more=""):
    return (f"[listener main]\naddress = ws://127.0.0.1:0\n[identity a]\nuser = {user.pw_name}\nsandbox-allow-unsandboxed = yes\n"
            f"token-sha256 = {digest('tok-a')}\n[limits]\ndetached-ttl = 200ms\n[audit]\nfile = {log}\n{more}")


def written(log):
    return "\n".join(lines_of(log))


def events(log):
    return [json.loads(line) for line in lines_of(log)]


def test_a_life_is_on_record(configured, user, directory):
    log = directory / "audit.jsonl"
    s = configured(configuration(user, log))
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    with pytest.raises(Closed, match="401"):
        s.connect(token="wrong-secret")
    c = s.connect(token="tok-a").ready()
    c.drop()
    poll(lambda: "session-ended" in written(log))
    found = events(log)
    assert [e["event"] for e in found] == ["refused", "granted", "session-opened", "session-detached", "session-ended"]
    for e in found:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", e["time"])
    refused, granted, opened, _, ended = found
    assert refused["reason"] == "invalid websocket bearer token" and refused["peer"].startswith("websocket 127.0.0.1:")
    assert (granted["identity"], granted["by"], granted["listener"]) == ("a", "token", "main")
    assert opened["session"] == c.session_id[:8] and opened["user"] == user.pw_name and opened["peer"] == granted["peer"]
    assert ended["reason"]
    text = written(log)
    assert "tok-a" not in text and "wrong-secret" not in text and c.session_id not in text


def test_a_session_that_is_not_opened_is_on_record(configured, user, directory):
    """With the reason that its client is told; and it can try again."""
    log = directory / "audit.jsonl"
    s = configured(configuration(user, log).replace("[limits]", "max-sessions = 1\n[limits]"))
    c, other = s.connect(token="tok-a").ready(), s.connect(token="tok-a")
    asked = [{}, {"resumeSessionId": c.session_id}, {"resumeSessionId": "no-such-session"}]
    told = [other.error("initialize", {"clientName": "x", **more})[1] for more in asked]
    found = [e for e in events(log) if e["event"] == "session-refused"]
    assert [e["reason"] for e in found] == ["limit of 1 sessions of a reached", "attached to another connection",
                                            "unknown session id"]
    assert told[0] == found[0]["reason"] and c.session_id[:8] not in json.dumps(found)
    granted = [e["peer"] for e in events(log) if e["event"] == "granted"]
    assert {(e["identity"], e["user"], e["peer"]) for e in found} == {("a", user.pw_name, granted[1])}
    text = s.path.read_text()
    s.reload(text.replace("max-sessions = 1", "max-sessions = 9").replace(str(log), "/dev/full"), "/dev/full, was")
    other = s.connect(token="tok-a")    # its identity is the one of the new configuration
    assert other.error("initialize", {"clientName": "x"})[1] == "the audit log cannot be written"


@pytest.mark.parametrize("spoil, why", [
    (lambda p: p.chmod(0o660), "can be written by others"), (lambda p: p.chmod(0o602), "can be written by others"),
    (lambda p: os.link(p, f"{p}.other"), "has a second name"),
    (lambda p: (p.unlink(), os.mkfifo(p)), ""), (lambda p: (p.unlink(), p.symlink_to("/etc/passwd")), "Too many levels"),
    (lambda p: os.chown(p, 65534, 65534), "")], ids=["group", "others", "link", "fifo", "symlink", "owner"])
def test_a_file_that_others_can_change_is_refused(user, directory, mode, spoil, why):
    log = directory / "audit.jsonl"
    log.touch(mode=0o600)
    if ROOT and mode == "user":
        os.chown(log, user.pw_uid, user.pw_gid)
    if not ROOT and why == "" and spoil.__code__.co_names[-1] == "chown":
        pytest.skip("ANOTHER OWNER IS NOT TESTED: only root gives files away")
    spoil(log)
    path = directory / "execd.conf"
    path.write_text(configuration(user, log))
    path.chmod(0o644)
    argv = [str(EXECD), "-t", "-c", str(path)]
    r = subprocess.run(as_user(user, argv) if mode == "user" else argv, capture_output=True, text=True, timeout=30)
    assert r.returncode == 3 and str(log) in r.stderr and why in r.stderr, r


def test_a_file_that_was_removed_is_begun_again(configured, user, directory):
    log = directory / "audit.jsonl"
    s = configured(configuration(user, log))
    c = s.connect(token="tok-a").ready()
    log.unlink()
    c.run("after", ["/bin/true"])
    poll(lambda: log.exists() and "process-exited" in log.read_text(), what="the record of its end")
    assert [e["process"] for e in events(log) if e["event"] == "process-started"] == ["after"]
    s.wait_log(f"audit log {log}: somebody removed the file")
    assert log.stat().st_mode & 0o777 == 0o600
    log.unlink()
    log.symlink_to("/etc/passwd")
    assert s.connect(token="tok-a").error("initialize", {"clientName": "x"})[1] == "the audit log cannot be written"
    log.unlink()
    poll(lambda: log.exists() and "records-lost" in log.read_text())


def test_every_command_is_on_record(configured, user, directory):
    log = directory / "audit.jsonl"
    s = configured(configuration(user, log))
    c = s.connect(token="tok-a").ready()
    argv = ["/bin/sh", "-c", "echo 'it'\\''s' \"$HOME\"; exit 3", "a b", "", "\x1b[31m", "é\n"]
    assert c.run("quoted", argv).code == 3
    c.sh("killed", "kill -9 $$")
    c.finished("killed")
    c.run("long", ["/bin/true", "x" * 5000])
    c.sh("stopped", "sleep 1000", tty=True)
    c.terminate("stopped")
    assert c.start("none", ["/no/such/program"])["error"]["code"] == -32603
    poll(lambda: written(log).count('"process-') == 8, what="all events")
    by = {(e["event"], e["process"]): e for e in events(log) if "process" in e}
    started = by["process-started", "quoted"]
    assert shlex.split(started["command"]) == argv
    assert (started["cwd"], started["tty"], started["sandboxed"], started["commandCut"]) == ("/tmp", False, False, False)
    assert started["peer"] == next(e["peer"] for e in events(log) if e["event"] == "session-opened")
    assert started["identity"] == "a" and started["user"] == user.pw_name and started["session"] == c.session_id[:8]
    assert by["process-exited", "quoted"]["code"] == 3 and "signal" not in by["process-exited", "quoted"]
    assert by["process-exited", "killed"]["signal"] == 9 and not by["process-exited", "killed"]["terminated"]
    assert by["process-started", "long"]["commandCut"] and by["process-started", "long"]["command"].startswith("/bin/true")
    assert by["process-started", "stopped"]["tty"] and by["process-exited", "stopped"]["terminated"]
    assert not [e for e in by if e[1] == "none"], "what was not started is not there"


def test_names_that_a_terminal_would_obey(configured, user, directory):
    """They are in the record as the client wrote them, and as ASCII in its line."""
    log = directory / "audit.jsonl"
    s = configured(configuration(user, log))
    c = s.connect(token="tok-a").ready()
    name = "\x1b]0;x\x07\x7f\x85\x9b2J\u2028\u202e\u2066\ufeffü\r\n{}"
    c.run(name, ["/bin/echo", name])
    poll(lambda: "process-exited" in written(log))
    with open(log, newline="") as f:
        text = f.read()
    assert all(line.isprintable() for line in text.replace("\ufeff", "").split("\n"))
    started, exited = (next(e for e in events(log) if e["event"] == f"process-{x}") for x in ("started", "exited"))
    assert started["process"] == exited["process"] == name and name in started["command"]


def test_many_at_once_are_all_on_record(configured, user, directory):
    log = directory / "audit.jsonl"
    s = configured(configuration(user, log))
    c = s.connect(token="tok-a").ready()
    for i in range(300):
        c.post("process/start", {"processId": f"p{i}", "argv": ["/bin/true", "x" * 3000], "cwd": "file:///", "env": {},
                                 "tty": False})
    for i in range(300):
        c.finished(f"p{i}", 60)
    poll(lambda: written(log).count("process-exited") == 300, what="all events")
    assert written(log).count("process-started") == 300


def test_no_run_without_a_record(configured, user, directory):
    """The log fails while a session runs: nothing else is started, and what runs goes on."""
    log = directory / "audit.jsonl"
    text = configuration(user, log)
    s = configured(text)
    c = s.connect(token="tok-a").ready()
    assert c.run("a", ["/bin/echo", "in"]).stdout == "in\n"
    c.sh("runs", "read line; echo $line; read line", pipeStdin=True)
    s.reload(text.replace(str(log), "/dev/full"), "/dev/full, was")
    c.wait_closed()
    c = s.connect(token="tok-a").ready(resumeSessionId=c.session_id)
    # That it was taken over is the first record that is missing.
    assert c.start("c", ["/bin/true"])["error"] == {"code": -32603, "message": "the audit log cannot be written"}
    c.write("runs", "still\n")
    c.wait_output("runs", "still")


def test_every_start_has_its_end(configured, user, directory):
    """Also of commands whose runner was killed, which told nothing of their end."""
    log = directory / "audit.jsonl"
    s = configured(configuration(user, log))
    c, other = s.connect(token="tok-a").ready(), s.connect(token="tok-a").ready()
    for id in "one", "two", "three":
        c.sh(id, "echo up; exec sleep 1000")
        c.wait_output(id, "up")
    other.sh("lives", "echo up; exec sleep 1000")
    other.wait_output("lives", "up")
    c.terminate("two")
    c.finished("two")
    os.kill(s.runner(c), signal.SIGKILL)
    c.wait_closed()
    poll(lambda: "session-ended" in written(log), what="its end")
    mine = [e for e in events(log) if e.get("session") == c.session_id[:8]]
    assert [e["process"] for e in mine if e["event"] == "process-started"] == ["one", "two", "three"]
    ended = [e for e in mine if e["event"] == "process-exited"]
    assert [e["process"] for e in ended] == ["two", "one", "three"] and mine[-1]["event"] == "session-ended"
    assert all((e["killedBy"], e["signal"], e["terminated"]) == ("session-end", 9, True) for e in ended[1:])
    assert "lives" not in [e["process"] for e in events(log) if e["event"] == "process-exited"]


def test_a_killed_runner_and_a_resume(configured, user, directory):
    log = directory / "audit.jsonl"
    s = configured(configuration(user, log).replace("200ms", "80s"))
    c = s.connect(token="tok-a").ready()
    c.drop()
    s.wait_log("detached")
    again = s.connect(token="tok-a").ready(resumeSessionId=c.session_id)
    os.kill(s.runner(c), signal.SIGKILL)
    again.wait_closed()
    poll(lambda: "session-ended" in written(log))
    assert [e["event"] for e in events(log)][-2:] == ["session-resumed", "session-ended"]
    assert events(log)[-1]["reason"] == "runner killed by signal 9"


def test_rotation(configured, user, directory):
    log = directory / "audit.jsonl"
    text = configuration(user, log)
    s = configured(text)
    s.connect(token="tok-a").ready()
    log.rename(directory / "old")
    s.reload(text, "nothing changed")
    before = (directory / "old").read_text()
    s.connect(token="tok-a").ready()
    poll(lambda: log.exists() and "session-opened" in written(log))
    assert (directory / "old").read_text() == before


@pytest.mark.parametrize("required", ["yes", "no"])
def test_a_log_that_cannot_be_written(configured, user, directory, required):
    """/dev/full is a full disk."""
    s = configured(configuration(user, "/dev/full", f"required = {required}\n") +
                   f"[listener op]\naddress = unix:{directory}/op\noperate = yes\n")
    c = s.connect(token="tok-a")
    if required == "yes":
        code, message = c.error("initialize", {"clientName": "x"})
        assert code == -32603 and "the audit log cannot be written" in message
    else:
        assert c.ready().run("x", ["/bin/echo", "in"]).stdout == "in\n"
    s.wait_log("audit log /dev/full: No space left on device")
    # Who asks before he connects hears it, too.
    op = f"unix:{directory}/op"
    if required == "yes":
        poll(lambda: get(op, "/readyz") == (503, "the audit log cannot be written\n"), what="/readyz to say it")
        assert get(s.urls[0], "/readyz") == (503, "") and get(op, "/livez")[0] == 200
    else:
        assert get(op, "/readyz")[0] == 200


def test_a_check_makes_no_file(mode, user, directory):
    from test_config import check
    path = directory / "execd.conf"
    path.write_text(configuration(user, directory / "audit.jsonl"))
    assert check(mode, user, path, "-t") == (0, "", "")
    assert not (directory / "audit.jsonl").exists()


@pytest.mark.parametrize("section, words", [
    ("", "one of file, syslog and journal is needed"), ("file = audit\n", "is not an absolute path"), ("file = /none/such\n", "/none/such: No such file"),
    ("file = /tmp\n", "Is a directory"), ("file = /dev/null\nrequired = maybe\n", "is neither yes nor no")])
def test_what_is_refused(mode, user, directory, section, words):
    from test_config import check
    path = directory / "execd.conf"
    path.write_text(f"[audit]\n{section}")
    code, _, err = check(mode, user, path)
    assert code == 3 and words in err, err
