"""Record of one exchange, filled while it runs and passed to log, metrics, traces and captures at its end."""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal, TypeAlias

from msgspec import Struct, field, structs, to_builtins

from interlingua.events import Finding, StopReason, Usage

__all__ = ["ExchangeRecord", "FailedAttempt", "Outcome", "summary"]

Outcome: TypeAlias = Literal["ok", "refused", "cut-off", "upstream-failed", "client-left", "stopped", "broken"]
"""ok: the reply is complete. refused: the gateway rejected the request with an error status. cut-off: the gateway ended
a stream that had begun with an error event, such as one that exceeds the memory budget. upstream-failed: the upstream
failed, at any point. client-left: the client disconnected, or did not read. stopped: the gateway was shut down. broken:
internal error of the gateway."""


class FailedAttempt(Struct, frozen=True, kw_only=True):
    """Attempt at an upstream that failed, also if a later attempt or another upstream answered."""

    upstream: str
    """Name of the upstream."""
    model: str
    """Model id at the upstream."""
    kind: str
    """HTTP status, unreachable, timeout, no-answer, stream (the reply broke off or is not complete), or circuit-open
    (the request was not sent)."""
    reason: str
    """Error message without secrets."""


class ExchangeRecord(Struct, kw_only=True):
    """Data of one exchange. Times are seconds of a monotonic clock."""

    id: str
    """Request id, sent to the client in a header and written to the log."""
    path: str
    wire: str
    """Wire of the client."""
    started: float
    client: str = ""
    """Name of the client's key in the settings; "" if there are no keys."""
    model: str = ""
    """Model id that the client sent."""
    stream: bool = False
    upstream: str = ""
    """Name of the upstream of the last attempt."""
    upstream_wire: str = ""
    upstream_model: str = ""
    upstream_id: str = ""
    """The upstream's own id of the reply. The client sees an id of the gateway's, if the upstream's may repeat."""
    dialect: str = ""
    constraint: str = ""
    """The constraint with which the model could write only valid calls; "" without one."""
    rounds: int = 0
    """Number of replies of upstreams of which the reply is composed; 0 if it is that of one upstream, as it is."""
    attempts: int = 0
    """Number of attempts at all upstreams."""
    failed_attempts: list[FailedAttempt] = field(default_factory=list)
    upstream_status: int = 0
    """Last HTTP status of an upstream; 0 if there was no response."""
    status: int = 0
    """HTTP status sent to the client."""
    outcome: Outcome = "ok"
    error: str = ""
    """Error message without secrets."""
    first_byte: float | None = None
    """Time at which the first output of the reply was sent to the client."""
    ended: float | None = None
    calls: int = 0
    reads: int = 0
    """Number of chunks read from the stream of the upstream."""
    bytes_in: int = 0
    """Bytes received from the upstream."""
    bytes_out: int = 0
    """Bytes sent to the client."""
    estimated_tokens: int = 0
    """Estimated tokens of the request, before the correction by calibration; 0 if not estimated."""
    usage: Usage | None = None
    stop_reason: StopReason | None = None
    """Stop reason of the model; None if the reply did not get that far."""
    findings: list[Finding] = field(default_factory=list)

    @property
    def retries(self) -> int:
        """Number of attempts after the first one of each round."""
        return max(0, self.attempts - (self.rounds or 1))

    def add_round(self, part: ExchangeRecord) -> None:
        """Add what one of the exchanges has used of which this one is composed."""
        self.rounds += 1
        self.attempts += part.attempts
        self.failed_attempts += part.failed_attempts
        self.findings += part.findings
        self.calls += part.calls
        self.reads += part.reads
        self.bytes_in += part.bytes_in
        self.usage = _sum_usage(self.usage, part.usage)
        for name in _FACTS_OF_THE_LAST_ROUND:
            setattr(self, name, getattr(part, name))
        if part.outcome != "ok":
            self.outcome, self.error = part.outcome, part.error

    def received_bytes(self) -> int:
        """Return `bytes_in`, for code that checks it again and again."""
        return self.bytes_in


_FACTS_OF_THE_LAST_ROUND = (
    *("upstream", "upstream_wire", "upstream_model", "upstream_id", "upstream_status"),
    *("dialect", "constraint", "stop_reason"),
)
_COUNTS = ("input", "output", "cached", "reasoning", "cache_written")


def _sum_usage(first: Usage | None, second: Usage | None) -> Usage | None:
    """Return the sum of the tokens. It is an estimate if one of them is."""
    if first is None or second is None:
        return first or second
    counts = {name: getattr(first, name) + getattr(second, name) for name in _COUNTS}
    return Usage(**counts, estimated=first.estimated or second.estimated)


def summary(exchange: ExchangeRecord) -> dict[str, Any]:
    """Return the summary for logs and captures: times since the start, tokens by name, findings by kind.

    `failed_attempts` and `rounds` are left out if there are none: nearly all requests have none.
    """
    fields = structs.asdict(exchange)
    if not exchange.rounds:
        del fields["rounds"]
    for name in ("started", "first_byte", "ended", "estimated_tokens", "usage", "findings", "failed_attempts"):
        del fields[name]
    if exchange.failed_attempts:
        fields["failed_attempts"] = to_builtins(exchange.failed_attempts)
    usage = exchange.usage
    return {
        **fields,
        "first_byte_seconds": _seconds_since_start(exchange, exchange.first_byte),
        "seconds": _seconds_since_start(exchange, exchange.ended),
        "tokens": _token_counts(usage) if usage else {},
        "findings": dict(Counter(finding.kind for finding in exchange.findings)),
    }


def _token_counts(usage: Usage) -> dict[str, int]:
    tokens = {name: getattr(usage, name) for name in _COUNTS}
    return {**tokens, "estimated": True} if usage.estimated else tokens


def _seconds_since_start(exchange: ExchangeRecord, moment: float | None) -> float | None:
    return None if moment is None else round(moment - exchange.started, 4)
