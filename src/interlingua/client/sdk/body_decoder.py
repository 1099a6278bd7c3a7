"""Decompression of a response body within a size limit.

httpx decompresses each piece as a whole, so that a few kilobytes can fill the memory.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from interlingua.errors import UpstreamError

__all__ = ["BodyDecoder"]

MAX_PIECE_BYTES = 64 * 1024
"""Maximum size of a decompressed piece."""
_WBITS_FOR_GZIP_AND_ZLIB = 32 + zlib.MAX_WBITS


class BodyDecoder:
    """Decompresses the pieces of one body.

    Args:
        encoding: The content encoding; "" if the body is not compressed.
        max_bytes: Limit for the decompressed size of the whole body.

    Raises:
        UpstreamError: The encoding is not supported.
    """

    def __init__(self, encoding: str, max_bytes: int) -> None:
        encoding = encoding.strip().lower()
        if encoding not in ("", "identity", "gzip", "deflate"):
            raise UpstreamError(f"the upstream compressed its reply with {encoding[:40]!r}, which was not requested")
        is_compressed = encoding in ("gzip", "deflate")
        self._decompressor = zlib.decompressobj(_WBITS_FOR_GZIP_AND_ZLIB) if is_compressed else None
        self._max_bytes = max_bytes
        self._size = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the decompressed data. Raises UpstreamError if it is invalid or exceeds the limit."""
        for piece in [data] if self._decompressor is None else self._decompress(data, self._decompressor):
            self._size += len(piece)
            if self._size > self._max_bytes:
                raise UpstreamError(f"the upstream's reply is larger than {self._max_bytes:,} bytes")
            yield piece

    def _decompress(self, data: bytes, decompressor: zlib._Decompress) -> Iterator[bytes]:
        while True:
            try:
                piece = decompressor.decompress(data, MAX_PIECE_BYTES)
            except zlib.error as error:
                raise UpstreamError(f"the upstream's compressed reply cannot be decoded: {error}") from error
            yield piece
            data = decompressor.unconsumed_tail
            if not data and len(piece) < MAX_PIECE_BYTES:  # a full piece may leave output in the decompressor
                return
