# SPDX-License-Identifier: ISC
"""The servers of tests/integration, and what sandboxes need besides: places
outside /tmp, which most policies open, and the same work done directly.
"""
import contextlib
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

_at = pathlib.Path(__file__).parent.parent / "integration" / "conftest.py"
_spec = importlib.util.spec_from_file_location("integration_conftest", _at)
_integration = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = _integration
_spec.loader.exec_module(_integration)

from integration_conftest import *  # noqa: E402,F401,F403
from integration_conftest import ROOT, as_user  # noqa: E402
from policies import uri  # noqa: E402

ENV = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}


@pytest.fixture(scope="session", autouse=True)
def every_test_needs(sandboxes):
    """A host that can enforce a sandbox; on others execd refuses, which tests/integration sees."""


@contextlib.contextmanager
def temporary(user):
    where = pathlib.Path(tempfile.mkdtemp(prefix="execd-test-", dir="/var/tmp"))
    try:
        if ROOT:
            os.chown(where, user.pw_uid, user.pw_gid)
        yield where
    finally:
        subprocess.run(["chmod", "-R", "u+rwX", where], capture_output=True)
        shutil.rmtree(where, ignore_errors=True)


@pytest.fixture
def place(user):
    """An empty directory of the test user, outside /tmp."""
    with temporary(user) as where:
        yield where


@pytest.fixture(scope="module")
def long_place(user):
    """The same for a whole file of tests."""
    with temporary(user) as where:
        yield where


@pytest.fixture(scope="module")
def session(server):
    """One connection for a whole file of tests."""
    c = server.ready()
    c.server = server
    yield c
    c.drop()


def direct(user, argv, cwd, env=None):
    """The same command as the same user, without execd."""
    pairs = [f"{k}={v}" for k, v in {**ENV, **(env or {})}.items()]
    return subprocess.run(as_user(user, ["env", "-i", *pairs, *argv]), cwd=cwd,
                          stdin=subprocess.DEVNULL, capture_output=True, start_new_session=True)


def prepared(user, script, cwd):
    """The same script in a shell that is there already, and begins when its standard input ends: what it races with is quick."""
    return subprocess.Popen(as_user(user, ["env", "-i", *(f"{k}={v}" for k, v in ENV.items()),
                                           "/bin/bash", "-ec", "echo ready; ! read -r; " + script]),
                            cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)


def as_test_user(user, script, cwd):
    """Prepares something on the disk that belongs to the test user."""
    r = direct(user, ["/bin/bash", "-ec", script], cwd)
    assert r.returncode == 0, (script, r.stdout, r.stderr)
    return r.stdout.decode()


def children(pid):
    try:
        return [int(p) for p in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def name(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


class Shell:
    """Scripts under one policy, one after the other."""
    numbers = iter(range(1 << 30))

    def __init__(self, client, sandbox, cwd, env=None):
        self.client, self.sandbox, self.cwd, self.env = client, sandbox, cwd, {**ENV, **(env or {})}

    def params(self, **extra):
        return {"cwd": uri(self.cwd), "env": self.env, "sandbox": self.sandbox, **extra}

    def id(self):
        return f"s{next(self.numbers)}"

    def start(self, script, **extra):
        """The id of what runs now."""
        id = self.id()
        m = self.client.start(id, ["/bin/bash", "-c", script], **self.params(**extra))
        assert "result" in m, (m, self.log())
        return id

    def log(self):
        """Why: the newest lines of whoever serves it."""
        return getattr(self.client, "server", self.client).__dict__.get("log", "")[-600:]

    def refusal(self, script="true", **extra):
        m = self.client.start(self.id(), ["/bin/bash", "-c", script], **self.params(**extra))
        assert "error" in m, m
        return m["error"]["code"], m["error"]["message"]

    def run(self, script, timeout=30, **extra):
        r = self.client.finished(self.start(script, **extra), timeout)
        r.denied = next(m["params"]["sandboxDenied"] for m in r.events if m["method"] == "process/exited")
        return r

    def __call__(self, script, timeout=30, **extra):
        """What it printed; it must work."""
        r = self.run(script, timeout, **extra)
        assert r.code == 0, (script, r.code, r.stdout, r.stderr)
        return r.stdout
