"""HTML page of one card, self-contained: no script, no network, inline plots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from interlingua.verification.attribution import CAUSES
from interlingua.verification.card.card import Card, CauseCount, FailureGroup, LatencyCurve, NamedRate, NamedScore
from interlingua.verification.card.formats import (
    CAUSE_NAMES,
    describe_settings,
    format_dollars,
    format_interval,
    format_seconds,
    format_share,
    format_tokens,
    grade,
    sentence,
)
from interlingua.verification.card.html_elements import Html, element, join
from interlingua.verification.card.page_style import STYLE
from interlingua.verification.card.svg_plots import MEDIAN, cause_bar, interval_plot, latency_plot
from interlingua.verification.judging.failure import FAILURE_KINDS
from interlingua.verification.run.metrics import Rate
from interlingua.verification.run.trial_result import TrialResult

__all__ = [
    "card_page",
    "curve_legend",
    "facts_panel",
    "failures_panel",
    "faint",
    "key",
    "page",
    "panel",
    "score",
    "table",
]

CONTENT_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
CURVE_CLASSES = ("a", "b", "c")


def card_page(card: Card) -> str:
    """Return the page of a card."""
    panels = [
        _head(card),
        _causes_panel(card),
        _rates_panel("Rates", card.rates, card.scores),
        failures_panel(card.failures, card.oddities),
        _rates_panel("Right replies by category", card.categories),
        _latency_panel(card),
        facts_panel(card),
    ]
    return page(card.title, panels)


def page(title: str, panels: Iterable[Html]) -> str:
    """Return a complete page with these panels."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="content-security-policy", content=CONTENT_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", Html(STYLE)),
    )
    body = element("body", element("main", *panels))
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


# ── parts that the comparison uses, too ───────────────────────────────────────────────────────────────────────────────


def panel(title: str, *children: str) -> Html:
    return element("section", element("h2", title), *children, class_="panel")


def faint(text: str, *, small: bool = False) -> Html:
    return element("span", text, class_="faint small" if small else "faint")


def key(css_class: str) -> Html:
    """Return the coloured square of a legend."""
    return element("span", class_=f"key {css_class}")


def score(rate: Rate, label: str) -> Html:
    """Return a share in large type."""
    number = element("b", format_share(rate.value), class_=grade(rate.value))
    return element("div", number, element("span", label), class_="score")


def table(columns: Sequence[tuple[str, str]], rows: Iterable[Html]) -> Html:
    """Return a table. Each column has a heading and a CSS class."""
    head = element("tr", *(element("th", title, class_=css_class) for title, css_class in columns))
    return element("table", element("thead", head), element("tbody", *rows), class_="rates")


def curve_legend(curves: Iterable[tuple[str, LatencyCurve]]) -> Html:
    entries = [
        element("span", key(css_class[0]), f"{curve.name}: median {format_seconds(curve.seconds[MEDIAN])}")
        for css_class, curve in curves
    ]
    return element("div", *entries, class_="legend")


# ── panels ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _head(card: Card) -> Html:
    metrics, header = card.metrics, card.header
    left = [
        element("h1", header.model),
        element("p", faint(f"{card.host} · {header.api}")),
        element("p", card.verdict),
    ]
    if not card.is_complete:
        done = f"The run is not complete: {card.trials_done} of {header.trials} requests are done."
        left.append(element("p", done, class_="note"))
    scores = [score(metrics.right, "right"), score(metrics.right_corrected, "with Interlingua")]
    columns = [element("div", *left), element("div", *scores, class_="scores")]
    return element("header", element("div", *columns, class_="head"), class_="panel")


def _causes_panel(card: Card) -> Html:
    if not card.causes:
        return Html()
    right = card.metrics.right
    counts = [(f"cause-{cause.cause}", cause.count) for cause in card.causes]
    bar = cause_bar([*counts, ("cause-right", right.count)], right.total)
    note = faint(f"Each part is a share of all {right.total} requests; the rest is right.", small=True)
    return panel("Who lost the calls", bar, element("p", note), *map(_cause_row, card.causes))


def _cause_row(cause: CauseCount) -> Html:
    uncertain = cause.count - cause.certain
    note = faint(f" {uncertain} of them likely" if cause.certain else " likely", small=True) if uncertain else ""
    return element(
        "div",
        element("div", key(f"cause-{cause.cause}"), CAUSE_NAMES[cause.cause]),
        element("div", str(cause.count), note),
        element("div", faint(f"{sentence(CAUSES[cause.cause])} "), *_advice(cause.advice), class_="what"),
        class_="cause",
    )


def _advice(text: str) -> Iterator[str]:
    """Yield the words of an advice. A browser does not break the flags among them."""
    for word in text.split(" "):
        yield element("span", word, class_="flag") if word.startswith("--") else word
        yield " "


def _rates_panel(title: str, rates: Sequence[NamedRate], scores: Sequence[NamedScore] = ()) -> Html:
    if not rates:
        return Html()
    columns = [("", ""), ("share", "number"), ("95 % interval, from 0 to 100 %", ""), ("", ""), ("requests", "number")]
    rows = [*map(_rate_row, rates), *(_score_row(score_) for score_ in scores)]
    return panel(title, table(columns, rows))


def _rate_row(named: NamedRate) -> Html:
    rate = named.rate
    return element(
        "tr",
        element("td", named.name, _meaning(named.meaning)),
        element("td", format_share(rate.value), class_="number"),
        element("td", interval_plot([("a", rate)]), class_="plot"),
        element("td", format_interval(rate), class_="number interval"),
        element("td", f"{rate.count} of {rate.total}", class_="number count"),
    )


def _score_row(named: NamedScore) -> Html:
    return element(
        "tr",
        element("td", named.name, _meaning(named.meaning)),
        element("td", format_share(named.value), class_="number"),
        *(element("td", class_=css_class) for css_class in ("plot", "interval", "count")),
    )


def _meaning(text: str) -> Html:
    return element("span", text, class_="meaning") if text else Html()


def failures_panel(
    groups: Sequence[FailureGroup], oddities: Sequence[tuple[str, int]], title: str = "Failures"
) -> Html:
    """Return the failures, each with its texts one click away."""
    if not groups and not oddities:
        return Html()
    content = [_failure_group(group) for group in groups]
    if oddities:
        kinds = ", ".join(f"{kind} ({count})" for kind, count in oddities)
        content.append(element("p", faint(f"Irregularities that some clients survive: {kinds}.", small=True)))
    return panel(title, *content)


def _failure_group(group: FailureGroup) -> Html:
    summary = element(
        "summary",
        element("span", str(group.count), class_="count"),
        " × ",
        key(f"cause-{group.cause}"),
        f"{CAUSE_NAMES[group.cause]} · ",
        element("b", group.kind),
        faint(f" {FAILURE_KINDS[group.kind]}"),
    )
    hidden = group.count - len(group.examples)
    more = [element("p", faint(f"{hidden} more of this kind are in the log.", small=True))] if hidden else []
    first, *others = group.examples
    return element("details", summary, _example(first, is_open=True), *map(_example, others), *more)


def _example(result: TrialResult, *, is_open: bool = False) -> Html:
    attribution = result.attribution
    assert attribution is not None, "only attributed results are in a group"
    mode = "stream" if result.stream else "whole"
    texts = (
        ("What the model wrote, as far as it is known", attribution.raw_text),
        ("Response of the server", result.excerpt),
        ("Prompt", result.prompt),
    )
    blocks = [
        join([element("p", faint(title, small=True)), element("pre", text)]) for title, text in texts if text.strip()
    ]
    reasons = element("ul", *(element("li", reason) for reason in attribution.reasons))
    summary = element("summary", f"{result.id} · {mode} ", faint(f"· {attribution.confidence}"))
    return element("details", summary, reasons, *blocks, **({"open": ""} if is_open else {}))


def _latency_panel(card: Card) -> Html:
    if not card.latency:
        return Html()
    curves = list(zip(CURVE_CLASSES, card.latency, strict=False))
    note = element("p", faint("Share of the replies that arrived within a time.", small=True))
    return panel("Latency", note, latency_plot(curves), curve_legend(curves))


def facts_panel(card: Card, title: str = "The run") -> Html:
    rows = [join([element("dt", name), element("dd", fact)]) for name, fact in _facts(card) if fact]
    return panel(title, element("dl", *rows))


def _facts(card: Card) -> Iterator[tuple[str, str]]:
    header = card.header
    yield "server", " ".join(filter(None, (header.engine or "unknown", header.engine_version)))
    yield "URL", header.url
    yield "dialect", header.dialect
    yield "set", f"{header.set_name}, {header.trials} requests ({' and '.join(header.modes)})"
    yield "settings", describe_settings(header.settings) or "those of the samples"
    yield "tokens", f"{format_tokens(card.tokens.prompt)} prompt, {format_tokens(card.tokens.reply)} reply"
    yield "evidence, retries", f"{format_tokens(card.extra_tokens.total)} tokens" if card.extra_tokens.total else ""
    yield "cost", format_dollars(card.dollars) if card.dollars is not None else ""
    yield "rate limits", f"{card.rate_limited} responses" if card.rate_limited else ""
    yield "reference", card.reference
    yield "started", header.started_at
    yield "made with", f"Interlingua {header.version}"
    for note in header.notes:
        yield "note", note
