"""Events → an Anthropic Messages stream.

Where the upstream speaks this wire too, what needs no change passes as it came. Once something was told anew, what
follows passes with the index that it has by now.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable

import msgspec

from interlingua import events as ev
from interlingua.core.options import Options
from interlingua.wires.anthropic_messages.content_blocks import TRANSLATED_BLOCK_TYPES
from interlingua.wires.anthropic_messages.message_writer import (
    BlockDelta,
    MessageFrame,
    MessageState,
    MessageWriter,
    OpenBlock,
)
from interlingua.wires.anthropic_messages.objects import error_object
from interlingua.wires.base import ChoiceEvents, Json
from interlingua.wires.streaming import sse

__all__ = ["MessagesEmitter"]

MESSAGE_STOP = {"type": "message_stop"}
PING_COMMENT = b": ping\n\n"
"""Keeps a client waiting that must not be told anything yet."""
_EVENT_NAME_LINE = re.compile(rb"(?:^|[\r\n])event: ?([^\r\n]*)[\r\n]")


class MessagesEmitter:
    """Writes one reply: `emit` what was made anew, `pass_on` what needs no change."""

    def __init__(self, options: Options | None = None) -> None:
        options = options or Options()
        self.findings: list[ev.Finding] = []
        self._served_as = options.served_as
        self._writer = MessageWriter(options)

    def forward(self, chunk: Json, raw: bytes) -> bytes | None:
        """The chunk as it came, renumbered if it has to be; None if the block that it belongs to is not open."""
        writer = self._writer
        writer.upstream = "this wire"
        if writer.state is MessageState.STOPPED and chunk["type"] not in ("ping", "message_delta"):
            return b""
        forwarded = _FORWARDERS.get(chunk["type"], MessagesEmitter._forward_other)(self, chunk, raw)
        return _encode_frames(writer.drain()) if forwarded else None

    def emit(self, choice_events: ChoiceEvents, common: Iterable[ev.Event] = (), template: Json | None = None) -> bytes:
        """The frames for what was said. Why it stopped and what it cost wait for `done`."""
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
        writer.template = {}
        return _encode_frames(writer.drain())

    def _emit_fast(self, choice_events: ChoiceEvents) -> bytes:
        """The frame if there is one delta to write, of the block that is open, and nothing beside it: nearly always.
        Nothing if it is not so."""
        if len(choice_events) != 1 or len(choice_events[0][1]) != 1:
            return b""
        delta = self._writer.fast_delta(choice_events[0][1][0])
        return delta.encode() if delta is not None else b""

    def delta_writer(self, index: int, event: ev.TextDelta | ev.ReasoningDelta) -> Callable[[str], bytes] | None:  # noqa: ARG002
        return self._writer.delta_writer(event)

    def fail(self, failure: ev.Failure) -> bytes:
        """The frame that ends a stream badly. Nothing follows it."""
        return _encode_frames([error_object(failure)])

    def finish(self, raw: bytes = b"") -> bytes:
        if self._writer.state is not MessageState.STOPPED:
            self._writer.end_message()
        self._writer.send(_with_event_name(raw, MESSAGE_STOP))
        return _encode_frames(self._writer.drain())

    # ── what passes ───────────────────────────────────────────────────────────────────────────────────────────────

    def _forward_message_start(self, chunk: Json, raw: bytes) -> bool:
        self._writer.state = MessageState.OPEN
        if self._served_as not in ("", chunk["message"]["model"]):
            self._writer.send({**chunk, "message": {**chunk["message"], "model": self._served_as}})
        else:
            self._writer.send(_with_event_name(raw, chunk))
        return True

    def _forward_block_start(self, chunk: Json, raw: bytes) -> bool:
        """The start of a block of text waits until there is some: an empty block behind calls makes Claude Code silent,
        and native text may turn out to be nothing but a call."""
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
        if (
            block.block_type in TRANSLATED_BLOCK_TYPES
            and _DELTA_BLOCK_TYPES.get(delta_type, block.block_type) != block.block_type
        ):
            return False  # what was a call may be text by now
        writer.flush_start()
        writer.send(_with_index(raw, chunk, block.index))
        if isinstance(args := chunk["delta"].get("partial_json"), str):
            block.argument_chars += len(args)
        return True

    def _forward_block_stop(self, chunk: Json, raw: bytes) -> bool:
        """A block that was closed before, or never began, needs no stop."""
        writer, block = self._writer, self._writer.open_block
        if block is None or block.upstream_index != chunk["index"]:
            return True
        if (
            block.pending_start is not None and writer.block_count == 0
        ):  # the first one may be empty: all clients know that
            writer.flush_start()
        if block.pending_start is None:
            writer.send(_with_index(raw, chunk, block.index))
        writer.open_block = None
        return True

    def _forward_message_delta(self, chunk: Json, raw: bytes) -> bool:
        if self._writer.pending_stop is not None:  # told again, but it was not right the first time
            return False
        self._writer.start_message(ev.Begin())
        self._writer.close_block()
        self._writer.send(_with_event_name(raw, chunk))
        self._writer.state = MessageState.STOPPED
        return True

    def _forward_other(self, chunk: Json, raw: bytes) -> bool:
        """A ping, or what nobody knows. Before the message begins clients want to hear of nothing."""
        if self._writer.state is MessageState.FRESH:
            self._writer.send(PING_COMMENT)
        else:
            self._writer.flush_start()
            self._writer.send(_with_event_name(raw, chunk))
        return True

    # ── what no event tells ───────────────────────────────────────────────────────────────────────────────────────

    def _forward_untranslated(self, template: Json) -> None:
        """Blocks and deltas that are for clients of this wire only go on in their place, and blocks end that are over.

        Those that stand in a block that is no more are lost: it was told anew, without them.
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
"""What each delta adds to."""
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
    """As it came, if it came with its name: clients look at nothing else."""
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
