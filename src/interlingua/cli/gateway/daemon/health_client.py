"""HTTP client for the health and metrics endpoints of a gateway."""

from __future__ import annotations

import http.client
import re
from typing import NamedTuple
from urllib.parse import urlsplit

from interlingua.errors import UsageError
from interlingua.gateway.processes.systemd_notify import client_host

__all__ = ["RequestCounts", "readiness", "request_counts"]

TIMEOUT_SECONDS = 3.0
_SAMPLE = re.compile(r'^interlingua_(requests_total|streams_open)(?:\{(?:worker="(\d+)")?.*\})? (\d+)', re.M)


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


def request_counts(address: str, workers: int) -> RequestCounts | None:
    """Return the totals of all workers; None if /metrics is not available, for example because it requires a key."""
    requests: dict[str, int] = {}
    open_streams: dict[str, int] = {}
    try:
        for _ in range(
            1 if workers == 1 else 16 * workers
        ):  # the kernel chooses the worker: poll until each has answered
            status, page = _get(address, "/metrics")
            if status != 200:
                return None
            samples = [(name, worker, int(number)) for name, worker, number in _SAMPLE.findall(page)]
            worker = next((worker for _, worker, _ in samples), "")
            requests[worker] = sum(number for name, _, number in samples if name == "requests_total")
            open_streams[worker] = sum(number for name, _, number in samples if name == "streams_open")
            if len(open_streams) == workers:
                return RequestCounts(sum(requests.values()), sum(open_streams.values()))
    except (OSError, http.client.HTTPException):
        pass
    return None


def _get(address: str, path: str) -> tuple[int, str]:
    connection = _connect(address)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read(1 << 20).decode("utf-8", "replace")
    finally:
        connection.close()
