"""Fast path for chunks in which one choice only continues its text, its reasoning or one call.

All other meaningful fields of a chunk are typed as absent, so that msgspec rejects a chunk that has one of them.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

__all__ = ["FastChoice", "FastChunk", "FastToolCall", "read_fast_chunk"]

_Absent: TypeAlias = UnsetType | None


class _Function(msgspec.Struct, gc=False):
    arguments: str
    name: _Absent = UNSET


class FastToolCall(msgspec.Struct, gc=False):
    """Delta of a call's arguments. `has_only_arguments`: it repeats no other field of the call."""

    index: int
    function: _Function
    id: _Absent = UNSET
    type: str | _Absent = UNSET

    @property
    def has_only_arguments(self) -> bool:
        return self.id is UNSET and self.type is UNSET and self.function.name is UNSET


class _Delta(msgspec.Struct, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[FastToolCall] | None = None
    role: None = None
    refusal: None = None
    function_call: None = None
    reasoning_details: None = None


class FastChoice(msgspec.Struct, gc=False):
    index: int
    delta: _Delta
    finish_reason: None = None
    usage: None = None
    error: None = None


class FastChunk(msgspec.Struct, gc=False):
    choices: list[FastChoice]
    object: str = ""
    usage: None = None
    error: None = None


_decode = msgspec.json.Decoder(FastChunk).decode


def read_fast_chunk(data: bytes) -> FastChunk | None:
    """Decode the chunk; None if the fast path does not apply to it."""
    try:
        chunk = _decode(data)
    except (msgspec.MsgspecError, UnicodeError):
        return None
    return chunk if len(chunk.choices) == 1 and len(chunk.choices[0].delta.tool_calls or ()) <= 1 else None
