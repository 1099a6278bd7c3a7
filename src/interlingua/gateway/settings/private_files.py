"""Checks of files and directories that other users of the machine must not read or replace."""

from __future__ import annotations

import stat
from pathlib import Path

from interlingua.errors import BadInput

__all__ = ["check_private_file", "check_private_folder"]

WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
USABLE_BY_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def check_private_folder(path: Path, purpose: str) -> None:
    """Raise BadInput if other users can add, delete or replace files in this directory.

    Args:
        path: The directory.
        purpose: What the directory is for, such as the name of its setting.
    """
    if (mode := path.stat().st_mode) & WRITABLE_BY_OTHERS:
        raise BadInput(
            f"{purpose}: other users can write to {path} (mode {stat.S_IMODE(mode):o})",
            f"run chmod 700 {path}, or choose a directory in it that does not exist: it is created for its owner only",
        )


def check_private_file(path: Path, mode: int) -> None:
    """Raise BadInput if other users can read or write a file with this mode."""
    if mode & USABLE_BY_OTHERS:
        raise BadInput(
            f"other users can read or write {path} (mode {stat.S_IMODE(mode):o})",
            f"delete it, so that a new key is created; if no other user has read it, run chmod 600 {path}",
        )
