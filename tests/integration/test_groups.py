# SPDX-License-Identifier: ISC
"""Control groups: who is in them, what they hold, and that nothing runs outside of its own."""
import itertools
import os
import pathlib
import re
import signal
import subprocess

import pytest
from conftest import EXECD, ROOT, Server, command, digest, is_alive, pids_with, poll
from test_ceiling import policy, start, work  # noqa: F401
from refusals import UNAVAILABLE

pytestmark = pytest.mark.skipif(not ROOT, reason="CONTROL GROUPS ARE NOT TESTED: this needs root")
numbers = itertools.count()
HIERARCHIES = ("pids", "memory", "cpu")


@pytest.fixture(autouse=True)
def only_as_root(mode):
    if mode != "root":
        pytest.skip("control groups are root's to make")


def groups(pid):
    """{controller: path} of a process; "" is version 2."""
    found = {}
    for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        found.update({name: path for name in names.split(",")})
    return found


def mounts():
    """Where each hierarchy is, by controller."""
    found = {}
    for line in pathlib.Path("/proc/self/mounts").read_text().splitlines():
        _, at, kind, options, *_ = line.split()
        if kind == "cgroup2":
            found[""] = pathlib.Path(at)
        elif kind == "cgroup":
            found.update({o: pathlib.Path(at) for o in options.split(",")})
    return found


def is_version_1(name):
    return name in mounts() and name in groups(os.getpid())


def counts(name):
    """Whether version 2 counts it here."""
    return "" in mounts() and name in (mounts()[""] / "cgroup.controllers").read_text().split()


def in_force(name, pid):
    """The group that counts it of a process; of a runner, that of its session."""
    if is_version_1(name):
        return mounts()[name] / groups(pid)[name].lstrip("/")
    if not counts(name):
        pytest.skip(f"THE {name} CONTROLLER IS NOT TESTED: no hierarchy of this host has it")
    return mounts()[""] / groups(pid)[""].lstrip("/").removesuffix("/runner")


def limit(name, at):
    """The limit of a group: tasks, bytes or percent; None without one."""
    if name == "cpu" and is_version_1(name):
        words = [(at / f"cpu.cfs_{word}_us").read_text() for word in ("quota", "period")]
    else:
        file = "memory.limit_in_bytes" if name == "memory" and is_version_1(name) else f"{name}.max"
        words = (at / file).read_text().split()
    value = None if words[0] in ("max", "-1\n") else int(words[0])
    if name == "cpu" and value:
        return 100 * value // int(words[1])
    return value if value and value < 1 << 50 else None


def marked(id):
    """An argument of sleep(1) that only one test has."""
    return f"1000.{os.getpid()}{int.from_bytes(id.encode(), 'big')}"


def leader(marker):
    """The command's own pid, of all that are inside."""
    return poll(lambda: pids_with(marker), what="command")[0]


def group_name(server, client):
    return re.search(r"/(sessions/identity-\d+/session-\d+)(/|$)", groups(server.runner(client))["pids"])[1]


def check_membership(server, client, id):
    pid, runner = leader(marked(id)), server.runner(client)
    tested = 0
    for name in HIERARCHIES:
        if not is_version_1(name) and not counts(name):
            continue
        session, own = in_force(name, runner), in_force(name, pid)
        assert re.search(r"/execd(-\d+)?/sessions/identity-1/session-\d+$", str(session)), (name, session)
        if own != session:
            assert own.parent == session and re.fullmatch(r"command-\d+", own.name), (name, own)
            tested += 1
    assert tested >= 2, "processes and memory are counted"
    return pid


def test_each_is_in_a_group_of_its_own(start, work):
    c = start("allow-unsandboxed = yes\nmax-profile = managed\n",
              "command-tasks-max = 512\ncommand-memory-max = 1G\ncommand-cpu-quota = 50%\n")
    seen = set()
    for id, extra in (("plain", {}), ("held", {"sandbox": policy(work)})):
        m = c.start(id, ["/bin/sleep", marked(id)], cwd=f"file://{work}", **extra)
        assert "result" in m, m
        pid = check_membership(start.server, c, id)
        seen.add(in_force("pids", pid))
        for name, value in ("pids", 512), ("memory", 1 << 30), ("cpu", 50):
            assert limit(name, in_force(name, pid)) == value, name
        if extra:
            enforced = m["result"]["sandbox"]["enforced"]
            assert enforced["limits"]["cpuPercent"] == 50
            assert enforced["controlGroupLimits"] == ["processes", "memoryBytes", "cpuPercent"]
    assert len(seen) == 2
    for id in ("plain", "held"):
        c.request("process/terminate", {"processId": id})
        poll(lambda: not pids_with(marked(id)), what=f"end of {id}")


@pytest.mark.parametrize("limit", ["none", "command-cpu-quota", "cpu-quota"])
def test_no_group_counts_what_nobody_limits(start, limit):
    """One of version 1 for each session costs time at each connection."""
    if not is_version_1("cpu"):
        pytest.skip("VERSION 1 IS NOT TESTED: this host has no such hierarchy of cpu")
    c = start("allow-unsandboxed = yes\n", f"{limit} = 70%\n" if limit != "none" else "")
    c.run("x", ["/bin/true"])
    own = in_force("cpu", start.server.pid)
    assert (in_force("cpu", start.server.runner(c)) == own) == (limit == "none")
    made = own / in_force("pids", start.server.runner(c)).parents[2].name / group_name(start.server, c)
    assert made.is_dir() == (limit != "none")
    c.drop()
    start.server.stop()
    assert not made.parent.exists()


def test_processor_time_is_held(start, work):
    """Two that spin are held back by the kernel, and it counts that."""
    c = start("allow-unsandboxed = yes\n", "command-cpu-quota = 5%\n")
    c.sh("s", "while :; do :; done & while :; do :; done", cwd=f"file://{work}")
    stat = in_force("cpu", start.server.runner(c)) / "command-0/cpu.stat"
    poll(lambda: int(re.search(r"nr_throttled (\d+)", stat.read_text())[1]) > 5, what="being held back")
    c.terminate("s")


def test_the_sessions_of_an_identity_have_its_limits_together(start, work):
    """In a group around them, below that of all sessions; a reload changes both, and takes limits away."""
    c = start("allow-unsandboxed = yes\n[limits]\ntasks-max = 3000\n",
              "cpu-quota = 30%\ntasks-max = 333\nmemory-max = 900M\n")
    other = start.server.connect(token="t").ready()
    at = {name: in_force(name, start.server.runner(c)).parent for name in HIERARCHIES}
    assert at == {name: in_force(name, start.server.runner(other)).parent for name in HIERARCHIES}

    def limits():
        return *(limit(name, at[name]) for name in HIERARCHIES), limit("pids", at["pids"].parent)

    assert limits() == (333, 900 << 20, 30, 3000)
    text = start.server.path.read_text()
    start.server.path.write_text(text.replace("cpu-quota = 30%\ntasks-max = 333\nmemory-max = 900M\n",
                                              "tasks-max = 444\n").replace("tasks-max = 3000", "tasks-max = 2000"))
    start.server.child.send_signal(signal.SIGHUP)
    poll(lambda: limits()[0] == 444, what="the limits of the reload")
    assert limits()[1:] == (None, None, 2000), limits()


def test_a_killed_group_is_not_used_again(start, work):
    """A kill takes the right to fork away: the next command has another group, and old ones go."""
    c = start("allow-unsandboxed = yes\n", "command-tasks-max = 40\n")
    at = in_force("pids", start.server.runner(c))
    for i in range(3):
        marker = marked(f"r{i}")
        c.start(f"k{i}", ["/bin/sh", "-c", f"sleep {marker} & setsid sleep {marker} & wait"], cwd=f"file://{work}")
        poll(lambda: len(pids_with(marker)) >= 3, what="three processes")
        killed = in_force("pids", pids_with(marker)[0])
        assert c.request("process/terminate", {"processId": f"k{i}"})["result"]["running"] is True
        poll(lambda: not pids_with(marker), what="end of all three")
        c.finished(f"k{i}")
        c.start(f"f{i}", ["/bin/sh", "-c", "/bin/echo forked; cat /proc/self/cgroup"], cwd=f"file://{work}")
        r = c.finished(f"f{i}")
        own = re.findall(r"pids.*/(.*)" if is_version_1("pids") else "^0::.*/(.*)", r.stdout, re.M)
        assert r.stdout.startswith("forked\n") and len(own) == 1 and killed.name not in own, r
    poll(lambda: c.run_sh(f"x{next(numbers)}", "true").code == 0 and len(list(at.glob("command-*"))) <= 2,
         what=f"end of old groups: {list(at.glob('command-*'))}")


def test_a_sandboxed_commands_group_is_given_back(start, work):
    """It is empty when its init is gone, not only when the client may forget it."""
    c = start("allow-unsandboxed = yes\nmax-profile = managed\n")
    names = []
    for i in range(6):
        c.start(f"g{i}", ["/bin/cat", "/proc/self/cgroup"], cwd=f"file://{work}", sandbox=policy(work))
        c.finished(f"g{i}")
        at = in_force("pids", start.server.runner(c))
        poll(lambda: not any((d / "cgroup.procs").read_text() for d in at.glob("command-*")), what="empty groups")
        names = [d.name for d in at.glob("command-*")]
    assert len(names) <= 2, names


def test_nothing_runs_where_its_group_cannot_be_joined(start, work):
    """The name is taken by a directory of someone else, whose files a runner cannot open."""
    c = start("allow-unsandboxed = yes\n")
    marker = marked("no")
    c.call("process/list", {})
    at = in_force("pids", start.server.runner(c))
    made = [at / f"command-{n}" for n in range(8)]
    for d in made:
        d.mkdir(exist_ok=True)
        os.chown(d, 0, 0)
        for f in ("tasks" if is_version_1("pids") else "cgroup.kill", "cgroup.procs", "pids.max"):
            os.chown(d / f, 0, 0)
    m = c.start("no", ["/bin/sleep", marker], cwd=f"file://{work}")
    assert m["error"]["code"] == -32603 and "Permission denied" in m["error"]["message"], m
    m = c.start("no", ["/bin/sleep", marker], cwd=f"file://{work}", sandbox=policy(work))
    assert m["error"] == UNAVAILABLE
    assert not pids_with(marker)
    start.server.wait_log("control group command-")


NO_VERSION_1 = """
for at in $(awk '$3 == "cgroup" { print $2 }' /proc/self/mounts); do umount "$at"; done
exec "$@"
"""


@pytest.fixture
def elsewhere(directory, user):
    """An execd that sees only some hierarchies: a mount namespace without the others."""
    started = []

    def make(script, config=""):
        path = directory / f"e{len(started)}.conf"
        path.write_text(f"[listener main]\naddress = ws://127.0.0.1:0\n[identity a]\nuser = {user.pw_name}\n"
                        f"token-sha256 = {digest('t')}\ncommand-tasks-max = 512\ncommand-memory-max = 1G\n"
                        f"[sandbox]\nallow-unsandboxed = yes\nmax-profile = managed\n{config}")
        from conftest import Server
        s = Server.__new__(Server)
        s._start("root", ["unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh",
                          str(EXECD), "-c", str(path)], None)
        started.append(s)
        return s

    yield make
    for s in started:
        s.stop()


@pytest.fixture
def version_2():
    if "" not in mounts():
        pytest.skip("VERSION 2 IS NOT TESTED: no such hierarchy is mounted here")


def test_version_2(elsewhere, version_2, work, sandboxes):
    """The runner is in a leaf of its own, commands are in others, and all of it is killed by its file."""
    s = elsewhere(NO_VERSION_1)
    c = s.connect(token="t").ready()
    runner = s.runner(c)
    top = groups(runner)[""].removesuffix("/runner")
    assert re.search(r"/session-\d+$", top) and groups(runner)[""].endswith("/runner"), groups(runner)
    for id, extra in (("plain", {}), ("held", {"sandbox": policy(work)})):
        marker = marked(id)
        m = c.start(id, ["/bin/sh", "-c", f"setsid sleep {marker} & sleep {marker}; :"], cwd=f"file://{work}", **extra)
        assert "result" in m, m
        pids = poll(lambda: len(p := pids_with(marker)) >= 3 and p, what="command")
        for pid in pids:
            assert re.fullmatch(re.escape(top) + r"/command-\d+", groups(pid)[""]), groups(pid)
        if extra:
            enforced = m["result"]["sandbox"]["enforced"]
            assert enforced["controlGroupLimits"] == [
                name for n, name in (("pids", "processes"), ("memory", "memoryBytes")) if counts(n)]
            # Where no group does it, a resource limit holds each process.
            limits = pathlib.Path(f"/proc/{pids[0]}/limits").read_text()
            assert counts("pids") or re.search(r"Max processes +512 ", limits), limits
            assert counts("memory") or re.search(rf"Max data size +{1 << 30} ", limits), limits
        c.request("process/terminate", {"processId": id})
        poll(lambda: not any(is_alive(p) for p in pids), what="end of all of it")
    # Some kernels kill at birth whoever is cloned into a group that was killed once.
    c.start("after", ["/bin/echo", "alive"], cwd=f"file://{work}", sandbox=policy(work))
    assert c.finished("after").stdout == "alive\n"
    c.drop()
    for name, what in ("pids", "processes"), ("memory", "memory"):
        if not counts(name):
            s.wait_log(f"control groups: none here counts {what}; ")


def test_a_sandboxed_command_sees_its_own_group(elsewhere, version_2, work, sandboxes):
    """Nothing else of the hierarchy, and it changes nothing there."""
    s = elsewhere(NO_VERSION_1)
    c = s.connect(token="t").ready()
    script = ("cd /sys/fs/cgroup && grep ^0: /proc/self/cgroup && cat cgroup.procs cgroup.type; "
              "(echo 0 > cgroup.procs) 2>&1; mkdir x 2>&1; cat memory.max pids.max 2> /dev/null; :")
    c.start("own", ["/bin/sh", "-c", script], cwd=f"file://{work}", sandbox=policy(work))
    lines = c.finished("own").stdout.splitlines()
    assert lines[0] == "0::/" and all(x.isdigit() for x in lines[1:lines.index("domain")]), lines
    assert sum("Read-only file system" in x for x in lines) == 2, lines
    for name, value in ("memory", 1 << 30), ("pids", 512):
        assert not counts(name) or str(value) in lines[-2:], lines


def test_requirements_that_no_group_holds(elsewhere, version_2, work, sandboxes):
    if counts("memory"):
        pytest.skip("A MISSING CONTROLLER IS NOT TESTED: version 2 has all of them here")
    s = elsewhere(NO_VERSION_1, "mode = require\n")
    m = s.connect(token="t").ready().start("no", ["/bin/true"], cwd=f"file://{work}")
    assert m["error"] == UNAVAILABLE
    s.wait_log("a control group is required and none counts memory")
    config = s.child.args[-1]
    text = pathlib.Path(config).read_text().replace("[sandbox]", "memory-max = 1G\n[sandbox]")
    pathlib.Path(config).write_text(text)
    subprocess.run(["kill", "-HUP", str(s.pid)], check=True)
    s.wait_log("reload: refused")
    assert "[identity a]: memory-max: this host cannot enforce it: no control group counts memory" in s.log


def test_what_execd_made_goes_with_it(configured, user):
    s = configured(f"[listener main]\naddress = ws://127.0.0.1:0\n[identity a]\nuser = {user.pw_name}\n"
                   f"token-sha256 = {digest('t')}\n")
    c = s.connect(token="t").ready()
    at = in_force("pids", s.runner(c)).parents[2]
    assert re.fullmatch(r"execd(-\d+)?", at.name)
    c.drop()
    s.stop()
    assert not at.exists()


class Apart(Server):
    """An execd that is pid 1 of a pid namespace of its own."""

    def __init__(self, user):
        alone = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        self._start("root", [*alone, *command("root", user, ["--listen", "ws://127.0.0.1:0"])], None)
        self.inner = int(pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text())

    def session(self):
        assert self.ready().run("x", ["/bin/echo", "in"]).stdout == "in\n"

    def session_group(self):
        """Of a session that is opened for it."""
        self.session()
        runner = next(p for p in self.children() if re.search(r"/session-\d+$", groups(p).get("pids", "/session-0")))
        return in_force("pids", runner)

    def children(self):
        return pathlib.Path(f"/proc/{self.inner}/task/{self.inner}/children").read_text().split()

    def stop(self):
        for c in self.clients:
            c.drop()
        if self.child.poll() is None:
            os.kill(self.inner, signal.SIGTERM)
        assert self.child.wait(15) == 0, self.log


def test_two_with_the_same_pid(user):
    """Of two pid namespaces: neither has the other's groups, nor removes them."""
    if not is_version_1("pids"):
        s = Apart(user)
        s.session()
        s.stop()
        # unshare(1) itself
        return s.wait_log("the group is not execd's alone: process 0 is in it (of another pid namespace)")
    first, second = Apart(user), Apart(user)
    try:
        base = first.session_group().parents[2]
        other = second.session_group().parents[2]
        assert base.parent == other.parent and base != other
        first.stop()
        assert not base.exists() and second.session_group().parents[2] == other
    finally:
        first.stop()
        second.stop()
    assert not other.exists()


@pytest.mark.parametrize("limit, what", [
    ("memory-max = 1G", "memory"), ("tasks-max = 50", "processes"), ("cpu-quota = 50%", "processor time"),
    ("cpu-weight = 50", "processor time"), ("io-weight = 50", "input and output")])
def test_a_limit_that_this_host_cannot_enforce_is_refused_at_start(user, directory, limit, what):
    """Once, with the code for that, and not at each session."""
    path = directory / "execd.conf"
    path.write_text(f"[listener main]\naddress = ws://127.0.0.1:0\n[identity a]\nuser = {user.pw_name}\n"
                    f"token-sha256 = {digest('t')}\n{limit}\n")
    hide = 'grep " - cgroup" /proc/self/mountinfo | cut -d" " -f5 | sort -r | xargs -n1 umount -l; exec "$@"'
    r = subprocess.run(["unshare", "-m", "--propagation", "private", "sh", "-c", hide, "sh", str(EXECD), "-c", str(path)],
                       capture_output=True, text=True, timeout=20)
    assert r.returncode == 5, r
    key = limit.split()[0]
    assert f"[identity a]: {key}: this host cannot enforce it: no control group counts {what} (controller " in r.stderr


NEST = "d={at}; for i in 1 2 3 4 5 6 7 8; do d=$d/$i; mkdir $d; done"


def test_groups_that_a_command_makes_go_with_its_own(start):
    """The next command has a group that is empty; what is left at the session's end, deeper ones too, goes then."""
    c = start("allow-unsandboxed = yes\n")
    session = in_force("pids", start.server.runner(c))
    r = c.run_sh("x", "set -e; " + NEST.format(at=f"{session}/command-0") + "; ls $d")
    assert r.code == 0 and "cgroup.procs" in r.stdout, r
    poll(lambda: c.run_sh(f"n{next(numbers)}", "true").code == 0 and not (session / "command-0").exists(),
         what="the end of a group in which there are others")
    assert c.run_sh("y", f"mkdir {session}/own; " + NEST.format(at=f"{session}/own")).code == 0
    c.drop()
    start.server.stop()
    assert not session.parent.exists()


@pytest.fixture
def unified(user, directory):
    """execd where control groups of version 2 are all that is mounted."""
    conf = directory / "conf"
    conf.write_text(f"[listener main]\naddress = ws://127.0.0.1:0\n[identity a]\nuser = {user.pw_name}\n"
                    f"token-sha256 = {digest('t')}\nsandbox-allow-unsandboxed = yes\n")
    conf.chmod(0o600)
    s = Server.__new__(Server)
    s._start("root", ["unshare", "-m", "--propagation", "private", "sh", "-c",
                      'umount -R /sys/fs/cgroup; mount -t cgroup2 x /sys/fs/cgroup; exec "$@"', "sh",
                      str(EXECD), "-c", str(conf)], None)
    yield s
    s.stop()


def test_a_command_changes_no_limit_of_its_session(unified):
    """In version 2 it may those of its own group, which is its user's, and make so many groups, and so deep ones."""
    c = unified.connect(token="t").ready()
    r = c.run_sh("x", "at=/sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup | tail -n 1); cd ${at%/*}; pwd; cd ${at%/*/*}; ls -d .; "
                      "cat ${at%/*}/cgroup.max.descendants ${at%/*}/cgroup.max.depth; "
                      "for f in ${at%/*} ${at%/*/*} ${at%/*/*/*}; do for g in max.descendants max.depth; do "
                      "echo max 2>/dev/null > $f/cgroup.$g && echo changed $f $g; done; done; "
                      "cd $at; n=0; while mkdir 1 2>/dev/null && cd 1; do n=$((n + 1)); done; echo deep $n; "
                      "cd $at; seq -f w%.0f 9000 | xargs mkdir 2>/dev/null; echo wide $(ls | grep -c ^w)")
    told = r.stdout.split("\n")
    assert told[2:4] == ["8192", "16"] and "changed" not in r.stdout, r
    deep, wide = (int(told[i].split()[1]) for i in (4, 5))
    assert deep == 15 and 8000 < deep + wide < 8192, (deep, wide)
    session = pathlib.Path(told[0])
    c.drop()
    unified.stop()
    assert "removing" not in unified.log, unified.log
