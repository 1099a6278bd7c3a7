"""An emitter that writes no frames: what is said is kept, and becomes one whole reply at the end."""

from __future__ import annotations

from collections.abc import Iterable

from interlingua import events as ev
from interlingua.core.options import Options
from interlingua.core.tools import Offer
from interlingua.wires.base import Json, Said, Wire

__all__ = ["Folding"]


class Folding:
    def __init__(self, wire: Wire, options: Options, offer: Offer) -> None:
        self.findings: list[ev.Finding] = []
        self._wire = wire
        self._options = options
        self._offer = offer
        self._said: dict[int, list[ev.Event]] = {}
        self._common: list[ev.Event] = []

    def pass_on(self, chunk: Json, raw: bytes) -> bytes | None:  # noqa: ARG002
        return None

    def emit(self, said: Said, common: Iterable[ev.Event] = (), like: Json | None = None) -> bytes:  # noqa: ARG002
        for index, events in said:
            self._said.setdefault(index, []).extend(events)
        self._common.extend(common)
        return b""

    def more(self, index: int, event: ev.TextDelta | ev.ReasoningDelta) -> None:  # noqa: ARG002
        return None

    def fail(self, failure: ev.Failure) -> bytes:
        self._common.append(failure)
        return b""

    def done(self, raw: bytes = b"") -> bytes:  # noqa: ARG002
        return b""

    def body(self) -> Json:
        """The whole reply, as its client expects it."""
        said = sorted(self._said.items())
        body, self.findings = self._wire.write_body(said, self._common, self._options, self._offer, None)
        return body
