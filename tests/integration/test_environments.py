# SPDX-License-Identifier: ISC
"""A listener of loopback TCP with `auth = peer-user`: the kernel says who has made the client's socket. A forwarder of
the Agents API comes in by it; each environment has a user of its own, and a forwarder with a user of its own."""
import contextlib
import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import subprocess

import pytest
from conftest import BUILD, EXECD, ROOT, as_user, configured, digest, poll  # noqa: F401
from test_listeners import activate
from test_two_identities import OTHER, other  # noqa: F401
from execd_client import Closed, upgrade

STRANGER = "the client is not known here"
# Users of every Debian. The first two are forwarders.
MINE, HIS, NOBODYS = ("games", "news", "uucp") if ROOT else [pwd.getpwuid(os.getuid()).pw_name] * 3
root_alone = pytest.mark.skipif(not ROOT, reason="OTHER USERS ARE NOT TESTED: this needs root")


@contextlib.contextmanager
def being(name):
    """Sockets that are made here are that user's."""
    if not ROOT:
        yield
        return
    os.seteuid(pwd.getpwnam(name).pw_uid)
    try:
        yield
    finally:
        os.seteuid(0)


def environment(name, user, forwarder, more=""):
    return (f"[identity {name}]\nuser = {user.pw_name}\nsandbox-allow-unsandboxed = yes\n"
            f"peer-user = {forwarder}\n{more}")


def listener(address="ws://127.0.0.1:0", more=""):
    return f"[listener agents]\naddress = {address}\nauth = peer-user\n{more}"


def come(server, name=MINE, **more):
    with being(name):
        return server.connect(**more)


RELAY = """
import socket, sys, threading
def copy(a, b):
    try:
        while data := a.recv(65536):
            b.sendall(data)
    except OSError:
        pass
    for s in a, b:
        try: s.shutdown(socket.SHUT_RDWR)
        except OSError: pass
with socket.create_server(("127.0.0.1", 0)) as l:
    print(l.getsockname()[1], flush=True)
    while True:
        a = l.accept()[0]
        b = socket.create_connection((sys.argv[1], int(sys.argv[2])))
        for x, y in ((a, b), (b, a)):
            threading.Thread(target=copy, args=(x, y), daemon=True).start()
"""


class Forwarder:
    """Brings each connection to execd as a new one of its own, as `codex exec-server forward` does; without Noise."""

    def __init__(self, name, url):
        host, port = url[len("ws://"):].rsplit(":", 1)
        as_name = ["setpriv", f"--reuid={name}", "--clear-groups"] if ROOT else []
        self.child = subprocess.Popen([*as_name, "/usr/bin/python3", "-c", RELAY, host, port], stdout=subprocess.PIPE)
        self.url = f"ws://127.0.0.1:{int(self.child.stdout.readline())}"

    def end(self):
        self.child.kill()
        self.child.wait()
        self.child.stdout.close()


@pytest.fixture
def forwarder():
    started = []

    def start(name, url):
        started.append(Forwarder(name, url))
        return started[-1]

    yield start
    for f in started:
        f.end()


def audited(directory):
    with open(f"{directory}/log", encoding="utf-8") as f:
        return [r for r in map(json.loads, f) if r["event"] in ("granted", "refused")]


def test_who_comes_in(configured, user, directory):  # noqa: F811
    s = configured(listener() + environment("one", user, MINE, f"token-sha256 = {digest('t')}\n") +
                   f"[audit]\nfile = {directory}/log\n")
    c = come(s).ready()
    assert c.run("x", ["/usr/bin/id", "-u"]).stdout == f"{user.pw_uid}\n"
    # A header changes nothing, whatever is in it.
    come(s, token="wrong").ready()
    if ROOT:
        for who in "root", NOBODYS, user.pw_name, "nobody":
            with pytest.raises(Closed, match="401"):
                come(s, who, token="t")
    records = audited(directory)
    assert [r["event"] for r in records] == ["granted"] * 2 + ["refused"] * (4 if ROOT else 0)
    assert records[0]["by"] == "peer user" and records[0]["listener"] == "agents"
    assert records[0]["peer"].startswith("websocket 127.0.0.1:") and records[0]["peer"].endswith(f" of {MINE}, listener agents")
    assert {r.get("reason") for r in records[2:]} <= {STRANGER}


@pytest.mark.skipif(not os.path.exists("/proc/net/if_inet6"), reason="NO IPv6: this host has none")
def test_both_families(configured, user):  # noqa: F811
    s = configured(listener("ws://[::1]:0") + environment("one", user, MINE))
    come(s).ready()
    if ROOT:
        with pytest.raises(Closed, match="401"):
            come(s, NOBODYS)
    s = configured(listener() + environment("one", user, MINE))
    with being(MINE), socket.socket(socket.AF_INET6) as mapped:
        mapped.connect(("::ffff:127.0.0.1", int(s.url.rsplit(":", 1)[1])))
        mapped.sendall(upgrade())
        assert mapped.recv(4096).startswith(b"HTTP/1.1 101 ")


@pytest.mark.parametrize("how", ["close", "half", "reset"])
def test_who_has_gone_is_nobody(configured, user, directory, how):  # noqa: F811
    """Its bytes are there; for its user the kernel answers 0 then, which is root."""
    s = configured(listener() + environment("one", user, MINE) + f"[audit]\nfile = {directory}/log\n")
    s.wait_log(": serving")
    os.kill(s.broker, signal.SIGSTOP)
    with being(MINE):
        gone = socket.create_connection(("127.0.0.1", int(s.url.rsplit(":", 1)[1])))
    gone.sendall(upgrade())
    poll(lambda: has_read(gone), what="reader in the front-end")
    if how == "half":
        gone.shutdown(socket.SHUT_WR)
    elif how == "reset":
        gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0" + bytes(4))
    if how != "half":
        gone.close()
    os.kill(s.broker, signal.SIGCONT)
    s.wait_log("its user is not known: it has closed the connection")
    poll(lambda: [r["event"] for r in audited(directory)] == ["refused"], what="record")
    gone.close()
    come(s).ready()
    assert "killed" not in s.log, s.log


def has_read(sock):
    """Whether all that was sent has arrived (the sender's first queue) and was read (the receiver's second)."""
    mine, its = (f":{at[1]:04X}" for at in (sock.getsockname(), sock.getpeername()))
    queues = {}
    for line in open("/proc/net/tcp").read().splitlines()[1:]:
        local, remote, _, sizes = line.split()[1:5]
        if {local[-5:], remote[-5:]} == {mine, its}:
            queues[local[-5:]] = [int(size, 16) for size in sizes.split(":")]
    return queues[mine][0] == 0 and queues[its][1] == 0


GOOD = "[identity one]\nuser = {user}\npeer-user = {mine}\n"


@pytest.mark.parametrize("text, words", [
    (listener("ws://0.0.0.0:0") + GOOD, "is for unix:/PATH, and for ws:// with a loopback address"),
    (listener("ws://[::]:0") + GOOD, "is for unix:/PATH, and for ws:// with a loopback address"),
    (listener("ws://[::ffff:127.0.0.1]:0") + GOOD, "is for unix:/PATH, and for ws:// with a loopback address"),
    (listener("ws://192.0.2.1:0") + GOOD, "is for unix:/PATH, and for ws:// with a loopback address"),
    (listener("wss://127.0.0.1:0") + GOOD, "is for unix:/PATH, and for ws:// with a loopback address"),
    (listener(more="trusted-proxy = 127.0.0.1\n") + GOOD, "auth = peer-user and trusted-proxy exclude each other"),
    (listener(more="allow-unauthenticated = one\n") + GOOD, "auth = peer-user and allow-unauthenticated exclude each other"),
    (listener("tcp://127.0.0.1:0", "serve = agent\n") + GOOD, "the section may have no key about them"),
    (listener().replace("peer-user", "peer") + GOOD, "`peer` is neither credential nor peer-user"),
    (listener() + "[identity one]\nuser = {user}\n", "auth = peer-user: no identity has a peer-user"),
    (listener() + GOOD.replace("{mine}", "root"), "root is nobody whom a listener with auth = peer-user lets in"),
    (listener() + GOOD.replace("{mine}", "nobody"), "nobody is nobody whom a listener with auth = peer-user lets in"),
])
def test_refused(mode, user, directory, text, words):
    path = directory / "execd.conf"
    path.write_text(text.format(user=user.pw_name, mine=MINE))
    argv = [str(EXECD), "-t", "-c", str(path)]
    r = subprocess.run(argv if mode == "root" else as_user(user, argv), capture_output=True, text=True)
    assert r.returncode == 3 and words in r.stderr, r


@root_alone
def test_who_runs_commands_is_let_in_as_nobody_else(user, other, directory):  # noqa: F811
    """Not as another identity; as its own he may come, and another listener does not mind."""
    path = directory / "execd.conf"
    mixed = environment("one", user, other.pw_name) + environment("two", other, HIS)

    def check(text):
        path.write_text(text)
        r = subprocess.run([str(EXECD), "-t", "-c", str(path)], capture_output=True, text=True)
        return r.returncode, r.stderr
    code, said = check(listener() + mixed)
    assert code == 3 and f"{OTHER} runs the commands of [identity two], which would come in" in said
    for text in (listener(more="identities = two\n") + mixed, f"[listener l]\naddress = unix:{directory}/s\n" + mixed,
                 listener() + environment("one", user, user.pw_name) + environment("two", other, other.pw_name)):
        assert check(text)[0] == 0, check(text)


def test_a_socket_of_systemd(mode, user, directory):
    """Where it leads, execd finds out when it has it."""
    (directory / "execd.conf").write_text(listener("systemd:x") + environment("one", user, MINE))
    for address, code in ("0.0.0.0", 3), ("127.0.0.1", 0):
        with socket.create_server((address, 0)) as s:
            child = activate(mode, user, [s], ["x"], ["-c", str(directory / "execd.conf")])
            if code == 0:
                assert child.stdout.readline() == f"ws://127.0.0.1:{s.getsockname()[1]}\n"
                child.terminate()
            assert child.wait(15) == code
            said = child.stderr.read()
            assert code == 0 or "needs a loopback address, and systemd's socket has ws://0.0.0.0:" in said, said


def test_a_reload(configured, user):  # noqa: F811
    """The next front-end asks, and a listener that asked lets others in again."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"ws://127.0.0.1:{free.getsockname()[1]}"
    who = environment("one", user, MINE, f"token-sha256 = {digest('t')}\n")
    s = configured(listener(url).replace("auth = peer-user\n", "") + who)
    with pytest.raises(Closed, match="401"):
        s.connect()
    s.reload(listener(url) + who, "auth")
    poll(lambda: comes_in(s), what="the listener of the reload")
    if ROOT:
        with pytest.raises(Closed, match="401"):
            s.connect(token="t")


def comes_in(server):
    try:
        return come(server).ready()
    except (Closed, ConnectionError):
        return None


def test_a_unix_socket(configured, user, directory):  # noqa: F811
    """The user alone counts there, too."""
    s = configured(listener(f"unix:{directory}/sock", "mode = 0666\n") +
                   environment("one", user, MINE, f"token-sha256 = {digest('t')}\n"))
    c = come(s, token="wrong").ready()
    assert c.run("x", ["/usr/bin/id", "-u"]).stdout == f"{user.pw_uid}\n"
    if ROOT:
        with pytest.raises(Closed, match="401"):
            s.connect(token="t")


# --- environments -----------------------------------------------------------

GET_IN = """
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
s.sendall(sys.argv[2].encode().replace(b"|", b"\\r\\n"))
print(s.recv(4096).split(b"\\r\\n")[0].decode(), s.getsockname()[1])
"""


@root_alone
def test_two_environments(mode, configured, user, other, directory, forwarder):  # noqa: F811
    """Neither reads the other's files, nor reaches the other's sessions: not by the port, not by a forwarder that
    comes again for the other's session."""
    if mode == "user":
        pytest.skip("TWO USERS ARE NOT TESTED: this needs root")
    s = configured(listener() + environment("one", user, MINE) + environment("two", other, HIS) +
                   f"[control]\nctl-socket = {directory}/ctl\n")
    one, two = forwarder(MINE, s.url), forwarder(HIS, s.url)
    a, b = s.connect(one.url).ready(), s.connect(two.url).ready()
    port = s.url.rsplit(":", 1)[1]
    for c, mine, his in (a, user, other), (b, other, user):
        for who in user, other:
            path = directory / f"file-{who.pw_name}"
            path.write_text("secret\n")
            os.chown(path, who.pw_uid, who.pw_gid)
            path.chmod(0o600)
        said = c.run_sh("f", f"id -un; cat {directory}/file-{mine.pw_name}; cat {directory}/file-{his.pw_name} 2>&1").stdout
        assert said.splitlines()[:2] == [mine.pw_name, "secret"] and "Permission denied" in said
        got = c.run("g", ["/usr/bin/python3", "-c", GET_IN, port, upgrade().decode().replace("\r\n", "|")]).stdout
        assert got.startswith("HTTP/1.1 401 "), got
    r = subprocess.run([EXECD, "ctl", "--socket", f"{directory}/ctl", "list"], capture_output=True, text=True)
    assert f" of {MINE}, listener agents" in r.stdout and f" of {HIS}, listener agents" in r.stdout, r
    a.drop()
    s.wait_log(f"session {a.session_id[:8]}: detached")
    thief = s.connect(two.url)
    assert thief.error("initialize", {"clientName": "x", "resumeSessionId": a.session_id})[1] == \
        f"unknown session id {a.session_id}"
    assert s.connect(one.url).ready(resumeSessionId=a.session_id).session_id == a.session_id


def test_whatever_dies_nothing_is_lost(configured, user, forwarder):  # noqa: F811
    """A command of which a part came before, and the rest after: each line once."""
    s = configured(listener() + environment("one", user, MINE))
    f = forwarder(MINE, s.url)
    c = s.connect(f.url).ready()
    c.sh("p", "for i in 1 2 3 4; do echo before $i; read x; done; echo END", pipeStdin=True)
    for i, dies in enumerate(("front-end", "broker", "forwarder"), 1):
        c.wait_output("p", f"before {i}\n")
        had = c.output("p", "stdout")
        if dies == "forwarder":
            f.end()
            f = forwarder(MINE, s.url)
        else:
            os.kill(s.frontend() if dies == "front-end" else s.broker, signal.SIGKILL)
        c.wait_closed()
        before, c = c, poll(lambda: resumed(s, f.url, c.session_id), what="the session again")
        read = c.call("process/read", {"processId": "p", "afterSeq": None, "maxBytes": None, "waitMs": 0})
        assert [e["seq"] for e in read["chunks"]] == list(range(1, i + 1)), (dies, read, had)
        c.messages = before.messages + c.messages
        c.write("p", "\n", f"w-{dies}")
    c.wait_output("p", "before 4\n")
    c.write("p", "\n", "w-last")
    c.finished("p")
    assert c.exited("p")["exitCode"] == 0


def resumed(server, url, session):
    try:
        return server.connect(url).ready(resumeSessionId=session)
    except (Closed, ConnectionError, AssertionError):
        return None


# --- execd-environment@.service ---------------------------------------------

UNITS = pathlib.Path(__file__).parents[2] / "contrib/systemd"
FORWARD = """#!/bin/sh
exec >"$0.said"
for word; do echo "$word"; done
env
read line; echo "input $line"
"""


def test_the_unit_s_program(directory):
    """Its words are those of the file; the key is nowhere that another user could see it."""
    text = (UNITS / "execd-environment@.service").read_text()
    script = re.search(r"^ExecStart=/bin/sh -c '(.*)'$", text, re.M)[1].replace("$$", "$")
    codex = directory / "codex"
    codex.write_text(FORWARD)
    codex.chmod(0o755)
    (directory / "key").write_text("sk-secret\n")
    env = {"PATH": f"{directory}:/usr/bin:/bin", "REMOTE": "https://x.example/a b", "ENVIRONMENT_ID": "env_1",
           "CONNECT": "ws://127.0.0.1:8767", "CREDENTIALS_DIRECTORY": str(directory)}
    subprocess.run(["/bin/sh", "-c", script], env=env, check=True)
    *said, last = (directory / "codex.said").read_text().splitlines()
    assert said[:9] == ["exec-server", "forward", "--remote", "https://x.example/a b", "--environment-id", "env_1",
                        "--connect", "ws://127.0.0.1:8767", "--registration-bearer-stdin"]
    assert "sk-secret" not in "\n".join(said) and last == "input sk-secret"


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="UNITS ARE NOT VERIFIED: systemd is not here")
def test_the_units_are_what_systemd_knows(directory):
    for unit in (UNITS / "execd-environment@.service", *(BUILD / "contrib/systemd").glob("*.service"), *UNITS.glob("*.socket")):
        text = re.sub(r"(?m)^(Exec\w+=\W?)/\S+", r"\1/bin/true", unit.read_text())
        (directory / unit.name).write_text(re.sub(r"(?m)^User=.*", "User=root", text))
    r = subprocess.run(["systemd-analyze", "verify", "--man=no", f"{directory}/execd-environment@one.service"],
                       env={"SYSTEMD_UNIT_PATH": f"{directory}:", "PATH": os.environ["PATH"]}, capture_output=True, text=True)
    assert r.returncode == 0 and "execd" not in r.stderr, r.stderr
