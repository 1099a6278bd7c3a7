"""Two cards side by side for the terminal, in lines of a given width."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from interlingua.common.name_list import join_names
from interlingua.verification.card.comparison import Comparison, PairedRate
from interlingua.verification.card.formats import CAUSE_NAMES, format_median, format_share, format_tokens
from interlingua.verification.card.terminal_card import NAME_WIDTH, Paint

__all__ = ["terminal_comparison"]

MAX_LISTED_SAMPLES = 40
VALUE_WIDTH = 10
CLEAR = "≠"


def terminal_comparison(comparison: Comparison, width: int, paint: Paint) -> Iterator[str]:
    """Yield the lines of the comparison."""
    for name, card in (("A", comparison.a), ("B", comparison.b)):
        yield paint(f"{name}  {card.title}", "heading")
        yield from _wrap(card.verdict, width, "   ")
    for line in _wrap(comparison.overlap_note, width):
        yield paint(line, "fair")
    yield from _section("", comparison.rates, paint)
    for name, first, second in comparison.scores:
        yield _row(name, format_share(first), format_share(second))
    if comparison.causes:
        yield from _heading("who lost the calls", paint)
        for cause, count_a, count_b in comparison.causes:
            yield _row(CAUSE_NAMES[cause], str(count_a), str(count_b))
    yield from _section("by category", comparison.categories, paint)
    yield from _heading("median", paint)
    for name, times_a, times_b in comparison.latencies:
        yield _row(name, format_median(times_a), format_median(times_b))
    yield _row("tokens", format_tokens(comparison.a.tokens.total), format_tokens(comparison.b.tokens.total))
    yield ""
    yield paint(f"{CLEAR} marks a difference that is clear with 95 % confidence.", "faint")
    for name, samples in (("A", comparison.only_a_right), ("B", comparison.only_b_right)):
        which = f": {join_names(samples, MAX_LISTED_SAMPLES)}" if samples else ""
        yield from _wrap(f"Only {name} is right in {len(samples)} of {comparison.both} requests{which}.", width)
    yield from _wrap(comparison.agreement_sentence, width)


def _section(title: str, rates: Sequence[PairedRate], paint: Paint) -> Iterator[str]:
    yield from _heading(title, paint)
    for rate in rates:
        mark = f"  {CLEAR}" if rate.is_clear else ""
        yield _row(rate.name, format_share(rate.a.value), format_share(rate.b.value)) + mark


def _heading(title: str, paint: Paint) -> Iterator[str]:
    yield ""
    yield paint(f"{title:{NAME_WIDTH + 2}}{'A':>{VALUE_WIDTH}}{'B':>{VALUE_WIDTH}}", "heading")


def _row(name: str, a: str, b: str) -> str:
    return f"  {name:{NAME_WIDTH}}{a:>{VALUE_WIDTH}}{b:>{VALUE_WIDTH}}"


def _wrap(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, width - 1, initial_indent=indent, subsequent_indent=indent or "  ", break_on_hyphens=False
    )
