"""Call ids: keep the model's own id if it is unused, make it unique if it is used, generate one if it is missing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from hashlib import blake2s
from itertools import count
from typing import Literal, TypeAlias

__all__ = ["CallIdAllocator", "IdStyle"]

IdStyle: TypeAlias = Literal["call", "nine"]
"""Format of generated ids: `call_` and 24 hex digits, or nine letters and digits, the only format Mistral accepts."""

_NUMBERED = re.compile(r"(.*:)([0-9]{1,18})", re.S)


class CallIdAllocator:
    """Allocator of the call ids of one conversation. Ids are deterministic; the seed makes them differ between
    replies."""

    def __init__(self, taken: Iterable[str], seed: str) -> None:
        """`taken`: the ids of earlier turns. A set is used as it is, because many choices may share it."""
        self.style: IdStyle = "call"
        self._earlier_ids = taken if isinstance(taken, Set) else frozenset(taken)
        self._allocated_ids: set[str] = set()
        self._seed = seed
        self._last_numbers: dict[str, int] = {}  # id prefix → last number allocated with it

    def allocate(self, native_id: str | None, number: int) -> str:
        """Return a unique id for the call with this number in its reply."""
        id = native_id or self._generate(number)
        if self._is_taken(id):
            id = self._next_free(id) if self.style == "call" else self._generate_unused(number)
        self._allocated_ids.add(id)
        return id

    def _is_taken(self, id: str) -> bool:
        return id in self._allocated_ids or id in self._earlier_ids

    def _generate(self, number: int, attempt: int = 0) -> str:
        seed = f"{self._seed}/{number}{f'/{attempt}' if attempt else ''}".encode(errors="replace")
        digest = blake2s(seed, digest_size=12).hexdigest()
        return digest[:9] if self.style == "nine" else f"call_{digest}"

    def _generate_unused(self, number: int) -> str:
        """Generate a unique id of the fixed-length style, which has no room for a numeric suffix."""
        attempts = (self._generate(number, attempt) for attempt in count(1))
        return next(id for id in attempts if not self._is_taken(id))

    def _next_free(self, id: str) -> str:
        """Return the id with the next free number if it ends in a number, as Kimi's ids do, else `id_2`, `id_3`, …"""
        match = _NUMBERED.fullmatch(id)
        stem, number = (match[1], int(match[2])) if match else (f"{id}_", 1)
        number = max(number, self._last_numbers.get(stem, 0)) + 1
        while self._is_taken(f"{stem}{number}"):
            number += 1
        self._last_numbers[stem] = number
        return f"{stem}{number}"
