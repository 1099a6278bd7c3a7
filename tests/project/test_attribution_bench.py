"""Tests of bench.attribution: its page is complete, and its measurements meet the promise of 95 %."""

from __future__ import annotations

import asyncio
import re

import pytest

from bench.attribution import (
    KINDS,
    PAGE,
    SCENARIO_CAUSES,
    Tally,
    measure_engines,
    measure_fault_server,
    page,
    upstream_scenarios,
)
from interlingua.faults.engines import ENGINE_FAULTS, EngineKind
from interlingua.verification.attribution import CAUSES
from interlingua.verification.samples.builtin import builtin_samples

TEXT = PAGE.read_text(encoding="utf-8")
QUICK_SCENARIOS = [
    scenario for scenario in upstream_scenarios() if scenario.row in (4, 5, 6, 8, 9, 10, 13, 16, 25, 26, 27, 29, 30)
]
"""Scenarios that need no timeout."""


def test_page_lists_every_fault_with_its_cause() -> None:
    for name, fault in ENGINE_FAULTS.items():
        assert f"| `{name}` | {fault.cause} | {fault.description} |" in TEXT


def test_page_reports_at_least_95_percent() -> None:
    shares = re.findall(r"^\| ([\w. ]+) \| ([\d,]+) of ([\d,]+) \([\d.]+ %\) \|$", TEXT, re.M)
    assert [name for name, _, _ in shares] == ["vLLM", "SGLang", "llama.cpp", "provider", "fault server"]
    for name, right, failures in shares:
        assert int(right.replace(",", "")) >= 0.95 * int(failures.replace(",", "")), name


def test_faults_of_the_fault_server_are_attributed_right() -> None:
    tallies = asyncio.run(measure_fault_server(QUICK_SCENARIOS))
    failures = sum(tally.failures for tally in tallies.values())
    right = sum(tally.right for tally in tallies.values())
    assert failures > 25
    assert right >= 0.95 * failures, {name: tally for name, tally in tallies.items() if tally.right < tally.failures}


def test_true_causes_are_of_scenarios_that_exist() -> None:
    assert SCENARIO_CAUSES.keys() <= {scenario.name for scenario in upstream_scenarios()}
    assert set(SCENARIO_CAUSES.values()) <= CAUSES.keys()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_faults_of_engines_are_attributed_right(kind: EngineKind, capsys: pytest.CaptureFixture[str]) -> None:
    tallies = measure_engines([kind], ["glm45"], builtin_samples()[1::9])[kind]
    assert "glm45" in capsys.readouterr().err
    failures = sum(tally.failures for tally in tallies.values())
    assert sum(tally.right for tally in tallies.values()) >= 0.93 * failures


def test_page_of_few_results() -> None:
    tallies = {name: Tally(fault.cause) for name, fault in ENGINE_FAULTS.items()}
    tallies["parser-off"].found.update({"engine-parser": 9, "model": 1})
    text = page({"vllm": tallies}, {"fault-x": Tally("transport")}, 10, ["kimi_k2"])
    assert "9 of 10; model 1" in text
    assert "| vLLM | 9 of 10 (90.0 %) |" in text
