# SPDX-License-Identifier: ISC
"""What a sanitizer finds in any program of execd is in the log, where the end of each test looks for it: a program that
died is replaced, and no client notices it."""
import os
import signal

import pytest
from conftest import SANITIZED, Server, children_named, poll, sanitizer_said
from test_files import uri

pytestmark = pytest.mark.skipif(not SANITIZED, reason="SANITIZERS ARE NOT TESTED: this build has none")


def file_helper(server, c, directory):
    c.call("fs/readDirectory", {"path": uri(directory)})
    return children_named(server.runner(c), "execd-files")[0]


PROGRAMS = {
    "execd-broker": lambda s, c, d: s.broker,
    "execd-frontend": lambda s, c, d: s.frontend(),
    "execd-runner": lambda s, c, d: s.runner(c),
    "execd-files": file_helper,
}


@pytest.fixture
def server(mode, user):
    """Its end is a part of the test."""
    s = Server(mode, user, [], "ws://127.0.0.1:0", None)
    yield s
    s.child.kill()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_report_is_in_the_log(server, directory, name):
    c = server.ready()
    os.kill(PROGRAMS[name](server, c, directory), signal.SIGSEGV)
    poll(lambda: sanitizer_said(server.log), what="a report")
    with pytest.raises(AssertionError, match="Sanitizer"):
        server.stop()
