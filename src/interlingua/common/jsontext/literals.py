"""Conversion of Python literals to JSON text: `{'a': True}` becomes `{"a": true}`. Valid JSON stays unchanged.

Chat templates print objects and arrays as JSON or as Python does, and models mix the two. The text is scanned once and
copied; only the parts that JSON writes differently are replaced. Nothing is evaluated, so numbers keep their digits.
"""

from __future__ import annotations

import re

import msgspec

from interlingua.common.jsontext.codec import read_json, write_json

__all__ = ["MAX_DEPTH", "literal_to_json"]

MAX_DEPTH = 64
"""Maximum nesting of brackets in text that is not JSON: deeper than any tool needs, and safe for the stack."""

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
    """Return the JSON text of a JSON or Python literal, without outer whitespace.

    Returns:
        The JSON text; None if the text is not a literal or is nested too deeply.
    """
    text = text.strip()
    if read_json(text, msgspec.Raw) is not None:
        return text  # the rewriter has the same result, but is a hundred times slower
    try:
        return _LiteralRewriter(text).rewrite()
    except _NotALiteral:
        return None


class _NotALiteral(Exception):
    """Aborts the scan from any depth."""


class _LiteralRewriter:
    """Scans one literal and copies it in JSON syntax."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._pos = 0
        self._out: list[str] = []

    def rewrite(self) -> str:
        self._rewrite_value(MAX_DEPTH)
        if self._peek():
            raise _NotALiteral
        return "".join(self._out).strip()  # removed grouping parentheses leave their whitespace

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
            self._out[start] = self._out[-1] = ""  # parentheses around one item without a comma are not a tuple

    def _rewrite_key(self) -> None:
        """Copy a key. JSON allows only string keys; other keys become strings, as in json.dumps."""
        key = self._read_atom()
        self._out.append(key if key[0] == '"' else f'"{key}"')
        if self._peek() != ":":
            raise _NotALiteral
        self._advance(":")

    def _peek(self) -> str:
        """Return the next character that is not whitespace; "" at the end."""
        spaces = _SPACES.match(self._text, self._pos)
        if spaces is not None:
            self._out.append(spaces[0])
            self._pos = spaces.end()
        return self._text[self._pos : self._pos + 1]

    def _advance(self, replacement: str) -> None:
        """Skip one character and write its JSON replacement."""
        self._out.append(replacement)
        self._pos += 1

    def _read_atom(self) -> str:
        """Read a value without brackets."""
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
        """Return the text between the quotes, with its escapes undecoded."""
        start = self._pos
        while (stop := _STRING_STOPS[quote].search(self._text, self._pos)) is not None:
            self._pos = stop.end()
            if stop[0] == quote:
                return self._text[start : stop.start()]
            self._pos += 1
        raise _NotALiteral


def _number_to_json(text: str) -> str:
    """Convert a number. JSON requires digits on both sides of the decimal point and allows no plus sign."""
    match = _NUMBER.fullmatch(text)
    if match is None or not (match[2] or len(match[3] or "") > 1):
        raise _NotALiteral
    sign, integer, fraction, exponent = match.groups(default="")
    return sign.strip("+") + (integer or "0") + (fraction + "0" if fraction == "." else fraction) + exponent


def _string_to_json(quote: str, body: str) -> str:
    """Convert a string. Raw control characters are accepted: neither language allows them, but models write them."""
    escapes = [match[0] for match in _ESCAPE.finditer(body)]
    if quote == '"' and all(escape[1] in _JSON_ESCAPES or len(escape) == len("\\u0000") for escape in escapes):
        return f'"{_CONTROL.sub(lambda control: write_json(control[0])[1:-1], body)}"'
    return write_json(_ESCAPE.sub(lambda match: _unescape(match[0]), body))


def _unescape(escape: str) -> str:
    """Decode a Python escape; a backslash that starts no escape is kept, as in `'\\d+'`."""
    char = escape[1]
    if char in "01234567":
        return chr(int(escape[1:], 8))
    if char not in "uUxN":
        return _PYTHON_ESCAPES.get(char, escape)
    code = int(escape[2:], 16) if len(escape) > 2 else -1
    if not 0 <= code <= 0x10FFFF:
        raise _NotALiteral  # such as a truncated escape, or `\N{name}`
    return chr(code)
