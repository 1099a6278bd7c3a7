"""Counters of a reply so far, for code that only forwards its bytes."""

from __future__ import annotations

from collections.abc import Iterable

from interlingua import events as ev

__all__ = ["ReplyStats", "utf8_size"]

BYTES_PER_TOKEN = 4
"""Bytes per token in model output. The ratio is similar in nearly all languages: tokens of scripts with longer
characters contain more bytes."""
TOKENS_PER_CALL = 8
"""Tokens around the arguments of one call."""
_CONTENT_EVENTS = frozenset({ev.TextDelta, ev.ReasoningDelta, ev.RefusalDelta, ev.CallStart, ev.Seal})


class ReplyStats:
    __slots__ = ("calls", "content_bytes", "failure", "has_content", "stop", "upstream_id", "usage")

    def __init__(self) -> None:
        self.has_content = False
        """True if the client has received content of the reply. Before that, another reply can replace it."""
        self.content_bytes = 0
        """Bytes of text, thinking and arguments."""
        self.calls = 0
        self.upstream_id = ""
        """The upstream's own id of the reply; "" if it sent none."""
        self.usage: ev.Usage | None = None
        self.stop: ev.Stop | None = None
        self.failure: ev.Failure | None = None

    def detect_content(self, events: Iterable[ev.Event]) -> None:
        """Update `has_content`. Called only while it is false."""
        self.has_content = any(type(event) in _CONTENT_EVENTS for event in events)

    def count(self, event: ev.Event) -> None:
        match event:
            case ev.TextDelta() | ev.ReasoningDelta() | ev.ArgsDelta():
                self.content_bytes += utf8_size(event.text)
            case ev.Begin():
                self.upstream_id = self.upstream_id or event.id or ""
            case ev.CallStart():
                self.calls += 1
            case ev.Usage():
                self.usage = event
            case ev.Stop():
                self.stop = self.stop or event
            case ev.Failure():
                self.failure = self.failure or event

    @property
    def estimated_tokens(self) -> int:
        """Estimated output tokens, for upstreams that report no usage."""
        return -(-self.content_bytes // BYTES_PER_TOKEN) + TOKENS_PER_CALL * self.calls


def utf8_size(text: str) -> int:
    """Return the size of the text in bytes."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
