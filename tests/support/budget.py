"""Number of examples of property tests: few in `make test`, all of them in `make test-full`."""

from __future__ import annotations

import os

__all__ = ["PROFILE", "examples"]

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "quick")
"""`quick` (`make test`), `full` (`make test-full`) or `search` (new examples at each run)."""
MIN_EXAMPLES, MAX_EXAMPLES = 10, 100
"""Limits of a quick run."""


def examples(full: int) -> int:
    """Return the number of examples for this run, if the full run has this many."""
    return full if PROFILE != "quick" else min(MAX_EXAMPLES, max(MIN_EXAMPLES, full // 5))
