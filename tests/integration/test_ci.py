# SPDX-License-Identifier: ISC
"""contrib/ci: the scripts as each CI system calls them, against a real execd. No CI
system is here: its environment, arguments, standard input and signals are what the
page that each script names says.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest
from conftest import digest, pids_with, poll
from execctl import EXECCTL, environment
from test_execctl_affinity import Sticky

CI = pathlib.Path(__file__).parents[2] / "contrib/ci"
BUILD_FAILURE, SYSTEM_FAILURE = 71, 72


class Job:
    """What a CI system starts, in its own environment and its own process group."""

    def __init__(self, url, directory, **variables):
        self.env = environment(directory, EXECD_URL=url, EXECD_CONNECT_TIMEOUT="300ms", **variables)
        self.env["PATH"] = f"{CI}:{EXECCTL.parent}:/usr/bin:/bin"

    def start(self, *argv, **more):
        return subprocess.Popen([str(a) for a in argv], env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, start_new_session=True, **more)

    def __call__(self, *argv, input="", code=0, **more):
        p = self.start(*argv, **more)
        out, err = p.communicate(input, timeout=60)
        assert p.returncode == code, (argv, p.returncode, out, err)
        return out + err


@pytest.fixture
def sticky(server):
    """The server behind a balancer, which sees the URLs."""
    p = Sticky(server.url, cookie=None)
    yield p
    p.close()


def words_of(sticky):
    """The ?k= of every connection."""
    assert sticky.heads
    return {re.match(r"GET /\?k=(\S+) ", h)[1] for h in sticky.heads}


@pytest.fixture
def home(user):
    """The directories of all jobs."""
    return pathlib.Path(user.pw_dir) / "execd-ci"


def test_shellcheck():
    """All of contrib."""
    if not shutil.which("shellcheck"):
        pytest.skip("SCRIPTS ARE NOT CHECKED: the package shellcheck is missing")
    scripts = [p for p in CI.parent.rglob("*") if p.is_file() and p.read_bytes().startswith(b"#!")]
    assert CI / "execd-step" in scripts
    r = subprocess.run(["shellcheck", *scripts], capture_output=True, text=True)
    assert r.returncode == 0, r.stdout


def test_a_key_that_leads_elsewhere(server, directory):
    job = Job(server.url, directory)
    for key in "..", ".", "", "-x", "a/b", "a b", "a&x", "$HOME":
        for argv in [key, "true"], ["--begin", key], ["--end", key]:
            assert "is no key" in job("execd-step", *argv, code=125)
    assert "EXECD_URL" in Job("", directory)("execd-step", "a", "true", code=125)


def test_the_exit_status_is_the_commands_own(server, directory, home):
    job = Job(server.url, directory)
    assert job("execd-step", "--begin", "j1").strip() == str(home / "j1")
    for status, seen in (0, 0), (1, 1), (124, 124), (126, 126), (137, 137), (125, 1), (254, 1), (255, 1):
        said = job("execd-step", "j1", "sh", "-c", f"exit {status}", code=seen)
        assert said == ("" if status == seen else f"execd-step: the command ended with status {status}, which counts as 1\n")
    assert job("execd-step", "j1", "sh", "-c", "pwd; cat", input="text").splitlines() == [str(home / "j1"), "text"]
    job("execd-step", "--end", "j1")
    assert not (home / "j1").exists()


def test_what_is_no_fault_of_the_job(server, directory):
    job = Job(server.url, directory)
    assert "no directory of job gone" in job("execd-step", "gone", "true", code=125)
    job("execd-step", "--end", "gone")
    job.env["EXECD_URL"] = "ws://127.0.0.1:1"
    job("execd-step", "gone", "true", code=125)


@pytest.mark.parametrize("stubborn", [False, True])
def test_cancel_ends_the_command(server, directory, stubborn):
    """It may end by itself, and is killed otherwise. Nothing that it started stays. It gets the signal twice: from execd,
    and from timeout(1), which passes its own on."""
    job = Job(server.url, directory)
    job("execd-step", "--begin", "c")
    mark = f"{directory}/mark"
    script = f"setsid sh -c 'sleep 1000; : {mark}' & " + ("trap '' TERM; " if stubborn else "trap 'echo nicely; exit 9' TERM; ")
    p = job.start("execd-step", "c", "sh", "-c", script + f"echo up; while :; do sleep .1; done; : {mark}")
    assert p.stdout.readline() == "up\n"
    os.killpg(p.pid, signal.SIGTERM)
    out, err = p.communicate(timeout=30)
    ended = (set(), 137) if stubborn else ({"nicely"}, 9)
    # execctl waits two seconds for the command, and then ends its session. A machine under load may be too slow for both.
    if "its session is ended" in err:
        assert p.returncode in (137, 254, ended[1])
    else:
        assert (set(out.split()), p.returncode) == ended, err
    poll(lambda: not pids_with(mark), what="end of the command")
    job("execd-step", "--end", "c")


class GitLab(Job):
    """https://docs.gitlab.com/runner/executors/custom/: each stage is a call, with the job's variables as CUSTOM_ENV_*."""

    def __init__(self, url, directory, job_id="4711"):
        super().__init__(url, directory, CUSTOM_ENV_CI_JOB_ID=job_id, BUILD_FAILURE_EXIT_CODE=str(BUILD_FAILURE),
                         SYSTEM_FAILURE_EXIT_CODE=str(SYSTEM_FAILURE), BUILD_EXIT_CODE_FILE=str(directory / "code"))
        self.directory = directory

    def stage(self, name, *args, **more):
        return self("gitlab-executor", name, *args, **more)

    def script(self, text):
        """Of the runner: it takes the path of the script and the name of the stage."""
        path = self.directory / "script"
        path.write_text("#!/usr/bin/env bash\nset -eo pipefail\n: | eval " + "$'" + text.replace("'", "\\'") + "'\n")
        return path


def test_gitlab(sticky, directory, home):
    job = GitLab(sticky.url, directory)
    config = json.loads(job.stage("config"))
    assert config["builds_dir"] == f"{home}/gitlab-4711/builds" and config["cache_dir"] == f"{home}/cache"
    assert job.stage("prepare").strip() == os.uname().nodename
    job.stage("run", job.script(f"mkdir -p {config['builds_dir']}; echo source > {config['builds_dir']}/file"), "get_sources")
    said = job.stage("run", job.script(f"cat {config['builds_dir']}/file; exit 3"), "step_script", code=BUILD_FAILURE)
    assert said == "source\n" and (directory / "code").read_text() == "3\n"
    job.stage("cleanup")
    assert not (home / "gitlab-4711").exists() and words_of(sticky) == {"gitlab-4711"}
    job.stage("run", job.script("true"), "after_script", code=SYSTEM_FAILURE)
    sticky.refusing = True
    for stage in "config", "prepare", "cleanup":
        job.stage(stage, code=SYSTEM_FAILURE)


def test_gitlab_cancels(server, directory):
    """SIGTERM goes to the process group."""
    job = GitLab(server.url, directory, "4712")
    job.stage("config")
    p = job.start("gitlab-executor", "run", job.script("echo up; exec sleep 1000.4712"), "step_script")
    assert p.stdout.readline() == "up\n"
    poll(lambda: pids_with("1000.4712"), what="the command")
    os.killpg(p.pid, signal.SIGTERM)
    assert p.wait(30) == BUILD_FAILURE and not pids_with("1000.4712")
    job.stage("cleanup")


def test_gitlab_with_the_jobs_own_token(configured, user, directory):
    """id_tokens of a job are variables of it. The runner has a token that is none."""
    s = configured(f"[listener main]\naddress = ws://127.0.0.1:0\n[identity a]\nuser = {user.pw_name}\ntoken-sha256 = {digest('own')}\n")
    job = GitLab(s.url, directory, "4713")
    job.env["EXECD_TOKEN"] = "none"
    job.stage("config", code=SYSTEM_FAILURE)
    job.env["CUSTOM_ENV_EXECD_TOKEN"] = "own"
    job.stage("config")
    job.stage("cleanup")


# How an agent runs a hook: it sources it, and the last status counts (https://buildkite.com/docs/agent/hooks).
SOURCED = '. "$0"; exit $?'


class Buildkite(Job):
    """https://buildkite.com/docs/pipelines/configure/environment-variables"""

    def __init__(self, url, directory, command, **more):
        checkout = directory / "checkout"
        checkout.mkdir(exist_ok=True)
        (checkout / "source").write_text("source\n")
        (directory / "env").write_text('GREETING="x"\nLINES_="x"\n')
        super().__init__(url, directory, BUILDKITE="true", BUILDKITE_JOB_ID="0190-ab", BUILDKITE_COMMAND=command,
                         BUILDKITE_SHELL="/bin/bash -e -c", BUILDKITE_BUILD_CHECKOUT_PATH=str(checkout),
                         BUILDKITE_ENV_FILE=str(directory / "env"), GREETING="it's \"me\"", LINES_="one\ntwo", **more)
        self.checkout = checkout

    def hook(self, name, **more):
        return self("bash", "-c", SOURCED, CI / "buildkite" / name, cwd=self.checkout, **more)


def test_buildkite(sticky, directory, home):
    job = Buildkite(sticky.url, directory, "cat source\nread x || echo \"$GREETING $LINES_ $BUILDKITE\"\n"
                    "[ \"$PWD\" = \"$BUILDKITE_BUILD_CHECKOUT_PATH\" ]\nmkdir out; echo made > out/file; false; echo not reached",
                    BUILDKITE_ARTIFACT_PATHS="out/*")
    assert job.hook("command", code=1) == "source\nit's \"me\" one\ntwo true\n"
    assert (job.checkout / "out/file").read_text() == "made\n"
    job.hook("pre-exit")
    assert not (home / "buildkite-0190-ab").exists() and words_of(sticky) == {"buildkite-0190-ab"}
    job.env["BUILDKITE_COMMAND"] = "exit 254"
    assert "counts as 1" in job.hook("command", code=1)
    job.hook("pre-exit")
    sticky.refusing = True
    job.hook("command", code=125)


def test_buildkite_cancels(server, directory):
    """https://buildkite.com/docs/agent/lifecycle: SIGTERM to the process group, and SIGKILL after 10 s."""
    job = Buildkite(server.url, directory, "echo up; sleep 1000.190")
    p = job.start("bash", "-c", SOURCED, CI / "buildkite/command")
    assert p.stdout.readline() == "up\n"
    os.killpg(p.pid, signal.SIGTERM)
    assert p.wait(9) == 143 and not pids_with("1000.190")
    job.hook("pre-exit")


def test_jenkins(sticky, directory, home):
    """https://www.jenkins.io/doc/book/pipeline/jenkinsfile/#using-environment-variables"""
    workspace = directory / "workspace"
    workspace.mkdir()
    (workspace / "source").write_text("source\n")
    job = Job(sticky.url, directory, BUILD_TAG="jenkins-folder-a job%2Fmain-17", WORKSPACE=str(workspace))
    job("execd-jenkins", "--begin")
    assert job("execd-jenkins", "sh", "-c", "cat source; echo made > made; exit 4", code=4) == "source\n"
    job("execd-jenkins", "--fetch", "made")
    assert (workspace / "made").read_text() == "made\n"
    job("execd-jenkins", "--end")
    assert words_of(sticky) == {"jenkins-folder-a+job%2Fmain-17"} and not list(home.glob("jenkins*"))
    job("execd-jenkins", "true", code=125)


class GitHub(Job):
    """https://docs.github.com/en/actions/how-tos/managing-self-hosted-runners/customizing-the-containers-used-by-jobs"""

    def __init__(self, url, directory):
        if not shutil.which("jq"):
            pytest.skip("THE HOOK OF GITHUB IS NOT TESTED: the package jq is missing")
        super().__init__(url, directory)
        self.work, self.state, self.n = directory / "_work", {}, 0
        for name in "_temp/_runner_file_commands", "_temp/_github_workflow", "_temp/_runner_hook_responses", "_actions/a", "repo/repo":
            (self.work / name).mkdir(parents=True)
        (self.work / "_actions/a/index.txt").write_text("an action\n")
        (self.work / "_temp/_github_workflow/event.json").write_text("{}\n")

    def message(self, command, args):
        self.response = self.work / f"_temp/_runner_hook_responses/{command}.json"
        self.response.touch()
        return json.dumps({"command": command, "responseFile": str(self.response), "args": args, "state": self.state})

    def tell(self, command, args, **more):
        said = self("bash", "-e", CI / "github-hook.sh", input=self.message(command, args), **more)
        if text := self.response.read_text():
            self.state = json.loads(text)["state"]
        return said

    def prepare(self, **more):
        mounts = {"/__w": "", "/__w/_temp": "/_temp", "/github/workflow": "/_temp/_github_workflow", "/__w/_actions": "/_actions"}
        return self.tell("prepare_job", {"container": {
            "image": "any", "workingDirectory": "/__w/repo/repo", "createOptions": None, "environmentVariables": {}, "userMountVolumes": [],
            "systemMountVolumes": [{"sourceVolumePath": f"{self.work}{s}", "targetVolumePath": t, "readOnly": False} for t, s in mounts.items()]},
            "services": more.pop("services", [])}, **more)

    def args(self, script, **variables):
        (self.work / "_temp/step.sh").write_text(script)
        return {"entryPoint": "bash", "entryPointArgs": ["--noprofile", "--norc", "-e", "-o", "pipefail", "/__w/_temp/step.sh"],
                "environmentVariables": {"GITHUB_OUTPUT": "/__w/_temp/_runner_file_commands/out", "GITHUB_WORKSPACE": "/__w/repo/repo",
                                         "GITHUB_EVENT_PATH": "/github/workflow/event.json", **variables},
                "prependPath": ["/__w/_actions/a", ""], "workingDirectory": "/__w/repo/repo"}

    def step(self, script, code=0, **variables):
        (self.work / "_temp/_runner_file_commands/out").write_text("")
        return self.tell("run_script_step", self.args(script, **variables), code=code)


def test_github(sticky, directory, home):
    job = GitHub(sticky.url, directory)
    job.prepare()
    here = job.state["dir"]
    assert here.startswith(f"{home}/github-") and json.loads(job.response.read_text())["isAlpine"] is False
    said = job.step("cat /__w/_actions/a/index.txt $GITHUB_EVENT_PATH; echo \"$TEXT\"; env | grep ^INPUT_; echo ${PATH%%:*}; "
                    "echo found=7 >> $GITHUB_OUTPUT; [ $PWD = $GITHUB_WORKSPACE ]; echo source > file; exit 3", code=3,
                    **{"TEXT": "it's $HOME\n2", "INPUT_FETCH-DEPTH": "1 2"})
    assert said == f"an action\n{{}}\nit's $HOME\n2\nINPUT_FETCH-DEPTH=1 2\n{here}/_actions/a\n"
    assert (job.work / "_temp/_runner_file_commands/out").read_text() == "found=7\n"
    assert job.step("cat file") == "source\n"
    assert "no containers" in job.tell("run_container_step", {"image": "x"}, code=1)
    job.tell("cleanup_job", None)
    assert list(home.glob("github*")) == [] and len(words_of(sticky)) == 1
    assert "::error title=execd::The host of this job failed" in job.step("true", code=1)
    assert "no service containers" in job.prepare(services=[{"image": "redis"}], code=1)
    sticky.refusing = True
    assert "::error title=execd::There is no host" in job.prepare(code=1)


def test_github_cancels(server, directory):
    """SIGINT to the hook alone."""
    job = GitHub(server.url, directory)
    job.prepare()
    p = job.start("bash", "-e", CI / "github-hook.sh")
    p.stdin.write(job.message("run_script_step", job.args("echo up; exec sleep 1000.77")))
    p.stdin.close()
    assert p.stdout.readline() == "up\n"
    os.kill(p.pid, signal.SIGINT)
    assert p.wait(7) == 143 and not pids_with("1000.77")
    job.tell("cleanup_job", None)
