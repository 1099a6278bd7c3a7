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
from interlingua.wires.anthropic_messages.content_blocks import SPOKEN
from interlingua.wires.anthropic_messages.message_writer import Block, Delta, Frame, Frames, State
from interlingua.wires.anthropic_messages.objects import error_object
from interlingua.wires.base import Json, Said
from interlingua.wires.streaming import sse

__all__ = ["Emitter"]

STOP = {"type": "message_stop"}
COMMENT = b": ping\n\n"
"""Keeps a client waiting that must not be told anything yet."""
_EVENT = re.compile(rb"(?:^|[\r\n])event: ?([^\r\n]*)[\r\n]")


class Emitter:
    """Writes one reply: `emit` what was made anew, `pass_on` what needs no change."""

    def __init__(self, options: Options | None = None) -> None:
        options = options or Options()
        self.findings: list[ev.Finding] = []
        self._served_as = options.served_as
        self._frames = Frames(options)

    def pass_on(self, chunk: Json, raw: bytes) -> bytes | None:
        """The chunk as it came, renumbered if it has to be; None if the block that it belongs to is not open."""
        frames = self._frames
        frames.upstream = "this wire"
        if frames.state is State.TOLD and chunk["type"] not in ("ping", "message_delta"):
            return b""
        passed = _PASSED.get(chunk["type"], Emitter._pass_other)(self, chunk, raw)
        return _encoded(frames.take()) if passed else None

    def emit(self, said: Said, common: Iterable[ev.Event] = (), like: Json | None = None) -> bytes:
        """The frames for what was said. Why it stopped and what it cost wait for `done`."""
        frames = self._frames
        if like is None and not common and (plain := self._plain(said)):
            return plain
        if like is not None:
            frames.upstream = "this wire"
            frames.like = like
        for event in common:
            frames.write(event)
        for _, events in said:
            for event in events:
                frames.write(event)
        if like is not None and frames.state is not State.TOLD:
            self._tell_beside(like)
        frames.like = {}
        return _encoded(frames.take())

    def _plain(self, said: Said) -> bytes:
        """The frame if there is one delta to write, of the block that is open, and nothing beside it: nearly always.
        Nothing if it is not so."""
        if len(said) != 1 or len(said[0][1]) != 1:
            return b""
        delta = self._frames.plain(said[0][1][0])
        return delta.written() if delta is not None else b""

    def more(self, index: int, event: ev.TextDelta | ev.ReasoningDelta) -> Callable[[str], bytes] | None:  # noqa: ARG002
        return self._frames.more(event)

    def fail(self, failure: ev.Failure) -> bytes:
        """The frame that ends a stream badly. Nothing follows it."""
        return _encoded([error_object(failure)])

    def done(self, raw: bytes = b"") -> bytes:
        if self._frames.state is not State.TOLD:
            self._frames.end()
        self._frames.send(_named(raw, STOP))
        return _encoded(self._frames.take())

    # ── what passes ───────────────────────────────────────────────────────────────────────────────────────────────

    def _pass_start(self, chunk: Json, raw: bytes) -> bool:
        self._frames.state = State.OPEN
        if self._served_as not in ("", chunk["message"]["model"]):
            self._frames.send({**chunk, "message": {**chunk["message"], "model": self._served_as}})
        else:
            self._frames.send(_named(raw, chunk))
        return True

    def _pass_block(self, chunk: Json, raw: bytes) -> bool:
        """The start of a block of text waits until there is some: an empty block behind calls makes Claude Code silent,
        and native text may turn out to be nothing but a call."""
        frames, kind = self._frames, chunk["content_block"]["type"]
        frames.close()
        frames.begin(ev.Begin())
        start = _numbered(raw, chunk, frames.count)
        frames.open = Block(kind, frames.count, chunk["index"], start)
        if kind != "text":
            frames.let_start()
        return True

    def _pass_delta(self, chunk: Json, raw: bytes) -> bool:
        frames, block = self._frames, self._frames.open
        if block is None or block.upstream != chunk["index"]:
            return False
        kind = chunk["delta"].get("type")
        if block.kind in SPOKEN and _SPOKEN_DELTAS.get(kind, block.kind) != block.kind:
            return False  # what was a call may be text by now
        frames.let_start()
        frames.send(_numbered(raw, chunk, block.index))
        if isinstance(args := chunk["delta"].get("partial_json"), str):
            block.args += len(args)
        return True

    def _pass_stop(self, chunk: Json, raw: bytes) -> bool:
        """A block that was closed before, or never began, needs no stop."""
        frames, block = self._frames, self._frames.open
        if block is None or block.upstream != chunk["index"]:
            return True
        if block.start is not None and frames.count == 0:  # the first one may be empty: all clients know that
            frames.let_start()
        if block.start is None:
            frames.send(_numbered(raw, chunk, block.index))
        frames.open = None
        return True

    def _pass_end(self, chunk: Json, raw: bytes) -> bool:
        if self._frames.stop is not None:  # told again, but it was not right the first time
            return False
        self._frames.begin(ev.Begin())
        self._frames.close()
        self._frames.send(_named(raw, chunk))
        self._frames.state = State.TOLD
        return True

    def _pass_other(self, chunk: Json, raw: bytes) -> bool:
        """A ping, or what nobody knows. Before the message begins clients want to hear of nothing."""
        if self._frames.state is State.FRESH:
            self._frames.send(COMMENT)
        else:
            self._frames.let_start()
            self._frames.send(_named(raw, chunk))
        return True

    # ── what no event tells ───────────────────────────────────────────────────────────────────────────────────────

    def _tell_beside(self, like: Json) -> None:
        """Blocks and deltas that are for clients of this wire only go on in their place, and blocks end that are over.

        Those that stand in a block that is no more are lost: it was told anew, without them.
        """
        frames, kind, block = self._frames, like.get("type"), self._frames.open
        content, delta = like.get("content_block"), like.get("delta")
        if kind == "content_block_start" and isinstance(content, dict) and _is_foreign(content.get("type"), SPOKEN):
            frames.start(content["type"], content)
        elif block is None or block.upstream is None or block.upstream != like.get("index"):
            return
        elif kind == "content_block_stop":
            frames.close()
        elif kind == "content_block_delta" and isinstance(delta, dict) and _is_beside(delta, block):
            frames.let_start()
            frames.send({**like, "index": block.index})


_SPOKEN_DELTAS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "thinking",
    "input_json_delta": "tool_use",
}
"""What each delta adds to."""
_PASSED: dict[str, Callable[[Emitter, Json, bytes], bool]] = {
    "message_start": Emitter._pass_start,
    "content_block_start": Emitter._pass_block,
    "content_block_delta": Emitter._pass_delta,
    "content_block_stop": Emitter._pass_stop,
    "message_delta": Emitter._pass_end,
}


def _is_foreign(kind: object, known: Container[str]) -> bool:
    return isinstance(kind, str) and kind not in known


def _is_beside(delta: Json, block: Block) -> bool:
    return block.kind not in SPOKEN or _is_foreign(delta.get("type"), _SPOKEN_DELTAS)


def _numbered(raw: bytes, chunk: Json, index: int) -> Frame:
    return _named(raw, chunk) if chunk["index"] == index else {**chunk, "index": index}


def _named(raw: bytes, chunk: Json) -> Frame:
    """As it came, if it came with its name: clients look at nothing else."""
    kind = chunk["type"].encode()
    if raw.startswith(b"event: %b\ndata: " % kind):
        return raw
    name = _EVENT.search(raw)
    return raw if name and name[1] == kind else chunk


def _encoded(frames: list[Frame]) -> bytes:
    return b"".join([_written(frame) for frame in frames])


def _written(frame: Frame) -> bytes:
    if isinstance(frame, bytes):
        return frame
    if isinstance(frame, Delta):
        return frame.written()
    return sse.encode(msgspec.json.encode(frame), sse.named(frame["type"]))
