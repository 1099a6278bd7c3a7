"""Error responses in the format of the client's wire: HTTP status and JSON body."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from interlingua.common.jsontext.codec import encode_json
from interlingua.errors import InterlinguaError
from interlingua.gateway.observability.exchange_record import FailedAttempt
from interlingua.translation.upstream_errors import CONTEXT_LENGTH_CODE, SHOULD_RETRY_HEADER, UpstreamFailed
from interlingua.wires import get_wire
from interlingua.wires.http_api import HttpError

__all__ = [
    "SERVER_NAME",
    "Forbidden",
    "NotFound",
    "OutOfMemory",
    "ShuttingDown",
    "TooLarge",
    "TooManyRequests",
    "Unauthorized",
    "error_body",
    "failures_header",
    "native_error_body",
    "retry_after_header",
    "returned_headers",
]

MAX_LISTED_FAILURES = 10
"""Maximum number of upstreams in the header `x-interlingua-failed`."""
SERVER_NAME = "interlingua"
"""Value of the `server` response header."""


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


class OutOfMemory(InterlinguaError):
    """The requests in progress hold as much memory as `limits.memory` allows."""

    status = 503
    type = "overloaded_error"
    retry_after = 1.0

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"the requests in progress hold {limit:,} bytes of memory (limits.memory)", "retry in a second"
        )


class TooManyRequests(InterlinguaError):
    """The gateway already handles as many requests as `limits.streams` allows."""

    status = 529
    type = "overloaded_error"
    retry_after = 1.0


def error_body(wire: str, error: InterlinguaError, id: str) -> bytes:
    """Return the body of an error response. `id` is the id of the exchange in the log."""
    api = get_wire(wire).HTTP_API
    http_error = HttpError(
        status=error.status,
        type=api.error_type(error.status),
        message=f"{error} ({error.hint})" if error.hint else str(error),
        request_id=id,
        code=getattr(error, "code", ""),
        param=getattr(error, "path", None),
        is_rejection=not isinstance(error, UpstreamFailed | NotFound),
    )
    return encode_json(api.error_body(http_error))


def native_error_body(wire: str, error: InterlinguaError) -> bytes:
    """Return the upstream's own error body for a client of the same wire; b"" if there is none that the client can act
    on. Clients recover by the words of an error."""
    if not isinstance(error, UpstreamFailed) or not error.native_body:
        return b""
    text, words = error.native_body.decode("utf-8", "replace").lower(), get_wire(wire).HTTP_API.context_length_words
    is_recognised = error.code != CONTEXT_LENGTH_CODE or any(word in text for word in words)
    return error.native_body if is_recognised else b""


def returned_headers(headers: Mapping[str, str], wire: str, upstream_wire: str) -> dict[str, str]:
    """Return the headers of an upstream's response that the client gets: about retries, and on the same wire those that
    clients need. All others may tell about the operator."""
    prefix = get_wire(wire).HTTP_API.returned_header_prefix if wire == upstream_wire else ""
    named = ((name.lower(), value) for name, value in headers.items() if value.isascii() and value.isprintable())
    return {
        name: value
        for name, value in named
        if name == SHOULD_RETRY_HEADER or (prefix != "" and name.startswith(prefix))
    }


def failures_header(attempts: Iterable[FailedAttempt]) -> str:
    """Return the failed attempts as a list of RFC 8941. The messages stay in the log: they may have internal URLs."""
    counts = Counter((attempt.upstream, attempt.model, attempt.kind) for attempt in attempts)
    return ", ".join(
        f"{_quote(upstream)};model={_quote(model)};reason={_quote(kind)};attempts={count}"
        for (upstream, model, kind), count in list(counts.items())[:MAX_LISTED_FAILURES]
    )


def _quote(text: str) -> str:
    """Return a string of RFC 8941: printable ASCII in quotes. Other characters become question marks."""
    printable = "".join(char if " " <= char <= "~" else "?" for char in text)
    return '"' + printable.replace("\\", "\\\\").replace('"', '\\"') + '"'


def retry_after_header(error: InterlinguaError) -> dict[str, str]:
    """Return the `retry-after` header of an error response, if the error has a time to wait."""
    retry_after = getattr(error, "retry_after", None)
    return {} if retry_after is None else {"retry-after": str(max(1, round(retry_after)))}
