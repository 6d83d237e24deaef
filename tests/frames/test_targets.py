# SPDX-License-Identifier: ISC
"""cases.py on each target; scripts/windows runs it. EXECD_BUILD names the build for Linux, EXECD_WINDOWS the other."""
import base64
import json
import os
import pathlib
import queue
import struct
import subprocess
import sys
import threading
import time

import pytest
from cases import CHILD, ROWS, SPAWN, profile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "codex"))
import windows  # noqa: E402

LINUX = os.environ.get("EXECD_BUILD") and pathlib.Path(os.environ["EXECD_BUILD"]).resolve() / "runner/execd-runner"
WINDOWS = os.environ.get("EXECD_WINDOWS") and pathlib.Path(os.environ["EXECD_WINDOWS"]).resolve()
DESKTOP = "CodexSandboxDesktop-1"
TARGETS = [name for name, there in [("linux", LINUX), ("windows", WINDOWS),
                                    ("codex", WINDOWS and os.environ.get("EXECD_CODEX"))] if there]


class Runner:
    """A runner with its parent; what it says is read by a thread, so that nobody waits for ever."""

    def __init__(self, argv, env=None):
        self.child = subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE)
        self.messages = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        while len(head := self.child.stdout.read(4)) == 4:
            self.messages.put(json.loads(self.child.stdout.read(struct.unpack("<I", head)[0])))
        self.messages.put(None)

    def send(self, version, type, payload):
        body = json.dumps({"version": version, "type": type, "payload": payload}).encode()
        self.raw(struct.pack("<I", len(body)) + body)

    def raw(self, text):
        try:
            self.child.stdin.write(text)
            self.child.stdin.flush()
        except BrokenPipeError:
            pass  # its answer says why it left

    def receive(self, until):
        return self.messages.get(timeout=max(0.1, until - time.monotonic()))

    def all(self, until):
        messages = []
        while (m := self.receive(until)) is not None:
            messages.append(m)
        assert messages, f"it said nothing: {self.child.wait(10)}, {self.child.stderr.read()}"
        return messages


@pytest.fixture(scope="session")
def prefix(tmp_path_factory):
    if not WINDOWS:
        yield None
        return
    lacking = windows.missing()
    if lacking:
        pytest.skip(f"not here: {', '.join(lacking)}")
    made = windows.Prefix(tmp_path_factory.mktemp("prefix"), codex="codex" in TARGETS)
    yield made
    made.stop()


@pytest.fixture
def start(prefix):
    made = []

    def make(target, *args, direct=False):
        if target == "linux":
            argv, env = [str(LINUX), "--stdio"], None
        else:
            program = prefix.runner() if target == "codex" else WINDOWS / "runner/windows/execd-runner.exe"
            argv = [windows.wine(), str(WINDOWS / "tests/frames/parent.exe"), DESKTOP, prefix.name(program), *args]
            if direct:
                argv = [windows.wine(), str(program), *args, "--stdio"]
            env = prefix.env
        made.append(Runner(argv, env))
        return made[-1]

    yield make
    for r in made:
        r.child.kill()
        r.child.wait()


def spawn_payload(target, row):
    home = "/tmp" if target == "linux" else "C:\\"
    env = {"PATH": "/usr/bin:/bin"} if target == "linux" else {
        "PATH": "C:\\windows\\system32", "SystemRoot": "C:\\windows", "SystemDrive": "C:"}
    p = {"command": getattr(row, "linux" if target == "linux" else "windows"), "cwd": home, "env": env,
         "codex_home": home, "real_codex_home": home, "cap_sids": ["S-1-5-21-1-2-3-4"], "timeout_ms": None,
         "tty": False, "stdin_open": False}
    if row.version == 1:
        p |= {"policy_json_or_preset": "danger-full-access" if target == "linux" else "read-only",
              "sandbox_policy_cwd": home}
    else:
        p |= {"permission_profile": profile(), "workspace_roots": [home], "network_proxy_restricting_sid": None,
              "private_desktop_name": DESKTOP}
    if p["command"][0] == CHILD:
        p["command"] = [windows.Prefix.name(WINDOWS / "tests/frames" / CHILD), *p["command"][1:]]
    return p | row.spawn | {"env": env | row.spawn.get("env", {})}


def expected(target, row):
    return row.expect if target not in row.differs else row.differs[target]


def is_asked(target, row):
    has_command = row.raw is not None or getattr(row, "linux" if target == "linux" else "windows")
    return has_command and expected(target, row) is not None and not (target == "codex" and row.version == 1)


def text(messages, stream):
    return b"".join(base64.b64decode(m["payload"]["data_b64"]) for m in messages
                    if m["type"] == "output" and m["payload"]["stream"] == stream).decode().strip()


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
        # Wine tells the low byte of an exit code only.
        assert status == (last["exit_code"] & 255 if "exit_code" in last else 1)


@pytest.mark.parametrize("target, row", [pytest.param(t, r, id=f"{t}-{r.name}") for t in TARGETS for r in ROWS
                                         if is_asked(t, r)])
def test_row(start, target, row):
    until = time.monotonic() + row.seconds
    r = start(target, *(["--network-is-blocked"] if target == "windows" else []))
    messages = []
    if row.raw is not None:
        r.raw(row.raw)
        r.child.stdin.close()
    else:
        r.send(row.version, SPAWN, spawn_payload(target, row))
        if row.then and (first := r.receive(until)):
            messages.append(first)
        for type, payload in row.then:
            r.send(row.version, type, spawn_payload(target, row) if payload is None else payload)
    messages += r.all(until)
    check(target, row, messages, r.child.wait(10))


# --- what only one target has -------------------------------------------------------------------------------------------

only_windows = pytest.mark.skipif(not WINDOWS, reason="EXECD_WINDOWS is not set: scripts/windows sets it")


class Six:
    """As much of a row as spawn_payload() wants."""

    version = 6

    def __init__(self, command, **spawn):
        self.linux = self.windows = command
        self.spawn = spawn


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
def test_the_process_that_made_the_pipes(start):
    payload = spawn_payload("windows", Six(["cmd", "/c", "echo mine"]))
    r = start("windows", "--network-is-blocked", "--server-pid", "PID")
    r.send(6, SPAWN, payload)
    assert text(r.all(time.monotonic() + 30), "stdout") == "mine"
    r = start("windows", "--network-is-blocked", "--server-pid", "7")
    r.send(6, SPAWN, payload)
    assert r.receive(time.monotonic() + 30) is None and r.child.wait(10) == 1
    assert b"made this pipe, and --server-pid is 7" in r.child.stderr.read()


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
    r = start("windows", "--network-is-blocked")
    r.send(6, SPAWN, spawn_payload("windows", Six(["cmd", "/c", "echo from a console"], tty=True, stdin_open=True)))
    messages = r.all(time.monotonic() + 60)
    assert "from a console" in text(messages, "stdout") and messages[-1]["payload"]["exit_code"] == 0, messages


@only_windows
def test_the_version_says_what_is_not_enforced(prefix):
    out = subprocess.run([windows.wine(), str(WINDOWS / "runner/windows/execd-runner.exe"), "--version"], env=prefix.env,
                         capture_output=True, text=True, timeout=60).stdout
    assert out.startswith("execd-runner ") and "not enforced there" in out and "not run on Windows" in out


@only_windows
@pytest.mark.parametrize("unit", sorted(p.name for p in WINDOWS.glob("tests/frames/test_*.exe")) if WINDOWS else [])
def test_unit(prefix, unit):
    """The units that need no system (tests/frames/meson.build)."""
    done = prefix.run(str(WINDOWS / "tests/frames" / unit))
    assert done.returncode == 0, done.stdout + done.stderr
