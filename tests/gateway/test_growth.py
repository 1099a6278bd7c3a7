"""Captures, redaction, token estimates and checks of arguments take time in proportion to their input.

`python -m bench.growth` prints the measured times.
"""

from __future__ import annotations

import pytest

from tests.support.growth import GrowthCase, check_case
from tests.support.growth_checks import CHECK_CASES


@pytest.mark.parametrize("case", CHECK_CASES, ids=lambda case: case.name)
def test_time_is_linear(case: GrowthCase) -> None:
    check_case(case, 0.01)
