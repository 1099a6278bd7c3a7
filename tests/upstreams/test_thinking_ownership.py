"""What an upstream has signed goes back to it as it was, and to no other, also if models are switched in a session."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import interlingua as il
from interlingua.core.reasoning_signatures import ENVELOPE_PREFIX, read_envelope, read_value_envelope
from interlingua.translation.request_translation import PreparedRequest, prepare_request
from interlingua.upstreams.profile import CHAT, MESSAGES, RESPONSES
from interlingua.wires.reasoning_fields import sign_reasoning
from tests.support.pair_clients import FOLLOW_UPS, SDK_READERS
from tests.support.pair_scenes import SCENES, Scene, ThinkingPart
from tests.support.pair_sources import BODIES, STREAMS
from tests.support.sdk import Json

KEY = b"a key"
WIRES = [CHAT, MESSAGES, RESPONSES]
SIGNED = [scene for scene in SCENES if any(isinstance(part, ThinkingPart) and part.signature for part in scene.parts)]
WITH_CALLS = [scene for scene in SIGNED if scene.calls]
NAMED = {CHAT: "openrouter", MESSAGES: "moonshot", RESPONSES: "my own"}
OWNERS = {MESSAGES: "anthropic", RESPONSES: "openai"}
STRANGERS = ("my own", "another")
ANOTHER = {CHAT: "minimax", **OWNERS}
SEAL = re.compile(r"il1\.[\w-]+\.[\w-]+")

each_scene = pytest.mark.parametrize("scene", SIGNED, ids=str)
each_wire = pytest.mark.parametrize("wire", WIRES)


def options(upstream: str) -> il.Options:
    return il.Options(upstream=upstream, seal_key=KEY)


def streamed(scene: Scene, source: str, target: str, upstream: str) -> bytes:
    translator = il.Translator(source, target, scene.dialect, tools=scene.tools, options=options(upstream))
    return translator.feed(STREAMS[source](scene)) + translator.close()


def whole(scene: Scene, wire: str, upstream: str) -> Json:
    return il.translate_reply(BODIES[wire](scene), wire, wire, scene.dialect, options=options(upstream))


def asked(body: Json, source: str, target: str, upstream: str) -> PreparedRequest:
    profile = None if upstream in STRANGERS else upstream
    return prepare_request(body, source, target, upstream=profile, options=options(upstream))


def natives(scene: Scene) -> list[str]:
    return [part.signature for part in scene.parts if isinstance(part, ThinkingPart) and part.signature]


def opened(told: str, wire: str, upstream: str) -> str:
    """With what the upstream had sent, where it is sealed with its name."""

    def value(found: re.Match[str]) -> str:
        sent = read_value_envelope(found[0], wire, KEY)
        assert sent is not None
        assert sent.upstream == upstream
        return sent.value

    return SEAL.sub(value, told)


def frames(stream: str) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in stream.split("\n") if not line.startswith("data: [DONE]")]
    return [json.loads(line) if line.startswith("{") else line for line in lines]


# ── replies ───────────────────────────────────────────────────────────────────────────────────────────────────────


@each_scene
@each_wire
def test_a_client_of_the_same_wire_gets_all_as_it_was_but_for_what_is_signed(scene: Scene, wire: str) -> None:
    named = streamed(scene, wire, wire, NAMED[wire]).decode()
    assert [native for native in natives(scene) if native in named] == []
    assert frames(opened(named, wire, NAMED[wire])) == frames(streamed(scene, wire, wire, "").decode())


@each_scene
@each_wire
def test_whole_replies_are_as_streamed_ones(scene: Scene, wire: str) -> None:
    body = json.dumps(whole(scene, wire, NAMED[wire]))
    assert {*SEAL.findall(body)} == {*SEAL.findall(streamed(scene, wire, wire, NAMED[wire]).decode())}
    assert json.loads(opened(body, wire, NAMED[wire])) == whole(scene, wire, "")


@each_scene
@pytest.mark.parametrize("wire", OWNERS)
def test_what_the_owner_of_a_wire_signs_passes(scene: Scene, wire: str) -> None:
    assert streamed(scene, wire, wire, OWNERS[wire]) == streamed(scene, wire, wire, "")
    assert whole(scene, wire, OWNERS[wire]) == whole(scene, wire, "")


@each_scene
@each_wire
def test_official_clients_take_it(scene: Scene, wire: str) -> None:
    told = streamed(scene, wire, wire, NAMED[wire])
    for listener in SDK_READERS[wire]:
        heard = listener(told, scene)
        assert heard.error is None
        assert [opened(one, wire, NAMED[wire]) for one in heard.signatures] == natives(scene)


@pytest.mark.parametrize(
    ("wire", "odd"),
    [
        (MESSAGES, {"content_block": [], "delta": None, "content": {}, "messages": [None, {"content": "x"}]}),
        (MESSAGES, {"delta": {"type": "signature_delta", "signature": 1}}),
        (MESSAGES, {"content": [{"type": "thinking", "signature": ""}, {"type": [], "signature": "S"}, "x"]}),
        (RESPONSES, {"item": "x", "response": None, "output": [[]], "input": "Go."}),
        (CHAT, {"choices": {"delta": {}}, "messages": [{"reasoning_details": {"type": "reasoning.text"}}]}),
    ],
)
def test_where_nothing_is_signed_all_stays(wire: str, odd: Json) -> None:
    assert sign_reasoning(odd, wire, options("x")) is odd


@each_wire
@pytest.mark.parametrize("target", WIRES)
def test_what_travels_on_another_wire_has_the_name_of_its_upstream(wire: str, target: str) -> None:
    if wire == target:
        return
    for scene in SIGNED:
        seals = SEAL.findall(streamed(scene, wire, target, NAMED[wire]).decode())
        assert seals
        for one in seals:
            thinking = read_envelope(one, KEY)
            assert thinking is not None
            assert thinking.seal is not None
            assert thinking.seal.upstream == NAMED[wire]


# ── the next request ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("scene", WITH_CALLS, ids=str)
@each_wire
def test_the_upstream_gets_back_what_it_had_sent(scene: Scene, wire: str) -> None:
    """Just as if nothing had been sealed, and so with all that nobody here knows."""
    upstream = NAMED[wire]
    body = FOLLOW_UPS[wire](streamed(scene, wire, wire, upstream), scene)
    plain = FOLLOW_UPS[wire](streamed(scene, wire, wire, ""), scene)
    if wire == MESSAGES:
        body["messages"][0]["nobody knows"] = plain["messages"][0]["nobody knows"] = 1
    told = prepare_request(body, wire, wire, options=options(upstream))
    assert told == prepare_request(plain, wire, wire)
    assert [native for native in natives(scene) if native not in json.dumps(told.body)] == []
    known = asked(body, wire, wire, upstream)
    assert [native for native in natives(scene) if native not in json.dumps(known.body)] == []


@pytest.mark.parametrize("scene", WITH_CALLS, ids=str)
@each_wire
@pytest.mark.parametrize("client", WIRES)
def test_another_upstream_does_not(scene: Scene, wire: str, client: str) -> None:
    body = FOLLOW_UPS[client](streamed(scene, wire, client, NAMED[wire]), scene)
    told = asked(body, client, wire, ANOTHER[wire])
    sent = json.dumps(told.body)
    assert ENVELOPE_PREFIX not in sent
    assert [native for native in natives(scene) if native in sent] == []
    assert {"seal-dropped", "thinking-dropped"} & {finding.kind for finding in told.findings}


@each_wire
def test_without_a_name_all_goes_back(wire: str) -> None:
    for scene in WITH_CALLS:
        body = FOLLOW_UPS[wire](streamed(scene, wire, wire, NAMED[wire]), scene)
        plain = json.loads(opened(json.dumps(body), wire, NAMED[wire]))
        assert prepare_request(body, wire, wire, options=options("")) == prepare_request(plain, wire, wire)


def test_a_tool_may_be_given_what_looks_like_thinking() -> None:
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


def test_a_name_counts_more_than_a_profile() -> None:
    """Two servers may have the ways of OpenAI, and not read what the other has encrypted."""
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
        said = {"reasoning": f"by {signature}", "reasoning_details": [thinking(wire, signature)]}
        message = {"role": "assistant", "content": "So.", **said}
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


def said(wire: str, body: Json) -> list[Json]:
    """A reply, as its client sends it back."""
    if wire == MESSAGES:
        return [{"role": "assistant", "content": body["content"]}]
    return list(body["output"]) if wire == RESPONSES else [body["choices"][0]["message"]]


def session(wire: str, *upstreams: str) -> list[PreparedRequest]:
    """What each upstream is sent, if each answers once and signs with its name."""
    history, sent = [ASK[wire]], []
    for upstream in upstreams:
        sent.append(asked({"model": "m", "max_tokens": 9, LISTS[wire]: history}, wire, wire, upstream))
        body = il.translate_reply(reply(wire, upstream), wire, wire, options=options(upstream))
        history = [*history, *said(wire, body), ASK[wire]]
    return sent


def past(wire: str, told: PreparedRequest) -> list[Json]:
    """The thinking in a request."""
    if wire == MESSAGES:
        blocks = [
            block for message in told.body["messages"] if message["role"] == "assistant" for block in message["content"]
        ]
        return [block for block in blocks if block["type"] == "thinking"]
    return [item for item in told.body["input"] if item.get("type") == "reasoning"]


def as_text(wire: str, signature: str) -> Json:
    if wire == MESSAGES:
        return {**thinking(wire, signature), "signature": ""}
    return {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": f"by {signature}"}]}


@pytest.mark.parametrize("wire", OWNERS)
def test_the_model_is_switched_and_switched_back(wire: str) -> None:
    own, owner = NAMED[wire], OWNERS[wire]
    turns = session(wire, own, owner, own, owner, own)
    kinds = [[finding.kind for finding in told.findings if "thinking" in finding.message] for told in turns]
    mine, theirs = thinking(wire, own), thinking(wire, owner)
    assert [past(wire, told) for told in turns] == [
        [],
        [],  # the owner takes only what it has signed itself
        [mine, as_text(wire, owner)],
        [theirs],
        [mine, as_text(wire, owner), mine, as_text(wire, owner)],
    ]
    assert kinds == [[], ["thinking-dropped"], ["seal-dropped"], ["thinking-dropped"], ["seal-dropped"]]
    for before, after in ((turns[0], turns[2]), (turns[2], turns[4]), (turns[1], turns[3])):
        assert begins_like(wire, after, before)


def begins_like(wire: str, after: PreparedRequest, before: PreparedRequest) -> bool:
    told = before.body[LISTS[wire]]
    return json.dumps(after.body[LISTS[wire]][: len(told)]) == json.dumps(told)


SWITCHED = [
    (wire, one, other)
    for wire, upstreams in {
        MESSAGES: ("anthropic", "moonshot", "minimax", "my own", "another"),
        RESPONSES: ("openai", "my own", "another"),
        CHAT: ("openrouter", "my own", "another"),
    }.items()
    for one in upstreams
    for other in upstreams
    if one != other
]


@pytest.mark.parametrize(("wire", "one", "other"), SWITCHED)
def test_prompt_caches_hold_when_the_model_is_switched_back(wire: str, one: str, other: str) -> None:
    """Only the thinking of the other is told otherwise, and always the same."""
    names = (one, one, other, one, one, other, other, one)
    turns = session(wire, *names)
    for name in (one, other):
        own = [told for told, asked in zip(turns, names, strict=True) if asked == name]
        assert [n for n in range(1, len(own)) if not begins_like(wire, own[n], own[n - 1])] == []
    last = json.dumps(turns[-1].body)
    assert ENVELOPE_PREFIX not in last
    assert last.count(f'"{one}"') == 4
    assert f'"{other}"' not in last
    if one in STRANGERS:  # which are told all else as the client says it
        assert turns[-1].body[LISTS[wire]][:: 3 if wire == RESPONSES else 2] == [ASK[wire]] * 8
        assert last.count(f"by {other}") == 3


# ── whose is not known ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("profile", [None, "moonshot", "minimax", "anthropic"])
def test_a_profile_alone_names_nobody(profile: str | None) -> None:
    """The reply was not told a name either."""
    body = il.translate_reply(reply(MESSAGES, "S"), MESSAGES, MESSAGES)
    asked = {"model": "m", "max_tokens": 9, "messages": [ASK[MESSAGES], *said(MESSAGES, body), ASK[MESSAGES]]}
    told = prepare_request(asked, MESSAGES, MESSAGES, upstream=profile)
    assert (past(MESSAGES, told), told.findings) == ([thinking(MESSAGES, "S")], [])


@pytest.mark.parametrize(
    ("wire", "place"),
    [
        (MESSAGES, "messages[1].content[0].signature"),
        (RESPONSES, "input[1].encrypted_content"),
        (CHAT, "messages[1].reasoning_details[0].signature"),
    ],
)
@pytest.mark.parametrize("target", WIRES)
@pytest.mark.parametrize("known", [True, False])
def test_a_seal_that_cannot_be_opened_is_told_with_its_place(wire: str, place: str, target: str, known: bool) -> None:
    named = NAMED[wire]
    body = il.translate_reply(reply(wire, named), wire, wire, options=options(named))
    asked = {"model": "m", "max_tokens": 9, LISTS[wire]: [ASK[wire], *said(wire, body), ASK[wire]]}
    other_key = il.Options(upstream=named, seal_key=b"another key")
    told = prepare_request(asked, wire, target, upstream=ANOTHER[target] if known else None, options=other_key)
    assert ENVELOPE_PREFIX not in json.dumps(told.body)
    assert [finding.place for finding in told.findings if finding.kind == "seal-unreadable"] == [place]


def test_signatures_that_came_in_pieces_go_back_whole() -> None:
    """On chat completions each piece is sealed, and clients join what has one index."""
    deltas = [{"reasoning_details": [thinking(CHAT, piece)]} for piece in ("SI", "G")]
    chunks = [{"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": it}]} for it in deltas]
    translator = il.Translator(CHAT, CHAT, options=options("openrouter"))
    told = frames(translator.feed("".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks).encode()).decode())
    pieces = [chunk["choices"][0]["delta"] for chunk in told if chunk]
    details = [detail for piece in pieces for detail in piece.get("reasoning_details", ())]
    joined = {**details[0], "text": "hm", "signature": "".join(detail["signature"] for detail in details)}
    message = {"role": "assistant", "content": "So.", "reasoning": "hm", "reasoning_details": [joined, "odd"]}
    body = {"model": "m", "messages": [ASK[CHAT], message, ASK[CHAT]]}
    for name, signatures in {"openrouter": ["SIG"], "minimax": [], "another": []}.items():
        past = asked(body, CHAT, CHAT, name).body["messages"][1]
        found = [one.get("signature") for one in past.get("reasoning_details", []) if isinstance(one, dict)]
        assert [one for one in found if one] == signatures
