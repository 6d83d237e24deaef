"""The operator's ceiling on what clients may ask of a sandbox: [sandbox] of execd.conf(5)."""
import os

import pytest
from conftest import ROOT, poll
from test_config import digest
from test_files import uri

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


@pytest.fixture
def work(directory, user):
    w = directory / "work"
    w.mkdir()
    os.chown(w, user.pw_uid, user.pw_gid) if ROOT else None
    return w


def refused(m, what):
    return m.get("error") == {"code": -32602, "message": f"sandbox policy exceeds this executor's limit: {what}"}


def try_start(c, id, work, sandbox=None, argv=("/bin/true",)):
    extra = {} if sandbox is None else {"sandbox": sandbox}
    return c.start(id, list(argv), cwd=uri(work), **extra)


def test_the_defaults(start, work, mode):
    """A file that root reads is for machines of many; without one, or without root, it is one's own."""
    c = start()
    strict = mode == "root"
    for id, sandbox, what in (
            ("none", None, "unsandboxed"), ("off", {"permissions": {"type": "disabled"}, **LEVEL}, "unsandboxed"),
            ("ext", {"permissions": {"type": "external", "network": "restricted"}, **LEVEL}, "external"),
            ("all", policy(work, ("root", "write")), "write /")):
        m = try_start(c, id, work, sandbox)
        assert refused(m, what) if strict else "result" in m, (id, m)
    m = c.request("fs/readFile", {"path": "file:///etc/passwd"})
    assert refused(m, "unsandboxed") if strict else "result" in m
    assert "result" in try_start(c, "ws", work, policy(work, ("roots", "write"), ("tmp", "write")))
    assert "result" in try_start(c, "net", work, policy(work, ("roots", "write"), network="enabled"))


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
    m = try_start(c, "root", work, policy(work, ("root", "write"), network="enabled"))
    assert m["result"]["sandbox"]["enforced"]["fileSystem"] == "restricted"
    assert m["result"]["sandbox"]["enforced"]["network"] == "restricted"
    m = c.request("fs/writeFile", {"path": "file:///var/tmp/execd-out", "dataBase64": "eA=="})
    assert m["error"]["message"] == "Read-only file system (os error 30)" and not os.path.exists("/var/tmp/execd-out")


def test_what_every_sandbox_gets(start, work, directory):
    secret = directory / "secret"
    secret.write_text("secret")
    hidden = directory / "hidden"
    hidden.mkdir()
    (hidden / "f").write_text("x")
    c = start(f"allow-unsandboxed = yes\ndeny-read = {secret}\nhide = {hidden}\nprotected-names = .keep\n"
              "max-processes = 7\nmax-file-size = 1M\n")
    m = try_start(c, "a", work, policy(work, ("roots", "write")), [
        "/bin/sh", "-c", f"cat {secret}; ls {hidden}; mkdir .git && mkdir .keep; ulimit -f"])
    assert m["result"]["sandbox"]["enforced"]["limits"] == {
        "processes": 7, "memoryBytes": 1 << 30, "cpuPercent": None, "openFiles": 16384, "fileBytes": 1 << 20}
    r = c.finished("a")
    assert "secret: Permission denied" in r.stderr and "hidden': Permission denied" in r.stderr
    assert r.stdout == "2048\n" and (work / ".git").exists()
    poll(lambda: not (work / ".keep").exists(), what="an end of the mask")
    m = c.request("fs/readFile", {"path": uri(secret), "sandbox": policy(work)})
    assert m["error"]["message"] == "Permission denied (os error 13)"


def test_an_identity_comes_before_it(start, work):
    c = start("allow-unsandboxed = no\nmax-profile = read-only\n",
              "sandbox-allow-unsandboxed = yes\nsandbox-max-profile = workspace-write\nsandbox-allow-network = no\n")
    assert "result" in try_start(c, "u", work)
    assert "result" in try_start(c, "w", work, policy(work, ("roots", "write")))
    assert refused(try_start(c, "n", work, policy(work, network="enabled")), "network")


def test_requirements_of_the_host(start, work, mode):
    c = start("landlock-min-abi = 64\nallow-unsandboxed = yes\n")
    m = try_start(c, "a", work, policy(work))
    assert m["error"] == {"code": -32602, "message": "sandbox intent cannot be enforced on this executor"}
    c = start("mode = require\nallow-unsandboxed = yes\n")
    m = try_start(c, "a", work)
    assert ("result" in m) == (mode == "root"), m


def test_an_older_shape(start, work):
    launch = {"mode": "require", "policy": {"type": "read-only"}, "sandboxPolicyCwd": str(work),
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
    assert m["error"] == {"code": -32602, "message": "sandbox intent cannot be enforced on this executor"}
    m = try_start(c, "d", work, {**launch, "mode": "disabled"}, ["/bin/true"])
    assert m["result"]["sandboxType"] == "none"
    assert try_start(c, "x", work, {**launch, "mode": "maybe"}, argv)["error"]["code"] == -32602
