# SPDX-License-Identifier: ISC
"""The runner's and the front-end's doors to the broker, every message in
every state: what is not in the table, or not permitted now, ends them with a
log line. (The broker's own: test_isolation.py.)"""
import array
import os
import pathlib
import re
import select
import socket
import struct
import subprocess

import pytest
from conftest import BUILD, RUNNER, WRAP, channel_version, frontend_version

CONFIGURE, ATTACH, DETACH, TERMINATE, WATCH, SANDBOX = 30, 32, 34, 36, 38, 40
AUDIT, AUDIT_STATE, RECORDING_FILE, IDENTIFY, SHOW = 42, 44, 46, 48, 56
FRONTEND = BUILD / "daemon/frontend/execd-frontend"


def u32(n):
    return struct.pack("<I", n)


# The descriptors of CONFIGURE: execd-http and execd-files.
HELPERS = 2


def u64(n):
    return struct.pack("<Q", n)


def string(s):
    return u32(len(s)) + s


def configure(namespace=0, userns=0, cgroups=0, grace_ms=100):
    """The runner's configuration; it is no pid 1 here."""
    return (u32(CONFIGURE) + u32(1) + string(b"0123") + string(b"sha256:0") + string(b"/bin/sh") + string(b"/") + string(b"") +
            bytes([namespace, 0, userns, 0, cgroups]) + 2 * u32(0) + u64(0) + bytes(3) + u64(0) +
            u32(150000) + u32(80000) + u32(grace_ms) + u64(1 << 20) + u64(64 << 20) + u32(15000) + u32(20000))


def sandbox(profile=3, unix=0):
    """What the operator permits: everything."""
    return (u32(SANDBOX) + bytes([profile, 1, 1, 1, 0, 0]) + 3 * string(b"") + string(b"/run") + string(b".git") +
            bytes([0, 3, 0, 0, 0, unix, 0, 0, 0, 0, 0, 0]) + u64(1 << 20) + 4 * u64(0) + 3 * u32(0) + bytes(1 + 2 * 16) +
            bytes([1, 0, 0]) + bytes(2 * 16) + u32(256) + u64(0) + 8 * string(b""))


def attach(generation=1):
    return u32(ATTACH) + u32(generation) + string(b"websocket 1.2.3.4:5")


def watch(number=1):
    return u32(WATCH) + u32(number) + string(b"websocket 1.2.3.4:6")


class Program:
    """A program with our end of its control channel."""

    def __init__(self, *argv):
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        keep = os.dup(theirs.fileno())
        theirs.close()
        self.child = subprocess.Popen(
            [*(WRAP if argv[0] == RUNNER else []), *argv], preexec_fn=lambda: os.dup2(keep, 3), pass_fds=[3], text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        os.close(keep)

    def send(self, message, fds=0):
        null, files = os.open("/dev/null", os.O_RDWR), os.open(BUILD / "runner/execd-files", os.O_PATH)
        given = [null, files, null, null][:fds]
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", given))] if fds else []
        try:
            self.control.sendmsg([message], ancillary)
        except BrokenPipeError:
            pass
        os.close(null)
        os.close(files)

    def attach(self, generation=1):
        """A session channel, as the front-end would hold it."""
        ours, theirs = socket.socketpair()
        self.control.sendmsg([attach(generation)],
                             [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [theirs.fileno()]))])
        theirs.close()
        return ours

    def end(self):
        """Its status and log; it ends by itself, or when we are gone."""
        log = self.child.communicate(timeout=20)[1]
        self.control.close()
        return self.child.returncode, log


COMMANDS = {
    "CONFIGURE": (configure(), HELPERS), "SANDBOX": (sandbox(), 0), "ATTACH": (attach(), 1), "DETACH": (u32(DETACH), 0),
    "TERMINATE": (u32(TERMINATE), 0), "WATCH": (watch(), 1),
    "AUDIT": (u32(AUDIT) + b"\0" + 2 * string(b""), 0), "AUDIT_STATE": (u32(AUDIT_STATE) + b"\1" + string(b""), 0),
    "RECORDING_FILE": (u32(RECORDING_FILE) + u32(5), 0), "IDENTIFY": (u32(IDENTIFY) + u32(1), 0),
    "COMMANDS": (u32(SHOW), 0),
}
STATES = {"FRESH": [], "CONFIGURED": ["CONFIGURE"], "READY": ["CONFIGURE", "SANDBOX"]}
# With a record, which comes before the sandbox or never.
AUDITED = {"AUDITED": ["CONFIGURE", "AUDIT"], "READY, AUDITED": ["CONFIGURE", "AUDIT", "SANDBOX"]}
PERMITTED = {("FRESH", "CONFIGURE"), ("CONFIGURED", "SANDBOX"), ("CONFIGURED", "AUDIT"), ("READY", "ATTACH"),
             # Each new broker says the sandbox's limits again.
             ("READY", "SANDBOX"), ("READY, AUDITED", "SANDBOX"),
             ("READY", "DETACH"), ("READY", "TERMINATE"), ("READY", "WATCH"), ("AUDITED", "SANDBOX"),
             ("AUDITED", "AUDIT_STATE"), ("READY, AUDITED", "ATTACH"), ("READY, AUDITED", "DETACH"),
             ("READY", "COMMANDS"), ("READY, AUDITED", "COMMANDS"),
             ("READY", "IDENTIFY"), ("READY, AUDITED", "IDENTIFY"), ("READY, AUDITED", "TERMINATE"), ("READY, AUDITED", "WATCH"), ("READY, AUDITED", "AUDIT_STATE")}


@pytest.mark.parametrize("state", STATES | AUDITED)
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_in_every_state(state, command):
    p = Program(RUNNER)
    for before in (STATES | AUDITED)[state]:
        p.send(*COMMANDS[before])
    p.send(*COMMANDS[command])
    if (state, command) in PERMITTED:
        p.control.shutdown(socket.SHUT_WR)
        status, log = p.end()
        assert status == 0 and "impossible" not in log, log
    else:
        status, log = p.end()
        assert status == 1 and f"impossible command from the broker: RUNNER_COMMAND_{command}" in log, log


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_to_a_runner_that_ends(command):
    """Its command does not mind TERM, so it ends in its own time."""
    p = Program(RUNNER)
    p.send(configure(grace_ms=60000), HELPERS)
    p.send(*COMMANDS["SANDBOX"])
    channel = p.attach()
    for text in (b'{"id":1,"method":"initialize","params":{"clientName":"x"}}', b'{"method":"initialized"}',
                 b'{"id":2,"method":"process/start","params":{"processId":"p","argv":["/bin/sh","-c",'
                 b'"trap : TERM; echo up; while :; do sleep 100; done"],"cwd":"file:///","env":{},"tty":false}}'):
        channel.sendall(u32(len(text)) + text)
    said = b""
    while b"process/output" not in said:
        said += channel.recv(1000)
    p.send(*COMMANDS["TERMINATE"])
    p.send(*COMMANDS[command])
    if command in ("COMMANDS", "DETACH", "IDENTIFY", "SANDBOX", "TERMINATE"):   # two brokers may both end it
        p.control.shutdown(socket.SHUT_WR)
        status, log = p.end()
        assert status == 0 and "impossible" not in log, log
    else:
        status, log = p.end()
        assert status == 1 and f"impossible command from the broker: RUNNER_COMMAND_{command}" in log, log


def test_a_configuration_of_another_version():
    p = Program(RUNNER)
    p.send(configure().replace(u32(CONFIGURE) + u32(1), u32(CONFIGURE) + u32(99)), HELPERS)
    status, log = p.end()
    assert status == 1, log
    assert "impossible command from the broker: RUNNER_COMMAND_CONFIGURE of version 99; this program speaks 1 to " in log, log


def test_a_broker_of_another_version_asks():
    """It hears which version the runner speaks, and decides."""
    p = Program(RUNNER)
    p.send(*COMMANDS["CONFIGURE"])
    p.send(*COMMANDS["SANDBOX"])
    for version in 0, 1, 2, 0xffffffff:
        p.send(u32(IDENTIFY) + u32(version))
        assert p.control.recv(1000)[:8] == u32(59) + u32(channel_version("RUNNER"))
    p.send(u32(IDENTIFY) + u32(1) + b"x")
    status, log = p.end()
    assert status == 1 and "impossible command from the broker: RUNNER_COMMAND_IDENTIFY" in log, log


@pytest.mark.parametrize("state", STATES)
def test_what_is_no_order_in_every_state(state):
    """Messages of the other doors, and numbers that are nothing."""
    for number in set(range(100)) - {CONFIGURE, ATTACH, DETACH, TERMINATE, WATCH, SANDBOX} - ({IDENTIFY, SHOW} if state == "READY" else set()):
        p = Program(RUNNER)
        for before in STATES[state]:
            p.send(*COMMANDS[before])
        p.send(u32(number))
        status, log = p.end()
        assert status == 1 and "impossible command from the broker" in log, (number, log)


@pytest.mark.parametrize("message, fds", [
    (b"\x1e", 0), (u32(999), 0), (u32(14), 0), (u32(41), 0),
    (configure() + b"x", 2), (configure()[:-1], 2), (configure(2), 2), (configure(), 1), (configure(), 3),
    (configure(userns=1), 2), (configure(userns=1), 4),
    (configure(userns=2), 3),
    (configure(cgroups=16), 3), (configure(cgroups=1), 2), (configure(cgroups=1, userns=1), 3),
    (u32(CONFIGURE) + u32(1) + string(b"0" * 5000), 2), (configure() + b"x" * 30000, 2)])
def test_malformed_configurations(message, fds):
    p = Program(RUNNER)
    p.send(message, fds)
    status, log = p.end()
    assert status == 1 and "impossible" in log, (status, log)


def test_a_broker_that_wants_no_session_is_no_error():
    """A spare runner ends so."""
    p = Program(RUNNER)
    p.control.shutdown(socket.SHUT_WR)
    assert p.end() == (0, "")


@pytest.mark.parametrize("message, fds", [
    (attach(), 0), (attach(), 2), (attach() + b"x", 1), (u32(DETACH), 1), (u32(DETACH) + b"x", 0),
    (u32(TERMINATE), 1), (u32(TERMINATE) + b"x", 0), (watch(), 0), (watch(), 2), (watch() + b"x", 1)])
def test_malformed_commands(message, fds):
    p = Program(RUNNER)
    p.send(*COMMANDS["CONFIGURE"])
    p.send(*COMMANDS["SANDBOX"])
    p.send(message, fds)
    status, log = p.end()
    assert status == 1 and "impossible command from the broker" in log, log


@pytest.mark.parametrize("frame", [u32(0), u32((64 << 20) + 1) + b"x", u32(0xffffffff)])
def test_an_impossible_frame_detaches(frame):
    p = Program(RUNNER)
    p.send(*COMMANDS["CONFIGURE"])
    p.send(*COMMANDS["SANDBOX"])
    channel = p.attach()
    channel.sendall(frame)
    assert p.control.recv(100) == u32(41) + u32(1) + b"\0\1", "DETACHED, and alive; nothing was started"
    assert channel.recv(1) == b""
    again = p.attach(2)
    text = b'{"id":1,"method":"initialize","params":{"clientName":"x"}}'
    again.sendall(u32(len(text)) + text)
    assert b'"sessionId":"0123"' in again.recv(1000)
    p.control.close()
    assert "impossible frame" in p.end()[1]


@pytest.mark.parametrize("command", [attach(), watch()], ids=["attached", "watching"])
def test_nobody_can_make_a_runner_wait_for_a_channel(command):
    """Its front-end made the channel: it may have kept the runner's end, too."""
    p = Program(RUNNER)
    p.send(*COMMANDS["CONFIGURE"])
    p.send(*COMMANDS["SANDBOX"])
    ours, theirs = socket.socketpair()
    p.control.sendmsg([command], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [theirs.fileno()]))])
    text = b'{"id":1,"method":"initialize","params":{"clientName":"x"}}'
    ours.sendall(u32(len(text)) + text)
    assert b'"sessionId":"0123"' in ours.recv(1000)
    theirs.setblocking(True)
    ours.setblocking(False)
    again = b'{"id":2,"method":"process/list","params":{}}'
    asked = (u32(len(again)) + again) * 200000
    while select.select([], [ours], [], .5)[1]:     # until neither takes any more
        asked = asked[ours.send(asked[:1 << 16]):]
    assert asked
    p.send(u32(TERMINATE))
    assert p.end()[0] == 0


def test_a_watching_channel_ends_alone():
    p = Program(RUNNER)
    p.send(*COMMANDS["CONFIGURE"])
    p.send(*COMMANDS["SANDBOX"])
    attached = p.attach()
    ours, theirs = socket.socketpair()
    p.control.sendmsg([watch(7)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [theirs.fileno()]))])
    theirs.close()
    ours.sendall(u32(0))
    assert p.control.recv(100) == u32(43) + u32(7) + b"\0", "UNWATCHED, and alive"
    assert ours.recv(1) == b""
    text = b'{"id":1,"method":"initialize","params":{"clientName":"x"}}'
    attached.sendall(u32(len(text)) + text)
    assert b'"sessionId":"0123"' in attached.recv(1000)
    p.control.close()
    assert "impossible frame" in p.end()[1]


KEYS = (pathlib.Path(__file__).parents[2] / "protocol/ipc/frontend_keys.def").read_text()
WIDTHS = {"auth": 1, "bool": 1, "serve": 1, "bytes": 8}


def nets(count):
    return b"\0" * 17 * 16 + u32(count)


def keys(macro, **values):
    """The rows of a table, as a message has them. What is not named is 0."""
    rows = re.findall(rf'^{macro}\("[\w-]+", (\w+), (\w+)', KEYS, re.M)
    assert set(values) <= {member for _, member in rows}, values
    return b"".join(nets(values.get(member, 0)) if type == "nets" else
                    values.get(member, 0).to_bytes(WIDTHS.get(type, 4), "little") for type, member in rows)


def frontend_configuration(listeners=0, type=1, exempt=0):
    penalties = {member: 5000 for member in re.findall(r"\bpenalty_\w+", KEYS)}
    return (u32(type) + (u32(frontend_version()) if type == 1 else b"") + b"\0" +
            keys("FRONTEND_LIMIT", ping_interval_ms=15000, pong_deadline_ms=20000, pre_auth_deadline_ms=10000,
                 max_connections=100, max_per_source=100, max_unauthenticated=100,
                 max_message_bytes=64 << 20, exempt=exempt, **penalties) + u32(listeners))


def listener(kind=0, tls=0, certificate=0, hand_over=0, trusted=0):
    return (u32(11) + u32(0) + bytes([kind, tls]) +
            keys("FRONTEND_LISTENER", client_certificate=certificate, hand_over=hand_over) +
            b"\0" + u32(0) + nets(trusted))  # no operators, no key


@pytest.mark.parametrize("message", [
    b"\1", u32(2), u32(999), u32(11), frontend_configuration() + b"x", frontend_configuration()[:-1],
    frontend_configuration(17), frontend_configuration(exempt=17), frontend_configuration(type=5)])
def test_the_front_end_refuses_a_configuration(message):
    p = Program(FRONTEND)
    p.send(message)
    status, log = p.end()
    assert status == 1 and "impossible configuration" in log, (status, log)


@pytest.mark.parametrize("message, fds", [
    (listener(), 0), (listener(), 2), (listener(3), 1), (listener(0, 1), 1), (listener(0, 1, 1), 2),
    (listener(0, 1, 3), 3), (listener(1), 1), (listener(trusted=17), 1), (listener() + b"x", 1), (frontend_configuration(), 0), (u32(7), 0)])
def test_the_front_end_refuses_a_listener(message, fds):
    p = Program(FRONTEND)
    p.send(frontend_configuration(1))
    p.send(message, fds)
    status, log = p.end()
    assert status == 1 and "impossible configuration" in log, (status, log)


@pytest.mark.parametrize("message, fds", [
    (u32(7) + b"x", 0), (u32(7), 1), (u32(999), 0), (u32(10), 0), (frontend_configuration(), 0),
    (listener(), 1), (u32(9) + b"x", 0), (frontend_configuration(type=5), 2), (frontend_configuration(17, 5), 0),
    (u32(13) + u32(77) + b"\0" + b"\0" * 16, 0), (u32(15) + u32(77) + b"\0" + string(b"x") + string(b""), 1),
    (u32(3) + u32(1), 0)])
def test_the_front_end_ends_at_an_impossible_message(message, fds):
    p = Program(FRONTEND)
    p.send(frontend_configuration())
    assert p.control.recv(100)[:4] == u32(10), "READY"
    p.send(message, fds)
    status, log = p.end()
    assert status == 1 and "impossible message from the broker" in log, (status, log)
