"""Puts a call's arguments together where the model does not write them as JSON: member by member, as they come."""

from __future__ import annotations

from json.encoder import encode_basestring as quoted

from interlingua.parsing.event_sink import CallBuilder

__all__ = ["ObjectWriter"]


class ObjectWriter:
    """Writes one JSON object into a call."""

    def __init__(self, call: CallBuilder) -> None:
        self.call = call
        self._write = call.writer("{")
        self._separator = "{"
        self.keys: set[str] = set()
        """The keys that are in it."""
        self._complete = True

    @property
    def is_empty(self) -> bool:
        """Whether there is no member yet."""
        return self._separator == "{"

    def begin_member(self, key: str) -> None:
        """Begins a member. `raw` or `text` write its value."""
        self.keys.add(key)
        self._write(f"{self._separator}{quoted(key)}: ")
        self._separator = ", "

    def write_raw(self, json: str) -> None:
        """A value, or a piece of one, that is JSON."""
        self._write(json)

    def write_text(self, piece: str) -> None:
        """A piece of a string, whose quotes `raw` writes."""
        self._write(quoted(piece)[1:-1])

    def write_members(self, json: str) -> None:
        """All members of a JSON object."""
        inner = json.strip()[1:-1].strip()
        if inner:
            self._write(self._separator + inner)
            self._separator = ", "

    def mark_incomplete(self) -> None:
        """A param was lost: nobody should run the call as it is."""
        self._complete = False

    def end(self, complete: bool = True) -> None:
        self._write("{}" if self.is_empty else "}")
        self.call.close(complete and self._complete)
