# SPDX-License-Identifier: ISC
"""Fleets for the tests: the servers and clients of tests/integration, behind a
real HAProxy. Without root or HAProxy nothing here is tested, and the run says so.
"""
import importlib.util
import os
import pathlib
import sys
import tempfile

import pytest

_at = pathlib.Path(__file__).parent.parent / "integration" / "conftest.py"
sys.path.insert(0, str(_at.parent))
_spec = importlib.util.spec_from_file_location("integration_conftest", _at)
_integration = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = _integration
_spec.loader.exec_module(_integration)

from integration_conftest import *  # noqa: E402,F401,F403
from integration_conftest import ROOT  # noqa: E402
from fleet import HAPROXY, Files, Fleet, Net  # noqa: E402


@pytest.fixture(scope="session")
def net():
    if not ROOT:
        pytest.skip("FLEETS ARE NOT TESTED: their hosts are namespaces, which need root")
    if HAPROXY is None:
        pytest.skip("FLEETS ARE NOT TESTED: the package haproxy is missing")
    n = Net()
    with n.entered():
        yield n
    n.close()


@pytest.fixture(scope="session")
def files(net, user):
    with tempfile.TemporaryDirectory(prefix="execd-fleet-") as d:
        os.chmod(d, 0o755)
        yield Files(pathlib.Path(d), user)


@pytest.fixture
def fleet(net, files, directory):
    f = Fleet(net, files, directory)
    yield f
    f.close()
