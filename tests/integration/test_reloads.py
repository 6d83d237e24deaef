"""Many reloads: nothing of a configuration that is not in force any more piles up."""
import os
import pathlib

import pytest
from conftest import ROOT, digest, poll

SESSIONS = 12


def text(user, n):
    return (f"# {n}\n[listener main]\naddress = ws://127.0.0.1:0\n[limits]\nping-interval = {n + 30}s\n"
            f"[identity a]\nuser = {user.pw_name}\ntoken-sha256 = {digest('t')}\n")


def children(pid, name):
    found = 0
    for p in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        try:
            found += pathlib.Path(f"/proc/{p}/cmdline").read_bytes().split(b"\0")[1:2] == [b"--template"] and \
                pathlib.Path(f"/proc/{p}/comm").read_text() == name + "\n"
        except OSError:     # it is gone by now
            pass
    return found


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def test_templates_and_descriptors_do_not_pile_up(configured, user, mode):
    """Sessions of each generation go on: each keeps its identity, and nothing else of its time."""
    if not ROOT:
        pytest.skip("DESCRIPTORS ARE NOT COUNTED: this needs root")
    s = configured(text(user, 0))
    clients = [s.connect(token="t").ready()]
    poll(lambda: children(s.pid, "execd-template") == 1, what="template")
    first = descriptors(s.pid)
    for n in range(1, SESSIONS):
        s.reload(text(user, n), "reload: ")
        clients.append(s.connect(token="t").ready())
    poll(lambda: children(s.pid, "execd-template") == 1, what="end of the other templates")
    # A control channel for each session, and what comes once; another template and namespace each would be twice that.
    assert descriptors(s.pid) <= first + SESSIONS + 6, os.listdir(f"/proc/{s.pid}/fd")
    for i, c in enumerate(clients):
        assert c.run("x", ["/bin/echo", str(i)]).stdout == f"{i}\n"


def test_who_came_before_a_reload_and_asks_after_it(configured, user, mode):
    if not ROOT:
        pytest.skip("TEMPLATES ARE NOT COUNTED: this needs root")
    s = configured(text(user, 0))
    early = [s.connect(token="t") for _ in range(3)]
    s.reload(text(user, 1), "reload: ")
    for c in early:
        assert c.ready().run("x", ["/bin/echo", "in"]).stdout == "in\n"
    s.connect(token="t").ready()
    poll(lambda: children(s.pid, "execd-template") == 1, what="one template")


def test_many_reloads_in_a_row(configured, user, mode):
    if not ROOT:
        pytest.skip("DESCRIPTORS ARE NOT COUNTED: this needs root")
    s = configured(text(user, 0))
    s.connect(token="t").ready()
    before = descriptors(s.pid), descriptors(s.frontend())
    for n in range(1, 100):
        s.reload(text(user, n), "reload: ")
    s.connect(token="t").ready()
    after = descriptors(s.pid), descriptors(s.frontend())
    # A session, a spare runner, and what the first of them brought; each reload that left one would leave 99.
    assert after[0] <= before[0] + 10 and after[1] <= before[1] + 10, (before, after)
