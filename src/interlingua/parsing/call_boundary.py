"""Detection of the end of a call inside a JSON string that the model never closes.

A marker inside a JSON string is data, because models write files that quote calls. But the arguments of a quoted call
have escaped quotes, and those of a real call have not: `{"x"`. So the string was never closed if the call's closer is
followed by

- another call whose arguments open with an unescaped quote: in a string, that quote would be followed by `,` or `}`;
- nothing but closers, the end of the turn, and calls with empty arguments, up to the end of the text.

Valid JSON never has either of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum

from interlingua.parsing.markers import SPECIAL_TOKEN_PREFIXES, common_prefix, compile_markers

__all__ = ["BoundaryMemory", "BoundarySearch", "CallBoundary"]

MAX_FALSE_STARTS = 8
"""Maximum number of places that begin like a marker before a pattern searches the rest of the text."""
MAX_LOOKAHEAD_CHARS = 4096
"""Maximum length of the text after a closer that is looked at."""

_WHITESPACE = re.compile(r"\s++")
_HEADER_TEXT = re.compile(r'[^"\\{}\[\]<]++')
_HEADER_NAME = re.compile(r"(?<!\s)[\w.-]++")
_OBJECT_START = re.compile(r"(?:\[\s{0,256}+)?\{\s{0,256}+")
_OBJECT_START_PREFIX = re.compile(r"\[\s{0,256}+\Z")
_AFTER_CLOSING_QUOTE = " \t\r\n,:}]"
"""Characters after a quote that closes a string. A quote that opens a key is followed by another one."""


class CallBoundary:
    """Markers of a grammar that show where a call ends and the next one begins."""

    def __init__(
        self,
        closers: Iterable[str],
        openers: Iterable[str],
        others: Iterable[str],
        dialect_markers: Iterable[str],
        *,
        needs_closer: bool,
        only_names: bool = False,
    ) -> None:
        """Compile the markers.

        Args:
            closers: the markers that end a call or a section of calls.
            openers: the markers after which a header or arguments come.
            others: the other markers of a header.
            dialect_markers: the dialect's markers outside of calls. Of them, only special tokens can come between two
                calls, such as the end of a turn.
            needs_closer: whether every call has a closer. If not, an opener alone may show that a call has ended.
            only_names: whether a header is a name directly after the opener. Other text shows that it is not a call,
                such as a Python prompt after `>>>`.
        """
        self.closers = frozenset(closers)
        self.openers = frozenset(openers)
        special_tokens = (marker for marker in dialect_markers if marker.startswith(SPECIAL_TOKEN_PREFIXES))
        self.markers = compile_markers(*self.closers, *self.openers, *others, *special_tokens)
        self.starts = compile_markers(*self.closers, *(() if needs_closer else self.openers))
        self.header = _HEADER_NAME if only_names else _HEADER_TEXT
        self._common_prefix = common_prefix(self.starts.literals)
        self.first_char = self._common_prefix[:1]
        """The first character of all markers that may end a call; "" if they have several."""

    def find_start(self, text: str, pos: int, end: int) -> int | None:
        """Return the position of the first marker between `pos` and `end` that may end a call, or None."""
        prefix = self._common_prefix
        if len(prefix) > 1:
            # One character is found ten times as fast as two, and the second one is rare: `|` in `<|tool_call_end|>`.
            second_pos = text.find(prefix[1], pos + 1, end)
            if second_pos < 0:
                return None
            pos = second_pos - 1
        # `str.find` is many times faster than a pattern, unless the text has many places that begin like a marker.
        if prefix:
            for _ in range(MAX_FALSE_STARTS):
                pos = text.find(prefix, pos, end)
                if pos < 0:
                    return None
                match = self.starts.match(text, pos)
                if match is not None:
                    return pos if match.end() <= end else None
                pos += 1
        match = self.starts.search(text, pos, end)
        return match.start() if match is not None else None

    def find_partial(self, piece: str) -> int:
        """Return the start of a marker that may end a call and is cut at the end of the piece; the length of the piece
        if there is none; -1 if there is a whole marker in it."""
        if not self.starts.may_begin(piece):
            return len(piece)
        return self.starts.partial_start(piece, 0) if self.starts.search(piece, 0) is None else -1

    def may_occur(self, text: str) -> bool:
        """Return whether a marker that may end a call begins in this text. Only for short text, because nothing is
        remembered."""
        return self.first_char in text and self.find_partial(text) < len(text)


class BoundaryStarts:
    """Positions of the markers that may end a call, in the text of one reply.

    All calls of the reply share them. The next marker may come long after a call, or never; without this memory, each
    call would search the same text for it again.
    """

    __slots__ = ("_found", "_searched_from", "_searched_to", "boundary")

    def __init__(self, boundary: CallBoundary) -> None:
        self.boundary = boundary
        self._searched_from = self._searched_to = 0  # no marker begins between these offsets
        self._found = False  # True if one begins at `_searched_to`

    def find(self, text: str, pos: int, offset: int, closed: bool) -> int | None:
        """Return the position of the next marker, or of the beginning of one at the end of the text; None if there is
        none. The arguments are those of `BoundarySearch.find_stop`."""
        boundary, begin = self.boundary, offset + pos
        if begin < self._searched_from:  # text that was un-read
            end = self._searched_from - offset
            start = boundary.find_start(text, pos, end + boundary.starts.max_length - 1)
            if start is not None and start < end:
                return start
            self._searched_from = begin
        elif begin > self._searched_to:
            self._searched_from = self._searched_to = begin
            self._found = False
        if self._found:
            return self._searched_to - offset
        pos = self._searched_to - offset
        if pos == len(text):
            return None  # no text was added since the last search
        start = boundary.find_start(text, pos, len(text))
        self._found = start is not None
        partial = len(text) if closed else boundary.starts.partial_start(text, pos)
        if partial < (len(text) if start is None else start):
            start, self._found = partial, False  # the marker that was found may be a part of this one
        self._searched_to = offset + (len(text) if start is None else start)
        return start


class _Place(Enum):
    """The place in the structure that the lookahead has reached."""

    CLOSED = "after a closer"
    HEADER = "after an opener"
    EMPTY_OBJECT = "after empty arguments"


class BoundarySearch:
    """Search for the end of one call in its open string. Offsets are those of the reply's text; none is read twice."""

    __slots__ = ("_boundary", "_clear_to", "_length", "_place", "_start", "_starts")

    def __init__(self, starts: BoundaryStarts) -> None:
        self._starts = starts
        self._boundary = starts.boundary
        self._clear_to = 0  # up to this offset, no marker ends the call
        self._start: int | None = None  # offset of the marker that may end the call, or of the beginning of one
        self._place = _Place.CLOSED
        self._length = 0  # length of the lookahead so far

    def find_stop(self, text: str, pos: int, offset: int, closed: bool) -> int:
        """Find the next marker that may end the call, and return its position.

        Args:
            text: the buffered text.
            pos: the position in it from which the marker is searched.
            offset: the offset of the buffered text.
            closed: whether the text has ended.

        Returns:
            The position of the marker, or of the beginning of one at the end of the text; or the end of the text.
        """
        if self._start is not None and self._start >= offset + pos:
            return self._start - offset
        self._start = None
        start = self._starts.find(text, max(pos, self._clear_to - offset), offset, closed)
        self._start = None if start is None else offset + start
        self._clear_to = offset + (len(text) if start is None else start)
        return self._clear_to - offset

    def is_end(self, text: str, pos: int, offset: int, closed: bool) -> bool | None:
        """Return whether the call ends at `pos`, which is in a string; None if that depends on text to come.

        The arguments are those of `find_stop`.
        """
        if self.find_stop(text, pos, offset, closed) != pos or self._start is None:
            return False
        at = pos + self._length
        verdict = None if self._length else self._check_start(text, pos, closed)
        while verdict is None:
            if at == len(text):
                if not closed:
                    break
                verdict = self._place is _Place.CLOSED
                continue
            verdict, stop = self._step(text, at, closed)
            if verdict is None and stop == at:
                break
            if stop - pos > MAX_LOOKAHEAD_CHARS:
                verdict = False
            else:
                at = stop
        if verdict is False:
            # Any other marker in this text is followed by the same text, and does not end the call either.
            self._clear_to = self._start + max(1, at - pos)
            self._start, self._place, at = None, _Place.CLOSED, pos
        self._length = at - pos
        return verdict

    def _check_start(self, text: str, pos: int, closed: bool) -> bool | None:
        """Return False if what looked like the beginning of a marker at the end of the text is none."""
        starts = self._boundary.starts
        return None if starts.match(text, pos) or (not closed and starts.is_partial(text, pos)) else False

    def _step(self, text: str, at: int, closed: bool) -> tuple[bool | None, int]:
        """Look at the next part of the structure.

        Returns:
            The verdict, or None if there is none yet; and the position after the part, or `at` if more text is needed.
        """
        boundary = self._boundary
        match = boundary.markers.match(text, at)
        if match is not None and (closed or not boundary.markers.can_extend(match)):
            if match.group() in boundary.openers:
                self._place = _Place.HEADER
            elif match.group() in boundary.closers:
                self._place = _Place.CLOSED
            return None, match.end()
        if not closed and boundary.markers.is_partial(text, at):
            return None, at
        if space := _WHITESPACE.match(text, at):
            return None, space.end()
        if self._place is not _Place.HEADER:
            return False, at
        if text[at] in "{[":
            return self._look_at_object(text, at, closed)
        header = boundary.header.match(text, at)
        return (None, self._header_end(text, at, header.end(), closed)) if header else (False, at)

    def _header_end(self, text: str, at: int, end: int, closed: bool) -> int:
        """Return where the text of a header ends: at `end`, or at a marker before it, or at the beginning of one."""
        markers = self._boundary.markers
        marker = markers.search(text, at, end + markers.max_length)
        if marker is not None and marker.start() < end:
            end = marker.start()
        # A marker that was found may be a part of one that is cut off at the end of the text.
        return end if closed else min(end, markers.partial_start(text, at))

    def _look_at_object(self, text: str, at: int, closed: bool) -> tuple[bool | None, int]:
        match = _OBJECT_START.match(text, at)
        if match is None:
            return (None, at) if not closed and _OBJECT_START_PREFIX.match(text, at) else (False, at)
        following = text[match.end() : match.end() + 2]
        if following.startswith("}"):
            self._place = _Place.EMPTY_OBJECT
            return None, match.end() + 1
        if following in ("", '"') and not closed:
            return None, at
        return len(following) == 2 and following[0] == '"' and following[1] not in _AFTER_CLOSING_QUOTE, at


class BoundaryMemory:
    """Facts about the boundaries in the text of one reply. All its calls share it."""

    __slots__ = ("_copied_from", "_copied_text", "_copied_to", "_copy", "_starts")

    def __init__(self) -> None:
        self._starts: dict[CallBoundary, BoundaryStarts] = {}
        self._copied_text = self._copy = ""  # the text of which `copy_before` has copied a part, and this part
        self._copied_from = self._copied_to = 0

    def start_search(self, boundary: CallBoundary) -> BoundarySearch:
        """Return a search for the end of the next call."""
        starts = self._starts.get(boundary)
        if starts is None:
            starts = self._starts[boundary] = BoundaryStarts(boundary)
        return BoundarySearch(starts)

    def copy_before(self, text: str, pos: int, stop: int) -> tuple[int, str]:
        """Return a part of the text that ends at `stop`, and its position, which is `pos` or before it.

        All values before the same marker share one copy, which is as long as necessary: a value that is cut is scanned
        twice.
        """
        if text is not self._copied_text or stop != self._copied_to or pos < self._copied_from:
            self._copied_text, self._copied_from, self._copied_to = text, pos, stop
            self._copy = text[pos:stop]
        return self._copied_from, self._copy
