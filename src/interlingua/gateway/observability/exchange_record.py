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
    """How the model was constrained to write valid calls; "" if it was not."""
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

    def received_bytes(self) -> int:
        """Return `bytes_in`, for code that checks it again and again."""
        return self.bytes_in


def summary(exchange: ExchangeRecord) -> dict[str, Any]:
    """Return the summary for logs and captures: times since the start, tokens by name, findings by kind.

    `failed_attempts` is left out if there are none: nearly all requests have none.
    """
    fields = structs.asdict(exchange)
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
    tokens = {name: getattr(usage, name) for name in ("input", "output", "cached", "reasoning", "cache_written")}
    return {**tokens, "estimated": True} if usage.estimated else tokens


def _seconds_since_start(exchange: ExchangeRecord, moment: float | None) -> float | None:
    return None if moment is None else round(moment - exchange.started, 4)
