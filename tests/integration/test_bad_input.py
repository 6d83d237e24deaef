# SPDX-License-Identifier: ISC
"""Bad input of strangers, each kind by itself: a typed answer or none, a line in
the log, a penalty, and no word about what is there (execd.conf(5)).

Client certificates have test_client_certificates.py, tokens test_auth.py, and
the configuration test_config.py."""
import socket
import ssl
import subprocess
import time
from urllib.parse import urlsplit

import pytest
from certificates import Authority, lend
from conftest import digest, poll
from execd_client import dial, upgrade
from test_auth import jwt


@pytest.fixture
def authority(directory):
    return Authority(directory, "root")


@pytest.fixture
def secure(configured, user, authority):
    def start(limits, listener="", more=""):
        base = authority.issue("server", group=user.pw_gid)
        return configured(f"[listener tls]\naddress = wss://127.0.0.1:0\ncertificate = {base}.pem\n"
                          f"certificate-key = {base}.key\n{listener}[identity a]\nuser = {user.pw_name}\n"
                          f"sandbox-allow-unsandboxed = yes\ntoken-sha256 = {digest('t')}\n{more}"
                          f"[limits]\nexempt = none\n{limits}")
    return start


def connect(s, source="127.0.0.1"):
    at = urlsplit(s.url)
    return socket.create_connection((at.hostname, at.port), timeout=20, source_address=(source, 0))


def until_closed(s):
    data = b""
    try:
        while piece := s.recv(4096):
            data += piece
    except ConnectionResetError:
        pass
    return data


class Handshake:
    """A TLS client whose flights go out one by one, and not all of them."""

    def __init__(self, context):
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname="127.0.0.1")

    def step(self):
        """The bytes that the client would send now; done: there are no more."""
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            pass
        return self.outgoing.read()

    def hear(self, s):
        data = s.recv(65536)
        assert data, "the server left too early"
        self.incoming.write(data)


def client(authority, version):
    c = ssl.create_default_context(cafile=authority.cert)
    c.minimum_version = c.maximum_version = version
    return c


def nothing(s, h):
    pass


def half_a_hello(s, h):
    hello = h.step()
    s.sendall(hello[:len(hello) // 2])


def hello_only(s, h):
    s.sendall(h.step())


def after_server_hello(s, h):
    s.sendall(h.step())
    h.hear(s)


def half_the_last_flight(s, h):
    """All but the end of Finished: of 1.3 the only flight, of 1.2 with the key exchange."""
    s.sendall(h.step())
    flight = b""
    while not flight:
        h.hear(s)
        flight = h.step()
    s.sendall(flight[:-1])


def all_but_http(s, h):
    s.sendall(h.step())
    flight = b""
    while not flight:
        h.hear(s)
        flight = h.step()
    s.sendall(flight)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
@pytest.mark.parametrize("stop", [nothing, half_a_hello, hello_only, after_server_hello, half_the_last_flight,
                                  all_but_http])
def test_a_handshake_that_stops(secure, authority, version, stop):
    """Ends at the one deadline, costs its source, and hurts no other."""
    s = secure("pre-auth-deadline = 1s\npenalty-deadline = 1m\n")
    with connect(s, "127.0.0.2") as c:
        began = time.monotonic()
        stop(c, Handshake(client(authority, version)))
        until_closed(c)
        assert time.monotonic() - began < 10
    s.wait_log("not ready within 1000 ms")
    assert s.log.count("not ready within") == 1
    s.wait_log("too many failures from there")
    with connect(s, "127.0.0.2") as again:
        assert until_closed(again) == b"", "refused before TLS"
    # An honest one may be slow, as this machine is today.
    s.reload(s.path.read_text().replace("pre-auth-deadline = 1s", "pre-auth-deadline = 30s"), "pre-auth-deadline: 30s")
    tls = client(authority, version)
    assert s.connect(tls=tls, token="t", source="127.0.0.3").ready().run("x", ["/bin/echo", "in"]).stdout == "in\n"


@pytest.mark.parametrize("data", [
    b"GET /readyz HTTP/1.1\r\n\r\n", b"\x80\x2e\x01\x00\x02" + b"\0" * 43, b"\x16\x03\x01\x40\x01" + b"\x01" * 20000,
    b"\x16\x03\x01\x00\x04\x01\xff\xff\xff", b"\x15\x03\x01\x00\x02\x02\x28", b"\x17\x03\x03\x00\x01x", b"\0" * 300],
    ids=["text", "ssl-2", "record-of-16385", "hello-of-16-MiB", "alert", "data", "zeros"])
def test_what_is_no_handshake(secure, authority, data):
    s = secure("penalty-protocol = 20s\n")
    with connect(s, "127.0.0.2") as c:
        c.sendall(data)
        answer = until_closed(c)
    assert len(answer) <= 7 and b"HTTP" not in answer, answer     # at most an alert
    s.wait_log("too many failures from there")
    assert s.log.count(": TLS: ") == 1
    s.connect(tls=ssl.create_default_context(cafile=authority.cert), token="t", source="127.0.0.3").ready()


def test_a_handshake_byte_by_byte(secure, authority):
    """Slow, but honest, and in time."""
    s = secure("")
    at = urlsplit(s.url)
    with socket.create_connection((at.hostname, at.port), timeout=20) as c:
        c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        h = Handshake(ssl.create_default_context(cafile=authority.cert))
        while (flight := h.step()) or not h.tls.version() or h.tls.cipher() is None:
            for i in range(len(flight)):
                c.sendall(flight[i:i + 1])
            if h.tls.cipher() is not None:
                break
            h.hear(c)
        h.tls.write(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
        c.sendall(h.outgoing.read())
        text = b""
        while b"\r\n\r\n" not in text:
            h.hear(c)
            try:
                text += h.tls.read(65536)
            except ssl.SSLWantReadError:
                pass
        assert text.startswith(b"HTTP/1.1 200 ")


def request(s, data, source, authority):
    tls = ssl.create_default_context(cafile=authority.cert)
    c = dial(s.url, tls, source=source)
    try:
        c.sendall(data)
    except OSError:
        pass    # it has its answer before it said everything
    head = b""
    try:
        while b"\r\n\r\n" not in head and (piece := c.recv(4096)):
            head += piece
    except OSError:
        pass
    c.close()
    return head.decode()


@pytest.mark.parametrize("data, statuses", [
    (upgrade("X: " + "y" * 65536 + "\r\n"), "431"),
    (b"GET /" + b"x" * 65536 + b" HTTP/1.1\r\n\r\n", "431"),
    (upgrade("".join(f"X-{i}: y\r\n" for i in range(8000))), "431"),
    (upgrade("Authorization: Bearer " + "x" * 65536 + "\r\n"), "431"),
    (b"\r\n" * 40000, "400 431"), (b"GET / HTTP/9.9\r\n\r\n", "400"), (b"GET / HTTP/1.1\r\nX\r\n\r\n", "400"),
    (b"GET / HTTP/1.1\r\nX: a\0b\r\n\r\n", "400"), (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "400")],
    ids=["header", "path", "many", "token", "blank-lines", "version", "no-colon", "nul", "http-2"])
def test_heads(secure, authority, data, statuses):
    s = secure("penalty-protocol = 20s\n")
    head = request(s, data, "127.0.0.2", authority)
    assert head.split()[1] in statuses.split() and "content-length: 0" in head, head
    s.wait_log("too many failures from there")
    s.connect(tls=ssl.create_default_context(cafile=authority.cert), token="t", source="127.0.0.3").ready()


def none_jwt():
    return jwt(header={"alg": "none"}, exp=int(time.time()) + 60, sub="a")


@pytest.mark.parametrize("token", [
    none_jwt(), none_jwt().rsplit(".", 1)[0] + ".", jwt(header={"alg": "HS512"}, exp=2 ** 40), jwt(exp=1),
    jwt(b"x" * 32, exp=2 ** 40), jwt(exp="soon"), jwt(), "a.b.c", "..", "." * 8000],
    ids=["none", "none-unsigned", "hs512", "expired", "other-key", "bad-exp", "no-exp", "rubbish", "dots", "many-dots"])
def test_tokens_that_cost(secure, authority, directory, user, token):
    (directory / "secret").write_text("k" * 32)
    lend(directory / "secret", user.pw_gid)
    s = secure("penalty-authentication = 20s\n",
               more=f"token-subject = a\n[signed-tokens]\nsecret-file = {directory}/secret\n")
    head = request(s, upgrade(f"Authorization: Bearer {token}\r\n"), "127.0.0.2", authority)
    assert head.startswith("HTTP/1.1 401 "), head
    s.wait_log("too many failures from there")
    assert s.log.count(": refused: ") == 1 and token not in s.log
    s.connect(tls=ssl.create_default_context(cafile=authority.cert), token="t", source="127.0.0.3").ready()


def test_renegotiation_and_resumption(secure, authority):
    """Neither is there: a ticket's key would have to live somewhere."""
    s = secure("")
    at = urlsplit(s.url)
    for flags in (["-tls1_2"], ["-tls1_3"]):
        r = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{at.port}", "-CAfile", authority.cert, *flags,
                            "-reconnect"], input=b"", capture_output=True, timeout=60)
        assert b"Reused" not in r.stdout and b"New, TLSv1." in r.stdout
    r = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{at.port}", "-CAfile", authority.cert, "-tls1_2",
                        "-legacy_renegotiation"], input=b"R\n", capture_output=True, timeout=20)
    assert b"RENEGOTIATING" in r.stdout + r.stderr and r.returncode != 0
    poll(lambda: s.connect(tls=ssl.create_default_context(cafile=authority.cert), token="t").ready())


def test_no_information(secure, authority):
    """A refused client learns the status and nothing of the server."""
    s = secure("")
    for data in (upgrade("Authorization: Bearer no\r\n"), b"nonsense\r\n\r\n", b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
                 b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"):
        head = request(s, data, "127.0.0.2", authority).lower()
        assert head.split()[1] in ("400", "401", "404")
        for word in ("server:", "execd", "openssl", "x-powered", "www-authenticate: basic"):
            assert word not in head, head
