"""Protocol between the workers and the inspector's process: frames of MessagePack over a Unix socket.

A worker sends what it sees and does as little as possible for it: items of exchanges are collected, sent together, and
decoded only when a page asks for the exchange. They are not redacted yet. The socket is in a folder that only its owner
can enter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from interlingua.captures.capture_format import RouteFacts
from interlingua.events import Finding

__all__ = [
    "BEGIN",
    "END",
    "HELLO",
    "ITEMS",
    "AnsweredItem",
    "AskedItem",
    "BeginFrame",
    "EndFrame",
    "ForwardedItem",
    "Frame",
    "FrameReader",
    "HelloFrame",
    "Item",
    "ItemsFrame",
    "ReceivedItem",
    "RequestItem",
    "SentItem",
    "decode_items",
    "encode_frame",
    "encode_frame_parts",
]

LENGTH_BYTES = 4
MAX_FRAME_BYTES = 512 * 1024 * 1024
"""Larger frames are a fault: the connection is closed."""

HELLO, BEGIN, ITEMS, END = range(4)
"""Tags of frames."""
REQUEST, ASKED, ANSWERED, RECEIVED, SENT, FORWARDED = range(6)
"""Tags of items. An item is sent as a tuple of its tag, its time and its other fields: faster to make than a struct."""


class HelloFrame(Struct, frozen=True, array_like=True, tag=HELLO):
    """First frame of a connection, and of each change of the settings."""

    secrets: list[str]
    """Secrets of the settings, which are redacted before anything is shown or stored."""


class BeginFrame(Struct, frozen=True, array_like=True, tag=BEGIN):
    """A new exchange."""

    number: int
    """Number of the exchange in this connection."""
    id: str
    time: str
    """Start, in ISO format."""
    started: float
    """Start, of the worker's monotonic clock. Items have their times of this clock."""
    path: str
    wire: str


class ItemsFrame(Struct, frozen=True, array_like=True, tag=ITEMS):
    """Events of some exchanges since the last frame."""

    exchanges: list[tuple[int, msgspec.Raw]]
    """Number of each exchange, and its items."""


class EndFrame(Struct, frozen=True, array_like=True, tag=END):
    """The end of an exchange."""

    number: int
    at: float
    summary: dict[str, Any]
    findings: list[Finding]
    truncated: bool


Frame: TypeAlias = HelloFrame | BeginFrame | ItemsFrame | EndFrame


class _Item(Struct, frozen=True, array_like=True):
    at: float


class RequestItem(_Item, frozen=True, tag=REQUEST):
    headers: dict[str, str]
    body: bytes


class AskedItem(_Item, frozen=True, tag=ASKED):
    url: str
    headers: dict[str, str]
    body: bytes
    route: RouteFacts


class AnsweredItem(_Item, frozen=True, tag=ANSWERED):
    status: int
    headers: dict[str, str]
    connect_seconds: float | None


class ReceivedItem(_Item, frozen=True, tag=RECEIVED):
    data: bytes


class SentItem(_Item, frozen=True, tag=SENT):
    data: bytes


class ForwardedItem(_Item, frozen=True, tag=FORWARDED):
    received: bytes
    sent: bytes


Item: TypeAlias = RequestItem | AskedItem | AnsweredItem | ReceivedItem | SentItem | ForwardedItem

_encode = msgspec.msgpack.Encoder().encode
_decode_frame = msgspec.msgpack.Decoder(Frame).decode
_decode_items = msgspec.msgpack.Decoder(list[Item]).decode


def encode_frame(frame: Any) -> bytes:
    """Return the bytes of a frame: a struct of this module, or a tuple of its tag and its fields."""
    return b"".join(encode_frame_parts(frame))


def encode_frame_parts(frame: Any) -> tuple[bytes, bytes]:
    """Return the length and the body of a frame, which may be large: they are sent without another copy."""
    body = _encode(frame)
    return len(body).to_bytes(LENGTH_BYTES, "big"), body


def decode_items(data: bytes | msgspec.Raw) -> list[Item]:
    return _decode_items(data)


class FrameReader:
    """Divides the bytes of a connection into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the frames that are complete.

        Raises:
            ValueError: The bytes are no frames.
        """
        self._buffer += data
        position = 0
        while len(self._buffer) - position >= LENGTH_BYTES:
            size = int.from_bytes(self._buffer[position : position + LENGTH_BYTES], "big")
            if size > MAX_FRAME_BYTES:
                raise ValueError(f"a frame of {size:,} bytes")
            end = position + LENGTH_BYTES + size
            if len(self._buffer) < end:
                break
            yield _decode_frame(bytes(self._buffer[position + LENGTH_BYTES : end]))
            position = end
        del self._buffer[:position]
