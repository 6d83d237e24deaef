# SPDX-License-Identifier: ISC
"""What the long tests share: a scale on the command line, a copy of the
programs in which one is another's, and what a process holds."""
import argparse
import os
import pathlib
import pwd
import random
import shutil
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))
from conftest import BUILD, EXECD, ROOT, SANITIZED, Server, as_user, poll  # noqa: E402,F401
from test_limits import rss_kib  # noqa: E402,F401

PROGRAMS = {"execd": "daemon/root/execd", "execd-broker": "daemon/broker/execd-broker", "execd-frontend": "daemon/frontend/execd-frontend",
            "execd-keys": "daemon/keys/execd-keys", "execd-child": "daemon/child/execd-child",
            "execd-runner": "runner/execd-runner",
            "execd-files": "runner/execd-files", "execd-http": "runner/http/execd-http", "execd-netproxy": "runner/netproxy/execd-netproxy"}
# What a library can be loaded into, where execd's own takes none.
DYNAMIC = {"execd-runner": BUILD / "tests/torture/dynamic_runner", "execd-files": BUILD / "tests/torture/dynamic_files"}


class Tree:
    """Copies of the programs, laid out as in the build directory; `stands_for`
    names a program and what stands in its place. The real one is NAME.real."""

    def __init__(self, **stands_for):
        self.holder = tempfile.TemporaryDirectory(prefix="execd-torture-", ignore_cleanup_errors=True)
        self.path = pathlib.Path(self.holder.name)
        for name, where in PROGRAMS.items():
            to = self.path / where
            to.parent.mkdir(parents=True, exist_ok=True)
            other = stands_for.get(name.replace("-", "_"))
            if other:
                shutil.copy(DYNAMIC.get(name, BUILD / where), to.with_name(name + ".real"))
            shutil.copy(other or BUILD / where, to)
        for p in [self.path, *self.path.rglob("*")]:
            p.chmod(0o777 if p.is_dir() else 0o755)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.holder.cleanup()

    def file(self, program, name):
        """A file beside a program, which everybody may change."""
        path = (self.path / PROGRAMS[program]).with_name(name)
        if not path.exists():
            path.touch()
            path.chmod(0o666)
        return path

    def serve(self, mode, user, *flags, listen="ws://127.0.0.1:0", env=None):
        """A running execd, of this tree."""
        argv = [str(self.path / PROGRAMS["execd"]), "--listen", listen, *flags]
        if mode == "root":
            argv += ["--user", user.pw_name, "--allow-unauthenticated"]
        else:
            argv = as_user(user, argv)
        return TreeServer(mode, argv, env)

    def serve_configured(self, mode, user, conf):
        argv = [str(self.path / PROGRAMS["execd"]), "-c", str(conf)]
        return TreeServer(mode, argv if mode == "root" else as_user(user, argv), None)


class TreeServer(Server):
    def __init__(self, mode, argv, env):
        self._start(mode, argv, env)


def descriptors(pid):
    """How many it has. None: the front-end, which only root may look into."""
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except PermissionError:
        assert not ROOT
        return None


def in_words(count):
    """A number of descriptors."""
    return "descriptors not readable" if count is None else f"{count} descriptors"


def children(pid):
    return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_user():
    """For a run from the command line; pytest has a fixture."""
    return pwd.getpwnam("nobody") if ROOT else pwd.getpwuid(os.getuid())


def arguments(about, **more):
    """--scale 1.0 is the full figure; the seed makes it the same again. More
    options by their name and what they are for."""
    p = argparse.ArgumentParser(description=about)
    p.add_argument("--scale", type=float, default=1.0)
    p.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    for name, use in more.items():
        p.add_argument(f"--{name}", help=use)
    a = p.parse_args()
    print(f"{about} scale {a.scale}, seed {a.seed}", flush=True)
    return a


def alone():
    """Goes on in a pid namespace of its own: a program that is made to fail may
    signal whom it should not, and nothing outlives the test."""
    if os.environ.get("TORTURE_ALONE"):
        return
    argv = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    if not ROOT:
        argv[1:1] = ["--user", "--map-current-user"]
    os.environ["TORTURE_ALONE"] = "1"
    os.execvp(argv[0], [*argv, sys.executable, *sys.argv])


def modes():
    return ["root", "user"] if ROOT else ["user"]


class Clock:
    def __init__(self):
        self.began = time.monotonic()

    def __str__(self):
        return f"{time.monotonic() - self.began:.1f} s"
