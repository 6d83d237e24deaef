# SPDX-License-Identifier: ISC
"""A broker in somebody else's hands, at length: every order in every state, more orders than root will carry out, answers
that nobody reads. What one such message does is in test_sessions_unit.py."""
import contextlib
import errno
import os
import pathlib
import re
import socket
import sys

import pytest
from conftest import children_named, more_rounds, poll
from test_hangs import lingering
from test_sessions_unit import (BEGIN, END, FILE, KILL, LIST, NEXT, OTHER, PIECE, PLACE, PROGRAM, SEAL, START, USER, Rogue, field,
                                file, kept, listed, pieces, place, program, said, seal, sessions, start, u32)

assert sessions     # a fixture

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "torture"))
import rogue_broker  # noqa: E402

ENDING, SERVING, STOP, ALIVE, OPEN, CLOSE, RECORD, RELOAD, RELOADED = 84, 88, 90, 92, 104, 106, 108, 110, 113
# In which states of its sender root carries an order out.
LISTING, SERVES = "listing", "serving"
TABLE = {
    BEGIN: ("new",), FILE: (LISTING,), PLACE: (LISTING,), PIECE: (LISTING, SERVES), USER: (LISTING, SERVES), SEAL: (LISTING,),
    RELOADED: (LISTING,), **dict.fromkeys([NEXT, ENDING, SERVING, START, PROGRAM, OPEN, RECORD, CLOSE, KILL, END, ALIVE, RELOAD, STOP], (SERVES,))}
# Good ones; what they lead to does not end their sender. Of the others no good one can be made here: nothing was listed that
# could be opened or closed, nothing was asked that could be answered, and the sessions of another unit are not to be stopped.
GOOD = {
    BEGIN: said(BEGIN, u32(0)), FILE: file(b"/nonexistent"), PLACE: place(kind=3, path=b"/nonexistent/x"),
    PIECE: pieces(LIST)[0], USER: listed(OTHER), SEAL: seal(), RELOADED: said(RELOADED, u32(0), bytes(8180)), NEXT: kept(),
    ENDING: said(ENDING), SERVING: said(SERVING, u32(1)), START: start(), PROGRAM: program(0), KILL: said(KILL, u32(1)),
    RELOAD: said(RELOAD)}
NO_GOOD = {OPEN: said(OPEN, u32(0)), CLOSE: said(CLOSE, u32(0)), RECORD: said(RECORD, u32(0), field(b"x", 64)),
           END: said(END, u32(1)), ALIVE: said(ALIVE), STOP: said(STOP, u32(0))}


def sender(sessions, state):
    if state == "new":
        return Rogue(sessions, begin=False)
    r = Rogue(sessions)
    return r.seal() if state == SERVES else r


def say(r, what):
    if what == USER:
        r.send(GOOD[PIECE])
    r.send(GOOD[what] if what in GOOD else NO_GOOD[what])


# Something good for both states, what answers it, and how many answers to what went before look the same.
QUESTIONS = {LISTING: (file(b"/nonexistent/too"), FILE), SERVES: (kept(1), NEXT)}


def still_there(r, state, after=None):
    """Root carries orders out one after the other: its answer to this one says that those before were good."""
    question, what = QUESTIONS[state]
    r.send(question)
    answers = 2 if (state, after) in ((LISTING, FILE), (LISTING, PLACE), (SERVES, NEXT)) else 1
    while answers > 0 and (answer := r.s.recv(8192)):
        answers -= answer[:4] == u32(what + 1)
    return answers == 0


@pytest.mark.parametrize("state", ["new", LISTING, SERVES])
def test_every_order_in_every_state(sessions, state):
    """One that is not for this state is its sender's end, however good it is; root goes on."""
    lines = 0
    for what in [*TABLE, 1, 71, 74, 76, 79, 93, 101, 111, 112, 999]:
        r = sender(sessions, state)
        if what in GOOD and state in TABLE[what]:
            say(r, what)
            # The state may be another one now.
            now = {BEGIN: LISTING, SEAL: SERVES}.get(what, state)
            assert still_there(r, now, what), what
        else:
            say(r, what) if what in TABLE else r.send(said(what))
            assert r.ended(), what
            lines += 1
        r.s.close()
    poll(lambda: sessions.log.count("impossible command") == lines, what="a line for each")
    assert sessions.child.poll() is None


def test_more_runners_than_a_second_permits(sessions):
    """Refused, counted, said once in a second; and one that asks for fewer is served. Nearly all fail for a limit that no
    control group can have: a machine under load could not start so many."""
    r = Rogue(sessions)
    r.list(listed(OTHER, tasks=0xffffffff), LIST)
    r.list(listed(OTHER, number=1), LIST)
    r.send(seal())
    assert r.s.recv(8192) == said(SEAL + 1)
    def ask(user):
        r.answer_pings()
        r.send(start(user))
        return int.from_bytes((answer := r.s.recv(8192))[8:12], "little"), answer

    if ask(0)[0] == 0:
        pytest.skip("TOO MANY RUNNERS ARE NOT TESTED: no control groups here, so each would be started")
    answers = [ask(0) for _ in range(5000)]
    refused = [text for err, text in answers if err == errno.EAGAIN]
    assert refused and b"more than 1000 runners in a second" in refused[0], answers[-1]
    poll(lambda: ask(1)[0] == 0, what="a start in the next second")
    poll(lambda: re.search(r"\d+ runners more than 1000 in a second were refused", sessions.log), what="the count")


def group(r):
    """The number of the control group of a runner that is started."""
    r.send(start())
    answer = r.s.recv(8192)
    assert answer[:12] == said(START + 1, u32(0))
    return int.from_bytes(answer[88:96], "little")


def test_every_group_is_a_new_one(sessions):
    """Two sessions never share a control group, whose owner could be another user then: root numbers them, over brokers."""
    r = Rogue(sessions).seal()
    assert [group(r), group(r)] == [1, 2]
    r.s.close()
    assert group(Rogue(sessions).seal()) == 3


def test_a_broker_that_reads_no_answers(sessions):
    """Its channel fills, which is its end; root keeps nothing of it and serves the next."""
    r = Rogue(sessions).seal()
    n = 0
    with pytest.raises((ConnectionError, BrokenPipeError)):
        for n in range(1000000):
            r.send(kept())
    assert n < 100000
    assert still_there(Rogue(sessions).seal(), SERVES)


def kept_nulls(pid):
    found = 0
    for f in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found += os.readlink(f) == "/dev/null"
    return found


@pytest.mark.parametrize("state", ["new", LISTING, SERVES])
def test_an_empty_message_leaves_no_descriptor(sessions, state):
    """It is the end of its sender, whatever comes with it."""
    null = os.open("/dev/null", os.O_RDONLY)
    for _ in range(10):
        sender(sessions, state).send(b"", null, null)
    os.close(null)
    Rogue(sessions).seal()
    # Root has a few of its own.
    poll(lambda: kept_nulls(sessions.pid) < 10, what="end of what was sent")


def test_a_program_that_is_killed_at_birth(sessions):
    """It leaves nobody: what it had started for its user namespace ends with it."""
    r = Rogue(sessions).seal()
    for i in range(more_rounds(200, 1500)):
        rogue_broker.run_and_end(r, rogue_broker.NAMESPACE)
        if i % 10 == 0:
            r.answer_pings()
    children = pathlib.Path(f"/proc/{sessions.pid}/task/{sessions.pid}/children")
    poll(lambda: not children.read_text().split(), what="end of root's children")


def test_a_million_messages(sessions):
    """A thousandth of scripts/torture's."""
    rogue_broker.permitted(sessions, 2000, 1)
    rogue_broker.arbitrary(sessions, 300, 1)


def test_nothing_of_a_rogue_outlives_it(sessions):
    """Runners that it started and never spoke to are killed with root, and another broker is offered them."""
    r = Rogue(sessions).seal()
    r.send(start())
    assert r.s.recv(8192)[:12] == said(START + 1, u32(0))
    r.s.close()
    again = Rogue(sessions).seal()
    again.send(said(NEXT, u32(0)))
    kept = again.s.recv(8192)
    assert kept[:4] == u32(NEXT + 1) and kept[16:24] == (1).to_bytes(8, "little") and b"0123" in kept
    runner = poll(lambda: children_named(sessions.pid, "execd-runner"), what="its new name")
    assert len(runner) == 1


@pytest.mark.parametrize("where", ["commands", "events"])
def test_no_descriptor_stops_root(sessions, where):
    """One that blocks whoever closes it is not received; a process of its own has the channel when it is closed."""
    r = Rogue(sessions).seal()
    given, sink = lingering()
    with sink:
        socket.send_fds(r.s if where == "commands" else r.mine, [kept()], [given.fileno()])
        given.close()
        if where == "events":
            r.send(said(999))
        assert r.ended()
        # No answer takes a tenth of the minute that it lingers.
        Rogue(sessions).seal().s.settimeout(5)
