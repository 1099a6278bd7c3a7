"""Card of a run: rates with intervals, failures by cause, latency, tokens and costs, as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

import msgspec

from interlingua.verification.attribution import CAUSES
from interlingua.verification.attribution.causes import Cause
from interlingua.verification.card.advice import advise
from interlingua.verification.judging.failure import FAILURE_KINDS
from interlingua.verification.probing.server_facts import Price
from interlingua.verification.run.cost import TokenCount, count_tokens
from interlingua.verification.run.metrics import Metrics, Rate, compute_metrics, percentile
from interlingua.verification.run.reference import Reference
from interlingua.verification.run.run_log import RunHeader, StoredRun
from interlingua.verification.run.trial_result import TrialResult

__all__ = ["Card", "CauseCount", "FailureGroup", "NamedRate", "NamedScore", "build_card"]

MAX_EXAMPLES = 12
"""Failed trials that a group shows in full."""
QUANTILE_STEPS = range(0, 101, 5)


class NamedRate(msgspec.Struct, frozen=True):
    name: str
    meaning: str
    rate: Rate


class NamedScore(msgspec.Struct, frozen=True):
    """A number from 0 to 1 without an interval."""

    name: str
    meaning: str
    value: float | None


class FailureGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Failures of one kind with one cause."""

    cause: Cause
    kind: str
    count: int
    certain: int
    """Number of failures whose cause is certain."""
    examples: tuple[TrialResult, ...]


class CauseCount(msgspec.Struct, frozen=True):
    cause: Cause
    count: int
    certain: int
    advice: str


class LatencyCurve(msgspec.Struct, frozen=True):
    """Quantiles of times, from 0 to 100 percent in steps of five."""

    name: str
    seconds: tuple[float, ...]


class Card(msgspec.Struct, frozen=True, kw_only=True):
    header: RunHeader
    is_complete: bool
    trials_done: int
    metrics: Metrics
    rates: tuple[NamedRate, ...]
    scores: tuple[NamedScore, ...]
    categories: tuple[NamedRate, ...]
    causes: tuple[CauseCount, ...]
    failures: tuple[FailureGroup, ...]
    oddities: tuple[tuple[str, int], ...]
    """Kinds of irregularities, and the number of replies with each."""
    latency: tuple[LatencyCurve, ...]
    tokens: TokenCount
    """Tokens of the trials."""
    extra_tokens: TokenCount
    """Tokens of evidence and retries."""
    dollars: float | None = None
    reference: str = ""
    """Name of the reference run; "" if there is none."""
    rate_limited: int = 0

    @property
    def title(self) -> str:
        return f"{self.header.model} at {self.host}"

    @property
    def host(self) -> str:
        return urlsplit(self.header.url).netloc or self.header.url

    @property
    def verdict(self) -> str:
        """The result in one sentence."""
        right, corrected = self.metrics.right, self.metrics.right_corrected
        if not right.total:
            return "No request was answered yet."
        low, high = right.interval
        interval = f"{100 * low:.0f} to {100 * high:.0f} % with 95 % confidence"
        sentence = f"{right.count} of {right.total} requests are right ({interval})"
        return f"{sentence}; with Interlingua {corrected.count}." if corrected.count != right.count else f"{sentence}."


def build_card(
    run: StoredRun, reference: Reference | None = None, price: Price | None = None, rate_limited: int = 0
) -> Card:
    """Return the card of a run, complete or not."""
    results = run.results
    metrics = compute_metrics(results, reference.called if reference else None)
    tokens = count_tokens(results)
    return Card(
        header=run.header,
        is_complete=run.is_complete,
        trials_done=len(results),
        metrics=metrics,
        rates=tuple(_rates(metrics)),
        scores=tuple(_scores(metrics, reference)),
        categories=tuple(NamedRate(name, "", rate) for name, rate in metrics.right_by_category.items()),
        causes=tuple(_causes(results, run.header)),
        failures=tuple(_failure_groups(results)),
        oddities=tuple(Counter(kind for result in results for kind in result.oddities).most_common()),
        latency=tuple(_latency_curves(results)),
        tokens=tokens,
        extra_tokens=run.extra_tokens,
        dollars=(tokens + run.extra_tokens).dollars(price),
        reference=reference.name if reference else "",
        rate_limited=rate_limited,
    )


def _rates(metrics: Metrics) -> Iterable[NamedRate]:
    rows: list[tuple[str, str, Rate | None]] = [
        ("right", "a plain client finds what is expected", metrics.right),
        ("right with Interlingua", "the same replies, corrected", metrics.right_corrected),
        ("right, streams", "", metrics.right_by_mode.get("stream")),
        ("right, whole replies", "", metrics.right_by_mode.get("whole")),
        ("answered", "requests with a reply in the end", metrics.success),
        ("replies per attempt", "retries count as attempts", metrics.attempts_success),
        ("schema accuracy", "replies with calls that all fit their schemas", metrics.schema_accuracy),
        ("finish reason", "it matches the reply", metrics.finish_reason),
        ("call rate", "replies whose finish reason is a call", metrics.finish_tool_calls),
        ("trigger match", "a call if the set expects one, and only then", metrics.trigger_match),
        ("more than thinking", "replies with a text or a call", metrics.not_only_thinking),
        ("language", "no Cyrillic characters where none are wanted", metrics.language),
        ("no repetition", "texts that do not repeat themselves", metrics.repetition),
        ("parameter order", "texts that name parameters in the order of the request", metrics.parameter_order),
        ("prompt tokens", "the expected number, or up to three more", metrics.prompt_tokens),
    ]
    return (NamedRate(name, meaning, rate) for name, meaning, rate in rows if rate is not None and rate.total)


def _scores(metrics: Metrics, reference: Reference | None) -> Iterable[NamedScore]:
    scores = []
    if metrics.expected_triggers.pairs:
        scores.append(("trigger", "the set expects it", metrics.expected_triggers))
    if metrics.reference_triggers is not None and reference is not None:
        scores.append(("reference", "the reference does", metrics.reference_triggers))
    for name, when, score in scores:
        yield NamedScore(f"{name} F1", f"calls when {when} ({score.pairs} requests)", score.f1)
        yield NamedScore(f"{name} precision", "share of its calls that are wanted", score.precision)
        yield NamedScore(f"{name} recall", "share of the wanted calls that it makes", score.recall)


def _causes(results: Sequence[TrialResult], header: RunHeader) -> Iterable[CauseCount]:
    for cause in CAUSES:
        found = [result for result in results if result.attribution and result.attribution.cause == cause]
        if found:
            yield CauseCount(cause, len(found), _count_certain(found), advise(cause, found, header))


def _failure_groups(results: Iterable[TrialResult]) -> Iterable[FailureGroup]:
    groups: dict[tuple[Cause, str], list[TrialResult]] = {}
    for result in results:
        if result.attribution is not None:
            groups.setdefault((result.attribution.cause, result.attribution.kind), []).append(result)
    order = {cause: n for n, cause in enumerate(CAUSES)}
    kinds = {kind: n for n, kind in enumerate(FAILURE_KINDS)}
    for (cause, kind), found in sorted(groups.items(), key=lambda item: (order[item[0][0]], kinds[item[0][1]])):
        yield FailureGroup(
            cause=cause,
            kind=kind,
            count=len(found),
            certain=_count_certain(found),
            examples=tuple(found[:MAX_EXAMPLES]),
        )


def _count_certain(failed: Iterable[TrialResult]) -> int:
    return sum(result.attribution is not None and result.attribution.confidence == "certain" for result in failed)


def _latency_curves(results: Iterable[TrialResult]) -> Iterable[LatencyCurve]:
    replies = [result for result in results if result.has_reply]
    rows = (
        ("first content, streams", [result.first_content_seconds for result in replies if result.stream]),
        ("complete, streams", [result.seconds for result in replies if result.stream]),
        ("complete, whole replies", [result.seconds for result in replies if not result.stream]),
    )
    for name, times in rows:
        known = sorted(seconds for seconds in times if seconds > 0)
        if known:
            yield LatencyCurve(name, tuple(round(percentile(known, share), 4) for share in QUANTILE_STEPS))
