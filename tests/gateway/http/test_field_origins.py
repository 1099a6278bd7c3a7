"""Tests of origins: errors about a request that the gateway has changed name the field of the client."""

from __future__ import annotations

import pytest

from interlingua.errors import BadRequest
from interlingua.gateway.http.field_origins import Origin, Origins, name_client_field


def origins_of(*origins: Origin, items: int = 0) -> Origins:
    """Return these origins, and behind them those of items of the field `input`."""
    result = Origins(origins)
    result.add_items("input", items)
    return result


CONTINUED = origins_of(Origin("previous_response_id", is_same=False), items=100_000)
SPLIT = origins_of(Origin("input[1]", is_same=False), Origin("input[1]", is_same=False), Origin("input[2]"))


@pytest.mark.parametrize(
    ("path", "changes", "expected"),
    [
        ("input[0].content", [], "input[0].content"),
        ("input[0].content", [CONTINUED], "previous_response_id"),
        ("input[1].content", [CONTINUED], "input[0].content"),
        ("input[100000].id", [CONTINUED], "input[99999].id"),
        ("input[100001].id", [CONTINUED], "input[100001].id"),
        ("input[0].content[1]", [CONTINUED, SPLIT], "input[0]"),
        ("input[2].content[1]", [CONTINUED, SPLIT], "input[1].content[1]"),
        ("model", [CONTINUED, SPLIT], "model"),
    ],
)
def test_error_names_field_of_the_client(path: str, changes: list[Origins], expected: str) -> None:
    error = BadRequest(path, "is wrong")
    name_client_field(error, "input", changes)
    assert (error.path, str(error)) == (expected, f"{expected}: is wrong")


def test_origins_are_those_of_all_items() -> None:
    joined = Origins([Origin("a")])
    joined.extend(origins_of(items=2))
    joined.add(Origin("b", is_same=False), 2)
    paths = ["a", "input[0]", "input[1]", "b", "b"]
    assert [origin.path for origin in joined] == paths
    assert len(joined) == len(paths)
    assert [joined.find(n) for n in range(6)] == [*joined, None]
