# SPDX-License-Identifier: ISC
"""The fs/ methods under policies: the same view as a command's, in a helper of
each policy (doc/sandbox.md B8, C9).
"""
import base64
import os
import pathlib

import pytest
from conftest import ROOT, Shell, as_test_user, children, name, poll
from policies import PROTECTED, READ_ALL, UNENFORCEABLE, external, managed, path, special, uri, workspace_write

NOT_FOUND = (-32004, "No such file or directory (os error 2)")
DENIED = (-32600, "Permission denied (os error 13)")
READ_ONLY = (-32603, "Read-only file system (os error 30)")
EVERYTHING = {"maxDepth": 9, "maxDirectories": 99, "maxEntries": 99, "followDirectorySymlinks": True}

TREE = """mkdir -p w/d/e w/empty x; echo in > w/f; echo deep > w/d/e/f; echo out > x/f; echo secret > w/secret
mkdir w/closed; echo c > w/closed/f; ln -s ../x/f w/out; ln -s f w/in; mkfifo w/fifo"""


def b64(text):
    return base64.b64encode(text.encode()).decode()


class Files:
    """fs/ requests with one policy; None: without any."""

    def __init__(self, client, root, policy):
        self.client, self.root, self.policy = client, root, policy

    def params(self, method, where, more):
        p = dict(more)
        if method == "copy":
            p |= {"sourcePath": uri(self.root / where), "destinationPath": uri(self.root / p.pop("to")),
                  "recursive": p.get("recursive", True)}
        elif where is not None:
            p["path"] = uri(self.root / where)
        if self.policy is not None and method not in ("readBlock", "writeBlock", "close"):
            p["sandbox"] = self.policy
        return p

    def post(self, method, where=None, **more):
        return self.client.post("fs/" + method, self.params(method, where, more))

    def __call__(self, method, where=None, **more):
        return self.client.call("fs/" + method, self.params(method, where, more))

    def error(self, method, where=None, **more):
        return self.client.error("fs/" + method, self.params(method, where, more))

    def read(self, where):
        return base64.b64decode(self("readFile", where)["dataBase64"]).decode()


@pytest.fixture
def tree(place, user):
    as_test_user(user, TREE, place)
    return place


@pytest.fixture
def denies(tree):
    return managed(READ_ALL, path(tree / "w", "write"), path(tree / "w/secret", "deny"), path(tree / "w/closed", "deny"))


@pytest.fixture
def fs(client, tree, denies):
    """Writes below w, but for what it denies."""
    return Files(client, tree, denies)


@pytest.fixture
def reader(client, tree):
    return Files(client, tree, managed(READ_ALL))


def test_what_is_allowed(fs, tree):
    w = tree / "w"
    assert fs.read("w/f") == "in\n" and fs.read("x/f") == "out\n" and fs.read("w/out") == "out\n"
    assert fs("writeFile", "w/new", dataBase64=b64("new")) == {} and (w / "new").read_text() == "new"
    assert (w / "new").stat().st_uid == w.stat().st_uid
    assert fs("writeFile", "w/in", dataBase64=b64("linked")) == {} and (w / "f").read_text() == "linked"
    assert fs("createDirectory", "w/a/b") == {} and (w / "a/b").is_dir()
    assert fs("getMetadata", "w/f")["size"] == 6 and fs("getMetadata", "w/out")["isSymlink"] is True
    assert fs("canonicalize", "w/in") == {"path": uri(w / "f")}
    names = {e["fileName"] for e in fs("readDirectory", "w")["entries"]}
    assert names >= {"f", "d", "empty", "in", "secret", "closed"}
    walked = {e["path"] for e in fs("walk", "w", options=EVERYTHING)["entries"]}
    assert uri(w / "d/e/f") in walked and uri(w / "closed/f") not in walked
    assert fs("copy", "w/d", to="w/copied") == {} and (w / "copied/e/f").read_text() == "deep\n"
    assert fs("copy", "x/f", to="w/from-x") == {} and (w / "from-x").read_text() == "out\n"
    assert fs("remove", "w/copied") == {} and not (w / "copied").exists()


def test_long_files_come_as_descriptors(fs, tree):
    """The second waits for its turn: two of one policy are never under way."""
    text = "long" * (1 << 19)
    first, second, third = [fs.post("writeFile", name, dataBase64=b64(text)) for name in ("w/f", "w/new", "x/f")]
    assert fs.client.answer(first)["result"] == fs.client.answer(second)["result"] == {}
    error = fs.client.answer(third)["error"]
    assert (error["code"], error["message"]) == READ_ONLY
    assert (tree / "w/f").read_text() == (tree / "w/new").read_text() == text
    assert (tree / "x/f").read_text() == "out\n"


def test_what_is_refused(fs, tree):
    w = tree / "w"
    assert fs.error("readFile", "w/secret") == DENIED and fs.error("readFile", "w/closed/f") == DENIED
    assert fs.error("writeFile", "x/f", dataBase64=b64("bad")) == READ_ONLY
    assert fs.error("writeFile", "w/out", dataBase64=b64("bad")) == READ_ONLY
    assert fs.error("writeFile", "x/new", dataBase64=b64("bad")) == READ_ONLY
    assert fs.error("writeFile", "w/secret", dataBase64=b64("bad")) in (DENIED, READ_ONLY)
    assert fs.error("createDirectory", "x/d") == READ_ONLY
    assert fs.error("remove", "x/f") == READ_ONLY and fs.error("remove", "x") == READ_ONLY
    assert fs.error("remove", "w/secret")[0] in (-32603, -32600) and fs.error("remove", "w/closed")[0] in (-32603, -32600)
    assert fs.error("copy", "w/f", to="x/g") == READ_ONLY
    assert fs.error("copy", "w/secret", to="w/g") == DENIED
    assert fs.error("copy", "w/closed", to="w/h") == DENIED
    assert fs.error("open", "w/secret", handleId="h") == DENIED
    assert fs.error("open", "x/f", handleId="h", mode="replace") == READ_ONLY
    assert fs.error("readDirectory", "w/closed") == DENIED
    assert fs.error("readFile", "w/none") == NOT_FOUND and fs.error("getMetadata", "w/none") == NOT_FOUND
    assert "is not a file" in fs.error("readFile", "w/fifo")[1] and "is not a file" in fs.error("readFile", "w/d")[1]
    assert (tree / "x/f").read_text() == "out\n" and (w / "secret").read_text() == "secret\n"
    assert os.listdir(tree / "x") == ["f"] and (w / "closed/f").exists()


def test_reading_alone(reader, tree):
    before = sorted(p.name for p in (tree / "w").iterdir())
    for method, more in (("writeFile", {"dataBase64": ""}), ("createDirectory", {}), ("open", {"handleId": "h", "mode": "replace"})):
        assert reader.error(method, "w/fresh", **more) == READ_ONLY, method
    assert reader.error("remove", "w/f") == READ_ONLY and reader.error("copy", "w/f", to="w/g") == READ_ONLY
    assert sorted(p.name for p in (tree / "w").iterdir()) == before


def test_no_success_for_what_is_thrown_away(client, tree):
    """O18: under `minimal` the rest of the tree is nowhere, and stays so."""
    fs = Files(client, tree, managed(special("minimal", "read"), path(tree / "w/d", "write")))
    assert fs.read("w/d/e/f") == "deep\n"
    fs("writeFile", "w/d/new", dataBase64=b64("x"))
    for where in ("w/new", "x/new", "new"):
        assert fs.error("writeFile", where, dataBase64=b64("x"))[0] in (-32603, -32004, -32600), where
        assert fs.error("createDirectory", where + "/a")[0] in (-32603, -32004, -32600), where
    assert fs.error("readFile", "x/f") == NOT_FOUND
    assert sorted(os.listdir(tree)) == ["w", "x"] and (tree / "w/d/new").exists()


def test_protected_names(client, tree):
    fs = Files(client, tree, workspace_write(tree / "w"))
    for n in PROTECTED:
        assert fs.error("writeFile", f"w/{n}/x", dataBase64="")[0] in (-32603, -32600), n
        assert fs.error("createDirectory", f"w/{n}/d")[0] in (-32603, -32600), n
        assert fs.error("copy", "w/f", to=f"w/{n}/f")[0] in (-32603, -32600), n
        fs.client.request("fs/remove", fs.params("remove", f"w/{n}", {}))
    fs("writeFile", "w/ok", dataBase64="")
    poll(lambda: not set(os.listdir(tree / "w")) & set(PROTECTED), what="end of the placeholders")


def test_placeholders_are_there_while_a_request_runs(client, tree, user):
    """A tree large enough to be caught at it."""
    as_test_user(user, "mkdir w/big; cd w/big; for d in $(seq 40); do mkdir $d; seq -f $d/f%g 100 | xargs touch; done",
                 tree)
    fs = Files(client, tree, workspace_write(tree / "w"))
    fs("getMetadata", "w")
    poll(lambda: not set(os.listdir(tree / "w")) & set(PROTECTED))
    id = fs.post("copy", "w/big", to="w/copy")
    poll(lambda: set(os.listdir(tree / "w")) >= {*PROTECTED, "copy"}, what="copy under placeholders")
    assert "result" in client.answer(id, 120)
    assert len(list((tree / "w/copy").rglob("f*"))) == 4000
    poll(lambda: not set(os.listdir(tree / "w")) & set(PROTECTED), what="end of the placeholders")


def test_policies_are_read_as_for_commands(client, tree):
    code, text = Files(client, tree, managed(READ_ALL, special("project_roots", "write"), roots=[])).error("readFile", "w/f")
    assert (code, text) == (-32602, "file system sandbox context with dynamic permissions requires cwd")
    assert Files(client, tree, {}).error("readFile", "w/f") == (-32602, "missing field `permissions`")
    assert Files(client, tree, external("restricted")).read("w/f") == "in\n"
    bad = managed(READ_ALL, path(tree / "w", "write"), path(tree / "w/out/g", "deny"))
    assert Files(client, tree, bad).error("readFile", "w/f")[0] == -32602


# --- handles --------------------------------------------------------------------

def block(fs, handle, offset=0, length=100):
    return base64.b64decode(fs("readBlock", handleId=handle, offset=offset, len=length)["chunk"]).decode()


def test_handles_keep_their_policy(client, tree, denies):
    one, two, none = Files(client, tree, denies), Files(client, tree, managed(READ_ALL)), Files(client, tree, None)
    one("open", "w/new", handleId="a", mode="replace")
    two("open", "w/f", handleId="b")
    none("open", "x/f", handleId="c", mode="replace")
    for fs in (one, two):
        assert fs.error("open", "w/f", handleId="a")[1] == "file handle `a` already exists"
        assert fs.error("open", "w/f", handleId="c")[1] == "file handle `c` already exists"
    assert none.error("open", "w/f", handleId="b")[1] == "file handle `b` already exists"
    none("writeBlock", handleId="a", offset=2, chunk=b64("policy"))
    one("writeBlock", handleId="c", offset=0, chunk=b64("direct"))
    assert block(one, "b") == "in\n" and (tree / "w/new").read_bytes() == b"\0\0policy"
    assert (tree / "x/f").read_text() == "direct"
    for handle in "abc":
        assert two("close", handleId=handle) == {}
        assert one.error("readBlock", handleId=handle, offset=0, len=1)[0] == -32004


def test_handles_of_all_policies_are_counted_together(client, tree):
    readers = [Files(client, tree, managed(READ_ALL)), Files(client, tree, workspace_write(tree / "w")),
               Files(client, tree, managed(READ_ALL, path(tree / "w", "write")))]
    for i in range(128):
        readers[i % 3]("open", "w/f", handleId=f"h{i}")
    assert readers[0].error("open", "w/f", handleId="more") == \
        (-32600, "at most 128 file handles may be open per connection")
    readers[1]("close", handleId="h0")
    readers[2]("open", "w/f", handleId="more")
    assert block(readers[0], "more") == "in\n" and block(readers[0], "h127") == "in\n"


def test_a_handle_outlives_its_name_and_its_policy_ends_with_the_connection(server, tree, denies):
    client = server.ready()
    fs = Files(client, tree, denies)
    fs("open", "w/f", handleId="h")
    (tree / "w/f").unlink()
    assert block(fs, "h") == "in\n"
    client.drop()
    again = server.ready()
    assert Files(again, tree, denies).error("readBlock", handleId="h", offset=0, len=1)[0] == -32004
    again.drop()


# --- order, helpers -------------------------------------------------------------

def test_requests_keep_their_order(client, tree, denies):
    """Across policies and without any: what is written is read by the next."""
    kinds = [Files(client, tree, denies), Files(client, tree, None), Files(client, tree, workspace_write(tree / "w"))]
    ids = []
    for i in range(60):
        ids.append(kinds[i % 3].post("writeFile", "w/order", dataBase64=b64(f"{i}")))
        ids.append(kinds[(i + 1) % 3].post("readFile", "w/order"))
    for i in range(60):
        assert "result" in client.answer(ids[2 * i])
        got = client.answer(ids[2 * i + 1])["result"]["dataBase64"]
        assert base64.b64decode(got).decode() == f"{i}", i
    order = [m["id"] for m in client.messages if m.get("id") in ids]
    assert order == ids


def test_more_policies_than_nests(client, tree, user):
    """Helpers of old policies make room; what they said stays true."""
    as_test_user(user, "for i in $(seq 40); do mkdir r$i; echo $i > r$i/f; done", tree)
    all = [Files(client, tree, managed(READ_ALL, path(tree / f"r{i}", "write"))) for i in range(1, 41)]
    for _ in range(2):
        for i, fs in enumerate(all, 1):
            fs("writeFile", f"r{i}/f", dataBase64=b64(f"{i} again"))
            assert fs.error("writeFile", f"r{i % 40 + 1}/f", dataBase64="") == READ_ONLY
    ids = [fs.post("readFile", f"r{i}/f") for i, fs in enumerate(all, 1)]
    for i, id in enumerate(ids, 1):
        assert base64.b64decode(client.answer(id)["result"]["dataBase64"]).decode() == f"{i} again"


@pytest.mark.nightly
def test_policies_in_use_are_limited(client, tree, user):
    """Each with a command that runs: none can make room, the next is refused, in words."""
    as_test_user(user, "mkdir $(seq -f r%g 260)", tree)
    shells = [Shell(client, managed(READ_ALL, path(tree / f"r{i}", "write")), tree) for i in range(1, 261)]
    running = [s.start("read x; echo $x", pipeStdin=True) for s in shells[:256]]
    assert [s.refusal() for s in shells[256:]] == [(-32602, UNENFORCEABLE)] * 4
    client.write(running[0], b"on\n")
    assert client.finished(running[0]).stdout == "on\n"
    assert shells[256]("echo in") == "in\n"


def nested(server, client):
    """Pids below the nests of a session: their file helpers."""
    runner = server.runner(client)
    return [p for p in children(runner) if name(p) not in ("execd-sandbox", "execd-calls", "execd-init")]


@pytest.mark.skipif(not ROOT, reason="NOT TESTED: only root reaches into a sandbox")
def test_a_helper_that_was_killed(server, tree, denies):
    client = server.ready()
    server.wait_log(f"session {client.session_id[:8]}: opened")
    fs = Files(client, tree, denies)
    fs("open", "w/f", handleId="h")
    helpers = poll(lambda: nested(server, client))
    for p in helpers:
        os.kill(p, 9)
    poll(lambda: not set(nested(server, client)) & set(helpers), what="end of the helper")
    m = client.request("fs/readFile", fs.params("readFile", "w/f", {}))
    assert "result" in m or "ended unexpectedly" in m["error"]["message"], m
    assert fs.read("w/f") == "in\n", "the next one has another"
    assert fs.error("readBlock", handleId="h", offset=0, len=1)[0] == -32004
    fs("open", "w/f", handleId="h")
    poll(lambda: not set(os.listdir(tree / "w")) & set(PROTECTED), what="end of the placeholders")
    client.drop()


def test_nothing_of_the_runner_is_seen(reader):
    """O17: reads run in the helper, which is pid 1 of its own namespace."""
    reader.root = pathlib.Path("/proc")
    m = reader.client.request("fs/readFile", reader.params("readFile", "self/environ", {}))
    text = m.get("result", {}).get("dataBase64", "")
    assert b"=" not in base64.b64decode(text)
    names = {e["fileName"] for e in reader("readDirectory", "")["entries"] if e["fileName"].isdigit()}
    assert names <= {"1"}
    for secret in ("kcore", "kmsg", "sysrq-trigger"):
        answer = reader.client.request("fs/readFile", reader.params("readFile", secret, {}))
        assert answer.get("result", {}).get("dataBase64", "") == "", secret


def test_commands_and_files_see_the_same(client, tree, denies):
    fs, shell = Files(client, tree, denies), Shell(client, denies, tree / "w")
    fs("writeFile", "w/by-fs", dataBase64=b64("by fs\n"))
    assert shell("cat by-fs; echo by command > by-command") == "by fs\n"
    assert fs.read("w/by-command") == "by command\n"
    listed = {e["fileName"] for e in fs("readDirectory", "w")["entries"]}
    assert listed - set(PROTECTED) == set(shell("ls -A").split()) - set(PROTECTED) - {"fifo"} | (listed & {"fifo"})
