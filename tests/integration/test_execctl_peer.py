# SPDX-License-Identifier: ISC
"""execctl against the reference server, when CODEX_BIN names it: it announces
none of execd's own capabilities."""
import os
import subprocess

import pytest
from conftest import poll
from execctl import Execctl, Proxy, digest, environment, make_file

pytestmark = pytest.mark.skipif("CODEX_BIN" not in os.environ, reason="CODEX_BIN names no reference server")


@pytest.fixture(scope="module")
def peer(tmp_path_factory):
    home = tmp_path_factory.mktemp("peer")
    with open(home / "log", "wb") as log:
        child = subprocess.Popen([os.environ["CODEX_BIN"], "exec-server", "--listen", "ws://127.0.0.1:0"],
                                 stdout=subprocess.PIPE, stderr=log, env=environment(home, CODEX_HOME=str(home)))
    yield child.stdout.readline().decode().strip()
    child.terminate()
    child.wait(10)


@pytest.fixture
def proxy(peer):
    p = Proxy(peer)
    yield p
    p.close()


@pytest.fixture
def ctl(proxy, directory):
    return Execctl(directory, proxy.url)


@pytest.mark.parametrize("script, code, out, err", [
    ("echo out; echo err >&2; exit 3", 3, b"out\n", "err\n"),
    ("kill -9 $$", 137, b"", ""),
    ("printf '\\0\\377'", 0, b"\0\xff", ""),
    ("seq 1 50000", 0, "".join(f"{i}\n" for i in range(1, 50001)).encode(), ""),
])
def test_commands(ctl, script, code, out, err):
    r = ctl("run", "sh", "-c", script)
    assert (r.code, r.out, r.err) == (code, out, err)


def test_what_it_cannot_do_is_said(ctl, directory):
    r = ctl("run", "cat", input=b"x")
    assert r.code == 125 and "processCloseStdin" in r.err
    r = ctl("watch", "x", "--process", "p")
    assert r.code in (125, 254)
    r = ctl("run", "/no/such")
    assert r.code == 127
    r = ctl("run", "--timeout", "300ms", "sleep", "100")
    assert r.code == 124
    assert "FAIL" not in ctl.ok("doctor").decode()


def test_a_cut_is_resumed(ctl, proxy, directory):
    p = ctl.popen("run", "sh", "-c", f"echo one; until [ -e {directory}/go ]; do sleep 0.1; done; echo two; exit 3")
    assert p.stdout.readline() == b"one\n"
    proxy.cut()
    (directory / "go").touch()
    assert (p.stdout.read(), p.wait(30)) == (b"two\n", 3)


def test_a_command_is_started_once(ctl, proxy, directory):
    script = f"echo x >> {directory}/count; until [ -e {directory}/go ]; do sleep 0.1; done; echo out; exit 4"
    p = ctl.popen("run", "sh", "-c", script)
    proxy.wait(lambda: proxy.down > 300, what="initialize")
    proxy.swallowing = True
    poll(lambda: (directory / "count").exists(), what="the start")
    proxy.cut_swallowed()
    (directory / "go").touch()
    assert p.wait(30) == 4 and p.stdout.read() == b"out\n"
    assert (directory / "count").read_text() == "x\n"


def test_a_file_survives_cuts(ctl, proxy, directory):
    make_file(directory / "big", 24)
    for args in (("big", f":{directory}/there"), (f":{directory}/there", "back")):
        start, cuts = proxy.up + proxy.down, proxy.cuts
        proxy.cut_at = [start + (n << 23) for n in (1, 2)]
        r = ctl("cp", *args, cwd=directory)
        assert r.code == 0 and proxy.cuts == cuts + 2, r
    assert digest(directory / "there") == digest(directory / "back") == digest(directory / "big")


def test_detach_and_attach(ctl, directory):
    session = ctl.ok("run", "-d", "sh", "-c", "echo hi; sleep 0.5; exit 4").decode().strip()
    assert ctl("attach", session).code == 4


def test_sandbox(ctl, directory):
    r = ctl("run", "--sandbox", "read-only", "-C", directory, "sh", "-c", "echo x > file")
    assert r.code != 0 and not (directory / "file").exists()
