"""How do our estimates compare with what upstreams count? What they report corrects the next estimate for the model.

It is kept by each process for itself, and only as long as it runs: nothing but estimates depends on it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from interlingua.events import Usage
from interlingua.gateway.tokens.estimator import estimate

__all__ = ["TokenCounts", "roughly"]

MODELS = 1000
"""So many are kept: those that were asked last."""
FIRST, EVERY = 4, 16
"""The first requests for a model are compared, then one of so many: an estimate has its price."""
SMALLEST = 40
"""Estimates of fewer tokens tell little: what a template adds is half of it."""
LARGE = 2000
"""Those of so many tokens count in full, smaller ones in part."""
WEIGHT = 0.2
"""How much one of them moves what is known."""
ODDEST = 5.0
"""Who reports so many times as much, or as little, counts something else."""
LEAST, MOST = 0.5, 2.5
"""No correction goes further."""
PER_TOKEN = 4
"""Bytes of a request, where it is judged by nothing else."""
CLOSE = 64 * 1024
"""The sample for those who ask for the count alone."""


class _Known:
    """What is known of one model at one upstream."""

    def __init__(self) -> None:
        self.factor = 1.0
        self.compared = 0.0
        """How many requests were, the small ones in part."""
        self.asked = 0
        self.silent = False
        """Whether it reported nothing, the last time."""


class TokenCounts:
    def __init__(self) -> None:
        self._models: OrderedDict[tuple[str, str], _Known] = OrderedDict()

    def count(self, body: dict[str, Any], upstream: str, model: str) -> int:
        """For a client that wants to know nothing else."""
        known = self._models.get((upstream, model)) or _Known()
        return round(estimate(body, model, CLOSE) * known.factor)

    def expect(self, body: dict[str, Any], upstream: str, model: str) -> int | None:
        """The tokens of a request that is to be compared with what the upstream will report, before any correction;
        None if it need not be."""
        known = self._of(upstream, model)
        known.asked += 1
        compared = known.silent or known.compared < FIRST or known.asked % EVERY == 0
        return estimate(body, model) if compared else None

    def corrected(self, tokens: int, upstream: str, model: str) -> int:
        return max(1, round(tokens * self._of(upstream, model).factor))

    def compare(self, expected: int, usage: Usage, upstream: str, model: str) -> None:
        """With what was reported in the end. `expected` may be 0: nothing was."""
        known = self._of(upstream, model)
        known.silent = usage.estimated
        if usage.estimated or expected < SMALLEST or usage.input <= 0:
            return
        ratio = usage.input / expected
        if not 1 / ODDEST <= ratio <= ODDEST:
            return
        share = min(1.0, expected / LARGE)
        known.compared += share
        weight = share * max(WEIGHT, 1 / max(1.0, known.compared))
        known.factor = min(MOST, max(LEAST, known.factor + (ratio - known.factor) * weight))

    def _of(self, upstream: str, model: str) -> _Known:
        known = self._models.setdefault((upstream, model), _Known())
        self._models.move_to_end((upstream, model))
        if len(self._models) > MODELS:
            self._models.popitem(last=False)
        return known


def roughly(size: int) -> int:
    """The tokens of a request of so many bytes."""
    return max(1, size // PER_TOKEN)
