"""Checks for the translation of any stream from any wire to any wire."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

from fuzz.engine import BrokenPromise, ByteChooser, instrument_imports

with instrument_imports():
    import interlingua as il
    from interlingua import trace
    from interlingua.core.options import Limits
    from interlingua.errors import InterlinguaError
    from interlingua.wires.streaming import sse

from tests.support import anthropic_client, responses_clients, sdk
from tests.support.harness import tool
from tests.support.pair_scenes import SCENES
from tests.support.pair_sources import CHAT, MESSAGES, RESPONSES, STREAMS

__all__ = ["CHECKS", "GENUINE", "WIRES", "Route", "Row"]

WIRES = (CHAT, MESSAGES, RESPONSES)
GENUINE = {wire: [STREAMS[wire](scene, 5) for scene in SCENES] for wire in WIRES}
"""Streams of upstreams of each wire, one per scene."""
DIALECTS = ("standard", "kimi_k2", "hermes", "qwen3_coder", "harmony", "detect")
TOOLS: tuple[Any, ...] = (None, [], [tool("f", ["a"]), tool("get_weather", ["city"])])
OPTIONS = (
    il.Options(),
    il.Options(seal_key=b"key", upstream="one", served_as="mine"),
    il.Options(delivery="whole"),
    il.Options(reasoning="as_content"),
    il.Options(reasoning="drop", limits=Limits(header=20, held=30, args=24)),
    il.Options(limits=Limits(header=20, held=30, args=24, event=400, over="error")),
)
PER_BYTE = 600
"""Streams of up to this many bytes are also read byte by byte, longer ones in at most this many pieces."""
ROOM, TIMES = 20_000, 300
"""Limit of the output: ROOM bytes plus TIMES × the size of the input."""


@dataclass(frozen=True)
class Route:
    """Source, target and options of a translation. Tools and options are indexes, so that a row prints short."""

    source: str
    target: str
    dialect: str
    tools: int
    options: int

    @classmethod
    def from_bytes(cls, chooser: ByteChooser) -> Route:
        source, target, dialect = chooser.pick(WIRES), chooser.pick(WIRES), chooser.pick(DIALECTS)
        return cls(source, target, dialect, chooser.below(len(TOOLS)), chooser.below(len(OPTIONS)))

    def translator(self, observer: trace.TraceObserver | None = None) -> il.Translator:
        return il.Translator(
            self.source,
            self.target,
            self.dialect,
            tools=TOOLS[self.tools],
            options=OPTIONS[self.options],
            observer=observer,
        )


@dataclass(frozen=True)
class ClientView:
    """Events that the client received, and the kinds of the findings."""

    events: list[tuple[str, str]]
    findings: list[str]


@dataclass(frozen=True)
class Row:
    """Stream of an upstream, and the positions where it is cut."""

    way: Route
    stream: bytes
    cuts: tuple[int, ...]

    @classmethod
    def of(cls, way: Route, stream: bytes, cuts: Iterable[int]) -> Row:
        return cls(way, stream, tuple(sorted(cut % (len(stream) + 1) for cut in cuts)))

    @property
    def pieces(self) -> list[bytes]:
        return [self.stream[a:b] for a, b in pairwise([0, *self.cuts, len(self.stream)])]

    @cached_property
    def sent(self) -> bytes:
        """Output if the stream arrives in one piece."""
        translator = self.way.translator()
        return translator.feed(self.stream) + translator.close()

    def client_view(self, pieces: Iterable[bytes]) -> ClientView:
        translator = self.way.translator()
        out = b"".join([*map(translator.feed, pieces), translator.close()])
        return ClientView(events(out), [finding.kind for finding in translator.findings])

    @property
    def family(self) -> str:
        return f"{self.way.source} to {self.way.target}"

    def smaller(self) -> Iterator[Row]:
        for plain in (replace(self.way, options=0), replace(self.way, dialect="standard"), replace(self.way, tools=0)):
            if plain != self.way:
                yield replace(self, way=plain)
        for n in range(len(self.cuts)):
            yield replace(self, cuts=self.cuts[:n] + self.cuts[n + 1 :])
        blocks = [block.raw for block in _blocks(self.stream)]
        for n in range(len(blocks)):
            yield Row.of(self.way, b"".join(blocks[:n] + blocks[n + 1 :]), self.cuts)
        size = len(self.stream) // 2
        while size:
            for at in range(0, len(self.stream), size):
                yield Row.of(self.way, self.stream[:at] + self.stream[at + size :], self.cuts)
            size //= 2

    def __str__(self) -> str:
        return f"way = {self.way}\nstream = {self.stream!r}\ncuts = {self.cuts}"


def _blocks(stream: bytes) -> list[sse.SseBlock]:
    decoder = sse.SseDecoder()
    return decoder.blocks(stream) + decoder.last_blocks()


def events(stream: bytes) -> list[tuple[str, str]]:
    """Return name and data of each event, as a browser would parse it."""
    decoder = sse.SseDecoder()
    messages = decoder.feed(stream)
    if rest := decoder.close():
        assert not rest[0].has_data, f"event without a final blank line: {rest[0].raw!r}"
    return [(message.event, message.data) for message in messages if message.has_data]


# ── checks ──────────────────────────────────────────────────────────────────────────────────────────────────


def check_cuts(row: Row) -> None:
    whole = row.client_view([row.stream])
    size = 1 + len(row.stream) // PER_BYTE
    small = [row.stream[at : at + size] for at in range(0, len(row.stream), size)]
    for how, pieces in (("as cut", row.pieces), (f"{size} bytes at a time", small)):
        view = row.client_view(pieces)
        if view.events != whole.events:
            ours, theirs = (f"{one.events!r:.3000}" for one in (whole, view))
            raise BrokenPromise("result does not depend on cuts", "events", f"whole: {ours}\n{how}: {theirs}")
        if view.findings != whole.findings:
            raise BrokenPromise("result does not depend on cuts", "findings", f"whole: {whole}\n{how}: {view}")


def check_ends_once(row: Row) -> None:
    """Check that the stream ends once, normally or with an error, and that all events are JSON."""
    view = events(row.sent)
    ends = [n for n, (_, data) in enumerate(view) if _is_end(data, row.way.target)]
    if ends != [len(view) - 1]:
        raise BrokenPromise("a stream ends exactly once", f"{len(ends)} ends", f"sent: {row.sent!r:.3000}")


def _is_end(data: str, wire: str) -> bool:
    if data == "[DONE]" and wire == CHAT:
        return True
    frame = json.loads(data)
    if wire == CHAT:
        return bool(frame.get("error"))
    return frame.get("type") in ENDS[wire]


ENDS = {
    MESSAGES: ("message_stop", "error"),
    RESPONSES: ("response.completed", "response.incomplete", "response.failed", "error"),
}


def check_strict_client(row: Row) -> None:
    """Check that a strict client accepts the output. Skipped on the same wire, where input is forwarded unchanged."""
    if row.way.source == row.way.target:
        return
    plain = b"".join(sse.encode_event(data, event) for event, data in events(row.sent))
    try:
        view = STRICT_READERS[row.way.target](plain)
    except (AssertionError, LookupError, TypeError, ValueError) as error:
        way = f"{type(error).__name__} {str(error).partition(':')[0]:.40}"
        raise BrokenPromise("a strict client accepts the stream", way, f"{error}\nsent: {plain!r:.3000}") from error
    if view.done == (view.error is not None):
        raise BrokenPromise("a stream ends normally or with an error", "both or neither", f"sent: {plain!r:.3000}")


STRICT_READERS: dict[str, Callable[[bytes], sdk.StreamView | anthropic_client.MessageView]] = {
    CHAT: sdk.read_strict,
    MESSAGES: anthropic_client.read_strict,
    RESPONSES: responses_clients.read_strict,
}


def check_bounded(row: Row) -> None:
    translator = row.way.translator()
    received = 0
    for piece in row.pieces:
        received += len(piece)
        translator.feed(piece)
        if len(translator.held) > received:
            raise BrokenPromise(
                "no more is buffered than was received", "buffered", f"{len(translator.held)} of {received}"
            )
    if len(row.sent) > ROOM + TIMES * len(row.stream):
        raise BrokenPromise("output is bounded", "bytes", f"{len(row.sent)} for {len(row.stream)}")


def check_fold(row: Row) -> None:
    """Check the translation for a non-streaming client. It may raise only `InterlinguaError`."""
    try:
        row.way.translator().fold(row.stream)
    except InterlinguaError:
        return


def check_trace(row: Row) -> None:
    """Check that an observer changes nothing, and that every trace can be written and read."""
    lines: list[bytes] = []
    translator = row.way.translator(lambda event: lines.append(trace.encode_trace_event(event)))
    if translator.feed(row.stream) + translator.close() != row.sent:
        raise BrokenPromise("an observer changes nothing", "sent", f"sent without an observer: {row.sent!r:.3000}")
    if len(trace.decode_trace(b"".join(lines))) != len(lines):
        raise BrokenPromise("a trace can be read", "lines", f"trace: {b''.join(lines)!r:.3000}")


CHECKS = [check_cuts, check_ends_once, check_strict_client, check_bounded, check_fold, check_trace]
