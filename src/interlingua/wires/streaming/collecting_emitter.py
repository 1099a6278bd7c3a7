"""Emitter that writes no frames: it collects all events and returns one complete reply at the end."""

from __future__ import annotations

from collections.abc import Iterable

from interlingua import events as ev
from interlingua.core.options import Options
from interlingua.core.tools import ToolSet
from interlingua.wires.base import ChoiceEvents, Json, Wire

__all__ = ["CollectingEmitter"]


class CollectingEmitter:
    """Collects the events of one reply."""

    fast = None
    kept_chars = 0  # it runs at the end of a reply only

    def __init__(self, wire: Wire, options: Options, tool_set: ToolSet) -> None:
        self.findings: list[ev.Finding] = []
        self._wire = wire
        self._options = options
        self._tool_set = tool_set
        self._events_by_choice: dict[int, list[ev.Event]] = {}
        self._common: list[ev.Event] = []

    def forward(self, chunk: Json, raw: bytes) -> bytes | None:  # noqa: ARG002
        return None

    def emit(self, choice_events: ChoiceEvents, common: Iterable[ev.Event] = (), template: Json | None = None) -> bytes:  # noqa: ARG002
        for index, events in choice_events:
            self._events_by_choice.setdefault(index, []).extend(events)
        self._common.extend(common)
        return b""

    def fail(self, failure: ev.Failure) -> bytes:
        self._common.append(failure)
        return b""

    def finish(self, raw: bytes = b"") -> bytes:  # noqa: ARG002
        return b""

    def body(self) -> Json:
        """Return the complete reply as a body of the client's wire."""
        choice_events = sorted(self._events_by_choice.items())
        body, self.findings = self._wire.write_body(choice_events, self._common, self._options, self._tool_set, None)
        return body
