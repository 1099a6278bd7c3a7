"""HTTP client for the health and status endpoints of a gateway."""

from __future__ import annotations

import http.client
from urllib.parse import urlsplit

import msgspec

from interlingua.errors import UsageError
from interlingua.gateway.observability.gateway_status import GatewayStatus
from interlingua.gateway.processes.systemd_notify import client_host

__all__ = ["fetch_status", "readiness"]

TIMEOUT_SECONDS = 3.0


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
        return _error_text(error)
    return body.strip()[:200] if status in (200, 503) else f"status {status}"


def fetch_status(address: str, key: str = "") -> GatewayStatus | str:
    """Return the status of the gateway, or the reason why there is none."""
    try:
        status, body = _get(address, "/status", {"authorization": f"Bearer {key}"} if key else {})
        if status == 200:
            return msgspec.json.decode(body, type=GatewayStatus)
    except (OSError, http.client.HTTPException) as error:
        return _error_text(error)
    except ValueError:
        return "the gateway has another version"
    if status in (401, 403):
        return "the gateway refuses this key" if key else "the gateway requires a key, see --key-env"
    return f"status {status}"


def _error_text(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {TIMEOUT_SECONDS:g} s"
    if isinstance(error, http.client.HTTPException):
        return "the answer is not HTTP"
    return getattr(error, "strerror", None) or type(error).__name__


def _get(address: str, path: str, headers: dict[str, str] | None = None) -> tuple[int, str]:
    connection = _connect(address)
    try:
        connection.request("GET", path, headers=headers or {})
        response = connection.getresponse()
        return response.status, response.read(1 << 20).decode("utf-8", "replace")
    finally:
        connection.close()
