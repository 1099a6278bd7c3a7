"""Reader: events of a Responses stream → neutral events."""

from __future__ import annotations

from math import isfinite
from typing import Any

from interlingua import events as ev
from interlingua.common.coerce import as_dict, as_int, as_list, as_str
from interlingua.core.options import ArgumentsPolicy, Limits
from interlingua.wires.base import Choice, Chunk, Json
from interlingua.wires.openai_responses.event_types import (
    FINAL_EVENTS,
    RESPONSE_COMPLETED,
    RESPONSE_CREATED,
    RESPONSE_FAILED,
    TRANSLATED_EVENTS,
)
from interlingua.wires.openai_responses.fast_delta import ResponsesFastReader
from interlingua.wires.openai_responses.item_reader import ItemReader
from interlingua.wires.openai_responses.item_state import EventSequence

__all__ = ["INCOMPLETE_STOP_REASONS", "ResponsesReader"]

INCOMPLETE_STOP_REASONS: dict[str, ev.StopReason] = {"max_output_tokens": "length", "content_filter": "content_filter"}
"""Stop reason for each `incomplete_details.reason`."""


class ResponsesReader:
    """Reads the events of one stream."""

    __slots__ = ("_items", "_reply_start", "_sequence", "_stop", "fast")

    def __init__(self, limits: Limits | None = None, arguments: ArgumentsPolicy = "repair") -> None:
        self._items = ItemReader(limits or Limits(), arguments)
        self._sequence = EventSequence()
        self.fast = ResponsesFastReader(self._items, self._sequence)
        self._reply_start: ev.Begin | None = None
        self._stop: ev.Stop | None = None

    def read(self, chunk: Json) -> Chunk:
        if failure := find_failure(chunk):
            return Chunk([], [failure], exact=False)
        event_type = chunk.get("type")
        if not isinstance(event_type, str) or event_type not in TRANSLATED_EVENTS:
            return Chunk([], self._items.report_untranslated(chunk), exact=True)
        response = as_dict(chunk.get("response"))
        choice = Choice(0, [], exact=self._sequence.advance(chunk.get("sequence_number")))
        self._start_reply(event_type, response, choice)
        result = Chunk([choice], [], exact=True, model=as_str(response.get("model")) or "")
        if event_type in FINAL_EVENTS:
            result.last = True
            output_complete = response.get("output") is None or len(as_list(response.get("output"))) == len(self._items)
            choice.exact &= self._items.all_finished and output_complete and _has_same_id(response, self._reply_start)
            item_count = len(self._items)
            incomplete = response.get("status") == "incomplete"
            if event_type == RESPONSE_COMPLETED and incomplete:
                choice.report("stop-reason", f"{event_type} with the status 'incomplete': read as response.incomplete")
            result.common += self._finish_reply(event_type == RESPONSE_COMPLETED and not incomplete, response, choice)
            choice.exact &= len(self._items) == item_count
        else:
            self._items.read(chunk, choice)
        result.exact = choice.exact
        return result

    def read_response(self, response: Json) -> Chunk:
        """Read a whole response object as one chunk."""
        choice = Choice(0, [], exact=True)
        self._start_reply(RESPONSE_CREATED, response, choice)
        common = self._finish_reply(response.get("status") != "incomplete", response, choice)
        return Chunk([choice], common, choice.exact, last=True, model=as_str(response.get("model")) or "")

    def close(self, finished: bool) -> list[tuple[int, list[ev.Event]]]:
        """Return the events that end the reply: a failure if the stream ended without a final event."""
        if self._reply_start is None:
            return []
        choice = Choice(0, [], exact=False)
        if self._stop is None and finished:
            self._items.finish_open_items(choice)
        elif self._stop is None:
            choice.events.append(ev.Failure("the upstream ended before response.completed"))
        return [(0, choice.events)]

    def _start_reply(self, event_type: str, response: Json, choice: Choice) -> None:
        if self._reply_start is not None:
            choice.exact &= event_type != RESPONSE_CREATED
            return
        created = response.get("created_at")
        self._reply_start = ev.Begin(
            as_str(response.get("id")),
            as_str(response.get("model")),
            int(created) if isinstance(created, float) and isfinite(created) else as_int(created),
        )
        choice.events.append(self._reply_start)
        choice.exact &= bool(self._reply_start.id)
        if event_type != RESPONSE_CREATED:
            choice.report(
                "no-message-start", f"the stream begins with {event_type}: response.created is sent before it"
            )

    def _finish_reply(self, completed: bool, response: Json, choice: Choice) -> list[ev.Event]:
        """Read the final event: items not seen before, and the stop reason. Returns the events of the whole reply."""
        self._items.read_output(as_list(response.get("output")), choice)
        if completed:
            self._items.finish_open_items(choice)
            self._stop = ev.Stop("tool_calls" if self._items.call_count else "stop")
        else:
            self._stop = ev.Stop(_stop_reason(as_dict(response.get("incomplete_details")).get("reason"), choice))
        choice.events.append(self._stop)
        return _read_usage(as_dict(response.get("usage")))


def find_failure(chunk: Json) -> ev.Failure | None:
    """Return the failure that an event or a body reports, or None."""
    event_type = chunk.get("type")
    response = as_dict(chunk.get("response"))
    status = (
        response.get("status") if event_type in FINAL_EVENTS else event_type
    )  # some upstreams end every stream with response.completed, also a failed one
    if status in (RESPONSE_FAILED, "failed"):
        error = response.get("error")
    elif event_type == "error":
        error = chunk.get("error") or {key: value for key, value in chunk.items() if key != "type"}
    elif status in ("response.cancelled", "cancelled"):
        error = {"message": "the response was cancelled"}
    elif error := chunk.get("error"):
        pass
    else:
        return None
    native = error if isinstance(error, dict) else {"message": str(error or "the upstream failed")}
    code = native.get("code")
    return ev.Failure(
        message=str(native.get("message") or "the upstream failed"),
        type=str(native.get("type") or "api_error"),
        code=code if isinstance(code, str | int) else None,
        native=native,
    )


def _stop_reason(incomplete_reason: Any, choice: Choice) -> ev.StopReason:
    reason = INCOMPLETE_STOP_REASONS.get(incomplete_reason) if isinstance(incomplete_reason, str) else None
    if reason is None:
        reason = "length"
        choice.events.append(
            ev.Finding(
                "unknown-finish-reason", f"unknown incomplete_details.reason {incomplete_reason!r}: read as {reason!r}"
            )
        )
    return reason


def _has_same_id(response: Json, reply_start: ev.Begin | None) -> bool:
    return reply_start is not None and response.get("id") == reply_start.id


def _read_usage(usage: Json) -> list[ev.Event]:
    if not usage:
        return []
    input_details, output_details = (
        as_dict(usage.get("input_tokens_details")),
        as_dict(usage.get("output_tokens_details")),
    )
    usage_event = ev.Usage(
        input=_token_count(usage.get("input_tokens")),
        output=_token_count(usage.get("output_tokens")),
        cached=_token_count(input_details.get("cached_tokens")),
        reasoning=_token_count(output_details.get("reasoning_tokens")),
        cache_written=_token_count(input_details.get("cache_write_tokens")),
        native=usage,
    )
    return [usage_event]


def _token_count(value: Any) -> int:
    return value if isinstance(value, int) else 0
