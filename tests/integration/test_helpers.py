# SPDX-License-Identifier: ISC
"""execd-keys by itself, in both of its lives, with a front-end that is not ours:
what it answers, what it seals, and what ends it."""
import array
import hashlib
import hmac
import os
import socket
import struct
import subprocess
import time

import pytest
from certificates import YESTERDAY, Authority, openssl
from conftest import BUILD, frontend_version

CONFIGURE, SERVE, SIGN, SIGNED, TRUST, VERIFY, VERIFIED = 60, 62, 64, 65, 66, 68, 69
CHAIN_MAX = 12 << 10
SECRET = b"s" * 32
EXPIRED = 10            # X509_V_ERR_CERT_HAS_EXPIRED
VERSION = frontend_version()


def u32(*n):
    return struct.pack(f"<{len(n)}I", *n)


class Helper:
    def __init__(self):
        self.s, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.s.settimeout(20)
        self.child = subprocess.Popen([BUILD / "daemon/keys/execd-keys"], stdin=subprocess.DEVNULL, pass_fds=(3,),
                                      stderr=subprocess.PIPE, preexec_fn=lambda: os.dup2(theirs.fileno(), 3))
        theirs.close()

    def send(self, data, *files):
        fds = [os.open(f, os.O_RDONLY) for f in files]
        try:
            self.s.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])
        finally:
            for fd in fds:
                os.close(fd)

    def serve(self):
        self.send(u32(SERVE, VERSION) + SECRET)

    def verify(self, chain, listener=7, length=None):
        """(error, verdict) of this chain; the verdict without its seal, and the seal."""
        self.send(u32(VERIFY, 5, listener, len(chain) if length is None else length) + chain.ljust(CHAIN_MAX, b"\0"))
        answer = self.s.recv(16384)
        assert answer[:8] == u32(VERIFIED, 5)
        return struct.unpack("<I", answer[8:12])[0], answer[12:-32], answer[-32:]

    def ended(self):
        """By itself, with a word about it."""
        try:
            assert self.s.recv(16384) == b""
        except ConnectionResetError:
            pass
        assert self.child.wait(20) == 1
        return self.child.stderr.read().decode()

    def stop(self):
        self.s.close()
        if self.child.wait(20) == 0:
            assert self.child.stderr.read() == b""


@pytest.fixture
def helper():
    h = Helper()
    yield h
    h.stop()


@pytest.fixture
def authority(directory):
    return Authority(directory, "root")


def der(base):
    return openssl("x509", "-in", f"{base}.pem", "-outform", "DER")


@pytest.fixture
def verifier(helper, authority):
    helper.send(u32(TRUST, VERSION, 7) + b"\0", authority.cert)
    helper.serve()
    return helper


def test_a_verdict(verifier, authority):
    """Its fields and its seal, computed here again."""
    chain = der(authority.issue("bob"))
    error, verdict, seal = verifier.verify(chain)
    listener, made_ms = struct.unpack("<IQ", verdict[:12])
    assert (error, listener) == (0, 7) and abs(made_ms - time.monotonic_ns() // 1000000) < 5000
    assert verdict[12:44] == hashlib.sha256(chain).digest() and verdict[44:] == u32(6) + b"CN=bob"
    assert seal == hmac.new(SECRET, b"execd client certificate" + verdict, hashlib.sha256).digest()


def test_what_is_not_good_is_not_sealed(verifier, authority, directory):
    late, other = der(authority.issue("late", *YESTERDAY)), der(Authority(directory, "other").issue("mallory"))
    good = der(authority.issue("bob"))
    assert verifier.verify(late)[0] == EXPIRED
    for chain in (late, other, b"", b"\x30\x82", good[:-1], good + b"\0", os.urandom(1000), b"\x30\x80" * 3000,
                  b"\x30\x84\xff\xff\xff\xff" + b"\0" * 100):
        error, _, seal = verifier.verify(chain)
        assert error != 0 and seal == b"\0" * 32, chain[:20]
    # Another's signature under a good certificate's fields.
    broken = bytearray(good)
    broken[-5] ^= 1
    assert verifier.verify(bytes(broken))[0] != 0
    assert verifier.verify(good + other)[0] == 0, "what else the client sends is not needed"


def trust_too_late(h):
    """Once it serves, the kernel lets no descriptor in (from Linux 6.16); before, the descriptor comes along."""
    try:
        h.send(u32(TRUST, VERSION, 9) + b"\0", "/dev/null")
    except PermissionError:
        h.send(u32(TRUST, VERSION, 9) + b"\0")


@pytest.mark.parametrize("order", [
    lambda h: h.send(u32(SIGN, 1, 7, 0x0403, 130) + b" " * 1024),               # it has no key
    lambda h: h.send(u32(VERIFY, 1, 8, 10) + b"\0" * CHAIN_MAX),                # no such listener
    lambda h: h.send(u32(VERIFY, 1, 7, CHAIN_MAX + 1) + b"\0" * CHAIN_MAX),
    lambda h: h.send(u32(VERIFY, 1, 7, 0) + b"\0" * (CHAIN_MAX - 1)),
    lambda h: h.send(u32(SERVE) + SECRET),                                      # twice
    trust_too_late,
    lambda h: h.send(u32(VERIFIED, 1)), lambda h: h.send(b"x"), lambda h: h.send(b"x" * 30000)], ids=range(9))
def test_impossible_requests_of_a_verifier(verifier, order):
    order(verifier)
    assert "execd-keys" in verifier.ended()


def test_one_life_only(helper, authority):
    """Whoever has a key verifies nothing, and nobody has both."""
    base = authority.issue("server")
    helper.send(u32(CONFIGURE, VERSION, 7), f"{base}.key")
    helper.send(u32(TRUST, VERSION, 7) + b"\0", authority.cert)
    assert "impossible request: KEYS_TRUST" in helper.ended()
    h = Helper()
    h.send(u32(TRUST, VERSION, 7) + b"\0", authority.cert)
    h.send(u32(CONFIGURE, VERSION, 7), f"{base}.key")
    assert "impossible request: KEYS_CONFIGURE" in h.ended()


def test_a_signer_verifies_nothing(helper, authority):
    base = authority.issue("server")
    helper.send(u32(CONFIGURE, VERSION, 7), f"{base}.key")
    helper.serve()
    helper.send(u32(VERIFY, 1, 7, 0) + b"\0" * CHAIN_MAX)
    assert "impossible request: KEYS_VERIFY" in helper.ended()


@pytest.mark.parametrize("files", [["ca"], ["empty", "ca"], ["ca", "empty"], ["garbage"]], ids=str)
def test_files_that_are_none(helper, authority, directory, files):
    (directory / "empty").touch()
    (directory / "garbage").write_bytes(os.urandom(3000))
    at = {"ca": authority.key, "empty": directory / "empty", "garbage": directory / "garbage"}
    helper.send(u32(TRUST, VERSION, 7) + bytes([len(files) - 1]), *(at[f] for f in files))
    assert "a client CA that cannot be read" in helper.ended()
