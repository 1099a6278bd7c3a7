"""Decoding: replies of a tiny model with random weights, constrained by exported grammars, read by Interlingua.

Results are kept in .engines/results, one file for each grammar, so that a run can be interrupted and continued.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import interlingua as il
from engines.builtin_tags import BUILTIN_TAGS, BuiltinTag
from engines.environments import FOLDER
from engines.judge import Judge
from engines.reply_check import TOOLS, find_problems
from interlingua.core.reply import Call, Reply
from interlingua.errors import NotExpressible
from interlingua.parsing.shapes.channels.grammar import Channels

__all__ = ["Outcome", "decode_all", "load_outcomes"]

RESULTS = FOLDER / "results"
MAX_TOKENS = 500
BATCH = 250
"""Replies after which progress is printed."""
SAMPLE_TEXT, SAMPLE_ID = "sample", "call_0"


@dataclass
class Outcome:
    """Counts of the replies under one grammar, and of their calls."""

    engine: str
    dialect: str
    grammar: str
    """`ours`, the name of a built-in tag, or `none`."""
    replies: int = 0
    ended: int = 0
    """Replies that the model has ended before the maximum length."""
    calls: int = 0
    right: int = 0
    """Replies in which nothing is wrong. Of a reply that was cut off, only the calls before its end count."""
    right_and_ended: int = 0
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)
    """The first few problems."""

    @property
    def path(self) -> Path:
        return RESULTS / f"{self.engine}-{self.dialect}-{self.grammar}.json"


def load_outcomes(engine: str) -> list[Outcome]:
    paths = sorted(RESULTS.glob(f"{engine}-*.json"))
    return [Outcome(**json.loads(path.read_text(encoding="utf-8"))) for path in paths]


def decode_all(engine: str, count: int, only: list[str]) -> None:
    """Sample replies in all dialects, as far as earlier runs have not done it."""
    decoder = {
        "transformers": ("xgrammar", "transformers_decoder.py"),
        "llama.cpp": ("llama-cpp", "llama_cpp_decoder.py"),
    }
    with Judge(*decoder[engine]) as judge:
        for dialect, grammar, constraint, prefill in _jobs(engine, judge, only):
            outcome = Outcome(engine, dialect.name, grammar)
            if outcome.path.exists():
                outcome = Outcome(**json.loads(outcome.path.read_text(encoding="utf-8")))
            while outcome.replies < count:
                _decode_batch(judge, dialect, constraint, prefill, min(BATCH, count - outcome.replies), outcome)
                RESULTS.mkdir(parents=True, exist_ok=True)
                outcome.path.write_text(json.dumps(asdict(outcome)), encoding="utf-8")
                print(
                    f"{engine} {dialect.name} {grammar}: {outcome.right} of {outcome.replies} right,"
                    f" {outcome.ended} ended, {outcome.calls} calls, {outcome.seconds:.0f} s",
                    file=sys.stderr,
                )


def _jobs(engine: str, judge: Judge, only: list[str]) -> Iterator[tuple[il.Dialect, str, Any, str]]:
    """Yield dialects with a grammar each: its name, the grammar, and the beginning of the reply that it leaves out."""
    dialects = {dialect.name: dialect for dialect in il.dialects() if dialect.shape}
    format_ = "structural-tag" if engine == "transformers" else "gbnf"
    for name, dialect in dialects.items():
        if only and name not in only:
            continue
        try:
            yield dialect, "ours", il.export(format_, dialect, TOOLS, "required").content, ""
        except NotExpressible as error:
            print(f"{name}: {error}", file=sys.stderr)
        yield dialect, "none", None, ""
        for tag in BUILTIN_TAGS if engine == "transformers" else ():
            if tag.dialect == name:
                yield dialect, tag.model, _builtin_tag(judge, tag), _prefill(tag, dialect)


def _builtin_tag(judge: Judge, tag: BuiltinTag) -> Any:
    return judge.ask(do="builtin_tag", model=tag.model, tools=TOOLS, tool_choice="required", reasoning=False)


def _prefill(tag: BuiltinTag, dialect: il.Dialect) -> str:
    """Return what the prompt contains of the reply: a tag that closes something begins inside of it."""
    for span in (*dialect.thinking, *dialect.text):
        if span.close.strip() and span.close in tag.before:
            return span.open
    return ""


def endings_of(dialect: il.Dialect) -> list[str]:
    """Return how thinking and a call end: the text after the thinking, and after a value and an id."""
    sample = Reply(parts=[Call(SAMPLE_ID, "get_weather", json.dumps({"city": SAMPLE_TEXT}))])
    end_of_call = il.render(sample, dialect).partition(SAMPLE_TEXT)[2].split(SAMPLE_ID)
    thinking = (dialect.shape.thinking,) if isinstance(dialect.shape, Channels) else dialect.thinking
    return [*end_of_call, *(span.close for span in thinking)]


def _decode_batch(
    judge: Judge, dialect: il.Dialect, constraint: Any, prefill: str, count: int, outcome: Outcome
) -> None:
    started = time.monotonic()
    grammar = dialect.grammar
    markers = [*dialect.markers, *(grammar.inner_markers if grammar else ())]
    request = {
        "markers": markers,
        "endings": endings_of(dialect),
        "count": count,
        "seed": outcome.replies,
        "max_tokens": MAX_TOKENS,
    }
    for reply in judge.ask(do="sample", constraint=constraint, **request):
        problems = find_problems(reply["text"], dialect, ended=reply["ended"], prefill=prefill)
        outcome.replies += 1
        outcome.ended += reply["ended"]
        outcome.calls += len(il.parse(reply["text"], dialect, tools=TOOLS, prefill=prefill).calls)
        outcome.right += not problems
        outcome.right_and_ended += not problems and reply["ended"]
        if problems and len(outcome.problems) < 5:
            outcome.problems.append(f"{problems[0]}: {reply['text']!r}")
    outcome.seconds += time.monotonic() - started
