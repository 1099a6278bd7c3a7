"""Check of the settings for cassettes, before the gateway starts."""

from __future__ import annotations

import os
from pathlib import Path

from interlingua.cassettes.cassette_files import SUFFIXES, load_cassette
from interlingua.errors import BadSetting, InterlinguaError
from interlingua.gateway.cassettes.deck import check_options
from interlingua.gateway.settings.loader import LoadedSettings

__all__ = ["check_cassettes"]


def check_cassettes(loaded: LoadedSettings) -> None:
    """Raise InterlinguaError if the cassette cannot be used: a wrong rule, cut or fault, or unreadable files.

    Names in `ignore` that no recorded request has are reported in the notes of the settings.
    """
    config = loaded.settings.cassettes
    assert config is not None, "called if there is a cassette"
    try:
        rules = check_options(config)
    except InterlinguaError as error:
        raise loaded.locate_error(BadSetting(("cassettes",), str(error), error.hint)) from error
    path = Path(config.dir)
    if config.mode == "replay" or path.exists():
        recordings = load_cassette(path, rules)
        if config.mode != "record" and len(recordings) and (problem := rules.describe_unused()):
            loaded.notes.append(f"cassettes: {problem}")
    if config.mode == "replay":
        return
    folders = path.absolute().parents if path.suffix in SUFFIXES else (path.absolute(), *path.absolute().parents)
    folder = next(folder for folder in folders if folder.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        problem = f"cannot write to {folder}" if folder.is_dir() else f"{folder} is not a folder"
        raise loaded.locate_error(BadSetting(("cassettes", "dir"), problem, "choose another"))
