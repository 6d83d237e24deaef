# SPDX-License-Identifier: ISC
"""Runs a command in a sandbox: run.py DIRECTORY COMMAND"""
import sys

import execd

with execd.connect() as box:
    r = box.run(sys.argv[2], cwd=sys.argv[1], sandbox="workspace-write")
    print(r.stdout, end="")
    print(r.stderr, end="", file=sys.stderr)
sys.exit(r.exit_code)
