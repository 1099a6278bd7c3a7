"""A stream of any wire on its way to a client of any wire, and what must hold for it, whatever came in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

from fuzz.engine import Broken, Dice, instrumented

with instrumented():
    import interlingua as il
    from interlingua.core.options import Limits
    from interlingua.errors import InterlinguaError
    from interlingua.wires.streaming import sse

from tests.support import anthropic_client, responses_clients, sdk
from tests.support.harness import tool
from tests.support.pair_scenes import SCENES
from tests.support.pair_sources import CHAT, MESSAGES, RESPONSES, STREAMS

__all__ = ["CHECKS", "GENUINE", "WIRES", "Row", "Way"]

WIRES = (CHAT, MESSAGES, RESPONSES)
GENUINE = {wire: [STREAMS[wire](scene, 5) for scene in SCENES] for wire in WIRES}
"""What upstreams of each wire send, scene by scene."""
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
"""Streams of less than so many bytes are also read byte by byte, longer ones in as many pieces at most."""
ROOM, TIMES = 20_000, 300
"""A client is sent no more bytes than so many, and so many times what came."""


@dataclass(frozen=True)
class Way:
    """From whom, to whom, and how: indexes, so that a row is told in short."""

    source: str
    target: str
    dialect: str
    tools: int
    options: int

    @classmethod
    def chosen_by(cls, dice: Dice) -> Way:
        source, target, dialect = dice.pick(WIRES), dice.pick(WIRES), dice.pick(DIALECTS)
        return cls(source, target, dialect, dice.below(len(TOOLS)), dice.below(len(OPTIONS)))

    def translator(self) -> il.Translator:
        return il.Translator(
            self.source, self.target, self.dialect, tools=TOOLS[self.tools], options=OPTIONS[self.options]
        )


@dataclass(frozen=True)
class Told:
    """What a client was sent, as events, and the kinds of what was found."""

    events: list[tuple[str, str]]
    findings: list[str]


@dataclass(frozen=True)
class Row:
    """What comes from an upstream, and how it is cut."""

    way: Way
    stream: bytes
    cuts: tuple[int, ...]

    @classmethod
    def of(cls, way: Way, stream: bytes, cuts: Iterable[int]) -> Row:
        return cls(way, stream, tuple(sorted(cut % (len(stream) + 1) for cut in cuts)))

    @property
    def pieces(self) -> list[bytes]:
        return [self.stream[a:b] for a, b in pairwise([0, *self.cuts, len(self.stream)])]

    @cached_property
    def sent(self) -> bytes:
        """What goes out if all comes at once."""
        translator = self.way.translator()
        return translator.feed(self.stream) + translator.close()

    def told(self, pieces: Iterable[bytes]) -> Told:
        translator = self.way.translator()
        out = b"".join([*map(translator.feed, pieces), translator.close()])
        return Told(events(out), [finding.kind for finding in translator.findings])

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
    """The name and the data of each event, as a browser would read it."""
    decoder = sse.SseDecoder()
    messages = decoder.feed(stream)
    if rest := decoder.close():
        assert not rest[0].has_data, f"an event that is not closed: {rest[0].raw!r}"
    return [(message.event, message.data) for message in messages if message.has_data]


# ── what must hold ──────────────────────────────────────────────────────────────────────────────────────────────────


def same_in_every_cutting(row: Row) -> None:
    whole = row.told([row.stream])
    size = 1 + len(row.stream) // PER_BYTE
    small = [row.stream[at : at + size] for at in range(0, len(row.stream), size)]
    for how, pieces in (("as cut", row.pieces), (f"{size} bytes at a time", small)):
        told = row.told(pieces)
        if told.events != whole.events:
            ours, theirs = (f"{one.events!r:.3000}" for one in (whole, told))
            raise Broken("the same in every cutting", "events", f"whole: {ours}\n{how}: {theirs}")
        if told.findings != whole.findings:
            raise Broken("the same in every cutting", "findings", f"whole: {whole}\n{how}: {told}")


def ends_once(row: Row) -> None:
    """Well or with an error, and nothing follows. All before it is JSON."""
    told = events(row.sent)
    ends = [n for n, (_, data) in enumerate(told) if _is_end(data, row.way.target)]
    if ends != [len(told) - 1]:
        raise Broken("a stream ends once, with its end", f"{len(ends)} ends", f"sent: {row.sent!r:.3000}")


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


def understood_by_a_strict_client(row: Row) -> None:
    """All that we tell ourselves. Between two that speak one wire much passes as it came, whatever it is."""
    if row.way.source == row.way.target:
        return
    plain = b"".join(sse.encode_event(data, event) for event, data in events(row.sent))
    try:
        heard = LISTEN[row.way.target](plain)
    except (AssertionError, LookupError, TypeError, ValueError) as error:
        way = f"{type(error).__name__} {str(error).partition(':')[0]:.40}"
        raise Broken("a strict client understands", way, f"{error}\nsent: {plain!r:.3000}") from error
    if heard.done == (heard.error is not None):
        raise Broken("a stream ends well or with an error", "both or neither", f"sent: {plain!r:.3000}")


LISTEN: dict[str, Callable[[bytes], sdk.StreamView | anthropic_client.MessageView]] = {
    CHAT: sdk.read_strict,
    MESSAGES: anthropic_client.read_strict,
    RESPONSES: responses_clients.read_strict,
}


def bounded(row: Row) -> None:
    translator = row.way.translator()
    came = 0
    for piece in row.pieces:
        came += len(piece)
        translator.feed(piece)
        if len(translator.held) > came:
            raise Broken("no more is held than came", "held", f"{len(translator.held)} of {came}")
    if len(row.sent) > ROOM + TIMES * len(row.stream):
        raise Broken("what goes out is bounded", "bytes", f"{len(row.sent)} for {len(row.stream)}")


def folded(row: Row) -> None:
    """For a client that wants a whole reply. An upstream that fails is an error of ours, and nothing else."""
    try:
        row.way.translator().fold(row.stream)
    except InterlinguaError:
        return


CHECKS = [same_in_every_cutting, ends_once, understood_by_a_strict_client, bounded, folded]
