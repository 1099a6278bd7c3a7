"""A capture of the gateway as something to translate: what came, and all that it is to be read with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

import interlingua as il
from interlingua.common.jsontext.codec import read_full_object
from interlingua.errors import BadInput
from interlingua.gateway.observability.capture_format import (
    CapturedExchange,
    EndLine,
    UpstreamRequestLine,
    read_capture,
)

__all__ = ["CAPTURE_SUFFIX", "CaptureReplay", "load_capture"]

CAPTURE_SUFFIX = ".jsonl"


class CaptureReplay(msgspec.Struct, frozen=True):
    source: str
    target: str
    dialect: str
    model: str
    tools: list[il.Tool] | None
    captured: CapturedExchange
    outcome: str
    """How the exchange ended, as it was recorded."""

    @property
    def chunks(self) -> Iterator[bytes]:
        """As they came, one by one."""
        return (line.data for line in self.captured.received)


def load_capture(path: str) -> CaptureReplay:
    try:
        captured = read_capture(path)
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}", "give a file of the gateway's --capture") from error
    ends = captured.lines_of(EndLine)
    exchange: dict[str, Any] = ends[-1].exchange if ends else {}
    outcome = _describe_outcome(ends[-1]) if ends else "its end was never written"
    source, target = exchange.get("upstream_wire"), exchange.get("wire")
    if not isinstance(source, str) or not isinstance(target, str) or not source:
        problem = "no upstream was asked in this exchange" if ends else "it is not known which upstream was asked"
        raise BadInput(f"{path}: {problem} ({outcome})", "there is nothing to translate")
    dialect, model = exchange.get("dialect"), exchange.get("upstream_model")
    return CaptureReplay(
        source, target, str(dialect or "auto"), str(model or ""), _offered_tools(captured), captured, outcome
    )


def _describe_outcome(end: EndLine) -> str:
    exchange = end.exchange
    facts = [f"status {exchange.get('status') or 'none'}", str(exchange.get("outcome") or "outcome unknown")]
    facts += [f"error: {exchange['error']}"] if exchange.get("error") else []
    facts += ["pieces are missing, which came faster than they could be written"] if end.truncated else []
    return ", ".join(facts)


def _offered_tools(captured: CapturedExchange) -> list[il.Tool] | None:
    """What the model was offered."""
    upstream_requests = captured.lines_of(UpstreamRequestLine)
    body = read_full_object(upstream_requests[-1].data.decode("utf-8", "replace")) if upstream_requests else None
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
