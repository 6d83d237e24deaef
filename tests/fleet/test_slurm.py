# SPDX-License-Identifier: ISC
"""contrib/slurm with a real Slurm: a controller, and a node in namespaces of its own,
with contrib/slurm and keys of this run. Its client is execctl as an
ordinary user beside the controller.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

import pytest
from conftest import EXECD, ROOT, SANITIZED, poll
from execctl import EXECCTL, Execctl
from fleet import TREE, Namespace, setns

CONTRIB = TREE / "contrib/slurm"
CONTROLLER, NODE = "10.88.0.1", "10.88.0.2"
PROGRAMS = "slurmctld", "slurmd", "munged"
JOBS = "/var/log/slurm/jobs"
SITE = """ClusterName=test
SlurmctldHost=controller({controller})
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={d}/munge/socket
CredType=cred/munge
StateSaveLocation={d}/state
SlurmdSpoolDir={d}/spool
SlurmctldPidFile={d}/slurmctld.pid
SlurmdPidFile={d}/slurmd.pid
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
NodeName=node1 NodeAddr={node} CPUs={cpus} RealMemory=2000 State=UNKNOWN
PartitionName=main Nodes=node1 Default=YES PriorityTier=1 OverSubscribe=NO
PartitionName=urgent Nodes=node1 PriorityTier=2 OverSubscribe=NO
"""


def needs():
    if not ROOT:
        return "their node is in namespaces, which need root"
    if SANITIZED:
        return "sanitizers take more memory and time than the jobs have"
    missing = [p for p in PROGRAMS if not shutil.which(p, path="/usr/sbin")]
    if missing:
        return f"there is no {', '.join(missing)} (packages slurm-wlm and munge)"
    if pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists():
        return "with control groups of version 2 slurmd needs a systemd of its own; this is written for version 1"
    return None


class Daemon:
    """A program in the foreground, which ends with the test."""

    def __init__(self, log, argv, **more):
        self.log = log
        with open(log, "wb") as f:
            self.child = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=f, stderr=f, **more)

    def said(self):
        return self.log.read_text(errors="replace")[-3000:]

    def stop(self, sig=signal.SIGTERM):
        if self.child.poll() is None:
            self.child.send_signal(sig)
            self.child.wait(30)


class Cluster:
    # Process 1 of the node is slurmd: all of its jobs die with it. Its control groups are below those of this test.
    START_NODE = """
        hostname node1; mkdir "$1/cgroup"
        for c in memory freezer cpuset devices cpuacct; do
            mkdir "$1/cgroup/$c"; mount -t cgroup -o $c none "$1/cgroup/$c"; done
        exec slurmd -D"""

    def __init__(self, d, user):
        self.d, self.user, self.started = d, user, []
        self.env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "SLURM_CONF": str(d / "slurm.conf")}
        self.hub, self.node_net = Namespace(), Namespace()
        self.hub.ip("link", "add", "v0", "type", "veth", "peer", "name", "eth0", "netns", self.node_net.holder.pid)
        for n, link, address in (self.hub, "v0", CONTROLLER), (self.node_net, "eth0", NODE):
            n.ip("addr", "add", f"{address}/24", "dev", link)
            n.ip("link", "set", link, "up")
        self.write_files()

    def write_files(self):
        d = self.d
        text = (CONTRIB / "slurm.conf").read_text()
        assert text.count(JOBS) == 1
        site = SITE.format(d=d, controller=CONTROLLER, node=NODE, cpus=os.cpu_count())
        (d / "slurm.conf").write_text(site + text.replace(JOBS, f"{d}/jobs"))
        (d / "cgroup.conf").write_text(f"CgroupPlugin=cgroup/v1\nCgroupMountpoint={d}/cgroup\n" + (CONTRIB / "cgroup.conf").read_text())
        for name in "state", "spool", "munge":
            (d / name).mkdir()
        (d / "munge/key").write_bytes(os.urandom(1024))
        (d / "munge/key").chmod(0o400)
        for path in d / "munge", d / "munge/key":
            shutil.chown(path, "munge", "munge")

    def start(self):
        d, m = self.d, self.d / "munge"
        munged = ["setpriv", "--reuid=munge", "--regid=munge", "--clear-groups", "munged", "-F", "--force", f"--key-file={m}/key",
                  f"--socket={m}/socket", f"--pid-file={m}/pid", f"--log-file={m}/log", f"--seed-file={m}/seed"]
        self.run("munged", munged)
        poll((m / "socket").exists, what="munged")
        self.run("slurmctld", ["unshare", "-u", "sh", "-ec", "hostname controller; exec slurmctld -D"])
        self.start_node()
        return self

    def run(self, name, argv):
        self.started.append(Daemon(self.d / f"{name}.log", argv, env=self.env))
        return self.started[-1]

    def start_node(self):
        self.slurmd = self.run("slurmd", [
            "nsenter", f"--net={self.node_net.path}", "unshare", "-u", "-p", "-m", "-C", "--fork", "--kill-child", "--mount-proc",
            "sh", "-ec", self.START_NODE, "sh", self.d])
        poll(lambda: self.sh("sinfo", "-h", "-p", "main", "-o", "%T") == "idle\n", what=f"idle node: {[s.said() for s in self.started]}")

    def sh(self, *argv, **more):
        return subprocess.run(argv, env=self.env, capture_output=True, text=True, **more).stdout

    def as_user(self, *argv):
        return ["setpriv", f"--reuid={self.user.pw_uid}", f"--regid={self.user.pw_gid}", "--clear-groups", *map(str, argv)]

    def execctl(self, *args, options="--mem=200"):
        env = {**self.env, "HOME": self.user.pw_dir, "EXECD": str(EXECD), "EXECD_URL": f"ask:{CONTRIB}/execd-ask-slurm {options}"}
        return subprocess.Popen(self.as_user(EXECCTL, *args), env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def done(self, *args, code=0, **more):
        p = self.execctl(*args, **more)
        out, err = p.communicate(timeout=90)
        assert p.returncode == code, (p.returncode, out[-300:], err, [s.said() for s in self.started])
        return out, err.decode()

    def up(self, *then, **more):
        """A command that runs."""
        p = self.execctl("run", "sh", "-c", "echo up; " + (then[0] if then else "exec sleep 1000"), **more)
        assert p.stdout.readline() == b"up\n", p.stderr.read()
        return p

    def lost(self, p, within):
        """It ends with 254, for the lease is over. Returns after how long, and what was said."""
        began = time.monotonic()
        _, err = p.communicate(timeout=90)
        took = time.monotonic() - began
        assert p.returncode == 254 and b"the lease is over" in err and took < within, (p.returncode, took, err)
        return took, err.decode()

    def empty(self):
        poll(lambda: not self.sh("squeue", "-h").strip(), what="end of all jobs")

    def close(self):
        self.slurmd.stop(signal.SIGKILL)
        for s in reversed(self.started):
            s.stop()
        self.node_net.close()
        self.hub.close()


@pytest.fixture(scope="module")
def slurm(user):
    if why := needs():
        pytest.skip(f"SLURM IS NOT TESTED: {why}")
    before = control_groups()
    with tempfile.TemporaryDirectory(prefix="execd-slurm-test-", ignore_cleanup_errors=True) as d:
        os.chmod(d, 0o755)
        c = Cluster(pathlib.Path(d), user)
        with open("/proc/self/ns/net", "rb") as here, open(c.hub.path, "rb") as hub:
            setns(hub)
            try:
                yield c.start()
            finally:
                setns(here)
                c.close()
                remove(control_groups() - before)


def control_groups():
    """Those of Slurm, which leaves its own."""
    return {p for p in pathlib.Path("/sys/fs/cgroup").glob("*/**/slurm_node1") if p.is_dir()}


def remove(groups):
    for top in groups:
        for p in sorted([top, *filter(pathlib.Path.is_dir, top.rglob("*"))], reverse=True):
            p.rmdir()


@pytest.fixture
def cluster(slurm):
    yield slurm
    slurm.empty()
    poll(lambda: not list(pathlib.Path("/tmp").glob("execd-slurm.*")), what="end of the leases' files")


def test_without_slurm(directory):
    """Nothing runs, and the reason is told."""
    r = Execctl(directory, f"ask:{CONTRIB}/execd-ask-slurm", XDG_RUNTIME_DIR=str(directory), PATH=str(tools(directory)))("run", "true")
    assert r.code == 125 and "srun: not found" in r.err and "ended with status 1 before it answered" in r.err, r
    assert not list(directory.glob("execd-slurm.*"))


def tools(directory):
    """A PATH without Slurm."""
    (directory / "bin").mkdir()
    for name in "sh", "mktemp", "rm", "od", "tr", "sha256sum", "mkfifo", "cat", "grep", "sed":
        (directory / "bin" / name).symlink_to(shutil.which(name))
    return directory / "bin"


@pytest.mark.nightly
def test_a_host_each_time(cluster):
    """From the start of execctl to the end of a command on the node. The times are printed: a busy machine takes its own."""
    times = []
    while len(times) < 3:
        began = time.monotonic()
        assert cluster.done("run", "hostname")[0] == b"node1\n"
        times.append(time.monotonic() - began)
        cluster.empty()
    print("a host, a command and its end:", " ".join(f"{t:.2f} s" for t in times))


@pytest.mark.nightly
def test_output_and_status(cluster):
    began = time.monotonic()
    out, _ = cluster.done("run", "sh", "-c", "head -c 100000000 /dev/zero; exit 7", code=7)
    print(f"100 MB: {time.monotonic() - began:.2f} s with the start of the job")
    assert len(out) == 100000000 and out.count(b"\0") == len(out)


@pytest.mark.nightly
def test_a_cut_connection_is_resumed(cluster):
    p = cluster.up("i=0; while [ $i -lt 40 ]; do i=$((i + 1)); echo $i; sleep .1; done; exit 5")
    port, = re.findall(rf'{NODE}:(\d+) +users:\(\("execctl"', cluster.sh("ss", "-Htnp", "dst", NODE))
    lines, cuts = [], 0
    for _ in range(3):
        lines.append(p.stdout.readline())
        cuts += "ESTAB" in cluster.sh("ss", "-Kt", "dst", NODE, "dport", f"= :{port}")
    lines += p.stdout.readlines()
    assert p.wait(30) == 5 and cuts == 3, (cuts, p.stderr.read())
    assert lines == [b"%d\n" % i for i in range(1, 41)]


@pytest.mark.nightly
def test_limits(cluster):
    """A job has the processors that it asked for. Its limit of memory kills the command, and the session goes on."""
    assert cluster.done("run", "nproc")[0] == b"1\n"
    out, err = cluster.done("run", "sh", "-c", "head -c 400M /dev/zero | tail -c 300M | wc -c; echo alive")
    assert out == b"0\nalive\n" and "Killed" in err, (out, err)
    cluster.done("run", "dd", "if=/dev/zero", "of=/dev/null", "bs=300M", "count=1", code=137)


@pytest.mark.nightly
def test_a_job_that_is_cancelled(cluster):
    p = cluster.up()
    cluster.sh("scancel", f"--user={cluster.user.pw_name}")
    print(f"scancel: noticed after {cluster.lost(p, 10)[0]:.1f} s")


@pytest.mark.nightly
def test_what_the_queue_refuses(cluster):
    _, err = cluster.done("run", "true", options="--partition=nowhere", code=125)
    assert "invalid partition" in err
    _, err = cluster.done("run", "true", options="--mem=4000", code=125)
    assert "Memory specification can not be satisfied" in err or "node configuration is not available" in err


@pytest.mark.nightly
def test_waiting_in_the_queue(cluster):
    """Who gives up leaves no job, and who waits gets his turn."""
    whole = f"--mem=200 --cpus-per-task={os.cpu_count()}"
    p = cluster.up(options=whole)
    _, err = cluster.done("--connect-timeout", "3s", "run", "true", options=whole, code=125)
    assert "ask: no answer within 3" in err
    assert len(cluster.sh("squeue", "-h").splitlines()) == 1
    waiting = cluster.execctl("--connect-timeout", "60s", "run", "echo", "in", options=whole)
    poll(lambda: "PENDING" in cluster.sh("squeue", "-h", "-o", "%T"), what="a job in the queue")
    p.terminate()
    assert waiting.communicate(timeout=60)[0] == b"in\n"
    p.communicate()


@pytest.mark.nightly
def test_preemption(cluster):
    whole = f"--mem=200 --cpus-per-task={os.cpu_count()}"
    p = cluster.up(options=whole)
    assert cluster.done("--connect-timeout", "60s", "run", "echo", "in", options=f"{whole} --partition=urgent")[0] == b"in\n"
    _, err = cluster.lost(p, 10)
    assert "PREEMPT" in err.upper(), err


@pytest.mark.nightly
def test_the_end_of_the_client(cluster):
    for sig in signal.SIGKILL, signal.SIGTERM:
        p = cluster.up()
        p.send_signal(sig)
        p.communicate()
        cluster.empty()


@pytest.mark.nightly
def test_nobody_else_reads_the_token(cluster):
    """Not in what Slurm shows, in no command line, and in no file of others."""
    p = cluster.up()
    directory, = pathlib.Path("/tmp").glob("execd-slurm.*")
    token = (directory / "token").read_text()
    assert re.fullmatch("[0-9a-f]{64}", token) and directory.stat().st_mode & 0o777 == 0o700
    assert (directory / "token").stat().st_mode & 0o777 == 0o600
    shown = cluster.sh("scontrol", "-dd", "show", "job") + cluster.sh("scontrol", "show", "step")
    shown += (cluster.d / "slurmctld.log").read_text() + (cluster.d / "slurmd.log").read_text()
    for at in pathlib.Path("/proc").glob("[0-9]*"):
        for name in "cmdline", "environ":
            try:
                shown += (at / name).read_text(errors="replace")
            except OSError:
                pass
    assert directory.name in shown and token not in shown
    p.terminate()
    p.communicate()


@pytest.mark.nightly
def test_the_list_of_jobs(cluster):
    cluster.done("run", "true")
    cluster.empty()
    line = poll(lambda: (cluster.d / "jobs").exists() and (cluster.d / "jobs").read_text().splitlines()[-1:], what="the list of jobs")[0]
    assert f"UserId={cluster.user.pw_name}({cluster.user.pw_uid})" in line and "Name=execd-slurm." in line, line


@pytest.mark.nightly
def test_a_node_that_dies(cluster):
    """Last, for it comes back: the cable is pulled, and later plugged in."""
    p = cluster.up()
    cluster.hub.ip("link", "set", "v0", "down")
    took, err = cluster.lost(p, 20)
    print(f"a dead node: noticed after {took:.1f} s")
    cluster.hub.ip("link", "set", "v0", "up")
    poll(lambda: "idle" in cluster.sh("sinfo", "-h", "-p", "main", "-o", "%T"), timeout=60, what="the node's return")
    assert cluster.done("run", "echo", "in")[0] == b"in\n"
