"""Every pair of wires, scene by scene: every client of the target wire, strict reader or official SDK, reads exactly
the reply that the upstream sent."""

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
VALID_IDS = {CHAT: r".{1,64}", MESSAGES: r"[a-zA-Z0-9_-]{1,64}", RESPONSES: r".{1,64}"}

CELLS = [
    pytest.param(scene, source, target, id=f"{scene.name}, {source} to {target}")
    for scene, source, target in product(SCENES, WIRES, WIRES)
]
each_cell = pytest.mark.parametrize(("scene", "source", "target"), CELLS)


def run(
    scene: Scene, source: str, target: str, pieces: Iterable[bytes], **options: Any
) -> tuple[bytes, list[ev.Finding]]:
    all_options = Options(seal_key=KEY, **options)
    translator = il.Translator(source, target, scene.dialect, tools=scene.tools, options=all_options)
    out = b"".join([*map(translator.feed, pieces), translator.close()])
    return out, translator.findings


def translate(scene: Scene, source: str, target: str, size: int = 5) -> bytes:
    return run(scene, source, target, [STREAMS[source](scene, size)])[0]


# ── expected views ────────────────────────────────────────────────────────────────────────────────────────────────


def expected(scene: Scene, source: str, target: str) -> ReplyView:
    parts: list[ReplyPart] = []
    for part in scene.expected_parts:
        match part:
            case CallPart():
                parts.append(("call", valid_id(part.id, target), part.name, part.args))
            case ThinkingPart():
                parts.append(("thought", part.text))
            case TextPart():
                parts.append(("text", part.text))
            case RefusalPart():
                # Messages has no field for a refusal of another wire: it is sent as text.
                parts.append(("text" if target == MESSAGES != source else "refusal", part.text))
    parts = merge_parts(parts) if target != CHAT else sort_by_kind(parts)  # chat does not keep the order of kinds
    if scene.ending != "well":
        return ReplyView(parts, error=ERROR_MESSAGE if scene.ending == "error" else "the upstream ended")
    refused = any(isinstance(part, RefusalPart) for part in scene.parts)
    stop = "content_filter" if refused and MESSAGES in (source, target) else scene.stop
    if stop == "stop" and scene.calls:
        stop = "tool_calls"
    sequence = scene.sequence if source == target == MESSAGES else None
    return ReplyView(parts, stop, sequence, scene.tokens)


def valid_id(id: str, target: str) -> str:
    return id.replace("functions.get_weather:", "il-functions_2eget_5fweather_3a") if target == MESSAGES else id


def check(view: ReplyView, scene: Scene, source: str, target: str) -> None:
    """Assert that a client's view of the reply is the scene."""
    expected_view = expected(scene, source, target)
    if expected_view.error is not None:
        assert view.error is not None
        assert expected_view.error in view.error
        return
    assert view.error is None
    assert comparable_parts(view.parts, scene) == comparable_parts(expected_view.parts, scene)
    assert (view.stop, view.sequence, view.tokens) == (expected_view.stop, expected_view.sequence, expected_view.tokens)
    check_signatures(view, scene, source, target)


def comparable_parts(parts: list[ReplyPart], scene: Scene) -> list[Any]:
    """Return the parts with parsed arguments, without truncated calls, which each client treats differently."""
    truncated = {valid_id(call.id, wire) for call in scene.calls if not call.is_complete for wire in WIRES}
    complete = [part for part in parts if part[0] != "call" or part[1] not in truncated]
    return [(*part[:3], json.loads(part[3] or "{}")) if part[0] == "call" else part for part in complete]


def check_signatures(view: ReplyView, scene: Scene, source: str, target: str) -> None:
    """Assert that reasoning can be sent back: with the upstream's signature, or with ours that contains it."""
    thoughts = [part for part in scene.expected_parts if isinstance(part, ThinkingPart)]
    if source == target:
        assert view.signatures == [part.signature for part in thoughts if part.signature]
        return
    opened = [read_envelope(signature, KEY) for signature in view.signatures]
    if target == CHAT:  # it has a field for reasoning that needs no signature
        thoughts = [part for part in thoughts if part.signature]
    assert [reasoning and reasoning.text for reasoning in opened] == [part.text for part in thoughts]
    for reasoning, part in zip(opened, thoughts, strict=True):
        assert reasoning is not None
        assert reasoning.seal is not None
        assert part.signature in json.dumps(reasoning.seal.data)
        assert not part.signature or reasoning.seal.wire == source


# ── streams ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.one_row_in(5)
@each_cell
def test_strict_clients_read_the_stream(scene: Scene, source: str, target: str) -> None:
    out = translate(scene, source, target)
    view = clients.STRICT_READERS[target](out, scene)
    check(view, scene, source, target)
    if scene.ending == "well" or target != RESPONSES:  # a failed response omits items that are not done
        assert arguments(view.parts) == arguments(expected(scene, source, target).parts), "byte for byte"


def arguments(parts: list[ReplyPart]) -> list[ReplyPart]:
    """Normalise the arguments of custom tools, which the emitter or the test client writes around the text."""
    return [(*part[:3], json.dumps(json.loads(part[3]))) if part[-1].startswith('{"input"') else part for part in parts]


@pytest.mark.slow
@each_cell
def test_official_sdks_read_the_stream(scene: Scene, source: str, target: str) -> None:
    out = translate(scene, source, target)
    for read in clients.SDK_READERS[target]:
        check(read(out, scene), scene, source, target)


@pytest.mark.slow
@each_cell
def test_result_does_not_depend_on_the_size_of_deltas(scene: Scene, source: str, target: str) -> None:
    for size in (1, 1000):
        view = clients.STRICT_READERS[target](translate(scene, source, target, size), scene)
        check(view, scene, source, target)


@pytest.mark.slow
@each_cell
def test_result_does_not_depend_on_cuts(scene: Scene, source: str, target: str) -> None:
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
def test_no_client_runs_a_truncated_call(source: str) -> None:
    scene = next(scene for scene in SCENES if scene.name == "length inside a call")
    names = [call.name for call in scene.calls]
    called, requests, _ = clients.run_tools([translate(scene, source, MESSAGES)], names)
    assert (called, len(requests)) == ([], 1)
    response = clients.responses_create(translate(scene, source, RESPONSES), scene)
    assert [part[2] for part in response.parts] == names[:1]
    assert clients.chat_create(translate(scene, source, CHAT), scene).stop == "length"


@pytest.mark.slow
@each_cell
def test_whole_delivery_with_another_model_name(scene: Scene, source: str, target: str) -> None:
    """A truncated call is not delivered, and the client gets only the model name that it requested."""
    stream = STREAMS[source](scene)
    out, _ = run(scene, source, target, [stream], delivery="whole", served_as="asked-for")
    view = clients.STRICT_READERS[target](out, scene)
    check(view, scene, source, target)
    if scene.ending == "well":
        names = [part[2] for part in view.parts if part[0] == "call"]
        assert names == [call.name for call in scene.calls if call.is_complete]
        assert b'"asked-for"' in out
    assert MODEL.encode() not in out


@pytest.mark.slow
@each_cell
def test_stream_broken_at_any_event_ends_properly(scene: Scene, source: str, target: str) -> None:
    """The client's stream has exactly one end: an error or a stop reason."""
    events = STREAMS[source](scene, 20).split(b"\n\n")
    for count in range(len(events)):
        out, _ = run(scene, source, target, [b"\n\n".join(events[:count]) + b"\n\n"])
        view = clients.STRICT_READERS[target](out, scene)
        assert bool(view.error) != bool(view.stop), count


# ── whole replies ─────────────────────────────────────────────────────────────────────────────────────────────────

HAS_BODY = [
    cell
    for cell in CELLS
    for scene, source, _ in [cell.values]
    if isinstance(scene, Scene)
    and scene.ending != "broken off"
    and not (
        source == MESSAGES and any(not call.is_complete for call in scene.calls)
    )  # a Messages body has arguments as an object, which cannot be truncated
]


@pytest.mark.one_row_in(5)
@pytest.mark.parametrize(("scene", "source", "target"), HAS_BODY)
def test_whole_reply_equals_stream(scene: Scene, source: str, target: str) -> None:
    options = Options(seal_key=KEY)
    body = il.translate_reply(BODIES[source](scene), source, target, scene.dialect, tools=scene.tools, options=options)
    view = clients.BODY_READERS[target](body, scene)
    ordered = ordered_by_kind(scene) if source == CHAT else scene
    check(view, ordered, source, target)
    streamed = clients.STRICT_READERS[target](translate(ordered, source, target), scene)
    if scene.ending == "well":
        assert replace(view, parts=comparable_parts(view.parts, scene)) == replace(
            streamed, parts=comparable_parts(streamed.parts, scene)
        )


def needs_passthrough(cell: Any) -> bool:
    """Return whether the scene expects content that only passthrough keeps: signatures and details of a refusal."""
    scene, source, target = cell.values
    return source == target != CHAT and any(
        isinstance(part, ThinkingPart | RefusalPart) for part in scene.expected_parts
    )


@pytest.mark.one_row_in(5)
@pytest.mark.parametrize(("scene", "source", "target"), [cell for cell in HAS_BODY if not needs_passthrough(cell)])
def test_whole_reply_is_sent_as_a_stream(scene: Scene, source: str, target: str) -> None:
    translator = il.Translator(source, target, scene.dialect, tools=scene.tools, options=Options(seal_key=KEY))
    view = clients.STRICT_READERS[target](translator.stream(BODIES[source](scene)), scene)
    check(view, ordered_by_kind(scene) if source == CHAT else scene, source, target)
    assert translator.ended


@pytest.mark.slow
@pytest.mark.parametrize(("scene", "source", "target"), [cell for cell in CELLS if not needs_passthrough(cell)])
def test_stream_is_folded_into_a_whole_reply(scene: Scene, source: str, target: str) -> None:
    translator = il.Translator(source, target, scene.dialect, tools=scene.tools, options=Options(seal_key=KEY))
    view = clients.BODY_READERS[target](translator.fold(STREAMS[source](scene, 5)), scene)
    check(view, ordered_by_kind(scene) if target == CHAT else scene, source, target)
    tally = translator.tally
    assert bool(tally.failure) == bool(view.error)
    assert tally.calls == sum(part[0] == "call" for part in view.parts) or view.error


@pytest.mark.slow
@each_cell
def test_abort_at_any_event_ends_properly(scene: Scene, source: str, target: str) -> None:
    """The caller may abort the reply: it ends with an error, unless it was complete."""
    events = STREAMS[source](scene, 20).split(b"\n\n")
    for count in (0, 1, len(events) // 2, len(events)):
        translator = il.Translator(source, target, scene.dialect, tools=scene.tools, options=Options(seal_key=KEY))
        out = translator.feed(b"\n\n".join(events[:count]) + b"\n\n")
        ended = translator.ended
        out += translator.abort("connection lost", "timeout_error")
        view = clients.STRICT_READERS[target](out, scene)
        assert bool(view.error) != bool(view.stop), count
        assert ended or view.stop or "connection lost" in str(view.error)


def ordered_by_kind(scene: Scene) -> Scene:
    """Return the scene in the order of a body that has one field for each kind of part."""
    kinds = (ThinkingPart, TextPart, RefusalPart, CallPart)
    parts = sorted(scene.parts, key=lambda part: kinds.index(type(part)))
    expected_parts = sorted(scene.expected_parts, key=lambda part: kinds.index(type(part)))
    return replace(scene, parts=parts, expected=expected_parts)


# ── ids ───────────────────────────────────────────────────────────────────────────────────────────────────────────

SCENES_WITH_CALLS = [scene for scene in SCENES if scene.calls and scene.ending == "well"]
each_calling_cell = pytest.mark.parametrize(
    ("scene", "source", "target"), [cell for cell in CELLS if cell.values[0] in SCENES_WITH_CALLS]
)


@pytest.mark.slow
@each_calling_cell
def test_ids_are_valid_and_unused(scene: Scene, source: str, target: str) -> None:
    taken = tuple(call.id for call in scene.calls)
    out, findings = run(scene, source, target, [STREAMS[source](scene, 50)], taken_ids=taken)
    ids = [part[1] for part in clients.STRICT_READERS[target](out, scene).parts if part[0] == "call"]
    assert len(ids) == len(scene.calls)
    assert len(set(ids)) == len(ids)
    assert not set(ids) & {valid_id(id, target) for id in taken}
    assert all(re.fullmatch(VALID_IDS[target], id) for id in ids)
    assert [finding.kind for finding in findings].count("id-renamed") == len(ids)


# ── tool loops ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.parametrize("source", WIRES)
@pytest.mark.parametrize("scene", [scene for scene in SCENES_WITH_CALLS if scene.stop != "length"], ids=str)
def test_tool_runner_completes_two_turns(scene: Scene, source: str) -> None:
    """Two turns: the runner runs the calls with their arguments, sends the results with their ids, and gets text."""
    done = translate(Scene("done", [TextPart("Done.")]), source, MESSAGES)
    turns = [translate(scene, source, MESSAGES), done]
    called, requests, text = clients.run_tools(turns, [call.name for call in scene.calls])
    assert called == [(call.name, json.loads(call.args)) for call in scene.calls]
    assert text == "Done."
    *_, assistant_message, results = requests[1]["messages"]
    ids = [valid_id(call.id, MESSAGES) for call in scene.calls]
    assert [block["id"] for block in assistant_message["content"] if block["type"] == "tool_use"] == ids
    assert [block["tool_use_id"] for block in results["content"]] == ids


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scene", "source", "target"),
    [
        cell
        for cell in CELLS
        for scene, _, target in [cell.values]
        if scene in SCENES_WITH_CALLS and scene.stop != "length" and (target == RESPONSES or not scene.tools)
    ],
)
def test_next_request_returns_calls_and_signatures(scene: Scene, source: str, target: str) -> None:
    """The client's next request returns the reply to the upstream: calls, and reasoning with its signatures."""
    request = clients.FOLLOW_UPS[target](translate(scene, source, target), scene)
    body = il.translate_request(request, target, source, options=Options(seal_key=KEY))
    replayed = clients.REPLAY_READERS[source](body)
    calls = [("call", valid_id(call.id, source), call.name, json.loads(call.args)) for call in scene.calls]
    assert [part for part in comparable_parts(replayed.parts, scene) if part[0] == "call"] == calls
    thoughts = [part for part in scene.expected_parts if isinstance(part, ThinkingPart)]
    assert replayed.signatures == [part.signature for part in thoughts if part.signature]
    replayed_text = "".join(part[1] for part in replayed.parts if part[0] == "thought")
    assert replayed_text == "".join(part.text for part in thoughts)


# ── regressions found by fuzzing ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.one_row_in(7)
@pytest.mark.parametrize("kind", ["\n", "a\rb", "error\n", "a\ndata: x", "\ud83d", "\u2028", "", 5, None, ["\n"]])
@pytest.mark.parametrize("source", WIRES)
@pytest.mark.parametrize("target", WIRES)
def test_invented_event_type_cannot_break_the_sse_stream(source: str, target: str, kind: Any) -> None:
    """On the same wire the unknown event is passed through. It never breaks the SSE framing."""
    scene = next(scene for scene in SCENES if scene.name == "text and calls")
    blocks = STREAMS[source](scene, 5).split(b"\n\n")
    odd = b"data: " + json.dumps({"type": kind, "a": ""}).encode()
    for at in range(len(blocks)):
        out, _ = run(scene, source, target, [b"\n\n".join([*blocks[:at], odd, *blocks[at:]])])
        for block in out.split(b"\n\n"):
            assert all(line.startswith((b"data: ", b"event: ", b":")) for line in block.splitlines()), block
        assert out.endswith(b"\n\n")
