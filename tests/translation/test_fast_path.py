"""The fast path: most chunks take it, and what is sent for them is what the ordinary path would send."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Collection, Iterator
from copy import deepcopy
from itertools import cycle, product
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import hypothesis
import hypothesis.strategies as st
import pytest

import interlingua as il
from interlingua.core.reply_stats import ReplyStats
from interlingua.errors import InterlinguaError, UsageError
from interlingua.events import Finding
from interlingua.trace import Passed, TraceEvent
from interlingua.translation import translator
from interlingua.translation.fast_path import FastPath
from interlingua.wires import get_wire
from interlingua.wires.base import Emitter, FastReader, Reader
from interlingua.wires.openai_chat import fast_delta
from interlingua.wires.streaming.repeated_chunk import MAX_PROBES
from interlingua.wires.streaming.sse import SseDecoder
from tests.support import anthropic_scenarios as messages
from tests.support import chat_scenarios as chat
from tests.support import responses_scenarios as responses
from tests.support.cuts import random_pieces
from tests.support.pair_scenes import SCENES
from tests.support.pair_sources import CHAT, MESSAGES, RESPONSES, STREAMS
from tests.support.sdk import Json

pytestmark = pytest.mark.slow  # each stream is translated on every path
WIRES = (CHAT, MESSAGES, RESPONSES)
SCENARIOS: dict[str, list[Any]] = {
    CHAT: [*chat.SCENARIOS],
    MESSAGES: [*messages.SCENARIOS],
    RESPONSES: [*responses.SCENARIOS],
}
SCENE = {scene.name: scene for scene in SCENES}
OPTIONS = (il.Options(), il.Options(delivery="whole"), il.Options(served_as="x"), il.Options(reasoning="as_content"))
SIGNING = il.Options(upstream="other", seal_key=b"k" * 32)
"""Options of an upstream whose signatures get its name, also for clients of the same wire."""
each_pair = pytest.mark.parametrize(("source", "target"), list(product(WIRES, WIRES)))


class PlainReader:
    """The core interface of a reader, without a fast codec."""

    fast = None

    def __init__(self, reader: Reader) -> None:
        self.read = reader.read
        self.close = reader.close


class PlainEmitter:
    """The core interface of an emitter, without a fast codec."""

    fast = None

    def __init__(self, emitter: Emitter) -> None:
        self._emitter = emitter
        self.forward, self.emit = emitter.forward, emitter.emit
        self.fail, self.finish = emitter.fail, emitter.finish

    @property
    def kept_chars(self) -> int:
        return self._emitter.kept_chars

    @property
    def findings(self) -> list[Finding]:
        return self._emitter.findings

    @findings.setter
    def findings(self, findings: list[Finding]) -> None:
        self._emitter.findings = findings


def plain_wire(name: str) -> Any:
    """Return a wire without fast codecs, with nothing but what a stream needs."""
    wire = get_wire(name)
    return SimpleNamespace(
        NAME=wire.NAME,
        SINGLE_CHOICE=wire.SINGLE_CHOICE,
        REASONING_FIELDS=wire.REASONING_FIELDS,
        reader=lambda limits: PlainReader(wire.reader(limits)),
        emitter=lambda options, tool_set: PlainEmitter(wire.emitter(options, tool_set)),
    )


class CountingReader:
    """A fast codec that counts the chunks that it reads."""

    def __init__(self, reader: FastReader) -> None:
        self._reader = reader
        self.repeats = reader.repeats
        self.count = 0

    def read(self, data: bytes) -> Any:
        read = self._reader.read(data)
        self.count += read is not None
        return read


def stats(tally: ReplyStats) -> dict[str, Any]:
    return {name: getattr(tally, name) for name in ReplyStats.__slots__}


class CountingFastPath:
    """A fast path that counts the events that it forwards."""

    def __init__(self, fast_path: FastPath) -> None:
        self._fast_path = fast_path
        self.count = 0

    def forward(self, data: bytes) -> tuple[bytes, int]:
        sent, size = self._fast_path.forward(data)
        self.count += data[:size].count(b"data: ")
        return sent, size

    def forward_event(self, data: bytes) -> bytes | None:
        sent = self._fast_path.forward_event(data)
        self.count += sent is not None
        return sent

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fast_path, name)


class Translation:
    """One stream, translated with fast codecs or without."""

    def __init__(self, source: str, target: str, **settings: Any) -> None:
        self.translator = translator = il.Translator(source, target, **settings)
        self._forwarded = SimpleNamespace(count=0)
        if translator._fast_path is not None:
            self._reader: Any = CountingReader(translator._fast_path._reader)
            translator._fast_path._reader = self._reader
            self._forwarded = translator._fast_path = CountingFastPath(translator._fast_path)  # type: ignore[assignment]

    @classmethod
    def without_codec(cls, *wires: str, plain: Collection[str], **settings: Any) -> Translation:
        """Return a translation between two wires, of which the `plain` ones have no fast codec."""
        with patch.object(translator, "get_wire", lambda name: (plain_wire if name in plain else get_wire)(name)):
            return cls(*wires, **settings)

    @property
    def fast_path(self) -> Any:
        return self.translator._fast_path

    @property
    def read_count(self) -> int:
        """Number of chunks that the fast codec has read."""
        return int(self._reader.count)

    @property
    def forwarded_count(self) -> int:
        """Number of events that were forwarded unread."""
        return int(self._forwarded.count)

    def run(self, given: list[bytes]) -> tuple[list[bytes], list[str], dict[str, Any]]:
        sent = [*map(self.feed, given), self.translator.close()]
        return sent, [repr(finding) for finding in self.translator.findings], stats(self.translator.tally)

    def feed(self, data: bytes) -> bytes:
        return self.translator.feed(data)


def check_same_result(source: str, target: str, given: list[bytes], **settings: Any) -> int:
    """Check that the stream is translated as without fast codecs. Return the number of chunks on the fast path."""
    with_codecs = Translation(source, target, **settings)
    expected = with_codecs.run(given)
    for plain in {frozenset((source, target)), frozenset((target,))}:
        without = Translation.without_codec(source, target, plain=plain, **settings)
        assert (without.fast_path is None) is (source in plain)
        assert without.run(given) == expected, b"".join(given)
        assert without.translator.dialect == with_codecs.translator.dialect
        assert not without.forwarded_count
    return with_codecs.read_count + with_codecs.forwarded_count


def blocks(stream: bytes) -> list[bytes]:
    decoder = SseDecoder()
    return [message.raw for message in [*decoder.feed(stream), *decoder.close()]]


@each_pair
def test_scenarios(source: str, target: str) -> None:
    for scenario, options, dialect in product(SCENARIOS[source], OPTIONS, ("auto", "kimi_k2", "standard")):
        own = getattr(scenario, "options", None) or options
        chosen = own if options is OPTIONS[0] else options
        settings = {"dialect": dialect, "tools": getattr(scenario, "tools", None), "options": chosen}
        for given in (blocks(scenario.stream), [scenario.stream], random_pieces(scenario.stream, seed=1)):
            check_same_result(source, target, given, **settings)


@each_pair
def test_most_chunks_take_the_fast_path(source: str, target: str) -> None:
    scene = SCENE["thinking, text and a call"]
    given = blocks(STREAMS[source](scene))
    deltas = [raw for raw in given if b"delta" in raw]
    assert check_same_result(source, target, given, dialect="standard", tools=scene.tools) > len(deltas) / 3


# ── chunks with one unusual field ─────────────────────────────────────────────────────────────────────────────────────

KEYS = {
    CHAT: (
        *("choices", "delta", "index", "content", "role", "refusal", "reasoning", "reasoning_content", "tool_calls"),
        *("reasoning_details", "function_call", "function", "arguments", "name", "id", "type", "custom", "usage"),
        *("finish_reason", "error", "message", "data", "object", "model", "detail", "code", "unknown"),
    ),
    MESSAGES: (
        "type",
        "index",
        "delta",
        "error",
        "text",
        "thinking",
        "partial_json",
        "signature",
        "message",
        "unknown",
    ),
    RESPONSES: (
        *("type", "item_id", "output_index", "content_index", "summary_index", "sequence_number", "delta", "response"),
        *("error", "logprobs", "item", "part", "unknown"),
    ),
}
VALUES: tuple[Any, ...] = (
    *(
        None,
        "",
        "x",
        "\ufffd",
        "é",
        0,
        1,
        -1,
        1.0,
        True,
        [],
        {},
        [1],
        [[]],
        {"a": 1},
        {"type": "text_delta", "text": "a"},
    ),
    *("text_delta", "thinking_delta", "error", "ping", "response.output_text.delta", "response.reasoning_text.delta"),
    *("{", '{"a": 1}', "<|tool_call_begin|>", "[DONE]"),
)


def objects(value: Any) -> Iterator[Json]:
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from objects(inner)


def changed(source: str, given: list[bytes], rng: random.Random) -> list[bytes]:
    """Return the stream with one field of one chunk changed, added or removed."""
    at = rng.choice([n for n, raw in enumerate(given) if b"data: {" in raw])
    head, data = given[at].split(b"data: ", 1)
    chunk = json.loads(data)
    where = rng.choice(list(objects(chunk)))
    key = rng.choice([*where, *KEYS[source]] if rng.random() < 0.5 else list(where) or ["x"])
    if rng.random() < 0.2:
        where.pop(key, None)
    else:
        where[key] = deepcopy(rng.choice(VALUES))
    if rng.random() < 0.1:
        head = rng.choice((b"", b"event: error\n", b"event:error\n", b"id: 1\n", b"event: x\n", b": x\n"))
    encoded = json.dumps(chunk, ensure_ascii=rng.random() < 0.5).encode()
    if rng.random() < 0.1:
        encoded = encoded.replace(b'"', rng.choice((b'"\\ud83d', b'"\xff', b'"\x01')), 1)
    return [*given[:at], head + b"data: " + encoded + b"\n\n", *given[at + 1 :]]


@each_pair
def test_chunks_with_an_unusual_field(source: str, target: str) -> None:
    rng = random.Random(source + target)
    scenes = ("thinking, text and a call", "parallel calls", "native text and calls", "length inside a call")
    streams = [blocks(STREAMS[source](SCENE[name])) for name in scenes]
    for _ in range(200):
        given = changed(source, rng.choice(streams), rng)
        check_same_result(
            source, target, given, dialect=rng.choice(("standard", "kimi_k2")), options=rng.choice(OPTIONS)
        )


ODD: tuple[Any, ...] = (None, "", "x", 0, 1, True, 1.0, [], {}, [1], {"a": 1}, "\ufffd")


def fast_positions(source: str, target: str, given: list[bytes]) -> list[int]:
    """Return the positions of the chunks that the fast codec reads."""
    translation = Translation(source, target, dialect="standard")
    counts = []
    for raw in given:
        translation.translator.feed(raw)
        counts.append(translation.read_count)
    return [n for n, count in enumerate(counts) if count > (counts[n - 1] if n else 0)]


@each_pair
def test_each_field_of_a_delta(source: str, target: str) -> None:
    """A delta of thinking, text or arguments with each other field, at each place of the chunk."""
    given = blocks(STREAMS[source](SCENE["thinking, text and a call"]))
    positions = fast_positions(source, target, given)
    for at in (positions[0], positions[len(positions) // 2], positions[-1]):
        head, data = given[at].split(b"data: ", 1)
        for place, key, value in product(range(len(list(objects(json.loads(data))))), KEYS[source], ODD):
            chunk = json.loads(data)
            list(objects(chunk))[place][key] = value
            encoded = head + b"data: " + json.dumps(chunk).encode() + b"\n\n"
            check_same_result(source, target, [*given[:at], encoded, *given[at + 1 : at + 3]], dialect="standard")


# ── chunks that differ only in their text ─────────────────────────────────────────────────────────────────────────────

TEXTS = (
    *("Hello", " there", "c", "chat.completion.chunk", "model", "kimi", "a", "a", "é", "漢字", "\U0001f600", "\ufffd"),
    *(
        " ",
        "\n",
        "\n\n",
        "x\n",
        " x",
        '"',
        '\\"',
        "\\",
        "\\u0041",
        '","content":"y',
        '"model":"kimi"',
        "}]}\n\ndata: {",
    ),
    *("<", "<|", "<|tool_call", "s", "_begin|>", "<think>", "thought", "</think>", "answer", "…", "", "\u2028", "\x7f"),
)


TEXT_FIELDS: dict[str, Callable[[str], Json]] = {
    "content": lambda text: {"content": text},
    "reasoning_content": lambda text: {"reasoning_content": text},
    "reasoning": lambda text: {"reasoning": text},
    "both": lambda text: {"reasoning": text, "reasoning_content": text},
    "details": lambda text: {
        "reasoning": text,
        "reasoning_details": [{"type": "reasoning.text", "text": text, "format": "unknown", "index": 0}],
    },
    "arguments": lambda text: {"tool_calls": [{"index": 0, "function": {"arguments": text}}]},
}
"""Fields with the text of each delta."""


def chat_chunk(text: str, field: str, rng: random.Random, index: int = 0, **delta_fields: Any) -> bytes:
    fields = TEXT_FIELDS[field](text) if field in TEXT_FIELDS else {field: text}
    choice = {"index": index, "delta": {**delta_fields, **fields}, "finish_reason": None}
    other_fields: Json = {"logprobs": None} if rng.random() < 0.1 else {}
    chunk = {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "kimi",
        "choices": [choice | other_fields],
    }
    if rng.random() < 0.05:
        chunk |= {"created": 2}
    return b"data: " + json.dumps(chunk, ensure_ascii=rng.random() < 0.3).encode() + b"\n\n"


def messages_chunk(text: str, field: str, rng: random.Random) -> bytes:
    delta = {"type": f"{field}_delta", field: text}
    chunk = {"type": "content_block_delta", "index": 0, "delta": delta}
    return b"event: content_block_delta\ndata: " + json.dumps(chunk, ensure_ascii=rng.random() < 0.3).encode() + b"\n\n"


MESSAGE_START = blocks(STREAMS[MESSAGES](SCENE["thinking, text and a call"]))[0]


class ResponsesStream:
    """Events of a Responses stream. With `faults`, sometimes a delta has an unusual field."""

    def __init__(self, rng: random.Random, faults: float = 0.05) -> None:
        self._chance = rng
        self._faults = faults
        self._number = 0
        self._escapes = rng.random() < 0.3
        self._obfuscates = rng.random() < 0.5
        self._layout: Json = {
            "separators": rng.choice(((",", ":"), (", ", ": "))),
            "sort_keys": rng.random() < 0.5,
        }

    def event(self, kind: str, **fields: Any) -> bytes:
        body = {"type": kind, "sequence_number": self._number, **fields}
        self._number += 1
        head = b"event: " + kind.encode() + b"\n"
        if kind.endswith(".delta"):
            if self._obfuscates:
                body["obfuscation"] = "x" * self._chance.randint(0, 16)
            if self._chance.random() < self._faults:
                head = self._add_fault(body, head)
        encoded = json.dumps(body, ensure_ascii=self._escapes, **self._layout).encode()
        if kind.endswith(".delta") and self._chance.random() < self._faults / 5:
            encoded = encoded.replace(b",", self._chance.choice((b",\n", b",\r", b",\xff", b", ")), 1)
        return head + b"data: " + encoded + b"\n\n"

    def _add_fault(self, body: Json, head: bytes) -> bytes:
        """Change a field of a delta, or return another beginning of its event."""
        rng, number = self._chance, body["sequence_number"]
        faulty_fields: tuple[Json, ...] = (
            *({"sequence_number": value} for value in (number + 1, number - 1, 0, -1, 10**30, 1.5, None, True, "1")),
            *({"item_id": "other"}, {"item_id": None}, {"output_index": 7}, {"output_index": None}),
            *(
                {"content_index": 1},
                {"summary_index": 1},
                {"content_index": "0"},
                {"unknown": 1},
                {"unknown": "\ufffd"},
            ),
            *({"logprobs": []}, {"logprobs": None}, {"logprobs": [{"token": "a"}]}, {"error": None}, {"response": {}}),
            *(
                {"obfuscation": None},
                {"obfuscation": 1},
                {"obfuscation": "\ufffd"},
                {"obfuscation": "é"},
                {"delta": ""},
            ),
            *({"delta": 1}, {"type": "response.output_text.delta"}, {"type": "response.reasoning_text.delta"}),
        )
        if rng.random() < 0.1:
            return rng.choice((b"", b"event: x\n", b"id: 1\n", b"event: error\n", b"\n\n" + head, b"\n" + head))
        if rng.random() < 0.1:
            body.pop(rng.choice(list(body)))
        else:
            body |= rng.choice(faulty_fields)
        if isinstance(body.get("sequence_number"), int) and rng.random() < 0.5:  # the next one follows it
            self._number = body["sequence_number"] + 1
        return head

    def begin(self) -> bytes:
        response = {"id": "resp_1", "model": "kimi", "created_at": 1, "output": [], "status": "in_progress"}
        return self.event("response.created", response=response)

    def text(self, kind: str, texts: list[str], index: int) -> list[bytes]:
        """The events of an item with text or reasoning."""
        place: Json = {"item_id": f"i{index}", "output_index": index}
        place["summary_index" if kind == "reasoning_summary_text" else "content_index"] = 0
        item: Json = {"id": f"i{index}", "type": "message" if kind == "output_text" else "reasoning"}
        item |= {"content": []} if kind == "output_text" else {"summary": []}
        added = "reasoning_summary_part" if kind == "reasoning_summary_text" else "content_part"
        part_type = {"reasoning_summary_text": "summary_text"}.get(kind, kind)
        done = {"text": "".join(texts)}
        return [
            self.event("response.output_item.added", output_index=index, item=item),
            self.event(f"response.{added}.added", **place, part={"type": part_type, "text": ""}),
            *(self.event(f"response.{kind}.delta", **place, delta=text) for text in texts),
            *([self.event(f"response.{kind}.done", **place, **done)] if self._chance.random() < 0.7 else []),
            *([self.event("response.output_item.done", output_index=index, item=item)] * (self._chance.random() < 0.9)),
        ]

    def call(self, texts: list[str], index: int) -> list[bytes]:
        place: Json = {"item_id": f"i{index}", "output_index": index}
        item = {"id": f"i{index}", "type": "function_call", "call_id": f"c{index}", "name": "write", "arguments": ""}
        return [
            self.event("response.output_item.added", output_index=index, item=item),
            *(self.event("response.function_call_arguments.delta", **place, delta=text) for text in texts),
            *([self.event("response.output_item.done", output_index=index, item=item)] * (self._chance.random() < 0.9)),
        ]

    def end(self) -> bytes:
        return self.event("response.completed", response={"id": "resp_1", "status": "completed"})


def chat_parts(texts: list[str], rng: random.Random) -> tuple[list[bytes], list[bytes], list[bytes], list[bytes]]:
    """Return the beginning of a stream, its texts, its end, and what may be between the texts."""
    thinking = rng.choice(("reasoning_content", "reasoning", "both", "details"))
    fields = [thinking] * rng.randint(0, 8) + ["content"] * len(texts)
    role: Json = {"role": "assistant"}
    repeated_fields = rng.choice(({}, {}, {}, role, {"role": ""}, {"refusal": None}, {"unknown": 1}))
    given = [
        chat_chunk(text, field, rng, **(repeated_fields if rng.random() < 0.95 else role))
        for text, field in zip(texts, fields, strict=False)
    ]
    end = [b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n', b"data: [DONE]\n\n"]
    return [chat_chunk("", "role", rng)], given, end, [chat_chunk("other", "content", rng, 1), b"data: x\n\n"]


def messages_parts(texts: list[str], rng: random.Random) -> tuple[list[bytes], list[bytes], list[bytes], list[bytes]]:
    kind = rng.choice(("text", "thinking"))
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": kind, kind: ""}}
    first = MESSAGE_START + b"event: content_block_start\ndata: " + json.dumps(block).encode() + b"\n\n"
    end = [b'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n']
    return [first], [messages_chunk(text, kind, rng) for text in texts], end, [b'data: {"type":"ping"}\n\n']


def responses_parts(texts: list[str], rng: random.Random) -> tuple[list[bytes], list[bytes], list[bytes], list[bytes]]:
    stream = ResponsesStream(rng)
    kinds = rng.choices(("output_text", "output_text", "reasoning_summary_text", "reasoning_text"), k=3)
    first, at = stream.begin(), rng.randrange(len(texts) + 1)
    given = [*stream.text(kinds[0], texts[:at], 0), *stream.text(kinds[1], texts[at:], 1)]
    return [first], given, [stream.end()], [b'data: {"type":"response.queued"}\n\n', b'data: {"type":"ping"}\n\n']


STREAM_PARTS = {CHAT: chat_parts, MESSAGES: messages_parts, RESPONSES: responses_parts}


def text_stream(source: str, rng: random.Random) -> list[bytes]:
    """Return a random stream of texts, with other events between them."""
    count = rng.randint(3, 40)
    texts = [rng.choice(TEXTS) if rng.random() < 0.4 else f" word{n}" for n in range(count)]
    first, given, end, others = STREAM_PARTS[source](texts, rng)
    for _ in range(rng.choice((0, 0, 1, 3))):
        given.insert(rng.randrange(len(given) + 1), rng.choice([*others, b": x\n\n", b"data: {}\n\n", b"\n"]))
    return [*first, *given, *end]


def random_reads(given: list[bytes], rng: random.Random) -> list[bytes]:
    """Return the events as reads: mostly one in each, sometimes a part of one, or several; or mostly several."""
    joined = rng.choice((0.1, 0.1, 0.8, 1.0))
    reads = [b""]
    for raw in given:
        if rng.random() < 0.1:
            at = rng.randrange(len(raw) + 1)
            reads[-1] += raw[:at]
            reads.append(raw[at:])
        elif rng.random() < joined:
            reads[-1] += raw
        else:
            reads.append(raw)
    return [read for read in reads if read]


DIALECTS = ("standard", "kimi_k2", "hermes", "deepseek_v3", "mistral_v11", "glm45", "harmony")


@each_pair
def test_random_texts(source: str, target: str) -> None:
    rng = random.Random(source + target)
    options = (*OPTIONS, SIGNING, il.Options(reasoning="drop"), il.Options(limits=il.Limits(event=250)))
    for _ in range(400):
        given = random_reads(text_stream(source, rng), rng)
        check_same_result(source, target, given, dialect=rng.choice(DIALECTS), options=rng.choice(options))


@each_pair
@hypothesis.given(st.randoms(use_true_random=False), st.sampled_from(DIALECTS), st.sampled_from(OPTIONS))
@hypothesis.settings(max_examples=60, deadline=None)
def test_generated_texts(source: str, target: str, rng: random.Random, dialect: str, options: il.Options) -> None:
    check_same_result(source, target, random_reads(text_stream(source, rng), rng), dialect=dialect, options=options)


def plain_texts(source: str, texts: list[str]) -> list[bytes]:
    """Return a stream with these texts and nothing unusual."""
    if source == RESPONSES:
        stream = ResponsesStream(random.Random(1), faults=0)
        return [stream.begin(), *stream.text("output_text", texts, 0)]
    rng = random.Random(1)
    if source == CHAT:
        return [chat_chunk("", "role", rng), *(chat_chunk(text, "content", random.Random(2)) for text in texts)]
    begun = next(raw for raw in iter(lambda: text_stream(source, rng)[0], b"") if b"thinking" not in raw)
    return [begun, *(messages_chunk(text, "text", random.Random(2)) for text in texts)]


@each_pair
@pytest.mark.parametrize("options", OPTIONS, ids=repr)
@pytest.mark.parametrize("at_once", [False, True], ids=["event by event", "in one read"])
def test_most_texts_are_forwarded_unread(source: str, target: str, options: il.Options, at_once: bool) -> None:
    given = plain_texts(source, [f" word{n}" for n in range(100)])
    translation = Translation(source, target, dialect="kimi_k2", options=options)
    for data in [b"".join(given)] if at_once else given:
        translation.feed(data)
    assert translation.forwarded_count > 90


@pytest.mark.parametrize("target", WIRES)
def test_chunks_that_never_repeat_another_are_learned_only_at_first(
    monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    probe, probed = fast_delta._probe_delta, []

    def count_and_probe(data: bytes) -> Any:
        probed.append(data)
        return probe(data)

    monkeypatch.setattr(fast_delta, "_probe_delta", count_and_probe)
    given = [chat_chunk("", "role", random.Random(1))]
    given += [chat_chunk(f" word{n}", "content", random.Random(2), obfuscation=str(n)) for n in range(200)]
    check_same_result(CHAT, target, given, dialect="standard")
    probed.clear()
    Translation(CHAT, target, dialect="standard").run(given)
    assert len(probed) == MAX_PROBES


@pytest.mark.parametrize("target", WIRES)
def test_chunks_are_learned_as_long_as_others_repeat_them(target: str) -> None:
    """SGLang's `created` changes every second."""
    given = [chat_chunk("", "role", random.Random(1))]
    given += [
        chat_chunk(f" word{n}", "content", random.Random(2)).replace(b'"created": 1', b'"created": %d' % (n // 5))
        for n in range(20 * MAX_PROBES)
    ]
    translation = Translation(CHAT, target, dialect="standard")
    translation.run(given)
    assert translation.forwarded_count >= len(given) * 3 // 5


RAW_LINE_ENDS = {
    CHAT: (b'}, "finish_reason": null}]}\n\n', b'data: {"id": "c"'),
    MESSAGES: (b"}}\n\n", b'data: {"type": "content_block_delta"'),
    RESPONSES: (b"}\n\n", b"data: {"),
}


@each_pair
@pytest.mark.parametrize("end", [b"\n", b"\r", b"\n\n", b" \r\n", b"\n: x\n"])
def test_line_end_in_the_json_ends_the_event(source: str, target: str, end: bytes) -> None:
    """Between tokens of JSON, white space is allowed, but a line end ends the data of the event."""
    before, after = RAW_LINE_ENDS[source]
    for old, changed_to in ((before, end + before), (after, after + end), (b'": "', b'": ' + end + b'"')):
        given = plain_texts(source, [f" word{n}" for n in range(6)])
        given[-2] = changed_to.join(given[-2].rsplit(old, 1))
        check_same_result(source, target, given, dialect="standard")
        check_same_result(source, target, [b"".join(given)], dialect="standard")


def test_sequence_numbers_continue_after_forwarded_events() -> None:
    """A native call after forwarded texts: the frames of the call have the next numbers."""
    stream = ResponsesStream(random.Random(1), faults=0)
    call = [NATIVE_OPENER, '"}<|tool_call_end|>', "<|tool_calls_section_end|>"]
    texts = [*(f" word{n}" for n in range(50)), *call, *(f" more{n}" for n in range(50))]
    given = [stream.begin(), *stream.text("output_text", texts, 0), stream.end()]
    translation = Translation(RESPONSES, RESPONSES, dialect="kimi_k2")
    sent, _, _ = translation.run(given)
    numbers = [json.loads(message.data)["sequence_number"] for message in SseDecoder().feed(b"".join(sent))]
    assert numbers == list(range(len(numbers)))
    assert translation.forwarded_count > 80
    check_same_result(RESPONSES, RESPONSES, given, dialect="kimi_k2")


# ── when the fast path ends ───────────────────────────────────────────────────────────────────────────────────────────


def begin_text(target: str, **settings: Any) -> Translation:
    """Return a translation that would forward the next text."""
    rng = random.Random(1)
    translation = Translation(CHAT, target, dialect="kimi_k2", **settings)
    for raw in [chat_chunk("", "role", rng), *(chat_chunk(f" word{n}", "content", rng) for n in range(5))]:
        translation.feed(raw)
    assert translation.forwarded_count
    return translation


NEXT_TEXT = chat_chunk(" more", "content", random.Random(1))


@pytest.mark.parametrize("target", WIRES)
def test_text_after_close_or_abort_is_refused(target: str) -> None:
    closed, aborted = begin_text(target), begin_text(target)
    closed.translator.close()
    aborted.translator.abort("cut off")
    for translation in (closed, aborted):
        with pytest.raises(UsageError):
            translation.feed(NEXT_TEXT)


@pytest.mark.parametrize("target", WIRES)
def test_text_after_an_error_is_dropped(target: str) -> None:
    translation = begin_text(target)
    translation.feed(b'data: {"error": {"message": "boom"}}\n\n')
    assert translation.feed(NEXT_TEXT) == b""
    assert [finding.kind for finding in translation.translator.findings] == ["after-end"]


@pytest.mark.parametrize("target", WIRES)
def test_text_after_part_of_an_event_belongs_to_that_event(target: str) -> None:
    at_once, in_parts = begin_text(target), begin_text(target)
    in_parts.feed(b"data: ")
    assert in_parts.feed(NEXT_TEXT) == at_once.feed(b"data: " + NEXT_TEXT)
    assert [finding.kind for finding in in_parts.translator.findings] == ["bad-json"]
    assert in_parts.translator.findings == at_once.translator.findings


@pytest.mark.parametrize("target", WIRES)
def test_observer_does_not_change_the_output(target: str) -> None:
    rng = random.Random(target)
    passed = 0
    for _ in range(100):
        trace: list[TraceEvent] = []
        traced = il.Translator(CHAT, target, "kimi_k2", observer=trace.append)
        expected = il.Translator(CHAT, target, "kimi_k2")
        for data in random_reads(text_stream(CHAT, rng), rng):
            assert traced.feed(data) == expected.feed(data)
        assert traced.close() == expected.close()
        passed += sum(isinstance(event, Passed) for event in trace)
    assert passed, "the fast path is taken with an observer, too"


# ── a call's arguments ────────────────────────────────────────────────────────────────────────────────────────────────


def arguments(rng: random.Random) -> list[str]:
    """Return arguments in pieces, sometimes with more text behind their end, or with all earlier pieces repeated."""
    text = json.dumps({"path": "a.py", "content": "".join(rng.choices(TEXTS, k=rng.randint(1, 30)))})
    text += rng.choice(("", "", "", "\n", "more", "}"))
    at = sorted(rng.randrange(len(text) + 1) for _ in range(rng.randint(1, 20)))
    parts = [text[a:b] for a, b in zip([0, *at], [*at, len(text)], strict=True)]
    if rng.random() < 0.1:
        return ["".join(parts[: n + 1]) for n in range(len(parts))]
    return parts


def chat_call(number: int, pieces: list[str], index: int, other_fields: Json) -> list[bytes]:
    """Return a call on this index, with these arguments. `other_fields`: those of each entry."""

    def chunk(entry: Json) -> bytes:
        choice = {"index": 0, "delta": {"tool_calls": [entry]}, "finish_reason": None}
        body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "kimi", "choices": [choice]}
        return b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\n\n"

    start = {"index": index, "id": f"c{number}", "type": "function", "function": {"name": "write", "arguments": ""}}
    return [
        chunk(start),
        *(chunk({"index": index, **other_fields, "function": {"arguments": text}}) for text in pieces),
    ]


def messages_call(number: int, pieces: list[str]) -> list[bytes]:
    def event(kind: str, **fields: Any) -> bytes:
        return b"event: %b\ndata: " % kind.encode() + json.dumps({"type": kind, **fields}).encode() + b"\n\n"

    block = {"type": "tool_use", "id": f"c{number}", "name": "write", "input": {}}
    deltas = [{"type": "input_json_delta", "partial_json": text} for text in pieces]
    return [
        event("content_block_start", index=number, content_block=block),
        *(event("content_block_delta", index=number, delta=delta) for delta in deltas),
        event("content_block_stop", index=number),
    ]


def random_call(source: str, number: int, rng: random.Random, stream: ResponsesStream) -> list[bytes]:
    """Return a call, perhaps with an unusual index, unusual fields, or without its end."""
    pieces = arguments(rng)
    if source == RESPONSES:
        return stream.call(pieces, number)
    if source == MESSAGES:
        return messages_call(number, pieces)[: None if rng.random() < 0.9 else -1]
    signed = {"extra_content": {"google": {"thought_signature": "S"}}}
    other_fields: Json = rng.choice(({}, {}, {}, {"type": "function"}, {"id": f"c{number}"}, {"id": ""}, signed))
    return chat_call(number, pieces, number + rng.choice((0, 0, 0, 1)), other_fields)


def call_stream(source: str, rng: random.Random) -> list[bytes]:
    """Return a random stream of calls, with other events between their arguments."""
    stream = ResponsesStream(rng)
    first = {CHAT: chat_chunk("", "role", rng), MESSAGES: MESSAGE_START, RESPONSES: stream.begin()}[source]
    given = [raw for number in range(rng.randint(1, 3)) for raw in random_call(source, number, rng, stream)]
    for _ in range(rng.choice((0, 0, 1, 3))):
        given.insert(rng.randrange(len(given) + 1), rng.choice((b": x\n\n", b"data: {}\n\n", given[-1])))
    return [first, *given]


CALL_OPTIONS = (*OPTIONS, SIGNING, il.Options(limits=il.Limits(args=60)), il.Options(arguments="exact"))


@each_pair
def test_random_arguments(source: str, target: str) -> None:
    rng = random.Random(source + target)
    for _ in range(400):
        dialect, options = rng.choice(("standard", "kimi_k2")), rng.choice(CALL_OPTIONS)
        check_same_result(source, target, random_reads(call_stream(source, rng), rng), dialect=dialect, options=options)


@each_pair
@hypothesis.given(
    st.randoms(use_true_random=False), st.sampled_from(("standard", "kimi_k2")), st.sampled_from(CALL_OPTIONS)
)
@hypothesis.settings(max_examples=60, deadline=None)
def test_generated_arguments(source: str, target: str, rng: random.Random, dialect: str, options: il.Options) -> None:
    check_same_result(source, target, random_reads(call_stream(source, rng), rng), dialect=dialect, options=options)


def native_pieces(dialect: str, rng: random.Random) -> list[str]:
    """Return a call with long arguments in the text of this dialect, in pieces; sometimes with an error at its end."""
    words = rng.choices(["word ", "id", "x", "\n", *TEXTS], k=rng.choice((30, 600)))
    content = "".join(words).replace("\ufffd", "")
    try:
        text = native_call(dialect, content)
    except InterlinguaError:  # text that the notation cannot carry
        text = native_call(dialect, "word " * 300)
    if rng.random() < 0.5:
        wrong = len(text) - rng.randint(1, 40)
        text = text[:wrong] + rng.choice(("", '"', "}", '", "id": "abcdefgh1', "x")) + text[wrong + 1 :]
    at = sorted(rng.randrange(len(text) + 1) for _ in range(len(text) // 5))
    return [text[a:b] for a, b in zip([0, *at], [*at, len(text)], strict=True)]


def native_call(dialect: str, content: str) -> str:
    args = json.dumps({"path": "a.py", "content": content})
    return il.render(il.Reply(parts=[il.Call("call00001", "write", args)]), dialect)


WRITE = {"name": "write", "parameters": {"type": "object", "properties": {"path": {}, "content": {}}}}


@pytest.mark.parametrize("dialect", [dialect.name for dialect in il.list_dialects() if dialect.markers])
def test_native_arguments(dialect: str) -> None:
    rng = random.Random(dialect)
    tools = [{"type": "function", "function": WRITE}]
    for number, (source, target) in zip(range(36), cycle(product(WIRES, WIRES)), strict=False):
        stream = plain_texts(source, [text for text in native_pieces(dialect, rng) if text])
        given = random_reads(stream, rng) if number % 2 else stream
        check_same_result(source, target, given, dialect=dialect, tools=tools)


def test_id_after_long_arguments_without_a_brace() -> None:
    text = ['[TOOL_CALLS][{"name": "write", "arguments": {"content": "', *["word "] * 260]
    text += ['", "', "id", '": "', "abcdefgh1", '"}', "]"]
    given = [chat_chunk(piece, "content", random.Random(2)) for piece in text]
    tools = [{"type": "function", "function": WRITE}]
    check_same_result(
        CHAT, MESSAGES, [chat_chunk("", "role", random.Random(2)), *given], dialect="mistral_v3", tools=tools
    )


def plain_arguments(source: str, pieces: list[str]) -> list[bytes]:
    """Return a stream with a call that has these arguments, and nothing unusual."""
    if source == CHAT:
        return [chat_chunk("", "role", random.Random(1)), *chat_call(0, pieces, 0, {})]
    if source == MESSAGES:
        return [MESSAGE_START, *messages_call(0, pieces)[:-1]]
    stream = ResponsesStream(random.Random(1), faults=0)
    return [stream.begin(), *stream.call(pieces, 0)[: len(pieces) + 1]]


NATIVE_OPENER = '<|tool_calls_section_begin|><|tool_call_begin|>functions.write:0<|tool_call_argument_begin|>{"a":"'


@each_pair
@pytest.mark.parametrize("dialect", ["standard", "kimi_k2"])
@pytest.mark.parametrize("at_once", [False, True], ids=["event by event", "in one read"])
def test_most_arguments_are_forwarded_unread(source: str, target: str, dialect: str, at_once: bool) -> None:
    """Also those that the model writes as text, and those that are cut inside an escape."""
    pieces = [f"a<b word{n}\\" if n % 2 else f"n\\u00e9 word{n}" for n in range(100)]
    given = (
        plain_arguments(source, ['{"a":"x', *pieces])
        if dialect == "standard"
        else plain_texts(source, [NATIVE_OPENER, *pieces])
    )
    translation = Translation(source, target, dialect=dialect)
    for data in [b"".join(given)] if at_once else given:
        translation.feed(data)
    assert translation.forwarded_count > 90
    check_same_result(source, target, given, dialect=dialect)


# ── layouts of servers ────────────────────────────────────────────────────────────────────────────────────────────────

DELTA_FIELDS: dict[str, Json] = {
    "vLLM": {},
    "OpenRouter, Ollama, TGI": {"role": "assistant"},
    "Ollama, thinking": {"role": "assistant", "content": ""},
    "MiniMax": {"role": "assistant", "name": "MiniMax AI", "audio_content": ""},
    "SGLang": {"role": None, "content": None, "reasoning_content": None, "tool_calls": None},
}
"""Other fields of each delta, by the servers that send them."""
CHOICE_FIELDS: tuple[Json, ...] = (
    {"finish_reason": None},
    {"finish_reason": ""},
    {"logprobs": None, "finish_reason": None},
    {"finish_reason": None, "native_finish_reason": None, "logprobs": None},
)
ENTRY_FIELDS: tuple[Json, ...] = (
    {},
    {"type": "function"},
    {"type": "function", "id": None, "function": {"name": None}},
    {"type": "function", "id": ""},
    {"id": "", "function": {"name": ""}},
)
"""Other fields of each entry with arguments."""


def server_chunk(delta: Json, choice_fields: Json, *, escapes: bool) -> bytes:
    choice = {"index": 0, "delta": delta, **choice_fields}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "kimi", "choices": [choice]}
    return b"data: " + json.dumps(chunk, separators=(",", ":"), ensure_ascii=escapes).encode() + b"\n\n"


def server_stream(
    kind: str, texts: list[str], delta_fields: Json, choice_fields: Json, entry_fields: Json
) -> list[bytes]:
    """Return a stream with these texts, in the layout of a server."""
    start = {"index": 0, "id": "c0", "type": "function", "function": {"name": "write", "arguments": '{"a": "'}}
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    if kind == "arguments":
        deltas.append({"role": "assistant", "tool_calls": [start]})
    for text in texts:
        fields = TEXT_FIELDS[kind](text)
        for entry in fields.get("tool_calls", ()):
            entry |= {**entry_fields, "function": entry_fields.get("function", {}) | entry["function"]}
        deltas.append({**delta_fields, **fields})
    return [server_chunk(delta, choice_fields, escapes="é" in texts[0]) for delta in deltas]


@pytest.mark.parametrize("target", WIRES)
@pytest.mark.parametrize("kind", TEXT_FIELDS)
@pytest.mark.parametrize("delta_fields", DELTA_FIELDS.values(), ids=DELTA_FIELDS)
def test_texts_in_the_layout_of_a_server_are_forwarded(target: str, kind: str, delta_fields: Json) -> None:
    for texts, choice_fields, entry_fields in product(
        ([f" word{n}" for n in range(40)], [f" 漢字é{n}" for n in range(40)]), CHOICE_FIELDS, ENTRY_FIELDS
    ):
        if entry_fields and kind != "arguments":
            continue
        given = server_stream(kind, texts, delta_fields, choice_fields, entry_fields)
        check_same_result(CHAT, target, given, dialect="standard")
        check_same_result(CHAT, target, [b"".join(given)], dialect="standard")
        translation = Translation(CHAT, target, dialect="standard")
        translation.run(given)
        assert translation.forwarded_count >= 35, given[-1]
