"""Tests of trace events: what an observer of a Translator receives."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple, get_args

import pytest

import interlingua as il
from interlingua import events as ev
from interlingua import trace
from interlingua.core.options import Delivery
from interlingua.errors import UsageError
from interlingua.trace import HOLD_REASONS, MARKER_ROLES, Channel, TraceEvent
from interlingua.wires import WIRES
from tests.support import anthropic_scenarios as messages
from tests.support import chat_scenarios as chat
from tests.support import responses_scenarios as responses
from tests.support.cuts import random_pieces
from tests.support.growth import check_growth
from tests.support.harness import FIXTURES, Case, find_dialect, load_cases, tool

DONE = b"data: [DONE]\n\n"
TOOLS = [tool("weather", {"city": "string", "days": "integer"}), tool("ls", ["path"])]


def chunk(delta: dict[str, Any], finish: str | None = None, index: int = 0) -> bytes:
    choice = {"index": index, "delta": delta, "finish_reason": finish}
    body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return f"data: {json.dumps(body)}\n\n".encode()


def content_reads(pieces: Iterable[str]) -> list[bytes]:
    """Return one read per piece of content."""
    return [chunk({"content": piece}) for piece in pieces]


def collect_trace(reads: Iterable[bytes], **settings: Any) -> list[TraceEvent]:
    events: list[TraceEvent] = []
    translator = il.Translator(**settings, observer=events.append)
    for data in reads:
        translator.feed(data)
    translator.close()
    return events


# ── what is reported ──────────────────────────────────────────────────────────────────────────────────────────────────


class Row(NamedTuple):
    dialect: str
    pieces: list[str]
    expected: list[tuple[int, str, str, str]]
    """Number of the message, kind of the event, its text, and the role or reason."""
    options: il.Options | None = None


MARKER, HELD, RELEASED, PASSED = "MarkerSeen", "HeldBack", "Released", "Passed"
ROWS = {
    "special tokens, and each marker split": Row(
        "kimi_k2",
        [
            "<think>a</thi",
            "nk>b<|tool_calls_section_begin|><|tool_call_begin|>functions.l",
            "s:0<|tool_call_argument_",
            "begin|>{",
            "}<|tool_call_end|><|tool_calls_section_end|>",
        ],
        [
            (1, MARKER, "<think>", "thinking-start"),
            (1, HELD, "</thi", "marker"),
            (2, MARKER, "</think>", "thinking-end"),
            (2, MARKER, "<|tool_calls_section_begin|>", "opener"),
            (2, MARKER, "<|tool_call_begin|>", "opener"),
            (2, HELD, "functions.l", "call"),
            (3, HELD, "functions.ls:0<|tool_call_argument_", "call"),
            (4, MARKER, "<|tool_call_argument_begin|>", "inner"),
            (5, MARKER, "<|tool_call_end|>", "closer"),
            (5, MARKER, "<|tool_calls_section_end|>", "closer"),
        ],
    ),
    "text that is no marker after all": Row(
        "kimi_k2",
        ["a<|tool_", "box <|im_end|>", "\n", "b"],
        [
            (1, HELD, "<|tool_", "marker"),
            (2, RELEASED, "<|tool_", "marker"),
            (2, MARKER, "<|im_end|>", "noise"),
            (3, HELD, "\n", "whitespace"),
            (4, RELEASED, "\n", "whitespace"),
        ],
    ),
    "a marker in a JSON string is data": Row(
        "kimi_k2",
        ['<|tool_call_begin|>functions.ls:0<|tool_call_argument_begin|>{"path": "<think>"}<|tool_call_end|>'],
        [
            (1, MARKER, "<|tool_call_begin|>", "opener"),
            (1, MARKER, "<|tool_call_argument_begin|>", "inner"),
            (1, MARKER, "<|tool_call_end|>", "closer"),
        ],
    ),
    "the name of a param": Row(
        "qwen3_coder",
        ["<tool_call><function=ls><parameter=pa", "th>."],
        [
            (1, MARKER, "<tool_call>", "opener"),
            (1, MARKER, "<function=", "opener"),
            (1, MARKER, "<parameter=", "inner"),
            (1, HELD, "pa", "param"),
        ],
    ),
    "a mention of a marker in prose": Row(
        "hermes",
        ["The tag <tool_call>", " is", " a ", "tag."],
        [
            (1, MARKER, "<tool_call>", "opener"),
            (2, RELEASED, "<tool_call>", "call"),
            (4, PASSED, "tag.", ""),
        ],
    ),
    "a tool that was not offered": Row(
        "hermes",
        ['<tool_call>{"name": "rm", ', '"arguments": {}}</tool_call>'],
        [
            (1, MARKER, "<tool_call>", "opener"),
            (1, HELD, '{"name": "rm", ', "not-offered"),
            (2, RELEASED, '<tool_call>{"name": "rm", "arguments": {}}', "call"),
            (2, MARKER, "</tool_call>", "closer"),
        ],
    ),
    "a tentative call": Row(
        "kimi_k2",
        ['{"name": "ls", "arguments": ', '{"path"', ': "."}}'],
        [
            (1, HELD, '{"name": "ls", "arguments": ', "call"),
            (2, HELD, '{"name": "ls", "arguments": {"path"', "tentative"),
        ],
    ),
    "a tentative call that is text": Row(
        "kimi_k2",
        ['{"name": "ls", "arguments": {"path"', ': "."'],
        [
            (1, HELD, '{"name": "ls", "arguments": {"path"', "tentative"),
            (2, HELD, '{"name": "ls", "arguments": {"path": "."', "tentative"),
            (3, RELEASED, '{"name": "ls", "arguments": {"path": "."', "call"),
        ],
    ),
    "a value whose type is known at its end": Row(
        "qwen3_coder",
        ["<tool_call>\n<function=weather>\n<parameter=days>\n1", "0\n</parameter>\n</function>\n</tool_call>"],
        [
            (1, MARKER, "<tool_call>", "opener"),
            (1, MARKER, "<function=", "opener"),
            (1, MARKER, "<parameter=", "inner"),
            (1, HELD, "1", "value"),
            (2, MARKER, "</parameter>", "inner"),
            (2, MARKER, "</function>", "closer"),
            (2, MARKER, "</tool_call>", "closer"),
        ],
    ),
    "a closer that is part of a value": Row(
        "qwen3_coder",
        ["<tool_call>\n<function=ls>\n<parameter=path>\na</parameter>b\n</parameter>\n</function>\n</tool_call>"],
        [
            (1, MARKER, "<tool_call>", "opener"),
            (1, MARKER, "<function=", "opener"),
            (1, MARKER, "<parameter=", "inner"),
            # only the end of the text shows that these are not quoted
            (1, HELD, "</parameter>\n</function>\n</tool_call>", "value-end"),
            (2, MARKER, "</parameter>", "inner"),
            (2, MARKER, "</function>", "closer"),
            (2, MARKER, "</tool_call>", "closer"),
        ],
    ),
    "a call without a name": Row(
        "kimi_k2",
        ['<|tool_call_begin|>0<|tool_call_argument_begin|>{"pa', 'th": "."}<|tool_call_end|>'],
        [
            (1, MARKER, "<|tool_call_begin|>", "opener"),
            (1, MARKER, "<|tool_call_argument_begin|>", "inner"),
            (1, HELD, '{"pa', "name"),
            (2, MARKER, "<|tool_call_end|>", "closer"),
        ],
    ),
    "a quote token": Row(
        "gemma4",
        ['<|tool_call>call:ls{path:<|"|>.', '<|"|>}<tool_call|>'],
        [
            (1, MARKER, "<|tool_call>", "opener"),
            (1, MARKER, '<|"|>', "inner"),
            (2, HELD, "}<tool_call|>", "value-end"),  # only the end of the text shows that the string has ended
            (3, MARKER, '<|"|>', "inner"),
            (3, MARKER, "<tool_call|>", "closer"),
        ],
    ),
    "markers around the text": Row(
        "cohere",
        ["<|START_RESPONSE|>hi<|END_RESPONSE|>"],
        [(1, MARKER, "<|START_RESPONSE|>", "text"), (1, MARKER, "<|END_RESPONSE|>", "text")],
    ),
    "a call that is delivered whole": Row(
        "kimi_k2",
        ['<|tool_call_begin|>functions.ls:0<|tool_call_argument_begin|>{"path"', ': "."}<|tool_call_end|>'],
        [
            (1, MARKER, "<|tool_call_begin|>", "opener"),
            (1, MARKER, "<|tool_call_argument_begin|>", "inner"),
            (1, HELD, '{"path"', "whole"),
            (2, MARKER, "<|tool_call_end|>", "closer"),
        ],
        il.Options(delivery="whole"),
    ),
    "a dialect that is detected": Row(
        "detect",
        ["<|tool_call_begin|>functions.ls:0<|tool_call_argument", '_begin|>{"path": ', '"."}<|tool_call_', "end|>"],
        [
            (1, MARKER, "<|tool_call_begin|>", "opener"),
            (1, HELD, "functions.ls:0<|tool_call_argument", "call"),
            (2, MARKER, "<|tool_call_argument_begin|>", "inner"),
            (3, HELD, "<|tool_call_", "marker"),
            (4, MARKER, "<|tool_call_end|>", "closer"),
        ],
    ),
    "prose on the fast path": Row("kimi_k2", ["a ", "b ", "c ", "d"], [(3, PASSED, "c ", ""), (4, PASSED, "d", "")]),
    "a marker that the prompt began": Row(
        "kimi_k2",
        ["nk>a</think>b"],
        [(1, MARKER, "<think>", "thinking-start"), (1, MARKER, "</think>", "thinking-end")],
        il.Options(prefill="<thi"),
    ),
}


def describe(event: TraceEvent) -> tuple[int, str, str, str] | None:
    match event:
        case trace.MarkerSeen():
            return event.message, MARKER, event.marker, event.role
        case trace.HeldBack():
            return event.message, HELD, event.text, event.reason
        case trace.Released():
            return event.message, RELEASED, event.text, event.reason
        case trace.Passed():
            return event.message, PASSED, event.event.text, ""
        case _:
            return None


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_markers_and_held_text_are_reported(row: Row) -> None:
    reads = [*content_reads(row.pieces), chunk({}, "stop"), DONE]
    events = collect_trace(reads, dialect=row.dialect, tools=TOOLS, options=row.options)
    assert [*filter(None, map(describe, events))] == row.expected


def test_every_role_and_reason_has_a_row() -> None:
    details = {detail for row in ROWS.values() for *_, detail in row.expected}
    assert set(MARKER_ROLES) - details == set()
    assert set(HOLD_REASONS) - details == {"queue"}  # tested below


def test_text_behind_an_open_structured_call_is_queued() -> None:
    call = {"index": 0, "id": "a", "type": "function", "function": {"name": "ls", "arguments": ""}}
    reads = [chunk({"tool_calls": [call]}), chunk({"content": "b"}), chunk({}, "tool_calls"), DONE]
    (held,) = (event for event in collect_trace(reads, dialect="standard") if isinstance(event, trace.HeldBack))
    assert held == trace.HeldBack(2, 0, None, "b", "queue")


def test_channel_and_choice_are_reported() -> None:
    reads = [chunk({"reasoning_content": "a<|tool_"}), chunk({"content": "</think>"}, index=1)]
    events = collect_trace(reads, dialect="kimi_k2")
    assert trace.HeldBack(1, 0, Channel.REASONING, "<|tool_", "marker") in events
    assert trace.MarkerSeen(2, 1, Channel.TEXT, "</think>", "thinking-end") in events


def test_comments_are_numbered() -> None:
    events = collect_trace([b": ping\n\n" + chunk({"content": "a"})])
    assert [event.message for event in events if isinstance(event, trace.MessageReceived)] == [1, 2]
    assert trace.FramesSent(1, ": ping\n\n", unchanged=True) in events


def test_dialect_is_reported_once() -> None:
    reads = [chunk({"content": "a"}).replace(b'"m"', b'"kimi-k2"'), chunk({"content": "b"})]
    events = collect_trace(reads)
    assert [event for event in events if isinstance(event, trace.DialectChosen)] == [trace.DialectChosen(1, "kimi_k2")]


def test_abort_is_the_end_of_the_input() -> None:
    events: list[TraceEvent] = []
    translator = il.Translator(dialect="kimi_k2", observer=events.append)
    translator.feed(chunk({"content": "a<|tool_"}))
    sent = translator.abort("cut off")
    ended = next(n for n, event in enumerate(events) if isinstance(event, trace.InputEnded))
    assert [type(event) for event in events[ended:]] == [
        *(trace.InputEnded, trace.Released, trace.EventSent, trace.EventSent, trace.FramesSent)
    ]
    assert events[-1] == trace.FramesSent(2, sent.decode())


def test_whole_replies_are_traced() -> None:
    body = {
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "<think>a</think>"}}],
        "model": "kimi-k2",
    }
    for translate in (il.Translator.reply, il.Translator.stream):
        events: list[TraceEvent] = []
        translate(il.Translator(observer=events.append), body)
        assert isinstance(events[0], trace.MessageReceived)
        assert events[0].whole
        assert [event.marker for event in events if isinstance(event, trace.MarkerSeen)] == ["<think>", "</think>"]
        assert isinstance(events[-1], trace.FramesSent)
        assert events[-1].whole == (translate is il.Translator.reply)


def test_stream_that_is_folded_is_traced() -> None:
    events: list[TraceEvent] = []
    body = il.Translator(dialect="kimi_k2", observer=events.append).fold(chunk({"content": "a"}) + DONE)
    assert isinstance(events[-1], trace.FramesSent)
    assert json.loads(events[-1].data) == body


# ── what holds for every trace ────────────────────────────────────────────────────────────────────────────────────────

SCENARIOS = [
    *(pytest.param(WIRES[0], scenario, id=f"chat-{scenario.name}") for scenario in chat.SCENARIOS),
    *(pytest.param("anthropic-messages", scenario, id=f"messages-{scenario.name}") for scenario in messages.SCENARIOS),
    *(pytest.param("openai-responses", scenario, id=f"responses-{scenario.name}") for scenario in responses.SCENARIOS),
]


def split_messages(stream: bytes) -> list[bytes]:
    return [message + b"\n\n" for message in stream.split(b"\n\n") if message]


def check_trace(events: list[TraceEvent]) -> None:
    """Assert the order of events, and that the trace survives JSON."""
    number = 0
    for position, event in enumerate(events):
        starts = isinstance(event, trace.MessageReceived | trace.InputEnded)
        number += starts
        assert event.message == number
        assert starts == (position == 0 or isinstance(events[position - 1], trace.FramesSent))
    assert not events or isinstance(events[-1], trace.FramesSent)
    lines = b"".join(map(trace.encode_trace_event, events))
    assert lines.count(b"\n") == len(events)
    assert trace.decode_trace(lines) == events


@pytest.mark.one_row_in(5)
@pytest.mark.parametrize(("wire", "scenario"), SCENARIOS)
def test_observer_changes_nothing(wire: str, scenario: Any) -> None:
    stream = scenario.stream
    tools = getattr(scenario, "tools", None)
    for target in WIRES:
        for reads in ([stream], split_messages(stream), random_pieces(stream, len(stream))):
            events: list[TraceEvent] = []
            observed = il.Translator(wire, target, tools=tools, observer=events.append)
            plain = il.Translator(wire, target, tools=tools)
            sent = [*map(observed.feed, reads), observed.close()]
            assert sent == [*map(plain.feed, reads), plain.close()]
            assert observed.findings == plain.findings
            check_trace(events)
            frames = [event.data for event in events if isinstance(event, trace.FramesSent)]
            assert "".join(frames) == b"".join(sent).decode()


@pytest.mark.one_row_in(5)
@pytest.mark.parametrize("dialect", sorted(path.stem for path in FIXTURES.glob("*.toml")))
def test_held_text_is_the_end_of_what_was_received(dialect: str) -> None:
    for case in load_cases(dialect):
        check_held_text(case)


def check_held_text(case: Case) -> None:
    text = case.full_text
    pieces = [text[start : start + 4] for start in range(0, len(text), 4)]
    options = il.Options(prefill=case.prefill)
    events = collect_trace(
        [*content_reads(pieces), DONE], dialect=find_dialect(case.dialect), tools=case.offered_tools, options=options
    )
    check_trace(events)
    for event in events:
        received = case.prefill + "".join(pieces[: event.message])
        row = f"{case}: {event}"
        if isinstance(event, trace.HeldBack):
            assert event.message <= len(pieces), row
            if event.reason in ("whitespace", "marker", "call", "tentative"):
                assert received.endswith(event.text), row
        elif isinstance(event, trace.MarkerSeen):
            assert event.marker in received, row
        elif isinstance(event, trace.Released):
            assert event.text in received, row
    texts = (event.event for event in events if isinstance(event, trace.EventSent | trace.Passed))
    sent = "".join(event.text for event in texts if isinstance(event, ev.TextDelta | ev.ReasoningDelta))
    plain = collect_trace(
        [*content_reads([text]), DONE], dialect=find_dialect(case.dialect), tools=case.offered_tools, options=options
    )
    deltas = (event.event for event in plain if isinstance(event, trace.EventSent))
    assert sent == "".join(delta.text for delta in deltas if isinstance(delta, ev.TextDelta | ev.ReasoningDelta)), case


# ── encoding ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_neutral_event_survives_json() -> None:
    native = {"a": [1, None]}
    neutral: list[ev.ReplyEvent] = [
        ev.Begin("c", "m", 1),
        ev.TextDelta("a\n\u2028"),
        ev.ReasoningDelta("b"),
        ev.RefusalDelta("no"),
        ev.Seal("openai-chat", native, "x"),
        ev.CallStart(0, "id", "ls", native),
        ev.ArgsDelta(0, "{}", runaway=True),
        ev.CallEnd(0, complete=False),
        ev.Usage(1, 2, 3, 4, native, 5, estimated=True),
        ev.Stop("stop", "s", "end_turn"),
        ev.Failure("no", "api_error", 5, native),
    ]
    assert {type(event) for event in neutral} == set(get_args(ev.ReplyEvent))
    events = [trace.EventSent(1, 0, event) for event in neutral]
    assert trace.decode_trace(b"".join(map(trace.encode_trace_event, events))) == events


def test_half_a_character_is_encoded() -> None:
    line = trace.encode_trace_event(trace.EventSent(1, 0, ev.TextDelta("a\ud800b")))
    assert trace.decode_trace(line) == [trace.EventSent(1, 0, ev.TextDelta("a?b"))]


def test_boolean_instead_of_a_number_is_encoded() -> None:
    usage = {"prompt_tokens": True, "completion_tokens": 2}
    data = chunk({"content": "a"}, index=True).replace(b'"created": 1', b'"created": true')
    events = collect_trace([data.replace(b'"choices"', b'"usage": ' + json.dumps(usage).encode() + b', "choices"')])
    check_trace(events)
    assert trace.EventSent(1, None, ev.Usage(1, 2, native=usage)) in events


# ── observers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_observer_that_raises_does_not_break_the_reply() -> None:
    reads = [*content_reads(["Hel", "lo ", "<|tool", "_call", "s"]), DONE]
    plain = il.Translator(dialect="kimi_k2")
    calls = 0

    def observer(_: TraceEvent) -> None:
        nonlocal calls
        calls += 1
        if calls == 5:
            raise ValueError("mine")

    observed = il.Translator(dialect="kimi_k2", observer=observer)
    with pytest.warns(RuntimeWarning, match="the observer raised ValueError"):
        sent = [*map(observed.feed, reads), observed.close()]
    assert sent == [*map(plain.feed, reads), plain.close()]
    assert calls == 5, "it is not called again"


def test_observer_is_a_function() -> None:
    with pytest.raises(UsageError, match="observer should be a function"):
        il.Translator(observer=5)  # type: ignore[arg-type]


@pytest.mark.one_row_in(5)
@pytest.mark.parametrize("dialect", sorted(path.stem for path in FIXTURES.glob("*.toml")))
def test_text_that_was_sent_is_not_held(dialect: str) -> None:
    for case in load_cases(dialect):
        check_sent_text_is_not_held(case)


def check_sent_text_is_not_held(case: Case) -> None:
    events: list[TraceEvent] = []
    options = il.Options(prefill=case.prefill)
    translator = il.Translator(
        dialect=find_dialect(case.dialect), tools=case.offered_tools, options=options, observer=events.append
    )
    reads = content_reads([case.full_text, "\n\nThat is", " all for", " now."])
    sent = b"".join(map(translator.feed, reads))
    held = [event for event in events if isinstance(event, trace.HeldBack) and event.text.endswith("now.")]
    assert not (held and b" now." in sent), case


@pytest.mark.parametrize("delivery", ["stream", "whole"])
def test_time_of_an_observed_translation_is_linear(delivery: Delivery) -> None:
    def translate(count: int) -> None:
        translator = il.Translator(dialect="standard", options=il.Options(delivery=delivery), observer=lambda _: None)
        starts = [chat.call_start(f"f{n}", '{"a": "', n, f"id{n}") for n in range(2)]  # the second call is queued
        deltas = [chat.call_delta("text", n % 2) for n in range(count)]
        reads = [chunk({"tool_calls": [entry]}) for entry in [*starts, *deltas]]
        for read in reads:
            translator.feed(read)

    check_growth(translate, 1000, 8000, limit=24)
