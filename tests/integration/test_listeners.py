# SPDX-License-Identifier: ISC
"""Listeners: several at once, IPv6, unix sockets, sockets of systemd; what a
reload does to them (execd.conf(5))."""
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess

import pytest
from conftest import EXECD, ROOT, as_user, digest, is_alive, poll
from execd_client import Closed, WebSocket, dial, upgrade


def identity(user, more=""):
    return f"[identity a]\nuser = {user.pw_name}\nsandbox-allow-unsandboxed = yes\ntoken-sha256 = {digest('t')}\n{more}"


def ready(server, url):
    c = server.connect(url, token="t").ready()
    assert c.run("x", ["/bin/echo", "in"]).stdout == "in\n"
    return c


def test_several_at_once(configured, user, directory):
    s = configured("[listener four]\naddress = ws://127.0.0.1:0\n[listener six]\naddress = ws://[::1]:0\n"
                   f"[listener path]\naddress = unix:{directory}/sock\n" + identity(user))
    assert s.urls[1].startswith("ws://[::1]:") and s.urls[2] == f"unix:{directory}/sock"
    for url in s.urls:
        ready(s, url)


@pytest.mark.skipif(not os.path.exists("/proc/net/if_inet6"), reason="NO IPv6: this host has none")
@pytest.mark.parametrize("only", ["", "ipv6-only = no\n", "ipv6-only = yes\n"])
def test_every_address(configured, user, only):
    s = configured(f"[listener all]\naddress = ws://[::]:0\n{only}" + identity(user))
    port = s.url.rsplit(":", 1)[1]
    ready(s, f"ws://[::1]:{port}")
    if only.endswith("yes\n"):
        with pytest.raises(ConnectionRefusedError):
            s.connect(f"ws://127.0.0.1:{port}", token="t")
    else:
        ready(s, f"ws://127.0.0.1:{port}")


def test_flags_take_several(mode, user, spawn, directory):
    s = spawn("--listen", f"unix:{directory}/sock")
    line = s.child.stdout.readline().decode().strip()
    assert line == f"unix:{directory}/sock"
    s.connect(line).ready()


def test_a_session_moves_between_listeners(configured, user, directory):
    s = configured(f"[listener ip]\naddress = ws://127.0.0.1:0\n[listener path]\naddress = unix:{directory}/sock\n" +
                   identity(user))
    c = ready(s, s.urls[0])
    c.drop()
    s.wait_log("detached")
    assert s.connect(s.urls[1], token="t").ready(resumeSessionId=c.session_id).session_id == c.session_id


def test_the_kernel_says_who_is_at_a_unix_socket(configured, user, directory, mode):
    who = pwd.getpwuid(os.getuid()).pw_name
    s = configured(f"[listener path]\naddress = unix:{directory}/sock\nmode = 0666\n" +
                   identity(user, f"peer-user = {who}\n"))
    c = s.connect().ready()
    assert c.run("x", ["/usr/bin/id", "-u"]).stdout == f"{user.pw_uid}\n"
    if ROOT:
        code = ("import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]);"
                "s.sendall(sys.stdin.buffer.read()); print(s.recv(4096).split(b'\\r\\n')[0].decode())")
        r = subprocess.run(["setpriv", "--reuid=nobody", "--clear-groups", "/usr/bin/python3", "-c", code,
                            f"{directory}/sock"], input=upgrade(), capture_output=True)
        assert b" 401 " in r.stdout, r
    with pytest.raises(Closed, match="401"):
        s.connect(token="wrong")


def test_the_mode_of_a_unix_socket(configured, user, directory):
    text = f"[listener path]\naddress = unix:{directory}/sock\n" + identity(user)
    s = configured(text)
    assert stat.S_IMODE(os.stat(directory / "sock").st_mode) == 0o600
    s.reload(text.replace("[identity", "mode = 0622\n[identity"), "mode: 0622")
    poll(lambda: stat.S_IMODE(os.stat(directory / "sock").st_mode) == 0o622)
    s.connect(token="t").ready()
    s.stop()
    assert not (directory / "sock").exists()


def test_a_socket_file_that_was_removed_blocks_no_reload(configured, user, directory):
    """Else a revocation could not be reloaded either. The listener is there again."""
    text = f"[listener path]\naddress = unix:{directory}/sock\n" + identity(user)
    s = configured(text)
    (directory / "sock").unlink()
    s.reload(text + "[limits]\nmax-sessions = 7\n", "max-sessions")
    ready(s, s.url)
    assert stat.S_ISSOCK((directory / "sock").stat().st_mode)


def test_what_takes_the_place_of_a_socket_file_blocks_no_reload(configured, user, directory):
    """Whoever may write there would keep a revocation away. Nothing happens to what a link leads to."""
    text = f"[listener path]\naddress = unix:{directory}/sock\n" + identity(user)
    s = configured(text)
    (directory / "file").touch(0o604)
    for n, change in enumerate((lambda at: at.symlink_to("file"), lambda at: at.symlink_to("nowhere"),
                                lambda at: (directory / "file").rename(at))):
        (directory / "sock").unlink()
        change(directory / "sock")
        said = s.reload(text + f"[limits]\nmax-sessions = {n + 7}\n", "max-sessions")
        assert "nobody can connect" in said and "refused" not in said, said
    assert stat.S_IMODE((directory / "sock").stat().st_mode) == 0o604
    (directory / "sock").unlink()
    s.reload(text, "max-sessions")
    ready(s, s.url)


def test_a_directory_that_was_removed_blocks_no_reload(configured, user, directory):
    """Nor does what lies in its place. It listens where it did when the directory is there again."""
    place = directory / "run"
    place.mkdir(mode=0o755)
    os.chown(place, user.pw_uid, user.pw_gid)
    text = f"[listener path]\naddress = unix:{place}/sock\n" + identity(user)
    s = configured(text)
    for n, change in enumerate((lambda: shutil.rmtree(place), place.touch)):
        change()
        said = s.reload(text + f"[limits]\nmax-sessions = {n + 7}\n", "max-sessions")
        assert "nobody can connect" in said and "refused" not in said, said
    place.unlink()
    place.mkdir(mode=0o755)
    os.chown(place, user.pw_uid, user.pw_gid)
    s.reload(text, "max-sessions")
    ready(s, s.url)


def test_a_socket_that_was_left_behind(configured, user, directory):
    """The file of a dead server is replaced; of a living one it is not."""
    text = f"[listener path]\naddress = unix:{directory}/sock\n" + identity(user)
    s = configured(text)
    s.wait_log(": serving")
    frontend = s.frontend()
    s.child.kill()
    s.child.wait()
    poll(lambda: not is_alive(frontend), what="end of the front-end, which listens, too")
    assert (directory / "sock").exists()
    poll(lambda: nobody_listens(directory / "sock"), what="end of its front-end, which has the socket, too")
    again = configured(text)
    ready(again, again.url)
    other = configured_fails(again.mode, user, directory / "other.conf", text)
    assert other[0] == 1 and "Address already in use" in other[1]
    ready(again, again.url)
    (directory / "plain").write_text("not a socket")
    code, err = configured_fails(again.mode, user, directory / "other.conf", text.replace("/sock", "/plain"))
    assert code == 1 and "Address already in use" in err and (directory / "plain").read_text() == "not a socket"


def nobody_listens(path):
    with socket.socket(socket.AF_UNIX) as s:
        try:
            return s.connect(str(path)) is not None
        except ConnectionRefusedError:
            return True


def configured_fails(mode, user, path, text):
    path.write_text(text)
    argv = [str(EXECD), "-c", str(path)]
    r = subprocess.run(argv if mode == "root" else as_user(user, argv), capture_output=True, text=True, timeout=20)
    return r.returncode, r.stderr


def test_a_reload_opens_closes_and_keeps(configured, user, directory):
    first = "[listener one]\naddress = ws://127.0.0.1:0\n"
    s = configured(first + f"[listener two]\naddress = unix:{directory}/two\n" + identity(user))
    one, two = s.urls
    a, b = ready(s, one), ready(s, two)
    s.reload(first + f"[listener three]\naddress = unix:{directory}/three\n" + identity(user), "[listener two]: gone")
    poll(lambda: (directory / "three").exists() and not (directory / "two").exists())
    for gone in (a, b):
        gone.wait_closed()
    a, b = (s.connect(one, token="t").ready(resumeSessionId=x.session_id) for x in (a, b))
    c = ready(s, one)
    ready(s, f"unix:{directory}/three")
    for still in (a, b, c):
        assert still.run("y", ["/bin/echo", "still"]).stdout == "still\n"
    with pytest.raises(OSError):
        dial(two)


def test_listeners_outlive_the_front_end(configured, user, directory):
    s = configured(f"[listener ip]\naddress = ws://127.0.0.1:0\n[listener path]\naddress = unix:{directory}/sock\n" +
                   identity(user))
    c = ready(s, s.urls[1])
    os.kill(s.frontend(), signal.SIGKILL)
    c.wait_closed()
    s.connect(s.urls[1], token="t").ready(resumeSessionId=c.session_id)
    ready(s, s.urls[0])


def get(url, path, method="GET", header="", **dialled):
    with dial(url, **dialled) as s:
        s.sendall(f"{method} {path} HTTP/1.1\r\nHost: x\r\n{header}\r\n".encode())
        data = b""
        while piece := s.recv(65536):
            data += piece
    if not data:
        raise ConnectionError("ended without an answer")
    head, text = data.decode().split("\r\n\r\n", 1)
    return int(head.split()[1]), text


def test_the_operator_s_listener(configured, user, directory):
    s = configured(f"[listener all]\naddress = ws://127.0.0.1:0\n[listener op]\naddress = unix:{directory}/op\n"
                   "operate = yes\n" + identity(user, "[limits]\ndrain-timeout = 1h\n"))
    everybody, op = s.urls
    assert get(op, "/healthz") == (200, "ok\n") and get(op, "/healthz", "HEAD") == (200, "")
    assert get(everybody, "/healthz")[0] == get(everybody, "/metrics")[0] == 404
    assert get(op, "/healthz", "POST")[0] == 404 and get(op, "/readyz")[0] == 200
    c = ready(s, everybody)
    c.drop()
    s.wait_log("detached")
    s.connect(everybody, token="t").ready(resumeSessionId=c.session_id)
    with pytest.raises(Closed):
        s.connect(everybody, token="wrong")
    status, text = get(op, "/metrics")
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert status == 200 and values['execd_credentials_total{result="refused"}'] == "1"
    assert values['execd_sessions_total{result="opened"}'] == values['execd_sessions_total{result="resumed"}'] == "1"
    assert int(values["execd_connections_accepted_total"]) >= 6 and int(values["execd_bytes_received_total"]) > 500
    s.child.send_signal(signal.SIGTERM)
    s.wait_log("no new sessions")
    poll(lambda: get(op, "/healthz") == (503, "stopping\n"))
    assert get(everybody, "/readyz")[0] == 503
    s.child.send_signal(signal.SIGTERM)
    assert s.child.wait(15) == 0


# --- systemd --------------------------------------------------------------


def activate(mode, user, sockets, names, args, env=None):
    """Starts execd as systemd would: sockets from descriptor 3 on."""
    copies = [os.dup(s.fileno()) for s in sockets]
    high = [os.dup2(fd, 100 + i) for i, fd in enumerate(copies)]

    def place():
        for i, fd in enumerate(high):
            os.dup2(fd, 3 + i)

    # env(1) knows the pid that execd will have.
    script = 'LISTEN_PID=$$ exec "$@"'
    argv = ["/bin/sh", "-c", script, "sh", str(EXECD), *args]
    child = subprocess.Popen(
        argv if mode == "root" else as_user(user, argv), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=place, pass_fds=[*range(3, 3 + len(sockets))],
        env={"PATH": "/usr/bin:/bin", "LISTEN_FDS": str(len(sockets)), "LISTEN_FDNAMES": ":".join(names), **(env or {})})
    for fd in copies + high:
        os.close(fd)
    return child


@pytest.fixture
def sockets(directory):
    ip = socket.create_server(("127.0.0.1", 0))
    path = socket.socket(socket.AF_UNIX)
    path.bind(str(directory / "sock"))
    path.listen()
    os.chmod(directory / "sock", 0o666)
    yield [ip, path]
    ip.close()
    path.close()


def test_sockets_of_systemd(mode, user, directory, sockets):
    (directory / "execd.conf").write_text(
        "[listener path]\naddress = systemd:execd-path\n[listener ip]\naddress = systemd:execd-ip\n" +
        identity(user, "environment = SEEN=yes\n"))
    child = activate(mode, user, sockets, ["execd-ip", "execd-path"], ["-c", str(directory / "execd.conf")])
    try:
        assert child.stdout.readline() == f"unix:{directory}/sock\n"
        url = f"ws://127.0.0.1:{sockets[0].getsockname()[1]}"
        assert child.stdout.readline() == url + "\n"
        for where in (url, f"unix:{directory}/sock"):
            c = WebSocket(where, token="t").ready()
            env = {"envPolicy": {"inherit": "all", "ignoreDefaultExcludes": True, "exclude": [], "set": {},
                                 "includeOnly": []}, "env": {}}
            assert "LISTEN" not in c.run("x", ["/usr/bin/env"], **env).stdout
            c.drop()
    finally:
        child.terminate()
        assert child.wait(15) == 0, child.stderr.read()
    assert (directory / "sock").exists(), "systemd's socket stays systemd's"


def test_a_socket_that_systemd_did_not_give(mode, user, directory, sockets):
    (directory / "execd.conf").write_text("[listener x]\naddress = systemd:other\n" + identity(user))
    child = activate(mode, user, sockets, ["one", "two"], ["-c", str(directory / "execd.conf")])
    out, err = child.communicate(timeout=15)
    assert child.returncode == 1 and out == "" and "systemd:other: execd was started without a socket" in err


def told(note):
    while (message := note.recv(1000)) == b"WATCHDOG=1":
        pass
    return message


def test_systemd_is_told(mode, user, directory):
    note = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    note.bind(str(directory / "notify"))
    os.chmod(directory / "notify", 0o666)
    note.settimeout(10)
    (directory / "execd.conf").write_text("[listener x]\naddress = ws://127.0.0.1:0\n" + identity(user))
    child = activate(mode, user, [], [], ["-c", str(directory / "execd.conf")],
                     {"NOTIFY_SOCKET": str(directory / "notify"), "WATCHDOG_USEC": "200000"})
    try:
        assert told(note).startswith(b"READY=1")
        # A refused one tells nothing: systemd may read it when its writer has ended, and then does not know whose it is.
        conf = directory / "execd.conf"
        right = conf.read_text()
        conf.write_text(right + "nonsense\n")
        child.send_signal(signal.SIGHUP)
        for line in child.stderr:
            if "reload: refused" in line:
                break
        conf.write_text(right)
        child.send_signal(signal.SIGHUP)
        assert told(note).startswith(b"RELOADING=1\nMONOTONIC_USEC=")
        assert told(note).startswith(b"READY=1\nSTATUS=")
        for _ in range(3):
            assert note.recv(1000) == b"WATCHDOG=1"
    finally:
        child.terminate()
        assert told(note) == b"STOPPING=1"
        assert child.wait(15) == 0
