"""The number of values in a JSON text: counted outside of strings, wherever the text is sliced."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.common.jsontext import value_count
from interlingua.common.jsontext.value_count import has_at_most_values
from tests.support.growth import check_growth

JSON_VALUES = st.recursive(
    st.none() | st.integers() | st.text(alphabet='ab,[{"\\é', max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(alphabet='a,"\\', max_size=3), inner),
    max_leaves=30,
)


def counted_values(value: Any) -> int:
    """Return the number of values; an empty list or object counts twice, and a key does not count."""
    if not isinstance(value, list | dict):
        return 1
    inner = value.values() if isinstance(value, dict) else value
    return 1 + sum(map(counted_values, inner)) if value else 2


@given(JSON_VALUES, st.integers(1, 20), st.booleans())
def test_limit_is_exact_in_every_slice(value: Any, slice_bytes: int, ascii_only: bool) -> None:
    data, count = json.dumps(value, ensure_ascii=ascii_only).encode(), counted_values(value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(value_count, "SLICE_BYTES", slice_bytes)
        patch.setattr(value_count, "BYTES_PER_VALUE", 0)
        assert has_at_most_values(data, count)
        assert not has_at_most_values(data, count - 1)


@pytest.mark.parametrize(
    "unit",
    [b'"x, [y], {z}",', b'"\\"[,",', b"[],", b"1,", b'"\\\\",'],
    ids=["separators in strings", "escaped quotes", "lists", "numbers", "backslashes"],
)
def test_cost_grows_linearly(unit: bytes) -> None:
    def count(repeats: int) -> None:
        assert has_at_most_values(b"[" + unit * repeats + b"0]", 2 * repeats + 2)

    check_growth(count, 100_000, 400_000, limit=8)
