"""Single calls that fail, where that once did harm. Each of them:
scripts/torture faults."""
import pathlib
import sys

import pytest
from conftest import BUILD, EXECD, SANITIZED, Configured
from execd_client import Closed
from test_starter import server, starters  # noqa: F401

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "torture"))
import faults  # noqa: E402

pytestmark = pytest.mark.skipif(
    SANITIZED, reason="FAULTS ARE NOT TESTED: the sanitizer wants the same functions for itself")


def test_an_answer_that_the_monitor_cannot_read(mode, user):
    """A template's, among others: the next session must not get it."""
    for n in range(7, 12):
        delivered, _, wrong = faults.one("execd", "read", mode, user, n)
        assert delivered and not wrong, wrong


class Faulty(Configured):
    """The n-th read of a monitor with a starter fails."""

    def __init__(self, n, path, text, flags):
        path.write_text(text)
        self._start("root", ["env", f"LD_PRELOAD={BUILD}/tests/torture/libfaults.so", "FAULT_KIND=read",
                             f"FAULT_AT={n}", str(EXECD), "-c", str(path), *flags], None)


def test_an_answer_of_the_starter_that_cannot_be_read(server, user):
    """Nor this one."""
    for n in range(6, 11):          # it is one of these, not always the same
        try:
            s = server(lambda mode, user, *rest, n=n: Faulty(n, *rest))
        except AssertionError:
            continue                # it did not start
        try:
            m = s.connect(token="t").request("initialize", {"clientName": "x"})
        except (Closed, OSError):
            m = {}                  # the front-end could not be heard
        if "starting the runner: Input/output error" in str(m):
            assert s.connect(token="t").ready().run("p", ["/bin/echo", "fine"]).stdout == "fine\n"
        s.stop()
        assert "did not end in time" not in s.log, s.log
