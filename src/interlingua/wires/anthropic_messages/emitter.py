"""Emitter for Anthropic Messages streams: events → frames.

If the upstream uses this wire too, chunks that need no change are forwarded as they were received. After a part was
rewritten, the blocks that follow are forwarded with their new index.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable

import msgspec

from interlingua import events as ev
from interlingua.core.options import Options
from interlingua.wires.anthropic_messages.content_blocks import TRANSLATED_BLOCK_TYPES
from interlingua.wires.anthropic_messages.message_writer import (
    NO_TEMPLATE,
    BlockDelta,
    MessageFrame,
    MessageState,
    MessageWriter,
    OpenBlock,
)
from interlingua.wires.anthropic_messages.objects import error_object, with_own_identity
from interlingua.wires.base import ChoiceEvents, Json
from interlingua.wires.streaming import sse

__all__ = ["MessagesEmitter"]

MESSAGE_STOP = {"type": "message_stop"}
PING_COMMENT = b": ping\n\n"
"""Keep-alive comment for the time before message_start, when clients accept no event."""
_EVENT_NAME_LINE = re.compile(rb"(?:^|[\r\n])event: ?([^\r\n]*)[\r\n]")


class MessagesEmitter:
    """Emitter for one reply: `emit` writes new frames, `forward` passes on chunks that need no change."""

    __slots__ = ("_options", "_served_as", "_writer", "fast", "findings")

    def __init__(self, options: Options | None = None) -> None:
        options = options or Options()
        self.findings: list[ev.Finding] = []
        self._options = options
        self._writer = MessageWriter(options)
        self.fast = self._writer

    @property
    def kept_chars(self) -> int:
        return self._writer.kept_chars

    def forward(self, chunk: Json, raw: bytes) -> bytes | None:
        """Return the chunk unchanged, or with its new index; None if the block that it belongs to is not open."""
        writer = self._writer
        writer.upstream = "this wire"
        if writer.state is MessageState.STOPPED and chunk["type"] not in ("ping", "message_delta"):
            return b""
        forwarded = _FORWARDERS.get(chunk["type"], MessagesEmitter._forward_other)(self, chunk, raw)
        return _encode_frames(writer.drain()) if forwarded else None

    def emit(self, choice_events: ChoiceEvents, common: Iterable[ev.Event] = (), template: Json | None = None) -> bytes:
        """Return the frames for these events. Stop reason and usage are buffered until `finish`."""
        writer = self._writer
        if template is None and not common and (fast_frame := self._emit_fast(choice_events)):
            return fast_frame
        if template is not None:
            writer.upstream = "this wire"
            writer.template = template
        for event in common:
            writer.write(event)
        for _, events in choice_events:
            for event in events:
                writer.write(event)
        if template is not None and writer.state is not MessageState.STOPPED:
            self._forward_untranslated(template)
        writer.template = NO_TEMPLATE
        return _encode_frames(writer.drain())

    def _emit_fast(self, choice_events: ChoiceEvents) -> bytes:
        """Fast path for the usual case: a single delta of the open block. Returns b"" if it does not apply."""
        if len(choice_events) != 1 or len(choice_events[0][1]) != 1:
            return b""
        delta = self._writer.fast_delta(choice_events[0][1][0])
        return delta.encode() if delta is not None else b""

    def fail(self, failure: ev.Failure) -> bytes:
        """Return the error frame that ends a failed stream. No frame follows it."""
        return _encode_frames([error_object(failure)])

    def finish(self, raw: bytes = b"") -> bytes:
        if self._writer.state is not MessageState.STOPPED:
            self._writer.end_message()
        self._writer.send(_with_event_name(raw, MESSAGE_STOP))
        return _encode_frames(self._writer.drain())

    # ── forwarded chunks ──────────────────────────────────────────────────────────────────────────────────────────

    def _forward_message_start(self, chunk: Json, raw: bytes) -> bool:
        self._writer.state = MessageState.OPEN
        message = with_own_identity(chunk["message"], self._options)
        unchanged = message is chunk["message"]
        self._writer.send(_with_event_name(raw, chunk) if unchanged else {**chunk, "message": message})
        return True

    def _forward_block_start(self, chunk: Json, raw: bytes) -> bool:
        """Forward the start of a block. The start of a text block is buffered until there is text.

        An empty text block after calls makes Claude Code show nothing, and native text may turn out to be only a call.
        """
        writer, block_type = self._writer, chunk["content_block"]["type"]
        writer.close_block()
        writer.start_message(ev.Begin())
        start = _with_index(raw, chunk, writer.block_count)
        writer.open_block = OpenBlock(block_type, writer.block_count, chunk["index"], start)
        if block_type != "text":
            writer.flush_start()
        return True

    def _forward_block_delta(self, chunk: Json, raw: bytes) -> bool:
        writer, block = self._writer, self._writer.open_block
        if block is None or block.upstream_index != chunk["index"]:
            return False
        delta_type = chunk["delta"].get("type")
        if not isinstance(delta_type, str):
            return False
        if (
            block.block_type in TRANSLATED_BLOCK_TYPES
            and _DELTA_BLOCK_TYPES.get(delta_type, block.block_type) != block.block_type
        ):
            return False  # for example a call that was rewritten as text
        writer.flush_start()
        writer.send(_with_index(raw, chunk, block.index))
        if isinstance(args := chunk["delta"].get("partial_json"), str):
            block.argument_chars += len(args)
        return True

    def _forward_block_stop(self, chunk: Json, raw: bytes) -> bool:
        """Forward the stop of a block. A block that is already closed, or was never started, needs none."""
        writer, block = self._writer, self._writer.open_block
        if block is None or block.upstream_index != chunk["index"]:
            return True
        if block.pending_start is not None and writer.block_count == 0:
            writer.flush_start()  # all clients accept an empty first block
        if block.pending_start is None:
            writer.send(_with_index(raw, chunk, block.index))
        writer.open_block = None
        return True

    def _forward_message_delta(self, chunk: Json, raw: bytes) -> bool:
        if self._writer.pending_stop is not None:  # a repeated stop, but the first one was corrected
            return False
        self._writer.start_message(ev.Begin())
        self._writer.close_block()
        self._writer.send(_with_event_name(raw, chunk))
        self._writer.state = MessageState.STOPPED
        return True

    def _forward_other(self, chunk: Json, raw: bytes) -> bool:
        """Forward a ping or an unknown event; before message_start a comment, because clients accept no event there."""
        if self._writer.state is MessageState.FRESH:
            self._writer.send(PING_COMMENT)
        else:
            self._writer.flush_start()
            self._writer.send(_with_event_name(raw, chunk))
        return True

    # ── content without an event ──────────────────────────────────────────────────────────────────────────────────

    def _forward_untranslated(self, template: Json) -> None:
        """Forward blocks and deltas that only this wire has, and close the blocks that the template closes.

        Deltas of a block that is no longer open are dropped: the block was rewritten without them.
        """
        writer, event_type, block = self._writer, template.get("type"), self._writer.open_block
        content, delta = template.get("content_block"), template.get("delta")
        if (
            event_type == "content_block_start"
            and isinstance(content, dict)
            and _is_untranslated(content.get("type"), TRANSLATED_BLOCK_TYPES)
        ):
            writer.start_block(content["type"], content)
        elif block is None or block.upstream_index is None or block.upstream_index != template.get("index"):
            return
        elif event_type == "content_block_stop":
            writer.close_block()
        elif event_type == "content_block_delta" and isinstance(delta, dict) and _is_untranslated_delta(delta, block):
            writer.flush_start()
            writer.send({**template, "index": block.index})


_DELTA_BLOCK_TYPES = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "thinking",
    "input_json_delta": "tool_use",
}
"""The type of block that each type of delta belongs to."""
_FORWARDERS: dict[str, Callable[[MessagesEmitter, Json, bytes], bool]] = {
    "message_start": MessagesEmitter._forward_message_start,
    "content_block_start": MessagesEmitter._forward_block_start,
    "content_block_delta": MessagesEmitter._forward_block_delta,
    "content_block_stop": MessagesEmitter._forward_block_stop,
    "message_delta": MessagesEmitter._forward_message_delta,
}


def _is_untranslated(type_name: object, translated: Container[str]) -> bool:
    return isinstance(type_name, str) and type_name not in translated


def _is_untranslated_delta(delta: Json, block: OpenBlock) -> bool:
    return block.block_type not in TRANSLATED_BLOCK_TYPES or _is_untranslated(delta.get("type"), _DELTA_BLOCK_TYPES)


def _with_index(raw: bytes, chunk: Json, index: int) -> MessageFrame:
    return _with_event_name(raw, chunk) if chunk["index"] == index else {**chunk, "index": index}


def _with_event_name(raw: bytes, chunk: Json) -> MessageFrame:
    """Return the raw frame if it has the right event name, because clients only look at the name; else the chunk."""
    event_type = chunk["type"].encode()
    if raw.startswith(b"event: %b\ndata: " % event_type):
        return raw
    name = _EVENT_NAME_LINE.search(raw)
    return raw if name and name[1] == event_type else chunk


def _encode_frames(frames: list[MessageFrame]) -> bytes:
    return b"".join([_encode_frame(frame) for frame in frames])


def _encode_frame(frame: MessageFrame) -> bytes:
    if isinstance(frame, bytes):
        return frame
    if isinstance(frame, BlockDelta):
        return frame.encode()
    return sse.encode_event(msgspec.json.encode(frame), sse.event_name(frame["type"]))
