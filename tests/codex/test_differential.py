# SPDX-License-Identifier: ISC
"""The same requests to execd and to the reference server, side by side (scripts/test --with-codex).

Each row is a case: what lies in the directory, and the requests. Both servers run as the same user over stdio, each in
a directory of its own; what they answer, notify and leave behind must be equal. Where execd means to differ, INTENDED
says why, and the two must differ indeed: a row that is not true any more fails.
"""
import base64
import functools
import gzip
import json
import os
import pathlib
import re
import shutil
import socket
import stat
import subprocess
import sys
import tarfile
import tempfile
import threading
import tomllib

import pytest

sys.path[:0] = [os.path.dirname(__file__), os.path.join(os.path.dirname(__file__), "../integration")]
from conftest import EXECD, ROOT, as_user, user  # noqa: E402,F401
from driver import VERSIONS, codex_program  # noqa: E402
from execd_client import Stdio  # noqa: E402
from skill_cases import AGENTS, FRONT_MATTER, NOT_READ_AGENTS, NOT_READ_FRONT_MATTER, skill  # noqa: E402


@functools.cache
def reference_version():
    """171 of 0.171.0."""
    said = subprocess.run([codex_program(), "--version"], capture_output=True, text=True, check=True).stdout
    return int(said.split()[-1].split(".")[1])


def since_171():
    """Older ones have no kinds of errors, and decode no bodies."""
    return reference_version() >= 171


# What an older reference answers otherwise: from which version on it is as here. Of the list of versions (driver.py), the
# first that is.
SINCE = {
    "start-network": 171,       # transparentTcp
    "start-policy": 171,        # other words for a cwd of another host
    "patterns": 171,            # a backslash before a bracket
    "no-params": 166, "watch-missing": 166, "discover-skills": 166, "discover-links": 166, "discover-plugins": 166,
    "discover-namespaces": 166, "yaml": 166,
}


def need_reference(name):
    if reference_version() < SINCE.get(name, 0):
        pytest.skip(f"the reference is as here since 0.{SINCE[name]}")


GZIP = gzip.compress(b"text", mtime=0)
# As `printf text | zstd` writes it.
ZSTD = base64.b64decode("KLUv/QRYIQAAdGV4dFKvzIg=")


CODED = ("", "-cut", "-empty", "-junk", "-twice", "-more")


def coded(name, body, coding):
    return b"HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n%s" % (coding.encode(), len(body), body)


class Origin:
    """Answers each connection with the bytes of its path, however wrong they are, and closes it."""

    ANSWERS = {
        "/plain": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: 1\r\nx-a: 2\r\n\r\nhi",
        "/lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi!",
        "/same-length": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nhi",
        "/folded": b"HTTP/1.1 200 OK\r\nX-A: 1\r\n 2\r\nContent-Length: 2\r\n\r\nhi",
        "/bad-name": b"HTTP/1.1 200 OK\r\nX A: 1\r\nContent-Length: 2\r\n\r\nhi",
        "/no-name": b"HTTP/1.1 200 OK\r\n: 1\r\nContent-Length: 2\r\n\r\nhi",
        "/head": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n",
        "/nowhere": b"HTTP/1.1 302 Found\r\nLocation: http://[\r\nContent-Length: 5\r\n\r\nstill",
        "/no-location": b"HTTP/1.1 302 Found\r\nContent-Length: 5\r\n\r\nstill",
        "/moved": b"HTTP/1.1 302 Found\r\nLocation: /echo\r\nContent-Length: 0\r\n\r\n",
        "/kept": b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /echo\r\nContent-Length: 0\r\n\r\n",
        "/ftp": b"HTTP/1.1 302 Found\r\nLocation: ftp://x/\r\nContent-Length: 0\r\n\r\n",
        "/loop": b"HTTP/1.1 302 Found\r\nLocation: /loop\r\nContent-Length: 0\r\n\r\n",
        "/chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        "/cut": b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhi",
        "/until-close": b"HTTP/1.1 200 OK\r\n\r\nhi",
        "/empty": b"HTTP/1.1 204 No Content\r\n\r\n",
        "/error": b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy",
        "/early": b"HTTP/1.1 103 Early Hints\r\nX: 1\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
        "/latin": b"HTTP/1.1 200 OK\r\nX-L: \xe9\r\nContent-Length: 0\r\n\r\n",
        "/rubbish": b"rubbish\r\n\r\n",
        "/nothing": b"",
        **{f"/{c}{n}": coded(c, body, c2) for c, body, c2 in (
            ("gzip", GZIP, "gzip"), ("zstd", ZSTD, "zstd"), ("br", b"text", "br"), ("deflate", b"text", "deflate"))
           for n, body in zip(CODED, (body, body[:-3], b"", b"no such thing", body + body, body + b"x"))},
        "/two-codings": coded("gzip", GZIP, "gzip, zstd"),
        "/gzip-range": coded("gzip", GZIP, "gzip").replace(b"200 OK", b"206 Partial Content"),
        "/gzip-chunked": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n" + GZIP[:5] +
                         b"\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(GZIP) - 5, GZIP[5:]),
        "/gzip-until-close": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + GZIP,
    }

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                s, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(s,), daemon=True).start()

    def _answer(self, s):
        with s, s.makefile("rb") as f:
            head = b""
            while not head.endswith(b"\r\n\r\n") and (line := f.readline()):
                head += line
            found = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
            body = f.read(int(found[1])) if found else b""
            path = head.split(b" ")[1].decode() if b" " in head else ""
            answer = self.ANSWERS.get(path)
            if answer is None:      # what was asked, without what names this origin
                first, *lines = head.decode("latin1").split("\r\n")
                lines = sorted(lower(x) for x in lines if x and x[:4].lower() != "host" and
                               (since_171() or x[:16].lower() != "accept-encoding:"))
                said = json.dumps([first, lines, body.decode("latin1")]).encode()
                answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(said) + said
            s.sendall(closing(answer))

    def stop(self):
        """No connection is waited for: each ends with its answer."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def lower(line):
    """How names of headers are written means nothing."""
    name, colon, value = line.partition(":")
    return name.lower() + colon + value


def closing(answer):
    """Says that the connection ends, so that nobody uses it again."""
    at = answer.rfind(b"HTTP/1.1 ")
    end = answer.find(b"\r\n", at) + 2
    return answer[:end] + b"Connection: close\r\n" + answer[end:] if at >= 0 else answer


def fs(method, path, **params):
    return (f"fs/{method}", {"path": f"file://DIR/{path}" if path is not None else "file://DIR", **params})


def two(method, source, destination, **params):
    return (f"fs/{method}", {"sourcePath": f"file://DIR/{source}", "destinationPath": f"file://DIR/{destination}",
                             **params})


def get(path, method="GET", **params):
    return ("http/request", {"method": method, "url": f"ORIGIN{path}", "requestId": "r", **params})


def run(script, **params):
    return ("run", {"argv": ["/bin/sh", "-c", script], "env": {"PATH": "/usr/bin:/bin"}, "tty": False,
                    "cwd": "file://DIR", **params})


def refused(*argv, **params):
    """A start that both servers refuse."""
    return ("run", {"argv": argv, "env": {"PATH": "/usr/bin:/bin"}, "tty": False, "cwd": "file://DIR", **params})


EVERYTHING = {"inherit": "all", "ignoreDefaultExcludes": True, "exclude": [], "set": {}, "includeOnly": []}
FISH = {"name": "fish", "path": "/bin/bash"}


def snapshot(text, shell=None, **params):
    """A command with the state of a login shell."""
    shell = shell or {"name": "bash", "path": "/bin/bash"}
    return refused("/bin/bash", "-lc", text, "name", **{"shellSnapshot": {"scopeId": "s", "shell": shell}, "envPolicy": EVERYTHING,
                                                        **params})


def config(paths, requirements=(), **params):
    return ("environmentConfig/read", {"cwd": "file://DIR", "configPaths": paths,
                                       "requirementsPaths": list(requirements), **params})


def discover(**params):
    return ("capabilities/discoverV2", {"cwd": "file://DIR", **params})


def roots(*names, **more):
    return ("capabilityRoots/discoverV1", {"roots": [{"id": n, "path": f"file://DIR/{n}", **more} for n in names]})


def a_skill(where, name="s"):
    return f"mkdir -p 'HOME/{where}'; printf -- '---\\nname: {name}\\ndescription: d\\n---\\n' >'HOME/{where}/SKILL.md'; "


def a_plugin(where, manifest='{"name":"n"}', kind=".codex-plugin"):
    at = f"HOME/{CACHE}/{where}/{kind}"
    return f"mkdir -p '{at}'; cat >'{at}/plugin.json' <<'E'\n{manifest}\nE\n"


CACHE = ".codex/plugins/cache"
READ_ONLY = {"cwd": "file://DIR", "windowsSandboxLevel": "disabled", "permissions": {
    "type": "managed", "network": "restricted", "file_system": {"type": "restricted", "entries": [
        {"path": {"type": "special", "value": {"kind": "root"}}, "access": "read"}]}}}
NETWORK = {**READ_ONLY, "permissions": {**READ_ONLY["permissions"], "network": "enabled"}}
# What the client sends once somebody has approved a command whose profile denies a path.
APPROVED = {"cwd": "file://DIR", "windowsSandboxLevel": "disabled", "sandboxOverride": "escalatedSandboxWithRestrictions",
            "permissions": {"type": "managed", "network": "restricted", "file_system": {"type": "restricted", "entries": [
                {"path": {"type": "special", "value": {"kind": "root"}}, "access": "write"},
                {"path": {"type": "path", "path": "file://DIR/secret"}, "access": "deny"},
                *({"path": {"type": "path", "path": f"file:///.{n}"}, "access": "write"} for n in ("git", "agents", "codex", "aws"))]}}}
DISABLED = {"windowsSandboxLevel": "disabled", "permissions": {"type": "disabled"}}
WALK = {"maxDepth": 8, "maxDirectories": 100, "maxEntries": 100, "followDirectorySymlinks": False}
FOLLOW = {**WALK, "followDirectorySymlinks": True}
TREE = "mkdir -p d/e; echo f >f; echo g >d/g; chmod 600 d/g; ln -s d l; ln -s f lf; ln -s nowhere dangling; mkfifo p"
TOML = ("mkdir HOME/.codex; cat >HOME/.codex/config.toml <<'E'\nmodel = \"x\"\nn = 0x1F\nt = 1979-05-27 07:32:00Z\n"
        "list = [1, {a = 1}]\na.b = 1\n[tab]\nz = \"\"\"\nq\"\"\"\n[tab.sub]\n[[aot]]\nk = 1\n[[aot]]\nE\n")

# name: (what to prepare, requests)
CASES = {
    # files
    "read": (TREE, [fs("readFile", "f"), fs("readFile", "lf"), fs("readFile", "d"), fs("readFile", "none"),
                    fs("readFile", "p"), fs("readFile", "dangling"), fs("readFile", "f/x")]),
    "metadata": (TREE, [fs("getMetadata", n) for n in ("f", "d", "l", "lf", "dangling", "p", "none", "d/")]),
    "directory": (TREE, [fs("readDirectory", n) for n in (None, "d", "l", "f", "none")]),
    "canonicalize": (TREE, [fs("canonicalize", n) for n in ("l/e", "lf", "dangling", "d/../f", "none")]),
    "base64": ("", [("process/write", {"processId": "x", "writeId": "w", "chunk": c}) for c in (
        "a", "aa", "aaa", "aaaa", "aaaaa", "a=", "a==", "a===", "=", "==", "aa=", "aa==", "aaa=", "aaa==", "aaaaaa",
        "a!", "aaaa=", "aaaa====", "Zg==a", "Zh==", "aaaaaaaaa", " aaa", "aaaa\n", "a" * 401, "a" * 400 + "=")]),
    "no-params": ("", [(m, p) for p in (None, 7) for m in (
        "initialize", "environmentConfig/read", "process/start", "process/read", "process/write", "process/signal",
        "process/terminate", "fs/readFile", "fs/open", "fs/readBlock", "fs/writeBlock", "fs/close", "fs/writeFile",
        "fs/createDirectory", "fs/getMetadata", "fs/canonicalize", "fs/readDirectory", "fs/walk", "fs/remove",
        "fs/copy", "fs/watchMissing", "http/request")]),
    "write": (TREE, [fs("writeFile", "new", dataBase64="aGk="), fs("writeFile", "f", dataBase64=""),
                     fs("writeFile", "none/x", dataBase64=""), fs("writeFile", "d", dataBase64=""),
                     fs("writeFile", "bad", dataBase64="a"), fs("writeFile", "dangling", dataBase64="aGk=")]),
    "create": (TREE, [fs("createDirectory", "a/b/c"), fs("createDirectory", "x/y", recursive=False),
                      fs("createDirectory", "d", recursive=False), fs("createDirectory", "d"),
                      fs("createDirectory", "f"), fs("createDirectory", "l"), fs("createDirectory", "f/x")]),
    "remove": (TREE, [fs("remove", "f"), fs("remove", "l"), fs("remove", "d", recursive=False), fs("remove", "d"),
                      fs("remove", "none", force=False), fs("remove", "none"), fs("remove", "dangling")]),
    "copy": (TREE, [two("copy", "f", "c", recursive=False), two("copy", "d", "e", recursive=False),
                    two("copy", "d", "e", recursive=True), two("copy", "none", "x", recursive=False),
                    two("copy", "l", "m", recursive=True), two("copy", "d", "d/inside", recursive=True)]),
    "copy-set-id": ("echo x >s; chmod 6755 s", [two("copy", "s", "t", recursive=False)]),
    "copy-onto-itself": (TREE, [two("copy", "f", "f", recursive=False)]),
    "walk": (TREE, [fs("walk", None, options=WALK), fs("walk", "d", options=WALK), fs("walk", "f", options=WALK),
                    fs("walk", "none", options=WALK), fs("walk", None, options={**WALK, "maxEntries": 2})]),
    "walk-link": (TREE, [fs("walk", "l", options=WALK), fs("walk", "l", options=FOLLOW),
                         fs("walk", None, options=FOLLOW)]),
    "walk-hidden": ("mkdir .h; echo x >.h/x; echo y >.y",
                    [fs("walk", None, options={**WALK, "pruneHiddenDirectories": True})]),
    "names": (r"""mkdir n; : >n/'a b'; : >"n/$(printf 'x\377')"; : >n/ü""",
              [fs("readDirectory", "n"), fs("getMetadata", "n/a%20b"), fs("getMetadata", "n/x%ff"),
               fs("getMetadata", "n/%C3%BC"), fs("walk", "n", options=WALK)]),
    "handles": (TREE, [fs("open", "f", handleId="h"), ("fs/readBlock", {"handleId": "h", "offset": 0, "len": 10}),
                       ("fs/readBlock", {"handleId": "h", "offset": 100, "len": 10}),
                       ("fs/readBlock", {"handleId": "h", "offset": 0, "len": 0}),
                       fs("open", "f", handleId="h"),
                       ("fs/writeBlock", {"handleId": "h", "offset": 0, "chunk": "aGk="}),
                       ("fs/close", {"handleId": "h"}), ("fs/close", {"handleId": "h"}),
                       ("fs/readBlock", {"handleId": "h", "offset": 0, "len": 1}), fs("open", "d", handleId="x"),
                       fs("open", "none", handleId="x"), fs("open", "f", handleId="y" * 33)]),
    "write-blocks": ("", [fs("open", "w", handleId="h", mode="replace"),
                          ("fs/writeBlock", {"handleId": "h", "offset": 5, "chunk": "aGk="}),
                          ("fs/writeBlock", {"handleId": "h", "offset": 0, "chunk": ""}),
                          ("fs/writeBlock", {"handleId": "h", "offset": (1 << 63) - 1, "chunk": "aGk="}),
                          ("fs/close", {"handleId": "h"})]),
    "open-sandboxed": (TREE, [fs("open", "f", handleId="h", sandbox={
        "windowsSandboxLevel": "disabled", "permissions": {"type": "disabled"}}),
        ("fs/readBlock", {"handleId": "h", "offset": 0, "len": 10})]),
    "paths": (TREE, [("fs/readFile", {"path": p}) for p in (
        "DIR/f", "file:DIR/f", "file://localhostDIR/f", "file://hostDIR/f", "http://x", "file://DIR/%zz",
        "file://DIR/f?x", "file://DIR/f#x", "file://DIR/./d/../f", "file://DIR//f", "FILE://DIR/f", "file://DIR/f%00")]),
    "watch-missing": ("", [("fs/watchMissing", {"watchId": 1, "missing": []})]),
    # envelopes
    "ids": ("", [("raw", '{"id":%s,"method":"nope","params":{}}' % i) for i in
                 ("0", "-0", "-1", '"x"', '""', "9007199254740993", "9223372036854775807")]),
    "unknown": ("", [("nope", {}), ("fs/nope", None), ("process/resize2", {})]),
    "environment": ("", [("environment/status", None), ("environment/status", {}), ("environment/status", {"x": 1}),
                         ("environment/status", [])]),
    "twice": ("", [("initialize", {"clientName": "again"})]),
    "wrong-types": ("", [("fs/readFile", {}), ("fs/readFile", None), ("fs/readFile", {"path": 1}),
                         ("process/start", {}), ("process/read", {"processId": "x", "waitMs": -1}),
                         ("process/write", {"processId": "x", "chunk": "a", "writeId": "w"}),
                         ("process/signal", {"processId": "x", "signal": "kill"}),
                         ("process/terminate", {"processId": "none"}), ("process/read", {"processId": "none"})]),
    # processes
    "run": (TREE, [run("echo out; echo err >&2; exit 3"), run("pwd; umask; echo $USER"), run("kill -9 $$")]),
    "run-arg0": ("", [run("echo $0", arg0="name"), ("run", {"argv": ["cat", "/proc/self/comm"], "env": {"PATH": "/bin"},
                                                            "tty": False, "cwd": "file://DIR"})]),
    "run-nothing": ("", [run("", argv=[]), run("", argv=["/none"]), run("", cwd="file://DIR/none"),
                         run("", argv=["DIR"]), run("", cwd="DIR")]),
    "run-input": ("", [run("cat", pipeStdin=True, write="some input")]),
    # HTTP
    **{f"http{path.replace('/', '-')}": ("", [get(path), get(path, streamResponse=True)]) for path in Origin.ANSWERS
       if path != "/head"},
    "http-head": ("", [get("/head", "HEAD"), get("/head", "HEAD", bodyBase64="aGk="), get("/echo", "GET",
                                                                                          bodyBase64="aGk=")]),
    "http-methods": ("", [get("/echo", m, bodyBase64="aGk=") for m in ("POST", "post", "PROPFIND", "DELETE")]),
    "http-redirected": ("", [get("/moved", "POST", bodyBase64="aGk="), get("/kept", "POST", bodyBase64="aGk="),
                             get("/moved", redirectPolicy="stop"), get("/moved", redirectPolicy="nope")]),
    "http-headers": ("", [get("/echo", headers=[{"name": "X-A", "value": "1"}, {"name": "x-a", "value": "2"}]),
                          get("/echo", headers=[{"name": "X A", "value": "1"}]),
                          get("/echo", headers=[{"name": "X", "value": "a\nb"}]),
                          get("/echo", headers=[{"name": "X", "value": "", "valueEnvVar": "EXECD_TEST_UNSET"}]),
                          get("/echo", headers=None)]),
    "http-urls": ("", [("http/request", {"method": "GET", "url": u, "requestId": "r"}) for u in
                       ("ftp://x", "nope", "http://", "file:///etc/passwd")]),
    "http-credentials": ("", [("http/request", {"method": "GET", "url": "http://u:p@ORIGIN_HOST/echo#f",
                                                "requestId": "r"})]),
    "http-timeout": ("", [get("/plain", timeoutMs=0)]),
    # configuration
    "config": (TOML, [config([["model"], ["n"], ["t"], ["list"], ["a"], ["tab"], ["aot"]]), config([["tab", "z"]]),
                      config([["model", "x"], ["aot", "k"]]), config([["tab", "none"]]), config([["none"]]),
                      config([["model"]], [["x"]])]),
    "config-none": ("", [config([["model"]])]),
    "config-params": ("", [config([]), config([[]]), config([[1]]), config("a"), config(None),
                           config([["a"]], cwd=None), config([["a"]], cwd="/x"), config([["a"]], cwd="file://host/x"), config([["a"]], [[]]),
                           ("environmentConfig/read", None), ("environmentConfig/read", {})]),
    # coded bodies
    **{f"coded-{c}": ("", [get(f"/{c}{n}", **more) for n in CODED if c != "gzip" or n not in ("-twice", "-more") for more in (
        {}, {"streamResponse": True, "requestId": f"{c}{n}"}, {"headers": [{"name": "Accept-Encoding", "value": "identity"}]})] +
       [get(f"/{c}", "HEAD")]) for c in ("gzip", "zstd", "br", "deflate")},
    "coded-otherwise": ("", [get(p) for p in ("/two-codings", "/gzip-range", "/gzip-chunked", "/gzip-until-close")] +
                        [get("/echo", headers=[{"name": n, "value": v}]) for n, v in (
                            ("Accept-Encoding", "br"), ("Range", "bytes=0-1"))]),
    # refused starts
    "start": ("touch f; mkdir d; ln -s loop loop; printf '#!/none\\n' >i; echo x >x; chmod +x i x", [
        refused(*argv, **more) for argv in (
            ["/none"], ["none"], ["/etc/passwd/x"], ["./f"], ["./d"], ["./i"], ["./x"], ["/bin/true", "a\0"],
            ["/bin/true", "x" * 200000], [""], [])  # with tty the reference looks for other programs in its own way
        for more in ([{}, {"tty": True}] if argv in (["/none"], ["/etc/passwd/x"], [""], []) else [{}])]),
    "start-params": ("touch f", [refused("/bin/true", **more) for more in (
        {"cwd": "file://DIR/none"}, {"cwd": "file://DIR/f"}, {"cwd": "file://host/x"}, {"cwd": "/x"}, {"cwd": "file:///a%00"},
        {"env": {"A": "\0"}}, {"arg0": "\0"})]),
    "start-policy": ("", [refused("/bin/true", sandbox={**policy, **more}, **start) for policy in (READ_ONLY, DISABLED) for more, start in (
        ({"cwd": "file://host/x"}, {}), ({"workspaceRoots": ["file://host/x"]} if policy == READ_ONLY else {"windowsSandboxLevel": "x"}, {}),
        ({"windowsSandboxLevel": "mxc"}, {}), ({"permissions": {"type": "x"}}, {}), ({}, {"cwd": "file://host/x"}))]),
    "start-network": ("", [refused("/bin/true", enforceManagedNetwork=True, networkProxy={"proxy": {
        "enabled": True, "enableSocks5": True, "enableSocks5Udp": True, "allowUpstreamProxy": True, "mode": "full",
        "dangerouslyAllowAllUnixSockets": False, "domains": {"a.example": "allow"}, "unixSockets": None,
        "allowLocalBinding": False, **proxy}, "auditMetadata": {}, "environmentId": None, "executionId": None}, **more)
        for proxy, more in (
            ({"enabled": False}, {}), ({"transparentTcp": True}, {}), ({"transparentTcp": True}, {"sandbox": None}),
            ({"transparentTcp": 1}, {"sandbox": NETWORK}), ({"transparentTcp": None}, {"sandbox": NETWORK}),
            ({"transparentTcp": True, "enableSocks5": False}, {"sandbox": NETWORK}))]),
    "approved": ("mkdir secret; echo key >secret/f; ln -s secret way", [run(text, sandbox=APPROVED) for text in (
        "cat secret/f", "cat way/f", "ls secret", "echo x >secret/new", "mv secret moved", "rm -rf secret", "echo x >new; cat new",
        "echo x >/dev/null && echo written", "for d in null zero full random urandom tty; do test -c /dev/$d && echo $d; done",
        "test -d /dev/shm && test -d /dev/pts && echo both")]),
    "override": ("", [run("cat /etc/hostname >/dev/null; echo ran", sandbox={**APPROVED, "sandboxOverride": o})
                     for o in ("noOverride", "bypassSandboxFirstAttempt", "x", 7)]),
    # the state of a login shell
    "snapshot": ("""cat >HOME/.bashrc <<'END'
              f() { echo "f $1"; }; g() { echo g; }; export -f g; alias l='echo alias'
              shopt -s extglob expand_aliases; set -o noglob; export OF_RC=rc LINES_OF=$'a\nb' A=rc SECRET_KEY=k; echo printed
END
              printf 'export OF_PROFILE=profile\n' >HOME/.bash_profile""",
                 [snapshot('f x; bash -c g; l; echo $OF_RC $OF_PROFILE "$LINES_OF" $A [$SECRET_KEY] $0 "$@"; echo * $-; pwd; exit 3', **more)
                  for more in ({}, {"env": {"A": "request"}}, {"envPolicy": {**EVERYTHING, "ignoreDefaultExcludes": False}},
                               {"envPolicy": {**EVERYTHING, "set": {"A": "set"}, "exclude": ["LINES*"]}}, {"tty": True})] +
                 [refused("true", shellSnapshot=v) for v in (
                     7, {}, {"scopeId": "s"}, {"scopeId": 7, "shell": 7}, {"scopeId": "s", "shell": 7}, {"scopeId": "", "shell": FISH},
                     {"scopeId": "s" * 257, "shell": FISH}, {"scopeId": "s", "shell": {}}, {"scopeId": "s", "shell": {"name": "bash"}})] +
                 [snapshot("true", shell=FISH), snapshot("true", shell={"name": "", "path": "/bin/bash"}),
                  snapshot("true", shell={"name": "bash", "path": "/bin/none"}, argv=["/bin/none", "-lc", "true"]),
                  snapshot("true", shell=FISH, argv=["/bin/bash", "-c", "echo $OF_RC"])]),
    # skills and plugins
    "roots": ("""w() { mkdir -p "$(dirname "$1")"; printf %s "$2" >"$1"; }; w p/.codex-plugin/plugin.json '{"mcpServers":"./m","apps":7}'
              w p/m mcp; w p/.app.json app; w p/SKILL.md top; w p/s/a/SKILL.md x; w p/s/a/agents/openai.yaml y; w p/in/.claude-plugin/plugin.json in
              w q/.cursor-plugin/plugin.json '{"mcpServers":"/x","apps":"x"}'; w q/.mcp.json mcp; w r/1/2/3/4/5/6/7/SKILL.md far; w r/1/SKILL.md near
              w r/.mcp.json none; w file f; ln -s p link; mkdir empty; w l/.codex-plugin/plugin.json '{"mcpServers":{"a":{}},"apps":{}}'""",
              [roots(), roots("p"), roots("q", "r"), roots("p/s", "p/in"), roots("file", "none", "link", "empty"), roots("l"),
               roots("p", "q", sandbox=READ_ONLY), *(("capabilityRoots/discoverV1", v) for v in (
                   None, {}, {"roots": 7}, {"roots": [{}]}, {"roots": [{"id": "a"}]}, {"roots": [{"id": 1, "path": "file:///"}]},
                   {"roots": [{"id": "a", "path": "x:/"}]}, {"roots": [{"id": "a", "path": "file://host/x"}]},
                   {"roots": [{"id": "", "path": "file:///none"}] * 129}))]),
    "discover-nothing": ("", [discover(), discover(sandbox=READ_ONLY)]),
    "discover-params": ("", [discover(cwd=None), discover(cwd="/x"), discover(cwd="file://host/x"), discover(sandbox=1),
                             discover(sandbox=None), discover(x=1), ("capabilities/discoverV2", None),
                             ("capabilities/discoverV2", {}), ("capabilities/discoverV2", 7)]),
    "discover-skills": (a_skill(".codex/skills/b") + a_skill(".codex/skills/a-b") + a_skill(".codex/skills/a/z") +
                        a_skill(".codex/skills/a%b") + a_skill(".codex/skills/ü") + a_skill(".codex/skills/.h") +
                        a_skill(".codex/skills") + a_skill(".agents/skills/b") + a_skill(".codex/skills/1/2/3/4/5/6/7"),
                        [discover(), discover(sandbox=READ_ONLY)]),
    "discover-links": (a_skill("other/x") + "mkdir -p HOME/.codex/skills; cd HOME/.codex/skills; ln -s ../../other l; "
                       "ln -s l l2; ln -s . loop; ln -s ../../other/x/SKILL.md SKILL.md; mkfifo f; mkdir d; mkfifo d/SKILL.md",
                       [discover()]),
    "discover-plugins": ("".join(a_plugin(w, m) for w, m in (
        ("m/a/1.9.0", "{}"), ("m/a/1.10.0", '{"name":"x","interface":{"displayName":" x  y "}}'), ("m/b/1.0.0-rc.1", "{}"),
        ("m/b/1.0.0", '{"name":" "}'), ("m/c/x", "{}"), ("m/c/local", "[]"), ("m/d/1", '{"name":5}'),
        ("m/e/1", '{"apps":{}}'), ("m/f/1", '{"apps":"x","mcpServers":"./none"}'), ("m/g/1", '{"mcpServers":{"b":{"a":1}}}'),
        ("m.x/p/1", "{}"), ("m/p.q/1", "{}"), ("m/.p/1", "{}"), (".m/p/1", "{}"), ("m/h/1 0", "{}"),
        ("m/i/1", '{"mcpServers":["x"],"interface":null}'))) + a_plugin("m/j/1", "{}", ".cursor-plugin") +
        f"cd HOME/{CACHE}/m; ln -s a k; ln -s 1 d/2; mkdir -p l/1; for p in f i; do echo x >$p/1/.mcp.json; "
        """echo y >$p/1/.app.json; done; echo '{"schema_version":1,"remote_plugin_id":" r "}' >a/.codex-remote-plugin-install.json; """
        """echo '{"schema_version":2,"remote_plugin_id":"r"}' >b/.codex-remote-plugin-install.json""", [discover()]),
    "discover-namespaces": (a_plugin("m/p/1") + a_plugin("m/p/1/sub", "{}", ".claude-plugin") +
                            a_plugin("m/p/1/bad", "none") + a_skill(f"{CACHE}/m/p/1/s") + a_skill(f"{CACHE}/m/p/1/sub/s") +
                            a_skill(f"{CACHE}/m/p/1/bad/s") + a_skill(".codex/skills/s", "n" * 64) +
                            "mkdir HOME/.codex/.codex-plugin; echo '{\"name\":\"home\"}' >HOME/.codex/.codex-plugin/plugin.json",
                            [discover()]),
    "discover-files": ("cd HOME; mkdir -p .codex; touch .codex/skills; mkdir -p .codex/plugins; touch .codex/plugins/cache",
                       [discover()]),
    "discover-no-directory": ("touch HOME/.agents", [discover()]),
    "discover-duplicate-keys": (a_plugin("m/p/1", '{"x":1,"x":2}'), [discover()]),
    "config-a-directory": ("mkdir -p HOME/.codex/config.toml", [config([["a"]])]),
}

# Where execd means to differ.
INTENDED = {
    "copy-onto-itself": "the reference empties the file",
    "discover-no-directory": "one place that cannot be searched makes the reference fail",
    "discover-duplicate-keys": "JSON with a key twice is invalid",
    "http-gzip-twice": "the reference loses all but the first member",
    "http-gzip-more": "the reference passes over what is no member",
    "names": "fs/walk finds a file whose name is not UTF-8, the reference an error",
}


@pytest.fixture(scope="module")
def reference(user):
    """The reference server where the test user may execute it."""
    with tempfile.TemporaryDirectory(prefix="execd-codex-") as at:
        os.chmod(at, 0o755)
        program = pathlib.Path(at) / "bin/codex"
        program.parent.mkdir()
        shutil.copy(codex_program(), program)
        program.chmod(0o755)
        beside = pathlib.Path(codex_program()).parent.parent / "codex-resources/bwrap"
        if beside.exists():     # else it is on the PATH
            (program.parent.parent / "codex-resources").mkdir()
            shutil.copy(beside, program.parent.parent / "codex-resources")
        yield str(program)


@pytest.fixture(scope="module")
def origin():
    o = Origin()
    yield o
    o.stop()


class Side:
    """One of the two servers, with a directory that only it uses."""

    def __init__(self, argv, user, prepare, origin, stdin=None):
        self.directory, self.home = (pathlib.Path(tempfile.mkdtemp(prefix="execd-diff-")) for _ in range(2))
        if ROOT:
            for at in self.directory, self.home:
                os.chown(at, user.pw_uid, user.pw_gid)
        self.origin = origin
        prepare = f"umask 022; cd {self.directory}; {prepare.replace('HOME', str(self.home))}"
        subprocess.run(as_user(user, ["sh", "-c", prepare]), check=True, stdin=stdin)
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home)}
        self.client = Stdio(as_home(user, argv, self.home), env=env).ready()
        self.runs = 0

    def place(self, value):
        """A request for this side."""
        text = json.dumps(value) if not isinstance(value, str) else value
        for name, real in (("DIR", str(self.directory)), ("ORIGIN_HOST", self.origin.url.split("//")[1]),
                           ("ORIGIN", self.origin.url)):
            text = text.replace(name, real)
        return json.loads(text) if not isinstance(value, str) else text

    def ask(self, method, params):
        if method == "raw":
            return self.raw(params)
        params = self.place(params)
        if method == "run":
            return self.run(params)
        before = len(self.client.messages)
        m = self.client.request(method, params)
        if isinstance(params, dict) and params.get("streamResponse") and "result" in m:
            self.client.wait(lambda: any(x["params"]["done"] for x in self.deltas(before)), what="the last piece")
            return m, body_of(self.deltas(before))
        return m

    def deltas(self, since):
        return [x for x in self.client.messages[since:] if x.get("method") == "http/request/bodyDelta"]

    def raw(self, text):
        before = len(self.client.messages)
        self.client.send_text(text.encode())
        return self.client.wait(lambda: self.client.messages[before:], what=f"an answer to {text}")[0]

    def run(self, params):
        id = f"p{self.runs}"
        self.runs += 1
        written = params.pop("write", None)
        m = self.client.request("process/start", {"processId": id, **params})
        if "error" in m:
            return m
        if written:
            self.client.write(id, written)
            self.client.wait_output(id, written)
            self.client.terminate(id)
        done = self.client.finished(id)
        return [done.code if not written else None, done.stdout, done.stderr]

    def tree(self):
        """What is left: kind, mode, content."""
        found = {}
        for at, directories, files in os.walk(os.fsencode(self.directory)):
            for name in directories + files:
                path = os.path.join(at, name)
                st = os.lstat(path)
                what = os.readlink(path) if stat.S_ISLNK(st.st_mode) else \
                    open(path, "rb").read() if stat.S_ISREG(st.st_mode) else None
                found[os.path.relpath(path, os.fsencode(self.directory))] = (st.st_mode, what)
        return found

    def stop(self):
        self.client.close()
        shutil.rmtree(self.directory)
        shutil.rmtree(self.home)


def as_home(user, argv, home):
    found = as_user(user, argv)
    return [f"HOME={home}" if x.startswith("HOME=") else x for x in found]


def body_of(deltas):
    """How a body is cut into pieces is the network's."""
    whole = b"".join(base64.b64decode(d["params"]["deltaBase64"]) for d in deltas)
    return [whole, deltas[-1]["params"]["error"] is not None]


def normal(value, side):
    """Without what may differ: where it ran, times, the order of a directory, how TOML is laid out."""
    if isinstance(value, dict):
        value = {k: v for k, v in value.items() if k not in ("createdAtMs", "modifiedAtMs", "id")} \
            if "method" not in value else value
        if "toml" in value:
            value = {**value, "toml": json.dumps(tomllib.loads(value["toml"]), sort_keys=True, default=repr)}
        if isinstance(value.get("warnings"), list):
            # The reference does not say where and why. It says nothing of agents/openai.yaml.
            value = {**value, "warnings": sorted({w.split(":")[0] for w in value["warnings"] if "openai.yaml" not in w})}
        if isinstance(value.get("bodyBase64"), str):
            value = {**value, "bodyBase64": base64.b64decode(value["bodyBase64"]).decode("latin1")}
        if "error" in value and isinstance(value["error"], dict):
            return error_of(value["error"], side)
        return {k: normal(v, side) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        values = [normal(v, side) for v in value]
        if values and isinstance(values[0], dict) and "fileName" in values[0]:
            values.sort(key=lambda e: e["fileName"])
        return values
    if isinstance(value, str):
        for name, real in ("DIR", side.directory), ("HOME", side.home), ("ORIGIN", side.origin.url):
            value = value.replace(str(real), name)
    return value


# What follows these is in each program's own words.
WORDS = ("http/request failed", "failed to read http/request response body", "http/request url is invalid",
         "failed to load executor-local config: HOME", "failed to parse JSON-RPC message")


def error_of(error, side):
    message = normal(error["message"], side)
    for words in WORDS:
        if message.startswith(words):
            message = words
    return [error["code"], message, error.get("data") if since_171() else None]


# What the newest reference announces and execd does not do. It cannot be asked for without being announced.
NOT_DONE = {"credentialMasking", "credentialMaskingCustomProviders"}


def test_what_is_announced(reference, origin, user):
    infos = []
    for argv in [reference, "exec-server", "--listen", "stdio"], [str(EXECD), "--listen", "stdio"]:
        side = Side(argv, user, "", origin)
        infos.append(side.client.call("environment/info"))
        side.stop()
    theirs, ours = infos
    missing = {n for n, v in theirs["capabilities"].items() if v and not ours["capabilities"].get(n)}
    assert missing - {"networkProxyTransparentTcp"} == NOT_DONE & set(theirs["capabilities"])
    assert ours["executorVersion"] == VERSIONS[-1]


def test_there_is_a_row_for_each_difference():
    assert set(INTENDED) <= set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_case(name, reference, origin, user):
    """An ordinary user's servers; a server of root's has the same runner, and test_codex.py drives it."""
    prepare, requests = CASES[name]
    need_reference(name)
    if name.startswith(("coded-", "http-gzip", "http-zstd", "http-two")) and not since_171():
        pytest.skip("this reference decodes no body")
    answers = []
    for argv in [reference, "exec-server", "--listen", "stdio"], [str(EXECD), "--listen", "stdio"]:
        side = Side(argv, user, prepare, origin)
        try:
            answers.append([[normal(side.ask(*r), side) for r in requests], side.tree()])
        finally:
            side.stop()
    if name in INTENDED:
        assert answers[0] != answers[1], f"execd does not differ any more: {INTENDED[name]}"
        return
    for request, theirs, ours in zip(requests, answers[0][0], answers[1][0]):
        assert ours == theirs, request
    assert answers[1][1] == answers[0][1]


@pytest.mark.parametrize("file, cases, not_read", [
    ("SKILL.md", FRONT_MATTER, NOT_READ_FRONT_MATTER), ("agents/openai.yaml", AGENTS, NOT_READ_AGENTS)])
def test_yaml(file, cases, not_read, reference, origin, user, tmp_path):
    """Each text in a skill of its own: both servers make the same of it, or execd says that it is not read."""
    need_reference("yaml")
    for name, text in cases.items():
        (tmp_path / name / file).parent.mkdir(parents=True)
        (tmp_path / name / "SKILL.md").write_text(skill("name: n\ndescription: d"))
        (tmp_path / name / file).write_text(skill(text) if file == "SKILL.md" else text, newline="")
    with tarfile.open(tmp_path.parent / "skills.tar", "w") as tar:
        tar.add(tmp_path, "skills")
    found = []
    for argv in [reference, "exec-server", "--listen", "stdio"], [str(EXECD), "--listen", "stdio"]:
        # The reference looks when it starts, and again when it is told of a change.
        with open(tmp_path.parent / "skills.tar", "rb") as tar:
            side = Side(argv, user, "mkdir HOME/.codex; tar xf - -C HOME/.codex", origin, stdin=tar)
        try:
            skills = side.client.call("capabilities/discoverV2", {"cwd": "file:///"})["skills"]
            found.append({s["path"].split("/skills/")[1].split("/")[0]: normal(s, side) for s in skills})
        finally:
            side.stop()
    differ = {name for name in cases if found[0].get(name) != found[1].get(name)}
    assert differ == set(not_read), {n: (found[0].get(n), found[1].get(n)) for n in differ ^ set(not_read)}


ROOTS = "codex-project-roots:"
# What lies in the directory: two workspace roots, of which the first is the working directory of the policy.
FILES = "for d in w w/sub w/sub/deep 'w/a b' 'w/[x]' w/.hid w2 w2/sub; do mkdir -p \"$d\"; " \
        "for f in a.env b.key '[x' x.y; do echo s >\"$d/$f\"; done; done; mkdir HOME/h; echo s >HOME/a.env; " \
        "echo s >HOME/h/a.env; find w w2 HOME -type f >list"
PATTERNS = [ROOTS + p for p in (
    "///a.env", "////a.env", "///", "//.", "//./a.env", "///./a.env", "///sub/a.env", "///sub", "//**/a.env",
    "///**/a.env", "//**/*.env", "///*.env", "//*.env", "//sub/../a.env", "//sub/../*.env", "//../w2/a.env",
    "///../w2/a.env", "//*/a.env", "///*/a.env", "///**", "///*", "///sub/*.env", "///sub/", "//sub//*.env",
    "//sub/./*.env", "//DIR/w/a.env", "///DIR/w/*.env", "//..*")] + [
    "DIR/w/**/a.env", "DIR/w/*.env", "/DIR/w/*.env", "DIR/w//*.env", "*.env", "./*.env", "**/a.env", "**/*.env",
    "sub/*.env", "sub//*.env", "../w2/*.env", "sub/../*.env", "~/**/a.env", "~/*.env", "~//*.env", "~a*", "*.{env,key}",
    "{*.env,sub/*.key}", "[ab].*", "[!a].*", "[x", "\\[x", "[[]x", "?.env", "a?env", "sub/**",
    "**/deep/*", "**", "**/.hid/**", "x.*", "!*.env", " *.env", "a b/*.env", "*.ENV"]
# These name one path. The reference starts nothing with them; execd denies the path.
NO_PATTERNS = ["a.env", "./a.env", "DIR/w/a.env", "sub", "sub/", ".", "~", "~/a.env", "../w2/a.env", "{a.env,b.key}",
               ROOTS + "//", ROOTS + "//a.env", ROOTS + "//sub/a.env", ROOTS + "//sub//a.env", ROOTS + "/a.env"]


def denying(pattern):
    special = [{"path": {"type": "special", "value": {"kind": kind}}, "access": access}
               for kind, access in (("root", "read"), ("project_roots", "write"))]
    glob = {"path": {"type": "glob_pattern", "pattern": pattern}, "access": "deny"}
    return {"cwd": "file://DIR/w", "workspaceRoots": ["file://DIR/w", "file://DIR/w2"],
            "windowsSandboxLevel": "disabled", "permissions": {"type": "managed", "network": "restricted", "file_system": {
                "type": "restricted", "entries": [*special, glob]}}}


def unreadable(side, pattern):
    """Which files a command cannot read under that pattern; what it said if it did not run."""
    look = run('while read -r f; do cat "$f" >/dev/null 2>&1 || echo "$f"; done <list; echo done',
               sandbox=denying(pattern), env={"PATH": "/usr/bin:/bin", "HOME": str(side.home)})
    found = normal(side.ask(*look), side)
    done = isinstance(found, list) and found[1].endswith("done\n")
    return set(found[1].split("\n")[:-2]) if done else str(found)


def test_patterns(reference, origin, user):
    """What a pattern hides here is hidden there, and the other way round."""
    need_reference("patterns")
    found = []
    for argv in [reference, "exec-server", "--listen", "stdio"], [str(EXECD), "--listen", "stdio"]:
        side = Side(argv, user, FILES, origin)
        try:
            found.append({p: unreadable(side, p) for p in PATTERNS + NO_PATTERNS})
        finally:
            side.stop()
    theirs, ours = found
    assert {p: (theirs[p], ours[p]) for p in PATTERNS if theirs[p] != ours[p]} == {}
    assert all("cannot be safely expanded" in theirs[p] for p in NO_PATTERNS), theirs
    assert all(isinstance(ours[p], set) for p in NO_PATTERNS), ours
