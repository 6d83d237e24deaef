# SPDX-License-Identifier: ISC
"""execctl against the real TLS listener: credentials, every wrong certificate of
either side, and a change of certificates under a session (execctl(1))."""
import pathlib

import pytest
from certificates import YESTERDAY, Authority, fingerprint
from conftest import digest, poll
from execctl import Execctl


class World:
    def __init__(self, configured, user, where):
        self.configured, self.user, self.where = configured, user, where
        self.root = Authority(where, "root")
        self.server = self.root.issue("server", group=user.pw_gid)
        self.client = self.root.issue("client")
        self.crl = where / "crl.pem"
        self.crl.write_text(self.root.crl())

    def text(self, base=None, more=""):
        base = base or self.server
        return (f"[listener tls]\naddress = wss://127.0.0.1:0\ncertificate = {base}.pem\ncertificate-key = {base}.key\n"
                f"{more}[identity a]\nuser = {self.user.pw_name}\nsandbox-allow-unsandboxed = yes\n"
                f"token-sha256 = {digest('tok')}\n[identity b]\nuser = {self.user.pw_name}\n"
                f"sandbox-allow-unsandboxed = yes\ncertificate-sha256 = {fingerprint(self.client)}\n")

    def start(self, base=None, more=""):
        self.s = self.configured(self.text(base, more))
        return self.s

    def ctl(self, *flags, url=None, **env):
        """With the CA and these flags."""
        ctl = Execctl(self.where, url or self.s.url, **env)
        return lambda *args, **how: ctl("--ca", self.root.cert, *flags, *args, **how)

    def mutual(self, wanted="required"):
        return self.start(more=f"client-ca = {self.root.cert}\nclient-crl = {self.crl}\nclient-certificate = {wanted}\n")


@pytest.fixture
def world(configured, user, directory):
    return World(configured, user, directory)


def test_a_token(world):
    world.start()
    r = world.ctl(EXECD_TOKEN="tok")("run", "echo", "hi")
    assert (r.code, r.out) == (0, b"hi\n"), r
    (world.where / "token").write_text("tok\n")
    (world.where / "token").chmod(0o600)
    assert world.ctl("--token-file", world.where / "token")("run", "true").code == 0
    for wrong in (world.ctl(EXECD_TOKEN="other"), world.ctl()):
        r = wrong("run", "echo", "hi")
        assert r.code == 255 and r.out == b"" and "401" in r.err, r
    assert world.s.log.count(": refused: ") == 2


def test_files_and_streams(world):
    """As much as several records, each way."""
    world.start()
    ctl = world.ctl(EXECD_TOKEN="tok")
    data = bytes(range(256)) * 20000
    assert ctl("run", "cat", input=data).out == data
    (world.where / "big").write_bytes(data)
    assert ctl("cat", world.where / "big").out == data


def test_a_client_certificate(world):
    s = world.mutual()
    r = world.ctl("--certificate", f"{world.client}.pem", "--key", f"{world.client}.key")("run", "echo", "hi")
    assert (r.code, r.out) == (0, b"hi\n") and "opened for b," in s.log, r
    both = pathlib.Path(f"{world.client}.pem").read_text() + pathlib.Path(f"{world.client}.key").read_text()
    (world.where / "both.pem").write_text(both)
    assert world.ctl("--certificate", world.where / "both.pem")("run", "true").code == 0
    r = world.ctl(EXECD_TOKEN="tok")("run", "true")         # the listener wants one, too
    assert r.code in (125, 255) and r.out == b"", r


def test_a_certificate_or_a_token(world):
    s = world.mutual("optional")
    assert world.ctl("--certificate", f"{world.client}.pem", "--key", f"{world.client}.key")("run", "true").code == 0
    assert world.ctl(EXECD_TOKEN="tok")("run", "true").code == 0
    assert world.ctl()("run", "true").code == 255
    assert "opened for a," in s.log and "opened for b," in s.log


def revoked(w):
    base = w.root.issue("gone")
    w.root.revoke(base)
    w.crl.write_text(w.root.crl())
    return base


@pytest.mark.parametrize("make, words", [
    (lambda w: Authority(w.where, "other").issue("mallory"), "unable to get local issuer certificate"),
    (lambda w: w.root.issue("late", *YESTERDAY), "certificate has expired"),
    (lambda w: w.root.issue("web", usage="serverAuth"), "certificate purpose"),
    (revoked, "certificate revoked")], ids=["ca", "expired", "purpose", "revoked"])
def test_a_bad_client_certificate(world, make, words):
    """Nothing runs, the status is no command's, and the server's log knows why."""
    base = make(world)
    s = world.mutual()
    r = world.ctl("--certificate", f"{base}.pem", "--key", f"{base}.key", EXECD_TOKEN="tok")(
        "run", "touch", world.where / "ran")
    assert r.code in (125, 255) and r.err, r
    s.wait_log(words)
    assert not (world.where / "ran").exists() and "opened" not in s.log


def test_another_authority(world):
    """The server is not who the client's CA says: not a byte of the token leaves."""
    s = world.start()
    other = Authority(world.where, "other")
    r = Execctl(world.where, s.url, EXECD_TOKEN="tok")("--ca", other.cert, "run", "true")
    assert r.code == 255 and "unable to get local issuer certificate" in r.err, r
    r = Execctl(world.where, s.url, EXECD_TOKEN="tok")("run", "true")
    assert r.code == 255 and "certificate is refused" in r.err, r
    assert "granted" not in s.log and "opened" not in s.log


def test_an_expired_server_certificate(world):
    world.start(world.root.issue("late", *YESTERDAY, group=world.user.pw_gid))
    r = world.ctl(EXECD_TOKEN="tok")("run", "true")
    assert r.code == 255 and "certificate has expired" in r.err, r


def test_a_server_certificate_for_another_purpose(world):
    world.start(world.root.issue("client-only", usage="clientAuth", group=world.user.pw_gid))
    r = world.ctl(EXECD_TOKEN="tok")("run", "true")
    assert r.code == 255 and "purpose" in r.err, r


def test_a_host_that_the_certificate_does_not_name(world):
    world.start()
    r = world.ctl(url=world.s.url.replace("127.0.0.1", "localhost"), EXECD_TOKEN="tok")("run", "true")
    assert r.code == 255 and "hostname mismatch" in r.err.lower(), r


def test_certificates_change_under_a_session(world):
    """SIGHUP: who comes next sees the new ones, who trusts only the old ones cannot resume; one that no
    longer fits changes nothing."""
    s = world.mutual("optional")
    go = world.where / "go"
    ctl = Execctl(world.where, s.url, EXECD_TOKEN="tok")
    p = ctl.popen("--ca", world.root.cert, "run", "sh", "-c",
                  f"echo one; until [ -e {go} ]; do sleep 0.1; done; echo two; exit 3")
    assert p.stdout.readline() == b"one\n"
    fresh = Authority(world.where, "fresh")
    base = fresh.issue("server2", group=world.user.pw_gid)
    text = s.path.read_text()
    s.reload(text.replace(str(world.server), str(base)), "another certificate, key, client CA or CRL")
    new = Execctl(world.where, s.url, EXECD_TOKEN="tok")
    poll(lambda: new("--ca", fresh.cert, "run", "true").code == 0, 30, "the new certificate")
    assert new("--ca", world.root.cert, "run", "true").code == 255
    s.reload(text.replace(f"{world.server}.pem", f"{base}.pem"), "is not the key of")
    assert new("--ca", fresh.cert, "run", "true").code == 0
    go.touch()
    assert (p.stdout.read(), p.wait(30)) == (b"", 254)
