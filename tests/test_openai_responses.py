"""The Responses wire: every stream that upstreams send, to clients of both wires, strict ones and the official SDK."""

from __future__ import annotations

import json
from typing import Any

import pytest

import interlingua as il
from interlingua.options import Options
from tests import chat_scenarios as chat
from tests import responses_clients as clients
from tests import sdk
from tests.cuts import one_by_one, two_piece_cuts
from tests.responses_scenarios import (
    HELLO,
    PATCH,
    SCENARIOS,
    SEARCH,
    SPACE,
    Scenario,
    item,
    thought,
    told,
    told_call,
    told_message,
)
from tests.sdk import Said
from tests.test_translate_reply import whole

CHAT, RESPONSES = "openai-chat", "openai-responses"
KEY = b"key"

each_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=str)


def translate(stream: bytes, source: str, target: str, pieces: list[bytes] | None = None, **how: Any) -> bytes:
    return run(stream, source, target, pieces, **how)[0]


def run(
    stream: bytes, source: str, target: str, pieces: list[bytes] | None = None, **how: Any
) -> tuple[bytes, list[str]]:
    translator = il.Translator(source, target, **how)
    out = b"".join(translator.feed(piece) for piece in pieces or [stream]) + translator.close()
    return out, [finding.kind for finding in translator.findings]


def of(scenario: Scenario, target: str, pieces: list[bytes] | None = None) -> tuple[bytes, list[str]]:
    return run(scenario.stream, RESPONSES, target, pieces, model=scenario.model, tools=scenario.tools)


# ── responses → chat ──────────────────────────────────────────────────────────────────────────────────────────────


def as_chat(scenario: Scenario) -> dict[int, Said]:
    """A chat client hears the text of a custom tool as the arguments of a function, and flat names."""
    told = {}
    for index, one in scenario.said.items():
        calls = [
            (id, "mcp__docs__list" if scenario.tools == [SPACE] else name, args if args != PATCH else wrapped(args))
            for id, name, args in one.calls
        ]
        told[index] = Said(one.text, one.reasoning, one.refusal, calls, one.finish)
    return told


def wrapped(text: str) -> str:
    return json.dumps({"input": text}, ensure_ascii=False, separators=(",", ":"))


@each_scenario
def test_for_a_chat_client(scenario: Scenario) -> None:
    out, findings = of(scenario, CHAT)
    heard = sdk.listen(out)
    assert findings == scenario.findings
    assert (heard.error or "") == scenario.error
    if not scenario.error:
        assert heard.choices == as_chat(scenario)
        assert sdk.iterate(out).choices == as_chat(scenario)
        assert heard.done


@each_scenario
def test_however_it_is_cut(scenario: Scenario) -> None:
    for target in (CHAT, RESPONSES):
        expected = of(scenario, target)
        for pieces in (one_by_one(scenario.stream), *two_piece_cuts(scenario.stream, 40)):
            assert of(scenario, target, pieces) == expected, pieces


# ── responses → responses ─────────────────────────────────────────────────────────────────────────────────────────


@each_scenario
def test_for_a_client_of_the_same_wire(scenario: Scenario) -> None:
    out, findings = of(scenario, RESPONSES)
    assert findings == scenario.findings
    if scenario.untouched:
        assert out == scenario.stream
        return
    end = clients.frames(out)[-1]
    assert (end["response"]["error"] or {}).get("message", "") == scenario.error
    numbers = [frame["sequence_number"] for frame in clients.frames(out)]
    assert numbers == list(range(len(numbers)))
    if "unknown-item" not in findings:
        heard = clients.listen(out)
        assert heard.choices == ({} if scenario.error else scenario.said)
    if not scenario.error:
        assert end["response"]["tools"] == [{"x": 1}], "what we do not know stays"


@each_scenario
def test_what_we_send_is_not_told_anew(scenario: Scenario) -> None:
    out, _ = of(scenario, RESPONSES)
    if not scenario.error:
        assert translate(out, RESPONSES, RESPONSES, model="gpt-9", tools=scenario.tools) == out


def test_other_items_keep_their_place_when_a_message_is_told_anew() -> None:
    scenario = next(one for one in SCENARIOS if one.name == "native text among other items")
    told_anew = clients.frames(of(scenario, RESPONSES)[0])
    added = [frame["item"] for frame in told_anew if frame["type"] == "response.output_item.added"]
    assert [one["type"] for one in added] == ["web_search_call", "message", "function_call", "message"]
    assert [one.get("id") for one in added[:2]] == ["ws_1", "msg_1"]
    assert added[1]["phase"] == "commentary"
    assert added[3]["id"] == "msg_2"
    output = told_anew[-1]["response"]["output"]
    assert [one["type"] for one in output] == [one["type"] for one in added]
    assert [frame["output_index"] for frame in told_anew if "item" in frame] == [0, 0, 1, 1, 2, 2, 3, 3]


def test_an_item_of_another_kind_behind_text_told_anew() -> None:
    later = [{**event, "output_index": 1} for event in SEARCH]
    stream = told(told_message(["a<"]), later, told_message(["b"], 2, "msg_2"))
    told_anew = clients.frames(translate(stream, RESPONSES, RESPONSES, model=chat.KIMI))
    places = [(frame["type"].split(".", 1)[1], frame["output_index"]) for frame in told_anew if "output_index" in frame]
    assert ("web_search_call.searching", 1) in places
    assert [one["id"] for one in told_anew[-1]["response"]["output"]] == ["msg_1", "ws_1", "msg_2"]


def test_a_call_whose_id_is_taken_is_told_anew_and_the_rest_goes_on() -> None:
    stream = told(told_message(["x"]), told_call(['{"a": 1}'], 1))
    out = translate(stream, RESPONSES, RESPONSES, model="gpt-9", options=Options(taken_ids=("call_1",)))
    assert clients.listen(out).choices[0].calls == [("call_1_2", "f", '{"a": 1}')]
    assert out[: out.index(b"function_call")].startswith(stream[: stream.index(b"response.output_item.done")])


def test_native_thinking_keeps_its_encryption() -> None:
    stream = told(told_message(["<"]), [item("done", 1, thought("a", sealed="ENC"))])
    out = translate(stream, RESPONSES, RESPONSES, model=chat.KIMI)
    (one,) = [one for one in clients.frames(out)[-1]["response"]["output"] if one["type"] == "reasoning"]
    assert one["encrypted_content"] == "ENC"


def test_the_client_knows_the_model_by_another_name() -> None:
    options = Options(served_as="mine")
    for stream in (told(HELLO), told(told_message(["a<"]))):
        out = translate(stream, RESPONSES, RESPONSES, model=chat.KIMI, options=options)
        assert {frame["response"]["model"] for frame in clients.frames(out) if "response" in frame} == {"mine"}
        clients.listen(out)


# ── chat → responses ──────────────────────────────────────────────────────────────────────────────────────────────

SINGLE = [one for one in chat.SCENARIOS if set(one.said) <= {0}]
each_chat = pytest.mark.parametrize("scenario", SINGLE, ids=str)


def from_chat(scenario: chat.Scenario, pieces: list[bytes] | None = None) -> tuple[bytes, list[str]]:
    options = scenario.options or Options()
    return run(scenario.stream, CHAT, RESPONSES, pieces, tools=scenario.tools, options=options)


@each_chat
def test_from_chat(scenario: chat.Scenario) -> None:
    out, findings = from_chat(scenario)
    heard = clients.listen(out)
    assert bool(heard.error) == bool(scenario.error)
    assert scenario.error in (heard.error or "")
    assert findings == scenario.findings
    if not scenario.error:
        assert heard.choices == (scenario.said or chat.calls(finish="stop"))


@each_chat
def test_the_sdk_reads_what_came_from_chat(scenario: chat.Scenario) -> None:
    out, _ = from_chat(scenario)
    heard = clients.iterate(out)
    assert scenario.error in (heard.error or "")
    if scenario.error or not scenario.said:
        return
    expected, got = scenario.said[0], heard.choices[0]
    assert (got.text, got.reasoning, got.refusal) == (expected.text, expected.reasoning, expected.refusal)
    assert got.calls == [call for call in expected.calls if call in got.calls]
    assert got.finish == expected.finish or expected.finish == "length", "a call that was cut is not done"
    if expected.finish in ("stop", "tool_calls"):
        tools = [
            {"type": "function", "name": name, "parameters": {}} for name in {name for _, name, _ in expected.calls}
        ]
        assert clients.accumulate(out, tools).choices == {0: expected}


@each_chat
def test_from_chat_stream_is_whole(scenario: chat.Scenario) -> None:
    if not scenario.whole or scenario.error:
        return
    body = il.translate_reply(
        whole(scenario.stream), CHAT, RESPONSES, tools=scenario.tools, options=scenario.options or Options()
    )
    assert clients.hear_response(body).choices == scenario.said


@pytest.mark.parametrize("scenario", SINGLE[::7], ids=str)
def test_from_chat_however_it_is_cut(scenario: chat.Scenario) -> None:
    expected = from_chat(scenario)
    for pieces in (one_by_one(scenario.stream), *two_piece_cuts(scenario.stream, 40)):
        assert from_chat(scenario, pieces) == expected, pieces
