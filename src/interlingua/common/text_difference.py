"""Place of the first difference of two texts."""

from __future__ import annotations

__all__ = ["common_prefix_length"]


def common_prefix_length(a: str, b: str) -> int:
    """Return the length of the common beginning of two texts, found by halves: texts may be long."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
