"""How do our estimates compare with what upstreams count? What they report corrects the next estimate for the model.

It is kept by each process for itself, and only as long as it runs: nothing but estimates depends on it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from interlingua.events import Usage
from interlingua.gateway.tokens.estimator import estimate_tokens

__all__ = ["EstimateCalibration", "tokens_from_size"]

MAX_MODELS = 1000
"""So many are kept: those that were asked last."""
INITIAL_COMPARISONS, COMPARISON_INTERVAL_REQUESTS = 4, 16
"""The first requests for a model are compared, then one of so many: an estimate has its price."""
MIN_COMPARED_TOKENS = 40
"""Estimates of fewer tokens tell little: what a template adds is half of it."""
FULL_WEIGHT_TOKENS = 2000
"""Those of so many tokens count in full, smaller ones in part."""
MIN_UPDATE_WEIGHT = 0.2
"""How much one of them moves what is known."""
MAX_PLAUSIBLE_RATIO = 5.0
"""Who reports so many times as much, or as little, counts something else."""
MIN_FACTOR, MAX_FACTOR = 0.5, 2.5
"""No correction goes further."""
BYTES_PER_TOKEN = 4
"""Bytes of a request, where it is judged by nothing else."""
COUNT_SAMPLE_CHARS = 64 * 1024
"""The sample for those who ask for the count alone."""


class _ModelCalibration:
    """What is known of one model at one upstream."""

    def __init__(self) -> None:
        self.factor = 1.0
        self.comparisons = 0.0
        """How many requests were, the small ones in part."""
        self.requests = 0
        self.usage_missing = False
        """Whether it reported nothing, the last time."""


class EstimateCalibration:
    def __init__(self) -> None:
        self._models: OrderedDict[tuple[str, str], _ModelCalibration] = OrderedDict()

    def count(self, body: dict[str, Any], upstream: str, model: str) -> int:
        """For a client that wants to know nothing else."""
        calibration = self._models.get((upstream, model)) or _ModelCalibration()
        return round(estimate_tokens(body, model, COUNT_SAMPLE_CHARS) * calibration.factor)

    def estimate_for_comparison(self, body: dict[str, Any], upstream: str, model: str) -> int | None:
        """The tokens of a request that is to be compared with what the upstream will report, before any correction;
        None if it need not be."""
        calibration = self._calibration_for(upstream, model)
        calibration.requests += 1
        should_compare = (
            calibration.usage_missing
            or calibration.comparisons < INITIAL_COMPARISONS
            or calibration.requests % COMPARISON_INTERVAL_REQUESTS == 0
        )
        return estimate_tokens(body, model) if should_compare else None

    def apply_correction(self, tokens: int, upstream: str, model: str) -> int:
        return max(1, round(tokens * self._calibration_for(upstream, model).factor))

    def record_usage(self, estimated_tokens: int, usage: Usage, upstream: str, model: str) -> None:
        """With what was reported in the end. `expected` may be 0: nothing was."""
        calibration = self._calibration_for(upstream, model)
        calibration.usage_missing = usage.estimated
        if usage.estimated or estimated_tokens < MIN_COMPARED_TOKENS or usage.input <= 0:
            return
        ratio = usage.input / estimated_tokens
        if not 1 / MAX_PLAUSIBLE_RATIO <= ratio <= MAX_PLAUSIBLE_RATIO:
            return
        share = min(1.0, estimated_tokens / FULL_WEIGHT_TOKENS)
        calibration.comparisons += share
        weight = share * max(MIN_UPDATE_WEIGHT, 1 / max(1.0, calibration.comparisons))
        calibration.factor = min(
            MAX_FACTOR, max(MIN_FACTOR, calibration.factor + (ratio - calibration.factor) * weight)
        )

    def _calibration_for(self, upstream: str, model: str) -> _ModelCalibration:
        calibration = self._models.setdefault((upstream, model), _ModelCalibration())
        self._models.move_to_end((upstream, model))
        if len(self._models) > MAX_MODELS:
            self._models.popitem(last=False)
        return calibration


def tokens_from_size(size_bytes: int) -> int:
    """The tokens of a request of so many bytes."""
    return max(1, size_bytes // BYTES_PER_TOKEN)
