# SPDX-License-Identifier: ISC
"""The kernel counts what a user watches with epoll(7): one command of the user may take all of it. The runner and what
it starts go on with poll(2)."""
import os
import pathlib
import signal
import sys

import pytest

from conftest import BUILD
from netproxy_program import origin  # noqa: F401
from test_network_lists import own, run

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "torture"))
import faults  # noqa: E402
from torture import Tree  # noqa: E402

SAID = "as much with epoll as fs.epoll.max_user_watches permits; going on with poll"


@pytest.fixture
def starved(mode, user):
    with Tree(execd_runner=BUILD / "tests/torture/no_watches") as tree:
        s = tree.serve(mode, user)
        s.file = tree.path / "file"
        s.file.write_bytes(faults.FILE)
        s.file.chmod(0o644)
        yield s
        s.stop()


def test_a_session_without_watches(starved, sandboxes):
    """Commands with pipes and with a terminal, in a sandbox and without; files of both; a request of HTTP."""
    for _ in range(2):
        faults.session(starved.url, starved.file, http=True, sandboxed=True)
    assert starved.log.count(SAID) >= 2, starved.log


def test_many_at_once(starved):
    c = starved.ready()
    for n in range(100):
        c.sh(f"p{n}", f"cat; echo {n}", pipeStdin=True)
    for n in reversed(range(100)):
        c.write(f"p{n}", "x")
        c.call("process/closeStdin", {"processId": f"p{n}"})
    assert [c.finished(f"p{n}").stdout for n in range(100)] == [f"x{n}\n" for n in range(100)]


def test_a_list_of_hosts_without_watches(starved, sandboxes, origin):  # noqa: F811
    c, o = starved.ready(), origin()
    lines, _ = run(c, "p", f"get=http://127.0.0.1:{o.port}/", f"connect=127.0.0.1:{o.port}",
                   **own(f"127.0.0.1:{o.port}"))
    assert [line[0] for line in lines] == [200, 200], lines
    assert starved.log.count(SAID) >= 2, starved.log


def test_an_ordinary_users_execd_without_watches(mode, user):
    """Its broker and its front-end have the user of the commands: they begin, serve and go on with sessions of the broker before."""
    if mode == "root":
        pytest.skip("root's broker and front-end have users of their own")
    without = BUILD / "tests/torture/no_watches"
    with Tree(execd_broker=without, execd_frontend=without) as tree:
        s = tree.serve(mode, user)
        try:
            path = tree.path / "file"
            path.write_bytes(faults.FILE)
            path.chmod(0o644)
            c = s.ready()
            faults.session(s.url, path, http=True, sandboxed=False)
            os.kill(s.broker, signal.SIGKILL)
            s.wait_log(": adopted, of ")
            c.drop()
            again = s.connect().ready(resumeSessionId=c.session_id)
            assert again.run("p", ["/bin/echo", "fine"]).stdout == "fine\n"
        finally:
            s.stop()
        assert "killing it" not in s.log and "exited with status" not in s.log, s.log
