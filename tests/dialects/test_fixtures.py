"""Every row of every dialect's fixtures, in all cuts."""

from __future__ import annotations

import pytest

from tests.support.harness import (
    FIXTURES,
    Case,
    check_all_cuts,
    check_streaming,
    check_truncations,
    check_whole,
    load_cases,
)

CASES = [case for path in sorted(FIXTURES.glob("*.toml")) for case in load_cases(path.stem)]
rows = pytest.mark.parametrize("case", CASES, ids=str)


@rows
def test_whole(case: Case) -> None:
    check_whole(case)


@pytest.mark.slow
@rows
def test_every_cut(case: Case) -> None:
    check_all_cuts(case)


@pytest.mark.slow
@rows
def test_every_truncation(case: Case) -> None:
    check_truncations(case)


@pytest.mark.one_row_in(3)
@pytest.mark.parametrize("case", [case for case in CASES if not case.findings], ids=str)
def test_no_unnecessary_buffering(case: Case) -> None:
    check_streaming(case)
