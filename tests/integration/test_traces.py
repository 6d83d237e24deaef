# SPDX-License-Identifier: ISC
"""Sessions of real CLIs of several versions, replayed: each frame as it was sent, each answer in the shape that it had.

tests/codex/record_traces.py recorded them, so neither npm nor a CLI is needed here.
"""
import itertools
import json
import pathlib
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).parents[1] / "codex"))
from trace_shape import Places, TRACES, answer_shape, fits  # noqa: E402

VERSIONS = sorted(p.stem for p in TRACES.glob("*.json"))


@pytest.fixture
def place(user, directory):
    """Makes the workspace of a session: place(name)."""
    def make(name="w"):
        at = directory / name
        (at / ".git").mkdir(parents=True)
        at.chmod(0o777)
        for name, text in {"AGENTS.md": "Be brief.\n", "edited.txt": "old\n"}.items():
            (at / name).write_text(text)
            (at / name).chmod(0o666)
        return Places(DIR=at, CLIENT=at / "client", HOME=pathlib.Path(user.pw_dir))

    return make


def about(message):
    return message["method"], message["params"].get("processId", "")


def wait_for(client, frame):
    """What the server said before the client's next frame: an answer, or a notification about a process."""
    if "id" in frame:
        return client.answer(frame["id"])
    return client.wait(lambda: next((m for m in client.messages if "method" in m and
                                     about(m) == (frame["method"], frame["process"])), None), what=str(frame))


def elsewhere(request):
    """A client looks for projects in all directories above: what is there is the machine's affair."""
    return request["method"] == "fs/getMetadata" and "@" not in request["params"]["path"]


def missed(frame, message, requests):
    """None, or what the client of this trace would miss."""
    if "method" in frame:
        return fits(frame["params"], message["params"])
    got, request = answer_shape(message), requests[frame["id"]]
    if "code" in frame or "code" in got:
        if elsewhere(request):
            return None
        return None if {k: frame.get(k) for k in ("code", "data")} == got else f"{frame}, not {got}"
    return fits(frame["result"], message["result"])


def test_versions_are_there():
    """Those of tests/codex/driver.py."""
    driver = (TRACES.parent / "driver.py").read_text()
    assert VERSIONS == sorted(eval(driver.split("\nVERSIONS = ")[1].split("\n")[0]))


def steps(server, places, version, session):
    """Replays it, and stops behind each frame."""
    frames = json.loads((TRACES / f"{version}.json").read_text())[session]
    client, requests = server.connect(), {}
    for frame in frames:
        if "client" in frame:
            request = frame["client"]
            requests[request.get("id")] = request
            client.send(places.fill(request))
        else:
            assert not missed(frame, wait_for(client, frame), requests), requests.get(frame.get("id"))
        yield
    assert len([f for f in frames if f.get("client", {}).get("method") == "process/start"]) == 2


@pytest.mark.parametrize("session", ["bypass", "workspace-write"])
@pytest.mark.parametrize("version", VERSIONS)
def test_replay(server, place, version, session):
    for _ in steps(server, place(), version, session):
        pass


def test_all_versions_at_once(server, place):
    """Frame by frame in turn, each in a workspace of its own."""
    everyone = [steps(server, place(f"{version}-{session}"), version, session)
                for version in VERSIONS for session in ("bypass", "workspace-write")]
    for _ in itertools.zip_longest(*everyone):
        pass
