"""Walks over one JSON value in text that comes in pieces, and knows where the value ends.

The cursor builds no value and never looks at old text. All that it keeps is the *place* in the grammar where
it stands, the places that the open brackets lead back to, and a token that the end of a piece has cut.

    cursor = JsonCursor()
    cursor.walk('{"a": "x', 0)       # 8: all walked, wants more
    cursor.walk('y"} and so on', 0)  # 3: cursor.ended; the rest does not belong to the value

Models write things that are not JSON. The cursor notes the first of them in `problem` and walks on, because
where a value ends matters even if the value is bad. It stops only at an odd character, one that JSON has no
use for outside a string, so that the caller can look whether a marker begins there.
If none does, `skip` steps over it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from string import ascii_letters, digits
from typing import Literal, NamedTuple, TypeAlias, cast

__all__ = ["JsonCursor"]

MAX_DEPTH = 1000
"""How many brackets may be open at once. Most parsers, json.loads among them, give up at about this depth."""

MAX_SCALAR = 4096
"""How long a number may be. What is longer is not JSON to us, and need not be remembered."""

# Tokens.
#
# What is possessive never backtracks, so a piece is walked in linear time. But Python 3.11.0 to 3.11.4 lose
# the position when a possessive *group* fails halfway through structure of its own. So the alternatives in
# `_BODY` are spelled out flat, and other groups are repeated greedily, up to a bound that keeps small what
# the matcher remembers. `_BODY` lists what may stand in a string, not what may not: nearly twice as fast.

_Match: TypeAlias = Callable[[str, int], re.Match[str]]


def _match(pattern: str) -> _Match:
    """The match method of a pattern that is content with nothing. It never returns None: hence the cast."""
    return cast("_Match", re.compile(pattern).match)


def _scalar_pattern(most: int) -> str:
    """A literal, or a number of which no part has more digits than this."""
    some = rf"[0-9]{{1,{most}}}+"
    return rf"(?:true|false|null|-?(?:0|(?=[1-9]){some})(?:\.{some})?(?:[eE][+-]?{some})?)"


_WS = r"[ \t\n\r]{0,64}+"
"""Blanks between two tokens. Where there are more, they are walked over by themselves, and counted."""
_HEX = r"[0-9A-Fa-f]"
_BODY = rf'(?:[ !#-\[\]-\U0010ffff]++|\\["\\/bfnrt]|\\u{_HEX}{_HEX}{_HEX}{_HEX})*+'
_ITEM = rf'(?:"{_BODY}"|{_scalar_pattern(MAX_SCALAR // 4)}(?=[ \t\n\r,\]}}]))'
_MEMBER = rf'"{_BODY}"{_WS}:{_WS}{_ITEM}'

_spaces = _match(r"[ \t\n\r]*+")
_body = _match(_BODY)
_scalar_run = _match(r"[A-Za-z0-9+\-._]*+")
_escape_so_far = _match(rf"(?:\\u{_HEX}{{0,3}}|\\)?")
_escape = re.compile(rf'\\["\\/bfnrt]|\\u{_HEX}{{4}}').match
_is_scalar = re.compile(_scalar_pattern(MAX_SCALAR)).fullmatch

# What kind of token a character begins. Punctuation is a kind of its own each; whatever is not here is odd.
_KINDS = {char: char for char in '"{}[],:'}
_KINDS |= dict.fromkeys(" \t\n\r", " ")
_KINDS |= dict.fromkeys(ascii_letters + digits + "+-._", "0")  # a scalar, right or wrong: its end will tell
_ODD = "?"

# Grammar.

_PlaceName: TypeAlias = Literal[
    "top", "first item", "item", "after item", "first key", "key", "after key", "value", "after value", "end"
]


class _Place(NamedTuple):
    """Where the cursor stands between two tokens: what may come, and where each that comes leads to.

    What may not come leads somewhere too: to where the model most likely meant to be.
    """

    wanted: str
    legal: str
    value: _PlaceName  # after a string, a scalar or a closed bracket
    comma: _PlaceName
    colon: _PlaceName


_PLACES: dict[_PlaceName, _Place] = {
    "top": _Place("a value", '"0{[', "end", "top", "top"),
    "first item": _Place("a value or ']'", '"0{[]', "after item", "item", "item"),
    "item": _Place("a value", '"0{[', "after item", "item", "item"),
    "after item": _Place("',' or ']'", ",]", "after item", "item", "item"),
    "first key": _Place("a string key or '}'", '"}', "after key", "key", "value"),
    "key": _Place("a string key", '"', "after key", "key", "value"),
    "after key": _Place("':' after a key", ":", "after value", "key", "value"),
    "value": _Place("a value", '"0{[', "after value", "key", "value"),
    "after value": _Place("',' or '}'", ",}", "after key", "key", "value"),
}

# Flat items and members that are all there and all right can be walked over many at a time.
_RUNS: dict[_PlaceName, tuple[_Match, _PlaceName]] = {
    "first item": (_match(rf"(?:{_ITEM}(?:{_WS},{_WS}{_ITEM}){{0,255}})?"), "after item"),
    "after item": (_match(rf"(?:{_WS},{_WS}{_ITEM}){{0,256}}"), "after item"),
    "first key": (_match(rf"(?:{_MEMBER}(?:{_WS},{_WS}{_MEMBER}){{0,255}})?"), "after value"),
    "after value": (_match(rf"(?:{_WS},{_WS}{_MEMBER}){{0,256}}"), "after value"),
}


class JsonCursor:
    """Where in a JSON value the text so far has led to."""

    __slots__ = ("_back", "_blank", "_blanks", "_held", "_origin", "_place", "first", "offset", "problem", "too_blank")

    def __init__(self, blanks: int = sys.maxsize) -> None:
        """`blanks` are as many as may stand between two tokens."""
        self.first = ""
        """The value's first character; empty before it came."""
        self.offset = 0
        """How many characters have been walked over."""
        self.problem: str | None = None
        """The first thing that is not JSON, in words."""
        self.too_blank: int | None = None
        """Where more blanks came than may stand between two tokens, if they did."""
        self._blanks = blanks
        self._blank = (0, 0)  # where the last blanks began and ended
        self._place: _PlaceName = "top"
        self._back: list[_PlaceName] = []  # for each open bracket, the place after it is closed
        # The token that the last piece was cut in. '"' stands for all of a string so far, a beginning of an
        # escape for a string that was cut there. A scalar is kept: only its end tells whether it is right.
        self._held = ""
        self._origin = 0  # the offset of the current piece's first character

    @property
    def ended(self) -> bool:
        """Whether the value is complete: nothing more belongs to it."""
        return self._place == "end"

    @property
    def in_string(self) -> bool:
        """Whether the text so far ends inside a string."""
        return self._held[:1] in ('"', "\\")

    def walk(self, text: str, pos: int) -> int:
        """Goes on from text[pos:] and returns where it stopped.

        That is the end of the text, the end of the value (see `ended`), or else an odd character.
        """
        stop = pos
        if self._held == '"':  # nearly always so while a long argument streams in: make it cheap
            stop = _body(text, pos).end()
            if stop == len(text):
                self.offset += stop - pos
                return stop
        self._origin = self.offset - pos
        if self._held:
            stop = self._resume(text, stop)
        if not self._held:
            stop = self._tokens(text, stop)
        self.offset = self._origin + stop
        return stop

    def skip(self, text: str, pos: int) -> int:
        """Steps over the odd character that `walk` stopped at, and returns where to go on."""
        self._origin = self.offset - pos
        self._expected(_PLACES[self._place].wanted, text[pos], pos)
        self.offset += 1
        return pos + 1

    def finish(self) -> None:
        """The text is over: what is still open is a problem, but a number or literal is complete only now."""
        self._origin = self.offset
        if self._held and self._held[0] not in '"\\':
            self._end_scalar(self._held, 0)
        if self._held:
            self._note("ended inside a string", 0)
        elif self._back:
            brackets = "1 bracket" if len(self._back) == 1 else f"{len(self._back)} brackets"
            self._note(f"ended with {brackets} open", 0)
        elif not self.ended and self.problem is None:
            self.problem = "empty"

    def _tokens(self, text: str, pos: int) -> int:
        """Goes on from between two tokens."""
        while pos < len(text) and self._place != "end":
            char = text[pos]
            kind = _KINDS.get(char, _ODD)
            if kind == " ":
                pos = self._count_blanks(pos, _spaces(text, pos).end())
                continue
            place = _PLACES[self._place]
            if kind not in place.legal:
                if kind == _ODD or self._place == "top":
                    break
                self._expected(place.wanted, char, pos)
            elif kind in '",0' and self._place in _RUNS:
                run, after = _RUNS[self._place]
                stop = run(text, pos).end()
                if stop > pos:
                    pos, self._place = stop, after
                    continue
            self.first = self.first or char
            if kind == '"':
                self._held = char
                pos = self._string(text, pos + 1)
            elif kind == "0":
                pos = self._scalar(text, pos)
            else:
                self._punctuation(char, place, pos)
                pos += 1
        return pos

    def _count_blanks(self, pos: int, stop: int) -> int:
        start, end = self._blank
        if self._origin + pos != end or not end:
            start = self._origin + pos
        self._blank = (start, self._origin + stop)
        if self._blank[1] - start > self._blanks and self.too_blank is None:
            self.too_blank = start + self._blanks
        return stop

    def _punctuation(self, char: str, place: _Place, pos: int) -> None:
        if char == ",":
            self._place = place.comma
        elif char == ":":
            self._place = place.colon
        elif char in "]}":
            self._place = self._back.pop()
        else:
            self._back.append(place.value)
            self._place = "first key" if char == "{" else "first item"
            if len(self._back) > MAX_DEPTH:
                self._note(f"more than {MAX_DEPTH} brackets open", pos)

    def _resume(self, text: str, pos: int) -> int:
        """Goes on inside the token that the last piece was cut in."""
        if self._held[0] == "\\":
            pos = self._string_escape(text, pos)
        return self._string(text, pos) if self._held[0] in '"\\' else self._scalar(text, pos)

    def _string(self, text: str, pos: int) -> int:
        while (pos := _body(text, pos).end()) < len(text):
            char = text[pos]
            pos += 1
            if char == '"':
                self._held = ""
                self._place = _PLACES[self._place].value
                return pos
            if char == "\\":
                self._held = char
                pos = self._string_escape(text, pos)
            else:
                self._note(f"raw control character {char!r} in a string", pos - 1)
        return pos

    def _string_escape(self, text: str, pos: int) -> int:
        """Goes on inside the held escape: all of it, or none of it but the backslash if it is no escape."""
        held = len(self._held)
        escape = self._held + text[pos : pos + 6 - held]
        right = _escape(escape)
        so_far = _escape_so_far(escape, 0).end()
        if right is None and so_far == len(escape):
            self._held = escape
            return len(text)
        self._held = '"'
        if right is None:
            wanted = "an escape after '\\'" if so_far == 1 else "4 hex digits after '\\u'"
            self._expected(wanted, escape[so_far], pos - held + so_far)
            return pos
        return pos - held + right.end()

    def _scalar(self, text: str, pos: int) -> int:
        stop = _scalar_run(text, pos).end()
        scalar = self._held + text[pos : min(stop, pos + MAX_SCALAR + 1)]
        if len(scalar) > MAX_SCALAR:
            self._note(f"a number or literal longer than {MAX_SCALAR} characters", pos - len(self._held))
            scalar = scalar[: MAX_SCALAR + 1]
        if stop == len(text):
            self._held = scalar
        else:
            self._end_scalar(scalar, stop)
        return stop

    def _end_scalar(self, scalar: str, pos: int) -> None:
        if not _is_scalar(scalar):
            self._expected("a value", scalar[:40], pos - len(scalar))
        self._held = ""
        self._place = _PLACES[self._place].value

    def _expected(self, wanted: str, found: str, pos: int) -> None:
        self._note(f"expected {wanted}, found {found!r}", pos)

    def _note(self, problem: str, pos: int) -> None:
        if self.problem is None:
            self.problem = f"{problem} at character {self._origin + pos}"
