# SPDX-License-Identifier: ISC
"""One identity that takes all it can get leaves room for the others, in the table of sessions and in the log."""
import re

import pytest
from conftest import digest, poll

IDENTITY = """[identity {name}]
user = {user}
sandbox-allow-unsandboxed = yes
token-sha256 = {digest}
"""


def configuration(user, limits, names="a", listeners="[listener l]\naddress = ws://127.0.0.1:0\n"):
    return listeners + "".join(
        IDENTITY.format(name=n, user=user.pw_name, digest=digest(f"tok-{n}")) for n in names) + "[limits]\n" + limits


def open_and_drop(s, token):
    c = s.connect(token=token)
    m = c.request("initialize", {"clientName": "loop"})
    c.drop()
    return m


def test_sessions_without_anything_are_not_kept_when_places_are_scarce(configured, user):
    s = configured(configuration(user, "max-sessions = 8\n"))
    for _ in range(30):
        # The one before may be on its way out; more than one is not.
        poll(lambda: "result" in open_and_drop(s, "tok-a"), what="room for one more session")
    assert "nothing was started in it, and its place is needed, ending it" in s.log
    assert "resumed" not in s.log


def test_a_session_with_something_in_it_is_kept(configured, user):
    s = configured(configuration(user, "max-sessions = 2\n"))
    other = s.connect(token="tok-a").ready()
    c = s.connect(token="tok-a").ready()
    c.sh("x", "echo one")
    c.wait_output("x", "one")
    c.drop()
    s.wait_log(f"session {c.session_id[:8]}: detached")
    d = s.connect(token="tok-a")
    d.ready(resumeSessionId=c.session_id)
    assert d.session_id == c.session_id
    other.drop()


def test_there_is_room_for_a_session_that_lost_its_connection(configured, user):
    """Nothing is ended while places are not scarce."""
    s = configured(configuration(user, "max-sessions = 8\n"))
    c = s.connect(token="tok-a").ready()
    c.drop()
    s.wait_log(f"session {c.session_id[:8]}: detached")
    d = s.connect(token="tok-a")
    d.ready(resumeSessionId=c.session_id)
    assert d.session_id == c.session_id


def test_one_identity_leaves_places_for_others(configured, user):
    s = configured(configuration(user, "max-sessions = 8\n", names="abc"))
    taken = {n: 0 for n in "abc"}

    def take(name):
        c = s.connect(token=f"tok-{name}")
        m = c.request("initialize", {"clientName": "greedy"})
        taken[name] += "result" in m
        return m

    while "result" in (m := take("a")):
        pass
    assert "has its share of the 8 possible sessions" in m["error"]["message"], m
    while "result" in take("b"):
        pass
    while "result" in take("c"):
        pass
    # Half of all, half of what is left, and what every identity has for itself.
    assert taken == {"a": 4, "b": 2, "c": 2}


def test_an_identity_may_be_given_more(configured, user):
    text = configuration(user, "max-sessions = 8\n", names="ab").replace("[identity b]", "max-sessions = 8\n[identity b]")
    s = configured(text)
    assert all("result" in s.connect(token="tok-a").request("initialize", {"clientName": "many"}) for _ in range(8))


def test_sessions_that_come_and_go_do_not_fill_the_log(configured, user):
    s = configured(configuration(user, "max-sessions = 20\n"))
    for _ in range(400):
        open_and_drop(s, "tok-a")
    lines = len(re.findall(r"session \w+: ", s.log))
    # So many in ten seconds, of what would be 1200; a slow machine has another ten.
    assert 300 < lines < 1100, lines


@pytest.mark.parametrize("before, after", [("1h", "100ms"), ("100s", "1s")])
def test_a_shorter_time_holds_for_those_who_wait_already(configured, user, before, after):
    text = configuration(user, f"detached-ttl = {before}\n")
    s = configured(text)
    c = s.connect(token="tok-a").ready()
    c.drop()
    s.wait_log(f"session {c.session_id[:8]}: detached")
    s.reload(text.replace(before, after), "detached-ttl")
    d = s.connect(token="tok-a").ready()
    d.drop()
    for one in (c, d):
        s.wait_log(f"session {one.session_id[:8]}: not resumed within")
        s.wait_log(f"session {one.session_id[:8]}: ended")


def test_two_listeners_on_any_port_survive_a_reload(configured, user):
    listeners = "".join(f"[listener {n}]\naddress = ws://127.0.0.1:0\n" for n in "xyz")
    text = configuration(user, "max-connections = 50\n", listeners=listeners)
    s = configured(text)
    assert len(set(s.urls)) == 3
    s.reload(text.replace("= 50", "= 60"), "max-connections")
    for url in s.urls:
        assert s.connect(url, token="tok-a").ready().session_id
