"""Literals to JSON text: `{'a': True}` is `{"a": true}`, and what is JSON already stays so, byte for byte.

Templates print objects and arrays as JSON or as Python does, and models mix the two. The text is walked once and
copied; only what JSON spells otherwise is replaced. Nothing is evaluated, so a number keeps its digits.
"""

from __future__ import annotations

import re

import msgspec

from interlingua.common.jsontext.codec import read_json, write_json

__all__ = ["MAX_DEPTH", "literal_to_json"]

MAX_DEPTH = 64
"""How many brackets may be open at once in what is not JSON: more than any tool takes, less than any stack bears."""

_CONSTANTS = {"true": "true", "True": "true", "false": "false", "False": "false", "null": "null", "None": "null"}
_CLOSERS = {"{": "}", "[": "]", "(": ")"}
_JSON_ESCAPES = '"\\/bfnrt'
_PYTHON_ESCAPES = {"\n": "", "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "f": "\f"}
_PYTHON_ESCAPES |= {"n": "\n", "r": "\r", "t": "\t", "v": "\v"}

# None of these can match the same text in two ways, so none of them backtracks.
_SPACES = re.compile(r"[ \t\n\r]+")
_SCALAR = re.compile(r"[A-Za-z0-9+\-._]+")
_NUMBER = re.compile(r"([+-]?)(0|[1-9][0-9]*)?(\.[0-9]*)?([eE][+-]?[0-9]+)?")
_CONTROL = re.compile(r"[\x00-\x1f]")
_QUOTE = re.compile("'''|\"\"\"|'|\"")
_STRING_STOPS = {quote: re.compile(rf"\\|{quote}") for quote in ("'''", '"""', "'", '"')}
_ESCAPE = re.compile(r"\\(?:u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]{2}|[0-7]{1,3}|.)", re.DOTALL)


def literal_to_json(text: str) -> str | None:
    """The JSON text of a JSON or Python literal, without outer white space. None if it is none, or nested too deep."""
    text = text.strip()
    if read_json(text, msgspec.Raw) is not None:
        return text  # the walk would come to the same, a hundred times slower
    try:
        return _LiteralRewriter(text).rewrite()
    except _NotALiteral:
        return None


class _NotALiteral(Exception):
    """Ends the walk from whatever depth it has come to."""


class _LiteralRewriter:
    """Walks over one literal and copies it, as JSON spells it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._pos = 0
        self._out: list[str] = []

    def rewrite(self) -> str:
        self._rewrite_value(MAX_DEPTH)
        if self._peek():
            raise _NotALiteral
        return "".join(self._out).strip()  # brackets that only group leave their white space

    def _rewrite_value(self, depth: int) -> None:
        char = self._peek()
        if char in _CLOSERS:
            self._rewrite_brackets(char, depth)
        else:
            self._out.append(self._read_atom())

    def _rewrite_brackets(self, opener: str, depth: int) -> None:
        if depth == 0:
            raise _NotALiteral
        closer = _CLOSERS[opener]
        start = len(self._out)
        self._advance("{" if opener == "{" else "[")
        items = 0
        commas: list[int] = []
        while self._peek() != closer:
            if items > len(commas):
                raise _NotALiteral
            if opener == "{":
                self._rewrite_key()
            self._rewrite_value(depth - 1)
            items += 1
            if self._peek() == ",":
                commas.append(len(self._out))
                self._advance(",")
        self._advance("}" if closer == "}" else "]")
        if items and len(commas) == items:
            self._out[commas[-1]] = ""  # JSON has no trailing comma
        elif opener == "(" and items == 1:
            self._out[start] = self._out[-1] = ""  # one item without a comma is no tuple

    def _rewrite_key(self) -> None:
        """JSON knows string keys only: others are spelled as strings, as json.dumps does."""
        key = self._read_atom()
        self._out.append(key if key[0] == '"' else f'"{key}"')
        if self._peek() != ":":
            raise _NotALiteral
        self._advance(":")

    def _peek(self) -> str:
        """The next character that is no white space; empty at the end."""
        spaces = _SPACES.match(self._text, self._pos)
        if spaces is not None:
            self._out.append(spaces[0])
            self._pos = spaces.end()
        return self._text[self._pos : self._pos + 1]

    def _advance(self, replacement: str) -> None:
        """Goes over one character, for which JSON has this."""
        self._out.append(replacement)
        self._pos += 1

    def _read_atom(self) -> str:
        """A value without brackets."""
        quote = _QUOTE.match(self._text, self._pos)
        if quote is not None:
            self._pos = quote.end()
            return _string_to_json(quote[0], self._read_string_body(quote[0]))
        scalar = _SCALAR.match(self._text, self._pos)
        if scalar is None:
            raise _NotALiteral
        self._pos = scalar.end()
        return _CONSTANTS.get(scalar[0]) or _number_to_json(scalar[0])

    def _read_string_body(self, quote: str) -> str:
        """What stands between the quotes, its escapes unread."""
        start = self._pos
        while (stop := _STRING_STOPS[quote].search(self._text, self._pos)) is not None:
            self._pos = stop.end()
            if stop[0] == quote:
                return self._text[start : stop.start()]
            self._pos += 1
        raise _NotALiteral


def _number_to_json(text: str) -> str:
    """JSON wants digits on both sides of the point, and no plus."""
    match = _NUMBER.fullmatch(text)
    if match is None or not (match[2] or len(match[3] or "") > 1):
        raise _NotALiteral
    sign, integer, fraction, exponent = match.groups(default="")
    return sign.strip("+") + (integer or "0") + (fraction + "0" if fraction == "." else fraction) + exponent


def _string_to_json(quote: str, body: str) -> str:
    """Raw control characters, which neither language allows but models write, are read as meant."""
    escapes = [match[0] for match in _ESCAPE.finditer(body)]
    if quote == '"' and all(escape[1] in _JSON_ESCAPES or len(escape) == len("\\u0000") for escape in escapes):
        return f'"{_CONTROL.sub(lambda control: write_json(control[0])[1:-1], body)}"'
    return write_json(_ESCAPE.sub(lambda match: _unescape(match[0]), body))


def _unescape(escape: str) -> str:
    """The character that Python means; a backslash that begins no escape stays, as in `'\\d+'`."""
    char = escape[1]
    if char in "01234567":
        return chr(int(escape[1:], 8))
    if char not in "uUxN":
        return _PYTHON_ESCAPES.get(char, escape)
    code = int(escape[2:], 16) if len(escape) > 2 else -1
    if not 0 <= code <= 0x10FFFF:
        raise _NotALiteral  # such as half an escape, or a character by its name
    return chr(code)
