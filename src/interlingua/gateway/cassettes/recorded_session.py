"""HTTP session that answers with a recorded reply, without a socket: each read is exactly one piece of the reply."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, cast

import aiohttp
from aiohttp.base_protocol import BaseProtocol
from multidict import CIMultiDict

from interlingua.cassettes.playback import Playback, TimedPiece
from interlingua.cassettes.recorded_exchange import RecordedReply

__all__ = ["recorded_session"]

READ_BUFFER_BYTES = 64 * 1024


def recorded_session(reply: RecordedReply, playback: Playback) -> aiohttp.ClientSession:
    """Return a session whose requests all get this reply. It has what the relay uses of a session."""
    return cast(aiohttp.ClientSession, _RecordedSession(reply, playback))


class _RecordedSession:
    def __init__(self, reply: RecordedReply, playback: Playback) -> None:
        self._reply = reply
        self._playback = playback

    async def request(self, *_: object, **__: object) -> _RecordedResponse:
        return _RecordedResponse(self._reply, self._playback.pieces(self._reply))


class _RecordedResponse:
    """Response in the place of an `aiohttp.ClientResponse`."""

    connection = None  # so that every read goes through `content`

    def __init__(self, reply: RecordedReply, pieces: Iterator[TimedPiece]) -> None:
        self.status = reply.status
        self.headers = CIMultiDict({"content-type": reply.content_type})
        self.content = _RecordedContent(pieces)
        self._cache: dict[str, Any] = {}  # cleared by `release_metadata`

    def close(self) -> None:
        self.content.stop()

    release = close


class _RecordedContent(aiohttp.StreamReader):
    """Body that returns the pieces of a recorded reply, each at its time."""

    def __init__(self, pieces: Iterator[TimedPiece]) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(BaseProtocol(loop), READ_BUFFER_BYTES, loop=loop)
        self._pieces = pieces
        self._loop_time = loop.time
        self._started = loop.time()

    async def readany(self) -> bytes:
        piece = next(self._pieces, None)
        if piece is None:
            self.stop()
            return b""
        await asyncio.sleep(max(self._started + piece.seconds - self._loop_time(), 0))
        return piece.data

    def stop(self) -> None:
        self._pieces = iter(())
        if not self.is_eof():
            self.feed_eof()
