"""Comparison of two cards: paired rates, clear differences, and the requests that only one of them answers right."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

import msgspec

from interlingua.verification.attribution import CAUSES
from interlingua.verification.attribution.causes import Cause
from interlingua.verification.card.card import Card, NamedRate
from interlingua.verification.run.metrics import Latency, Rate, TriggerScore, score_triggers
from interlingua.verification.run.run_log import StoredRun

__all__ = ["Comparison", "PairedRate", "compare_runs", "is_clear_difference"]


class PairedRate(msgspec.Struct, frozen=True):
    """A rate of both runs."""

    name: str
    a: Rate
    b: Rate

    @property
    def is_clear(self) -> bool:
        return is_clear_difference(self.a, self.b)


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    a: Card
    b: Card
    rates: tuple[PairedRate, ...]
    categories: tuple[PairedRate, ...]
    scores: tuple[tuple[str, float | None, float | None], ...]
    """Scores without an interval: name, and the value of each run."""
    causes: tuple[tuple[Cause, int, int], ...]
    """Number of failures of each run by cause; causes that occur in none are left out."""
    only_a_right: tuple[str, ...]
    """Samples that only the first provider answers right, each with its mode."""
    only_b_right: tuple[str, ...]
    agreement: TriggerScore
    """Decisions of the second provider to call a tool, with those of the first one as the reference."""

    @property
    def title(self) -> str:
        return f"{self.a.title} and {self.b.title}"

    @property
    def both(self) -> int:
        """Number of trials that both runs have."""
        return self.agreement.pairs

    @property
    def overlap_note(self) -> str:
        """Note that the runs have different requests; "" if they have the same."""
        counts = (self.a.trials_done, self.b.trials_done)
        if counts == (self.both, self.both):
            return ""
        common = f"The runs have {self.both} requests in common, of {counts[0]} and {counts[1]}."
        return f"{common} Each rate is of all requests of its run."

    @property
    def latencies(self) -> Iterator[tuple[str, Latency, Latency]]:
        """Times of both runs, by name."""
        a, b = self.a.metrics, self.b.metrics
        yield "first content, streams", a.first_content, b.first_content
        yield "complete reply", a.duration, b.duration

    @property
    def agreement_sentence(self) -> str:
        same = self.agreement.true_positives + self.agreement.true_negatives
        f1 = self.agreement.f1
        similarity = f" (F1 {100 * f1:.1f} %)" if f1 is not None else ""
        return f"Both decide alike whether to call a tool in {same} of {self.both} requests{similarity}."


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
    counts_a, counts_b = ({cause.cause: cause.count for cause in card.causes} for card in (a, b))
    scores_b = {score.name: score.value for score in b.scores}
    return Comparison(
        a=a,
        b=b,
        rates=tuple(_pair_rates(a.rates, b.rates)),
        categories=tuple(_pair_rates(a.categories, b.categories)),
        scores=tuple((score.name, score.value, scores_b[score.name]) for score in a.scores if score.name in scores_b),
        causes=tuple(
            (cause, counts_a.get(cause, 0), counts_b.get(cause, 0))
            for cause in CAUSES
            if cause in counts_a or cause in counts_b
        ),
        only_a_right=tuple(only_a),
        only_b_right=tuple(only_b),
        agreement=score_triggers(
            run_b.results, {(result.digest, result.stream): result.wants_tools for result in run_a.results}
        ),
    )


def is_clear_difference(a: Rate, b: Rate) -> bool:
    """Return whether two rates differ with 95 % confidence (Newcombe's interval of the difference excludes zero)."""
    if a.value is None or b.value is None:
        return False
    (low_a, high_a), (low_b, high_b) = a.interval, b.interval
    difference = a.value - b.value
    lower = difference - sqrt((a.value - low_a) ** 2 + (high_b - b.value) ** 2)
    upper = difference + sqrt((high_a - a.value) ** 2 + (b.value - low_b) ** 2)
    return lower > 0 or upper < 0


def _pair_rates(a: tuple[NamedRate, ...], b: tuple[NamedRate, ...]) -> Iterator[PairedRate]:
    by_name = {named.name: named.rate for named in b}
    for named in a:
        if named.name in by_name:
            yield PairedRate(named.name, named.rate, by_name[named.name])
