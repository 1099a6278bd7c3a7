"""What upstreams report corrects the next estimate for their model, and nothing that they report can spoil it."""

from __future__ import annotations

from typing import Any

import pytest

from interlingua.events import Usage
from interlingua.gateway.tokens import calibration as token_counts
from interlingua.gateway.tokens.calibration import EstimateCalibration, tokens_from_size

BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "The quick brown fox jumps over the dog. " * 300}]}


def compared(*reported: float, size: int = 3000) -> EstimateCalibration:
    """After an upstream has reported so many times what was expected, again and again."""
    counts = EstimateCalibration()
    for ratio in reported:
        counts.record_usage(size, Usage(input=round(size * ratio)), "one", "m")
    return counts


def test_the_first_that_is_reported_corrects_at_once() -> None:
    assert compared(1.3).apply_correction(1000, "one", "m") == 1300
    assert compared().apply_correction(1000, "one", "m") == 1000


def test_each_model_of_each_upstream_is_corrected_by_itself() -> None:
    counts = compared(1.3)
    assert counts.apply_correction(1000, "one", "other") == counts.apply_correction(1000, "two", "m") == 1000


def test_one_that_differs_moves_little_once_much_is_known() -> None:
    assert compared(*[1.2] * 10, 2).apply_correction(1000, "one", "m") == pytest.approx(1360, abs=5)
    assert compared(*[1.2] * 10, *[0.8] * 30).apply_correction(1000, "one", "m") == pytest.approx(800, abs=5)


def test_small_requests_say_less() -> None:
    assert compared(2, size=100).apply_correction(1000, "one", "m") == 1050
    assert compared(2, size=30).apply_correction(1000, "one", "m") == 1000


@pytest.mark.parametrize("ratio", [0, -1, 0.01, 100, 10**12])
def test_absurd_reports_are_ignored(ratio: float) -> None:
    assert compared(1.1, ratio).apply_correction(1000, "one", "m") == 1100


@pytest.mark.parametrize(("ratio", "factor"), [(4.5, 2.5), (0.25, 0.5)])
def test_no_correction_goes_too_far(ratio: float, factor: float) -> None:
    assert compared(*[ratio] * 50).apply_correction(1000, "one", "m") == 1000 * factor


def test_only_some_requests_are_estimated_once_a_model_is_known() -> None:
    counts = EstimateCalibration()
    estimated = 0
    for _ in range(100):
        expected = counts.estimate_for_comparison(BODY, "one", "m")
        estimated += expected is not None
        counts.record_usage(expected or 0, Usage(input=2000), "one", "m")
    assert 4 <= estimated <= 4 + 100 // 16 + 1


def test_all_are_while_it_reports_nothing() -> None:
    counts = compared(*[1.2] * 10)
    counts.record_usage(0, Usage(input=5, estimated=True), "one", "m")
    assert all(counts.estimate_for_comparison(BODY, "one", "m") is not None for _ in range(20))
    assert counts.apply_correction(1000, "one", "m") == 1200, "an estimate teaches nothing"
    counts.record_usage(1000, Usage(input=1200), "one", "m")
    assert any(counts.estimate_for_comparison(BODY, "one", "m") is None for _ in range(3))


def test_models_without_end_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_counts, "MAX_MODELS", 3)
    counts = compared(1.5)
    for n in range(2):
        counts.estimate_for_comparison(BODY, "one", f"m{n}")
    assert counts.apply_correction(1000, "one", "m") == 1500, "it was asked last"
    for n in range(3):
        counts.estimate_for_comparison(BODY, "one", f"n{n}")
    assert counts.apply_correction(1000, "one", "m") == 1000


def test_a_count_is_corrected_too() -> None:
    assert compared(1.5).count(BODY, "one", "m") == pytest.approx(
        1.5 * EstimateCalibration().count(BODY, "", ""), abs=1
    )
    assert tokens_from_size(4000) == 1000
    assert tokens_from_size(0) == 1
