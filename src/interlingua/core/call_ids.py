"""Call ids: keep the model's own id if it is unused, make it unique if it is used, generate one if it is missing.

An id that other conversations may use, too, such as `call_0`, gets a suffix from the id of its reply. The suffix is
removed again when the client sends the call back, so that the upstream gets the id that it knows.

    functions.bash:0  ⇄  functions.bash:0-il4f0c2a9be1d7
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from hashlib import blake2s
from itertools import accumulate, count, pairwise
from typing import Literal, TypeAlias

import msgspec

from interlingua.core.unique_ids import is_unique

__all__ = ["CallIdAllocator", "IdStyle", "PackedIds", "native_call_id"]

IdStyle: TypeAlias = Literal["call", "nine"]
"""Format of generated ids: `call_` and 24 hex digits, or nine letters and digits, the only format Mistral accepts."""

_NUMBERED = re.compile(r"(.*:)([0-9]{1,18})", re.S)
_NO_IDS: frozenset[str] = frozenset()
_SUFFIXED = re.compile(r"(.+)-il[0-9a-f]{12}", re.S)


class PackedIds(msgspec.Struct):
    """Call ids of a conversation, in as little memory as possible until one of them is looked for.

    They are needed only if the reply has a call. A conversation may have thousands of them, and a reply may last long.
    """

    _text: str
    _ends: array[int]
    _unpacked: frozenset[str] | None = None

    @classmethod
    def pack(cls, ids: Sequence[str]) -> PackedIds:
        return cls("".join(ids), array("I", [*accumulate(map(len, ids))]))  # a list: no spare memory

    def __contains__(self, id: object) -> bool:
        if self._unpacked is None:
            self._unpacked = frozenset(self)
        return id in self._unpacked

    def __iter__(self) -> Iterator[str]:
        return (self._text[start:end] for start, end in pairwise((0, *self._ends)))

    def __len__(self) -> int:
        return len(self._ends)


def native_call_id(id: str) -> str:
    """Return the id without the suffix from its reply; an id without one unchanged."""
    match = _SUFFIXED.fullmatch(id)
    return match[1] if match else id


class CallIdAllocator:
    """Allocator of the call ids of one conversation. Ids are deterministic; the seed makes them differ between
    replies."""

    __slots__ = ("_allocated_ids", "_earlier_ids", "_seed", "_suffix", "last_numbers", "style")

    def __init__(
        self,
        taken: Iterable[str],
        seed: str,
        *,
        is_seed_unique: bool = False,
        last_numbers: Mapping[str, int] | None = None,
    ) -> None:
        """
        Args:
            taken: the ids of earlier turns. A set is used as it is, because many choices may share it.
            seed: the source of generated ids.
            is_seed_unique: no other reply has this seed. Then ids that may repeat get a suffix made from it.
            last_numbers: those of the allocator of the earlier turns.
        """
        self.style: IdStyle = "call"
        self._earlier_ids = taken if isinstance(taken, Set | PackedIds) else frozenset(taken) or _NO_IDS
        self._allocated_ids: dict[str, None] = {}  # an empty set takes three times the memory
        self._seed = seed
        self._suffix = f"-il{_digest(seed)[:12]}" if is_seed_unique else ""
        self.last_numbers: dict[str, int] = dict(last_numbers or {})
        """The last number that was allocated with each prefix of ids."""

    def allocate(self, native_id: str | None, number: int, name: str = "") -> str:
        """Return a unique id for the call with this number in its reply. `name`: the tool, which some ids contain."""
        suffix = self._suffix if native_id and not is_unique(native_id, name) else ""
        id = (native_id or self._generate(number)) + suffix
        if self._is_taken(id):
            id = self._next_free(native_id or id, suffix) if self.style == "call" else self._generate_unused(number)
        self._allocated_ids[id] = None
        return id

    def _is_taken(self, id: str) -> bool:
        return id in self._allocated_ids or id in self._earlier_ids

    def _generate(self, number: int, attempt: int = 0) -> str:
        digest = _digest(f"{self._seed}/{number}{f'/{attempt}' if attempt else ''}")
        return digest[:9] if self.style == "nine" else f"call_{digest}"

    def _generate_unused(self, number: int) -> str:
        """Generate a unique id of the fixed-length style, which has no room for a numeric suffix."""
        attempts = (self._generate(number, attempt) for attempt in count(1))
        return next(id for id in attempts if not self._is_taken(id))

    def _next_free(self, id: str, suffix: str) -> str:
        """Return the id with the next free number if it ends in a number, as Kimi's ids do, else `id_2`, `id_3`, …"""
        match = _NUMBERED.fullmatch(id)
        stem, number = (match[1], int(match[2])) if match else (f"{id}_", 1)
        number = max(number, self.last_numbers.get(stem, 0)) + 1
        while self._is_taken(f"{stem}{number}{suffix}"):
            number += 1
        self.last_numbers[stem] = number
        return f"{stem}{number}{suffix}"


def _digest(seed: str) -> str:
    return blake2s(seed.encode(errors="replace"), digest_size=12).hexdigest()
