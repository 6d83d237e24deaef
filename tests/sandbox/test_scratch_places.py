# SPDX-License-Identifier: ISC
"""What one user puts into /tmp stops no other user's policy, and changes nothing of what it means: there a policy
protects no names. The server has a /tmp of its own here, because the names would be in the way of others.
"""
import os
import shutil
import subprocess

import pytest
from conftest import BUILD, ROOT, WRAP, Server, Shell, as_test_user, command
from policies import special, workspace_write

pytestmark = [pytest.mark.skipif(not ROOT, reason="TWO USERS IN ONE /tmp ARE NOT TESTED: this needs root"),
              pytest.mark.skipif(not shutil.which("setpriv"), reason="TWO USERS IN ONE /tmp ARE NOT TESTED: this needs setpriv")]

OTHER = 65534       # nobody: a user that is not the session's
# The programs may lie below the host's /tmp; then they are seen there.
MOUNT = """
mount --bind "$1" /mnt && mount -t tmpfs -o mode=1777 none /tmp || exit 1
case $1 in /tmp/*) mkdir -p "$1" && mount --move /mnt "$1" || exit 1 ;; esac
shift
exec "$@"
"""
OWN_TMP = ["unshare", "--mount", "--propagation", "private", "sh", "-c", MOUNT, "sh", str(BUILD.resolve())]


class Apart(Server):
    def __init__(self, mode, user):
        self._start(mode, OWN_TMP + command(mode, user, ["--listen", "ws://127.0.0.1:0"]), None)

    def other(self, script):
        """Another local user does this in that /tmp."""
        r = subprocess.run(["nsenter", "-m", "-t", str(self.pid), "setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups",
                            "sh", "-ec", "cd /tmp; " + script], capture_output=True, text=True)
        assert r.returncode == 0, r.stderr


@pytest.fixture
def apart(mode, user, sandboxes):
    if WRAP:
        pytest.skip("NOT TESTED: a wrapped execd starts no namespaces")
    s = Apart(mode, user)
    yield s
    if s.child.poll() is None:
        s.stop()


# By another user, each a name that a workspace would protect.
IN_TMP = {
    "link": "ln -s /etc .codex; ln -s nowhere .git; ln -s .aws .aws",
    "locked": "mkdir .git .codex; chmod 0 .git .codex",
    "file": "echo x > .agents; chmod 0 .agents; mkfifo .aws",
    "pointer": "echo 'gitdir: %s/victim' > .git",
    "pointer to nothing": "echo 'gitdir: /nonexistent/../..' > .git; echo 'gitdir: .git' > .agents",
    "forged": "mkdir -m 555 .git .codex; touch -d @1 .git .codex",
}


@pytest.mark.parametrize("case", IN_TMP)
def test_what_others_put_into_tmp(apart, user, place, case):
    as_test_user(user, "mkdir work victim; echo mine > victim/config", place)
    work = place / "work"
    apart.other(IN_TMP[case].replace("%s", str(place)))
    before = subprocess.run(["nsenter", "-m", "-t", str(apart.pid), "ls", "-lan", "--time-style=+", "/tmp"], capture_output=True, text=True).stdout
    client = apart.ready()
    client.server = apart
    shell = Shell(client, workspace_write(work), work)
    # It starts, /tmp is writable, and the workspace's own names are protected as ever.
    assert shell("echo x > /tmp/mine && cat /tmp/mine && rm /tmp/mine && touch f && ls -d f") == "x\nf\n"
    r = shell.run("mkdir .git/x 2>&1; echo x > .codex/y; ls -A .git .codex .agents .aws | grep -c .")
    assert not (work / ".git/x").exists() and not (work / ".codex/y").exists(), r.stdout
    # What the pointer names is protected by nobody's word in /tmp, nor opened by it.
    assert shell.run(f"echo stolen > {place}/victim/config").code != 0 and (place / "victim/config").read_text() == "mine\n"
    # TMPDIR is a scratch place, too.
    beside = Shell(client, workspace_write(work, more=[special("tmpdir", "write")]), work, {"TMPDIR": "/tmp"})
    assert beside("echo y > $TMPDIR/mine && cat $TMPDIR/mine && rm $TMPDIR/mine") == "y\n"
    after = subprocess.run(["nsenter", "-m", "-t", str(apart.pid), "ls", "-lan", "--time-style=+", "/tmp"], capture_output=True, text=True).stdout
    assert before == after, "nothing is left in /tmp, and nothing of another's was changed"
    client.drop()


def test_a_workspace_in_tmp_is_protected(apart, user, place):
    """A root below /tmp is a workspace, and no scratch place."""
    apart.other("ln -s /etc .codex")
    subprocess.run(["nsenter", "-m", "-t", str(apart.pid), "install", "-d", "-o", str(user.pw_uid), "-g", str(user.pw_gid), "/tmp/w"], check=True)
    client = apart.ready()
    client.server = apart
    shell = Shell(client, workspace_write("/tmp/w"), "/tmp/w")
    assert shell.run("mkdir .git/x").code != 0
    assert shell("touch f; ls") == "f\n"
    client.drop()
