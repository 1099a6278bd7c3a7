"""Receiver of what the workers send: frames of their connections, into the ring of exchanges."""

from __future__ import annotations

import asyncio

import msgspec

from interlingua.gateway.inspector.exchange_ring import ExchangeRing, RecordedExchange
from interlingua.gateway.inspector.feed_protocol import (
    BeginFrame,
    EndFrame,
    Frame,
    FrameReader,
    HelloFrame,
    ItemsFrame,
)
from interlingua.gateway.settings.redaction import Redactor

__all__ = ["FeedReceiver"]


class FeedReceiver(asyncio.Protocol):
    """Connection of one worker."""

    def __init__(self, ring: ExchangeRing) -> None:
        self._ring = ring
        self._frames = FrameReader()
        self._redactor = Redactor()
        self._exchanges: dict[int, RecordedExchange] = {}
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._frames.feed(data):
                self._handle(frame)
        except (ValueError, msgspec.MsgspecError):  # a worker of another version
            if self._transport is not None:
                self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        for exchange in self._exchanges.values():
            self._ring.abandon(exchange)
        self._exchanges.clear()

    def _handle(self, frame: Frame) -> None:
        match frame:
            case HelloFrame():
                self._redactor = Redactor(frame.secrets)
            case BeginFrame():
                self._exchanges[frame.number] = self._ring.begin(frame, self._redactor)
            case ItemsFrame():
                for number, items in frame.exchanges:
                    if (exchange := self._exchanges.get(number)) is not None:
                        self._ring.add(exchange, bytes(items))
            case EndFrame():
                if (exchange := self._exchanges.pop(frame.number, None)) is not None:
                    self._ring.finish(exchange, frame)
