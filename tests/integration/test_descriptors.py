# SPDX-License-Identifier: ISC
"""Every program at the end of its descriptors: refused in words, and nobody who
was served before loses anything."""
import pytest
from conftest import Server, command, digest, poll
from execd_client import Closed, WebSocket

TOKEN = "t" * 40


class Few(Server):
    """An execd with so few descriptors."""

    def __init__(self, n, mode, user):
        self._start(mode, ["prlimit", f"--nofile={n}:{n}", *command(mode, user, ["--listen", "ws://127.0.0.1:0"])],
                    None)


@pytest.fixture
def few(mode, user):
    started = []

    def start(n):
        started.append(Few(n, mode, user))
        return started[-1]

    yield start
    for s in started:
        s.stop()


def connect(s):
    """A connection, or None: refused in words."""
    try:
        return s.connect()
    except Closed as e:
        assert " 503 " in str(e)


def test_connections_beyond_the_descriptors_are_refused(few):
    """Each of those that came in finds a place for its channel, too."""
    s = few(164)
    clients = [c for c in (connect(s) for _ in range(80)) if c]
    assert len(clients) == (164 - 64) // 2
    for c in clients:
        m = c.request("initialize", {"clientName": "x"})
        if "error" in m:
            assert m["error"]["code"] == -32603 and m["error"]["message"], m
    served = [c for c in clients if any("result" in m for m in c.messages)]
    assert len(served) >= (164 - 96) // 2
    for c in served:
        c.notify("initialized")
        assert c.run("p", ["/bin/echo", "fine"]).stdout == "fine\n"
    assert s.log.count(": serving") == 1, s.log
    clients[0].drop()
    poll(lambda: connect(s), what="room")


def test_a_session_full_of_commands_is_resumed_all_the_same(configured, user, mode):
    """Its runner has no descriptor left: the next start is refused in words,
    and a channel that comes finds its place."""
    s = configured(f"""
[listener a]
address = ws://127.0.0.1:0
[identity one]
user = {user.pw_name}
sandbox-max-profile = full
sandbox-allow-unsandboxed = yes
max-open-files = 100
token-sha256 = {digest(TOKEN)}
""")
    c = s.connect(token=TOKEN).ready()
    n = 0
    while "result" in (m := c.start(f"p{n}", ["/bin/cat"], pipeStdin=True)):
        n += 1
        assert n < 100
    assert "Too many open files" in m["error"]["message"], m
    for i in range(5):
        c.drop()
        s.wait_log("detached")
        again = WebSocket(s.url, token=TOKEN)
        s.clients.append(again)
        r = poll(lambda: again.request("initialize", {"clientName": "x", "resumeSessionId": c.session_id}).get("result"),
                 what="resume")
        again.session_id = r["sessionId"]
        again.notify("initialized")
        again.write("p0", f"{i}\n", f"again{i}")
        again.wait_output("p0", f"{i}\n")
        assert "error" in again.start("more", ["/bin/cat"], pipeStdin=True)
        c = again
    for i in range(1, 6):
        assert c.terminate(f"p{i}")
    poll(lambda: "result" in c.start("after", ["/bin/true"]), what="room")
    assert "impossible" not in s.log and "is gone" not in s.log, s.log
