"""Structured arguments that are almost JSON: corrected on every pair of wires, streamed and whole."""

from __future__ import annotations

import json

import pytest

import interlingua as il
from interlingua.core.options import ArgumentsPolicy
from tests.support import pair_clients
from tests.support.pair_scenes import CallPart, Scene
from tests.support.pair_sources import BODIES, CHAT, MESSAGES, RESPONSES, STREAMS
from tests.support.sdk import Json

WIRES = (CHAT, MESSAGES, RESPONSES)
STRICT_CLIENTS = {
    CHAT: pair_clients.chat_strict,
    MESSAGES: pair_clients.messages_strict,
    RESPONSES: pair_clients.responses_strict,
}
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
ROWS = {
    "line breaks": ('{"text": "a\r\nb\tc\0", "n": 1}', {"text": "a\r\nb\tc\0", "n": 1}),
    "trailing commas": ('{"a": [1, 2, ], "b": {"c": 3,},\n}', {"a": [1, 2], "b": {"c": 3}}),
    "Python literals": ('{"a": True, "b": [None, False]}', {"a": True, "b": [None, False]}),
    "line break in a doubly encoded object": ('"{\\"a\\": \\"x\ny\\"}"', {"a": "x\ny"}),
    "line break escaped once in a doubly encoded object": ('"{\\"a\\": \\"x\\ny\\"}"', {"a": "x\ny"}),
    "None": ("None", {}),
}


class ClosedCall(CallPart):
    """A call that the upstream marks as complete, whatever its arguments are."""

    is_complete = True


def scene_of(args: str) -> Scene:
    return Scene("a call", [ClosedCall("f", args)], stop="tool_calls")


def translate(source: str, target: str, stream: bytes, arguments: ArgumentsPolicy) -> tuple[bytes, list[str]]:
    translator = il.Translator(source, target, dialect="standard", tools=TOOLS, options=il.Options(arguments=arguments))
    frames = [frame + b"\n\n" for frame in stream.split(b"\n\n") if frame]
    sent = b"".join(map(translator.feed, frames)) + translator.close()
    return sent, [finding.kind for finding in translator.findings]


def sent_arguments(target: str, stream: bytes, scene: Scene) -> str:
    ((kind, _, name, args),) = STRICT_CLIENTS[target](stream, scene).parts
    assert (kind, name) == ("call", "f")
    return args


@pytest.mark.parametrize("target", WIRES)
@pytest.mark.parametrize("source", WIRES)
@pytest.mark.parametrize(("args", "value"), ROWS.values(), ids=ROWS)
def test_almost_json_is_repaired_on_every_wire(source: str, target: str, args: str, value: Json) -> None:
    scene = scene_of(args)
    for size in (1, 2, 3, 7, 1000):
        stream, findings = translate(source, target, STREAMS[source](scene, size), "repair")
        assert json.loads(sent_arguments(target, stream, scene)) == value, size
        assert "repaired-arguments" in findings
        assert "bad-arguments" not in findings


@pytest.mark.parametrize("target", WIRES)
@pytest.mark.parametrize("source", WIRES)
def test_delivery_of_whole_calls_repairs_first(source: str, target: str) -> None:
    scene = scene_of('{"a": "x\ny",}')
    options = il.Options(delivery="whole")
    translator = il.Translator(source, target, dialect="standard", tools=TOOLS, options=options)
    stream = translator.feed(STREAMS[source](scene, 3)) + translator.close()
    assert json.loads(sent_arguments(target, stream, scene)) == {"a": "x\ny"}


@pytest.mark.parametrize("source", [CHAT, RESPONSES])
@pytest.mark.parametrize("target", WIRES)
@pytest.mark.parametrize(("args", "value"), ROWS.values(), ids=ROWS)
def test_almost_json_in_whole_replies_is_repaired(source: str, target: str, args: str, value: Json) -> None:
    scene = scene_of(args)
    translator = il.Translator(source, target, dialect="standard", tools=TOOLS)
    body = translator.reply(BODIES[source](scene))
    reply = il.Translator(target, CHAT, dialect="standard", options=il.Options(arguments="exact")).reply(body)
    assert json.loads(reply["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]) == value
    assert "repaired-arguments" in {finding.kind for finding in translator.findings}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("size", [1, 2, 5, 1000])
@pytest.mark.parametrize("args", ['{"a": "x\ny"}', '{"a": [1, ],}', '{"a": True}'])
def test_exact_arguments_are_forwarded_unchanged(wire: str, size: int, args: str) -> None:
    scene = scene_of(args)
    stream = STREAMS[wire](scene, size)
    sent, findings = translate(wire, wire, stream, "exact")
    if wire == RESPONSES:  # the finding is reported with an event that is written anew
        assert sent_arguments(wire, sent, scene) == args
    else:
        assert sent == stream
    assert findings == ["bad-arguments"]


@pytest.mark.parametrize("wire", WIRES)
def test_valid_arguments_are_forwarded_byte_for_byte_unless_delta_ends_with_comma(wire: str) -> None:
    scene = scene_of('{"a": "x,y", "b": [1, 2], "c": true}')
    for size in range(1, 40):
        stream = STREAMS[wire](scene, size)
        sent, findings = translate(wire, wire, stream, "repair")
        pieces = [scene.parts[0].args[n : n + size] for n in range(0, 36, size)]  # type: ignore[union-attr]
        has_final_comma = any(piece.rstrip().endswith(",") and not piece.endswith("x,") for piece in pieces)
        assert (sent == stream) is not has_final_comma, size
        assert sent_arguments(wire, sent, scene) == scene.parts[0].args  # type: ignore[union-attr]
        assert findings == []


@pytest.mark.parametrize("target", WIRES)
@pytest.mark.parametrize("source", WIRES)
@pytest.mark.parametrize("args", ['{"a": 1, ', '{"a": Tru', '{"a": "x\ny'])
def test_truncated_arguments_lose_nothing(source: str, target: str, args: str) -> None:
    scene = Scene("truncated", [CallPart("f", args)], stop="length")
    for size in (1, 4, 1000):
        stream, findings = translate(source, target, STREAMS[source](scene, size), "repair")
        assert sent_arguments(target, stream, scene) == args.replace("\n", "\\n"), size
        assert ("repaired-arguments" in findings) is ("\n" in args)


def test_accumulator_repairs_arguments() -> None:
    accumulator = il.Accumulator(dialect="standard", tools=TOOLS)
    accumulator.add(STREAMS[CHAT](scene_of('{"a": "x\ny",}'), 4))
    accumulator.close()
    reply = accumulator.reply()
    assert reply.calls[0].arguments == '{"a": "x\\ny"}'
    assert [finding.kind for finding in reply.findings] == ["repaired-arguments", "repaired-arguments"]
