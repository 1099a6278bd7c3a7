"""One-line summary of a message for the terminal: essential fields only, control characters escaped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from interlingua.cli.common.console import printable
from interlingua.common.short_text import shorten
from interlingua.wires.streaming import sse

__all__ = [
    "decode_messages",
    "decode_value",
    "essential_fields",
    "field_names",
    "format_fields",
    "format_message",
]

MAX_TEXT_CHARS = 60
"""Longer texts are shortened in the middle."""
MAX_DEPTH = 12
"""Deeper values are left out. No field of any wire is nested that deeply."""
_ENVELOPE_FIELDS = frozenset(
    ("id", "object", "created", "model", "provider", "system_fingerprint", "service_tier", "choices")
)


def decode_messages(data: str, *, whole: bool = False) -> list[sse.SseMessage]:
    """Return the messages in the data of a trace event. A whole reply is shown as the only message of a stream."""
    raw = sse.encode_event(data) if whole else data.encode()
    decoder = sse.SseDecoder(len(raw))
    return [message for message in decoder.feed(raw) + decoder.close() if message.raw.strip()]


def format_message(message: sse.SseMessage) -> str:
    if not message.has_data:
        return printable(shorten(message.raw.decode("utf-8", "replace").strip(), MAX_TEXT_CHARS))
    chunk = decode_value(message.data)
    if chunk is None:
        return printable(shorten(message.data, MAX_TEXT_CHARS))
    return format_fields(essential_fields(chunk))


def format_fields(fields: Any) -> str:
    """Return the essential fields of a chunk as JSON, with long texts shortened."""
    return printable(msgspec.json.encode(_shorten_texts(fields)).decode())


def decode_value(data: str) -> Any:
    """Decode JSON and cut it off at `MAX_DEPTH`; None if it is not valid JSON."""
    try:
        return _limit_depth(MAX_DEPTH, msgspec.json.decode(data))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _limit_depth(depth: int, value: Any) -> Any:
    if not isinstance(value, dict | list) or not value:
        return value
    if not depth:
        return "…"
    if isinstance(value, dict):
        return {key: _limit_depth(depth - 1, inner) for key, inner in value.items()}
    return [_limit_depth(depth - 1, inner) for inner in value]


def essential_fields(chunk: Any) -> Any:
    """Return the chunk without empty fields and without the envelope that every chunk repeats."""
    if not isinstance(chunk, dict):
        return chunk
    choices = chunk.get("choices")
    if not isinstance(choices, list):
        return _without_empty(chunk)
    extra_fields = {key: value for key, value in _without_empty(chunk).items() if key not in _ENVELOPE_FIELDS}
    essential_choices = [_essential_choice(choice) for choice in choices]
    if [type(choice) for choice in essential_choices] != [dict]:
        return {"choices": essential_choices, **extra_fields} if essential_choices else extra_fields
    essentials = {**essential_choices[0], **extra_fields}
    return {key: value for key, value in essentials.items() if key != "role" or len(essentials) == 1}


def _essential_choice(choice: Any) -> Any:
    """Merge the delta with the other fields of the choice. Malformed choices are returned unchanged."""
    if not isinstance(choice, dict) or not isinstance(choice.get("delta"), dict):
        return choice
    delta = _without_empty(choice["delta"])
    if "reasoning" in delta or "reasoning_content" in delta:
        delta.pop("reasoning_details", None)
    extra_fields = {
        key: value for key, value in _without_empty(choice).items() if key != "delta" and (key, value) != ("index", 0)
    }
    return {**delta, **extra_fields}


def _without_empty(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that are not null or empty."""
    return {key: value for key, value in fields.items() if value not in (None, "", [], {})}


def _shorten_texts(value: Any) -> Any:
    """Return the value with long strings shortened."""
    if isinstance(value, str):
        return shorten(value, MAX_TEXT_CHARS)
    if isinstance(value, dict):
        return {shorten(key, MAX_TEXT_CHARS): _shorten_texts(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_shorten_texts(inner) for inner in value]
    return value


def field_names(value: Any) -> Iterator[str]:
    """Yield the names of all fields in a JSON value."""
    if isinstance(value, dict):
        yield from value
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from field_names(inner)
