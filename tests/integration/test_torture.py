"""The long tests of tests/torture/, for as long as every change can wait. At
full length: scripts/torture."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "torture"))
import rogue  # noqa: E402

SEED = 1


def test_a_compromised_front_end(mode, user):
    rogue.frontend(mode, user, 0.01, SEED)


def test_a_compromised_runner(mode, user):
    rogue.runner(mode, user, 0.01, SEED)
