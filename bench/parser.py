"""What reading native text costs: µs per token-sized delta, and how the time of one big argument grows.

    python bench/parser.py            all of it, under a minute
    python bench/parser.py --quick    smaller sizes, a few seconds

Only ratios carry over from machine to machine, so each time stands beside json.loads, measured in the same run and
interleaved with it. Ten times the size must take less than thirteen times the time: if not, the exit code is 1.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections.abc import Callable
from functools import partial

import interlingua as il

TOKEN = 6
"""Characters in a delta, about what a server sends."""
OPEN = "<|tool_calls_section_begin|><|tool_call_begin|>functions.write:0<|tool_call_argument_begin|>"
CLOSE = "<|tool_call_end|><|tool_calls_section_end|>"
PROSE = (
    "The quick brown fox jumps over the lazy dog. It is a plain sentence, as most of them are, with a comma or two. "
)
ANGLES = "If a < b and c > d, then <b>nothing</b> happens, <|or so|> they say; x<y. "
CODE = 'def f(x):\n\treturn "a" + x  # {not: json} <b>\n'
CHUNK = json.dumps(
    {
        "id": "chatcmpl-5f3c",
        "object": "chat.completion.chunk",
        "created": 1760000000,
        "model": "moonshotai/kimi-k2.5",
        "choices": [{"index": 0, "delta": {"content": "abcdef"}, "finish_reason": None}],
    }
)


def argument(size: int) -> str:
    """The arguments of a call that writes a file of about this size."""
    return json.dumps({"path": "src/main.py", "content": (CODE * (size // len(CODE) + 1))[:size]})


def repeated(text: str, size: int) -> str:
    return text * (size // len(text))


def parse(dialect: str, text: str, size: int) -> None:
    """In pieces of this size, cut as they are fed: as on a wire, each is fresh in the processor's cache."""
    parser = il.Parser(dialect)
    for at in range(0, len(text), size):
        parser.feed(text[at : at + size])
    parser.close()


def load_chunks(count: int) -> None:
    for _ in range(count):
        json.loads(CHUNK)


def interleaved(*runs: Callable[[], object], times: int = 1, rounds: int = 5) -> list[float]:
    """What each takes, in the best of several rounds, taken in turn. A round runs each so many times."""
    best = [float("inf")] * len(runs)
    gc.disable()
    for _ in range(rounds):
        for n, run in enumerate(runs):
            before = time.process_time()
            for _ in range(times):
                run()
            best[n] = min(best[n], (time.process_time() - before) / times)
    gc.enable()
    return best


def per_delta(size: int) -> None:
    print(f"µs for a delta of {TOKEN} characters, and against json.loads of the chunk that brings it")
    rows = {
        "prose": ("kimi_k2", repeated(PROSE, size)),
        "prose full of <": ("kimi_k2", repeated(ANGLES, size)),
        "arguments": ("kimi_k2", OPEN + argument(size) + CLOSE),
        "prose, standard dialect": ("standard", repeated(PROSE, size)),
    }
    for name, (dialect, text) in rows.items():
        deltas = len(text) // TOKEN
        ours, loads = interleaved(partial(parse, dialect, text, TOKEN), partial(load_chunks, deltas))
        print(f"  {name:<24}{ours / deltas * 1e6:7.2f} µs {ours / loads:7.2f} ×")


def big_arguments(sizes: list[int]) -> bool:
    """Prints the table, and returns whether it is linear."""
    print("\none big argument: time, against json.loads of the same bytes, and growth")
    linear = True
    for name, piece in (("in deltas", TOKEN), ("in one piece", sys.maxsize)):
        before = None
        for size in sizes:
            args = argument(size)
            # As long for a small size as for a big one: the best of short runs would be luckier on a busy machine.
            times = sizes[-1] // size
            run = partial(parse, "kimi_k2", OPEN + args + CLOSE, piece)
            ours, loads = interleaved(run, partial(json.loads, args), times=times)
            growth = f"  {ours / before:5.1f} × for 10 × the size" if before else ""
            linear &= not before or ours / before < 13
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
