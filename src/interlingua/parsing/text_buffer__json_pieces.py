"""How JSON is copied on as it comes, and what cuts it short.

Inside a JSON string everything is data. Outside, a character that JSON has no use for may begin a marker, and so may a
bracket if there are markers like that: one has to look ahead for them, but not far, and never twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from interlingua.common.jsontext.scanner import JsonCursor
from interlingua.parsing.markers import Markers
from interlingua.parsing.text_buffer__pieces import Pieces, Reading

__all__ = ["JsonPieces"]

WINDOW = 4096
"""How far ahead of JSON markers are looked for at a time."""


class _View(NamedTuple):
    """Text that JSON is walked over without a look for markers, where in the source it starts and stops, and whether
    no marker that counts stands there."""

    text: str
    start: int
    stop: int
    quiet: bool


_NOTHING = _View("", 0, -1, True)


class JsonPieces(Pieces):
    """Pieces that may hold a JSON value."""

    def copy_json(
        self, cursor: JsonCursor, marks: Markers, write: Callable[[str], None], limit: int
    ) -> Reading[str | None]:
        """Copies one JSON value. Returns the marker that cut it short, "" if the limit did, None if nothing did: then
        the value or the text has ended, and the cursor knows which."""

        def go_on(piece: str) -> bool:
            if cursor.offset + len(piece) > limit or _may_hold_marker(piece, marks, cursor):
                return False
            self._pos = cursor.walk(piece, 0)
            write(piece[: self._pos])
            return self._pos == len(piece) and not cursor.ended

        view = _NOTHING
        while True:
            text, pos = self._text, self._pos
            last = pos + max(0, limit - cursor.offset)
            view = self._view(view, cursor.in_string, marks, last)
            end = view.start + cursor.walk(view.text, pos - view.start)
            if end > pos:
                write(text[pos:end])
                self._pos = end
            if cursor.ended:
                return None
            if end == view.stop < min(last, len(text)) and (view.quiet or cursor.in_string):
                continue
            if end < len(text):
                if end == last:
                    return ""
                found, undecided = self._match(marks, end)
                if found:
                    self._pos = found.end()
                    return found.group()
                if not undecided:
                    self._pos = cursor.skip(text, end)
                    write(text[end])
                    continue
            if self._closed:
                return None
            yield from self._wait(go_on)
            view = _NOTHING

    def _view(self, view: _View, in_string: bool, marks: Markers, last: int) -> _View:
        """How far JSON may be walked before one has to look: to the next marker, or to the end of this string. Markers
        are not looked for much further ahead, as the value may end long before the text, nor at every odd character."""
        text, pos = self._text, self._pos
        if pos < view.stop:
            return view
        window = pos + WINDOW
        stop, quiet = len(text), True
        if marks.like_json and window + marks.longest < len(text) and not marks.search(text, pos, window):
            stop = window - marks.longest
        elif marks.like_json:
            stop, quiet = self._search(marks)[1], False
        if stop == pos and in_string:
            stop, quiet = text.find('"', pos) + 1 or len(text), True
        if min(last, stop) >= len(text):
            return _View(text, 0, stop, quiet)
        return _View(text[pos : min(last, stop)], pos, stop, quiet)


def _may_hold_marker(piece: str, marks: Markers, cursor: JsonCursor) -> bool:
    """Whether one has to look for markers that begin as JSON does, because the piece is not all inside a string."""
    return marks.like_json and marks.possible(piece, 0) and not (cursor.in_string and '"' not in piece)
