# SPDX-License-Identifier: ISC
"""Who a client is, and what becomes of it: credentials, users, limits; two
identities that try to reach each other (execd.conf(5))."""
import time

import pytest
from certificates import lend
from conftest import ROOT, SANITIZED, digest
from execd_client import Closed
from test_auth import jwt, status

ADDRESS = "[listener main]\naddress = ws://127.0.0.1:0\n"


def identity(name, user, token=None, more=""):
    token = f"token-sha256 = {digest(token)}\n" if token else ""
    return f"[identity {name}]\nuser = {user.pw_name}\nsandbox-allow-unsandboxed = yes\n{token}{more}"


@pytest.fixture
def two(configured, user):
    return configured(ADDRESS + identity("a", user, "tok-a") + identity("b", user, "tok-b"))


def test_a_session_is_reachable_only_for_its_identity(two):
    a = two.connect(token="tok-a").ready()
    a.sh("x", "echo secret; sleep 1000")
    a.wait_output("x", "secret")
    b = two.connect(token="tok-b")
    attached = b.error("initialize", {"clientName": "x", "resumeSessionId": a.session_id})
    assert attached == (-32600, f"unknown session id {a.session_id}")
    a.drop()
    two.wait_log("detached")
    assert b.error("initialize", {"clientName": "x", "resumeSessionId": a.session_id}) == attached
    assert b.error("initialize", {"clientName": "x", "resumeSessionId": "no"})[0] == -32600, "the same for none at all"
    b.ready()
    assert b.session_id != a.session_id and "error" in b.request("process/read", {"processId": "x"})
    again = two.connect(token="tok-a").ready(resumeSessionId=a.session_id)
    assert again.terminate("x") is True


def test_processes_of_another_identity_are_out_of_sight(two, mode):
    if mode == "user":
        pytest.skip("one user's processes see each other")
    a, b = two.connect(token="tok-a").ready(), two.connect(token="tok-b").ready()
    a.sh("x", "sleep 4242.5")
    seen = b.run_sh("p", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '; kill -9 -1; true").stdout
    assert "4242.5" not in seen
    assert a.terminate("x") is True


def test_no_credential_or_a_wrong_one(two):
    for how in ({}, {"token": "tok-c"}, {"token": "tok-a "[:-2]}, {"headers": "Authorization: Basic dG9r\r\n"}):
        with pytest.raises(Closed, match="401"):
            two.connect(**how)


def test_several_tokens_of_one_identity(configured, user):
    s = configured(ADDRESS + identity("a", user, more=f"token-sha256 = {digest('one')}\n\t{digest('two')}\n"))
    one = s.connect(token="one").ready()
    one.drop()
    s.wait_log("detached")
    assert s.connect(token="two").ready(resumeSessionId=one.session_id).session_id == one.session_id


def test_signed_tokens_have_a_subject(configured, user, directory):
    (directory / "secret").write_text("k" * 32)
    lend(directory / "secret", user.pw_gid)
    s = configured(ADDRESS + identity("a", user, more="token-subject = alice ann\n") +
                   identity("b", user, "tok-b", "token-subject = bob\n") +
                   f"[signed-tokens]\nsecret-file = {directory}/secret\nissuer = me\n")
    soon = int(time.time()) + 60
    a = s.connect(token=jwt(exp=soon, iss="me", sub="alice")).ready()
    a.drop()
    s.wait_log("detached")
    b = s.connect(token=jwt(exp=soon, iss="me", sub="bob"))
    assert b.error("initialize", {"clientName": "x", "resumeSessionId": a.session_id})[0] == -32600
    s.connect(token=jwt(exp=soon, iss="me", sub="ann")).ready(resumeSessionId=a.session_id)
    s.connect(token="tok-b").ready()
    for claims in ({"sub": "carol"}, {}, {"sub": "*"}, {"sub": ["alice"]}):
        with pytest.raises(Closed, match="401"):
            s.connect(token=jwt(exp=soon, iss="me", **claims))
    assert status(s, "Bearer " + jwt(exp=soon, iss="me", sub="carol")) == (
        401, "no identity has the subject of this websocket jwt")
    s.wait_log("refused: no identity has the subject of this websocket jwt: `carol`")
    other = jwt(exp=soon, iss="me", sub="carol")
    assert status(s, "Bearer " + other[:-4] + "AAAA") == (401, "invalid websocket jwt")
    s.wait_log("refused: invalid websocket jwt")
    assert status(s, "Bearer " + jwt(exp=soon, sub="alice")) == (401, "websocket jwt issuer mismatch")
    with pytest.raises(Closed, match="401"):
        s.connect(token="tok-c")


def test_a_listener_for_some(configured, user):
    s = configured("[listener one]\naddress = ws://127.0.0.1:0\nidentities = a\n"
                   "[listener all]\naddress = ws://127.0.0.1:0\n" +
                   identity("a", user, "tok-a") + identity("b", user, "tok-b"))
    s.connect(s.urls[0], token="tok-a").ready()
    with pytest.raises(Closed, match="401"):
        s.connect(s.urls[0], token="tok-b")
    s.connect(s.urls[1], token="tok-b").ready()


def test_unauthenticated_clients_are_who_the_file_says(configured, user):
    s = configured("[listener open]\naddress = ws://127.0.0.1:0\nallow-unauthenticated = guest\n" +
                   identity("guest", user, more="environment = WHO=guest\n") +
                   identity("a", user, "tok-a", "environment = WHO=a\n"))
    script = 'echo $WHO'
    env = {"envPolicy": {"inherit": "all", "ignoreDefaultExcludes": True, "exclude": [], "set": {}, "includeOnly": []}}
    assert s.connect().ready().run_sh("x", script, **env).stdout == "guest\n"
    assert s.connect(token="tok-a").ready().run_sh("x", script, **env).stdout == "a\n"
    with pytest.raises(Closed, match="401"):
        s.connect(token="wrong")


def test_umask_home_shell_and_environment(configured, user, directory):
    s = configured(ADDRESS + identity("a", user, "t", f"umask = 027\nhome = {directory}\nshell = /bin/sh\n"
                                                      "environment =\n\tGREETING=hello world\n\tPATH=/bin\n"))
    c = s.connect(token="t")
    info = c.initialize()["environmentInfo"]
    c.notify("initialized")
    assert info["shell"]["path"] == "/bin/sh" and info["userHomeDir"] == f"file://{directory}"
    env = {"envPolicy": {"inherit": "all", "ignoreDefaultExcludes": True, "exclude": [], "set": {}, "includeOnly": []},
           "env": {}}
    assert c.run_sh("x", "umask; echo $GREETING; echo $PATH", **env).stdout == "0027\nhello world\n/bin\n"


def limited(configured, user, more):
    return configured(ADDRESS + identity("a", user, "t", more)).connect(token="t").ready()


def test_limits_of_processes(configured, user):
    c = limited(configured, user, "max-file-size = 64K\nmax-open-files = 90\nmax-cpu-time = 1h\n")
    assert c.run_sh("a", "ulimit -n; ulimit -t").stdout == "90\n3600\n"
    r = c.run_sh("b", "cd $(mktemp -d); head -c 100000 /dev/zero > f; wc -c < f; rm f")
    assert r.stdout == "65536\n"


@pytest.mark.skipif(SANITIZED, reason="A SANITIZER RESERVES MORE ADDRESS SPACE THAN THERE IS")
def test_a_limit_of_address_space(configured, user):
    c = limited(configured, user, "max-address-space = 1G\n")
    script = "x = bytearray(2 << 30)"
    assert "MemoryError" in c.run("a", ["/usr/bin/python3", "-c", script]).stderr
    assert c.run("b", ["/bin/echo", "fine"]).stdout == "fine\n"


def test_a_limit_of_all_processes_of_an_identity(configured, user, mode):
    """Enforced, or the session is refused in words."""
    if mode == "user":
        pytest.skip("control groups are root's")
    s = configured(ADDRESS + identity("a", user, "t", "tasks-max = 30\n"))
    c = s.connect(token="t")
    m = c.request("initialize", {"clientName": "x"})
    if "error" in m:
        assert "the limits of a need one" in m["error"]["message"] and "control groups" in s.log
        return
    c.notify("initialized")
    r = c.run_sh("a", "for i in $(seq 60); do sleep 5 & done 2>&1; wait", timeout=60)
    assert "fork" in (r.stdout + r.stderr).lower(), r.stderr


def test_a_limit_of_sessions_is_one_identity_s_own(configured, user):
    s = configured(ADDRESS + identity("a", user, "tok-a", "max-sessions = 2\n") + identity("b", user, "tok-b"))
    first = [s.connect(token="tok-a").ready() for _ in range(2)]
    first[0].sh("x", "sleep 1000")  # without anything in it, it would not be kept
    assert s.connect(token="tok-a").error("initialize", {"clientName": "x"}) == (
        -32603, "limit of 2 sessions of a reached")
    s.connect(token="tok-b").ready()
    first[0].drop()
    again = s.connect(token="tok-a")
    s.wait_log("detached")
    assert again.error("initialize", {"clientName": "x"})[0] == -32603, "a detached one counts"
    again.ready(resumeSessionId=first[0].session_id)


def test_a_session_deadline(configured, user):
    s = configured(ADDRESS + identity("a", user, "tok-a", "session-deadline = 1s\n") + identity("b", user, "tok-b"))
    a, b = s.connect(token="tok-a").ready(), s.connect(token="tok-b").ready()
    a.sh("x", "sleep 1000")
    closed = a.wait_closed()
    assert closed["code"] == 1011 and "session-deadline" in closed["reason"]
    assert b.run("x", ["/bin/echo", "fine"]).stdout == "fine\n"


@pytest.mark.skipif(not ROOT, reason="SEVERAL USERS ARE NOT TESTED: this needs root")
def test_two_users(configured, user, mode):
    """Each is its own OS user and group, and cannot touch the other's files."""
    if mode == "user":
        pytest.skip("an ordinary user is one user")
    s = configured(ADDRESS + identity("a", user, "tok-a") +
                   f"[identity b]\nuser = nobody\nsandbox-allow-unsandboxed = yes\ngroup = daemon\ngroups = adm\ntoken-sha256 = {digest('tok-b')}\n"
                   "home = /tmp\nshell = /bin/sh\n")
    a, b = s.connect(token="tok-a").ready(), s.connect(token="tok-b").ready()
    assert a.run_sh("x", "id -u").stdout == f"{user.pw_uid}\n"
    assert b.run_sh("x", "id -un; id -gn; id -Gn; echo $HOME", env={"PATH": "/usr/bin:/bin", "HOME": "/tmp"}).stdout == (
        "nobody\ndaemon\ndaemon adm\n/tmp\n")
    place = a.run_sh("make", "d=$(mktemp -d); echo mine > $d/f; echo $d").stdout.strip()
    assert b.run_sh("steal", f"cat {place}/f").code != 0
    assert b.error("fs/readFile", {"path": f"file://{place}/f"})[0] == -32600
    assert a.run_sh("keep", f"cat {place}/f; rm -r {place}").stdout == "mine\n"
