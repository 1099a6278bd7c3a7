"""HTTP statuses of the error types and codes of all wires."""

from __future__ import annotations

__all__ = ["CONTEXT_LENGTH_CODE", "status_of"]

CONTEXT_LENGTH_CODE = "context_length_exceeded"
"""Error code for a conversation that is too long for the model. Agents react to it, for example by compacting."""
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
"""HTTP status for each error type and code. The reader of a wire with other names converts them to these."""


def status_of(type: str, code: str | int | None) -> int | None:
    """Return the HTTP status for an error's type and code; None if neither is known."""
    if isinstance(code, int) and 400 <= code <= 599:
        return code
    return _STATUS_BY_ERROR_TYPE.get(type) or _STATUS_BY_ERROR_TYPE.get(str(code))
