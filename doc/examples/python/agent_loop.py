# SPDX-License-Identifier: ISC
"""The loop of an agent: a model asks for tools, and they act on the server, in a sandbox. agent_loop.py DIRECTORY

The model here is a list of what it says; a real one gets `results` and answers with the next call."""
import sys

import execd

SCRIPT = [
    ("write", {"path": "sum.py", "text": "print(sum([1, 2, 3]))\n"}),
    ("run", {"command": "python3 sum.py"}),
    ("run", {"command": "touch /etc/passwd"}),          # the sandbox refuses it
    ("run", {"command": "sleep 1000", "timeout": 0.2}),
    ("read", {"path": "missing"}),
]


def act(box: execd.Box, directory: str, tool: str, given: dict) -> dict:
    """What a tool answers. An error of the server is an answer, too; a lost session ends the loop."""
    files = box.sandboxed("workspace-write", directory)
    try:
        if tool == "write":
            files.write(f"{directory}/{given['path']}", given["text"])
            return {"ok": True}
        if tool == "read":
            return {"text": files.read_text(f"{directory}/{given['path']}", max_bytes=100_000)}
        r = box.run(given["command"], cwd=directory, sandbox="workspace-write", timeout=given.get("timeout", 60))
        return {"exit_code": r.exit_code, "stdout": r.stdout[-4000:], "denied": r.sandbox_denied, "timed_out": r.timed_out}
    except (execd.ServerError, execd.LimitExceeded) as e:
        return {"error": str(e), "class": type(e).__name__}


with execd.connect() as box:
    results = []
    for tool, given in SCRIPT:
        results.append(act(box, sys.argv[1], tool, given))
        print(tool, results[-1])
