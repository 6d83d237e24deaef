# SPDX-License-Identifier: ISC
"""execd-launch.exe without --user, which is all that a Wine can run; with --user, that nothing runs.

Not tested, because no Wine 8 can: that a logon succeeds, whose it is, and that a DACL keeps anybody out.
"""
import os
import subprocess
import tempfile
import time

import pytest
from cases import CHILD, CLOSE, KILL, SPAWN, STDIN, data
from targets import WINDOWS, Runner, Six, only_windows, spawn_payload, text, windows
from test_load import gone_after, of, settled

pytestmark = only_windows
SANDBOXED = ["--network-is-blocked", "--cap-sid", "S-1-5-21-1-2-3-4"]
LAUNCHER = "execd-launch.ex"
STARTED = (LAUNCHER, "execd-runner.ex", "rogue.exe", "child.exe")
MINUTE = 60
UTF8 = {"LC_ALL": "C.UTF-8"}  # or Wine reads arguments and variables otherwise


def at(name):
    return windows.Prefix.name(WINDOWS / name)


def argv(*args, runner="runner/windows/execd-runner.exe"):
    return [windows.wine(), str(WINDOWS / "runner/launch/execd-launch.exe"), "--runner", at(runner), *args]


def run(line, prefix, env=(), **input):
    """Standard error is a file: Wine's own process for a desktop keeps the launcher's for two seconds more."""
    with tempfile.TemporaryFile() as errors:
        done = subprocess.run(line, env=prefix.env | UTF8 | dict(env), stdout=subprocess.PIPE, stderr=errors,
                              timeout=MINUTE, **input)
        errors.seek(0)
        done.stderr = errors.read()
    return done


def launch(prefix, *command, options=(), input=b"", cwd="C:\\", runner="runner/windows/execd-runner.exe", **env):
    """Runs one command through a launcher."""
    command = [at(f"tests/frames/{CHILD}"), *command[1:]] if command[0] == CHILD else command
    return run(argv(*SANDBOXED, *options, "--cwd", cwd, "--", *command, runner=runner), prefix, env, input=input)


@pytest.fixture
def frames(prefix):
    made = []

    def make(*args, **more):
        env = prefix.env | more.pop("env", {})
        made.append(Runner(argv("--network-is-blocked", "--frames", *args, **more), env))
        return made[-1]

    yield make
    for r in made:
        r.child.kill()
        r.child.wait()
    gone_after(prefix, 10, *STARTED)


def v1(*command, **more):
    """A spawn_request of version 1, which needs no desktop; without a sandbox."""
    p = spawn_payload("windows", Six(list(command), **more)) | {"policy_json_or_preset": "danger-full-access"}
    return {k: v for k, v in p.items() if k not in ("permission_profile", "workspace_roots", "private_desktop_name")}


def until_last(r, seconds=MINUTE):
    """The messages of one command, up to its last."""
    until, messages = time.monotonic() + seconds, []
    while not messages or messages[-1]["type"] not in ("exit", "error"):
        messages.append(r.receive(until))
        assert messages[-1] is not None, r.child.stderr.read()
    return messages


def until_ready(r):
    until, messages = time.monotonic() + MINUTE, []
    while "ready" not in text(messages, "stdout"):
        messages.append(r.receive(until))
        assert messages[-1] and messages[-1]["type"] != "error", messages
    return messages


def there_is_one(prefix, name):
    """Linux has a process later than Wine, and lets go of it later."""
    until = time.monotonic() + MINUTE
    while len(found := of(prefix, name)) != 1:
        assert time.monotonic() < until, found
        time.sleep(0.002)


def refused(done, code, *words):
    last = done.stderr.decode().strip().splitlines()[-1]
    assert done.returncode == 125 and done.stdout == b"", done
    assert last.startswith(f"execd-launch: {code}: ") and all(w in last for w in words), done


# --- one command ----------------------------------------------------------------------------------------------------------

def test_streams_and_exit_code(prefix):
    done = launch(prefix, "cmd", "/c", "echo out& echo err>&2& exit 7")
    assert (done.stdout, done.stderr, done.returncode) == (b"out\r\n", b"err\r\n", 7)


def test_input_up_to_its_end(prefix):
    sent = os.urandom(3 << 20)
    done = launch(prefix, CHILD, "cat", input=sent)
    assert done.stdout == sent and done.returncode == 0, done.stderr


def test_input_from_a_file(prefix):
    (prefix.c / "in.txt").write_bytes(b"of a file\n" * 20000)
    command = argv(*SANDBOXED, "--cwd", "C:\\", "--", at(f"tests/frames/{CHILD}"), "cat")
    with open(prefix.c / "in.txt", "rb") as file:
        done = run(command, prefix, stdin=file)
    assert done.stdout == (prefix.c / "in.txt").read_bytes() and done.returncode == 0, done.stderr


def test_a_megabyte_in_many_chunks(prefix):
    (prefix.c / "big.txt").write_bytes(b"0123456789abcde\n" * 65536)
    assert launch(prefix, "cmd", "/c", "type big.txt").stdout == (prefix.c / "big.txt").read_bytes()


def test_whole_exit_code(prefix):
    """Wine tells a Linux only the low byte; a batch file sees all of it."""
    line = " ".join([at("runner/launch/execd-launch.exe"), *SANDBOXED, "--runner", at("runner/windows/execd-runner.exe"),
                     "--cwd C:\\ --", at(f"tests/frames/{CHILD}"), "exit 0xC0000005"])
    (prefix.c / "code.bat").write_text(f"@{line}\r\n@echo %ERRORLEVEL%\r\n")
    assert prefix.run("cmd.exe", "/c", "C:\\code.bat").stdout.strip() == "-1073741819"


def test_arguments(prefix):
    said = launch(prefix, CHILD, "args", "a b", 'c"d', "e\\", "--", "äöü").stdout.decode().split("\n")
    assert said == ["a b", 'c"d', "e\\", "--", "äöü", ""]


def test_timeout(prefix):
    done = launch(prefix, CHILD, "sleep", "1000000", options=["--timeout-ms", "3000"])
    assert done.returncode == 192 and b"ready" in done.stdout, done


@pytest.mark.parametrize("policy, words", [
    ("workspace-write", None), ("read-only", None),
    ('{"type":"managed","network":"restricted","file_system":{"type":"restricted","entries":[]}}', "reading is restricted"),
    ('{"type":"disabled"}', ""), ('"read-only"', ""), ("{", ""), ("danger-full-access", "")])
def test_policy(prefix, policy, words):
    done = launch(prefix, "cmd", "/c", "echo hi", options=["--policy", policy])
    if words is None:
        assert (done.stdout, done.returncode) == (b"hi\r\n", 0), done
    else:
        refused(done, "protocol" if words == "" and policy[0] != "{" or policy == "{" else "sandbox_unavailable", words)


def test_what_the_runner_refuses_is_told(prefix):
    refused(launch(prefix, "C:\\nowhere\\x.exe"), "spawn_failed", "not found")
    line = argv("--cap-sid", "S-1-5-21-1-2-3-4", "--cwd", "C:\\", "--", "cmd", "/c", "echo hi")
    refused(run(line, prefix, stdin=subprocess.DEVNULL), "sandbox_unavailable", "--network-is-blocked")


def test_a_sid_that_is_none(prefix):
    refused(launch(prefix, "cmd", options=["--cap-sid", "S-no"]), "sandbox_unavailable", "a SID (Windows error 1336)")


def test_the_environment(prefix):
    assert launch(prefix, CHILD, "env", "Mine", MINE="ä=ö").stdout.decode() == "ä=ö\n"


def test_git_may_use_the_repository(prefix):
    for path in ("work/repo/.git", "work/repo/deep/in", "work/bare"):
        (prefix.c / path).mkdir(parents=True, exist_ok=True)

    def git(cwd, **env):
        said = launch(prefix, "cmd", "/c", "set GIT_CONFIG", cwd=cwd, **env).stdout.decode()
        return dict(line.split("=", 1) for line in said.split("\r\n") if line)

    ours = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "C:/work/repo"}
    assert git("C:\\work\\repo\\deep\\in") == ours and git("C:\\work\\repo") == ours
    assert git("C:\\work\\bare") == ours | {"GIT_CONFIG_VALUE_0": "C:/work/bare"}
    theirs = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "a.b", "GIT_CONFIG_VALUE_0": "c"}
    assert git("C:\\work\\repo", **theirs) == theirs | {
        "GIT_CONFIG_COUNT": "2", "GIT_CONFIG_KEY_1": "safe.directory", "GIT_CONFIG_VALUE_1": "C:/work/repo"}


# --- several commands -----------------------------------------------------------------------------------------------------

def test_one_logon_for_many_commands(frames, prefix):
    r, seen = frames(), set()
    for n in range(10):
        r.send(1, SPAWN, v1(CHILD, "sleep", "1000000"))
        until_ready(r)
        seen.add(tuple(sorted(of(prefix, LAUNCHER))))
        there_is_one(prefix, "execd-runner.ex")
        r.send(1, KILL, {})
        assert until_last(r)[-1]["payload"]["exit_code"] == 1
    # The outer launcher and the inner one, which would have been logged on; the same two each time.
    assert [len(s) for s in seen] == [2], seen
    r.child.stdin.close()
    assert r.receive(time.monotonic() + MINUTE) is None and r.child.wait(MINUTE) == 0, r.child.stderr.read()


def test_frames_pass_unchanged(frames):
    r = frames("--desktop", "LaunchTest", "--cap-sid", "S-1-5-21-1-2-3-4")
    r.send(1, SPAWN, v1(CHILD, "sleep", "1000000"))
    ready, out = r.receive(time.monotonic() + MINUTE), r.receive(time.monotonic() + MINUTE)
    assert ready["version"] == 1 and ready["type"] == "spawn_ready" and text([out], "stdout") == "ready"
    r.send(1, KILL, {})
    until_last(r)
    # The next one has another version, and an end of its input.
    r.send(6, SPAWN, spawn_payload("windows", Six([CHILD, "cat"], stdin_open=True, private_desktop_name="LaunchTest")))
    r.send(6, STDIN, data(b"six\n"))
    r.send(6, CLOSE, {})
    messages = until_last(r)
    assert text(messages, "stdout") == "six" and messages[-1] == {
        "version": 6, "type": "exit", "payload": {"exit_code": 0, "timed_out": False}}


def test_the_name_of_a_desktop_is_unicode(frames):
    r = frames("--desktop", "Büro", "--cap-sid", "S-1-5-21-1-2-3-4", env=UTF8)
    r.send(6, SPAWN, spawn_payload("windows", Six([CHILD, "desktop"], private_desktop_name="Büro")))
    assert text(until_last(r), "stdout").endswith("\\Büro")


def test_what_comes_too_late_is_dropped(frames):
    r = frames()
    for n in range(3):
        r.send(1, SPAWN, v1("cmd", "/c", f"echo say{n}"))
        messages = until_last(r)
        assert text(messages, "stdout") == f"say{n}" and messages[-1]["type"] == "exit"
        r.send(1, STDIN, data(b"late"))
        r.send(1, KILL, {})


def test_what_is_no_spawn_request_is_answered(frames):
    r = frames()
    r.send(1, STDIN, data(b""))
    assert until_last(r)[-1]["payload"]["message"] == "stdin before spawn_request"
    r.raw(b"\x07\0\0\0garbage")
    assert until_last(r)[-1]["payload"]["code"] == "protocol"
    r.send(1, SPAWN, v1("cmd", "/c", "echo still here"))
    assert text(until_last(r), "stdout") == "still here"


@pytest.mark.parametrize("raw", [b"\x05\0\0\0abc", b"\x05", b"\0\0\0\0", b"\xff\xff\xff\xff"],
                         ids=["cut", "cut-length", "empty", "long"])
def test_bad_frames_end_it(frames, prefix, raw):
    r = frames()
    r.send(1, SPAWN, v1(CHILD, "sleep", "1000000"))
    until_ready(r)
    r.raw(raw)
    r.child.stdin.close()
    assert until_last(r)[-1]["payload"]["code"] == "protocol"
    assert r.child.wait(MINUTE) == 125
    gone_after(prefix, 10, *STARTED)


# --- ends -----------------------------------------------------------------------------------------------------------------

def test_the_end_of_the_parent_ends_the_command(frames, prefix):
    r = frames()
    r.send(1, SPAWN, v1(CHILD, "sleep", "1000000"))
    until_ready(r)
    r.child.stdin.close()
    assert r.child.wait(MINUTE) == 1 and r.receive(time.monotonic() + 5) is None
    gone_after(prefix, 10, *STARTED)


def test_a_killed_launcher_takes_its_tree(frames, prefix):
    r = frames()
    # cmd, and the child that it starts.
    command = v1(CHILD)["command"][0]
    r.send(1, SPAWN, v1("cmd", "/c", f"{command} sleep 1000000"))
    until_ready(r)
    assert of(prefix, "child.exe") and of(prefix, "execd-runner.ex") and len(of(prefix, LAUNCHER)) == 2
    os.kill(r.child.pid, 9)
    gone_after(prefix, 10, *STARTED, "cmd.exe")


def test_a_killed_launcher_takes_a_runner_that_reads_nothing(frames, prefix):
    """The end of a pipe tells it nothing; its job ends it."""
    r = frames(runner="tests/frames/rogue.exe", env={"ROGUE": "sleep"})
    r.send(1, SPAWN, v1("cmd"))
    there_is_one(prefix, "rogue.exe")
    os.kill(r.child.pid, 9)
    gone_after(prefix, 10, *STARTED)


def test_a_killed_inner_launcher_ends_all(frames, prefix):
    r = frames()
    r.send(1, SPAWN, v1(CHILD, "sleep", "1000000"))
    until_ready(r)
    [inner] = [p for _, p in of(prefix, LAUNCHER) if p != r.child.pid]
    os.kill(inner, 9)
    assert r.receive(time.monotonic() + MINUTE) is None and r.child.wait(MINUTE) == 125
    assert b"the inner launcher was ended" in r.child.stderr.read()
    gone_after(prefix, 10, *STARTED)


def test_a_killed_runner_is_told_and_the_next_one_runs(frames, prefix):
    r = frames()
    r.send(1, SPAWN, v1(CHILD, "sleep", "1000000"))
    until_ready(r)
    [(_, runner)] = of(prefix, "execd-runner.ex")
    os.kill(runner, 9)
    last = until_last(r)[-1]["payload"]
    assert last["code"] == "spawn_failed" and last["message"].startswith("the runner ended with ")
    gone_after(prefix, 10, "child.exe")
    r.send(1, SPAWN, v1("cmd", "/c", "echo next"))
    assert text(until_last(r), "stdout") == "next"


# --- runners that are none ------------------------------------------------------------------------------------------------

def rogue(prefix, what, *options):
    return launch(prefix, "cmd", options=options, runner="tests/frames/rogue.exe", ROGUE=what)


def test_a_runner_that_dies_is_told_at_once(prefix):
    since = time.monotonic()
    done = rogue(prefix, "say", "--start-timeout-ms", "50000")
    refused(done, "spawn_failed", "the runner ended with 3 before it opened its pipes")
    assert done.stderr.decode().splitlines()[0] == "last words" and time.monotonic() - since < 20


def test_a_runner_that_is_missing(prefix):
    refused(launch(prefix, "cmd", runner="nowhere.exe"), "spawn_failed", "nowhere.exe", "(Windows error 2)")


def test_a_runner_with_a_name_that_is_too_long(prefix):
    refused(launch(prefix, "cmd", runner="x" * 5000 + ".exe"), "spawn_failed", "--runner (Windows error 206)")


def test_a_runner_that_opens_nothing(prefix):
    refused(rogue(prefix, "sleep", "--start-timeout-ms", "700"), "spawn_failed", "within 700 ms")
    gone_after(prefix, 10, *STARTED)


def test_pipes_that_another_process_opened(prefix):
    refused(rogue(prefix, "other"), "sandbox_unavailable", "opened a pipe of the runner, which is process")
    gone_after(prefix, 10, *STARTED)


def test_a_runner_that_speaks_no_frames(prefix):
    refused(rogue(prefix, "garbage"), "spawn_failed", "speaks no frames")


@pytest.mark.parametrize("what, next", [("open", None), ("linger", SPAWN)])
def test_a_runner_that_does_not_end(frames, prefix, what, next):
    r = frames("--start-timeout-ms", "700", runner="tests/frames/rogue.exe", env={"ROGUE": what})
    r.send(1, SPAWN, {})
    if next:
        assert until_last(r) == [{"type": "exit"}]
        r.send(1, next, v1("cmd"))
    else:
        there_is_one(prefix, "rogue.exe")
        r.child.stdin.close()
    assert until_last(r)[-1]["payload"]["message"] == "the runner does not end"
    assert r.child.wait(MINUTE) == 125
    gone_after(prefix, 10, *STARTED)


def test_the_pipes_are_for_one_user(prefix):
    """Wine keeps a DACL, and lets everybody in."""
    done = rogue(prefix, "dacl")
    refused(done, "spawn_failed", "the runner ended with 4")
    said = [line.split()[1] for line in done.stderr.decode().splitlines() if line.startswith("dacl ")]
    assert len(said) == 2 and all(s.startswith("D:P(A;;G") and s.endswith(";;;OW)") and s.count("(") == 1 for s in said), said


def test_a_failure_is_a_frame(frames):
    r = frames(runner="tests/frames/rogue.exe", env={"ROGUE": "say"})
    r.send(6, SPAWN, {})
    [last] = until_last(r)
    assert last["version"] == 6 and last["payload"]["code"] == "spawn_failed" and "ended with 3" in last["payload"]["message"]
    assert r.child.wait(MINUTE) == 125


# --- another user ---------------------------------------------------------------------------------------------------------


def me(prefix):
    return prefix.run("cmd.exe", "/c", "echo %USERNAME%").stdout.strip()


def test_without_the_logon_nothing_runs(prefix):
    """Wine 8 has a stub of CreateProcessWithLogonW; what it would have run says so in no file."""
    options = ["--user", me(prefix), "--password-env", "SECRET"]
    done = launch(prefix, "cmd", "/c", "echo ran>C:\\ran.txt", options=options, SECRET="hunter2")
    refused(done, "sandbox_unavailable", "CreateProcessWithLogonW (Windows error 120)")
    assert not (prefix.c / "ran.txt").exists() and b"hunter2" not in done.stderr
    gone_after(prefix, 10, *STARTED)


def test_the_logon_is_refused_in_a_frame(frames, prefix):
    r = frames("--user", me(prefix), "--password-env", "SECRET", env={"SECRET": "x"})
    [last] = until_last(r)
    assert last == {"version": 6, "type": "error", "payload": {
        "message": "CreateProcessWithLogonW (Windows error 120)", "code": "sandbox_unavailable", "stage": "spawn_child",
        "windows_error_code": 120}}
    assert r.child.wait(MINUTE) == 125


@pytest.mark.parametrize("options, has", [([], False), (["--sandbox-user"], True)])
def test_who_is_the_sandbox_user_is_passed_on(prefix, options, has):
    user, acl = launch(prefix, CHILD, "acl", options=options).stdout.decode().split()
    assert (f"(A;;GA;;;{user})" in acl) == has, acl


def test_a_password_that_is_not_there(prefix):
    options = ["--user", me(prefix), "--password-env", "SECRET"]
    refused(launch(prefix, "cmd", options=options), "sandbox_unavailable", "SECRET: not set")


# --- the program ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("args", [[], ["--bogus"], ["--runner"], ["--frames"], ["--runner", "C:\\r", "--cwd", "C:\\"],
                                  ["--runner", "C:\\r", "--frames", "--", "x"], ["--runner", "r", "--user", "u", "--frames"]])
def test_a_wrong_command_line(prefix, args):
    done = prefix.run(str(WINDOWS / "runner/launch/execd-launch.exe"), *args)
    assert done.returncode == 2 and done.stderr.startswith("execd-launch: ") and "usage: " in done.stderr


def test_the_version_says_what_was_not_run(prefix):
    out = " ".join(prefix.run(str(WINDOWS / "runner/launch/execd-launch.exe"), "--version").stdout.split())
    assert out.startswith("execd-launch ") and "not run on Windows" in out and "CreateProcessWithLogonW" in out


@pytest.mark.nightly
def test_nothing_is_left(frames, prefix):
    for n in range(3):
        assert launch(prefix, "cmd", "/c", "echo warm").returncode == 0
    gone_after(prefix, 10, *STARTED)
    before = settled(prefix)
    for n in range(30):
        assert launch(prefix, "cmd", "/c", "echo hi").returncode == 0
    r = frames()
    for n in range(200):
        r.send(1, SPAWN, v1("cmd", "/c", f"echo say{n}"))
        assert text(until_last(r), "stdout") == f"say{n}"
    r.child.stdin.close()
    assert r.child.wait(MINUTE) == 0
    gone_after(prefix, 10, *STARTED)
    after = settled(prefix)
    assert after[0] <= before[0] + 2 and after[1] <= before[1], (before, after)
