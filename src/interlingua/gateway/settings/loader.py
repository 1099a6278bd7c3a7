"""What is set: in the settings file, over it by the environment, over that by flags; and where each of it stands."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from interlingua.common.yaml_reader import compose
from interlingua.errors import BadInput, BadSetting, UsageError
from interlingua.gateway.settings import yaml_values as settings_read
from interlingua.gateway.settings.overrides import (
    CONFIG,
    UPSTREAM,
    Flags,
    Said,
    from_environment,
    from_flags,
    kind_at,
    node_of,
)
from interlingua.gateway.settings.redaction import secrets_of
from interlingua.gateway.settings.schema import Settings
from interlingua.gateway.settings.variables import Variables
from interlingua.gateway.settings.yaml_values import Reader, missing

__all__ = ["NAME", "Loaded", "load"]

NAME = "interlingua.yaml"
KEPT = ("host", "port", "workers", "demo", "demo_pace", "log", "otel")
"""What only a new start can change."""
LONGEST = 1024 * 1024
"""Of a settings file, in characters. Dialects of one's own have samples."""
OTHERS = 0o077
"""The bits of a file's mode that let anybody but its owner in."""
FREE = (("headers",), ("extra",))
"""Where upstreams and models have settings under names of the user's own: what a variable has there is a secret."""
_YAML = "write YAML: a colon and a space behind each name, and the same indent for all that belongs together"


EXAMPLES = {
    "url": "for example: url: https://openrouter.ai/api/v1",
    "upstream": "name one of `upstreams`",
    "dir": "for example: dir: captures",
}
"""Of all that is required."""
Places: TypeAlias = dict[settings_read.Path, str]


class Loaded(msgspec.Struct, frozen=True):
    settings: Settings
    source: str
    """The file that was read; "": none."""
    notes: list[str]
    """What a person should know of it, and what does not keep the gateway from starting."""
    places: Places
    """Where each setting stands: the file and its line, a variable, a flag."""
    secrets: frozenset[str] = frozenset()
    """What variables have brought to where nothing else tells that it is a secret."""
    later: list[str] = []
    """What was set anew and counts only after a restart."""

    @property
    def hidden(self) -> list[str]:
        """All that must never be shown."""
        return secrets_of(self.settings, self.secrets)

    def keeping(self, began: Settings) -> Loaded:
        """For a gateway that began with those settings. What it cannot change stays, and is checked as it stays."""
        later = [name for name in KEPT if getattr(self.settings, name) != getattr(began, name)]
        settings = msgspec.structs.replace(self.settings, **{name: getattr(began, name) for name in later})
        return msgspec.structs.replace(self, settings=settings, later=later)

    def located(self, error: BadSetting) -> BadInput:
        """Return the error with the file and line of its setting."""
        return _placed(error, self.places)


def load(path: str | Path | None, environment: Mapping[str, str], flags: Flags | None = None) -> Loaded:
    """The settings in this file, or in the one that is found; with none, all is as the environment and flags say.

    An upstream that is given in a line stands for a file: none is looked for then.
    """
    flags = flags or Flags()
    given = path or environment.get(CONFIG)
    in_a_line = flags.upstream or environment.get(UPSTREAM)
    file = Path(given) if given else None if in_a_line else _found(environment)
    variables = Variables(environment, [*([file.parent] if file else []), Path()])
    notes = list(variables.notes)
    data, places, secrets = _in_file(file, variables, notes) if file else ({}, {}, frozenset[str]())
    for said in from_environment(environment, variables, notes):
        _put(said, data, places)
    for said in from_flags(flags, variables):
        try:
            _put(said, data, places)
        except BadInput as error:
            raise UsageError(str(error), error.hint) from error
    return Loaded(_checked(data, places), str(file or ""), notes, places, secrets)


def _found(environment: Mapping[str, str]) -> Path | None:
    home = environment.get("XDG_CONFIG_HOME") or Path(environment.get("HOME") or Path.home(), ".config")
    return next((path for path in (Path(NAME), Path(home, "interlingua", NAME)) if path.is_file()), None)


def _in_file(file: Path, variables: Variables, notes: list[str]) -> tuple[dict[str, Any], Places, frozenset[str]]:
    try:
        text = file.read_bytes().decode("utf-8-sig")
        mode = file.stat().st_mode
    except OSError as error:
        raise BadInput(f"cannot read {file}: {error.strerror}", "give the path of a settings file") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{file} is not UTF-8: {error.reason} at byte {error.start}", "save it as UTF-8") from error
    reader = Reader(str(file), variables.expand)
    data = reader.read(compose(text, str(file), LONGEST, _YAML), Settings)
    if reader.open_secrets and mode & OTHERS:
        name = ".".join(reader.open_secrets[0])
        notes.append(
            f"{file} has a secret in it ({name}) and others may read it: write ${{NAME}} there, or chmod 600 it"
        )
    free = (text for path, text in reader.expanded.items() if path[2:3] in FREE)
    return data, reader.places, frozenset().union(*map(variables.brought, free))


def _put(said: Said, data: dict[str, Any], places: Places) -> None:
    """Sets what was said, whatever was there before."""
    reader = Reader(said.where, str)
    value = reader.read(node_of(said), kind_at(said.path), said.path)
    places.update(reader.places)
    *folders, name = said.path
    for depth, folder in enumerate(folders, 1):
        places.setdefault(said.path[:depth], said.where)
        if not isinstance(data.get(folder), dict):
            data[folder] = {}
        data = data[folder]
    data[name] = value


def _checked(data: dict[str, Any], places: Places) -> Settings:
    """The settings, if all that is required is there."""
    lack = missing(data, Settings)
    if lack is not None:
        path, name = lack
        raise _placed(BadSetting((*path, name), "this is missing", EXAMPLES[name]), places)
    try:
        return msgspec.convert(data, Settings)
    except (msgspec.ValidationError, UsageError) as error:  # limits that leave no room
        raise _placed(BadSetting(("limits",), str(error), getattr(error, "hint", "")), places) from error


def _placed(error: BadSetting, places: Places) -> BadInput:
    """With the place of the setting, or of the nearest around it."""
    ways = (error.path[:length] for length in range(len(error.path), -1, -1))
    place = next((places[way] for way in ways if way in places), "")
    return BadInput(f"{place}: {error}" if place else str(error), error.hint)
