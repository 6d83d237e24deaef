# SPDX-License-Identifier: ISC
"""The real Codex CLI against execd, with a model that the test plays (scripts/test --with-codex).

Every scenario is one `codex exec`; what the model was sent and said, what codex printed, what passed between codex
and execd and what execd logged are in $EXECD_BUILD/codex-log/, a directory for each test.
"""
import base64
import json
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import sys
import time
import zlib

import pytest

sys.path[:0] = [os.path.dirname(__file__), os.path.join(os.path.dirname(__file__), "../integration")]
import conftest  # noqa: E402
from certificates import Authority, lend  # noqa: E402
from conftest import (BUILD, EXECD, as_user, assert_nothing_left, configured, digest, directory, kill,  # noqa: E402,F401
                      mode, spawn, user)
from driver import VERSION, Codex, codex_program  # noqa: E402
from test_auth import KEY, jwt  # noqa: E402
from wire import Wire  # noqa: E402

# Not the other suites' user: one of their runs beside this one must not look like something left behind here.
conftest.USER = "execd-test-codex"
RECIPES = pathlib.Path(__file__).parents[2] / "doc/recipes.md"


@pytest.fixture(scope="session")
def program():
    return codex_program()


@pytest.fixture(autouse=True)
def clean(user):
    """Set up before everything that is started, so looked at after all of it was stopped."""
    yield
    assert_nothing_left(user)


@pytest.fixture
def log(request):
    path = BUILD / "codex-log" / request.node.name.replace("[", "-").rstrip("]")
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


TOKEN = "a-token-of-the-tests"
FORMS = ("flags", "file", "tls", "clamp")


@pytest.fixture(params=FORMS)
def form(request):
    """How execd is configured: by flags; by a file with an identity and its token; the same over TLS; and with a
    ceiling that requests are cut down to."""
    return request.param


@pytest.fixture
def server(form, spawn, configured, user, directory, mode, log, tmp_path):
    if form == "flags":
        s = spawn()
        s.authority = None
    else:
        tls, s_authority = "", None
        if form == "tls":
            authority = Authority(tmp_path, "ca")
            base = authority.issue("server", group=user.pw_gid if mode == "user" else 0)
            for at in tmp_path, *tmp_path.parents[:2]:
                at.chmod(0o755)
            tls, s_authority = f"certificate = {base}.pem\ncertificate-key = {base}.key\n", authority.cert
        text = (f"[listener main]\naddress = {'wss' if tls else 'ws'}://127.0.0.1:0\n{tls}"
                f"[identity ci]\nuser = {user.pw_name}\ntoken-sha256 = {digest(TOKEN)}\n")
        if form == "clamp":
            text += "[sandbox]\nmax-profile = workspace-write\nover-limit = clamp\n"
        s = configured(text)
        s.authority = s_authority
    yield s
    (log / "execd.log").write_text(s.log)


@pytest.fixture
def wire(server, log):
    w = Wire(server.url, log / "wire.jsonl", server.authority)
    yield w
    w.stop()


def named(url, token=TOKEN):
    """environments.toml for that server."""
    return (f'default = "there"\n\n[[environments]]\nid = "there"\nurl = "{url}"\n'
            f'auth_bearer_token = "{token}"\n')


@pytest.fixture
def start(program, tmp_path, log, directory):
    """Starts codex in the workspace: start(url=..., flags=...)."""
    started = []

    def begin(url=None, **options):
        if url and options.pop("form", "flags") != "flags":
            options["environments"] = named(url)
        elif url:
            options["url"] = url
        c = Codex(program, tmp_path, log, directory, **options)
        started.append(c)
        return c

    yield begin
    for c in started:
        c.stop()


@pytest.fixture
def codex(start, wire, form):
    return start(url=wire.url, form=form)


@pytest.fixture
def gate(directory):
    """Lets a command go on: it reads lines from the fifo `gate`, gate() writes one."""
    path = directory / "gate"
    os.mkfifo(path)
    os.chmod(path, 0o666)
    fd = os.open(path, os.O_RDWR)
    yield lambda: os.write(fd, b"\n")
    os.close(fd)


def assert_no_refusal(wire):
    """Codex looks for files that need not exist; nothing else may be an error."""
    assert [e for e in wire.errors() if e[1] != -32004] == []


def test_tools(codex):
    """The tools that the scenarios use are offered, so a new Codex that renames one fails here."""
    tools = {t.get("name"): t for t in codex.first()["tools"]}
    assert {"exec_command", "write_stdin", "apply_patch", "view_image"} <= set(tools)
    assert {"cmd", "tty", "yield_time_ms"} <= set(tools["exec_command"]["parameters"]["properties"])
    assert {"session_id", "chars"} <= set(tools["write_stdin"]["parameters"]["properties"])
    assert tools["apply_patch"]["type"] == "custom"
    codex.finish()


def test_command(codex, wire, user, directory):
    ran = codex.run("echo to stdout; echo to stderr >&2; id -u; pwd; echo $HOME; echo x >made; exit 3")
    assert ran.code == 3, ran.output
    for line in "to stdout", "to stderr", str(user.pw_uid), str(directory), user.pw_dir:
        assert line in ran.output.splitlines(), ran.output
    assert (directory / "made").read_text() == "x\n"
    assert (directory / "made").stat().st_uid == user.pw_uid
    codex.finish()
    assert_no_refusal(wire)


def test_much_output(codex, wire):
    """More than Codex shows a model: the front and the end are there, the middle is its to leave out."""
    ran = codex.run("seq 1 200000; exit 2")
    words = ran.end()
    assert ran.code == 2 and words[-1] == "200000" and "1" in words[:20], (words[:20], words[-3:])
    codex.finish()
    assert_no_refusal(wire)


def test_tty(codex, wire):
    ran = codex.run("test -t 0 && test -t 1 && tty; echo ready; read line; echo got:$line; cat; exit 5", tty=True,
                    yield_time_ms=250)
    ran.until("ready")
    ran.write("first\n")
    ran.until("got:first")
    ran.write("second\n")
    ran.write("\x04")
    ran.end()
    lines = ran.output.splitlines()
    assert ran.code == 5, lines
    assert lines[0].startswith("/dev/pts/"), lines
    # Typed and echoed by the terminal, then printed by the shell and by cat.
    assert "got:first" in lines and lines.count("first") == 1 and lines.count("second") == 2, lines
    codex.finish()
    assert [a["result"] for _, _, a in wire.requests("process/write")] == [{"status": "accepted"}] * 3
    assert [p["tty"] for _, p, _ in wire.requests("process/start")] == [True]
    assert_no_refusal(wire)


def test_interrupt(codex, wire):
    """^C of a terminal session reaches what runs in it."""
    ran = codex.run("trap 'echo interrupted; exit 7' INT; echo ready; while :; do read line; done", tty=True,
                    yield_time_ms=250)
    ran.until("ready")
    ran.write("\x03")
    assert ran.end() == ["ready", "^Cinterrupted"] and ran.code == 7
    codex.finish()
    assert_no_refusal(wire)


def test_long_poll(codex, wire, gate):
    """A session outlives the call that started it; every poll brings what came since the one before, once."""
    ran = codex.run("exec 3<gate; for i in one two three; do echo $i; read x <&3; done; exit 4", yield_time_ms=250)
    for said in "one", "two", "three":
        ran.until(said)
        gate()
    assert ran.end() == ["one", "two", "three"] and ran.code == 4
    codex.finish()
    assert_no_refusal(wire)


SERVER = "python3 -m http.server {} --bind 127.0.0.1"
BACKGROUND = {"amp": SERVER + " >log 2>&1 &", "nohup": "nohup " + SERVER + " >log 2>&1 &",
              "setsid": "setsid " + SERVER + " >log 2>&1 </dev/null &", "disown": SERVER + " >log 2>&1 </dev/null & disown",
              "daemon": "python3 -c 'import os, sys; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); "
                        "os.execvp(sys.argv[1], sys.argv[1:])' " + SERVER + " >log 2>&1 </dev/null"}


@pytest.mark.parametrize("tty", [False, True], ids=["pipes", "terminal"])
def test_background_servers(codex, wire, form, tty):
    """Codex sends process/terminate after each command; the next one finds what it started. In a sandbox it ends with its command.
    The kernel hangs up a terminal whose command has ended: there a server stays that is deaf to it, or has left."""
    there = "curl -s -o /dev/null http://127.0.0.1:{}/"
    for how, script in BACKGROUND.items():
        if tty and how in ("amp", "disown"):
            continue
        with socket.create_server(("127.0.0.1", 0)) as s:
            port = s.getsockname()[1]
        more = {"tty": True} if tty else {}
        ran = codex.run(script.format(port) + "\nuntil " + there.format(port) + "; do sleep 0.1; done; echo up", **more)
        assert ran.end()[-1] == "up" and ran.code == 0, (how, ran.output)
        ran = codex.run(there.format(port) + "; echo status $?")
        assert ran.end() == ["status", "7" if form == "clamp" else "0"], (how, ran.output)
    assert len(wire.requests("process/terminate")) >= 6
    codex.finish()
    assert_no_refusal(wire)


PATCH = """\
*** Begin Patch
*** Add File: new/deep/created.txt
+a line
+grüße
*** Update File: edited.txt
@@
 keep
-old
+new
*** Update File: before.txt
*** Move to: new/after.txt
@@
-x
+y
*** Delete File: deleted.txt
*** End Patch
"""


def test_patch(codex, wire, directory, user):
    for name, text in {"edited.txt": "keep\nold\nkeep\n", "before.txt": "x\n", "deleted.txt": "gone\n"}.items():
        (directory / name).write_text(text)
        shutil.chown(directory / name, user.pw_uid, user.pw_gid)
    output = codex.patch(PATCH)
    assert "Success" in output, output
    assert (directory / "new/deep/created.txt").read_text() == "a line\ngrüße\n"
    assert (directory / "new/deep/created.txt").stat().st_uid == user.pw_uid
    assert (directory / "edited.txt").read_text() == "keep\nnew\nkeep\n"
    assert (directory / "new/after.txt").read_text() == "y\n"
    assert not (directory / "before.txt").exists() and not (directory / "deleted.txt").exists()
    codex.finish()
    assert_no_refusal(wire)


def test_patch_that_does_not_fit(codex, wire, directory):
    """A patch that does not apply says so and changes nothing."""
    (directory / "edited.txt").write_text("something else\n")
    output = codex.patch("*** Begin Patch\n*** Update File: edited.txt\n@@\n-old\n+new\n*** End Patch\n")
    assert "Failed to find expected lines" in output, output
    assert (directory / "edited.txt").read_text() == "something else\n"
    codex.finish()
    assert_no_refusal(wire)


def test_agents_md(start, wire, form, directory):
    """Instructions come from the machine that commands run on: read through execd, shown to the model."""
    (directory / ".git").mkdir()
    (directory / "AGENTS.md").write_text("Always say heliotrope.\n")
    codex = start(url=wire.url, form=form)
    shown = json.dumps(codex.first()["input"])
    assert "Always say heliotrope." in shown
    codex.finish()
    read = [a["result"]["dataBase64"] for _, p, a in wire.requests("fs/readFile") if p["path"].endswith("/AGENTS.md")]
    assert read and base64.b64decode(read[0]) == b"Always say heliotrope.\n"
    assert_no_refusal(wire)


def test_view_image(codex, wire, directory):
    (directory / "red.png").write_bytes(png(3, 2, b"\xff\x00\x00"))
    output = codex.call("view_image", path=str(directory / "red.png"))
    images = [i["image_url"] for i in output if i["type"] == "input_image"]
    assert len(images) == 1 and images[0].startswith("data:image/png;base64,"), output
    assert base64.b64decode(images[0].split(",", 1)[1]) == (directory / "red.png").read_bytes()
    codex.finish()
    assert_no_refusal(wire)


def png(width, height, colour):
    """A picture of one colour."""
    rows = (b"\0" + colour * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def test_frontend_killed(codex, wire, server, gate):
    """The front-end dies under a running command: codex resumes and misses nothing, also not what came meanwhile."""
    ran = codex.run("exec 3<gate; seq 1 200; read x <&3; seq 201 400; read x <&3; seq 401 600; exit 6",
                    yield_time_ms=250)
    ran.until("200")
    kill(server.frontend())
    gate()
    wire.wait(lambda: [a for _, p, a in wire.requests("initialize") if p["resumeSessionId"] and a and "result" in a],
              what="a resumed session")
    gate()
    assert ran.end() == [str(n) for n in range(1, 601)] and ran.code == 6
    sessions = {a["result"]["sessionId"] for _, _, a in wire.requests("initialize") if a and "result" in a}
    assert len(sessions) == 1, "opened anew, not resumed"
    after = codex.run("echo still here")
    assert after.end() == ["still", "here"] and after.code == 0
    codex.finish()


def test_its_token_expires(start, configured, log, user, mode, directory, tmp_path, gate):
    """The token expires under a running command, and then the connection ends: codex resumes with it, as it has no other."""
    secret = tmp_path / "secret"
    secret.write_bytes(KEY)
    for at in tmp_path, *tmp_path.parents[:2]:
        at.chmod(0o755)
    lend(secret, user.pw_gid if mode == "user" else 0)
    conf = (f"[listener main]\naddress = ws://127.0.0.1:0\n[identity ci]\nuser = {user.pw_name}\ntoken-subject = alice\n"
            f"[signed-tokens]\nsecret-file = {secret}\nissuer = me\nmax-clock-skew-seconds = 3600\n")
    s = configured(conf)
    wire = Wire(s.url, log / "wire.jsonl")
    codex = start(environments=named(wire.url, jwt(exp=int(time.time()) - 60, iss="me", sub="alice")))
    ran = codex.run("exec 3<gate; seq 1 200; read x <&3; seq 201 400; exit 6", yield_time_ms=250)
    ran.until("200")
    s.reload(conf.replace("3600", "0"), "max-clock-skew-seconds: 0, was 3600")
    wire.wait(lambda: [a for _, p, a in wire.requests("initialize") if p["resumeSessionId"] and a and "result" in a],
              what="a resumed session")
    gate()
    assert ran.end() == [str(n) for n in range(1, 401)] and ran.code == 6
    after = codex.run("echo still here")
    assert after.end() == ["still", "here"] and after.code == 0
    codex.finish()
    wire.stop()
    (log / "execd.log").write_text(s.log)


def test_stdio(start, mode, user, directory):
    """One execd for this codex alone, by name from environments.toml."""
    argv = [str(EXECD), "--listen", "stdio"]
    argv = argv + ["--user", user.pw_name] if mode == "root" else as_user(user, argv)
    (directory / "edited.txt").write_text("old\n")
    (directory / "edited.txt").chmod(0o666)
    codex = start(environments=f'default = "here"\n\n[[environments]]\nid = "here"\n'
                               f'program = {json.dumps(argv[0])}\nargs = {json.dumps(argv[1:])}\n')
    ran = codex.run("id -u; exit 3")
    assert ran.end() == [str(user.pw_uid)] and ran.code == 3
    output = codex.patch("*** Begin Patch\n*** Update File: edited.txt\n@@\n-old\n+new\n*** End Patch\n")
    assert "Success" in output and (directory / "edited.txt").read_text() == "new\n", output
    codex.finish()


@pytest.mark.parametrize("sandbox", ["read-only", "workspace-write"])
def test_restricted(start, wire, form, directory, sandbox):
    """Without the bypass codex asks for a sandbox: the command runs in it, and so does the patch."""
    write = sandbox == "workspace-write"
    codex = start(url=wire.url, form=form, flags=("--sandbox", sandbox))
    output = codex.call("exec_command", cmd="echo ran >made; touch /var/tmp/execd-out; mkdir .git && echo bad; echo end")
    assert "end" in output and "bad" not in output and "Read-only file system" in output, output
    assert (directory / "made").exists() == write and not pathlib.Path("/var/tmp/execd-out").exists()
    output = codex.patch("*** Begin Patch\n*** Add File: patched\n+x\n*** End Patch\n")
    assert ("Success" in output) == write, output
    codex.finish()
    assert (directory / "patched").exists() == write
    assert {e[1] for e in wire.errors()} <= {-32004}


def test_an_approved_escalation(start, wire, form, directory):
    """Under a profile that denies a path, which Codex refuses unless the server says that it keeps the denial."""
    if form == "clamp":
        pytest.skip("the operator permits no more than workspace-write")
    (directory / "secret").mkdir()
    (directory / "secret/key").write_text("hidden\n")
    codex = start(url=wire.url, form=form, flags=(), config={
        "keys": 'default_permissions = "dev"\napproval_policy = "on-request"\napprovals_reviewer = "auto_review"',
        "tables": f'[permissions.dev.filesystem]\n":root" = "read"\n"{directory}/secret" = "deny"\n'})
    codex.model.outcome = "allow"
    output = codex.call("exec_command", cmd=f"touch /var/tmp/{directory.name}; cat secret/key; rm -v /var/tmp/{directory.name}",
                        sandbox_permissions="require_escalated", justification="The test wants it.")
    assert f"removed '/var/tmp/{directory.name}'" in output and "hidden" not in output and "Permission denied" in output, output
    codex.finish()
    assert len(codex.model.reviews) == 1
    (_, params, _), = wire.requests("process/start")
    assert params["sandbox"]["sandboxOverride"] == "escalatedSandboxWithRestrictions"
    assert {e[1] for e in wire.errors()} <= {-32004}


def test_shell_snapshot(start, wire, form, directory, user):
    """With its feature on codex asks for the state of a login shell: the user's profile runs once."""
    profile = pathlib.Path(user.pw_dir) / ".bash_profile"
    assert not profile.exists()
    try:
        profile.write_text(f"echo >>{directory}/logins; export OF_PROFILE=profile; greet() {{ echo hello; }}\n")
        profile.chmod(0o644)
        codex = start(url=wire.url, form=form, config={"features": "shell_snapshot_v2 = true"},
                      flags=("--sandbox", "workspace-write"))
        for _ in range(3):
            assert codex.run("greet; echo $OF_PROFILE").end() == ["hello", "profile"]
        codex.finish()
    finally:
        profile.unlink()
    assert [p["shellSnapshot"]["shell"]["name"] for _, p, _ in wire.requests("process/start")] == ["bash"] * 3
    assert (directory / "logins").read_text() == "\n"
    assert {e[1] for e in wire.errors()} <= {-32004}


def test_what_hangs_on_executor_version(start, spawn, log):
    """The list of doc/building.md: which methods codex calls, and with which members it starts a command, when the server
    says this version. Of one below 0.164.0 it does not ask for skills and plugins; that is all."""
    s, called = spawn(), {}
    for told in b"0.1.100", b"0.163.9", b"0.164.0", b"0.170.9", b"0.171.0", b"0.999.0", b"9.10.10":
        wire = Wire(s.url, log / "wire.jsonl",
                    change=lambda data, v=told: data.replace(b'"executorVersion":"0.171.0"', b'"executorVersion":"%s"' % v))
        codex = start(url=wire.url, flags=("--sandbox", "workspace-write"),
                      config={"features": "executor_capability_discovery_v2 = true\nshell_snapshot_v2 = true"})
        codex.run("echo x")
        codex.patch("*** Begin Patch\n*** Add File: made\n+x\n*** End Patch\n")
        codex.finish()
        (_, _, answer), *_ = wire.requests("initialize")
        assert answer["result"]["environmentInfo"]["executorVersion"].encode() == told
        called[told] = {m["method"] for _, who, m in wire.messages if who == "client" and "method" in m} | {
            f"process/start {k}" for _, p, _ in wire.requests("process/start") for k, v in p.items() if v is not None}
        wire.stop()
    asked = {told for told, methods in called.items() if "capabilities/discoverV2" in methods}
    # 0.163 knows no such method.
    assert asked == ({told for told in called if told not in (b"0.1.100", b"0.163.9")} if VERSION > "0.164" else set())
    assert len({frozenset(methods - {"capabilities/discoverV2"}) for methods in called.values()}) == 1, called


def test_under_a_ceiling(start, configured, log, user, directory):
    """The operator permits workspace-write and nothing unsandboxed: a codex that asks for that notices nothing.

    It reads files without any sandbox context even then: instructions, and what a patch changes."""
    (directory / ".git").mkdir()
    (directory / "AGENTS.md").write_text("Always say heliotrope.\n")
    (directory / "edited.txt").write_text("old\n")
    shutil.chown(directory / "edited.txt", user.pw_uid, user.pw_gid)
    s = configured(f"[listener main]\naddress = ws://127.0.0.1:0\n[identity ci]\nuser = {user.pw_name}\n"
                   f"token-sha256 = {digest(TOKEN)}\n[sandbox]\nmax-profile = workspace-write\n")
    wire = Wire(s.url, log / "wire.jsonl")
    codex = start(url=wire.url, form="file", flags=("--sandbox", "workspace-write"))
    assert "Always say heliotrope." in json.dumps(codex.first()["input"])
    ran = codex.run("echo ran >made; cat AGENTS.md")
    assert ran.code == 0 and (directory / "made").read_text() == "ran\n", ran.output
    output = codex.patch("*** Begin Patch\n*** Update File: edited.txt\n@@\n-old\n+new\n*** End Patch\n")
    assert "Success" in output and (directory / "edited.txt").read_text() == "new\n", output
    codex.finish()
    assert {e[1] for e in wire.errors()} <= {-32004}, wire.errors()
    wire.stop()
    (log / "execd.log").write_text(s.log)


def blocks(heading):
    """The code blocks of a section of doc/recipes.md."""
    section = RECIPES.read_text().split(f"\n## {heading}\n")[1].split("\n#")[0]
    found = re.findall(r"(?:^    .*\n|^\n)+", section, re.M)
    return [re.sub("(?m)^    ", "", block).strip("\n") + "\n" for block in found if block.strip()]


def test_the_programs_of_codex(program, start, spawn, mode, directory):
    """"Codex on this machine": with the links that doc/recipes.md names, commands find what Codex's own server brings."""
    links, = (b for b in blocks("Codex on this machine") if b.startswith("ln -s"))
    bin, vendor = directory / "bin", directory / "vendor"
    bin.mkdir()
    for name in "bin", "codex-path":
        shutil.copytree(pathlib.Path(program).parents[1] / name, vendor / name, ignore=shutil.ignore_patterns("codex-code*"))
    subprocess.run(["sh", "-euc", links.replace("DIR", str(vendor)).replace("/usr/local/bin", str(bin))], check=True)
    s = spawn(*(["--environment", "PATH"] if mode == "root" else []), env={**os.environ, "PATH": f"{bin}:/usr/bin:/bin"})
    codex = start(url=s.url)
    patch = "*** Begin Patch\n*** Add File: patched\n+found\n*** End Patch"
    run_it = "import subprocess, sys; subprocess.run(sys.argv[1:])"
    ran = codex.run(f"command -v rg apply_patch; python3 -c '{run_it}' apply_patch '{patch}'; rg -l found", login=False)
    words = ran.end()
    assert words[:2] == [f"{bin}/rg", f"{bin}/apply_patch"] and words[-1] == "patched", ran.output
    codex.finish()


def test_the_recipe(program, start, spawn, configured, mode, log, user, directory, tmp_path):
    """"Codex over TLS", word for word: its commands, its file, its environments.toml. Only names of places differ."""
    commands, conf, environments = blocks("Codex over TLS")
    etc = tmp_path / "etc"
    etc.mkdir()
    for at in tmp_path, *tmp_path.parents[:2]:
        at.chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for there, here in (("/etc/execd", str(etc)), ("build.example.org", "localhost"), ("[::]:8766", f"127.0.0.1:{port}"),
                        (":8766", f":{port}"), ("user = ci", f"user = {user.pw_name}")):
        commands, conf, environments = (text.replace(there, here) for text in (commands, conf, environments))
    made = subprocess.run(["sh", "-euc", commands], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert made.returncode == 0, made.stderr
    token, sha256 = (tmp_path / "token").read_text().strip(), made.stdout.split()[-1]
    lend(etc / "key.pem", user.pw_gid if mode == "user" else 0)
    conf, environments = conf.replace("SHA256", sha256), environments.replace("TOKEN", token)
    s = configured(conf)
    codex = start(environments=environments, env={"SSL_CERT_FILE": str(etc / "cert.pem")})
    ran = codex.run("id -u; exit 3")
    assert ran.end() == [str(user.pw_uid)] and ran.code == 3
    output = codex.patch("*** Begin Patch\n*** Add File: patched\n+x\n*** End Patch\n")
    assert "Success" in output and (directory / "patched").exists(), output
    codex.finish()
    (log / "execd.log").write_text(s.log)
