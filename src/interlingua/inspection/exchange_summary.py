"""Summary of one exchange: a row of the list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from interlingua.captures.capture_format import (
    AnsweredLine,
    CapturedExchange,
    CaptureLine,
    ClientRequestLine,
    EndLine,
    FindingsLine,
    ReceivedLine,
    UpstreamRequestLine,
)
from interlingua.common.coerce import as_dict
from interlingua.inspection.sessions import TurnFacts, read_turn_facts
from interlingua.wires import WIRES, get_wire

__all__ = ["ExchangeSummary", "SummarizedExchange", "client_name", "summarize"]

_CLIENT_NAMES = {
    "claude-cli": "Claude Code",
    "claude-code": "Claude Code",
    "codex_cli_rs": "Codex",
    "codex_exec": "Codex",
    "codex-tui": "Codex",
    "opencode": "opencode",
    "qwencode": "Qwen Code",
    "kimi-code-cli": "Kimi Code",
    "githubcopilotchat": "Copilot",
    "copilot": "Copilot",
    "openai": "OpenAI SDK",
    "anthropic": "Anthropic SDK",
    "asyncopenai": "OpenAI SDK",
    "asyncanthropic": "Anthropic SDK",
    "python-httpx": "httpx",
}
"""Names of clients by the product in their user agent, in lower case."""


class ExchangeSummary(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One row of the list of exchanges."""

    id: str
    time: float
    """Start of the exchange in seconds since 1970."""
    client: str = ""
    """Name of the client."""
    user_agent: str = ""
    key: str = ""
    """Label of the client's API key; "" if there is none."""
    wire: str = ""
    path: str = ""
    model: str = ""
    upstream: str = ""
    upstream_wire: str = ""
    upstream_model: str = ""
    dialect: str = ""
    stream: bool = False
    status: int = 0
    outcome: str = ""
    """`open` while the exchange lasts; `worker-died` if the gateway's worker died meanwhile; otherwise see `Outcome`
    of the gateway."""
    error: str = ""
    seconds: float | None = None
    """Duration; None while it lasts."""
    first_byte: float | None = None
    """Seconds to the first output for the client."""
    attempts: int = 0
    calls: int = 0
    stop_reason: str = ""
    tokens: dict[str, int] = {}
    findings: dict[str, int] = {}
    """Number of findings by their kind."""
    bytes_in: int = 0
    bytes_out: int = 0
    session: str = ""
    title: str = ""
    """Last text of the user."""
    returned: list[str] = []
    """Names of the tools whose results the request returns to the model."""
    truncated: bool = False
    """True if chunks are missing in the capture."""


class SummarizedExchange(msgspec.Struct, frozen=True):
    """A summary, and what groups exchanges into sessions."""

    summary: ExchangeSummary
    facts: TurnFacts


def summarize(lines: list[CaptureLine], name: str = "", facts: TurnFacts | None = None) -> SummarizedExchange:
    """Return the summary of an exchange.

    Args:
        lines: The lines of its capture.
        name: Id of a capture that has none.
        facts: What the request says about its conversation, if that is known already.
    """
    captured = CapturedExchange(lines)
    requests, ends = captured.lines_of(ClientRequestLine), captured.lines_of(EndLine)
    request = requests[0] if requests else None
    end = ends[-1].exchange if ends else {}
    facts = facts or _read_facts(request)
    agent = _header(request.headers, "user-agent") if request else ""
    summary = ExchangeSummary(
        id=(request.id if request else "") or name,
        time=request.unix_time if request else 0.0,
        client=client_name(agent),
        user_agent=agent,
        wire=request.wire if request else "",
        path=request.path if request else "",
        session=facts.session,
        title=facts.last_text,
        returned=list(facts.returned),
        truncated=bool(ends and ends[-1].truncated),
    )
    if ends:
        _add_end(summary, end)
    else:
        _add_progress(summary, captured)
    return SummarizedExchange(summary, facts)


def _read_facts(request: ClientRequestLine | None) -> TurnFacts:
    if request is None:
        return TurnFacts()
    field = get_wire(request.wire).TRAITS.conversation_field if request.wire in WIRES else "messages"
    return read_turn_facts(request.headers, request.data, field)


def _add_end(summary: ExchangeSummary, end: Mapping[str, Any]) -> None:
    """Add what the gateway recorded at the end of the exchange."""
    for name in ("wire", "path", "model", "upstream", "upstream_wire", "upstream_model", "dialect", "error"):
        if isinstance(value := end.get(name), str) and value:
            setattr(summary, name, value)
    summary.key = str(end.get("client") or "")
    for name in ("status", "attempts", "calls", "bytes_in", "bytes_out"):
        if isinstance(value := end.get(name), int):
            setattr(summary, name, value)
    summary.stream = end.get("stream") is True
    summary.outcome = str(end.get("outcome") or "")
    summary.stop_reason = str(end.get("stop_reason") or "")
    summary.seconds = _seconds(end.get("seconds"))
    summary.first_byte = _seconds(end.get("first_byte_seconds"))
    summary.tokens = {name: n for name, n in as_dict(end.get("tokens")).items() if isinstance(n, int)}
    summary.findings = {kind: n for kind, n in as_dict(end.get("findings")).items() if isinstance(n, int)}


def _add_progress(summary: ExchangeSummary, captured: CapturedExchange) -> None:
    """Add what is known of an exchange that has no end yet."""
    asked, answers = captured.lines_of(UpstreamRequestLine), captured.lines_of(AnsweredLine)
    summary.outcome = "open"
    summary.attempts = len(asked)
    route = asked[-1].route if asked else None
    if route is not None:
        summary.upstream, summary.upstream_wire, summary.upstream_model = route.upstream, route.wire, route.model
        summary.dialect = route.dialect
    if answers:
        summary.status = answers[-1].status
    received = captured.received
    summary.first_byte = received[0].at if received else None
    summary.bytes_in = sum(len(line.data) for line in captured.lines_of(ReceivedLine))
    for line in captured.lines_of(FindingsLine):
        for finding in line.findings:
            summary.findings[finding.kind] = summary.findings.get(finding.kind, 0) + 1


def client_name(user_agent: str) -> str:
    """Return the name of a client by its user agent: a well-known name, or its product."""
    product = user_agent.split(" ", 1)[0].partition("/")[0]
    return _CLIENT_NAMES.get(product.lower(), product)


def _header(headers: Mapping[str, str], name: str) -> str:
    return next((value for key, value in headers.items() if key.lower() == name), "")


def _seconds(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
