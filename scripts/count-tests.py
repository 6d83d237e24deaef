#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""Adds up what meson's logs of tests say: passed, failed, skipped. With
--failed: the names of the tests that failed instead, a line each.

A pytest file is one meson test; its own closing line counts the cases in it.
Of a test that is in several logs the last result counts.
"""
import json
import re
import sys


def cases(test):
    """What one test adds to passed, failed, skipped."""
    seen = dict.fromkeys(("passed", "failed", "error", "skipped"), 0)
    text = test.get("stdout") or ""
    for number, word in re.findall(r"(\d+) (passed|failed|error|skipped)", text):
        seen[word] = int(number)
    bad = seen["failed"] + seen["error"]
    if test["result"] == "SKIP":
        return 0, 0, max(1, seen["skipped"])
    if not is_ok(test):
        return seen["passed"], max(1, bad), seen["skipped"]
    if any(seen.values()):
        return seen["passed"], bad, seen["skipped"]
    return 1, 0, 0


def is_ok(test):
    return test["result"] in ("OK", "EXPECTEDFAIL", "SKIP")


names = [a for a in sys.argv[1:] if a != "--failed"]
tests = {}
for name in names:
    for line in open(name, encoding="utf-8"):
        test = json.loads(line)
        tests[test.get("name")] = test
if "--failed" in sys.argv:
    # "execd:integration / tty" is run again by "tty".
    print("\n".join(name.rsplit(" / ", 1)[-1] for name, t in tests.items() if not is_ok(t)))
else:
    print(*(sum(column) for column in zip(*map(cases, tests.values()))))
