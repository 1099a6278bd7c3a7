"""Overrides from flags of `interlingua serve` and from INTERLINGUA_* environment variables.

Every flag has a variable: --upstream-api is INTERLINGUA_UPSTREAM_API. Every other setting has a variable made of the
names on its path, joined by two underscores: INTERLINGUA_LOG__FORMAT.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, get_args, get_origin
from urllib.parse import urlsplit

import msgspec
import yaml

from interlingua.common.typed_yaml import ValuePath, fields_of, struct_member, union_members, unwrap_annotated
from interlingua.common.yaml_reader import TEXT_TAG, compose, plain_scalar
from interlingua.errors import UsageError, suggestion_hint
from interlingua.gateway.settings.schema import Settings
from interlingua.gateway.settings.variables import Variables
from interlingua.gateway.settings.yaml_values import UndefinedVariable
from interlingua.upstreams import profile_for_url

__all__ = [
    "CONFIG_VARIABLE",
    "UPSTREAM_VARIABLE",
    "Flags",
    "Override",
    "overrides_from_environment",
    "overrides_from_flags",
    "type_at",
    "yaml_node",
]

VARIABLE_PREFIX = "INTERLINGUA_"
CONFIG_VARIABLE, UPSTREAM_VARIABLE = f"{VARIABLE_PREFIX}CONFIG", f"{VARIABLE_PREFIX}UPSTREAM"
PATH_SEPARATOR = "__"
FLAG_PATHS: dict[str, ValuePath] = {
    "host": ("host",),
    "port": ("port",),
    "workers": ("workers",),
    "demo": ("demo",),
    "capture": ("capture", "dir"),
    "inspect": ("inspect", "enabled"),
    "log_format": ("log", "format"),
    "log_level": ("log", "level"),
}
"""Setting of each flag. The flags for the upstream are handled separately."""
CASSETTE_FLAGS = ("record", "replay", "hybrid")
"""Flags that name a cassette. Each is a mode of `cassettes`."""
UPSTREAM_FLAG_FIELDS = {"upstream_api": "api", "upstream_profile": "profile", "dialect": "dialect"}
"""Field of the upstream that each flag sets. The key is handled separately."""


class Flags(msgspec.Struct, frozen=True, kw_only=True):
    """Command-line flags as text; "" if a flag is not set."""

    upstream: str = ""
    upstream_api: str = ""
    upstream_key_env: str = ""
    upstream_profile: str = ""
    dialect: str = ""
    host: str = ""
    port: str = ""
    workers: str = ""
    demo: str = ""
    capture: str = ""
    inspect: str = ""
    record: str = ""
    replay: str = ""
    hybrid: str = ""
    log_format: str = ""
    log_level: str = ""


class Override(NamedTuple):
    """Value of one setting as text. `source` is the flag or variable that sets it."""

    path: ValuePath
    text: str
    source: str


def overrides_from_flags(flags: Flags, variables: Variables) -> list[Override]:
    overrides = [
        Override(path, getattr(flags, name), _flag_name(name))
        for name, path in FLAG_PATHS.items()
        if getattr(flags, name)
    ]
    return [*overrides, *_cassette_overrides(flags, _flag_name), *_upstream_overrides(flags, variables, _flag_name)]


def overrides_from_environment(
    environment: Mapping[str, str], variables: Variables, notes: list[str]
) -> list[Override]:
    """Return the overrides from INTERLINGUA_* variables. Add a note for each variable that is not a setting."""
    raw_values = {
        name: text
        for name, text in environment.items()
        if name.startswith(VARIABLE_PREFIX) and name != CONFIG_VARIABLE and text
    }
    flags = Flags(**{name: raw_values.pop(_variable_name(name), "") for name in Flags.__struct_fields__})
    overrides = [
        Override(path, getattr(flags, name), _variable_name(name))
        for name, path in FLAG_PATHS.items()
        if getattr(flags, name)
    ]
    overrides += [*_cassette_overrides(flags, _variable_name), *_upstream_overrides(flags, variables, _variable_name)]
    for name, text in raw_values.items():
        path = tuple(name.removeprefix(VARIABLE_PREFIX).lower().split(PATH_SEPARATOR))
        if type_at(path) is None:
            notes.append(f"{name} ignored, because it is not a setting; {suggestion_hint(name, _known_variables())}")
        else:
            overrides.append(Override(path, text, name))
    return overrides


def _flag_name(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _variable_name(name: str) -> str:
    return VARIABLE_PREFIX + name.upper()


def _cassette_overrides(flags: Flags, display_name: Callable[[str], str]) -> Iterator[Override]:
    """Yield the overrides for the cassette that a flag or variable names. The flag is its mode."""
    modes = [mode for mode in CASSETTE_FLAGS if getattr(flags, mode)]
    if len(modes) > 1:
        first, second = (display_name(mode) for mode in modes[:2])
        raise UsageError(f"{first} and {second} exclude each other", f"{display_name('hybrid')} replays and records")
    for mode in modes:
        yield Override(("cassettes", "dir"), getattr(flags, mode), display_name(mode))
        yield Override(("cassettes", "mode"), mode, display_name(mode))


def _upstream_overrides(flags: Flags, variables: Variables, display_name: Callable[[str], str]) -> Iterator[Override]:
    """Yield the overrides for the upstream that a flag or variable defines. It becomes the default upstream."""
    if not flags.upstream:
        orphan_flags = [name for name in (*UPSTREAM_FLAG_FIELDS, "upstream_key_env") if getattr(flags, name)]
        if orphan_flags:
            raise UsageError(
                f"{display_name(orphan_flags[0])} requires {display_name('upstream')}, which is not set",
                f"add {display_name('upstream')} URL",
            )
        return
    name = _upstream_name(flags.upstream)
    entry = ("upstreams", name)
    yield Override(("default",), name, display_name("upstream"))
    # An upstream of this name in the settings file is replaced as a whole. Its key must not go to another URL.
    yield Override(entry, "{}", display_name("upstream"))
    yield Override((*entry, "url"), flags.upstream, display_name("upstream"))
    for flag, field in UPSTREAM_FLAG_FIELDS.items():
        if text := getattr(flags, flag):
            yield Override((*entry, field), text, display_name(flag))
    if flags.upstream_key_env:
        source = display_name("upstream_key_env")
        try:
            yield Override((*entry, "key"), variables.value(flags.upstream_key_env), source)
        except UndefinedVariable as error:
            raise UsageError(f"{source}: {error}", error.hint) from None


def _upstream_name(url: str) -> str:
    """Return the name of the upstream for the log and for users: the name of its profile, or its host."""
    profile = profile_for_url(url)
    if profile.hosts:
        return profile.name
    try:
        return urlsplit(url).hostname or "upstream"
    except ValueError:  # `check_settings` reports malformed URLs
        return "upstream"


# ── lookup of settings by path ────────────────────────────────────────────────────────────────────────────────────────


def type_at(path: ValuePath, type_: Any = Settings) -> Any | None:
    """Return the type of the setting at this path, or None if there is no such setting."""
    if not path:
        return type_
    first, *remainder = path
    struct = struct_member(type_)
    if struct is not None:
        field = fields_of(struct).get(first)
        return type_at(tuple(remainder), field.type) if field else None
    mappings = [member for member in map(_inner_type, union_members(type_)) if get_origin(member) is dict]
    if mappings and first:
        keys, values = get_args(mappings[0])
        is_allowed_key = get_origin(keys) is not Literal or first in get_args(keys)
        return type_at(tuple(remainder), values) if is_allowed_key else None
    return Any if type_ is Any else None


def _inner_type(type_: Any) -> Any:
    return unwrap_annotated(type_)[0]


def yaml_node(override: Override) -> yaml.Node:
    """Return the override as a YAML node for the type of its setting. Texts need no quotes; lists may be
    comma-separated."""
    members = [_inner_type(member) for member in union_members(type_at(override.path))]
    if any(member is str or get_origin(member) is Literal for member in members):
        return yaml.ScalarNode(TEXT_TAG, override.text)
    if members[0] in (bool, int, float):
        return plain_scalar(override.text)
    is_list = any(get_origin(member) is list for member in members)
    if is_list and not override.text.lstrip().startswith(("[", "{")):
        items = [yaml.ScalarNode(TEXT_TAG, item.strip()) for item in override.text.split(",")]
        return yaml.SequenceNode("tag:yaml.org,2002:seq", items)
    return compose(
        override.text, override.source, default_hint="write it as in a settings file, on one line: {name: value}"
    )


def _known_variables() -> list[str]:
    """Return the names of all variables that contain no user-chosen name."""
    return [
        *map(_variable_name, Flags.__struct_fields__),
        *(VARIABLE_PREFIX + PATH_SEPARATOR.join(path).upper() for path in _setting_paths(Settings)),
    ]


def _setting_paths(type_: Any, path: ValuePath = ()) -> Iterator[ValuePath]:
    struct = struct_member(type_)
    if struct is None:
        yield path
        return
    for field in fields_of(struct).values():
        yield from _setting_paths(field.type, (*path, field.name))
