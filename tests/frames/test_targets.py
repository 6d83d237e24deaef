# SPDX-License-Identifier: ISC
"""cases.py on each target, and what only one has; scripts/windows runs it."""
import pathlib
import queue
import subprocess
import threading
import time

import pytest
from cases import CHILD, ROWS, SPAWN, WAITS, WAITS_S, expected, is_asked, table
from targets import DESKTOP, TARGETS, WINDOWS, Six, only_windows, spawn_payload, text, windows


def check(target, row, messages, status):
    want = dict(expected(target, row))
    last = messages[-1]["payload"]
    for stream in ("stdout", "stderr"):
        if stream in want:
            assert text(messages, stream) == want.pop(stream), messages
    assert want.pop("words", "") in last.get("message", ""), last
    assert want == {key: last.get(key) for key in want}, last
    assert all(m["version"] == row.version for m in messages if row.raw is None)
    if target != "codex" and row.status is None:
        # Linux tells the low byte of an exit code only.
        assert status == (last["exit_code"] & (255 if target == "linux" else -1) if "exit_code" in last else 1)


def send_all(r, target, row):
    r.send(row.version, SPAWN, spawn_payload(target, row))
    for type, payload in row.then:
        r.send(row.version, type, spawn_payload(target, row) if payload is None else payload)


def check_waits(r):
    """It runs a command, and does not end; what it leaves is ended by the fixture."""
    until = time.monotonic() + WAITS_S
    messages = []
    with pytest.raises(queue.Empty):
        while True:
            messages.append(r.receive(until))
    assert messages and {"spawn_ready", "output"} >= {m and m["type"] for m in messages}, messages


@pytest.mark.parametrize("target, row", [pytest.param(t, r, id=f"{t}-{r.name}") for t in TARGETS for r in ROWS
                                         if is_asked(t, r)])
def test_row(start, target, row):
    until = time.monotonic() + row.seconds
    r = start(target, *(["--network-is-blocked"] if target == "windows" else []))
    if row.raw is not None:
        r.raw(row.raw)
        r.child.stdin.close()
    else:
        # Who reads no more must not hold up the test.
        threading.Thread(target=send_all, args=(r, target, row), daemon=True).start()
    if expected(target, row) == WAITS:
        check_waits(r)
    else:
        check(target, row, r.all(until), r.ended()[0])


def test_the_table_of_the_documentation():
    """It is what a run with all targets prints, in which no row fails."""
    targets = ("linux", "windows", "codex")
    passed = {f"{t}-{r.name}": "pass" for t in targets for r in ROWS if is_asked(t, r)}
    text = (pathlib.Path(__file__).parents[2] / "doc/systems.md").read_text()
    assert "".join(f"    {line}\n" for line in table(targets, passed)) in text


# --- what only one target has -------------------------------------------------------------------------------------------

@only_windows
def test_a_restricted_network_needs_the_word_of_who_started_it(start):
    r = start("windows")
    r.send(6, SPAWN, spawn_payload("windows", Six(["cmd", "/c", "echo"])))
    messages = r.all(time.monotonic() + 30)
    assert messages[-1]["payload"]["code"] == "sandbox_unavailable"
    assert "--network-is-blocked" in messages[-1]["payload"]["message"]


@only_windows
def test_standard_input_and_output(start):
    r = start("windows", direct=True)
    payload = spawn_payload("windows", Six(["cmd", "/c", "echo direct"])) | {"policy_json_or_preset": "danger-full-access"}
    r.send(1, SPAWN, payload)
    messages = r.all(time.monotonic() + 30)
    assert text(messages, "stdout") == "direct" and messages[-1]["payload"]["exit_code"] == 0


@only_windows
@pytest.mark.parametrize("account, network", [("CodexSandboxOffline", True), ("codexsandboxonline", False), ("me", False)])
def test_a_parent_of_the_reference_says_it_by_the_account(start, account, network):
    """Its first account has no network, and both are there for commands only."""
    assert (default_acl(start, account=account)[2] != "") == (account != "me")
    r = start("windows", account=account)
    r.send(6, SPAWN, spawn_payload("windows", Six(["cmd", "/c", "echo served"])))
    messages = r.all(time.monotonic() + 30)
    assert text(messages, "stdout") == ("served" if network else ""), messages
    assert network or "--network-is-blocked" in messages[-1]["payload"]["message"], messages


def run_child(start, *command, version=6, args=("--network-is-blocked",), **how):
    """What the child wrote, without a network, under a restricted token."""
    row = Six([CHILD, *command])
    row.version = version
    r = start("windows", *args, **how)
    r.send(version, SPAWN, spawn_payload("windows", row))
    messages = r.all(time.monotonic() + 30)
    assert messages[-1]["payload"].get("exit_code") == 0, messages
    return text(messages, "stdout")


def default_acl(start, *args, **how):
    """The user of a command, the list of who may open what it makes, and the user's entry in that."""
    user, acl = run_child(start, "acl", args=("--network-is-blocked", *args), **how).splitlines()
    assert "S-1-5-21-1-2-3-4" in acl
    return user, acl, f"(A;;GA;;;{user})" if f"(A;;GA;;;{user})" in acl else ""


@only_windows
def test_a_sandbox_user_may_write_what_is_his(start):
    """Wine keeps the ACL of the token and not the restricting SIDs, which are the same."""
    assert not default_acl(start)[2]
    assert default_acl(start, "--sandbox-user")[2]


@only_windows
@pytest.mark.parametrize("version, desktop, has", [
    (1, DESKTOP, "WinSta0\\Default"), (6, DESKTOP, f"WinSta0\\{DESKTOP}"),
    (1, f"ExecdTest\\{DESKTOP}", f"ExecdTest\\{DESKTOP}"), (6, f"ExecdTest\\{DESKTOP}", f"ExecdTest\\{DESKTOP}")])
def test_a_command_is_given_a_desktop_of_the_runners_own_station(start, version, desktop, has):
    assert run_child(start, "desktop", version=version, desktop=desktop).lower() == has.lower()


@only_windows
@pytest.mark.parametrize("program", ["runner/windows/execd-runner.exe", "runner/launch/execd-launch.exe"])
def test_a_program_takes_long_paths(program):
    """Wine does not ask for it."""
    assert b"<longPathAware " in (WINDOWS / program).read_bytes()


@only_windows
def test_the_process_that_made_the_pipes(start):
    payload = spawn_payload("windows", Six(["cmd", "/c", "echo mine"]))
    r = start("windows", "--network-is-blocked", "--server-pid", "PID")
    r.send(6, SPAWN, payload)
    assert text(r.all(time.monotonic() + 30), "stdout") == "mine"
    r = start("windows", "--network-is-blocked", "--server-pid", "7")
    r.send(6, SPAWN, payload)
    assert r.receive(time.monotonic() + 30) is None
    status, said = r.ended()
    assert status == 1 and b"made this pipe, and --server-pid is 7" in said


NOWHERE = "\\\\.\\pipe\\execd-nowhere"


@only_windows
@pytest.mark.parametrize("status, says, args", [
    (1, "execd-nowhere: Windows error 2", ["--pipe-in", NOWHERE, "--pipe-out", NOWHERE]),
    # As the reference server starts its own runner.
    (1, "execd-nowhere: Windows error 2", [f"--pipe-in={NOWHERE}", f"--pipe-out={NOWHERE}", "--server-pid=7"]),
    (2, "usage", ["--pipe-in", NOWHERE]),
    (2, "usage", ["--pipe-out", NOWHERE, "--pipe-in"]),
    (2, "usage", [f"--pipe-input={NOWHERE}", f"--pipe-out={NOWHERE}"]),
    (2, "usage", ["--stdio", f"--pipe-in={NOWHERE}", f"--pipe-out={NOWHERE}"]),
    (2, "usage", ["--stdio", "--server-pid=7"]),
    *[(2, "usage", [f"--pipe-in={NOWHERE}", f"--pipe-out={NOWHERE}", pid])
      for pid in ("--server-pid=", "--server-pid=-7", "--server-pid=7x", "--server-pid=4294967296")],
])
def test_its_command_line(prefix, status, says, args):
    done = prefix.run(str(WINDOWS / "runner/windows/execd-runner.exe"), *args)
    assert done.returncode == status and says in done.stderr, done


@only_windows
def test_a_runner_that_ends_before_it_opens_its_pipes_is_not_waited_for(start):
    r = start("windows", "--bogus")
    assert r.receive(time.monotonic() + 30) is None and r.ended()[0] == 2


@only_windows
def test_ten_megabytes(start, prefix):
    path = prefix.c / "big.txt"
    path.write_bytes(b"0123456789abcde\n" * 655360)
    r = start("windows", "--network-is-blocked")
    r.send(6, SPAWN, spawn_payload("windows", Six(["cmd", "/c", "type big.txt"])))
    messages = r.all(time.monotonic() + 60)
    assert text(messages, "stdout").encode() == path.read_bytes().strip() and messages[-1]["payload"]["exit_code"] == 0


@only_windows
def test_a_batch_file(start, prefix):
    (prefix.c / "say it.bat").write_text("@echo [%~1] [%~2]\r\n")
    r = start("windows", "--network-is-blocked")
    r.send(6, SPAWN, spawn_payload("windows", Six(["C:\\say it.bat", "a b", "&echo no"])))
    messages = r.all(time.monotonic() + 30)
    assert messages[-1]["payload"].get("exit_code") == 0, messages
    r = start("windows", "--network-is-blocked")
    r.send(6, SPAWN, spawn_payload("windows", Six(["C:\\say it.bat", '"&echo no'])))
    assert r.all(time.monotonic() + 30)[-1]["payload"]["code"] == "spawn_failed"


@only_windows
def test_a_console(start):
    """Wine gives a process in a pseudo console no standard handles, so the command opens the console by its name."""
    r = start("windows", "--network-is-blocked")
    r.send(6, SPAWN, spawn_payload("windows", Six(["cmd", "/c", "echo from a console>CON"], tty=True, stdin_open=True)))
    messages = r.all(time.monotonic() + 60)
    assert "from a console" in text(messages, "stdout") and messages[-1]["payload"]["exit_code"] == 0, messages


@only_windows
def test_the_version_says_what_is_not_enforced(prefix):
    out = subprocess.run([windows.wine(), str(WINDOWS / "runner/windows/execd-runner.exe"), "--version"], env=prefix.env,
                         capture_output=True, text=True, timeout=60).stdout
    assert out.startswith("execd-runner ") and "not enforced here" in out and "not run on Windows" in out
    for what in ["tokens", "DACLs", "CreateProcessWithLogonW", "LogonUser", "resize", "Ctrl-C", "control flow guard"]:
        assert what in " ".join(out.split()), out


@only_windows
@pytest.mark.parametrize("unit", sorted(p.name for p in WINDOWS.glob("tests/frames/test_*.exe")) if WINDOWS else [])
def test_unit(prefix, unit):
    """The units that need no system (tests/frames/meson.build)."""
    done = prefix.run(str(WINDOWS / "tests/frames" / unit))
    assert done.returncode == 0, done.stdout + done.stderr
