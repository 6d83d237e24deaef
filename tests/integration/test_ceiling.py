# SPDX-License-Identifier: ISC
"""The operator's ceiling on what clients may ask of a sandbox: [sandbox] of execd.conf(5)."""
import base64
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest
from conftest import ROOT, poll
from execctl import EXECCTL
from test_config import digest
from test_files import uri
from refusals import UNAVAILABLE, UNENFORCEABLE

LEVEL = {"windowsSandboxLevel": "disabled"}
ENTRY = {"root": {"type": "special", "value": {"kind": "root"}},
         "roots": {"type": "special", "value": {"kind": "project_roots"}},
         "tmp": {"type": "special", "value": {"kind": "slash_tmp"}}}


def entry(path, access):
    return {"path": ENTRY.get(path) or {"type": "path", "path": uri(path)}, "access": access}


def policy(work, *entries, network="restricted"):
    return {"permissions": {"type": "managed", "network": network, "file_system": {
        "type": "restricted", "entries": [entry("root", "read"), *(entry(*e) for e in entries)]}},
        "cwd": uri(work), "workspaceRoots": [uri(work)], **LEVEL}


@pytest.fixture
def start(configured, user, directory, sandboxes):
    """A client of a server with that [sandbox] and those keys of its identity."""
    def make(sandbox="", identity=""):
        s = configured(f"[listener main]\naddress = ws://127.0.0.1:0\n[identity a]\nuser = {user.pw_name}\n"
                       f"token-sha256 = {digest('t')}\n{identity}[sandbox]\n{sandbox}")
        make.server = s
        return s.connect(token="t").ready()
    return make


@contextlib.contextmanager
def temporary(user):
    """Outside of /tmp."""
    where = pathlib.Path(tempfile.mkdtemp(prefix="execd-test-", dir="/var/tmp"))
    os.chown(where, user.pw_uid, user.pw_gid) if ROOT else None
    try:
        yield where
    finally:
        shutil.rmtree(where, ignore_errors=True)


@pytest.fixture
def work(directory, user):
    w = directory / "work"
    w.mkdir()
    os.chown(w, user.pw_uid, user.pw_gid) if ROOT else None
    return w


def refused(m, what, by=""):
    """The message names the limit, who set it, and what can be done."""
    error = m.get("error", {"code": 0, "message": ""})
    return error["code"] == -32602 and re.match(
        rf"sandbox policy exceeds this executor's limit: {re.escape(what)} \(limited by {re.escape(by)}.*; use a .*, or ask "
        r"the operator for sandbox-.* in \[identity \w+\]\)$", error["message"])


def try_start(c, id, work, sandbox=None, argv=("/bin/true",)):
    extra = {} if sandbox is None else {"sandbox": sandbox}
    return c.start(id, list(argv), cwd=uri(work), **extra)


DISABLED = {"permissions": {"type": "disabled"}, **LEVEL}
EXTERNAL = {"permissions": {"type": "external", "network": "restricted"}, **LEVEL}


def test_the_defaults(start, work):
    """Who names a user has said as whom commands run: nothing is refused that the user may do."""
    c = start()
    for id, sandbox in ("none", None), ("off", DISABLED), ("ext", EXTERNAL), ("all", policy(work, ("root", "write"))):
        assert "result" in try_start(c, id, work, sandbox), id
    assert "result" in c.request("fs/readFile", {"path": "file:///etc/passwd"})
    assert "result" in c.request("fs/writeFile", {"path": uri(work / "new"), "dataBase64": "eA=="})
    assert "[identity a]: commands run as " in start.server.log
    assert "clients may ask for a sandbox, and need none" in start.server.log


@pytest.mark.parametrize("sandbox,identity,by", [
    ("max-profile = workspace-write\n", "", "max-profile in [sandbox]"),
    ("", "sandbox-max-profile = workspace-write\n", "sandbox-max-profile in [identity a]"),
    ("max-profile = full\n", "sandbox-max-profile = workspace-write\n", "sandbox-max-profile in [identity a]"),
    ("allow-unsandboxed = no\nallow-external = no\n", "", "allow-"),
    ("allow-unsandboxed = yes\n", "sandbox-max-profile = workspace-write\n", "sandbox-max-profile in [identity a]"),
    ("allow-network = no\n", "", "allow-network in [sandbox]"),
    ("deny-read = /etc/shadow\n", "", "deny-read in [sandbox]"),
    ("workspace-roots = /\n", "", "workspace-roots in [sandbox]"),
    ("writable-roots = /\n", "", "writable-roots in [sandbox]")])
def test_what_is_lowered_nobody_gets_around(start, work, sandbox, identity, by):
    """Whoever lowers anything has not meant that a request without a policy need not care."""
    c = start(sandbox, identity)
    for id, asked, what in ("none", None, "unsandboxed"), ("off", DISABLED, "unsandboxed"), ("ext", EXTERNAL, "external"):
        m = try_start(c, id, work, asked)
        assert refused(m, what, by), m
        poll(lambda: "refused: " + m["error"]["message"] in start.server.log, what="the same line in the log")
    for method in ("fs/writeFile", {"dataBase64": "eA=="}), ("fs/createDirectory", {}), ("fs/remove", {}):
        m = c.request(method[0], {"path": uri(work / "new"), **method[1]})
        assert refused(m, "unsandboxed", by), m
    assert not (work / "new").exists()
    assert f"in a sandbox of at most " in start.server.log
    c = start(sandbox, identity + "sandbox-allow-unsandboxed = yes\n")
    assert "result" in try_start(c, "none", work), "in words it is permitted"


def test_reading_needs_no_policy(start, work, directory, user):
    """A request without a policy is judged by what it does: what only reads gets what a read-only policy permits."""
    secret, file = directory / "secret", work / "file"
    for at, text in (secret, "s"), (file, "content"):
        at.write_text(text)
        os.chown(at, user.pw_uid, user.pw_gid) if ROOT else None
    (work / "link").symlink_to(secret)
    c = start(f"max-profile = read-only\ndeny-read = {secret}\n")
    for asked in {}, {"sandbox": DISABLED}:
        read = c.request("fs/readFile", {"path": uri(file), **asked})
        assert read["result"]["dataBase64"] == base64.b64encode(b"content").decode()
        assert c.request("fs/getMetadata", {"path": uri(file), **asked})["result"]["isFile"]
        assert c.request("fs/canonicalize", {"path": uri(work / "."), **asked})["result"]
        names = [e["fileName"] for e in c.request("fs/readDirectory", {"path": uri(work), **asked})["result"]["entries"]]
        assert sorted(names) == ["file", "link"]
        for path in secret, work / "link":
            m = c.request("fs/readFile", {"path": uri(path), **asked})
            assert m["error"]["message"] == "Permission denied (os error 13)", m
    h = c.request("fs/open", {"handleId": "h", "path": uri(file)})
    assert "result" in h, h
    block = c.request("fs/readBlock", {"handleId": "h", "offset": 0, "len": 100})
    assert base64.b64decode(block["result"]["chunk"]) == b"content"
    m = c.request("fs/readFile", {"path": "file:///nonexistent"})
    assert m["error"]["code"] == -32004


def test_what_is_writable(start, work, directory):
    other = directory / "other"
    other.mkdir()
    c = start("max-profile = workspace-write\nallow-unsandboxed = yes\n")
    assert "result" in try_start(c, "in", work, policy(work, ("roots", "write")))
    # It lies in /tmp, which that profile opens; outside of it nothing is.
    assert "result" in try_start(c, "tmp", work, policy(work, (other, "write")))
    assert refused(try_start(c, "out", work, policy(work, ("/var/tmp", "write"))), "write /var/tmp")
    c = start("max-profile = read-only\n")
    assert refused(try_start(c, "ro", work, policy(work, ("roots", "write"))), f"write {work}")
    assert "result" in try_start(c, "read", work, policy(work))


def test_roots_by_where_they_lead(start, work, directory):
    outside = directory / "outside"
    outside.mkdir()
    (work / "link").symlink_to(outside)
    (directory / "in").symlink_to(work)
    c = start(f"max-profile = full\nallow-unsandboxed = yes\nworkspace-roots = {directory}/wor[k]\n"
              f"writable-roots = {directory}/w*\n")
    ok = policy(work, ("roots", "write"))
    assert "result" in try_start(c, "a", work, ok)
    assert "result" in try_start(c, "b", directory / "in", ok)
    assert refused(try_start(c, "c", outside, ok), f"cwd {outside}")
    assert refused(try_start(c, "d", work / "link", ok), f"cwd {work}/link")
    assert refused(try_start(c, "e", work, policy(outside)), f"root {outside}")
    assert refused(try_start(c, "f", work, policy(work, (outside, "write"))), f"write {outside}")


def test_network_and_http(start, work):
    c = start("allow-network = no\nallow-unsandboxed = yes\nmax-profile = full\n")
    assert refused(try_start(c, "n", work, policy(work, network="enabled")), "network")
    assert refused(c.request("http/request", {"requestId": "r", "method": "GET", "url": "http://127.0.0.1:9/",
                                              "headers": []}), "network")
    assert "result" in try_start(c, "r", work, policy(work))


def test_clamp_grants_less_and_says_so(start, work):
    c = start("over-limit = clamp\nallow-unsandboxed = no\nallow-external = no\nmax-profile = workspace-write\n"
              "allow-network = no\n")
    m = try_start(c, "none", work, None, ["/bin/sh", "-c", "touch in && ! touch /var/tmp/execd-out; cat /proc/net/dev"])
    assert m["result"]["sandboxType"] == "linuxSeccomp" and m["result"]["sandbox"]["asked"] is None
    assert m["result"]["sandbox"]["enforced"]["network"] == "restricted"
    c.finished("none")
    assert (work / "in").exists() and not os.path.exists("/var/tmp/execd-out")
    assert m["result"]["sandbox"]["clamped"] == ["unsandboxed"]
    m = try_start(c, "root", work, policy(work, ("root", "write"), network="enabled"),
                  ["/bin/sh", "-c", "touch too && ! touch /var/tmp/execd-out"])
    assert m["result"]["sandbox"]["enforced"]["fileSystem"] == "restricted"
    assert m["result"]["sandbox"]["enforced"]["network"] == "restricted"
    assert m["result"]["sandbox"]["clamped"] == ["network", "write"]
    assert c.finished("root").code == 0 and (work / "too").exists(), "the workspace is what is left of everything"
    assert "clamped" not in try_start(c, "fits", work, policy(work, ("roots", "write")))["result"]["sandbox"]
    m = c.request("fs/writeFile", {"path": "file:///var/tmp/execd-out", "dataBase64": "eA=="})
    assert m["error"]["message"] == "Read-only file system (os error 30)" and not os.path.exists("/var/tmp/execd-out")


def test_clamped_to_less_than_it_names(start, work, user):
    """What is denied in what would have been writable takes no mount with it that still is."""
    with temporary(user) as other:
        (other / "a/b").mkdir(parents=True)
        os.chown(other / "a", user.pw_uid, user.pw_gid) if ROOT else None
        c = start("over-limit = clamp\nmax-profile = workspace-write\n")
        script = f"ls {other}/a/b; for d in {other} {other}/a {work}; do touch $d/f && echo $d; done; :"
        for id, granted in ("all", "root"), ("one", other):
            m = try_start(c, id, work, policy(work, ("roots", "write"), (granted, "write"), (other / "a/b", "deny")),
                          ["/bin/sh", "-c", script])
            assert m["result"]["sandbox"]["clamped"] == ["write"], m
            assert c.finished(id).stdout == f"{work}\n", id
            (work / "f").unlink()


def test_a_root_is_what_it_led_to(start, user):
    """A command of the client turns the link under its root; it gets nothing by that, however often it tries."""
    with temporary(user) as top:
        (top / "other").mkdir()
        (top / "ws/in").mkdir(parents=True)
        for d in (top / "other", top / "ws", top / "ws/in") if ROOT else ():
            os.chown(d, user.pw_uid, user.pw_gid)
        c = start(f"max-profile = workspace-write\nworkspace-roots = {top}/ws\n")
        turn = f"cd {top}/ws; while :; do ln -sfT in link; ln -sfT ../other link; done"
        try_start(c, "turn", top / "ws", policy(top / "ws", ("roots", "write")), ["/bin/sh", "-c", turn])
        poll((top / "ws/link").is_symlink, what="a link")
        for n in range(12):
            m = c.start(f"w{n}", ["/bin/sh", "-c", f"touch {top}/other/f"], cwd=uri(top / "ws"),
                        sandbox=policy(top / "ws/link", ("roots", "write")))
            if "result" in m:
                c.finished(f"w{n}")
        assert not (top / "other/f").exists()


def test_denials_hold_for_every_policy(start, work, directory):
    """Also of one that restricts no files, for operations on files; without unsandboxed ones."""
    secret = directory / "secret"
    secret.write_text("secret")
    secret.chmod(0o644)
    c = start(f"max-profile = full\nallow-unsandboxed = no\nallow-external = yes\ndeny-read = {secret}\n")
    free = {"permissions": {"type": "managed", "network": "restricted", "file_system": {"type": "unrestricted"}}, **LEVEL}
    outside = {"permissions": {"type": "external", "network": "restricted"}, **LEVEL}
    for id, sandbox in ("m", free), ("e", outside):
        m = c.request("fs/readFile", {"path": uri(secret), "sandbox": sandbox})
        assert m.get("error", {}).get("message") == "Permission denied (os error 13)", m
        m = c.request("fs/writeFile", {"path": uri(work / id), "dataBase64": "eA==", "sandbox": sandbox})
        assert "result" in m and (work / id).read_text() == "x"
        try_start(c, id, work, sandbox, ["/bin/cat", str(secret)])
        assert "Permission denied" in c.finished(id).stderr


def test_what_every_sandbox_gets(start, work, directory):
    secret = directory / "secret"
    secret.write_text("secret")
    hidden = directory / "hidden"
    hidden.mkdir()
    (hidden / "f").write_text("x")
    c = start(f"allow-unsandboxed = yes\ndeny-read = {secret}\nhide = {hidden}\nprotected-names = .keep\n"
              "max-file-size = 1M\n", "command-tasks-max = 7\n")
    m = try_start(c, "a", work, policy(work, ("roots", "write")), [
        "/bin/sh", "-c", f"cat {secret}; ls {hidden}; mkdir .git && mkdir .keep; ulimit -f"])
    limits = m["result"]["sandbox"]["enforced"]["limits"]
    assert limits == {"processes": 7, "memoryBytes": limits["memoryBytes"], "cpuPercent": None,
                      "openFiles": min(16384, limits["openFiles"]), "fileBytes": 1 << 20,
                      "shmBytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE") >> 21 << 20}
    r = c.finished("a")
    assert "secret: Permission denied" in r.stderr and "hidden': Permission denied" in r.stderr
    assert r.stdout == "2048\n" and (work / ".git").exists()
    poll(lambda: not (work / ".keep").exists(), what="an end of the placeholder")
    m = c.request("fs/readFile", {"path": uri(secret), "sandbox": policy(work)})
    assert m["error"]["message"] == "Permission denied (os error 13)"


@pytest.mark.parametrize("hidden", ["/sys", "/sys/fs/cgroup", "/sys/kernel/debug", "/sys/power"])
def test_what_is_covered_anyway_may_be_hidden(start, work, hidden):
    c = start(f"hide = {hidden}\n")
    assert "result" in try_start(c, "a", work, policy(work), ["/bin/ls", hidden])
    r = c.finished("a")
    assert r.stdout == "" and "Permission denied" in r.stderr, r


def test_what_of_the_environment_may_be_taken(start, work):
    def taken(c, id):
        c.start(id, ["/usr/bin/env"], cwd=uri(work), env={"OWN": "1"},
                envPolicy={"inherit": "all", "ignoreDefaultExcludes": True, "exclude": [], "set": {}, "includeOnly": []})
        return {x.split("=")[0] for x in c.finished(id).stdout.splitlines()}
    own = "allow-unsandboxed = yes\n"
    added = "environment = MORE=2\n"
    assert {"OWN", "HOME", "MORE"} <= taken(start(own, added), "all")
    core = taken(start(own + "environment-inherit = core\n", added), "core")
    assert {"OWN", "HOME"} <= core and "MORE" not in core
    assert taken(start(own + "environment-inherit = none\n", added), "none") == {"OWN"}
    assert taken(start(own, added + "sandbox-environment-inherit = none\n"), "id") == {"OWN"}


def test_repositories_below_a_root(start, work, user):
    git = work / "inner/.git"
    for d in ("hooks", "refs"):
        (git / d).mkdir(parents=True)
    (git / "config").write_text("")
    if ROOT:
        for p in [work / "inner", git, *git.iterdir()]:
            os.chown(p, user.pw_uid, user.pw_gid)
    script = "for f in hooks/x config refs/x; do (echo > inner/.git/$f) 2> /dev/null && echo $f; done; :"
    own = "allow-unsandboxed = yes\nmax-profile = managed\n"
    for n, (key, written) in enumerate(((None, "hooks/x config refs/x"), ("off", "hooks/x config refs/x"),
                                         ("hooks", "refs/x"))):
        c = start(own + (f"nested-git = {key}\n" if key else ""))
        try_start(c, "g", work, policy(work, ("roots", "write")), ["/bin/sh", "-c", script])
        assert c.finished("g").stdout.split() == written.split(), key


def test_too_many_directories_for_nested_git(start, work, user):
    """The start that cannot look at all of them is refused, and says which key to change."""
    for n in range(5001):
        (work / f"d{n}").mkdir()
    for key, refused in (("hooks\nnested-git-depth = 1", True), ("off", False)):
        c = start(f"allow-unsandboxed = yes\nmax-profile = managed\nnested-git = {key}\n")
        m = try_start(c, "n", work, policy(work, ("roots", "write")), ["/bin/true"])
        assert ("error" in m) == refused, m
        if refused:
            assert m["error"]["code"] == -32602 and "more than 5000 directories" in m["error"]["message"], m
            assert str(work) in m["error"]["message"] and "nested-git-depth (1)" in m["error"]["message"], m


def test_a_tmp_of_its_own(start, work, directory, user, mode):
    """Nothing of the host's is in it and nothing gets out; what the policy names below it is the host's."""
    name = f"execd-private-{os.getpid()}"
    box = policy(work, ("roots", "write"), ("tmp", "write"))
    script = f"ls -a /tmp; echo x > /tmp/{name}; echo y > {work}/kept; cd /tmp; mkdir .git && echo own"
    c = start("tmp = private\nmax-shm = 1M\n")
    assert "result" in try_start(c, "a", work, box, ["/bin/sh", "-c", script])
    r = c.finished("a")
    assert r.stdout.split() == [".", "..", directory.name, "own"] and r.stderr == "", r
    assert not os.path.exists(f"/tmp/{name}") and (work / "kept").read_text() == "y\n"
    script = f"cat /tmp/{name}; head -c 2M /dev/zero > /tmp/large; rm -rf {work}/kept"
    try_start(c, "b", work, box, ["/bin/sh", "-c", script])
    r = c.finished("b")
    assert r.stdout.split()[0] == "x" and "No space left" in r.stderr and not (work / "kept").exists()
    m = c.request("fs/readFile", {"path": f"file:///tmp/{name}", "sandbox": box})
    assert m.get("result", {}).get("dataBase64") == "eAo=", ("files and commands share it", m, start.server.log[-600:])
    # Whoever moves his own workspace out of sight there has moved nothing of the host's, and no protection.
    script = f"mv {directory} /tmp/z; cd /tmp/z/work && echo y > kept; mkdir .git || (echo x > .git/f) || echo held"
    try_start(c, "m", work, box, ["/bin/sh", "-c", script])
    assert c.finished("m").stdout == "held\n" and (work / "kept").exists()
    try_start(c, "n", work, box, ["/bin/cat", str(work / "kept")])
    assert c.finished("n").stdout == "y\n"
    # Empty files have no size: 1 MiB holds 256 of them, with those that are there.
    script = "rm -f /tmp/large; i=0; while (: > /tmp/empty$i) 2> /dev/null; do i=$((i+1)); done; echo $i"
    try_start(c, "i", work, box, ["/bin/sh", "-c", script])
    assert 240 < int(c.finished("i").stdout) <= 256
    c = start("tmp = host\n")
    try_start(c, "h", work, box, ["/bin/sh", "-c", f"echo x > /tmp/{name}"])
    assert c.finished("h").code == 0 and os.path.exists(f"/tmp/{name}")
    os.unlink(f"/tmp/{name}")


def test_which_tmpdir(start, work, user):
    asked = policy(work)
    asked["permissions"]["file_system"]["entries"].append(
        {"path": {"type": "special", "value": {"kind": "tmpdir"}}, "access": "write"})
    with temporary(user) as theirs, temporary(user) as requests:
        script = f"for d in {theirs} {requests}; do (echo x > $d/f) 2> /dev/null && echo $d; done; :"
        own = f"environment = TMPDIR={theirs}\n"
        for key, writes, lands in (("host", [theirs], [theirs]), ("private", [theirs], []),
                                   ("request", [requests], [requests])):
            c = start(f"max-profile = managed\ntmpdir = {key}\n", own)
            m = c.start("t", ["/bin/sh", "-c", script], cwd=uri(work), env={"TMPDIR": str(requests)}, sandbox=asked)
            assert "result" in m, m
            assert c.finished("t").stdout.split() == [str(d) for d in writes], key
            assert [d for d in (theirs, requests) if (d / "f").exists()] == lands, key
            for d in lands:
                (d / "f").unlink()


def test_what_an_identity_keeps_to_itself(start, work, directory, user, mode):
    """Its keys, by default where root reads the file; what is not there stays away, and may be made."""
    home = directory / "home"
    for d in (".ssh", ".config/gh"):
        (home / d).mkdir(parents=True)
        (home / d / "f").write_text("key\n")
    if ROOT:
        for p in [home, *home.rglob("*")]:
            os.chown(p, user.pw_uid, user.pw_gid)
    box = policy(home, ("roots", "write"), (home / ".ssh", "write"))
    script = "ls -A; cat .ssh/f .config/gh/f 2> /dev/null; mkdir .kube 2> /dev/null && echo made"
    seen = ".config .ssh "

    def run(id, **keys):
        c = start("".join(f"{k} = {v}\n" for k, v in keys.items() if k != "own"),
                  f"home = {home}\n" + keys.get("own", ""))
        try_start(c, "h", home, box, ["/bin/sh", "-c", script + "; rmdir .kube 2> /dev/null; :"])
        return " ".join(line for line in c.finished("h").stdout.split() if line not in (".git", ".agents", ".codex", ".aws"))
    named = {"max-profile": "managed"}
    assert run("default", **named) == seen + ("made" if mode == "root" else "key key made")
    assert run("none", **named, **{"deny-read": "none"}) == seen + "key key made"
    assert run("own", **named, **{"deny-read": "-~/.ssh"}) == seen + "key made"
    assert run("added", **named, **{"deny-read": "~/.ssh"}, own="sandbox-deny-read = ~/.config\n\t~/.kube\n") == ".config .kube .ssh"
    def removed():
        """What was mounted on goes when the command's end is known, or a little later."""
        shutil.rmtree(home / ".ssh", ignore_errors=True)
        return not (home / ".ssh").exists()
    # Nobody lets himself in by a directory that was not there.
    poll(removed, what=f"the end of {home}/.ssh")
    c = start("max-profile = managed\n", f"home = {home}\n")
    try_start(c, "m", home, policy(home, ("roots", "write")), ["/bin/mkdir", ".ssh"])
    assert (c.finished("m").code == 0, (home / ".ssh").is_dir()) == ((False, False) if mode == "root" else (True, True))


def test_an_identity_comes_before_it(start, work):
    c = start("allow-unsandboxed = no\nmax-profile = read-only\n",
              "sandbox-allow-unsandboxed = yes\nsandbox-max-profile = workspace-write\nsandbox-allow-network = no\n")
    assert "result" in try_start(c, "u", work)
    assert "result" in try_start(c, "w", work, policy(work, ("roots", "write")))
    assert refused(try_start(c, "n", work, policy(work, network="enabled")), "network")


def test_every_key_of_an_identity(start, work):
    """What it says counts, whatever [sandbox] does."""
    c = start("max-profile = full\nallow-unsandboxed = yes\nprotected-names = .keep\nhide = none\ntmp = host\n"
              "allow-setid = no\nmax-file-size = none\nmax-open-files = 100\nmax-shm = 64M\nover-limit = refuse\n",
              "sandbox-allow-unsandboxed = no\nsandbox-over-limit = clamp\nsandbox-max-profile = workspace-write\n"
              "sandbox-protected-names = .own\nsandbox-tmp = private\nsandbox-allow-setid = yes\nsandbox-hide = /srv\n"
              "sandbox-max-file-size = 1M\nsandbox-max-open-files = 50\nsandbox-max-shm = 1M\n")
    script = ("mkdir .keep; mkdir .own 2> /dev/null || echo held; touch f; chmod u+s f && echo setid; ulimit -f -n;"
              "ls -A /srv > /dev/null 2>&1 || echo hidden; df -B1M --output=size /dev/shm | tail -n 1; rm -rf f .keep")
    m = try_start(c, "k", work, None, ["/bin/bash", "-c", script])
    assert m["result"]["sandbox"]["clamped"] == ["unsandboxed"]
    r = c.finished("k")
    assert [line.split()[-1] for line in r.stdout.splitlines()] == ["held", "setid", "1024", "50", "hidden", "1"], r


def test_requirements_of_the_host(start, work, mode):
    c = start("landlock-min-abi = 64\nallow-unsandboxed = yes\n")
    m = try_start(c, "a", work, policy(work))
    assert m["error"] == UNAVAILABLE
    c = start("mode = require\nallow-unsandboxed = yes\n")
    assert "result" in try_start(c, "none", work), "no limit is set"
    c = start("mode = require\nallow-unsandboxed = yes\n", "command-tasks-max = 500\ncommand-memory-max = 1G\n")
    m = try_start(c, "a", work)
    assert ("result" in m) == (mode == "root"), m


def test_a_request_that_requires(start, work, mode):
    """Every layer is there, whatever the policy restricts, or nothing runs and the answer says which is not."""
    free = {"mode": "require", "policy": {"type": "danger-full-access"}, "sandboxPolicyCwd": str(work),
            "fileSystemPolicy": {"kind": "unrestricted"}, "networkPolicy": "enabled"}
    c = start("allow-unsandboxed = yes\nmax-profile = full\ncompat-launch-config = yes\n")
    m = try_start(c, "all", work, free, ["/bin/sh", "-c", "grep NoNewPrivs /proc/self/status"])
    assert {"noNewPrivs", "seccomp", "landlock"} <= set(m["result"]["sandbox"]["enforced"]["layers"])
    assert c.finished("all").stdout == "NoNewPrivs:\t1\n"
    m = c.request("fs/readFile", {"path": "file:///proc/self/status", "sandbox": free})
    assert "NoNewPrivs:\t1\n" in base64.b64decode(m["result"]["dataBase64"]).decode()
    c = start("allow-unsandboxed = yes\nmax-profile = full\ncompat-launch-config = yes\nlandlock-min-abi = 64\n")
    refused = {"code": -32602, "message": str(UNENFORCEABLE) + ": Landlock"}
    assert try_start(c, "l", work, free)["error"] == {**UNAVAILABLE, **refused}
    assert c.request("fs/readFile", {"path": "file:///etc/passwd", "sandbox": free})["error"] == refused
    if mode == "user":
        c = start("compat-launch-config = yes\n")
        m = try_start(c, "g", work, free)
        # Or somebody gave this user groups to make his own in.
        assert "result" in m or m["error"]["message"] == str(UNENFORCEABLE) + ": control groups"
        m = try_start(c, "a", work, {**free, "mode": "auto", "networkPolicy": "restricted"})
        assert m["result"]["sandboxType"] == "linuxSeccomp"


def test_an_older_shape(start, work):
    launch = {"mode": "auto", "policy": {"type": "read-only"}, "sandboxPolicyCwd": str(work),
              "fileSystemPolicy": {"kind": "restricted", "entries": [
                  {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"},
                  {"path": {"type": "special", "value": {"kind": "current_working_directory"}}, "access": "write"}]},
              "networkPolicy": "restricted"}
    argv = ["/bin/sh", "-c", "touch in; touch /var/tmp/execd-out"]
    c = start("allow-unsandboxed = yes\n")
    assert try_start(c, "no", work, launch, argv)["error"] == {"code": -32602, "message": "missing field `permissions`"}
    c = start("allow-unsandboxed = yes\ncompat-launch-config = yes\n")
    m = try_start(c, "a", work, launch, argv)
    assert m["result"]["sandbox"]["enforced"]["network"] == "restricted", m
    assert "Read-only file system" in c.finished("a").stderr
    assert (work / "in").exists() and not os.path.exists("/var/tmp/execd-out")
    m = c.request("fs/writeFile", {"path": "file:///var/tmp/execd-out", "dataBase64": "eA==", "sandbox": launch})
    assert m["error"]["message"] == "Read-only file system (os error 30)"
    m = try_start(c, "m", work, {**launch, "enforceManagedNetwork": True}, argv)
    assert m["error"] == UNAVAILABLE
    m = try_start(c, "r", work, {**launch, "mode": "require", "enforceManagedNetwork": True}, argv)
    assert m["error"] == {**UNAVAILABLE, "message": str(UNENFORCEABLE) + ": managed network"}
    m = try_start(c, "d", work, {**launch, "mode": "disabled"}, ["/bin/true"])
    assert m["result"]["sandboxType"] == "none"
    assert try_start(c, "x", work, {**launch, "mode": "maybe"}, argv)["error"]["code"] == -32602


def test_a_copy_that_is_refused_left_nothing(start, work, directory):
    """Nothing was made, so nothing may be left there."""
    start("max-profile = workspace-write\n")
    (directory / "token").write_text("t")
    (directory / "token").chmod(0o600)
    (directory / "f").write_text("x")
    argv = [EXECCTL, "--token-file", directory / "token", "cp", directory / "f", f":{work}/f"]
    env = {"PATH": os.environ["PATH"], "HOME": str(directory), "EXECD_URL": start.server.url}
    p = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60)
    assert p.returncode == 125 and "limit: unsandboxed" in p.stderr, p.stderr
    assert "may be left" not in p.stderr and not list(work.glob(".execctl*")) and not (work / "f").exists()
