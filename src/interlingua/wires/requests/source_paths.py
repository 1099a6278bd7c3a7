"""Where the client's body has what became the pieces of a conversation: what is wrong with one is told with that place.

What was read is known again by its identity, as readers put pieces in order when they have read them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeVar

from interlingua.core.request import Content, Message

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

    def table(self, system: Sequence[Content], messages: Sequence[Message], /, **roots: str) -> Mapping[str, str]:
        """The client's path of each path in a Request; `roots` are its names for what others call otherwise."""
        return _Table(self, system, messages, roots)

    def named(self, name: str, read: object) -> dict[str, str]:
        """The client's path of what has this path in a Request, and of its fields."""
        if id(read) not in self._at:
            return {}
        _, path, fields = self._at[id(read)]
        return {name: path} | {f"{name}.{field}": f"{path}.{native}" for field, native in fields.items()}


class _Table(Mapping[str, str]):
    """Made when it is first looked at: most requests have nothing wrong."""

    def __init__(
        self, places: Places, system: Sequence[Content], messages: Sequence[Message], roots: Mapping[str, str]
    ) -> None:
        self._places = places
        self._system = system
        self._messages = messages
        self._roots = roots

    @cached_property
    def _paths(self) -> dict[str, str]:
        named = self._places.named
        table = {"system": "system", "messages": "messages", **self._roots}
        for n, piece in enumerate(self._system):
            table |= named(f"system[{n}]", piece)
        for n, message in enumerate(self._messages):
            table |= named(f"messages[{n}]", message.pieces)
            for k, said in enumerate(message.pieces):
                table |= named(f"messages[{n}].pieces[{k}]", said)
        return table

    def __getitem__(self, path: str) -> str:
        return self._paths[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)
