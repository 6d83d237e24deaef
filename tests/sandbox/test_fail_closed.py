# SPDX-License-Identifier: ISC
"""Each step of the sandbox made to fail, by a tracer that answers its system
call with an error: the command never runs, the client gets a typed error,
nothing stays behind, and the next start works.
"""
import base64
import os
import pathlib
import re
import shutil
import subprocess

import pytest
from conftest import ROOT, SANITIZED, TORTURE, Shell, children, name, poll
from policies import READ_ALL, UNENFORCEABLE, managed, path, uri
from test_own_sockets import SIGNALS, python

ERRORS = ("ENOSYS", "EPERM", "EINVAL")
REFUSED = (-32602, UNENFORCEABLE)
NUMBERS = {"ENOSYS": 38, "EPERM": 1, "EINVAL": 22}

# The filter that hands calls out, with the flag of Linux 5.19. libseccomp tries the one before it alone.
LISTENER = "SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER|"

# Before a sandbox is there: (system call, the beginning of what the tracer shows
# of its arguments, what comes out). "refused", "system": -32603 with the
# kernel's words, "runs": there is another way, or nothing depends on it.
COLD = [
    ("socketpair", "", "refused"),
    ("vfork", "", "refused"),
    ("execveat", "", "refused"),
    ("prctl", "PR_SET_DUMPABLE, SUID_DUMP_DISABLE", "refused"),
    ("seccomp", "SECCOMP_GET_ACTION_AVAIL", "runs"),
    ("setns", "", "refused"),
    ("unshare", "CLONE_NEWUSER", "refused"),
    ("prctl", "PR_SET_DUMPABLE, SUID_DUMP_USER", "refused"),
    ("unshare", "CLONE_NEWNS|CLONE_NEWUTS", "refused"),
    ("unshare", "CLONE_NEWNET", "refused"),
    # Its loopback. Without the proxy for connections there are no UNIX sockets.
    ("socket", "AF_NETLINK, SOCK_RAW|SOCK_CLOEXEC, NETLINK_ROUTE", "refused"),
    ("socket", "AF_NETLINK, SOCK_RAW|SOCK_CLOEXEC, NETLINK_SOCK_DIAG", "runs"),
    ("pidfd_getfd", "", "runs"),
    ("openat2", "", "refused"),
    ("fchdir", "", "refused"),
    ("mount", "NULL, \"/\"", "refused"),
    ("mount", "\"execd\"", "refused"),
    ("mount", "\"devpts\"", "refused"),
    ("open_tree", "", "refused"),
    ("mount_setattr", "", "refused"),
    ("move_mount", "", "refused"),
    ("mkdirat", "", "refused"),
    ("fchmod", "", "refused"),
    ("symlinkat", "", "refused"),
    ("pivot_root", "", "refused"),
    ("umount2", "", "refused"),
    ("chdir", "\"/\"", "refused"),
    ("prlimit64", "0, RLIMIT_CORE", "refused"),
    ("prlimit64", "0, RLIMIT_MSGQUEUE", "refused"),
    ("prlimit64", "0, RLIMIT_SIGPENDING, {", "refused"),
    ("prlimit64", "0, RLIMIT_FSIZE, {", "refused"),
    ("prctl", "PR_CAPBSET_READ, CAP_CHOWN", "refused"),
    ("prctl", "PR_CAPBSET_DROP, CAP_CHOWN", "refused"),
    ("prctl", "PR_CAPBSET_DROP, CAP_SYS_ADMIN", "refused"),
    ("prctl", "PR_CAP_AMBIENT", "refused"),
    ("prctl", "PR_SET_SECUREBITS", "refused"),
    ("prctl", "PR_SET_NO_NEW_PRIVS", "refused"),
    # A kernel without keys has none to leak; a container may refuse the call.
    ("keyctl", "", {"ENOSYS": "runs", "EPERM": "runs"}),
    # Modes of directories: what no kernel hands out is refused to commands.
    ("clone", "child_stack=0x", "refused"),
    ("seccomp", LISTENER, {"ENOSYS": "runs", "EINVAL": "runs", "EBUSY": "runs"}),
    # Landlock is the second lock: doc/sandbox.md C7, "go on" where there is none.
    ("landlock_create_ruleset", "NULL", {"ENOSYS": "runs"}),
    # The list of the placeholders, which the runner keeps.
    ("flock", "", "refused"),
    # There is a slower way.
    ("close_range", "", "runs"),
]

# In a sandbox that is there: what is done for each command.
WARM = [
    ("clone", "child_stack=", "system"),
    ("openat2", "", "refused"),
    ("open_tree", "", "refused"),
    ("move_mount", "", "refused"),
    # Into its control group, or by the init, which is ready.
    ("write", "", "refused"),
    ("unshare", "CLONE_NEWNS|CLONE_NEWCGROUP|CLONE_NEWPID", "refused"),
    ("mount", "\"proc\"", "refused"),
    ("mount", "\"/proc/sys\"", "refused"),
    ("mount", "NULL, \"/proc/sys\"", "refused"),
    ("mount", "\"/dev/.empty/file\"", "refused"),
    ("landlock_create_ruleset", "{", "refused"),
    ("landlock_add_rule", "", "refused"),
    ("landlock_restrict_self", "", "refused"),
    ("capset", "", "refused"),
    ("capget", "", "refused"),
    ("prctl", "PR_GET_NO_NEW_PRIVS", "refused"),
    ("prctl", "PR_SET_DUMPABLE", "refused"),
    ("prctl", "PR_SET_PDEATHSIG", "refused"),
    ("poll", "", "refused"),
    ("pipe2", "", "system"),
    ("seccomp", "SECCOMP_SET_MODE_FILTER", "refused"),
    ("prlimit64", "0, RLIMIT_NOFILE, {", "refused"),
    ("setsid", "", "system"),
    ("chdir", "", "system"),
    ("dup2", "", "system"),
    ("execve", "", "system"),
    ("close_range", "", "runs"),
]

# In such a sandbox: what is done for its file helper. "ends": it dies before it
# has read anything of the client, who is told so.
FILES = [
    ("clone", "child_stack=", "refused"),
    ("unshare", "CLONE_NEWNS|CLONE_NEWCGROUP|CLONE_NEWPID", "refused"),
    ("mount", "NULL, \"/\"", "refused"),
    ("mount", "NULL, \"/proc/sys\"", "ends"),
    ("mount", "\"/dev/.empty/file\"", "ends"),
    ("landlock_create_ruleset", "{", "ends"),
    ("landlock_add_rule", "", "ends"),
    ("prctl", "PR_GET_NO_NEW_PRIVS", "ends"),
    ("capset", "", "ends"),
    ("capget", "", "ends"),
    ("setsid", "", "ends"),
    ("chdir", "", "ends"),
    ("landlock_restrict_self", "", "ends"),
    ("seccomp", "SECCOMP_SET_MODE_FILTER", "ends"),
]

# Only where the door is, or where there is none.
ONLY = {("setns", ""): "root", ("unshare", "CLONE_NEWUSER"): "user",
        ("prctl", "PR_SET_DUMPABLE, SUID_DUMP_USER"): "user", ("poll", ""): "user",
        ("prctl", "PR_SET_PDEATHSIG"): "user", ("prlimit64", "0, RLIMIT_NPROC"): "user",
        ("fsopen", ""): "user", ("fsmount", ""): "user", ("chroot", ""): "user"}


# There is a second try, which fails as well.
TWICE = ("chdir", "landlock_restrict_self")


class Tracer:
    """strace on a process and all that it will start."""

    def __init__(self, pid, directory, *options):
        self.log = pathlib.Path(directory) / "trace"
        self.child = subprocess.Popen(["strace", "-f", "-o", self.log, *options, "-p", str(pid)],
                                      stderr=subprocess.PIPE, text=True)
        line = self.child.stderr.readline()
        assert "attached" in line, line

    def stop(self):
        self.child.terminate()
        try:
            self.child.communicate(timeout=2)
        except subprocess.TimeoutExpired:
            self.child.kill()   # what it traced goes on
            self.child.communicate()
        return self.log.read_text()


def is_traceable():
    return subprocess.run(["strace", "-qo", "/dev/null", "/bin/true"], capture_output=True).returncode == 0


class Bench:
    """One session; each case in a directory, and so a sandbox, of its own."""

    def __init__(self, server, place):
        self.client = server.ready()
        self.client.server = server
        server.wait_log(f"session {self.client.session_id[:8]}: opened")
        self.runner = server.runner(self.client)
        self.place, self.known = place, {}

    def shell(self, user, network="restricted"):
        where = self.place / f"d{next(Shell.numbers)}"
        where.mkdir()
        if ROOT:
            os.chown(where, user.pw_uid, user.pw_gid)
        return Shell(self.client, managed(READ_ALL, path(where, "write"), network=network), where)

    def prepare(self, shell, warm):
        """Who is to be traced."""
        if not warm:
            return self.runner
        before = set(children(self.runner))
        shell("true")
        assert not os.listdir(shell.cwd), "its placeholders, which the next one makes anew"
        return poll(lambda: len(new := {p for p in set(children(self.runner)) - before if name(p) != "execd-calls"}) == 1 and
                    new, what="sandbox alone").pop()

    def sequence(self, user, rows):
        """Of an undisturbed start: {(system call, n of its process): arguments}, in order."""
        warm = id(rows)
        if warm not in self.known:
            shell = self.shell(user)
            calls = sorted({c for c, _, _ in rows})
            tracer = Tracer(self.prepare(shell, rows is not COLD), self.place, "-e", "trace=" + ",".join(calls))
            write_file(shell) if rows is FILES else shell("true")
            count, order = {}, []
            for pid, call, args in re.findall(r"^(\d+) +(\w+)\((.*)$", tracer.stop(), re.M):
                count[pid, call] = count.get((pid, call), 0) + 1
                order.append((call, args, count[pid, call]))
            self.known[warm] = order
        return self.known[warm]

    def find(self, user, rows, call, args):
        return next((n for c, a, n in self.sequence(user, rows) if c == call and a.startswith(args)), None)

    def check_nothing_left(self, where):
        """Sandboxes stay; what they start, and placeholders, do not."""
        poll(lambda: not os.listdir(where), what=f"end of the placeholders: {os.listdir(where)}")
        poll(lambda: all(name(p) in ("execd-sandbox", "execd-calls") and not children(p) for p in children(self.runner)),
             what="end of what was started")


def write_file(shell):
    """What the client is answered."""
    return shell.client.request("fs/writeFile", {"path": uri(shell.cwd / "written"), "sandbox": shell.sandbox,
                                                 "dataBase64": base64.b64encode(b"x").decode()})


@pytest.fixture(scope="module")
def bench(server, long_place):
    if not ROOT:
        pytest.skip("FAILING STEPS ARE NOT TESTED: only root may trace a runner")
    if not shutil.which("strace"):
        pytest.skip("FAILING STEPS ARE NOT TESTED: strace is not installed")
    if not is_traceable():
        pytest.skip("FAILING STEPS ARE NOT TESTED: this host does not let root trace")
    b = Bench(server, long_place)
    yield b
    b.client.drop()


def inject(bench, user, warm, call, args, error):
    """What the client got, and whether the command ran."""
    shell = bench.shell(user)
    when = bench.find(user, WARM if warm else COLD, call, args)
    assert when, f"{call}({args}) is not made any more"
    tracer = Tracer(bench.prepare(shell, warm), bench.place, "-e", f"trace={call}",
                    "-e", f"inject={call}:error={error}:when={when}{'+' if warm and call in TWICE else ''}")
    id = shell.id()
    try:
        m = bench.client.start(id, ["/bin/bash", "-c", "echo > ran"], **shell.params())
        code = bench.client.finished(id).code if "result" in m else None
    finally:
        trace = tracer.stop()
    assert "INJECTED" in trace, trace
    ran = (shell.cwd / "ran").exists()
    if ran:
        (shell.cwd / "ran").unlink()
    return shell, m, code, ran


def check(bench, mode, user, warm, call, args, error, outcome):
    if call == "close_range" and SANITIZED:
        pytest.skip("NOT TESTED: the slower way allocates, where a sanitizer follows no stack")
    only = ONLY.get((call, args))
    if only is not None and only != mode:
        return
    if isinstance(outcome, dict):
        outcome = outcome.get(error, "refused")
    shell, m, code, ran = inject(bench, user, warm, call, args, error)
    if outcome == "runs":
        assert code == 0 and ran and m["result"]["sandboxType"] == "linuxSeccomp", (m, code, shell.log())
    else:
        got = m.get("error") and (m["error"]["code"], m["error"]["message"])
        assert not ran and got, (m, code)
        if outcome == "system":
            assert got[0] == -32603 and f"(os error {NUMBERS[error]})" in got[1], got
        else:
            assert got == REFUSED, got
    bench.check_nothing_left(shell.cwd)
    assert shell("echo again") == "again\n"
    poll(lambda: not os.listdir(shell.cwd), what="end of the placeholders")
    return shell


def ids(rows):
    return [f"{call}-{re.sub(r'[^A-Z]+', '-', args)}".strip("-") for call, args, _ in rows]


def tried(rows):
    """Each step with one error in turn; with every error by scripts/torture."""
    return [pytest.param(*row, error, id=f"{name}-{error}")
            for i, (row, name) in enumerate(zip(rows, ids(rows))) for error in (ERRORS if TORTURE else [ERRORS[i % 3]])]


@pytest.mark.parametrize("call, args, outcome, error", tried(COLD))
def test_a_nest_that_cannot_be_built(bench, mode, user, call, args, outcome, error):
    check(bench, mode, user, False, call, args, error, outcome)


@pytest.mark.parametrize("error", ["ENOSYS", "EPERM"])
def test_a_keyring_that_is_refused(bench, mode, user, error):
    """systemd-nspawn and Docker's default filter answer EPERM."""
    check(bench, mode, user, False, "keyctl", "", error, "runs")


@pytest.mark.parametrize("error", ["ENOSYS", "EBUSY", "EPERM"])
def test_a_kernel_that_hands_no_calls_out(bench, mode, user, error):
    """Or a container that has such a filter already: the bit is refused on directories, too."""
    shell = check(bench, mode, user, False, "seccomp", LISTENER, error,
                  "refused" if error == "EPERM" else "runs")
    there = shell.run("mkdir d; chmod g+s d")
    assert (there.code == 0) == (error == "EPERM"), there.stderr


@pytest.mark.parametrize("network", ["restricted", "enabled"])
def test_a_kernel_before_5_19(bench, user, network):
    """There each signal ends a wait for who carries a call out. What was done for it is answered when it is made again."""
    shell = bench.shell(user, network)
    tracer = Tracer(bench.runner, bench.place, "-e", "trace=seccomp", "-e",
                    f"inject=seccomp:error=EINVAL:when={bench.find(user, COLD, 'seccomp', LISTENER)}")
    shell("true")
    trace = tracer.stop()
    assert re.search(r"NEW_LISTENER\|.*INJECTED.*\n.*NEW_LISTENER, {", trace), trace
    assert shell(python(SIGNALS.replace("PAIRS", "False")), timeout=90) == "[('bind', 0), ('chmod', 0), ('connect', 0, 1)]\n"


@pytest.mark.parametrize("call, args, outcome, error", tried(WARM))
def test_a_command_that_cannot_be_confined(bench, mode, user, call, args, outcome, error):
    check(bench, mode, user, True, call, args, error, outcome)


def test_a_terminal_that_cannot_be_opened(bench, user):
    """Its own, in a /dev/pts of its own: without it no command runs on one that others could name."""
    shell = bench.shell(user)
    tracer = Tracer(bench.prepare(shell, True), bench.place, "-e", "trace=ioctl",
                    "-e", "inject=ioctl:error=EPERM:when=1")
    try:
        m = bench.client.start(shell.id(), ["/bin/bash", "-c", "echo > ran"], **shell.params(tty=True))
    finally:
        trace = tracer.stop()
    assert "INJECTED" in trace, trace
    assert (m["error"]["code"], m["error"]["message"]) == REFUSED and not (shell.cwd / "ran").exists()
    bench.check_nothing_left(shell.cwd)
    assert shell.run("tty", tty=True).pty == "/dev/pts/0\r\n"


@pytest.mark.parametrize("call", ["mount", "openat", "umount2"])
def test_a_resolver_that_cannot_be_shown(bench, user, call):
    """With a list of hosts a command has a resolv.conf of its own. If that fails, the answer would say too much."""
    shell = bench.shell(user)
    shell.sandbox = managed(READ_ALL, path(shell.cwd, "write"), network="enabled")
    listed = {"network": {"allow": ["a.example"]}}
    before = set(children(bench.runner))
    shell("true", **listed)
    sandbox, = [p for p in set(children(bench.runner)) - before if name(p) == "execd-sandbox"]
    tracer = Tracer(sandbox, bench.place, "-P", "/dev/.empty/directory", "-P", "/dev/.empty/directory/resolv.conf",
                    "-e", f"trace={call}", "-e", f"inject={call}:error=EPERM:when=1")
    try:
        m = bench.client.start(shell.id(), ["/bin/bash", "-c", "echo > ran"], **shell.params(**listed))
    finally:
        trace = tracer.stop()
    assert "INJECTED" in trace, trace
    assert (m["error"]["code"], m["error"]["message"]) == REFUSED and not (shell.cwd / "ran").exists()
    assert shell("grep -c ^nameserver.198.18 /etc/resolv.conf; ls /dev/.empty/directory", **listed) == "1\n"


@pytest.mark.parametrize("call, args, outcome, error", tried(FILES))
def test_a_file_helper_that_cannot_be_confined(bench, mode, user, call, args, outcome, error):
    shell = bench.shell(user)
    when = bench.find(user, FILES, call, args)
    assert when, f"{call}({args}) is not made any more"
    tracer = Tracer(bench.prepare(shell, True), bench.place, "-e", f"trace={call}",
                    "-e", f"inject={call}:error={error}:when={when}{'+' if call in TWICE else ''}")
    try:
        m = write_file(shell)
    finally:
        trace = tracer.stop()
    assert "INJECTED" in trace, trace
    got = m.get("error") and (m["error"]["code"], m["error"]["message"])
    assert got == (REFUSED if outcome == "refused" else (-32603, "the file helper of this session ended unexpectedly"))
    assert not (shell.cwd / "written").exists()
    assert "result" in write_file(shell) and (shell.cwd / "written").exists(), "and the next one works"
    (shell.cwd / "written").unlink()
    poll(lambda: not os.listdir(shell.cwd), what="end of the placeholders")
