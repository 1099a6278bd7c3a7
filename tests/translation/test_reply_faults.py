"""Replies that no server should send, on the way from wire to wire: nothing lands where it does not belong, nothing
raises, and every reply ends once."""

from __future__ import annotations

import json
import random
from copy import deepcopy
from itertools import product
from typing import Any

import pytest

import interlingua as il
from interlingua import events as ev
from tests.support import anthropic_scenarios as messages
from tests.support import chat_scenarios as chat
from tests.support import pair_clients as clients
from tests.support.pair_scenes import CallPart, Scene
from tests.support.pair_sources import CHAT, MESSAGES, RESPONSES

Json = dict[str, Any]
WIRES = (CHAT, MESSAGES, RESPONSES)
HIGH = "\ud83d"
ANY = Scene("any", [])


def run(
    source: str, target: str, stream: bytes, scene: Scene = ANY, **how: Any
) -> tuple[clients.ReplyView, list[ev.Finding]]:
    translator = il.Translator(source, target, **how)
    out = translator.feed(stream) + translator.close()
    return clients.STRICT_READERS[target](out, scene), translator.findings


def kinds(findings: list[ev.Finding]) -> list[str]:
    return [finding.kind for finding in findings]


# ── half characters ───────────────────────────────────────────────────────────────────────────────────────────────

INTERLEAVED = messages.sse(
    messages.message_start(),
    messages.block_start(0, "tool_use", id="a", name="f", input={}),
    messages.block_start(1, "tool_use", id="b", name="g", input={}),
    *messages.argument_deltas(0, '{"a": "x' + HIGH),
    *messages.argument_deltas(1, '{"b": 1}'),
    *messages.argument_deltas(0, '\ude80"}'),
    messages.block_stop(0),
    messages.block_stop(1),
    *messages.message_end("tool_use"),
)


@pytest.mark.parametrize("target", WIRES)
def test_half_a_character_of_one_call_is_no_part_of_another(target: str) -> None:
    heard, findings = run(MESSAGES, target, INTERLEAVED)
    assert [json.loads(one[3]) for one in heard.parts] == [{"a": "x\U0001f680"}, {"b": 1}]
    assert "half-character" not in kinds(findings)


@pytest.mark.parametrize("target", WIRES)
def test_half_a_character_at_the_end_of_a_block(target: str) -> None:
    stream = messages.sse(
        messages.message_start(),
        *messages.text_block(0, "a" + HIGH),
        *messages.tool_use_block(1, "{}"),
        *messages.text_block(2, "b"),
        *messages.message_end(),
    )
    heard, findings = run(MESSAGES, target, stream)
    assert "".join(one[1] for one in heard.parts if one[0] == "text") == "ab"
    assert "half-character" in kinds(findings)


@pytest.mark.parametrize("target", WIRES)
def test_half_a_character_in_a_body(target: str) -> None:
    message = {"role": "assistant", "content": "a" + HIGH}
    body = {"id": "x", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    translator = il.Translator(CHAT, target)
    assert clients.BODY_READERS[target](translator.reply(body), ANY).parts == [("text", "a")]
    assert kinds(translator.findings) == ["half-character"]


# ── what no server would send ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("delta", [{}, {"delta": None}, {"delta": []}, {"delta": {"partial_json": 5}}])
def test_a_delta_that_is_none_in_a_block_that_is_not_ours(delta: Json) -> None:
    search = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    stream = messages.sse(
        messages.message_start(),
        {"type": "content_block_start", "index": 0, "content_block": search},
        {"type": "content_block_delta", "index": 0, **delta},
        messages.block_stop(0),
        *messages.text_block(1, "Hi"),
        *messages.message_end(),
    )
    translator = il.Translator(MESSAGES, MESSAGES)
    out = translator.feed(stream) + translator.close()
    assert out.count(b"event: message_stop") == 1


ODD: list[Any] = [None, 5, "x", [], {}, [None], {"x": None}, True, 1.5, "\ud83d"]


class Mutator:
    """Changes the chunks of a stream here and there."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def mutate(self, chunks: list[Any]) -> list[Any]:
        chunks = deepcopy(chunks)
        for _ in range(self._random.randint(1, 3)):
            at = self._random.randrange(len(chunks))
            match self._random.randrange(5):
                case 0:
                    chunks.insert(self._random.randrange(len(chunks) + 1), deepcopy(chunks[at]))
                case 1:
                    chunks.insert(self._random.randrange(len(chunks)), chunks.pop(at))
                case _:
                    self._change(chunks[at])
        return chunks

    def _change(self, value: Any) -> None:
        """Drops a field somewhere in it, or gives it a value of another type."""
        places = list(_places(value))
        if places:
            where, key = self._random.choice(places)
            if self._random.random() < 0.4:
                del where[key]
            else:
                where[key] = deepcopy(self._random.choice(ODD))


def _places(value: Any) -> Any:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in list(inner):
        yield value, key
        yield from _places(one)


def chunks_of(stream: bytes) -> list[Any]:
    data = [line[6:] for line in stream.split(b"\n") if line.startswith(b"data: ")]
    return [json.loads(one) for one in data if one.startswith(b"{")]


def readable(stream: bytes) -> bool:
    try:
        return bool(chunks_of(stream))
    except ValueError:
        return False


SEEDS = {
    CHAT: [one.stream for one in chat.SCENARIOS if readable(one.stream) and len(one.stream) < 6000],
    MESSAGES: [one.stream for one in messages.SCENARIOS if readable(one.stream)],
}


def written(source: str, chunks: list[Any]) -> bytes:
    named = source == MESSAGES
    names = [f"event: {one['type']}\n" if named and isinstance(one.get("type"), str) else "" for one in chunks]
    frames = [
        name.encode(errors="replace") + b"data: " + json.dumps(one).encode() + b"\n\n"
        for name, one in zip(names, chunks, strict=True)
    ]
    return b"".join(frames) + (b"data: [DONE]\n\n" if source == CHAT else b"")


def ends(target: str, out: bytes) -> int:
    """Number of events that end the stream."""
    data = [line[6:] for line in out.split(b"\n") if line.startswith(b"data: ")]
    told = [json.loads(one) if one.startswith(b"{") else {} for one in data]
    match target:
        case "openai-chat":
            return data.count(b"[DONE]") + sum(bool(one.get("error")) for one in told)
        case "anthropic-messages":
            return sum(one.get("type") in ("message_stop", "error") for one in told)
        case _:
            terminal = ("response.completed", "response.incomplete", "response.failed", "error")
            return sum(one.get("type") in terminal for one in told)


@pytest.mark.parametrize(("source", "target"), list(product((CHAT, MESSAGES), WIRES)))
def test_whatever_is_changed(source: str, target: str) -> None:
    for n, stream in enumerate(SEEDS[source]):
        chunks = chunks_of(stream)
        for seed in range(6):
            given = written(source, Mutator(100 * n + seed).mutate(chunks))
            translator = il.Translator(source, target)
            out = translator.feed(given) + translator.close()
            assert ends(target, out) == 1, (n, seed, given, out)


# ── calls of custom tools in chat ─────────────────────────────────────────────────────────────────────────────────

TEXT = 'say "hi" \\ \n*** é'
CUSTOM = {"id": "call_1", "type": "custom", "custom": {"name": "patch", "input": ""}}
PATCH_TOOL = {"type": "custom", "name": "patch", "description": "d"}


def custom_stream(*pieces: str, finish: str = "tool_calls") -> bytes:
    more = [[{"index": 0, "custom": {"input": piece}}] for piece in pieces]
    return chat.call_stream([{"index": 0, **CUSTOM}], *more, finish=finish)


def custom_body() -> Json:
    call = {**CUSTOM, "custom": {"name": "patch", "input": TEXT}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {"id": "x", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}


@pytest.mark.parametrize("tools", [None, [PATCH_TOOL], [{"type": "custom", "custom": {"name": "patch"}}]])
@pytest.mark.parametrize("target", [MESSAGES, RESPONSES])
@pytest.mark.parametrize("size", [1, 4, 100])
def test_a_custom_call_of_chat_is_a_call(target: str, tools: Any, size: int) -> None:
    pieces = [TEXT[n : n + size] for n in range(0, len(TEXT), size)]
    scene = Scene("custom", [CallPart("patch", "", text=TEXT if tools else None)], tools=[PATCH_TOOL])
    heard, _ = run(CHAT, target, custom_stream(*pieces), scene, tools=tools)
    whole = clients.BODY_READERS[target](il.translate_reply(custom_body(), CHAT, target, tools=tools), scene)
    for one in (heard, whole):
        assert [(*call[:3], json.loads(call[3])) for call in one.parts] == [
            ("call", "call_1", "patch", {"input": TEXT})
        ]
        assert one.stop == "tool_calls"


def test_a_custom_call_goes_to_a_responses_client_as_one() -> None:
    translator = il.Translator(CHAT, RESPONSES, tools=[PATCH_TOOL])
    out = translator.feed(custom_stream(TEXT)) + translator.close()
    assert b'"type":"custom_tool_call"' in out
    assert not translator.findings


def test_a_custom_call_passes_to_a_chat_client() -> None:
    translator = il.Translator(CHAT, CHAT, tools=[PATCH_TOOL])
    stream = custom_stream(TEXT[:3], TEXT[3:])
    assert translator.feed(stream) == stream
    assert il.translate_reply(custom_body(), CHAT, CHAT, tools=[PATCH_TOOL]) == custom_body()


@pytest.mark.parametrize("options", [{"served_as": "mine"}, {"delivery": "whole"}, {"taken_ids": ("call_1",)}])
def test_a_custom_call_told_anew_stays_one(options: Json) -> None:
    translator = il.Translator(CHAT, CHAT, options=il.Options(**options))
    out = translator.feed(custom_stream(TEXT[:3], TEXT[3:])) + translator.close()
    entries = [
        entry for one in chunks_of(out) for choice in one["choices"] for entry in choice["delta"].get("tool_calls", ())
    ]
    assert "".join(entry["custom"]["input"] for entry in entries) == TEXT
    assert (entries[0]["type"], entries[0]["custom"]["name"]) == ("custom", "patch")
    body = il.translate_reply(custom_body(), CHAT, CHAT, options=il.Options(**options))
    assert body["choices"][0]["message"]["tool_calls"][0]["custom"] == {"name": "patch", "input": TEXT}


def test_a_custom_call_that_a_limit_has_cut() -> None:
    heard, findings = run(CHAT, MESSAGES, custom_stream("half", finish="length"))
    assert heard.stop == "length"
    assert "cut-short" in kinds(findings)


# ── what is no reply ──────────────────────────────────────────────────────────────────────────────────────────────

OTHERS = [MESSAGES, RESPONSES]
each_other = pytest.mark.parametrize("target", OTHERS)


@pytest.mark.parametrize("target", WIRES)
def test_chunks_in_an_envelope(target: str) -> None:
    stream = chat.sse(*({"data": one, "success": True} for one in (chat.HI, chat.BYE)))
    heard, findings = run(CHAT, target, stream)
    assert heard.parts == [("text", "Hi")]
    assert heard.stop == "stop"
    assert "wrapped-chunk" in kinds(findings)
    message = {"role": "assistant", "content": "Hi"}
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    if target != CHAT:
        assert clients.BODY_READERS[target](il.translate_reply({"data": body}, CHAT, target), ANY).parts == [
            ("text", "Hi")
        ]


@pytest.mark.parametrize("target", WIRES)
@pytest.mark.parametrize(
    "events",
    [[], [{}], [{"object": "x", "foo": 1}], [{"object": chat.chunk()["object"], "choices": [], "usage": chat.USAGE}]],
)
def test_no_reply_at_all_is_a_failure(target: str, events: list[Json]) -> None:
    translator = il.Translator(CHAT, target)
    sent = translator.feed(chat.sse(*events)) + translator.close()
    assert b"without a reply" in sent
    assert b"[DONE]" not in sent
    assert translator.tally.failure is not None


@pytest.mark.parametrize("target", WIRES)
@pytest.mark.parametrize(
    ("error", "said"),
    [
        ({"detail": "Internal Server Error"}, "Internal Server Error"),
        ({"detail": [{"msg": "odd"}]}, "odd"),
        ({"message": "boom", "code": 429}, "boom"),
    ],
)
def test_errors_that_do_not_say_so(target: str, error: Json, said: str) -> None:
    heard, _ = run(CHAT, target, chat.sse(chat.HI, error))
    assert heard.error is not None
    assert said in heard.error
    told = il.translate_reply(error, CHAT, target)
    assert said in json.dumps(told)


@pytest.mark.parametrize("target", WIRES)
@pytest.mark.parametrize("data", ['{"message": "boom"}', "boom", '{"error": "boom"}', '{"error": {"message": "boom"}}'])
def test_an_event_called_error_is_one(target: str, data: str) -> None:
    stream = chat.sse(chat.HI, done=False) + f"event: error\ndata: {data}\n\n".encode() + chat.sse()
    heard, _ = run(CHAT, target, stream)
    assert heard.error is not None
    assert "boom" in heard.error


def test_a_rate_limit_without_a_field_of_its_own() -> None:
    told = il.translate_reply({"message": "boom", "code": 429}, CHAT, MESSAGES)
    assert told["error"] == {"type": "rate_limit_error", "message": "boom"}


@pytest.mark.parametrize("target", WIRES)
def test_what_cannot_be_read_inside_a_call(target: str) -> None:
    stream = chat.sse(chat.chunk(chat.choice({"tool_calls": [chat.call_start("f", '{"a": ')]})), "{broken", done=False)
    rest = chat.sse(chat.chunk(chat.choice({"tool_calls": [chat.call_delta("1}")]}, "tool_calls")))
    heard, findings = run(CHAT, target, stream + rest)
    assert heard.error is not None
    assert "bad-json" in kinds(findings)


@pytest.mark.parametrize("target", WIRES)
def test_what_cannot_be_read_outside_a_call(target: str) -> None:
    heard, findings = run(CHAT, target, chat.sse(chat.HI, "{broken", chat.BYE))
    assert (heard.parts, heard.stop) == ([("text", "Hi")], "stop")
    assert "bad-json" in kinds(findings)


# ── usage, choices, stop sequences ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("target", [CHAT, RESPONSES])
def test_usage_of_a_message_that_never_says_why_it_stopped(target: str) -> None:
    heard, _ = run(
        MESSAGES,
        target,
        messages.sse(messages.message_start(), *messages.text_block(0, "Hi"), {"type": "message_stop"}),
    )
    assert heard.tokens is not None
    assert heard.tokens.input > 0
    content = [{"type": "text", "text": "Hi"}]
    body = {**messages.message_start()["message"], "content": content}
    whole = clients.BODY_READERS[target](il.translate_reply(body, MESSAGES, target), ANY)
    assert whole.tokens == heard.tokens


@each_other
def test_the_first_choice_of_a_body_is_the_one_with_that_index(target: str) -> None:
    choices = [
        {"index": n, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        for n, text in ((1, "y"), (0, "x"))
    ]
    assert clients.BODY_READERS[target](il.translate_reply({"choices": choices}, CHAT, target), ANY).parts == [
        ("text", "x")
    ]


@pytest.mark.parametrize(
    ("told", "stop", "sequence"),
    [("END", "stop_sequence", "END"), ("stop", "end_turn", None), (128, "end_turn", None), (None, "end_turn", None)],
)
def test_the_stop_sequence_that_vllm_tells(told: Any, stop: str, sequence: str | None) -> None:
    message = {"role": "assistant", "content": "Hi"}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "stop_reason": told}
    body = il.translate_reply({"choices": [choice]}, CHAT, MESSAGES)
    assert (body["stop_reason"], body["stop_sequence"]) == (stop, sequence)


def test_too_long_a_prompt_is_told_in_the_words_that_clients_know() -> None:
    error = {"message": "the maximum is 8 tokens", "code": "context_length_exceeded"}
    told = il.translate_reply({"error": error}, CHAT, MESSAGES)["error"]
    assert told == {"type": "invalid_request_error", "message": "prompt is too long: the maximum is 8 tokens"}
