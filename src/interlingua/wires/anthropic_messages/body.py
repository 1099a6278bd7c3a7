"""Complete messages: read as the stream that they would have been, written from the frames of a stream.

So a complete message and its stream agree by construction.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from interlingua import events as ev
from interlingua.common.jsontext.codec import read_json, read_shallow_object, write_json
from interlingua.core.options import Options
from interlingua.core.tools import ToolSet
from interlingua.wires.anthropic_messages.content_blocks import TRANSLATED_BLOCK_TYPES
from interlingua.wires.anthropic_messages.event_reader import MessagesReader
from interlingua.wires.anthropic_messages.message_writer import (
    DELTA_TEXT_FIELDS,
    INVALID_JSON_KEY,
    BlockDelta,
    MessageFrame,
    MessageWriter,
)
from interlingua.wires.anthropic_messages.objects import error_object, with_own_identity
from interlingua.wires.base import Choice, ChoiceEvents, Chunk, Json

__all__ = ["is_body", "read_body", "write_body"]

_DELTA_TYPES: dict[str, tuple[str, str]] = {
    "text": ("text", "text_delta"),
    "thinking": ("thinking", "thinking_delta"),
    "signature": ("signature", "signature_delta"),
}


def is_body(body: Json) -> bool:
    return isinstance(body.get("content"), list)


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────────


def read_body(body: Json, reader: MessagesReader) -> Chunk:
    """Read a complete message as one chunk with all the events that its stream would have had."""
    if not is_body(body):
        failed = body.get("error") or body.get("type") == "error"
        return (
            reader.read(body)
            if failed
            else Chunk([], [ev.Failure("the upstream's response has no reply in it")], exact=False)
        )
    choice, common, model = Choice(0, [], exact=True), [], ""
    for chunk in _stream_events(body):
        translated = reader.read(chunk)
        for chunk_choice in translated.choices:
            choice.events += chunk_choice.events
            choice.exact &= chunk_choice.exact
        common += translated.common
        model = model or translated.model
    for _, events in reader.close(finished=True):
        choice.events += events
    return Chunk([choice], common, choice.exact, model=model)


def _stream_events(body: Json) -> Iterable[Json]:
    yield {"type": "message_start", "message": {**body, "content": []}}
    for index, block in enumerate(body["content"]):
        content = block if isinstance(block, dict) else {}
        deltas = list(_block_deltas(content))
        yield {
            "type": "content_block_start",
            "index": index,
            "content_block": _start_block(content) if content else block,
        }
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": body, "usage": body.get("usage")}


def _start_block(content: Json) -> Json:
    """Return the block as it is in its content_block_start event."""
    if content.get("type") not in TRANSLATED_BLOCK_TYPES:
        return content
    empty: Json = {field: "" for field in ("text", "thinking", "signature") if isinstance(content.get(field), str)}
    return {**content, **empty, **({"input": {}} if isinstance(content.get("input"), dict) else {})}


def _block_deltas(content: Json) -> Iterable[Json]:
    """Yield the deltas that a stream would send for the block after its start."""
    if content.get("type") not in TRANSLATED_BLOCK_TYPES:
        return
    for field, (key, delta_type) in _DELTA_TYPES.items():
        if isinstance(text := content.get(field), str) and text:
            yield {"type": delta_type, key: text}
    if isinstance(input := content.get("input"), dict) and input:
        yield {"type": "input_json_delta", "partial_json": write_json(input)}


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────────


def write_body(
    choice_events: ChoiceEvents,
    common: Iterable[ev.Event],
    options: Options,
    tool_set: ToolSet,  # noqa: ARG001 (this wire treats all tools alike)
    template: Json | None,
) -> tuple[Json, list[ev.Finding]]:
    return _write_body(
        choice_events, [*common, *(event for _, events in choice_events for event in events)], options, template
    ), []


def _write_body(choice_events: ChoiceEvents, events: list[ev.Event], options: Options, template: Json | None) -> Json:
    for event in events:
        if isinstance(event, ev.Failure):
            return error_object(event)
    if template is None:
        return _write_message(events, options)
    rewritten = (
        {**template, **_rewritten_fields(_write_message(events, options, template), template)}
        if choice_events
        else template
    )
    return with_own_identity(rewritten, options)


def _write_message(events: list[ev.Event], options: Options, template: Json | None = None) -> Json:
    writer = MessageWriter(options)
    if template is not None:
        writer.upstream, writer.template = "this wire", {"message": template}
    for event in events:
        writer.write(event)
    writer.end_message()
    return _join_frames(writer.drain())


def _join_frames(frames: list[MessageFrame]) -> Json:
    """Join the frames of a stream into a message, as a client does."""
    message: Json = {}
    texts: dict[str, list[str]] = {}  # of the open block, by field
    for frame in frames:
        if isinstance(frame, BlockDelta):
            texts.setdefault(DELTA_TEXT_FIELDS[frame.delta_type], []).append(frame.text)
            continue
        assert not isinstance(frame, bytes)  # raw frames exist in streams only
        match frame["type"]:
            case "message_start":
                message = {**frame["message"], "content": []}
            case "content_block_start":
                message["content"].append(dict(frame["content_block"]))
                texts = {}
            case "content_block_stop":
                _complete_block(message["content"][-1], texts)
            case "message_delta":
                message |= {**frame["delta"], "usage": {**message["usage"], **frame["usage"]}}
    return message


def _complete_block(block: Json, texts: dict[str, list[str]]) -> None:
    """Add the texts of the deltas to a block. They are joined once, because a block may have thousands."""
    for field, pieces in texts.items():
        if field == DELTA_TEXT_FIELDS["input_json_delta"]:
            block["input"] = _parse_input("".join(pieces))
        else:
            block[field] += "".join(pieces)


def _parse_input(args: str) -> Any:
    """Parse the arguments. If they are truncated or not valid JSON, they stay text, wrapped in an object."""
    value = read_json(args, object)
    if value is None:
        value = read_shallow_object(args)
    return {INVALID_JSON_KEY: args} if value is None else value


def _rewritten_fields(message: Json, template: Json) -> Json:
    """Return the fields that change in the upstream's own message.

    Blocks with the same content stay as they are, and blocks of types that are not translated stay in their place.
    """
    new_blocks: deque[Json] = deque(message["content"])
    content: list[Json] = []
    for block in template["content"]:
        if not isinstance(block, dict):
            continue
        if block.get("type") not in TRANSLATED_BLOCK_TYPES:
            content.append(block)
        elif new_blocks and new_blocks[0]["type"] == block["type"]:
            content.append(_merge_block(new_blocks.popleft(), block))
    fields = {key: message[key] for key in ("stop_reason", "stop_sequence", "usage")}
    return {**fields, "role": "assistant", "type": "message", "content": [*content, *new_blocks]}


def _merge_block(new: Json, old: Json) -> Json:
    same = all(new[key] == old.get(key) for key in ("text", "thinking", "data") if key in new)
    return {**old, **new} if same else new
