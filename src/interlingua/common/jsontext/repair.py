"""Repair of complete arguments that are malformed, limited to changes that cannot alter their meaning.

Repairs: a code fence around the arguments, an object inside a string, the corrections of `corrector.correct_json`, the
same object twice. Truncated arguments are never completed, because the missing part is unknown.
"""

from __future__ import annotations

import json
import re

from interlingua.common.jsontext.codec import read_json, read_shallow_object
from interlingua.common.jsontext.corrector import correct_json

__all__ = ["repair_arguments"]

CODE_FENCE = "```"
_fence_label = re.compile(r"[A-Za-z0-9]*[ \t\r]*")
_whitespace = re.compile(r"\s*")


def repair_arguments(text: str) -> tuple[str, list[str]] | None:
    """Repair arguments.

    Returns:
        The arguments as the text of a JSON object, and a note for each repair; None if no safe repair makes them one.
    """
    notes: list[str] = []
    for repair in (_strip_fence, _unwrap_string, correct_json, _drop_repetitions):
        text, repair_notes = repair(text) or (text, [])
        notes += repair_notes
        if read_shallow_object(text) is not None:
            return text, notes
    return None


def _strip_fence(text: str) -> tuple[str, list[str]] | None:
    head, _, body = text.strip().partition("\n")
    if not (
        head.startswith(CODE_FENCE) and _fence_label.fullmatch(head, len(CODE_FENCE)) and body.endswith(CODE_FENCE)
    ):
        return None
    return body.removesuffix(CODE_FENCE), ["code fence around the arguments: removed"]


def _unwrap_string(text: str) -> tuple[str, list[str]] | None:
    inner = read_json(text, str)
    if inner is None or read_shallow_object(inner) is None:
        return None
    return inner, ["the arguments were an object inside a string: unwrapped"]


def _drop_repetitions(text: str) -> tuple[str, list[str]] | None:
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
    return (first, ["the same object twice: used once"]) if len(written) > 1 else None


def _skip_whitespace(text: str, pos: int) -> int:
    match = _whitespace.match(text, pos)
    return match.end() if match else pos
