# SPDX-License-Identifier: ISC
"""scripts/deps, with a package manager that another program holds at first."""
import os
import pathlib
import subprocess

DEPS = pathlib.Path(__file__).parents[2] / "scripts" / "deps"

PROGRAMS = {
    "id": "echo 1000",
    "dpkg-query": "exit 1",
    "sleep": "exit 0",
    # As sudo does, it keeps no variable that it does not know.
    "sudo": 'exec env -i PATH="$PATH" LANG="$LANG" "$@"',
    "apt-get": """
echo "$DEBIAN_FRONTEND $*" >>"$(dirname "$0")/log"
[ "$(wc -l <"$(dirname "$0")/log")" -ge 3 ] && exit 0
case ${LC_ALL:-$LANG} in
C) echo "E: Could not get lock /var/lib/apt/lists/lock." ;;
*) echo "E: Konnte Sperre /var/lib/apt/lists/lock nicht bekommen." ;;
esac >&2
exit 100""",
}


def test_waits_for_the_lock_in_every_language(tmp_path):
    for name, text in PROGRAMS.items():
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "LANG": "de_DE.UTF-8"}
    env.pop("LC_ALL", None)
    done = subprocess.run([DEPS, "build"], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("waiting for the lock") == 1
    said = (tmp_path / "log").read_text().splitlines()
    assert [line.split()[:1] for line in said] == [["noninteractive"]] * 4
    assert [("update" in line, " install " in line) for line in said] == [(True, False)] * 3 + [(False, True)]
