# SPDX-License-Identifier: ISC
"""What is published: the names that libexecd-client.so.1 promises."""
import pathlib
import re
import subprocess

from conftest import BUILD

SOURCE = pathlib.Path(__file__).parents[2]
GIT = ["git", "-c", "safe.directory=*", "-c", "user.name=x", "-c", "user.email=x@example.org"]


def run(*argv, **kw):
    return subprocess.run([str(a) for a in argv], capture_output=True, text=True, **kw)


def output(*argv, **kw):
    r = run(*argv, **kw)
    assert r.returncode == 0, r.stderr
    return r.stdout


# --- libexecd-client ----------------------------------------------------------

HEADER = re.sub(r"/\*.*?\*/", "", (SOURCE / "client/lib/execd-client.h").read_text(), flags=re.S)


def test_the_library_exports_what_it_promises():
    """The header, the map, the list of Debian's package and the library itself name the same functions."""
    library = BUILD / "client/lib/libexecd-client.so.1"
    declared = set(re.findall(r"\b(execd_\w+)\((?!\*)", HEADER)) - {"execd_answer_fn"}
    exported = re.findall(r"(?m) [TDBRV] (\S+)$", output("nm", "-D", "--defined-only", library))
    assert {name.split("@")[0] for name in exported} == declared
    assert all(name.endswith("@@LIBEXECD_CLIENT_1") for name in exported)
    assert set(re.findall(r"(?m)^\t(execd_\w+);$", (SOURCE / "client/lib/execd-client.map").read_text())) == declared
    symbols = (SOURCE / "debian/libexecd-client1.symbols").read_text()
    assert set(re.findall(r"(?m)^ (execd_\w+)@LIBEXECD_CLIENT_1 [\d.]+$", symbols)) == declared
    head = output("readelf", "-dW", library)
    assert "Library soname: [libexecd-client.so.1]" in head
    assert not re.search(r"NEEDED.*libevent", head)


def test_each_public_member_has_its_place_recorded():
    """tests/unit/test_client_abi.c holds what a program was compiled with: nothing of the header is missing there."""
    recorded = (SOURCE / "tests/unit/test_client_abi.c").read_text()
    for name, body in re.findall(r"(?ms)^struct (execd_\w+) \{(.*?)^\};", HEADER):
        assert f"SIZE({name}, " in recorded
        members = re.findall(r"\(\*(\w+)\)\s*\(|(\w+)(?=\s*[;,](?![^(]*\)))", body)
        assert members
        for member in (a or b for a, b in members):
            assert f"AT({name}, {member}, " in recorded, f"struct {name}: {member}"
    for body in re.findall(r"(?ms)^enum execd_\w+ \{(.*?)\};", HEADER):
        for name in re.findall(r"EXECD_\w+", body):
            assert f"VALUE({name}, " in recorded
