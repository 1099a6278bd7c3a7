"""Origins of the items in a request that the gateway has changed: errors name the field of the client's own request."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from interlingua.errors import BadRequest

__all__ = ["Origin", "Origins", "name_client_field", "trace_origins"]


class Origin(NamedTuple):
    """Field of the earlier request that an item comes from."""

    path: str
    is_same: bool = True
    """The item has the same fields as its origin, so that a path inside it is valid there, too."""


Origins: TypeAlias = list[Origin]
"""Origins of the items in a conversation, in their order; [] if it was not changed."""


def name_client_field(error: BadRequest, field: str, origins: Origins) -> None:
    """Let an error about an item name the origin of the item. `field` is the name of the field with the conversation"""
    if (path := _find_origin(error.path, field, origins).path) != error.path:
        error.move_to(path)


def trace_origins(origins: Iterable[Origin], field: str, earlier: Origins) -> Origins:
    """Return the origins of items in a request that was changed twice. `earlier` is the result of the first change."""
    traced = ((origin, _find_origin(origin.path, field, earlier)) for origin in origins)
    return [Origin(first.path, origin.is_same and first.is_same) for origin, first in traced]


def _find_origin(path: str, field: str, origins: Origins) -> Origin:
    match = re.match(rf"{field}\[(\d{{1,9}})\]", path) if origins else None
    if match is None or int(match[1]) >= len(origins):
        return Origin(path)
    origin = origins[int(match[1])]
    return Origin(origin.path + path[match.end() :]) if origin.is_same else origin
