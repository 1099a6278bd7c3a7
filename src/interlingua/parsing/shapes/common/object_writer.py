"""Puts a call's arguments together where the model does not write them as JSON: member by member, as they come."""

from __future__ import annotations

from json.encoder import encode_basestring as quoted

from interlingua.parsing.event_sink import OpenCall

__all__ = ["Composer"]


class Composer:
    """Writes one JSON object into a call."""

    def __init__(self, call: OpenCall) -> None:
        self.call = call
        self._send = call.writer("{")
        self._lead = "{"
        self.keys: set[str] = set()
        """The keys that are in it."""
        self._whole = True

    @property
    def empty(self) -> bool:
        """Whether there is no member yet."""
        return self._lead == "{"

    def key(self, key: str) -> None:
        """Begins a member. `raw` or `text` write its value."""
        self.keys.add(key)
        self._send(f"{self._lead}{quoted(key)}: ")
        self._lead = ", "

    def raw(self, json: str) -> None:
        """A value, or a piece of one, that is JSON."""
        self._send(json)

    def text(self, piece: str) -> None:
        """A piece of a string, whose quotes `raw` writes."""
        self._send(quoted(piece)[1:-1])

    def members(self, json: str) -> None:
        """All members of a JSON object."""
        inner = json.strip()[1:-1].strip()
        if inner:
            self._send(self._lead + inner)
            self._lead = ", "

    def spoil(self) -> None:
        """A param was lost: nobody should run the call as it is."""
        self._whole = False

    def end(self, complete: bool = True) -> None:
        self._send("{}" if self.empty else "}")
        self.call.close(complete and self._whole)
