"""The text of a custom tool, taken out of the arguments of a function.

Models that know only functions are offered a custom tool as a function with one string, `input`. What they write for it
is `{"input": "…"}`, as a rule, and its text goes on as it comes. What is written otherwise is held to the end and then
guessed: another key, a bare string, no JSON at all. A patch may also stand in a code fence or a heredoc.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Any

from interlingua.common.jsontext.codec import read_json

__all__ = ["Freeform"]

KEYS = ("input", "patch", "code")
"""Where models put the text, the right place first."""
LONGEST_HEAD = 200
PATCH = "*** Begin Patch"

_head = re.compile(rf'\s*\{{\s*"({"|".join(KEYS)})"\s*:\s*"').match
_text = re.compile(
    r'(?:[^"\\]+|\\(?:[^u]|u[0-9a-fA-F]{4}|u(?=[0-9a-fA-F]{0,3}[^0-9a-fA-F])))*+', re.S
).match  # up to an escape that is cut; what is no escape at all goes along
_first_half = re.compile(r"(?<!\\)(?:\\\\)*(\\u[dD][89abAB][0-9a-fA-F]{2})\Z").search
_escapes = re.compile(r"(?:\\u[0-9a-fA-F]{4})+|\\[^u]", re.S)
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_OPENERS = ("```", "<<", "apply_patch")
_fence = re.compile(r"\s*```[^\n]*\n(?P<text>.*?)\n?```\s*", re.S).fullmatch
_heredoc = re.compile(
    r"\s*(?:apply_patch)?\s*<<-?\s*(['\"]?)(?P<word>\w+)\1[^\n]*\n(?P<text>.*?)\n(?P=word)\s*", re.S
).fullmatch


class _Place(Enum):
    HEAD = "before the text"
    TEXT = "in the text"
    AFTER = "behind the text"
    ELSE = "in something else"


class Freeform:
    """Takes the arguments of one call as they come and gives back the tool's text. `note` says what was guessed."""

    def __init__(self) -> None:
        self.note = ""
        self._place = _Place.HEAD
        self._held = ""  # arguments that are not read yet
        self._else: list[str] = []  # arguments that only their end will tell the meaning of
        self._wrapper = _Wrapper()

    @classmethod
    def inside(cls) -> Freeform:
        """Of a call whose text has begun already."""
        freeform = cls()
        freeform._place = _Place.TEXT
        freeform._wrapper = _Wrapper(_Around.PLAIN)
        return freeform

    def feed(self, args: str) -> str:
        if self._place is _Place.ELSE:
            self._else.append(args)
            return ""
        self._held += args
        if self._place is _Place.HEAD:
            self._read_head()
        return self._wrapper.feed(self._read_text()) if self._place is _Place.TEXT else ""

    def end(self) -> str:
        """The arguments are over: what is still to be said."""
        held, self._held = self._held, ""
        rest = ""
        if self._place is _Place.TEXT:
            rest = _decode(held)
        elif self._place is not _Place.AFTER:
            rest = self._guess("".join(self._else) + held)
        elif held.strip() != "}":
            self.note = self.note or f"more than the text of the tool: dropped {held!r:.60}"
        said = self._wrapper.feed(rest) + self._wrapper.end()
        self.note = self.note or self._wrapper.note
        return said

    def _read_head(self) -> None:
        if head := _head(self._held):
            self._place, self._held = _Place.TEXT, self._held[head.end() :]
            if head[1] != KEYS[0]:
                self.note = f"the tool's text came as {head[1]!r}"
        elif len(self._held) > LONGEST_HEAD:
            self._place, self._else, self._held = _Place.ELSE, [self._held], ""

    def _read_text(self) -> str:
        """The text up to where it ends, or to an escape that is cut."""
        match = _text(self._held)
        stop = match.end() if match else 0
        text, rest = self._held[:stop], self._held[stop:]
        if rest.startswith('"'):
            self._place, rest = _Place.AFTER, rest[1:]
        elif text[-6:-4] == "\\u" and (half := _first_half(text)):
            text, rest = text[: half.start(1)], half[1] + rest  # the other half of the character is yet to come
        self._held = rest
        return _decode(text)

    def _guess(self, args: str) -> str:
        """The text in arguments that are not `{"input": "…"}`."""
        self.note = "the tool's text did not come as 'input'"
        if (bare := read_json(args, str)) is not None:
            return bare
        values = read_json(args, dict[str, Any])
        if not values:
            return args if values is None else ""
        texts = {key: text for key, text in values.items() if isinstance(text, str)}
        key = next((key for key in KEYS if key in texts), None)
        if key is None and len(values) == 1:
            key = next(iter(texts), None)
        return args if key is None else texts[key]


class _Around(Enum):
    START = "not known yet"
    WRAPPED = "in a wrapper, it seems: only the end tells"
    PLAIN = "no wrapper"


class _Wrapper:
    """Takes a fence or a heredoc off a patch. What may begin with one is held until that is known, or to its end."""

    def __init__(self, around: _Around = _Around.START) -> None:
        self.note = ""
        self._around = around
        self._kept: list[str] = []

    def feed(self, text: str) -> str:
        if self._around is _Around.PLAIN:
            return text
        self._kept.append(text)
        if self._around is _Around.START:
            start = "".join(self._kept).lstrip()
            if start.startswith(_OPENERS):
                self._around = _Around.WRAPPED
            elif len(self._kept) > LONGEST_HEAD or not any(opener.startswith(start) for opener in _OPENERS):
                self._around = _Around.PLAIN
                return self._take_kept()
        return ""

    def end(self) -> str:
        text = inner = self._take_kept()
        while match := _fence(inner) or _heredoc(inner):
            inner = match["text"]
        if inner is text or not inner.lstrip().startswith(PATCH):
            return text
        self.note = "the patch stood in a code fence or a heredoc"
        return inner

    def _take_kept(self) -> str:
        kept, self._kept = "".join(self._kept), []
        return kept


def _decode(text: str) -> str:
    """The characters of a JSON string. What is no escape stays as it is."""
    return _escapes.sub(_character, text) if "\\" in text else text


def _character(escape: re.Match[str]) -> str:
    text = escape[0]
    if text[1] != "u":
        return _SHORT.get(text[1], text[1] if text[1] in '"\\/' else text)
    units = b"".join(int(unit, 16).to_bytes(2, "little") for unit in text.split("\\u")[1:])
    return units.decode("utf-16-le", "replace")
