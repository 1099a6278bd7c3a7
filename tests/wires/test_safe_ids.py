"""Reversible encoding of ids with characters that a wire forbids."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.wires.safe_ids import decode_id, encode_id

LEGAL = re.compile(r"[a-zA-Z0-9_-]+")

ROWS = {
    "toolu_01A-b": "toolu_01A-b",
    "call_1": "call_1",
    "il-foo": "il-foo",
    "functions.Bash:0": "il-functions_2eBash_3a0",
    "call_1.x": "il-call_5f1_2ex",
    "é🙂": "il-_c3_a9_f0_9f_99_82",
    "": "il-",
    "il-a_2e": "il-il-a_5f2e",  # legal, but it would be decoded as `a.`
    "il-_zz": "il-_zz",
    "il-_ff": "il-_ff",
}


@pytest.mark.parametrize(("id", "legal"), ROWS.items())
def test_encode_and_decode(id: str, legal: str) -> None:
    assert encode_id(id) == legal
    assert decode_id(legal) == id


@given(st.text() | st.from_regex(r"(il-)+([a-z.]|_[0-9a-f]{2})*", fullmatch=True))
def test_any_id_round_trips(id: str) -> None:
    assert LEGAL.fullmatch(encode_id(id))
    assert decode_id(encode_id(id)) == id


@given(st.lists(st.from_regex(r"(il-)*(a|_2e|_5f|\.|_)*", fullmatch=True), unique=True))
def test_encoding_is_injective(ids: list[str]) -> None:
    assert len({encode_id(id) for id in ids}) == len(ids)
