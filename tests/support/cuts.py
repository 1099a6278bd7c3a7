"""Functions that cut text or bytes into pieces."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from typing import TypeVar

T = TypeVar("T", str, bytes)


def single_units(data: T) -> list[T]:
    return [data[n : n + 1] for n in range(len(data))]


def random_pieces(data: T, seed: int) -> list[T]:
    """Cut at random positions. Some pieces are empty, some long."""
    rng = random.Random(seed)
    positions: list[int] = sorted(rng.choices(range(len(data) + 1), k=rng.randint(1, 3 + len(data) // 20)))
    return [data[start:end] for start, end in pairwise([0, *positions, len(data)])]


def cut_positions(data: T, limit: int) -> list[int]:
    """Return all positions to cut at, or a random sample if there are more than the limit."""
    all_positions = range(1, len(data))
    return (
        list(all_positions)
        if len(all_positions) <= limit
        else sorted(random.Random(len(data)).sample(all_positions, limit))
    )


def two_piece_cuts(data: T, limit: int) -> Iterator[list[T]]:
    for position in cut_positions(data, limit):
        yield [data[:position], data[position:]]
