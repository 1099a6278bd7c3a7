"""Whole chat completions: read as one big chunk, written from folded replies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interlingua import events as ev
from interlingua.core.options import Options
from interlingua.core.reply import Reasoning, Reply, fold
from interlingua.core.tools import Offer
from interlingua.wires.base import Chunk, Json, Said
from interlingua.wires.openai_chat.chunk_reader import (
    DETAILS,
    Reader,
    choice_index,
    detail_saying,
    detail_text,
    reasoning_text,
    unwrapped,
)
from interlingua.wires.openai_chat.emitter import (
    FINISH,
    call_entry,
    envelope,
    failure_object,
    seal_details,
    usage_object,
)

__all__ = ["is_body", "read_body", "write_body"]

OBJECT = "chat.completion"
_WRITTEN = ("content", "refusal", "reasoning_content", "reasoning", "reasoning_details", "tool_calls", "function_call")


def is_body(body: Json) -> bool:
    return isinstance(body.get("choices"), list)


def read_body(body: dict[str, Any], reader: Reader) -> Chunk:
    """A body says what its stream would have said, all at once."""
    if (inner := unwrapped(body)) is not body:
        read = read_body(inner, reader)
        read.common.append(ev.Finding("wrapped-chunk", "a reply inside another object: taken out of it"))
        return read
    if not is_body(body):
        read = reader.read(body)
        failed = any(isinstance(event, ev.Failure) for event in read.common)
        return read if failed else Chunk([], [ev.Failure("no reply in this body")], exact=False)
    choices = body["choices"]
    if not choices and not body.get("error"):
        return Chunk([], [ev.Failure("no reply in this body")], exact=False)
    read = reader.read({**body, "choices": list(map(_as_streamed, choices, _indexes(choices)))})
    for index, events in reader.close(finished=True):  # a body is whole, even if it does not say why it stopped
        next(choice for choice in read.choices if choice.index == index).events += events
    return read


def _indexes(choices: list[Any]) -> list[int]:
    """The index of each choice: its own, or its place if they have none or the same."""
    given = [choice_index(choice, n) if isinstance(choice, dict) else n for n, choice in enumerate(choices)]
    return given if len(set(given)) == len(given) else list(range(len(given)))


def _as_streamed(choice: Any, number: int) -> Any:
    """A message is one big delta. In a body the place of a call is its index."""
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
    said: Said,
    common: Iterable[ev.Event],
    options: Options,
    offer: Offer,  # noqa: ARG001 (all tools are alike here)
    like: Json | None,
) -> tuple[Json, list[ev.Finding]]:
    return _write_body(said, list(common), options, like), []


def _write_body(said: Said, common: list[ev.Event], options: Options, like: Json | None) -> Json:
    for event in (*common, *(event for _, events in said for event in events)):
        if isinstance(event, ev.Failure):
            return {"error": failure_object(event)}
    if like is None:
        return _write_new(said, common, options)
    told, choices = dict(said), list(like["choices"])
    for position, index in enumerate(_indexes(choices)):
        if index in told:
            choice = choices[position]
            choices[position] = _write_choice(choice_index(choice, position), told[index], choice, options)
    beside: Json = {"model": options.served_as} if options.served_as not in ("", like.get("model")) else {}
    for event in common:
        if isinstance(event, ev.Usage) and event.estimated:
            beside["usage"] = usage_object(event)
    return {**like, **beside, "choices": choices} if told or beside else like


def _write_new(said: Said, common: list[ev.Event], options: Options) -> Json:
    """A body for what was said on another wire."""
    body = {**envelope(options), "object": OBJECT}
    for begin in (event for _, events in said for event in events if isinstance(event, ev.Begin)):
        given = {"id": begin.id, "created": begin.created, "model": options.served_as or begin.model}
        body |= {key: value for key, value in given.items() if value}
    body["choices"] = [_write_choice(index, events, {}, options) for index, events in said]
    for event in (*common, *(event for _, events in said for event in events)):
        if isinstance(event, ev.Usage):
            body["usage"] = usage_object(event)
    return body


def _write_choice(index: int, events: list[ev.Event], like: Json, options: Options) -> Json:
    reply = fold(events)
    given = like.get("message")
    given = given if isinstance(given, dict) else {}
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or (None if reply.calls else "")}
    message |= {key: value for key, value in given.items() if key not in (*_WRITTEN, "role")}
    message |= _write_reasoning(reply, given, options)
    if reply.refusal or "refusal" in given:
        message["refusal"] = reply.refusal or None
    if reply.calls:
        message["tool_calls"] = _write_calls(reply, events)
    return {**like, "index": index, "message": message, "finish_reason": FINISH[reply.stop_reason or "stop"]}


def _write_calls(reply: Reply, events: list[ev.Event]) -> list[dict[str, Any]]:
    starts = [event for event in events if isinstance(event, ev.CallStart)]
    return [call_entry(start, call.arguments) for start, call in zip(starts, reply.calls, strict=True)]


def _write_reasoning(reply: Reply, given: Json, options: Options) -> Json:
    """Thinking in the fields that it came in. `reasoning_details` stay as they are if their text is still the thinking;
    else the first of them that has text gets it all."""
    written: Json = {}
    reasoning = reply.reasoning
    details = given.get(DETAILS)
    if isinstance(details, list) and details:
        written[DETAILS] = _write_details(reasoning, details)
    elif sealed := [
        detail
        for number, part in enumerate(part for part in reply.parts if isinstance(part, Reasoning) and part.seal)
        for detail in seal_details(part, number, options)
    ]:
        written[DETAILS] = sealed
    if reasoning:
        fields = [field for field in ("reasoning_content", "reasoning") if given.get(field)]
        in_details = isinstance(details, list) and details
        written |= dict.fromkeys(fields or ([] if in_details else ["reasoning_content"]), reasoning)
    return written


def _write_details(reasoning: str, details: list[Any]) -> list[Any]:
    if reasoning_text({DETAILS: details}) == reasoning:
        return details
    spoken = [detail for detail in details if detail_text(detail)]
    silent = [detail for detail in details if not detail_text(detail)]
    like = spoken[0] if spoken else {"type": "reasoning.text"}
    return ([detail_saying(reasoning, like)] if reasoning else []) + silent
