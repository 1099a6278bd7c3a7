"""What an upstream says when it does not answer: its status and body as one error, for whoever asked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from html import unescape
from typing import Any

from interlingua.common.jsontext.codec import read_json, read_values, write_json
from interlingua.errors import UpstreamError
from interlingua.events import Failure
from interlingua.wires.error_types import CONTEXT, status_of

__all__ = ["CONTEXT", "LONGEST", "UpstreamFailed", "failed", "refused", "wait_for"]

LONGEST = 64 * 1024
"""How much of an error's body is read."""
SHOWN = 2000
AGAIN = frozenset({429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
"""Statuses after which the same request may succeed. Of 4xx it is the client who knows better."""
_TOO_LONG = re.compile(
    r"context[ _](length|window)|maximum (context|prompt|model) length|prompt is too long|too many (input )?tokens"
    r"|input (is )?too long|exceeds? the (available |model'?s? )?(context|maximum (input|prompt))|reduce the length"
    r"|token limit exceeded|exceeded model token limit|prompt exceeds max|(input|prompt) token count\b.{0,40} exceeds"
    r"|`inputs` tokens \+ `max_new_tokens`",
    re.IGNORECASE,
)
_TAG = re.compile(r"<[^<>]{0,2000}>")
_UNREAD = re.compile(r"<(script|style)\b", re.IGNORECASE)
"""Begins what no browser shows."""
_ENDS = {kind: re.compile(f"</{kind}>", re.IGNORECASE) for kind in ("script", "style")}


class UpstreamFailed(UpstreamError):
    """An upstream did not answer, or not in a way that anybody understands."""

    def __init__(
        self,
        message: str,
        status: int = 502,
        *,
        answered: int = 0,
        retry_after: float | None = None,
        code: str = "",
        again: bool = True,
        elsewhere: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        """For the client."""
        self.answered = answered
        """The upstream's own; 0: it gave none."""
        self.retry_after = retry_after
        """In seconds, if the upstream says how long to wait."""
        self.code = code
        self.again = again
        """Whether it may be asked again."""
        self.elsewhere = again if elsewhere is None else elsewhere
        """Whether another one may be asked in its place."""


def refused(status: int, headers: Mapping[str, str], body: bytes, now: float) -> UpstreamFailed:
    """The upstream answered with a status that is no success. `now` is the time of day, for dates in the headers."""
    text, answered = body[:LONGEST].decode("utf-8", "replace"), status
    value = _object(text)
    said, code = _said(value) if value is not None else (_plain(text), "")
    if _TOO_LONG.search(said) and status in (400, 413, 422, 500):
        code, status = CONTEXT, 400
    if status < 400:  # a redirect, which is not followed: it would take the key to another host
        said, status = said or f"it redirects ({status}); set its real address", 502
    message = said or f"status {status} and nothing else"
    wait = wait_for(headers, now)
    return UpstreamFailed(message, status, answered=answered, retry_after=wait, code=code, again=status in AGAIN)


def failed(failure: Failure) -> UpstreamFailed:
    """The upstream's stream, or its reply, began with an error."""
    status = status_of(failure.type, failure.code) or 502
    word = failure.code if isinstance(failure.code, str) else ""
    if _TOO_LONG.search(failure.message):
        status, word = 400, CONTEXT
    return UpstreamFailed(failure.message, status, code=word, again=status in AGAIN)


def wait_for(headers: Mapping[str, str], now: float) -> float | None:
    """How long an upstream asks to be left alone, in seconds."""
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    said = headers.get("retry-after")
    if said is None or (seconds := _number(said)) is not None:
        return None if said is None else seconds
    then = _date(said)
    if then is None:
        return None
    told = _date(headers.get("date", ""))  # by its own clock, if it tells the time: ours may be wrong, or its
    return max(0.0, then - (now if told is None else told))


def _date(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else -1.0
    except ValueError:
        return None
    return value if 0 <= value < 1e9 else None


def _object(text: str) -> dict[str, Any] | None:
    """An error's JSON. Google's stands in a list."""
    listed = read_json(text, list[dict[str, Any]]) if text.lstrip().startswith("[") else None
    return listed[0] if listed else read_values(text)


def _said(body: dict[str, Any]) -> tuple[str, str]:
    """The message in an error's JSON, and its code. Every server has it somewhere else."""
    error = body.get("error", body)
    if not isinstance(error, dict):
        return _short(_text(error)), ""
    message = next((error[key] for key in ("message", "detail", "msg", "error") if error.get(key)), "")
    raw = error.get("metadata")
    if isinstance(raw, dict) and raw.get("raw"):  # OpenRouter: what its own upstream has said
        message = f"{_text(message)}: {_text(raw['raw'])}"
    code = error.get("code") if isinstance(error.get("code"), str) else error.get("type")
    return _short(_text(message)), code if isinstance(code, str) else ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else write_json(value)


def _plain(text: str) -> str:
    """What a person would read of a page."""
    return _short(unescape(_TAG.sub(" ", _without_scripts(text))) if "<" in text else text)


def _without_scripts(text: str) -> str:
    """In one pass: what is not closed stays, for the next of its kind is not closed either."""
    kept, done = [], 0
    open_ended: set[str] = set()
    for begins in _UNREAD.finditer(text):
        kind = begins[1].lower()
        if begins.start() < done or kind in open_ended:
            continue
        ends = _ENDS[kind].search(text, begins.end())
        if ends is None:
            open_ended.add(kind)
            continue
        kept.append(text[done : begins.start()])
        done = ends.end()
    return " ".join([*kept, text[done:]])


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
