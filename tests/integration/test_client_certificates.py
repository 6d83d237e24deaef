# SPDX-License-Identifier: ISC
"""Certificates of clients: what each bad one is told, and the log; who they
are; what a front-end that lies about them can do (execd.conf(5), execd(8))."""
import json
import os
import pathlib
import signal
import ssl
import subprocess
from urllib.parse import urlsplit

import pytest
from certificates import TOMORROW, WEAK, YESTERDAY, Authority, fingerprint
from conftest import ROOT, children_named, digest, is_alive, lines_of, poll
from execctl import Execctl
from execd_client import Closed


def helper(server, name):
    """The newest of root's children of that name."""
    return max(children_named(server.pid, name), default=None)


class World:
    """A server, two levels of authorities, and those that its operator does not know."""

    def __init__(self, configured, user, where):
        self.user, self.configured, self.where = user, configured, where
        self.root, self.other = Authority(where, "root"), Authority(where, "other")
        self.middle = Authority(where, "middle", self.root)
        self.server = self.root.issue("server", group=user.pw_gid)
        self.crl = where / "crl.pem"
        self.crl.write_text(self.root.crl() + self.middle.crl())

    def issue(self, name, *more, by=None, **how):
        """With the chain behind it."""
        by = by or self.middle
        base = by.issue(name, *more, **how)
        if by is self.middle:
            chain = pathlib.Path(f"{base}.pem").read_text() + self.middle.cert.read_text()
            pathlib.Path(f"{base}.pem").write_text(chain)
        return base

    def text(self, identity, listener="", rest=""):
        return (f"[listener tls]\naddress = wss://127.0.0.1:0\ncertificate = {self.server}.pem\n"
                f"certificate-key = {self.server}.key\nclient-ca = {self.root.cert}\n{listener}"
                f"[identity a]\nuser = {self.user.pw_name}\nsandbox-allow-unsandboxed = yes\n{identity}{rest}")

    def start(self, identity, listener=None, rest=""):
        listener = f"client-crl = {self.crl}\n" if listener is None else listener
        return self.configured(self.text(identity, listener, rest))

    def client(self, base=None):
        c = ssl.create_default_context(cafile=self.root.cert)
        if base:
            c.load_cert_chain(f"{base}.pem", f"{base}.key")
        return c

    def s_client(self, server, base, *flags):
        """What openssl's client says of the handshake."""
        at = urlsplit(server.url)
        show = ["-cert", f"{base}.pem", "-cert_chain", f"{base}.pem", "-key", f"{base}.key"] if base else []
        r = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{at.port}", "-CAfile", self.root.cert, "-ign_eof", *show,
                            *flags], input=b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n", capture_output=True, timeout=20)
        return r.stdout.decode(errors="replace") + r.stderr.decode(errors="replace")


@pytest.fixture
def world(configured, user, directory):
    return World(configured, user, directory)


def revoked(w):
    base = w.issue("revoked")
    w.middle.revoke(base)
    w.crl.write_text(w.root.crl() + w.middle.crl())
    return base


def revoked_above(w):
    w.root.revoke(w.middle.at / "ca")
    w.crl.write_text(w.root.crl() + w.middle.crl())
    return w.issue("orphan")


BAD = {
    "revoked": (revoked, "certificate revoked", 44),
    "revoked-above": (revoked_above, "certificate revoked", 44),
    "expired": (lambda w: w.issue("late", *YESTERDAY), "certificate has expired", 45),
    "early": (lambda w: w.issue("early", *TOMORROW), "certificate is not yet valid", 42),
    "other-ca": (lambda w: w.issue("mallory", by=w.other), "unable to get local issuer certificate", 48),
    "no-chain": (lambda w: w.middle.issue("chainless"), "unable to get local issuer certificate", 48),
    "purpose": (lambda w: w.issue("web", usage="serverAuth"), "certificate purpose", 43),
    "weak": (lambda w: w.issue("weak", key=WEAK), "key too weak", 42),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_certificate(world, kind):
    """Refused with an alert of its own and a reason of its own, though its
    digest is in the file; the log has one line of it."""
    make, words, alert = BAD[kind]
    base = make(world)
    log = world.where / "audit.jsonl"
    s = world.start(f"certificate-sha256 = {fingerprint(base)}\n", rest=f"[limits]\nexempt = none\n[audit]\nfile = {log}\n")
    lax = ["-cipher", "DEFAULT@SECLEVEL=0"]     # the client's own scruples are not the question
    for version in ("-tls1_3", "-tls1_2"):
        lines = s.log.count(words)
        told = world.s_client(s, base, version, *lax)
        assert f"SSL alert number {alert}" in told, told
        poll(lambda: s.log.count(words) == lines + 1, what=f"{words!r} in {s.log}")
    line = next(line for line in s.log.splitlines() if words in line)
    assert f"TLS: the client's certificate (CN={base.name}): " in line, line
    assert "opened" not in s.log
    poll(lambda: log.read_text().count("\n") == 2, what="records of both")
    record = json.loads(lines_of(log)[0])
    assert (record["event"], record["listener"]) == ("refused", "tls") and record["peer"] in line, record
    assert f"TLS: {record['reason']}" in line and words in record["reason"], record
    # Each costs 5 s: the fourth takes it over the threshold of 15 s.
    for _ in range(2):
        world.s_client(s, base, *lax)
    s.wait_log("too many failures from there")


def test_good_ones_with_three_clients(world):
    bob, log = world.issue("bob"), world.where / "audit.jsonl"
    s = world.start(f"certificate-sha256 = {fingerprint(bob)}\n", rest=f"[audit]\nfile = {log}\n")
    c = s.connect(tls=world.client(bob)).ready()
    assert c.run("x", ["/bin/echo", "in"]).stdout == "in\n"
    assert "HTTP/1.1 200 OK" in world.s_client(s, bob)
    r = subprocess.run(["curl", "-s", "--cacert", world.root.cert, "--cert", f"{bob}.pem", "--key", f"{bob}.key", "-w",
                        "%{http_code}", "https" + s.url[3:] + "/readyz"], capture_output=True, text=True, timeout=20)
    assert r.stdout == "200", r
    told = world.s_client(s, None)
    assert "SSL alert number 116" in told, told     # certificate required
    s.wait_log("peer did not return a certificate")
    poll(lambda: [r for r in map(json.loads, lines_of(log))
                  if r["event"] == "refused" and "did not return a certificate" in r["reason"]], what="its record")


def test_curl_and_python_hear_of_it(world):
    base = revoked(world)
    s = world.start(f"certificate-sha256 = {fingerprint(base)}\n")
    with pytest.raises(ssl.SSLError, match="REVOKED"):
        with ssl_socket(world, s, base) as c:
            c.sendall(b"x" * 100000)    # before it can know: these are no reason to lose the alert
            c.recv(1)
    r = subprocess.run(["curl", "-s", "-S", "--cacert", world.root.cert, "--cert", f"{base}.pem", "--key", f"{base}.key",
                        "https" + s.url[3:] + "/readyz"], capture_output=True, text=True, timeout=20)
    assert r.returncode != 0 and "revoked" in r.stderr, r


def test_execctl_hears_of_it(world, directory):
    base = revoked(world)
    s = world.start(f"certificate-sha256 = {fingerprint(base)}\n")
    r = Execctl(directory, s.url)("--ca", world.root.cert, "--certificate", f"{base}.pem", "--key", f"{base}.key",
                                  "run", "-C", "/", "true")
    assert r.code == 255 and "the server refuses our certificate: it is revoked" in r.err, r


def test_execctl_with_the_wrong_scheme(world, directory, spawn):
    """Each of the two says the other."""
    with_tls, without = world.start(f"certificate-sha256 = {'0' * 64}\n"), spawn()
    r = Execctl(directory, "wss" + without.url[2:])("run", "true")
    assert r.code == 125 and "does not speak TLS; its address begins with ws://" in r.err, r
    r = Execctl(directory, "ws" + with_tls.url[3:])("run", "true")
    assert r.code == 125 and "its address begins with wss://" in r.err, r


def ssl_socket(world, server, base):
    import socket
    at = urlsplit(server.url)
    return world.client(base).wrap_socket(socket.create_connection((at.hostname, at.port), timeout=20),
                                          server_hostname="127.0.0.1")


def can_connect(s, world, base):
    try:
        s.connect(tls=world.client(base)).ready().drop()
        return True
    except (OSError, Closed):
        return False


def test_a_reload_brings_another_list(world):
    bob, eve = world.issue("bob"), world.issue("eve")
    s = world.start(f"certificate-sha256 = {fingerprint(bob)} {fingerprint(eve)}\n")
    s.connect(tls=world.client(bob)).ready()
    assert can_connect(s, world, eve)
    world.middle.revoke(bob)
    world.crl.write_text(world.root.crl() + world.middle.crl())
    assert can_connect(s, world, bob), "only SIGHUP reads it"
    s.reload(s.path.read_text(), "another certificate, key, client CA or CRL")
    poll(lambda: not can_connect(s, world, bob), what="the new list")
    assert can_connect(s, world, eve)
    c = s.connect(tls=world.client(eve)).ready()
    assert c.run("x", ["/bin/echo", "still"]).stdout == "still\n", "others go on"
    world.crl.write_text("no list\n")
    s.reload(s.path.read_text(), f"{world.crl}: holds no PEM revocation list")
    assert can_connect(s, world, eve) and not can_connect(s, world, bob), "the one before counts"


def test_lists_that_are_missing_or_old(world):
    """Nobody whose authority says nothing, or said it too long ago, comes in."""
    bob = world.issue("bob")
    world.crl.write_text(world.root.crl())
    s = world.start(f"certificate-sha256 = {fingerprint(bob)}\n")
    assert not can_connect(s, world, bob)
    s.wait_log("unable to get certificate CRL")
    world.crl.write_text(world.root.crl() + world.middle.crl(
        "-crl_lastupdate", "20200101000000Z", "-crl_nextupdate", "20200102000000Z"))
    s.reload(s.path.read_text(), "has expired: every certificate of its CA is refused")
    poll(lambda: not can_connect(s, world, bob) and "CRL has expired" in s.log, what="the reason")
    s.reload(world.text(f"certificate-sha256 = {fingerprint(bob)}\n"), "client-crl")
    poll(lambda: can_connect(s, world, bob), what="no list")


def test_a_long_list(world):
    """Longer than any other file may be."""
    bob = world.issue("bob")
    index = world.middle.at / "index"
    index.write_text("".join(f"R\t991231235959Z\t250101000000Z\t{0x5000 + i:X}\tunknown\t/CN=gone{i}\n"
                             for i in range(3000)) + index.read_text())
    world.crl.write_text(world.root.crl() + world.middle.crl())
    assert world.crl.stat().st_size > 65536
    s = world.start(f"certificate-sha256 = {fingerprint(bob)}\n")
    assert can_connect(s, world, bob)


def test_subjects(world):
    """A name stands for every certificate that has it; a digest comes first."""
    one, two = world.issue("one", subject="/O=Users/CN=alice"), world.issue("two", subject="/O=Users/CN=alice")
    bob = world.issue("bob", subject="/CN=bob, the \"first\"")
    long = world.issue("long", subject="/CN=" + "x" * 60 + "".join(f"/O={i:060}" for i in range(4)))
    s = world.start(f"certificate-subject = CN=alice,O=Users\n\tCN=bob\\, the \\\"first\\\"\n",
                    rest=f"[identity b]\nuser = {world.user.pw_name}\nsandbox-allow-unsandboxed = yes\n"
                         f"certificate-sha256 = {fingerprint(two)}\n")
    for base, who in ((one, "a"), (two, "b"), (bob, "a")):
        seen = len(s.log)
        s.connect(tls=world.client(base)).ready()
        assert f"opened for {who}," in s.log[seen:], s.log[seen:]
    for stranger in (world.issue("alice"), world.issue("more", subject="/O=Users/CN=alice/CN=x"), long):
        with pytest.raises(Closed, match="401"):
            s.connect(tls=world.client(stranger))


def test_a_subject_names_one_identity(world):
    two = world.text("certificate-subject = CN=x\n",
                     rest=f"[identity b]\nuser = {world.user.pw_name}\ncertificate-subject = CN=x\n")
    s = world.start("certificate-subject = CN=x\n")
    s.reload(two, "[identity b] certificate-subject: [identity a] has the same one")


def test_another_certificate_process_takes_over(world):
    bob = world.issue("bob")
    s = world.start(f"certificate-sha256 = {fingerprint(bob)}\n")
    c = s.connect(tls=world.client(bob)).ready()
    first = poll(lambda: helper(s, "execd-certs"), what="the certificate process")
    # So long an old key process waits for handshakes that have begun. A reload brings new processes.
    s.reload(s.path.read_text() + "[limits]\npre-auth-deadline = 1s\n", "pre-auth-deadline: 1s")
    old = poll(lambda: (new := helper(s, "execd-certs")) != first and new, what="the certificate process")
    keys = helper(s, "execd-keys")
    os.kill(old, signal.SIGKILL)
    s.wait_log(f"certificate process {old}: ended, signal 9")
    poll(lambda: helper(s, "execd-certs") not in (None, old))
    poll(lambda: can_connect(s, world, bob), what="TLS handshakes")
    poll(lambda: not is_alive(keys), what="end of the old key process")
    c = s.connect(tls=world.client(bob)).ready(resumeSessionId=c.session_id)
    assert c.run("x", ["/bin/echo", "still"]).stdout == "still\n"


def test_without_a_client_ca_there_is_no_certificate_process(world):
    s = world.configured(world.text(f"token-sha256 = {digest('t')}\n").replace(f"client-ca = {world.root.cert}\n", ""))
    s.connect(tls=world.client(), token="t").ready()
    assert helper(s, "execd-keys") and not helper(s, "execd-certs")


@pytest.mark.skipif(not ROOT, reason="THE CERTIFICATE PROCESS IS NOT LOOKED AT: this needs root")
def test_the_certificate_process_is_locked_up_and_has_no_key(world, mode):
    from test_isolation import check_frontend, status
    from test_tls import memory_has, secrets_of
    s = world.start(f"token-sha256 = {digest('t')}\n", "client-certificate = optional\n")
    s.connect(tls=world.client(), token="t").ready()
    pid = poll(lambda: helper(s, "execd-certs"), what="the certificate process")
    poll(lambda: status(pid)["Seccomp"] != "0", what="its filter")
    check_frontend(pid)
    assert sorted(os.listdir(f"/proc/{pid}/fd")) == ["0", "1", "2", "3"]
    needles = secrets_of(world.server, "p256")
    assert memory_has(helper(s, "execd-keys"), needles) and not memory_has(pid, needles)
    if mode == "root":
        assert int(status(pid)["CapBnd"], 16) == 0


def test_a_chain_that_is_too_long(world):
    """Beyond what the certificate process is given; nothing but this handshake ends."""
    bob = world.issue("bob")
    s = world.start(f"certificate-sha256 = {fingerprint(bob)}\n")
    base = world.issue("much")
    text = pathlib.Path(f"{base}.pem").read_text()
    pathlib.Path(f"{base}.pem").write_text(text + world.middle.cert.read_text() * 40)
    told = world.s_client(s, base)
    assert "alert" in told, told
    s.wait_log("TLS: excessive message size")
    assert can_connect(s, world, bob)
