# SPDX-License-Identifier: ISC
"""The client for Node (client/node, doc/node.md) against real servers: what test_python_client.py asks of that for Python."""
import contextlib
import hashlib
import os
import random
import re
import subprocess
import threading

import pytest
from certificates import Authority
from clients import (ECHO, FILE_LIES, LIES, LINES, REFUSED, Liar, cut_somewhere, ends, expected, make_tree, out,
                     own_environment, proxy, start_and, tree, web, write)  # noqa: F401
from conftest import digest, poll
from execctl import Execctl, Proxy, environment
from node import NPM, TREE, node, package, package_directory, packed, require  # noqa: F401

require()


# --- commands -----------------------------------------------------------------


def test_the_first_lines(server, sandboxes, directory, node):
    node.env = {"EXECD_URL": server.url}
    r = node("""
        const box = await execd.connect()
        const r = await box.run('echo hi >file; cat file; echo err >&2; touch /usr/x || exit 7',
            { cwd: given.directory, sandbox: 'workspace-write' })
        await box.close()
        return [r.stdout, r.stderr, r.exitCode, r.sandboxDenied, r.sandboxType]""", directory=directory)
    assert (r[0], r[2:]) == ("hi\n", [7, True, "linuxSeccomp"]) and r[1].startswith("err\n")
    assert (directory / "file").read_text() == "hi\n"


COMMANDS = [
    ("echo out; echo err >&2; exit 3", 3, b"out\n", b"err\n"),
    ("kill -9 $$", 137, b"", b""),
    ("printf '\\0\\377'", 0, b"\0\xff", b""),
    ("seq 1 50000", 0, "".join(f"{i}\n" for i in range(1, 50001)).encode(), b""),
    ("head -c 9000000 /dev/zero", 0, bytes(9000000), b""),
]


def test_commands(server, node):
    found = node("""
        const box = await execd.connect(given.url), found = []
        for (const waitOutput of [false, true])
            for (const script of given.scripts) {
                const r = await box.run(script, { waitOutput })
                found.push([r.exitCode, sha(r.stdoutBytes), sha(r.stderrBytes)])
            }
        await box.close()
        return found""", url=server.url, scripts=[c[0] for c in COMMANDS])
    sums = [[code, hashlib.sha256(o).hexdigest(), hashlib.sha256(e).hexdigest()] for _, code, o, e in COMMANDS]
    assert found == sums + sums


def test_how_it_ended(server, directory, node):
    found = node("""
        const box = await execd.connect(given.url)
        let r = await box.run('kill -TERM $$', { waitOutput: true })
        const ends = [[r.exitCode, r.signal]]
        r = await box.run('sleep 100', { timeoutMs: 200 })
        ends.push([r.exitCode, r.timedOut])
        r = await box.run(['/usr/bin/env'], { env: { A: 'ü b' }, inherit: 'none' })
        ends.push(r.stdout, (await box.run('pwd', { cwd: given.directory })).stdout)
        ends.push(await thrown(() => box.run('echo why >&2; exit 9', { check: true })))
        ends.push(await thrown(() => box.run('head -c 100000 /dev/zero', { maxOutput: 1000 })))
        await box.close()
        return ends""", url=server.url, directory=directory)
    assert found[:4] == [[143, "TERM"], [137, True], "A=ü b\n", f"{directory}\n"]
    assert found[4]["class"] == "CommandFailed" and found[4]["result"]["exitCode"] == 9 and "why" in found[4]["message"]
    assert (found[5]["class"], found[5]["limit"]) == ("LimitExceeded", 1000)


def test_input(server, node):
    found = node("""
        const box = await execd.connect(given.url)
        const data = Buffer.alloc(3 << 20, 'some input')
        const all = (await box.run('cat', { input: data })).stdoutBytes.equals(data)
        const one = (await box.run('head -c 1', { input: data })).stdout
        const p = await box.start('read a; echo got $a; cat', { stdin: true })
        await p.write('one\\n')
        const first = (await p.next()).value
        await p.closeStdin()
        const rest = await text(p), { exitCode } = await p.wait()
        const late = await thrown(() => p.write('more'))
        await box.close()
        return [all, one, first.stream, String(first.data), rest, exitCode, late.class]""", url=server.url)
    assert found == [True, "s", "stdout", "got one\n", "", 0, "StdinClosed"]


def test_a_terminal_and_signals(server, node):
    assert node("""
        const box = await execd.connect(given.url)
        let p = await box.start("stty size; trap 'stty size' WINCH; trap 'echo usr; exit 4' USR1; echo ready; " +
            'while :; do read a || :; done', { tty: { rows: 40, cols: 132 } })
        let seen = ''
        const until = async (end) => {
            while (!seen.includes(end)) seen += (await p.next()).value.data
        }
        await until('40 132\\r\\nready\\r\\n')
        await p.resize(50, 99)
        await until('50 99')
        await p.kill('SIGUSR1')
        await until('usr')
        const codes = [(await p.wait()).exitCode]
        p = await box.start(['sleep', '100'])
        await p.kill('INT')
        codes.push((await p.wait()).exitCode)
        p = await box.start("trap 'exit 6' TERM; echo ready; while :; do sleep 0.05; done")
        await p.next()
        await p.terminate(30000)
        codes.push((await p.wait()).exitCode)
        await box.close()
        return codes""", url=server.url) == [4, 130, 6]


def test_output_that_nobody_reads(server, node):
    assert node("""
        const box = await execd.connect(given.url), found = []
        for (const [size, waitOutput] of [[3000000, true], [30000000, false]]) {
            const p = await box.start(`head -c ${size} /dev/zero`, { waitOutput })
            found.push((await thrown(() => p.wait())).class)
            found.push((await box.run('echo the connection is not stuck')).exitCode)
            let n = 0
            for await (const o of p) n += o.data.length
            found.push(n, (await p.wait()).exitCode)
        }
        await box.close()
        return found""", url=server.url) == ["OutputUnread", 0, 3000000, 0, "OutputUnread", 0, 30000000, 0]


def test_errors_are_typed(server, directory, node):
    start, missing, a_directory, there = node("""
        const box = await execd.connect(given.url)
        const found = [await thrown(() => box.run(['/no/such'])), await thrown(() => box.files.read('/no/such')),
            await thrown(() => box.files.read(given.directory)),
            await thrown(() => box.files.mkdir(given.directory, { parents: false }))]
        await box.close()
        return found""", url=server.url, directory=directory)
    assert (start["class"], start["kind"], start["errno"], start["code"]) == ("StartFailed", "spawnNotFound", 2, -32603)
    assert missing["class"] == "NotFound" and missing["message"].startswith("/no/such: No such file or directory (os error 2)")
    assert (a_directory["class"], there["class"]) == ("Refused", "OperatingSystemError")


def test_an_operators_limit_is_named(configured, user, node):
    s = configured(f"[listener a]\naddress = ws://127.0.0.1:0\n[limits]\nmax-kept-sessions = 1\n[identity ci]\n"
                   f"user = {user.pw_name}\nsandbox-max-profile = workspace-write\ntoken-sha256 = {digest('tok')}\n")
    kept, sandbox = node("""
        const one = await execd.connect(given.url, { token: 'tok' }), two = await execd.connect(given.url, { token: 'tok' })
        await one.keep(60000)
        const found = [await thrown(() => two.keep(60000)), await thrown(() => two.run('true'))]
        await one.end()
        await two.close()
        return found""", url=s.url)
    assert [kept[k] for k in ("class", "key", "value", "place", "limit")] == ["Refused", "max-kept-sessions", "1", "[limits]", 1]
    assert sandbox["class"] == "SandboxRefused" and sandbox["key"] and sandbox["place"] == "[identity ci]"


WRONG = """
    b.run(3); b.run(['a', 3]); b.run([]); b.run('a\\0b'); b.run('a\\ud800'); b.run('a', { cwd: 3 }); b.run('a', { env: { A: 1 } })
    b.run('a', { env: { 'A=': '1' } }); b.run('a', { env: 'A=1' }); b.run('a', { sandbox: 'none' }); b.run('a', { sandbox: true })
    b.run('a', { network: true }); b.run('a', { timeoutMs: '1s' }); b.run('a', { timeoutMs: -1 }); b.run('a', { timeoutMs: NaN })
    b.run('a', { input: 3 }); b.run('a', { check: 1 }); b.run('a', { tty: 1 }); b.run('a', { tty: { rows: 0, cols: 80 } })
    b.run('a', { inherit: 'some' }); b.run('a', { allowHosts: 'example.org' }); b.start('a', { stdin: 'x' })
    b.run('a', { cdw: '/' }); b.run('a', { stdin: true }); b.run('a', { signal: 3 }); b.run('a', { maxOutput: 1.5 })
    b.files.read(3); b.files.read(''); b.files.read('/a\\0'); b.files.read('/a\\ud800'); b.files.write('/a', 3)
    b.files.mkdir('/a', { parents: 'yes' }); b.files.chmod('/a', 0o10000); b.files.chmod('/a', '755')
    b.files.walk('/a', { maxDepth: 65 }); b.files.writeBlocks('/a', 'text'); b.files.writeBlocks('/a', 3)
    b.openPort(0); b.forward('80'); b.watch(3); b.http('GET', 3); b.http('GET', 'http://x/', { headers: { a: 1 } })
    b.keep('1h'); b.attach(3); b.sandboxed(null); execd.connect(3); execd.connect('ws://a', { token: Buffer.from('x') })
    execd.connect('ws://a', { watch: true }); execd.connect('ws://a', { connectTimeoutMs: '1' })
    execd.connect('ws://a', { environment: 'b' }); execd.connect({ ulr: 'ws://a' })
"""


def test_what_is_wrong_throws_before_anything_is_sent(proxy, node):
    calls = [c.strip() for line in WRONG.splitlines() for c in line.split("; ") if c.strip()]
    found = node(f"""
        const b = await execd.connect(given.url, {{ silenceTimeoutMs: 3600000 }}), found = []
        await b.run('true')
        const before = await ask('up')
        for (const f of [{', '.join(f'() => {c}' for c in calls)}]) found.push((await thrown(f))?.class)
        found.push(await ask('up') - before, (await b.run('echo hi')).stdout)
        await b.close()
        return found""", {"up": lambda: proxy.up}, url=proxy.url)
    assert len(calls) > 45 and found.pop() == "hi\n" and found.pop() == 0
    assert [(c, f) for c, f in zip(calls, found) if f not in ("TypeError", "RangeError")] == []


def test_many_at_once_and_what_is_aborted(server, node):
    assert node("""
        const box = await execd.connect(given.url)
        const rs = await Promise.all([...Array(20).keys()].map((i) => box.run(`echo ${i}; exit ${i}`)))
        const right = rs.every((r, i) => r.stdout === `${i}\\n` && r.exitCode === i)
        const stop = new AbortController()
        const run = thrown(() => box.run('exec sleep 1000', { signal: stop.signal }))
        await box.run('true')
        stop.abort(new Error('enough'))
        const reason = (await run).message
        while ((await box.processes()).some((p) => p.running)) await box.run('true')
        const late = await thrown(() => box.run('true', { signal: stop.signal }))
        const { getEventListeners } = await import('node:events'), other = new AbortController()
        await box.run('true', { signal: other.signal })
        await thrown(() => box.run(['/no/such'], { signal: other.signal }))
        await box.close()
        return [right, reason, late.message, getEventListeners(other.signal, 'abort').length]""",
                url=server.url) == [True, "enough", "enough", 0]


# --- files, ports, HTTP, changes ----------------------------------------------


def test_files(server, directory, node):
    odd = "ü \udcff#?%41"
    found = node("""
        const box = await execd.connect(given.url), f = box.files, d = given.directory, odd = `${d}/${given.odd}`
        const same = []
        for (const size of [0, 1, 1 << 20, (1 << 20) + 1, 5 << 20]) {
            const data = Buffer.alloc(size, 'text of a file')
            await f.write(`${d}/f`, data)
            same.push((await fs.readFile(`${d}/f`)).equals(data) && (await f.read(`${d}/f`)).equals(data))
        }
        const large = await thrown(() => f.read(`${d}/f`, { maxBytes: 1000 }))
        await f.write(odd, 'text')
        same.push(await f.readText(odd) === 'text')
        await f.chmod(`${d}/f`, 0o640)
        await f.setModified(`${d}/f`, 1234567890500)
        await f.symlink(`${d}/l`, 'nowhere')
        const { isFile, size, mode, modifiedMs } = await f.stat(`${d}/f`)
        await f.mkdir(`${d}/a/b`)
        await f.copy(`${d}/f`, `${d}/a/g`)
        await f.move(`${d}/f`, `${d}/a/h`)
        const names = (await f.listdir(d)).map((e) => [e.name, e.isDir, e.target ?? null])
        const walk = (await f.walk(`${d}/a`)).entries.map((e) => [e.path.slice(d.length), e.kind])
        await f.remove(`${d}/a`, { recursive: true })
        const gone = !(await f.exists(`${d}/a`)) && await f.canonicalize(`${d}/./x/..`) === await f.canonicalize(d)
        await f.remove(`${d}/a`, { missingOk: true })
        const missing = await thrown(() => f.remove(`${d}/a`))
        await box.close()
        return [same, large.class, [isFile, size, mode, modifiedMs], names, walk, gone, missing.class]""",
                 url=server.url, directory=directory, odd=odd)
    assert found == [[True] * 6, "LimitExceeded", [True, 5 << 20, 0o640, 1234567890500],
                     [["a", True, None], ["l", False, "nowhere"], [odd, False, None]],
                     [["/a/b", "directory"], ["/a/g", "file"], ["/a/h", "file"]], True, "NotFound"]
    assert (directory / odd).read_text() == "text"


def test_files_in_a_sandbox(server, sandboxes, directory, node):
    assert node("""
        const box = await execd.connect(given.url), f = `${given.directory}/f`
        const files = box.sandboxed('workspace-write', given.directory)
        await files.write(f, 'x')
        const found = [String(await files.read(f)), (await thrown(() => files.write('/usr/x', 'x'))) instanceof Object,
            (await thrown(() => box.sandboxed('read-only', given.directory).write(f, 'y'))) instanceof Object]
        await box.close()
        return found""", url=server.url, directory=directory) == ["x", True, True]
    assert (directory / "f").read_text() == "x"


def test_trees(server, directory, tmp_path, node):
    make_tree(tmp_path)
    (tmp_path / "a/odd \udcff").write_text("odd")
    os.mkfifo(tmp_path / "fifo")
    assert node("""
        const box = await execd.connect(given.url)
        const found = [await box.files.upload(`${given.here}/a`, `${given.directory}/there`),
            await box.files.download(`${given.directory}/there`, `${given.here}/back`),
            (await thrown(() => box.files.upload(`${given.here}/fifo`, `${given.directory}/fifo`))).class]
        await box.close()
        return found""", url=server.url, here=tmp_path, directory=directory) == [6, 6, "ExecdError"]
    assert tree(directory / "there") == tree(tmp_path / "a") == tree(tmp_path / "back")


def test_a_port_of_a_command(server, node):
    """Each byte of three connections comes back, behind the end of what was sent."""
    assert node("""
        const box = await execd.connect(given.url), found = []
        const p = await box.start(['/usr/bin/python3', '-c', given.echo])
        const f = await box.forward(Number((await p.next()).value.data), { of: p })
        for (const size of [1, 100000, 1000000]) {
            const c = net.connect(f.port, '127.0.0.1'), data = Buffer.alloc(size, 'through a port'), parts = []
            c.end(data)
            for await (const part of c) parts.push(part)
            found.push(Buffer.concat(parts).equals(data) && f.error === undefined)
        }
        await f.close()
        await p.terminate()
        found.push((await thrown(() => box.openPort(1))).errno)
        await box.close()
        return found""", url=server.url, echo=ECHO) == [True, True, True, 111]


def test_http(server, web, node):
    found = node("""
        const box = await execd.connect(given.url)
        const r = await box.http('GET', given.web, { headers: { 'x-name': 'v' } })
        const found = [r.status, r.header('X-Name'), r.text === 'x'.repeat(300000)]
        found.push((await box.http('POST', given.web, { body: 'sent' })).text)
        let n = 0
        for await (const data of await box.httpStream('GET', given.web)) n += data.length
        found.push(n, (await thrown(() => box.http('GET', given.web, { maxBytes: 10 }))).class,
            (await thrown(() => box.http('GET', 'http://127.0.0.1:1/'))).class)
        await box.close()
        return found""", url=server.url, web=web)
    assert found == [418, "v", True, "sent", 300000, "LimitExceeded", "OperatingSystemError"]


def test_changes_of_files_are_told_behind_a_cut(proxy, directory, node):
    assert node("""
        const box = await execd.connect(given.url), watch = await box.watch(given.directory), found = []
        await ask('touch', 'one')
        found.push((await watch.next()).value)
        await ask('cut')
        let change
        while ((change = (await watch.next()).value).kind !== 'lost') found.push(change)
        await ask('touch', 'two')
        while (!(change = (await watch.next()).value).path.endsWith('/two') || change.kind !== 'created');
        await box.files.mkdir(`${given.directory}/sub`)
        const inner = await box.watch(`${given.directory}/sub`)
        await box.files.remove(`${given.directory}/sub`, { recursive: true })
        for await (const _ of inner); // it ends
        watch.close()
        await box.close()
        return found.every((c) => c.path.endsWith('/one')) && found[0].kind""",
                {"touch": lambda name: (directory / name).touch(), "cut": proxy.cut},
                url=proxy.url, directory=directory) == "created"


# --- sessions -----------------------------------------------------------------


def test_a_kept_session(server, directory, node):
    assert node("""
        let box = await execd.connect(given.url)
        const found = [(await box.keep(300000, { whileRunning: true })).whileRunning]
        let p = await box.start(`echo one; until [ -e ${given.directory}/go ]; do sleep 0.05; done; echo two; exit 3`,
            { stdin: true })
        await p.next()
        const session = box.sessionId
        await box.detach()
        found.push((await thrown(() => p.wait())).class)
        const eye = await execd.connect(given.url, { session, watch: true })
        found.push((await thrown(() => eye.run('true'))).class)
        await eye.close()
        box = await execd.connect(given.url, { session })
        found.push((await box.sessions()).find((s) => s.sessionId === session).state,
            (await box.processes()).map((q) => q.processId === p.id))
        found.push((await thrown(() => execd.connect(given.url, { session, initializeTimeoutMs: 300 }))).class)
        p = await box.attach(p.id)
        await ask('go')
        found.push(await text(p), (await p.wait()).exitCode)
        const other = await execd.connect(given.url, { session, takeOver: true })
        found.push((await thrown(async () => { for (;;) await box.run('true') })).class)
        await other.end()
        found.push((await thrown(() => execd.connect(given.url, { session }))).class)
        await box.close()
        return found""", {"go": (directory / "go").touch}, url=server.url, directory=directory) == [
            True, "ConnectionLost", "Refused", "attached", [True], "SessionAttached", "one\ntwo\n", 3, "SessionTaken",
            "SessionLost"]


def test_a_session_that_is_not_kept_ends(server, node):
    assert node("""
        const box = await execd.connect(given.url)
        await box.start('sleep 1000')
        await box.close()
        return [(await thrown(() => execd.connect(given.url, { session: box.sessionId }))).class,
            (await thrown(() => box.run('true'))).class]""", url=server.url) == ["SessionLost", "ConnectionLost"]


# --- which server -------------------------------------------------------------


def test_a_unix_socket(server, directory, node):
    proxy = Proxy(server.url, path=directory / "socket")
    assert node("""
        const box = await execd.connect(given.url), found = [(await box.run('echo hi')).stdout]
        await ask('cut')
        found.push((await box.run('echo hi')).stdout, box.resumes)
        await box.close()
        return found""", {"cut": proxy.cut}, url=proxy.url) == ["hi\n", "hi\n", 1]
    proxy.close()


def test_lines(mode, user, node):
    from conftest import EXECD, as_user
    argv = [str(EXECD), "--listen", "stdio"]
    argv = [*argv, "--user", user.pw_name] if mode == "root" else as_user(user, argv)
    found = node("""
        const box = await execd.connect(`stdio:${given.argv}`), data = Buffer.alloc(2 << 20, 'lines')
        const same = (await box.run('cat', { input: data })).stdoutBytes.equals(data)
        await box.close()
        const welcome = await thrown(() => execd.connect('stdio:echo Welcome to this host'))
        return [same, (await thrown(() => execd.connect('stdio:exit 3'))).class, welcome.class, welcome.message]""",
                 argv=" ".join(argv))
    assert found[:3] == [True, "Unreachable", "ProtocolError"] and "Welcome" in found[3]


def test_tls(configured, user, directory, node):
    """The real listener: the right token, each wrong one, and certificates of either side."""
    root, other = Authority(directory, "root"), Authority(directory, "other")
    cert, client = root.issue("server", group=user.pw_gid), root.issue("client")
    stranger = other.issue("client2")
    text = (f"[listener tls]\naddress = wss://127.0.0.1:0\ncertificate = {cert}.pem\ncertificate-key = {cert}.key\n"
            f"{{more}}[identity a]\nuser = {user.pw_name}\nsandbox-allow-unsandboxed = yes\ntoken-sha256 = {digest('tok')}\n")
    one = configured(text.format(more=""))
    two = configured(text.format(more=f"client-ca = {root.cert}\nclient-certificate = required\n"))
    found = node("""
        const { one, two, ca, otherCa } = given, token = 'tok', own = { certificate: given.client + '.pem' }
        const box = await execd.connect(one, { token, ca }), data = Buffer.alloc(3 << 20, 'tls')
        const found = [(await box.run('cat', { input: data })).stdoutBytes.equals(data)]
        await box.close()
        for (const options of [{ token }, { token, ca: otherCa }, { token: 'wrong', ca }, { ca }])
            found.push((await thrown(() => execd.connect(one, options))).class)
        const plain = await thrown(() => execd.connect(one.replace('wss', 'ws'), { token }))
        found.push(['ProtocolError', 'Unreachable'].includes(plain.class) && /begins with wss/.test(plain.message))
        const with2 = await execd.connect(two, { token, ca, ...own, key: given.client + '.key' })
        found.push((await with2.run('echo hi')).stdout)
        await with2.close()
        for (const options of [{}, { certificate: given.stranger + '.pem', key: given.stranger + '.key' }])
            found.push(['AuthenticationFailed', 'Unreachable'].includes(
                (await thrown(() => execd.connect(two, { token, ca, ...options }))).class))
        found.push((await thrown(() => execd.connect(two, { token, ca, ...own, key: given.stranger + '.key' }))).class)
        return found""", one=one.url, two=two.url, ca=root.cert, otherCa=other.cert, client=client, stranger=stranger)
    assert found == [True, "CertificateRefused", "CertificateRefused", "AuthenticationFailed", "AuthenticationFailed", True,
                     "hi\n", True, True, "ConfigError"]


def test_the_server_that_execctl_would_use(server, directory, node):
    write(directory / "token", " tok\n")
    write(directory / "environments.conf",
          f"# servers\ndefault = one\n[one]\nurl = {server.url}\nsilence-timeout = 7s\n[two]\nurl = ws://127.0.0.1:1/two\n"
          f"token-file = {directory}/token ; of two\n")
    two = "ws://127.0.0.1:1/two"
    found = node("""
        const { findServer } = await import(process.cwd() + '/node_modules/execd-client/dist/config.js')
        const url = (...a) => findServer(...a).url, token = (...a) => findServer(...a).token, two = given.two
        const found = [findServer().silenceTimeoutMs, url(undefined, 'two'), token(undefined, 'two'), token(two)]
        const box = await execd.connect()
        found.push((await box.run('echo hi')).stdout)
        await box.close()
        process.env.CODEX_EXEC_SERVER_URL = 'ws://127.0.0.1:3'
        found.push(url())
        process.env.EXECD_URL = 'ws://127.0.0.1:2'
        found.push(url())
        process.env.EXECD_TOKEN = 'variable'
        found.push(token(), token(two), token(undefined, 'two'), token(undefined, 'one'), token(undefined, 'two', 'given'))
        const warned = once(process, 'warning')
        findServer('ws://192.0.2.1', undefined, 'given')
        found.push((await warned)[0].message.includes('ws://'))
        return found""", two=two)
    assert found == [7000, two, "tok", "tok", "hi\n", "ws://127.0.0.1:3", "ws://127.0.0.1:2", "variable", "variable", "tok",
                     "variable", "given", True]


def test_a_key_that_only_execctl_compares(directory, node):
    write(directory / "environments.conf", "[a]\nurl = wss://127.0.0.1:1\nserver-key = SHA256:x\n")
    error = node("return await thrown(() => execd.connect())")
    assert error["class"] == "ConfigError" and "only execctl compares a server-key" in error["message"], error


def test_what_execctl_refuses(directory, node):
    """One program asks for all of them; the sentences are compared with execctl's."""
    write(directory / "open", "tok", 0o644)
    write(directory / "empty", " \n")
    write(directory / "long", "x" * 20000)

    def prepare(i):
        write(directory / "environments.conf", REFUSED[i][0].replace("DIR", str(directory)), REFUSED[i][1])
        return [REFUSED[i][2], REFUSED[i][3]]

    found = node("""
        const found = []
        for (let i = 0; i < given.count; i++) {
            const [env, options] = await ask('prepare', i)
            Object.assign(process.env, env)
            found.push(await thrown(() => execd.connect(options)))
            for (const name in env) delete process.env[name]
        }
        return found""", {"prepare": prepare}, count=len(REFUSED))
    for i, (error, (_, _, env, options)) in enumerate(zip(found, REFUSED)):
        assert error["class"] == "ConfigError", (i, error)
        prepare(i)
        said = Execctl(directory, None, **env)(*(a for k, v in options.items() for a in (f"--{k}", v)), "info")
        assert said.code in (125, 255)
        ours = re.sub(r"stdio: or ask:|unix: or stdio:|unix:, stdio: or ask:", "", error["message"])
        theirs = re.sub(r"unix:, stdio: or ask:|--url or --environment", "", said.err.removeprefix("execctl: "))
        words = set(re.findall(r"[\w./-]{3,}", ours.lower())) - {"200", "unix"}
        known = set(re.findall(r"[\w./-]{3,}", theirs.lower()))
        assert len(words & known) >= 0.6 * len(words), (ours, theirs)


# --- cuts ---------------------------------------------------------------------


@pytest.mark.parametrize("wait", [False, True], ids=["pushed", "asked"])
def test_output_continues_behind_a_cut(proxy, directory, node, wait):
    def cut(i):
        proxy.cut()
        (directory / str(i)).touch()

    stdout, stderr, rest, code, resumes = node("""
        const box = await execd.connect(given.url), out = { stdout: '', stderr: '' }
        const p = await box.start(given.script, { waitOutput: given.wait })
        for (let i = 100; i <= 500; i += 100) {
            while (!out.stdout.endsWith(`line ${i - 1}\\n`) || !out.stderr.endsWith(`e${i - 1}\\n`)) {
                const { stream, data } = (await p.next()).value
                out[stream] += data
            }
            await ask('cut', i)
        }
        const rest = await text(p), { exitCode } = await p.wait()
        await box.close()
        return [out.stdout, out.stderr, rest, exitCode, box.resumes]""",
                                               {"cut": cut}, url=proxy.url, wait=wait, script=LINES.format(n=500, d=directory))
    assert (stdout.encode(), stderr.encode()) == expected(500) and (rest, code) == ("", 5) and resumes >= 4


def test_a_command_is_started_once(proxy, directory, node):
    """The answer to its start is swallowed, so the start is sent again."""
    def swallow():
        proxy.swallowing = True

    def cut():
        poll(lambda: (directory / "count").exists(), what="the start")
        proxy.cut_swallowed()

    assert node("""
        const box = await execd.connect(given.url)
        await box.run('true')
        await ask('swallow')
        const run = box.run(`echo x >>${given.directory}/count; echo out; exit 4`)
        await ask('cut')
        const r = await run
        await box.close()
        return [r.stdout, r.exitCode]""", {"swallow": swallow, "cut": cut}, url=proxy.url, directory=directory) == ["out\n", 4]
    assert (directory / "count").read_text() == "x\n"


def test_a_start_that_is_aborted_meanwhile_is_not_made(proxy, directory, node):
    def refuse(on):
        proxy.refusing = on
        if on:
            accepted = proxy.accepted
            proxy.cut()
            proxy.wait(lambda: proxy.accepted > accepted, what="another connection")

    assert node("""
        const box = await execd.connect(given.url)
        const p = await box.start('echo ready; sleep 100')
        await p.next()
        await ask('refuse', true)
        const stop = new AbortController()
        const run = thrown(() => box.run(`touch ${given.directory}/made`, { signal: stop.signal }))
        stop.abort(new Error('enough'))
        const reason = (await run).message
        await ask('refuse', false)
        const on = (await box.run('echo on')).stdout, count = (await box.processes()).length
        await box.close()
        return [reason, on, count]""", {"refuse": refuse}, url=proxy.url, directory=directory) == ["enough", "on\n", 2]
    assert not (directory / "made").exists()


def test_what_may_not_be_repeated_says_so(proxy, directory, node):
    (directory / "gone").touch()

    def swallow():
        proxy.swallowing = True

    def cut():
        poll(lambda: not (directory / "gone").exists(), what="the removal")
        proxy.cut_swallowed()

    lost, on = node("""
        const box = await execd.connect(given.url)
        await box.run('true')
        await ask('swallow')
        const lost = thrown(() => box.files.remove(`${given.directory}/gone`))
        await ask('cut')
        const found = [await lost, (await box.run('echo on')).stdout]
        await box.close()
        return found""", {"swallow": swallow, "cut": cut}, url=proxy.url, directory=directory)
    assert lost["class"] == "AnswerLost" and "fs/remove" in lost["message"] and "unknown" in lost["message"] and on == "on\n"


@pytest.mark.parametrize("wait", [False, True], ids=["pushed", "asked"])
def test_more_than_is_retained(proxy, directory, node, wait):
    """Of what is pushed a part falls out, and that is told; what is asked for waits, and none is lost."""
    def cut():
        proxy.refusing = True
        proxy.cut()
        (directory / "go").touch()
        if not wait:
            poll(lambda: (directory / "done").exists(), what="the end")
        proxy.refusing = False

    code, size, last, lost, before = node("""
        const box = await execd.connect(given.url), d = given.directory
        const p = await box.start(`echo first; until [ -e ${d}/go ]; do sleep 0.05; done; head -c 3000000 /dev/zero; ` +
            `echo last; touch ${d}/done; exit 6`, { waitOutput: given.wait })
        await p.next()
        await ask('cut')
        let size = 0, last = '', lost = 0, before = 0
        for (;;) {
            try {
                for await (const { data } of p) {
                    size += data.length
                    last = (last + data).slice(-6)
                }
                break
            } catch (e) {
                lost += e.bytes
                before = size
            }
        }
        const { exitCode } = await p.wait()
        await box.close()
        return [exitCode, size, last, lost, before]""", {"cut": cut}, url=proxy.url, directory=directory, wait=wait)
    assert (code, last, size + lost, before) == (6, "\0last\n", 3000005, 0) and bool(lost) != wait


def test_when_it_cannot_resume_the_state_is_unknown(proxy, node):
    def cut():
        proxy.refusing = True
        proxy.cut()

    lost, after, write_, first = node("""
        const box = await execd.connect(given.url, { resumeTimeoutMs: 300 }), p = await box.start('echo ready; sleep 100')
        await p.next()
        await ask('cut')
        const found = [await thrown(() => p.wait()), await thrown(() => box.run('true')),
            await thrown(() => p.write(Buffer.alloc(3 << 20))),
            await thrown(() => execd.connect('ws://127.0.0.1:1', { connectTimeoutMs: 200 }))]
        await box.close()
        return found""", {"cut": cut}, url=proxy.url)
    assert lost["class"] == "ConnectionLost" and "could not be resumed within 300 ms" in lost["message"]
    assert [e["class"] for e in (after, write_, first)] == ["ConnectionLost", "ConnectionLost", "Unreachable"]


def test_a_silent_server_is_left(proxy, node):
    def swallow():
        accepted = proxy.accepted
        proxy.swallowing = True
        proxy.wait(lambda: proxy.accepted > accepted, what="another connection")
        proxy.cut_swallowed()

    stdout, resumes = node("""
        const box = await execd.connect(given.url, { silenceTimeoutMs: 400 })
        await box.run('true')
        await ask('swallow')
        const r = await box.run('echo hi')
        await box.close()
        return [r.stdout, box.resumes]""", {"swallow": swallow}, url=proxy.url)
    assert stdout == "hi\n" and resumes >= 1


@pytest.mark.parametrize("rounds", [1, pytest.param(10, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("wait", [False, True], ids=["pushed", "asked"])
def test_ten_cuts_at_random_moments(spawn, directory, node, rounds, wait):
    """Commands, input, files and a forwarded port at once. A round has ten cuts."""
    server = spawn()
    proxy = Proxy(server.url)
    rng = random.Random(rounds)
    data = rng.randbytes(2 << 20)
    (directory / "f").write_bytes(data)
    (directory / "f").chmod(0o644)
    for number in range(rounds):
        stop = threading.Event()
        cutter = threading.Thread(target=cut_somewhere, args=(rng, proxy, server, 10, stop))
        try:
            assert node("""
                const box = await execd.connect(given.url), data = await fs.readFile(given.file)
                const p = await box.start(['/usr/bin/python3', '-c', given.echo])
                const port = Number((await p.next()).value.data), sent = data.subarray(0, 1 << 20)
                const through = async () => {
                    const f = await box.forward(port, { of: p }), c = net.connect(f.port, '127.0.0.1'), parts = []
                    c.end(sent)
                    for await (const part of c) parts.push(part)
                    await f.close()
                    await p.terminate()
                    return Buffer.concat(parts)
                }
                const cut = ask('cut')
                const [numbers, echoed, read, port1] = await Promise.all([
                    box.run('for i in $(seq 1 40); do seq $((i*1000)) $((i*1000+999)); sleep 0.02; done; exit 3',
                        { waitOutput: given.wait }),
                    box.run('cat', { input: data, waitOutput: true }), box.files.read(given.file), through(),
                    box.files.write(given.copy, data), cut])
                const lines = [...Array(40000).keys()].map((i) => `${i + 1000}\\n`).join('')
                await box.close()
                return [numbers.exitCode, numbers.stdout === lines, echoed.stdoutBytes.equals(data), read.equals(data),
                    port1.equals(sent), box.resumes > 0]""",
                        {"cut": lambda: [cutter.start(), cutter.join()] and None}, url=proxy.url, echo=ECHO, wait=wait,
                        file=directory / "f", copy=directory / f"w{number}") == [3, True, True, True, True, True]
        finally:
            stop.set()
        assert (directory / f"w{number}").read_bytes() == data
    proxy.close()


# --- servers that lie ---------------------------------------------------------


@contextlib.contextmanager
def liar(lie, capabilities=()):
    s = Liar(lie, capabilities)
    try:
        yield s.url
    finally:
        s.close()


def test_a_lie_is_a_typed_error(node):
    """All of them at once, each with a client of its own."""
    # Debian 12's ws has no limit of fragments, which npm's has.
    names = [n for n in LIES if n != "endless fragments" or package("ws").parent == NPM]
    with contextlib.ExitStack() as stack:
        lies = [(LIES[n][0], True) if isinstance(LIES[n], tuple) else (LIES[n], False) for n in names]
        urls = [[stack.enter_context(liar(lie, ["processRetentionWait"] if asked else [])), asked] for lie, asked in lies]
        found = node("""
            return Promise.all(given.urls.map(async ([url, waitOutput]) => {
                const box = await execd.connect(url, { resumeTimeoutMs: 1000 })
                const error = await thrown(() => box.run('true', { waitOutput }))
                await box.close()
                return error?.class ?? null
            }))""", urls=urls)
    assert [(n, f) for n, f in zip(names, found) if f not in ("ProtocolError", "LimitExceeded")] == []


FILE_CALLS = {
    "a name above": "b.files.download('/d', d + '/x')", "a name below": "b.files.download('/d', d + '/y')",
    "no name": "b.files.listdir('/d')", "itself": "b.files.listdir('/d')", "a longer block": "b.files.read('/f')",
    "a short block": "b.files.read('/f')", "blocks without an end": "b.files.read('/f', { maxBytes: 5 << 20 })",
    "no block": "b.files.read('/f')", "no size": "b.files.stat('/f')", "another path": "b.files.canonicalize('/f')",
    "too long a walk": "b.files.walk('/d', { maxEntries: 2 })", "a list without an end": "b.processes()",
    "a status that is none": "b.http('GET', 'http://x/')",
}


def test_a_lie_about_files(directory, node):
    with contextlib.ExitStack() as stack:
        urls = [stack.enter_context(liar(FILE_LIES[n], ["processList"])) for n in FILE_CALLS]
        found = node(f"""
            const d = given.directory, calls = [{', '.join(f'(b) => {c}' for c in FILE_CALLS.values())}]
            return Promise.all(calls.map(async (call, i) => {{
                const box = await execd.connect(given.urls[i])
                const error = await thrown(() => call(box))
                await box.close()
                return error?.class ?? null
            }}))""", urls=urls, directory=directory)
    assert FILE_CALLS.keys() == FILE_LIES.keys()
    assert [(n, f) for n, f in zip(FILE_CALLS, found) if f not in ("ProtocolError", "LimitExceeded")] == []
    assert not [p for p in directory.rglob("*") if p.is_file()]


RUN = "const box = await execd.connect(given.url); const r = await box.run('true'); await box.close(); " \
      "return [r.stdout, r.exitCode]"


def test_an_event_that_comes_twice_is_one(node):
    def twice(s, c, p):
        for seq in (1, 1, 2, 1, 2):
            out(s, c, p, seq)
        ends(s, c, p, 3)

    with liar(start_and(twice)) as url:
        assert node(RUN, url=url) == ["xx", 0]


@pytest.mark.parametrize("chunks, events, text", [([3], 2, "x"), ([], 3, "")], ids=["in front", "all of it"])
def test_what_a_server_does_not_retain_is_told(node, chunks, events, text):
    """The reference does not say what is missing: the numbers do."""
    def lie(s, c, m):
        if m["method"] == "process/read":
            s.send(c, id=m["id"], result={"nextSeq": 4, "exited": False, "exitCode": None, "closed": False, "chunks": [
                {"seq": n, "stream": "stdout", "chunk": "eA=="} for n in chunks]})
            ends(s, c, m["params"]["processId"], 4)
        else:
            start_and(lambda s, c, p: out(s, c, p, 3))(s, c, m)

    with liar(lie) as url:
        assert node("""
            const box = await execd.connect(given.url)
            try {
                await box.run('true')
            } catch (e) {
                await box.close()
                return [e.constructor.name, e.events, e.bytes ?? null, e.result.stdout, e.result.exitCode]
            }""", url=url) == ["OutputLost", events, None, text, 0]


def test_a_server_without_start_ids_starts_once(node):
    """The first start is not answered, and the second one says that the process exists."""
    import socket
    started = []

    def lie(s, c, m):
        if m["method"] == "process/start":
            started.append(m["params"]["processId"])
            if len(started) == 1:
                c.shutdown(socket.SHUT_RDWR)
            else:
                s.send(c, id=m["id"], error={"code": -32600, "message": f"process {started[0]} already exists"})
        elif m["method"] == "process/read":
            s.send(c, id=m["id"], result={"nextSeq": 4, "exited": True, "exitCode": 7, "closed": True, "chunks": [
                {"seq": 1, "stream": "stdout", "chunk": "eA=="}]})

    with liar(lie) as url:
        try:
            node(RUN, url=url)
        except AssertionError:
            pass
    assert len(started) == 2 and len(set(started)) == 1


def test_output_that_nobody_reads_has_a_limit(node):
    """A server that floods while an answer is awaited."""
    import base64
    piece = base64.b64encode(bytes(1 << 20)).decode()

    def flood(s, c, p):
        for seq in range(1, 80):
            out(s, c, p, seq, chunk=piece)

    def lie(s, c, m):
        if m["method"] == "process/start":
            start_and(flood)(s, c, m)  # process/resize is never answered

    with liar(lie, ["processResize"]) as url:
        assert node("""
            const box = await execd.connect(given.url), p = await box.start('true')
            const resize = thrown(() => p.resize(1, 1))
            while (!p.error) await new Promise(setImmediate)
            const found = [p.error.constructor.name]
            await box.detach()
            found.push((await resize).class)
            return found""", url=url) == ["LimitExceeded", "ConnectionLost"]


LACKS = {
    "processCloseStdin": "b.run('a', { input: 'x' })", "processTimeout": "b.run('a', { timeoutMs: 1 })",
    "processResize": "b.start('a', { tty: { rows: 1, cols: 1 } })", "processNetwork": "b.run('a', { allowHosts: ['x'] })",
    "processSignalTarget": "b.start('a').then((p) => p.kill('TERM'))", "processForward": "b.forward(1)",
    "processTerminateGraceful": "b.start('a').then((p) => p.terminate(1))", "fsMove": "b.files.move('a', 'b')",
    "fsChmod": "b.files.chmod('a', 0)", "fsSymlink": "b.files.symlink('a', 'b')", "fsSetTimes": "b.files.setModified('a', 0)",
    "fsWatch": "b.watch('a')", "sessionKeep": "b.keep(1)", "sessionList": "b.sessions()", "processList": "b.processes()",
    "sessionEnd": "b.end()"}


def test_what_a_server_lacks_is_named(node):
    """None of the capabilities that execd has beyond the reference."""
    with liar(start_and(lambda s, c, p: None)) as url:
        found = node(f"""
            const b = await execd.connect(given.url), found = []
            for (const f of [{', '.join(f'() => {c}' for c in LACKS.values())}]) found.push(await thrown(f))
            await b.close()
            return found""", url=url)
    assert [(f["class"], f["capability"]) for f in found] == [("MissingCapability", c) for c in LACKS]


# --- the reference ------------------------------------------------------------


@pytest.mark.skipif("CODEX_BIN" not in os.environ, reason="CODEX_BIN names no reference server")
def test_the_reference_server(directory, web, node):
    with open(directory / "log", "wb") as log:
        child = subprocess.Popen([os.environ["CODEX_BIN"], "exec-server", "--listen", "ws://127.0.0.1:0"],
                                 stdout=subprocess.PIPE, stderr=log, env=environment(directory, CODEX_HOME=str(directory)))
    proxy = Proxy(child.stdout.readline().decode().strip())

    def cut(i):
        proxy.cut()
        (directory / str(i)).touch()

    try:
        found = node("""
            const box = await execd.connect(given.url), data = Buffer.alloc(3 << 20, 'data'), f = `${given.directory}/f`
            const r = await box.run('echo out; echo err >&2; exit 3'), found = [r.stdout, r.stderr, r.exitCode]
            await box.files.write(f, data)
            found.push((await box.files.read(f)).equals(data), (await box.http('GET', given.web)).body.length)
            found.push((await thrown(() => box.run('cat', { input: 'x' }))).capability)
            let p = await box.start(given.script), out = { stdout: '', stderr: '' }
            for (const i of [100, 200]) {
                while (!out.stdout.endsWith(`line ${i - 1}\\n`)) {
                    const { stream, data } = (await p.next()).value
                    out[stream] += data
                }
                await ask('cut', i)
            }
            for await (const { stream, data } of p) out[stream] += data
            found.push(out.stdout, out.stderr, (await p.wait()).exitCode, (await thrown(() => box.run(['/no/such']))).class)
            p = await box.start('sleep 100')
            await p.kill('INT')
            found.push((await p.wait()).exitCode)
            await box.close()
            return found""", {"cut": cut}, url=proxy.url, directory=directory, web=web,
                     script=LINES.format(n=200, d=directory))
        stdout, stderr = expected(200)
        assert found == ["out\n", "err\n", 3, True, 300000, "processCloseStdin", stdout.decode(), stderr.decode(), 5,
                         "StartFailed", 130]
    finally:
        proxy.close()
        child.terminate()
        child.wait(10)


# --- the package --------------------------------------------------------------


def run_example(node, name, url, *args, code=0):
    """A copy beside the package: a program finds its packages from its own place."""
    copy = node.directory / name
    copy.write_text((TREE / "doc/examples/node" / name).read_text())
    r = subprocess.run(["node", copy, *map(str, args)], capture_output=True, text=True, timeout=60,
                       env={**os.environ, "EXECD_URL": url})
    assert r.returncode == code, r
    return r.stdout


def test_the_examples(server, sandboxes, directory, node):
    (node.directory / "package.json").write_text('{"type": "module"}')
    examples = {p.name for p in (TREE / "doc/examples/node").iterdir()}
    assert examples == {"run.js", "stream.js", "resume.js", "agent_loop.js"}
    assert run_example(node, "run.js", server.url, directory, "pwd; exit 3", code=3) == f"{directory}\n"
    said = run_example(node, "stream.js", server.url, code=3)
    assert "stdout working\n" in said and "stderr a warning\n" in said and "the answer was yes\nit ended with 3\n" in said
    assert run_example(node, "resume.js", server.url) == "line 1\nline 2\nline 3\nit ended with 4\n"
    said = run_example(node, "agent_loop.js", server.url, directory).splitlines()
    assert '"stdout":"6\\n"' in said[1] and '"denied":true' in said[2] and '"timedOut":true' in said[3]
    assert '"NotFound"' in said[4]


def test_what_is_repeated_is_what_the_client_for_python_repeats(node):
    """test_python_client.py compares that with protocol/rpc/methods.def."""
    said = (TREE / "client/python/execd/connection.py").read_text()
    python = set(re.findall(r'"(\w+/\w+)"', re.search(r"^AGAIN = frozenset\(\((.*?)\)\)", said, re.M | re.S)[1]))
    again = node("const c = await import(process.cwd() + '/node_modules/execd-client/dist/connection.js'); return [...c.again]")
    assert set(again) == python and len(python) > 20


@pytest.mark.nightly
def test_a_tarball_in_a_clean_environment(packed, server):
    """The first result takes four lines, and types come along."""
    code = ("import { connect } from 'execd-client'\nconst box = await connect()\n"
            "const r = await box.run('echo hi; exit 3')\nconsole.log(r.stdout, r.stderr, r.exitCode)\nawait box.close()\n")
    r = subprocess.run(["node", "--input-type=module", "-e", code], cwd=packed, capture_output=True, text=True, timeout=60,
                       env={"PATH": "/usr/bin:/bin", "HOME": str(packed), "EXECD_URL": server.url})
    assert r.stdout == "hi\n  3\n", r
    assert (packed / "node_modules/execd-client/dist/index.d.ts").exists()
