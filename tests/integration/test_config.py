# SPDX-License-Identifier: ISC
"""execd.conf(5): what is accepted, what is refused and how, what a reload does."""
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest
from certificates import lend
from conftest import BUILD, EXECD, ROOT, as_user, digest, poll
from execd_client import Closed, dial

EXAMPLE = pathlib.Path(__file__).parents[2] / "man/execd.conf.example"


def check(mode, user, path, *flags):
    argv = [str(EXECD), "-c", str(path), *flags]
    r = subprocess.run(argv if mode == "root" else as_user(user, argv), capture_output=True, text=True, timeout=20,
                       stdin=subprocess.DEVNULL)
    # Without what it says of each identity in any case.
    return r.returncode, r.stdout, re.sub(r"execd\S*: \[identity \S+\]: commands run as .*\n", "", r.stderr)


CONF = pathlib.Path(__file__).parents[2] / "daemon/broker"


def basic(user, listener="", identity="", rest=""):
    return (f"[listener main]\naddress = ws://127.0.0.1:0\n{listener}"
            f"[identity a]\nuser = {user.pw_name}\nsandbox-allow-unsandboxed = yes\ntoken-sha256 = {digest('tok-a')}\n{identity}{rest}")


GOOD = "[listener l]\naddress = ws://127.0.0.1:0\n"


@pytest.mark.parametrize("text, line, words", [
    ("[listner l]\n", 1, "unknown section `listner`"),
    ("[listener]\n", 1, "[listener NAME] needs one name"),
    ("[listener a b]\n", 1, "[listener NAME] needs one name"),
    ("[listener é]\n", 1, "[listener NAME] needs one name"),
    ("[limits x]\n", 1, "[limits] has no name"),
    ("[limits]\n[limits]\n", 2, "[limits] already exists"),
    ("\n" + GOOD + GOOD, 4, "[listener l] already exists"),
    ("[limits\n", 1, "without its `]`"),
    ("[listener l]\naddress = unix:/tmp/x\nmode = 0660\ngroup = no-such-group\n", 4, "group: no-such-group: no such group"),
    ("[identity a]\nuser = root\nmax-address-space = 1K\n", 3, "max-address-space: `1K` is not a number of bytes of at least 1M"),
    ("[limits] x\n", 1, "text after `]`"),
    ("  [limits]\n", 1, "a section begins at the start of its line"),
    ("[listener " + "x" * 60 + "]\n", 1, "more than 48 characters"),
    ("address = ws://127.0.0.1:0\n", 1, "is in no section"),
    ("[limits]\nmax-conections = 5\n", 2, "unknown key `max-conections` in [limits]"),
    ("[limits]\nmax-connections\n", 2, "neither `key = value` nor `[section]`"),
    ("[limits]\nmax-connections =\n", 2, "max-connections: is empty"),
    ("[limits]\nmax-connections = 5\nmax-connections = 6\n", 3, "max-connections: is set already"),
    ("[limits]\nmax-connections = 5\n\t6\n", 3, "max-connections: takes one line"),
    ("[limits]\n\t6\n", 2, "neither `key = value`"),
    ("[limits]\nmax-connections = 0\n", 2, "`0` is not a number from 1"),
    ("[limits]\nmax-connections = -1\n", 2, "`-1` is not a number from 1"),
    ("[limits]\nmax-connections = 4294967296\n", 2, "is not a number from 1"),
    ("[limits]\nmax-connections = 5x\n", 2, "is not a number from 1"),
    ("[limits]\ndetached-ttl = 80\n", 2, "`80` is not a duration like"),
    ("[limits]\ndetached-ttl = 80 s\n", 2, "is not a duration like"),
    ("[limits]\ndetached-ttl = 99999999h\n", 2, "is not a duration like"),
    ("[limits]\nmax-message-bytes = 1Z\n", 2, "is not a number of bytes like"),
    ("[limits]\nmax-message-bytes = 0\n", 2, "is not a number of bytes like"),
    ("[limits]\nmax-message-bytes = 99999999999G\n", 2, "is not a number of bytes like"),
    ("[limits]\nretention = 257M\n", 2, "retention: `257M` is more than 256M"),
    ("[limits]\nmax-message-bytes = 2G\n", 2, "max-message-bytes: `2G` is more than 1G"),
    ("[limits]\nping-interval = 0s\n", 2, "ping-interval: `0s` is less than 1ms"),
    ("[limits]\nexempt = 10.0.0.0/33\n", 2, "is not a prefix of 0 to 32 bits"),
    ("[limits]\nexempt = fe80::/129\n", 2, "is not a prefix of 0 to 128 bits"),
    ("[limits]\nexempt = localhost\n", 2, "`localhost` is not an address"),
    ("[limits]\nexempt = " + "10.0.0.1 " * 17 + "\n", 2, "more than 16 address ranges"),
    ("[listener l]\n", 1, "a listener needs an address"),
    ("[listener l]\naddress = http://127.0.0.1:1\n", 2, "address: `http://127.0.0.1:1` is neither ws://IP:PORT, wss://"),
    ("[listener l]\naddress = ws://localhost:1\n", 2, "`ws://localhost:1` is neither ws://IP:PORT, wss://IP:PORT, "
     "unix:/PATH nor systemd:NAME; names of hosts are not looked up"),
    ("[listener l]\naddress = stdio\n", 2, "is neither ws://IP:PORT"),
    ("[listener l]\naddress = unix:relative\n", 2, "is neither ws://IP:PORT"),
    ("[listener l]\naddress = unix:///run/x\n", 2, "is neither ws://IP:PORT"),
    ("[listener l]\naddress = unix:/" + "x" * 108 + "\n", 2, "is neither ws://IP:PORT"),
    ("[listener l]\naddress = wss://127.0.0.1:0\n", 2, "wss:// needs a certificate"),
    (GOOD + "certificate = /x\n", 3, "certificate and certificate-key come together"),
    (GOOD + "certificate = /x\ncertificate-key = /y\n", 3, "a certificate is for wss://"),
    (GOOD + "certificate = x\n", 3, "`x` is not an absolute path"),
    (GOOD + "client-ca = /x\n", 3, "client-ca needs a certificate"),
    (GOOD + "client-crl = /x\n", 3, "client-crl needs a client-ca"),
    (GOOD + "client-crl = x\n", 3, "`x` is not an absolute path"),
    ("[identity a]\nsandbox-hide = x\n", 2, "hide: `x` is neither absolute nor below ~"),
    ("[identity a]\ncertificate-sha256 = " + "0" * 63 + "\n", 2, "is not a SHA-256 digest"),
    ("[identity a]\nsandbox-max-profile = some\n", 2, "`some`"),
    ("[sandbox]\nunix-sockets = some\n", 2, "`some`"),
    ("[limits]\npenalty-max = 10s\n", 2, "penalty-max is not more than penalty-threshold"),
    ("[sandbox]\nnested-git-depth = 1000\n", 2, "`1000`"),
    ("[sandbox]\nnested-git = full\n", 2, "`full`"),
    ("[sandbox]\nprotected-names = a/b\n", 2, "`a/b` is a path, not a name"),
    ("[audit]\nrequired = yes\n", 1, "one of file, syslog and journal is needed"),
    (GOOD + "client-certificate = required\n", 3, "client-certificate needs a client-ca"),
    (GOOD + "client-certificate = maybe\n", 3, "`maybe` is neither none, optional nor required"),
    ("[listener l]\naddress = ws://0.0.0.0:0\noperate = yes\n", 3,
     "without operators, operate is for unix:/PATH and loopback"),
    (GOOD + "operators = a\n", 3, "operators needs operate = yes"),
    (GOOD + "operate = perhaps\n", 3, "is neither yes nor no"),
    (GOOD + "mode = 0660\n", 3, "mode and group are for unix:/PATH"),
    (GOOD + "mode = 888\n", 3, "`888` is not an octal mode"),
    ("[listener l]\naddress = wss://127.0.0.1:0\ncertificate = /none/such\ncertificate-key = /none\n", 1,
     "/none/such: No such file or directory"),
    ("[identity a]\nuser = no-such-user\n", 2, "no-such-user"),
    ("[identity a]\ntoken-sha256 = abc\n", 2, "`abc` is not a SHA-256 digest"),
    ("[identity a]\nhome = home\n", 2, "`home` is not an absolute path"),
    ("[identity a]\nenvironment = X\n", 2, "environment: `X` is not NAME=VALUE"),
    ("[identity a]\nmax-cpu-time = 1500ms\n", 2, "only whole seconds"),
    ("[identity a]\npeer-user = no-such-user\n", 2, "no-such-user: no such user"),
    ("[signed-tokens]\nissuer = x\n", 1, "secret-file or jwks-file is missing"),
    ("[signed-tokens]\nsecret-file = /none/such\n", 2, "secret-file: /none/such: No such file"),
    ("[limits]\n# " + "x" * 300 + "\n", 2, "a line has more than 198 characters"),
    ("[limits]\nmax-connections = 1\0 2\n", 2, "a NUL byte"),
    ("[limits]\nexempt = none\v\n", 2, "a control character"),
    ("[limits]\nexempt = ::1\r ::2\n", 2, "a control character"),
    ("[limits]\nmax-connections = 1 ; few\n", 2, "a comment needs a line of its own"),
    ("[limits]\nexempt =;none\n", 2, "a comment needs a line of its own"),
    ("[limits]\nexempt = none\n\t::1 ;x\n", 3, "a comment needs a line of its own"),
    ("[identity a]\ntoken-subject = a [b\n", 2, "only the first value begins with `[`"),
])
def test_refused(mode, user, directory, text, line, words):
    if text.startswith("[identity") and not re.search(r"(?m)^user =", text):
        text = text.replace("[identity a]\n", f"[identity a]\nuser = {user.pw_name}\n")
        line += 1 if line > 1 else 0
    path = directory / "execd.conf"
    path.write_text(text)
    code, out, err = check(mode, user, path)
    assert (code, out) == (3, ""), err
    assert re.search(rf"{re.escape(str(path))}:{line}: .*{re.escape(words)}", err), err


@pytest.mark.parametrize("text, words", [
    ("", "there is no [listener NAME]"),
    (GOOD, "there is no [identity NAME]"),
    (GOOD + "identities = b\n[identity a]\n", "there is no [identity b]"),
    (GOOD + "operate = yes\noperators = b\n[identity a]\n", "[listener l] operators: there is no [identity b]"),
    (GOOD + "allow-unauthenticated = b\n[identity a]\n", "there is no [identity b]"),
    (GOOD + "[identity a]\ncertificate-subject = CN=x\n[identity b]\ncertificate-subject = CN=y\n\tCN=x\n",
     ":8: [identity b] certificate-subject: [identity a] has the same one"),
    (GOOD + "[identity a]\ntoken-subject = x\n", "token-subject: needs [signed-tokens]"),
    ("[listener l]\naddress = ws://127.0.0.1:81\n[listener m]\naddress = ws://127.0.0.1:81\n[identity a]\n",
     ":4: [listener m] address: [listener l] has the same one"),
    (GOOD + f"[identity a]\ntoken-sha256 = {digest('x')}\n[identity b]\ntoken-sha256 = {digest('x').upper()}\n",
     ":8: [identity b] token-sha256: [identity a] has the same one"),
])
def test_refused_as_a_whole(mode, user, directory, text, words):
    path = directory / "execd.conf"
    path.write_text(re.sub(r"(\[identity .\]\n)", rf"\1user = {user.pw_name}\n", text))
    code, out, err = check(mode, user, path)
    assert (code, out) == (3, "") and words in err, (code, err)


MANY = """\ufeff# Notepad begins a file with a mark
[listner x]
address = ws://127.0.0.1:1
[listener l]
address = ws://127.0.0.1:0
identities = b c
operators = a
[limits]
max-conections = 5
detached-ttl = 80
  90
  91
allow-unauthenticated = a
retention = 1MiB # more
garbage
[identity a]
user = USER
memory-max = 1K
sandbox-max-profile = workspace-rite
[limits]
closed-ttl = x
[sandbox]
sandbox = x
"""
TOLD = {2: "unknown section `listner`: did you mean `listener`?", 7: "operators needs operate = yes",
        9: "unknown key `max-conections` in [limits]: did you mean `max-connections`?",
        10: "detached-ttl: `80` is not a duration like",
        13: "unknown key `allow-unauthenticated` in [limits]: it is a key of [listener NAME]",
        14: "is not a number of bytes like 4096, 64K, 16M or 1G; a comment needs a line of its own",
        15: "neither `key = value` nor `[section]`", 18: "memory-max: `1K` is not a number of bytes of at least 1M",
        19: "`workspace-rite` is not one of", 20: "[limits] already exists", 23: "unknown key `sandbox` in [sandbox]"}


def lines_told(path, err):
    return {int(n): words for n, words in re.findall(rf"{re.escape(str(path))}:(\d+): (.*)", err)}


def test_every_error_is_told_at_its_line(mode, user, directory):
    path = directory / "execd.conf"
    path.write_text(MANY.replace("USER", user.pw_name))
    code, out, err = check(mode, user, path, "-t")
    told = lines_told(path, err)
    assert (code, out) == (3, "") and told.keys() == TOLD.keys(), err
    assert all(TOLD[n] in told[n] for n in TOLD), err


def test_every_error_of_several_sections_is_told(mode, user, directory):
    path = directory / "execd.conf"
    path.write_text(GOOD + f"identities = b c\nallow-unauthenticated = d\n[identity a]\nuser = {user.pw_name}\ntoken-subject = x\n")
    code, out, err = check(mode, user, path, "-t")
    assert code == 3 and [re.findall(rf"{path}:(\d):.* (?:no|needs) (.*)", err)] == [
        [("3", "[identity b]"), ("3", "[identity c]"), ("4", "[identity d]"), ("7", "[signed-tokens]")]], err


def test_a_name_that_was_probably_meant(mode, user, directory):
    path = directory / "execd.conf"
    path.write_text(GOOD + f"identities = carl alcie\n[identity alice]\nuser = {user.pw_name}\ntoken-sha256 = {digest('x')}\n")
    err = check(mode, user, path, "-t")[2]
    assert f"{path}:3: [listener l] identities: there is no [identity carl]\n" in err, err
    assert f"{path}:3: [listener l] identities: there is no [identity alcie]: did you mean alice\n" in err, err


@pytest.fixture
def parts(directory):
    (directory / "conf.d").mkdir()
    directory.chmod(0o755)
    return directory / "conf.d"


def identity(user, name):
    return f"[identity {name}]\nuser = {user.pw_name}\ntoken-sha256 = {digest(name)}\n"


def test_files_of_conf_d(mode, user, directory, parts):
    """In the order of their bytes, after the file itself. What is no file of an operator's is not read."""
    path = directory / "execd.conf"
    path.write_text(GOOD)
    for name in ("b", "B", "a10", "a9"):
        (parts / f"{name}.conf").write_text(identity(user, name))
    for name in (".c.conf", "c.conf~", "c.conf.dpkg-new", "c", "conf"):
        (parts / name).write_text("garbage\n")
    code, out, err = check(mode, user, path, "-T")
    assert (code, err) == (0, "") and re.findall(r"(?m)^\[(\w+ \w+)\]", out) == [
        "listener l", "identity B", "identity a10", "identity a9", "identity b"], (out, err)


def test_errors_in_conf_d_name_the_file(mode, user, directory, parts):
    path = directory / "execd.conf"
    path.write_text(GOOD + "colour = red\n[limits]\n")
    one, two = parts / "1.conf", parts / "2.conf"
    one.write_text("# a file\n" + identity(user, "a") + "colour = blue\n")
    two.write_text("[listener m]\naddress = ws://127.0.0.1:0\nidentities = none\n[limits]\n")
    code, _, err = check(mode, user, path, "-t")
    assert code == 3 and [lines_told(p, err).keys() for p in (path, one, two)] == [{3}, {5}, {4}], err
    path.write_text(GOOD)
    one.write_text(identity(user, "a"))
    code, _, err = check(mode, user, path, "-t")
    assert code == 3 and lines_told(two, err) == {3: "[listener m] identities: there is no [identity none]"}, err
    two.write_text(identity(user, "b").splitlines()[0] + f"\nuser = {user.pw_name}\n")
    code, _, err = check(mode, user, path, "-t")
    assert code == 0 and "has no credential" in lines_told(two, err)[1], err


def test_files_of_conf_d_are_trusted_as_the_file_is(mode, user, directory, parts):
    path, part = directory / "execd.conf", parts / "a.conf"
    path.write_text(GOOD + identity(user, "a"))
    part.write_text(identity(user, "b"))
    assert check(mode, user, path, "-t") == (0, "", "")
    part.chmod(0o666)
    code, _, err = check(mode, user, path, "-t")
    assert code == 3 and f"{part}: can be written by everybody" in err, err
    part.unlink()
    part.mkdir()
    code, _, err = check(mode, user, path, "-t")
    assert code == 3 and f"{part}: is not a plain file" in err, err
    part.rmdir()
    parts.rmdir()
    parts.write_text("")
    code, _, err = check(mode, user, path, "-t")
    assert code == 3 and f"{parts}: the files in it are not read: Not a directory" in err, err


def test_a_reload_reads_conf_d(configured, user, directory, parts):
    s = configured(basic(user))
    (parts / "more.conf").write_text(identity(user, "b"))
    s.reload(s.path.read_text(), "reload: [identity b]: new")
    (parts / "more.conf").write_text(identity(user, "b") + "max-sessions = 3\n")
    s.reload(s.path.read_text(), "reload: [identity b] max-sessions: 3, was none")
    s.reload(s.path.read_text(), "reload: nothing changed in the files that there are")


def test_a_file_that_is_none_has_a_bounded_number_of_errors(mode, user, directory):
    path = directory / "execd.conf"
    path.write_text("x\n" * 1000)
    code, _, err = check(mode, user, path, "-t")
    assert code == 3 and err.count("neither `key = value`") == 50 and "more than 50 errors" in err


def test_what_has_no_effect_is_told(mode, user, directory):
    """The file is accepted: a credential may come, and execd may start before a directory is made."""
    path = directory / "execd.conf"
    name = user.pw_name
    path.write_text(f"[listener l]\naddress = ws://127.0.0.1:0\n[identity a]\nuser = {name}\n[identity b]\nuser = {name}\n"
                    f"certificate-subject = CN=x\npeer-user = {name}\n[listener m]\naddress = unix:{directory}/none/x\n")
    code, out, err = check(mode, user, path, "-t")
    told = lines_told(path, err)
    assert code == 0 and told.keys() == {3, 7, 10}, err
    assert "has no credential" in told[3] and "no listener has a client-ca" in told[7] and "/none is missing" in told[10], err
    path.write_text(path.read_text().split("[listener m]")[0])
    path.write_text(path.read_text() + f"[control]\nctl-socket = {directory}/none/ctl\n")
    told = lines_told(path, check(mode, user, path, "-t")[2])
    assert told[10].startswith("[control] ctl-socket: the directory ") and "/none is missing" in told[10], told
    assert "no listener is a unix socket" in lines_told(path, check(mode, user, path, "-t")[2])[8]


def test_who_could_have_written_it(mode, user, directory):
    path = directory / "execd.conf"
    path.write_text(basic(user))
    assert check(mode, user, path, "-t") == (0, "", "")
    path.chmod(0o666)
    assert "can be written by everybody" in check(mode, user, path, "-t")[2]
    path.chmod(0o644)
    if ROOT:
        os.chown(path, 12345, 0)
        code, _, err = check(mode, user, path, "-t")
        assert code == 3 and "belongs to another user" in err
    assert "is not a plain file" in check(mode, user, directory, "-t")[2]
    assert "No such file" in check(mode, user, directory / "none", "-t")[2]


@pytest.mark.skipif(not ROOT, reason="ROOT'S IDENTITIES ARE NOT TESTED: this needs root")
@pytest.mark.parametrize("identity, words", [
    ("", "no session may run as root"),
    ("user = root\n", "this is root"),
    ("user = USER\ngroup = no-such-group\n", "no-such-group: no such group"),
    ("user = USER\ngroups = no-such-group\n", "no-such-group: no such group"),
])
def test_identities_of_root(user, directory, identity, words):
    path = directory / "execd.conf"
    path.write_text(GOOD + "[identity a]\n" + identity.replace("USER", user.pw_name))
    code, _, err = check("root", user, path)
    assert code == 3 and words in err, err


def test_another_user_needs_root(user, directory):
    path = directory / "execd.conf"
    path.write_text(GOOD + "[identity a]\nuser = root\n")
    code, _, err = check("user", user, path)
    assert code == 3 and "another user needs root" in err


def test_limits_of_groups(mode, user, directory):
    """[limits] is for everybody, an identity comes before it, and what nobody said is the host's."""
    path = directory / "execd.conf"
    path.write_text(basic(user, identity="memory-max = 2G\ncpu-weight = 50\ncommand-memory-max = none\n"
                                         "command-cpu-quota = 150%\n", rest=(
        "[limits]\ncommand-memory-max = 1G\ncommand-tasks-max = 600\ncommand-io-weight = 10000\n")))
    code, out, err = check(mode, user, path, "-T")
    assert code == 0 and err == "", err
    own, = re.findall(r"(?ms)^\[identity a\]\n(.*?)^\[", out)
    for line in ("memory-max = 2G", "tasks-max = none", "cpu-quota = none", "cpu-weight = 50", "io-weight = none",
                 "command-memory-max = none", "command-tasks-max = 600", "command-cpu-quota = 150%",
                 "command-cpu-weight = none", "command-io-weight = 10000"):
        assert re.search(rf"(?m)^{re.escape(line)}$", own), (line, own)
    everybody = out.split("[limits]\n")[1]
    kib = int(re.search(r"MemTotal: +(\d+)", pathlib.Path("/proc/meminfo").read_text())[1])
    left = min(max(kib / 10, 512 << 10), kib / 2)
    assert f"\nmemory-max = {int(kib - left) >> 10}M\n" in everybody or (int(kib - left) >> 10) % 1024 == 0, everybody
    pid_max = int(pathlib.Path("/proc/sys/kernel/pid_max").read_text())
    assert f"\ntasks-max = {pid_max * 9 // 10}\n" in everybody, everybody


@pytest.mark.parametrize("line, words", [
    ("cpu-weight = 0", "`0` is neither none nor a weight from 1 to 10000"),
    ("command-io-weight = 10001", "`10001` is neither none nor a weight from 1 to 10000"),
    ("cpu-quota = 50", "is neither none nor a share"), ("memory-max = 1P", "is not a number of bytes"),
    ("tasks-max = 0", "`0` is not a number from 1")])
def test_limits_of_groups_that_are_none(mode, user, directory, line, words):
    path = directory / "execd.conf"
    path.write_text(f"[identity a]\n{line}\n")
    code, _, err = check(mode, user, path, "-t")
    assert code == 3 and f"{path}:2: {line.split()[0]}: " in err and words in err, err


def test_limits_of_an_identity_need_a_group(user, directory):
    """Also without root, where groups may be delegated: here they are not."""
    path = directory / "execd.conf"
    path.write_text(GOOD + f"[identity a]\ntoken-sha256 = {digest('t')}\ntasks-max = 500\n")
    r = subprocess.run(as_user(user, [str(EXECD), "-c", str(path)]), capture_output=True, text=True, timeout=20)
    assert r.returncode == 5, r
    assert "[identity a]: tasks-max: this host cannot enforce it: no control group counts processes" in r.stderr, r.stderr


def test_the_file_describes_the_service_alone(mode, user, directory):
    path = directory / "execd.conf"
    path.write_text(basic(user))
    for flags in (["--listen", "ws://127.0.0.1:0"], ["--allow-unauthenticated"], ["--user", "x"]):
        code, _, err = check(mode, user, path, *flags)
        assert code == 2 and "the file says who may come in" in err
    assert check(mode, user, path, "-t", "--max-connections", "7")[0] == 0


def test_effective_values_are_a_configuration(mode, user, directory):
    """What -T prints, -T prints again when it is read."""
    path, again = directory / "execd.conf", directory / "again.conf"
    path.write_text(basic(
        user, identity="umask = 027\nenvironment = A=1\n\tB=two words\nmax-sessions = 3\nmax-address-space = 1536M\n",
        rest="[limits]\nexempt = 10.0.0.0/8 192.168.1.1\n\tfe80::/10\npenalty-max = none\n"))
    code, out, err = check(mode, user, path, "-T", "--detached-ttl", "90s")
    assert code == 0 and err == "", err
    assert "detached-ttl = 90s\n" in out and "umask = 0027\n" in out and "max-address-space = 1536M\n" in out
    assert "environment = A=1\n\tB=two words\n" in out
    assert "exempt = 10.0.0.0/8\n\t192.168.1.1/32\n\tfe80::/10\n" in out and "max-connections = 10000\n" in out
    # Also what nobody said of sandboxes.
    rules = out.split("[sandbox]\n")[1].split("[")[0]
    for line in ("mode = auto", "allow-unsandboxed = yes", "max-profile = full", "allow-network = yes",
                 "over-limit = refuse", "unix-sockets = deny", "nested-git = off", "tmp = host", "landlock-min-abi = 0",
                 "landlock-only = no", "max-file-size = 16G", "hide = /run\n\t-~/.config/execd\n\t-~/.local/state/execd"):
        assert f"{line}\n" in rules, (line, rules)
    keys = re.findall(r"KEY\(\"([a-z0-9-]+)\"", "".join(
        f.read_text() for f in [CONF / "base/sandbox_keys.def"]))
    unset = {"workspace-roots", "writable-roots", "deny-read"}     # every path, none
    assert len(keys) > 20 and set(keys) - unset <= set(re.findall(r"(?m)^([a-z0-9-]+) = ", rules)), rules
    again.write_text(out)
    assert check(mode, user, again, "-T") == (0, out, "")


def test_what_just_fits_on_a_line_is_shown_on_one(mode, user, directory):
    path, again = directory / "execd.conf", directory / "again.conf"
    home, variable = "home=/" + "h" * 192, "A=" + "v" * 195
    assert len(home) == 198 == len("\t" + variable)
    path.write_text(basic(user, identity=f"{home}\nenvironment =\n\t{variable}\n\tB=b\n"))
    code, out, err = check(mode, user, path, "-T")
    assert (code, err) == (0, "") and f"\n{home}\n" in out and f"\nenvironment =\n\t{variable}\n\tB=b\n" in out
    again.write_text(out)
    assert check(mode, user, again, "-T") == (0, out, "")
    for longer in home + "h", f"environment =\n\t{variable}v":
        again.write_text(basic(user, identity=longer + "\n"))
        assert "a line has more than 198 characters" in check(mode, user, again, "-t")[2]
        again.write_text(basic(user) + longer)
        assert "a line has more than 198 characters" in check(mode, user, again, "-t")[2], "without its end, too"


@pytest.mark.parametrize("readable", [0o604, 0o640, 0o644])
def test_who_can_read_a_secret(mode, user, directory, readable):
    """Its owner alone; a group as well if root lends it (as Debian's ssl-cert)."""
    secret, path = directory / "secret", directory / "execd.conf"
    secret.write_text("s" * 40)
    path.write_text(basic(user) + f"token-subject = a\n[signed-tokens]\nsecret-file = {secret}\n")
    secret.chmod(readable)
    if ROOT:
        os.chown(secret, 0 if mode == "root" else user.pw_uid, user.pw_gid)
    code, _, err = check(mode, user, path, "-t")
    if mode == "root" and readable == 0o640:
        assert code == 0 and f"{secret}: its group can read this secret, too\n" in err and err.count("\n") == 1, err
    else:
        assert code == 3 and f"{secret}: is a secret that others can read (mode {readable:04o}): chmod 600" in err, err
    secret.chmod(0o600)
    assert check(mode, user, path, "-t") == (0, "", "")


SANDBOX = {"mode": "require", "max-profile": "managed", "allow-unsandboxed": "yes", "allow-external": "no",
           "allow-network": "no", "over-limit": "clamp", "compat-launch-config": "yes", "workspace-roots": "/srv/*",
           "writable-roots": "~/a", "deny-read": "-~/.ssh", "hide": "none", "protected-names": ".git",
           "nested-git": "hooks", "nested-git-depth": "2", "tmp": "private", "tmpdir": "request",
           "environment-inherit": "core", "unix-sockets": "allow", "allow-32bit": "yes", "allow-setid": "yes",
           "allow-nested-userns": "no", "landlock-min-abi": "3", "landlock-only": "yes", "max-open-files": "64", "max-file-size": "1G", "max-shm": "2M"}


def test_keys_of_the_sandbox_in_both_places(mode, user, directory):
    path = directory / "execd.conf"
    keys = "".join(f"{k} = {v}\n" for k, v in SANDBOX.items())
    own = "".join(f"sandbox-{k} = {v}\n" for k, v in SANDBOX.items())
    path.write_text(basic(user, identity=own.replace("sandbox-allow-unsandboxed = yes\n", ""),
                          rest="[sandbox]\n" + keys))
    code, out, err = check(mode, user, path, "-T")
    assert code == 0 and err == "", err
    assert own in out and keys in out, "in the order of the manual, and none is missing"


def test_flags_have_effective_values_too(mode, user):
    argv = [str(EXECD), "-T", "--listen", "ws://127.0.0.1:0"]
    argv = argv + ["--user", user.pw_name] if mode == "root" else as_user(user, argv)
    r = subprocess.run(argv, capture_output=True, text=True, timeout=20)
    assert r.returncode == 0 and "address = ws://127.0.0.1:0\n" in r.stdout and f"[identity {user.pw_name}]" in r.stdout


def test_the_example_is_accepted(mode, user, directory):
    """The text of man/execd.conf.example, with files and users of this machine."""
    text = EXAMPLE.read_text()
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-keyout", directory / "key.pem", "-out", directory / "cert.pem", "-days", "20", "-subj", "/CN=x"],
                   check=True, capture_output=True)
    (directory / "jwt-secret").write_text("s" * 40)
    lend(directory / "key.pem", user.pw_gid)
    lend(directory / "jwt-secret", user.pw_gid)
    text = text.replace("/var/log/execd/", f"{directory}/").replace("/etc/execd/", f"{directory}/").replace("user = ci\n", f"user = {user.pw_name}\n")
    text = text.replace("user = alice\n", f"user = {user.pw_name}\n").replace("peer-user = alice", f"peer-user = {user.pw_name}")
    if mode == "user":
        text = re.sub(r"(?m)^groups? = .*\n", "", text)
    path = directory / "execd.conf"
    path.write_text(text)
    code, out, err = check(mode, user, path, "-t")
    # In root mode the two secrets are lent to a group.
    assert (code, out) == (0, "") and all("its group can read this secret" in x for x in err.splitlines()), err
    assert len(err.splitlines()) == (2 if ROOT else 0)


def test_the_units_are_sound(directory):
    """systemd-analyze has no complaint, but that the manual is not installed."""
    if not shutil.which("systemd-analyze"):
        pytest.skip("THE UNITS ARE NOT CHECKED: there is no systemd-analyze")
    unit = (BUILD / "contrib/systemd/execd.service").read_text()
    assert "Type=notify" in unit and "@sbindir" not in unit
    names = ["execd.service", "execd.socket", "execd-sessions.socket", "execd-sessions.service"]
    for name in names:
        at = BUILD / "contrib/systemd" / name if name.endswith(".service") else EXAMPLE.parents[1] / "contrib/systemd" / name
        text = re.sub(r"(?m)^(Exec\w*=)\S+/execd-broker\b", rf"\1{BUILD}/daemon/broker/execd-broker", at.read_text())
        (directory / name).write_text(re.sub(r"(?m)^(Exec\w*=)\S+/execd ", rf"\1{EXECD} ", text))
    r = subprocess.run(["systemd-analyze", "verify", "--man=no", *(directory / name for name in names)],
                       capture_output=True, text=True, timeout=60, env={**os.environ, "SYSTEMD_UNIT_PATH": f"{directory}:"})
    assert r.returncode == 0 and "execd" not in r.stderr, r.stderr
    lines = (BUILD / "contrib/systemd/execd-sysusers.conf").read_text().splitlines()
    assert [x.split(" -")[0] for x in lines if not x.startswith("#")] == ["u _execd-broker", "u _execd", "g execd"]


# --- reload ---------------------------------------------------------------


def test_a_reload_says_what_changed(configured, user):
    text = basic(user, rest="[limits]\nmax-connections = 50\n")
    s = configured(text)
    c = s.connect(token="tok-a").ready()
    assert "nothing changed" in s.reload(text, "nothing changed")
    c.wait_closed()
    log = s.reload(text.replace("= 50", "= 60").replace(digest("tok-a"), digest("tok-b")) +
                   f"[identity b]\nuser = {user.pw_name}\ntoken-sha256 = {digest('tok-c')}\n", "identity b]: new")
    assert digest("tok-b") not in log
    poll(lambda: "[limits] max-connections: 60, was 50" in s.log)
    poll(lambda: "[identity a] token-sha256: changed" in s.log)
    with pytest.raises(Closed, match="401"):
        s.connect(token="tok-a")
    assert s.connect(token="tok-b").ready().run("x", ["/bin/echo", "in"]).stdout == "in\n"
    s.connect(token="tok-c").ready()
    c = s.connect(token="tok-b").ready(resumeSessionId=c.session_id)
    assert c.run("x", ["/bin/echo", "still"]).stdout == "still\n", "sessions go on"
    s.reload(text, "[identity b]: gone")
    with pytest.raises(Closed, match="401"):
        s.connect(token="tok-c")


def test_who_came_before_a_reload_comes_again(configured, user):
    """What was granted ends with the broker that granted it; a session without a client goes on."""
    text = basic(user).replace("[identity", "allow-unauthenticated = a\n[identity", 1)
    s = configured(text)
    before = s.connect()
    s.reload(text.replace("allow-unauthenticated = a\n", ""), "allow-unauthenticated")
    before.wait_closed()
    with pytest.raises(Closed, match="401"):
        s.connect()


@pytest.mark.parametrize("change", ["syntax", "port", "file"])
def test_a_reload_is_all_or_nothing(configured, user, server, change):
    text = basic(user)
    s = configured(text)
    broken = {"syntax": text + "[limits]\nmax-connections = many\n",
              "port": text + f"[listener other]\naddress = {server.url}\n",
              "file": text + "[listener other]\naddress = wss://127.0.0.1:0\ncertificate = /none\n"
                             "certificate-key = /none\n"}[change].replace(digest("tok-a"), digest("tok-b"))
    log = s.reload(broken, "the configuration stays as it was")
    assert "reload: refused" in log
    c = s.connect(token="tok-a").ready()
    assert c.run("x", ["/bin/echo", "in"]).stdout == "in\n"
    with pytest.raises(Closed, match="401"):
        s.connect(token="tok-b")
    s.reload(text.replace(digest("tok-a"), digest("tok-b")), "changed")
    s.connect(token="tok-b").ready()


def test_a_session_outlives_a_reload_and_is_resumed(configured, user):
    text = basic(user)
    s = configured(text)
    c = s.connect(token="tok-a").ready()
    c.sh("a", "echo one; sleep 1000")
    c.wait_output("a", "one")
    c.drop()
    s.wait_log("detached")
    s.reload(text + "[limits]\nmax-connections = 50\n", "max-connections: 50")
    d = s.connect(token="tok-a")
    d.ready(resumeSessionId=c.session_id)
    assert d.session_id == c.session_id and d.terminate("a") is True


# --- the end --------------------------------------------------------------


def test_term_drains(configured, user):
    s = configured(basic(user, rest="[limits]\ndrain-timeout = 1h\n"))
    c = s.connect(token="tok-a").ready()
    s.child.send_signal(signal.SIGTERM)
    s.wait_log("no new sessions")
    code, message = s.connect(token="tok-a").error("initialize", {"clientName": "x"})
    assert code == -32603 and "shutting down" in message
    assert c.run("x", ["/bin/echo", "still"]).stdout == "still\n"
    s.child.send_signal(signal.SIGTERM)
    assert s.child.wait(15) == 0


def ready(s):
    with dial(s.url) as sock:
        sock.sendall(b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        return sock.recv(4096).split(b"\r\n")


def test_a_notice_before_the_drain(configured, user):
    """A load balancer is told at once, and what it sends until it has read that is served."""
    s = configured(basic(user), "--drain-notice", "1h", "--drain-timeout", "1h")
    c = s.connect(token="tok-a").ready()
    s.child.send_signal(signal.SIGTERM)
    s.wait_log("new sessions are opened for another 3600000 ms")
    head = poll(lambda: b"503" in (head := ready(s))[0] and head, what="/readyz to say it")
    assert any(line.lower().startswith(b"retry-after:") for line in head), head
    assert s.connect(token="tok-a").ready().run("x", ["/bin/echo", "new"]).stdout == "new\n"
    s.child.send_signal(signal.SIGTERM)
    s.wait_log("no new sessions")
    code, message = s.connect(token="tok-a").error("initialize", {"clientName": "x"})
    assert code == -32603 and "shutting down" in message
    assert c.run("x", ["/bin/echo", "still"]).stdout == "still\n"
    s.child.send_signal(signal.SIGTERM)
    assert s.child.wait(15) == 0


def test_a_notice_ends(configured, user):
    s = configured(basic(user, rest="[limits]\ndrain-notice = 200ms\n"))
    c = s.connect(token="tok-a").ready()
    s.child.send_signal(signal.SIGTERM)
    assert c.wait_closed()["code"] in (1001, 1011)
    assert s.child.wait(15) == 0


def test_usr1_drains(configured, user):
    """And does not stop; a broker that is killed is followed by one that knows."""
    s = configured(basic(user))
    c = s.connect(token="tok-a").ready()
    s.child.send_signal(signal.SIGUSR1)
    s.wait_log("drained by uid")
    code, message = s.connect(token="tok-a").error("initialize", {"clientName": "x"})
    assert code == -32603 and "drained" in message
    assert c.run("x", ["/bin/echo", "still"]).stdout == "still\n"
    os.kill(s.broker, signal.SIGKILL)
    s.wait_log("no new sessions: execd was drained by uid")


def test_a_drain_ends_at_its_timeout(configured, user):
    s = configured(basic(user), "--drain-timeout", "300ms")
    c = s.connect(token="tok-a").ready()
    c.sh("a", "sleep 1000")
    s.child.send_signal(signal.SIGTERM)
    assert c.wait_closed()["code"] in (1001, 1011)
    assert s.child.wait(15) == 0
    s.wait_log("drained: 1 sessions are ended")


def test_a_drain_ends_with_the_last_session(configured, user):
    s = configured(basic(user, rest="[limits]\ndetached-ttl = 100ms\ndrain-timeout = 1h\n"))
    c = s.connect(token="tok-a").ready()
    s.child.send_signal(signal.SIGTERM)
    s.wait_log("no new sessions")
    c.drop()
    assert s.child.wait(15) == 0
