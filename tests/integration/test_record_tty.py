# SPDX-License-Identifier: ISC
"""Recordings of terminals as asciicast v2 (execd.conf(5), record-tty)."""
import base64
import json
import os
import stat

import pytest
from conftest import digest, lines_of, poll

BASE = ["[listener main]", "address = ws://127.0.0.1:0", "[limits]", "detached-ttl = 200ms"]


@pytest.fixture
def recorded(configured, user, directory, mode):
    """recorded(*lines): a server that records, and the directory of recordings."""
    def start(*more, audit=True):
        at = directory / "casts"
        at.mkdir(mode=0o700)
        if mode == "user":
            os.chown(at, user.pw_uid, user.pw_gid)
        lines = BASE + ["[identity a]", f"user = {user.pw_name}", "sandbox-allow-unsandboxed = yes",
                        f"token-sha256 = {digest('tok-a')}", f"record-tty = {at}", *more]
        if audit:
            lines += ["[audit]", f"file = {directory}/audit.jsonl"]
        return configured("\n".join(lines) + "\n"), at
    return start


def read_cast(path):
    """The header and the events of a recording that a player would take."""
    lines = path.read_text(encoding="utf-8").splitlines()
    head, events = json.loads(lines[0]), [json.loads(line) for line in lines[1:]]
    assert head["version"] == 2 and head["width"] > 0 and head["height"] > 0
    last = 0
    for time, code, data in events:
        assert time >= last and code in "oirm" and isinstance(data, str)
        last = time
    return head, events


def records(directory, event):
    text = (directory / "audit.jsonl").read_text()
    return [e for e in map(json.loads, text.splitlines()) if e["event"] == event]


def played(events, code="o"):
    return "".join(data for _, kind, data in events if kind == code)


def the_cast(at, what="a recording"):
    return poll(lambda: sorted(at.iterdir()), what=what)[0]


def test_it_is_what_the_client_got(recorded, directory):
    s, at = recorded()
    c = s.connect(token="tok-a").ready()
    c.sh("x", "stty -echo; echo ready; read line; printf 'gr\\303'; printf '\\274n: %s\\033[0m\\n' \"$line\"; exit 3", tty=True,
         rows=30, cols=100, term="xterm")
    c.wait_output("x", "ready")
    c.call("process/resize", {"processId": "x", "rows": 50, "cols": 132})
    c.write("x", "typed\n")
    assert c.finished("x").code == 3
    cast, = at.iterdir()
    head, events = read_cast(cast)
    assert played(events) == c.output("x").decode() and "grün: typed" in played(events)
    assert (head["width"], head["height"], head["env"]["TERM"]) == (100, 30, "xterm")
    assert head["command"].startswith("/bin/sh -c ") and c.session_id[:8] in head["title"]
    assert [e[2] for e in events if e[1] == "r"] == ["132x50"]
    assert not played(events, "i"), "what is typed only when the operator wants it"
    e, = [json.loads(line) for line in lines_of(directory / "audit.jsonl") if "tty-recorded" in line]
    assert (e["process"], e["file"]) == ("x", str(cast))


def test_whose_it_is(recorded, user, mode):
    """The session's user can do nothing to it where there is another one."""
    s, at = recorded()
    c = s.connect(token="tok-a").ready()
    command = f"cat {at}/*; echo x >> {at}/x; for fd in /proc/1/fd/*; do echo x >> $fd; done; echo done"
    c.sh("x", command if mode == "root" else "echo done", tty=True)
    c.finished("x")
    cast, = at.iterdir()
    st = os.stat(cast)
    assert stat.S_IMODE(st.st_mode) == 0o600 and st.st_uid == (0 if mode == "root" else user.pw_uid)
    _, events = read_cast(cast)
    assert played(events) == c.output("x").decode() and played(events).endswith("done\r\n")
    if mode == "root":
        assert played(events).count("Permission denied") >= 2


def test_what_is_typed(recorded):
    s, at = recorded("record-tty-input = yes")
    c = s.connect(token="tok-a").ready()
    c.sh("x", "echo ready; read line; echo $line", tty=True)
    c.wait_output("x", "ready")
    c.write("x", "häl", "w1")
    c.write("x", "häl", "w1")  # the same again
    c.write("x", "lo\n", "w2")
    c.finished("x")
    _, events = read_cast(the_cast(at))
    assert played(events, "i") == "hällo\n" and played(events) == c.output("x").decode()


def test_terminals_only_and_each_its_own(recorded):
    s, at = recorded(audit=False)
    c = s.connect(token="tok-a").ready()
    c.run("pipe", ["/bin/echo", "no"])
    assert not list(at.iterdir())
    for i in range(20):
        c.post("process/start", {"processId": f"t{i}", "argv": ["/bin/echo", f"number {i}"], "cwd": "file:///", "env": {},
                                 "tty": True})
    for i in range(20):
        assert c.finished(f"t{i}").pty == f"number {i}\r\n"
    assert sorted(played(read_cast(p)[1]) for p in at.iterdir()) == sorted(f"number {i}\r\n" for i in range(20))
    c.start("none", ["/no/such/program"], tty=True)
    assert len(list(at.iterdir())) == 21, "it was to be"


def test_secrets_of_the_command(recorded):
    s, at = recorded(audit=False)
    c = s.connect(token="tok-a").ready()
    c.run("x", ["/bin/true", "--password", "hunter2"], tty=True)
    assert "hunter2" not in the_cast(at).read_text()


def test_invalid_bytes(recorded):
    s, at = recorded()
    c = s.connect(token="tok-a").ready()
    c.run_sh("x", "printf 'a\\377b\\300\\200c\\342\\202'", tty=True)
    _, events = read_cast(the_cast(at))
    assert played(events) == "a\ufffdb\ufffd\ufffdc\ufffd\ufffd"


def test_its_limit(recorded):
    """It ends and says so; the command does not notice."""
    s, at = recorded("record-tty-max = 64K")
    c = s.connect(token="tok-a").ready()
    r = c.run_sh("x", "stty -opost; head -c 200000 /dev/zero | tr '\\0' x; exit 5", tty=True)
    assert (len(r.pty), r.code) == (200000, 5)
    head, events = read_cast(the_cast(at))
    assert events[-1][1:] == ["m", "recording ended: it has reached its limit"]
    assert os.path.getsize(the_cast(at)) <= 64 << 10
    s.wait_log("recording of a terminal ended: File too large")


def test_its_limit_where_it_is_required(recorded, directory):
    s, at = recorded("record-tty-max = 64K", "record-tty-required = yes")
    c = s.connect(token="tok-a").ready()
    c.sh("x", "stty -opost; head -c 200000 /dev/zero | tr '\\0' x; sleep 1000", tty=True)
    assert c.finished("x").code == 137
    log = directory / "audit.jsonl"
    poll(lambda: "process-exited" in log.read_text(), what="its end")
    assert json.loads(log.read_text().splitlines()[-1])["killedBy"] == "record-tty"


@pytest.mark.parametrize("required", ["yes", "no"])
def test_no_place_to_record(recorded, required):
    s, at = recorded(f"record-tty-required = {required}")
    c = s.connect(token="tok-a").ready()
    at.rmdir()
    m = c.start("x", ["/bin/echo", "in"], tty=True)
    if required == "yes":
        assert m["error"] == {"code": -32603, "message": "the terminal cannot be recorded: No such file or directory"}
    else:
        assert c.finished("x").pty == "in\r\n"
    s.wait_log("recording a terminal: No such file or directory")
    assert c.run("y", ["/bin/echo", "in"]).stdout == "in\n"


def test_in_the_first_protocol_version(recorded):
    s, at = recorded()
    c = s.connect(token="tok-a").ready()
    id = c.call("command/exec", {"argv": ["/bin/echo", "in"], "cwd": "/tmp", "env": {}, "tty": True})["sessionId"]
    c.wait(lambda: [m for m in c.messages if m.get("method") == "command/exec/exited" and m["params"]["sessionId"] == id])
    got = b"".join(base64.b64decode(m["params"]["chunk"]) for m in c.messages if m.get("method") == "command/exec/outputDelta")
    assert played(read_cast(the_cast(at))[1]) == got.decode() == "in\r\n"


@pytest.mark.parametrize("value, words", [
    ("casts", "is not an absolute path"), ("/none/such", "No such file"), ("/etc/passwd", "is no directory"),
    ("/tmp", "can be written by others"), ("/etc\nrecord-tty-max = 1K", "must be at least 64K")])
def test_what_is_refused(mode, user, directory, value, words):
    from test_config import check
    if mode == "user" and value.startswith("/etc\n"):
        words = "Permission denied"
    path = directory / "execd.conf"
    path.write_text(f"[identity a]\nuser = {user.pw_name}\nrecord-tty = {value}\n")
    code, _, err = check(mode, user, path)
    assert code == 3 and words in err, err


def test_ids_that_look_alike_are_told_apart(recorded, directory):
    """In each record of a process, whatever its client calls it."""
    s, at = recorded()
    c = s.connect(token="tok-a").ready()
    ids = ["p", "p\0", "p\0a", "x" * 255, "x" * 256, "x" * 300 + "a", "x" * 300 + "b"]
    for id in ids:
        c.sh(id, "exit", tty=True)
        c.finished(id)
    poll(lambda: len(records(directory, "process-exited")) == len(ids), what="all records")
    seen = [[e["process"] for e in records(directory, f)] for f in ("tty-recorded", "process-started", "process-exited")]
    assert seen[0] == seen[1] == seen[2] and len(set(seen[0])) == len(ids), seen
    assert [seen[0][0], seen[0][3]] == [ids[0], ids[3]]
    # A client that knew one of these could not be taken for it.
    c.sh(seen[0][1], "exit")
    assert poll(lambda: records(directory, "process-started")[len(ids):], what="a record")[0]["process"] not in seen[0]
