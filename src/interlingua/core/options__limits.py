"""How much may be held or passed before a reply counts as runaway."""

from __future__ import annotations

from typing import Literal

import msgspec

from interlingua.errors import UsageError, check_field_types

__all__ = ["Limits"]

KIB, MIB = 1024, 1024 * 1024


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Counted in characters, but for `event`, which is in bytes.

    Over a limit, `flush` gives what was held to the client as text and reads on afresh; `error` ends the reply.
    """

    header: int = 1 * KIB
    """What stands between the beginning of a call and its arguments."""
    held: int = 1 * MIB
    """What may wait: a call without a name, calls behind an open one, arguments of unknown kind."""
    args: int = 16 * MIB
    """One call's arguments."""
    blanks: int = 16 * KIB
    """What stands between two tokens of a call's arguments, outside of strings: some models never stop writing it. More
    is an error, whatever `over` says."""
    event: int = 32 * MIB
    """One event of a stream."""
    over: Literal["flush", "error"] = "flush"
    """What becomes of a reply that is over one of them."""

    def __post_init__(self) -> None:
        check_field_types(self)
        for name, minimum in (("header", 1), ("held", 1), ("args", 1), ("blanks", 64), ("event", 1)):
            if getattr(self, name) < minimum:
                raise UsageError(f"Limits.{name}: less than {minimum}", "a limit leaves room for something")
