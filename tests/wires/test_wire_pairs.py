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
from interlingua.core.reasoning_signatures import open_seal
from tests.support import pair_clients as clients
from tests.support.cuts import one_by_one, pieces, two_piece_cuts
from tests.support.pair_clients import Said, Understood, by_kind, joined
from tests.support.pair_scenes import BOOM, SCENES, Call, Refusal, Scene, Speech, Thought
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


def expected(scene: Scene, source: str, target: str) -> Understood:
    said: list[Said] = []
    for part in scene.understood:
        match part:
            case Call():
                said.append(("call", legal(part.id, target), part.name, part.args))
            case Thought():
                said.append(("thought", part.text))
            case Speech():
                said.append(("text", part.text))
            case Refusal():
                # Where no other wire has a field for it, it is told as text.
                said.append(("text" if target == MESSAGES != source else "refusal", part.text))
    said = joined(said) if target != CHAT else by_kind(said)  # which has no order
    if scene.ends != "well":
        return Understood(said, error=BOOM if scene.ends == "error" else "the upstream ended")
    refused = any(isinstance(part, Refusal) for part in scene.parts)
    stop = "content_filter" if refused and MESSAGES in (source, target) else scene.stop
    if stop == "stop" and scene.calls:
        stop = "tool_calls"
    sequence = scene.sequence if source == target == MESSAGES else None
    return Understood(said, stop, sequence, scene.tokens)


def legal(id: str, target: str) -> str:
    return id.replace("functions.get_weather:", "il-functions_2eget_5fweather_3a") if target == MESSAGES else id


def check(heard: Understood, scene: Scene, source: str, target: str) -> None:
    """That a client has understood the scene."""
    right = expected(scene, source, target)
    if right.error is not None:
        assert heard.error is not None
        assert right.error in heard.error
        return
    assert heard.error is None
    assert said(heard.said, scene) == said(right.said, scene)
    assert (heard.stop, heard.sequence, heard.tokens) == (right.stop, right.sequence, right.tokens)
    check_seals(heard, scene, source, target)


def said(told: list[Said], scene: Scene) -> list[Any]:
    """Arguments as values. Of a call that was cut each client makes something else, or nothing."""
    cut = {legal(call.id, wire) for call in scene.calls if not call.whole for wire in WIRES}
    whole = [one for one in told if one[0] != "call" or one[1] not in cut]
    return [(*one[:3], json.loads(one[3] or "{}")) if one[0] == "call" else one for one in whole]


def check_seals(heard: Understood, scene: Scene, source: str, target: str) -> None:
    """Thinking can come back to its upstream: as it was sealed there, or sealed by us with all that it had."""
    thoughts = [part for part in scene.understood if isinstance(part, Thought)]
    if source == target:
        assert heard.seals == [part.seal for part in thoughts if part.seal]
        return
    opened = [open_seal(seal, KEY) for seal in heard.seals]
    if target == CHAT:  # which has a field for thinking, and needs no seal for it
        thoughts = [part for part in thoughts if part.seal]
    assert [one and one.text for one in opened] == [part.text for part in thoughts]
    for one, part in zip(opened, thoughts, strict=True):
        assert one is not None
        assert one.seal is not None
        assert part.seal in json.dumps(one.seal.data)
        assert not part.seal or one.seal.wire == source


# ── streams ───────────────────────────────────────────────────────────────────────────────────────────────────────


@each_cell
def test_strict_clients_understand(scene: Scene, source: str, target: str) -> None:
    out = translated(scene, source, target)
    heard = clients.STRICT[target](out, scene)
    check(heard, scene, source, target)
    if scene.ends == "well" or target != RESPONSES:  # where what is not done is no part of a response that failed
        assert arguments(heard.said) == arguments(expected(scene, source, target).said), "byte for byte"


def arguments(told: list[Said]) -> list[Said]:
    """Those of a custom tool are written by us, or by the client that heard its text."""
    return [(*one[:3], json.dumps(json.loads(one[3]))) if one[-1].startswith('{"input"') else one for one in told]


@pytest.mark.cuts
@each_cell
def test_official_clients_understand(scene: Scene, source: str, target: str) -> None:
    out = translated(scene, source, target)
    for listen in clients.OFFICIAL[target]:
        check(listen(out, scene), scene, source, target)


@pytest.mark.cuts
@each_cell
def test_however_the_upstream_cuts_its_text(scene: Scene, source: str, target: str) -> None:
    for size in (1, 1000):
        heard = clients.STRICT[target](translated(scene, source, target, size), scene)
        check(heard, scene, source, target)


@pytest.mark.cuts
@each_cell
def test_however_it_is_cut(scene: Scene, source: str, target: str) -> None:
    stream = STREAMS[source](scene, 50)
    whole = run(scene, source, target, [stream])
    every = len(stream) if len(stream) < 600 else 25
    for cut in (one_by_one(stream), pieces(stream, 1), pieces(stream, 2), *two_piece_cuts(stream, every)):
        assert run(scene, source, target, cut) == whole, cut


@pytest.mark.parametrize("source", WIRES)
def test_a_call_that_was_cut_is_run_by_nobody(source: str) -> None:
    scene = next(scene for scene in SCENES if scene.name == "length inside a call")
    names = [call.name for call in scene.calls]
    called, requests, _ = clients.run_tools([translated(scene, source, MESSAGES)], names)
    assert (called, len(requests)) == ([], 1)
    done = clients.responses_create(translated(scene, source, RESPONSES), scene)
    assert [one[2] for one in done.said] == names[:1]
    assert clients.chat_create(translated(scene, source, CHAT), scene).stop == "length"


@pytest.mark.cuts
@each_cell
def test_with_whole_calls_and_another_name(scene: Scene, source: str, target: str) -> None:
    """A call that is cut is not delivered, and the client hears the name that it asked for and no other."""
    given = STREAMS[source](scene)
    out, _ = run(scene, source, target, [given], delivery="whole", served_as="asked-for")
    heard = clients.STRICT[target](out, scene)
    check(heard, scene, source, target)
    if scene.ends == "well":
        assert [one[2] for one in heard.said if one[0] == "call"] == [one.name for one in scene.calls if one.whole]
        assert b'"asked-for"' in out
    assert MODEL.encode() not in out


@pytest.mark.cuts
@each_cell
def test_wherever_it_breaks_off(scene: Scene, source: str, target: str) -> None:
    """The client is told an end all the same, and a proper one."""
    events = STREAMS[source](scene, 20).split(b"\n\n")
    for count in range(len(events)):
        out, _ = run(scene, source, target, [b"\n\n".join(events[:count]) + b"\n\n"])
        heard = clients.STRICT[target](out, scene)
        assert bool(heard.error) != bool(heard.stop), count


# ── whole replies ─────────────────────────────────────────────────────────────────────────────────────────────────

HAS_BODY = [
    cell
    for cell in CELLS
    for scene, source, _ in [cell.values]
    if isinstance(scene, Scene)
    and scene.ends != "broken off"
    and not (source == MESSAGES and any(not call.whole for call in scene.calls))  # whose arguments are an object
]


@pytest.mark.parametrize(("scene", "source", "target"), HAS_BODY)
def test_stream_is_whole(scene: Scene, source: str, target: str) -> None:
    options = Options(seal_key=KEY)
    body = il.translate_reply(BODIES[source](scene), source, target, scene.dialect, tools=scene.tools, options=options)
    heard = clients.WHOLE[target](body, scene)
    ordered = in_order(scene) if source == CHAT else scene
    check(heard, ordered, source, target)
    streamed = clients.STRICT[target](translated(ordered, source, target), scene)
    if scene.ends == "well":
        assert replace(heard, said=said(heard.said, scene)) == replace(streamed, said=said(streamed.said, scene))


def as_sent(cell: Any) -> bool:
    """Whether the scene expects what only the upstream's own bytes can say: its seals, and details of a refusal."""
    scene, source, target = cell.values
    return source == target != CHAT and any(isinstance(part, Thought | Refusal) for part in scene.understood)


@pytest.mark.parametrize(("scene", "source", "target"), [cell for cell in HAS_BODY if not as_sent(cell)])
def test_a_whole_reply_for_a_client_that_wants_a_stream(scene: Scene, source: str, target: str) -> None:
    translator = il.Translator(source, target, scene.dialect, tools=scene.tools, options=Options(seal_key=KEY))
    heard = clients.STRICT[target](translator.stream(BODIES[source](scene)), scene)
    check(heard, in_order(scene) if source == CHAT else scene, source, target)
    assert translator.ended


@pytest.mark.cuts
@pytest.mark.parametrize(("scene", "source", "target"), [cell for cell in CELLS if not as_sent(cell)])
def test_a_stream_for_a_client_that_wants_a_whole_reply(scene: Scene, source: str, target: str) -> None:
    translator = il.Translator(source, target, scene.dialect, tools=scene.tools, options=Options(seal_key=KEY))
    heard = clients.WHOLE[target](translator.fold(STREAMS[source](scene, 5)), scene)
    check(heard, in_order(scene) if target == CHAT else scene, source, target)
    tally = translator.tally
    assert bool(tally.failure) == bool(heard.error)
    assert tally.calls == sum(one[0] == "call" for one in heard.said) or heard.error


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
        heard = clients.STRICT[target](out, scene)
        assert bool(heard.error) != bool(heard.stop), count
        assert ended or heard.stop or "the line went dead" in str(heard.error)


def in_order(scene: Scene) -> Scene:
    """As a body tells it that has a field for each kind."""
    kinds = (Thought, Speech, Refusal, Call)
    parts = sorted(scene.parts, key=lambda part: kinds.index(type(part)))
    heard = sorted(scene.understood, key=lambda part: kinds.index(type(part)))
    return replace(scene, parts=parts, heard=heard)


# ── ids ───────────────────────────────────────────────────────────────────────────────────────────────────────────

CALLING = [scene for scene in SCENES if scene.calls and scene.ends == "well"]
each_calling_cell = pytest.mark.parametrize(
    ("scene", "source", "target"), [cell for cell in CELLS if cell.values[0] in CALLING]
)


@pytest.mark.cuts
@each_calling_cell
def test_ids_are_legal_and_new(scene: Scene, source: str, target: str) -> None:
    taken = tuple(call.id for call in scene.calls)
    out, findings = run(scene, source, target, [STREAMS[source](scene, 50)], taken_ids=taken)
    ids = [one[1] for one in clients.STRICT[target](out, scene).said if one[0] == "call"]
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
    done = translated(Scene("done", [Speech("Done.")]), source, MESSAGES)
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
    request = clients.NEXT[target](translated(scene, source, target), scene)
    body = il.translate_request(request, target, source, options=Options(seal_key=KEY))
    found = clients.REPLAYED[source](body)
    calls = [("call", legal(call.id, source), call.name, json.loads(call.args)) for call in scene.calls]
    assert [one for one in said(found.said, scene) if one[0] == "call"] == calls
    thoughts = [part for part in scene.understood if isinstance(part, Thought)]
    assert found.seals == [part.seal for part in thoughts if part.seal]
    assert "".join(one[1] for one in found.said if one[0] == "thought") == "".join(part.text for part in thoughts)


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
