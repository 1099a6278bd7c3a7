"""Summary of an exchange that is still going on: each of its lines is read once."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from interlingua.captures.capture_format import (
    AnsweredLine,
    CaptureLine,
    ClientRequestLine,
    EndLine,
    ReceivedLine,
    UpstreamRequestLine,
)
from interlingua.gateway.inspector.exchange_source import redact_summary
from interlingua.gateway.settings.redaction import Redactor
from interlingua.inspection.exchange_summary import SummarizedExchange, summarize
from interlingua.inspection.sessions import TurnFacts

__all__ = ["GrowingSummary"]


class GrowingSummary:
    """Collects what the summary of an exchange needs.

    Args:
        request: The request of the client without its headers and body, until `add` gets the whole one.
        redactor: Knows the secrets of the settings.
    """

    def __init__(self, request: ClientRequestLine, redactor: Redactor) -> None:
        self._request = request
        self._facts = TurnFacts()
        self._redactor = redactor
        self._attempts: list[CaptureLine] = []
        self._awaits_data = True
        self.has_request = False

    def add(self, lines: Iterable[CaptureLine]) -> None:
        """Add lines, which may have secrets. Bodies and data are not kept."""
        for line in lines:
            match line:
                case ClientRequestLine():
                    self._facts = summarize([line]).facts
                    self._redactor = self._redactor.with_credentials(line.headers)
                    self._request = msgspec.structs.replace(line, text="", base64="")
                    self.has_request = True
                case UpstreamRequestLine():
                    self._attempts.append(msgspec.structs.replace(line, url="", headers={}, text="", base64=""))
                    self._awaits_data = True
                case AnsweredLine():
                    self._attempts.append(AnsweredLine(at=line.at, status=line.status))
                case ReceivedLine() if self._awaits_data:
                    self._attempts.append(ReceivedLine(at=line.at))
                    self._awaits_data = False
                case _:
                    pass

    def summarize(self, end: EndLine | None, received_bytes: int) -> SummarizedExchange:
        """Return the summary without secrets. `received_bytes` counts while there is no end."""
        lines = [self._request, *self._attempts, *([end] if end is not None else [])]
        summarized = summarize(lines, facts=self._facts)
        if end is None:
            summarized.summary.bytes_in = received_bytes
        return redact_summary(summarized, self._redactor)
