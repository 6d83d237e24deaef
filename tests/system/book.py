#!/usr/bin/python3
# SPDX-License-Identifier: ISC
r"""Runs the blocks of a manual page, as they are shown and in their order.

	book.py PAGE [--from SECTION] [--until SECTION]

A block of literal text that begins with `# ' (root) or `$ ' (alice, who has just logged in) is typed. Each line with such a
beginning is a command, which goes on behind a `\' or a `|' and within quotes. The lines behind it are what it prints: `...'
stands for any text, and alone for any lines. A command that shows nothing, or nothing but dots, must succeed. A block behind
`.Pa /FILE :' is what that file gets. Other blocks are a fault: the reader would not know whether they work.
"""
import argparse
import os
import pathlib
import pwd
import re
import select
import subprocess
import sys
import time

PATIENCE_S = 300
LOOP = 'export LC_ALL=C.UTF-8; while read -r f; do . "$f" </dev/null >"$f.out" 2>&1; echo "$?"; done'
ESCAPES = {r"\e": "\\", r"\&": "", r"\(aq": "'", r"\(ga": "`", r"\(ha": "^", r"\(ti": "~", r"\-": "-"}


def blocks(text):
    """Of each: its section, its line, the file that it is, or None, and its lines."""
    section, lines, found = "", None, []
    for number, line in enumerate(text.split("\n"), 1):
        if lines is None and (match := re.match(r"\.S[hs] (.*)", line)):
            section = match[1]
        elif re.match(r"\.Bd .*-literal", line):
            lines, at = [], number
            path = re.fullmatch(r"\.Pa (/\S+) :", before)
        elif line == ".Ed" and lines is not None:
            found.append((section, at, path and path[1], lines))
            lines = None
        elif lines is not None:
            lines.append(re.sub(r"\\(?:\((?:aq|ga|ha|ti)|[e&-])", lambda m: ESCAPES[m[0]], line))
        before = line
    return found


class Shell:
    """Of one user; it keeps its variables and its directory until the block ends."""

    def __init__(self, sign):
        name = {"#": "root", "$": "alice"}[sign]
        self.directory = pathlib.Path(f"/run/book-{name}")
        self.directory.mkdir(exist_ok=True)
        os.chown(self.directory, pwd.getpwnam(name).pw_uid, -1)
        argv = ["bash", "-c", LOOP] if name == "root" else ["su", "-", name, "-c", LOOP]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def type(self, command):
        """Returns its status and what it prints."""
        script, out = self.directory / "command", self.directory / "command.out"
        script.write_text(command + "\n")
        out.unlink(missing_ok=True)
        self.process.stdin.write(f"{script}\n")
        self.process.stdin.flush()
        if not select.select([self.process.stdout], [], [], PATIENCE_S)[0]:
            self.process.kill()
            return None, f"it does not end: {out.read_text(errors='replace')}"
        return int(self.process.stdout.readline() or -1), out.read_text(errors="replace") if out.exists() else ""

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def goes_on(command):
    return command.endswith(("\\", "|")) or command.count("'") % 2 == 1


def commands(lines):
    """Of each: the sign, the command, and the lines that it prints."""
    found = []
    for line in lines:
        if re.match(r"[#$] ", line):
            found.append([line[0], line[2:], []])
        elif goes_on(found[-1][1]) and not found[-1][2]:
            found[-1][1] += "\n" + line
        else:
            found[-1][2].append(line)
    return found


def matches(shown, printed):
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + "\n" for line in shown)
    return re.fullmatch(pattern, "".join(f"{line.rstrip()}\n" for line in printed.splitlines())) is not None


def run(lines):
    """Returns what is wrong, or None."""
    shells = {}
    try:
        for sign, command, shown in commands(lines):
            shell = shells.get(sign) or shells.setdefault(sign, Shell(sign))
            status, printed = shell.type(command)
            told = shown and shown != ["..."]
            if status is None or (not told and status != 0) or (told and not matches(shown, printed)):
                return f"{sign} {command}: status {status}: {printed.strip()!r}"
    finally:
        for shell in shells.values():
            shell.close()


def fault(path, lines):
    if path:
        pathlib.Path(path).write_text("\n".join(lines) + "\n")
        return None
    return run(lines) if re.match(r"[#$] ", lines[0]) else "it is neither a file nor commands"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("--from", dest="begin")
    parser.add_argument("--until")
    args = parser.parse_args()
    found = blocks(args.page.read_text())
    sections = [b[0] for b in found]
    begin = sections.index(args.begin) if args.begin else 0
    end = sections.index(args.until) if args.until else len(found)
    if begin >= end:
        print(f"not ok {args.page.name}: there are no blocks")
        return 1
    for section, line, path, lines in found[begin:end]:
        since = time.monotonic()
        wrong = fault(path, lines)
        name = f"{args.page.name}:{line}: {section}: {path or lines[0]}"
        print(f"not ok {name}: {wrong}" if wrong else f"ok {name} ({time.monotonic() - since:.1f} s)", flush=True)
        if wrong:
            return 1  # what follows builds on it
    return 0


if __name__ == "__main__":
    sys.exit(main())
