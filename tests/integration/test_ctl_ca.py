# SPDX-License-Identifier: ISC
"""execd ctl ca: a small authority whose certificates the strictest clients accept (execd-ctl(8))."""
import json
import os
import ssl
import stat
import subprocess

import pytest
from conftest import EXECD

pytestmark = pytest.mark.usefixtures("mode")


@pytest.fixture
def ca(directory):
    def run(*args, code=0):
        r = subprocess.run([EXECD, "ctl", "ca", *args, "--dir", directory / "ca"], capture_output=True, text=True, timeout=30)
        assert r.returncode == code, r
        return r.stdout if code == 0 else r.stderr
    return run


def text_of(path):
    return subprocess.run(["openssl", "x509", "-in", path, "-noout", "-text"], capture_output=True, text=True, check=True).stdout


def test_strict_clients_accept_it(ca, configured, user, directory, mode):
    """Each way: the server's by its name and its address, and the client's. With the checks of Python 3.13."""
    at = directory / "ca"
    ca("init")
    made = ca("server", "build.example.org", "127.0.0.1", "::1")
    assert f"certificate: {at}/server-build.example.org.pem\n" in made and f"key: {at}/server-build.example.org.key\n" in made
    ca("client", "ci")
    for kind, name in (("sslserver", "server-build.example.org"), ("sslclient", "client-ci")):
        subprocess.run(["openssl", "verify", "-x509_strict", "-purpose", kind, "-CAfile", at / "ca.pem", at / f"{name}.pem"], check=True,
                       capture_output=True)
    if mode == "user":
        os.chown(at / "server-build.example.org.key", user.pw_uid, user.pw_gid)
    s = configured(f"[listener tls]\naddress = wss://127.0.0.1:0\ncertificate = {at}/server-build.example.org.pem\n"
                   f"certificate-key = {at}/server-build.example.org.key\nclient-ca = {at}/ca.pem\n"
                   f"[identity ci]\nuser = {user.pw_name}\nsandbox-allow-unsandboxed = yes\ncertificate-subject = CN=ci\n")
    tls = ssl.create_default_context(cafile=at / "ca.pem")
    tls.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    tls.load_cert_chain(at / "client-ci.pem", at / "client-ci.key")
    c = s.connect(tls=tls).ready()
    assert c.run("x", ["/bin/echo", "in"]).stdout == "in\n"


def test_what_it_writes(ca, directory):
    at = directory / "ca"
    ca("init")
    ca("server", "*.example.org")
    assert {p.name: oct(stat.S_IMODE(p.stat().st_mode)) for p in at.iterdir()} == {
        "ca.key": "0o600", "ca.pem": "0o644", "server-example.org.key": "0o600", "server-example.org.pem": "0o644"}
    authority, server = text_of(at / "ca.pem"), text_of(at / "server-example.org.pem")
    for words in ("CA:TRUE, pathlen:0", "X509v3 Key Usage: critical\n                Certificate Sign, CRL Sign", "Subject Key Identifier",
                  "Authority Key Identifier", "NIST CURVE: P-256", "Version: 3"):
        assert words in authority, authority
    for words in ("CA:FALSE", "TLS Web Server Authentication", "DNS:*.example.org", "Authority Key Identifier",
                  "X509v3 Key Usage: critical\n                Digital Signature"):
        assert words in server, server
    serials = set()
    for name in ("a", "b"):
        ca("client", name)
        serials.add(subprocess.run(["openssl", "x509", "-in", at / f"client-{name}.pem", "-noout", "-serial"], capture_output=True).stdout)
    assert len(serials) == 2 and all(len(x) > 40 for x in serials)


def test_nothing_is_written_over(ca, directory):
    at = directory / "ca"
    ca("init")
    ca("client", "ci")
    before = {p.name: p.read_bytes() for p in at.iterdir()}
    assert "ca.pem: File exists" in ca("init", code=1)
    assert "client-ci.pem: File exists" in ca("client", "ci", code=1)
    (at / "client-ci.pem").unlink()
    assert "client-ci.key: File exists" in ca("client", "ci", code=1)
    before.pop("client-ci.pem")
    assert {p.name: p.read_bytes() for p in at.iterdir()} == before, "and no other file is left"


def test_days(ca, directory):
    """Nothing counts for longer than its authority."""
    def made(*args):
        return json.loads(ca("--json", *args))["result"]["expires"]
    end = made("init", "--days", "10")
    assert made("client", "long") == end and made("client", "short", "--days", "2") < end


@pytest.mark.parametrize("argv, code, said", [
    (["client", "ci"], 1, "ca.pem: No such file"),
    (["server"], 2, "a name is needed"),
    (["server", "a,DNS:b"], 2, "neither a host's name nor an address: a,DNS:b"),
    (["server", "a\nb"], 2, "neither a host's name"),
    (["server", "-x.example"], 2, ""),
    (["client", "../x"], 2, "a name of letters"),
    (["client", "a", "b"], 2, "unexpected b"),
    (["init", "--days", "0"], 2, "1 to 36500"),
    (["init", "x"], 2, "unexpected x"),
    (["sign"], 2, "say init, server or client")])
def test_what_is_asked_wrongly(ca, argv, code, said):
    assert said in ca(*argv, code=code)


@pytest.mark.parametrize("spoil, said", [
    (lambda at: (at / "ca.key").chmod(0o640), "others may read it"),
    (lambda at: (at / "ca.pem").write_text("x"), "ca.pem: "),
    (lambda at: (at / "ca.key").write_bytes((at.parent / "other/ca.key").read_bytes()), "is not the key of ca.pem")])
def test_an_authority_that_is_none(ca, directory, spoil, said):
    ca("init")
    subprocess.run([EXECD, "ctl", "ca", "init", "--dir", directory / "other"], check=True, capture_output=True)
    spoil(directory / "ca")
    assert said in ca("client", "ci", code=1)
    assert not (directory / "ca/client-ci.key").exists()
