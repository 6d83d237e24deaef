# SPDX-License-Identifier: ISC
"""Replacement under load (tests/torture/replace.py), for as long as every change can wait."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "torture"))
import replace  # noqa: E402


def test_replacement_under_load(mode, user):
    """The times are those of an idle machine; here they may be longer."""
    replace.replace(mode, user, 20, kills=2, reloads=2, reexecs=2, stops=0, seed=1, patience=10)
