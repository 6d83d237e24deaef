# SPDX-License-Identifier: ISC
"""A new session is its user's as his account is then: whether he exists, has expired, and his groups. A name service
that hangs costs nobody else anything."""
import ctypes
import itertools
import os
import pwd
import signal
import subprocess

import pytest
from conftest import ROOT, change_users, digest, poll
from execd_client import Closed
from test_spare import spare

pytestmark = pytest.mark.skipif(not ROOT, reason="ACCOUNTS ARE NOT TESTED: this needs root")
numbers = itertools.count()
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 1 << 18


@pytest.fixture
def account():
    """A user who is in two groups besides his own, and who may be gone at the end."""
    name = f"execd-a{os.getpid()}"
    groups = [f"{name}{n}" for n in "xy"]
    for group in groups:
        change_users("groupadd", group)
    change_users("useradd", "-m", "-s", "/bin/bash", "-G", ",".join(groups), name)
    yield name
    if name in [p.pw_name for p in pwd.getpwall()]:
        change_users("userdel", "-f", "-r", name)
    subprocess.run(["rm", "-rf", f"/home/{name}"], check=True)
    for group in groups:
        change_users("groupdel", group)


def text(name, user, more=""):
    return (f"[listener main]\naddress = ws://127.0.0.1:0\n"
            f"[identity a]\nuser = {name}\ntoken-sha256 = {digest('a')}\nsandbox-allow-unsandboxed = yes\n"
            f"[identity b]\nuser = {user.pw_name}\ngroups = {user.pw_name}\ntoken-sha256 = {digest('b')}\n"
            f"sandbox-allow-unsandboxed = yes\n{more}")


@pytest.fixture
def server(configured, user, account, mode):
    if mode != "root":
        pytest.skip("one user's execd has nobody else")
    return configured(text(account, user), "-d")


def refusal(s, token="a"):
    c = s.connect(token=token)
    m = c.request("initialize", {"clientName": "test"})
    assert m["error"]["code"] == -32603, m
    c.drop()
    return m["error"]["message"]


def run(c, line):
    return c.run_sh(f"p{next(numbers)}", line).stdout


def groups_of(c):
    return run(c, "id -Gn").split()


def groups(s):
    c = s.connect(token="a").ready()
    found = groups_of(c)
    c.call("session/end")
    return found


def asked(s, identity="a"):
    return s.log.count(f"identity {identity}: asking about user")


def test_groups_are_those_of_the_moment(server, account, user):
    """Fewer at once, more with a reload. A runner that was made before is not used."""
    first = server.connect(token="a").ready()
    assert groups_of(first) == [account, f"{account}x", f"{account}y"]
    spare(server)
    change_users("gpasswd", "-d", account, f"{account}x")
    assert groups(server) == [account, f"{account}y"]
    change_users("usermod", "-G", "", account)
    assert groups(server) == [account]
    server.wait_log("identity a: its user is in 1 groups fewer")
    assert groups_of(first) == [account, f"{account}x", f"{account}y"], "a session keeps what it has"
    change_users("usermod", "-G", f"{account}y", account)
    assert groups(server) == [account]
    server.reload(text(account, user), "reload: nothing changed")
    assert after_reload(server, groups) == [account, f"{account}y"]


def test_groups_that_the_operator_names_stay(configured, account, user, mode):
    if mode != "root":
        pytest.skip("one user's execd has nobody else")
    s = configured(text(account, user).replace("[identity b]", f"groups = {account}x\n[identity b]"))
    assert groups(s) == [account, f"{account}x"]
    change_users("usermod", "-G", "", account)
    assert groups(s) == [account, f"{account}x"]


def test_an_expired_user_gets_no_session(server, account):
    first = server.connect(token="a").ready()
    spare(server)
    change_users("chage", "-E", "1", account)
    assert refusal(server) == f"user {account} has expired"
    server.wait_log(f"no session for a: user {account} has expired")
    assert run(first, "echo on") == "on\n"
    first.drop()
    again = server.connect(token="a").ready(resumeSessionId=first.session_id)
    assert run(again, "echo still") == "still\n"
    change_users("chage", "-E", "2038-01-01", account)
    assert account in groups(server)


def test_a_user_of_services_gets_one(server, account):
    """Who must not log in has a shell that says so, and execd logs nobody in."""
    change_users("usermod", "-s", "/usr/sbin/nologin", account)
    assert account in groups(server)


def test_a_removed_user_gets_no_session_and_stops_nobody(server, account, user):
    b = server.connect(token="b").ready()
    assert account in groups(server)
    change_users("userdel", "-f", "-r", account)
    assert refusal(server) == f"user {account} does not exist any more"
    server.reload(text(account, user), "reload: nothing changed")
    server.wait_log(f"identity a: user {account} does not exist any more, and gets no session")
    assert poll(lambda: resumes(server, b), what="session")
    assert refusal(server) == f"user {account} does not exist"
    # Nor is the next broker stopped, which nobody asked for.
    old = server.broker
    os.kill(old, signal.SIGKILL)
    poll(lambda: server.broker != old, what="another broker")
    assert poll(lambda: resumes(server, b), what="session")
    assert refusal(server) == f"user {account} does not exist"
    # A mistake of the operator's is one.
    said = server.reload(text(account, user, "[identity c]\nuser = no-such-user\n"), "reload: refused")
    assert "no-such-user: no such user" in said
    change_users("useradd", "-m", account)
    server.reload(text(account, user), "reload: nothing changed")
    assert after_reload(server, groups) == [account]


def resumes(s, c):
    """The front-end may be new, and the runner may not have answered the broker yet."""
    try:
        again = s.connect(token="b")
        m = again.request("initialize", {"clientName": "test", "resumeSessionId": c.session_id})
    except (Closed, OSError):
        return False
    if m.get("error", {}).get("code") == -32010:
        return False
    assert "result" in m, m
    again.notify("initialized")
    return run(again, "echo on") == "on\n"


def after_reload(s, f):
    def attempt():
        try:
            return f(s)
        except (Closed, OSError):
            return None

    return poll(attempt, what="front-end")


def test_another_user_of_that_name_gets_none(server, account):
    assert account in groups(server)
    uid = pwd.getpwnam(account).pw_uid
    change_users("userdel", "-f", "-r", account)
    change_users("useradd", "-u", str(uid + 1000), "-m", account)
    assert refusal(server) == f"user {account} has another number or group since the configuration was read"


def test_it_is_not_asked_for_each_session(server, account):
    """What was asked is known for ten seconds. A slow machine may need more of them for a session."""
    def shares_the_answer():
        before = asked(server)
        assert account in groups(server)
        return asked(server) == before

    assert account in groups(server)
    poll(shares_the_answer, what="a session for which nothing was asked")


def alone():
    """In mounts of its own."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) < 0 or libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) < 0:
        raise OSError(ctypes.get_errno(), "mounts of its own")


def inside(s, *argv):
    subprocess.run(["nsenter", "-m", "-t", str(s.pid), *argv], check=True)


def test_a_name_service_that_hangs(configured, account, user, mode, directory):
    """The groups come from a FIFO that nobody writes to. The server has an /etc of its own: who replaces a file that is
    mounted on elsewhere ends that mount."""
    if mode != "root":
        pytest.skip("one user's execd has nobody else")
    s = configured(text(account, user), "-d", preexec_fn=alone)
    etc = directory / "etc"
    subprocess.run(["cp", "-a", "/etc", str(etc)], check=True)
    inside(s, "mount", "--bind", str(etc), "/etc")
    assert account in groups(s)
    os.rename(etc / "group", etc / "kept")
    os.mkfifo(etc / "group", 0o644)
    before = asked(s)
    waiting = s.connect(token="a")
    id = waiting.post("initialize", {"clientName": "test"})
    left = s.connect(token="a")
    left.post("initialize", {"clientName": "test"})
    poll(lambda: asked(s) > before, what="question")
    b = s.connect(token="b").ready()
    assert run(b, "echo on") == "on\n", "whose groups the operator names does not wait"
    assert not any(m.get("id") == id for m in waiting.messages)
    left.drop()
    m = waiting.answer(id)
    assert m["error"] == {"code": -32603, "message": f"user {account} could not be asked about in time"}
    assert asked(s) == before + 1, "whoever waits shares one question"
    assert refusal(s) == f"user {account} could not be asked about in time"
    os.rename(etc / "kept", etc / "group")
    assert account in groups(s), "and works again with it"
