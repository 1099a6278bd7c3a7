"""Streaming of one call's arguments: a JSON object is forwarded as it arrives, anything else is buffered and repaired.

A wire feeds its text to `feed`. A shape has to look for markers at the same time, so it drives the `scanner` itself and
passes what was scanned to `correct`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from interlingua.common.jsontext.codec import read_json, read_shallow_object
from interlingua.common.jsontext.corrector import JsonCorrector, correct_json
from interlingua.common.jsontext.scanner import JsonScanner

__all__ = ["STREAMED_OPENERS", "ArgumentsStream"]


STREAMED_OPENERS = ("{", "[")
"""First characters of arguments that are forwarded as they arrive."""


EMPTY_ARGUMENTS = ("", "null", '""')
"""Texts that mean "no arguments"."""


class ArgumentsStream:
    """Consumes arguments as the model writes them and returns the text that can be forwarded.

    An object or array is forwarded piece by piece. Anything else (`null`, a string that contains an object, prose) is
    buffered until it ends, because only then its kind is known. Errors in the JSON are corrected if that cannot change
    the meaning. `notes` lists the irregularities as (kind, message), after `end` or `flush`.
    """

    def __init__(self, max_buffered: int, max_whitespace: int = sys.maxsize, *, repairs: bool = True) -> None:
        """Create a stream for one call.

        Args:
            max_buffered: maximum number of characters of arguments that are not streamed.
            max_whitespace: maximum number of whitespace characters between two tokens. Over it, the arguments are
                `runaway`: some models never stop writing whitespace.
            repairs: whether the arguments are repaired, that is, whether errors in the JSON are corrected.
        """
        self.scanner = JsonScanner(max_whitespace, corrects=repairs)
        self.notes: list[tuple[str, str]] = []
        self._corrector = JsonCorrector(self.scanner)
        self.correct = self._corrector.correct
        """Returns the text that can be forwarded, after the scanner has scanned this text."""
        self._repairs = repairs
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
        if pos < len(text) and not scanner.ended:
            pos = scanner.scan_all(text, pos)
        if scanner.whitespace_overflow is not None:
            return self.cut_runaway(text[:pos]), ""
        if scanner.is_settled:
            return (text, "") if pos == len(text) else (text[:pos], text[pos:])
        return self.correct(text[:pos]), text[pos:]

    @property
    def buffered_pieces(self) -> Sequence[str]:
        """The arguments that are buffered until their end is known, or until the next character."""
        return self._buffered or self._corrector.held_pieces

    @property
    def runaway(self) -> bool:
        """True if more whitespace came between two tokens than is allowed."""
        return self.scanner.whitespace_overflow is not None

    def cut_runaway(self, scanned: str) -> str:
        """Return the part before the overflow of the text that was scanned last, and the text that was held back."""
        overflow = self.scanner.whitespace_overflow
        assert overflow is not None, "only runaway arguments are cut"
        return self._corrector.release() + scanned[: max(0, len(scanned) - (self.scanner.offset - overflow))]

    def buffer(self, text: str) -> str:
        """Buffer arguments that are not streamed. Return the text that exceeds the buffer limit."""
        if text.strip() or self._buffered:
            self._buffered.append(text)
            self._buffered_chars += len(text)
        if not self._over_limit and self._buffered_chars <= self._max_buffered:
            return ""
        self._over_limit = True
        return self._take_buffered()

    def close_brackets(self) -> str:
        """Return the remaining text with the brackets that are missing at its end; "" if something else is missing.

        Only for arguments that the model has ended with the closer of the call.
        """
        return self._corrector.close_brackets() if self.scanner.first_char in STREAMED_OPENERS else ""

    def end(self) -> str:
        """End the arguments after the model closed the call. Return the remaining text, so that the arguments are a
        JSON object if possible."""
        if self.scanner.first_char in STREAMED_OPENERS:
            self.scanner.finish()
            remainder = "" if self.scanner.is_settled else self.correct("")
            if self._corrector.notes:
                self._note_repairs(self._corrector.notes)
            self._check_streamed()
            return remainder
        text = self._take_buffered().strip()
        if self._repairs and text not in EMPTY_ARGUMENTS and not self._over_limit:
            text, notes = correct_json(text)
            self._note_repairs(notes)
        if text in EMPTY_ARGUMENTS and not self._over_limit:
            return "{}"
        inner = self._unwrap_string(text)
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
        if not text.startswith('"'):
            return False
        return read_json(correct_json(text)[0] if self._repairs else text, str) is None

    @property
    def empty(self) -> bool:
        """True if there are no arguments so far, and no sign that more will follow."""
        return not self.scanner.first_char and not self._over_limit and "".join(self._buffered).strip() in ("", "null")

    def flush(self) -> str:
        """Return the buffered text unchanged, because the reply ended inside the call."""
        self._note_repairs(self._corrector.notes)
        return self._corrector.release() or self._take_buffered().strip()

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

    def _unwrap_string(self, text: str) -> str | None:
        """Return the object that the text of a JSON string contains; None if it contains none."""
        inner = read_json(text, str)
        if inner is None:
            return None
        if read_shallow_object(inner) is not None:
            return inner.strip()
        corrected, notes = correct_json(inner) if self._repairs else (inner, [])
        if read_shallow_object(corrected) is None:
            return None
        self._note_repairs(notes)
        return corrected.strip()

    def _note_repairs(self, notes: Iterable[str]) -> None:
        self.notes += [("repaired-arguments", note) for note in notes]
