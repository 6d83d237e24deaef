# SPDX-License-Identifier: ISC
"""capabilities/discoverV2 and capabilityRoots/discoverV1: skills and plugins (doc/protocol.md section 13).

tests/codex/test_differential.py compares the same with the reference server.
"""
import json
import os
import pathlib
import shutil

import pytest
from conftest import ROOT
from skill_cases import AGENTS, FRONT_MATTER, NOT_READ_AGENTS, NOT_READ_FRONT_MATTER, skill

PLACE = "some capability locations could not be resolved; discovery may be incomplete: "
METADATA = "some capability metadata could not be loaded; discovery may be incomplete: "
PLAIN = skill("name: s\ndescription: d")


@pytest.fixture
def home(user):
    """The user's ~/.codex, gone afterwards."""
    path = pathlib.Path(user.pw_dir) / ".codex"
    agents = path.parent / ".agents"
    if not ROOT or path.exists() or agents.exists() or os.path.exists("/etc/codex/skills"):
        pytest.skip("NOT TESTED: ~/.codex, ~/.agents or /etc/codex/skills belongs to somebody")
    path.mkdir(mode=0o755)
    yield path
    shutil.rmtree(path)
    if agents.is_dir():
        shutil.rmtree(agents)
    elif agents.exists():
        agents.unlink()


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


def discover(client, call="call", **params):
    return getattr(client, call)("capabilities/discoverV2", {"cwd": "file:///", **params})


def names(skills):
    return [s["name"] for s in skills]


def plugin(home, where="m/p/1", manifest='{"name": "n"}', kind=".codex-plugin"):
    at = home / "plugins/cache" / where
    write(at / kind / "plugin.json", manifest)
    return at


def test_it_is_announced(server):
    c = server.connect()
    capabilities = c.initialize()["environmentInfo"]["capabilities"]
    assert capabilities["capabilityDiscoveryV2"] is True and capabilities["capabilityDiscoverySandbox"] is True


def test_skills(client, home):
    """From CODEX_HOME and ~/.agents, links to directories too, each with what its files say."""
    write(home / "skills/b/SKILL.md", skill("name: two\ndescription: 'more  words'\nmetadata:\n  short-description: s"))
    write(home / "skills/b/agents/openai.yaml", "dependencies:\n  tools:\n  - type: mcp\n    value: v\n"
          "    oauth: {callback_port: 0x10}\npolicy:\n  products: [CODEX]\n")
    write(home.parent / ".agents/skills/a b/SKILL.md", skill("description: no name"))
    write(home / "elsewhere/c/SKILL.md", PLAIN)
    (home / "skills/link").symlink_to("../elsewhere")
    (home / "skills/loop").symlink_to(".")
    (home / "skills/SKILL.md").symlink_to("../elsewhere/c/SKILL.md")
    r = discover(client)
    assert (r["plugins"], r["warnings"]) == ([], [])
    two, s, none = r["skills"]
    tool = {"type": "mcp", "value": "v", "description": None, "transport": None, "command": None, "url": None,
            "oauthCallbackPort": 16}
    root = {"id": "codex-home-skills", "path": f"file://{home}/skills"}
    assert two == {"name": "two", "description": "more words", "shortDescription": "s",
                   "path": f"file://{home}/skills/b/SKILL.md", "discoveryRoot": root,
                   "dependencies": {"tools": [tool]},
                   "policy": {"allowImplicitInvocation": None, "products": ["codex"]}}
    assert s["path"] == f"file://{home}/skills/link/c/SKILL.md"
    assert (none["name"], none["discoveryRoot"]["id"]) == ("a b", "user-agent-skills")
    assert none["path"] == f"file://{home.parent}/.agents/skills/a%20b/SKILL.md"


def test_plugins(client, home):
    """The newest version of each; its skills have its name before theirs, or that of a plugin inside it."""
    plugin(home, "m/p/1.9.0")
    at = plugin(home, "m/p/1.10.0", '{"name": "n", "interface": {"displayName": " N "}, "mcpServers": {"b": {"a": 1}}}')
    write(at / "skills/s/SKILL.md", PLAIN)
    write(at / ".app.json", "{}")
    plugin(home, "m/p/1.10.0/inner", "{}", ".claude-plugin")
    write(at / "inner/s/SKILL.md", PLAIN)
    write(home / "plugins/cache/m/p/.codex-remote-plugin-install.json", '{"schema_version": 1, "remote_plugin_id": "r"}')
    other = plugin(home, "m/a/local", '{"name": " ", "mcpServers": "./m.json"}', ".cursor-plugin")
    write(other / "m.json", "x")
    plugin(home, "m/.hidden/1")
    plugin(home, "m.x/p/1")
    a, p = discover(client)["plugins"]
    assert (a["id"], a["displayName"], a["version"], a["remotePluginId"]) == ("a@m", "local", "local", None)
    assert a["files"]["mcpConfig"] == {"path": f"file://{other}/m.json", "contents": "x"}
    assert (p["id"], p["displayName"], p["version"], p["remotePluginId"]) == ("p@m", "N", "1.10.0", "r")
    assert p["root"] == f"file://{at}" and "discoveryRoot" not in p["skills"][0]
    assert p["files"]["mcpConfig"] == {"path": f"file://{at}/.codex-plugin/plugin.json", "contents": '{"b":{"a":1}}'}
    assert p["files"]["appsConfig"] == {"path": f"file://{at}/.app.json", "contents": "{}"}
    assert names(p["skills"]) == ["inner:s", "n:s"]


def test_front_matter(client, home):
    """A part of YAML that is not read is told with its place; so is what is wrong."""
    for name, text in FRONT_MATTER.items():
        write(home / "skills" / name / "SKILL.md", skill(text))
    r = discover(client)
    found = {s["path"].split("/")[-2]: s for s in r["skills"]}
    assert set(found) & set(NOT_READ_FRONT_MATTER) == set()
    wrong = {w[len(METADATA):].split("/SKILL.md: ")[0].split("/")[-1] for w in r["warnings"]}
    assert all(w.startswith(f"{METADATA}{home}/skills/") for w in r["warnings"]), r["warnings"]
    assert wrong == set(FRONT_MATTER) - set(found)
    assert found["folded"]["description"] == "line1 line2 line3"
    assert found["colon"]["description"] == "Build for AWS: ECS"
    assert found["dq"]["name"] == "a b é c" and found["mapname"]["name"] == "{a: b}"
    assert f"{METADATA}{home}/skills/gt/SKILL.md: line 3, column 16: did not find expected comment or line break" \
        in r["warnings"]


def test_agents(client, home):
    """agents/openai.yaml that is wrong leaves the skill as it is, with a warning."""
    for name, text in AGENTS.items():
        write(home / "skills" / name / "SKILL.md", PLAIN)
        write(home / "skills" / name / "agents/openai.yaml", text)
    r = discover(client)
    found = {s["path"].split("/")[-2]: (s["dependencies"], s["policy"]) for s in r["skills"]}
    assert set(found) == set(AGENTS)
    wrong = {w[len(METADATA):].split("/agents/")[0].split("/")[-1] for w in r["warnings"]}
    assert wrong >= set(NOT_READ_AGENTS) and all(found[n] == (None, None) for n in wrong)
    assert found["products"][1]["products"] == ["codex", "chatgpt", "atlas", "atlas", "chatgpt"]
    assert found["seqsame"][0]["tools"][1]["value"] == "long text"


@pytest.mark.parametrize("prepare, warning", [
    (lambda h: write(h / "skills/a/SKILL.md", PLAIN + "x" * (1 << 20)), "/skills/a/SKILL.md: over 1048576 bytes"),
    (lambda h: write(h / "skills/a/SKILL.md", PLAIN.encode() + b"\xff"), "/skills/a/SKILL.md: it is not UTF-8"),
    (lambda h: write(h / "skills/a/SKILL.md", skill("description: d\nx:\n" + " [\n" * 70)), "over 64 values inside each other"),
    (lambda h: write(h / "skills/a/SKILL.md", skill("description: d\nx:\n" + "- 1\n" * 10000)), "over 10000 values in one file"),
    (lambda h: write(h / "plugins/cache/m/p/1/x", ""), "/plugins/cache/m/p/1: it has no manifest"),
    (lambda h: plugin(h, manifest='{"name": 5}'), "/.codex-plugin/plugin.json: `name` is no string"),
    (lambda h: plugin(h, manifest='{"apps": "x"}'), "/m/p/1: `apps` in the manifest must begin with ./ and stay in the plugin"),
    (lambda h: plugin(h, manifest='{"apps": "./a/../../x"}'), "must begin with ./ and stay in the plugin"),
    (lambda h: plugin(h, manifest='{"mcpServers": "./x"}'), "/m/p/1/x: `mcpServers` in the manifest names no file"),
    (lambda h: [write(h / f"skills/{i:02}/SKILL.md", PLAIN + "x" * 1040000) for i in range(17)],
     "over 16777216 bytes are read of"),
    (lambda h: [(h / f"skills/{i:04}").mkdir(parents=True) for i in range(2002)], "over 2000 directories or 20000 entries")])
def test_limits(client, home, prepare, warning):
    """What is left out is named, with the limit or the reason."""
    prepare(home)
    warnings = discover(client)["warnings"]
    assert len(warnings) == 1 and warnings[0].startswith(METADATA + str(home)) and warning in warnings[0], warnings


def test_the_depth(client, home):
    write(home / "skills/1/2/3/4/5/6/SKILL.md", skill("name: six\ndescription: d"))
    write(home / "skills/1/2/3/4/5/6/7/SKILL.md", skill("name: seven\ndescription: d"))
    assert names(discover(client)["skills"]) == ["six"]


def test_too_many_and_too_long(client, home):
    """The answer has at most 2048 skills and 4 MiB, and says when that is not all."""
    for i in range(2100):
        write((home if i % 2 else home.parent / ".agents") / f"skills/{i}/SKILL.md", PLAIN)
    r = discover(client)
    assert len(r["skills"]) == 2048 and r["warnings"] == ["capability discovery size limit reached"]
    shutil.rmtree(home / "skills")
    shutil.rmtree(home.parent / ".agents")
    for i in range(60):
        write(home / f"skills/{i}/SKILL.md", skill("description: " + "x" * 100000))
    m = client.request("capabilities/discoverV2", {"cwd": "file:///"})
    assert 3 << 20 < len(json.dumps(m["result"])) <= 4 << 20
    assert m["result"]["warnings"] == ["capability discovery size limit reached"]
    for i in range(100):
        write(home / f"skills/{i}/SKILL.md", "none")
    warnings = discover(client)["warnings"]
    assert len(warnings) == 64 and warnings[-1] == METADATA + "over 63 warnings"


def test_what_is_no_place_is_told(client, home):
    """It does not keep the other places from being searched, as it does with the reference."""
    write(home / "skills/a/SKILL.md", PLAIN)
    write(home.parent / ".agents", "")
    os.mkfifo(home / "skills/a/fifo")
    os.mkdir(home / "skills/b")
    os.mkfifo(home / "skills/b/SKILL.md")
    r = discover(client)
    assert names(r["skills"]) == ["s"]
    assert r["warnings"] == [f"{PLACE}{home.parent}/.agents/skills: Not a directory (os error 20)"]


@pytest.mark.parametrize("params, message", [
    ({"cwd": None}, "invalid type: null, expected a string"),
    ({"cwd": "/tmp"}, "invalid URI: relative URL without a base"),
    ({"sandbox": 1}, "invalid type: number, expected struct FileSystemSandboxContext")])
def test_params(client, params, message):
    assert discover(client, "error", **params) == (-32602, message)
    assert client.error("capabilities/discoverV2", {}) == (-32602, "missing field `cwd`")


def context(home, *denied):
    root = {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"}
    entries = [root] + [{"path": {"type": "path", "path": f"file://{d}"}, "access": "deny"} for d in denied]
    return {"cwd": "file:///", "windowsSandboxLevel": "disabled", "permissions": {
        "type": "managed", "network": "restricted", "file_system": {"type": "restricted", "entries": entries}}}


def test_a_policy_binds_it(client, home, sandboxes):
    """What may not be read is not found, nor is what the file says."""
    write(home / "skills/a/SKILL.md", skill("name: a\ndescription: d"))
    write(home / "skills/b/SKILL.md", skill("name: b\ndescription: d"))
    assert names(discover(client, sandbox=context(home))["skills"]) == ["a", "b"]
    r = discover(client, sandbox=context(home, home / "skills/a/SKILL.md"))
    assert names(r["skills"]) == ["b"], r
    r = discover(client, sandbox=context(home, home / "skills"))
    assert r["skills"] == [] and "secret" not in json.dumps(r)


def test_the_operator_hides(configured, home, user, mode, sandboxes):
    write(home / "skills/a/SKILL.md", PLAIN)
    s = configured(f"[listener main]\naddress = ws://127.0.0.1:0\nallow-unauthenticated = any\n"
                   f"[identity any]\nuser = {user.pw_name}\n[sandbox]\nmax-profile = workspace-write\nhide = {home}\n")
    r = discover(s.ready())
    assert r["skills"] == [] and r["warnings"] and all("Permission denied (os error 13)" in w for w in r["warnings"]), r


# --- capabilityRoots/discoverV1: directories that the client names ------------------


ROOTS = "capabilityRoots/discoverV1"


@pytest.fixture
def tree(directory):
    """write(path, text) below a directory that the session's user can read."""
    top = directory / "tree"
    top.mkdir()
    directory.chmod(0o755)

    def put(path, text, mode=0o644):
        write(top / path, text)
        (top / path).chmod(mode)
    put.top = top
    return put


def roots(client, *paths, sandbox=None):
    return client.call(ROOTS, {"roots": [{"id": f"r{i}", "path": f"file://{p}", "sandbox": sandbox}
                                         for i, p in enumerate(paths)]})["roots"]


def text(file):
    return file and (file["path"].split("/tree/")[1], file["contents"])


def test_a_root_with_a_plugin(client, tree):
    """All as text: nothing is judged, and what a manifest names is there."""
    tree("p/.codex-plugin/plugin.json", '{"mcpServers":"./m.json"}')
    tree("p/.claude-plugin/plugin.json", "not read: the first counts")
    tree("p/m.json", "servers")
    tree("p/.app.json", "apps")
    tree("p/skills/b/SKILL.md", "no front matter")
    tree("p/skills/b/agents/openai.yaml", "a: [")
    tree("p/SKILL.md", "top")
    tree("p/in/.cursor-plugin/plugin.json", "inner")
    r, = roots(client, tree.top / "p")
    assert set(r) == {"id", "path", "plugin", "skills", "namespaceManifests", "warnings", "error"}
    assert (r["id"], r["path"], r["warnings"], r["error"]) == ("r0", f"file://{tree.top}/p", [], None)
    manifest = ("p/.codex-plugin/plugin.json", '{"mcpServers":"./m.json"}')
    assert {k: text(v) for k, v in r["plugin"].items()} == {
        "manifest": manifest, "mcpConfig": ("p/m.json", "servers"), "appsConfig": ("p/.app.json", "apps")}
    assert [(text(s["instructions"]), text(s["metadata"])) for s in r["skills"]] == [
        (("p/SKILL.md", "top"), None), (("p/skills/b/SKILL.md", "no front matter"), ("p/skills/b/agents/openai.yaml", "a: ["))]
    assert [text(f) for f in r["namespaceManifests"]] == [manifest, ("p/in/.cursor-plugin/plugin.json", "inner")]


@pytest.mark.parametrize("manifest, mcp, apps, warnings", [
    ("not json", "mcp", "app", []), ('{"mcpServers":{"a":{}},"apps":{"b":1}}', None, "app", []),
    ('{"mcpServers":["./x"],"apps":null}', "mcp", "app", []), ('{"mcpServers":"./none","apps":"./x"}', None, "x", []),
    ('{"mcpServers":"/etc/hostname","apps":"x"}', "mcp", "app", ["mcpServers", "apps"])])
def test_what_a_manifest_names(client, tree, manifest, mcp, apps, warnings):
    tree(".claude-plugin/plugin.json", manifest)
    for name, words in (".mcp.json", "mcp"), (".app.json", "app"), ("x", "x"):
        tree(name, words)
    r, = roots(client, tree.top)
    assert [f and f["contents"] for f in r["plugin"].values()] == [manifest, mcp, apps]
    assert r["warnings"] == [f"ignoring {key} in file://{tree.top}/.claude-plugin/plugin.json: path must start with `./`"
                             for key in warnings] and r["error"] is None


def test_a_root_inside_a_plugin(client, tree):
    tree("p/.codex-plugin/plugin.json", "out")
    tree("p/in/s/SKILL.md", "s")
    r, = roots(client, tree.top / "p/in")
    assert r["plugin"] is None and [text(f) for f in r["namespaceManifests"]] == [("p/.codex-plugin/plugin.json", "out")]
    assert [text(s["instructions"]) for s in r["skills"]] == [("p/in/s/SKILL.md", "s")]


def test_roots_that_are_none(client, tree):
    tree("file", "f")
    r = roots(client, tree.top / "none", tree.top / "file", tree.top)
    assert [x["error"] for x in r] == [
        f"failed to inspect capability root file://{tree.top}/none: No such file or directory (os error 2)",
        f"capability root file://{tree.top}/file is not a directory", None]
    assert r[0]["plugin"] is None and r[0]["skills"] == r[0]["namespaceManifests"] == r[0]["warnings"] == []
    r, = client.call(ROOTS, {"roots": [{"id": "", "path": "file://host/x"}]})["roots"]
    assert r["error"].startswith("failed to inspect capability root file://host/x: 'file://host/x' is invalid on 'linux'")


def test_what_is_not_read_of_a_root_is_told(client, tree):
    tree("long/SKILL.md", "x" * ((1 << 20) + 1))
    tree("bytes/SKILL.md", b"\xff")
    tree("closed/SKILL.md", "x", 0)
    tree("good/SKILL.md", "x" * (1 << 20))
    tree("not/here/SKILL.md", "x")
    (tree.top / "not").chmod(0)
    r, = roots(client, tree.top)
    (tree.top / "not").chmod(0o755)
    assert [text(s["instructions"])[0] for s in r["skills"]] == ["good/SKILL.md"]
    assert sorted(r["warnings"]) == sorted([
        f"failed to scan capability path file://{tree.top}/not: Permission denied (os error 13)",
        f"capability file file://{tree.top}/bytes/SKILL.md is not UTF-8",
        f"failed to read capability file file://{tree.top}/closed/SKILL.md: Permission denied (os error 13)",
        f"capability file file://{tree.top}/long/SKILL.md exceeds the 1048576-byte limit"])


def test_roots_together_have_a_limit(client, tree):
    for i in range(20):
        tree(f"s{i:02}/SKILL.md", "x" * (1 << 20))
    a, b = roots(client, tree.top, tree.top / "s00")
    assert len(a["skills"]) == 16 and b["skills"] == []
    assert len(a["warnings"]) == 4 and all("over 16777216 bytes are read of all roots" in w for w in a["warnings"] + b["warnings"])


def test_a_policy_binds_roots(client, tree, sandboxes):
    tree("a/SKILL.md", "a")
    tree("b/SKILL.md", "secret")
    r, = roots(client, tree.top, sandbox=context(None, tree.top / "b/SKILL.md"))
    assert [text(s["instructions"])[0] for s in r["skills"]] == ["a/SKILL.md"] and "secret" not in json.dumps(r)
    assert len(r["warnings"]) == 1 and "Permission denied (os error 13)" in r["warnings"][0]
    r, = roots(client, tree.top / "b", sandbox=context(None, tree.top / "b"))
    assert r["skills"] == [] and r["warnings"] and "secret" not in json.dumps(r)


ROOT_OF_CLIENT = {"id": "a", "path": "file:///tmp"}


@pytest.mark.parametrize("params, code, message", [
    ({}, -32602, "missing field `roots`"), ({"roots": "x"}, -32602, "invalid type: string \"x\", expected a sequence"),
    ({"roots": [{}]}, -32602, "missing field `id`"), ({"roots": [{"id": "a"}]}, -32602, "missing field `path`"),
    ({"roots": [{"id": 1, "path": "file:///"}]}, -32602, "invalid type: number, expected a string"),
    ({"roots": [{"id": "a", "path": "http://x"}]}, -32602, "unsupported path URI scheme `http`"),
    ({"roots": [{**ROOT_OF_CLIENT, "sandbox": {}}]}, -32602, "missing field `permissions`"),
    ({"roots": [ROOT_OF_CLIENT] * 129}, -32600, "capability root discovery accepts at most 128 roots"),
    ({"roots": [ROOT_OF_CLIENT, {**ROOT_OF_CLIENT, "sandbox": context(None)}]}, -32602,
     "all roots of a request must have the same sandbox context")])
def test_params_of_roots(client, params, code, message):
    assert client.error(ROOTS, params) == (code, message)


def test_many_roots_and_none(client):
    assert roots(client) == []
    r = roots(client, *["/proc/self/task"] * 128)
    assert [x["id"] for x in r] == [f"r{i}" for i in range(128)]
