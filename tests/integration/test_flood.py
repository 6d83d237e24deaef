# SPDX-License-Identifier: ISC
"""Sources in network namespaces of their own: what one does is not held against
another, and a flood from many hurts nobody honest. tests/torture/flood.py does
the same at full length."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from conftest import BUILD, ROOT, SANITIZED

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "torture"))
import flood  # noqa: E402


@pytest.fixture
def network():
    if not ROOT or not shutil.which("ip"):
        pytest.skip("SOURCES IN NETWORK NAMESPACES ARE NOT TESTED: this needs root and iproute2")
    try:
        made = flood.Network(["h", "a0"])
    except (OSError, subprocess.CalledProcessError) as e:
        pytest.skip(f"SOURCES IN NETWORK NAMESPACES ARE NOT TESTED: {getattr(e, 'stderr', e)}")
    yield made
    made.close()


def test_penalties_are_one_address_s_or_one_network_s(network, directory):
    """An IPv4 address; of IPv6 the 64 bits that one customer has."""
    os.chmod(directory, 0o755)
    child, authority = flood.start_server(network, BUILD, directory, "penalty-authentication = 1m\n")
    try:
        good, bad = flood.TOKEN, "wrong"
        tries = [
            ("10.78.1.5", bad, 401), ("10.78.1.5", good, None), ("10.78.1.6", good, 101), ("10.78.1.4", good, 101),
            ("fd78:1:0:7::1", bad, 401), ("fd78:1:0:7::1", good, None), ("fd78:1:0:7:ffff::2", good, None),
            ("fd78:1:0:8::1", good, 101), ("fd78:1:0:6::1", good, 101), ("fd78:1:0:8::2", bad, 401),
            ("fd78:1:0:8::1", good, None), ("fd78:1:1:8::1", good, 101), ("10.78.1.5", good, None)]
        got = flood.result(flood.part(network, "a0", "probe", i=1, tries=[t[:2] for t in tries], ca=str(authority.cert)), 60)
        assert got == [t[2] for t in tries], list(zip(tries, got))
        # And not of another link, whatever its address looks like.
        tries = [("10.78.0.5", good), ("fd78:0:0:7::1", good)]
        assert flood.result(flood.part(network, "h", "probe", i=0, tries=tries, ca=str(authority.cert)), 60) == [101, 101]
    finally:
        assert flood.stop(child) == 0
    assert (directory / "log").read_text().count("too many failures from there") == 3


def test_a_flood_from_many_sources(network):
    """A short one: every honest client gets what it asked for."""
    network.close()
    rate, clients = (150, 20) if SANITIZED else (400, 40)
    r = flood.flood(BUILD, 5, rate, clients, 6)
    # How fast a busy machine can flood itself is not the question here.
    assert not flood.verdict(r, rate / 4, clients), r
