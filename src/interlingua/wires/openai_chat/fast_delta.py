"""The usual chunk, read at once: one choice that has begun says more of its text, its thinking or one call.

Whatever else stands in a chunk and would mean something is typed as absent, so that such a chunk is no usual one.
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
    """More of a call's arguments. `proper`: nothing of the call is said again."""

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
    """The chunk, if it is a usual one."""
    try:
        chunk = _decode(data)
    except (msgspec.MsgspecError, UnicodeError):
        return None
    return chunk if len(chunk.choices) == 1 and len(chunk.choices[0].delta.tool_calls or ()) <= 1 else None
