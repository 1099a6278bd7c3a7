"""Translation of a reply takes time in proportion to its size, whatever list or text in it is long.

`python -m bench.growth` prints the measured times.
"""

from __future__ import annotations

import pytest

from tests.support.growth import GrowthCase, check_case
from tests.support.growth_replies import BODY_CASES, STREAM_CASES

QUICK_SECONDS, LONG_SECONDS = 0.008, 0.03
"""CPU time of the smaller input. Some quadratic costs show only in longer inputs."""


@pytest.mark.one_row_in(4)
@pytest.mark.parametrize("case", [*STREAM_CASES, *BODY_CASES][::8], ids=lambda case: case.name)
def test_time_is_linear(case: GrowthCase) -> None:
    check_case(case, QUICK_SECONDS)


@pytest.mark.slow
@pytest.mark.parametrize("case", [*STREAM_CASES, *BODY_CASES], ids=lambda case: case.name)
def test_time_is_linear_for_long_replies(case: GrowthCase) -> None:
    check_case(case, LONG_SECONDS)
