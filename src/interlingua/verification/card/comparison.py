"""Two cards side by side: in the terminal, as Markdown, and as an HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt

import msgspec

from interlingua.common.name_list import join_names
from interlingua.verification.attribution import CAUSES
from interlingua.verification.card.card import Card, NamedRate
from interlingua.verification.card.formats import CAUSE_NAMES, format_seconds, format_share, format_tokens
from interlingua.verification.card.html_elements import Html, element
from interlingua.verification.card.html_page import (
    curve_legend,
    facts_panel,
    failures_panel,
    faint,
    key,
    page,
    panel,
    score,
    table,
)
from interlingua.verification.card.svg_plots import cause_bar, interval_plot, latency_plot
from interlingua.verification.run.metrics import Rate
from interlingua.verification.run.run_log import StoredRun

__all__ = ["Comparison", "compare_runs", "comparison_markdown", "comparison_page", "is_clear_difference"]

MAX_LISTED_SAMPLES = 40


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    a: Card
    b: Card
    only_a_right: tuple[str, ...]
    """Samples that only the first provider answers right, each with its mode."""
    only_b_right: tuple[str, ...]
    both: int
    """Number of trials that both runs have."""

    @property
    def title(self) -> str:
        return f"{self.a.title} and {self.b.title}"


def compare_runs(a: Card, b: Card, run_a: StoredRun, run_b: StoredRun) -> Comparison:
    """Compare two runs. Trials are paired by the digest of their request."""
    results_b = {(result.digest, result.stream): result for result in run_b.results}
    pairs = [
        (result, results_b[result.digest, result.stream])
        for result in run_a.results
        if (result.digest, result.stream) in results_b
    ]
    names = [f"{first.id} ({'stream' if first.stream else 'whole'})" for first, _ in pairs]
    only_a = [name for name, (first, second) in zip(names, pairs, strict=True) if first.is_right > second.is_right]
    only_b = [name for name, (first, second) in zip(names, pairs, strict=True) if first.is_right < second.is_right]
    return Comparison(a=a, b=b, only_a_right=tuple(only_a), only_b_right=tuple(only_b), both=len(pairs))


def is_clear_difference(a: Rate, b: Rate) -> bool:
    """Return whether two rates differ with 95 % confidence (Newcombe's interval of the difference excludes zero)."""
    if a.value is None or b.value is None:
        return False
    (low_a, high_a), (low_b, high_b) = a.interval, b.interval
    difference = a.value - b.value
    lower = difference - sqrt((a.value - low_a) ** 2 + (high_b - b.value) ** 2)
    upper = difference + sqrt((high_a - a.value) ** 2 + (b.value - low_b) ** 2)
    return lower > 0 or upper < 0


def _paired_rates(a: Sequence[NamedRate], b: Sequence[NamedRate]) -> Iterator[tuple[str, Rate, Rate]]:
    by_name = {named.name: named.rate for named in b}
    for named in a:
        if named.name in by_name:
            yield named.name, named.rate, by_name[named.name]


# ── Markdown, which the terminal shows, too ───────────────────────────────────────────────────────────────────────────


def comparison_markdown(comparison: Comparison) -> str:
    return "\n".join(_markdown_lines(comparison)) + "\n"


def _markdown_lines(comparison: Comparison) -> Iterator[str]:
    a, b = comparison.a, comparison.b
    yield "# Two providers side by side"
    yield ""
    yield f"- A: {a.title}"
    yield f"- B: {b.title}"
    yield ""
    yield "| metric | A | B | clear difference |"
    yield "|---|---|---|---|"
    for name, first, second in _paired_rates(a.rates, b.rates):
        yield f"| {name} | {format_share(first.value)} | {format_share(second.value)} | {_clear(first, second)} |"
    yield from ("", "| failures by cause | A | B |", "|---|---|---|")
    counts_a, counts_b = ({cause.cause: cause.count for cause in card.causes} for card in (a, b))
    for cause in CAUSES:
        if cause in counts_a or cause in counts_b:
            yield f"| {CAUSE_NAMES[cause]} | {counts_a.get(cause, 0)} | {counts_b.get(cause, 0)} |"
    yield from ("", "| right by category | A | B | clear difference |", "|---|---|---|---|")
    for name, first, second in _paired_rates(a.categories, b.categories):
        yield f"| {name} | {format_share(first.value)} | {format_share(second.value)} | {_clear(first, second)} |"
    yield from ("", "| median | A | B |", "|---|---|---|")
    for name, times_a, times_b in (
        ("first content of streams", a.metrics.first_content, b.metrics.first_content),
        ("complete reply", a.metrics.duration, b.metrics.duration),
    ):
        yield f"| {name} | {format_seconds(times_a.p50)} | {format_seconds(times_b.p50)} |"
    yield f"| tokens | {format_tokens(a.tokens.total)} | {format_tokens(b.tokens.total)} |"
    yield ""
    for name, samples in (("A", comparison.only_a_right), ("B", comparison.only_b_right)):
        which = f": {join_names(samples, MAX_LISTED_SAMPLES)}" if samples else ""
        yield f"Only {name} is right in {len(samples)} of {comparison.both} requests{which}."


def _clear(a: Rate, b: Rate) -> str:
    return "yes" if is_clear_difference(a, b) else "no"


# ── HTML ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def comparison_page(comparison: Comparison) -> str:
    a, b = comparison.a, comparison.b
    panels = [
        element("h1", "Two providers side by side"),
        element("div", _side("a", a), _side("b", b), class_="pair"),
        _causes(comparison),
        _rates("Rates", _paired_rates(a.rates, b.rates)),
        _rates("Right replies by category", _paired_rates(a.categories, b.categories)),
        _latency(a, b),
        _differences(comparison),
        failures_panel(a.failures, a.oddities, f"Failures of A: {a.title}"),
        failures_panel(b.failures, b.oddities, f"Failures of B: {b.title}"),
        element("div", facts_panel(a), facts_panel(b), class_="pair"),
    ]
    return page(comparison.title, panels)


def _side(css_class: str, card: Card) -> Html:
    return element(
        "section",
        element("h2", key(css_class), f"{css_class.upper()}: {card.header.model}"),
        element("p", faint(f"{card.host} · {card.header.api}")),
        score(card.metrics.right, "right"),
        element("p", card.verdict),
        class_="panel",
    )


def _causes(comparison: Comparison) -> Html:
    cards = (comparison.a, comparison.b)
    counts = [{cause.cause: cause.count for cause in card.causes} for card in cards]
    if not any(counts):
        return Html()
    rows: list[Html] = []
    for name, card, found in zip("AB", cards, counts, strict=True):
        right = card.metrics.right
        parts = [*((f"cause-{cause}", count) for cause, count in found.items()), ("cause-right", right.count)]
        rows += [element("p", faint(name, small=True)), cause_bar(parts, right.total)]
    legend = [
        element(
            "span",
            key(f"cause-{cause}"),
            f"{CAUSE_NAMES[cause]}: {counts[0].get(cause, 0)} and {counts[1].get(cause, 0)}",
        )
        for cause in CAUSES
        if cause in counts[0] or cause in counts[1]
    ]
    return panel("Who lost the calls", *rows, element("div", *legend, class_="legend"))


def _rates(title: str, rates: Iterator[tuple[str, Rate, Rate]]) -> Html:
    rows = [
        element(
            "tr",
            element("td", name, element("b", " ≠") if is_clear_difference(a, b) else ""),
            element("td", interval_plot([("a", a), ("b", b)]), class_="plot"),
            element("td", key("a"), format_share(a.value), class_="number"),
            element("td", key("b"), format_share(b.value), class_="number"),
        )
        for name, a, b in rates
    ]
    columns = [("", ""), ("95 % intervals, from 0 to 100 %", ""), ("A", "number"), ("B", "number")]
    note = faint("≠ marks a difference that is clear with 95 % confidence.", small=True)
    return panel(title, table(columns, rows), element("p", note))


def _latency(a: Card, b: Card) -> Html:
    curves = [
        (f"{css_class}{suffix}", msgspec.structs.replace(curve, name=f"{css_class.upper()}: {curve.name}"))
        for css_class, card in (("a", a), ("b", b))
        for curve, suffix in zip(card.latency[:2], ("", "2"), strict=False)
    ]
    if not curves:
        return Html()
    note = faint("Share of the replies that arrived within a time; dashed: the complete reply.", small=True)
    return panel("Latency", element("p", note), latency_plot(curves), curve_legend(curves))


def _differences(comparison: Comparison) -> Html:
    rows = [
        element(
            "details",
            element("summary", f"Only {name} is right in {len(samples)} of {comparison.both} requests"),
            element("p", ", ".join(samples) or "None."),
        )
        for name, samples in (("A", comparison.only_a_right), ("B", comparison.only_b_right))
    ]
    return panel("Requests that differ", *rows)
