# SPDX-License-Identifier: ISC
"""fs/writeFile of content that is not held in memory: it is decoded into a file without a name as it comes. Whatever
is unusual about the message is answered as it would be in memory.
"""
import json
import os
import re

import pytest
from conftest import ROOT, poll
from execd_client import b64
from test_files import error, fs, result  # noqa: F401

SIZE = (1 << 20) + (1 << 18) + 2  # long enough for several reads and pieces, and not divisible by 3
HEAD = 1 << 18  # of the text, before something odd comes


def spools(pid):
    """The files without a name that a process has open."""
    found = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            to = os.readlink(f"/proc/{pid}/fd/{fd}")
        except FileNotFoundError:
            continue
        if re.match(r"/var/tmp/#\d+ \(deleted\)|/memfd:execd-spool", to):
            found.append(to)
    return found


def text_of(path, data, order=("id", "method", "params"), members=("path", "dataBase64"), **more):
    """A request as text, with its members in this order."""
    params = {"path": f"file://{path}", "dataBase64": data, **more}
    params = {k: params[k] for k in [*members, *more]}
    whole = {"id": "w", "method": "fs/writeFile", "params": params}
    return json.dumps({k: whole[k] for k in order})


def send_pieces(client, text, size):
    """One message in frames of this size."""
    data = text.encode()
    for at in range(0, len(data), size):
        client.frame(1 if at == 0 else 0, data[at:at + size], fin=at + size >= len(data))


@pytest.mark.parametrize("size", [SIZE, SIZE + 1, SIZE + 2])
def test_it_is_what_was_sent(fs, size):
    data = os.urandom(size)
    fs.client.send_text(text_of(fs.directory / "f", b64(data)).encode())
    assert result(fs.client.answer("w")) == {}
    assert (fs.directory / "f").read_bytes() == data


@pytest.mark.parametrize("frame", [4093, 1 << 18])
def test_it_comes_in_frames(fs, frame):
    data = os.urandom(SIZE)
    send_pieces(fs.client, text_of(fs.directory / "f", b64(data)), frame)
    assert result(fs.client.answer("w")) == {}
    assert (fs.directory / "f").read_bytes() == data


@pytest.mark.parametrize("order, members, more", [
    (("id", "method", "params"), ("dataBase64", "path"), {}),
    (("method", "params", "id"), ("path", "dataBase64"), {}),
    (("params", "method", "id"), ("path", "dataBase64"), {}),
    (("id", "method", "params"), ("path", "dataBase64"), {"unknown": ["}", {"dataBase64": 'a"b'}], "sandbox": None}),
    (("id", "method", "params"), ("path", "dataBase64"), {"long": "x" * HEAD}),
])
def test_members_come_in_any_order(fs, order, members, more):
    data = os.urandom(SIZE)
    fs.client.send_text(text_of(fs.directory / "f", b64(data), order, members, **more).encode())
    assert result(fs.client.answer("w")) == {}
    assert (fs.directory / "f").read_bytes() == data


def refused(answer):
    code, message = error(answer)
    prefix = "fs/writeFile requires valid base64 dataBase64: "
    assert code == -32600 and message.startswith(prefix), (code, message)
    return message[len(prefix):]


@pytest.mark.parametrize("tail, detail", [
    ("!AAA", "Invalid symbol 33, offset {at}."),
    ("AA=A", "Invalid symbol 61, offset {two}."),
    ("AA==AAAA" + "A" * HEAD, "Invalid symbol 61, offset {two}."),
    ("AAA", "Invalid padding"),
    ("AB==", "Invalid last symbol 66, offset {one}."),
    ("\u00fcAA", "Invalid symbol 195, offset {at}."),
])
def test_bad_base64_at_the_end(fs, tail, detail):
    """Refused before the file is touched, in the words and at the offset that it has in memory."""
    (fs.directory / "f").write_text("old")
    os.chmod(fs.directory / "f", 0o666)
    head = b64(bytes(SIZE // 3 * 3))
    text = json.dumps(json.loads(text_of(fs.directory / "f", head + tail)), ensure_ascii=False)
    fs.client.send_text(text.encode())
    at = len(head)
    assert refused(fs.client.answer("w")) == detail.format(at=at, one=at + 1, two=at + 2)
    assert (fs.directory / "f").read_text() == "old"


def test_escapes_are_what_they_stand_for(fs):
    """Some clients escape every slash."""
    data = b"\xff" * SIZE
    text = text_of(fs.directory / "f", b64(data))
    head, tail = text[:2 * HEAD], text[2 * HEAD:].replace("/", "\\/")
    fs.client.send_text((head + tail).encode())
    assert result(fs.client.answer("w")) == {}
    assert (fs.directory / "f").read_bytes() == data


@pytest.mark.parametrize("change", [
    lambda t: t[:-1], lambda t: t + "x", lambda t: t[:-1] + ',"method":"fs/readFile"}',
    lambda t: t[:-2] + ',"dataBase64":""}}', lambda t: t[:-3], lambda t: t[:-2] + ',"path":1}}',
    lambda t: t[:-2] + ',"sandbox":1}}', lambda t: t.replace('"file://', '"fil://'), lambda t: t.replace('"w"', "{}")])
def test_what_is_no_such_request_is_refused_as_a_short_one(fs, change):
    """Apart from the columns, which count the content."""
    def answer(data):
        seen = len(fs.client.messages)
        fs.client.send_text(change(text_of(fs.directory / "f", data)).encode())
        m = fs.client.wait(lambda: next((m for m in fs.client.messages[seen:] if "error" in m), None))
        return m["id"], m["error"]["code"], re.sub(r"column \d+", "column", m["error"]["message"])
    assert answer(b64(bytes(SIZE))) == answer("AAAA")
    assert not (fs.directory / "f").exists()


def test_two_at_once_and_what_is_behind_them(fs):
    data = [os.urandom(SIZE) for _ in range(6)]  # more than are on disk at a time
    ids = [fs.client.post("fs/writeFile", {"path": f"file://{fs.directory}/f{i}", "dataBase64": b64(d)})
           for i, d in enumerate(data)]
    last = fs.client.post("fs/readDirectory", {"path": f"file://{fs.directory}"})
    for i, d in zip(ids, data):
        assert result(fs.client.answer(i)) == {}
    assert len(result(fs.client.answer(last))["entries"]) == len(data)
    assert [(fs.directory / f"f{i}").read_bytes() for i in range(len(data))] == data


def test_errors_of_the_file_are_those_of_a_short_one(fs):
    (fs.directory / "d").mkdir()
    for name in ("none/f", "d", "/proc/self/nothing/f"):
        long = fs("writeFile", name, dataBase64=b64(bytes(SIZE)))
        assert error(long) == error(fs("writeFile", name, dataBase64="AAAA"))
    assert result(fs("writeFile", "/dev/null", dataBase64=b64(bytes(SIZE)))) == {}


@pytest.mark.skipif(not ROOT, reason="NOT TESTED: only root sees what a runner has open")
def test_cut_in_the_middle(server, directory):
    """The connection ends inside the content: nothing of it is left, the session goes on."""
    c = server.ready()
    runner, before = server.runner(c), spools(server.runner(c))
    text = text_of(directory / "f", b64(os.urandom(SIZE))).encode()
    c.frame(1, text[:len(text) // 2], fin=False)
    poll(lambda: len(spools(runner)) == len(before) + 1, what="content on disk")
    c.drop()
    poll(lambda: spools(runner) == before, what="end of it")
    again = server.ready(resumeSessionId=c.session_id)
    assert not (directory / "f").exists()
    again.send_text(text)
    assert result(again.answer("w")) == {}
    assert spools(runner) == before
