"""Every wire in front of every wire, scene by scene: what goes out is what the upstream meant, and every client of the
target, strict or official, understands just that."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

import interlingua as il
from interlingua import events as ev
from interlingua.core.options import Options
from interlingua.core.reasoning_signatures import read_envelope
from tests.support import pair_clients as clients
from tests.support.cuts import random_pieces, single_units, two_piece_cuts
from tests.support.pair_clients import ReplyPart, ReplyView, merge_parts, sort_by_kind
from tests.support.pair_scenes import ERROR_MESSAGE, SCENES, CallPart, RefusalPart, Scene, TextPart, ThinkingPart
from tests.support.pair_sources import BODIES, CHAT, MESSAGES, MODEL, RESPONSES, STREAMS

WIRES = (CHAT, MESSAGES, RESPONSES)
KEY = b"key"
LEGAL = {CHAT: r".{1,64}", MESSAGES: r"[a-zA-Z0-9_-]{1,64}", RESPONSES: r".{1,64}"}

CELLS = [
    pytest.param(scene, source, target, id=f"{scene.name}, {source} to {target}")
    for scene, source, target in product(SCENES, WIRES, WIRES)
]
each_cell = pytest.mark.parametrize(("scene", "source", "target"), CELLS)


def run(
    scene: Scene, source: str, target: str, given: Iterable[bytes], **options: Any
) -> tuple[bytes, list[ev.Finding]]:
    chosen = Options(seal_key=KEY, **options)
    translator = il.Translator(source, target, scene.dialect, tools=scene.tools, options=chosen)
    out = b"".join([*map(translator.feed, given), translator.close()])
    return out, translator.findings


def translated(scene: Scene, source: str, target: str, size: int = 5) -> bytes:
    return run(scene, source, target, [STREAMS[source](scene, size)])[0]


# ── what a client is to understand ────────────────────────────────────────────────────────────────────────────────


def expected(scene: Scene, source: str, target: str) -> ReplyView:
    said: list[ReplyPart] = []
    for part in scene.expected_parts:
        match part:
            case CallPart():
                said.append(("call", legal(part.id, target), part.name, part.args))
            case ThinkingPart():
                said.append(("thought", part.text))
            case TextPart():
                said.append(("text", part.text))
            case RefusalPart():
                # Where no other wire has a field for it, it is told as text.
                said.append(("text" if target == MESSAGES != source else "refusal", part.text))
    said = merge_parts(said) if target != CHAT else sort_by_kind(said)  # which has no order
    if scene.ending != "well":
        return ReplyView(said, error=ERROR_MESSAGE if scene.ending == "error" else "the upstream ended")
    refused = any(isinstance(part, RefusalPart) for part in scene.parts)
    stop = "content_filter" if refused and MESSAGES in (source, target) else scene.stop
    if stop == "stop" and scene.calls:
        stop = "tool_calls"
    sequence = scene.sequence if source == target == MESSAGES else None
    return ReplyView(said, stop, sequence, scene.tokens)


def legal(id: str, target: str) -> str:
    return id.replace("functions.get_weather:", "il-functions_2eget_5fweather_3a") if target == MESSAGES else id


def check(heard: ReplyView, scene: Scene, source: str, target: str) -> None:
    """That a client has understood the scene."""
    right = expected(scene, source, target)
    if right.error is not None:
        assert heard.error is not None
        assert right.error in heard.error
        return
    assert heard.error is None
    assert said(heard.parts, scene) == said(right.parts, scene)
    assert (heard.stop, heard.sequence, heard.tokens) == (right.stop, right.sequence, right.tokens)
    check_seals(heard, scene, source, target)


def said(told: list[ReplyPart], scene: Scene) -> list[Any]:
    """Arguments as values. Of a call that was cut each client makes something else, or nothing."""
    cut = {legal(call.id, wire) for call in scene.calls if not call.is_complete for wire in WIRES}
    whole = [one for one in told if one[0] != "call" or one[1] not in cut]
    return [(*one[:3], json.loads(one[3] or "{}")) if one[0] == "call" else one for one in whole]


def check_seals(heard: ReplyView, scene: Scene, source: str, target: str) -> None:
    """Thinking can come back to its upstream: as it was sealed there, or sealed by us with all that it had."""
    thoughts = [part for part in scene.expected_parts if isinstance(part, ThinkingPart)]
    if source == target:
        assert heard.signatures == [part.signature for part in thoughts if part.signature]
        return
    opened = [read_envelope(seal, KEY) for seal in heard.signatures]
    if target == CHAT:  # which has a field for thinking, and needs no seal for it
        thoughts = [part for part in thoughts if part.signature]
    assert [one and one.text for one in opened] == [part.text for part in thoughts]
    for one, part in zip(opened, thoughts, strict=True):
        assert one is not None
        assert one.seal is not None
        assert part.signature in json.dumps(one.seal.data)
        assert not part.signature or one.seal.wire == source


# ── streams ───────────────────────────────────────────────────────────────────────────────────────────────────────


@each_cell
def test_strict_clients_understand(scene: Scene, source: str, target: str) -> None:
    out = translated(scene, source, target)
    heard = clients.STRICT_READERS[target](out, scene)
    check(heard, scene, source, target)
    if scene.ending == "well" or target != RESPONSES:  # where what is not done is no part of a response that failed
        assert arguments(heard.parts) == arguments(expected(scene, source, target).parts), "byte for byte"


def arguments(told: list[ReplyPart]) -> list[ReplyPart]:
    """Those of a custom tool are written by us, or by the client that heard its text."""
    return [(*one[:3], json.dumps(json.loads(one[3]))) if one[-1].startswith('{"input"') else one for one in told]


@pytest.mark.cuts
@each_cell
def test_official_clients_understand(scene: Scene, source: str, target: str) -> None:
    out = translated(scene, source, target)
    for listen in clients.SDK_READERS[target]:
        check(listen(out, scene), scene, source, target)


@pytest.mark.cuts
@each_cell
def test_however_the_upstream_cuts_its_text(scene: Scene, source: str, target: str) -> None:
    for size in (1, 1000):
        heard = clients.STRICT_READERS[target](translated(scene, source, target, size), scene)
        check(heard, scene, source, target)


@pytest.mark.cuts
@each_cell
def test_however_it_is_cut(scene: Scene, source: str, target: str) -> None:
    stream = STREAMS[source](scene, 50)
    whole = run(scene, source, target, [stream])
    every = len(stream) if len(stream) < 600 else 25
    for cut in (
        single_units(stream),
        random_pieces(stream, 1),
        random_pieces(stream, 2),
        *two_piece_cuts(stream, every),
    ):
        assert run(scene, source, target, cut) == whole, cut


@pytest.mark.parametrize("source", WIRES)
def test_a_call_that_was_cut_is_run_by_nobody(source: str) -> None:
    scene = next(scene for scene in SCENES if scene.name == "length inside a call")
    names = [call.name for call in scene.calls]
    called, requests, _ = clients.run_tools([translated(scene, source, MESSAGES)], names)
    assert (called, len(requests)) == ([], 1)
    done = clients.responses_create(translated(scene, source, RESPONSES), scene)
    assert [one[2] for one in done.parts] == names[:1]
    assert clients.chat_create(translated(scene, source, CHAT), scene).stop == "length"


@pytest.mark.cuts
@each_cell
def test_with_whole_calls_and_another_name(scene: Scene, source: str, target: str) -> None:
    """A call that is cut is not delivered, and the client hears the name that it asked for and no other."""
    given = STREAMS[source](scene)
    out, _ = run(scene, source, target, [given], delivery="whole", served_as="asked-for")
    heard = clients.STRICT_READERS[target](out, scene)
    check(heard, scene, source, target)
    if scene.ending == "well":
        assert [one[2] for one in heard.parts if one[0] == "call"] == [
            one.name for one in scene.calls if one.is_complete
        ]
        assert b'"asked-for"' in out
    assert MODEL.encode() not in out


@pytest.mark.cuts
@each_cell
def test_wherever_it_breaks_off(scene: Scene, source: str, target: str) -> None:
    """The client is told an end all the same, and a proper one."""
    events = STREAMS[source](scene, 20).split(b"\n\n")
    for count in range(len(events)):
        out, _ = run(scene, source, target, [b"\n\n".join(events[:count]) + b"\n\n"])
        heard = clients.STRICT_READERS[target](out, scene)
        assert bool(heard.error) != bool(heard.stop), count


# ── whole replies ─────────────────────────────────────────────────────────────────────────────────────────────────

HAS_BODY = [
    cell
    for cell in CELLS
    for scene, source, _ in [cell.values]
    if isinstance(scene, Scene)
    and scene.ending != "broken off"
    and not (source == MESSAGES and any(not call.is_complete for call in scene.calls))  # whose arguments are an object
]


@pytest.mark.parametrize(("scene", "source", "target"), HAS_BODY)
def test_stream_is_whole(scene: Scene, source: str, target: str) -> None:
    options = Options(seal_key=KEY)
    body = il.translate_reply(BODIES[source](scene), source, target, scene.dialect, tools=scene.tools, options=options)
    heard = clients.BODY_READERS[target](body, scene)
    ordered = in_order(scene) if source == CHAT else scene
    check(heard, ordered, source, target)
    streamed = clients.STRICT_READERS[target](translated(ordered, source, target), scene)
    if scene.ending == "well":
        assert replace(heard, parts=said(heard.parts, scene)) == replace(streamed, parts=said(streamed.parts, scene))


def as_sent(cell: Any) -> bool:
    """Whether the scene expects what only the upstream's own bytes can say: its seals, and details of a refusal."""
    scene, source, target = cell.values
    return source == target != CHAT and any(
        isinstance(part, ThinkingPart | RefusalPart) for part in scene.expected_parts
    )


@pytest.mark.parametrize(("scene", "source", "target"), [cell for cell in HAS_BODY if not as_sent(cell)])
def test_a_whole_reply_for_a_client_that_wants_a_stream(scene: Scene, source: str, target: str) -> None:
    translator = il.Translator(source, target, scene.dialect, tools=scene.tools, options=Options(seal_key=KEY))
    heard = clients.STRICT_READERS[target](translator.stream(BODIES[source](scene)), scene)
    check(heard, in_order(scene) if source == CHAT else scene, source, target)
    assert translator.ended


@pytest.mark.cuts
@pytest.mark.parametrize(("scene", "source", "target"), [cell for cell in CELLS if not as_sent(cell)])
def test_a_stream_for_a_client_that_wants_a_whole_reply(scene: Scene, source: str, target: str) -> None:
    translator = il.Translator(source, target, scene.dialect, tools=scene.tools, options=Options(seal_key=KEY))
    heard = clients.BODY_READERS[target](translator.fold(STREAMS[source](scene, 5)), scene)
    check(heard, in_order(scene) if target == CHAT else scene, source, target)
    tally = translator.tally
    assert bool(tally.failure) == bool(heard.error)
    assert tally.calls == sum(one[0] == "call" for one in heard.parts) or heard.error


@pytest.mark.cuts
@each_cell
def test_wherever_it_is_given_up(scene: Scene, source: str, target: str) -> None:
    """Whoever carries the bytes may end the reply: with an error, unless all had been said."""
    events = STREAMS[source](scene, 20).split(b"\n\n")
    for count in (0, 1, len(events) // 2, len(events)):
        translator = il.Translator(source, target, scene.dialect, tools=scene.tools, options=Options(seal_key=KEY))
        out = translator.feed(b"\n\n".join(events[:count]) + b"\n\n")
        ended = translator.ended
        out += translator.abort("the line went dead", "timeout_error")
        heard = clients.STRICT_READERS[target](out, scene)
        assert bool(heard.error) != bool(heard.stop), count
        assert ended or heard.stop or "the line went dead" in str(heard.error)


def in_order(scene: Scene) -> Scene:
    """As a body tells it that has a field for each kind."""
    kinds = (ThinkingPart, TextPart, RefusalPart, CallPart)
    parts = sorted(scene.parts, key=lambda part: kinds.index(type(part)))
    heard = sorted(scene.expected_parts, key=lambda part: kinds.index(type(part)))
    return replace(scene, parts=parts, expected=heard)


# ── ids ───────────────────────────────────────────────────────────────────────────────────────────────────────────

CALLING = [scene for scene in SCENES if scene.calls and scene.ending == "well"]
each_calling_cell = pytest.mark.parametrize(
    ("scene", "source", "target"), [cell for cell in CELLS if cell.values[0] in CALLING]
)


@pytest.mark.cuts
@each_calling_cell
def test_ids_are_legal_and_new(scene: Scene, source: str, target: str) -> None:
    taken = tuple(call.id for call in scene.calls)
    out, findings = run(scene, source, target, [STREAMS[source](scene, 50)], taken_ids=taken)
    ids = [one[1] for one in clients.STRICT_READERS[target](out, scene).parts if one[0] == "call"]
    assert len(ids) == len(scene.calls)
    assert len(set(ids)) == len(ids)
    assert not set(ids) & {legal(id, target) for id in taken}
    assert all(re.fullmatch(LEGAL[target], id) for id in ids)
    assert [finding.kind for finding in findings].count("id-renamed") == len(ids)


# ── a loop ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.cuts
@pytest.mark.parametrize("source", WIRES)
@pytest.mark.parametrize("scene", [scene for scene in CALLING if scene.stop != "length"], ids=str)
def test_the_tool_runner_goes_on(scene: Scene, source: str) -> None:
    """Two turns: the calls are run with their arguments, their results go back under their ids, and then there is
    text."""
    done = translated(Scene("done", [TextPart("Done.")]), source, MESSAGES)
    turns = [translated(scene, source, MESSAGES), done]
    called, requests, text = clients.run_tools(turns, [call.name for call in scene.calls])
    assert called == [(call.name, json.loads(call.args)) for call in scene.calls]
    assert text == "Done."
    *_, answered, results = requests[1]["messages"]
    ids = [legal(call.id, MESSAGES) for call in scene.calls]
    assert [block["id"] for block in answered["content"] if block["type"] == "tool_use"] == ids
    assert [block["tool_use_id"] for block in results["content"]] == ids


@pytest.mark.cuts
@pytest.mark.parametrize(
    ("scene", "source", "target"),
    [
        cell
        for cell in CELLS
        for scene, _, target in [cell.values]
        if scene in CALLING and scene.stop != "length" and (target == RESPONSES or not scene.tools)
    ],
)
def test_what_was_said_comes_back(scene: Scene, source: str, target: str) -> None:
    """The upstream finds its turn in the client's next request: its calls, and its thinking as it was sealed there."""
    request = clients.FOLLOW_UPS[target](translated(scene, source, target), scene)
    body = il.translate_request(request, target, source, options=Options(seal_key=KEY))
    found = clients.REPLAY_READERS[source](body)
    calls = [("call", legal(call.id, source), call.name, json.loads(call.args)) for call in scene.calls]
    assert [one for one in said(found.parts, scene) if one[0] == "call"] == calls
    thoughts = [part for part in scene.expected_parts if isinstance(part, ThinkingPart)]
    assert found.signatures == [part.signature for part in thoughts if part.signature]
    assert "".join(one[1] for one in found.parts if one[0] == "thought") == "".join(part.text for part in thoughts)


# ── what fuzzers found ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["\n", "a\rb", "error\n", "a\ndata: x", "\ud83d", "\u2028", "", 5, None, ["\n"]])
@pytest.mark.parametrize("source", WIRES)
@pytest.mark.parametrize("target", WIRES)
def test_a_type_that_an_upstream_made_up_cannot_be_a_name_of_more_than_a_line(
    source: str, target: str, kind: Any
) -> None:
    """It is told as it is where clients of the same wire may know it, and never breaks the stream."""
    scene = next(scene for scene in SCENES if scene.name == "text and calls")
    blocks = STREAMS[source](scene, 5).split(b"\n\n")
    odd = b"data: " + json.dumps({"type": kind, "a": ""}).encode()
    for at in range(len(blocks)):
        out, _ = run(scene, source, target, [b"\n\n".join([*blocks[:at], odd, *blocks[at:]])])
        for block in out.split(b"\n\n"):
            assert all(line.startswith((b"data: ", b"event: ", b":")) for line in block.splitlines()), block
        assert out.endswith(b"\n\n")
