"""Translation of a request takes time in proportion to its size, whatever list in it is long.

`python -m bench.growth` prints the measured times.
"""

from __future__ import annotations

import pytest

from tests.support.growth import GrowthCase, check_case
from tests.support.growth_requests import CATALOG_CASES, PROFILE_CASES, SOURCE_CASES

QUICK_SECONDS, LONG_SECONDS = 0.01, 0.05
"""CPU time of the smaller input. Some quadratic costs show only in longer inputs."""


@pytest.mark.one_row_in(4)
@pytest.mark.parametrize("case", SOURCE_CASES[::4], ids=lambda case: case.name)
def test_time_is_linear(case: GrowthCase) -> None:
    check_case(case, QUICK_SECONDS)


@pytest.mark.slow
@pytest.mark.parametrize("case", [*SOURCE_CASES, *PROFILE_CASES, *CATALOG_CASES], ids=lambda case: case.name)
def test_time_is_linear_for_each_profile(case: GrowthCase) -> None:
    check_case(case, LONG_SECONDS)
