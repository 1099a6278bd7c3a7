"""Escapes in the strings of Python and JSON, as JSON has them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from json.encoder import encode_basestring
from typing import Literal, NamedTuple, TypeAlias

from interlingua.common.schema.coercion import ValueCoercion
from interlingua.parsing.lookahead import Lookahead, PatternSequence, literal_sequence
from interlingua.parsing.markers import MarkerSet, compile_markers
from interlingua.parsing.text_buffer import Read, TextBuffer

__all__ = [
    "CLOSING_BRACKETS",
    "ESCAPE_STARTS",
    "WHITESPACE",
    "BracketContext",
    "Notation",
    "QuotedMode",
    "escape_json",
    "nested_context",
    "read_escape",
]

_HEX_PATTERN = re.compile(r"[0-9A-Fa-f]*")
_OCTAL_PATTERN = re.compile(r"[0-7]*")
_SIMPLE_ESCAPES = {"\\\n": "", "\\\\": "\\", "\\'": "'", '\\"': '"', "\\/": "/", "\\a": "\a", "\\b": "\b"}
_SIMPLE_ESCAPES |= {"\\f": "\f", "\\n": "\n", "\\r": "\r", "\\t": "\t", "\\v": "\v"}
_DIGIT_COUNTS = {"\\x": 2, "\\u": 4, "\\U": 8} | {f"\\{digit}": 2 for digit in range(8)}

ESCAPE_STARTS = ("\\", *_SIMPLE_ESCAPES, *_DIGIT_COUNTS)
"""What an escape begins with."""


def escape_json(text: str) -> str:
    """The text as it stands in a JSON string."""
    return encode_basestring(text)[1:-1]


def read_escape(escape: str, source: TextBuffer) -> Read[str]:
    """The JSON for an escape that begins like this. A backslash that begins none stays, as in Python."""
    if escape not in _DIGIT_COUNTS:
        return escape_json(_SIMPLE_ESCAPES.get(escape, escape))
    octal = escape[1].isdigit()
    size = _DIGIT_COUNTS[escape]
    digits = yield from source.take_while(_OCTAL_PATTERN if octal else _HEX_PATTERN, size)
    if octal:
        return escape_json(chr(int(escape[1] + digits, 8)))
    if len(digits) < size or int(digits, 16) > 0x10FFFF:
        return escape_json(escape + digits)
    return f"\\u{digits}" if escape == "\\u" else escape_json(chr(int(digits, 16)))


QuotedMode: TypeAlias = Literal["string", "typed", "any"]
"""What is in quotes is a string; or is a value of the schema's type where no string fits; or may be any value."""

WHITESPACE = " \t\n\r"
CLOSING_BRACKETS = {"{": "}", "[": "]", "(": ")"}

WHITESPACE_PATTERN = r"\s*+"
CLOSING_BRACKETS_PATTERN = r"[}\])\s]*+"
"""What may stand between the end of a value and that of its call."""
_KEY_PATTERN = r"([^\W\d][\w.\-]*+)"
_BEFORE_STRING_PATTERN = r"[^(){}<'\"]*+"
_IN_STRING_PATTERN = r"[^\s,}\])]"
"""What no quote has behind it that ends a string."""
_BARE_VALUE_PATTERNS = (r"[\w.+\-]*+", WHITESPACE_PATTERN, r"[,}\])\[{(]")


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
        quoted_mode: QuotedMode = "string",
        between_calls: tuple[str, ...] = (),
        next_call_patterns: Mapping[str, tuple[PatternSequence, ...]] | None = None,
        plain_call_patterns: Mapping[str, tuple[PatternSequence, ...]] | None = None,
        after_string: tuple[PatternSequence, ...] = (),
    ) -> None:
        self.separator = separator
        self.close = close
        self.delimiter = delimiter
        self.quotes = (*quotes, delimiter) if delimiter else quotes
        self.escaped = escaped
        self.quoted_mode = quoted_mode
        closers = tuple(CLOSING_BRACKETS[bracket] for bracket in brackets)
        self.value_ends = compile_markers(",", *closers, *marks)
        """What may follow a value."""
        self.value_openers = compile_markers(*self.quotes, *brackets)
        self.quote_markers = compile_markers(*self.quotes)
        self.bare_value_ends = compile_markers(",", *brackets, *closers, *marks, *((delimiter,) if delimiter else ()))
        self.after_call = compile_markers(*between_calls, *marks)
        patterns_by_end, plain_patterns = next_call_patterns or {}, plain_call_patterns or {}
        self.string_markers = {quote: compile_markers(quote, *ESCAPE_STARTS, *patterns_by_end) for quote in quotes}
        if delimiter:
            self.string_markers[delimiter] = compile_markers(delimiter, *patterns_by_end)
        self.unclosed_strings = {
            quote: {
                end: Lookahead(
                    *(pattern for call in patterns for pattern in _next_string_patterns(end, call, quote, delimiter)),
                    *((*literal_sequence(end), *call) for call in plain_patterns.get(end, ())),
                )
                for end, patterns in patterns_by_end.items()
            }
            for quote in self.quotes
        }
        """By its quote, and by what ends a call: what tells that a string was never closed, but the call was."""
        self.after_string = Lookahead(*after_string)
        """What tells that a quote ends a string, and the call with it, be there brackets missing or too many."""
        word_ends = (",", *self.quotes, "\\", *brackets, *closers, *WHITESPACE, *marks)
        self.key_syntax = {
            (separator, close): KeySyntax(
                "=" if separator == ":" else ":",
                compile_markers(":", "="),
                compile_markers(separator, *self.value_ends.literals),
                compile_markers(":", "=", *self.value_ends.literals),
                compile_markers(":", "=", *word_ends),
                compile_markers(close, *marks),
                Lookahead(*(_quoted_key_pattern(quote) for quote in self.quotes if separator == ":")),
                Lookahead(*self._next_member_patterns(separator)),
            )
            for separator, close in ((separator, close), (":", "}"))
        }
        """How keys are told, by the separator behind them and the end of the brackets that they stand in."""

    def _next_member_patterns(self, separator: str) -> list[PatternSequence]:
        """A key and the beginning of its value."""
        key = (WHITESPACE_PATTERN, _KEY_PATTERN, WHITESPACE_PATTERN, separator, WHITESPACE_PATTERN)
        return [
            (*key, *_BARE_VALUE_PATTERNS),
            *((*key, *literal_sequence(quote), WHITESPACE_PATTERN, _IN_STRING_PATTERN) for quote in self.quotes),
        ]


def _next_string_patterns(end: str, call: PatternSequence, *quotes: str) -> list[PatternSequence]:
    """From the end of a call to the next one, and on to the first string in it."""
    pattern = (*literal_sequence(end), *call, _BEFORE_STRING_PATTERN)
    return [
        (*pattern, *literal_sequence(quote), WHITESPACE_PATTERN, _IN_STRING_PATTERN)
        for quote in dict.fromkeys(quotes)
        if quote
    ]


def _quoted_key_pattern(quote: str) -> PatternSequence:
    return (
        WHITESPACE_PATTERN,
        "()",
        *literal_sequence(quote),
        r"\w[^<'\"\n]*+",
        *literal_sequence(quote),
        WHITESPACE_PATTERN,
        ":",
    )


class KeySyntax(NamedTuple):
    wrong_separator: str
    """What models write in place of the separator."""
    separators: MarkerSet
    """The separator, and the slip."""
    key_ends: MarkerSet
    """What ends a key."""
    key_ends_or_wrong_separator: MarkerSet
    word_ends: MarkerSet
    """What ends a word that may be a key."""
    container_ends: MarkerSet
    """What tells that a comma was the last one: the end."""
    quoted_key: Lookahead
    """What tells that a comma was one between members: a quoted key."""
    next_member: Lookahead
    """What tells that a comma is missing: a key and its value."""


class BracketContext(NamedTuple):
    """The brackets that a value stands in. In an array there are no keys, and no separator."""

    closer: str
    coercion_for: Callable[[str], ValueCoercion]
    separator: str = ""
    remaining_keys: set[str] | None = None
    """Those that may come yet: each is taken out as it comes. None if they are not known."""
    depth: int = 0


def nested_context(opener: str, coercion: ValueCoercion, depth: int) -> BracketContext:
    """The inside of a nested value's brackets."""
    closer = CLOSING_BRACKETS[opener]
    if opener == "{":
        return BracketContext(closer, coercion.member, ":", set(coercion.keys) or None, depth)
    return BracketContext(closer, lambda _: coercion.item, depth=depth)
