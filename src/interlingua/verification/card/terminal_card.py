"""Card for the terminal, in lines of a given width."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator

from interlingua.verification.attribution import CAUSES
from interlingua.verification.card.card import Card, NamedRate, NamedScore
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
from interlingua.verification.judging.failure import FAILURE_KINDS
from interlingua.verification.run.metrics import Latency

__all__ = ["NAME_WIDTH", "Paint", "terminal_lines"]

Paint = Callable[[str, str], str]
"""Colours a text for a role: heading, good, fair, bad, faint."""
NAME_WIDTH = 24
MIN_BAR_WIDTH, MAX_BAR_WIDTH = 4, 40
RATE_NUMBERS_WIDTH = 35
"""Columns of a rate besides its name and bar, for runs of up to 9,999 requests."""
MAX_EXAMPLE_CHARS = 400


def terminal_lines(card: Card, width: int, paint: Paint) -> Iterator[str]:
    """Yield the lines of the card."""
    return _Lines(card, max(60, width), paint).all()


class _Lines:
    def __init__(self, card: Card, width: int, paint: Paint) -> None:
        self._card = card
        self._width = width
        self._paint = paint
        self._bar_width = min(MAX_BAR_WIDTH, max(MIN_BAR_WIDTH, width - NAME_WIDTH - RATE_NUMBERS_WIDTH))

    def all(self) -> Iterator[str]:
        card = self._card
        yield self._paint(card.title, "heading")
        yield from self._wrap(card.verdict)
        if not card.is_complete:
            done = f"{card.trials_done} of {card.header.trials} requests are done: the run is not complete."
            yield self._paint(done, "fair")
        yield ""
        for rate in card.rates:
            yield self._rate_line(rate)
        for score in card.scores:
            yield from self._score_lines(score)
        yield from self._causes()
        yield from self._failures()
        yield from self._section("by category", (self._rate_line(rate) for rate in card.categories))
        yield from self._latency()
        yield from self._facts()

    def _rate_line(self, named: NamedRate) -> str:
        rate = named.rate
        role = "faint" if named.name == "call rate" else grade(rate.value)
        filled = self._filled_columns(rate.value or 0.0)
        bar = self._paint("━" * filled, role) + self._paint("·" * (self._bar_width - filled), "faint")
        numbers = f"{format_interval(rate):>9}  {rate.count}/{rate.total}"
        return f"  {named.name:{NAME_WIDTH}} {format_share(rate.value):>7} {bar} {self._paint(numbers, 'faint')}"

    def _filled_columns(self, share: float) -> int:
        """Return the columns of a bar. It is full only at 100 %, and empty only at 0 %."""
        if share in (0.0, 1.0):
            return round(share * self._bar_width)
        return min(max(round(share * self._bar_width), 1), self._bar_width - 1)

    def _score_lines(self, score: NamedScore) -> Iterator[str]:
        columns = f"  {score.name:{NAME_WIDTH}} {format_share(score.value):>7} "
        for number, line in enumerate(self._wrap(score.meaning, len(columns))):
            yield f"{' ' * len(columns) if number else columns}{self._paint(line.lstrip(), 'faint')}"

    def _causes(self) -> Iterator[str]:
        card = self._card
        if not card.causes:
            return
        yield ""
        yield self._paint("who lost the calls", "heading")
        for cause in card.causes:
            uncertain = cause.count - cause.certain
            note = f" ({uncertain} of them likely)" if cause.certain else " (likely)"
            yield f"  {CAUSE_NAMES[cause.cause]:{NAME_WIDTH}} {cause.count:>4}{note if uncertain else ''}"
            for line in self._wrap(sentence(CAUSES[cause.cause]), indent=4):
                yield self._paint(line, "faint")
            yield from self._wrap(f"→ {cause.advice}", indent=4, hang=2)

    def _failures(self) -> Iterator[str]:
        card = self._card
        if not card.failures:
            return
        yield ""
        yield self._paint("failures", "heading")
        for group in card.failures:
            yield from self._wrap(
                f"{group.count:>4} × {CAUSE_NAMES[group.cause]}, {group.kind}: {FAILURE_KINDS[group.kind]}",
                indent=2,
                hang=7,
            )
            example = group.examples[0]
            reasons = "; ".join(example.attribution.reasons) if example.attribution else ""
            mode = "stream" if example.stream else "whole"
            text = textwrap.shorten(
                f"for example {example.id} ({mode}): {reasons}", MAX_EXAMPLE_CHARS, placeholder=" …"
            )
            for line in self._wrap(text, indent=9):
                yield self._paint(line, "faint")
        if card.oddities:
            kinds = ", ".join(f"{kind} ({count})" for kind, count in card.oddities)
            yield from self._wrap(f"irregularities that some clients survive: {kinds}", indent=2)
            yield from self._wrap(f"what to do: interlingua explain {card.oddities[0][0]}", indent=2)

    def _latency(self) -> Iterator[str]:
        metrics = self._card.metrics
        rows: list[tuple[str, Latency]] = [
            ("first content, streams", metrics.first_content),
            ("complete reply", metrics.duration),
        ]
        lines = [
            f"  {name:{NAME_WIDTH}} {format_seconds(times.p50):>7} {format_seconds(times.p90):>8} "
            f"{format_seconds(times.p99):>8}"
            for name, times in rows
            if times.count
        ]
        if lines:
            yield ""
            yield self._paint(f"{'latency':{NAME_WIDTH + 2}} {'median':>7} {'90 %':>8} {'99 %':>8}", "heading")
            yield from lines

    def _facts(self) -> Iterator[str]:
        card, header = self._card, self._card.header
        counted = f"{format_tokens(card.tokens.prompt)} prompt, {format_tokens(card.tokens.reply)} reply tokens"
        tokens = counted if card.tokens.total else "not counted by the server"
        extra = (
            f"; {format_tokens(card.extra_tokens.total)} for evidence and retries" if card.extra_tokens.total else ""
        )
        cost = f"; {format_dollars(card.dollars)}" if card.dollars is not None else ""
        engine = " ".join(filter(None, (header.engine or "unknown", header.engine_version)))
        settings = describe_settings(header.settings) or "settings of the samples"
        facts = [
            ("tokens", f"{tokens}{extra}{cost}"),
            ("server", f"{engine}; {header.api}; dialect {header.dialect}"),
            ("set", f"{header.set_name}, {header.trials} requests; {settings}"),
            ("reference", card.reference),
            *(("note", note) for note in header.notes),
        ]
        yield ""
        for name, fact in facts:
            for n, line in enumerate(self._wrap(fact, indent=NAME_WIDTH + 3) if fact else ()):
                label = f"  {name:{NAME_WIDTH}} " if n == 0 else " " * (NAME_WIDTH + 3)
                yield label + line.lstrip()

    def _section(self, title: str, lines: Iterator[str]) -> Iterator[str]:
        content = list(lines)
        if content:
            yield ""
            yield self._paint(title, "heading")
            yield from content

    def _wrap(self, text: str, indent: int = 0, hang: int = 0) -> list[str]:
        first, rest = " " * indent, " " * (indent + hang)
        width = self._width - 1
        return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
