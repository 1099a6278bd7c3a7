"""Events → the frames of a message, as strict clients want them: one block at a time, numbered 0, 1, 2, …

Clients take a call's arguments from deltas only, want usage at the start and at the end, and a signature behind all
thinking. Nothing follows the end.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Literal, TypeAlias

import msgspec

from interlingua import events as ev
from interlingua.common.jsontext.arguments import STREAMED
from interlingua.common.jsontext.codec import NOT_JSON, wrapped, write_json
from interlingua.core.options import Options
from interlingua.core.reasoning_signatures import seal
from interlingua.core.reply import Reasoning
from interlingua.wires.anthropic_messages.content_blocks import NAME
from interlingua.wires.anthropic_messages.objects import message_object, stop_fields, usage_object
from interlingua.wires.base import Json
from interlingua.wires.safe_ids import encode
from interlingua.wires.streaming.delta_template import More

__all__ = ["FIELDS", "NOT_JSON", "Block", "Delta", "Frame", "Frames", "State"]

DeltaKind: TypeAlias = Literal["text_delta", "thinking_delta", "signature_delta", "input_json_delta"]
FIELDS: dict[DeltaKind, str] = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
"""Where each kind of delta has its text."""
_WRITTEN = {
    kind: b"event: content_block_delta\n"
    b'data: {"type":"content_block_delta","index":%%d,"delta":{"type":"%b","%b":%%b}}\n\n'
    % (kind.encode(), field.encode())
    for kind, field in FIELDS.items()
}
"""The frame of each kind, but for the index of its block and its text."""


class Delta(msgspec.Struct, frozen=True, gc=False):
    """What is said of a block. Nearly all frames are such."""

    index: int
    kind: DeltaKind
    text: str

    def written(self) -> bytes:
        return _WRITTEN[self.kind] % (self.index, msgspec.json.encode(self.text))


Frame: TypeAlias = Json | Delta | bytes
"""A frame, or one that is written already."""

UNSEALED = "openai-chat"
"""The wire whose upstreams send thinking with nothing beside it."""


class State(Enum):
    FRESH = "nothing is written"
    OPEN = "the message has begun"
    TOLD = "why it stopped is written"


_TOLD = State.TOLD  # it is asked for with every token, and an Enum is slow to answer


class Block:
    """The block that is open at the client. `upstream` is the index of the one that it comes from, if there is one.

    `start` is its first frame while that waits: a block that never says anything need not be there.
    """

    def __init__(self, kind: str, index: int, upstream: int | None, start: Frame | None = None) -> None:
        self.kind = kind
        self.index = index
        self.upstream = upstream
        self.start = start
        self.thought: list[str] = []
        self.not_json: list[str] = []
        self.args = 0
        """How many characters of arguments are written."""


class Frames:
    """Writes one message. `take` gives what was written since."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._out: list[Frame] = []
        self._usage = ev.Usage(input=options.input_tokens)
        self.stop: ev.Stop | None = None
        """Why it stopped, if that was told anew and waits for the end."""
        self._refused = False
        self.state = State.FRESH
        self.open: Block | None = None
        self.count = 0
        """How many blocks the client has been told of."""
        self.upstream: Literal["this wire", "another"] = "another"
        self.like: Json = {}
        """What is being told anew, if the upstream speaks this wire."""
        self._last: Json = {}

    def take(self) -> list[Frame]:
        out, self._out = self._out, []
        return out

    def write(self, event: ev.Event) -> None:
        if self.state is not State.TOLD and (write := _WRITERS.get(type(event))):
            write(self, event)

    def plain(self, event: ev.Event) -> Delta | None:
        """What goes out if the event says more of what the open block says; None, and nothing is written, if not."""
        block = self.open
        if block is None or block.start is not None or self.state is _TOLD:
            return None
        if type(event) is ev.TextDelta and block.kind == "text":
            return Delta(block.index, "text_delta", event.text) if event.text else None
        if type(event) is ev.ReasoningDelta and block.kind == "thinking" and event.text:
            block.thought.append(event.text)
            return Delta(block.index, "thinking_delta", event.text)
        if type(event) is ev.ArgsDelta and block.kind == "tool_use" and block.args and not block.not_json:
            block.args += len(event.text)
            return Delta(block.index, "input_json_delta", event.text)
        return None

    def more(self, event: ev.TextDelta | ev.ReasoningDelta) -> Callable[[str], bytes] | None:
        """`plain`, for further texts like this one."""
        block = self.open
        kind: DeltaKind = "text_delta" if type(event) is ev.TextDelta else "thinking_delta"
        if block is None or block.start is not None or self.state is _TOLD or f"{block.kind}_delta" != kind:
            return None
        before, _, behind = (_WRITTEN[kind] % (block.index, b"@@")).partition(b"@@")
        return More(before, behind, block.thought if kind == "thinking_delta" else None).say

    def send(self, frame: Frame) -> None:
        self._out.append(frame)

    # ── the message ───────────────────────────────────────────────────────────────────────────────────────────────

    def begin(self, event: ev.Begin) -> None:
        if self.state is State.FRESH:
            given = self.like.get("message")
            message = message_object(
                event, usage_object(self._usage), self._options, given if isinstance(given, dict) else {}
            )
            self.state = State.OPEN
            self.send({"type": "message_start", "message": message})

    def end(self) -> None:
        """All but the very last frame. A message with nothing in it gets a block, for some clients take the first."""
        self.begin(ev.Begin())
        self.close()
        if self.count == 0:
            self.start("text", {"text": ""})
            self.close()
        stop = stop_fields(self.stop or ev.Stop("stop"), self._refused)
        native = self.upstream == "this wire" and "output_tokens" in self._usage.native
        usage = self._usage.native if native else usage_object(self._usage)
        delta = self._last.get("delta")
        told = {"delta": {**delta, **stop} if isinstance(delta, dict) else stop, "usage": usage}
        self.send({**self._last, "type": "message_delta", **told})
        self.state = State.TOLD

    def _write_usage(self, event: ev.Usage) -> None:
        self._usage = event

    def _write_stop(self, event: ev.Stop) -> None:
        self.close()
        self.stop = event
        self._last = self.like if self.like.get("type") == "message_delta" else {}

    # ── blocks ────────────────────────────────────────────────────────────────────────────────────────────────────

    def start(self, kind: str, content: Json) -> None:
        self.close()
        self.begin(ev.Begin())
        self.open = Block(kind, self.count, self._like_index())
        self.count += 1
        frame = {"type": "content_block_start", "index": self.open.index, "content_block": {"type": kind, **content}}
        self.send(frame)

    def close(self) -> None:
        block = self.open
        if block is None:
            return
        if block.start is None:
            if block.not_json:
                self._delta("input_json_delta", write_json(wrapped("".join(block.not_json))))
            if block.kind == "thinking" and self.upstream == "another":
                sealed = self._seal(Reasoning("".join(block.thought)), UNSEALED)
                self._delta("signature_delta", sealed)
            self._send_stop(block)
        self.open = None

    def let_start(self) -> None:
        """The start that waits goes out: there is something to say."""
        block = self.open
        if block is not None and block.start is not None:
            self.send(block.start)
            block.start = None
            self.count += 1

    def _send_stop(self, block: Block) -> None:
        self.send({"type": "content_block_stop", "index": block.index})
        self.open = None

    def _inside(self, kind: str, content: Json) -> Block:
        """The open block if it is of this kind, else a new one."""
        if self.open is not None and self.open.kind == kind and self.open.start is None and not self.like:
            return self.open
        if self.open is None or self.open.kind != kind:
            self.start(kind, content)
        self.let_start()
        assert self.open is not None
        index = self._like_index()
        self.open.upstream = self.open.upstream if index is None else index
        return self.open

    def _delta(self, kind: DeltaKind, said: str) -> None:
        assert self.open is not None
        self._out.append(Delta(self.open.index, kind, said))

    def _like_index(self) -> int | None:
        index = self.like.get("index")
        return index if isinstance(index, int) else None

    # ── what they say ─────────────────────────────────────────────────────────────────────────────────────────────

    def _write_text(self, event: ev.TextDelta | ev.RefusalDelta) -> None:
        if event.text:
            self._inside("text", {"text": ""})
            self._delta("text_delta", event.text)

    def _write_refusal(self, event: ev.RefusalDelta) -> None:
        if self.upstream == "another":  # else it stands where this wire has it, beside the stop reason
            self._refused = True
            self._write_text(event)

    def _write_thinking(self, event: ev.ReasoningDelta) -> None:
        if event.text:
            block = self._inside("thinking", {"thinking": "", "signature": ""})
            block.thought.append(event.text)
            self._delta("thinking_delta", event.text)

    def _write_seal(self, event: ev.Seal) -> None:
        """The end of the thinking before it. What has nothing to show is redacted thinking."""
        redacted = event.data.get("redacted") if event.wire == NAME else None
        if event.wire == NAME and redacted is None:
            block = self._inside("thinking", {"thinking": "", "signature": ""})
            self._delta("signature_delta", str(event.data.get("signature") or ""))
            self._send_stop(block)
        elif event.wire != NAME and self.open is not None and self.open.kind == "thinking":
            thinking = Reasoning("".join(self.open.thought), event)
            self._delta("signature_delta", self._seal(thinking, event.wire))
            self._send_stop(self.open)
        else:
            data = redacted or self._seal(Reasoning("", event), event.wire)
            self.start("redacted_thinking", {"data": data})
            self.close()

    def _seal(self, thinking: Reasoning, wire: str) -> str:
        return seal(thinking, wire, self._options.seal_key, self._options.upstream)

    def _write_call(self, event: ev.CallStart) -> None:
        given = self.like.get("content_block")
        beside = given if isinstance(given, dict) and given.get("type") == "tool_use" else {}
        self.start("tool_use", {**beside, "id": encode(event.id or ""), "name": event.name, "input": {}})

    def _write_args(self, event: ev.ArgsDelta) -> None:
        block = self.open
        if block is None or block.kind != "tool_use":
            return
        if block.not_json or (not block.args and event.text.lstrip()[:1] not in STREAMED):
            block.not_json += [event.text] if event.text.strip() or block.not_json else []
            return
        block.args += len(event.text)
        self._delta("input_json_delta", event.text)

    def _end_call(self, event: ev.CallEnd) -> None:  # noqa: ARG002 (the stop reason tells if it was cut)
        if self.open is not None and self.open.kind == "tool_use":
            self.close()


_WRITERS: dict[type, Callable[[Frames, Any], None]] = {
    ev.Begin: Frames.begin,
    ev.TextDelta: Frames._write_text,
    ev.ReasoningDelta: Frames._write_thinking,
    ev.RefusalDelta: Frames._write_refusal,
    ev.Seal: Frames._write_seal,
    ev.CallStart: Frames._write_call,
    ev.ArgsDelta: Frames._write_args,
    ev.CallEnd: Frames._end_call,
    ev.Usage: Frames._write_usage,
    ev.Stop: Frames._write_stop,
}
