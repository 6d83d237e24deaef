"""Single calls that fail, where that once did harm. Each of them:
scripts/torture faults."""
import pathlib
import sys

import pytest
from conftest import SANITIZED

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "torture"))
import faults  # noqa: E402

pytestmark = pytest.mark.skipif(
    SANITIZED, reason="FAULTS ARE NOT TESTED: the sanitizer wants the same functions for itself")


def test_an_answer_that_the_monitor_cannot_read(mode, user):
    """A template's, among others: the next session must not get it."""
    for n in range(7, 12):
        delivered, _, wrong = faults.one("execd", "read", mode, user, n)
        assert delivered and not wrong, wrong
