# SPDX-License-Identifier: ISC
"""The stdio transport (doc/protocol.md section 1.4, Q12, Q25)."""
import json

import pytest
from conftest import poll, pids_with
from execd_client import start_params


def test_lines(stdio):
    c = stdio()
    c.send_bytes(b'\n  \n\r\n{"id":1,"method":"nope"}\r\n\n{"id":2,"me')
    assert c.answer(1)["error"]["code"] == -32601
    c.send_bytes(b'thod":"nope"}\n{"id":3,"method":"nope"}{"id":4,"method":"nope"}\n')
    assert c.answer(2)["error"]["code"] == -32601
    assert c.answer(-1)["error"]["message"].startswith("failed to parse JSON-RPC message from exec-server stdio: trailing")
    c.next_id = 100
    c.ready()
    assert c.run_sh("a", "echo hi; exit 3").code == 3
    assert c.close() == 0


def test_end_of_input_answers_what_was_read(stdio):
    """Q12: every complete line is answered before the end, an unfinished one is not."""
    c = stdio()
    lines = [{"id": 1, "method": "initialize", "params": {"clientName": "x"}}, {"method": "initialized"}]
    lines += [{"id": i, "method": "nope"} for i in range(2, 3000)]
    lines += [{"id": 3000, "method": "process/start", "params": start_params("a", ["sleep", "4321.5"])},
              {"id": 3001, "method": "process/read", "params": {"processId": "a", "waitMs": 60000}},
              {"id": 3002, "method": "fs/readFile", "params": {"path": "file:///etc/hostname"}}]
    c.send_bytes("".join(json.dumps(m) + "\n" for m in lines).encode() + b'{"id":9999,"method":"nope"}')
    assert c.close() == 0
    assert sorted(m["id"] for m in c.messages if "id" in m) == list(range(1, 3003))
    poll(lambda: not pids_with("4321.5"), what="the command to be gone")


def test_end_of_input_before_a_session(stdio):
    c = stdio()
    c.send_bytes(b'{"id":1,"method":"nope"}\n')
    assert c.close() == 0
    assert [m["id"] for m in c.messages] == [1]
    assert stdio().close() == 0


@pytest.mark.parametrize("line", [b'{"method":"foo"}\n', b'\xff\xfe\n', b'{"id":1,"result":1}\n'])
def test_a_violation_ends_at_once(stdio, line):
    """Q25: without waiting for more input."""
    c = stdio().ready()
    c.sh("a", "sleep 4321.6")
    c.send_bytes(line)
    assert c.wait_closed()["code"] == 0
    poll(lambda: not pids_with("4321.6"), what="the command to be gone")


def test_a_line_may_be_large_but_not_larger(stdio):
    c = stdio()
    head, tail = b'{"id":1,"method":"nope","params":"', b'"}'
    c.send_bytes(head + b"x" * ((64 << 20) - len(head) - len(tail)) + tail + b"\n")
    assert c.answer(1)["error"]["code"] == -32601
    try:
        c.send_bytes(b"x" * ((64 << 20) + 1) + b"\n")
    except OSError:
        pass
    assert c.wait_closed()["code"] == 0


def test_stubborn_commands_end_too(stdio):
    c = stdio().ready()
    c.sh("a", "trap '' TERM HUP INT; (setsid sh -c 'trap \"\" TERM HUP; sleep 4321.7; sleep 4321.7' &); echo up; sleep 4321.7; sleep 4321.7")
    c.wait_output("a", "up")
    assert c.close() == 0
    poll(lambda: not pids_with("4321.7"), what="the commands to be gone")
