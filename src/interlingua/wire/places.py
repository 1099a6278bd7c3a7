"""Where the client's body has what became the pieces of a conversation: what is wrong with one is told with that place.

What was read is known again by its identity, as readers put pieces in order when they have read them all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from interlingua.request import Content, Message

__all__ = ["Places"]

T = TypeVar("T")


class Places:
    def __init__(self) -> None:
        self._at: dict[int, tuple[object, str, Mapping[str, str]]] = {}  # holds what it knows, so that ids stay its own

    def put(self, read: T, path: str, fields: Mapping[str, str] | None = None) -> T:
        """This piece, or list of pieces, was read there. `fields` are the wire's names of its fields."""
        self._at[id(read)] = (read, path, fields or {})
        return read

    def move(self, read: object, now: object) -> None:
        """Something else stands for what was read."""
        if id(read) in self._at:
            self.put(now, *self._at[id(read)][1:])

    def table(self, system: Sequence[Content], messages: Sequence[Message], /, **roots: str) -> dict[str, str]:
        """The client's path of each path in a Request; `roots` are its names for what others call otherwise."""
        table = {"system": "system", "messages": "messages", **roots}
        for n, piece in enumerate(system):
            table |= self._named(f"system[{n}]", piece)
        for n, message in enumerate(messages):
            table |= self._named(f"messages[{n}]", message.pieces)
            for k, said in enumerate(message.pieces):
                table |= self._named(f"messages[{n}].pieces[{k}]", said)
        return table

    def _named(self, name: str, read: object) -> dict[str, str]:
        if id(read) not in self._at:
            return {}
        _, path, fields = self._at[id(read)]
        return {name: path} | {f"{name}.{field}": f"{path}.{native}" for field, native in fields.items()}
