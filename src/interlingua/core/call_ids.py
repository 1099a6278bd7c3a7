"""Call ids: the model's own where they are free, made unique where they are not, and made where there are none."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2s
from itertools import count
from typing import Literal, TypeAlias

__all__ = ["CallIdAllocator", "IdStyle"]

IdStyle: TypeAlias = Literal["call", "nine"]
"""What made ids look like: `call_` and 24 hex digits, or nine letters and digits, which is all that Mistral takes."""

_NUMBERED = re.compile(r"(.*:)([0-9]{1,18})", re.S)


class CallIdAllocator:
    """The ids of one conversation. There is no chance in them: the seed makes them differ from reply to reply."""

    def __init__(self, taken: Iterable[str], seed: str) -> None:
        self.style: IdStyle = "call"
        self._taken = set(taken)
        self._seed = seed
        self._last_numbers: dict[str, int] = {}  # the last number given to ids that begin like this

    def allocate(self, native_id: str | None, number: int) -> str:
        """The id of the call with this number in its reply."""
        id = native_id or self._generate(number)
        if id in self._taken:
            id = self._next_free(id) if self.style == "call" else self._generate_unused(number)
        self._taken.add(id)
        return id

    def _generate(self, number: int, attempt: int = 0) -> str:
        seed = f"{self._seed}/{number}{f'/{attempt}' if attempt else ''}".encode(errors="replace")
        digest = blake2s(seed, digest_size=12).hexdigest()
        return digest[:9] if self.style == "nine" else f"call_{digest}"

    def _generate_unused(self, number: int) -> str:
        """Another one of its kind: where ids must look just so, no number can be put behind them."""
        attempts = (self._generate(number, attempt) for attempt in count(1))
        return next(id for id in attempts if id not in self._taken)

    def _next_free(self, id: str) -> str:
        """The next number that is free where the id ends in one, as Kimi's do, else `id_2`, `id_3`, …"""
        match = _NUMBERED.fullmatch(id)
        stem, number = (match[1], int(match[2])) if match else (f"{id}_", 1)
        number = max(number, self._last_numbers.get(stem, 0)) + 1
        while f"{stem}{number}" in self._taken:
            number += 1
        self._last_numbers[stem] = number
        return f"{stem}{number}"
