# SPDX-License-Identifier: ISC
"""What is installed: how each program was linked, and what it loads."""
import re
import shutil
import stat
import subprocess

import pytest
from conftest import BUILD, SANITIZED

# Program -> the libraries that it may load, beside libc. A new one is a decision.
PROGRAMS = {
    "execd": set(),
    "execd-child": set(),
    "execd-broker": {"libcrypto", "libevent_core", "libinih", "libseccomp", "libyajl"},
    "execd-frontend": {"libcrypto", "libevent_core", "libseccomp", "libssl", "libyajl"},
    "execd-keys": {"libcrypto", "libseccomp"},
    "execd-runner": {"libevent_core", "libseccomp", "libyajl"},
    "execd-files": {"libevent_core", "libseccomp", "libyajl", "libyaml"},
    "execd-sandbox": {"libevent_core", "libseccomp", "libyajl", "libyaml"},
    "execd-netproxy": {"libevent_core", "libidn2"},
    "execd-http": {"libcrypto", "libcurl", "libevent_core", "libidn2", "libyajl", "libz", "libzstd"},
    "execctl": {"libcrypto", "libinih", "libssl", "libyajl"},
}
# Those that may be in it in place of that, and what says so (-Dstatic-runner).
ARCHIVES = {"libyajl": "yajl_alloc", "libseccomp": "seccomp_init", "libevent_core": "event_base_new_with_config",
            "libyaml": "yaml_parser_initialize"}
OF_A_SANITIZER = {"libc", "libm", "libgcc_s", "libresolv", "libdl", "libpthread", "librt", "ld-linux-x86-64"}


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Everything `meson install` installs, below a directory of the test's own."""
    for needed in "meson", "readelf":
        if not shutil.which(needed):
            pytest.skip(f"WHAT IS INSTALLED IS NOT TESTED: {needed} is not here")
    root = tmp_path_factory.mktemp("installed")
    subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", root], check=True,
                   capture_output=True, timeout=120)
    return [p for p in root.rglob("*") if p.is_file()]


def program(installed, name):
    found = [p for p in installed if p.name == name and not p.is_symlink() and p.read_bytes()[:4] == b"\x7fELF"]
    assert len(found) == 1, f"{name} is installed {len(found)} times"
    return found[0]


def readelf(path, *flags):
    return subprocess.run(["readelf", "-W", *flags, path], check=True, capture_output=True, text=True).stdout


def test_no_other_programs_are_installed(installed):
    elf = {p.name for p in installed if not p.is_symlink() and p.read_bytes()[:4] == b"\x7fELF"}
    assert elf == {*PROGRAMS, "libexecd-client.so.1"}


def test_nothing_is_set_user_id_or_writable_by_others(installed):
    for p in installed:
        assert not p.stat().st_mode & (stat.S_ISUID | stat.S_ISGID | stat.S_IWGRP | stat.S_IWOTH), p


@pytest.mark.parametrize("name", [p for p in PROGRAMS if p != "execctl"])
def test_nobody_reads_a_program_of_the_daemon(installed, name):
    """The kernel then hides what is executed as an ordinary user: see test_sessions_unit.py."""
    assert stat.S_IMODE(program(installed, name).stat().st_mode) == 0o711


@pytest.mark.parametrize("name", PROGRAMS)
def test_how_it_is_linked(installed, name):
    path = program(installed, name)
    dynamic, segments = readelf(path, "-d"), readelf(path, "-l")
    assert re.search(r"Type:\s+DYN \(Position-Independent Executable", readelf(path, "-h"))
    assert "PIE" in dynamic and "BIND_NOW" in dynamic
    assert "GNU_RELRO" in segments, "with BIND_NOW: full RELRO"
    assert re.search(r"GNU_STACK.* RW ", segments), "the stack is not executable"
    assert not re.search(r" RWE ", segments), "nothing is writable and executable"
    assert not re.search(r"RPATH|RUNPATH|TEXTREL", dynamic)


@pytest.mark.parametrize("name", PROGRAMS)
def test_how_it_is_compiled(installed, name):
    symbols = readelf(program(installed, name), "--symbols")
    if SANITIZED:
        pytest.skip("a sanitizer's build is neither fortified nor installed")
    assert "__stack_chk_fail" in symbols, "stack protector"
    assert re.search(r"__\w+_chk(@|\b)", symbols.replace("__stack_chk_fail", "")), "_FORTIFY_SOURCE"


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_it_loads(installed, name):
    """Or has in it, from an archive."""
    needed = set(re.findall(r"\(NEEDED\).*\[(.+?)(?:-[\d.]+)?\.so", readelf(program(installed, name), "-d")))
    symbols = readelf(program(installed, name), "--symbols")
    inside = {library for library, symbol in ARCHIVES.items() if re.search(rf" FUNC .* \d+ {symbol}$", symbols, re.M)}
    assert not needed & inside
    assert (needed | inside) - (OF_A_SANITIZER if SANITIZED else {"libc"}) == PROGRAMS[name]
    assert name != "execd-runner" or not needed or not inside


def test_the_compiler_was_asked_for_the_rest():
    """What leaves no symbol: every file of ours was compiled with it."""
    commands = (BUILD / "compile_commands.json").read_text()
    files = commands.count('"file":')
    for flag in ("-fstack-protector-strong", "-fstack-clash-protection", "-fPI"):
        assert len(re.findall(rf'"command":[^\n]*{flag}', commands)) == files, flag
