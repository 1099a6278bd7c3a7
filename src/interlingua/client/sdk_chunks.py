"""Conversion of SDK objects to JSON chunks. SDKs have their own chunk classes, and wrap chunks in helper events."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import msgspec

from interlingua.errors import UsageError
from interlingua.wires.base import Json

__all__ = ["chunk_to_json"]

SDK_HELPER_EVENTS = frozenset({"text", "thinking", "signature", "citation", "input_json", "compaction"})
"""Events that the stream helper of Anthropic's SDK adds. They repeat content of the received events."""


def chunk_to_json(chunk: Any) -> Json | None:
    """Return the chunk as JSON of the wire, or None for a helper event that the SDK has added."""
    if inner := _unwrap_event(chunk):
        return chunk_to_json(inner)
    body = _to_dict(chunk)
    event_type = body.get("type")
    if isinstance(event_type, str) and (event_type in SDK_HELPER_EVENTS or _is_chat_helper_event(event_type)):
        return None
    if event_type == "content_block_stop":  # the helper adds the whole block
        body = {key: value for key, value in body.items() if key != "content_block"}
    return body


def _unwrap_event(chunk: Any) -> Any | None:
    """Return the chunk in a `ChunkEvent` of the stream helper of OpenAI's SDK, or None."""
    return getattr(chunk, "chunk", None) if getattr(chunk, "type", None) == "chunk" else None


def _is_chat_helper_event(event_type: str) -> bool:
    """Return whether it is another event of that helper: `content.delta`, `tool_calls.function.arguments.done`, …"""
    return event_type.startswith(("content.", "refusal.", "tool_calls.", "logprobs."))


def _to_dict(chunk: Any) -> Json:
    if isinstance(chunk, Mapping):
        return dict(chunk)
    if callable(dump := getattr(chunk, "model_dump", None)):  # pydantic models, such as those of both official SDKs
        dumped = dump(mode="json", by_alias=True, exclude_unset=True, warnings=False)
    elif isinstance(chunk, msgspec.Struct):
        dumped = msgspec.to_builtins(chunk)
    elif dataclasses.is_dataclass(chunk) and not isinstance(chunk, type):
        dumped = dataclasses.asdict(chunk)
    else:
        dumped = None
    if not isinstance(dumped, dict):
        raise UsageError(
            f"a chunk should be a dict, an SDK object or bytes, not {type(chunk).__name__}",
            "add the chunks of the SDK's stream unchanged, or the bytes of the response",
        )
    return dumped
