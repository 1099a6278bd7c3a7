"""Numbers for plots, from the summaries of exchanges."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import msgspec

from interlingua.inspection.exchange_summary import ExchangeSummary

__all__ = ["Count", "Numbers", "Point", "SeriesCount", "count_exchanges"]

MAX_NAMES = 8
"""Names in one plot; the others are counted as `other`."""
BUCKET_COUNT = 40
_BUCKET_SECONDS = (1, 5, 10, 30, 60, 300, 600, 1800, 3600, 6 * 3600, 24 * 3600, 7 * 24 * 3600)
OTHER = "other"

Name: TypeAlias = Callable[[ExchangeSummary], Iterable[tuple[str, int]]]


class Point(msgspec.Struct, frozen=True, array_like=True):
    """One exchange in a plot over time."""

    time: float
    value: float
    name: str
    """Model."""
    id: str


class Count(msgspec.Struct, frozen=True):
    """Number of occurrences, in all and by model."""

    name: str
    total: int
    by_model: dict[str, int]


class SeriesCount(msgspec.Struct, frozen=True):
    """Number of occurrences of one name in each bucket of time."""

    name: str
    counts: list[int]


class Numbers(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of a list of exchanges."""

    exchanges: int
    start: float
    """Start of the first bucket, in seconds since 1970."""
    bucket_seconds: int
    first_byte: list[Point]
    """Seconds to the first byte."""
    tokens_per_second: list[Point]
    """Output tokens per second, from the first byte to the end."""
    requests: list[SeriesCount]
    """Exchanges by model."""
    errors: list[SeriesCount]
    """Exchanges that failed, by upstream."""
    calls: list[SeriesCount]
    """Calls by model."""
    findings: list[Count]
    cached_tokens: int
    input_tokens: int
    output_tokens: int
    first_byte_median: float | None = None
    first_byte_p95: float | None = None
    tokens_per_second_median: float | None = None


def count_exchanges(summaries: Iterable[ExchangeSummary]) -> Numbers:
    """Return the numbers of these exchanges."""
    ordered = sorted((one for one in summaries if one.outcome != "open"), key=lambda one: one.time)
    start, bucket_seconds, bucket_count = _buckets(ordered)

    def series(name: Name) -> list[SeriesCount]:
        return _count_series(ordered, name, start, bucket_seconds, bucket_count)

    first_byte = [Point(one.time, one.first_byte, _model(one), one.id) for one in ordered if one.first_byte is not None]
    speed = [Point(one.time, rate, _model(one), one.id) for one in ordered if (rate := _output_rate(one)) is not None]
    return Numbers(
        exchanges=len(ordered),
        start=start,
        bucket_seconds=bucket_seconds,
        first_byte=first_byte,
        tokens_per_second=speed,
        requests=series(lambda one: [(_model(one), 1)]),
        errors=series(lambda one: [(one.upstream or "gateway", 1)] if _is_error(one) else []),
        calls=series(lambda one: [(_model(one), one.calls)]),
        findings=_count_findings(ordered),
        cached_tokens=sum(one.tokens.get("cached", 0) for one in ordered),
        input_tokens=sum(one.tokens.get("input", 0) for one in ordered),
        output_tokens=sum(one.tokens.get("output", 0) for one in ordered),
        first_byte_median=_quantile([point.value for point in first_byte], 0.5),
        first_byte_p95=_quantile([point.value for point in first_byte], 0.95),
        tokens_per_second_median=_quantile([point.value for point in speed], 0.5),
    )


def _model(summary: ExchangeSummary) -> str:
    return summary.upstream_model or summary.model or "unknown"


def _is_error(summary: ExchangeSummary) -> bool:
    return summary.outcome not in ("ok", "client-left")


def _output_rate(summary: ExchangeSummary) -> float | None:
    """Return the output tokens per second of a stream; None if they are not known."""
    tokens = summary.tokens.get("output", 0)
    if not summary.stream or not tokens or summary.seconds is None or summary.first_byte is None:
        return None
    seconds = summary.seconds - summary.first_byte
    return round(tokens / seconds, 2) if seconds > 0 else None


def _buckets(summaries: list[ExchangeSummary]) -> tuple[float, int, int]:
    """Return the start, the seconds and the number of the buckets."""
    if not summaries:
        return 0.0, 1, 0
    first, last = summaries[0].time, summaries[-1].time
    seconds = next((size for size in _BUCKET_SECONDS if (last - first) / size <= BUCKET_COUNT), _BUCKET_SECONDS[-1])
    start = first - first % seconds
    return start, seconds, int((last - start) // seconds) + 1


def _count_series(
    summaries: list[ExchangeSummary], name: Name, start: float, bucket_seconds: int, bucket_count: int
) -> list[SeriesCount]:
    totals: dict[str, int] = {}
    named = [(summary, list(name(summary))) for summary in summaries]
    for _, counts in named:
        for key, count in counts:
            totals[key] = totals.get(key, 0) + count
    kept = sorted((key for key, total in totals.items() if total), key=lambda key: (-totals[key], key))[:MAX_NAMES]
    series: dict[str, list[int]] = {}
    for summary, counts in named:
        bucket = int((summary.time - start) // bucket_seconds)
        for key, count in counts:
            if count:
                series.setdefault(key if key in kept else OTHER, [0] * bucket_count)[bucket] += count
    order = [*kept, OTHER]
    return [SeriesCount(key, series[key]) for key in order if key in series]


def _count_findings(summaries: list[ExchangeSummary]) -> list[Count]:
    by_kind: dict[str, dict[str, int]] = {}
    for summary in summaries:
        for kind, count in summary.findings.items():
            models = by_kind.setdefault(kind, {})
            models[_model(summary)] = models.get(_model(summary), 0) + count
    counts = [Count(kind, sum(models.values()), models) for kind, models in by_kind.items()]
    return sorted(counts, key=lambda count: (-count.total, count.name))


def _quantile(values: list[float], share: float) -> float | None:
    if not values:
        return None
    ordered = sorted(values)
    return round(ordered[min(int(share * len(ordered)), len(ordered) - 1)], 4)
