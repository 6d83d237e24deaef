# SPDX-License-Identifier: ISC
"""Honest work under workspace-write, here and on the reference server: what works there works here. Attacks alone are
half a test, as a sandbox that is in the way is switched off.

CODEX_BIN names the reference server; without one, or as `npm` put it into the user's cache, nothing is compared.
"""
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest
from conftest import Shell, as_user, temporary
from execd_client import WebSocket
from policies import workspace_write

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "execd-peer"
BINARY = os.environ.get("CODEX_BIN") or next(
    (str(p) for p in CACHE.glob("node_modules/@openai/codex-*/vendor/*/bin/codex")), None)

pytestmark = pytest.mark.skipif(not BINARY, reason="FIDELITY IS NOT TESTED: CODEX_BIN names no reference server")

HOME = "export HOME=$PWD/home TMPDIR=$PWD/tmp; mkdir -p $HOME $TMPDIR\n"
GIT = HOME + """git config --global user.email t@example.org; git config --global user.name t
git config --global init.defaultBranch main; git config --global advice.detachedHead false
git config --global protocol.file.allow always
git init -q --bare up.git; git init -q --bare sub.git; git clone -q up.git c 2> /dev/null; cd c
for i in 1 2 3; do echo $i >> f; git add f; git commit -qm c$i; done; git push -q -u origin HEAD
(cd .. && git clone -q sub.git s 2> /dev/null && cd s && echo s > s && git add s && git commit -qm s && git push -q origin HEAD)
"""
C = "cat > p.c <<'END'\n%s\nEND\n"
LEAK = C % "#include <stdlib.h>\nint main(void) { char *volatile p = malloc(77); p = 0; return p != 0; }"
RACE = C % ("#include <pthread.h>\nint n;\nstatic void *f(void *p) { n++; return 0; }\n"
            "int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); n++; pthread_join(t, 0); return 0; }")
OVERFLOW = C % "int main(int n, char **v) { int x = 0x7fffffff; return x + n == 0; }"
HEAP = C % "#include <stdlib.h>\nint main(int n, char **v) { char *p = malloc(4); p[n + 3] = 1; return p[0]; }"
MAKE = HOME + """printf 'all: %s\\n\\ttouch all\\no%%:\\n\\techo $* > $@\\n' "$(seq -s ' ' -f o%g 60)" > Makefile
"""
NPM = HOME + """mkdir -p dep app && echo '{"name":"dep","version":"1.0.0","main":"i.js"}' > dep/package.json
echo 'module.exports = 42' > dep/i.js; (cd dep && npm pack --silent > /dev/null)
cd app && echo '{"name":"app","version":"1.0.0","scripts":{"t":"node t.js"}}' > package.json
echo 'console.log(require("dep"))' > t.js
"""
SERVER_PY = """/usr/bin/python3 -c '
import http.server, threading, urllib.request
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=s.serve_forever, daemon=True).start()
print(urllib.request.urlopen("http://127.0.0.1:%d/" % s.server_port).status)'
"""
SERVER_NODE = """node -e '
const s = require("http").createServer((q, r) => r.end("hi")).listen(0, "127.0.0.1", () =>
  require("http").get({port: s.address().port, host: "127.0.0.1"}, r => { console.log(r.statusCode); s.close() }))'
"""
SQLITE = """/usr/bin/python3 -c '
import sqlite3, os
a = sqlite3.connect("d"); print(a.execute("pragma journal_mode=%s").fetchone())
a.execute("create table t(x)"); a.execute("insert into t values (7)"); a.commit()
if os.fork() == 0:
    b = sqlite3.connect("d"); b.execute("insert into t values (8)"); b.commit(); os._exit(0)
assert os.wait()[1] == 0; print(a.execute("select sum(x) from t").fetchone())'
"""

# name: what it needs, script, what it prints
ROWS = {
    # git, with each subcommand that writes configuration
    "git-config": ("git", GIT + "git config a.b c && git config --unset a.b && git config core.hooksPath h && git config -l | grep -c h", ""),
    "git-push-u": ("git", GIT + "git checkout -qb x && git push -q -u origin x && git rev-parse --abbrev-ref x@{u}", "origin/x"),
    "git-remote": ("git", GIT + "git remote add o2 ../sub.git && git remote set-url o2 ../up.git && git remote rename o2 o3 && "
                   "git remote set-branches o3 main && git remote set-head origin main && git fetch -q o3 && git remote remove o3 && git remote", "origin"),
    "git-branch": ("git", GIT + "git branch b && git branch -u origin/main b && git branch -m b b2 && git branch --edit-description b2 "
                   "2>/dev/null; git config branch.b2.merge && git branch --unset-upstream b2 && git branch -D b2", "refs/heads/main"),
    "git-submodule": ("git", GIT + "git submodule --quiet add ../sub.git m && git commit -qm m && git submodule sync -q && "
                      "git submodule update -q --init && git submodule deinit -q -f m && cat .gitmodules", "sub.git"),
    "git-worktree": ("git", GIT + "git worktree add -q ../w && git -C ../w config extensions.worktreeConfig true && "
                     "git -C ../w config --worktree a.b c && git worktree move ../w ../w2 && git worktree remove ../w2 && git worktree prune && echo ok", "ok"),
    "git-sparse": ("git", GIT + "git sparse-checkout set --no-cone f && git sparse-checkout list && git sparse-checkout disable", "f"),
    "git-clone-kinds": ("git", GIT + "cd .. && git clone -q --shared c c2 && git clone -q --mirror c c3 && git clone -q --depth 1 file://$PWD/up.git c4 && "
                        "git clone -q --recurse-submodules --separate-git-dir=g5 c c5 && git -C c5 log --format=%s", "c3"),
    "git-hooks": ("git", GIT + "printf '#!/bin/sh\\necho hooked\\n' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit && "
                  "echo x >> f && git commit -qam x 2>&1", "hooked"),
    "git-maintain": ("git", GIT + "git gc -q && git repack -adq && git fsck && git pack-refs --all && git reflog expire --all --expire=now && echo ok", "ok"),
    "git-history": ("git", GIT + "git rebase -q HEAD~1 && git stash -q; git bisect start -q HEAD HEAD~2 > /dev/null && git bisect reset -q; "
                    "git notes add -m n && git tag -am t t && git cherry-pick --allow-empty HEAD > /dev/null 2>&1; git revert --no-edit HEAD > /dev/null; echo ok", "ok"),
    "git-move": ("git", GIT + "cd .. && mv c d && git -C d status --porcelain && rm -rf d && ls -d d 2>/dev/null; echo gone", "gone"),
    "git-init-again": ("git", GIT + "git init -q && git init -q --template= ../n && git -C ../n config core.bare && git init -q --separate-git-dir=../sep && git status --porcelain; echo ok", "ok"),
    # builds and what checks them
    "make": ("make", MAKE + "make -s -j8 && ls o* | wc -l", "60"),
    "asan": ("gcc", HEAP + "gcc -g -fsanitize=address -o p p.c && ! ./p 2>&1", "heap-buffer-overflow"),
    "lsan": ("gcc", LEAK + "gcc -g -fsanitize=address -o p p.c && ! ./p 2>&1", "detected memory leaks"),
    "ubsan": ("gcc", OVERFLOW + "gcc -g -fsanitize=undefined -o p p.c && ./p 2>&1", "signed integer overflow"),
    "tsan": ("gcc", RACE + "gcc -g -fsanitize=thread -pthread -o p p.c && ! ./p 2>&1", "data race"),
    "gdb": ("gdb", LEAK + "gcc -g -o p p.c && gdb -q -batch -ex 'break main' -ex run -ex bt p 2>&1", "#0  main"),
    "strace": ("strace", "strace -f -o t sh -c 'true; exit 0' && tail -n 1 t", "exited with 0"),
    "setarch": ("setarch", "setarch -R /bin/echo laid", "laid"),
    "valgrind": ("valgrind", LEAK + "gcc -g -o p p.c && valgrind -q --leak-check=full --error-exitcode=0 ./p 2>&1", "definitely lost"),
    "memory": ("python3", "/usr/bin/python3 -c 'b = bytearray(600 << 20); print(len(b) >> 20)'", "600"),
    # data, packages, agents, terminals
    "sqlite-wal": ("python3", SQLITE % "wal", "(15,)"),
    "sqlite-delete": ("python3", SQLITE % "delete", "(15,)"),
    "venv": ("python3", HOME + "/usr/bin/python3 -m venv --without-pip v && v/bin/python -c 'import sys; print(sys.prefix)'", "/v"),
    "venv-pip": ("python3", HOME + "/usr/bin/python3 -m venv v && v/bin/pip --version", "pip "),
    "npm": ("npm", NPM + "npm install --silent --offline --no-audit ../dep/dep-1.0.0.tgz && npm run -s t && ls $HOME/.npm", "42"),
    "gpg": ("gpg", HOME + "export GNUPGHOME=$HOME/g; mkdir -m 700 $GNUPGHOME; gpg -q --batch --passphrase '' --quick-gen-key t 2>&1 && "
            "echo x | gpg -q --batch -b -a", "SIGNATURE"),
    "tmux": ("tmux", HOME + "export TMUX_TMPDIR=$TMPDIR; tmux new -d -s t 'sleep 100' && tmux ls && tmux kill-server", "t:"),
    "server-python": ("python3", SERVER_PY, "200"),
    "server-node": ("node", SERVER_NODE, "200"),
    "server-python@network": ("python3", SERVER_PY, "200"),
    "server-node@network": ("node", SERVER_NODE, "200"),
    "tty": ("tty", "tty && stty -F $(tty) size && test -c $(tty)", "/dev/"),
    "shared-git": ("git", HOME + "mkdir d && chmod g+s d && git init -q --shared=group s && echo shared", "shared"),
}


@pytest.fixture(scope="module")
def peer(user, session):
    """The reference server as the test user, for as long as ours runs; he must be able to read its programs."""
    top = pathlib.Path(BINARY).resolve().parent.parent
    with temporary(user) as home:
        copy = home / "codex"
        if subprocess.run(["cp", "-al", top, copy], capture_output=True).returncode != 0:
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(top, copy, symlinks=True)
        env = {"PATH": "/usr/bin:/bin", "HOME": str(home), "CODEX_HOME": str(home)}
        with open(home / "log", "wb") as log:
            child = subprocess.Popen(
                as_user(user, ["env", f"CODEX_HOME={home}", f"HOME={home}", str(copy / "bin/codex"), "exec-server",
                               "--listen", "ws://127.0.0.1:0"]),
                stdout=subprocess.PIPE, stderr=log, env=env, cwd=home)
        url = child.stdout.readline().decode().strip()
        assert url.startswith("ws://"), (home / "log").read_text()
        client = WebSocket(url).ready()
        yield client
        client.drop()
        child.terminate()
        child.wait(10)
        shutil.rmtree(copy, ignore_errors=True)


def work(client, user, name):
    """Whether it works, and what was said."""
    needs, script, expected = ROWS[name]
    network = "enabled" if "@network" in name else "restricted"
    with temporary(user) as place:
        shell = Shell(client, workspace_write(place, network=network), place)
        m = client.start(id := shell.id(), ["/bin/bash", "-c", script], **shell.params(tty=name == "tty"))
        if "error" in m:
            return False, m["error"]
        r = client.finished(id, 120)
        said = r.stdout + r.pty + r.stderr
        return r.code == 0 and expected in r.stdout + r.pty, (r.code, said[-1500:])


@pytest.mark.parametrize("name", ROWS)
def test_no_row_is_worse(session, peer, user, mode, name):
    needs = ROWS[name][0]
    if not shutil.which(needs, path="/usr/bin:/bin"):
        pytest.skip(f"NOT COMPARED: {needs} is not installed")
    here, said = work(session, user, name)
    there, peer_said = (True, None) if here else work(peer, user, name)
    print(f"{name}: execd {here}, peer {there if peer_said else 'not asked'}")
    assert here or not there, (said, peer_said)
