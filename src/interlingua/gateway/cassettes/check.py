"""Check of the settings for cassettes, before the gateway starts."""

from __future__ import annotations

from pathlib import Path

from interlingua.cassettes.cassette_files import SUFFIXES, load_cassette
from interlingua.errors import BadSetting, InterlinguaError
from interlingua.gateway.cassettes.deck import check_options
from interlingua.gateway.settings.loader import LoadedSettings

__all__ = ["check_cassettes"]


def check_cassettes(loaded: LoadedSettings) -> None:
    """Raise InterlinguaError if the cassette cannot be used: a wrong rule, cut or fault, or unreadable files."""
    config = loaded.settings.cassettes
    assert config is not None, "called if there is a cassette"
    try:
        rules = check_options(config)
    except InterlinguaError as error:
        raise loaded.locate_error(BadSetting(("cassettes",), str(error), error.hint)) from error
    path = Path(config.dir)
    if config.mode == "replay" or path.exists():
        load_cassette(path, rules)
    elif path.suffix in SUFFIXES and path.parent.exists() and not path.parent.is_dir():
        raise loaded.locate_error(BadSetting(("cassettes", "dir"), f"{path.parent} is not a folder", "choose another"))
