# SPDX-License-Identifier: ISC
"""Starts and stops the servers that are measured; everything is stopped by its pid."""
import contextlib
import json
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import tree

ROOT = os.geteuid() == 0
BUILD = pathlib.Path(os.environ.get("EXECD_BUILD", "build-bench")).resolve()
LOAD = BUILD / "bench/load"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "execd-peer"
CODEX = "node_modules/@openai/codex-*/vendor/*/bin/codex"
CODEX_VERSION = "0.169.0"
SSHD_PACKAGES = ("openssh-server", "libwrap0")
STARTED_SECONDS = 20
STOPPED_SECONDS = 120  # with thousands of sessions


class Unavailable(Exception):
    """A server that cannot be measured here, and why."""


def codex_program():
    """The path of codex, of the cache that tests/codex uses; installed with npm when it is not there."""
    if os.environ.get("CODEX_BIN"):
        return pathlib.Path(os.environ["CODEX_BIN"])
    if not list(CACHE.glob(CODEX)):
        if shutil.which("npm") is None:
            raise Unavailable("codex is not installed, and npm, which installs it, is not there")
        CACHE.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(["npm", "install", "--prefix", CACHE, "--no-audit", "--no-fund", "--loglevel=error",
                               f"@openai/codex@{CODEX_VERSION}"], stdout=sys.stderr)
        if done.returncode != 0:
            raise Unavailable(f"npm install @openai/codex@{CODEX_VERSION} ended with status {done.returncode}")
    return next(CACHE.glob(CODEX))


def sshd_program():
    """sshd as it is installed, or unpacked from its package into the cache; the machine is not changed."""
    unpacked = CACHE / "openssh/usr/sbin/sshd"
    for path in (shutil.which("sshd"), "/usr/sbin/sshd", unpacked):
        if path and pathlib.Path(path).exists():
            return pathlib.Path(path)
    if shutil.which("ssh") is None or shutil.which("apt-get") is None:
        raise Unavailable("sshd, or ssh, is not installed")
    with tempfile.TemporaryDirectory() as at:
        got = subprocess.run(["apt-get", "-q", "download", *SSHD_PACKAGES], cwd=at, capture_output=True, text=True)
        if got.returncode != 0:
            raise Unavailable(f"apt-get download {' '.join(SSHD_PACKAGES)}: {got.stderr.strip()}")
        for package in pathlib.Path(at).glob("*.deb"):
            subprocess.run(["dpkg", "-x", package, CACHE / "openssh"], check=True)
    return unpacked


@contextlib.contextmanager
def ordinary_user():
    """Whom commands run as: a user made for this run, or who started it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what was made is removed
    if not ROOT:
        yield pwd.getpwuid(os.getuid())
        return
    name = f"execd-b{os.getpid()}"
    subprocess.run(["useradd", "-m", "-s", "/bin/sh", "-p", "*", name], check=True)
    try:
        yield pwd.getpwnam(name)
    finally:
        subprocess.run(["userdel", "-r", name], capture_output=True)


class Bench:
    """What a run needs: the user, and a directory of his that everybody can see."""

    def __init__(self, user, directory):
        self.user = user
        self.directory = pathlib.Path(directory)
        self.workspace = self.directory / "workspace"
        self.workspace.mkdir()
        os.chmod(self.directory, 0o755)
        os.chmod(self.workspace, 0o777)
        self._programs = {}

    def as_user(self, argv):
        if not ROOT:
            return argv
        u = self.user
        return ["setpriv", f"--reuid={u.pw_uid}", f"--regid={u.pw_gid}", "--init-groups", *argv]

    def program(self, name):
        """A program that the user can reach, who may not look into root's cache."""
        if name not in self._programs:
            path = {"codex": codex_program, "sshd": sshd_program}[name]()
            if ROOT and str(path).startswith(str(CACHE)):
                # codex looks for its helpers beside itself.
                source = path.parent.parent if name == "codex" else CACHE / "openssh"
                target = self.directory / name
                shutil.copytree(source, target, symlinks=True)
                path = target / path.relative_to(source)
            self._programs[name] = path
        return self._programs[name]


class Server:
    """One server, started for one test. `pid` is the root of its tree, `url` what it listens on."""

    def __init__(self, bench, argv, env=None):
        self.home = pathlib.Path(tempfile.mkdtemp(dir=bench.directory))
        if ROOT:
            os.chown(self.home, bench.user.pw_uid, bench.user.pw_gid)
        self.log = open(self.home / "log", "w+")
        self.child = subprocess.Popen(argv, env=env and {**os.environ, **env}, cwd="/", stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=self.log)
        self.pid = self.child.pid

    def wait_url(self):
        """Both execd and codex print it when they listen."""
        self.url = self.child.stdout.readline().decode().strip()
        if not self.url.startswith("ws"):
            raise Unavailable(f"the server does not start: {self.said()}")
        return self

    def said(self):
        self.log.seek(0)
        return self.log.read()[-600:].strip()

    def stop(self):
        pids = list(tree.below(self.pid))
        self.child.send_signal(signal.SIGTERM)
        try:
            self.child.wait(STOPPED_SECONDS)
        except subprocess.TimeoutExpired:
            print(f"bench: server {self.pid} did not end at SIGTERM within {STOPPED_SECONDS} s", file=sys.stderr)
        if self.child.poll() is None:
            for pid in pids:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            self.child.wait()
        self.child.stdout.close()
        self.log.close()


def start_execd(bench, mode=None, *flags, wrap=()):
    """mode: root, or user; whichever the caller can be."""
    argv = [str(BUILD / "daemon/root/execd"), "--listen", "ws://127.0.0.1:0", *flags]
    if (mode or ("root" if ROOT else "user")) == "root":
        argv += ["--user", bench.user.pw_name, "--allow-unauthenticated"]
    else:
        argv = bench.as_user(argv)
    return Server(bench, [*wrap, *argv], {"HOME": bench.user.pw_dir}).wait_url()


def missing_layers(bench, mode):
    """What execd doctor finds missing on this host for a sandbox."""
    argv = [str(BUILD / "daemon/root/execd"), "doctor"]
    argv = argv + ["--user", bench.user.pw_name] if mode == "root" else bench.as_user(argv)
    out = subprocess.run(argv, capture_output=True, text=True).stdout
    return [line for line in out.splitlines() if line.startswith("MISSING")]


def start_codex(bench):
    home = tempfile.mkdtemp(dir=bench.directory)
    if ROOT:
        os.chown(home, bench.user.pw_uid, bench.user.pw_gid)
    argv = [str(bench.program("codex")), "exec-server", "--listen", "ws://127.0.0.1:0"]
    return Server(bench, bench.as_user(argv), {"HOME": home, "CODEX_HOME": home}).wait_url()


# --- TLS beside ssh -------------------------------------------------------

TLS_CONFIG = """\
[listener tls]
address = wss://127.0.0.1:0
certificate = {at}/cert.pem
certificate-key = {at}/key.pem
allow-unauthenticated = bench

[identity bench]
user = {user}
sandbox-allow-unsandboxed = yes
"""


def start_execd_tls(bench):
    at = pathlib.Path(tempfile.mkdtemp(dir=bench.directory))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
                    "2", "-subj", "/CN=bench", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", at / "key.pem",
                    "-out", at / "cert.pem"], check=True, capture_output=True)
    (at / "execd.conf").write_text(TLS_CONFIG.format(at=at, user=bench.user.pw_name))
    if ROOT:
        for path in (at, *at.iterdir()):
            os.chown(path, 0, 0)
    server = Server(bench, [str(BUILD / "daemon/root/execd"), "-c", str(at / "execd.conf")]).wait_url()
    server.certificate = at / "cert.pem"
    return server


SSHD_CONFIG = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {at}/host
AuthorizedKeysFile {at}/user.pub
StrictModes no
UsePAM no
PidFile none
PasswordAuthentication no
KbdInteractiveAuthentication no
LogLevel ERROR
"""


def _free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


def start_sshd(bench):
    """The user's own sshd, so that the machine needs no user and no directory for it."""
    at = pathlib.Path(tempfile.mkdtemp(dir=bench.directory))
    for key in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", at / key], check=True)
    port = _free_port()
    (at / "config").write_text(SSHD_CONFIG.format(port=port, at=at))
    if ROOT:
        for path in (at, *at.iterdir()):
            os.chown(path, bench.user.pw_uid, bench.user.pw_gid)
    sshd = bench.program("sshd")
    libraries = ":".join(str(d) for d in sshd.parents[2].glob("usr/lib/*-linux-gnu")) if sshd.parents[2].name else ""
    server = Server(bench, bench.as_user([str(sshd), "-D", "-e", "-f", str(at / "config")]),
                    {"LD_LIBRARY_PATH": libraries} if libraries else None)
    server.ssh = ["ssh", "-F", "none", "-i", str(at / "user"), "-p", str(port), "-o", "BatchMode=yes", "-o",
                  "UserKnownHostsFile=/dev/null", "-o", "StrictHostKeyChecking=no", "-o", "LogLevel=ERROR", "-o",
                  f"ControlPath={at}/control", "-c", "aes128-gcm@openssh.com"]
    server.destination = f"{bench.user.pw_name}@127.0.0.1"
    end = time.monotonic() + STARTED_SECONDS
    while subprocess.run([*server.ssh, "-M", "-f", "-N", server.destination], capture_output=True).returncode != 0:
        if server.child.poll() is not None or time.monotonic() > end:
            raise Unavailable(f"sshd does not start: {server.said()}")
        time.sleep(.05)
    return server


# --- The load client ------------------------------------------------------

class LoadFailed(Exception):
    """What the load client said when it gave up, and the figures it had until then."""

    def __init__(self, said, figures=None):
        super().__init__(said)
        self.figures = figures or {}


def run_load(server, args, moments=None):
    """Runs the client; moments: {name or prefix: function(name)}, called while the client waits. Returns its figures."""
    argv = [str(LOAD), args[0], "--url", server.url, "--controlled", *map(str, args[1:])]
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said = []
    try:
        for line in child.stderr:
            if not line.startswith("at "):
                said.append(line.strip())
                continue
            name = line[3:].strip()
            function = (moments or {}).get(name.split()[0])
            if function:
                function(name)
            child.stdin.write("\n")
            child.stdin.flush()
        out = child.stdout.read()
        child.wait()
    finally:
        child.kill()
    if child.wait() != 0 or not out:
        figures = json.loads(out + "}") if out.startswith("{") else {}
        raise LoadFailed("; ".join(said) or f"load ended with status {child.returncode}", figures)
    return json.loads(out)
