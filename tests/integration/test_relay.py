# SPDX-License-Identifier: ISC
"""execctl relay: a client on standard input and output that sees one connection,
however often the one behind it is cut.
"""
import base64
import json
import os
import signal
import subprocess

import pytest
from conftest import poll
from execctl import EXECCTL, Execctl, Proxy, environment
from execd_client import Stdio, start_params
from test_ask import Program


class Relay(Stdio):
    """A client whose server is execctl relay."""

    def __init__(self, home, url, *flags):
        super().__init__([str(EXECCTL), *flags, "relay"], env=environment(home, EXECD_URL=url))
        self.pid = self.child.pid


@pytest.fixture
def proxy(server):
    p = Proxy(server.url)
    yield p
    p.close()


@pytest.fixture
def relay(proxy, directory):
    started = []

    def start(url=None, *flags):
        c = Relay(directory, url or proxy.url, *flags)
        started.append(c)
        return c

    yield start
    for c in started:
        if c.child.poll() is None:
            c.close()


def run(directory, url, text, timeout=30, **more):
    """What the relay answers to this input, its status and its errors."""
    r = subprocess.run([EXECCTL, "relay"], env=environment(directory, EXECD_URL=url), input=text, capture_output=True, timeout=timeout, **more)
    return [json.loads(line) for line in r.stdout.splitlines()], r.returncode, r.stderr.decode()


INITIALIZE = b'{"id":"first","method":"initialize","params":{"clientName":"c"}}\n{"method":"initialized"}\n'


def test_as_a_server_would(relay):
    c = relay().ready()
    f = c.run_sh("p", "echo out; echo err >&2; exit 7")
    assert (f.code, f.stdout, f.stderr) == (7, "out\n", "err\n")
    assert f.seqs == list(range(1, len(f.seqs) + 1))
    assert c.error("no/such")[0] == -32601
    assert c.error("process/start", {"argv": 7})[0] == -32602
    assert c.error("fs/readFile", {"path": "file:///does/not/exist"})[0] == -32004
    assert c.call("environment/status") == {"status": "ready"}


def test_ids_and_values_come_back_as_they_were_written(proxy, directory):
    lines = INITIALIZE + (b'{"id":9223372036854775807,"method":"environment/status"}\n{"id":"a\\u0000\\"b","method":"environment/status"}\n'
                          b'{"id":7,"method":"environment/status"}\r\n\n')
    answers, code, err = run(directory, proxy.url, lines)
    assert [a["id"] for a in answers] == ["first", 9223372036854775807, 'a\0"b', 7] and (code, err) == (0, "")
    assert set(answers[0]["result"]) == {"sessionId", "environmentInfo"}


def test_no_byte_is_lost_or_doubled_over_cuts(relay, proxy, directory):
    c = relay().ready()
    m = c.start("p", ["/bin/sh", "-c", f"i=0; while [ $i -lt 500 ]; do echo line $i; i=$((i+1)); "
                                       f"[ $((i % 100)) != 0 ] || until [ -e {directory}/$i ]; do sleep 0.1; done; done; exit 5"])
    assert "result" in m
    for i in range(100, 501, 100):
        c.wait_output("p", f"line {i - 1}\n".encode())
        proxy.cut()
        (directory / str(i)).touch()
    f = c.finished("p")
    assert (f.code, f.stdout) == (5, "".join(f"line {i}\n" for i in range(500)))
    assert f.seqs == list(range(1, len(f.seqs) + 1)) and proxy.cuts >= 4


def test_a_start_whose_answer_is_lost_is_one_start(relay, proxy, directory):
    c = relay().ready()
    down = proxy.down
    proxy.swallowing = True
    id = c.post("process/start", start_params("p", ["/bin/sh", "-c", f"echo x >> {directory}/count; chmod 666 {directory}/count; exit 4"]))
    poll(lambda: (directory / "count").exists(), what="the start")
    proxy.cut_swallowed()
    answer = c.answer(id)
    assert answer["result"]["processId"] == "p" and answer["result"]["sandboxType"] in ("none", "unknown"), answer
    assert c.finished("p").code == 4 and (directory / "count").read_text() == "x\n"
    assert proxy.down >= down


def test_what_may_not_be_done_twice_is_told(relay, proxy, directory):
    """The answer to fs/remove is swallowed: whether it was done is not known, and nobody does it again."""
    (directory / "there").mkdir()
    (directory / "there").chmod(0o777)
    (directory / "there/file").touch()
    c = relay().ready()
    c.call("environment/status")
    proxy.swallowing = True
    removing = c.post("fs/remove", {"path": f"file://{directory}/there/file", "recursive": False, "force": False})
    reading = c.post("fs/getMetadata", {"path": "file:///"})
    poll(lambda: not (directory / "there/file").exists(), what="the removal")
    proxy.cut_swallowed()
    error = c.answer(removing)["error"]
    assert error["code"] == -32603 and "whether it was done is unknown" in error["message"]
    assert c.answer(reading)["result"]["isDirectory"]


def test_input_arrives_once(relay, proxy):
    c = relay().ready()
    c.start("p", ["cat"], pipeStdin=True)
    for i in range(40):
        c.write("p", b"%d\n" % i, write_id=str(i))
        if i % 10 == 5:
            proxy.cut()
    c.wait_output("p", b"39\n")
    assert c.output("p") == b"".join(b"%d\n" % i for i in range(40))
    c.terminate("p")
    c.finished("p")


def test_what_is_no_longer_retained_is_told_in_the_output(relay, proxy, directory):
    c = relay().ready()
    c.start("p", ["/bin/sh", "-c", f"echo first; until [ -e {directory}/go ]; do sleep 0.1; done; "
                                   f"head -c 3000000 /dev/zero; echo last; touch {directory}/done; exit 6"])
    c.wait_output("p", b"first\n")
    proxy.refusing = True
    proxy.cut()
    (directory / "go").touch()
    poll(lambda: (directory / "done").exists(), what="the end")
    proxy.refusing = False
    f = c.finished("p")
    assert f.code == 6 and f.seqs == list(range(1, len(f.seqs) + 1))
    assert "of output are lost here" in f.stderr and f.stdout.endswith("\0last\n")


def test_it_gives_up_with_254(relay, proxy):
    c = relay(None, "--resume-timeout", "300ms").ready()
    c.start("p", ["sleep", "1000"])
    proxy.refusing = True
    proxy.cut()
    assert c.child.wait(30) == 254


def test_a_lease(server, directory, relay):
    p = Program(directory, url=server.url)
    c = relay(p.url).ready()
    assert c.run_sh("p", "echo in").stdout == "in\n" and len(p.asked()) == 1
    c.child.stdin.close()
    assert c.child.wait(30) == 0
    p.assert_gone()
    assert p.ended()


def test_both_ends_wait_for_each_other(proxy, directory):
    """A client that does not read: the command stops writing, and the relay stays small. Then everything comes."""
    mib = 24
    r = subprocess.Popen([EXECCTL, "relay"], env=environment(directory, EXECD_URL=proxy.url), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    start = {"id": 1, "method": "process/start", "params": start_params("p", ["head", "-c", str(mib << 20), "/dev/zero"])}
    r.stdin.write(INITIALIZE + json.dumps(start).encode() + b"\n")
    r.stdin.flush()
    seen = 0

    def still():
        nonlocal seen
        now, seen = seen, proxy.down
        return seen > 1 << 20 and now == seen and seen < 20 << 20

    poll(still, what="a stop of the flow")
    for line in open(f"/proc/{r.pid}/status"):
        if line.startswith("VmRSS"):
            assert int(line.split()[1]) < 40 << 10, line
    got, closed = 0, False
    while not closed:
        m = json.loads(r.stdout.readline())
        closed = m.get("method") == "process/closed"
        if m.get("method") == "process/output":
            got += len(base64.b64decode(m["params"]["chunk"]))
    assert got == mib << 20
    r.stdin.close()
    assert r.wait(30) == 0
    r.stdout.close()


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals(relay, directory, sig):
    c = relay().ready()
    c.start("p", ["/bin/sh", "-c", f"echo $$ > {directory}/pid.new; chmod 666 {directory}/pid.new; mv {directory}/pid.new {directory}/pid; exec sleep 1000"])
    poll(lambda: (directory / "pid").exists(), what="the command")
    os.kill(c.pid, sig)
    assert c.child.wait(30) == 128 + sig
    marker = (directory / "pid").read_text().strip()
    assert marker


def test_bad_input(proxy, directory):
    answers, code, err = run(directory, proxy.url, INITIALIZE + b"nonsense\n[]\n" b'{"id":1,"method":"command/exec","params":{}}\n')
    assert [a.get("id") for a in answers] == ["first", -1, -1, 1] and code == 0, (answers, err)
    assert answers[1]["error"]["message"].startswith("failed to parse JSON-RPC message from exec-server stdio: ")
    assert answers[3]["error"]["code"] == -32601
    answers, code, err = run(directory, proxy.url, b'{"id":1,"method":"environment/status"}\n')
    assert answers[0]["error"]["code"] == -32600 and "must call initialize" in answers[0]["error"]["message"] and code == 0
    for text, why in ((b'{"method":"other"}\n', "a notification"), (b'{"id":1,"result":{}}\n', "an answer")):
        answers, code, err = run(directory, proxy.url, INITIALIZE + text)
        assert code == 125 and why in err, (answers, err)
    answers, code, err = run(directory, proxy.url, INITIALIZE + b'{"id":1,"method":"environment/status"}')
    assert len(answers) == 1 and code == 0 and "no newline" in err


def test_no_server(directory):
    answers, code, err = run(directory, "ws://127.0.0.1:1", INITIALIZE, timeout=60)
    assert answers[0]["error"]["code"] == -32603 and code == 125, (answers, code, err)
    answers, code, err = run(directory, "nonsense", INITIALIZE)
    assert code == 255 and "URL `nonsense'" in answers[0]["error"]["message"]


def test_a_client_that_is_gone(proxy, directory):
    r = Execctl(directory, proxy.url).popen("relay", stdin=subprocess.PIPE)
    r.stdin.write(INITIALIZE)
    r.stdin.flush()
    assert json.loads(r.stdout.readline())["id"] == "first"
    r.stdout.close()
    r.stdin.write(b'{"id":1,"method":"environment/status"}\n')
    r.stdin.flush()
    assert r.wait(30) == 125 and b"standard output: Broken pipe" in r.stderr.read()


def test_what_its_client_asked_to_keep_is_kept(server, relay):
    """It does not end with the relay, as other sessions do."""
    c = relay(server.url)
    keep = c.initialize(sessionKeep={"keepMs": 1})["sessionKeep"]
    assert keep["error"]["message"] == "execctl relay: ask with session/keep, and not with initialize"
    c.notify("initialized")
    assert c.call("session/keep", {"keepMs": 600000})["keepMs"] == 600000
    other = relay(server.url).ready()
    assert [c.close(), other.close()] == [0, 0]
    server.wait_log(f"session {other.session_id[:8]}: its client ends it")
    server.wait_log(f"session {c.session_id[:8]}: detached")
    assert f"session {c.session_id[:8]}: its client ends it" not in server.log
    held = server.ready(resumeSessionId=c.session_id)
    thief = relay(server.url).ready(resumeSessionId=c.session_id, takeOver=True)
    assert held.wait_closed()["reason"] == "the session was resumed elsewhere"
    thief.call("session/end")
