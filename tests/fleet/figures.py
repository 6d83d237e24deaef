#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""Measures HAProxy in front of a host, as contrib/haproxy has it, with one thread,
and computes a plan for 1 000 hosts from that (execd-fleet(7)). Needs root.

	EXECD_BUILD=build tests/fleet/figures.py
"""
import concurrent.futures
import os
import pathlib
import pwd
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(__file__))
import conftest  # noqa: E402,F401  (finds the modules of tests/integration)
from fleet import HOSTS, Files, Fleet, Net  # noqa: E402

MIB = 48            # of output for each run
PAIRS = 3           # direct and through the proxy, in turn
SHORT = 300         # sessions that begin and end
QUIET_S = 4
IDLE = 90           # sessions that do nothing
HOSTS_PLANNED, SESSIONS, NEW_PER_S, RESUME_S = 1000, 100_000, 500, 75


def seconds(work):
    began = time.monotonic()
    work()
    return time.monotonic() - began


def cpu_s(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_kib(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0])


def output(ctl):
    """MiB/s of a command's output that execctl throws away."""
    took = seconds(lambda: subprocess.run([str(conftest.BUILD / "client/execctl"), "-q", "run", "-C", "/", "head", "-c",
                                           str(MIB << 20), "/dev/zero"], env=ctl.env, check=True,
                                          stdout=subprocess.DEVNULL))
    return MIB / took


def measure(fleet):
    fleet.start("a")
    lb = fleet.balance(before=("taskset", "-c", "0"))
    pid = lb.child.pid
    direct = fleet.execctl(url=f"ws://{HOSTS['a']}:8766")
    through = fleet.execctl()
    pairs = [(output(direct), output(through)) for _ in range(PAIRS)]
    figures = {"direct": statistics.median(d for d, _ in pairs), "through": statistics.median(t for _, t in pairs),
               "ratio": statistics.median(t / d for d, t in pairs)}
    before = cpu_s(pid)
    time.sleep(QUIET_S)     # what the checks take, which sessions do not
    idle = (cpu_s(pid) - before) / QUIET_S
    before, began = cpu_s(pid), time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        figures["per_s"] = SHORT / seconds(lambda: list(pool.map(lambda _: through.ok("run", "-C", "/", "true"), range(SHORT))))
    figures["cpu_ms"] = (cpu_s(pid) - before - idle * (time.monotonic() - began)) / SHORT * 1000
    before = rss_kib(pid)
    for i in range(IDLE):
        fleet.connect(f"idle-{i}")
    figures["kib"] = max(0, rss_kib(pid) - before) / IDLE
    return figures


def plan(f):
    """What 1 000 hosts take: every sum is of figures of this run."""
    busy = NEW_PER_S * f["cpu_ms"] / 1000
    resume = SESSIONS * f["cpu_ms"] / 1000
    threads = max(busy / .5, resume / (RESUME_S / 2))
    return [
        f"new sessions: {NEW_PER_S}/s x {f['cpu_ms']:.2f} ms = {busy:.2f} threads of HAProxy",
        f"a balancer is lost: {SESSIONS} sessions x {f['cpu_ms']:.2f} ms = {resume:.0f} s of one thread, "
        f"in half of the {RESUME_S} s in which clients resume: {resume / (RESUME_S / 2):.1f} threads",
        f"so each of two balancers has {max(1, round(threads + .5))} threads, and half of them are free",
        f"memory: {SESSIONS} sessions x {f['kib']:.0f} KiB = {SESSIONS * f['kib'] / (1 << 20):.1f} GiB for each balancer",
        f"descriptors: 2 for each session = {2 * SESSIONS} for each balancer (maxconn {SESSIONS})",
        f"output: {f['through']:.0f} MiB/s for each thread; hosts that write more need more threads",
        f"each host: {SESSIONS // HOSTS_PLANNED} sessions, {NEW_PER_S / HOSTS_PLANNED:.1f} new ones a second",
        f"keepalive: at most {SESSIONS} small packets a second, if all sessions are silent",
        f"agent and check: {HOSTS_PLANNED} hosts x 2 / 0.5 s = {HOSTS_PLANNED * 4} connections a second "
        f"for each balancer",
    ]


def main():
    if os.geteuid() != 0:
        sys.exit("figures: this needs root")
    net = Net()
    with net.entered(), tempfile.TemporaryDirectory(prefix="execd-fleet-") as d:
        os.chmod(d, 0o755)
        fleet = Fleet(net, Files(pathlib.Path(d), pwd.getpwnam("nobody")), pathlib.Path(d))
        try:
            f = measure(fleet)
        finally:
            fleet.close()
    net.close()
    print(f"output: direct {f['direct']:.0f} MiB/s, through HAProxy with TLS {f['through']:.0f} MiB/s: {f['ratio']:.2f}x")
    print(f"sessions of one command: {f['per_s']:.0f}/s with two clients, HAProxy {f['cpu_ms']:.2f} ms each")
    print(f"memory of HAProxy: {f['kib']:.1f} KiB for each session")
    print(f"\n{HOSTS_PLANNED} hosts, {SESSIONS} sessions, {NEW_PER_S} new ones a second:")
    print("\n".join("  " + line for line in plan(f)))


if __name__ == "__main__":
    main()
