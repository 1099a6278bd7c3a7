"""Objects that streams and complete messages of this wire share: message, usage, stop reason, error."""

from __future__ import annotations

import re
from typing import Any

from interlingua import events as ev
from interlingua.core.options import Options
from interlingua.core.unique_ids import is_unique
from interlingua.wires.anthropic_messages.event_reader import STOP_REASONS, has_counts
from interlingua.wires.anthropic_messages.http_api import ERROR_TYPES, error_message
from interlingua.wires.base import Json
from interlingua.wires.error_types import CONTEXT_LENGTH_CODE

__all__ = ["error_object", "message_id", "message_object", "stop_fields", "usage_object", "with_own_identity"]

_STOP_REASON_NAMES: dict[ev.StopReason, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}
_ILLEGAL_ID_CHARACTER = re.compile(r"[^a-zA-Z0-9_-]")
_STATUS_BY_CODE = {  # error codes of other wires
    "invalid_prompt": 400,
    CONTEXT_LENGTH_CODE: 400,
    "invalid_api_key": 401,
    "insufficient_quota": 402,
    "model_not_found": 404,
    "rate_limit_exceeded": 429,
    "requests": 429,
    "tokens": 429,
    "timeout": 504,
    503: 529,
    "server_is_overloaded": 529,
    "slow_down": 529,
}


def message_object(reply_start: ev.Begin, usage: Json, options: Options, template: Json) -> Json:
    """Return a message without content. `template` is the upstream's own message, if it is of this wire; else {}."""
    model = options.served_as or reply_start.model or ""
    blank: Json = {"content": [], "stop_reason": None, "stop_sequence": None}
    head = {
        "id": message_id(reply_start.id or "", options, is_same_wire=bool(template)),
        "type": "message",
        "role": "assistant",
        "model": model,
    }
    return {**template, **head, **blank, "usage": {**usage, **_template_usage(template)}}


def message_id(upstream_id: str, options: Options, *, is_same_wire: bool) -> str:
    """Return the id for the client, which joins messages with the same id to one message.

    An upstream of this wire chooses the id itself, unless the id may repeat.
    """
    if is_same_wire and upstream_id and (not options.reply_id or is_unique(upstream_id)):
        return upstream_id
    legal = options.reply_id or _ILLEGAL_ID_CHARACTER.sub("_", upstream_id or "interlingua")
    return legal if legal.startswith("msg_") else f"msg_{legal}"


def with_own_identity(message: Json, options: Options) -> Json:
    """Return the upstream's own message with the id and model for the client; unchanged if it has them."""
    id = message_id(message["id"] if isinstance(message.get("id"), str) else "", options, is_same_wire=True)
    model = options.served_as or message.get("model")
    unchanged = (id, model) == (message.get("id"), message.get("model"))
    return message if unchanged else {**message, "id": id, "model": model}


def _template_usage(template: Json) -> Json:
    usage = template.get("usage")
    return usage if isinstance(usage, dict) and has_counts(usage, "input_tokens", "output_tokens") else {}


def usage_object(usage: ev.Usage) -> Json:
    """Return the token counts in this wire's form: `input_tokens` does not include cached input."""
    details: Json = {"output_tokens_details": {"thinking_tokens": usage.reasoning}} if usage.reasoning else {}
    return {
        "input_tokens": max(0, usage.input - usage.cached - usage.cache_written),
        "output_tokens": usage.output,
        "cache_creation_input_tokens": usage.cache_written,
        "cache_read_input_tokens": usage.cached,
        **details,
    }


def stop_fields(stop: ev.Stop, refused: bool) -> Json:
    """Return the fields for the stop reason.

    `refused`: another wire's refusal field was written as text. The stop reason is then `refusal`.
    """
    reason: ev.StopReason = "content_filter" if refused and stop.reason == "stop" else stop.reason or "stop"
    stop_reason = _STOP_REASON_NAMES[reason]
    if stop.native and STOP_REASONS.get(stop.native) == reason:
        stop_reason = stop.native
    elif stop.sequence is not None and reason == "stop":
        stop_reason = "stop_sequence"
    return {"stop_reason": stop_reason, "stop_sequence": stop.sequence if stop_reason == "stop_sequence" else None}


def error_object(failure: ev.Failure) -> Json:
    """Return the error object for streams and HTTP responses; the upstream's own if it is of this wire."""
    if failure.native is not None and failure.native.get("type") == "error":
        return failure.native
    message = error_message(failure.message, failure.code)
    return {"type": "error", "error": {"type": _error_type(failure), "message": message}}


def _error_type(failure: ev.Failure) -> str:
    if failure.type in ERROR_TYPES.values() and failure.type != "api_error":
        return failure.type
    return next(
        (error_type for code in (failure.code, failure.type) if (error_type := _error_type_of_code(code))), "api_error"
    )


def _error_type_of_code(code: Any) -> str | None:
    """Return the error type for an error code, error type or HTTP status of another wire; None if it is unknown."""
    status = int(code) if isinstance(code, str) and code.isdecimal() else code
    status = _STATUS_BY_CODE.get(status, status)
    if isinstance(status, int):
        return ERROR_TYPES.get(status) or ("invalid_request_error" if 400 <= status < 500 else None)
    return None
