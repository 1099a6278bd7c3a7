"""The usual event, read at once: an item that has been added says more of its text, its thinking or its arguments."""

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
        """Where in the item text of this kind stands."""
        if not text_kind.parts_field:
            return WHOLE_ITEM
        return text_kind.parts_field, self.summary_index if text_kind is REASONING_SUMMARY else self.content_index


WHOLE_ITEM = ("", 0)
"""Where the arguments of a call stand: it has no parts."""
_KIND_BY_EVENT_TYPE = {f"{stem}.delta": word for stem, word in KIND_BY_EVENT_PREFIX.items()}
_decode = msgspec.json.Decoder(FastDelta).decode


def read_fast_delta(data: bytes) -> FastDelta | None:
    """The event, if it is a usual one."""
    try:
        return _decode(data)
    except (msgspec.MsgspecError, UnicodeError):
        return None
