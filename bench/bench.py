# SPDX-License-Identifier: ISC
"""Measures execd beside the codex server and sshd: scripts/bench.

Rounds, in each of which every row runs against both servers, one right after the other, in an order that changes from
round to round, each time against a server of its own. What counts is the ratio within a round, and of those the median:
that way a busy machine does both sides the same wrong.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

import report
import servers
from rows import ROWS

STARTS = {"codex": (servers.start_execd, servers.start_codex), "sshd": (servers.start_execd_tls, servers.start_sshd)}


def run_side(bench, row, start, quick):
    try:
        return row.run(bench, start, quick)
    except servers.Unavailable as e:  # a peer may be; execd not
        own = start in (servers.start_execd, servers.start_execd_tls)
        return {"failed" if own else "unavailable": str(e)}
    except (servers.LoadFailed, subprocess.CalledProcessError) as e:
        return {"failed": str(e)}


def run_round(bench, rows, number, quick, results):
    for i, row in enumerate(rows):
        sides = [("execd", STARTS[row.peer][0]), ("peer", STARTS[row.peer][1])]
        if (number + i) % 2:
            sides.reverse()
        for side, start in sides:
            got = run_side(bench, row, start, quick)
            results[row.name][side].append(got)
            print(f"round {number + 1}: {row.name}: {side if side == 'execd' else row.peer}: "
                  + (got.get("failed") or got.get("unavailable") or json.dumps({k: round(v, 3) for k, v in got.items()})),
                  file=sys.stderr, flush=True)


def ratios(figure, execd, peer):
    return [e[figure.name] / p[figure.name] for e, p in zip(execd, peer)
            if e.get(figure.name) is not None and p.get(figure.name)]


def median(values):
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else None


def summarize(rows, results):
    """[report.Line], one for each figure."""
    lines = []
    for row in rows:
        execd, peer = results[row.name]["execd"], results[row.name]["peer"]
        wrong = next((s for r in (execd, peer) for x in r for s in (x.get("failed"), x.get("unavailable")) if s), "")
        for f in row.figures:
            lines.append(report.Line(row, f, median([x.get(f.name) for x in execd]), median([x.get(f.name) for x in peer]),
                                     median(ratios(f, execd, peer)), wrong))
    return lines


def parse():
    p = argparse.ArgumentParser(prog="scripts/bench", description="Measures execd beside its peers.",
                                epilog="scripts/bench counts and scripts/bench scale measure other things; see bench/README.md.")
    p.add_argument("rows", nargs="*", metavar="ROW", help="only these: " + ", ".join(r.name for r in ROWS))
    p.add_argument("--quick", action="store_true", help="one short round; nothing is written")
    p.add_argument("--rounds", type=int, help="5, or 1 if quick")
    p.add_argument("--write", action="store_true", help="write the table and the picture even of a quick run")
    args = p.parse_args()
    unknown = set(args.rows) - {r.name for r in ROWS}
    if unknown:
        p.error("no such row: " + ", ".join(sorted(unknown)))
    if args.rounds is not None and args.rounds < 1:
        p.error("--rounds is at least 1")
    return args


def main():
    args = parse()
    rows = [r for r in ROWS if not args.rows or r.name in args.rows]
    if not servers.ROOT:
        left = [r.name for r in rows if r.memory]
        print("bench: only root may read the memory of the programs; not measured: "
              + ", ".join(left + ["growth and PSS elsewhere"]), file=sys.stderr)
        rows = [r for r in rows if not r.memory]
    results = {r.name: {"execd": [], "peer": []} for r in rows}
    rounds = args.rounds or (1 if args.quick else 5)
    load = os.getloadavg()[0]
    with servers.ordinary_user() as user, tempfile.TemporaryDirectory(prefix="execd-bench-", dir="/var/tmp",
                                                                      ignore_cleanup_errors=True) as directory:
        bench = servers.Bench(user, directory)
        for number in range(rounds):
            run_round(bench, rows, number, args.quick, results)
    lines = summarize(rows, results)
    print(report.table(lines))
    # A table with holes, or of hasty figures, does not replace the one that is there.
    if not args.rows and (args.write or not args.quick):
        report.write(lines, rounds, args.quick, load)
    return any("failed" in x for r in results.values() for side in r.values() for x in side)


if __name__ == "__main__":
    sys.exit(main())
