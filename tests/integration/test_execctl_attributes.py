# SPDX-License-Identifier: ISC
"""execctl cp over a file: what it was besides its content stays, or is named. The same both ways."""
import json
import os
import shutil
import stat
import struct
import subprocess

import pytest
from conftest import ROOT
from execctl import Execctl

ACL = "system.posix_acl_access"


@pytest.fixture
def ctl(server, directory):
    return Execctl(directory, server.url)


@pytest.fixture(params=["up", "down"])
def over(request, ctl, directory, user):
    """over(target, *options, mode=): copies a new file onto the target. On the way up the session's user has it."""
    up = request.param == "up"

    def copy(target, *options, mode=0o644, attribute=None):
        source = directory / "source"
        source.write_text("new")
        source.chmod(mode)
        os.utime(source, (1_000_000_000, 1_000_000_000))
        if attribute:
            os.setxattr(source, attribute, b"1")
        return ctl("--json", "cp", *options, *((source, f":{target}") if up else (f":{source}", target)))

    copy.owner = (user.pw_uid, user.pw_gid) if up else (os.getuid(), os.getgid())
    return copy


@pytest.fixture
def target(directory, over):
    d = directory / "d"
    d.mkdir()
    d.chmod(0o777)
    (d / "target").write_text("longer than before")
    os.chown(d / "target", *over.owner)
    os.chown(d, *over.owner)
    return d / "target"


def acl(*named):
    """user::rw-, the named users read, group and others nothing. The mode shows the mask: rw-r-----."""
    entries = [(1, 6, 0xffffffff), *((2, 4, uid) for uid in named), (4, 0, 0xffffffff), (16, 4, 0xffffffff),
               (32, 0, 0xffffffff)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *e) for e in entries)


def attributes(path):
    return {n: os.getxattr(path, n) for n in os.listxattr(path)}


def done(r, unkept=0, code=0):
    assert r.code == code and json.loads(r.out)["files"] == 1 and json.loads(r.out).get("unkept", 0) == unkept, r


@pytest.mark.parametrize("what", ["links", "acl", "attribute"])
def test_what_a_file_was_stays(over, target, what):
    target.chmod(0o640)
    if what == "links":
        os.link(target, target.parent / "other")
    elif what == "acl":
        os.setxattr(target, ACL, acl(65534))
    else:
        os.setxattr(target, "user.note", b"kept")
    before, had = target.stat(), attributes(target)
    done(over(target))
    after = target.stat()
    assert target.read_text() == "new" and attributes(target) == had and (what == "links" or had)
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert after.st_nlink == before.st_nlink and sorted(os.listdir(target.parent))[-1] == "target"
    if what == "links":
        assert (target.parent / "other").read_text() == "new"
    assert not [n for n in os.listdir(target.parent) if n.startswith(".execctl")]
    # With -p the mode and the time are those of the source.
    done(over(target, "-p", mode=0o604))
    assert stat.S_IMODE(target.stat().st_mode) == 0o604 and target.stat().st_mtime == 1_000_000_000
    assert target.stat().st_nlink == before.st_nlink


@pytest.mark.skipif(not ROOT, reason="OTHER OWNERS ARE NOT TESTED: giving a file away needs root")
def test_owner_and_group_stay(over, target, directory):
    """The session's user may write to the file, and may give it to nobody."""
    os.chown(target, 65534, 65534)
    target.chmod(0o666)
    done(over(target))
    st = target.stat()
    assert (st.st_uid, st.st_gid, target.read_text()) == (65534, 65534, "new")
    # The group alone.
    os.chown(target, over.owner[0], 65534)
    target.chmod(0o640)
    done(over(target))
    st = target.stat()
    assert (st.st_uid, st.st_gid, stat.S_IMODE(st.st_mode)) == (over.owner[0], 65534, 0o640)


def test_what_cannot_be_kept_is_counted(over, target):
    """A program that runs cannot be written to."""
    target.unlink()
    shutil.copy("/usr/bin/sleep", target)
    os.chown(target, *over.owner)
    target.chmod(0o755)
    os.link(target, target.parent / "other")
    sleeping = subprocess.Popen([target, "100"])
    try:
        r = over(target, mode=0o755)
        done(r, unkept=1)
        assert f"{target}: not kept: its hard links" in r.err
        assert target.read_text() == "new" and (target.parent / "other").stat().st_nlink == 1
        target.unlink()
        os.link(target.parent / "other", target)
        done(over(target, "-p", mode=0o755), unkept=1, code=125)
    finally:
        sleeping.kill()
        sleeping.wait()


def test_attributes_of_the_source_are_counted(over, target):
    target.unlink()
    r = over(target, "-p", attribute="user.note")
    done(r, unkept=1, code=125)
    assert "not kept: its access control list or extended attributes" in r.err and not attributes(target)
    done(over(target, attribute="user.note"))


@pytest.mark.parametrize("way", ["up", "down"])
def test_attributes_of_a_directory_are_counted(ctl, directory, way):
    (directory / "d/sub").mkdir(parents=True)
    (directory / "to").mkdir()
    (directory / "to").chmod(0o777)
    os.setxattr(directory / "d/sub", "user.note", b"1")
    r = ctl("cp", "-rp", *((directory / "d", f":{directory}/to/d") if way == "up" else
                           (f":{directory}/d", directory / "to")))
    assert r.code == 125 and r.err.count("not kept") == 2 and "to/d/sub: not kept: its access control" in r.err, r
