"""Metrics of a run, with confidence intervals.

Those of K2-Vendor-Verifier and MiniMax-Provider-Verifier are computed as these projects define them: by the finish
reason, and with a reference run for the decision to call a tool. See docs/reference/verification.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import sqrt

import msgspec

from interlingua.verification.run.trial_result import TrialResult

__all__ = ["Latency", "Metrics", "Rate", "TriggerScore", "compute_metrics", "percentile", "score_triggers"]

Z_95 = 1.959964
"""Quantile of the normal distribution for an interval of 95 %."""
PERCENTILES = (50, 90, 99)
TEXT_FINISH_REASONS = frozenset({"stop", "end_turn", "stop_sequence", "completed"})
"""Finish reasons of complete replies without a call, in all wires."""


class Rate(msgspec.Struct, frozen=True):
    """A share, with the 95 % interval of Wilson."""

    count: int
    total: int

    @property
    def value(self) -> float | None:
        return self.count / self.total if self.total else None

    @property
    def interval(self) -> tuple[float, float]:
        """Lower and upper bound; (0, 1) without data."""
        if not self.total:
            return 0.0, 1.0
        share, n, z = self.count / self.total, self.total, Z_95
        centre = (share + z * z / (2 * n)) / (1 + z * z / n)
        half = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
        return max(0.0, centre - half), min(1.0, centre + half)


class TriggerScore(msgspec.Struct, frozen=True):
    """Agreement with a reference on the decision to call a tool."""

    true_positives: int = 0
    false_positives: int = 0
    false_negatives: int = 0
    true_negatives: int = 0

    @property
    def precision(self) -> float | None:
        return _share(self.true_positives, self.true_positives + self.false_positives)

    @property
    def recall(self) -> float | None:
        return _share(self.true_positives, self.true_positives + self.false_negatives)

    @property
    def f1(self) -> float | None:
        """Harmonic mean of precision and recall; None if neither side calls a tool."""
        precision, recall = self.precision, self.recall
        if precision is None or recall is None:
            return None if precision is recall else 0.0
        return 2 * precision * recall / (precision + recall) if precision + recall else 0.0

    @property
    def pairs(self) -> int:
        return self.true_positives + self.false_positives + self.false_negatives + self.true_negatives


def _share(count: int, total: int) -> float | None:
    return count / total if total else None


class Latency(msgspec.Struct, frozen=True):
    """Percentiles of times in seconds."""

    count: int = 0
    p50: float = 0.0
    p90: float = 0.0
    p99: float = 0.0


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    total: int
    right: Rate
    """Replies in which a plain client finds what is expected."""
    right_corrected: Rate
    """The same replies, corrected by Interlingua."""
    right_by_mode: Mapping[str, Rate]
    """For streams and for whole replies."""
    right_by_category: Mapping[str, Rate]
    success: Rate
    """Requests that got a reply in the end."""
    attempts_success: Rate
    """The same, for each attempt."""
    finish_tool_calls: Rate
    """Replies whose finish reason is a call."""
    schema_accuracy: Rate
    """Of these, the replies in which all calls fit their schemas."""
    finish_reason: Rate
    """Replies with a finish reason that matches their content."""
    not_only_thinking: Rate
    trigger_match: Rate
    """Of the samples whose expectation is known, those that end with a call if one is expected, and only then."""
    expected_triggers: TriggerScore
    """Agreement with the expectations of the set."""
    reference_triggers: TriggerScore | None = None
    """Agreement with a reference run."""
    language: Rate | None = None
    repetition: Rate | None = None
    parameter_order: Rate | None = None
    prompt_tokens: Rate | None = None
    first_content: Latency = Latency()
    """Time to the first content of streams."""
    duration: Latency = Latency()
    """Time of whole replies and complete streams."""


def compute_metrics(
    results: Sequence[TrialResult], reference: Mapping[tuple[str, bool], bool] | None = None
) -> Metrics:
    """Return the metrics of these results.

    Args:
        results: The results of a run, complete or not.
        reference: For digest and mode of the samples of a reference run, whether the reply called a tool.
    """
    replies = [result for result in results if result.has_reply]
    tool_replies = [result for result in results if result.wants_tools]
    return Metrics(
        total=len(results),
        right=_rate(results, lambda result: result.is_right),
        right_corrected=_rate(results, lambda result: not result.corrected_failures),
        right_by_mode=_rates_by(results, lambda result: "stream" if result.stream else "whole"),
        right_by_category=_rates_by(results, lambda result: result.category),
        success=_rate(results, lambda result: result.has_reply),
        attempts_success=Rate(len(replies), sum(result.attempts for result in results)),
        finish_tool_calls=Rate(len(tool_replies), len(results)),
        schema_accuracy=_rate(tool_replies, lambda result: result.are_calls_valid is True),
        finish_reason=_rate(replies, _has_right_finish_reason),
        not_only_thinking=_rate(results, lambda result: not result.is_only_thinking),
        trigger_match=_rate([result for result in results if result.expects != "any"], _ends_as_expected),
        expected_triggers=_score_expectations(results),
        reference_triggers=score_triggers(results, reference) if reference is not None else None,
        language=_check_rate(results, "contains_russian_characters_unicode", "language"),
        repetition=_check_rate(results, "repeat_n_gram", "repetition"),
        parameter_order=_check_rate(results, "scenario_check", "parameter-order"),
        prompt_tokens=_prompt_token_rate(results),
        first_content=_latency(result.first_content_seconds for result in replies if result.stream),
        duration=_latency(result.seconds for result in replies),
    )


def _has_right_finish_reason(result: TrialResult) -> bool:
    return bool(result.finish_reason) and not result.has_failed("finish-reason")


def _ends_as_expected(result: TrialResult) -> bool:
    """Return whether a reply ends with a call if one is expected, and otherwise regularly without one."""
    if result.expects == "calls":
        return result.wants_tools
    return result.has_reply and not result.wants_tools and result.finish_reason in TEXT_FINISH_REASONS


def _rate(results: Sequence[TrialResult], is_counted: Callable[[TrialResult], bool]) -> Rate:
    return Rate(sum(map(is_counted, results)), len(results))


def _rates_by(results: Iterable[TrialResult], group_of: Callable[[TrialResult], str]) -> dict[str, Rate]:
    groups: dict[str, list[TrialResult]] = {}
    for result in results:
        groups.setdefault(group_of(result), []).append(result)
    return {name: _rate(group, lambda result: result.is_right) for name, group in groups.items()}


def _check_rate(results: Iterable[TrialResult], check: str, kind: str) -> Rate | None:
    """Return the share that passes a check, of the replies to samples that ask for it; None if none does."""
    checked = [result for result in results if check in result.checks and result.has_reply]
    return _rate(checked, lambda result: not result.has_failed(kind)) if checked else None


def _prompt_token_rate(results: Iterable[TrialResult]) -> Rate | None:
    checked = [result for result in results if result.category == "prompt-tokens"]
    return (
        _rate(checked, lambda result: result.has_reply and not result.has_failed("prompt-tokens")) if checked else None
    )


def _score_expectations(results: Iterable[TrialResult]) -> TriggerScore:
    decided = [result for result in results if result.expects != "any"]
    return _count_pairs((result.wants_tools, result.expects == "calls") for result in decided)


def score_triggers(results: Iterable[TrialResult], reference: Mapping[tuple[str, bool], bool]) -> TriggerScore:
    """Return the agreement with a reference. A request without a reply calls no tool.

    Args:
        results: The results of the run.
        reference: For digest and mode of a sample, whether the reply of the reference called a tool. Samples that the
            reference does not have are left out.
    """
    pairs = ((result, reference.get((result.digest, result.stream))) for result in results)
    return _count_pairs((result.wants_tools, called) for result, called in pairs if called is not None)


def _count_pairs(pairs: Iterable[tuple[bool, bool]]) -> TriggerScore:
    counts = {(True, True): 0, (True, False): 0, (False, True): 0, (False, False): 0}
    for pair in pairs:
        counts[pair] += 1
    return TriggerScore(counts[True, True], counts[True, False], counts[False, True], counts[False, False])


def _latency(times: Iterable[float]) -> Latency:
    known = sorted(seconds for seconds in times if seconds > 0)
    return Latency(len(known), *(percentile(known, share) for share in PERCENTILES)) if known else Latency()


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the percentile of sorted numbers, by linear interpolation."""
    position = (len(ordered) - 1) * share / 100
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)
