# SPDX-License-Identifier: ISC
"""http/request against a real origin, HTTP and HTTPS (doc/protocol.md section 12)."""
import base64
import gzip
import hashlib
import http.server
import json
import os
import socket
import ssl
import subprocess
import threading
import zlib
from urllib.parse import parse_qs, urlsplit

import pytest
from conftest import MIB, is_alive, kill, poll
from execd_client import b64
from test_limits import rss_kib


GZIP = gzip.compress(b"text")
ZSTD = base64.b64decode("KLUv/QRYIQAAdGV4dFKvzIg=")      # of `printf text | zstd`
ZEROS = gzip.compress(bytes(16 << 20), 1)


def zstd_window(log):
    """A frame of "text" that wants this window (RFC 8878 section 3.1.1.1.2)."""
    return b"\x28\xb5\x2f\xfd\x00" + bytes([(log - 10) << 3]) + b"\x21\0\0text"


CODED = {"gzip": GZIP, "zstd": ZSTD, "empty": b"", "junk": b"no such thing", "gzip-cut": GZIP[:-1], "gzip-header": GZIP[:5],
         "gzip-sum": GZIP[:-5] + b"x" + GZIP[-4:], "gzip-twice": GZIP * 2, "gzip-more": GZIP + b"x",
         "gzip-and-cut": GZIP + GZIP[:-9], "zstd-cut": ZSTD[:-1], "zstd-twice": ZSTD * 2, "zstd-and-cut": ZSTD + ZSTD[:9],
         "zstd-8m": zstd_window(23), "zstd-16m": zstd_window(24), "bomb": ZEROS * 33, "large": ZEROS * 13}


class Origin(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, context=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen = []               # every request: method, path, headers, body
        self.served = []             # the path of each that was answered whole
        self.hung_up = threading.Event()
        self.go_on = threading.Event()
        self.scheme = "https" if context else "http"
        if context:
            self.socket = context.wrap_socket(self.socket, server_side=True)
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def wait_for(self, n, requests):
        poll(lambda: len(requests) >= n, 30, f"{n} requests")

    def url(self, path="/", host="127.0.0.1"):
        return f"{self.scheme}://{host}:{self.server_port}{path}"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except OSError:
            self.server.hung_up.set()

    def answer(self, code, body=b"", *headers):
        self.send_response(code)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        at = urlsplit(self.path)
        query = {k: v[0] for k, v in parse_qs(at.query).items()}
        headers = [(k.lower(), v) for k, v in self.headers.items()]
        self.server.seen.append((self.command, self.path, headers, body))
        getattr(self, "serve_" + at.path.strip("/").replace("/", "_"), self.serve_echo)(query)
        self.server.served.append(self.path)

    do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = do_BREW = do

    def serve_echo(self, query):
        command, path, headers, body = self.server.seen[-1]
        self.answer(200, json.dumps({"method": command, "path": path, "headers": headers,
                                     "body": b64(body)}).encode())

    def serve_redirect(self, query):
        code = int(query["code"])
        self.answer(code, b"" if code == 304 else b"elsewhere", ("Location", query["to"]))

    def serve_many_headers(self, query):
        self.answer(200, b"", *((f"X-{i}", "v" * 1000) for i in range(int(query["n"]))))

    def serve_endless(self, query):
        self.send_response(200)
        self.end_headers()
        self.close_connection = True
        while True:
            self.wfile.write(b"x" * 65536)

    def serve_large(self, query):
        self.answer(200, bytes(range(256)) * (int(query["n"]) // 256))

    def serve_wait(self, query):
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"he")
        self.server.go_on.wait(20)
        self.wfile.write(b"llo")

    def serve_some(self, query):
        """Of a body that is said to be n bytes the first one."""
        self.send_response(200)
        self.send_header("Content-Length", query["n"])
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(b"x")
            self.server.go_on.wait(20)
            self.close_connection = True

    def serve_coded(self, query):
        self.answer(200, CODED[query["body"]], ("Content-Encoding", query["as"]))

    def serve_coded_wait(self, query):
        z = zlib.compressobj(wbits=31)
        self.send_response(200)
        self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.close_connection = True
        self.wfile.write(z.compress(b"he") + z.flush(zlib.Z_SYNC_FLUSH))
        self.server.go_on.wait(20)
        if "cut" not in query:
            self.wfile.write(z.compress(b"llo") + z.flush())

    def serve_silent(self, query):
        self.server.go_on.wait(20)


@pytest.fixture
def origin():
    o = Origin()
    yield o
    o.go_on.set()
    o.shutdown()
    o.server_close()


def ask(client, url, method="GET", **params):
    return client.post("http/request", {"method": method, "url": url, "requestId": "r", **params})


def fetch(client, url, method="GET", **params):
    answer = client.answer(ask(client, url, method, **params))
    assert "result" in answer, answer
    return answer["result"]


def echoed(result):
    assert result["status"] == 200, result
    e = json.loads(base64.b64decode(result["bodyBase64"]))
    e["names"] = [n for n, _ in e["headers"]]
    e["header"] = dict(e["headers"])
    return e


def failure(client, url, method="GET", **params):
    answer = client.answer(ask(client, url, method, **params))
    assert "error" in answer, str(answer)[:300]
    return answer["error"]["code"], answer["error"]["message"]


def deltas(client, id="r"):
    return [m["params"] for m in client.messages
            if m.get("method") == "http/request/bodyDelta" and m["params"]["requestId"] == id]


def streamed(client, id="r", timeout=30):
    """The body of a stream at its end, and its error."""
    client.wait(lambda: any(d["done"] for d in deltas(client, id)), timeout, "the end of the stream")
    all = deltas(client, id)
    assert [d["seq"] for d in all] == list(range(1, len(all) + 1))
    assert [d["done"] for d in all] == [False] * (len(all) - 1) + [True]
    return b"".join(base64.b64decode(d["deltaBase64"]) for d in all), all[-1]["error"]


@pytest.mark.parametrize("method, body", [
    ("GET", None), ("POST", b""), ("POST", os.urandom(100_000)), ("PUT", b"\0\xff"), ("DELETE", None), ("BREW", b"tea")])
def test_what_is_sent(client, origin, method, body):
    extra = {} if body is None else {"bodyBase64": b64(body)}
    e = echoed(fetch(client, origin.url("/x?y=%20z#fragment"), method, **extra))
    assert (e["method"], e["path"], base64.b64decode(e["body"])) == (method, "/x?y=%20z", body or b"")
    assert sorted(e["names"]) == sorted(["host", "accept", "accept-encoding"] + ([] if body is None else ["content-length"]))
    assert e["header"]["accept"] == "*/*"


def test_credentials_in_the_url_are_a_header(client, origin):
    url = origin.url("/x").replace("://", "://us%65r:p%40ss@")
    e = echoed(fetch(client, url))
    assert e["header"]["authorization"] == "Basic " + b64(b"user:p@ss")


def test_a_header_from_the_environment(spawn, origin, mode):
    env = {**os.environ, "API_TOKEN": "s3cret"}
    c = spawn("--environment", "API_TOKEN", env=env).ready()
    headers = [{"name": "Authorization", "value": "Bearer ", "valueEnvVar": "API_TOKEN"}]
    assert echoed(fetch(c, origin.url(), headers=headers))["header"]["authorization"] == "Bearer s3cret"
    headers[0]["valueEnvVar"] = "NO_SUCH"
    assert failure(c, origin.url(), headers=headers) == (
        -32602, "http/request header Authorization requires executor environment variable NO_SUCH")
    assert c.call("environment/info")["capabilities"]["httpHeaderEnvVars"] is True


@pytest.mark.parametrize("code, method, kept", [
    (301, "POST", False), (302, "POST", False), (303, "POST", False), (307, "POST", True), (308, "POST", True),
    (302, "PUT", True), (303, "PUT", False), (302, "HEAD", True)])
def test_redirects_and_methods(client, origin, code, method, kept):
    body = {} if method == "HEAD" else {"bodyBase64": b64(b"body")}
    fetch(client, origin.url(f"/redirect?code={code}&to=/end"), method, **body)
    command, path, headers, sent = origin.seen[-1]
    assert (command, path) == (method if kept else "GET", "/end")
    assert sent == (b"body" if kept and body else b"")
    assert ("referer", origin.url(f"/redirect?code={code}&to=/end")) in headers


def test_secrets_do_not_follow_to_another_host(client, origin):
    headers = [{"name": n, "value": "secret"} for n in ("Authorization", "Cookie", "X-Mine")]
    there = origin.url("/end", host="localhost")
    e = echoed(fetch(client, origin.url(f"/redirect?code=302&to={there}"), headers=headers))
    assert "authorization" not in e["names"] and "cookie" not in e["names"] and e["header"]["x-mine"] == "secret"
    e = echoed(fetch(client, origin.url("/redirect?code=302&to=/end"), headers=headers))
    assert e["header"]["authorization"] == e["header"]["cookie"] == "secret"


def test_redirects_that_lead_nowhere(client, origin):
    assert failure(client, origin.url("/redirect?code=302&to=file:///etc/passwd"))[0] == -32603
    loop = origin.url("/redirect?code=302&to=") + "/redirect%3Fcode%3D302%26to%3D/echo"
    assert fetch(client, loop)["status"] == 200
    assert fetch(client, origin.url("/redirect?code=302&to=http://[bad"))["status"] == 302
    assert fetch(client, origin.url("/redirect?code=304&to=/x"))["status"] == 304
    seen = len(origin.seen)
    r = fetch(client, origin.url("/redirect?code=302&to=/x"), redirectPolicy="stop")
    assert (r["status"], base64.b64decode(r["bodyBase64"])) == (302, b"elsewhere") and len(origin.seen) == seen + 1


@pytest.mark.parametrize("url", [
    "http://user:hunter2@127.0.0.1:1/secret?token=hunter2", "http://127.0.0.1:1/hunter2",
    "http://no-such-host.invalid/?hunter2"])
def test_errors_do_not_tell_the_url(client, url):
    code, message = failure(client, url)
    assert code == -32603 and message.startswith("http/request failed: ") and "hunter2" not in message, message


def test_timeouts(client, origin):
    assert failure(client, origin.url("/silent"), timeoutMs=0) == (-32603, "http/request failed: operation timed out")
    assert failure(client, origin.url("/silent"), timeoutMs=100) == (-32603, "http/request failed: operation timed out")
    assert failure(client, origin.url("/wait"), timeoutMs=200) == (
        -32603, "failed to read http/request response body: operation timed out")
    assert fetch(client, origin.url("/wait"), streamResponse=True, timeoutMs=200)["status"] == 200
    assert streamed(client) == (b"he", "operation timed out")


def test_requests_do_not_wait_for_each_other(client, origin):
    slow = [ask(client, origin.url("/wait"), requestId=str(i)) for i in range(20)]
    for _ in range(5):
        assert fetch(client, origin.url("/quick"))["status"] == 200
    assert client.call("environment/status") == {"status": "ready"}
    assert not any(m.get("id") in slow for m in client.messages)
    origin.go_on.set()
    for id in slow:
        assert base64.b64decode(client.answer(id)["result"]["bodyBase64"]) == b"hello"


def test_there_is_a_limit(client, origin):
    ids = [ask(client, origin.url("/silent"), requestId=str(i)) for i in range(257)]
    assert client.answer(ids[-1])["error"] == {
        "code": -32600, "message": "at most 256 http requests may be under way per connection"}


@pytest.mark.parametrize("size", [0, 1 << 20, 30 << 20])
@pytest.mark.parametrize("stream", [False, True])
def test_bodies_come_whole(client, origin, size, stream):
    r = fetch(client, origin.url(f"/large?n={size}"), streamResponse=stream)
    body, error = streamed(client) if stream else (base64.b64decode(r["bodyBase64"]), None)
    expected = hashlib.sha256(bytes(range(256)) * (size // 256)).digest()
    assert (len(body), hashlib.sha256(body).digest(), error) == (size, expected, None)


LIMIT = 512 << 20
TOO_LARGE = (-32603, "failed to read http/request response body: the body is too large: limit is 536870912 bytes for all "
             "requests under way that are not streamed")


def test_a_body_that_would_be_too_large(spawn, origin):
    """It is refused for what it says it is, before there is any of it."""
    c = spawn().ready()
    assert failure(c, origin.url(f"/some?n={LIMIT + 1}"), timeoutMs=15000) == TOO_LARGE
    assert fetch(c, origin.url(f"/some?n={LIMIT + 1}"), streamResponse=True)["status"] == 200
    assert fetch(c, origin.url(f"/some?n={LIMIT + 1}"), "HEAD", requestId="h")["status"] == 200
    # What others said counts, and of what says nothing what there is.
    ids = [ask(c, origin.url(f"/some?n={LIMIT - (1 << 20)}")) for _ in range(2)]
    c.wait(lambda: any(m.get("id") in ids for m in c.messages), 30, "the end of one")
    m = next(m for m in c.messages if m.get("id") in ids)
    assert (m["error"]["code"], m["error"]["message"]) == TOO_LARGE
    ids.remove(m["id"])
    assert failure(c, origin.url("/endless"), timeoutMs=15000) == TOO_LARGE
    assert fetch(c, origin.url(f"/large?n={512 << 10}"))["status"] == 200
    origin.go_on.set()
    assert c.answer(ids[0])["error"]["message"] not in TOO_LARGE
    assert fetch(c, origin.url(f"/large?n={2 << 20}"))["status"] == 200


UNDECODABLE = "error decoding response body"


@pytest.mark.parametrize("coding, body, expected", [
    ("gzip", "gzip", b"text"), ("zstd", "zstd", b"text"), ("gzip", "empty", b""), ("zstd", "empty", b""),
    ("gzip", "gzip-twice", b"texttext"), ("zstd", "zstd-twice", b"texttext"), ("zstd", "zstd-8m", b"text"),
    *((b[:4], b, None) for b in ("gzip-cut", "gzip-header", "gzip-sum", "gzip-more", "gzip-and-cut", "zstd-cut",
                                 "zstd-and-cut", "zstd-16m")),
    ("gzip", "junk", None), ("zstd", "junk", None), ("gzip", "zstd", None), ("zstd", "gzip", None)])
def test_coded_bodies(client, origin, coding, body, expected):
    """They are decoded, whole, or refused: also where the origin's length is right and the coded stream is not at its end."""
    url = origin.url(f"/coded?as={coding}&body={body}")
    answer = client.answer(ask(client, url))
    if expected is None:
        assert answer["error"]["message"] == f"failed to read http/request response body: {UNDECODABLE}", answer
    else:
        assert base64.b64decode(answer["result"]["bodyBase64"]) == expected
        assert not {"content-encoding", "content-length"} & {h["name"] for h in answer["result"]["headers"]}
    fetch(client, url, streamResponse=True)
    got, error = streamed(client)
    assert error == (UNDECODABLE if expected is None else None) and (expected is None or got == expected)
    head = fetch(client, url, "HEAD", requestId="h")
    assert head["bodyBase64"] == "" and "content-encoding" not in {h["name"] for h in head["headers"]}


@pytest.mark.parametrize("coding", ["br", "deflate", "gzip,zstd", "identity"])
def test_codings_that_are_not_decoded(client, origin, coding):
    r = fetch(client, origin.url(f"/coded?as={coding}&body=gzip"))
    assert base64.b64decode(r["bodyBase64"]) == GZIP
    assert {"name": "content-encoding", "value": coding} in r["headers"]


def test_codings_that_are_asked_for(client, origin):
    def asked(*headers):
        return echoed(fetch(client, origin.url("/echo"), headers=[{"name": n, "value": v} for n, v in headers]))["header"]
    assert asked()["accept-encoding"] == "zstd,gzip"
    assert asked(("ACCEPT-encoding", "br"))["accept-encoding"] == "br"
    assert echoed(fetch(client, origin.url("/redirect?code=302&to=/echo")))["header"]["accept-encoding"] == "zstd,gzip"


def test_coded_bodies_are_decoded_as_they_come(client, origin):
    for query, rest, error in ("", b"hello", None), ("?cut=1", b"he", UNDECODABLE):
        origin.go_on.clear()
        id = "w" + query
        fetch(client, origin.url("/coded/wait" + query), streamResponse=True, requestId=id)
        client.wait(lambda: deltas(client, id), what="the first part")
        assert base64.b64decode(deltas(client, id)[0]["deltaBase64"]) == b"he" and not deltas(client, id)[-1]["done"]
        origin.go_on.set()
        assert streamed(client, id) == (rest, error)


def test_a_bomb(spawn, origin):
    """What comes out meets the limit, not what comes in."""
    c = spawn().ready()
    assert failure(c, origin.url("/coded?as=gzip&body=bomb"), timeoutMs=60000) == TOO_LARGE
    assert fetch(c, origin.url("/coded?as=gzip&body=gzip"))["status"] == 200


def test_a_bomb_for_a_client_that_does_not_read(spawn, origin):
    s = spawn()
    c = s.ready()
    fetch(c, origin.url("/echo"))
    helper = helper_of(s)
    c.pause()
    ask(c, origin.url("/coded?as=gzip&body=large"), streamResponse=True)
    origin.wait_for(2, origin.served)
    other = s.ready()
    for i in range(20):
        assert other.run(f"p{i}", ["/bin/echo", "fine"]).stdout == "fine\n"
    for pid in (s.frontend(), s.runner(c), helper):
        assert rss_kib(pid) < 48 * MIB
    c.resume()
    body, error = streamed(c, timeout=60)
    assert (len(body), body.strip(b"\0"), error) == (208 << 20, b"", None)


def test_a_large_body_is_held_once(spawn, origin):
    """Also while its client does not read, and what comes behind it goes on after it."""
    s = spawn()
    c = s.ready()
    fetch(c, origin.url("/echo"))
    helper = helper_of(s)
    c.pause()
    large = [ask(c, origin.url(f"/large?n={n << 20}")) for n in (60, 20)]
    origin.wait_for(3, origin.seen)
    streams = [ask(c, origin.url(f"/large?n={3 << 20}"), requestId=str(i), streamResponse=True) for i in range(3)]
    origin.wait_for(6, origin.seen)
    c.resume()
    for id, size in zip(large, (60 << 20, 20 << 20)):
        body = base64.b64decode(c.answer(id, 60)["result"]["bodyBase64"])
        assert hashlib.sha256(body).digest() == hashlib.sha256(bytes(range(256)) * (size // 256)).digest()
    for i, id in enumerate(streams):
        assert c.answer(id)["result"]["status"] == 200
        assert len(streamed(c, str(i))[0]) == 3 << 20
    assert rss_kib(helper, "VmHWM") < 110 * MIB
    assert fetch(c, origin.url("/echo"))["status"] == 200


def test_a_client_that_goes_while_a_large_body_comes(spawn, origin):
    s = spawn()
    c = s.ready()
    fetch(c, origin.url("/echo"))
    helper = helper_of(s)
    c.pause()
    ask(c, origin.url(f"/large?n={60 << 20}"))
    origin.wait_for(2, origin.served)
    c.drop()
    poll(lambda: not is_alive(helper), what="the helper's end")


def test_a_client_that_does_not_read_stops_the_origin(spawn, origin):
    s = spawn()
    c = s.ready()
    fetch(c, origin.url("/echo"))
    helper = helper_of(s)
    c.pause()
    ask(c, origin.url(f"/large?n={200 << 20}"), streamResponse=True)
    other = s.ready()
    for i in range(20):
        assert other.run(f"p{i}", ["/bin/echo", "fine"]).stdout == "fine\n"
    for pid in (s.frontend(), s.runner(c), helper):
        assert rss_kib(pid) < 48 * MIB
    c.resume()
    body, error = streamed(c, timeout=60)
    assert (len(body), error) == (200 << 20, None)


def test_files_and_bodies_at_the_same_time(client, origin, directory):
    """Two helpers write into one channel; no frame lands inside another."""
    big = directory / "big"
    big.write_bytes(os.urandom(40 << 20))
    os.chmod(big, 0o666)
    ids = [ask(client, origin.url(f"/large?n={5 << 20}"), requestId=str(i), streamResponse=True) for i in range(4)]
    reads = [client.post("fs/readFile", {"path": f"file://{big}"}) for _ in range(3)]
    for id in reads:
        assert base64.b64decode(client.answer(id, 60)["result"]["dataBase64"]) == big.read_bytes()
    for id in ids:
        assert client.answer(id)["result"]["status"] == 200
    for i in range(4):
        assert len(streamed(client, str(i))[0]) == 5 << 20


def test_too_many_headers(client, origin):
    assert len(fetch(client, origin.url("/many/headers?n=100"))["headers"]) >= 100
    assert failure(client, origin.url("/many/headers?n=1000"))[0] == -32603
    fetch(client, origin.url("/echo"))


def helper_of(server):
    """The pid of the newest execd-http below this server's runners."""
    out = subprocess.run(["ps", "-eo", "pid,ppid,comm"], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in out.splitlines()[1:]]
    runners = {pid for pid, parent, _ in rows if parent == str(server.pid)}
    return int([pid for pid, parent, comm in rows if comm == "execd-http" and parent in runners][-1])


def test_exchanges_end_with_their_connection(spawn, origin):
    s = spawn()
    c = s.ready()
    fetch(c, origin.url("/endless"), streamResponse=True)
    helper = helper_of(s)
    c.drop()
    poll(lambda: not is_alive(helper), what="end of execd-http")
    assert origin.hung_up.wait(10)


def test_a_killed_helper_is_an_error(spawn, origin):
    s = spawn()
    c = s.ready()
    fetch(c, origin.url("/echo"))
    id = ask(c, origin.url("/silent"))
    c.call("environment/status")
    kill(helper_of(s))
    assert c.answer(id)["error"] == {"code": -32603, "message": "execd-http of this session ended unexpectedly"}
    assert fetch(c, origin.url("/echo"))["status"] == 200
    fetch(c, origin.url("/wait"), streamResponse=True)
    kill(helper_of(s))
    # Half a stream cannot be taken back.
    assert c.wait_closed() == {"code": 1011,
                               "reason": "session ended: a helper of its runner ended in the middle of an answer"}
    s.wait_log("execd-http ended unexpectedly")
    again = s.ready(resumeSessionId=c.session_id)
    assert fetch(again, origin.url("/echo"))["status"] == 200


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    d = tmp_path_factory.mktemp("tls")
    os.chmod(d, 0o755)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                    "-keyout", d / "key", "-out", d / "cert"], check=True, capture_output=True)
    for path in (d, *d.parents):
        if not os.stat(path).st_mode & 1:
            os.chmod(path, os.stat(path).st_mode | 0o11)
    return d


def test_https(spawn, certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert", certificate / "key")
    o = Origin(context)
    trusting = spawn(env={**os.environ, "SSL_CERT_FILE": str(certificate / "cert")}).ready()
    assert echoed(fetch(trusting, o.url("/x", host="localhost")))["path"] == "/x"
    assert failure(trusting, o.url("/x"))[0] == -32603, "the name is not in the certificate"
    code, message = failure(spawn().ready(), o.url("/x", host="localhost"))
    assert code == -32603 and "certificate" in message, message
    o.shutdown()
    o.server_close()


@pytest.mark.parametrize("how", ["drop", "close"])
def test_exchanges_end_with_their_connection(server, how):
    """Nobody can read the answer any more: the origin hears of that at once, not when the session is given up."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as origin:
        origin.settimeout(10)
        clients = [server.ready() for _ in range(20)]
        for c in clients:
            ask(c, f"http://127.0.0.1:{origin.getsockname()[1]}/never", streamResponse=True)
        asked = [origin.accept()[0] for _ in clients]
        for s in asked:
            s.settimeout(2)
            assert s.recv(1 << 16).startswith(b"GET /never")
        for c in clients:
            c.drop() if how == "drop" else c.close()
        for s in asked:
            assert s.recv(1) == b"", "the exchange goes on"
            s.close()


def test_exchanges_of_a_stdio_client_are_answered(stdio, origin):
    """End of input says that there is no more to ask; the answers are still read."""
    c = stdio().ready()
    id = ask(c, origin.url("/x"))
    c.child.stdin.close()
    assert c.answer(id)["result"]["status"] == 200


class Canned:
    """An origin that says the same bytes to everybody."""

    def __init__(self, said):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/x"
        self.said, self.heard = said, []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                s, _ = self.listener.accept()
            except OSError:
                return
            with s:
                self.heard.append(s.recv(1 << 16))
                s.sendall(self.said)

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@pytest.fixture
def canned():
    made = []

    def make(said):
        made.append(Canned(said))
        return made[-1]

    yield make
    for o in made:
        o.stop()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("headers", [
    b"Content-Length: 2\r\nContent-Length: 3\r\n", b"Content-Length: 2\r\ncontent-length: 2, 3\r\n",
    b"X: a\r\n folded\r\nContent-Length: 2\r\n", b"X: a\r\n\tfolded: too\r\nContent-Length: 2\r\n",
    b"A b: c\r\nContent-Length: 2\r\n", b": c\r\nContent-Length: 2\r\n", b"no colon\r\nContent-Length: 2\r\n",
    b"a\x01: c\r\nContent-Length: 2\r\n", b"Host : c\r\nContent-Length: 2\r\n"])
def test_headers_that_no_two_readers_agree_on(client, canned, headers, stream):
    o = canned(b"HTTP/1.1 200 OK\r\n" + headers + b"\r\nhi!")
    code, text = failure(client, o.url, streamResponse=stream)
    assert code == -32603 and text.startswith("http/request failed: "), text


def test_the_same_length_twice_is_no_contradiction(client, canned):
    o = canned(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nhi")
    assert base64.b64decode(fetch(client, o.url)["bodyBase64"]) == b"hi"


@pytest.mark.parametrize("stream", [False, True])
def test_head_with_a_body(client, canned, stream):
    """The body is sent; the answer has none, whatever length it names."""
    o = canned(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nX-Y: z\r\n\r\n")
    result = fetch(client, o.url, "HEAD", bodyBase64=b64(b"body"), streamResponse=stream)
    assert result["status"] == 200 and {"name": "x-y", "value": "z"} in result["headers"], result
    assert streamed(client) == (b"", None) if stream else result["bodyBase64"] == ""
    assert o.heard[0].startswith(b"HEAD /x HTTP/1.1\r\n") and o.heard[0].endswith(b"\r\n\r\nbody")


@pytest.mark.parametrize("stream", [False, True])
def test_a_redirect_to_nowhere_is_the_result(client, canned, stream):
    """A location that is no URL: the response is shown as it is, with its body."""
    o = canned(b"HTTP/1.1 302 Found\r\nLocation: http://[bad\r\nContent-Length: 4\r\n\r\nbody")
    result = fetch(client, o.url, redirectPolicy="follow", streamResponse=stream)
    assert result["status"] == 302, result
    assert (streamed(client) if stream else (base64.b64decode(result["bodyBase64"]), None)) == (b"body", None)
