# SPDX-License-Identifier: ISC
"""Builds the client for Node and runs programs with it. node, ws and TypeScript are Debian's (scripts/deps), or those that npm
has put into client/node/node_modules. Types are thrown away here, and a nightly test checks them with npm's."""
import json
import os
import pathlib
import shutil
import subprocess
import threading

import pytest

TREE = pathlib.Path(__file__).parents[2]
CLIENT = TREE / "client/node"
NPM = CLIENT / "node_modules"
DEBIAN = pathlib.Path("/usr/share/nodejs")

COMPILE = """
const ts = require(process.argv[1]), fs = require('fs'), [source, target] = process.argv.slice(2)
for (const name of fs.readdirSync(source)) {
	const r = ts.transpileModule(fs.readFileSync(`${source}/${name}`, 'utf8'), { fileName: name, reportDiagnostics: true,
		compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ES2022 } })
	for (const d of r.diagnostics) throw new Error(`${name}: ${ts.flattenDiagnosticMessageText(d.messageText, ' ')}`)
	fs.writeFileSync(`${target}/${name.replace(/ts$/, 'js')}`, r.outputText)
}
"""

# What a program of a test begins with. ask() is answered by the test.
PRELUDE = """
import * as execd from 'execd-client'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import * as fs from 'node:fs/promises'
import * as net from 'node:net'
const given = %s
const ask = async (name, ...args) => {
	console.log(JSON.stringify({ ask: name, args }))
	process.stdin.resume()
	const [line] = await once(process.stdin, 'data')
	process.stdin.pause()
	return JSON.parse(line)
}
const shown = (e) => ({ ...e, class: e.constructor.name, message: e.message })
const thrown = async (f) => {
	try {
		await f()
	} catch (e) {
		return shown(e)
	}
	return null
}
const text = async (p) => {
	let all = ''
	for await (const o of p) all += o.data
	return all
}
const sha = (data) => createHash('sha256').update(data).digest('hex')
const main = async () => {
%s
}
console.log(JSON.stringify({ result: (await main()) ?? null }))
"""


def package(name):
    """The directory of a package of npm or of Debian."""
    return next((d / name for d in (NPM, DEBIAN) if (d / name / "package.json").exists()), None)


def require():
    """Skips the whole module where the client cannot be tested."""
    missing = [n for n in ("ws", "typescript") if package(n) is None]
    if shutil.which("node") is None:
        missing.insert(0, "nodejs")
    if missing:
        pytest.skip(f"THE CLIENT FOR NODE IS NOT TESTED: {', '.join(missing)} is missing", allow_module_level=True)


@pytest.fixture(scope="session")
def package_directory(tmp_path_factory):
    """A directory in which programs find execd-client, as npm would lay it out."""
    top = tmp_path_factory.mktemp("node")
    top.chmod(0o755)
    home = top / "node_modules/execd-client"
    (home / "dist").mkdir(parents=True)
    shutil.copy(CLIENT / "package.json", home)
    for name in ("ws", "@modelcontextprotocol", "zod"):
        found = next((d / name for d in (NPM, DEBIAN) if (d / name).exists()), None)
        if found is not None:
            (top / "node_modules" / name).symlink_to(found.resolve())
    subprocess.run(["node", "-e", COMPILE, package("typescript"), CLIENT / "src", home / "dist"], check=True, timeout=120)
    return top


class Program:
    """node runs main(), whose result is what is returned. `answers` are functions of the test that the program may ask."""

    def __init__(self, directory):
        self.directory = directory
        self.env = {}

    def __call__(self, main, answers=None, timeout=30, **given):
        code = PRELUDE % (json.dumps(given, default=str), main)
        env = {k: v for k, v in os.environ.items() if not k.startswith("NODE_")}
        argv = ["node", "--input-type=module", "-e", code]
        with subprocess.Popen(argv, cwd=self.directory, env={**env, **self.env}, text=True, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as child:
            timer = threading.Timer(timeout, child.kill)
            timer.start()
            try:
                return self._talk(child, answers or {})
            finally:
                timer.cancel()
                child.kill()

    def _talk(self, child, answers):
        for line in child.stdout:
            said = json.loads(line)
            if "result" in said:
                child.stdin.close()
                assert child.wait() == 0, "the program does not end by itself"
                return said["result"]
            answer = answers[said["ask"]](*said["args"])
            child.stdin.write(json.dumps(answer, default=str) + "\n")
            child.stdin.flush()
        raise AssertionError(f"node ended with {child.wait()}")


@pytest.fixture
def node(package_directory):
    return Program(package_directory)


def npm(*argv, cwd):
    r = subprocess.run(["npm", *argv], cwd=cwd, capture_output=True, text=True, timeout=600)
    assert r.returncode == 0, r
    return r.stdout


@pytest.fixture(scope="session")
def packed(tmp_path_factory):
    """A tarball as npm makes it: TypeScript checks the types on the way."""
    if shutil.which("npm") is None or subprocess.run(["npm", "view", "ws", "version"], capture_output=True).returncode != 0:
        pytest.skip("THE PACKAGE OF THE CLIENT FOR NODE IS NOT TESTED: npm or its registry is missing")
    top = tmp_path_factory.mktemp("npm")
    top.chmod(0o755)
    shutil.copytree(CLIENT, top / "src", ignore=shutil.ignore_patterns("node_modules", "dist"))
    npm("install", "--no-audit", "--no-fund", cwd=top / "src")
    npm("pack", "--pack-destination", top, cwd=top / "src")
    [tarball] = top.glob("execd-client-*.tgz")
    (top / "clean").mkdir()
    npm("init", "-y", cwd=top / "clean")
    npm("install", "--no-audit", "--no-fund", tarball, cwd=top / "clean")
    return top / "clean"
