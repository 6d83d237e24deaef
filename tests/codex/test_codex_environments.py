# SPDX-License-Identifier: ISC
"""Environments of OpenAI's Agents API: the real Codex as harness, a model of the service, the real
`codex exec-server forward`, and execd with a listener that asks the kernel who comes (`auth = peer-user`)."""
import os
import re
import signal
import subprocess

import pytest

from test_codex import (BUILD, clean, configured, conftest, directory, gate, log, mode, program, spawn, start, user)  # noqa: F401
from test_environments import HIS, MINE, environment, listener, root_alone
from test_two_identities import other  # noqa: F401
from rendezvous import Rendezvous


@pytest.fixture(autouse=True)
def newer(program):  # noqa: F811
    """`forward` came with 0.171."""
    r = subprocess.run([program, "exec-server", "forward", "--help"], capture_output=True, text=True)
    if "--connect" not in r.stdout:
        pytest.skip("FORWARD IS NOT TESTED: this Codex has none")


@pytest.fixture
def service():
    s = Rendezvous()
    yield s
    s.stop()


@pytest.fixture
def forward(program, service, tmp_path, log):  # noqa: F811
    """Starts `codex exec-server forward` as that user, for an environment: forward(name, environment, url)."""
    started = []
    binary = os.open(program, os.O_PATH)  # users do not reach root's cache

    def begin(name, environment_id, url):
        for at in tmp_path, *tmp_path.parents[:2]:
            at.chmod(0o755)
        home = tmp_path / f"home-{len(started)}"
        home.mkdir()
        if os.getuid() == 0:
            os.chmod(home, 0o777)
        with open(log / f"forward-{len(started)}", "wb") as err:
            child = subprocess.Popen(
                [f"/proc/self/fd/{binary}", "exec-server", "forward", "--remote", service.url, "--environment-id",
                 environment_id, "--connect", url, "--registration-bearer-stdin"], stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL, stderr=err, pass_fds=[binary], cwd="/",
                env={"PATH": "/usr/bin:/bin", "CODEX_HOME": str(home), "RUST_LOG": "warn"},
                **({"user": name, "group": "nogroup", "extra_groups": []} if os.getuid() == 0 else {}))
        child.stdin.write(b"sk-test\n")
        child.stdin.close()
        started.append(child)
        service.wait_executor(environment_id)
        return child

    yield begin
    for child in started:
        child.kill()
        child.wait()
    os.close(binary)


@pytest.fixture
def harness(start, service):  # noqa: F811
    def begin(environment_id, **more):
        return start(env={"CODEX_EXEC_SERVER_NOISE_REGISTRY_URL": service.url, "CODEX_EXEC_SERVER_NOISE_AUTH_TOKEN": "tok",
                          "CODEX_EXEC_SERVER_NOISE_ENVIRONMENT_ID": environment_id}, **more)
    return begin


def end(service, environment_id, child):
    child.kill()
    child.wait()
    service.wait_executor(environment_id, there=False)


def test_a_command(configured, user, service, forward, harness):  # noqa: F811
    s = configured(listener() + environment("one", user, MINE))
    forward(MINE, "env_1", s.url)
    codex = harness("env_1")
    ran = codex.run("id -un; tr '\\0' ' ' </proc/$PPID/cmdline")
    words = ran.end()
    assert words[0] == user.pw_name and "execd-runner:" in words and ran.code == 0, words
    codex.finish()
    assert service.bearers == ["Bearer sk-test"]
    assert re.search(rf"session \w+: opened .*websocket 127.0.0.1:\d+ of {MINE}, listener agents", s.log), s.log


def test_front_end_and_broker_die(configured, user, service, forward, harness, gate):  # noqa: F811
    """In the middle of a command, of which each line comes once."""
    s = configured(listener() + environment("one", user, MINE))
    forward(MINE, "env_1", s.url)
    codex = harness("env_1")
    ran = codex.run("exec 3<gate; seq 1 200; read x <&3; seq 201 400; read x <&3; seq 401 600; exit 6", yield_time_ms=250)
    ran.until("200")
    os.kill(s.frontend(), signal.SIGKILL)
    gate()
    ran.until("400")
    os.kill(s.broker, signal.SIGKILL)
    gate()
    assert ran.end() == [str(n) for n in range(1, 601)] and ran.code == 6
    assert codex.run("echo after").end() == ["after"]
    codex.finish()


def test_forward_starts_again(configured, user, service, forward, harness, gate):  # noqa: F811
    """It has another key then, so the model is told that its command is lost. The next one works."""
    s = configured(listener() + environment("one", user, MINE))
    first = forward(MINE, "env_1", s.url)
    codex = harness("env_1")
    ran = codex.run("exec 3<gate; echo begun; read x <&3; echo more", yield_time_ms=250)
    ran.until("begun")
    end(service, "env_1", first)
    forward(MINE, "env_1", s.url)
    while "failed to resume" not in (said := str(codex.call("write_stdin", session_id=ran.session, chars=""))):
        assert "Process running" in said, said
    assert codex.run("echo after").end() == ["after"]
    codex.finish()


@pytest.mark.skipif(not conftest.TORTURE, reason="LEFT TO scripts/torture suites: it takes half a minute")
def test_forward_comes_for_another_environment(configured, user, service, forward, harness, gate):  # noqa: F811
    """The other one's model has a session of its own, beside the one that waits; the first one's is told what it lost
    when somebody comes for it again."""
    s = configured(listener() + environment("one", user, MINE))
    first = forward(MINE, "env_1", s.url)
    codex = harness("env_1")
    ran = codex.run("exec 3<gate; echo begun; read x <&3; echo more", yield_time_ms=250)
    ran.until("begun")
    end(service, "env_1", first)
    forward(MINE, "env_2", s.url)
    second = harness("env_2")
    assert second.run("echo second").end() == ["second"]
    ids = re.findall(r"session (\w+): opened", s.log)
    assert len(set(ids)) == 2 and f"session {ids[0]}: detached" in s.log, s.log
    forward(MINE, "env_1", s.url)
    while "failed to resume" not in (said := str(codex.call("write_stdin", session_id=ran.session, chars=""))):
        assert "Process running" in said, said
    assert codex.run("echo after").end() == ["after"]
    assert second.run("echo again").end() == ["again"]


@root_alone
def test_two(mode, configured, user, other, service, forward, harness, directory):  # noqa: F811
    """Neither environment reads the other's files or comes in by the port; each command is its user's."""
    if mode == "user":
        pytest.skip("TWO USERS ARE NOT TESTED: this needs root")
    s = configured(listener() + environment("one", user, MINE) + environment("two", other, HIS))
    both = ((user, MINE, "env_1"), (other, HIS, "env_2"))
    for who, name, its in both:
        forward(name, its, s.url)
        (directory / who.pw_name).write_text("secret\n")
        (directory / who.pw_name).chmod(0o600)
        os.chown(directory / who.pw_name, who.pw_uid, who.pw_gid)
    execctl = BUILD / "client/execctl"
    for who, his, its in (user, other, "env_1"), (other, user, "env_2"):
        codex = harness(its)
        said = codex.run(f"id -un; cat {directory}/{who.pw_name}; cat {directory}/{his.pw_name} 2>&1; "
                         f"{execctl} --url {s.url} run id -un 2>&1; echo $?").end()
        text = " ".join(said)
        assert said[:2] == [who.pw_name, "secret"] and "Permission denied" in text, text
        assert said[-1] == "255" and "401" in text and text.count(his.pw_name) == 1, text
        codex.finish()
