# SPDX-License-Identifier: ISC
"""execctl: environments, info, doctor, completions, watch."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile

import pytest
from conftest import digest
from execctl import EXECCTL, Execctl
from test_execctl_tty import Tmux


@pytest.fixture
def ctl(server, directory):
    return Execctl(directory, server.url)


@pytest.fixture
def alone(directory):
    """With no server in its environment."""
    return Execctl(directory, None)


def test_info_and_doctor(ctl, user):
    out = ctl.ok("info").decode()
    assert "version" in out and user.pw_dir in out and "fileWriteStreaming" in out
    info = json.loads(ctl.ok("--json", "info"))
    assert info["platformOs"] == "linux" and info["capabilities"]["fileWriteStreaming"]
    checks = {c["check"]: c for c in map(json.loads, ctl("--json", "doctor").out.splitlines())}
    assert len(checks) == 5
    # Some hosts cannot enforce a sandbox; then that is what it says.
    sandbox = checks.pop("run in a read-only sandbox")
    assert all(c["ok"] for c in checks.values()), checks
    r = ctl("doctor")
    assert (r.code == 0) == sandbox["ok"] == (b"FAIL" not in r.out)
    r = ctl("--connect-timeout", "300ms", "--url", "ws://127.0.0.1:1", "doctor")
    assert r.code == 125 and b"FAIL" in r.out and b"refused" in r.out


def test_environments(server, alone, directory):
    assert "no environments yet" in alone("environments").err
    alone.ok("environments", "add", "--default", "build", server.url)
    alone.ok("environments", "add", "other", "ws://127.0.0.1:1")
    assert alone.ok("environments", "list").decode().split() == ["*", "build", server.url, "other", "ws://127.0.0.1:1"]
    listed = [json.loads(x) for x in alone.ok("--json", "environments").splitlines()]
    assert listed[0] == {"name": "build", "url": server.url, "default": True}
    assert alone.ok("run", "echo", "hi") == b"hi\n"
    assert alone.ok("-e", "build", "run", "echo", "hi") == b"hi\n"
    assert alone("-e", "other", "info").code == 125
    # A variable comes before the default, a name before the variable.
    assert alone("--connect-timeout", "300ms", "info", env={"EXECD_URL": "ws://127.0.0.1:1"}).code == 125
    alone.ok("-e", "build", "info", env={"EXECD_URL": "ws://127.0.0.1:1"})
    (directory / "f").write_text("copied")
    (directory / "f").chmod(0o644)
    alone.ok("cp", f"build:{directory}/f", directory / "g")
    assert (directory / "g").read_text() == "copied"
    r = alone("cp", f"build:{directory}/f", f"other:{directory}/f", directory)
    assert r.code == 255 and "another server" in r.err


@pytest.mark.parametrize("args, text", [
    (["add", "a b", "ws://h:1"], "a name is"),
    (["add", "../x", "ws://h:1"], "a name is"),
    (["add", "x", "http://h"], "does not begin with"),
    (["add", "x", "ws://h:1\nevil = 1"], "end of a line"),
    (["add", "x"], "list, add NAME URL, remove NAME, rename NAME NEW, or test NAME"),
    (["remove", "x"], "there is no environment `x'"),
    (["rename", "x", "y"], "there is no environment `x'"),
    (["rename", "x", "a b"], "a name is"),
    (["test", "x"], "there is no environment `x'"),
])
def test_environments_that_cannot_be_added(alone, args, text):
    r = alone("environments", *args)
    assert r.code == 255 and text in r.err


def test_an_environment_is_added_once(alone):
    alone.ok("environments", "add", "x", "ws://h:1")
    r = alone("environments", "add", "x", "ws://h:2")
    assert r.code == 255 and "already exists" in r.err


CONF = """; mine
default = build ; of all

# the build box
[build] ; big
url = ws://h:1
# slow
  # and far
connect-timeout = 20s

# other
[builder]
url = ws://h:2
"""


def test_an_environment_is_renamed_and_removed(alone, directory):
    """What else is in the file stays, and the file is always whole."""
    conf = directory / "environments.conf"
    conf.write_text(CONF)
    conf.chmod(0o600)
    before = conf.stat().st_ino
    alone.ok("environments", "rename", "build", "b2")
    renamed = CONF.replace("[build]", "[b2]").replace("= build", "= b2")
    assert conf.read_text() == renamed and conf.stat().st_ino != before
    for args, words in (["rename", "b2", "builder"], "already exists"), (["remove", "build"], "there is no environment `build'"):
        r = alone("environments", *args)
        assert r.code == 255 and words in r.err and conf.read_text() == renamed, r
    alone.ok("environments", "remove", "b2")
    assert conf.read_text() == "; mine\n\n# the build box\n# slow\n  # and far\n\n# other\n[builder]\nurl = ws://h:2\n"
    rest = conf.read_text()
    alone.ok("environments", "add", "x", "ws://h:3")
    alone.ok("environments", "remove", "x")
    assert conf.read_text() == rest
    conf.write_text(CONF + "nonsense\n")
    r = alone("environments", "remove", "build")
    assert r.code == 255 and ":14: " in r.err and conf.read_text() == CONF + "nonsense\n", r


def test_an_environment_is_tested(server, alone):
    alone.ok("environments", "add", "here", server.url)
    alone.ok("environments", "add", "away", "ws://127.0.0.1:1")
    out = alone.ok("environments", "test", "here").decode()
    assert out.startswith(f"here: {server.url} answers: ") and out.endswith(" on linux, trusted without a check of who it is\n"), out
    found = json.loads(alone.ok("--json", "environments", "test", "here"))
    assert found["name"] == "here" and found["url"] == server.url and found["version"] and found["trustedBy"] == "nobody"
    r = alone("--connect-timeout", "300ms", "environments", "test", "away")
    assert r.code == 125 and "refused" in r.err, r


@pytest.mark.skipif(os.path.exists("/run/execd/execd.sock"), reason="AN ONLY ENVIRONMENT IS NOT TESTED: this machine has an execd")
def test_the_only_environment_is_the_default(server, alone):
    r = alone("environments", "add", "one", server.url)
    assert "one is the only environment, so it is the default" in r.err
    assert alone.ok("run", "echo", "hi") == b"hi\n"
    r = alone("environments", "add", "two", "ws://127.0.0.1:1")
    assert "there are two environments now, and no default" in r.err
    r = alone("run", "echo", "hi")
    assert r.code == 255 and "no server is named" in r.err, r


@pytest.mark.parametrize("text, says", [
    ("[x]\nurl = ws://h:1\nnonsense = 1\n", ":3: unknown key `nonsense'"),
    ("[x]\n", "no environment `x'"),
    ("[x]\nca = /y\n", "environment `x' has no url"),
    ("[x]\nurl = ws://h:1\nconnect-timeout = soon\n", ":3: connect-timeout: `soon'"),
    ("nonsense\n", ":1:"),
    ("nonsense = 1\n", ":1: unknown key"),
])
def test_a_broken_file_is_told_with_its_line(alone, directory, text, says):
    (directory / "environments.conf").write_text(text)
    (directory / "environments.conf").chmod(0o600)
    r = alone("-e", "x", "info")
    assert r.code == 255 and says in r.err, r


def test_a_file_that_others_can_write_is_refused(alone, directory):
    alone.ok("environments", "add", "x", "ws://127.0.0.1:1")
    (directory / "environments.conf").chmod(0o666)
    r = alone("-e", "x", "info")
    assert r.code == 255 and "others can write" in r.err


def test_the_token_of_an_environment(spawn, alone, directory):
    token, theirs = directory / "token", directory / "theirs"
    for at in token, theirs:
        at.write_text("open-sesame\n")
    token.chmod(0o600)
    s = spawn("--ws-auth", "capability-token", "--ws-token-file", str(theirs))
    alone.ok("--token-file", token, "environments", "add", "x", s.url)
    alone.ok("-e", "x", "run", "true")
    assert "open-sesame" not in (directory / "environments.conf").read_text()
    token.unlink()
    r = alone("-e", "x", "run", "true")
    assert r.code == 255 and "token file" in r.err


def test_the_token_of_a_url(spawn, alone, directory):
    token = directory / "token"
    token.write_text("open-sesame\n")
    token.chmod(0o600)
    s = spawn("--ws-auth", "capability-token", "--ws-token-sha256", digest("open-sesame"))
    assert alone("--url", s.url, "run", "true").code == 255
    alone.ok("--token-file", token, "environments", "add", "x", s.url)
    alone.ok("--url", s.url, "run", "true")
    alone.ok("run", "true", env={"EXECD_URL": s.url})
    alone.ok("run", "true", env={"CODEX_EXEC_SERVER_URL": s.url})
    r = alone("--url", s.url, "run", "true", env={"EXECD_TOKEN": "another"})
    assert r.code == 255 and "does not accept the token" in r.err
    r = alone("--url", s.url + "/", "run", "true")      # no other URL gets it
    assert r.code == 255 and "requires a token" in r.err


def words(table):
    out = subprocess.run([EXECCTL, *table, "--help"], capture_output=True, text=True, check=True).stdout
    return [w.split()[0] for w in out.replace(", ", " ").split("--")[1:] if w and w[0].isalpha()]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_know_every_option(alone, shell, directory):
    text = alone.ok("completion", shell).decode()
    for command in ("run", "cp", "attach", "environments"):
        assert command in text
        for option in words([command]):
            if option.isidentifier() or "-" in option:
                assert option in text, option
    if shutil.which(shell):
        (directory / "c").write_text(text)
        subprocess.run([shell, "-n", directory / "c"], check=True)


def test_bash_completes(alone, directory):
    (directory / "c").write_text(alone.ok("completion", "bash").decode())
    script = """. "$1"; shift; compopt() { :; }; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _execctl
                printf '%s\\n' "${COMPREPLY[@]}" """

    def complete(*given):
        return subprocess.run(["bash", "-c", script, "bash", directory / "c", "execctl", *given],
                              capture_output=True, text=True, check=True, cwd=directory).stdout.split()

    assert complete("att") == ["attach"]
    assert complete("run", "--sand") == ["--sandbox"]
    assert "--tty" not in complete("cp", "--")
    (directory / "some-file").touch()
    assert complete("cp", "some") == ["some-file"]


@pytest.fixture
def remote(server, alone, directory, user):
    """A directory in the home directory there, which no shell takes for one of here. One name in it would change the terminal."""
    there = pathlib.Path(tempfile.mkdtemp(prefix="execd-test-", dir=user.pw_dir))
    there.chmod(0o755)
    for name in ("directory/below", "directory two", "dir\x1b[31m", ".hidden", "alone"):
        (there / name).mkdir(parents=True)
    (there / "directory/file").touch()
    (there / "only file").touch()
    (directory / "here").touch()
    alone.ok("environments", "add", "box", server.url)
    alone.ok("environments", "add", "away", "ws://127.0.0.1:1")
    alone.ok("environments", "add", "program", f"stdio:touch {directory}/started")
    (directory / "bin").mkdir()
    (directory / "bin/execctl").symlink_to(EXECCTL)
    alone.env["PATH"] = f"{directory}/bin:/usr/bin:/bin"
    yield there.name
    shutil.rmtree(there)


@pytest.mark.parametrize("word, found", [
    ("box:THERE/dir", ["box:THERE/directory two/", "box:THERE/directory/"]), ("box:THERE/.", ["box:THERE/.hidden/"]),
    (":THERE/directory/f", [":THERE/directory/file"]), ("THERE/directory/", ["THERE/directory/below/", "THERE/directory/file"]),
    (":/nonexistent/x", []), ("away:THERE/", []), ("nosuch:THERE/", []), ("program:THERE/", [])])
def test_what_a_path_can_become(remote, alone, word, found, directory):
    """A failure is silent, and no program is started."""
    r = alone(*(["-e", "box"] if word[0] in ":T" else []), "completion", "paths", word.replace("THERE", remote))
    assert (r.code, r.err) == (0, "") and sorted(r.out.decode().splitlines()) == [f.replace("THERE", remote) for f in found], r
    assert not (directory / "started").exists()


def test_a_slow_server_is_not_waited_for(alone, directory):
    """Whatever the connect-timeout says."""
    with socket.create_server(("127.0.0.1", 0)) as s:
        (directory / "environments.conf").write_text(
            f"[slow]\nurl = ws://127.0.0.1:{s.getsockname()[1]}\nconnect-timeout = 600s\n")
        r = alone("completion", "paths", "slow:x")
        s.settimeout(1)
        s.accept()[0].close()
    assert (r.code, r.out, r.err) == (0, b"", ""), r


SHELLS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
PREPARE = {
    "bash": "PS1='ready> '; . ./completion",
    "zsh": "PS1='ready> '; fpath=(. $fpath); autoload -Uz compinit; compinit -u -D",
    "fish": "function fish_prompt; echo -n 'ready> '; end; source ./completion",
}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_paths_of_the_server(remote, alone, directory, shell):
    """Typed into the real one: a directory, with more behind it, and then a file whose name wants quotes; a name of here stays
    possible for cp."""
    if not shutil.which(shell) or not shutil.which("tmux"):
        pytest.skip(f"COMPLETION IS NOT TESTED IN {shell.upper()}: it or tmux is not installed")
    script = alone.ok("completion", shell)
    (directory / "completion").write_bytes(script)
    (directory / "_execctl").write_bytes(script)
    tmux = Tmux(directory, {**alone.env, "XDG_DATA_HOME": str(directory), "XDG_CONFIG_HOME": str(directory)})
    try:
        tmux("resize-window", "-t", ":0", "-x", "200", "-y", "24")
        tmux.line(f"cd {directory}; {' '.join(SHELLS[shell])}")
        tmux.wait("[$#>%] *$")
        tmux.line(f"{PREPARE[shell]}; clear")
        tmux.wait("^ready>")

        def completes(typed, becomes):
            tmux("send-keys", "-t", ":0", "-l", typed)
            tmux.type("Tab")
            tmux.wait(re.escape(becomes))
            tmux.type("C-u")

        completes(f"execctl cat box:{remote}/al", f"box:{remote}/alone/")
        completes(f"execctl -e box cat {remote}/directory/f", f"{remote}/directory/file")
        completes(f"execctl cp -e box :{remote}/onl", f":{remote}/only\\ file")
        completes("execctl cp her", "execctl cp here")
        tmux.line("exit")
        tmux.wait("^local>")
    finally:
        tmux.close()


def test_help_names_every_command():
    out = subprocess.run([EXECCTL, "--help"], capture_output=True, text=True, check=True).stdout
    for command in "run shell cp ls cat rm mv mkdir edit ps attach watch logs wait kill info doctor environments completion".split():
        assert f"\n  {command} " in out
        one = subprocess.run([EXECCTL, command, "--help"], capture_output=True, text=True, check=True).stdout
        assert one.startswith(f"usage: execctl [options] {command}")
    assert subprocess.run([EXECCTL, "--version"], capture_output=True).stdout.startswith(b"execctl ")


def test_watch(ctl, directory):
    p = ctl.popen("run", "sh", "-c", f"echo one; until [ -e {directory}/go ]; do sleep 0.1; done; echo two; exit 3")
    assert p.stdout.readline() == b"one\n"
    session = json.loads(ctl.ok("--json", "ps"))["session"]
    if not ctl.can("sessionWatch"):
        r = ctl("watch", session)
        assert r.code == 125 and "sessionWatch" in r.err
        (directory / "go").touch()
        assert p.wait(20) == 3
        return
    w = ctl.popen("watch", session)
    assert w.stdout.readline() == b"one\n"
    assert ctl.ok("logs", session) == b"one\n"
    waiting = ctl.popen("-v", "wait", session)
    assert b"session" in waiting.stderr.readline()  # it is connected
    p.send_signal(signal.SIGSTOP)   # the session ends with it, who comes late asks in vain
    (directory / "go").touch()
    assert (w.stdout.read(), w.wait(20)) == (b"two\n", 3)
    assert waiting.wait(20) == 3
    p.send_signal(signal.SIGCONT)
    assert (p.stdout.read(), p.wait(20)) == (b"two\n", 3)


# Names that the library has, too, but keeps to itself.
ITS_OWN = "\nvoid xmalloc(void);\nvoid log_error(void);\nvoid\nxmalloc(void)\n{\n}\nvoid\nlog_error(void)\n{\n}\n"


LIBRARY = pathlib.Path(__file__).parents[2] / "client/lib"
C = ["cc", "-std=c11", "-D_POSIX_C_SOURCE=200809L"]


def build_program(source, program, compiler, library="libexecd-client.a"):
    """With the header and one of the two libraries alone."""
    if not shutil.which(compiler[0]):
        pytest.skip("no compiler")
    from conftest import BUILD, SANITIZED
    if SANITIZED:
        pytest.skip("the library wants the sanitizer")
    subprocess.run([*compiler, "-Wall", "-Wpedantic", "-Werror", f"-I{LIBRARY}", source, "-x", "none",
                    str(BUILD / "client/lib" / library), f"-Wl,-rpath,{BUILD / 'client/lib'}",
                    *(["-lssl", "-lcrypto", "-lyajl", "-linih"] if library.endswith(".a") else []), "-o", program], check=True)
    return program


@pytest.mark.parametrize("library", ["libexecd-client.a", "libexecd-client.so.1"])
@pytest.mark.parametrize("compiler", [C, ["c++", "-std=c++20", "-x", "c++"]], ids=["c", "c++"])
def test_a_library_program(server, directory, compiler, library):
    """The header alone, with the program in it, and either library, are enough for somebody else."""
    with open(LIBRARY / "execd-client.h") as f:
        lines = re.findall(r"^ \*\t(.*)$", f.read().split("#ifndef")[0], re.M)
    (directory / "example.c").write_text("\n".join(lines) + ITS_OWN)
    program = build_program(directory / "example.c", directory / f"example-{library}", compiler, library)
    for url in (server.url, f"ask:echo '{{\"url\":\"{server.url}\"}}'; cat"):
        r = subprocess.run([program, url, "/bin/sh", "-c", "echo from the library; exit 5"], capture_output=True, timeout=30)
        assert (r.stdout, r.returncode) == (b"from the library\n", 5), r.stderr


def test_the_examples_in_c(server, sandboxes, directory):
    examples = pathlib.Path(__file__).parents[2] / "doc/examples/c"
    assert {p.name for p in examples.iterdir()} == {"run.c", "stream.c", "resume.c", "agent_loop.c"}

    def example(name, *args, code=0):
        program = build_program(examples / f"{name}.c", directory / name, C)
        r = subprocess.run([program, *map(str, args)], capture_output=True, text=True, timeout=60,
                           env={**os.environ, "EXECD_URL": server.url})
        assert r.returncode == code, r
        return r.stdout

    assert example("run", directory, "pwd; touch f && echo made; touch /etc/x 2>/dev/null; exit 3", code=3) == f"{directory}\nmade\n"
    said = example("stream", code=3)
    assert "stdout working\n" in said and "stderr a warning\n" in said and "the answer was yes\nit ended with 3\n" in said
    assert example("resume") == "line 1\nline 2\nline 3\nit ended with 4\n"
    said = example("agent_loop", directory)
    assert "python3 sum.py: 0\n6\n" in said and "touch /etc/passwd: 1, denied\n" in said
    assert "sleep 1000: 137, timed out\n" in said and "cat missing: 1\n" in said


def test_the_pages_of_the_library():
    """They name functions of the header, each is found under its name, and is shown as it is declared."""
    tree = pathlib.Path(__file__).parents[2]
    header = re.sub(r"/\*.*?\*/|\s+", " ", (tree / "client/lib/execd-client.h").read_text(), flags=re.S)
    installed = (tree / "man/meson.build").read_text()
    names = []
    for page in sorted((tree / "man").glob("*.3")):
        text = page.read_text()
        here = re.findall(r"^\.Nm (\w+)", text, re.M)
        assert here[0] == page.stem and f"{page.name}'" in installed
        assert all(f"'{name.removeprefix('execd_')}'" in installed for name in here[1:]), page
        names += here
        for line in re.findall(r"^\.Fn (execd_\w+ \".*\")$", text.split(".Sh DESCRIPTION")[0], re.M):
            name, *args = re.split(r' ?"', line.rstrip('"'))
            declared = re.search(rf"\b{name}\( ?([^)]*)\);", header)[1].replace("*", "* ").split()
            assert ", ".join(args[::2]).replace("*", "* ").split() == declared, line
    assert len(names) == 10 and all(re.search(rf"\b{name}\(", header) for name in names)
