"""Events of a response's stream → neutral events."""

from __future__ import annotations

from typing import Any

from interlingua import events as ev
from interlingua.common.coerce import as_dict, as_list, as_str
from interlingua.core.options__limits import Limits
from interlingua.wires.base import Choice, Chunk, Json
from interlingua.wires.openai_responses.event_types import COMPLETED, CREATED, ENDS, FAILED, UNDERSTOOD
from interlingua.wires.openai_responses.fast_delta import read_usual
from interlingua.wires.openai_responses.item_reader import Items

__all__ = ["REASONS", "Reader"]

REASONS: dict[str, ev.StopReason] = {"max_output_tokens": "length", "content_filter": "content_filter"}
"""Why a response is incomplete."""


class Reader:
    """Reads the events of one stream."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._items = Items(limits or Limits())
        self._begin: ev.Begin | None = None
        self._stop: ev.Stop | None = None
        self._number = -1

    def read(self, chunk: Json) -> Chunk:
        if failure := failure_in(chunk):
            return Chunk([], [failure], exact=False)
        kind = chunk.get("type")
        if not isinstance(kind, str) or kind not in UNDERSTOOD:
            return Chunk([], self._items.note_event(chunk), exact=True)
        response = as_dict(chunk.get("response"))
        choice = Choice(0, [], exact=self._is_next(chunk))
        self._open(kind, response, choice)
        read = Chunk([choice], [], exact=True, model=as_str(response.get("model")) or "")
        if kind in ENDS:
            read.last = True
            told = response.get("output") is None or len(as_list(response.get("output"))) == len(self._items)
            choice.exact &= self._items.all_over and told and _same_id(response, self._begin)
            before = len(self._items)
            incomplete = response.get("status") == "incomplete"
            if kind == COMPLETED and incomplete:
                choice.report("stop-reason", f"{kind} of a response that is incomplete by its status: read as that")
            read.common += self._end(kind == COMPLETED and not incomplete, response, choice)
            choice.exact &= len(self._items) == before
        else:
            self._items.read(chunk, choice)
        read.exact = choice.exact
        return read

    def usual(self, data: bytes) -> Chunk | None:
        chunk = read_usual(data)
        if chunk is None or self._begin is None:
            return None
        choice = Choice(0, [], exact=chunk.sequence_number > self._number)
        if not self._items.more(chunk, choice):
            return None
        self._number = chunk.sequence_number
        return Chunk([choice], [], choice.exact)

    def text_in(self, data: bytes) -> None:
        """Each event has a number of its own, and is another one."""

    def more(self, index: int, call: int, arguments: str) -> None:
        """The same."""

    def read_response(self, response: Json) -> Chunk:
        """A whole response says all of it at once."""
        choice = Choice(0, [], exact=True)
        self._open(CREATED, response, choice)
        common = self._end(response.get("status") != "incomplete", response, choice)
        return Chunk([choice], common, choice.exact, last=True, model=as_str(response.get("model")) or "")

    def close(self, finished: bool) -> list[tuple[int, list[ev.Event]]]:
        """The stream is over. Unless the upstream has said so itself, it broke off."""
        if self._begin is None:
            return []
        choice = Choice(0, [], exact=False)
        if self._stop is None and finished:
            self._items.finish(choice)
        elif self._stop is None:
            choice.events.append(ev.Failure("the upstream ended before response.completed"))
        return [(0, choice.events)]

    def _is_next(self, chunk: Json) -> bool:
        number, before = chunk.get("sequence_number"), self._number
        self._number = number if isinstance(number, int) else before
        return isinstance(number, int) and number > before

    def _open(self, kind: str, response: Json, choice: Choice) -> None:
        if self._begin is not None:
            choice.exact &= kind != CREATED
            return
        created = response.get("created_at")
        self._begin = ev.Begin(
            as_str(response.get("id")),
            as_str(response.get("model")),
            int(created) if isinstance(created, int | float) else None,
        )
        choice.events.append(self._begin)
        choice.exact &= bool(self._begin.id)
        if kind != CREATED:
            choice.report("no-message-start", f"the stream begins with {kind}: the response is told to begin before it")

    def _end(self, completed: bool, response: Json, choice: Choice) -> list[ev.Event]:
        """The last event, with what only it tells. Returns what it says of the whole reply."""
        self._items.read_last(as_list(response.get("output")), choice)
        if completed:
            self._items.finish(choice)
            self._stop = ev.Stop("tool_calls" if self._items.calls else "stop")
        else:
            self._stop = ev.Stop(_reason(as_dict(response.get("incomplete_details")).get("reason"), choice))
        choice.events.append(self._stop)
        return _usage(as_dict(response.get("usage")))


def failure_in(chunk: Json) -> ev.Failure | None:
    """What an event, or a body, says of a failure."""
    kind = chunk.get("type")
    response = as_dict(chunk.get("response"))
    how = response.get("status") if kind in ENDS else kind  # some end every stream as if it had gone well
    if how in (FAILED, "failed"):
        error = response.get("error")
    elif kind == "error":
        error = chunk.get("error") or {key: value for key, value in chunk.items() if key != "type"}
    elif how in ("response.cancelled", "cancelled"):
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


def _reason(word: Any, choice: Choice) -> ev.StopReason:
    reason = REASONS.get(word) if isinstance(word, str) else None
    if reason is None:
        reason = "length"
        choice.events.append(
            ev.Finding("unknown-finish-reason", f"the response is incomplete for {word!r}: read as {reason!r}")
        )
    return reason


def _same_id(response: Json, begin: ev.Begin | None) -> bool:
    return begin is not None and response.get("id") == begin.id


def _usage(usage: Json) -> list[ev.Event]:
    if not usage:
        return []
    inputs, outputs = as_dict(usage.get("input_tokens_details")), as_dict(usage.get("output_tokens_details"))
    told = ev.Usage(
        input=_count(usage.get("input_tokens")),
        output=_count(usage.get("output_tokens")),
        cached=_count(inputs.get("cached_tokens")),
        reasoning=_count(outputs.get("reasoning_tokens")),
        cache_written=_count(inputs.get("cache_write_tokens")),
        native=usage,
    )
    return [told]


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 0
