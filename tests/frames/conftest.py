# SPDX-License-Identifier: ISC
"""The prefix of Wine that all tests share, runners in it, and the table at the end."""
import contextlib
import os
import signal

import pytest
from cases import table
from targets import DESKTOP, LINUX, TARGETS, WINDOWS, Runner, processes, windows

NIGHTLY = bool(os.environ.get("EXECD_TORTURE"))
WORDS = {"passed": "pass", "failed": "FAIL", "skipped": "skip"}
said = {}


def pytest_configure(config):
    config.addinivalue_line("markers", "nightly: takes minutes; only scripts/torture runs it")


def pytest_collection_modifyitems(items):
    if not NIGHTLY:
        for item in items:
            if item.get_closest_marker("nightly"):
                item.add_marker(pytest.mark.skip(reason="LEFT TO scripts/torture windows: it takes minutes"))


def pytest_runtest_logreport(report):
    if "test_row[" in report.nodeid and (report.when == "call" or report.outcome != "passed"):
        said[report.nodeid.split("[")[1][:-1]] = WORDS[report.outcome]


def pytest_terminal_summary(terminalreporter):
    if said:
        terminalreporter.section("runners of frames")
        terminalreporter.write("\n".join(table(TARGETS, said)) + "\n")


@pytest.fixture(scope="session")
def prefix(tmp_path_factory):
    if not WINDOWS:
        yield None
        return
    lacking = windows.missing()
    if lacking:
        pytest.skip(f"not here: {', '.join(lacking)}")
    made = windows.Prefix(tmp_path_factory.mktemp("prefix"), codex="codex" in TARGETS)
    yield made
    made.stop()


def end_what_codex_left(prefix):
    for name, pid in processes(prefix):
        if name in ("codex-command-r", "child.exe"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture
def start(prefix):
    made, asked = [], set()

    def make(target, *args, direct=False, desktop=DESKTOP, account=None):
        asked.add(target)
        if target == "linux":
            argv, env = [str(LINUX), "--stdio"], None
        else:
            program = prefix.runner() if target == "codex" else WINDOWS / "runner/windows/execd-runner.exe"
            argv = [windows.wine(), str(WINDOWS / "tests/frames/parent.exe"), desktop, prefix.name(program), *args]
            if direct:
                argv = [windows.wine(), str(program), *args, "--stdio"]
            env = prefix.env | ({"USER": account} if account else {})  # as Wine knows the user's name
        made.append(Runner(argv, env))
        return made[-1]

    yield make
    for r in made:
        r.child.kill()
        r.child.wait()
    if "codex" in asked:
        end_what_codex_left(prefix)
