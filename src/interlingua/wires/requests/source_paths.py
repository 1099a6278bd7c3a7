"""Paths in the client's body of the pieces that were read from it, for use in error messages.

Pieces are identified by object identity, because readers reorder them after reading.
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
        # Keyed by id(). Each entry holds its object, so that the id is not reused.
        self._entries: dict[int, tuple[object, str, Mapping[str, str]]] = {}

    def record(self, parsed: T, path: str, fields: Mapping[str, str] | None = None) -> T:
        """Record the path that a piece, or list of pieces, was read from. `fields`: the wire's names of its fields."""
        self._entries[id(parsed)] = (parsed, path, fields or {})
        return parsed

    def request_paths(
        self, system: Sequence[Content], messages: Sequence[Message], /, **roots: str
    ) -> Mapping[str, str]:
        """Return a mapping from paths in a Request to the client's paths. `roots`: top-level names that differ."""
        return _PathTable(self, system, messages, roots)

    def paths_of(self, request_path: str, parsed: object) -> dict[str, str]:
        """Return the client's paths of the object at `request_path` and of its fields."""
        if id(parsed) not in self._entries:
            return {}
        _, path, fields = self._entries[id(parsed)]
        return {request_path: path} | {
            f"{request_path}.{field}": f"{path}.{native}" for field, native in fields.items()
        }


class _PathTable(Mapping[str, str]):
    """Lazy mapping: built on first access, because most requests have no error."""

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
