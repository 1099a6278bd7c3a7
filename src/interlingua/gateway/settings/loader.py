"""Loading of the settings and the location of each one.

Precedence, lowest first: settings file, environment variables, command-line flags.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec

from interlingua.common.typed_yaml import ValuePath, describe_missing_field
from interlingua.common.yaml_reader import compose
from interlingua.errors import BadInput, BadSetting, BadSettings, UsageError
from interlingua.gateway.settings.overrides import (
    CONFIG_VARIABLE,
    UPSTREAM_VARIABLE,
    Flags,
    Override,
    overrides_from_environment,
    overrides_from_flags,
    type_at,
    yaml_node,
)
from interlingua.gateway.settings.redaction import collect_secrets
from interlingua.gateway.settings.schema import Settings
from interlingua.gateway.settings.variables import Variables
from interlingua.gateway.settings.yaml_values import SettingsReader, find_missing

__all__ = ["SETTINGS_FILE_NAME", "LoadedSettings", "load_settings", "raise_settings_errors", "read_settings"]

SETTINGS_FILE_NAME = "interlingua.yaml"
RESTART_ONLY_FIELDS = (
    "host",
    "port",
    "workers",
    "demo",
    "demo_pace",
    "cassettes",
    "inspect",
    "log",
    "state",
    "watchdog",
    "otel",
)
"""Settings that take effect only after a restart."""
MAX_SETTINGS_FILE_CHARS = 1024 * 1024
"""Maximum size of a settings file. Custom dialects with their samples need room."""
GROUP_AND_OTHERS_MODE_BITS = 0o077
"""File mode bits that give access to the group and to other users."""
FREE_FORM_FIELDS = (("headers",), ("extra",))
"""Fields of upstreams and models whose keys the user chooses. A value that comes from a variable there is a secret."""
_YAML_HINT = "write YAML: a colon and a space after each name, and the same indent for all fields of a block"


class _Requirement(NamedTuple):
    hint: str
    placeholder: str
    """Value with which the other settings can be checked."""


REQUIRED_FIELDS = {
    "url": _Requirement("for example: url: https://openrouter.ai/api/v1", "http://missing.invalid/v1"),
    "upstream": _Requirement("name one of `upstreams`", ""),
    "dir": _Requirement("for example: dir: captures", "captures"),
}
"""Required fields by name."""
SettingLocations: TypeAlias = dict[ValuePath, str]


class LoadedSettings(msgspec.Struct, frozen=True):
    settings: Settings
    source: str
    """Path of the settings file; "" if no file was read."""
    notes: list[str]
    """Warnings for the user that do not keep the gateway from starting."""
    locations: SettingLocations
    """Source of each setting: file and line, environment variable or flag."""
    variable_secrets: frozenset[str] = frozenset()
    """Values of variables in fields whose type does not mark them as secret (see `FREE_FORM_FIELDS`)."""
    restart_required: list[str] = []
    """Names of settings whose new value takes effect only after a restart."""
    searched: list[str] = []
    """Paths at which a settings file was searched; [] if the file was given, or none is needed."""
    problems: dict[ValuePath, BadInput] = {}
    """Settings that cannot be read, by their path. `settings` has their defaults."""
    placeholders: frozenset[ValuePath] = frozenset()
    """Required settings that are missing. `settings` has made-up values for them."""

    @property
    def search_note(self) -> str:
        """The places at which no settings file was found; "" if there is one, or none is needed."""
        if self.source or not self.searched:
            return ""
        return f"no settings file was found: neither {' nor '.join(self.searched)}"

    def raise_problems(self) -> None:
        """Raise an error if a setting could not be read."""
        raise_settings_errors(list(self.problems.values()))

    def is_unreadable(self, path: ValuePath) -> bool:
        """Return whether this setting, one in it or one around it could not be read: checks of it say nothing."""
        unknown = (*self.problems, *self.placeholders)
        return any(path[: len(other)] == other or other[: len(path)] == path for other in unknown)

    @property
    def all_secrets(self) -> list[str]:
        """All secrets of the settings. They must be redacted in every output."""
        return collect_secrets(self.settings, self.variable_secrets)

    def keep_restart_only_fields(self, startup_settings: Settings) -> LoadedSettings:
        """Return the reloaded settings with the restart-only fields of a gateway that started with `startup_settings`.

        The checks then see the values that are in effect. The changed fields are listed in `restart_required`.
        """
        restart_required = [
            name for name in RESTART_ONLY_FIELDS if getattr(self.settings, name) != getattr(startup_settings, name)
        ]
        settings = msgspec.structs.replace(
            self.settings, **{name: getattr(startup_settings, name) for name in restart_required}
        )
        return msgspec.structs.replace(self, settings=settings, restart_required=restart_required)

    def locate_error(self, error: BadSetting) -> BadInput:
        """Return the error with the file and line of its setting."""
        return _with_location(error, self.locations)


def load_settings(
    path: str | Path | None, environment: Mapping[str, str], flags: Flags | None = None
) -> LoadedSettings:
    """Load the settings as `read_settings` does. Raises BadInput, or BadSettings, if a setting cannot be read."""
    loaded = read_settings(path, environment, flags)
    loaded.raise_problems()
    return loaded


def read_settings(
    path: str | Path | None, environment: Mapping[str, str], flags: Flags | None = None
) -> LoadedSettings:
    """Read the settings from the file, the environment and the flags. What cannot be read is in `problems`.

    Args:
        path: Settings file. If None, the file that INTERLINGUA_CONFIG names; otherwise `interlingua.yaml` in the
            working directory or in the user's configuration folder. No file is searched if `--upstream` or
            INTERLINGUA_UPSTREAM is set.
        environment: Environment variables.
        flags: Command-line flags.

    Raises:
        BadInput: The file cannot be read.
        UsageError: A flag is wrong.
    """
    flags = flags or Flags()
    config_path = path or environment.get(CONFIG_VARIABLE)
    inline_upstream = flags.upstream or environment.get(UPSTREAM_VARIABLE)
    searched = [] if config_path or inline_upstream else _settings_paths(environment)
    file = Path(config_path) if config_path else next((path for path in searched if path.is_file()), None)
    variables = Variables(environment, [*([file.parent] if file else []), Path()])
    source = _SettingsSource(notes=list(variables.notes))
    if file is not None:
        _read_settings_file(file, variables, source)
    for override in overrides_from_environment(environment, variables, source.notes):
        _apply_override(override, source)
    for override in overrides_from_flags(flags, variables):
        problem = _apply_override(override, source)
        if problem is not None:
            raise UsageError(str(problem), problem.hint)
    placeholders = _fill_required(source)
    return LoadedSettings(
        settings=_convert_settings(source),
        source=str(file or ""),
        notes=source.notes,
        locations=source.locations,
        variable_secrets=source.secrets,
        searched=[str(path) for path in searched],
        problems=source.problems,
        placeholders=placeholders,
    )


def raise_settings_errors(problems: list[BadInput]) -> None:
    """Raise the only problem, or all of them together. Returns if there is none."""
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise BadSettings(problems)


class _SettingsSource(msgspec.Struct):
    """Settings while they are read from several sources."""

    notes: list[str]
    data: dict[str, Any] = {}
    locations: SettingLocations = {}
    secrets: frozenset[str] = frozenset()
    problems: dict[ValuePath, BadInput] = {}


def _settings_paths(environment: Mapping[str, str]) -> list[Path]:
    """Return the paths of settings files, the preferred one first."""
    home = environment.get("XDG_CONFIG_HOME") or Path(environment.get("HOME") or Path.home(), ".config")
    return [Path(SETTINGS_FILE_NAME), Path(home, "interlingua", SETTINGS_FILE_NAME)]


def _read_settings_file(file: Path, variables: Variables, source: _SettingsSource) -> None:
    try:
        text = file.read_bytes().decode("utf-8-sig")
        mode = file.stat().st_mode
    except OSError as error:
        raise BadInput(f"cannot read {file}: {error.strerror}", "pass the path of a settings file") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{file} is not UTF-8: {error.reason} at byte {error.start}", "save it as UTF-8") from error
    reader = SettingsReader(str(file), variables.expand)
    source.data = reader.read(compose(text, str(file), MAX_SETTINGS_FILE_CHARS, _YAML_HINT), Settings)
    source.locations, source.problems = reader.locations, reader.problems
    if reader.plaintext_secrets and mode & GROUP_AND_OTHERS_MODE_BITS:
        name = ".".join(reader.plaintext_secrets[0])
        source.notes.append(
            f"{file} contains a secret ({name}) and is readable by other users: write ${{NAME}} there, or chmod 600 it"
        )
    free_form_texts = (
        text
        for path, text in reader.texts_with_variables.items()
        if path[2:3] in FREE_FORM_FIELDS and path not in reader.problems
    )
    source.secrets = frozenset().union(*map(variables.expanded_values, free_form_texts))


def _apply_override(override: Override, source: _SettingsSource) -> BadInput | None:
    """Set the value of the override, replacing the existing value. Returns its first problem, if it has any."""
    reader = SettingsReader(override.source, str, override.path)
    try:
        value = reader.read(yaml_node(override), type_at(override.path), override.path)
    except BadInput as error:
        source.problems[override.path] = error
        return error
    source.problems |= reader.problems
    source.locations.update(reader.locations)
    data = source.data
    *parents, name = override.path
    for depth, parent in enumerate(parents, 1):
        source.locations.setdefault(override.path[:depth], override.source)
        if not isinstance(data.get(parent), dict):
            data[parent] = {}
        data = data[parent]
    data[name] = value
    source.problems.pop(override.path, None)
    return next(iter(reader.problems.values()), None)


def _fill_required(source: _SettingsSource) -> frozenset[ValuePath]:
    """Report the required settings that are missing, and fill them with placeholders. Returns their paths."""
    placeholders = set()
    for parent, field in list(find_missing(source.data, Settings)):
        path, requirement = (*parent, field.name), REQUIRED_FIELDS[field.name]
        has_unknown_sibling = any(other[:-1] == parent for other in source.problems)
        if path not in source.problems and not has_unknown_sibling:  # else its name or its value is the problem
            error = BadSetting(path, describe_missing_field(field), requirement.hint)
            source.problems[path] = _with_location(error, source.locations)
        target = source.data
        for name in parent:
            target = target[name]
        target[field.name] = requirement.placeholder
        placeholders.add(path)
    return frozenset(placeholders)


def _convert_settings(source: _SettingsSource) -> Settings:
    """Return the settings as a Struct."""
    try:
        return msgspec.convert(source.data, Settings)
    except (msgspec.ValidationError, UsageError) as error:  # limits that are too small
        problem = BadSetting(("limits",), str(error), getattr(error, "hint", ""))
        source.problems["limits",] = _with_location(problem, source.locations)
        del source.data["limits"]
        return msgspec.convert(source.data, Settings)


def _with_location(error: BadSetting, locations: SettingLocations) -> BadInput:
    """Return the error with the location of its setting, or of the nearest enclosing one."""
    prefixes = (error.path[:length] for length in range(len(error.path), -1, -1))
    located = next((prefix for prefix in prefixes if prefix in locations), None)
    if located is None:
        return BadInput(str(error), error.hint)
    location = locations[located]
    is_override = ":" not in location  # a flag or variable; locations in files have a line
    problem = error.problem if is_override and located == error.path else str(error)
    return BadInput(f"{location}: {problem}", error.hint)
