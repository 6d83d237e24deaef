# SPDX-License-Identifier: ISC
"""ask: URLs: a program says where the server is and holds it. It is asked once,
it is told when it is no longer needed, and nothing of it is left over.
"""
import json
import os
import pathlib
import shlex
import signal
import time

import pytest
from conftest import digest, is_alive, poll
from execctl import Execctl, Proxy

# Prints its answer, says in files what happens to it, and holds the lease until its input ends.
HOLDER = """#!/bin/sh
echo $$ >> {directory}/asked
printf '%s\\n' '{answer}'
cat > /dev/null
echo ended > {directory}/ended
"""


class Program:
    """A program for an ask: URL, and what it left in its directory."""

    def __init__(self, directory, text=HOLDER, name="rent", **answer):
        self.directory = directory
        self.path = directory / name
        self.path.write_text(text.format(directory=directory, answer=json.dumps(answer)))
        self.path.chmod(0o755)
        self.url = f"ask:{self.path}"

    def asked(self):
        """The pid of each time it was asked."""
        try:
            return [int(p) for p in (self.directory / "asked").read_text().split()]
        except FileNotFoundError:
            return []

    def ended(self):
        return (self.directory / "ended").exists()

    def assert_gone(self):
        assert self.asked()
        poll(lambda: not any(map(is_alive, self.asked())), what="end of the program")


@pytest.fixture
def rented(server, directory):
    return Program(directory, url=server.url)


def test_a_lease_is_held_for_one_run(rented, directory):
    r = Execctl(directory, rented.url)("run", "sh", "-c", "echo in; exit 7")
    assert (r.code, r.out, r.err) == (7, b"in\n", ""), r
    assert len(rented.asked()) == 1 and rented.ended()
    rented.assert_gone()


def test_the_program_gets_its_arguments_as_a_shell_gives_them(server, directory):
    p = Program(directory, '#!/bin/sh\nprintf "%s\\n" "$@" > {directory}/args\necho $$ > {directory}/asked\n'
                           "printf '%s\\n' '{answer}'\ncat\n", url=server.url)
    ctl = Execctl(directory, f"{p.url} --mem=4G 'two words' $HOME")
    assert ctl.ok("run", "echo", "in") == b"in\n"
    assert (directory / "args").read_text() == f"--mem=4G\ntwo words\n{directory}\n"


def test_a_program_of_the_path(server, directory):
    p = Program(directory, url=server.url)
    ctl = Execctl(directory, "ask:rent", PATH=f"{directory}:/usr/bin:/bin")
    assert ctl.ok("run", "echo", "in") == b"in\n" and p.ended()


def test_an_environment_asks(rented, directory):
    ctl = Execctl(directory, None)
    ctl.ok("environments", "add", "rented", rented.url, "--default")
    assert ctl.ok("run", "echo", "in") == b"in\n" and rented.ended()
    assert b"connect and initialize" in ctl.ok("doctor")
    assert len(rented.asked()) == 2


def test_its_token_is_the_one_that_counts(configured, user, directory):
    s = configured(f"[listener main]\naddress = ws://127.0.0.1:0\n[identity a]\nuser = {user.pw_name}\n"
                   f"token-sha256 = {digest('right')}\n")
    (directory / "token").write_text("right\n")
    (directory / "token").chmod(0o600)
    p = Program(directory, url=s.url, tokenFile=str(directory / "token"), other="ignored")
    assert Execctl(directory, p.url, EXECD_TOKEN="wrong").ok("run", "echo", "in") == b"in\n"
    q = Program(directory, name="no-token", url=s.url)
    assert Execctl(directory, q.url, EXECD_TOKEN="right").ok("run", "echo", "in") == b"in\n"
    r = Execctl(directory, q.url, EXECD_TOKEN="wrong")("run", "echo", "in")
    assert r.code == 255 and "does not accept the token" in r.err, r
    p.assert_gone()


def test_a_cut_is_resumed_and_nobody_is_asked_again(server, directory):
    proxy = Proxy(server.url)
    p = Program(directory, url=proxy.url)
    run = Execctl(directory, p.url).popen(
        "run", "sh", "-c", f"echo one; until [ -e {directory}/go ]; do sleep 0.1; done; echo two; exit 3")
    assert run.stdout.readline() == b"one\n"
    proxy.cut()
    (directory / "go").touch()
    assert (run.stdout.read(), run.wait(30)) == (b"two\n", 3)
    assert len(p.asked()) == 1 and proxy.cuts == 1
    proxy.close()


def test_what_may_pass_is_tried_again_with_the_same_answer(server, directory):
    proxy = Proxy(server.url)
    proxy.refusing = True
    p = Program(directory, url=proxy.url)
    r = Execctl(directory, p.url)("--connect-timeout", "1s", "run", "echo", "in")
    assert r.code == 125 and len(p.asked()) == 1, r
    p.assert_gone()
    proxy.close()


BAD = [("nonsense", 125, "printed no answer"), ("[]", 125, "not a JSON object"), ("{{}}", 125, "there is no `url'"), ("", 125, "printed no answer"),
       ('{{"url": 7}}', 125, "`url' is not a text"), ('{{"url": "ws://a\\u0000b"}}', 125, "`url' is not a text"),
       ('{{"url": "ws://127.0.0.1:1", "url": "x"}}', 125, "duplicate"),
       ('{{"url": "ws://127.0.0.1:1", "tokenFile": "token"}}', 125, "`tokenFile' is not an absolute path"),
       ('{{"url": "ws://127.0.0.1:1", "ca": "ca"}}', 125, "`ca' is not an absolute path"),
       ('{{"url": "ws://127.0.0.1:1", "tokenFile": "/does/not/exist"}}', 255, "token file /does/not/exist"),
       ('{{"url": "http://h"}}', 255, "URL `http://h'"), ('{{"url": "ask:cat"}}', 255, "must answer with"),
       ('{{"url": "stdio:cat"}}', 255, "must answer with"), ('{{"url": "ws://127.0.0.1:1"}}\\n{{}}', 125, "more than one line")]


@pytest.mark.parametrize("line, code, text", BAD)
def test_a_bad_answer(directory, line, code, text):
    p = Program(directory, "#!/bin/sh\necho $$ > {directory}/asked\nprintf '" + line + "\\n'\ncat\necho > {directory}/ended\n")
    r = Execctl(directory, p.url)("run", "echo", "in")
    assert r.code == code and text in r.err and r.err.startswith(f"execctl: {p.url}: "), r
    assert p.ended()
    p.assert_gone()


@pytest.mark.parametrize("output", ["tr '\\0' x < /dev/zero", "head -c 8193 /dev/zero | tr '\\0' x; cat"])
def test_a_line_that_does_not_end(directory, output):
    p = Program(directory, "#!/bin/sh\necho $$ > {directory}/asked\n" + output + "\n")
    r = Execctl(directory, p.url)("run", "echo", "in")
    assert r.code == 125 and "longer than 8192 bytes" in r.err, r
    p.assert_gone()


@pytest.mark.parametrize("how, text", [("exit 3", "ended with status 3 before it answered"), ("exit 0", "ended with status 0 before"),
                                       ("kill -9 $$", "ended with status 137 before"), ("printf '{{\"url\"'", "ended with status 0 before")])
def test_a_program_that_ends_without_an_answer(directory, how, text):
    p = Program(directory, "#!/bin/sh\necho $$ > {directory}/asked\necho why >&2\n" + how + "\n")
    r = Execctl(directory, p.url)("run", "echo", "in")
    assert r.code == 125 and text in r.err and "why\n" in r.err, r
    p.assert_gone()


def test_a_program_that_is_killed(directory):
    p = Program(directory, "#!/bin/sh\nkill -9 $$\n")
    r = Execctl(directory, p.url.replace(":", ":exec "))("run", "echo", "in")
    assert r.code == 125 and "was killed by signal 9 before it answered" in r.err, r


def test_no_such_program(directory):
    r = Execctl(directory, "ask:/does/not/exist")("run", "echo", "in")
    assert r.code == 125 and "ended with status 127 before it answered" in r.err and "not found" in r.err, r


@pytest.mark.parametrize("text", ["trap '' TERM; sleep 1000 & cat; wait", "exec >&-; exec sleep 1000", "exec sleep 1000"])
def test_silence(directory, text):
    """The deadline is that of connecting. What does not end is killed, with its children."""
    p = Program(directory, "#!/bin/sh\necho $$ > {directory}/asked\n" + text + "\n")
    begin = time.monotonic()
    r = Execctl(directory, p.url)("--connect-timeout", "300ms", "run", "echo", "in")
    assert r.code == 125 and "ask: no answer within 300 ms" in r.err, r
    assert time.monotonic() - begin < 20
    p.assert_gone()
    group = p.asked()[0]
    poll(lambda: not members(group), what="end of the group")


def members(group):
    """The living processes of a process group."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def test_a_lease_that_ends_is_no_silence(server, directory):
    """The command's state is unknown then, and nobody waits for the resume timeout."""
    p = Program(directory, url=server.url)
    run = Execctl(directory, p.url).popen("run", "sh", "-c", "echo ready; exec sleep 1000")
    assert run.stdout.readline() == b"ready\n"
    begin = time.monotonic()
    os.kill(p.asked()[0], signal.SIGKILL)
    assert run.wait(30) == 254
    assert "the lease is over: the program of ask: ended with status 137" in run.stderr.read().decode()
    assert time.monotonic() - begin < 15


def test_a_lease_that_ends_while_the_connection_is_lost(server, directory):
    proxy = Proxy(server.url)
    p = Program(directory, url=proxy.url)
    run = Execctl(directory, p.url).popen("run", "sh", "-c", "echo ready; exec sleep 1000")
    assert run.stdout.readline() == b"ready\n"
    proxy.refusing = True
    seen = proxy.accepted
    proxy.cut()
    proxy.wait(lambda: proxy.accepted > seen, what="an attempt")
    os.kill(p.asked()[0], signal.SIGTERM)
    assert run.wait(30) == 254 and "the lease is over" in run.stderr.read().decode()
    proxy.close()


def test_output_that_was_sent_before_the_lease_ended_arrives(server, directory):
    p = Program(directory, url=server.url)
    run = Execctl(directory, p.url).popen("run", "sh", "-c", f"echo ready; until [ -e {directory}/go ]; do sleep 0.1; done; "
                                          "head -c 5000000 /dev/zero; exit 5")
    assert run.stdout.readline() == b"ready\n"
    (directory / "go").touch()
    os.kill(p.asked()[0], signal.SIGKILL)
    assert len(run.stdout.read()) == 5000000 and run.wait(30) == 5


def test_a_client_that_is_killed_ends_its_lease(server, directory):
    p = Program(directory, url=server.url)
    run = Execctl(directory, p.url).popen("run", "sh", "-c", "echo ready; exec sleep 1000")
    assert run.stdout.readline() == b"ready\n"
    run.kill()
    run.wait()
    poll(lambda: not is_alive(p.asked()[0]), what="end of the lease")


def test_a_session_is_not_looked_for_behind_another_lease(rented, directory):
    r = Execctl(directory, rented.url)("run", "-d", "sleep", "1000")
    assert r.code == 255 and "ends with execctl" in r.err, r
    rented.assert_gone()
    r = Execctl(directory, rented.url)("wait", "11111111-1111-1111-1111-111111111111", "--process", "p")
    assert r.code == 255 and "a session is on the one that it began on" in r.err and len(rented.asked()) == 1, r


def test_two_servers_are_two_leases(server, directory):
    a = Program(directory, url=server.url)
    ctl = Execctl(directory, None)
    ctl.ok("environments", "add", "a", a.url)
    (directory / "file").write_text("text")
    (directory / "there").mkdir()
    (directory / "there").chmod(0o777)
    ctl.ok("cp", directory / "file", f"a:{directory}/there/file")
    assert (directory / "there/file").read_text() == "text" and len(a.asked()) == 1
    assert shlex.split(a.url.removeprefix("ask:")) == [str(a.path)]
