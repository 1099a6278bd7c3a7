"""What is a chunk, whatever object it came as? SDKs have classes of their own for them, and events around them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import msgspec

from interlingua.errors import UsageError
from interlingua.wires.base import Json

__all__ = ["chunk_to_json"]

SDK_HELPER_EVENTS = frozenset({"text", "thinking", "signature", "citation", "input_json", "compaction"})
"""Events that the stream helper of Anthropic's SDK adds to those that came: they say the same again."""


def chunk_to_json(chunk: Any) -> Json | None:
    """The chunk as the wire has it; None for an event that an SDK has made up beside those that came."""
    if inner := _unwrap_event(chunk):
        return chunk_to_json(inner)
    body = _to_dict(chunk)
    event_type = body.get("type")
    if isinstance(event_type, str) and (event_type in SDK_HELPER_EVENTS or _is_chat_helper_event(event_type)):
        return None
    if event_type == "content_block_stop":  # the helper puts the whole block into it
        body = {key: value for key, value in body.items() if key != "content_block"}
    return body


def _unwrap_event(chunk: Any) -> Any | None:
    """The chunk in a `ChunkEvent` of the stream helper of OpenAI's SDK."""
    return getattr(chunk, "chunk", None) if getattr(chunk, "type", None) == "chunk" else None


def _is_chat_helper_event(event_type: str) -> bool:
    """The other events of that helper: `content.delta`, `tool_calls.function.arguments.done` and so on."""
    return event_type.startswith(("content.", "refusal.", "tool_calls.", "logprobs."))


def _to_dict(chunk: Any) -> Json:
    if isinstance(chunk, Mapping):
        return dict(chunk)
    if callable(dump := getattr(chunk, "model_dump", None)):  # pydantic, and so both official SDKs
        dumped = dump(mode="json", by_alias=True, exclude_unset=True, warnings=False)
    elif isinstance(chunk, msgspec.Struct):
        dumped = msgspec.to_builtins(chunk)
    elif dataclasses.is_dataclass(chunk) and not isinstance(chunk, type):
        dumped = dataclasses.asdict(chunk)
    else:
        dumped = None
    if not isinstance(dumped, dict):
        raise UsageError(
            f"a chunk is a dict, an object of an SDK, or bytes, not {type(chunk).__name__}",
            "add what the SDK's stream yields as it is, or the bytes of the response",
        )
    return dumped
