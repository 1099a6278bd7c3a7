"""Reader for content blocks: starts, deltas and stops → events.

It repairs what upstreams get wrong. They number blocks incorrectly, leave out starts and stops, put text into a start
that should be empty, and interleave blocks. The type of a delta decides its meaning; its index only selects the call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from interlingua import events as ev
from interlingua.common.jsontext.codec import write_json
from interlingua.core.options import ArgumentsPolicy, Limits
from interlingua.core.text_forwarder import TextForwarder
from interlingua.wires.anthropic_messages.tool_input import ToolInputMerger
from interlingua.wires.base import Choice, Json
from interlingua.wires.safe_ids import encode_id

__all__ = ["NAME", "TRANSLATED_BLOCK_TYPES", "BlockReader", "untranslated_finding"]

NAME = "anthropic-messages"
TRANSLATED_BLOCK_TYPES = ("text", "thinking", "redacted_thinking", "tool_use")
"""The block types that become events. All others are forwarded to clients of this wire only."""

_BlockType: TypeAlias = Literal["text", "thinking", "redacted_thinking", "tool_use", "nameless", "other"]


class _OpenBlock:
    """Open block. `index`: the upstream's. `position`: its position among all blocks, which its index should equal.

    `signature`: the signature in its start, buffered until the block ends; None after one was sent.
    """

    def __init__(self, index: int, position: int, block_type: _BlockType) -> None:
        self.index = index
        self.position = position
        self.block_type: _BlockType = block_type
        self.signature: str | None = ""
        self.call: _OpenCall | None = None
        self.reported: set[str] = set()


MAX_REPORTED_TYPES = 100
"""Number of unknown types of deltas that are remembered for a block: an upstream may send new ones without end."""


class _OpenCall:
    def __init__(self, key: int, name: str, input: ToolInputMerger) -> None:
        self.key = key
        self.name = name
        self.input = input


class BlockReader:
    """Reader for the blocks of one reply. Methods add events to the `choice`, and set `exact` to False if needed."""

    def __init__(self, limits: Limits, arguments: ArgumentsPolicy) -> None:
        self._limits = limits
        self._arguments_policy = arguments
        self._open_blocks: dict[int, _OpenBlock] = {}  # by the index that the upstream sent
        self._call_blocks: list[_OpenBlock] = []  # blocks of calls; closed ones are removed when they are found
        self.count = 0
        """Number of blocks that have begun."""
        self._call_count = 0
        # Its block ended without arguments: the call is complete, or truncated. What follows decides.
        self._doubtful_call: _OpenCall | None = None

    # ── start ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def read_start(self, index: int | None, raw: Any, choice: Choice) -> None:
        self._resolve_doubtful_call(choice)
        position, self.count = self.count, self.count + 1
        if index is None:
            choice.report("no-index", "a block without an index: its order is used")
            index = position
        elif index != position:
            choice.report("renumbered", f"a block has index {index} instead of {position}: renumbered")
        if index in self._open_blocks:
            self._close_unclosed(index, choice)
        choice.exact &= not self._open_blocks  # exact streams have one open block at a time
        if len(self._open_blocks) >= self._limits.calls:
            limit = self._limits.calls
            choice.events.append(ev.Failure(f"the upstream sent more than {limit:,} open blocks (limits.calls)"))
            choice.exact = False
        content: Json = raw if isinstance(raw, dict) else {}
        block_type = content.get("type")
        block = self._open_blocks[index] = _OpenBlock(
            index, position, block_type if block_type in TRANSLATED_BLOCK_TYPES else "other"
        )
        if start_reader := _START_READERS.get(block.block_type):
            start_reader(self, block, content, choice)
        elif not isinstance(block_type, str):
            choice.report("bad-chunk", f"a block without a type: {raw!r:.60}; dropped")
        else:
            choice.events.append(
                ev.Finding("not-translated", f"a block of type {block_type!r}: forwarded to clients of this wire only")
            )

    def _start_text(self, block: _OpenBlock, content: Json, choice: Choice) -> None:  # noqa: ARG002
        self._append_delta(ev.TextDelta, content.get("text"), choice)
        choice.exact &= content.get("text") == ""

    def _start_thinking(self, block: _OpenBlock, content: Json, choice: Choice) -> None:
        block.signature = _string_or_empty(content.get("signature"))
        self._append_delta(ev.ReasoningDelta, content.get("thinking"), choice)
        choice.exact &= content.get("thinking") == "" and not block.signature

    def _start_redacted(self, block: _OpenBlock, content: Json, choice: Choice) -> None:  # noqa: ARG002
        data = _string_or_empty(content.get("data"))
        choice.exact &= bool(data)
        choice.events += [ev.Seal(NAME, {"redacted": data})] if data else []

    def _start_call(self, block: _OpenBlock, content: Json, choice: Choice) -> None:
        id, name, start = (
            _string_or_empty(content.get("id")),
            _string_or_empty(content.get("name")),
            content.get("input"),
        )
        if not name:
            block.block_type = "nameless"
            choice.report("call-without-name", f"a call without a name (id {id!r}): its arguments are sent as text")
            choice.events += [ev.TextDelta(write_json(start))] if start else []
            return
        if not id:
            choice.report("no-id", f"a call of {name!r} without an id: one is created")
        block.call = _OpenCall(self._call_count, name, ToolInputMerger(start, self._limits, self._arguments_policy))
        self._call_blocks.append(block)
        self._call_count += 1
        choice.events.append(ev.CallStart(block.call.key, id or None, name))
        choice.exact &= start == {} and encode_id(id) == id

    # ── delta ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def read_delta(self, index: int | None, raw: Any, choice: Choice) -> None:
        block = None if index is None else self._open_blocks.get(index)
        choice.exact &= block is not None and block.position == index and len(self._open_blocks) == 1
        if block is not None and block.block_type == "other":
            if not isinstance(raw, dict):
                choice.report("bad-chunk", f"a delta is not an object: {raw!r:.60}; dropped")
            return
        delta: Json = raw if isinstance(raw, dict) else {}
        delta_type = delta.get("type")
        handler = _DELTA_READERS.get(delta_type) if isinstance(delta_type, str) else None
        if handler is None:
            self._report_unknown_delta(block, delta_type, choice)
            return
        block_types, reader = handler
        if block is None or block.block_type not in block_types:
            choice.report("stray-delta", f"{delta_type} without an open block of its type: read anyway")
        reader(self, block, delta, choice)

    def append_text(self, index: int, block_type: str, text: str, choice: Choice) -> bool:
        """Fast path of `read_delta` for text, reasoning or arguments of the open block.

        Returns: False, with the state unchanged, if there is another open block, or type or index do not match.
        """
        block = self._open_blocks.get(index)
        if block is None or block.block_type != block_type or block.position != index or len(self._open_blocks) != 1:
            return False
        if block.call is not None:
            self._add_arguments(block.call, text, choice)
        elif text:
            choice.events.append(ev.TextDelta(text) if block_type == "text" else ev.ReasoningDelta(text))
        return True

    def arguments_forwarder(self, index: int) -> TextForwarder | None:
        """Return a function for more arguments that `append_text` would append unchanged. None if no call is open on
        this index."""
        block = self._open_blocks.get(index)
        if block is None or block.call is None or block.position != index or len(self._open_blocks) != 1:
            return None
        return block.call.input.text_forwarder

    def _report_unknown_delta(self, block: _OpenBlock | None, delta_type: Any, choice: Choice) -> None:
        if not isinstance(delta_type, str):
            choice.report("bad-chunk", f"a delta without a type: {delta_type!r:.60}; dropped")
        elif block is None or delta_type not in block.reported:
            choice.events.append(
                ev.Finding("not-translated", f"a delta of type {delta_type!r}: forwarded to clients of this wire only")
            )
            if block is not None and len(block.reported) < MAX_REPORTED_TYPES:
                block.reported.add(delta_type)

    def _read_text_delta(self, block: _OpenBlock | None, delta: Json, choice: Choice) -> None:  # noqa: ARG002
        self._append_delta(ev.TextDelta, delta.get("text"), choice)

    def _read_thinking_delta(self, block: _OpenBlock | None, delta: Json, choice: Choice) -> None:  # noqa: ARG002
        self._append_delta(ev.ReasoningDelta, delta.get("thinking"), choice)

    def _read_signature_delta(self, block: _OpenBlock | None, delta: Json, choice: Choice) -> None:
        signature = _string_or_empty(delta.get("signature"))
        if not signature:
            return
        if block is not None and block.signature:  # it replaces the signature in the start, as in clients
            block.signature = signature
        elif block is not None and block.signature is None:  # some clients use the last one, others join them
            choice.report("repeated-signature", "a second signature for the same thinking: dropped")
        else:
            choice.events.append(ev.Seal(NAME, {"signature": signature}))
            if block is not None:
                block.signature = None

    def _read_input_delta(self, block: _OpenBlock | None, delta: Json, choice: Choice) -> None:
        raw = delta.get("partial_json")
        text = raw if isinstance(raw, str) else "" if raw is None else write_json(raw)
        choice.exact &= text is raw
        if block is not None and block.block_type == "nameless":
            choice.exact = False
            choice.events += [ev.TextDelta(text)] if text else []
            return
        call = block.call if block is not None and block.call else self._last_call()
        if call is None:
            choice.report("no-such-call", "arguments for a call that is not open: dropped")
        else:
            self._add_arguments(call, text, choice)

    def _add_arguments(self, call: _OpenCall, text: str, choice: Choice) -> None:
        ended = call.input.ended
        accepted, excess = ("", text) if ended else call.input.feed(text)
        choice.exact &= accepted == text or (ended and not text.strip())
        if accepted or call.input.runaway:
            choice.events.append(ev.ArgsDelta(call.key, accepted, call.input.runaway))
        if excess and excess.strip():
            choice.report("after-arguments", f"{len(excess)} characters after the end of the arguments: dropped")
        if call.input.ended and not ended:
            self._end_call(call, choice)

    def _last_call(self) -> _OpenCall | None:
        """Return the last call whose block is open and whose arguments are not complete."""
        while self._call_blocks:
            block = self._call_blocks[-1]
            if block.call and not block.call.input.ended and self._open_blocks.get(block.index) is block:
                return block.call
            self._call_blocks.pop()
        return None

    # ── stop ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def read_stop(self, index: int | None, choice: Choice) -> None:
        if index not in self._open_blocks and len(self._open_blocks) == 1:  # wrong index, but only one candidate
            index = next(iter(self._open_blocks))
            choice.exact = False
        block = None if index is None else self._open_blocks.pop(index, None)
        choice.exact &= block is not None and block.position == index and not self._open_blocks
        if block is None:
            return
        if block.call is not None and block.call.input.empty and self._is_last(block):
            self._doubtful_call = block.call
        else:
            self._close_block(block, choice)

    def finish(self, choice: Choice, truncated: bool = False) -> None:
        """Close the open blocks, after the upstream sent its stop reason. The guard ends truncated calls.

        `truncated`: a limit or filter cut the reply. Then the last call counts as truncated too if it has no arguments.
        """
        self._resolve_doubtful_call(choice, truncated)
        for index, block in list(self._open_blocks.items()):
            last = truncated and self._is_last(block)
            if block.call is None or not (block.call.input.unfinished or (last and block.call.input.empty)):
                self._close_unclosed(index, choice)
            else:
                choice.events += _flush_call(block.call)
        choice.exact &= not self._open_blocks
        self._open_blocks = {}

    def flush(self) -> list[ev.Event]:
        """Return the buffered arguments of the open calls, at the end of the stream."""
        calls = [block.call for block in self._open_blocks.values() if block.call and not block.call.input.ended]
        calls += [self._doubtful_call] if self._doubtful_call else []
        self._open_blocks, self._doubtful_call = {}, None
        return [event for call in calls for event in _flush_call(call)]

    def _is_last(self, block: _OpenBlock) -> bool:
        return block.position == self.count - 1

    def _resolve_doubtful_call(self, choice: Choice, truncated: bool = False) -> None:
        """End the doubtful call: what follows shows whether it is complete or truncated."""
        call, self._doubtful_call = self._doubtful_call, None
        if call is not None and truncated:
            self._truncate_call(call, choice)
        elif call is not None:
            self._end_call(call, choice)

    def _close_unclosed(self, index: int, choice: Choice) -> None:
        choice.report("block-not-closed", f"the block with index {index} was never closed: treated as closed")
        self._close_block(self._open_blocks.pop(index), choice)

    def _close_block(self, block: _OpenBlock, choice: Choice) -> None:
        if block.signature:
            choice.events.append(ev.Seal(NAME, {"signature": block.signature}))
            choice.exact = False
        if block.call is not None and not block.call.input.ended:
            self._end_call(block.call, choice)

    def _end_call(self, call: _OpenCall, choice: Choice) -> None:
        if call.input.unfinished:
            self._truncate_call(call, choice)
            return
        if remainder := call.input.end():
            choice.events.append(ev.ArgsDelta(call.key, remainder))
            choice.exact &= remainder == "{}"  # the same as no delta
        choice.events += _findings(call)
        choice.events.append(ev.CallEnd(call.key))

    def _truncate_call(self, call: _OpenCall, choice: Choice) -> None:
        if flushed := _flush_call(call):
            choice.events += flushed
            choice.exact = False
        choice.events.append(
            ev.Finding(
                "cut-short", f"the block of {call.name!r} ends inside its arguments: the call is marked as incomplete"
            )
        )
        choice.events.append(ev.CallEnd(call.key, complete=False))

    def _append_delta(self, event_class: type[ev.TextDelta | ev.ReasoningDelta], text: Any, choice: Choice) -> None:
        if text is not None and not isinstance(text, str):
            choice.report("bad-chunk", f"the text of a block is not a string: {text!r:.60}; dropped")
        elif text:
            choice.events.append(event_class(text))
        else:
            choice.exact &= text == ""


_START_READERS: dict[_BlockType, Callable[[BlockReader, _OpenBlock, Json, Choice], None]] = {
    "text": BlockReader._start_text,
    "thinking": BlockReader._start_thinking,
    "redacted_thinking": BlockReader._start_redacted,
    "tool_use": BlockReader._start_call,
}
_DELTA_READERS: dict[
    str, tuple[tuple[_BlockType, ...], Callable[[BlockReader, _OpenBlock | None, Json, Choice], None]]
] = {
    "text_delta": (("text",), BlockReader._read_text_delta),
    "thinking_delta": (("thinking",), BlockReader._read_thinking_delta),
    "signature_delta": (("thinking",), BlockReader._read_signature_delta),
    "input_json_delta": (("tool_use", "nameless"), BlockReader._read_input_delta),
}


def untranslated_finding(subject: str, type_name: str) -> ev.Finding:
    return ev.Finding("not-translated", f"{subject} of type {type_name!r}: forwarded to clients of this wire only")


def _flush_call(call: _OpenCall) -> list[ev.Event]:
    """Return the buffered arguments of a call that the end of the reply or block has cut off, and its findings."""
    remainder = call.input.flush()
    return [*([ev.ArgsDelta(call.key, remainder)] if remainder else []), *_findings(call)]


def _findings(call: _OpenCall) -> list[ev.Event]:
    return [ev.Finding(finding_kind, message) for finding_kind, message in call.input.notes]


def _string_or_empty(value: Any) -> str:
    return value if isinstance(value, str) else ""
