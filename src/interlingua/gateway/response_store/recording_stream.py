"""Stream of a response that is stored: its final event is sent when the response is durable."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from interlingua.gateway.http.event_stream import SaveResponse
from interlingua.gateway.http.final_event import final_response, may_contain_final_event
from interlingua.gateway.http.response_stream import ResponseStream
from interlingua.wires.streaming.sse import SseDecoder

__all__ = ["RecordingStream"]

MAX_INLINE_BYTES = 64 * 1024
"""Size of the data up to which it is searched for the final event on the event loop."""


class RecordingStream(ResponseStream):
    """Holds the final event back until `save` has stored the response that is in it."""

    def __init__(self, request: web.Request, save: SaveResponse) -> None:
        super().__init__(request)
        self._save = save
        self._end_of_stream = b""  # the final event and what follows it
        self._response: dict[str, Any] = {}

    async def write(self, data: bytes) -> None:
        if data := await self._hold_final_event_in_thread(data):
            await super().write(data)

    def write_now(self, data: bytes) -> bool:
        data = self._hold_final_event(data)
        return super().write_now(data) if data else self.is_full

    async def end(self, data: bytes = b"") -> web.StreamResponse:
        if data := await self._hold_final_event_in_thread(data):
            await super().write(data)
        if self._end_of_stream:
            await self._save(self._response)
        return await super().end(self._end_of_stream)

    async def _hold_final_event_in_thread(self, data: bytes) -> bytes:
        """Hold the final event back, in a thread if it is long: decoding it would hold up other requests."""
        if len(data) > MAX_INLINE_BYTES:
            return await asyncio.to_thread(self._hold_final_event, data)
        return self._hold_final_event(data)

    def _hold_final_event(self, data: bytes) -> bytes:
        """Return the data before the final event, and keep the rest. Each write has whole events."""
        if self._end_of_stream:
            self._end_of_stream += data
            return b""
        if not may_contain_final_event(data):
            return data
        start = 0
        for block in SseDecoder(len(data)).blocks(data):
            if (response := final_response(block.message().data)) is not None:
                self._end_of_stream, self._response = data[start:], response
                return data[:start]
            start += len(block.raw)
        return data  # the final type stood in the text of another event
