"""Whole messages: read as the stream that they would have been, written from the frames of one.

So a message and its stream say the same, by construction.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interlingua import events as ev
from interlingua.common.jsontext.codec import read_json, read_object, write_json
from interlingua.core.options import Options
from interlingua.core.tools import Offer
from interlingua.wires.anthropic_messages.content_blocks import SPOKEN
from interlingua.wires.anthropic_messages.event_reader import Reader
from interlingua.wires.anthropic_messages.message_writer import FIELDS, NOT_JSON, Delta, Frame, Frames
from interlingua.wires.anthropic_messages.objects import error_object
from interlingua.wires.base import Choice, Chunk, Json, Said

__all__ = ["is_body", "read_body", "write_body"]

_SAID: dict[str, tuple[str, str]] = {
    "text": ("text", "text_delta"),
    "thinking": ("thinking", "thinking_delta"),
    "signature": ("signature", "signature_delta"),
}


def is_body(body: Json) -> bool:
    return isinstance(body.get("content"), list)


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────────


def read_body(body: Json, reader: Reader) -> Chunk:
    """A message says what its stream would have said, all at once."""
    if not is_body(body):
        failed = body.get("error") or body.get("type") == "error"
        return reader.read(body) if failed else Chunk([], [ev.Failure("no reply in this body")], exact=False)
    choice, common, model = Choice(0, [], exact=True), [], ""
    for chunk in _as_stream(body):
        read = reader.read(chunk)
        for said in read.choices:
            choice.events += said.events
            choice.exact &= said.exact
        common += read.common
        model = model or read.model
    for _, events in reader.close(finished=True):
        choice.events += events
    return Chunk([choice], common, choice.exact, model=model)


def _as_stream(body: Json) -> Iterable[Json]:
    yield {"type": "message_start", "message": {**body, "content": []}}
    for index, block in enumerate(body["content"]):
        content = block if isinstance(block, dict) else {}
        deltas = list(_deltas(content))
        yield {"type": "content_block_start", "index": index, "content_block": _start(content) if content else block}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": body, "usage": body.get("usage")}


def _start(content: Json) -> Json:
    """What a stream says of a block at its start."""
    if content.get("type") not in SPOKEN:
        return content
    empty: Json = {field: "" for field in ("text", "thinking", "signature") if isinstance(content.get(field), str)}
    return {**content, **empty, **({"input": {}} if isinstance(content.get("input"), dict) else {})}


def _deltas(content: Json) -> Iterable[Json]:
    """What it says after that."""
    if content.get("type") not in SPOKEN:
        return
    for field, (key, kind) in _SAID.items():
        if isinstance(text := content.get(field), str) and text:
            yield {"type": kind, key: text}
    if isinstance(input := content.get("input"), dict) and input:
        yield {"type": "input_json_delta", "partial_json": write_json(input)}


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────────


def write_body(
    said: Said,
    common: Iterable[ev.Event],
    options: Options,
    offer: Offer,  # noqa: ARG001 (all tools are alike here)
    like: Json | None,
) -> tuple[Json, list[ev.Finding]]:
    return _write_body(said, [*common, *(event for _, events in said for event in events)], options, like), []


def _write_body(said: Said, events: list[ev.Event], options: Options, like: Json | None) -> Json:
    for event in events:
        if isinstance(event, ev.Failure):
            return error_object(event)
    if like is None:
        return _write(events, options)
    told = {**like, **_told_anew(_write(events, options, like), like)} if said else like
    renamed = options.served_as not in ("", like.get("model"))
    return {**told, "model": options.served_as} if renamed else told


def _write(events: list[ev.Event], options: Options, like: Json | None = None) -> Json:
    frames = Frames(options)
    if like is not None:
        frames.upstream, frames.like = "this wire", {"message": like}
    for event in events:
        frames.write(event)
    frames.end()
    return _join(frames.take())


def _join(frames: list[Frame]) -> Json:
    """What a client makes of a stream."""
    message: Json = {}
    args: list[str] = []
    for frame in frames:
        if isinstance(frame, Delta):
            _join_delta(message["content"][-1], frame, args)
            continue
        assert not isinstance(frame, bytes)  # nothing passes here
        match frame["type"]:
            case "message_start":
                message = {**frame["message"], "content": []}
            case "content_block_start":
                message["content"].append(dict(frame["content_block"]))
                args = []
            case "content_block_stop":
                if args:
                    message["content"][-1]["input"] = _input("".join(args))
            case "message_delta":
                message |= {**frame["delta"], "usage": {**message["usage"], **frame["usage"]}}
    return message


def _join_delta(block: Json, delta: Delta, args: list[str]) -> None:
    if delta.kind == "input_json_delta":
        args.append(delta.text)
    else:
        block[FIELDS[delta.kind]] += delta.text


def _input(args: str) -> Any:
    """Arguments as the object that they are. Those that were cut or are no JSON are kept as text."""
    value = read_json(args, object)
    if value is None:
        value = read_object(args)
    return {NOT_JSON: args} if value is None else value


def _told_anew(message: Json, like: Json) -> Json:
    """What changes in the upstream's own message. Blocks that say the same stay as they are, and those that nobody
    else has a word for stay in their place."""
    mine: list[Json] = message["content"]
    content: list[Json] = []
    for block in like["content"]:
        if not isinstance(block, dict):
            continue
        if block.get("type") not in SPOKEN:
            content.append(block)
        elif mine and mine[0]["type"] == block["type"]:
            content.append(_merged(mine.pop(0), block))
    told = {key: message[key] for key in ("stop_reason", "stop_sequence", "usage")}
    return {**told, "role": "assistant", "type": "message", "content": content + mine}


def _merged(new: Json, old: Json) -> Json:
    same = all(new[key] == old.get(key) for key in ("text", "thinking", "data") if key in new)
    return {**old, **new} if same else new
