"""Writer for the frames of a message, as strict clients require them: one block at a time, numbered 0, 1, 2, …

Clients read a call's arguments from deltas only. They require usage at the start and at the end, and a signature after
all thinking. Nothing follows the end.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from io import StringIO
from typing import Any, Literal, TypeAlias

import msgspec

from interlingua import events as ev
from interlingua.common.jsontext.arguments import STREAMED_OPENERS
from interlingua.common.jsontext.codec import INVALID_JSON_KEY, wrap_invalid_arguments, write_json
from interlingua.core.options import Options
from interlingua.core.reasoning_signatures import UNSIGNED_WIRE, call_seal, write_envelope
from interlingua.core.reply import Reasoning
from interlingua.wires.anthropic_messages.content_blocks import NAME
from interlingua.wires.anthropic_messages.objects import message_object, stop_fields, usage_object
from interlingua.wires.base import Json, StreamedDelta, TextWriter
from interlingua.wires.safe_ids import encode_id
from interlingua.wires.streaming.delta_template import DeltaTemplate

__all__ = [
    "DELTA_TEXT_FIELDS",
    "INVALID_JSON_KEY",
    "BlockDelta",
    "MessageFrame",
    "MessageState",
    "MessageWriter",
    "OpenBlock",
]

DeltaType: TypeAlias = Literal["text_delta", "thinking_delta", "signature_delta", "input_json_delta"]
DELTA_TEXT_FIELDS: dict[DeltaType, str] = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
"""The field with the text, by the type of delta."""
_DELTA_FRAMES = {
    kind: b"event: content_block_delta\n"
    b'data: {"type":"content_block_delta","index":%%d,"delta":{"type":"%b","%b":%%b}}\n\n'
    % (kind.encode(), field.encode())
    for kind, field in DELTA_TEXT_FIELDS.items()
}
"""The frame for each type of delta, with placeholders for the index of its block and its text."""


class BlockDelta(msgspec.Struct, frozen=True, gc=False):
    """Delta of a block. Nearly all frames are deltas."""

    index: int
    delta_type: DeltaType
    text: str

    def encode(self) -> bytes:
        return _DELTA_FRAMES[self.delta_type] % (self.index, msgspec.json.encode(self.text))


MessageFrame: TypeAlias = Json | BlockDelta | bytes
"""A frame as an object or delta, or already encoded as bytes."""


class MessageState(Enum):
    FRESH = "nothing was written"
    OPEN = "the message has begun"
    STOPPED = "the stop reason was written"


_BLOCK_AND_DELTA_TYPES: dict[type, tuple[str, DeltaType]] = {
    ev.TextDelta: ("text", "text_delta"),
    ev.ReasoningDelta: ("thinking", "thinking_delta"),
    ev.ArgsDelta: ("tool_use", "input_json_delta"),
}
"""The type of the block and of the delta for each event with text."""
NO_TEMPLATE: Json = {}  # the same object for all messages
_STOPPED = MessageState.STOPPED  # checked for every token, and Enum attribute access is slow


class OpenBlock:
    """Block that is open at the client. `upstream_index`: the index of the upstream's block that it comes from, if any.

    `pending_start`: its first frame, buffered until the block has content. A block without content is not sent.
    """

    __slots__ = (
        "_reasoning_text",
        "argument_chars",
        "block_type",
        "index",
        "invalid_arguments",
        "pending_start",
        "upstream_index",
    )

    def __init__(
        self, block_type: str, index: int, upstream_index: int | None, pending_start: MessageFrame | None = None
    ) -> None:
        self.block_type = block_type
        self.index = index
        self.upstream_index = upstream_index
        self.pending_start = pending_start
        self._reasoning_text: StringIO | None = None
        self.invalid_arguments: list[str] = []
        self.argument_chars = 0
        """Number of characters of arguments that were written."""

    @property
    def reasoning_text(self) -> StringIO:
        """The thinking that was written, for its signature. Created on first use: most blocks are no thinking."""
        if self._reasoning_text is None:
            self._reasoning_text = StringIO()
        return self._reasoning_text

    @property
    def kept_chars(self) -> int:
        """Number of characters that are kept until the end of the block."""
        reasoning_chars = self._reasoning_text.tell() if self._reasoning_text is not None else 0
        return reasoning_chars + sum(map(len, self.invalid_arguments))


class MessageWriter:
    """Writer for one message. `drain` returns the frames written since the last call."""

    __slots__ = (
        "_options",
        "_pending_frames",
        "_refused",
        "_stop_template",
        "_usage",
        "block_count",
        "open_block",
        "pending_stop",
        "state",
        "template",
        "upstream",
    )

    def __init__(self, options: Options) -> None:
        self._options = options
        self._pending_frames: list[MessageFrame] = []
        self._usage = ev.Usage(input=options.input_tokens)
        self.pending_stop: ev.Stop | None = None
        """The stop reason, if it was rewritten and is buffered until the end."""
        self._refused = False
        self.state = MessageState.FRESH
        self.open_block: OpenBlock | None = None
        self.block_count = 0
        """Number of blocks whose start was sent to the client."""
        self.upstream: Literal["this wire", "another"] = "another"
        self.template = NO_TEMPLATE
        """The chunk that is being rewritten, if the upstream uses this wire."""
        self._stop_template = NO_TEMPLATE

    @property
    def kept_chars(self) -> int:
        block = self.open_block
        return block.kept_chars if block is not None else 0

    def drain(self) -> list[MessageFrame]:
        frames, self._pending_frames = self._pending_frames, []
        return frames

    def write(self, event: ev.Event) -> None:
        if self.state is not MessageState.STOPPED and (write_event := _EVENT_WRITERS.get(type(event))):
            write_event(self, event)

    def fast_delta(self, event: ev.Event) -> BlockDelta | None:
        """Fast path: return the delta if the event continues the open block; else None, with the state unchanged."""
        block = self.open_block
        if block is None or block.pending_start is not None or self.state is _STOPPED:
            return None
        if type(event) is ev.TextDelta and block.block_type == "text":
            return BlockDelta(block.index, "text_delta", event.text) if event.text else None
        if type(event) is ev.ReasoningDelta and block.block_type == "thinking" and event.text:
            block.reasoning_text.write(event.text)
            return BlockDelta(block.index, "thinking_delta", event.text)
        if (
            type(event) is ev.ArgsDelta
            and block.block_type == "tool_use"
            and block.argument_chars
            and not block.invalid_arguments
        ):
            block.argument_chars += len(event.text)
            return BlockDelta(block.index, "input_json_delta", event.text)
        return None

    # With these two, the writer is the emitter's fast codec.

    forward_tracker = None

    def delta_writer(
        self,
        index: int,  # noqa: ARG002 (there is one choice only)
        event: StreamedDelta,
        template: Json | None,  # noqa: ARG002 (no field of it is repeated)
    ) -> TextWriter | None:
        """Return a function that writes further texts like this event, as `fast_delta` does; None if it cannot."""
        block = self.open_block
        if block is None or block.pending_start is not None or self.state is _STOPPED:
            return None
        block_type, delta_type = _BLOCK_AND_DELTA_TYPES[type(event)]
        if block.block_type != block_type:
            return None
        if block_type == "tool_use" and (block.invalid_arguments or not block.argument_chars):
            return None
        before, _, after = (_DELTA_FRAMES[delta_type] % (block.index, b"@@")).partition(b"@@")
        return DeltaTemplate((before, after), block.reasoning_text if delta_type == "thinking_delta" else None).render

    def send(self, frame: MessageFrame) -> None:
        self._pending_frames.append(frame)

    # ── the message ───────────────────────────────────────────────────────────────────────────────────────────────

    def start_message(self, event: ev.Begin) -> None:
        if self.state is MessageState.FRESH:
            template_message = self.template.get("message")
            message = message_object(
                event,
                usage_object(self._usage),
                self._options,
                template_message if isinstance(template_message, dict) else {},
            )
            self.state = MessageState.OPEN
            self.send({"type": "message_start", "message": message})

    def end_message(self) -> None:
        """Write all but the last frame. An empty message gets an empty text block: some clients expect one."""
        self.start_message(ev.Begin())
        self.close_block()
        if self.block_count == 0:
            self.start_block("text", {"text": ""})
            self.close_block()
        stop = stop_fields(self.pending_stop or ev.Stop("stop"), self._refused)
        native = self.upstream == "this wire" and "output_tokens" in self._usage.native
        usage = self._usage.native if native else usage_object(self._usage)
        delta = self._stop_template.get("delta")
        fields = {"delta": {**delta, **stop} if isinstance(delta, dict) else stop, "usage": usage}
        self.send({**self._stop_template, "type": "message_delta", **fields})
        self.state = MessageState.STOPPED

    def _write_usage(self, event: ev.Usage) -> None:
        self._usage = event

    def _write_stop(self, event: ev.Stop) -> None:
        self.close_block()
        self.pending_stop = event
        self._stop_template = self.template if self.template.get("type") == "message_delta" else NO_TEMPLATE

    # ── blocks ────────────────────────────────────────────────────────────────────────────────────────────────────

    def start_block(self, block_type: str, content: Json) -> None:
        self.close_block()
        self.start_message(ev.Begin())
        self.open_block = OpenBlock(block_type, self.block_count, self._template_index())
        self.block_count += 1
        frame = {
            "type": "content_block_start",
            "index": self.open_block.index,
            "content_block": {"type": block_type, **content},
        }
        self.send(frame)

    def close_block(self) -> None:
        block = self.open_block
        if block is None:
            return
        if block.pending_start is None:
            if block.invalid_arguments:
                self._append_delta(
                    "input_json_delta", write_json(wrap_invalid_arguments("".join(block.invalid_arguments)))
                )
            if block.block_type == "thinking" and self.upstream == "another":
                signature = self._sign(Reasoning(block.reasoning_text.getvalue()), UNSIGNED_WIRE)
                self._append_delta("signature_delta", signature)
            self._send_stop(block)
        self.open_block = None

    def flush_start(self) -> None:
        """Send the buffered start of the open block, because the block has content now."""
        block = self.open_block
        if block is not None and block.pending_start is not None:
            self.send(block.pending_start)
            block.pending_start = None
            self.block_count += 1

    def _send_stop(self, block: OpenBlock) -> None:
        self.send({"type": "content_block_stop", "index": block.index})
        self.open_block = None

    def _ensure_block(self, block_type: str, content: Json) -> OpenBlock:
        """Return the open block if it has this type, else a new one."""
        if (
            self.open_block is not None
            and self.open_block.block_type == block_type
            and self.open_block.pending_start is None
            and not self.template
        ):
            return self.open_block
        if self.open_block is None or self.open_block.block_type != block_type:
            self.start_block(block_type, content)
        self.flush_start()
        assert self.open_block is not None
        index = self._template_index()
        self.open_block.upstream_index = self.open_block.upstream_index if index is None else index
        return self.open_block

    def _append_delta(self, delta_type: DeltaType, text: str) -> None:
        assert self.open_block is not None
        self._pending_frames.append(BlockDelta(self.open_block.index, delta_type, text))

    def _template_index(self) -> int | None:
        index = self.template.get("index")
        return index if isinstance(index, int) else None

    # ── content ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _write_text(self, event: ev.TextDelta | ev.RefusalDelta) -> None:
        if event.text:
            self._ensure_block("text", {"text": ""})
            self._append_delta("text_delta", event.text)

    def _write_refusal(self, event: ev.RefusalDelta) -> None:
        if self.upstream == "another":  # else it stays in its own field, next to the stop reason
            self._refused = True
            self._write_text(event)

    def _write_thinking(self, event: ev.ReasoningDelta) -> None:
        if event.text:
            block = self._ensure_block("thinking", {"thinking": "", "signature": ""})
            block.reasoning_text.write(event.text)
            self._append_delta("thinking_delta", event.text)

    def _write_signature(self, event: ev.Seal) -> None:
        """Write the signature that ends the thinking before it; without visible thinking, a redacted_thinking block."""
        redacted = event.data.get("redacted") if event.wire == NAME else None
        if event.wire == NAME and redacted is None:
            block = self._ensure_block("thinking", {"thinking": "", "signature": ""})
            self._append_delta("signature_delta", str(event.data.get("signature") or ""))
            self._send_stop(block)
        elif event.wire != NAME and self.open_block is not None and self.open_block.block_type == "thinking":
            thinking = Reasoning(self.open_block.reasoning_text.getvalue(), event)
            self._append_delta("signature_delta", self._sign(thinking, event.wire))
            self._send_stop(self.open_block)
        else:
            data = redacted or self._sign(Reasoning("", event), event.wire)
            self.start_block("redacted_thinking", {"data": data})
            self.close_block()

    def _sign(self, thinking: Reasoning, wire: str) -> str:
        return write_envelope(thinking, wire, self._options.seal_key, self._options.upstream)

    def _start_call(self, event: ev.CallStart) -> None:
        if (seal := call_seal(event.extra)) is not None and self._options.reasoning == "keep":
            self._write_signature(seal)
        template_block = self.template.get("content_block")
        extra_fields = (
            template_block if isinstance(template_block, dict) and template_block.get("type") == "tool_use" else {}
        )
        self.start_block("tool_use", {**extra_fields, "id": encode_id(event.id or ""), "name": event.name, "input": {}})

    def _write_arguments(self, event: ev.ArgsDelta) -> None:
        block = self.open_block
        if block is None or block.block_type != "tool_use":
            return
        if block.invalid_arguments or (not block.argument_chars and event.text.lstrip()[:1] not in STREAMED_OPENERS):
            block.invalid_arguments += [event.text] if event.text.strip() or block.invalid_arguments else []
            return
        block.argument_chars += len(event.text)
        self._append_delta("input_json_delta", event.text)

    def _end_call(self, event: ev.CallEnd) -> None:  # noqa: ARG002 (the stop reason shows a truncated call)
        if self.open_block is not None and self.open_block.block_type == "tool_use":
            self.close_block()


_EVENT_WRITERS: dict[type, Callable[[MessageWriter, Any], None]] = {
    ev.Begin: MessageWriter.start_message,
    ev.TextDelta: MessageWriter._write_text,
    ev.ReasoningDelta: MessageWriter._write_thinking,
    ev.RefusalDelta: MessageWriter._write_refusal,
    ev.Seal: MessageWriter._write_signature,
    ev.CallStart: MessageWriter._start_call,
    ev.ArgsDelta: MessageWriter._write_arguments,
    ev.CallEnd: MessageWriter._end_call,
    ev.Usage: MessageWriter._write_usage,
    ev.Stop: MessageWriter._write_stop,
}
