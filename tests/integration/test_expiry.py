# SPDX-License-Identifier: ISC
"""A token that expires during a job: it may still resume the session that it had, and nothing else
(doc/protocol.md section 1.5)."""
import json
import os
import signal
import struct
import threading
import time

import pytest
from certificates import lend
from conftest import digest, is_alive, kill, poll
from execctl import Execctl
from execd_client import Closed, frame, upgrade
from test_auth import KEY, jwt, part, status
from test_broker import ALL, COUNT, replaced, so_far, whole
from test_ctl import Ctl
from test_jwks import AUDIENCE, ISSUER, Key, write_set
from test_operators import scrape
from test_tls import Authority

EXPIRED = "expired websocket jwt"
REFUSED = (401, EXPIRED)
CLOSED = {"code": 1008, "reason": EXPIRED}
HOUR = 3600


def long_token(**claims):
    return jwt(exp=int(time.time()) + HOUR, **{"iss": "me", "sub": "alice", **claims})


def past():
    """An `exp` for a token that has expired: the servers here have no skew."""
    return int(time.time()) - 5


def just_expired(**claims):
    return jwt(exp=past(), **{"iss": "me", "sub": "alice", **claims})


def text(user, directory, tokens="issuer = me\n", listener="", identity="token-subject = alice bob\n", more=""):
    (directory / "secret").write_bytes(KEY)
    lend(directory / "secret", user.pw_gid)
    return (f"[listener main]\naddress = ws://127.0.0.1:0\n{listener}"
            f"[identity a]\nuser = {user.pw_name}\nsandbox-allow-unsandboxed = yes\n{identity}"
            f"[audit]\nfile = {directory}/audit\n"
            f"[signed-tokens]\nsecret-file = {directory}/secret\nmax-clock-skew-seconds = 0\n{tokens}{more}")


@pytest.fixture
def server(configured, user, directory):
    def go(*args, **kwargs):
        s = configured(text(user, directory, *args, **kwargs))
        s.wait_log(": serving")
        s.fronts = 1
        return s
    return go


def events(directory, event):
    rows = [json.loads(line) for line in (directory / "audit").read_text().splitlines()]
    return [r for r in rows if r["event"] == event]


def back(s, token, c):
    """The client of that session, with this token. The runner may not have answered the broker yet."""
    def attempt():
        try:
            again = s.connect(token=token)
        except (Closed, OSError):
            return None     # the front-end is a new one
        m = again.request("initialize", {"clientName": "test", "resumeSessionId": c.session_id})
        if m.get("error", {}).get("code") == -32010:
            return None
        assert m["result"]["sessionId"] == c.session_id
        again.session_id = c.session_id
        again.notify("initialized")
        return again

    return poll(attempt, what="resumption")


def detached(s, c):
    seen = len(s.log)
    c.drop()
    poll(lambda: f"session {c.session_id[:8]}: detached" in s.log[seen:], what="line of the log")


@pytest.mark.parametrize("hand_over", ["yes", "no"])
def test_the_job_goes_on(server, directory, hand_over):
    s = server(listener=f"hand-over = {hand_over}\n")
    c = s.connect(token=long_token()).ready()
    c.start("cat", ["/bin/cat"], pipeStdin=True)
    for n in range(3):
        detached(s, c)
        c = s.connect(token=just_expired()).ready(resumeSessionId=c.session_id)
        c.write("cat", f"line {n}\n", f"write {n}")
        poll(lambda c=c, n=n: f"line {n}\n".encode() in so_far(c, "cat"), what="answer")
    assert c.run("x", ["/bin/echo", "new"]).stdout == "new\n", "in its session it may do everything"
    granted = events(directory, "granted")
    assert [(e["by"], e["subject"]) for e in granted] == [("signed token", "alice")] + [("expired token", "alice")] * 3
    assert len(events(directory, "session-resumed")) == 3


def resumption(id, **more):
    return {"id": 1, "method": "initialize", "params": {"clientName": "x", "resumeSessionId": id, **more}}


def messages(own, foreign):
    """Everything but the resumption of its own session."""
    unknown = "00000000-0000-4000-8000-000000000000"
    return {
        "a new session": {"id": 1, "method": "initialize", "params": {"clientName": "x"}},
        "a new session, with null": resumption(None),
        "to watch its own": {"id": 1, "method": "initialize", "params": {"clientName": "x", "watchSessionId": own}},
        "to watch a foreign one": {"id": 1, "method": "initialize", "params": {"clientName": "x", "watchSessionId": foreign}},
        "both": resumption(own, watchSessionId=own),
        "a foreign session": resumption(foreign),
        "to take a foreign session over": resumption(foreign, takeOver=True),
        "a new session that is taken over": {"id": 1, "method": "initialize", "params": {"clientName": "x", "takeOver": True}},
        "a new session that is kept": resumption(None, sessionKeep={"keepMs": 1}),
        "no session": resumption(unknown),
        "a long id": resumption(own + "x" * 100),
        "an empty id": resumption(""),
        "an id with NUL": resumption(own + "\0"),
        "a number": resumption(7),
        "no name": {"id": 1, "method": "initialize", "params": {"resumeSessionId": own}},
        "no params": {"id": 1, "method": "initialize"},
        "a command": {"id": 1, "method": "process/start", "params": {"processId": "x", "argv": ["/bin/true"]}},
        "a file": {"id": 1, "method": "fs/readFile", "params": {"path": "file:///etc/passwd"}},
        "http": {"id": 1, "method": "http/request", "params": {}},
        "the end of the session": {"id": 1, "method": "session/end"},
        "to keep the session": {"id": 1, "method": "session/keep", "params": {"keepMs": 1}},
        "an unknown method": {"id": 1, "method": "no/such"},
        "a notification": {"method": "initialized"},
        "a notified resumption": {"method": "initialize", "params": {"clientName": "x", "resumeSessionId": own}},
        "an answer": {"id": 1, "result": {}},
        "a list": [resumption(own)],
    }


@pytest.mark.parametrize("hand_over", ["yes", "no"])
def test_nothing_else(server, directory, hand_over):
    """What comes instead of the resumption closes the connection, and says nothing of sessions."""
    s = server(listener=f"hand-over = {hand_over}\n")
    own, foreign = s.connect(token=long_token()).ready(), s.connect(token=long_token(sub="bob")).ready()
    own.sh("p", "sleep 1000")
    expired = just_expired()
    for what, message in messages(own.session_id, foreign.session_id).items():
        c = s.connect(token=expired)
        c.send(message)
        assert c.wait_closed() == CLOSED and c.messages == [], what
    for data in b"", b"{", b"\xff", json.dumps(resumption(own.session_id)).encode() + b"x", b" " * (300 << 10):
        c = s.connect(token=expired)
        c.send_text(data)
        assert c.wait_closed()["code"] in (1007, 1008) and c.messages == [], data[:9]
    assert len(s.clients) == 2 + len(messages("", "")) + 5
    refused = [e for e in events(directory, "refused") if e["reason"] == EXPIRED]
    assert len(refused) >= len(messages("", "")) and all(e["peer"].startswith("websocket 127.0.0.1:") for e in refused)
    s.wait_log(f"refused: {EXPIRED}; it could only resume its session")
    assert own.closed is None and own.terminate("p") is True
    assert len(events(directory, "session-opened")) == 2 and not events(directory, "session-resumed")
    assert not events(directory, "session-watched")


def test_its_session_has_a_client(server):
    """It learns that, and may try again. It may not change its mind."""
    s = server()
    first = s.connect(token=long_token()).ready()
    c = s.connect(token=just_expired())
    for _ in range(2):
        assert c.error("initialize", {"clientName": "x", "resumeSessionId": first.session_id})[0] == -32010
    detached(s, first)
    c.ready(resumeSessionId=first.session_id)
    other = s.connect(token=just_expired())
    assert other.error("initialize", {"clientName": "x", "resumeSessionId": first.session_id})[0] == -32010
    other.post("initialize", {"clientName": "x"})
    assert other.wait_closed() == CLOSED and c.closed is None
    s.connect(token=just_expired()).ready(resumeSessionId=first.session_id, takeOver=True)
    assert c.wait_closed()["reason"] == "the session was resumed elsewhere"


def test_one_behind_the_other(server):
    """A resumption that fails does not let in what comes in the same packet, and neither does one that succeeds."""
    s = server()
    own, foreign = s.connect(token=long_token()).ready(), s.connect(token=long_token(sub="bob")).ready()
    detached(s, own)
    new = json.dumps({"id": 2, "method": "initialize", "params": {"clientName": "x"}}).encode()
    for id in foreign.session_id, own.session_id:
        c = s.connect(token=just_expired())
        c.sock.sendall(frame(1, json.dumps(resumption(id)).encode()) + frame(1, new) * 2)
        if id == own.session_id:
            assert c.answer(1)["result"]["sessionId"] == id and "error" in c.answer(2)
        else:
            assert c.wait_closed() == CLOSED and c.messages == []
    assert s.log.count(": opened for a") == 2


def test_as_before_without_a_session(server, user, directory):
    s = server("issuer = me\naudience = you\n")
    ours = {"aud": "you"}
    assert status(s, "Bearer " + just_expired(**ours)) == REFUSED, "nobody has one"
    c = s.connect(token=long_token(**ours)).ready()
    exp = past()
    expired = just_expired(**ours)
    assert status(s, "Bearer " + expired) == (101, "")
    for what, token in {
            "another subject": jwt(exp=exp, iss="me", sub="bob", **ours),
            "part of the subject": jwt(exp=exp, iss="me", sub="alic", **ours),
            "a subject that goes on": jwt(exp=exp, iss="me", sub="alice\0", **ours),
            "no subject": jwt(exp=exp, iss="me", **ours),
            "a subject that is no text": jwt(exp=exp, iss="me", sub=["alice"], **ours),
            "nobody's": jwt(exp=exp, iss="me", sub="carol", **ours),
            "not yet valid": jwt(exp=exp, nbf=exp + HOUR, iss="me", sub="alice", **ours),
            "another audience": jwt(exp=exp, iss="me", sub="alice", aud="others"),
            "no audience": jwt(exp=exp, iss="me", sub="alice"),
            "another issuer": jwt(exp=exp, iss="others", sub="alice", **ours),
            "no issuer": jwt(exp=exp, sub="alice", **ours)}.items():
        assert status(s, "Bearer " + token) == REFUSED, what
    for key, header in ((b"x" * 32, None), (KEY, {"alg": "none"})):
        token = jwt(key, header, exp=exp, iss="me", sub="alice", **ours)
        assert status(s, "Bearer " + token) == (401, "invalid websocket jwt")
    cut = part({"alg": "HS256", "typ": "JWT"}) + b"." + part({"exp": exp, "iss": "me", "sub": "alice", "aud": "you"}) + b"."
    assert status(s, "Bearer " + cut.decode()) == (401, "invalid websocket jwt")
    assert c.call("session/end") is not None
    s.wait_log(f"session {c.session_id[:8]}: ended")
    assert status(s, "Bearer " + expired) == REFUSED, "its session is over"


def test_another_issuer_with_the_same_subject(server):
    """Where any issuer is accepted, a subject alone is nobody."""
    s = server("", identity="token-subject = *\n")
    c = s.connect(token=long_token(iss="one")).ready()
    n = s.connect(token=jwt(exp=int(time.time()) + HOUR)).ready()
    exp = past()
    one = just_expired(iss="one")
    for claims in ({"iss": "two"}, {"iss": "One"}, {"iss": ""}, {"iss": None}, {}):
        assert status(s, "Bearer " + jwt(exp=exp, sub="alice", **claims)) == REFUSED, claims
    assert status(s, "Bearer " + jwt(exp=exp, iss="one")) == REFUSED
    # Whoever names neither is one of those who name neither.
    nobody = s.connect(token=jwt(exp=exp, iss=None, sub=None))
    nobody.post("initialize", {"clientName": "x", "resumeSessionId": c.session_id})
    assert nobody.wait_closed() == CLOSED
    for client, token in (c, one), (n, jwt(exp=exp)):
        detached(s, client)
        s.connect(token=token).ready(resumeSessionId=client.session_id)
    # Subjects that are no names are not told apart, so they are nobody.
    for sub in "x" * 1024, 7, "a\0b":
        s.connect(token=jwt(exp=int(time.time()) + HOUR, iss="three", sub=sub)).ready()
    exp = past()
    for sub in "x" * 1024, "x" * 1025, 7, "a\0b", "", None:
        assert status(s, "Bearer " + jwt(exp=exp, iss="three", sub=sub)) == REFUSED, sub


def test_another_identity_with_the_session(server, user):
    """The subject became another identity's: it has no session there."""
    s = server(more=f"[identity b]\nuser = {user.pw_name}\ntoken-sha256 = {digest('b')}\n")
    c = s.connect(token=long_token()).ready()
    assert status(s, "Bearer " + just_expired()) == (101, "")
    changed = s.path.read_text().replace("alice bob", "bob").replace("[identity b]", "[identity b]\ntoken-subject = alice")
    s.reload(changed, "adopted, of a")
    c.wait_closed()
    replaced(s, None)
    assert status(s, "Bearer " + just_expired()) == REFUSED


def test_it_has_been_expired_for_longer_than_a_session_lives(server):
    """Nobody who works in a session can have such a token. Others of the same subject may: they are in logs of the past."""
    s = server(identity="token-subject = alice\nsession-deadline = 100s\n")
    old, new = (jwt(exp=int(time.time()) - n, iss="me", sub="alice") for n in (200, 50))
    c = s.connect(token=long_token()).ready()
    for _ in range(2):
        assert status(s, "Bearer " + old) == REFUSED
        detached(s, c)
        # Who resumes with an expired token does not take the session further back.
        c = s.connect(token=new).ready(resumeSessionId=c.session_id)


def test_how_long_a_session_lives(server):
    """Without a session-deadline it is max-detached-ttl, or detached-ttl, which does not depend on its clients."""
    s = server(identity="token-subject = alice\nmax-detached-ttl = 1000s\n", more="[limits]\ndetached-ttl = 10s\n")
    c = s.connect(token=long_token()).ready()
    assert status(s, "Bearer " + jwt(exp=1, iss="me", sub="alice")) == REFUSED
    assert status(s, "Bearer " + jwt(exp=-2 ** 63, iss="me", sub="alice")) == REFUSED
    now = int(time.time())
    assert status(s, "Bearer " + jwt(exp=now - 1100, iss="me", sub="alice")) == REFUSED
    detached(s, c)
    c = s.connect(token=jwt(exp=now - 900, iss="me", sub="alice")).ready(resumeSessionId=c.session_id)
    s.reload(s.path.read_text().replace("1000s", "100s"), "adopted, of a")
    c.wait_closed()
    replaced(s, None)
    assert status(s, "Bearer " + jwt(exp=now - 900, iss="me", sub="alice")) == REFUSED
    back(s, jwt(exp=now - 50, iss="me", sub="alice"), c)


def test_the_session_has_an_end(server):
    """An expired token does not prolong it."""
    s = server(identity="token-subject = alice\nsession-deadline = 3s\n")
    c = s.connect(token=long_token()).ready()
    c.sh("p", "sleep 1000")
    exp = int(time.time())
    poll(lambda: time.time() > exp + 1.1, what="the next second")   # time(2) may show a tick less
    expired = jwt(exp=exp, iss="me", sub="alice")
    detached(s, c)
    c = s.connect(token=expired).ready(resumeSessionId=c.session_id)
    assert c.wait_closed()["reason"] == "session ended: its session-deadline was reached"
    s.wait_log(f"session {c.session_id[:8]}: ended")
    assert status(s, "Bearer " + expired) == REFUSED


def test_nobody_comes_back(server):
    s = server(more="[limits]\ndetached-ttl = 1s\n")
    c = s.connect(token=long_token()).ready()
    expired = just_expired()
    detached(s, c)
    s.wait_log(f"session {c.session_id[:8]}: ended")
    assert status(s, "Bearer " + expired) == REFUSED


def test_the_option_no(server):
    s = server("issuer = me\nresume-after-expiry = no\n")
    c = s.connect(token=long_token()).ready()
    expired = just_expired()
    assert status(s, "Bearer " + expired) == REFUSED
    yes = s.path.read_text().replace("expiry = no", "expiry = yes")
    s.reload(yes, "[signed-tokens] resume-after-expiry: yes, was no")
    c = back(s, expired, c)
    s.reload(yes.replace("expiry = yes", "expiry = no"), "[signed-tokens] resume-after-expiry: no, was yes")
    c.wait_closed()
    poll(lambda: status(s, "Bearer " + expired) == REFUSED, what="refusal")
    back(s, long_token(), c)


def test_a_session_of_another_credential(server):
    """Who was let in by something else has no token; who came last has the session."""
    s = server(identity=f"token-subject = alice\ntoken-sha256 = {digest('t')}\n")
    c = s.connect(token="t").ready()
    assert status(s, "Bearer " + just_expired()) == REFUSED
    detached(s, c)
    c = s.connect(token=long_token()).ready(resumeSessionId=c.session_id)
    expired = just_expired()
    assert status(s, "Bearer " + expired) == (101, "")
    detached(s, c)
    s.connect(token="t").ready(resumeSessionId=c.session_id)
    assert status(s, "Bearer " + expired) == REFUSED


@pytest.mark.parametrize("who", ["front-end", "broker", "reload"])
def test_programs_are_replaced(server, who):
    """The next broker knows whose the session is."""
    s = server()
    c, bob = s.connect(token=long_token()).ready(), s.connect(token=long_token(sub="bob")).ready()
    c.sh("p", COUNT)
    for _ in range(2):
        expired, old, front = just_expired(), s.broker, s.frontend()
        if who == "front-end":
            kill(front)
        elif who == "broker":
            kill(old)
        else:
            s.child.send_signal(signal.SIGHUP)
        c.wait_closed()
        if who != "front-end":
            replaced(s, old)
        poll(lambda front=front: s.frontend() != front, what="another front-end")
        c = back(s, expired, c)
    assert whole(c) == (ALL, 0)
    c = s.connect(token=just_expired())
    c.post("initialize", {"clientName": "x", "resumeSessionId": bob.session_id})
    assert c.wait_closed() == CLOSED


def test_a_runner_that_has_not_answered(server, mode):
    """It may have the session: its client is told to come again."""
    s = server()
    c, bob = s.connect(token=long_token()).ready(), s.connect(token=long_token(sub="bob")).ready()
    runner, old = s.runner(c), s.broker
    os.kill(runner, signal.SIGSTOP)
    try:
        kill(old)
        replaced(s, old)
        expired = just_expired()
        again = s.connect(token=expired)
        assert again.error("initialize", {"clientName": "x", "resumeSessionId": c.session_id}) == (
            -32010, f"session {c.session_id} has not answered yet since execd began anew")
        other = s.connect(token=expired)
        other.post("initialize", {"clientName": "x", "resumeSessionId": bob.session_id})
        assert other.wait_closed() == CLOSED
    finally:
        os.kill(runner, signal.SIGCONT)
    back(s, expired, c)


# --- more of what a hostile client does --------------------------------------

def test_with_the_upgrade(server):
    """What comes in one packet with it is read when the verdict is there."""
    s = server()
    own, foreign = s.connect(token=long_token()).ready(), s.connect(token=long_token(sub="bob")).ready()
    detached(s, own)
    for message in messages(own.session_id, foreign.session_id).values():
        c = s.connect(token=just_expired(), handshake=False)
        c.sock.sendall(upgrade(f"Authorization: Bearer {just_expired()}\r\n") + frame(1, json.dumps(message).encode()) * 3)
        data = b""
        while piece := c.sock.recv(4096):
            data += piece
        head, rest = data.split(b"\r\n\r\n", 1)
        assert head.startswith(b"HTTP/1.1 101 ") and rest == b"\x88" + bytes([2 + len(EXPIRED)]) + b"\x03\xf0" + EXPIRED.encode()
    assert s.log.count(": opened for a") == 2 and ": resumed" not in s.log
    s.connect(token=just_expired()).ready(resumeSessionId=own.session_id)


def test_its_session_ends_meanwhile(server, user):
    """The reason is told to nobody whose token has expired."""
    s = server()
    c = s.connect(token=long_token()).ready()
    waiting = s.connect(token=just_expired())
    Ctl(s, user)("kill", c.session_id, "--reason", "a secret")
    s.wait_log(f"session {c.session_id[:8]}: ended")
    waiting.post("initialize", {"clientName": "x", "resumeSessionId": c.session_id})
    assert waiting.wait_closed() == CLOSED and waiting.messages == []
    valid = s.connect(token=long_token())
    assert "a secret" in valid.error("initialize", {"clientName": "x", "resumeSessionId": c.session_id})[1]


def test_another_token_takes_its_session_meanwhile(server):
    """The session is then the other's, also for a connection that came before."""
    s = server()
    c = s.connect(token=long_token()).ready()
    waiting = s.connect(token=just_expired())
    detached(s, c)
    bob = s.connect(token=long_token(sub="bob")).ready(resumeSessionId=c.session_id)
    detached(s, bob)
    waiting.post("initialize", {"clientName": "x", "resumeSessionId": c.session_id})
    assert waiting.wait_closed() == CLOSED
    assert status(s, "Bearer " + just_expired()) == REFUSED
    s.connect(token=just_expired(sub="bob")).ready(resumeSessionId=c.session_id)


def test_who_waits_is_closed(server):
    """Nobody keeps a connection by a token that has expired."""
    s = server(more="[limits]\npre-auth-deadline = 1s\n")
    c = s.connect(token=long_token()).ready()
    waiting = s.connect(token=just_expired())
    assert waiting.wait_closed() == {"code": 1008, "reason": "no session was initialized in time"} and c.closed is None


def test_a_drained_server(server, user):
    """It takes nothing new, and whoever is late may go on."""
    s = server()
    c = s.connect(token=long_token()).ready()
    detached(s, c)
    Ctl(s, user)("drain")
    new = s.connect(token=just_expired())
    new.post("initialize", {"clientName": "x"})
    assert new.wait_closed() == CLOSED
    s.connect(token=just_expired()).ready(resumeSessionId=c.session_id)


@pytest.mark.parametrize("kind", ["tls", "unix"])
def test_other_transports(configured, user, directory, kind):
    tls = None
    if kind == "tls":
        ca = Authority(directory)
        base, tls = ca.issue("server", group=user.pw_gid), ca.client()
        listener = f"address = wss://127.0.0.1:0\ncertificate = {base}.pem\ncertificate-key = {base}.key\n"
    else:
        listener = f"address = unix:{directory}/sock\nmode = 0666\n"
    s = configured(text(user, directory).replace("address = ws://127.0.0.1:0\n", listener))
    c, bob = (s.connect(token=long_token(sub=sub), tls=tls).ready() for sub in ("alice", "bob"))
    c.sh("p", "sleep 1000")
    detached(s, c)
    for message in messages(c.session_id, bob.session_id).values():
        other = s.connect(token=just_expired(), tls=tls)
        other.send(message)
        assert other.wait_closed() == CLOSED and other.messages == []
    assert s.connect(token=just_expired(), tls=tls).ready(resumeSessionId=c.session_id).terminate("p") is True


# --- revoked ---------------------------------------------------------------

def with_keys(user, directory, identity="token-subject = alice bob\n", more=""):
    return text(user, directory, f"jwks-file = {directory}/jwks.json\nissuer = {ISSUER}\naudience = {AUDIENCE}\n", "",
                identity, more)


def expired_of(key, **claims):
    return key.token(exp=past(), sub="alice", **claims)


def test_its_key_was_removed(configured, user, directory):
    """Nobody comes in with it any more, and the sessions whose tokens of it have expired end with the reload."""
    old, new = Key(directory, "ES256", "old"), Key(directory, "EdDSA", "new")
    write_set(directory / "jwks.json", old, new)
    s = configured(with_keys(user, directory))
    c = s.connect(token=old.token(sub="alice")).ready()
    valid = s.connect(token=old.token(sub="bob")).ready()
    kept = s.connect(token=new.token(sub="alice")).ready()
    for x in c, valid, kept:
        x.sh("p", "sleep 1000")
        detached(s, x)
    runner, expired = s.runner(c), expired_of(old)
    for x, key in (c, old), (kept, new):
        s.connect(token=expired_of(key)).ready(resumeSessionId=x.session_id)
    impostor = Key(directory, "ES256", "impostor")
    write_set(directory / "jwks.json", new, {**impostor.entry(), "kid": "old"})
    s.reload(s.path.read_text(), "[signed-tokens]: other keys")
    s.wait_log(f"session {c.session_id[:8]}: its token has expired, and the key, the issuer or the subject of it is no longer "
               "accepted, ending it")
    poll(lambda: not is_alive(runner), what="end of the session")
    assert status(s, "Bearer " + expired) == (401, "invalid websocket jwt")
    impostor.kid = "old"
    assert status(s, "Bearer " + expired_of(impostor)) == (101, ""), "a key says nothing of whose a token is"
    for x, token in (valid, new.token(sub="bob")), (kept, expired_of(new)):
        assert back(s, token, x).terminate("p") is True, "it goes on"
    again = s.connect(token=new.token(sub="alice"))
    assert again.error("initialize", {"clientName": "x", "resumeSessionId": c.session_id})[1].endswith("no longer accepted")


def test_its_secret_was_changed(server, user, directory):
    s = server()
    c = s.connect(token=long_token()).ready()
    runner, expired = s.runner(c), just_expired()
    detached(s, c)
    c = s.connect(token=expired).ready(resumeSessionId=c.session_id)
    (directory / "secret").write_bytes(b"n" * 32)
    s.reload(s.path.read_text(), "no longer accepted, ending it")
    poll(lambda: not is_alive(runner), what="end of the session")
    assert status(s, "Bearer " + expired) == (401, "invalid websocket jwt")


@pytest.mark.parametrize("change, log", [
    (("[identity a]", "[identity c]"), "[identity a] is gone: ending it"),
    (("alice bob", "bob"), "no longer accepted, ending it"),
    (("issuer = me", "issuer = you"), "no longer accepted, ending it"),
])
def test_its_identity_was_removed(server, change, log):
    s = server()
    c = s.connect(token=long_token()).ready()
    runner, expired = s.runner(c), just_expired()
    detached(s, c)
    s.connect(token=expired).ready(resumeSessionId=c.session_id)
    s.reload(s.path.read_text().replace(*change), log)
    poll(lambda: not is_alive(runner), what="end of the session")
    assert status(s, "Bearer " + expired) == REFUSED


def test_the_operator_ends_it(server, user):
    s = server()
    c = s.connect(token=long_token()).ready()
    expired = just_expired()
    detached(s, c)
    c = s.connect(token=expired).ready(resumeSessionId=c.session_id)
    Ctl(s, user)("kill", c.session_id, "--reason", "enough")
    assert "enough" in c.wait_closed()["reason"]
    s.wait_log(f"session {c.session_id[:8]}: ended")
    assert status(s, "Bearer " + expired) == REFUSED


# --- elsewhere ---------------------------------------------------------------

def test_listeners(configured, user, directory):
    """One of other identities, and the operator's, let nobody in with an expired token."""
    s = configured(text(user, directory, listener="[listener others]\naddress = ws://127.0.0.1:0\nidentities = b\n"
                        "[listener op]\naddress = ws://127.0.0.1:0\noperate = yes\noperators = a\n",
                        more=f"[identity b]\nuser = {user.pw_name}\ntoken-sha256 = {digest('b')}\n"))
    c = s.connect(token=long_token()).ready()
    expired = just_expired()
    assert status(s, "Bearer " + expired) == (101, "")
    assert scrape(s.urls[2], long_token())[0] == 200
    assert scrape(s.urls[2], expired) == REFUSED
    with pytest.raises(Closed, match="401"):
        s.connect(s.urls[1], token=expired)
    assert c.closed is None


def test_it_costs_a_penalty(server):
    """As much as status 401 does."""
    s = server(more="[limits]\nexempt = none\n")
    s.connect(token=long_token()).ready()
    expired = just_expired()

    def refused():
        try:
            c = s.connect(token=expired)
        except (Closed, OSError):
            return True
        c.post("initialize", {"clientName": "x"})
        return c.wait_closed() != CLOSED

    poll(refused, what="refusal of the source")
    s.wait_log("too many failures from there, refused for ")


def test_execctl(server, directory):
    """Its command goes on when the token has expired; a new one is refused with the reason, at once."""
    s = server("issuer = me\n")
    late = s.path.read_text().replace("skew-seconds = 0", "skew-seconds = 3600")
    s.reload(late, "skew-seconds: 3600, was 0")
    replaced(s, None)
    e = Execctl(directory, s.url, EXECD_TOKEN=jwt(exp=int(time.time()) - 60, iss="me", sub="alice"))
    p = e.popen("run", "--", "/bin/sh", "-c", "echo one; read x; echo $x", stdin=-1)
    assert p.stdout.readline() == b"one\n"
    s.reload(late.replace("3600", "0"), "skew-seconds: 0, was 3600")
    p.stdin.write(b"two\n")
    p.stdin.close()
    assert p.stdout.read() == b"two\n" and p.wait() == 0, p.stderr.read()
    c = s.connect(token=long_token()).ready()
    r = e("run", "--", "/bin/echo", "new")
    assert r.code == 255 and EXPIRED in r.err and r.out == b"", r
    c.drop()


def test_it_is_taken_by_many_at_once(server):
    """Each byte of the session's goes to one client."""
    s = server()
    c = s.connect(token=long_token()).ready()
    expired = just_expired()
    detached(s, c)
    clients = [s.connect(token=expired) for _ in range(8)]
    threads = [threading.Thread(target=x.post, args=("initialize", {"clientName": "x", "resumeSessionId": c.session_id}))
               for x in clients]
    for t in threads:
        t.start()
    answers = [x.answer(1) for x in clients]
    assert sum("result" in a for a in answers) == 1
    assert all(a["error"]["code"] == -32010 for a in answers if "error" in a)


def test_frames_before_the_resumption(server):
    """Pings are answered, a close is, and a message in pieces is one message."""
    s = server()
    own = s.connect(token=long_token()).ready()
    detached(s, own)
    c = s.connect(token=just_expired())
    c.frame(9, b"ping")
    c.wait(lambda: (10, b"ping") in c.frames, what="pong")
    data = json.dumps(resumption(own.session_id)).encode()
    c.frame(1, data[:10], fin=False)
    c.frame(0, data[10:])
    assert c.answer(1)["result"]["sessionId"] == own.session_id
    other = s.connect(token=just_expired())
    other.frame(8, struct.pack(">H", 1000))
    assert other.wait_closed()["code"] == 1000
