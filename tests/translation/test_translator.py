"""Streams through a Translator: however they are cut or broken off, a client understands the same, and never chokes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

import interlingua as il
from interlingua import trace
from interlingua.core.options import Limits, ReasoningPolicy
from interlingua.dialects.registry import get_dialect
from interlingua.errors import UnknownWire, UsageError
from interlingua.wires.streaming.sse import encode_event
from tests.support import sdk
from tests.support.chat_scenarios import (
    ARGS,
    BYE,
    CALL,
    CLOSE,
    END,
    HI,
    KIMI,
    SCENARIOS,
    SECTION,
    SECTION_OF_PARIS,
    USAGE,
    ChatScenario,
    call_delta,
    call_start,
    call_stream,
    choice,
    chunk,
    sse,
    text_stream,
    without_keys,
)
from tests.support.cuts import cut_positions, random_pieces, single_units, two_piece_cuts
from tests.support.growth import check_growth
from tests.support.sdk import ChoiceView, Json, StreamView, read_strict

MARKERS = [marker for marker in get_dialect("kimi_k2").markers if "|" in marker]
HI_KIMI = chunk(choice({"role": "assistant", "content": ""}))
each_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=str)


def translate(scenario: ChatScenario, parts: Iterable[bytes]) -> tuple[bytes, list[str]]:
    translator = il.Translator(tools=scenario.tools, options=scenario.options)
    out = b"".join([*map(translator.feed, parts), translator.close()])
    return out, [finding.kind for finding in translator.findings]


def check_end(heard: StreamView) -> None:
    assert heard.done != (heard.error is not None), "a stream ends with [DONE] or with an error"


def check_no_leak(heard: StreamView) -> None:
    for said in heard.choices.values():
        assert not [marker for marker in MARKERS if marker in said.text + said.reasoning], said


@each_scenario
def test_scenario(scenario: ChatScenario) -> None:
    out, findings = translate(scenario, [scenario.stream])
    heard = read_strict(out)
    assert heard.choices == scenario.expected, out.decode()
    assert heard.usage == scenario.usage
    assert scenario.error in (heard.error or "") if scenario.error else heard.error is None, heard.error
    assert findings == scenario.findings
    assert (out == scenario.stream) == scenario.untouched, out.decode()
    check_end(heard)
    check_no_leak(heard)


@pytest.mark.one_row_in(4)
@each_scenario
@pytest.mark.parametrize("limit", [20, pytest.param(150, marks=pytest.mark.slow)])
def test_however_it_is_cut(scenario: ChatScenario, limit: int) -> None:
    stream = scenario.stream
    cuts = [single_units(stream), *two_piece_cuts(stream, limit), *(random_pieces(stream, seed) for seed in range(10))]
    expected = translate(scenario, [stream])
    for cut in cuts:
        out, findings = translate(scenario, cut)
        if scenario.untouched:
            assert out == stream
        assert read_strict(out) == read_strict(expected[0]), cut
        assert findings == expected[1], cut


@pytest.mark.one_row_in(4)
@each_scenario
def test_broken_off_anywhere(scenario: ChatScenario) -> None:
    stream = scenario.stream
    messages = [at + 2 for at in range(len(stream)) if stream.startswith(b"\n\n", at)]
    for at in {*messages, *cut_positions(stream, 50)}:
        out, _ = translate(scenario, [stream[:at]])
        heard = read_strict(out)
        check_end(heard)
        check_no_leak(heard)
        for index, said in heard.choices.items():
            whole = scenario.expected[index]
            if not scenario.findings:  # nothing had to be mended with hindsight: what was said stays said
                assert whole.text.startswith(said.text), at
                assert [call[:2] for call in said.calls] == [call[:2] for call in whole.calls][: len(said.calls)], at


# ── the official SDK ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.one_row_in(2)
@each_scenario
def test_sdk_iterates(scenario: ChatScenario) -> None:
    out, _ = translate(scenario, [scenario.stream])
    heard = read_strict(out)
    if heard.unreadable:  # it was not ours to hide
        with pytest.raises(json.JSONDecodeError):
            sdk.iterate(out)
    else:
        assert sdk.iterate(out) == heard


# The helper takes no stream that failed, none cut by a limit once tools were offered, and none with an event to skip.
ACCUMULATED = [
    scenario
    for scenario in SCENARIOS
    if scenario.expected
    and not scenario.error
    and scenario.name not in ("not JSON", "arguments over the limit")
    and all(said.finish != "length" for said in scenario.expected.values())
]


@pytest.mark.one_row_in(3)
@pytest.mark.parametrize("strict", [True, False], ids=["strict", "not strict"])
@pytest.mark.parametrize("scenario", ACCUMULATED, ids=str)
def test_sdk_accumulates(scenario: ChatScenario, strict: bool) -> None:
    out, _ = translate(scenario, [scenario.stream])
    names = {name for said in scenario.expected.values() for _, name, _ in said.calls}
    assert sdk.accumulate(out, sdk.function_tools(names, strict)) == read_strict(out)


# ── what goes out, to the letter ──────────────────────────────────────────────────────────────────────────────────


def sent(*chunks: dict[str, object] | str, done: bool = True) -> list[dict[str, object]]:
    translator = il.Translator()
    return sdk.frames(translator.feed(sse(*chunks, done=done)) + translator.close())


def test_what_we_do_not_know_is_kept() -> None:
    """Once, where it was, with the first frame that is made of its chunk."""
    given = choice(
        {"role": "assistant", "content": "<think>a</think>b", "audio": {"x": 1}}, logprobs={"content": []}, seen=None
    )
    frames = sent(chunk(given, system_fingerprint="fp", provider="Moonshot AI", citations=[1], nothing=None), BYE)
    head = {**chunk(), "system_fingerprint": "fp", "provider": "Moonshot AI"}
    first = {"index": 0, "logprobs": {"content": []}, "seen": None, "finish_reason": None}
    then = {"index": 0, "seen": None, "finish_reason": None}
    thought = {"role": "assistant", "content": "", "audio": {"x": 1}, "reasoning_content": "a"}
    assert frames[:2] == [
        {**head, "choices": [{**first, "delta": thought}], "citations": [1]},
        {**head, "choices": [{**then, "delta": {"content": "b"}}]},
    ]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        pytest.param({"audio": {"x": 1}}, {"delta": {"audio": {"x": 1}}}, id="in the delta"),
        pytest.param(
            {"reasoning_details": [{"data": "AbC"}]},
            {"delta": {"reasoning_details": [{"data": "AbC"}]}},
            id="encrypted",
        ),
    ],
)
def test_what_stands_beside_held_text_is_not_held(given: dict[str, object], kept: dict[str, object]) -> None:
    frames = sent(HI_KIMI, chunk(choice({"content": "<|tool_", **given})), done=False)
    assert frames[1] == chunk({"index": 0, **kept, "finish_reason": None})


def test_what_a_chunk_says_beside_held_text_is_not_held() -> None:
    frames = sent(HI_KIMI, chunk(choice({"content": "<|tool_"}), usage=USAGE, citations=[1]), done=False)
    assert frames[1] == chunk(choice({}), usage=USAGE, citations=[1])


def test_what_vouches_for_thinking_stands_behind_all_of_it() -> None:
    text, signature = {"type": "reasoning.text", "text": "a <|tool_", "index": 0}, {"signature": "S", "index": 0}
    frames = sent(HI_KIMI, chunk(choice({"reasoning_details": [text, signature]})), chunk(choice({"content": "b"})))
    deltas = [frame["choices"][0]["delta"] for frame in frames[1:5]]  # type: ignore[index]
    assert deltas == [
        {"reasoning_details": [{**text, "text": "a "}]},
        {"reasoning_details": [{**text, "text": "<|tool_"}]},
        {"reasoning_details": [signature]},
        {"content": "b"},
    ]


def test_thinking_goes_out_in_the_fields_that_it_came_in() -> None:
    frames = sent(HI_KIMI, chunk(choice({"reasoning": "a <"})), chunk(choice({"reasoning_content": "b <"})), done=False)
    deltas = [frame["choices"][0]["delta"] for frame in frames[1:-1]]  # type: ignore[index]
    assert deltas == [{"reasoning": "a "}, {"reasoning_content": "<b "}, {"reasoning_content": "<"}]


def test_a_call_goes_out_piece_by_piece() -> None:
    text = SECTION + CALL + "functions.f:0<|tool_call_argument_begin|>"
    frames = sent(
        HI_KIMI, *(chunk(choice({"content": piece})) for piece in (text, '{"a"', ": 1}")), chunk(choice({}, "stop"))
    )
    deltas = [(frame["choices"][0]["delta"], frame["choices"][0]["finish_reason"]) for frame in frames[1:]]  # type: ignore[index]
    begin = {"index": 0, "id": "functions.f:0", "type": "function", "function": {"name": "f", "arguments": ""}}
    assert deltas == [
        ({"tool_calls": [begin]}, None),
        ({"tool_calls": [call_delta('{"a"')]}, None),
        ({"tool_calls": [call_delta(": 1}")]}, None),
        ({}, "tool_calls"),
    ]


def test_extra_fields_of_a_call_go_with_its_start() -> None:
    given = call_start("f", '{"a": 1}', id=None, extra_content={"google": {"thought_signature": "S"}})
    given["function"]["strict"] = True
    translator = il.Translator()
    (frame,) = sdk.frames(translator.feed(call_stream([given])))[1:2]
    (entry,) = frame["choices"][0]["delta"]["tool_calls"]
    assert entry["extra_content"] == given["extra_content"]
    assert entry["function"] == {"name": "f", "arguments": "", "strict": True}


def test_frames_that_nobody_sent_look_like_those_before() -> None:
    translator = il.Translator()
    head = chunk(model="m", system_fingerprint="fp")
    out = translator.feed(
        sse(chunk(choice({"role": "assistant", "content": "Hi"}), model="m", system_fingerprint="fp", x=1))
    )
    assert sdk.frames(out)[1] == {**head, "choices": [choice({}, "stop")]}


def test_usage_makes_no_chunk_without_choices() -> None:
    """A client that did not ask for such a chunk may take choices[0] of every one."""
    frames = sent(HI, *(chunk(choice({"role": "assistant", "content": ""}, finish), usage=usage, model="m")
                        for finish, usage in (("stop", None), (None, USAGE))))  # fmt: skip
    assert [(len(frame["choices"]), frame.get("usage")) for frame in frames] == [(1, None), (1, None), (1, USAGE)]  # type: ignore[arg-type]


def test_error_frame() -> None:
    given = {"message": "boom", "code": 529, "metadata": {"provider": "x"}}
    assert sent({"error": given}, done=False) == [{"error": given}]
    assert sent({"error": "boom"}, done=False) == [{"error": {"message": "boom", "type": "api_error", "code": None}}]


# ── streams of other kinds ────────────────────────────────────────────────────────────────────────────────────────


def test_the_model_is_taken_from_the_first_chunk_that_names_one() -> None:
    azure = {"id": "", "object": "", "model": "", "created": 0, "choices": [], "prompt_filter_results": []}
    translator = il.Translator()
    assert translator.feed(sse(azure, done=False)) == sse(azure, done=False)
    assert not translator.dialect
    heard = read_strict(translator.feed(text_stream([SECTION_OF_PARIS])))
    assert translator.dialect is get_dialect("kimi_k2")
    assert [name for _, name, _ in heard.choices[0].calls] == ["get_weather"]


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("keep", ChoiceView(text="b", reasoning="a", finish="stop")),
        ("as_content", ChoiceView(text="a\n\nb", finish="stop")),
        ("drop", ChoiceView(text="b", finish="stop")),
    ],
)
def test_reasoning_policies(policy: ReasoningPolicy, said: ChoiceView) -> None:
    translator = il.Translator(options=il.Options(reasoning=policy))
    stream = call_stream({"reasoning": "a"}, {"content": "b"}, finish="stop")
    assert read_strict(translator.feed(stream)).choices == {0: said}


def test_ids_that_the_conversation_has_are_not_given_again() -> None:
    translator = il.Translator(options=il.Options(taken_ids=("functions.get_weather:0",)))
    heard = read_strict(translator.feed(text_stream([SECTION_OF_PARIS])))
    assert [id for id, _, _ in heard.choices[0].calls] == ["functions.get_weather:1"]


def test_minted_ids_differ_from_choice_to_choice() -> None:
    begin = {"role": "assistant", "tool_calls": [call_start("f", "{}", id=None)]}
    translator = il.Translator()
    heard = read_strict(translator.feed(sse(chunk(*(choice(begin, "stop", index) for index in (0, 1))))))
    assert len({id for said in heard.choices.values() for id, _, _ in said.calls}) == 2


def test_what_waits_behind_an_open_call_is_bounded() -> None:
    translator = il.Translator(options=il.Options(limits=Limits(held=64)))
    stream = call_stream(
        [call_start("f", "{")], [call_start("g", "{", 1, "call_2")], *([call_delta(" " * 20, 1)] for _ in range(5))
    )
    heard = read_strict(translator.feed(stream))
    assert [(id, name) for id, name, _ in heard.choices[0].calls] == [("call_1", "f"), ("call_2", "g")]
    assert "over-limit" in [finding.kind for finding in translator.findings]


def test_a_thousand_interleaved_calls() -> None:
    begin = [[call_start("f", "{", n, f"call_{n}")] for n in range(1000)]
    translator = il.Translator()
    heard = read_strict(translator.feed(call_stream(*begin, *([call_delta("}", n)] for n in reversed(range(1000))))))
    assert heard.choices[0].calls == [(f"call_{n}", "f", "{}") for n in range(1000)]


def test_deep_json() -> None:
    """The depth at which the decoder gives up depends on the stack; the encoder must not give up before it."""
    for depth in [*range(800, 1010), 100_000]:
        rewritten = json.dumps(chunk(choice({"content": "a <|tool_", "deep": "HERE"})))
        deep = rewritten.replace('"HERE"', "[" * depth + "]" * depth)
        assert translate_all(sse(HI_KIMI, deep, BYE)).endswith(b"data: [DONE]\n\n")


# ── the object ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_trace_tells_what_feed_and_close_do() -> None:
    stream = text_stream(["a <|tool_", "calls_section_", "x"], finish=None, done=False)
    events: list[trace.TraceEvent] = []
    translator = il.Translator(observer=events.append)
    sent = translator.feed(stream) + translator.close()
    assert "".join(event.data for event in events if isinstance(event, trace.MessageReceived)).encode() == stream
    held = {event.message: event.text for event in events if isinstance(event, trace.HeldBack)}
    assert held == {2: "<|tool_", 3: "<|tool_calls_section_"}
    assert [event.message for event in events if isinstance(event, trace.InputEnded)] == [5]
    assert "".join(event.data for event in events if isinstance(event, trace.FramesSent)).encode() == sent
    assert sent == translate_all(stream)


def translate_all(stream: bytes) -> bytes:
    translator = il.Translator()
    return translator.feed(stream) + translator.close()


def test_after_close() -> None:
    translator = il.Translator()
    translator.feed(sse(HI, BYE))
    assert translator.close() == b""
    assert translator.close() == b""
    with pytest.raises(UsageError, match="closed"):
        translator.feed(b"data: {}")


def test_findings_have_a_place() -> None:
    translator = il.Translator()
    translator.feed(sse(HI, "{bad"))
    assert [(finding.kind, finding.place) for finding in translator.findings][:1] == [("bad-json", "event 2")]


def test_an_event_that_the_end_has_cut() -> None:
    translator = il.Translator()
    out = translator.feed(sse(HI, BYE, done=False) + b'data: {"id": "gen') + translator.close()
    assert read_strict(out).done
    assert [finding.kind for finding in translator.findings] == ["cut-event"]


def test_an_event_without_its_blank_line_at_the_end() -> None:
    translator = il.Translator()
    out = translator.feed(sse(HI, BYE, done=False).rstrip(b"\n")) + translator.close()
    assert read_strict(out) == StreamView({0: ChoiceView(text="Hi", finish="stop")}, done=True)


@pytest.mark.parametrize("wires", [("x", "openai-chat"), ("openai-chat", "openai_chat")])
def test_unknown_wire(wires: tuple[str, str]) -> None:
    with pytest.raises(UnknownWire) as error:
        il.Translator(*wires)
    assert "openai-chat" in error.value.hint


# ── what a hostile reader found ─────────────────────────────────────────────────────────────────────────────────────


def translated(*deltas: Json, model: str = KIMI, **options: Any) -> tuple[bytes, il.Translator]:
    translator = il.Translator(**options)
    stream = b"".join(b"data: " + json.dumps(chunk(choice(delta), model=model)).encode() + b"\n\n" for delta in deltas)
    return translator.feed(stream) + translator.close(), translator


def test_a_stream_that_breaks_off_in_the_header_of_a_later_call_has_failed() -> None:
    out, _ = translated({"role": "assistant", "content": SECTION_OF_PARIS.removesuffix(CLOSE) + CALL + "functions.ba"})
    assert b'"error"' in out
    assert b"[DONE]" not in out


def test_the_model_may_be_named_late() -> None:
    first = without_keys(chunk(choice({"role": "assistant"})), "model")
    second = chunk(choice({"content": SECTION_OF_PARIS}), model=KIMI)
    out = il.Translator().feed(sse(first, second))
    assert b"<|tool" not in out
    assert b'"name":"get_weather"' in out


def test_after_an_event_that_is_too_long_nothing_more_is_kept() -> None:
    translator = il.Translator(options=il.Options(limits=il.Limits(event=1000)))
    out = translator.feed(b"data: " + b"x" * 5000)
    assert out.count(b'"error"') == 1
    assert [translator.feed(b"y" * 1000) for _ in range(50)] == [b""] * 50
    assert translator.close() == b""


def test_byte_order_mark_does_not_become_the_start_of_the_stream() -> None:
    """Clients ignore it there, so that the line after it would become an event."""
    translator = il.Translator(source="openai-chat", target="openai-chat", dialect="standard")
    out = translator.feed(b"data:[\n\n\xef\xbb\xbfdata: x\n\n") + translator.close()
    assert b"\xef\xbb\xbf" not in out


def test_byte_order_mark_before_data_is_not_forwarded() -> None:
    """At the start of a stream, clients ignore it, and would read a line that the upstream's decoder has ignored."""
    translator = il.Translator("openai-chat", "openai-chat")
    out = translator.feed(b'data:[\n\n\xef\xbb\xbfdata: x\ndata: {"id": "1"}\n\n') + translator.close()
    assert b"\xef\xbb\xbf" not in out
    assert b"data: x" not in out


@pytest.mark.parametrize("created", ["1e999", "-1e999", "1.5", "1" + "0" * 400, "true"])
def test_any_number_may_be_the_time_of_a_response(created: str) -> None:
    event = f'data: {{"type": "response.completed", "response": {{"id": "r", "created_at": {created}}}}}\n\n'
    translator = il.Translator("openai-responses", "openai-chat")
    assert translator.feed(event.encode()) + translator.close()


@pytest.mark.parametrize("type", [{}, [], None, 1])
def test_delta_of_a_block_with_an_odd_type(type: object) -> None:
    translator = il.Translator(source="anthropic-messages", target="anthropic-messages", dialect="standard")
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": type, "text": "x"}}
    for event in (start, delta):
        translator.feed(b"data: " + json.dumps(event).encode() + b"\n\n")
    translator.close()


def test_text_that_waits_long_costs_no_more_per_piece() -> None:
    """Arguments that are no JSON wait for their end: eight times as many pieces take about eight times as long."""

    def translate(pieces: int) -> None:
        opening = {"role": "assistant", "content": SECTION + CALL + "functions.f:0" + ARGS}
        translated(opening, *[{"content": "prose "}] * pieces)

    check_growth(translate, 500, 4000, limit=24)


NATIVE_NAMES = {
    "functions.f:0": "f",
    "functions.f:0<|tool_call_argument_begin|>": "f",
    "f": "f",
    "google.search": "google.search",
}


@pytest.mark.parametrize(("sent", "name"), NATIVE_NAMES.items(), ids=NATIVE_NAMES)
def test_native_text_in_a_structured_name(sent: str, name: str) -> None:
    heard = read_strict(il.Translator().feed(call_stream([call_start(sent, "{}")], model=KIMI)))
    assert heard.choices[0].calls == [("call_1", name, "{}")]


def test_a_structured_name_that_was_offered_stays_whole() -> None:
    translator = il.Translator(tools=[{"name": "f:0"}, {"name": "f"}])
    heard = read_strict(translator.feed(call_stream([call_start("f:0", "{}")], model=KIMI)))
    assert heard.choices[0].calls == [("call_1", "f:0", "{}")]
    assert translator.findings == []


@pytest.mark.parametrize("order", [1, -1], ids=["text first", "structured first"])
def test_a_call_that_comes_as_text_and_structured_is_taken_once(order: int) -> None:
    structured = {"tool_calls": [call_start("get_weather", '{"city": "Paris"}', id="functions.get_weather:0")]}
    deltas = [{"content": SECTION_OF_PARIS}, structured][::order]
    stream = sse(*[chunk(choice({"role": "assistant"})), *map(chunk, map(choice, deltas)), chunk(choice({}, "stop"))])
    translator = il.Translator()
    heard = read_strict(translator.feed(stream))
    assert heard.choices[0].calls == [("functions.get_weather:0", "get_weather", '{"city": "Paris"}')]
    assert heard.choices[0].finish == "tool_calls"
    assert "duplicate-call" in [finding.kind for finding in translator.findings]


def test_a_call_that_began_before_the_model_was_named_goes_on() -> None:
    first = without_keys(chunk(choice({"role": "assistant", "tool_calls": [call_start("f", '{"a":')]})), "model")
    rest = [chunk(choice({"tool_calls": [call_delta("1}")]}), model=KIMI), chunk(choice({}, "tool_calls"), model=KIMI)]
    heard = read_strict(il.Translator().feed(sse(first, *rest)))
    assert heard.choices[0] == ChoiceView(calls=[("call_1", "f", '{"a":1}')], finish="tool_calls")


def test_what_comes_after_the_end_is_dropped_however_it_is_cut() -> None:
    stream = sse(
        {"error": {"message": "boom"}}, chunk(choice({"content": "x"})), chunk(choice({"content": "y"})), done=False
    )
    outputs = set()
    for at in range(len(stream)):
        translator = il.Translator()
        outputs.add(translator.feed(stream[:at]) + translator.feed(stream[at:]) + translator.close())
    assert len(outputs) == 1


def test_nested_markers_in_text_that_is_given_back_cost_no_more_than_their_length() -> None:
    def parse(size: int) -> None:
        text = CALL + ARGS + '{"zz":"' + "<|im_" * size + "end|>" * size + '"}' + END
        il.parse(text, "kimi_k2", tools=[{"name": "ls"}])

    check_growth(parse, 1000, 8000, limit=24)


def test_the_same_oddity_without_end_is_told_a_hundred_times() -> None:
    translator = il.Translator(dialect="standard")
    translator.feed(b"data:\n\n" * 1000 + b"data: {}\n\n")
    kinds = [finding.kind for finding in translator.findings]
    assert kinds.count("empty-event") == 100
    assert translator.findings[99].message.endswith("; further findings of this kind are not reported")


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_thinking_in_text_is_sent_in_the_field_that_the_upstream_uses(field: str) -> None:
    def chunk(delta: dict[str, str]) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": None}
        return encode_event(json.dumps({"object": "chat.completion.chunk", "model": "m", "choices": [choice]}).encode())

    translator = il.Translator(dialect="hermes")
    for delta in ({"role": "assistant"}, {field: "one"}, {"content": "<think>"}):
        translator.feed(chunk(delta))
    assert json.loads(translator.feed(chunk({"content": "two"}))[6:])["choices"][0]["delta"] == {field: "two"}
