"""Fast path for chunks in which a block only continues its text, its reasoning or its arguments."""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = ["FastBlockDelta", "read_fast_delta"]


class _TextDelta(msgspec.Struct, gc=False, tag="text_delta"):
    text: str


class _ThinkingDelta(msgspec.Struct, gc=False, tag="thinking_delta"):
    text: str = msgspec.field(name="thinking")


class _InputDelta(msgspec.Struct, gc=False, tag="input_json_delta"):
    text: str = msgspec.field(name="partial_json")


BLOCK_TYPES: dict[type, str] = {_TextDelta: "text", _ThinkingDelta: "thinking", _InputDelta: "tool_use"}
"""The type of block that each type of delta belongs to."""


class FastBlockDelta(msgspec.Struct, gc=False):
    type: Literal["content_block_delta"]
    index: int
    delta: _TextDelta | _ThinkingDelta | _InputDelta
    error: None = None

    @property
    def block_type(self) -> str:
        """The type of block that the delta belongs to."""
        return BLOCK_TYPES[type(self.delta)]


_decode = msgspec.json.Decoder(FastBlockDelta).decode


def read_fast_delta(data: bytes) -> FastBlockDelta | None:
    """Decode the chunk; None if the fast path does not apply to it."""
    try:
        return _decode(data)
    except (msgspec.MsgspecError, UnicodeError):
        return None
