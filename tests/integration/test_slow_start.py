# SPDX-License-Identifier: ISC
"""A start whose directory or program lies on a file system that does not answer: it alone waits, and is refused after
SLOW_START_SECONDS (runner/rpc/starting.c)."""
import ctypes
import inspect
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
from conftest import ROOT, children_named, is_alive, pids_with, poll
from execd_client import start_params

DEADLINE = 10
STARTING = "execd-runner"       # a child of a runner before its program runs
NEVER = "9876543"


class FileSystem:
    def __init__(self, path, made=False):
        self.path, self.away = path, pathlib.Path(f"{path}.away")
        path.mkdir(exist_ok=made)
        self.server = subprocess.Popen([sys.executable, pathlib.Path(__file__).with_name("fuse_server.py"), path],
                                       stdout=subprocess.PIPE)
        assert self.server.stdout.readline() == b"mounted\n"

    def goes(self):
        self.server.send_signal(signal.SIGSTOP)

    def returns(self):
        self.server.send_signal(signal.SIGCONT)

    def takes_requests(self):
        """Reads them, and does not answer: who waits then cannot be killed, until answers()."""
        self.away.touch()

    def answers(self):
        self.away.unlink()

    def stop(self):
        """Ends the connection of the file system, and so what waits for it."""
        self.server.kill()
        self.server.wait()
        assert ctypes.CDLL(None).umount2(os.fsencode(self.path), 2) == 0        # MNT_DETACH


def need_file_systems():
    if not ROOT or not os.access("/dev/fuse", os.W_OK):
        pytest.skip("HUNG FILE SYSTEMS ARE NOT TESTED: this needs root and /dev/fuse")


@pytest.fixture
def slow(directory):
    need_file_systems()
    f = FileSystem(directory / "slow")
    yield f
    f.stop()


@pytest.fixture
def client(slow, spawn):
    server = spawn()
    c = server.ready()
    c.server = server
    return c


def post_start(c, id, argv, cwd="/", **extra):
    return c.post("process/start", start_params(id, argv, cwd=pathlib.Path(cwd).as_uri(), **extra))


def assert_refused(c, request, path, began, kind="spawnFailed"):
    error = c.answer(request, timeout=DEADLINE + 20)["error"]
    assert error.pop("data", {}).get("kind") == kind, error
    assert error == {"code": -32603, "message":
                     f"`{path}`: its file system did not answer within {DEADLINE} s (os error 110)"}, error
    assert DEADLINE - 1 < time.monotonic() - began < DEADLINE + 10


def assert_others_are_served(c, directory):
    """Requests of the same session, other starts too, well before the deadline."""
    began = time.monotonic()
    assert c.run("other", ["/bin/echo", "served"]).stdout == "served\n"
    assert c.run_sh("with-path", "pwd", cwd=directory.as_uri()).stdout == f"{directory}\n"
    assert "result" in c.request("process/list", {})
    assert "result" in c.request("fs/getMetadata", {"path": directory.as_uri()})
    assert time.monotonic() - began < DEADLINE - 3


# Those that wait for the deadline. They do it at the same time, each with a server and a file system of its own: test_deadlines.
WAITING = []


def waits(test):
    """`yield` is where it waits."""
    WAITING.append(test)
    return test


def test_a_file_system_that_answers(client, slow):
    assert client.run("a", ["/bin/pwd"], cwd=(slow.path / "d").as_uri()).stdout == f"{slow.path}/d\n"
    assert client.run("b", [str(slow.path / "prog")]).stdout == "slow\n"
    error = client.error("process/start", start_params("c", ["/bin/true"], cwd=(slow.path / "none").as_uri()))
    assert error[1] == "No such file or directory (os error 2)", error


@waits
def only_the_start_there_waits(client, slow, directory):
    (directory / "link").symlink_to(slow.path / "d")
    (directory / "script").write_text(f"#!{slow.path}/prog\n")
    (directory / "script").chmod(0o755)
    client.run("first", ["/bin/true"])
    slow.goes()
    began = time.monotonic()
    starts = {
        slow.path / "d": post_start(client, "cwd", ["/bin/true"], slow.path / "d"),
        directory / "link": post_start(client, "link", ["/bin/true"], directory / "link"),
        slow.path / "prog": post_start(client, "program", [str(slow.path / "prog")]),
        f"{slow.path}/./prog": post_start(client, "relative", ["./prog"], directory / "link" / ".."),
    }
    script = post_start(client, "script", [str(directory / "script")])
    assert_others_are_served(client, directory)
    yield
    wanted = dict(starts)
    wanted.pop(f"{slow.path}/./prog")
    for path, start in wanted.items():
        assert_refused(client, start, path, began)
    assert_refused(client, script, slow.path / "prog", began)
    assert "error" in client.answer(starts[f"{slow.path}/./prog"])
    assert all(p["processId"] in ("first", "other", "with-path") for p in client.call("process/list", {})["processes"])


def test_it_is_carried_out_when_the_file_system_comes_back(client, slow):
    slow.goes()
    start = post_start(client, "x", ["/bin/sh", "-c", "read x; echo $x; pwd"], slow.path / "d", pipeStdin=True)
    write = client.post("process/write", {"processId": "x", "chunk": "aGkK", "writeId": "1"})
    twice = post_start(client, "x", ["/bin/true"])
    assert client.run("y", ["/bin/echo", "meanwhile"]).stdout == "meanwhile\n"
    assert not any(m.get("id") in (start, write, twice) for m in client.messages)
    slow.returns()
    assert "result" in client.answer(start)
    assert client.answer(write)["result"] == {"status": "accepted"}
    assert client.answer(twice)["error"]["message"] == "process x already exists"
    assert client.finished("x").stdout == f"hi\n{slow.path}/d\n"


def test_it_goes_away_before_the_program_runs(client, slow):
    """Whoever opens the program is not waited for, however often it was opened before."""
    client.run("first", ["/bin/true"])
    slow.path.with_suffix(".once").touch()
    start = post_start(client, "x", [str(slow.path / "prog")])
    poll(slow.away.exists, what="an opened program")
    assert client.run("y", ["/bin/echo", "meanwhile"]).stdout == "meanwhile\n"
    slow.answers()
    assert "result" in client.answer(start)
    assert client.finished("x").stdout == "slow\n"


def end_session(client, slow):
    client.run("first", ["/bin/true"])
    runner = client.server.runner(client)
    post_start(client, "x", ["/bin/sleep", NEVER], slow.path / "d")
    poll(lambda: children_named(runner, STARTING), what="a child that waits")
    client.sh("y", "sleep 1000")
    client.post("session/end", {})
    return runner


def test_the_session_ends_while_a_start_waits(client, slow, user):
    slow.goes()
    began = time.monotonic()
    runner = end_session(client, slow)
    client.wait_closed()
    poll(lambda: not is_alive(runner), what="end of the runner")
    assert time.monotonic() - began < DEADLINE - 3
    assert client.server.ready().run("z", ["/bin/echo", "new"]).stdout == "new\n"
    assert not pids_with(NEVER)


def test_the_session_ends_when_the_kernel_lets_go_of_its_processes(client, slow, user):
    slow.takes_requests()
    runner = end_session(client, slow)
    client.exited("y")
    assert client.server.ready().run("z", ["/bin/echo", "new"]).stdout == "new\n"
    slow.answers()
    client.wait_closed()
    poll(lambda: not is_alive(runner), what="end of the runner")


@waits
def the_connection_ends_while_a_start_waits(client, slow):
    slow.goes()
    post_start(client, "x", ["/bin/touch", "made"], slow.path / "d")
    runner = client.server.runner(client)
    poll(lambda: children_named(runner, STARTING), what="a child that waits")
    id = client.session_id
    client.drop()
    yield
    poll(lambda: not children_named(runner, STARTING), what="end of it")
    again = client.server.ready(resumeSessionId=id)
    assert again.call("process/list", {})["processes"] == []


@waits
def many_of_them(client, slow):
    client.run("first", ["/bin/true"])
    runner = client.server.runner(client)
    slow.takes_requests()
    starts = [post_start(client, f"p{i}", ["/bin/true"], slow.path / "d") for i in range(40)]
    assert client.run("y", ["/bin/echo", "meanwhile"]).stdout == "meanwhile\n"
    poll(lambda: len(children_named(runner, STARTING)) == 40, what="forty processes")
    yield
    errors = [client.answer(s, timeout=DEADLINE + 20)["error"]["message"] for s in starts]
    assert all("its file system did not answer" in e for e in errors)
    slow.answers()
    poll(lambda: not children_named(runner, STARTING), what="end of those that waited")
    assert client.run("z", ["/bin/pwd"], cwd=(slow.path / "d").as_uri()).stdout == f"{slow.path}/d\n"


@waits
def a_policy_that_names_a_path_there(client, slow, directory):
    def entry(path, access):
        return {"path": {"type": "path", "path": path.as_uri()}, "access": access}

    policy = {"windowsSandboxLevel": "disabled", "workspaceRoots": [directory.as_uri()], "cwd": directory.as_uri(),
              "permissions": {"type": "managed", "network": "restricted", "file_system": {
                  "type": "restricted", "entries": [
                      {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"},
                      entry(directory, "write"), entry(slow.path / "d", "read")]}}}
    assert client.run("a", ["/bin/pwd"], cwd=directory.as_uri(), sandbox=policy).stdout == f"{directory}\n"
    slow.goes()
    began = time.monotonic()
    start = post_start(client, "b", ["/bin/pwd"], directory, sandbox=policy)
    assert_others_are_served(client, directory)
    yield
    assert_refused(client, start, slow.path / "d", began)


@waits
def watches_there(client, slow, directory):
    """Whoever adds a watch looks the path up; the session does not wait for it."""
    assert client.call("fs/watch", {"watchId": 1, "path": (slow.path / "d").as_uri()}) == {}
    assert client.call("fs/watchMissing", {"watchId": 2, "missing": [(slow.path / "none").as_uri()]})["watching"] in (True, False)
    client.call("fs/unwatch", {"watchId": 1})
    slow.goes()
    began = time.monotonic()
    watch = client.post("fs/watch", {"watchId": 3, "path": (slow.path / "d").as_uri()})
    missing = client.post("fs/watchMissing", {"watchId": 4, "missing": [directory.as_uri(), (slow.path / "x").as_uri()]})
    assert_others_are_served(client, directory)
    yield
    assert_refused(client, watch, slow.path / "d", began, kind=None)
    assert_refused(client, missing, slow.path / "x", began, kind=None)
    slow.returns()
    assert client.call("fs/watch", {"watchId": 3, "path": (slow.path / "d").as_uri()}) == {}


@waits
def file_requests_there(client, slow, directory, how="goes"):
    """The first is refused when its file system has not answered; those behind it are not lost, and others are served."""
    (directory / "f").write_text("content")
    f, d = (directory / "f").as_uri(), (slow.path / "d").as_uri()
    client.call("fs/getMetadata", {"path": f})
    getattr(slow, how)()
    began = time.monotonic()
    first = client.post("fs/getMetadata", {"path": d})
    second = client.post("fs/readFile", {"path": f})
    assert client.run("other", ["/bin/echo", "served"]).stdout == "served\n"
    yield
    error = client.answer(first, timeout=DEADLINE + 30)["error"]
    assert error == {"code": -32603, "message": f"the file system did not answer within {DEADLINE} s (os error 110)"}
    assert DEADLINE - 1 < time.monotonic() - began < DEADLINE + 15
    error = client.answer(second)["error"]
    assert error["code"] == -32603 and error["message"].startswith("not carried out: the file helper was replaced"), error
    assert client.call("fs/readFile", {"path": f})["dataBase64"] == "Y29udGVudA=="
    if how == "takes_requests":
        slow.answers()


@waits
def file_requests_that_were_taken(client, slow, directory):
    return file_requests_there(client, slow, directory, "takes_requests")


@pytest.mark.nightly
def test_a_start_behind_a_change_there(client, slow, directory):
    """It is refused before the change is; what only reads, and other connections, go on."""
    client.call("fs/getMetadata", {"path": directory.as_uri()})
    slow.takes_requests()
    began = time.monotonic()
    change = client.post("fs/createDirectory", {"path": (slow.path / "d" / "x").as_uri()})
    start = post_start(client, "x", ["/bin/true"])
    assert client.server.ready().run("other", ["/bin/echo", "served"]).stdout == "served\n"
    assert "result" in client.request("process/list", {}) and time.monotonic() - began < DEADLINE - 3
    error = client.answer(start, timeout=DEADLINE + 20)["error"]
    assert error == {"code": -32603, "data": {"kind": "spawnFailed"}, "message":
                     f"earlier requests that change files were not answered within {DEADLINE} s (os error 110)"}
    assert client.answer(change, timeout=DEADLINE + 20)["error"]["code"] == -32603
    slow.answers()
    assert client.run("y", ["/bin/echo", "again"]).stdout == "again\n"


@waits
def a_policy_there(client, slow, directory):
    """A file request whose policy has a path there waits alone, with its content."""
    entries = [{"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"},
               {"path": {"type": "path", "path": directory.as_uri()}, "access": "write"},
               {"path": {"type": "path", "path": (slow.path / "d").as_uri()}, "access": "deny"}]
    sandbox = {"cwd": directory.as_uri(), "windowsSandboxLevel": "disabled", "permissions": {
        "type": "managed", "network": "restricted", "file_system": {"type": "restricted", "entries": entries}}}
    big = {"path": (directory / "big").as_uri(), "dataBase64": "YWFh" * 400000, "sandbox": sandbox}
    assert "result" in client.request("fs/writeFile", big)
    (directory / "big").unlink()
    slow.goes()
    began = time.monotonic()
    write = client.post("fs/writeFile", big)
    behind = post_start(client, "behind", ["/bin/true"])
    assert "result" in client.request("process/list", {})
    assert "result" in client.request("fs/getMetadata", {"path": directory.as_uri()})
    assert time.monotonic() - began < DEADLINE - 3
    yield
    assert_refused(client, write, slow.path / "d", began, kind=None)
    assert "result" in client.answer(behind)
    write = client.post("fs/writeFile", big)
    slow.returns()
    assert "result" in client.answer(write), client.answer(write)
    assert (directory / "big").read_text() == "aaa" * 400000


def test_an_open_file_waits_for_its_opening(client, slow, directory, sandboxes):
    """What comes for a handle does not overtake the fs/open whose policy has a path there; another handle is served."""
    entries = [{"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"},
               {"path": {"type": "path", "path": directory.as_uri()}, "access": "write"},
               {"path": {"type": "path", "path": (slow.path / "d").as_uri()}, "access": "deny"}]
    sandbox = {"cwd": directory.as_uri(), "windowsSandboxLevel": "disabled", "permissions": {
        "type": "managed", "network": "restricted", "file_system": {"type": "restricted", "entries": entries}}}
    (directory / "other").write_text("seen")
    slow.goes()
    opened = client.post("fs/open", {"handleId": "h", "path": (directory / "f").as_uri(), "mode": "replace", "sandbox": sandbox})
    behind = [client.post("fs/writeBlock", {"handleId": "h", "offset": 0, "chunk": "YWFh"}),
              client.post("fs/writeBlock", {"handleId": "h", "offset": 3, "chunk": "YmJi"}),
              client.post("fs/close", {"handleId": "h"})]
    client.call("fs/open", {"handleId": "k", "path": (directory / "other").as_uri()})
    assert client.call("fs/readBlock", {"handleId": "k", "offset": 0, "len": 9}) == {"chunk": "c2Vlbg==", "eof": True}
    assert not any(m.get("id") in (opened, *behind) for m in client.messages)
    slow.returns()
    assert client.answer(opened)["result"] == {"handleId": "h"}
    assert [client.answer(id).get("result") for id in behind] == [{}, {}, {}]
    assert (directory / "f").read_text() == "aaabbb"


@waits
def what_the_operator_hides_there(slow, configured, user, directory):
    """The operator's paths are part of every sandbox: a start is refused, and the session goes on."""
    s = configured(f"[listener main]\naddress = ws://127.0.0.1:0\nallow-unauthenticated = any\n"
                   f"[identity any]\nuser = {user.pw_name}\n[sandbox]\nmax-profile = workspace-write\nhide = {slow.path}/d\n")
    c = s.ready()
    sandbox = {"cwd": directory.as_uri(), "windowsSandboxLevel": "disabled", "permissions": {
        "type": "managed", "network": "restricted", "file_system": {"type": "restricted", "entries": [
            {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"}]}}}
    assert c.run("a", ["/bin/echo", "x"], sandbox=sandbox).stdout == "x\n"
    slow.goes()
    began = time.monotonic()
    start = post_start(c, "b", ["/bin/true"], sandbox=sandbox)
    read = c.post("fs/getMetadata", {"path": directory.as_uri(), "sandbox": sandbox})
    assert "result" in c.request("process/list", {}) and time.monotonic() - began < DEADLINE - 3
    yield
    assert_refused(c, start, slow.path / "d", began)
    assert_refused(c, read, slow.path / "d", began, kind=None)


def test_deadlines(spawn, configured, user, sandboxes, directory):
    need_file_systems()
    file_systems, running = [], []
    try:
        for test in WAITING:
            own = directory / test.__name__
            own.mkdir()
            own.chmod(0o777)
            file_systems.append(FileSystem(own / "slow"))
            given = {"configured": configured, "user": user, "directory": own, "slow": file_systems[-1]}
            names = inspect.signature(test).parameters
            if "client" in names:
                server = spawn()
                given["client"] = server.ready()
                given["client"].server = server
            running.append(test(**{name: given[name] for name in names if name in given}))
            next(running[-1])
        for test in running:
            assert next(test, "its end") == "its end"
    finally:
        for f in file_systems:
            f.stop()
