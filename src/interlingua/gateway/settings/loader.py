"""Loading of the settings and the location of each one.

Precedence, lowest first: settings file, environment variables, command-line flags.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from interlingua.common.typed_yaml import ValuePath, describe_missing_field
from interlingua.common.yaml_reader import compose
from interlingua.errors import BadInput, BadSetting, UsageError
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

__all__ = ["SETTINGS_FILE_NAME", "LoadedSettings", "load_settings"]

SETTINGS_FILE_NAME = "interlingua.yaml"
RESTART_ONLY_FIELDS = (
    "host",
    "port",
    "workers",
    "demo",
    "demo_pace",
    "cassettes",
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


REQUIRED_FIELD_EXAMPLES = {
    "url": "for example: url: https://openrouter.ai/api/v1",
    "upstream": "name one of `upstreams`",
    "dir": "for example: dir: captures",
}
"""Hints for missing required fields, by field name."""
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
    """Load the settings from the file, the environment and the flags.

    Args:
        path: Settings file. If None, the file that INTERLINGUA_CONFIG names; otherwise `interlingua.yaml` in the
            working directory or in the user's configuration folder. No file is searched if `--upstream` or
            INTERLINGUA_UPSTREAM is set.
        environment: Environment variables.
        flags: Command-line flags.

    Raises:
        BadInput: The file cannot be read, or a setting is wrong.
        UsageError: A flag is wrong.
    """
    flags = flags or Flags()
    config_path = path or environment.get(CONFIG_VARIABLE)
    inline_upstream = flags.upstream or environment.get(UPSTREAM_VARIABLE)
    file = Path(config_path) if config_path else None if inline_upstream else _find_settings_file(environment)
    variables = Variables(environment, [*([file.parent] if file else []), Path()])
    notes = list(variables.notes)
    data, locations, secrets = _read_settings_file(file, variables, notes) if file else ({}, {}, frozenset[str]())
    for override in overrides_from_environment(environment, variables, notes):
        _apply_override(override, data, locations)
    for override in overrides_from_flags(flags, variables):
        try:
            _apply_override(override, data, locations)
        except BadInput as error:
            raise UsageError(str(error), error.hint) from error
    return LoadedSettings(_convert_settings(data, locations), str(file or ""), notes, locations, secrets)


def _find_settings_file(environment: Mapping[str, str]) -> Path | None:
    home = environment.get("XDG_CONFIG_HOME") or Path(environment.get("HOME") or Path.home(), ".config")
    return next(
        (path for path in (Path(SETTINGS_FILE_NAME), Path(home, "interlingua", SETTINGS_FILE_NAME)) if path.is_file()),
        None,
    )


def _read_settings_file(
    file: Path, variables: Variables, notes: list[str]
) -> tuple[dict[str, Any], SettingLocations, frozenset[str]]:
    try:
        text = file.read_bytes().decode("utf-8-sig")
        mode = file.stat().st_mode
    except OSError as error:
        raise BadInput(f"cannot read {file}: {error.strerror}", "pass the path of a settings file") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{file} is not UTF-8: {error.reason} at byte {error.start}", "save it as UTF-8") from error
    reader = SettingsReader(str(file), variables.expand)
    data = reader.read(compose(text, str(file), MAX_SETTINGS_FILE_CHARS, _YAML_HINT), Settings)
    if reader.plaintext_secrets and mode & GROUP_AND_OTHERS_MODE_BITS:
        name = ".".join(reader.plaintext_secrets[0])
        notes.append(
            f"{file} contains a secret ({name}) and is readable by other users: write ${{NAME}} there, or chmod 600 it"
        )
    free_form_texts = (text for path, text in reader.texts_with_variables.items() if path[2:3] in FREE_FORM_FIELDS)
    return data, reader.locations, frozenset().union(*map(variables.expanded_values, free_form_texts))


def _apply_override(override: Override, data: dict[str, Any], locations: SettingLocations) -> None:
    """Set the value of the override in `data`, replacing the existing value."""
    reader = SettingsReader(override.source, str)
    value = reader.read(yaml_node(override), type_at(override.path), override.path)
    locations.update(reader.locations)
    *parents, name = override.path
    for depth, parent in enumerate(parents, 1):
        locations.setdefault(override.path[:depth], override.source)
        if not isinstance(data.get(parent), dict):
            data[parent] = {}
        data = data[parent]
    data[name] = value


def _convert_settings(data: dict[str, Any], locations: SettingLocations) -> Settings:
    """Return the settings as a Struct. Raise BadInput if a required field is missing."""
    missing = find_missing(data, Settings)
    if missing is not None:
        path, field = missing
        hint = REQUIRED_FIELD_EXAMPLES[field.name]
        raise _with_location(BadSetting((*path, field.name), describe_missing_field(field), hint), locations)
    try:
        return msgspec.convert(data, Settings)
    except (msgspec.ValidationError, UsageError) as error:  # limits that are too small
        raise _with_location(BadSetting(("limits",), str(error), getattr(error, "hint", "")), locations) from error


def _with_location(error: BadSetting, locations: SettingLocations) -> BadInput:
    """Return the error with the location of its setting, or of the nearest enclosing one."""
    prefixes = (error.path[:length] for length in range(len(error.path), -1, -1))
    location = next((locations[prefix] for prefix in prefixes if prefix in locations), "")
    return BadInput(f"{location}: {error}" if location else str(error), error.hint)
