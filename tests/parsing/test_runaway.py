"""Runaway arguments (endless whitespace): detected at the same position for every split, in linear time."""

from __future__ import annotations

import pytest

from interlingua import events as ev
from interlingua.common.jsontext.arguments import ArgumentsStream
from interlingua.common.jsontext.scanner import JsonScanner
from interlingua.core.options import Limits
from interlingua.core.tools import ToolSet
from interlingua.parsing.guard import Guard
from tests.support import cuts
from tests.support.growth import check_growth

LIMITS = Limits(blanks=100)
ROWS = {
    # the arguments, and the number of their characters that are forwarded (None: all)
    '{"a":' + " " * 101: 105,
    '{"a":' + " " * 100 + "1}": None,
    '{"a":' + " " * 60 + "\n" * 60 + "1}": 105,
    '{"a": [1,' + " " * 99 + "2," + "\t" * 300 + "3," + " " * 900: 111 + 99,
    '{"a": "' + " " * 5000 + '"}': None,
    '{"a": "x\\"' + " " * 5000 + '"' + " " * 101 + "}": 5011 + 100,
    "[" + " " * 101: 101,
    "[" + ",".join([" " * 65 + "1"] * 50) + "]": None,
    "[" + ",".join([" " * 65 + "1"] * 50) + " " * 101: 1 + 50 * 67 - 1 + 100,
    '{"a" ~ ' + " " * 200: 6 + 100,
    '{"a": 1}' + " " * 5000: None,
}
END = len('{"a": 1}')
"""The end of the last row's JSON. The stream drops the whitespace behind it."""


def run_guard(pieces: list[str]) -> tuple[str, str]:
    """Return the arguments that the guard forwards, and the message of the failure ("" if there is none)."""
    guard = Guard(ToolSet(None), limits=LIMITS)
    stream = ArgumentsStream(LIMITS.held, LIMITS.blanks)
    events: list[ev.Event] = [ev.CallStart(0, "call_1", "f")]
    events += [ev.ArgsDelta(0, stream.feed(piece)[0], stream.runaway) for piece in pieces]
    out = [output for event in events for output in guard.process([event])]
    text = "".join(event.text for event in out if isinstance(event, ev.ArgsDelta))
    return text, next((event.message for event in out if isinstance(event, ev.Failure)), "")


@pytest.mark.parametrize("args", ROWS)
def test_runaway_whitespace_is_detected_for_every_split(args: str) -> None:
    stop = ROWS[args]
    forwarded = args[:END] if args.startswith('{"a": 1}') else args[:stop]
    expected = (
        forwarded,
        "" if stop is None else "the arguments of 'f' have more than 100 whitespace characters in a row",
    )
    assert run_guard([args]) == expected
    assert run_guard(list(args)) == expected
    for pieces in cuts.two_piece_cuts(args, 300):
        assert run_guard(pieces) == expected, [*map(len, pieces)]
    for seed in range(50):
        assert run_guard(cuts.random_pieces(args, seed)) == expected, seed


def test_whitespace_count_takes_linear_time() -> None:
    def scan(size: int) -> None:
        text = "[" + ", ".join([" " * 80 + '"x"'] * size)
        scanner = JsonScanner(1000)
        for at in range(0, len(text), 5):
            scanner.scan(text[at : at + 5], 0)

    check_growth(scan, 1000, 8000, limit=20)
