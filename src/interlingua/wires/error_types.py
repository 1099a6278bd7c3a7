"""Error types that both wires of OpenAI share, and the HTTP statuses of all error types."""

from __future__ import annotations

__all__ = ["CONTEXT_LENGTH_CODE", "OPENAI_ERROR_TYPES", "OPENAI_SERVER_ERROR_TYPE", "status_of"]

CONTEXT_LENGTH_CODE = "context_length_exceeded"
"""Error code for a conversation that is too long for the model. Agents react to it, for example by compacting."""
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
OPENAI_SERVER_ERROR_TYPE = "server_error"
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
"""HTTP status for the error types and codes of all wires."""


def status_of(type: str, code: str | int | None) -> int | None:
    """Return the HTTP status for an error's type and code; None if neither is known."""
    if isinstance(code, int) and 400 <= code <= 599:
        return code
    return _STATUS_BY_ERROR_TYPE.get(type) or _STATUS_BY_ERROR_TYPE.get(str(code))
