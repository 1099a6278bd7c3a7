"""How much, how often, how fast? Numbers for Prometheus, in its text format.

Labels are the gateway's own words: wires, dialects, kinds of findings, names of configured upstreams. What a client may
choose freely, such as a model's id, is never one, or it could fill the memory of all who keep these numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate

from interlingua.gateway.observability.exchange_record import Exchange

__all__ = ["CONTENT_TYPE", "Metrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_FIRST_BYTE = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
_WHOLE = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
_SERIES = 500
"""How many a metric may have: a bound, should a label turn out to be less bounded than it is meant to be."""


class Metrics:
    """Of one process. Where several share a port, `worker` tells them apart."""

    def __init__(
        self,
        worker: str = "",
        held_back: Callable[[], int] = lambda: 0,
        lost_lines: Callable[[], int] = lambda: 0,
        lost_captures: Callable[[], int] = lambda: 0,
    ) -> None:
        self._worker = worker
        self._open: set[str] = set()
        self._requests = _Counter("requests_total", "Requests that are over.", "wire", "upstream", "status", "outcome")
        self._first_byte = _Histogram(
            "first_byte_seconds", "From a request to the first word of its reply.", _FIRST_BYTE, "upstream"
        )
        self._seconds = _Histogram("request_seconds", "From a request to the end of its reply.", _WHOLE, "upstream")
        self._reads = _Counter("reads_total", "Pieces read from the streams of upstreams.")
        self._calls = _Counter("calls_total", "Tool calls in replies.", "dialect")
        self._findings = _Counter("findings_total", "Oddities in requests and replies.", "kind")
        self._errors = _Counter(
            "upstream_errors_total",
            "Requests that an upstream failed: its HTTP status, no-answer, or stream if it broke off.",
            "upstream",
            "kind",
        )
        self._tokens = _Counter("tokens_total", "Tokens as counted by upstreams.", "direction")
        self._retries = _Counter("retries_total", "Attempts at upstreams behind the first one of a request.")
        self._rests = _Counter("rests_total", "How often an upstream began to be left alone.", "upstream")
        self._metrics: list[_Metric] = [
            self._requests,
            _Asked("streams_open", "gauge", "Requests under way.", lambda: len(self._open)),
            self._first_byte,
            self._seconds,
            self._reads,
            self._calls,
            self._findings,
            self._errors,
            _Asked("held_back_bytes", "gauge", "Text that waits until it is clear what it is.", held_back),
            self._tokens,
            self._retries,
            self._rests,
            _Asked("log_lines_lost_total", "counter", "Log lines that could not be written.", lost_lines),
            _Asked("captures_lost_total", "counter", "Captures that are missing or cut short.", lost_captures),
        ]

    def begin(self, exchange: Exchange) -> None:
        self._open.add(exchange.id)

    def end(self, exchange: Exchange) -> None:
        self._open.discard(exchange.id)
        upstream = exchange.upstream
        self._requests.add(1, exchange.wire, upstream, str(exchange.status), exchange.outcome)
        if exchange.first_byte is not None:
            self._first_byte.add(exchange.first_byte - exchange.started, upstream)
        if exchange.ended is not None:
            self._seconds.add(exchange.ended - exchange.started, upstream)
        self._reads.add(exchange.reads)
        if exchange.calls:
            self._calls.add(exchange.calls, exchange.dialect)
        for kind, number in Counter(finding.kind for finding in exchange.findings).items():
            self._findings.add(number, kind)
        if exchange.outcome == "upstream-failed":
            self._errors.add(1, upstream, _kind(exchange.upstream_status))
        if exchange.usage and not exchange.usage.estimated:
            self._tokens.add(exchange.usage.input, "input")
            self._tokens.add(exchange.usage.output, "output")
        self._retries.add(max(0, exchange.attempts - 1))

    def rest(self, upstream: str) -> None:
        self._rests.add(1, upstream)

    def render(self) -> bytes:
        shared = {"worker": self._worker} if self._worker else {}
        return "".join(line + "\n" for metric in self._metrics for line in metric.lines(shared)).encode()


def _kind(status: int) -> str:
    if not status:
        return "no-answer"
    return str(status) if 400 <= status < 600 else "stream"


class _Metric(ABC):
    """A name, and how it stands in the text format."""

    def __init__(self, name: str, kind: str, about: str, *labels: str) -> None:
        self.name = f"interlingua_{name}"
        self._head = [f"# HELP {self.name} {about}", f"# TYPE {self.name} {kind}"]
        self._labels = labels

    def lines(self, shared: dict[str, str]) -> Iterator[str]:
        yield from self._head
        for suffix, labels, value in self.samples():
            words = ",".join(f'{name}="{_escaped(text)}"' for name, text in {**shared, **labels}.items())
            yield f"{self.name}{suffix}{{{words}}} {value}" if words else f"{self.name}{suffix} {value}"

    @abstractmethod
    def samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        """What is added to the name, the labels, and the number."""

    def _named(self, values: tuple[str, ...]) -> dict[str, str]:
        return dict(zip(self._labels, values, strict=True))


class _Asked(_Metric):
    """A number that somebody else keeps."""

    def __init__(self, name: str, kind: str, about: str, ask: Callable[[], int]) -> None:
        super().__init__(name, kind, about)
        self._ask = ask

    def samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        yield "", {}, self._ask()


class _Counter(_Metric):
    def __init__(self, name: str, about: str, *labels: str) -> None:
        super().__init__(name, "counter", about, *labels)
        self._numbers: dict[tuple[str, ...], int] = {} if labels else {(): 0}

    def add(self, number: int, *values: str) -> None:
        key = _within(self._numbers, values)
        self._numbers[key] = self._numbers.get(key, 0) + number

    def samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        for values, number in self._numbers.items():
            yield "", self._named(values), number


class _Histogram(_Metric):
    def __init__(self, name: str, about: str, bounds: tuple[float, ...], *labels: str) -> None:
        super().__init__(name, "histogram", about, *labels)
        self._bounds = bounds
        self._counts: dict[tuple[str, ...], list[int]] = {}
        self._sums: dict[tuple[str, ...], float] = {}

    def add(self, number: float, *values: str) -> None:
        key = _within(self._counts, values)
        counts = self._counts.setdefault(key, [0] * (len(self._bounds) + 1))
        counts[bisect_left(self._bounds, number)] += 1
        self._sums[key] = self._sums.get(key, 0.0) + number

    def samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        for values, counts in self._counts.items():
            labels = self._named(values)
            for bound, below in zip([*map(str, self._bounds), "+Inf"], accumulate(counts), strict=True):
                yield "_bucket", {**labels, "le": bound}, below
            yield "_sum", labels, self._sums[values]
            yield "_count", labels, sum(counts)


def _within(known: Mapping[tuple[str, ...], object], values: tuple[str, ...]) -> tuple[str, ...]:
    return values if values in known or len(known) < _SERIES else ("other",) * len(values)


def _escaped(text: str) -> str:
    text = text.encode("utf-8", "replace").decode()
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
