# SPDX-License-Identifier: ISC
"""The real Codex CLI, driven by a test that plays its model and writes down everything both say."""
import json
import os
import pathlib
import re
import subprocess
import threading

from model import Model, TIMEOUT

# Those that the suite runs with: scripts/test --with-codex takes the oldest and the newest, with --all also those between,
# and the one that npm calls the latest.
VERSIONS = ("0.163.0", "0.166.0", "0.169.0", "0.171.0")
VERSION = os.environ.get("CODEX_VERSION") or VERSIONS[-1]
BYPASS = ("--dangerously-bypass-approvals-and-sandbox",)
# Of the models that Codex knows without asking anybody, the one with plain function calls and apply_patch.
CONFIG = """\
model = "gpt-5.5"
model_provider = "scripted"
check_for_update_on_startup = false
web_search = "disabled"
{keys}
[model_providers.scripted]
name = "a test"
base_url = "{url}"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0

[features]  # what would ask hosts on the internet
plugins = false
remote_plugin = false
apps = false
{features}

[analytics]
enabled = false

[otel]
exporter = "none"
metrics_exporter = "none"
{tables}
"""


def configuration(url, more=None):
    return CONFIG.format(url=url, **{"keys": "", "features": "", "tables": "", **(more or {})})


def codex_program():
    """The path of codex; installs it into a cache beside the user's others when it is not there."""
    if os.environ.get("CODEX_BIN"):
        return os.environ["CODEX_BIN"]
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / f"execd-peer-{VERSION}"
    pattern = "node_modules/@openai/codex-*/vendor/*/bin/codex"
    if not list(cache.glob(pattern)):
        cache.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "install", "--prefix", cache, "--no-audit", "--no-fund", "--loglevel=error",
                        f"@openai/codex@{VERSION}"], check=True)
    program = next(cache.glob(pattern))
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    assert said.split()[-1] == VERSION, f"{program} is {said}"
    return str(program)


def chosen_versions(everything):
    """The versions to run with, the newest last."""
    if not everything:
        return [VERSIONS[0], VERSIONS[-1]]
    latest = subprocess.run(["npm", "view", "@openai/codex", "version"], capture_output=True, text=True, check=True).stdout.strip()
    return [*VERSIONS, *([latest] if latest not in VERSIONS else [])]


def with_requirements(text, directory):
    """The words before a command that sees this text as /etc/codex/requirements.toml, in a mount namespace of its own."""
    for name in "upper/codex", "work":
        (directory / "requirements" / name).mkdir(parents=True)
    at = directory / "requirements"
    (at / "upper/codex/requirements.toml").write_text(text)
    options = f"lowerdir=/etc,upperdir={at}/upper,workdir={at}/work"
    mine = [] if os.geteuid() == 0 else ["--map-root-user"]
    return ["unshare", *mine, "--mount", "sh", "-c", f'mount -t overlay -o {options} overlay /etc && exec "$@"', "sh"]


class Codex:
    """One `codex exec`. Its home, log and workspace are directories of the test. `config` adds keys, features and
    tables to its config.toml; `requirements` is what an administrator of its machine demands."""

    def __init__(self, program, home, log, workspace, flags=BYPASS, url=None, environments=None, env=None, config=None,
                 requirements=None):
        self.log = log
        self.model = Model(log)
        (home / "config.toml").write_text(configuration(self.model.url, config))
        more = env or {}
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "CODEX_HOME": str(home), "NO_PROXY": "127.0.0.1"}
        env |= more
        if url:
            env["CODEX_EXEC_SERVER_URL"] = url
        if environments:
            (home / "environments.toml").write_text(environments)
        argv = [program, "exec", "--json", "--skip-git-repo-check", *flags, "-C", str(workspace), "Do as told."]
        if requirements:
            argv = with_requirements(requirements, home) + argv
        with open(log / "codex.stdout", "wb") as out, open(log / "codex.stderr", "wb") as err:
            self.child = subprocess.Popen(argv, env=env, cwd=home, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        self.request = None
        threading.Thread(target=self._wait, daemon=True).start()

    def _wait(self):
        self.child.wait()
        self.model.close()

    def _printed(self):
        return f"status {self.child.returncode}: {self.stdout()[-3000:]} {(self.log / 'codex.stderr').read_text()}"

    def _next(self, timeout):
        self.request = self.model.request(timeout)
        assert self.request is not None, f"codex ended instead of asking, {self._printed()}"

    def stdout(self):
        return (self.log / "codex.stdout").read_text()

    def first(self):
        """The first request, before anything was answered."""
        if self.request is None:
            self._next(TIMEOUT)
        return self.request

    def call(self, name, **arguments):
        """Calls a tool; returns its output as the model sees it, text or content items."""
        self.first()
        return self._output(self.model.call(name, arguments))

    def patch(self, text):
        self.first()
        return self._output(self.model.custom("apply_patch", text))

    def _output(self, call_id):
        self._next(TIMEOUT)
        found = [i["output"] for i in self.request["input"]
                 if i["type"].endswith("_output") and i["call_id"] == call_id]
        assert len(found) == 1, f"{call_id} has {len(found)} outputs"
        return found[0]

    def run(self, cmd, **arguments):
        return Command(self, cmd, arguments)

    def finish(self):
        """The model's last word; codex must end well. Returns its events."""
        self.first()
        self.model.say("That is all.")
        status = self.child.wait(TIMEOUT)
        assert status == 0, self._printed()
        events = [json.loads(line) for line in self.stdout().splitlines() if line.startswith("{")]
        assert events[-1]["type"] == "turn.completed", events[-1]
        return events

    def stop(self):
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait(TIMEOUT)
        self.model.stop()


class Command:
    """An exec_command and the write_stdin calls that follow while it runs."""

    def __init__(self, codex, cmd, arguments):
        self.codex = codex
        self.output = ""
        self._take(codex.call("exec_command", cmd=cmd, **arguments))

    def _take(self, text):
        assert isinstance(text, str) and "\nOutput:\n" in text, text
        head, output = text.split("\nOutput:\n", 1)
        self.output += output
        self.code = find(r"^Process exited with code (-?\d+)$", head)
        self.session = find(r"^Process running with session ID (\d+)$", head)
        assert (self.code is None) != (self.session is None), text

    def write(self, chars):
        assert self.session is not None, f"it has ended: {self.output}"
        self._take(self.codex.call("write_stdin", session_id=self.session, chars=chars))

    def poll(self):
        """What a model does to wait: an empty write. Codex takes 5 s for it unless the command ends."""
        self.write("")

    def until(self, word):
        while word not in self.output.split():
            self.poll()

    def end(self):
        """Polls until it has ended; returns the words of the whole output."""
        while self.code is None:
            self.poll()
        return self.output.split()


def find(pattern, text):
    found = re.search(pattern, text, re.MULTILINE)
    return int(found[1]) if found else None
