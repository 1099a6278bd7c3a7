"""Every row of every dialect's fixtures, in every cutting."""

from __future__ import annotations

import pytest

from tests.harness import FIXTURES, Case, cases, check, check_streams, check_truncations

CASES = [case for path in sorted(FIXTURES.glob("*.toml")) for case in cases(path.stem)]
rows = pytest.mark.parametrize("case", CASES, ids=str)


@rows
def test_every_cut(case: Case) -> None:
    check(case)


@rows
def test_every_truncation(case: Case) -> None:
    check_truncations(case)


@pytest.mark.parametrize("case", [case for case in CASES if not case.findings], ids=str)
def test_nothing_waits_that_need_not(case: Case) -> None:
    check_streams(case)
