# SPDX-License-Identifier: ISC
"""What a session without work keeps for itself: only root may read it."""
import pathlib
import re
import subprocess

import pytest
from conftest import BUILD, ROOT, SANITIZED, children_named, poll

# Pages of its own, in KiB. What it shares with the other runners is not in it.
OWN_KIB = 128


def dynamic():
    out = subprocess.run(["readelf", "-d", str(BUILD / "runner/execd-runner")], check=True, capture_output=True, text=True)
    return "NEEDED" in out.stdout


def own_kib(pid):
    return int(re.search(r"^Private_Dirty:\s+(\d+)", pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M)[1])


@pytest.mark.skipif(not ROOT, reason="MEMORY OF A HIDDEN PROCESS IS NOT READ: this needs root")
@pytest.mark.skipif(SANITIZED or dynamic(), reason="MEMORY IS NOT MEASURED: shared libraries have data of their own")
def test_an_idle_session_keeps_little(spawn):
    """Soon after its last work it has given back what it can: see heap.h."""
    s = spawn()
    s.ready()
    sizes = {}

    def small():
        sizes.update((pid, own_kib(pid)) for pid in children_named(s.pid, "execd-runner"))
        return sizes and all(size <= OWN_KIB for size in sizes.values())

    try:
        poll(small, what="little memory")
    finally:
        print("KiB of each runner:", sizes)
