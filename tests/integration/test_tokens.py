# SPDX-License-Identifier: ISC
"""Tokens that have names: execd ctl token, and the files beside the configuration (execd-ctl(8), execd.conf(5))."""
import os
import re
import subprocess
import time

import pytest
from conftest import digest, poll
from execd_client import Closed
from test_audit import events
from test_ctl import Ctl

pytestmark = pytest.mark.usefixtures("mode")
LISTENER = "[listener a]\naddress = ws://127.0.0.1:0\n"


@pytest.fixture
def made(configured, user, directory):
    """An execd whose configuration has a place for tokens, and its ctl."""
    log = directory / "audit.jsonl"
    s = configured(LISTENER + f"identities = a\n[identity a]\nuser = {user.pw_name}\n[identity b]\nuser = {user.pw_name}\n"
                   f"[audit]\nfile = {log}\n[limits]\npenalty-authentication = 1ms\n")
    return s, Ctl(s, user), log, directory / "tokens"


def granted(log):
    return [e for e in events(log) if e["event"] == "granted"]


def new(ctl, name, *more):
    return ctl("token", "new", name, "--identity", "a", *more).strip()


def test_a_token_from_its_making_to_its_end(made):
    s, ctl, log, directory = made
    with pytest.raises(Closed, match="401"):
        s.connect(token="guess")
    token = new(ctl, "laptop")
    assert len(token) == 43 and re.fullmatch("[A-Za-z0-9_-]+", token)
    assert token not in (directory / "laptop").read_text() and (directory / "laptop").stat().st_mode & 0o777 == 0o600
    c, other = s.connect(token=token).ready(), s.connect(token=new(ctl, "ci", "--expires", "90d")).ready()
    assert [e["token"] for e in granted(log)] == ["laptop", "ci"]
    assert [(t["name"], t["identity"], t["expired"], t["expiresMs"] is None) for t in ctl.json("token", "list")["tokens"]] == [
        ("ci", "a", False, False), ("laptop", "a", False, True)]
    assert {x["id"]: x["token"] for x in ctl.sessions()} == {c.session_id[:8]: "laptop", other.session_id[:8]: "ci"}
    assert " laptop " in ctl("list")
    ctl("token", "revoke", "laptop", "--end")
    c.wait_closed()
    with pytest.raises(Closed, match="401"):
        s.connect(token=token)
    assert os.listdir(directory) == ["ci"]
    done = [(e["command"], e["token"], e["result"]) for e in events(log) if e["event"] == "ctl-command" and "token" in e]
    assert done == [("token-new", "laptop", "asked"), ("token-new", "ci", "asked"), ("token-revoke", "laptop", "asked")]


def test_a_session_goes_on_when_its_token_is_revoked(made):
    s, ctl, _, _ = made
    token = new(ctl, "laptop")
    c = s.connect(token=token).ready()
    assert ctl("token", "new", "laptop", "--identity", "a", code=1) == "execd ctl: there is a token laptop already\n"
    c.drop()
    ctl("token", "revoke", "laptop")
    # The new broker asks the runners what they have, and the list waits for that.
    assert [x["id"] for x in ctl.sessions()] == [c.session_id[:8]]
    with pytest.raises(Closed, match="401"):
        s.connect(token=token)
    assert "there is no token laptop; `execd ctl kill --token` ends" in ctl("token", "revoke", "laptop", "--end", code=1)
    # Its sessions have the name still.
    assert ctl("kill", "--token", "laptop", "--reason", "gone").endswith(": ending\n")
    poll(lambda: ctl.sessions() == [], what="its end")


def test_a_revoked_token_counts_no_more_though_the_reload_is_refused(made):
    s, ctl, _, _ = made
    token = new(ctl, "laptop")
    good = s.path.read_text()
    s.path.write_text(good + "max-sesions = 4\n")
    assert "max-sesions" in ctl("token", "revoke", "laptop", code=3)
    with pytest.raises(Closed, match="401"):
        s.connect(token=token)
    s.path.write_text(good)
    ctl("reload")
    with pytest.raises(Closed, match="401"):
        s.connect(token=token)


def test_what_does_not_count_leaves_no_file(made):
    s, ctl, _, directory = made
    assert "there is no [identity nobody]" in ctl("token", "new", "x", "--identity", "nobody", code=1)
    s.path.write_text(s.path.read_text() + "max-sesions = 4\n")
    assert "max-sesions" in ctl("token", "new", "x", "--identity", "a", code=3)
    assert os.listdir(directory) == []


@pytest.mark.parametrize("words, said", [
    (["new", "x"], "needs --identity"), (["new", "../x", "--identity", "a"], "a name of letters"),
    (["new", ".x", "--identity", "a"], "a name of letters"), (["new", "x" * 50, "--identity", "a"], "a name of letters"),
    (["new", "x", "--identity", "a", "--expires", "90"], "neither a time to come"),
    (["new", "x", "--identity", "a", "--expires", "2020-01-01T00:00:00Z"], "neither a time to come"),
    (["list", "--since", "1h"], "--since and --file are for usage"), (["list", "--days", "1"], "--dir and --days are for ca"),
    (["renew", "x"], "say new, list or revoke"), (["revoke"], "a name of letters"), ([], "say new, list or revoke")])
def test_what_is_asked_wrongly(made, words, said):
    _, ctl, _, directory = made
    assert said in ctl("token", *words, code=2)
    assert not directory.exists()


def test_two_operators_at_once(made):
    """One of them has the name, and his token is the one that counts; different names do not disturb each other."""
    s, ctl, _, _ = made
    def begin(name):
        return subprocess.Popen(ctl.argv("token", "new", name, "--identity", "a"), stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)
    runs = [begin("same") for _ in range(4)]
    outs = [(r.communicate(timeout=60), r.returncode) for r in runs]
    won = [out.strip() for (out, _), code in outs if code == 0]
    assert len(won) <= 1 and all(out == "" and err for (out, err), code in outs if code != 0), outs
    for token in won:
        s.connect(token=token).ready()
    assert [t["name"] for t in ctl.json("token", "list")["tokens"]] == ["same"] * len(won)


def test_the_umask_of_the_operator_is_not_that_of_the_directory(made):
    """The broker, who is somebody else, looks into it; the first token makes it."""
    s, ctl, _, _ = made
    argv = ctl.argv("token", "new", "laptop", "--identity", "a")
    r = subprocess.run(["/bin/sh", "-c", 'umask 077; exec "$@"', "sh", *argv], capture_output=True, text=True)
    assert r.returncode == 0, r
    s.connect(token=r.stdout.strip()).ready()


def test_an_expired_token_resumes_its_session_and_opens_none(made):
    s, ctl, log, directory = made
    c = s.connect(token=new(ctl, "short", "--expires", "1h")).ready()
    token = next(iter(re.findall("sha256 = (.*)", (directory / "short").read_text())))
    c.drop()
    past = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 2))
    text = re.sub("expires = .*", f"expires = {past}", (directory / "short").read_text())
    text = text.replace(token, digest("tok-short"))
    (directory / "short").write_text(text)
    assert f"[token short] expires: {past}" in ctl("reload")
    with pytest.raises(Closed, match="expired"):
        s.connect(token="tok-short").ready()
    again = s.connect(token="tok-short")
    again.initialize(resumeSessionId=c.session_id)
    assert granted(log)[-1]["by"] == "expired token"
    ctl("token", "revoke", "short", "--end")
    again.wait_closed()
    with pytest.raises(Closed, match="401"):
        s.connect(token="tok-short")


def test_a_file_that_is_wrong_keeps_nobody_else_out(made):
    s, ctl, _, directory = made
    token = new(ctl, "good")
    wrong = {
        "no-identity": ("[token no-identity]\nidentity = nobody\nsha256 = " + digest("x") + "\n", "there is no [identity nobody]"),
        "section": ("[identity a]\nuser = root\n", "nothing may be here but [token section]"),
        "other-name": ("[token laptop]\nidentity = a\nsha256 = " + digest("x") + "\n", "nothing may be here but [token other-name]"),
        "no-digest": ("[token no-digest]\nidentity = a\n", "sha256: the digest of one token is needed"),
        "twice": ("[token twice]\nidentity = a\n" + re.search("sha256.*\n", (directory / "good").read_text())[0], "has the same"),
        "time": ("[token time]\nidentity = a\nsha256 = " + digest("x") + "\nexpires = soon\n", "is no time like"),
        "empty": ("", "there is no [token empty] in it"), "open": ("[token open]\nidentity = a\nsha256 = " + digest("y") + "\n", "")}
    for name, (text, _) in wrong.items():
        (directory / name).write_text(text)
        (directory / name).chmod(0o666 if name == "open" else 0o644)
    (directory / "a-directory").mkdir()
    (directory / ".hidden").write_text("what an editor left")
    os.symlink("/dev/zero", directory / "link")
    os.mkfifo(directory / "pipe")
    told = ctl("reload")
    for name, (_, why) in wrong.items():
        assert f"{directory}/{name}: this token is left out" in told and why in told, (name, told)
    assert ".hidden" not in told
    assert s.connect(token=token).ready().run_sh("x", "echo on").stdout == "on\n"
    before = s.broker
    os.kill(before, 9)
    poll(lambda: s.broker != before, what="another broker")
    poll(lambda: s.connect(token=token).ready(), what="who was let in before")


def test_who_is_barred_is_named_to_the_operator_alone(made):
    s, ctl, log, _ = made
    token = ctl("token", "new", "b", "--identity", "b").strip()
    with pytest.raises(Closed, match="401") as refused:
        s.connect(token=token)
    assert "identity" not in str(refused.value)
    e = [e for e in events(log) if e["event"] == "refused"][-1]
    assert (e["identity"], e["token"]) == ("b", "b")
    assert "this listener does not let [identity b] in" in s.log


def test_all_sessions_of_an_identity_end(made):
    s, ctl, _, _ = made
    token = new(ctl, "laptop")
    clients = [s.connect(token=token).ready() for _ in range(3)]
    assert "no session has the identity b" in ctl("kill", "--identity", "b", "--reason", "x", code=1)
    assert ctl("kill", "--identity", "a", "--reason", "maintenance").count("ending") == 3
    for c in clients:
        c.wait_closed()
    c = s.connect(token=token).ready()
    ctl("kill", "--token", "laptop", "--reason", "maintenance")
    c.wait_closed()
    ctl("kill", "--token", "laptop", code=2)


def test_an_execd_without_a_file(spawn, user):
    assert "this execd has none" in Ctl(spawn(), user)("token", "new", "x", "--identity", "a", code=1)


# --- locks ----------------------------------------------------------------

@pytest.fixture
def locking(configured, user, directory):
    s = configured(LISTENER + f"[identity a]\nuser = {user.pw_name}\ntoken-sha256 = {digest('tok-a')}\n[identity b]\nuser = {user.pw_name}\n"
                   f"token-sha256 = {digest('tok-b')}\n[limits]\npenalty-authentication = 1ms\n")
    return s, Ctl(s, user), directory / "locked"


def refused_as_locked(s, ctl, name):
    def refusal():
        try:
            return s.connect(token="tok-" + name) and "let in"
        except Closed as e:
            return str(e)
        except OSError:     # of a front-end that ends with its broker
            return None

    assert "401" in poll(refusal, what="an answer")
    last = ctl.json("explain")["refusals"][-1]
    assert (last["identity"], last["reason"]) == (name, "the operator has locked this identity"), last


def test_a_locked_identity_comes_in_no_more(locking):
    s, ctl, directory = locking
    c = s.connect(token="tok-a").ready()
    assert ctl.json("lock", "a") == {"identity": "a", "locked": True} and os.listdir(directory) == ["a"]
    refused_as_locked(s, ctl, "a")
    s.connect(token="tok-b").ready()
    assert c.run("x", ["/bin/echo", "on"]).stdout == "on\n"
    assert "locked already" in ctl("lock", "a", code=1) and ctl.json("status")["locked"] == ["a"]
    ctl("reload")
    refused_as_locked(s, ctl, "a")
    os.kill(s.broker, 9)
    s.wait_log("sessions go on")
    refused_as_locked(s, ctl, "a")
    assert ctl.json("unlock", "a") == {"identity": "a", "locked": False} and os.listdir(directory) == []
    s.connect(token="tok-a").ready()
    assert "unlocked already" in ctl("unlock", "a", code=1)


def test_a_lock_survives_a_restart(locking, configured, user):
    s, ctl, directory = locking
    ctl("lock", "b")
    s.stop()
    again = configured(s.path.read_text())
    again.wait_log("[identity b] is locked: nobody comes in as it before `execd ctl unlock b`")
    refused_as_locked(again, Ctl(again, user), "b")
    again.connect(token="tok-a").ready()


def test_a_lock_ends_sessions_on_request(locking):
    s, ctl, _ = locking
    a, b = s.connect(token="tok-a").ready(), s.connect(token="tok-b").ready()
    ctl("lock", "a", "--end")
    a.wait_closed()
    assert b.run("x", ["/bin/echo", "on"]).stdout == "on\n"


@pytest.mark.parametrize("argv, code, said", [
    (["lock"], 2, "the name of an identity is needed"), (["lock", "../a"], 2, "the name of an identity is needed"),
    (["lock", "a\x1b[31m"], 2, "the name of an identity is needed"), (["lock", "none"], 1, "there is no [identity none]"),
    (["unlock", "b"], 1, "b is unlocked already"), (["unlock", "b", "--end"], 1, "b is unlocked already")])
def test_what_cannot_be_locked(locking, argv, code, said):
    _, ctl, directory = locking
    assert said in ctl(*argv, code=code)
    assert not directory.exists() or os.listdir(directory) == []


def test_a_lock_that_execd_cannot_see_is_none(locking, mode):
    """The next reload would open it, and nobody would know."""
    if mode != "root":
        pytest.skip("the broker is the operator's own user")
    _, ctl, directory = locking
    directory.mkdir(mode=0o700)
    assert "execd cannot see the lock" in ctl("lock", "b", code=1)
    assert os.listdir(directory) == []
