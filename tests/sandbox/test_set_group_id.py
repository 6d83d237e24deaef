# SPDX-License-Identifier: ISC
"""The set-group-id bit: on directories as outside of a sandbox, and on nothing else, whatever a command does to have
the one taken for the other."""
import os
import pathlib
import stat

import pytest
from conftest import Shell, as_test_user, children, name, poll
from policies import path, workspace_write


@pytest.fixture
def box(session, place):
    return Shell(session, workspace_write(place), place)


def python(box, code, **extra):
    (box.cwd / "modes.py").write_text("import os, stat, sys, threading, ctypes\n" + code)
    return box("/usr/bin/python3 modes.py", **extra)


def has_bit(where):
    return bool(where.stat(follow_symlinks=False).st_mode & stat.S_ISGID)


def test_directories_have_it_as_outside(box, place):
    box("mkdir a b && chmod g+s a && mkdir -m 2750 c && install -d -m 2775 d && mkdir a/sub && touch a/file && "
        "cp -a a e && tar -cf t a && mkdir f && tar -xpf t -C f && chmod -R g+s b && git init -q --shared=group s")
    for there in "a", "a/sub", "b", "c", "d", "e", "e/sub", "f/a", "f/a/sub", "s/.git/objects":
        assert has_bit(place / there), there
    assert (place / "c").stat().st_mode == stat.S_IFDIR | 0o2750
    assert not has_bit(place / "a/file")
    box("chmod g-s a && chmod 1777 b")
    assert not has_bit(place / "a")


def test_every_call_and_every_name(box, place):
    out = python(box, """
libc = ctypes.CDLL(None, use_errno=True)
mode = 0o2755
os.mkdir("by"); by = os.open("by", os.O_RDONLY)
def new(n):
    os.mkdir("by/" + n)
    return "by/" + n
os.chmod(new("chmod"), mode)
os.chmod(os.path.abspath(new("absolute")), mode)
os.fchmod(os.open(new("fchmod"), os.O_RDONLY), mode)
new("fchmodat"); os.chmod("fchmodat", mode, dir_fd=by)
new("nofollow"); libc.fchmodat(by, b"nofollow", mode, 0x100)
os.symlink("linked", "by/link"); new("linked"); os.chmod("by/link", mode)
new("thread"); t = threading.Thread(target=os.chmod, args=("by/thread", mode)); t.start(); t.join()
new("new"); print(libc.syscall(452, by, b"new", mode, 0) == 0 or ctypes.get_errno() == 38)
new("child")
if os.fork() == 0:
    os.setsid(); os.chdir("by"); os.chmod("child", mode); os._exit(0)
os.wait()
print(" ".join(sorted(n for n in os.listdir("by") if n != "new" and not os.stat("by/" + n).st_mode & stat.S_ISGID)))
""")
    assert out == "True\n\n", out


needs_numbers = pytest.mark.skipif(os.uname().machine != "x86_64", reason="NOT TESTED: the numbers are x86-64's")


@needs_numbers
def test_nothing_else_has_it(box, place, user):
    """Each answer is that of a sandbox without the proxy; the bit of the owner's is refused on directories, too."""
    as_test_user(user, "mkdir d; echo '#!/bin/sh' > p; chmod 755 p; ln -s p l; mkfifo f", place)
    out = python(box, """
def tries(what, mode, **more):
    try:
        os.chmod(what, mode, **more)
        print("BREACH", what, oct(mode))
    except OSError as e:
        print(e.strerror)
for mode in 0o2755, 0o2711, 0o4755, 0o6755:
    for what in "p", os.path.abspath("p"), "l", "f", "/usr/bin/env", "/proc/self/exe", "/proc/self/fd/0", "/dev/null":
        tries(what, mode)
    tries(os.open("p", os.O_RDWR), mode)
    if mode & 0o4000:
        tries("d", mode)
tries("", 0o2755), tries("missing/x", 0o2755), tries("/proc/self/fd/99", 0o2755), tries("x" * 5000, 0o2755)
os.close(os.open("q", os.O_CREAT, 0o755)); fd = os.open("q", os.O_PATH); tries(f"/proc/self/fd/{fd}", 0o2755)
libc = ctypes.CDLL(None, use_errno=True)
for bad in 1, -1, 0x7fffffffffff:
    print(libc.syscall(90, ctypes.c_long(bad), 0o2755), ctypes.get_errno())
""")
    assert "BREACH" not in out, out
    assert out.splitlines()[-3:] == ["-1 14"] * 3, out
    assert not [f for f in place.iterdir() if f.is_file() and has_bit(f)]
    assert not (place / "d").stat().st_mode & stat.S_ISUID


def test_only_where_it_may_write(session, place, user):
    as_test_user(user, "mkdir -p w/.git/hooks w/sub w/read/x other; ln -s ../other w/out; mkdir w/deny", place)
    more = [path(place / "w/read", "read"), path(place / "w/deny", "deny")]
    box = Shell(session, workspace_write(place / "w", more=more), place / "w")
    out = box("for d in .git .git/hooks read read/x ../other out deny .codex; do chmod g+s $d 2>/dev/null && echo BREACH $d; "
              "done; cd read; chmod g+s x 2>/dev/null && echo BREACH; chmod g+s ../sub && echo done")
    assert out == "done\n", out
    assert [str(p.relative_to(place)) for p in place.rglob("*") if has_bit(p)] == ["w/sub"]


@needs_numbers
def test_a_name_that_changes_its_meaning(box, place):
    """The proxy changes what it looked at: a program in the directory's place, at any moment, has no bit."""
    out = python(box, """
os.mkdir("d"); open("p", "w").close(); os.chmod("p", 0o755)
libc = ctypes.CDLL(None)
stop = False
def swap():
    while not stop:
        libc.syscall(316, -100, b"d", -100, b"p", 2)        # renameat2(RENAME_EXCHANGE)
t = threading.Thread(target=swap); t.start()
done = refused = 0
text = ctypes.create_string_buffer(b"d")
def rewrite():
    while not stop:
        text[0] = b"p"; text[0] = b"d"
u = threading.Thread(target=rewrite); u.start()
for i in range(400):
    for call in (lambda: libc.syscall(90, b"d", 0o2755), lambda: libc.syscall(90, text, 0o2755)):
        if call() == 0: done += 1
        else: refused += 1
        for n in "d", "p":
            st = os.stat(n)
            if stat.S_ISREG(st.st_mode) and st.st_mode & stat.S_ISGID: print("BREACH")
stop = True; t.join(); u.join()
print(done > 0, refused > 0)
""", timeout=120)
    assert out == "True True\n", out


def test_who_waits_may_be_killed(box, place):
    """And others are served afterwards."""
    box("mkdir d; for i in 1 2 3 4 5 6 7 8; do timeout -s KILL 0.2 sh -c 'while :; do chmod g+s d; done' & done; wait; :")
    assert box("chmod g-s d; chmod g+s d && stat -c %a d").strip() == "2755"


def test_the_proxy_goes_with_its_nest(server, place, user):
    c = server.ready()
    c.server = server
    server.wait_log(f"session {c.session_id[:8]}: opened")
    runner = server.runner(c)
    box = Shell(c, workspace_write(place), place)
    box("mkdir d; chmod g+s d")
    proxy, = (p for p in children(runner) if name(p) == "execd-calls")
    text = pathlib.Path(f"/proc/{proxy}/status").read_text() if os.geteuid() == 0 else ""
    if text:
        lines = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
        assert lines["CapEff"] == lines["CapPrm"] == f"{1 << 19:016x}" and lines["Seccomp"] == "2", text
        assert sorted(os.listdir(f"/proc/{proxy}/fd")) == ["0", "1", "2", "3"]
    nest, = (p for p in children(runner) if name(p) == "execd-sandbox")
    os.kill(nest, 9)
    poll(lambda: proxy not in children(runner), what="end of the proxy")
    c.drop()
