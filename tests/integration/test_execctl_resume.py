# SPDX-License-Identifier: ISC
"""execctl over a network that fails: nothing is lost, nothing is done twice, and
what cannot be known is not called a success."""
import hashlib
import os
import random
import re
import signal
import time

import pytest
from conftest import children_named, more_rounds, pids_with, poll
from execctl import Execctl, Proxy, digest, make_file
from test_uploads import switches


@pytest.fixture
def proxy(server):
    p = Proxy(server.url)
    yield p
    p.close()


@pytest.fixture
def ctl(proxy, directory):
    return Execctl(directory, proxy.url)


def test_output_continues_behind_a_cut(ctl, proxy, directory):
    p = ctl.popen("run", "sh", "-c", f"i=0; while [ $i -lt 600 ]; do echo line $i; echo e$i >&2; i=$((i+1)); "
                                     f"[ $((i % 100)) != 0 ] || until [ -e {directory}/$i ]; do sleep 0.1; done; "
                                     "done; exit 5")
    out = b""
    for i in range(100, 601, 100):
        while not out.endswith(f"line {i - 1}\n".encode()):
            piece = p.stdout.readline()
            assert piece, p.stderr.read()
            out += piece
        proxy.cut()
        (directory / str(i)).touch()
    assert p.wait(60) == 5
    out += p.stdout.read()
    assert out == "".join(f"line {i}\n" for i in range(600)).encode()
    assert p.stderr.read() == "".join(f"e{i}\n" for i in range(600)).encode()
    assert proxy.cuts >= 5


def test_a_command_is_started_once(ctl, proxy, directory):
    """The answer to its start is swallowed, so the start is sent again."""
    script = f"echo x >> {directory}/count; until [ -e {directory}/go ]; do sleep 0.1; done; echo out; exit 4"
    down = proxy.down
    p = ctl.popen("run", "sh", "-c", script)
    # The upgrade and initialize are answered with more than 300 bytes.
    proxy.wait(lambda: proxy.down > down + 300, what="initialize")
    proxy.swallowing = True
    poll(lambda: (directory / "count").exists(), what="the start")
    proxy.cut_swallowed()
    (directory / "go").touch()
    out, err = p.communicate(timeout=30)
    assert (p.returncode, out) == (4, b"out\n"), err
    assert (directory / "count").read_text() == "x\n"


def test_a_unix_socket_is_resumed_too(server, directory):
    proxy = Proxy(server.url, path=directory / "socket")
    ctl = Execctl(directory, proxy.url)
    p = ctl.popen("run", "sh", "-c", f"echo one; until [ -e {directory}/go ]; do sleep 0.1; done; echo two; exit 3")
    assert p.stdout.readline() == b"one\n"
    proxy.cut()
    (directory / "go").touch()
    assert (p.stdout.read(), p.wait(30)) == (b"two\n", 3)
    proxy.close()


def test_input_arrives_once(ctl, proxy):
    if not ctl.can("processCloseStdin"):
        pytest.skip("no processCloseStdin")
    data = random.Random(1).randbytes(3 << 20)
    start = proxy.up + proxy.down
    proxy.cut_at = [start + (n << 19) for n in (2, 3, 5, 7)]
    out = ctl.ok("run", "sha256sum", input=data)
    assert out.split()[0].decode() == hashlib.sha256(data).hexdigest()
    assert proxy.cuts >= 3


def test_a_deadline_that_was_missed_is_still_one(ctl, proxy):
    if not ctl.can("processExitDetails"):
        pytest.skip("no processExitDetails")
    seconds = str(10_000_000 + os.getpid())  # to be found by, in no other command line
    p = ctl.popen("run", "--timeout", "400ms", "sh", "-c", f"echo ready; exec sleep {seconds[:3]}''{seconds[3:]}")
    assert p.stdout.readline() == b"ready\n"
    proxy.refusing = True
    proxy.cut()
    poll(lambda: not pids_with(f"sleep\0{seconds}"), what="the deadline")
    proxy.refusing = False
    assert p.wait(30) == 124
    assert "time limit" in p.stderr.read().decode()


WRITES = "head -c 3000000 /dev/zero; echo last; touch {}/done; exit 6"


def test_nothing_falls_out_while_the_connection_is_away(ctl, proxy, directory):
    """The command waits with what is more than the server retains."""
    p = ctl.popen("run", "sh", "-c", f"echo first; until [ -e {directory}/go ]; do sleep 0.1; done; {WRITES.format(directory)}")
    assert p.stdout.readline() == b"first\n"
    proxy.refusing = True
    proxy.cut()
    (directory / "go").touch()
    assert "the connection is lost" in p.stderr.readline().decode()
    assert not (directory / "done").exists()
    proxy.refusing = False
    out, err = p.communicate(timeout=60)
    assert (p.returncode, len(out), out[-6:]) == (6, 3000005, b"\0last\n") and b"lost" not in err, err


def test_what_fell_out_of_retention_is_told(ctl, directory):
    """As of a command that nobody waits for."""
    session = ctl.ok("run", "-d", "sh", "-c", WRITES.format(directory)).split()[0].decode()
    poll(lambda: (directory / "done").exists(), what="the end")
    r = ctl("attach", session)
    assert r.code == 6
    assert r.out.endswith(b"\0last\n") and len(r.out) < 2 << 20
    assert "lost" in r.err and "fell out" in r.err


def test_a_long_cut_is_told(ctl, proxy):
    p = ctl.popen("run", "sh", "-c", "echo ready; sleep 3; exit 3")
    assert p.stdout.readline() == b"ready\n"
    proxy.refusing = True
    proxy.cut()
    line = p.stderr.readline().decode()
    assert "the connection is lost" in line and "trying to resume for 150 s" in line
    proxy.refusing = False
    assert p.wait(30) == 3
    assert p.stderr.read() == b"execctl: resumed\n", "said once"


def test_it_tries_as_long_as_the_server_keeps_the_session(spawn, directory):
    """detachedTtl of the answer to initialize."""
    s = spawn("--detached-ttl", "7m")
    proxy = Proxy(s.url)
    p = Execctl(directory, proxy.url).popen("run", "sh", "-c", "echo ready; sleep 100")
    assert p.stdout.readline() == b"ready\n"
    proxy.refusing = True
    proxy.cut()
    assert "trying to resume for 420 s" in p.stderr.readline().decode()
    p.kill()
    p.wait()
    proxy.close()


def test_when_it_cannot_resume_the_state_is_unknown(ctl, proxy):
    p = ctl.popen("--resume-timeout", "400ms", "run", "sh", "-c", "echo ready; sleep 100")
    assert p.stdout.readline() == b"ready\n"
    proxy.refusing = True
    proxy.cut()
    assert p.wait(30) == 254
    assert "what became of the command is unknown" in p.stderr.read().decode()


def test_a_session_that_is_gone_is_an_unknown_state(spawn, directory):
    s = spawn("--detached-ttl", "100ms")
    proxy = Proxy(s.url)
    ctl = Execctl(directory, proxy.url)
    p = ctl.popen("run", "sh", "-c", "echo ready; sleep 100")
    assert p.stdout.readline() == b"ready\n"
    proxy.refusing = True
    proxy.cut()
    s.wait_log("ended")
    proxy.refusing = False
    assert p.wait(30) == 254
    assert "unknown session" in p.stderr.read().decode()
    proxy.close()


def test_an_interrupt_while_the_connection_is_lost(ctl, proxy):
    p = ctl.popen("run", "sh", "-c", "echo ready; sleep 100")
    assert p.stdout.readline() == b"ready\n"
    proxy.refusing = True
    seen = proxy.accepted
    proxy.cut()
    proxy.wait(lambda: proxy.accepted > seen, what="an attempt")
    p.send_signal(signal.SIGINT)
    assert p.wait(20) == 254
    assert "unknown" in p.stderr.read().decode()


def test_a_big_file_survives_three_cuts_each_way(ctl, proxy, directory):
    mib = int(os.environ.get("EXECD_BIG_MIB", "48"))
    make_file(directory / "big", mib)
    (directory / "there").mkdir()
    (directory / "there").chmod(0o777)
    unit = mib << 20
    for args in (("big", f":{directory}/there/big"), (f":{directory}/there/big", "back")):
        start, cuts = proxy.up + proxy.down, proxy.cuts
        proxy.cut_at = [start + unit * n // 4 for n in (1, 2, 3)]
        r = ctl("-v", "cp", *args, cwd=directory, timeout=600)
        assert r.code == 0, r
        assert proxy.cuts == cuts + 3
        assert "continues at byte" in r.err
    assert digest(directory / "there/big") == digest(directory / "back") == digest(directory / "big")


class Pausing(Proxy):
    """Calls a function when so many bytes were passed on. Nothing more is meanwhile."""
    at, call = 0, None

    def _count(self, n, up):
        super()._count(n, up)
        if self.call is not None and self.up + self.down >= self.at:
            call, self.call = self.call, None
            call()


def is_idle(pid):
    before = switches(pid)
    time.sleep(.3)
    return switches(pid) == before


@pytest.mark.parametrize("mib, there, changed", [(1, False, False), (8, False, False), (8, False, True), (4, True, False)])
def test_a_handle_that_the_server_lost(spawn, directory, mib, there, changed):
    """Its process for files dies between two blocks, and the connection stays: the file goes on at its byte, or again, as
    when it is not any more what was sent."""
    s = spawn()
    proxy = Pausing(s.url)

    def kill_helper():
        runner = int(re.findall(r"opened .* runner (\d+)", s.log)[-1])
        pid, = children_named(runner, "execd-files")
        poll(lambda: is_idle(pid), what="idle helper")
        os.kill(pid, signal.SIGKILL)
        poll(lambda: "the file helper ended unexpectedly" in s.log, what="a line in the log")
        if changed:
            sent, = directory.glob(".execctl-*")
            os.truncate(sent, 1)

    make_file(directory / "big", mib)
    proxy.at, proxy.call = (1 << 20 if there else mib << 19), kill_helper
    places = (f":{directory}/big", directory / "there") if there else (directory / "big", f":{directory}/there")
    r = Execctl(directory, proxy.url)("-v", "cp", *places)
    assert r.code == 0, (r, s.log[-1500:])
    assert "the file helper that had it open ended unexpectedly" in r.err
    assert ("starts again" if mib == 1 or changed else "continues at byte") in r.err
    assert digest(directory / "there") == digest(directory / "big")
    proxy.close()


def test_the_rest_of_a_file_is_written_in_the_sandbox(ctl, proxy, directory, sandboxes):
    """After a cut, too, under the context that the other requests carry."""
    make_file(directory / "big", 48)
    (directory / "there").mkdir()
    (directory / "there").chmod(0o777)
    proxy.cut_at = [proxy.up + proxy.down + (12 << 20)]
    r = ctl("-v", "cp", "-s", "workspace-write", "-C", directory / "there", "big", f":{directory}/there/big", cwd=directory)
    assert r.code == 0 and "continues at byte" in r.err, r
    assert digest(directory / "there/big") == digest(directory / "big")


def test_a_tree_survives_three_cuts_each_way(ctl, proxy, directory):
    files = int(os.environ.get("EXECD_TREE_FILES", more_rounds(300, 1200)))
    names = {}
    for i in range(files):
        d = directory / "tree" / f"d{i % 37}" / f"e{i % 5}"
        d.mkdir(parents=True, exist_ok=True)
        data = random.Random(i).randbytes(i % 3000)
        (d / f"f{i} \u00fc").write_bytes(data)
        names[f"d{i % 37}/e{i % 5}/f{i} \u00fc"] = data
    (directory / "there").mkdir()
    (directory / "there").chmod(0o777)
    for source, target, root in ((directory / "tree", f":{directory}/there", directory / "there/tree"),
                                 (f":{directory}/there/tree", directory / "back", directory / "back")):
        start, cuts = proxy.up + proxy.down, proxy.cuts
        unit = sum(map(len, names.values()))
        proxy.cut_at = [start + unit * n // 4 for n in (1, 2, 3)]
        r = ctl("cp", "-r", source, target, timeout=600)
        assert r.code == 0, r
        assert proxy.cuts == cuts + 3
        found = {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}
        assert found == names


def test_cp_says_when_it_cannot_resume(ctl, proxy, directory):
    make_file(directory / "big", 16)
    (directory / "there").mkdir()
    (directory / "there").chmod(0o777)
    proxy.cut_at = [proxy.up + proxy.down + (6 << 20)]
    p = ctl.popen("--resume-timeout", "300ms", "cp", directory / "big", f":{directory}/there/big")
    proxy.wait(lambda: proxy.up > 1 << 20, what="bytes")
    proxy.refusing = True
    proxy.wait(lambda: proxy.cuts == 1, what="cut")
    out, err = p.communicate(timeout=60)
    assert p.returncode == 254 and b"incomplete" in err and b"could not be resumed" in err


def test_a_download_that_failed_leaves_nothing(ctl, proxy, directory):
    make_file(directory / "big", 16)
    p = ctl.popen("--resume-timeout", "300ms", "cp", f":{directory}/big", directory / "back")
    proxy.wait(lambda: proxy.down > 4 << 20, what="bytes")
    proxy.refusing = True
    proxy.cut()
    p.communicate(timeout=60)
    assert p.returncode == 254
    assert sorted(x.name for x in directory.iterdir() if "big" not in x.name and not x.name.startswith(".execctl")) == []
    assert not [x for x in directory.iterdir() if x.name.startswith(".execctl-")]
