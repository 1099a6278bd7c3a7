"""Reasoning in the JSON of Chat Completions: the `reasoning_details` of messages, and signatures of calls."""

from __future__ import annotations

from operator import is_not

from interlingua.core.reasoning_signatures import CALL_SIGNATURE, call_seal
from interlingua.core.reply import Reasoning
from interlingua.wires.base import Json
from interlingua.wires.openai_chat.chunk_reader import NAME, REASONING_DETAILS
from interlingua.wires.reasoning_fields import EACH_ITEM, ObjectRewrite, ReasoningFields, rewrite_path

__all__ = ["REASONING_FIELDS"]

_CALLS = "tool_calls * extra_content google"


def _details(reasoning: Reasoning) -> list[Json]:
    """Return past reasoning as the upstream had sent it; only its text if it has no seal."""
    if reasoning.seal is None:
        return [{"type": "reasoning.text", "text": reasoning.text}] if reasoning.text else []
    return list(reasoning.seal.data.get(REASONING_DETAILS, ()))


def _restore_message(message: Json, location: str, restore: ObjectRewrite) -> list[Json]:
    """Restore the details of a message, and the signatures of its calls."""
    calls = message.get("tool_calls")
    if isinstance(calls, list) and any(isinstance(call, dict) and call_seal(call) for call in calls):
        restored = [
            _restore_call(call, f"{location}.tool_calls[{n}]", restore) if isinstance(call, dict) else call
            for n, call in enumerate(calls)
        ]
        message = {**message, "tool_calls": restored} if any(map(is_not, restored, calls)) else message
    return _restore_details(message, location, restore)


def _restore_call(call: Json, location: str, restore: ObjectRewrite) -> Json:
    """Restore the signature of a call. A signature of another upstream is dropped, with the object that has it."""
    if call_seal(call) is None:
        return call
    signed = call["extra_content"]["google"]
    [restored, *_] = [*restore(signed, f"{location}.extra_content.google"), {}]
    if restored is signed:
        return call
    if CALL_SIGNATURE in restored:
        return {**call, "extra_content": {**call["extra_content"], "google": restored}}
    return {key: value for key, value in call.items() if key != "extra_content"}


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
    reply_paths=tuple(
        f"choices * {message} {path}" for message in ("delta", "message") for path in (f"{REASONING_DETAILS} *", _CALLS)
    ),
    request_paths=(f"messages * {REASONING_DETAILS} *", f"messages * {_CALLS}"),
    signature_fields={
        "reasoning.text": "signature",
        "reasoning.summary": "signature",
        "reasoning.encrypted": "data",
        "": CALL_SIGNATURE,
    },
    text_fields=("text", "summary"),
    write_objects=_details,
    message_path="messages *",
    restore_message=_restore_message,
)
