"""The usual chunk, read at once: a block that has begun says more of its text, its thinking or its arguments."""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = ["UsualDelta", "read_usual"]


class _Text(msgspec.Struct, gc=False, tag="text_delta"):
    text: str


class _Thinking(msgspec.Struct, gc=False, tag="thinking_delta"):
    text: str = msgspec.field(name="thinking")


class _Input(msgspec.Struct, gc=False, tag="input_json_delta"):
    text: str = msgspec.field(name="partial_json")


KINDS: dict[type, str] = {_Text: "text", _Thinking: "thinking", _Input: "tool_use"}
"""The kind of block that each of them stands in."""


class UsualDelta(msgspec.Struct, gc=False):
    type: Literal["content_block_delta"]
    index: int
    delta: _Text | _Thinking | _Input
    error: None = None

    @property
    def kind(self) -> str:
        """The kind of block that it belongs to."""
        return KINDS[type(self.delta)]


_decode = msgspec.json.Decoder(UsualDelta).decode


def read_usual(data: bytes) -> UsualDelta | None:
    """The chunk, if it is a usual one."""
    try:
        return _decode(data)
    except (msgspec.MsgspecError, UnicodeError):
        return None
