"""Tap of the traffic of a worker: sends what it sees of each exchange to the inspector's process.

A stream never waits for the inspector: what happens is added to a list, and sent a few times per second. If the
inspector's process does not read, or is gone, data is dropped and the exchange is marked as truncated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from time import monotonic
from typing import Any

import msgspec

from interlingua.captures.capture_format import RouteFacts
from interlingua.gateway.inspector.feed_protocol import (
    ANSWERED,
    ASKED,
    BEGIN,
    END,
    FORWARDED,
    HELLO,
    ITEMS,
    RECEIVED,
    REQUEST,
    SENT,
    encode_frame_parts,
)
from interlingua.gateway.observability.exchange_record import ExchangeRecord, summary

__all__ = ["ExchangeTap", "InspectorFeed"]

FLUSH_SECONDS = 0.2
"""Time in which items are collected before they are sent."""
MAX_UNSENT_BYTES = 32 * 1024 * 1024
"""Data that waits for the inspector's process to read it."""
RECONNECT_SECONDS = 1.0
START_INTERVAL_SECONDS = 0.05
"""Time between two attempts to connect to a process that is starting."""
START_TIMEOUT_SECONDS = 15.0


class InspectorFeed:
    """Connection of one worker to the inspector's process. It is opened again if it is lost.

    Args:
        path: Path of the Unix socket.
        secrets: The secrets of the settings.
    """

    def __init__(self, path: str, secrets: Iterable[str]) -> None:
        self._path = path
        self._secrets = sorted(secrets)
        self._transport: asyncio.Transport | None = None
        self._connector: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._connected = asyncio.Event()
        self._changed: list[ExchangeTap] = []
        self._count = 0

    async def start(self) -> None:
        """Connect, and stay connected in the background. Wait for the inspector's process, which starts meanwhile."""
        self._connector = asyncio.ensure_future(self._stay_connected())
        with suppress(TimeoutError):  # without it, the gateway works all the same
            async with asyncio.timeout(START_TIMEOUT_SECONDS):
                await self._connected.wait()

    def set_secrets(self, secrets: Iterable[str]) -> None:
        """Set the secrets of new settings."""
        self._secrets = sorted({*self._secrets, *secrets})
        self._send((HELLO, self._secrets))

    def observe(self, exchange: ExchangeRecord) -> ExchangeTap | None:
        """Return the tap of a new exchange; None if the inspector's process cannot be reached."""
        if self._transport is None:
            return None
        self._count += 1
        tap = ExchangeTap(self, self._transport, self._count)
        time = datetime.now(UTC).isoformat()
        self._send((BEGIN, self._count, exchange.id, time, monotonic(), _encodable(exchange.path), exchange.wire))
        return tap

    async def close(self) -> None:
        """Send what is collected, and close the connection."""
        if self._connector is not None:
            self._connector.cancel()
            with suppress(asyncio.CancelledError):
                await self._connector
        self.flush()
        if self._transport is not None:
            self._transport.close()

    # ── for taps ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def schedule(self, tap: ExchangeTap) -> None:
        """Send the items of this tap with the next frame."""
        self._changed.append(tap)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_SECONDS, self.flush)

    def end(self, tap: ExchangeTap, at: float, fields: Mapping[str, Any], findings: list[Any]) -> None:
        self.flush()
        if tap.transport is self._transport:
            self._send((END, tap.number, at, _encodable(fields), _encodable(findings), tap.is_truncated))

    def flush(self) -> None:
        """Send the items of all taps in one frame."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        changed, self._changed = self._changed, []
        exchanges = []
        is_full = self._is_full
        for tap in changed:
            items = tap.take()
            if tap.transport is not self._transport or is_full:
                tap.is_truncated = True
            elif not tap.is_truncated:
                exchanges.append((tap.number, items))
        if exchanges:
            self._send((ITEMS, exchanges))

    @property
    def _is_full(self) -> bool:
        return self._transport is not None and self._transport.get_write_buffer_size() > MAX_UNSENT_BYTES

    def _send(self, frame: tuple[Any, ...]) -> None:
        if self._transport is not None:
            self._transport.writelines(encode_frame_parts(frame))

    # ── connection ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _stay_connected(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            lost = asyncio.Event()
            with suppress(OSError):
                transport, _ = await loop.create_unix_connection(partial(_FeedConnection, lost), self._path)
                transport.set_write_buffer_limits(high=MAX_UNSENT_BYTES)
                self._transport = transport
                self._connected.set()
                self._send((HELLO, self._secrets))
                try:
                    await lost.wait()
                finally:
                    self._transport = None if lost.is_set() else self._transport
            await asyncio.sleep(RECONNECT_SECONDS if self._connected.is_set() else START_INTERVAL_SECONDS)


class _FeedConnection(asyncio.Protocol):
    """End of the connection to the inspector's process, which sends nothing."""

    def __init__(self, lost: asyncio.Event) -> None:
        self._lost = lost

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._lost.set()


class ExchangeTap:
    """Observer of one exchange. Its methods are called for each token: they only add to a list."""

    __slots__ = ("_feed", "_items", "is_truncated", "number", "transport")

    def __init__(self, feed: InspectorFeed, transport: asyncio.Transport, number: int) -> None:
        self._feed = feed
        self._items: list[tuple[Any, ...]] = []
        self.transport = transport
        self.number = number
        self.is_truncated = False

    def on_request(self, headers: Mapping[str, str], body: bytes) -> None:
        self._add((REQUEST, monotonic(), _encodable(dict(headers)), body))

    def on_upstream_request(self, url: str, headers: Mapping[str, str], body: bytes, route: RouteFacts) -> None:
        self._add((ASKED, monotonic(), _encodable(url), _encodable(dict(headers)), body, route))

    def on_response(self, status: int, headers: Mapping[str, str], connect_seconds: float | None) -> None:
        self._add((ANSWERED, monotonic(), status, _encodable(dict(headers)), connect_seconds))

    def on_received(self, data: bytes) -> None:
        self._add((RECEIVED, monotonic(), data))

    def on_sent(self, data: bytes) -> None:
        self._add((SENT, monotonic(), data))

    def on_forwarded(self, received: bytes, sent: bytes) -> None:
        items = self._items
        if not items:
            self._feed.schedule(self)
        items.append((FORWARDED, monotonic(), received, sent))

    def on_finish(self, exchange: ExchangeRecord) -> None:
        self._feed.end(self, monotonic(), summary(exchange), exchange.findings)

    def take(self) -> list[tuple[Any, ...]]:
        """Return the items since the last call."""
        items, self._items = self._items, []
        return items

    def _add(self, item: tuple[Any, ...]) -> None:
        if not self._items:
            self._feed.schedule(self)
        self._items.append(item)


def _encodable(value: Any) -> Any:
    """Return the value without halves of surrogate pairs, which headers that are not UTF-8 contain."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {_encodable(key): _encodable(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_encodable(inner) for inner in value]
    if isinstance(value, msgspec.Struct):
        return type(value)(**{name: _encodable(getattr(value, name)) for name in value.__struct_fields__})
    return value
