"""What does a gateway say of itself when it is asked?"""

from __future__ import annotations

import http.client
import re
from typing import NamedTuple
from urllib.parse import urlsplit

__all__ = ["Counts", "asked_for_readiness", "counts", "reached_at"]

SECONDS = 3.0
_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_SAMPLE = re.compile(r'^interlingua_(requests_total|streams_open)(?:\{(?:worker="(\d+)")?.*\})? (\d+)', re.M)


class Counts(NamedTuple):
    requests: int
    """That are over."""
    open: int


def reached_at(address: str) -> tuple[str, int]:
    """Where a client on this machine finds who listens there."""
    parts = urlsplit(address)
    host = parts.hostname or "127.0.0.1"
    return _ANYWHERE.get(host, host), parts.port or 80


def asked_for_readiness(address: str) -> str:
    """What it says: ready, stopping; or why it does not answer."""
    try:
        status, body = _get(address, "/readyz")
    except (OSError, http.client.HTTPException) as error:
        return getattr(error, "strerror", None) or type(error).__name__
    return body.strip()[:200] if status in (200, 503) else f"status {status}"


def counts(address: str, workers: int) -> Counts | None:
    """How much it has done, all workers together; None if it does not tell, as where clients need a key."""
    requests: dict[str, int] = {}
    opened: dict[str, int] = {}
    try:
        for _ in range(1 if workers == 1 else 16 * workers):  # the system chooses who answers
            status, page = _get(address, "/metrics")
            if status != 200:
                return None
            found = [(name, worker, int(number)) for name, worker, number in _SAMPLE.findall(page)]
            worker = next((worker for _, worker, _ in found), "")
            requests[worker] = sum(number for name, _, number in found if name == "requests_total")
            opened[worker] = sum(number for name, _, number in found if name == "streams_open")
            if len(opened) == workers:
                return Counts(sum(requests.values()), sum(opened.values()))
    except (OSError, http.client.HTTPException):
        pass
    return None


def _get(address: str, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(*reached_at(address), timeout=SECONDS)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read(1 << 20).decode("utf-8", "replace")
    finally:
        connection.close()
