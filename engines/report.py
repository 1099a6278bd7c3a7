"""Report: the page docs/engines.md, from the results in .engines/results and from the exporter itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import interlingua as il
from engines.builtin_tags import BUILTIN_TAGS
from engines.compile_times import TOOL_COUNT, load_compile_times
from engines.decoding import MAX_TOKENS, Outcome, load_outcomes
from engines.environments import REQUIREMENTS
from engines.reply_check import TOOLS
from interlingua.errors import NotExpressible
from interlingua.exports.exporter import export

__all__ = ["write_page"]

FORMATS = ("structural-tag", "gbnf", "lark", "response-template")
PACKAGES = ("xgrammar", "transformers", "torch", "llguidance", "llama_cpp_python")
HEAD = """\
# Exported grammars and templates, judged by engines

`python -m engines report --write` writes this page. `make engines` installs the engines: {versions}.

## What each format carries

"no" has its reason below the table. The last column is the time that xgrammar takes to compile the structural tag of
{tools} tools with four params each, on one thread; the shortest of three runs.

"""
DECODED = """
## Replies of a constrained model

A Llama with two layers, random weights and one token for each byte has to call one of two tools. It likes to write
markers of the dialect, at right and at wrong places. A reply is right if it has a call, and if every call in it is
read, whole and one character at a time, is complete, names an offered tool and fits its schema. A reply that the model
has not ended after {tokens} tokens is cut off. It may lack a call and its last call may be incomplete; the other calls
must be right.

`python -m engines decode` continues the samples up to 1,000 replies for each grammar.
"""
BUILTIN = """
## xgrammar's built-in tags

xgrammar has tags of its own for some models. `tests/exports/engines/test_builtin_tags.py` asks both tags about the same
texts: six right ones (a call, all types, two calls, no params, a value of several lines, text and a call), and five
wrong ones (an unknown tool, a missing param, a wrong type, an unknown param, no call although one is required).

"""


def write_page() -> str:
    return "".join((_head(), _carried(), *_decoded(), BUILTIN, _builtin()))


def _head() -> str:
    pins = "\n".join((REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8") for name in ("xgrammar", "llama-cpp"))
    versions = dict(line.split("==") for line in pins.splitlines() if "==" in line)
    return HEAD.format(
        versions=", ".join(f"{name} {versions[name]}" for name in PACKAGES if name in versions), tools=TOOL_COUNT
    )


def _carried() -> str:
    """Return the table of dialects and formats, and the reasons below it."""
    seconds = load_compile_times()["seconds"]
    rows, reasons = [], []
    for dialect in il.dialects():
        if not dialect.shape:
            continue
        cells = []
        for format_ in FORMATS:
            reason = _reason(format_, dialect)
            cells.append("no" if reason else "yes")
            reasons += [f"- `{format_}`, {dialect.name}: {reason}.\n"] if reason else []
        cells.append(f"{seconds[dialect.name] * 1000:.0f} ms" if dialect.name in seconds else "")
        rows.append((f"`{dialect.name}`", *cells))
    return _table(("dialect", *FORMATS, "compile"), rows) + "\n" + "".join(reasons)


def _reason(format_: str, dialect: il.Dialect) -> str:
    try:
        for choice in ("auto", "required"):
            export(format_, dialect, TOOLS, choice)
    except NotExpressible as error:
        return str(error)
    return ""


def _decoded() -> Iterator[str]:
    yield DECODED.format(tokens=MAX_TOKENS)
    for engine, title in (("transformers", "transformers with xgrammar"), ("llama.cpp", "llama.cpp with GBNF")):
        outcomes = load_outcomes(engine)
        if not outcomes:
            continue
        yield f"\n### {title}\n\n{_summary(outcomes)}\n\n"
        yield _table(
            ("dialect", "grammar", "replies", "ended", "of these right", "cut off", "of these right", "calls"),
            [
                (
                    f"`{one.dialect}`",
                    one.grammar,
                    f"{one.replies:,}",
                    f"{one.ended:,}",
                    _share(one.right_and_ended, one.ended),
                    f"{one.replies - one.ended:,}",
                    _share(one.right - one.right_and_ended, one.replies - one.ended),
                    f"{one.calls:,}",
                )
                for one in sorted(outcomes, key=lambda one: (one.dialect, one.grammar == "none", one.grammar != "ours"))
            ],
        )


def _summary(outcomes: list[Outcome]) -> str:
    def total(kind: str, chosen: list[Outcome]) -> str:
        replies, ended = sum(one.replies for one in chosen), sum(one.ended for one in chosen)
        right, right_and_ended = sum(one.right for one in chosen), sum(one.right_and_ended for one in chosen)
        cut = f", and {right - right_and_ended:,} of {replies - ended:,} that were cut off" if replies > ended else ""
        return (
            f"- {kind}, {len({one.dialect for one in chosen})} dialects: {right_and_ended:,} of {ended:,} ended replies"
            f" are right{cut}"
        )

    ours = [one for one in outcomes if one.grammar == "ours"]
    free = [one for one in outcomes if one.grammar == "none"]
    builtin = [one for one in outcomes if one.grammar not in ("ours", "none")]
    lines = [total("exported grammars", ours)]
    lines += [total("xgrammar's built-in tags", builtin)] if builtin else []
    lines += [
        f"- wrong under `{one.grammar}`: {one.replies - one.right:,}, such as: {one.problems[0]}"
        for one in (*ours, *builtin)
        if one.problems
    ]
    lines += [total("unconstrained", free)] if free else []
    return "\n".join(lines)


def _share(right: int, count: int) -> str:
    if not count:
        return ""
    return f"{right / count:.0%}" if right in (0, count) else f"{right / count:.1%}"


def _builtin() -> str:
    rows = [
        (
            f"`{tag.model}`",
            f"`{tag.dialect}`",
            "all" if not tag.differs else f"all but: {', '.join(tag.differs)}",
            tag.reason,
        )
        for tag in BUILTIN_TAGS
    ]
    return _table(("tag", "dialect", "same verdict on", "difference"), rows)


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
