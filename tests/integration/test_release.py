# SPDX-License-Identifier: ISC
"""What is published: scripts/release and what it calls, and the names that libexecd-client.so.1 promises."""
import gzip
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest
from conftest import BUILD, ROOT

SOURCE = pathlib.Path(__file__).parents[2]
GIT = ["git", "-c", "safe.directory=*", "-c", "user.name=x", "-c", "user.email=x@example.org"]


def run(*argv, **kw):
    return subprocess.run([str(a) for a in argv], capture_output=True, text=True, **kw)


def output(*argv, **kw):
    r = run(*argv, **kw)
    assert r.returncode == 0, r.stderr
    return r.stdout


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """The last commit, in a tree of its own."""
    if run(*GIT, "-C", SOURCE, "rev-parse", "HEAD").returncode != 0:
        pytest.skip("RELEASES ARE NOT TESTED: this tree has no history")
    place = tmp_path_factory.mktemp("clone") / "execd"
    r = run(*GIT, "clone", "-q", SOURCE, place)
    if r.returncode != 0:
        pytest.skip(f"RELEASES ARE NOT TESTED: {r.stderr.strip()}")
    return place


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


# --- scripts/release ----------------------------------------------------------

def version_of(tree):
    return re.search(r"(?m)^  version: '(.*)',$", (tree / "meson.build").read_text())[1]


def assert_one_version(tree):
    version = version_of(tree)
    for name, pattern in [("debian/changelog", r"\Aexecd \((.*)-1\) "),
                          ("client/python/pyproject.toml", r'(?m)^version = "(.*)"$'),
                          ("client/node/package.json", r'(?m)^  "version": "(.*)",$'),
                          ("client/node/src/mcp.ts", r"version: '(.*)' }"),
                          ("contrib/packaging/execd.spec", r"(?m)^Version: +(.*)$"),
                          ("contrib/packaging/APKBUILD", r"(?m)^pkgver=(.*)$")]:
        assert re.search(pattern, (tree / name).read_text())[1] == version, name
    assert re.search(rf"(?m)^## {re.escape(version)}\b", (tree / "CHANGELOG.md").read_text())
    return version


def test_one_version_in_all_files():
    assert_one_version(SOURCE)


def sums(directory):
    """What a release says of its files, each of which is so."""
    said = dict(reversed(line.split("  ", 1)) for line in (directory / "SHA256SUMS").read_text().splitlines())
    there = {str(p.relative_to(directory)): hashlib.sha256(p.read_bytes()).hexdigest()
             for p in directory.rglob("*") if p.is_file() and p.name != "SHA256SUMS"}
    assert said == there
    return said


def release_twice(clone, tmp_path, *args):
    """The same commit in two places, by two people with other habits, with files of other times."""
    found = []
    for n, (umask, zone) in enumerate([(0o022, "Asia/Kathmandu"), (0o077, "America/St_Johns")]):
        tree = tmp_path / f"{n}{'x' * 20 * n}"
        output(*GIT, "clone", "-q", clone, tree)
        for p in [tree / "README.md", tree / "meson.build", tree / "client/lib/execd-client.h"]:
            os.utime(p, (10 ** 9 * (n + 1), 10 ** 9 * (n + 1)))
        output(tree / "scripts/release", *args, f"out{n}", umask=umask, cwd=tmp_path,
               env={**os.environ, "TZ": zone, "LC_ALL": "C", "CCACHE_RECACHE": "1"})
        found.append(sums(tmp_path / f"out{n}"))
    assert found[0] == found[1]
    return tmp_path / "out0"


def test_the_source_archive_made_twice(clone, tmp_path):
    version = version_of(clone)
    out = release_twice(clone, tmp_path, "--source")
    names = output("tar", "-tzf", out / f"execd-{version}.tar.gz").splitlines()
    tracked = output(*GIT, "-C", clone, "ls-files").splitlines()
    assert {n for n in names if not n.endswith("/")} == {f"execd-{version}/{t}" for t in tracked}
    assert (out / f"CHANGES-{version}.md").read_text().strip()


@pytest.mark.nightly
@pytest.mark.skipif(not ROOT, reason="packages of a release are built by root")
def test_the_packages_made_twice(clone, tmp_path):
    suite = re.search(r"(?m)^VERSION_CODENAME=(.*)$", pathlib.Path("/etc/os-release").read_text())[1]
    out = release_twice(clone, tmp_path, "--suite", suite)
    version = version_of(clone)
    document = json.loads((out / f"execd-{version}-{suite}.spdx.json").read_text())
    assert_document(document)
    names = {p["name"]: p for p in document["packages"]}
    assert {"execd", "execctl", "libexecd-client1", "libexecd-client-dev", "libyajl2", "libcurl4-openssl-dev", "libevent"} <= set(names)
    linked = {e["relatedSpdxElement"] for e in document["relationships"] if e["relationshipType"] == "DYNAMIC_LINK"}
    assert any(re.match("SPDXRef-libssl3", key) for key in linked)
    assert_apt_reads(out, suite, tmp_path / "apt", {"execd", "execctl", "libexecd-client1", "libexecd-client-dev"})


def test_prepare_and_tag(clone, tmp_path):
    """The number in all files, and a tag only of what is committed, released, and not in CI."""
    tree = tmp_path / "tree"
    output(*GIT, "clone", "-q", clone, tree)
    env = {k: v for k, v in os.environ.items() if k != "CI"}
    env |= {f"GIT_{who}_{what}": "x@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    env["GIT_CONFIG_GLOBAL"] = "/dev/null"

    def release(*args, **more):
        return run(tree / "scripts/release", *args, env={**env, **more})

    assert "not newer" in release("prepare", version_of(tree)).stderr
    assert "not a version" in release("prepare", "10").stderr
    text = (tree / "CHANGELOG.md").read_text()
    (tree / "CHANGELOG.md").write_text(text.replace("## Unreleased\n", "## Unreleased\n\n### Fixed\n\n* Something.\n", 1))
    r = release("prepare", "97.5.0")
    assert r.returncode == 0, r.stderr
    assert assert_one_version(tree) == "97.5.0"
    assert "nothing unreleased" in release("prepare", "97.6.0").stderr
    assert "not committed" in release("--tag", "--source", tmp_path / "a").stderr
    assert release("--source", tmp_path / "a").returncode == 0
    assert f"execd-{version_of(clone)}.tar.gz" in sums(tmp_path / "a"), "the number is that of the commit, too"
    output(*GIT, "-C", tree, "commit", "-q", "-a", "-m", "97.5.0", env=env)
    assert "not in CI" in release("--tag", "--source", tmp_path / "b", CI="true").stderr
    r = release("--tag", "--source", tmp_path / "c")
    assert r.returncode == 0 and "NOT SIGNED" in r.stderr and "NO RELEASE" not in r.stderr, r.stderr
    head = output(*GIT, "-C", tree, "rev-parse", "HEAD")
    assert output(*GIT, "-C", tree, "rev-parse", "v97.5.0^{commit}") == head
    assert set(sums(tmp_path / "c")) == {"execd-97.5.0.tar.gz", "CHANGES-97.5.0.md"}
    assert "there is a tag" in release("--tag", "--source", tmp_path / "d").stderr
    assert "is not empty" in release("--source", tmp_path / "c").stderr
    (tree / "CHANGELOG.md").write_text((tree / "CHANGELOG.md").read_text().replace("## Unreleased\n", "## Unreleased\n\n* New.\n"))
    output(*GIT, "-C", tree, "commit", "-q", "-a", "-m", "more", env=env)
    output(*GIT, "-C", tree, "tag", "-d", "v97.5.0")
    assert "unreleased changes" in release("--tag", "--source", tmp_path / "e").stderr


# --- the repository and the bill ----------------------------------------------

def deb(directory, name, version, **fields):
    """A package with nothing in it."""
    tree = directory / f"{name}-{version}"
    (tree / "DEBIAN").mkdir(parents=True)
    more = "".join(f"{k.replace('_', '-')}: {v}\n" for k, v in fields.items())
    (tree / "DEBIAN/control").write_text(f"Package: {name}\nVersion: {version}\nArchitecture: amd64\n"
                                         f"Maintainer: x <x@example.org>\n{more}Description: x\n")
    tree.chmod(0o755)
    (tree / "DEBIAN").chmod(0o755)
    path = directory / f"{name}_{version}_amd64.deb"
    output("dpkg-deb", "--root-owner-group", "--build", tree, path)
    return path


def apt(home, *args):
    """apt-get of one's own: it knows one repository, and no other."""
    for name in ("lists/partial", "cache/archives/partial", "etc/preferences.d"):
        (home / name).mkdir(parents=True, exist_ok=True)
    (home / "status").touch()
    return run("apt-get", "-q", "-o", f"Dir::Etc={home}/etc", "-o", f"Dir::Etc::sourcelist={home}/sources.list",
               "-o", "Dir::Etc::sourceparts=-", "-o", f"Dir::State={home}", "-o", f"Dir::State::status={home}/status",
               "-o", f"Dir::Cache={home}/cache", "-o", "APT::Sandbox::User=", "-o", "APT::Architecture=amd64",
               "-o", "APT::Architectures::=amd64", "-o", "Acquire::Languages=none", *args, cwd=home)


def assert_apt_reads(repository, suite, home, names):
    home.mkdir()
    (home / "sources.list").write_text(f"deb [trusted=yes] file:{repository} {suite} main\n")
    r = apt(home, "update")
    assert r.returncode == 0 and not re.search("(?m)^[WE]: ", r.stderr), r.stderr
    r = apt(home, "download", *sorted(names))
    assert r.returncode == 0, r.stderr
    assert {p.name.split("_")[0] for p in home.glob("*.deb")} == names
    return home


@pytest.mark.skipif(not shutil.which("dpkg-scanpackages"), reason="dpkg-dev is not installed")
def test_apt_installs_from_the_repository(tmp_path):
    """The newest of two versions, in each of two suites; made again, it is the same, and a file that was changed is refused."""
    debs = [deb(tmp_path, "execd", v) for v in ("1.0-1~deb12", "1.1-1~deb12")] + [deb(tmp_path, "execctl", "1.1-1~deb12")]
    other = deb(tmp_path, "execd", "1.1-1~deb13")
    trees = []
    for n in range(2):
        top = tmp_path / f"repository{n}"
        for suite, files in (("bookworm", debs), ("trixie", [other])):
            output(SOURCE / "scripts/apt-repository", top, suite, *files, env={**os.environ, "SOURCE_DATE_EPOCH": "1800000000"})
        trees.append({p.relative_to(top): p.read_bytes() for p in top.rglob("*") if p.is_file()})
    assert trees[0] == trees[1]
    top = tmp_path / "repository0"
    assert gzip.decompress((top / "dists/bookworm/main/binary-amd64/Packages.gz").read_bytes()).count(b"Package: ") == 3
    home = assert_apt_reads(top, "bookworm", tmp_path / "apt12", {"execd", "execctl"})
    assert (home / "execd_1.1-1~deb12_amd64.deb").read_bytes() == debs[1].read_bytes()
    home = assert_apt_reads(top, "trixie", tmp_path / "apt13", {"execd"})
    assert [p.name for p in home.glob("*.deb")] == ["execd_1.1-1~deb13_amd64.deb"]
    with open(top / "pool/trixie" / other.name, "ab") as f:
        f.write(b"x")
    (home / "execd_1.1-1~deb13_amd64.deb").unlink()
    assert apt(home, "download", "execd").returncode != 0


def assert_document(document):
    """What SPDX 2.3 demands of a document, its packages and relationships (clauses 6, 7 and 11)."""
    assert document["spdxVersion"] == "SPDX-2.3" and document["dataLicense"] == "CC0-1.0"
    assert document["SPDXID"] == "SPDXRef-DOCUMENT" and document["name"]
    assert re.fullmatch(r"https://\S+[^#]", document["documentNamespace"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", document["creationInfo"]["created"])
    assert all(re.match("(Person|Organization|Tool): ", c) for c in document["creationInfo"]["creators"])
    keys = [p["SPDXID"] for p in document["packages"]]
    assert len(set(keys)) == len(keys) and all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", k) for k in keys)
    for p in document["packages"]:
        assert p["name"] and p["versionInfo"] and p["downloadLocation"] and p["filesAnalyzed"] is False
        assert all(re.fullmatch("[0-9a-f]{64}", c["checksumValue"]) for c in p.get("checksums", []))
        assert all(re.match("pkg:(deb|generic)/", r["referenceLocator"]) for r in p["externalRefs"])
    known = {"SPDXRef-DOCUMENT", *keys}
    for e in document["relationships"]:
        assert e["spdxElementId"] in known and e["relatedSpdxElement"] in known
        assert e["relationshipType"] in ("DESCRIBES", "GENERATED_FROM", "DYNAMIC_LINK", "STATIC_LINK", "DEPENDS_ON", "BUILD_DEPENDENCY_OF")
    assert any(e["relationshipType"] == "DESCRIBES" for e in document["relationships"])


BUILDINFO = """Format: 1.0
Source: execd
Installed-Build-Depends:
 libc6 (= 2.36-9+deb12u9),
 libssl3 (= 3.0.15-1~deb12u1),
 libssl-dev (= 3.0.15-1~deb12u1),
 libnever0 (= 1),
 meson (= 1.0.1-5)
Environment:
 LANG="C"
"""


@pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="dpkg is not installed")
def test_the_bill_of_materials(tmp_path):
    """It names what is linked, with the versions that were there, and not all that was there."""
    (tmp_path / "source.tar.gz").write_bytes(b"source")
    (tmp_path / "buildinfo").write_text(BUILDINFO)
    debs = [deb(tmp_path, "execd", "1.0-1~deb12", Depends="adduser, libc6 (>= 2.36), libssl3 (>= 3.0.0)",
                Static_Built_Using="libevent (= 2.1.12-stable-8)"),
            deb(tmp_path, "libexecd-client-dev", "1.0-1~deb12", Depends="libexecd-client1 (= 1.0-1~deb12), libssl-dev")]
    argv = [SOURCE / "scripts/sbom", "--source", tmp_path / "source.tar.gz", "--buildinfo", tmp_path / "buildinfo",
            "--suite", "bookworm", *debs]
    env = {**os.environ, "SOURCE_DATE_EPOCH": "1800000000"}
    text = output(*argv, env=env)
    assert text == output(*argv, env=env)
    document = json.loads(text)
    assert_document(document)
    packages = {p["SPDXID"]: (p["name"], p["versionInfo"]) for p in document["packages"]}
    edges = {(packages.get(e["spdxElementId"], ("",))[0], e["relationshipType"], packages[e["relatedSpdxElement"]])
             for e in document["relationships"]}
    assert ("execd", "DYNAMIC_LINK", ("libssl3", "3.0.15-1~deb12u1")) in edges
    assert ("execd", "DYNAMIC_LINK", ("libc6", "2.36-9+deb12u9")) in edges
    assert ("execd", "STATIC_LINK", ("libevent", "2.1.12-stable-8")) in edges
    assert ("libexecd-client-dev", "DEPENDS_ON", ("libssl-dev", "3.0.15-1~deb12u1")) in edges
    assert ("meson", "BUILD_DEPENDENCY_OF", ("execd", "1.0")) in edges
    assert not {"adduser", "libnever0"} & {name for name, _ in packages.values()}
    [built] = [p for p in document["packages"] if p.get("packageFileName") == debs[0].name]
    assert built["checksums"][0]["checksumValue"] == hashlib.sha256(debs[0].read_bytes()).hexdigest()
    assert document["creationInfo"]["created"] == "2027-01-15T08:00:00Z"


# --- other systems --------------------------------------------------------------

def test_the_rpm_spec():
    if not shutil.which("rpmspec"):
        pytest.skip("execd.spec IS NOT TESTED: rpmspec is not installed")
    text = output("rpmspec", "-P", SOURCE / "contrib/packaging/execd.spec")
    assert f"Version:        {version_of(SOURCE)}" in text


def test_the_apkbuild():
    """A shell reads it; abuild says the rest where it is."""
    path = SOURCE / "contrib/packaging/APKBUILD"
    assert output("sh", "-euc", '. "$1"; echo "$pkgname $pkgver"', "sh", path).split() == ["execd", version_of(SOURCE)]
    if not shutil.which("abuild"):
        pytest.skip("APKBUILD IS ONLY READ BY A SHELL: abuild is not installed")
    output("abuild", "sanitycheck", cwd=path.parent)


@pytest.mark.nightly
def test_arm64(tmp_path):
    if not shutil.which("aarch64-linux-gnu-gcc"):
        pytest.skip("ARM64 IS NOT COMPILED: aarch64-linux-gnu-gcc is not installed")
    build = tmp_path / "build"
    r = run("meson", "setup", build, SOURCE, "--werror", "--cross-file", SOURCE / "contrib/packaging/arm64.txt")
    if "not found" in r.stdout and r.returncode != 0:
        pytest.skip(f"ARM64 IS NOT COMPILED: {r.stdout.strip().splitlines()[-1]}")
    output("ninja", "-C", build)
