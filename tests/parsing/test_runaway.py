"""Arguments that go on with blanks: found at the same place however they are cut, and in linear time."""

from __future__ import annotations

import time

import pytest

from interlingua import events as ev
from interlingua.common.jsontext.scanner import JsonScanner
from interlingua.core.options import Limits
from interlingua.core.tools import ToolSet
from interlingua.parsing.guard import Guard
from tests.support import cuts

LIMITS = Limits(blanks=100)
ROWS = {
    # the arguments, and how many of their characters go on; None: all
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


def guarded(pieces: list[str]) -> tuple[str, str]:
    """What goes on of the arguments, and what the failure is called."""
    guard = Guard(ToolSet(None), limits=LIMITS)
    events: list[ev.Event] = [ev.CallStart(0, "call_1", "f"), *(ev.ArgsDelta(0, piece) for piece in pieces)]
    out = [event for one in events for event in guard.process([one])]
    text = "".join(event.text for event in out if isinstance(event, ev.ArgsDelta))
    return text, next((event.message for event in out if isinstance(event, ev.Failure)), "")


@pytest.mark.parametrize("args", ROWS)
def test_it_is_found_wherever_the_text_is_cut(args: str) -> None:
    stop = ROWS[args]
    wanted = (args, "") if stop is None else (args[:stop], "the arguments of 'f' go on with blanks, more than 100")
    assert guarded([args]) == wanted
    assert guarded(list(args)) == wanted
    for pieces in cuts.two_piece_cuts(args, 300):
        assert guarded(pieces) == wanted, [*map(len, pieces)]
    for seed in range(50):
        assert guarded(cuts.random_pieces(args, seed)) == wanted, seed


def test_counting_is_linear() -> None:
    def seconds(size: int) -> float:
        text = "[" + ", ".join([" " * 80 + '"x"'] * size)
        began = time.perf_counter()
        cursor = JsonScanner(1000)
        for at in range(0, len(text), 5):
            cursor.scan(text[at : at + 5], 0)
        return time.perf_counter() - began

    ratios = [seconds(8000) / seconds(1000) for _ in range(3)]
    assert min(ratios) < 20
