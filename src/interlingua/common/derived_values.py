"""Values that are computed once from an object that many requests share."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

__all__ = ["DerivedValues"]

T = TypeVar("T")


class DerivedValues:
    """Values by key. Threads that need the same one at the same time may compute it twice."""

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[Hashable, Any] = {}

    def get(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the value that was computed for this key before, or compute it."""
        if key not in self._values:
            self._values[key] = compute()
        value: T = self._values[key]
        return value
