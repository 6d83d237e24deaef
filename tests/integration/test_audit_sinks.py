# SPDX-License-Identifier: ISC
"""Where records go: file, syslog, journal; what happens when they do not get
there (execd-audit(5), execd.conf(5))."""
import array
import fcntl
import itertools
import json
import os
import re
import socket
import struct
import threading

import pytest
from conftest import digest, lines_of, poll
from execd_client import Closed
from test_listeners import get

SEALS = 0x0f  # F_SEAL_SEAL | SHRINK | GROW | WRITE
F_GET_SEALS = 1034


class Receiver:
    """A datagram socket that stands in for a logger's, and what came."""

    def __init__(self, path):
        self.path = path
        self.got = []
        self.seals = []
        self.came = threading.Condition()
        self.open()

    def open(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(str(self.path))
        os.chmod(self.path, 0o666)
        threading.Thread(target=self._read, args=(self.sock,), daemon=True).start()

    def close(self):
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()
        self.path.unlink()

    def _read(self, sock):
        try:
            while True:
                data, control, _, _ = sock.recvmsg(1 << 20, 64)
                for level, kind, value in control:
                    assert (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)
                    fd, = array.array("i", value[:4])
                    self.seals.append(fcntl.fcntl(fd, F_GET_SEALS))
                    data = os.pread(fd, 1 << 20, 0)
                    os.close(fd)
                if not data:
                    return
                with self.came:
                    self.got.append(data)
                    self.came.notify_all()
        except OSError:
            pass

    def wait(self, probe, timeout=10):
        with self.came:
            assert self.came.wait_for(lambda: any(probe(d) for d in self.got), timeout), self.got[-3:]
            return next(d for d in self.got if probe(d))


@pytest.fixture
def receiver(directory):
    r = Receiver(directory / "log.sock")
    yield r
    if r.path.exists():
        r.close()


def configuration(user, *audit):
    return "\n".join(["[listener main]", "address = ws://127.0.0.1:0", "[identity a]", f"user = {user.pw_name}",
                      "sandbox-allow-unsandboxed = yes", f"token-sha256 = {digest('tok-a')}", "[limits]", "detached-ttl = 200ms",
                      "[audit]", *audit, ""])


def parse_syslog(data):
    """RFC 3164 section 4.1 as syslog(3) and every syslog daemon have it."""
    m = re.fullmatch(rb"<(\d{1,3})>(\w{3} [ \d]\d \d\d:\d\d:\d\d) (\S+?)\[(\d+)\]: (.*)", data, re.S)
    assert m, data
    return int(m[1]) >> 3, int(m[1]) & 7, m[3].decode(), int(m[4]), m[5]


def parse_journal(data):
    """https://systemd.io/JOURNAL_NATIVE_PROTOCOL"""
    fields = {}
    while data:
        line, data = data.split(b"\n", 1)
        if b"=" in line:
            name, value = line.split(b"=", 1)
        else:
            name = line
            size, = struct.unpack("<Q", data[:8])
            value, end, data = data[8:8 + size], data[8 + size:9 + size], data[9 + size:]
            assert end == b"\n"
        assert re.fullmatch(rb"[A-Z][A-Z0-9_]*", name), name
        fields[name.decode()] = value
    return fields


def test_syslog(configured, user, receiver):
    s = configured(configuration(user, f"syslog = {receiver.path}"))
    c = s.connect(token="tok-a").ready()
    assert c.run("x", ["/bin/echo", "é\n"]).code == 0
    data = receiver.wait(lambda d: b"process-exited" in d)
    facility, severity, program, pid, text = parse_syslog(data)
    assert (facility, severity, program, pid) == (10, 6, "execd", s.broker)
    assert json.loads(text)["event"] == "process-exited"
    assert [json.loads(parse_syslog(d)[4])["event"] for d in receiver.got] == [
        "granted", "session-opened", "process-started", "process-exited"]
    assert not any(b"\n" in d for d in receiver.got), "one line each"


def test_journal(configured, user, receiver):
    s = configured(configuration(user, f"journal = {receiver.path}"))
    c = s.connect(token="tok-a").ready()
    c.run("a\nb", ["/bin/true"])
    fields = parse_journal(receiver.wait(lambda d: b"process-exited" in d))
    record = json.loads(fields["MESSAGE"])
    assert record["event"] == "process-exited" and record["code"] == 0
    assert (fields["PRIORITY"], fields["SYSLOG_FACILITY"], fields["SYSLOG_IDENTIFIER"]) == (b"6", b"10", b"execd")
    assert fields["EXECD_EVENT"] == b"process-exited" and fields["EXECD_IDENTITY"] == b"a"
    assert fields["EXECD_SESSION"].decode() == c.session_id[:8] and fields["EXECD_PROCESS"] == b"a\nb"
    assert receiver.seals == [], "small ones come as they are"


def test_a_large_record_comes_to_the_journal_in_a_sealed_memfd(configured, user, receiver):
    s = configured(configuration(user, f"journal = {receiver.path}"))
    c = s.connect(token="tok-a").ready()
    c.run("x", ["/bin/true", "\x01" * 4000])
    fields = parse_journal(receiver.wait(lambda d: b"process-started" in d))
    assert json.loads(fields["MESSAGE"])["command"] == "/bin/true '" + "\x01" * 4000 + "'"
    assert receiver.seals == [SEALS]


def test_all_of_them_at_once(configured, user, receiver, directory):
    other = Receiver(directory / "other.sock")
    log = directory / "audit.jsonl"
    s = configured(configuration(user, f"file = {log}", f"syslog = {receiver.path}", f"journal = {other.path}"))
    s.connect(token="tok-a").ready()
    receiver.wait(lambda d: b"session-opened" in d)
    other.wait(lambda d: b"session-opened" in d)
    lines = lines_of(log)
    assert [parse_syslog(d)[4].decode() for d in receiver.got] == lines
    assert [parse_journal(d)["MESSAGE"].decode() for d in other.got] == lines
    other.close()


def test_another_receiver_behind_the_same_path(configured, user, receiver):
    """A logger was started anew: nothing is lost."""
    s = configured(configuration(user, f"syslog = {receiver.path}"))
    s.connect(token="tok-a").ready()
    receiver.wait(lambda d: b"session-opened" in d)
    receiver.close()
    receiver.open()
    c = s.connect(token="tok-a").ready()
    receiver.wait(lambda d: b"session-opened" in d and c.session_id[:8].encode() in d)
    assert "audit log" not in s.log


def test_what_is_lost_is_counted(configured, user, receiver):
    s = configured(configuration(user, f"journal = {receiver.path}", "required = no"))
    receiver.close()
    c = s.connect(token="tok-a").ready()
    assert c.run("x", ["/bin/echo", "in"]).stdout == "in\n"
    s.wait_log(f"audit log, journal {receiver.path}: No such file or directory")
    receiver.open()
    lost = json.loads(parse_journal(receiver.wait(lambda d: b"records-lost" in d))["MESSAGE"])
    s.wait_log(f"works again, {lost['lost']} records are missing")
    assert s.log.count("No such file or directory") == 1, "said once"
    c.run("y", ["/bin/true"])
    receiver.wait(lambda d: b"process-exited" in d and b'"y"' in d)
    records = [parse_journal(d)["MESSAGE"] for d in receiver.got]
    assert any(b"records-lost" in r for r in records[:2]), "before or after the record that found it works"
    # x may have exited before the receiver came back, or after.
    assert lost["lost"] + len(records) - 1 == 6, "granted, opened, twice started and exited"


def test_a_receiver_that_is_stuck_does_not_stop_execd(configured, user, directory):
    """Its queue is full: records wait, nothing else does."""
    path = directory / "stuck.sock"
    stuck = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    stuck.bind(str(path))
    os.chmod(path, 0o666)
    s = configured(configuration(user, f"syslog = {path}", "required = no"))
    fill = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    fill.setblocking(False)
    fill.connect(str(path))
    with pytest.raises(BlockingIOError):
        while True:
            fill.send(b"x")
    clients = [s.connect(token="tok-a").ready() for _ in range(5)]
    assert clients[4].run("x", ["/bin/echo", "in"]).stdout == "in\n"
    s.wait_log(f"audit log, syslog {path}: Resource temporarily unavailable")
    stuck.close()


@pytest.fixture
def small_disk(mode, directory):
    if mode == "user":
        pytest.skip("a disk that gets full needs root")
    at = directory / "disk"
    at.mkdir()
    assert os.system(f"mount -t tmpfs -o size=64k none {at}") == 0
    yield at
    assert os.system(f"umount -l {at}") == 0


def test_a_disk_that_is_full_for_a_while(configured, user, small_disk):
    """Required: what runs goes on, nothing new is started until there is room;
    then all is as before, and the gap is on record."""
    log = small_disk / "audit.jsonl"
    s = configured(configuration(user, f"file = {log}", "files = writes"))
    first, other = s.connect(token="tok-a").ready(), s.connect(token="tok-a").ready()
    other.sh("runs", "read line; echo $line", pipeStdin=True)
    (small_disk / "filler").write_bytes(b"x" * (48 << 10))
    with pytest.raises((Closed, AssertionError, TimeoutError)):
        for i in range(100):
            first.run(f"x{i}", ["/bin/true", "y" * 3000])
    assert first.closed is None, "a command that is not on record ends, and not its session"
    s.wait_log(f"audit log {log}: No space left on device")
    refused = (-32603, "the audit log cannot be written")

    def start(process):
        m = other.start(process, ["/bin/true"])
        return (m["error"]["code"], m["error"]["message"]) if "error" in m else None

    def message(client, method, params):
        return client.request(method, params).get("error", {}).get("message", "")

    # A short record may still fit into the file's last page, when the log is tried again.
    tries = itertools.count()
    assert poll(lambda: start(f"refused{next(tries)}"), what="refusal") == refused
    poll(lambda: message(other, "fs/remove", {"path": "file:///tmp/none"}) == refused[1], what="refusal of a change")
    assert other.call("environment/status") == {"status": "ready"}
    poll(lambda: message(s.connect(token="tok-a"), "initialize", {"clientName": "x"}).endswith(refused[1]),
         what="refusal of a session")
    other.write("runs", "still\n")
    other.wait_output("runs", "still")
    (small_disk / "filler").unlink()
    s.wait_log("works again")
    poll(lambda: start("again") is None, what="room")
    poll(lambda: '"again"' in log.read_text(), what="its record")
    events = [json.loads(line) for line in lines_of(log)]
    assert [e for e in events if e["event"] == "records-lost"][0]["lost"] >= 1
    s.connect(token="tok-a").ready()


def events(receiver):
    return [json.loads(parse_syslog(d)[4]) for d in receiver.got]


def lag(s):
    return float(re.search(r"^execd_audit_lag_seconds (\S+)$", get(s.urls[1], "/metrics")[1], re.M)[1])


def test_a_logger_that_is_away_for_a_moment(configured, user, receiver):
    """Required: what is started meanwhile runs, and its record comes, in order, when the logger is back."""
    s = configured(configuration(user, f"syslog = {receiver.path}", "[listener op]", "address = ws://127.0.0.1:0", "operate = yes"))
    c = s.connect(token="tok-a").ready()
    receiver.wait(lambda d: b"session-opened" in d)
    assert lag(s) == 0
    receiver.close()
    assert c.run("x", ["/bin/echo", "in"]).stdout == "in\n"
    d = s.connect(token="tok-a").ready()
    assert lag(s) > 0
    receiver.open()
    receiver.wait(lambda r: b"session-opened" in r and d.session_id[:8].encode() in r)
    came = [e["event"] for e in events(receiver)]
    assert [e for e in came if not e.startswith("process-")] == ["granted", "session-opened", "granted", "session-opened"]
    # The client hears of the end at the same time as the broker.
    receiver.wait(lambda r: b"process-exited" in r)
    assert [e["event"] for e in events(receiver) if e["event"].startswith("process-")] == ["process-started", "process-exited"]
    assert "audit log" not in s.log and c.run("y", ["/bin/true"]).code == 0


def test_a_logger_that_stays_away(configured, user, receiver):
    """What cannot be recorded ends, the next start is refused, typed; what is on record runs on, its session too."""
    s = configured(configuration(user, f"syslog = {receiver.path}"))
    c, other = s.connect(token="tok-a").ready(), s.connect(token="tok-a").ready()
    for client in (c, other):
        client.sh("runs", "while read line; do echo $line; done", pipeStdin=True)
    receiver.wait(lambda d: b"process-started" in d and other.session_id[:8].encode() in d)
    receiver.close()
    c.sh("late", "sleep 1000")
    assert c.finished("late").code == 137
    s.wait_log(f"audit log, syslog {receiver.path}: No such file or directory")
    # The broker tells each runner; a start that is there before the word of it goes as `late` did.
    tries = itertools.count()
    error = poll(lambda: c.start(f"refused{next(tries)}", ["/bin/true"]).get("error"), what="refusal")
    assert error == {"code": -32603, "message": "the audit log cannot be written"}
    for client in (c, other):
        client.write("runs", "still\n")
        client.wait_output("runs", "still")
    receiver.open()
    s.wait_log("works again")
    poll(lambda: "result" in c.start("again", ["/bin/true"]), what="a start")
    lost = next(e for e in events(receiver) if e["event"] == "records-lost")
    assert lost["lost"] >= 1
