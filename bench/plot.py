# SPDX-License-Identifier: ISC
"""The pictures. The large one: on a logarithmic axis, what execd costs as a share of what its peer costs."""
import html
import math

LEFT, WIDTH, RIGHT = 400, 460, 70  # titles, axis, figures
TOP, STEP, BOTTOM = 64, 24, 52
COLOUR = {"aim": "#1a7f37", "must": "#2a6fb0", "no": "#c0392b"}
STYLE = ("text{font:13px system-ui,-apple-system,'Segoe UI',sans-serif;fill:#222}"
         ".small{font-size:11px;fill:#555}.title{font-size:16px;font-weight:600}")


def _ticks(low, high):
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return [10 ** e for e in range(first, last + 1)]


def _label(value):
    return f"{value:g}×" if value >= .001 else f"{value:.0e}×"


class _Axis:
    def __init__(self, lines):
        values = [v for line in lines for v in (line.cost(), line.cost(line.figure.must), line.cost(line.figure.aim)) if v]
        self.ticks = _ticks(min(values + [.1]), max(values + [1]))
        self.low, self.high = (math.log10(t) for t in (self.ticks[0], self.ticks[-1]))

    def x(self, value):
        return LEFT + WIDTH * (math.log10(value) - self.low) / (self.high - self.low)


def _grid(axis, bottom):
    out = []
    for tick in axis.ticks:
        x, heavy = axis.x(tick), tick == 1
        out.append(f'<line x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{bottom}" '
                   f'stroke="{"#555" if heavy else "#ddd"}" stroke-width="{1.5 if heavy else 1}"/>')
        out.append(f'<text class="small" x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{_label(tick)}</text>')
    x = axis.x(1)
    out.append(f'<text class="small" x="{x:.1f}" y="{TOP - 14}" text-anchor="middle">the peer</text>')
    return out


def _line(axis, line, y):
    title = line.figure.title.replace("`", "")
    x, start = axis.x(line.cost()), axis.x(1)
    colour = COLOUR[line.reached()]
    out = [f'<text x="{LEFT - 12}" y="{y + 4}" text-anchor="end">{html.escape(title)}</text>',
           f'<rect x="{min(x, start):.1f}" y="{y - 5}" width="{abs(x - start):.1f}" height="10" fill="{colour}" '
           'fill-opacity=".35"/>',
           f'<circle cx="{x:.1f}" cy="{y}" r="5" fill="{colour}"/>',
           f'<text class="small" x="{LEFT + WIDTH + 12}" y="{y + 4}">{line.cost():.2g}×</text>']
    for bound, dash in ((line.figure.must, ""), (line.figure.aim, ' stroke-dasharray="2,2"')):
        at = line.cost(bound)
        if at:
            out.append(f'<line x1="{axis.x(at):.1f}" y1="{y - 9}" x2="{axis.x(at):.1f}" y2="{y + 9}" stroke="#000" '
                       f'stroke-width="2"{dash}/>')
    return out


def _legend(y):
    out, x = [], 24
    for kind, text in (("aim", "aim reached"), ("must", "must reached"), ("no", "missed")):
        out.append(f'<circle cx="{x}" cy="{y - 4}" r="5" fill="{COLOUR[kind]}"/><text class="small" x="{x + 10}" y="{y}">'
                   f'{text}</text>')
        x += 110
    for dash, text in (("", "must"), (' stroke-dasharray="2,2"', "aim")):
        out.append(f'<line x1="{x}" y1="{y - 12}" x2="{x}" y2="{y + 3}" stroke="#000" stroke-width="2"{dash}/>'
                   f'<text class="small" x="{x + 8}" y="{y}">{text}</text>')
        x += 60
    return out


def svg(lines):
    width, bottom = LEFT + WIDTH + RIGHT, TOP + STEP * len(lines)
    axis = _Axis(lines)
    body = [f'<text class="title" x="24" y="28">What execd costs beside codex exec-server (and sshd): time, CPU or memory; '
            'left is better</text>', *_grid(axis, bottom)]
    for i, line in enumerate(lines):
        body += _line(axis, line, TOP + STEP * i + STEP // 2)
    body += _legend(bottom + BOTTOM - 12)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{bottom + BOTTOM}" '
            f'viewBox="0 0 {width} {bottom + BOTTOM}"><style>{STYLE}</style>'
            f'<rect width="100%" height="100%" fill="#fff"/>' + "\n".join(body) + "</svg>\n")


def _times(value):
    return f"{value:.0f}×" if value >= 10 else f"{value:.1f}×"


def summary(bars):
    """The small one, for README.md: how many times faster or smaller than the peer, as bars of that length."""
    left, width, step, top = 220, 380, 34, 56
    longest = max(times for _, times, _ in bars)
    height = top + step * len(bars) + 12
    body = ['<text class="title" x="20" y="30">execd beside codex exec-server 0.169.0</text>']
    for i, (words, times, kind) in enumerate(bars):
        y, length = top + step * i, max(2, width * times / longest)
        body += [f'<text x="{left - 12}" y="{y + 18}" text-anchor="end">{html.escape(words)}</text>',
                 f'<rect x="{left}" y="{y + 4}" width="{length:.1f}" height="20" rx="2" fill="#2a6fb0"/>',
                 f'<text class="times" x="{left + length + 8:.1f}" y="{y + 19}">{_times(times)} {kind}</text>']
    size = left + width + 110
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{height}" viewBox="0 0 {size} {height}">'
            f'<style>{STYLE}.times{{font-weight:600}}</style><rect width="100%" height="100%" fill="#fff"/>'
            + "\n".join(body) + "</svg>\n")
