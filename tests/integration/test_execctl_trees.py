# SPDX-License-Identifier: ISC
"""execctl cp -r and -p: what a tree is besides the content of its files, and what of it cannot be kept."""
import json
import os
import stat

import pytest
from conftest import ROOT
from execctl import Execctl


@pytest.fixture
def ctl(server, directory):
    return Execctl(directory, server.url)


@pytest.fixture
def places(directory, user):
    """Here and there: (a source that the server's user may read, a target that he may write)."""
    for name in "here", "there":
        (directory / name).mkdir()
        (directory / name).chmod(0o777)
    return directory / "here", directory / "there"


def make(root):
    (root / "sub/closed").mkdir(parents=True)
    for name, mode, ms in (("program", 0o755, 1_000_000_000_123), ("odd", 0o764, 1),
                           ("sub/plain", 0o644, 1_600_000_000_000)):
        (root / name).write_text(name)
        (root / name).chmod(mode)
        os.utime(root / name, ns=(ms * 1_000_000,) * 2)
    (root / "dangling").symlink_to("nowhere")
    (root / "sub/up").symlink_to("..")
    (root / "sub/absolute").symlink_to("/")
    (root / "sub/closed/f").write_text("f")
    with open(os.fsencode(root) + b"/not \xff utf-8", "wb") as f:
        f.write(b"bytes")
    (root / "sub/closed").chmod(0o555)
    for name, ms in (("sub/closed", 1_200_000_000_000), ("sub", 1_300_000_000_001), ("", 1_400_000_000_999)):
        os.utime(root / name, ns=(ms * 1_000_000,) * 2)


def facts(root, times=True):
    """By name, in bytes: mode and time, the text of a link, the content of a file."""
    found = {}
    root = os.fsencode(root)
    for at, directories, files in os.walk(root):
        for name in [b"", *directories, *files] if at == root else [*directories, *files]:
            path = os.path.join(at, name)
            st = os.lstat(path)
            link = os.readlink(path) if stat.S_ISLNK(st.st_mode) else None
            content = open(path, "rb").read() if stat.S_ISREG(st.st_mode) else None
            about = (stat.S_IMODE(st.st_mode), times and st.st_mtime_ns // 1_000_000) if link is None else None
            found[os.path.relpath(path, root)] = (link, content, about)
    return found


def test_everything_is_kept(ctl, places, directory):
    """Up and down: modes, times, directories without write permission, links that lead nowhere, up and out, and names
    that are not UTF-8."""
    here, there = places
    make(here / "tree")
    want = facts(here / "tree")
    assert len(want) == 11
    ctl.ok("cp", "-rp", here / "tree", f":{there}/up")
    assert facts(there / "up") == want
    ctl.ok("cp", "-r", "-p", f":{there}/up", here / "down")
    assert facts(here / "down") == want
    # Again, over what is there. Only root can write a file in a directory without that permission.
    if not ROOT:
        (here / "down/sub/closed").chmod(0o755)
    summary = json.loads(ctl.ok("--json", "cp", "-rp", f":{there}/up/.", here / "down"))
    assert summary["failed"] + summary["skipped"] + summary["unkept"] == 0
    assert facts(here / "down") == want


def test_without_p_as_cp_does(ctl, places):
    """Modes less the umask, and times of now; a program stays one, and what is private stays private."""
    here, there = places
    tree = here / "tree"
    make(tree)
    (tree / "secret").write_text("secret")
    (tree / "secret").chmod(0o600)
    (tree / "vault").mkdir()
    (tree / "vault").chmod(0o700)
    os.umask(0o022)
    ctl.ok("cp", "-r", tree, f":{there}/up")
    assert stat.S_IMODE((there / "up/program").stat().st_mode) == 0o755
    assert stat.S_IMODE((there / "up/secret").stat().st_mode) == 0o600
    assert stat.S_IMODE((there / "up/vault").stat().st_mode) == 0o700
    ctl.ok("cp", "-rp", tree, f":{there}/exact")
    # Only its owner may read it there: root can, the user of single-user mode is not root.
    (there / "exact/secret").unlink()
    (there / "exact/vault").rmdir()
    ctl.ok("cp", "-r", f":{there}/exact", here / "down")
    down = facts(here / "down", times=False)
    assert [down[n][2][0] for n in (b"program", b"odd", b"sub/plain", b"sub/closed")] == [0o755, 0o744, 0o644, 0o555]
    assert (here / "down/program").stat().st_mtime > 1_700_000_000


def test_a_file_that_is_replaced_here_keeps_its_mode_and_its_link(ctl, places):
    here, there = places
    (there / "f").write_text("new")
    (there / "f").chmod(0o644)
    (here / "target").write_text("old")
    (here / "target").chmod(0o640)
    (here / "link").symlink_to("target")
    ctl.ok("cp", f":{there}/f", here / "link")
    assert (here / "link").is_symlink() and (here / "target").read_text() == "new"
    assert stat.S_IMODE((here / "target").stat().st_mode) == 0o640
    ctl.ok("cp", "-p", f":{there}/f", here / "link")
    assert stat.S_IMODE((here / "target").stat().st_mode) == 0o644


def test_holes(ctl, places):
    """A file of 3 GiB that holds 2 MiB of data takes its room and its time, and no more."""
    here, there = places
    with open(here / "sparse", "wb") as f:
        f.write(b"start" * 1000)
        f.seek(1 << 30)
        f.write(os.urandom(2 << 20))
        f.truncate(3 << 30)
    ctl.ok("cp", here / "sparse", f":{there}/up")
    (here / "end").write_bytes(b"x" * 70000 + bytes(300_000))
    ctl.ok("cp", here / "end", f":{there}/end")
    ctl.ok("cp", f":{there}/end", here / "end2")
    assert (here / "end2").read_bytes() == (here / "end").read_bytes()
    st = (there / "up").stat()
    assert st.st_size == 3 << 30 and st.st_blocks * 512 < 4 << 20
    for at, n in ((0, 8192), ((1 << 30) - 10, 20), ((1 << 30) + (2 << 20) - 100, 4096), ((3 << 30) - 10, 10)):
        with open(here / "sparse", "rb") as a, open(there / "up", "rb") as b:
            a.seek(at), b.seek(at)
            assert a.read(n) == b.read(n)
    # From a server the zeros come, and become a hole here.
    with open(there / "some", "wb") as f:
        f.truncate(20 << 20)
    ctl.ok("cp", f":{there}/some", here / "some")
    assert (here / "some").stat().st_size == 20 << 20 and (here / "some").stat().st_blocks == 0


def test_what_cannot_be_kept_is_counted_and_named(ctl, places):
    here, there = places
    (here / "set-id").write_text("x")
    (here / "set-id").chmod(0o4755)
    os.utime(here / "old", ns=(-5_000_000_000,) * 2) if (here / "old").write_text("x") else None
    r = ctl("cp", "-p", here / "set-id", here / "old", f":{there}")
    assert r.code == 125, r
    assert "set-id: not kept: the set-id and sticky bits" in r.err and "old: not kept: a time before 1970" in r.err
    assert "2 files copied, 0 failed, 0 skipped, 2 attributes not kept" in r.err
    assert stat.S_IMODE((there / "set-id").stat().st_mode) == 0o755
    (there / "d").mkdir()
    os.symlink(b"x\xff", os.fsencode(there) + b"/d/raw")
    r = ctl("cp", "-r", f":{there}/d", here)
    assert r.code == 125 and "raw: skipped: a link whose text is not UTF-8" in r.err, r


def test_a_link_of_an_earlier_copy_leads_nothing_elsewhere(ctl, places, directory):
    """What a server calls a directory is not written through a link that it had made before."""
    here, there = places
    outside = directory / "outside"
    outside.mkdir()
    (there / "d").mkdir()
    (there / "d/x").symlink_to(outside)
    ctl.ok("cp", "-r", f":{there}/d", here)
    assert os.readlink(here / "d/x") == str(outside)
    (there / "d/x").unlink()
    (there / "d/x").mkdir()
    (there / "d/x/escaped").write_text("x")
    r = ctl("cp", "-r", f":{there}/d", here)
    assert r.code == 125 and "Not a directory" in r.err, r
    assert os.listdir(outside) == []


@pytest.mark.parametrize("target", ["none/deep/x", "none/"])
def test_a_missing_directory_is_said_before_anything_is_sent(ctl, places, target):
    here, there = places
    make(here / "tree")
    (here / "big").write_bytes(bytes(1000))
    said = f"there is no directory {there}/none on the server"
    for arguments in (("cp", here / "big"), ("cp", "-r", here / "tree")):
        r = ctl(*arguments, f":{there}/{target}")
        if target == "none/" and "-r" in arguments:
            assert r.code == 0 and (there / "none/program").exists(), r
        else:
            assert r.code == 125 and (said if target == "none/" else "none/deep on the server") in r.err, r
            assert os.listdir(there) == []
    r = ctl("cp", f":{here}/big", here / "nowhere/x")
    assert r.code == 125 and f"there is no directory {here}/nowhere (No such file" in r.err, r


def test_two_servers(ctl):
    assert "are on two servers" in ctl("cp", "a:/x", "b:/y").err
    assert "both on the server; run cp(1) there" in ctl("cp", "a:/x", "a:/y").err


def test_under_a_profile(configured, directory, user, mode, sandboxes):
    """Where nothing unsandboxed is permitted, cp, ls and cat take -s as run does, and -C is the workspace."""
    s = configured(f"[listener main]\naddress = ws://127.0.0.1:0\nallow-unauthenticated = any\n"
                   f"[identity any]\nuser = {user.pw_name}\n[sandbox]\nmax-profile = workspace-write\n")
    ctl = Execctl(directory, s.url)
    work, outside = directory / "work", f"{user.pw_dir}/execd-test-outside"
    work.mkdir()
    work.chmod(0o777)
    make(directory / "tree")
    want = facts(directory / "tree")
    r = ctl("cp", directory / "tree/program", f":{work}/program")
    assert r.code == 125 and "-s workspace-write" in r.err and "max-profile in [sandbox]" in r.err, r
    assert os.listdir(work) == []
    workspace = ("-s", "workspace-write", "-C", work)
    ctl.ok("cp", "-rp", *workspace, directory / "tree", f":{work}/up")
    assert facts(work / "up") == want
    ctl.ok("cp", "-rp", *workspace, f":{work}/up", directory / "down")
    assert facts(directory / "down") == want
    r = ctl("cp", *workspace, directory / "tree/program", f":{outside}")
    assert r.code == 125 and "Read-only file system" in r.err and not os.path.exists(outside), r
    r = ctl("cp", "-s", "read-only", "-C", work, directory / "tree/program", f":{work}/x")
    assert r.code == 125 and "Read-only file system" in r.err and not (work / "x").exists(), r
    assert b"program\n" in ctl.ok("ls", "-s", "read-only", f":{work}/up")
    assert ctl.ok("cat", "-s", "read-only", f":{work}/up/program") == b"program"
    r = ctl("ls", "-s", "nothing", f":{work}")
    assert r.code == 255 and "neither read-only nor workspace-write" in r.err
    r = ctl("ls", "-C", work, f":{work}")
    assert r.code == 255 and "means nothing without it" in r.err


def test_links_are_replaced(ctl, places, directory):
    """A tree with links is copied again, both ways; a link that changed is changed, and takes the place of a file."""
    here, there = places
    tree = here / "tree"
    for name in "v1", "v2":
        (tree / name).mkdir(parents=True)
    (tree / "current").symlink_to("v1")
    (tree / "dangling").symlink_to("nowhere")
    (tree / "later").write_text("a file at first")
    targets = {"up": ("cp", "-r", tree, f":{there}/up"), "down": ("cp", "-r", f":{tree}", here / "down")}
    found = {"up": there / "up", "down": here / "down"}
    for way, arguments in targets.items():
        ctl.ok(*arguments)
    for link, target in (("current", "v2"), ("later", "v1")):
        (tree / link).unlink()
        (tree / link).symlink_to(target)
    targets = {"up": ("cp", "-r", f"{tree}/.", f":{there}/up"), "down": ("cp", "-r", f":{tree}/.", here / "down")}
    for way, arguments in targets.items():
        assert json.loads(ctl.ok("--json", *arguments))["files"] == 3
        assert {n: os.readlink(found[way] / n) for n in ("current", "dangling", "later")} == \
            {"current": "v2", "dangling": "nowhere", "later": "v1"}
        assert sorted(os.listdir(found[way])) == ["current", "dangling", "later", "v1", "v2"]
        (found[way] / "current").unlink()
        (found[way] / "current").mkdir()
        r = ctl(*arguments)
        assert r.code == 125 and "Is a directory" in r.err and sorted(os.listdir(found[way]))[0] == "current", r
        assert len(os.listdir(found[way])) == 5
