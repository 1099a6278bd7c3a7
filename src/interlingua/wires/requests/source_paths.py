"""Where the client's body has what became the pieces of a conversation: what is wrong with one is told with that place.

What was read is known again by its identity, as readers put pieces in order when they have read them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeVar

from interlingua.core.request import Content, Message

__all__ = ["SourcePaths"]

T = TypeVar("T")


class SourcePaths:
    def __init__(self) -> None:
        self._entries: dict[
            int, tuple[object, str, Mapping[str, str]]
        ] = {}  # holds what it knows, so that ids stay its own

    def record(self, parsed: T, path: str, fields: Mapping[str, str] | None = None) -> T:
        """This piece, or list of pieces, was read there. `fields` are the wire's names of its fields."""
        self._entries[id(parsed)] = (parsed, path, fields or {})
        return parsed

    def transfer(self, old: object, new: object) -> None:
        """Something else stands for what was read."""
        if id(old) in self._entries:
            self.record(new, *self._entries[id(old)][1:])

    def request_paths(
        self, system: Sequence[Content], messages: Sequence[Message], /, **roots: str
    ) -> Mapping[str, str]:
        """The client's path of each path in a Request; `roots` are its names for what others call otherwise."""
        return _PathTable(self, system, messages, roots)

    def paths_of(self, request_path: str, parsed: object) -> dict[str, str]:
        """The client's path of what has this path in a Request, and of its fields."""
        if id(parsed) not in self._entries:
            return {}
        _, path, fields = self._entries[id(parsed)]
        return {request_path: path} | {
            f"{request_path}.{field}": f"{path}.{native}" for field, native in fields.items()
        }


class _PathTable(Mapping[str, str]):
    """Made when it is first looked at: most requests have nothing wrong."""

    def __init__(
        self,
        source_paths: SourcePaths,
        system: Sequence[Content],
        messages: Sequence[Message],
        roots: Mapping[str, str],
    ) -> None:
        self._source_paths = source_paths
        self._system = system
        self._messages = messages
        self._roots = roots

    @cached_property
    def _paths(self) -> dict[str, str]:
        paths_of = self._source_paths.paths_of
        table = {"system": "system", "messages": "messages", **self._roots}
        for n, piece in enumerate(self._system):
            table |= paths_of(f"system[{n}]", piece)
        for n, message in enumerate(self._messages):
            table |= paths_of(f"messages[{n}]", message.pieces)
            for k, message_piece in enumerate(message.pieces):
                table |= paths_of(f"messages[{n}].pieces[{k}]", message_piece)
        return table

    def __getitem__(self, path: str) -> str:
        return self._paths[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)
