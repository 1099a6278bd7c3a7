"""Whole (non-streamed) response bodies.

A body is read like the final event of a stream, and written as the `response` object of that event.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from interlingua import events as ev
from interlingua.common.coerce import as_dict, as_list
from interlingua.core.options import Options
from interlingua.core.tools import ToolSet
from interlingua.wires.base import ChoiceEvents, Chunk, Json
from interlingua.wires.openai_responses.emitter import ResponsesEmitter
from interlingua.wires.openai_responses.event_reader import ResponsesReader, find_failure
from interlingua.wires.openai_responses.event_types import text_kind_of
from interlingua.wires.openai_responses.response_object import error_object, usage_object

__all__ = ["is_body", "read_body", "write_body"]


_UNFINISHED_STATUSES = ("failed", "cancelled", "queued", "in_progress")


def is_body(body: Json) -> bool:
    return (
        isinstance(body.get("output"), list)
        and not body.get("error")
        and body.get("status") not in _UNFINISHED_STATUSES
    )


def read_body(body: Json, reader: ResponsesReader) -> Chunk:
    """Read a whole body into one chunk that holds all events of the reply."""
    if failure := find_failure({"error": body.get("error")}):
        return Chunk([], [failure], exact=False)
    if isinstance(body.get("output"), list) and body.get("status") in _UNFINISHED_STATUSES:
        return Chunk([], [ev.Failure(f"the response holds no reply: its status is {body['status']}")], exact=False)
    if not is_body(body):
        return Chunk([], [ev.Failure("the upstream's response has no reply in it")], exact=False)
    return reader.read_response(body)


def write_body(
    choice_events: ChoiceEvents, common: Iterable[ev.Event], options: Options, tool_set: ToolSet, template: Json | None
) -> tuple[Json, list[ev.Finding]]:
    common = list(common)
    for event in (*common, *(event for _, events in choice_events for event in events)):
        if isinstance(event, ev.Failure):
            return {"error": {"type": event.type, "param": None, **error_object(event)}}, []
    if template is not None and not choice_events:
        changed_fields: Json = (
            {"model": options.served_as} if options.served_as not in ("", template.get("model")) else {}
        )
        for event in common:
            if isinstance(event, ev.Usage) and event.estimated:
                changed_fields["usage"] = usage_object(event)
        return {**template, **changed_fields} if changed_fields else template, []
    emitter = ResponsesEmitter(options, tool_set)
    emitter.emit(
        choice_events, common, {"type": "response.created", "response": template} if template is not None else None
    )
    response = emitter.finish_response()
    return response if template is None else _merge_into_template(response, template), emitter.findings


def _merge_into_template(response: Json, template: Json) -> Json:
    """Merge the written response into the upstream's body.

    Fields and items without a neutral event keep the upstream's value. An item with unchanged content keeps the
    upstream's object.
    """
    original_items = [as_dict(item) for item in as_list(template.get("output"))]
    originals_by_content = {_item_content(item): item for item in original_items if text_kind_of(item)}
    written = iter([originals_by_content.get(_item_content(item), item) for item in response["output"]])
    output: list[Json] = []
    for position, item in enumerate(original_items):
        if text_kind_of(item) is None:
            output += islice(written, position - len(output))
            output.append(item)
    return {**template, **response, "output": [*output, *written]}


def _item_content(item: Json) -> tuple[str, ...]:
    """Return the content of an item that clients see, without metadata such as its id, to compare two items."""
    parts = [*as_list(item.get("summary")), *as_list(item.get("content"))]
    texts = [str(as_dict(part).get("text") or as_dict(part).get("refusal") or "") for part in parts]
    separator = "\n\n" if item.get("type") == "reasoning" else ""
    fields = ("type", "encrypted_content", "call_id", "name", "arguments", "input", "status")
    return (separator.join(texts), *(str(item.get(field) or "") for field in fields))
