"""Meaning of a reply, independent of its wire: what a reader of a cassette wants to see, and what must not change."""

from __future__ import annotations

from typing import Any

import msgspec

from interlingua.client.accumulator import Accumulator
from interlingua.common.jsontext.codec import is_deeper_than, read_json, unwrap_invalid_arguments, write_json
from interlingua.core.reply import Reply

__all__ = ["MAX_DEPTH", "CallMeaning", "ReplyMeaning", "describe_changes", "read_meaning"]

MAX_DEPTH = 200
"""Levels of nesting of a request, and of the arguments of a call, in a cassette. Python's stack has to read them."""


class CallMeaning(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    arguments: Any = None
    """The arguments as a JSON value; as text, if they are not JSON, or nested too deeply."""
    complete: bool = True


class ReplyMeaning(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Text, thinking, calls and end of a reply. Ids, usage and the form of the stream do not belong to it."""

    reasoning: str = ""
    text: str = ""
    refusal: str = ""
    calls: list[CallMeaning] = []
    stop_reason: str = ""
    error: str = ""
    other_choices: list[ReplyMeaning] = []
    """The choices behind the first one, if the request wants several (`n`)."""


def read_meaning(data: bytes, wire: str, choices: int = 1) -> ReplyMeaning:
    """Return the meaning of a reply that a client has received on this wire, as a stream or whole.

    Args:
        data: The reply.
        wire: The client's wire.
        choices: Number of choices that the request wants.
    """
    accumulator = Accumulator(wire, dialect="standard")
    accumulator.add(data)
    accumulator.close()
    first, *others = [_meaning(accumulator.reply(number)) for number in range(max(choices, 1))]
    return msgspec.structs.replace(first, other_choices=others)


def _meaning(reply: Reply) -> ReplyMeaning:
    calls = [
        CallMeaning(name=call.name, arguments=_arguments(call.arguments), complete=call.complete)
        for call in reply.calls
    ]
    return ReplyMeaning(
        reasoning=reply.reasoning,
        text=reply.text,
        refusal=reply.refusal,
        calls=calls,
        stop_reason=reply.stop_reason or "",
        error=reply.failure.message if reply.failure else "",
    )


def _arguments(text: str) -> Any:
    text = unwrap_invalid_arguments(text)  # whole replies of Anthropic have a wrapper around what is not an object
    value: dict[str, Any] | list[Any] | None = read_json(text, dict[str, Any])
    if value is None:
        value = read_json(text, list[Any])
    return text if value is None or is_deeper_than(value, MAX_DEPTH) else value


def describe_changes(recorded: ReplyMeaning, current: ReplyMeaning) -> list[str]:
    """Return the differences between two meanings in words; an empty list if there is none."""
    changes = []
    for name in ReplyMeaning.__struct_fields__:
        before, now = getattr(recorded, name), getattr(current, name)
        if before != now:
            changes.append(f"{name.replace('_', ' ')}: {_describe_value(now)} now, {_describe_value(before)} recorded")
    return changes


def _describe_value(value: Any) -> str:
    text = write_json(msgspec.to_builtins(value))
    return text if len(text) <= 200 else f"{text[:200]}…"
