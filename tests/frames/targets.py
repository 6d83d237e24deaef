# SPDX-License-Identifier: ISC
"""A runner of each target, and what is asked of it. EXECD_BUILD names the build for Linux, EXECD_WINDOWS the other."""
import base64
import json
import os
import pathlib
import queue
import re
import struct
import subprocess
import sys
import threading
import time

import pytest
from cases import CHILD, profile

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
        assert messages, f"it said nothing: {self.ended()}"
        return messages

    def ended(self):
        """The runner's exit code, and what was written to standard error."""
        status = self.child.wait(10)
        said = self.child.stderr.read()
        told = re.search(rb"parent: the runner ended with (\d+)", said)
        return int(told[1]) if told else status, said


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


def text(messages, stream):
    return b"".join(base64.b64decode(m["payload"]["data_b64"]) for m in messages
                    if m["type"] == "output" and m["payload"]["stream"] == stream).decode().strip()


def processes(prefix):
    """The processes of the prefix, as name and id."""
    mine = f"WINEPREFIX={prefix.env['WINEPREFIX']}".encode()
    found = []
    for p in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if mine in (p / "environ").read_bytes().split(b"\0"):
                found.append(((p / "comm").read_text().strip(), int(p.name)))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            pass
    return found


class Six:
    """As much of a row as spawn_payload() wants."""

    version = 6

    def __init__(self, command, **spawn):
        self.linux = self.windows = command
        self.spawn = spawn


only_windows = pytest.mark.skipif(not WINDOWS, reason="EXECD_WINDOWS is not set: scripts/windows sets it")
