"""Fuzz for cost: time and memory that grow faster than the input.

A row repeats a part of a text, a stream, a reply or a request, so that its size is up to 100 KB. It fails if time grows
faster than size, or if time or memory per byte is too high.

    python -m fuzz.cost                        a minute of random input, without atheris
    python -m fuzz.cost --seconds 600 --seed 7
    python -m fuzz.cost -max_total_time=600    with atheris installed: libFuzzer, guided by coverage
"""

from __future__ import annotations

import copy
import json
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from fuzz import chunks, dialects
from fuzz.engine import BrokenPromise, ByteChooser, Fuzzer, instrument_imports
from fuzz.streams import WIRES, Route

with instrument_imports():
    import interlingua as il
    from interlingua.core.options import Options
    from interlingua.errors import InterlinguaError
    from interlingua.translation.exchange import Exchange, UpstreamTarget
    from interlingua.upstreams.catalog import PROFILES

from tests.support.growth import cpu_seconds
from tests.support.growth_requests import SOURCES

SMALL_BYTES, LARGE_BYTES = 5_000, 80_000
MAX_GROWTH = 3.0
"""Accepted growth of the time per byte, from the small to the large input."""
NOISE_SECONDS = 0.03
MAX_MICROSECONDS_PER_BYTE = 25.0
MAX_MEMORY_PER_BYTE, FREE_MEMORY = 400, 4_000_000
"""Accepted peak memory for one byte of input, and for any input."""
ROUNDS = 4
"""Measurements before a row fails. Other processes can only add time, so the shortest one counts."""


@dataclass(frozen=True)
class Row:
    """An input with a part that is repeated. `make(n)` returns it with n repetitions, `run` processes it."""

    family: str
    start: Any
    unit: Any
    end: Any
    make: Callable[[Row, int], Any]
    run: Callable[[Any], object]

    def sized(self, size: int) -> Any:
        """Return the input with this many bytes, more or less."""
        fixed = _size(self.make(self, 0))
        unit = max(1, _size(self.make(self, 1)) - fixed)
        return self.make(self, max(1, (size - fixed) // unit))

    def smaller(self) -> Iterator[Row]:
        for name in ("start", "end", "unit"):
            value: Any = getattr(self, name)
            size = len(value) // 2
            while size:
                for at in range(0, len(value), size):
                    yield replace(self, **{name: value[:at] + value[at + size :]})
                size //= 2

    def __str__(self) -> str:
        return f"family = {self.family!r}\nstart = {self.start!r}\nunit = {self.unit!r}\nend = {self.end!r}"


def _size(value: Any) -> int:
    return len(value) if isinstance(value, str) else len(json.dumps(value))


def from_bytes(data: bytes) -> Row:
    chooser = ByteChooser(data)
    return chooser.pick([_text_row, _text_row, _stream_row, _request_row])(chooser)


# ── text of a model ─────────────────────────────────────────────────────────────────────────────────────────


def _text_row(chooser: ByteChooser) -> Row:
    name, tools = chooser.pick(dialects.NAMES), chooser.pick(dialects.TOOLS)
    parts = ["".join(dialects.fragment(name, chooser) for _ in range(chooser.below(5))) for _ in range(3)]
    offer = dialects.offered_tools(tools)
    size = chooser.pick([7, 1 << 20])

    def run(text: str) -> None:
        parser = il.Parser(name, offer)
        for at in range(0, len(text), size):
            parser.feed(text[at : at + size])
        parser.close()

    start, unit, end = parts
    return Row(f"dialect {name}", start, unit or "x", end, lambda row, n: row.start + row.unit * n + row.end, run)


# ── streams and replies ─────────────────────────────────────────────────────────────────────────────────────


def _stream_row(chooser: ByteChooser) -> Row:
    route = Route.from_bytes(chooser)
    stream = copy.deepcopy(chooser.pick(chunks.CHUNKS[route.source]))
    for _ in range(chooser.below(6)):
        chooser.pick(chunks.CHANGES)(stream, chooser.below(len(stream) or 1), chooser, route.source)
    at = chooser.below(len(stream) or 1)
    count = 1 + chooser.below(4)
    folds = chooser.below(3) == 0

    def run(frames: list[Any]) -> None:
        data = [chunks.frame(frame) for frame in frames]
        translator = route.translator()
        if folds:
            translator.fold(b"".join(data))
            return
        for piece in data:
            translator.feed(piece)
        translator.close()

    return Row(
        f"{route.source} to {route.target}",
        stream[:at],
        stream[at : at + count] or ["[DONE]"],
        stream[at + count :],
        lambda row, n: [*row.start, *row.unit * n, *row.end],
        _ignoring_refusals(run),
    )


# ── requests ────────────────────────────────────────────────────────────────────────────────────────────────


@cache
def _bodies(wire: str) -> list[dict[str, Any]]:
    return [make(3) for _, source, make in SOURCES if source == wire]


def _request_row(chooser: ByteChooser) -> Row:
    source, target = chooser.pick(WIRES), chooser.pick(WIRES)
    profile = chooser.pick(PROFILES)
    bodies = [copy.deepcopy(chooser.pick(_bodies(source)))]
    for _ in range(chooser.below(5)):
        chunks.change_field(bodies, 0, chooser, source)
    lists = [(owner, key) for owner, key in chunks.places(bodies[0]) if isinstance(owner[key], list) and owner[key]]
    if not lists:
        return _text_row(chooser)
    owner, key = chooser.pick(lists)
    items = owner[key]
    at, count = chooser.below(len(items)), 1 + chooser.below(3)
    start, unit, end = items[:at], items[at : at + count], items[at + count :]

    def make(row: Row, n: int) -> Any:
        owner[key] = [*row.start, *row.unit * n, *row.end]
        return copy.deepcopy(bodies[0])

    def run(body: dict[str, Any]) -> None:
        upstream = UpstreamTarget(api=target, profile=profile, name="fuzz", model="m")
        Exchange(source, body, upstream, Options(seal_key=b"key"))

    return Row(f"request {source} to {target}", start, unit, end, make, _ignoring_refusals(run))


def _ignoring_refusals(run: Callable[[Any], object]) -> Callable[[Any], object]:
    def run_or_refuse(value: Any) -> None:
        try:
            run(value)
        except InterlinguaError:
            return

    return run_or_refuse


# ── checks ──────────────────────────────────────────────────────────────────────────────────────────────────


def check_time(row: Row) -> None:
    """Compare one large input with as many bytes in small inputs: short times cannot be measured."""
    small, large = row.sized(SMALL_BYTES), row.sized(LARGE_BYTES)
    size, count = _size(large), max(1, round(_size(large) / _size(small)))
    small_best = large_best = float("inf")
    for _ in range(ROUNDS):
        small_best = min(small_best, cpu_seconds(lambda one: [row.run(one) for _ in range(count)], small))
        large_best = min(large_best, cpu_seconds(row.run, large))
        allowed = MAX_GROWTH * small_best + NOISE_SECONDS
        if large_best <= min(allowed, MAX_MICROSECONDS_PER_BYTE * size / 1e6):
            return
    measured = f"{large_best * 1e3:.0f} ms for {size} bytes, {small_best * 1e3:.0f} ms for {count} times {_size(small)}"
    way = "per byte" if large_best <= allowed else "growth"
    raise BrokenPromise("time is proportional to the input", way, measured)


def check_memory(row: Row) -> None:
    value = row.sized(4 * SMALL_BYTES)
    tracemalloc.start()
    try:
        row.run(value)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    if peak > FREE_MEMORY + MAX_MEMORY_PER_BYTE * _size(value):
        raise BrokenPromise("memory is proportional to the input", "peak", f"{peak} bytes for {_size(value)}")


CHECKS = [check_time, check_memory]

if __name__ == "__main__":
    sys.exit(Fuzzer(__doc__, from_bytes, CHECKS, longest=64).main())
