"""Reasoning in the JSON of Responses: reasoning items."""

from __future__ import annotations

from interlingua.core.reply import Reasoning
from interlingua.wires.base import Json
from interlingua.wires.openai_responses.event_types import NAME
from interlingua.wires.reasoning_fields import ReasoningFields

__all__ = ["REASONING_FIELDS", "reasoning_items"]


def reasoning_items(reasoning: Reasoning) -> list[Json]:
    """Return past reasoning as the upstream had sent it; only its text if it has no seal."""
    text = reasoning.text
    if reasoning.seal is None:
        content = [{"type": "reasoning_text", "text": text}]
        return [{"type": "reasoning", "summary": [], "content": content}] if text else []
    data = reasoning.seal.data
    summary = [{"type": "summary_text", "text": text}] if text and "content" not in data else []
    return [{"type": "reasoning", "summary": summary, **data}]


REASONING_FIELDS = ReasoningFields(
    wire=NAME,
    reply_paths=("item", "response output *", "output *"),
    request_paths=("input *",),
    signature_fields={"reasoning": "encrypted_content"},
    text_fields=("content", "summary"),
    write_objects=reasoning_items,
)
