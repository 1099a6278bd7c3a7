"""How literals are written in a dialect: which quotes, separators and brackets count, and where."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple, TypeAlias

from interlingua.common.schema.coercion import Plan
from interlingua.parsing.lookahead import Ahead, Way, literal
from interlingua.parsing.markers import Markers, markers
from interlingua.parsing.shapes.literals.notation__escapes import ESCAPES

__all__ = ["CLOSERS", "WHITE", "Notation", "Place", "Quoted", "inside"]

Quoted: TypeAlias = Literal["string", "typed", "any"]
"""What is in quotes is a string; or is a value of the schema's type where no string fits; or may be any value."""

WHITE = " \t\n\r"
CLOSERS = {"{": "}", "[": "]", "(": ")"}

SPACE = r"\s*+"
BRACKETS = r"[}\])\s]*+"
"""What may stand between the end of a value and that of its call."""
_KEY = r"([^\W\d][\w.\-]*+)"
_BEFORE_STRING = r"[^(){}<'\"]*+"
_IN_STRING = r"[^\s,}\])]"
"""What no quote has behind it that ends a string."""
_BARE = (r"[\w.+\-]*+", SPACE, r"[,}\])\[{(]")


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
        between_calls: tuple[str, ...] = (),
        next_call: Mapping[str, tuple[Way, ...]] | None = None,
        plain_call: Mapping[str, tuple[Way, ...]] | None = None,
        after_string: tuple[Way, ...] = (),
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
        self.after_call = markers(*between_calls, *marks)
        ends_of_call, plain_calls = next_call or {}, plain_call or {}
        self.strings = {quote: markers(quote, *ESCAPES, *ends_of_call) for quote in quotes}
        if delimiter:
            self.strings[delimiter] = markers(delimiter, *ends_of_call)
        self.unclosed = {
            quote: {
                end: Ahead(
                    *(way for call in ways for way in _to_string(end, call, quote, delimiter)),
                    *((*literal(end), *call) for call in plain_calls.get(end, ())),
                )
                for end, ways in ends_of_call.items()
            }
            for quote in self.quotes
        }
        """By its quote, and by what ends a call: what tells that a string was never closed, but the call was."""
        self.after_string = Ahead(*after_string)
        """What tells that a quote ends a string, and the call with it, be there brackets missing or too many."""
        word_ends = (",", *self.quotes, "\\", *brackets, *closers, *WHITE, *marks)
        self.keys = {
            (separator, close): Keys(
                "=" if separator == ":" else ":",
                markers(":", "="),
                markers(separator, *self.ends.literals),
                markers(":", "=", *self.ends.literals),
                markers(":", "=", *word_ends),
                markers(close, *marks),
                Ahead(*(_quoted_key(quote) for quote in self.quotes if separator == ":")),
                Ahead(*self._next_member(separator)),
            )
            for separator, close in ((separator, close), (":", "}"))
        }
        """How keys are told, by the separator behind them and the end of the brackets that they stand in."""

    def _next_member(self, separator: str) -> list[Way]:
        """A key and the beginning of its value."""
        key = (SPACE, _KEY, SPACE, separator, SPACE)
        return [(*key, *_BARE), *((*key, *literal(quote), SPACE, _IN_STRING) for quote in self.quotes)]


def _to_string(end: str, call: Way, *quotes: str) -> list[Way]:
    """From the end of a call to the next one, and on to the first string in it."""
    way = (*literal(end), *call, _BEFORE_STRING)
    return [(*way, *literal(quote), SPACE, _IN_STRING) for quote in dict.fromkeys(quotes) if quote]


def _quoted_key(quote: str) -> Way:
    return (SPACE, "()", *literal(quote), r"\w[^<'\"\n]*+", *literal(quote), SPACE, ":")


class Keys(NamedTuple):
    slip: str
    """What models write in place of the separator."""
    separators: Markers
    """The separator, and the slip."""
    ends: Markers
    """What ends a key."""
    ends_or_slip: Markers
    word_ends: Markers
    """What ends a word that may be a key."""
    no_more: Markers
    """What tells that a comma was the last one: the end."""
    quoted: Ahead
    """What tells that a comma was one between members: a quoted key."""
    next_member: Ahead
    """What tells that a comma is missing: a key and its value."""


class Place(NamedTuple):
    """The brackets that a value stands in. In an array there are no keys, and no separator."""

    end: str
    plan: Callable[[str], Plan]
    separator: str = ""
    keys: set[str] | None = None
    """Those that may come yet: each is taken out as it comes. None if they are not known."""
    depth: int = 0


def inside(opener: str, plan: Plan, depth: int) -> Place:
    """The inside of a nested value's brackets."""
    end = CLOSERS[opener]
    if opener == "{":
        return Place(end, plan.member, ":", set(plan.keys) or None, depth)
    return Place(end, lambda _: plan.item, depth=depth)
