#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""Connections that drop at random message boundaries and are resumed: nothing
is lost, nothing comes twice."""
import pathlib
import random
import sys
import tempfile
import threading

from torture import Clock, alone, arguments, modes, poll, test_user
from conftest import Server
from load import Load, Worker


class Dropping(Worker):
    """Drops its own connection behind a message of either side."""

    def connect(self):
        super().connect()
        client, send, left = self.client, self.client.send_text, self.random.randrange(1, 30)

        def counted(data):
            nonlocal left
            left -= 1
            send(data)
            if left <= 0:
                client.drop()

        client.send_text = counted


class DroppingLoad(Load):
    worker = Dropping


def drops(mode, user, wanted, sessions, seed):
    """Returns a line of figures."""
    clock = Clock()
    with tempfile.TemporaryDirectory(prefix="execd-drops-") as d:
        directory = pathlib.Path(d)
        directory.chmod(0o777)
        s = Server(mode, user, [], "ws://127.0.0.1:0", None)
        s.token = None
        load = DroppingLoad(s, sessions, directory, seed)
        # From outside, too: behind whatever the server is saying.
        chance, at = random.Random(seed), threading.Event()
        while load.sum("resumes") < wanted:
            load.check()
            w = chance.choice(load.workers)
            if w.client and not at.wait(chance.random() * 0.02):
                w.client.drop()
        load.end()
        assert load.sum("gone") == 0
        resumes, rounds = load.sum("resumes"), load.sum("rounds")
        s.stop()
        poll(lambda: s.child.poll() == 0, what="end")
    return f"{mode}: {resumes} drops and resumes, {rounds} rounds of work; {clock}"


def main():
    alone()
    a = arguments(__doc__.splitlines()[0])
    for mode in modes():
        print(drops(mode, test_user(), max(int(1000 * a.scale), 20), 10, a.seed), flush=True)


if __name__ == "__main__":
    sys.exit(main())
