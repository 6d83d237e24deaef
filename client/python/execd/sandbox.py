# SPDX-License-Identifier: ISC
"""The sandbox profiles that execctl knows by name, and the context that a request carries (doc/sandbox.md section A3)."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PROFILES = ("read-only", "workspace-write")
# The directories of a workspace that configure tools.
_GUARDED = (".git", ".agents", ".codex", ".aws")


def _entry(kind: str, access: str, subpath: str | None = None) -> dict[str, Any]:
    value = {"kind": kind} if subpath is None else {"kind": kind, "subpath": subpath}
    return {"path": {"type": "special", "value": value}, "access": access}


def check_sandbox(sandbox: Any, network: bool) -> None:
    """A profile's name, or a whole context of execd-protocol(7)."""
    if sandbox is None or isinstance(sandbox, Mapping):
        if network:
            raise ValueError("network: it means nothing without a profile in sandbox")
    elif not isinstance(sandbox, str):
        raise TypeError(f"sandbox: expected str, a mapping or None, not {type(sandbox).__name__}")
    elif sandbox not in PROFILES:
        raise ValueError(f"sandbox: {sandbox!r} is neither read-only nor workspace-write")


def context(sandbox: str | Mapping[str, Any], cwd: str, network: bool, guarded: str = "read") -> dict[str, Any]:
    """`cwd` is the URI of the workspace, and `guarded` what may be done with those directories."""
    if not isinstance(sandbox, str):
        return dict(sandbox)
    entries = [_entry("root", "read")]
    if sandbox == "workspace-write":
        entries += [_entry(kind, "write") for kind in ("project_roots", "slash_tmp", "tmpdir")]
        entries += [_entry("project_roots", guarded, name) for name in _GUARDED]
    return {"permissions": {"type": "managed", "network": "enabled" if network else "restricted",
                            "file_system": {"type": "restricted", "entries": entries}},
            "cwd": cwd, "workspaceRoots": [cwd], "windowsSandboxLevel": "disabled"}
