# SPDX-License-Identifier: ISC
"""What refusals of a sandbox say."""


class Begins(str):
    """Equal to a message that begins with this and goes on with a reason."""
    __hash__ = str.__hash__

    def __eq__(self, other):
        return len(other) > len(self) + 2 and other.startswith(self + ": ")

    def __ne__(self, other):
        return not self == other


UNENFORCEABLE = Begins("sandbox intent cannot be enforced on this executor")
# Of a start: the error with the peer's name for it.
UNAVAILABLE = {"code": -32602, "message": UNENFORCEABLE, "data": {"kind": "sandboxUnavailable"}}
