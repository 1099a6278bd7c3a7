"""Token counts as evidence: does the server count more tokens than the reply shows?

A provider that shows nothing but its API still counts what the model wrote. If the count fits the reply that was
delivered, the model wrote just that; if it fits the expected reply, the rest was lost after the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

import msgspec

from interlingua.core.reply import Call, Part, Reasoning, Reply, Text
from interlingua.dialects.native_text import render
from interlingua.errors import RenderError
from interlingua.parsing.dialect import Dialect
from interlingua.verification.reply_reading import ClientReply

__all__ = ["TokenRatio", "measure_token_ratio", "native_size"]

MIN_REPLIES = 8
"""Right replies from which a ratio is measured."""
MAX_DEVIATION = 0.3
MIN_SHARE_WITHIN = 0.75
"""Share of the replies that have to be within the deviation. Otherwise the counts include something invisible."""
MIN_DIFFERENCE_TOKENS = 6
AVERAGE_TOKEN = "abcd"
CALL_FRAME_BYTES = 40
"""Bytes of markers around a call, for models whose notation is unknown."""


class TokenRatio(msgspec.Struct, frozen=True):
    """Tokens for each byte of native text, measured with right replies of the same run."""

    tokens_per_byte: float

    def fits_expected(self, tokens: int, delivered_bytes: int, expected_bytes: int) -> bool | None:
        """Return whether a count fits the expected reply much better than the delivered one; None if it fits both."""
        delivered, expected = (self.tokens_per_byte * size for size in (delivered_bytes, expected_bytes))
        if abs(expected - delivered) < max(MIN_DIFFERENCE_TOKENS, 0.15 * max(expected, delivered)):
            return None
        return tokens > delivered and 2 * abs(tokens - expected) < tokens - delivered


def measure_token_ratio(replies: Iterable[tuple[int, int]]) -> TokenRatio | None:
    """Return the ratio of these replies, each with its tokens and native bytes; None if they give none."""
    ratios = [tokens / size for tokens, size in replies if tokens > 0 and size > 0]
    if len(ratios) < MIN_REPLIES:
        return None
    middle = median(ratios)
    within = sum(abs(ratio - middle) <= MAX_DEVIATION * middle for ratio in ratios)
    return TokenRatio(middle) if within >= MIN_SHARE_WITHIN * len(ratios) else None


def native_size(reply: ClientReply | Reply, dialect: Dialect) -> int:
    """Return the bytes that the model writes for a reply. A special token counts as much as an average token."""
    parts = _parts_of(reply)
    try:
        text = render(Reply(parts=[*parts], stop_reason="stop"), dialect)
    except RenderError:
        return sum(_part_size(part) for part in parts)
    for token in dialect.tokens:
        text = text.replace(token, AVERAGE_TOKEN)
    return len(text.encode("utf-8", "replace"))


def _parts_of(reply: ClientReply | Reply) -> Sequence[Part]:
    if isinstance(reply, Reply):
        return reply.parts
    texts: list[Part] = [Reasoning(reply.reasoning)] if reply.reasoning else []
    texts += [Text(reply.text)] if reply.text else []
    return [*texts, *(Call(call.id, call.name, call.arguments) for call in reply.calls)]


def _part_size(part: Part) -> int:
    if isinstance(part, Call):
        return len(part.name) + len(part.arguments.encode("utf-8", "replace")) + CALL_FRAME_BYTES
    return len(part.text.encode("utf-8", "replace"))
