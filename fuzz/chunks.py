"""Chunks that are nearly right, for every pair of wires: genuine replies with fields left out, of another type, from
another chunk or in another place, and chunks lost, doubled, swapped and cut short.

    python -m fuzz.chunks                        a minute of chance, without atheris
    python -m fuzz.chunks -max_total_time=600    where atheris is installed: libFuzzer, led by coverage
"""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable
from typing import Any

from fuzz.engine import Dice, Fuzzer
from fuzz.streams import CHECKS, GENUINE, WIRES, Row, Way, events

ODD: list[Any] = [
    *(None, "", "x", 0, 1, 7, -1, 1.5, True, False, [], ["x"], {}, {"type": ["x"]}, [None], [{}], 10**30, 1e308),
    *("\ud83d", "\ude80", "\U0001f680", "\x00", "\u2028", "é", "{", "}", "{}", '{"a": 1}', '"', "\\", "null", "[1]"),
    *("<tool_call>", "</tool_call>", "<|tool_calls_section_begin|>", "<|tool_call_begin|>functions.f:0", "<think>"),
    *("<|tool_call_argument_begin|>", "<|tool_call_end|>", "</think>", "<|channel|>", "<function=f>", "call_1", "f"),
    *("stop", "length", "tool_calls", "tool_use", "max_tokens", "completed", "incomplete", "error", "text", "thinking"),
    *({"message": "boom"}, [{"type": "text", "text": "x"}], [{"index": 0, "function": {"arguments": "{}"}}]),
]
Chunk = Any
"""A JSON value, or the text of an event that is none."""


def chosen_by(data: bytes) -> Row:
    dice = Dice(data)
    way = Way.chosen_by(dice)
    cuts = [dice.below(1 << 16) for _ in range(dice.below(4))]
    told = list(dice.pick(CHUNKS[way.source]))
    while dice.left:
        how = dice.pick(CHANGES)
        how(told, dice.below(len(told) or 1), dice, way.source)
    named = dice.below(8) > 0
    return Row.of(way, b"".join(_frame(chunk, named) for chunk in told), cuts)


def _frame(chunk: Chunk, named: bool) -> bytes:
    data = chunk if isinstance(chunk, str) else json.dumps(chunk)
    kind = chunk.get("type") if named and isinstance(chunk, dict) else None
    name = f"event: {kind}\n" if isinstance(kind, str) and kind.isprintable() and kind.isascii() else ""
    return f"{name}data: {data}\n\n".encode("utf-8", "replace")


def _parsed(data: str) -> Chunk:
    return data if data == "[DONE]" else json.loads(data)


CHUNKS = {wire: [[_parsed(data) for _, data in events(stream)] for stream in GENUINE[wire]] for wire in WIRES}


# ── what may go wrong ───────────────────────────────────────────────────────────────────────────────────────────────


def _drop(told: list[Chunk], at: int, *_: object) -> None:
    del told[at : at + 1]


def _double(told: list[Chunk], at: int, dice: Dice, _: str) -> None:
    told.insert(dice.below(len(told) + 1), told[at] if told else "[DONE]")


def _swap(told: list[Chunk], at: int, dice: Dice, _: str) -> None:
    if told:
        other = dice.below(len(told))
        told[at], told[other] = told[other], told[at]


def _cut(told: list[Chunk], at: int, *_: object) -> None:
    del told[at + 1 :]


def _join(told: list[Chunk], at: int, dice: Dice, wire: str) -> None:
    """Some of another reply."""
    other = dice.pick(CHUNKS[wire])
    told[at:at] = other[dice.below(len(other) or 1) :][:4]


def _odd(told: list[Chunk], at: int, dice: Dice, _: str) -> None:
    """A field has another value, or one more."""
    if told and (places := _places(chunk := copy.deepcopy(told[at]))):
        owner, key = dice.pick(places)
        if isinstance(owner, dict) and dice.below(4) == 0:
            key = dice.pick(KEYS)
        owner[key] = dice.pick(ODD)
        told[at] = chunk


def _without(told: list[Chunk], at: int, dice: Dice, _: str) -> None:
    if told and (places := _places(chunk := copy.deepcopy(told[at]))):
        owner, key = dice.pick(places)
        del owner[key]
        told[at] = chunk


def _borrow(told: list[Chunk], at: int, dice: Dice, wire: str) -> None:
    """A field has the value that some field has elsewhere."""
    if told and (places := _places(chunk := copy.deepcopy(told[at]))):
        others = _places(dice.pick(dice.pick(CHUNKS[wire]) or [{}]))
        owner, key = dice.pick(places)
        if others:
            other, name = dice.pick(others)
            owner[key] = copy.deepcopy(other[name])
        told[at] = chunk


def _text(told: list[Chunk], at: int, dice: Dice, _: str) -> None:
    """A text goes on, or breaks off."""
    if told:
        chunk = copy.deepcopy(told[at])
        texts = [(owner, key) for owner, key in _places(chunk) if isinstance(owner[key], str)]
        if texts:
            owner, key = dice.pick(texts)
            more = dice.pick([odd for odd in ODD if isinstance(odd, str)])
            owner[key] = owner[key][: dice.below(len(owner[key]) + 1)] + more
            told[at] = chunk


CHANGES: list[Callable[[list[Chunk], int, Dice, str], None]] = [
    *(_odd, _odd, _odd, _text, _text, _text, _without, _without, _borrow, _borrow),
    *(_drop, _double, _swap, _cut, _join),
]


def _places(value: Any) -> list[tuple[Any, Any]]:
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [place for key in keys for place in [(value, key), *_places(value[key])]]


KEYS = sorted(
    {key for wire in WIRES for told in CHUNKS[wire] for chunk in told for _, key in _places(chunk) if type(key) is str}
    | {"error", "refusal", "reasoning", "reasoning_details", "function_call", "usage", "input", "signature"}
)

if __name__ == "__main__":
    sys.exit(Fuzzer(__doc__, chosen_by, CHECKS, longest=48).main())
