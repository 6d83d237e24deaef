# SPDX-License-Identifier: ISC
"""What people type who know ssh, docker, cp and kill: it works, or the message says what is meant."""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess

import pytest
from conftest import EXECD, ROOT, as_user, pids_with, poll
from execctl import EXECCTL, Execctl, Proxy, make_authority, server_context
from test_execctl_kept import rows
from test_execctl_tty import start_shell, terminal, tmux  # noqa: F401


@pytest.fixture
def ctl(server, directory):
    return Execctl(directory, server.url)


@pytest.mark.parametrize("args, words", [
    (["runn", "ls"], "there is no command `runn'; is `run' meant?"),
    (["forward", "1:2"], "there is no command `forward'; is `run -L' meant?"),
    (["exec", "-it", "ls"], "there is no command `exec'; is `run' meant?"),
    (["scp", "a", ":b"], "there is no command `scp'; is `cp' meant?"),
    (["xyzzy"], "there is no command `xyzzy'; one of the server: execctl run xyzzy\n"),
    (["delete", ":x"], "is `rm' meant?"),
    (["vi", ":x"], "is `edit' meant?"),
    (["rm", ":"], "rm: a path is empty; nothing was done"),
    (["rm", "-r", ":/"], "`/' is not removed"),
    (["rm", "-rf", "~"], "`~' is not removed"),
    (["rm", "-r", ":x/.."], "`x/..' is not removed"),
    (["rm", ":/tmp"], "/tmp: it is a directory; -r removes directories"),
    (["rm", ":/nonexistent"], "/nonexistent: "),
    (["mv", ":a", "b"], "all paths are the server's"),
    (["mv", ":/nonexistent", ":/dev/null", ":/tmp/none"], "mv: /tmp/none is not a directory, and there are 2 sources"),
    (["mkdir", ":/tmp"], "/tmp: File exists"),
    (["edit", ":/tmp"], "/tmp: it is not a file"),
    (["edit", ":a", ":b"], "edit takes no `:b'"),
    (["version"], "is `--version' meant?"),
    (["run", "-w", "/", "ls"], "Is --cwd meant?"),
    (["run", "--publish", "80:80", "ls"], "Is --forward meant?"),
    (["ps", "-w", "/"], "invalid option -- 'w'\nTry"),
    (["run", "cd", "/"], "cd: not found in the PATH of the session; a line for a shell is run by: sh -c 'LINE'"),
    (["run", "A=1", "env"], "A=1: not found in the PATH of the session; -E NAME=VALUE sets a variable of the command"),
    (["cp", ":/tmp/nosuch-*", "."], "patterns of the server's names are not expanded"),
    (["run", "--cdw", "/", "ls"], "Is --cwd meant?"),
    (["run", "--xyzzy", "ls"], "unrecognized option '--xyzzy'\nTry"),
    (["run", "-e", "A=1", "env"], "there is no environment `A=1'; -E sets a variable of the command"),
    (["run", "echo a | cat"], "echo a | cat: not found in the PATH of the session; a line for a shell is run by: sh -c 'LINE'"),
    (["run", "ls /"], "ls /: not found; a line for a shell is run by: sh -c 'LINE'"),
    (["run", "nosuch", "a|b"], "nosuch: not found in the PATH of the session\n"),
    (["shell", "ls"], "shell takes no `ls'; a command is run by: execctl run -t COMMAND\nusage: execctl [options] shell [options]\n"),
    (["env"], "is `environments' meant?"),
    (["tunnel", "80"], "is `run -L' meant?"),
    (["environments", "rm", "x"], "is `remove' meant?"),
    (["-u", "http://h:1", "ls"], "it does not begin with ws://, which stands here for http://"),
    (["-u", "h:1", "ls"], "as in ws://HOST:PORT"),
    (["-u", "/run/x", "ls"], "a socket's begins with unix:"),
    (["run", "-C", "/", "/etc"], "not started: /etc in /: Permission denied"),
    (["ps", "x"], "ps takes no `x'\nusage: "),
    (["kill", "-99", "x"], "--signal: there is no signal `99'"),
    (["kill", "-FOO", "x"], "--signal: there is no signal `FOO'"),
])
def test_what_was_meant(ctl, args, words):
    r = ctl(*args)
    assert r.code != 0 and words in r.err, r


@pytest.mark.parametrize("args, out", [
    (["run", "--", "echo", "hi"], b"hi\n"),
    (["run", "-i", "--", "echo", "-n", "hi"], b"hi"),
    (["run", "-E", "A=1", "sh", "-c", "echo $A"], b"1\n"),
    (["run", "-T", "1m30s", "echo", "hi"], b"hi\n"),
])
def test_what_works(ctl, args, out):
    assert ctl.ok(*args) == out


def test_help(ctl):
    assert ctl.ok("help") == ctl.ok("--help")
    assert b"usage: execctl [options] ls" in ctl.ok("ls", "--help")
    assert ctl.ok("help", "ls") == ctl.ok("ls", "--help") and ctl.ok("-V") == ctl.ok("--version")
    r = ctl("help", "xyzzy")
    assert r.code == 255 and "there is no command `xyzzy'" in r.err, r


def test_ls_h(ctl, directory):
    """It is that of ls(1), and not --help."""
    (directory / "big").write_bytes(bytes(1234567))
    (directory / "small").write_bytes(b"12")
    out = ctl.ok("ls", "-lh", directory).decode()
    assert re.search(r"^- +1\.2 MiB [-\d]+ [\d:]+ big$", out, re.M) and re.search(r"^- +2 B [-\d]+ [\d:]+ small$", out, re.M), out


@pytest.mark.parametrize("name, status", [("-9", 137), ("-KILL", 137), ("-INT", 130), ("-15", 143), ("-SIGTERM", 143)])
def test_kill(ctl, name, status):
    session = ctl.ok("run", "-d", "--keep", "none", "sleep", "1000").decode().strip()
    ctl.ok("kill", name, session)
    assert ctl("wait", session).code == status


def test_kill_of_what_has_ended(ctl):
    session = ctl.ok("run", "-d", "true").decode().strip()
    ctl.ok("wait", session)
    r = ctl("kill", session)
    assert r.code == 125 and "the command has ended already" in r.err, r


@pytest.mark.parametrize("letters", ["-a", "-R", "-rp"])
def test_cp(ctl, directory, letters):
    (directory / "from").mkdir()
    (directory / "from/f").write_text("x")
    os.utime(directory / "from/f", (1, 1))
    ctl.ok("cp", letters, directory / "from", f":{directory}/to")
    assert (directory / "to/f").read_text() == "x"
    assert ((directory / "to/f").stat().st_mtime == 1) == (letters != "-R")


LOCALE = {"LANG": "de_DE.UTF-8", "LC_TIME": "C"}


@pytest.mark.parametrize("options, seen", [
    ([], "de_DE.UTF-8 C"), (["-E", "LANG=fr_FR"], "fr_FR C"), (["-E", "LC_TIME"], "de_DE.UTF-8 C"),
    (["--inherit", "none"], "")])
def test_the_language_travels(ctl, options, seen):
    out = ctl.ok("run", *options, "/bin/sh", "-c", "echo $LANG $LC_TIME", env=LOCALE)
    assert out.decode() == seen + "\n"


def test_the_list_of_escapes(ctl, terminal):  # noqa: F811
    """It is the terminal's only: nothing of it reaches the command."""
    t = terminal(ctl, "run", "-t", "sh", "-c", "stty -echo; echo ready; read x; printf '<%s>\\n' \"$x\"")
    t.wait(b"ready")
    os.write(t.master, b"~?")
    t.wait(b"this list")
    os.write(t.master, b"x\r")
    t.wait(b"<x>")
    assert t.ended() == 0


def test_suspended(tmux):  # noqa: F811
    start_shell(tmux)
    tmux.type("~", "C-z")
    tmux.wait("Stopped")
    tmux.line("echo here $((6 * 7))")
    tmux.wait("^here 42$")
    tmux.line("fg")
    tmux.wait("execctl run")
    tmux.line("echo there $((6 * 7))")
    tmux.wait("^there 42$")


def test_the_screen_is_left(ctl, terminal):  # noqa: F811
    """A program that draws a screen goes on, and the terminal is as it was before."""
    t = terminal(ctl, "run", "-t", "sh", "-c", "printf '\\033[?1049h\\033[?25lready'; read x")
    t.wait(b"ready")
    os.write(t.master, b"~.")
    t.wait(b"\x1b[?1049l\x1b[?25h")
    assert t.ended() == 254


def test_cp_says_what_it_copies(ctl, directory):
    """Each file, also of those that go as one stream, and each link."""
    (directory / "from").mkdir()
    for i in range(40):
        (directory / f"from/f{i}").write_text("x")
    (directory / "from/l").symlink_to("f1")
    (directory / "from/d").symlink_to("nowhere")
    r = ctl("cp", "-rv", directory / "from", f":{directory}/to")
    assert r.code == 0 and all(re.search(f"{directory}/from/f{i} -> :{directory}/to/f{i}\\n", r.err) for i in range(40)), r
    assert f":{directory}/to/d (a link)" in r.err or f"from/d -> :{directory}/to/d" in r.err, r
    r = ctl("cp", "-v", f":{directory}/to/f1", directory / "back")
    assert f"execctl: :{directory}/to/f1 -> {directory}/back\n" in r.err, r


def test_the_errors_of_cp_as_json(ctl, directory):
    r = ctl("--json", "cp", "/nonexistent/a", directory, f":{directory}")
    *errors, sum_ = [json.loads(line) for line in r.out.splitlines()]
    assert r.code == 125 and [e["exitCode"] for e in errors] == [125, 125]
    assert [e["error"] for e in errors] == ["/nonexistent/a: No such file or directory",
                                            f"{directory}: skipped: it is a directory; -r copies directories"]
    assert sum_ == {"files": 0, "bytes": 0, "failed": 1, "skipped": 1}



def test_cp_leaves_a_line(ctl, directory, terminal):  # noqa: F811
    """First the progress, with what is left; in the end one line. A name does not control the terminal."""
    (directory / "a\x07b").write_bytes(b"x" * (3 << 20))
    t = terminal(ctl, "cp", directory / "a\x07b", f":{directory}/to")
    t.wait(b"\n")
    assert t.ended() == 0
    first, *_, last = t.seen.replace(b"\r\n", b"\n").decode().split("\r\x1b[K")[1:]
    name, rate = r".*/a\\x07b  ", r"[\d.]+ [KMG]?i?B/s  "
    assert re.fullmatch(name + r"[\d.]+ MiB of 3\.0 MiB \(\d+%\)  " + rate + r"\d:\d\d left", first), t.seen
    assert re.fullmatch(name + r"3\.0 MiB  " + rate + r"0:\d\d\n", last), t.seen


def test_cp_fits_the_screen(ctl, directory, terminal):  # noqa: F811
    """A line that is longer could not be taken back."""
    (directory / ("n" * 200)).write_bytes(b"x" * (3 << 20))
    t = terminal(ctl, "cp", directory / ("n" * 200), f":{directory}/to")
    t.wait(b"\n")
    assert t.ended() == 0
    assert all(len(line.rstrip()) < 80 for line in t.seen.decode().split("\r\x1b[K")), t.seen


@pytest.mark.parametrize("words", ["echo 'Welcome to it'; cat", "printf 'Password: '; exec sleep 1000", "printf 'Password: '"])
def test_what_a_program_says_before_the_protocol(directory, words):
    r = Execctl(directory, None)("--connect-timeout", "500ms", "--url", f"stdio:{words}", "info")
    assert r.code == 125 and re.search(r"the program said: (Welcome to it|Password: )$", r.err.rstrip("\n")), r


def test_stdio_says_little(directory, user, mode):
    """The command's output, and at most two lines of execd's own."""
    argv = [str(EXECD), "--listen", "stdio"]
    argv = argv + ["--user", user.pw_name] if mode == "root" and ROOT else as_user(user, argv)
    r = Execctl(directory, "stdio:exec " + " ".join(argv))("run", "-C", "/", "echo", "hi")
    assert r.out == b"hi\n" and len(r.err.splitlines()) <= 2, r


def test_the_certificate_of_another_host(server, directory, tmp_path):
    d = make_authority(tmp_path, "other.example")
    proxy = Proxy(server.url, tls=server_context(d))
    r = Execctl(directory, proxy.url)("--ca", d / "ca.pem", "run", "true")
    proxy.close()
    assert r.code == 255 and r.err.endswith("; it is not for 127.0.0.1\n"), r


def test_the_path_is_that_of_a_login(spawn, directory, mode):
    """An ordinary user's execd was started by this user, and passes its own on."""
    ctl = Execctl(directory, spawn(env={"PATH": "/usr/sbin:/usr/bin:/root/bin"}).url)
    named = re.findall(r"(?m)^ENV_PATH\s+PATH=(\S+)", pathlib.Path("/etc/login.defs").read_text())
    if pathlib.Path("/etc/environment").exists() and "PATH=" in pathlib.Path("/etc/environment").read_text():
        pytest.skip("/etc/environment says another one")
    seen = ctl.ok("run", "/bin/sh", "-c", "echo $PATH").decode().strip()
    assert seen == (named[0] if mode == "root" else "/usr/sbin:/usr/bin:/root/bin")


def test_a_path_with_a_relative_entry(ctl, directory):
    """As a shell has it: from the command's directory."""
    (directory / "bin").mkdir()
    (directory / "bin/mine").write_text("#!/bin/sh\necho mine\n")
    (directory / "bin/mine").chmod(0o755)
    assert ctl.ok("run", "-C", directory, "-E", "PATH=bin:/usr/bin:/bin", "mine") == b"mine\n"
    assert ctl("run", "-C", "/", "-E", "PATH=bin:/usr/bin:/bin", "mine").code == 127


def test_a_script_without_an_interpreter(ctl, directory):
    """A shell would run it; execve(2) does not."""
    (directory / "script").write_text("echo hi\n")
    (directory / "script").chmod(0o755)
    r = ctl("run", directory / "script")
    assert r.code == 126 and f"started: {directory}/script: Exec format error" in r.err and "a line like #!/bin/sh\n" in r.err, r


def test_a_script_from_windows_in_a_sandbox(ctl, directory, sandboxes):
    (directory / "script").write_bytes(b"#!/bin/sh\r\necho hi\r\n")
    (directory / "script").chmod(0o755)
    r = ctl("run", "-s", "workspace-write", "-C", directory, "./script")
    assert r.code == 127 and "the script's first line ends with CR LF" in r.err, r


def test_a_language_that_the_server_lacks(ctl):
    r = ctl("run", "/bin/sh", "-c", "echo $LANG", env={"LANG": "xx_YY.UTF-8"})
    assert (r.code, r.out, r.err) == (0, b"xx_YY.UTF-8\n", "")


def test_the_smallest_terminal(ctl, terminal):  # noqa: F811
    t = terminal(ctl, "run", "-t", "sh", "-c", "read x; stty size", size=(1, 1))
    os.write(t.master, b"\r")
    t.wait(b"1 1\r\n")
    assert t.ended() == 0


def test_a_shell_that_exits_at_once(ctl, terminal):  # noqa: F811
    """The terminal is as it was, and the status is the shell's."""
    t = terminal(ctl, "run", "-t", "false")
    assert t.ended() == 1


def test_keys_of_the_users_terminal(ctl, terminal):  # noqa: F811
    t = terminal(ctl, "run", "-t", "sh", "-c", "stty -a; echo ready; exec sleep 1000", modes=["iutf8", "erase", "^H", "intr", "^X"])
    t.wait(b"ready\r\n")
    assert b"erase = ^H;" in t.seen and b"intr = ^X;" in t.seen and re.search(rb"(?<!-)\biutf8", t.seen)
    os.write(t.master, b"\x18")
    assert t.ended() == 130


def first_example(page):
    """The lines of the first one, as somebody would paste them."""
    text = (pathlib.Path(__file__).parents[2] / "man" / page).read_text()
    text = re.search(r"^\.Sh EXAMPLES\n.*?^\.Bd [^\n]*\n(.*?)^\.Ed$", text, re.S | re.M)[1]
    return re.sub(r"^\$ ", "", text.replace("\\e\n", "\\\n"), flags=re.M)


def quiet_port():
    """One that nobody has, and that the kernel gives to nobody who asks for any."""
    low = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        try:
            with socket.create_server(("127.0.0.1", random.randrange(low - 10000, low))) as s:
                return str(s.getsockname()[1])
        except OSError:
            pass


@pytest.mark.parametrize("page", ["execctl.1", "execd.8"])
def test_the_first_example(directory, user, page):
    """It has a listener with a token, and works as it stands, but for the port."""
    lines = first_example(page).replace("8766", quiet_port()).split("execctl run")[0]
    assert "--ws-auth capability-token" in lines
    script = lines.replace("execd --listen", f"{EXECD} --listen").replace("execctl ", f"{EXECCTL} ")
    home = directory / "home"
    home.mkdir(0o755)
    os.chown(home, user.pw_uid, user.pw_gid)
    end = "trap 'kill $!; wait $! || :' EXIT\n"
    r = subprocess.run(as_user(user, ["env", f"HOME={home}", "sh", "-ec", f"{end}{script}{EXECCTL} run echo hi"]), capture_output=True, text=True,
                       timeout=60, env={"PATH": "/usr/bin:/bin"})
    assert r.returncode == 0 and r.stdout.endswith("hi\n"), r


def test_ps_says_how_it_ended(ctl):
    """As docker ps -a does: also what was killed, and whose execctl was, before anybody waited for it."""
    p = ctl.popen("run", "sh", "-c", "echo ready; exec sleep 1000")
    assert p.stdout.readline() == b"ready\n"
    p.kill()
    p.wait()
    session = poll(lambda: next((r for r in rows(ctl).values() if r["state"] == "left"), None), what="the session")["session"]
    ctl.ok("kill", "-9", session)
    row = poll(lambda: next((r for r in rows(ctl).values() if r["state"] == "ended"), None), what="the end")
    assert row["session"] == session and row["exitCode"] == 137
    assert re.search(rf"^{session[:12]}  \S+ +ended: 137 ", ctl.ok("ps").decode(), re.M)


@pytest.mark.parametrize("options, typed, said", [
    (["-tt"], b"one\ntwo", "24 80\r\none\r\ntwo"),
    (["-t", "-t", "-n"], b"", "24 80\r\n"),
])
def test_a_terminal_without_one_here(ctl, options, typed, said):
    """ssh -tt and docker run -t: for a script that wants what a program says to a terminal."""
    script = "stty -echo; stty size; " + ("cat" if typed else "true")
    r = ctl("run", *options, "sh", "-c", script, input=typed)
    assert r.code == 0 and said.encode() in r.out, r
    r = ctl("run", "-t", "true", input=b"")
    assert r.code == 255 and "-tt gives the command one all the same" in r.err, r


FILL = """
import mmap, os
f = os.open("/dev/shm/x", os.O_RDWR | os.O_CREAT)
os.ftruncate(f, 4 << 20)
mmap.mmap(f, 4 << 20).write(bytes(4 << 20))
"""


def test_shared_memory_is_full(configured, user, directory, sandboxes):
    """What is mapped ends with a signal and without a word of its own."""
    s = configured(f"[listener main]\naddress = ws://127.0.0.1:0\nallow-unauthenticated = a\n[identity a]\nuser = {user.pw_name}\n"
                   "[sandbox]\nmax-shm = 1M\n")
    r = Execctl(directory, s.url)("run", "-s", "workspace-write", "-C", directory, "/usr/bin/python3", "-c", FILL)
    assert r.code == 135 and "/dev/shm of its sandbox, which has 1024 KiB, may be full\n" in r.err, r
    r = Execctl(directory, s.url)("run", "-s", "workspace-write", "-C", directory, "dd", "if=/dev/zero", "of=/dev/shm/y", "bs=1M", "count=4")
    assert r.code == 1 and "No space left on device" in r.err, r


@pytest.mark.parametrize("argv, words", [
    (["sudo", "-n", "true"], "no new privileges"),
    (["git", "-C", "{theirs}", "status"], "dubious ownership"),
])
def test_programs_say_their_own_error(ctl, directory, sandboxes, argv, words):
    """In a sandbox, too, where root is another user's number."""
    if shutil.which(argv[0]) is None or not ROOT and "{theirs}" in argv:
        pytest.skip(f"{argv[0]} IS NOT TESTED: it is not there, or needs root's directory")
    if ROOT:
        subprocess.run(["git", "init", "-q", directory / "theirs"], check=True)
    r = ctl("run", "-s", "workspace-write", "-C", directory, *(a.format(theirs=directory / "theirs") for a in argv))
    assert r.code != 0 and words in r.err, r


@pytest.mark.parametrize("line, said", [
    ("run echo hi >&-", "standard output: Bad file descriptor; the command is killed\n"),
    ("ls / >&-", "standard output: Bad file descriptor\n"),
    ("ls / >/dev/full", "standard output: No space left on device\n"),
    ("--json info >/dev/full", "standard output: No space left on device\n")])
def test_output_without_a_place(ctl, line, said):
    """Nothing of it is lost in silence."""
    r = subprocess.run(["sh", "-c", f"{EXECCTL} {line}"], env=ctl.env, capture_output=True, text=True)
    assert (r.returncode, r.stderr, r.stdout) == (125, f"execctl: {said}", "")


def test_output_that_is_read_no_further(ctl, directory):
    """As by head(1)."""
    big = directory / "many"
    big.mkdir()
    for i in range(4000):
        (big / f"{i:0200}").touch()
    line = f"{EXECCTL} ls {big} | (read line; echo ${{#line}}); echo ${{PIPESTATUS[0]}}"
    r = subprocess.run(["bash", "-c", line], env=ctl.env, capture_output=True, text=True)
    assert (r.stdout, r.stderr) == ("200\n141\n", "")
    r = subprocess.run(["sh", "-c", f"{EXECCTL} run true >&-; {EXECCTL} run cat <&-"], env=ctl.env, capture_output=True, text=True)
    assert (r.returncode, r.stderr, r.stdout) == (0, "", "")


def test_cp_from_a_pipe(ctl, directory):
    """It is read to its end, as by cp(1), and gets its own name in a directory."""
    content = random.Random(1).randbytes(3000000)
    ctl.ok("run", "mkdir", f"{directory}/there")
    (directory / "t").mkdir()
    ctl.ok("cp", "/dev/stdin", f":{directory}/there", input=content, env={"TMPDIR": str(directory / "t")})
    assert (directory / "there/stdin").read_bytes() == content
    os.mkfifo(directory / "fifo")
    p = ctl.popen("-v", "cp", directory / "fifo", "/dev/null", f":{directory}/there")
    (directory / "fifo").write_bytes(content)
    assert p.communicate() == (b"", b"") or p.returncode == 0
    assert (directory / "there/fifo").read_bytes() == content and (directory / "there/null").read_bytes() == b""
    ctl.ok("cp", "/dev/null", f":{directory}/there/fifo")
    assert (directory / "there/fifo").read_bytes() == b"" and os.listdir(directory / "t") == []
    r = ctl("cp", "/dev/stdin", f":{directory}/there", input=b"x", env={"TMPDIR": "/nosuch"})
    assert r.code == 125 and r.err == "execctl: cp: /dev/stdin: /nosuch: No such file or directory; nothing was copied\n"


def test_environments_are_forgiving(ctl, directory):
    (directory / "tok").write_text("t")
    ctl.ok("--token-file", "tok", "environments", "add", "build-box", "ws://127.0.0.1:1", cwd=directory)
    assert f"token-file = {directory}/tok\n" in (directory / "environments.conf").read_text()
    r = ctl("-e", "biuld-box", "run", "true")
    assert r.code == 255 and "there is no environment `biuld-box'; is `build-box' meant?\n" in r.err
    r = ctl("-e", "other", "run", "true")
    assert r.code == 255 and r.err == "execctl: there is no environment `other'\n"
    r = ctl("run", "true", env={"EXECD_TOKEN": ""})
    assert r.code == 255 and r.err == "execctl: EXECD_TOKEN is set, and empty\n"


def test_rm_mv_and_mkdir(ctl, directory):
    """As rm(1), mv(1) and mkdir(1) do it, on the server."""
    ctl.ok("mkdir", f":{directory}/a", f"{directory}/b")
    ctl.ok("mkdir", "-p", f":{directory}/a/b/c", f":{directory}/a")
    (directory / "a/f").write_text("f")
    (directory / "a/g").write_text("g")
    ctl.ok("mv", f":{directory}/a/f", f":{directory}/a/g")
    assert not (directory / "a/f").exists() and (directory / "a/g").read_text() == "f"
    ctl.ok("mv", f"{directory}/a/g", f"{directory}/a/b/", f"{directory}/b")
    assert (directory / "b/g").read_text() == "f" and (directory / "b/b/c").is_dir()
    (directory / "link").symlink_to("b")
    ctl.ok("rm", f":{directory}/link/")
    assert (directory / "b").is_dir() and not (directory / "link").is_symlink()
    r = ctl("rm", f":{directory}/gone", f":{directory}/b/g")
    assert r.code == 125 and f"{directory}/gone: " in r.err and not (directory / "b/g").exists(), r
    ctl.ok("rm", "-f", f":{directory}/gone")
    ctl.ok("rm", "-r", f":{directory}/b", f":{directory}/a")
    assert not (directory / "a").exists() and not (directory / "b").exists()


EDITS = [("sh -c 'echo more >>\"$1\"' sh", "", "one\nmore\n"),      # in place
         ("sed -i s/one/two/", "", "two\n"),                         # by another file
         ("true", "not changed", "one\n"), ("false", "the editor ended with status 1; nothing was sent", "one\n")]


@pytest.mark.parametrize("editor, words, text", EDITS, ids=["appends", "replaces", "nothing", "fails"])
def test_edit(ctl, directory, editor, words, text):
    """The file keeps its mode, and nothing is left here."""
    (directory / "f.txt").write_text("one\n")
    (directory / "f.txt").chmod(0o666)
    (directory / "tmp").mkdir()
    r = ctl("edit", f":{directory}/f.txt", env={"EDITOR": "false", "VISUAL": editor, "TMPDIR": str(directory / "tmp")})
    assert r.code == (125 if editor == "false" else 0) and words in r.err and (directory / "f.txt").read_text() == text, r
    assert not list((directory / "tmp").iterdir()) and (directory / "f.txt").stat().st_mode & 0o777 == 0o666


def test_edit_of_what_others_edit(ctl, directory):
    """The server's stays, and the copy here, which only its user may read, is named."""
    (directory / "f.txt").write_text("one\n")
    (directory / "f.txt").chmod(0o666)
    (directory / "tmp").mkdir()
    script = f'stat -c "%a %n" "$1" >{directory}/seen; echo mine >>"$1"; echo theirs >>{directory}/f.txt'
    (directory / "editor").write_text("#!/bin/sh\n" + script)
    (directory / "editor").chmod(0o755)
    env = {"EDITOR": str(directory / "editor"), "TMPDIR": str(directory / "tmp")}
    r = ctl("edit", f":{directory}/f.txt", env=env)
    copy, = (directory / "tmp").iterdir()
    assert r.code == 125 and "somebody has changed it on the server meanwhile" in r.err and f"your version is in {copy}\n" in r.err, r
    assert (directory / "f.txt").read_text() == "one\ntheirs\n" and copy.read_text() == "one\nmine\n"
    assert (directory / "seen").read_text() == f"600 {copy}\n" and copy.name.endswith("-f.txt")


def test_edit_makes_a_file(ctl, directory):
    ctl.ok("edit", f":{directory}/new", env={"EDITOR": "sh -c 'echo new >\"$1\"' sh"})
    assert (directory / "new").read_text() == "new\n" and (directory / "new").stat().st_mode & 0o044
    ctl.ok("edit", f":{directory}/none", env={"EDITOR": "true"})
    assert not (directory / "none").exists()


def test_edit_without_a_connection_afterwards(server, directory):
    proxy = Proxy(server.url)
    (directory / "f").write_text("one\n")
    (directory / "f").chmod(0o666)
    os.mkfifo(directory / "go")
    p = Execctl(directory, proxy.url).popen("--connect-timeout", "300ms", "edit", f":{directory}/f",
                                            env={"EDITOR": f"sh -c 'echo mine >>\"$1\"; echo ready; cat {directory}/go' sh"})
    assert p.stdout.readline() == b"ready\n"
    proxy.close()
    (directory / "go").write_text("")
    err = p.communicate(timeout=30)[1].decode()
    copy = re.search(r"your version is in (\S+)\n", err)
    assert p.returncode == 125 and pathlib.Path(copy[1]).read_text() == "one\nmine\n", err
    os.unlink(copy[1])


@pytest.fixture
def many(server, directory):
    """Three names of one server, and one that is away."""
    ctl = Execctl(directory, None)
    for name in ("a", "b", "c"):
        ctl.ok("environments", "add", name, server.url)
    ctl.ok("environments", "add", "away", "ws://127.0.0.1:1")
    return ctl


def test_several_servers(many):
    """Each line has its name, also the last one without an end, on the side where it came from."""
    r = many("run", "-e", "a,b,c", "sh", "-c", "echo one; echo two >&2; read x || printf end")
    assert sorted(r.out.decode().splitlines()) == sorted(f"{n}: {x}" for n in "abc" for x in ("one", "end")), r
    assert r.code == 0 and [f"{n}: two" in r.err.splitlines() for n in "abc"] == [True] * 3, r
    assert r.err.endswith("execctl: 3 of 3 ended with status 0\n"), r
    assert many("-q", "-e", "a", "run", "--parallel", "1", "echo", "hi").out == b"a: hi\n"


def test_some_of_several_fail(many):
    r = many("--connect-timeout", "300ms", "run", "-e", "a,away,b", "--parallel", "2", "sh", "-c", "echo here; exit 3")
    assert r.code == 125 and sorted(r.out.splitlines()) == [b"a: here", b"b: here"], r
    assert re.search("^away: execctl: .*refused", r.err, re.M), r
    assert r.err.endswith("execctl: a: exit status 3\nexecctl: away: exit status 125\nexecctl: b: exit status 3\n"
                          "execctl: 0 of 3 ended with status 0\n"), r
    lines = [json.loads(x) for x in many("--json", "run", "-e", "a,b", "echo", "hi").out.splitlines()]
    for name in "ab":
        assert [x["event"] for x in lines if x["environment"] == name] == ["started", "output", "exited"], lines


@pytest.mark.parametrize("args, words", [
    (["-e", "a,nosuch"], "there is no environment `nosuch'"), (["-e", "a,,b"], "there is no environment `'"),
    (["-e", "a,b", "-t"], "--tty is for one server"), (["-e", "a,b", "--parallel", "0"], "`0' is not a number from 1 to 32"),
    (["-e", "a,b", "--parallel", "8x"], "`8x' is not a number"), (["-u", "ws://h:1", "--parallel", "2"], "--parallel is for the servers of"),
    (["-e", "a,b", "-u", "ws://h:1"], "--parallel is for the servers of")])
def test_several_servers_that_are_none(many, directory, args, words):
    r = many("run", *args, "touch", directory / "ran")
    assert r.code == 255 and words in r.err and not (directory / "ran").exists(), r


@pytest.mark.parametrize("sig, code", [("INT", 130), ("TERM", 143)])
def test_a_signal_ends_all(many, directory, sig, code):
    """Those that run get it, and no other is started."""
    p = many.popen("run", "-e", "a,b,c", "--parallel", "2", "sh", "-c", "echo ready; exec sleep 1000")
    assert sorted(p.stdout.readline() for _ in range(2)) == [b"a: ready\n", b"b: ready\n"]
    p.send_signal(getattr(signal, f"SIG{sig}"))
    err = p.communicate(timeout=30)[1].decode()
    assert p.returncode == code and "execctl: c: not started\nexecctl: 0 of 3 ended with status 0\n" in err, err


def test_who_runs_many_is_killed(many, directory):
    """Nothing goes on that nobody waits for."""
    p = many.popen("run", "-e", "a,b", "sh", "-c", "echo ready; sleep 1000", directory)
    assert sorted(p.stdout.readline() for _ in range(2)) == [b"a: ready\n", b"b: ready\n"]
    assert len(pids_with(str(directory))) >= 5
    p.kill()
    p.wait()
    poll(lambda: not pids_with(str(directory)), what="the end of all")
