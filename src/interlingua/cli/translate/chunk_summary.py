"""What is shown of a chunk: what matters in it, on one line, with nothing in it that a terminal could obey."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from interlingua.cli.common.console import printable
from interlingua.cli.common.two_columns import shorten
from interlingua.wires.streaming import sse

__all__ = ["fields", "messages", "quoted", "read", "shown", "strings", "what_matters"]

LONGEST = 60
"""The middle of a longer text is left out."""
DEEPEST = 12
"""What is nested deeper than this is left out; no field of any wire is."""
_ENVELOPE = frozenset(("id", "object", "created", "model", "provider", "system_fingerprint", "service_tier", "choices"))


def messages(raw: bytes) -> list[sse.Message]:
    decoder = sse.Decoder(len(raw))
    return [message for message in decoder.feed(raw) + decoder.close() if message.raw.strip()]


def shown(message: sse.Message) -> str:
    if not message.has_data:
        return printable(shorten(message.raw.decode("utf-8", "replace").strip(), LONGEST))
    chunk = read(message.data)
    if chunk is None:
        return printable(shorten(message.data, LONGEST))
    return printable(msgspec.json.encode(_brief(what_matters(chunk))).decode())


def read(data: str) -> Any:
    """The JSON value, as deep as it may be shown; None if it is none."""
    try:
        return _down_to(DEEPEST, msgspec.json.decode(data))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _down_to(depth: int, value: Any) -> Any:
    if not isinstance(value, dict | list) or not value:
        return value
    if not depth:
        return "…"
    if isinstance(value, dict):
        return {key: _down_to(depth - 1, inner) for key, inner in value.items()}
    return [_down_to(depth - 1, inner) for inner in value]


def what_matters(chunk: Any) -> Any:
    """The chunk without what every chunk repeats."""
    if not isinstance(chunk, dict):
        return chunk
    choices = chunk.get("choices")
    if not isinstance(choices, list):
        return _filled(chunk)
    beside = {key: value for key, value in _filled(chunk).items() if key not in _ENVELOPE}
    said = [_of_choice(choice) for choice in choices]
    if [type(choice) for choice in said] != [dict]:
        return {"choices": said, **beside} if said else beside
    matters = {**said[0], **beside}
    return {key: value for key, value in matters.items() if key != "role" or len(matters) == 1}


def _of_choice(choice: Any) -> Any:
    """The delta, and what stands beside it. What is no object is shown as it is."""
    if not isinstance(choice, dict) or not isinstance(choice.get("delta"), dict):
        return choice
    delta = _filled(choice["delta"])
    if "reasoning" in delta or "reasoning_content" in delta:
        delta.pop("reasoning_details", None)
    beside = {key: value for key, value in _filled(choice).items() if key != "delta" and (key, value) != ("index", 0)}
    return {**delta, **beside}


def _filled(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields that say something."""
    return {key: value for key, value in fields.items() if value not in (None, "", [], {})}


def _brief(value: Any) -> Any:
    """The value with its long texts shortened."""
    if isinstance(value, str):
        return shorten(value, LONGEST)
    if isinstance(value, dict):
        return {shorten(key, LONGEST): _brief(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_brief(inner) for inner in value]
    return value


def strings(value: Any) -> Iterator[str]:
    """All the texts in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from strings(inner)


def fields(value: Any) -> Iterator[str]:
    """The names of all the fields in a value."""
    if isinstance(value, dict):
        yield from value
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from fields(inner)


def quoted(text: str) -> str:
    return msgspec.json.encode(shorten(text, LONGEST)).decode()
