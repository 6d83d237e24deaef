# SPDX-License-Identifier: ISC
"""contrib/kubernetes: the image as its Containerfile makes it, and the four levels of levels.yaml. There is no cluster
here: podman runs what each manifest says, with options that are made from its securityContext.
"""
import http.client
import os
import pathlib
import resource
import shutil
import signal
import socket
import subprocess

import pytest
from conftest import BUILD, PATIENCE_S, ROOT, digest
from execctl import Execctl

HERE = pathlib.Path(__file__).parents[2] / "contrib/kubernetes"
PODMAN = shutil.which("podman", path="/usr/bin:/usr/local/bin")
TOKEN = "a-token-of-the-tests"
CAPABILITIES = ("add", "drop")

# crun takes one hierarchy of control groups, and the pods get none at all.
PREPARE = """
    if [ "$(stat -fc %T /sys/fs/cgroup)" != cgroup2fs ]; then
        umount -R -l /sys/fs/cgroup || :
        mount -t cgroup2 none /sys/fs/cgroup
    fi
    exec "$@" """

# For each key of a securityContext, the options of podman.
OPTIONS = {
    "runAsUser": lambda v: [],      # with the group, below
    "runAsGroup": lambda v: [],
    "runAsNonRoot": lambda v: [],
    "allowPrivilegeEscalation": lambda v: [] if v else ["--security-opt=no-new-privileges"],
    "capabilities": lambda v: [f"--cap-{k}={c}" for k in CAPABILITIES for c in v.get(k, [])],
    "procMount": lambda v: {"Unmasked": ["--security-opt=unmask=ALL"], "Default": []}[v],
    "seccompProfile": lambda v: {"Unconfined": ["--security-opt=seccomp=unconfined"], "RuntimeDefault": []}[v["type"]],
}


def manifests(name):
    yaml = pytest.importorskip("yaml", reason="PODS ARE NOT TESTED: the package python3-yaml is missing")
    return list(yaml.safe_load_all((HERE / name).read_text()))


def levels():
    return {m["metadata"]["name"]: m["spec"] for m in manifests("levels.yaml")}


def context(spec):
    return spec["containers"][0]["securityContext"]


def options(ctx):
    user = f"--user={ctx['runAsUser']}:{ctx.get('runAsGroup', ctx['runAsUser'])}"
    return [user, *(o for k, v in ctx.items() for o in OPTIONS[k](v))]


def execd_manifest():
    return {m["kind"]: m for m in manifests("execd.yaml")}


def seconds(text):
    return int(text[:-1]) * {"s": 1, "m": 60, "h": 3600}[text[-1]]


class Podman:
    """An engine with everything in one directory."""

    def __init__(self, at):
        self.at = at
        self.command = ["unshare", "-m", "sh", "-ec", PREPARE, "sh", PODMAN, "--root", str(at / "root"),
                        "--runroot", str(at / "run"), "--storage-driver=vfs", "--cgroup-manager=cgroupfs",
                        "--events-backend=none"]
        # The engine's own defaults are more than this test may have.
        self.limits = [f"--ulimit={name}={soft}:{hard}" for name, (soft, hard) in {
            "nofile": resource.getrlimit(resource.RLIMIT_NOFILE), "nproc": (4096, 4096)}.items()]

    def __call__(self, *words):
        return subprocess.run([*self.command, *map(str, words)], capture_output=True, text=True, timeout=120)

    def argv(self, ctx, *words):
        """What runs a container that has this securityContext."""
        return ["run", "--rm", "--cgroups=disabled", "--network=host", *self.limits, *options(ctx), *map(str, words)]


@pytest.fixture(scope="session")
def podman(tmp_path_factory):
    if not ROOT:
        pytest.skip("PODS ARE NOT TESTED: podman is started as root here")
    if PODMAN is None:
        pytest.skip("PODS ARE NOT TESTED: the package podman is missing")
    at = tmp_path_factory.mktemp("pods")
    # What README.md says.
    subprocess.run([HERE / "stage", BUILD, at / "tree"], check=True, timeout=120)
    p = Podman(at)
    r = p("build", "--isolation=chroot", "--network=host", "-q", "-t", "localhost/execd",
          "-f", HERE / "Containerfile", at)
    assert r.returncode == 0, r
    yield p
    # The files of an engine belong to many users.
    p("rm", "-f", "-a")
    shutil.rmtree(at, ignore_errors=True)


@pytest.mark.nightly
def test_the_image_is_small(podman):
    r = podman("image", "inspect", "--format", "{{.Size}}", "localhost/execd")
    print(f"image: {int(r.stdout) / 1e6:.1f} MB")
    assert int(r.stdout) <= 25e6


# What doctor says of each: its exit status, and lines that begin so.
SAID = {
    "execd-root": (5, ["MISSING  pid and mount namespace of a session: Operation not permitted; execd does not start like "
                       "this; in a container: the capability SYS_ADMIN, or execd run as an ordinary user",
                       "MISSING  pid namespace and its /proc", "MISSING  a command in a sandbox"], []),
    "execd-sys-admin": (0, ["ok       pid and mount namespace of a session",
                            "without  user namespace made by root: opening its descriptor (CAP_SYS_PTRACE)",
                            "ok       user namespace", "ok       pid namespace and its /proc",
                            "ok       a command in a sandbox"], ["MISSING"]),
    "execd-user": (5, ["ok       user namespace",
                       "MISSING  pid namespace and its /proc: Operation not permitted; in a container: nothing mounted "
                       "over parts of /proc (podman: --security-opt unmask=ALL; docker: systempaths=unconfined; "
                       "Kubernetes: procMount: Unmasked)", "MISSING  a command in a sandbox",
                       "ok       Landlock and seccomp alone"], []),
    "execd-user-unmasked": (0, ["ok       user namespace", "ok       pid namespace and its /proc",
                                "ok       a command in a sandbox"], ["MISSING"]),
}


@pytest.mark.nightly
@pytest.mark.parametrize("level", SAID)
def test_what_doctor_says_of_each_level(podman, level):
    spec = levels()[level]
    code, said, unsaid = SAID[level]
    r = podman(*podman.argv(context(spec), "localhost/execd", *spec["containers"][0]["args"]))
    print(r.stdout, r.stderr)
    assert r.returncode == code, r
    for begin in said:
        assert any(line.startswith(begin) for line in r.stdout.splitlines()), (begin, r)
    for begin in unsaid:
        assert not any(line.startswith(begin) for line in r.stdout.splitlines()), (begin, r)


@pytest.mark.nightly
def test_an_engine_that_refuses_chroot(podman):
    """podman's own filter permits a user namespace and a mount in it, but no chroot(2): nobody can watch memory."""
    ctx = {k: v for k, v in context(levels()["execd-user-unmasked"]).items() if k != "seccompProfile"}
    r = podman(*podman.argv(ctx, "localhost/execd", "doctor"))
    assert r.returncode == 0 and "ok       a command in a sandbox\n" in r.stdout, r


class Pod:
    """execd with the configuration of execd.yaml, on a port that is free here."""

    def __init__(self, podman, ctx, at, more=""):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        text = execd_manifest()["Secret"]["stringData"]["execd.conf"]
        for old, new in (("0.0.0.0:8766", f"127.0.0.1:{self.port}"), ("0" * 63 + "1", digest(TOKEN))):
            assert text.count(old) == 1
            text = text.replace(old, new)
        at.mkdir(mode=0o755)
        (at / "execd.conf").write_text(text + more)
        self.log = open(at / "log", "w+")
        argv = podman.argv(ctx, "-v", f"{at}:/etc/execd:ro", "localhost/execd")
        self.child = subprocess.Popen([*podman.command, *argv], stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.first = self.child.stdout.readline()
        self.execctl = Execctl(at, f"ws://127.0.0.1:{self.port}", EXECD_TOKEN=TOKEN)

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def get(self, path):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        c.request("GET", path)
        return c.getresponse().status

    def stop(self):
        if self.log.closed:
            return
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGINT)
            self.child.wait(PATIENCE_S)
        self.child.stdout.close()
        self.log.close()


@pytest.fixture
def pod(podman, tmp_path):
    os.chmod(tmp_path, 0o755)
    started = []

    def start(level, more=""):
        started.append(Pod(podman, context(levels()[level]), tmp_path / f"etc{len(started)}", more))
        return started[-1]

    yield start
    for p in started:
        p.stop()


SANDBOXED = ("run", "-C", "/work", "-s", "read-only", "/bin/sh", "-c")


@pytest.mark.nightly
def test_the_default_root_serves_nobody(pod):
    p = pod("execd-root")
    assert p.first == "" and p.child.wait(PATIENCE_S) not in (0, 125, 126, 127)
    assert "this host does not give a session a new pid and mount namespace: Operation not permitted" in p.said()


@pytest.mark.nightly
@pytest.mark.parametrize("level", ["execd-sys-admin", "execd-user-unmasked"])
def test_a_sandbox_holds_in_a_pod(pod, level):
    p = pod(level)
    assert p.first.startswith("ws://"), p.said()
    r = p.execctl(*SANDBOXED, "echo done; echo no >/work/no")
    assert r.out == b"done\n" and "Read-only file system" in str(r.err), (r, p.said())
    assert p.get("/readyz") == 200 and p.get("/livez") == 200


@pytest.mark.nightly
def test_an_ordinary_user_is_refused_or_gets_less_as_the_operator_says(pod):
    p = pod("execd-user")
    assert p.execctl.ok("run", "-C", "/work", "/bin/sh", "-c", "echo done") == b"done\n"
    r = p.execctl(*SANDBOXED, "echo done")
    assert r.code == 125 and r.out == b"", (r, p.said())
    assert "mounting its own /proc: " in p.said()
    p.stop()
    p = pod("execd-user", "[sandbox]\nlandlock-only = yes\nhide = none\nprotected-names = none\nnested-git = off\n")
    r = p.execctl(*SANDBOXED, "echo done; echo no >/work/no")
    assert r.out == b"done\n" and "Permission denied" in str(r.err), (r, p.said())
    assert "landlock-only: no new /proc can be mounted here" in p.said()


def test_the_manifest_is_the_level_that_is_tested():
    spec = execd_manifest()["StatefulSet"]["spec"]["template"]["spec"]
    level = levels()["execd-user-unmasked"]
    assert context(spec) == context(level) and spec["hostUsers"] is level["hostUsers"] is False
    assert set(SAID) == set(levels())
    for one in levels().values():
        assert set(context(one)) <= set(OPTIONS), "every key is turned into what podman does"


def test_the_manifest_drains_in_time():
    m = execd_manifest()
    spec = m["StatefulSet"]["spec"]["template"]["spec"]
    keys = dict(line.split(" = ", 1) for line in m["Secret"]["stringData"]["execd.conf"].splitlines() if " = " in line)
    assert spec["terminationGracePeriodSeconds"] >= seconds(keys["drain-notice"]) + seconds(keys["drain-timeout"]) + 15
    box = spec["containers"][0]
    assert [box[k]["httpGet"]["path"] for k in ("readinessProbe", "livenessProbe")] == ["/readyz", "/livez"]
    assert keys["address"].endswith(f":{box['ports'][0]['containerPort']}")
    assert m["Service"]["spec"]["selector"] == m["StatefulSet"]["spec"]["template"]["metadata"]["labels"]
    # The readiness probe sees a drain before no new session is opened.
    assert seconds(keys["drain-notice"]) > box["readinessProbe"]["periodSeconds"]
    assert {v["name"] for v in spec["volumes"]} == {v["name"] for v in box["volumeMounts"]}
