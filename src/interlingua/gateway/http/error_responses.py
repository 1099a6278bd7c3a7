"""Error responses in the format of the client's wire: HTTP status and JSON body."""

from __future__ import annotations

from typing import Any

from interlingua.common.jsontext.codec import encode_json
from interlingua.errors import BadRequest, InterlinguaError
from interlingua.translation.upstream_errors import UpstreamFailed
from interlingua.upstreams.profile import MESSAGES
from interlingua.wires import get_wire
from interlingua.wires.error_types import CONTEXT_LENGTH_CODE

__all__ = [
    "SERVER_NAME",
    "Forbidden",
    "NotFound",
    "ShuttingDown",
    "TooLarge",
    "TooManyRequests",
    "Unauthorized",
    "error_body",
]

SERVER_NAME = "interlingua"
"""Value of the `server` response header."""
OPENAI_CODES = {401: "invalid_api_key", 404: "model_not_found", 413: "request_too_large", 429: "rate_limit_exceeded"}


class Unauthorized(InterlinguaError):
    status = 401
    type = "authentication_error"


class Forbidden(InterlinguaError):
    status = 403
    type = "permission_error"


class NotFound(InterlinguaError):
    """The path or method does not exist."""

    status = 404
    type = "not_found_error"


class TooLarge(InterlinguaError):
    status = 413
    type = "request_too_large"


class ShuttingDown(InterlinguaError):
    status = 503
    type = "overloaded_error"
    retry_after = 1.0

    def __init__(self) -> None:
        super().__init__("the gateway is stopping", "retry in a second")


class TooManyRequests(InterlinguaError):
    """The gateway already handles as many requests as `limits.streams` allows."""

    status = 529
    type = "overloaded_error"
    retry_after = 1.0


def error_body(wire: str, error: InterlinguaError, id: str) -> bytes:
    """Return the body of an error response. `id` is the id of the exchange in the log."""
    status = error.status
    message = f"{error} ({error.hint})" if error.hint else str(error)
    code = getattr(error, "code", "")
    type_ = get_wire(wire).HTTP_API.error_type(status)
    if wire == MESSAGES:
        if code == CONTEXT_LENGTH_CODE and "prompt is too long" not in message:
            message = f"prompt is too long: {message}"  # Claude Code looks for this text
        inner: dict[str, Any] = {"type": type_, "message": message}
        if isinstance(error, BadRequest) and code:
            inner["details"] = {"error_code": code}
        return encode_json({"type": "error", "error": inner, "request_id": id})
    if not code and not isinstance(error, UpstreamFailed | NotFound):
        code = OPENAI_CODES.get(status, "")
    param = error.path if isinstance(error, BadRequest) and error.path else None
    inner = {"message": message, "type": type_, "param": param, "code": code or None}
    return encode_json({"error": inner})
