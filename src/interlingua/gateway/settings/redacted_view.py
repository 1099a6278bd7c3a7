"""Printable view of the settings with secrets replaced by `***`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, get_args, get_origin

import msgspec

from interlingua.common.typed_yaml import fields_of, struct_member, union_members, unwrap_annotated
from interlingua.gateway.settings.redaction import REDACTED, Redactor, collect_secrets, is_secret_name
from interlingua.gateway.settings.schema import Settings
from interlingua.gateway.settings.yaml_values import is_secret_type

__all__ = ["redacted_settings"]


def redacted_settings(settings: Settings, secrets: Collection[str] = ()) -> dict[str, Any]:
    """Return the redacted settings as plain data, in field order. `secrets` are `LoadedSettings.variable_secrets`."""
    data = _SettingsRedactor(settings, secrets).redact_value(msgspec.to_builtins(settings), Settings)
    assert isinstance(data, dict)
    return data


def _item_type(type_: Any, collection: type) -> Any:
    """Return the type of the items of a list or the values of a mapping, also if it is a member of a union."""
    if type_ is Any:
        return Any
    member = next(member for member in union_members(type_) if get_origin(member) is collection)
    return get_args(member)[-1]


class _SettingsRedactor:
    def __init__(self, settings: Settings, secrets: Collection[str]) -> None:
        self._secrets = frozenset(secrets)
        self._redactor = Redactor(collect_secrets(settings, secrets))

    def redact_value(self, value: Any, type_: Any) -> Any:
        """Return the redacted value. `type_` is the type of its setting."""
        inner, _ = unwrap_annotated(type_)
        if is_secret_type(type_):
            return REDACTED if value else value
        if isinstance(value, str):
            return self._redactor.redact_text(value)
        struct = struct_member(type_)
        if struct is not None and isinstance(value, dict):
            return {name: self.redact_value(value[name], field.type) for name, field in fields_of(struct).items()}
        if isinstance(value, list):
            item_type = _item_type(inner, list)
            return [self._redact_user_named("", item, item_type) for item in value]
        if isinstance(value, dict):
            item_type = _item_type(inner, dict)
            return {name: self._redact_user_named(name, item, item_type) for name, item in value.items()}
        return value

    def _redact_user_named(self, name: str, value: Any, type_: Any) -> Any:
        """Redact a value under a user-chosen name or in a list. Secrets that are too short for `Redactor` are replaced
        here."""
        is_text = type_ in (str, Any) and isinstance(value, str)
        return (
            REDACTED
            if is_text and (value in self._secrets or is_secret_name(name))
            else self.redact_value(value, type_)
        )
