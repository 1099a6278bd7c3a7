"""Ways to cut a text, or bytes, in pieces."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from typing import TypeVar

T = TypeVar("T", str, bytes)


def one_by_one(data: T) -> list[T]:
    return [data[n : n + 1] for n in range(len(data))]


def pieces(data: T, seed: int) -> list[T]:
    """Cut at random: some pieces are empty, some long."""
    rng = random.Random(seed)
    at: list[int] = sorted(rng.choices(range(len(data) + 1), k=rng.randint(1, 3 + len(data) // 20)))
    return [data[start:end] for start, end in pairwise([0, *at, len(data)])]


def places(data: T, limit: int) -> list[int]:
    """Every place to cut at; if there are more than the limit, as many of them, spread at random."""
    every = range(1, len(data))
    return list(every) if len(every) <= limit else sorted(random.Random(len(data)).sample(every, limit))


def two_piece_cuts(data: T, limit: int) -> Iterator[list[T]]:
    for at in places(data, limit):
        yield [data[:at], data[at:]]
