# SPDX-License-Identifier: ISC
"""execd-mcp (client/node, doc/mcp.md) beside a real server, asked by the client of the protocol's own SDK. The SDK is not in
Debian, so all of it is nightly and needs npm's registry."""
import os
import pathlib
import re
import subprocess
import tempfile

import pytest
from clients import own_environment, proxy  # noqa: F401
from conftest import poll
from node import NPM, Program, package_directory, packed, require  # noqa: F401

require()
pytestmark = pytest.mark.nightly

# A client beside an execd-mcp; `open` may be called again for another one.
CLIENT = """
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js')
    const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js')
    const mcp = process.cwd() + '/node_modules/execd-client/dist/mcp.js'
    const open = async (...args) => {
        const client = new Client({ name: 'test', version: '1' })
        client.transport2 = new StdioClientTransport({ command: 'node', args: [mcp, '--url', given.url, ...args],
            env: process.env, stderr: 'pipe' })
        client.said = ''
        client.transport2.stderr.on('data', (d) => { client.said += d })
        await client.connect(client.transport2)
        return client
    }
    const call = async (client, name, args, options) => {
        const r = await client.callTool({ name, arguments: args }, undefined, options)
        return r.isError ? { error: r.content[0].text } : r.structuredContent
    }
"""


@pytest.fixture
def mcp(request):
    """Runs a program with CLIENT before it."""
    installed = (NPM / "@modelcontextprotocol/sdk").exists()
    program = Program(request.getfixturevalue("package_directory" if installed else "packed"))
    return lambda main, *args, **given: program(CLIENT + main, *args, **given)


def test_tools(server, sandboxes, directory, mcp):
    found = mcp("""
        const c = await open('--cwd', given.directory), found = {}
        found.tools = (await c.listTools()).tools.map((t) => t.name)
        found.run = await call(c, 'run', { command: 'echo out; echo err >&2; cat; exit 3', input: 'in' })
        found.write = await call(c, 'write', { path: 'a/../f.txt', text: 'one\\ntwo\\nthree\\n' })
        found.read = await call(c, 'read', { path: 'f.txt', firstLine: 2, lines: 1 })
        found.twice = await call(c, 'edit', { path: 'f.txt', old: 't', new: 'T' })
        found.edit = await call(c, 'edit', { path: 'f.txt', old: 'two', new: '2' })
        found.text = (await call(c, 'read', { path: 'f.txt' })).text
        found.list = await call(c, 'list', {})
        found.search = await call(c, 'search', { pattern: 't[hx]', glob: '*.txt' })
        found.none = await call(c, 'search', { pattern: 'nowhere' })
        found.missing = await call(c, 'read', { path: '/no/such' })
        found.unknown = await call(c, 'output', { id: 'x' })
        await c.close()
        return found""", url=server.url, directory=directory)
    assert found["tools"] == ["run", "output", "wait", "kill", "read", "write", "edit", "list", "search"]
    run = found["run"]
    assert (run["exitCode"], run["running"], run["stdout"], run["stderr"], run["more"]) == (3, False, "out\nin", "err\n", False)
    assert found["read"] == {"text": "two\n", "totalLines": 3} and found["text"] == "one\n2\nthree\n"
    assert "2 times" in found["twice"]["error"] and found["edit"] == {"replaced": 1}
    assert found["list"]["entries"] == [{"name": "f.txt", "kind": "file", "size": 12}]
    assert found["search"] == {"matches": [{"path": f"{directory}/f.txt", "line": 3, "text": "three"}], "more": False}
    assert found["none"] == {"matches": [], "more": False} and found["missing"]["error"].startswith("NotFound: ")
    assert "there is no command" in found["unknown"]["error"]


@pytest.fixture
def outside():
    """A directory that everybody may write, but no profile: /tmp is a scratch place of each."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        directory = pathlib.Path(name)
        (directory / "work").mkdir()
        for d in (directory, directory / "work"):
            d.chmod(0o777)
        yield directory


def test_no_argument_leaves_the_profile(server, sandboxes, outside, mcp):
    directory = outside
    found = mcp("""
        const c = await open('--cwd', `${given.directory}/work`), r = await open('--cwd', given.directory, '--sandbox', 'read-only')
        const found = [
            await call(c, 'run', { command: `touch ${given.directory}/x` }),
            await call(c, 'run', { command: 'touch x', cwd: given.directory, sandbox: 'none' }),
            await call(c, 'write', { path: '../x', text: '' }), await call(r, 'write', { path: 'x', text: '' }),
            await call(r, 'run', { command: 'touch x' })]
        const right = await call(c, 'write', { path: 'x', text: 'x' })
        await c.close()
        await r.close()
        return [found.map((f) => f.error !== undefined || f.exitCode > 0), right]""", url=server.url, directory=directory)
    assert found == [[True] * 5, {"bytes": 1}]
    assert not (directory / "x").exists() and (directory / "work/x").exists()


def test_a_long_command_goes_on_and_each_byte_is_told_once(server, directory, mcp):
    assert mcp("""
        const c = await open('--sandbox', 'none')
        const script = `echo one; until [ -e ${given.directory}/go ]; do sleep 0.05; done; echo two; exit 4`
        let r = await call(c, 'run', { command: script, waitMs: 0 }), all = r.stdout
        const { id } = r, running = r.running
        while (!all) all += (r = await call(c, 'output', { id })).stdout
        await ask('go')
        r = await call(c, 'wait', { id })
        const forgotten = await call(c, 'wait', { id: 'other' })
        await c.close()
        return [running, all, r.stdout, r.exitCode, r.running, 'error' in forgotten]""",
               {"go": (directory / "go").touch}, url=server.url, directory=directory) == [True, "one\n", "two\n", 4, False, True]


def test_kill_and_much_output(server, mcp):
    found = mcp("""
        const c = await open('--sandbox', 'none')
        const { id } = await call(c, 'run', { command: 'sleep 1000', waitMs: 0 })
        await call(c, 'kill', { id, signal: 'TERM' })
        const killed = await call(c, 'wait', { id })
        let r = await call(c, 'run', { command: 'head -c 3000000 /dev/zero | tr "\\\\0" x; echo end' }), n = r.stdout.length
        const dropped = r.droppedBytes
        while (r.more) n += (r = await call(c, 'output', { id: r.id })).stdout.length
        await c.close()
        return [killed.exitCode, n + dropped, dropped > 0, r.stdout.endsWith('end\\n'), r.exitCode]""",
                url=server.url)
    assert found == [143, 3000004, True, True, 0]


def test_progress_and_cancel(server, directory, mcp):
    """What is cancelled is killed; what only waits goes on."""
    found = mcp("""
        const c = await open('--sandbox', 'none'), stop = new AbortController(), heard = []
        const run = thrown(() => call(c, 'run', { command: `echo $$ >${given.directory}/pid; echo said; exec sleep 1000` },
            { signal: stop.signal, onprogress: (p) => heard.push(p.progress) }))
        while (!heard.length) await new Promise((r) => setTimeout(r, 10))
        stop.abort('enough')
        const cancelled = await run
        await ask('killed')
        const { id } = await call(c, 'run', { command: 'read a; echo got', input: undefined, waitMs: 0, timeoutMs: 600000 })
        const { id: other } = await call(c, 'run', { command: `until [ -e ${given.directory}/go ]; do sleep 0.05; done; echo on`,
            waitMs: 0 })
        const stop2 = new AbortController(), wait = thrown(() => call(c, 'wait', { id: other }, { signal: stop2.signal }))
        stop2.abort('enough')
        await wait
        await ask('go')
        const r = await call(c, 'wait', { id: other })
        await c.close()
        return [heard[0], cancelled !== null, r.stdout, id !== other]""",
                {"killed": lambda: poll(lambda: not alive(int((directory / "pid").read_text())), what="the end"),
                 "go": (directory / "go").touch}, url=server.url, directory=directory)
    assert found == [5, True, "on\n", True]


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_cut_cable_is_unseen(proxy, directory, mcp):
    def cut():
        proxy.cut()
        (directory / "go").touch()

    assert mcp("""
        const c = await open('--sandbox', 'none')
        const { id } = await call(c, 'run', { command: `seq 1 1000; until [ -e ${given.directory}/go ]; do sleep 0.05; done; ` +
            'seq 1001 2000; exit 5', waitMs: 0 })
        let all = ''
        while (!all.endsWith('1000\\n')) all += (await call(c, 'output', { id })).stdout
        await ask('cut')
        const r = await call(c, 'wait', { id })
        await call(c, 'write', { path: `${given.directory}/f`, text: 'x' })
        await c.close()
        return [(all + r.stdout) === [...Array(2000).keys()].map((i) => `${i + 1}\\n`).join(''), r.exitCode]""",
               {"cut": cut}, url=proxy.url, directory=directory) == [True, 5]
    assert proxy.accepted >= 2


def test_a_client_that_dies_or_leaves(server, directory, mcp):
    """What runs ends with it, unless the session is kept; then another execd-mcp takes it up."""
    code, text = mcp("""
        const start = { command: `echo $$ >${given.directory}/pid; echo on; exec sleep 1000`, waitMs: 0 }
        let c = await open('--sandbox', 'none')
        await call(c, 'run', start)
        await ask('begun')
        await c.close()
        await ask('ended')
        c = await open('--sandbox', 'none', '--keep', '600')
        const { id } = await call(c, 'run', { command: `echo one; until [ -e ${given.directory}/go ]; do sleep 0.05; done; ` +
            'echo two; exit 3', waitMs: 0 })
        const session = /session (\\S+)/.exec(c.said)[1]
        process.kill(c.transport2.pid, 'SIGKILL')
        await c.close()
        await ask('go')
        c = await open('--sandbox', 'none', '--session', session)
        const r = await call(c, 'wait', { id })
        await c.close()
        const { connect } = execd, box = await connect(given.url, { session, takeOver: true })
        await box.end()
        return [r.exitCode, r.stdout]""", {
            "begun": lambda: poll(lambda: (directory / "pid").exists() and (directory / "pid").read_text(), what="a start") and None,
            "ended": lambda: poll(lambda: not alive(int((directory / "pid").read_text())), what="the end"),
            "go": (directory / "go").touch}, url=server.url, directory=directory)
    assert (code, text) == (3, "one\ntwo\n")


def test_a_client_that_floods(server, mcp):
    """More calls at once than are served: the others get an error, and nothing is lost of those that are."""
    ok, busy, other, after = mcp("""
        const c = await open('--sandbox', 'none')
        await call(c, 'run', { command: 'true' })
        const rs = await Promise.all([...Array(200).keys()].map((i) => call(c, 'run', { command: `echo ${i}` })))
        const ok = rs.filter((r, i) => r.stdout === `${i}\\n`).length, busy = rs.filter((r) => /at once/.test(r.error)).length
        const after = await call(c, 'run', { command: 'echo on' })
        await c.close()
        return [ok, busy, 200 - ok - busy, after.stdout]""", url=server.url)
    assert ok >= 64 and busy > 0 and (other, after) == (0, "on\n")


def test_a_session_that_is_lost_is_followed_by_another_one(server, mcp):
    assert mcp("""
        const c = await open('--sandbox', 'none')
        await call(c, 'run', { command: 'true' })
        const box = await execd.connect(given.url, { session: /session (\\S+)/.exec(c.said)[1], takeOver: true })
        await box.end()
        let r
        do r = await call(c, 'run', { command: 'echo on' })
        while (r.error)
        await c.close()
        return [r.stdout, c.said.match(/session/g).length]""", url=server.url) == ["on\n", 2]


@pytest.mark.parametrize("flags", [["--sandbox", "full"], ["--sandbox", "none", "--network"], ["--keep", "x"], ["--no"], ["x"]])
def test_wrong_flags(request, flags):
    installed = (NPM / "@modelcontextprotocol/sdk").exists()
    top = request.getfixturevalue("package_directory" if installed else "packed")
    r = subprocess.run(["node", top / "node_modules/execd-client/dist/mcp.js", *flags], capture_output=True, text=True, timeout=60)
    assert r.returncode == 2 and re.search(r"^execd-mcp: .*\n(.*\n)?usage: ", r.stderr), r
