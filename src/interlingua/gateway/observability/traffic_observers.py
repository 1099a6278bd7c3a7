"""Observers of the traffic of an exchange, chunk by chunk: captures, and the log at level debug."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from interlingua.captures.capture_format import RouteFacts
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

    def on_upstream_request(self, url: str, headers: Mapping[str, str], body: bytes, route: RouteFacts) -> None: ...

    def on_response(self, status: int, headers: Mapping[str, str], connect_seconds: float | None) -> None:
        """The headers of an upstream's response have arrived. `connect_seconds`: None if a connection was open."""

    def on_received(self, data: bytes) -> None: ...

    def on_sent(self, data: bytes) -> None: ...

    def on_forwarded(self, received: bytes, sent: bytes) -> None:
        """Like `on_received` and `on_sent`, for data that is forwarded at once: one call for most tokens."""

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

    def on_upstream_request(
        self,
        url: str,
        headers: Mapping[str, str],  # noqa: ARG002
        body: bytes,
        route: RouteFacts,  # noqa: ARG002
    ) -> None:
        self._log_body(f"to {url}", body)

    def on_response(self, status: int, headers: Mapping[str, str], connect_seconds: float | None) -> None:
        """Do nothing: `GatewayLog.request` logs the status."""

    def on_received(self, data: bytes) -> None:
        self._log_body("from the upstream", data)

    def on_sent(self, data: bytes) -> None:
        self._log_body("to the client", data)

    def on_forwarded(self, received: bytes, sent: bytes) -> None:
        self.on_received(received)
        self.on_sent(sent)

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

    def on_upstream_request(self, url: str, headers: Mapping[str, str], body: bytes, route: RouteFacts) -> None:
        for observer in self._observers:
            observer.on_upstream_request(url, headers, body, route)

    def on_response(self, status: int, headers: Mapping[str, str], connect_seconds: float | None) -> None:
        for observer in self._observers:
            observer.on_response(status, headers, connect_seconds)

    def on_received(self, data: bytes) -> None:
        for observer in self._observers:
            observer.on_received(data)

    def on_sent(self, data: bytes) -> None:
        for observer in self._observers:
            observer.on_sent(data)

    def on_forwarded(self, received: bytes, sent: bytes) -> None:
        for observer in self._observers:
            observer.on_forwarded(received, sent)

    def on_finish(self, exchange: ExchangeRecord) -> None:
        for observer in self._observers:
            observer.on_finish(exchange)
