"""The usual chunk is read by a way of its own, and one that is the same again but for its text takes a shorter one yet.
What goes out is what would have gone out without that."""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Iterator
from copy import deepcopy
from itertools import product
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

import interlingua as il
from interlingua.errors import InterlinguaError, UsageError
from interlingua.events import Finding
from interlingua.trace import Passed, TraceEvent
from interlingua.translation import translator
from interlingua.wires import get_wire
from interlingua.wires.base import Emitter, FastReader, Reader
from interlingua.wires.streaming.sse import SseDecoder
from tests.support import anthropic_scenarios as messages
from tests.support import chat_scenarios as chat
from tests.support import responses_scenarios as responses
from tests.support.cuts import random_pieces
from tests.support.pair_scenes import SCENES
from tests.support.pair_sources import CHAT, MESSAGES, RESPONSES, STREAMS
from tests.support.sdk import Json

pytestmark = pytest.mark.slow  # the same again, in every way
WIRES = (CHAT, MESSAGES, RESPONSES)
SCENARIOS: dict[str, list[Any]] = {
    CHAT: [*chat.SCENARIOS],
    MESSAGES: [*messages.SCENARIOS],
    RESPONSES: [*responses.SCENARIOS],
}
SCENE = {scene.name: scene for scene in SCENES}
OPTIONS = (il.Options(), il.Options(delivery="whole"), il.Options(served_as="x"), il.Options(reasoning="as_content"))
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
    """A wire with nothing but what a stream needs."""
    wire = get_wire(name)
    return SimpleNamespace(
        NAME=wire.NAME,
        SINGLE_CHOICE=wire.SINGLE_CHOICE,
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


class Translation:
    """One stream, translated with fast codecs or without.

    `usual` counts the chunks that a codec has read, `again` those that were forwarded without reading them.
    """

    def __init__(self, source: str, target: str, **settings: Any) -> None:
        self.translator = il.Translator(source, target, **settings)
        self.again = 0
        if self.fast_path is not None:
            self._reader = self.fast_path._reader = CountingReader(self.fast_path._reader)

    @classmethod
    def without_codec(cls, *wires: str, plain: Collection[str], **settings: Any) -> Translation:
        """A translation between two wires; the `plain` ones have no codec."""
        with patch.object(translator, "get_wire", lambda name: (plain_wire if name in plain else get_wire)(name)):
            return cls(*wires, **settings)

    @property
    def fast_path(self) -> Any:
        return self.translator._fast_path

    @property
    def usual(self) -> int:
        return self._reader.count

    def run(self, given: list[bytes]) -> tuple[list[bytes], list[str], dict[str, Any]]:
        sent = [*map(self.feed, given), self.translator.close()]
        return sent, [repr(finding) for finding in self.translator.findings], vars(self.translator.tally)

    def feed(self, data: bytes) -> bytes:
        kept = self.fast_path and self.fast_path._try_read
        sent = self.translator.feed(data)
        self.again += kept is not None and self.fast_path is not None and self.fast_path._try_read is kept
        return sent


def both_ways(source: str, target: str, given: list[bytes], **settings: Any) -> int:
    """How many chunks were usual; fails if that makes a difference."""
    with_codecs = Translation(source, target, **settings)
    expected = with_codecs.run(given)
    for plain in {frozenset((source, target)), frozenset((target,))}:
        without = Translation.without_codec(source, target, plain=plain, **settings)
        assert (without.fast_path is None) is (source in plain)
        assert without.run(given) == expected, b"".join(given)
        assert without.translator.dialect == with_codecs.translator.dialect
        assert not without.again
    return with_codecs.usual + with_codecs.again


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
            both_ways(source, target, given, **settings)


@each_pair
def test_most_chunks_are_usual(source: str, target: str) -> None:
    scene = SCENE["thinking, text and a call"]
    given = blocks(STREAMS[source](scene))
    deltas = [raw for raw in given if b"delta" in raw]
    assert both_ways(source, target, given, dialect="standard", tools=scene.tools) > len(deltas) / 3


# ── chunks that are nearly usual ──────────────────────────────────────────────────────────────────────────────────

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


def changed(source: str, given: list[bytes], chance: random.Random) -> list[bytes]:
    """The stream with one field of one chunk changed, added or taken away."""
    at = chance.choice([n for n, raw in enumerate(given) if b"data: {" in raw])
    head, data = given[at].split(b"data: ", 1)
    chunk = json.loads(data)
    where = chance.choice(list(objects(chunk)))
    key = chance.choice([*where, *KEYS[source]] if chance.random() < 0.5 else list(where) or ["x"])
    if chance.random() < 0.2:
        where.pop(key, None)
    else:
        where[key] = deepcopy(chance.choice(VALUES))
    if chance.random() < 0.1:
        head = chance.choice((b"", b"event: error\n", b"event:error\n", b"id: 1\n", b"event: x\n", b": x\n"))
    told = json.dumps(chunk, ensure_ascii=chance.random() < 0.5).encode()
    if chance.random() < 0.1:
        told = told.replace(b'"', chance.choice((b'"\\ud83d', b'"\xff', b'"\x01')), 1)
    return [*given[:at], head + b"data: " + told + b"\n\n", *given[at + 1 :]]


@each_pair
def test_what_is_nearly_usual(source: str, target: str) -> None:
    chance = random.Random(source + target)
    scenes = ("thinking, text and a call", "parallel calls", "native text and calls", "length inside a call")
    streams = [blocks(STREAMS[source](SCENE[name])) for name in scenes]
    for _ in range(200):
        given = changed(source, chance.choice(streams), chance)
        both_ways(source, target, given, dialect=chance.choice(("standard", "kimi_k2")), options=chance.choice(OPTIONS))


ODD: tuple[Any, ...] = (None, "", "x", 0, 1, True, 1.0, [], {}, [1], {"a": 1}, "\ufffd")


def usual_places(source: str, target: str, given: list[bytes]) -> list[int]:
    """Which of these blocks are read as usual ones."""
    translation = Translation(source, target, dialect="standard")
    counts = []
    for raw in given:
        translation.translator.feed(raw)
        counts.append(translation.usual)
    return [n for n, count in enumerate(counts) if count > (counts[n - 1] if n else 0)]


@each_pair
def test_each_field_that_a_usual_chunk_may_have(source: str, target: str) -> None:
    """More of thinking, text and arguments: whatever else stands in such a chunk, at whatever place."""
    given = blocks(STREAMS[source](SCENE["thinking, text and a call"]))
    usual = usual_places(source, target, given)
    for at in (usual[0], usual[len(usual) // 2], usual[-1]):
        head, data = given[at].split(b"data: ", 1)
        for place, key, value in product(range(len(list(objects(json.loads(data))))), KEYS[source], ODD):
            chunk = json.loads(data)
            list(objects(chunk))[place][key] = value
            told = head + b"data: " + json.dumps(chunk).encode() + b"\n\n"
            both_ways(source, target, [*given[:at], told, *given[at + 1 : at + 3]], dialect="standard")


# ── the same chunk again ──────────────────────────────────────────────────────────────────────────────────────────

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


def chat_chunk(text: str, field: str, chance: random.Random, index: int = 0) -> bytes:
    choice = {"index": index, "delta": {field: text}, "finish_reason": None}
    beside: Json = {"logprobs": None} if chance.random() < 0.1 else {}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "kimi", "choices": [choice | beside]}
    if chance.random() < 0.05:
        chunk |= {"created": 2}
    return b"data: " + json.dumps(chunk, ensure_ascii=chance.random() < 0.3).encode() + b"\n\n"


def messages_chunk(text: str, field: str, chance: random.Random) -> bytes:
    delta = {"type": f"{field}_delta", field: text}
    chunk = {"type": "content_block_delta", "index": 0, "delta": delta}
    return (
        b"event: content_block_delta\ndata: " + json.dumps(chunk, ensure_ascii=chance.random() < 0.3).encode() + b"\n\n"
    )


def spoken(source: str, chance: random.Random) -> list[bytes]:
    """A stream that says text after text, with what may stand between them."""
    count = chance.randint(3, 40)
    texts = [chance.choice(TEXTS) if chance.random() < 0.4 else f" word{n}" for n in range(count)]
    if source == CHAT:
        first = chat_chunk("", "role", chance)
        fields = ["reasoning_content"] * chance.randint(0, 5) + ["content"] * count
        given = [chat_chunk(text, field, chance) for text, field in zip(texts, fields, strict=False)]
        odd = [b": x\n\n", chat_chunk("other", "content", chance, 1), b"data: {}\n\n", b"data: x\n\n", b"\n"]
        end = [b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n', b"data: [DONE]\n\n"]
    else:
        kind = chance.choice(("text", "thinking"))
        begun = blocks(STREAMS[MESSAGES](SCENE["thinking, text and a call"]))[0]
        block = {"type": "content_block_start", "index": 0, "content_block": {"type": kind, kind: ""}}
        first = begun + b"event: content_block_start\ndata: " + json.dumps(block).encode() + b"\n\n"
        given = [messages_chunk(text, kind, chance) for text in texts]
        odd = [b": x\n\n", b'event: ping\ndata: {"type":"ping"}\n\n', b"data: {}\n\n", b"\n"]
        end = [b'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n']
    for _ in range(chance.choice((0, 0, 1, 3))):
        given.insert(chance.randrange(len(given) + 1), chance.choice(odd))
    return [first, *given, *end]


def cut(given: list[bytes], chance: random.Random) -> list[bytes]:
    """Reads as they may come: mostly a chunk each, now and then a part of one, or several."""
    reads = [b""]
    for raw in given:
        if chance.random() < 0.1:
            at = chance.randrange(len(raw) + 1)
            reads[-1] += raw[:at]
            reads.append(raw[at:])
        elif chance.random() < 0.1:
            reads[-1] += raw
        else:
            reads.append(raw)
    return [read for read in reads if read]


@pytest.mark.parametrize("target", WIRES)
@pytest.mark.parametrize("source", [CHAT, MESSAGES])
def test_text_after_text(source: str, target: str) -> None:
    chance = random.Random(source + target)
    settings = {
        "dialect": ("standard", "kimi_k2", "hermes", "deepseek_v3", "mistral_v11", "glm45", "harmony"),
        "options": (*OPTIONS, il.Options(reasoning="drop"), il.Options(limits=il.Limits(event=250))),
    }
    for _ in range(400):
        chosen = {name: chance.choice(values) for name, values in settings.items()}
        both_ways(source, target, cut(spoken(source, chance), chance), **chosen)


@pytest.mark.parametrize("target", WIRES)
@pytest.mark.parametrize("source", [CHAT, MESSAGES])
@pytest.mark.parametrize("options", OPTIONS, ids=repr)
def test_most_texts_are_the_same_again(source: str, target: str, options: il.Options) -> None:
    chance = random.Random(1)
    first = next(raw for raw in iter(lambda: spoken(source, chance)[0], b"") if b"thinking" not in raw)
    chunk = chat_chunk if source == CHAT else messages_chunk
    given = [chunk(f" word{n}", "content" if source == CHAT else "text", chance) for n in range(100)]
    translation = Translation(source, target, dialect="kimi_k2", options=options)
    for raw in [first, *given]:
        translation.feed(raw)
    assert translation.again > 60


# ── when the fast path ends ───────────────────────────────────────────────────────────────────────────────────────────


def begin_text(target: str, **settings: Any) -> Translation:
    """A translation that would forward the next text."""
    chance = random.Random(1)
    translation = Translation(CHAT, target, dialect="kimi_k2", **settings)
    for raw in [chat_chunk("", "role", chance), *(chat_chunk(f" word{n}", "content", chance) for n in range(5))]:
        translation.feed(raw)
    assert translation.fast_path._try_read
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
    chance = random.Random(target)
    passed = 0
    for _ in range(100):
        trace: list[TraceEvent] = []
        traced = il.Translator(CHAT, target, "kimi_k2", observer=trace.append)
        expected = il.Translator(CHAT, target, "kimi_k2")
        for data in cut(spoken(CHAT, chance), chance):
            assert traced.feed(data) == expected.feed(data)
        assert traced.close() == expected.close()
        passed += sum(isinstance(event, Passed) for event in trace)
    assert passed, "the fast path is taken with an observer, too"


# ── a call's arguments ────────────────────────────────────────────────────────────────────────────────────────────────


def arguments(chance: random.Random) -> list[str]:
    """Arguments in pieces, some of them with more behind their end, or sent again."""
    text = json.dumps({"path": "a.py", "content": "".join(chance.choices(TEXTS, k=chance.randint(1, 30)))})
    text += chance.choice(("", "", "", "\n", "more", "}"))
    at = sorted(chance.randrange(len(text) + 1) for _ in range(chance.randint(1, 20)))
    parts = [text[a:b] for a, b in zip([0, *at], [*at, len(text)], strict=True)]
    if chance.random() < 0.1:
        return ["".join(parts[: n + 1]) for n in range(len(parts))]
    return parts


def chat_call(number: int, chance: random.Random) -> list[bytes]:
    def chunk(entry: Json) -> bytes:
        choice = {"index": 0, "delta": {"tool_calls": [entry]}, "finish_reason": None}
        body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "kimi", "choices": [choice]}
        return b"data: " + json.dumps(body, ensure_ascii=chance.random() < 0.1).encode() + b"\n\n"

    index = number + chance.choice((0, 0, 0, 1))
    start = {"index": index, "id": f"c{number}", "type": "function", "function": {"name": "write", "arguments": ""}}
    beside: Json = chance.choice(({}, {}, {}, {"type": "function"}, {"id": f"c{number}"}))
    more = [{"index": index, **beside, "function": {"arguments": text}} for text in arguments(chance)]
    return [chunk(start), *map(chunk, more)]


def messages_call(number: int, chance: random.Random) -> list[bytes]:
    def event(kind: str, **fields: Any) -> bytes:
        return b"event: %b\ndata: " % kind.encode() + json.dumps({"type": kind, **fields}).encode() + b"\n\n"

    block = {"type": "tool_use", "id": f"c{number}", "name": "write", "input": {}}
    deltas = [{"type": "input_json_delta", "partial_json": text} for text in arguments(chance)]
    return [
        event("content_block_start", index=number, content_block=block),
        *(event("content_block_delta", index=number, delta=delta) for delta in deltas),
        *([event("content_block_stop", index=number)] if chance.random() < 0.9 else []),
    ]


@pytest.mark.parametrize("target", WIRES)
@pytest.mark.parametrize("source", [CHAT, MESSAGES])
def test_arguments_after_arguments(source: str, target: str) -> None:
    chance = random.Random(source + target)
    limits = il.Options(limits=il.Limits(args=60))
    begun = blocks(STREAMS[MESSAGES](SCENE["thinking, text and a call"]))[0]
    first, one_call = (chat_chunk("", "role", chance), chat_call) if source == CHAT else (begun, messages_call)
    for _ in range(400):
        given = [raw for number in range(chance.randint(1, 3)) for raw in one_call(number, chance)]
        for _ in range(chance.choice((0, 0, 1, 3))):
            given.insert(chance.randrange(len(given) + 1), chance.choice((b": x\n\n", b"data: {}\n\n", given[-1])))
        dialect, options = chance.choice(("standard", "kimi_k2")), chance.choice((*OPTIONS, limits))
        both_ways(source, target, cut([first, *given], chance), dialect=dialect, options=options)


def native_pieces(dialect: str, chance: random.Random) -> list[str]:
    """A call with long arguments in the text of this dialect, in pieces; sometimes with an error at its end."""
    words = chance.choices(["word ", "id", "x", "\n", *TEXTS], k=chance.choice((30, 600)))
    content = "".join(words).replace("\ufffd", "")
    try:
        text = native_call(dialect, content)
    except InterlinguaError:  # text that the notation cannot carry
        text = native_call(dialect, "word " * 300)
    if chance.random() < 0.5:
        wrong = len(text) - chance.randint(1, 40)
        text = text[:wrong] + chance.choice(("", '"', "}", '", "id": "abcdefgh1', "x")) + text[wrong + 1 :]
    at = sorted(chance.randrange(len(text) + 1) for _ in range(len(text) // 5))
    return [text[a:b] for a, b in zip([0, *at], [*at, len(text)], strict=True)]


def native_call(dialect: str, content: str) -> str:
    args = json.dumps({"path": "a.py", "content": content})
    return il.render(il.Reply(parts=[il.Call("call00001", "write", args)]), dialect)


WRITE = {"name": "write", "parameters": {"type": "object", "properties": {"path": {}, "content": {}}}}


@pytest.mark.parametrize("dialect", [dialect.name for dialect in il.list_dialects() if dialect.markers])
def test_native_arguments(dialect: str) -> None:
    chance = random.Random(dialect)
    for number in range(24):
        given = [chat_chunk(text, "content", random.Random(2)) for text in native_pieces(dialect, chance) if text]
        tools = [{"type": "function", "function": WRITE}]
        both_ways(CHAT, WIRES[number % 3], [chat_chunk("", "role", chance), *given], dialect=dialect, tools=tools)


def test_id_after_long_arguments_without_a_brace() -> None:
    text = ['[TOOL_CALLS][{"name": "write", "arguments": {"content": "', *["word "] * 260]
    text += ['", "', "id", '": "', "abcdefgh1", '"}', "]"]
    given = [chat_chunk(piece, "content", random.Random(2)) for piece in text]
    tools = [{"type": "function", "function": WRITE}]
    both_ways(CHAT, MESSAGES, [chat_chunk("", "role", random.Random(2)), *given], dialect="mistral_v3", tools=tools)


MORE = (
    b'data: {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, '
    b'"function": {"arguments": "@@"}}]}, "finish_reason": null}]}\n\n'
)


@pytest.mark.parametrize("target", [MESSAGES, RESPONSES])
@pytest.mark.parametrize("dialect", ["standard", "kimi_k2"])
def test_most_arguments_are_the_same_again(target: str, dialect: str) -> None:
    """Also those that are text to the upstream."""
    chance = random.Random(1)
    translation = Translation(CHAT, target, dialect=dialect)
    opener = '<|tool_calls_section_begin|><|tool_call_begin|>functions.write:0<|tool_call_argument_begin|>{"a":"'
    if dialect == "standard":
        begun = chat_call(0, chance)[0]
        pieces = ['{\\"a\\":\\"', *(f"word {n}" for n in range(100))]
        given = [MORE.replace(b"@@", piece.encode()) for piece in pieces]
    else:
        begun = chat_chunk(opener, "content", chance)
        given = [chat_chunk(f"word {n}", "content", random.Random(2)) for n in range(100)]
    for raw in [chat_chunk("", "role", chance), begun, *given]:
        translation.feed(raw)
    assert translation.usual < 10
