"""How many tokens is an image? That goes by its size in pixels, which stands in the first bytes of its file."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from math import ceil

__all__ = ["UNKNOWN", "image_tokens", "pixels"]

UNKNOWN = 1500
"""Of an image whose size nobody knows: it is elsewhere, or of another kind."""
HEAD = 64
"""So many bytes have the size of every kind of image but one."""
JPEG_HEAD = 96 * 1024
"""In a JPEG it stands behind all that a camera has to say."""
_TILED = re.compile(r"(?:.*/)?(?:gpt-|chatgpt|o\d)")
"""OpenAI's models count tiles of 512 pixels; all others count the area, in patches of 27 or 28 pixels."""
_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
_BARE = {0x01, *range(0xD0, 0xDA)}
"""What begins a JPEG's frame, with its size in it; what has no length."""


def image_tokens(data: str, model: str = "", detail: str = "") -> int:
    """`data` is base64."""
    tiled = _TILED.match(model.lower()) is not None
    if tiled and detail == "low":
        return 85
    size = pixels(data)
    if size is None or 0 in size:
        return UNKNOWN
    return _tiles(*size) if tiled else _area(*size)


def _area(width: int, height: int) -> int:
    """As Claude and Qwen have it: a large image is made smaller first."""
    scale = min(1.0, 1568 / max(width, height))
    return max(1, min(1600, round(width * scale * height * scale / 750)))


def _tiles(width: int, height: int) -> int:
    scale = min(1.0, 2048 / max(width, height))
    scale *= min(1.0, 768 / (min(width, height) * scale))
    return 85 + 170 * ceil(max(1, width * scale) / 512) * ceil(max(1, height * scale) / 512)


def pixels(data: str) -> tuple[int, int] | None:
    """Width and height of a PNG, GIF, WebP or JPEG in base64; None of anything else."""
    head = _decoded(data, HEAD)
    if head.startswith(b"\x89PNG\r\n\x1a\n") and len(head) >= 24:
        return _big(head[16:20]), _big(head[20:24])
    if head.startswith((b"GIF87a", b"GIF89a")) and len(head) >= 10:
        return _little(head[6:8]), _little(head[8:10])
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP" and len(head) >= 30:
        return _webp(head)
    return _jpeg(_decoded(data, JPEG_HEAD)) if head.startswith(b"\xff\xd8") else None


def _webp(head: bytes) -> tuple[int, int] | None:
    kind = head[12:16]
    if kind == b"VP8X":
        return _little(head[24:27]) + 1, _little(head[27:30]) + 1
    if kind == b"VP8L":
        bits = _little(head[21:25])
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        return _little(head[26:28]) & 0x3FFF, _little(head[28:30]) & 0x3FFF
    return None


def _jpeg(head: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 <= len(head) and head[at] == 0xFF:
        marker = head[at + 1]
        if marker in _FRAMES:
            return _big(head[at + 7 : at + 9]), _big(head[at + 5 : at + 7])
        if marker == 0xFF or marker in _BARE:
            at += 1 if marker == 0xFF else 2
        else:
            at += 2 + max(2, _big(head[at + 2 : at + 4]))
    return None


def _decoded(data: str, most: int) -> bytes:
    """The first bytes."""
    try:
        return b64decode(data[: most // 3 * 4])
    except (binascii.Error, ValueError):
        return b""


def _big(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")
