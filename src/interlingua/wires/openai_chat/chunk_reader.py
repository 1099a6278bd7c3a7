"""Chunks of a chat completion stream → events."""

from __future__ import annotations

from typing import Any

from interlingua import events as ev
from interlingua.common.coerce import as_dict, as_int, as_str
from interlingua.common.jsontext.codec import write_json
from interlingua.core.options__limits import Limits
from interlingua.wires.base import Choice, Chunk
from interlingua.wires.openai_chat.custom_tools import only_closes
from interlingua.wires.openai_chat.fast_delta import read_usual
from interlingua.wires.openai_chat.tool_call_deltas import Calls

__all__ = [
    "DETAILS",
    "NAME",
    "OBJECT",
    "STOP_REASONS",
    "Reader",
    "choice_index",
    "detail_saying",
    "detail_text",
    "reasoning_text",
    "unwrapped",
    "without_text",
]

NAME = "openai-chat"
DETAILS = "reasoning_details"
OBJECT = "chat.completion.chunk"
STOP_REASONS: dict[str, ev.StopReason] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
}
_ALIASES: dict[str, ev.StopReason] = {
    "function_call": "tool_calls",
    "tool_use": "tool_calls",
    "max_tokens": "length",
}  # all else is "stop"
_NO_SEQUENCE = ("stop", "end_turn", "stop_sequence", "eos", "eos_token", "length", "max_tokens", "tool_calls")
"""What may stand in `stop_reason` where it is no stop sequence, in lower case."""


class Reader:
    """Reads the chunks of one stream. What it knows of a choice that has begun is its structured calls."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._calls: dict[int, Calls] = {}

    def read(self, chunk: dict[str, Any]) -> Chunk:
        common: list[ev.Event] = []
        if (inner := unwrapped(chunk)) is not chunk:
            common.append(ev.Finding("wrapped-chunk", "a chunk inside another object: taken out of it"))
            chunk = inner
        if error := chunk.get("error") or (_is_failure(chunk) and chunk):
            standard = error is not chunk and bool(as_dict(error).get("message"))
            return Chunk([], [*common, _failure(error)], exact=standard and not common)
        choices = [
            self._read_choice(chunk, choice, position, common)
            for position, choice in enumerate(_choices(chunk, common))
        ]
        # A usage or finding up to here has come from where the wire has no place for it.
        exact = not common and all(choice.exact for choice in choices)
        common += _usage(chunk)
        # What says nothing is not ours to mend: the asynchronous filter of Azure sends objects of another kind.
        named = chunk.get("object") == OBJECT
        if named or choices or common:
            exact &= named and isinstance(chunk.get("choices"), list)
        return Chunk(choices, common, exact, model=as_str(chunk.get("model")) or "")

    def usual(self, data: bytes) -> Chunk | None:
        chunk = read_usual(data)
        if chunk is None:
            return None
        given = chunk.choices[0]
        delta, calls = given.delta, self._calls.get(given.index)
        if calls is None:
            return None
        events: list[ev.Event] = []
        exact = chunk.object == OBJECT
        if reasoning := delta.reasoning_content or delta.reasoning:
            events.append(ev.ReasoningDelta(reasoning))
        if delta.content:
            events.append(ev.TextDelta(delta.content))
        if delta.tool_calls:
            entry = delta.tool_calls[0]
            more = calls.more(entry.index, entry.function.arguments)
            if more is None:
                return None
            events += more[0]
            exact &= more[1] and entry.proper
        return Chunk([Choice(given.index, events, exact)], [], exact)

    def text_in(self, data: bytes) -> tuple[int, ev.TextDelta | ev.ReasoningDelta | ev.ArgsDelta] | None:
        chunk = read_usual(data)
        if chunk is None:
            return None
        delta = chunk.choices[0].delta
        reasoning = delta.reasoning_content or delta.reasoning
        if delta.tool_calls and not reasoning and not delta.content:
            entry = delta.tool_calls[0]
            return chunk.choices[0].index, ev.ArgsDelta(entry.index, entry.function.arguments)
        if delta.tool_calls or bool(reasoning) is bool(delta.content):
            return None
        return chunk.choices[0].index, ev.ReasoningDelta(reasoning) if reasoning else ev.TextDelta(delta.content or "")

    def more(self, index: int, call: int, arguments: str) -> list[ev.Event] | None:
        calls = self._calls.get(index)
        more = calls.more(call, arguments) if calls else None
        return None if more is None else more[0]

    def close(self, finished: bool) -> list[tuple[int, list[ev.Event]]]:
        """The stream is over: what is held of the calls in each choice."""
        return [(index, calls.finish() if finished else calls.cut()) for index, calls in self._calls.items()]

    def _read_choice(
        self, chunk: dict[str, Any], given: dict[str, Any], position: int, common: list[ev.Event]
    ) -> Choice:
        choice = Choice(choice_index(given, position), [], exact=isinstance(given.get("index"), int))
        delta = given.get("delta")
        if not isinstance(delta, dict):
            delta = as_dict(given.get("message"))
            choice.exact = False
        self._read_role(chunk, delta, choice)
        calls = self._calls[choice.index]
        _read_text(delta, choice)
        _read_calls(delta, calls, choice)
        common += _usage(given)  # Moonshot puts it here
        _read_finish(given, calls, choice)
        return choice

    def _read_role(self, chunk: dict[str, Any], delta: dict[str, Any], choice: Choice) -> None:
        """A role belongs to the first delta and to no other: the official SDK joins roles, as it does all strings, and
        OpenRouter, which sends one in every chunk, makes `assistantassistant…` there."""
        if choice.index not in self._calls:
            self._calls[choice.index] = Calls(self._limits)
            begin = ev.Begin(as_str(chunk.get("id")), as_str(chunk.get("model")), as_int(chunk.get("created")))
            choice.events.append(begin)
        elif delta.get("role"):
            choice.exact = False


def unwrapped(chunk: dict[str, Any]) -> dict[str, Any]:
    """The chunk, or the one inside it: some relays send `{"data": {…}, "success": true}`."""
    inner = chunk.get("data")
    wrapped = isinstance(inner, dict) and "choices" not in chunk and ("choices" in inner or "error" in inner)
    return inner if isinstance(inner, dict) and wrapped else chunk


def _is_failure(chunk: dict[str, Any]) -> bool:
    """Whether this is an error that does not say so in a field of its own, as servers of many kinds send it."""
    if "choices" in chunk:
        return False
    return chunk.get("object") == "error" or bool(chunk.get("detail")) or ("message" in chunk and "code" in chunk)


def _choices(chunk: dict[str, Any], common: list[ev.Event]) -> list[dict[str, Any]]:
    choices = chunk.get("choices") or []
    if not isinstance(choices, list):
        choices = [choices]
    if odd := [choice for choice in choices if not isinstance(choice, dict)]:
        common.append(ev.Finding("bad-chunk", f"a choice is no object: {odd[0]!r:.60}; dropped"))
    return [choice for choice in choices if isinstance(choice, dict)]


def choice_index(choice: dict[str, Any], position: int) -> int:
    index = choice.get("index")
    return index if isinstance(index, int) else position


def _read_text(delta: dict[str, Any], choice: Choice) -> None:
    reasoning, content = reasoning_text(delta), delta.get("content")
    if isinstance(content, list):  # content parts, as Mistral sends them
        parts = [part for part in content if isinstance(part, dict)]
        reasoning += "".join(_part_text(part.get("thinking")) for part in parts)
        content = "".join(_part_text(part.get("text")) for part in parts)
    choice.exact &= content is delta.get("content")
    if content is not None and not isinstance(content, str):
        choice.report("bad-chunk", f"content that is no text: {content!r:.60}; dropped")
    choice.events += _thinking(reasoning, _details(delta))
    if isinstance(content, str) and content:
        choice.events.append(ev.TextDelta(content))
    if isinstance(refusal := delta.get("refusal"), str) and refusal:
        choice.events.append(ev.RefusalDelta(refusal))


def _thinking(reasoning: str, details: list[Any]) -> list[ev.Event]:
    """The thinking, with each seal behind what it vouches for: all of it, unless the details have it piece by piece."""
    events: list[ev.Event] = []
    in_pieces = "".join(map(detail_text, details)) == reasoning
    text = "" if in_pieces else reasoning
    for detail in details:
        text += detail_text(detail) if in_pieces else ""
        if silent := without_text(detail):
            events += [ev.ReasoningDelta(text)] if text else []
            events.append(ev.Seal(NAME, {DETAILS: [silent]}))
            text = ""
    return [*events, ev.ReasoningDelta(text)] if text else events


def _part_text(text: Any) -> str:
    if isinstance(text, list):
        return "".join(_part_text(part.get("text")) for part in text if isinstance(part, dict))
    return text if isinstance(text, str) else ""


def _read_calls(delta: dict[str, Any], calls: Calls, choice: Choice) -> None:
    entries = delta.get("tool_calls")
    legacy = delta.get("function_call")
    if legacy and isinstance(legacy, dict):
        choice.exact = False
        if legacy.get("name"):
            choice.report("function-call", "the legacy function_call: taken as a tool call")
        entries = entries or [{"index": 0, "type": "function", "function": legacy}]
    if entries:
        events, exact = calls.read(entries if isinstance(entries, list) else [entries])
        choice.events += events
        choice.exact &= exact and isinstance(entries, list)


def reasoning_text(delta: dict[str, Any]) -> str:
    """The thinking in a delta, wherever the upstream puts it. Where it stands in two fields, they are the same."""
    for field in ("reasoning_content", "reasoning"):
        if isinstance(text := delta.get(field), str) and text:
            return text
    return "".join(map(detail_text, _details(delta)))


def _details(delta: dict[str, Any]) -> list[Any]:
    details = delta.get(DETAILS)
    return details if isinstance(details, list) else []


def without_text(detail: Any) -> dict[str, Any] | None:
    """What one of `reasoning_details` says beside its text, if that is to come back: a signature, or encrypted data."""
    if not isinstance(detail, dict) or not (detail.get("signature") or detail.get("data")):
        return None
    return {key: value for key, value in detail.items() if key not in ("text", "summary")}


def detail_text(detail: Any) -> str:
    """The thinking in one of `reasoning_details`; encrypted ones have none."""
    text = (detail.get("text") or detail.get("summary")) if isinstance(detail, dict) else None
    return text if isinstance(text, str) else ""


def detail_saying(text: str, like: dict[str, Any]) -> dict[str, Any]:
    """One of `reasoning_details` with another text. What vouches for the text that it had is no part of it."""
    beside = {key: value for key, value in like.items() if key != "signature"}
    return {**beside, "summary" if like.get("summary") and not like.get("text") else "text": text}


def _read_finish(given: dict[str, Any], calls: Calls, choice: Choice) -> None:
    finish = given.get("finish_reason")
    if finish == "error" or given.get("error"):
        choice.events.append(_failure(given.get("error") or "the upstream stopped with an error"))
        choice.exact = False
        return
    if not finish:
        choice.exact &= finish is None
        return
    told = STOP_REASONS.get(finish) if isinstance(finish, str) else None
    reason = told or _ALIASES.get(str(finish).lower(), "stop")
    held = calls.finish(cut=reason in ev.CUTS)
    choice.events += held
    choice.exact &= only_closes(held)
    if told is None:
        choice.report("unknown-finish-reason", f"finish_reason {finish!r} is not of this wire: read as {reason!r}")
    sequence = as_str(given.get("stop_reason"))  # vLLM puts it here
    met = sequence if reason == "stop" and sequence and sequence.lower() not in _NO_SEQUENCE else None
    choice.events.append(ev.Stop(reason, met))


def _failure(error: Any) -> ev.Failure:
    native = error if isinstance(error, dict) else {"message": str(error)}
    code = native.get("code")
    return ev.Failure(
        message=_error_text(native),
        type=str(native.get("type") or "api_error"),
        code=code if isinstance(code, str | int) else None,
        native=native,
    )


def _error_text(error: dict[str, Any]) -> str:
    said = error.get("message") or error.get("detail") or "the upstream failed"
    return said if isinstance(said, str) else write_json(said)


def _usage(where: dict[str, Any]) -> list[ev.Event]:
    usage = as_dict(where.get("usage"))
    if not usage:
        return []
    prompt = as_dict(usage.get("prompt_tokens_details"))
    completion = as_dict(usage.get("completion_tokens_details"))
    told = ev.Usage(
        input=as_int(usage.get("prompt_tokens")) or 0,
        output=as_int(usage.get("completion_tokens")) or 0,
        cached=as_int(prompt.get("cached_tokens")) or as_int(usage.get("prompt_cache_hit_tokens")) or 0,
        reasoning=as_int(completion.get("reasoning_tokens")) or 0,
        cache_written=as_int(prompt.get("cache_write_tokens")) or 0,
        native=usage,
    )
    return [told]
