"""Reasoning in the JSON of Chat Completions: the `reasoning_details` of messages."""

from __future__ import annotations

from interlingua.core.reply import Reasoning
from interlingua.wires.base import Json
from interlingua.wires.openai_chat.chunk_reader import NAME, REASONING_DETAILS
from interlingua.wires.reasoning_fields import EACH_ITEM, ObjectRewrite, ReasoningFields, rewrite_path

__all__ = ["REASONING_FIELDS"]


def _details(reasoning: Reasoning) -> list[Json]:
    """Return past reasoning as the upstream had sent it; only its text if it has no seal."""
    if reasoning.seal is None:
        return [{"type": "reasoning.text", "text": reasoning.text}] if reasoning.text else []
    return list(reasoning.seal.data.get(REASONING_DETAILS, ()))


def _restore_details(message: Json, location: str, restore: ObjectRewrite) -> list[Json]:
    """Restore the details of a message.

    Most messages repeat the text in `reasoning_content` or `reasoning`. Then details that only have text are dropped,
    so that the upstream receives the text once.
    """
    details = message.get(REASONING_DETAILS)
    if not isinstance(details, list):
        return [message]
    [restored] = rewrite_path(details, (EACH_ITEM,), f"{location}.{REASONING_DETAILS}", restore)
    if restored is details:
        return [message]
    if message.get("reasoning_content") or message.get("reasoning"):
        original_ids = {id(detail) for detail in details}
        restored = [
            detail for detail in restored if id(detail) in original_ids or REASONING_FIELDS.signature_of(detail)[1]
        ]
    without_details = {key: value for key, value in message.items() if key != REASONING_DETAILS}
    return [{**message, REASONING_DETAILS: restored} if restored else without_details]


REASONING_FIELDS = ReasoningFields(
    wire=NAME,
    reply_paths=(f"choices * delta {REASONING_DETAILS} *", f"choices * message {REASONING_DETAILS} *"),
    request_paths=(f"messages * {REASONING_DETAILS} *",),
    signature_fields={"reasoning.text": "signature", "reasoning.summary": "signature", "reasoning.encrypted": "data"},
    text_fields=("text", "summary"),
    write_objects=_details,
    message_path="messages *",
    restore_message=_restore_details,
)
