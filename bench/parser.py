"""Benchmark of the parser: µs per token-sized delta, and growth of the time with the size of one big argument.

    python -m bench.parser            full sizes, under a minute
    python -m bench.parser --quick    smaller sizes, a few seconds

Only ratios can be compared between machines, so each time is compared with json.loads, measured in the same run and
interleaved with it. Ten times the size must take less than thirteen times the time; otherwise the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial

from bench.measure import (
    ANGLES,
    GROWTH,
    PROSE,
    TOKEN,
    argument,
    load_chunks,
    measure_interleaved,
    parse,
    repeat_to_size,
)

OPEN = "<|tool_calls_section_begin|><|tool_call_begin|>functions.write:0<|tool_call_argument_begin|>"
CLOSE = "<|tool_call_end|><|tool_calls_section_end|>"


def per_delta(size: int) -> None:
    print(f"µs for a delta of {TOKEN} characters, and ratio to json.loads of its chunk")
    rows = {
        "prose": ("kimi_k2", repeat_to_size(PROSE, size)),
        "prose full of <": ("kimi_k2", repeat_to_size(ANGLES, size)),
        "arguments": ("kimi_k2", OPEN + argument(size) + CLOSE),
        "prose, standard dialect": ("standard", repeat_to_size(PROSE, size)),
    }
    for name, (dialect, text) in rows.items():
        deltas = len(text) // TOKEN
        ours, loads = measure_interleaved(partial(parse, dialect, text, TOKEN), partial(load_chunks, deltas))
        print(f"  {name:<24}{ours / deltas * 1e6:7.2f} µs {ours / loads:7.2f} ×")


def big_arguments(sizes: list[int]) -> bool:
    """Print the table and return whether the growth is linear."""
    print("\none big argument: time, ratio to json.loads of the same bytes, and growth")
    linear = True
    for name, piece in (("in deltas", TOKEN), ("in one piece", sys.maxsize)):
        before = None
        for size in sizes:
            args = argument(size)
            # Measure small sizes as long as big ones: on a busy machine, the best of short runs would be too good.
            times = sizes[-1] // size
            run = partial(parse, "kimi_k2", OPEN + args + CLOSE, piece)
            ours, loads = measure_interleaved(run, partial(json.loads, args), times=times)
            growth = f"  {ours / before:5.1f} × for 10 × the size" if before else ""
            linear &= not before or ours / before < GROWTH
            print(f"  {name:<14}{size // 1000:>6} KB{ours * 1e3:10.2f} ms{ours / loads:8.1f} ×{growth}")
            before = ours
    return linear


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="smaller sizes, a few seconds")
    quick = options.parse_args().quick
    per_delta(60_000 if quick else 600_000)
    linear = big_arguments([2_000, 20_000, 200_000] if quick else [20_000, 200_000, 2_000_000])
    print("\nlinear" if linear else "\nNOT LINEAR: ten times the size took more than thirteen times the time")
    return 0 if linear else 1


if __name__ == "__main__":
    sys.exit(main())
