# SPDX-License-Identifier: ISC
"""Clients with drive letters: path-map of execd.conf(5) and --path-map of execd(8)."""
import base64
import os
import re
import subprocess

import pytest
from conftest import EXECD, ROOT, TORTURE, as_user, digest, need_sandbox
from test_files import uri

LEVEL = {"windowsSandboxLevel": "restricted-token"}
WHERE = "C:\\work"


@pytest.fixture
def world(directory, user):
    """What there is: work/, which is C:\\work, and what lies beside it."""
    for name in ("work/sub", "other", "secret"):
        (directory / name).mkdir(parents=True)
    for name in ("work/f", "work/sub/g", "other/f", "secret/f"):
        (directory / name).write_text(f"of {name}\n")
    if ROOT:
        subprocess.run(["chown", "-R", f"{user.pw_uid}:{user.pw_gid}", directory], check=True)
    return directory


@pytest.fixture(params=["flag", "file"])
def serve(request, mode, spawn, configured, user, world):
    """A client of an execd with these roots: serve("C:\\work=/srv/work", ...). One form for each mode is enough but in
    scripts/torture: the form only says where the text comes from."""
    if not TORTURE and (mode == "root") != (request.param == "file"):
        pytest.skip("the other form of the map; scripts/torture runs it")

    def start(*roots, identity="", sandbox=""):
        if request.param == "flag" and not identity and not sandbox:
            start.server = spawn(*(word for root in roots for word in ("--path-map", root)))
            return start.server.ready()
        lines = "\n    ".join(roots)
        start.server = configured(
            f"[listener main]\naddress = ws://127.0.0.1:0\n[identity a]\nuser = {user.pw_name}\n"
            f"token-sha256 = {digest('t')}\npath-map = {lines}\n{identity}[sandbox]\n{sandbox}")
        return start.server.connect(token="t").ready()

    return start


@pytest.fixture
def client(serve, world):
    return serve(f"{WHERE}={world}/work")


def read(client, path, **extra):
    answer = client.request("fs/readFile", {"path": path, **extra})
    return base64.b64decode(answer["result"]["dataBase64"]).decode() if "result" in answer else answer["error"]


def entry(path, access):
    return {"path": {"type": "path", "path": path}, "access": access}


def special(kind, access, subpath=None):
    return {"path": {"type": "special", "value": {"kind": kind, **({"subpath": subpath} if subpath else {})}},
            "access": access}


def pattern(text, access="deny"):
    return {"path": {"type": "glob_pattern", "pattern": text}, "access": access}


def policy(*entries, at="file:///C:/work"):
    """What a client on Windows sends for a workspace that it may write to."""
    return {"permissions": {"type": "managed", "network": "restricted", "file_system": {
        "type": "restricted", "entries": [special("root", "read"), special("project_roots", "write"),
                                          special("project_roots", "read", ".git"), *entries]}},
        "cwd": at, "workspaceRoots": [at], **LEVEL}


# --- both directions ---------------------------------------------------------

@pytest.mark.parametrize("cwd, below", [
    ("file:///C:/work", ""), ("file:///c:/WORK/sub", "/sub"), ("file:///C|/work/sub/", "/sub"),
    ("file:\\\\\\C:\\work\\sub", "/sub"), ("C:\\work\\sub", "/sub"), ("c:/Work//sub/.", "/sub"),
    ("file:///C:/work/%73ub", "/sub")])
def test_a_command_runs_in_the_directory(client, world, cwd, below):
    assert client.run("p", ["/bin/pwd"], cwd=cwd).stdout == f"{world}/work{below}\n"
    assert client.run("t", ["/bin/pwd"], cwd=cwd, tty=True).pty == f"{world}/work{below}\r\n"


def test_the_first_version_has_plain_paths(client, world):
    r = client.call("command/exec", {"argv": ["/bin/pwd"], "cwd": "C:\\work\\sub", "env": {}, "tty": False})
    m = client.wait(lambda: [m["params"] for m in client.messages if m.get("method") == "command/exec/outputDelta"
                             and m["params"]["sessionId"] == r["sessionId"]])
    assert base64.b64decode(m[0]["chunk"]).decode() == f"{world}/work/sub\n"
    for bad in "C:\\work\\..\\secret", "\\\\host\\share", "D:\\x":
        code, text = client.error("command/exec", {"argv": ["/bin/pwd"], "cwd": bad, "env": {}, "tty": False})
        assert code == -32602 and "path-map" in text, text


def test_files(client, world):
    c = "file:///C:/work/"
    assert read(client, c + "F".lower()) == "of work/f\n"
    client.call("fs/writeFile", {"path": c + "new%20name", "dataBase64": "eA=="})
    assert (world / "work/new name").read_text() == "x"
    client.call("fs/createDirectory", {"path": "C:\\work\\a\\b"})
    client.call("fs/copy", {"sourcePath": c + "f", "destinationPath": "c:\\WORK\\a\\b\\copy", "recursive": False})
    client.call("fs/move", {"sourcePath": c + "a/b/copy", "destinationPath": c + "a/moved"})
    assert (world / "work/a/moved").read_text() == "of work/f\n"
    assert client.call("fs/getMetadata", {"path": c})["isDirectory"]
    client.call("fs/open", {"handleId": "h", "path": c + "a/moved"})
    assert base64.b64decode(client.call("fs/readBlock", {"handleId": "h", "offset": 0, "len": 99})["chunk"]) == b"of work/f\n"
    client.call("fs/remove", {"path": c + "a/moved"})
    assert client.error("fs/readFile", {"path": c + "a/moved"})[0] == -32004
    # Names below a root are this machine's, with their case.
    assert client.error("fs/readFile", {"path": c + "NEW%20NAME"})[0] == -32004


def test_answers_have_the_clients_names(client, world):
    (world / "work/sub/link").symlink_to("../f")
    walked = client.call("fs/walk", {"path": "file:///c:/work", "options": {
        "maxDepth": 9, "maxDirectories": 99, "maxEntries": 99, "followDirectorySymlinks": False}})
    assert {e["path"] for e in walked["entries"]} == {f"file:///C:/work/{n}" for n in ("f", "sub", "sub/g")}
    real = client.call("fs/canonicalize", {"path": "file:///C:/WORK/sub/link"})
    assert real == {"path": "file:///C:/work/f"}


def test_what_the_client_cannot_name_keeps_its_own_name(client, world):
    """A file: URI without a drive is this machine's path, in both directions."""
    names = ["a:b", "back\\slash", "aux.c", "dot.", "blank ", "q?"]
    for name in names:
        (world / "work" / name).write_text(name)
    (world / "work/to-other").symlink_to("../other/f")
    walked = client.call("fs/walk", {"path": "file:///C:/work", "options": {
        "maxDepth": 0, "maxDirectories": 99, "maxEntries": 99, "followDirectorySymlinks": False}})
    paths = [e["path"] for e in walked["entries"]]
    own = [p for p in paths if p.startswith(f"file://{world}/work/")]
    assert len(own) == len(names) and {p for p in paths if p not in own} == {"file:///C:/work/f", "file:///C:/work/sub"}
    assert sorted(read(client, p) for p in own) == sorted(names)
    other = client.call("fs/canonicalize", {"path": "file:///C:/work/to-other"})
    assert other == {"path": f"file://{world}/other/f"} and read(client, other["path"]) == "of other/f\n"


def test_the_longest_root_wins(serve, world):
    c = serve(f"{WHERE} = {world}/work", f"{WHERE}\\sub = {world}/other", "Z: = /")
    assert read(c, "file:///C:/work/sub/f") == "of other/f\n"
    assert read(c, f"file:///Z:{world}/secret/f") == "of secret/f\n"
    for path, name in (("other/f", "C:/work/sub/f"), ("work/f", "C:/work/f"), ("work/sub/g", f"Z:{world}/work/sub/g"),
                       ("secret", f"Z:{world}/secret")):
        found = c.call("fs/canonicalize", {"path": uri(world / path)})
        assert found == {"path": f"file:///{name}"}
        assert c.call("fs/canonicalize", found) == found


def test_environment_info(serve, world, user):
    c = serve("Z:=/")
    info = c.call("environment/info")
    assert info["userHomeDir"] == f"file:///Z:{user.pw_dir}" and info["tempDir"] == "file:///Z:/tmp"
    assert info["cwd"].startswith("file:///Z:/")
    # The client is told what it talks to: the shell is a program there, and its commands are that system's.
    assert info["platformOs"] == "linux" and info["shell"]["path"].startswith("/")
    read = c.call("environmentConfig/read", {"cwd": "file:///Z:/", "configPaths": [["a"]], "requirementsPaths": []})
    assert read["userHomeDir"] == f"file:///Z:{user.pw_dir}"


def test_under_no_root_environment_info_has_own_names(client, user):
    assert client.call("environment/info")["userHomeDir"] == f"file://{user.pw_dir}"


def test_watches(client, world):
    c = "file:///C:/work/"
    assert not client.call("fs/watchMissing", {"watchId": 6, "missing": [c + "later", "file:///D:/x"]})["watching"]
    assert client.call("fs/watchMissing", {"watchId": 7, "missing": [c + "later"]})["watching"]
    (world / "work/later").write_text("")
    client.wait(lambda: [m for m in client.messages if m.get("method") == "fs/missingChanged"])
    client.call("fs/watch", {"watchId": 1, "path": c, "recursive": False})
    (world / "work/now").write_text("")
    changed = client.wait(lambda: [m["params"] for m in client.messages if m.get("method") == "fs/changed"])
    assert "file:///C:/work/now" in str(changed), changed


def test_a_session_that_is_resumed_has_its_map(serve, world):
    first = serve(f"{WHERE}={world}/work")
    first.sh("x", "echo there; sleep 1000", cwd="file:///C:/work")
    first.wait_output("x", "there")
    first.drop()
    serve.server.wait_log("detached")
    again = serve.server.connect(token="t").ready(resumeSessionId=first.session_id)
    assert read(again, "file:///C:/work/f") == "of work/f\n" and again.terminate("x")


# --- sandboxes ---------------------------------------------------------------

def cat(client, id, *paths, **extra):
    r = client.run(id, ["/bin/cat", *map(str, paths)], cwd="file:///C:/work", **extra)
    return r.stdout


@pytest.fixture
def sandboxed(client, mode, user):
    need_sandbox(mode, user)
    return client


def test_a_sandbox_writes_in_the_workspace_only(sandboxed, world):
    script = f"echo x >in; echo x >sub/in; echo x >{world}/other/out; mkdir .git; echo x >.git/config; pwd"
    r = sandboxed.run("p", ["/bin/sh", "-c", script], cwd="file:///C:/work", sandbox=policy())
    assert r.stdout == f"{world}/work\n"
    assert (world / "work/in").exists() and (world / "work/sub/in").exists()
    assert os.listdir(world / "other") == ["f"] and not (world / "work/.git/config").exists()


def test_a_file_helper_in_a_sandbox_has_the_map(sandboxed, world):
    call, c = sandboxed.call, "file:///C:/work/"
    call("fs/writeFile", {"path": c + "new", "dataBase64": "eA==", "sandbox": policy()})
    assert (world / "work/new").read_text() == "x"
    assert call("fs/canonicalize", {"path": c + "sub", "sandbox": policy()}) == {"path": "file:///C:/work/sub"}
    for path in f"file://{world}/other/new", c + ".git/new":
        assert "error" in sandboxed.request("fs/writeFile", {"path": path, "dataBase64": "eA==", "sandbox": policy()})
    assert os.listdir(world / "other") == ["f"]


@pytest.mark.parametrize("denied", [
    entry("file:///c:/WORK/sub", "deny"), entry("C:\\work\\sub\\g", "deny"), pattern("C:\\work\\**\\g"),
    pattern("c:/Work/s*/g"), pattern("**\\g"), pattern("sub\\*"), pattern("codex-project-roots://sub\\g"),
    special("project_roots", "deny", "sub\\g")], ids=str)
def test_denials_hold(sandboxed, world, denied):
    assert cat(sandboxed, "p", "f", "sub/g", sandbox=policy(denied)) == "of work/f\n"
    assert read(sandboxed, "file:///C:/work/f", sandbox=policy(denied)) == "of work/f\n"
    assert "of" not in read(sandboxed, "file:///C:/work/sub/g", sandbox=policy(denied))
    assert "of" not in read(sandboxed, f"file://{world}/work/sub/g", sandbox=policy(denied))


@pytest.mark.parametrize("denied, why", [
    (entry("file:///C:/", "deny"), "cannot be denied as a whole"), (entry("C:", "deny"), "cannot be denied as a whole"),
    (pattern("C:\\**\\g"), "lies above a root"), (pattern("C:\\w*"), "lies above a root"),
    (pattern("C:\\work\\..\\secret\\*"), "`..`"), (pattern("{C:\\work,D:}\\g"), "colon"),
    (pattern("\\\\host\\share\\*"), "UNC"), (pattern("\\\\?\\C:\\work\\*"), "of a device"),
    (entry("file:///C:/work/..", "deny"), "`..`"), (special("project_roots", "deny", "C:\\work\\sub"), "path-map"),
    (special("project_roots", "deny", "..\\sub:x"), "colon")], ids=str)
def test_a_denial_that_would_not_hold_is_refused(sandboxed, world, denied, why):
    for method, params in (("process/start", {"processId": "p", "argv": ["/bin/cat", "f"], "cwd": "file:///C:/work",
                                              "env": {}, "tty": False}),
                           ("fs/readFile", {"path": "file:///C:/work/f"})):
        code, text = sandboxed.error(method, {**params, "sandbox": policy(denied)})
        assert code == -32602 and "path-map: " in text and why in text, text


def test_what_only_the_client_has_is_left_out(sandboxed, world):
    """Directories of the client's machine are in every policy of a Codex with more than one."""
    more = [entry("file:///D:/tools", "read"), entry("C:\\Users\\me", "write"), entry("D:\\secret", "deny"),
            pattern("D:\\**\\*.key"), entry("file:///C:/", "read")]
    assert cat(sandboxed, "p", "f", sandbox=policy(*more)) == "of work/f\n"
    assert read(sandboxed, "file:///C:/work/f", sandbox=policy(*more)) == "of work/f\n"
    code, text = sandboxed.error("fs/readFile", {"path": "file:///C:/work/f", "sandbox": policy(at="file:///D:/x")})
    assert code == -32602 and "under no root of path-map" in text


def test_a_map_gives_nothing_that_the_ceiling_forbids(serve, world, mode, user):
    need_sandbox(mode, user)
    c = serve(f"{WHERE} = {world}/work", f"C:\\other = {world}/other", "Z: = /",
              identity=f"sandbox-workspace-roots = {world}/work\nsandbox-writable-roots = {world}/work\n"
                       f"sandbox-deny-read = {world}/secret\n", sandbox="max-profile = workspace-write\n")
    assert cat(c, "a", "f", sandbox=policy()) == "of work/f\n"
    for n, (cwd, sandbox) in enumerate((
            ("file:///C:/other", policy(at="file:///C:/other")), ("file:///C:/work", policy(at="file:///C:/other")),
            ("file:///Z:/", policy()), ("file:///C:/work", policy(entry("Z:\\", "write"))), ("file:///C:/work", None))):
        extra = {"sandbox": sandbox} if sandbox else {}
        m = c.start(f"bad{n}", ["/bin/true"], cwd=cwd, **extra)
        assert "error" in m and "sandbox-" in m["error"]["message"] or "max-profile" in str(m), (n, m)
    assert "of" not in cat(c, "d", world / "secret/f", sandbox=policy())
    for path in f"file:///Z:{world}/secret/f", f"file://{world}/secret/f":
        assert "of" not in read(c, path, sandbox=policy())
    written = c.request("fs/writeFile", {"path": "file:///C:/other/new", "dataBase64": "eA==", "sandbox": policy()})
    assert "error" in written and os.listdir(world / "other") == ["f"]


# --- attacks -----------------------------------------------------------------

@pytest.mark.parametrize("path, why", [
    ("C:\\work\\..\\secret\\f", "`..`"), ("C:\\work\\..\\..\\etc\\passwd", "`..`"),
    ("file:///C:/work/../secret/f", "`..`"), ("file:///C:/work/%2e%2e/secret/f", "`..`"),
    ("file:///C:/work/.%2E/secret/f", "`..`"), ("file:///x/../C:/work/f", "`..`"),
    ("file:///C:/work/..%2fsecret/f", "escaped separator"), ("file:///C:/work/..%5csecret%5Cf", "escaped separator"),
    ("file:///C:/work%2Ff", "escaped separator"), ("file:///C:/work\\..\\secret/f", "`..`"),
    ("C:/work\\../secret\\f", "`..`"), ("file:///C:/work/.../secret", "ignores"),
    ("file:///C:/work/f.", "ignores"), ("file:///C:/work/f%20", "ignores"), ("file:///C:/work./f", "ignores"),
    ("file:///C:/work/..%20/secret/f", "ignores"), ("file:///C:/work/f:stream", "alternate stream"),
    ("file:///C:/work/f::$DATA", "alternate stream"), ("file:///C:/work%3Ax/f", "alternate stream"),
    ("file:///C:/work/NUL", "device"), ("file:///C:/work/con.txt", "device"), ("C:\\work\\COM1", "device"),
    ("file:///C:/work/aux/x", "device"), ("file:///C:/work/f%2a", "no name of Windows"),
    ("file:///C:/work/%00", "control character"), ("file:///C:/work/%ff", "UTF-8"),
    ("\\\\?\\C:\\work\\f", "of a device"), ("\\\\.\\C:\\work\\f", "of a device"), ("//?/C:/work/f", "of a device"),
    ("\\??\\C:\\work\\f", "of a device"), ("\\\\localhost\\C$\\work\\f", "UNC"), ("file://host/share/f", "UNC"),
    ("file://127.0.0.1/C:/work/f", "UNC"), ("C:work\\f", "current directory"), ("file:///C:work/f", "current directory"),
    ("\\work\\f", "drive letter"), ("C:\\work\\" + "a\\" * 20000, "limit is 32767"),
], ids=lambda v: str(v)[:40])
def test_attacks(client, path, why):
    for method, params in (("fs/readFile", {"path": path}), ("fs/remove", {"path": path}),
                           ("fs/copy", {"sourcePath": path, "destinationPath": "file:///C:/work/x", "recursive": True}),
                           ("fs/copy", {"sourcePath": "file:///C:/work/f", "destinationPath": path, "recursive": True}),
                           ("process/start", {"processId": "p", "argv": ["/bin/pwd"], "cwd": path, "env": {}, "tty": False})):
        code, text = client.error(method, params)
        assert code == -32602 and text.startswith("path-map: ") and why in text, text


@pytest.mark.parametrize("path", ["file:///C:/WORK~1/f", "file:///C:/workshop/f", "file:///D:/work/f", "C:\\", "c:"])
def test_paths_under_no_root(client, path):
    code, text = client.error("fs/readFile", {"path": path})
    assert code == -32600 and re.search("under no root of path-map|above a root of path-map", text), text
    code, text = client.error("process/start", {"processId": "p", "argv": ["/bin/pwd"], "cwd": path, "env": {}, "tty": False})
    assert code == -32602 and "root of path-map" in text, text


def test_short_names_are_names_like_others(client, world):
    (world / "work/a-long-name.txt").write_text("long")
    assert client.error("fs/readFile", {"path": "file:///C:/work/A-LONG~1.TXT"})[0] == -32004


# --- configuration -----------------------------------------------------------

def test_without_a_map_the_error_names_the_key(server, world):
    c = server.ready()
    assert c.error("fs/readFile", {"path": "file:///C:/work/f"}) == (
        -32600, "'file:///C:/work/f' is invalid on 'linux'; path-map can map it")
    assert c.error("fs/readFile", {"path": "C:\\work\\f"}) == (-32602, "unsupported path URI scheme `c`")
    assert c.error("fs/readFile", {"path": "file://host/f"}) == (-32600, "'file://host/f' is invalid on 'linux'")
    c.drop()


def check(mode, user, *argv):
    argv = [str(EXECD), *map(str, argv)]
    r = subprocess.run(argv if mode == "root" else as_user(user, argv), capture_output=True, text=True, timeout=20,
                       stdin=subprocess.DEVNULL)
    return r.returncode, r.stdout, r.stderr


@pytest.mark.parametrize("roots, line, why", [
    ("C:\\a = /x\n  c:\\A\\ = /y", 7, "ambiguous: `C:\\A` is mapped already, to /x"),
    ("C:\\a = /x\n  D: = /x/", 7, "ambiguous: /x is mapped already, as `C:\\a`"),
    ("C:\\a", 6, "is not CLIENT-PATH = /PATH"), ("C:\\a = x", 6, "is not CLIENT-PATH = /PATH"),
    ("\\\\host\\share = /x", 6, "UNC"), ("C:\\..\\a = /x", 6, "`..`"), ("C:\\nul = /x", 6, "device"),
    ("C: = /x/../y", 6, "`.` and `..` are not permitted"),
    ("\n ".join(f"C:\\{i} = /{i}" for i in range(33)), 38, "more than 32 roots")])
def test_bad_maps_are_refused_with_their_line(mode, user, directory, roots, line, why):
    conf = directory / "execd.conf"
    conf.write_text(f"[listener main]\naddress = ws://127.0.0.1:0\n[identity a]\nuser = {user.pw_name}\n"
                    f"token-sha256 = {digest('t')}\npath-map = {roots}\n")
    code, _, said = check(mode, user, "-c", conf, "-t")
    assert code == 3 and f"{conf}:{line}: path-map: " in said and why in said, said


def test_bad_flags(mode, user, directory):
    for flags, why in ((["--path-map", "C:\\a"], "execd: --path-map: `C:\\a` is not CLIENT-PATH = /PATH"),
                       (["--path-map", "C:=/a", "--path-map", "c:\\=/b"], "execd: --path-map: ambiguous: `C:` is mapped"),
                       (["--path-map", "C:=/a", "-c", "/etc/execd/execd.conf"], "--path-map")):
        code, _, said = check(mode, user, *flags)
        assert code == 2 and why in said, said


def test_the_effective_map_is_shown_and_reloaded(configured, mode, user, world):
    text = (f"[listener main]\naddress = ws://127.0.0.1:0\n[identity a]\nuser = {user.pw_name}\n"
            f"token-sha256 = {digest('t')}\npath-map = c:/work/ = {world}//work\n  Z: = /\n")
    s = configured(text)
    s.wait_log("[identity a]: path-map: its clients' Z: is /")
    code, shown, _ = check(mode, user, "-c", s.path, "-T")
    assert code == 0 and re.search(rf"(?m)^path-map = C:\\work = {world}/work\n\s+Z: = /$", shown), shown
    old = s.connect(token="t").ready()
    log = s.reload(text.replace("//work", "/other"), "reload: ")
    assert "path-map" in log, log
    old.wait_closed()
    assert read(s.connect(token="t").ready(), "file:///C:/work/f") == "of other/f\n"
    old = s.connect(token="t").ready(resumeSessionId=old.session_id)
    assert read(old, "file:///C:/work/f") == "of work/f\n", "a session keeps the map that it began with"


def test_maps_are_of_one_identity(configured, user, world):
    s = configured("[listener main]\naddress = ws://127.0.0.1:0\n" + "".join(
        f"[identity {name}]\nuser = {user.pw_name}\ntoken-sha256 = {digest(name)}\n{keys}" for name, keys in (
            ("one", f"path-map = C:\\work = {world}/work\n"), ("two", f"path-map = C:\\work = {world}/other\n"), ("no", ""))))
    assert read(s.connect(token="one").ready(), "file:///C:/work/f") == "of work/f\n"
    assert read(s.connect(token="two").ready(), "file:///C:/work/f") == "of other/f\n"
    assert read(s.connect(token="no").ready(), "file:///C:/work/f")["code"] == -32600
