# SPDX-License-Identifier: ISC
"""What must work inside workspace-write, and as it does without a sandbox:
every script runs twice, sandboxed by execd and directly by the same user, in
two empty directories. Exit code and output must be the same, and what is
expected.
"""
import hashlib
import http.server
import os
import pathlib
import resource
import shutil
import socket
import threading

import pytest
from conftest import Configured, Shell, as_test_user, direct, is_alive, pids_with, poll
from execd_client import start_params
from policies import READ_ALL, managed, path, special, uri, workspace_write

PYTHON = "/usr/bin/python3 -c '%s'"

GIT = """export HOME=$PWD GIT_AUTHOR_DATE=@1000000000 GIT_COMMITTER_DATE=@1000000000
git config --global user.email t@example.org; git config --global user.name t
git config --global init.defaultBranch main; git config --global advice.detachedHead false
"""
REPOSITORY = GIT + "git init -q r && cd r && for i in 1 2 3; do echo line $i >> f; git add f; git commit -qm c$i; done\n"

MAKEFILE = r"""
OBJECTS = $(foreach i,1 2 3 4 5 6 7 8,o$i)
all: $(OBJECTS)
	cat $(OBJECTS)
o%:
	@echo object $* > $@
"""

PACKAGE = '{"name":"p","version":"1.2.3","scripts":{"hi":"node -e \\"console.log(6*7)\\""}}'

SHARED_MEMORY = """
from multiprocessing import Pool, Queue, Process, shared_memory
def square(n): return n * n
def put(q, name):
    m = shared_memory.SharedMemory(name); m.buf[0] = 42; m.close(); q.put("done")
if __name__ == "__main__":
    with Pool(4) as pool: print(pool.map(square, range(10)))
    m = shared_memory.SharedMemory(create=True, size=4096); q = Queue()
    p = Process(target=put, args=(q, m.name)); p.start(); print(q.get(), m.buf[0]); p.join(); m.close(); m.unlink()
"""

INOTIFY = """
import ctypes, os, struct
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.inotify_init1(0)
print(fd >= 0, libc.inotify_add_watch(fd, b".", 0x100) > 0)
open("made", "w").close()
print(os.read(fd, 4096)[16:].rstrip(bytes(1)).decode())
"""

SIGNALS = """
import os, signal, time
pid = os.fork()
if pid == 0:
    signal.pause()
os.kill(pid, signal.SIGTERM)
print(os.WTERMSIG(os.waitpid(pid, 0)[1]))
got = []
for s in (signal.SIGUSR1, signal.SIGALRM, signal.SIGHUP):
    signal.signal(s, lambda n, f: got.append(n))
os.kill(os.getpid(), signal.SIGUSR1); os.killpg(0, signal.SIGHUP); signal.setitimer(signal.ITIMER_REAL, 0.001)
while len(got) < 3: signal.pause()
print(sorted(got))
"""

DESCRIPTORS = """
import os, select, socket, mmap
a, b = socket.socketpair()
a.sendall(b"over a pair"); print(b.recv(100))
e = select.epoll(); e.register(a, select.EPOLLIN); b.send(b"x"); print(len(e.poll(5)))
m = os.memfd_create("m"); os.write(m, b"memory"); print(os.pread(m, 6, 0))
with open("f", "w+b") as f:
    f.truncate(8192); v = mmap.mmap(f.fileno(), 8192); v[0:4] = b"mmap"; v.flush(); f.seek(0); print(f.read(4))
    if os.fork() == 0:
        v[4:9] = b"child"; os._exit(0)
    os.wait(); print(v[:9])
fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600); os.write(fd, b"unnamed"); print(os.fstat(fd).st_size)
"""

# name: script, expected output (a part of it), expected code
PROBES = {
    "sh": ("sh -c 'echo $((6 * 7)); exit 3'", "42", 3),
    "bash": ("a=(x y z); echo ${a[@]} ${#a[@]}; [[ abc =~ b ]] && echo match", "x y z 3\nmatch"),
    "python": (PYTHON % "import sys, json, ssl, sqlite3; print(json.dumps(sys.version_info[:2]))", "[3, "),
    "perl": ("perl -e 'print join(\",\", map { $_ ** 2 } 1..5), \"\\n\"'", "1,4,9,16,25"),
    "awk": ("seq 100 | awk '{ s += $1 } END { print s }'", "5050"),
    "gcc": ("echo 'int main(void) { return 7; }' > p.c && gcc -O2 -Wall -pipe -o p p.c && ./p", "", 7),
    "gcc-threads": ("""cat > p.c <<'END'
#include <pthread.h>
#include <stdio.h>
static void *f(void *p) { ++*(int *)p; return 0; }
int main(void) { pthread_t t[8]; int n[8] = {0}, s = 0;
for (int i = 0; i < 8; i++) pthread_create(&t[i], 0, f, &n[i]);
for (int i = 0; i < 8; i++) { pthread_join(t[i], 0); s += n[i]; }
printf("%d threads\\n", s); }
END
gcc -pthread -o p p.c && ./p""", "8 threads"),
    "compiler-error": ("echo 'int main(void) { return x; }' > bad.c; gcc -c bad.c", "", 1),
    "make": (f"cat > Makefile <<'END'{MAKEFILE}END\nmake -s -j4 && ls o*", "object 8"),
    "git": (REPOSITORY + "git log --format=%s; git branch b && git checkout -q b && echo x >> f && git stash -q && "
            "git stash list | wc -l && git stash pop -q && git diff --stat && git rev-parse HEAD", "c3\nc2\nc1\n1\n f | 1 +"),
    "git-clone": (REPOSITORY + "cd .. && git clone -q r s && git -C s log --format=%h && git -C s fsck --strict",
                  "\n"),
    "git-merge": (REPOSITORY + "git checkout -qb b HEAD~1 && echo other > g && git add g && git commit -qm d && "
                  "git checkout -q main && git merge -q -m m b && git log --format=%s | head -n 1 && git gc -q && ls",
                  "m\nf\ng"),
    "git-worktree": (REPOSITORY + "git worktree add -q ../w && cd ../w && echo w >> f && git commit -qam w && "
                     "git -C ../r branch --list w --format='%(subject)'", "w"),
    "git-bare-push": (REPOSITORY + "git init -q --bare ../b && git push -q ../b main && git -C ../b log --format=%s",
                      "c3"),
    "tar": ("mkdir d && seq 1000 > d/a && tar czf t.gz d && rm -r d && tar xzf t.gz && md5sum < d/a", "-"),
    "xz": ("seq 20000 | xz -c | xz -dc | sha256sum", "-"),
    "sed": ("seq 3 > f && sed -i s/2/two/ f && cat f", "1\ntwo\n3"),
    "find": ("mkdir -p a/b && touch a/x a/b/y && find . -type f -exec echo {} + | tr ' ' '\\n' | sort", "./a/b/y\n./a/x"),
    "xargs": ("seq 50 | xargs -P 4 -n 1 sh -c 'echo $0 > f$0' && cat f* | sort -n | tail -n 1", "50"),
    "sort": ("seq 200000 | sort -R --random-source=/dev/zero | sort -n -S 1M -T /tmp | md5sum", "-"),
    "mktemp": ("f=$(mktemp) && d=$(mktemp -d) && echo ok > $f && cat $f && rmdir $d && rm $f", "ok"),
    "mkfifo": ("mkfifo p && (echo through > p &) && cat p", "through"),
    "pipes": ("yes | head -n 1000 | tr y n | uniq -c | awk '{ print $1, $2 }'; echo ${PIPESTATUS[0]}", "1000 n"),
    "process-substitution": ("diff <(seq 3) <(seq 4); echo $?; tee >(cat > f) <<< x > /dev/null; "
                             "until [ -s f ]; do :; done; cat f", "3a4"),
    "coprocess": ("coproc cat; echo hello >&${COPROC[1]}; read -r x <&${COPROC[0]}; echo $x", "hello"),
    "jobs": ("true & a=$!; false & b=$!; wait $a; echo $?; wait $b; echo $?", "0\n1"),
    "multiprocessing": (f"cat > m.py <<'END'\n{SHARED_MEMORY}END\n/usr/bin/python3 m.py", "done 42"),
    "threads": (PYTHON % "import threading as t; n = []; a = [t.Thread(target=n.append, args=(i,)) for i in range(20)]; "
                "[x.start() for x in a]; [x.join() for x in a]; print(sum(n))", "190"),
    "asyncio": (PYTHON % "import asyncio\nasync def f():\n p = await asyncio.create_subprocess_exec(\"echo\", \"hi\", "
                "stdout=-1); print(await p.communicate())\nasyncio.run(f())", "hi"),
    "sqlite": (PYTHON % "import sqlite3; c = sqlite3.connect(\"d\"); print(c.execute(\"pragma journal_mode=wal\")"
               ".fetchone()); c.execute(\"create table t(x)\"); c.execute(\"insert into t values (7)\"); c.commit(); "
               "print(sqlite3.connect(\"d\").execute(\"select x from t\").fetchone())", "(7,)"),
    "venv": ("/usr/bin/python3 -m venv --without-pip v && v/bin/python -c 'import sys; print(sys.prefix != "
             "sys.base_prefix)'", "True"),
    "descriptors": (f"cat > d.py <<'END'\n{DESCRIPTORS}END\n/usr/bin/python3 d.py", "mmapchild"),
    "inotify": (f"cat > i.py <<'END'\n{INOTIFY}END\n/usr/bin/python3 i.py", "True True\nmade"),
    "signals": (f"cat > s.py <<'END'\n{SIGNALS}END\n/usr/bin/python3 s.py", "15\n[1, 10, 14]"),
    "dd": ("dd if=/dev/zero of=f bs=64k count=16 status=none && stat -c %s f && dd if=f bs=1M status=none | md5sum",
           "1048576"),
    "flock": ("flock -x l sh -c 'flock -n l echo twice || echo locked'", "locked"),
    # The suite itself may run at some niceness; it ends at 19.
    "nice": ("n=$(nice); echo $(($(nice -n 1 nice) - n)); nice -n 1 echo lower", "1\nlower"),
    "timeout": ("timeout 0.1 sleep 1000; echo $?; exec 2> /dev/null; timeout -s KILL 0.1 sleep 1000; echo $?", "124\n137"),
    "nohup": ("nohup echo out 2>&1 | cat", "out"),
    "long-environment": ("[ ${#LONG} = 100000 ] && env | md5sum | wc -l", "1"),
    "long-argument": ("x=$(head -c 100000 /dev/zero | tr '\\0' a); /bin/echo $x | wc -c", "100001"),
    "many-arguments": ("/bin/echo $(seq 20000) | wc -w", "20000"),
    "exec-from-workspace": ("printf '#!/bin/sh\\necho mine $1\\n' > x && chmod +x x && ./x y && cp /bin/echo e && ./e z",
                            "mine y\nz"),
    "hard-links": ("echo a > a && ln a b && stat -c %h a && echo c >> b && cat a", "2\na\nc"),
    "renames": ("mkdir d e && echo x > d/f && mv d/f e/g && mv e h && cat h/g && ls", "x\nd\nh"),
    "symlinks": ("ln -s t l && echo x > t && cat l && readlink l && ln -s /etc/passwd p && head -c 4 p && ln -s l m && "
                 "realpath --relative-to=. m", "x\nt\nroott"),
    "devices": ("echo x > /dev/null && head -c 4 /dev/zero | od -An -tx1 && head -c 8 /dev/urandom | wc -c && "
                "echo x > /dev/full; echo y | cat /dev/stdin; echo z | tee /dev/fd/2 2>&1 | cat; ls -d /dev/shm /dev/pts /dev/tty",
                " 00 00 00 00\n8\ny\nz\nz\n/dev/pts"),
    # Outside of the sandbox the name is one of the host's.
    "shm": ("f=$(mktemp -p /dev/shm) && echo s > $f && cat $f && rm $f", "s"),
    "proc-self": ("readlink /proc/self/exe; cat /proc/self/comm; wc -l < /proc/self/stat; "
                  "[ $(readlink /proc/$$/cwd) = $PWD ] && ls /proc/self/fd | head -n 3", "/usr/bin/readlink\ncat\n1\n0\n1\n2"),
    "proc-system": ("grep -c ^processor /proc/cpuinfo; awk '/^MemTotal/ { print $2 }' /proc/meminfo; nproc; "
                    "cat /proc/loadavg | wc -w; cat /proc/sys/kernel/ostype", "5\nLinux"),
    "umask": ("umask 027; touch f; mkdir d; stat -c %a f d; umask 0; touch g; stat -c %a g; chmod 751 g; stat -c %a g",
              "640\n750\n666\n751"),
    "times": ("touch -d @1000000000.5 f && stat -c %.Y f && touch -r f g && [ ! g -nt f ] && cp -p f h && "
              "stat -c %Y h", "1000000000"),
    "sparse": ("truncate -s 1G f && stat -c '%s %b' f && fallocate -l 64K g && stat -c %s g && "
               "cp --reflink=auto g h && cmp g h && echo same", "1073741824 0\n65536\nsame"),
    "identity": ("id -u; id -g; whoami; id -un; [ -O . ] && echo own; stat -c %U .", "own"),
    "limits": ("ulimit -c; ulimit -s; ulimit -t", "unlimited"),
    "hostname": ("hostname; uname -s", "Linux"),
    "time": ("TZ=UTC date -d @0 +%FT%T; TZ=Asia/Tokyo date -d @0 +%H; LC_ALL=C.UTF-8 printf '\\u20ac\\n'",
             "1970-01-01T00:00:00\n09"),
    "exit-signals": ("exec 2> /dev/null; sh -c 'kill -TERM $$'; echo $?; sh -c 'kill -SEGV $$'; echo $?", "143\n139"),
    "stdin-is-null": ("cat; wc -c; readlink /proc/self/fd/0", "0\n/dev/null"),
    "deep": ("p=$PWD; for i in $(seq 100); do mkdir d && cd d; done; pwd | wc -c | xargs test 200 -lt && touch x && "
             "cd $p && find . -name x | wc -c && rm -r d", "204"),
    "many-files": ("seq -f f%g 2000 | xargs touch && ls | wc -l && rm f* && ls | wc -l", "2000\n0"),
    "heredoc": ("cat <<END | tr a-z A-Z\nline $((1 + 1))\nEND", "LINE 2"),
    "expect-eof": ("exec 3<>f; echo abc >&3; exec 3>&-; read -r x < f; echo $x; exec 4< f; read -u 4 y; read -u 4 z || "
                   "echo end $y", "abc\nend abc"),
}

OPTIONAL = {
    "g++": ("g++", "echo '#include <iostream>\nint main() { std::cout << \"c++\" << std::endl; }' > p.cc && "
            "g++ -o p p.cc && ./p", "c++"),
    "clang": ("clang", "echo 'int main(void) { return 0; }' > p.c && clang -fsanitize=undefined -o p p.c && ./p; "
              "echo $?", "0"),
    "node": ("node", "node -e 'const { execSync } = require(\"child_process\"); console.log(execSync(\"echo child\")"
             ".toString().trim(), [3, 1, 2].sort().join())'", "child 1,2,3"),
    "node-workers": ("node", "node -e 'const { Worker } = require(\"worker_threads\"); new Worker(\"require("
                     "\\\"worker_threads\\\").parentPort.postMessage(7)\", { eval: true }).on(\"message\", console.log)'",
                     "7"),
    "npm": ("npm", f"export HOME=$PWD npm_config_update_notifier=false npm_config_offline=true; "
            f"echo '{PACKAGE}' > package.json && npm run -s hi && npm pkg get version", "42\n\"1.2.3\""),
    "setfattr": ("setfattr", "touch f && setfattr -n user.x -v y f && getfattr --only-values -n user.x f", "y"),
}


@pytest.fixture(scope="module")
def workspace(session, long_place):
    """(the shell of a workspace-write policy, its root)"""
    return Shell(session, workspace_write(long_place), long_place), long_place


def compare(workspace, user, name, script, expected, code=0, **env):
    shell, root = workspace
    inside, outside = root / f"{name}-a", root / f"{name}-b"
    as_test_user(user, f"mkdir '{inside}' '{outside}'", root)
    shell.cwd = inside
    shell.env = {**shell.env, **env}
    try:
        r = shell.run(script, 60)
        d = direct(user, ["/bin/bash", "-c", script], outside, env=env)
    finally:
        for key in env:
            del shell.env[key]
        shutil.rmtree(inside)
        shutil.rmtree(outside)
    assert (r.code, r.stdout.encode("latin1"), r.stderr.encode("latin1")) == (d.returncode, d.stdout, d.stderr)
    assert r.code == code and expected in r.stdout, (r.code, r.stdout, r.stderr)


@pytest.mark.parametrize("name", PROBES)
def test_probe(workspace, user, name):
    script, expected, *code = PROBES[name]
    for program in ("gcc", "make"):
        if program in script and not shutil.which(program, path="/usr/bin:/bin"):
            pytest.skip(f"NOT TESTED: {program} is not installed")
    env = {"LONG": "x" * 100000} if name == "long-environment" else {}
    compare(workspace, user, name, script, expected, *code, **env)


@pytest.mark.parametrize("name", OPTIONAL)
def test_optional_probe(workspace, user, name):
    program, script, expected = OPTIONAL[name]
    if not shutil.which(program, path="/usr/bin:/bin"):
        pytest.skip(f"NOT TESTED: {program} is not installed")
    compare(workspace, user, name, script, expected)


def test_extended_attributes(workspace, user):
    script = PYTHON % ("import os; open(\"f\", \"w\"); os.setxattr(\"f\", \"user.x\", b\"y\"); "
                       "print(os.listxattr(\"f\"), os.getxattr(\"f\", \"user.x\"))")
    r = direct(user, ["/bin/bash", "-c", script], workspace[1])
    if r.returncode != 0:
        pytest.skip("NOT TESTED: no user attributes on this file system")
    compare(workspace, user, "xattr", script, "['user.x'] b'y'")


# --- what is no comparison ------------------------------------------------

@pytest.fixture
def shell(session, place):
    return Shell(session, workspace_write(place), place)


LEAK = """cat > l.c <<'END'
#include <stdlib.h>
int main(void) { char *volatile p = malloc(77); p = 0; return p != 0; }
END
gcc -g -fsanitize=address -o l l.c && { ./l; echo $?; }"""


@pytest.mark.parametrize("script, expected", [
    ("gdb -q -batch -ex run -ex bt --args /bin/false 2>&1", "exited with code 01"),
    ("gdb -q -batch -ex 'break main' -ex run -ex bt --args p 2>&1", "#0  main ()"),
    ("sleep 100 & gdb -q -batch -p $! -ex bt 2>&1; kill $!", "#0 "),
    ("strace -f -o /dev/stdout sh -c '/bin/true; exit 3'; echo $?", "exited with 0 +++"),
    ("sleep 100 & timeout 10 strace -qq -e trace=none -o /dev/stdout -p $! & sleep 0; "
     "until grep -q '^TracerPid:.*[1-9]' /proc/$(pgrep -x sleep)/status; do :; done; kill $(pgrep -x sleep); wait; echo seen", "seen"),
    (LEAK + " 2>&1", "LeakSanitizer: detected memory leaks"),
    ("setarch -R cat /proc/self/maps | head -n 1 > 1; setarch -R cat /proc/self/maps | head -n 1 > 2; cmp 1 2 && echo same", "same"),
], ids=["gdb", "gdb-break", "gdb-attach", "strace", "strace-attach", "leak-sanitizer", "setarch"])
def test_tools_that_trace_their_own_children(shell, script, expected):
    program = script.split()[0] if script.startswith(("gdb", "setarch")) else "gdb" if "gdb" in script else \
        "strace" if "strace" in script else "gcc"
    if not shutil.which(program, path="/usr/bin:/bin"):
        pytest.skip(f"NOT TESTED: {program} is not installed")
    r = shell.run("echo 'int main(void) { return 7; }' > p.c && gcc -g -o p p.c; " + script, timeout=60)
    assert expected in r.stdout, (r.stdout, r.stderr)


TERMINAL = """
tty; python3 -c 'import os; print(os.ttyname(0), os.ttyname(2), os.path.samefile(os.ttyname(0), "/proc/self/fd/0"))'
stty -F $(tty) size; stty -F $(tty) -echo; echo into > $(tty); echo also > /dev/tty; ls -1 /dev/pts; ps -o tty= -p $$
"""


def test_a_terminal_has_a_name(shell):
    r = shell.run(TERMINAL, tty=True)
    assert r.pty.replace("\r", "") == "/dev/pts/0\n/dev/pts/0 /dev/pts/0 True\n24 80\ninto\nalso\n0\nptmx\npts/0\n", r.pty


NESTED = "tty; python3 -c 'import pty; pty.spawn([\"python3\", \"-c\", \"import pty; pty.spawn([\\\"tty\\\"])\"])'"
PANE = """mkfifo pane; tmux -S "$PWD/t" -f /dev/null new-session -d 'tty > pane' && cat pane"""


@pytest.mark.parametrize("tty", [False, True], ids=["pipes", "terminal"])
@pytest.mark.parametrize("program, script, number", [
    ("python3", NESTED, 1), ("script", "script -qec tty /dev/null", 0), ("tmux", PANE, 0)], ids=["python", "script", "tmux"])
def test_a_command_opens_further_terminals(shell, program, script, number, tty):
    """The first is its controlling terminal, if it has one."""
    if not shutil.which(program, path="/usr/bin:/bin"):
        pytest.skip(f"NOT TESTED: {program} is not installed")
    r = shell.run(script, tty=tty, timeout=60)
    assert (r.pty or r.stdout).split()[-1:] == [f"/dev/pts/{number + tty}"], (r.code, r.pty, r.stdout, r.stderr)


@pytest.mark.parametrize("policy", ["read", "minimal", "own-dev"])
def test_further_terminals_under_other_policies(session, place, policy):
    entries = {"read": [READ_ALL], "minimal": [special("minimal", "read"), path("/usr", "read"), path(place, "write")],
               "own-dev": [READ_ALL, path("/dev", "read"), path(place, "write")]}[policy]
    r = Shell(session, managed(*entries, roots=[place]), place).run(NESTED, tty=True)
    assert r.pty.split() == ["/dev/pts/0", "/dev/pts/2"], r.pty


def test_a_terminal_is_resized_and_nobody_elses(shell):
    c = shell.client
    first = shell.start("stty -echo; echo up; read -r x; stty size; echo $x", tty=True)
    c.wait(lambda: b"up" in c.output(first), what="the first terminal")
    assert "result" in c.request("process/resize", {"processId": first, "rows": 7, "cols": 9})
    other = shell.run("ls -1 /dev/pts; tty", tty=True)
    assert other.pty.replace("\r", "") == "0\nptmx\n/dev/pts/0\n"
    assert shell("ls /dev/pts") == "ptmx\n", "no terminal of another command is to be seen"
    c.write(first, "mine\n")
    assert c.finished(first).pty.replace("\r", "") == "up\n7 9\nmine\n"


MANY_FILES = "cd %s && i=0 && while [ $i -lt 40000 ] && : 2>/dev/null > f$i; do i=$((i+1)); done; echo $i; rm -rf %s/f*"


def test_memory_holds_so_many_files(mode, user, place):
    """64 MiB of /dev/shm are 16 Ki files, also empty ones, which size= does not count."""
    text = (f"[listener main]\naddress = ws://127.0.0.1:0\nallow-unauthenticated = any\n"
            f"[identity any]\nuser = {user.pw_name}\n[sandbox]\nmax-shm = 64M\n")
    server = Configured(mode, user, place / "execd.conf", text, ())
    try:
        check_number_of_files(Shell(server.ready(), workspace_write(place), place))
    finally:
        server.stop()


def check_number_of_files(shell):
    made = int(shell("exec 2>/dev/null; " + MANY_FILES % ("/dev/shm", "/dev/shm")))
    assert 16000 < made <= 16384, made


TAKE_INOTIFY = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
taken = 0
while libc.inotify_init1(0) >= 0:
    taken += 1
print(taken, ctypes.get_errno(), flush=True)
sys.stdin.read()
"""


def test_inotify_is_left_for_others(session, place):
    """The kernel counts instances per user: one sandbox gets a quarter of them, and fs/watch works meanwhile."""
    shell = Shell(session, managed(READ_ALL), place)
    most = int(pathlib.Path("/proc/sys/fs/inotify/max_user_instances").read_text())
    id = shell.start(f"exec /usr/bin/python3 -c '{TAKE_INOTIFY}'", pipeStdin=True)
    session.wait(lambda: b"\n" in session.output(id), what="an end of instances")
    taken, errno = map(int, session.output(id).split())
    assert 0 < taken <= most // 4 and errno == 24, (taken, errno, most)
    try:
        assert session.call("fs/watchMissing", {"watchId": 1, "missing": [uri(place / "none")]})["watching"]
    finally:
        session.request("process/terminate", {"processId": id})


TAKE_SIGNALS = """
import ctypes, os, resource, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
signal.pthread_sigmask(signal.SIG_BLOCK, [40])
taken = 0
while libc.sigqueue(os.getpid(), 40, None) == 0:
    taken += 1
print(taken, ctypes.get_errno(), *resource.getrlimit(resource.RLIMIT_MSGQUEUE), flush=True)
sys.stdin.read()
"""
MAKE_TIMER = """
import ctypes
timer, libc = ctypes.c_void_p(), ctypes.CDLL(None, use_errno=True)
print([libc.timer_create(1, None, ctypes.byref(timer)) for _ in range(10)])
"""


def test_signals_that_wait_are_left_for_others(session, place, user):
    """So does it with signals and timers: sandboxes get a quarter, and other programs of the user make timers meanwhile.
    There are no message queues."""
    shell = Shell(session, managed(READ_ALL), place)
    most = int(shell("ulimit -Hi"))
    id = shell.start(f"exec /usr/bin/python3 -c '{TAKE_SIGNALS}'", pipeStdin=True)
    session.wait(lambda: b"\n" in session.output(id), what="an end of signals")
    taken, errno, *queues = map(int, session.output(id).split())
    assert 0 < taken <= most and errno == 11 and queues == [0, 0], (taken, errno, queues)
    assert most <= resource.getrlimit(resource.RLIMIT_SIGPENDING)[1] // 4 + 1
    try:
        assert direct(user, ["/usr/bin/python3", "-c", MAKE_TIMER], place).stdout == f"{[0] * 10}\n".encode()
    finally:
        session.request("process/terminate", {"processId": id})


def test_half_of_the_inotify_watches_are_left(session, place):
    most = int(pathlib.Path("/proc/sys/fs/inotify/max_user_watches").read_text())
    assert int(Shell(session, managed(READ_ALL), place)("cat /proc/sys/user/max_inotify_watches")) == most // 2


TAKE_TERMINALS = """
import os, sys
taken = 0
try:
    while taken < 4096:
        os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY)
        taken += 1
except OSError:
    pass
print(taken, flush=True)
sys.stdin.read()
"""


def test_a_command_leaves_terminals_for_others(session, place):
    """The host has 4096 for all its users."""
    shell = Shell(session, managed(READ_ALL), place)
    id = shell.start(f"exec /usr/bin/python3 -c '{TAKE_TERMINALS}'", pipeStdin=True)
    session.wait(lambda: b"\n" in session.output(id), what="an end of terminals")
    try:
        assert session.output(id) == b"256\n"
        m = session.start("with a terminal", ["/bin/echo", "fine"], tty=True, cwd=uri(place), sandbox=managed(READ_ALL))
        assert "result" in m and session.finished("with a terminal").pty == "fine\r\n", m
    finally:
        session.request("process/terminate", {"processId": id})


TRACE_OTHERS = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
PTRACE_SEIZE = 0x4206
for pid in [1, *map(int, sys.argv[1:])]:
    print(pid == 1, libc.ptrace(PTRACE_SEIZE, pid, 0, 0), ctypes.get_errno() in (1, 3))
"""


def test_nobody_traces_another_command(shell):
    """Each command has its own process numbers: the init, another command of the same policy, the nest and the
    runner are out of reach."""
    other = shell.start("echo up; exec sleep 1000")
    shell.client.wait(lambda: b"up" in shell.client.output(other), what="the other command")
    outside = [str(p) for p in pids_with("sleep 1000")] + [str(os.getpid())]
    out = shell(f"/usr/bin/python3 -c '{TRACE_OTHERS}' {' '.join(outside)}")
    assert out == "True -1 True\n" + "False -1 True\n" * len(outside), out
    shell.client.request("process/terminate", {"processId": other})


def test_binary_stdin(shell):
    data = bytes(range(256)) * 512
    id = shell.start(f"head -c {len(data)} | md5sum", pipeStdin=True)
    for i in range(0, len(data), 32768):
        shell.client.write(id, data[i:i + 32768])
    assert shell.client.finished(id).stdout == hashlib.md5(data).hexdigest() + "  -\n"


def test_ten_megabytes_of_output(shell):
    id = shell.start("seq 1 2000000 | head -c 10485760")
    r = shell.client.finished(id, 60)
    text = "".join(f"{i}\n" for i in range(1, 2000000))[:10485760].encode()
    assert hashlib.sha256(shell.client.output(id, "stdout")).digest() == hashlib.sha256(text).digest() and r.code == 0


def test_every_exit_code(shell):
    for code in (0, 1, 2, 63, 100, 126, 127, 128, 255):
        assert shell.run(f"exit {code}").code == code
    for signal, code in (("KILL", 137), ("SEGV", 139), ("TERM", 143)):
        assert shell.run(f"kill -{signal} $$").code == code


def test_job_control_in_a_terminal(shell, user):
    c = shell.client
    id = shell.start("exec bash --norc --noprofile -i", tty=True)

    def type(text, expect):
        before = len(c.output(id))
        c.write(id, text)
        c.wait(lambda: expect.encode() in c.output(id)[before:], what=f"{expect!r}")

    def wait_foreground(marker):
        def is_foreground(pid):
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            return fields[2] == fields[5]
        poll(lambda: any(is_foreground(p) for p in pids_with(marker)), what=f"{marker} in the foreground")

    marker = f"1000.{os.getpid()}"
    type("PS1='ready> '\n", "\nready> ")
    assert "no job control" not in c.output(id).decode()
    type("tty; stty size\n", "24 80\r\n")
    type(f"sleep {marker}\n", f"sleep {marker}\r\n")
    wait_foreground(marker)
    type(b"\x1a", "Stopped")
    type("bg; fg\n", f"sleep {marker}\r\n")
    wait_foreground(marker)
    type(b"\x03", "ready> ")
    type("echo code $?\n", "code 130\r\n")
    type("sleep 1000 & kill %1; wait %1; echo gone $?\n", "gone 143")
    type("echo x > /dev/tty\n", "x\r\n")
    c.write(id, "exit 7\n")
    assert c.finished(id).code == 7


def test_interrupts_reach_handlers(shell):
    """O12: by ^C on a terminal, by process/signal without one."""
    c = shell.client
    script = "trap 'echo handled; exit 9' INT; echo ready; while :; do sleep 0.1; done"
    id = shell.start(script, tty=True)
    c.wait_output(id, "ready")
    c.write(id, b"\x03")
    assert c.finished(id).code == 9 and "handled" in c.output(id).decode()
    id = shell.start(script)
    c.wait_output(id, "ready")
    c.call("process/signal", {"processId": id, "signal": "interrupt"})
    assert c.finished(id).code == 9 and "handled" in c.output(id).decode()


def test_a_daemon_ends_with_its_leader(shell):
    marker = f"2000.{os.getpid()}"
    r = shell.run(f"setsid -f sleep {marker}; (setsid sleep {marker} &) ; nohup sleep {marker} > /dev/null 2>&1 &\n"
                  f"until [ $(grep -lz {marker} /proc/[0-9]*/cmdline 2> /dev/null | wc -l) -ge 3 ]; do :; done; exit 4")
    assert r.code == 4
    poll(lambda: not pids_with(marker), what="end of the daemons")


def test_terminate_ends_everything(shell):
    marker = f"3000.{os.getpid()}"
    id = shell.start(f"for i in 1 2 3; do setsid -f sleep {marker}; done; trap '' TERM INT HUP; echo up; sleep {marker}")
    shell.client.wait_output(id, "up")
    alive = poll(lambda: len(p := pids_with(f"sleep\0{marker}")) >= 4 and p)
    assert shell.client.terminate(id) is True
    assert shell.client.finished(id).code == 137
    poll(lambda: not any(is_alive(p) for p in alive), what="end of the daemons")


@pytest.fixture(scope="module")
def web():
    """A server on a loopback port of the host."""
    s = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    t = threading.Thread(target=s.serve_forever)
    t.start()
    yield s.server_port
    s.shutdown()
    t.join()
    s.server_close()


FETCH = ("import socket,sys\ns = socket.socket()\ns.connect((\"127.0.0.1\", %d))\n"
         "s.sendall(b\"HEAD /none HTTP/1.0\\r\\n\\r\\n\")\nprint(s.recv(12).decode())")


def test_the_network_is_refused(shell, web):
    r = shell.run(PYTHON % (FETCH % web))
    assert r.code == 1 and "ConnectionRefusedError" in r.stderr
    r = shell.run(PYTHON % "import socket; socket.create_connection((\"192.0.2.1\", 80))")
    assert r.code == 1 and "PermissionError" in r.stderr and r.denied is True
    for family in (socket.AF_PACKET, 40):
        r = shell.run(PYTHON % f"import socket; socket.socket({int(family)}, socket.SOCK_STREAM)")
        assert "PermissionError: [Errno 1]" in r.stderr, family


def test_the_network_is_enabled(session, place, web):
    shell = Shell(session, workspace_write(place, network="enabled"), place)
    assert "404" in shell(PYTHON % (FETCH % web))
    assert shell(PYTHON % "import socket; s = socket.create_server((\"127.0.0.1\", 0)); "
                 "c = socket.create_connection(s.getsockname()); s.accept()[0].sendall(b\"own\"); print(c.recv(9))") == \
        "b'own'\n"


TOOLS = [path(p, "read") for p in ("/usr", "/bin", "/lib", "/lib64")]


def hiding(access, place, roots):
    """A policy that hides the directory d of place, by its name or by not naming it."""
    if access == "deny":
        return managed(READ_ALL, path(place / "d", "deny"), roots=roots)
    return managed(*TOOLS, path(place / "w", "write"), roots=roots)


@pytest.mark.parametrize("access", ["deny", "not named"])
def test_a_working_directory_that_is_not_seen(session, user, place, access):
    """The command starts in the first workspace root, and the answer says so (doc/sandbox.md B4)."""
    as_test_user(user, "mkdir d d/e w", place)
    shell = Shell(session, hiding(access, place, [place / "w", place]), place / "d", env={"PATH": "/usr/bin:/bin"})
    for cwd in place / "d", place / "d/e":
        id = shell.id()
        m = session.start(id, ["/bin/sh", "-c", "pwd; sleep 0; echo ok"], **shell.params(cwd=uri(cwd)))
        assert m["result"]["sandbox"]["enforced"]["cwd"] == uri(place / "w"), m
        assert session.finished(id).stdout == f"{place}/w\nok\n"
    m = session.start(shell.id(), ["/bin/true"], **shell.params(cwd=uri(place / "w")))
    assert "cwd" not in m["result"]["sandbox"]["enforced"], "where it was asked to start"


@pytest.mark.parametrize("roots", ["none", "hidden", "missing"])
@pytest.mark.parametrize("access", ["deny", "not named"])
def test_no_other_place_to_start(session, user, place, access, roots):
    """Never in /."""
    as_test_user(user, "mkdir d w", place)
    policy = hiding(access, place, {"none": [], "hidden": [place / "d"], "missing": [place / "w/none"]}[roots])
    code, _ = Shell(session, policy, place / "d").refusal("pwd")
    assert code == -32603


@pytest.mark.parametrize("policy", ["read-only", "workspace-write", "everything", "named", "none"])
def test_a_working_directory_that_is_none(session, user, place, policy):
    """Missing, a file, not enterable: refused as without a sandbox, in every policy."""
    as_test_user(user, "mkdir w w/closed; touch w/file; chmod 000 w/closed; ln -s nowhere w/link", place)
    roots = [place / "w"]
    policies = {
        "read-only": managed(READ_ALL, roots=roots),
        "workspace-write": workspace_write(place / "w"),
        "everything": managed(special("root", "write"), roots=roots),
        "named": managed(*TOOLS, path(place / "w", "write"), roots=roots),
        "none": None,
    }
    for name, error in (("missing", "No such file"), ("file", "Not a directory"), ("closed", "Permission denied"),
                        ("link", "No such file"), ("missing/below", "No such file")):
        extra = {"cwd": uri(place / "w" / name), **({"sandbox": policies[policy]} if policies[policy] else {})}
        code, message = session.error("process/start", start_params(f"{policy}-{name}", ["/bin/pwd"], **extra))
        assert code == -32603 and error in message, (name, code, message)
    outside = session.error("process/start", start_params("o", ["/bin/pwd"], **{
        **({"sandbox": policies[policy]} if policies[policy] else {}), "cwd": uri(place / "nowhere")}))
    assert outside[0] == -32603


def test_tmpdir_and_tmp_are_writable(session, place):
    # TMPDIR of the request is no wish for a writable place (O8).
    shell = Shell(session, workspace_write(place), place, env={"TMPDIR": str(place.parent)})
    assert shell.run(f"touch {place.parent}/execd-test-escape").code == 1
    assert not (place.parent / "execd-test-escape").exists()
    name = f"execd-test-{os.getpid()}"
    shell(f"echo x > /tmp/{name}")
    assert pathlib.Path(f"/tmp/{name}").read_text() == "x\n"
    pathlib.Path(f"/tmp/{name}").unlink()


def test_outside_is_read_only(shell, user):
    outside = shell.cwd.parent / f"execd-test-{os.getpid()}"
    as_test_user(user, f"touch {outside}", shell.cwd)
    try:
        for script in (f"echo x > {outside}", f"rm {outside}", f"chmod 777 {outside}", f"mv {outside} {outside}2",
                       f"touch {outside}2", f"ln {outside} here", f"touch -d @1 {outside}", f"truncate -s 5 {outside}"):
            r = shell.run(script)
            # A link into a root would be one across mounts.
            crosses = "Invalid cross-device link" in r.stderr
            assert r.code != 0 and r.denied is not crosses and crosses == script.startswith("ln"), (script, r.stderr)
            assert crosses or "Read-only file system" in r.stderr, (script, r.stderr)
        assert outside.read_text() == "" and outside.stat().st_mode & 0o777 != 0o777
    finally:
        outside.unlink()
