"""Tests of calibration: reported usage corrects later estimates, and implausible usage has no effect."""

from __future__ import annotations

from typing import Any

import pytest

from interlingua.events import Usage
from interlingua.gateway import token_calibration as calibration_module
from interlingua.gateway.shared_memory.event_log import EventLog, EventRings
from interlingua.gateway.token_calibration import EstimateCalibration, tokens_from_size

BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "The quick brown fox jumps over the dog. " * 300}]}


def calibrated(*reported: float, size: int = 3000) -> EstimateCalibration:
    """Return a calibration after usage reports with these ratios to the estimate."""
    calibration = EstimateCalibration()
    for ratio in reported:
        calibration.record_usage(size, Usage(input=round(size * ratio)), "one", "m")
    return calibration


def test_first_reported_usage_corrects_at_once() -> None:
    assert calibrated(1.3).apply_correction(1000, "one", "m") == 1300
    assert calibrated().apply_correction(1000, "one", "m") == 1000


def test_calibration_is_separate_per_upstream_and_model() -> None:
    calibration = calibrated(1.3)
    assert calibration.apply_correction(1000, "one", "other") == calibration.apply_correction(1000, "two", "m") == 1000


def test_outlier_has_little_weight_after_many_comparisons() -> None:
    assert calibrated(*[1.2] * 10, 2).apply_correction(1000, "one", "m") == pytest.approx(1360, abs=5)
    assert calibrated(*[1.2] * 10, *[0.8] * 30).apply_correction(1000, "one", "m") == pytest.approx(800, abs=5)


def test_small_requests_have_less_weight() -> None:
    assert calibrated(2, size=100).apply_correction(1000, "one", "m") == 1050
    assert calibrated(2, size=30).apply_correction(1000, "one", "m") == 1000


@pytest.mark.parametrize("ratio", [0, -1, 0.01, 100, 10**12])
def test_implausible_usage_is_ignored(ratio: float) -> None:
    assert calibrated(1.1, ratio).apply_correction(1000, "one", "m") == 1100


@pytest.mark.parametrize(("ratio", "factor"), [(4.5, 2.5), (0.25, 0.5)])
def test_correction_factor_is_bounded(ratio: float, factor: float) -> None:
    assert calibrated(*[ratio] * 50).apply_correction(1000, "one", "m") == 1000 * factor


def test_calibrated_model_is_compared_only_sometimes() -> None:
    calibration = EstimateCalibration()
    estimated = 0
    for _ in range(100):
        expected = 2000 if calibration.needs_comparison("one", "m") else 0
        estimated += expected > 0
        calibration.record_usage(expected, Usage(input=2000), "one", "m")
    assert 4 <= estimated <= 4 + 100 // 16 + 1


def test_all_requests_are_estimated_while_usage_is_missing() -> None:
    calibration = calibrated(*[1.2] * 10)
    calibration.record_usage(0, Usage(input=5, estimated=True), "one", "m")
    assert all(calibration.needs_comparison("one", "m") for _ in range(20))
    assert calibration.apply_correction(1000, "one", "m") == 1200, "estimated usage must not change the factor"
    calibration.record_usage(1000, Usage(input=1200), "one", "m")
    assert not all(calibration.needs_comparison("one", "m") for _ in range(3))


def test_workers_have_the_same_calibration() -> None:
    rings = EventRings(2)
    logs = [EventLog(rings, worker) for worker in range(2)]
    workers = [EstimateCalibration(log) for log in logs]
    alone = EstimateCalibration()
    for number, ratio in enumerate((1.3, 1.1, 0.9, 1.5, 1.2)):
        for calibration in (workers[number % 2], alone):
            calibration.record_usage(3000, Usage(input=round(3000 * ratio)), "one", "m")
    for log in logs:
        log.poll()
    corrected = [calibration.apply_correction(1000, "one", "m") for calibration in (*workers, alone)]
    assert corrected == [corrected[0]] * 3
    assert corrected[0] != 1000
    workers[0].record_usage(0, Usage(input=5, estimated=True), "one", "m")
    logs[1].poll()
    assert all(workers[1].needs_comparison("one", "m") for _ in range(20))


def test_number_of_calibrated_models_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration_module, "MAX_MODELS", 3)
    calibration = calibrated(1.5)
    for n in range(2):
        calibration.needs_comparison("one", f"m{n}")
    assert calibration.apply_correction(1000, "one", "m") == 1500, "the model was used most recently"
    for n in range(3):
        calibration.needs_comparison("one", f"n{n}")
    assert calibration.apply_correction(1000, "one", "m") == 1000


def test_token_count_is_corrected() -> None:
    assert calibrated(1.5).count(BODY, "one", "m") == pytest.approx(
        1.5 * EstimateCalibration().count(BODY, "", ""), abs=1
    )
    assert tokens_from_size(4000) == 1000
    assert tokens_from_size(0) == 1
