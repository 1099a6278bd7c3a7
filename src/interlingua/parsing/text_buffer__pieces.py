"""The text that was pushed and waits to be read, and what is known about it: its channel, its place, what was read.

No text is looked at twice: what was read is gone, and what waits is at most some white space and the beginning of a
marker. What may have to be given back is recorded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Generator
from enum import Enum
from typing import TypeAlias, TypeVar

from interlingua.parsing.lookahead import BLANK, Ahead
from interlingua.parsing.markers import Markers

__all__ = ["BLANK", "Behind", "Channel", "Pieces", "Reading"]

T = TypeVar("T")
Reading: TypeAlias = Generator[None, None, T]
"""Reads from a source: yields when it needs more text, returns what it has read."""

SHOWN = 64
"""How many pieces that wait are shown."""

_SPACE = re.compile(r"\s*+")


class Behind(Enum):
    """What stands before the place where the source is read."""

    NOTHING = "nothing"
    MARKER = "marker"
    TEXT = "text"


class Channel(Enum):
    """Where a piece of text stood in the upstream's reply."""

    TEXT = "text"
    REASONING = "reasoning"


class Pieces:
    """The pieces that were pushed and not read yet, as one text."""

    def __init__(self, offset: int = 0) -> None:
        self.channel = Channel.TEXT
        self._text = ""
        self._pos = 0
        self._read_before = offset
        self._seam = 0  # up to here the text that waits is of another channel
        self._channel_before_seam = Channel.TEXT
        self._closed = False
        self._shortcut: Callable[[str], bool] | None = None
        self._plain: Callable[[str], bool] | None = None
        self._taken: list[str] = []
        self.taken_from = Channel.TEXT
        """The channel of the text that was taken last."""
        self._behind = Behind.NOTHING
        self._trimmed = ""  # the layout that stood before the last marker and was not copied
        self.joined = False
        """Whether nothing but white space stood between the last two markers."""
        self._record: list[str] | None = None  # what was read since `record`, but for the text that waits
        self._record_from = 0
        self.recorded_from = Channel.TEXT
        """The channel of what was recorded."""
        self.recorded_marker = ""
        """The marker that it begins with."""

    def push(self, text: str, channel: Channel = Channel.TEXT) -> bool:
        """Takes the next piece. False if the reading need not be resumed, because the piece has gone straight through.

        Nearly every piece of a long text or argument does: a reading that copies leaves a shortcut while it waits.
        """
        read = self._pos
        if self._record is not None:
            self._record.append(self._text[self._record_from : read])
            self._record_from = 0
        self._read_before += read
        self._pos = 0
        if self._shortcut is not None and read == len(self._text) and channel is self.channel:
            self._text, self._seam = text, 0
            return not self._shortcut(text)
        rest = self._text[read:]
        self._seam = max(0, self._seam - read)
        if channel is not self.channel:
            seam = len(rest) if self._read_before >= 0 else 0  # what the prompt had begun is of any channel
            self._seam, self._channel_before_seam, self.channel = seam, self.channel, channel
        self._text = rest + text if rest else text
        return True

    def passes(self, text: str) -> bool:
        """Whether a piece would be copied just as it is, and whatever came before it has been. If so, it counts as
        read."""
        if self._plain is None or self._pos != len(self._text) or self._record is not None or not self._plain(text):
            return False
        self._read_before += len(text)
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
        return self._read_before + self._pos

    @property
    def held(self) -> str:
        """What waits for what follows it, or the end of it if it is long."""
        return "".join(self._taken[-SHOWN:]) + self._text[self._pos :]

    def unread(self, marker: str) -> None:
        """Puts back the marker that was just read, for another reader."""
        self._pos -= len(marker)

    def begin_with(self, text: str) -> None:
        """The beginning of a marker that the prompt had already written. It is no part of the reply's text."""
        self._text = text
        self._read_before -= len(text)

    def record(self, marker: str) -> None:
        """From here on what is read is also kept, from the marker that was just read: it may have to be given back."""
        before_seam = self._pos - len(marker) < self._seam
        self.recorded_from = self._channel_before_seam if before_seam else self.channel
        self.recorded_marker = marker
        self._record = [self._trimmed]
        self._trimmed = ""
        self._record_from = self._pos - len(marker)

    @property
    def lead(self) -> str:
        """The layout that stood before what is recorded."""
        return self._record[0] if self._record else ""

    def recorded(self) -> str:
        """What was read since `record`. It is kept no longer."""
        if self._record is None:
            return ""
        text = "".join(self._record) + self._text[self._record_from : self._pos]
        self._record = None
        return text[max(0, len(text) - self.offset) :]  # what the prompt wrote is no part of it

    def rewind(self, marker: str) -> None:
        """Puts back all that was recorded but the marker it begins with. Only for what is short: it is read again."""
        if self._record is None or len(self._record) == 1:  # nothing was pushed since, so it is all still there
            self._pos = self._record_from + len(marker)
            return
        lead = self._record[0]
        text = "".join(self._record) + self._text[self._record_from : self._pos]
        self._text = text[len(lead) + len(marker) :] + self._text[self._pos :]
        self._read_before += self._pos - len(text) + len(lead) + len(marker)
        self._pos = self._seam = 0
        self._record, self._record_from = [lead + marker], 0

    def forget(self) -> None:
        """What was recorded need not be given back."""
        self._record = None

    def resume_text(self) -> None:
        """What was read last was text after all, and no marker."""
        self._behind = Behind.TEXT

    def look(self, ahead: Ahead, limit: int, words: Collection[str] | None = None) -> Reading[str | None]:
        """The word of what stands next, if that is what one looks for. Nothing is read."""
        channel = self.channel
        while self.channel is channel:
            word, undecided = ahead.look(self._text, self._pos, self._pos + limit, words)
            if not undecided or self._closed or len(self._text) - self._pos >= limit:
                return word
            yield
        return None

    def _skip(self, chars: str) -> None:
        while self._pos < len(self._text) and self._text[self._pos] in chars:
            self._pos += 1

    def _wait(self, shortcut: Callable[[str], bool], plain: Callable[[str], bool] | None = None) -> Reading[None]:
        """Waits for a piece that the shortcut does not read all of. It may have read some. Those that are `plain` are
        copied, and nothing else happens."""
        self._shortcut, self._plain = shortcut, plain
        yield
        self._shortcut = self._plain = None

    def _search(self, marks: Markers) -> tuple[re.Match[str] | None, int]:
        """The next marker, if it is decided which, and where the text before it (or before what may be one) ends."""
        if not marks.possible(self._text, self._pos):
            return None, len(self._text)
        found = marks.search(self._text, self._pos)
        if found is None:
            return None, len(self._text) if self._closed else marks.tail(self._text, self._pos)
        if self._closed:
            return found, found.start()
        earlier = marks.tail(self._text, self._pos)  # a longer marker may begin here that holds the one that was found
        if earlier < found.start():
            return None, earlier
        return None if marks.may_grow(found) else found, found.start()

    def _match(self, marks: Markers, pos: int) -> tuple[re.Match[str] | None, bool]:
        """The marker that stands here, if it is decided which, and whether one may yet stand here."""
        found = marks.match(self._text, pos)
        if self._closed or (found and not marks.may_grow(found)):
            return found, False
        return None, marks.may_begin(self._text, pos)

    def _after_space(self, behind: str = "") -> int:
        space = _SPACE.match(self._text, self._pos + len(behind))
        return space.end() if space else self._pos
