"""The usual chunk, read at once: a block that has begun says more of its text, its thinking or its arguments."""

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
"""The kind of block that each of them stands in."""


class FastBlockDelta(msgspec.Struct, gc=False):
    type: Literal["content_block_delta"]
    index: int
    delta: _TextDelta | _ThinkingDelta | _InputDelta
    error: None = None

    @property
    def block_type(self) -> str:
        """The kind of block that it belongs to."""
        return BLOCK_TYPES[type(self.delta)]


_decode = msgspec.json.Decoder(FastBlockDelta).decode


def read_fast_delta(data: bytes) -> FastBlockDelta | None:
    """The chunk, if it is a usual one."""
    try:
        return _decode(data)
    except (msgspec.MsgspecError, UnicodeError):
        return None
