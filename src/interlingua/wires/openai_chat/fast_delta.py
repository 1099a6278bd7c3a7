"""Fast codec for chunks in which one choice only continues its text, its reasoning or one call.

All other meaningful fields of a chunk are typed as absent, so that msgspec rejects a chunk that has one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from interlingua import events as ev
from interlingua.core.text_forwarder import TextForwarder
from interlingua.wires.base import Affixes, Choice, Chunk, StreamedDelta
from interlingua.wires.openai_chat.tool_call_assembler import ToolCallAssembler
from interlingua.wires.streaming.repeated_chunk import ProbedDelta, RepeatedChunk

__all__ = ["CHUNK_OBJECT_TYPE", "ChatFastReader", "ChatRepeatReader"]

CHUNK_OBJECT_TYPE = "chat.completion.chunk"
"""Value of `object` in every chunk."""
_Blank: TypeAlias = UnsetType | Literal[""] | None
"""Type of a field without a value: absent, null or empty, as different servers write it."""


class _Function(msgspec.Struct, gc=False):
    arguments: str
    name: _Blank = UNSET


class _ToolCall(msgspec.Struct, gc=False):
    """Delta of a call's arguments that is not signed."""

    index: int
    function: _Function
    id: _Blank = UNSET
    type: str | UnsetType | None = UNSET
    extra_content: None = None

    @property
    def has_only_arguments(self) -> bool:
        """True if the delta has no other field of the call, not even a blank one."""
        return self.id is UNSET and self.type is UNSET and self.function.name is UNSET


class _ReasoningDetail(msgspec.Struct, gc=False):
    """Entry of `reasoning_details` that is neither signed nor encrypted."""

    type: Literal["reasoning.text", "reasoning.summary"]
    text: str | None = None
    summary: str | None = None
    signature: _Blank = UNSET
    data: _Blank = UNSET


class _Delta(msgspec.Struct, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[_ToolCall] | None = None
    role: str | None = None
    refusal: None = None
    function_call: None = None
    reasoning_details: list[_ReasoningDetail] | None = None

    @property
    def detail_text(self) -> str:
        return "".join([detail.text or detail.summary or "" for detail in self.reasoning_details or ()])

    @property
    def has_different_reasoning(self) -> bool:
        """True if the fields for reasoning do not all have the same text."""
        return len({self.reasoning_content, self.reasoning, self.detail_text} - {None, ""}) > 1


class _FastChoice(msgspec.Struct, gc=False):
    index: int
    delta: _Delta
    finish_reason: Literal[""] | None = None
    usage: None = None
    error: None = None


class _FastChunk(msgspec.Struct, gc=False):
    choices: list[_FastChoice]
    object: str = ""
    usage: None = None
    error: None = None

    @property
    def is_exact(self) -> bool:
        """True if all fields around the text are as clients expect them. Many servers repeat the role in each delta."""
        choice = self.choices[0]
        delta, calls = choice.delta, choice.delta.tool_calls
        if delta.role or choice.finish_reason is not None or (calls and not calls[0].has_only_arguments):
            return False
        return self.object == CHUNK_OBJECT_TYPE


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
        exact = chunk.is_exact
        if reasoning := _reasoning_text(delta):
            events.append(ev.ReasoningDelta(reasoning))
        if delta.content:
            events.append(ev.TextDelta(delta.content))
        if delta.tool_calls:
            entry, assembler = delta.tool_calls[0], self._assemblers[choice.index]
            result = assembler.read_arguments(entry.index, entry.function.arguments) if assembler is not None else None
            if result is None:
                return None
            events += result[0]
            exact &= result[1]
        return Chunk([Choice(choice.index, events, exact)], [], exact)


class ChatRepeatReader:
    """Fast codec of a `ChatReader` for repeated chunks."""

    __slots__ = ("_assemblers", "_chunk")

    def __init__(self, assemblers: Mapping[int, ToolCallAssembler | None]) -> None:
        self._assemblers = assemblers
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
        chunk = self._chunk
        if type(chunk.delta) is not ev.ArgsDelta:
            event = ev.TextDelta(text) if type(chunk.delta) is ev.TextDelta else ev.ReasoningDelta(text)
            return Choice(chunk.index, [event], exact=False)
        assembler = self._assemblers.get(chunk.index)
        result = assembler.read_arguments(chunk.delta.index, text) if assembler else None
        return None if result is None else Choice(chunk.index, result[0], exact=False)

    def arguments_forwarder(self) -> TextForwarder | None:
        chunk, assembler = self._chunk, self._assemblers.get(self._chunk.index)
        if type(chunk.delta) is not ev.ArgsDelta or assembler is None:
            return None
        return assembler.arguments_forwarder(chunk.delta.index)

    def forwarded_counter(self) -> None:
        """Return None: the assembler counts arguments itself, and texts are not counted."""


def _probe_delta(data: bytes) -> ProbedDelta | None:
    """Return the delta, if this JSON holds one delta of text, reasoning or arguments only."""
    chunk = _decode_chunk(data)
    if chunk is None:
        return None
    delta = chunk.choices[0].delta
    reasoning = _reasoning_text(delta)
    event: StreamedDelta
    if delta.tool_calls and not reasoning and not delta.content:
        entry = delta.tool_calls[0]
        event = ev.ArgsDelta(entry.index, entry.function.arguments)
    elif delta.tool_calls or bool(reasoning) is bool(delta.content):
        return None
    else:
        event = ev.ReasoningDelta(reasoning) if reasoning else ev.TextDelta(delta.content or "")
    return ProbedDelta(chunk.choices[0].index, event, chunk.is_exact)


def _decode_chunk(data: bytes) -> _FastChunk | None:
    """Decode the chunk; None if it is of another kind."""
    try:
        chunk = _decode(data)
    except (msgspec.MsgspecError, UnicodeError):
        return None
    if len(chunk.choices) != 1:
        return None
    delta = chunk.choices[0].delta
    may_differ = delta.reasoning_details or (delta.reasoning and delta.reasoning_content)
    if len(delta.tool_calls or ()) > 1 or (may_differ and delta.has_different_reasoning):
        return None
    return chunk


def _reasoning_text(delta: _Delta) -> str:
    """Return the reasoning, from the first field that has it."""
    return delta.reasoning_content or delta.reasoning or (delta.detail_text if delta.reasoning_details else "")
