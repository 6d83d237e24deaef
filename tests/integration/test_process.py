# SPDX-License-Identifier: ISC
"""process/start, read, write, signal, terminate (doc/protocol.md sections 6 to 8)."""
import base64
import fcntl
import os
import re
import signal
import stat
import subprocess
import sys

import pytest
from conftest import ROOT, as_user, pids_with, poll
from execd_client import b64, start_params
from refusals import UNAVAILABLE


def test_short_command(client):
    r = client.run_sh("a", "echo hi; echo err >&2; exit 3")
    assert (r.stdout, r.stderr, r.code) == ("hi\n", "err\n", 3)
    assert r.seqs == list(range(1, len(r.seqs) + 1))
    assert [m["method"] for m in r.events][-2:] == ["process/exited", "process/closed"]


def test_the_answer_comes_before_any_notification(client):
    """Q17: 300 commands, pipelined; no notification overtakes its answer, no
    exited overtakes output."""
    for i in range(300):
        client.post("process/start", start_params(f"p{i}", ["/bin/echo", "x"]), id=f"s{i}")
    for i in range(300):
        r = client.finished(f"p{i}")
        assert [m["method"] for m in r.events] == ["process/output", "process/exited", "process/closed"]
    order = [m.get("id") or m["params"]["processId"] for m in client.messages[1:]]
    for i in range(300):
        assert order.index(f"s{i}") < order.index(f"p{i}")


@pytest.mark.parametrize("n", [0, 1, 127, 128, 255])
def test_exit_codes(client, n):
    assert client.run_sh("a", f"exit {n}").code == n


@pytest.mark.parametrize("tty", [False, True])
@pytest.mark.parametrize("n", [1, 2, 6, 9, 11, 15])
def test_death_by_signal(client, n, tty):
    assert client.run_sh("a", f"kill -{n} $$", tty=tty).code == 128 + n


POLICY = {"permissions": {"type": "disabled"}, "windowsSandboxLevel": "disabled"}
FAR = {"cwd": "file://host/x"}
MXC = {"sandbox": {**POLICY, "windowsSandboxLevel": "mxc"}}
NO_MXC = "native MXC is unavailable on this executor"


@pytest.mark.parametrize("argv, extra, code, text, kind", [
    (["/nonexistent/program"], {}, -32603, "No such file or directory (os error 2)", "spawnNotFound"),
    (["no-such-program"], {}, -32603, "No such file or directory (os error 2)", "spawnNotFound"),
    (["true"], {"env": {"PATH": ""}}, -32603, "No such file or directory (os error 2)", "spawnNotFound"),
    (["/tmp"], {}, -32603, "Permission denied (os error 13)", "spawnPermissionDenied"),
    (["/etc/passwd"], {}, -32603, "Permission denied (os error 13)", "spawnPermissionDenied"),
    (["/etc/passwd/x"], {}, -32603, "Not a directory (os error 20)", "spawnFailed"),
    (["/" + "x" * 300], {}, -32603, "File name too long (os error 36)", "spawnFailed"),
    (["/bin/true"], {"cwd": "file:///nonexistent"}, -32603, "No such file or directory (os error 2)", "spawnNotFound"),
    (["/bin/true"], {"cwd": "file:///etc/passwd"}, -32603, "Not a directory (os error 20)", "spawnFailed"),
    (["/bin/true", "a" * 200000], {}, -32603, "Argument list too long (os error 7)", "spawnFailed"),
    (["/bin/true", "a\0b"], {}, -32603, "nul byte found in provided data", "spawnFailed"),
    (["/bin/true"], {"arg0": "\0"}, -32603, "nul byte found in provided data", "spawnFailed"),
    (["/bin/true"], {"env": {"A": "\0"}}, -32603, "data provided contains a nul byte", "spawnFailed"),
    (["/bin/true"], FAR, -32602,
     "cwd URI `file://host/x` is not valid on this exec-server host: 'file://host/x' is invalid on 'linux'", None),
    (["/bin/true"], {"cwd": "file:///C:/x"}, -32602,
     "cwd URI `file:///C:/x` is not valid on this exec-server host: 'file:///C:/x' is invalid on 'linux'; "
     "path-map can map it", None),
    (["/bin/true"], {**FAR, "sandbox": POLICY}, -32602,
     "failed to prepare process sandbox: invalid sandbox policy cwd: 'file://host/x' is invalid on 'linux'",
     "sandboxPreparation"),
    (["/bin/true"], {**FAR, "sandbox": {**POLICY, "cwd": "file:///"}}, -32602,
     "failed to prepare process sandbox: command cwd URI `file://host/x` is not valid on this host: 'file://host/x' is "
     "invalid on 'linux'", "sandboxPreparation"),
    (["/bin/true"], {"sandbox": {**POLICY, **FAR}}, -32602,
     "failed to prepare process sandbox: invalid sandbox policy cwd: 'file://host/x' is invalid on 'linux'",
     "sandboxPreparation"),
    (["/bin/true"], MXC, -32602, NO_MXC, "sandboxUnavailable"),
    ([], {**MXC, **FAR}, -32602, NO_MXC, "sandboxUnavailable"),
    ([], {}, -32602, "argv must not be empty", None),
    ([], {**FAR, "sandbox": {**POLICY, **FAR}}, -32602, "argv must not be empty", None),
    (["/bin/true"], {"tty": 7}, -32602, "invalid type: number, expected a boolean", None),
    (["/bin/true"], {"cwd": "x"}, -32602, "invalid URI: relative URL without a base", None),
])
@pytest.mark.parametrize("tty", [False, True])
def test_refused_starts_leave_nothing(client, argv, extra, code, text, kind, tty):
    """The kind is the peer's: tests/codex/test_differential.py compares it."""
    m = client.start("a", argv, **{"tty": tty, **extra})
    assert m.get("error") == {"code": code, "message": text, **({"data": {"kind": kind}} if kind else {})}
    assert client.run("a", ["/bin/true"]).code == 0
    assert len(client.events("a")) == 2


@pytest.mark.parametrize("tty", [False, True])
def test_a_script_with_lines_of_windows(client, directory, tty):
    """Its interpreter's name ends with CR, which nobody sees in "No such file or directory"."""
    script = directory / "script"
    script.write_bytes(b"#!/bin/sh\r\necho hi\r\n")
    script.chmod(0o755)
    said = {"code": -32603, "message": "No such file or directory (os error 2): the script's first line ends with CR LF, and CR counts as "
            "a part of its interpreter's name", "data": {"kind": "spawnNotFound"}}
    for argv, env in ([str(script)], {}), (["script"], {"PATH": f"/nonexistent:{directory}"}):
        assert client.start("a", argv, tty=tty, env=env)["error"] == said
    script.write_bytes(b"#!/nonexistent\necho hi\r\n")
    assert client.start("a", [str(script)], tty=tty)["error"]["message"] == "No such file or directory (os error 2)"


@pytest.mark.parametrize("tty, word", [(False, "pipe"), (True, "PTY")])
def test_an_empty_program_name(client, tty, word):
    assert client.start("a", [""], tty=tty)["error"] == \
        {"code": -32603, "message": f"missing program for {word} spawn", "data": {"kind": "spawnFailed"}}


def test_managed_networking_is_refused_not_ignored(client):
    level = {"windowsSandboxLevel": "disabled"}
    for extra in ({"enforceManagedNetwork": True},
                  {"enforceManagedNetwork": True, "sandbox": {"permissions": {"type": "disabled"}, **level}}):
        assert client.start("a", ["true"], **extra)["error"] == \
            UNAVAILABLE
    m = client.start("a", ["true"], sandbox={"permissions": {"type": "disabled"}, **level})
    assert m["result"] == {"processId": "a", "sandboxType": "none", "sandbox": {
        "asked": {"type": "disabled", "fileSystem": "unrestricted", "network": "enabled"}, "enforced": None}}


def test_an_id_is_taken_until_it_is_forgotten(spawn):
    c = spawn("--closed-ttl", "300ms").ready()
    c.sh("a", "sleep 100")
    assert c.start("a", ["true"])["error"]["message"] == "process a already exists"
    c.terminate("a")
    c.finished("a")
    assert c.start("a", ["true"])["error"]["message"] == "process a already exists"
    poll(lambda: "error" in c.request("process/read", {"processId": "a"}), what="forgetting")
    assert c.error("process/read", {"processId": "a"}) == (-32600, "unknown process id a")
    assert "result" in c.start("a", ["true"])


def test_environment_directory_and_arg0(client, directory):
    (directory / "tool").write_text("#!/bin/sh\npwd; env | grep -v ^PWD=\n")
    os.chmod(directory / "tool", 0o755)
    r = client.run("a", ["./tool"], cwd=f"file://{directory}", env={"B": "x y=z", "PATH": "/usr/bin:/bin"})
    assert sorted(r.stdout.splitlines()) == sorted([str(directory), "B=x y=z", "PATH=/usr/bin:/bin"])
    for tty in (False, True):
        r = client.run(f"b{tty}", ["/bin/sh", "-c", "echo $0"], arg0="custom", tty=tty)
        assert (r.pty if tty else r.stdout).split() == ["custom"]
    assert client.run("c", ["env"], env={}).stdout == ""


def test_what_the_child_is_given(client):
    r = client.run("fds", ["/bin/ls", "/proc/self/fd"])
    assert r.stdout.split() == ["0", "1", "2", "3"]      # 3 is the listed directory
    status = client.run("sig", ["/bin/grep", "-E", "^Sig(Blk|Ign):", "/proc/self/status"]).stdout
    assert [int(line.split()[1], 16) for line in status.splitlines()] == [0, 0]     # Q26
    r = client.run_sh("stat", "read pid comm state ppid pgrp sid tty rest < /proc/$$/stat; echo $((pid == pgrp)) $((pid == sid)) $tty; ulimit -Sc")
    assert r.stdout.split() == ["1", "1", "0", "0"]
    assert client.run("in", ["/bin/cat"]).code == 0


def test_closed_waits_for_the_streams_exited_does_not(client, directory):
    client.sh("a", f"(while [ ! -e {directory}/go ]; do sleep 0.1; done; echo late) & echo hi")
    ex = client.exited("a")
    assert not client.events("a", "process/closed")
    (directory / "go").touch()
    r = client.finished("a")
    assert r.stdout == "hi\nlate\n"
    assert r.events[-2]["params"]["seq"] > ex["seq"]


def chunks(r):
    return b"".join(base64.b64decode(c["chunk"]) for c in r["chunks"])


def test_read_pages_through_everything(client):
    r = client.run("a", ["seq", "1", "50000"])
    after, got = 0, b""
    while True:
        page = client.call("process/read", {"processId": "a", "afterSeq": after, "maxBytes": 10000})
        if not page["chunks"]:
            break
        got += chunks(page)
        after = page["nextSeq"] - 1
    assert got.decode() == r.stdout == "".join(f"{i}\n" for i in range(1, 50001))
    assert (page["exited"], page["closed"], page["exitCode"], page["failure"]) == (True, True, 0, None)


def test_retention_keeps_the_newest_mebibyte(client):
    r = client.run_sh("a", "head -c 3000000 /dev/zero | tr '\\0' x; echo end")
    kept = chunks(client.call("process/read", {"processId": "a"}))
    assert (1 << 20) - 65536 <= len(kept) <= 1 << 20
    assert len(r.stdout) == 3000004 and kept.endswith(b"end\n")


def test_a_waiting_read_blocks_nothing_else(client):
    client.sh("a", "read x; echo $x; read y; exit 6", pipeStdin=True)
    waiting = client.post("process/read", {"processId": "a", "waitMs": 2**64 - 1})
    assert client.call("environment/status") == {"status": "ready"}
    assert client.run("b", ["echo", "x"]).stdout == "x\n"
    assert not any(m.get("id") == waiting for m in client.messages)
    client.write("a", "out\n")
    r = client.answer(waiting)["result"]
    assert (chunks(r), r["exited"]) == (b"out\n", False)
    waiting = client.post("process/read", {"processId": "a", "afterSeq": r["nextSeq"] - 1, "waitMs": 60000})
    client.write("a", "\n")
    assert client.answer(waiting)["result"]["exitCode"] == 6
    client.sh("c", "sleep 100")
    assert client.call("process/read", {"processId": "c", "waitMs": 50})["chunks"] == []


def test_write_ids(client):
    client.start("a", ["/bin/cat"], pipeStdin=True)
    for data in ("first\n", "first\n", "other\n"):
        assert client.write("a", data, "same") == {"status": "accepted"}
    assert client.error("process/write", {"processId": "a", "chunk": "!!!", "writeId": "q"}) == \
        (-32602, "Invalid symbol 33, offset 0.")
    assert client.error("process/write", {"processId": "zzz", "chunk": "", "writeId": ""}) == \
        (-32602, "writeId must not be empty")
    client.write("a", "end\n")
    assert client.wait_output("a", "end\n") == b"first\nend\n"
    assert client.write("nope", "x") == {"status": "unknownProcess"}
    assert client.write("a", bytes(range(256)))["status"] == "accepted"
    client.wait_output("a", bytes(range(256)))


def test_stdin_closed_after_exit_and_failed_after_terminate(client):
    for tty in (False, True):
        id = f"a{tty}"
        client.run(id, ["/bin/true"], pipeStdin=True, tty=tty)
        assert client.write(id, "x") == {"status": "stdinClosed"}      # Q6
    client.sh("b", "sleep 100", pipeStdin=True)
    client.write("b", "x", "known")
    client.terminate("b")
    client.finished("b")
    assert client.write("b", "x", "known") == {"status": "accepted"}
    assert client.error("process/write", {"processId": "b", "chunk": "", "writeId": "new"}) == \
        (-32603, "failed to write to process stdin")
    client.sh("c", "sleep 100")
    assert client.write("c", "x") == {"status": "stdinClosed"}


def test_clogged_stdin_blocks_only_itself(client, directory):
    """Q8: 300 writes of 64 KiB to a command that reads none of them yet."""
    client.sh("a", f"while [ ! -e {directory}/go ]; do sleep 0.1; done; wc -c", pipeStdin=True)
    chunk = b64(b"a" * 65536)
    ids = [client.post("process/write", {"processId": "a", "chunk": chunk, "writeId": f"x{i}"})
           for i in range(300)]
    assert client.call("environment/status") == {"status": "ready"}
    assert not any(m.get("id") == ids[-1] for m in client.messages)
    (directory / "go").touch()
    for i in ids:
        assert client.answer(i)["result"] == {"status": "accepted"}
    client.terminate("a")
    client.finished("a")
    client.sh("b", "sleep 100", pipeStdin=True)
    ids = [client.post("process/write", {"processId": "b", "chunk": chunk, "writeId": f"y{i}"})
           for i in range(300)]
    assert client.terminate("b") is True
    assert client.finished("b").code == 137
    assert "error" in client.answer(ids[-1])


def test_pipelined_writes_keep_their_order(client):
    """Q9."""
    client.start("a", ["/bin/cat"], pipeStdin=True)
    for i in range(2000):
        client.post("process/write", {"processId": "a", "chunk": b64(f"{i},"), "writeId": f"w{i}"})
    assert client.wait_output("a", ",1999,").decode() == "".join(f"{i}," for i in range(2000))


def test_interrupt(client):
    client.sh("a", 'trap "echo got int; exit 9" INT; echo ready; while :; do sleep 0.1; done')
    client.wait_output("a", "ready")
    assert client.call("process/signal", {"processId": "a", "signal": "interrupt"}) == {}
    assert client.finished("a").code == 9
    assert client.call("process/signal", {"processId": "a", "signal": "interrupt"}) == {}
    assert client.call("process/signal", {"processId": "nope", "signal": "interrupt"}) == {}
    assert client.error("process/signal", {"processId": "a", "signal": "kill"}) == \
        (-32602, "unknown variant `kill`, expected `interrupt`")


def test_terminate_delivers_what_was_written(client, directory):
    """Q7: output that stands in the pipe when the kill comes is not lost."""
    for i in range(20):
        id = f"t{i}"
        client.sh(id, f"head -c 50000 /dev/zero; : > {directory}/{id}; sleep 100")
        poll(lambda: (directory / id).exists(), what="the output to be written")
        assert client.terminate(id) is True
        r = client.finished(id)
        assert (r.code, len(r.stdout)) == (137, 50000)
        assert client.terminate(id) is False


def test_terminate_waits_for_nobody(client):
    client.sh("a", "setsid sleep 300 & echo $!; wait")
    client.wait_output("a", "\n")
    client.terminate("a")
    assert client.finished("a").code == 137


DAEMON = """import os, signal, sys, time
for n in range(2):
    if os.fork():
        os._exit(0) if n else time.sleep(1000)
    os.setsid()
for s in range(1, 32):
    if s not in (signal.SIGKILL, signal.SIGSTOP): signal.signal(s, signal.SIG_IGN)
os.fork()
if os.fork() == 0:
    os.setsid()
os.write(1, b"x")
os.close(1), os.close(2)
time.sleep(float(sys.argv[1]))
"""


def test_terminate_ends_daemons(client):
    """In a session of its own, with no parent left, deaf: a group has it, a pid namespace, or the command's mark."""
    marker, other = f"1{os.getpid()}.25", f"1{os.getpid()}.75"
    for id, seconds in ("a", marker), ("b", other):
        client.start(id, ["/usr/bin/python3", "-c", DAEMON, seconds])
        client.wait(lambda: len(client.output(id)) == 4, what="four of them")
    client.terminate("a")
    poll(lambda: not pids_with(marker), what="end of all")
    assert len(pids_with(other)) == 5, "another command's go on"
    client.terminate("b")
    poll(lambda: not pids_with(other), what="end of all")


@pytest.mark.parametrize("how", ["nohup sleep {} >/dev/null 2>&1 &", "setsid sleep {} >/dev/null 2>&1 &",
                                 "sleep {} >/dev/null 2>&1 & disown", "sleep {} &"])
def test_terminate_after_the_exit_kills_nothing(client, how):
    """Clients send it after each command, and the server that a command started must be there for the next one."""
    marker = f"3{os.getpid()}.{len(how)}"
    client.start("a", ["/bin/bash", "-c", how.format(marker)])
    client.exited("a")
    assert client.terminate("a") is False
    assert client.run_sh("b", "echo next").stdout == "next\n"
    poll(lambda: len(pids_with(marker)) == 1, what="its server, which lives on")
    assert how != "sleep {} &" or not client.events("a", "process/closed"), "its streams are open"
    os.kill(pids_with(marker)[0], signal.SIGKILL)
    client.finished("a")


def test_what_a_command_left_ends_with_its_session(spawn):
    marker = f"4{os.getpid()}.5"
    s = spawn()
    c = s.ready()
    for i, how in enumerate(("nohup sleep {} >/dev/null 2>&1 &", "setsid sleep {} >/dev/null 2>&1 & disown")):
        c.start(f"a{i}", ["/bin/bash", "-c", how.format(marker)])
        c.finished(f"a{i}")
        assert c.terminate(f"a{i}") is False
    poll(lambda: len(pids_with(marker)) == 2, what="both")
    c.call("session/end")
    poll(lambda: not pids_with(marker), what="end of both")


def test_nothing_that_a_sandboxed_command_left_outlives_it(client, sandboxes):
    marker = f"5{os.getpid()}.5"
    r = client.run("a", ["/bin/bash", "-c", f"nohup sleep {marker} & setsid sleep {marker} & until [ $(pgrep -fc {marker}) -ge 3 ]; do :; done"],
                   sandbox={"windowsSandboxLevel": "disabled", "permissions": {
                       "type": "managed", "network": "restricted", "file_system": {"type": "restricted", "entries": [
                           {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"}]}}})
    assert r.code == 0
    assert not pids_with(marker), "closed came before"


def test_base_environment_policy(spawn, mode, user):
    env = {"PATH": "/usr/bin:/bin", "HOME": "/x", "FOO": "foo", "MY_KEY": "k", "LANG": "C"}
    c = spawn("--environment", "FOO", "--environment", "MY_KEY", env=env).ready()
    policy = {"inherit": "all", "ignoreDefaultExcludes": False, "exclude": [], "set": {}, "includeOnly": []}

    def environment(id, **changes):
        r = c.run(id, ["/usr/bin/env"], env={}, envPolicy={**policy, **changes})
        return dict(line.split("=", 1) for line in r.stdout.splitlines())

    everything = environment("a")
    assert everything["FOO"] == "foo" and "MY_KEY" not in everything
    assert environment("b", ignoreDefaultExcludes=True)["MY_KEY"] == "k"
    assert "FOO" not in environment("c", inherit="core")
    assert environment("d", inherit="none", set={"A": "1"}) == {"A": "1"}
    if mode == "root":
        assert everything["USER"] == everything["LOGNAME"] == user.pw_name


def test_signals_that_execd_s_parent_ignores(configured, user):
    """nohup execd: no command inherits that."""
    def ignore():
        for sig in signal.SIGHUP, signal.SIGPIPE, signal.SIGRTMAX:
            signal.signal(sig, signal.SIG_IGN)

    s = configured(f"[listener main]\naddress = ws://127.0.0.1:0\nallow-unauthenticated = x\n[identity x]\nuser = {user.pw_name}\n"
                   "sandbox-allow-unsandboxed = yes\n", preexec_fn=ignore)
    # Not by a shell, which would ignore some itself.
    out = s.ready().run("x", ["/bin/grep", "-E", "^Sig(Ign|Blk)", "/proc/self/status"]).stdout
    assert re.findall(r"\t(\w+)", out) == ["0" * 16] * 2, out


def test_root_s_environment_is_not_the_sessions(spawn, mode):
    """A secret that root started execd with reaches no command, no tool and no HTTP header."""
    env = {"PATH": "/usr/bin:/bin", "HOME": "/x", "LANG": "C", "LC_TIME": "C", "PLANTED": "secret", "TMPDIR": "/tmp"}
    c = spawn(env=env).ready()
    policy = {"inherit": "all", "ignoreDefaultExcludes": True, "exclude": [], "set": {}, "includeOnly": []}
    r = c.run("a", ["/usr/bin/env"], env={}, envPolicy=policy)
    have = dict(line.split("=", 1) for line in r.stdout.splitlines())
    assert "EXECD_SPAWN_CHANNEL" not in have
    code, message = c.error("http/request", {
        "method": "GET", "url": "http://127.0.0.1:1/", "requestId": "r",
        "headers": [{"name": "X", "value": "", "valueEnvVar": "PLANTED"}]})
    if mode == "user":          # it is his own
        assert have["PLANTED"] == "secret" and code == -32603
        return
    assert set(have) == {"PATH", "LANG", "LC_TIME", "HOME", "USER", "LOGNAME", "SHELL"}
    assert (code, message) == (-32602, "http/request header X requires executor environment variable PLANTED")
    everywhere = c.run_sh("b", "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -c PLANTED")
    assert everywhere.stdout == "0\n"


def test_umask_and_files_are_the_users(client, directory, user):
    client.run_sh("a", f"echo x > {directory}/f; mkdir {directory}/d")
    assert (directory / "f").stat().st_uid == user.pw_uid
    assert stat.S_IMODE((directory / "f").stat().st_mode) == 0o666 & ~current_umask()


def current_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


LEASE = "import fcntl, os, sys; f = os.open(sys.argv[1], os.O_RDONLY); fcntl.fcntl(f, fcntl.F_SETLEASE, int(sys.argv[2])); " \
        "print('held', flush=True); sys.stdin.read()"


def test_a_lease_on_a_program_stops_nobody(client, directory, user):
    """execve(2) would wait for its holder, and the whole session with it."""
    program = directory / "program"
    program.write_text("#!/bin/sh\necho ran\n")
    program.chmod(0o755)
    os.chown(program, user.pw_uid, user.pw_gid) if ROOT else None
    holder = subprocess.Popen(as_user(user, [sys.executable, "-c", LEASE, str(program), str(fcntl.F_WRLCK)]),
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "held\n"
        m = client.request("process/start", {"processId": "a", "argv": [str(program)], "cwd": "file:///", "env": {},
                                             "tty": False}, timeout=10)
        # Where a slow file system is mounted, another test's too, the program was looked at before the start, and its
        # holder may have been told to give the lease up: then it runs. Either answer comes at once.
        busy = {"code": -32603, "message": "Text file busy (os error 26)", "data": {"kind": "spawnFailed"}}
        assert m.get("error", busy) == busy
        assert client.run("b", ["/bin/echo", "in"]).stdout == "in\n"
    finally:
        holder.communicate("")
    assert client.run("c", [str(program)]).stdout == "ran\n"


def test_a_closed_directory_of_path_hides_nothing(client, directory):
    """What may not be searched counts as empty; what is there and may not be run is refused as such."""
    closed, there = directory / "closed", directory / "there"
    closed.mkdir(0o700), there.mkdir(0o755)
    closed.chmod(0)
    (there / "refused").write_text("#!/bin/sh\n")
    (there / "refused").chmod(0o644)
    env = {"PATH": f"{closed}:{there}:/usr/bin"}

    def message(name):
        return client.start(f"p-{name}", [name], env=env)["error"]["message"]

    assert message("no-such-program") == "No such file or directory (os error 2)"
    assert message("refused") == "Permission denied (os error 13)"
    assert client.run("x", ["true"], env=env).code == 0
