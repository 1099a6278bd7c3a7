"""Writer that builds the JSON arguments of a call member by member, for models that do not write JSON."""

from __future__ import annotations

from json.encoder import encode_basestring as quoted

from interlingua.common.jsontext.scanner import JsonScanner
from interlingua.parsing.event_sink import CallBuilder

__all__ = ["ObjectWriter"]


class ObjectWriter:
    """Writer for one JSON object, the arguments of a call."""

    def __init__(self, call: CallBuilder) -> None:
        self.call = call
        self._write = call.writer("{")
        self._scanner = JsonScanner()  # for the end of a truncated call
        call.lacks_only_brace = self._lacks_only_brace
        self._separator = "{"
        self.keys: set[str] = set()
        """The keys that were written."""
        self._complete = True

    @property
    def is_empty(self) -> bool:
        """True if no member was written yet."""
        return self._separator == "{"

    def begin_member(self, key: str) -> None:
        """Begin a member. `write_raw` or `write_text` write its value."""
        self.keys.add(key)
        self.write_raw(f"{self._separator}{quoted(key)}: ")
        self._separator = ", "

    def write_raw(self, json: str) -> None:
        """Write a value, or a piece of one, that is already JSON. Numbers and literals are never cut."""
        self._scanner.scan(json, 0)
        self._write(json)

    def write_text(self, piece: str) -> None:
        """Write a piece of a string, escaped. The caller writes the quotes with `write_raw`."""
        self._write(quoted(piece)[1:-1])

    def write_members(self, json: str) -> None:
        """Write all members of a JSON object."""
        inner = json.strip()[1:-1].strip()
        if inner:
            self.write_raw(self._separator + inner)
            self._separator = ", "

    def _lacks_only_brace(self) -> bool:
        self._scanner.scan(" ", 0)  # ends a number or literal
        return self._scanner.lacks_only_brace

    def mark_incomplete(self) -> None:
        """Mark the call as incomplete, because a param was lost. The client should not run it."""
        self._complete = False

    def end(self, complete: bool = True) -> None:
        self._write("{}" if self.is_empty else "}")
        self.call.close(complete and self._complete)
