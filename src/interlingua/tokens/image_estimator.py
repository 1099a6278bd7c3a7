"""Token estimate for an image, by its size in pixels, which is read from the header of the file."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from math import ceil

__all__ = ["UNKNOWN_IMAGE_TOKENS", "image_size", "image_tokens"]

UNKNOWN_IMAGE_TOKENS = 1500
"""Estimate for an image of unknown size: it is only referenced, or the format is not supported."""
HEADER_BYTES = 64
"""Prefix that contains the image size in all formats except JPEG."""
JPEG_HEADER_BYTES = 96 * 1024
"""Prefix for JPEG, where the size comes after the metadata of the camera."""
_TILED_MODEL = re.compile(r"(?:.*/)?(?:gpt-|chatgpt|o\d)")
"""OpenAI's models count tiles of 512 pixels; all others count the area, in patches of 27 or 28 pixels."""
_JPEG_FRAME_MARKERS = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
_JPEG_BARE_MARKERS = {0x01, *range(0xD0, 0xDA)}
"""JPEG markers: start of a frame, which contains the image size; markers without a length field."""


def image_tokens(data: str, model: str = "", detail: str = "") -> int:
    """Estimate the tokens of an image.

    Args:
        data: Image file in base64.
        model: Model id. OpenAI models count tiles, other models count the area.
        detail: OpenAI's `detail` setting.
    """
    is_tiled = _TILED_MODEL.match(model.lower()) is not None
    if is_tiled and detail == "low":
        return 85
    size = image_size(data)
    if size is None or 0 in size:
        return UNKNOWN_IMAGE_TOKENS
    return _tile_tokens(*size) if is_tiled else _area_tokens(*size)


def _area_tokens(width: int, height: int) -> int:
    """Count by area, as Claude and Qwen do. Large images are scaled down first."""
    scale = min(1.0, 1568 / max(width, height))
    return max(1, min(1600, round(width * scale * height * scale / 750)))


def _tile_tokens(width: int, height: int) -> int:
    scale = min(1.0, 2048 / max(width, height))
    scale *= min(1.0, 768 / (min(width, height) * scale))
    return 85 + 170 * ceil(max(1, width * scale) / 512) * ceil(max(1, height * scale) / 512)


def image_size(data: str) -> tuple[int, int] | None:
    """Return width and height of a PNG, GIF, WebP or JPEG image in base64, or None for other data."""
    header = _decode_head(data, HEADER_BYTES)
    if header.startswith(b"\x89PNG\r\n\x1a\n") and len(header) >= 24:
        return _big_endian(header[16:20]), _big_endian(header[20:24])
    if header.startswith((b"GIF87a", b"GIF89a")) and len(header) >= 10:
        return _little_endian(header[6:8]), _little_endian(header[8:10])
    if header.startswith(b"RIFF") and header[8:12] == b"WEBP" and len(header) >= 30:
        return _webp_size(header)
    return _jpeg_size(_decode_head(data, JPEG_HEADER_BYTES)) if header.startswith(b"\xff\xd8") else None


def _webp_size(header: bytes) -> tuple[int, int] | None:
    chunk_type = header[12:16]
    if chunk_type == b"VP8X":
        return _little_endian(header[24:27]) + 1, _little_endian(header[27:30]) + 1
    if chunk_type == b"VP8L":
        bits = _little_endian(header[21:25])
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if chunk_type == b"VP8 ":
        return _little_endian(header[26:28]) & 0x3FFF, _little_endian(header[28:30]) & 0x3FFF
    return None


def _jpeg_size(header: bytes) -> tuple[int, int] | None:
    offset = 2
    while offset + 9 <= len(header) and header[offset] == 0xFF:
        marker = header[offset + 1]
        if marker in _JPEG_FRAME_MARKERS:
            return _big_endian(header[offset + 7 : offset + 9]), _big_endian(header[offset + 5 : offset + 7])
        if marker == 0xFF or marker in _JPEG_BARE_MARKERS:
            offset += 1 if marker == 0xFF else 2
        else:
            offset += 2 + max(2, _big_endian(header[offset + 2 : offset + 4]))
    return None


def _decode_head(data: str, max_bytes: int) -> bytes:
    """Decode the first bytes; b"" if they are not base64."""
    try:
        return b64decode(data[: max_bytes // 3 * 4])
    except (binascii.Error, ValueError):
        return b""


def _big_endian(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little_endian(data: bytes) -> int:
    return int.from_bytes(data, "little")
