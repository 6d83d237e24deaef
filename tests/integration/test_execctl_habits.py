# SPDX-License-Identifier: ISC
"""What people type who know ssh, docker, cp and kill: it works, or the message says what is meant."""
import os

import pytest
from execctl import Execctl
from test_execctl_tty import start_shell, terminal, tmux  # noqa: F401


@pytest.fixture
def ctl(server, directory):
    return Execctl(directory, server.url)


@pytest.mark.parametrize("args, words", [
    (["runn", "ls"], "there is no command `runn'; is `run' meant?"),
    (["forward", "1:2"], "there is no command `forward'\n"),
    (["run", "--cdw", "/", "ls"], "Is --cwd meant?"),
    (["run", "--xyzzy", "ls"], "unrecognized option '--xyzzy'\nTry"),
    (["run", "-e", "A=1", "env"], "there is no environment `A=1'; -E sets a variable of the command"),
    (["run", "echo a | cat"], "echo a | cat: not found in the PATH of the session; a line for a shell is run by: sh -c 'LINE'"),
    (["run", "ls /"], "ls /: not found; a line for a shell is run by: sh -c 'LINE'"),
    (["run", "nosuch", "a|b"], "nosuch: not found in the PATH of the session\n"),
    (["shell", "ls"], "shell takes no `ls'; a command is run by: execctl run -t COMMAND\nusage: execctl [options] shell [options]\n"),
    (["ps", "x"], "ps takes no `x'\nusage: "),
    (["kill", "-99", "x"], "--signal: there is no signal `99'"),
    (["kill", "-FOO", "x"], "--signal: there is no signal `FOO'"),
])
def test_what_was_meant(ctl, args, words):
    r = ctl(*args)
    assert r.code != 0 and words in r.err, r


@pytest.mark.parametrize("args, out", [
    (["run", "--", "echo", "hi"], b"hi\n"),
    (["run", "-i", "--", "echo", "-n", "hi"], b"hi"),
    (["run", "-E", "A=1", "sh", "-c", "echo $A"], b"1\n"),
    (["run", "-T", "1m30s", "echo", "hi"], b"hi\n"),
])
def test_what_works(ctl, args, out):
    assert ctl.ok(*args) == out


@pytest.mark.parametrize("name, status", [("-9", 137), ("-KILL", 137), ("-INT", 130), ("-15", 143), ("-SIGTERM", 143)])
def test_kill(ctl, name, status):
    session = ctl.ok("run", "-d", "--keep", "none", "sleep", "1000").decode().strip()
    ctl.ok("kill", name, session)
    assert ctl("wait", session).code == status


def test_kill_of_what_has_ended(ctl):
    session = ctl.ok("run", "-d", "true").decode().strip()
    ctl.ok("wait", session)
    r = ctl("kill", session)
    assert r.code == 125 and "the command has ended already" in r.err, r


@pytest.mark.parametrize("letters", ["-a", "-R", "-rp"])
def test_cp(ctl, directory, letters):
    (directory / "from").mkdir()
    (directory / "from/f").write_text("x")
    os.utime(directory / "from/f", (1, 1))
    ctl.ok("cp", letters, directory / "from", f":{directory}/to")
    assert (directory / "to/f").read_text() == "x"
    assert ((directory / "to/f").stat().st_mtime == 1) == (letters != "-R")


LOCALE = {"LANG": "de_DE.UTF-8", "LC_TIME": "C"}


@pytest.mark.parametrize("options, seen", [
    ([], "de_DE.UTF-8 C"), (["-E", "LANG=fr_FR"], "fr_FR C"), (["-E", "LC_TIME"], "de_DE.UTF-8 C"),
    (["--inherit", "none"], "")])
def test_the_language_travels(ctl, options, seen):
    out = ctl.ok("run", *options, "/bin/sh", "-c", "echo $LANG $LC_TIME", env=LOCALE)
    assert out.decode() == seen + "\n"


def test_the_list_of_escapes(ctl, terminal):  # noqa: F811
    """It is the terminal's only: nothing of it reaches the command."""
    t = terminal(ctl, "run", "-t", "sh", "-c", "stty -echo; echo ready; read x; printf '<%s>\\n' \"$x\"")
    t.wait(b"ready")
    os.write(t.master, b"~?")
    t.wait(b"this list")
    os.write(t.master, b"x\r")
    t.wait(b"<x>")
    assert t.ended() == 0


def test_suspended(tmux):  # noqa: F811
    start_shell(tmux)
    tmux.type("~", "C-z")
    tmux.wait("Stopped")
    tmux.line("echo here $((6 * 7))")
    tmux.wait("^here 42$")
    tmux.line("fg")
    tmux.wait("execctl run")
    tmux.line("echo there $((6 * 7))")
    tmux.wait("^there 42$")


def test_the_screen_is_left(ctl, terminal):  # noqa: F811
    """A program that draws a screen goes on, and the terminal is as it was before."""
    t = terminal(ctl, "run", "-t", "sh", "-c", "printf '\\033[?1049h\\033[?25lready'; read x")
    t.wait(b"ready")
    os.write(t.master, b"~.")
    t.wait(b"\x1b[?1049l\x1b[?25h")
    assert t.ended() == 254
