"""Fast codec for chunks in which a block only continues its text, its reasoning or its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from interlingua import events as ev
from interlingua.wires.anthropic_messages.content_blocks import BlockReader
from interlingua.wires.base import Choice, Chunk, StreamedDelta

__all__ = ["MessagesFastReader", "MessagesRepeatReader"]


class _TextDelta(msgspec.Struct, gc=False, tag="text_delta"):
    text: str


class _ThinkingDelta(msgspec.Struct, gc=False, tag="thinking_delta"):
    text: str = msgspec.field(name="thinking")


class _InputDelta(msgspec.Struct, gc=False, tag="input_json_delta"):
    text: str = msgspec.field(name="partial_json")


BLOCK_TYPES: dict[type, str] = {_TextDelta: "text", _ThinkingDelta: "thinking", _InputDelta: "tool_use"}
"""The type of block that each type of delta belongs to."""


class _FastBlockDelta(msgspec.Struct, gc=False):
    type: Literal["content_block_delta"]
    index: int
    delta: _TextDelta | _ThinkingDelta | _InputDelta
    error: None = None

    @property
    def block_type(self) -> str:
        """The type of block that the delta belongs to."""
        return BLOCK_TYPES[type(self.delta)]


_decode = msgspec.json.Decoder(_FastBlockDelta).decode


class MessagesFastReader:
    """Fast codec of a `MessagesReader`. `blocks`: the reader of its blocks."""

    __slots__ = ("_blocks", "repeats")

    def __init__(self, blocks: BlockReader) -> None:
        self._blocks = blocks
        self.repeats = MessagesRepeatReader(blocks)

    def read(self, data: bytes) -> Chunk | None:
        chunk = _decode_delta(data)
        if chunk is None:
            return None
        choice = Choice(0, [], exact=True)
        if not self._blocks.append_text(chunk.index, chunk.block_type, chunk.delta.text, choice):
            return None
        return Chunk([choice], [], choice.exact)


class MessagesRepeatReader:
    """Fast codec of a `MessagesReader` for repeated chunks."""

    __slots__ = ("_blocks",)

    def __init__(self, blocks: BlockReader) -> None:
        self._blocks = blocks

    def probe_delta(self, data: bytes) -> tuple[int, StreamedDelta] | None:
        chunk = _decode_delta(data)
        if chunk is None:
            return None
        if chunk.block_type == "tool_use":
            return 0, ev.ArgsDelta(chunk.index, chunk.delta.text)
        return 0, (ev.TextDelta if chunk.block_type == "text" else ev.ReasoningDelta)(chunk.delta.text)

    def read_arguments(self, index: int, call: int, arguments: str) -> list[ev.Event] | None:
        choice = Choice(index, [], exact=True)
        return choice.events if self._blocks.append_text(call, "tool_use", arguments, choice) else None

    def arguments_forwarder(self, index: int, call: int) -> Callable[[str], bool] | None:  # noqa: ARG002
        return self._blocks.arguments_forwarder(call)


def _decode_delta(data: bytes) -> _FastBlockDelta | None:
    """Decode the chunk; None if it is of another kind."""
    try:
        return _decode(data)
    except (msgspec.MsgspecError, UnicodeError):
        return None
