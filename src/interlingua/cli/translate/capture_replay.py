"""Replay of a gateway capture: the recorded chunks, and the wires, dialect and tools to translate them with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

import interlingua as il
from interlingua.common.jsontext.codec import read_full_object
from interlingua.core.tool_choice import ToolChoice, read_tool_choice
from interlingua.errors import BadInput
from interlingua.gateway.observability.capture_format import (
    CapturedExchange,
    EndLine,
    UpstreamRequestLine,
    read_capture,
)

__all__ = ["CaptureReplay", "load_capture"]


class CaptureReplay(msgspec.Struct, frozen=True):
    source: str
    target: str
    dialect: str
    model: str
    tools: list[il.Tool] | None
    tool_choice: ToolChoice | None
    captured: CapturedExchange
    outcome: str
    """Recorded outcome of the request, for display."""

    @property
    def chunks(self) -> Iterator[bytes]:
        """Received chunks in their original sizes."""
        return (line.data for line in self.captured.received)


def load_capture(path: str) -> CaptureReplay:
    try:
        captured = read_capture(path)
    except OSError as error:
        raise BadInput(
            f"cannot read {path}: {error.strerror}", "pass a file that `interlingua serve --capture` has written"
        ) from error
    ends = captured.lines_of(EndLine)
    exchange: dict[str, Any] = ends[-1].exchange if ends else {}
    outcome = _describe_outcome(ends[-1]) if ends else "the capture has no end record"
    source, target = exchange.get("upstream_wire"), exchange.get("wire")
    if not isinstance(source, str) or not isinstance(target, str) or not source:
        problem = "no request was sent to an upstream" if ends else "the upstream is not recorded"
        raise BadInput(f"{path}: {problem} ({outcome})", "there is nothing to translate")
    dialect, model = exchange.get("dialect"), exchange.get("upstream_model")
    body = _upstream_request(captured)
    return CaptureReplay(
        source,
        target,
        str(dialect or "auto"),
        str(model or ""),
        _offered_tools(body),
        _tool_choice(body),
        captured,
        outcome,
    )


def _describe_outcome(end: EndLine) -> str:
    exchange = end.exchange
    facts = [f"status {exchange.get('status') or 'none'}", str(exchange.get("outcome") or "outcome unknown")]
    facts += [f"error: {exchange['error']}"] if exchange.get("error") else []
    facts += (
        ["some chunks are missing, because they arrived faster than the disk could write them"] if end.truncated else []
    )
    return ", ".join(facts)


def _upstream_request(captured: CapturedExchange) -> dict[str, Any] | None:
    """Return the body of the last upstream request; None if it is unknown."""
    upstream_requests = captured.lines_of(UpstreamRequestLine)
    return read_full_object(upstream_requests[-1].data.decode("utf-8", "replace")) if upstream_requests else None


def _tool_choice(body: dict[str, Any] | None) -> ToolChoice | None:
    """Return the tool choice of a request; None if it is unknown, or not one of the choices that can be read."""
    try:
        return read_tool_choice((body or {}).get("tool_choice"))
    except BadInput:
        return None


def _offered_tools(body: dict[str, Any] | None) -> list[il.Tool] | None:
    """Return the tools of a request; None if they are unknown."""
    if body is None:
        return None
    definitions = body.get("tools")
    if not isinstance(definitions, list):
        return []
    tools = [il.Tool.read(tool) for tool in definitions if isinstance(tool, dict) and _has_name(tool)]
    return tools or None


def _has_name(tool: dict[str, Any]) -> bool:
    body = tool.get("function") if isinstance(tool.get("function"), dict) else tool
    return isinstance(body, dict) and isinstance(body.get("name"), str)
