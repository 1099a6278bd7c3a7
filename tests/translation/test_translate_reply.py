"""Whole bodies: a body says what its stream would have said, and what needs no change comes back as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest

import interlingua as il
from interlingua.errors import UnknownWire, UsageError
from tests.support.chat_scenarios import (
    KIMI,
    PARIS,
    SCENARIOS,
    SECTION_OF_PARIS,
    USAGE,
    ChatScenario,
    F,
    call_start,
    without_keys,
)
from tests.support.sdk import ChoiceView, Json, StreamView, events


def body(*messages: Json, finish: Any = "stop", model: str = KIMI, **extra: Any) -> Json:
    choices = [
        {"index": n, "message": {"role": "assistant", **message}, "finish_reason": finish}
        for n, message in enumerate(messages)
    ]
    head = {"id": "gen-1", "object": "chat.completion", "created": 1763198400, "model": model}
    return {**head, "choices": choices, **extra}


def whole(stream: bytes) -> Json:
    """The body that the upstream would have sent instead of this stream."""
    choices: dict[int, Json] = {}
    joined: Json = {}
    for data in events(stream):
        chunk = json.loads(data) if data.startswith('{"') else {}
        joined |= {key: value for key, value in chunk.items() if value is not None}
        for given in chunk.get("choices") or ():
            choice = choices.setdefault(given["index"], {**given, "message": {"content": None}, "finish_reason": None})
            choice["finish_reason"] = given["finish_reason"] or choice["finish_reason"]
            _join(choice["message"], given["delta"])
    told = [{key: value for key, value in choice.items() if key != "delta"} for choice in choices.values()]
    return {**joined, "object": "chat.completion", "choices": told}


def _join(message: Json, delta: Json) -> None:
    for key, value in delta.items():
        if key == "tool_calls":
            calls = message.setdefault(key, [])
            for entry in value:
                if entry["index"] == len(calls):
                    calls.append({**entry, "function": dict(entry["function"])})
                elif entry["function"]["arguments"]:
                    calls[entry["index"]]["function"]["arguments"] += entry["function"]["arguments"]
        elif isinstance(value, dict):
            _join(message.setdefault(key, {}), value)
        elif isinstance(value, list):
            message[key] = message.get(key, []) + value
        elif value is not None:
            message[key] = value if key == "role" else (message.get(key) or "") + value


def heard(reply: Json) -> StreamView:
    told = StreamView(usage=reply.get("usage"), error=(reply.get("error") or {}).get("message"))
    for choice in reply.get("choices", ()):
        message = choice["message"]
        assert message["role"] == "assistant"
        details = message.get("reasoning_details") or ()
        thought = "".join(detail.get("text") or detail.get("summary") or "" for detail in details)
        told.choices[choice["index"]] = ChoiceView(
            text=message["content"] or "",
            reasoning=message.get("reasoning_content") or message.get("reasoning") or thought,
            refusal=message.get("refusal") or "",
            calls=[
                (call["id"], call["function"]["name"], call["function"]["arguments"])
                for call in message.get("tool_calls") or ()
            ],
            finish=choice["finish_reason"],
        )
    return told


@pytest.mark.parametrize("scenario", [scenario for scenario in SCENARIOS if scenario.has_body], ids=str)
def test_stream_is_whole(scenario: ChatScenario) -> None:
    given = whole(scenario.stream)
    copy = json.loads(json.dumps(given))
    reply = il.translate_reply(given, tools=scenario.tools, options=scenario.options)
    assert heard(reply).choices == scenario.expected, reply
    assert given == copy, "what was given is not changed"


UNTOUCHED = {
    "text": body({"content": "Hi"}),
    "everything": body(
        {
            "content": "Hi",
            "refusal": None,
            "reasoning": "Hm.",
            "reasoning_details": [{"type": "reasoning.text", "text": "Hm.", "signature": "S"}],
            "annotations": [],
            "audio": None,
        },
        usage=USAGE,
        system_fingerprint="fp",
        provider="x",
    ),
    "calls": body(
        {"content": None, "tool_calls": [without_keys(call_start("f", '{"a": 1}'), "index")]}, finish="tool_calls"
    ),
    "two choices": body({"content": "a"}, {"content": "b"}, model="m"),
    "markers of a model that is not known": body({"content": SECTION_OF_PARIS}, model="m"),
    "length": body({"content": "Hi"}, finish="length"),
    "an error": {"error": {"message": "boom", "code": 500}},
    "an error beside choices": {**body({"content": ""}), "error": {"message": "boom"}},
    "no choices": {"id": "x", "choices": None},
    "empty": {},
}


@pytest.mark.parametrize("given", UNTOUCHED.values(), ids=UNTOUCHED)
def test_untouched(given: Json) -> None:
    assert il.translate_reply(given) == given


def message(given: Json, **options: Any) -> Json:
    (choice,) = il.translate_reply(given, **options)["choices"]
    told: Json = choice["message"]
    return told


def test_what_we_do_not_know_is_kept() -> None:
    given = body({"content": "a" + SECTION_OF_PARIS, "annotations": [1]}, usage=USAGE, provider="x")
    given["choices"][0] |= {"logprobs": None, "native_finish_reason": "stop"}
    reply = il.translate_reply(given)
    assert without_keys(reply, "choices") == without_keys(given, "choices")
    call = {"id": PARIS[0], "type": "function", "function": {"name": PARIS[1], "arguments": PARIS[2]}}
    told = {"role": "assistant", "content": "a", "annotations": [1], "tool_calls": [call]}
    assert reply["choices"] == [{**given["choices"][0], "message": told, "finish_reason": "tool_calls"}]


def test_extra_fields_of_a_call_are_kept() -> None:
    entry = without_keys(call_start("f", {"a": 1}, extra_content={"x": 1}), "index")
    (call,) = message(body({"content": None, "tool_calls": [entry]}, finish="tool_calls"))["tool_calls"]
    assert call == {**entry, "function": {"name": "f", "arguments": '{"a":1}'}}


def test_one_choice_is_told_anew_and_the_others_stay() -> None:
    given = body({"content": "a", "odd": None}, {"content": SECTION_OF_PARIS})
    first, second = il.translate_reply(given)["choices"]
    assert first is given["choices"][0]
    assert heard({"choices": [second]}).choices == {1: ChoiceView(calls=[PARIS], finish="tool_calls")}


DETAIL = {"type": "reasoning.text", "text": "Hm." + SECTION_OF_PARIS, "index": 0}
SEALED = {"type": "reasoning.encrypted", "data": "AbC"}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"reasoning": DETAIL["text"]}, {"reasoning": "Hm."}),
        ({"reasoning_content": DETAIL["text"], "reasoning": None}, {"reasoning_content": "Hm."}),
        ({"reasoning": SECTION_OF_PARIS}, {}),
        ({"content": "<think>Hm.</think>"}, {"reasoning_content": "Hm."}),
        (
            {"reasoning": DETAIL["text"], "reasoning_details": [DETAIL, SEALED]},
            {"reasoning": "Hm.", "reasoning_details": [{**DETAIL, "text": "Hm."}, SEALED]},
        ),
        (
            {"reasoning_details": [{"type": "reasoning.summary", "summary": DETAIL["text"]}]},
            {"reasoning_details": [{"type": "reasoning.summary", "summary": "Hm."}]},
        ),
        (
            {"content": SECTION_OF_PARIS, "reasoning": "Hm.", "reasoning_details": [{**DETAIL, "text": "Hm."}]},
            {"reasoning": "Hm.", "reasoning_details": [{**DETAIL, "text": "Hm."}]},
        ),
        ({"content": SECTION_OF_PARIS, "reasoning_details": [SEALED]}, {"reasoning_details": [SEALED]}),
        (
            {"content": "<think>Hm.</think>", "reasoning_details": [SEALED]},
            {"reasoning_details": [{"type": "reasoning.text", "text": "Hm."}, SEALED]},
        ),
    ],
)
def test_thinking_stays_in_the_fields_that_it_came_in(given: Json, told: Json) -> None:
    reply = message(body({"content": None, **given}))
    assert {key: value for key, value in reply.items() if key.startswith("reasoning")} == told


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param(
            body({"content": None, "tool_calls": [call_start("f", '{"a": 1}')]}, finish=None),
            ChoiceView(calls=[F], finish="tool_calls"),
            id="no finish reason",
        ),
        pytest.param(
            body({"content": None, "tool_calls": [call_start("f", "")]}, finish=None),
            ChoiceView(calls=[("call_1", "f", "{}")], finish="tool_calls"),
            id="no finish reason and no arguments",
        ),
        pytest.param(
            {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]},
            ChoiceView(text="Hi", finish="stop"),
            id="no index and no role",
        ),
        pytest.param(
            {"choices": [{"index": 0, "message": None, "finish_reason": "stop"}]},
            ChoiceView(finish="stop"),
            id="no message",
        ),
        pytest.param(
            body({"content": "", "refusal": "No." + "<|im_end|>"}),
            ChoiceView(refusal="No.<|im_end|>", finish="stop"),
            id="refusal",
        ),
        pytest.param(
            body({"content": "a<|im_end|>", "refusal": "No."}),
            ChoiceView(text="a", refusal="No.", finish="stop"),
            id="refusal kept",
        ),
    ],
)
def test_mended(given: Json, said: ChoiceView) -> None:
    assert heard(il.translate_reply(given)).choices == {0: said}


@pytest.mark.parametrize(
    "choice",
    [
        {"message": {"content": "Hi"}, "finish_reason": "error", "error": {"message": "boom"}},
        {"message": {"content": None, "tool_calls": [call_start("f", '{"a"')]}, "finish_reason": None},
    ],
    ids=["an error for a finish", "no finish inside a call"],
)
def test_failed(choice: Json) -> None:
    reply = il.translate_reply({"id": "x", "choices": [choice]})
    assert list(reply) == ["error"]
    assert reply["error"]["message"]


def test_choices_that_are_none_stay() -> None:
    given = body({"content": SECTION_OF_PARIS})
    given["choices"].append(7)
    assert il.translate_reply(given)["choices"][1] == 7


def test_the_model_may_be_told() -> None:
    given = body({"content": SECTION_OF_PARIS}, model="ours")
    assert message(given)["content"] == SECTION_OF_PARIS
    for how in ({"model": KIMI}, {"dialect": "kimi_k2"}):
        assert message(given, **how)["tool_calls"][0]["id"] == PARIS[0]


def test_unknown_wire() -> None:
    with pytest.raises(UnknownWire):
        il.translate_reply({}, source="x")


def test_findings_are_told_by_the_translator() -> None:
    translator = il.Translator(dialect="kimi_k2")
    assert translator.reply(body({"content": "a<|im_end|>"}))["choices"][0]["message"]["content"] == "a"
    assert [finding.kind for finding in translator.findings] == ["noise"]
    with pytest.raises(UsageError, match="closed"):
        translator.reply({})


# ── what a whole reply has come to ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("wire", ["anthropic-messages", "openai-responses"])
def test_a_reply_that_passes_as_it_came_is_counted_all_the_same(wire: str) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    body = {"id": "x", "object": "chat.completion", "choices": [{"index": 0, "message": message}]}
    told = il.translate_reply(body, target=wire, dialect="standard")
    translator = il.Translator(wire, wire, "standard")
    assert translator.reply(told) == told
    assert (translator.tally.calls, translator.tally.has_content) == (1, True)
    assert translator.tally.stop is not None


def test_a_stream_that_has_begun_is_no_place_for_a_whole_reply() -> None:
    translator = il.Translator(dialect="standard")
    translator.feed(b'data: {"choices": []}\n\n')
    for use in (lambda: translator.reply({}), lambda: translator.stream({}), lambda: translator.fold(b"")):
        with pytest.raises(il.InterlinguaError, match="in the middle of a stream"):
            use()
