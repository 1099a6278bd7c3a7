"""Faults of the delivery: of the server's stream, or of a proxy in front of it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

from interlingua.faults.engines.engine_fault import Delivery, EngineFault

__all__ = ["DELIVERY_FAULTS", "REQUEST_FAULTS"]

Json = dict[str, Any]
MAX_DELIVERED_ARGUMENT_CHARS = 12
"""Characters of the arguments that the truncating provider delivers."""


def _calls_in(chunk: Json | bytes) -> list[Json]:
    if isinstance(chunk, bytes) or not chunk["choices"]:
        return []
    calls: list[Json] = chunk["choices"][0]["delta"].get("tool_calls") or []
    return calls


def _argument_chunks(delivery: Delivery) -> list[int]:
    """Return the positions of the chunks with arguments."""
    return [
        n
        for n, chunk in enumerate(delivery.chunks)
        if any(call["function"].get("arguments") for call in _calls_in(chunk))
    ]


def _middle(positions: list[int]) -> int:
    return positions[len(positions) // 2]


def _cut(end: str) -> Callable[[Delivery], Delivery]:
    def cut_inside_call(delivery: Delivery) -> Delivery:
        positions = _argument_chunks(delivery)
        chunks = delivery.chunks[: _middle(positions)] if positions else delivery.chunks[:-2]
        return Delivery(chunks, end)  # type: ignore[arg-type]  # one of the ends

    return cut_inside_call


def _duplicate(delivery: Delivery) -> Delivery:
    if positions := _argument_chunks(delivery):
        delivery.chunks.insert(_middle(positions), delivery.chunks[_middle(positions)])
    return delivery


def _reorder(delivery: Delivery) -> Delivery:
    positions = _argument_chunks(delivery)
    if len(positions) > 2:
        n = positions[len(positions) // 2]
        chunks = delivery.chunks
        chunks[n - 1], chunks[n] = chunks[n], chunks[n - 1]
    return delivery


def _each_call(change: Callable[[Json], None]) -> tuple[Callable[[Delivery], Delivery], Callable[[Json], Json]]:
    """Return the change for the calls of a stream, and for those of a whole reply."""

    def change_stream(delivery: Delivery) -> Delivery:
        for chunk in delivery.chunks:
            for call in _calls_in(chunk):
                change(call)
        return delivery

    def change_whole(body: Json) -> Json:
        for call in body["choices"][0]["message"].get("tool_calls") or ():
            change(call)
        return body

    return change_stream, change_whole


def _remove_id(call: Json) -> None:
    call.pop("id", None)


def _repeat_id(call: Json) -> None:
    if "id" in call:
        call["id"] = "call_0"


def _set_index_zero(delivery: Delivery) -> Delivery:
    for chunk in delivery.chunks:
        for call in _calls_in(chunk):
            call["index"] = 0
    return delivery


def _resend_arguments(delivery: Delivery) -> Delivery:
    """Repeat all previous arguments in each delta, as cumulative streams do."""
    sent: dict[int, str] = {}
    for chunk in delivery.chunks:
        for call in _calls_in(chunk):
            sent[call["index"]] = sent.get(call["index"], "") + call["function"]["arguments"]
            call["function"]["arguments"] = sent[call["index"]]
    return delivery


def _set_finish_reason(reason: str | None) -> tuple[Callable[[Delivery], Delivery], Callable[[Json], Json]]:
    """Return the changes of the finish reason of replies with calls."""

    def change_stream(delivery: Delivery) -> Delivery:
        for choice in _choices(delivery):
            if choice["finish_reason"] == "tool_calls":
                choice["finish_reason"] = reason
        return delivery

    def change_whole(body: Json) -> Json:
        if body["choices"][0]["finish_reason"] == "tool_calls":
            body["choices"][0]["finish_reason"] = reason
        return body

    return change_stream, change_whole


def _choices(delivery: Delivery) -> Iterator[Json]:
    for chunk in delivery.chunks:
        if isinstance(chunk, dict):
            yield from chunk["choices"]


def _truncate_stream(finish: str) -> Callable[[Delivery], Delivery]:
    def truncate(delivery: Delivery) -> Delivery:
        left = MAX_DELIVERED_ARGUMENT_CHARS
        for chunk in delivery.chunks:
            for call in _calls_in(chunk):
                call["function"]["arguments"] = call["function"]["arguments"][:left]
                left -= len(call["function"]["arguments"])
        if left == 0:
            for choice in _choices(delivery):
                choice["finish_reason"] = choice["finish_reason"] and finish
        return delivery

    return truncate


def _truncate_whole(finish: str) -> Callable[[Json], Json]:
    def truncate(body: Json) -> Json:
        choice = body["choices"][0]
        for call in choice["message"].get("tool_calls") or ():
            arguments = call["function"]["arguments"]
            call["function"]["arguments"] = arguments[:MAX_DELIVERED_ARGUMENT_CHARS]
            if len(arguments) > MAX_DELIVERED_ARGUMENT_CHARS:
                choice["finish_reason"] = finish
        return body

    return truncate


def _break_event(delivery: Delivery) -> Delivery:
    positions = _argument_chunks(delivery) or [1]
    chunk = delivery.chunks[_middle(positions)]
    delivery.chunks[_middle(positions)] = json.dumps(chunk).encode()[:-20] if isinstance(chunk, dict) else b"{"
    return delivery


def _fail_midstream(delivery: Delivery) -> Delivery:
    positions = _argument_chunks(delivery) or [1]
    error = {"error": {"message": "the backend has crashed", "type": "server_error", "code": 500}}
    return Delivery([*copy.copy(delivery.chunks[: _middle(positions)]), json.dumps(error).encode()], "eof")


_NO_IDS, _SAME_IDS = _each_call(_remove_id), _each_call(_repeat_id)
_STOP, _NO_FINISH = _set_finish_reason("stop"), _set_finish_reason(None)

DELIVERY_FAULTS = (
    EngineFault("stream-cut", "transport", "The stream ends inside a call.", deliver_stream=_cut("eof")),
    EngineFault("stream-reset", "transport", "The connection breaks inside a call.", deliver_stream=_cut("reset")),
    EngineFault(
        "stream-duplicates", "transport", "One event of the arguments is sent twice.", deliver_stream=_duplicate
    ),
    EngineFault("stream-reorders", "transport", "Two events of the arguments change places.", deliver_stream=_reorder),
    EngineFault(
        "stream-resends", "transport", "Each delta repeats all arguments so far.", deliver_stream=_resend_arguments
    ),
    EngineFault(
        "stream-one-index", "transport", "All calls of a stream have the index 0.", deliver_stream=_set_index_zero
    ),
    EngineFault(
        "stream-broken-event", "transport", "One event of the stream is not JSON.", deliver_stream=_break_event
    ),
    EngineFault("stream-error", "transport", "The stream ends with an error event.", deliver_stream=_fail_midstream),
    EngineFault("no-ids", "transport", "Calls have no id.", deliver_stream=_NO_IDS[0], deliver_whole=_NO_IDS[1]),
    EngineFault(
        "same-ids", "transport", "All calls have the same id.", deliver_stream=_SAME_IDS[0], deliver_whole=_SAME_IDS[1]
    ),
    EngineFault(
        "finish-stop",
        "transport",
        "The finish reason of calls is `stop`.",
        deliver_stream=_STOP[0],
        deliver_whole=_STOP[1],
    ),
    EngineFault(
        "finish-missing",
        "transport",
        "Calls have no finish reason.",
        deliver_stream=_NO_FINISH[0],
        deliver_whole=_NO_FINISH[1],
    ),
    EngineFault(
        "truncates-silently",
        "transport",
        "The provider cuts arguments and says nothing.",
        deliver_stream=_truncate_stream("tool_calls"),
        deliver_whole=_truncate_whole("tool_calls"),
    ),
    EngineFault(
        "truncates-early",
        "transport",
        "The provider ends with `length` before the requested limit.",
        deliver_stream=_truncate_stream("length"),
        deliver_whole=_truncate_whole("length"),
    ),
    EngineFault(
        "overloaded",
        "transport",
        "The server answers with status 503.",
        refuse=lambda _: (503, "the service is overloaded, try again later"),
    ),
    EngineFault(
        "whole-not-json",
        "transport",
        "A whole reply is an HTML page.",
        deliver_whole=lambda _: b"<html><body>Bad gateway</body></html>",
    ),
)


def _schemas(body: Json) -> str:
    return json.dumps([tool["function"].get("parameters") for tool in body.get("tools") or ()])


def _refuse_keyword(*keywords: str) -> Callable[[Json], tuple[int, str] | None]:
    def refuse(body: Json) -> tuple[int, str] | None:
        keyword = next((keyword for keyword in keywords if f'"{keyword}"' in _schemas(body)), None)
        return (400, f"Invalid schema for function: the keyword {keyword!r} is not supported") if keyword else None

    return refuse


def _refuse_names(body: Json) -> tuple[int, str] | None:
    for tool in body.get("tools") or ():
        if not tool["function"]["name"].replace("_", "").isalnum():
            return 400, f"Invalid 'tools[0].function.name': {tool['function']['name']!r} does not match the pattern"
    return None


def _refuse_forced_calls(body: Json) -> tuple[int, str] | None:
    if body.get("tool_choice") in (None, "auto", "none"):
        return None
    return 422, "tool_choice: only 'auto' and 'none' are supported"


REQUEST_FAULTS = (
    EngineFault(
        "refuses-keywords",
        "client-request",
        "The server refuses some keywords of JSON Schema.",
        refuse=_refuse_keyword("$ref", "anyOf", "oneOf", "const", "prefixItems", "pattern"),
    ),
    EngineFault(
        "refuses-names", "client-request", "The server refuses tool names with a dot or a hyphen.", refuse=_refuse_names
    ),
    EngineFault(
        "refuses-forced-calls",
        "client-request",
        "The server refuses a tool choice that forces a call.",
        refuse=_refuse_forced_calls,
    ),
)
