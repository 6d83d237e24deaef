# SPDX-License-Identifier: ISC
"""Certificates for tests: an authority of its own, which issues good ones and
all kinds of bad ones, and revokes (openssl-ca(1))."""
import hashlib
import os
import subprocess

CONFIG = """
[ca]
default_ca = this
[this]
database = {d}/index
serial = {d}/serial
crlnumber = {d}/crlnumber
new_certs_dir = {d}
certificate = {d}/ca.pem
private_key = {d}/ca.key
default_md = sha256
policy = any
copy_extensions = copy
unique_subject = no
default_days = 5
default_crl_days = 5
[any]
organizationName = optional
commonName = supplied
[authority]
basicConstraints = critical,CA:true
keyUsage = critical,keyCertSign,cRLSign
subjectKeyIdentifier = hash
"""
EC = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
WEAK = ["-newkey", "rsa:1024"]


def openssl(*args):
    r = subprocess.run(["openssl", *map(str, args)], capture_output=True, stdin=subprocess.DEVNULL)
    assert r.returncode == 0, (args, r.stderr.decode())
    return r.stdout


def fingerprint(base):
    return hashlib.sha256(openssl("x509", "-in", f"{base}.pem", "-outform", "DER")).hexdigest()


class Authority:
    """Its own certificate is self-signed, or of the authority `above`."""

    def __init__(self, where, name, above=None):
        self.at = d = where / name
        d.mkdir()
        self.name, self.where = name, where
        self.cert, self.key, self.config = d / "ca.pem", d / "ca.key", d / "ca.conf"
        self.config.write_text(CONFIG.format(d=d))
        (d / "index").touch()
        for number in ("serial", "crlnumber"):
            (d / number).write_text("1000\n")
        openssl("req", "-new", *EC, "-nodes", "-keyout", self.key, "-out", d / "ca.csr", "-subj", f"/CN={name}")
        if above is None:
            self.sign(d / "ca.csr", self.cert, "-selfsign", "-extensions", "authority")
        else:
            above.sign(d / "ca.csr", self.cert, "-extensions", "authority", "-extfile", self.config)

    def sign(self, request, out, *more):
        openssl("ca", "-batch", "-config", self.config, "-in", request, "-out", out, "-notext", *more)

    def issue(self, name, *more, subject=None, key=EC, usage=None, group=None):
        """The path of NAME.pem and NAME.key, without the ending."""
        base = self.where / name
        extensions = ["-addext", "subjectAltName=IP:127.0.0.1"] + (["-addext", f"extendedKeyUsage={usage}"] if usage else [])
        openssl("req", "-new", *key, "-nodes", "-keyout", f"{base}.key", "-out", f"{base}.csr",
                "-subj", subject or f"/CN={name}", "-multivalue-rdn", *extensions)
        self.sign(f"{base}.csr", f"{base}.pem", *more)
        lend(f"{base}.key", group)
        return base

    def revoke(self, base):
        openssl("ca", "-batch", "-config", self.config, "-revoke", f"{base}.pem")

    def crl(self, *more):
        """The text of a new revocation list."""
        return openssl("ca", "-batch", "-config", self.config, "-gencrl", *more).decode()


def lend(path, group):
    """A secret that this group may read, where root decides that."""
    os.chmod(path, 0o640 if group is not None and os.geteuid() == 0 else 0o600)
    if group is not None and os.geteuid() == 0:
        os.chown(path, 0, group)


YESTERDAY = ["-startdate", "20200101000000Z", "-enddate", "20200201000000Z"]
TOMORROW = ["-startdate", "20900101000000Z", "-enddate", "20910101000000Z"]
