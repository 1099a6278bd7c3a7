"""One item of a response as clients get it: the frames that begin it, tell its text and end it.

A frame is the type of an event and its fields, but for the sequence number. Those of deltas are written at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import TypeAlias

from interlingua.common.coerce import as_dict, as_list
from interlingua.common.jsontext.codec import encode_json
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
    TextKind,
)

__all__ = ["Frame", "OutputItem"]

Frame: TypeAlias = tuple[str, Json] | bytes
"""The bytes are a frame that is written but for its number."""


class _Stage(Enum):
    NO_PART_OPEN = "no part is open"
    PART_OPEN = "a part is open"
    TEXT_DONE = "its text is told, the part is still open"


_PART_OPEN = _Stage.PART_OPEN  # it is asked for with every token, and an Enum is slow to answer


class OutputItem:
    """An item in the making. `body` is what is known of it; it is whole once it has ended."""

    def __init__(self, text_kind: TextKind, index: int, body: Json) -> None:
        self.text_kind = text_kind
        self.index = index
        self.body = body
        self.custom_text = CustomToolText() if text_kind is CUSTOM_TOOL_INPUT else None
        self._parts: list[Json] = []
        self._deltas: list[str] = []
        self._annotations: list[object] = []  # of the last part, too
        self._delta_template: tuple[tuple[TextKind, int], bytes, bytes] | None = None  # of its deltas, by part
        self._stage = _Stage.NO_PART_OPEN if text_kind.parts_field else _Stage.PART_OPEN

    @property
    def id(self) -> str:
        return str(self.body.get("id"))

    @property
    def text(self) -> str:
        """What has been said of its last part."""
        return "".join(self._deltas)

    def start_frame(self) -> Frame:
        return ITEM_ADDED, {"output_index": self.index, "item": {**self.body, **self._status_field("in_progress")}}

    def text_frames(self, text: str, logprobs: object = None) -> Iterator[Frame]:
        text_kind = self.text_kind
        if self._stage is _Stage.NO_PART_OPEN:
            self._stage = _Stage.PART_OPEN
            yield f"{text_kind.part_event_prefix}.added", {**self._location_fields(), "part": self._part_object("")}
        if logprobs:
            self._deltas.append(text)
            yield (
                f"{text_kind.event_prefix}.delta",
                {**self._location_fields(), "delta": text, **self._logprobs_field(logprobs)},
            )
        else:
            yield self.delta_frame(text)

    @property
    def has_open_part(self) -> bool:
        """Whether a part is open, so that `say_more` may follow."""
        return self._stage is _PART_OPEN

    def delta_frame(self, text: str) -> bytes:
        """Nearly all frames are such. What stands before the text is the same for all of a part, and is kept."""
        self._deltas.append(text)
        part_key = (self.text_kind, len(self._parts))
        if self._delta_template is None or self._delta_template[0] != part_key:
            event_type = f"{self.text_kind.event_prefix}.delta"
            head = encode_json({"type": event_type, **self._location_fields()})[:-1]
            tail = b',"logprobs":[]' if self.text_kind is OUTPUT_TEXT else b""
            self._delta_template = part_key, b'event: %b\ndata: %b,"delta":' % (event_type.encode(), head), tail
        _, prefix, suffix = self._delta_template
        return prefix + encode_json(text) + suffix

    def end_frames(self, status: str) -> Iterator[Frame]:
        text_kind, text = self.text_kind, self.text
        if self._stage is _Stage.PART_OPEN:
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
        """The body is to hold all that was said."""
        text_kind = self.text_kind
        if not text_kind.parts_field:
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
        """Thinking has none: upstreams refuse it when it comes back with one."""
        return {} if self.text_kind.item_type == "reasoning" else {"status": status}

    # ── an item that the upstream itself tells ────────────────────────────────────────────────────────────────────

    @classmethod
    def from_upstream(cls, index: int, raw_item: Json) -> OutputItem | None:
        """An item that the upstream has begun; None if it is of a type that we never write."""
        text_kind = KIND_BY_ITEM_TYPE.get(str(raw_item.get("type")))
        if text_kind is None:
            return None
        item = cls(text_kind, index, dict(raw_item))
        item.custom_text = CustomToolText.resume_in_text() if text_kind is CUSTOM_TOOL_INPUT else None
        item._parts = list(as_list(raw_item.get(text_kind.parts_field)))
        return item

    def apply_upstream_event(self, event_type: str, chunk: Json) -> None:
        """What the upstream says of it, so that we can go on from there."""
        event_prefix, _, event_suffix = event_type.rpartition(".")
        if event_suffix == "delta" and event_prefix in KIND_BY_EVENT_PREFIX:
            self.text_kind, self._stage = KIND_BY_EVENT_PREFIX[event_prefix], _PART_OPEN
            self._deltas.append(str(chunk.get("delta")))
            return
        part = as_dict(chunk.get("part"))
        if event_type.endswith("part.added"):
            self.text_kind = KIND_BY_PART_TYPE.get(str(part.get("type")), self.text_kind)
            self._stage, self._deltas, self._annotations = _Stage.PART_OPEN, [], []
        elif event_type.endswith("part.done"):
            self._parts.append(part)
            self._stage, self._deltas, self._annotations = _Stage.NO_PART_OPEN, [], []
        elif event_type == ANNOTATION_ADDED:
            self._annotations.append(chunk.get("annotation"))
        elif event_prefix in KIND_BY_EVENT_PREFIX:
            self._stage = _Stage.TEXT_DONE
