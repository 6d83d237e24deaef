# SPDX-License-Identifier: ISC
"""Every kind of entry against the real kernel (doc/sandbox.md A4 to A10), looked
at from inside, by a command, and from outside, by the test.
"""
import os
import pathlib
import shutil
import socket
import stat

import pytest
from conftest import ROOT, Shell, as_test_user, children, name, poll
from policies import (PROTECTED, READ_ALL, context, external, glob, managed, path, special,
                      unrestricted, workspace_write)

TREE = """mkdir -p w/a/b/c x w/.git/hooks w/deep/repo/.git/hooks
echo top > w/f; echo a > w/a/f; echo b > w/a/b/f; echo c > w/a/b/c/f; echo x > x/f
echo secret > w/a/.env; echo config > w/.git/config; echo hook > w/.git/hooks/pre-commit
echo config > w/deep/repo/.git/config; echo one > w/deep/repo/f; ln -s w link; ln -s ../x w/out; ln -s a/f w/alias"""


@pytest.fixture
def tree(place, user):
    as_test_user(user, TREE, place)
    return place


@pytest.fixture
def sandbox(session, tree):
    """sandbox(policy, cwd below the tree) is a shell."""
    return lambda policy, cwd="": Shell(session, policy, tree / cwd)


# What a path lets do: r read, w write (a file, and names beside it), - nothing.
def rights(shell, where):
    """From inside; the leftover of a write is checked outside by the caller."""
    r = shell.run(f"read -r x < {where}/f && printf r; echo new >> {where}/f && touch {where}/made && printf w; :")
    return r.stdout or "-"


def own_names(where):
    return sorted(n for n in os.listdir(where) if n not in PROTECTED)


def check(shell, tree, expected):
    for where, want in expected.items():
        file, made = tree / where / "f", tree / where / "made"
        before = file.read_text()
        assert rights(shell, tree / where) == want, where
        wrote = (file.read_text() != before, made.exists())
        assert wrote == (("w" in want),) * 2, where
        if made.exists():
            made.unlink()


# name: (entries, rights of w, w/a, w/a/b, w/a/b/c, x)
def entries_of(t):
    w, a, b, c = t / "w", t / "w/a", t / "w/a/b", t / "w/a/b/c"
    return {
        "nothing": ([], "-----"),
        "read-root": ([READ_ALL], "r r r r r"),
        "write-root": ([special("root", "write")], "rw rw rw rw rw"),
        "write": ([READ_ALL, path(w, "write")], "rw rw rw rw r"),
        "read-below-write": ([READ_ALL, path(w, "write"), path(a, "read")], "rw r r r r"),
        "deny-below-write": ([READ_ALL, path(w, "write"), path(a, "deny")], "rw - - - r"),
        "none-is-deny": ([READ_ALL, path(w, "write"), path(a, "none")], "rw - - - r"),
        "reopened": ([READ_ALL, path(w, "write"), path(a, "deny"), path(b, "write")], "rw - rw rw r"),
        "all-levels": ([READ_ALL, path(w, "write"), path(a, "deny"), path(b, "write"), path(c, "read")],
                       "rw - rw r r"),
        "all-levels-backwards": ([path(c, "read"), path(b, "write"), path(a, "deny"), path(w, "write"), READ_ALL],
                                 "rw - rw r r"),
        "write-below-read": ([READ_ALL, path(b, "write")], "r r rw rw r"),
        "deny-root": ([special("root", "deny"), path(b, "read"), path("/usr", "read"), path("/lib", "read"),
                       path("/lib64", "read"), path("/bin", "read")], "- - r r -"),
        "same-path-write-read": ([READ_ALL, path(w, "read"), path(w, "write")], "rw rw rw rw r"),
        "same-path-write-deny": ([READ_ALL, path(w, "write"), path(w, "deny")], "- - - - r"),
        "twice": ([READ_ALL, READ_ALL, path(w, "write"), path(w, "write")], "rw rw rw rw r"),
        "dots": ([READ_ALL, path(f"{w}/a/../a/./b", "write")], "r r rw rw r"),
        "link-as-root": ([READ_ALL, path(t / "link", "write")], "rw rw rw rw r"),
        "missing-write": ([READ_ALL, path(t / "none", "write"), path(b, "write")], "r r rw rw r"),
        "deny-outside": ([READ_ALL, path(w, "write"), path(t / "x", "deny")], "rw rw rw rw -"),
        "roots": ([READ_ALL, special("project_roots", "write")], "rw rw rw rw r"),
        "cwd-is-roots": ([READ_ALL, special("current_working_directory", "write")], "rw rw rw rw r"),
        "roots-subpath": ([READ_ALL, special("project_roots", "write", "a/b")], "r r rw rw r"),
        "roots-deny-subpath": ([READ_ALL, special("project_roots", "write"),
                                special("project_roots", "deny", "a")], "rw - - - r"),
        "subpath-escapes": ([READ_ALL, special("project_roots", "write", "../x")], "r r r r r"),
        "subpath-absolute": ([READ_ALL, special("project_roots", "write", str(t / "x"))], "r r r r r"),
        "unknown": ([READ_ALL, {"path": {"type": "special", "value": {"kind": "unknown", "path": ":x"}},
                                "access": "write"}], "r r r r r"),
        "minimal": ([special("minimal", "read"), path(b, "write")], "- - rw rw -"),
        "glob-directory": ([READ_ALL, path(w, "write"), glob(f"{w}/a/b*")], "rw rw - - r"),
        "glob-files": ([READ_ALL, path(w, "write"), glob(f"{w}/a/**/f")], None),
        "glob-relative": ([READ_ALL, path(w, "write"), glob("a/b")], "rw rw - - r"),
        "glob-roots": ([READ_ALL, path(w, "write"), glob("codex-project-roots://a")], "rw - - - r"),
        "glob-read-is-nothing": ([READ_ALL, path(w, "write"), glob(f"{w}/**", "read")], "rw rw rw rw r"),
    }


NAMES = sorted(entries_of(pathlib.Path("/")))


@pytest.mark.parametrize("name", NAMES)
def test_entries(sandbox, tree, name):
    entries, want = entries_of(tree)[name]
    shell = sandbox(managed(*entries, roots=[tree / "w"], cwd=tree / "w"))
    if name == "nothing":
        code, text = shell.refusal()
        assert (code, text) == (-32603, "No such file or directory (os error 2)")
        return
    if want is None:
        assert shell.run("cat w/f; cat w/a/f w/a/b/f w/a/b/c/f").stdout == "top\n"
        assert shell.run("mv w/a/f w/g || rm -f w/a/f || echo x > w/a/f").code != 0
        assert (tree / "w/a/f").read_text() == "a\n"
        return
    check(shell, tree, dict(zip(("w", "w/a", "w/a/b", "w/a/b/c", "x"), want.split())))


def test_no_roots_is_nothing_to_write(sandbox, tree):
    shell = sandbox(managed(READ_ALL, special("project_roots", "write")), "w")
    check(shell, tree, {"w": "r", "x": "r"})


def test_file_entries(sandbox, tree):
    shell = sandbox(managed(READ_ALL, path(tree / "w/f", "write"), path(tree / "x/f", "deny")))
    assert shell("echo new > w/f; cat w/f") == "new\n" and (tree / "w/f").read_text() == "new\n"
    for script in ("rm w/f", "touch w/g", "echo x > w/a/f", "cat x/f", "mv x/f x/g", "chmod 777 x/f"):
        assert shell.run(script).code != 0, script
    assert (tree / "x/f").read_text() == "x\n"


def test_the_name_behind_a_link_is_not_writable(sandbox, tree):
    shell = sandbox(managed(READ_ALL, path(tree / "w", "write")))
    assert shell.run("echo x > w/out/f").code != 0 and (tree / "x/f").read_text() == "x\n"
    assert shell.run("ln -s ../x w/fresh; echo x > w/fresh/f").code != 0
    assert (tree / "x/f").read_text() == "x\n"


def test_a_denied_path_behind_a_writable_link_is_refused(sandbox, tree):
    code, text = sandbox(managed(READ_ALL, path(tree / "w", "write"), path(tree / "w/out/f", "deny"))).refusal()
    assert code == -32602 and "crosses writable symlink" in text


@pytest.mark.parametrize("where", ["/proc", "/dev", "/dev/null", "/dev/shm"])
def test_entries_for_what_every_view_has(sandbox, where):
    for access in ("read", "write"):
        shell = sandbox(managed(READ_ALL, path(where, access)))
        assert shell("echo x > /dev/null; head -c 1 /dev/zero | wc -c; cat /proc/self/comm") == "1\ncat\n"


def test_a_workspace_in_dev_shm(sandbox):
    """It is the host's directory, and everything beside it the sandbox's own."""
    where = pathlib.Path(f"/dev/shm/execd-test-{os.getpid()}")
    where.mkdir()
    where.chmod(0o777)
    try:
        shell = sandbox(managed(READ_ALL, path(where, "write")), where)
        assert shell("echo x > f; mkdir d && cat f; ls /dev/shm") == f"x\n{where.name}\n"
        assert (where / "f").read_text() == "x\n" and (where / "d").is_dir()
        shell(f"echo x > /dev/shm/{where.name}-2")
        assert not where.with_name(where.name + "-2").exists()
    finally:
        shutil.rmtree(where)


def test_what_a_workspace_in_dev_shm_protects(sandbox, user):
    """As in one anywhere else: what is there, and what is not."""
    where = pathlib.Path(f"/dev/shm/execd-test-{os.getpid()}")
    as_test_user(user, f"mkdir -p {where}/.git/hooks", "/")
    try:
        shell = sandbox(workspace_write(where), where)
        assert shell("for f in .git/x .git/hooks/x .codex/x; do echo x 2> /dev/null > $f && echo wrote $f; done; "
                     "mv .git moved 2> /dev/null && echo moved; echo x > f; ls") == "f\n"
        assert sorted(os.listdir(where)) == [".git", "f"] and os.listdir(where / ".git/hooks") == []
        # Whoever sees what takes its place is killed.
        id = shell.start("echo up; exec sleep 1000")
        shell.client.wait(lambda: b"up" in shell.client.output(id), what="the command")
        as_test_user(user, "mv .git old; mkdir .git", where)
        assert "was replaced outside of the sandbox" in shell.client.finished(id).stderr
    finally:
        shutil.rmtree(where)


def test_dev_shm_itself_as_a_workspace(sandbox, user):
    """It is the host's then, so that nothing that is written there is lost; the answer names no size of an own one."""
    name = f"execd-test-{os.getpid()}"
    as_test_user(user, f"mkdir -p /dev/shm/{name}", "/")
    try:
        shell = sandbox(managed(READ_ALL, path("/dev/shm", "write")), "/dev/shm")
        assert shell(f"echo x > {name}/f && cat /dev/shm/{name}/f; /usr/bin/python3 -c 'import multiprocessing as m; m.Lock()'") == "x\n"
        assert pathlib.Path(f"/dev/shm/{name}/f").read_text() == "x\n"
        assert not any(os.path.lexists(f"/dev/shm/{n}") for n in PROTECTED)
        told = shell.client.start(shell.id(), ["/bin/true"], **shell.params())["result"]["sandbox"]["enforced"]
        assert told["limits"]["shmBytes"] is None, told
    finally:
        shutil.rmtree(f"/dev/shm/{name}")


def test_slash_tmp(sandbox, tree):
    name = f"/tmp/execd-test-{os.getpid()}"
    assert sandbox(managed(READ_ALL)).run(f"touch {name}").code != 0
    sandbox(managed(READ_ALL, special("slash_tmp", "write")))(f"touch {name}")
    os.unlink(name)


def test_minimal_hides_the_rest(sandbox, tree):
    shell = sandbox(managed(special("minimal", "read")), "/")
    assert shell("pwd; ls /").split() == ["/", "bin", "dev", "etc", "lib", "lib64", "proc", "sbin", "usr"]
    assert shell("cat /proc/self/comm; echo x > /dev/null; echo ok") == "cat\nok\n"
    for script in ("echo x > /etc/x", "mkdir /x", "echo x > /usr/x", f"ls {tree}", "ls /run /sys"):
        assert shell.run(script).code != 0, script


@pytest.mark.parametrize("policy", ["root-write", "unrestricted", "external", "unrestricted-net", "external-net"])
def test_full_write(sandbox, tree, policy):
    shell = sandbox({"root-write": managed(special("root", "write")), "unrestricted": unrestricted("restricted"),
                     "external": external("restricted"), "unrestricted-net": unrestricted("enabled"),
                     "external-net": external("enabled")}[policy])
    check(shell, tree, {"w": "rw", "x": "rw"})
    shell("echo mine > w/.git/config")
    listener = socket.create_server(("127.0.0.1", 0))
    r = shell.run(f"/usr/bin/python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {listener.getsockname()[1]}))'")
    assert (r.code == 0) == policy.endswith("-net"), r.stderr
    if not policy.endswith("-net"):        # O11: processes of the host are not seen
        assert int(shell("ls -d /proc/[0-9]* | wc -l")) <= 5


def announces(client, name):
    return client.call("environment/info")["capabilities"].get(name)


def test_an_approved_escalation_keeps_its_restrictions(sandbox, session, tree, user):
    """What the client sends once a person has approved: all may be written but what the profile denies. Whatever leads
    there stays closed: links, other names, a write entry that is a link, another namespace, the host's view."""
    assert announces(session, "linuxApprovedRootWritePreservesRestrictions") is True
    as_test_user(user, "mkdir secret; echo key > secret/f; echo key > file; ln -s secret way; "
                 "ln -s secret/f short", tree)
    denied = [path(tree / n, "deny") for n in ("secret", "file")]
    names = [path(f"/{n}", "write") for n in (".git", ".agents", ".codex", ".aws")]
    shell = sandbox({**managed(special("root", "write"), *denied, *names, path(tree / "way", "write"), cwd=tree / "w"),
                     "sandboxOverride": "escalatedSandboxWithRestrictions"})
    shell(f"echo x > {tree}/w/new; echo x > {tree}/x/new")
    for script in ("cat {}/secret/f", "cat {}/file", "cat {}/way/f", "cat {}/short", "ls {}/secret/", "ls {}/way/",
                   "echo x > {}/secret/new", "echo x > {}/way/new", "mv {0}/secret {0}/moved", "rm -rf {}/secret",
                   "chmod 777 {0}/secret && ls {0}/secret/", "cd {}/secret", "ln {0}/file {0}/other && cat {0}/other",
                   "cat /proc/self/root{}/secret/f", "cat /proc/1/root{}/secret/f", "umount {}/secret",
                   "unshare -Urm true", "mount --bind {0}/secret {0}/w", "mv {0}/file {0}/moved",
                   "mv {0} {0}-moved && cat {0}-moved/secret/f"):
        assert shell.run(script.format(tree)).code != 0, script
    assert (tree / "secret/f").read_text() == "key\n" and (tree / "file").read_text() == "key\n"
    assert os.listdir(tree / "secret") == ["f"]


DEVICES = ("null", "zero", "full", "random", "urandom", "tty")


@pytest.mark.parametrize("deny", [False, True])
def test_devices_of_a_sandbox_that_writes_everywhere(sandbox, session, tree, user, deny):
    """They are usable, and no command takes them from the next one or from the host."""
    assert announces(session, "linuxRootWritePreservesDevices") is True
    shell = sandbox(managed(special("root", "write"), *([path(tree / "x", "deny")] if deny else [])))
    for attack in ("true", "rm -f /dev/null /dev/zero; rmdir /dev/shm /dev/pts; mv /dev/random /dev/r; ln -sf /etc/passwd /dev/full",
                   "chmod 0 /dev/null /dev/tty; umount /dev/pts /dev/shm /dev; mount -t tmpfs none /dev"):
        shell.run(attack)
        shell(" && ".join(f"test -c /dev/{d}" for d in DEVICES))
        assert shell("echo x > /dev/null; head -c 2 /dev/zero | od -An -tx1; head -c 9 /dev/urandom | wc -c; "
                     "head -c 9 /dev/random | wc -c") == " 00 00\n9\n9\n"
        assert "No space left" in shell.run("echo x > /dev/full").stderr
        shell("f=$(mktemp /dev/shm/XXXXXX); rm $f; /usr/bin/python3 -c 'import os; a, b = os.openpty(); os.ttyname(b)'")
    for d in DEVICES:
        assert stat.S_ISCHR(os.stat(f"/dev/{d}").st_mode)
    if deny:
        assert shell.run("ls /dev/kmsg /dev/mem /dev/fuse /dev/net").stdout == ""


def test_the_host_is_not_there(sandbox, tree):
    shell = sandbox(workspace_write(tree / "w"))
    assert shell("ls /run; ls /sys/fs/cgroup; ls /sys/kernel/debug") == ""
    for script in ("mount -t tmpfs none /mnt", "unshare -U true", "mknod x/d c 1 3", "chroot / true"):
        r = shell.run(script)
        assert r.code != 0, script
    # An error only with Landlock ABI 6: the kernel says that the signal was sent, and drops it.
    assert shell("kill -9 1 2>/dev/null; echo alive") == "alive\n"
    assert shell("cat /proc/self/status | grep -E '^(Cap|NoNewPrivs|Seccomp:)'").split() == \
        [w for n in ("Inh", "Prm", "Eff", "Bnd", "Amb") for w in (f"Cap{n}:", "0" * 16)] + \
        ["NoNewPrivs:", "1", "Seccomp:", "2"]
    assert shell("ls /proc/self/fd | wc -l") == "4\n"       # and that of ls itself
    assert shell("ulimit -c; ulimit -Hc") == "0\n0\n"


# --- protected names ----------------------------------------------------------

def test_protected_names_that_are_there(sandbox, tree):
    shell = sandbox(workspace_write(tree / "w"), "w")
    for script in ("echo x >> .git/config", "rm .git/hooks/pre-commit", "mv .git g", "rm -rf .git", "touch .git/x",
                   "chmod 777 .git", "touch -d @1 .git/config", "ln .git/config c", "mv a .git/a", "rmdir .git/hooks"):
        assert shell.run(script).code != 0, script
    assert (tree / "w/.git/config").read_text() == "config\n" and (tree / "w/.git/hooks/pre-commit").exists()
    assert shell("cat .git/config") == "config\n"


def test_a_write_entry_opens_a_protected_name(sandbox, tree):
    more = [path(tree / "w/.git", "write")]
    policy = managed(READ_ALL, special("project_roots", "write"), *more, roots=[tree / "w"], cwd=tree / "w")
    sandbox(policy, "w")("echo x >> .git/config")
    assert (tree / "w/.git/config").read_text() == "config\nx\n"


def test_nested_repositories(sandbox, tree):
    """They are the command's own work, unless the operator says otherwise (test_ceiling.py)."""
    shell = sandbox(workspace_write(tree / "w"), "w/deep/repo")
    shell("echo x >> .git/config; echo x > .git/hooks/post-checkout; echo x > .git/index; mv ../../deep ../../d")
    assert (tree / "w/d/repo/.git/config").read_text() == "config\nx\n"


def test_worktrees(session, tree, user):
    """O5: the common directory is as protected as .git itself."""
    as_test_user(user, "export HOME=$PWD GIT_CONFIG_GLOBAL=/dev/null; cd x; git init -q main; cd main; "
                 "git -c user.name=t -c user.email=t@example.org commit -q --allow-empty -m m; "
                 "git worktree add -q ../../tree", tree)
    shell = Shell(session, workspace_write(tree / "tree", more=[path(tree / "x", "write")]), tree / "tree")
    assert shell("git -c safe.directory='*' status --porcelain") == ""
    for script in ("echo x > .git", f"echo x >> {tree}/x/main/.git/config", f"touch {tree}/x/main/.git/hooks/x",
                   f"touch {tree}/x/main/.git/worktrees/tree/x"):
        assert shell.run(script).code != 0, script


def protected(where):
    return sorted(n for n in os.listdir(where) if n in PROTECTED)


@pytest.fixture
def empty(session, place):
    """A workspace without any protected name."""
    return Shell(session, workspace_write(place), place)


def test_placeholders_for_missing_names(empty, place):
    id = empty.start("exec 2> /dev/null; mkdir .git/x; echo x > .agents; rmdir .git; mv .codex c; touch .git/y; "
                     "ls -A; echo up; read x", pipeStdin=True)
    text = empty.client.wait_output(id, "up").decode()
    assert text.split() == [*sorted(PROTECTED), "up"]
    assert protected(place) == sorted(PROTECTED)
    assert all((place / n).stat().st_mode & 0o777 == 0o755 and not os.listdir(place / n) for n in PROTECTED)
    empty.client.write(id, "\n")
    empty.client.finished(id)
    assert not os.listdir(place), "gone before process/closed"


@pytest.mark.parametrize("end", ["terminate", "command", "init", "sandbox", "connection"])
def test_placeholders_are_gone_after_every_end(server, place, end):
    client = server.ready()
    server.wait_log(f"session {client.session_id[:8]}: opened")
    runner = server.runner(client)
    shell = Shell(client, workspace_write(place), place)
    id = shell.start("echo up; sleep 1000")
    client.wait_output(id, "up")
    assert protected(place) == sorted(PROTECTED)

    def named(wanted):
        return [p for p in children(runner) if name(p) == wanted]

    if end == "terminate":
        client.terminate(id)
    elif end == "connection":
        client.terminate(id)
        client.close()
    else:
        if not ROOT:
            pytest.skip("NOT TESTED: only root reaches into a sandbox")
        # The shell becomes the sleep: in between neither name finds it.
        asleep = poll(lambda: named("sleep"), what="all of the command")
        for p in named({"command": "sleep", "init": "execd-init", "sandbox": "execd-sandbox"}[end]) or asleep:
            os.kill(p, 9)
        if end == "sandbox":
            assert protected(place) == sorted(PROTECTED), "what runs keeps its placeholders"
            client.terminate(id)
    poll(lambda: not os.listdir(place), what="end of the placeholders")
    client.drop()


def test_placeholders_are_gone_after_the_runner_was_killed(spawn, place):
    server = spawn()
    client = server.ready()
    server.wait_log(f"session {client.session_id[:8]}: opened")
    shell = Shell(client, workspace_write(place), place)
    id = shell.start("echo up; sleep 1000")
    client.wait_output(id, "up")
    os.kill(server.runner(client), 9)
    client.wait_closed()
    poll(lambda: not os.listdir(place), what="end of the placeholders")


def test_two_sessions_share_placeholders(server, place):
    a, b = server.ready(), server.ready()
    first, second = (Shell(c, workspace_write(place), place) for c in (a, b))
    one = first.start("echo up; sleep 1000")
    a.wait_output(one, "up")
    two = second.start("echo up; until ! [ -e stop ]; do :; done; read x; mkdir .git/x || ls -A .git", pipeStdin=True)
    b.wait_output(two, "up")
    a.terminate(one)
    a.finished(one)
    a.close()
    assert first.client.closed and protected(place) == sorted(PROTECTED), "the other one is there still"
    b.write(two, "\n")
    r = b.finished(two)
    assert "Read-only file system" in r.stderr and r.stdout == "up\n"
    poll(lambda: not os.listdir(place), what="end of the placeholders")
    b.drop()


def test_a_repository_made_meanwhile_is_left_alone(empty, place, user):
    id = empty.start("echo up; read x; touch .git/x", pipeStdin=True)
    empty.client.wait_output(id, "up")
    as_test_user(user, "chmod 755 .git; git init -q .", place)
    empty.client.write(id, "\n")
    r = empty.client.finished(id)
    assert r.code != 0 and "Read-only file system" in r.stderr
    poll(lambda: protected(place) == [".git"], what="end of the other placeholders")
    assert (place / ".git/HEAD").exists() and not (place / ".git/x").exists()
    assert empty.run("touch .git/x").code != 0, "protected, now that it is there"


# --- what changes --------------------------------------------------------------

def test_a_root_that_vanishes(session, place, user):
    as_test_user(user, "mkdir w", place)
    shell = Shell(session, managed(READ_ALL, path(place / "w", "write")), place)
    shell("touch w/a")
    poll(lambda: not protected(place / "w"), what="end of the placeholders")
    shutil.rmtree(place / "w")
    assert shell.run("mkdir w; touch w/b").code != 0, "a missing entry grants nothing"
    as_test_user(user, "mkdir w", place)
    shell("touch w/c")
    assert own_names(place / "w") == ["c"]


def test_a_directory_replaced_under_a_view(session, place, user):
    """Also by one that the file system gives the same inode number."""
    as_test_user(user, "mkdir -p w/.git", place)
    shell = Shell(session, workspace_write(place / "w"), place / "w")
    for i in range(8):
        shell("touch f")
        as_test_user(user, "rm -rf w/.git; mkdir w/.git; echo x > w/.git/config", place)
        r = shell.run("echo bad > .git/config")
        assert r.code != 0 and (place / "w/.git/config").read_text() == "x\n", i
        as_test_user(user, "rm -rf w; mkdir -p w/.git", place)
        assert shell.run("touch .git/x").code != 0 and os.listdir(place / "w/.git") == [], i
        shell("touch f")
        assert (place / "w/f").exists(), "the new root is the one that is writable"


# --- limits ---------------------------------------------------------------------

def test_more_policies_at_once_than_are_kept(server, place, user):
    """Each in use has a sandbox; of those that nobody uses any more, a few stay."""
    client = server.ready()
    client.server = server
    many = 40
    as_test_user(user, f"mkdir $(seq {many})", place)
    shells = [Shell(client, managed(READ_ALL, path(place / str(i + 1), "write")), place) for i in range(many)]
    ids = [s.start(f"read x; echo $x > {i + 1}/f; cat {i + 1}/f", pipeStdin=True) for i, s in enumerate(shells)]
    for id in ids:
        client.write(id, b"in\n")
    assert [client.finished(id).stdout for id in ids] == ["in\n"] * many
    runner = server.runner(client)
    poll(lambda: sum(name(p) == "execd-sandbox" for p in children(runner)) <= 16, what="the end of what nobody uses")
    assert shells[0].run("echo again > 1/f; cat 1/f").stdout == "again\n"
    client.drop()


def test_ten_thousand_entries(session, place, user):
    as_test_user(user, "mkdir w; cd w; seq -f d%g 300 | xargs mkdir", place)
    many = [path(place / f"w/d{i % 300 + 1}", "read") for i in range(9998)]
    shell = Shell(session, managed(READ_ALL, path(place / "w", "write"), *many), place / "w")
    assert shell.run("touch ok; touch d7/x", 60).code != 0 and (place / "w/ok").exists()
    assert os.listdir(place / "w/d7") == []
    shell = Shell(session, managed(READ_ALL, *many, path(place / "w", "write"), READ_ALL, READ_ALL), place / "w")
    code, text = shell.refusal()
    assert code == -32602 and "10000" in text
    (place / "w/ok").unlink()


def test_missing_entries_by_the_thousand(session, place):
    shell = Shell(session, managed(READ_ALL, *[path(place / f"none{i}/x", "write") for i in range(3000)]), place)
    shell("true")
    assert os.listdir(place) == []


@pytest.mark.parametrize("sandbox, text", [
    ({}, "missing field `permissions`"),
    ({"permissions": {"type": "managed", "file_system": {"type": "unrestricted"}}, "windowsSandboxLevel": "disabled"},
     "missing field `network`"),
    ({"permissions": {"type": "managed", "network": "enabled"}, "windowsSandboxLevel": "disabled"},
     "missing field `file_system`"),
    (managed({"path": {"type": "path", "path": "/plain"}, "access": "read"}), "invalid URI: relative URL without a base"),
    (managed({"path": {"type": "path", "path": "file:///x"}, "access": "admin"}), "unknown variant `admin`"),
    (managed(READ_ALL, glob_scan_max_depth=0), "expected a nonzero usize"),
    (managed(READ_ALL, path("/tmp/nul%00", "write")), ""),
    (managed(READ_ALL, glob("/x/[z-a]")), ""),
    (managed(READ_ALL, glob("/**")), ""),
    ({"permissions": {"type": "disabled"}}, "missing field `windowsSandboxLevel`"),
])
def test_refused_before_anything_runs(session, place, sandbox, text):
    id = f"refused{next(Shell.numbers)}"
    m = session.start(id, ["/usr/bin/touch", str(place / "ran")], sandbox=sandbox)
    if "error" in m:
        assert m["error"]["code"] == -32602 and text in m["error"]["message"], m
        assert os.listdir(place) == []
    else:
        assert not text, m
        assert session.finished(id).code != 0 and os.listdir(place) == []


def test_a_context_that_asks_for_nothing(session, place, user):
    """`disabled` is no sandbox, and says so."""
    m = session.start("plain", ["/bin/true"], sandbox=context({"type": "disabled"}))
    if "error" in m:
        pytest.skip("NOT TESTED: unsandboxed commands are refused here")
    assert m["result"]["sandboxType"] == "none" and session.finished("plain").code == 0
