"""The fuzzers work: a few rows of each by chance, always the same ones. `make fuzz` runs them for longer."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from fuzz import chunks, dialects, sse, streams
from fuzz.engine import Broken, Fuzzer
from interlingua.wires.streaming.sse import SseDecoder

FUZZERS: dict[str, tuple[Callable[[bytes], Any], Sequence[Callable[[Any], None]]]] = {
    "dialects": (dialects.Row.chosen_by, dialects.CHECKS),
    "sse": (sse.chosen_by, streams.CHECKS),
    "chunks": (chunks.chosen_by, streams.CHECKS),
}


@pytest.mark.parametrize("name", FUZZERS)
def test_a_few_rows(name: str) -> None:
    chosen_by, checks = FUZZERS[name]
    chance = random.Random(name)
    for _ in range(40):
        row = chosen_by(chance.randbytes(chance.randint(6, 48)))
        for check in checks:
            check(row)


def test_what_fails_is_told_as_small_as_it_can_be() -> None:
    def has_no_error(row: streams.Row) -> None:
        if b"boom" in row.stream:
            raise Broken("no boom", "boom", "")

    fuzzer = Fuzzer(__doc__, sse.chosen_by, [has_no_error])
    row = streams.Row.of(
        streams.Way("openai-chat", "openai-chat", "hermes", 1, 1), b"data: {}\n\ndata: a boom\n\n", [3]
    )
    broken = fuzzer.broken_by(row)
    assert broken is not None
    assert fuzzer.smallest(row, broken).stream == b"boom"


def test_whatever_a_check_raises_breaks_a_promise() -> None:
    def fails(_: streams.Row) -> None:
        SseDecoder(limit=1).feed(b"data: {}\n\n")

    broken = Fuzzer(__doc__, sse.chosen_by, [fails]).broken_by(sse.chosen_by(b""))
    assert broken is not None
    assert (broken.promise, broken.way) == ("nothing raises", "UpstreamError in _check_limit")
