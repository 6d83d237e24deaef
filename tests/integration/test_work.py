# SPDX-License-Identifier: ISC
"""Real work through execd, compared with the same thing run directly."""
import hashlib
import shutil
import subprocess

import pytest
from conftest import EXECD, ROOT, Server, as_user
from landlock_only import policy


def direct(user, script, cwd):
    return subprocess.run(as_user(user, ["env", "-i", "--default-signal", "PATH=/usr/bin:/bin", f"HOME={user.pw_dir}",
                                         "sh", "-c", script]), cwd=cwd, capture_output=True)


def both(client, user, id, script, cwd):
    r = client.run("p" + id, ["sh", "-c", script], 120, cwd=f"file://{cwd}",
                   env={"PATH": "/usr/bin:/bin", "HOME": user.pw_dir})
    d = direct(user, script, cwd)
    assert (r.code, r.stdout.encode("latin1"), r.stderr.encode("latin1")) == (d.returncode, d.stdout, d.stderr)
    return r


PROGRAM = r"""
#include <stdio.h>
int main(void) { for (int i = 0; i < 5; i++) printf("%d squared is %d\n", i, i * i); return 7; }
"""


def test_a_compiler(client, user, directory):
    (directory / "p.c").write_text(PROGRAM)
    (directory / "bad.c").write_text("int main(void) { return x; }\n")
    r = both(client, user, "a", "gcc -Wall -O2 -o p p.c && ./p; code=$?; rm -f p; exit $code", directory)
    assert r.code == 7 and "4 squared is 16" in r.stdout
    r = both(client, user, "b", "LC_ALL=C gcc -c bad.c", directory)
    assert r.code == 1 and "undeclared" in r.stderr


def test_git_clone(client, user, directory):
    setup = ("git init -q r && cd r && git config user.email t@example.org && git config user.name t && "
             "for i in $(seq 50); do echo file $i > f$i; done && git add -A && git commit -qm first")
    assert direct(user, setup, directory).returncode == 0
    r = client.run_sh("c", "git clone -q r one && git -C one rev-parse HEAD && cat one/f*", 60,
                      cwd=f"file://{directory}", env={"PATH": "/usr/bin:/bin", "HOME": user.pw_dir})
    d = direct(user, "git clone -q r two && git -C two rev-parse HEAD && cat two/f*", directory)
    assert (r.code, r.stdout.encode()) == (0, d.stdout)


def test_a_hundred_megabytes(client, user, directory):
    script = "seq 1 13000000 | head -c 100000000"
    r = client.run_sh("d", script, 120)
    d = direct(user, script, directory)
    assert len(r.stdout) == 100000000
    assert hashlib.sha256(r.stdout.encode("latin1")).digest() == hashlib.sha256(d.stdout).digest()


def test_an_interactive_shell(client, user, directory):
    """What a person types, line after line, and what a shell answers."""
    lines = ["x=5", "echo $((x * 3))", "for i in a b; do echo item $i; done", "cd /tmp && pwd",
             f"cat > {directory}/f <<END\nfirst\nsecond\nEND", f"wc -l < {directory}/f", "false; echo $?", "exit 3"]
    client.start("sh", ["/bin/sh"], pipeStdin=True)
    for i, line in enumerate(lines):
        client.write("sh", line + "\n")
    r = client.finished("sh")
    d = subprocess.run(as_user(user, ["env", "-i", "--default-signal", "PATH=/usr/bin:/bin", "/bin/sh"]), cwd="/tmp",
                       input="\n".join(lines).encode() + b"\n", capture_output=True)
    assert (r.code, r.stdout.encode()) == (d.returncode, d.stdout) and r.code == 3


class WithItsOwnSsh(Server):
    """A server on a host whose /etc/ssh has a file that the configuration includes, a host's key, and what a policy denies."""

    MAKE = """mount -t tmpfs -o mode=755 none /etc/ssh && cd /etc/ssh && mkdir ssh_config.d && umask 022 &&
echo 'Include /etc/ssh/ssh_config.d/*.conf' >ssh_config && printf 'Host there\\n\\tPort 4711\\n' >ssh_config.d/a.conf &&
ln -s "$1" ssh_config.d/link && cp ssh_config key && chmod 600 key && cd / && shift && exec "$@" """

    def __init__(self, mode, user, secret):
        flags = ["--user", user.pw_name, "--allow-unauthenticated"] if mode == "root" else []
        argv = [str(EXECD), "--listen", "ws://127.0.0.1:0", *flags]
        self._start(mode, ["unshare", "-m", "sh", "-c", self.MAKE, "-", secret, *(argv if mode == "root" else as_user(user, argv))], None)


@pytest.mark.skipif(not ROOT or not shutil.which("ssh"), reason="needs root, who mounts, and ssh")
def test_ssh_in_a_sandbox(mode, user, directory, sandboxes):
    """It refuses included files of another owner than root, whom a sandbox does not know, and the user."""
    (directory / "secret").write_text("secret")
    (directory / "secret").chmod(0o644)
    s = WithItsOwnSsh(mode, user, str(directory / "secret"))
    try:
        c = s.ready()
        look = "ssh -G there 2>&1 | grep -E '^port|Bad'; stat -c %U /etc/ssh/ssh_config; echo x 2>&1 >/etc/ssh/x; ls /etc/ssh /etc/ssh/ssh_config.d"
        r = c.run("a", ["/bin/sh", "-c", look], sandbox=policy())
        assert "port 4711\n" in r.stdout and "Bad owner" not in r.stdout and user.pw_name in r.stdout.split(), r.stdout
        assert "a.conf" in r.stdout and "link" in r.stdout and "key" not in r.stdout.split() and "Read-only file system" in r.stdout + r.stderr, r
        r = c.run("b", ["/bin/cat", "/etc/ssh/ssh_config.d/link"], sandbox=policy((directory / "secret", "deny")))
        assert "secret" not in r.stdout, r
        # A policy that has something to say about it has the last word, and root's files stay whose they are.
        denied = policy(("/etc/ssh/ssh_config.d", "deny"))
        r = c.run("c", ["/bin/sh", "-c", "cat /etc/ssh/ssh_config.d/a.conf; stat -c %U /etc/ssh/ssh_config"], sandbox=denied)
        assert "4711" not in r.stdout and user.pw_name not in r.stdout.split(), r
    finally:
        s.stop()
