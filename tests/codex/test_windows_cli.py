# SPDX-License-Identifier: ISC
"""The real Codex CLI for Windows, under Wine, uses an execd on Linux (scripts/test --with-codex): path-map.

Everything runs here but what depends on the client's own Windows. The workspace of Codex is C:\\work, a directory
of its drive that stays empty; the files and commands are those of the mapped directory.
"""
import base64
import json
import os
import pathlib
import shutil
import sys

import pytest

sys.path[:0] = [os.path.dirname(__file__), os.path.join(os.path.dirname(__file__), "../integration")]
import windows  # noqa: E402
from conftest import digest, kill, need_sandbox  # noqa: E402
from test_codex import (PATCH, assert_no_refusal, clean, configured, directory, gate, log, mode, png,  # noqa: E402,F401
                        spawn, user)
from windows import Prefix, WindowsCodex  # noqa: E402
from wire import Wire  # noqa: E402

WORK = "C:\\work"
# Codex for Windows uses no sandbox unless its own is switched on; execd's does not depend on which.
SANDBOX = ("-c", 'windows.sandbox="unelevated"')


@pytest.fixture(scope="session")
def prefix(tmp_path_factory):
    if windows.missing():
        pytest.skip("THE CODEX CLI FOR WINDOWS IS NOT TESTED, this host lacks: " + ", ".join(windows.missing()))
    p = Prefix(tmp_path_factory.mktemp("wine"))
    yield p
    p.stop()


@pytest.fixture(params=["flag", "file"])
def start(request, prefix, spawn, configured, user, directory, log):
    """Starts execd with a map, and codex.exe: start(at=..., flags=..., roots=...)."""
    started = []

    def begin(at=WORK, roots=None, **options):
        roots = roots or [f"{WORK} = {directory}"]
        if request.param == "flag":
            s = spawn(*(word for root in roots for word in ("--path-map", root)))
        else:
            lines = "\n    ".join(roots)
            s = configured(f"[listener main]\naddress = ws://127.0.0.1:0\nallow-unauthenticated = ci\n"
                           f"[identity ci]\nuser = {user.pw_name}\ntoken-sha256 = {digest('t')}\npath-map = {lines}\n")
        wire = Wire(s.url, log / "wire.jsonl")
        codex = WindowsCodex(prefix, log, at, wire.url, **options)
        started.append((codex, wire, s))
        return codex, wire, s

    yield begin
    for codex, wire, s in started:
        codex.stop()
        wire.stop()
        (log / "execd.log").write_text(s.log)


def assert_only_paths_without_a_place(wire):
    """Codex looks for files up to the root of its drive, which has no place here; nothing else may be an error."""
    other = [e for e in wire.errors() if e[1] != -32004 and not
             (e[0] == "fs/getMetadata" and e[2].endswith("it lies under no root of path-map"))]
    assert other == []


def test_command(start, user, directory):
    codex, wire, _ = start()
    ran = codex.run("echo to stdout; echo to stderr >&2; id -u; pwd; uname; echo x >made; exit 3")
    assert ran.code == 3, ran.output
    for line in "to stdout", "to stderr", str(user.pw_uid), str(directory), "Linux":
        assert line in ran.output.splitlines(), ran.output
    assert (directory / "made").read_text() == "x\n" and (directory / "made").stat().st_uid == user.pw_uid
    codex.finish()
    assert [p["cwd"] for _, p, _ in wire.requests("process/start")] == ["file:///C:/work"]
    assert_only_paths_without_a_place(wire)


def test_a_whole_disk_as_a_drive(start, directory):
    """Codex sees its own disk under Wine's Z:, and what it asks for is the same directory of the mapped disk."""
    codex, wire, _ = start(at="Z:" + str(directory).replace("/", "\\"), roots=["Z: = /"])
    ran = codex.run("pwd; exit 2")
    assert ran.code == 2 and ran.output.split() == [str(directory)]
    codex.finish()
    assert_no_refusal(wire)


def test_tty(start):
    codex, wire, _ = start()
    ran = codex.run("test -t 0 && tty; echo ready; read line; echo got:$line; trap 'echo caught; exit 7' INT; "
                    "while :; do read line; done", tty=True, yield_time_ms=250)
    ran.until("ready")
    ran.write("first\n")
    ran.until("got:first")
    ran.write("\x03")
    ran.end()
    assert ran.code == 7 and ran.output.splitlines()[0].startswith("/dev/pts/") and "caught" in ran.output, ran.output
    codex.finish()
    assert_only_paths_without_a_place(wire)


def test_long_poll(start, gate):  # noqa: F811
    codex, wire, _ = start()
    ran = codex.run("exec 3<gate; for i in one two three; do echo $i; read x <&3; done; exit 4", yield_time_ms=250)
    for said in "one", "two", "three":
        ran.until(said)
        gate()
    assert ran.end() == ["one", "two", "three"] and ran.code == 4
    codex.finish()
    assert_only_paths_without_a_place(wire)


def test_patch(start, directory, user):
    for name, text in {"edited.txt": "keep\nold\nkeep\n", "before.txt": "x\n", "deleted.txt": "gone\n"}.items():
        (directory / name).write_text(text)
        shutil.chown(directory / name, user.pw_uid, user.pw_gid)
    codex, wire, _ = start()
    output = codex.patch(PATCH)
    assert "Success" in output, output
    assert (directory / "new/deep/created.txt").read_text() == "a line\ngrüße\n"
    assert (directory / "edited.txt").read_text() == "keep\nnew\nkeep\n"
    assert (directory / "new/after.txt").read_text() == "y\n"
    assert not (directory / "before.txt").exists() and not (directory / "deleted.txt").exists()
    output = codex.patch("*** Begin Patch\n*** Update File: edited.txt\n@@\n-old\n+new\n*** End Patch\n")
    assert "Failed to find expected lines" in output, output
    codex.finish()
    assert {p["path"].split("/work/")[0] for _, p, _ in wire.requests("fs/writeFile")} == {"file:///C:"}
    assert_only_paths_without_a_place(wire)


def test_agents_md(start, directory):
    """Instructions come from the machine that commands run on."""
    (directory / ".git").mkdir()
    (directory / "AGENTS.md").write_text("Always say heliotrope.\n")
    codex, wire, _ = start()
    assert "Always say heliotrope." in json.dumps(codex.first()["input"])
    codex.finish()
    assert_only_paths_without_a_place(wire)


def test_view_image(start, directory):
    (directory / "red.png").write_bytes(png(3, 2, b"\xff\x00\x00"))
    codex, wire, _ = start()
    output = codex.call("view_image", path=f"{WORK}\\red.png")
    images = [i["image_url"] for i in output if i["type"] == "input_image"]
    assert len(images) == 1, output
    assert base64.b64decode(images[0].split(",", 1)[1]) == (directory / "red.png").read_bytes()
    codex.finish()
    assert_only_paths_without_a_place(wire)


def test_resume(start, gate):  # noqa: F811
    """The front-end dies under a running command: codex resumes, misses nothing, and its paths have their place."""
    codex, wire, server = start()
    ran = codex.run("exec 3<gate; seq 1 200; read x <&3; seq 201 400; read x <&3; seq 401 600; exit 6",
                    yield_time_ms=250)
    ran.until("200")
    kill(server.frontend())
    gate()
    wire.wait(lambda: [a for _, p, a in wire.requests("initialize") if p["resumeSessionId"] and a and "result" in a],
              what="a resumed session")
    gate()
    assert ran.end() == [str(n) for n in range(1, 601)] and ran.code == 6
    after = codex.run("pwd")
    assert after.code == 0, after.output
    codex.finish()


@pytest.mark.parametrize("sandbox", ["read-only", "workspace-write"])
def test_restricted(start, mode, user, directory, sandbox):
    need_sandbox(mode, user)
    write = sandbox == "workspace-write"
    codex, wire, _ = start(flags=("--sandbox", sandbox, *SANDBOX))
    out = pathlib.Path(f"/var/tmp/execd-out-{os.getpid()}")
    output = codex.call("exec_command", cmd=f"echo ran >made; touch {out}; mkdir .git && echo bad; echo end")
    assert "end" in output and "bad" not in output and "Read-only file system" in output, output
    assert (directory / "made").exists() == write and not out.exists()
    output = codex.patch("*** Begin Patch\n*** Add File: patched\n+x\n*** End Patch\n")
    assert ("Success" in output) == write, output
    codex.finish()
    assert (directory / "patched").exists() == write
    assert_only_paths_without_a_place(wire)


PROFILE = """
[permissions.dev.filesystem]
":minimal" = "read"
glob_scan_max_depth = 3
[permissions.dev.filesystem.":workspace_roots"]
"." = "write"
"**/*.env" = "deny"
"""


def test_a_profile_with_a_denial(start, mode, user, directory):
    """The pattern of a profile holds, and the directory of the client that Codex adds to each profile does no harm."""
    need_sandbox(mode, user)
    (directory / "secret.env").write_text("a secret\n")
    (directory / "plain").write_text("plain\n")
    codex, wire, _ = start(flags=SANDBOX, before='default_permissions = "dev"\n', after=PROFILE)
    ran = codex.run("cat plain secret.env; echo x >made; exit 3")
    assert ran.code == 3 and "plain" in ran.output.split() and "a secret" not in ran.output, ran.output
    assert (directory / "made").exists()
    codex.finish()
    sent = [p["sandbox"]["permissions"]["file_system"]["entries"] for _, p, _ in wire.requests("process/start")][0]
    paths = [e["path"] for e in sent]
    assert {"type": "glob_pattern", "pattern": "codex-project-roots://**/*.env"} in paths, paths
    assert [p for p in paths if p["type"] == "path" and p["path"].startswith("file:///C:/codex-")], paths
