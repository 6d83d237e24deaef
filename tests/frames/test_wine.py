# SPDX-License-Identifier: ISC
"""What Wine takes and does not enforce: for each entry of the list in doc/systems.md, that it is so.

An entry that Wine begins to enforce fails here. Then its effect can have a test, and it leaves the list in doc/systems.md,
execd-runner(8) and --version.
"""
import time

from cases import SPAWN, STDIN, data
from targets import WINDOWS, Six, only_windows, spawn_payload, text, windows

pytestmark = only_windows
ALLOWED = "0"  # what wine.c tells as the error


def measured(prefix, word):
    said = prefix.run(str(WINDOWS / "tests/frames/wine.exe"), word)
    assert said.returncode == 0, said
    return dict(line.split(": ") for line in said.stdout.splitlines())


class Console:
    """wine.exe in a pseudo console of the runner."""

    def __init__(self, start, word):
        self.runner = start("windows", "--network-is-blocked")
        command = [windows.Prefix.name(WINDOWS / "tests/frames/wine.exe"), word]
        self.runner.send(6, SPAWN, spawn_payload("windows", Six(command, tty=True, stdin_open=True)))
        self.messages = []

    def shows(self, what):
        until = time.monotonic() + 60
        while what not in text(self.messages, "stdout"):
            m = self.runner.receive(until)
            assert m and m["type"] in ("spawn_ready", "output"), (self.messages, m)
            self.messages.append(m)

    def write(self, keys):
        self.runner.send(6, STDIN, data(keys))

    def all(self):
        self.messages += self.runner.all(time.monotonic() + 60)
        return text(self.messages, "stdout")


def test_a_restricted_token_writes_where_none_of_its_sids_may(start, prefix):
    r = start("windows", "--network-is-blocked")
    r.send(6, SPAWN, spawn_payload("windows", Six(["cmd", "/c", "echo x>C:\\windows\\written.txt"])))
    assert r.all(time.monotonic() + 60)[-1]["payload"]["exit_code"] == 0
    assert (prefix.c / "windows/written.txt").exists()


def test_a_dacl_keeps_nobody_out_of_a_pipe_or_a_desktop(prefix):
    """Of an event it does, so that the measurement is not one of nothing."""
    assert measured(prefix, "objects") == {"pipe": ALLOWED, "desktop": ALLOWED, "event": "5"}


def test_a_user_who_is_not_there_logs_on_and_runs_nothing(prefix):
    """CreateProcessWithLogonW fails and does not even say why."""
    assert measured(prefix, "logon") == {"LogonUser": ALLOWED, "CreateProcessWithLogonW": "0"}


def test_resize_changes_nothing_and_a_console_gives_no_standard_handle(start):
    c = Console(start, "console")
    c.shows("columns: 80")
    c.runner.send(6, "resize", {"size": {"rows": 50, "cols": 100}})
    c.write(b"q\r")
    said = c.all()
    assert "standard output: 0" in said and "byte: 113" in said and said.count("columns: 80") == 2, said


def test_the_byte_of_ctrl_c_is_no_event(start):
    """It is not read as a byte, either, nor what comes with it."""
    c = Console(start, "console")
    c.shows("columns: 80")
    c.write(b"a\x03b\r")
    c.write(b"q\r")
    said = c.all()
    assert "event" not in said and "byte" not in said, said


def test_an_event_that_a_program_generates_comes(start):
    """The runner generates none; this says that the handler of the test above would have been called."""
    assert "event: 0" in Console(start, "event").all()
