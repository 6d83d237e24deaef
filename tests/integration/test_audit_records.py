# SPDX-License-Identifier: ISC
"""What stands in the audit log (execd-audit(5)): commands without their
secrets, how they ended and at which limit, operations on files, requests."""
import json
import os
import shlex
import time

import pytest
from conftest import digest, lines_of, missing_layers, poll
from execd_client import b64
from test_groups import is_version_1
from test_http import Origin

KEYS = {"file", "syslog", "journal", "required", "files", "redact-names", "redact-values"}


def configuration(user, log, *more):
    """Further lines are keys of the audit section, else of the identity."""
    audit = [line for line in more if line.split(" ")[0] in KEYS]
    own = [line for line in more if line not in audit]
    return "\n".join(["[listener main]", "address = ws://127.0.0.1:0", "[identity a]", f"user = {user.pw_name}",
                      "sandbox-allow-unsandboxed = yes", "sandbox-max-profile = full", f"token-sha256 = {digest('tok-a')}",
                      *own, "[audit]", f"file = {log}", *audit, ""])


def events(log, event=None):
    found = [json.loads(line) for line in lines_of(log)]
    return [e for e in found if event in (None, e["event"])]


@pytest.fixture
def audited(configured, user, directory):
    """audited(*lines): a client of a server with such a configuration, and its log."""
    def start(*more):
        log = directory / "audit.jsonl"
        s = configured(configuration(user, log, *more))
        return s.connect(token="tok-a").ready(), log
    return start


def requests(log, n):
    """Records of requests: the runner reports one before it does it, and the broker writes it when it is there."""
    return poll(lambda: (found := events(log, "http-request")) and len(found) >= n and found, what=f"record {n}")


def exited(log, process):
    def find():
        return [e for e in events(log, "process-exited") if e["process"] == process]
    return poll(find, what=f"record of {process}")[0]


def started(log, process):
    return next(e for e in events(log, "process-started") if e["process"] == process)


# --- secrets ---------------------------------------------------------------

def test_secrets_are_taken_out_and_counted(audited):
    c, log = audited("redact-names = pin", "redact-values = s3cr3t-*")
    argv = ["/bin/true", "--password", "hunter2", "--token=abc123", "curl -H 'Authorization: Bearer xyz789'",
            "https://me:qwerty@host/", "--pin", "9876", "s3cr3t-42", "DB_PASS=letmein"]
    assert c.run("x", argv).code == 0
    exited(log, "x")
    e = started(log, "x")
    assert shlex.split(e["command"]) == [
        "/bin/true", "--password", "[redacted]", "--token=[redacted]", "curl -H 'Authorization: [redacted]'",
        "https://me:[redacted]@host/", "--pin", "[redacted]", "[redacted]", "DB_PASS=[redacted]"]
    assert e["redacted"] == 7
    for secret in ("hunter2", "abc123", "xyz789", "qwerty", "9876", "s3cr3t-42", "letmein"):
        assert secret not in log.read_text()


def test_nothing_to_take_out(audited):
    c, log = audited()
    c.run("x", ["/bin/echo", "plain"])
    exited(log, "x")
    assert (started(log, "x")["redacted"], started(log, "x")["command"]) == (0, "/bin/echo plain")


def test_a_command_that_grows_when_it_is_escaped(audited):
    """Six bytes for each: the longest line there can be."""
    c, log = audited()
    assert c.run("x", ["/bin/true", "\x01" * 5000]).code == 0
    exited(log, "x")
    e = started(log, "x")
    assert e["commandCut"] and e["command"].startswith("/bin/true '\x01\x01") and len(e["command"]) == 4095


@pytest.mark.parametrize("length", [1023, 1024])
def test_a_long_working_directory(audited, directory, length):
    c, log = audited()
    cwd = (str(directory) + ("/" + "d" * 98) * 11)[:length]
    os.makedirs(cwd)
    c.run("x", ["/bin/true"], cwd="file://" + cwd)
    exited(log, "x")
    assert (started(log, "x")["cwd"], started(log, "x")["cwdCut"]) == (cwd[:1023], length > 1023)


# --- how a command ended ---------------------------------------------------

def test_what_a_command_used(audited):
    c, log = audited()
    c.run_sh("x", "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; head -c 100000 /dev/zero; echo e >&2; exit 7")
    e = exited(log, "x")
    assert (e["code"], e["outputBytes"], e["terminated"], e["sandboxDenied"]) == (7, 100002, False, False)
    assert e["userMs"] + e["systemMs"] > 0 and e["durationMs"] >= 1 and e["maxRssBytes"] > 100000
    assert "killedBy" not in e and "signal" not in e and e["memoryKills"] == e["forksDenied"] == 0


def test_who_ended_it(audited):
    c, log = audited("max-file-size = 64K")
    c.sh("client", "sleep 1000")
    c.terminate("client")
    assert (exited(log, "client")["killedBy"], exited(log, "client")["signal"]) == ("client", 9)
    c.sh("asked", "sleep 1000")
    c.call("process/terminate", {"processId": "asked", "mode": "graceful"})
    assert (exited(log, "asked")["killedBy"], exited(log, "asked")["signal"]) == ("client", 15)
    c.sh("interrupted", "exec sleep 1000")
    c.call("process/signal", {"processId": "interrupted", "signal": "interrupt"})
    assert (exited(log, "interrupted")["killedBy"], exited(log, "interrupted")["signal"]) == ("client", 2)
    c.run_sh("signal", "kill -TERM $$")
    assert (exited(log, "signal")["killedBy"], exited(log, "signal")["signal"]) == ("signal", 15)
    c.start("timeout", ["/bin/sleep", "1000"], timeoutMs=50)
    assert exited(log, "timeout")["killedBy"] == "timeout"
    c.sh("size", f"exec head -c 100000 /dev/zero > {log.parent}/too-big")
    assert (exited(log, "size")["killedBy"], exited(log, "size")["signal"]) == ("max-file-size", 25)


def test_at_the_end_of_the_session(audited):
    c, log = audited("session-deadline = 1s")
    c.sh("x", "sleep 1000")
    c.wait_closed()
    assert exited(log, "x")["killedBy"] == "session-end"
    ended = poll(lambda: events(log, "session-ended"), what="its end")[0]
    assert ended["reason"] == "its session-deadline was reached"


def test_the_time_a_processor_may_take(audited):
    c, log = audited("max-cpu-time = 1s")
    c.sh("x", "while :; do :; done")
    c.finished("x", 60)
    assert exited(log, "x")["killedBy"] == "max-cpu-time", exited(log, "x")
    assert exited(log, "x")["signal"] == 24
    c.sh("stubborn", "trap '' XCPU; while :; do :; done")
    c.finished("stubborn", 60)
    assert (exited(log, "stubborn")["killedBy"], exited(log, "stubborn")["signal"]) == ("max-cpu-time", 9)


def test_the_deadline_of_commands(audited):
    c, log = audited("command-deadline = 300ms")
    c.sh("x", "trap '' TERM INT; sleep 1000 & sleep 1000")
    c.sh("daemon", "setsid sleep 1000 & exit 0")
    e = c.exited("x")
    assert (e["exitCode"], e["timedOut"], e["killedBy"]) == (137, True, "command-deadline")
    assert (exited(log, "x")["killedBy"], exited(log, "x")["signal"]) == ("command-deadline", 9)
    c.finished("x"), c.finished("daemon")
    assert c.exited("daemon")["exitCode"] == 0 and "timedOut" not in c.exited("daemon")
    # The client's own is earlier, and it is told so.
    c.start("own", ["/bin/sleep", "1000"], timeoutMs=50)
    assert "killedBy" not in c.exited("own") and exited(log, "own")["killedBy"] == "timeout"
    assert c.run("quick", ["/bin/echo", "in"]).stdout == "in\n"


def need_groups(mode, user):
    if mode == "user" or any("control group" in line for line in missing_layers(mode, user)):
        pytest.skip("LIMITS OF MEMORY AND PROCESSES ARE NOT TESTED: no control groups here")


def test_out_of_memory(audited, mode, user):
    need_groups(mode, user)
    c, log = audited("command-memory-max = 64M")
    eat = ["/usr/bin/python3", "-c", "x = bytearray(256 << 20)"]
    c.run("itself", eat)
    e = exited(log, "itself")
    # Version 2 kills all of them together, and the kernel counts the first one twice then.
    together = not is_version_1("memory")
    assert (e["killedBy"], e["signal"]) == ("memory", 9) and 1 <= e["memoryKills"] <= 1 + together
    assert [x["limit"] for x in events(log, "limit-acted")] == ["killed: command-memory-max = 64M of identity a"]
    c.run_sh("child", shlex.join(eat) + "; exit 4")
    e = exited(log, "child")
    if together:
        assert (e["killedBy"], e["signal"]) == ("memory", 9) and 2 <= e["memoryKills"] <= 3
    else:
        assert (e["code"], e["memoryKills"]) == (4, 1) and "killedBy" not in e
    c.run("after", ["/bin/true"])
    assert exited(log, "after")["memoryKills"] == 0


def test_too_many_processes(audited, mode, user):
    need_groups(mode, user)
    c, log = audited("command-tasks-max = 5")
    c.run_sh("x", "for i in 1 2 3 4 5 6 7 8 9; do sleep 3 & done; wait")
    assert exited(log, "x")["forksDenied"] >= 1
    told, = [x for x in events(log, "limit-acted") if x["process"] == "x"]
    assert told["limit"].startswith("limit: command-tasks-max = 5 of identity a: ")
    c.run("after", ["/bin/true"])
    assert exited(log, "after")["forksDenied"] == 0


def test_the_first_protocol_version_too(audited):
    c, log = audited()
    r = c.call("command/exec", {"argv": ["/bin/sh", "-c", "exit 6"], "cwd": "/tmp", "env": {}, "tty": False})
    assert exited(log, r["sessionId"])["code"] == 6


def test_what_is_asked_and_enforced(audited, sandboxes):
    c, log = audited()
    c.run("none", ["/bin/true"])
    exited(log, "none")
    assert started(log, "none")["asked"] is started(log, "none")["enforced"] is None
    policy = {"permissions": {"type": "managed", "file_system": {"type": "restricted", "entries": [
        {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"}]}, "network": "restricted"},
        "cwd": "file:///tmp", "workspaceRoots": ["file:///tmp"], "windowsSandboxLevel": "disabled"}
    m = c.start("sandboxed", ["/bin/true"], sandbox=policy)
    assert "result" in m, m
    exited(log, "sandboxed")
    e = started(log, "sandboxed")
    assert e["asked"] == {"type": "managed", "fileSystem": "restricted", "network": "restricted"}
    assert e["enforced"] == {"fileSystem": "restricted", "network": "restricted"} and e["sandboxed"]


# --- operations on files, and requests -------------------------------------

def use_files(c, directory):
    at = f"file://{directory}"
    c.call("fs/writeFile", {"path": f"{at}/a", "dataBase64": b64("x")})
    c.call("fs/readFile", {"path": f"{at}/a"})
    c.call("fs/getMetadata", {"path": f"{at}/a"})
    c.call("fs/copy", {"sourcePath": f"{at}/a", "destinationPath": f"{at}/b", "recursive": False})
    c.call("fs/symlink", {"path": f"{at}/l", "target": "elsewhere"})
    c.call("fs/open", {"handleId": "r", "path": f"{at}/a"})
    c.call("fs/open", {"handleId": "w", "path": f"{at}/c", "mode": "replace"})
    c.call("fs/writeBlock", {"handleId": "w", "offset": 0, "chunk": b64("x")})
    c.call("fs/remove", {"path": f"{at}/b"})


WRITES = ["fs/writeFile", "fs/copy", "fs/symlink", "fs/open", "fs/remove"]


@pytest.mark.parametrize("lines, expected", [
    ((), []),
    (("files = writes",), WRITES),
    (("files = all",), ["fs/writeFile", "fs/readFile", "fs/getMetadata", "fs/copy", "fs/symlink", "fs/open", "fs/open",
                        "fs/remove"]),
    (("files = all", "audit-files = writes"), WRITES),
    (("audit-files = writes",), WRITES)])
def test_files(audited, directory, lines, expected):
    c, log = audited(*lines)
    use_files(c, directory)
    # On its way before it is answered: the broker may not have read all of it.
    poll(lambda: len(events(log, "file-operation")) >= len(expected), what="records")
    found = events(log, "file-operation")
    assert [e["operation"] for e in found] == expected
    by = {e["operation"]: e for e in found}
    if expected:
        assert by["fs/copy"]["path"] == f"{directory}/a" and by["fs/copy"]["destination"] == f"{directory}/b"
        assert by["fs/symlink"]["target"] == "elsewhere" and not by["fs/copy"]["sandboxed"]
        assert by["fs/writeFile"]["identity"] == "a" and not by["fs/writeFile"]["pathCut"]


def test_requests(audited):
    c, log = audited("files = writes")
    origin = Origin()
    c.call("http/request", {"method": "GET", "requestId": "1",
                            "url": origin.url("/p?access_token=t0k&x=1").replace("http://", "http://me:pw@")})
    e, = requests(log, 1)
    assert e["method"] == "GET" and e["redacted"] == 2 and not e["urlCut"]
    assert e["url"] == origin.url("/p?access_token=[redacted]&x=1").replace("http://", "http://me:[redacted]@")
    c.request("http/request", {"method": "GET", "requestId": "2", "url": origin.url("/p\0q")})
    assert [(e["url"], e["urlCut"]) for e in requests(log, 2)[1:]] == [(origin.url("/p"), True)]
    for method in "M" * 31, "M" * 32:
        c.request("http/request", {"method": method, "requestId": method, "url": origin.url("/p")})
    assert [(e["method"], e["methodCut"]) for e in requests(log, 4)] == [
        ("GET", False), ("GET", False), ("M" * 31, False), ("M" * 31, True)]


def test_many_operations_are_all_on_record(audited, directory):
    c, log = audited("files = all")
    for i in range(2000):
        c.post("fs/getMetadata", {"path": f"file://{directory}/{i}"}, id=f"m{i}")
    c.answer("m1999", 60)
    poll(lambda: len(events(log, "file-operation")) >= 2000, what="records")
    assert [e["path"] for e in events(log, "file-operation")] == [f"{directory}/{i}" for i in range(2000)]


@pytest.mark.parametrize("key, value, words", [
    ("files", "some", "`some` is not none, writes or all"),
    ("redact-names", " ".join("abcdefghijklmnopqrstuvwxyz1234567"), "redact-names: more than 32 patterns"),
    ("redact-values", "x" * 61, "is longer than 60 characters"),
    ("syslog", "/none/such", "/none/such: No such file"),
    ("journal", "journal", "is not an absolute path")])
def test_what_is_refused(mode, user, directory, key, value, words):
    from test_config import check
    path = directory / "execd.conf"
    path.write_text(f"[audit]\nfile = /dev/null\n{key} = {value}\n")
    code, _, err = check(mode, user, path)
    assert code == 3 and words in err, err


# --- how fast ---------------------------------------------------------------

def test_output_is_slowed_and_never_cut(audited):
    """Both commands of the session together; what is quick is not held up."""
    c, log = audited("output-rate = 1M")
    began = time.monotonic()
    assert c.run("first", ["/bin/echo", "in"]).stdout == "in\n"
    c.sh("a", "head -c 2000000 /dev/zero; echo e >&2")
    c.sh("b", "head -c 2000000 /dev/zero", tty=False)
    assert len(c.finished("a", 60).stdout) == len(c.finished("b", 60).stdout) == 2000000
    took = time.monotonic() - began
    assert 2.5 < took < 20, "four megabytes, the first of them at once"
    assert exited(log, "a")["outputBytes"] == 2000002


def test_output_is_slowed_while_nobody_is_attached(configured, user, directory):
    s = configured(configuration(user, directory / "audit.jsonl", "output-rate = 64K"))
    c = s.connect(token="tok-a").ready()
    c.sh("x", f"head -c 300000 /dev/zero; : > {directory}/done")
    c.drop()
    s.wait_log("detached")
    again = s.connect(token="tok-a").ready(resumeSessionId=c.session_id)
    assert not (directory / "done").exists()
    again.terminate("x")
