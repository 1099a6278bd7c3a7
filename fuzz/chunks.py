"""Fuzz every pair of wires with nearly correct chunks.

The chunks are genuine replies with fields that are missing, of another type, from another chunk or in another place,
and with chunks lost, repeated, swapped and truncated.

    python -m fuzz.chunks                        a minute of random input, without atheris
    python -m fuzz.chunks -max_total_time=600    with atheris installed: libFuzzer, guided by coverage
"""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable
from typing import Any

from fuzz.engine import ByteChooser, Fuzzer
from fuzz.streams import CHECKS, GENUINE, WIRES, Route, Row, events

ODD: list[Any] = [
    *(None, "", "x", 0, 1, 7, -1, 1.5, True, False, [], ["x"], {}, {"type": ["x"]}, [None], [{}], 10**30, 1e308),
    *("\ud83d", "\ude80", "\U0001f680", "\x00", "\u2028", "é", "{", "}", "{}", '{"a": 1}', '"', "\\", "null", "[1]"),
    *("<tool_call>", "</tool_call>", "<|tool_calls_section_begin|>", "<|tool_call_begin|>functions.f:0", "<think>"),
    *("<|tool_call_argument_begin|>", "<|tool_call_end|>", "</think>", "<|channel|>", "<function=f>", "call_1", "f"),
    *("stop", "length", "tool_calls", "tool_use", "max_tokens", "completed", "incomplete", "error", "text", "thinking"),
    *({"message": "boom"}, [{"type": "text", "text": "x"}], [{"index": 0, "function": {"arguments": "{}"}}]),
]
Chunk = Any
"""A JSON value, or the text of an event that is not JSON."""


def from_bytes(data: bytes) -> Row:
    chooser = ByteChooser(data)
    route = Route.from_bytes(chooser)
    cuts = [chooser.below(1 << 16) for _ in range(chooser.below(4))]
    chunks = list(chooser.pick(CHUNKS[route.source]))
    while chooser.left:
        how = chooser.pick(CHANGES)
        how(chunks, chooser.below(len(chunks) or 1), chooser, route.source)
    with_names = chooser.below(8) > 0
    return Row.of(route, b"".join(frame(chunk, with_names) for chunk in chunks), cuts)


def frame(chunk: Chunk, with_names: bool = True) -> bytes:
    data = chunk if isinstance(chunk, str) else json.dumps(chunk)
    kind = chunk.get("type") if with_names and isinstance(chunk, dict) else None
    name = f"event: {kind}\n" if isinstance(kind, str) and kind.isprintable() and kind.isascii() else ""
    return f"{name}data: {data}\n\n".encode("utf-8", "replace")


def _parsed(data: str) -> Chunk:
    return data if data == "[DONE]" else json.loads(data)


CHUNKS = {wire: [[_parsed(data) for _, data in events(stream)] for stream in GENUINE[wire]] for wire in WIRES}


# ── mutations ───────────────────────────────────────────────────────────────────────────────────────────────


def _drop(chunks: list[Chunk], at: int, *_: object) -> None:
    del chunks[at : at + 1]


def _double(chunks: list[Chunk], at: int, chooser: ByteChooser, _: str) -> None:
    chunks.insert(chooser.below(len(chunks) + 1), chunks[at] if chunks else "[DONE]")


def _swap(chunks: list[Chunk], at: int, chooser: ByteChooser, _: str) -> None:
    if chunks:
        other = chooser.below(len(chunks))
        chunks[at], chunks[other] = chunks[other], chunks[at]


def _cut(chunks: list[Chunk], at: int, *_: object) -> None:
    del chunks[at + 1 :]


def _join(chunks: list[Chunk], at: int, chooser: ByteChooser, wire: str) -> None:
    """Insert some chunks of another reply."""
    other = chooser.pick(CHUNKS[wire])
    chunks[at:at] = other[chooser.below(len(other) or 1) :][:4]


def change_field(chunks: list[Chunk], at: int, chooser: ByteChooser, _: str) -> None:
    """Change the value of a field, or add a field."""
    if chunks and (found := places(chunk := copy.deepcopy(chunks[at]))):
        owner, key = chooser.pick(found)
        if isinstance(owner, dict) and chooser.below(4) == 0:
            key = chooser.pick(KEYS)
        owner[key] = chooser.pick(ODD)
        chunks[at] = chunk


def _remove_field(chunks: list[Chunk], at: int, chooser: ByteChooser, _: str) -> None:
    if chunks and (found := places(chunk := copy.deepcopy(chunks[at]))):
        owner, key = chooser.pick(found)
        del owner[key]
        chunks[at] = chunk


def _copy_field(chunks: list[Chunk], at: int, chooser: ByteChooser, wire: str) -> None:
    """Give a field the value of a field of another chunk."""
    if chunks and (found := places(chunk := copy.deepcopy(chunks[at]))):
        others = places(chooser.pick(chooser.pick(CHUNKS[wire]) or [{}]))
        owner, key = chooser.pick(found)
        if others:
            other, name = chooser.pick(others)
            owner[key] = copy.deepcopy(other[name])
        chunks[at] = chunk


def _change_text(chunks: list[Chunk], at: int, chooser: ByteChooser, _: str) -> None:
    """Extend or truncate a text."""
    if chunks:
        chunk = copy.deepcopy(chunks[at])
        texts = [(owner, key) for owner, key in places(chunk) if isinstance(owner[key], str)]
        if texts:
            owner, key = chooser.pick(texts)
            more = chooser.pick([odd for odd in ODD if isinstance(odd, str)])
            owner[key] = owner[key][: chooser.below(len(owner[key]) + 1)] + more
            chunks[at] = chunk


CHANGES: list[Callable[[list[Chunk], int, ByteChooser, str], None]] = [
    *(
        change_field,
        change_field,
        change_field,
        _change_text,
        _change_text,
        _change_text,
        _remove_field,
        _remove_field,
        _copy_field,
        _copy_field,
    ),
    *(_drop, _double, _swap, _cut, _join),
]


def places(value: Any) -> list[tuple[Any, Any]]:
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [place for key in keys for place in [(value, key), *places(value[key])]]


KEYS = sorted(
    {
        key
        for wire in WIRES
        for chunks in CHUNKS[wire]
        for chunk in chunks
        for _, key in places(chunk)
        if type(key) is str
    }
    | {"error", "refusal", "reasoning", "reasoning_details", "function_call", "usage", "input", "signature"}
)

if __name__ == "__main__":
    sys.exit(Fuzzer(__doc__, from_bytes, CHECKS, longest=48).main())
