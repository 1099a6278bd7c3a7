"""Whole responses: read as one big event, and written as the last event of their stream."""

from __future__ import annotations

from collections.abc import Iterable

from interlingua import events as ev
from interlingua.common.coerce import as_dict, as_list
from interlingua.core.options import Options
from interlingua.core.tools import Offer
from interlingua.wires.base import Chunk, Json, Said
from interlingua.wires.openai_responses.emitter import Emitter
from interlingua.wires.openai_responses.event_reader import Reader, failure_in
from interlingua.wires.openai_responses.event_types import word_of
from interlingua.wires.openai_responses.response_object import error_object, usage_object

__all__ = ["is_body", "read_body", "write_body"]


_UNFINISHED = ("failed", "cancelled", "queued", "in_progress")


def is_body(body: Json) -> bool:
    return isinstance(body.get("output"), list) and not body.get("error") and body.get("status") not in _UNFINISHED


def read_body(body: Json, reader: Reader) -> Chunk:
    """A body says what its stream would have said, all at once."""
    if failure := failure_in({"error": body.get("error")}):
        return Chunk([], [failure], exact=False)
    if isinstance(body.get("output"), list) and body.get("status") in _UNFINISHED:
        return Chunk([], [ev.Failure(f"the response has no reply: its status is {body['status']}")], exact=False)
    if not is_body(body):
        return Chunk([], [ev.Failure("no reply in this body")], exact=False)
    return reader.read_response(body)


def write_body(
    said: Said, common: Iterable[ev.Event], options: Options, offer: Offer, like: Json | None
) -> tuple[Json, list[ev.Finding]]:
    common = list(common)
    for event in (*common, *(event for _, events in said for event in events)):
        if isinstance(event, ev.Failure):
            return {"error": {"type": event.type, "param": None, **error_object(event)}}, []
    if like is not None and not said:
        beside: Json = {"model": options.served_as} if options.served_as not in ("", like.get("model")) else {}
        for event in common:
            if isinstance(event, ev.Usage) and event.estimated:
                beside["usage"] = usage_object(event)
        return {**like, **beside} if beside else like, []
    emitter = Emitter(options, offer)
    emitter.emit(said, common, {"type": "response.created", "response": like} if like is not None else None)
    response = emitter.finish()
    return response if like is None else _like(response, like), emitter.findings


def _like(response: Json, like: Json) -> Json:
    """What the upstream says that no event tells stays, and so does every item that says the same as before."""
    before = [as_dict(item) for item in as_list(like.get("output"))]
    known = {_said(item): item for item in before if word_of(item)}
    output = [known.get(_said(item), item) for item in response["output"]]
    for position, item in enumerate(before):
        if word_of(item) is None:
            output.insert(min(position, len(output)), item)
    return {**like, **response, "output": output}


def _said(item: Json) -> tuple[str, ...]:
    """All that an item says to a client, but not what is said about it."""
    parts = [*as_list(item.get("summary")), *as_list(item.get("content"))]
    texts = [str(as_dict(part).get("text") or as_dict(part).get("refusal") or "") for part in parts]
    apart = "\n\n" if item.get("type") == "reasoning" else ""
    fields = ("type", "encrypted_content", "call_id", "name", "arguments", "input", "status")
    return (apart.join(texts), *(str(item.get(field) or "") for field in fields))
