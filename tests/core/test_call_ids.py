"""Call ids of earlier turns, packed until they are looked for."""

from __future__ import annotations

import pytest

from interlingua.core.call_ids import CallIdAllocator, PackedIds


@pytest.mark.parametrize("ids", [[], ["call_1"], ["functions.ls:0", "", "ü…😀", "a\x00b", "\ud800", "functions.ls:0"]])
def test_packed_ids_are_the_same_ids(ids: list[str]) -> None:
    packed = PackedIds.pack(ids)
    assert (list(packed), len(packed)) == (ids, len(ids))
    assert all(id in packed for id in ids)
    assert "functions.ls:1" not in packed
    assert list(packed) == ids, "also after a search"


def test_choices_share_the_packed_ids() -> None:
    packed = PackedIds.pack(["functions.ls:0"])
    first, second = CallIdAllocator(packed, "a/0"), CallIdAllocator(packed, "a/1")
    assert [one.allocate("functions.ls:0", 0) for one in (first, second)] == ["functions.ls:1", "functions.ls:1"]
    assert first._earlier_ids is second._earlier_ids is packed
