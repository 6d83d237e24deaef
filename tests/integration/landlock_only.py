# SPDX-License-Identifier: ISC
"""Servers of an ordinary user who can make no user namespace, and what is tried in their sandboxes."""
import ctypes
import json
import os
import pathlib
import shutil
import sys
import tempfile

import pytest
from conftest import Configured, EXECD, ROOT, as_user
from refusals import UNAVAILABLE

numbered = pytest.mark.skipif(os.uname().machine != "x86_64", reason="NOT TESTED: its calls are numbered for x86_64")

# Debian 12 has Linux 6.1 with ABI 2. There all is refused, as without Landlock.
abi_3 = pytest.mark.skipif(ctypes.CDLL(None).syscall(444, None, 0, 1) < 3,
                           reason="NOT TESTED: the kernel has no Landlock ABI 3 (Linux 6.2), without which it is refused")

REFUSED = UNAVAILABLE

# argv[1]: "" or the errno of landlock_create_ruleset; of unshare, when it is no limit that ends user namespaces, or
# "masked" or "kept".
WITHOUT = r'''
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
NR = {"unshare": 272, "landlock_create_ruleset": 444}

def answer(call, errno):
    """From here on this system call fails."""
    code = b"".join(struct.pack("=HBBI", *i) for i in (
        (0x20, 0, 0, 0), (0x15, 0, 1, NR[call]), (0x06, 0, 0, 0x00050000 | errno), (0x06, 0, 0, 0x7fff0000)))
    filter = ctypes.create_string_buffer(code)
    prog = ctypes.create_string_buffer(struct.pack("@HP", 4, ctypes.addressof(filter)))
    assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, prog, 0, 0) == 0, ctypes.get_errno()

landlock, unshare = sys.argv[1:3]
uid, gid = os.getuid(), os.getgid()
if unshare == "masked":                  # there are some, and /proc is as container engines leave it
    libc.unshare(0x10020000) == 0 or sys.exit("no user namespace")
    open("/proc/self/uid_map", "w").write(f"{uid} {uid} 1")
    open("/proc/self/setgroups", "w").write("deny")
    open("/proc/self/gid_map", "w").write(f"{gid} {gid} 1")
    assert libc.mount(b"/dev/null", b"/proc/version", None, 4096, None) == 0, ctypes.get_errno()
elif unshare == "kept":                  # as everywhere
    pass
elif unshare:
    answer("unshare", int(unshare))
elif libc.unshare(0x10000000) == 0:      # else there are none already
    open("/proc/self/uid_map", "w").write(f"{uid} {uid} 1")
    open("/proc/self/setgroups", "w").write("deny")
    open("/proc/self/gid_map", "w").write(f"{gid} {gid} 1")
    open("/proc/sys/user/max_user_namespaces", "w").write("0")
if landlock:
    answer("landlock_create_ruleset", int(landlock))
os.execv(sys.argv[3], sys.argv[3:])
'''


def uri(path):
    return f"file://{path}"


def entry(where, access):
    if where == "root":
        return {"path": {"type": "special", "value": {"kind": "root"}}, "access": access}
    return {"path": {"type": "path", "path": uri(where)}, "access": access}


def policy(*entries, network="restricted", **more):
    return {"permissions": {"type": "managed", "network": network, "file_system": {
        "type": "restricted", "entries": [entry("root", "read"), *(entry(*e) for e in entries)]}},
        "windowsSandboxLevel": "disabled", "workspaceRoots": [], **more}


class Bare(Configured):
    """A server of an ordinary user who cannot make user namespaces."""

    def __init__(self, user, path, text, landlock="", unshare=""):
        self.path = path
        path.write_text(text)
        os.chown(path, user.pw_uid, user.pw_gid) if ROOT else None
        argv = as_user(user, [sys.executable, "-c", WITHOUT, landlock, unshare, str(EXECD), "-c", str(path)])
        self._start("user", argv, None)


@pytest.fixture
def where(user):
    """A directory of the test user's, outside of /tmp."""
    at = pathlib.Path(tempfile.mkdtemp(prefix="execd-test-", dir="/var/tmp"))
    (at / "work").mkdir()
    (at / "out").mkdir()
    (at / "out/file").write_text("text")
    if ROOT:
        for p in (at, at / "work", at / "out", at / "out/file"):
            os.chown(p, user.pw_uid, user.pw_gid)
    yield at
    shutil.rmtree(at, ignore_errors=True)


KEYS = "landlock-only = yes\nhide = none\nprotected-names = none\nnested-git = off\n"


@pytest.fixture
def bare(user, where):
    """A client of a server with that [sandbox]."""
    started = []

    def start(sandbox=KEYS, more="", **how):
        s = Bare(user, where / f"execd-{len(started)}.conf",
                 "[listener main]\naddress = ws://127.0.0.1:0\nallow-unauthenticated = a\n"
                 f"[identity a]\nuser = {user.pw_name}\n{more}[sandbox]\n{sandbox}", **how)
        started.append(s)
        c = s.connect().ready()
        c.server = s
        return c

    yield start
    for s in started:
        s.stop()


def layers(m):
    return set(m["result"]["sandbox"]["enforced"]["layers"])


def run(c, argv, where, sandbox, **more):
    """(stdout, stderr, code) of what must start."""
    run.number += 1
    id = f"r{run.number}"
    argv = argv if isinstance(argv, list) else ["/bin/bash", "-c", argv]
    m = c.start(id, argv, cwd=uri(where), env={"PATH": "/usr/bin:/bin"}, **({"sandbox": sandbox} if sandbox else {}),
                **more)
    assert "result" in m, (m, c.server.log)
    run.answer = m["result"]
    return c.finished(id)


run.number = 0


# What a program would try, by name: 0 or the errno.
PROBES = r"""
import ctypes, errno, fcntl, json, os, signal, socket, stat, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
got = {}

def attempt(name, call):
    try:
        value = call()
        got[name] = 0
        if isinstance(value, int) and value > 2 and name.startswith("open"):
            os.close(value)
    except OSError as e:
        got[name] = e.errno

def raw(number, *args):
    def call():
        if libc.syscall(number, *args) < 0:
            raise OSError(ctypes.get_errno(), "")
    return call

def end():
    print(json.dumps({k: errno.errorcode.get(v, v) for k, v in got.items()}))
"""

def probe(c, script, where, sandbox, *args, **more):
    r = run(c, ["/usr/bin/python3", "-c", script, *map(str, args)], where, sandbox, **more)
    assert r.code == 0, (r, c.server.log)
    return json.loads(r.stdout)
