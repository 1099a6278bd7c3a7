"""Event types of the Responses wire, and the events, parts and items that carry each kind of text."""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = [
    "ANNOTATION_ADDED",
    "CUSTOM_TOOL_INPUT",
    "FINAL_EVENTS",
    "FUNCTION_ARGUMENTS",
    "ITEM_ADDED",
    "ITEM_DONE",
    "KIND_BY_EVENT_PREFIX",
    "KIND_BY_ITEM_TYPE",
    "KIND_BY_PART_TYPE",
    "NAME",
    "OUTPUT_TEXT",
    "REASONING_SUMMARY",
    "REASONING_TEXT",
    "REFUSAL",
    "RESPONSE_COMPLETED",
    "RESPONSE_CREATED",
    "RESPONSE_FAILED",
    "RESPONSE_INCOMPLETE",
    "RESPONSE_IN_PROGRESS",
    "TEXT_KINDS",
    "TOOL_SEARCH_ARGUMENTS",
    "TRANSLATED_EVENTS",
    "TextKind",
    "text_kind_of",
]

NAME = "openai-responses"

RESPONSE_CREATED, RESPONSE_IN_PROGRESS = "response.created", "response.in_progress"
RESPONSE_COMPLETED, RESPONSE_INCOMPLETE, RESPONSE_FAILED = (
    "response.completed",
    "response.incomplete",
    "response.failed",
)
FINAL_EVENTS = (RESPONSE_COMPLETED, RESPONSE_INCOMPLETE)
ITEM_ADDED, ITEM_DONE = "response.output_item.added", "response.output_item.done"
ANNOTATION_ADDED = "response.output_text.annotation.added"


class TextKind(msgspec.Struct, frozen=True, eq=False):
    """One kind of text in a response. There is exactly one instance per kind."""

    event_prefix: str
    """Prefix of its events: `<prefix>.delta` and `<prefix>.done`."""
    item_type: str
    """Type of the items that hold this text."""
    text_field: str
    """Field that holds the complete text."""
    id_prefix: str
    """Prefix of the ids of these items."""
    parts_field: str = ""
    """Field of the item that lists its parts. Empty for a call: its text is a field of the item itself."""
    part_type: str = ""
    """Type of these parts."""
    part_index_field: str = ""
    """Field of an event that holds the index of the part."""
    part_event_prefix: str = ""
    """Prefix of the events that start and end a part: `<prefix>.added` and `<prefix>.done`."""


OUTPUT_TEXT = TextKind(
    "response.output_text", "message", "text", "msg", "content", "output_text", "content_index", "response.content_part"
)
REFUSAL = TextKind(
    "response.refusal", "message", "refusal", "msg", "content", "refusal", "content_index", "response.content_part"
)
REASONING_SUMMARY = TextKind(
    "response.reasoning_summary_text",
    "reasoning",
    "text",
    "rs",
    "summary",
    "summary_text",
    "summary_index",
    "response.reasoning_summary_part",
)
REASONING_TEXT = TextKind(
    "response.reasoning_text",
    "reasoning",
    "text",
    "rs",
    "content",
    "reasoning_text",
    "content_index",
    "response.content_part",
)
FUNCTION_ARGUMENTS = TextKind("response.function_call_arguments", "function_call", "arguments", "fc")
CUSTOM_TOOL_INPUT = TextKind("response.custom_tool_call_input", "custom_tool_call", "input", "ctc")
TOOL_SEARCH_ARGUMENTS = TextKind("", "tool_search_call", "arguments", "tsc")
"""Arguments of a search for tools, which the client runs. They have no deltas, and are an object in their item."""

TEXT_KINDS = (OUTPUT_TEXT, REFUSAL, REASONING_SUMMARY, REASONING_TEXT, FUNCTION_ARGUMENTS, CUSTOM_TOOL_INPUT)
KIND_BY_EVENT_PREFIX = {kind.event_prefix: kind for kind in TEXT_KINDS}
KIND_BY_PART_TYPE = {kind.part_type: kind for kind in TEXT_KINDS if kind.part_type}
KIND_BY_ITEM_TYPE = {
    "message": OUTPUT_TEXT,
    "reasoning": REASONING_SUMMARY,
    "function_call": FUNCTION_ARGUMENTS,
    "custom_tool_call": CUSTOM_TOOL_INPUT,
}
"""Default text kind of each item type that can be translated to other wires."""
TRANSLATED_EVENTS = {RESPONSE_CREATED, RESPONSE_IN_PROGRESS, "response.queued", *FINAL_EVENTS, ITEM_ADDED, ITEM_DONE}
TRANSLATED_EVENTS |= {
    f"{kind.part_event_prefix}.{suffix}"
    for kind in TEXT_KINDS
    if kind.part_event_prefix
    for suffix in ("added", "done")
}
TRANSLATED_EVENTS |= {f"{kind.event_prefix}.{suffix}" for kind in TEXT_KINDS for suffix in ("delta", "done")}
"""Event types that can be translated to other wires."""


def text_kind_of(item: dict[str, Any]) -> TextKind | None:
    """Return the default text kind of an item, or None if its type cannot be translated to other wires."""
    item_type = item.get("type")
    return KIND_BY_ITEM_TYPE.get(item_type) if isinstance(item_type, str) else None
