"""Whole chat completions: read as one big chunk, written from folded replies."""

from __future__ import annotations

from typing import Any

from interlingua import events as ev
from interlingua.reply import Reply, fold
from interlingua.wire.openai_chat.emitter import FINISH, call_entry, failure_object
from interlingua.wire.openai_chat.reader import (
    Chunk,
    Reader,
    choice_index,
    detail_saying,
    detail_text,
    reasoning_text,
)

__all__ = ["read_body", "write_body"]

_WRITTEN = ("content", "refusal", "reasoning_content", "reasoning", "reasoning_details", "tool_calls", "function_call")


def read_body(body: dict[str, Any], reader: Reader) -> Chunk:
    """A body says what its stream would have said, all at once."""
    read = reader.read({**body, "choices": [_as_streamed(choice, n) for n, choice in enumerate(body["choices"])]})
    for index, events in reader.close(finished=True):  # a body is whole, even if it does not say why it stopped
        next(choice for choice in read.choices if choice.index == index).events += events
    return read


def _as_streamed(choice: Any, position: int) -> Any:
    """A message is one big delta. In a body the place of a choice is its index, and so is the place of a call."""
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        return choice
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        entries = [{**call, "index": n} if isinstance(call, dict) else call for n, call in enumerate(calls)]
        message = {**message, "tool_calls": entries}
    index = position if isinstance(choice.get("index"), int) else None
    return {**choice, "index": index, "delta": message}


def write_body(told: dict[int, list[ev.Event]], like: dict[str, Any]) -> dict[str, Any]:
    """The body with these of its choices told anew. All else stays as it is."""
    for event in (event for events in told.values() for event in events):
        if isinstance(event, ev.Failure):
            return {"error": failure_object(event)}
    if not told:
        return like
    choices = list(like["choices"])
    for position, choice in enumerate(choices):
        if position in told:
            choices[position] = _write_choice(choice_index(choice, position), told[position], choice)
    return {**like, "choices": choices}


def _write_choice(index: int, events: list[ev.Event], like: dict[str, Any]) -> dict[str, Any]:
    reply = fold(events)
    given = like.get("message")
    given = given if isinstance(given, dict) else {}
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or (None if reply.calls else "")}
    message |= {key: value for key, value in given.items() if key not in (*_WRITTEN, "role")}
    message |= _write_reasoning(reply.reasoning, given)
    if reply.refusal or "refusal" in given:
        message["refusal"] = reply.refusal or None
    if reply.calls:
        message["tool_calls"] = _write_calls(reply, events)
    return {**like, "index": index, "message": message, "finish_reason": FINISH[reply.stop_reason or "stop"]}


def _write_calls(reply: Reply, events: list[ev.Event]) -> list[dict[str, Any]]:
    starts = [event for event in events if isinstance(event, ev.CallStart)]
    return [call_entry(start, call.arguments) for start, call in zip(starts, reply.calls, strict=True)]


def _write_reasoning(reasoning: str, given: dict[str, Any]) -> dict[str, Any]:
    """Thinking in the fields that it came in. `reasoning_details` stay as they are if their text is still the thinking;
    else the first of them that has text gets it all."""
    written: dict[str, Any] = {}
    details = given.get("reasoning_details")
    if isinstance(details, list) and details:
        written["reasoning_details"] = _write_details(reasoning, details)
    if reasoning:
        fields = [field for field in ("reasoning_content", "reasoning") if given.get(field)]
        written |= dict.fromkeys(fields or ([] if written else ["reasoning_content"]), reasoning)
    return written


def _write_details(reasoning: str, details: list[Any]) -> list[Any]:
    if reasoning_text({"reasoning_details": details}) == reasoning:
        return details
    spoken = [detail for detail in details if detail_text(detail)]
    silent = [detail for detail in details if not detail_text(detail)]
    like = spoken[0] if spoken else {"type": "reasoning.text"}
    return ([detail_saying(reasoning, like)] if reasoning else []) + silent
