# SPDX-License-Identifier: ISC
"""The long tests of tests/torture/, for as long as every change can wait: what
a compromised program may send, and connections that drop. The rest, and these
at full length: scripts/torture."""
import pathlib
import sys

import pytest

TORTURE = pathlib.Path(__file__).parents[1] / "torture"
sys.path.insert(0, str(TORTURE))
import attacks  # noqa: E402
import drops  # noqa: E402
import kills  # noqa: E402
import rogue  # noqa: E402
import soak  # noqa: E402
import units  # noqa: E402

SEED = 1


def test_a_compromised_front_end(mode, user):
    rogue.frontend(mode, user, 0.01, SEED)


@pytest.mark.parametrize("hand_over", ["yes", "no"])
def test_a_compromised_runner(mode, user, hand_over):
    rogue.runner(mode, user, 0.01, SEED, hand_over)


@pytest.mark.nightly
def test_programs_that_are_killed_under_load(mode, user):
    """The times are those of an idle machine; here they may be much longer."""
    kills.survivors(mode, user, 8, 3, SEED, 20)
    kills.monitors(mode, user, 2, 3, SEED)


def test_the_units_under_systemd():
    if why := units.missing():
        pytest.skip(f"THE UNITS ARE NOT RUN: {why}")
    units.units(9, 2, 20)


def test_connections_that_drop_anywhere(mode, user):
    drops.drops(mode, user, 30, 6, SEED)


@pytest.mark.nightly
def test_soak(mode, user):
    soak.soak(mode, user, 30)


def test_attacks_between_honest_sessions(mode, user, sandboxes):
    """For a few seconds; scripts/torture goes on for half an hour with each mode, also with sanitizers."""
    attacks.attacks(mode, user, 5, SEED)
