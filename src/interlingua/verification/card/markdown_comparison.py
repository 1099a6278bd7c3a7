"""Two cards side by side as Markdown, for issues and documentation."""

from __future__ import annotations

from collections.abc import Iterator

from interlingua.common.name_list import join_names
from interlingua.verification.card.comparison import Comparison, PairedRate
from interlingua.verification.card.formats import CAUSE_NAMES, format_median, format_share, format_tokens

__all__ = ["markdown_comparison"]

MAX_LISTED_SAMPLES = 40


def markdown_comparison(comparison: Comparison) -> str:
    return "\n".join(_lines(comparison)) + "\n"


def _lines(comparison: Comparison) -> Iterator[str]:
    a, b = comparison.a, comparison.b
    yield "# Two providers side by side"
    yield ""
    yield f"- A: {a.title}"
    yield f"- B: {b.title}"
    if comparison.overlap_note:
        yield from ("", f"**{comparison.overlap_note}**")
    yield from ("", "| metric | A | B | clear difference |", "|---|---|---|---|")
    yield from map(_rate_row, comparison.rates)
    for name, first, second in comparison.scores:
        yield f"| {name} | {format_share(first)} | {format_share(second)} |  |"
    yield from ("", "| failures by cause | A | B |", "|---|---|---|")
    for cause, count_a, count_b in comparison.causes:
        yield f"| {CAUSE_NAMES[cause]} | {count_a} | {count_b} |"
    yield from ("", "| right by category | A | B | clear difference |", "|---|---|---|---|")
    yield from map(_rate_row, comparison.categories)
    yield from ("", "| median | A | B |", "|---|---|---|")
    for name, times_a, times_b in comparison.latencies:
        yield f"| {name} | {format_median(times_a)} | {format_median(times_b)} |"
    yield f"| tokens | {format_tokens(a.tokens.total)} | {format_tokens(b.tokens.total)} |"
    yield ""
    for name, samples in (("A", comparison.only_a_right), ("B", comparison.only_b_right)):
        which = f": {join_names(samples, MAX_LISTED_SAMPLES)}" if samples else ""
        yield f"Only {name} is right in {len(samples)} of {comparison.both} requests{which}."
    yield comparison.agreement_sentence


def _rate_row(rate: PairedRate) -> str:
    clear = "yes" if rate.is_clear else "no"
    return f"| {rate.name} | {format_share(rate.a.value)} | {format_share(rate.b.value)} | {clear} |"
