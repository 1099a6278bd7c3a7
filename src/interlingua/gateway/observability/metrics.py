"""Prometheus metrics in the text format.

Label values come from fixed sets: wires, dialects, kinds of findings, names of configured upstreams. A value that a
client chooses, such as a model id, is never a label: it could exhaust the memory of the gateway and of Prometheus.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate

from interlingua.gateway.observability.exchange_record import ExchangeRecord

__all__ = ["CONTENT_TYPE", "Metrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_FIRST_BYTE_BUCKETS_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
_REQUEST_BUCKETS_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
_MAX_SERIES = 500
"""Maximum number of series per metric, as a safeguard against labels with too many values."""


class Metrics:
    """Metrics of one process. With several workers, `worker` becomes a label on every series."""

    def __init__(
        self,
        worker: str = "",
        held_back_bytes: Callable[[], int] = lambda: 0,
        lost_log_lines: Callable[[], int] = lambda: 0,
        lost_captures: Callable[[], int] = lambda: 0,
    ) -> None:
        self._worker = worker
        self._open_request_ids: set[str] = set()
        self._requests = _Counter("requests_total", "Finished requests.", "wire", "upstream", "status", "outcome")
        self._first_byte = _Histogram(
            "first_byte_seconds",
            "Time from the request to the first output of its reply.",
            _FIRST_BYTE_BUCKETS_SECONDS,
            "upstream",
        )
        self._seconds = _Histogram(
            "request_seconds", "Time from the request to the end of its reply.", _REQUEST_BUCKETS_SECONDS, "upstream"
        )
        self._reads = _Counter("reads_total", "Chunks read from streams of upstreams.")
        self._calls = _Counter("calls_total", "Tool calls in replies.", "dialect")
        self._findings = _Counter("findings_total", "Findings in requests and replies.", "kind")
        self._upstream_errors = _Counter(
            "upstream_errors_total",
            "Requests that failed at an upstream. kind: HTTP status, no-answer, or stream if the stream broke off.",
            "upstream",
            "kind",
        )
        self._tokens = _Counter("tokens_total", "Tokens reported by upstreams.", "direction")
        self._retries = _Counter(
            "retries_total", "Retries and fallbacks: attempts at upstreams after the first one of a request."
        )
        self._circuit_openings = _Counter(
            "rests_total", "How often the circuit breaker of an upstream opened.", "upstream"
        )
        self._metrics: list[_Metric] = [
            self._requests,
            _CallbackGauge("streams_open", "gauge", "Requests in progress.", lambda: len(self._open_request_ids)),
            self._first_byte,
            self._seconds,
            self._reads,
            self._calls,
            self._findings,
            self._upstream_errors,
            _CallbackGauge(
                "held_back_bytes", "gauge", "Text buffered until the parser can classify it.", held_back_bytes
            ),
            self._tokens,
            self._retries,
            self._circuit_openings,
            _CallbackGauge("log_lines_lost_total", "counter", "Log lines that were dropped.", lost_log_lines),
            _CallbackGauge("captures_lost_total", "counter", "Captures that are missing or truncated.", lost_captures),
        ]

    def begin(self, exchange: ExchangeRecord) -> None:
        self._open_request_ids.add(exchange.id)

    def end(self, exchange: ExchangeRecord) -> None:
        self._open_request_ids.discard(exchange.id)
        upstream = exchange.upstream
        self._requests.add(1, exchange.wire, upstream, str(exchange.status), exchange.outcome)
        if exchange.first_byte is not None:
            self._first_byte.add(exchange.first_byte - exchange.started, upstream)
        if exchange.ended is not None:
            self._seconds.add(exchange.ended - exchange.started, upstream)
        self._reads.add(exchange.reads)
        if exchange.calls:
            self._calls.add(exchange.calls, exchange.dialect)
        for finding_kind, count in Counter(finding.kind for finding in exchange.findings).items():
            self._findings.add(count, finding_kind)
        if exchange.outcome == "upstream-failed":
            self._upstream_errors.add(1, upstream, _upstream_error_kind(exchange.upstream_status))
        if exchange.usage and not exchange.usage.estimated:
            self._tokens.add(exchange.usage.input, "input")
            self._tokens.add(exchange.usage.output, "output")
        self._retries.add(max(0, exchange.attempts - 1))

    def record_circuit_open(self, upstream: str) -> None:
        self._circuit_openings.add(1, upstream)

    def render(self) -> bytes:
        common_labels = {"worker": self._worker} if self._worker else {}
        return "".join(line + "\n" for metric in self._metrics for line in metric.lines(common_labels)).encode()


def _upstream_error_kind(status: int) -> str:
    if not status:
        return "no-answer"
    return str(status) if 400 <= status < 600 else "stream"


class _Metric(ABC):
    """Metric with a name, and its rendering in the text format."""

    def __init__(self, name: str, metric_type: str, help_text: str, *labels: str) -> None:
        self.name = f"interlingua_{name}"
        self._header = [f"# HELP {self.name} {help_text}", f"# TYPE {self.name} {metric_type}"]
        self._label_names = labels

    def lines(self, common_labels: dict[str, str]) -> Iterator[str]:
        yield from self._header
        for suffix, labels, value in self.samples():
            label_text = ",".join(
                f'{name}="{_escape_label(text)}"' for name, text in {**common_labels, **labels}.items()
            )
            yield f"{self.name}{suffix}{{{label_text}}} {value}" if label_text else f"{self.name}{suffix} {value}"

    @abstractmethod
    def samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        """Yield the suffix of the name, the labels and the value of each sample."""

    def _label_values(self, values: tuple[str, ...]) -> dict[str, str]:
        return dict(zip(self._label_names, values, strict=True))


class _CallbackGauge(_Metric):
    """Metric whose value is read from a callback."""

    def __init__(self, name: str, metric_type: str, help_text: str, read_value: Callable[[], int]) -> None:
        super().__init__(name, metric_type, help_text)
        self._read_value = read_value

    def samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        yield "", {}, self._read_value()


class _Counter(_Metric):
    def __init__(self, name: str, help_text: str, *labels: str) -> None:
        super().__init__(name, "counter", help_text, *labels)
        self._counts: dict[tuple[str, ...], int] = {} if labels else {(): 0}

    def add(self, number: int, *values: str) -> None:
        key = _bounded_key(self._counts, values)
        self._counts[key] = self._counts.get(key, 0) + number

    def samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        for values, number in self._counts.items():
            yield "", self._label_values(values), number


class _Histogram(_Metric):
    def __init__(self, name: str, help_text: str, bounds: tuple[float, ...], *labels: str) -> None:
        super().__init__(name, "histogram", help_text, *labels)
        self._bounds = bounds
        self._counts: dict[tuple[str, ...], list[int]] = {}
        self._sums: dict[tuple[str, ...], float] = {}

    def add(self, number: float, *values: str) -> None:
        key = _bounded_key(self._counts, values)
        counts = self._counts.setdefault(key, [0] * (len(self._bounds) + 1))
        counts[bisect_left(self._bounds, number)] += 1
        self._sums[key] = self._sums.get(key, 0.0) + number

    def samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        for values, counts in self._counts.items():
            labels = self._label_values(values)
            for bound, cumulative in zip([*map(str, self._bounds), "+Inf"], accumulate(counts), strict=True):
                yield "_bucket", {**labels, "le": bound}, cumulative
            yield "_sum", labels, self._sums[values]
            yield "_count", labels, sum(counts)


def _bounded_key(series: Mapping[tuple[str, ...], object], values: tuple[str, ...]) -> tuple[str, ...]:
    return values if values in series or len(series) < _MAX_SERIES else ("other",) * len(values)


def _escape_label(text: str) -> str:
    text = text.encode("utf-8", "replace").decode()
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
