"""One call's arguments on their way through: a JSON object passes as it comes, anything else is held and mended.

A wire feeds its text to `feed`. A shape, which has to look for markers at the same time, drives the `cursor` itself.
"""

from __future__ import annotations

from interlingua.common.jsontext.codec import read_json, read_shallow_object
from interlingua.common.jsontext.scanner import JsonScanner

__all__ = ["STREAMED_OPENERS", "ArgumentsStream"]


STREAMED_OPENERS = ("{", "[")
"""What arguments begin with that go on as they come."""


EMPTY_ARGUMENTS = ("", "null", '""')
"""What arguments are that are none."""


class ArgumentsStream:
    """Takes the arguments as the model writes them and gives back what may go on.

    An object or array goes on piece by piece. Anything else (`null`, a string that holds an object, prose) is held
    until it ends, because only then is known what to make of it. `notes` says what was odd, as (kind, message).
    """

    def __init__(self, max_buffered: int) -> None:
        self.scanner = JsonScanner()
        self.notes: list[tuple[str, str]] = []
        self._max_buffered = max_buffered
        self._buffered: list[str] = []
        self._buffered_chars = 0
        self._over_limit = False

    def feed(self, text: str) -> tuple[str, str]:
        """Text that holds nothing but arguments. Returns what may go on, and what came after the end of an object."""
        scanner = self.scanner
        if not scanner.first_char:
            if self._buffered or self._over_limit or text.lstrip()[:1] not in STREAMED_OPENERS:
                return self.buffer(text), ""
            text = text.lstrip()
        pos = scanner.scan(text, 0)
        if pos == len(text):
            return text, ""
        while pos < len(text) and not scanner.ended:
            pos = scanner.scan(text, scanner.skip_char(text, pos))
        return text[:pos], text[pos:]

    def buffer(self, text: str) -> str:
        """Arguments that are not streamed. Returns what can be held no longer."""
        if text.strip() or self._buffered:
            self._buffered.append(text)
            self._buffered_chars += len(text)
        if not self._over_limit and self._buffered_chars <= self._max_buffered:
            return ""
        self._over_limit = True
        return self._take_buffered()

    def end(self) -> str:
        """The model has closed the call: what is still to go on, so that the arguments are an object if they can be."""
        if self.scanner.first_char in STREAMED_OPENERS:
            self.scanner.finish()
            self._check_streamed()
            return ""
        text = self._take_buffered().strip()
        if text in EMPTY_ARGUMENTS and not self._over_limit:
            return "{}"
        inner = _unwrap_string(text)
        if inner is not None:
            self.notes.append(("unwrapped-arguments", "the arguments were an object inside a string: taken out of it"))
            return inner
        self.notes.append(("bad-arguments", "the arguments are not a JSON object: passed on as they are"))
        return text

    @property
    def unfinished(self) -> bool:
        """Whether the arguments have begun as JSON and not ended."""
        if self.scanner.first_char in STREAMED_OPENERS:
            return not self.scanner.ended
        text = "".join(self._buffered).strip()
        if text and text != "null" and "null".startswith(text):
            return True
        return text.startswith('"') and read_json(text, str) is None

    @property
    def empty(self) -> bool:
        """Whether there are none. If more was to come, they do not show it."""
        return not self.scanner.first_char and not self._over_limit and "".join(self._buffered).strip() in ("", "null")

    def flush(self) -> str:
        """The reply ended inside the call: what is still held, as it is."""
        return self._take_buffered().strip()

    def _take_buffered(self) -> str:
        text = "".join(self._buffered)
        self._buffered.clear()
        return text

    def _check_streamed(self) -> None:
        if self.scanner.problem is not None:
            message = f"the arguments are not JSON: {self.scanner.problem}; passed on as they are"
            self.notes.append(("bad-arguments", message))
        elif self.scanner.first_char != "{":
            self.notes.append(("bad-arguments", "the arguments are not a JSON object: passed on as they are"))


def _unwrap_string(text: str) -> str | None:
    inner = read_json(text, str)
    return inner.strip() if inner is not None and read_shallow_object(inner) is not None else None
