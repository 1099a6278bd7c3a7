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
        self._value_pieces: list[str] = []  # the last value without the content of strings, for a truncated call
        call.lacks_only_brace = self._lacks_only_brace
        self._separator = "{"
        self.keys: set[str] = set()
        """The keys that were written."""
        self.has_unclosed_value = False
        """True if a value ended where the next member began, without its closer."""
        self._complete = True

    @property
    def is_empty(self) -> bool:
        """True if no member was written yet."""
        return self._separator == "{"

    def begin_member(self, key: str) -> None:
        """Begin a member. `write_raw` or `write_text` write its value."""
        self.keys.add(key)
        self._write(f"{self._separator}{quoted(key)}: ")
        self._value_pieces = []
        self._separator = ", "

    def write_raw(self, json: str) -> None:
        """Write a value, or a piece of one, that is already JSON. Numbers and literals are never cut."""
        self._value_pieces.append(json)
        self._write(json)

    def write_text(self, piece: str) -> None:
        """Write a piece of a string, escaped. The caller writes the quotes with `write_raw`."""
        self._write(quoted(piece)[1:-1])

    def write_members(self, json: str) -> None:
        """Write all members of a JSON object."""
        inner = json.strip()[1:-1].strip()
        if inner:
            self._write(self._separator + inner)
            self._value_pieces = ["null"]
            self._separator = ", "

    def _lacks_only_brace(self) -> bool:
        scanner = JsonScanner()
        scanner.scan("".join(('{"":', *self._value_pieces, " ")), 0)  # the space ends a number or literal
        return scanner.lacks_only_brace and not self.is_empty

    def mark_incomplete(self) -> None:
        """Mark the call as incomplete, because a param was lost. The client should not run it."""
        self._complete = False

    def end(self, complete: bool = True) -> None:
        self._write("{}" if self.is_empty else "}")
        self.call.close(complete and self._complete)
