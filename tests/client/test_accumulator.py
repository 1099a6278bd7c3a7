"""A reply from its chunks, whatever they come as and however they interleave."""

from __future__ import annotations

import json
import time
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import interlingua as il
from interlingua import events as ev
from interlingua.core.reply import Reasoning, Text
from interlingua.errors import UsageError
from interlingua.wires.streaming import sse
from tests.support import anthropic_scenarios as messages
from tests.support import chat_scenarios as chat
from tests.support import responses_scenarios as responses
from tests.support.anthropic_client import sdk_client as anthropic_client
from tests.support.cuts import single_units
from tests.support.sdk import sdk_client

ITINERARY = '{"itinerary_id": "abc123"}'


def accumulated(*chunks: Any, wire: str = "openai-chat", close: bool = True, **how: Any) -> il.Accumulator:
    acc = il.Accumulator(wire, **how)
    for chunk in chunks:
        acc.add(chunk)
    if close:
        acc.close()
    return acc


def called(acc: il.Accumulator) -> list[tuple[str, str, bool]]:
    return [(call.name, call.arguments, call.complete) for call in acc.calls]


def deltas(*entries: list[dict[str, Any]], finish: str | None = "tool_calls") -> list[dict[str, Any]]:
    said = [chat.chunk(chat.choice({"tool_calls": entry}), model="m") for entry in entries]
    return [*said, *([chat.chunk(chat.choice({}, finish), model="m")] if finish else [])]


# ── field reports ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_get_itinerary_in_fragments() -> None:
    fragments = (
        [chat.call_start("get_itinerary", "", id="call_abc123")],
        [chat.call_delta('{"itinerary')],
        [chat.call_delta('_id": "abc123"}')],
    )
    acc = il.Accumulator()
    so_far = []
    for chunk in deltas(*fragments):
        assert not acc.finished
        acc.add(chunk)
        so_far.append([call.partial() for call in acc.calls])
    assert so_far == [[{}], [{}], [{"itinerary_id": "abc123"}], [{"itinerary_id": "abc123"}]]
    assert (acc.finished, acc.why) == (True, "")
    assert called(acc) == [("get_itinerary", ITINERARY, True)]
    assert (acc.calls[0].id, acc.reply().stop_reason) == ("call_abc123", "tool_calls")


def chat_cut(args: Any, reason: str) -> list[dict[str, Any]]:
    return deltas([chat.call_start("f", args)], finish=reason)


def messages_cut(args: str, reason: str) -> list[dict[str, Any]]:
    reason = {"length": "max_tokens", "content_filter": "refusal"}[reason]
    pieces = [args] if args else []
    return [messages.message_start(), *messages.tool_use_block(0, *pieces), *messages.message_end(reason)]


@pytest.mark.parametrize("reason", ["length", "content_filter"])
@pytest.mark.parametrize("args", ["", " ", "nul", "null"])
@pytest.mark.parametrize("wire", ["openai-chat", "anthropic-messages"])
def test_a_call_cut_before_its_arguments_is_not_complete(wire: str, args: str, reason: str) -> None:
    chunks = chat_cut(args, reason) if wire == "openai-chat" else messages_cut(args, reason)
    acc = accumulated(*chunks, wire=wire)
    assert called(acc) == [("f", args.strip(), False)]
    assert acc.reply().stop_reason == reason
    assert "cut-short" in [finding.kind for finding in acc.reply().findings]


@pytest.mark.parametrize("reason", ["length", "max_tokens"])
def test_a_whole_reply_cut_before_the_arguments_has_no_complete_call(reason: str) -> None:
    entries = [chat.call_start("f", "", id="call_1"), chat.call_start("g", "", id="call_2")]
    said = {"role": "assistant", "content": None, "tool_calls": entries}
    choices = [{"index": 0, "finish_reason": reason, "message": said}]
    assert called(accumulated({"id": "x", "object": "chat.completion", "choices": choices})) == [
        ("f", "{}", True),
        ("g", "", False),
    ]
    content: list[Any] = [{"type": "tool_use", "id": f"toolu_{name}", "name": name, "input": {}} for name in ("f", "g")]
    message = {**messages.message_start()["message"], "content": content, "stop_reason": "max_tokens"}
    assert called(accumulated(message, wire="anthropic-messages")) == [("f", "{}", True), ("g", "", False)]


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
    assert called(acc) == [("ls", '{"path": "a"}', True), ("read", '{"path": "b"}', True)]
    assert [call.id for call in acc.calls] == ["call_a", "call_b"]


@pytest.mark.parametrize("arguments", ["", None, "null", "{}"])
def test_empty_arguments_are_an_empty_object(arguments: str | None) -> None:
    acc = accumulated(*deltas([chat.call_start("now", arguments)]))
    assert (called(acc), acc.finished) == ([("now", "{}", True)], True)


def test_finish_reason_missing() -> None:
    cut = accumulated(*deltas([chat.call_start("read", '{"path": "a')], finish=None))
    assert (called(cut), cut.finished) == ([("read", '{"path": "a', False)], False)
    assert cut.why == "the upstream ended inside the call of 'read'"
    text = accumulated(chat.chunk(chat.choice({"content": "Once upon"}), model="m"))
    assert (text.text, text.finished) == ("Once upon", False)
    assert text.why == "the upstream ended without finishing its reply"


def test_objects_that_follow_each_other() -> None:
    """`{…}{…}` in one call: the first is meant, and the rest is no part of it."""
    acc = accumulated(*deltas([chat.call_start("read", '{"path": "a"}{"path": "b"}')]))
    assert called(acc) == [("read", '{"path": "a"}', True)]
    assert [finding.kind for finding in acc.findings] == ["after-arguments"]


def test_one_index_for_all() -> None:
    """Where the index lies, the id tells."""
    acc = accumulated(
        *deltas([chat.call_start("a", '{"x":1}', 0, "call_a")], [chat.call_start("b", '{"x":2}', 0, "call_b")])
    )
    assert [(call.id, call.name, call.arguments) for call in acc.calls] == [
        ("call_a", "a", '{"x":1}'),
        ("call_b", "b", '{"x":2}'),
    ]


class Twice(NamedTuple):
    start: Any
    deltas: tuple[str, ...]
    arguments: str


@pytest.mark.parametrize(
    "case",
    [
        Twice({}, ('{"a": 1, ', '"b": 2}'), '{"a": 1, "b": 2}'),
        Twice(None, ('{"a": 1}',), '{"a": 1}'),
        Twice({"a": 1}, (), '{"a":1}'),
        Twice({"a": 1}, ('{"a": 1}',), '{"a": 1}'),
        Twice({"a": 1}, (',"b":2}',), '{"a":1,"b":2}'),
        Twice({"a": 1}, ('{"a": 1, "b": 2}',), '{"a": 1, "b": 2}'),
    ],
    ids=["deltas", "null and deltas", "start alone", "the same twice", "continued", "deltas that say more"],
)
def test_arguments_sent_twice(case: Twice) -> None:
    stream = [
        messages.message_start(),
        *messages.tool_use_block(0, *case.deltas, input=case.start),
        *messages.message_end("tool_use"),
    ]
    if case.start is None:
        stream[1] = messages.block_start(0, "tool_use", id="toolu_1", name="f", input=None)
    acc = accumulated(*stream, wire="anthropic-messages")
    (call,) = acc.calls
    assert json.loads(call.arguments) == json.loads(case.arguments)
    assert (call.complete, acc.finished) == (True, True)


# ── whatever they come as ─────────────────────────────────────────────────────────────────────────────────────────────

SCENARIOS = [
    *(pytest.param("openai-chat", scenario, id=f"chat-{scenario.name}") for scenario in chat.SCENARIOS),
    *(pytest.param("anthropic-messages", scenario, id=f"messages-{scenario.name}") for scenario in messages.SCENARIOS),
    *(pytest.param("openai-responses", scenario, id=f"responses-{scenario.name}") for scenario in responses.SCENARIOS),
]


def as_translated(wire: str, stream: bytes, tools: Any) -> il.Reply:
    """What a Translator makes of it. What it has held comes out behind a failure there."""
    translator = il.Translator(source=wire, target=wire, tools=tools)
    steps = [*translator.trace(stream), *translator.trace_end()]
    return il.fold(sorted((event for step in steps for event in step.events), key=lambda e: isinstance(e, ev.Failure)))


@pytest.mark.parametrize(("wire", "scenario"), SCENARIOS)
def test_it_hears_what_a_translator_hears(wire: str, scenario: Any) -> None:
    if len(getattr(scenario, "expected", {0: None})) > 1 or getattr(scenario, "options", None):
        return  # several choices are told apart below
    tools = getattr(scenario, "tools", None)
    want = as_translated(wire, scenario.stream, tools)
    got = accumulated(scenario.stream, wire=wire, tools=tools).reply()
    assert (got.parts, got.stop_reason, got.refusal) == (want.parts, want.stop_reason, want.refusal)
    assert (got.failure is None) == (want.failure is None) or not got.parts  # nothing at all is no reply here
    assert want.usage in (None, got.usage)
    by_piece = accumulated(
        *single_units(scenario.stream)[:4000], scenario.stream[4000:], wire=wire, tools=tools
    ).reply()
    assert by_piece == got


@pytest.mark.parametrize(("wire", "scenario"), SCENARIOS)
def test_dicts_say_what_bytes_say(wire: str, scenario: Any) -> None:
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
            accumulated(*chunks, wire=wire, tools=tools) for chunks in ([scenario.stream], [*bodies, *done])
        )
        assert by_dicts.reply().parts == by_bytes.reply().parts
        assert (by_dicts.finished, by_dicts.why) == (by_bytes.finished, by_bytes.why)


def test_sdk_objects_say_what_bytes_say() -> None:
    stream = chat.call_stream(
        [chat.call_start("ls", '{"path": ', 0, "call_a")],
        [chat.call_start("read", '{"path": "b"}', 1, "call_b")],
        [chat.call_delta('"a"}', 0)],
    )
    by_bytes = accumulated(stream).reply()
    create: Any = sdk_client(stream).chat.completions.create
    assert accumulated(*create(model="m", messages=[], stream=True)).reply().parts == by_bytes.parts
    with sdk_client(stream).chat.completions.stream(model="m", messages=[]) as events:
        assert accumulated(*events).reply().parts == by_bytes.parts


def test_objects_of_anthropics_sdk() -> None:
    stream = messages.sse(
        messages.message_start(),
        *messages.text_block(0, "I ", "look."),
        *messages.tool_use_block(1, '{"a"', ": 1}"),
        *messages.message_end("tool_use"),
    )
    by_bytes = accumulated(stream, wire="anthropic-messages").reply()
    assert len(by_bytes.parts) == 2
    with anthropic_client(stream).messages.stream(model="m", max_tokens=9, messages=[]) as events:
        by_helper = accumulated(*events, wire="anthropic-messages")
    assert (by_helper.reply().parts, by_helper.findings) == (by_bytes.parts, [])
    create: Any = anthropic_client(stream).messages.create
    by_events = accumulated(*create(model="m", max_tokens=9, messages=[], stream=True), wire="anthropic-messages")
    assert by_events.reply() == by_bytes


def test_whole_replies_are_taken_too() -> None:
    body = {
        "object": "chat.completion",
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
    }
    acc = accumulated(body, close=False)
    assert (acc.text, acc.finished) == ("Hi", True)


def test_native_text_is_read_as_calls() -> None:
    acc = accumulated(chat.text_stream(chat.FIELD_LOG, "reasoning_content"))
    assert acc.calls
    assert acc.finished
    assert "<|" not in acc.reasoning + acc.text


def test_choices_are_told_apart() -> None:
    both = [
        chat.chunk(chat.choice({"content": text}, index=n), model="m") for n, text in ((0, "a"), (1, "b"), (0, "c"))
    ]
    acc = accumulated(*both)
    assert (acc.reply(0).text, acc.reply(1).text, acc.text, acc.reply(7)) == ("ac", "b", "ac", il.Reply())


def test_misuse_is_told() -> None:
    acc = accumulated(b"")
    with pytest.raises(UsageError, match="closed"):
        acc.add({})
    with pytest.raises(UsageError, match="not int"):
        il.Accumulator().add(5)
    assert il.Accumulator().why == "nothing has come yet"


# ── properties ────────────────────────────────────────────────────────────────────────────────────────────────────────

ARGUMENTS = st.dictionaries(
    st.text(max_size=4), st.text(max_size=8) | st.integers() | st.none() | st.lists(st.booleans())
)


@st.composite
def interleavings(draw: st.DrawFn) -> tuple[list[str], list[dict[str, Any]]]:
    """Some calls, and their entries in any order that keeps each call's own. Calls are numbered as they begin."""
    texts = [
        json.dumps(one, ensure_ascii=draw(st.booleans())) for one in draw(st.lists(ARGUMENTS, min_size=1, max_size=4))
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
def test_any_interleaving_gives_the_same_calls(given: tuple[list[str], list[dict[str, Any]]]) -> None:
    arguments, entries = given
    acc = accumulated(*deltas(*([entry] for entry in entries)))
    assert acc.finished
    assert [call.arguments for call in acc.calls] == arguments
    assert [call.id for call in acc.calls] == [f"call_{n}" for n in range(len(arguments))]


@given(interleavings(), st.data())
def test_every_truncation_tells_which_calls_were_cut(
    given: tuple[list[str], list[dict[str, Any]]], data: st.DataObject
) -> None:
    arguments, entries = given
    kept = entries[: data.draw(st.integers(0, len(entries)))]
    acc = accumulated(*deltas(*([entry] for entry in kept), finish=None))
    came = {n: "".join(e["function"]["arguments"] for e in kept if e["index"] == n) for n in {e["index"] for e in kept}}
    assert not acc.finished or not any(came[n] != arguments[n] for n in came)
    assert {call.name: call.complete for call in acc.calls} == {
        f"t{n}": text == arguments[n] for n, text in came.items()
    }
    assert {call.name: call.arguments for call in acc.calls} == {f"t{n}": text for n, text in came.items()}


# ── bodies that are no events, or events that are no bodies ───────────────────────────────────────────────────────────

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
def test_a_whole_body_of_json(indent: int | None, before: str) -> None:
    body = before + json.dumps(WHOLE, indent=indent)
    for piece in (body, body.encode(), bytearray(body.encode())):
        acc = accumulated(piece, close=False)
        assert (acc.text, acc.finished, acc.findings) == ("Hi {you}", True, [])
    assert accumulated(*single_units(body.encode())).text == "Hi {you}"


def test_a_body_of_many_pieces_is_read_in_time() -> None:
    many = json.dumps({**WHOLE, "extra": [{}] * 50_000}).encode()
    acc = accumulated(*(many[at : at + 4] for at in range(0, len(many), 4)))
    assert acc.text == "Hi {you}"


def test_a_body_that_is_an_error() -> None:
    acc = accumulated(b'{"error": {"message": "no credits", ', b'"code": 402}}')
    assert (acc.finished, acc.why) == (False, "no credits")


def test_a_body_that_is_cut() -> None:
    acc = accumulated(json.dumps(WHOLE).encode()[:-9])
    assert (acc.finished, acc.calls) == (False, [])
    assert [finding.kind for finding in acc.findings] == ["bad-json"]


def test_a_body_that_is_too_long() -> None:
    acc = accumulated(b'{"a": "', b"x" * 2000, limits=il.Limits(event=1000))
    assert "a body of more than 1,000 bytes" in acc.why


def test_chunks_as_text() -> None:
    acc = accumulated(*map(json.dumps, STREAMED))
    assert (acc.text, acc.finished) == ("Hi {you}", True)


@pytest.mark.parametrize("blank", [True, False], ids=["with blank lines", "without"])
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
@pytest.mark.parametrize("as_bytes", [True, False])
def test_line_by_line(blank: bool, end: str, as_bytes: bool) -> None:
    lines = [line + end for line in (": hello", *LINES) if line or blank]
    acc = accumulated(*(line.encode() if as_bytes else line for line in lines))
    assert (acc.text, acc.finished, acc.findings) == ("Hi {you}", True, [])


def test_a_line_is_heard_at_once() -> None:
    acc = il.Accumulator()
    acc.add(LINES[0])
    assert acc.text == "Hi {"


def test_messages_line_by_line() -> None:
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hi"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ]
    lines = [line for one in events for line in (f"event: {one['type']}", f"data: {json.dumps(one)}", "")]
    acc = accumulated(*lines, wire="anthropic-messages")
    assert (acc.text, acc.finished) == ("Hi", True)
    acc = accumulated(*lines[:3], "event: error", "data: overloaded", "", wire="anthropic-messages")
    assert acc.why == "overloaded"


@given(st.lists(st.integers(0, 400), max_size=8), st.booleans())
def test_bytes_are_cut_anywhere_even_where_they_look_like_lines(cuts: list[int], empty: bool) -> None:
    text = 'data: {} event: x\ndata: {"a": 1} : {b}'
    body = b"".join(sse.encode_event(json.dumps(chunk)) for chunk in (
        chat.chunk(chat.choice({"content": text}), model="m"), chat.chunk(chat.choice({"content": text}, "stop")),
    )) + b"data: [DONE]\n\n"  # fmt: skip
    places = sorted({0, len(body), *(cut for cut in cuts if cut < len(body))})
    pieces = [body[start:end] for start, end in pairwise(places)]
    acc = accumulated(*(piece for one in pieces for piece in ((one, b"") if empty else (one,))))
    assert (acc.text, acc.finished, acc.findings) == (text + text, True, [])


OF_MESSAGES = [{"type": "message_start", "message": {}}, {"type": "message_stop"}]


@pytest.mark.parametrize(
    ("wire", "chunks"),
    [("openai-chat", OF_MESSAGES), ("openai-responses", OF_MESSAGES), ("anthropic-messages", STREAMED)],
)
def test_another_wire_is_told(wire: str, chunks: list[Any]) -> None:
    acc = accumulated(*chunks, wire=wire)
    assert not acc.finished
    assert f"no chunk is of {wire}" in acc.why
    assert "bad-chunk" in [finding.kind for finding in acc.findings]


def test_a_live_view_grows_with_the_reply() -> None:
    """Twice the tokens, and far from four times the work."""

    def seconds(count: int) -> float:
        acc = il.Accumulator()
        chunk = chat.chunk(chat.choice({"content": "word "}), model="m")
        call = chat.chunk(chat.choice({"tool_calls": [chat.call_delta("word ")]}), model="m")
        begun = time.process_time()
        for _ in range(count):
            acc.add(chunk)
            assert (acc.text[-1], acc.finished, acc.why) == (" ", False, "the reply has not ended")
        acc.add(chat.chunk(chat.choice({"tool_calls": [chat.call_start("w", '{"a": "', id="c")]}), model="m"))
        for _ in range(count):
            acc.add(call)
            assert (len(acc.calls), acc.finished) == (1, False)
        return time.process_time() - begun

    short, long = min(seconds(1000) for _ in range(3)), min(seconds(4000) for _ in range(3))
    assert long < 8 * short


# ── what the conversation goes on with ────────────────────────────────────────────────────────────────────────────────


def test_what_an_upstream_sends_beside_a_call_goes_back_to_it() -> None:
    beside = {"extra_content": {"google": {"thought_signature": "S"}}}
    acc = accumulated(*deltas([chat.call_start("f", '{"a": 1}', **beside)]))
    [said] = il.ToolBox().messages("openai-chat", acc.reply())
    assert said["tool_calls"] == [chat.without_keys(chat.call_start("f", '{"a": 1}', **beside), "index")]
    assert b"extra" not in msgspec.json.encode(il.Call("call_1", "f", "{}"))


def test_a_call_of_a_custom_tool_goes_back_as_one() -> None:
    call = {"id": "call_1", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}}
    acc = accumulated(*deltas([{"index": 0, **call}]))
    [said] = il.ToolBox().messages("openai-chat", acc.reply())
    assert said["tool_calls"] == [call]


def test_a_refusal_stays_in_the_conversation() -> None:
    refused = [chat.chunk(chat.choice({"refusal": "No."})), chat.chunk(chat.choice({}, "stop"))]
    reply = accumulated(*refused).reply()
    box = il.ToolBox()
    assert box.messages("openai-chat", reply) == [{"role": "assistant", "content": None, "refusal": "No."}]
    text = {"type": "text", "text": "No."}
    assert box.messages("anthropic-messages", reply) == [{"role": "assistant", "content": [text]}]
    assert box.messages("openai-responses", reply) == [{"type": "message", "role": "assistant", "content": "No."}]


def test_thinking_of_another_upstream_is_no_block_without_a_signature() -> None:
    sealed = Reasoning("Hm.", ev.Seal("openai-responses", {"encrypted_content": "E"}))
    reply = il.Reply(parts=[sealed, Text("Hi")])
    [said] = il.ToolBox().messages("anthropic-messages", reply)
    assert said["content"] == [{"type": "text", "text": "Hi"}]
