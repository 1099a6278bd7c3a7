"""Errors of upstreams: HTTP status and body of an error response as one exception for the client."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from html import unescape
from typing import Any

from interlingua.common.jsontext.codec import encode_json, read_full_object, read_json, write_json
from interlingua.errors import UpstreamError
from interlingua.events import Failure
from interlingua.wires.error_types import CONTEXT_LENGTH_CODE, status_of

__all__ = [
    "CONTEXT_LENGTH_CODE",
    "MAX_ERROR_BODY_BYTES",
    "SHOULD_RETRY_HEADER",
    "UpstreamFailed",
    "error_from_failure",
    "error_from_response",
    "page_text",
    "retry_delay",
    "shorten_failure",
]

MAX_ERROR_BODY_BYTES = 64 * 1024
"""Maximum number of bytes read from an error body. A larger error event is shortened."""
MAX_ERROR_MESSAGE_CHARS = 2000
SHOULD_RETRY_HEADER = "x-should-retry"
"""Header with which an upstream says whether a retry makes sense. The official SDKs obey it."""
RETRYABLE_STATUSES = frozenset({429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
"""Statuses after which the same request may succeed. For other 4xx statuses the client has to change the request."""
_CONTEXT_TOO_LONG = re.compile(
    r"context[ _](length|window)|maximum (context|prompt|model) length|prompt is too long|too many (input )?tokens"
    r"|input (is )?too long|exceeds? the (available |model'?s? )?(context|maximum (input|prompt))|reduce the length"
    r"|token limit exceeded|exceeded model token limit|prompt exceeds max|(input|prompt) token count\b.{0,40} exceeds"
    r"|`inputs` tokens \+ `max_new_tokens`|max_tokens must be at least 1, got -|range of input length should be"
    r"|(configured|max) context size",
    re.IGNORECASE,
)
_TAG = re.compile(r"<[^<>]{0,2000}>")
_HIDDEN_ELEMENT = re.compile(r"<(script|style)\b", re.IGNORECASE)
"""Opening tag of an element whose content browsers do not show."""
_CLOSING_TAGS = {kind: re.compile(f"</{kind}>", re.IGNORECASE) for kind in ("script", "style")}


class UpstreamFailed(UpstreamError):
    """An upstream returned an error, no response, or an invalid response.

    Args:
        message: What failed.
        status: HTTP status for the client.
        upstream_status: HTTP status that the upstream returned; 0 if it returned none.
        retry_after: Seconds to wait before a retry, if the upstream sent them.
        code: Error code for the client; "" if there is none.
        retryable: Whether the same upstream may be tried again.
        failover: Whether another upstream may be tried. None means the same as `retryable`.
        unreachable: Whether no connection could be opened, so that the request was not sent.
        native_body: The upstream's own error body, if it has the form of its API; b"" if not.
        body: The body of the upstream's error response, whatever its form.
        headers: The headers of the upstream's response.
    """

    def __init__(
        self,
        message: str,
        status: int = 502,
        *,
        upstream_status: int = 0,
        retry_after: float | None = None,
        code: str = "",
        retryable: bool = True,
        failover: bool | None = None,
        unreachable: bool = False,
        native_body: bytes = b"",
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        """HTTP status for the client."""
        self.upstream_status = upstream_status
        """HTTP status that the upstream returned; 0 if it returned none."""
        self.retry_after = retry_after
        """Seconds to wait before a retry, if the upstream sent them."""
        self.code = code
        self.retryable = retryable
        """True if the same upstream may be tried again."""
        self.failover = retryable if failover is None else failover
        """True if another upstream may be tried instead."""
        self.unreachable = unreachable
        """True if no connection could be opened. No request of a client can be the reason."""
        self.native_body = native_body
        """The upstream's own error body, for clients of the same wire; b"" if it is not in the form of its API."""
        self.body = body
        """The body of the upstream's error response; b"" if there was none."""
        self.headers: Mapping[str, str] = headers or {}
        """Headers of the upstream's response."""

    def redact(self, redact_text: Callable[[str], str]) -> None:
        """Redact the message and the code, in which an upstream may quote the key that it got."""
        self.args, self.code = (redact_text(str(self)),), redact_text(self.code)


def error_from_response(status: int, headers: Mapping[str, str], body: bytes, now: float) -> UpstreamFailed:
    """Return the error for a response without a success status. `now` is the Unix time, for dates in the headers."""
    text, upstream_status = body[:MAX_ERROR_BODY_BYTES].decode("utf-8-sig", "replace"), status
    value = _error_object(text)
    error_text, code = _message_and_code(value) if value is not None else (page_text(text), "")
    if _CONTEXT_TOO_LONG.search(error_text) and status in (400, 413, 422, 500):
        code, status = CONTEXT_LENGTH_CODE, 400
    if status < 400:  # redirects are not followed: they would send the API key to another host
        error_text = f"the upstream redirects ({status}), which is not followed; set `url` to the final address"
        status = 502
    elif status > 599:  # not an HTTP status, and clients do not know what it means
        error_text, status = error_text or f"the upstream returned the invalid status {status}", 502
    message = error_text or f"the upstream returned status {status} without a message"
    is_temporary = status in RETRYABLE_STATUSES
    return UpstreamFailed(
        message,
        status,
        upstream_status=upstream_status,
        retry_after=retry_delay(headers, now),
        code=code,
        retryable=is_temporary and headers.get(SHOULD_RETRY_HEADER) != "false",
        failover=is_temporary,
        native_body=body if _has_usual_form(value) and status == upstream_status else b"",
        body=body,
        headers=headers,
    )


def error_from_failure(failure: Failure) -> UpstreamFailed:
    """Return the error for a stream or reply that contains an error before any content."""
    status = status_of(failure.type, failure.code) or 502
    code = failure.code if isinstance(failure.code, str) else ""
    message = _truncate(failure.message)
    if _CONTEXT_TOO_LONG.search(message):
        status, code = 400, CONTEXT_LENGTH_CODE
    native_body = encode_json(failure.native) if _has_usual_form(failure.native) else b""
    retryable = status in RETRYABLE_STATUSES
    return UpstreamFailed(message, status, code=code, retryable=retryable, native_body=native_body)


def shorten_failure(failure: Failure) -> Failure:
    """Return a very large error of a stream with a short message, and without the upstream's other fields."""
    code = _truncate(failure.code) if isinstance(failure.code, str) else failure.code
    return Failure(_truncate(failure.message), _truncate(failure.type), code)


def retry_delay(headers: Mapping[str, str], now: float) -> float | None:
    """Return the delay in seconds that the upstream requests with `retry-after`, or None if it requests none."""
    if (milliseconds := _parse_number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    retry_after = headers.get("retry-after")
    if retry_after is None or (seconds := _parse_number(retry_after)) is not None:
        return None if retry_after is None else seconds
    retry_at = _parse_date(retry_after)
    if retry_at is None:
        return None
    # Relative to the upstream's own clock if it sends the time, because its clock and ours may differ.
    server_time = _parse_date(headers.get("date", ""))
    return max(0.0, retry_at - (now if server_time is None else server_time))


def _parse_date(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None


def _parse_number(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else -1.0
    except ValueError:
        return None
    return value if 0 <= value < 1e9 else None


def _error_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object of an error body, or None. Google wraps it in a list."""
    objects = read_json(text, list[dict[str, Any]]) if text.lstrip().startswith("[") else None
    return objects[0] if objects else read_full_object(text)


def _message_and_code(body: dict[str, Any]) -> tuple[str, str]:
    """Return message and code of an error object. Servers use different fields for them."""
    error = body.get("error", body)
    if not isinstance(error, dict):
        return _truncate(_as_text(error)), ""
    message = next((error[key] for key in ("message", "detail", "msg", "error") if error.get(key)), "")
    metadata = error.get("metadata")
    if isinstance(metadata, dict) and metadata.get("raw"):  # OpenRouter: the error of its own upstream
        message = f"{_as_text(message)}: {_as_text(metadata['raw'])}"
    code = error.get("code") if isinstance(error.get("code"), str) else error.get("type")
    return _truncate(_as_text(message)), code if isinstance(code, str) else ""


def _has_usual_form(body: dict[str, Any] | None) -> bool:
    """Return whether clients of any API can read this error body, and it is not too long for them."""
    error = body.get("error") if body is not None else None
    if not isinstance(error, dict) or not isinstance(error.get("type"), str):
        return False
    message = error.get("message")
    return isinstance(message, str) and 0 < len(message) <= MAX_ERROR_MESSAGE_CHARS


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else write_json(value)


def page_text(text: str) -> str:
    """Return the visible text of an HTML page, or the text itself if it is not HTML."""
    return _truncate(unescape(_TAG.sub(" ", _without_scripts(text))) if "<" in text else text)


def _without_scripts(text: str) -> str:
    """Remove script and style elements in one pass. Unclosed elements stay.

    After one unclosed tag, further tags of its kind are skipped: they have no closing tag either.
    """
    parts, position = [], 0
    unclosed: set[str] = set()
    for opening in _HIDDEN_ELEMENT.finditer(text):
        tag = opening[1].lower()
        if opening.start() < position or tag in unclosed:
            continue
        closing = _CLOSING_TAGS[tag].search(text, opening.end())
        if closing is None:
            unclosed.add(tag)
            continue
        parts.append(text[position : opening.start()])
        position = closing.end()
    return " ".join([*parts, text[position:]])


def _truncate(text: str) -> str:
    text = " ".join(text[: 10 * MAX_ERROR_MESSAGE_CHARS].split())
    return text if len(text) <= MAX_ERROR_MESSAGE_CHARS else f"{text[:MAX_ERROR_MESSAGE_CHARS]}…"
