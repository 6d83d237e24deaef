# SPDX-License-Identifier: ISC
"""What `execd -t` says of certificates and lists that will not do: it refuses or warns, and leaves nothing out."""
import time

import pytest
from certificates import YESTERDAY, Authority
from conftest import digest, poll
from test_config import check
from test_metrics import Scraper


@pytest.fixture
def authority(directory):
    return Authority(directory, "root")


def in_days(n):
    return time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + n * 86400))


def configuration(user, base, more="", rest=""):
    return (f"[listener tls]\naddress = wss://127.0.0.1:0\ncertificate = {base}.pem\ncertificate-key = {base}.key\n{more}"
            f"[identity a]\nuser = {user.pw_name}\ntoken-sha256 = {digest('t')}\n{rest}")


@pytest.fixture
def tried(mode, user, directory, authority):
    """Code and words of `execd -t` for a server certificate of these dates, and more of the listener. In root mode the key is
    lent to a group; what is said of that is test_config's."""
    def run(*dates, more=""):
        base = authority.issue("server", *dates, group=user.pw_gid)
        path = directory / "execd.conf"
        path.write_text(configuration(user, base, more))
        code, _, err = check(mode, user, path, "-t")
        return code, "".join(x for x in err.splitlines(True) if "its group can read this secret" not in x)
    return run


@pytest.mark.parametrize("dates, words", [
    (YESTERDAY, "server.pem: holds a certificate that has expired: clients refuse this server (since 2020-02-01 00:00 UTC)"),
    (["-enddate", in_days(9.5)], "server.pem: holds a certificate that expires in 9 days ("),
    (["-enddate", in_days(60)], None)], ids=["expired", "soon", "later"])
def test_a_server_certificate_that_expires(tried, dates, words):
    code, err = tried(*dates)
    assert code == 0, "no reason not to start"
    assert words in err if words else err == ""


def test_too_many_authorities(tried, directory, authority):
    one = authority.cert.read_text()
    (directory / "many.pem").write_text(one * 65)
    code, err = tried(more=f"client-ca = {directory}/many.pem\n")
    assert code == 3 and "many.pem: holds 65 certificates; at most 64 are possible" in err
    (directory / "many.pem").write_text(one * 64)
    assert tried(more=f"client-ca = {directory}/many.pem\n")[0] == 0


BROKEN = {
    "cut": lambda pem: pem[:len(pem) // 2],
    "no-end": lambda pem: pem.replace("-----END", "-----UND"),
    "one-letter": lambda pem: pem.replace("\nM", "\n!", 1),
    "name": lambda pem: pem.replace("CERTIFICATE", "CERTIFICAT"),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_block_of_several(tried, directory, authority, how):
    good = authority.cert.read_text()
    for at, text in enumerate(([BROKEN[how](good), good], [good, BROKEN[how](good)], [good, BROKEN[how](good), good])):
        (directory / "bundle.pem").write_text("\n".join(text))
        code, err = tried(more=f"client-ca = {directory}/bundle.pem\n")
        assert code == 3 and "bundle.pem: " in err, (at, err)
        assert "cannot be read" in err or "holds no PEM certificate" in err, (at, err)


def test_words_around_blocks_are_no_blocks(tried, directory, authority):
    (directory / "bundle.pem").write_text("# our own\n" + authority.cert.read_text() + "\nsubject=x\n" + authority.cert.read_text())
    code, err = tried(more=f"client-ca = {directory}/bundle.pem\n")
    assert code == 0 and "read" not in err


def test_a_broken_revocation_list(tried, directory, authority):
    list_ = directory / "crl.pem"
    list_.write_text(authority.crl() + authority.crl().replace("\nM", "\n!", 1))
    code, err = tried(more=f"client-ca = {authority.cert}\nclient-crl = {list_}\n")
    assert code == 3 and "crl.pem: the PEM block of revocation list 2 of 2 cannot be read" in err
    list_.write_text(authority.crl("-crlhours", "10"))
    code, err = tried(more=f"client-ca = {authority.cert}\nclient-crl = {list_}\n")
    assert code == 0 and "crl.pem: holds a revocation list that expires in 0 days" in err


def test_the_broken_one_may_be_the_server_s_own_chain(mode, user, directory, authority):
    base = authority.issue("server", group=user.pw_gid)
    with open(f"{base}.pem", "a") as f:
        f.write(authority.cert.read_text().replace("\nM", "\n!", 1))
    path = directory / "execd.conf"
    path.write_text(configuration(user, base))
    code, _, err = check(mode, user, path, "-t")
    assert code == 3 and "server.pem: the PEM block of certificate 2 of 2 cannot be read" in err


def test_metrics_say_when(configured, user, directory, authority):
    base = authority.issue("server", "-enddate", in_days(60), group=user.pw_gid)
    crl = directory / "crl.pem"
    crl.write_text(authority.crl())
    op = f"[listener op]\naddress = unix:{directory}/op\noperate = yes\n"
    s = configured(configuration(user, base, f"client-ca = {authority.cert}\nclient-crl = {crl}\nclient-certificate = optional\n", op))
    metric = Scraper(s.urls[1])
    assert 59 * 86400 < metric("execd_certificate_expiry_seconds") <= 60 * 86400
    assert 59 * 86400 < metric("execd_certificate_expiry_timestamp_seconds") - time.time() <= 60 * 86400
    assert 4 * 86400 < metric("execd_crl_expiry_seconds") <= 5 * 86400
    authority.issue("server", *YESTERDAY, group=user.pw_gid)
    s.reload(s.path.read_text(), "has expired")
    poll(lambda: metric("execd_certificate_expiry_seconds") == 0, what="the new one")


def test_metrics_say_nothing_where_nothing_expires(configured, user, directory):
    s = configured(f"[listener op]\naddress = unix:{directory}/op\noperate = yes\n"
                   f"[identity a]\nuser = {user.pw_name}\ntoken-sha256 = {digest('t')}\n")
    with pytest.raises(StopIteration):
        Scraper(s.urls[0])("execd_certificate_expiry_seconds")
