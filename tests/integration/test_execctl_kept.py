# SPDX-License-Identifier: ISC
"""execctl and sessions that outlive it: what run -d asks for, what ps, logs and wait find, and attach to what
somebody else has (execctl(1))."""
import asyncio
import datetime
import fcntl
import json
import os
import pty
import re
import signal
import struct
import termios
import threading

import pytest
import websockets
from conftest import digest, poll
from execctl import Execctl

TEXT = ("[listener main]\naddress = ws://127.0.0.1:0\nallow-unauthenticated = a\n[identity a]\nuser = {user}\n"
        "sandbox-allow-unsandboxed = yes\n{identity}\n[limits]\ndetached-ttl = 100ms\n{limits}\n")


@pytest.fixture
def kept(configured, user):
    def start(limits="", identity=""):
        return configured(TEXT.format(user=user.pw_name, limits=limits, identity=identity))

    return start


def begin(ctl, directory, *more, script="echo two; exit 7"):
    """A command that goes on when there is a file. Returns its session."""
    return ctl("run", "-d", *more, "sh", "-c", f"echo one; until [ -e {directory}/go ]; do sleep 0.05; done; {script}")


def rows(ctl, *args):
    return {r["session"]: r for r in map(json.loads, ctl.ok("--json", "ps", *args).splitlines())}


def home(directory, name):
    """Of another user of the same server, who has no records."""
    (directory / name).mkdir()
    return directory / name


def test_a_detached_command_is_kept(kept, directory):
    s = kept()
    ctl = Execctl(directory, s.url)
    r = begin(ctl, directory)
    said = re.fullmatch("execctl: the session is kept until the command has ended and 10 minutes more, at most until (.*)\n", r.err)
    until = datetime.datetime.fromisoformat(said[1])
    assert datetime.timedelta(hours=23) < until - datetime.datetime.now() < datetime.timedelta(hours=25)
    session = r.out.decode().strip()
    # One that nobody asked to keep has come and gone meanwhile.
    other = ctl.ok("run", "-d", "--keep", "none", "sleep", "100").decode().strip()
    s.wait_log(f"session {other[:8]}: not resumed within")
    listed = ctl.ok("ps").decode()
    assert re.search(rf"^{session[:12]}  00:0\d    left         23h59m  sh -c echo one", listed, re.M), listed
    assert other[:12] not in listed and not any(other in str(f) for f in (directory / ".execctl").iterdir())
    (directory / "go").touch()
    assert ctl("wait", session).code == 7
    assert session not in rows(ctl) and rows(ctl, "--all")[session]["state"] == "ended"
    assert ctl.ok("logs", session) == b"one\ntwo\n" == ctl.ok("logs", session[:8]), "as often as one likes"
    assert ctl("wait", session).code == 7


def test_what_has_ended_is_listed_until_somebody_was_told(kept, directory):
    s = kept()
    ctl = Execctl(directory, s.url)
    session = begin(ctl, directory).out.decode().strip()
    assert rows(ctl)[session]["state"] == "left"
    (directory / "go").touch()
    row = poll(lambda: (r := rows(ctl)[session])["state"] == "ended" and r, what="end of the command")
    assert row["exitCode"] == 7 and re.search(rf"^{session[:12]}  \S+ +ended: 7 ", ctl.ok("ps").decode(), re.M), row
    assert 500000 < row["endsInMs"] <= 600000
    assert ctl("attach", session).code == 7
    assert session not in rows(ctl)


def test_keep_so_long(kept, directory):
    s = kept()
    ctl = Execctl(directory, s.url)
    r = begin(ctl, directory, "--keep", "300ms")
    assert "ended and 300 milliseconds more" in r.err
    session = r.out.decode().strip()
    (directory / "go").touch()
    s.wait_log(f"session {session[:8]}: kept for")
    poll(lambda: f"session {session[:8]}: ended" in s.log, what="end of the session")
    assert rows(ctl, "--all") == {}
    r = ctl("logs", session)
    assert r.code == 255 and "the server has none that begins so" in r.err
    for args, why in (("--keep", "1h"), "use --detach"), (("-d", "--keep", "soon"), "not a duration"):
        r = ctl("run", *args, "true")
        assert r.code == 255 and why in r.err


@pytest.mark.parametrize("limits, identity, why", [
    ("max-kept-sessions = none", "", "0 sessions are kept, and no more can be: max-kept-sessions = 0 of [limits]"),
    ("", "max-detached-ttl = none", "no session is kept: max-detached-ttl = none of identity a")])
def test_what_is_not_kept_is_not_started(kept, directory, limits, identity, why):
    s = kept(limits, identity)
    ctl = Execctl(directory, s.url)
    r = ctl("run", "-d", "touch", f"{directory}/started")
    assert r.code == 125 and why in r.err and r.out == b"" and not (directory / "started").exists()
    r = ctl("run", "-d", "--keep", "none", "touch", f"{directory}/started")
    assert r.code == 0 and "as any session without a client" in r.err
    poll((directory / "started").exists)
    assert ctl("--quiet", "run", "-d", "--keep", "none", "true").err == ""


def test_from_another_machine(kept, directory):
    """Without a record: by the beginning of the id, and the newest command is meant."""
    s = kept()
    here, there = Execctl(home(directory, "here"), s.url), Execctl(home(directory, "there"), s.url)
    session = begin(here, directory).out.decode().strip()
    row = rows(there)[session]
    assert row == {**row, "url": s.url, "state": "left", "attachedPid": None} and "command" not in row
    assert poll(lambda: there.ok("logs", session[:8]), what="output") == b"one\n"
    (directory / "go").touch()
    assert there("wait", session[:8]).code == 7
    assert there.ok("logs", session[:8], "-p", row_process(here, session)) == b"one\ntwo\n"
    r = there("logs", "ffffffff")
    assert r.code == 255 and "there is no record of a session `ffffffff', and the server has none that begins so" in r.err
    other = there.ok("run", "-d", "sleep", "100").decode().strip()
    there.ok("kill", "-s", "KILL", other)
    more = here.ok("run", "-d", "sleep", "100").decode().strip()
    there.ok("kill", "-s", "KILL", more[:10])
    assert here("wait", more).code == 137


def row_process(ctl, session):
    return rows(ctl, "--all")[session]["process"]


def test_ps_never_lists_the_dead(kept, directory):
    s, gone = kept(), kept()
    ctl, lost = Execctl(directory, s.url), Execctl(directory, gone.url)
    session, dead = (begin(c, directory).out.decode().strip() for c in (ctl, lost))
    assert set(rows(ctl)) == {session, dead}, "a server of a record is known"
    gone.stop()
    r = ctl("--json", "ps")
    assert [json.loads(x)["session"] for x in r.out.splitlines()] == [session]
    assert r.code == 125 and gone.url in r.err and r.err.count("\n") == 1
    assert set(rows(ctl, "-u", s.url)) == {session}, "who names a server hears of no other"
    # Its runner dies: the record goes.
    c = s.ready(resumeSessionId=session)
    c.call("session/end")
    c.wait_closed()
    assert session not in ctl("ps", "--all").out.decode()
    assert session not in os.listdir(directory / ".execctl") and dead in os.listdir(directory / ".execctl")


def test_ps_forgets_what_cannot_be_there_any_more(kept, directory):
    """A server that has gone is not named for ever."""
    s, gone = kept(), kept()
    ctl = Execctl(directory, s.url)
    session = begin(Execctl(directory, gone.url), directory).out.decode().strip()
    gone.stop()
    record = directory / ".execctl" / session

    def longer_ago(**changes):
        r = json.loads(record.read_text())
        assert r["livesMs"] == 24 * 3600 * 1000
        record.write_text(json.dumps({**r, "leftMs": r["leftMs"] - r["livesMs"] - 200000, **changes}))

    r = ctl("ps")
    assert r.code == 125 and "what it keeps is not listed, and forgotten when it cannot be there any more" in r.err
    longer_ago(pid=(1 << 22) + 1)
    assert "is forgotten" not in ctl("ps").err and record.exists(), "nobody knows when one that was killed left"
    longer_ago()
    r = ctl("ps")
    assert f"execctl: session {session} (sh -c echo one; " in r.err and "is forgotten: nobody came back" in r.err
    r = ctl("ps")
    assert (r.code, r.err) == (0, "") and not record.exists()


def test_attached_elsewhere(kept, directory):
    s = kept()
    here, there = Execctl(home(directory, "here"), s.url), Execctl(home(directory, "there"), s.url)
    p = here.popen("run", "sh", "-c", f"echo one; until [ -e {directory}/go ]; do sleep 0.05; done; echo two; exit 7")
    assert p.stdout.readline() == b"one\n"
    session, = rows(here)
    assert session not in rows(there), "it is somebody's, and is not looked for"
    row = rows(there, "--all")[session]
    assert row["state"] == "attached" and row["peer"].startswith("websocket 127.0.0.1:")
    r = there("attach", session[:8])
    assert r.code == 125 and r.err == (
        f"execctl: the session is attached to another client, {row['peer']}; `execctl watch {session[:8]}' shows it, "
        f"`execctl attach --steal {session[:8]}' takes it over\n")
    r = there("logs", session)
    assert (r.code, r.out, r.err) == (0, b"one\n", ""), "who only reads does so beside it"
    w, waits = there.popen("watch", session), there.popen("wait", session)
    assert w.stdout.readline() == b"one\n"
    assert f", execctl {p.pid} here; " in here("attach", session).err
    thief = there.popen("attach", "--steal", session)
    assert thief.stdout.readline() == b"one\n"
    out, err = p.communicate(timeout=20)
    assert p.returncode == 254, (p.returncode, err)
    assert out == b"" and re.fullmatch(
        rb"execctl: the session was taken over by another client, websocket 127.0.0.1:\d+; the command goes on there\n", err)
    (directory / "go").touch()
    assert thief.communicate(timeout=20) == (b"two\n", b"") and thief.returncode == 7
    assert w.communicate(timeout=20)[0] == b"two\n" and w.returncode == 7 and waits.wait(20) == 7


def test_who_looks_kills_nothing(kept, directory):
    """`execctl logs -f X | head`, and an interrupted look: the command goes on."""
    s = kept()
    ctl = Execctl(directory, s.url)
    script = f"until [ -e {directory}/go ]; do seq 1000; sleep 0.1; done; exit 7"
    session = ctl.ok("run", "-d", "sh", "-c", script).decode().strip()
    for args in ["logs", "-f"], ["attach", "-n"], ["watch"]:
        holds = ctl.popen("attach", "-n", session) if args == ["watch"] else None
        assert holds is None or holds.stdout.readline()
        p = ctl.popen(*args, session)
        assert p.stdout.readline()
        p.stdout.close()
        assert p.wait(20) == 141
        assert p.stderr.read() == b"execctl: standard output: Broken pipe; the command goes on\n"
        if holds is not None:
            holds.kill()
            holds.communicate()
    for args, sig in (["logs", "-f"], signal.SIGINT), (["wait"], signal.SIGTERM):
        p = ctl.popen("-v", *args, session)
        assert p.stdout.readline() if args != ["wait"] else b"session" in p.stderr.readline()
        p.send_signal(sig)
        assert p.wait(20) in (128 + sig, -sig), "the latter before it has begun to wait"
        p.communicate()
    assert rows(ctl)[session]["state"] != "ended"
    (directory / "go").touch()
    assert ctl("wait", session).code == 7


def test_nothing_is_stolen_from_another_identity(configured, user, directory):
    s = configured("[listener main]\naddress = ws://127.0.0.1:0\n" + "".join(
        f"[identity {i}]\nuser = {user.pw_name}\nsandbox-allow-unsandboxed = yes\ntoken-sha256 = {digest(i)}\n" for i in "ab"))
    a, b = (Execctl(home(directory, i), s.url, EXECD_TOKEN=i) for i in "ab")
    session = begin(a, directory).out.decode().strip()
    assert rows(b, "--all") == {}
    r = b("attach", "--steal", session)
    assert r.code == 255 and "the server has none that begins so" in r.err
    r = b("attach", "--steal", session, "-p", "x")
    assert r.code == 254 and "unknown session" in r.err
    a.ok("kill", session)


def test_attach_sets_the_size(kept, directory):
    """The command's terminal has that of the user who attaches."""
    s = kept()
    ctl = Execctl(directory, s.url)
    script = f"trap 'stty size' WINCH; stty size; until [ -e {directory}/go ]; do sleep 0.05; done"
    session = ctl.ok("run", "-d", "-t", "sh", "-c", script).decode().strip()
    poll(lambda: ctl.ok("logs", session) == b"24 80\r\n", what="output")
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 51, 132, 0, 0))
    p = ctl.popen("attach", session, stdin=slave)
    os.close(slave)
    assert [p.stdout.readline() for _ in range(2)] == [b"24 80\r\n", b"51 132\r\n"]
    (directory / "go").touch()
    assert p.wait(20) == 0
    os.close(master)


@pytest.fixture
def plain():
    """A server with none of these capabilities. Yields its URL and the sessions that it has."""
    have, attached = set(), set()

    async def serve(ws):
        async for message in ws:
            m = json.loads(message)
            wanted = m.get("params", {}).get("resumeSessionId")
            answer = {"result": {"sessionId": wanted or "new", "environmentInfo": {"shell": {"name": "sh", "path": "/bin/sh"}}}}
            if wanted in attached:
                answer = {"error": {"code": -32010, "message": f"session {wanted} is already attached to another connection"}}
            elif wanted and wanted not in have:
                answer = {"error": {"code": -32600, "message": f"unknown session id {wanted}"}}
            if "id" in m:
                await ws.send(json.dumps({"id": m["id"], **answer}))

    ready, state = threading.Event(), {}

    async def main():
        state["loop"], state["stop"] = asyncio.get_running_loop(), asyncio.Event()
        async with websockets.serve(serve, "127.0.0.1", 0) as s:
            state["port"] = s.sockets[0].getsockname()[1]
            ready.set()
            await state["stop"].wait()

    t = threading.Thread(target=lambda: asyncio.run(main()))
    t.start()
    assert ready.wait(30)
    yield f"ws://127.0.0.1:{state['port']}", have, attached
    state["loop"].call_soon_threadsafe(state["stop"].set)
    t.join(30)


def test_a_server_without_all_that(plain, directory):
    """ps resumes what it cannot watch; what is attached is there, too."""
    url, have, attached = plain
    (directory / ".execctl").mkdir()
    for session in "free", "held", "gone":
        (directory / ".execctl" / session).write_text(json.dumps({"session": session, "process": "p", "url": url, "command": "x"}))
    have.add("free")
    attached.add("held")
    ctl = Execctl(directory, url)
    assert {k: v["state"] for k, v in rows(ctl).items()} == {"free": "left", "held": "attached"}
    assert sorted(os.listdir(directory / ".execctl")) == ["free", "held"]
    r = ctl("attach", "held")
    assert r.code == 125 and r.err.endswith("attached to another client\n")
    r = ctl("attach", "--steal", "held")
    assert r.code == 125 and "does not announce sessionTakeOver" in r.err
    r = ctl("logs", "other")
    assert r.code == 255 and "the server does not list its sessions" in r.err
    r = ctl("run", "-d", "--keep", "1h", "true")
    assert r.code == 125 and "does not announce sessionKeep" in r.err
