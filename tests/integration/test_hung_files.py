# SPDX-License-Identifier: ISC
"""Files that execd.conf names, on a file system that does not answer: opening one ends with a sentence, and root and
all sessions go on."""
import os
import re
import signal

import pytest
from conftest import children_named, digest, poll
from test_config import check
from test_slow_start import FileSystem, slow  # noqa: F401: a fixture

SAID = "{path}: its disk does not answer"
NAMED = {
    "certificate": "[listener b]\naddress = wss://127.0.0.1:0\ncertificate = {path}\ncertificate-key = {path}\n",
    "client-crl": "[listener b]\naddress = wss://127.0.0.1:0\nclient-ca = {path}\nclient-crl = {path}\n"
                  "certificate = {pem}\ncertificate-key = {key}\n",
    "unix listener": "[listener b]\naddress = unix:{path}\nmode = 0600\n",
    "jwks-file": "[signed-tokens]\nissuer = i\naudience = a\njwks-file = {path}\n",
    "secret-file": "[signed-tokens]\nissuer = i\naudience = a\nsecret-file = {path}\n",
    "audit file": "[audit]\nfile = {path}\n",
    "audit socket": "[audit]\nsyslog = {path}\n",
    "ctl-socket": "[control]\nctl-socket = {path}\n",
    "recordings": "[identity b]\nuser = {user}\nrecord-tty = {path}\n",
}


def basic(user, more=""):
    return f"[listener main]\naddress = ws://127.0.0.1:0\n[identity a]\nuser = {user.pw_name}\ntoken-sha256 = {digest('t')}\n{more}"


@pytest.fixture
def named(directory, slow, user):  # noqa: F811
    """named(what): a configuration that names a file there, and its path."""
    def text(what):
        path = f"{slow.path}/d/x"
        pem = directory / "server"
        if "{pem}" in NAMED[what]:
            from test_tls import Authority
            pem = Authority(directory).issue("server", group=user.pw_gid)
        return basic(user, NAMED[what].format(path=path, user=user.pw_name, pem=f"{pem}.pem", key=f"{pem}.key")), path
    return text


def assert_serves(s, c, n):
    assert c.run(f"old{n}", ["/bin/echo", "goes on"]).stdout == "goes on\n"
    assert s.connect(token="t").ready().run("new", ["/bin/echo", "begins"]).stdout == "begins\n"


def assert_knows_nothing(s):
    """One process waits for the disk, and is no copy of root's: it has a program of its own, and not even root's log."""
    pid, = poll(lambda: len(found := children_named(s.pid, "execd-child")) == 1 and found, what="the one that waits")
    assert os.readlink(f"/proc/{pid}/exe").endswith("/execd-child")
    open_files = {int(n): os.readlink(f"/proc/{pid}/fd/{n}") for n in os.listdir(f"/proc/{pid}/fd")}
    assert {open_files[n] for n in (0, 1, 2)} == {"/dev/null"} and len(open_files) <= 7, open_files


OFTEN = ("certificate", "unix listener", "audit file", "recordings")     # the others go the same ways


@pytest.mark.parametrize("what", [pytest.param(n, marks=() if n in OFTEN else pytest.mark.nightly) for n in NAMED])
def test_a_reload_ends(configured, user, slow, named, what):  # noqa: F811
    """It is refused, and so is the next one, at once; when the disk answers again, a reload is as ever."""
    s = configured(basic(user))
    c = s.connect(token="t").ready()
    text, path = named(what)
    slow.takes_requests()
    try:
        for n in range(2):
            said = s.reload(text, "reload: refused")
            # Root's line, and that of the reload, which its asker is told.
            assert SAID.format(path=path) in said and re.search(rf"broker\[.*{path}: (its disk|Connection timed out)", said), said
            assert_knows_nothing(s)
            assert_serves(s, c, n)
    finally:
        slow.answers()
    s.reload(basic(user) + "[limits]\nmax-sessions = 77\n", "max-sessions")


@pytest.mark.parametrize("what", ["certificate", "audit file"])
def test_a_start_ends(mode, directory, slow, named, what):  # noqa: F811
    text, path = named(what)
    conf = directory / "execd.conf"
    conf.write_text(text)
    slow.takes_requests()
    try:
        for flags in ([], ["-t"]):
            code, _, err = check(mode, named_user(text), conf, *flags)
            assert code == 3 and SAID.format(path=path) in err, (code, err)
    finally:
        slow.answers()


def named_user(text):
    import pwd
    return pwd.getpwnam(text.partition("user = ")[2].partition("\n")[0])


@pytest.fixture
def turned_slow(directory, user, mode):
    """A directory that becomes a file system that does not answer."""
    if os.geteuid() != 0 or not os.access("/dev/fuse", os.W_OK):
        pytest.skip("HUNG FILE SYSTEMS ARE NOT TESTED: this needs root and /dev/fuse")
    at = directory / "disk"
    at.mkdir(mode=0o700)
    if mode == "user":
        os.chown(at, user.pw_uid, user.pw_gid)
    mounted = []

    def turn():
        mounted.append(FileSystem(at, made=True))
        mounted[0].takes_requests()

    yield at, turn
    for f in mounted:
        f.stop()


def test_an_audit_file_that_is_opened_again(configured, user, turned_slow):
    """Root goes on; what needs a record is refused, as with every other audit log that cannot be written."""
    at, turn = turned_slow
    s = configured(basic(user, f"[audit]\nfile = {at}/audit\n"))
    c = s.connect(token="t").ready()
    (at / "audit").unlink()
    turn()
    s.connect(token="t").post("initialize", {"clientName": "x"})
    s.wait_log(SAID.format(path=at / "audit"))
    assert c.call("environment/status") == {"status": "ready"}
    s.child.send_signal(signal.SIGHUP)
    s.wait_log("reload: refused")
    s.wait_log("the audit log cannot be written")


def test_a_directory_of_recordings(configured, user, turned_slow):
    at, turn = turned_slow
    s = configured(basic(user, f"record-tty = {at}\nrecord-tty-required = yes\n"))
    c = s.connect(token="t").ready()
    turn()
    for n in range(3):
        m = c.start(f"x{n}", ["/bin/echo", "in"], tty=True)
        assert m["error"]["message"] == "the terminal cannot be recorded: Connection timed out", m
        assert_serves(s, c, n)
    poll(lambda: s.log.count(SAID.format(path=at)) == 3, what="a line each")
