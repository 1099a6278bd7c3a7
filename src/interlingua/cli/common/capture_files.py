"""Capture files of the gateway: by path, by the id of the request, or the newest of a folder."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path

from interlingua.captures.capture_format import CAPTURE_SUFFIX
from interlingua.common.name_list import join_names
from interlingua.errors import BadInput, InterlinguaError

__all__ = ["add_captures_option", "capture_folder", "capture_id", "find_capture", "list_captures"]

DEFAULT_FOLDER = "captures"
ID_PREFIX = "req_"
MAX_LISTED_IDS = 5
_FILE_NAME = re.compile(rf"\d{{8}}T\d{{12}}Z-(?P<id>[\w-]+){re.escape(CAPTURE_SUFFIX)}")
_ID = re.compile(rf"{ID_PREFIX}[0-9a-f]{{4,32}}|[0-9a-f]{{6,32}}")
"""Id of a request, or its beginning, with or without its prefix."""


def add_captures_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--captures",
        metavar="DIR",
        help=f"folder of the captures; default: `capture.dir` of the settings, or ./{DEFAULT_FOLDER}",
    )


def find_capture(reference: str, folder: str | None) -> Path | None:
    """Return the capture that a user names: a file, the newest of a folder, or the one with this id.

    Args:
        reference: A path or an id, also the beginning of one.
        folder: The folder in which an id is searched; None for the one of the settings.

    Returns:
        None if the reference is neither a capture file nor a folder nor an id.

    Raises:
        BadInput: No capture, or more than one, has this id.
    """
    path = Path(reference)
    if path.is_dir():
        files = list_captures(path)
        if not files:
            raise BadInput(f"{path} has no captures", "the gateway writes them with `--capture DIR`")
        return files[0]
    if path.exists() or not _ID.fullmatch(reference):
        return path if path.suffix == CAPTURE_SUFFIX else None
    return _find_by_id(reference, capture_folder(folder))


def _find_by_id(id: str, folder: Path) -> Path:
    beginning = id if id.startswith(ID_PREFIX) else f"{ID_PREFIX}{id}"
    found = [path for path in list_captures(folder) if capture_id(path).startswith(beginning)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise BadInput(f"no capture in {folder} has the id {id}", "`interlingua captures list` lists them")
    raise BadInput(
        f"{len(found)} captures in {folder} have an id that begins with {id}",
        f"write more of it: {join_names(list(map(capture_id, found)), MAX_LISTED_IDS)}",
    )


def list_captures(folder: Path) -> list[Path]:
    """Return the captures in a folder, the newest first."""
    try:
        names = sorted(os.listdir(folder), reverse=True)
    except OSError as error:
        raise BadInput(f"cannot read {folder}: {error.strerror}", "pass the folder with --captures DIR") from error
    return [folder / name for name in names if _FILE_NAME.fullmatch(name)]


def capture_id(path: Path) -> str:
    match = _FILE_NAME.fullmatch(path.name)
    return match["id"] if match else path.stem


def capture_folder(folder: str | None) -> Path:
    """Return the folder of captures: the given one, that of the settings, or ./captures. Raises BadInput if none is
    known."""
    if folder:
        return Path(folder)
    if configured := _configured_folder():
        return Path(configured).expanduser()
    if Path(DEFAULT_FOLDER).is_dir():
        return Path(DEFAULT_FOLDER)
    raise BadInput(
        "the folder of the captures is not known: the settings have no `capture`, and there is no ./captures",
        "pass it with --captures DIR",
    )


def _configured_folder() -> str:
    from interlingua.gateway.settings.loader import read_settings  # slow to import, and not needed for a path

    try:
        capture = read_settings(None, os.environ).settings.capture
    except InterlinguaError:
        return ""
    return capture.dir if capture else ""
