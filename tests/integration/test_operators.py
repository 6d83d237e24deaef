# SPDX-License-Identifier: ISC
"""`operators` of a listener: who may read /metrics, on an address that others reach, too."""
import json
import os

import pytest
from conftest import digest, poll
from test_listeners import get
from test_metrics import lint
from test_tls import Authority

NOT_OPERATOR = "the identity is none of the operators of this listener"


@pytest.fixture
def served(configured, user, directory):
    def start(*listener, limits=(), identity=()):
        return configured("\n".join([
            "[listener op]", "operate = yes", *(listener or ["address = ws://0.0.0.0:0", "operators = prometheus"]),
            "[identity prometheus]", f"user = {user.pw_name}", f"token-sha256 = {digest('p')}", *identity,
            "[identity ci]", f"user = {user.pw_name}", f"token-sha256 = {digest('c')}",
            "[audit]", f"file = {directory}/log", *(["[limits]", *limits] if limits else []), ""]))
    return start


def scrape(url, token=None, method="GET", header=None, **dialled):
    header = header or (f"Authorization: Bearer {token}\r\n" if token else "")
    return get(url, "/metrics", method, header, **dialled)


def is_locked_out(url):
    """The answer 503 is there at once; the request that nobody reads can turn it into a reset."""
    try:
        return scrape(url, "p")[0] == 503
    except ConnectionError:
        return True


def records(directory, *keys):
    """Those of /metrics; the credentials of sessions have no path."""
    with open(f"{directory}/log", encoding="utf-8") as f:
        all = [json.loads(line) for line in f]
    return [tuple(r.get(k) for k in keys) for r in all if r.get("path") == "/metrics"]


def test_who_may_read(served, directory):
    s = served()
    url = s.url.replace("0.0.0.0", "127.0.0.1")
    status, text = scrape(url, "p")
    assert status == 200 and lint(text) and scrape(url, "p", "HEAD") == (200, "")
    assert scrape(url, "c") == (403, NOT_OPERATOR) and scrape(url, "c", "HEAD") == (403, "")
    assert scrape(url) == (401, "missing websocket bearer token")
    assert scrape(url, "wrong") == (401, "invalid websocket bearer token")
    assert scrape(url, header="Authorization: Basic eDp5\r\n") == (401, "invalid authorization header")
    assert records(directory, "event", "identity", "by", "reason") == [
        ("refused", "ci", None, NOT_OPERATOR), ("refused", "ci", None, NOT_OPERATOR),
        ("refused", None, None, "missing websocket bearer token"),
        ("refused", None, None, "invalid websocket bearer token"),
        ("refused", None, None, "invalid authorization header")]
    text = scrape(url, "p")[1]
    assert 'execd_credentials_refused_total{reason="%s"} 2\n' % NOT_OPERATOR in text
    # Sessions are what they were, for both.
    for token in "c", "p":
        s.connect(url, token=token).ready().run("a", ["/bin/true"])
    assert scrape(url, "p")[0] == 200


def test_health_tells_everybody_and_not_why(served):
    import signal
    s = served("address = ws://127.0.0.1:0", "operators = prometheus")
    assert get(s.url, "/livez") == get(s.url, "/readyz") == get(s.url, "/healthz") == (200, "ok\n")
    s.child.send_signal(signal.SIGUSR1)
    poll(lambda: get(s.url, "/readyz") == (503, ""), what="drained")
    assert get(s.url, "/livez") == (200, "ok\n")


def test_a_stranger_is_locked_out_and_nobody_else(served):
    s = served(limits=["exempt = none", "penalty-authentication = 10s"])
    url = s.url.replace("0.0.0.0", "127.0.0.1")
    assert [scrape(url, "wrong")[0] for _ in range(2)] == [401, 401]
    assert is_locked_out(url)
    assert scrape(url, "p", source="127.0.0.9")[0] == 200


def test_the_user_at_a_unix_socket(served, directory, user):
    s = served(f"address = unix:{directory}/op", "operators = prometheus", identity=["peer-user = " + user.pw_name])
    me = os.geteuid() == user.pw_uid
    assert scrape(s.url)[0] == (200 if me else 401)
    assert scrape(s.url, "c") == (403, NOT_OPERATOR)
    assert records(directory, "event", "identity")[-1] == ("refused", "ci")


def test_without_the_key_whoever_connects(served, directory):
    s = served("address = ws://127.0.0.1:0")
    assert scrape(s.url)[0] == scrape(s.url, "wrong")[0] == 200 and records(directory, "event") == []


def test_a_client_certificate(served, directory, user):
    authority = Authority(directory)
    base = authority.issue("server", group=user.pw_gid)
    mine, other = authority.issue("prometheus"), authority.issue("other")
    s = served("address = wss://127.0.0.1:0", f"certificate = {base}.pem", f"certificate-key = {base}.key",
               f"client-ca = {authority.cert}", "client-certificate = optional", "operators = prometheus",
               identity=["certificate-subject = CN=prometheus"])
    assert scrape(s.url, tls=authority.client(mine))[0] == 200
    assert scrape(s.url, tls=authority.client(other)) == (401, "the client is not known here")
    assert records(directory, "event", "by") == [("refused", None)]
