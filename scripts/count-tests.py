#!/usr/bin/python3
"""Adds up what meson's testlog.json says: passed, failed, skipped.

A pytest file is one meson test; its own closing line counts the cases in it.
"""
import json
import re
import sys

passed = failed = skipped = 0
for line in open(sys.argv[1], encoding="utf-8"):
    test = json.loads(line)
    cases = dict.fromkeys(("passed", "failed", "error", "skipped"), 0)
    text = test.get("stdout") or ""
    for number, word in re.findall(r"(\d+) (passed|failed|error|skipped)", text):
        cases[word] = int(number)
    ok = test["result"] in ("OK", "EXPECTEDFAIL")
    if test["result"] == "SKIP":
        skipped += max(1, cases["skipped"])
    elif any(cases.values()):
        passed += cases["passed"]
        skipped += cases["skipped"]
        failed += cases["failed"] + cases["error"]
        if not ok and cases["failed"] + cases["error"] == 0:
            failed += 1
    elif ok:
        passed += 1
    else:
        failed += 1
print(passed, failed, skipped)
