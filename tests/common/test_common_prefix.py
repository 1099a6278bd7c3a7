"""Length of the common beginning of two texts, byte strings or lists."""

from __future__ import annotations

import pytest

from interlingua.common.common_prefix import common_prefix_length


@pytest.mark.parametrize("common", [0, 1, 255, 256, 257, 1000, 5000])
@pytest.mark.parametrize(("left", "right"), [("", ""), ("a", ""), ("a", "b"), ("a" * 3000, "b" * 10)])
def test_common_beginning(common: int, left: str, right: str) -> None:
    a, b = "x" * common + left, "x" * common + right
    for start in {0, common // 2, common}:
        assert common_prefix_length(a, b, start) == common
        assert common_prefix_length(a.encode(), b.encode(), start) == common
        assert common_prefix_length(list(b), list(a), start) == common
