"""Statuses of HTTP, and what the wires call them: the word for a status, and the status that a word means."""

from __future__ import annotations

from interlingua.upstreams.profile import MESSAGES

__all__ = ["ANTHROPIC_ERROR_TYPES", "CONTEXT_LENGTH_CODE", "error_type", "error_types", "status_of"]

CONTEXT_LENGTH_CODE = "context_length_exceeded"
"""The code of a conversation that is too long for the model: agents act on it."""
ANTHROPIC_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
OPENAI_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "insufficient_quota",
    403: "permission_error",
    404: "invalid_request_error",
    413: "invalid_request_error",
    429: "rate_limit_error",
    504: "timeout_error",
}
_STATUS_BY_ERROR_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "insufficient_quota": 429,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
    "server_is_overloaded": 503,
    "slow_down": 503,
    CONTEXT_LENGTH_CODE: 400,
}
"""The words of all wires for what went wrong, as statuses."""


def error_type(wire: str, status: int) -> str:
    """The word that clients of this wire know for a status."""
    if wire == MESSAGES:
        return ANTHROPIC_ERROR_TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")
    return OPENAI_ERROR_TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")


def error_types(wire: str) -> list[str]:
    """All such words."""
    return sorted({error_type(wire, status) for status in (*ANTHROPIC_ERROR_TYPES, *OPENAI_ERROR_TYPES, 500)})


def status_of(type: str, code: str | int | None) -> int | None:
    """The status that an error of this type and code would have had, if they say one."""
    if isinstance(code, int) and 400 <= code <= 599:
        return code
    return _STATUS_BY_ERROR_TYPE.get(type) or _STATUS_BY_ERROR_TYPE.get(str(code))
