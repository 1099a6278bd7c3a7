"""How JSON is copied on as it comes, and what cuts it short.

Inside a JSON string everything is data. Outside, a character that JSON has no use for may begin a marker, and so may a
bracket if there are markers like that: one has to look ahead for them, but not far, and never twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from interlingua.common.jsontext.scanner import JsonScanner
from interlingua.parsing.markers import MarkerSet
from interlingua.parsing.text_buffer__pieces import Read, TextBufferBase

__all__ = ["JsonTextBuffer"]

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


class JsonTextBuffer(TextBufferBase):
    """Pieces that may hold a JSON value."""

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
