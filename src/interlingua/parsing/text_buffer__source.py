"""Text that arrives in pieces, read as if it were all there: the only place that holds text back.

The reading methods are generators. They read top to bottom like blocking code and yield when the text runs short;
whoever drives them pushes the next piece and resumes. So a reader's state is its position in the code, and no text is
looked at twice: what was read is gone, and what waits is at most some white space and the beginning of a marker.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from interlingua.parsing.lookahead import Turn, in_turn
from interlingua.parsing.markers import Markers
from interlingua.parsing.text_buffer__json_pieces import JsonPieces
from interlingua.parsing.text_buffer__pieces import BLANK, Behind, Channel, Reading

__all__ = ["Channel", "Reading", "Source"]


class Source(JsonPieces):
    """Text that arrives in pieces, and how it is read."""

    def take_char(self) -> Reading[str]:
        """The character that stands next; "" where the text ends or the channel changes."""
        channel = self.channel
        while self._pos == len(self._text) and not self._closed:
            yield
        if self.channel is not channel or self._pos == len(self._text):
            return ""
        self._pos += 1
        return self._text[self._pos - 1]

    def take_all(self) -> Reading[str]:
        """All the text that is there, or the next piece of it."""
        if self._pos == len(self._text) and not self._closed:
            yield
        self.taken_from = self.channel
        text = self._text[self._pos :]
        self._pos = len(self._text)
        return text

    def copy_until(self, marks: Markers, write: Callable[[str, Channel], None], trim: str = "") -> Reading[str | None]:
        """Copies text up to the next marker, steps over it and returns it; "" where the channel changes, None where the
        text ends.

        White space alone between two markers belongs to them and is not copied. It waits for what follows, so at the
        end of the text the caller finds it in `held`. The characters of `trim` are not copied next to a marker at all.
        A marker never spans two channels: where the channel changes, what waited for the rest of one was text.
        """

        def plain(piece: str) -> bool:
            return self._behind is Behind.TEXT and not marks.possible(piece, 0) and not piece.endswith(trims)

        def go_on(piece: str) -> bool:
            if not plain(piece):
                return False
            write(piece, self.channel)
            self._pos = len(piece)
            return True

        trims = tuple(trim)
        while True:
            if self._pos < self._seam:
                return self._cross_seam(marks, write)
            if self._behind is Behind.MARKER and trim:
                self._skip(trim)
            found, end = self._search(marks)
            body = self._text[self._pos : end]
            if trim and not (self._closed and found is None):
                body = body[: max(len(body.rstrip(trim)), len(body) - BLANK)]
            if body and not (self._behind is not Behind.TEXT and body.isspace() and len(body) <= BLANK):
                write(body[max(0, -self.offset) :], self.channel)  # what the prompt wrote is no part of the reply
                self._pos += len(body)
                self._behind = Behind.TEXT
            if found:
                self._trimmed = self._text[self._pos : found.start()] if trim else ""
                self.joined = self._behind is Behind.MARKER
                self._pos = found.end()
                self._behind = Behind.MARKER
                return found.group()
            if self._closed:
                return None
            channel = self.channel
            yield from self._wait(go_on, plain)
            if self.channel is not channel and self._pos >= self._seam:
                self._behind = Behind.NOTHING
                return ""

    def _cross_seam(self, marks: Markers, write: Callable[[str, Channel], None]) -> str:
        """Copies what waited in the channel before, all of it or up to a marker that could have become a longer one."""
        before = self._text[self._pos : self._seam]
        found = marks.search(before, 0)
        write(before[: found.start() if found else len(before)], self._channel_before_seam)
        self._pos += found.end() if found else len(before)
        self._behind = Behind.MARKER if found else Behind.NOTHING
        return found.group() if found else ""

    def copy_value(
        self, marks: Markers, write: Callable[[str], None], limit: int, channel: Channel | None = None
    ) -> Reading[str | None]:
        """Copies all text up to the next marker, white space too. Returns the marker, "" if the limit or the end of
        the value's channel cut it short, None where the text ends."""

        size = 0

        def go_on(piece: str) -> bool:
            nonlocal size
            if marks.possible(piece, 0) or size + len(piece) > limit:
                return False
            size += len(piece)
            write(piece)
            self._pos = len(piece)
            return True

        channel = channel or self.channel
        while self.channel is channel:
            found, end = self._search(marks)
            body = self._text[self._pos : min(end, self._pos + limit - size)]
            if body:
                size += len(body)
                write(body)
                self._pos += len(body)
            if self._pos < end:
                return ""
            if found:
                self._pos = found.end()
                return found.group()
            if self._closed:
                return None
            yield from self._wait(go_on)
        return self._cut_value(write)

    def _cut_value(self, write: Callable[[str], None]) -> str:
        """The channel has changed inside a value: what waited of the old one still belongs to it."""
        if self._pos < self._seam:
            write(self._text[self._pos : self._seam])
            self._pos = self._seam
        return ""

    def take_until(self, marks: Markers, limit: int) -> Reading[tuple[str, str | None]]:
        """The text up to the next marker, and the marker; None for it where the text ends, the channel changes or the
        limit is passed."""
        size = 0
        self.taken_from = self.channel
        while True:
            if self.channel is not self.taken_from:
                self._taken.append(self._text[self._pos : self._seam])
                self._pos = max(self._pos, self._seam)
                text = self._all_taken()
                if text.strip():
                    return text, None
                size, self.taken_from = 0, self.channel
            found, end = self._search(marks)
            end = min(end, self._pos + limit + 1 - size)
            self._taken.append(self._text[self._pos : end])
            size += end - self._pos
            self._pos = end
            if found and size <= limit:
                self._pos = found.end()
                return self._all_taken(), found.group()
            if self._closed or size > limit:
                return self._all_taken(), None
            yield

    def _all_taken(self) -> str:
        text = "".join(self._taken)
        self._taken.clear()
        return text

    def accept(self, marks: Markers) -> Reading[str | None]:
        """The marker that stands next, white space aside; None, and nothing is read, if no marker does."""
        found = yield from self._next(marks)
        if found is None:
            return None
        self._pos = found.end()
        return found.group()

    def peek(self, marks: Markers, behind: str = "") -> Reading[str | None]:
        """The marker that stands next, white space aside, unread; "" if the text ends, None if no marker is next.

        `behind` is a marker that was just read and may be put back after this, too.
        """
        self._pos -= len(behind)
        found = yield from self._next(marks, behind)
        ended = self._closed and self._after_space(behind) == len(self._text)
        self._pos += len(behind)
        if found is None:
            return "" if ended else None
        return found.group()

    def stands_next(self, turns: Sequence[Turn], behind: str) -> Reading[bool]:
        """Whether one of these stands next, from the marker on that was just read. Nothing is read."""
        channel = self.channel
        self._pos -= len(behind)
        found: list[bool | None] = [None]
        while None in found and True not in found and self.channel is channel:
            found = [in_turn(turn, self._text, self._pos, self._closed) for turn in turns]
            if None in found and True not in found:
                yield
        self._pos += len(behind)
        return True in found

    def _next(self, marks: Markers, behind: str = "") -> Reading[re.Match[str] | None]:
        channel = self.channel
        while self.channel is channel:
            start = self._after_space(behind)
            if start - self._pos - len(behind) > BLANK:
                return None
            found, undecided = self._match(marks, start)
            if found or self._closed or not (undecided or start == len(self._text)):
                return found
            yield
        return None

    def ahead(self) -> Reading[str]:
        """The character that stands next, unread; "" where the text ends."""
        while self._pos == len(self._text) and not self._closed:
            yield
        return self._text[self._pos : self._pos + 1]

    def accept_char(self, char: str) -> Reading[bool]:
        """Steps over this character if it stands next."""
        while self._pos == len(self._text) and not self._closed:
            yield
        found = self._text.startswith(char, self._pos)
        self._pos += found
        return found

    def accept_word(self, words: tuple[str, ...], trim: str = "") -> Reading[str | None]:
        """The longest of these words that stands next, white space aside; None, and nothing is read, if none does.

        The white space counts as read with the word, but for the characters of `trim` next to a marker.
        """
        channel = self.channel
        longest = max(map(len, words), default=0)
        while self.channel is channel:
            start = self._after_space()
            rest = self._text[start : start + longest + 1]  # a big piece is not copied
            undecided = not self._closed and any(word.startswith(rest) and word != rest for word in words)
            if start - self._pos > BLANK:
                return None
            if not undecided:
                found = max((word for word in words if rest.startswith(word)), key=len, default=None)
                space = self._text[self._pos : start] if found else ""
                self._trimmed = space.lstrip(trim) if self._behind is Behind.MARKER else space
                if found:
                    self._pos = start + len(found)
                    self._behind = Behind.MARKER
                return found
            yield
        return None

    def next_char(self) -> Reading[str]:
        """The character after white space, unread; " " if there is too much of that, "" where the text ends."""
        while True:
            start = self._after_space()
            if start - self._pos > BLANK:
                return " "
            if start < len(self._text) or self._closed:
                return self._text[start : start + 1]
            yield

    def skip_space(self) -> Reading[str]:
        """Steps over white space. Returns the character after it, unread; "" where the text ends."""
        while True:
            self._pos = self._after_space()
            if self._pos < len(self._text) or self._closed:
                return self._text[self._pos : self._pos + 1]
            yield

    def take_while(self, chars: re.Pattern[str], limit: int = BLANK) -> Reading[str]:
        """The characters that stand next and match, as many as the limit allows."""
        taken = ""
        channel = self.channel
        while self.channel is channel:
            found = chars.match(self._text, self._pos, self._pos + limit - len(taken))
            if found:
                taken += found.group()
                self._pos = found.end()
            if self._pos < len(self._text) or self._closed or len(taken) == limit:
                break
            yield
        return taken
