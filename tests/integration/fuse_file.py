# SPDX-License-Identifier: ISC
"""A file whose last word nobody hears: whoever closes it waits until this program ends, but for Python programs.
fuse(4) without a library: the mounted file is the root of its file system."""
import ctypes
import os
import signal
import struct
import sys

INIT, GETATTR, OPEN, FLUSH, RELEASE, FORGET, INTERRUPT, ENOSYS = 26, 3, 14, 25, 18, 2, 36, 38
ATTR = struct.pack("<QII6Q10I", 3600, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0o100666, 1, 0, 0, 0, 4096, 0)


def mount(path, rootmode="100000"):
    dev = os.open("/dev/fuse", os.O_RDWR)
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={dev},rootmode={rootmode},user_id=0,group_id=0,allow_other"
    if libc.mount(b"none", os.fsencode(path), b"fuse", 6, options.encode()) < 0:
        sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
    return dev


def answer(opcode, pid):
    """The body, an errno, or None: nothing is ever answered."""
    if opcode == INIT:
        return struct.pack("<4I2H2I2H8I", 7, 31, 4096, 0, 0, 0, 4096, 1, 0, 0, *[0] * 8)
    if opcode == GETATTR:
        return ATTR
    if opcode == OPEN:
        return bytes(16)
    if opcode in (FORGET, INTERRUPT):
        return None
    if opcode == FLUSH:
        with open(f"/proc/{pid}/comm") as f:
            return b"" if f.read().startswith("python") else None
    return b"" if opcode == RELEASE else ENOSYS


def serve(dev):
    while True:
        request = os.read(dev, 1 << 17)
        _, opcode, unique, _, _, _, pid = struct.unpack("<IIQQIII", request[:36])
        reply = answer(opcode, pid)
        if reply is None:
            continue
        body, err = (b"", -reply) if isinstance(reply, int) else (reply, 0)
        os.write(dev, struct.pack("<IiQ", 16 + len(body), err, unique) + body)


def main():
    """Becomes the program that is named behind the file, with a child that serves the file as long as it lives."""
    dev = mount(sys.argv[1])
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)     # PR_SET_PDEATHSIG
        serve(dev)
    os.close(dev)
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
