# SPDX-License-Identifier: ISC
"""Transport, envelope and handshake (doc/protocol.md sections 1.2, 1.3, 2 to 5)."""
import json
import socket
import struct
from urllib.parse import urlsplit

import pytest
from conftest import VERSION
from execd_client import WebSocket, frame, start_params, upgrade


def http(server, request):
    at = urlsplit(server.url)
    with socket.create_connection((at.hostname, at.port), timeout=10) as s:
        s.sendall(request)
        data = b""
        while piece := s.recv(4096):
            data += piece
            if b"101 " in data[:16] and b"\r\n\r\n" in data:
                break
    head, _, body = data.partition(b"\r\n\r\n")
    return int(head.split()[1]), head.decode().lower(), body.decode()


GET = "GET {} HTTP/1.1\r\nHost: x\r\n{}\r\n"


@pytest.mark.parametrize("request_, status, body", [
    (upgrade(), 101, ""),
    (upgrade(path="/?x=1"), 101, ""),
    (upgrade(path="/foo"), 404, ""),
    (upgrade("Origin: null\r\n"), 403, ""),
    (upgrade("Origin:\r\n", path="/foo"), 403, ""),
    (upgrade("Authorization: Bearer zzz\r\n"), 101, ""),
    (upgrade(method="POST"), 405, "Request method must be `GET`"),
    (upgrade(http="HTTP/1.0"), 426, None),
    (upgrade().replace(b"Version: 13", b"Version: 8"), 400,
     "`Sec-WebSocket-Version` header did not include '13'"),
    (upgrade().replace(b"Sec-WebSocket-Key", b"X-Key"), 400, "`Sec-WebSocket-Key` header missing"),
    (upgrade().replace(b"Sec-WebSocket-Key: dGhl", b"Sec-WebSocket-Key: "), 400,
     "`Sec-WebSocket-Key` header is not 16 bytes in base64"),
    (upgrade().replace(b"Host: x\r\n", b""), 400, "`Host` header missing"),
    (upgrade("Host: y\r\n"), 400, ""),
    (upgrade("Authorization: Bearer a\r\nAuthorization: Bearer b\r\n"), 400, ""),
    (GET.format("/", "").encode(), 400, "Connection header did not include 'upgrade'"),
    (GET.format("/readyz", "").encode(), 200, ""),
    (GET.format("/healthz", "").encode(), 404, ""),
    (b"HEAD /readyz HTTP/1.1\r\nHost: x\r\n\r\n", 200, ""),
    (b"POST /readyz HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 405, ""),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, ""),
    (b"nonsense\r\n\r\n", 400, ""),
])
def test_http_rows(server, request_, status, body):
    got = http(server, request_)
    assert got[0] == status
    if body is not None:
        assert got[2] == body


def test_a_head_that_is_too_long(server):
    assert http(server, upgrade("X: " + "y" * 17000 + "\r\n"))[0] == 431


def test_upgrade_one_byte_at_a_time_with_a_request_behind(server):
    c = WebSocket(server.url, handshake=False)
    data = upgrade() + frame(1, b'{"id":1,"method":"nope"}')
    for i in range(len(data)):
        c.sock.sendall(data[i:i + 1])
    got = b""
    while b"-32601" not in got:
        got += c.sock.recv(4096)
    assert got.startswith(b"HTTP/1.1 101 ")
    c.drop()


MALFORMED = [
    ("garbage", "expected value at line 1 column 1"),
    ("[]", "expected a JSON-RPC object"),
    ("5", "expected a JSON-RPC object"),
    ("{}", "missing field `error`"),
    ('{"id":null,"method":"x"}', "data did not match any variant of untagged enum RequestId"),
    ('{"id":1.0,"method":"x"}', "data did not match any variant of untagged enum RequestId"),
    ('{"id":9223372036854775808,"method":"x"}', "data did not match any variant of untagged enum RequestId"),
    ('{"id":1,"method":5}', "invalid type: number, expected a string"),
    ('{"id":1,"id":2,"method":"x"}', "duplicate JSON object key `id` at line 1 column 12"),
    ('{"id":1,"method":"x","params":{"a":{"b":1,"\\u0062":2}}}', "duplicate JSON object key `b`"),
    ('{"id":1,"method":"x"} {}', "trailing characters at line 1 column 23"),
    ('{"id":1,"method":"x","params":' + "[" * 127 + "]" * 127 + "}", "recursion limit exceeded"),
    ('{"id":1,"method":"x","params":"\\ud800"}', "hex escape"),
    ('\ufeff{"id":1,"method":"x"}', "expected value"),
    ('{"id":1,"method":"x","params":NaN}', None),
    ('{"id":1,"method":"x","params":01}', None),
    ('{"id":1,"method":"x","trace":5}', "invalid type: number, expected struct W3cTraceContext"),
    ('{"id":1,"result":1,"params":{"x":', "EOF while parsing"),
]


@pytest.mark.parametrize("text, detail", MALFORMED)
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_malformed_messages(server, text, detail, before):
    c = server.connect() if before else server.ready()
    c.send_text(text.encode())
    m = c.answer(-1)
    assert m["error"]["code"] == -32600
    start = "failed to parse websocket JSON-RPC message from exec-server websocket 127.0.0.1:"
    assert m["error"]["message"].startswith(start)
    if detail:
        assert detail in m["error"]["message"]
    assert c.request("nope", {})["error"]["code"] == -32601
    c.drop()


def test_125_containers_in_params_are_fine(server):
    c = server.ready()
    c.send_text(('{"id":1000,"method":"nope","params":' + "[" * 126 + "]" * 126 + "}").encode())
    assert c.answer(1000)["error"]["code"] == -32601


@pytest.mark.parametrize("id", [0, -5, 2**63 - 1, -2**63, "", "x\n\u00e9\U0001f600", "7", "\u0000"])
def test_ids_are_echoed(client, id):
    assert client.request("nope", {}, id=id)["id"] == id


def test_minus_zero_is_an_id(server):
    """An integer; it comes back as zero, as the peer sends it."""
    c = server.ready()
    c.send_text(b'{"id":-0,"method":"nope","params":{}}')
    assert c.answer(0)["error"]["code"] == -32601
    assert b'"id":-0' not in json.dumps(c.messages).encode()


@pytest.mark.parametrize("message", [
    {"method": "foo"}, {"method": "environment/status"}, {"id": 1, "result": {}},
    {"id": 1, "error": {"code": 1, "message": "x"}}])
def test_violations_end_the_connection_and_keep_the_session(server, message):
    a = server.ready()
    a.sh("p", "sleep 100")
    n = len(a.messages)
    a.send(message)
    assert a.wait_closed()["code"] == 1008
    assert a.messages[n:] == []
    b = server.connect()
    b.initialize(resumeSessionId=a.session_id)
    b.notify("initialized")
    assert b.terminate("p") is True


def test_initialized_before_initialize_closes(server):
    c = server.connect()
    c.notify("initialized")
    c.wait_closed()
    assert c.messages == []


FAMILIES = [
    ("process/start", start_params("a", ["true"]), "exec"),
    ("process/read", {"processId": "a"}, "exec"),
    ("process/write", {"processId": "a", "chunk": "", "writeId": "1"}, "exec"),
    ("process/signal", {"processId": "a", "signal": "interrupt"}, "exec"),
    ("process/terminate", {"processId": "a"}, "exec"),
    ("fs/readFile", {"path": "file:///etc/passwd"}, "filesystem"),
    ("environment/info", None, "environment info"),
    ("environment/status", {}, "environment status"),
]


@pytest.mark.parametrize("method, params, family", FAMILIES)
def test_state_errors(server, method, params, family):
    c = server.connect()
    assert c.error(method, params) == (-32600, f"client must call initialize before using {family} methods")
    c.initialize()
    assert c.error(method, params) == (-32600, f"client must send initialized before using {family} methods")


@pytest.mark.parametrize("state", ["new", "initialized", "ready"])
def test_params_are_decoded_before_the_state_is_looked_at(server, state):
    c = server.connect()
    if state != "new":
        c.initialize()
    if state == "ready":
        c.notify("initialized")
    assert c.error("process/start", {}) == (-32602, "missing field `processId`")
    assert c.error("process/read", {"processId": 5}) == (-32602, "invalid type: number, expected a string")
    assert c.error("fs/readFile", {"path": "/x"}) == (-32602, "invalid URI: relative URL without a base")
    assert c.error("nope", 5)[0] == -32601


def test_initialize(server):
    c = server.connect()
    assert c.error("initialize", {}) == (-32602, "missing field `clientName`")
    assert c.error("initialize", {"clientName": "x", "resumeSessionId": "nope"}) == \
        (-32600, "unknown session id nope")
    long = "y" * 100000
    assert c.error("initialize", {"clientName": "x", "resumeSessionId": long}) == \
        (-32600, "unknown session id " + long)
    r = c.initialize()
    assert r["environmentInfo"]["shell"]["path"].startswith("/")
    # The protocol's, by which clients of Codex decide what they dare, and execd's own.
    assert (r["environmentInfo"]["executorVersion"], r["environmentInfo"]["serverVersion"]) == ("0.171.0", VERSION)
    assert c.error("initialize", {"clientName": "x"}) == \
        (-32600, "initialize may only be sent once per connection")
    c.notify("initialized", 5)
    c.notify("initialized")
    assert c.call("environment/status") == {"status": "ready"}
    assert c.call("environment/info") == r["environmentInfo"]


def test_everything_pipelined(server):
    c = server.connect()
    c.send({"id": 1, "method": "initialize", "params": {"clientName": "x"}})
    c.notify("initialized")
    c.send({"id": 2, "method": "process/start", "params": start_params("a", ["true"])})
    c.send({"id": 3, "method": "nope"})
    assert [c.answer(i)["id"] for i in (1, 2, 3)] == [1, 2, 3]
    assert c.finished("a").code == 0


@pytest.mark.parametrize("bad, code", [
    (lambda c: c.frame(1, b"{}", mask=False), 1002),
    (lambda c: c.frame(1, b"{}", rsv=4), 1002),
    (lambda c: c.frame(3, b"{}"), 1002),
    (lambda c: c.frame(0, b"{}"), 1002),
    (lambda c: (c.frame(1, b"{", fin=False), c.frame(1, b"}")), 1002),
    (lambda c: c.frame(9, b"x" * 126), 1002),
    (lambda c: c.frame(9, b"x", fin=False), 1002),
    (lambda c: c.frame(8, b"\x03"), 1002),
    (lambda c: c.frame(8, struct.pack(">H", 1005)), 1002),
    (lambda c: c.frame(1, b"{\xff\xfe"), 1007),
    (lambda c: (c.frame(1, b"\xc3", fin=False), c.frame(0, b"(")), 1007),
    (lambda c: c.frame(1, b"\xf0\x9f"), 1007),
    (lambda c: c.sock.sendall(b"\x81\xff" + struct.pack(">Q", (64 << 20) + 1) + b"abcd"), 1009),
    (lambda c: c.frame(8, struct.pack(">H", 1000)), 1000),
    (lambda c: c.frame(8, struct.pack(">H", 4321) + b"why"), 4321),
    (lambda c: c.frame(8), 1005),
])
@pytest.mark.parametrize("attached", [False, True])
def test_closing_handshake(server, bad, code, attached):
    c = server.ready() if attached else server.connect()
    bad(c)
    assert c.wait_closed()["code"] == code
    c.sock.close()


def test_fragments_with_a_ping_between(client):
    text = json.dumps({"id": 1000, "method": "nope", "params": "\u00e9\u20ac" * 10}, ensure_ascii=False).encode()
    client.frame(1, text[:50], fin=False)
    client.frame(9, b"ping")
    client.frame(0, b"", fin=False)
    client.frame(0, text[50:51], fin=False)
    client.frame(10, b"unasked")
    client.frame(0, text[51:])
    assert client.answer(1000)["error"]["code"] == -32601
    assert (10, b"ping") in client.frames


def test_a_pong_comes_before_the_answer_to_what_followed(server):
    """Also when all of it arrives at once, with the upgrade in front or not."""
    for i in range(60):
        c = WebSocket(server.url, handshake=False)
        frames = frame(9, b"first") + frame(1, b'{"id":1,"method":"nope"}')
        c.sock.sendall(upgrade() + (frames if i % 2 else b""))
        if not i % 2:
            c.sock.sendall(frames)
        seen = b""
        while b'"id":1' not in seen:
            seen += c.sock.recv(4096)
        assert 0 < seen.find(b"\x8a\x05first") < seen.find(b'"id":1'), seen
        c.sock.close()


def test_binary_messages_are_answered_in_text(client):
    client.frame(2, b'{"id":1000,"method":"nope"}')
    assert client.answer(1000)["error"]["code"] == -32601
    client.frame(2, b'{"id":"\xff","method":"nope"}')
    assert client.answer(-1)["error"]["code"] == -32600


def test_an_empty_message_is_malformed(server):
    for c in (server.connect(), server.ready()):
        c.frame(1, b"")
        assert c.answer(-1)["error"]["code"] == -32600
