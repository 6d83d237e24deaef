# SPDX-License-Identifier: ISC
"""A disk that takes no more: its writes fail (EIO) or it is full (ENOSPC). Who
wrote is told, and nothing runs without the record that must be there.

The disk lies in a memfd, behind a loop device; a seal breaks it. It is mounted
where nobody but this execd sees it, and every write waits for it."""
import fcntl
import os
import pathlib
import subprocess

import pytest
from conftest import EXECD, ROOT, WRAP, Configured, as_user, digest, poll
from execd_client import b64

MIB = 1 << 20
F_ADD_SEALS, F_SEAL_WRITE = 1033, 8
IO_ERROR = (-32603, "Input/output error (os error 5)")
NO_SPACE = (-32603, "No space left on device (os error 28)")
NO_RECORD = (-32603, "the audit log cannot be written")
MOUNT = 'mount -t ext4 -o sync,errors=continue "$1" "$2" && chmod 777 "$2" && shift 2 && exec "$@"'


def need(*argv):
    """Its output, or all of this is skipped, loudly."""
    try:
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as e:
        pytest.skip(f"BROKEN DISKS ARE NOT TESTED: {argv[0]}: {getattr(e, 'stderr', None) or e}")


class Disk:
    def __init__(self, at):
        self.at = at
        at.mkdir()
        self.fd = os.memfd_create("disk", os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, 8 * MIB)
        file = f"/proc/{os.getpid()}/fd/{self.fd}"
        need("mkfs.ext4", "-q", "-F", "-O", "^has_journal", file)
        self.device = need("losetup", "--find", "--show", file)

    def try_it(self):
        need("unshare", "--mount", "sh", "-c", MOUNT, "sh", self.device, str(self.at), "true")

    def break_it(self):
        fcntl.fcntl(self.fd, F_ADD_SEALS, F_SEAL_WRITE)

    def remove(self):
        subprocess.run(["losetup", "--detach", self.device], check=True)
        os.close(self.fd)


class OnDisk(Configured):
    """An execd that sees the disk."""

    def __init__(self, mode, user, directory, disk, audit=""):
        path = directory / "execd.conf"
        path.write_text(f"[listener main]\naddress = ws://127.0.0.1:0\n[identity a]\nuser = {user.pw_name}\n"
                        f"sandbox-allow-unsandboxed = yes\ntoken-sha256 = {digest('tok-a')}\n{audit}")
        argv = [*WRAP, str(EXECD), "-c", str(path)]
        self._start(mode, ["unshare", "--mount", "sh", "-c", MOUNT, "sh", disk.device, str(disk.at),
                           *(argv if mode == "root" else as_user(user, argv))], None)


@pytest.fixture
def disk(directory):
    if not ROOT:
        pytest.skip("BROKEN DISKS ARE NOT TESTED: a mount needs root")
    d = Disk(directory / "disk")
    try:
        d.try_it()
        yield d
    finally:
        d.remove()


@pytest.fixture
def on_disk(mode, user, directory, disk):
    started = []

    def start(audit=""):
        started.append(OnDisk(mode, user, directory, disk, audit))
        return started[-1]

    yield start
    for s in started:
        s.stop()


def write(c, path, data):
    """None, or the error."""
    m = c.request("fs/writeFile", {"path": f"file://{path}", "dataBase64": b64(data)})
    return (m["error"]["code"], m["error"]["message"]) if "error" in m else None


def test_files_on_a_disk_that_fails(on_disk, disk):
    c = on_disk().connect(token="tok-a").ready()
    assert write(c, disk.at / "before", b"x" * 100) is None
    disk.break_it()
    assert write(c, disk.at / "before", b"y" * 100) == IO_ERROR
    assert write(c, disk.at / "new", b"y" * 100) == IO_ERROR
    assert c.error("fs/createDirectory", {"path": f"file://{disk.at}/d", "recursive": False}) == IO_ERROR
    r = c.run("p", ["/bin/sh", "-c", f"echo z >>{disk.at}/before || echo told"])
    assert r.stdout == "told\n"


def test_files_on_a_full_disk(on_disk, disk):
    c = on_disk().connect(token="tok-a").ready()
    assert write(c, disk.at / "big", b"x" * 10 * MIB) == NO_SPACE
    assert write(c, disk.at / "big", b"x") is None


def test_nothing_runs_without_its_record(on_disk, disk, directory):
    log = disk.at / "audit.jsonl"
    s = on_disk(f"[audit]\nfile = {log}\n")
    c = s.connect(token="tok-a").ready()
    c.sh("runs", "read line; echo $line", pipeStdin=True)
    seen = pathlib.Path(f"/proc/{s.pid}/root{log}")
    poll(lambda: "process-started" in seen.read_text(), what="record")
    # What is seen may not be on the disk yet; now the broker has gone on.
    first = s.connect(token="tok-a").ready()
    disk.break_it()
    with pytest.raises(AssertionError, match=NO_RECORD[1]):
        for i in range(100):
            first.run(f"x{i}", ["/bin/true"])
    # Its session goes on, and what it has started.
    assert first.call("environment/status") == {"status": "ready"}
    s.wait_log(f"audit log {log}: Input/output error")
    # The second time the broker has told all runners of the first.
    for _ in range(2):
        code, message = s.connect(token="tok-a").error("initialize", {"clientName": "x"})
        assert code == NO_RECORD[0] and message.endswith(NO_RECORD[1])
    m = c.start("refused", ["/usr/bin/touch", str(directory / "ran")])
    assert (m["error"]["code"], m["error"]["message"]) == NO_RECORD
    c.write("runs", "still\n")
    c.wait_output("runs", "still")
    assert not (directory / "ran").exists()
    assert s.log.count("Input/output error") == 1, s.log
