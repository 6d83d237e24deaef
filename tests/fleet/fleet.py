# SPDX-License-Identifier: ISC
"""Several hosts with execd and two balancers on one machine: a network, UTS, pid
and mount namespace for each host, and a bridge between all of them. What they
read is contrib/haproxy, with the digests of this run's tokens.

The test itself is on the bridge, with as many addresses as it wants:
10.89.1.0/24 are all its own.
"""
import contextlib
import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess

from conftest import EXECD, PATIENCE_S, Server, children_named, digest, poll
from execctl import Execctl, make_authority
from execd_client import WebSocket

TREE = pathlib.Path(__file__).parents[2]
CONTRIB = TREE / "contrib/haproxy"
HAPROXY = shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin:/usr/bin")
HOSTS = {"a": "10.89.0.11", "b": "10.89.0.12", "c": "10.89.0.13"}
BALANCERS = {"lb1": "10.89.0.2", "lb2": "10.89.0.3"}
TOKEN, URGENT = "a-token-of-the-tests", "an-urgent-token-of-the-tests"
CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)


class Namespace:
    """A network namespace, which lives as long as its holder."""

    def __init__(self):
        self.holder = subprocess.Popen(["unshare", "-n", "cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        here = os.readlink("/proc/self/ns/net")
        self.path = f"/proc/{self.holder.pid}/ns/net"
        poll(lambda: os.readlink(self.path) != here, what="network namespace")
        self.ip("link", "set", "lo", "up")

    def ip(self, *words):
        subprocess.run(["nsenter", f"--net={self.path}", "ip", *map(str, words)], check=True)

    def close(self):
        self.holder.stdin.close()
        self.holder.wait()


class Net:
    """The bridge, and a namespace behind it for each machine."""

    def __init__(self):
        self.hub = Namespace()
        self.hub.ip("link", "add", "br0", "type", "bridge")
        self.hub.ip("addr", "add", "10.89.1.1/16", "dev", "br0")
        self.hub.ip("link", "set", "br0", "up")
        self.hub.ip("route", "add", "local", "10.89.1.0/24", "dev", "lo")
        self.machines = {}
        for name, address in {**HOSTS, **BALANCERS}.items():
            n = self.machines[name] = Namespace()
            self.hub.ip("link", "add", f"v-{name}", "type", "veth", "peer", "name", "eth0", "netns", n.holder.pid)
            self.hub.ip("link", "set", f"v-{name}", "master", "br0", "up")
            n.ip("addr", "add", f"{address}/16", "dev", "eth0")
            n.ip("link", "set", "eth0", "up")

    def cable(self, name, plugged):
        self.hub.ip("link", "set", f"v-{name}", "up" if plugged else "down")

    @contextlib.contextmanager
    def entered(self):
        """The calling thread, and what it starts, are on the bridge."""
        with open("/proc/self/ns/net", "rb") as before, open(self.hub.path, "rb") as hub:
            setns(hub)
            try:
                yield
            finally:
                setns(before)

    def close(self):
        for n in *self.machines.values(), self.hub:
            n.close()


def setns(namespace):
    if LIBC.setns(namespace.fileno(), CLONE_NEWNET) < 0:
        raise OSError(ctypes.get_errno(), "setns")


class Files:
    """/etc of every machine of the fleet: this host's, with the user `ci` and contrib/haproxy."""

    def __init__(self, directory, user):
        self.etc = directory / "etc"
        subprocess.run(["cp", "-a", "/etc", str(self.etc)], check=True)
        with open(self.etc / "passwd", "a", encoding="ascii") as f:
            f.write(f"ci:x:{user.pw_uid}:{user.pw_gid}::{user.pw_dir}:/bin/sh\n")
        keys = directory / "keys"
        keys.mkdir()
        self.ca = make_authority(keys, ",IP:".join(BALANCERS.values())) / "ca.pem"
        for name in "execd", "haproxy":
            (self.etc / name).mkdir(exist_ok=True)
        shutil.copy(keys / "server.crt", self.etc / "execd/execd.crt")
        shutil.copy(keys / "server.key", self.etc / "execd/execd.key")
        text = (CONTRIB / "execd.conf").read_text()
        for i, token in enumerate((TOKEN, URGENT), 1):
            text, n = re.subn(rf"\b0{{63}}{i}\b", digest(token), text)
            assert n == 1
        (self.etc / "execd/execd.conf").write_text(text)
        shutil.copy(CONTRIB / "haproxy.cfg", self.etc / "haproxy/haproxy.cfg")
        shutil.copy(keys / "server.pem", self.etc / "haproxy/execd.pem")
        (self.etc / "haproxy/urgent.lst").write_text(digest(URGENT) + "\n")

    def tls(self):
        return ssl.create_default_context(cafile=self.ca)


class Host(Server):
    """A machine with execd. Its process 1 is execd itself."""

    # The control groups of one host must not be those of another, which has the same pids.
    SCRIPT = """
        hostname "$1"; mount --bind "$2" /etc
        for d in /run /var/log /var/lib /sys/fs/cgroup; do mount -t tmpfs tmpfs $d; done; mkdir -m 700 /var/log/execd
        exec "$3" -c /etc/execd/execd.conf"""

    def __init__(self, net, files, name):
        self.name, self.address = name, HOSTS[name]
        listeners = (files.etc / "execd/execd.conf").read_text().count("[listener ")
        self._start("root", ["nsenter", f"--net={net.machines[name].path}", "unshare", "-u", "-p", "-m", "--fork",
                             "--kill-child", "--mount-proc", "sh", "-ec", self.SCRIPT, "sh", name, str(files.etc),
                             str(EXECD)], None, listeners)
        self.pid = children_named(self.child.pid, "execd")[0]

    def audit(self):
        return pathlib.Path(f"/proc/{self.pid}/root/var/log/execd/audit.jsonl")

    def ctl(self, *words):
        r = subprocess.run(["nsenter", f"--target={self.pid}", "--mount", "--pid", str(EXECD), "ctl", *words],
                           capture_output=True, text=True, timeout=PATIENCE_S)
        assert r.returncode == 0, r
        return r.stdout

    def sessions(self):
        return len(json.loads(self.ctl("--json", "list"))["result"]["sessions"])

    def power_off(self):
        """Everything on it dies at once."""
        os.kill(self.pid, signal.SIGKILL)
        self.child.wait(PATIENCE_S)

    def stop(self):
        if self.child.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
            self.child.wait(PATIENCE_S)


class Balancer:
    """A machine with HAProxy."""

    SCRIPT = """
        mount --bind "$2" /etc; mount --bind "$4" /run
        exec "$3" -db -L "$1" -f /etc/haproxy/haproxy.cfg"""

    def __init__(self, net, files, name, run, before=()):
        self.name, self.address = name, BALANCERS[name]
        self.argv = [*before, "nsenter", f"--net={net.machines[name].path}", "unshare", "-m", "sh", "-ec", self.SCRIPT,
                     "sh", name, str(files.etc), HAPROXY, str(run)]
        self.log, self.socket = run / "log", run / "haproxy.sock"
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.child = subprocess.Popen(self.argv, stdout=log, stderr=log)
        poll(self.listens, what=f"{self.name}: {self.log.read_text()[-2000:]}")

    def listens(self):
        assert self.child.poll() is None, self.log.read_text()[-2000:]
        try:
            return "Uptime_sec" in self.ask("show info")
        except OSError:
            return False

    def ask(self, command):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(str(self.socket))
            s.sendall(command.encode() + b"\n")
            return b"".join(iter(lambda: s.recv(65536), b"")).decode()

    def servers(self, backend="hosts"):
        """The state of each host: UP, DOWN, DRAIN; MAINT."""
        rows = [line.split(",") for line in self.ask("show stat").splitlines() if line]
        head = rows[0]
        return {r[1]: dict(zip(head, r)) for r in rows if r[0] == backend and r[1] not in ("FRONTEND", "BACKEND")}

    def state(self, name, backend="hosts"):
        return self.servers(backend)[name]["status"]

    def wait_state(self, **wanted):
        """wait_state(a="UP", b="DRAIN")"""
        poll(lambda: all(self.state(n).startswith(w) for n, w in wanted.items()),
             what=f"{wanted} at {self.name}: {self.servers()}")

    def cut(self):
        """All connections at once."""
        for name in HOSTS:
            self.ask(f"shutdown sessions server hosts/{name}")

    def kill(self):
        self.child.kill()
        self.child.wait()

    def stop(self):
        if self.child.poll() is None:
            self.kill()


class Fleet:
    """What a test uses: hosts and balancers that are started, and clients."""

    def __init__(self, net, files, directory):
        self.net, self.files, self.directory = net, files, directory
        self.hosts, self.balancers, self.clients = {}, {}, []

    def start(self, *names):
        for name in names:
            self.hosts[name] = Host(self.net, self.files, name)
        return [self.hosts[n] for n in names]

    def balance(self, name="lb1", before=()):
        """Starts that balancer, and waits for the state of the hosts."""
        run = self.directory / name
        run.mkdir()
        b = self.balancers[name] = Balancer(self.net, self.files, name, run, before)
        b.wait_state(**{n: "UP" if n in self.hosts else "DOWN" for n in HOSTS})
        # Nobody has a table yet, so no client needs to wait for one. After start() they do.
        answer = b.ask("experimental-mode on; set var proc.started int(0)")
        assert answer.strip() == "", answer
        return b

    def url(self, balancer="lb1", port=8443):
        return f"wss://{BALANCERS[balancer]}:{port}"

    def connect(self, key=None, token=TOKEN, source=None, url=None, **params):
        """A client that is ready. With a key it finds its host again by ?k=, as an unmodified Codex does."""
        c = WebSocket(url or self.url(), tls=self.files.tls(), token=token, source=source,
                      path=f"/?k={key}" if key else "/")
        self.clients.append(c)
        return c.ready(**params)

    def execctl(self, url=None, token=TOKEN, **env):
        return Execctl(self.directory, url or self.url(), EXECD_TOKEN=token, SSL_CERT_FILE=str(self.files.ca), **env)

    def close(self):
        for c in self.clients:
            c.drop()
        for machine in *self.balancers.values(), *self.hosts.values():
            machine.stop()
