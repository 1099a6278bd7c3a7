"""Helpers of the parser benchmarks: texts of any size, cut into deltas, and interleaved timing."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable

import interlingua as il
from interlingua.core.tools import ToolsLike

TOKEN = 6
"""Characters per delta, about the size of one token."""
GROWTH = 13
"""Largest factor of time for ten times the size that still counts as linear."""
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


def repeat_to_size(text: str, size: int) -> str:
    """Repeat the text until it has at least this size."""
    return text * (size // len(text) + 1)


def argument(size: int) -> str:
    """Return the arguments of a call that writes a file of about this size."""
    return json.dumps({"path": "src/main.py", "content": repeat_to_size(CODE, size)[:size]})


def parse(
    dialect: str | il.Dialect, text: str, size: int, tools: ToolsLike = None, options: il.Options | None = None
) -> None:
    """Parse the text in pieces of this size, each cut when it is fed, so that it is in the CPU cache as on a wire."""
    parser = il.Parser(dialect, tools, options=options)
    for at in range(0, len(text), size):
        parser.feed(text[at : at + size])
    parser.close()


def load_chunks(count: int) -> None:
    for _ in range(count):
        json.loads(CHUNK)


def measure_interleaved(*runs: Callable[[], object], times: int = 1, rounds: int = 5) -> list[float]:
    """Measure the CPU time of each function, in the best of several rounds. The functions take turns.

    Args:
        runs: The functions.
        times: How often a round calls each function.
        rounds: Number of rounds.
    """
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
