"""Notation of literals in one dialect: escapes, quotes, keys and the patterns that reveal missing delimiters."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from json.encoder import encode_basestring
from typing import Literal, NamedTuple, TypeAlias

from interlingua.common.schema.coercion import ValueCoercion
from interlingua.parsing.lookahead import Lookahead, PatternSequence, literal_sequence
from interlingua.parsing.markers import MarkerSet, compile_markers
from interlingua.parsing.shapes.literals.nested_calls import QuotedCallSyntax
from interlingua.parsing.text_buffer import Read, TextBuffer

__all__ = [
    "CLOSING_BRACKETS",
    "CLOSING_BRACKETS_RUN",
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
"""The possible beginnings of an escape."""


def escape_json(text: str) -> str:
    """Escape the text for a JSON string, without the quotes."""
    return encode_basestring(text)[1:-1]


def read_escape(escape: str, source: TextBuffer) -> Read[str]:
    """Read the rest of an escape and return it as JSON. A backslash that begins no escape is kept, as in Python."""
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
"""Meaning of a quoted value.

`string`: always a string. `typed`: a value of the schema's type if the schema allows no string. `any`: any value."""

WHITESPACE = " \t\n\r"
CLOSING_BRACKETS = {"{": "}", "[": "]", "(": ")"}

WHITESPACE_PATTERN = r"\s*+"
CLOSING_BRACKETS_PATTERN = r"[}\])\s]*+"
"""Matches the text between the end of a value and the end of its call."""
CLOSING_BRACKETS_RUN = re.compile(CLOSING_BRACKETS_PATTERN)
_KEY_PATTERN = r"([^\W\d][\w.\-]*+)"
_BEFORE_STRING_PATTERN = r"[^(){}<'\"\\]*+"
_IN_STRING_PATTERN = r"[^\s,}\])]"
"""Matches a character that cannot follow the closing quote of a string."""
_BARE_VALUE_PATTERNS = (r"[\w.+\-]*+", WHITESPACE_PATTERN, r"[,}\])\[{(]")


class Notation:
    """Notation of literals in one dialect.

    Args:
        separator: Separator between the key and the value of a param.
        close: Bracket that ends the params.
        brackets: The opening brackets of nested values.
        quotes: Quotes around strings, with escapes inside.
        marks: Markers of the dialect around calls.
        delimiter: Token around strings without escapes inside.
        escaped: Whether the model escapes quotes inside strings.
        quoted_mode: Meaning of a quoted value.
        between_calls: Text that can follow a call.
        next_call_patterns: For each possible end of a call: patterns from there to the params of the next call.
        plain_call_patterns: The same, up to the end of a call without strings.
        after_string: Patterns after a quote which show that it ends both the string and the call.
        quoted_calls: Syntax of calls that strings between delimiters may quote.
    """

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
        quoted_calls: QuotedCallSyntax | None = None,
    ) -> None:
        self.separator = separator
        self.close = close
        self.delimiter = delimiter
        self.quotes = (*quotes, delimiter) if delimiter else quotes
        self.escaped = escaped
        self.quoted_mode = quoted_mode
        self.quoted_calls = quoted_calls
        self.commas = compile_markers(",")
        closers = tuple(CLOSING_BRACKETS[bracket] for bracket in brackets)
        self.value_ends = compile_markers(",", *closers, *marks)
        """Markers that can follow a value."""
        self.value_openers = compile_markers(*self.quotes, *brackets)
        self.quote_markers = compile_markers(*self.quotes)
        self.bare_value_ends = compile_markers(",", *brackets, *closers, *marks, *((delimiter,) if delimiter else ()))
        self.after_call = compile_markers(*between_calls, *marks)
        patterns_by_end, plain_patterns = next_call_patterns or {}, plain_call_patterns or {}
        self.string_markers = {quote: compile_markers(quote, *ESCAPE_STARTS, *patterns_by_end) for quote in quotes}
        if delimiter:
            quoted_openers = (quoted_calls.open,) if quoted_calls else ()
            self.string_markers[delimiter] = compile_markers(delimiter, *quoted_openers, *patterns_by_end)
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
        """By quote and by end of a call: lookahead which shows that the call ends here and the string is not closed."""
        self.after_string = Lookahead(*after_string)
        """Lookahead which shows that a quote ends the string and the call, even with missing or surplus brackets."""
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
        """The syntax of keys, by the separator after them and the closing bracket around them."""

    def quote_as_text(self, quote: str) -> str:
        """Return the text for a quote inside a string.

        A delimiter token that contains `"` is read as that character.
        """
        return '"' if '"' in quote and quote == self.delimiter else quote

    def _next_member_patterns(self, separator: str) -> list[PatternSequence]:
        """Return patterns for a key and the beginning of its value."""
        key = (WHITESPACE_PATTERN, _KEY_PATTERN, WHITESPACE_PATTERN, separator, WHITESPACE_PATTERN)
        return [
            (*key, *_BARE_VALUE_PATTERNS),
            *((*key, *literal_sequence(quote), WHITESPACE_PATTERN, _IN_STRING_PATTERN) for quote in self.quotes),
        ]


def _next_string_patterns(end: str, call: PatternSequence, *quotes: str) -> list[PatternSequence]:
    """Return patterns from the end of a call to the first string in the next call."""
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
    """Markers and lookaheads that delimit the keys inside one kind of brackets."""

    wrong_separator: str
    """The wrong separator that models write instead."""
    separators: MarkerSet
    """The separator, and the wrong one."""
    key_ends: MarkerSet
    """Markers that end a key."""
    key_ends_or_wrong_separator: MarkerSet
    word_ends: MarkerSet
    """Markers that end a word that may be a key."""
    container_ends: MarkerSet
    """Markers after a trailing comma: the end of the brackets."""
    quoted_key: Lookahead
    """Lookahead for a quoted key, which shows that the comma before it separates members."""
    next_member: Lookahead
    """Lookahead for a key and its value, which shows that a comma is missing before it."""


class BracketContext(NamedTuple):
    """The brackets around a value. In an array there are no keys and no separator."""

    closer: str
    coercion_for: Callable[[str], ValueCoercion]
    separator: str = ""
    remaining_keys: set[str] | None = None
    """The keys that were not read yet. None if the keys are not known."""
    depth: int = 0


def nested_context(opener: str, coercion: ValueCoercion, depth: int) -> BracketContext:
    """Return the context inside the brackets of a nested value."""
    closer = CLOSING_BRACKETS[opener]
    if opener == "{":
        return BracketContext(closer, coercion.member, ":", set(coercion.keys) or None, depth)
    return BracketContext(closer, lambda _: coercion.item, depth=depth)
