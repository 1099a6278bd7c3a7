"""Fast codec for chunks in which a block only continues its text, its reasoning or its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from interlingua import events as ev
from interlingua.core.text_forwarder import TextForwarder
from interlingua.wires.anthropic_messages.content_blocks import BlockReader
from interlingua.wires.base import Affixes, Choice, Chunk, StreamedDelta
from interlingua.wires.streaming.repeated_chunk import ProbedDelta, RepeatedChunk

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

    __slots__ = ("_blocks", "_chunk")

    def __init__(self, blocks: BlockReader) -> None:
        self._blocks = blocks
        self._chunk = RepeatedChunk()

    @property
    def affixes(self) -> Affixes | None:
        return self._chunk.affixes

    @property
    def are_affixes_exact(self) -> bool:
        return self._chunk.are_affixes_exact

    @property
    def find_texts(self) -> Callable[[bytes], tuple[list[str], int]]:
        return self._chunk.find_texts

    def learn(self, raw: bytes, index: int, delta: StreamedDelta, *, is_next: bool) -> bool:
        return self._chunk.learn(raw, index, delta, _probe_delta, is_next=is_next)

    def read_text(self, text: str) -> Choice | None:
        delta = self._chunk.delta
        if type(delta) is not ev.ArgsDelta:
            event = ev.TextDelta(text) if type(delta) is ev.TextDelta else ev.ReasoningDelta(text)
            return Choice(0, [event], exact=False)
        choice = Choice(0, [], exact=False)
        return choice if self._blocks.append_text(delta.index, "tool_use", text, choice) else None

    def arguments_forwarder(self) -> TextForwarder | None:
        delta = self._chunk.delta
        return self._blocks.arguments_forwarder(delta.index) if type(delta) is ev.ArgsDelta else None

    def forwarded_counter(self) -> None:
        """Return None: nothing is counted."""


def _probe_delta(data: bytes) -> ProbedDelta | None:
    """Return the delta, if this JSON holds one delta of text, reasoning or arguments only."""
    chunk = _decode_delta(data)
    if chunk is None:
        return None
    text = chunk.delta.text
    match chunk.block_type:
        case "tool_use":
            return ProbedDelta(0, ev.ArgsDelta(chunk.index, text), is_exact=True)
        case "text":
            return ProbedDelta(0, ev.TextDelta(text), is_exact=True)
        case _:
            return ProbedDelta(0, ev.ReasoningDelta(text), is_exact=True)


def _decode_delta(data: bytes) -> _FastBlockDelta | None:
    """Decode the chunk; None if it is of another kind."""
    try:
        return _decode(data)
    except (msgspec.MsgspecError, UnicodeError):
        return None
