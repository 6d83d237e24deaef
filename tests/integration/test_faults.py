# SPDX-License-Identifier: ISC
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


@pytest.mark.parametrize("program, first", [("execd-broker", 30), ("execd", 4)])
def test_what_root_and_broker_cannot_read_of_each_other(mode, user, program, first):
    """An answer to an order, among others: the next session must not get it."""
    for n in range(first, first + 5):
        delivered, _, wrong = faults.one(program, "read", mode, user, n)
        assert delivered and not wrong, wrong
