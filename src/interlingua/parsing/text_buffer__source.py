"""Text that arrives in pieces, read as if it were all there: the only place that holds text back.

The reading methods are generators. They read top to bottom like blocking code and yield when the text runs short;
whoever drives them pushes the next piece and resumes. So a reader's state is its position in the code, and no text is
looked at twice: what was read is gone, and what waits is at most some white space and the beginning of a marker.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from interlingua.parsing.lookahead import WordSequence, match_word_sequence
from interlingua.parsing.markers import MarkerSet
from interlingua.parsing.text_buffer__json_pieces import JsonTextBuffer
from interlingua.parsing.text_buffer__pieces import MAX_BUFFERED_WHITESPACE_CHARS, Channel, PrecededBy, Read

__all__ = ["Channel", "Read", "TextBuffer"]


class TextBuffer(JsonTextBuffer):
    """Text that arrives in pieces, and how it is read."""

    def take_char(self) -> Read[str]:
        """The character that stands next; "" where the text ends or the channel changes."""
        channel = self.channel
        while self._pos == len(self._text) and not self._closed:
            yield
        if self.channel is not channel or self._pos == len(self._text):
            return ""
        self._pos += 1
        return self._text[self._pos - 1]

    def take_all(self) -> Read[str]:
        """All the text that is there, or the next piece of it."""
        if self._pos == len(self._text) and not self._closed:
            yield
        self.taken_channel = self.channel
        text = self._text[self._pos :]
        self._pos = len(self._text)
        return text

    def copy_until(self, markers: MarkerSet, write: Callable[[str, Channel], None], trim: str = "") -> Read[str | None]:
        """Copies text up to the next marker, steps over it and returns it; "" where the channel changes, None where the
        text ends.

        White space alone between two markers belongs to them and is not copied. It waits for what follows, so at the
        end of the text the caller finds it in `held`. The characters of `trim` are not copied next to a marker at all.
        A marker never spans two channels: where the channel changes, what waited for the rest of one was text.
        """

        def can_forward(piece: str) -> bool:
            return (
                self._preceded_by is PrecededBy.TEXT
                and not markers.may_occur(piece, 0)
                and not piece.endswith(trim_chars)
            )

        def copy_piece(piece: str) -> bool:
            if not can_forward(piece):
                return False
            write(piece, self.channel)
            self._pos = len(piece)
            return True

        trim_chars = tuple(trim)
        while True:
            if self._pos < self._channel_boundary:
                return self._cross_channel_boundary(markers, write)
            if self._preceded_by is PrecededBy.MARKER and trim:
                self._skip_chars(trim)
            match, end = self._search_marker(markers)
            body = self._text[self._pos : end]
            if trim and not (self._closed and match is None):
                body = body[: max(len(body.rstrip(trim)), len(body) - MAX_BUFFERED_WHITESPACE_CHARS)]
            if body and not (
                self._preceded_by is not PrecededBy.TEXT
                and body.isspace()
                and len(body) <= MAX_BUFFERED_WHITESPACE_CHARS
            ):
                write(body[max(0, -self.offset) :], self.channel)  # what the prompt wrote is no part of the reply
                self._pos += len(body)
                self._preceded_by = PrecededBy.TEXT
            if match:
                self._trimmed_whitespace = self._text[self._pos : match.start()] if trim else ""
                self.markers_adjacent = self._preceded_by is PrecededBy.MARKER
                self._pos = match.end()
                self._preceded_by = PrecededBy.MARKER
                return match.group()
            if self._closed:
                return None
            channel = self.channel
            yield from self._wait_for_piece(copy_piece, can_forward)
            if self.channel is not channel and self._pos >= self._channel_boundary:
                self._preceded_by = PrecededBy.NOTHING
                return ""

    def _cross_channel_boundary(self, markers: MarkerSet, write: Callable[[str, Channel], None]) -> str:
        """Copies what waited in the channel before, all of it or up to a marker that could have become a longer one."""
        earlier_text = self._text[self._pos : self._channel_boundary]
        match = markers.search(earlier_text, 0)
        write(earlier_text[: match.start() if match else len(earlier_text)], self._channel_before_boundary)
        self._pos += match.end() if match else len(earlier_text)
        self._preceded_by = PrecededBy.MARKER if match else PrecededBy.NOTHING
        return match.group() if match else ""

    def copy_value(
        self, markers: MarkerSet, write: Callable[[str], None], limit: int, channel: Channel | None = None
    ) -> Read[str | None]:
        """Copies all text up to the next marker, white space too. Returns the marker, "" if the limit or the end of
        the value's channel cut it short, None where the text ends."""

        size = 0

        def copy_piece(piece: str) -> bool:
            nonlocal size
            if markers.may_occur(piece, 0) or size + len(piece) > limit:
                return False
            size += len(piece)
            write(piece)
            self._pos = len(piece)
            return True

        channel = channel or self.channel
        while self.channel is channel:
            match, end = self._search_marker(markers)
            body = self._text[self._pos : min(end, self._pos + limit - size)]
            if body:
                size += len(body)
                write(body)
                self._pos += len(body)
            if self._pos < end:
                return ""
            if match:
                self._pos = match.end()
                return match.group()
            if self._closed:
                return None
            yield from self._wait_for_piece(copy_piece)
        return self._cut_value(write)

    def _cut_value(self, write: Callable[[str], None]) -> str:
        """The channel has changed inside a value: what waited of the old one still belongs to it."""
        if self._pos < self._channel_boundary:
            write(self._text[self._pos : self._channel_boundary])
            self._pos = self._channel_boundary
        return ""

    def take_until(self, markers: MarkerSet, limit: int) -> Read[tuple[str, str | None]]:
        """The text up to the next marker, and the marker; None for it where the text ends, the channel changes or the
        limit is passed."""
        size = 0
        self.taken_channel = self.channel
        while True:
            if self.channel is not self.taken_channel:
                self._taken_pieces.append(self._text[self._pos : self._channel_boundary])
                self._pos = max(self._pos, self._channel_boundary)
                text = self._join_taken()
                if text.strip():
                    return text, None
                size, self.taken_channel = 0, self.channel
            match, end = self._search_marker(markers)
            end = min(end, self._pos + limit + 1 - size)
            self._taken_pieces.append(self._text[self._pos : end])
            size += end - self._pos
            self._pos = end
            if match and size <= limit:
                self._pos = match.end()
                return self._join_taken(), match.group()
            if self._closed or size > limit:
                return self._join_taken(), None
            yield

    def _join_taken(self) -> str:
        text = "".join(self._taken_pieces)
        self._taken_pieces.clear()
        return text

    def accept(self, markers: MarkerSet) -> Read[str | None]:
        """The marker that stands next, white space aside; None, and nothing is read, if no marker does."""
        match = yield from self._next_marker(markers)
        if match is None:
            return None
        self._pos = match.end()
        return match.group()

    def peek(self, markers: MarkerSet, last_marker: str = "") -> Read[str | None]:
        """The marker that stands next, white space aside, unread; "" if the text ends, None if no marker is next.

        `behind` is a marker that was just read and may be put back after this, too.
        """
        self._pos -= len(last_marker)
        match = yield from self._next_marker(markers, last_marker)
        at_end = self._closed and self._whitespace_end(last_marker) == len(self._text)
        self._pos += len(last_marker)
        if match is None:
            return "" if at_end else None
        return match.group()

    def is_next(self, sequences: Sequence[WordSequence], last_marker: str) -> Read[bool]:
        """Whether one of these stands next, from the marker on that was just read. Nothing is read."""
        channel = self.channel
        self._pos -= len(last_marker)
        results: list[bool | None] = [None]
        while None in results and True not in results and self.channel is channel:
            results = [match_word_sequence(sequence, self._text, self._pos, self._closed) for sequence in sequences]
            if None in results and True not in results:
                yield
        self._pos += len(last_marker)
        return True in results

    def _next_marker(self, markers: MarkerSet, last_marker: str = "") -> Read[re.Match[str] | None]:
        channel = self.channel
        while self.channel is channel:
            start = self._whitespace_end(last_marker)
            if start - self._pos - len(last_marker) > MAX_BUFFERED_WHITESPACE_CHARS:
                return None
            match, undecided = self._match_marker(markers, start)
            if match or self._closed or not (undecided or start == len(self._text)):
                return match
            yield
        return None

    def peek_char(self) -> Read[str]:
        """The character that stands next, unread; "" where the text ends."""
        while self._pos == len(self._text) and not self._closed:
            yield
        return self._text[self._pos : self._pos + 1]

    def accept_char(self, char: str) -> Read[bool]:
        """Steps over this character if it stands next."""
        while self._pos == len(self._text) and not self._closed:
            yield
        matched = self._text.startswith(char, self._pos)
        self._pos += matched
        return matched

    def accept_word(self, words: tuple[str, ...], trim: str = "") -> Read[str | None]:
        """The longest of these words that stands next, white space aside; None, and nothing is read, if none does.

        The white space counts as read with the word, but for the characters of `trim` next to a marker.
        """
        channel = self.channel
        max_length = max(map(len, words), default=0)
        while self.channel is channel:
            start = self._whitespace_end()
            remainder = self._text[start : start + max_length + 1]  # a big piece is not copied
            undecided = not self._closed and any(word.startswith(remainder) and word != remainder for word in words)
            if start - self._pos > MAX_BUFFERED_WHITESPACE_CHARS:
                return None
            if not undecided:
                matched_word = max((word for word in words if remainder.startswith(word)), key=len, default=None)
                space = self._text[self._pos : start] if matched_word else ""
                self._trimmed_whitespace = space.lstrip(trim) if self._preceded_by is PrecededBy.MARKER else space
                if matched_word:
                    self._pos = start + len(matched_word)
                    self._preceded_by = PrecededBy.MARKER
                return matched_word
            yield
        return None

    def peek_after_space(self) -> Read[str]:
        """The character after white space, unread; " " if there is too much of that, "" where the text ends."""
        while True:
            start = self._whitespace_end()
            if start - self._pos > MAX_BUFFERED_WHITESPACE_CHARS:
                return " "
            if start < len(self._text) or self._closed:
                return self._text[start : start + 1]
            yield

    def skip_space(self) -> Read[str]:
        """Steps over white space. Returns the character after it, unread; "" where the text ends."""
        while True:
            self._pos = self._whitespace_end()
            if self._pos < len(self._text) or self._closed:
                return self._text[self._pos : self._pos + 1]
            yield

    def take_while(self, chars: re.Pattern[str], limit: int = MAX_BUFFERED_WHITESPACE_CHARS) -> Read[str]:
        """The characters that stand next and match, as many as the limit allows."""
        taken = ""
        channel = self.channel
        while self.channel is channel:
            match = chars.match(self._text, self._pos, self._pos + limit - len(taken))
            if match:
                taken += match.group()
                self._pos = match.end()
            if self._pos < len(self._text) or self._closed or len(taken) == limit:
                break
            yield
        return taken
