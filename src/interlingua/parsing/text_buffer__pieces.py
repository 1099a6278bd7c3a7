"""The text that was pushed and waits to be read, and what is known about it: its channel, its place, what was read.

No text is looked at twice: what was read is gone, and what waits is at most some white space and the beginning of a
marker. What may have to be given back is recorded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Generator
from enum import Enum
from typing import TypeAlias, TypeVar

from interlingua.parsing.lookahead import MAX_BUFFERED_WHITESPACE_CHARS, Lookahead
from interlingua.parsing.markers import MarkerSet

__all__ = ["MAX_BUFFERED_WHITESPACE_CHARS", "Channel", "PrecededBy", "Read", "TextBufferBase"]

T = TypeVar("T")
Read: TypeAlias = Generator[None, None, T]
"""Reads from a source: yields when it needs more text, returns what it has read."""

MAX_PREVIEW_PIECES = 64
"""How many pieces that wait are shown."""

_WHITESPACE = re.compile(r"\s*+")


class PrecededBy(Enum):
    """What stands before the place where the source is read."""

    NOTHING = "nothing"
    MARKER = "marker"
    TEXT = "text"


class Channel(Enum):
    """Where a piece of text stood in the upstream's reply."""

    TEXT = "text"
    REASONING = "reasoning"


class TextBufferBase:
    """The pieces that were pushed and not read yet, as one text."""

    def __init__(self, offset: int = 0) -> None:
        self.channel = Channel.TEXT
        self._text = ""
        self._pos = 0
        self._text_offset = offset
        self._channel_boundary = 0  # up to here the text that waits is of another channel
        self._channel_before_boundary = Channel.TEXT
        self._closed = False
        self._fast_copy: Callable[[str], bool] | None = None
        self._can_forward: Callable[[str], bool] | None = None
        self._taken_pieces: list[str] = []
        self.taken_channel = Channel.TEXT
        """The channel of the text that was taken last."""
        self._preceded_by = PrecededBy.NOTHING
        self._trimmed_whitespace = ""  # the layout that stood before the last marker and was not copied
        self.markers_adjacent = False
        """Whether nothing but white space stood between the last two markers."""
        self._recorded_pieces: list[str] | None = None  # what was read since `record`, but for the text that waits
        self._record_start = 0
        self.recorded_channel = Channel.TEXT
        """The channel of what was recorded."""
        self.recorded_marker = ""
        """The marker that it begins with."""

    def push(self, text: str, channel: Channel = Channel.TEXT) -> bool:
        """Takes the next piece. False if the reading need not be resumed, because the piece has gone straight through.

        Nearly every piece of a long text or argument does: a reading that copies leaves a shortcut while it waits.
        """
        consumed = self._pos
        if self._recorded_pieces is not None:
            self._recorded_pieces.append(self._text[self._record_start : consumed])
            self._record_start = 0
        self._text_offset += consumed
        self._pos = 0
        if self._fast_copy is not None and consumed == len(self._text) and channel is self.channel:
            self._text, self._channel_boundary = text, 0
            return not self._fast_copy(text)
        remainder = self._text[consumed:]
        self._channel_boundary = max(0, self._channel_boundary - consumed)
        if channel is not self.channel:
            boundary = len(remainder) if self._text_offset >= 0 else 0  # what the prompt had begun is of any channel
            self._channel_boundary, self._channel_before_boundary, self.channel = boundary, self.channel, channel
        self._text = remainder + text if remainder else text
        return True

    def try_forward(self, text: str) -> bool:
        """Whether a piece would be copied just as it is, and whatever came before it has been. If so, it counts as
        read."""
        if (
            self._can_forward is None
            or self._pos != len(self._text)
            or self._recorded_pieces is not None
            or not self._can_forward(text)
        ):
            return False
        self._text_offset += len(text)
        return True

    def close(self) -> None:
        """No more will come: whatever waits is what it seems."""
        self._closed = True

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def offset(self) -> int:
        """How many characters of the reply have been read."""
        return self._text_offset + self._pos

    @property
    def buffered(self) -> str:
        """What waits for what follows it, or the end of it if it is long."""
        return "".join(self._taken_pieces[-MAX_PREVIEW_PIECES:]) + self._text[self._pos :]

    def put_back(self, marker: str) -> None:
        """Puts back the marker that was just read, for another reader."""
        self._pos -= len(marker)

    def prepend_prefill(self, text: str) -> None:
        """The beginning of a marker that the prompt had already written. It is no part of the reply's text."""
        self._text = text
        self._text_offset -= len(text)

    def start_recording(self, marker: str) -> None:
        """From here on what is read is also kept, from the marker that was just read: it may have to be given back."""
        before_boundary = self._pos - len(marker) < self._channel_boundary
        self.recorded_channel = self._channel_before_boundary if before_boundary else self.channel
        self.recorded_marker = marker
        self._recorded_pieces = [self._trimmed_whitespace]
        self._trimmed_whitespace = ""
        self._record_start = self._pos - len(marker)

    @property
    def leading_whitespace(self) -> str:
        """The layout that stood before what is recorded."""
        return self._recorded_pieces[0] if self._recorded_pieces else ""

    def take_recorded(self) -> str:
        """What was read since `record`. It is kept no longer."""
        if self._recorded_pieces is None:
            return ""
        text = "".join(self._recorded_pieces) + self._text[self._record_start : self._pos]
        self._recorded_pieces = None
        return text[max(0, len(text) - self.offset) :]  # what the prompt wrote is no part of it

    def rewind(self, marker: str) -> None:
        """Puts back all that was recorded but the marker it begins with. Only for what is short: it is read again."""
        if (
            self._recorded_pieces is None or len(self._recorded_pieces) == 1
        ):  # nothing was pushed since, so it is all still there
            self._pos = self._record_start + len(marker)
            return
        lead = self._recorded_pieces[0]
        text = "".join(self._recorded_pieces) + self._text[self._record_start : self._pos]
        self._text = text[len(lead) + len(marker) :] + self._text[self._pos :]
        self._text_offset += self._pos - len(text) + len(lead) + len(marker)
        self._pos = self._channel_boundary = 0
        self._recorded_pieces, self._record_start = [lead + marker], 0

    def discard_recording(self) -> None:
        """What was recorded need not be given back."""
        self._recorded_pieces = None

    def mark_as_text(self) -> None:
        """What was read last was text after all, and no marker."""
        self._preceded_by = PrecededBy.TEXT

    def look_ahead(self, lookahead: Lookahead, limit: int, words: Collection[str] | None = None) -> Read[str | None]:
        """The word of what stands next, if that is what one looks for. Nothing is read."""
        channel = self.channel
        while self.channel is channel:
            word, undecided = lookahead.find_word(self._text, self._pos, self._pos + limit, words)
            if not undecided or self._closed or len(self._text) - self._pos >= limit:
                return word
            yield
        return None

    def _skip_chars(self, chars: str) -> None:
        while self._pos < len(self._text) and self._text[self._pos] in chars:
            self._pos += 1

    def _wait_for_piece(
        self, fast_copy: Callable[[str], bool], can_forward: Callable[[str], bool] | None = None
    ) -> Read[None]:
        """Waits for a piece that the shortcut does not read all of. It may have read some. Those that are `plain` are
        copied, and nothing else happens."""
        self._fast_copy, self._can_forward = fast_copy, can_forward
        yield
        self._fast_copy = self._can_forward = None

    def _search_marker(self, markers: MarkerSet) -> tuple[re.Match[str] | None, int]:
        """The next marker, if it is decided which, and where the text before it (or before what may be one) ends."""
        if not markers.may_occur(self._text, self._pos):
            return None, len(self._text)
        match = markers.search(self._text, self._pos)
        if match is None:
            return None, len(self._text) if self._closed else markers.partial_start(self._text, self._pos)
        if self._closed:
            return match, match.start()
        partial_start = markers.partial_start(
            self._text, self._pos
        )  # a longer marker may begin here that holds the one that was found
        if partial_start < match.start():
            return None, partial_start
        return None if markers.can_extend(match) else match, match.start()

    def _match_marker(self, markers: MarkerSet, pos: int) -> tuple[re.Match[str] | None, bool]:
        """The marker that stands here, if it is decided which, and whether one may yet stand here."""
        match = markers.match(self._text, pos)
        if self._closed or (match and not markers.can_extend(match)):
            return match, False
        return None, markers.is_partial(self._text, pos)

    def _whitespace_end(self, last_marker: str = "") -> int:
        match = _WHITESPACE.match(self._text, self._pos + len(last_marker))
        return match.end() if match else self._pos
