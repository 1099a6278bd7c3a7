"""Response object without its items: fields, usage, error and ids."""

from __future__ import annotations

from hashlib import blake2s
from typing import Any

from interlingua import events as ev
from interlingua.core.options import Options
from interlingua.wires.base import Json
from interlingua.wires.openai_responses.request_echo import decode_echo, default_fields

__all__ = ["derive_id", "error_object", "response_object", "usage_object"]

DEFAULT_ERROR_CODE = "server_error"
_CODE_ALIASES = {
    "context_length_exceeded": ("context_length_exceeded", "model_context_window_exceeded", "request_too_large", "413"),
    "insufficient_quota": ("insufficient_quota", "billing_error", "402"),
    "rate_limit_exceeded": ("rate_limit_exceeded", "rate_limit_error", "429"),
    "server_is_overloaded": ("server_is_overloaded", "slow_down", "overloaded_error", "503", "529"),
    "invalid_prompt": ("invalid_prompt", "invalid_request_error", "400"),
    "usage_not_included": ("usage_not_included",),
}
_CODE_BY_ALIAS = {alias: code for code, aliases in _CODE_ALIASES.items() for alias in aliases}
_CONTEXT_LENGTH_PHRASES = (
    "context length",
    "context window",
    "prompt is too long",
    "maximum context",
    "context_length_exceeded",
)
"""Phrases in messages of upstreams that use one code for every bad request."""


def _failure_code(failure: ev.Failure) -> str:
    """Return the error code that clients act on: Codex compacts, waits, gives up or retries.

    The message takes precedence, because it may be more specific than the upstream's own code.
    """
    if any(phrase in failure.message.lower() for phrase in _CONTEXT_LENGTH_PHRASES):
        return "context_length_exceeded"
    return _CODE_BY_ALIAS.get(str(failure.code)) or _CODE_BY_ALIAS.get(failure.type) or DEFAULT_ERROR_CODE


def error_object(failure: ev.Failure) -> Json:
    """Return the `error` object of a failed response."""
    native = {key: value for key, value in (failure.native or {}).items() if value is not None}
    native.pop("sequence_number", None)
    return {"code": _failure_code(failure), "message": failure.message, **native}


def usage_object(usage: ev.Usage) -> Json:
    if "input_tokens" in usage.native and "total_tokens" in usage.native:
        return usage.native
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_written},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }


def response_object(fields: Json, options: Options, status: str, **overrides: Any) -> Json:
    """Return a response object with all fields of the API.

    Args:
        fields: fields of this response, such as its id. They take precedence over those that repeat the request.
        options: options of the translation.
        status: its status.
        overrides: output, usage, error and the like.
    """
    clock = options.clock if status == "completed" else None
    return {
        "id": "",
        "object": "response",
        "created_at": options.created,
        "status": status,
        "completed_at": int(clock()) if clock is not None else None,
        "model": options.served_as,
        "error": None,
        "incomplete_details": None,
        **default_fields(),
        **decode_echo(options.echo),
        **fields,
        "output": [],
        "usage": None,
        **overrides,
    }


def derive_id(prefix: str, seed: str) -> str:
    """Return a deterministic id, derived from the seed."""
    return f"{prefix}_{blake2s(seed.encode(errors='replace'), digest_size=12).hexdigest()}"
