"""The words of the wire: how each kind of text is told, in events, in parts and in items."""

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
    """One kind of text, of which there is one Word. Its events are `stem`.delta and `stem`.done; `field` holds it when
    it is whole."""

    event_prefix: str
    item_type: str
    """The type of the items that hold it."""
    text_field: str
    id_prefix: str
    """How ids of such items begin."""
    parts_field: str = ""
    """The field of the item that lists its parts. A call has none: the text stands in the item itself."""
    part_type: str = ""
    """The type of such a part."""
    part_index_field: str = ""
    """The field of an event that says which part."""
    part_event_prefix: str = ""
    """The events `around`.added and `around`.done begin and end a part."""


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

TEXT_KINDS = (OUTPUT_TEXT, REFUSAL, REASONING_SUMMARY, REASONING_TEXT, FUNCTION_ARGUMENTS, CUSTOM_TOOL_INPUT)
KIND_BY_EVENT_PREFIX = {word.event_prefix: word for word in TEXT_KINDS}
KIND_BY_PART_TYPE = {word.part_type: word for word in TEXT_KINDS if word.part_type}
KIND_BY_ITEM_TYPE = {
    "message": OUTPUT_TEXT,
    "reasoning": REASONING_SUMMARY,
    "function_call": FUNCTION_ARGUMENTS,
    "custom_tool_call": CUSTOM_TOOL_INPUT,
}
"""The items that other wires have a word for, each with its usual text."""
TRANSLATED_EVENTS = {RESPONSE_CREATED, RESPONSE_IN_PROGRESS, "response.queued", *FINAL_EVENTS, ITEM_ADDED, ITEM_DONE}
TRANSLATED_EVENTS |= {
    f"{word.part_event_prefix}.{verb}" for word in TEXT_KINDS if word.part_event_prefix for verb in ("added", "done")
}
TRANSLATED_EVENTS |= {f"{word.event_prefix}.{verb}" for word in TEXT_KINDS for verb in ("delta", "done")}
"""The events that say something in other wires too."""


def text_kind_of(item: dict[str, Any]) -> TextKind | None:
    """The usual text of an item; None if other wires have no word for such items."""
    item_type = item.get("type")
    return KIND_BY_ITEM_TYPE.get(item_type) if isinstance(item_type, str) else None
