"""Markers that are dropped at the end of a reply, such as end-of-turn tokens, and are text anywhere else."""

from __future__ import annotations

from collections.abc import Collection

from interlingua.parsing.event_sink import EventSink
from interlingua.parsing.markers import MarkerSet
from interlingua.parsing.text_buffer import Read, TextBuffer

__all__ = ["drop_trailing_markers", "strip_trailing_markers"]


def drop_trailing_markers(
    marker: str, markers: MarkerSet, noise: Collection[str], source: TextBuffer, sink: EventSink
) -> Read[bool]:
    """Drop the marker that was just read if only whitespace and other such markers follow it, else emit it as text.

    Args:
        marker: the marker.
        markers: all markers that are dropped at the end of a reply.
        noise: those of them that are reported.
        source: the buffer that the text is read from.
        sink: receives the text.

    Returns:
        Whether the reply ends with the marker.
    """
    source.start_recording(marker)
    seen, size, channel = [marker], len(marker), source.channel
    while size <= sink.limits.header:
        following = yield from source.accept(markers)
        if following is None:
            break
        seen.append(following)
        size += len(following)
    at_end = (yield from source.peek(markers)) == "" and source.channel is channel
    if at_end:
        source.discard_recording()
        for dropped in filter(noise.__contains__, seen):
            sink.report("noise", f"{dropped} is not part of the reply: dropped")
        return True
    sink.emit_text(source.take_recorded(), source.recorded_channel)
    source.mark_as_text()
    return False


def strip_trailing_markers(text: str, markers: MarkerSet) -> str:
    """Return the text without the markers at its end, and the whitespace between them."""
    stripped = text.rstrip()
    while marker := next((marker for marker in markers.literals if stripped.endswith(marker)), None):
        text = stripped.removesuffix(marker)
        stripped = text.rstrip()
    return text
