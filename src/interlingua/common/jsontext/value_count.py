"""Number of values in a JSON text, counted without decoding it: decoding takes time and memory for each value."""

from __future__ import annotations

__all__ = ["count_separators", "has_at_most_values"]

BYTES_PER_VALUE = 2
"""A value takes at least two bytes: one character, and the comma or bracket before it."""
SLICE_BYTES = 256 * 1024


def has_at_most_values(data: bytes, limit: int) -> bool:
    """Return whether the JSON text has at most this many values.

    Commas and opening brackets outside of strings are counted. Each value but the first follows one of them; only an
    empty list or object counts twice.
    """
    if len(data) <= BYTES_PER_VALUE * limit or count_separators(data) < limit:
        return True
    return _has_at_most_outside_strings(data, limit)


def _has_at_most_outside_strings(data: bytes, limit: int) -> bool:
    count, start, in_string = 1, 0, False
    while start < len(data):
        end = _slice_end(data, start)
        # Without escape sequences, every quote begins or ends a string.
        parts = data[start:end].replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        outside = parts[1::2] if in_string else parts[::2]
        count += count_separators(b"".join(outside))
        if count > limit:
            return False
        in_string ^= len(parts) % 2 == 0
        start = end
    return True


def _slice_end(data: bytes, start: int) -> int:
    """Return the end of the slice that begins here. It does not split an escape sequence."""
    end = min(start + SLICE_BYTES, len(data))
    backslashes = end - start - len(data[start:end].rstrip(b"\\"))
    return min(end + backslashes % 2, len(data))


def count_separators(data: bytes) -> int:
    """Return the number of commas and opening brackets, also in strings. JSON has at most one value more."""
    return data.count(b",") + data.count(b"[") + data.count(b"{")
