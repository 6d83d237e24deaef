# SPDX-License-Identifier: ISC
"""A file system with a directory d and a script prog, whose server does not answer while a file of the mount point's
name with .away exists; with .once it goes away when the script was opened and closed once. fuse(4) without a library. Prints a line when it is mounted, and ends with its caller."""
import ctypes
import os
import select
import signal
import stat
import struct
import sys

from fuse_file import mount

LOOKUP, FORGET, GETATTR, OPEN, READ, RELEASE, FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR, INTERRUPT, BATCH_FORGET = (
    1, 2, 3, 14, 15, 18, 25, 26, 27, 28, 29, 36, 42)
ENOENT, ENOSYS = 2, 38
SCRIPT = b"#!/bin/sh\necho slow\n"
NAMES = {(1, b"d"): 2, (1, b"prog"): 3}


def attributes(node):
    mode = stat.S_IFREG | 0o755 if node == 3 else stat.S_IFDIR | 0o777
    return struct.pack("<6Q10I", node, len(SCRIPT), 1, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answer(opcode, node, body):
    """The body, or an errno."""
    if opcode == INIT:
        return struct.pack("<4I2H2I2H8I", 7, 31, 4096, 0, 0, 0, 4096, 1, 0, 0, *[0] * 8)
    if opcode == LOOKUP:
        found = NAMES.get((node, body.rstrip(b"\0")))
        return struct.pack("<4Q2I", found, 0, 0, 0, 0, 0) + attributes(found) if found else ENOENT
    if opcode == GETATTR:
        return struct.pack("<QII", 0, 0, 0) + attributes(node)
    if opcode in (OPEN, OPENDIR):
        return bytes(16)
    if opcode == READ:
        at, size = struct.unpack("<QI", body[8:20])
        return SCRIPT[at:at + size]
    return b"" if opcode in (READDIR, RELEASE, RELEASEDIR, FLUSH) else ENOSYS


def reply(dev, request):
    _, opcode, unique, node = struct.unpack("<IIQQ", request[:24])
    result = answer(opcode, node, request[40:])
    body, err = (b"", -result) if isinstance(result, int) else (result, 0)
    try:
        os.write(dev, struct.pack("<IiQ", 16 + len(body), err, unique) + body)
    except FileNotFoundError:
        pass        # who asked was killed


def main():
    away, once, waiting = sys.argv[1] + ".away", sys.argv[1] + ".once", []
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)      # PR_SET_PDEATHSIG
    dev = mount(sys.argv[1], "40000")
    print("mounted", flush=True)
    while True:
        ready = select.select([dev], [], [], 0.02)[0]
        if ready:
            waiting.append(os.read(dev, 1 << 17))
        if os.path.exists(away) and waiting and struct.unpack("<I", waiting[0][4:8])[0] != INIT:
            continue
        for request in waiting:
            if struct.unpack("<I", request[4:8])[0] not in (FORGET, BATCH_FORGET, INTERRUPT):
                reply(dev, request)
            if struct.unpack("<I", request[4:8])[0] == RELEASE and os.path.exists(once):
                os.rename(once, away)
        waiting = []


main()
