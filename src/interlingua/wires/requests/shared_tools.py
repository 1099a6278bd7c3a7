"""Tools that many requests share: they are read once, and written once for each pair of wires.

An agent sends the same tools with each request. The caller decodes equal JSON to one `SharedToolList`. What is read
from it, and what is written for that, is kept with it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import msgspec

from interlingua.common.jsontext.codec import encode_json
from interlingua.core.findings import FindingCollector
from interlingua.core.request import Request
from interlingua.core.tools import Tool
from interlingua.events import Finding

__all__ = ["SharedToolList", "SharedTools", "write_shared"]


class SharedTools(list[Tool]):
    """Tools that were read from a `SharedToolList`. No code may modify them."""

    def __init__(self, tools: list[Tool]) -> None:
        super().__init__(tools)
        self.written: dict[tuple[str, str], tuple[list[msgspec.Raw], list[Finding]]] = {}
        """What is written for them, with its findings, by the wires of upstream and client."""
        self.kept: dict[str, bool] = {}
        """Whether the client's own JSON means the same as what is written on the same wire."""


class SharedToolList(list[Any]):
    """The list of tools in the JSON of requests. No code may modify it or its contents."""

    def __init__(self, tools: list[Any]) -> None:
        super().__init__(tools)
        self.read: tuple[SharedTools, list[dict[str, Any]]] | None = None
        """The tools that the client runs, and the hosted tools; None until they are read."""

    @cached_property
    def encoded(self) -> msgspec.Raw:
        """The list as JSON."""
        return msgspec.Raw(encode_json(self))


def write_shared(
    request: Request, wire: str, notes: FindingCollector, write: Callable[[Request, FindingCollector], list[Any]]
) -> list[Any]:
    """Return the tools of a request as JSON for this wire. Shared tools are written once, as encoded JSON.

    Args:
        request: The request.
        wire: The wire of the upstream.
        notes: Receives the findings.
        write: Function that writes the tools. It may use the tools and the wire of the request only.
    """
    tools = request.tools
    if not isinstance(tools, SharedTools):
        return write(request, notes)
    known = tools.written.get((wire, request.wire))
    if known is None:
        own_notes = FindingCollector()
        encoded = [msgspec.Raw(encode_json(tool)) for tool in write(request, own_notes)]
        known = tools.written[wire, request.wire] = (encoded, own_notes.findings)
    for finding in known[1]:
        notes.report(finding.kind, finding.message, finding.place)
    return list(known[0])
