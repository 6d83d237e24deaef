# SPDX-License-Identifier: ISC
"""Two units: the broker, which is confined and has no runners, and `execd sessions`, which has them and hears only the
broker (execd(8)). systemd's part, the listening socket, is played here."""
import array
import base64
import contextlib
import os
import pathlib
import pwd
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import threading

import pytest
from conftest import (BUILD, EXECD, SANITIZED, Configured, assert_nothing_left, children_named, digest, is_alive, need_mode,
                      need_sandbox, poll)
from execd_client import Closed, WebSocket
from test_ceiling import policy
from test_isolation import status
from test_secrets import Spy

UNIT = BUILD / "contrib/systemd/execd.service"
BROKER = BUILD / "daemon/broker/execd-broker"


AS_BROKER = ["setpriv", "--reuid=_execd-broker", "--regid=_execd-broker", "--clear-groups"]


class Sessions:
    """`execd sessions` with a socket as descriptor 3."""

    def __init__(self, where):
        self.path = where / "sessions"
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(str(self.path))
        os.chmod(self.path, 0o600)
        os.chown(self.path, pwd.getpwnam("_execd-broker").pw_uid, -1)
        listener.listen()
        self.log = ""
        # The shell has the pid that the variable names, and becomes the program.
        self.child = subprocess.Popen(["sh", "-c", 'export LISTEN_FDS=1 LISTEN_PID=$$; exec "$0" sessions', EXECD],
                                      stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, pass_fds=(3,),
                                      preexec_fn=lambda: os.dup2(listener.fileno(), 3))
        self.pid = self.child.pid
        listener.close()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.child.stderr:
            self.log += line.decode(errors="replace")

    def close(self):
        if self.child.poll() is None:
            self.child.terminate()
            assert self.child.wait(15) == 0, self.log


class Confined(Configured):
    """With what systemd would take from the broker's unit and no descendant gets back."""

    def __init__(self, user, path, text, flags, program=BROKER, env=None):
        path.write_text(text)
        self.path = path
        self._start("root", [*AS_BROKER, "--no-new-privs", "--bounding-set=-all",
                             "--inh-caps=-all", str(program), "-c", str(path), *flags], env, text.count("[listener "))


@pytest.fixture
def sessions(directory, user):
    need_mode("root")
    s = Sessions(directory)
    yield s
    s.close()
    assert_nothing_left(user)


def text(user, more=""):
    return (f"[listener main]\naddress = ws://127.0.0.1:0\n[identity a]\nuser = {user.pw_name}\n"
            f"sandbox-allow-unsandboxed = yes\ntoken-sha256 = {digest('t')}\n{more}")


@pytest.fixture
def server(sessions, user, directory):
    made = []

    def make(kind=Confined, more="", **rest):
        flags = ("--sessions", str(sessions.path))
        path = directory / "execd.conf"
        s = Confined(user, path, text(user, more), flags, **rest) if kind is Confined else kind(
            "root", user, path, text(user, more), flags)
        made.append(s)
        return s

    yield make
    for s in made:
        if s.child.poll() is None:
            s.stop()


def test_commands_know_nothing_of_the_monitor_s_confinement(server, sessions, user):
    """What setpriv takes away here, and systemd there, is the broker's loss alone."""
    s = server()
    broker = status(s.broker)
    assert broker["NoNewPrivs"] == "1" and int(broker["CapEff"], 16) == 0 and broker["Seccomp"] == "2"
    c = s.connect(token="t").ready()
    out = c.run_sh("a", "id -u; id -G; grep -E '^(CapBnd|NoNewPrivs|Seccomp):' /proc/self/status; cat /proc/1/comm").stdout
    lines = out.splitlines()
    assert lines[0] == str(user.pw_uid) and set(lines[1].split()) == {
        str(g) for g in os.getgrouplist(user.pw_name, user.pw_gid)}
    assert lines[2:] == [f"CapBnd:\t{status('self')['CapBnd']}", "NoNewPrivs:\t0", "Seccomp:\t0", "execd-runner"], out
    parent = int(status(s.runner(c))["PPid"])
    assert parent == sessions.pid not in (s.pid, s.broker)
    assert status(parent)["Name"] == "execd"


class ReadOnly(Configured):
    """In a mount namespace where nothing can be written, as of ProtectSystem=strict."""

    def __init__(self, mode, user, path, text, flags):
        path.write_text(text)
        self.path = path
        self._start(mode, ["unshare", "--mount", "--propagation", "private", "sh", "-c",
                           'mount -o remount,bind,ro / && exec "$@"', "sh", *AS_BROKER, str(BROKER), "-c", str(path), *flags], None, 1)


def test_nor_of_its_file_system(server, user, directory):
    if subprocess.run(["unshare", "--mount", "--propagation", "private", "mount", "-o", "remount,bind,ro", "/"],
                      capture_output=True).returncode != 0:
        pytest.skip("A READ-ONLY MONITOR IS NOT TESTED: / is no mount here")
    s = server(ReadOnly)
    c = s.connect(token="t").ready()
    place = c.run_sh("a", "d=$(mktemp -d /var/tmp/execd-test-XXXXXX); echo in > $d/f; echo $d").stdout.strip()
    assert c.run_sh("b", f"cat {place}/f; rm -r {place}").stdout == "in\n"


def test_a_sandbox_through_its_door(server, sessions, user, directory):
    need_sandbox("root", user)
    work = directory / "work"
    work.mkdir()
    os.chown(work, user.pw_uid, user.pw_gid)
    s = server()
    c = s.connect(token="t").ready()
    r = c.run("a", ["/bin/sh", "-c", "echo in > f; touch /var/tmp/execd-out; cat f"], cwd=f"file://{work}",
              sandbox=policy(work, ("roots", "write")))
    assert r.stdout == "in\n" and "Read-only" in r.stderr and "no user namespace for" not in s.log
    m = c.request("fs/readFile", {"path": f"file://{work}/f", "sandbox": policy(work)})
    assert "result" in m, m


def test_limits_environment_and_umask(server, user):
    s = server(more="umask = 027\nenvironment = GREETING=hello world\nmax-open-files = 90\nmax-cpu-time = 1h\n")
    c = s.connect(token="t").ready()
    env = {"envPolicy": {"inherit": "all", "ignoreDefaultExcludes": True, "exclude": [], "set": {}, "includeOnly": []},
           "env": {}}
    assert c.run_sh("a", "umask; echo $GREETING $HOME; ulimit -n; ulimit -t", **env).stdout == (
        f"0027\nhello world {user.pw_dir}\n90\n3600\n")


def test_a_killed_runner(server):
    s = server()
    a, b = s.connect(token="t").ready(), s.connect(token="t").ready()
    a.sh("x", "sleep 1000")
    os.kill(s.runner(a), signal.SIGKILL)
    closed = a.wait_closed()
    assert closed["code"] == 1011 and "runner killed by signal 9" in closed["reason"]
    assert b.run("x", ["/bin/echo", "fine"]).stdout == "fine\n"
    s.connect(token="t").ready()


def test_detached_and_resumed(server):
    s = server(more="[limits]\ndetached-ttl = 1h\n")
    c = s.connect(token="t").ready()
    c.sh("x", "echo one; sleep 1000")
    c.wait_output("x", "one")
    os.kill(s.frontend(), signal.SIGKILL)
    c.wait_closed()
    again = s.connect(token="t").ready(resumeSessionId=c.session_id)
    assert again.terminate("x") is True


def test_sessions_that_do_not_end(server):
    """A stopped runner is killed by way of root."""
    s = server(more="[limits]\ndetached-ttl = 100ms\nkill-grace = 100ms\n")
    c = s.connect(token="t").ready()
    runner = s.runner(c)
    os.kill(runner, signal.SIGSTOP)
    c.drop()
    s.wait_log("runner did not end in time, killed")
    poll(lambda: not is_alive(runner), what="its end")


def test_root_is_gone(server, sessions, user):
    s = server()
    c = s.connect(token="t").ready()
    c.sh("x", "sleep 1000")
    sessions.child.kill()
    assert s.child.wait(15) == 1
    assert "root's execd" in s.log
    c.wait_closed()
    assert_nothing_left(user)


@pytest.mark.parametrize("sig, code", [(signal.SIGTERM, 0), (signal.SIGKILL, -9)])
def test_the_service_is_restarted(server, sessions, sig, code):
    """systemctl restart execd, and what systemd does when it crashed."""
    s = server()
    c = s.connect(token="t").ready()
    runner = s.runner(c)
    c.sh("x", "echo one; read line; echo $line; sleep 1000", pipeStdin=True)
    c.wait_output("x", "one")
    os.kill(s.pid, sig)
    assert s.child.wait(15) == code
    c.wait_closed()
    assert is_alive(runner)
    again = server()
    d = again.connect(token="t").ready(resumeSessionId=c.session_id)
    d.write("x", "two\n")
    d.wait_output("x", "two\n")
    assert d.terminate("x") is True


def replaced(s, old):
    """Another broker serves in the same unit."""
    poll(lambda: s.log.count(": serving") >= 2 and not is_alive(old), what="the next broker")
    assert s.child.poll() is None and s.broker != old


@pytest.fixture
def own_program(directory):
    """The broker's program, which may be replaced there."""
    path = directory / "execd-broker"
    shutil.copy(BROKER, path)
    return path


def install(program, content):
    new = program.with_suffix(".new")
    new.write_bytes(content)
    new.chmod(0o755)
    new.rename(program)


@pytest.mark.parametrize("content", ["whole", "missing", "no program", "fails", "another version"])
def test_a_broker_that_dies_is_replaced(server, sessions, own_program, content):
    """By the installed one, or if that one does not come to serve, by the one that served."""
    s = server(program=own_program)
    c = s.connect(token="t").ready()
    c.sh("x", "echo one; read line; echo $line; sleep 1000", pipeStdin=True)
    c.wait_output("x", "one")
    inode, old = os.stat(own_program).st_ino, s.broker
    front = os.stat(f"/proc/{s.frontend()}/exe").st_ino
    if content == "missing":
        own_program.unlink()
    elif content != "whole":
        install(own_program, {"no program": b"#", "fails": pathlib.Path("/bin/false").read_bytes(),
                          "another version": (BUILD / "tests/integration/fake_broker").read_bytes()}[content])
    for n in range(2):
        old = s.broker
        os.kill(old, signal.SIGKILL)
        poll(lambda n=n: s.log.count(": serving") == n + 2, what="the next broker")
        assert os.stat(f"/proc/{s.broker}/exe").st_ino == inode
        assert os.stat(f"/proc/{s.frontend()}/exe").st_ino == front
        assert s.log.count("did not come to serve: starting the previous one") == (0 if content == "whole" else n + 1)
    c.wait_closed()
    d = s.connect(token="t").ready(resumeSessionId=c.session_id)
    d.write("x", "two\n")
    d.wait_output("x", "two\n")


def test_the_next_broker_reads_the_files_of_the_one_that_died(server, sessions):
    """What somebody is writing just then ends nothing."""
    s = server()
    c, old = s.connect(token="t").ready(), s.broker
    s.path.write_text("nonsense\n")
    os.kill(old, signal.SIGKILL)
    replaced(s, old)
    c.wait_closed()
    s.connect(token="t").ready(resumeSessionId=c.session_id)


def test_who_is_no_broker_any_more(server, sessions, own_program):
    """If the one that served fails, too, the unit ends as it did, and what follows is systemd's."""
    s = server(program=own_program)
    install(own_program, b"#")
    sessions.child.kill()
    assert s.child.wait(15) == 1 and s.log.count("starting the previous one") == 1


# --- both units are stopped -----------------------------------------------------

HOURS = "[limits]\ndrain-notice = 1h\ndrain-timeout = 1h\n"


def refused(s):
    c = s.connect(token="t")
    with pytest.raises((Closed, AssertionError), match="shutting down"):
        c.ready()


def test_a_drain_of_both_units(server, sessions, directory):
    """What ExecStop= does then is a drain with its times, and systemd is told that they may be long."""
    note = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    note.bind(str(directory / "notify"))
    os.chmod(directory / "notify", 0o666)
    note.settimeout(20)
    s = server(more=HOURS, env={"NOTIFY_SOCKET": str(directory / "notify")})
    c = s.connect(token="t").ready()
    s.child.send_signal(signal.SIGINT)
    s.wait_log("signal 2: new sessions are opened for another 3600000 ms")
    while (told := note.recv(1000)).startswith((b"READY", b"WATCHDOG")):
        pass
    assert told == b"STOPPING=1\nEXTEND_TIMEOUT_USEC=3690000000"
    s.connect(token="t").ready()
    s.child.send_signal(signal.SIGINT)
    s.wait_log("signal 2: no new sessions; 2 may go on for 3600000 ms")
    refused(s)
    assert c.run("x", ["/bin/echo", "fine"]).stdout == "fine\n"
    old = s.broker
    os.kill(old, signal.SIGKILL)
    replaced(s, old)
    assert "signal 2 came to an earlier broker, and the drain goes on" in s.log
    c.wait_closed()
    c = s.connect(token="t").ready(resumeSessionId=c.session_id)
    s.child.send_signal(signal.SIGINT)
    assert "stopping" in c.wait_closed()["reason"]
    assert s.child.wait(15) == 0
    server().connect(token="t").ready()


def test_a_stop_of_both_units_in_the_middle_of_a_reload(server, sessions):
    """The broker that leaves does not drain any more, and the next one hears of it."""
    s = server(more="[limits]\ndrain-timeout = 1h\n")
    c = s.connect(token="t").ready()
    idle = WebSocket(s.url, handshake=False)    # so the broker does not leave at once
    s.connect(token="t").ready()                # after the front-end has accepted that one
    old = s.broker
    s.path.write_text(s.path.read_text().replace("1h", "2h"))
    s.child.send_signal(signal.SIGHUP)
    assert "reloading" in c.wait_closed()["reason"]
    os.kill(old, signal.SIGINT)
    replaced(s, old)
    assert "signal 2 came to an earlier broker, and the drain goes on" in s.log
    idle.drop()
    refused(s)
    s.connect(token="t").ready(resumeSessionId=c.session_id)
    s.child.send_signal(signal.SIGINT)
    assert s.child.wait(15) == 0


def test_what_the_unit_does_then():
    (stop,) = settings("ExecStop")
    assert "systemctl show -P Job execd-sessions.service" in stop and "kill -INT $MAINPID" in stop


# --- and nothing is lost -------------------------------------------------------


def test_clients_wait_for_the_next_broker(server, sessions):
    """Between two brokers root listens: who connects then is served, and who began a command misses no byte of it."""
    s = server()
    c = s.connect(token="t").ready()
    c.sh("x", "i=0; while [ $i -lt 200 ]; do i=$((i + 1)); echo $i; sleep 0.002; done; echo over")
    c.wait_output("x", "3\n")
    s.child.send_signal(signal.SIGTERM)
    assert s.child.wait(15) == 0
    waiting = [socket.create_connection(("127.0.0.1", int(s.url.rsplit(":", 1)[1]))) for _ in range(3)]
    again = server()
    assert again.url == s.url
    for w in waiting:
        w.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        assert w.recv(4096).startswith(b"HTTP/1.1 ")
        w.close()
    d = again.connect(token="t").ready(resumeSessionId=c.session_id)

    def read():
        r = d.call("process/read", {"processId": "x", "afterSeq": 0, "waitMs": 100})
        return r["closed"] and r

    chunks = poll(read, what="its end")["chunks"]
    assert b"".join(base64.b64decode(x["chunk"]) for x in chunks) == b"".join(b"%d\n" % i for i in range(1, 201)) + b"over\n"


class Connecting(threading.Thread):
    """Connects again and again, and counts who is refused."""

    def __init__(self, url):
        super().__init__(daemon=True)
        self.at = ("127.0.0.1", int(url.rsplit(":", 1)[1]))
        self.tries = self.refused = 0
        self.over = False
        self.start()

    def run(self):
        while not self.over:
            self.tries += 1
            try:
                socket.create_connection(self.at, timeout=20).close()
            except ConnectionRefusedError:
                self.refused += 1

    def end(self):
        self.over = True
        self.join()
        return self.refused


@pytest.mark.parametrize("how", ["SIGHUP", "ctl"])
def test_a_reload_is_no_restart(server, sessions, how):
    """systemctl reload execd: another broker beside the first, and nobody is refused meanwhile."""
    s = server(more="[limits]\ndetached-ttl = 5m\n")
    c = s.connect(token="t").ready()
    c.sh("x", "echo one; read line; echo $line; sleep 1000", pipeStdin=True)
    c.wait_output("x", "one")
    before, connecting = s.broker, Connecting(s.url)
    for n in range(3):
        s.path.write_text(s.path.read_text().replace(f"detached-ttl = {5 + n}m", f"detached-ttl = {6 + n}m"))
        if how == "ctl":
            socket_path = f"/run/execd/ctl.{sessions.pid}"
            r = subprocess.run([EXECD, "ctl", "--socket", socket_path, "reload"], capture_output=True, text=True, timeout=30)
            assert r.returncode == 0 and f"[limits] detached-ttl: {6 + n}m, was {5 + n}m" in r.stdout, r
        else:
            s.child.send_signal(signal.SIGHUP)
        poll(lambda: s.broker != before and not is_alive(before), what="the next broker")
        before = s.broker
    assert connecting.end() == 0 and connecting.tries > 10
    assert s.child.poll() is None, "the unit goes on"
    d = s.connect(token="t").ready(resumeSessionId=c.session_id)
    d.write("x", "two\n")
    d.wait_output("x", "two\n")
    assert s.log.count("[identity a]: commands run as") == 1, s.log


def test_a_reload_that_is_refused(server, sessions):
    s = server()
    before, good = s.broker, s.path.read_text()
    s.path.write_text(good + "nonsense\n")
    r = subprocess.run([EXECD, "ctl", "--socket", f"/run/execd/ctl.{sessions.pid}", "reload"], capture_output=True,
                       text=True, timeout=30)
    assert r.returncode == 3 and f"{s.path}:" in r.stderr, r
    assert s.broker == before and s.child.poll() is None
    s.path.write_text(good)
    assert s.connect(token="t").ready().run("x", ["/bin/echo", "fine"]).stdout == "fine\n"


def test_a_stopped_broker(server, sessions):
    """Root kills it by the descriptor that names who connected, and the unit starts another one."""
    s = server()
    c, old = s.connect(token="t").ready(), s.broker
    os.kill(old, signal.SIGSTOP)
    poll(lambda: not is_alive(old), 20, "its end")
    assert "does not answer: killing it" in sessions.log
    replaced(s, old)
    c.wait_closed()
    s.connect(token="t").ready(resumeSessionId=c.session_id)


def test_nobody_listens_for_ever(server, sessions):
    """systemctl stop execd: a balancer sees it, after a while in which clients wait for a restart."""
    s = server()
    s.child.send_signal(signal.SIGTERM)
    assert s.child.wait(15) == 0
    at = ("127.0.0.1", int(s.url.rsplit(":", 1)[1]))
    socket.create_connection(at).close()

    def refused():
        try:
            socket.create_connection(at).close()
        except ConnectionRefusedError:
            return True

    poll(refused, what="no listener")
    assert "no broker for 10 s" in sessions.log
    server().connect(token="t").ready()


def test_a_file_that_is_broken_when_the_next_broker_reads_it(server, sessions, user, directory):
    """The unit stops, as at any start; the sessions do not."""
    s = server()
    c = s.connect(token="t").ready()
    runner = s.runner(c)
    s.child.send_signal(signal.SIGTERM)
    assert s.child.wait(15) == 0
    good = s.path.read_text()
    s.path.write_text(good + "nonsense\n")
    r = subprocess.run([*AS_BROKER, BROKER, "-c", s.path, "--sessions", sessions.path], capture_output=True, text=True, timeout=20)
    assert r.returncode == 3 and is_alive(runner), r
    server().connect(token="t").ready(resumeSessionId=c.session_id)


def test_it_does_not_end_when_idle(sessions, user, directory):
    path = directory / "execd.conf"
    path.write_text(text(user) + "[limits]\nexit-when-idle = 1s\n")
    r = subprocess.run([BROKER, "-t", "-c", path, "--sessions", sessions.path], capture_output=True, text=True, timeout=20,
                       user="_execd-broker", group="_execd-broker", extra_groups=[])
    assert r.returncode == 3 and "exit-when-idle is for an execd that is one job" in r.stderr, r


def test_no_broker_of_the_unit_lets_its_user_look_into_it(sessions, user, directory):
    """systemd executes it as its user: what nobody may read is closed from the first instruction on."""
    if pathlib.Path("/proc/sys/fs/suid_dumpable").read_text() == "1\n":
        pytest.skip("A FRESH BROKER IS NOT RACED WITH: fs.suid_dumpable opens every process here")
    broker, path = directory / "execd-broker", directory / "execd.conf"
    shutil.copy(BROKER, broker)
    broker.chmod(0o711)
    path.write_text(text(user))
    spy = Spy(pwd.getpwnam("_execd-broker"), b"0123456789abcdef")
    for _ in range(20):
        r = subprocess.run([broker, "-t", "-c", path, "--sessions", sessions.path], capture_output=True, text=True, timeout=20,
                           user="_execd-broker", group="_execd-broker", extra_groups=[])   # as systemd does; setpriv keeps capabilities
        assert r.returncode == 0, r
    spy.stop()
    assert spy.stopped >= 5, "it saw nothing"
    assert spy.read == 0, f"{spy.read} of {spy.stopped} brokers could be read"


def test_root_is_reloaded(server, sessions, user):
    """systemctl reload execd-sessions: the same process, and nobody notices; the socket is still listened on."""
    s = server()
    c = s.connect(token="t").ready()
    c.sh("x", "echo one; read line; echo $line; sleep 1000", pipeStdin=True)
    c.wait_output("x", "one")
    for n in range(3):
        sessions.child.send_signal(signal.SIGUSR2)
        poll(lambda n=n: sessions.log.count("re-exec: this version goes on") == n + 1, what="the next version")
    c.write("x", "two\n")
    c.wait_output("x", "two\n")
    s.child.send_signal(signal.SIGTERM)
    assert s.child.wait(15) == 0
    d = server().connect(token="t").ready(resumeSessionId=c.session_id)
    assert d.terminate("x") is True


def test_who_is_no_broker(sessions, server, user):
    s = server()
    c = s.connect(token="t").ready()
    os.chmod(sessions.path, 0o666)
    r = subprocess.run(["setpriv", f"--reuid={user.pw_uid}", "--clear-groups", "/usr/bin/python3", "-c",
                        f"import socket; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); "
                        f"s.connect({str(sessions.path)!r}); print(s.recv(100))"], capture_output=True, text=True, timeout=20)
    assert r.stdout == "b''\n", r
    poll(lambda: "it is no broker, or not the only one" in sessions.log, what="a line in the log")
    assert c.run("x", ["/bin/echo", "fine"]).stdout == "fine\n"


def test_a_socket_that_nobody_listens_behind(user, directory):
    need_mode("root")
    path = directory / "execd.conf"
    path.write_text(text(user))
    r = subprocess.run([BROKER, "-c", path, "--sessions", directory / "none"], capture_output=True, text=True, timeout=20)
    assert r.returncode == 1 and f"--sessions {directory}/none: No such file" in r.stderr
    r = subprocess.run([EXECD, "-c", path, "--sessions", directory / "none"], capture_output=True, text=True, timeout=20)
    assert r.returncode == 2 and "is an option of execd-broker" in r.stderr
    r = subprocess.run([BROKER, "-c", path], capture_output=True, text=True, timeout=20)
    assert r.returncode == 2 and "execd starts this program" in r.stderr
    r = subprocess.run([EXECD, "sessions"], capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL)
    assert r.returncode == 2 and "is started by systemd" in r.stderr


@pytest.mark.parametrize("again, code", [(False, 5), (True, 1)])
def test_sessions_that_do_not_start(user, directory, again, code):
    """systemd has tried, and closes the socket: another start of the broker would not change that, and it says so. With
    a socket that goes on it does."""
    need_mode("root")
    path = directory / "execd.conf"
    path.write_text(text(user))

    def listen(name):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.bind(str(directory / name))
        s.listen()
        return s

    first = listen("sessions")
    child = subprocess.Popen([BROKER, "-c", path, "--sessions", directory / "sessions"], stderr=subprocess.PIPE, text=True)
    poll(lambda: select.select([first], [], [], 0)[0], what="a broker that has connected")
    if again:
        other = listen("other")
        os.rename(directory / "other", directory / "sessions")
    first.close()
    _, said = child.communicate(timeout=20)
    if again:
        other.close()
    assert child.returncode == code, said
    assert ("`systemctl status execd-sessions' says why" in said) == (not again), said


# --- a broker in the hands of somebody else ------------------------------

VERSION = int(re.search(r"#define SPAWN_VERSION (\d+)",
                        (pathlib.Path(__file__).parents[2] / "protocol/ipc/control_version.h").read_text())[1])
BEGIN, START, KILL, END, NEXT, FILE, PLACE, PIECE, USER, SEAL, PROGRAM = 70, 72, 78, 80, 82, 94, 96, 97, 98, 100, 102
NAMESPACE = 2                  # a program


def u32(*n):
    return struct.pack(f"<{len(n)}I", *n)


def said(what, *parts, version=VERSION):
    """A message of control_spawn.h."""
    return u32(what, version) + b"".join(parts)


def field(s, size):
    """A text in its array."""
    return s.ljust(size, b"\0")


def kept(index=0):
    """A question that changes nothing."""
    return said(NEXT, u32(index))


def pieces(data):
    """A user's groups and environment."""
    return [said(PIECE, u32(len(data[i:i + 1020])), field(data[i:i + 1020], 1020)) for i in range(0, len(data), 1020)]


def listed(uid, gid=1, number=0, tasks=0):
    """A user of the list."""
    return said(USER, u32(number), field(b"x", 80), u32(uid, gid, 0o22, tasks, 0, 0, 0), bytes(8 + 8), u32(0, 0), bytes(16))


def start(user=0, id=b"0123"):
    return said(START, u32(user), field(id, 40))


OTHER = 65534


class Rogue:
    """The broker's end of the spawn channel."""

    def __init__(self, sessions, begin=True):
        os.chown(sessions.path, 0, -1)    # these tests are root's
        self.s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.s.settimeout(20)
        self.s.connect(str(sessions.path))
        self.sessions = sessions
        if begin:
            self.begin()

    def begin(self):
        self.send(said(BEGIN, u32(0)))
        ready, fds, _, _ = socket.recv_fds(self.s, 8192, 16)
        assert ready[:4] == u32(BEGIN + 1)
        for fd in fds[1:]:
            os.close(fd)
        self.mine = socket.socket(fileno=fds[0])
        self.mine.setblocking(True)

    def seal(self, uid=OTHER, users=None):
        """It serves, with one user in its list."""
        self.list(listed(uid), LIST if users is None else users)
        self.send(seal())
        assert self.s.recv(8192) == said(SEAL + 1)
        return self

    def send(self, data, *fds):
        self.s.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])

    def flood(self):
        """More of a list than there may be."""
        with contextlib.suppress(ConnectionError):
            for message in pieces(bytes(5 << 20)):
                self.send(message)

    def list(self, user, data):
        for message in [*pieces(data), user]:
            self.send(message)

    def answer_pings(self):
        """Who does not is dead after ten seconds."""
        try:
            while self.mine.recv(4096, socket.MSG_DONTWAIT) == said(93):
                self.send(said(92))
        except BlockingIOError:
            pass

    def ended(self):
        try:
            return self.s.recv(4096) == b""
        except ConnectionResetError:
            return True


LIST = u32(0)     # no groups, no environment


def place(number=0, kind=1, path=b"/tmp/x", name=b"n"):
    return said(PLACE, u32(number), bytes([kind]), field(name, 208), bytes(28), field(path, 4096), bytes(3), u32(0o600, 0xffffffff))


def program(kind, user=0):
    return said(PROGRAM, u32(kind, user))


def seal(uid=OTHER, gid=OTHER):
    return said(SEAL, u32(uid, gid), bytes(4 + 4 + 8))


def file(path):
    return said(FILE, u32(0), field(path, 4096))


@pytest.mark.parametrize("order", [
    lambda r: r.send(said(999)),
    lambda r: r.send(said(BEGIN, u32(0))),                                     # twice
    lambda r: r.list(listed(0), LIST),                                  # root
    lambda r: r.list(listed(0xffffffff), LIST),
    lambda r: r.list(listed(1, number=1), LIST),                        # not the next number
    lambda r: r.send(listed(1)),                                               # without a list
    lambda r: r.list(listed(1), u32(1 << 30)),                       # groups without end
    lambda r: r.list(listed(1), u32(2, 1)),
    lambda r: r.list(listed(1), LIST + b"A=b\0c"),                      # a text without end
    lambda r: r.list(listed(1), b"xy"),
    lambda r: r.send(said(PIECE, u32(1021), bytes(1020))),                     # a piece without end
    lambda r: r.flood(),
    lambda r: r.send(seal(0, 1)),                                              # root would hear strangers
    lambda r: r.send(start()),                                                 # before the seal
    lambda r: r.send(program(NAMESPACE)),
    lambda r: r.send(file(b"relative")),
    lambda r: r.send(place(number=7)),
    lambda r: r.send(place(kind=9)),
    lambda r: r.send(place(path=b"/" * 4096)),                                 # a text without end
    lambda r: r.send(place(name=b"n" * 208)),
    lambda r: r.send(file(b"/" * 4096)),
    lambda r: r.list(listed(1)[:-1], LIST),
    lambda r: r.send(said(SEAL, u32(OTHER, OTHER), bytes(4 + 4 + 8), version=2)),
], ids=range(23))
def test_impossible_lists_end_it(sessions, order):
    r = Rogue(sessions)
    order(r)
    assert r.ended()
    poll(lambda: "impossible command" in sessions.log, what="a line about it")
    Rogue(sessions).seal()


def test_a_broker_that_ends_before_its_answer(sessions):
    """It is no attack, and no broker speaks another version. The next one comes to serve."""
    r = Rogue(sessions, begin=False)
    sessions.child.send_signal(signal.SIGSTOP)
    r.send(said(BEGIN, u32(0)))
    r.s.close()
    sessions.child.send_signal(signal.SIGCONT)
    poll(lambda: f"the broker ended: its command {BEGIN} was cut off before the answer" in sessions.log, what="a line about it")
    Rogue(sessions).seal()
    assert "impossible command" not in sessions.log


@pytest.mark.parametrize("order", [
    lambda r: r.send(file(b"/etc/shadow")),                                    # after the seal
    lambda r: r.list(listed(2, number=1), LIST),
    lambda r: r.send(place()),
    lambda r: r.send(seal()),
    lambda r: r.send(start(1)),                                                # nobody of the list
    lambda r: r.send(start(0xffffffff)),
    lambda r: r.send(start(), 0),                                              # with a descriptor
    lambda r: r.send(start() + b"x"),
    lambda r: r.send(start(id=b"1" * 40)),                                     # without end
    lambda r: r.send(program(NAMESPACE, 1)),
    lambda r: r.send(program(NAMESPACE), 0),                                   # with a descriptor
    lambda r: r.send(said(104, u32(0))),                                       # OPEN: no such place
    lambda r: r.send(said(106, u32(0))),                                       # CLOSE
    lambda r: r.send(said(108, u32(0), field(b"x", 64))),                      # RECORD
    lambda r: r.send(program(7)),                                              # PROGRAM of no kind
    lambda r: r.send(said(END, u32(os.getpid()))),                             # nobody's
    lambda r: r.send(said(92)),                                                # ALIVE, without a question
    lambda r: r.send(said(90, u32(0))),                                        # STOP: the sessions are another unit's
    lambda r: r.send(said(84) + b"x"),                                         # ENDING
    lambda r: r.send(said(86, u32(0))),                                        # of an earlier version
    lambda r: r.send(said(113, u32(0), bytes(8180))),                          # RELOADED is for who lists
    lambda r: r.send(kept(), 0, 0),
    lambda r: r.send(said(82)),
    lambda r: r.send(said(KILL)),
    lambda r: r.send(u32(KILL)),                                               # no head
    lambda r: r.send(said(KILL, bytes(8000))),
    lambda r: r.send(said(KILL, u32(1), version=2)),
], ids=range(27))
def test_impossible_orders_end_it(sessions, order):
    """The broker; root is as it was, and serves the next."""
    r = Rogue(sessions).seal()
    order(r)
    assert r.ended()
    poll(lambda: "impossible command" in sessions.log, what="a line about it")
    Rogue(sessions).seal()


TWO = u32(2, 7, 8) + b"A=b\0"


@pytest.mark.parametrize("order, kept", [
    ((listed(OTHER), u32(1, 8) + b"A=b\0"), True),                            # fewer groups
    ((listed(OTHER), u32(0) + b"A=b\0"), True),
    ((listed(OTHER), TWO), True),
    ((listed(OTHER), u32(3, 7, 8, 9) + b"A=b\0"), False),
    ((listed(OTHER), u32(2, 7, 0) + b"A=b\0"), False),
    ((listed(OTHER), u32(2, 8, 8) + b"A=b\0"), False),
    ((listed(OTHER), u32(1, 7) + b"A=c\0"), False),                           # another environment
    ((listed(OTHER), u32(1, 7)), False),
    ((listed(OTHER), u32(1, 7) + b"A=b\0B=\0"), False),
    ((listed(OTHER - 1), TWO), False),                                         # another user
    ((listed(OTHER, gid=2), TWO), False),
    ((listed(OTHER, tasks=1), TWO), False),
    ((listed(OTHER, number=1), TWO), False)], ids=range(13))
def test_a_serving_broker_only_takes_groups_away(sessions, order, kept):
    r = Rogue(sessions).seal(users=TWO)
    r.list(*order)
    if not kept:
        assert r.ended()
        poll(lambda: "impossible command" in sessions.log, what="a line about it")
        return
    r.send(start())
    assert r.s.recv(8192)[:12] == said(START + 1, u32(0))
    runner = poll(lambda: children_named(sessions.pid, "execd-runner"), what="runner")[0]
    groups = poll(lambda: re.search(r"^Groups:\t(.*) $", read_status(runner), re.M), what="groups")[1].split()
    assert groups == [str(n) for n in struct.unpack(f"<{order[1][0]}I", order[1][4:4 + 4 * order[1][0]])]


def read_status(pid):
    return pathlib.Path(f"/proc/{pid}/status").read_text()


def test_what_is_nobody_s_is_not_killed(sessions):
    r = Rogue(sessions).seal()
    r.send(said(KILL, u32(os.getpid())))
    r.send(kept())
    assert r.s.recv(4096)[:4] == u32(NEXT + 1)


# --- the units ------------------------------------------------------------


def analyze(*args):
    return subprocess.run(["systemd-analyze", *map(str, args)], capture_output=True, text=True, timeout=60)


@pytest.fixture
def systemd():
    r = None
    try:
        r = analyze("--version")
    except FileNotFoundError:
        pass
    if r is None or r.returncode != 0 or int(re.search(r"systemd (\d+)", r.stdout)[1]) < 250:
        pytest.skip("THE UNITS ARE NOT CHECKED: there is no systemd-analyze of version 250 or newer")


def test_the_broker_s_unit_is_confined(systemd):
    """`systemd-analyze security` gives it at most 2.0."""
    r = analyze("security", "--offline=true", "--threshold=20", "--no-pager", UNIT)
    score = float(re.search(r"Overall exposure level for execd.service: (\d+\.\d)", r.stdout)[1])
    assert r.returncode == 0 and score <= 2.0, r.stdout


def test_the_unit_of_the_sessions_takes_nothing_away():
    """Every setting of systemd.exec(5) there would be a setting of the commands."""
    text = (BUILD / "contrib/systemd/execd-sessions.service").read_text()
    keys = re.findall(r"(?m)^(\w+)=", text)
    allowed = {"Description", "Requires", "After", "Before", "Documentation", "ExecStart", "ExecReload", "KillMode", "TasksMax", "OOMPolicy",
               "Delegate"}
    assert set(keys) <= allowed, set(keys) - allowed


def test_one_name_in_the_journal():
    """journalctl -t execd has all of it: the name of the first program of a unit is what it is by default."""
    broker, sessions = ((BUILD / f"contrib/systemd/{name}.service").read_text() for name in ("execd", "execd-sessions"))
    assert "\nSyslogIdentifier=execd\n" in broker and re.search(r"(?m)^ExecStart=\S+/execd sessions$", sessions)


@pytest.mark.skipif(SANITIZED, reason="SYSTEM CALLS ARE NOT CHECKED: a sanitizer makes others")
def test_the_system_calls_that_the_unit_allows_are_enough(systemd, sessions, user, directory):
    """All that the broker calls in a life:
    start, TLS, client certificates, a session, a reload."""
    from certificates import Authority
    import ssl
    if subprocess.run(["strace", "-V"], capture_output=True).returncode != 0:
        pytest.skip("SYSTEM CALLS ARE NOT CHECKED: there is no strace")
    authority = Authority(directory, "root")
    base, bob = authority.issue("server"), authority.issue("bob")
    path = directory / "execd.conf"
    path.write_text(f"[listener tls]\naddress = wss://127.0.0.1:0\ncertificate = {base}.pem\ncertificate-key = {base}.key\n"
                    f"client-ca = {authority.cert}\nclient-certificate = optional\n[listener path]\n"
                    f"address = unix:{directory}/sock\nmode = 0660\ngroup = daemon\n{text(user)}"
                    f"[audit]\nfile = {directory}/audit\n")
    trace = directory / "trace"
    s = Configured.__new__(Configured)
    s.path = path
    s._start("root", ["strace", "-f", "-qq", "-o", str(trace), "-e", "signal=none", *AS_BROKER, str(BROKER), "-c", str(path), "--sessions",
                      str(sessions.path)], None, 3)
    broker = int(pathlib.Path(f"/proc/{s.pid}/task/{s.pid}/children").read_text().split()[0])
    tls = ssl.create_default_context(cafile=authority.cert)
    tls.load_cert_chain(f"{bob}.pem", f"{bob}.key")
    c = s.connect(s.urls[0], tls=tls, token="t").ready()
    assert c.run("x", ["/bin/echo", "in"]).stdout == "in\n"
    with pytest.raises(Closed):
        s.connect(s.urls[0], tls=tls)
    c.drop()
    os.kill(broker, signal.SIGHUP)
    s.wait_log("reload: nothing changed")
    poll(lambda: s.log.count("front-end ") == 2, what="the next broker")
    os.kill(broker, signal.SIGTERM)
    assert s.child.wait(20) == 0
    called = set(re.findall(r"(?m)^\d+ +(?:<\.\.\. )?(\w+)[( ]", trace.read_text())) - {"resumed"}
    assert {"connect", "recvmsg", "epoll_wait"} <= called, called
    allowed = set()
    for word in re.search(r"(?m)^SystemCallFilter=([^~\n].*)$", UNIT.read_text())[1].split():
        allowed |= expand(word)
    for line in re.findall(r"(?m)^SystemCallFilter=~(.*)$", UNIT.read_text()):
        for word in line.split():
            allowed -= expand(word)
    assert called <= allowed, called - allowed


def expand(word):
    if not word.startswith("@"):
        return {word}
    found = set()
    for line in analyze("syscall-filter", word).stdout.splitlines()[1:]:
        name = line.strip()
        if name and not name.startswith("#"):
            found |= expand(name)
    return found


# --- the units ------------------------------------------------------------


def settings(name):
    return re.findall(rf"(?m)^{name}=(.*)$", UNIT.read_text())


def test_a_missing_file_is_no_silent_skip():
    assert settings("AssertPathExists") == ["/etc/execd/execd.conf"]
    assert not [x for x in UNIT.read_text().splitlines() if x.startswith("Condition")]


def test_what_another_start_would_not_change_is_not_started_again(directory):
    """The codes of usage, configuration, permission and a host that cannot; each of them is one that execd has."""
    assert settings("RestartPreventExitStatus") == ["2 3 4 5"] and settings("Restart") == ["on-failure"]
    (directory / "bad.conf").write_text("[listner x]\n")
    assert subprocess.run([EXECD, "-c", directory / "bad.conf"], capture_output=True).returncode == 3
    assert subprocess.run([EXECD, "--no-such-flag"], capture_output=True).returncode == 2


def test_a_reload_waits_for_the_next_broker():
    """It ends when that one serves, or fails with what is wrong (test_a_reload_that_is_refused)."""
    assert [x.split("/")[-1] for x in settings("ExecReload")] == ["execd ctl reload"]
    assert settings("ExecStartPre") == [], "its status is none that RestartPreventExitStatus looks at"
