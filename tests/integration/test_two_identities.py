# SPDX-License-Identifier: ISC
"""Two users of one machine, each with an identity: what one cannot do to the
other's sessions, files, processes and sockets, with a sandbox and without
(doc/design.md section 2)."""
import os
import pathlib
import pwd
import subprocess

import pytest
from conftest import ROOT, assert_nothing_left, digest, need_sandbox
from test_ceiling import policy

OTHER = f"execd-o{os.getpid()}"

pytestmark = pytest.mark.skipif(not ROOT, reason="TWO USERS ARE NOT TESTED: this needs root")


@pytest.fixture(scope="module")
def other():
    subprocess.run(["useradd", "-m", "-s", "/bin/bash", OTHER], check=True)
    yield pwd.getpwnam(OTHER)
    assert_nothing_left(pwd.getpwnam(OTHER))
    subprocess.run(["userdel", "-r", OTHER], capture_output=True, check=True)


# What belongs to the first user and is nobody else's: a file, a secret in an
# environment and a command line, sockets by path and by name, a port, a
# terminal, a segment of shared memory.
VICTIM = """
import os, socket, sys, time
d = sys.argv[1]
u = socket.socket(socket.AF_UNIX); u.bind(d + "/sock"); u.listen()
a = socket.socket(socket.AF_UNIX); a.bind("\\0" + sys.argv[2]); a.listen()
t = socket.socket(); t.bind(("127.0.0.1", 0)); t.listen()
m = os.open("/dev/shm/" + sys.argv[2], os.O_CREAT | os.O_RDWR | os.O_EXCL, 0o600)
os.write(m, b"shared secret")
print("port", t.getsockname()[1], "tty", os.readlink("/proc/self/fd/1"), "re" + "ady", flush=True)
time.sleep(1000)
"""

# Each line: a way in, and a word if it leads anywhere.
ATTACK = r"""
exec 2>/dev/null
cat {d}/file && echo GOT-file
ls {d} | grep -q . && echo GOT-list
echo x > {d}/file && echo GOT-write
rm -rf {d} && [ ! -e {d} ] && echo GOT-remove
ln {d}/file {mine}/hard && echo GOT-link
cat /proc/[0-9]*/environ | tr '\0' '\n' | grep -q VICTIM_SECRET && echo GOT-environment
cat /proc/[0-9]*/cmdline | tr '\0' ' ' | grep -q "victim-argument[-]" && echo GOT-cmdline
for p in /proc/[0-9]*; do ls -l $p/cwd $p/fd | grep -q {d} && echo GOT-cwd; done
kill -9 {pid} && echo GOT-kill
for p in {pid} {runner}; do head -c 1 /proc/$p/mem && echo GOT-mem; cat /proc/$p/root/etc/hostname && echo GOT-root; done
cat {tty} & sleep 0; kill $! && echo x > {tty} && echo GOT-tty
cat /dev/shm/{name} && echo GOT-shm
rm -f /dev/shm/{name} && [ ! -e /dev/shm/{name} ] && [ -e {d}/.. ] && echo NO-shm
python3 - <<END && echo GOT-socket
import socket
socket.socket(socket.AF_UNIX).connect("{d}/sock")
END
sudo -n true && echo GOT-sudo
su {victim} -c true </dev/null && echo GOT-su
echo tried
"""

NETWORK = r"""
exec 2>/dev/null
python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect("\0{name}")' && echo GOT-abstract
python3 -c 'import socket; socket.create_connection(("127.0.0.1", {port}), 2)' && echo GOT-port
python3 -c 'import socket; socket.create_connection(("127.0.0.1", {execd}), 2)' && echo GOT-execd
echo tried
"""


class World:
    def __init__(self, s, victim, attacker, where, sandboxed):
        self.s, self.victim, self.attacker = s, victim, attacker
        self.name = f"execd-victim-{os.getpid()}"
        self.d, self.mine = where / "hers", where / "his"
        for path, user in ((self.d, victim), (self.mine, attacker)):
            path.mkdir(mode=0o700)
            os.chown(path, user.pw_uid, user.pw_gid)
        self.a, self.b = s.connect(token="tok-a").ready(), s.connect(token="tok-b").ready()
        hers = {"sandbox": policy(self.d, (self.d, "write"), network="enabled")} if sandboxed == "both" else {}
        self.how = {"cwd": f"file://{self.mine}", **({"sandbox": policy(self.mine, ("root", "write"))} if sandboxed else {})}
        (where / "victim.py").write_text(VICTIM)
        self.a.run_sh("file", f"umask 077; echo secret > {self.d}/file")
        m = self.a.start("v", ["/usr/bin/python3", str(where / "victim.py"), str(self.d), self.name, "victim-argument-"],
                         tty=True, env={"VICTIM_SECRET": "x", "PATH": "/usr/bin:/bin"}, cwd=f"file://{self.d}", **hers)
        assert "result" in m, m
        words = self.a.wait_output("v", "ready").decode().split()
        self.port, self.tty = words[1], words[3]
        self.runner = s.runner(self.a)
        self.pid = next(int(p.name) for p in pathlib.Path("/proc").iterdir() if p.name.isdigit() and
                        self.name.encode() in cmdline(p) and b"victim.py" in cmdline(p))

    def attack(self, script):
        from urllib.parse import urlsplit
        text = script.format(d=self.d, mine=self.mine, pid=self.pid, runner=self.runner, tty=self.tty, name=self.name,
                             port=self.port, execd=urlsplit(self.s.url).port, victim=self.victim.pw_name)
        r = self.b.run(f"attack{len(self.b.messages)}", ["/bin/bash", "-c", text], 60,
                       env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}, **self.how)
        lines = r.stdout.splitlines()
        assert lines[-1:] == ["tried"], (r.stdout, r.stderr)
        return [line for line in lines if line.startswith("GOT-")]

    def unharmed(self):
        assert self.a.run_sh(f"ok{len(self.a.messages)}", f"cat {self.d}/file").stdout == "secret\n"
        assert not self.a.events("v", "process/exited")
        assert self.a.terminate("v") is True


def cmdline(p):
    try:
        return (p / "cmdline").read_bytes()
    except OSError:
        return b""


def identity(name, user):
    return f"[identity {name}]\nuser = {user.pw_name}\ntoken-sha256 = {digest('tok-' + name)}\nsandbox-allow-unsandboxed = yes\n"


@pytest.fixture
def world(configured, mode, user, other, directory):
    made = []

    def make(sandboxed):
        if mode == "user":
            pytest.skip("an ordinary user is one user")
        if sandboxed:
            need_sandbox(mode, user)
        s = configured("[listener main]\naddress = ws://127.0.0.1:0\n" + identity("a", user) + identity("b", other) +
                       "[sandbox]\nmax-profile = full\nunix-sockets = allow\n")
        made.append(World(s, user, other, directory, sandboxed))
        return made[-1]

    yield make
    for w in made:
        subprocess.run(["rm", "-f", f"/dev/shm/{w.name}"], check=True)


@pytest.mark.parametrize("sandboxed", [None, "attacker", "both"])
def test_files_processes_and_sockets(world, sandboxed):
    w = world(sandboxed)
    assert w.attack(ATTACK) == []
    reached = w.attack(NETWORK)
    # Names and ports are the machine's: only a sandbox without a network keeps them away.
    assert reached == [] if sandboxed else "GOT-port" in reached
    w.unharmed()


@pytest.mark.parametrize("sandboxed", [None, "attacker"])
def test_file_methods(world, sandboxed):
    w = world(sandboxed)
    more = {"sandbox": w.how["sandbox"]} if sandboxed else {}
    file, hers = f"file://{w.d}/file", f"file://{w.d}"
    for method, params in (
            ("fs/readFile", {"path": file}), ("fs/writeFile", {"path": file, "dataBase64": "eA=="}),
            ("fs/readDirectory", {"path": hers}), ("fs/remove", {"path": hers, "recursive": True, "force": False}),
            ("fs/copy", {"sourcePath": file, "destinationPath": f"file://{w.mine}/copy", "recursive": False}),
            ("fs/createDirectory", {"path": f"{hers}/new", "recursive": False}),
            ("fs/readFile", {"path": f"file:///proc/{w.pid}/environ"}), ("fs/readFile", {"path": f"file:///dev/shm/{w.name}"})):
        m = w.b.request(method, {**params, **more})
        assert "error" in m, (method, m)
    w.unharmed()


def test_sessions(world):
    """Neither by its id nor by that of its processes, attached or not."""
    w = world(None)
    stranger = w.s.connect(token="tok-b")
    unknown = (-32600, f"unknown session id {w.a.session_id}")
    for how in ({"resumeSessionId": w.a.session_id}, {"watchSessionId": w.a.session_id}):
        assert stranger.error("initialize", {"clientName": "x", **how}) == unknown
    for method, params in (("process/read", {"processId": "v"}), ("process/terminate", {"processId": "v"}),
                           ("process/write", {"processId": "v", "chunk": "eA==", "writeId": "1"})):
        m = w.b.request(method, params)
        assert "error" in m or m["result"] in ({"running": False}, {"status": "unknownProcess"}), (method, m)
    id = w.a.session_id
    w.a.drop()
    w.s.wait_log("detached")
    assert stranger.error("initialize", {"clientName": "x", "resumeSessionId": id}) == unknown
    w.a = w.s.connect(token="tok-a").ready(resumeSessionId=id)
    w.unharmed()


def test_execd_itself(world):
    """Its programs, descriptors and sockets are out of reach from either session."""
    w = world(None)
    programs = w.s.pid, w.s.broker, w.s.frontend()
    r = w.b.run_sh("x", "exec 2>/dev/null; " + "".join(f"kill -0 {p} && echo GOT; ls /proc/{p} && echo GOT; " for p in programs) +
                   f"cat {w.s.path}; echo tried")
    assert "GOT" not in r.stdout and r.stdout.endswith("tried\n")
    w.unharmed()
