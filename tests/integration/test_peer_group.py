# SPDX-License-Identifier: ISC
"""`user = peer': each member of a group comes in by the socket alone, and runs commands as himself (execd.conf(5))."""
import os
import pathlib
import pwd
import re
import subprocess

import pytest
from conftest import BUILD, EXECD, ROOT, change_users, digest
from test_ctl import Ctl
from test_listeners import configured_fails

pytestmark = pytest.mark.skipif(not ROOT, reason="GROUPS OF USERS ARE NOT TESTED: this needs root")
EXECCTL = BUILD / "client/execctl"
GROUP = f"execd-g{os.getpid()}"
NAMES = [f"execd-m{os.getpid()}{n}" for n in "abc"]


@pytest.fixture(scope="module")
def group():
    """Three users, of whom the first two are members; and root, who is none whatever the group says."""
    change_users("groupadd", GROUP)
    for name in NAMES:
        change_users("useradd", "-M", "-d", "/tmp", "-s", "/bin/bash", name)
    change_users("gpasswd", "-M", ",".join([*NAMES[:2], "root"]), GROUP)
    yield GROUP
    for name in NAMES:
        change_users("userdel", "-f", name)
    change_users("groupdel", GROUP)


def text(directory, unsandboxed="yes"):
    return (f"[listener local]\naddress = unix:{directory}/socket\nmode = 0660\ngroup = {GROUP}\nidentities = local\n"
            f"[identity local]\nuser = peer\npeer-group = {GROUP}\nmax-sessions = 3\nsandbox-allow-unsandboxed = {unsandboxed}\n")


@pytest.fixture
def server(configured, directory, group, mode):
    if mode != "root":
        pytest.skip("one user's execd has nobody else")
    os.chmod(directory, 0o755)
    return configured(text(directory))


def run(directory, name, *argv):
    """As a program that this user starts now: with the groups that he has now."""
    user = pwd.getpwnam(name)
    argv = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--init-groups", "--reset-env", "--",
            str(EXECCTL), "--url", f"unix:{directory}/socket", *argv]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, cwd="/")


def test_each_member_is_himself(server, directory, user):
    for name in NAMES[:2]:
        r = run(directory, name, "run", "id", "-un")
        assert (r.returncode, r.stdout) == (0, name + "\n"), r
    assert f"[identity local] peer-group: root is left out" in server.log
    assert f"each of the 3 members of {GROUP}" in server.log
    r = subprocess.run([str(EXECCTL), "--url", f"unix:{directory}/socket", "run", "true"], capture_output=True, text=True)
    assert r.returncode != 0 and "the client is not known here" in r.stderr, r


def test_what_the_section_says_holds_for_each(server, directory):
    """Its limits are each one's own, and it is what a listener's `identities' names."""
    kept = [run(directory, NAMES[0], "run", "-d", "sleep", "100") for _ in range(3)]
    assert [k.returncode for k in kept] == [0] * 3, kept
    assert "sessions" in run(directory, NAMES[0], "run", "true").stderr
    assert run(directory, NAMES[1], "run", "true").returncode == 0
    ctl = Ctl(server, None)
    assert {x["identity"] for x in ctl.sessions()} == {f"local.{NAMES[0]}"}
    assert ctl("kill", "--identity", f"local.{NAMES[0]}", "--reason", "x").count("ending") == 3
    server.path.write_text(text(directory, "no"))
    ctl("reload")
    r = run(directory, NAMES[1], "run", "true")
    assert r.returncode == 125 and "sandbox-allow-unsandboxed = yes in [identity local]" in r.stderr, r


def test_who_joins_later_is_told_what_lets_him_in(server, directory):
    late = NAMES[2]
    change_users("gpasswd", "-a", late, GROUP)
    r = run(directory, late, "run", "true")
    assert r.returncode != 0 and "`execd ctl reload` lets him in" in r.stderr, r
    Ctl(server, None)("reload")
    assert run(directory, late, "run", "id", "-un").stdout == late + "\n"
    change_users("gpasswd", "-d", late, GROUP)
    Ctl(server, None)("reload")
    assert run(directory, late, "run", "true").returncode != 0


def test_after_the_broker_died(server, directory):
    before = server.broker
    os.kill(before, 9)
    server.wait_log("sessions go on")
    assert run(directory, NAMES[0], "run", "id", "-un").stdout == NAMES[0] + "\n"


@pytest.mark.parametrize("change, said", [
    (("user = peer\n", f"user = {NAMES[0]}\n"), "needs `user = peer`"),
    ((GROUP + "\nmax", "no-such-group\nmax"), "no-such-group: no such group"),
    (("max-sessions = 3\n", f"token-sha256 = {digest('x')}\n"), "a member has no other credential"),
    (("identities = local\n", "allow-unauthenticated = local\n"), "several users are [identity local]"),
    (("max-sessions = 3\n", f"[token t]\nidentity = local\nsha256 = {digest('x')}\n[identity b]\nuser = {NAMES[0]}\n"), "several users are [identity local]")])
def test_what_is_refused(group, directory, user, mode, change, said):
    if mode != "root":
        pytest.skip("one user's execd has nobody else")
    configured = text(directory)
    assert change[0] in configured
    assert said in configured_fails(mode, user, directory / "wrong.conf", configured.replace(*change))[1]


def test_an_ordinary_user_has_no_group(group, directory, user, mode):
    if mode != "user":
        pytest.skip("root's may")
    assert "other users need root" in configured_fails(mode, user, directory / "wrong.conf", text(directory))[1]


def test_a_member_names_no_server(configured, directory, group, mode):
    """The socket of the package, here in a mount namespace of the program's own."""
    if mode != "root":
        pytest.skip("one user's execd has nobody else")
    os.chmod(directory, 0o755)
    configured(text(directory).replace(f"{directory}/socket", f"{directory}/execd.sock"))
    user = pwd.getpwnam(NAMES[0])
    there = 'mount --bind "$0" /run/execd && exec setpriv --reuid="$1" --regid="$1" --init-groups --reset-env -- "$2" run id -un'
    r = subprocess.run(["unshare", "-m", "sh", "-c", there, str(directory), user.pw_name, str(EXECCTL)],
                       capture_output=True, text=True, timeout=60, cwd="/")
    assert r.stdout == NAMES[0] + "\n", r
    r = subprocess.run(["unshare", "-m", "sh", "-c", there, str(directory), NAMES[2], str(EXECCTL)],
                       capture_output=True, text=True, timeout=60, cwd="/")
    assert "/run/execd/execd.sock is for the members of a group" in r.stderr, r


DEFAULT = pathlib.Path(__file__).parents[2] / "contrib/systemd/execd.conf"


def test_the_configuration_of_the_package(configured, directory, group, mode):
    """As it is installed, but for the name of the group and the place of the socket; its commented lines are right, too."""
    if mode != "root":
        pytest.skip("one user's execd has nobody else")
    os.chmod(directory, 0o755)
    default = DEFAULT.read_text()
    assert default.count("/run/execd/execd.sock") == 1 and "group = execd\n" in default
    default = default.replace("/run/execd/execd.sock", f"{directory}/socket").replace("= execd\n", f"= {GROUP}\n")
    more = re.sub(r"(?m)^# ?((\[|[a-z-]+ = ).*)$", r"\1", default).replace("user = ci", f"user = {NAMES[0]}")
    more = re.sub(r"(?m)^certificate.*\n", "", more).replace("wss:", "ws:").replace("/var/log/execd", str(directory))
    for text, n in (default, 2), (more, 5):
        path = directory / f"{n}.conf"
        path.write_text(text)
        assert sum(x.startswith("[") for x in text.splitlines()) == n
        r = subprocess.run([EXECD, "-t", "-c", path], capture_output=True, text=True, timeout=60)
        assert r.returncode == 0, r
    change_users("gpasswd", "-M", "", GROUP)
    try:
        server = configured(re.sub(r"(?m)^#.*\n", "", default))
        assert f"each of the 0 members of {GROUP}" in server.log
        assert "Permission denied" in run(directory, NAMES[0], "run", "true").stderr
        change_users("gpasswd", "-M", ",".join([*NAMES[:2], "root"]), GROUP)
        Ctl(server, None)("reload")
        assert run(directory, NAMES[0], "run", "id", "-un").stdout == NAMES[0] + "\n"
        assert run(directory, NAMES[0], "run", "-s", "workspace-write", "-C", "/tmp", "id", "-un").stdout == NAMES[0] + "\n"
    finally:
        change_users("gpasswd", "-M", ",".join([*NAMES[:2], "root"]), GROUP)
