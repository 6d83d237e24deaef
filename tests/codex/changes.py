# SPDX-License-Identifier: ISC
"""What changed on the wire between two versions of the reference server: `changes.py OLD NEW`, each a version of npm.

It prints flags that came and went, capabilities, and every request of test_differential.py's cases that the two answer
differently. A new method shows as a capability or not at all. It decides nothing: who reads it looks at each line.
"""
import os
import pwd
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parent.parent / "integration")]


def program(version):
    """The program of this version, where an ordinary user can run it."""
    here = [sys.executable, "-c", "import driver; print(driver.codex_program())"]
    found = pathlib.Path(subprocess.run(here, env={**os.environ, "CODEX_VERSION": version}, cwd=pathlib.Path(__file__).parent,
                                        capture_output=True, text=True, check=True).stdout.strip())
    to = pathlib.Path(tempfile.mkdtemp(prefix=f"codex-{version}-"))
    to.chmod(0o755)
    shutil.copytree(found.parent.parent, to / "codex", symlinks=True)
    return to / "codex/bin/codex"


def flags(path):
    text = subprocess.run([path, "exec-server", "--help"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^ +(?:-\w, )?(--[\w-]+(?: <[^>]+>)?)", text, re.M))


def tell(what, old, new):
    for sign, names in ("-", old - new), ("+", new - old):
        for name in sorted(names):
            print(f"{what}: {sign} {name}")


def main(old, new):
    both = [program(old), program(new)]
    tell("flag", *map(flags, both))
    os.environ["CODEX_BIN"] = str(both[1])
    import test_differential as differential
    user, origin = pwd.getpwnam("nobody" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name), differential.Origin()
    try:
        for name, (prepare, requests) in differential.CASES.items():
            answers = []
            for path in both:
                side = differential.Side([str(path), "exec-server", "--listen", "stdio"], user, prepare, origin)
                try:
                    answers.append([differential.normal(side.ask(*r), side) for r in requests])
                    if name == next(iter(differential.CASES)):
                        side.capabilities = side.client.call("environment/info")["capabilities"]
                        answers[-1].append(side.capabilities)
                finally:
                    side.stop()
            for request, before, after in zip([*requests, "capabilities"], *answers):
                if before != after:
                    print(f"{name}: {request}\n  - {before}\n  + {after}")
    finally:
        origin.stop()
        for path in both:
            shutil.rmtree(path.parent.parent.parent)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__.split("\n", maxsplit=1)[0])
    main(*sys.argv[1:])
