# SPDX-License-Identifier: ISC
"""Counts per operation, for CI: what a busy machine does not change, and a careless change does.

System calls are those of all programs and of the commands they run, counted by strace: of a run with many operations
less those of a run with none. Page faults are of execd's own programs and of what they have reaped; context switches are
the voluntary ones of its own programs. All of it happens on one processor, so that two are no lottery. As root it comes
before everything else that wants that processor: a program that must wait in the middle of an operation divides its work
otherwise. Fails when one is above its limit in count-limits, three times in a row; --set writes that file, from the
largest of three measurements.
"""
import argparse
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import servers
import tree

LIMITS = pathlib.Path(__file__).with_name("count-limits")
HEADER = """\
# What an operation may take: system calls, page faults, context switches.
# Written by scripts/bench counts --set, checked by scripts/bench counts.
"""
KINDS = ("calls", "faults", "switches")
# Limit = measured * factor + slack. Which process runs first decides some faults and switches, and no call.
MARGINS = {"calls": (1.15, .5), "faults": (1.15, 2), "switches": (1.4, 1)}
REPEATS = 3  # of which the smallest counts: whatever disturbs only adds
ATTEMPTS = 3
SKIPPED = 77  # meson's
MB = 1e6

# name: load's arguments, its count flag, the count, how many units that is (MB, or operations)
OPERATIONS = {
    "spawn": (["spawn", "--quickack", "--warmup", 5], "--count", 100, 100),
    "spawn-sandboxed": (["spawn", "--quickack", "--sandbox", "--warmup", 3], "--count", 30, 30),
    "output-mb": (["output", "--size", 65536], "--bytes", 16 << 20, (16 << 20) / MB),
    "stdin-mb": (["stdin"], "--bytes", 16 << 20, (16 << 20) / MB),
    "echo": (["echo", "--quickack", "--warmup", 5], "--count", 300, 300),
    "connect": (["connect", "--warmup", 2], "--count", 30, 30),
    "read-1k": (["files", "--size", 1024, "--warmup", 3], "--count", 200, 200),
    "write-1k": (["files", "--size", 1024, "--warmup", 3, "--writing"], "--count", 200, 200),
    "read-mb": (["files", "--size", 4 << 20, "--warmup", 1], "--count", 4, (16 << 20) / MB),
    "write-mb": (["files", "--size", 4 << 20, "--warmup", 1, "--writing"], "--count", 4, (16 << 20) / MB),
}


class Traced:
    """An execd under strace from its first instruction, which needs no right to attach to anything."""

    def __init__(self, bench, mode):
        self.summary = pathlib.Path(tempfile.mkdtemp(dir=bench.directory)) / "summary"
        self.server = servers.start_execd(bench, mode, wrap=("strace", "-f", "-qq", "-c", "-U", "calls,name", "-o",
                                                             str(self.summary)))
        self.url = self.server.url

    def stop(self):
        """Ends execd, whose end ends strace. Returns all calls."""
        inside = sorted(set(tree.below(self.server.pid)) - {self.server.pid})
        os.kill(inside[0], 15)
        self.server.child.wait(servers.STARTED_SECONDS)
        self.server.stop()
        return int(re.search(r"^\s*(\d+)\s+total$", self.summary.read_text(), re.M)[1])


def count_calls(bench, mode, operation):
    args, flag, count, units = OPERATIONS[operation]
    totals = []
    for n in (0, count):
        traced = Traced(bench, mode)
        servers.run_load(traced, [*args, "--path", bench.workspace, flag, n])
        totals.append(traced.stop())
    return (totals[1] - totals[0]) / units


def count_others(bench, mode, operation):
    """(faults, switches)"""
    args, flag, count, units = OPERATIONS[operation]
    server, seen = servers.start_execd(bench, mode), {}
    try:
        for i in range(REPEATS):
            def look(name, i=i):
                seen[i, name] = tree.faults_and_switches(server.pid)
            servers.run_load(server, [*args, "--path", bench.workspace, flag, count], {"begin": look, "end": look})
    finally:
        server.stop()
    return [min((seen[i, "end"][k] - seen[i, "begin"][k]) / units for i in range(REPEATS)) for k in (0, 1)]


def measure_once(bench, mode, operation):
    return dict(zip(KINDS, [count_calls(bench, mode, operation), *count_others(bench, mode, operation)]))


def measure(bench, mode, operation, limit):
    """With a limit, the smallest of what was seen until it holds; without one, the largest of all attempts."""
    seen = []
    for _ in range(ATTEMPTS):
        seen.append(measure_once(bench, mode, operation))
        best = {k: min(s[k] for s in seen) for k in KINDS}
        if limit and all(best[k] <= limit[k] for k in KINDS):
            break
    return best if limit else {k: max(s[k] for s in seen) for k in KINDS}


def read_limits():
    limits = {}
    for line in LIMITS.read_text().splitlines():
        if line and not line.startswith("#"):
            mode, operation, *values = line.split()
            limits[mode, operation] = dict(zip(KINDS, map(float, values)))
    return limits


def write_limits(measured):
    rows = ["# {:3} {:16} {:>8} {:>8} {:>8}\n".format("", "", *KINDS)]
    for (mode, operation), values in measured.items():
        numbers = [math.ceil(values[k] * MARGINS[k][0] + MARGINS[k][1]) for k in KINDS]
        rows.append("{:5} {:16} {:8} {:8} {:8}\n".format(mode, operation, *numbers))
    LIMITS.write_text(HEADER + "".join(rows))


def show(measured, limits):
    """Prints the table. Returns sentences about what is too much."""
    excess = []
    print(f"{'mode':5} {'operation':16}" + "".join(f"{k:>10} {'limit':>7}" for k in KINDS))
    for (mode, operation), values in measured.items():
        limit = limits.get((mode, operation))
        if limit is None:
            excess.append(f"{mode} {operation} has no limit in {LIMITS}")
            continue
        print(f"{mode:5} {operation:16}" + "".join(f"{values[k]:10.1f} {limit[k]:7g}" for k in KINDS))
        excess += [f"{mode} {operation}: {values[k]:.1f} {k}, the limit is {limit[k]:g} (bench/count-limits)"
                   for k in KINDS if values[k] > limit[k]]
    return excess


def can_trace():
    try:
        return subprocess.run(["strace", "-f", "-o", "/dev/null", "true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def come_first():
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -20)
    except PermissionError:
        print("counts: no priority over other programs (no CAP_SYS_NICE): on a busy host counts may be too high", file=sys.stderr)


def measure_all(operations, limits):
    measured = {}
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    if servers.ROOT:
        come_first()
    with servers.ordinary_user() as user, tempfile.TemporaryDirectory(prefix="execd-counts-", dir="/var/tmp",
                                                                      ignore_cleanup_errors=True) as directory:
        bench = servers.Bench(user, directory)
        for mode in ("root", "user") if servers.ROOT else ("user",):
            for operation in operations:
                try:
                    measured[mode, operation] = measure(bench, mode, operation, limits.get((mode, operation)))
                except servers.LoadFailed as e:
                    missing = servers.missing_layers(bench, mode)
                    if operation != "spawn-sandboxed" or not missing:
                        raise
                    print(f"SKIPPED: {mode} {operation}: {e}; this host lacks: " + "; ".join(missing), file=sys.stderr)
    return measured


def main():
    p = argparse.ArgumentParser(prog="scripts/bench counts", description=__doc__.splitlines()[0])
    p.add_argument("--set", action="store_true", help="write bench/count-limits from what is measured; as root")
    p.add_argument("operations", nargs="*", metavar="OPERATION", help="only these: " + ", ".join(OPERATIONS))
    args = p.parse_args()
    unknown = set(args.operations) - set(OPERATIONS)
    if unknown:
        p.error("no such operation: " + ", ".join(sorted(unknown)))
    if args.set and (not servers.ROOT or args.operations):
        p.error("--set takes root, who can measure both modes, and all operations")
    if not can_trace():
        print("counts: SKIPPED: strace cannot trace here", file=sys.stderr)
        return SKIPPED
    measured = measure_all(args.operations or OPERATIONS, {} if args.set else read_limits())
    if args.set:
        write_limits(measured)
    excess = show(measured, read_limits())
    for sentence in excess:
        print("TOO MANY: " + sentence)
    return 1 if excess else 0


if __name__ == "__main__":
    sys.exit(main())
