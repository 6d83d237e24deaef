#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""The units under a real systemd, in a container: while sessions with commands that stream, detached sessions and watchers
are there, systemctl restarts and reloads execd, reloads execd-sessions, and the broker is killed. Every byte comes once,
every session is there at the end, and the end of execd-sessions is the end of everything.

The container is systemd-nspawn's: /usr is this host's, everything else is empty, the network is its own.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from torture import BUILD, Clock, arguments, poll
from replace import MARKER, TOKEN, One
from conftest import children_named, digest, pids_with
from execd_client import Closed, WebSocket

CONFIGURATION = """
[listener main]
address = unix:/srv/execd/socket
mode = 0666
[limits]
detached-ttl = 2h
[identity one]
user = tester
token-sha256 = {digest}
sandbox-allow-unsandboxed = yes
"""
NSPAWN = ["systemd-nspawn", "--quiet", f"--machine=execd-{os.getpid()}", "--register=no", "--keep-unit", "--private-network",
          "--volatile=yes", "-D", "/"]
SERVED_S = 2    # for a new client
BOOT_S = 60


def missing():
    """Why it cannot be tried here, or None."""
    if os.getuid() != 0:
        return "a container with a systemd of its own is root's"
    if not shutil.which("systemd-nspawn"):
        return "there is no systemd-nspawn (Debian's package systemd-container)"
    r = subprocess.run([*NSPAWN, "/bin/true"], capture_output=True, text=True, timeout=60)
    return f"systemd-nspawn starts no container: {r.stderr.strip()}" if r.returncode else None


class Container:
    def __init__(self, directory):
        self.directory = directory
        self.log = directory / "console"
        self.clients = []
        stage = directory / "stage"
        subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild"], env={**os.environ, "DESTDIR": str(stage)},
                       check=True, stdout=subprocess.DEVNULL)
        for name, text in {"etc/execd.conf": CONFIGURATION.format(digest=digest(TOKEN)),
                           "users/tester.conf": 'u tester - "tester" /tmp /bin/sh\n'}.items():
            (directory / name).parent.mkdir()
            (directory / name).write_text(text)
        self.shared = directory / "shared"
        self.shared.mkdir()
        self.shared.chmod(0o777)
        prefix = subprocess.run(["meson", "introspect", "--buildoptions", BUILD], capture_output=True, text=True).stdout
        assert '"/usr/local"' in prefix, "the build is for another prefix than /usr/local"
        self.child = subprocess.Popen(
            [*NSPAWN, f"--bind-ro={stage}/usr/local:/usr/local", f"--bind-ro={directory}/etc:/etc/execd",
             f"--bind-ro={directory}/users:/etc/sysusers.d", f"--bind={self.shared}:/srv/execd", "--boot",
             "systemd.firstboot=0", "systemd.wants=execd.service", "systemd.unit=basic.target"],
            stdin=subprocess.DEVNULL, stdout=self.log.open("w"), stderr=subprocess.STDOUT)
        poll(lambda: self.child.poll() is not None or (self.shared / "socket").exists(), BOOT_S, "execd's socket")
        assert self.child.poll() is None, self.log.read_text()[-2000:]
        self.leader = poll(lambda: children_named(self.child.pid, "systemd"), 10, "the container's systemd")[0]
        poll(lambda: self.systemctl("is-active", "execd").stdout.strip() == "active", BOOT_S, "active execd")

    def inside(self, *argv, check=True):
        return subprocess.run(["nsenter", "-t", str(self.leader), "-a", *argv], capture_output=True, text=True, timeout=120,
                              check=check)

    def systemctl(self, *argv, check=False):
        r = self.inside("systemctl", "--no-pager", *argv, check=False)
        assert not check or r.returncode == 0, (argv, r.stderr, self.journal()[-2000:])
        return r

    def journal(self):
        return self.inside("journalctl", "--no-pager", "-u", "execd", "-u", "execd-sessions", check=False).stdout

    def show(self, unit, what):
        return self.systemctl("show", "--value", "-p", what, unit, check=True).stdout.strip()

    def connect(self, **kwargs):
        return WebSocket(f"unix:{self.shared}/socket", **kwargs)

    def close(self):
        """Its first process takes this as the order to power off."""
        os.kill(self.leader, signal.SIGRTMIN + 4)
        try:
            self.child.wait(60)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait(10)


def serves(c):
    try:
        one = c.connect(token=TOKEN)
    except (Closed, OSError):
        return False
    try:
        one.call("initialize", {"clientName": "new"}, 2)
        one.notify("initialized")
        return one.run("x", ["/bin/echo", "in"], 2).stdout == "in\n" and one.request("session/end", {}, 2)
    except (Closed, OSError, TimeoutError):
        return False
    finally:
        one.drop()


def kill_broker(c):
    os.kill(children_named(c.leader, "execd-broker")[0], signal.SIGKILL)


STEPS = {
    "systemctl restart execd": lambda c: c.systemctl("restart", "execd", check=True),
    "systemctl reload execd": lambda c: c.systemctl("reload", "execd", check=True),
    "systemctl reload execd-sessions": lambda c: c.systemctl("reload", "execd-sessions", check=True),
    "kill -9 of the broker": kill_broker,
}


def try_step(c, what, all_, patience):
    """How long a new client waited; of a restart, from its end on."""
    old = c.show("execd", "MainPID")
    STEPS[what](c)
    began = time.monotonic()
    if "sessions" not in what:
        poll(lambda: c.show("execd", "MainPID") not in (old, "0"), 30, f"another broker after {what}")
    poll(lambda: serves(c), 30, f"new client after {what}")
    took = time.monotonic() - began
    assert took < SERVED_S * patience, f"a new client after {what}: {took:.2f} s"
    for one in all_:
        poll(one.attached, 30, "another connection to a session")
    return took


def units(sessions, rounds, patience=1):
    """Returns a line of figures."""
    clock = Clock()
    with tempfile.TemporaryDirectory(prefix="execd-units-") as d:
        pathlib.Path(d).chmod(0o755)
        c = Container(pathlib.Path(d))
        try:
            root = c.show("execd-sessions", "MainPID")
            kinds = ["attached"] * 6 + ["detached", "detached", "watched"]
            all_ = [One(c, kinds[i % len(kinds)], None) for i in range(sessions)]
            slowest = dict.fromkeys(STEPS, 0)
            for _ in range(rounds):
                for what in STEPS:
                    slowest[what] = max(slowest[what], try_step(c, what, all_, patience))
            assert c.show("execd-sessions", "MainPID") == root, "root's execd is another process"
            # Each line once, with the journal's tag and without a second one.
            assert not re.search(r"execd-broker\[\d+\]: execd-broker\[", c.journal())
            for one in all_:
                if one.kind == "detached":
                    one.c = c.connect(token=TOKEN).ready(resumeSessionId=one.id)
            lines = sum(one.check() for one in all_)
            c.systemctl("stop", "execd", check=True)
            assert len(pids_with(MARKER)) >= sessions, "commands ended with execd"
            c.systemctl("stop", "execd-sessions.socket", "execd-sessions", check=True)
            poll(lambda: not pids_with(MARKER), 5 * patience, "end of all commands with execd-sessions")
        finally:
            c.close()
    told = ", ".join(f"{what} {s:.2f} s" for what, s in slowest.items())
    return (f"{sessions} sessions, {rounds} times each; {lines} lines, each once; a new client was served at the latest after "
            f"{told}; {clock}")


def main():
    a = arguments(__doc__.splitlines()[0])
    why = missing()
    if why:
        print(f"units: SKIPPED: {why}")
        return
    print(units(max(int(100 * min(a.scale * 2, 1)), 9), max(int(20 * a.scale), 1)), flush=True)


if __name__ == "__main__":
    sys.exit(main())
