# SPDX-License-Identifier: ISC
"""execd's own process/ methods (doc/protocol.md section 17): closeStdin, resize, wait."""
import pytest
from conftest import poll
from execd_client import b64

UNKNOWN = (-32600, "unknown process id nope")


def test_capabilities_say_what_is_there(client):
    announced = client.call("environment/info")["capabilities"]
    for name in ("processCloseStdin", "processResize", "processWait"):
        assert announced[name] is True


@pytest.mark.parametrize("method", ["process/closeStdin", "process/wait"])
def test_unknown_process(client, method):
    assert client.error(method, {"processId": "nope"}) == UNKNOWN


def test_close_stdin_comes_behind_every_write(client, directory):
    """More than pipe and queue hold: the end of file waits as the writes do."""
    client.sh("a", f"while [ ! -e {directory}/go ]; do sleep 0.1; done; wc -c", pipeStdin=True)
    chunk = b64(b"a" * 65536)
    ids = [client.post("process/write", {"processId": "a", "chunk": chunk, "writeId": f"x{i}"})
           for i in range(300)]
    assert client.call("process/closeStdin", {"processId": "a"}) == {}
    assert client.call("process/closeStdin", {"processId": "a"}) == {}
    assert client.write("a", "late") == {"status": "stdinClosed"}
    (directory / "go").touch()
    assert client.finished("a").stdout.strip() == str(300 * 65536)
    assert all(client.answer(i)["result"] == {"status": "accepted"} for i in ids)
    assert client.call("process/closeStdin", {"processId": "a"}) == {}, "after its end"


def test_close_stdin_of_a_process_without(client):
    client.sh("a", "sleep 100")
    assert client.call("process/closeStdin", {"processId": "a"}) == {}
    client.terminate("a")


@pytest.mark.parametrize("typed", ["", "line\n", "unfinished"])
def test_close_stdin_of_a_terminal_is_its_end_of_file(client, typed):
    client.sh("a", "stty -echo; echo ready; cat; echo end", tty=True)
    client.wait_output("a", "ready")
    client.write("a", typed)
    assert client.call("process/closeStdin", {"processId": "a"}) == {}
    r = client.finished("a")
    assert r.pty == "ready\r\n" + typed.replace("\n", "\r\n") + "end\r\n"
    assert client.write("a", "x") == {"status": "stdinClosed"}


def test_a_terminal_begins_with_the_size_and_name_it_is_given(client):
    r = client.run_sh("a", "stty size; echo $TERM", tty=True, rows=11, cols=222, term="vt100",
                      env={"PATH": "/usr/bin:/bin", "TERM": "other", "TERMINAL": "x"})
    assert r.pty == "11 222\r\nvt100\r\n"
    r = client.run_sh("b", "stty size; echo ${TERM-none}", tty=True, cols=7)
    assert r.pty == "24 7\r\nnone\r\n"
    assert client.start("c", ["true"], rows=1)["error"] == \
        {"code": -32602, "message": "rows, cols, term and terminalModes need tty"}
    assert client.start("d", ["true"], tty=True, term="a\0b")["error"]["code"] == -32603


READ_ONLY = {"windowsSandboxLevel": "disabled", "permissions": {
    "type": "managed", "network": "restricted", "file_system": {"type": "restricted", "entries": [
        {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"}]}}}
# RFC 4254 section 8: VERASE ^H, VINTR none, ECHO off, IUTF8 on, a speed, a number of nobody, the end
MODES = b64(bytes([3, 0, 0, 0, 8, 1, 0, 0, 0, 255, 53, 0, 0, 0, 0, 42, 0, 0, 0, 1, 128, 0, 0, 150, 0, 150, 1, 2, 3, 4, 0]))


@pytest.mark.parametrize("sandboxed", [False, True], ids=["plain", "sandboxed"])
def test_a_terminal_begins_with_the_modes_it_is_given(client, sandboxed, request):
    more = {}
    if sandboxed:
        request.getfixturevalue("sandboxes")
        more = {"sandbox": READ_ONLY}
    words = client.run_sh("a", "stty -a", tty=True, terminalModes=MODES, **more).pty.replace(";", " ;").split()
    assert "iutf8" in words and "-echo" in words and "icanon" in words and "onlcr" in words
    assert words[words.index("erase") + 2] == "^H" and words[words.index("intr") + 2] == "<undef>"
    assert words[words.index("kill") + 2] == "^U", "as the kernel makes it"
    words = client.run_sh("b", "stty -a", tty=True, **more).pty.replace(";", " ;").split()
    assert "-iutf8" in words and words[words.index("erase") + 2] == "^?"
    assert client.start("c", ["true"], tty=True, terminalModes=b64(b"\3\0\0"))["error"] == \
        {"code": -32602, "message": "terminalModes are cut off"}


def test_a_repeated_start_is_answered_and_not_repeated(spawn, directory):
    s = spawn("--closed-ttl", "300ms")
    c = s.ready()
    script = f"echo x >> {directory}/starts; sleep 0.1"
    first = c.sh("a", script, startId="s1")
    assert c.sh("a", script, startId="s1") == first
    c.drop()
    s.wait_log("detached")
    c = s.ready(resumeSessionId=c.session_id)
    assert c.sh("a", script, startId="s1") == first
    assert c.start("a", ["true"], startId="s2")["error"] == \
        {"code": -32600, "message": "process a already exists"}
    assert c.start("a", ["true"])["error"]["message"] == "process a already exists"
    unknown = "start s1 was carried out before; process {} is not known as its own"
    assert c.start("b", ["true"], startId="s1")["error"] == \
        {"code": -32600, "message": unknown.format("b")}
    poll(lambda: "error" in c.request("process/read", {"processId": "a"}), what="forgetting")
    assert c.start("a", ["true"], startId="s1")["error"]["message"] == unknown.format("a")
    assert (directory / "starts").read_text() == "x\n"


def test_a_start_that_failed_may_be_repeated(client):
    assert "error" in client.start("a", ["/nonexistent"], startId="s")
    assert client.run("a", ["/bin/true"], startId="s").code == 0
    r = client.start("a", ["/bin/true"], startId="s")["result"]
    assert r == {"processId": "a", "sandboxType": "none"}


def test_resize(client):
    client.sh("a", 'trap "stty size" WINCH; echo ready; while read x; do :; done; exit 3', tty=True)
    client.wait_output("a", "ready")
    assert client.call("process/resize", {"processId": "a", "rows": 65535, "cols": 1}) == {}
    client.wait_output("a", "65535 1\r\n")
    client.terminate("a")
    client.finished("a")
    assert client.call("process/resize", {"processId": "a", "rows": 5, "cols": 5}) == {}, "its terminal is gone"
    client.sh("p", "sleep 100")
    assert client.error("process/resize", {"processId": "p", "rows": 5, "cols": 5}) == \
        (-32600, "process p has no terminal")
    assert client.error("process/resize", {"processId": "nope", "rows": 5, "cols": 5}) == UNKNOWN
    client.terminate("p")


def test_wait_ends_with_closed_not_with_exited(client, directory):
    client.sh("a", f"(while [ ! -e {directory}/go ]; do sleep 0.1; done) & exit 5")
    client.exited("a")
    waiting = client.post("process/wait", {"processId": "a"})
    r = client.call("process/wait", {"processId": "a", "timeoutMs": 0})
    assert (r["running"], r["exitCode"], r["closed"]) == (False, 5, False)
    assert not any(m.get("id") == waiting for m in client.messages)
    (directory / "go").touch()
    r = client.answer(waiting)["result"]
    assert (r["running"], r["exitCode"], r["closed"]) == (False, 5, True)
    assert client.call("process/wait", {"processId": "a"}) == r


def test_waits_block_nothing_and_end_with_the_time(client):
    client.sh("a", "read x; exit 4", pipeStdin=True)
    forever = client.post("process/wait", {"processId": "a", "timeoutMs": 2**64 - 1})
    r = client.call("process/wait", {"processId": "a", "timeoutMs": 50})
    assert (r["running"], r["exitCode"]) == (True, None)
    client.call("process/closeStdin", {"processId": "a"})
    assert client.answer(forever)["result"]["exitCode"] == 4


def test_a_wait_dies_with_its_connection(spawn):
    s = spawn()
    c = s.ready()
    c.sh("a", "sleep 100")
    c.post("process/wait", {"processId": "a"})
    c.call("environment/status")
    c.drop()
    s.wait_log("detached")
    c = s.ready(resumeSessionId=c.session_id)
    waiting = c.post("process/wait", {"processId": "a"})
    c.terminate("a")
    assert c.answer(waiting)["result"]["exitCode"] == 137


def test_too_many_waits_are_refused(client):
    client.sh("a", "sleep 100")
    ids = [client.post("process/wait", {"processId": "a"}) for _ in range(4096)]
    assert client.error("process/wait", {"processId": "a"}) == \
        (-32600, "too many waiting requests: limit is 4096")
    client.terminate("a")
    assert all(client.answer(i)["result"]["exitCode"] == 137 for i in ids)


def test_at_the_end_of_input_waits_are_answered(stdio):
    c = stdio().ready()
    c.sh("a", "sleep 100")
    waiting = c.post("process/wait", {"processId": "a"})
    c.close()
    assert c.answer(waiting)["result"]["running"] is True
    assert poll(lambda: c.closed)["code"] == 0
