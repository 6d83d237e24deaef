# SPDX-License-Identifier: ISC
"""Uploads that never pause: what the runner keeps of them, whatever the helper's pace."""
import base64
import hashlib
import os
import signal
import threading

import pytest
from conftest import ROOT, SANITIZED, poll
from test_files import uri

CHUNK = 256 << 10
MIB = 1 << 20
GROWTH_MIB = 16     # of the runner, for any upload
MANY = 64           # blocks, 22 MiB of requests


def rss(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) << 10 for line in f if line.startswith("VmRSS"))


def helpers(runner):
    """The runner's file helpers."""
    found = []
    for pid in os.listdir("/proc"):
        try:
            with open(f"/proc/{pid}/stat") as stat, open(f"/proc/{pid}/cmdline", "rb") as cmdline:
                if int(stat.read().rpartition(")")[2].split()[1]) == runner and b"--files" in cmdline.read():
                    found.append(int(pid))
        except (OSError, ValueError):
            pass
    return found


def switches(pid):
    """How often the processor was given to a process and taken from it."""
    with open(f"/proc/{pid}/status") as f:
        return sum(int(line.split()[1]) for line in f if "ctxt_switches" in line)


class Stutter:
    """Stops a process and lets it go on, again and again, until it is left. It gets something done each time, however
    busy the machine is: a helper that does nothing for 10 seconds would be replaced."""

    def __init__(self, pid):
        self.pid, self.over = pid, threading.Event()
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        while not self.over.is_set():
            os.kill(self.pid, signal.SIGSTOP)
            self.over.wait(0.01)
            before = switches(self.pid)
            os.kill(self.pid, signal.SIGCONT)
            while switches(self.pid) < before + 2 and not self.over.is_set():   # it came, and it went
                self.over.wait(0.0005)     # less than it takes for all that waits

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def upload(c, path, total):
    """Pipelined blocks: there is always another one under way. The digest of what was sent, and answers that are errors."""
    assert "result" in c.request("fs/open", {"handleId": "h", "path": uri(path), "mode": "replace"})
    digest, ids = hashlib.sha256(), []
    for offset in range(0, total, CHUNK):
        data = os.urandom(CHUNK)
        digest.update(data)
        ids.append(c.post("fs/writeBlock", {"handleId": "h", "offset": offset,
                                            "chunk": base64.b64encode(data).decode()}))
    answers = [c.answer(id) for id in ids]
    c.call("fs/close", {"handleId": "h"})
    return digest.hexdigest(), [a for a in answers if "error" in a]


@pytest.mark.skipif(SANITIZED, reason="MEMORY IS NOT MEASURED: a sanitizer keeps what was freed")
def test_a_long_upload_is_not_kept(server, directory, user):
    """The queue for the helper is never empty, and yet what was sent is dropped."""
    path, total = directory / "file", 96 * MIB
    os.chown(directory, user.pw_uid, user.pw_gid) if ROOT else None
    c = server.ready()
    runner = server.runner(c)
    assert upload(c, path, MIB)[1] == []
    before = rss(runner)
    with Stutter(poll(lambda: helpers(runner))[0]):
        most, done = [0], threading.Event()

        def watch():
            while not done.is_set():
                most[0] = max(most[0], rss(runner))
                done.wait(0.01)

        watching = threading.Thread(target=watch)
        watching.start()
        digest, errors = upload(c, path, total)
        done.set()
        watching.join()
    assert errors == []
    assert hashlib.sha256(path.read_bytes()).hexdigest() == digest
    assert most[0] - before < GROWTH_MIB * MIB, f"the runner grew by {(most[0] - before) >> 20} MiB"


def test_a_helper_that_stopped_stops_its_client(server, directory, user):
    """What waits for it is bounded: the client's socket fills up, and other sessions notice nothing."""
    os.chown(directory, user.pw_uid, user.pw_gid) if ROOT else None
    c = server.ready()
    runner = server.runner(c)
    assert upload(c, directory / "first", MIB)[1] == []
    helper, = helpers(runner)
    before = rss(runner)
    assert "result" in c.request("fs/open", {"handleId": "h", "path": uri(directory / "file"), "mode": "replace"})
    os.kill(helper, signal.SIGSTOP)
    try:
        block = base64.b64encode(os.urandom(CHUNK)).decode()
        ids = []
        sending = threading.Thread(target=lambda: ids.extend(c.post(
            "fs/writeBlock", {"handleId": "h", "offset": i * CHUNK, "chunk": block}) for i in range(MANY)))
        sending.start()
        other = server.ready()
        assert other.run("x", ["/bin/echo", "in"]).stdout == "in\n"
        sending.join(1)     # the client is held back: its socket takes no more
        assert sending.is_alive() and rss(runner) - before < GROWTH_MIB * MIB
    finally:
        os.kill(helper, signal.SIGCONT)
    sending.join()
    assert all("result" in c.answer(id) for id in ids)
    assert (directory / "file").stat().st_size == MANY * CHUNK
