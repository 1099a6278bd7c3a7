"""Reasoning in the JSON of Messages: thinking blocks."""

from __future__ import annotations

from interlingua.core.reply import Reasoning
from interlingua.wires.anthropic_messages.content_blocks import NAME
from interlingua.wires.base import Json
from interlingua.wires.reasoning_fields import ReasoningFields

__all__ = ["REASONING_FIELDS", "thinking_blocks"]


def thinking_blocks(thinking: Reasoning) -> list[Json]:
    """Return past thinking as the upstream had sent it; only its text if it has no seal."""
    if thinking.seal is None:
        return [{"type": "thinking", "thinking": thinking.text, "signature": ""}] if thinking.text else []
    data = thinking.seal.data
    if "redacted" in data:
        return [{"type": "redacted_thinking", "data": data["redacted"]}]
    return [{"type": "thinking", "thinking": thinking.text, "signature": data.get("signature", "")}]


REASONING_FIELDS = ReasoningFields(
    wire=NAME,
    reply_paths=("content_block", "delta", "content *"),
    request_paths=("messages * content *",),
    signature_fields={"thinking": "signature", "signature_delta": "signature", "redacted_thinking": "data"},
    text_fields=("thinking",),
    write_objects=thinking_blocks,
)
