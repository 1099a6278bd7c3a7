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
from functools import lru_cache
from typing import TypeAlias, TypeVar

from interlingua.core.text_forwarder import TextForwarder
from interlingua.parsing.call_boundary import BoundaryMemory
from interlingua.parsing.code_spans import CodeTracker
from interlingua.parsing.lookahead import (
    MAX_BUFFERED_WHITESPACE_CHARS,
    SortedWords,
    WordFinder,
    WordSequence,
    match_word_sequence,
)
from interlingua.parsing.markers import MarkerSet
from interlingua.parsing.tracer import ParserTracer, join_tail
from interlingua.trace import Channel

__all__ = ["MAX_BUFFERED_WHITESPACE_CHARS", "Channel", "PrecededBy", "Read", "TextBuffer"]

T = TypeVar("T")
Read: TypeAlias = Generator[None, None, T]
"""Generator that reads from a `TextBuffer`: it yields when it needs more text, and returns its result."""

_WHITESPACE = re.compile(r"\s*+")


class PrecededBy(Enum):
    """The kind of text right before the read position."""

    NOTHING = "nothing"
    MARKER = "marker"
    TEXT = "text"


# Module constants, because these are compared for every token and attribute access on an Enum is slow.
_AFTER_NOTHING, _AFTER_MARKER, _AFTER_TEXT = PrecededBy.NOTHING, PrecededBy.MARKER, PrecededBy.TEXT
_TEXT_CHANNEL = Channel.TEXT

CODE_SCAN_INTERVAL_CHARS = 4096
"""Number of characters after which a text is scanned for code spans and code blocks, even if no marker comes."""


@lru_cache(maxsize=256)
def _plain_text_counter(markers: MarkerSet, trim: str) -> TextForwarder:
    """Return a function that counts the texts without a part of a marker, and without `trim` at their end."""
    trim_chars = tuple(trim)
    only_first_char, search_first_two = markers.only_first_char, markers.search_first_two

    def is_plain(text: str) -> bool:
        if trim_chars and text.endswith(trim_chars):
            return False
        return only_first_char not in text if only_first_char else search_first_two(text) is None

    def count_plain(texts: list[str], joined: str) -> int:
        if len(texts) == 1:
            return int(is_plain(joined))
        if not trim_chars and not markers.may_begin_in(joined):  # no marker can begin in any of them
            return len(texts)
        count = 0
        while count < len(texts) and is_plain(texts[count]):
            count += 1
        return count

    return count_plain


class TextBuffer:
    """Text that was pushed but not yet read, and the methods that read it."""

    # Each token reads many of these attributes. A class with more than 30 of them and no slots keeps them in a dict.
    __slots__ = (
        "_channel_before_boundary",
        "_channel_boundary",
        "_count_forwardable",
        "_fast_copy",
        "_mark_start",
        "_marked_pieces",
        "_preceded_by",
        "_record_start",
        "_recorded_pieces",
        "_scan_code_at",
        "_skip_json",
        "_taken_pieces",
        "_tracer",
        "_track_code",
        "_trimmed_whitespace",
        "_waited_to",
        "_write",
        "boundary_memory",
        "channel",
        "closed",
        "code",
        "fast_copy_waits",
        "marker_follows_text",
        "markers_adjacent",
        "pos",
        "recorded_channel",
        "recorded_is_refused",
        "recorded_marker",
        "search_found_nothing",
        "searched_to",
        "taken_channel",
        "text",
        "text_offset",
    )

    def __init__(self, offset: int = 0, tracer: ParserTracer | None = None) -> None:
        self._tracer = tracer
        self.code = CodeTracker()
        self._track_code = self.code.add
        """Follows the code spans and code blocks in the text that was sent."""
        self._scan_code_at = CODE_SCAN_INTERVAL_CHARS  # position of the next scan for code
        self._waited_to = 0  # up to this position the text had to wait for a later piece; only for the tracer
        self.channel = _TEXT_CHANNEL
        self.text = ""
        self.pos = 0
        self.text_offset = offset
        self._channel_boundary = 0
        """Position up to which the text belongs to the previous channel. It is negative if that text is no longer
        buffered: the text may be un-read."""
        self._channel_before_boundary = _TEXT_CHANNEL
        self.closed = False
        self._fast_copy: Callable[[str], bool] | None = None
        self.fast_copy_waits = False  # the fast path has left the end of the last piece: it needs the next one, too
        self._count_forwardable: TextForwarder | None = None
        """Returns how many pieces `copy_until`, which waits, would copy unchanged. It has no other effect."""
        self._write: Callable[[str, Channel], None] | None = None  # receives the text that `copy_until` copies
        self._skip_json: TextForwarder | None = None
        self._taken_pieces: list[str] = []
        self.taken_channel = _TEXT_CHANNEL
        """The channel of the text that `take_until` or `take_all` returned last."""
        self._preceded_by = _AFTER_NOTHING
        self._trimmed_whitespace = ""  # whitespace before the last marker that was not copied
        self.markers_adjacent = False
        """True if only whitespace separated the last two markers."""
        self.marker_follows_text = False
        """True if other text was copied right before the last marker."""
        self._marked_pieces: list[str] | None = None  # what was read since `set_mark`, except `_text`
        self._mark_start = 0
        self.searched_to = 0
        """Up to this offset, the text was already searched for the end of a value, and un-read."""
        self.search_found_nothing = False
        """True if that search ended with the text, so that it need not be repeated."""
        self.boundary_memory = BoundaryMemory()
        self._recorded_pieces: list[str] | None = None  # what was read since `start_recording`, except `_text`
        self._record_start = 0
        self.recorded_channel = _TEXT_CHANNEL
        """The channel of the recorded text."""
        self.recorded_marker = ""
        """The marker at the start of the recorded text."""
        self.recorded_is_refused = False
        """True if the recorded text is known to be no call."""

    def push(self, text: str, channel: Channel = _TEXT_CHANNEL) -> bool:
        """Add the next piece of text.

        Returns:
            Whether the reader has to be resumed. False if the fast path has already copied the whole piece. That is
            the case for nearly every piece of a long text or argument: a copying reader leaves a callback for the fast
            path (`_fast_copy`) while it waits.
        """
        consumed, buffered = self.pos, self.text
        if self._recorded_pieces is not None:
            self._recorded_pieces.append(buffered[self._record_start : consumed])
            self._record_start = 0
        if self._marked_pieces is not None:
            self._marked_pieces.append(buffered[self._mark_start : consumed])
            self._mark_start = 0
        self.text_offset += consumed
        if self.text_offset > self._scan_code_at:
            self._scan_code()
        self.pos = 0
        self._channel_boundary -= consumed
        if channel is self.channel and self._fast_copy is not None:
            if consumed == len(buffered):
                self.text = text
                return not self._fast_copy(text)
            if self.fast_copy_waits:
                self.fast_copy_waits = False
                self.text = buffered[consumed:] + text
                return not self._fast_copy(self.text)
        remainder = buffered[consumed:]
        if channel is not self.channel:
            self.code.reset()
            boundary = len(remainder) if self.text_offset >= 0 else 0  # a prefill belongs to any channel
            self._channel_boundary, self._channel_before_boundary, self.channel = boundary, self.channel, channel
        self.text = text
        if remainder:
            self.text = remainder + text
            if self._tracer is not None:
                self._waited_to = self.text_offset + len(remainder)
        return True

    def forward_text(self, pieces: list[str], joined: str) -> int:
        """Mark pieces as consumed that the reader would copy unchanged (a `TextForwarder`), if the buffer is empty."""
        if self._count_forwardable is None or self.pos != len(self.text) or self._recorded_pieces is not None:
            return 0
        count = self._count_forwardable(pieces, joined)
        if count:
            text = joined if count == len(pieces) else "".join(pieces[:count])
            self.text_offset += len(text)
            self._track_code(text)
            if self.text_offset > self._scan_code_at:
                self._scan_code()
        return count

    def forward_json(self, pieces: list[str], joined: str) -> int:
        """As `forward_text`, for pieces inside a string of JSON that is being copied."""
        if (
            self._skip_json is None
            or self.pos != len(self.text)
            or self._recorded_pieces is not None
            or self._marked_pieces is not None
        ):
            return 0
        count = self._skip_json(pieces, joined)
        if count:
            self.text_offset += len(joined) if count == len(pieces) else sum(map(len, pieces[:count]))
            if self.text_offset > self._scan_code_at:
                self._scan_code()
        return count

    @property
    def is_copying_json(self) -> bool:
        """True if JSON is being copied, so that `forward_json` may forward a piece."""
        return self._skip_json is not None

    def _scan_code(self) -> None:
        self._scan_code_at = self.text_offset + CODE_SCAN_INTERVAL_CHARS
        self.code.scan_added()

    def close(self) -> None:
        """Mark the end of the text. A partial marker in the buffer is plain text from now on."""
        self.closed = True
        self._waited_to = self.text_offset + len(self.text)

    def release(self) -> None:
        """Drop the functions that refer back to the buffer, so that it is freed without a garbage collection."""
        self._fast_copy = self._count_forwardable = self._skip_json = self._write = None

    @property
    def offset(self) -> int:
        """Number of characters of the reply that were read."""
        return self.text_offset + self.pos

    @property
    def buffered(self) -> str:
        """The buffered text, which waits for more text. Only the end of it if it is long."""
        return self.marked_text + self.taken_text + self.unread_text

    @property
    def held_chars(self) -> int:
        """Number of characters in the buffer, including those that were read and are kept."""
        pieces = (self._marked_pieces or (), self._taken_pieces, self._recorded_pieces or ())
        return len(self.text) + sum(len(piece) for kept in pieces for piece in kept)

    @property
    def marked_text(self) -> str:
        """The text that was read since `set_mark`. Only the end of it if it is long."""
        if self._marked_pieces is None:
            return ""
        return join_tail(self._marked_pieces) + self.text[self._mark_start : self.pos]

    @property
    def taken_text(self) -> str:
        """The text that `take_until` has read so far. Only the end of it if it is long."""
        return join_tail(self._taken_pieces)

    @property
    def unread_text(self) -> str:
        return self.text[self.pos :]

    @property
    def recorded_text(self) -> str:
        """The recorded text after the marker at its start. Only the end of it if it is long."""
        if self._recorded_pieces is None:
            return ""
        text = join_tail(self._recorded_pieces) + self.text[self._record_start : self.pos]
        marker = self.recorded_marker
        is_marker = self._tracer is not None and self._tracer.is_marker(marker)
        return text.removeprefix(self._recorded_pieces[0]).removeprefix(marker if is_marker else "")

    def put_back(self, marker: str) -> None:
        """Un-read the marker that was just read, so that another reader receives it."""
        self.pos -= len(marker)

    def skip_data(self, text: str) -> None:
        """Read text that was un-read, as data."""
        self.pos += len(text)

    def read_again(self, marker: str) -> None:
        """Read a marker that was put back. It may be longer than before."""
        self.pos += len(marker)

    def prepend_prefill(self, text: str) -> None:
        """Put the end of the prefill, such as a partial marker, before the reply.

        It is not part of the reply's text.
        """
        self.text = text
        self.text_offset -= len(text)

    def start_recording(self, marker: str) -> None:
        """Record what is read from now on, starting with the marker that was just read.

        The recorded text is returned as plain text if it turns out not to be a call.
        """
        before_boundary = self.pos - len(marker) < self._channel_boundary
        self.recorded_channel = self._channel_before_boundary if before_boundary else self.channel
        self.recorded_marker = marker
        self.recorded_is_refused = False
        self._recorded_pieces = [self._trimmed_whitespace]
        self._trimmed_whitespace = ""
        self._record_start = self.pos - len(marker)

    @property
    def leading_whitespace(self) -> str:
        """The whitespace before the recorded text that was not copied."""
        return self._recorded_pieces[0] if self._recorded_pieces else ""

    def take_recorded(self) -> str:
        """Return the text that was read since `start_recording`, and stop recording."""
        if self._recorded_pieces is None:
            return ""
        text = "".join(self._recorded_pieces) + self.text[self._record_start : self.pos]
        self._recorded_pieces = None
        text = text[max(0, len(text) - self.offset) :]  # without the prefill
        if self._tracer is not None:
            self._tracer.report_release(text, "call", self.recorded_channel)
        return text

    def rewind(self, marker: str) -> None:
        """Un-read all recorded text after the marker at its start. Only for short text, because it is read twice."""
        if self._recorded_pieces is None or len(self._recorded_pieces) == 1:
            # No piece was pushed since the recording began: all of the text is still in the buffer.
            self.pos = self._record_start + len(marker)
            return
        lead = self._recorded_pieces[0]
        text = "".join(self._recorded_pieces) + self.text[self._record_start : self.pos]
        self.text = text[len(lead) + len(marker) :] + self.text[self.pos :]
        self._move_start(self.text_offset + self.pos - len(text) + len(lead) + len(marker))
        self.pos = 0
        self._recorded_pieces, self._record_start = [lead + marker], 0

    def unread_recorded(self) -> None:
        """Un-read all recorded text after the marker at its start, and stop recording, as if just the marker had been
        read."""
        if self._recorded_pieces is None:
            return
        lead, *pieces = self._recorded_pieces
        if pieces:
            text = "".join(pieces) + self.text[self._record_start : self.pos]
            self._move_start(self.offset - len(text))
            self.text = text + self.text[self.pos :]
            self._record_start = 0
        self.pos = self._record_start + len(self.recorded_marker)
        self._recorded_pieces, self._trimmed_whitespace = None, lead

    def unread(self, text: str) -> None:
        """Un-read the text that was read last, which may not be in the buffer any more."""
        if text:
            self._move_start(self.offset - len(text))
            self.text = text + self.text[self.pos :]
            self.pos = 0

    def _move_start(self, offset: int) -> None:
        """Set the offset of the buffered text, whose beginning changes because text is un-read."""
        self._channel_boundary += self.text_offset - offset
        self.text_offset = offset

    @property
    def trimmed_whitespace(self) -> str:
        """The whitespace before the last marker that was not copied."""
        return self._trimmed_whitespace

    def discard_recording(self) -> None:
        """Stop recording and drop the recorded text."""
        self._recorded_pieces = None

    # ── reading ahead ─────────────────────────────────────────────────────────────────────────────────────────────────

    def set_mark(self, last_marker: str = "") -> None:
        """Keep the text that is read from here on, so that it can be taken or un-read.

        Args:
            last_marker: The marker that was just read, if it is kept, too.
        """
        self._marked_pieces, self._mark_start = [], self.pos - len(last_marker)

    def drop_mark(self) -> None:
        self._marked_pieces = None

    def take_marked(self) -> str:
        """Return the text that was read since `set_mark`, and remove the mark."""
        text = "".join(self._marked_pieces or ()) + self.text[self._mark_start : self.pos]
        self._marked_pieces = None
        return text

    def rewind_to_mark(self) -> None:
        """Un-read the text that was read since `set_mark`, and remove the mark."""
        marked_chars = sum(map(len, self._marked_pieces or ())) + self.pos - self._mark_start
        self.rewind_to(self.offset - marked_chars)
        self._marked_pieces = None

    def rewind_to(self, offset: int) -> None:
        """Un-read all text from this offset on, which is at or after the mark."""
        missing = self.text_offset - offset
        if missing > 0:
            text = _take_tail(self._marked_pieces or [], missing)
            if self._recorded_pieces is not None:
                _take_tail(self._recorded_pieces, missing)
                self._record_start = 0
            self.text = text + self.text
            self._move_start(offset)
            self._mark_start = 0
        self.pos = offset - self.text_offset

    @property
    def is_after_text(self) -> bool:
        """True if text was read last, not a marker."""
        return self._preceded_by is _AFTER_TEXT

    def mark_as_text(self) -> None:
        """Treat what was read last as text, not as a marker."""
        self._preceded_by = _AFTER_TEXT

    def match_when_complete(self, pattern: re.Pattern[str], unfinished: re.Pattern[str]) -> Read[re.Match[str] | None]:
        """Match a pattern with the text that comes next, and wait as long as `unfinished` matches all of the buffer.

        Consumes nothing.
        """
        channel = self.channel
        while self.channel is channel:
            match = pattern.match(self.text, self.pos)
            if match is not None or self.closed or unfinished.fullmatch(self.text, self.pos) is None:
                return match
            yield
        return None

    def look_ahead(
        self, lookahead: WordFinder, limit: int, words: Collection[str] | None = None, last_marker: str = ""
    ) -> Read[str | None]:
        """Return the word of the sequence that comes next, or None if no sequence matches. Consumes nothing.

        Args:
            lookahead: What to match.
            limit: Maximum number of characters to look ahead.
            words: The words that are accepted, or None for any word.
            last_marker: A marker that was just read. It stays in the buffer, so that `put_back` is still possible.
        """
        channel, kept = self.channel, len(last_marker)
        self.pos -= kept
        while self.channel is channel:
            text, start = self.text, self.pos + kept
            word, undecided = lookahead.find_word(text, start, start + limit, words)
            if not undecided or self.closed or len(text) - start >= limit:
                self.pos = start
                return word
            yield
        self.pos += kept
        return None

    def _skip_chars(self, chars: str) -> None:
        while self.pos < len(self.text) and self.text[self.pos] in chars:
            self.pos += 1

    def wait_for_piece(
        self,
        fast_copy: Callable[[str], bool],
        skip_json: TextForwarder | None = None,
    ) -> Read[None]:
        """Wait for a piece that the fast path does not consume completely.

        Args:
            fast_copy: Copies a piece and returns whether it consumed all of it. It may consume only a part.
            skip_json: Marks pieces of JSON as scanned that would be copied unchanged. Returns how many.
        """
        self._fast_copy, self.fast_copy_waits, self._skip_json = fast_copy, False, skip_json
        yield
        self._fast_copy = self._skip_json = None

    def search_marker(self, markers: MarkerSet) -> tuple[re.Match[str] | None, int]:
        """Search the next marker.

        Returns:
            The marker, or None if there is none or more text could change it; and the end of the text before the
            marker or the partial marker.
        """
        text, pos = self.text, self.pos
        if not markers.may_occur(text, pos):
            return None, len(text)
        match = markers.search(text, pos)
        if match is None:
            return None, len(text) if self.closed else markers.partial_start(text, pos)
        start = match.start()
        if self.closed:
            return match, start
        # A longer marker that contains this one may begin earlier, if it reaches the end of the text.
        if start > max(pos, len(text) - markers.max_length):
            partial_start = markers.partial_start(text, pos)
            if partial_start < start:
                return None, partial_start
        return None if markers.can_extend(match) else match, start

    def match_marker(self, markers: MarkerSet, pos: int) -> tuple[re.Match[str] | None, bool]:
        """Return the marker at `pos`, or None if it is not decided; and whether more text could make one."""
        match = markers.match(self.text, pos)
        if self.closed or (match and not markers.can_extend(match)):
            return match, False
        return None, markers.is_partial(self.text, pos)

    def _whitespace_end(self, last_marker: str = "") -> int:
        start = self.pos + len(last_marker)
        if start < len(self.text) and not self.text[start].isspace():
            return start  # the most frequent case, without a pattern
        match = _WHITESPACE.match(self.text, start)
        return match.end() if match else start

    # ── tracing ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def trace_marker(self, marker: str, end: int | None = None) -> None:
        """Report a marker that was read as structure: the one that was just read, or the one that ends at `end`.

        The methods that return markers do this themselves, except for `copy_value`: there a marker may be data. After
        a mark nothing is reported, because the markers are data or will be read once more.
        """
        if self._tracer is not None and self._marked_pieces is None:
            self._tracer.report_marker(marker, self.offset if end is None else end, self.channel)

    def trace_release(self, text: str, channel: Channel) -> None:
        """Report the part of the next characters, which are sent as text, that had to wait for later ones."""
        waited = text[: max(0, self._waited_to - max(0, self.offset))]
        if self._tracer is not None and waited:
            self._tracer.report_release(waited, "whitespace" if waited.isspace() else "marker", channel)

    def _trace_releases(self, write: Callable[[str, Channel], None]) -> Callable[[str, Channel], None]:
        """Return a `write` that reports the text that had to wait; the same one if nothing is traced."""
        if self._tracer is None:
            return write

        def write_and_report(text: str, channel: Channel) -> None:
            self.trace_release(text, channel)
            write(text, channel)

        return write_and_report

    def read_marker(self, match: re.Match[str]) -> str:
        """Consume and return a marker that is structure."""
        self.pos = match.end()
        if self._tracer is not None:
            self.trace_marker(match.group())
        return match.group()

    # ── copying and taking text ───────────────────────────────────────────────────────────────────────────────────────

    def take_char(self) -> Read[str]:
        """Consume and return the next character; "" at the end of the text or of the channel."""
        channel = self.channel
        while self.pos == len(self.text) and not self.closed:
            yield
        if self.channel is not channel or self.pos == len(self.text):
            return ""
        self.pos += 1
        return self.text[self.pos - 1]

    def take_all(self) -> Read[str]:
        """Consume and return all buffered text, or the next piece if the buffer is empty."""
        if self.pos == len(self.text) and not self.closed:
            yield
        self.taken_channel = self.channel
        text = self.text[self.pos :]
        self.pos = len(self.text)
        return text

    def take_piece(self, markers: MarkerSet, limit: int) -> Read[str]:
        """Consume and return buffered text, at most `limit` characters. Wait if nothing is buffered.

        Returns:
            The text; "" if one of the markers comes next, the channel changes or the text ends.
        """
        channel = self.channel
        while self.channel is channel:
            window_end = min(len(self.text), self.pos + limit)
            match = markers.search(self.text, self.pos, window_end + markers.max_length)
            end = min(match.start(), window_end) if match else window_end
            if not self.closed:
                end = min(end, markers.partial_start(self.text, self.pos))
            if end > self.pos:
                text = self.text[self.pos : end]
                self.pos = end
                return text
            if match or self.closed:
                return ""
            yield
        return ""

    def copy_until(self, markers: MarkerSet, write: Callable[[str, Channel], None], trim: str = "") -> Read[str | None]:
        """Copy text to `write` up to the next marker.

        Whitespace between two markers is layout and is not copied. It stays buffered until the next token is known, so
        at the end of the text it is left in `buffered`. A marker never spans two channels: where the channel changes,
        a partial marker is text.

        Args:
            markers: The markers that end the text.
            write: Receives each piece of text and its channel.
            trim: Characters that are never copied next to a marker.

        Returns:
            The marker (consumed); "" if the channel changed; None at the end of the text.
        """
        write = self._trace_releases(write)
        while True:
            if self.pos < self._channel_boundary:
                return self._cross_channel_boundary(markers, write)
            if self._preceded_by is _AFTER_MARKER and trim:
                self._skip_chars(trim)
            match, end = self.search_marker(markers)
            body = self.text[self.pos : end]
            if trim and not (self.closed and match is None):
                body = body[: max(len(body.rstrip(trim)), len(body) - MAX_BUFFERED_WHITESPACE_CHARS)]
            if body and not (
                self._preceded_by is not _AFTER_TEXT and body.isspace() and len(body) <= MAX_BUFFERED_WHITESPACE_CHARS
            ):
                write(body[max(0, -self.offset) :], self.channel)  # without the prefill
                self.pos += len(body)
                self._preceded_by = _AFTER_TEXT
            if match:
                self._trimmed_whitespace = self.text[self.pos : match.start()] if trim else ""
                self.markers_adjacent = self._preceded_by is _AFTER_MARKER
                self.marker_follows_text = self._preceded_by is _AFTER_TEXT
                self._preceded_by = _AFTER_MARKER
                return self.read_marker(match)
            if self.closed:
                return None
            channel = self.channel
            if self.pos < len(self.text) or self._preceded_by is not _AFTER_TEXT:
                yield  # not on the fast path: the next piece continues a marker or whitespace
            else:
                # As `_wait_for_piece` does, but most streams wait here: a generator and functions of its own would
                # double the memory of the reader.
                self._write, self._count_forwardable = write, _plain_text_counter(markers, trim)
                self._fast_copy, self.fast_copy_waits = self._copy_piece, False
                yield
                self._fast_copy = self._count_forwardable = self._write = None
            if self.channel is not channel and self.pos >= self._channel_boundary:
                self._preceded_by = _AFTER_NOTHING
                return ""

    def _copy_piece(self, piece: str) -> bool:
        """Copy a piece on the fast path of `copy_until`, and return whether it has: all of it or nothing."""
        if self._count_forwardable is None or self._write is None or not self._count_forwardable([piece], piece):
            return False
        self._write(piece, self.channel)
        self.pos = len(piece)
        return True

    def _cross_channel_boundary(self, markers: MarkerSet, write: Callable[[str, Channel], None]) -> str:
        """Copy the text that was buffered in the previous channel.

        Copies all of it, or up to a marker that could have become a longer one. Returns that marker, or "".
        """
        earlier_text = self.text[self.pos : self._channel_boundary]
        match = markers.search(earlier_text, 0)
        write(earlier_text[: match.start() if match else len(earlier_text)], self._channel_before_boundary)
        self.pos += match.end() if match else len(earlier_text)
        if match and self._tracer is not None:
            self._tracer.report_marker(match.group(), self.offset, self._channel_before_boundary)
        self._preceded_by = _AFTER_MARKER if match else _AFTER_NOTHING
        return match.group() if match else ""

    def copy_value(
        self, markers: MarkerSet, write: Callable[[str], None], limit: int, channel: Channel | None = None
    ) -> Read[str | None]:
        """Copy all text up to the next marker, including whitespace.

        Args:
            markers: The markers that end the value.
            write: Receives each piece of text.
            limit: Maximum number of characters to copy.
            channel: The channel of the value; by default the current one.

        Returns:
            The marker (consumed); "" if the limit was reached or the channel changed; None at the end of the text.
        """
        size = 0
        channel = channel or self.channel
        while self.channel is channel:
            match, end = self.search_marker(markers)
            body = self.text[self.pos : min(end, self.pos + limit - size)]
            if body:
                size += len(body)
                write(body)
                self.pos += len(body)
            if self.pos < end:
                return ""
            if match:
                self.pos = match.end()
                return match.group()
            if self.closed:
                return None
            if self.pos < len(self.text):
                yield  # not on the fast path: the next piece continues a marker
            else:
                size += yield from self._wait_for_value(markers, write, limit - size)
        return self._cut_value(write)

    def _wait_for_value(self, markers: MarkerSet, write: Callable[[str], None], limit: int) -> Read[int]:
        """Wait for a piece that the fast path of `copy_value` does not copy. Return the number of copied characters."""
        only_first_char, search_first_two = markers.only_first_char, markers.search_first_two
        size = 0

        def copy_piece(piece: str) -> bool:
            nonlocal size
            if only_first_char in piece if only_first_char else search_first_two(piece):
                return False
            if size + len(piece) > limit:
                return False
            size += len(piece)
            write(piece)
            self.pos = len(piece)
            return True

        yield from self.wait_for_piece(copy_piece)
        return size

    def _cut_value(self, write: Callable[[str], None]) -> str:
        """End a value at a change of the channel. Buffered text of the previous channel still belongs to the value."""
        if self.pos < self._channel_boundary:
            write(self.text[self.pos : self._channel_boundary])
            self.pos = self._channel_boundary
        return ""

    def take_until(self, markers: MarkerSet, limit: int) -> Read[tuple[str, str | None]]:
        """Consume and return the text up to the next marker, and the marker.

        The marker is None if the text ends, the channel changes or the limit is exceeded before it.
        """
        size = 0
        self.taken_channel = self.channel
        while True:
            if self.channel is not self.taken_channel:
                end = max(self.pos, self._channel_boundary)
                text = self._join_taken(self.text[self.pos : end])
                self.pos = end
                if text.strip():
                    return text, None
                size, self.taken_channel = 0, self.channel
            match, end = self.search_marker(markers)
            end = min(end, self.pos + limit + 1 - size)
            piece = self.text[self.pos : end]
            size += len(piece)
            self.pos = end
            if match and size <= limit:
                return self._join_taken(piece), self.read_marker(match)
            if self.closed or size > limit:
                return self._join_taken(piece), None
            self._taken_pieces.append(piece)
            yield

    def _join_taken(self, last_piece: str) -> str:
        """Return the text that was taken, and forget it."""
        if not self._taken_pieces:
            return last_piece
        text = "".join(self._taken_pieces) + last_piece
        self._taken_pieces.clear()
        return text

    def take_match(self, pattern: re.Pattern[str], limit: int) -> re.Match[str] | None:
        """Consume and return a match at the read position, if the buffer contains all of it.

        None, consuming nothing, if there is none, if it is longer than `limit`, or if the channel changes there.
        """
        match = pattern.match(self.text, self.pos)
        if match is None or match.end() - self.pos > limit or self.pos < self._channel_boundary:
            return None
        self.pos = match.end()
        return match

    def take_marker(self, pattern: re.Pattern[str], limit: int) -> str | None:
        """Consume and return the marker that is the group of this pattern, as `take_match` does."""
        match = self.take_match(pattern, limit)
        if match is None:
            return None
        marker: str = match[1]
        self.trace_marker(marker)
        return marker

    def accept(self, markers: MarkerSet) -> Read[str | None]:
        """Consume and return the next marker, after optional whitespace.

        None, consuming nothing, if no marker is next.
        """
        match = yield from self._next_marker(markers)
        return None if match is None else self.read_marker(match)

    def accept_here(self, markers: MarkerSet) -> Read[str | None]:
        """Consume and return the marker that comes next, with no whitespace before it.

        None, consuming nothing, if no marker is next.
        """
        channel = self.channel
        while self.channel is channel:
            match, undecided = self.match_marker(markers, self.pos)
            if match:
                self.pos = match.end()
                return match.group()
            if self.closed or not (undecided or self.pos == len(self.text)):
                return None
            yield
        return None

    def peek(self, markers: MarkerSet, last_marker: str = "") -> Read[str | None]:
        """Return the marker that comes next, after optional whitespace, without consuming it.

        Args:
            markers: The markers to match.
            last_marker: A marker that was just read. It stays in the buffer, so that `put_back` is still possible.

        Returns:
            The marker; "" if the text ends; None if no marker comes next.
        """
        self.pos -= len(last_marker)
        match = yield from self._next_marker(markers, last_marker)
        at_end = self.closed and self._whitespace_end(last_marker) == len(self.text)
        self.pos += len(last_marker)
        if match is None:
            return "" if at_end else None
        return match.group()

    def ends_inside(self, markers: MarkerSet) -> bool:
        """Return whether the text has ended with the beginning of a marker, after optional whitespace."""
        return self.closed and markers.is_partial(self.text, self._whitespace_end())

    def is_next(self, sequences: Sequence[WordSequence], last_marker: str) -> Read[bool]:
        """Return whether one of the sequences matches, starting at the marker that was just read. Consumes nothing."""
        channel = self.channel
        self.pos -= len(last_marker)
        results: list[bool | None] = [None]
        while None in results and True not in results and self.channel is channel:
            results = [match_word_sequence(sequence, self.text, self.pos, self.closed) for sequence in sequences]
            if None in results and True not in results:
                yield
        self.pos += len(last_marker)
        return True in results

    def _next_marker(self, markers: MarkerSet, last_marker: str = "") -> Read[re.Match[str] | None]:
        channel = self.channel
        while self.channel is channel:
            start = self._whitespace_end(last_marker)
            if start - self.pos - len(last_marker) > MAX_BUFFERED_WHITESPACE_CHARS:
                return None
            match = markers.match(self.text, start)
            if self.closed or (match and not markers.can_extend(match)):
                return match
            if start < len(self.text) and not markers.is_partial(self.text, start):
                return None
            yield
        return None

    def peek_char(self) -> Read[str]:
        """Return the next character without consuming it; "" at the end of the text."""
        while self.pos == len(self.text) and not self.closed:
            yield
        return self.text[self.pos : self.pos + 1]

    def accept_char(self, char: str) -> Read[bool]:
        """Consume this character if it comes next. Return whether it did."""
        while self.pos == len(self.text) and not self.closed:
            yield
        matched = self.text.startswith(char, self.pos)
        self.pos += matched
        return matched

    def accept_word(self, words: tuple[str, ...] | SortedWords, trim: str = "") -> Read[str | None]:
        """Consume and return the longest of the words that comes next, after optional whitespace.

        The whitespace is recorded together with the word, except characters of `trim` next to a marker.

        Returns:
            The word; None, consuming nothing, if none of the words comes next.
        """
        channel = self.channel
        while self.channel is channel:
            text, start = self.text, self._whitespace_end()
            if start - self.pos > MAX_BUFFERED_WHITESPACE_CHARS:
                return None
            matched_word = ""
            undecided = False
            for word in words.candidates(text, start) if isinstance(words, SortedWords) else words:
                if text.startswith(word, start):
                    matched_word = max(matched_word, word, key=len)
                elif len(text) - start < len(word) and word.startswith(text[start:]):
                    undecided = not self.closed
            if not undecided:
                space = text[self.pos : start] if matched_word else ""
                self._trimmed_whitespace = space.lstrip(trim) if self._preceded_by is _AFTER_MARKER else space
                if matched_word:
                    self.pos = start + len(matched_word)
                    self._preceded_by = _AFTER_MARKER
                return matched_word or None
            yield
        return None

    def peek_after_space(self) -> Read[str]:
        """Return the next character after whitespace without consuming it.

        Returns:
            The character; " " if there is more whitespace than is buffered; "" at the end of the text.
        """
        while True:
            start = self._whitespace_end()
            if start - self.pos > MAX_BUFFERED_WHITESPACE_CHARS:
                return " "
            if start < len(self.text) or self.closed:
                return self.text[start : start + 1]
            yield

    def skip_space(self) -> Read[str]:
        """Consume whitespace. Return the character after it, not consumed; "" at the end of the text."""
        while True:
            self.pos = self._whitespace_end()
            if self.pos < len(self.text) or self.closed:
                return self.text[self.pos : self.pos + 1]
            yield

    def take_while(self, chars: re.Pattern[str], limit: int = MAX_BUFFERED_WHITESPACE_CHARS) -> Read[str]:
        """Consume and return the next characters that match, at most `limit` of them."""
        taken = ""
        channel = self.channel
        while self.channel is channel:
            match = chars.match(self.text, self.pos, self.pos + limit - len(taken))
            if match:
                taken += match.group()
                self.pos = match.end()
            if self.pos < len(self.text) or self.closed or len(taken) == limit:
                break
            yield
        return taken


def _take_tail(pieces: list[str], length: int) -> str:
    """Remove and return the last characters of a text in pieces."""
    tail: list[str] = []
    while length > 0:
        piece = pieces.pop()
        if len(piece) > length:
            pieces.append(piece[:-length])
            piece = piece[-length:]
        tail.append(piece)
        length -= len(piece)
    return "".join(reversed(tail))
