# SPDX-License-Identifier: ISC
"""What of the disk an identity may use: roots of its own, for commands and for
file methods, by what a path leads to (execd.conf(5))."""
import os
import subprocess

import pytest
from conftest import ROOT, digest, need_sandbox
from test_ceiling import policy, refused
from test_files import uri


@pytest.fixture
def world(configured, mode, user, directory):
    """Two identities of one user, with a directory each, and links that lead astray."""
    need_sandbox(mode, user)
    for name in ("one", "two", "secret", "archive"):
        (directory / name).mkdir()
        (directory / name / "f").write_text(f"of {name}\n")
    (directory / "one" / "to-two").symlink_to("../two")
    (directory / "one" / "to-secret").symlink_to(directory / "secret")
    (directory / "other-name").symlink_to("one")
    if ROOT:
        subprocess.run(["chown", "-R", "-h", f"{user.pw_uid}:{user.pw_gid}", directory], check=True)

    def identity(name):
        return (f"[identity {name}]\nuser = {user.pw_name}\ntoken-sha256 = {digest(name)}\n"
                f"sandbox-workspace-roots = {directory}/{name}\nsandbox-writable-roots = {directory}/{name}\n"
                f"sandbox-deny-read = {directory}/secret\nsandbox-hide = {directory}/archive\n")

    s = configured("[listener main]\naddress = ws://127.0.0.1:0\n" + identity("one") + identity("two") +
                   "[sandbox]\nmax-profile = full\nallow-unsandboxed = no\n")
    return directory, s.connect(token="one").ready(), s.connect(token="two").ready()


def test_commands(world):
    d, one, two = world
    script = f"cat f; echo new > g; echo x > {d}/two/f; cat {d}/secret/f; cat to-secret/f; ls {d}/archive; echo x > to-two/h; cd {d} && echo x > i"
    r = one.run("a", ["/bin/sh", "-c", script], cwd=uri(d / "one"), sandbox=policy(d / "one", ("roots", "write")))
    assert r.stdout == "of one\n" and (d / "one/g").exists(), r.stdout
    assert (d / "two/f").read_text() == "of two\n" and not (d / "two/h").exists() and not (d / "i").exists()
    # The same directory by another name is the same directory.
    r = one.run("b", ["/bin/cat", "f"], cwd=uri(d / "other-name"), sandbox=policy(d / "other-name", ("roots", "write")))
    assert r.stdout == "of one\n"
    for i, (cwd, sandbox, what) in enumerate((
            (d / "two", policy(d / "two"), f"cwd {d}/two"), (d, policy(d), f"cwd {d}"),
            (d / "one/to-two", policy(d / "one"), f"cwd {d}/one/to-two"),
            (d / "one", policy(d / "two"), f"root {d}/two"),
            (d / "one", policy(d / "one", (d / "two", "write")), f"write {d}/two"),
            (d / "one", policy(d / "one", (d / "one/to-two", "write")), None),
            (d / "one", policy(d / "one", ("root", "write")), "write /"))):
        m = one.start(f"bad{i}", ["/bin/true"], cwd=uri(cwd), sandbox=sandbox)
        assert refused(m, what) if what else "error" in m, (i, m)
    assert refused(one.start("none", ["/bin/true"], cwd=uri(d / "one")), "unsandboxed")
    assert two.run("c", ["/bin/cat", "f"], cwd=uri(d / "two"), sandbox=policy(d / "two")).stdout == "of two\n"


def test_file_methods(world):
    d, one, two = world
    mine = policy(d / "one", ("roots", "write"))
    write = {"dataBase64": "eA=="}
    assert "result" in one.request("fs/writeFile", {"path": uri(d / "one/w"), **write, "sandbox": mine})
    assert (d / "one/w").read_text() == "x"
    for i, (method, params, sandbox) in enumerate((
            ("fs/writeFile", {"path": uri(d / "two/w"), **write}, mine),
            ("fs/writeFile", {"path": uri(d / "one/to-two/w"), **write}, mine),
            ("fs/writeFile", {"path": uri(d / "one/../two/w"), **write}, mine),
            ("fs/readFile", {"path": uri(d / "secret/f")}, mine),
            ("fs/readFile", {"path": uri(d / "one/to-secret/f")}, mine),
            ("fs/readFile", {"path": uri(d / "archive/f")}, mine),
            ("fs/writeFile", {"path": uri(d / "two/w"), **write}, policy(d / "two", ("roots", "write"))),
            ("fs/writeFile", {"path": uri(d / "two/w"), **write}, policy(d / "one", (d / "two", "write"))),
            ("fs/remove", {"path": uri(d / "two"), "recursive": True, "force": True}, mine),
            ("fs/writeFile", {"path": uri(d / "one/n"), **write}, None))):
        m = one.request(method, {**params, **({"sandbox": sandbox} if sandbox else {})})
        assert "error" in m, (i, method, m)
    assert sorted(os.listdir(d / "two")) == ["f"] and not (d / "one/n").exists()
    m = two.request("fs/writeFile", {"path": uri(d / "two/w"), **write, "sandbox": policy(d / "two", ("roots", "write"))})
    assert "result" in m and (d / "two/w").exists()


def test_a_root_that_moves(world):
    """What counts is where a path leads when the request comes."""
    d, one, _ = world
    link = d / "one" / "moving"
    link.symlink_to(d / "one")
    assert "result" in one.start("a", ["/bin/true"], cwd=uri(link), sandbox=policy(link))
    link.unlink()
    link.symlink_to(d / "two")
    assert refused(one.start("b", ["/bin/true"], cwd=uri(link), sandbox=policy(link)), f"cwd {link}")
