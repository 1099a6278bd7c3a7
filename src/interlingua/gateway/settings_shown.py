"""What of the settings may be shown: all but secrets, which are `***`."""

from __future__ import annotations

import re
import types
from typing import Any, Union, get_args, get_origin

import msgspec

from interlingua.gateway.settings import Settings
from interlingua.gateway.settings_read import is_secret, without_meta

__all__ = ["HIDDEN", "shown"]

HIDDEN = "***"
_SECRET_NAME = re.compile(r"auth|cookie|secret|password|api[-_]?key|(^|[-_])(key|token)$", re.IGNORECASE)
"""Headers and other fields of the user's own whose values are secrets, as far as their names tell."""


def shown(settings: Settings) -> dict[str, Any]:
    """The settings as plain data, in their order."""
    data = _shown(msgspec.to_builtins(settings), Settings)
    assert isinstance(data, dict)
    return data


def _shown(value: Any, kind: Any) -> Any:
    inner, _ = without_meta(kind)
    if is_secret(kind):
        return HIDDEN if value else value
    if get_origin(inner) in (Union, types.UnionType) and isinstance(value, dict):
        inner = next(one for one in get_args(inner) if isinstance(one, type) and issubclass(one, msgspec.Struct))
    if isinstance(inner, type) and issubclass(inner, msgspec.Struct) and isinstance(value, dict):
        return {field.name: _shown(value[field.name], field.type) for field in msgspec.structs.fields(inner)}
    if get_origin(inner) is list:
        return [_shown(one, get_args(inner)[0]) for one in value]
    if get_origin(inner) is dict:
        return _named(value, get_args(inner)[1])
    if inner is Any and isinstance(value, dict):
        return _named(value, Any)
    if inner is Any and isinstance(value, list):
        return [_shown(one, Any) for one in value]
    return value


def _named(values: dict[str, Any], kind: Any) -> dict[str, Any]:
    """Values under names that the user has chosen."""
    hides = kind in (str, Any)
    return {
        name: HIDDEN if hides and isinstance(value, str) and _SECRET_NAME.search(name) else _shown(value, kind)
        for name, value in values.items()
    }
