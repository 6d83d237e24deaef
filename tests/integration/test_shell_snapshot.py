# SPDX-License-Identifier: ISC
"""process/start with shellSnapshot: the first command of a scope takes what the login shell sets up, the others start
without the login (doc/protocol.md section 13.8)."""
import os
import pathlib
import shutil

import pytest
from conftest import is_alive, poll
from execd_client import start_params
from test_ceiling import policy, work  # noqa: F401
from netproxy_program import origin  # noqa: F401
from test_files import uri
from test_network_lists import decisions, own
from test_reload_ceiling import changed  # noqa: F401

BASH, ZSH = "/bin/bash", shutil.which("zsh")
POLICY = {"inherit": "all", "ignoreDefaultExcludes": False, "exclude": [], "set": {}, "includeOnly": []}
OPEN = "allow-unsandboxed = yes\nmax-profile = full\n"
# As long as a capture may take.
CAPTURE_SECONDS = 10


class Home:
    """A home directory with a profile that notes each login."""

    def __init__(self, path, user):
        self.path, self.logins_file = path, path / "logins"
        path.mkdir(exist_ok=True)
        path.chmod(0o777)
        self.profile("")

    def profile(self, text, name=".bash_profile"):
        (self.path / name).write_text(f"echo >>{self.logins_file}\n{text}\n")

    def rc(self, text, name=".bashrc"):
        (self.path / name).write_text(text + "\n")

    def logins(self):
        return len(self.logins_file.read_text()) if self.logins_file.exists() else 0


@pytest.fixture
def home(directory, user):
    return Home(directory / "home", user)


def snapshot(scope="scope", name="bash", path=BASH):
    return {"scopeId": scope, "shell": {"name": name, "path": path}}


def params(home, id, text, *more, env=None, shell=("bash", BASH), scope="scope", **extra):
    return start_params(id, [shell[1], "-lc", text, *more],
                        **{"env": {"PATH": "/usr/bin:/bin", "HOME": str(home.path), **(env or {})},
                           "cwd": uri(home.path), "shellSnapshot": snapshot(scope, *shell), **extra})


@pytest.fixture
def run(client, home):
    """Runs a command with the scope's snapshot: run(text, ...) -> Finished."""
    numbers = iter(range(1000))

    def start(text, *more, client=client, **how):
        id = f"c{next(numbers)}"
        client.call("process/start", params(home, id, text, *more, **how))
        return client.finished(id)
    return start


def test_it_is_announced(client):
    assert client.call("environment/info")["capabilities"]["shellSnapshotV2"] is True


RC = r"""
greet() { echo "hello $1"; }
inner() { echo inner; }; export -f inner
shopt -s extglob expand_aliases
digits() { case $1 in +([0-9])) echo yes;; *) echo no;; esac; }
alias say='echo said'
set -o noglob
export LINES_OF=$'one\ntwo' OF_RC=rc
not_exported=x
echo of rc; echo of rc >&2
trap 'echo trapped' EXIT DEBUG
printf() { echo mine; }; builtin_echo() { :; }; cd() { echo mine; }; unset() { echo mine; }; exec() { echo mine; }
"""


def test_what_is_restored(run, home):
    home.profile("export OF_PROFILE=profile\necho of profile")
    home.rc(RC)
    text = ('greet you; bash -c inner; digits 12; say this; echo /tm*; echo "$LINES_OF"; echo $OF_RC $OF_PROFILE '
            '[$not_exported]\necho $- $0 "$@"; ls /proc/$$/fd; pwd')
    for _ in range(3):
        ran = run(text, "name", "an arg", "b")
        assert ran.stdout.splitlines() == [
            "hello you", "inner", "yes", "said this", "/tm*", "one", "two", "rc profile []",
            "fhBc name an arg b", "0", "1", "2", str(home.path)], ran.stdout
        assert (ran.stderr, ran.code) == ("", 0)
    assert home.logins() == 1


@pytest.mark.skipif(ZSH is None, reason="zsh IS NOT INSTALLED: its state is not tested")
def test_zsh(run, home):
    home.profile("export OF_PROFILE=profile\necho of profile", ".zprofile")
    home.rc("greet() { echo \"hello $1\"; }\nalias say='echo said'; alias -g THAT='and that'\nsetopt extendedglob\n"
            "unsetopt nomatch\nexport LINES_OF=$'one\\ntwo'\nprintf() { echo mine }\necho of rc", ".zshrc")
    text = ("greet you; say THAT; echo /tm#p; echo /nowhere*; echo $LINES_OF $OF_PROFILE\necho 'it'\\''s' $0 \"$@\"; "
            "[ -e /proc/$$/fd/3 ] || echo closed")
    for _ in range(2):
        ran = run(text, "name", "an arg", shell=("zsh", ZSH))
        lines = ran.stdout.splitlines()
        assert lines[:7] == ["hello you", "said and that", "/tmp", "/nowhere*", "one", "two profile", "it's name an arg"], lines
        assert lines[7:] == ["closed"] and (ran.stderr, ran.code) == ("", 0), ran.stderr
    assert home.logins() == 1


def test_a_sh_that_cannot_tell_its_functions_logs_in(run, home):
    """Debian's. What ~/.profile defines must be there, so nothing is taken."""
    home.profile("greet() { echo hello; }", ".profile")
    functions = run("typeset -f >/dev/null 2>&1 && echo tells", shell=("sh", "/bin/sh")).stdout
    logins = home.logins()
    assert run("greet", shell=("sh", "/bin/sh")).stdout == "hello\n"
    assert home.logins() == (logins if functions else logins + 1)


def test_variables(run, home):
    """The order is: the policy's, those of the login, the policy's set, the request's. What the first command was given
    and the login left alone is not the next one's."""
    home.profile("export A=login B=login C=login API_TOKEN=t SEEN=$GIVEN http_proxy=http://corp/ TERM=mine\nunset UNSET")
    given = {"A": "request", "GIVEN": "1", "UNSET": "here", "ONLY": "first"}
    show = "echo $A $B $C [$API_TOKEN] $SEEN [$ONLY] $UNSET $http_proxy"
    first = run(show, env=given, envPolicy={**POLICY, "set": {"B": "set"}})
    assert first.stdout == "request set login [] 1 [first] here http://corp/\n"
    second = run(show, envPolicy={**POLICY, "set": {"B": "set"}})
    assert second.stdout == "login set login [] 1 [] http://corp/\n" and home.logins() == 1
    assert run("echo $SHLVL").stdout == run("echo $SHLVL", shellSnapshot=None).stdout
    only = run("echo $A$B$C$HOME", envPolicy={**POLICY, "includeOnly": ["C", "PATH"]})
    assert only.stdout == f"login{home.path}\n"
    assert run("echo $API_TOKEN", envPolicy={**POLICY, "ignoreDefaultExcludes": True}).stdout == "t\n"
    assert run("echo $API_TOKEN $A", env={"A": "request"}).stdout == "t request\n"


def test_what_it_depends_on(run, home):
    assert [home.logins() for _ in "12" if run("true")] == [1, 1]
    for number, how in enumerate(({"scope": "other"}, {"envPolicy": POLICY}, {"cwd": "file:///"},
                                  {"envPolicy": {**POLICY, "set": {"A": "1"}}}), 2):
        assert [home.logins() for _ in "12" if run("true", **how)] == [number, number], how
    for how in {"env": {"A": "b"}}, {"tty": True}, {"pipeStdin": False}, {"arg0": "other"}, {"metadata": {"a": 1}}:
        run("true", **how)
        assert home.logins() == 5, how


def test_sixteen_are_kept(run, home):
    for scope in range(17):
        run("true", scope=f"s{scope}")
    assert home.logins() == 17
    run("true", scope="s16")
    assert home.logins() == 17
    run("true", scope="s0")
    assert home.logins() == 18


def test_a_changed_profile_counts_for_the_next_scope(run, home):
    home.rc("export OF_RC=before")
    assert run("echo $OF_RC").stdout == "before\n"
    home.rc("export OF_RC=after")
    assert run("echo $OF_RC").stdout == "before\n"
    assert run("echo $OF_RC", scope="next").stdout == "after\n"


@pytest.mark.parametrize("how, message", [
    ({"shellSnapshot": snapshot("")}, "shell snapshot scope must be non-empty and at most 256 bytes"),
    ({"shellSnapshot": snapshot("ä" * 129)}, "shell snapshot scope must be non-empty and at most 256 bytes"),
    ({"shellSnapshot": snapshot(name="fish")}, "shell snapshots are unsupported for shell `fish`"),
    ({"shellSnapshot": {"scopeId": "x"}}, "missing field `shell`"),
    ({"shellSnapshot": {"scopeId": "x", "shell": {"name": "bash"}}}, "missing field `path`"),
    ({"shellSnapshot": {"scopeId": 1, "shell": {}}}, "invalid type: number, expected a string")])
def test_what_is_refused(client, home, how, message):
    assert client.error("process/start", {**params(home, "p", "true"), **how}) == (-32602, message)


@pytest.mark.parametrize("argv", [["-c", "echo $OF_RC"], ["-l", "-c", "echo $OF_RC"], ["--", "-lc"]])
def test_other_arguments_have_no_snapshot(client, home, argv):
    """Also with a shell that has none."""
    home.rc("export OF_RC=rc")
    m = client.start("p", [BASH, *argv], shellSnapshot=snapshot(name="fish"))
    assert "result" in m and "rc" not in client.finished("p").stdout


def test_a_shell_that_is_not_there(client, home):
    m = client.request("process/start", params(home, "p", "true", shell=("bash", "/nonexistent/bash")))
    assert m["error"]["data"] == {"kind": "spawnNotFound"} and m["error"]["code"] == -32603


def test_only_its_own_start_waits(client, home, run):
    """The login waits at a gate: the rest of the connection does not, and the command can be ended."""
    os.mkfifo(home.path / "gate")
    (home.path / "gate").chmod(0o666)
    home.profile("read x <~/gate; export OF_PROFILE=$x")
    held = client.post("process/start", params(home, "held", "echo $OF_PROFILE"))
    behind = client.post("process/closeStdin", {"processId": "held"})
    gate = os.open(home.path / "gate", os.O_RDWR)
    assert client.run_sh("other", "echo served").stdout == "served\n"
    assert client.call("fs/getMetadata", {"path": uri(home.path), "sandbox": None})["isDirectory"]
    ids = [p["processId"] for p in client.call("process/list")["processes"]]
    assert "held" not in ids and "other" in ids
    assert not [m for m in client.messages if m.get("id") in (held, behind)]
    os.write(gate, b"opened\n")
    assert "result" in client.answer(held) and "result" in client.answer(behind)
    assert client.finished("held").stdout == "opened\n"
    listed = {p["processId"]: p for p in client.call("process/list")["processes"]}
    assert listed["held"]["argv"] == [BASH, "-lc", "echo $OF_PROFILE"]
    os.close(gate)


def test_twenty_at_once(client, home):
    home.rc("export OF_RC=rc")
    for i in range(20):
        client.post("process/start", params(home, f"p{i}", "echo $OF_RC"))
    assert {client.finished(f"p{i}").stdout for i in range(20)} == {"rc\n"}
    assert home.logins() == 1


# The first login does what is wrong, the next ones do not.
ONCE = "[ -e ~/once ] || { touch ~/once; %s; }\nexport OF_PROFILE=profile"


@pytest.mark.parametrize("wrong", [
    "exit 0", "exit 7", "exec true", "kill -9 $$", "exec >/dev/null", "head -c 1000000000 /dev/zero",
    "export LONG=$(head -c 120000 /dev/zero | tr '\\0' x) && for i in 1 2 3 4 5; do export LONG$i=$LONG; done",
    "eval \"f() { : $(head -c 6000000 /dev/zero | tr '\\0' x); }\""])
def test_a_profile_that_spoils_its_capture(run, home, wrong):
    """Its command starts with the login, and nothing of it is lost."""
    home.profile(ONCE % wrong)
    ran = run("echo $OF_PROFILE")
    assert (ran.stdout, ran.stderr, ran.code) == ("profile\n", "", 0)
    assert home.logins() == 2
    # Within a second of it none is tried again.
    assert run("echo $OF_PROFILE").stdout == "profile\n"


def test_a_profile_that_always_exits(run, home):
    home.profile("exit 7")
    assert [run("true").code for _ in range(3)] == [7] * 3


@pytest.mark.one_side
def test_a_profile_that_hangs(client, home):
    """For as long as a capture may take; then it is killed with what it started."""
    home.profile(ONCE % f"echo $$ >~/pid; sleep 1000 & echo $! >~/child; wait")
    client.post("process/start", params(home, "p", "echo $OF_PROFILE"))
    assert client.finished("p", timeout=CAPTURE_SECONDS + 30).stdout == "profile\n"
    # The numbers are those of the session, which may have a pid namespace of its own.
    for name in "pid", "child":
        pid = (home.path / name).read_text().strip()
        assert client.run_sh(name, f"while kill -0 {pid} 2>/dev/null; do :; done; echo gone").stdout == "gone\n"


@pytest.mark.parametrize("tty", [False, True])
def test_a_profile_that_asks_for_a_password(client, home, tty):
    """It meets the end of its input, and the command's terminal and input are not its own."""
    home.profile("read -s -p Password: a; read b </dev/tty; export ANSWERS=[$a$b]")
    input = {"tty": True} if tty else {"pipeStdin": True}
    client.call("process/start", params(home, "p", "echo $ANSWERS; read x; echo got $x", **input))
    client.write("p", "secret\n")
    if not tty:
        client.call("process/closeStdin", {"processId": "p"})
    ran = client.finished("p")
    assert "[]" in ran.stdout + ran.pty and "got secret" in ran.stdout + ran.pty and "Password" not in ran.pty + ran.stdout


def test_a_profile_that_leaves_something_running(run, home):
    """Nobody waits for what holds the output of the capture."""
    home.profile("sleep 1000 & export OF_PROFILE=profile")
    assert run("echo $OF_PROFILE").stdout == "profile\n" and home.logins() == 1


def test_a_profile_that_forges_a_state(run, home):
    home.profile("printf '\\0# Snapshot file\\0echo forged\\0A=b\\0'; export OF_PROFILE=profile")
    assert run("echo $OF_PROFILE $A").stdout == "profile\n" and home.logins() == 1


def test_a_text_that_has_no_room_for_a_state(run, home):
    """128 KiB are what execve(2) takes: then the command logs in."""
    home.rc("export OF_RC=rc")
    run("true")
    text = "echo $OF_PROFILE; : " + "x" * ((128 << 10) - 1 - 20)
    home.profile("export OF_PROFILE=profile")
    assert len(text) == (128 << 10) - 1
    assert run(text).stdout == "profile\n"


def test_a_session_that_ends_meanwhile(server, home):
    """The capture ends with it; the command never runs."""
    c = server.ready()
    runner = server.runner(c)
    home.profile("echo in >~/begun; exec sleep 1000")
    c.post("process/start", params(home, "p", "echo ran >ran"))
    poll(lambda: (home.path / "begun").exists(), what="a capture")
    c.call("session/end")
    poll(lambda: not is_alive(runner), what="the session's end")
    assert not (home.path / "ran").exists()


def test_a_client_that_leaves_meanwhile(server, home):
    """Its start is not carried out; the state is there for the client that resumes."""
    c = server.ready()
    os.mkfifo(home.path / "gate")
    (home.path / "gate").chmod(0o666)
    home.profile("echo in >~/begun; read x <~/gate; export OF_PROFILE=$x")
    c.post("process/start", params(home, "p", "echo ran >ran"))
    poll(lambda: (home.path / "begun").exists(), what="a capture")
    c.drop()
    again = server.connect().ready(resumeSessionId=c.session_id)
    (home.path / "gate").write_text("opened\n")
    again.call("process/start", params(home, "q", "echo $OF_PROFILE"))
    assert again.finished("q").stdout == "opened\n"
    assert home.logins() == 1 and not (home.path / "ran").exists()


def test_in_its_sandbox(client, home, work, sandboxes):
    """A capture may what its command may, and sees what that sees."""
    secret = work.parent / "secret"
    secret.write_text("secret")
    secret.chmod(0o644)
    home.profile(f"export READ=$(cat {secret} 2>/dev/null); touch /var/tmp/execd-capture ~/by-{os.getpid()} 2>/dev/null\n"
                 f"export OF_PROFILE=profile")
    held = policy(work, ("roots", "write"))
    held["permissions"]["file_system"]["entries"].append(
        {"path": {"type": "path", "path": uri(secret)}, "access": "deny"})
    for i, (how, read) in enumerate(((held, ""), (held, ""), (None, "secret"))):
        client.call("process/start", params(home, f"p{i}", "echo $OF_PROFILE $READ; [ -e /proc/$$/fd/3 ] || echo closed",
                                            sandbox=how, cwd=uri(work)))
        ran = client.finished(f"p{i}")
        assert (ran.stdout, ran.stderr) == (f"profile {read}".strip() + "\nclosed\n", "")
        assert (home.path / f"by-{os.getpid()}").exists() == (how is None)
    pathlib.Path("/var/tmp/execd-capture").unlink()


def test_a_lower_ceiling_needs_a_new_one(changed, work, home):
    """What a state had read before it was denied is not in a command that may not read it."""
    secret = work / "secret"
    secret.write_text("secret")
    secret.chmod(0o644)
    home.profile(f"export READ=$(cat {secret} 2>/dev/null)")
    held = {"sandbox": policy(work, ("roots", "write")), "cwd": uri(work)}
    c = changed.begin()
    c.call("process/start", params(home, "a", "echo [$READ]", **held))
    assert c.finished("a").stdout == "[secret]\n"
    c = changed.reload(OPEN + f"deny-read = {secret}\n")
    c.call("process/start", params(home, "b", "echo [$READ]", **held))
    assert c.finished("b").stdout == "[]\n"


def test_through_its_list_of_hosts(client, home, origin):  # noqa: F811
    """A capture has the network of its command, and a proxy of its own. The client hears of neither."""
    o = origin()
    home.profile(f"export GOT=$(curl -s --noproxy x http://127.0.0.1:{o.port}/; "
                 "curl -s --noproxy x -o /dev/null -w %{http_code} http://127.0.0.2/)\n"
                 "export CAPTURED=$http_proxy")
    # Another list is no other key.
    for i, how in enumerate((own(f"127.0.0.1:{o.port}"), own(f"127.0.0.1:{o.port}"), own("elsewhere.example"))):
        client.call("process/start", params(home, f"p{i}", "echo $GOT $CAPTURED $http_proxy $HTTPS_PROXY; set -- http://127.0.0.1/;"
                                            "curl -s --noproxy x -o /dev/null -w '%{http_code}' $1", **how))
        got, captured, proxy, https, code = client.finished(f"p{i}").stdout.split()
        assert (got, code) == ("hi403", "403") and captured.startswith("http://127.0.0.1:") and proxy == https
        assert [d["host"] for d in decisions(client, f"p{i}")] == ["127.0.0.1"]
    assert len(o.seen) == 1 and home.logins() == 1
    client.call("process/start", params(home, "none", "echo [$http_proxy] $GOT"))
    assert client.finished("none").stdout == "[] hi403\n"
