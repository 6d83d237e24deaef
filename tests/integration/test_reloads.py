# SPDX-License-Identifier: ISC
"""Many reloads: nothing of a configuration that is not in force any more piles up."""
import os

import pytest
from conftest import ROOT, digest

SESSIONS = 12


def text(user, n):
    return (f"# {n}\n[listener main]\naddress = ws://127.0.0.1:0\n[limits]\nping-interval = {n + 30}s\n"
            f"[identity a]\nuser = {user.pw_name}\ntoken-sha256 = {digest('t')}\n")


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def test_descriptors_do_not_pile_up(configured, user, mode):
    """Sessions of each generation go on, and nothing else of its time is left."""
    if not ROOT:
        pytest.skip("DESCRIPTORS ARE NOT COUNTED: this needs root")
    s = configured(text(user, 0))
    clients = [s.connect(token="t").ready()]
    first = descriptors(s.broker)
    for n in range(1, SESSIONS):
        s.reload(text(user, n), "reload: ")
        clients[-1].wait_closed()
        clients.append(s.connect(token="t").ready())
    # A control channel for each session, and what comes once; another namespace each would be twice that.
    assert descriptors(s.broker) <= first + SESSIONS + 6, os.listdir(f"/proc/{s.broker}/fd")
    for i, c in enumerate(clients):
        if i < SESSIONS - 1:
            c = s.connect(token="t").ready(resumeSessionId=c.session_id)
        assert c.run("x", ["/bin/echo", str(i)]).stdout == f"{i}\n"


def test_who_came_before_a_reload_and_asks_after_it(configured, user, mode):
    """Is told to come again, and not forgotten."""
    s = configured(text(user, 0))
    early = [s.connect(token="t") for _ in range(3)]
    s.reload(text(user, 1), "reload: ")
    for c in early:
        c.wait_closed()
    s.connect(token="t").ready()


def test_many_reloads_in_a_row(configured, user, mode):
    if not ROOT:
        pytest.skip("DESCRIPTORS ARE NOT COUNTED: this needs root")
    s = configured(text(user, 0))
    s.connect(token="t").ready()
    before = descriptors(s.broker), descriptors(s.pid), descriptors(s.frontend())
    for n in range(1, 100):
        s.reload(text(user, n), "reload: ")
    s.connect(token="t").ready()
    after = descriptors(s.broker), descriptors(s.pid), descriptors(s.frontend())
    # A session, a spare runner, and what the first of them brought; each reload that left one would leave 99.
    assert all(n <= m + 10 for n, m in zip(after, before)), (before, after)
