"""Fast decoding of the most common event: a delta of an open item's text, reasoning or arguments."""

from __future__ import annotations

from typing import Literal

import msgspec

from interlingua.wires.openai_responses.event_types import KIND_BY_EVENT_PREFIX, REASONING_SUMMARY, TextKind

__all__ = ["WHOLE_ITEM", "FastDelta", "read_fast_delta"]


class FastDelta(msgspec.Struct, gc=False):
    type: Literal[
        "response.output_text.delta",
        "response.reasoning_summary_text.delta",
        "response.reasoning_text.delta",
        "response.function_call_arguments.delta",
    ]
    item_id: str
    output_index: int
    delta: str
    sequence_number: int
    content_index: int = 0
    summary_index: int = 0
    response: None = None
    error: None = None

    @property
    def text_kind(self) -> TextKind:
        return _KIND_BY_EVENT_TYPE[self.type]

    def part_key(self, text_kind: TextKind) -> tuple[str, int]:
        """Return the part of the item that the delta belongs to: the field with the parts, and the index."""
        if not text_kind.parts_field:
            return WHOLE_ITEM
        return text_kind.parts_field, self.summary_index if text_kind is REASONING_SUMMARY else self.content_index


WHOLE_ITEM = ("", 0)
"""Part key of the arguments of a call, which has no parts."""
_KIND_BY_EVENT_TYPE = {f"{prefix}.delta": kind for prefix, kind in KIND_BY_EVENT_PREFIX.items()}
_decode = msgspec.json.Decoder(FastDelta).decode


def read_fast_delta(data: bytes) -> FastDelta | None:
    """Decode the event, or return None if it is not a plain delta."""
    try:
        return _decode(data)
    except (msgspec.MsgspecError, UnicodeError):
        return None
