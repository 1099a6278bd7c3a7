"""Complete chat completion bodies: read as one large chunk, written from folded replies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interlingua import events as ev
from interlingua.core.options import Options
from interlingua.core.reply import Reasoning, Reply, fold
from interlingua.core.tools import ToolSet
from interlingua.wires.base import ChoiceEvents, Chunk, Json
from interlingua.wires.openai_chat.chunk_reader import (
    REASONING_DETAILS,
    ChatReader,
    choice_index,
    detail_text,
    detail_with_text,
    reasoning_text,
    unwrap_chunk,
)
from interlingua.wires.openai_chat.emitter import (
    FINISH_REASONS,
    call_entry,
    envelope,
    failure_object,
    reply_fields,
    signature_details,
    usage_object,
)

__all__ = ["is_body", "read_body", "write_body"]

BODY_OBJECT_TYPE = "chat.completion"
_REWRITTEN_FIELDS = (
    "content",
    "refusal",
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "tool_calls",
    "function_call",
)


def is_body(body: Json) -> bool:
    return isinstance(body.get("choices"), list)


def read_body(body: dict[str, Any], reader: ChatReader) -> Chunk:
    """Read a complete body as one chunk with all the events that its stream would have had."""
    if (inner := unwrap_chunk(body)) is not body:
        chunk = read_body(inner, reader)
        chunk.common.append(ev.Finding("wrapped-chunk", "the reply is wrapped in another object: unwrapped"))
        return chunk
    if not is_body(body):
        chunk = reader.read(body)
        failed = any(isinstance(event, ev.Failure) for event in chunk.common)
        return chunk if failed else Chunk([], [ev.Failure("the upstream's response has no reply in it")], exact=False)
    choices = body["choices"]
    if not choices and not body.get("error"):
        return Chunk([], [ev.Failure("the upstream's response has no reply in it")], exact=False)
    chunk = reader.read({**body, "choices": list(map(_as_delta, choices, _choice_indexes(choices)))})
    if any(isinstance(event, ev.Failure) for event in chunk.common):
        return chunk
    choices_by_index = {choice.index: choice for choice in reversed(chunk.choices)}  # the first one with an index
    for index, events in reader.close(finished=True):  # a body is complete, even without a finish_reason
        choices_by_index[index].events += events
    return chunk


def _choice_indexes(choices: list[Any]) -> list[int]:
    """Return the index of each choice: its own, or its position if indexes are missing or repeated."""
    indexes = [choice_index(choice, n) if isinstance(choice, dict) else n for n, choice in enumerate(choices)]
    return indexes if len(set(indexes)) == len(indexes) else list(range(len(indexes)))


def _as_delta(choice: Any, number: int) -> Any:
    """Return a choice of a body as a choice of a chunk. The index of a call is its position in the message."""
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        return choice
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        entries = [{**call, "index": n} if isinstance(call, dict) else call for n, call in enumerate(calls)]
        message = {**message, "tool_calls": entries}
    index = number if isinstance(choice.get("index"), int) else None
    return {**choice, "index": index, "delta": message}


def write_body(
    choice_events: ChoiceEvents,
    common: Iterable[ev.Event],
    options: Options,
    tool_set: ToolSet,  # noqa: ARG001 (this wire treats all tools alike)
    template: Json | None,
) -> tuple[Json, list[ev.Finding]]:
    return _write_body(choice_events, list(common), options, template), []


def _write_body(choice_events: ChoiceEvents, common: list[ev.Event], options: Options, template: Json | None) -> Json:
    for event in (*common, *(event for _, events in choice_events for event in events)):
        if isinstance(event, ev.Failure):
            return {"error": failure_object(event)}
    if template is None:
        return _write_new(choice_events, common, options)
    events_by_choice, choices = dict(choice_events), list(template["choices"])
    for position, index in enumerate(_choice_indexes(choices)):
        if index in events_by_choice:
            choice = choices[position]
            choices[position] = _write_choice(choice_index(choice, position), events_by_choice[index], choice, options)
    extra_fields: Json = {"model": options.served_as} if options.served_as not in ("", template.get("model")) else {}
    for event in common:
        if isinstance(event, ev.Usage) and event.estimated:
            extra_fields["usage"] = usage_object(event)
    return {**template, **extra_fields, "choices": choices} if events_by_choice or extra_fields else template


def _write_new(choice_events: ChoiceEvents, common: list[ev.Event], options: Options) -> Json:
    """Return a new body for events that came from another wire."""
    body = {**envelope(options), "object": BODY_OBJECT_TYPE}
    for reply_start in (event for _, events in choice_events for event in events if isinstance(event, ev.Begin)):
        body |= {key: value for key, value in reply_fields(reply_start, options).items() if value}
    body["model"] = options.served_as or body["model"]
    body["choices"] = [_write_choice(index, events, {}, options) for index, events in choice_events]
    for event in (*common, *(event for _, events in choice_events for event in events)):
        if isinstance(event, ev.Usage):
            body["usage"] = usage_object(event)
    return body


def _write_choice(index: int, events: list[ev.Event], template: Json, options: Options) -> Json:
    reply = fold(events)
    original = template.get("message")
    original = original if isinstance(original, dict) else {}
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or (None if reply.calls else "")}
    message |= {key: value for key, value in original.items() if key not in (*_REWRITTEN_FIELDS, "role")}
    message |= _write_reasoning(reply, original, options)
    if reply.refusal or "refusal" in original:
        message["refusal"] = reply.refusal or None
    if reply.calls:
        message["tool_calls"] = _write_calls(reply, events)
    return {
        **template,
        "index": index,
        "message": message,
        "finish_reason": FINISH_REASONS[reply.stop_reason or "stop"],
    }


def _write_calls(reply: Reply, events: list[ev.Event]) -> list[dict[str, Any]]:
    starts = [event for event in events if isinstance(event, ev.CallStart)]
    return [call_entry(start, call.arguments) for start, call in zip(starts, reply.calls, strict=True)]


def _write_reasoning(reply: Reply, original: Json, options: Options) -> Json:
    """Return the reasoning in the fields that the upstream used.

    `reasoning_details` stay unchanged if their text still equals the reasoning. Otherwise the first detail with text
    gets all of the new text.
    """
    written: Json = {}
    reasoning = reply.reasoning
    details = original.get(REASONING_DETAILS)
    if isinstance(details, list) and details:
        written[REASONING_DETAILS] = _write_details(reasoning, details)
    elif signed_details := [
        detail
        for number, part in enumerate(part for part in reply.parts if isinstance(part, Reasoning) and part.seal)
        for detail in signature_details(part, number, options)
    ]:
        written[REASONING_DETAILS] = signed_details
    if reasoning:
        fields = [field for field in ("reasoning_content", "reasoning") if original.get(field)]
        in_details = isinstance(details, list) and details
        written |= dict.fromkeys(fields or ([] if in_details else ["reasoning_content"]), reasoning)
    return written


def _write_details(reasoning: str, details: list[Any]) -> list[Any]:
    if reasoning_text({REASONING_DETAILS: details}) == reasoning:
        return details
    with_text = [detail for detail in details if detail_text(detail)]
    textless = [detail for detail in details if not detail_text(detail)]
    template = with_text[0] if with_text else {"type": "reasoning.text"}
    return ([detail_with_text(reasoning, template)] if reasoning else []) + textless
