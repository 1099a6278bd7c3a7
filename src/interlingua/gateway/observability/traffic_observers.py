"""Observers of the traffic of an exchange, chunk by chunk: captures, and the log at level debug."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from interlingua.gateway.observability.exchange_record import ExchangeRecord
from interlingua.gateway.observability.log import GatewayLog
from interlingua.gateway.settings.redaction import Redactor

__all__ = ["LogObserver", "ObserverGroup", "TrafficObserver"]

MAX_LOGGED_BYTES = 32 * 1024
"""Bytes of a body, or of a chunk of it, that are logged. A line of the log has room for them with escaped quotes."""
MAX_SECRET_BYTES = 4 * 1024
"""Bytes behind the logged ones that are redacted with them, so that a secret is found that ends there."""


class TrafficObserver(Protocol):
    """Observer of one exchange. Its methods must not block or raise."""

    def on_request(self, headers: Mapping[str, str], body: bytes) -> None: ...

    def on_upstream_request(self, url: str, headers: Mapping[str, str], body: bytes) -> None: ...

    def on_received(self, data: bytes) -> None: ...

    def on_sent(self, data: bytes) -> None: ...

    def on_finish(self, exchange: ExchangeRecord) -> None: ...


class LogObserver:
    """Logs bodies at level debug. Headers are not logged, because they contain keys.

    Bodies are redacted, because an upstream may quote the client's key in a body.
    """

    def __init__(self, log: GatewayLog, id: str, redactor: Redactor) -> None:
        self._log = log
        self._id = id
        self._redactor = redactor

    def on_request(self, headers: Mapping[str, str], body: bytes) -> None:
        self._redactor = self._redactor.with_credentials(headers)
        self._log_body("from the client", body)

    def on_upstream_request(self, url: str, headers: Mapping[str, str], body: bytes) -> None:  # noqa: ARG002
        self._log_body(f"to {url}", body)

    def on_received(self, data: bytes) -> None:
        self._log_body("from the upstream", data)

    def on_sent(self, data: bytes) -> None:
        self._log_body("to the client", data)

    def on_finish(self, exchange: ExchangeRecord) -> None:
        """Do nothing: `GatewayLog.request` logs the end."""

    def _log_body(self, message: str, data: bytes) -> None:
        redacted = self._redactor.redact_bytes(data[: MAX_LOGGED_BYTES + MAX_SECRET_BYTES])
        more = len(data) - MAX_LOGGED_BYTES
        if more > MAX_SECRET_BYTES:
            redacted = redacted[:-MAX_SECRET_BYTES] + f"… ({more:,} more bytes)".encode()
        self._log.debug(message, id=self._id, body=redacted.decode("utf-8", "replace"))


class ObserverGroup:
    """Observer that passes each event to several observers."""

    def __init__(self, *observers: TrafficObserver) -> None:
        self._observers = observers

    def on_request(self, headers: Mapping[str, str], body: bytes) -> None:
        for observer in self._observers:
            observer.on_request(headers, body)

    def on_upstream_request(self, url: str, headers: Mapping[str, str], body: bytes) -> None:
        for observer in self._observers:
            observer.on_upstream_request(url, headers, body)

    def on_received(self, data: bytes) -> None:
        for observer in self._observers:
            observer.on_received(data)

    def on_sent(self, data: bytes) -> None:
        for observer in self._observers:
            observer.on_sent(data)

    def on_finish(self, exchange: ExchangeRecord) -> None:
        for observer in self._observers:
            observer.on_finish(exchange)
