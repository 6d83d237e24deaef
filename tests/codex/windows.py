# SPDX-License-Identifier: ISC
"""The real Codex CLI for Windows, run by Wine in a prefix of the tests, and driven as driver.py drives the other."""
import os
import pathlib
import shutil
import subprocess
import threading

from driver import BYPASS, VERSION, Codex, configuration
from model import Model

# What Codex asks of this DLL, which Wine 8 does not have.
PRNG = """\
#include <windows.h>
#include <ntsecapi.h>
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE p, SIZE_T n) { return RtlGenRandom(p, (ULONG)n); }
"""
COMPILER = "x86_64-w64-mingw32-gcc"
STARTS_S = 240  # Wine begins slowly on a busy host


def wine():
    """The 64-bit loader, which Debian keeps out of the way; None: not there."""
    return shutil.which("wine64", path=f"{os.environ['PATH']}:/usr/lib/wine")


def missing():
    """What these tests lack on this host; empty: nothing."""
    return [what for what, there in (("wine64", wine()), (COMPILER, shutil.which(COMPILER))) if not there]


def program():
    """The path of codex.exe; installs it into a cache beside the user's others when it is not there."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "execd-peer-windows"
    pattern = "node_modules/codex-windows/vendor/*/bin/codex.exe"
    if not list(cache.glob(pattern)):
        cache.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "install", "--prefix", cache, "--no-audit", "--no-fund", "--loglevel=error", "--force",
                        f"codex-windows@npm:@openai/codex@{VERSION}-win32-x64"], check=True)
    return str(next(cache.glob(pattern)))


class Prefix:
    """A Windows of the tests' own: drive C: is a directory, drive Z: is the whole disk."""

    def __init__(self, path, codex=True):
        self.c = path / "drive_c"
        self.env = {"PATH": os.environ["PATH"], "HOME": str(path), "WINEPREFIX": str(path), "WINEDEBUG": "-all",
                    "WINEDLLOVERRIDES": "mscoree,mshtml="}
        # Debian's ends with the last program, kills what is late then, and the next program starts another. One that stays
        # has what no program may leave there. What Windows always runs stays with it, so it gets no pipe of ours.
        self._server("-p")
        subprocess.run([wine(), "wineboot.exe", "-i"], env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=STARTS_S)
        source = path / "prng.c"
        source.write_text(PRNG)
        subprocess.run([COMPILER, "-shared", "-O2", "-o", self.c / "windows/system32/bcryptprimitives.dll", source,
                        "-ladvapi32"], check=True)
        if codex:
            self.find_codex()

    def find_codex(self):
        self.program = program()
        said = self.run(self.program, "--version").stdout
        assert said.split()[-1:] == [VERSION], f"{self.program} is {said!r}"

    def runner(self):
        """The path of Codex's own runner, which lies beside codex.exe."""
        return next(pathlib.Path(self.program).parent.parent.rglob("codex-command-runner.exe"))

    @staticmethod
    def name(path):
        """What a file of the whole disk is called on drive Z:."""
        return "Z:" + str(path).replace("/", "\\")

    def run(self, *argv):
        return subprocess.run([wine(), *argv], env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=STARTS_S)

    def _server(self, word):
        server = shutil.which("wineserver", path=f"{os.environ['PATH']}:/usr/lib/wine")
        subprocess.run([server, word], env=self.env, timeout=60)

    def stop(self):
        """Ends this prefix's wineserver and what it still runs, no other's."""
        self._server("-k")


class WindowsCodex(Codex):
    """One `codex.exe exec` with the workspace `at`, a path of Windows; its config.toml has more lines before and after."""

    def __init__(self, prefix, log, at, url, flags=BYPASS, before="", after=""):
        self.log = log
        self.model = Model(log)
        name = f"codex-{log.name}-{os.getpid()}"
        home = prefix.c / name
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        if at.startswith("C:\\"):
            # Codex wants the directory to be there; it stays empty, because the files are the other machine's.
            prefix.c.joinpath(*at.split("\\")[1:]).mkdir(parents=True, exist_ok=True)
        (home / "config.toml").write_text(before + configuration(self.model.url) + after)
        (home / "environments.toml").write_text(
            f'default = "there"\ninclude_local = false\n\n[[environments]]\nid = "there"\nurl = "{url}"\n')
        # Codex writes it while it has it locked, which Wine 8 refuses (os error 33).
        (home / "installation_id").write_text("0d9d6b3e-6f1e-4f0f-9d2a-3d6d3f9f7a11")
        env = prefix.env | {"CODEX_HOME": f"C:\\{name}", "NO_PROXY": "127.0.0.1"}
        argv = [wine(), prefix.program, "exec", "--json", "--skip-git-repo-check", *flags, "-C", at, "Do as told."]
        with open(log / "codex.stdout", "wb") as out, open(log / "codex.stderr", "wb") as err:
            self.child = subprocess.Popen(argv, env=env, cwd=prefix.c, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        self.request = None
        threading.Thread(target=self._wait, daemon=True).start()

    def first(self):
        if self.request is None:
            self._next(STARTS_S)
        return self.request
