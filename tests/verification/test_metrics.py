"""Metrics, compared with examples that were computed by hand from the definitions of the other verifiers."""

from __future__ import annotations

from typing import Any

import pytest

from interlingua.verification.judging.failure import Failure
from interlingua.verification.run.metrics import Rate, TriggerScore, compute_metrics, percentile, score_triggers
from interlingua.verification.run.trial_result import TrialResult


def result(number: int, *, stream: bool = False, **fields: Any) -> TrialResult:
    defaults: dict[str, Any] = {"id": f"s-{number}", "category": "samples", "digest": f"d{number}", "status": 200}
    return TrialResult(stream=stream, **defaults | fields)


def finished(number: int, reason: str, *, valid: bool | None = None, **fields: Any) -> TrialResult:
    return result(number, finish_reason=reason, wants_tools=reason == "tool_calls", are_calls_valid=valid, **fields)


@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    [(0, 0, 0.0, 1.0), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (80, 100, 0.7112, 0.8666), (1, 2, 0.0945, 0.9055)],
)
def test_wilson_interval(count: int, total: int, low: float, high: float) -> None:
    """The bounds are those of published tables of the score interval."""
    assert Rate(count, total).interval == pytest.approx((low, high), abs=5e-5)


def test_trigger_similarity_of_k2_vendor_verifier() -> None:
    """Six samples: three true positives, one false positive, one false negative, one true negative."""
    reasons = ["tool_calls", "tool_calls", "tool_calls", "tool_calls", "stop", "length"]
    reference_reasons = ["tool_calls", "tool_calls", "tool_calls", "stop", "tool_calls", "stop"]
    results = [finished(n, reason) for n, reason in enumerate(reasons)]
    reference = {(f"d{n}", False): reason == "tool_calls" for n, reason in enumerate(reference_reasons)}
    score = score_triggers(results, reference)
    assert score == TriggerScore(3, 1, 1, 1)
    assert score.precision == pytest.approx(3 / 4)
    assert score.recall == pytest.approx(3 / 4)
    assert score.f1 == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("score", "f1"),
    [
        (TriggerScore(2, 0, 2, 0), 2 * 1.0 * 0.5 / 1.5),
        (TriggerScore(0, 3, 3, 1), 0.0),
        (TriggerScore(0, 0, 4, 1), 0.0),
        (TriggerScore(0, 0, 0, 5), None),
    ],
)
def test_f1(score: TriggerScore, f1: float | None) -> None:
    assert score.f1 == (pytest.approx(f1) if f1 is not None else None)


def test_failed_request_calls_no_tool() -> None:
    """By the definition, everything but `tool_calls` is another finish reason."""
    failed = result(0, status=500, failures=(Failure("no-reply", "x"),))
    assert score_triggers([failed], {("d0", False): True}) == TriggerScore(0, 0, 1, 0)


def test_samples_without_reference_are_left_out() -> None:
    assert score_triggers([finished(0, "stop"), finished(1, "stop")], {("d1", False): False}).pairs == 1


def test_schema_accuracy_and_finish_rate() -> None:
    """Ten requests: eight end with calls, of which seven are valid; one has the finish reason and no call."""
    results = [finished(n, "tool_calls", valid=True) for n in range(7)]
    results += [finished(7, "tool_calls", valid=False), finished(8, "stop"), result(9, status=503)]
    metrics = compute_metrics(results)
    assert metrics.schema_accuracy == Rate(7, 8)
    assert metrics.finish_tool_calls == Rate(8, 10)
    assert metrics.success == Rate(9, 10)


def test_finish_reason_is_there_and_matches() -> None:
    results = [
        finished(0, "stop"),
        finished(1, "stop", failures=(Failure("finish-reason", "1 call"),)),
        finished(2, ""),
    ]
    assert compute_metrics(results).finish_reason == Rate(1, 3)


def test_success_rate_counts_attempts() -> None:
    """MiniMax-Provider-Verifier divides by all attempts: nine successes of thirteen requests."""
    results = [finished(n, "stop") for n in range(8)]
    results += [finished(8, "stop", attempts=2), result(9, status=500, attempts=3)]
    assert compute_metrics(results).attempts_success == Rate(9, 13)


def test_only_thinking_and_checks() -> None:
    results = [
        result(0, is_only_thinking=True),
        result(1, checks=("contains_russian_characters_unicode",), failures=(Failure("language", "x"),)),
        result(2, checks=("contains_russian_characters_unicode",)),
        result(3, checks=("repeat_n_gram",)),
        result(4, category="prompt-tokens"),
        result(5, category="prompt-tokens", failures=(Failure("prompt-tokens", "x"),)),
    ]
    metrics = compute_metrics(results)
    assert metrics.not_only_thinking == Rate(5, 6)
    assert metrics.language == Rate(1, 2)
    assert metrics.repetition == Rate(1, 1)
    assert metrics.prompt_tokens == Rate(1, 2)


def test_right_rates_by_mode_and_category() -> None:
    wrong = (Failure("no-call", "x"),)
    results = [
        result(0, stream=True, category="a"),
        result(1, stream=True, category="b", failures=wrong),
        result(2, category="a", failures=wrong, corrected_failures=("no-call",)),
    ]
    metrics = compute_metrics(results)
    assert metrics.right == Rate(1, 3)
    assert metrics.right_corrected == Rate(2, 3)
    assert metrics.right_by_mode == {"stream": Rate(1, 2), "whole": Rate(0, 1)}
    assert metrics.right_by_category == {"a": Rate(1, 2), "b": Rate(0, 1)}


def test_expected_triggers_need_an_expectation() -> None:
    results = [
        finished(0, "tool_calls", expects="calls"),
        finished(1, "tool_calls", expects="text"),
        finished(2, "tool_calls"),
    ]
    assert compute_metrics(results).expected_triggers == TriggerScore(1, 1, 0, 0)


def test_match_rate_of_minimax_provider_verifier() -> None:
    """Six labelled requests: a call and a text as expected; a wrong one of each; a cut text; no reply."""
    results = [
        finished(0, "tool_calls", expects="calls"),
        finished(1, "stop", expects="text"),
        finished(2, "stop", expects="calls"),
        finished(3, "tool_calls", expects="text"),
        finished(4, "length", expects="text"),
        result(5, status=503, expects="text"),
        finished(6, "tool_calls"),
    ]
    assert compute_metrics(results).trigger_match == Rate(2, 6)


@pytest.mark.parametrize(("share", "value"), [(0, 1.0), (50, 2.5), (90, 3.7), (100, 4.0)])
def test_percentile(share: float, value: float) -> None:
    assert percentile([1.0, 2.0, 3.0, 4.0], share) == pytest.approx(value)


def test_no_results() -> None:
    metrics = compute_metrics([])
    assert metrics.right == Rate(0, 0)
    assert metrics.right.value is None
