# SPDX-License-Identifier: ISC
"""Nobody has a limit that nobody set, with a sandbox or without; and whoever has one lives within it or is told."""
import os
import re
import shutil

import pytest
from conftest import SANITIZED
from test_ceiling import policy, start, work  # noqa: F401
from test_groups import groups

GIB = 1 << 30
LIMIT = 400 << 20
PYTHON = ["/usr/bin/python3", "-c"]
TOUCH = "n = {bytes}\nx = bytearray(n)\nfor i in range(0, n, 4096): x[i] = 1\nprint('touched')"
THREADS = """
import threading
over = threading.Event()
try:
    for i in range(700):
        threading.Thread(target=over.wait, daemon=True).start()
    print("started")
except RuntimeError as e:
    print(e)
over.set()
"""
OPEN = "allow-unsandboxed = yes\nmax-profile = managed\n"


def available():
    with open("/proc/meminfo", encoding="ascii") as f:
        return int(re.search(r"MemAvailable: +(\d+)", f.read())[1]) << 10


@pytest.fixture(params=["plain", "held"])
def extra(request, work):
    return {"cwd": f"file://{work}", **({"sandbox": policy(work)} if request.param == "held" else {})}


def run(client, id, argv, extra):
    m = client.start(id, argv, **extra)
    assert "result" in m, m
    r = client.finished(id, 60)
    return r, client.call("process/wait", {"processId": id})


def counts(client, name):
    """Whether a group of this session's commands counts it: root's, or one that was delegated."""
    m = client.start("ask", ["/bin/true"], cwd=client.work, sandbox=policy(client.work_path))
    client.finished("ask")
    return name in m["result"]["sandbox"]["enforced"]["controlGroupLimits"]


@pytest.fixture
def limited(start, work):
    c = start(OPEN, f"command-memory-max = {LIMIT >> 20}M\ncommand-tasks-max = 100\n")
    c.work_path, c.work = work, f"file://{work}"
    return c


def test_much_memory_without_a_limit(start, extra):
    if available() < 3 * GIB:
        pytest.skip("NOT TESTED: 3 GiB of memory are not free here")
    r, end = run(start(OPEN), "big", [*PYTHON, TOUCH.format(bytes=3 * GIB // 2)], extra)
    assert (r.stdout, r.code, end["oomKilled"]) == ("touched\n", 0, False), (r, end)


def test_many_threads_without_a_limit(start, extra):
    r, _ = run(start(OPEN), "threads", [*PYTHON, THREADS], extra)
    assert (r.stdout, r.code) == ("started\n", 0), r


@pytest.mark.skipif(SANITIZED, reason="A SANITIZER TAKES THE REPORT")
def test_much_memory_under_a_limit(limited, extra):
    grouped = counts(limited, "memoryBytes")
    if not grouped and "sandbox" not in extra:
        pytest.skip("NOT TESTED: no group counts memory here, and nothing holds who has no sandbox")
    r, end = run(limited, "big", [*PYTHON, TOUCH.format(bytes=3 * GIB // 2)], extra)
    if grouped:
        assert (r.code, end["oomKilled"], end["signal"]) == (137, True, "KILL"), (r, end)
    else:
        assert r.code == 1 and "MemoryError" in r.stderr, r
    r, _ = run(limited, "small", [*PYTHON, TOUCH.format(bytes=LIMIT // 4)], extra)
    assert (r.stdout, r.code) == ("touched\n", 0), r


def test_many_threads_under_a_limit(limited, extra):
    if not counts(limited, "processes"):
        pytest.skip("NOT TESTED: no group counts processes here")
    r, _ = run(limited, "threads", [*PYTHON, THREADS], extra)
    assert (r.stdout, r.code) == ("can't start new thread\n", 0), r


NODE = "const b = Buffer.alloc(64 << 20, 1); console.log(b.length >> 20, 'MiB')"


@pytest.mark.skipif(not shutil.which("node"), reason="NOT TESTED: node is not installed")
@pytest.mark.parametrize("limit", [False, True])
def test_node(start, limited, extra, limit):
    """It reserves far more address space than it may use."""
    c = limited if limit else start(OPEN)
    r, _ = run(c, "node", [shutil.which("node"), "-e", NODE], extra)
    assert (r.stdout, r.code) == ("64 MiB\n", 0), r


def largest_heap(client, extra):
    r, _ = run(client, "java", [shutil.which("java"), "-XX:+PrintFlagsFinal", "-version"], extra)
    assert r.code == 0, r
    return int(re.search(r"\bMaxHeapSize += (\d+)", r.stdout)[1])


@pytest.mark.skipif(not shutil.which("java"), reason="NOT TESTED: java is not installed")
def test_java(start, limited, extra):
    """It takes a quarter of the memory that it sees for its heap, or half if that is little."""
    assert largest_heap(start(OPEN), extra) > LIMIT or available() < 4 * LIMIT
    if not counts(limited, "memoryBytes"):
        pytest.skip("NOT TESTED: no group counts memory here")
    held = largest_heap(limited, extra)
    if "sandbox" in extra and "memory" in groups(os.getpid()):
        pytest.skip("NOT TESTED: a sandbox does not show groups of version 1")
    assert held <= LIMIT // 2, "it sees the limit"
