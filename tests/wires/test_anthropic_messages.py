"""Anthropic Messages wire: reader, emitter, and translation of streams and complete messages to and from it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

import interlingua as il
from interlingua import events as ev
from interlingua.core import reasoning_signatures as seals
from interlingua.core.reply import Reasoning
from interlingua.wires.anthropic_messages.emitter import MessagesEmitter
from interlingua.wires.anthropic_messages.event_reader import MessagesReader
from interlingua.wires.safe_ids import decode_id
from tests.support import anthropic_client, sdk
from tests.support.anthropic_client import MessageView, check_args, comparable, read_strict
from tests.support.anthropic_scenarios import (
    CALL_F,
    END_USAGE,
    ERROR_EVENT,
    MODEL,
    SCENARIOS,
    USAGE,
    WELL_FORMED,
    MessagesScenario,
    argument_deltas,
    block_delta,
    block_start,
    block_stop,
    message_end,
    message_start,
    sse,
    text_block,
    thinking_block,
    tool_use_block,
)
from tests.support.chat_scenarios import KIMI, SECTION_OF_PARIS
from tests.support.chat_scenarios import SCENARIOS as CHAT_SCENARIOS
from tests.support.chat_scenarios import ChatScenario as ChatScenario
from tests.support.cuts import random_pieces, single_units, two_piece_cuts
from tests.support.sdk import Json
from tests.translation.test_translate_reply import heard as view_of_chat_body
from tests.translation.test_translate_reply import whole as whole_of_chat

NAME = "anthropic-messages"
each_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=str)


def rows(table: dict[str, tuple[Any, ...]]) -> Any:
    return [pytest.param(*values, id=name) for name, values in table.items()]


def translate(
    parts: Iterable[bytes], source: str = NAME, target: str = NAME, **settings: Any
) -> tuple[bytes, list[str]]:
    translator = il.Translator(source, target, **settings)
    out = b"".join([*map(translator.feed, parts), translator.close()])
    return out, [finding.kind for finding in translator.findings]


def scenario_blocks(view: MessageView) -> list[Any]:
    """Return the blocks in the form that the scenarios use."""
    blocks: list[Any] = []
    for block in view.blocks:
        match block["type"]:
            case "text":
                blocks.append(block["text"])
            case "thinking":
                blocks.append((block["thinking"], block["signature"]))
            case "tool_use":
                blocks.append((block["id"], block["name"], block["input"]))
            case "redacted_thinking":
                blocks.append(block)
            case kind:
                blocks.append(kind)
    return blocks


# ── same wire ─────────────────────────────────────────────────────────────────────────────────────────────────────


@each_scenario
def test_same_wire_stream(scenario: MessagesScenario) -> None:
    out, findings = translate([scenario.stream])
    view = read_strict(out)
    assert scenario_blocks(view) == scenario.blocks, out.decode()
    assert (view.stop or "") == scenario.stop
    check_args(view)
    assert scenario.error in (view.error or ("", ""))[1]
    assert view.done == (not scenario.error)
    assert findings == scenario.findings
    assert (out == scenario.stream) == scenario.untouched, out.decode()


@pytest.mark.one_row_in(4)
@each_scenario
def test_same_wire_stream_is_independent_of_cuts(scenario: MessagesScenario) -> None:
    stream = scenario.stream
    expected = translate([stream])
    for cut in [single_units(stream), *two_piece_cuts(stream, 60), *(random_pieces(stream, seed) for seed in range(5))]:
        assert translate(cut) == expected, cut


@each_scenario
def test_same_wire_stream_in_sdk(scenario: MessagesScenario) -> None:
    out, _ = translate([scenario.stream])
    view = read_strict(out)
    sdk_view = anthropic_client.accumulate(out)
    if view.error:
        assert sdk_view.error == view.error
    elif scenario.stop != "max_tokens":  # clients differ in how they read a truncated call
        assert comparable(sdk_view) == comparable(view)


# ── reader ────────────────────────────────────────────────────────────────────────────────────────────────────────


def plain(events: list[ev.Event]) -> list[Any]:
    """Replace each finding by its kind, so that tests do not depend on messages."""
    return [event.kind if isinstance(event, ev.Finding) else event for event in events]


def usage_event(usage: Json) -> ev.Usage:
    return ev.Usage(35, 15, 7, 0, usage, 3)


BEGUN = ev.Begin("msg_1", MODEL)
SEAL = ev.Seal(NAME, {"signature": "S"})
ALL_USAGE = {**USAGE, **END_USAGE}
THOUGHT = {**ALL_USAGE, "output_tokens_details": {"thinking_tokens": 9}}

STARTS: dict[str, tuple[Json, list[Any], bool]] = {
    "well-formed": (message_start(), [BEGUN], True),
    "no id": (message_start(id=None), [ev.Begin(None, MODEL)], False),
    "no usage": (message_start(usage=None), [BEGUN], False),
    "usage without counts": (message_start(usage={"input_tokens": None, "output_tokens": 1}), [BEGUN], False),
    "no content": (message_start(content=None), [BEGUN], False),
    "content": (
        message_start(content=[{"type": "text", "text": "a"}, 3]),
        [BEGUN, ev.TextDelta("a"), "bad-chunk"],
        False,
    ),
    "no message": ({"type": "message_start"}, [ev.Begin()], False),
}


@pytest.mark.parametrize(("chunk", "events", "exact"), rows(STARTS))
def test_read_message_start(chunk: Json, events: list[Any], exact: bool) -> None:
    read = MessagesReader().read(chunk)
    assert [plain(choice.events) for choice in read.choices] == [events]
    assert read.exact == exact


BLOCKS: dict[str, tuple[list[Json], list[Any], bool]] = {
    "text": (text_block(0, "a", ""), [ev.TextDelta("a")], True),
    "text in the start": ([block_start(0, "text", text="a")], [ev.TextDelta("a")], False),
    "text that is not a string": ([block_start(0, "text", text=5)], ["bad-chunk"], False),
    "no text": ([block_start(0, "text")], [], False),
    "thinking": (thinking_block(0, "a", signature="S"), [ev.ReasoningDelta("a"), SEAL], True),
    "signature in the start": ([block_start(0, "thinking", thinking="", signature="S"), block_stop(0)], [SEAL], False),
    "signature twice": (
        [
            block_start(0, "thinking", thinking="", signature="R"),
            block_delta(0, "signature_delta", signature="S"),
            block_stop(0),
        ],
        [SEAL],
        False,
    ),
    "signature twice, in deltas": (
        [*thinking_block(0, "a", signature="S")[:3], block_delta(0, "signature_delta", signature="T"), block_stop(0)],
        [ev.ReasoningDelta("a"), SEAL, "repeated-signature"],
        False,
    ),
    "no index": (
        [block_start(None, "text", text=""), block_delta(None, "text_delta", text="a"), block_stop(None)],
        ["no-index", "stray-delta", ev.TextDelta("a")],
        False,
    ),
    "empty signature": (
        [*thinking_block(0, "a")[:2], block_delta(0, "signature_delta", signature="")],
        [ev.ReasoningDelta("a")],
        True,
    ),
    "redacted": (
        [block_start(0, "redacted_thinking", data="D"), block_stop(0)],
        [ev.Seal(NAME, {"redacted": "D"})],
        True,
    ),
    "redacted without data": ([block_start(0, "redacted_thinking"), block_stop(0)], [], False),
    "call": (
        tool_use_block(0, "", '{"a"', ": 1}", " "),
        [ev.CallStart(0, "toolu_1", "f"), ev.ArgsDelta(0, '{"a"'), ev.ArgsDelta(0, ": 1}"), ev.CallEnd(0)],
        True,
    ),
    "call without arguments": (
        [*tool_use_block(0), block_start(1, "text", text="")],
        [ev.CallStart(0, "toolu_1", "f"), ev.ArgsDelta(0, "{}"), ev.CallEnd(0)],
        True,
    ),
    "call without arguments, which may be truncated": (tool_use_block(0), [ev.CallStart(0, "toolu_1", "f")], True),
    "call without an id": (
        [block_start(0, "tool_use", name="f", input={})],
        ["no-id", ev.CallStart(0, None, "f")],
        False,
    ),
    "call with extra fields": (
        [block_start(0, "tool_use", id="a", name="f", input={}, caller={"type": "direct"})],
        [ev.CallStart(0, "a", "f")],
        True,
    ),
    "arguments that are not a string": (
        [CALL_F[0], *argument_deltas(0, {"a": 1})],
        [ev.CallStart(0, "toolu_1", "f"), ev.ArgsDelta(0, '{"a":1}'), ev.CallEnd(0)],
        False,
    ),
    "arguments that are not JSON": (
        tool_use_block(0, "Paris"),
        [ev.CallStart(0, "toolu_1", "f"), ev.ArgsDelta(0, "Paris"), "bad-arguments", ev.CallEnd(0)],
        False,
    ),
    "arguments without a call": (
        [*text_block(0, "a")[:2], *argument_deltas(0, "{}")],
        [ev.TextDelta("a"), "stray-delta", "no-such-call"],
        False,
    ),
    "arguments of the wrong block": (
        [CALL_F[0], *argument_deltas(5, "{}")],
        [ev.CallStart(0, "toolu_1", "f"), "stray-delta", ev.ArgsDelta(0, "{}"), ev.CallEnd(0)],
        False,
    ),
    "a block that is missing": ([{"type": "content_block_start", "index": 0}], ["bad-chunk"], False),
    "a block of unknown type": (
        [block_start(0, "poem"), block_delta(0, "text_delta", text="a"), block_stop(0)],
        ["not-translated"],
        True,
    ),
    "a delta of unknown type, twice": (
        [block_start(0, "text", text=""), block_delta(0, "line", x=1), block_delta(0, "line", x=2)],
        ["not-translated"],
        True,
    ),
    "a delta that is missing": (
        [block_start(0, "text", text=""), {"type": "content_block_delta", "index": 0}],
        ["bad-chunk"],
        False,
    ),
    "a stop without a block": ([block_stop(0)], [], False),
    "a stop with the wrong index": ([*text_block(0, "a")[:2], block_stop(3)], [ev.TextDelta("a")], False),
    "repeated index": (
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
    "repeated message_start": ([message_start()], ["bad-chunk"], False),
}


@pytest.mark.parametrize(("chunks", "events", "exact"), rows(BLOCKS))
def test_read_blocks(chunks: list[Json], events: list[Any], exact: bool) -> None:
    reader = MessagesReader()
    reader.read(message_start())
    read = [reader.read(chunk) for chunk in chunks]
    assert [event for chunk in read for choice in chunk.choices for event in plain(choice.events)] == events
    assert all(chunk.exact for chunk in read) == exact


ENDS: dict[str, tuple[Json, list[Any], list[Any], bool]] = {
    "end_turn": (message_end()[0], [ev.Stop("stop")], [usage_event(ALL_USAGE)], True),
    "max_tokens": (message_end("max_tokens")[0], [ev.Stop("length")], [usage_event(ALL_USAGE)], True),
    "stop_sequence": (message_end("stop_sequence", "x")[0], [ev.Stop("stop", "x")], [usage_event(ALL_USAGE)], True),
    "pause_turn": (message_end("pause_turn")[0], [ev.Stop("stop", None, "pause_turn")], [usage_event(ALL_USAGE)], True),
    "context": (
        message_end("model_context_window_exceeded")[0],
        [ev.Stop("length", None, "model_context_window_exceeded")],
        [usage_event(ALL_USAGE)],
        True,
    ),
    "refusal": (
        message_end("refusal", stop_details={"explanation": "No."})[0],
        [ev.RefusalDelta("No."), ev.Stop("content_filter")],
        [usage_event(ALL_USAGE)],
        True,
    ),
    "null": (message_end(None)[0], [], [], False),
    "of another wire": (
        message_end("length")[0],
        ["unknown-finish-reason", ev.Stop("length")],
        [usage_event(ALL_USAGE)],
        False,
    ),
    "not a string": (
        message_end(["x"])[0],
        ["unknown-finish-reason", ev.Stop("stop")],
        [usage_event(ALL_USAGE)],
        False,
    ),
    "no usage": (message_end(usage=None)[0], [ev.Stop("stop")], [ev.Usage(35, 1, 7, 0, USAGE, 3)], False),
    "usage in detail": (
        message_end(usage=THOUGHT)[0],
        [ev.Stop("stop")],
        [ev.Usage(35, 15, 7, 9, THOUGHT, 3)],
        True,
    ),
}


@pytest.mark.parametrize(("chunk", "events", "common", "exact"), rows(ENDS))
def test_read_message_delta(chunk: Json, events: list[Any], common: list[Any], exact: bool) -> None:
    reader = MessagesReader()
    reader.read(message_start())
    read = reader.read(chunk)
    assert [plain(choice.events) for choice in read.choices] == [events]
    assert (read.common, read.exact) == (common, exact)
    assert reader.read({"type": "message_stop"}).last


def test_repeated_usage_is_reported_again() -> None:
    reader = MessagesReader()
    for chunk in (message_start(), *message_end()):
        reader.read(chunk)
    read = reader.read(message_end(usage={"output_tokens": 99})[0])
    assert ([choice.events for choice in read.choices], read.exact) == ([[]], True)
    assert [event.output for event in read.common if isinstance(event, ev.Usage)] == [99]


OTHERS: dict[str, tuple[Json, list[Any], bool]] = {
    "ping": ({"type": "ping"}, [], True),
    "unknown": ({"type": "news"}, ["not-translated"], True),
    "no type": ({"x": 1}, ["bad-chunk"], False),
    "error": (ERROR_EVENT, [ev.Failure("boom", "overloaded_error", None, ERROR_EVENT)], False),
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
    "error without a message": (
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


@pytest.mark.parametrize(("chunk", "common", "exact"), rows(OTHERS))
def test_read_other_chunks(chunk: Json, common: list[Any], exact: bool) -> None:
    read = MessagesReader().read(chunk)
    assert (read.choices, plain(read.common), read.exact) == ([], common, exact)


# ── arguments sent twice ──────────────────────────────────────────────────────────────────────────────────────────

MERGED_ARGUMENTS: dict[str, tuple[Any, str, str, list[str]]] = {
    # input in the start, deltas, merged arguments, findings
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
    "start as a string": ('{"a": 1}', "", '{"a": 1}', []),
    "truncated deltas": ({"a": 1}, '{"a": ', '{"a":1}', ["odd-deltas"]),
    "deltas that are not JSON": ({"a": 1}, "Paris", '{"a":1}', ["odd-deltas"]),
    "a bad continuation": ({"a": 1}, ", b}", '{"a":1}', ["odd-deltas"]),
    "more text after a continuation": ({"a": 1}, ',"b": 2}}', '{"a":1,"b": 2}', ["after-arguments"]),
}


def stream_with_arguments(input: Any, deltas: Iterable[str]) -> bytes:
    fields = {"input": None if input == "null" else input} if input is not None else {}
    block = [block_start(0, "tool_use", id="toolu_1", name="f", **fields), *argument_deltas(0, *deltas), block_stop(0)]
    return sse(message_start(), *block, *message_end("tool_use"))


@pytest.mark.parametrize(("input", "deltas", "arguments", "findings"), rows(MERGED_ARGUMENTS))
def test_arguments_in_start_and_deltas_are_merged(input: Any, deltas: str, arguments: str, findings: list[str]) -> None:
    cuts = [[deltas] if deltas else [], list(deltas), ["", *single_units(deltas), ""]]
    for cut in [*cuts, *([deltas[:at], deltas[at:]] for at in range(1, len(deltas)))]:
        for target in (NAME, "openai-chat"):
            out, finding_kinds = translate([stream_with_arguments(input, cut)], target=target)
            calls = read_strict(out).calls if target == NAME else sdk.read_strict(out).choices[0].calls
            assert [(id, name, args or "{}") for id, name, args in calls] == [("toolu_1", "f", arguments)], cut
            assert finding_kinds == findings, cut


@pytest.mark.parametrize("input", [None, {}, "null"])
def test_argument_deltas_are_not_delayed(input: Any) -> None:
    translator = il.Translator(NAME, "openai-chat")
    events = [
        (name, data) for name, data in anthropic_client.events(stream_with_arguments(input, ["", '{"a', '": 1', "}"]))
    ]
    sent = [translator.feed(sse(data)) for _, data in events]
    assert [b'"arguments":"{\\"a"' in sent[3], b'\\": 1' in sent[4]] == [True, True]


def test_truncated_continuation_is_a_truncated_call() -> None:
    block = [
        block_start(0, "tool_use", id="toolu_1", name="f", input={"a": 1}),
        *argument_deltas(0, ',"b": "x'),
        block_stop(0),
    ]
    out, finding_kinds = translate([sse(message_start(), *block, *message_end("max_tokens"))])
    assert read_strict(out).calls == [("toolu_1", "f", '{"a":1,"b": "x')]
    assert finding_kinds == ["cut-short"]


def test_buffered_arguments_are_limited() -> None:
    options = il.Options(limits=il.Limits(held=30))
    long = '{"a": "' + "x" * 50 + '"}'
    out, _ = translate([stream_with_arguments({"a": 1}, [long[:20], long[20:40], long[40:]])], options=options)
    assert read_strict(out).calls == [("toolu_1", "f", long)]


# ── from chat completions ─────────────────────────────────────────────────────────────────────────────────────────

CHAT = "openai-chat"
CHAT_REPLIES = [
    scenario
    for scenario in CHAT_SCENARIOS
    if 0 in scenario.expected and not (scenario.error and len(scenario.expected) > 1)
]
each_chat_scenario = pytest.mark.parametrize("scenario", CHAT_REPLIES, ids=str)
STOPS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}


def from_chat(scenario: ChatScenario, parts: Iterable[bytes]) -> tuple[bytes, list[str]]:
    return translate(parts, CHAT, tools=scenario.tools, options=scenario.options)


@each_chat_scenario
def test_stream_from_chat(scenario: ChatScenario) -> None:
    out, findings = from_chat(scenario, [scenario.stream])
    view, expected = read_strict(out), scenario.expected[0]
    assert view.text == expected.text + expected.refusal
    assert view.thinking == expected.reasoning
    assert [(decode_id(id), name, args) for id, name, args in view.calls] == [
        as_input(*call) for call in expected.calls
    ]
    assert set(scenario.findings) - {"bad-json"} <= {*findings, "choice-dropped"}
    if scenario.error:
        assert scenario.error in (view.error or ("", ""))[1]
    elif not expected.refusal:
        assert view.stop == STOPS[expected.finish or ""]
    assert view.done != bool(view.error)
    for block in view.blocks:
        if block["type"] == "thinking" and not view.error:
            opened = seals.read_envelope(block["signature"], b"")
            assert opened is not None
            assert (opened.text, opened.seal and opened.seal.wire) == (block["thinking"], CHAT)


def as_input(id: str, name: str, args: str) -> tuple[str, str, str]:
    """Return a call as clients receive it: arguments that are not JSON are wrapped in an object."""
    invalid = args and args.lstrip()[0] not in "{["
    return id, name, json.dumps({"INVALID_JSON": args}, separators=(",", ":")) if invalid else args


@pytest.mark.one_row_in(4)
@each_chat_scenario
@pytest.mark.parametrize("limit", [8, pytest.param(40, marks=pytest.mark.slow)])
def test_stream_from_chat_is_independent_of_cuts(scenario: ChatScenario, limit: int) -> None:
    stream = scenario.stream
    expected = read_strict(from_chat(scenario, [stream])[0])
    for cut in [single_units(stream), *two_piece_cuts(stream, limit)]:
        assert read_strict(from_chat(scenario, cut)[0]) == expected, cut


@each_chat_scenario
def test_stream_from_chat_in_sdk(scenario: ChatScenario) -> None:
    out, _ = from_chat(scenario, [scenario.stream])
    view = read_strict(out)
    sdk_view = anthropic_client.accumulate(out)
    if view.error:
        assert sdk_view.error == view.error
    elif view.stop != "max_tokens":
        assert comparable(sdk_view) == comparable(view)


# ── to chat completions ───────────────────────────────────────────────────────────────────────────────────────────


@each_scenario
def test_stream_to_chat(scenario: MessagesScenario) -> None:
    out, _ = translate([scenario.stream], target=CHAT)
    view = sdk.read_strict(out)
    assert sdk.iterate(out) == view
    same = read_strict(translate([scenario.stream])[0])
    if scenario.error:
        assert scenario.error in (view.error or "")
        return
    choice = view.choices[0]
    assert choice.text == same.text
    assert choice.reasoning == same.thinking
    assert [(id, name) for id, name, _ in choice.calls] == [(decode_id(id), name) for id, name, _ in same.calls]
    expected = [args or "{}" for _, _, args in same.calls]
    if "cut-short" in scenario.findings:
        expected[-1] = same.calls[-1][2]
    assert [args for _, _, args in choice.calls] == expected
    finish_reasons = {
        **{stop_reason: finish for finish, stop_reason in STOPS.items()},
        "stop_sequence": "stop",
        "pause_turn": "stop",
    }
    assert choice.finish == finish_reasons[same.stop or ""]


# ── complete messages ─────────────────────────────────────────────────────────────────────────────────────────────


def message(*content: Json, reason: Any = "end_turn", model: str = MODEL, **extra: Any) -> Json:
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": list(content)}
    return {**head, "stop_reason": reason, "stop_sequence": None, "usage": ALL_USAGE, **extra}


def complete_message(stream: bytes) -> Json:
    """Return the complete message that the upstream would have sent instead of this stream."""
    view = read_strict(stream)
    content = [{key: value for key, value in block.items() if key != "deltas"} for block in view.blocks]
    for block in content:
        if block["type"] == "tool_use":
            block["input"] = json.loads(block["input"] or "{}")
    ends = [data["delta"] for name, data in anthropic_client.events(stream) if name == "message_delta"]
    return message(*content, **ends[-1], usage=view.usage)


WHOLE = [scenario for scenario in WELL_FORMED if "cut-short" not in scenario.findings]
each_whole = pytest.mark.parametrize("scenario", WHOLE, ids=str)


@each_whole
def test_complete_message_is_forwarded_unchanged(scenario: MessagesScenario) -> None:
    body = complete_message(scenario.stream)
    assert il.translate_reply(body, NAME, NAME) == body


@each_whole
def test_stream_equals_complete_message_to_chat(scenario: MessagesScenario) -> None:
    streamed = sdk.read_strict(translate([scenario.stream], target=CHAT)[0])
    complete = view_of_chat_body(il.translate_reply(complete_message(scenario.stream), NAME, CHAT))
    for choice in (*streamed.choices.values(), *complete.choices.values()):
        choice.calls = [(id, name, json.loads(args)) for id, name, args in choice.calls]
    assert complete.choices == streamed.choices
    assert complete.usage == streamed.usage


@pytest.mark.parametrize(
    "scenario", [scenario for scenario in CHAT_REPLIES if scenario.has_body and not scenario.error], ids=str
)
def test_stream_equals_complete_message_from_chat(scenario: ChatScenario) -> None:
    streamed = read_strict(from_chat(scenario, [scenario.stream])[0])
    body = whole_of_chat(scenario.stream)
    translated = il.translate_reply(body, CHAT, NAME, tools=scenario.tools, options=scenario.options)
    complete = anthropic_client.view_of_message(translated, done=True)
    if any("INVALID_JSON" in str(block.get("input")) for block in complete.blocks):
        return  # clients differ in how they read this from a stream
    for reply in (streamed, complete):  # a body has its thinking in one field and its text in another
        reply.blocks.sort(key=lambda block: ["thinking", "redacted_thinking", "text", "tool_use"].index(block["type"]))
    assert (complete.text, complete.thinking) == (streamed.text, streamed.thinking)
    calls = [[(id, name, json.loads(args or "{}")) for id, name, args in reply.calls] for reply in (complete, streamed)]
    assert calls[0] == calls[1]
    assert (complete.stop, complete.id, complete.model) == (streamed.stop, streamed.id, streamed.model)


SEARCHED = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
CITED = {"type": "text", "text": "So.", "citations": [{"type": "web_search_result_location", "url": "u"}]}
USE = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}
PARIS = {
    "type": "tool_use",
    "id": "il-functions_2eget_5fweather_3a0",
    "name": "get_weather",
    "input": {"city": "Paris"},
}

REPAIRED: dict[str, tuple[Json, Json]] = {
    "stop reason": (
        message({"type": "text", "text": "a"}, SEARCHED, CITED, {**USE, "caller": {"type": "direct"}}),
        message({"type": "text", "text": "aSo."}, SEARCHED, {**USE, "caller": {"type": "direct"}}, reason="tool_use"),
    ),
    "stop reason, with unchanged text": (
        message(CITED, SEARCHED, USE),
        message(CITED, SEARCHED, USE, reason="tool_use"),
    ),
    "id": (
        message({**USE, "id": "a.b"}, reason="tool_use"),
        message({**USE, "id": "il-a_2eb"}, reason="tool_use"),
    ),
    "input as a string": (
        message({**USE, "input": '{"a": 1}'}, reason="tool_use"),
        message(USE, reason="tool_use"),
    ),
    "input null": (
        message({**USE, "input": None}, reason="tool_use"),
        message({**USE, "input": {}}, reason="tool_use"),
    ),
    "native text": (
        message({"type": "text", "text": f"Look:{SECTION_OF_PARIS}"}, model=KIMI),
        message({"type": "text", "text": "Look:"}, PARIS, reason="tool_use", model=KIMI),
    ),
    "no stop reason": (message(USE, reason=None), message(USE, reason="tool_use")),
    "no usage": (
        message(usage=None),
        message(
            {"type": "text", "text": ""},
            usage={
                "input_tokens": 0,
                "output_tokens": 0,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
            },
        ),
    ),
}


@pytest.mark.parametrize(("body", "expected"), rows(REPAIRED))
def test_malformed_message_is_repaired(body: Json, expected: Json) -> None:
    assert il.translate_reply(body, NAME, NAME) == expected


UNCHANGED: dict[str, tuple[Json]] = {
    "an error": (ERROR_EVENT,),
    "another object": ({"id": "x"},),
    "empty": (message(),),
}


@pytest.mark.parametrize("body", rows(UNCHANGED))
def test_other_bodies_are_forwarded_unchanged(body: Json) -> None:
    assert il.translate_reply(body, NAME, NAME) == body


def test_lone_surrogates_and_invalid_blocks_are_dropped() -> None:
    choice = {"message": {"content": "a\ud83d", "reasoning_content": "b\ud83d"}, "finish_reason": "stop"}
    translated = il.translate_reply({"choices": [choice]}, CHAT, NAME)
    assert [block.get("text") or block["thinking"] for block in translated["content"]] == ["b", "a"]
    odd = message(USE, reason="tool_use")
    odd["content"].append("x")
    assert il.translate_reply(odd, NAME, NAME) == message(USE, reason="tool_use")


def test_errors_in_complete_replies() -> None:
    assert il.translate_reply(ERROR_EVENT, NAME, CHAT)["error"]["message"] == "boom"
    translated = il.translate_reply({"error": {"message": "slow", "code": 429}}, CHAT, NAME)
    assert translated == {"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}
    assert (
        il.translate_reply({"id": "x"}, NAME, CHAT)["error"]["message"] == "the upstream's response has no reply in it"
    )


# ── emitted frames ────────────────────────────────────────────────────────────────────────────────────────────────


def emit_frames(*events: ev.Event, common: list[ev.Event] | None = None, **options: Any) -> list[Json]:
    emitter = MessagesEmitter(il.Options(**options))
    out = emitter.emit([(0, list(events))], common or []) + emitter.finish()
    read_strict(out)
    return [data for _, data in anthropic_client.events(out)]


def test_emitted_message_frame_by_frame() -> None:
    events: list[ev.Event] = [
        ev.Begin("chatcmpl-1", "kimi"),
        ev.ReasoningDelta("Hm."),
        ev.TextDelta("a"),
        ev.CallStart(0, "functions.f:0", "f", {"function": {"x": 1}}),
        ev.ArgsDelta(0, "{}"),
        ev.CallEnd(0),
        ev.Stop("tool_calls"),
    ]
    usage: list[ev.Event] = [ev.Usage(30, 9, 10, 4, {"prompt_tokens": 30}, 5)]
    frames = emit_frames(*events, served_as="claude", input_tokens=7, seal_key=b"k")
    sealed = seals.write_envelope(Reasoning("Hm."), CHAT, b"k")
    counts = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    head = {"id": "msg_chatcmpl-1", "role": "assistant", "type": "message", "model": "claude"}
    empty: Json = {"content": [], "stop_reason": None, "stop_sequence": None}
    assert frames == [
        {
            "type": "message_start",
            "message": {**head, **empty, "usage": {"input_tokens": 7, "output_tokens": 0, **counts}},
        },
        *thinking_block(0, "Hm.", signature=sealed),
        *text_block(1, "a"),
        *tool_use_block(2, "{}", id="il-functions_2ef_3a0"),
        *message_end("tool_use", usage={"input_tokens": 7, "output_tokens": 0, **counts}),
    ]
    counts = {"cache_creation_input_tokens": 5, "cache_read_input_tokens": 10}
    expected_usage = {"input_tokens": 15, "output_tokens": 9, **counts, "output_tokens_details": {"thinking_tokens": 4}}
    assert emit_frames(*events, common=usage)[0]["message"]["usage"] == expected_usage
    assert emit_frames(*events, common=usage)[-2]["usage"] == expected_usage


EMITTED: dict[str, tuple[list[ev.Event], list[Json], list[Any]]] = {
    "nothing": ([], text_block(0), ["end_turn", None]),
    "empty text after a call": (
        [ev.CallStart(0, "a", "f"), ev.CallEnd(0), ev.TextDelta(""), ev.Stop("tool_calls")],
        tool_use_block(0, id="a"),
        ["tool_use", None],
    ),
    "refusal": ([ev.RefusalDelta("No."), ev.Stop("stop")], text_block(0, "No."), ["refusal", None]),
    "filtered": ([ev.TextDelta("a"), ev.Stop("content_filter")], text_block(0, "a"), ["refusal", None]),
    "stop sequence": ([ev.TextDelta("a"), ev.Stop("stop", "x")], text_block(0, "a"), ["stop_sequence", "x"]),
    "native stop reason": (
        [ev.TextDelta("a"), ev.Stop("stop", None, "pause_turn")],
        text_block(0, "a"),
        ["pause_turn", None],
    ),
    "stop reason of another wire": (
        [ev.TextDelta("a"), ev.Stop("stop", None, "eos")],
        text_block(0, "a"),
        ["end_turn", None],
    ),
    "truncated": (
        [ev.CallStart(0, "a", "f"), ev.ArgsDelta(0, '{"a'), ev.CallEnd(0, complete=False), ev.Stop("length")],
        tool_use_block(0, '{"a', id="a"),
        ["max_tokens", None],
    ),
    "not JSON": (
        [
            ev.CallStart(0, "a", "f"),
            ev.ArgsDelta(0, "Par"),
            ev.ArgsDelta(0, "is"),
            ev.CallEnd(0),
            ev.Stop("tool_calls"),
        ],
        tool_use_block(0, '{"INVALID_JSON":"Paris"}', id="a"),
        ["tool_use", None],
    ),
    "text after a call": (
        [ev.TextDelta("a"), ev.CallStart(0, "a", "f"), ev.CallEnd(0), ev.TextDelta("b"), ev.TextDelta("c")],
        [*text_block(0, "a"), *tool_use_block(1, id="a"), *text_block(2, "b", "c")],
        ["end_turn", None],
    ),
    "native seals": (
        [ev.ReasoningDelta("a"), SEAL, ev.Seal(NAME, {"redacted": "D"}), ev.ReasoningDelta("b"), SEAL],
        [
            *thinking_block(0, "a", signature="S"),
            block_start(1, "redacted_thinking", data="D"),
            block_stop(1),
            *thinking_block(2, "b", signature="S"),
        ],
        ["end_turn", None],
    ),
}


@pytest.mark.parametrize(("events", "blocks", "stop_fields"), rows(EMITTED))
def test_emitted_blocks_and_stop_reason(events: list[ev.Event], blocks: list[Json], stop_fields: list[Any]) -> None:
    frames = emit_frames(*events)
    assert frames[1:-2] == blocks
    assert list(frames[-2]["delta"].values()) == stop_fields


def test_seals_of_another_wire_become_envelopes() -> None:
    """A seal after visible thinking becomes its signature; a seal without text becomes redacted_thinking."""
    first, second = (ev.Seal(CHAT, {"reasoning_details": [{"data": data}]}) for data in "AB")
    frames = emit_frames(ev.ReasoningDelta("a"), first, second, ev.TextDelta("b"), seal_key=b"k")
    signature, data = frames[3]["delta"]["signature"], frames[5]["content_block"]["data"]
    assert seals.read_envelope(signature, b"k") == Reasoning("a", first)
    assert frames[5]["content_block"]["type"] == "redacted_thinking"
    assert seals.read_envelope(data, b"k") == Reasoning("", second)


FAILURES: dict[str, tuple[ev.Failure, str]] = {
    "own type": (ev.Failure("x", "overloaded_error"), "overloaded_error"),
    "status": (ev.Failure("x", code=429), "rate_limit_error"),
    "status as text": (ev.Failure("x", "server_error", "529"), "overloaded_error"),
    "another status": (ev.Failure("x", code=418), "invalid_request_error"),
    "bad gateway": (ev.Failure("x", code=502), "api_error"),
    "code": (ev.Failure("x", "server_error", "invalid_prompt"), "invalid_request_error"),
    "quota": (ev.Failure("x", "insufficient_quota", "insufficient_quota"), "billing_error"),
    "requests": (ev.Failure("x", "requests", "rate_limit_exceeded"), "rate_limit_error"),
    "unknown": (ev.Failure("x", "server_error", "oops"), "api_error"),
}


@pytest.mark.parametrize(("failure", "kind"), rows(FAILURES))
def test_failure_error_type(failure: ev.Failure, kind: str) -> None:
    frame = MessagesEmitter().fail(failure)
    assert read_strict(frame).error == (kind, "x")
    assert anthropic_client.accumulate(frame).error == (kind, "x")


# ── forwarding on the same wire ───────────────────────────────────────────────────────────────────────────────────


def test_model_is_served_under_requested_name() -> None:
    stream = sse(message_start(), *text_block(0, "Hi"), *message_end())
    out, _ = translate([stream], options=il.Options(served_as="mine"))
    assert read_strict(out).model == "mine"
    assert out.split(b"\n\n")[1:] == stream.split(b"\n\n")[1:]
    assert (
        il.translate_reply(complete_message(stream), NAME, NAME, options=il.Options(served_as="mine"))["model"]
        == "mine"
    )


def test_frames_with_wrong_event_name_are_rewritten() -> None:
    stream = sse(message_start(), *text_block(0, "Hi"), *message_end())
    assert read_strict(translate([stream.replace(b"event: content_block_delta", b"event: delta")])[0]).text == "Hi"
    for odd in (stream.replace(b"\n", b"\r\n"), stream.replace(b"event: ", b"event:"), stream.replace(b"\n", b"\r")):
        assert translate([odd])[0] == odd


def test_blocks_after_rewritten_block_are_renumbered() -> None:
    """A native call splits one block into three. The index of all later blocks increases, whatever their type."""
    poem = [block_start(1, "poem", lines=[]), block_delta(1, "line", line="x"), block_stop(1)]
    native = text_block(0, f"a{SECTION_OF_PARIS}b")
    stream = sse(
        message_start(KIMI),
        *native,
        *poem,
        *tool_use_block(2, '{"a": 1}'),
        *thinking_block(3, "c", signature="S"),
        *message_end("tool_use"),
    )
    view = read_strict(translate([stream])[0])
    assert view.block_types == ["text", "tool_use", "text", "poem", "tool_use", "thinking"]
    assert view.blocks[3]["deltas"] == [{"type": "line", "line": "x"}]


def test_delta_of_call_rewritten_as_text_is_not_forwarded() -> None:
    """No tool is offered, so the call becomes text. Its empty delta needs no rewrite, but must not be forwarded."""
    stream = sse(message_start(), *tool_use_block(0, ""), *message_end("tool_use"))
    out, _ = translate([stream], tools=[])
    assert b"input_json_delta" not in out
    assert (read_strict(out).done, read_strict(out).calls) == (True, [])


def test_corrected_stop_reason_is_not_overwritten() -> None:
    last = message_end(usage={"output_tokens": 99})
    view = read_strict(translate([sse(message_start(), *CALL_F, message_end()[0], *last)])[0])
    assert (view.stop, view.usage["output_tokens"]) == ("tool_use", 99)
    view = read_strict(translate([sse(message_start(), *text_block(0, "Hi"), message_end()[0], *last)])[0])
    assert (view.stop, view.usage["output_tokens"]) == ("end_turn", 99)


def test_extra_fields_next_to_stop_reason_are_kept() -> None:
    stream = sse(message_start(), *CALL_F, *message_end("end_turn", container={"id": "c"}))
    out, _ = translate([stream])
    frame = [data for _, data in anthropic_client.events(out)][-2]
    assert frame["delta"] == {"stop_reason": "tool_use", "stop_sequence": None, "container": {"id": "c"}}
    assert frame["usage"] == ALL_USAGE
