"""How literals are written in a dialect: which quotes, separators and brackets count, and where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

from interlingua.markers import Markers, markers
from interlingua.plan import Plan
from interlingua.shapes.escapes import ESCAPES

__all__ = ["CLOSERS", "WHITE", "Notation", "Place", "Quoted", "inside"]

Quoted: TypeAlias = Literal["string", "typed", "any"]
"""What is in quotes is a string; or is a value of the schema's type where no string fits; or may be any value."""

WHITE = " \t\n\r"
CLOSERS = {"{": "}", "[": "]", "(": ")"}


class Notation:
    """How literals are written in one dialect: what quotes a string, and what stands around params."""

    def __init__(
        self,
        separator: str,
        close: str,
        brackets: str,
        quotes: tuple[str, ...],
        marks: tuple[str, ...],
        delimiter: str = "",
        escaped: bool = True,
        as_written: Quoted = "string",
    ) -> None:
        self.separator = separator
        self.close = close
        self.delimiter = delimiter
        self.quotes = (*quotes, delimiter) if delimiter else quotes
        self.escaped = escaped
        self.as_written = as_written
        closers = tuple(CLOSERS[bracket] for bracket in brackets)
        self.ends = markers(",", *closers, *marks)
        """What may follow a value."""
        self.opens = markers(*self.quotes, *brackets)
        self.all_quotes = markers(*self.quotes)
        self.bare_ends = markers(",", *brackets, *closers, *marks, *((delimiter,) if delimiter else ()))
        self.after_call = markers(",", "]", *marks)
        self.strings = {quote: markers(quote, *ESCAPES) for quote in quotes}
        if delimiter:
            self.strings[delimiter] = markers(delimiter)
        word_ends = (",", *self.quotes, "\\", *brackets, *closers, *WHITE, *marks)
        self.keys = {
            (separator, close): Keys(
                markers(separator),
                markers(separator, *self.ends.literals),
                markers(separator, *word_ends),
                markers(*(self.quotes if separator == ":" else ()), close, *marks),
            )
            for separator, close in ((separator, close), (":", "}"))
        }
        """How keys are told, by the separator behind them and the end of the brackets that they stand in."""


class Keys(NamedTuple):
    separator: Markers
    ends: Markers
    """What ends a key."""
    word_ends: Markers
    """What ends a word that may be a key."""
    begins: Markers
    """What tells that a comma was one between members: a quoted key, or the end."""


class Place(NamedTuple):
    """The brackets that a value stands in. In an array there are no keys, and no separator."""

    end: str
    plan: Callable[[str], Plan]
    separator: str = ""
    keys: tuple[str, ...] = ()
    depth: int = 0


def inside(opener: str, plan: Plan, depth: int) -> Place:
    """The inside of a nested value's brackets."""
    end = CLOSERS[opener]
    if opener == "{":
        return Place(end, plan.member, ":", plan.keys, depth)
    return Place(end, lambda _: plan.item, depth=depth)
