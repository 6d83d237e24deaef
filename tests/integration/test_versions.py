# SPDX-License-Identifier: ISC
"""Programs of two releases: a broker speaks to the runners of the release before, and nobody who speaks another version is
taken for somebody who speaks rubbish."""
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess

import pytest
from conftest import BUILD, ROOT, SANITIZED, WRAP, Configured, child_rows, is_alive, kill, poll, runs, stat_of
from execd_client import Closed
from test_broker import ALL, COUNT, replaced, resume, text, whole
from test_reexec import installed, server  # noqa: F401

BROKER, FRONT, RUNNER = "daemon/broker/execd-broker", "daemon/frontend/execd-frontend", "runner/execd-runner"


SPOKEN = {name.lower(): int(n) for name, n in re.findall(
    r"#define (RUNNER|SPAWN|FRONTEND)_VERSION\s+(\d+)",
    (pathlib.Path(__file__).parents[2] / "protocol/ipc/control_version.h").read_text())}
NOW = SPOKEN["runner"]


def of_version(program, channel, version, oldest):
    """The program as a release would have it that speaks these versions: the two numbers are the last fields of
    struct control_layouts."""
    path = BUILD / program
    out = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
    address = int(re.search(rf"(?m)^([0-9a-f]+) \w control_layouts_{channel}$", out)[1], 16)
    out = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout
    for m in re.finditer(r"(?m)^ +\[ *\d+\] \S+ +PROGBITS +([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+)", out):
        start, offset, size = (int(x, 16) for x in m.groups())
        if start <= address < start + size:
            break
    data = bytearray(path.read_bytes())
    at = address - start + offset + 16
    assert struct.unpack_from("<II", data, at)[0] == SPOKEN[channel]
    struct.pack_into("<II", data, at, version, oldest)
    return bytes(data)


def test_runners_of_the_version_before(server):
    """The next broker speaks more, and goes on with them."""
    s = server()
    c = s.connect(token="t").ready()
    c.sh("p", COUNT)
    s.install(BROKER, of_version(BROKER, "runner", NOW + 1, NOW))
    old, runner = s.broker, s.runner(c)
    kill(old)
    c.wait_closed()
    replaced(s, old)
    assert runs(s.broker, s.place / BROKER)
    assert whole(resume(s, c)) == (ALL, 0) and is_alive(runner)


def test_runners_of_a_version_that_is_not_spoken(server):
    """They are left alone, and a broker that speaks it goes on with them."""
    s = server()
    c = s.connect(token="t").ready()
    c.sh("p", COUNT)
    old, runner = s.broker, s.runner(c)
    s.install(BROKER, of_version(BROKER, "runner", NOW + 2, NOW + 1))
    kill(old)
    c.wait_closed()
    s.wait_log(f"session {c.session_id[:8]}: runner {runner}: RUNNER_EVENT_IDENTITY of version {NOW}; "
               f"this program speaks {NOW + 1} to {NOW + 2}; it is left alone")
    replaced(s, old)
    with pytest.raises((Closed, AssertionError)):
        s.connect(token="t").ready(resumeSessionId=c.session_id)
    assert is_alive(runner)
    s.install(BROKER)
    old = s.broker
    kill(old)
    replaced(s, old)
    assert whole(resume(s, c)) == (ALL, 0)


def test_runners_of_the_version_after(server):
    """As when an upgrade is taken back."""
    s = server()
    s.install(RUNNER, of_version(RUNNER, "runner", NOW + 1, NOW))
    old = s.broker
    kill(old)
    replaced(s, old)
    c = s.connect(token="t").ready()
    c.sh("p", COUNT)
    runner = s.runner(c)
    assert runs(runner, s.place / RUNNER)
    old = s.broker
    kill(old)
    c.wait_closed()
    s.wait_log(f"runner {runner}: RUNNER_EVENT_IDENTITY of version {NOW + 1}; this program speaks 1 to {NOW}; it is left alone")
    replaced(s, old)
    assert is_alive(runner)
    kill(runner)
    poll(lambda: not is_alive(runner), what="its end")
    assert s.connect(token="t").ready().run("x", ["/bin/echo", "fine"]).stdout == "fine\n"
    s.install(RUNNER)


def test_a_runner_that_refuses_its_broker(server):
    s = server()
    s.install(RUNNER, of_version(RUNNER, "runner", NOW + 1, NOW + 1))
    old = s.broker
    kill(old)
    replaced(s, old)
    with pytest.raises((Closed, AssertionError)):
        s.connect(token="t").ready()
    s.wait_log(f"RUNNER_COMMAND_CONFIGURE of version {NOW}; this program speaks {NOW + 1} to {NOW + 1}")
    s.install(RUNNER)


def foreign():
    """The broker of a release whose version root does not speak."""
    return (BUILD / "tests/integration/fake_broker").read_bytes()


PREVIOUS = "the installed broker did not come to serve: starting the previous programs"


@pytest.mark.parametrize("reexec", [False, True], ids=["", "after a re-exec"])
def test_a_broker_that_root_does_not_speak_with(server, reexec):
    """The previous one serves in its place, with the programs of its version, until one comes that root speaks with."""
    s = server()
    c = s.connect(token="t").ready()
    c.sh("p", COUNT)
    program = s.place / BROKER
    serves = os.stat(program).st_ino
    now, front = SPOKEN["spawn"], SPOKEN["frontend"]
    # Their inodes are those of files that are open, and are not given to others.
    s.install(BROKER, foreign())
    s.install(FRONT, of_version(FRONT, "frontend", front + 1, front + 1))
    if reexec:
        s.reexec()
    for _ in range(2):
        told, old = s.log.count(PREVIOUS), s.broker
        kill(old)
        c.wait_closed()
        poll(lambda: s.log.count(PREVIOUS) > told, what="line in the log")   # noqa: B023
        replaced(s, old)
        assert not ROOT or os.stat(f"/proc/{s.broker}/exe").st_ino == serves
        assert s.connect(token="t").ready().run("x", ["/bin/echo", "new"]).stdout == "new\n"
        c = resume(s, c)
    assert f"impossible command from the broker: 70 of version {now + 1} in 12 bytes; this program speaks version {now}" in s.log
    s.install(BROKER)
    s.install(FRONT)
    old = s.broker
    kill(old)
    c.wait_closed()
    replaced(s, old)
    assert runs(s.broker, program)
    assert whole(resume(s, c)) == (ALL, 0)


@pytest.mark.parametrize("content", ["no program", "fails", "seals and fails"])
def test_a_broker_that_does_not_come_to_serve(server, content):
    """The previous one is started, with its programs. A list without listeners closes those that were there."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    s = server(port=port)
    serves = os.stat(s.place / BROKER).st_ino
    s.install(BROKER, {"no program": b"#", "fails": pathlib.Path("/bin/false").read_bytes(),
                       "seals and fails": (BUILD / "tests/integration/fake_broker_sealed").read_bytes()}[content])
    s.install(FRONT, of_version(FRONT, "frontend", SPOKEN["frontend"] + 1, SPOKEN["frontend"] + 1))
    for n in range(2):
        old = s.broker
        kill(old)
        if content == "seals and fails":   # this broker stops execd, which becomes no other user before it
            poll(lambda: stat_of(s.pid)[1] == "T", what="stop")
            poll(lambda: child_rows(s.pid) and {row[2] for row in child_rows(s.pid) if row[1] == "execd-broker"} <= {"Z"}, what="end of the broker")
            s.child.send_signal(signal.SIGCONT)
        poll(lambda n=n: s.log.count(PREVIOUS) == n + 1, what="line in the log")
        replaced(s, old)
        assert not ROOT or os.stat(f"/proc/{s.broker}/exe").st_ino == serves
        assert s.connect(token="t").ready().run("x", ["/bin/echo", "new"]).stdout == "new\n"
    s.install(FRONT)
    s.install(BROKER)
    old = s.broker
    kill(old)
    replaced(s, old)
    assert runs(s.broker, s.place / BROKER)


def test_a_broker_that_is_gone(server):
    """As in the middle of an installation."""
    s = server()
    (s.place / BROKER).unlink()
    old = s.broker
    kill(old)
    s.wait_log("/daemon/broker/execd-broker: starting the previous programs: No such file or directory")
    replaced(s, old)
    assert s.connect(token="t").ready().run("x", ["/bin/echo", "new"]).stdout == "new\n"


def test_programs_of_a_reload_that_was_refused(server):
    """The broker that goes on serving starts no front-end of the version of the broker that did not come to serve."""
    s = server()
    now = SPOKEN["frontend"]
    s.install(FRONT, of_version(FRONT, "frontend", now + 1, now + 1))
    s.reload("nonsense", "reload: refused")
    kill(s.frontend())
    replaced(s, None)
    assert s.connect(token="t").ready().run("x", ["/bin/echo", "new"]).stdout == "new\n"


def test_a_front_end_that_refuses_its_broker(server):
    s = server()
    now = SPOKEN["frontend"]
    s.install(FRONT, of_version(FRONT, "frontend", now + 1, now + 1))
    old = s.broker
    kill(old)
    s.wait_log(f"impossible configuration from the broker: BROKER_EV_CONFIGURE of version {now}; "
               f"this program speaks {now + 1} to {now + 1}")
    s.install(FRONT)
    old = poll(lambda: s.broker, what="broker")
    kill(old)
    replaced(s, old)
    s.connect(token="t").ready()


# --- the release before ---------------------------------------------------

# A list of fields that changes without SAVED_VERSION fails, too.
SOURCE = pathlib.Path(__file__).parents[2]
[RELEASE] = re.findall(r"^[0-9a-f]{40}$", (SOURCE / "tests/last-release").read_text(), re.M)
NAMES = ("execd", "execd-broker", "execd-frontend", "execd-runner", "execd-files", "execd-http", "execd-keys", "execd-netproxy",
         "execd-child")


def test_root_reads_the_state_of_the_release_before():
    """By their headers alone: the upgrade itself is tried at night."""
    header = "daemon/root/saved.h"
    then = subprocess.run(["git", "-c", "safe.directory=*", "-C", SOURCE, "show", f"{RELEASE}:{header}"], capture_output=True, text=True)
    if then.returncode != 0:
        pytest.skip(f"THE RELEASE BEFORE IS NOT TESTED: {then.stderr.strip()}")

    def defined(name, text):
        return int(re.search(rf"(?m)^#define {name} +(\d+)", text)[1])

    now = (SOURCE / header).read_text()
    assert defined("SAVED_OLDEST", now) <= defined("SAVED_VERSION", then.stdout) <= defined("SAVED_VERSION", now)


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    """The programs of that release, built from the history."""
    if SANITIZED or WRAP:
        pytest.skip("THE RELEASE BEFORE IS NOT TESTED: it is built without a sanitizer")
    archive = subprocess.run(["git", "-c", "safe.directory=*", "-C", SOURCE, "archive", RELEASE], capture_output=True)
    if archive.returncode != 0:
        pytest.skip(f"THE RELEASE BEFORE IS NOT TESTED: {archive.stderr.decode(errors='replace').strip()}")
    place = tmp_path_factory.mktemp("before")
    subprocess.run(["tar", "x", "-C", place], input=archive.stdout, check=True)
    env = {**os.environ, "CC": "ccache gcc" if shutil.which("ccache") else "gcc"}
    subprocess.run(["meson", "setup", "build", "-Doptimization=0"], cwd=place, env=env, check=True, capture_output=True)
    targets = subprocess.run(["ninja", "-C", "build", "-t", "targets", "all"], cwd=place, capture_output=True, text=True).stdout
    programs = [m[1] for name in NAMES if (m := re.search(rf"(?m)^(\S+/{name}): ", targets))]
    subprocess.run(["ninja", "-C", "build", *programs], cwd=place, check=True, capture_output=True)
    return place / "build"


def install_release(prefix, build):
    """As a package does, in the layout that every release shares."""
    for name, built in [(n, p) for n in NAMES for p in build.rglob(n) if p.is_file() and os.access(p, os.X_OK)]:
        to = prefix / ("sbin" if name == "execd" else "libexec/execd") / name
        to.parent.mkdir(parents=True, exist_ok=True)
        new = to.with_name(f"{name}.new")
        shutil.copy(built, new)
        new.rename(to)


def test_an_upgrade_from_the_release_before(before, mode, user, directory, monkeypatch):
    """Its sessions go on under today's root and today's broker, with their runners of then."""
    prefix = directory / "prefix"
    install_release(prefix, before)
    monkeypatch.setattr("conftest.EXECD", prefix / "sbin/execd")
    s = Configured(mode, user, directory / "execd.conf", text(user, directory))
    s.wait_log(": serving")
    s.fronts = 1
    clients = [s.connect(token="t").ready() for _ in range(3)]
    for c in clients:
        c.sh("p", COUNT)
    clients[2].drop()
    runners = [s.runner(c) for c in clients]
    install_release(prefix, BUILD)
    old = s.broker
    s.child.send_signal(signal.SIGUSR2)
    s.wait_log("re-exec: this version goes on")
    if is_alive(old):
        kill(old)
    for c in clients:
        c.wait_closed()
    replaced(s, old)
    for c in clients:
        assert whole(resume(s, c)) == (ALL, 0)
    assert all(is_alive(r) for r in runners)
    # A runner of then has its program of then; the next one has today's.
    n = s.connect(token="t").ready()
    assert n.run("x", ["/bin/echo", "new"]).stdout == "new\n"
    today = prefix / "libexec/execd/execd-runner"
    assert runs(s.pid, prefix / "sbin/execd") and runs(s.runner(n), today)
    assert not ROOT or not runs(runners[0], today)
    s.stop()
    assert not any(is_alive(r) for r in runners)
