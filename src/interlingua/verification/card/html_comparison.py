"""Two cards side by side as one HTML page, self-contained as the page of one card."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from interlingua.verification.card.card import Card
from interlingua.verification.card.comparison import Comparison, PairedRate
from interlingua.verification.card.formats import CAUSE_NAMES, format_share
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

__all__ = ["html_comparison"]


def html_comparison(comparison: Comparison) -> str:
    a, b = comparison.a, comparison.b
    panels = [
        element("h1", "Two providers side by side"),
        element("div", _side("a", a), _side("b", b), class_="pair"),
        element("p", comparison.overlap_note, class_="note") if comparison.overlap_note else Html(),
        _causes(comparison),
        _rates("Rates", comparison.rates, comparison.scores),
        _rates("Right replies by category", comparison.categories),
        _latency(a, b),
        _differences(comparison),
        failures_panel(a.failures, a.oddities, f"Failures of A: {a.title}"),
        failures_panel(b.failures, b.oddities, f"Failures of B: {b.title}"),
        element("div", facts_panel(a, "The run of A"), facts_panel(b, "The run of B"), class_="pair"),
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
    if not comparison.causes:
        return Html()
    rows: list[Html] = []
    for name, card in (("A", comparison.a), ("B", comparison.b)):
        right = card.metrics.right
        parts = [*((f"cause-{cause.cause}", cause.count) for cause in card.causes), ("cause-right", right.count)]
        rows += [element("p", faint(name, small=True)), cause_bar(parts, right.total)]
    legend = [
        element("span", key(f"cause-{cause}"), f"{CAUSE_NAMES[cause]}: {count_a} and {count_b}")
        for cause, count_a, count_b in comparison.causes
    ]
    return panel("Who lost the calls", *rows, element("div", *legend, class_="legend"))


def _rates(
    title: str, rates: Sequence[PairedRate], scores: Sequence[tuple[str, float | None, float | None]] = ()
) -> Html:
    rows = [
        element(
            "tr",
            element("td", rate.name, element("b", " ≠") if rate.is_clear else ""),
            element("td", interval_plot([("a", rate.a), ("b", rate.b)]), class_="plot"),
            *_values(rate.a.value, rate.b.value),
        )
        for rate in rates
    ]
    rows += [
        element("tr", element("td", name), element("td", class_="plot"), *_values(first, second))
        for name, first, second in scores
    ]
    columns = [("", ""), ("95 % intervals, from 0 to 100 %", ""), ("A", "number"), ("B", "number")]
    note = faint("≠ marks a difference that is clear with 95 % confidence.", small=True)
    return panel(title, table(columns, rows), element("p", note))


def _values(a: float | None, b: float | None) -> tuple[Html, Html]:
    """Return the cells with the values of both runs."""
    return (
        element("td", key("a"), format_share(a), class_="number value-a"),
        element("td", key("b"), format_share(b), class_="number value-b"),
    )


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
    return panel("Requests that differ", element("p", comparison.agreement_sentence), *rows)
