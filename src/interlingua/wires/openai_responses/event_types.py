"""The words of the wire: how each kind of text is told, in events, in parts and in items."""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = [
    "ADDED",
    "ANNOTATED",
    "ARGUMENTS",
    "BY_ITEM",
    "BY_PART",
    "BY_STEM",
    "COMPLETED",
    "CREATED",
    "DONE",
    "ENDS",
    "FAILED",
    "INCOMPLETE",
    "INPUT",
    "IN_PROGRESS",
    "NAME",
    "REFUSAL",
    "SUMMARY",
    "TEXT",
    "THOUGHT",
    "UNDERSTOOD",
    "WORDS",
    "Word",
    "word_of",
]

NAME = "openai-responses"

CREATED, IN_PROGRESS = "response.created", "response.in_progress"
COMPLETED, INCOMPLETE, FAILED = "response.completed", "response.incomplete", "response.failed"
ENDS = (COMPLETED, INCOMPLETE)
ADDED, DONE = "response.output_item.added", "response.output_item.done"
ANNOTATED = "response.output_text.annotation.added"


class Word(msgspec.Struct, frozen=True, eq=False):
    """One kind of text, of which there is one Word. Its events are `stem`.delta and `stem`.done; `field` holds it when
    it is whole."""

    stem: str
    item: str
    """The type of the items that hold it."""
    field: str
    prefix: str
    """How ids of such items begin."""
    parts: str = ""
    """The field of the item that lists its parts. A call has none: the text stands in the item itself."""
    part: str = ""
    """The type of such a part."""
    position: str = ""
    """The field of an event that says which part."""
    around: str = ""
    """The events `around`.added and `around`.done begin and end a part."""


TEXT = Word(
    "response.output_text", "message", "text", "msg", "content", "output_text", "content_index", "response.content_part"
)
REFUSAL = Word(
    "response.refusal", "message", "refusal", "msg", "content", "refusal", "content_index", "response.content_part"
)
SUMMARY = Word(
    "response.reasoning_summary_text",
    "reasoning",
    "text",
    "rs",
    "summary",
    "summary_text",
    "summary_index",
    "response.reasoning_summary_part",
)
THOUGHT = Word(
    "response.reasoning_text",
    "reasoning",
    "text",
    "rs",
    "content",
    "reasoning_text",
    "content_index",
    "response.content_part",
)
ARGUMENTS = Word("response.function_call_arguments", "function_call", "arguments", "fc")
INPUT = Word("response.custom_tool_call_input", "custom_tool_call", "input", "ctc")

WORDS = (TEXT, REFUSAL, SUMMARY, THOUGHT, ARGUMENTS, INPUT)
BY_STEM = {word.stem: word for word in WORDS}
BY_PART = {word.part: word for word in WORDS if word.part}
BY_ITEM = {"message": TEXT, "reasoning": SUMMARY, "function_call": ARGUMENTS, "custom_tool_call": INPUT}
"""The items that other wires have a word for, each with its usual text."""
UNDERSTOOD = {CREATED, IN_PROGRESS, "response.queued", *ENDS, ADDED, DONE}
UNDERSTOOD |= {f"{word.around}.{verb}" for word in WORDS if word.around for verb in ("added", "done")}
UNDERSTOOD |= {f"{word.stem}.{verb}" for word in WORDS for verb in ("delta", "done")}
"""The events that say something in other wires too."""


def word_of(item: dict[str, Any]) -> Word | None:
    """The usual text of an item; None if other wires have no word for such items."""
    kind = item.get("type")
    return BY_ITEM.get(kind) if isinstance(kind, str) else None
