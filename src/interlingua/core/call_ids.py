"""Call ids: keep the model's own id if it is unused, make it unique if it is used, generate one if it is missing."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence, Set
from hashlib import blake2s
from itertools import accumulate, count, pairwise
from typing import Literal, TypeAlias

import msgspec

__all__ = ["CallIdAllocator", "IdStyle", "PackedIds"]

IdStyle: TypeAlias = Literal["call", "nine"]
"""Format of generated ids: `call_` and 24 hex digits, or nine letters and digits, the only format Mistral accepts."""

_NUMBERED = re.compile(r"(.*:)([0-9]{1,18})", re.S)
_NO_IDS: frozenset[str] = frozenset()


class PackedIds(msgspec.Struct):
    """Call ids of a conversation, in as little memory as possible until one of them is looked for.

    They are needed only if the reply has a call. A conversation may have thousands of them, and a reply may last long.
    """

    _text: str
    _ends: array[int]
    _unpacked: frozenset[str] | None = None

    @classmethod
    def pack(cls, ids: Sequence[str]) -> PackedIds:
        return cls("".join(ids), array("I", accumulate(map(len, ids))))

    def __contains__(self, id: object) -> bool:
        if self._unpacked is None:
            self._unpacked = frozenset(self)
        return id in self._unpacked

    def __iter__(self) -> Iterator[str]:
        return (self._text[start:end] for start, end in pairwise((0, *self._ends)))

    def __len__(self) -> int:
        return len(self._ends)


class CallIdAllocator:
    """Allocator of the call ids of one conversation. Ids are deterministic; the seed makes them differ between
    replies."""

    __slots__ = ("_allocated_ids", "_earlier_ids", "_last_numbers", "_seed", "style")

    def __init__(self, taken: Iterable[str], seed: str) -> None:
        """`taken`: the ids of earlier turns. A set is used as it is, because many choices may share it."""
        self.style: IdStyle = "call"
        self._earlier_ids = taken if isinstance(taken, Set | PackedIds) else frozenset(taken) or _NO_IDS
        self._allocated_ids: dict[str, None] = {}  # an empty set takes three times the memory
        self._seed = seed
        self._last_numbers: dict[str, int] = {}  # id prefix → last number allocated with it

    def allocate(self, native_id: str | None, number: int) -> str:
        """Return a unique id for the call with this number in its reply."""
        id = native_id or self._generate(number)
        if self._is_taken(id):
            id = self._next_free(id) if self.style == "call" else self._generate_unused(number)
        self._allocated_ids[id] = None
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
