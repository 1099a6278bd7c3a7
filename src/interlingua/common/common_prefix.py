"""Length of the common beginning of two long sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["common_prefix_length"]

FIRST_BLOCK = 256


def common_prefix_length(left: Sequence[Any], right: Sequence[Any], start: int = 0) -> int:
    """Return the length of the common beginning of two texts, byte strings or lists.

    Growing blocks are compared as a whole, and the first one that differs is halved: no element is compared by Python.

    Args:
        start: Length of a beginning that is known to be equal.
    """
    block = FIRST_BLOCK
    while start < len(left) and left[start : start + block] == right[start : start + block]:
        start, block = start + block, 2 * block
    low, high = min(start, len(left), len(right)), min(start + block, len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
