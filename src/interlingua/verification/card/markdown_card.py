"""Card as Markdown, for issues and documentation."""

from __future__ import annotations

from collections.abc import Iterator

from interlingua.verification.card.card import Card
from interlingua.verification.card.formats import (
    CAUSE_NAMES,
    format_dollars,
    format_interval,
    format_seconds,
    format_share,
    format_tokens,
)
from interlingua.verification.judging.failure import FAILURE_KINDS

__all__ = ["markdown_card"]


def markdown_card(card: Card) -> str:
    return "\n".join(_lines(card)) + "\n"


def _lines(card: Card) -> Iterator[str]:
    header = card.header
    yield f"# {card.title}"
    yield ""
    yield card.verdict
    if not card.is_complete:
        yield ""
        yield f"**The run is not complete:** {card.trials_done} of {header.trials} requests are done."
    yield ""
    yield "| metric | value | 95 % interval | requests |"
    yield "|---|---|---|---|"
    for rate in card.rates:
        counts = f"{rate.rate.count} of {rate.rate.total}"
        yield f"| {rate.name} | {format_share(rate.rate.value)} | {format_interval(rate.rate)} | {counts} |"
    for score in card.scores:
        yield f"| {score.name} | {format_share(score.value)} |  | {score.meaning} |"
    if card.causes:
        yield from ("", "## Who lost the calls", "", "| cause | failures | certain | what helps |", "|---|---|---|---|")
        for cause in card.causes:
            yield f"| {CAUSE_NAMES[cause.cause]} | {cause.count} | {cause.certain} | {_cell(cause.advice)} |"
        yield from ("", "| cause | failure | count | example |", "|---|---|---|---|")
        for group in card.failures:
            example = group.examples[0]
            kind = f"`{group.kind}`: {FAILURE_KINDS[group.kind]}"
            mode = "stream" if example.stream else "whole"
            yield f"| {CAUSE_NAMES[group.cause]} | {kind} | {group.count} | `{example.id}` ({mode}) |"
    if card.oddities:
        kinds = ", ".join(f"`{kind}` ({count})" for kind, count in card.oddities)
        yield from ("", f"Irregularities that some clients survive: {kinds}.")
    yield from ("", "## By category", "", "| category | right | 95 % interval | requests |", "|---|---|---|---|")
    for rate in card.categories:
        share = format_share(rate.rate.value)
        yield f"| {rate.name} | {share} | {format_interval(rate.rate)} | {rate.rate.count} of {rate.rate.total} |"
    yield from _latency(card)
    yield from ("", *_facts(card))


def _latency(card: Card) -> Iterator[str]:
    rows = (("first content of streams", card.metrics.first_content), ("complete reply", card.metrics.duration))
    known = [(name, times) for name, times in rows if times.count]
    if known:
        yield from ("", "## Latency", "", "| time | median | 90 % | 99 % |", "|---|---|---|---|")
    for name, times in known:
        yield f"| {name} | {format_seconds(times.p50)} | {format_seconds(times.p90)} | {format_seconds(times.p99)} |"


def _facts(card: Card) -> Iterator[str]:
    header = card.header
    engine = " ".join(filter(None, (header.engine or "unknown server", header.engine_version)))
    cost = f", {format_dollars(card.dollars)}" if card.dollars is not None else ""
    yield f"- {engine}, {header.api}, dialect `{header.dialect}`, {header.started_at}"
    yield f"- set `{header.set_name}`: {header.trials} requests"
    yield (
        f"- {format_tokens(card.tokens.prompt)} prompt and {format_tokens(card.tokens.reply)} reply tokens, "
        f"{format_tokens(card.extra_tokens.total)} more for evidence and retries{cost}"
    )
    if card.reference:
        yield f"- reference: {card.reference}"
    for note in header.notes:
        yield f"- {note}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
