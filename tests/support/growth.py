"""A check that time grows with the size of the input, and not faster."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

__all__ = ["GrowthCase", "check_case", "check_growth", "cpu_seconds", "measure_case"]

Input = TypeVar("Input")
_MAX_ROUNDS = 6
_NOISE_SECONDS = 0.01
FACTOR, LIMIT = 4, 10
"""Inputs of a case are compared with inputs of this many times the size, which may take at most `LIMIT` times as long.
Quadratic time would take 16 times as long."""
_FIRST_SIZE, _MAX_SIZE = 64, 1 << 15


class GrowthCase(NamedTuple):
    """An input of any size, and what is done with it."""

    name: str
    make: Callable[[int], Any]
    """Function that returns an input with a list of this size, or a text of this many pieces."""
    run: Callable[[Any], object]


def check_case(case: GrowthCase, seconds: float) -> None:
    """Fail if the time of a case grows faster than its size, from the size that takes about this time."""
    size = _size_for(case, seconds)
    check_growth(case.run, case.make(size), case.make(FACTOR * size), limit=LIMIT)


def measure_case(case: GrowthCase, seconds: float) -> tuple[int, float, float]:
    """Return the size that takes about this time, its time, and the time of `FACTOR` times the size."""
    size = _size_for(case, seconds)
    small, large = case.make(size), case.make(FACTOR * size)
    best_small = min(cpu_seconds(case.run, small) for _ in range(3))
    return size, best_small, min(cpu_seconds(case.run, large) for _ in range(2))


def _size_for(case: GrowthCase, seconds: float) -> int:
    size = _FIRST_SIZE
    while size < _MAX_SIZE and cpu_seconds(case.run, case.make(size)) < seconds:
        size *= 2
    return size


def check_growth(run: Callable[[Input], object], small: Input, large: Input, *, limit: float) -> None:
    """Fail if `run(large)` takes more than `limit` times the CPU time of `run(small)`.

    Other processes and the garbage collector can only add time. So the shortest of several rounds counts, and the
    check ends with the first round that is within the limit.
    """
    best_small = best_large = float("inf")
    for _ in range(_MAX_ROUNDS):
        best_small = min(best_small, cpu_seconds(run, small))
        best_large = min(best_large, cpu_seconds(run, large))
        if best_large < limit * best_small + _NOISE_SECONDS:
            return
    raise AssertionError(f"{best_large:.3f} s, and {best_small:.3f} s for the smaller input; limit: {limit} times")


def cpu_seconds(run: Callable[[Input], object], value: Input) -> float:
    """Return the CPU time of `run(value)`, without garbage collection."""
    gc.disable()
    try:
        start = time.process_time()
        run(value)
        return time.process_time() - start
    finally:
        gc.enable()
