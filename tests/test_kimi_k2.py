"""Kimi K2: every row of its fixtures, in every cutting."""

from __future__ import annotations

import pytest

from tests.harness import Case, cases, check, check_streams, check_truncations

CASES = cases("kimi_k2")
rows = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])


@rows
def test_every_cut(case: Case) -> None:
    check(case)


@rows
def test_every_truncation(case: Case) -> None:
    check_truncations(case)


@pytest.mark.parametrize("case", [case for case in CASES if not case.findings], ids=lambda case: case.name)
def test_nothing_waits_that_need_not(case: Case) -> None:
    check_streams(case)
