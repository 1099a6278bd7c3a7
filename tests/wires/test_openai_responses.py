"""Responses wire: all scenario streams, translated for clients of both OpenAI wires (strict readers and the SDK)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

import interlingua as il
from interlingua import events as ev
from interlingua.core.options import Limits, Options
from interlingua.core.reasoning_signatures import read_envelope
from interlingua.core.reply import Reasoning
from interlingua.core.tools import ToolSet
from interlingua.wires.openai_responses.custom_tool_text import MAX_WRAPPERS, CustomToolText
from interlingua.wires.openai_responses.emitter import ResponsesEmitter
from interlingua.wires.openai_responses.event_reader import ResponsesReader
from tests.support import chat_scenarios as chat
from tests.support import responses_clients as clients
from tests.support import sdk
from tests.support.cuts import single_units, two_piece_cuts
from tests.support.responses_scenarios import (
    CUSTOM_TOOLS,
    HELLO,
    NAMESPACE,
    PATCH,
    SCENARIOS,
    SEARCH,
    USAGE,
    ResponsesScenario,
    call_events,
    call_item,
    completed,
    custom_call_events,
    custom_call_item,
    item_event,
    message_events,
    message_item,
    output_item_event,
    reasoning_events,
    reasoning_item,
    response_event,
    response_stream,
)
from tests.support.sdk import ChoiceView, Json
from tests.translation.test_translate_reply import whole

CHAT, RESPONSES, MESSAGES = "openai-chat", "openai-responses", "anthropic-messages"
KEY = b"key"

each_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=str)


def translate(stream: bytes, source: str, target: str, pieces: list[bytes] | None = None, **options: Any) -> bytes:
    return run(stream, source, target, pieces, **options)[0]


def run(
    stream: bytes, source: str, target: str, pieces: list[bytes] | None = None, **options: Any
) -> tuple[bytes, list[str]]:
    translator = il.Translator(source, target, **options)
    out = b"".join(translator.feed(piece) for piece in pieces or [stream]) + translator.close()
    return out, [finding.kind for finding in translator.findings]


def translate_scenario(
    scenario: ResponsesScenario, target: str, pieces: list[bytes] | None = None
) -> tuple[bytes, list[str]]:
    return run(scenario.stream, RESPONSES, target, pieces, model=scenario.model, tools=scenario.tools)


# ── responses → chat ──────────────────────────────────────────────────────────────────────────────────────────────


def as_chat(scenario: ResponsesScenario) -> dict[int, ChoiceView]:
    """Return what a chat client gets: the text of a custom tool as arguments of a function, and flat names."""
    views = {}
    for index, view in scenario.expected.items():
        calls = [
            (
                id,
                "mcp__docs__list" if scenario.tools == [NAMESPACE] else name,
                args if args != PATCH else input_json(args),
            )
            for id, name, args in view.calls
        ]
        views[index] = ChoiceView(view.text, view.reasoning, view.refusal, calls, view.finish)
    return views


def input_json(text: str) -> str:
    return json.dumps({"input": text}, ensure_ascii=False, separators=(",", ":"))


@each_scenario
def test_stream_for_a_chat_client(scenario: ResponsesScenario) -> None:
    out, findings = translate_scenario(scenario, CHAT)
    view = sdk.read_strict(out)
    assert findings == scenario.findings
    assert (view.error or "") == scenario.error
    if not scenario.error:
        assert view.choices == as_chat(scenario)
        assert sdk.iterate(out).choices == as_chat(scenario)
        assert view.done


@pytest.mark.one_row_in(4)
@each_scenario
@pytest.mark.parametrize("limit", [8, pytest.param(40, marks=pytest.mark.slow)])
def test_result_does_not_depend_on_cuts(scenario: ResponsesScenario, limit: int) -> None:
    for target in (CHAT, RESPONSES):
        expected = translate_scenario(scenario, target)
        for pieces in (single_units(scenario.stream), *two_piece_cuts(scenario.stream, limit)):
            assert translate_scenario(scenario, target, pieces) == expected, pieces


# ── responses → responses ─────────────────────────────────────────────────────────────────────────────────────────


@each_scenario
def test_stream_for_a_client_on_the_same_wire(scenario: ResponsesScenario) -> None:
    out, findings = translate_scenario(scenario, RESPONSES)
    assert findings == scenario.findings
    if scenario.untouched:
        assert out == scenario.stream
        return
    end = clients.frames(out)[-1]
    assert (end["response"]["error"] or {}).get("message", "") == scenario.error
    numbers = [frame["sequence_number"] for frame in clients.frames(out)]
    assert numbers == list(range(len(numbers)))
    assert len({frame["response"]["id"] for frame in clients.frames(out) if "response" in frame}) == 1
    if "not-translated" not in findings:
        view = clients.read_strict(out)
        assert view.choices == ({} if scenario.error else scenario.expected)
    if not scenario.error:
        assert end["response"]["tools"] == [{"x": 1}], "unknown fields are kept"


@each_scenario
def test_own_output_is_passed_through(scenario: ResponsesScenario) -> None:
    out, _ = translate_scenario(scenario, RESPONSES)
    if not scenario.error:
        assert translate(out, RESPONSES, RESPONSES, model="gpt-9", tools=scenario.tools) == out


@pytest.mark.parametrize("scenario", [scenario for scenario in SCENARIOS if scenario.untouched], ids=str)
def test_rewriting_may_start_at_any_event(scenario: ResponsesScenario) -> None:
    """After any number of passed-through events, the rewritten rest completes the same reply."""
    chunks = [json.loads(data) for data in sdk.events(scenario.stream)]
    for passed in range(len(chunks)):
        reader, emitter = ResponsesReader(), ResponsesEmitter(tool_set=ToolSet(scenario.tools))
        out = b""
        for n, chunk in enumerate(chunks):
            read = reader.read(chunk)
            if n < passed:
                out += emitter.forward(chunk, sse_frame(chunk)) or b""
            else:
                out += emitter.emit([(choice.index, choice.events) for choice in read.choices], read.common, chunk)
        out += emitter.finish()
        if scenario.findings:  # the scenario has an item that only this wire supports
            numbers = [frame["sequence_number"] for frame in clients.frames(out)]
            assert numbers == list(range(len(numbers)))
            assert clients.frames(out)[-1]["response"]["output"] == chunks[-1]["response"]["output"]
        else:
            assert without_separators(clients.read_strict(out).choices) == without_separators(scenario.expected), passed
            assert without_separators(clients.iterate(out).choices) == without_separators(scenario.expected), passed


def without_separators(choices: dict[int, ChoiceView]) -> list[ChoiceView]:
    """Remove the separators between reasoning parts, which may be merged into one part."""
    return [replace(view, reasoning=view.reasoning.replace("\n\n", "")) for view in choices.values()]


def sse_frame(chunk: Json) -> bytes:
    return f"event: {chunk['type']}\ndata: {json.dumps(chunk)}\n\n".encode()


def test_other_items_keep_their_index_when_a_message_is_rewritten() -> None:
    scenario = next(scenario for scenario in SCENARIOS if scenario.name == "native text among other items")
    rewritten = clients.frames(translate_scenario(scenario, RESPONSES)[0])
    added = [frame["item"] for frame in rewritten if frame["type"] == "response.output_item.added"]
    assert [item["type"] for item in added] == ["web_search_call", "message", "function_call", "message"]
    assert [item.get("id") for item in added[:2]] == ["ws_1", "msg_1"]
    assert added[1]["phase"] == "commentary"
    assert added[3]["id"] == "msg_2"
    output = rewritten[-1]["response"]["output"]
    assert [item["type"] for item in output] == [item["type"] for item in added]
    assert [frame["output_index"] for frame in rewritten if "item" in frame] == [0, 0, 1, 1, 2, 2, 3, 3]


def test_item_of_another_type_after_rewritten_text() -> None:
    later = [{**event, "output_index": 1} for event in SEARCH]
    stream = response_stream(message_events(["a<"]), later, message_events(["b"], 2, "msg_2"))
    rewritten = clients.frames(translate(stream, RESPONSES, RESPONSES, model=chat.KIMI))
    places = [(frame["type"].split(".", 1)[1], frame["output_index"]) for frame in rewritten if "output_index" in frame]
    assert ("web_search_call.searching", 1) in places
    assert [item["id"] for item in rewritten[-1]["response"]["output"]] == ["msg_1", "ws_1", "msg_2"]


def test_call_with_a_taken_id_is_rewritten() -> None:
    stream = response_stream(message_events(["x"]), call_events(['{"a": 1}'], 1))
    out = translate(stream, RESPONSES, RESPONSES, model="gpt-9", options=Options(taken_ids=("call_1",)))
    assert clients.read_strict(out).choices[0].calls == [("call_1_2", "f", '{"a": 1}')]
    assert out[: out.index(b"function_call")].startswith(stream[: stream.index(b"response.output_item.done")])


def test_native_reasoning_keeps_its_encrypted_content() -> None:
    stream = response_stream(
        message_events(["<"]), [output_item_event("done", 1, reasoning_item("a", encrypted_content="ENC"))]
    )
    out = translate(stream, RESPONSES, RESPONSES, model=chat.KIMI)
    (item,) = [item for item in clients.frames(out)[-1]["response"]["output"] if item["type"] == "reasoning"]
    assert item["encrypted_content"] == "ENC"


def test_served_as_replaces_the_model_name() -> None:
    options = Options(served_as="mine")
    for stream in (response_stream(HELLO), response_stream(message_events(["a<"]))):
        out = translate(stream, RESPONSES, RESPONSES, model=chat.KIMI, options=options)
        assert {frame["response"]["model"] for frame in clients.frames(out) if "response" in frame} == {"mine"}
        clients.read_strict(out)


# ── chat → responses ──────────────────────────────────────────────────────────────────────────────────────────────

SINGLE_CHOICE_SCENARIOS = [scenario for scenario in chat.SCENARIOS if set(scenario.expected) <= {0}]
each_chat = pytest.mark.parametrize("scenario", SINGLE_CHOICE_SCENARIOS, ids=str)


def from_chat(scenario: chat.ChatScenario, pieces: list[bytes] | None = None) -> tuple[bytes, list[str]]:
    options = scenario.options or Options()
    return run(scenario.stream, CHAT, RESPONSES, pieces, tools=scenario.tools, options=options)


@each_chat
def test_stream_from_chat(scenario: chat.ChatScenario) -> None:
    out, findings = from_chat(scenario)
    view = clients.read_strict(out)
    # Unlike a chat client, a Responses client gets an error for an empty reply.
    assert bool(view.error) == bool(scenario.error or not scenario.expected)
    assert scenario.error in (view.error or "")
    assert findings == scenario.findings
    if not scenario.error:
        assert view.choices == scenario.expected


@pytest.mark.one_row_in(4)
@each_chat
def test_sdk_reads_stream_from_chat(scenario: chat.ChatScenario) -> None:
    out, _ = from_chat(scenario)
    view = clients.iterate(out)
    assert scenario.error in (view.error or "")
    if scenario.error or not scenario.expected:
        return
    expected, actual = scenario.expected[0], view.choices[0]
    assert (actual.text, actual.reasoning, actual.refusal) == (expected.text, expected.reasoning, expected.refusal)
    assert actual.calls == [call for call in expected.calls if call in actual.calls]
    assert actual.finish == expected.finish or expected.finish == "length", "a truncated call is not done"
    if expected.finish in ("stop", "tool_calls"):
        tools = [
            {"type": "function", "name": name, "parameters": {}} for name in {name for _, name, _ in expected.calls}
        ]
        assert clients.accumulate(out, tools).choices == {0: expected}


@each_chat
def test_whole_reply_from_chat_equals_stream(scenario: chat.ChatScenario) -> None:
    if not scenario.has_body or scenario.error:
        return
    body = il.translate_reply(
        whole(scenario.stream), CHAT, RESPONSES, tools=scenario.tools, options=scenario.options or Options()
    )
    assert clients.view_of_response(body).choices == scenario.expected


@pytest.mark.parametrize("scenario", SINGLE_CHOICE_SCENARIOS[::7], ids=str)
def test_stream_from_chat_does_not_depend_on_cuts(scenario: chat.ChatScenario) -> None:
    expected = from_chat(scenario)
    for pieces in (single_units(scenario.stream), *two_piece_cuts(scenario.stream, 40)):
        assert from_chat(scenario, pieces) == expected, pieces


# ── Codex tools ───────────────────────────────────────────────────────────────────────────────────────────────────


def chat_call_stream(name: str, *pieces: str) -> bytes:
    """Return the stream of a chat upstream that calls a function."""
    return chat.call_stream([chat.call_start(name)], *([chat.call_delta(piece)] for piece in pieces))


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_function_call_is_sent_as_the_offered_custom_tool(size: int) -> None:
    args = input_json(PATCH)
    stream = chat_call_stream("apply_patch", *(args[n : n + size] for n in range(0, len(args), size)))
    out = translate(stream, CHAT, RESPONSES, tools=CUSTOM_TOOLS)
    assert clients.read_strict(out).choices == chat.expected_choice(("call_1", "apply_patch", PATCH))
    assert clients.accumulate(out, CUSTOM_TOOLS).choices == chat.expected_choice(("call_1", "apply_patch", PATCH))
    (done,) = [frame["item"] for frame in clients.frames(out) if frame["type"] == "response.output_item.done"]
    assert done["type"] == "custom_tool_call"
    deltas = [frame["delta"] for frame in clients.frames(out) if frame["type"].endswith("input.delta")]
    assert "".join(deltas) == PATCH
    assert size == 1000 or len(deltas) > 5, "the text is streamed"


def test_flat_name_is_sent_with_its_namespace() -> None:
    out = translate(chat_call_stream("mcp__docs__list", "{}"), CHAT, RESPONSES, tools=[NAMESPACE])
    (done,) = [frame["item"] for frame in clients.frames(out) if frame["type"] == "response.output_item.done"]
    assert (done["name"], done["namespace"], done["type"]) == ("list", "mcp__docs", "function_call")


def test_truncated_custom_tool_call_is_not_done() -> None:
    out = translate(
        chat.call_stream([chat.call_start("apply_patch", '{"input": "*** Be')], finish="length"),
        CHAT,
        RESPONSES,
        tools=CUSTOM_TOOLS,
    )
    assert clients.read_strict(out).choices == chat.expected_choice(
        ("call_1", "apply_patch", "*** Be"), finish="length"
    )
    assert b"response.output_item.done" not in out
    assert b"response.custom_tool_call_input.done" not in out


FENCED = f"```patch\n{PATCH}\n```\n"
HEREDOC = f"apply_patch <<'EOF'\n{PATCH}\nEOF"
CUSTOM_TOOL_TEXTS: dict[str, tuple[str, str, bool]] = {
    "correct": (input_json(PATCH), PATCH, False),
    "escaped": (json.dumps({"input": PATCH}), PATCH, False),
    "spaces": ('\n{ "input" :\t"a" }\n', "a", False),
    "empty": ('{"input": ""}', "", False),
    "patch": (json.dumps({"patch": PATCH}), PATCH, True),
    "code": ('{"code": "1 + 1"}', "1 + 1", True),
    "another key": ('{"text": "a"}', "a", True),
    "behind another key": ('{"x": 1, "input": "a"}', "a", True),
    "before another key": ('{"input": "a", "x": 1}', "a", True),
    "a bare string": (json.dumps(PATCH), PATCH, True),
    "no JSON": (PATCH, PATCH, True),
    "long, and no JSON": (PATCH * 10, PATCH * 10, True),
    "nothing": ("{}", "", True),
    "no text": ('{"input": 5}', '{"input": 5}', True),
    "a fence": (input_json(FENCED), PATCH, True),
    "a heredoc": (input_json(HEREDOC), PATCH, True),
    "a heredoc in a fence": (input_json(f"```\n{HEREDOC}\n```"), PATCH, True),
    "a bare fence": (FENCED, PATCH, True),
    "a fence around no patch": (input_json("```js\n1\n```"), "```js\n1\n```", False),
    "nearly a fence": (input_json("``"), "``", False),
    "no escapes": ('{"input": "\\\\d \\d \\u00zz"}', "\\d \\d \\u00zz", False),
    "half a character": ('{"input": "\\ud83d"}', "\ufffd", False),
}


@pytest.mark.parametrize(("args", "text", "guessed"), CUSTOM_TOOL_TEXTS.values(), ids=CUSTOM_TOOL_TEXTS)
def test_custom_tool_text(args: str, text: str, guessed: bool) -> None:
    for pieces in ([args], list(args), *two_piece_cuts(args, 200)):
        tool_text = CustomToolText()
        extracted = "".join(map(tool_text.feed, pieces)) + tool_text.end()
        assert (extracted, bool(tool_text.note)) == (text, guessed), pieces


def test_wrappers_of_a_patch_are_removed_up_to_a_limit() -> None:
    for count, kept in ((MAX_WRAPPERS, 0), (MAX_WRAPPERS + 1, 1)):
        tool_text = CustomToolText()
        patch = "```\n" * count + PATCH + "\n```" * count
        extracted = tool_text.feed(json.dumps({"input": patch})) + tool_text.end()
        assert extracted == (patch if kept else PATCH)


def test_guessed_input_is_a_finding() -> None:
    emitter = ResponsesEmitter(tool_set=ToolSet(CUSTOM_TOOLS))
    start = ev.CallStart(0, "call_1", "apply_patch")
    emitter.emit([(0, [start, ev.ArgsDelta(0, '{"patch": "a"}'), ev.CallEnd(0)])])
    assert [finding.kind for finding in emitter.findings] == ["guessed-input"]


# ── reasoning ─────────────────────────────────────────────────────────────────────────────────────────────────────


def signed_reasoning(out: bytes) -> list[Reasoning | None]:
    items = clients.frames(out)[-1]["response"]["output"]
    return [read_envelope(item["encrypted_content"], KEY) for item in items if item["type"] == "reasoning"]


def test_reasoning_from_chat_is_signed() -> None:
    stream = chat.sse(
        chat.chunk(chat.choice({"role": "assistant", "reasoning_content": "a"})),
        chat.chunk(chat.choice({"reasoning_content": "b"})),
        chat.chunk(chat.choice({"content": "x"}, "stop")),
    )
    out = translate(stream, CHAT, RESPONSES, options=Options(seal_key=KEY))
    assert signed_reasoning(out) == [Reasoning("ab", ev.Seal(CHAT, {}))]


def test_upstream_signature_is_signed_with_the_reasoning() -> None:
    detail = {"type": "reasoning.text", "text": "a", "signature": "S"}
    stream = chat.sse(
        chat.chunk(chat.choice({"role": "assistant", "reasoning_details": [detail]})),
        chat.chunk(chat.choice({"reasoning_details": [{"type": "reasoning.encrypted", "data": "D"}]})),
        chat.chunk(chat.choice({}, "stop")),
    )
    out = translate(stream, CHAT, RESPONSES, options=Options(seal_key=KEY))
    assert clients.read_strict(out).choices == chat.expected_choice(reasoning="a", finish="stop")
    first, second = signed_reasoning(out)
    assert first == Reasoning("a", ev.Seal(CHAT, {"reasoning_details": [chat.without_keys(detail, "text")]}))
    assert second is not None
    assert second.text == ""


def test_encrypted_reasoning_is_read_with_its_id() -> None:
    reader = ResponsesReader()
    events = [
        event
        for chunk in number_events(reasoning_events([["a"]], encrypted_content="ENC"))
        for event in chunk_events(reader, chunk)
    ]
    assert events[1:] == [ev.ReasoningDelta("a"), ev.Seal(RESPONSES, {"encrypted_content": "ENC", "id": "rs_1"})]


# ── reader ────────────────────────────────────────────────────────────────────────────────────────────────────────


def number_events(events: list[Json]) -> list[Json]:
    """Add `response.created` and the sequence numbers."""
    return [{**event, "sequence_number": n} for n, event in enumerate([response_event("created"), *events])]


def chunk_events(reader: ResponsesReader, chunk: Json) -> list[ev.Event]:
    read = reader.read(chunk)
    return [event for choice in read.choices for event in choice.events] + read.common


START = ev.CallStart(0, "call_1", "f")
USAGE_EVENT = ev.Usage(11, 5, 3, 2, USAGE)
CITED = {
    **message_item("Hello"),
    "content": [{**message_item("Hello")["content"][0], "annotations": [{"type": "url_citation"}]}],
}
ANNOTATED = item_event("output_text.annotation.added", 0, "msg_1", content_index=0, annotation={"type": "url_citation"})
EVENTS: dict[str, tuple[list[Json], list[Any], bool]] = {
    "in progress": ([response_event("in_progress")], [], True),
    "created again": ([response_event("created")], [], False),
    "no item": ([{"type": "response.output_item.added"}], ["bad-chunk"], False),
    "no text": ([item_event("output_text.delta", 0, "x", content_index=0, delta=None)], ["bad-chunk"], False),
    "a call": ([output_item_event("added", 0, call_item(""))], [START], True),
    "a call in a namespace": (
        [output_item_event("added", 0, call_item("", namespace="mcp__docs"))],
        [ev.CallStart(0, "call_1", "mcp__docs__f")],
        True,
    ),
    "a custom call": (
        custom_call_events(['a"', "b"], name="f"),
        [START, *(ev.ArgsDelta(0, text) for text in ('{"input":"', 'a\\"', "b", '"}')), ev.CallEnd(0)],
        True,
    ),
    "a call without a name": (
        [output_item_event("done", 0, {**call_item("{}"), "name": None})],
        ["call-without-name", ev.TextDelta("{}")],
        False,
    ),
    "arguments before the name": (
        [
            item_event("function_call_arguments.delta", 0, "fc_1", delta="{"),
            item_event("function_call_arguments.delta", 0, "fc_1", delta="}"),
            output_item_event("done", 0, call_item("{}")),
        ],
        [START, ev.ArgsDelta(0, "{}"), ev.CallEnd(0)],
        False,
    ),
    "an incomplete call": (
        call_events(['{"a'], status="incomplete"),
        [START, ev.ArgsDelta(0, '{"a'), "cut-short", ev.CallEnd(0, complete=False)],
        True,
    ),
    "content as text": (
        [output_item_event("done", 0, {**message_item(""), "content": "a"})],
        [ev.TextDelta("a")],
        False,
    ),
    "an unknown item": (SEARCH, ["not-translated"], True),
    "an item whose type is not a string": (
        [output_item_event("added", 0, {"type": ["x"], "id": "x_1"})],
        ["not-translated"],
        True,
    ),
    "an unknown event": ([{"type": "response.rate_limits", "x": 1}] * 2, ["not-translated"], True),
    "an event without a type": ([{"x": 1}], ["not-translated"], True),
    "a keepalive": ([{"type": "keepalive"}], [], True),
    "annotations": (
        [*HELLO[:-1], ANNOTATED, output_item_event("done", 0, CITED)],
        [ev.TextDelta("Hel"), ev.TextDelta("lo"), "not-translated"],
        True,
    ),
    "annotations, in the item": (
        [*HELLO[:-1], output_item_event("done", 0, CITED)],
        [ev.TextDelta("Hel"), ev.TextDelta("lo"), "not-translated"],
        True,
    ),
    "completed": ([completed()], [ev.Stop("stop"), USAGE_EVENT], True),
    "completed, of another response": ([completed(id="resp_2")], [ev.Stop("stop"), USAGE_EVENT], False),
    "completed, without usage": ([completed(usage=None)], [ev.Stop("stop")], True),
}


@pytest.mark.parametrize(("chunks", "events", "exact"), EVENTS.values(), ids=EVENTS)
def test_reader_events(chunks: list[Json], events: list[Any], exact: bool) -> None:
    reader = ResponsesReader(Limits())
    first, *rest = number_events(chunks)
    assert chunk_events(reader, first) == [ev.Begin("resp_1", "gpt-9", 1763198400)]
    events_read: list[Any] = []
    untouched = True
    for chunk in rest:
        read = reader.read(chunk)
        untouched &= read.exact
        events_read += [event for choice in read.choices for event in choice.events] + read.common
    assert [event.kind if isinstance(event, ev.Finding) else event for event in events_read] == events
    assert untouched == exact


# ── emitter ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_order_of_events_in_a_stream() -> None:
    out = translate(chat.text_stream(["a"]), CHAT, RESPONSES)
    assert [frame["type"].removeprefix("response.") for frame in clients.frames(out)] == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]


def test_envelope_and_usage() -> None:
    emitter = ResponsesEmitter(Options(served_as="mine", created=7))
    emitter.emit([(0, [ev.Begin("gen-1", "theirs"), ev.Stop("stop")])], [ev.Usage(9, 8, 7, 6, {}, 5)])
    (end,) = clients.frames(emitter.finish())
    body = end["response"]
    assert (body["model"], body["created_at"], body["status"], body["output"]) == ("mine", 7, "completed", [])
    assert body["usage"] == {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 7, "cache_write_tokens": 5},
        "output_tokens": 8,
        "output_tokens_details": {"reasoning_tokens": 6},
        "total_tokens": 17,
    }
    assert body["id"].startswith("resp_")


def test_derived_ids_are_deterministic_and_differ_between_replies() -> None:
    def ids(stream: bytes) -> list[str]:
        response = clients.frames(translate(stream, CHAT, RESPONSES))[-1]["response"]
        return [response["id"], *(item["id"] for item in response["output"])]

    first = ids(chat.text_stream(["a"]))
    assert first == ids(chat.text_stream(["a"]))
    assert not set(first) & set(ids(chat.text_stream(["a"]).replace(b"gen-1", b"gen-2")))


CODES: dict[str, tuple[ev.Failure, str]] = {
    "nothing known": (ev.Failure("boom"), "server_error"),
    "its own code": (ev.Failure("boom", code="insufficient_quota"), "insufficient_quota"),
    "too long, in words": (
        ev.Failure("This model's maximum context length is 8192 tokens", "invalid_request_error", 400),
        "context_length_exceeded",
    ),
    "rate": (ev.Failure("slow", "rate_limit_error"), "rate_limit_exceeded"),
    "status": (ev.Failure("slow", code=429), "rate_limit_exceeded"),
    "overloaded": (ev.Failure("busy", "overloaded_error"), "server_is_overloaded"),
    "bad request": (ev.Failure("no", "invalid_request_error"), "invalid_prompt"),
    "billing": (ev.Failure("no", code=402), "insufficient_quota"),
}


@pytest.mark.parametrize(("failure", "code"), CODES.values(), ids=CODES)
def test_error_codes(failure: ev.Failure, code: str) -> None:
    out = ResponsesEmitter().fail(failure)
    assert clients.read_strict(out).error == failure.message
    assert clients.frames(out)[-1]["response"]["error"]["code"] == code


# ── whole bodies ──────────────────────────────────────────────────────────────────────────────────────────────────


def body(*output: Json, **fields: Any) -> Json:
    response: Json = completed(*output, **fields)["response"]
    return response


OUTPUT = (
    reasoning_item("a", "b", encrypted_content="ENC"),
    message_item("x", phase="final_answer"),
    SEARCH[-1]["item"],
    call_item('{"a": 1}'),
)


def test_unchanged_body_is_returned_as_is() -> None:
    for reply in (body(*OUTPUT), body(custom_call_item("x")), {"error": {"message": "boom"}}, {"object": "list"}):
        assert il.translate_reply(reply, RESPONSES, RESPONSES) is reply
    renamed = il.translate_reply(body(*OUTPUT), RESPONSES, RESPONSES, options=Options(served_as="mine"))
    assert renamed == {**body(*OUTPUT), "model": "mine"}


def test_rewritten_body_keeps_unknown_fields_and_items() -> None:
    options = Options(taken_ids=("call_1",))
    rewritten = il.translate_reply(body(*OUTPUT), RESPONSES, RESPONSES, options=options)
    assert rewritten["output"][:3] == list(OUTPUT[:3])
    assert rewritten["output"][3]["call_id"] == "call_1_2"
    assert rewritten["tools"] == [{"x": 1}]
    assert rewritten["usage"] == USAGE


@each_scenario
def test_whole_body_equals_stream(scenario: ResponsesScenario) -> None:
    """The response in the final event is a body that translates to the same chat reply."""
    if scenario.error:
        return
    out, _ = translate_scenario(scenario, RESPONSES)
    response = clients.frames(out)[-1]["response"]
    translator = il.Translator(RESPONSES, CHAT, model="gpt-9", tools=scenario.tools)
    (choice,) = translator.reply(response)["choices"]
    expected = as_chat(scenario)[0]
    assert (choice["message"]["content"] or "") == expected.text
    assert choice["message"].get("refusal") or expected.refusal == ""
    assert choice["finish_reason"] == expected.finish
    functions = [call["function"] for call in choice["message"].get("tool_calls", ())]
    assert [(function["name"], function["arguments"]) for function in functions] == [
        call[1:] for call in expected.calls
    ]


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ({"error": {"message": "boom", "code": "x"}}, "boom"),
        (body(status="failed", error={"message": "boom"}), "boom"),
        ({"object": "list"}, "the upstream's response has no reply in it"),
        *(
            (body(message_item("Hel"), status=status), f"the response holds no reply: its status is {status}")
            for status in ("failed", "cancelled", "queued", "in_progress")
        ),
    ],
)
def test_body_without_a_reply_is_an_error(reply: Json, message: str) -> None:
    assert il.translate_reply(reply, RESPONSES, CHAT)["error"]["message"] == message
    assert il.translate_reply(reply, RESPONSES, MESSAGES)["error"]["message"] == message
    assert il.translate_reply(reply, RESPONSES, RESPONSES) is reply


@pytest.mark.parametrize(
    ("reply", "source"),
    [
        ({"choices": [{"message": {"content": "a\ud83d"}, "finish_reason": "stop"}]}, CHAT),
        ({"type": "message", "content": [{"type": "text", "text": "a\ud83d"}], "stop_reason": "end_turn"}, MESSAGES),
    ],
)
def test_lone_surrogate_in_a_body_is_dropped(reply: Json, source: str) -> None:
    translated = il.translate_reply(reply, source, RESPONSES)
    assert translated["output"][0]["content"][0]["text"] == "a"  # dropped, as in a stream


def test_error_body_for_a_responses_client() -> None:
    translated = il.translate_reply({"error": {"message": "boom", "type": "rate_limit_error"}}, CHAT, RESPONSES)
    assert translated == {
        "error": {"type": "rate_limit_error", "param": None, "code": "rate_limit_exceeded", "message": "boom"}
    }
