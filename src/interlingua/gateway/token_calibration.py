"""Calibration of token estimates: the usage that an upstream reports corrects later estimates for the same model.

All workers have the same calibration, in memory only: each comparison is an event that all of them apply
(`shared_memory/event_log.py`). Nothing but estimates depends on it.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Any

import msgspec

from interlingua.events import Usage
from interlingua.gateway.shared_memory.event_log import EventLog
from interlingua.tokens.estimator import estimate_tokens

__all__ = ["EstimateCalibration", "tokens_from_size"]

MAX_MODELS = 1000
"""Maximum number of models in memory. The least recently used one is dropped first."""
INITIAL_COMPARISONS, COMPARISON_INTERVAL_REQUESTS = 4, 16
"""The first requests for a model are compared, then one in `COMPARISON_INTERVAL_REQUESTS`: an estimate costs time."""
MIN_COMPARED_TOKENS = 40
"""Minimum estimate for a comparison. In shorter requests the tokens of the chat template are up to half of the
total."""
FULL_WEIGHT_TOKENS = 2000
"""Estimates of this size or more have full weight, smaller ones a proportional weight."""
MIN_UPDATE_WEIGHT = 0.2
"""Minimum weight of a new comparison in the moving average."""
MAX_PLAUSIBLE_RATIO = 5.0
"""An upstream that reports more than this multiple of the estimate, or less than its inverse, counts something else."""
MIN_FACTOR, MAX_FACTOR = 0.5, 2.5
"""Bounds of the correction factor."""
BYTES_PER_TOKEN = 4
"""Average size of a token, for estimates by size alone."""
COUNT_WHOLE_CHARS = 8 * 1024
"""Texts up to this length are analysed as a whole for token count requests, which can take more time than others."""


class UsageCompared(msgspec.Struct, array_like=True, frozen=True):
    """An upstream has reported usage, or the usage is missing."""

    upstream: str
    model: str
    usage_missing: bool
    ratio: float = 1.0
    """The reported usage divided by the estimate."""
    weight: float = 0.0
    """Weight of the comparison: 0 if the usage was not compared, 1 for large requests."""


class _ModelCalibration:
    """Calibration of one model at one upstream."""

    def __init__(self) -> None:
        self.factor = 1.0
        self.comparisons = 0.0
        """Number of comparisons, weighted: small requests count in part."""
        self.requests = 0
        self.usage_missing = False
        """True if the upstream reported no usage for the last request."""


class EstimateCalibration:
    """Calibration of all models.

    Args:
        events: The events of all workers. None if this process is the only worker.
    """

    def __init__(self, events: EventLog | None = None) -> None:
        self._models: OrderedDict[tuple[str, str], _ModelCalibration] = OrderedDict()
        self._events = events or EventLog()
        self._events.subscribe(UsageCompared, lambda _, event: self._apply(event))

    def count(self, body: dict[str, Any], upstream: str, model: str) -> int:
        """Return the corrected estimate for a token count request."""
        calibration = self._models.get((upstream, model)) or _ModelCalibration()
        return round(estimate_tokens(body, model, COUNT_WHOLE_CHARS) * calibration.factor)

    def needs_comparison(self, upstream: str, model: str) -> bool:
        """Return whether the estimate of this request is compared with the usage that the upstream will report."""
        calibration = self._calibration_for(upstream, model)
        calibration.requests += 1
        return (
            calibration.usage_missing
            or calibration.comparisons < INITIAL_COMPARISONS
            or calibration.requests % COMPARISON_INTERVAL_REQUESTS == 0
        )

    def apply_correction(self, tokens: int, upstream: str, model: str) -> int:
        return max(1, round(tokens * self._calibration_for(upstream, model).factor))

    def record_usage(self, estimated_tokens: int, usage: Usage, upstream: str, model: str) -> None:
        """Compare the estimate with the reported usage and update the factor. `estimated_tokens` is 0 if there is
        none."""
        ratio, weight = 1.0, 0.0
        if not usage.estimated and estimated_tokens >= MIN_COMPARED_TOKENS:
            ratio = usage.input / estimated_tokens
            if 1 / MAX_PLAUSIBLE_RATIO <= ratio <= MAX_PLAUSIBLE_RATIO:
                weight = min(1.0, estimated_tokens / FULL_WEIGHT_TOKENS)
        if weight or usage.estimated != self._calibration_for(upstream, model).usage_missing:
            event = UsageCompared(upstream, model, usage.estimated, ratio, weight)
            self._apply(event)
            self._events.publish(event, time.monotonic())

    def _apply(self, event: UsageCompared) -> None:
        calibration = self._calibration_for(event.upstream, event.model)
        calibration.usage_missing = event.usage_missing
        calibration.comparisons += event.weight
        weight = event.weight * max(MIN_UPDATE_WEIGHT, 1 / max(1.0, calibration.comparisons))
        calibration.factor = min(
            MAX_FACTOR, max(MIN_FACTOR, calibration.factor + (event.ratio - calibration.factor) * weight)
        )

    def _calibration_for(self, upstream: str, model: str) -> _ModelCalibration:
        calibration = self._models.setdefault((upstream, model), _ModelCalibration())
        self._models.move_to_end((upstream, model))
        if len(self._models) > MAX_MODELS:
            self._models.popitem(last=False)
        return calibration


def tokens_from_size(size_bytes: int) -> int:
    """Estimate the tokens of a request from its size alone."""
    return max(1, size_bytes // BYTES_PER_TOKEN)
