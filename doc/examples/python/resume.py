# SPDX-License-Identifier: ISC
"""Starts a command, goes away, and comes back to it as another client would on another day."""
import execd

box = execd.connect()
box.keep(600, while_running=True)       # ten minutes more than the command
process = box.start("for i in 1 2 3; do echo line $i; sleep 0.1; done; exit 4")
session = box.session_id
box.detach()

with execd.connect(session=session) as box:
    process = box.attach(process.id)
    for output in process:
        print(output.data.decode(), end="")
    print("it ended with", process.wait().exit_code)
    box.end()
