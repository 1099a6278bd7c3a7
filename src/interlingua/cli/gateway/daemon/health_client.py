"""HTTP client for the health and metrics endpoints of a gateway."""

from __future__ import annotations

import http.client
import re
from collections import Counter
from typing import NamedTuple
from urllib.parse import urlsplit

from interlingua.errors import UsageError
from interlingua.gateway.processes.systemd_notify import client_host

__all__ = ["RequestCounts", "readiness", "request_counts"]

TIMEOUT_SECONDS = 3.0
_SAMPLE = re.compile(r"^interlingua_(requests_total|streams_open)(?:\{.*\})? (\d+)", re.M)


class RequestCounts(NamedTuple):
    requests: int
    """Number of finished requests."""
    open: int


def _connect(address: str) -> http.client.HTTPConnection:
    """Return a connection for this address. Raises `ValueError` if it is not an http or https URL."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(address)
    connection_class = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    return connection_class(client_host(parts.hostname), parts.port, timeout=TIMEOUT_SECONDS)


def readiness(address: str) -> str:
    """Return the answer of /readyz (`ready` or `stopping`), or the reason why there is none."""
    try:
        status, body = _get(address, "/readyz")
    except ValueError:
        raise UsageError(f"{address!r} is not an http or https URL", "for example: http://127.0.0.1:8484") from None
    except (OSError, http.client.HTTPException) as error:
        return getattr(error, "strerror", None) or type(error).__name__
    return body.strip()[:200] if status in (200, 503) else f"status {status}"


def request_counts(address: str) -> RequestCounts | None:
    """Return the totals of the gateway; None if /metrics is not available, for example because it requires a key."""
    try:
        status, page = _get(address, "/metrics")
    except (OSError, http.client.HTTPException):
        return None
    if status != 200:
        return None
    totals = Counter[str]()
    for name, number in _SAMPLE.findall(page):
        totals[name] += int(number)
    return RequestCounts(totals["requests_total"], totals["streams_open"])


def _get(address: str, path: str) -> tuple[int, str]:
    connection = _connect(address)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read(1 << 20).decode("utf-8", "replace")
    finally:
        connection.close()
