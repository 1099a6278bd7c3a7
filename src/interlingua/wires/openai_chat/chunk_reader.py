"""Reader for the chunks of a chat completion stream: chunks → events."""

from __future__ import annotations

from typing import Any

from interlingua import events as ev
from interlingua.common.coerce import as_dict, as_int, as_str
from interlingua.common.jsontext.codec import write_json
from interlingua.core.options import ArgumentsPolicy, Limits
from interlingua.wires.base import Choice, Chunk
from interlingua.wires.openai_chat.custom_tools import only_ends_calls
from interlingua.wires.openai_chat.fast_delta import CHUNK_OBJECT_TYPE, ChatFastReader
from interlingua.wires.openai_chat.tool_call_assembler import ToolCallAssembler

__all__ = [
    "NAME",
    "REASONING_DETAILS",
    "STOP_REASONS",
    "ChatReader",
    "choice_index",
    "detail_text",
    "detail_with_text",
    "detail_without_text",
    "reasoning_text",
    "unwrap_chunk",
]

NAME = "openai-chat"
REASONING_DETAILS = "reasoning_details"
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
}  # any other value is read as "stop"
_NOT_STOP_SEQUENCES = ("stop", "end_turn", "stop_sequence", "eos", "eos_token", "length", "max_tokens", "tool_calls")
"""Values of `stop_reason` that are not stop sequences, in lower case."""


class ChatReader:
    """Reader for one stream. Its only state is the structured calls of each choice that has begun."""

    __slots__ = ("_arguments_policy", "_assemblers", "_call_count", "_limits", "fast")

    def __init__(self, limits: Limits | None = None, arguments: ArgumentsPolicy = "repair") -> None:
        self._limits = limits or Limits()
        self._arguments_policy = arguments
        self._assemblers: dict[int, ToolCallAssembler | None] = {}
        """The structured calls of each choice that has begun; None if it has none so far."""
        self._call_count = 0
        self.fast = ChatFastReader(self._assemblers)

    def read(self, chunk: dict[str, Any]) -> Chunk:
        common: list[ev.Event] = []
        if (inner := unwrap_chunk(chunk)) is not chunk:
            common.append(ev.Finding("wrapped-chunk", "the chunk is wrapped in another object: unwrapped"))
            chunk = inner
        if error := chunk.get("error") or (_is_failure(chunk) and chunk):
            standard = error is not chunk and bool(as_dict(error).get("message"))
            return Chunk([], [*common, _failure(error)], exact=standard and not common)
        choices = []
        for position, choice in enumerate(_valid_choices(chunk, common)):
            choices.append(self._read_choice(chunk, choice, position, common))
            if problem := self._excess():
                return Chunk([], [*common, ev.Failure(problem)], exact=False)
        # Usage or findings up to here came from places where this wire does not have them.
        exact = not common and all(choice.exact for choice in choices)
        common += _usage_events(chunk)
        # Chunks without content are not repaired: Azure's asynchronous content filter sends objects of another type.
        is_chunk_object = chunk.get("object") == CHUNK_OBJECT_TYPE
        if is_chunk_object or choices or common:
            exact &= is_chunk_object and isinstance(chunk.get("choices"), list)
        return Chunk(choices, common, exact, model=as_str(chunk.get("model")) or "")

    def _excess(self) -> str:
        """Return which limit on the number of choices or calls is exceeded; "" if none is."""
        limits = self._limits
        if len(self._assemblers) > limits.choices:
            return f"the upstream sent more than {limits.choices:,} choices (limits.choices)"
        if self._call_count > limits.calls:
            return f"the upstream sent more than {limits.calls:,} calls (limits.calls)"
        return ""

    def close(self, finished: bool) -> list[tuple[int, list[ev.Event]]]:
        """End the stream and return the buffered events of the calls in each choice."""
        return [
            (index, (assembler.finish() if finished else assembler.flush()) if assembler is not None else [])
            for index, assembler in self._assemblers.items()
        ]

    def _read_choice(
        self, chunk: dict[str, Any], raw_choice: dict[str, Any], position: int, common: list[ev.Event]
    ) -> Choice:
        choice = Choice(choice_index(raw_choice, position), [], exact=isinstance(raw_choice.get("index"), int))
        delta = raw_choice.get("delta")
        if not isinstance(delta, dict):
            delta = as_dict(raw_choice.get("message"))
            choice.exact = False
        self._read_role(chunk, delta, choice)
        _read_text(delta, choice)
        if delta.get("tool_calls") or delta.get("function_call"):
            assembler = self._assembler_for(choice)
            calls_before = assembler.call_count
            _read_calls(delta, assembler, choice)
            self._call_count += assembler.call_count - calls_before
        common += _usage_events(raw_choice)  # Moonshot sends usage here
        _read_finish(raw_choice, self._assemblers[choice.index], choice)
        return choice

    def _assembler_for(self, choice: Choice) -> ToolCallAssembler:
        assembler = self._assemblers[choice.index]
        if assembler is None:
            assembler = self._assemblers[choice.index] = ToolCallAssembler(self._limits, self._arguments_policy)
        return assembler

    def _read_role(self, chunk: dict[str, Any], delta: dict[str, Any], choice: Choice) -> None:
        """Start the choice with its first delta. A role in any later delta makes the chunk inexact.

        The official SDK concatenates roles, as it does all strings. OpenRouter sends a role in every chunk, which
        becomes `assistantassistant…` there.
        """
        if choice.index not in self._assemblers:
            self._assemblers[choice.index] = None
            reply_start = ev.Begin(as_str(chunk.get("id")), as_str(chunk.get("model")), as_int(chunk.get("created")))
            choice.events.append(reply_start)
        elif delta.get("role"):
            choice.exact = False


def unwrap_chunk(chunk: dict[str, Any]) -> dict[str, Any]:
    """Return the chunk, or the one wrapped in it: some relays send `{"data": {…}, "success": true}`."""
    inner = chunk.get("data")
    wrapped = isinstance(inner, dict) and "choices" not in chunk and ("choices" in inner or "error" in inner)
    return inner if isinstance(inner, dict) and wrapped else chunk


def _is_failure(chunk: dict[str, Any]) -> bool:
    """Return whether this is an error without an `error` field, as many servers send it."""
    if "choices" in chunk:
        return False
    return chunk.get("object") == "error" or bool(chunk.get("detail")) or ("message" in chunk and "code" in chunk)


def _valid_choices(chunk: dict[str, Any], common: list[ev.Event]) -> list[dict[str, Any]]:
    choices = chunk.get("choices") or []
    if not isinstance(choices, list):
        choices = [choices]
    if invalid := [choice for choice in choices if not isinstance(choice, dict)]:
        common.append(ev.Finding("bad-chunk", f"a choice is not an object: {invalid[0]!r:.60}; dropped"))
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
        choice.report("bad-chunk", f"content is not text: {content!r:.60}; dropped")
    choice.events += _reasoning_events(reasoning, _details(delta))
    if isinstance(content, str) and content:
        choice.events.append(ev.TextDelta(content))
    if isinstance(refusal := delta.get("refusal"), str) and refusal:
        choice.events.append(ev.RefusalDelta(refusal))


def _reasoning_events(reasoning: str, details: list[Any]) -> list[ev.Event]:
    """Return the events for the reasoning, with each seal after the text that it signs.

    If the details hold the text piece by piece, each seal follows its own piece; otherwise all of the text comes first.
    """
    events: list[ev.Event] = []
    in_pieces = "".join(map(detail_text, details)) == reasoning
    text = "" if in_pieces else reasoning
    for detail in details:
        text += detail_text(detail) if in_pieces else ""
        if stripped := detail_without_text(detail):
            events += [ev.ReasoningDelta(text)] if text else []
            events.append(ev.Seal(NAME, {REASONING_DETAILS: [stripped]}))
            text = ""
    return [*events, ev.ReasoningDelta(text)] if text else events


def _part_text(text: Any) -> str:
    if isinstance(text, list):
        return "".join(_part_text(part.get("text")) for part in text if isinstance(part, dict))
    return text if isinstance(text, str) else ""


def _read_calls(delta: dict[str, Any], assembler: ToolCallAssembler, choice: Choice) -> None:
    entries = delta.get("tool_calls")
    legacy = delta.get("function_call")
    if legacy and isinstance(legacy, dict):
        choice.exact = False
        if legacy.get("name"):
            choice.report("function-call", "the legacy function_call field: read as a tool call")
        entries = entries or [{"index": 0, "type": "function", "function": legacy}]
    if entries:
        events, exact = assembler.read(entries if isinstance(entries, list) else [entries])
        choice.events += events
        choice.exact &= exact and isinstance(entries, list)


def reasoning_text(delta: dict[str, Any]) -> str:
    """Return the reasoning in a delta, from the first field that has it: upstreams that fill two send the same text."""
    for field in ("reasoning_content", "reasoning"):
        if isinstance(text := delta.get(field), str) and text:
            return text
    return "".join(map(detail_text, _details(delta)))


def _details(delta: dict[str, Any]) -> list[Any]:
    details = delta.get(REASONING_DETAILS)
    return details if isinstance(details, list) else []


def detail_without_text(detail: Any) -> dict[str, Any] | None:
    """Return an entry of `reasoning_details` without its text; None if it has no signature or encrypted data."""
    if not isinstance(detail, dict) or not (detail.get("signature") or detail.get("data")):
        return None
    return {key: value for key, value in detail.items() if key not in ("text", "summary")}


def detail_text(detail: Any) -> str:
    """Return the reasoning in an entry of `reasoning_details`; "" for encrypted entries."""
    text = (detail.get("text") or detail.get("summary")) if isinstance(detail, dict) else None
    return text if isinstance(text, str) else ""


def detail_with_text(text: str, template: dict[str, Any]) -> dict[str, Any]:
    """Return an entry of `reasoning_details` with another text, and without the signature of the old text."""
    fields = {key: value for key, value in template.items() if key != "signature"}
    return {**fields, "summary" if template.get("summary") and not template.get("text") else "text": text}


def _read_finish(raw_choice: dict[str, Any], assembler: ToolCallAssembler | None, choice: Choice) -> None:
    finish = raw_choice.get("finish_reason")
    if finish == "error" or raw_choice.get("error"):
        choice.events.append(_failure(raw_choice.get("error") or "the upstream stopped with an error"))
        choice.exact = False
        return
    if not finish:
        choice.exact &= finish is None
        return
    known_reason = STOP_REASONS.get(finish) if isinstance(finish, str) else None
    reason = known_reason or _ALIASES.get(str(finish).lower(), "stop")
    final_events = assembler.finish(truncated=reason in ev.TRUNCATION_REASONS) if assembler is not None else []
    choice.events += final_events
    choice.exact &= only_ends_calls(final_events)
    if known_reason is None:
        choice.report("unknown-finish-reason", f"finish_reason {finish!r} is unknown on this wire: read as {reason!r}")
    sequence = as_str(raw_choice.get("stop_reason"))  # vLLM sends the stop sequence here
    stop_sequence = sequence if reason == "stop" and sequence and sequence.lower() not in _NOT_STOP_SEQUENCES else None
    choice.events.append(ev.Stop(reason, stop_sequence))


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
    message = error.get("message") or error.get("detail") or "the upstream failed"
    return message if isinstance(message, str) else write_json(message)


def _usage_events(container: dict[str, Any]) -> list[ev.Event]:
    usage = as_dict(container.get("usage"))
    if not usage:
        return []
    prompt = as_dict(usage.get("prompt_tokens_details"))
    completion = as_dict(usage.get("completion_tokens_details"))
    event = ev.Usage(
        input=as_int(usage.get("prompt_tokens")) or 0,
        output=as_int(usage.get("completion_tokens")) or 0,
        cached=as_int(prompt.get("cached_tokens")) or as_int(usage.get("prompt_cache_hit_tokens")) or 0,
        reasoning=as_int(completion.get("reasoning_tokens")) or 0,
        cache_written=as_int(prompt.get("cache_write_tokens")) or 0,
        native=usage,
    )
    return [event]
