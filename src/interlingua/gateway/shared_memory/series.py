"""Shared memory for series of numbers, so that each worker can use the sum over all workers: metrics, and limits.

The supervisor creates one region per worker before it forks. Only the worker of a region writes to it; all workers read
it. A worker that replaces a dead one continues in the region of its predecessor, so counters never go down.

A region is an append-only list of series. Each series consists of words of 8 bytes: a header, the key padded with
zeros, the values. The header contains the lengths and the checksum of the key, and is written last: a series is either
absent or complete, also if its writer is killed. Each value is written with one store of 8 bytes.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from zlib import crc32

__all__ = ["SeriesIndex", "SeriesMemory", "SeriesRegion"]

REGION_BYTES = 4 << 20
"""Size of a region. The system allocates only the pages that are written to: a typical worker needs 4 to 8 KB."""
RESERVED_BYTES = 4096
"""Part of a region that is kept for the series `other` of each metric."""
MAX_KEY_BYTES = 4096
_WORD_BYTES = 8


class SeriesRegion:
    """Series of one worker, in memory that the processes share after a fork."""

    def __init__(self, size: int = REGION_BYTES) -> None:
        self.memory = memoryview(mmap.mmap(-1, size))
        self._headers = self.memory.cast("Q")
        self._values = self.memory.cast("d")
        self._end: int | None = None  # index of the word after the last series; known only to the writer

    def append(self, key: bytes, width: int, use_reserve: bool = True) -> memoryview[float] | None:
        """Append a series of `width` values, all 0.

        Returns:
            The values, which the caller may change, or None if the key is too long or the region is full.
        """
        if self._end is None:  # a predecessor may have written to this region
            self._end = max((end for _, _, end in self._spans()), default=0)
        start = self._end
        first_value = start + 1 + _words(len(key))
        end = first_value + width
        limit = len(self.memory) - (0 if use_reserve else RESERVED_BYTES)
        if len(key) > MAX_KEY_BYTES or end * _WORD_BYTES > limit:
            return None
        key_start = (start + 1) * _WORD_BYTES
        self.memory[key_start : key_start + len(key)] = key
        values = self._values[first_value:end]
        for index in range(width):  # a series that a killed worker left incomplete may have stood here
            values[index] = 0.0
        self._headers[start] = crc32(key) << 32 | width << 16 | len(key)
        self._end = end
        return values

    def series(self) -> Iterator[tuple[bytes, memoryview[float]]]:
        """Yield the key and the values of each series, in the order in which they were appended."""
        for key, values, _ in self.series_from(0):
            yield key, values

    def series_from(self, start: int) -> Iterator[tuple[bytes, memoryview[float], int]]:
        """Yield the key and the values of each series from this position on, and the position after the series."""
        for key, first_value, end in self._spans(start):
            yield key, self._values[first_value:end], end

    def _spans(self, start: int = 0) -> Iterator[tuple[bytes, int, int]]:
        """Yield the key, the index of the first value and the index after the last value of each series."""
        while start < len(self._headers) and (header := self._headers[start]):
            checksum, width, key_bytes = header >> 32, header >> 16 & 0xFFFF, header & 0xFFFF
            key_start = (start + 1) * _WORD_BYTES
            key = bytes(self.memory[key_start : key_start + key_bytes])
            if crc32(key) != checksum:  # another processor has not seen the key yet
                return
            first_value = start + 1 + _words(key_bytes)
            start = first_value + width
            yield key, first_value, start


class SeriesIndex:
    """Series of a region by their keys. Each lookup reads only what was appended since the last one."""

    def __init__(self, region: SeriesRegion, key_prefix: bytes) -> None:
        self._region = region
        self._key_prefix = key_prefix
        self._position = 0
        self._by_key: dict[bytes, memoryview[float]] = {}

    def find(self, key: bytes) -> memoryview[float] | None:
        for new_key, values, end in self._region.series_from(self._position):
            self._position = end
            if new_key.startswith(self._key_prefix):
                self._by_key[new_key] = values
        return self._by_key.get(key)


class SeriesMemory(NamedTuple):
    """Regions of all workers, and the index of the worker that runs in this process."""

    regions: Sequence[SeriesRegion]
    worker: int

    @property
    def own(self) -> SeriesRegion:
        return self.regions[self.worker]


def _words(size: int) -> int:
    """Return the number of words that contain this number of bytes."""
    return -(-size // _WORD_BYTES)
