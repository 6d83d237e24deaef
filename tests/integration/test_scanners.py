# SPDX-License-Identifier: ISC
"""What scanners say of the TLS listener. Each finding is either none, or stands
below with its reason."""
import json
import re
import shutil
import subprocess
from urllib.parse import urlsplit

import pytest
from certificates import EC, Authority
from conftest import SANITIZED, digest

RSA = ["-newkey", "rsa:2048"]


@pytest.fixture
def port(configured, user, directory, mode, request):
    if mode == "root":
        pytest.skip("the same bytes in either mode")
    base = Authority(directory, "root").issue("server", key=request.param, group=user.pw_gid)
    s = configured(f"[listener tls]\naddress = wss://127.0.0.1:0\ncertificate = {base}.pem\ncertificate-key = {base}.key\n"
                   f"[identity a]\nuser = {user.pw_name}\ntoken-sha256 = {digest('t')}\n")
    return urlsplit(s.url).port


def need(program):
    if not shutil.which(program):
        pytest.skip(f"THE TLS LISTENER IS NOT SCANNED: there is no {program}")


@pytest.mark.parametrize("port", [EC, RSA], ids=["ec", "rsa"], indirect=True)
def test_sslscan(port):
    need("sslscan")
    out = subprocess.run(["sslscan", "--no-colour", f"127.0.0.1:{port}"], capture_output=True, text=True, timeout=60).stdout
    assert dict(re.findall(r"^(SSLv\d|TLSv1\.\d)\s+(enabled|disabled)$", out, re.M)) == {
        "SSLv2": "disabled", "SSLv3": "disabled", "TLSv1.0": "disabled", "TLSv1.1": "disabled",
        "TLSv1.2": "enabled", "TLSv1.3": "enabled"}, out
    assert "Session renegotiation not supported" in out and "Server supports TLS Fallback SCSV" in out
    assert len(re.findall(r"not vulnerable to heartbleed", out)) == 2 and " vulnerable to" not in out.replace("not vulnerable to", "")
    suites = re.findall(r"^(?:Preferred|Accepted)\s+(TLSv1\.\d)\s+(\d+) bits\s+(\S+)", out, re.M)
    assert len(suites) == 6, out
    for version, bits, name in suites:
        assert int(bits) >= 128 and re.search(r"GCM|POLY1305", name), name
        assert version == "TLSv1.3" or name.startswith("ECDHE-"), name
    groups = re.findall(r"^TLSv1\.\d\s+\d+ bits\s+(\S+)", out.split("Server Key Exchange Group(s):")[1], re.M)
    assert set(groups) <= {"x25519", "secp256r1", "secp384r1", "secp521r1"} and "x25519" in groups, out


# Not the listener's, but of this test's certificates or of web sites.
EXPLAINED = {
    "cert_chain_of_trust": "the CA is the test's own",
    "cert_trust": "likewise",
    "cert_serialNumberLen": "of the test's CA",
    "cert_expirationStatus": "issued for five days",
    "cert_validityPeriod": "likewise",
    "cert_notAfter": "likewise",
    "cert_crlDistributionPoints": "the test's CA names no list",
    "cert_revocation": "likewise",
    "cert_extlifeSpan": "likewise",
    "cert_caIssuers": "likewise",
    "OCSP_stapling": "clients of execd name their CA; there is no responder to staple from",
    "DNS_CAArecord": "an address has none",
    "certificate_transparency": "no public CA",
    "HSTS": "no browser, and nothing on the port but upgrades",
    "HTTP_status_code": "/ is not there",
    "security_headers": "there are no pages",
    "BREACH": "nothing is compressed; only / was tried",
}


@pytest.mark.nightly
@pytest.mark.skipif(SANITIZED, reason="TESTSSL IS LEFT OUT: it takes minutes, and the other build says the same bytes")
@pytest.mark.parametrize("port", [RSA], ids=["rsa"], indirect=True)
def test_testssl(port, directory):
    need("testssl")
    report = directory / "report.json"
    subprocess.run(["testssl", "--quiet", "--warnings", "off", "--openssl", "/usr/bin/openssl", "--color", "0", "-p", "-s",
                    "-f", "-P", "-S", "-U", "--jsonfile", report, f"127.0.0.1:{port}"],
                   capture_output=True, stdin=subprocess.DEVNULL, timeout=360)
    findings = json.loads(report.read_text())
    assert len(findings) > 40
    bad = [f for f in findings if f["severity"] not in ("OK", "INFO", "DEBUG") and f["id"].split(" ")[0] not in EXPLAINED]
    assert not bad, bad
    known = {f["id"]: f["finding"] for f in findings}
    assert known["TLS1_3"].startswith("offered") and known["SSLv3"] == "not offered"
