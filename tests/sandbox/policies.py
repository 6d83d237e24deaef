# SPDX-License-Identifier: ISC
"""Sandbox contexts as clients write them (doc/sandbox.md A3 to A6)."""
import urllib.parse

from refusals import UNAVAILABLE, UNENFORCEABLE  # noqa: F401

PROTECTED = (".git", ".agents", ".codex", ".aws")


def uri(path):
    return "file://" + urllib.parse.quote(str(path))


def path(where, access):
    return {"path": {"type": "path", "path": uri(where)}, "access": access}


def special(kind, access, subpath=None):
    value = {"kind": kind} if subpath is None else {"kind": kind, "subpath": subpath}
    return {"path": {"type": "special", "value": value}, "access": access}


def glob(pattern, access="deny"):
    return {"path": {"type": "glob_pattern", "pattern": pattern}, "access": access}


READ_ALL = special("root", "read")


def context(permissions, roots=(), cwd=None, **extra):
    c = {"permissions": permissions, "windowsSandboxLevel": "disabled",
         "workspaceRoots": [uri(r) for r in roots], **extra}
    if cwd is not None:
        c["cwd"] = uri(cwd)
    return c


def managed(*entries, roots=(), network="restricted", cwd=None, **fs):
    return context({"type": "managed", "network": network,
                    "file_system": {"type": "restricted", "entries": list(entries), **fs}}, roots, cwd)


def unrestricted(network):
    return context({"type": "managed", "network": network, "file_system": {"type": "unrestricted"}})


def external(network):
    return context({"type": "external", "network": network})


def workspace_write(*roots, network="restricted", more=()):
    """What the client calls :workspace."""
    protected = [{**special("project_roots", "read", name), "missing_path_behavior": "skip"} for name in PROTECTED]
    return managed(READ_ALL, special("project_roots", "write"), special("slash_tmp", "write"),
                   special("tmpdir", "write"), *protected, *more, roots=roots, network=network, cwd=roots[0])
