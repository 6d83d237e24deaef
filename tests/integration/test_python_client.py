# SPDX-License-Identifier: ISC
"""The client for Python (client/python, doc/python.md) against real servers: commands, files, ports, sessions, and every
way in which a connection ends."""
import asyncio
import base64
import contextlib
import hashlib
import os
import pathlib
import random
import re
import socket
import subprocess
import sys
import threading

import pytest
from certificates import Authority
from clients import (ECHO, FILE_LIES, LIES, LINES, REFUSED, Liar, cut_somewhere, ends, expected, make_tree, out,
                     own_environment, proxy, start_and, tree, web, write)  # noqa: F401
from conftest import digest, poll
from execctl import Execctl, Proxy, environment

TREE = pathlib.Path(__file__).parents[2]
CLIENT = TREE / "client/python"
sys.path.insert(0, str(CLIENT))
try:
    import websockets  # noqa: F401
except ImportError:
    pytest.skip("THE CLIENT FOR PYTHON IS NOT TESTED: python3-websockets is missing", allow_module_level=True)
import execd  # noqa: E402
import execd.aio  # noqa: E402


@pytest.fixture
def box(server):
    with execd.connect(server.url) as box:
        yield box


# --- commands -----------------------------------------------------------------


def test_the_first_lines(server, sandboxes, directory, monkeypatch):
    monkeypatch.setenv("EXECD_URL", server.url)
    with execd.connect() as box:
        r = box.run("echo hi >file; cat file; echo err >&2; touch /usr/x || exit 7", cwd=directory, sandbox="workspace-write")
    assert (r.stdout, r.exit_code, r.sandbox_denied, r.sandbox_type) == ("hi\n", 7, True, "linuxSeccomp")
    assert r.stderr.startswith("err\n") and (directory / "file").read_text() == "hi\n"


@pytest.mark.parametrize("wait", [False, True], ids=["pushed", "asked"])
@pytest.mark.parametrize("script, code, out, err", [
    ("echo out; echo err >&2; exit 3", 3, b"out\n", b"err\n"),
    ("kill -9 $$", 137, b"", b""),
    ("printf '\\0\\377'", 0, b"\0\xff", b""),
    ("seq 1 50000", 0, "".join(f"{i}\n" for i in range(1, 50001)).encode(), b""),
    ("head -c 9000000 /dev/zero", 0, bytes(9000000), b""),
], ids=["short", "killed", "binary", "lines", "large"])
def test_commands(box, script, code, out, err, wait):
    r = box.run(script, wait_output=wait)
    assert (r.exit_code, r.stdout_bytes, r.stderr_bytes) == (code, out, err)


def test_how_it_ended(box, directory):
    r = box.run("kill -TERM $$", wait_output=True)
    assert (r.exit_code, r.signal) == (143, "TERM")
    r = box.run("sleep 100", timeout=0.2)
    assert r.timed_out and r.exit_code == 137
    r = box.run(["/usr/bin/env"], env={"A": "ü b"}, inherit="none")
    assert r.stdout == "A=ü b\n"
    assert box.run("pwd", cwd=directory).stdout == f"{directory}\n"
    with pytest.raises(execd.CommandFailed) as e:
        box.run("echo why >&2; exit 9", check=True)
    assert e.value.result.exit_code == 9 and "why" in str(e.value)
    with pytest.raises(execd.LimitExceeded) as e:
        box.run("head -c 100000 /dev/zero", max_output=1000)
    assert e.value.limit == 1000


def test_input(box):
    data = random.Random(1).randbytes(3 << 20)
    assert box.run("cat", input=data).stdout_bytes == data
    assert box.run("head -c 1", input=data).stdout_bytes == data[:1]
    p = box.start("read a; echo got $a; cat", stdin=True)
    p.write("one\n")
    assert next(p) == execd.Output("stdout", b"got one\n")
    p.close_stdin()
    assert list(p) == [] and p.wait().exit_code == 0
    with pytest.raises(execd.StdinClosed):
        p.write("more")


def test_a_terminal_and_signals(box):
    p = box.start("stty size; trap 'stty size' WINCH; trap 'echo usr; exit 4' USR1; echo ready; "
                  "while :; do read a || :; done", tty=(40, 132))
    seen = ""

    def until(text):
        nonlocal seen
        while text not in seen:
            o = next(p)
            assert o.stream == "terminal"
            seen += o.data.decode()

    until("40 132\r\nready\r\n")
    p.resize(50, 99)
    until("50 99")
    p.signal("SIGUSR1")
    until("usr")
    assert p.wait().exit_code == 4
    p = box.start(["sleep", "100"])
    p.signal("INT")
    assert p.wait().exit_code == 130
    p = box.start("trap 'exit 6' TERM; echo ready; while :; do sleep 0.05; done")
    assert next(p).data == b"ready\n"
    p.terminate(grace=30)
    assert p.wait().exit_code == 6


def test_wait_does_not_hang_for_output_that_nobody_reads(box):
    p = box.start("head -c 3000000 /dev/zero", wait_output=True)
    with pytest.raises(execd.OutputUnread):
        p.wait()
    assert sum(len(o.data) for o in p) == 3000000 and p.wait().exit_code == 0
    p = box.start("head -c 30000000 /dev/zero")
    with pytest.raises(execd.OutputUnread):
        p.wait()
    assert box.run("echo the connection is not stuck").exit_code == 0
    assert sum(len(o.data) for o in p) == 30000000 and p.wait().exit_code == 0


def test_errors_are_typed(box, directory):
    with pytest.raises(execd.StartFailed) as e:
        box.run(["/no/such"])
    assert (e.value.kind, e.value.errno, e.value.code) == ("spawnNotFound", 2, -32603)
    assert str(e.value) == f"/no/such in {box.home}: No such file or directory (os error 2)"
    with pytest.raises(execd.NotFound) as e:
        box.files.read("/no/such")
    assert (e.value.text, str(e.value)) == (text := "No such file or directory (os error 2)", f"/no/such: {text}")
    with pytest.raises(execd.Refused):
        box.files.read(directory)
    with pytest.raises(execd.OperatingSystemError):
        box.files.mkdir(directory, parents=False)


def test_an_operators_limit_is_named(configured, user, directory):
    s = configured(f"[listener a]\naddress = ws://127.0.0.1:0\n[limits]\nmax-kept-sessions = 1\n[identity ci]\n"
                   f"user = {user.pw_name}\nsandbox-max-profile = workspace-write\ntoken-sha256 = {digest('tok')}\n")
    with execd.connect(s.url, "tok") as one, execd.connect(s.url, "tok") as two:
        one.keep(60)
        with pytest.raises(execd.Refused) as e:
            two.keep(60)
        assert (e.value.key, e.value.value, e.value.place, e.value.limit) == ("max-kept-sessions", "1", "[limits]", 1)
        with pytest.raises(execd.SandboxRefused) as e:
            two.run("true")
        assert e.value.key and e.value.place == "[identity ci]", e.value
        one.end()


WRONG = [
    (TypeError, lambda b: b.run(3)), (TypeError, lambda b: b.run(["a", 3])), (ValueError, lambda b: b.run([])),
    (ValueError, lambda b: b.run("a\0b")), (ValueError, lambda b: b.run("a\ud800")), (TypeError, lambda b: b.run("a", cwd=3)),
    (TypeError, lambda b: b.run("a", env={"A": 1})), (ValueError, lambda b: b.run("a", env={"A=": "1"})),
    (TypeError, lambda b: b.run("a", env="A=1")), (ValueError, lambda b: b.run("a", sandbox="none")),
    (TypeError, lambda b: b.run("a", sandbox=True)), (ValueError, lambda b: b.run("a", network=True)),
    (TypeError, lambda b: b.run("a", timeout="1s")), (ValueError, lambda b: b.run("a", timeout=-1)),
    (TypeError, lambda b: b.run("a", timeout=True)), (TypeError, lambda b: b.run("a", input=3)),
    (TypeError, lambda b: b.run("a", check=1)), (TypeError, lambda b: b.run("a", tty=1)),
    (ValueError, lambda b: b.run("a", tty=(0, 80))), (ValueError, lambda b: b.run("a", inherit="some")),
    (TypeError, lambda b: b.run("a", allow_hosts="example.org")), (TypeError, lambda b: b.start("a", stdin="x")),
    (TypeError, lambda b: b.files.read(b"/a")), (ValueError, lambda b: b.files.read("")),
    (ValueError, lambda b: b.files.read("/a\0")), (TypeError, lambda b: b.files.write("/a", 3)),
    (TypeError, lambda b: b.files.mkdir("/a", parents="yes")), (ValueError, lambda b: b.files.chmod("/a", 0o10000)),
    (TypeError, lambda b: b.files.chmod("/a", "755")), (ValueError, lambda b: b.files.walk("/a", max_depth=65)),
    (ValueError, lambda b: b.open_port(0)), (TypeError, lambda b: b.forward("80")), (TypeError, lambda b: b.watch(3)),
    (TypeError, lambda b: b.http("GET", 3)), (TypeError, lambda b: b.http("GET", "http://x/", headers={"a": 1})),
    (TypeError, lambda b: b.keep("1h")), (TypeError, lambda b: b.attach(3)), (TypeError, lambda b: b.sandboxed(None)),
]


def test_what_is_wrong_raises_before_anything_is_sent(proxy):
    with execd.connect(proxy.url, silence_timeout=3600) as box:
        box.run("true")
        up = proxy.up
        for i, (kind, wrong) in enumerate(WRONG):
            with pytest.raises(kind):
                wrong(box)
            assert proxy.up == up, i
        assert box.run("echo hi").stdout == "hi\n"
    for kind, options in [(TypeError, {"url": 3}), (TypeError, {"token": b"x"}), (ValueError, {"watch": True}),
                          (TypeError, {"connect_timeout": "1"}), (ValueError, {"url": "ws://a", "environment": "b"})]:
        with pytest.raises(kind):
            execd.connect(**options)


def test_from_many_threads_and_tasks(server):
    async def many():
        async with execd.aio.connect(server.url) as box:
            rs = await asyncio.gather(*(box.run(f"echo {i}; exit {i}") for i in range(20)))
            assert [(r.stdout, r.exit_code) for r in rs] == [(f"{i}\n", i) for i in range(20)]
            # What is cancelled is killed.
            task = asyncio.create_task(box.run("echo $$; exec sleep 1000"))
            await box.run("true")
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            p = await box.start("true")
            assert (await p.wait()).exit_code == 0
            while any(p["running"] for p in await box.processes()):
                await asyncio.sleep(0.01)

    asyncio.run(many())
    with execd.connect(server.url) as box:
        found = []
        threads = [threading.Thread(target=lambda i=i: found.append(box.run(f"echo {i}").stdout)) for i in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(60)
        assert sorted(found) == [f"{i}\n" for i in range(8)]


# --- files, ports, HTTP, changes ----------------------------------------------


def test_files(box, directory):
    f, d = box.files, str(directory)
    for size in (0, 1, 1 << 20, (1 << 20) + 1, 5 << 20):
        data = random.Random(size).randbytes(size)
        f.write(f"{d}/f", data)
        assert (directory / "f").read_bytes() == data and f.read(f"{d}/f") == data
    with pytest.raises(execd.LimitExceeded):
        f.read(f"{d}/f", max_bytes=1000)
    f.write(f"{d}/ü \udcff#?%41", "text")
    assert f.read_text(f"{d}/ü \udcff#?%41") == "text" and (directory / "ü \udcff#?%41").read_text() == "text"
    f.chmod(f"{d}/f", 0o640)
    f.set_modified(f"{d}/f", 1234567890.5)
    f.symlink(f"{d}/l", "nowhere")
    s = f.stat(f"{d}/f")
    assert (s.is_file, s.size, s.mode, s.modified) == (True, 5 << 20, 0o640, 1234567890.5)
    f.mkdir(f"{d}/a/b")
    f.copy(f"{d}/f", f"{d}/a/g")
    f.move(f"{d}/f", f"{d}/a/h")
    assert {(e.name, e.is_dir, e.target) for e in f.listdir(d)} == {("a", True, None), ("l", False, "nowhere"),
                                                                    ("ü \udcff#?%41", False, None)}
    assert [e for e in f.walk(f"{d}/a").entries] == [(f"{d}/a/b", "directory"), (f"{d}/a/g", "file"), (f"{d}/a/h", "file")]
    f.remove(f"{d}/a", recursive=True)
    assert not f.exists(f"{d}/a") and f.canonicalize(f"{d}/./x/..") == f.canonicalize(d)
    f.remove(f"{d}/a", missing_ok=True)
    with pytest.raises(execd.NotFound):
        f.remove(f"{d}/a")


def test_files_in_a_sandbox(box, sandboxes, directory):
    files = box.sandboxed("workspace-write", directory)
    files.write(directory / "f", "x")
    assert files.read(directory / "f") == b"x"
    with pytest.raises(execd.ServerError):
        files.write("/usr/x", "x")
    with pytest.raises(execd.ServerError):
        box.sandboxed("read-only", directory).write(directory / "f", "y")
    assert (directory / "f").read_text() == "x"


def test_trees(box, directory, tmp_path):
    make_tree(tmp_path)
    assert box.files.upload(tmp_path / "a", directory / "there") == 5
    assert tree(directory / "there") == tree(tmp_path / "a")
    assert box.files.download(directory / "there", tmp_path / "back") == 5
    assert tree(tmp_path / "back") == tree(tmp_path / "a")
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(execd.ExecdError):
        box.files.upload(tmp_path / "fifo", directory / "fifo")


def test_a_port_of_a_command(box, directory):
    """Each byte of three connections comes back, behind the end of what was sent."""
    p = box.start(["/usr/bin/python3", "-c", ECHO])
    port = int(next(p).data)
    with box.forward(port, of=p) as f:
        for size in (1, 100_000, 1_000_000):
            data = random.Random(size).randbytes(size)
            with socket.create_connection(("127.0.0.1", f.port), 60) as c:
                c.sendall(data)
                c.shutdown(socket.SHUT_WR)
                got = b""
                while more := c.recv(65536):
                    got += more
            assert got == data and f.error is None
    p.terminate()
    with pytest.raises(execd.OperatingSystemError) as e:
        box.open_port(1)
    assert e.value.errno == 111


def test_http(box, web):
    r = box.http("GET", web, headers={"x-name": "v"})
    assert (r.status, r.header("X-Name"), r.body) == (418, "v", b"x" * 300_000)
    assert box.http("POST", web, body="sent").text == "sent"
    with box.http_stream("GET", web) as s:
        assert s.status == 418 and b"".join(s) == b"x" * 300_000
    with pytest.raises(execd.LimitExceeded):
        box.http("GET", web, max_bytes=10)
    with pytest.raises(execd.OperatingSystemError):
        box.http("GET", "http://127.0.0.1:1/")


def test_changes_of_files_are_told_behind_a_cut(proxy, directory):
    with execd.connect(proxy.url) as box, box.watch(directory) as watch:
        (directory / "one").touch()
        assert next(watch) == execd.Change("created", str(directory / "one"))
        proxy.cut()
        while (change := next(watch)).kind != "lost":
            assert change.path == str(directory / "one")
        (directory / "two").touch()
        while next(watch) != execd.Change("created", str(directory / "two")):
            pass
        directory_gone = directory / "sub"
        box.files.mkdir(directory_gone)
        with box.watch(directory_gone) as inner:
            box.files.remove(directory_gone, recursive=True)
            list(inner)  # it ends


# --- sessions -----------------------------------------------------------------


def test_a_kept_session(server, directory):
    box = execd.connect(server.url)
    assert box.keep(300, while_running=True)["whileRunning"] is True
    p = box.start(f"echo one; until [ -e {directory}/go ]; do sleep 0.05; done; echo two; exit 3", stdin=True)
    assert next(p).data == b"one\n"
    session = box.session_id
    box.detach()
    with pytest.raises(execd.ConnectionLost):
        p.wait()
    with execd.connect(server.url, session=session, watch=True) as eye:
        with pytest.raises(execd.Refused):
            eye.run("true")
    with execd.connect(server.url, session=session) as box:
        assert [s["state"] for s in box.sessions() if s["sessionId"] == session] == ["attached"]
        assert [q["processId"] for q in box.processes()] == [p.id]
        with pytest.raises(execd.SessionAttached):
            execd.connect(server.url, session=session, initialize_timeout=0.3)
        again = box.attach(p.id)
        (directory / "go").touch()
        assert b"".join(o.data for o in again) == b"one\ntwo\n" and again.wait().exit_code == 3
        with execd.connect(server.url, session=session, take_over=True) as other:
            with pytest.raises(execd.SessionTaken):
                while True:
                    box.run("true")
            other.end()
    with pytest.raises(execd.SessionLost):
        execd.connect(server.url, session=session)


def test_a_session_that_is_not_kept_ends(server):
    with execd.connect(server.url) as box:
        session = box.session_id
        box.start("sleep 1000")
    with pytest.raises(execd.SessionLost):
        execd.connect(server.url, session=session)
    box.close()
    with pytest.raises(execd.ConnectionLost):
        box.run("true")


# --- which server -------------------------------------------------------------


def test_other_ways_to_a_server(server, spawn, user, mode, directory, stdio):
    proxy = Proxy(server.url, path=directory / "socket")
    with execd.connect(f"unix:{directory}/socket") as box:
        assert box.run("echo hi").stdout == "hi\n"
        proxy.cut()
        assert box.run("echo hi").stdout == "hi\n" and box.resumes == 1
    proxy.close()


def test_lines(mode, user):
    from conftest import EXECD, as_user
    argv = [str(EXECD), "--listen", "stdio"]
    argv = [*argv, "--user", user.pw_name] if mode == "root" else as_user(user, argv)
    with execd.connect("stdio:" + " ".join(argv)) as box:
        data = random.Random(3).randbytes(2 << 20)
        assert box.run("cat", input=data).stdout_bytes == data
    with pytest.raises(execd.Unreachable):
        execd.connect("stdio:exit 3")
    with pytest.raises(execd.ProtocolError) as e:
        execd.connect("stdio:echo Welcome to this host")
    assert "Welcome" in str(e.value)


def test_tls(configured, user, directory):
    """The real listener: the right token, each wrong one, and certificates of either side."""
    root = Authority(directory, "root")
    other = Authority(directory, "other")
    cert, client = root.issue("server", group=user.pw_gid), root.issue("client")
    stranger = other.issue("client2")
    text = (f"[listener tls]\naddress = wss://127.0.0.1:0\ncertificate = {cert}.pem\ncertificate-key = {cert}.key\n"
            f"{{more}}[identity a]\nuser = {user.pw_name}\nsandbox-allow-unsandboxed = yes\ntoken-sha256 = {digest('tok')}\n")
    s = configured(text.format(more=""))
    with execd.connect(s.url, "tok", ca=root.cert) as box:
        data = random.Random(4).randbytes(3 << 20)
        assert box.run("cat", input=data).stdout_bytes == data
    with pytest.raises(execd.CertificateRefused):
        execd.connect(s.url, "tok")
    with pytest.raises(execd.CertificateRefused):
        execd.connect(s.url, "tok", ca=other.cert)
    for token in ("wrong", None):
        with pytest.raises(execd.AuthenticationFailed) as e:
            execd.connect(s.url, token, ca=root.cert)
        assert "401" in str(e.value)
    with pytest.raises((execd.ProtocolError, execd.Unreachable), match="begins with wss://"):
        execd.connect(s.url.replace("wss", "ws"), "tok")
    s = configured(text.format(more=f"client-ca = {root.cert}\nclient-certificate = required\n"))
    with execd.connect(s.url, "tok", ca=root.cert, certificate=f"{client}.pem", key=f"{client}.key") as box:
        assert box.run("echo hi").stdout == "hi\n"
    for options in ({}, {"certificate": f"{stranger}.pem", "key": f"{stranger}.key"}):
        with pytest.raises((execd.AuthenticationFailed, execd.Unreachable)):
            execd.connect(s.url, "tok", ca=root.cert, **options)
    with pytest.raises(execd.ConfigError):
        execd.connect(s.url, "tok", ca=root.cert, certificate=f"{client}.pem", key=f"{stranger}.key")


def test_the_server_that_execctl_would_use(server, directory, monkeypatch):
    write(directory / "token", " tok\n")
    write(directory / "environments.conf",
          f"# servers\ndefault = one\n[one]\nurl = {server.url}\nsilence-timeout = 7s\n[two]\nurl = ws://127.0.0.1:1/two\n"
          f"token-file = {directory}/token ; of two\n")
    find = execd.config.find_server
    assert find(None, None, None, None).silence_timeout == 7
    assert (find(None, "two", None, None).url, find(None, "two", None, None).token) == ("ws://127.0.0.1:1/two", "tok")
    assert find("ws://127.0.0.1:1/two", None, None, None).token == "tok"
    with execd.connect() as box:
        assert box.run("echo hi").stdout == "hi\n"
    monkeypatch.setenv("CODEX_EXEC_SERVER_URL", "ws://127.0.0.1:3")
    assert find(None, None, None, None).url == "ws://127.0.0.1:3"
    monkeypatch.setenv("EXECD_URL", "ws://127.0.0.1:2")
    assert find(None, None, None, None).url == "ws://127.0.0.1:2"
    monkeypatch.setenv("EXECD_TOKEN", "variable")
    assert find(None, None, None, None).token == "variable"
    assert find("ws://127.0.0.1:1/two", None, None, None).token == "variable"
    assert find(None, "two", None, None).token == "tok" and find(None, "one", None, None).token == "variable"
    assert find(None, "two", "given", None).token == "given"
    with pytest.warns(UserWarning, match="ws://"):
        find("ws://192.0.2.1", None, "given", None)


def test_a_key_that_only_execctl_compares(directory):
    write(directory / "environments.conf", "[a]\nurl = wss://127.0.0.1:1\nserver-key = SHA256:x\n")
    with pytest.raises(execd.ConfigError, match="only execctl compares a server-key"):
        execd.connect()


@pytest.mark.parametrize("conf, mode_, env, options", REFUSED)
def test_what_execctl_refuses(directory, monkeypatch, conf, mode_, env, options):
    write(directory / "open", "tok", 0o644)
    write(directory / "empty", " \n")
    write(directory / "long", "x" * 20000)
    write(directory / "environments.conf", conf.replace("DIR", str(directory)), mode_)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(execd.ConfigError) as e:
        execd.connect(**options)
    args = [a for k, v in options.items() for a in (f"--{k}", v)]
    said = Execctl(directory, None, **env)(*args, "info")
    assert said.code in (125, 255)
    ours = re.sub(r"stdio: or ask:|unix: or stdio:|unix:, stdio: or ask:", "", str(e.value))
    theirs = re.sub(r"unix:, stdio: or ask:|--url or --environment", "", said.err.removeprefix("execctl: "))
    words = set(re.findall(r"[\w./-]{3,}", ours)) - {"200", "unix"}
    known = set(re.findall(r"[\w./-]{3,}", theirs))
    assert len(words & known) >= 0.6 * len(words), (ours, theirs)


# --- cuts ---------------------------------------------------------------------


@pytest.mark.parametrize("wait", [False, True], ids=["pushed", "asked"])
def test_output_continues_behind_a_cut(proxy, directory, wait):
    with execd.connect(proxy.url) as box:
        p = box.start(LINES.format(n=500, d=directory), wait_output=wait)
        out = {"stdout": b"", "stderr": b""}
        for i in range(100, 501, 100):
            while not (out["stdout"].endswith(f"line {i - 1}\n".encode()) and out["stderr"].endswith(f"e{i - 1}\n".encode())):
                o = next(p)
                out[o.stream] += o.data
            proxy.cut()
            (directory / str(i)).touch()
        assert list(p) == [] and p.wait().exit_code == 5
        assert (out["stdout"], out["stderr"]) == expected(500) and box.resumes >= 4


def test_a_command_is_started_once(proxy, directory):
    """The answer to its start is swallowed, so the start is sent again."""
    with execd.connect(proxy.url) as box:
        box.run("true")
        proxy.swallowing = True
        found = []
        t = threading.Thread(target=lambda: found.append(box.run(f"echo x >>{directory}/count; echo out; exit 4")))
        t.start()
        poll(lambda: (directory / "count").exists(), what="the start")
        proxy.cut_swallowed()
        t.join(60)
        assert (found[0].stdout, found[0].exit_code) == ("out\n", 4)
        assert (directory / "count").read_text() == "x\n"


def test_a_start_that_is_cancelled_meanwhile_is_not_made(proxy, directory):
    async def work():
        async with execd.aio.connect(proxy.url) as box:
            p = await box.start("echo ready; sleep 100")
            await anext(p)
            proxy.refusing = True
            proxy.cut()
            while box._connection._link is not None:
                await asyncio.sleep(0.01)
            task = asyncio.create_task(box.run(f"touch {directory}/made"))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            proxy.refusing = False
            assert (await box.run("echo on")).stdout == "on\n"
            assert not (directory / "made").exists() and len(await box.processes()) == 2

    asyncio.run(work())


def test_what_may_not_be_repeated_says_so(proxy, directory):
    with execd.connect(proxy.url) as box:
        box.run("true")
        proxy.swallowing = True
        found = []

        def remove():
            try:
                box.files.remove(directory / "gone")
            except execd.AnswerLost as e:
                found.append(str(e))

        (directory / "gone").touch()
        t = threading.Thread(target=remove)
        t.start()
        poll(lambda: not (directory / "gone").exists(), what="the removal")
        proxy.cut_swallowed()
        t.join(60)
        assert "fs/remove" in found[0] and "unknown" in found[0]
        assert box.run("echo on").stdout == "on\n"


@pytest.mark.parametrize("wait", [False, True], ids=["pushed", "asked"])
def test_more_than_is_retained(proxy, directory, wait):
    """Of what is pushed a part falls out, and that is told; what is asked for waits, and none is lost."""
    with execd.connect(proxy.url) as box:
        p = box.start(f"echo first; until [ -e {directory}/go ]; do sleep 0.05; done; head -c 3000000 /dev/zero; "
                      f"echo last; touch {directory}/done; exit 6", wait_output=wait)
        assert next(p).data == b"first\n"
        proxy.refusing = True
        proxy.cut()
        (directory / "go").touch()
        if not wait:
            poll(lambda: (directory / "done").exists(), what="the end")
        proxy.refusing = False
        got, lost = b"", []
        while True:
            try:
                got += b"".join(o.data for o in iter(lambda: next(p, None), None))
                break
            except execd.OutputLost as e:
                lost.append(e.bytes)
                assert not got, "the gap is where it was"
        assert p.wait().exit_code == 6 and got.endswith(b"\0last\n")
        assert len(got) + sum(lost) == 3000005 and bool(lost) != wait


def test_when_it_cannot_resume_the_state_is_unknown(proxy):
    with execd.connect(proxy.url, resume_timeout=0.3) as box:
        p = box.start("echo ready; sleep 100")
        assert next(p).data == b"ready\n"
        proxy.refusing = True
        proxy.cut()
        with pytest.raises(execd.ConnectionLost, match="could not be resumed within 0.3 s"):
            p.wait()
        with pytest.raises(execd.ConnectionLost):
            box.run("true")


def test_a_first_connection_waits_for_its_server(server):
    proxy = Proxy(server.url)
    at = socket.create_server(("127.0.0.1", 0))
    port = at.getsockname()[1]
    at.close()
    with pytest.raises(execd.Unreachable):
        execd.connect(f"ws://127.0.0.1:{port}", connect_timeout=0.2)
    proxy.close()


def test_a_silent_server_is_left(proxy):
    with execd.connect(proxy.url, silence_timeout=0.4) as box:
        box.run("true")
        accepted = proxy.accepted
        proxy.swallowing = True
        proxy.wait(lambda: proxy.accepted > accepted, what="another connection")
        proxy.cut_swallowed()
        assert box.run("echo hi").stdout == "hi\n" and box.resumes >= 1


@pytest.mark.parametrize("rounds", [2, pytest.param(10, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("wait", [False, True], ids=["pushed", "asked"])
def test_ten_cuts_at_random_moments(spawn, directory, rounds, wait):
    """Commands, input, files and a forwarded port at once. A round has ten cuts."""
    server = spawn()
    proxy = Proxy(server.url)
    rng = random.Random(rounds)
    data = rng.randbytes(2 << 20)
    sums = hashlib.sha256(data).hexdigest()
    (directory / "f").write_bytes(data)
    (directory / "f").chmod(0o644)
    for number in range(rounds):
        stop = threading.Event()
        cutter = threading.Thread(target=cut_somewhere, args=(rng, proxy, server, 10, stop))

        async def through_a_port(box, p):
            port = int((await anext(p)).data)
            async with await box.forward(port, of=p) as f:
                reader, writer = await asyncio.open_connection("127.0.0.1", f.port)
                writer.write(data[:1 << 20])
                writer.write_eof()
                got = await reader.read(-1)
                writer.close()
            await p.terminate()
            return got

        async def work():
            async with execd.aio.connect(proxy.url) as box:
                p = await box.start(["/usr/bin/python3", "-c", ECHO])
                cutter.start()
                numbers, echoed, read, through, wrote, _ = await asyncio.gather(
                    box.run("for i in $(seq 1 40); do seq $((i*1000)) $((i*1000+999)); sleep 0.02; done; exit 3",
                            wait_output=wait),
                    box.run("cat", input=data, wait_output=True), box.files.read(directory / "f"), through_a_port(box, p),
                    box.files.write(directory / f"w{number}", data), asyncio.to_thread(cutter.join))
                assert numbers.exit_code == 3
                assert numbers.stdout_bytes == "".join(f"{i}\n" for i in range(1000, 41000)).encode()
                assert hashlib.sha256(echoed.stdout_bytes).hexdigest() == sums and read == data
                assert through == data[:1 << 20]
                assert (directory / f"w{number}").read_bytes() == data
                return box.resumes

        try:
            assert asyncio.run(work()) >= 1
        finally:
            stop.set()
            cutter.join()
    proxy.close()


# --- servers that lie ---------------------------------------------------------


@pytest.mark.parametrize("name", LIES)
def test_a_lie_is_a_typed_error(name):
    lie = LIES[name]
    asked = isinstance(lie, tuple)
    s = Liar(lie[0] if asked else lie, ["processRetentionWait"] if asked else [])
    try:
        with pytest.raises((execd.ProtocolError, execd.LimitExceeded)):
            with execd.connect(s.url, resume_timeout=1) as box:
                box.run("true", wait_output=asked)
    finally:
        s.close()


@contextlib.contextmanager
def liar(lie, capabilities=()):
    s = Liar(lie, capabilities)
    try:
        with execd.connect(s.url) as box:
            yield box
    finally:
        s.close()


def test_an_event_that_comes_twice_is_one():
    def twice(s, c, p):
        for seq in (1, 1, 2, 1, 2):
            out(s, c, p, seq)
        ends(s, c, p, 3)

    with liar(start_and(twice)) as box:
        assert box.run("true").stdout == "xx"


@pytest.mark.parametrize("chunks, events, text", [([3], 2, "x"), ([], 3, "")], ids=["in front", "all of it"])
def test_what_a_server_does_not_retain_is_told(chunks, events, text):
    """The reference does not say what is missing: the numbers do."""
    def lie(s, c, m):
        if m["method"] == "process/read":
            s.send(c, id=m["id"], result={"nextSeq": 4, "exited": False, "exitCode": None, "closed": False, "chunks": [
                {"seq": n, "stream": "stdout", "chunk": "eA=="} for n in chunks]})
            ends(s, c, m["params"]["processId"], 4)
        else:
            start_and(lambda s, c, p: out(s, c, p, 3))(s, c, m)

    with liar(lie) as box:
        with pytest.raises(execd.OutputLost) as e:
            box.run("true")
        assert (e.value.events, e.value.bytes) == (events, None)
        assert (e.value.result.stdout, e.value.result.exit_code) == (text, 0)


def test_a_server_without_start_ids_starts_once():
    """The first start is not answered, and the second one says that the process exists."""
    started = []

    def lie(s, c, m):
        if m["method"] == "process/start":
            p = m["params"]["processId"]
            started.append(p)
            if len(started) == 1:
                c.shutdown(socket.SHUT_RDWR)
            else:
                s.send(c, id=m["id"], error={"code": -32600, "message": f"process {p} already exists"})
        elif m["method"] == "process/read":
            s.send(c, id=m["id"], result={"nextSeq": 4, "exited": True, "exitCode": 7, "closed": True, "chunks": [
                {"seq": 1, "stream": "stdout", "chunk": "eA=="}]})

    with liar(lie) as box:
        r = box.run("true")
        assert (r.stdout, r.exit_code) == ("x", 7) and len(set(started)) == 1 and len(started) == 2


def test_who_waits_is_not_held_up_by_output_that_nobody_reads():
    """The first process floods between the start of the second one and its end."""
    ids = []
    piece = base64.b64encode(bytes(1 << 20)).decode()

    def flood(s, c, p):
        ids.append(p)
        if len(ids) == 2:
            for seq in range(1, 13):
                out(s, c, ids[0], seq, chunk=piece)
            out(s, c, p, 1)
            ends(s, c, p, 2)

    with liar(start_and(flood)) as box:
        box.start("first")
        assert box.run("second").stdout == "x"


FILE_CALLS = {
    "a name above": lambda b, d: b.files.download("/d", d / "x"),
    "a name below": lambda b, d: b.files.download("/d", d / "x"),
    "no name": lambda b, d: b.files.listdir("/d"),
    "itself": lambda b, d: b.files.listdir("/d"),
    "a longer block": lambda b, d: b.files.read("/f"),
    "a short block": lambda b, d: b.files.read("/f"),
    "blocks without an end": lambda b, d: b.files.read("/f", max_bytes=5 << 20),
    "no block": lambda b, d: b.files.read("/f"),
    "no size": lambda b, d: b.files.stat("/f"),
    "another path": lambda b, d: b.files.canonicalize("/f"),
    "too long a walk": lambda b, d: b.files.walk("/d", max_entries=2),
    "a list without an end": lambda b, d: b.processes(),
    "a status that is none": lambda b, d: b.http("GET", "http://x/"),
}


@pytest.mark.parametrize("name", FILE_LIES)
def test_a_lie_about_files(name, directory):
    lie, ask = FILE_LIES[name], FILE_CALLS[name]
    with liar(lie, ["processList"]) as box:
        with pytest.raises((execd.ProtocolError, execd.LimitExceeded)):
            ask(box, directory)
    assert not [p for p in directory.rglob("*") if p.is_file()]


def test_a_stream_out_of_order():
    def lie(s, c, m):
        s.send(c, id=m["id"], result={"status": 200, "headers": [], "bodyBase64": ""})
        for seq in (1, 3):
            s.send(c, method="http/request/bodyDelta", params={
                "requestId": m["params"]["requestId"], "seq": seq, "deltaBase64": "eA==", "done": False, "error": None})

    with liar(lie) as box:
        with pytest.raises(execd.ProtocolError):
            box.http("GET", "http://x/")


def test_output_that_nobody_reads_has_a_limit():
    """A server that floods while an answer is awaited."""
    piece = base64.b64encode(bytes(1 << 20)).decode()

    def flood(s, c, p):
        for seq in range(1, 80):
            out(s, c, p, seq, chunk=piece)

    def lie(s, c, m):
        if m["method"] == "process/start":
            start_and(flood)(s, c, m)  # process/resize is never answered

    s = Liar(lie, ["processResize"])
    try:
        box = execd.connect(s.url)
        p = box.start("true")
        with pytest.raises(execd.LimitExceeded):
            t = threading.Thread(target=lambda: contextlib.suppress(Exception).__enter__() or _quiet(p.resize, 1, 1))
            t.start()
            t2 = poll(lambda: p._inner._error, what="the limit")
            raise t2
        box.detach()
        t.join(30)
    finally:
        s.close()


def _quiet(what, *args):
    with contextlib.suppress(execd.ExecdError):
        what(*args)


def test_what_a_server_lacks_is_named(directory):
    """None of the capabilities that execd has beyond the reference."""
    s = Liar(start_and(lambda s, c, p: None))
    calls = {
        "processCloseStdin": lambda b: b.run("a", input="x"), "processTimeout": lambda b: b.run("a", timeout=1),
        "processResize": lambda b: b.start("a", tty=(1, 1)), "processNetwork": lambda b: b.run("a", allow_hosts=["x"]),
        "processSignalTarget": lambda b: b.start("a").signal("TERM"), "processForward": lambda b: b.forward(1),
        "processTerminateGraceful": lambda b: b.start("a").terminate(grace=1), "fsMove": lambda b: b.files.move("a", "b"),
        "fsChmod": lambda b: b.files.chmod("a", 0), "fsSymlink": lambda b: b.files.symlink("a", "b"),
        "fsSetTimes": lambda b: b.files.set_modified("a", 0), "fsWatch": lambda b: b.watch("a"),
        "sessionKeep": lambda b: b.keep(1), "sessionList": lambda b: b.sessions(), "processList": lambda b: b.processes(),
        "sessionEnd": lambda b: b.end()}
    try:
        with execd.connect(s.url) as box:
            for capability, call in calls.items():
                with pytest.raises(execd.MissingCapability, match=capability) as e:
                    call(box)
                assert e.value.capability == capability
    finally:
        s.close()


# --- the reference ------------------------------------------------------------


@pytest.mark.skipif("CODEX_BIN" not in os.environ, reason="CODEX_BIN names no reference server")
def test_the_reference_server(directory, web):
    with open(directory / "log", "wb") as log:
        child = subprocess.Popen([os.environ["CODEX_BIN"], "exec-server", "--listen", "ws://127.0.0.1:0"],
                                 stdout=subprocess.PIPE, stderr=log, env=environment(directory, CODEX_HOME=str(directory)))
    proxy = Proxy(child.stdout.readline().decode().strip())
    try:
        with execd.connect(proxy.url) as box:
            r = box.run("echo out; echo err >&2; exit 3")
            assert (r.stdout, r.stderr, r.exit_code) == ("out\n", "err\n", 3)
            data = random.Random(5).randbytes(3 << 20)
            box.files.write(directory / "f", data)
            assert box.files.read(directory / "f") == data
            assert box.http("GET", web).body == b"x" * 300_000
            with pytest.raises(execd.MissingCapability, match="processCloseStdin"):
                box.run("cat", input="x")
            p = box.start(LINES.format(n=200, d=directory))
            found = {"stdout": b"", "stderr": b""}
            for i in (100, 200):
                while not found["stdout"].endswith(f"line {i - 1}\n".encode()):
                    o = next(p)
                    found[o.stream] += o.data
                proxy.cut()
                (directory / str(i)).touch()
            for o in p:
                found[o.stream] += o.data
            assert (found["stdout"], found["stderr"]) == expected(200) and p.wait().exit_code == 5
            with pytest.raises(execd.StartFailed):
                box.run(["/no/such"])
            p = box.start("sleep 100")
            p.signal("INT")
            assert p.wait().exit_code == 130
    finally:
        proxy.close()
        child.terminate()
        child.wait(10)


# --- the OpenAI Agents SDK ----------------------------------------------------


def test_a_sandbox_client_of_the_agents_sdk(server, sandboxes, directory, monkeypatch):
    """The SDK itself is not in Debian: a double of its base classes asks what they ask."""
    import agents_double
    errors = agents_double.install(monkeypatch)
    monkeypatch.delitem(sys.modules, "execd.agents", raising=False)
    import io
    from execd.agents import ExecdSandboxClient, ExecdSandboxClientOptions
    manifest = agents_double.Manifest(root=str(directory / "work"), entries={"a/b": b"text"},
                                      environment=agents_double.Environment(NAME="value"))

    async def work():
        client = ExecdSandboxClient()
        session = await client.create(manifest=manifest, options=ExecdSandboxClientOptions(
            url=server.url, exposed_ports=(8000,)))
        await session.start()
        assert (await session.read(pathlib.Path("a/b"))).read() == b"text"
        r = await session.exec("echo $NAME; pwd; cat a/b >&2; touch /usr/x || exit 3")
        assert (r.stdout, r.exit_code) == (f"value\n{directory}/work\n".encode(), 3) and r.stderr.startswith(b"text")
        r = await session.exec("/no/such", shell=False)
        assert r.exit_code == 127 and b"No such file" in r.stderr
        with pytest.raises(errors.ExecTimeoutError):
            await session.exec("sleep 100", timeout=0.2)
        with pytest.raises(errors.WorkspaceReadNotFoundError):
            await session.read(pathlib.Path("missing"))
        await session.exec("ln -s /etc out; ln -s a in; touch skipped")
        assert (await session.read(pathlib.Path("in/b"))).read() == b"text"
        for path in ("out/passwd", "../f", "out/new/file"):
            with pytest.raises(errors.InvalidManifestPathError):
                await session.read(pathlib.Path(path))
            with pytest.raises(errors.InvalidManifestPathError):
                await session.write(pathlib.Path(path), io.BytesIO(b"x"))
        with pytest.raises(errors.ExposedPortUnavailableError):  # nobody may use it: the profile has no network
            monkeypatch.setattr(session.box, "forward", refuse)
            await session.resolve_exposed_port(8000)

        # The program dies, and another one resumes; then the server forgets the session.
        payload = session.state.model_dump()
        payload = {**payload, "manifest": session.state.manifest, "options": session.state.options}
        await session.box.detach()
        assert not await session.running()
        state = type(session.state)(**payload)
        session = await client.resume(state)
        await session.start()
        assert session.state.execd_session == state.execd_session and await session.running()
        assert (await session.exec("cat a/b")).stdout == b"text"
        await session.box.end()
        session = await client.resume(state)
        await session.start()
        assert session.state.execd_session != state.execd_session
        assert (await session.exec("cat a/b")).stdout == b"text"

        # A workspace goes into another one, with a repository that the model may not write.
        (directory / "work/.git").mkdir()
        (directory / "work/.git/HEAD").write_text("ref")
        (directory / "work/.git").chmod(0o777)
        r = await session.exec("echo x >.git/HEAD")
        assert not r.ok() and b"ead-only" in r.stderr
        await session.aclose()
        other = await client.create(options=ExecdSandboxClientOptions(url=server.url))
        await other.start()
        root = other.state.manifest.root
        assert root.startswith(other.box.home)
        await other.hydrate_workspace(session.persisted)
        r = await other.exec("cat a/b; ls")
        assert r.stdout == b"texta\nin\nout\n"
        async with execd.aio.connect(server.url) as box:
            assert [e.name for e in await box.files.listdir(root)] == [".git", "a", "in", "out"]
            assert await box.files.read(f"{root}/.git/HEAD") == b"ref"
        await client.delete(other)
        await client.delete(session)
        async with execd.aio.connect(server.url) as box:
            assert not await box.files.exists(root) and await box.files.exists(directory / "work")

    async def refuse(port):
        raise execd.MissingCapability("processForward", "forward()")

    asyncio.run(work())


# --- the package --------------------------------------------------------------


def test_what_is_repeated_is_what_the_table_says():
    """protocol/rpc/methods.def says which requests may be sent again."""
    rows = re.findall(r'^\w+METHOD\(\w+, "([^"]+)".*\b(AGAIN|ONCE)\)|^METHOD\(\w+, "([^"]+)".*\b(AGAIN|ONCE)\)',
                      (TREE / "protocol/rpc/methods.def").read_text(), re.M)
    again = {a or c for a, b, c, d in rows if "AGAIN" in (b, d)}
    assert len(rows) > 30
    # The ids of the client protect starts.
    assert execd.connection.AGAIN == again | {"process/start", "process/forward"}


def run_example(name, url, *args, code=0):
    r = subprocess.run([sys.executable, TREE / "doc/examples/python" / name, *map(str, args)], capture_output=True, text=True,
                       timeout=60, env={**os.environ, "PYTHONPATH": str(CLIENT), "EXECD_URL": url,
                                        "PYTHONDONTWRITEBYTECODE": "1"})
    assert r.returncode == code, r
    return r.stdout


def test_the_examples(server, sandboxes, directory):
    examples = {p.name for p in (TREE / "doc/examples/python").glob("*.py")}
    assert examples == {"run.py", "stream.py", "resume.py", "agent_loop.py"}
    assert run_example("run.py", server.url, directory, "pwd; exit 3", code=3) == f"{directory}\n"
    said = run_example("stream.py", server.url, code=3)
    assert "stdout working\n" in said and "stderr a warning\n" in said and "the answer was yes\nit ended with 3\n" in said
    assert run_example("resume.py", server.url) == "line 1\nline 2\nline 3\nit ended with 4\n"
    said = run_example("agent_loop.py", server.url, directory).splitlines()
    assert "'stdout': '6\\n'" in said[1] and "'denied': True" in said[2] and "'timed_out': True" in said[3]
    assert "NotFound" in said[4]


@pytest.mark.nightly
def test_types():
    try:
        import mypy  # noqa: F401
    except ImportError:
        pytest.skip("THE TYPES OF THE CLIENT FOR PYTHON ARE NOT CHECKED: mypy is missing")
    r = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir=/dev/null", "execd"], cwd=CLIENT,
                       capture_output=True, text=True)
    assert r.returncode == 0, r.stdout


@pytest.mark.nightly
def test_a_wheel_in_a_clean_environment(server, tmp_path):
    """Built by Debian's hatchling, and installed without the network: the first result takes five lines."""
    for module in ("hatchling", "venv", "ensurepip"):
        if subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True).returncode != 0:
            pytest.skip(f"NO WHEEL IS BUILT: python's {module} is missing")
    import shutil
    shutil.copytree(CLIENT, tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", ".mypy_cache"))

    def run(*argv, **more):
        r = subprocess.run(list(map(str, argv)), capture_output=True, text=True, timeout=300, **more)
        assert r.returncode == 0, r
        return r.stdout

    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "dist", cwd=tmp_path / "src")
    [wheel] = (tmp_path / "dist").glob("execd_client-*-py3-none-any.whl")
    run(sys.executable, "-m", "venv", "--system-site-packages", tmp_path / "venv")
    run(tmp_path / "venv/bin/pip", "install", "--no-index", wheel)
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "EXECD_URL": server.url}
    code = ("import execd\nwith execd.connect() as box:\n    r = box.run('echo hi; exit 3')\n"
            "    print(r.stdout, r.stderr, r.exit_code)\n")
    assert run(tmp_path / "venv/bin/python", "-c", code, env=env, cwd="/") == "hi\n  3\n"
    assert (next((tmp_path / "venv/lib").glob("python3*")) / "site-packages/execd/py.typed").exists()
