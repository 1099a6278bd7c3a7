"""Fast codec for chunks in which one choice only continues its text, its reasoning or one call.

All other meaningful fields of a chunk are typed as absent, so that msgspec rejects a chunk that has one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from interlingua import events as ev
from interlingua.wires.base import Choice, Chunk, StreamedDelta
from interlingua.wires.openai_chat.tool_call_assembler import ToolCallAssembler

__all__ = ["CHUNK_OBJECT_TYPE", "ChatFastReader", "ChatRepeatReader"]

CHUNK_OBJECT_TYPE = "chat.completion.chunk"
"""Value of `object` in every chunk."""
_Absent: TypeAlias = UnsetType | None


class _Function(msgspec.Struct, gc=False):
    arguments: str
    name: _Absent = UNSET


class _ToolCall(msgspec.Struct, gc=False):
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
    tool_calls: list[_ToolCall] | None = None
    role: None = None
    refusal: None = None
    function_call: None = None
    reasoning_details: None = None


class _FastChoice(msgspec.Struct, gc=False):
    index: int
    delta: _Delta
    finish_reason: None = None
    usage: None = None
    error: None = None


class _FastChunk(msgspec.Struct, gc=False):
    choices: list[_FastChoice]
    object: str = ""
    usage: None = None
    error: None = None


_decode = msgspec.json.Decoder(_FastChunk).decode


class ChatFastReader:
    """Fast codec of a `ChatReader`. `assemblers`: the calls of each choice that has begun, by the choice's index; None
    if it has no calls."""

    __slots__ = ("_assemblers", "repeats")

    def __init__(self, assemblers: Mapping[int, ToolCallAssembler | None]) -> None:
        self._assemblers = assemblers
        self.repeats = ChatRepeatReader(assemblers)

    def read(self, data: bytes) -> Chunk | None:
        chunk = _decode_chunk(data)
        if chunk is None:
            return None
        choice = chunk.choices[0]
        delta = choice.delta
        if choice.index not in self._assemblers:
            return None
        events: list[ev.Event] = []
        exact = chunk.object == CHUNK_OBJECT_TYPE
        if reasoning := delta.reasoning_content or delta.reasoning:
            events.append(ev.ReasoningDelta(reasoning))
        if delta.content:
            events.append(ev.TextDelta(delta.content))
        if delta.tool_calls:
            entry, assembler = delta.tool_calls[0], self._assemblers[choice.index]
            result = assembler.read_arguments(entry.index, entry.function.arguments) if assembler is not None else None
            if result is None:
                return None
            events += result[0]
            exact &= result[1] and entry.has_only_arguments
        return Chunk([Choice(choice.index, events, exact)], [], exact)


class ChatRepeatReader:
    """Fast codec of a `ChatReader` for repeated chunks."""

    __slots__ = ("_assemblers",)

    def __init__(self, assemblers: Mapping[int, ToolCallAssembler | None]) -> None:
        self._assemblers = assemblers

    def probe_delta(self, data: bytes) -> tuple[int, StreamedDelta] | None:
        chunk = _decode_chunk(data)
        if chunk is None:
            return None
        delta = chunk.choices[0].delta
        reasoning = delta.reasoning_content or delta.reasoning
        if delta.tool_calls and not reasoning and not delta.content:
            entry = delta.tool_calls[0]
            return chunk.choices[0].index, ev.ArgsDelta(entry.index, entry.function.arguments)
        if delta.tool_calls or bool(reasoning) is bool(delta.content):
            return None
        return chunk.choices[0].index, ev.ReasoningDelta(reasoning) if reasoning else ev.TextDelta(delta.content or "")

    def read_arguments(self, index: int, call: int, arguments: str) -> list[ev.Event] | None:
        assembler = self._assemblers.get(index)
        result = assembler.read_arguments(call, arguments) if assembler else None
        return None if result is None else result[0]

    def arguments_forwarder(self, index: int, call: int) -> Callable[[str], bool] | None:
        assembler = self._assemblers.get(index)
        return assembler.arguments_forwarder(call) if assembler else None


def _decode_chunk(data: bytes) -> _FastChunk | None:
    """Decode the chunk; None if it is of another kind."""
    try:
        chunk = _decode(data)
    except (msgspec.MsgspecError, UnicodeError):
        return None
    return chunk if len(chunk.choices) == 1 and len(chunk.choices[0].delta.tool_calls or ()) <= 1 else None
