"""What of the settings may be shown: all but secrets, which are `***`."""

from __future__ import annotations

import types
from collections.abc import Collection
from typing import Any, Union, get_args, get_origin

import msgspec

from interlingua.gateway.settings.redaction import HIDDEN, Redactor, names_a_secret, secrets_of
from interlingua.gateway.settings.schema import Settings
from interlingua.gateway.settings.yaml_values import is_secret, without_meta

__all__ = ["shown"]


def shown(settings: Settings, secrets: Collection[str] = ()) -> dict[str, Any]:
    """The settings as plain data, in their order. `secrets` is what variables have brought (`Loaded.secrets`)."""
    data = _Shown(settings, secrets).value(msgspec.to_builtins(settings), Settings)
    assert isinstance(data, dict)
    return data


class _Shown:
    def __init__(self, settings: Settings, secrets: Collection[str]) -> None:
        self._secrets = frozenset(secrets)
        self._redactor = Redactor(secrets_of(settings, secrets))

    def value(self, value: Any, kind: Any) -> Any:
        """A value of this type."""
        inner, _ = without_meta(kind)
        if is_secret(kind):
            return HIDDEN if value else value
        if isinstance(value, str):
            return self._redactor.text(value)
        if get_origin(inner) in (Union, types.UnionType) and isinstance(value, dict):
            inner = next(one for one in get_args(inner) if isinstance(one, type) and issubclass(one, msgspec.Struct))
        if isinstance(inner, type) and issubclass(inner, msgspec.Struct) and isinstance(value, dict):
            return {field.name: self.value(value[field.name], field.type) for field in msgspec.structs.fields(inner)}
        if isinstance(value, list):
            return [self._named("", one, Any if inner is Any else get_args(inner)[0]) for one in value]
        if isinstance(value, dict):
            of = Any if inner is Any else get_args(inner)[1]
            return {name: self._named(name, one, of) for name, one in value.items()}
        return value

    def _named(self, name: str, value: Any, kind: Any) -> Any:
        """A value under a name that the user has chosen, or in a list. Short secrets are hidden only here."""
        hides = kind in (str, Any) and isinstance(value, str)
        return HIDDEN if hides and (value in self._secrets or names_a_secret(name)) else self.value(value, kind)
