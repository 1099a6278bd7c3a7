"""Output items of a response: the frames that open an item, stream its text and close it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from io import StringIO
from typing import Any, TypeAlias

from interlingua.common.coerce import as_dict, as_list
from interlingua.common.jsontext.codec import encode_json, read_json
from interlingua.wires.base import Json
from interlingua.wires.openai_responses.custom_tool_text import CustomToolText
from interlingua.wires.openai_responses.event_types import (
    ANNOTATION_ADDED,
    CUSTOM_TOOL_INPUT,
    FUNCTION_ARGUMENTS,
    ITEM_ADDED,
    ITEM_DONE,
    KIND_BY_EVENT_PREFIX,
    KIND_BY_ITEM_TYPE,
    KIND_BY_PART_TYPE,
    OUTPUT_TEXT,
    REASONING_SUMMARY,
    REASONING_TEXT,
    TEXT_KINDS,
    TOOL_SEARCH_ARGUMENTS,
    TRANSLATED_EVENTS,
    TextKind,
    text_kind_of,
)
from interlingua.wires.openai_responses.response_object import derive_id

__all__ = ["Frame", "OutputItem", "OutputItems"]

Frame: TypeAlias = tuple[str, Json] | bytes
"""An event type with its fields, or the bytes of a frame that lacks only its sequence number."""


MAX_TRACKED_INDEXES = 10_000
"""Number of the upstream's indexes that are mapped to ours: an upstream may send new ones without end."""


class _Stage(Enum):
    NO_PART_OPEN = "no part is open"
    PART_OPEN = "a part is open"
    TEXT_DONE = "the text is complete, the part is still open"


_PART_OPEN = _Stage.PART_OPEN  # compared for every token, and attribute access on an Enum is slow


class OutputItem:
    """An output item that is being written. `body` is the item object; it is complete when the item has ended."""

    __slots__ = (
        "_annotations",
        "_delta_template",
        "_other_chars",
        "_parts",
        "_stage",
        "_text",
        "body",
        "custom_text",
        "index",
        "text_kind",
    )

    def __init__(self, text_kind: TextKind, index: int, body: Json) -> None:
        self.text_kind = text_kind
        self.index = index
        self.body = body
        self.custom_text = CustomToolText() if text_kind is CUSTOM_TOOL_INPUT else None
        self._parts: list[Json] = []
        self._text = StringIO()  # of the last part
        self._annotations: list[object] = []  # of the last part
        self._other_chars = 0  # in all other parts and annotations
        self._delta_template: tuple[tuple[TextKind, int], bytes, bytes] | None = None  # part, prefix, suffix
        self._stage = _Stage.NO_PART_OPEN if text_kind.parts_field else _Stage.PART_OPEN

    @property
    def id(self) -> str:
        return str(self.body.get("id"))

    @property
    def text(self) -> str:
        """Text of the last part so far."""
        return self._text.getvalue()

    @property
    def kept_chars(self) -> int:
        """Number of characters in all parts."""
        return self._other_chars + self._text.tell()

    def start_frame(self) -> Frame:
        return ITEM_ADDED, {"output_index": self.index, "item": {**self.body, **self._status_field("in_progress")}}

    def text_frames(self, text: str, logprobs: object = None) -> Iterator[Frame]:
        text_kind = self.text_kind
        if self._stage is _Stage.NO_PART_OPEN:
            self._stage = _Stage.PART_OPEN
            yield f"{text_kind.part_event_prefix}.added", {**self._location_fields(), "part": self._part_object("")}
        if logprobs:
            self._text.write(text)
            yield (
                f"{text_kind.event_prefix}.delta",
                {**self._location_fields(), "delta": text, **self._logprobs_field(logprobs)},
            )
        else:
            yield self.delta_frame(text)

    @property
    def has_open_part(self) -> bool:
        """True if a part is open, so that `delta_frame` may be called."""
        return self._stage is _PART_OPEN

    def delta_frame(self, text: str) -> bytes:
        """Return a delta frame without its sequence number."""
        self._text.write(text)
        prefix, suffix = self.delta_affixes()
        return prefix + encode_json(text) + suffix

    def delta_affixes(self) -> tuple[bytes, bytes]:
        """Return the bytes before and after the text of a delta frame that has no sequence number yet.

        They are cached: nearly all frames are deltas, and these bytes are the same for all deltas of a part.
        """
        part_key = (self.text_kind, len(self._parts))
        if self._delta_template is None or self._delta_template[0] != part_key:
            event_type = f"{self.text_kind.event_prefix}.delta"
            head = encode_json({"type": event_type, **self._location_fields()})[:-1]
            tail = b',"logprobs":[]' if self.text_kind is OUTPUT_TEXT else b""
            self._delta_template = part_key, b'event: %b\ndata: %b,"delta":' % (event_type.encode(), head), tail
        return self._delta_template[1:]

    @property
    def text_adder(self) -> Callable[[str], object]:
        """A function that adds text of deltas to the open part. `delta_frame` does so itself."""
        return self._text.write

    def end_frames(self, status: str) -> Iterator[Frame]:
        text_kind, text = self.text_kind, self.text
        if self._stage is _Stage.PART_OPEN and text_kind is not TOOL_SEARCH_ARGUMENTS:
            name = {"name": self.body["name"]} if text_kind is FUNCTION_ARGUMENTS else {}
            yield (
                f"{text_kind.event_prefix}.done",
                {**self._location_fields(), text_kind.text_field: text, **name, **self._logprobs_field(None)},
            )
        if self._stage is not _Stage.NO_PART_OPEN and text_kind.parts_field:
            yield f"{text_kind.part_event_prefix}.done", {**self._location_fields(), "part": self._part_object(text)}
        self.complete_body(status)
        yield ITEM_DONE, {"output_index": self.index, "item": self.body}

    def complete_body(self, status: str) -> None:
        """Write the complete text and the status into the body."""
        text_kind = self.text_kind
        if text_kind is TOOL_SEARCH_ARGUMENTS:
            self.body[text_kind.text_field] = read_json(self.text, dict[str, Any]) or {}
        elif not text_kind.parts_field:
            self.body[text_kind.text_field] = self.text
        elif self._stage is not _Stage.NO_PART_OPEN:
            self._parts.append(self._part_object(self.text))
        if text_kind.parts_field:
            self.body[text_kind.parts_field] = self._parts
        self.body |= self._status_field(status)

    def _location_fields(self) -> Json:
        index_field = {self.text_kind.part_index_field: len(self._parts)} if self.text_kind.parts_field else {}
        return {"item_id": self.id, "output_index": self.index, **index_field}

    def _part_object(self, text: str) -> Json:
        extra_fields: Json = {"annotations": self._annotations, "logprobs": []} if self.text_kind is OUTPUT_TEXT else {}
        return {"type": self.text_kind.part_type, self.text_kind.text_field: text, **extra_fields}

    def _logprobs_field(self, logprobs: object) -> Json:
        return {"logprobs": logprobs if isinstance(logprobs, list) else []} if self.text_kind is OUTPUT_TEXT else {}

    def _status_field(self, status: str) -> Json:
        """Return the status field. Reasoning has none: upstreams reject it when a client sends it back."""
        return {} if self.text_kind.item_type == "reasoning" else {"status": status}

    # ── items passed through from the upstream ────────────────────────────────────────────────────────────────────

    @classmethod
    def from_upstream(cls, index: int, raw_item: Json) -> OutputItem | None:
        """Create the state of an item that the upstream has started, or None if this emitter never writes its type."""
        text_kind = KIND_BY_ITEM_TYPE.get(str(raw_item.get("type")))
        if text_kind is None:
            return None
        item = cls(text_kind, index, dict(raw_item))
        item.custom_text = CustomToolText.resume_in_text() if text_kind is CUSTOM_TOOL_INPUT else None
        item._parts = list(as_list(raw_item.get(text_kind.parts_field)))
        return item

    def apply_upstream_event(self, event_type: str, chunk: Json) -> None:
        """Track an upstream event about this item, so that the emitter can continue from it."""
        event_prefix, _, event_suffix = event_type.rpartition(".")
        if event_suffix == "delta" and event_prefix in KIND_BY_EVENT_PREFIX:
            self.text_kind, self._stage = KIND_BY_EVENT_PREFIX[event_prefix], _PART_OPEN
            self._text.write(str(chunk.get("delta")))
            return
        part = as_dict(chunk.get("part"))
        if event_type.endswith("part.added"):
            self.text_kind = KIND_BY_PART_TYPE.get(str(part.get("type")), self.text_kind)
            self._stage, self._text, self._annotations = _Stage.PART_OPEN, StringIO(), []
        elif event_type.endswith("part.done"):
            self._parts.append(part)
            self._other_chars += self._text.tell()
            self._stage, self._text, self._annotations = _Stage.NO_PART_OPEN, StringIO(), []
        elif event_type == ANNOTATION_ADDED:
            self._annotations.append(chunk.get("annotation"))
            self._other_chars += len(encode_json(chunk.get("annotation")))
        elif event_prefix in KIND_BY_EVENT_PREFIX:
            self._stage = _Stage.TEXT_DONE


_CALL_KINDS = (FUNCTION_ARGUMENTS, CUSTOM_TOOL_INPUT, TOOL_SEARCH_ARGUMENTS)
_WRITTEN_FIELDS = {"id", "type", "status", "call_id", "name", "namespace", "encrypted_content", "content", "summary"}
_WRITTEN_FIELDS |= {kind.text_field for kind in TEXT_KINDS}


class OutputItems:
    """The output list of one response.

    `sign_reasoning` returns the signature fields for a reasoning item that ends without a signature.
    """

    __slots__ = (
        "_bodies",
        "_ended_chars",
        "_item_template",
        "_next_index",
        "_open_items",
        "_output_indexes",
        "_sign_reasoning",
    )

    def __init__(self, sign_reasoning: Callable[[OutputItem], Json]) -> None:
        self._sign_reasoning = sign_reasoning
        self._bodies: dict[int, Json] = {}
        self._ended_chars = 0  # in the items that have ended
        self._next_index = 0  # after all items
        self._open_items: dict[int, OutputItem] = {}  # by index, the last one that was opened at the end
        self._output_indexes: dict[int, int] = {}  # by the upstream's index
        self._item_template: Json = {}  # item that the upstream has started and this emitter has not

    @property
    def kept_chars(self) -> int:
        """Number of characters in all items."""
        return self._ended_chars + sum(item.kept_chars for item in self._open_items.values())

    @property
    def finished(self) -> list[Json]:
        """The items that have ended, in order."""
        return [self._bodies[index] for index in sorted(self._bodies) if index not in self._open_items]

    def open_item_for(self, text_kind: TextKind) -> OutputItem | None:
        """Return the open item that text of this kind continues, or None."""
        item = next(reversed(self._open_items.values()), None)
        return (
            item
            if item
            and (item.text_kind is text_kind or {item.text_kind, text_kind} == {REASONING_SUMMARY, REASONING_TEXT})
            else None
        )

    def open_item_at(self, index: object) -> OutputItem | None:
        """Return the open item with this index, or None."""
        return self._open_items.get(index) if isinstance(index, int) else None

    def open_call(self) -> OutputItem:
        """Return the open call."""
        return next(item for item in self._open_items.values() if item.text_kind in _CALL_KINDS)

    def start_item(self, text_kind: TextKind, fields: Json, seed: str) -> OutputItem:
        """Start a new item at the end. It copies id and extra fields of the upstream's item if the types match."""
        template, self._item_template = (
            (self._item_template, {})
            if self._item_template.get("type") == text_kind.item_type
            else ({}, self._item_template)
        )
        index = self._next_index
        extra_fields = {key: value for key, value in template.items() if key not in _WRITTEN_FIELDS}
        id = template.get("id") or derive_id(text_kind.id_prefix, f"{seed}/{index}")
        empty: Json = {"summary": []} if text_kind.item_type == "reasoning" else {}
        empty[text_kind.parts_field or text_kind.text_field] = [] if text_kind.parts_field else ""
        if text_kind is TOOL_SEARCH_ARGUMENTS:
            empty[text_kind.text_field] = {}
        item = OutputItem(text_kind, index, {"type": text_kind.item_type, "id": id, **extra_fields, **fields, **empty})
        self._open_items[index] = item
        self._set_body(index, item.body)
        return item

    def _set_body(self, index: int, body: Json) -> None:
        self._bodies[index] = body
        self._next_index = max(self._next_index, index + 1)

    def end_item(self, item: OutputItem, status: str) -> Iterator[Frame]:
        self._close_item(item)
        if item.text_kind.item_type == "reasoning" and "encrypted_content" not in item.body:
            item.body |= self._sign_reasoning(item)
        yield from item.end_frames(status)

    def set_phase(self, phase: str) -> None:
        """Set the phase of the open message, unless the upstream has set it."""
        item = self.open_item_for(OUTPUT_TEXT)
        if item is not None:
            item.body.setdefault("phase", phase)

    def truncate_item(self, item: OutputItem) -> None:
        """End a truncated item. No `output_item.done` is sent for it."""
        self._close_item(item)
        item.complete_body("incomplete")

    def _close_item(self, item: OutputItem) -> None:
        del self._open_items[item.index]
        self._ended_chars += item.kept_chars

    def end_open_items(self, status: str) -> Iterator[Frame]:
        """End all open items."""
        for item in list(self._open_items.values()):
            yield from self.end_item(item, status)

    # ── upstreams on this wire ────────────────────────────────────────────────────────────────────────────────────

    def track_upstream_event(self, chunk: Json) -> None:
        """Track an event that is passed through."""
        index, event_type = chunk.get("output_index"), str(chunk.get("type"))
        if not isinstance(index, int):
            return
        if len(self._output_indexes) < MAX_TRACKED_INDEXES:
            self._output_indexes[index] = index
        if event_type in (ITEM_ADDED, ITEM_DONE):
            raw_item = as_dict(chunk.get("item"))
            item = OutputItem.from_upstream(index, raw_item) if event_type == ITEM_ADDED else None
            self._set_body(index, item.body if item else raw_item)
            self._ended_chars += len(encode_json(raw_item))
            self._open_items.pop(index, None)
            if item:
                self._open_items[index] = item
        elif index in self._open_items:
            self._open_items[index].apply_upstream_event(event_type, chunk)

    def adopt_template(self, template: Json) -> Iterator[Frame]:
        """Read an upstream event that is rewritten: a new item ends the text before it and is the template for ours."""
        if template.get("type") == ITEM_ADDED:
            raw_item = as_dict(template.get("item"))
            if not any(item.text_kind in _CALL_KINDS for item in self._open_items.values()):
                yield from self.end_open_items("completed")
            self._item_template = raw_item if text_kind_of(raw_item) else {}

    def map_upstream_index(self, template: Json, item: OutputItem) -> None:
        """Map the upstream's index of this event to our item, for later events about it."""
        if isinstance(index := template.get("output_index"), int):
            self._output_indexes[index] = item.index

    def forward_untranslated(self, template: Json) -> Iterator[Frame]:
        """Forward an event that has no neutral event, with our indexes."""
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
                self._set_body(self._output_indexes.setdefault(index, self._next_index), raw_item)
                self._ended_chars += len(encode_json(raw_item))
            fields["output_index"] = self._output_indexes.get(index, index)
            item = self._open_items.get(fields["output_index"])
            if item is not None and "item_id" in template:
                fields["item_id"] = item.id
                if event_type == ANNOTATION_ADDED:
                    item.apply_upstream_event(event_type, template)
        yield event_type, fields
