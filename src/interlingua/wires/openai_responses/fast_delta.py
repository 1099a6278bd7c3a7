"""The usual event, read at once: an item that has been added says more of its text, its thinking or its arguments."""

from __future__ import annotations

from typing import Literal

import msgspec

from interlingua.wires.openai_responses.event_types import BY_STEM, SUMMARY, Word

__all__ = ["WHOLE", "UsualDelta", "read_usual"]


class UsualDelta(msgspec.Struct, gc=False):
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
    def word(self) -> Word:
        return _WORDS[self.type]

    def part(self, word: Word) -> tuple[str, int]:
        """Where in the item text of this kind stands."""
        if not word.parts:
            return WHOLE
        return word.parts, self.summary_index if word is SUMMARY else self.content_index


WHOLE = ("", 0)
"""Where the arguments of a call stand: it has no parts."""
_WORDS = {f"{stem}.delta": word for stem, word in BY_STEM.items()}
_decode = msgspec.json.Decoder(UsualDelta).decode


def read_usual(data: bytes) -> UsualDelta | None:
    """The event, if it is a usual one."""
    try:
        return _decode(data)
    except (msgspec.MsgspecError, UnicodeError):
        return None
