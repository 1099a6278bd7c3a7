"""Origins of the items in a request that the gateway has changed: errors name the field of the client's own request."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from interlingua.errors import BadRequest

__all__ = ["Origin", "Origins", "name_client_field"]


class Origin(NamedTuple):
    """Field of the earlier request that an item comes from."""

    path: str
    is_same: bool = True
    """The item has the same fields as its origin, so that a path inside it is valid there, too."""


class Origins:
    """Origins of the items in a conversation, in their order; empty if it was not changed.

    A conversation can have many thousands of items, so the items of one field, and items with one origin, are one run.
    """

    def __init__(self, origins: Iterable[Origin] = ()) -> None:
        self._runs: list[_Run] = []
        self._starts: list[int] = []
        self._count = 0
        for origin in origins:
            self.add(origin)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Origin]:
        return (run.origin(n) for run in self._runs for n in range(run.length))

    def add(self, origin: Origin, count: int = 1) -> None:
        """Add items that have the same origin."""
        self._add(_Run(count, origin))

    def add_items(self, field: str, count: int) -> None:
        """Add the first items of a field, each of which is its own origin."""
        self._add(_Run(count, Origin(field), is_numbered=True))

    def extend(self, others: Origins) -> None:
        """Add the items of others."""
        for run in others._runs:
            self._add(run)

    def find(self, position: int) -> Origin | None:
        """Return the origin of an item; None if there is no such item."""
        if position >= self._count:
            return None
        n = bisect_right(self._starts, position) - 1
        return self._runs[n].origin(position - self._starts[n])

    def _add(self, run: _Run) -> None:
        if run.length:
            self._runs.append(run)
            self._starts.append(self._count)
            self._count += run.length


class _Run(NamedTuple):
    length: int
    first: Origin
    is_numbered: bool = False

    def origin(self, n: int) -> Origin:
        return Origin(f"{self.first.path}[{n}]") if self.is_numbered else self.first


def name_client_field(error: BadRequest, field: str, changes: Sequence[Origins]) -> None:
    """Let an error about an item name the field of the client's own request.

    Args:
        error: The error. It is changed.
        field: Name of the field with the conversation.
        changes: For each change of the request, the origins of the items behind it; the first change first.
    """
    path = error.path
    for origins in reversed(changes):
        path = _find_origin(path, field, origins)
    if path != error.path:
        error.move_to(path)


def _find_origin(path: str, field: str, origins: Origins) -> str:
    match = re.match(rf"{field}\[(\d{{1,9}})\]", path)
    origin = origins.find(int(match[1])) if match is not None else None
    if match is None or origin is None:
        return path
    return origin.path + path[match.end() :] if origin.is_same else origin.path
