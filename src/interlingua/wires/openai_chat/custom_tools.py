"""Conversion of custom tool calls, which take text, to function arguments and back.

    {"id": …, "type": "custom", "custom": {"name": …, "input": "text"}}      arguments {"input":"text"}

The text is streamed as it arrives. Only the end of the reply shows that it is complete.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interlingua import events as ev
from interlingua.common.jsontext.codec import read_json, write_json

__all__ = [
    "ARGUMENTS_CLOSER",
    "ARGUMENTS_OPENER",
    "arguments_to_input",
    "custom_tool_call",
    "input_to_arguments",
    "only_ends_calls",
]

ARGUMENTS_OPENER, ARGUMENTS_CLOSER = '{"input":"', '"}'
"""The JSON before and after the text. Each is sent as a delta of its own, so that every other delta is only text."""


def custom_tool_call(entry: dict[str, Any]) -> dict[str, Any] | None:
    """Return the `custom` object of a call; None if it is a function call."""
    custom = entry.get("custom")
    return custom if isinstance(custom, dict) and not entry.get("function") else None


def input_to_arguments(text: str) -> str:
    """Escape a piece of the text for the JSON string in the arguments."""
    return write_json(text)[1:-1]


def arguments_to_input(arguments: str) -> str:
    """Return the text in a delta of the arguments, or in the complete arguments."""
    if arguments in (ARGUMENTS_OPENER, ARGUMENTS_CLOSER):
        return ""
    if (piece := read_json(f'"{arguments}"', str)) is not None:
        return piece
    text = (read_json(arguments, dict[str, Any]) or {}).get("input")
    return text if isinstance(text, str) else arguments


def only_ends_calls(events: Iterable[ev.Event]) -> bool:
    """Return whether these events only end calls: this wire writes nothing for that."""
    return all(
        isinstance(event, ev.CallEnd) or (isinstance(event, ev.ArgsDelta) and event.text == ARGUMENTS_CLOSER)
        for event in events
    )
