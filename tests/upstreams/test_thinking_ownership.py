"""Ownership of signed thinking: it is returned unchanged to its upstream and to no other, also after a model switch."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import interlingua as il
from interlingua.core.reasoning_signatures import ENVELOPE_PREFIX, read_envelope, read_value_envelope
from interlingua.translation.request_translation import PreparedRequest, prepare_request
from interlingua.wires import get_wire
from interlingua.wires.reasoning_fields import sign_reasoning
from tests.support.pair_clients import FOLLOW_UPS, SDK_READERS
from tests.support.pair_scenes import SCENES, Scene, ThinkingPart
from tests.support.pair_sources import BODIES, STREAMS
from tests.support.sdk import Json

CHAT, MESSAGES, RESPONSES = "openai-chat", "anthropic-messages", "openai-responses"

KEY = b"a key"
WIRES = [CHAT, MESSAGES, RESPONSES]
SIGNED = [scene for scene in SCENES if any(isinstance(part, ThinkingPart) and part.signature for part in scene.parts)]
WITH_CALLS = [scene for scene in SIGNED if scene.calls]
NAMED = {CHAT: "openrouter", MESSAGES: "moonshot", RESPONSES: "my own"}
OWNERS = {MESSAGES: "anthropic", RESPONSES: "openai"}
UNKNOWN_UPSTREAMS = ("my own", "another")
OTHER_UPSTREAM = {CHAT: "minimax", **OWNERS}
SEAL = re.compile(r"il2\.[\w-]+\.")

each_scene = pytest.mark.parametrize("scene", SIGNED, ids=str)
each_wire = pytest.mark.parametrize("wire", WIRES)


def options(upstream: str) -> il.Options:
    return il.Options(upstream=upstream, seal_key=KEY)


def streamed(scene: Scene, source: str, target: str, upstream: str) -> bytes:
    translator = il.Translator(source, target, scene.dialect, tools=scene.tools, options=options(upstream))
    return translator.feed(STREAMS[source](scene)) + translator.close()


def translated_body(scene: Scene, wire: str, upstream: str) -> Json:
    return il.translate_reply(BODIES[wire](scene), wire, wire, scene.dialect, options=options(upstream))


def prepare(body: Json, source: str, target: str, upstream: str) -> PreparedRequest:
    profile = None if upstream in UNKNOWN_UPSTREAMS else upstream
    return prepare_request(body, source, target, upstream=profile, options=options(upstream))


def native_signatures(scene: Scene) -> list[str]:
    return [part.signature for part in scene.parts if isinstance(part, ThinkingPart) and part.signature]


def open_envelopes(text: str, wire: str, upstream: str) -> str:
    """Replace envelopes by the values that the upstream sent, and check the upstream's name in them."""

    def value(match: re.Match[str]) -> str:
        signed = read_value_envelope(match[0], wire, KEY)
        assert signed is not None
        assert signed.upstream == upstream
        return signed.value

    return SEAL.sub(value, text)


def frames(stream: str) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in stream.split("\n") if not line.startswith("data: [DONE]")]
    return [json.loads(line) if line.startswith("{") else line for line in lines]


# ── replies ───────────────────────────────────────────────────────────────────────────────────────────────────────


@each_scene
@each_wire
def test_same_wire_changes_only_signatures(scene: Scene, wire: str) -> None:
    stream = streamed(scene, wire, wire, NAMED[wire]).decode()
    assert [native for native in native_signatures(scene) if native in stream] == []
    assert frames(open_envelopes(stream, wire, NAMED[wire])) == frames(streamed(scene, wire, wire, "").decode())


@each_scene
@each_wire
def test_whole_replies_equal_streamed_ones(scene: Scene, wire: str) -> None:
    body = json.dumps(translated_body(scene, wire, NAMED[wire]))
    assert {*SEAL.findall(body)} == {*SEAL.findall(streamed(scene, wire, wire, NAMED[wire]).decode())}
    assert json.loads(open_envelopes(body, wire, NAMED[wire])) == translated_body(scene, wire, "")


@each_scene
@pytest.mark.parametrize("wire", OWNERS)
def test_signatures_of_wire_owner_are_unchanged(scene: Scene, wire: str) -> None:
    assert streamed(scene, wire, wire, OWNERS[wire]) == streamed(scene, wire, wire, "")
    assert translated_body(scene, wire, OWNERS[wire]) == translated_body(scene, wire, "")


@each_scene
@each_wire
def test_official_sdks_accept_envelopes(scene: Scene, wire: str) -> None:
    output = streamed(scene, wire, wire, NAMED[wire])
    for listener in SDK_READERS[wire]:
        reply_view = listener(output, scene)
        assert reply_view.error is None
        assert [
            open_envelopes(signature, wire, NAMED[wire]) for signature in reply_view.signatures
        ] == native_signatures(scene)


@pytest.mark.parametrize(
    ("wire", "body"),
    [
        (MESSAGES, {"content_block": [], "delta": None, "content": {}, "messages": [None, {"content": "x"}]}),
        (MESSAGES, {"delta": {"type": "signature_delta", "signature": 1}}),
        (MESSAGES, {"content": [{"type": "thinking", "signature": ""}, {"type": [], "signature": "S"}, "x"]}),
        (RESPONSES, {"item": "x", "response": None, "output": [[]], "input": "Go."}),
        (CHAT, {"choices": {"delta": {}}, "messages": [{"reasoning_details": {"type": "reasoning.text"}}]}),
    ],
)
def test_body_without_signatures_is_unchanged(wire: str, body: Json) -> None:
    assert sign_reasoning(body, get_wire(wire).REASONING_FIELDS, options("x")) is body


@each_wire
@pytest.mark.parametrize("target", WIRES)
def test_envelope_on_another_wire_names_the_upstream(wire: str, target: str) -> None:
    if wire == target:
        return
    for scene in SIGNED:
        seals = SEAL.findall(streamed(scene, wire, target, NAMED[wire]).decode())
        assert seals
        for envelope in seals:
            thinking = read_envelope(envelope, KEY)
            assert thinking is not None
            assert thinking.seal is not None
            assert thinking.seal.upstream == NAMED[wire]


# ── the next request ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("scene", WITH_CALLS, ids=str)
@each_wire
def test_upstream_gets_its_signatures_back(scene: Scene, wire: str) -> None:
    """The request equals one without envelopes, including unknown fields."""
    upstream = NAMED[wire]
    body = FOLLOW_UPS[wire](streamed(scene, wire, wire, upstream), scene)
    unsigned = FOLLOW_UPS[wire](streamed(scene, wire, wire, ""), scene)
    if wire == MESSAGES:
        body["messages"][0]["unknown_field"] = unsigned["messages"][0]["unknown_field"] = 1
    prepared = prepare_request(body, wire, wire, options=options(upstream))
    assert prepared == prepare_request(unsigned, wire, wire)
    assert [native for native in native_signatures(scene) if native not in json.dumps(prepared.body)] == []
    with_profile = prepare(body, wire, wire, upstream)
    assert [native for native in native_signatures(scene) if native not in json.dumps(with_profile.body)] == []


@pytest.mark.parametrize("scene", WITH_CALLS, ids=str)
@each_wire
@pytest.mark.parametrize("client", WIRES)
def test_another_upstream_gets_no_foreign_signatures(scene: Scene, wire: str, client: str) -> None:
    body = FOLLOW_UPS[client](streamed(scene, wire, client, NAMED[wire]), scene)
    prepared = prepare(body, client, wire, OTHER_UPSTREAM[wire])
    body_text = json.dumps(prepared.body)
    assert ENVELOPE_PREFIX not in body_text
    assert [native for native in native_signatures(scene) if native in body_text] == []
    assert {"seal-dropped", "thinking-dropped"} & {finding.kind for finding in prepared.findings}


@each_wire
def test_without_upstream_name_all_signatures_are_returned(wire: str) -> None:
    for scene in WITH_CALLS:
        body = FOLLOW_UPS[wire](streamed(scene, wire, wire, NAMED[wire]), scene)
        unsigned = json.loads(open_envelopes(json.dumps(body), wire, NAMED[wire]))
        assert prepare_request(body, wire, wire, options=options("")) == prepare_request(unsigned, wire, wire)


def test_tool_arguments_that_look_like_thinking_are_unchanged() -> None:
    block = {"type": "thinking", "thinking": "hm", "signature": "S"}
    call = {"type": "tool_use", "id": "t", "name": "f", "input": {"content": [block], **block}}
    body = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [call],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    assert il.translate_reply(body, MESSAGES, MESSAGES, options=options("moonshot")) == body


def test_upstream_name_takes_precedence_over_profile() -> None:
    """Two servers may share OpenAI's profile, but cannot decrypt each other's data."""
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "E"}
    body = {"model": "m", "input": [item, {"role": "user", "content": "Go."}]}
    by_profile = prepare_request(body, RESPONSES, RESPONSES, upstream="openai")
    assert by_profile.body["input"][0] == item
    by_name = prepare_request(body, RESPONSES, RESPONSES, upstream="openai", options=options("azure"))
    assert by_name.body["input"] == body["input"][1:]
    assert [finding.kind for finding in by_name.findings] == ["thinking-dropped"]


# ── a session with several models ─────────────────────────────────────────────────────────────────────────────────

ASK: dict[str, Json] = {
    MESSAGES: {"role": "user", "content": "Go on."},
    RESPONSES: {"role": "user", "content": "Go on."},
    CHAT: {"role": "user", "content": "Go on."},
}


def thinking(wire: str, signature: str) -> Json:
    if wire == CHAT:
        return {"type": "reasoning.text", "text": f"by {signature}", "signature": signature, "index": 0}
    if wire == MESSAGES:
        return {"type": "thinking", "thinking": f"by {signature}", "signature": signature}
    summary = [{"type": "summary_text", "text": f"by {signature}"}]
    return {"type": "reasoning", "id": f"rs_{signature}", "summary": summary, "encrypted_content": signature}


def reply(wire: str, signature: str) -> Json:
    if wire == CHAT:
        reasoning = {"reasoning": f"by {signature}", "reasoning_details": [thinking(wire, signature)]}
        message = {"role": "assistant", "content": "So.", **reasoning}
        return {"id": "c", "object": "chat.completion", "choices": [{"index": 0, "message": message}]}
    if wire == MESSAGES:
        content = [thinking(wire, signature), {"type": "text", "text": "So."}]
        usage = {"input_tokens": 1, "output_tokens": 1}
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m"}
        return {**head, "content": content, "stop_reason": "end_turn", "usage": usage}
    part = {"type": "output_text", "text": "So.", "annotations": []}
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
    return {"id": "resp_1", "object": "response", "status": "completed", "output": [thinking(wire, signature), message]}


LISTS = {MESSAGES: "messages", RESPONSES: "input", CHAT: "messages"}


def as_history(wire: str, body: Json) -> list[Json]:
    """Return a reply as its client sends it back."""
    if wire == MESSAGES:
        return [{"role": "assistant", "content": body["content"]}]
    return list(body["output"]) if wire == RESPONSES else [body["choices"][0]["message"]]


def session(wire: str, *upstreams: str) -> list[PreparedRequest]:
    """Return the request to each upstream if each answers once and signs with its name."""
    history, requests = [ASK[wire]], []
    for upstream in upstreams:
        requests.append(prepare({"model": "m", "max_tokens": 9, LISTS[wire]: history}, wire, wire, upstream))
        body = il.translate_reply(reply(wire, upstream), wire, wire, options=options(upstream))
        history = [*history, *as_history(wire, body), ASK[wire]]
    return requests


def past_thinking(wire: str, prepared: PreparedRequest) -> list[Json]:
    """Return the thinking in a request."""
    if wire == MESSAGES:
        blocks = [
            block
            for message in prepared.body["messages"]
            if message["role"] == "assistant"
            for block in message["content"]
        ]
        return [block for block in blocks if block["type"] == "thinking"]
    return [item for item in prepared.body["input"] if item.get("type") == "reasoning"]


def as_text(wire: str, signature: str) -> Json:
    if wire == MESSAGES:
        return {**thinking(wire, signature), "signature": ""}
    return {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": f"by {signature}"}]}


@pytest.mark.parametrize("wire", OWNERS)
def test_switching_models_and_back(wire: str) -> None:
    own, owner = NAMED[wire], OWNERS[wire]
    turns = session(wire, own, owner, own, owner, own)
    kinds = [[finding.kind for finding in prepared.findings if "thinking" in finding.message] for prepared in turns]
    mine, theirs = thinking(wire, own), thinking(wire, owner)
    assert [past_thinking(wire, prepared) for prepared in turns] == [
        [],
        [],  # the wire's owner accepts only its own signatures
        [mine, as_text(wire, owner)],
        [theirs],
        [mine, as_text(wire, owner), mine, as_text(wire, owner)],
    ]
    assert kinds == [[], ["thinking-dropped"], ["seal-dropped"], ["thinking-dropped"], ["seal-dropped"]]
    for before, after in ((turns[0], turns[2]), (turns[2], turns[4]), (turns[1], turns[3])):
        assert has_prefix(wire, after, before)


def has_prefix(wire: str, after: PreparedRequest, before: PreparedRequest) -> bool:
    history = before.body[LISTS[wire]]
    return json.dumps(after.body[LISTS[wire]][: len(history)]) == json.dumps(history)


SWITCHES = [
    (wire, first, second)
    for wire, upstreams in {
        MESSAGES: ("anthropic", "moonshot", "minimax", "my own", "another"),
        RESPONSES: ("openai", "my own", "another"),
        CHAT: ("openrouter", "my own", "another"),
    }.items()
    for first in upstreams
    for second in upstreams
    if first != second
]


@pytest.mark.parametrize(("wire", "first", "second"), SWITCHES)
def test_prompt_prefix_is_stable_after_switching_back(wire: str, first: str, second: str) -> None:
    """Only the thinking of the other upstream is converted, always to the same text."""
    names = (first, first, second, first, first, second, second, first)
    turns = session(wire, *names)
    for name in (first, second):
        own = [prepared for prepared, answered_by in zip(turns, names, strict=True) if answered_by == name]
        assert [n for n in range(1, len(own)) if not has_prefix(wire, own[n], own[n - 1])] == []
    last = json.dumps(turns[-1].body)
    assert ENVELOPE_PREFIX not in last
    assert last.count(f'"{first}"') == 4
    assert f'"{second}"' not in last
    if first in UNKNOWN_UPSTREAMS:  # which receive everything else unchanged
        assert turns[-1].body[LISTS[wire]][:: 3 if wire == RESPONSES else 2] == [ASK[wire]] * 8
        assert last.count(f"by {second}") == 3


# ── unknown owner ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("profile", [None, "moonshot", "minimax", "anthropic"])
def test_profile_without_name_does_not_change_ownership(profile: str | None) -> None:
    """The reply was translated without an upstream name, too."""
    body = il.translate_reply(reply(MESSAGES, "S"), MESSAGES, MESSAGES)
    follow_up = {"model": "m", "max_tokens": 9, "messages": [ASK[MESSAGES], *as_history(MESSAGES, body), ASK[MESSAGES]]}
    prepared = prepare_request(follow_up, MESSAGES, MESSAGES, upstream=profile)
    assert (past_thinking(MESSAGES, prepared), prepared.findings) == ([thinking(MESSAGES, "S")], [])


@pytest.mark.parametrize(
    ("wire", "place"),
    [
        (MESSAGES, "messages[1].content[0].signature"),
        (RESPONSES, "input[1].encrypted_content"),
        (CHAT, "messages[1].reasoning_details[0].signature"),
    ],
)
@pytest.mark.parametrize("target", WIRES)
@pytest.mark.parametrize("with_profile", [True, False])
def test_unreadable_envelope_is_reported_with_its_path(wire: str, place: str, target: str, with_profile: bool) -> None:
    upstream = NAMED[wire]
    body = il.translate_reply(reply(wire, upstream), wire, wire, options=options(upstream))
    follow_up = {"model": "m", "max_tokens": 9, LISTS[wire]: [ASK[wire], *as_history(wire, body), ASK[wire]]}
    other_key = il.Options(upstream=upstream, seal_key=b"another key")
    prepared = prepare_request(
        follow_up, wire, target, upstream=OTHER_UPSTREAM[target] if with_profile else None, options=other_key
    )
    assert ENVELOPE_PREFIX not in json.dumps(prepared.body)
    assert [finding.place for finding in prepared.findings if finding.kind == "seal-unreadable"] == [place]


def test_signature_in_several_deltas_is_returned_whole() -> None:
    """On chat completions each piece has its own envelope, and clients concatenate pieces with the same index."""
    deltas = [{"reasoning_details": [thinking(CHAT, piece)]} for piece in ("SI", "G")]
    chunks = [{"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": it}]} for it in deltas]
    translator = il.Translator(CHAT, CHAT, options=options("openrouter"))
    chunks_sent = frames(
        translator.feed("".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks).encode()).decode()
    )
    pieces = [chunk["choices"][0]["delta"] for chunk in chunks_sent if chunk]
    details = [detail for piece in pieces for detail in piece.get("reasoning_details", ())]
    merged = {**details[0], "text": "hm", "signature": "".join(detail["signature"] for detail in details)}
    message = {"role": "assistant", "content": "So.", "reasoning": "hm", "reasoning_details": [merged, "odd"]}
    body = {"model": "m", "messages": [ASK[CHAT], message, ASK[CHAT]]}
    for name, signatures in {"openrouter": ["SIG"], "minimax": [], "another": []}.items():
        message_sent = prepare(body, CHAT, CHAT, name).body["messages"][1]
        returned = [
            detail.get("signature") for detail in message_sent.get("reasoning_details", []) if isinstance(detail, dict)
        ]
        assert [detail for detail in returned if detail] == signatures
