"""Dialect of a model. Precedence: `overrides`, the entry in `models`, the upstream, the model id."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

from yaml.representer import SafeRepresenter

from interlingua.dialects.registry import dialect_for, list_dialects
from interlingua.dialects.yaml_loader import dialect_from_node
from interlingua.errors import BadInput, BadSetting, suggestion_hint
from interlingua.gateway.routing.model_patterns import match_wildcards, most_specific_first
from interlingua.gateway.settings.schema import Settings
from interlingua.parsing.dialect import Dialect

__all__ = ["DETECT", "DialectChoice", "ModelDialects", "find_dialect_problems"]

AUTO: Literal["auto"] = "auto"
DETECT: Literal["detect"] = "detect"
DialectChoice: TypeAlias = Dialect | Literal["detect"]
"""detect: the dialect is detected in the text of the reply."""


class ModelDialects:
    """Dialects of the settings, which must have no problems (`find_dialect_problems`)."""

    def __init__(self, settings: Settings) -> None:
        self._custom = [_custom_dialect(name, settings.dialects[name]) for name in settings.dialects]
        self._by_name = {dialect.name: dialect for dialect in (*list_dialects(), *self._custom)}
        patterns = most_specific_first(settings.overrides)
        self._overrides = [(pattern.lower(), settings.overrides[pattern]) for pattern in patterns]

    @property
    def native(self) -> list[Dialect]:
        """Dialects that write tool calls as text."""
        return [dialect for dialect in self._by_name.values() if dialect.shape is not None]

    @property
    def names(self) -> list[str]:
        return list(self._by_name)

    def get(self, name: str) -> Dialect | None:
        return self._by_name.get(name)

    def resolve(self, model: str, configured: str) -> DialectChoice:
        """Return the dialect of a model.

        Args:
            model: Model id at the upstream.
            configured: `dialect` of the model or of its upstream.
        """
        override = next(
            (name for pattern, name in self._overrides if match_wildcards(pattern, model.lower()) is not None),
            configured,
        )
        if override == DETECT:
            return DETECT
        if override != AUTO:
            return self._by_name[override]
        return next((dialect for dialect in self._custom if dialect.speaks(model)), None) or dialect_for(model)


def find_dialect_problems(settings: Settings) -> Iterator[BadSetting]:
    """Yield an error for each custom dialect that is wrong, and for each name of a dialect that does not exist."""
    for name, fields in settings.dialects.items():
        try:
            _custom_dialect(name, fields)
        except BadSetting as error:
            yield error
    valid_names = (*(dialect.name for dialect in list_dialects()), *settings.dialects, AUTO, DETECT)
    for path, name in _dialect_references(settings):
        if name not in valid_names:
            yield BadSetting(path, f"no dialect is called {name!r}", suggestion_hint(name, valid_names))


def _dialect_references(settings: Settings) -> Iterator[tuple[tuple[str, ...], str]]:
    for name, upstream in settings.upstreams.items():
        yield ("upstreams", name, "dialect"), upstream.dialect
    for id, model in settings.models.items():
        if not isinstance(model, str) and model.dialect:
            yield ("models", id, "dialect"), model.dialect
    for pattern, name in settings.overrides.items():
        yield ("overrides", pattern), name


def _custom_dialect(name: str, fields: dict[str, object]) -> Dialect:
    """Return a custom dialect of the settings. Errors have the same messages as for a dialect file."""
    path = ("dialects", name)
    if name in (AUTO, DETECT):
        raise BadSetting(path, f"{name!r} is a reserved name", "choose another name")
    if "name" in fields:
        raise BadSetting((*path, "name"), "the name of the dialect is its key in `dialects`", "remove `name`")
    source = ".".join(path)
    try:
        complete_fields = {"name": name, "summary": "custom dialect of the settings", **fields}
        return dialect_from_node(SafeRepresenter().represent_data(complete_fields), source)
    except BadInput as error:
        raise BadSetting(path, str(error).removeprefix(f"{source}: "), error.hint) from error
