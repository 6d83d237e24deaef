# SPDX-License-Identifier: ISC
"""execd-audit(5) and the records themselves: the same events with the same
members, and examples that are records."""
import json
import os
import pathlib
import pwd
import re

import pytest
from certificates import lend
from conftest import ROOT, digest, missing_layers
from execd_client import Closed, b64
from test_ctl import Ctl
from test_auth import KEY, jwt
from test_audit_sinks import Receiver, parse_syslog
from test_http import Origin
from test_network_lists import own, run
from test_operators import scrape
from test_proxy_protocol import PROXY, header

PAGE = pathlib.Path(__file__).parents[2] / "man/execd-audit.5"


def read_page():
    """What the page says: {event: members}, {event: example}."""
    text = PAGE.read_text().split("\n.Sh RECORDS\n")[1].split("\n.Sh ")[0]
    common, *parts = re.split(r"^\.Ss ", text, flags=re.M)
    every, of_session = (items(part) for part in common.split("\nThe records of a session"))
    members, examples = {}, {}
    for part in parts:
        event, *text = part.splitlines()
        if not text:    # two headings with one text: the example is of the second
            members[event] = examples[event] = None
            continue
        example = re.search(r"^\.Bd -literal\n(.*?)^\.Ed$", part, re.S | re.M)[1]
        examples[event] = json.loads(example.replace("\\(aq", "'").replace("\n", ""))
        members[event] = every | items(part) | (of_session if "session" in examples[event] else set())
        for also in [e for e, of in examples.items() if of is None]:
            members[also], examples[also] = members[event], {**examples[event], "event": also}
    return members, examples


def items(text):
    return {name for line in re.findall(r"^\.It Ic (.*)$", text, re.M) for name in line.split(" , ")}


MEMBERS, EXAMPLES = read_page()


def ask_as_operator(s, user, mode, client):
    """Of whom there are records, too; a stranger's needs root."""
    ctl = Ctl(s, user)
    ctl("kill", client.session_id[:8], "--reason", "x")
    assert ctl.error(b'{"command":"token-new","token":"x","identity":"nobody"}\n')["code"] == "noSuchIdentity"
    if ROOT:
        os.chmod(os.path.dirname(ctl.path), 0o755)
        os.chmod(ctl.path, 0o666)
        ctl("list", uid=pwd.getpwnam("nobody"), code=4)
    else:
        MEMBERS.pop("ctl-refused", None), EXAMPLES.pop("ctl-refused", None)


def ask_for_hosts(c, origin, user, mode):
    """One that is listed, and one that is not; it takes a sandbox."""
    if missing_layers(mode, user):
        for event in "network-allowed", "network-denied":
            MEMBERS.pop(event, None), EXAMPLES.pop(event, None)
        return
    at = f"127.0.0.1:{origin.server_address[1]}"
    run(c, "n", f"get=http://{at}/", "get=http://denied.example/", **own(at, deny=["denied.example"]))


@pytest.fixture
def records(configured, user, directory, mode):
    """A record of every kind, from a session that has everything."""
    casts = directory / "casts"
    casts.mkdir(mode=0o700)
    if mode == "user":
        os.chown(casts, user.pw_uid, user.pw_gid)
    receiver = Receiver(directory / "log.sock")
    (directory / "secret").write_bytes(KEY)
    lend(directory / "secret", user.pw_gid)
    s = configured("\n".join([
        "[listener main]", "address = ws://127.0.0.1:0", "identities = a", f"trusted-proxy = {PROXY}", "operate = yes",
        "operators = a", "[identity a]", f"user = {user.pw_name}",
        "sandbox-allow-unsandboxed = yes", "max-file-size = 1M", f"token-sha256 = {digest('tok-a')}", f"record-tty = {casts}",
        "token-subject = one", "[identity b]", f"user = {user.pw_name}", "[token old]", "identity = a",
        f"sha256 = {digest('tok-old')}", "expires = 2020-01-01T00:00:00Z", "[token b]", "identity = b", f"sha256 = {digest('tok-b')}",
        "[token new]", "identity = a", f"sha256 = {digest('tok-new')}", "[signed-tokens]", f"secret-file = {directory}/secret", "[limits]",
        "detached-ttl = 300ms", "max-kept-sessions = 1", "penalty-authentication = 1ms", "[audit]", f"syslog = {receiver.path}", "required = no", "files = all", ""]))

    def connect(**more):
        return s.connect(source=PROXY, before=header(), **more)

    with pytest.raises(Closed):
        connect(token="wrong")
    with pytest.raises(Closed):
        connect(token=jwt(exp=2 ** 40, sub="nobody"))
    connect(token=jwt(exp=2 ** 40, sub="one"))
    connect(token="tok-new")
    for token in "tok-old", "tok-b":
        with pytest.raises(Closed):
            connect(token=token)
    for token, status in ("tok-a", 200), ("wrong", 401):
        assert scrape(s.url, token, source=PROXY, before=header())[0] == status
    c = connect(token="tok-a").ready()
    c.call("session/keep", {"keepMs": 3600000})
    connect(token="tok-a").initialize(sessionKeep={"keepMs": 1})
    c.run("p", ["/bin/true"], tty=True)
    c.run_sh("k", "kill -9 $$")
    c.run_sh("f", f"exec head -c 2000000 /dev/zero >{directory}/big")
    c.call("fs/writeFile", {"path": f"file://{directory}/a", "dataBase64": b64("x")})
    c.call("fs/copy", {"sourcePath": f"file://{directory}/a", "destinationPath": f"file://{directory}/b", "recursive": False})
    c.call("fs/symlink", {"path": f"file://{directory}/l", "target": "t"})
    origin = Origin()
    c.call("http/request", {"method": "GET", "requestId": "1", "url": origin.url()})
    ask_for_hosts(c, origin, user, mode)
    connect(token="tok-a").ready(watchSessionId=c.session_id)
    connect(token="tok-a").error("initialize", {"clientName": "x", "resumeSessionId": "none"})
    c.drop()
    s.wait_log("detached")
    c = connect(token="tok-a").ready(resumeSessionId=c.session_id)
    c = connect(token="tok-a").ready(resumeSessionId=c.session_id, takeOver=True)
    receiver.wait(lambda d: b"session-resumed" in d)
    receiver.close()
    c.run("lost", ["/bin/true"])
    s.wait_log("audit log, syslog")
    receiver.open()
    receiver.wait(lambda d: b"records-lost" in d)
    ask_as_operator(s, user, mode, c)
    c.drop()
    receiver.wait(lambda d: b"session-ended" in d)
    yield [json.loads(parse_syslog(d)[4]) for d in receiver.got]
    receiver.close()


def test_every_record_and_every_member_is_on_the_page(records):
    assert {r["event"] for r in records} == set(MEMBERS), "every kind, and no other"
    for event, members in MEMBERS.items():
        seen = set().union(*(set(r) for r in records if r["event"] == event))
        assert seen == members, f"{event}: {seen ^ members}"


def test_the_examples_are_such_records(records):
    for event, example in EXAMPLES.items():
        assert example["event"] == event and set(example) <= MEMBERS[event], event
        like = next(r for r in records if r["event"] == event)
        for name in set(example) & set(like):
            if like[name] is not None:
                assert type(example[name]) is type(like[name]), f"{event}: {name}"
