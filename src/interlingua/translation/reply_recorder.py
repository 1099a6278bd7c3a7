"""Reply recorder: the findings and statistics of one reply, and the usage that is estimated from them."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy

from interlingua import events as ev
from interlingua.core.reply_stats import ReplyStats, utf8_size

__all__ = ["ReplyRecorder", "find_failure"]

MAX_FINDINGS_PER_KIND = 100
"""An upstream may repeat the same fault without end."""


class ReplyRecorder:
    """Records the events of a reply. The fast path, which creates no events, counts its texts here itself."""

    __slots__ = ("_counts", "findings", "message_count", "stats")

    def __init__(self) -> None:
        self.findings: list[ev.Finding] = []
        """Findings with their location in the stream, at most `MAX_FINDINGS_PER_KIND` of each kind."""
        self.stats = ReplyStats()
        self.message_count = 0
        """Number of SSE messages with data so far; 0 for a whole reply."""
        self._counts: dict[str, int] = {}

    def has_finding(self, kind: str) -> bool:
        return kind in self._counts

    def record(self, events: list[ev.Event]) -> None:
        stats = self.stats
        if not stats.has_content:
            stats.detect_content(events)
        for event in events:
            if type(event) is ev.TextDelta or type(event) is ev.ReasoningDelta or type(event) is ev.ArgsDelta:
                stats.content_bytes += utf8_size(event.text)  # the common case
            elif type(event) is ev.Finding:
                self._record_finding(event)
            else:
                stats.count(event)

    def _record_finding(self, finding: ev.Finding) -> None:
        count = self._counts[finding.kind] = self._counts.get(finding.kind, 0) + 1
        if count > MAX_FINDINGS_PER_KIND:
            return
        message = finding.message
        if count == MAX_FINDINGS_PER_KIND:
            message += "; further findings of this kind are not reported"
        location = f"event {self.message_count}" if self.message_count else "the reply"
        if finding.place:
            location = f"{location}, {finding.place}"
        self.findings.append(ev.Finding(finding.kind, message, location))

    def estimated_usage(self, last_events: list[ev.Event], input_tokens: int) -> list[ev.Event]:
        """Return a usage event and its finding, if the upstream has reported no usage.

        Args:
            last_events: events of this reply that are not recorded yet.
            input_tokens: the size of the request; 0 if it is not known, and then nothing is estimated.
        """
        if not input_tokens or self.stats.usage is not None or find_failure(last_events):
            return []
        final_stats = copy(self.stats)
        for event in last_events:
            final_stats.count(event)
        if final_stats.usage is not None:
            return []
        usage = ev.Usage(input=input_tokens, output=final_stats.estimated_tokens, estimated=True)
        message = f"the upstream reports no usage: about {usage.input:,} tokens in and {usage.output:,} out"
        return [usage, ev.Finding("usage-estimated", message)]


def find_failure(events: Iterable[ev.Event]) -> ev.Failure | None:
    for event in events:  # a plain loop, because this runs for every token
        if type(event) is ev.Failure:
            return event
    return None
