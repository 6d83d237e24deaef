# SPDX-License-Identifier: ISC
"""The schema of the wire (scripts/schema) beside what it is said of: the rows of tests/unit/test_params.c, which the decoders
obey, the examples of execd-protocol(7), and every request that the clients for Python and for Node make."""
import json
import pathlib
import re
import subprocess
import sys
import threading

import pytest
from clients import META, Liar, own_environment  # noqa: F401
from execctl import Proxy
from node import package_directory  # noqa: F401

TREE = pathlib.Path(__file__).parents[2]
SCHEMA = json.loads(subprocess.run([TREE / "scripts/schema"], capture_output=True, check=True).stdout)
PARAMS = {r["properties"]["method"]["const"]: r["properties"]["params"] for r in SCHEMA["oneOf"]}
# What only other clients ask for, and what asks the server about itself.
NOT_USED = {"environment/info", "environment/status", "environmentConfig/read", "capabilities/discoverV2",
            "capabilityRoots/discoverV1", "command/exec", "command/exec/write", "command/exec/terminate", "fs/watchMissing",
            "fs/readFile", "process/snapshot", "process/arrived"}
TYPES = {"string": str, "boolean": bool, "array": list, "object": dict, "null": type(None)}


def is_type(value, name):
    return type(value) is int if name == "integer" else isinstance(value, TYPES[name])


def faults(value, schema, where):
    """As much of JSON Schema as scripts/schema writes; more members than it names are a fault here."""
    if "$ref" in schema:
        return faults(value, SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]], where)
    if "anyOf" in schema:
        tried = [faults(value, s, where) for s in schema["anyOf"]]
        return [] if [] in tried else tried[0]
    if "enum" in schema:
        return [] if value in schema["enum"] else [f"{where}: {value!r} is none of {schema['enum']}"]
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if not any(is_type(value, t) for t in types):
        return [f"{where}: {value!r} is not {types}"]
    if isinstance(value, int) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        return [f"{where}: {value} is out of range"]
    if isinstance(value, list):
        return [f for i, v in enumerate(value) for f in faults(v, schema["items"], f"{where}[{i}]")]
    if not isinstance(value, dict) or not (schema.keys() & {"properties", "additionalProperties"}):
        return []
    known = schema.get("properties", {})
    more = schema.get("additionalProperties")
    found = [f"{where}: {n} is missing" for n in schema.get("required", []) if n not in value]
    for name, v in value.items():
        if name in known or more:
            found += faults(v, known.get(name, more), f"{where}.{name}")
        else:
            found.append(f"{where}: {name} is not known")
    return found


def faults_of(request):
    method = request.get("method")
    if method not in PARAMS:
        return [f"{method} is no method"]
    return faults(request.get("params"), PARAMS[method], method)


def test_it_is_what_the_decoders_obey():
    """Each row of the unit test is a member here, with the same need, and there are no others."""
    text = (TREE / "tests/unit/test_params.c").read_text()
    text = text[text.index("} fields[] = {"):text.index("static char *\nparams_with")]
    rows = re.findall(r'\{ "(\w+(?:/\w+)*)", "(\w+)",.*?(REQUIRED|OPTIONAL|DEFAULT) \}', text, re.S)
    assert len(rows) > 130
    for method, key, need in rows:
        member = PARAMS[method]["properties"][key]
        nullable = "null" in member.get("type", []) or {"type": "null"} in member.get("anyOf", [])
        assert (key in PARAMS[method]["required"], nullable) == (need == "REQUIRED", need == "OPTIONAL"), (method, key)
    # Members that need another one have their cases elsewhere in the unit tests.
    others = {(m, k) for m, p in PARAMS.items() for k in p["properties"]} - {(m, k) for m, k, _ in rows}
    assert others == {("process/signal", "target"), ("process/start", "network"), ("session/list", "after"),
                      ("process/list", "after")}


def test_the_manual_page_has_each_method_and_member():
    page = (TREE / "man/execd-protocol.7").read_text()
    sections = dict(re.findall(r"^\.S[sh] ([^\n]+)\n(.*?)(?=^\.S[sh] )", page, re.M | re.S))
    for method, params in PARAMS.items():
        for name in params["properties"]:
            # These are the subjects of sections of their own.
            text = page if name in ("sandbox", "enforceManagedNetwork", "managedNetwork") else sections[method]
            assert re.search(rf"\b{name}\b", text), (method, name)


def test_the_examples_of_the_manual_page():
    page = (TREE / "man/execd-protocol.7").read_text()
    found = [re.sub(r"\s*\n\s+", " ", e) for e in re.findall(r"^> (\{.*?\})$(?=\n[<>.])", page, re.M | re.S)]
    requests = [json.loads(e.replace("\\e", "\\")) for e in found if "..." not in e and '"method"' in e]
    assert [f for r in requests if "id" in r for f in faults_of(r)] == [] and len(requests) > 30


def test_the_client_of_the_manual_page(server, directory):
    """As it is shown: output, status, and a connection that is cut under it."""
    page = (TREE / "man/execd-protocol.7").read_text().split("\n.Sh EXAMPLES\n")[1]
    lines = re.search(r"^\.Bd -literal[^\n]*\n(.*?)\n\.Ed$", page, re.M | re.S)[1].replace("\\e", "\\").replace("\\&", "").split("\n")
    assert sum(map(bool, lines)) <= 60
    program = [sys.executable, "-c", "\n".join(lines)]
    r = subprocess.run([*program, server.url, "/bin/sh", "-c", "echo out; echo err >&2; exit 7"], capture_output=True, timeout=60)
    assert (r.stdout, r.stderr, r.returncode) == (b"out\n", b"err\n", 7)
    proxy = Proxy(server.url)
    proxy.cut_at = [1_000_000, 2_000_000]
    script = (f"head -c 3000000 /dev/zero | tr '\\0' x; for i in 1 2 3; do echo $i; until [ -e {directory}/$i ]; do sleep 0.01; done;"
              " done; exit 3")
    with subprocess.Popen([*program, proxy.url, "/bin/sh", "-c", script], stdout=subprocess.PIPE) as p:
        assert p.stdout.read(3_000_000) == b"x" * 3_000_000
        for i in "123":
            assert p.stdout.readline() == f"{i}\n".encode()
            proxy.cut()
            (directory / i).touch()
        assert (p.stdout.read(), p.wait(60)) == (b"", 3)
    assert proxy.cuts == 5
    proxy.close()


# --- the clients --------------------------------------------------------------

ANSWERS = {
    "fs/getMetadata": {**META, "size": 3 << 20}, "fs/readDirectory": {"entries": []}, "fs/canonicalize": {"path": "file:///f"},
    "fs/walk": {"entries": [], "errors": [], "truncated": False}, "fs/readBlock": {"chunk": "", "eof": True},
    "http/request": {"status": 200, "headers": []}, "process/write": {"status": "accepted"},
    "session/list": {"sessions": []}, "process/list": {"processes": []},
    "session/keep": {"keepMs": 1, "whileRunning": False, "maxMs": 1}, "process/start": {"sandboxType": "linuxSeccomp"},
}
CAPABILITIES = ("processCloseStdin", "processTimeout", "processResize", "processNetwork", "processSignalTarget", "processForward",
                "processTerminateGraceful", "processRetentionWait", "processOutputGaps", "processStartId", "processWait",
                "processExitDetails", "fsMove", "fsChmod", "fsSymlink", "fsSetTimes", "fsWatch", "fsDetails", "fsOpenAppend",
                "sessionKeep", "sessionList", "processList", "sessionEnd", "sessionWatch")


class Recorder(Liar):
    """Answers each request as well as it can, and keeps it."""

    def __init__(self):
        super().__init__(self.answer, CAPABILITIES)
        self.requests = []
        self.lock = threading.Lock()

    def answer(self, s, c, m):
        with self.lock:
            self.requests.append(m)
        if m["method"] == "process/read":
            s.send(c, id=m["id"], result={"chunks": [], "nextSeq": 1, "exited": False, "closed": False})
            return
        s.send(c, id=m["id"], result=ANSWERS.get(m["method"], {}))
        if m["method"] == "http/request":
            s.send(c, method="http/request/bodyDelta", params={"requestId": m["params"]["requestId"], "seq": 1,
                                                               "deltaBase64": "", "done": True, "error": None})


def check(recorder):
    assert [f for r in recorder.requests for f in faults_of(r)] == []
    assert {r["method"] for r in recorder.requests} | {"initialize"} == PARAMS.keys() - NOT_USED


def test_the_client_for_python():
    pytest.importorskip("websockets", reason="THE CLIENT FOR PYTHON IS NOT TESTED: python3-websockets is missing")
    sys.path.insert(0, str(TREE / "client/python"))
    import execd
    recorder = Recorder()
    try:
        box = execd.connect(recorder.url)
        p = box.start("a", stdin=True, tty=(1, 2), env={"A": "b"}, sandbox="workspace-write", network=True, timeout=1,
                      allow_hosts=["x"])
        p.write("x")
        p.close_stdin()
        p.resize(3, 4)
        p.signal("INT")
        p.signal("TERM", "tree")
        p.terminate(grace=1)
        p.details()
        box.attach("other")
        box.start(["a"], wait_output=True, inherit="none")
        box.open_port(80, of=p)
        f = box.files
        for files in (f, box.sandboxed("read-only")):
            files.stat("a"), files.listdir("a"), files.walk("a"), files.canonicalize("a"), files.mkdir("a"), files.remove("a")
            files.copy("a", "b"), files.move("a", "b"), files.chmod("a", 1), files.symlink("a", "b"), files.set_modified("a", 1)
            files.read("a"), files.write("a", "x"), files.write_blocks("a", [b"x"])
        box.watch("a").close()
        box.http("POST", "http://x/", headers={"a": "b"}, body="x", timeout=1)
        box.keep(1), box.sessions(), box.processes(), box.end()
        check(recorder)
    finally:
        recorder.close()


NODE = """
    const box = await execd.connect(given.url)
    const p = await box.start('a', { stdin: true, tty: { rows: 1, cols: 2 }, env: { A: 'b' }, sandbox: 'workspace-write',
        network: true, timeoutMs: 1, allowHosts: ['x'] })
    await p.write('x')
    await p.closeStdin()
    await p.resize(3, 4)
    await p.kill('INT')
    await p.kill('TERM', 'tree')
    await p.terminate(1000)
    await p.details()
    await box.attach('other')
    await box.start(['a'], { waitOutput: true, inherit: 'none' })
    await box.openPort(80, { of: p })
    for (const f of [box.files, box.sandboxed('read-only')]) {
        await f.stat('a'), await f.listdir('a'), await f.walk('a'), await f.canonicalize('a'), await f.mkdir('a')
        await f.remove('a'), await f.copy('a', 'b'), await f.move('a', 'b'), await f.chmod('a', 1), await f.symlink('a', 'b')
        await f.setModified('a', 1), await f.read('a'), await f.write('a', 'x'), await f.writeBlocks('a', ['x'])
    }
    (await box.watch('a')).close()
    await box.http('POST', 'http://x/', { headers: { a: 'b' }, body: 'x', timeoutMs: 1 })
    await box.keep(1), await box.sessions(), await box.processes(), await box.end()
"""


def test_the_client_for_node(request):
    import node
    node.require()
    recorder = Recorder()
    try:
        node.Program(request.getfixturevalue("package_directory"))(NODE, url=recorder.url)
        check(recorder)
    finally:
        recorder.close()
