# SPDX-License-Identifier: ISC
"""How cost grows with numbers: sessions at rest, sleeping commands of one session, sleeping commands of many.

Runs execd in its default configuration until it refuses or fails, and says where and with which words.
"""
import argparse
import os
import pathlib
import resource
import sys
import tempfile
import time

import servers
import tree

STAGES = {
    "sessions": ("sessions at rest", [1, 10, 100, 1000, 10000], ["sessions"]),
    "processes": ("sleeping commands of one session", [1, 10, 100, 1000], ["processes"]),
    "spread": ("sleeping commands of 50 sessions", [50, 500, 5000], ["processes", "--connections", 50]),
}
QUICK = 100
OWN_DESCRIPTORS = 64    # of a front-end, and two for each session
HEAD = ("| number | set up, p50 | p99 | PSS each | page tables each | kernel memory each | descriptors each | programs "
        "| echo beside, p50 | p99 |\n|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")


def sample(server):
    return {"pss": tree.settled_pss_kib(server.pid), **tree.kernel(server.pid)}


def show(stages, at, figures):
    """The table of what was reached."""
    base, out = at[0], [HEAD]
    for n in stages:
        if n not in at:
            continue
        def each(what, n=n):
            known = at[n][what] is not None and base[what] is not None
            return f"{(at[n][what] - base[what]) / n:.1f}" if known else "–"

        def times(name, n=n):
            f = figures.get(f"{name}.{n}")
            return f"{f['p50']:.0f} µs | {f['p99']:.0f} µs" if f else "– | –"
        out.append(f"| {n} | {times('setup_us')} | {each('pss')} KiB | {each('page_tables_kib')} KiB | "
                   f"{each('kernel_kib')} KiB | {each('descriptors')} | {at[n]['programs']} | {times('echo_us')} |")
    return "\n".join(out)


def permitted(stages):
    """What the limit of descriptors permits, and words for what it does not."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    room = (hard - OWN_DESCRIPTORS) // 2
    if hard == resource.RLIM_INFINITY or room >= stages[-1]:
        return stages, ""
    return [min(n, room) for n in stages], f"{room} of {stages[-1]}: RLIMIT_NOFILE is {hard} here.\n\n"


def run(bench, name, most):
    """The table, and what broke, if anything did."""
    (title, stages, args), note = STAGES[name], ""
    if name == "sessions":
        stages, note = permitted(stages)
    stages = [n for n in stages if not most or n <= most]
    server, at, broke = servers.start_execd(bench), {}, None

    def look(moment):
        at[int(moment.split()[1]) if moment.startswith("stage") else 0] = sample(server)
        print(f"scale: {name}: {moment}", file=sys.stderr)
    try:
        figures = servers.run_load(server, [*args, "--count", 300, "--quickack", "--stages", ",".join(map(str, stages))],
                                   {"begin": look, "stage": look})
    except servers.LoadFailed as e:
        warnings = [line for line in server.said().splitlines() if "opened for" not in line][-5:]
        figures, broke = e.figures, f"{title}: {e}. The server's last words: {' / '.join(warnings)}"
    finally:
        begin = time.monotonic()
        server.stop()
    text = f"## {title[0].upper()}{title[1:]}\n\n{show(stages, at, figures)}\n\n{note}The stop took {time.monotonic() - begin:.1f} s.\n"
    return text + (f"\n**Broke.** {broke}\n" if broke else ""), broke


def main():
    p = argparse.ArgumentParser(prog="scripts/bench scale", description=__doc__.splitlines()[0])
    p.add_argument("what", nargs="*", metavar="WHAT", help="only these: " + ", ".join(STAGES))
    p.add_argument("--quick", action="store_const", dest="most", const=QUICK, help=f"the same as --up-to {QUICK}")
    p.add_argument("--up-to", type=int, dest="most", metavar="N", help="no stage above; nothing is written")
    args = p.parse_args()
    unknown = set(args.what) - set(STAGES)
    if unknown:
        p.error("no such table: " + ", ".join(sorted(unknown)))
    text, broken = "", False
    with servers.ordinary_user() as user, tempfile.TemporaryDirectory(prefix="execd-scale-", dir="/var/tmp",
                                                                      ignore_cleanup_errors=True) as directory:
        bench = servers.Bench(user, directory)
        for name in args.what or STAGES:
            part, broke = run(bench, name, args.most)
            print(part, flush=True)
            text, broken = text + part + "\n", broken or bool(broke)
    if not args.most and not args.what:
        pathlib.Path(__file__).with_name("SCALE.md").write_text(
            "# How cost grows\n\nWritten by `scripts/bench scale`, "
            + ("execd started as root" if os.geteuid() == 0 else "execd started by an ordinary user")
            + ", default configuration. *Kernel memory* is slab, stacks, page tables and per-CPU data of the whole\n"
            "host, so other work on it shows.\n\n" + text)
    return broken


if __name__ == "__main__":
    sys.exit(main())
