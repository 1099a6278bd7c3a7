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
RESTART_ONLY_FIELDS = ("host", "port", "workers", "demo", "demo_pace", "log", "otel")
"""What only a new start can change."""
MAX_SETTINGS_FILE_CHARS = 1024 * 1024
"""Of a settings file, in characters. Dialects of one's own have samples."""
GROUP_AND_OTHERS_MODE_BITS = 0o077
"""The bits of a file's mode that let anybody but its owner in."""
FREE_FORM_FIELDS = (("headers",), ("extra",))
"""Where upstreams and models have settings under names of the user's own: what a variable has there is a secret."""
_YAML_HINT = "write YAML: a colon and a space behind each name, and the same indent for all that belongs together"


REQUIRED_FIELD_EXAMPLES = {
    "url": "for example: url: https://openrouter.ai/api/v1",
    "upstream": "name one of `upstreams`",
    "dir": "for example: dir: captures",
}
"""Of all that is required."""
SettingLocations: TypeAlias = dict[settings_read.SettingPath, str]


class LoadedSettings(msgspec.Struct, frozen=True):
    settings: Settings
    source: str
    """The file that was read; "": none."""
    notes: list[str]
    """What a person should know of it, and what does not keep the gateway from starting."""
    locations: SettingLocations
    """Where each setting stands: the file and its line, a variable, a flag."""
    variable_secrets: frozenset[str] = frozenset()
    """What variables have brought to where nothing else tells that it is a secret."""
    restart_required: list[str] = []
    """What was set anew and counts only after a restart."""

    @property
    def all_secrets(self) -> list[str]:
        """All that must never be shown."""
        return collect_secrets(self.settings, self.variable_secrets)

    def keep_restart_only_fields(self, startup_settings: Settings) -> LoadedSettings:
        """For a gateway that began with those settings. What it cannot change stays, and is checked as it stays."""
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
    """The settings in this file, or in the one that is found; with none, all is as the environment and flags say.

    An upstream that is given in a line stands for a file: none is looked for then.
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
        raise BadInput(f"cannot read {file}: {error.strerror}", "give the path of a settings file") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{file} is not UTF-8: {error.reason} at byte {error.start}", "save it as UTF-8") from error
    reader = SettingsReader(str(file), variables.expand)
    data = reader.read(compose(text, str(file), MAX_SETTINGS_FILE_CHARS, _YAML_HINT), Settings)
    if reader.plaintext_secrets and mode & GROUP_AND_OTHERS_MODE_BITS:
        name = ".".join(reader.plaintext_secrets[0])
        notes.append(
            f"{file} has a secret in it ({name}) and others may read it: write ${{NAME}} there, or chmod 600 it"
        )
    free_form_texts = (text for path, text in reader.texts_with_variables.items() if path[2:3] in FREE_FORM_FIELDS)
    return data, reader.locations, frozenset().union(*map(variables.expanded_values, free_form_texts))


def _apply_override(override: Override, data: dict[str, Any], locations: SettingLocations) -> None:
    """Sets what was said, whatever was there before."""
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
    """The settings, if all that is required is there."""
    missing_field = find_missing(data, Settings)
    if missing_field is not None:
        path, name = missing_field
        raise _with_location(BadSetting((*path, name), "this is missing", REQUIRED_FIELD_EXAMPLES[name]), locations)
    try:
        return msgspec.convert(data, Settings)
    except (msgspec.ValidationError, UsageError) as error:  # limits that leave no room
        raise _with_location(BadSetting(("limits",), str(error), getattr(error, "hint", "")), locations) from error


def _with_location(error: BadSetting, locations: SettingLocations) -> BadInput:
    """With the place of the setting, or of the nearest around it."""
    prefixes = (error.path[:length] for length in range(len(error.path), -1, -1))
    location = next((locations[prefix] for prefix in prefixes if prefix in locations), "")
    return BadInput(f"{location}: {error}" if location else str(error), error.hint)
