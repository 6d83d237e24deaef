# SPDX-License-Identifier: ISC
"""Messages that come to a runner in pieces: put together whatever the pieces,
bounded as a whole, and taken by the file helper as they lie there."""
import base64
import json
import os
import struct

import pytest
from conftest import RUNNER
from test_userns import COMMANDS, Program, u32

MORE = 1 << 31
MESSAGE_MAX = 64 << 20


class Session:
    def __init__(self):
        self.program = Program(RUNNER)
        self.program.send(*COMMANDS["CONFIGURE"])
        self.program.send(*COMMANDS["SANDBOX"])
        self.channel = self.program.attach()
        self.call(1, "initialize", {"clientName": "x"})
        self.send([b'{"method":"initialized","params":{}}'])

    def send(self, pieces):
        for i, piece in enumerate(pieces):
            more = MORE if i + 1 < len(pieces) else 0
            self.channel.sendall(u32(len(piece) | more) + piece)

    def read(self, n):
        data = b""
        while len(data) < n:
            data += self.channel.recv(n - len(data))
        return data

    def answer(self):
        return json.loads(self.read(struct.unpack("<I", self.read(4))[0]))

    def call(self, id, method, params, cut=lambda text: [text]):
        self.send(cut(json.dumps({"id": id, "method": method, "params": params}).encode()))
        return self.answer()

    def end(self):
        self.program.control.close()
        assert self.program.end()[0] == 0


CUTS = {
    "bytes": lambda text: [text[i:i + 1] for i in range(len(text))],
    "halves": lambda text: [text[:len(text) // 2], text[len(text) // 2:]],
    "an empty end": lambda text: [text, b""],
    "empty ones inside": lambda text: [text[:5], b"", b"", text[5:], b""],
}


@pytest.mark.parametrize("cut", CUTS)
def test_pieces_are_one_message(cut):
    s = Session()
    for id in 2, 3:
        answer = s.call(id, "process/read", {"processId": "none"}, CUTS[cut])
        assert answer["id"] == id and "unknown process id none" in answer["error"]["message"]
    s.end()


@pytest.mark.parametrize("size", [1 << 10, 3 << 20, 20 << 20])
def test_a_file_in_pieces(tmp_path, size):
    content = os.urandom(size)
    s = Session()
    for number, n in enumerate([7 << 10, 300 << 10, 1 << 20]):
        path = tmp_path / f"file{number}"
        answer = s.call(number + 2, "fs/writeFile", {
            "path": f"file://{path}", "dataBase64": base64.b64encode(content).decode()},
            lambda text: [text[i:i + n] for i in range(0, len(text), n)])
        assert answer == {"id": number + 2, "result": {}} and path.read_bytes() == content
    s.end()


@pytest.mark.parametrize("frames", [
    u32(MORE), u32(MORE | 0x7fffffff), u32(MORE | 1) + b"x" + u32(MESSAGE_MAX),
    u32(MORE | 1) + b"x" + u32(MORE | MESSAGE_MAX)])
def test_impossible_pieces_detach(frames):
    s = Session()
    s.channel.sendall(frames)
    assert s.program.control.recv(100) == u32(41) + u32(1) + b"\0\1", "DETACHED, and alive; nothing was started"
    assert s.channel.recv(1) == b""
    s.program.control.close()
    assert "impossible frame" in s.program.end()[1]
