# SPDX-License-Identifier: ISC
"""What a hostile command under workspace-write may try beside the public attacks: each attempt must fail, and what
follows it must be as safe as before.
"""
import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys

import pytest
from conftest import PATIENCE_S, ROOT, Shell, as_test_user, as_user, children, direct, name, poll, prepared
from execd_client import start_params
from policies import PROTECTED, READ_ALL, managed, path, workspace_write

# Raw system calls: what each answers, by name. 0 is success.
CALLS = """
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(n, *args):
    r = libc.syscall(n, *args)
    return "0" if r >= 0 else errno.errorcode[ctypes.get_errno()]
"""


@pytest.fixture
def box(session, place):
    return Shell(session, workspace_write(place), place)


def python(box, code, **extra):
    (box.cwd / "attack.py").write_text(CALLS + code)
    return box(f"/usr/bin/python3 {box.cwd}/attack.py", **extra)


def test_no_descriptor_comes_along(box):
    """Not those of the control group, of the sandbox's channel, of its view, of a ruleset or another command's pipes."""
    seen = box("ls -l /proc/self/fd | sed 's/.* -> //' | sed 's/[0-9]//g'; ls /proc/self/fd | wc -l").split()
    assert seen[-1] == "4", "0, 1, 2 and the directory that ls reads"
    assert {x for x in seen[:-1] if x.startswith("/") or ":" in x} == {"/dev/null", "/proc//fd", "pipe:[]"}, seen


def test_its_init_gives_nothing_away(box):
    out = box("for f in environ maps mem root cwd fd exe cmdline; do (ls /proc/1/$f/ || cat /proc/1/$f) 2> /dev/null "
              "| grep -q . && echo $f; done; kill -9 1; kill -STOP 1; echo alive; "
              "(echo 1000 > /proc/1/oom_score_adj) 2> /dev/null && echo adjusted; :")
    assert out == "alive\n", out


INIT = """
import struct
buf = ctypes.create_string_buffer(struct.pack("QQ", 0, 0) * 64)
for n, *args in ((302, 1, 7, buf, 0), (302, 1, 7, 0, buf), (144, 1, 0, buf), (142, 1, buf), (314, 1, buf, 0), (203, 1, 8, buf),
                 (141, 0, 1, 19), (141, 1, 1, 19), (141, 2, 0, 19), (251, 1, 1, 0), (251, 2, 1, 0), (251, 3, 0, 0)):
    print(n, call(n, *args))
for n, *args in ((302, 0, 7, 0, buf), (203, 0, 8, struct.pack("Q", 1)), (141, 0, 0, 5), (251, 1, 0, 4 | 2 << 13), (141, 1, 0, 6)):
    print("own", n, call(n, *args))
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="SKIPPED: these are the numbers of x86-64")
def test_its_init_keeps_its_limits_and_its_priority(box):
    """Limits, schedulers, processors, priorities: of the init, of its group, and of all its user's. One's own may be changed."""
    lines = python(box, INIT).splitlines()
    assert {x.split()[-1] for x in lines if not x.startswith("own")} == {"EPERM"}, lines
    assert {x.split()[-1] for x in lines if x.startswith("own")} == {"0"}, lines


def test_the_names_of_groups_do_not_show(box):
    """A cgroup namespace of its own: where it is in the host's tree is nobody's business."""
    paths = {line.split(":", 2)[2] for line in box("cat /proc/self/cgroup").splitlines()}
    assert paths <= {"/"}, paths
    # Version 2 shows the files of its own group.
    assert box("find /sys/fs/cgroup -mindepth 1 -not -type f | wc -l") == "0\n"


def test_a_placeholder_cannot_be_unmade(box, place):
    """Its marks are what takes it away in the end: nothing inside may change them, or put something there."""
    for n in PROTECTED:
        out = box(f"chmod 755 {n}; touch {n}; touch -d @5 {n}; rmdir {n}; mv {n} x; mv -T x {n}; mkdir {n}/y; "
                  f"ln -s /etc {n}/z; mkdir y; mv -T --exchange y {n}; rmdir y; :", timeout=20)
        assert out == "" and not (place / "x").exists(), n
    poll(lambda: not [n for n in os.listdir(place) if n.startswith(".")], what=f"end of placeholders {os.listdir(place)}")


def test_a_placeholder_that_is_replaced_outside(box, place, user):
    """While one command runs, and in the moment after: the next one finds the real thing, and may not write to it."""
    replace = "rmdir .git && mkdir -p .git/hooks && echo '[core]' > .git/config"
    attack = "(echo x > .git/hooks/pre-push) 2> /dev/null && echo BREACH; (echo x >> .git/config) 2> /dev/null && " \
             "echo BREACH; mv .git g 2> /dev/null && echo BREACH; echo tried"
    id = box.start("read x", pipeStdin=True)
    poll(lambda: (place / ".git").exists(), what="placeholder")
    as_test_user(user, replace, place)
    assert box(attack) == "tried\n"
    box.client.request("process/terminate", {"processId": id})
    box.client.finished(id)
    subprocess.run(["rm", "-rf", place / ".git"], check=True)
    for _ in range(5):
        assert box("test -d .git && echo masked") == "masked\n"
        direct(user, ["/bin/sh", "-c", replace], place)   # before or after the placeholders went by themselves
        if not (place / ".git").exists():
            as_test_user(user, "mkdir -p .git/hooks; echo > .git/config", place)
        assert box(attack) == "tried\n"
        assert not (place / ".git/hooks/pre-push").exists()
        subprocess.run(["rm", "-rf", place / ".git"], check=True)


def test_placeholders_are_not_in_the_way_of_others(session, place, user):
    """Of a command without a policy, and of a policy that names them: once all of the command is gone, they go."""
    box = Shell(session, workspace_write(place), place)

    def makes_git():
        id = f"plain{next(Shell.numbers)}"
        session.start(id, ["/bin/mkdir", ".git"], cwd=f"file://{place}", env={"PATH": "/bin"})
        return session.finished(id).code == 0
    for n in range(5):
        assert box("echo $((1 + 1))") == "2\n"
        poll(makes_git, what="end of the placeholder")
        os.rmdir(place / ".git")
    git = managed(READ_ALL, path(place, "write"), path(place / ".git/objects", "write"), roots=[place])
    as_test_user(user, "mkdir -p .git/objects", place)
    assert Shell(session, git, place)("echo x > .git/objects/x && cat .git/objects/x") == "x\n"


FORGE = "chmod 555 a; touch -d @1 a"


@pytest.mark.parametrize("denied", ["a/private", "a/private/key"])
def test_a_forged_placeholder_with_content(session, place, user, denied):
    """Mode and time prove nothing: what is denied below a directory that looks like a placeholder stays denied."""
    as_test_user(user, f"mkdir -p a/private; echo secret > a/private/key; {FORGE}", place)
    box = Shell(session, managed(READ_ALL, path(place, "write"), path(place / denied, "deny"), roots=[place]), place)
    assert box("cat a/private/key 2> /dev/null; (echo x > a/private/key) 2> /dev/null; echo tried") == "tried\n"
    assert (place / "a/private/key").read_text() == "secret\n"


def test_a_placeholder_that_is_filled_outside(session, place, user):
    """A command never sees what somebody writes into the placeholder of a denied name, or puts into that of a protected one."""
    box = Shell(session, managed(READ_ALL, path(place, "write"), path(place / "a", "deny"), roots=[place]), place)
    id = box.start("echo up; read x; cat a; ls .git; echo tried", pipeStdin=True)
    box.client.wait_output(id, "up")
    as_test_user(user, "test -f a && echo secret > a; touch -d @1 a; chmod 755 .git; echo secret > .git/config; "
                       "chmod 555 .git; touch -d @1 .git", place)
    assert (place / "a").read_text() == (place / ".git/config").read_text() == "secret\n"
    box.client.write(id, "\n")
    assert box.client.finished(id).stdout == "up\ntried\n"
    # The next one finds files of the user's: the one is denied, the other protected.
    assert box("cat a 2> /dev/null; (echo x > .git/config) 2> /dev/null; cat .git/config") == "secret\n"


def test_a_forged_placeholder_under_what_the_operator_denies(configured, place, user, sandboxes):
    """From any session, with any policy."""
    as_test_user(user, f"mkdir -p a/private; echo secret > a/private/key; {FORGE}", place)
    s = configured(f"[listener main]\naddress = ws://127.0.0.1:0\nallow-unauthenticated = a\n[identity a]\n"
                   f"user = {user.pw_name}\n[sandbox]\ndeny-read = {place}/a/private\n")
    for _ in range(2):
        box = Shell(s.ready(), workspace_write(place), place)
        assert box("cat a/private/key 2> /dev/null; echo tried") == "tried\n"
        m = box.client.request("fs/readFile", {"path": f"file://{place}/a/private/key"})
        assert "error" in m, m


LEASE = "import fcntl, os, sys; f = os.open(sys.argv[1], os.O_WRONLY); fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK); " \
        "print('held', flush=True); sys.stdin.read()"


@pytest.mark.parametrize("file", [".git", "repo/commondir"])
def test_a_lease_on_a_pointer(session, place, user, file):
    """A pointer that cannot be read now is not one that is absent: what it points to would be writable."""
    as_test_user(user, "mkdir -p ws repo common; echo gitdir: ../repo > ws/.git; echo ../common > repo/commondir", place)
    work = place / "ws"
    box = Shell(session, managed(READ_ALL, path(place, "write"), path(work, "write"), roots=[work]), work)
    assert box("(echo x > ../repo/config) 2> /dev/null; (echo x > ../common/config) 2> /dev/null; echo tried") == "tried\n"
    held = place / ("ws/.git" if file == ".git" else file)
    holder = subprocess.Popen(as_user(user, [sys.executable, "-c", LEASE, str(held)]), stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "held\n"
        m = session.start(f"leased{next(Shell.numbers)}", ["/bin/true"], cwd=f"file://{work}", sandbox=box.sandbox)
        assert m["error"]["code"] == -32602 and f"cannot read {held}, which may name a git directory" in m["error"]["message"], m
        assert session.run(f"beside{next(Shell.numbers)}", ["/bin/echo", "in"]).stdout == "in\n", "nothing else waits for the lease"
    finally:
        holder.communicate("")
    assert box("(echo x > ../repo/config) 2> /dev/null; (echo x > ../common/config) 2> /dev/null; echo tried") == "tried\n"
    assert not (place / "repo/config").exists() and not (place / "common/config").exists()


def test_links_out_of_what_is_protected(box, place, user):
    as_test_user(user, "mkdir -p .git/hooks; echo real > .git/config", place)
    out = box("ln .git/config a 2> /dev/null && echo BREACH; cp -al .git b 2> /dev/null; "
              "(echo x > b/config) 2> /dev/null; ln -sfn $PWD/.git c; (echo x > c/config) 2> /dev/null && echo BREACH; "
              "cd .git/..; (echo x > ./.git/config) 2> /dev/null && echo BREACH; "
              "exec 3< .git/config; (echo x > /proc/self/fd/3) 2> /dev/null && echo BREACH; echo tried")
    assert out == "tried\n" and (place / ".git/config").read_text() == "real\n"


LINKS = """
at = -100
def tries(old, new):
    fd = None
    for how, answer in (("link", lambda: call(86, old, new)), ("follow", lambda: call(265, at, old, at, new, 0x400))):
        a = answer()
        if a == "0":
            print("BREACH", how, old, new)
    for flags in (os.O_RDONLY, os.O_PATH):
        try:
            fd = os.open(old, flags)
        except OSError:
            continue
        for how, from_, name, flag in (("empty", fd, b"", 0x1000), ("proc", at, b"/proc/self/fd/%d" % fd, 0x400)):
            if call(265, from_, name, at, new, flag) == "0":
                print("BREACH", how, old, new)
        os.close(fd)
"""


def test_hard_links_to_what_is_protected(session, place, user):
    """No command gives what it may not write, may not see, or must find missing, a second name."""
    if os.uname().machine != "x86_64":
        pytest.skip("NOT TESTED: the numbers are x86-64's")
    as_test_user(user, "mkdir -p .git/hooks sub; echo real > .git/config; echo secret > denied; echo ro > read", place)
    more = [path(place / "denied", "deny"), path(place / "missing", "deny"), path(place / "read", "read")]
    box = Shell(session, workspace_write(place, more=more), place)
    out = python(box, LINKS + """
for n, old in enumerate((".git/config", "denied", "missing", "read", ".codex", "/etc/passwd")):
    tries(old.encode(), b"sub/%d" % n)
    tries(b"attack.py", old.encode() + (b"/x" if old == ".codex" else b""))
os.symlink(b"../.git/config", b"sub/s")
tries(b"sub/s", b"sub/t")
print("tried")
""")
    # A link to the symbolic link itself is nobody's loss.
    found = [line for line in out.splitlines() if "sub/s" not in line]
    assert found == ["tried"] and (place / "sub/t").is_symlink(), out
    box("(echo x > sub/t) 2> /dev/null; :")
    assert (place / ".git/config").read_text() == "real\n" and (place / "denied").read_text() == "secret\n"


def test_a_hard_link_made_before_is_another_name(session, place, user):
    """A policy is about names. What the user gave a second name in the workspace is what that name says."""
    as_test_user(user, "mkdir .git; echo real > .git/config; ln .git/config second", place)
    box = Shell(session, workspace_write(place), place)
    assert "Read-only" in box.run("echo x > .git/config").stderr
    box("echo written > second")
    assert (place / ".git/config").read_text() == "written\n"


REPLACEMENTS = {
    "a link to a directory": "rmdir .git; ln -s elsewhere .git",
    "a link to itself": "rmdir .git; ln -s .git .git",
    "a repository": "rmdir .git; cp -r elsewhere .git",
    "a hard link to a file": "rmdir .git; ln elsewhere/config .git",
    "a pipe": "rmdir .git; mkfifo .git",
    "another empty directory": "mv .git moved; mkdir -m 555 .git; touch -r moved .git",
    "nothing": "rmdir .git",
}


@pytest.mark.parametrize("script", REPLACEMENTS.values(), ids=REPLACEMENTS.keys())
def test_a_placeholder_that_is_replaced_before_it_is_covered(session, place, user, script):
    """The placeholder is made and the view is not told of it yet: whoever covers it, and what the command finds there,
    is stopped by the test in between. So is the runner, which would give up a sandbox that it finds stopped twice."""
    session.server.wait_log(f"session {session.session_id[:8]}: opened")
    runner = session.server.runner(session)
    as_test_user(user, "mkdir -p elsewhere/hooks; echo real > elsewhere/config; chmod -R a+rwX elsewhere", place)
    box = Shell(session, workspace_write(place), place)
    before = set(children(runner))
    box("true")
    stopped, = (p for p in set(children(runner)) - before if name(p) == "execd-sandbox")
    poll(lambda: not (place / ".git").exists(), what="end of the placeholder")
    replace = prepared(user, script, place)
    assert replace.stdout.readline() == b"ready\n"
    os.kill(stopped, signal.SIGSTOP)
    try:
        id = box.id()
        write = "for f in .git .git/config .git/hooks/x; do (timeout 1 sh -c \"echo x >> $f\") 2> /dev/null; done; " \
                "(rm -rf .git; mkdir -p .git/hooks && echo x > .git/hooks/x) 2> /dev/null; echo tried"
        start = session.post("process/start", start_params(id, ["/bin/sh", "-c", write], **box.params()))
        poll(lambda: all((place / n).exists() for n in PROTECTED), what="placeholders")
        os.kill(runner, signal.SIGSTOP)
        replace.stdin.close()
        assert replace.wait(PATIENCE_S) == 0
        left = os.readlink(place / ".git") if (place / ".git").is_symlink() else None
    finally:
        with contextlib.suppress(ProcessLookupError):   # one that stays stopped is given up
            os.kill(stopped, signal.SIGCONT)
        os.kill(runner, signal.SIGCONT)
    m = session.answer(start)
    if "result" in m:
        assert session.finished(id).stdout == "tried\n"
    else:
        assert m["error"]["code"] == -32602 and "sandbox" in m["error"]["message"], m
    assert (place / "elsewhere/config").read_text() == "real\n" and os.listdir(place / "elsewhere/hooks") == []
    if (place / ".git").is_dir() and (place / ".git/config").exists():
        assert (place / ".git/config").read_text() == "real\n"
    assert not (place / ".git/hooks/x").exists()
    assert left is None or os.readlink(place / ".git") == left
    # And what follows is as safe as before.
    if not (place / ".git").is_symlink() and not (place / ".git").is_fifo():
        assert box("(mkdir -p .git/hooks && echo x > .git/hooks/x) 2> /dev/null || echo held") == "held\n"


def test_namespaces_by_other_doors(box):
    out = python(box, """
import platform
assert platform.machine() == "x86_64"
NEWUSER, NEWNS = 0x10000000, 0x00020000
print("unshare", call(272, NEWUSER | NEWNS))
print("clone3", call(435, ctypes.create_string_buffer(88), 88))
print("setns", call(308, os.open("/proc/self/ns/user", os.O_RDONLY), 0))
print("pidfd_setns", call(308, call and os.pidfd_open(os.getpid()), NEWUSER))
print("open_tree", call(428, -100, b"/", 1))
print("fsopen", call(430, b"tmpfs", 0))
print("mount_setattr", call(442, -100, b"/", 0x8000, ctypes.create_string_buffer(32), 32))
print("handle", call(303, -100, b"/", ctypes.create_string_buffer(128), ctypes.create_string_buffer(8), 0))
print("kcmp", call(312, 1, os.getpid(), 0, 0, 0))
print("pidfd_getfd", call(438, os.pidfd_open(1), 0, 0))
print("process_madvise", call(440, os.pidfd_open(1), 0, 0, 21, 0))
""") if os.uname().machine == "x86_64" else pytest.skip("NOT TESTED: the numbers are x86-64's")
    answers = dict(line.split() for line in out.splitlines())
    assert answers.pop("clone3") == "ENOSYS"
    assert set(answers.values()) == {"EPERM"}, answers


def test_code_without_a_file(box):
    """What never lay on a disk is held like everything else."""
    out = python(box, """
fd = os.memfd_create("x", 0)
os.write(fd, open("/bin/dash", "rb").read())
pid = os.fork()
if pid == 0:
    os.execve(fd, ["sh", "-c", "(echo x > /var/tmp/execd-breach) 2> /dev/null && echo BREACH; echo ran"], os.environ)
os.waitpid(pid, 0)
""")
    assert out == "ran\n" and not os.path.exists("/var/tmp/execd-breach")


def test_hosts_abstract_sockets_with_a_network(session, place):
    """The network of the host does not open what other users' programs listen on there."""
    at = f"execd-attack-{os.getpid()}"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("\0" + at)
    listener.listen(1)
    box = Shell(session, workspace_write(place, network="enabled"), place)
    out = python(box, f"""
import socket
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
    try:
        s = socket.socket(socket.AF_UNIX, kind)
        s.connect("\\0{at}")
        print("BREACH")
    except OSError as e:
        print(errno.errorcode[e.errno])
""")
    assert set(out.split()) <= {"EPERM", "EACCES"}, out
    listener.close()


def test_limits_only_go_down(box):
    out = box("ulimit -Hc; ulimit -Hq 2> /dev/null; ulimit -c unlimited 2> /dev/null && echo BREACH; "
              "nice -n -5 true 2>&1 | grep -qi denied && echo held; chrt -f 1 true 2> /dev/null && echo BREACH; :")
    assert out.split()[0] == "0" and "BREACH" not in out and "held" in out, out


def test_what_it_leaves_cannot_outlive_it(session, place):
    """Orphans in new sessions, stopped, ignoring signals, in a group of their own: gone with it, its init included."""
    box = Shell(session, workspace_write(place), place)
    session.server.wait_log(f"session {session.session_id[:8]}: opened")
    runner = session.server.runner(session)
    box("for i in 1 2 3; do (setsid sh -c 'trap \"\" TERM HUP INT; sleep 1000 & kill -STOP $!; wait' &) ; done; "
        "(setsid nohup sleep 1000 > /dev/null 2>&1 &); :")
    poll(lambda: not [p for p in children(runner) if not re.match("execd-", name(p))], what="end of the leftovers")
    left = poll(lambda: all(not children(p) for p in children(runner)), what="empty nests")
    assert left


def test_a_workspace_cannot_be_moved(box, place):
    out = box(f"mv {place} {place}.x 2> /dev/null && echo BREACH; rmdir {place} 2> /dev/null && echo BREACH; "
              f"mount --bind /tmp {place} 2> /dev/null && echo BREACH; umount -l {place} 2> /dev/null && echo BREACH; "
              "echo tried")
    assert out == "tried\n" and place.exists()


def test_a_git_directory_is_not_hidden_by_a_mode(box, place, user):
    """A command closes the way to a separate git directory: no later one starts that could open it and write there."""
    as_test_user(user, "mkdir -p d/g/hooks; echo 'gitdir: d/g' > .git", place)
    assert "Read-only" in box.run("chmod 0 d; chmod 755 d; touch d/g/hooks/x").stderr
    box("chmod 0 d")
    code, message = box.refusal("chmod 755 d; touch d/g/hooks/x")
    assert code == -32602 and f"{place}/d," in message and "d/g" in message, (code, message)
    (place / "d").chmod(0o755)
    assert "Read-only" in box.run("touch d/g/hooks/x").stderr
    assert not (place / "d/g/hooks/x").exists()


def test_a_nested_repository_is_not_hidden_by_a_mode(configured, place, user, sandboxes):
    """Where the operator asks for nested repositories: a command closes one, so that the next one finds none."""
    as_test_user(user, "mkdir -p d/.git/hooks e/.git/hooks; echo '[core]' | tee d/.git/config > e/.git/config", place)
    s = configured(f"[listener main]\naddress = ws://127.0.0.1:0\nallow-unauthenticated = a\n[identity a]\n"
                   f"user = {user.pw_name}\n[sandbox]\nnested-git = hooks\n")
    box = Shell(s.ready(), workspace_write(place), place)
    assert "Read-only" in box.run("touch d/.git/hooks/x").stderr
    box("chmod 0 d; chmod 0 e/.git")
    box("(chmod 755 d; touch d/.git/hooks/x; chmod 755 e/.git; touch e/.git/hooks/x) 2> /dev/null; :")
    for closed in "d", "e/.git":
        (place / closed).chmod(0o755)
    assert not (place / "d/.git/hooks/x").exists() and not (place / "e/.git/hooks/x").exists()


@pytest.mark.skipif(not ROOT, reason="SKIPPED: only root may look at another user's processes")
def test_two_commands_do_not_see_each_other(session, place):
    box = Shell(session, workspace_write(place), place)
    id = box.start("echo $$; exec sleep 1000")
    session.wait_output(id, b"\n")
    out = box("ls /proc | grep -c '^[0-9]*$'; kill -9 -1 2> /dev/null; echo")
    assert int(out.split()[0]) <= 4, out
    assert session.request("process/terminate", {"processId": id})["result"]["running"] is True
    session.finished(id)


def test_reads_of_the_hosts_kernel(box):
    """Nothing that tells of it, or changes it, though the file system is its own."""
    for f in ("kmsg", "kcore", "kallsyms", "timer_list", "keys", "vmallocinfo", "slabinfo", "kpageflags", "config.gz"):
        assert box(f"cat /proc/{f} 2> /dev/null | head -c 1 | wc -c") == "0\n", f
    assert box("for f in $(find /proc/sys /proc/irq /proc/bus /proc/fs -maxdepth 3 -type f 2> /dev/null | head -300); "
               "do (: >> $f) 2> /dev/null && echo $f; done; :") == ""
    assert pathlib.Path("/proc/kallsyms").exists()
