"""What is known of one request on its way through: told once, at its end, to all who keep account of it."""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal, TypeAlias

from msgspec import Struct, field, structs

from interlingua.events import Finding, StopReason, Usage

__all__ = ["ExchangeRecord", "Outcome", "summary"]

Outcome: TypeAlias = Literal["ok", "refused", "upstream-failed", "client-left", "stopped", "broken"]
"""ok: the reply has ended well. refused: the client's request was not sent on. upstream-failed: the upstream, at any
point. client-left: it went away. stopped: the gateway was told to stop. broken: a fault of the gateway's own."""


class ExchangeRecord(Struct, kw_only=True):
    """Times are seconds of a clock that only goes forward."""

    id: str
    """Told to the client in a header, and found in the log."""
    path: str
    wire: str
    """The client's."""
    started: float
    model: str = ""
    """As the client calls it."""
    stream: bool = False
    upstream: str = ""
    """The name of the one that was asked last."""
    upstream_wire: str = ""
    upstream_model: str = ""
    dialect: str = ""
    attempts: int = 0
    """How often upstreams were asked."""
    upstream_status: int = 0
    """The last HTTP status of an upstream; 0: none came."""
    status: int = 0
    """The HTTP status for the client."""
    outcome: Outcome = "ok"
    error: str = ""
    """What went wrong, without secrets."""
    first_byte: float | None = None
    """When the first word of the reply went to the client."""
    ended: float | None = None
    calls: int = 0
    reads: int = 0
    """How many pieces of the upstream's stream were read."""
    bytes_in: int = 0
    """From the upstream."""
    bytes_out: int = 0
    """To the client."""
    estimated_tokens: int = 0
    """How many tokens the request was estimated to have, before any correction; 0: it was not."""
    usage: Usage | None = None
    stop_reason: StopReason | None = None
    """Why the model stopped; None: it did not get so far."""
    findings: list[Finding] = field(default_factory=list)


def summary(exchange: ExchangeRecord) -> dict[str, Any]:
    """As logs and captures tell it: times since its start, tokens by name, findings by kind."""
    fields = structs.asdict(exchange)
    for name in ("started", "first_byte", "ended", "estimated_tokens", "usage", "findings"):
        del fields[name]
    usage = exchange.usage
    return {
        **fields,
        "first_byte_seconds": _seconds_since_start(exchange, exchange.first_byte),
        "seconds": _seconds_since_start(exchange, exchange.ended),
        "tokens": _token_counts(usage) if usage else {},
        "findings": dict(Counter(finding.kind for finding in exchange.findings)),
    }


def _token_counts(usage: Usage) -> dict[str, int]:
    tokens = {name: getattr(usage, name) for name in ("input", "output", "cached", "reasoning")}
    return {**tokens, "estimated": True} if usage.estimated else tokens


def _seconds_since_start(exchange: ExchangeRecord, moment: float | None) -> float | None:
    return None if moment is None else round(moment - exchange.started, 4)
