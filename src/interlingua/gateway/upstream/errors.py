"""What an upstream says when it does not answer: its status and body as one error, for whoever asked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from html import unescape
from typing import Any

from interlingua.common.jsontext.codec import read_full_object, read_json, write_json
from interlingua.errors import UpstreamError
from interlingua.events import Failure
from interlingua.wires.error_types import CONTEXT_LENGTH_CODE, status_of

__all__ = [
    "CONTEXT_LENGTH_CODE",
    "MAX_ERROR_BODY_BYTES",
    "UpstreamFailed",
    "error_from_failure",
    "error_from_response",
    "retry_delay",
]

MAX_ERROR_BODY_BYTES = 64 * 1024
"""How much of an error's body is read."""
MAX_ERROR_MESSAGE_CHARS = 2000
RETRYABLE_STATUSES = frozenset({429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
"""Statuses after which the same request may succeed. Of 4xx it is the client who knows better."""
_CONTEXT_TOO_LONG = re.compile(
    r"context[ _](length|window)|maximum (context|prompt|model) length|prompt is too long|too many (input )?tokens"
    r"|input (is )?too long|exceeds? the (available |model'?s? )?(context|maximum (input|prompt))|reduce the length"
    r"|token limit exceeded|exceeded model token limit|prompt exceeds max|(input|prompt) token count\b.{0,40} exceeds"
    r"|`inputs` tokens \+ `max_new_tokens`",
    re.IGNORECASE,
)
_TAG = re.compile(r"<[^<>]{0,2000}>")
_HIDDEN_ELEMENT = re.compile(r"<(script|style)\b", re.IGNORECASE)
"""Begins what no browser shows."""
_CLOSING_TAGS = {kind: re.compile(f"</{kind}>", re.IGNORECASE) for kind in ("script", "style")}


class UpstreamFailed(UpstreamError):
    """An upstream did not answer, or not in a way that anybody understands."""

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
    ) -> None:
        super().__init__(message)
        self.status = status
        """For the client."""
        self.upstream_status = upstream_status
        """The upstream's own; 0: it gave none."""
        self.retry_after = retry_after
        """In seconds, if the upstream says how long to wait."""
        self.code = code
        self.retryable = retryable
        """Whether it may be asked again."""
        self.failover = retryable if failover is None else failover
        """Whether another one may be asked in its place."""


def error_from_response(status: int, headers: Mapping[str, str], body: bytes, now: float) -> UpstreamFailed:
    """The upstream answered with a status that is no success. `now` is the time of day, for dates in the headers."""
    text, upstream_status = body[:MAX_ERROR_BODY_BYTES].decode("utf-8", "replace"), status
    value = _error_object(text)
    error_text, code = _message_and_code(value) if value is not None else (_page_text(text), "")
    if _CONTEXT_TOO_LONG.search(error_text) and status in (400, 413, 422, 500):
        code, status = CONTEXT_LENGTH_CODE, 400
    if status < 400:  # a redirect, which is not followed: it would take the key to another host
        error_text, status = error_text or f"it redirects ({status}); set its real address", 502
    message = error_text or f"status {status} and nothing else"
    retry_after = retry_delay(headers, now)
    return UpstreamFailed(
        message,
        status,
        upstream_status=upstream_status,
        retry_after=retry_after,
        code=code,
        retryable=status in RETRYABLE_STATUSES,
    )


def error_from_failure(failure: Failure) -> UpstreamFailed:
    """The upstream's stream, or its reply, began with an error."""
    status = status_of(failure.type, failure.code) or 502
    code = failure.code if isinstance(failure.code, str) else ""
    if _CONTEXT_TOO_LONG.search(failure.message):
        status, code = 400, CONTEXT_LENGTH_CODE
    return UpstreamFailed(failure.message, status, code=code, retryable=status in RETRYABLE_STATUSES)


def retry_delay(headers: Mapping[str, str], now: float) -> float | None:
    """How long an upstream asks to be left alone, in seconds."""
    if (milliseconds := _parse_number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    retry_after = headers.get("retry-after")
    if retry_after is None or (seconds := _parse_number(retry_after)) is not None:
        return None if retry_after is None else seconds
    retry_at = _parse_date(retry_after)
    if retry_at is None:
        return None
    server_time = _parse_date(
        headers.get("date", "")
    )  # by its own clock, if it tells the time: ours may be wrong, or its
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
    """An error's JSON. Google's stands in a list."""
    objects = read_json(text, list[dict[str, Any]]) if text.lstrip().startswith("[") else None
    return objects[0] if objects else read_full_object(text)


def _message_and_code(body: dict[str, Any]) -> tuple[str, str]:
    """The message in an error's JSON, and its code. Every server has it somewhere else."""
    error = body.get("error", body)
    if not isinstance(error, dict):
        return _truncate(_as_text(error)), ""
    message = next((error[key] for key in ("message", "detail", "msg", "error") if error.get(key)), "")
    metadata = error.get("metadata")
    if isinstance(metadata, dict) and metadata.get("raw"):  # OpenRouter: what its own upstream has said
        message = f"{_as_text(message)}: {_as_text(metadata['raw'])}"
    code = error.get("code") if isinstance(error.get("code"), str) else error.get("type")
    return _truncate(_as_text(message)), code if isinstance(code, str) else ""


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else write_json(value)


def _page_text(text: str) -> str:
    """What a person would read of a page."""
    return _truncate(unescape(_TAG.sub(" ", _without_scripts(text))) if "<" in text else text)


def _without_scripts(text: str) -> str:
    """In one pass: what is not closed stays, for the next of its kind is not closed either."""
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
    text = " ".join(text.split())
    return text if len(text) <= MAX_ERROR_MESSAGE_CHARS else f"{text[:MAX_ERROR_MESSAGE_CHARS]}…"
