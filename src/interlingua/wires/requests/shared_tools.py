"""Tools that many requests share: they are read once, and written once for each pair of wires.

An agent sends the same tools with each request. The caller decodes equal JSON to one `SharedToolList`. What is read
from it, and what is written for that, is kept with it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from hashlib import blake2b
from typing import Any, TypeVar

import msgspec

from interlingua.common.derived_values import DerivedValues
from interlingua.common.jsontext.codec import encode_json
from interlingua.common.jsontext.value_count import count_separators
from interlingua.core.findings import FindingCollector
from interlingua.core.request import Request
from interlingua.core.tools import SharedTools
from interlingua.events import Finding

__all__ = ["SharedToolList", "tools_digest", "write_shared"]

T = TypeVar("T")


class SharedToolList(list[Any]):
    """The list of tools in the JSON of requests. No code may modify it or its contents."""

    def __init__(self, tools: list[Any], source: bytes) -> None:
        super().__init__(tools)
        self.source = source
        """The client's JSON."""
        self._derived = DerivedValues()

    def derive(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the value that was computed for this key before, or compute it. It depends on the list only."""
        return self._derived.get(key, compute)

    @cached_property
    def digest(self) -> bytes:
        """Digest of the client's JSON."""
        return tools_digest(self.source)

    @cached_property
    def separators(self) -> int:
        """Commas and brackets in the client's JSON, see `count_separators`."""
        return count_separators(self.source)

    @cached_property
    def encoded(self) -> msgspec.Raw:
        """The list as JSON."""
        return msgspec.Raw(encode_json(self))


def tools_digest(encoded: bytes) -> bytes:
    """Return a digest of the JSON of tools: JSON with the same digest is the same."""
    return blake2b(encoded, digest_size=16).digest()


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

    def write_once() -> tuple[list[msgspec.Raw], list[Finding]]:
        own_notes = FindingCollector()
        return [msgspec.Raw(encode_json(tool)) for tool in write(request, own_notes)], own_notes.findings

    encoded, findings = tools.derive(("written", wire, request.wire), write_once)
    for finding in findings:
        notes.report(finding.kind, finding.message, finding.place)
    return encoded
