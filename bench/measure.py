"""What the benchmarks of reading share: texts of any size, cut as a server sends them, and time measured in turns."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable

import interlingua as il
from interlingua.core.tools import ToolsLike

TOKEN = 6
"""Characters in a delta, about what a server sends."""
GROWTH = 13
"""Ten times the size may take so many times the time, and still counts as linear."""
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


def repeated(text: str, size: int) -> str:
    """The text again and again, to about this size."""
    return text * (size // len(text) + 1)


def argument(size: int) -> str:
    """The arguments of a call that writes a file of about this size."""
    return json.dumps({"path": "src/main.py", "content": repeated(CODE, size)[:size]})


def parse(dialect: str, text: str, size: int, tools: ToolsLike = None, options: il.Options | None = None) -> None:
    """In pieces of this size, cut as they are fed: as on a wire, each is fresh in the processor's cache."""
    parser = il.Parser(dialect, tools, options=options)
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
