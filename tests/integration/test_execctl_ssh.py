# SPDX-License-Identifier: ISC
"""execctl-ssh as rsync, git, scp and sftp call it, and ssh itself with what `execctl ssh-config' writes: the real
programs, a real sshd that nobody started as root, and a cable that is cut."""
import os
import pathlib
import shutil
import stat
import subprocess

import pytest
from conftest import PATIENCE_S, poll
from execctl import EXECCTL, TIMEOUT, Proxy, environment
from test_execctl_trees import facts

SSH = EXECCTL.parent / "execctl-ssh"
PATH = f"{EXECCTL.parent}:/usr/sbin:/usr/bin:/sbin:/bin"


def needs(*programs):
    missing = [p for p in programs if shutil.which(p, path=PATH) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {' '.join(missing)}")


class Tools:
    """Programs with execctl-ssh on their PATH, a home of their own, and the server `box'."""

    def __init__(self, home, url):
        self.home, self.url = home, url
        self.env = environment(home, PATH=PATH)
        self.ok(EXECCTL, "environments", "add", "box", url)

    def __call__(self, *argv, input=b"", **env):
        return subprocess.run([str(a) for a in argv], input=input, capture_output=True, timeout=2 * TIMEOUT,
                              env={**self.env, **env}, cwd=self.home)

    def ok(self, *argv, **kwargs):
        r = self(*argv, **kwargs)
        assert r.returncode == 0, r
        return r.stdout.decode()


@pytest.fixture
def tools(server, directory):
    return Tools(directory, server.url)


@pytest.fixture
def there(directory, user):
    """Where the server's user may write."""
    there = directory / "there"
    there.mkdir()
    there.chmod(0o777)
    return there


def make(root, n, size):
    root.mkdir()
    for i in range(n):
        (root / f"d{i % 10}").mkdir(exist_ok=True)
        (root / f"d{i % 10}/f{i}").write_bytes(os.urandom(size))
    for at in (root, *root.rglob("*")):
        at.chmod(0o755 if at.is_dir() else 0o644)
    return root


def contents(root):
    return {name: f[:2] for name, f in facts(root).items()}


def test_words_are_read_by_the_users_shell(tools):
    r = tools(SSH, "box", "echo", "a  b", '"c  d"', "; exit 3")
    assert (r.returncode, r.stdout) == (3, b"a b c  d\n"), r
    assert tools.ok(SSH, "-q", "box", "cat; tty || :", input=b"in\n") == "in\nnot a tty\n"
    assert tools.ok(SSH, "box", "-tt", "tty").startswith("/dev/pts/")
    assert tools.ok(SSH, "-n", "box", "cat", input=b"lost") == ""
    assert tools.ok(SSH, "box", "printf '%s' \"it's\" '\n'") == "it's\n"


def test_no_command_is_a_login_shell(tools):
    assert tools.ok(SSH, "box", input=b"echo $0 in\n").endswith("in\n")


def test_what_a_tool_says_of_itself(tools):
    """git asks so whether it may pass options."""
    assert "hostname box\n" in tools.ok(SSH, "-G", "-o", "SendEnv=GIT_PROTOCOL", "box")


def test_variables_travel(tools):
    out = tools.ok(SSH, "-o", "SendEnv=ONE TWO", "-oSetEnv=THREE=3", "box", "echo $ONE.$TWO.$THREE", ONE="it's 1")
    assert out == "it's 1..3\n"
    # The local shell reads nothing of it.
    assert tools.ok(SSH, "-oSetEnv=FOUR=*", "box", 'echo "$FOUR"') == "*\n"


@pytest.mark.parametrize("argv, named", [
    (("-X", "box", "true"), "-X"),
    (("-p", "2222", "box", "true"), "-p 2222"),
    (("-l", "root", "box", "true"), "-l root"),
    (("root@box", "true"), "root@"),
    (("-o", "ProxyJump=h", "box"), "-o ProxyJump=h"),
    (("-o", "SendEnv=GIT_*", "box"), "SendEnv=GIT_*"),
    (("-D", "1080", "box"), "-D"),
    (("-L", "1:db:2", "-N", "box"), "-L 1:db:2"),
    (("-N", "box"), "-N"),
    (("-s", "box", "shell"), "-s shell"),
    (("-z", "box"), "-z"),
    (("box", "-A", "true"), "-A"),
    ((), "usage"),
])
def test_what_it_does_not_do_is_named(tools, argv, named):
    r = tools(SSH, *argv)
    assert r.returncode == 255 and r.stderr.startswith(b"execctl-ssh: ") and named in r.stderr.decode(), r


@pytest.mark.parametrize("way", ["W", "L"])
@needs("socat")
def test_ports(tools, way, directory):
    served = subprocess.Popen(["socat", "-u", "EXEC:echo served", "TCP-LISTEN:0,bind=127.0.0.1,fork"],
                              stderr=subprocess.PIPE)
    try:
        port = poll(lambda: listening(served.pid), what="a listener")
        if way == "W":
            assert tools.ok(SSH, "-W", f"127.0.0.1:{port}", "box") == "served\n"
            return
        held = subprocess.Popen([str(SSH), "-N", "-L", f"0:localhost:{port}", "box"], env=tools.env,
                                stderr=subprocess.PIPE, text=True)
        try:
            here = held.stderr.readline().split("127.0.0.1:")[1].split()[0].rstrip(",:;")
            assert tools.ok("socat", "-u", f"TCP:127.0.0.1:{here}", "-") == "served\n"
        finally:
            held.terminate()
            held.wait(PATIENCE_S)
    finally:
        served.kill()
        served.wait()


def listening(pid):
    """The port of the one listener of a process, or None."""
    inodes = {os.stat(f"/proc/{pid}/fd/{fd}").st_ino for fd in os.listdir(f"/proc/{pid}/fd")}
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        column = line.split()
        if column[3] == "0A" and int(column[9]) in inodes:
            return int(column[1].split(":")[1], 16)
    return None


@needs("rsync")
def test_rsync_loses_nothing_at_cuts(tools, server, there, directory):
    """Both ways; the cable is cut in the middle, and neither rsync nor its far side begins again."""
    cuts(tools, server, there, directory, 200, 20000, 3)


@needs("rsync")
@pytest.mark.nightly
def test_rsync_of_ten_thousand_files(tools, server, there, directory):
    cuts(tools, server, there, directory, 10000, 1000, 10)


def cuts(tools, server, there, directory, n, size, times):
    proxy = Proxy(server.url)
    try:
        tools.ok(EXECCTL, "environments", "add", "cut", proxy.url)
        here = make(directory / "here", n, size)
        for source, target in ((here, f"cut:{there}/up"), (f"cut:{there}/up/", directory / "down")):
            before, at = proxy.cuts, proxy.up + proxy.down
            proxy.cut_at = [at + n * size * k // (times + 1) for k in range(1, times + 1)]
            r = tools("rsync", "-rpt", "-e", SSH, f"{here}/" if source is here else source, target)
            assert r.returncode == 0, r.stderr.decode()
            assert proxy.cuts - before >= times - 1, "too few cuts for a test of them"
        assert contents(there / "up") == contents(here) == contents(directory / "down")
    finally:
        proxy.close()


@needs("scp", "sftp")
@pytest.mark.skipif(not any(pathlib.Path(d, "sftp-server").exists() for d in ("/usr/lib/openssh", "/usr/libexec")),
                    reason="sftp-server is not installed")
def test_scp_and_sftp(tools, there, directory):
    here = make(directory / "here", 12, 1000)
    tools.ok("scp", "-q", "-r", "-S", SSH, here, f"box:{there}/up")
    assert contents(there / "up").keys() == contents(here).keys()
    tools.ok("sftp", "-q", "-b", "-", "-S", SSH, "box", input=f"get -r {there}/up down\n".encode())
    assert {n: f[1] for n, f in facts(directory / "down").items()} == {n: f[1] for n, f in facts(here).items()}


@needs("git")
@pytest.mark.parametrize("way", ["GIT_SSH", "ext"])
def test_git(tools, there, directory, way):
    def git(*argv, **env):
        return tools.ok("git", "-c", "user.name=a", "-c", "user.email=b", "-c", "protocol.ext.allow=always",
                        "-c", "safe.directory=*", *argv, **env)
    tools.ok(SSH, "box", f"git init -q --bare {there}/repo")
    where = f"box:{there}/repo" if way == "GIT_SSH" else f"ext::execctl -q -e box run -- %S {there}/repo"
    config = (lambda *a: git(*a, GIT_SSH=str(SSH))) if way == "GIT_SSH" else git
    config("clone", "-q", where, "work")
    (directory / "work/f").write_text("content\n")
    git("-C", "work", "add", "f")
    git("-C", "work", "commit", "-q", "-m", "one")
    config("-C", "work", "push", "-q", "origin", "HEAD:main")
    config("clone", "-q", "-b", "main", where, "again")
    assert (directory / "again/f").read_text() == "content\n"


@needs("ssh", "sshd", "ssh-keygen")
class TestConfig:
    def test_ssh_itself(self, tools, server, there, directory):
        """The host's key is known and the user's is his own for this: nobody is asked anything."""
        config = directory / "config"
        config.write_text(tools.ok(EXECCTL, "ssh-config", "box"))
        assert tools.ok("ssh", "-F", config, "box", "cat; echo $SSH_CONNECTION", input=b"in\n").startswith("in\n")
        r = tools("ssh", "-F", config, "box", "exit 7")
        assert r.returncode == 7
        key = directory / ".config/execd/ssh/id_ed25519"
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
        # Again: the same keys, and nothing twice.
        assert tools.ok(EXECCTL, "ssh-config", "box") == config.read_text()
        assert len((directory / ".config/execd/ssh/known_hosts").read_text().splitlines()) == 1
        # Another host under this name is refused, as ssh does it.
        hosts = directory / ".config/execd/ssh/known_hosts"
        tools.ok("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", directory / "other")
        hosts.write_text("execd-box " + (directory / "other.pub").read_text())
        assert tools("ssh", "-F", config, "box", "true").returncode == 255
        tools.ok(EXECCTL, "-e", "box", "run", "sh", "-c", "rm -r ~/.config/execd/sshd")

    def test_a_server_that_is_not_there(self, tools, directory):
        tools.ok(EXECCTL, "environments", "add", "gone", f"unix:{directory}/nobody")
        r = tools(EXECCTL, "ssh-config", "gone")
        assert r.returncode == 255 and b"gone: no sshd could be prepared there" in r.stderr and not r.stdout
        r = tools(EXECCTL, "ssh-config", "no; such")
        assert r.returncode == 255 and b"a name of environments.conf" in r.stderr
