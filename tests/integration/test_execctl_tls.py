# SPDX-License-Identifier: ISC
"""execctl over TLS: only the right certificate will do, or the key that the user has taken."""
import base64
import hashlib
import json
import os
import subprocess

import pytest
from execctl import Execctl, Proxy, make_authority, server_context
from test_execctl_tty import terminal  # noqa: F401


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return make_authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture
def encrypted(server, authority):
    started = []

    def start(context):
        p = Proxy(server.url, tls=context)
        started.append(p)
        return p

    yield start
    for p in started:
        p.close()


def test_the_authority_is_named(encrypted, authority, directory):
    ctl = Execctl(directory, encrypted(server_context(authority)).url)
    assert ctl.ok("--ca", authority / "ca.pem", "run", "echo", "hi") == b"hi\n"
    data = b"x" * 3_000_000
    (directory / "a").write_bytes(data)
    (directory / "a").chmod(0o644)
    assert ctl.ok("--ca", authority / "ca.pem", "cat", directory / "a") == data


def test_no_certificate_is_taken_on_trust(encrypted, authority, directory):
    ctl = Execctl(directory, encrypted(server_context(authority)).url)
    r = ctl("run", "true")
    assert r.code == 255 and "certificate is refused" in r.err and "unable to get local issuer" in r.err


def test_the_certificate_must_be_the_hosts(server, directory, tmp_path):
    d = make_authority(tmp_path, "other.example")
    proxy = Proxy(server.url, tls=server_context(d))
    r = Execctl(directory, proxy.url)("--ca", d / "ca.pem", "run", "true")
    proxy.close()
    assert r.code == 255 and "IP address mismatch" in r.err


def test_a_name_instead_of_an_address(server, directory, tmp_path):
    d = make_authority(tmp_path, "localhost")
    proxy = Proxy(server.url, tls=server_context(d))
    ctl = Execctl(directory, proxy.url.replace("127.0.0.1", "localhost"))
    assert ctl.ok("--ca", d / "ca.pem", "run", "echo", "hi") == b"hi\n"
    proxy.close()


def test_client_certificates(encrypted, authority, directory):
    ctl = Execctl(directory, encrypted(server_context(authority, want_client=True)).url)
    assert ctl("--ca", authority / "ca.pem", "run", "true").code in (125, 255)
    ctl.ok("--ca", authority / "ca.pem", "--certificate", authority / "client.pem", "run", "true")
    ctl.ok("--ca", authority / "ca.pem", "--certificate", authority / "client.crt", "--key",
           authority / "client.key", "run", "true")
    r = ctl("--ca", authority / "ca.pem", "--certificate", authority / "client.crt", "--key",
            authority / "server.key", "run", "true")
    assert r.code == 255 and "key" in r.err
    r = ctl("--ca", authority / "ca.pem", "--certificate", "/nonexistent", "run", "true")
    assert r.code == 255 and "/nonexistent" in r.err


def test_no_tls_where_tls_is_expected(server, authority, directory):
    r = Execctl(directory, server.url.replace("ws:", "wss:"))("--ca", authority / "ca.pem", "info")
    assert r.code == 125 and "TLS handshake" in r.err


def test_a_cut_is_resumed(encrypted, authority, directory):
    proxy = encrypted(server_context(authority))
    ctl = Execctl(directory, proxy.url)
    p = ctl.popen("--ca", authority / "ca.pem", "run", "sh", "-c",
                  f"echo one; until [ -e {directory}/go ]; do sleep 0.1; done; echo two; exit 3")
    assert p.stdout.readline() == b"one\n"
    proxy.cut()
    (directory / "go").touch()
    assert (p.stdout.read(), p.wait(30)) == (b"two\n", 3)


def key_of(d):
    """As ssh-keygen -l shows one, of the server's SubjectPublicKeyInfo."""
    pem = subprocess.run(["openssl", "x509", "-in", d / "server.crt", "-noout", "-pubkey"], check=True, capture_output=True).stdout
    der = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "der"], input=pem, check=True, capture_output=True).stdout
    return "SHA256:" + base64.b64encode(hashlib.sha256(der).digest()).decode().rstrip("=")


def test_a_key_is_taken(encrypted, authority, directory):
    """Nobody says yes without a terminal, but for an option. Then the key is enough, also after a cut."""
    url, conf = encrypted(server_context(authority)).url, directory / "environments.conf"
    ctl = Execctl(directory, None)
    r = ctl("environments", "add", "box", url)
    assert r.code == 255 and key_of(authority) in r.err and "no terminal to ask at" in r.err and not conf.exists(), r
    r = ctl("environments", "add", "--accept-key", "box", url)
    assert r.code == 0 and key_of(authority) in r.err and "box is the only environment, so it is the default" in r.err, r
    assert f"server-key = {key_of(authority)}\n" in conf.read_text()
    assert ctl.ok("run", "echo", "hi") == b"hi\n"
    assert json.loads(ctl.ok("--json", "environments", "test", "box"))["trustedBy"] == "key"
    # A key is of an environment, and no URL is trusted for its sake.
    assert "certificate is refused" in ctl("-u", url, "run", "true").err


@pytest.mark.parametrize("answer", ["yes", "no", "the key", "another key", ""])
def test_who_is_asked(encrypted, authority, directory, terminal, answer):  # noqa: F811
    ctl = Execctl(directory, None)
    t = terminal(ctl, "environments", "add", "box", encrypted(server_context(authority)).url)
    t.wait(b"(yes, no, or the fingerprint)? ")
    assert key_of(authority).encode() in t.seen
    os.write(t.master, {"the key": key_of(authority), "another key": key_of(authority)[:-1]}.get(answer, answer).encode() + b"\r")
    added = answer in ("yes", "the key")
    assert t.ended() == (0 if added else 255)
    assert (directory / "environments.conf").exists() == added


def test_another_key(server, encrypted, authority, directory, tmp_path):
    """As ssh has it: both keys, where the old one is, and what to do. Not a byte reaches the server; --ca wins."""
    conf, other = directory / "environments.conf", make_authority(tmp_path)
    ctl = Execctl(directory, None, EXECD_TOKEN="secret")
    ctl.ok("environments", "add", "--accept-key", "box", encrypted(server_context(authority)).url)
    proxy = encrypted(server_context(other))
    text = conf.read_text().splitlines()
    conf.write_text("\n".join(f"url = {proxy.url}" if line.startswith("url") else line for line in text) + "\n")
    at = next(i for i, line in enumerate(text, 1) if line.startswith("server-key"))
    for args in (["-e", "box", "run", "touch", directory / "ran"], ["environments", "test", "box"]):
        r = ctl(*args)
        assert r.code == 255 and "THE KEY OF THE SERVER HAS CHANGED" in r.err and f"{conf}:{at} expects" in r.err, r
        assert key_of(authority) in r.err and key_of(other) in r.err and "execctl environments remove box" in r.err, r
    assert proxy.up == 0 and not (directory / "ran").exists()
    assert ctl.ok("--ca", other / "ca.pem", "-e", "box", "run", "echo", "hi") == b"hi\n"
    r = ctl("--ca", authority / "ca.pem", "-e", "box", "run", "true")
    assert r.code == 255 and "certificate is refused" in r.err and "CHANGED" not in r.err, r


def test_an_authority_needs_no_key(encrypted, authority, directory):
    url = encrypted(server_context(authority)).url
    ctl = Execctl(directory, None, SSL_CERT_FILE=str(authority / "ca.pem"))
    r = ctl("environments", "add", "box", url)
    assert r.code == 0 and "SHA256" not in r.err + (directory / "environments.conf").read_text(), r
    assert b"trusted by an authority" in ctl.ok("environments", "test", "box")
    # So does one that is named, which is not even asked.
    ctl = Execctl(directory, None)
    ctl.ok("--ca", authority / "ca.pem", "environments", "add", "named", url)
    assert b"trusted by an authority" in ctl.ok("environments", "test", "named")


def test_a_key_in_place_of_a_name(server, directory, tmp_path):
    """Where the key decides, it does not matter for whom the certificate is. An authority's is for its host."""
    d = make_authority(tmp_path, "other.example")
    proxy = Proxy(server.url, tls=server_context(d))
    ctl = Execctl(directory, None)
    ctl.ok("environments", "add", "--accept-key", "box", proxy.url)
    p = ctl.popen("-e", "box", "run", "sh", "-c", f"echo one; until [ -e {directory}/go ]; do sleep 0.1; done; echo two")
    assert p.stdout.readline() == b"one\n"
    proxy.cut()
    (directory / "go").touch()
    assert (p.stdout.read(), p.wait(30)) == (b"two\n", 0)
    known = Execctl(directory, None, SSL_CERT_FILE=str(d / "ca.pem"))
    r = known("environments", "add", "known", proxy.url)
    assert r.code == 0 and "it is not for 127.0.0.1; known is added all the same, and no key is expected of it" in r.err, r
    assert known("environments", "test", "known").code == 255
    proxy.close()


def test_a_server_that_is_away_is_added(directory):
    r = Execctl(directory, None)("--connect-timeout", "300ms", "environments", "add", "box", "wss://127.0.0.1:1")
    assert r.code == 0 and "refused; box is added all the same, and no key is expected of it" in r.err, r
