"""Amount that a test covers: a sample in `make test`, everything in `make test-full`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

__all__ = ["PROFILE", "examples", "sample"]

Item = TypeVar("Item")

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "quick")
"""`quick` (`make test`), `full` (`make test-full`) or `search` (new examples at each run)."""
MIN_EXAMPLES, MAX_EXAMPLES = 10, 100
"""Limits of a quick run."""


def examples(full: int, quick: int | None = None) -> int:
    """Return the number of examples for this run, if the full run has this many. A quick run has a fifth of them."""
    if PROFILE != "quick":
        return full
    return min(MAX_EXAMPLES, max(MIN_EXAMPLES, full // 5)) if quick is None else quick


def sample(items: Sequence[Item], step: int) -> Sequence[Item]:
    """Return every `step`-th item in a quick run, and all of them in a full run. Mark the test with `sampled`."""
    return items[::step] if PROFILE == "quick" else items
