"""What upstreams report corrects the next estimate for their model, and nothing that they report can spoil it."""

from __future__ import annotations

from typing import Any

import pytest

from interlingua.events import Usage
from interlingua.gateway.tokens import calibration as token_counts
from interlingua.gateway.tokens.calibration import TokenCounts, roughly

BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "The quick brown fox jumps over the dog. " * 300}]}


def compared(*reported: float, size: int = 3000) -> TokenCounts:
    """After an upstream has reported so many times what was expected, again and again."""
    counts = TokenCounts()
    for ratio in reported:
        counts.compare(size, Usage(input=round(size * ratio)), "one", "m")
    return counts


def test_the_first_that_is_reported_corrects_at_once() -> None:
    assert compared(1.3).corrected(1000, "one", "m") == 1300
    assert compared().corrected(1000, "one", "m") == 1000


def test_each_model_of_each_upstream_is_corrected_by_itself() -> None:
    counts = compared(1.3)
    assert counts.corrected(1000, "one", "other") == counts.corrected(1000, "two", "m") == 1000


def test_one_that_differs_moves_little_once_much_is_known() -> None:
    assert compared(*[1.2] * 10, 2).corrected(1000, "one", "m") == pytest.approx(1360, abs=5)
    assert compared(*[1.2] * 10, *[0.8] * 30).corrected(1000, "one", "m") == pytest.approx(800, abs=5)


def test_small_requests_say_less() -> None:
    assert compared(2, size=100).corrected(1000, "one", "m") == 1050
    assert compared(2, size=30).corrected(1000, "one", "m") == 1000


@pytest.mark.parametrize("ratio", [0, -1, 0.01, 100, 10**12])
def test_absurd_reports_are_ignored(ratio: float) -> None:
    assert compared(1.1, ratio).corrected(1000, "one", "m") == 1100


@pytest.mark.parametrize(("ratio", "factor"), [(4.5, 2.5), (0.25, 0.5)])
def test_no_correction_goes_too_far(ratio: float, factor: float) -> None:
    assert compared(*[ratio] * 50).corrected(1000, "one", "m") == 1000 * factor


def test_only_some_requests_are_estimated_once_a_model_is_known() -> None:
    counts = TokenCounts()
    estimated = 0
    for _ in range(100):
        expected = counts.expect(BODY, "one", "m")
        estimated += expected is not None
        counts.compare(expected or 0, Usage(input=2000), "one", "m")
    assert 4 <= estimated <= 4 + 100 // 16 + 1


def test_all_are_while_it_reports_nothing() -> None:
    counts = compared(*[1.2] * 10)
    counts.compare(0, Usage(input=5, estimated=True), "one", "m")
    assert all(counts.expect(BODY, "one", "m") is not None for _ in range(20))
    assert counts.corrected(1000, "one", "m") == 1200, "an estimate teaches nothing"
    counts.compare(1000, Usage(input=1200), "one", "m")
    assert any(counts.expect(BODY, "one", "m") is None for _ in range(3))


def test_models_without_end_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_counts, "MODELS", 3)
    counts = compared(1.5)
    for n in range(2):
        counts.expect(BODY, "one", f"m{n}")
    assert counts.corrected(1000, "one", "m") == 1500, "it was asked last"
    for n in range(3):
        counts.expect(BODY, "one", f"n{n}")
    assert counts.corrected(1000, "one", "m") == 1000


def test_a_count_is_corrected_too() -> None:
    assert compared(1.5).count(BODY, "one", "m") == pytest.approx(1.5 * TokenCounts().count(BODY, "", ""), abs=1)
    assert roughly(4000) == 1000
    assert roughly(0) == 1
