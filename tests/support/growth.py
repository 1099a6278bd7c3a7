"""A check that time grows with the size of the input, and not faster."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["check_growth", "cpu_seconds"]

Input = TypeVar("Input")
_MAX_ROUNDS = 6
_NOISE_SECONDS = 0.01


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
