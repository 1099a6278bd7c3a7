"""Tests of the accumulator: chunks of any form and in any interleaving become one reply."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import interlingua as il
from interlingua import events as ev
from interlingua import trace
from interlingua.core.reply import Reasoning, Text
from interlingua.errors import UsageError
from interlingua.wires.streaming import sse
from tests.support import anthropic_scenarios as messages
from tests.support import chat_scenarios as chat
from tests.support import responses_scenarios as responses
from tests.support.anthropic_client import sdk_client as anthropic_client
from tests.support.cuts import single_units
from tests.support.growth import check_growth
from tests.support.sdk import sdk_client

ITINERARY = '{"itinerary_id": "abc123"}'


def accumulate(*chunks: Any, wire: str = "openai-chat", close: bool = True, **options: Any) -> il.Accumulator:
    acc = il.Accumulator(wire, **options)
    for chunk in chunks:
        acc.add(chunk)
    if close:
        acc.close()
    return acc


def summarise_calls(acc: il.Accumulator) -> list[tuple[str, str, bool]]:
    return [(call.name, call.arguments, call.complete) for call in acc.calls]


def deltas(*entries: list[dict[str, Any]], finish: str | None = "tool_calls") -> list[dict[str, Any]]:
    chunks = [chat.chunk(chat.choice({"tool_calls": entry}), model="m") for entry in entries]
    return [*chunks, *([chat.chunk(chat.choice({}, finish), model="m")] if finish else [])]


# ── field reports ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_call_in_fragments() -> None:
    fragments = (
        [chat.call_start("get_itinerary", "", id="call_abc123")],
        [chat.call_delta('{"itinerary')],
        [chat.call_delta('_id": "abc123"}')],
    )
    acc = il.Accumulator()
    partial_arguments = []
    for chunk in deltas(*fragments):
        assert not acc.finished
        acc.add(chunk)
        partial_arguments.append([call.partial() for call in acc.calls])
    assert partial_arguments == [[{}], [{}], [{"itinerary_id": "abc123"}], [{"itinerary_id": "abc123"}]]
    assert (acc.finished, acc.why) == (True, "")
    assert summarise_calls(acc) == [("get_itinerary", ITINERARY, True)]
    assert (acc.calls[0].id, acc.reply().stop_reason) == ("call_abc123", "tool_calls")


def truncated_chat_chunks(args: Any, reason: str) -> list[dict[str, Any]]:
    return deltas([chat.call_start("f", args)], finish=reason)


def truncated_messages_chunks(args: str, reason: str) -> list[dict[str, Any]]:
    reason = {"length": "max_tokens", "content_filter": "refusal"}[reason]
    pieces = [args] if args else []
    return [messages.message_start(), *messages.tool_use_block(0, *pieces), *messages.message_end(reason)]


@pytest.mark.parametrize("reason", ["length", "content_filter"])
@pytest.mark.parametrize("args", ["", " ", "nul", "null"])
@pytest.mark.parametrize("wire", ["openai-chat", "anthropic-messages"])
def test_call_truncated_before_its_arguments_is_incomplete(wire: str, args: str, reason: str) -> None:
    chunks = truncated_chat_chunks(args, reason) if wire == "openai-chat" else truncated_messages_chunks(args, reason)
    acc = accumulate(*chunks, wire=wire)
    assert summarise_calls(acc) == [("f", args.strip(), False)]
    assert acc.reply().stop_reason == reason
    assert "cut-short" in [finding.kind for finding in acc.reply().findings]


@pytest.mark.parametrize("reason", ["length", "max_tokens"])
def test_whole_reply_truncated_before_arguments_has_incomplete_call(reason: str) -> None:
    entries = [chat.call_start("f", "", id="call_1"), chat.call_start("g", "", id="call_2")]
    assistant_message = {"role": "assistant", "content": None, "tool_calls": entries}
    choices = [{"index": 0, "finish_reason": reason, "message": assistant_message}]
    assert summarise_calls(accumulate({"id": "x", "object": "chat.completion", "choices": choices})) == [
        ("f", "{}", True),
        ("g", "", False),
    ]
    content: list[Any] = [{"type": "tool_use", "id": f"toolu_{name}", "name": name, "input": {}} for name in ("f", "g")]
    message = {**messages.message_start()["message"], "content": content, "stop_reason": "max_tokens"}
    assert summarise_calls(accumulate(message, wire="anthropic-messages")) == [("f", "{}", True), ("g", "", False)]


def test_interleaved_parallel_calls() -> None:
    chunks = deltas(
        [chat.call_start("ls", "", 0, "call_a")],
        [chat.call_start("read", "", 1, "call_b")],
        [chat.call_delta('{"path": ', 0)],
        [chat.call_delta('{"path": "b', 1)],
        [chat.call_delta('"a"}', 0), chat.call_delta('"}', 1)],
    )
    acc = il.Accumulator()
    for chunk in chunks[:4]:
        acc.add(chunk)
    assert [call.partial() for call in acc.calls] == [{}, {"path": "b"}]
    assert acc.why == "the call of 'ls' is still open"
    for chunk in chunks[4:]:
        acc.add(chunk)
    assert summarise_calls(acc) == [("ls", '{"path": "a"}', True), ("read", '{"path": "b"}', True)]
    assert [call.id for call in acc.calls] == ["call_a", "call_b"]


@pytest.mark.parametrize("arguments", ["", None, "null", "{}"])
def test_empty_arguments_become_an_empty_object(arguments: str | None) -> None:
    acc = accumulate(*deltas([chat.call_start("now", arguments)]))
    assert (summarise_calls(acc), acc.finished) == ([("now", "{}", True)], True)


def test_missing_finish_reason() -> None:
    cut = accumulate(*deltas([chat.call_start("read", '{"path": "a')], finish=None))
    assert (summarise_calls(cut), cut.finished) == ([("read", '{"path": "a', False)], False)
    assert cut.why == "the upstream ended inside the call of 'read'"
    text = accumulate(chat.chunk(chat.choice({"content": "Once upon"}), model="m"))
    assert (text.text, text.finished) == ("Once upon", False)
    assert text.why == "the upstream ended without finishing its reply"


def test_several_objects_in_the_arguments_of_one_call() -> None:
    """`{…}{…}` in one call: the first object is used, the rest is dropped."""
    acc = accumulate(*deltas([chat.call_start("read", '{"path": "a"}{"path": "b"}')]))
    assert summarise_calls(acc) == [("read", '{"path": "a"}', True)]
    assert [finding.kind for finding in acc.findings] == ["after-arguments"]


def test_calls_that_share_an_index_are_separated_by_id() -> None:
    """All calls have index 0, and only the id differs."""
    acc = accumulate(
        *deltas([chat.call_start("a", '{"x":1}', 0, "call_a")], [chat.call_start("b", '{"x":2}', 0, "call_b")])
    )
    assert [(call.id, call.name, call.arguments) for call in acc.calls] == [
        ("call_a", "a", '{"x":1}'),
        ("call_b", "b", '{"x":2}'),
    ]


class StartAndDeltas(NamedTuple):
    start: Any
    deltas: tuple[str, ...]
    arguments: str


@pytest.mark.parametrize(
    "case",
    [
        StartAndDeltas({}, ('{"a": 1, ', '"b": 2}'), '{"a": 1, "b": 2}'),
        StartAndDeltas(None, ('{"a": 1}',), '{"a": 1}'),
        StartAndDeltas({"a": 1}, (), '{"a":1}'),
        StartAndDeltas({"a": 1}, ('{"a": 1}',), '{"a": 1}'),
        StartAndDeltas({"a": 1}, (',"b":2}',), '{"a":1,"b":2}'),
        StartAndDeltas({"a": 1}, ('{"a": 1, "b": 2}',), '{"a": 1, "b": 2}'),
    ],
    ids=["deltas", "null and deltas", "start alone", "the same twice", "continued", "deltas with more"],
)
def test_arguments_sent_twice(case: StartAndDeltas) -> None:
    stream = [
        messages.message_start(),
        *messages.tool_use_block(0, *case.deltas, input=case.start),
        *messages.message_end("tool_use"),
    ]
    if case.start is None:
        stream[1] = messages.block_start(0, "tool_use", id="toolu_1", name="f", input=None)
    acc = accumulate(*stream, wire="anthropic-messages")
    (call,) = acc.calls
    assert json.loads(call.arguments) == json.loads(case.arguments)
    assert (call.complete, acc.finished) == (True, True)


# ── forms of input ────────────────────────────────────────────────────────────────────────────────────────────────────

SCENARIOS = [
    *(pytest.param("openai-chat", scenario, id=f"chat-{scenario.name}") for scenario in chat.SCENARIOS),
    *(pytest.param("anthropic-messages", scenario, id=f"messages-{scenario.name}") for scenario in messages.SCENARIOS),
    *(pytest.param("openai-responses", scenario, id=f"responses-{scenario.name}") for scenario in responses.SCENARIOS),
]


def reply_of_translator(wire: str, stream: bytes, tools: Any) -> il.Reply:
    """Return the reply of a Translator. Failures are sorted to the end, because it flushes its buffers after them."""
    events: list[ev.Event] = []

    def collect(event: trace.TraceEvent) -> None:
        if isinstance(event, trace.EventSent):
            events.append(event.event)
        elif isinstance(event, trace.FindingReported):
            events.append(event.finding)

    translator = il.Translator(source=wire, target=wire, tools=tools, observer=collect)
    translator.feed(stream)
    translator.close()
    return il.fold(sorted(events, key=lambda event: isinstance(event, ev.Failure)))


@pytest.mark.one_row_in(5)
@pytest.mark.parametrize(("wire", "scenario"), SCENARIOS)
def test_reply_equals_the_translators(wire: str, scenario: Any) -> None:
    if len(getattr(scenario, "expected", {0: None})) > 1 or getattr(scenario, "options", None):
        return  # several choices are tested below
    tools = getattr(scenario, "tools", None)
    expected = reply_of_translator(wire, scenario.stream, tools)
    actual = accumulate(scenario.stream, wire=wire, tools=tools).reply()
    assert (actual.parts, actual.stop_reason, actual.refusal) == (
        expected.parts,
        expected.stop_reason,
        expected.refusal,
    )
    # The accumulator also reports a failure for an empty reply.
    assert (actual.failure is None) == (expected.failure is None) or not actual.parts
    assert expected.usage in (None, actual.usage)
    by_piece = accumulate(*single_units(scenario.stream)[:4000], scenario.stream[4000:], wire=wire, tools=tools).reply()
    assert by_piece == actual


@pytest.mark.one_row_in(5)
@pytest.mark.parametrize(("wire", "scenario"), SCENARIOS)
def test_dict_chunks_equal_bytes(wire: str, scenario: Any) -> None:
    bodies = []
    for message in sse.SseDecoder().feed(scenario.stream):
        if message.event == "error" or not message.data.startswith("{"):
            continue
        try:
            bodies.append(json.loads(message.data))
        except ValueError:
            return
    tools = getattr(scenario, "tools", None)
    done = [b"data: [DONE]\n\n"] if b"data: [DONE]" in scenario.stream else []
    if b"event: error" not in scenario.stream:
        by_bytes, by_dicts = (
            accumulate(*chunks, wire=wire, tools=tools) for chunks in ([scenario.stream], [*bodies, *done])
        )
        assert by_dicts.reply().parts == by_bytes.reply().parts
        assert (by_dicts.finished, by_dicts.why) == (by_bytes.finished, by_bytes.why)


def test_openai_sdk_objects_equal_bytes() -> None:
    stream = chat.call_stream(
        [chat.call_start("ls", '{"path": ', 0, "call_a")],
        [chat.call_start("read", '{"path": "b"}', 1, "call_b")],
        [chat.call_delta('"a"}', 0)],
    )
    by_bytes = accumulate(stream).reply()
    create: Any = sdk_client(stream).chat.completions.create
    assert accumulate(*create(model="m", messages=[], stream=True)).reply().parts == by_bytes.parts
    with sdk_client(stream).chat.completions.stream(model="m", messages=[]) as events:
        assert accumulate(*events).reply().parts == by_bytes.parts


def test_anthropic_sdk_objects_equal_bytes() -> None:
    stream = messages.sse(
        messages.message_start(),
        *messages.text_block(0, "I ", "look."),
        *messages.tool_use_block(1, '{"a"', ": 1}"),
        *messages.message_end("tool_use"),
    )
    by_bytes = accumulate(stream, wire="anthropic-messages").reply()
    assert len(by_bytes.parts) == 2
    with anthropic_client(stream).messages.stream(model="m", max_tokens=9, messages=[]) as events:
        by_helper = accumulate(*events, wire="anthropic-messages")
    assert (by_helper.reply().parts, by_helper.findings) == (by_bytes.parts, [])
    create: Any = anthropic_client(stream).messages.create
    by_events = accumulate(*create(model="m", max_tokens=9, messages=[], stream=True), wire="anthropic-messages")
    assert by_events.reply() == by_bytes


def test_whole_reply_is_accepted() -> None:
    body = {
        "object": "chat.completion",
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
    }
    acc = accumulate(body, close=False)
    assert (acc.text, acc.finished) == ("Hi", True)


def test_calls_in_native_text_are_parsed() -> None:
    acc = accumulate(chat.text_stream(chat.FIELD_LOG, "reasoning_content"))
    assert acc.calls
    assert acc.finished
    assert "<|" not in acc.reasoning + acc.text


def test_choices_are_separate() -> None:
    both = [
        chat.chunk(chat.choice({"content": text}, index=n), model="m") for n, text in ((0, "a"), (1, "b"), (0, "c"))
    ]
    acc = accumulate(*both)
    assert (acc.reply(0).text, acc.reply(1).text, acc.text, acc.reply(7)) == ("ac", "b", "ac", il.Reply())


def test_wrong_usage_raises_usage_error() -> None:
    acc = accumulate(b"")
    with pytest.raises(UsageError, match="closed"):
        acc.add({})
    with pytest.raises(UsageError, match="not int"):
        il.Accumulator().add(5)
    assert il.Accumulator().why == "no data was received yet"


# ── properties ────────────────────────────────────────────────────────────────────────────────────────────────────────

ARGUMENTS = st.dictionaries(
    st.text(max_size=4), st.text(max_size=8) | st.integers() | st.none() | st.lists(st.booleans())
)


@st.composite
def interleavings(draw: st.DrawFn) -> tuple[list[str], list[dict[str, Any]]]:
    """Generate calls, and their entries in any order that keeps the order within each call.

    The index of a call is its position in the order of first entries.
    """
    texts = [
        json.dumps(arguments, ensure_ascii=draw(st.booleans()))
        for arguments in draw(st.lists(ARGUMENTS, min_size=1, max_size=4))
    ]
    cut = [draw(st.lists(st.integers(1, len(text) - 1), max_size=4, unique=True).map(sorted)) for text in texts]
    turns = draw(st.permutations([n for n, cuts in enumerate(cut) for _ in range(len(cuts) + 2)]))
    order = list(dict.fromkeys(turns))
    arguments = [texts[n] for n in order]
    queues = []
    for index, n in enumerate(order):
        parts = [texts[n][i:j] for i, j in zip([0, *cut[n]], [*cut[n], len(texts[n])], strict=True)]
        queues.append(
            [
                chat.call_start(f"t{index}", "", index, f"call_{index}"),
                *(chat.call_delta(part, index) for part in parts),
            ]
        )
    return arguments, [queues[order.index(n)].pop(0) for n in turns]


@given(interleavings())
def test_any_interleaving_yields_the_same_calls(interleaving: tuple[list[str], list[dict[str, Any]]]) -> None:
    arguments, entries = interleaving
    acc = accumulate(*deltas(*([entry] for entry in entries)))
    assert acc.finished
    assert [call.arguments for call in acc.calls] == arguments
    assert [call.id for call in acc.calls] == [f"call_{n}" for n in range(len(arguments))]


@given(interleavings(), st.data())
def test_truncation_marks_the_incomplete_calls(
    interleaving: tuple[list[str], list[dict[str, Any]]], data: st.DataObject
) -> None:
    arguments, entries = interleaving
    kept = entries[: data.draw(st.integers(0, len(entries)))]
    acc = accumulate(*deltas(*([entry] for entry in kept), finish=None))
    received = {
        n: "".join(e["function"]["arguments"] for e in kept if e["index"] == n) for n in {e["index"] for e in kept}
    }
    assert not acc.finished or not any(received[n] != arguments[n] for n in received)
    assert {call.name: call.complete for call in acc.calls} == {
        f"t{n}": text == arguments[n] for n, text in received.items()
    }
    assert {call.name: call.arguments for call in acc.calls} == {f"t{n}": text for n, text in received.items()}


# ── JSON bodies, and events as lines ──────────────────────────────────────────────────────────────────────────────────

WHOLE = {
    "id": "1", "object": "chat.completion", "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi {you}"}, "finish_reason": "stop"}],
}  # fmt: skip
STREAMED = [
    chat.chunk(chat.choice({"content": "Hi {"}), model="m"),
    chat.chunk(chat.choice({"content": "you}"}, "stop")),
]
LINES = [*(line for chunk in STREAMED for line in (f"data: {json.dumps(chunk)}", "")), "data: [DONE]", ""]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("before", ["", "\n \n", "\ufeff"])
def test_whole_json_body(indent: int | None, before: str) -> None:
    body = before + json.dumps(WHOLE, indent=indent)
    for piece in (body, body.encode(), bytearray(body.encode())):
        acc = accumulate(piece, close=False)
        assert (acc.text, acc.finished, acc.findings) == ("Hi {you}", True, [])
    assert accumulate(*single_units(body.encode())).text == "Hi {you}"


def test_json_body_in_many_pieces_takes_linear_time() -> None:
    many = json.dumps({**WHOLE, "extra": [{}] * 50_000}).encode()
    acc = accumulate(*(many[at : at + 4] for at in range(0, len(many), 4)))
    assert acc.text == "Hi {you}"


def test_json_body_with_an_error() -> None:
    acc = accumulate(b'{"error": {"message": "no credits", ', b'"code": 402}}')
    assert (acc.finished, acc.why) == (False, "no credits")


def test_truncated_json_body() -> None:
    acc = accumulate(json.dumps(WHOLE).encode()[:-9])
    assert (acc.finished, acc.calls) == (False, [])
    assert [finding.kind for finding in acc.findings] == ["bad-json"]


def test_events_that_are_not_json_fail_the_reply_after_a_hundred() -> None:
    text = b'data: {"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": null}]}\n\n'
    stop = b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\n'
    junk = b"data: junk\n\n"
    assert accumulate(text, junk * 100, stop).finished
    acc = accumulate(text, junk * 200, stop)
    assert (acc.finished, acc.why) == (False, "the upstream sent too many events that cannot be read")
    assert [finding.kind for finding in acc.findings] == ["bad-json"] * 101


def test_error_after_the_reply_is_reported_in_each_choice_at_most_once() -> None:
    choices = [{"index": n, "delta": {"content": "x"}, "finish_reason": "stop"} for n in range(3)]
    acc = accumulate({"choices": choices}, *[{"error": {"message": "late"}}] * 5)
    assert [acc.reply(n).stop_reason for n in range(3)] == ["stop"] * 3
    assert [len(acc.reply(n).findings) for n in range(3)] == [5, 1, 1]


def test_json_body_over_the_limit() -> None:
    acc = accumulate(b'{"a": "', b"x" * 2000, limits=il.Limits(event=1000))
    assert "a body of more than 1,000 bytes" in acc.why


def test_chunks_as_str() -> None:
    acc = accumulate(*map(json.dumps, STREAMED))
    assert (acc.text, acc.finished) == ("Hi {you}", True)


@pytest.mark.parametrize("blank", [True, False], ids=["with blank lines", "without"])
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
@pytest.mark.parametrize("as_bytes", [True, False])
def test_sse_line_by_line(blank: bool, end: str, as_bytes: bool) -> None:
    lines = [line + end for line in (": hello", *LINES) if line or blank]
    acc = accumulate(*(line.encode() if as_bytes else line for line in lines))
    assert (acc.text, acc.finished, acc.findings) == ("Hi {you}", True, [])


def test_complete_sse_line_is_read_immediately() -> None:
    acc = il.Accumulator()
    acc.add(LINES[0])
    assert acc.text == "Hi {"


def test_messages_sse_line_by_line() -> None:
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hi"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ]
    lines = [line for event in events for line in (f"event: {event['type']}", f"data: {json.dumps(event)}", "")]
    acc = accumulate(*lines, wire="anthropic-messages")
    assert (acc.text, acc.finished) == ("Hi", True)
    acc = accumulate(*lines[:3], "event: error", "data: overloaded", "", wire="anthropic-messages")
    assert acc.why == "overloaded"


@given(st.lists(st.integers(0, 400), max_size=8), st.booleans())
def test_bytes_cut_anywhere_even_where_they_look_like_lines(cuts: list[int], empty: bool) -> None:
    text = 'data: {} event: x\ndata: {"a": 1} : {b}'
    body = b"".join(sse.encode_event(json.dumps(chunk)) for chunk in (
        chat.chunk(chat.choice({"content": text}), model="m"), chat.chunk(chat.choice({"content": text}, "stop")),
    )) + b"data: [DONE]\n\n"  # fmt: skip
    places = sorted({0, len(body), *(cut for cut in cuts if cut < len(body))})
    pieces = [body[start:end] for start, end in pairwise(places)]
    acc = accumulate(*(part for piece in pieces for part in ((piece, b"") if empty else (piece,))))
    assert (acc.text, acc.finished, acc.findings) == (text + text, True, [])


MESSAGES_CHUNKS = [{"type": "message_start", "message": {}}, {"type": "message_stop"}]


@pytest.mark.parametrize(
    ("wire", "chunks"),
    [("openai-chat", MESSAGES_CHUNKS), ("openai-responses", MESSAGES_CHUNKS), ("anthropic-messages", STREAMED)],
)
def test_chunks_of_another_wire_are_reported(wire: str, chunks: list[Any]) -> None:
    acc = accumulate(*chunks, wire=wire)
    assert not acc.finished
    assert f"no chunk is of {wire}" in acc.why
    assert "bad-chunk" in [finding.kind for finding in acc.findings]


def test_reading_properties_per_chunk_takes_linear_time() -> None:
    """Four times the chunks take less than eight times as long."""

    def accumulate_chunks(count: int) -> None:
        acc = il.Accumulator()
        chunk = chat.chunk(chat.choice({"content": "word "}), model="m")
        call = chat.chunk(chat.choice({"tool_calls": [chat.call_delta("word ")]}), model="m")
        for _ in range(count):
            acc.add(chunk)
            assert (acc.text[-1], acc.finished, acc.why) == (" ", False, "the reply has not ended")
        acc.add(chat.chunk(chat.choice({"tool_calls": [chat.call_start("w", '{"a": "', id="c")]}), model="m"))
        for _ in range(count):
            acc.add(call)
            assert (len(acc.calls), acc.finished) == (1, False)

    check_growth(accumulate_chunks, 1000, 4000, limit=8)


# ── continuing the conversation ───────────────────────────────────────────────────────────────────────────────────────


def test_extra_fields_of_a_call_are_sent_back() -> None:
    extra = {"extra_content": {"google": {"thought_signature": "S"}}}
    acc = accumulate(*deltas([chat.call_start("f", '{"a": 1}', **extra)]))
    [message] = il.ToolBox().messages("openai-chat", acc.reply())
    assert message["tool_calls"] == [chat.without_keys(chat.call_start("f", '{"a": 1}', **extra), "index")]
    assert b"extra" not in msgspec.json.encode(il.Call("call_1", "f", "{}"))


def test_custom_tool_call_is_sent_back_as_custom() -> None:
    call = {"id": "call_1", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}}
    acc = accumulate(*deltas([{"index": 0, **call}]))
    [message] = il.ToolBox().messages("openai-chat", acc.reply())
    assert message["tool_calls"] == [call]


def test_refusal_is_sent_back() -> None:
    chunks = [chat.chunk(chat.choice({"refusal": "No."})), chat.chunk(chat.choice({}, "stop"))]
    reply = accumulate(*chunks).reply()
    box = il.ToolBox()
    assert box.messages("openai-chat", reply) == [{"role": "assistant", "content": None, "refusal": "No."}]
    text = {"type": "text", "text": "No."}
    assert box.messages("anthropic-messages", reply) == [{"role": "assistant", "content": [text]}]
    assert box.messages("openai-responses", reply) == [{"type": "message", "role": "assistant", "content": "No."}]


def test_reasoning_signed_by_another_wire_is_not_sent_to_messages() -> None:
    signed = Reasoning("Hm.", ev.Seal("openai-responses", {"encrypted_content": "E"}))
    reply = il.Reply(parts=[signed, Text("Hi")])
    [message] = il.ToolBox().messages("anthropic-messages", reply)
    assert message["content"] == [{"type": "text", "text": "Hi"}]
