#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""A thousand clients that ask for endless output and read none of it: memory
stays in bounds, and others do not notice.
"""
import sys

from torture import Clock, alone, arguments, modes, test_user
from conftest import Server
from test_ends import slow_readers


def main():
    alone()
    a = arguments(__doc__.splitlines()[0])
    count = max(int(1000 * a.scale), 10)
    for mode in modes():
        clock = Clock()
        s = Server(mode, test_user(), [], "ws://127.0.0.1:0", None)
        grown = slow_readers(s, count)
        s.stop()
        print(f"{mode}: {count} clients that do not read, {grown} KiB more in the front-end; {clock}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
