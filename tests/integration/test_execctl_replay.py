# SPDX-License-Identifier: ISC
"""execctl replay: what record-tty wrote, on the user's terminal (execctl(1))."""
import json
import os
import signal
import subprocess

import pytest
from conftest import digest, poll
from execctl import EXECCTL
from test_ctl import in_terminal

HEAD = json.dumps({"version": 2, "width": 80, "height": 24}) + "\n"
pytestmark = pytest.mark.usefixtures("mode")


@pytest.fixture
def replay(directory):
    def run(text, *args, code=0):
        path = directory / "x.cast"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        r = subprocess.run([EXECCTL, "replay", *args, path], capture_output=True, timeout=30)
        assert r.returncode == code, r
        return r.stdout if code == 0 else r.stderr.decode()
    return run


def events(*all):
    return HEAD + "".join(json.dumps(e) + "\n" for e in all)


def test_what_was_recorded_is_played(configured, user, directory, replay, mode):
    casts = directory / "casts"
    casts.mkdir(mode=0o755)
    if mode == "user":
        os.chown(casts, user.pw_uid, user.pw_gid)
    s = configured(f"[listener a]\naddress = ws://127.0.0.1:0\n[identity a]\nuser = {user.pw_name}\nsandbox-allow-unsandboxed = yes\n"
                   f"token-sha256 = {digest('t')}\nrecord-tty = {casts}\n")
    c = s.connect(token="t").ready()
    c.run("x", ["/bin/sh", "-c", "printf '\\033[31mred\\n'; sleep 0.1; echo \u20ac"], tty=True)
    cast = poll(lambda: (files := list(casts.iterdir())) and files[0], what="the recording").read_bytes()
    assert replay(cast) == "\x1b[31mred\r\n\u20ac\r\n".encode()


def test_only_output_is_written_and_nothing_else(replay):
    text = events([0, "o", "a"], [0.1, "i", "typed"], [0.1, "r", "10x10"], [0.1, "m", "mark"], [1e6, "o", "\u0000b"])
    assert replay(text, "--idle-limit", "1ms") == b"a\0b"


def test_the_time_before_is_shown_at_once(replay):
    assert replay(events([1e6, "o", "a"], [1e6 + 0.01, "o", "b"]), "--seek", "1000000") == b"ab"
    assert replay(events([0, "o", "a"], [500, "o", "b"]), "--speed", "1000") == b"ab"


@pytest.mark.parametrize("text, said", [
    ("", ":1:1: the file is empty"),
    ("hello\n", ":1:1: "),
    ("{}\n", ":1:1: no asciicast: an object with `version`"),
    ('{"version":3}\n', ":1:1: only version 2"),
    ("[1]\n", ":1:1: no asciicast"),
    (HEAD + '[0, "o", "a"]\n[1, "o", "b"\n', ":3:"),
    (HEAD + '[0, "o"]\n', ":2:1: an event is an array"),
    (HEAD + '["0", "o", "a"]\n', ":2:1: an event is an array"),
    (HEAD + '[-1, "o", "a"]\n', ":2:2: no time"),
    (HEAD + '[1e99, "o", "a"]\n', ":2:2: no time"),
    (HEAD + '[0, "o", "' + "a" * (1 << 20) + '"]\n', ":2:1048575: the line is longer"),
    (HEAD.encode() + b'[0, "o", "\xff"]\n', ":2:")], ids=range(12))
def test_what_is_no_asciicast_is_refused(replay, text, said):
    assert said in replay(text, "--idle-limit", "1ms", code=125)


def test_a_file_that_cannot_be_read(directory):
    r = subprocess.run([EXECCTL, "replay", directory], capture_output=True, text=True, timeout=30)
    assert r.returncode == 125 and "Is a directory" in r.stderr and "empty" not in r.stderr, r


@pytest.mark.parametrize("args", [("--speed", "0"), ("--speed", "x"), ("--speed", "nan"), ("--seek", "x"), ("--idle-limit", "-1")])
def test_options(replay, args):
    replay(HEAD, *args, code=255)


def test_keys(directory):
    """q ends it; what the terminal answers is no key, and a line feed stays one."""
    (directory / "x.cast").write_text(events([0, "o", "begin"], [1e8, "o", "end"]))
    argv = [EXECCTL, "replay", directory / "x.cast"]
    code, got = in_terminal(argv, lambda got: b"begin" in got, b"q")
    assert code == 0 and got == b"begin"
    (directory / "x.cast").write_text(events([0, "o", "begin"], [0.1, "o", "\nend"]))
    code, got = in_terminal(argv, lambda got: b"begin" in got, b"\x1bP1$r0 q\x1b\\")
    assert code == 0 and got == b"begin\nend"


def test_a_signal_ends_it(directory):
    (directory / "x.cast").write_text(events([0, "o", "begin"], [1e8, "o", "end"]))
    p = subprocess.Popen([EXECCTL, "replay", directory / "x.cast"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert p.stdout.read(5) == b"begin"
    p.terminate()
    assert p.communicate(timeout=30)[0] == b"" and p.returncode == 128 + signal.SIGTERM
