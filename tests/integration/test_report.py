# SPDX-License-Identifier: ISC
"""What is retained and what is told of it: gaps, head and tail, snapshots, the
list of processes (doc/protocol.md section 17)."""
import base64
import os

import pytest
from conftest import poll


def text(s):
    return base64.b64decode(s)


def read(client, id, **params):
    return client.call("process/read", {"processId": id, **params})


def snapshot(client, id):
    return client.call("process/snapshot", {"processId": id})


def joined(r):
    return b"".join(text(c["chunk"]) for c in r["chunks"])


def numbers(n):
    return "".join(f"{i:09d}\n" for i in range(n)).encode()


def start_numbers(client, id, n, **extra):
    client.run(id, ["/bin/sh", "-c", f"seq -f %09.0f 0 {n - 1}"], **extra)


@pytest.mark.parametrize("head, tail", [(0, 100000), (100000, 0), (7, 12345), (1 << 19, 1 << 19)])
def test_head_and_tail(client, head, tail):
    whole = numbers(300000)
    start_numbers(client, "a", 300000, retention={"headBytes": head, "tailBytes": tail})
    r = read(client, "a")
    gap = r["gap"]
    kept = joined(r)
    assert kept[:head] == whole[:head]
    end = kept[head:]
    assert whole.endswith(end) and len(end) <= max(tail, 65536)
    assert gap["bytes"] + len(kept) == len(whole)
    assert gap["endBytes"] == len(whole) - len(end)
    before = [c["seq"] for c in r["chunks"] if c["seq"] <= gap["afterSeq"]]
    behind = [c["seq"] for c in r["chunks"] if c["seq"] > gap["afterSeq"]]
    assert before == list(range(1, gap["afterSeq"] + 1)) and behind[0] == gap["lastSeq"] + 1
    s = snapshot(client, "a")
    assert text(s["stdout"]) == kept and s["truncated"] is True
    assert s["gaps"] == [{"stream": "stdout", "offset": head, "bytes": gap["bytes"]}]
    assert s["bytesDropped"] == gap["bytes"] and s["bytesWritten"] == len(whole)
    assert s["nextSeq"] == r["nextSeq"]


def test_whole_head_without_a_limit_of_the_tail(client):
    """headBytes alone leaves the rest of the server's mebibyte to the tail."""
    start_numbers(client, "a", 300000, retention={"headBytes": 1000})
    kept = joined(read(client, "a"))
    assert kept[:1000] == numbers(100) and (1 << 20) - 65536 - 1000 <= len(kept) <= 1 << 20
    start_numbers(client, "b", 1000, retention={})
    assert joined(read(client, "b")) == numbers(1000)


def test_a_gap_is_told_only_to_who_misses_it(client):
    start_numbers(client, "a", 300000, retention={"headBytes": 30000, "tailBytes": 200000})
    gap = read(client, "a")["gap"]
    assert "gap" not in read(client, "a", maxBytes=0)
    assert "gap" not in read(client, "a", afterSeq=gap["lastSeq"])
    assert read(client, "a", afterSeq=gap["afterSeq"], maxBytes=0)["gap"] == gap
    assert read(client, "a", afterSeq=gap["lastSeq"] - 1)["gap"] == gap
    start_numbers(client, "b", 10000)
    r = read(client, "b")
    assert sorted(r) == ["chunks", "closed", "exitCode", "exited", "failure", "nextSeq", "sandboxDenied"]


def test_paging_over_a_gap(client):
    start_numbers(client, "a", 300000, retention={"headBytes": 100000, "tailBytes": 300000})
    after, got, missing = 0, b"", 0
    while (page := read(client, "a", afterSeq=after, maxBytes=20000))["chunks"]:
        if "gap" in page:
            missing += page["gap"]["bytes"]
        got += joined(page)
        after = page["nextSeq"] - 1
    assert missing + len(got) == 3000000
    assert got[:100000] + numbers(300000)[100000 + missing:] == got


def test_closed_processes_keep_only_so_much_together(configured, user):
    """Then the oldest lose their output, and nothing else."""
    s = configured(f"[listener a]\naddress = ws://127.0.0.1:0\nallow-unauthenticated = one\n[identity one]\n"
                   f"user = {user.pw_name}\nsandbox-allow-unsandboxed = yes\n[limits]\nretention = 4K\n")
    c = s.ready()
    for i in range(400):
        c.start(f"p{i}", ["/bin/sh", "-c", f"seq -f %09.0f 0 399; exit {i % 9}"],
                **({"retention": {"headBytes": 2000}} if i % 2 else {}))
    for i in range(400):
        c.call("process/wait", {"processId": f"p{i}"})
    kept = [len(joined(read(c, f"p{i}"))) for i in range(400)]
    assert set(kept) == {0, 4000} and not kept[0] and kept[-1] == 4000
    assert 128 * 4096 < sum(kept) <= 256 * 4096
    r = read(c, "p1")
    assert (r["exited"], r["closed"], r["exitCode"], r["chunks"]) == (True, True, 1, [])
    assert (r["gap"]["afterSeq"], r["gap"]["bytes"], r["gap"]["endBytes"]) == (0, 4000, 4000)
    assert r["gap"]["lastSeq"] == r["nextSeq"] - 3 and "gap" not in read(c, "p1", afterSeq=r["gap"]["lastSeq"])
    assert (r := snapshot(c, "p1"))["truncated"] is True and r["stdout"] == "" and r["bytesDropped"] == 4000
    assert "error" in c.start("p1", ["/bin/true"]), "its id is not free"


def test_live_output_is_whole_whatever_is_retained(client):
    r = client.run_sh("a", "seq -f %09.0f 0 299999", retention={"headBytes": 5, "tailBytes": 5})
    assert r.stdout.encode() == numbers(300000)
    assert r.seqs == list(range(1, len(r.seqs) + 1))


def test_gaps_while_nobody_is_attached(spawn, directory):
    s = spawn()
    c = s.ready()
    c.sh("a", f"echo first; while [ ! -e {directory}/go ]; do sleep 0.1; done; seq -f %09.0f 0 299999; echo done",
         retention={"headBytes": 4096, "tailBytes": 100000})
    c.wait_output("a", "first")
    c.drop()
    s.wait_log("detached")
    (directory / "go").touch()
    c = s.ready(resumeSessionId=c.session_id)
    c.call("process/wait", {"processId": "a"})
    r = read(c, "a", afterSeq=1)
    assert r["gap"]["bytes"] + len(joined(r)) == 3000000 + len("done\n")
    assert joined(r).endswith(b"done\n")


def read_all(client, id, after=0):
    """Takes all of its output until it is closed."""
    got = b""
    while True:
        r = read(client, id, afterSeq=after, waitMs=2**64 - 1)
        assert "gap" not in r
        got += joined(r)
        after = r["nextSeq"] - 1
        if r["closed"]:
            return got


def test_output_that_waits_is_not_lost(spawn, directory):
    """However long nobody reads, and whatever is retained. It comes only to who asks for it."""
    s = spawn("--retention", "100K")
    c = s.ready()
    fifo = directory / "fifo"
    os.mkfifo(fifo)
    c.sh("a", f"seq -f %09.0f 0 299999; exec <{fifo}; exit 7", retention={"wait": True})
    c.drop()
    s.wait_log("detached")
    c = s.ready(resumeSessionId=c.session_id)
    assert c.call("process/wait", {"processId": "a", "timeoutMs": 0})["bytesWritten"] <= 100 << 10
    first = read(c, "a", waitMs=2**64 - 1)
    got, after = joined(first), first["nextSeq"] - 1
    assert "gap" not in read(c, "a"), "it was not taken yet"
    while len(got) < 2_000_000:
        r = read(c, "a", afterSeq=after, waitMs=2**64 - 1)
        assert "gap" not in r and len(joined(r)) <= 100 << 10
        got, after = got + joined(r), r["nextSeq"] - 1
    assert read(c, "a")["gap"]["bytes"] > 0, "what was taken is gone, and that is told"
    go = os.open(fifo, os.O_RDWR)   # without waiting for the command, which may wait for the next read
    assert got + read_all(c, "a", after) == numbers(300000)
    os.close(go)
    assert c.output("a") == b"" and c.exited("a")["exitCode"] == 7


def test_output_that_is_held_is_not_lost_with_a_connection(server):
    """What was on its way is read again, and the command waits until the client says that it has it. Others can read what
    arrived."""
    c = server.ready()
    c.sh("a", "seq -f %09.0f 0 299999", retention={"hold": True})
    c.wait(lambda: len(c.output("a")) >= 960 << 10, what="as much as is retained")
    assert c.call("process/wait", {"processId": "a", "timeoutMs": 0})["bytesWritten"] <= 1 << 20
    c.drop()
    server.wait_log(f"session {c.session_id[:8]}: detached")
    c = server.ready(resumeSessionId=c.session_id)
    got, after = b"", 0
    while len(got) < 3_000_000:
        r = read(c, "a", afterSeq=after, waitMs=2**64 - 1)
        assert "gap" not in r
        got, after = got + joined(r), r["nextSeq"] - 1
        assert c.request("process/arrived", {"processId": "a", "bytes": len(got)})["result"] == {}
        assert len(joined(read(c, "a"))) >= min(len(got), 900 << 10), "what arrived is retained as usual"
    assert got == numbers(300000)
    assert c.finished("a").code == 0
    assert c.start("b", ["true"], retention={"wait": True, "hold": True})["error"] == \
        {"code": -32602, "message": "hold excludes wait, headBytes and tailBytes"}
    assert c.request("process/arrived", {"processId": "none", "bytes": 1})["error"]["code"] == -32600


def test_output_that_waits_does_not_hold_up_an_end(client):
    start = {"retention": {"wait": True}}
    client.sh("a", "seq -f %09.0f 0 299999", **start)
    client.terminate("a")
    assert client.finished("a").code == 137
    client.sh("b", "seq -f %09.0f 0 299999", timeoutMs=100, **start)
    assert client.finished("b").code == 137
    assert client.start("c", ["true"], retention={"wait": True, "headBytes": 1})["error"] == \
        {"code": -32602, "message": "wait excludes headBytes and tailBytes"}


def test_who_watches_takes_nothing(spawn):
    s = spawn()
    c = s.ready()
    c.sh("a", "seq -f %09.0f 0 299999", retention={"wait": True})
    watcher = s.ready(watchSessionId=c.session_id)
    last = read(watcher, "a", waitMs=2**64 - 1)["nextSeq"] - 1
    read(watcher, "a", afterSeq=last)
    assert read_all(c, "a") == numbers(300000)


def test_what_has_ended_is_remembered_until_the_client_is_back(spawn):
    s = spawn("--closed-ttl", "300ms")
    c, other = s.ready(), s.ready()
    c.run_sh("a", "echo done; exit 3")
    c.drop()
    s.wait_log(f"session {c.session_id[:8]}: detached")
    other.run_sh("a", "true")
    poll(lambda: "error" in other.request("process/read", {"processId": "a"}), what="end of closed-ttl")
    c = s.ready(resumeSessionId=c.session_id)
    r = read(c, "a")
    assert joined(r) == b"done\n" and r["exitCode"] == 3
    poll(lambda: "error" in c.request("process/read", {"processId": "a"}), what="end of closed-ttl with a client")


def test_retention_has_the_servers_limit(spawn, client):
    for keep in ({"headBytes": 1 << 20, "tailBytes": 1}, {"headBytes": (1 << 20) + 1}, {"tailBytes": 2**64 - 1},
                 {"headBytes": 2**64 - 1, "tailBytes": 2**64 - 1}):
        assert client.start("a", ["true"], retention=keep)["error"] == \
            {"code": -32602, "message": "retention must not exceed 1048576 bytes in all"}
    c = spawn("--retention", "100K").ready()
    start_numbers(c, "a", 300000)
    kept = len(joined(read(c, "a")))
    assert 102400 - 65536 <= kept <= 102400
    assert c.start("b", ["true"], retention={"tailBytes": 102401})["error"]["code"] == -32602


def test_snapshot_keeps_the_streams_apart(client):
    client.run_sh("a", "echo out; echo err >&2; echo out2; exit 2")
    s = snapshot(client, "a")
    assert (text(s["stdout"]), text(s["stderr"]), s["terminal"]) == (b"out\nout2\n", b"err\n", "")
    assert (s["truncated"], s["gaps"], s["running"], s["exitCode"], s["closed"]) == (False, [], False, 2, True)
    client.sh("t", "echo out; echo err >&2; read x", tty=True)
    client.wait_output("t", "err")
    s = snapshot(client, "t")
    assert (s["stdout"], s["stderr"], text(s["terminal"])) == ("", "", b"out\r\nerr\r\n")
    assert (s["running"], s["exitCode"]) == (True, None)
    after = s["nextSeq"] - 1
    client.write("t", "x\n")
    client.finished("t")
    assert joined(read(client, "t", afterSeq=after)) == b"x\r\n"
    assert client.error("process/snapshot", {"processId": "nope"}) == (-32600, "unknown process id nope")


def listed(client, **params):
    return client.call("process/list", params)


def test_list(client):
    assert listed(client) == {"processes": [], "next": None}
    client.run("a", ["/bin/sh", "-c", "exit 3"], arg0="shell")
    client.sh("b", "sleep 100", tty=True)
    a, b = listed(client)["processes"]
    assert (a["processId"], a["argv"], a["argvTruncated"], a["tty"]) == ("a", ["shell", "-c", "exit 3"], False, False)
    assert (a["running"], a["exitCode"], a["closed"], a["signal"]) == (False, 3, True, None)
    assert (b["processId"], b["running"], b["exitCode"], b["tty"]) == ("b", True, None, True)
    assert a["startedAtMs"] <= b["startedAtMs"]
    assert client.run_sh("c", f"kill -0 {b['pid']} && echo there").stdout == "there\n"
    client.terminate("b")


def test_a_long_command_line_is_kept_in_part(client):
    client.run("a", ["/bin/true", "short", "x" * 5000, "y"])
    a, = listed(client)["processes"]
    assert (a["argv"], a["argvTruncated"]) == (["/bin/true", "short"], True)


def test_a_long_list_comes_in_pages(client):
    ids = [f"{i:03d}" + "i" * 100000 for i in range(60)]
    for id in ids:
        client.post("process/start", {"processId": id, "argv": ["/bin/true"], "cwd": "file:///", "env": {},
                                      "tty": False})
    for id in ids:
        client.finished(id)
    found, after, pages = [], 0, 0
    while after is not None:
        page = listed(client, after=after)
        found += [p["processId"] for p in page["processes"]]
        after = page["next"]
        pages += 1
    assert found == ids and pages > 4


def test_the_forgotten_are_not_listed(spawn):
    c = spawn("--closed-ttl", "100ms").ready()
    c.run("a", ["/bin/true"])
    poll(lambda: listed(c)["processes"] == [], what="forgetting")


def test_a_detached_sessions_list_is_there_after_resume(spawn):
    s = spawn()
    c = s.ready()
    c.sh("a", f"sleep 100; : {os.getpid()}")
    c.drop()
    s.wait_log("detached")
    c = s.ready(resumeSessionId=c.session_id)
    assert [p["processId"] for p in listed(c)["processes"]] == ["a"]
