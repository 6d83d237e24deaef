# SPDX-License-Identifier: ISC
"""execctl run: byte for byte what the command does without it, and honest exit
codes when it cannot be."""
import base64
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time

import pytest
from conftest import ROOT, pids_with, poll
from execctl import Execctl, direct


@pytest.fixture
def ctl(server, directory):
    return Execctl(directory, server.url)


# Each is compared with a direct run: stdout, stderr and status.
SCRIPTS = [
    "true", "false", "exit 0", "exit 1", "exit 7", "exit 42", "exit 123", "exit 124", "exit 255", "exit 256",
    "echo out", "echo err >&2", "echo out; echo err >&2", "printf ''", "printf 'no newline'", "printf '\\0\\1\\2\\377'",
    "printf '\\r\\n\\t\\033[31m'", "seq 1 20000", "seq 1 5000 >&2", "head -c 300000 /dev/zero", "yes | head -n 30000",
    "yes e | head -n 3000 >&2; seq 1 3000", "kill -9 $$", "kill -15 $$", "kill -11 $$", "kill -1 $$", "kill -2 $$",
    "kill -13 $$", "kill -6 $$", "echo before; kill -9 $$", "pwd", "echo \"$HOME\"", "env | sort | grep -v ^_=",
    "cat", "cat; echo end", "read x; echo got:$x", "wc -c", "md5sum", "echo $0 $#", "printf '%s|' a 'b c' \"d'e\"",
    "ulimit -c", "echo $(id -u)", "ls /", "cat /nonexistent", "cd /nonexistent", "nosuchcommand", "/etc/passwd",
    "exec 1>&-; echo x", "exec 2>&-; echo x >&2; echo y", "(exit 3) | cat", "set -e; false; echo no",
    "sh -c 'exit 9'; echo $?", "sleep 0.1; echo late", "i=0; while [ $i -lt 300 ]; do echo $i; i=$((i+1)); done",
]


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_command_is_as_without_execd(ctl, user, directory, script):
    given = b"first line\nsecond\0line\xff\n" * 50
    argv = ["/bin/sh", "-c", script]
    args = ["run", "--inherit", "none", "-E", "PATH=/usr/bin:/bin", "-E", f"HOME={directory}", "-C", directory]
    reads = any(word in script for word in ("cat", "read", "wc", "md5sum"))
    if reads and not ctl.can("processCloseStdin"):
        r = ctl(*args, *argv, input=given)
        assert r.code == 125 and "processCloseStdin" in r.err
        return
    r = ctl(*args, *argv, input=given if reads else None)
    d = direct(user, argv, directory, given if reads else None)
    code = d.returncode if d.returncode >= 0 else 128 - d.returncode
    assert (r.out, r.err.encode(), r.code) == (d.stdout, d.stderr, code)


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1), (0, 1, 2)])
def test_closed_standard_files_do_not_become_the_connection(ctl, directory, closed):
    """The command writes what the caller still reads, and its status arrives. Output without a place is an error."""
    def close_them():
        for fd in closed:
            os.close(fd)

    proof = os.path.join(directory, "proof")
    script = f"echo ran > {proof}; echo out; echo err >&2; exit 7"
    if 0 in closed and ctl.can("processCloseStdin"):
        script = f"cat > {proof}; echo ran >> {proof}; echo out; echo err >&2; exit 7"
    p = ctl.popen("run", "-C", directory, "/bin/sh", "-c", script, preexec_fn=close_them)
    try:
        out, err = p.communicate(timeout=20)
    finally:
        p.kill()
        p.wait()
    assert p.returncode == (125 if 1 in closed else 7)
    assert out == (b"" if 1 in closed else b"out\n")
    if 1 in closed and 2 not in closed:
        assert b"execctl: standard output: Bad file descriptor; the command is killed\n" in err
    else:
        assert err == (b"" if 2 in closed else b"err\n")
    with open(proof, "rb") as f:
        assert f.read() == b"ran\n"


def test_arguments_arrive_as_they_are(ctl):
    words = ["", " ", "a b", "'", '"', "\\", "$HOME", "*", "-n", "--", "ünï", "\t\n", "x" * 5000]
    out = ctl.ok("run", "printf", "%s\\0", *words)
    assert out.decode().split("\0")[:-1] == words


@pytest.mark.parametrize("argv, code, text", [
    (["run", "-C", "/", "/no/such/program"], 127, "/no/such/program: not found"),
    (["run", "-C", "/", "no-such-program"], 127, "no-such-program: not found in the PATH of the session"),
    (["run", "-E", "PATH=/root:/bin", "-C", "/", "no-such-program"], 127, "no-such-program: not found in PATH=/root:/bin"),
    (["run", "-C", "/nonexistent", "true"], 125, "there is no directory /nonexistent on the server"),
    (["run", "-C", "/", "/etc/passwd"], 126, "Permission denied"),
    (["run", "-C", "/", "/"], 126, "Permission denied"),
    (["run"], 255, "usage"),
    (["nonsense"], 255, "no command `nonsense'"),
    (["run", "--nonsense", "x"], 255, "nonsense"),
    (["run", "--timeout", "5 apples", "x"], 255, "5 apples"),
    (["run", "--timeout", "0s", "x"], 255, "0s"),
    (["run", "--sandbox", "moon", "x"], 255, "moon"),
    (["run", "--network", "x"], 255, "--sandbox"),
    (["run", "--inherit", "some", "x"], 255, "some"),
    (["run", "--env", "=x", "x"], 255, "name"),
    (["run", "--env", "NOT_SET_HERE", "x"], 255, "NOT_SET_HERE"),
    (["run", "x\udcff"], 255, "UTF-8"),
    (["run", "-t", "true"], 255, "terminal"),
    (["shell"], 255, "terminal"),
    (["cp", "a"], 255, "usage"),
    (["cp", "a", "b"], 255, "colon"),
    (["cp", ":a", ":b"], 255, "both on the server"),
    (["completion", "csh"], 255, "csh"),
    (["--url", "http://x", "info"], 255, "http://x"),
    (["--url", "ws://a b", "info"], 255, "blanks"),
    (["--url", "ws://u:p@h/", "info"], 255, "password"),
    (["--url", "ws://h:99999/", "info"], 255, "port"),
    (["--url", "unix:", "info"], 255, "path"),
    (["--url", "unix:/" + "x" * 200, "info"], 125, "107 bytes"),
    (["--url", "unix:/nonexistent", "info"], 125, "No such file"),
    (["--connect-timeout", "300ms", "--url", "ws://127.0.0.1:1", "run", "true"], 125, "Connection refused"),
    (["--url", "wss://127.0.0.1:1", "--ca", "/nonexistent", "info"], 255, "/nonexistent"),
    (["--url", "stdio:exit 3", "info"], 125, "the command ended"),
    (["--url", "stdio:echo 'Welcome to it'; cat", "info"], 125, "this is not the protocol; the program said: Welcome to it"),
    (["-e", "nowhere", "info"], 255, "no environment `nowhere'"),
    (["attach", "nothing"], 255, "no record"),
    (["kill", "-s", "NONSENSE", "x"], 255, "NONSENSE"),
    (["ls", "/no/such"], 125, "No such file"),
    (["cat", "/no/such"], 125, "No such file"),
    (["cat", "/etc"], 125, "not a file"),
])
def test_what_cannot_be_is_said(ctl, argv, code, text):
    r = ctl(*argv)
    assert r.code == code and text in r.err, r
    assert r.out == b""


def test_no_server_is_named(directory):
    r = Execctl(directory, None)("info")
    assert r.code == 255 and "no server is named" in r.err
    r = Execctl(directory, None, CODEX_EXEC_SERVER_URL="none")("info")
    assert r.code == 255 and "CODEX_EXEC_SERVER_URL=none" in r.err


def test_the_variable_of_codex_names_a_server_too(server, directory):
    assert b"linux" in Execctl(directory, None, CODEX_EXEC_SERVER_URL=server.url).ok("info")


def answering(data):
    """A listener that says data to whoever comes, and hangs up."""
    s = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                c, _ = s.accept()
            except OSError:
                return
            c.recv(4096)
            c.sendall(data)
            c.close()

    threading.Thread(target=serve, daemon=True).start()
    return s, f"ws://127.0.0.1:{s.getsockname()[1]}"


@pytest.mark.parametrize("data, text", [
    (b"SSH-2.0-OpenSSH_9.2\r\n", "does not speak HTTP"),
    (b"HTTP/1.1 200 OK\r\n\r\nhello", "not an exec-server (HTTP status 200"),
    (b"HTTP/1.1 404 Not Found\r\n\r\n", "not an exec-server (HTTP status 404"),
    (b"HTTP/1.1 503 Busy\r\n\r\n", "not available"),
    (b"HTTP/1.1 101 Switching\r\nSec-WebSocket-Accept: bm8=\r\n\r\n", "wrong key"),
    (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 20000, "the headers are longer than"),
    (b"", "closed instead of upgraded"),
])
def test_what_is_no_server_is_told_so(directory, data, text):
    s, url = answering(data)
    r = Execctl(directory, url)("--connect-timeout", "1s", "info")
    s.close()
    assert r.code == 125 and text in r.err, r


def test_a_server_that_says_nothing_times_out(directory):
    s = socket.create_server(("127.0.0.1", 0))
    r = Execctl(directory, f"ws://127.0.0.1:{s.getsockname()[1]}")("--connect-timeout", "300ms", "info")
    s.close()
    assert r.code == 125 and "no answer within 300 ms" in r.err, r


def test_tokens(spawn, directory):
    token = directory / "token"
    theirs = directory / "theirs"
    for at in token, theirs:
        at.write_text("open-sesame\n")
    token.chmod(0o600)
    s = spawn("--ws-auth", "capability-token", "--ws-token-file", str(theirs))
    ctl = Execctl(directory, s.url)
    r = ctl("run", "true")
    assert r.code == 255 and "requires a token" in r.err
    r = ctl("run", "true", env={"EXECD_TOKEN": "wrong"})
    assert r.code == 255 and "does not accept the token" in r.err and "wrong" not in r.err
    r = ctl("run", "true", env={"EXECD_TOKEN": "two\nlines"})
    assert r.code == 255 and "blanks" in r.err
    ctl.ok("run", "true", env={"EXECD_TOKEN": "open-sesame"})
    ctl.ok("--token-file", token, "run", "true", env={"EXECD_TOKEN": "wrong"})
    for mode in 0o644, 0o640, 0o604:
        token.chmod(mode)
        r = ctl("--token-file", token, "run", "true")
        assert r.code == 255 and f"mode {mode:04o} lets others read it; chmod 600 it" in r.err, r
    token.chmod(0o600)
    token.write_text("")
    r = ctl("--token-file", token, "run", "true")
    assert r.code == 255 and "empty" in r.err
    assert ctl("--token-file", "/nonexistent", "run", "true").code == 255


def test_a_token_in_the_clear_is_told(directory):
    # This machine, but not by an address that only this machine has.
    r = Execctl(directory, "ws://0.0.0.0:1", EXECD_TOKEN="x")("--connect-timeout", "300ms", "info")
    assert r.code == 125 and "goes to 0.0.0.0 unencrypted" in r.err
    r = Execctl(directory, "ws://127.0.0.1:1", EXECD_TOKEN="x")("info")
    assert r.code == 125 and "unencrypted" not in r.err


def test_timeout(ctl):
    r = ctl("run", "--timeout", "300ms", "sh", "-c", "echo begun; sleep 100")
    assert (r.code, r.out) == (124, b"begun\n") and "time limit" in r.err


@pytest.mark.parametrize("name, code", [("INT", 3), ("TERM", 4), ("HUP", 5), ("USR1", 6)])
def test_signals_reach_the_command(ctl, name, code):
    p = ctl.popen("run", "sh", "-c", "trap 'exit 3' INT; trap 'exit 4' TERM; trap 'exit 5' HUP; trap 'exit 6' USR1; "
                                     "echo ready; while :; do sleep 0.1; done")
    assert p.stdout.readline() == b"ready\n"
    p.send_signal(getattr(signal, "SIG" + name))
    if name != "INT" and not ctl.can("processSignalTarget"):
        if name == "USR1":
            assert b"dropped" in p.stderr.readline()
            p.send_signal(signal.SIGINT)
            assert p.wait(20) == 3
        else:
            assert p.wait(20) == 128 + getattr(signal, "SIG" + name)
            assert b"only send SIGINT" in p.stderr.read()
        return
    assert p.wait(20) == code


def test_a_third_interrupt_kills(ctl):
    p = ctl.popen("run", "sh", "-c", "trap 'echo no' INT; echo ready; while :; do sleep 0.1; done")
    assert p.stdout.readline() == b"ready\n"
    for _ in range(2):
        p.send_signal(signal.SIGINT)
        assert p.stdout.readline() == b"no\n"
    p.send_signal(signal.SIGINT)
    assert p.wait(20) == 137
    assert b"it is killed" in p.stderr.read()


def test_a_closed_standard_output_ends_the_command(ctl, directory):
    p = ctl.popen("run", "sh", "-c", f"echo $$ > {directory}/pid; exec yes")
    assert p.stdout.readline() == b"y\n"
    p.stdout.close()
    assert p.wait(20) == 141
    assert b"Broken pipe" in p.stderr.read()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk_is_no_success(ctl):
    with open("/dev/full", "wb") as full:
        r = subprocess.run([str(ctl.popen("info").args[0]), "run", "echo", "lost"], stdout=full,
                           stderr=subprocess.PIPE, env=ctl.env, stdin=subprocess.DEVNULL, timeout=30)
    assert r.returncode == 125 and b"No space left" in r.stderr


def test_a_slow_reader_stops_the_command_and_loses_nothing(ctl):
    p = ctl.popen("run", "seq", "1", "1000000")
    first = p.stdout.readline()
    out = first + p.stdout.read()
    assert p.wait(30) == 0
    assert out == "".join(f"{i}\n" for i in range(1, 1000001)).encode()


def test_much_input_arrives(ctl):
    if not ctl.can("processCloseStdin"):
        pytest.skip("no processCloseStdin")
    data = os.urandom(5 << 20)
    assert ctl.ok("run", "cat", input=data) == data
    # One that does not read it all.
    assert ctl.ok("run", "head", "-c", "10", input=data) == data[:10]


def test_json(ctl):
    r = ctl("--json", "run", "sh", "-c", "echo out; echo err >&2; exit 3")
    events = [json.loads(line) for line in r.out.splitlines()]
    assert r.code == 3
    assert events[0]["event"] == "started" and events[0]["sandboxType"] == "none"
    texts = {(e["stream"], base64.b64decode(e["dataBase64"])) for e in events if e["event"] == "output"}
    assert texts == {("stdout", b"out\n"), ("stderr", b"err\n")}
    assert events[-1] == {"event": "exited", "exitCode": 3, "timedOut": False, "sandboxDenied": False}
    r = ctl("--json", "run", "-C", "/", "/no/such")
    assert r.code == 127 and json.loads(r.out)["exitCode"] == 127


def test_capture(ctl):
    assert ctl.ok("run", "--capture", "echo", "short") == b"short\n"
    r = ctl("run", "--capture", "sh", "-c", "seq 1 10000; exit 6")
    lines = r.out.decode().splitlines()
    assert r.code == 6 and len(r.out) <= 10240 + 100 and len(lines) <= 257
    assert lines[0] == "1" and lines[-1] == "10000"
    assert "[" in r.out.decode() and "bytes left out" in r.out.decode()
    r = json.loads(ctl.ok("--json", "run", "--capture", "seq", "1", "10000"))
    assert r["truncated"] and r["lines"] == 10000 and r["bytes"] == 48894 and r["exitCode"] == 0
    r = json.loads(ctl.ok("--json", "run", "--capture", "echo", "hi"))
    assert not r["truncated"] and r["output"] == "hi\n"


def test_sandbox(ctl, directory):
    r = ctl("run", "--sandbox", "read-only", "-C", directory, "sh", "-c", "echo x > file")
    # Either it is enforced, or it is refused: never run without it.
    assert r.code != 0 and not (directory / "file").exists()
    r = ctl("run", "--sandbox", "workspace-write", "-C", directory, "sh", "-c",
            "echo x > file && mkdir -p .git && echo y > .git/config")
    assert r.code != 0 and not (directory / ".git/config").exists(), r
    if ctl("run", "--sandbox", "read-only", "-C", "/", "true").code != 0:
        pytest.skip("this host or this build can run nothing in a sandbox")
    assert (directory / "file").read_text() == "x\n", r
    with socket.create_server(("127.0.0.1", 0)) as s:
        script = f"exec 3<>/dev/tcp/127.0.0.1/{s.getsockname()[1]}"
        assert ctl("run", "--sandbox", "read-only", "-C", "/", "bash", "-c", script).code != 0
        ctl.ok("run", "--sandbox", "read-only", "--network", "-C", "/", "bash", "-c", script)


def test_detach_ps_logs_wait(ctl, directory):
    session = ctl.ok("run", "--detach", "sh", "-c",
                     f"echo one; while [ ! -e {directory}/go ]; do sleep 0.1; done; echo two; exit 7").decode().strip()
    listed = ctl.ok("ps").decode()
    assert session[:12] in listed and "left" in listed
    poll(lambda: ctl("logs", session).out == b"one\n", what="output")
    (directory / "go").touch()
    r = ctl("wait", session[:8])
    assert (r.code, r.out) == (7, b"")
    assert session[:12] not in ctl.ok("ps").decode()
    assert ctl.ok("logs", session) == b"one\ntwo\n"


def test_attach_goes_on_with_a_command(ctl, directory):
    session = ctl.ok("run", "-d", "sh", "-c",
                     f"echo one; while [ ! -e {directory}/go ]; do sleep 0.1; done; echo two; exit 7").decode().strip()
    p = ctl.popen("attach", session)
    assert p.stdout.readline() == b"one\n", p.stderr.read()
    assert f"pid {p.pid}" in ctl.ok("ps").decode()
    (directory / "go").touch()
    assert (p.stdout.read(), p.wait(20)) == (b"two\n", 7)


def test_a_killed_execctl_leaves_a_session_to_attach_to(ctl, directory):
    p = ctl.popen("run", "sh", "-c", f"echo one; while [ ! -e {directory}/go ]; do sleep 0.1; done; echo two; exit 9")
    assert p.stdout.readline() == b"one\n"
    session = json.loads(ctl.ok("--json", "ps"))["session"]
    p.kill()
    p.wait()
    (directory / "go").touch()
    r = ctl("attach", session)
    assert (r.out, r.code) == (b"one\ntwo\n", 9)


def test_kill(ctl):
    session = ctl.ok("run", "-d", "sleep", "100").decode().strip()
    ctl.ok("kill", "-s", "INT", session)
    assert ctl("wait", session).code == 130
    session = ctl.ok("run", "-d", "sleep", "100").decode().strip()
    ctl.ok("kill", "-s", "KILL", session)
    assert ctl("wait", session).code == 137
    # Of one that is attached here: its own execctl passes it on.
    p = ctl.popen("run", "sh", "-c", "trap 'exit 3' INT; echo ready; while :; do sleep 0.1; done")
    assert p.stdout.readline() == b"ready\n"
    session = json.loads(ctl.ok("--json", "ps"))["session"]
    ctl.ok("kill", "-s", "INT", session)
    assert p.wait(20) == 3


def test_a_killed_server_is_an_unknown_state(spawn, directory):
    s = spawn()
    ctl = Execctl(directory, s.url)
    p = ctl.popen("--resume-timeout", "500ms", "run", "sh", "-c", "echo ready; sleep 100")
    assert p.stdout.readline() == b"ready\n"
    s.child.kill()
    s.child.wait()
    assert p.wait(30) == 254
    text = p.stderr.read().decode()
    assert "could not be resumed" in text and "unknown" in text


def test_stdio(directory, user, mode):
    from conftest import EXECD, as_user
    argv = [str(EXECD), "--listen", "stdio"]
    argv = argv + ["--user", user.pw_name] if mode == "root" and ROOT else as_user(user, argv)
    ctl = Execctl(directory, "stdio:exec " + " ".join(argv) + f" 2>{directory}/log")
    r = ctl("run", "-C", "/", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (r.out, r.err, r.code) == (b"out\n", "err\n", 3)
    assert not re.search("(?m)^execd(?!.*(control groups:|others may read|were left behind))", (directory / "log").read_text()), "what goes well is no line"


@pytest.mark.parametrize("stopped", [False, True])
def test_sigterm_ends_it(server, directory, stopped):
    """The command is told. Two seconds later its session ends with all that it started, or as soon as the server is
    there again; and after two more execctl is gone, whatever the command, the server and the reader do."""
    ctl, mark = Execctl(directory, server.url), f"{directory}/mark"
    p = ctl.popen("run", "/bin/sh", "-c", f"setsid sh -c 'trap : TERM; while :; do sleep 1; done; : {mark}' </dev/null >/dev/null 2>&1 & "
                  f"trap 'echo told' TERM; echo up; while :; do sleep 0.1; done; : {mark}")
    assert p.stdout.readline() == b"up\n"
    programs = [server.pid, server.broker, server.frontend(), runner_of(server)] if stopped else []
    for pid in programs:
        os.kill(pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        p.send_signal(signal.SIGTERM)
        out, err = p.communicate(timeout=12)
        assert time.monotonic() - began < 8
        assert not stopped or pids_with(mark)
    finally:
        for pid in programs:
            os.kill(pid, signal.SIGCONT)
    assert b"its session is ended" in err and (p.returncode, b"unknown" in err) == ((254, True) if stopped else (137, False)), (p.returncode, err)
    assert stopped or b"told" in out
    poll(lambda: not pids_with(mark), what="end of all that it started")


def test_sigterm_leaves_a_session_of_somebody_else(server, directory):
    """Who only attached has the command told, and leaves."""
    ctl = Execctl(directory, server.url)
    session = ctl.ok("run", "-d", "sh", "-c", "trap 'echo told' TERM; echo up; while :; do sleep .1; done").decode().split()[0]
    p = ctl.popen("attach", session)
    assert p.stdout.readline() == b"up\n"
    p.send_signal(signal.SIGTERM)
    out, err = p.communicate(timeout=12)
    assert (p.returncode, out) == (254, b"told\n") and b"unknown" in err, (p.returncode, err)
    assert ctl("kill", "-s", "KILL", session).code == 0


def runner_of(server):
    return int(re.findall(r"opened .* runner (\d+)", server.log)[-1])


def test_a_time_without_a_unit_is_in_seconds(server, directory):
    r = Execctl(directory, server.url)("run", "-T", "1", "sleep", "100")
    assert r.code == 124, r
