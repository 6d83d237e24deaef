# SPDX-License-Identifier: ISC
"""Sessions: detach, resume, and what outlives a connection (section 5.4)."""
import base64
import os
import re

import pytest
from conftest import digest, is_alive, pids_with, poll
from test_config import check


def resume(server, session_id):
    """As the real client: again until the old connection is noticed to be gone."""
    c = server.connect()

    def attempt():
        m = c.request("initialize", {"clientName": "again", "resumeSessionId": session_id})
        if "result" in m:
            return m["result"]
        assert m["error"] == {"code": -32010,
                              "message": f"session {session_id} is already attached to another connection"}

    r = poll(attempt, what="resume")
    assert r["sessionId"] == session_id and r["environmentInfo"]["shell"]
    c.session_id = session_id
    return c


def read_all(c, id, after=0):
    r = c.call("process/read", {"processId": id, "afterSeq": after})
    return r, [(x["seq"], base64.b64decode(x["chunk"])) for x in r["chunks"]]


@pytest.mark.parametrize("end", ["close", "drop", "violation"])
def test_a_process_survives_its_connection(server, directory, end):
    a = server.ready()
    a.sh("p", f"echo one; while [ ! -e {directory}/go ]; do sleep 0.1; done; echo two; exit 3")
    a.wait_output("p", "one")
    {"close": a.close, "drop": a.drop, "violation": lambda: a.notify("foo")}[end]()
    b = resume(server, a.session_id)
    assert b.error("process/read", {"processId": "p"})[1] == "client must send initialized before using exec methods"
    b.notify("initialized")
    r, chunks = read_all(b, "p")
    assert chunks == [(1, b"one\n")] and not r["exited"]
    (directory / "go").touch()
    f = b.finished("p")
    assert (f.stdout, f.code, f.seqs) == ("two\n", 3, [2, 3, 4])


def test_what_happens_detached_can_be_read(server, directory):
    a = server.ready()
    a.sh("p", f"while [ ! -e {directory}/go ]; do sleep 0.1; done; seq 1 1000; exit 5")
    a.drop()
    (directory / "go").touch()
    b = resume(server, a.session_id)
    b.notify("initialized")
    r = b.call("process/read", {"processId": "p", "waitMs": 10000})
    while not r["closed"]:
        r = b.call("process/read", {"processId": "p", "afterSeq": r["nextSeq"] - 1, "waitMs": 10000})
    _, chunks = read_all(b, "p")
    assert b"".join(c for _, c in chunks).decode() == "".join(f"{i}\n" for i in range(1, 1001))
    assert r["exitCode"] == 5


def test_an_attached_session_is_refused_and_nothing_changes(server):
    a = server.ready()
    b = server.connect()
    assert b.error("initialize", {"clientName": "x", "resumeSessionId": a.session_id}) == \
        (-32010, f"session {a.session_id} is already attached to another connection")
    upper = a.session_id.upper()
    assert b.error("initialize", {"clientName": "x", "resumeSessionId": upper}) == \
        (-32600, f"unknown session id {upper}")
    assert a.call("environment/status") == {"status": "ready"}
    assert b.initialize()["sessionId"] != a.session_id


def test_write_ids_survive_resume(server):
    a = server.ready()
    a.start("p", ["/bin/cat"], pipeStdin=True)
    a.write("p", "once\n", "id")
    a.wait_output("p", "once")
    a.drop()
    b = resume(server, a.session_id)
    b.notify("initialized")
    assert b.write("p", "once\n", "id") == {"status": "accepted"}
    b.write("p", "end\n", "other")
    b.wait_output("p", "end\n")
    assert b.output("p") == b"end\n"


def test_a_waiting_read_does_not_delay_detaching(server):
    a = server.ready()
    a.sh("p", "sleep 100")
    a.post("process/read", {"processId": "p", "waitMs": 60000})
    a.call("environment/status")
    a.drop()
    b = resume(server, a.session_id)
    b.notify("initialized")
    assert b.terminate("p") is True


def test_sessions_do_not_share_process_ids(server):
    a, b = server.ready(), server.ready()
    a.sh("same", "sleep 100")
    assert b.error("process/read", {"processId": "same"}) == (-32600, "unknown process id same")
    assert b.terminate("same") is False
    assert b.run_sh("same", "exit 4").code == 4
    assert a.terminate("same") is True


DAEMONS = ("trap '' TERM HUP INT; setsid sh -c 'trap \"\" TERM; sleep {0}; sleep {0}' & "
           "(setsid sh -c '(sleep {0} &)' &); sh -c 'kill -STOP $$; sleep {0}' & echo up; sleep {0}; sleep {0}")


def test_the_end_of_a_session_leaves_nothing(spawn):
    """After detached-ttl: TERM, then KILL; setsid, double forks and stopped ones included."""
    s = spawn("--detached-ttl", "300ms")
    a = s.ready()
    marker = f"43{os.getpid()}.{s.mode == 'root':d}"
    a.sh("p", DAEMONS.format(marker))
    a.sh("tty", DAEMONS.format(marker), tty=True)
    a.wait_output("p", "up")
    a.wait_output("tty", "up")
    poll(lambda: len(pids_with(marker)) >= 6, what="the daemons")
    a.drop()
    s.wait_log("not resumed within 300 ms")
    poll(lambda: not pids_with(marker), what="end of everything")
    s.wait_log("ended")
    b = s.connect()
    assert b.error("initialize", {"clientName": "x", "resumeSessionId": a.session_id}) == \
        (-32600, f"unknown session id {a.session_id}")


def test_a_resumed_session_does_not_end(spawn):
    s = spawn("--detached-ttl", "500ms")
    a = s.ready()
    a.sh("p", "sleep 100")
    a.drop()
    b = resume(s, a.session_id)
    b.notify("initialized")
    c = s.ready()
    c.drop()
    s.wait_log("not resumed within 500 ms")     # the other one's time is over, ours is not
    assert b.terminate("p") is True


def test_a_session_that_was_never_initialized_can_be_resumed(server):
    a = server.connect()
    a.initialize()
    a.drop()
    b = resume(server, a.session_id)
    b.notify("initialized")
    assert b.call("environment/status") == {"status": "ready"}


def test_session_ids_are_random(server):
    ids = {server.ready().session_id for _ in range(20)}
    assert len(ids) == 20
    assert all(re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", i) for i in ids)
    assert is_alive(server.frontend())


@pytest.mark.parametrize("tag, said", [("", ""), ("host-tag = build-7.example\n", " (host build-7.example)"),
                                       ("host-tag = %H\n", f" (host {os.uname().nodename})")])
def test_an_unknown_session_names_its_host_if_told(configured, user, tag, said):
    """Only to those who were let in, for nobody else can ask."""
    s = configured(f"[listener l]\naddress = ws://127.0.0.1:0\n{tag}[identity a]\nuser = {user.pw_name}\n"
                   f"token-sha256 = {digest('t')}\n")
    id = "00000000-0000-4000-8000-000000000000"
    for member in "resumeSessionId", "watchSessionId":
        c = s.connect(token="t")
        assert c.error("initialize", {"clientName": "x", member: id}) == (-32600, f"unknown session id {id}{said}")


def test_a_host_tag_is_one_word(mode, user, directory):
    path = directory / "execd.conf"
    for tag in "two words", "a(b", "x" * 64, "%h":
        path.write_text(f"[listener l]\naddress = ws://127.0.0.1:0\nhost-tag = {tag}\n[identity a]\n"
                        f"user = {user.pw_name}\ntoken-sha256 = {digest('t')}\n")
        code, _, err = check(mode, user, path, "-t")
        assert code == 3 and "is neither %H nor up to 63 letters" in err, (tag, code, err)
