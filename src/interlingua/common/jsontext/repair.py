"""What arguments are meant, where only the writing is wrong: repairs that cannot change a meaning.

A code fence around them, a comma before a closing bracket, the same object twice, an object inside a string, a raw line
break inside a string. What was cut short is never completed: nobody knows what would have followed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from interlingua.common.jsontext.codec import read_json, read_object

__all__ = ["repaired"]

FENCE = "```"
_token = re.compile(  # a string that nobody closed is matched as well: nothing is tried twice, however long it is
    r'(?P<string>"(?:[^"\\]++|\\.)*(?P<closed>"?))|[\[{][ \t\n\r]*,|(?P<extra>,)(?=[ \t\n\r]*[}\]])|[^",\[{]+|.', re.S
)
_label = re.compile(r"[A-Za-z0-9]*[ \t\r]*")
_raw = re.compile(r"\\.|[\n\r\t]", re.S)
_space = re.compile(r"\s*")
_in_string = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def repaired(text: str) -> tuple[str, list[str]] | None:
    """The arguments as an object, and what was done for it; None if nothing safe makes them one."""
    notes: list[str] = []
    for repair, note in _REPAIRS:
        mended = repair(text)
        if mended is not None and mended != text:
            text = mended
            notes.append(note)
        if read_object(text) is not None:
            return text, notes
    return None


def _without_fence(text: str) -> str | None:
    head, _, rest = text.strip().partition("\n")
    fenced = head.startswith(FENCE) and _label.fullmatch(head, len(FENCE)) and rest.endswith(FENCE)
    return rest.removesuffix(FENCE) if fenced else None


def _out_of_string(text: str) -> str | None:
    inner = read_json(text, str)
    return inner if inner is not None and read_object(inner) is not None else None


def _without_commas(text: str) -> str:
    """Commas before a closing bracket. Those behind an opening one stay, for a value is missing there, and so does what
    stands in strings."""
    return _token.sub(lambda token: "" if token["extra"] else token[0], text)


def _escaped(text: str) -> str:
    """Raw line breaks and tabs in strings, as JSON writes them. Behind a backslash they stay, which is no JSON: whether
    the backslash is meant nobody knows."""

    def escape(token: re.Match[str]) -> str:
        return _raw.sub(lambda raw: _in_string.get(raw[0], raw[0]), token[0]) if token["closed"] else token[0]

    return _token.sub(escape, text)


def _once(text: str) -> str | None:
    """The same object, again and again: one of them."""
    decoder = json.JSONDecoder()
    written: list[str] = []  # as text, for to Python 1 and true are the same
    first, pos = text, _after_space(text, 0)
    while pos < len(text):
        try:
            value, end = decoder.raw_decode(text, pos)
            written.append(json.dumps(value, sort_keys=True))
        except (ValueError, RecursionError):
            return None
        if written[-1] != written[0]:
            return None
        first = text[pos:end] if len(written) == 1 else first
        pos = _after_space(text, end)
    return first if len(written) > 1 else None


def _after_space(text: str, pos: int) -> int:
    found = _space.match(text, pos)
    return found.end() if found else pos


_REPAIRS: tuple[tuple[Callable[[str], str | None], str], ...] = (
    (_without_fence, "a code fence around the arguments: taken off"),
    (_out_of_string, "the arguments were an object inside a string: taken out of it"),
    (_without_commas, "a comma before a closing bracket: taken out"),
    (_escaped, "raw line breaks or tabs in a string: escaped"),
    (_once, "the same object twice: taken once"),
)
