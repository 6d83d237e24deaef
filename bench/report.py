# SPDX-License-Identifier: ISC
"""The table and the two pictures of a run."""
import dataclasses
import datetime
import os
import pathlib
import platform

import plot

COMMAND = "scripts/bench"
HERE = pathlib.Path(__file__).parent
# What README.md shows: row, figure, and the words for it.
SUMMARY = [("spawn", "p50", "run a short command", "faster"),
           ("spawn-sandboxed", "p50", "run it in a sandbox", "faster"),
           ("spawn-many", "rate", "run many at once", "faster"),
           ("read", "rate", "read a large file", "faster"),
           ("output", "rate", "take a gigabyte of output", "faster"),
           ("start", "pss", "memory of an idle server", "less")]
SMALLEST = .001  # share that the picture shows; nothing grew is less


@dataclasses.dataclass
class Line:
    row: object
    figure: object
    execd: float
    peer: float
    ratio: float
    wrong: str  # why a figure is missing, if one is

    def reached(self):
        """aim, must or no; None where nothing was measured."""
        value = self.execd if self.figure.absolute else self.ratio
        if value is None:
            return None
        better = (lambda bound: value >= bound) if self.figure.higher else (lambda bound: value <= bound)
        return "aim" if better(self.figure.aim) else "must" if better(self.figure.must) else "no"

    def cost(self, bound=None):
        """execd's cost as a share of the peer's, whichever way the figure counts; of a bound, where it lies."""
        f = self.figure
        if bound is not None and f.absolute:
            ratio = bound / self.peer if self.peer else None
        else:
            ratio = self.ratio if bound is None else bound
        if ratio is None:
            return None
        ratio = max(ratio, SMALLEST)
        return 1 / ratio if f.higher else ratio


def _number(value):
    if value is None:
        return "–"
    if abs(value) >= 100:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3f}"


def _bound(figure, value):
    sign = "≥" if figure.higher else "≤"
    text = f"{value:.10g}"
    return f"{sign} {text} {figure.unit}".rstrip() if figure.absolute else f"{sign} {text}"


def table(lines):
    out = ["| what | | execd | peer | ratio | must | aim | reached |", "|---|---|---:|---:|---:|---:|---:|---|"]
    for line in lines:
        f = line.figure
        mark = {"no": "**no**", None: "not measured: " + (line.wrong or "needs root")}
        reached = line.reached()
        peer = _number(line.peer) + ("" if line.row.peer == "codex" else f" ({line.row.peer})")
        out.append(f"| {f.title} | {f.unit} | {_number(line.execd)} | {peer} | {_number(line.ratio)} | "
                   f"{_bound(f, f.must)} | {_bound(f, f.aim)} | {mark.get(reached, reached)} |")
    return "\n".join(out)


def _machine():
    cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
               platform.machine())
    return f"{os.cpu_count()} × {cpu}, Linux {platform.release()}"


def summary(lines):
    """[(words, how many times, "faster" or "less")] of what README.md shows, as far as it was measured."""
    found = {(line.row.name, line.figure.name): line for line in lines}
    shown = [(found.get((row, figure)), words, kind) for row, figure, words, kind in SUMMARY]
    return [(words, 1 / line.cost(), kind) for line, words, kind in shown if line and line.cost() is not None]


def write(lines, rounds, quick, load):
    """RESULTS.md, results.svg, and summary.svg, which README.md shows."""
    now = datetime.datetime.now(datetime.timezone.utc)
    mode = "as root, sessions of an ordinary user" if os.geteuid() == 0 else "as an ordinary user"
    size = " of short runs (`--quick`)" if quick else ""
    (HERE / "RESULTS.md").write_text(f"""\
# How fast

Written by `{COMMAND}` on {now:%Y-%m-%d %H:%M} UTC. {_machine()}; execd started {mode}.
Before the run {load:.1f} programs wanted a processor (load average).

The peer is `codex exec-server` 0.169.0 unless another is named. Medians of {rounds} rounds{size}; a ratio is execd divided by
the peer within one round, seconds apart, and the column shows the median of those. On another machine, or a busier one,
the figures differ; the ratios hardly. *Must* and *aim* bound the ratio, or with a unit execd's own figure.

![Costs beside the peer's](results.svg)

{table(lines)}
""")
    (HERE / "results.svg").write_text(plot.svg([line for line in lines if line.cost() is not None]))
    (HERE / "summary.svg").write_text(plot.summary(summary(lines)))
