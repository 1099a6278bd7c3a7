"""What flags of `interlingua serve` and variables of the environment set: INTERLINGUA_PORT, INTERLINGUA_LOG__FORMAT.

Every flag is a variable too: --upstream-api is INTERLINGUA_UPSTREAM_API. All other settings are reached by their names,
with two underscores between them.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin
from urllib.parse import urlsplit

import msgspec
import yaml

from interlingua.common.yaml_reader import TEXT, compose
from interlingua.errors import UsageError, nearest
from interlingua.gateway.settings.schema import Settings
from interlingua.gateway.settings.variables import Variables
from interlingua.gateway.settings.yaml_values import NoVariable, Path, unquoted, without_meta
from interlingua.upstreams import profile_for

__all__ = ["CONFIG", "UPSTREAM", "Flags", "Said", "from_environment", "from_flags", "kind_at", "node_of"]

PREFIX = "INTERLINGUA_"
CONFIG, UPSTREAM = f"{PREFIX}CONFIG", f"{PREFIX}UPSTREAM"
BETWEEN = "__"
SHORT: dict[str, Path] = {
    "host": ("host",),
    "port": ("port",),
    "workers": ("workers",),
    "demo": ("demo",),
    "capture": ("capture", "dir"),
    "log_format": ("log", "format"),
    "log_level": ("log", "level"),
}
"""What each flag sets, but for those about the upstream."""
OF_UPSTREAM = {"upstream_api": "api", "upstream_profile": "profile", "dialect": "dialect"}
"""What of the upstream these flags set, but for its key."""


class Flags(msgspec.Struct, frozen=True, kw_only=True):
    """The flags as they were given, as text; "": not given."""

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
    log_format: str = ""
    log_level: str = ""


class Said(NamedTuple):
    """One setting as text, and by whom."""

    path: Path
    text: str
    where: str


def from_flags(flags: Flags, variables: Variables) -> list[Said]:
    said = [Said(path, getattr(flags, name), _option(name)) for name, path in SHORT.items() if getattr(flags, name)]
    return [*said, *_upstream(flags, variables, _option)]


def from_environment(environment: Mapping[str, str], variables: Variables, notes: list[str]) -> list[Said]:
    """What the environment sets; what is none of our variables is noted."""
    given = {name: text for name, text in environment.items() if name.startswith(PREFIX) and name != CONFIG and text}
    flags = Flags(**{name: given.pop(_variable(name), "") for name in Flags.__struct_fields__})
    said = [Said(path, getattr(flags, name), _variable(name)) for name, path in SHORT.items() if getattr(flags, name)]
    said += _upstream(flags, variables, _variable)
    for name, text in given.items():
        path = tuple(name.removeprefix(PREFIX).lower().split(BETWEEN))
        if kind_at(path) is None:
            notes.append(f"{name} is no setting, and is left out; {nearest(name, _known())}")
        else:
            said.append(Said(path, text, name))
    return said


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _variable(name: str) -> str:
    return PREFIX + name.upper()


def _upstream(flags: Flags, variables: Variables, called: Callable[[str], str]) -> Iterator[Said]:
    """The one upstream that was given in a line: everything goes to it."""
    if not flags.upstream:
        alone = [name for name in (*OF_UPSTREAM, "upstream_key_env") if getattr(flags, name)]
        if alone:
            raise UsageError(
                f"{called(alone[0])} says how the upstream is, and none is given", f"add {called('upstream')} URL"
            )
        return
    name = _name_of(flags.upstream)
    entry = ("upstreams", name)
    yield Said(("default",), name, called("upstream"))
    yield Said(entry, "{}", called("upstream"))  # nothing of another one with this name is kept, least of all its key
    yield Said((*entry, "url"), flags.upstream, called("upstream"))
    for flag, field in OF_UPSTREAM.items():
        if text := getattr(flags, flag):
            yield Said((*entry, field), text, called(flag))
    if flags.upstream_key_env:
        where = called("upstream_key_env")
        try:
            yield Said((*entry, "key"), variables.value(flags.upstream_key_env), where)
        except NoVariable as error:
            raise UsageError(f"{where}: {error}", error.hint) from None


def _name_of(url: str) -> str:
    """What the upstream is called in the log and to users: as in our table, or by its host."""
    profile = profile_for(url)
    if profile.hosts:
        return profile.name
    try:
        return urlsplit(url).hostname or "upstream"
    except ValueError:  # what is wrong with it is told where all URLs are looked at
        return "upstream"


# ── settings by their names ───────────────────────────────────────────────────────────────────────────────────────────


def kind_at(path: Path, kind: Any = Settings) -> Any | None:
    """The type of the setting at this path; None if there is no such setting."""
    if not path:
        return kind
    first, *rest = path
    for one in _kinds(kind):
        if isinstance(one, type) and issubclass(one, msgspec.Struct):
            fields = {field.name: field.type for field in msgspec.structs.fields(one)}
            return kind_at(tuple(rest), fields[first]) if first in fields else None
        if get_origin(one) is dict and first:
            keys, values = get_args(one)
            known = get_origin(keys) is not Literal or first in get_args(keys)
            return kind_at(tuple(rest), values) if known else None
    return Any if kind is Any else None


def node_of(said: Said) -> yaml.Node:
    """What was said as a node, for the setting's type. Texts need no quotes, and lists may be written with commas."""
    kinds = _kinds(kind_at(said.path))
    if any(kind is str or get_origin(kind) is Literal for kind in kinds):
        return yaml.ScalarNode(TEXT, said.text)
    if kinds[0] in (bool, int, float):
        return unquoted(said.text)
    if get_origin(kinds[0]) is list and not said.text.lstrip().startswith("["):
        words = [yaml.ScalarNode(TEXT, word.strip()) for word in said.text.split(",")]
        return yaml.SequenceNode("tag:yaml.org,2002:seq", words)
    return compose(said.text, said.where, otherwise="write it as in a settings file, on one line: {name: value}")


def _kinds(kind: Any) -> list[Any]:
    inner, _ = without_meta(kind)
    if get_origin(inner) in (Union, types.UnionType):
        return [one for part in get_args(inner) if part is not types.NoneType for one in _kinds(part)]
    return [inner]


def _known() -> list[str]:
    """The variables that can be named beforehand."""
    return [
        *map(_variable, Flags.__struct_fields__),
        *(PREFIX + BETWEEN.join(path).upper() for path in _paths(Settings)),
    ]


def _paths(kind: Any, path: Path = ()) -> Iterator[Path]:
    structs = [one for one in _kinds(kind) if isinstance(one, type) and issubclass(one, msgspec.Struct)]
    if not structs:
        yield path
    for one in structs:
        for field in msgspec.structs.fields(one):
            yield from _paths(field.type, (*path, field.name))
