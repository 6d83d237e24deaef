# SPDX-License-Identifier: ISC
"""TLS: versions, suites, keys and certificates; who holds the private key; what
a hostile client can do before HTTP begins (execd.conf(5))."""
import asyncio
import hashlib
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import threading
from urllib.parse import urlsplit

import pytest
import websockets
from certificates import lend
from conftest import MIB, ROOT, SANITIZED, digest, is_alive, poll
from execd_client import Closed, dial
from test_limits import body, rss_kib

KINDS = {"rsa": ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
         "rsa4096": ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:4096"],
         "p256": ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
         "p384": ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"],
         "p521": ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-521"],
         "ed25519": ["-algorithm", "ED25519"]}


def openssl(*args):
    return subprocess.run(["openssl", *map(str, args)], check=True, capture_output=True).stdout


class Authority:
    """A CA of the test's own."""

    def __init__(self, where, name="ca"):
        self.where, self.name = where, name
        self.key, self.cert = where / f"{name}.key", where / f"{name}.pem"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", self.key,
                "-out", self.cert, "-days", "5", "-subj", f"/CN={name}")

    def issue(self, name, kind="p256", days=5, group=None, address="127.0.0.1"):
        base = self.where / name
        openssl("genpkey", *KINDS[kind], "-out", f"{base}.key")
        openssl("req", "-new", "-key", f"{base}.key", "-subj", f"/CN={name}", "-addext",
                f"subjectAltName=IP:{address}", "-out", f"{base}.csr")
        openssl("x509", "-req", "-in", f"{base}.csr", "-CA", self.cert, "-CAkey", self.key, "-CAcreateserial",
                "-copy_extensions", "copy", "-days", days, "-out", f"{base}.pem")
        lend(f"{base}.key", group)
        return base

    def client(self, identity=None, **versions):
        c = ssl.create_default_context(cafile=self.cert)
        if identity:
            c.load_cert_chain(f"{identity}.pem", f"{identity}.key")
        for name, value in versions.items():
            setattr(c, name, value)
        return c


def fingerprint(base):
    return hashlib.sha256(openssl("x509", "-in", f"{base}.pem", "-outform", "DER")).hexdigest()


@pytest.fixture
def authority(directory):
    return Authority(directory)


def listener(base, more="", address="wss://127.0.0.1:0", name="tls"):
    return (f"[listener {name}]\naddress = {address}\ncertificate = {base}.pem\ncertificate-key = {base}.key\n{more}")


def identity(user, more=""):
    return f"[identity a]\nuser = {user.pw_name}\nsandbox-allow-unsandboxed = yes\ntoken-sha256 = {digest('t')}\n{more}"


@pytest.fixture
def secure(configured, user, authority):
    """An execd with one TLS listener."""
    def start(kind="p256", more="", rest="", *flags):
        base = authority.issue("server", kind, group=user.pw_gid)
        s = configured(listener(base, more) + identity(user) + rest, *flags)
        s.base = base
        return s
    return start


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_key(secure, authority, kind):
    s = secure(kind)
    assert s.url.startswith("wss://127.0.0.1:")
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        tls = authority.client(minimum_version=version, maximum_version=version)
        c = s.connect(tls=tls, token="t").ready()
        assert c.sock.version() == version.name.replace("_", ".")
        assert c.run("x", ["/bin/echo", "in"]).stdout == "in\n"
        c.drop()


def test_signature_algorithms_of_rsa(secure, authority):
    """Each goes another way through the key process."""
    s = secure("rsa")
    at = urlsplit(s.url)
    for version, algorithm in [("-tls1_2", "RSA+SHA256"), ("-tls1_2", "RSA+SHA512"), ("-tls1_2", "RSA-PSS+SHA384"),
                               ("-tls1_3", "RSA-PSS+SHA256"), ("-tls1_3", "RSA-PSS+SHA512")]:
        r = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{at.port}", version, "-sigalgs", algorithm,
                            "-CAfile", authority.cert, "-verify_return_error"], input=b"", capture_output=True, timeout=20)
        assert b"Verification: OK" in r.stdout and r.returncode == 0, (version, algorithm, r.stderr)
    r = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{at.port}", "-tls1_2", "-sigalgs", "RSA+SHA1",
                        "-cipher", "DEFAULT@SECLEVEL=0"], input=b"", capture_output=True, timeout=20)
    assert r.returncode != 0


@pytest.mark.parametrize("flags", [
    ["-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"], ["-tls1", "-cipher", "DEFAULT@SECLEVEL=0"],
    ["-tls1_2", "-cipher", "AES128-GCM-SHA256"],            # no forward secrecy
    ["-tls1_2", "-cipher", "ECDHE-RSA-AES128-SHA256"],      # no AEAD
    ["-tls1_2", "-cipher", "ECDHE-RSA-AES128-SHA"],
    ["-tls1_2", "-cipher", "DHE-RSA-AES128-GCM-SHA256"]])
def test_what_is_too_weak_is_refused(secure, flags):
    s = secure("rsa")
    at = urlsplit(s.url)
    r = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{at.port}", *flags], input=b"",
                       capture_output=True, timeout=20)
    assert r.returncode != 0
    s.wait_log(": TLS: ")


def test_readyz_and_curl(secure, authority):
    s = secure()
    url = "https" + s.url[len("wss"):]
    r = subprocess.run(["curl", "-s", "--cacert", authority.cert, "-w", "%{http_code}", f"{url}/readyz"],
                       capture_output=True, text=True, timeout=20)
    assert r.stdout == "200", r
    r = subprocess.run(["curl", "-s", "-w", "%{http_code}", f"{url}/readyz"], capture_output=True, text=True, timeout=20)
    assert r.returncode == 60, "the CA is the test's own"


def test_python_websockets(secure, authority):
    s = secure()

    async def initialize():
        headers = {"Authorization": "Bearer t"}
        async with websockets.connect(s.url, ssl=authority.client(), extra_headers=headers, open_timeout=20) as ws:
            await ws.send(json.dumps({"id": 1, "method": "initialize", "params": {"clientName": "x"}}))
            return json.loads(await asyncio.wait_for(ws.recv(), 20))

    assert "sessionId" in asyncio.run(initialize())["result"]


def test_plain_text_and_plain_sockets(secure):
    s = secure()
    at = urlsplit(s.url)
    with socket.create_connection((at.hostname, at.port), timeout=20) as plain:
        plain.sendall(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"HTTP" not in until_closed(plain)
    s.wait_log("TLS: http request")


def until_closed(s):
    data = b""
    try:
        while piece := s.recv(4096):
            data += piece
    except ConnectionResetError:
        pass
    return data


# --- the private key ------------------------------------------------------


def secrets_of(base, kind):
    """The numbers that only the key's owner knows, as they lie in memory."""
    text = openssl("pkey", "-in", f"{base}.key", "-noout", "-text").decode()
    names = {"rsa": ["privateExponent", "prime1", "prime2", "exponent1"]}.get(kind, ["priv"])
    found = []
    for name in names:
        digits = re.search(rf"^\s*{name}:\s*\n((?:\s+[0-9a-f:]+\n)+)", text, re.M)[1]
        number = bytes.fromhex(re.sub(r"[\s:]", "", digits)).lstrip(b"\0")
        found += [number, number[::-1]]         # big-endian, and as libcrypto keeps its words
    pem = pathlib.Path(f"{base}.key").read_text().splitlines()[1]
    return found + [pem.encode()]


def memory_has(pid, needles):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in maps:
            m = re.match(r"([0-9a-f]+)-([0-9a-f]+) r", line)
            if not m or "[v" in line:
                continue
            start, end = int(m[1], 16), int(m[2], 16)
            if SANITIZED and end - start > 1 << 30:
                continue        # the sanitizer's books, not memory of the program
            try:
                mem.seek(start)
                data = mem.read(end - start)
            except (OSError, OverflowError):
                continue
            if any(needle in data for needle in needles):
                return True
    return False


def key_process(server):
    pid = server.pid
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    found = [int(p) for p in children if pathlib.Path(f"/proc/{p}/comm").read_text() == "execd-keys\n" and is_alive(p)]
    return found[-1] if found else None


@pytest.mark.skipif(not ROOT, reason="THE MEMORY OF THE FRONT-END IS NOT SEARCHED: this needs root")
@pytest.mark.parametrize("kind", ["rsa", "p256", "ed25519"])
def test_the_front_end_s_memory_does_not_hold_the_key(secure, authority, kind):
    s = secure(kind)
    c = s.connect(tls=authority.client(), token="t").ready()
    needles = secrets_of(s.base, kind)
    assert memory_has(key_process(s), needles), "the search finds what is there"
    assert not memory_has(s.frontend(), needles)
    s.reload(s.path.read_text() + "[limits]\nmax-connections = 50\n", "max-connections: 50")
    s.connect(tls=authority.client(), token="t").ready()
    assert not memory_has(s.frontend(), needles)
    assert not memory_has(s.runner(c), needles)


@pytest.mark.skipif(not ROOT, reason="THE KEY PROCESS IS NOT LOOKED AT: this needs root")
def test_the_key_process_is_locked_up(secure, mode):
    from test_isolation import check_frontend, status
    s = secure()
    s.wait_log("serving")
    pid = poll(lambda: key_process(s), what="the key process")
    poll(lambda: status(pid)["Seccomp"] != "0", what="its filter")
    check_frontend(pid)
    assert sorted(os.listdir(f"/proc/{pid}/fd")) == ["0", "1", "2", "3"]
    if mode == "root":
        assert status(pid)["Uid"].split() == status(s.frontend())["Uid"].split() and int(status(pid)["CapBnd"], 16) == 0


def test_another_key_process_takes_over(secure, authority):
    s = secure()
    c = s.connect(tls=authority.client(), token="t").ready()
    old = key_process(s)
    os.kill(old, signal.SIGKILL)
    s.wait_log(f"key process {old}: ended, signal 9")
    poll(lambda: key_process(s) not in (None, old))
    poll(lambda: can_connect(s, authority), what="TLS handshakes")
    assert c.run("x", ["/bin/echo", "still"]).stdout == "still\n"


def can_connect(s, authority, identity=None):
    try:
        s.connect(tls=authority.client(identity), token="t").ready().drop()
        return True
    except (OSError, Closed):
        return False


def test_a_new_front_end_has_its_own_key_process(secure, authority):
    s = secure()
    c = s.connect(tls=authority.client(), token="t").ready()
    old, front_end = key_process(s), s.frontend()
    os.kill(front_end, signal.SIGKILL)
    c.wait_closed()
    again = s.connect(tls=authority.client(), token="t").ready(resumeSessionId=c.session_id)
    assert again.session_id == c.session_id
    poll(lambda: not is_alive(old), what="end of the old key process")


# --- certificates ---------------------------------------------------------


def test_a_reload_brings_another_certificate(secure, authority, user):
    s = secure("p256")
    a = s.connect(tls=authority.client(), token="t").ready()
    before = a.sock.getpeercert(True)
    authority.issue("server", "rsa", group=user.pw_gid)
    log = s.reload(s.path.read_text(), "another certificate, key, client CA or CRL")
    assert "nothing changed" not in log

    def changed():
        c = s.connect(tls=authority.client(), token="t").ready()
        return c.sock.getpeercert(True) != before

    poll(changed)
    a = s.connect(tls=authority.client(), token="t").ready(resumeSessionId=a.session_id)
    assert a.run("x", ["/bin/echo", "still"]).stdout == "still\n"


def test_a_reload_with_a_broken_certificate_is_refused(secure, authority, user):
    s = secure()
    other = authority.issue("other", group=user.pw_gid)
    empty = authority.where / "empty"
    empty.write_text("nothing")
    lend(empty, user.pw_gid)
    text = s.path.read_text()
    for broken, words in [(text.replace(f"{s.base}.key", f"{other}.key"), "is not the key of"),
                          (text.replace(f"{s.base}.pem", f"{s.base}.csr"), "holds no PEM certificate"),
                          (text.replace(f"{s.base}.key", f"{empty}"), "holds no PEM private key")]:
        s.reload(broken, words)
        assert can_connect(s, authority)
    os.chmod(f"{other}.key", 0o644)
    s.reload(text.replace(f"{s.base}.", f"{other}."), "others can read (mode 0644)")


@pytest.fixture
def mutual(configured, user, authority):
    def start(required, more="", ca=None):
        base = authority.issue("server", group=user.pw_gid)
        text = (listener(base, f"client-ca = {ca or authority.cert}\nclient-certificate = {required}\n") +
                identity(user) + f"[identity b]\nuser = {user.pw_name}\nsandbox-allow-unsandboxed = yes\n{more}")
        return configured(text)
    return start


def test_client_certificates(mutual, authority, directory):
    bob, eve = authority.issue("bob"), authority.issue("eve")
    s = mutual("required", f"certificate-sha256 = {fingerprint(bob)}\n")
    c = s.connect(tls=authority.client(bob)).ready()
    assert "opened for b," in s.log and c.run("x", ["/bin/echo", "in"]).stdout == "in\n"
    with pytest.raises(Closed, match="401"):
        s.connect(tls=authority.client(eve))                # of the CA, but nobody's
    s.connect(tls=authority.client(eve), token="t").ready()  # a token says who it is
    for wrong in (None, Authority(directory, "ca2").issue("mallory"), authority.issue("late", days=-1)):
        with pytest.raises((OSError, Closed)):
            s.connect(tls=authority.client(wrong))
    poll(lambda: "peer did not return a certificate" in s.log)
    poll(lambda: "(CN=mallory): unable to get local issuer certificate" in s.log)
    poll(lambda: "(CN=late): certificate has expired" in s.log)


def test_an_optional_client_certificate(mutual, authority, directory):
    bob = authority.issue("bob")
    s = mutual("optional", f"certificate-sha256 = {fingerprint(bob)}\n")
    s.connect(tls=authority.client(bob)).ready()
    s.connect(tls=authority.client(), token="t").ready()
    with pytest.raises(Closed, match="401"):
        s.connect(tls=authority.client())
    with pytest.raises((OSError, Closed)):
        s.connect(tls=authority.client(Authority(directory, "ca2").issue("mallory")), token="t")


def test_a_certificate_that_is_not_asked_for_counts_nothing(configured, user, authority):
    bob = authority.issue("bob")
    base = authority.issue("server", group=user.pw_gid)
    s = configured(listener(base) + identity(user, f"certificate-sha256 = {fingerprint(bob)}\n"))
    with pytest.raises(Closed, match="401"):
        s.connect(tls=authority.client(bob))


# --- bytes ----------------------------------------------------------------


def test_much_in_both_directions(secure, authority):
    s = secure()
    c = s.connect(tls=authority.client(), token="t").ready()
    r = c.run_sh("a", "head -c 30000000 /dev/zero; exit 3", timeout=60)
    assert (len(r.stdout), r.code) == (30000000, 3)
    c.frame(1, body(16 << 20))
    assert c.answer(1000, 60)["error"]["code"] == -32601


def test_a_client_that_does_not_read_stops_its_command(secure, authority, directory):
    s = secure()
    c = s.connect(tls=authority.client(), token="t").ready()
    other = s.connect(tls=authority.client(), token="t").ready()
    before = rss_kib(s.frontend())
    c.pause()
    c.post("process/start", {"processId": "a", "argv": ["/bin/sh", "-c", f"head -c 40000000 /dev/zero; : > {directory}/done"],
                             "cwd": "file:///tmp", "env": {"PATH": "/bin"}, "tty": False})
    for i in range(20):
        assert other.run(f"p{i}", ["/bin/echo", "fine"]).stdout == "fine\n"
    assert not (directory / "done").exists()
    assert rss_kib(s.frontend()) - before < 16 * MIB
    c.resume()
    assert len(c.finished("a", 60).stdout) == 40000000


def test_many_pipelined_messages_in_one_record(secure, authority):
    from execd_client import frame
    s = secure()
    c = s.connect(tls=authority.client(), token="t").ready()
    n = 5000
    data = b"".join(frame(1, b'{"id":%d,"method":"nope"}' % (1000 + i)) for i in range(n))
    threading.Thread(target=c.sock.sendall, args=(data,), daemon=True).start()
    c.wait(lambda: len(c.messages) >= n + 1, 60)
    assert [m["id"] for m in c.messages[1:]] == list(range(1000, 1000 + n))


def test_handshakes_that_stop_half_way(secure, authority):
    """At each flight: nothing sent, half a hello, a hello and silence."""
    s = secure("p256", "", "", "--pre-auth-deadline", "700ms")
    at = urlsplit(s.url)
    tls = authority.client()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    hello = tls.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    with pytest.raises(ssl.SSLWantReadError):
        hello.do_handshake()
    flight = outgoing.read()
    for piece in (b"", flight[:20], flight, flight[:5] + b"\0" * (len(flight) - 5), os.urandom(300)):
        with socket.create_connection((at.hostname, at.port), timeout=20) as half:
            half.sendall(piece)
            until_closed(half)
    done = dial(s.url, tls)
    assert done.recv(100) == b"", "TLS alone is no session"
    assert can_connect(s, authority)
    s.wait_log("not ready within 700 ms")
