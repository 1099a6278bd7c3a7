"""What arguments are meant, where only the writing is wrong: repairs that cannot change a meaning.

A code fence around them, a comma before a closing bracket, the same object twice, an object inside a string, a raw line
break inside a string. What was cut short is never completed: nobody knows what would have followed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from interlingua.json_text import read_json, read_object

__all__ = ["repaired"]

_fence = re.compile(r"\s*```[A-Za-z0-9]*[ \t]*\n(.*?)\n?[ \t]*```\s*", re.S)
_token = re.compile(r'(?P<string>"[^"\\]*+(?:\\.[^"\\]*+)*")|(?P<extra>,)(?=[ \t\n\r]*[}\]])|[^",]+|.', re.S)
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
    found = _fence.fullmatch(text)
    return found[1] if found else None


def _out_of_string(text: str) -> str | None:
    inner = read_json(text, str)
    return inner if inner is not None and read_object(inner) is not None else None


def _without_commas(text: str) -> str:
    """Commas before a closing bracket. What stands in strings is left alone."""
    return _token.sub(lambda token: "" if token["extra"] else token[0], text)


def _escaped(text: str) -> str:
    """Raw line breaks and tabs in strings, as JSON writes them."""

    def escape(token: re.Match[str]) -> str:
        return re.sub(r"[\n\r\t]", lambda found: _in_string[found[0]], token[0]) if token["string"] else token[0]

    return _token.sub(escape, text)


def _once(text: str) -> str | None:
    """The same object, again and again: one of them."""
    decoder = json.JSONDecoder()
    objects: list[object] = []
    first, pos = text, _after_space(text, 0)
    while pos < len(text):
        try:
            value, end = decoder.raw_decode(text, pos)
        except (ValueError, RecursionError):
            return None
        first = text[pos:end] if not objects else first
        objects.append(value)
        pos = _after_space(text, end)
    same = len(objects) > 1 and all(one == objects[0] for one in objects[1:])
    return first if same else None


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
