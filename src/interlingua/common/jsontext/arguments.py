"""Streaming of one call's arguments: a JSON object is forwarded as it arrives, anything else is buffered and repaired.

A wire feeds its text to `feed`. A shape has to look for markers at the same time, so it drives the `scanner` itself.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from interlingua.common.jsontext.codec import read_json, read_shallow_object
from interlingua.common.jsontext.scanner import JsonScanner

__all__ = ["STREAMED_OPENERS", "ArgumentsStream"]


STREAMED_OPENERS = ("{", "[")
"""First characters of arguments that are forwarded as they arrive."""


EMPTY_ARGUMENTS = ("", "null", '""')
"""Texts that mean "no arguments"."""


class ArgumentsStream:
    """Consumes arguments as the model writes them and returns the text that can be forwarded.

    An object or array is forwarded piece by piece. Anything else (`null`, a string that contains an object, prose) is
    buffered until it ends, because only then its kind is known. `notes` lists the irregularities as (kind, message).
    """

    def __init__(self, max_buffered: int, max_whitespace: int = sys.maxsize) -> None:
        """Create a stream for one call.

        Args:
            max_buffered: maximum number of characters of arguments that are not streamed.
            max_whitespace: maximum number of whitespace characters between two tokens. Over it, the arguments are
                `runaway`: some models never stop writing whitespace.
        """
        self.scanner = JsonScanner(max_whitespace)
        self.notes: list[tuple[str, str]] = []
        self._max_buffered = max_buffered
        self._buffered: list[str] = []
        self._buffered_chars = 0
        self._over_limit = False

    def feed(self, text: str) -> tuple[str, str]:
        """Consume text that contains only arguments.

        Returns:
            The text to forward, and the text after the end of the object.
        """
        scanner = self.scanner
        if not scanner.first_char:
            if self._buffered or self._over_limit or text.lstrip()[:1] not in STREAMED_OPENERS:
                return self.buffer(text), ""
            text = text.lstrip()
        pos = scanner.scan(text, 0)
        while pos < len(text) and not scanner.ended:
            pos = scanner.scan(text, scanner.skip_char(text, pos))
        if scanner.whitespace_overflow is not None:
            return self.cut_runaway(text[:pos]), ""
        return (text, "") if pos == len(text) else (text[:pos], text[pos:])

    @property
    def buffered_pieces(self) -> Sequence[str]:
        """The arguments that are buffered until their end is known."""
        return self._buffered

    @property
    def runaway(self) -> bool:
        """True if more whitespace came between two tokens than is allowed."""
        return self.scanner.whitespace_overflow is not None

    def cut_runaway(self, scanned: str) -> str:
        """Return the part before the overflow of the text that was scanned last."""
        overflow = self.scanner.whitespace_overflow
        assert overflow is not None, "only runaway arguments are cut"
        return scanned[: max(0, len(scanned) - (self.scanner.offset - overflow))]

    def buffer(self, text: str) -> str:
        """Buffer arguments that are not streamed. Return the text that exceeds the buffer limit."""
        if text.strip() or self._buffered:
            self._buffered.append(text)
            self._buffered_chars += len(text)
        if not self._over_limit and self._buffered_chars <= self._max_buffered:
            return ""
        self._over_limit = True
        return self._take_buffered()

    def end(self) -> str:
        """End the arguments after the model closed the call. Return the remaining text, so that the arguments are a
        JSON object if possible."""
        if self.scanner.first_char in STREAMED_OPENERS:
            self.scanner.finish()
            self._check_streamed()
            return ""
        text = self._take_buffered().strip()
        if text in EMPTY_ARGUMENTS and not self._over_limit:
            return "{}"
        inner = _unwrap_string(text)
        if inner is not None:
            self.notes.append(("unwrapped-arguments", "the arguments were an object inside a string: unwrapped"))
            return inner
        self.notes.append(("bad-arguments", "the arguments are not a JSON object: forwarded unchanged"))
        return text

    @property
    def unfinished(self) -> bool:
        """True if the arguments are the beginning of a JSON value that has not ended."""
        if self.scanner.first_char in STREAMED_OPENERS:
            return not self.scanner.ended
        text = "".join(self._buffered).strip()
        if text and text != "null" and "null".startswith(text):
            return True
        return text.startswith('"') and read_json(text, str) is None

    @property
    def empty(self) -> bool:
        """True if there are no arguments so far, and no sign that more will follow."""
        return not self.scanner.first_char and not self._over_limit and "".join(self._buffered).strip() in ("", "null")

    def flush(self) -> str:
        """Return the buffered text unchanged, because the reply ended inside the call."""
        return self._take_buffered().strip()

    def _take_buffered(self) -> str:
        text = "".join(self._buffered)
        self._buffered.clear()
        return text

    def _check_streamed(self) -> None:
        if self.scanner.problem is not None:
            message = f"the arguments are not JSON: {self.scanner.problem}; forwarded unchanged"
            self.notes.append(("bad-arguments", message))
        elif self.scanner.first_char != "{":
            self.notes.append(("bad-arguments", "the arguments are not a JSON object: forwarded unchanged"))


def _unwrap_string(text: str) -> str | None:
    inner = read_json(text, str)
    return inner.strip() if inner is not None and read_shallow_object(inner) is not None else None
