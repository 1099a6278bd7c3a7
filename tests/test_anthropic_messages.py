"""Anthropic Messages: what each chunk says, what goes out, and streams to and from it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

import interlingua as il
from interlingua import events as ev
from interlingua.wire.anthropic_messages.reader import Reader
from tests import anthropic_client, sdk
from tests.anthropic_client import Heard, listen, parsed
from tests.anthropic_scenarios import (
    BOOM,
    CALL_F,
    END_USAGE,
    MODEL,
    SCENARIOS,
    USAGE,
    Scenario,
    args,
    begin,
    call,
    delta,
    end,
    sse,
    start,
    stop,
    text,
    thinking,
)
from tests.cuts import one_by_one, pieces, two_piece_cuts
from tests.sdk import Json

NAME = "anthropic-messages"
each_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=str)


def rows(table: dict[str, tuple[Any, ...]]) -> Any:
    return [pytest.param(*values, id=name) for name, values in table.items()]


def translate(parts: Iterable[bytes], source: str = NAME, target: str = NAME, **how: Any) -> tuple[bytes, list[str]]:
    translator = il.Translator(source, target, **how)
    out = b"".join([*map(translator.feed, parts), translator.close()])
    return out, [finding.kind for finding in translator.findings]


def shown(heard: Heard) -> list[Any]:
    """The blocks in the words of the scenarios."""
    told: list[Any] = []
    for block in heard.blocks:
        match block["type"]:
            case "text":
                told.append(block["text"])
            case "thinking":
                told.append((block["thinking"], block["signature"]))
            case "tool_use":
                told.append((block["id"], block["name"], block["input"]))
            case "redacted_thinking":
                told.append(block)
            case kind:
                told.append(kind)
    return told


# ── the same wire ─────────────────────────────────────────────────────────────────────────────────────────────────


@each_scenario
def test_scenario(scenario: Scenario) -> None:
    out, findings = translate([scenario.stream])
    heard = listen(out)
    assert shown(heard) == scenario.blocks, out.decode()
    assert (heard.stop or "") == scenario.stop
    assert scenario.error in (heard.error or ("", ""))[1]
    assert heard.done == (not scenario.error)
    assert findings == scenario.findings
    assert (out == scenario.stream) == scenario.untouched, out.decode()


@each_scenario
def test_however_it_is_cut(scenario: Scenario) -> None:
    stream = scenario.stream
    expected = translate([stream])
    for cut in [one_by_one(stream), *two_piece_cuts(stream, 60), *(pieces(stream, seed) for seed in range(5))]:
        assert translate(cut) == expected, cut


@each_scenario
def test_sdk(scenario: Scenario) -> None:
    out, _ = translate([scenario.stream])
    heard = listen(out)
    told = anthropic_client.accumulate(out)
    if heard.error:
        assert told.error == heard.error
    elif scenario.stop != "max_tokens":  # a call that was cut is read in another way by each client
        assert parsed(told) == parsed(heard)


# ── reader ────────────────────────────────────────────────────────────────────────────────────────────────────────


def plain(events: list[ev.Event]) -> list[Any]:
    """Findings by their kind: the words are for people."""
    return [event.kind if isinstance(event, ev.Finding) else event for event in events]


def told(usage: Json) -> ev.Usage:
    return ev.Usage(35, 15, 7, 0, usage, 3)


BEGUN = ev.Begin("msg_1", MODEL)
SEAL = ev.Seal(NAME, {"signature": "S"})
ALL_USAGE = {**USAGE, **END_USAGE}
THOUGHT = {**ALL_USAGE, "output_tokens_details": {"thinking_tokens": 9}}

STARTS: dict[str, tuple[Json, list[Any], bool]] = {
    "as it should be": (begin(), [BEGUN], True),
    "no id": (begin(id=None), [ev.Begin(None, MODEL)], False),
    "no usage": (begin(usage=None), [BEGUN], False),
    "usage without counts": (begin(usage={"input_tokens": None, "output_tokens": 1}), [BEGUN], False),
    "no content": (begin(content=None), [BEGUN], False),
    "content": (begin(content=[{"type": "text", "text": "a"}, 3]), [BEGUN, ev.TextDelta("a"), "bad-chunk"], False),
    "no message": ({"type": "message_start"}, [ev.Begin()], False),
}


@pytest.mark.parametrize(("given", "events", "exact"), rows(STARTS))
def test_message_start(given: Json, events: list[Any], exact: bool) -> None:
    read = Reader().read(given)
    assert [plain(one.events) for one in read.choices] == [events]
    assert read.exact == exact


BLOCKS: dict[str, tuple[list[Json], list[Any], bool]] = {
    "text": (text(0, "a", ""), [ev.TextDelta("a")], True),
    "text in the start": ([start(0, "text", text="a")], [ev.TextDelta("a")], False),
    "text that is none": ([start(0, "text", text=5)], ["bad-chunk"], False),
    "no text": ([start(0, "text")], [], False),
    "thinking": (thinking(0, "a", signature="S"), [ev.ReasoningDelta("a"), SEAL], True),
    "signature in the start": ([start(0, "thinking", thinking="", signature="S"), stop(0)], [SEAL], False),
    "signature twice": (
        [start(0, "thinking", thinking="", signature="R"), delta(0, "signature_delta", signature="S"), stop(0)],
        [SEAL],
        False,
    ),
    "signature that is empty": (
        [*thinking(0, "a")[:2], delta(0, "signature_delta", signature="")],
        [ev.ReasoningDelta("a")],
        True,
    ),
    "redacted": ([start(0, "redacted_thinking", data="D"), stop(0)], [ev.Seal(NAME, {"redacted": "D"})], True),
    "redacted, and nothing": ([start(0, "redacted_thinking"), stop(0)], [], False),
    "call": (
        call(0, "", '{"a"', ": 1}", " "),
        [ev.CallStart(0, "toolu_1", "f"), ev.ArgsDelta(0, '{"a"'), ev.ArgsDelta(0, ": 1}"), ev.CallEnd(0)],
        True,
    ),
    "call without arguments": (call(0), [ev.CallStart(0, "toolu_1", "f"), ev.ArgsDelta(0, "{}"), ev.CallEnd(0)], True),
    "call without an id": ([start(0, "tool_use", name="f", input={})], ["no-id", ev.CallStart(0, None, "f")], False),
    "call that says more": (
        [start(0, "tool_use", id="a", name="f", input={}, caller={"type": "direct"})],
        [ev.CallStart(0, "a", "f")],
        True,
    ),
    "arguments that are no text": (
        [CALL_F[0], *args(0, {"a": 1})],
        [ev.CallStart(0, "toolu_1", "f"), ev.ArgsDelta(0, '{"a":1}'), ev.CallEnd(0)],
        False,
    ),
    "arguments that are no JSON": (
        call(0, "Paris"),
        [ev.CallStart(0, "toolu_1", "f"), ev.ArgsDelta(0, "Paris"), "bad-arguments", ev.CallEnd(0)],
        False,
    ),
    "arguments without a call": (
        [*text(0, "a")[:2], *args(0, "{}")],
        [ev.TextDelta("a"), "stray-delta", "no-such-call"],
        False,
    ),
    "arguments of the wrong block": (
        [CALL_F[0], *args(5, "{}")],
        [ev.CallStart(0, "toolu_1", "f"), "stray-delta", ev.ArgsDelta(0, "{}"), ev.CallEnd(0)],
        False,
    ),
    "a block that is none": ([{"type": "content_block_start", "index": 0}], ["bad-chunk"], False),
    "a block nobody knows": ([start(0, "poem"), delta(0, "text_delta", text="a"), stop(0)], ["not-translated"], True),
    "a delta nobody knows, twice": (
        [start(0, "text", text=""), delta(0, "line", x=1), delta(0, "line", x=2)],
        ["not-translated"],
        True,
    ),
    "a delta that is none": (
        [start(0, "text", text=""), {"type": "content_block_delta", "index": 0}],
        ["bad-chunk"],
        False,
    ),
    "a stop of nothing": ([stop(0)], [], False),
    "a stop with the wrong index": ([*text(0, "a")[:2], stop(3)], [ev.TextDelta("a")], False),
    "the same index again": (
        [CALL_F[0], CALL_F[0]],
        [
            ev.CallStart(0, "toolu_1", "f"),
            "renumbered",
            "block-not-closed",
            ev.ArgsDelta(0, "{}"),
            ev.CallEnd(0),
            ev.CallStart(1, "toolu_1", "f"),
        ],
        False,
    ),
    "message_start again": ([begin()], ["bad-chunk"], False),
}


@pytest.mark.parametrize(("given", "events", "exact"), rows(BLOCKS))
def test_blocks(given: list[Json], events: list[Any], exact: bool) -> None:
    reader = Reader()
    reader.read(begin())
    read = [reader.read(chunk) for chunk in given]
    assert [event for chunk in read for one in chunk.choices for event in plain(one.events)] == events
    assert all(chunk.exact for chunk in read) == exact


ENDS: dict[str, tuple[Json, list[Any], list[Any], bool]] = {
    "end_turn": (end()[0], [ev.Stop("stop")], [told(ALL_USAGE)], True),
    "max_tokens": (end("max_tokens")[0], [ev.Stop("length")], [told(ALL_USAGE)], True),
    "stop_sequence": (end("stop_sequence", "x")[0], [ev.Stop("stop", "x")], [told(ALL_USAGE)], True),
    "pause_turn": (end("pause_turn")[0], [ev.Stop("stop", None, "pause_turn")], [told(ALL_USAGE)], True),
    "context": (
        end("model_context_window_exceeded")[0],
        [ev.Stop("length", None, "model_context_window_exceeded")],
        [told(ALL_USAGE)],
        True,
    ),
    "refusal": (
        end("refusal", stop_details={"explanation": "No."})[0],
        [ev.RefusalDelta("No."), ev.Stop("content_filter")],
        [told(ALL_USAGE)],
        True,
    ),
    "null": (end(None)[0], [], [], False),
    "of another wire": (end("length")[0], ["unknown-finish-reason", ev.Stop("length")], [told(ALL_USAGE)], False),
    "odd": (end(["x"])[0], ["unknown-finish-reason", ev.Stop("stop")], [told(ALL_USAGE)], False),
    "no usage": (end(usage=None)[0], [ev.Stop("stop")], [ev.Usage(35, 1, 7, 0, USAGE, 3)], False),
    "usage in detail": (
        end(usage=THOUGHT)[0],
        [ev.Stop("stop")],
        [ev.Usage(35, 15, 7, 9, THOUGHT, 3)],
        True,
    ),
}


@pytest.mark.parametrize(("given", "events", "common", "exact"), rows(ENDS))
def test_message_delta(given: Json, events: list[Any], common: list[Any], exact: bool) -> None:
    reader = Reader()
    reader.read(begin())
    read = reader.read(given)
    assert [plain(one.events) for one in read.choices] == [events]
    assert (read.common, read.exact) == (common, exact)
    assert reader.read({"type": "message_stop"}).last


def test_usage_again_is_told_again() -> None:
    reader = Reader()
    for chunk in (begin(), *end()):
        reader.read(chunk)
    read = reader.read(end(usage={"output_tokens": 99})[0])
    assert ([one.events for one in read.choices], read.exact) == ([[]], True)
    assert [event.output for event in read.common if isinstance(event, ev.Usage)] == [99]


OTHERS: dict[str, tuple[Json, list[Any], bool]] = {
    "ping": ({"type": "ping"}, [], True),
    "unknown": ({"type": "news"}, ["not-translated"], True),
    "no type": ({"x": 1}, ["bad-chunk"], False),
    "error": (BOOM, [ev.Failure("boom", "overloaded_error", None, BOOM)], False),
    "error with a code": (
        {"error": {"message": "boom", "code": 529}},
        [
            ev.Failure(
                "boom",
                "api_error",
                529,
                {"type": "error", "error": {"message": "boom", "code": 529, "type": "api_error"}},
            )
        ],
        False,
    ),
    "error that says nothing": (
        {"type": "error"},
        [
            ev.Failure(
                "the upstream failed",
                native={"type": "error", "error": {"message": "the upstream failed", "type": "api_error"}},
            )
        ],
        False,
    ),
}


@pytest.mark.parametrize(("given", "common", "exact"), rows(OTHERS))
def test_other_chunks(given: Json, common: list[Any], exact: bool) -> None:
    read = Reader().read(given)
    assert (read.choices, plain(read.common), read.exact) == ([], common, exact)


# ── arguments sent twice ──────────────────────────────────────────────────────────────────────────────────────────

BOTH: dict[str, tuple[Any, str, str, list[str]]] = {
    # the start's input, the deltas, the arguments, findings
    "start only": ({"a": 1}, "", '{"a":1}', []),
    "deltas only": (None, '{"a": 1}', '{"a": 1}', []),
    "null and deltas": ("null", '{"a": 1}', '{"a": 1}', []),
    "the same twice": ({"a": 1}, '{"a": 1}', '{"a": 1}', []),
    "a continuation": ({"a": 1}, ',"b": 2}', '{"a":1,"b": 2}', []),
    "{} and deltas": ({}, '{"a": 1}', '{"a": 1}', []),
    "neither": ({}, "", "{}", []),
    "start, and {} in the deltas": ({"a": 1}, "{}", '{"a":1}', []),
    "start, and null in the deltas": ({"a": 1}, " null", '{"a":1}', []),
    "other deltas win": ({"a": 1}, ' {"b": [2, {}]}', '{"b": [2, {}]}', []),
    "a long continuation": ({"a": {"b": []}}, ' , "c": {"d": "}"}}', '{"a":{"b":[]}, "c": {"d": "}"}}', []),
    "a continuation without its comma": ({"a": 1}, '"b": 2}', '{"a":1,"b": 2}', []),
    "a continuation that only closes": ({"a": 1}, "}", '{"a":1}', []),
    "the start as a string": ('{"a": 1}', "", '{"a": 1}', []),
    "deltas that break off": ({"a": 1}, '{"a": ', '{"a":1}', ["odd-deltas"]),
    "deltas that are no JSON": ({"a": 1}, "Paris", '{"a":1}', ["odd-deltas"]),
    "a bad continuation": ({"a": 1}, ", b}", '{"a":1}', ["odd-deltas"]),
    "more behind a continuation": ({"a": 1}, ',"b": 2}}', '{"a":1,"b": 2}', ["after-arguments"]),
}


def two_sources(input: Any, deltas: Iterable[str]) -> bytes:
    given = {"input": None if input == "null" else input} if input is not None else {}
    block = [start(0, "tool_use", id="toolu_1", name="f", **given), *args(0, *deltas), stop(0)]
    return sse(begin(), *block, *end("tool_use"))


@pytest.mark.parametrize(("input", "deltas", "arguments", "findings"), rows(BOTH))
def test_arguments_sent_twice(input: Any, deltas: str, arguments: str, findings: list[str]) -> None:
    cuts = [[deltas] if deltas else [], list(deltas), ["", *one_by_one(deltas), ""]]
    for cut in [*cuts, *([deltas[:at], deltas[at:]] for at in range(1, len(deltas)))]:
        for target in (NAME, "openai-chat"):
            out, found = translate([two_sources(input, cut)], target=target)
            calls = listen(out).calls if target == NAME else sdk.listen(out).choices[0].calls
            assert [(id, name, args or "{}") for id, name, args in calls] == [("toolu_1", "f", arguments)], cut
            assert found == findings, cut


@pytest.mark.parametrize("input", [None, {}, "null"])
def test_deltas_are_not_delayed(input: Any) -> None:
    translator = il.Translator(NAME, "openai-chat")
    events = [(name, data) for name, data in anthropic_client.events(two_sources(input, ["", '{"a', '": 1', "}"]))]
    sent = [translator.feed(sse(data)) for _, data in events]
    assert [b'"arguments":"{\\"a"' in sent[3], b'\\": 1' in sent[4]] == [True, True]


def test_a_continuation_that_breaks_off_is_a_call_that_was_cut() -> None:
    block = [start(0, "tool_use", id="toolu_1", name="f", input={"a": 1}), *args(0, ',"b": "x'), stop(0)]
    out, found = translate([sse(begin(), *block, *end("max_tokens"))])
    assert listen(out).calls == [("toolu_1", "f", '{"a":1,"b": "x')]
    assert found == ["cut-short"]


def test_what_waits_is_limited() -> None:
    options = il.Options(limits=il.Limits(held=30))
    long = '{"a": "' + "x" * 50 + '"}'
    out, _ = translate([two_sources({"a": 1}, [long[:20], long[20:40], long[40:]])], options=options)
    assert listen(out).calls == [("toolu_1", "f", long)]
