# SPDX-License-Identifier: ISC
"""Checks of values. What a program gives is checked before anything is sent, and what a server says before it is used."""
from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from .errors import ProtocolError

T = TypeVar("T")


def _kind(value: object, kinds: tuple[type, ...]) -> bool:
    """True is no number here, though it is an int to Python."""
    return isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))


# --- of the program -----------------------------------------------------------


def check(name: str, value: Any, *kinds: type, none: bool = False) -> None:
    if (value is None and none) or _kind(value, kinds):
        return
    expected = " or ".join(k.__name__ for k in kinds) + (" or None" if none else "")
    raise TypeError(f"{name}: expected {expected}, not {type(value).__name__}")


def check_text(name: str, value: Any, none: bool = False) -> None:
    """A string that JSON and a system call can carry."""
    check(name, value, str, none=none)
    if value is None:
        return
    if "\0" in value:
        raise ValueError(f"{name}: a NUL byte inside")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name}: JSON carries only UTF-8") from None


def check_range(name: str, value: Any, low: int, high: int) -> None:
    check(name, value, int)
    if not low <= value <= high:
        raise ValueError(f"{name}: {value} is not between {low} and {high}")


def check_texts(name: str, value: Any) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise TypeError(f"{name}: expected a sequence of str, not {type(value).__name__}")
    for v in value:
        check_text(name, v)
    return list(value)


def check_env(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise TypeError(f"env: expected a mapping, not {type(value).__name__}")
    for k, v in value.items():
        check_text("env", k)
        check_text(f"env[{k!r}]", v)
        if not k or "=" in k:
            raise ValueError(f"env: {k!r} is no name of a variable")
    return dict(value)


def milliseconds(name: str, seconds: Any) -> int:
    """At least one, so that a short time does not mean none."""
    check(name, seconds, int, float)
    if not 0 < seconds < 1e12:
        raise ValueError(f"{name}: {seconds} is no time in seconds")
    return max(1, int(round(seconds * 1000)))


def check_bytes(name: str, value: Any) -> bytes:
    """Text is sent as UTF-8."""
    check(name, value, bytes, bytearray, memoryview, str)
    return value.encode() if isinstance(value, str) else bytes(value)


# --- of the server ------------------------------------------------------------


def member(value: Any, name: str, kind: type[T]) -> T:
    """The member of an object, which must be of this kind."""
    found = value.get(name) if isinstance(value, dict) else None
    if not isinstance(found, kind) or not _kind(found, (kind,)):
        raise ProtocolError(f"the server's {name} is {type(found).__name__}, and not {kind.__name__}")
    return found


def optional(value: Any, name: str, kind: type[T], default: T) -> T:
    """Likewise, or the default where it is absent or null."""
    if not isinstance(value, dict) or value.get(name) is None:
        return default
    return member(value, name, kind)


def from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ProtocolError("the server sent base64 that is none") from None


def to_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
