# SPDX-License-Identifier: ISC
"""execctl over TLS: only the right certificate will do."""
import pytest
from execctl import Execctl, Proxy, make_authority, server_context


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
