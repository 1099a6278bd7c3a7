"""A capture of the gateway as something to translate: what came, and all that it is to be read with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

import interlingua as il
from interlingua.common.jsontext.codec import read_values
from interlingua.errors import BadInput
from interlingua.gateway.observability.capture_format import Asked, Captured, End, read

__all__ = ["SUFFIX", "Replay", "load"]

SUFFIX = ".jsonl"


class Replay(msgspec.Struct, frozen=True):
    source: str
    target: str
    dialect: str
    model: str
    tools: list[il.Tool] | None
    captured: Captured
    ended: str
    """How the exchange ended, as it was recorded."""

    @property
    def pieces(self) -> Iterator[bytes]:
        """As they came, one by one."""
        return (line.data for line in self.captured.received)


def load(path: str) -> Replay:
    try:
        captured = read(path)
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}", "give a file of the gateway's --capture") from error
    ends = captured.all(End)
    told: dict[str, Any] = ends[-1].exchange if ends else {}
    ended = _ended(ends[-1]) if ends else "its end was never written"
    source, target = told.get("upstream_wire"), told.get("wire")
    if not isinstance(source, str) or not isinstance(target, str) or not source:
        problem = "no upstream was asked in this exchange" if ends else "it is not known which upstream was asked"
        raise BadInput(f"{path}: {problem} ({ended})", "there is nothing to translate")
    dialect, model = told.get("dialect"), told.get("upstream_model")
    return Replay(source, target, str(dialect or "auto"), str(model or ""), _tools(captured), captured, ended)


def _ended(end: End) -> str:
    told = end.exchange
    words = [f"status {told.get('status') or 'none'}", str(told.get("outcome") or "outcome unknown")]
    words += [f"error: {told['error']}"] if told.get("error") else []
    words += ["pieces are missing, which came faster than they could be written"] if end.truncated else []
    return ", ".join(words)


def _tools(captured: Captured) -> list[il.Tool] | None:
    """What the model was offered."""
    asked = captured.all(Asked)
    body = read_values(asked[-1].data.decode("utf-8", "replace")) if asked else None
    if body is None:
        return None
    offered = body.get("tools")
    if not isinstance(offered, list):
        return []
    read_tools = [il.Tool.read(tool) for tool in offered if isinstance(tool, dict) and _has_name(tool)]
    return read_tools or None


def _has_name(tool: dict[str, Any]) -> bool:
    body = tool.get("function") if isinstance(tool.get("function"), dict) else tool
    return isinstance(body, dict) and isinstance(body.get("name"), str)
