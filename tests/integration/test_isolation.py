# SPDX-License-Identifier: ISC
"""Who runs as what, and what each may not (doc/design.md section 2)."""
import contextlib
import os
import pathlib
import re
import socket
import sys
import time

import pytest
from conftest import BUILD, Server, frontend_version, is_alive, kill, need_mode, patience, poll


def status(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return dict(re.findall(r"^(\w+):\t(.*)$", text, re.M))


@pytest.fixture
def root(user):
    need_mode("root")
    s = Server("root", user, [], "ws://127.0.0.1:0", None)
    yield s
    s.stop()


def test_commands_are_the_user_and_nothing_more(root, user):
    c = root.ready()
    r = c.run_sh("a", "id -u; id -g; id -G; grep -E '^(Cap(Inh|Prm|Eff|Amb)|NoNewPrivs|Uid|Gid)' /proc/self/status; pwd",
                 cwd="file:///")
    lines = r.stdout.splitlines()
    groups = {str(g) for g in os.getgrouplist(user.pw_name, user.pw_gid)}
    assert lines[:2] == [str(user.pw_uid), str(user.pw_gid)] and set(lines[2].split()) == groups
    for line in lines[3:-1]:
        name, value = line.split(":", 1)
        if name.startswith("Cap"):
            assert int(value, 16) == 0, line
        elif name != "NoNewPrivs":
            assert set(value.split()) == {str(user.pw_uid if name == "Uid" else user.pw_gid)}, line


def test_a_session_sees_only_itself(root):
    a, b = root.ready(), root.ready()
    a.sh("x", "sleep 1000.5")
    r = b.run_sh("p", "cat /proc/1/comm; for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline 2>/dev/null; echo; done")
    assert r.stdout.startswith("execd-runner\n")
    assert "1000.5" not in r.stdout and "execd --listen" not in r.stdout
    inside = int(a.run_sh("q", "ls /proc | grep -E '^[0-9]+$' | grep -vx 1 | head -n 1").stdout)
    assert b.run_sh("k", f"kill -0 {inside}").code != 0
    assert b.run_sh("all", "trap '' TERM; kill -TERM -1; echo alive").stdout == "alive\n"
    assert a.terminate("x") is True


def test_the_runner_cannot_be_killed_or_inspected_from_inside(root):
    c = root.ready()
    assert c.run_sh("a", "kill -9 1; cat /proc/1/environ").code != 0
    assert c.call("environment/status") == {"status": "ready"}


def open_files(pid):
    """What may be opened and closed meanwhile."""
    found = []
    for f in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(f"/proc/{pid}/fd/{f}"))
    return found


def test_runner_and_monitor(root, user):
    c = root.ready()
    runner = status(root.runner(c))
    assert runner["Uid"].split() == [str(user.pw_uid)] * 4
    assert all(int(runner[k], 16) == 0 for k in ("CapInh", "CapPrm", "CapEff", "CapAmb"))
    assert runner["NSpid"].split()[-1] == "1"
    assert sorted(int(f) for f in os.listdir(f"/proc/{root.runner(c)}/fd"))[:4] == [0, 1, 2, 3]
    # The broker holds listeners, control channels, and nothing of a client.
    sockets = open_files(root.pid)
    tcp = pathlib.Path(f"/proc/{root.pid}/net/tcp").read_text()
    states = {line.split()[9]: line.split()[3] for line in tcp.splitlines()[1:]}
    mine = [states[m[1]] for m in (re.fullmatch(r"socket:\[(\d+)\]", s) for s in sockets) if m and m[1] in states]
    assert mine == ["0A"]       # one listening TCP socket


def test_the_broker_that_serves_is_confined(mode, user, configured):
    """Also the one after a reload, and the one after that died."""
    text = f"[listener main]\naddress = ws://127.0.0.1:0\nallow-unauthenticated = x\n[identity x]\nuser = {user.pw_name}\n"
    s = configured(text)
    s.ready()
    seen = set()
    for renew in (lambda: None, lambda: s.reload(text + "[limits]\nmax-connections = 99\n", "adopted"), lambda: kill(s.broker)):
        renew()
        pid = poll(lambda: (b := s.broker) not in seen and status(b)["Seccomp"] == "2" and b, what="a filter")
        seen.add(pid)
        assert status(pid)["NoNewPrivs"] == "1"
        assert all(int(status(pid)[k], 16) == 0 for k in ("CapInh", "CapPrm", "CapEff", "CapAmb"))


def check_frontend(pid):
    s = status(pid)
    assert s["Seccomp"] == "2" and s["NoNewPrivs"] == "1"
    assert all(int(s[k], 16) == 0 for k in ("CapInh", "CapPrm", "CapEff", "CapAmb"))
    limits = pathlib.Path(f"/proc/{pid}/limits").read_text()
    assert re.search(r"Max processes\s+0\s+0", limits) and re.search(r"Max core file size\s+0\s+0", limits)


def test_front_end_of_root(root):
    import pwd
    root.ready()
    pid = root.frontend()
    check_frontend(pid)
    uid = pwd.getpwnam("_execd").pw_uid
    assert status(pid)["Uid"].split() == [str(uid)] * 4
    assert int(status(pid)["CapBnd"], 16) == 0
    assert os.listdir(f"/proc/{pid}/root/") == []
    with pytest.raises(OSError):
        (pathlib.Path(f"/proc/{pid}/root/x")).touch()


def test_front_end_of_an_ordinary_user(user):
    s = Server("user", user, [], "ws://127.0.0.1:0", None)
    try:
        c = s.ready()
        if os.geteuid() == 0:       # its own user may not look: it is not dumpable
            check_frontend(s.frontend())
            if "no file system" in s.log:
                assert os.listdir(f"/proc/{s.frontend()}/root/") == []
        assert c.run_sh("a", "id -u").stdout == f"{user.pw_uid}\n"
    finally:
        s.stop()


def test_an_impossible_message_of_the_front_end_kills_it(tmp_path_factory, user, directory):
    """A front-end that is not ours: wrong order, unknown types, leftover
    bytes, descriptors, foreign grants. The broker kills each and goes on."""
    need_mode("root")
    import shutil
    import subprocess
    for name in ("daemon/root/execd", "daemon/broker/execd-broker", "runner/execd-runner", "runner/execd-files", "runner/http/execd-http",
                 "runner/netproxy/execd-netproxy", "daemon/keys/execd-keys", "daemon/child/execd-child"):
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(BUILD / name, directory / name)
    fake = directory / "daemon/frontend/execd-frontend"
    fake.parent.mkdir()
    shutil.copy(BUILD / "tests/integration/fake_frontend", fake)
    shutil.copy(pathlib.Path(__file__).with_name("fake_frontend.py"), fake.with_suffix(".py"))
    (directory / "case").write_text("0")
    (directory / "version").write_text(str(frontend_version()))
    sink = socket.create_server(("127.0.0.1", 0), backlog=64)   # nobody reads there
    (directory / "sink").write_text(str(sink.getsockname()[1]))
    began = time.monotonic()
    for p in directory.rglob("*"):
        p.chmod(0o755 if p.is_dir() or p.parent.name != directory.name else 0o666)
    mounted = []
    if os.access("/dev/fuse", os.W_OK):
        (directory / "fuse").touch()
        mounted = ["unshare", "--mount", "--propagation", "private", sys.executable,
                   pathlib.Path(__file__).with_name("fuse_file.py"), directory / "fuse"]
    child = subprocess.Popen([*mounted, directory / "daemon/root/execd", "--listen", "ws://127.0.0.1:0", "--user",
                              user.pw_name, "--allow-unauthenticated"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    log = []
    for line in child.stderr:
        log.append(line)
        if "fake: done" in line:
            break
    child.terminate()
    rest = child.stderr.read()
    assert child.wait(15) == 0, rest
    sink.close()
    took = time.monotonic() - began
    assert took < patience(45), f"the broker waited for descriptors that nobody should send: {took:.0f} s"
    text = "".join(log) + rest
    cases = int(re.search(r"fake: done (\d+)", text)[1])
    assert cases >= 10
    assert text.count(": killing it") == cases, text
    assert "no certificate process has verified its certificate" in text


def test_the_log_names_no_secret_and_forges_no_line(spawn):
    s = spawn()
    c = s.connect(headers="Authorization: Bearer tok-secret-1\r\n")
    c.ready()
    c.frame(1, b"{\n\x1b[31m forged\n")
    c.answer(-1)
    assert "tok-secret" not in s.log and c.session_id not in s.log
    assert is_alive(s.frontend())
    poll(lambda: "opened" in s.log)
