"""The audit log: every connection, session and end, and no run without it
where it is required (execd.conf(5), [audit])."""
import json
import os
import re
import signal
import stat

import pytest
from conftest import ROOT, digest, poll
from execd_client import Closed


def configuration(user, log, more=""):
    return (f"[listener main]\naddress = ws://127.0.0.1:0\n[identity a]\nuser = {user.pw_name}\n"
            f"token-sha256 = {digest('tok-a')}\n[limits]\ndetached-ttl = 200ms\n[audit]\nfile = {log}\n{more}")


def events(log):
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_a_life_is_on_record(configured, user, directory):
    log = directory / "audit.jsonl"
    s = configured(configuration(user, log))
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    with pytest.raises(Closed, match="401"):
        s.connect(token="wrong-secret")
    c = s.connect(token="tok-a").ready()
    c.drop()
    poll(lambda: "session-ended" in log.read_text())
    found = events(log)
    assert [e["event"] for e in found] == ["refused", "granted", "session-opened", "session-detached", "session-ended"]
    for e in found:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", e["time"])
    refused, granted, opened, _, ended = found
    assert refused["reason"] == "invalid websocket bearer token" and refused["peer"].startswith("websocket 127.0.0.1:")
    assert (granted["identity"], granted["by"], granted["listener"]) == ("a", "token", "main")
    assert opened["session"] == c.session_id[:8] and opened["user"] == user.pw_name and opened["peer"] == granted["peer"]
    assert ended["reason"]
    text = log.read_text()
    assert "tok-a" not in text and "wrong-secret" not in text and c.session_id not in text


def test_a_killed_runner_and_a_resume(configured, user, directory):
    log = directory / "audit.jsonl"
    s = configured(configuration(user, log).replace("200ms", "80s"))
    c = s.connect(token="tok-a").ready()
    c.drop()
    s.wait_log("detached")
    again = s.connect(token="tok-a").ready(resumeSessionId=c.session_id)
    os.kill(s.runner(c), signal.SIGKILL)
    again.wait_closed()
    poll(lambda: "session-ended" in log.read_text())
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
    poll(lambda: log.exists() and "session-opened" in log.read_text())
    assert (directory / "old").read_text() == before


@pytest.mark.parametrize("required", ["yes", "no"])
def test_a_log_that_cannot_be_written(configured, user, directory, required):
    """/dev/full is a full disk."""
    s = configured(configuration(user, "/dev/full", f"required = {required}\n"))
    c = s.connect(token="tok-a")
    if required == "yes":
        code, message = c.error("initialize", {"clientName": "x"})
        assert code == -32603 and "the audit log cannot be written" in message
    else:
        assert c.ready().run("x", ["/bin/echo", "in"]).stdout == "in\n"
    s.wait_log("audit log /dev/full: No space left on device")


@pytest.mark.parametrize("section, words", [
    ("", "file is missing"), ("file = audit\n", "is not an absolute path"), ("file = /none/such\n", "/none/such: No such file"),
    ("file = /tmp\n", "Is a directory"), ("file = /dev/null\nrequired = maybe\n", "is neither yes nor no")])
def test_what_is_refused(mode, user, directory, section, words):
    from test_config import check
    path = directory / "execd.conf"
    path.write_text(f"[audit]\n{section}")
    code, _, err = check(mode, user, path)
    assert code == 3 and words in err, err
