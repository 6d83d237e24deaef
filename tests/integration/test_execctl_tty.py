# SPDX-License-Identifier: ISC
"""execctl on a terminal, typed by tmux: a shell is a shell, and the terminal is
as it was on every way out."""
import fcntl
import itertools
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import termios
import time

import pytest
from conftest import is_alive, pids_with, poll
from execctl import EXECCTL, Execctl, Proxy

pytestmark = pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed")


NUMBERS = itertools.count()


class Tmux:
    """One tmux server with one window of 80x24 that runs sh."""

    def __init__(self, directory, env):
        self.socket = str(directory / "tmux.sock")
        self.env = {**env, "SHELL": "/bin/sh", "PS1": "local> ", "ENV": ""}
        self("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "/bin/sh", "-i")
        self.pid = int(self("display-message", "-p", "#{pid}"))
        self.wait("^local>")

    def __call__(self, *args):
        # Whoever started the tests may ignore a hangup; who is in the window must not.
        return subprocess.run(["env", "--default-signal", "tmux", "-S", self.socket, *args], env=self.env, check=True, capture_output=True,
                              text=True).stdout

    def type(self, *keys):
        self("send-keys", "-t", ":0", *keys)

    def line(self, text):
        self("send-keys", "-t", ":0", "-l", text)
        self("send-keys", "-t", ":0", "Enter")

    def screen(self):
        return self("capture-pane", "-p", "-t", ":0")

    def wait(self, pattern, timeout=20):
        try:
            return poll(lambda: re.search(pattern, self.screen(), re.M), timeout, what=repr(pattern))
        except AssertionError:
            raise AssertionError(f"no {pattern!r} on the screen:\n{self.screen()}") from None

    def close(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], env=self.env, capture_output=True)
        poll(lambda: not is_alive(self.pid), what="end of tmux")


@pytest.fixture
def ctl(server, directory):
    return Execctl(directory, server.url)


@pytest.fixture
def tmux(directory, ctl):
    t = Tmux(directory, ctl.env)
    yield t
    t.close()


def start_shell(tmux, *more):
    # A shell whose prompt does not depend on the user's files.
    tmux.line(f"clear; {EXECCTL} run -t -E PS1='remote> ' -E ENV= {' '.join(more)} /bin/bash --norc --noprofile -i")
    tmux.wait("^remote>")


def test_a_shell(tmux, directory):
    tmux.line(f"{EXECCTL} shell")
    # Whatever its prompt is: a login shell, on a terminal.
    tmux.line("tty; shopt -q login_shell && echo log''in; stty size")
    tmux.wait(r"^/dev/pts/\d+")
    tmux.wait("^login")
    tmux.line("exit 7")
    tmux.wait("^local>$")
    tmux.line("echo code:$?")
    tmux.wait("^code:7")


def test_job_control(tmux):
    start_shell(tmux)
    tmux.line("sh -c 'echo beg''un; exec sleep 1000'")
    tmux.wait("^begun")
    tmux.type("C-z")
    tmux.wait(r"\[1\]\+ +Stopped")
    tmux.line("fg")
    tmux.wait("^sh -c")
    tmux.type("C-c")
    tmux.wait("^remote>$")
    tmux.line("echo status:$?")
    tmux.wait("^status:130")
    tmux.line("clear; cat")
    tmux.wait(r"\A\s*\Z")
    tmux.line("typed")
    tmux.wait("^typed\ntyped")
    tmux.type("C-d")
    tmux.line("echo then:$?")
    tmux.wait("^then:0")
    tmux.type("C-d")
    tmux.wait("^local>$")


def test_resize(tmux, ctl):
    if not ctl.can("processResize"):
        start_shell(tmux)
        tmux.line("stty size")
        tmux.wait("^24 80")
        return
    tmux("resize-window", "-t", ":0", "-x", "90", "-y", "30")
    start_shell(tmux)
    tmux.line("stty size")
    tmux.wait("^30 90")
    tmux.line("trap 'echo new:$(stty size)' WINCH")
    tmux("resize-window", "-t", ":0", "-x", "100", "-y", "40")
    tmux.type("Enter")
    tmux.wait("new:40 100")


@pytest.mark.skipif(not shutil.which("vim"), reason="vim is not installed")
def test_vim(tmux, directory):
    start_shell(tmux)
    tmux.line(f"vim -u NONE -N {directory}/there.txt")
    tmux.wait("^~")
    tmux.type("i")
    tmux("send-keys", "-t", ":0", "-l", "first line")
    tmux.type("Enter")
    tmux("send-keys", "-t", ":0", "-l", "second ünïcode")
    tmux.type("Escape")
    tmux.type("g", "g", "d", "w")
    tmux.wait("^line$")
    tmux.line(":wq")
    tmux.wait("^remote>")
    assert (directory / "there.txt").read_text() == "line\nsecond ünïcode\n"
    tmux.line("exit")
    tmux.wait("^local>$")


def test_less_scrolls(tmux):
    if not shutil.which("less"):
        pytest.skip("less is not installed")
    start_shell(tmux)
    tmux.line("seq 1 500 | less")
    tmux.wait("^23$")
    tmux.type("G")
    tmux.wait("^500$")
    tmux.type("q")
    tmux.wait("^remote>")


def test_escape_leaves(tmux):
    start_shell(tmux)
    tmux.line("echo a ~. b; sleep 1000")
    tmux.wait(r"^a ~\. b")
    tmux.type("Enter", "~", ".")
    tmux.wait("left with ~. while the command runs")
    tmux.wait("^local>$")
    tmux.line("stty -a | grep -q ' icanon'; echo code:$?")
    tmux.wait("^code:0")


def test_the_network_is_cut_under_a_shell(server, directory, tmux):
    proxy = Proxy(server.url)
    start_shell(tmux, "-E X=1")
    tmux.line("exit")
    tmux.wait("^local>$")
    tmux.line(f"export EXECD_URL={proxy.url}")
    start_shell(tmux)
    proxy.cut()
    tmux.line("echo st''ill he''re")
    tmux.wait("^still here")
    proxy.close()
    tmux.type("~", ".")


class Terminal:
    """A pseudo terminal with execctl on it; tells what mode it is in."""

    def __init__(self, ctl, *args, controlling=False, under=(), modes=(), deaf=False, size=(24, 80)):
        """Under another program: it is the session's leader, and execctl its child."""
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        self.slave = slave
        if modes:
            subprocess.run(["stty", *modes], stdin=slave, check=True)
        self.before = termios.tcgetattr(slave)
        def take():
            signal.signal(signal.SIGHUP, signal.SIG_IGN if deaf else signal.SIG_DFL)    # whatever who tests does
            if controlling or under:
                fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.child = subprocess.Popen([*under, str(EXECCTL), *args], stdin=slave, stdout=slave, stderr=slave, env=ctl.env,
                                      start_new_session=True, preexec_fn=take)
        self.seen = b""

    def wait(self, needle, timeout=20):
        import select
        end = time.monotonic() + timeout
        while needle not in self.seen:
            assert select.select([self.master], [], [], max(0, end - time.monotonic()))[0], self.seen
            self.seen += os.read(self.master, 65536)

    def read_all(self):
        """Until execctl has ended, and longer."""
        import threading
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        try:
            while os.read(self.master, 65536):
                pass
        except OSError:
            pass

    def hang_up(self):
        """The window is closed."""
        os.close(self.master)
        self.master = -1

    def is_raw(self):
        return not termios.tcgetattr(self.slave)[3] & termios.ICANON

    def ended(self, timeout=30):
        code = self.child.wait(timeout)
        assert termios.tcgetattr(self.slave) == self.before, "the terminal is not as it was"
        return code

    def close(self):
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()
        if self.master >= 0:
            os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def terminal():
    made = []

    def make(*args, **how):
        t = Terminal(*args, **how)
        made.append(t)
        return t

    yield make
    for t in made:
        t.close()


REPAINTS = """
import os, signal
signal.signal(signal.SIGWINCH, lambda *_: print("size", *os.get_terminal_size(), flush=True))
print("ready", flush=True)
while True:
    signal.pause()
"""


def test_a_resumed_terminal_is_repainted(server, directory, terminal):
    """Its size changes for a moment, and is then what it was."""
    proxy = Proxy(server.url)
    t = terminal(Execctl(directory, proxy.url), "run", "-t", "/usr/bin/python3", "-c", REPAINTS)
    t.wait(b"ready")
    proxy.cut()
    t.wait(b"size 80 23\r\nsize 80 24\r\n")
    t.child.kill()
    proxy.close()


@pytest.mark.parametrize("script, code", [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137)])
def test_restored_when_the_command_ends(ctl, terminal, script, code):
    t = terminal(ctl, "run", "-t", "sh", "-c", f"echo ready; read x; {script}")
    t.wait(b"ready")
    assert t.is_raw()
    os.write(t.master, b"\r")
    assert t.ended() == code


def test_restored_when_nothing_starts(ctl, terminal):
    t = terminal(ctl, "run", "-t", "-C", "/", "/no/such")
    assert t.ended() == 127


@pytest.mark.parametrize("sig", ["TERM", "HUP", "QUIT", "INT"])
def test_restored_after_a_signal(ctl, terminal, sig):
    t = terminal(ctl, "run", "-t", "sh", "-c", "echo ready; exec sleep 1000")
    t.wait(b"ready")
    t.child.send_signal(getattr(signal, "SIG" + sig))
    assert t.ended() == 128 + getattr(signal, "SIG" + sig)


def test_restored_when_the_server_dies(spawn, directory, terminal):
    s = spawn()
    ctl = Execctl(directory, s.url)
    t = terminal(ctl, "--resume-timeout", "300ms", "run", "-t", "sh", "-c", "echo ready; exec sleep 1000")
    t.wait(b"ready")
    s.child.kill()
    s.child.wait()
    assert t.ended() == 254


def test_restored_after_a_timeout(ctl, terminal):
    t = terminal(ctl, "run", "-t", "--timeout", "500ms", "sh", "-c", "echo ready; exec sleep 1000")
    t.wait(b"ready")
    assert t.ended() == 124


def test_raw_again_after_a_stop(ctl, terminal):
    t = terminal(ctl, "run", "-t", "sh", "-c", "echo ready; read x; exit 3")
    t.wait(b"ready")
    t.child.send_signal(signal.SIGSTOP)
    poll(lambda: open(f"/proc/{t.child.pid}/stat").read().rsplit(")", 1)[1].split()[0] == "T", what="stop")
    termios.tcsetattr(t.slave, termios.TCSANOW, t.before)  # as a shell would
    t.child.send_signal(signal.SIGCONT)
    poll(t.is_raw, what="raw mode")
    os.write(t.master, b"\r")
    assert t.ended() == 3


def test_the_modes_of_the_users_terminal(ctl, terminal):
    """What is typed is erased by the user's key, and a letter of two bytes at once."""
    t = terminal(ctl, "run", "-t", "sh", "-c", "stty -a; echo ready; read x; printf %s \"$x\" | od -An -tx1", modes=["iutf8", "erase", "^H"])
    t.wait(b"ready\r\n")
    assert b"erase = ^H;" in t.seen and re.search(rb"\biutf8", t.seen) and b"-iutf8" not in t.seen
    os.write(t.master, "aé\b\r".encode())
    t.wait(b" 61\r\n")
    assert t.ended() == 0


JOBS = {"quiet": "sleep 1000.{} &", "in-a-session": "setsid sleep 1000.{} &", "disowned": "sleep 1000.{} & disown",
        "loud": "setsid sh -c 'while :; do echo 1000.{}; done' &"}


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_exit_does_not_wait_for_who_holds_the_terminal(ctl, terminal, job):
    """As ssh(1). The job ends with the session."""
    mark = f"{os.getpid()}{next(NUMBERS)}"
    t = terminal(ctl, "run", "-t", "-E", "PS1=remote> ", "bash", "--norc", "--noprofile", "-i")
    t.wait(b"remote> ")
    os.write(t.master, job.format(mark).encode() + b"\r")
    poll(lambda: pids_with("1000." + mark), what="the job")
    os.write(t.master, b"exit 3\r")
    t.wait(b"execctl: what the command left on the terminal ends with its session\r\n")
    t.read_all()
    assert t.ended() == 3
    poll(lambda: not pids_with("1000." + mark), what="the end of the job")


def test_the_last_words_before_an_exit_are_written(ctl, terminal):
    t = terminal(ctl, "run", "-t", "sh", "-c", "setsid sleep 1000 & seq 1 20000; echo the end; exit 3")
    t.wait(b"\r\n19999\r\n20000\r\nthe end\r\n")
    assert t.ended() == 3


SAVES = """n=0; trap 'n=$((n + 1))' HUP; echo ready; until [ $n -gt 0 ]; do sleep 0.01; done
for i in 1 2 3 4 5 6 7 8 9 10; do echo saving $i; sleep 0.02; done
touch {0}/saving; until [ -e {0}/go ]; do sleep 0.01; done; echo saved; echo $n > {0}/new; mv {0}/new {0}/saved; exit 5"""


@pytest.mark.parametrize("how", [{}, {"controlling": True}, {"under": ["sh", "-c", '"$@"; exit $?', "-"]}],
                         ids=["no-signal", "signal", "from-a-shell"])
def test_a_closed_terminal_leaves_time_to_save(ctl, terminal, directory, how):
    """SIGHUP once, then nothing, although the command writes to what is gone."""
    t = terminal(ctl, "run", "-t", "sh", "-c", SAVES.format(directory), **how)
    t.wait(b"ready")
    t.hang_up()
    poll((directory / "saving").exists, what="the first half")
    (directory / "go").touch()
    poll((directory / "saved").exists, what="the second half")
    assert (directory / "saved").read_text() == "1\n", "SIGHUP came so often"
    if "under" not in how:
        assert t.child.wait(30) == 5


def test_a_closed_terminal_without_one_for_the_command(ctl, terminal, directory):
    t = terminal(ctl, "run", "sh", "-c", SAVES.format(directory), controlling=True)
    t.wait(b"ready")
    t.hang_up()
    poll((directory / "saving").exists, what="the first half")
    (directory / "go").touch()
    poll((directory / "saved").exists, what="the second half")
    assert t.child.wait(30) == 5


@pytest.mark.parametrize("tty", [[], ["-t"]], ids=["pipes", "terminal"])
def test_a_closed_terminal_under_nohup(ctl, terminal, tty):
    """Whoever ignores SIGHUP is not hung up, nor is the command."""
    t = terminal(ctl, "run", *tty, "sh", "-c", "n=5; trap 'n=6' HUP; trap 'exit $n' USR1; echo ready; while :; do echo on; sleep 0.01; done",
                 controlling=True, deaf=True)
    t.wait(b"ready")
    t.hang_up()
    os.kill(t.child.pid, signal.SIGHUP)
    os.kill(t.child.pid, signal.SIGUSR1)    # the smaller number comes first
    assert t.child.wait(30) == 5


def test_jobs_of_a_closed_shell_save_too(ctl, terminal, directory):
    """The shell ends at once, and passes SIGHUP on to a job that takes its time."""
    t = terminal(ctl, "run", "-t", "-E", "PS1=remote> ", "bash", "--norc", "--noprofile", "-i", controlling=True)
    t.wait(b"remote> ")
    (directory / "job").write_text(SAVES.format(directory))
    os.write(t.master, f"sh {directory}/job\r".encode())
    t.wait(b"\rready")
    t.hang_up()
    poll((directory / "saving").exists, what="the first half")
    (directory / "go").touch()
    poll((directory / "saved").exists, what="the second half")
