"""The items that a client has been told of: which are open, where they stand, and what they hold.

Items begin and end here. Where the upstream tells them itself they are followed, so that they can be told on from any
event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from interlingua.common.coerce import as_dict
from interlingua.wires.base import Json
from interlingua.wires.openai_responses.event_types import (
    ANNOTATION_ADDED,
    CUSTOM_TOOL_INPUT,
    FUNCTION_ARGUMENTS,
    ITEM_ADDED,
    ITEM_DONE,
    REASONING_SUMMARY,
    REASONING_TEXT,
    TEXT_KINDS,
    TRANSLATED_EVENTS,
    TextKind,
    text_kind_of,
)
from interlingua.wires.openai_responses.output_items__items import Frame, OutputItem
from interlingua.wires.openai_responses.response_object import derive_id

__all__ = ["OutputItems"]

_CALL_KINDS = (FUNCTION_ARGUMENTS, CUSTOM_TOOL_INPUT)
_WRITTEN_FIELDS = {"id", "type", "status", "call_id", "name", "namespace", "encrypted_content", "content", "summary"}
_WRITTEN_FIELDS |= {word.text_field for word in TEXT_KINDS}


class OutputItems:
    """The output of one response. `seal` says what is to vouch for thinking, when its item ends."""

    def __init__(self, sign_reasoning: Callable[[OutputItem], Json]) -> None:
        self._sign_reasoning = sign_reasoning
        self._bodies: dict[int, Json] = {}
        self._open_items: list[OutputItem] = []
        self._output_indexes: dict[int, int] = {}  # where the upstream's items stand
        self._item_template: Json = {}  # the item that the upstream has begun, and we have not

    @property
    def finished(self) -> list[Json]:
        """The items that are over, in their order."""
        unfinished = {item.index for item in self._open_items}
        return [self._bodies[index] for index in sorted(self._bodies) if index not in unfinished]

    def open_item_for(self, text_kind: TextKind) -> OutputItem | None:
        """The open item that text of this kind goes on in."""
        item = self._open_items[-1] if self._open_items else None
        return (
            item
            if item
            and (item.text_kind is text_kind or {item.text_kind, text_kind} == {REASONING_SUMMARY, REASONING_TEXT})
            else None
        )

    def open_call(self) -> OutputItem:
        """The call that is open."""
        return next(item for item in self._open_items if item.text_kind in _CALL_KINDS)

    def start_item(self, text_kind: TextKind, fields: Json, seed: str) -> OutputItem:
        """A new item, behind all others. It is like the one that the upstream has begun, if it is of its type."""
        template, self._item_template = (
            (self._item_template, {})
            if self._item_template.get("type") == text_kind.item_type
            else ({}, self._item_template)
        )
        index = max(self._bodies, default=-1) + 1
        extra_fields = {key: value for key, value in template.items() if key not in _WRITTEN_FIELDS}
        id = template.get("id") or derive_id(text_kind.id_prefix, f"{seed}/{index}")
        empty: Json = {"summary": []} if text_kind.item_type == "reasoning" else {}
        empty[text_kind.parts_field or text_kind.text_field] = [] if text_kind.parts_field else ""
        item = OutputItem(text_kind, index, {"type": text_kind.item_type, "id": id, **extra_fields, **fields, **empty})
        self._open_items.append(item)
        self._bodies[index] = item.body
        return item

    def end_item(self, item: OutputItem, status: str) -> Iterator[Frame]:
        self._open_items.remove(item)
        if item.text_kind.item_type == "reasoning" and "encrypted_content" not in item.body:
            item.body |= self._sign_reasoning(item)
        yield from item.end_frames(status)

    def truncate_item(self, item: OutputItem) -> None:
        """The item is over and not done: no frame says so."""
        self._open_items.remove(item)
        item.complete_body("incomplete")

    def end_open_items(self, status: str) -> Iterator[Frame]:
        """Ends what is open."""
        for item in list(self._open_items):
            yield from self.end_item(item, status)

    # ── an upstream of this wire ──────────────────────────────────────────────────────────────────────────────────

    def track_upstream_event(self, chunk: Json) -> None:
        """An event that passes as it came."""
        index, event_type = chunk.get("output_index"), str(chunk.get("type"))
        if not isinstance(index, int):
            return
        self._output_indexes[index] = index
        if event_type in (ITEM_ADDED, ITEM_DONE):
            raw_item = as_dict(chunk.get("item"))
            item = OutputItem.from_upstream(index, raw_item) if event_type == ITEM_ADDED else None
            self._bodies[index] = item.body if item else raw_item
            self._open_items = [other for other in self._open_items if other.index != index] + ([item] if item else [])
        else:
            for item in self._open_items:
                if item.index == index:
                    item.apply_upstream_event(event_type, chunk)

    def adopt_template(self, template: Json) -> Iterator[Frame]:
        """An event that is told anew: an item that begins ends the text before it, and is the model for ours."""
        if template.get("type") == ITEM_ADDED:
            raw_item = as_dict(template.get("item"))
            if not any(item.text_kind in _CALL_KINDS for item in self._open_items):
                yield from self.end_open_items("completed")
            self._item_template = raw_item if text_kind_of(raw_item) else {}

    def map_upstream_index(self, template: Json, item: OutputItem) -> None:
        """What the upstream says of this item of its own is about ours."""
        if isinstance(index := template.get("output_index"), int):
            self._output_indexes[index] = item.index

    def forward_untranslated(self, template: Json) -> Iterator[Frame]:
        """What the upstream says that no event tells: it goes on under our numbers."""
        event_type, index, raw_item = (
            str(template.get("type")),
            template.get("output_index"),
            as_dict(template.get("item")),
        )
        if text_kind_of(raw_item) or (event_type in TRANSLATED_EVENTS and event_type not in (ITEM_ADDED, ITEM_DONE)):
            return
        fields = {key: value for key, value in template.items() if key != "type"}
        if isinstance(index, int):
            if event_type in (ITEM_ADDED, ITEM_DONE):
                self._bodies[self._output_indexes.setdefault(index, max(self._bodies, default=-1) + 1)] = raw_item
            fields["output_index"] = self._output_indexes.get(index, index)
            for item in self._open_items:
                if item.index == fields["output_index"] and "item_id" in template:
                    fields["item_id"] = item.id
                    if event_type == ANNOTATION_ADDED:
                        item.apply_upstream_event(event_type, template)
        yield event_type, fields
