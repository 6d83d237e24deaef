# SPDX-License-Identifier: ISC
"""The dialects of execd-runner: frames of version 1 and 6 (doc/protocol.md section 18)."""
import base64
import hashlib
import json
import os
import struct
import subprocess

import pytest
from conftest import RUNNER, WRAP, as_user, need_sandbox, pids_with, poll


READ_ALL = {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"}


class Runner:
    def __init__(self, user, read=None, write=None, args=("--stdio",)):
        self.child = subprocess.Popen(as_user(user, [*WRAP, str(RUNNER), *args]), stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.out = write or self.child.stdin
        self.into = read or self.child.stdout

    def raw(self, data):
        self.out.write(data)
        self.out.flush()

    version = 1

    def send(self, type, payload=None, version=None):
        body = json.dumps({"version": version or self.version, "type": type, "payload": payload or {}}).encode()
        self.raw(struct.pack("<I", len(body)) + body)

    def spawn(self, command, **extra):
        self.send("spawn_request", {"command": command, "cwd": "/tmp", "env": {"PATH": "/usr/bin:/bin"},
                                    "policy_json_or_preset": "danger-full-access", "sandbox_policy_cwd": "/tmp",
                                    "codex_home": "/tmp", "real_codex_home": "/tmp", "cap_sids": [],
                                    "timeout_ms": None, "tty": False, "stdin_open": False, **extra})

    def spawn_six(self, command, *entries, network="restricted", **extra):
        """The same in version 6, where nothing runs without a profile."""
        self.version = 6
        profile = {"type": "managed", "network": network,
                   "file_system": {"type": "restricted", "entries": [READ_ALL, *entries]}}
        self.send("spawn_request", {"command": command, "cwd": "/tmp", "env": {"PATH": "/usr/bin:/bin"},
                                    "permission_profile": profile, "workspace_roots": ["/tmp"], "codex_home": "/tmp",
                                    "real_codex_home": "/tmp", "cap_sids": ["S-1-5-21-1-2-3-4"], "tty": False,
                                    "network_proxy_restricting_sid": None, "timeout_ms": None, "stdin_open": False,
                                    "private_desktop_name": "CodexSandboxDesktop-1", **extra})

    def receive(self):
        head = self.into.read(4)
        if len(head) < 4:
            return None
        m = json.loads(self.into.read(struct.unpack("<I", head)[0]))
        assert m["version"] == self.version
        return m["type"], m["payload"]

    def all(self):
        messages = []
        while m := self.receive():
            messages.append(m)
        return messages, self.child.wait(10)


@pytest.fixture
def runner(user):
    made = []

    def make(**kwargs):
        made.append(Runner(user, **kwargs))
        return made[-1]

    yield make
    for r in made:
        r.child.kill()
        r.child.wait()


def text(messages, stream):
    return b"".join(base64.b64decode(p["data_b64"]) for t, p in messages if t == "output" and p["stream"] == stream)


def test_a_command(runner):
    r = runner()
    r.spawn(["sh", "-c", "echo hi; echo err >&2; exit 3"])
    messages, code = r.all()
    assert messages[0][0] == "spawn_ready" and messages[0][1]["process_id"] > 0
    assert (text(messages, "stdout"), text(messages, "stderr")) == (b"hi\n", b"err\n")
    assert messages[-1] == ("exit", {"exit_code": 3, "timed_out": False}) and code == 3


def test_stdin(runner):
    r = runner()
    r.spawn(["sh", "-c", "read a; echo got $a; kill -9 $$"], stdin_open=True)
    r.send("stdin", {"data_b64": base64.b64encode(b"line\n").decode()})
    messages, code = r.all()
    assert text(messages, "stdout") == b"got line\n" and messages[-1][1]["exit_code"] == 137
    r = runner()
    r.spawn(["cat"])
    assert r.all()[0][-1][1]["exit_code"] == 0


def test_a_terminal(runner):
    r = runner()
    r.spawn(["sh", "-c", "tty >/dev/null && echo yes; echo err >&2; read x; echo $x"], tty=True)
    r.send("stdin", {"data_b64": base64.b64encode(b"abc\n").decode()})
    messages, _ = r.all()
    out = text(messages, "stdout").decode()
    assert "yes\r\n" in out and "err\r\n" in out and out.endswith("abc\r\n")


def test_timeout(runner):
    r = runner()
    r.spawn(["sh", "-c", "echo before; sleep 1000"], timeout_ms=300)
    messages, code = r.all()
    assert messages[-1] == ("exit", {"exit_code": 192, "timed_out": True}) and code == 192
    assert text(messages, "stdout") == b"before\n"


def test_terminate_is_not_stuck_behind_unread_stdin(runner):
    r = runner()
    r.spawn(["sleep", "1000"], stdin_open=True)
    chunk = base64.b64encode(b"x" * 1000000).decode()
    for _ in range(20):
        r.send("stdin", {"data_b64": chunk})
    r.send("terminate")
    messages, code = r.all()
    assert messages[-1] == ("exit", {"exit_code": 137, "timed_out": False})


def test_background_children_end_with_the_command(runner):
    marker = f"47{os.getpid()}.5"
    r = runner()
    r.spawn(["sh", "-c", f"sleep {marker} & (setsid sleep {marker} &); echo hi"])
    messages, code = r.all()
    assert text(messages, "stdout") == b"hi\n" and messages[-1][1]["exit_code"] == 0
    assert not pids_with(marker)


def test_a_parent_that_goes_takes_the_command_along(runner):
    marker = f"48{os.getpid()}.5"
    r = runner()
    r.spawn(["sh", "-c", f"trap '' TERM HUP; setsid sleep {marker} & sleep {marker}; sleep {marker}"])
    assert r.receive()[0] == "spawn_ready"
    poll(lambda: len(pids_with(marker)) >= 2)
    r.child.stdin.close()
    assert r.child.wait(10) == 1
    poll(lambda: not pids_with(marker))


def test_ten_megabytes(runner):
    r = runner()
    r.spawn(["sh", "-c", "seq 1 1500000 | head -c 10000000"])
    messages, _ = r.all()
    want = "".join(f"{i}\n" for i in range(1, 1500001))[:10000000].encode()
    assert hashlib.sha256(text(messages, "stdout")).digest() == hashlib.sha256(want).digest()


def frame(data):
    return struct.pack("<I", len(data)) + data


SPAWN = {"command": ["true"], "cwd": "/tmp", "env": {}, "policy_json_or_preset": "danger-full-access"}


@pytest.mark.parametrize("data, code, words", [
    (frame(b"garbage"), "protocol", "expected value"),
    (frame(b"{}"), "protocol", "missing field `version`"),
    (frame(json.dumps({"version": 2, "type": "spawn_request", "payload": SPAWN}).encode()), "protocol",
     "unsupported version 2"),
    (frame(json.dumps({"version": 1, "type": "bogus", "payload": {}}).encode()), "protocol", "unknown variant"),
    (frame(json.dumps({"version": 1, "type": "stdin", "payload": {"data_b64": ""}}).encode()), "protocol",
     "stdin before spawn_request"),
    (frame(json.dumps({"version": 1, "type": "terminate", "payload": {}}).encode()), "protocol",
     "terminate before spawn_request"),
    (frame(json.dumps({"version": 1, "type": "spawn_request", "payload": {**SPAWN, "command": []}}).encode()),
     "protocol", "command must not be empty"),
    (frame(json.dumps({"version": 1, "type": "spawn_request", "payload": {**SPAWN, "cwd": "tmp"}}).encode()),
     "protocol", "expected an absolute path"),
    (frame(json.dumps({"version": 1, "type": "spawn_request", "payload": {**SPAWN, "command": ["/no"]}}).encode()),
     "spawn_failed", "exec: No such file or directory (os error 2)"),
    (frame(json.dumps({"version": 1, "type": "spawn_request",
                       "payload": {**SPAWN, "policy_json_or_preset": "no-such-preset"}}).encode()),
     "sandbox_unavailable", "expected value"),
    (struct.pack("<I", 0), "protocol", "an empty frame"),
    (struct.pack("<I", (8 << 20) + 1) + b"x" * 100, "protocol", "8388608"),
    (struct.pack("<I", 0xffffffff), "protocol", "8388608"),
])
def test_bad_frames(runner, data, code, words):
    r = runner()
    r.raw(data)
    messages, status = r.all()
    assert len(messages) == 1 and messages[0][0] == "error"
    assert messages[0][1]["code"] == code and words in messages[0][1]["message"]
    assert status == 1


@pytest.mark.parametrize("data, words", [(b"", "the input ends before spawn_request"),
                                         (b"\x05\x00\x00\x00abc", "the input ends inside a frame"),
                                         (b"\x05", "the input ends inside a frame")])
def test_an_empty_stream_and_a_cut_frame(runner, data, words):
    r = runner()
    r.raw(data)
    r.child.stdin.close()
    assert r.all() == ([("error", {"message": words, "code": "protocol"})], 1)


def test_a_cut_frame_behind_a_command(runner):
    marker = f"49{os.getpid()}.5"
    r = runner()
    r.spawn(["sleep", marker])
    assert r.receive()[0] == "spawn_ready"
    r.raw(b"\x05\x00\x00\x00abc")
    r.child.stdin.close()
    messages, status = r.all()
    assert messages[-1][1]["message"] == "the input ends inside a frame" and status == 1
    poll(lambda: not pids_with(marker))


@pytest.mark.parametrize("payload", [{}, {"policy_json_or_preset": None}, {"policy_json_or_preset": ""},
                                     {"policy": "read-only"}, {"permission_profile": {"type": "managed"}}])
def test_nothing_runs_without_a_policy(runner, directory, user, payload):
    """Absent, null, empty, or under a name that this version does not know: refused, never unsandboxed."""
    made = f"/tmp/execd-no-policy-{os.getpid()}"
    r = runner()
    spawn = {key: value for key, value in SPAWN.items() if key != "policy_json_or_preset"}
    r.send("spawn_request", {**spawn, "command": ["touch", made], "env": {"PATH": "/usr/bin:/bin"}, **payload})
    messages, status = r.all()
    assert [m[0] for m in messages] == ["error"] and messages[0][1]["code"] == "protocol", messages
    assert status == 1 and not os.path.exists(made)


def test_named_pipes(user, directory):
    for name in ("in", "out"):
        os.mkfifo(directory / name)
        os.chmod(directory / name, 0o666)
    child = subprocess.Popen(as_user(user, [*WRAP, str(RUNNER), "--pipe-in", str(directory / "in"),
                                            "--pipe-out", str(directory / "out")]))
    r = Runner.__new__(Runner)
    r.out = open(directory / "in", "wb")
    r.into = open(directory / "out", "rb")
    r.child = child
    r.spawn(["echo", "through pipes"])
    messages, code = r.all()
    assert text(messages, "stdout") == b"through pipes\n" and code == 0


@pytest.mark.parametrize("args", [["--pipe-in", "/x"], ["--stdio", "--pipe-in", "a", "--pipe-out", "b"], ["x"]])
def test_usage(user, args):
    p = subprocess.run(as_user(user, [*WRAP, str(RUNNER), *args]), capture_output=True, text=True, timeout=10)
    assert p.returncode == 2 and "usage:" in p.stderr


@pytest.mark.parametrize("preset, inside", [
    ("read-only", False), ("workspace-write", True),
    (json.dumps({"type": "workspace-write", "exclude_slash_tmp": True}), True),
    (json.dumps({"type": "read-only"}), False)])
def test_a_preset_is_enforced_and_leaves_nothing(runner, user, directory, preset, inside):
    need_sandbox("user", user)
    work = directory / "work"
    work.mkdir()
    work.chmod(0o777)
    script = "touch inside; touch ../outside; test -e .git && echo masked"
    r = runner()
    r.spawn(["/bin/sh", "-c", script], cwd=str(work), policy_json_or_preset=preset, sandbox_policy_cwd=str(work))
    messages, status = r.all()
    assert [m for t, m in messages if t == "error"] == [] and status == messages[-1][1]["exit_code"]
    assert os.listdir(work) == (["inside"] if inside else [])
    # It lies in /tmp, which workspace-write opens unless told otherwise.
    assert (directory / "outside").exists() == (preset == "workspace-write")
    assert (text(messages, "stdout") == b"masked\n") == inside


def test_version_six_closes_stdin(runner, user):
    need_sandbox("user", user)
    r = runner()
    r.spawn_six(["sh", "-c", "cat; echo end; exit 3"], stdin_open=True)
    r.send("stdin", {"data_b64": base64.b64encode(b"line\n").decode()})
    r.send("close_stdin")
    messages, code = r.all()
    assert text(messages, "stdout") == b"line\nend\n"
    assert messages[-1] == ("exit", {"exit_code": 3, "timed_out": False}) and code == 3


def test_version_six_sets_the_size_of_a_terminal(runner, user):
    need_sandbox("user", user)
    r = runner()
    r.spawn_six(["sh", "-c", "echo ready; read x; stty size"], tty=True, stdin_open=True)
    while b"ready" not in text([r.receive()], "stdout"):
        pass
    r.send("resize", {"size": {"rows": 33, "cols": 144}})
    r.send("stdin", {"data_b64": base64.b64encode(b"\n").decode()})
    messages, _ = r.all()
    assert b"33 144" in text(messages, "stdout")


@pytest.mark.parametrize("access", ["read", "write"])
def test_a_profile_is_enforced(runner, user, directory, access):
    need_sandbox("user", user)
    work = directory / "work"
    work.mkdir()
    work.chmod(0o777)
    r = runner()
    r.spawn_six(["touch", str(work / "made")], {"path": {"type": "path", "path": str(work)}, "access": access},
                cwd=str(work), workspace_roots=[str(work)])
    messages, _ = r.all()
    assert messages[-1][0] == "exit" and (work / "made").exists() == (access == "write"), messages


@pytest.mark.parametrize("profile", [{"type": "disabled"}, {"type": "external", "network": "enabled"}])
def test_version_six_runs_nothing_without_a_sandbox(runner, directory, profile):
    r = runner()
    r.spawn_six(["touch", str(directory / "made")], permission_profile=profile)
    messages, status = r.all()
    assert [t for t, _ in messages] == ["error"] and status == 1 and not (directory / "made").exists()
    assert messages[0][1]["code"] == "sandbox_unavailable" and messages[0][1]["stage"] == "spawn_child"


def test_a_message_of_another_version_than_the_first(runner):
    marker = f"50{os.getpid()}.5"
    r = runner()
    r.spawn(["sleep", marker])
    assert r.receive()[0] == "spawn_ready"
    r.send("close_stdin", version=6)
    messages, status = r.all()
    assert messages[-1][1]["message"] == "the version is not spawn_request's" and status == 1
    poll(lambda: not pids_with(marker))
