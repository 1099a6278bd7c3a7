"""Calls of custom tools, which take text: as the arguments of a function, and back.

    {"id": …, "type": "custom", "custom": {"name": …, "input": "text"}}      arguments {"input":"text"}

The text goes on as it comes. Nothing but the end of the reply says that it is whole.
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
"""What stands around the text. Each is a piece of its own, so that any other piece is text and no more."""


def custom_tool_call(entry: dict[str, Any]) -> dict[str, Any] | None:
    """What a call says of a custom tool; None if it is of a function."""
    custom = entry.get("custom")
    return custom if isinstance(custom, dict) and not entry.get("function") else None


def input_to_arguments(text: str) -> str:
    """A piece of the text, as it stands in arguments."""
    return write_json(text)[1:-1]


def arguments_to_input(arguments: str) -> str:
    """The text in a piece of arguments, or in all of them."""
    if arguments in (ARGUMENTS_OPENER, ARGUMENTS_CLOSER):
        return ""
    if (piece := read_json(f'"{arguments}"', str)) is not None:
        return piece
    text = (read_json(arguments, dict[str, Any]) or {}).get("input")
    return text if isinstance(text, str) else arguments


def only_ends_calls(events: Iterable[ev.Event]) -> bool:
    """Whether these say no more than that such calls are over: on this wire nothing is written for that."""
    return all(
        isinstance(event, ev.CallEnd) or (isinstance(event, ev.ArgsDelta) and event.text == ARGUMENTS_CLOSER)
        for event in events
    )
