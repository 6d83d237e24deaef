# SPDX-License-Identifier: ISC
"""One table of what a runner of frames does, for every runner there is.

A row is run on each target: `linux`, our runner; `windows`, our .exe under Wine; `codex`, codex-command-runner.exe under
Wine, which is asked with EXECD_CODEX=1 and knows version 6 only. `differs` says how a target answers otherwise, as it was
measured; WAITS: it had not ended after WAITS_S.
"""
import base64
import dataclasses
import json
import struct
import typing

CHILD = "child.exe"
SPAWN, STDIN, CLOSE, KILL = "spawn_request", "stdin", "close_stdin", "terminate"
WAITS, WAITS_S = "waits", 4


@dataclasses.dataclass
class Row:
    name: str
    version: int
    expect: dict  # of the last message, and "stdout", "stderr" of all output, "words" in the text of an error
    linux: list = None  # the command
    windows: list = None  # the command there
    spawn: dict = dataclasses.field(default_factory=dict)  # other members of spawn_request
    then: list = dataclasses.field(default_factory=list)  # (type, payload) after spawn_ready
    raw: bytes = None  # instead of all this: these bytes, and the end of the input
    differs: dict = dataclasses.field(default_factory=dict)
    seconds: float = 20  # its most
    status: typing.Any = None  # of the program; None: the exit code of the command, or 1


def data(text):
    return {"data_b64": base64.b64encode(text).decode()}


def frame(message):
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return struct.pack("<I", len(body)) + body


def sh(script):
    return ["/bin/sh", "-c", script]


def child(*args):
    """tests/frames/child.c, which is where the target says."""
    return [CHILD, *args]


def cmd(text):
    return ["cmd", "/c", text]


def exits(code, **more):
    return {"exit_code": code, "timed_out": False, **more}


READS_ALL = {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"}
PATTERN = {"path": {"type": "glob_pattern", "pattern": "**/*.key"}, "access": "deny"}


def profile(*entries, network="restricted"):
    return {"type": "managed", "network": network,
            "file_system": {"type": "restricted", "entries": [READS_ALL, *entries]}}


ARGUMENTS = ["a b", 'c"d', "e\\", "f g\\", 'h\\"i', "%PATH%", "&|<>^", "j\tk", "äöü€", "end"]


def both(name, **row):
    """The row in version 1 and in version 6."""
    return [Row(f"{name}-v{version}", version, **row) for version in (1, 6)]


ROWS = [
    *both("output", linux=sh("echo hi; echo err >&2"), windows=cmd("echo hi&echo err>&2"),
          expect=exits(0, stdout="hi", stderr="err")),
    *both("exit-code", linux=sh("exit 3"), windows=cmd("exit 3"), expect=exits(3)),
    Row("exit-code-whole", 6, windows=child("exit", "0xC0000005"), expect=exits(3221225477),
        differs={"codex": {"exit_code": -1073741819}}),
    *both("no-input", linux=["cat"], windows=child("cat"), expect=exits(0, stdout="")),
    *both("timeout", linux=sh("echo ready; sleep 1000"), windows=child("sleep", "1000000"), spawn={"timeout_ms": 5000},
          expect={"exit_code": 192, "timed_out": True, "stdout": "ready"}),
    Row("close-stdin", 6, linux=["cat"], windows=child("cat"), spawn={"stdin_open": True},
        then=[(STDIN, data(b"line\r\n")), (CLOSE, {})], expect=exits(0, stdout="line")),
    # The reference leaves terminate behind the input that the command does not read.
    Row("terminate-behind-input", 6, linux=["sleep", "1000"], windows=child("sleep", "1000000"),
        spawn={"stdin_open": True}, then=[*[(STDIN, data(b"x" * 300000))] * 8, (KILL, {})],
        expect={"timed_out": False}, seconds=10, differs={"codex": WAITS}),
    # And it waits for a child in the background that keeps the output.
    Row("background-child", 6, linux=sh("sleep 1000 & echo hi"), windows=child("leave"),
        expect={"exit_code": 0}, seconds=15, differs={"codex": WAITS}),
    Row("environment", 6, linux=sh('printf %s "$A"'), windows=child("env", "A"), spawn={"env": {"A": "ä ö €"}},
        expect=exits(0, stdout="ä ö €")),
    Row("arguments", 6, linux=["printf", "%s\\n", *ARGUMENTS], windows=child("args", *ARGUMENTS),
        expect=exits(0, stdout="\n".join(ARGUMENTS))),
    # Its child is out of the job, and keeps the output.
    Row("breakaway", 6, windows=child("escape"), expect=exits(0, stdout="Windows error 5"), differs={"codex": WAITS}),
    *both("missing-program", linux=["/nowhere/x"], windows=["C:\\nowhere\\x.exe"],
          expect={"code": "spawn_failed"}, differs={"codex": {"code": None, "stage": "spawn_child"}}),
    Row("missing-program-number", 6, windows=["C:\\nowhere\\x.exe"],
        expect={"windows_error_code": 2, "stage": "spawn_child"}),
    Row("bad-directory", 6, windows=cmd("echo"), spawn={"cwd": "C:\\nowhere"},
        expect={"windows_error_code": 267, "stage": "spawn_child"}),
    # What is no policy, and what a token cannot enforce.
    Row("disabled", 6, linux=["true"], windows=cmd("echo"), spawn={"permission_profile": {"type": "disabled"}},
        expect={"code": "sandbox_unavailable"}, differs={"codex": {"stage": "spawn_child"}}),
    Row("no-profile", 6, linux=["true"], windows=cmd("echo"), spawn={"permission_profile": None},
        expect={"code": "protocol", "stage": "read_spawn_request"},
        differs={"codex": {"code": None, "stage": "read_spawn_request"}}),
    # The reference runs the command: whoever starts its runner has set the ACLs before.
    Row("pattern", 6, windows=cmd("echo x"), spawn={"permission_profile": profile(PATTERN)},
        expect={"code": "sandbox_unavailable", "words": "denies access"}, differs={"codex": exits(0, stdout="x")}),
    Row("no-capability", 6, linux=["true"], windows=cmd("echo"), spawn={"cap_sids": []},
        expect={"code": "protocol", "words": "cap_sids must not be empty"},
        differs={"codex": {"stage": "spawn_child", "words": "empty capability SID list"}}),
    Row("bad-sid", 6, windows=cmd("echo"), spawn={"cap_sids": ["S-no"]},
        expect={"code": "sandbox_unavailable", "words": "cap_sids"},
        differs={"codex": {"stage": "spawn_child", "words": "capability SID"}}),
    Row("no-desktop", 6, windows=cmd("echo"), spawn={"private_desktop_name": "NoSuchDesktop"},
        expect={"code": "sandbox_unavailable", "words": "private desktop"},
        differs={"codex": {"stage": "spawn_child", "words": "private desktop name"}}),
    # The reference hands the line end to cmd.
    Row("newline-for-cmd", 6, windows=cmd("echo a\r\necho b"), expect={"code": "spawn_failed", "words": "cmd"},
        differs={"codex": exits(0)}),
    Row("quotes-for-cmd", 6, windows=cmd('echo "a b" "c"'), expect=exits(0, stdout='"a b" "c"')),
    # Bad input. The last word is what the reference says, which never answers in version 1.
    *[Row(f"{name}-v{version}", version, raw=raw(version), expect={"code": "protocol", "words": words}, status=1,
          differs={"codex": {"code": None, "stage": "read_spawn_request", "words": codex}})
      for version in (1, 6) for name, raw, words, codex in [
          ("nothing", lambda v: b"", "the input ends before spawn_request", "pipe closed before spawn_request"),
          ("cut", lambda v: b"\x05\0\0\0abc", "the input ends inside a frame", "fill whole buffer"),
          # To the reference this is a clean end.
          ("cut-length", lambda v: b"\x05", "the input ends inside a frame", "pipe closed before spawn_request"),
          ("empty", lambda v: struct.pack("<I", 0), "an empty frame", "EOF while parsing"),
          ("long", lambda v: struct.pack("<I", (8 << 20) + 1), "8388608", "frame too large"),
          ("garbage", lambda v: frame(b"garbage"), "expected value", "expected value"),
          ("early-stdin", lambda v: frame({"version": v, "type": STDIN, "payload": data(b"")}),
           "stdin before spawn_request", "expected spawn_request"),
          ("type", lambda v: frame({"version": v, "type": "bogus", "payload": {}}), "unknown variant", "unknown variant")]],
    Row("version-2", 1, raw=frame({"version": 2, "type": SPAWN, "payload": {}}),
        expect={"code": "protocol", "words": "unsupported version 2"}, status=1),
    # The reference takes no notice of either.
    Row("second-spawn", 6, linux=["sleep", "1000"], windows=child("sleep", "1000000"), then=[(SPAWN, None)],
        expect={"code": "protocol", "words": "a second spawn_request"}, differs={"codex": WAITS}),
    Row("bad-base64", 6, linux=["sleep", "1000"], windows=child("sleep", "1000000"), spawn={"stdin_open": True},
        then=[(STDIN, {"data_b64": "!!!!"})], expect={"code": "protocol"}, differs={"codex": WAITS}),
]


def expected(target, row):
    return row.expect if target not in row.differs else row.differs[target]


def is_asked(target, row):
    has_command = row.raw is not None or getattr(row, "linux" if target == "linux" else "windows")
    return bool(has_command) and not (target == "codex" and row.version == 1)


def _word(target, row, result):
    if result != "pass" or target not in row.differs:
        return result
    return WAITS if row.differs[target] == WAITS else "differs"


def table(targets, said):
    """Every row with every target, from what "TARGET-ROW" said; "-": it was not asked that."""
    lines = [["row", *targets], *[[r.name, *[_word(t, r, said.get(f"{t}-{r.name}", "-")) for t in targets]] for r in ROWS]]
    return [(f"{name:24}" + "".join(f"{word:10}" for word in words)).rstrip() for name, *words in lines]
