"""Copying of a JSON value out of a text buffer, piece by piece.

A marker inside a JSON string is data; outside of strings it cuts the value short. A `CallBoundary` finds the end of a
call in a string that is never closed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from interlingua.common.jsontext.scanner import JsonScanner
from interlingua.core.text_forwarder import TextForwarder
from interlingua.parsing.call_boundary import BoundarySearch, CallBoundary
from interlingua.parsing.markers import MarkerSet
from interlingua.parsing.text_buffer import Read, TextBuffer

__all__ = ["copy_json", "take_json_string"]

MARKER_SEARCH_WINDOW_CHARS = 4096
"""Number of characters of JSON in which markers are searched at a time."""
JSON_WINDOW_CHARS = 16 * 1024
"""Maximum number of characters that are copied out of the buffer for a JSON scanner at a time."""
MAX_CHECKED_CHARS = 256
"""Maximum length of a buffered text that is checked for markers of a boundary before they are searched."""

_SIMPLE_JSON_STRING = re.compile(r'[ \t\n\r]{0,64}+"[ !#-\[\]-\U0010ffff]{0,128}+"')


def copy_json(
    source: TextBuffer,
    scanner: JsonScanner,
    markers: MarkerSet,
    write: Callable[[str], None],
    limit: int,
    boundary: CallBoundary | None = None,
    *,
    may_forward: bool = False,
) -> Read[str | None]:
    """Copy one JSON value.

    Args:
        source: The buffer to read from.
        scanner: Tracks the JSON syntax. Its `ended` tells whether the value is complete.
        markers: The markers that cut the value short outside JSON strings.
        write: Receives each piece of JSON.
        limit: Maximum number of characters of the value.
        boundary: The markers that also cut the value short inside a string that is never closed.
        may_forward: Whether the fast path may forward pieces inside a string, which `write` does not receive then.

    Returns:
        The marker that cut the value short (consumed); "" if the limit did; None if the value or the text ended.
    """
    return _JsonCopy(source, scanner, markers, write, limit, boundary, may_forward).copy()


def take_json_string(source: TextBuffer, markers: MarkerSet, limit: int, boundary: CallBoundary | None) -> str:
    """Consume and return a short JSON string, with the whitespace before it, that is complete in the buffer.

    Returns:
        The string, as `copy_json` would copy it; "", consuming nothing, if there is none, or if it has an escape, a
        control character or one of the markers of `copy_json`.
    """
    match = _SIMPLE_JSON_STRING.match(source.text, source.pos, source.pos + limit)
    if match is None or markers.starts_like_json:
        return ""
    string = match.group()
    if boundary is not None and boundary.may_occur(string):
        return ""
    source.pos = match.end()
    return string


class _ScanWindow(NamedTuple):
    """Part of the buffer that a JSON scanner reads without a search for markers.

    `start` and `stop` are positions in the buffer. `marker_free`: the window contains no marker.
    """

    text: str
    start: int
    stop: int
    marker_free: bool


_EMPTY_WINDOW = _ScanWindow("", 0, -1, True)


class _JsonCopy:
    """One call of `copy_json`, whose arguments these are."""

    __slots__ = (
        "_boundary",
        "_fast_copy",
        "_limit",
        "_markers",
        "_may_forward",
        "_scanner",
        "_search",
        "_skip_json",
        "_source",
        "_write",
        "_written_to",
    )

    def __init__(
        self,
        source: TextBuffer,
        scanner: JsonScanner,
        markers: MarkerSet,
        write: Callable[[str], None],
        limit: int,
        boundary: CallBoundary | None,
        may_forward: bool,
    ) -> None:
        self._source = source
        self._scanner = scanner
        self._markers = markers
        self._write = write
        self._limit = limit
        self._boundary = boundary
        self._may_forward = may_forward
        self._written_to = source.pos  # position up to which the JSON was written
        self._search: BoundarySearch | None = None
        self._fast_copy: Callable[[str], bool] | None = None
        self._skip_json: TextForwarder | None = None

    def copy(self) -> Read[str | None]:
        source, scanner = self._source, self._scanner
        window = _EMPTY_WINDOW
        while True:
            search = self._search or self._start_search()
            in_string = scanner.in_string
            if search and in_string and (marker := (yield from self._read_boundary(search))):
                return marker
            text, pos = source.text, source.pos
            limit_pos = pos + max(0, self._limit - scanner.offset)
            if pos >= window.stop:
                window = self._next_window(in_string, limit_pos)
            end = window.start + scanner.scan(window.text, pos - window.start)
            source.pos = end
            if search and end == window.stop < min(limit_pos, len(text)) and scanner.in_string:
                window = _EMPTY_WINDOW
                continue
            self._write_read(window)
            if scanner.ended:
                return None
            if end == window.stop < min(limit_pos, len(text)) and (window.marker_free or scanner.in_string):
                continue
            if end < len(text):
                if end == limit_pos:
                    return ""
                match, undecided = source.match_marker(self._markers, end)
                if match:
                    return source.read_marker(match)
                if not undecided:
                    source.pos = scanner.skip_char(text, end)
                    self._write_read()
                    continue
            if source.closed or not (yield from self._wait()):
                return None
            window = _EMPTY_WINDOW

    def _start_search(self) -> BoundarySearch | None:
        """Start to search the boundary, unless it cannot be in the unread text."""
        source, boundary = self._source, self._boundary
        if boundary is None:
            return None
        if len(source.text) - source.pos <= MAX_CHECKED_CHARS and not boundary.may_occur(source.text[source.pos :]):
            return None
        self._search = source.boundary_memory.start_search(boundary)
        return self._search

    def _read_boundary(self, search: BoundarySearch) -> Read[str | None]:
        """Consume and return the marker at the read position, if it shows that a string was never closed.

        The JSON before it is written. If it shows nothing, it is data, and the piece is written as a whole.
        """
        source = self._source
        while (is_end := search.is_end(source.text, source.pos, source.text_offset, source.closed)) is not False:
            self._write_read()
            match = self._markers.match(source.text, source.pos) if is_end else None
            if match is not None:
                return source.read_marker(match)
            yield
            self._written_to = source.pos
        return None

    def _next_window(self, in_string: bool, limit_pos: int) -> _ScanWindow:
        """Return the part of the buffer that can be scanned as JSON before the next check for a marker.

        It ends at the next marker, or at the end of the current string; with a search for the boundary, also at a
        marker in a string. Markers are searched only a limited distance ahead, because the value may end long before
        the text, and not at every unexpected character.
        """
        source, markers = self._source, self._markers
        text, pos = source.text, source.pos
        window_end = pos + MARKER_SEARCH_WINDOW_CHARS
        stop, marker_free = len(text), True
        if (
            markers.starts_like_json
            and window_end + markers.max_length < len(text)
            and not markers.search(text, pos, window_end)
        ):
            stop = window_end - markers.max_length
        elif markers.starts_like_json:
            stop, marker_free = source.search_marker(markers)[1], False
        if stop == pos and in_string:
            stop, marker_free = text.find('"', pos) + 1 or len(text), True
        if self._search is not None:
            boundary_pos = self._search.find_stop(text, pos, source.text_offset, source.closed)
            if pos < boundary_pos < stop:
                if boundary_pos < limit_pos:
                    start, window_text = source.boundary_memory.copy_before(text, pos, boundary_pos)
                    return _ScanWindow(window_text, start, boundary_pos, True)
                stop, marker_free = boundary_pos, True
        if min(limit_pos, stop) >= len(text):
            return _ScanWindow(text, 0, stop, marker_free)
        if stop - pos > JSON_WINDOW_CHARS:
            stop, marker_free = pos + JSON_WINDOW_CHARS, True
        return _ScanWindow(text[pos : min(limit_pos, stop)], pos, stop, marker_free)

    def _write_read(self, window: _ScanWindow = _EMPTY_WINDOW) -> None:
        """Write the JSON that was read and not written. The text of the window is not copied again."""
        start, end = self._written_to, self._source.pos
        if end > start:
            is_window = start == window.start and end - start == len(window.text)
            self._write(window.text if is_window else self._source.text[start:end])
            self._written_to = end

    def _wait(self) -> Read[bool]:
        """Wait for a piece that the fast path does not consume. Return False if the value has ended."""
        if self._fast_copy is None:
            arguments = self._scanner, self._markers, self._limit, self._boundary
            self._fast_copy = _make_fast_copy(self._source, self._write, *arguments)
            self._skip_json = _make_json_skipper(*arguments) if self._may_forward else None
        yield from self._source.wait_for_piece(self._fast_copy, skip_json=self._skip_json)
        self._written_to = self._source.pos
        return not self._scanner.ended


def _make_fast_copy(
    source: TextBuffer,
    write: Callable[[str], None],
    scanner: JsonScanner,
    markers: MarkerSet,
    limit: int,
    boundary: CallBoundary | None,
) -> Callable[[str], bool]:
    """Return a function that copies a piece and returns whether it consumed all of it.

    It leaves pieces to the slow path in which a marker can begin that begins like JSON, unless all of the piece is
    inside a string, and pieces with a marker of the boundary.
    """
    scan = scanner.scan
    searches_markers = markers.starts_like_json
    boundary_char = boundary.first_char if boundary is not None else ""

    def copy_before(piece: str, stop: int) -> bool:
        """Copy the piece up to `stop`, where a marker of the boundary may begin. In a string it waits there."""
        source.pos = scan(piece[:stop], 0) if stop else 0
        if source.pos:
            write(piece[: source.pos])
        source.fast_copy_waits = source.pos == stop and scanner.in_string
        return source.fast_copy_waits

    def copy_piece(piece: str) -> bool:
        if scanner.offset + len(piece) > limit:
            return False
        if searches_markers and markers.may_occur(piece, 0) and not (scanner.in_string and '"' not in piece):
            return False
        if boundary is not None and boundary_char in piece:
            stop = boundary.find_partial(piece)
            if stop < len(piece):
                return stop >= 0 and copy_before(piece, stop)
        source.pos = end = scan(piece, 0)
        write(piece[:end])
        return end == len(piece) and not scanner.ended

    return copy_piece


def _make_json_skipper(
    scanner: JsonScanner, markers: MarkerSet, limit: int, boundary: CallBoundary | None
) -> TextForwarder:
    """Return a function that skips pieces inside a JSON string that `copy_json` would copy. Its arguments are those of
    `copy_json`."""
    searches_markers = markers.starts_like_json
    boundary_char = boundary.first_char if boundary is not None else ""
    skip_string_text = scanner.skip_string_text

    def skip_piece(piece: str) -> bool:
        if scanner.offset + len(piece) > limit or (searches_markers and '"' in piece):
            return False
        if boundary is not None and boundary_char in piece and boundary.find_partial(piece) < len(piece):
            return False
        return skip_string_text(piece)

    def skip_pieces(pieces: list[str], joined: str) -> int:
        # Only in a single piece it can be seen whether its end may begin a marker of the boundary.
        is_free = len(pieces) == 1 or boundary is None or boundary_char not in joined
        if is_free and skip_piece(joined):
            return len(pieces)
        count = 0
        while count < len(pieces) - is_free and skip_piece(pieces[count]):
            count += 1
        return count

    return skip_pieces
