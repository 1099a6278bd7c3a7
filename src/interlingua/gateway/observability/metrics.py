"""Prometheus metrics in the text format.

Label values come from fixed sets: wires, dialects, kinds of findings, names of configured upstreams. A value that a
client chooses, such as a model id, could exhaust the memory of the gateway and of Prometheus, so the number of model
ids is bounded (`ModelLabels`).

The values are in memory that all workers share (`shared_memory/series.py`), and every worker renders the sum over all
workers. Other values are those of the gateway's status, which is the same for all workers.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from operator import add
from typing import NamedTuple

from interlingua.core.finding_severity import severity_of
from interlingua.events import Usage
from interlingua.gateway.observability.exchange_record import ExchangeRecord
from interlingua.gateway.observability.gateway_status import WORKER_STATES, GatewayStatus
from interlingua.gateway.shared_memory.series import SeriesMemory, SeriesRegion

__all__ = ["CONTENT_TYPE", "Metrics", "ModelLabels", "reset_gauges"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_FIRST_BYTE_BUCKETS_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
_REQUEST_BUCKETS_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
_MAX_SERIES = 500
"""Maximum number of series per metric, as a safeguard against labels with too many values."""
_MAX_MODEL_SERIES = 2000
"""The same for metrics by client and model."""
_MAX_CACHED_KEYS = 8192
MAX_MODEL_LABELS = 100
"""Maximum number of model ids per worker that the settings do not contain."""
MAX_MODEL_LABEL_CHARS = 200
OTHER = "other"
REJECTED_KINDS = frozenset({"400", "404", "422"})
"""HTTP statuses with which an upstream rejects a model id that does not exist."""


class ModelLabels:
    """Model ids as label values: those of the settings, and a bounded number of others. All further ones are `other`.

    Args:
        configured_models: Returns the model ids of the settings.
        redact: Removes secrets from a text.
    """

    def __init__(
        self,
        configured_models: Callable[[], Collection[str]] = tuple,
        redact: Callable[[str], str] = lambda text: text,
    ) -> None:
        self._configured_models = configured_models
        self._redact = redact
        self._labels: dict[str, str] = {}

    def label(self, model: str, *, is_rejected: bool = False) -> str:
        """Return the label value of a model id. An id that the upstream has rejected is not added."""
        known = self._labels.get(model)
        if known is not None:
            return known
        if model in self._configured_models():
            return model
        if is_rejected or len(self._labels) >= MAX_MODEL_LABELS:
            return OTHER
        self._labels[model] = label = self._redact(model)[:MAX_MODEL_LABEL_CHARS]
        return label


class Metrics:
    """Metrics of the gateway, to which this worker adds its requests.

    Args:
        memory: The regions of all workers. None if this process is the only worker.
        held_back_bytes: Returns the number of bytes in the lookahead buffers of this worker.
        lost_log_lines: Returns the number of log lines that this worker dropped.
        lost_captures: Returns the number of captures of this worker that are missing or truncated.
        model_labels: The model ids that may be labels.
    """

    def __init__(
        self,
        memory: SeriesMemory | None = None,
        held_back_bytes: Callable[[], int] = lambda: 0,
        lost_log_lines: Callable[[], int] = lambda: 0,
        lost_captures: Callable[[], int] = lambda: 0,
        model_labels: ModelLabels | None = None,
    ) -> None:
        self._model_labels = model_labels or ModelLabels()
        self._memory = memory or SeriesMemory([SeriesRegion()], 0)
        own = _OwnSeries(self._memory.own)
        self._requests = _Counter(own, "requests_total", "Finished requests.", "wire", "upstream", "status", "outcome")
        self._streams_open = _StatusMetric("streams_open", "Requests in progress.")
        self._first_byte = _Histogram(
            own,
            "first_byte_seconds",
            "Time from the request to the first output of its reply.",
            _FIRST_BYTE_BUCKETS_SECONDS,
            "upstream",
        )
        self._seconds = _Histogram(
            own,
            "request_seconds",
            "Time from the request to the end of its reply.",
            _REQUEST_BUCKETS_SECONDS,
            "upstream",
        )
        self._reads = _Counter(own, "reads_total", "Chunks read from streams of upstreams.")
        self._calls = _Counter(own, "calls_total", "Tool calls in replies.", "dialect")
        self._findings = _Counter(
            own,
            "findings_total",
            "Findings in requests and replies. severity: info, warning or error.",
            "kind",
            "severity",
        )
        self._upstream_errors = _Counter(
            own,
            "upstream_errors_total",
            "Failed attempts at an upstream, also if a fallback answered. kind: HTTP status, unreachable, timeout,"
            " no-answer, stream if the reply broke off, or circuit-open if the request was not sent.",
            "upstream",
            "model",
            "kind",
        )
        self._held_back = _Gauge(own, "held_back_bytes", "Text buffered until the parser can classify it.")
        self._memory_use = _StatusMetric("memory_bytes", "Memory that requests in progress hold (limits.memory).")
        self._connections = _StatusMetric("connections_open", "Open connections of clients.")
        self._workers = _StatusMetric("workers", "Worker processes of the gateway, by their state.", "state")
        self._restarts = _StatusMetric(
            "worker_restarts_total", "Workers that were replaced because they died.", metric_type="counter"
        )
        self._circuits = _StatusMetric(
            "circuit_open",
            "1 while the circuit breaker of a model is open, for all clients or for some; 0 for configured models.",
            "upstream",
            "model",
        )
        self._retry_budgets = _StatusMetric("retry_budget", "Retries left for an upstream.", "upstream")
        self._tokens = _Counter(own, "tokens_total", "Tokens reported by upstreams.", "direction")
        self._model_requests = _Counter(
            own,
            "model_requests_total",
            "Finished requests by the name of the client's key, by upstream and model.",
            "client",
            "upstream",
            "model",
            "outcome",
            max_series=_MAX_MODEL_SERIES,
        )
        self._model_tokens = _Counter(
            own,
            "model_tokens_total",
            "Tokens reported by upstreams, by the name of the client's key, by upstream and model.",
            "client",
            "upstream",
            "model",
            "direction",
            max_series=_MAX_MODEL_SERIES,
        )
        self._retries = _Counter(
            own,
            "retries_total",
            "Retries and fallbacks: attempts at upstreams after the first one of a request, or of one of its rounds.",
        )
        self._circuit_openings = _Counter(
            own, "rests_total", "How often the circuit breaker of an upstream opened.", "upstream"
        )
        self._rate_limited = _Counter(
            own, "rate_limited_total", "Requests over a limit of their client (client_limits).", "limit"
        )
        self._log_lines_lost = _Counter(own, "log_lines_lost_total", "Log lines that were dropped.")
        self._captures_lost = _Counter(own, "captures_lost_total", "Captures that are missing or truncated.")
        self._metrics: list[_Metric] = [
            self._requests,
            self._streams_open,
            self._first_byte,
            self._seconds,
            self._reads,
            self._calls,
            self._findings,
            self._upstream_errors,
            self._held_back,
            self._memory_use,
            self._connections,
            self._tokens,
            self._model_requests,
            self._model_tokens,
            self._retries,
            self._retry_budgets,
            self._circuit_openings,
            self._circuits,
            self._rate_limited,
            self._log_lines_lost,
            self._captures_lost,
            self._workers,
            self._restarts,
        ]
        self._held_back_bytes = held_back_bytes
        self._callback_counters = [
            _CallbackCounter(self._log_lines_lost, lost_log_lines),
            _CallbackCounter(self._captures_lost, lost_captures),
        ]

    @property
    def finished_requests(self) -> int:
        """Number of finished requests of all workers."""
        series = (item for region in self._memory.regions for item in _metric_series(region))
        return int(sum(values[0] for key, values in series if key.metric == self._requests.name))

    def end(self, exchange: ExchangeRecord) -> None:
        upstream = exchange.upstream
        self._requests.add(1, exchange.wire, upstream, str(exchange.status), exchange.outcome)
        if exchange.first_byte is not None:
            self._first_byte.add(exchange.first_byte - exchange.started, upstream)
        if exchange.ended is not None:
            self._seconds.add(exchange.ended - exchange.started, upstream)
        self._reads.add(exchange.reads)
        if exchange.calls:
            self._calls.add(exchange.calls, exchange.dialect)
        for finding in exchange.findings:
            self._findings.add(1, finding.kind, severity_of(finding.kind))
        for attempt in exchange.failed_attempts:
            model = self._model_labels.label(attempt.model, is_rejected=attempt.kind in REJECTED_KINDS)
            self._upstream_errors.add(1, attempt.upstream, model, attempt.kind)
        usage = exchange.usage if exchange.usage and not exchange.usage.estimated else None
        if usage:
            self._tokens.add(usage.input, "input")
            self._tokens.add(usage.output, "output")
        if exchange.upstream_model:
            self._record_model(exchange, usage)
        self._retries.add(exchange.retries)

    def _record_model(self, exchange: ExchangeRecord, usage: Usage | None) -> None:
        is_rejected = str(exchange.upstream_status) in REJECTED_KINDS
        model = self._model_labels.label(exchange.upstream_model, is_rejected=is_rejected)
        labels = (exchange.client, exchange.upstream, model)
        self._model_requests.add(1, *labels, exchange.outcome)
        if usage:
            self._model_tokens.add(usage.input, *labels, "input")
            self._model_tokens.add(usage.output, *labels, "output")

    def record_circuit_open(self, upstream: str) -> None:
        self._circuit_openings.add(1, upstream)

    def record_rate_limited(self, limit: str) -> None:
        self._rate_limited.add(1, limit)

    def publish_callbacks(self) -> None:
        """Write the values of the callbacks to the shared memory. All other values are always up to date there."""
        self._held_back.set(self._held_back_bytes())
        for counter in self._callback_counters:
            counter.publish()

    def render(self, status: GatewayStatus, known_models: Sequence[tuple[str, str]] = ()) -> bytes:
        """Return the metrics of all workers in the text format. May run in another thread than the other methods.

        Args:
            status: The status of the gateway. It must be made before: what it no longer counts as open is counted.
            known_models: Names of upstream and model that the settings list.
        """
        totals = _sum_series(self._memory.regions, {metric.name: metric.max_series for metric in self._metrics})
        totals |= {metric.name: series for metric, series in self._status_series(status, known_models)}
        return "".join(
            line + "\n" for metric in self._metrics for line in metric.lines(totals.get(metric.name, {}))
        ).encode()

    def _status_series(
        self, status: GatewayStatus, known_models: Sequence[tuple[str, str]]
    ) -> Iterator[tuple[_Metric, dict[tuple[str, ...], list[float]]]]:
        """Yield the metrics that report the status, with their series."""
        yield self._streams_open, {(): [status.requests.used]}
        yield self._memory_use, {(): [status.memory_bytes.used]}
        yield self._connections, {(): [status.connections.used]}
        states = Counter(worker.state for worker in status.workers)
        yield self._workers, {(state,): [states[state]] for state in WORKER_STATES}
        yield self._restarts, {(): [sum(worker.restarts for worker in status.workers)]}
        yield self._retry_budgets, {(budget.upstream,): [budget.retries] for budget in status.retry_budgets}
        circuits: dict[tuple[str, ...], list[float]] = {
            names: [0] for names in known_models[: _MAX_SERIES - len(status.open_circuits) - 1]
        }
        circuits |= {(circuit.upstream, circuit.model): [1] for circuit in status.open_circuits}
        if status.more_open_circuits:
            circuits[OTHER, OTHER] = [status.more_open_circuits]
        yield self._circuits, circuits


def reset_gauges(region: SeriesRegion) -> None:
    """Set the gauges of a worker that has ended to 0. Its counters remain, and its replacement continues them."""
    for key, values in _metric_series(region):
        if key.metric_type == "gauge":
            values[0] = 0.0


class _SeriesKey(NamedTuple):
    metric_type: str
    metric: str
    label_values: tuple[str, ...]


def _encode_key(key: _SeriesKey) -> bytes:
    return json.dumps(key).encode()  # ASCII, so that unpaired surrogates are preserved


@lru_cache(_MAX_CACHED_KEYS)
def _decode_key(data: bytes) -> _SeriesKey:
    metric_type, metric, label_values = json.loads(data)
    return _SeriesKey(metric_type, metric, tuple(label_values))


def _metric_series(region: SeriesRegion) -> Iterator[tuple[_SeriesKey, memoryview[float]]]:
    """Yield the series of metrics. Keys of other series do not begin like JSON."""
    for data, values in region.series():
        if data.startswith(b"["):
            yield _decode_key(data), values


class _OwnSeries:
    """Series of this worker, continued from those of its predecessor."""

    def __init__(self, region: SeriesRegion) -> None:
        self._region = region
        self._by_metric: dict[str, dict[tuple[str, ...], memoryview[float]]] = {}
        for key, values in _metric_series(region):
            self._by_metric.setdefault(key.metric, {})[key.label_values] = values

    def values(self, metric: _Metric, label_values: tuple[str, ...]) -> memoryview[float]:
        """Return the values of a series, which is created if necessary; of the series `other` if there are too many."""
        series = self._by_metric.setdefault(metric.name, {})
        found = series.get(label_values)
        return found if found is not None else self._create(metric, label_values, series)

    def _create(
        self, metric: _Metric, label_values: tuple[str, ...], series: dict[tuple[str, ...], memoryview[float]]
    ) -> memoryview[float]:
        other = _other_labels(label_values)
        for candidate in (_bounded_labels(series, label_values, metric.max_series), other):
            if candidate in series:
                return series[candidate]
            key = _encode_key(_SeriesKey(metric.metric_type, metric.name, candidate))
            values = self._region.append(key, metric.width, use_reserve=candidate == other)
            if values is not None:
                series[candidate] = values
                return values
        raise AssertionError("the reserve of a region has room for the series `other` of each metric")


class _Metric(ABC):
    """Metric with a name, and its rendering in the text format."""

    width = 1
    """Number of values per series."""
    max_series = _MAX_SERIES

    def __init__(self, name: str, metric_type: str, help_text: str, *labels: str) -> None:
        self.name = f"interlingua_{name}"
        self.metric_type = metric_type
        self._header = [f"# HELP {self.name} {help_text}", f"# TYPE {self.name} {metric_type}"]
        self._label_names = labels

    def lines(self, series: Mapping[tuple[str, ...], Sequence[float]]) -> Iterator[str]:
        """Yield the lines for these series, given by their label values."""
        yield from self._header
        for label_values, values in series.items():
            labels = dict(zip(self._label_names, label_values, strict=True))
            for suffix, extra_labels, value in self.samples(values):
                label_text = ",".join(
                    f'{name}="{_escape_label(text)}"' for name, text in {**labels, **extra_labels}.items()
                )
                yield f"{self.name}{suffix}{{{label_text}}} {value}" if label_text else f"{self.name}{suffix} {value}"

    @abstractmethod
    def samples(self, values: Sequence[float]) -> Iterator[tuple[str, dict[str, str], float]]:
        """Yield the suffix of the name, the additional labels and the value of each sample of one series."""


class _Gauge(_Metric):
    def __init__(self, own: _OwnSeries, name: str, help_text: str) -> None:
        super().__init__(name, "gauge", help_text)
        self._values = own.values(self, ())

    def set(self, number: int) -> None:
        self._values[0] = number

    def samples(self, values: Sequence[float]) -> Iterator[tuple[str, dict[str, str], float]]:
        yield "", {}, int(values[0])


class _StatusMetric(_Metric):
    """Metric whose values come from the status of the gateway."""

    def __init__(self, name: str, help_text: str, *labels: str, metric_type: str = "gauge") -> None:
        super().__init__(name, metric_type, help_text, *labels)

    def samples(self, values: Sequence[float]) -> Iterator[tuple[str, dict[str, str], float]]:
        yield "", {}, values[0]


class _Counter(_Metric):
    def __init__(self, own: _OwnSeries, name: str, help_text: str, *labels: str, max_series: int = _MAX_SERIES) -> None:
        super().__init__(name, "counter", help_text, *labels)
        self.max_series = max_series
        self._own = own
        if not labels:
            self.add(0)  # a series without labels is reported from the start

    def add(self, number: int, *label_values: str) -> None:
        self._own.values(self, label_values)[0] += number

    def samples(self, values: Sequence[float]) -> Iterator[tuple[str, dict[str, str], float]]:
        yield "", {}, int(values[0])


class _CallbackCounter:
    """Counter of this process that a callback returns, and the metric to which its increase is added."""

    def __init__(self, metric: _Counter, read_count: Callable[[], int]) -> None:
        self._metric = metric
        self._read_count = read_count
        self._published = 0

    def publish(self) -> None:
        count = self._read_count()
        self._metric.add(count - self._published)
        self._published = count


class _Histogram(_Metric):
    """Histogram. The values of a series are the number of observations in each bucket, and their sum."""

    def __init__(self, own: _OwnSeries, name: str, help_text: str, bounds: tuple[float, ...], *labels: str) -> None:
        super().__init__(name, "histogram", help_text, *labels)
        self._own = own
        self._bounds = bounds
        self.width = len(bounds) + 2

    def add(self, number: float, *label_values: str) -> None:
        values = self._own.values(self, label_values)
        values[bisect_left(self._bounds, number)] += 1
        values[-1] += number

    def samples(self, values: Sequence[float]) -> Iterator[tuple[str, dict[str, str], float]]:
        counts = [int(count) for count in values[:-1]]
        for bound, cumulative in zip([*map(str, self._bounds), "+Inf"], accumulate(counts), strict=True):
            yield "_bucket", {"le": bound}, cumulative
        yield "_sum", {}, values[-1]
        yield "_count", {}, sum(counts)


def _sum_series(
    regions: Sequence[SeriesRegion], max_series: Mapping[str, int]
) -> dict[str, dict[tuple[str, ...], list[float]]]:
    """Return the sums over all workers, by the name of the metric and the label values."""
    totals: dict[str, dict[tuple[str, ...], list[float]]] = {}
    for region in regions:
        for key, values in _metric_series(region):
            series = totals.setdefault(key.metric, {})
            limit = max_series.get(key.metric, _MAX_SERIES)
            total = series.setdefault(_bounded_labels(series, key.label_values, limit), [0.0] * len(values))
            total[:] = map(add, total, values)
    return totals


def _bounded_labels(
    series: Collection[tuple[str, ...]], label_values: tuple[str, ...], max_series: int
) -> tuple[str, ...]:
    is_known = label_values in series or len(series) < max_series
    return label_values if is_known else _other_labels(label_values)


def _other_labels(label_values: tuple[str, ...]) -> tuple[str, ...]:
    return (OTHER,) * len(label_values)


def _escape_label(text: str) -> str:
    text = text.encode("utf-8", "replace").decode()
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
