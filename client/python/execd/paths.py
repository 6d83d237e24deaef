# SPDX-License-Identifier: ISC
"""Paths of the server, which are file: URIs on the wire."""
from __future__ import annotations

import os
from urllib.parse import quote_from_bytes, unquote_to_bytes

from .errors import ProtocolError

PATH_MAX = 1 << 16  # bytes of a URI that the server sends

# What stands for itself in a path (RFC 3986 section 3.3).
_SAFE = "/-._~!$&'()*+,;=:@[]|^"


def to_uri(path: str | os.PathLike[str], home: str) -> str:
    """A path that is not absolute begins at `home`. Names that are not UTF-8 are written as os.fsdecode() has them."""
    text = os.fspath(path)
    if not isinstance(text, str):
        raise TypeError(f"path: expected str, not {type(text).__name__}")
    if "\0" in text:
        raise ValueError("path: a NUL byte inside")
    if not text:
        raise ValueError("path: it is empty")
    if not text.startswith("/"):
        text = f"{home.rstrip('/')}/{text}"
    return "file://" + quote_from_bytes(os.fsencode(text), safe=_SAFE)


def from_uri(uri: str) -> str:
    if not uri.startswith("file:///") or len(uri) > PATH_MAX:
        raise ProtocolError(f"the server's path {uri[:200]!r} is no file: URI")
    return os.fsdecode(unquote_to_bytes(uri[len("file://"):]))
