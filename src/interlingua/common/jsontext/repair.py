"""Repair of malformed arguments, limited to changes that cannot alter their meaning.

Repairs: a code fence around the arguments, a comma before a closing bracket, the same object twice, an object inside a
string, a raw line break inside a string. Truncated arguments are never completed, because the missing part is unknown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from interlingua.common.jsontext.codec import read_json, read_shallow_object

__all__ = ["repair_arguments"]

CODE_FENCE = "```"
_token_pattern = re.compile(  # also matches an unterminated string, so that the scan stays linear for any length
    r'(?P<string>"(?:[^"\\]++|\\.)*(?P<closed>"?))|[\[{][ \t\n\r]*,|(?P<extra>,)(?=[ \t\n\r]*[}\]])|[^",\[{]+|.',
    re.S,
)
_fence_label = re.compile(r"[A-Za-z0-9]*[ \t\r]*")
_raw_control = re.compile(r"\\.|[\n\r\t]", re.S)
_whitespace = re.compile(r"\s*")
_CONTROL_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def repair_arguments(text: str) -> tuple[str, list[str]] | None:
    """Repair arguments.

    Returns:
        The arguments as the text of a JSON object, and a note for each repair; None if no safe repair makes them one.
    """
    notes: list[str] = []
    for repair, note in _REPAIRS:
        candidate = repair(text)
        if candidate is not None and candidate != text:
            text = candidate
            notes.append(note)
        if read_shallow_object(text) is not None:
            return text, notes
    return None


def _strip_fence(text: str) -> str | None:
    head, _, body = text.strip().partition("\n")
    fenced = head.startswith(CODE_FENCE) and _fence_label.fullmatch(head, len(CODE_FENCE)) and body.endswith(CODE_FENCE)
    return body.removesuffix(CODE_FENCE) if fenced else None


def _unwrap_string(text: str) -> str | None:
    inner = read_json(text, str)
    return inner if inner is not None and read_shallow_object(inner) is not None else None


def _drop_trailing_commas(text: str) -> str:
    """Remove commas before a closing bracket, outside of strings. Commas after an opening bracket stay, because a value
    is missing there."""
    return _token_pattern.sub(lambda token: "" if token["extra"] else token[0], text)


def _escape_control_characters(text: str) -> str:
    """Escape raw line breaks and tabs in strings. After a backslash they stay, and the text stays invalid: it is
    unknown whether the backslash is intended."""

    def escape(token: re.Match[str]) -> str:
        return (
            _raw_control.sub(lambda raw: _CONTROL_ESCAPES.get(raw[0], raw[0]), token[0])
            if token["closed"]
            else token[0]
        )

    return _token_pattern.sub(escape, text)


def _drop_repetitions(text: str) -> str | None:
    """Return the first object if the text is the same object several times, else None."""
    decoder = json.JSONDecoder()
    written: list[str] = []  # compared as text, because 1 == True in Python
    first, pos = text, _skip_whitespace(text, 0)
    while pos < len(text):
        try:
            value, end = decoder.raw_decode(text, pos)
            written.append(json.dumps(value, sort_keys=True))
        except (ValueError, RecursionError):
            return None
        if written[-1] != written[0]:
            return None
        first = text[pos:end] if len(written) == 1 else first
        pos = _skip_whitespace(text, end)
    return first if len(written) > 1 else None


def _skip_whitespace(text: str, pos: int) -> int:
    match = _whitespace.match(text, pos)
    return match.end() if match else pos


_REPAIRS: tuple[tuple[Callable[[str], str | None], str], ...] = (
    (_strip_fence, "code fence around the arguments: removed"),
    (_unwrap_string, "the arguments were an object inside a string: unwrapped"),
    (_drop_trailing_commas, "comma before a closing bracket: removed"),
    (_escape_control_characters, "raw line breaks or tabs in a string: escaped"),
    (_drop_repetitions, "the same object twice: used once"),
)
