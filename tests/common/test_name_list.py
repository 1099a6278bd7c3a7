"""Tests of lists of names in sentences."""

from __future__ import annotations

import pytest

from interlingua.common.name_list import join_names


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b"], "a, b"),
        (list("abc"), "a, b and 1 more"),
        (list("abcd"), "a, b and 2 more"),
    ],
)
def test_names_beyond_the_limit_are_counted(names: list[str], expected: str) -> None:
    assert join_names(names, limit=2) == expected
