"""Incremental text buffer: text arrives in pieces and is read as if all of it were there.

The read methods are generators. They read top to bottom like blocking code and yield when the buffer runs out of text;
the parser pushes the next piece and resumes them. A reader's state is therefore its position in the code.

No text is scanned twice: what was read is gone, and what stays buffered is at most some whitespace and the beginning
of a marker. Text that may have to be returned as plain text is recorded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Generator, Sequence
from enum import Enum
from typing import NamedTuple, TypeAlias, TypeVar

from interlingua.common.jsontext.scanner import JsonScanner
from interlingua.parsing.lookahead import MAX_BUFFERED_WHITESPACE_CHARS, Lookahead, WordSequence, match_word_sequence
from interlingua.parsing.markers import MarkerSet

__all__ = ["MAX_BUFFERED_WHITESPACE_CHARS", "Channel", "PrecededBy", "Read", "TextBuffer"]

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


MARKER_SEARCH_WINDOW_CHARS = 4096
"""How far ahead of JSON markers are looked for at a time."""


class _ScanWindow(NamedTuple):
    """Text that JSON is walked over without a look for markers, where in the source it starts and stops, and whether
    no marker that counts stands there."""

    text: str
    start: int
    stop: int
    marker_free: bool


_EMPTY_WINDOW = _ScanWindow("", 0, -1, True)


class TextBuffer:
    """Text that was pushed and not read yet, and the methods that read it."""

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

    # ── copying and taking text ───────────────────────────────────────────────────────────────────────────────────────

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

    # ── copying JSON ──────────────────────────────────────────────────────────────────────────────────────────────────

    def copy_json(
        self, scanner: JsonScanner, markers: MarkerSet, write: Callable[[str], None], limit: int
    ) -> Read[str | None]:
        """Copies one JSON value. Returns the marker that cut it short, "" if the limit did, None if nothing did: then
        the value or the text has ended, and the cursor knows which."""

        def copy_piece(piece: str) -> bool:
            if scanner.offset + len(piece) > limit or _may_contain_marker(piece, markers, scanner):
                return False
            self._pos = scanner.scan(piece, 0)
            write(piece[: self._pos])
            return self._pos == len(piece) and not scanner.ended

        window = _EMPTY_WINDOW
        while True:
            text, pos = self._text, self._pos
            limit_pos = pos + max(0, limit - scanner.offset)
            window = self._scan_window(window, scanner.in_string, markers, limit_pos)
            end = window.start + scanner.scan(window.text, pos - window.start)
            if end > pos:
                write(text[pos:end])
                self._pos = end
            if scanner.ended:
                return None
            if end == window.stop < min(limit_pos, len(text)) and (window.marker_free or scanner.in_string):
                continue
            if end < len(text):
                if end == limit_pos:
                    return ""
                match, undecided = self._match_marker(markers, end)
                if match:
                    self._pos = match.end()
                    return match.group()
                if not undecided:
                    self._pos = scanner.skip_char(text, end)
                    write(text[end])
                    continue
            if self._closed:
                return None
            yield from self._wait_for_piece(copy_piece)
            window = _EMPTY_WINDOW

    def _scan_window(self, current: _ScanWindow, in_string: bool, markers: MarkerSet, limit_pos: int) -> _ScanWindow:
        """How far JSON may be walked before one has to look: to the next marker, or to the end of this string. Markers
        are not looked for much further ahead, as the value may end long before the text, nor at every odd character."""
        text, pos = self._text, self._pos
        if pos < current.stop:
            return current
        window_end = pos + MARKER_SEARCH_WINDOW_CHARS
        stop, marker_free = len(text), True
        if (
            markers.starts_like_json
            and window_end + markers.max_length < len(text)
            and not markers.search(text, pos, window_end)
        ):
            stop = window_end - markers.max_length
        elif markers.starts_like_json:
            stop, marker_free = self._search_marker(markers)[1], False
        if stop == pos and in_string:
            stop, marker_free = text.find('"', pos) + 1 or len(text), True
        if min(limit_pos, stop) >= len(text):
            return _ScanWindow(text, 0, stop, marker_free)
        return _ScanWindow(text[pos : min(limit_pos, stop)], pos, stop, marker_free)


def _may_contain_marker(piece: str, markers: MarkerSet, scanner: JsonScanner) -> bool:
    """Whether one has to look for markers that begin as JSON does, because the piece is not all inside a string."""
    return markers.starts_like_json and markers.may_occur(piece, 0) and not (scanner.in_string and '"' not in piece)
