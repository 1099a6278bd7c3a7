"""Tests of the fuzzers: each runs a few rows from a fixed seed. `make fuzz` runs them longer."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from fuzz import chunks, cost, dialects, sse, streams
from fuzz.engine import BrokenPromise, Fuzzer
from interlingua.wires.streaming.sse import SseDecoder

FUZZERS: dict[str, tuple[Callable[[bytes], Any], Sequence[Callable[[Any], None]]]] = {
    "dialects": (dialects.Row.from_bytes, dialects.CHECKS),
    "sse": (sse.from_bytes, streams.CHECKS),
    "chunks": (chunks.from_bytes, streams.CHECKS),
    "cost": (cost.from_bytes, cost.CHECKS),
}


@pytest.mark.parametrize("name", FUZZERS)
def test_rows_from_fixed_seed_pass(name: str) -> None:
    from_bytes, checks = FUZZERS[name]
    chance = random.Random(name)
    for _ in range(4 if name == "cost" else 40):  # a row of `cost` takes half a second
        row = from_bytes(chance.randbytes(chance.randint(6, 48)))
        for check in checks:
            check(row)


def test_failing_row_is_minimized() -> None:
    def has_no_error(row: streams.Row) -> None:
        if b"boom" in row.stream:
            raise BrokenPromise("no boom", "boom", "")

    fuzzer = Fuzzer(__doc__, sse.from_bytes, [has_no_error])
    row = streams.Row.of(
        streams.Route("openai-chat", "openai-chat", "hermes", 1, 1), b"data: {}\n\ndata: a boom\n\n", [3]
    )
    broken = fuzzer.first_broken_promise(row)
    assert broken is not None
    assert fuzzer.minimize(row, broken).stream == b"boom"


def test_exception_in_a_check_breaks_a_promise() -> None:
    def fails(_: streams.Row) -> None:
        SseDecoder(limit=1).feed(b"data: {}\n\n")

    broken = Fuzzer(__doc__, sse.from_bytes, [fails]).first_broken_promise(sse.from_bytes(b""))
    assert broken is not None
    assert (broken.promise, broken.way) == ("nothing raises", "UpstreamError in _check_limit")
